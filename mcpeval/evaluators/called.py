"""The calls of a row, made and expected, however they are written.

A call is a `ToolCall`, or a dict ``{"name", "arguments"}``; the keys of other systems are read as
well: ``tool_name`` and ``tool_parameters`` (Salesforce's MCPEval), ``kwargs`` (tau-bench), ``args`` (judge-llm,
Gemini), ``input`` (Anthropic), ``{"function": {...}}`` (OpenAI), and for an expected call BFCL's
``{"f": {"x": [1, 2]}}``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from ..errors import InputError, did_you_mean
from ..messages import arguments_of, tool_calls_of, wire_result
from ..types import ToolCall
from .matching import Expected

_NAMES = ("name", "tool_name", "tool")
_ARGUMENTS = ("arguments", "args", "tool_parameters", "parameters", "kwargs", "input")
_INNER = ("function", "functionCall", "function_call")
_AFTER = ("after", "depends_on")
_KEYS = (*_NAMES, *_ARGUMENTS, *_INNER, *_AFTER, "id", "server", "acceptable", "compare_args", "forbidden")

#: The columns that say which calls were made, and which were expected.
READS = ("tool_calls", "messages", "expected_tool_calls")

_FORM = "expected {'name': ..., 'arguments': {...}}"


def check_columns(who: str, columns: Iterable[str], *, expected: bool) -> None:
    """Raise unless a frame with `columns` says which calls were made, and which were `expected`.

    Raises
    ------
    InputError
        Neither ``tool_calls`` nor ``messages`` is there, or ``expected_tool_calls`` is not.
    """
    columns = list(columns)
    if not {"tool_calls", "messages"} & set(columns):
        near = did_you_mean("tool_calls", columns)
        raise InputError(f"{who} reads the column 'tool_calls', else 'messages'; neither is there. {near}")
    if expected and "expected_tool_calls" not in columns:
        near = did_you_mean("expected_tool_calls", columns)
        raise InputError(f"{who} reads the column 'expected_tool_calls', which is not there. {near}")


def made_calls(row: Mapping[str, Any]) -> list[ToolCall] | None:
    """The calls that were made in a run; None where the row does not say.

    ``tool_calls`` is read where it is not missing (an empty list says that none were made), else
    the calls are found in ``messages``.

    Raises
    ------
    InputError
        A cell is no list of calls, or of messages; the message names the place.
    """
    given = row.get("tool_calls")
    if given is None:
        messages = row.get("messages")
        return None if messages is None else tool_calls_of(_listed(messages, "messages"))
    return [read_call(call, f"tool_calls[{place}]") for place, call in enumerate(_listed(given, "tool_calls"))]


def read_call(given: Any, where: str) -> ToolCall:
    """One call, in any of the known spellings.

    Raises
    ------
    InputError
        It has no name.
    """
    if isinstance(given, ToolCall):
        return given
    name, arguments, given = _parts(given, where)
    result = given.get("result")
    result = result if result is None or isinstance(result, dict) else wire_result(result)
    rest = {"result": result, "is_error": bool(given.get("is_error")), "error": given.get("error")}
    return ToolCall(given.get("server"), name, arguments, **rest, seconds=given.get("seconds") or 0.0)


def read_expected(given: Any, where: str, *, bare_names: bool = False, patterns: bool = False) -> tuple[Expected, ...]:
    """The calls that are expected, from a list of dicts (or the evaluators that `tool_call` makes).

    Parameters
    ----------
    given : list
        Beside name and arguments a call may have ``server``; ``after`` (or ``depends_on``): the
        place, ``id`` or name of another expected call, or a list of such; ``compare_args``: the
        names of the arguments that are compared; ``acceptable`` instead of the arguments: a list
        of values for each; ``forbidden``: true for a call that must not be made.
    where : str
        What `given` is, for messages.
    bare_names : bool
        Whether a text, the name of a tool, is a call too.
    patterns : bool
        Whether names are patterns.

    Raises
    ------
    InputError
        Something in it cannot be meant; the message names the place.
    """
    calls: list[Expected] = []
    ids: list[Any] = []
    links: list[Any] = []
    for place, one in enumerate(_listed(given, where)):
        here = f"{where}[{place}]"
        made_of = getattr(one, "expected", None)
        if isinstance(made_of, tuple):
            found, extra = list(made_of), {}
        else:
            call, extra = _read_one(one, here, bare_names)
            found = [call]
        calls += found
        ids += [extra.get("id")] * len(found)
        links += [(here, next((extra[key] for key in _AFTER if extra.get(key) is not None), []))] * len(found)
    if patterns:
        for call in calls:
            _check_pattern(call.name, where)
    after = [_places(link, here, calls, ids) for here, link in links]
    _check_no_circle(after, where)
    return tuple(_with_after(calls, after, where))


# --- one call ------------------------------------------------------------------------------------


def _listed(given: Any, where: str) -> Sequence[Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            pass
    if isinstance(given, (list, tuple)):
        return given
    raise InputError(f"{where}={given!r:.200} ({type(given).__name__}) should be a list")


def _parts(given: Any, where: str) -> tuple[str, Any, Mapping[str, Any]]:
    """Name, arguments, and the dict that has what else there is to know."""
    if not isinstance(given, Mapping):
        if not isinstance(getattr(given, "name", None), str) or not hasattr(given, "arguments"):
            raise InputError(f"{where} is {given!r:.200} ({type(given).__name__}); {_FORM}")
        return given.name, arguments_of(given.arguments), {}
    inner = next((given[key] for key in _INNER if isinstance(given.get(key), Mapping)), given)
    name = next((inner[key] for key in _NAMES if inner.get(key) is not None), None)
    if not isinstance(name, str) or not name:
        raise InputError(f"{where} is {dict(given)!r:.200}, which has no name; {_FORM}")
    return name, arguments_of(next((inner[key] for key in _ARGUMENTS if key in inner), None)), given


def _read_one(given: Any, where: str, bare_names: bool) -> tuple[Expected, Mapping[str, Any]]:
    if isinstance(given, str):
        if not bare_names:
            hint = "where only names matter, say args='ignore'"
            raise InputError(f"{where} is {given!r}, which says no arguments; {_FORM}; {hint}")
        return Expected(given, {}), {}
    if (bfcl := _bfcl(given)) is not None:
        return Expected(*bfcl, acceptable=True), {}
    if isinstance(given, Mapping):
        _check_keys(given, where)
    name, arguments, extra = _parts(given, where)
    acceptable = extra.get("acceptable")
    if acceptable is not None:
        if not isinstance(acceptable, Mapping) or not all(isinstance(v, (list, tuple)) for v in acceptable.values()):
            raise InputError(f"{where}: acceptable={acceptable!r:.200} should be a dict of lists, one an argument")
        arguments = dict(acceptable)
    if not isinstance(arguments, Mapping):
        raise InputError(f"{where}: the arguments {arguments!r:.200} should be a JSON object")
    only, forbidden = extra.get("compare_args"), extra.get("forbidden", False)
    if only is not None and (isinstance(only, str) or not isinstance(only, Sequence)):
        raise InputError(f"{where}: compare_args={only!r:.200} should be a list of names of arguments")
    if not isinstance(forbidden, bool | None):
        raise InputError(f"{where}: forbidden={forbidden!r:.200} should be true or false")
    options = {"only": None if only is None else tuple(only), "acceptable": acceptable is not None}
    return Expected(name, arguments, extra.get("server"), **options, forbidden=bool(forbidden)), extra


def _bfcl(given: Any) -> tuple[str, Mapping[str, Any]] | None:
    """Name and acceptable values of a call as in BFCL's ``possible_answer``; None for any other form."""
    if not isinstance(given, Mapping) or len(given) != 1:
        return None
    (name, values), *_ = given.items()
    is_one = isinstance(values, Mapping) and all(isinstance(value, list) for value in values.values())
    return (name, values) if is_one and name not in _KEYS else None


def _check_keys(given: Mapping[str, Any], where: str) -> None:
    for key in given:
        if key not in _KEYS and (near := get_close_matches(str(key), _KEYS, n=1, cutoff=0.8)):
            raise InputError(f"{where} has the unknown key {key!r}. Did you mean {near[0]!r}?")


def _check_pattern(name: str, where: str) -> None:
    try:
        re.compile(name)
    except re.error as error:
        raise InputError(f"{where}: the name {name!r} is no pattern: {error}") from None


# --- what comes after what -----------------------------------------------------------------------


def _with_after(calls: Sequence[Expected], after: Sequence[Sequence[int]], where: str) -> Iterable[Expected]:
    wanted = [place for place, call in enumerate(calls) if not call.forbidden]
    rank = {place: i for i, place in enumerate(wanted)}  # the matching knows no others
    for place, (call, before) in enumerate(zip(calls, after)):
        if forbidden := [one for one in before if one not in rank]:
            raise InputError(f"{where}[{place}] comes after {calls[forbidden[0]].name!r}, which is forbidden")
        yield replace(call, after=tuple(rank[one] for one in before)) if before else call


def _places(given: Any, where: str, calls: Sequence[Expected], ids: Sequence[Any]) -> tuple[int, ...]:
    links = given if isinstance(given, (list, tuple)) else [given]
    return tuple(dict.fromkeys(_place(link, where, calls, ids) for link in links))


def _place(link: Any, where: str, calls: Sequence[Expected], ids: Sequence[Any]) -> int:
    if link in ids and link is not None:
        return ids.index(link)
    if isinstance(link, int) and not isinstance(link, bool) and 0 <= link < len(calls):
        return link
    named = [place for place, call in enumerate(calls) if call.name == link]
    if len(named) == 1:
        return named[0]
    if named:
        raise InputError(f"{where} comes after {link!r}, the name of {len(named)} expected calls; give each an id")
    known = {str(one) for one in ids if one is not None} | {call.name for call in calls}
    raise InputError(f"{where} comes after {link!r}, which is no expected call. {did_you_mean(link, known)}")


def _check_no_circle(after: Sequence[Sequence[int]], where: str) -> None:
    done: set[int] = set()
    while ready := [place for place, before in enumerate(after) if place not in done and set(before) <= done]:
        done.update(ready)
    if len(done) < len(after):
        waiting = sorted(set(range(len(after))) - done)
        raise InputError(f"{where}: the calls at {waiting} come after each other in a circle")
