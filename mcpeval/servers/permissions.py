"""Which calls of tools an agent may make: ordered rules, of which the first that matches decides."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from ..errors import FileError, InputError, did_you_mean

ACTIONS = ("allow", "ask", "deny")
"""From the mildest to the strictest."""

_ALSO = {"reject": "deny", "human_review": "ask"}  # MCP-Universe's names
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


@dataclass(frozen=True)
class Permission:
    """One rule: what is done about the calls that it matches.

    A pattern is a text as in `fnmatch` (``*``, ``?``, ``[abc]``; upper and lower case differ), or a
    list of such texts, of which one has to match.

    Attributes
    ----------
    action : {"allow", "deny", "ask"}
        ``reject`` and ``human_review`` are read as ``deny`` and ``ask``.
    tool, server : pattern
        The names that the server itself uses.
    arguments : mapping of str to pattern
        By the place of an argument: ``path``, ``file.name``, ``paths.0``, ``paths.*`` (every member).
        All of them have to match.  A value that is no text is matched as JSON; one that is not there
        matches nothing.  Of the members that a ``*`` stands for, one suffices to deny or to ask, and
        all are needed to allow.
    reason : str
        Told to the model.

    Notes
    -----
    A pattern sees an argument as it is written: ``/data/../etc`` matches ``/data/*``.  What must not
    be reached is best kept from the server itself.
    """

    action: str
    tool: Any = "*"
    server: Any = "*"
    arguments: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "action", _action(self.action, "permission: action"))
        for name in ("tool", "server"):
            object.__setattr__(self, name, _patterns(getattr(self, name), name))
        if not isinstance(self.arguments, Mapping):
            raise InputError(f"permission: arguments={self.arguments!r:.80} should map places to patterns")
        arguments = {place: _patterns(pattern, f"arguments[{place!r}]") for place, pattern in self.arguments.items()}
        object.__setattr__(self, "arguments", arguments)
        if not isinstance(self.reason, str):
            raise InputError(f"permission: reason={self.reason!r:.80} should be a text")

    def matches(self, server: str, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Whether the rule is about this call."""
        if not _match(server, self.server) or not _match(tool, self.tool):
            return False
        enough = all if self.action == "allow" else any
        for place, patterns in self.arguments.items():
            values = list(_at(arguments, place))
            if not values or not enough(_match(_text(value), patterns) for value in values):
                return False
        return True

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, which `read_permissions` reads."""
        return {
            "action": self.action,
            "tool": list(self.tool),
            "server": list(self.server),
            "arguments": {place: list(patterns) for place, patterns in self.arguments.items()},
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Permissions:
    """Rules in their order, and what holds where none matches.

    Attributes
    ----------
    rules : sequence of Permission
        Or of dicts of its fields.
    default : {"allow", "deny", "ask"}
        ``deny`` makes a list of what is allowed.
    ask : callable, optional
        ``ask(server, tool, arguments)``, plain (called in a thread) or async, one call at a time.
        It answers True to allow, False or a text, the reason, to deny.

    Raises
    ------
    InputError
        A rule cannot be meant.

    Examples
    --------
    >>> rules = Permissions([{"action": "allow", "tool": "read_*"}], default="deny")
    >>> rules.decide("files", "write_file", {})[0]
    'deny'
    """

    rules: Sequence[Permission] = ()
    default: str = "allow"
    ask: Callable[[str, str, dict[str, Any]], Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.rules, (str, Mapping)) or not isinstance(self.rules, Sequence):
            raise InputError(f"permissions: rules={self.rules!r:.80} should be a list of rules")
        object.__setattr__(self, "rules", tuple(_rule(rule) for rule in self.rules))
        object.__setattr__(self, "default", _action(self.default, "permissions: default"))
        if self.ask is not None:
            _check_ask(self.ask)

    @property
    def may_ask(self) -> bool:
        """Whether there are calls that somebody has to be asked about."""
        return "ask" in (self.default, *(rule.action for rule in self.rules))

    def before(self, own: Permissions | None) -> Permissions:
        """These rules, then the `own` ones of a server; the stricter default of the two."""
        if own is None:
            return self
        default = max(self.default, own.default, key=ACTIONS.index)
        return replace(self, rules=(*self.rules, *own.rules), default=default, ask=self.ask or own.ask)

    def decide(self, server: str, tool: str, arguments: Mapping[str, Any]) -> tuple[str, str]:
        """What is done about a call, and the text for the model where it is denied."""
        for rule in self.rules:
            if rule.matches(server, tool, arguments):
                return rule.action, _denial(server, tool, rule.reason, bool(rule.arguments))
        return self.default, _denial(server, tool, "", False)

    async def refusal(self, server: str, tool: str, arguments: Any) -> str | None:
        """Why a call must not be made, after asking where a rule says so; None where it may be."""
        if not isinstance(arguments, Mapping):
            return None  # such a call is never made
        action, denial = self.decide(server, tool, arguments)
        if action == "allow":
            return None
        if action == "deny" or self.ask is None:
            return denial
        async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            if inspect.iscoroutinefunction(self.ask):
                answer = await self.ask(server, tool, dict(arguments))
            else:
                answer = await asyncio.to_thread(self.ask, server, tool, dict(arguments))
                if inspect.isawaitable(answer):  # of an object whose __call__ is async, or a lambda around one
                    answer = await answer
        if isinstance(answer, str):
            return _denial(server, tool, answer, True)
        return None if answer is True else denial

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, which `read_permissions` reads; `ask` is not in it."""
        return {"rules": [rule.to_dict() for rule in self.rules], "default": self.default}


def read_permissions(source: Any) -> Permissions | None:
    """Permissions from what a file or a caller gives.

    Parameters
    ----------
    source : Permissions, list of rules, dict, path or None
        A dict has the keys ``rules`` and ``default``; a rule is a `Permission` or a dict of its fields.
        A path is that of a JSON file with either.

    Raises
    ------
    InputError
        It is none of these.
    FileError
        The file is not there, is not JSON, or holds none of these.
    """
    if source is None or isinstance(source, Permissions):
        return source
    if not isinstance(source, (str, os.PathLike)):
        return _permissions_of(source)
    content = read_json(source)
    try:
        return _permissions_of(content)
    except InputError as error:
        raise FileError(str(error), source) from None


def read_json(path: str | os.PathLike) -> Any:
    """The JSON of a file.

    Raises
    ------
    FileError
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise FileError(f"not JSON: {error.msg}", path, error.lineno) from None
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"cannot be read: {error}", path) from None


def _permissions_of(given: Any) -> Permissions:
    if isinstance(given, Mapping):
        _check_keys(given, ("rules", "default"), "permissions")
        return Permissions(given.get("rules", ()), given.get("default", "allow"))
    return Permissions(given)


def _rule(given: Any) -> Permission:
    if isinstance(given, Permission):
        return given
    if not isinstance(given, Mapping) or "action" not in given:
        raise InputError(
            f"permissions: {given!r:.80} is no rule; expected {{'action': 'deny', 'tool': 'write_*', ...}}"
        )
    _check_keys(given, [f.name for f in fields(Permission)], "permission")
    return Permission(**given)


def _check_ask(ask: Any) -> None:
    if not callable(ask):
        raise InputError(f"permissions: ask={ask!r:.80} should be a function of (server, tool, arguments)")
    try:
        inspect.signature(ask).bind("", "", {})
    except TypeError as error:
        raise InputError(f"permissions: ask={ask!r:.80} does not take (server, tool, arguments): {error}") from None
    except ValueError:
        pass  # a builtin without a signature: calling it will tell


def _check_keys(given: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    for key in given:
        if key not in known:
            raise InputError(f"{what}: unknown key {key!r}. {did_you_mean(str(key), known)}")


def _action(given: Any, what: str) -> str:
    action = _ALSO.get(given, given) if isinstance(given, str) else given
    if action not in ACTIONS:
        raise InputError(f"{what}={given!r}. {did_you_mean(str(given), ACTIONS)}")
    return action


def _patterns(given: Any, what: str) -> tuple[str, ...]:
    patterns = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Sequence) else ()
    if not patterns or not all(isinstance(pattern, str) for pattern in patterns):
        raise InputError(f"permission: {what}={given!r:.80} should be a pattern, or a list of patterns")
    return patterns


def _match(text: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)


def _at(value: Any, place: str) -> Iterator[Any]:
    """All that stands at a place; every member of a list or a dict where the place says ``*``.

    A name may have dots itself: ``a.b`` is the member ``b`` of ``a``, and the argument of that name, and where
    both are there no rule may miss one of them.
    """
    members = value if isinstance(value, Mapping) else dict(enumerate(value)) if isinstance(value, list) else {}
    for key, member in members.items():
        for name in {str(key), "*"}:
            if place == name:
                yield member
            elif place.startswith(f"{name}."):
                yield from _at(member, place[len(name) + 1 :])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _denial(server: str, tool: str, reason: str, by_arguments: bool) -> str:
    so = " with these arguments" if by_arguments else ""
    return f"Permission denied: {tool!r} of {server!r} may not be called{so}.{' ' if reason else ''}{reason}"
