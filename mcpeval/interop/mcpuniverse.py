"""The functions that the package mcpuniverse brings along, as steps and comparisons of our rules.

Its task files name some two hundred comparisons (``google_maps.validate_places``,
``yfinance.check_stock_price``, ...) that are code of that package.  `use_functions` registers them
as they are.

The package pins mcp 1.13 and cannot be imported beside the mcp that `mcpeval.servers` needs, so it
takes an environment of its own::

    pip install mcpuniverse diskcache
    pip install --no-deps mcpeval

There everything works but what starts MCP servers of ours; the functions that ask servers start
their own.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from ..errors import InputError, did_you_mean
from ..evaluators.chains import COMPARISONS, STEPS, FunctionResult, compare_func, eval_func


def use_functions() -> list[str]:
    """Register every step and comparison that is registered with the package mcpuniverse.

    Those that both have (``json``, ``=``, ...) stay ours, which answer the same. A function gets
    what it gets there: `FunctionResult` and ``Context`` of that package, the latter with the rule's
    `env`. Call it again after registering more there.

    Returns
    -------
    list of str
        The names, in alphabetical order.

    Raises
    ------
    InputError
        The package is not installed, or cannot be imported.

    Notes
    -----
    Importing the package reads a file ``.env`` into the environment, as it always does.
    """
    try:
        importlib.import_module("mcpuniverse.evaluator")
        theirs = importlib.import_module("mcpuniverse.evaluator.functions")
        context = importlib.import_module("mcpuniverse.common.context").Context
    except ImportError as error:
        raise InputError(
            f"use_functions: the package mcpuniverse cannot be imported: {error}. It needs an environment of its own: "
            "pip install mcpuniverse diskcache, then pip install --no-deps mcpeval"
        ) from error
    names = []
    for register, known, functions in (
        (eval_func, STEPS, theirs.EVALUATION_FUNCTIONS),
        (compare_func, COMPARISONS, theirs.COMPARISON_FUNCTIONS),
    ):
        for name, function in functions.items():
            if not getattr(known.get(name), "theirs", False):
                register(name=name)(_translated(function, theirs.FunctionResult, context))
                names.append(name)
    return sorted(names)


def _translated(function: Callable[..., Any], result: type, context_of: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, for a result and a context of ours."""

    @wraps(function)
    async def call(*arguments: Any, **named: Any) -> Any:
        given = [_exchanged(argument, FunctionResult, result) for argument in arguments]
        if "context" in named:
            named["context"] = context_of(env=dict(named["context"].env))
        return _exchanged(await function(*given, **named), result, FunctionResult)

    return call


def _exchanged(value: Any, old: type, new: type) -> Any:
    """`value` with each `old` in it, at the top or in lists, as a `new`."""
    if isinstance(value, old):
        return new(result=_exchanged(value.result, old, new))
    if isinstance(value, list):
        return [_exchanged(inner, old, new) for inner in value]
    return value


def cleanup_arguments(template: Any, call: Mapping[str, Any]) -> Any:
    """The arguments of a clean-up, as ``cleanup_args`` of a task names them by parts of a tool call.

    Parameters
    ----------
    template : JSON value
        A text ``"$name -> get(key) -> array(0)"``, at any depth, stands for a part of the call's
        argument `name`, or of its result for ``$return``; ``json`` reads a text as JSON. Any other
        value is itself.
    call : mapping
        ``arguments`` and ``response`` (the wire result).

    Raises
    ------
    InputError
        The text is no such path, or the call has no such part.
    """
    if isinstance(template, Mapping):
        return {key: cleanup_arguments(value, call) for key, value in template.items()}
    if isinstance(template, list):
        return [cleanup_arguments(value, call) for value in template]
    if not isinstance(template, str) or "$" not in template:
        return template
    start, *steps = template.strip().split("->")
    if not start.startswith("$"):
        raise InputError(f"Format error in `cleanup_args`: {template}; expected '$argument -> step -> ...'")
    name, arguments = start[1:].rstrip(), call["arguments"]
    if name != "return" and name not in arguments:
        near = did_you_mean(name, [*arguments, "return"])
        raise InputError(f"Invalid input argument in `cleanup_args`: {name}. {near}")
    value = call["response"] if name == "return" else arguments[name]
    for step in steps:
        value = _part(value, step.strip(), template)
    return value


_PARTS: dict[str, Callable[[Any, str], Any]] = {
    "get": lambda value, key: value[key],
    "array": lambda value, index: value[int(index)],
    "json": lambda value, _: json.loads(value),
}


def _part(value: Any, step: str, template: str) -> Any:
    name, _, rest = step.partition("(")
    take = _PARTS.get(name.strip().lower())
    if take is None:
        raise InputError(f"Invalid operation in `cleanup_args`: {step}. {did_you_mean(name.lower(), _PARTS)}")
    try:
        return take(value, rest.rpartition(")")[0].strip())
    except (LookupError, TypeError, ValueError) as error:
        raise InputError(f"cleanup_args {template!r}: {step} cannot be followed: {error!r}") from None
