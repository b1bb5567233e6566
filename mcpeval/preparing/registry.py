"""The functions that ``prepares`` and ``cleanups`` of task files may name."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..errors import InputError

#: What of a run a registered function is given where it has a parameter of that name.
SURROUNDINGS = ("task", "workdir", "state")


@dataclass(frozen=True)
class Registered:
    """A registered function.

    Attributes
    ----------
    function : callable
    remote : bool
        Whether it calls a service beyond this machine, so that only ``run(trust=True)`` calls it.
    revision : int
    """

    function: Callable[..., Any]
    remote: bool = True
    revision: int = 1

    @cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.function).parameters

    def takes(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """Those of `about` that the function has parameters for."""
        return {name: value for name, value in about.items() if name in self._parameters}

    def problem(self, names: Iterable[str]) -> str:
        """Why it cannot be called with arguments of these names; empty where it can."""
        given = dict.fromkeys(names)
        try:
            inspect.signature(self.function).bind(**{**given, **self.takes(dict.fromkeys(SURROUNDINGS))})
        except TypeError as error:
            return str(error)
        return ""


PREPARES: dict[str, Registered] = {}
CLEANUPS: dict[tuple[str, str], Registered] = {}
#: Clean-ups that come with the package, by the place of their function; loaded when a task names one.
BROUGHT = {
    ("github", "delete_repository"): "mcpeval.interop.mcpuniverse:delete_repository",
    ("notion", "delete_page"): "mcpeval.interop.mcpuniverse:delete_page",
}


def prepare_func(name: str, *, remote: bool = True, revision: int = 1) -> Callable[[Callable], Callable]:
    """Register a function, plain or async, that ``prepares`` of tasks may name.

    It is called with the ``prepare_args`` by name before the agent begins, and given, where it has
    parameters of these names, ``task`` (the `Task`), ``workdir`` (the run's working folder, or None)
    and ``state`` (a dict that the prepares and clean-ups of one run share).  What it raises ends the
    run.  Registering a name again replaces it.

    Parameters
    ----------
    name : str
        As in ``{"prepare_func": name, "prepare_args": {...}}``.
    remote : bool
        Whether it calls a service beyond this machine: such a one is called only with
        ``run(trust=True)``.
    revision : int
        Raised when it begins to prepare something else, so that cached runs are not mistaken for
        runs with the new one.

    Examples
    --------
    >>> @prepare_func("write_notes", remote=False)
    ... def write_notes(workdir, text="hello"):
    ...     (workdir / "notes.txt").write_text(text)
    """
    _check_name("prepare_func", name)

    def register(function: Callable) -> Callable:
        PREPARES[name] = Registered(function, remote, revision)
        return function

    return register


def cleanup_func(server: str, name: str, *, remote: bool = True) -> Callable[[Callable], Callable]:
    """Register a function, plain or async, that ``cleanups`` of tasks may name.

    It is called with the ``cleanup_args`` by name, once for each matching tool call, or once in the
    end; the rest is as in `prepare_func`.  It takes the place of a tool `name` of the MCP server.

    Parameters
    ----------
    server, name : str
        As in ``{"server": server, "cleanup_func": name, "cleanup_args": {...}}``.
    remote : bool
        Whether it calls a service beyond this machine.
    """
    _check_name("cleanup_func", server)
    _check_name("cleanup_func", name)

    def register(function: Callable) -> Callable:
        CLEANUPS[server, name] = Registered(function, remote)
        return function

    return register


def _check_name(decorator: str, name: Any) -> None:
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{decorator}: {name!r} should be the text by which a task file calls it")


def cleanup_of(server: str | None, name: str) -> Registered | None:
    """The registered clean-up of this name; None where there is none, and a tool is meant."""
    key = (server or "", name)
    if key not in CLEANUPS and key in BROUGHT:
        module, _, function = BROUGHT[key].partition(":")
        CLEANUPS[key] = Registered(getattr(importlib.import_module(module), function))
    return CLEANUPS.get(key)
