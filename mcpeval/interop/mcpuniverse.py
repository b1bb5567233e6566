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
from collections.abc import Callable
from functools import wraps
from typing import Any

from ..errors import InputError
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
