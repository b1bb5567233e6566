"""Calls held against lists of acceptable values, as the Berkeley Function-Calling Leaderboard does.

The definitions are those of its AST checker for Python (Patil et al., "The Berkeley Function Calling
Leaderboard", ICML 2025; Apache-2.0): right name, no argument missing or unknown, every value of the
right type and among the acceptable ones, texts compared without case, spaces and punctuation.
Without a tool's schema the type of the acceptable values is the right one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..types import ToolCall
from .matching import Expected, best_pairs

_PUNCTUATION = re.compile(r"[ ,./\-_*^]")
_TYPES = {
    "string": str,
    "integer": int,
    "number": float,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "object": dict,
    "dict": dict,
}


def ast_ok(
    expected: Sequence[Expected], made: Sequence[ToolCall], schemas: Mapping[str, Mapping[str, Any]] | None = None
) -> bool:
    """Whether the calls made are the expected ones, in any order and no others.

    Parameters
    ----------
    expected : sequence of Expected
        Where a call is not `acceptable`, its arguments are the only acceptable values.
    made : sequence of ToolCall
    schemas : mapping, optional
        The JSON Schema of a tool's arguments, by the tool's name.

    Notes
    -----
    BFCL gives each expected call the first call that will do; here the calls are matched as well as
    can be, so that a loose expectation takes none away from a strict one.
    """
    wanted = [call for call in expected if not call.forbidden]
    if len(wanted) != len(made):
        return False
    schemas = schemas or {}
    distance = [[0 if call_ok(one, call, schemas.get(call.name)) else 1 for call in made] for one in wanted]
    return sum(distance[row][column] == 0 for row, column in best_pairs(distance).items()) == len(wanted)


def call_ok(expected: Expected, made: ToolCall, schema: Mapping[str, Any] | None = None) -> bool:
    """Whether one call will do for another."""
    given = made.arguments
    if made.name != expected.name or not isinstance(given, Mapping):
        return False
    properties, required = (schema or {}).get("properties"), (schema or {}).get("required") or ()
    if any(name not in given for name in required):
        return False
    values = {name: list(v) if expected.acceptable else _only(v) for name, v in expected.arguments.items()}
    for name, value in given.items():
        if name not in values or properties is not None and name not in properties:
            return False
        about = properties.get(name) if properties else None
        if not value_ok(value, values[name], about.get("type") if isinstance(about, Mapping) else None):
            return False
    return all(name in given or "" in acceptable for name, acceptable in values.items())


def _only(value: Any) -> list[Any]:
    """A plain value as the one acceptable; the values in a dict have lists of their own."""
    if isinstance(value, Mapping):
        return [{name: [one] for name, one in value.items()}]
    if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        return [[{name: [inner] for name, inner in one.items()} for one in value]]
    return [value]


def value_ok(value: Any, acceptable: Sequence[Any], kind: Any = None) -> bool:
    """Whether a value is among the acceptable ones.

    Parameters
    ----------
    value : JSON value
    acceptable : list
        ``""`` stands for leaving it out. A dict among them has a list for each of its keys.
    kind : str, optional
        Its type in the schema.

    Examples
    --------
    >>> value_ok("new york, ny", ["New York NY", "NYC"]), value_ok(5, [5.0]), value_ok(True, [1])
    (True, True, False)
    """
    answer = next((type(one) for one in acceptable if one != ""), None)
    right = _TYPES.get(kind) if isinstance(kind, str) else None
    if (right or answer) is float and type(value) is int:
        value = float(value)
    if type(value) not in (right or answer, answer):
        return False
    if right not in (None, answer):  # a value of another type than the schema's stands for a variable
        return value in acceptable
    if isinstance(value, dict):
        return any(_dict_ok(value, one) for one in acceptable if isinstance(one, Mapping))
    if isinstance(value, list):
        return any(_list_ok(value, one) for one in acceptable if isinstance(one, list))
    if isinstance(value, str):
        return _plain(value) in [_plain(one) for one in acceptable]
    return value in acceptable


def _plain(value: Any) -> Any:
    return _PUNCTUATION.sub("", value).lower().replace("'", '"') if isinstance(value, str) else value


def _list_ok(value: Sequence[Any], wanted: Sequence[Any]) -> bool:
    if len(value) != len(wanted):
        return False
    if wanted and all(isinstance(one, Mapping) for one in wanted):
        return all(isinstance(one, dict) and _dict_ok(one, other) for one, other in zip(value, wanted))
    return all(type(one) is type(other) and _plain(one) == _plain(other) for one, other in zip(value, wanted))


def _dict_ok(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    lists = {key: one if isinstance(one, list) else [one] for key, one in wanted.items()}
    known = all(key in lists and _plain(one) in [_plain(other) for other in lists[key]] for key, one in value.items())
    return known and all(key in value or "" in one for key, one in lists.items())
