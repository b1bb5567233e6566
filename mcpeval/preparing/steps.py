"""``prepares`` and ``cleanups`` of a task, read and checked."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..errors import InputError, did_you_mean
from ..servers import Server
from ..types import Task
from .paths import compiled, filled
from .registry import BROUGHT, CLEANUPS, PREPARES, Registered, cleanup_of

#: The keys of a prepare and of a clean-up, and what each says of a `Step`.
PREPARE_KEYS = {
    "prepare_func": "name", "tool": "name", "prepare_args": "arguments", "arguments": "arguments", "server": "server",
}  # fmt: skip
CLEANUP_KEYS = {"server": "server", "tool": "after", "cleanup_func": "name", "cleanup_args": "arguments"}
#: The variable that names the run's working folder.
WORKDIR = "WORKDIR"
_VARIABLE = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")
_SECRET = re.compile("KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|COOKIE|PRIVATE", re.IGNORECASE)
_WORKDIR = re.compile(r"\{\{\s*WORKDIR\s*\}\}")


@dataclass(frozen=True)
class Step:
    """One prepare or clean-up of a task.

    Attributes
    ----------
    kind : {"prepares", "cleanups"}
    name : str
        A registered function, else a tool of `server`.
    server : str or None
    arguments : dict
        As the file has them; paths in them (``"$name -> get(k)"``) are parts of the agent's call.
    after : str
        The tool of `server` after whose calls a clean-up is made; "" where it is made once.
    """

    kind: str
    name: str
    server: str | None
    arguments: Mapping[str, Any]
    after: str = ""

    @cached_property
    def _template(self) -> Any:
        return compiled(self.arguments) if self.after else self.arguments

    def arguments_for(self, call: Mapping[str, Any] | None) -> dict[str, Any]:
        """The arguments after `call` (``arguments``, ``response``), or where there is none.

        Raises
        ------
        InputError
            The call has not the part that is named.
        """
        return copy.deepcopy(dict(self.arguments)) if call is None else filled(self._template, call)

    @property
    def function(self) -> Registered | None:
        """The function that it names; None where it is a tool."""
        return PREPARES.get(self.name) if self.kind == "prepares" else cleanup_of(self.server, self.name)

    @property
    def shown(self) -> str:
        return f"{self.kind}: {self.name!r}" + (f" of server {self.server!r}" if self.server else "")

    def follows(self, server: str | None, tool: str) -> bool:
        """Whether it is made after a call of this tool."""
        return bool(self.after) and (server, tool) == (self.server, self.after)


def steps_of(task: Task) -> list[Step]:
    """The prepares of a task, then its clean-ups.

    Raises
    ------
    InputError
        A key is unknown (the nearest is named), what has to be there is missing, a value has the wrong
        type, or a path in ``cleanup_args`` cannot be read.
    """
    steps = []
    for kind, keys in (("prepares", PREPARE_KEYS), ("cleanups", CLEANUP_KEYS)):
        for number, given in enumerate(getattr(task, kind), start=1):
            steps.append(_step(kind, given, keys, f"task {task.id!r}: {kind}, item {number}"))
    return steps


def check_steps(task: Task) -> Task:
    """`task`, whose prepares and clean-ups can be read; raises as `steps_of`."""
    if task.prepares or task.cleanups:
        steps_of(task)
    return task


def _step(kind: str, given: Any, keys: Mapping[str, str], where: str) -> Step:
    if not isinstance(given, Mapping):
        raise InputError(f"{where} is {given!r:.80}; expected a mapping with {', '.join(keys)}")
    said: dict[str, Any] = {}
    for key, value in given.items():
        if key not in keys:
            raise InputError(f"{where}: unknown key {key!r}. {did_you_mean(key, keys)}")
        if keys[key] in said:
            raise InputError(f"{where}: {key!r} says again what another key has said")
        if value is not None:
            said[keys[key]] = value
    for name in ("name", "server", "after"):
        if not isinstance(said.get(name, ""), str):
            raise InputError(f"{where}: {said[name]!r:.80} should be a text")
    if not said.get("name"):
        wanted = "prepare_func (or server and tool)" if kind == "prepares" else "cleanup_func"
        raise InputError(f"{where} needs {wanted}; it has: {', '.join(map(str, given)) or 'nothing'}")
    if not isinstance(said.setdefault("arguments", {}), Mapping):
        raise InputError(f"{where}: its arguments are {said['arguments']!r:.80}; expected a mapping of names to values")
    step = Step(kind, said["name"], said.get("server") or None, said["arguments"], said.get("after", ""))
    try:
        step._template  # noqa: B018  (its paths are read now)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return step


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
    return filled(compiled(template), call)


def put_workdir(value: Any, workdir: str) -> Any:
    """`value` with ``{{WORKDIR}}`` in its texts, at any depth, replaced by the folder's path."""
    if isinstance(value, Mapping):
        return {key: put_workdir(inner, workdir) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [put_workdir(inner, workdir) for inner in value]
    return _WORKDIR.sub(lambda _: workdir, value) if isinstance(value, str) else value


def asked(question: str, workdir: str | None) -> str:
    """A task's question with its ``{{VAR}}``: the working folder's path, and variables of the environment.

    What is not there stays as it is written, as at MCP-Universe; and so does what by its name is a secret, or
    a task file could have a model told any key.
    """

    def value(match: re.Match[str]) -> str:
        if match[1] == WORKDIR and workdir is not None:
            return workdir
        return match[0] if _SECRET.search(match[1]) else os.environ.get(match[1], match[0])

    return _VARIABLE.sub(value, question)


def names_workdir(*values: Any) -> bool:
    """Whether a text in one of the values, at any depth, names ``{{WORKDIR}}``."""
    return any(_names_workdir(value) for value in values)


def _names_workdir(value: Any) -> bool:
    if isinstance(value, (Mapping, list, tuple)):
        return names_workdir(*(value.values() if isinstance(value, Mapping) else value))
    return isinstance(value, str) and _WORKDIR.search(value) is not None


# --- what run() asks before it starts -------------------------------------------------------------


def is_remote(server: Server) -> bool:
    """Whether what a server does may reach beyond this machine.

    That is taken to be so of a server that is reached over HTTP or SSE, and of one that is given
    variables of the environment, as the keys of services are.
    """
    return server.transport in ("http", "sse") or any(name != WORKDIR for name in server.needs)


def check_known(steps: Iterable[Step], servers: Mapping[str, Server], task: str, *, trust: bool) -> None:
    """Refuse steps that cannot be made, or may not be without `trust`.

    Raises
    ------
    InputError
        A step names neither a registered function nor a server of the run, gives a function what it does
        not take, or would call a remote service without `trust`.
    """
    for step in steps:
        where, function = f"task {task!r}: {step.shown}", step.function
        if function is not None and (problem := function.problem(step.arguments)):
            raise InputError(f"{where} cannot be called with its arguments: {problem}")
        if function is None and step.server not in servers:
            raise InputError(f"{where} is not there. {_help(step, servers)}")
        remote = function.remote if function is not None else is_remote(servers[step.server])
        if remote and not trust:
            local = " (a function of your own that calls none is registered with remote=False)" if function else ""
            raise InputError(f"{where} may call a remote service, which run() does only with trust=True{local}")


def _help(step: Step, servers: Mapping[str, Server]) -> str:
    if step.kind == "prepares":
        known, decorator = list(PREPARES), f"@prepare_func({step.name!r})"
        near = did_you_mean(step.name, known) if known else "None is registered."
    else:
        known = [" ".join(key) for key in {**BROUGHT, **CLEANUPS}]
        decorator = f"@cleanup_func({step.server or ''!r}, {step.name!r})"
        near = did_you_mean(f"{step.server} {step.name}", known)
    hint = "" if step.server is None else f" Of MCP servers: {did_you_mean(step.server, servers)}"
    return f"Register it with {decorator}, from mcpeval.preparing. Of registered functions: {near}{hint}"


def servers_of(steps: Sequence[Step]) -> list[str]:
    """The MCP servers whose tools the steps call, each once."""
    return list(dict.fromkeys(step.server for step in steps if step.function is None and step.server is not None))
