"""JSON text: what may be kept, and the canonical form that a key is made of."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

from ..errors import CacheError

SCHEMA_VERSION = 1
"""Part of every key: raised when what a kind of value holds changes its meaning."""


def canonical(value: Any) -> str:
    """The one JSON text of a value, whatever the order of its dicts.

    Sorted keys, ASCII (a lone surrogate is escaped), no spaces; a tuple is a list, and a whole
    float is the integer it equals.

    Raises
    ------
    CacheError
        Something in `value` is not JSON, or is NaN or infinite; the message says where:
        ``$.messages[3].content: set is not JSON``.

    Examples
    --------
    >>> canonical({"b": (1.0, None), "a": "\u00e9"})
    '{"a":"\\\\u00e9","b":[1,null]}'
    """
    return json_text(value, key=True)


def content_key(kind: str, /, **parts: Any) -> str:
    """The cache key of what `parts` determine: ``kind:`` and a sha256 in hex.

    Parameters
    ----------
    kind : str
        What is kept under the key: ``completion``, ``run``, ...
    **parts : JSON values
        Everything that shapes the value, and nothing secret.

    Raises
    ------
    CacheError
        As `canonical`.
    """
    text = canonical({"schema": SCHEMA_VERSION, "kind": kind, "parts": parts})
    return f"{kind}:{hashlib.sha256(text.encode('ascii')).hexdigest()}"


def _fault(value: Any, key: bool) -> str | None:
    """Where and why `value` is not JSON, as the end of a path; None where it is."""
    if value is None or isinstance(value, (str, int)):
        return None
    if isinstance(value, float):
        return f": {value!r} has no place in a key" if key and not math.isfinite(value) else None
    if not isinstance(value, (dict, list, tuple)):
        return f": {type(value).__name__} is not JSON"
    for place, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(value, dict) and not isinstance(place, str):
            return f": the key {place!r} is {type(place).__name__}, not text"
        if (fault := _fault(item, key)) is not None:
            return (f".{place}" if isinstance(place, str) else f"[{place}]") + fault
    return None


def json_text(value: Any, *, key: bool = False) -> str:
    """The JSON text (ASCII) of a value, in the one canonical form of it where it is for a key.

    Raises
    ------
    CacheError
        Something in it is not JSON; the message says where.
    """
    try:
        fault = _fault(value, key)
        if fault is None:
            return json.dumps(_whole(value) if key else value, sort_keys=key, separators=(",", ":"))
    except RecursionError:
        fault = ": nested too deeply, or contains itself"
    except ValueError as error:  # an integer of more digits than Python writes
        fault = f": {error}"
    raise CacheError(f"${fault}")


def _whole(value: Any) -> Any:
    """`value` with 1.0 written as 1 (as RFC 8785 does): a frame turns the one into the other."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole(item) for item in value]
    return value
