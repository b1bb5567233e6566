"""A rule's value: copied when the rule is written, its variables filled in when it is used, shown in reasons."""

from __future__ import annotations

import json
import os
import re
import reprlib
from collections.abc import Mapping
from typing import Any

from ..errors import InputError

_VARIABLE = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")
_SHOW = reprlib.Repr()
_SHOW.maxstring = _SHOW.maxother = 200
_SHOW.maxdict = _SHOW.maxlist = 12


def plain(value: Any, where: str) -> Any:
    """A copy of a JSON value: tuples as lists, numpy scalars as Python's.

    Raises
    ------
    InputError
        Something in it is not JSON; the message says where. Or it is nested too deeply, or holds a
        whole number too long, to be written as text.
    """
    try:
        copied = _copied(value, where)
        json.dumps(copied)
    except (RecursionError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"rule: {where} cannot be written as JSON: {error}") from None
    return copied


def _copied(value: Any, where: str) -> Any:
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Mapping):
        if wrong := [key for key in value if not isinstance(key, str)]:
            raise InputError(f"rule: {where} has the key {wrong[0]!r}; keys should be texts")
        return {key: _copied(inner, f"{where}[{key!r}]") for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copied(inner, f"{where}[{place}]") for place, inner in enumerate(value)]
    if getattr(value, "ndim", None) == 0 and callable(getattr(value, "item", None)):
        return _copied(value.item(), where)
    raise InputError(f"rule: {where}={value!r:.200} ({type(value).__name__}) is not JSON")


def as_json(value: Any) -> Any:
    """What a registered function gave, for metadata: JSON, any other object as its text."""
    try:
        return json.loads(json.dumps(value, default=str))
    except (TypeError, ValueError, RecursionError):  # keys that are no texts, a value that holds itself
        return show(value)


def has_variable(value: Any) -> bool:
    """Whether a text in `value`, at any depth, holds ``{{VAR}}``."""
    if isinstance(value, (dict, list)):
        return any(map(has_variable, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str) and _VARIABLE.search(value) is not None


def fill(value: Any, env: Mapping[str, str] | None) -> Any:
    """`value` with every ``{{VAR}}`` replaced once, by name; what is put in is not read again.

    Raises
    ------
    InputError
        A variable is neither in `env` nor in the environment.
    """
    if isinstance(value, dict):
        return {key: fill(inner, env) for key, inner in value.items()}
    if isinstance(value, list):
        return [fill(inner, env) for inner in value]
    return _VARIABLE.sub(lambda found: _variable(found[1], env), value) if isinstance(value, str) else value


def _variable(name: str, env: Mapping[str, str] | None) -> str:
    for place in (env or {}, os.environ):
        if name in place:
            return str(place[name])
    raise InputError(f"the rule's value needs the variable {name}, which is neither in env nor in the environment")


def show(value: Any) -> str:
    """A short repr of any value, however deep or long."""
    if _is_short(value):
        return repr(value)  # what reprlib gives, in a fifth of the time
    try:
        return _SHOW.repr(value)
    except (ValueError, RecursionError):  # an int of more than 4300 digits has no repr
        return f"a {type(value).__name__} too long to show"


def _is_short(value: Any) -> bool:
    if type(value) is str:
        return len(value) < 99 and value.isprintable()
    return type(value) is int and -(10**30) < value < 10**30
