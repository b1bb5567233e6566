"""The built-in steps of a chain.

``json get len foreach raw list`` give exactly what MCP-Universe's give (and its error texts); the
others are ours.  A step is a pure function of one value: it never changes it, because several rules
share what ``json`` parsed.  What it raises is the output's fault.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable
from typing import Any

from pydantic_core import from_json

from .chains import STEPS, FunctionResult, Step

_last_parsed: tuple[str, Any] = ("null", None)


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _loads(text: str) -> Any:
    """`json.loads` in less than half the time.

    What pydantic's parser reads it reads as json does (a test holds the two together); what it
    refuses - half a character, nesting of hundreds of levels, what is no JSON - json decides.
    """
    try:
        return from_json(text)
    except (ValueError, TypeError):
        return json.loads(text)


def parse_json(text: str) -> Any:
    """``json`` as MCP-Universe reads it: backquotes around and one leading word json are dropped."""
    text = text.strip().strip("`").strip()
    return _loads(text[4:].strip() if text.startswith("json") else text)


def parse_json_once(text: Any) -> Any:
    """`parse_json`; the same text asked for again in a row is not parsed again."""
    global _last_parsed
    last, value = _last_parsed  # one assignment and one read: safe between threads
    if last is not text:
        if not isinstance(text, str):
            raise AssertionError("The input is not a string")
        value = parse_json(text)
        _last_parsed = (text, value)
    return value


def _json(*_: str) -> Callable[[Any], Any]:
    return parse_json_once


def _get(key: str, *_: str) -> Callable[[Any], Any]:
    def step(value: Any) -> Any:
        if isinstance(value, dict):
            return value.get(key)
        raise AssertionError("The input is not a dict")

    return step


def _len(*_: str) -> Callable[[Any], int]:
    def step(value: Any) -> int:
        _need(isinstance(value, (list, tuple)), "The input is not a list")
        return len(value)

    return step


def _foreach(*_: str) -> Callable[[Any], Any]:
    """Checks what is to be iterated; the rule does the iterating."""

    def step(value: Any) -> Any:
        _need(isinstance(value, (list, tuple)), "The input is not a list")
        return value

    return step


def _raw(*_: str) -> Callable[[Any], FunctionResult]:
    return FunctionResult


def _list(*_: str) -> Callable[[Any], list[Any]]:
    return lambda value: [value]


# Ours ------------------------------------------------------------------------------------------

_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"(```|~~~)[^\n`~{\[\"]*+(.*?)\1", re.DOTALL)
_OPENING = re.compile(r"""\{\s*+["}]|\[\s*+[\[{"\-\dtfnNI\]]""")  # what may begin an object or an array
_NUMBER = re.compile(r"[-+\u2212]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?|[-+\u2212]?\.\d+")
_PATH = re.compile(r"""\[\s*(-?\d+)\s*\]|\[\s*(?:"([^"]*)"|'([^']*)')\s*\]|\.?([^.\[\]]+)""")


def find_json(text: str) -> Any:
    """The JSON that an answer holds, whatever stands around it.

    The whole text where it is JSON; else, without ``<think>`` blocks, the last fenced block that
    is JSON; else the last object that stands in the prose, or the last array where there is no
    object. A byte-order mark is dropped.

    Raises
    ------
    ValueError
        There is none.
    """
    text = text.strip().removeprefix("\ufeff").strip()
    try:
        return json.loads(text)
    except ValueError:
        pass
    text = _THOUGHT_END.sub("", _THOUGHT.sub("", text))
    for candidate in (*(m[2] for m in reversed(list(_FENCE.finditer(text)))), text):
        try:
            return json.loads(candidate.strip().removeprefix("\ufeff"))
        except ValueError:
            continue
    found = _values_in_prose(text)
    for kind in (dict, list):
        if chosen := [value for value in found if isinstance(value, kind)]:
            return chosen[-1]
    raise ValueError("The input holds no JSON")


def _values_in_prose(text: str) -> list[Any]:
    """Every outermost object and array of a text, left to right.

    A text of many brackets that are never closed would be read again from each of them; after
    twenty times its length the search ends. (The line number in a decoding error counts too: it
    is found by reading the text from its beginning.)
    """
    decoder, found, position = json.JSONDecoder(), [], 0
    budget = 20 * len(text) + 10_000
    while budget > 0 and (opening := _OPENING.search(text, position)):
        position = opening.start()
        try:
            value, end = decoder.raw_decode(text, position)
            found.append(value)
        except json.JSONDecodeError as error:
            budget -= error.pos - position + error.pos // 64
            end = position + 1
        except RecursionError:
            budget -= len(text)
            end = position + 1
        position = end
    return found


def _text(function: Callable[[str], Any]) -> Callable[..., Callable[[Any], Any]]:
    """A step without arguments that reads a text."""

    def make() -> Callable[[Any], Any]:
        def step(value: Any) -> Any:
            _need(isinstance(value, str), "The input is not a string")
            return function(value)

        return step

    return make


def _normal(text: str) -> str:
    """NFKC, case folded, every run of whitespace one space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _number() -> Callable[[Any], int | float]:
    """The one number of a text: thousands separated by commas, units and signs around it allowed."""

    def step(value: Any) -> int | float:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return value
        _need(isinstance(value, str), "The input is not a number or a string")
        found = _NUMBER.findall(value)
        if len(found) != 1:
            raise ValueError(f"The input holds {len(found)} numbers, not one")
        text = found[0].replace(",", "").replace("\u2212", "-")
        return int(text) if text.lstrip("+-").isdecimal() else float(text)

    return step


def _whole(text: str, what: str) -> int:
    if not re.fullmatch(r"-?\d+", text):
        raise ValueError(f"{what} needs a whole number, not {text!r}")
    return int(text)


def _index(n: str) -> Callable[[Any], Any]:
    place = _whole(n, "index(n)")

    def step(value: Any) -> Any:
        _need(isinstance(value, (list, tuple)), "The input is not a list")
        return value[place]

    return step


def _path(path: str) -> Callable[[Any], Any]:
    """Keys joined by dots and places in brackets; as with ``get``, a missing key gives None."""
    places: list[str | int] = []
    position = 0
    while position < len(path):
        found = _PATH.match(path, position)
        if found is None:
            raise ValueError(f"path(...) cannot be read from {path[position:]!r} on; write a.b[0] or ['a.b'].c")
        number, double, single, plain = found.groups()
        places.append(int(number) if number is not None else next(k for k in (double, single, plain) if k is not None))
        position = found.end()
    if not places:
        raise ValueError("path(...) needs a path such as a.b[0]")

    def step(value: Any) -> Any:
        for place in places:
            if isinstance(place, int):
                _need(isinstance(value, (list, tuple)), f"The input of [{place}] is not a list")
                value = value[place]
            else:
                _need(isinstance(value, dict), f"The input of {place!r} is not a dict")
                value = value.get(place)
        return value

    return step


def _items(function: Callable[[Any], Any]) -> Callable[..., Callable[[Any], Any]]:
    """A step without arguments that reads a list."""

    def make() -> Callable[[Any], Any]:
        def step(value: Any) -> Any:
            _need(isinstance(value, (list, tuple)), "The input is not a list")
            return function(value)

        return step

    return make


def hashable(value: Any) -> Any:
    """A stand-in for a JSON value that can be in a set; two are equal where the values are."""
    if isinstance(value, dict):
        return "dict", frozenset((key, hashable(inner)) for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return "list", tuple(hashable(inner) for inner in value)
    return value


def _unique(values: list[Any]) -> list[Any]:
    kept: dict[Any, Any] = {}
    for value in values:
        kept.setdefault(hashable(value), value)
    return list(kept.values())


def _sum(values: list[Any]) -> int | float:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"The input has {type(value).__name__}, which cannot be summed")
    return sum(values) if all(isinstance(value, int) for value in values) else math.fsum(values)


def _regex(pattern: str) -> Callable[[Any], str | None]:
    """What the pattern finds first: its first group where it has one, None where it finds nothing."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"regex(...) cannot be compiled: {error}") from None

    def step(value: Any) -> str | None:
        _need(isinstance(value, str), "The input is not a string")
        found = compiled.search(value)
        return found and found[1 if compiled.groups else 0]

    return step


def _of_dict(function: Callable[[dict], list[Any]]) -> Callable[..., Callable[[Any], list[Any]]]:
    def make() -> Callable[[Any], list[Any]]:
        def step(value: Any) -> list[Any]:
            _need(isinstance(value, dict), "The input is not a dict")
            return function(value)

        return step

    return make


STEPS.update(
    {
        "json": Step(_json, theirs=True),
        "get": Step(_get, least=1, theirs=True),
        "len": Step(_len, theirs=True),
        "foreach": Step(_foreach, theirs=True),
        "raw": Step(_raw, theirs=True),
        "list": Step(_list, theirs=True),
        "extract_json": Step(_text(find_json)),
        "lower": Step(_text(str.lower)),
        "strip": Step(_text(str.strip)),
        "normalize": Step(_text(_normal)),
        "number": Step(_number),
        "index": Step(_index, 1, 1),
        "path": Step(_path, 1, 1),
        "sort": Step(_items(sorted)),
        "unique": Step(_items(_unique)),
        "sum": Step(_items(_sum)),
        "regex": Step(_regex, 1, 1),
        "keys": Step(_of_dict(list)),
        "values": Step(_of_dict(lambda value: list(value.values()))),
    }
)
