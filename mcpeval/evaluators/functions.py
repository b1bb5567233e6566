"""Plain functions and objects as evaluators.

A function says by its parameters what it reads: ``row`` is the whole row, ``context`` the
`Context`, any other name is a column.  A parameter with a default names a column that may be
missing.  An object with a method ``evaluate`` is taken as it is where that method reads ``row``;
another system's signature is chosen from `SIGNATURES`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from ..errors import InputError
from .base import Context, columns_read

#: Methods ``evaluate`` of other systems: the names of their first parameters, and where the function stands
#: that makes an evaluator of (object, name). It is loaded when the first such object is seen.
SIGNATURES: dict[tuple[str, ...], str] = {
    ("expected", "actual"): "mcpeval.interop.russo:adapt",
    ("test_case", "response"): "mcpeval.interop.judge_llm.signatures:adapt_response",
    ("eval_case", "agent_metadata", "provider_result"): "mcpeval.interop.judge_llm.signatures:adapt_provider_result",
}


_REST, _REST_BY_NAME = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD


@dataclass(frozen=True)
class Function:
    """A plain function, adapted to ``evaluate(row, context)``; calling it calls the function.

    Attributes
    ----------
    function : callable
    name : str
    columns : tuple of str
        Columns without which it cannot be called.
    optional : tuple of str
        Columns that are passed where the frame has them.
    takes_row, takes_context, takes_rest : bool
        Whether it has a parameter ``row``, ``context``, or ``**columns`` for all the others.
    """

    function: Callable[..., Any]
    name: str
    columns: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    takes_row: bool = False
    takes_context: bool = False
    takes_rest: bool = False
    kind = "function"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def evaluate(self, row: Mapping[str, Any], context: Context | None = None) -> Any:
        """Call the function with what it reads of `row`; its answer as it is."""
        return self.function(**self._arguments(row, context))

    async def _evaluate_async(self, row: Mapping[str, Any], context: Context | None = None) -> Any:
        return await self.function(**self._arguments(row, context))

    @property
    def evaluate_async(self) -> Callable[..., Any] | None:
        """`evaluate` on the running loop where the function is a coroutine function, else None."""
        return self._evaluate_async if _is_async(self.function) else None

    @property
    def reads(self) -> tuple[str, ...] | None:
        """The columns it looks at; None where it is given all."""
        return None if self.takes_row or self.takes_rest else self.columns + self.optional

    def _arguments(self, row: Mapping[str, Any], context: Context | None) -> dict[str, Any]:
        names = row.keys() if self.takes_rest else (*self.columns, *(n for n in self.optional if n in row))
        arguments = {name: row[name] for name in names}
        if self.takes_row:
            arguments["row"] = row
        if self.takes_context:
            arguments["context"] = context
        return arguments


@dataclass(frozen=True)
class Adapted:
    """An object whose ``evaluate(row)`` is used under another name."""

    inner: Any
    name: str

    @property
    def kind(self) -> str:
        return getattr(self.inner, "kind", "function")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(getattr(self.inner, "columns", ()))

    @property
    def reads(self) -> tuple[str, ...] | None:
        return columns_read(self.inner)

    @property
    def evaluate(self) -> Callable[..., Any]:
        return self.inner.evaluate


def _is_async(function: Any) -> bool:
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(function.__call__)


def _name_of(function: Any) -> str:
    while hasattr(function, "func"):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    return "lambda" if name == "<lambda>" else name


def adapt_function(function: Callable[..., Any], name: str | None = None) -> Function:
    """An evaluator that calls `function` with what its parameters name.

    Raises
    ------
    InputError
        It has no readable signature, positional-only or ``*args`` parameters, or none at all.
    """
    if isinstance(function, Function):
        return function if name is None else replace(function, name=name)
    name = name or _name_of(function)
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        raise InputError(f"evaluator {name!r}: its signature cannot be read; wrap it: lambda output: ...") from None
    missing = inspect.Parameter.empty
    for parameter in parameters.values():
        if parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, _REST):
            raise InputError(
                f"evaluator {name!r}: parameter {str(parameter)!r} cannot be given by name; "
                "name parameters after columns (output, reference, ...), or one of them 'row'"
            )
    if not parameters:
        raise InputError(f"evaluator {name!r} has no parameter; name one 'row', or after a column (output, ...)")
    named = {key: p for key, p in parameters.items() if p.kind is not _REST_BY_NAME}
    columns = {key: p for key, p in named.items() if key not in ("row", "context")}
    return Function(
        function,
        name,
        columns=tuple(key for key, p in columns.items() if p.default is missing),
        optional=tuple(key for key, p in columns.items() if p.default is not missing),
        takes_row="row" in named,
        takes_context="context" in named,
        takes_rest=len(named) < len(parameters),
    )


def adapt_object(given: Any, name: str | None = None) -> Any:
    """An evaluator from an object with a method ``evaluate``, chosen by that method's signature.

    Raises
    ------
    InputError
        The method reads neither a row nor what one of `SIGNATURES` names.
    """
    parameters = inspect.signature(given.evaluate).parameters
    names = tuple(parameters)
    for first, place in SIGNATURES.items():
        if names[: len(first)] == first:
            module, _, adapt = place.partition(":")
            return getattr(importlib.import_module(module), adapt)(given, name)
    needed = [p for p in names[1:] if p != "context" and parameters[p].default is inspect.Parameter.empty]
    if not names or any(parameters[p].kind not in (_REST, _REST_BY_NAME) for p in needed):
        others = " or ".join(f"({', '.join(first)})" for first in SIGNATURES)
        raise InputError(
            f"evaluators has {given!r:.100}, whose method is evaluate({', '.join(names)}); expected evaluate(row), "
            f"or another system's, known by the names of its parameters: {others}"
        )
    if isinstance(getattr(given, "name", None), str) and name in (None, given.name):
        return given
    if name is not None and is_dataclass(given) and "name" in {f.name for f in fields(given)}:
        return replace(given, name=name)
    return Adapted(given, name or type(given).__name__)


def evaluator(function: Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
    """Decorate a function to make it an evaluator; it can still be called as before.

    Parameters
    ----------
    function : callable
        With a parameter ``row``, or parameters named after columns; plain or async.
    name : str, optional
        The function's own name where it is not given.

    Examples
    --------
    >>> @evaluator(name="short")
    ... def is_short(output):
    ...     return len(output) < 100
    """
    return adapt_function(function, name) if function is not None else lambda f: adapt_function(f, name)
