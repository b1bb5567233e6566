"""Numbers as people read them; what is unknown is a dash, never a zero."""

from __future__ import annotations

import sys
from typing import Any

UNKNOWN = "–"
#: A whole number beyond it cannot be formatted, nor read by a browser.
_LARGEST = sys.float_info.max


def known(value: Any) -> float | None:
    """`value` as a number; None where it is none, or none that ends: JSON has no name for infinity."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if abs(value) <= _LARGEST else None  # nor is NaN below anything


def dollars(value: Any) -> str:
    """US dollars; what is below a cent with as many digits as say something."""
    if (cost := known(value)) is None:
        return UNKNOWN
    if cost == 0:
        return "$0"
    return f"${cost:,.2f}" if cost >= 1 else f"${cost:.4f}" if cost >= 0.001 else f"${cost:.2g}"


def duration(value: Any) -> str:
    if (seconds := known(value)) is None:
        return UNKNOWN
    if seconds < 0.1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def count(value: Any) -> str:
    return UNKNOWN if known(value) is None else f"{value:,.0f}"


def share(value: Any) -> str:
    """A score, a difference, a share: three digits."""
    return UNKNOWN if known(value) is None else f"{value:.3f}"


def p_value(value: Any) -> str:
    if (p := known(value)) is None:
        return UNKNOWN
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def several(n: int, what: str) -> str:
    """``1 run``, ``2 runs``."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"
