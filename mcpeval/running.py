"""`run`: agents at tasks over MCP servers, one row of a frame for each task, agent and trial."""

from __future__ import annotations

import asyncio
import json
import os
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from . import llm
from ._loop import run_sync
from .agents.base import Agent
from .agents.composed import Workflow, models
from .agents.functions import FunctionAgent, as_agent
from .agents.session import Session
from .caching import Cache, content_key, open_cache
from .errors import CacheError, CacheMiss, InputError, ModelError, ServerError, did_you_mean
from .frames import rows_of, runs_frame
from .progress import Progress
from .servers import Server, open_toolbox, read_servers
from .tasks import SUFFIXES, read_tasks
from .types import OWN_DOING, Run, Task, content_id

#: Kinds of `ModelError` that a run's ``error_class`` tells apart; the others are ``model``.
MODEL_ERRORS = ("rate", "timeout", "context")


@dataclass(frozen=True)
class _Job:
    """One row to be: an agent at a task for the `trial`-th time, and the servers it is offered."""

    task: Task
    agent: Agent | FunctionAgent | Workflow
    trial: int
    servers: tuple[Server, ...]
    offered: Mapping[str, Sequence[str] | None]

    def __str__(self) -> str:
        return f"task {self.task.id!r}, agent {self.agent.name!r}, trial {self.trial}"

    def key(self) -> str | None:
        """Of the whole run in the cache; None where nobody can say what it depends on."""
        if self.agent.fingerprint is None or any(server.transport == "memory" for server in self.servers):
            return None
        try:
            return content_key(
                "run",
                agent=self.agent.fingerprint,
                task=self._seen(),
                servers=[_definition(server) for server in self.servers],
                offered=[[name, tools and list(tools)] for name, tools in self.offered.items()],
                trial=self.trial,
            )
        except (CacheError, TypeError) as error:
            raise InputError(f"{self}: the task should hold JSON values: {error}") from None

    def _seen(self) -> dict[str, Any]:
        """What of the task may shape the run."""
        seen = self.task.to_dict()
        for name in [name for name in seen if name == "evaluators" or name not in (self.agent.reads or seen)]:
            del seen[name]
        # As text: the order of its keys shapes an answer.
        return {**seen, "output_format": json.dumps(self.task.output_format)}


def run(
    tasks: Any,
    agents: Any,
    *,
    trials: int = 1,
    servers: Any = None,
    cache: Any = None,
    concurrency: int = 8,
    progress: bool | None = None,
    replay: bool = False,
) -> pd.DataFrame:
    """Let agents work on tasks over real MCP servers.

    Parameters
    ----------
    tasks : path, DataFrame, Task, dict, str, or list of those
        A task file or folder (`read_tasks`), a frame with a column ``question`` (and any other
        field of `Task`), tasks, or questions.
    agents : Agent, workflow, callable, str, list of those, or dict
        A dict names them.  A callable of ``(task, session)``, plain or async, is an agent; a text is
        the model of one.
    trials : int
        Independent repetitions, numbered from 0; each draws its own answers.
    servers : path, dict or None
        The MCP servers by name (`mcpeval.servers.read_servers`).  A task is offered those that it
        names, or all where it names none; ``Agent(servers=...)`` narrows that.
    cache : Cache, path, None or False
        Where paid-for answers and finished runs are kept: None is the default folder, False nowhere.
        Runs over servers in memory, and runs of callables without a ``fingerprint``, are repeated;
        their models' answers are kept all the same.  A ``{{VAR}}`` of a server counts as written, so
        what it stands for may differ from machine to machine.
    concurrency : int
        Runs at the same time.  Each has server processes of its own.
    progress : bool, optional
        Whether to show a progress line; None shows it where somebody watches.
    replay : bool
        Answer from the cache alone.

    Returns
    -------
    DataFrame
        One row for each task, agent and trial, in that order, with `mcpeval.frames.RUN_COLUMNS`. A run
        that failed is a row with ``status`` ``error``, its ``error_class`` and all it did until then.
        A row whose answers all came from the cache is ``cached`` and costs 0; ``seconds`` is what
        the run took at first, and ``metadata["saved_usd"]`` what it cost.

    Raises
    ------
    InputError
        Something in the arguments cannot be meant; nothing was started and nothing paid.
    CacheMiss
        With `replay`, for a run that is not in the cache.

    Examples
    --------
    >>> runs = run(["What is 2 + 2?"], Agent("openai/gpt-4.1-mini", "basic"))    # doctest: +SKIP
    """
    for name, value in (("trials", trials), ("concurrency", concurrency)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InputError(f"run: {name}={value!r} should be a whole number, at least 1")
    jobs = _jobs(_tasks(tasks), _agents(agents), trials, read_servers(servers))
    store = open_cache(cache, replay=replay)
    keys = [None if store is None else job.key() for job in jobs]
    done = [None if key is None else _kept(store, key) for key in keys]
    fresh = [i for i, found in enumerate(done) if found is None]
    if replay:
        _refuse_missing([jobs[i] for i in fresh if keys[i] is not None])
    _check([jobs[i] for i in fresh], replay)
    with Progress(len(jobs), "run", progress) as line:
        for found in done:
            if found is not None:
                line.advance(failed=found.status != "ok", cached=True)

        def finish(i: int, ended: Run) -> None:
            done[i] = _keep(store, keys[i], ended)
            line.advance(failed=ended.status != "ok", cached=ended.usage.cached, cost_usd=ended.usage.cost_usd)

        if fresh:
            run_sync(_work([(i, jobs[i]) for i in fresh], store, concurrency, finish))
    paid = set(fresh)
    return runs_frame([_row(job, ended, i not in paid) for i, (job, ended) in enumerate(zip(jobs, done, strict=True))])


# --- what is meant ------------------------------------------------------------------------------


def _tasks(given: Any) -> list[Task]:
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


def _agents(given: Any) -> list[Agent | FunctionAgent | Workflow]:
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


def _jobs(
    tasks: list[Task], agents: list[Agent | FunctionAgent | Workflow], trials: int, known: Mapping[str, Server]
) -> list[_Job]:
    """The rows to be, in their order."""
    pairs = [(task, agent, *_offer(task, agent, known)) for task in tasks for agent in agents]
    return [_Job(task, agent, trial, *offer) for task, agent, *offer in pairs for trial in range(trials)]


def _offer(
    task: Task, agent: Agent | FunctionAgent | Workflow, known: Mapping[str, Server]
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
        offered = {name: tools for name, tools in offered.items() if name in agent.servers}
    return tuple(known[name] for name in offered), offered


def _check_names(names: Iterable[str], who: str, known: Mapping[str, Server]) -> None:
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) if known else "run() was given no servers=."
            raise InputError(f"{who} names the MCP server {name!r}, which is not there. {hint}")


def _refuse_missing(jobs: Sequence[_Job]) -> None:
    if jobs:
        more = f" (nor are {len(jobs) - 1} others)" if len(jobs) > 1 else ""
        raise CacheMiss(f"replay: {jobs[0]} is not in the cache{more}")


def _check(jobs: Sequence[_Job], replay: bool) -> None:
    """Raise now for a server or a model that would fail later."""
    for server in {server.name: server for job in jobs for server in job.servers}.values():
        server.check()
    if replay:
        return
    for agent in {job.agent.name: job.agent for job in jobs}.values():
        offered = {server.name for job in jobs if job.agent is agent for server in job.servers}
        for part in models(agent):
            llm.check_models([part.model], **part.params)
            has_tools = bool(offered if part.servers is None else offered & set(part.servers))
            if part.strategy == "tools" and has_tools and not llm.supports_tools(part.model):
                raise InputError(f"agent {part.name!r}: {part.model} does not call tools itself; use strategy='react'")


# --- the work -----------------------------------------------------------------------------------


async def _work(
    jobs: Sequence[tuple[int, _Job]], store: Cache | None, concurrency: int, finish: Callable[[int, Run], None]
) -> None:
    queue = iter(jobs)

    async def worker() -> None:
        for i, job in queue:
            finish(i, await _perform(job, store))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(jobs))):
                group.create_task(worker())
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def _perform(job: _Job, store: Cache | None) -> Run:
    """One run. Whatever goes wrong in it is in its row, and nowhere else."""
    began, started = time.monotonic(), datetime.now(UTC)
    session = Session(job.task, cache=store, sample=job.trial)
    try:
        async with AsyncExitStack() as stack:
            if job.servers:
                session.open(await stack.enter_async_context(open_toolbox(job.servers, offered=job.offered)))
            ending = session.ended(await job.agent(job.task, session))
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and asyncio.current_task().cancelling():
            raise  # the run is cancelled; else it is a cancellation of the agent's own that got out of it
        error = _inner(error)
        if isinstance(error, CacheMiss):
            raise CacheMiss(f"replay: {job}: {error}") from None
        ending = session.ended(**_failure(error))
    finally:
        session.close()
    model = job.agent.model or ", ".join(session.models) or None
    about = {
        "agent_fingerprint": job.agent.fingerprint,
        "model_asked": model,
        "started": started.isoformat(timespec="seconds"),
    }
    return replace(ending, seconds=time.monotonic() - began, metadata={**about, **ending.metadata})


def _inner(error: BaseException) -> BaseException:
    """The one exception in a group of one: a task group of the agent's own wraps what failed in it."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _failure(error: BaseException) -> dict[str, Any]:
    """The fields of a run that an exception ended."""
    ending: dict[str, Any] = {"status": "error", "error": str(error) or type(error).__name__}
    if isinstance(error, ModelError):
        kind = error.error_class if error.error_class in MODEL_ERRORS else "model"
        return {
            **ending,
            "error_class": kind,
            "metadata": {"model_error": error.error_class, "status_code": error.status_code},
        }
    if isinstance(error, ServerError):
        return {**ending, "error_class": "server", "metadata": {"server": error.server}}
    text = "".join(traceback.format_exception(error))
    return {
        **ending,
        "error": f"{type(error).__name__}: {error}",
        "error_class": "harness",
        "metadata": {"traceback": text},
    }


# --- the cache ----------------------------------------------------------------------------------


def _definition(server: Server) -> dict[str, Any]:
    """What of a server's definition shapes what it does; ``{{VAR}}`` stands as it is written."""
    names = ("name", "transport", "command", "args", "env", "cwd", "url", "headers")
    return {name: getattr(server, name) for name in names}


def _kept(store: Cache, key: str) -> Run | None:
    return store.get(key, None, read=_read)


def _read(value: Any) -> Run:
    kept = Run.from_dict(value)
    if "model_asked" not in kept.metadata:  # `_perform` adds it to every run
        raise ValueError("it is not a run that was made here")
    return kept


def _keep(store: Cache | None, key: str | None, done: Run) -> Run:
    finished = done.status == "ok" or done.error_class in OWN_DOING
    if store is None or store.replay or key is None or not finished:
        return done
    try:
        store.set(key, done.to_dict())
    except CacheError as error:
        return replace(done, metadata={**done.metadata, "not_cached": str(error)})
    return done


# --- the row ------------------------------------------------------------------------------------


def _row(job: _Job, done: Run, kept: bool) -> dict[str, Any]:
    task, agent = job.task, job.agent
    usage = done.usage.from_cache() if kept else done.usage
    metadata = dict(done.metadata)
    model = metadata.pop("model_asked")
    if kept or usage.cached_calls:
        metadata["saved_usd"] = usage.saved_usd
    return {
        "run_id": content_id({"task": task.id, "agent": [agent.name, agent.fingerprint], "trial": job.trial}),
        "task_id": task.id,
        "category": task.category,
        "agent": agent.name,
        "model": model,
        "trial": job.trial,
        "question": task.question,
        "reference": task.reference,
        "output": done.output,
        "messages": [dict(message) for message in done.messages],
        "tool_calls": [call.to_dict() for call in done.tool_calls],
        "status": done.status,
        "error": done.error,
        "error_class": done.error_class,
        "turns": done.turns,
        "n_tool_calls": len(done.tool_calls),
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "cost_usd": usage.cost_usd,
        "seconds": done.seconds,
        "cached": kept or usage.cached,
        "metadata": metadata,
        "evaluators": list(task.evaluators),
        "tags": list(task.tags),
        "expected_tool_calls": task.expected_tool_calls and list(task.expected_tool_calls),
    }
