"""What `run` was given: tasks, agents, servers, and the rows to be; each checked before anything is started."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from .. import llm
from ..agents.base import Agent
from ..agents.composed import Workflow, models, parts
from ..agents.external import External
from ..agents.functions import FunctionAgent, as_agent
from ..agents.session import narrowed
from ..caching import content_key
from ..errors import CacheError, CacheMiss, InputError, did_you_mean
from ..frames import rows_of
from ..preparing import WORKDIR, Seed, Step, check_known, names_workdir, read_seed, servers_of, steps_of
from ..servers import Server
from ..tasks import SUFFIXES, read_tasks
from ..types import Task, content_id


@dataclass(frozen=True)
class Job:
    """One row to be: an agent at a task for the `trial`-th time, and the servers it is offered."""

    task: Task
    agent: Agent | FunctionAgent | Workflow | External
    trial: int
    servers: tuple[Server, ...]
    offered: Mapping[str, Sequence[str] | None]
    #: Of the agent; worked out once for all its rows.
    fingerprint: str | None
    #: What an agent that keeps notes begins with, by the names of the notes (`Lives`).
    notes: Mapping[str, Sequence[str]] | None = None
    #: The task's prepares and clean-ups, the servers that they alone call, and what its working folder begins with.
    steps: tuple[Step, ...] = ()
    helpers: tuple[Server, ...] = ()
    seed: Seed | None = None

    @property
    def run_id(self) -> str:
        return content_id({"task": self.task.id, "agent": [self.agent.name, self.fingerprint], "trial": self.trial})

    def __str__(self) -> str:
        return f"task {self.task.id!r}, agent {self.agent.name!r}, trial {self.trial}"

    def key(self) -> str | None:
        """Of the whole run in the cache; None where nobody can say what it depends on."""
        if self.fingerprint is None or any(
            server.transport == "memory" or server.asks for server in (*self.servers, *self.helpers)
        ):
            return None
        try:
            return content_key(
                "run",
                agent=self.fingerprint,
                task=self.seen(),
                servers=[server.definition for server in self.servers],
                offered=[[name, tools and list(tools)] for name, tools in self.offered.items()],
                trial=self.trial,
                **({} if self.notes is None else {"notes": self.notes}),
                **self._around(),
            )
        except (CacheError, TypeError) as error:
            raise InputError(f"{self}: the task should hold JSON values: {error}") from None

    def seen(self) -> dict[str, Any]:
        """What of the task may shape the run."""
        seen = self.task.to_dict()
        apart = ("evaluators", "prepares", "cleanups", "workdir")  # which shape no run, or are in its key otherwise
        for name in [name for name in seen if name in apart or name not in (self.agent.reads or seen)]:
            del seen[name]
        # As text: the order of its keys shapes an answer.
        return {**seen, "output_format": json.dumps(self.task.output_format)}

    def _around(self) -> dict[str, Any]:
        """What was there before the agent began, as far as the run has anything of its own."""
        parts: dict[str, Any] = {} if self.seed is None else {"workdir": self.seed.sha256}
        prepares = [step for step in self.steps if step.kind == "prepares"]
        if prepares:
            parts["helpers"] = [server.definition for server in self.helpers]
            parts["prepares"] = [[s.name, s.server, s.arguments, s.function and s.function.revision] for s in prepares]
        return parts


def tasks_of(given: Any) -> list[Task]:
    if isinstance(given, pd.DataFrame):
        tasks = _frame_tasks(given)
    elif isinstance(given, Iterable) and not isinstance(given, (str, Mapping)):
        tasks = read_tasks([_task_or_path(item) for item in given])
    else:
        tasks = read_tasks(_task_or_path(given))
    if not tasks:
        raise InputError("run: tasks is empty; give at least one")
    return tasks


def _task_or_path(given: Any) -> Any:
    """A text is a path where it looks like one, and a question elsewhere."""
    if not isinstance(given, str) or Path(given).suffix in SUFFIXES or os.path.exists(given) or len(given.split()) < 2:
        return given
    return {"question": given}


def _frame_tasks(frame: pd.DataFrame) -> list[Task]:
    if not frame.columns.is_unique:
        raise InputError(f"run: tasks has the column {frame.columns[frame.columns.duplicated()][0]!r} more than once")
    names = {"task_id": "id"} if "id" not in frame.columns else {}
    tasks = []
    for label, row in zip(frame.index.tolist(), rows_of(frame), strict=True):
        data = {names.get(name, name): value for name, value in row.items() if value is not None or name == "question"}
        tasks.append(Task.from_dict({"id": str(label), **data}))
    return read_tasks(tasks)


def agents_of(given: Any) -> list[Agent | FunctionAgent | Workflow | External]:
    if isinstance(given, Mapping):
        agents = [as_agent(agent, str(name)) for name, agent in given.items()]
    elif isinstance(given, Iterable) and not isinstance(given, str) and not callable(given):
        agents = [as_agent(agent) for agent in given]
    else:
        agents = [as_agent(given)]
    if not agents:
        raise InputError("run: agents is empty; give at least one")
    names = [agent.name for agent in agents]
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"run: {names.count(name)} agents are named {name!r}; give each a name=, or a dict {{name: agent}}"
            )
    return agents


def jobs_of(
    tasks: list[Task],
    agents: list[Agent | FunctionAgent | Workflow | External],
    trials: int,
    known: Mapping[str, Server],
) -> list[Job]:
    """The rows to be, in their order."""
    seeds: dict[str | None, Seed] = {}
    marks = {agent.name: agent.fingerprint for agent in agents}
    jobs = []
    for task in tasks:
        steps = tuple(steps_of(task))
        for agent in agents:
            servers, offered = _offer(task, agent, known)
            names = [name for name in servers_of(steps) if name in known and name not in offered]
            helpers = tuple(known[name] for name in names)
            placed = any(WORKDIR in server.needs for server in (*servers, *helpers))
            seed = None
            if task.workdir or placed or names_workdir(task.question, task.prepares, task.cleanups):
                if task.workdir not in seeds:
                    seeds[task.workdir] = read_seed(task.workdir, f"task {task.id!r}")
                seed = seeds[task.workdir]
            about = {"steps": steps, "helpers": helpers, "seed": seed}
            jobs += [Job(task, agent, trial, servers, offered, marks[agent.name], **about) for trial in range(trials)]
    return jobs


def _offer(
    task: Task, agent: Agent | FunctionAgent | Workflow | External, known: Mapping[str, Server]
) -> tuple[tuple[Server, ...], dict[str, Any]]:
    """The servers an agent is offered at a task, and the only tools of each, where the task names some."""
    if not agent.uses_tools:
        return (), {}
    offered = {server["name"]: server.get("tools") for server in task.mcp_servers}
    if not task.use_specified_server or not offered:
        offered = dict.fromkeys(known)
    _check_names(offered, f"task {task.id!r}", known)
    if agent.servers is not None:
        _check_names(agent.servers, f"agent {agent.name!r}", known)
        offered = narrowed(offered, agent.servers)
    return tuple(known[name] for name in offered), offered


def _check_names(names: Iterable[str], who: str, known: Mapping[str, Server]) -> None:
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) if known else "run() was given no servers=."
            raise InputError(f"{who} names the MCP server {name!r}, which is not there. {hint}")


def _check_unruled(agent: External, jobs: Sequence[Job]) -> None:
    """An agent that starts the servers itself calls their tools as it likes."""
    for server in [s for job in jobs if any(part is agent for part in parts(job.agent)) for s in job.servers]:
        if server.permissions is not None:
            raise InputError(
                f"agent {agent.name!r} calls the tools of {server.name!r} itself, out of reach of permissions: "
                "narrow its tools, or leave the permissions out"
            )


def folder_of(keep_workdirs: Any) -> Path | None:
    """Where working folders are kept; refused now, for a folder that cannot be kept is lost."""
    if keep_workdirs is None:
        return None
    if not isinstance(keep_workdirs, (str, os.PathLike)) or not str(keep_workdirs):
        raise InputError(f"run: keep_workdirs={keep_workdirs!r:.80} should be the path of a folder")
    if os.path.exists(keep_workdirs) and not os.path.isdir(keep_workdirs):
        raise InputError(f"run: keep_workdirs={str(keep_workdirs)!r} is no folder")
    return Path(keep_workdirs)


def refuse_missing(jobs: Sequence[Job]) -> None:
    if jobs:
        more = f" (nor are {len(jobs) - 1} others)" if len(jobs) > 1 else ""
        raise CacheMiss(f"replay: {jobs[0]} is not in the cache{more}")


def check(jobs: Sequence[Job], replay: bool, trust: bool) -> None:
    """Raise now for a server, a model, a prepare or a clean-up that would fail later."""
    for server, seed in {s.name: (s, job.seed) for job in jobs for s in (*job.servers, *job.helpers)}.values():
        if server.share and WORKDIR in server.needs:
            raise InputError(f"server {server.name!r} has share, and a folder of each run: {{{{{WORKDIR}}}}}")
        server.check(None if seed is None else {WORKDIR: str(seed.path or tempfile.gettempdir())})
    for job in {(job.task.id, job.agent.name): job for job in jobs}.values():
        check_known(job.steps, {s.name: s for s in (*job.servers, *job.helpers)}, job.task.id, trust=trust)
    if replay:
        return
    for agent in {job.agent.name: job.agent for job in jobs}.values():
        offered = {server.name for job in jobs if job.agent is agent for server in job.servers}
        for part in parts(agent):
            if isinstance(part, External):
                _check_unruled(part, jobs)
                part.check([server for job in jobs if job.agent is agent for server in job.servers])
        for part in models(agent):
            llm.check_models([part.model], **part.params)
            has_tools = bool(part.memory or (offered if part.servers is None else offered & set(part.servers)))
            if part.strategy == "tools" and has_tools and not llm.supports_tools(part.model):
                raise InputError(f"agent {part.name!r}: {part.model} does not call tools itself; use strategy='react'")
