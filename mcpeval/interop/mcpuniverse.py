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

The two clean-ups of its own task files, `delete_repository` and `delete_page`, are here: they undo at
GitHub and Notion what an agent has made there, with ``run(trust=True)``.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from ..errors import InputError
from ..evaluators.chains import COMPARISONS, STEPS, FunctionResult, compare_func, eval_func

GITHUB = "https://api.github.com"
NOTION = "https://api.notion.com"


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


def delete_repository(repo: str, owner: str = "") -> None:
    """Delete a repository at GitHub: the clean-up ``delete_repository`` of the server ``github``.

    Reads ``GITHUB_PERSONAL_ACCESS_TOKEN`` and, where there is no `owner`,
    ``GITHUB_PERSONAL_ACCOUNT_NAME`` of the environment.

    Raises
    ------
    InputError
        A variable is missing, or GitHub refuses.
    """
    owner = owner or _variable("GITHUB_PERSONAL_ACCOUNT_NAME")
    token = _variable("GITHUB_PERSONAL_ACCESS_TOKEN")
    about = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
    _ask("DELETE", f"{GITHUB}/repos/{quote(owner, safe='')}/{quote(repo, safe='')}", token, about)


def delete_page(page: str) -> None:
    """Put a page at Notion into the trash: the clean-up ``delete_page`` of the server ``notion``.

    Reads ``NOTION_API_KEY`` of the environment.

    Raises
    ------
    InputError
        The variable is missing, or Notion refuses.
    """
    about = {"Content-Type": "application/json", "Notion-Version": "2022-06-28"}
    address = f"{NOTION}/v1/pages/{quote(page, safe='')}"
    _ask("PATCH", address, _variable("NOTION_API_KEY"), about, {"in_trash": True})


def _variable(name: str) -> str:
    if not os.environ.get(name):
        raise InputError(f"the clean-up needs what is not in the environment: {name}")
    return os.environ[name]


def _ask(method: str, address: str, token: str, headers: dict[str, str], body: Any = None) -> None:
    """Send one request; its errors name the address and the status, and no token."""
    data = None if body is None else json.dumps(body).encode()
    headers = {**headers, "Authorization": f"Bearer {token}", "User-Agent": "mcpeval"}
    try:
        with urlopen(Request(address, data, headers, method=method), timeout=30):  # noqa: S310  (https, see above)
            return
    except HTTPError as error:
        raise InputError(f"{method} {address}: HTTP {error.code} {error.reason}") from None
    except OSError as error:
        raise InputError(f"{method} {address}: {error}") from None
