"""The grammar of a rule's chain, and the two tables of names that a chain and an operator may use.

A chain is ``step -> step(argument, argument) -> ...``, as in MCP-Universe: split at ``->``, empty
items dropped, the name before the first ``(``, the arguments from there to the first ``)``,
separated by commas and stripped.  With `quotes`, an argument that stands wholly between quotes is
taken as it is, whatever it holds: ``get("a, b")``, ``get('x->y')``.
"""

from __future__ import annotations

import dis
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from ..errors import ChainError, InputError
from .base import call_apart

_ARGUMENTS = re.compile(r"\((.*?)\)")
_QUOTED = re.compile(r"""([(,]\s*)("[^"]*"|'[^']*')(?=\s*[,)])""")


@dataclass(frozen=True)
class FunctionResult:
    """The value that a custom step is given and gives back, as in MCP-Universe."""

    result: Any


@dataclass(frozen=True)
class Call:
    """One step as written: its name, its arguments (None where there are no parentheses)."""

    name: str
    arguments: tuple[str, ...] | None
    text: str
    position: int


@dataclass(frozen=True)
class Step:
    """A built-in step.

    Attributes
    ----------
    make : callable
        From the arguments (texts) to the function of one value.
    least, most : int
        How many arguments it needs, and how many it can take.
    theirs : bool
        Whether it is one of MCP-Universe's, which ignore arguments that are too many.
    """

    make: Callable[..., Callable[[Any], Any]]
    least: int = 0
    most: int = 0
    theirs: bool = False


@dataclass(frozen=True)
class Comparison:
    """A built-in comparison.

    Attributes
    ----------
    make : callable
        ``make(value, options)`` gives the test of one leaf: True, or False or a text that says more.
        Raises InputError where `value` or the options cannot be used.
    reason : str
        How the reason of a failure begins.
    options : tuple of str
        The keys that `op_args` may have.
    theirs : bool
    """

    make: Callable[[Any, dict[str, Any]], Callable[[Any], bool | str]]
    reason: str
    options: tuple[str, ...] = ()
    theirs: bool = False


@dataclass(frozen=True)
class Custom:
    """A registered function: how many places it takes, and whether it wants the context."""

    function: Callable[..., Any]
    places: int
    takes_context: bool
    third: bool = False

    def cannot_take(self, count: int) -> str:
        """Why it cannot be called with `count` arguments and the context; empty where it can."""
        extra = {"context": None} if self.takes_context else {}
        try:
            inspect.signature(self.function).bind(*[None] * count, **extra)
        except TypeError as error:
            return str(error)
        return ""

    async def call(self, arguments: tuple[Any, ...], context: Any) -> Any:
        """Call it with as many of `arguments` as it takes; a plain function in a worker thread."""
        extra = {"context": context} if self.takes_context else {}
        return await call_apart(self.function, *arguments[: self.places], **extra)


STEPS: dict[str, Step | Custom] = {}
COMPARISONS: dict[str, Comparison | Custom] = {}
_WHEN_REGISTERED: list[Callable[[], None]] = []


def call_when_registered(refresh: Callable[[], None]) -> None:
    """Have `refresh` called whenever a name gets a function, new or again."""
    _WHEN_REGISTERED.append(refresh)


@lru_cache(maxsize=4096)
def parse(chain: str, *, quotes: bool) -> tuple[Call, ...]:
    """The steps of a chain, each with its place in it; names are not looked up."""
    quoted = {m.start(2): m.end(2) for m in _QUOTED.finditer(chain)} if quotes else {}
    masked = chain
    for start, end in quoted.items():
        masked = masked[:start] + "\0" * (end - start) + masked[end:]
    calls, offset = [], 0
    for piece in masked.split("->"):
        start = offset + len(piece) - len(piece.lstrip())
        if item := piece.strip():
            found = _ARGUMENTS.search(item)
            arguments = found and _arguments(chain, masked, start + found.start(1), start + found.end(1), quoted)
            calls.append(Call(item.split("(")[0].strip(), arguments, chain[start : start + len(item)], start))
        offset += len(piece) + 2
    return tuple(calls)


def _arguments(chain: str, masked: str, start: int, end: int, quoted: dict[int, int]) -> tuple[str, ...]:
    found = []
    for piece in masked[start:end].split(","):
        first = start + len(piece) - len(piece.lstrip())
        last = start + len(piece.rstrip())
        found.append(chain[first + 1 : last - 1] if quoted.get(first) == last else chain[first : max(first, last)])
        start += len(piece) + 1
    return tuple(found)


def chain_error(message: str, chain: str, position: int) -> ChainError:
    """A `ChainError` whose caret stands right in a chain that has line breaks."""
    return ChainError(message, "".join(" " if c.isspace() else c for c in chain), position)


def eval_func(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a step for chains, as MCP-Universe's decorator of this name does.

    The function, plain or async, is called ``(x, *arguments, context=...)``: `x` is a
    `FunctionResult`, or after ``foreach`` a list of them; the arguments are texts; `context` is
    given where it is taken. It gives a `FunctionResult` (or a bare value) back. Registering a name
    again replaces the function, also in rules that exist.

    Raises
    ------
    InputError
        `name` is a built-in step of MCP-Universe, or the function takes no argument.

    Examples
    --------
    >>> @eval_func(name="first_word")
    ... async def first_word(x: FunctionResult, *args, **kwargs) -> FunctionResult:
    ...     return FunctionResult(result=x.result.split()[0])
    """
    return _register(STEPS, "step", name)


def compare_func(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a comparison, as MCP-Universe's decorator of this name does.

    The function, plain or async, is called ``(a, b, op_args, context=...)`` for each leaf `a` with
    the rule's value `b`, and answers ``(passed, reason)`` or ``passed``. One that takes fewer is
    given fewer.

    Raises
    ------
    InputError
        `name` is a built-in comparison of MCP-Universe, or the function takes no argument.
    """
    return _register(COMPARISONS, "comparison", name)


def _register(table: dict[str, Any], what: str, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"name={name!r} should be the text by which a rule calls the {what}")
    if getattr(table.get(name), "theirs", False):
        raise InputError(f"name={name!r} is a built-in {what}; choose another name")

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        table[name] = _custom(function, name)
        for refresh in _WHEN_REGISTERED:
            refresh()
        return function

    return decorate


def _custom(function: Callable[..., Any], name: str) -> Custom:
    parameters = inspect.signature(function).parameters
    kinds = inspect.Parameter
    positional = [p for p in parameters.values() if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    named = [p for p in positional if p.name != "context"]
    rest = next((p.name for p in parameters.values() if p.kind is kinds.VAR_POSITIONAL), None)
    if not named and rest is None:
        raise InputError(f"function {name!r} takes no argument; it is called with the value first")
    return Custom(
        function,
        places=1000 if rest else len(named),
        takes_context="context" in parameters or any(p.kind is kinds.VAR_KEYWORD for p in parameters.values()),
        third=rest is not None and len(named) == 2 and _subscripts(function, rest, 2),
    )


def _subscripts(function: Callable[..., Any], name: str, index: int) -> bool:
    """Whether `function` reads ``name[index]``.

    The guide's ``text_similarity(a, b, *args)`` looks for the options at ``args[2]``, where the
    call that the same guide describes leaves ``args == (op_args,)``.
    """
    code = dis.get_instructions(inspect.unwrap(function))
    return any(first.argval == name and second.argval == index for first, second in pairwise(code))


# Values as registered steps see them: a `FunctionResult`, or after ``foreach`` lists of them.


def over_tree(step: Callable[[Any], Any], opens: bool, tree: Any) -> Any:
    """A built-in step over the tree that registered functions see: lists of `FunctionResult`."""
    if isinstance(tree, FunctionResult):
        answer = step(tree.result)
        return [FunctionResult(inner) for inner in answer] if opens else FunctionResult(answer)
    return [over_tree(step, opens, inner) for inner in tree]


async def registered_step(call: Call, tree: Any, context: Any) -> Any:
    """What a registered step makes of the tree; a bare value that it gives back is one leaf."""
    answer = await STEPS[call.name].call((tree, *(call.arguments or ())), context)
    if not _is_tree(answer) or (isinstance(tree, FunctionResult) and not flat(answer)):
        return FunctionResult(answer)
    return answer


def _is_tree(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_tree(inner) for inner in value)
    return isinstance(value, FunctionResult)


def flat(tree: Any) -> list[Any]:
    """The leaves of a tree."""
    if isinstance(tree, FunctionResult):
        return [tree.result]
    return [leaf for inner in tree for leaf in flat(inner)]
