"""What an evaluator's arguments may be, checked when it is made."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any

from ..errors import InputError, did_you_mean


def need_choice(who: str, name: str, value: Any, choices: Iterable[Any]) -> None:
    """Raise where `value` is not one of `choices`."""
    choices = list(choices)
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise InputError(f"{who}: {name}={value!r}. {did_you_mean(value, map(str, choices))}")


def need_flag(who: str, name: str, value: Any) -> None:
    """Raise where `value` is neither True nor False."""
    if not isinstance(value, bool):
        raise InputError(f"{who}: {name}={value!r} should be True or False")


def need_number(who: str, name: str, value: Any, low: float = 0.0, high: float = math.inf) -> float:
    """`value` as a float; raise where it is no number from `low` to `high`."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and low <= value <= high:
        return float(value)
    bounds = f"a number, at least {low:g}" if math.isinf(high) else f"a number from {low:g} to {high:g}"
    raise InputError(f"{who}: {name}={value!r} should be {bounds}")


def need_count(who: str, name: str, value: Any) -> None:
    """Raise where `value` is no whole number, at least 0."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InputError(f"{who}: {name}={value!r} should be a whole number, at least 0")


def need_texts(who: str, name: str, value: Any) -> tuple[str, ...]:
    """`value` as a tuple of texts that are not empty; one text stands for a list of it."""
    texts = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else None
    if texts is None or not all(isinstance(text, str) and text for text in texts):
        raise InputError(f"{who}: {name}={value!r:.200} should be a list of texts, none of them empty")
    return texts
