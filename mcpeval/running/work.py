"""Runs, done side by side: what goes wrong in one is in its row, and nowhere else."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..agents.composed import Workflow, starts_servers
from ..agents.session import Session
from ..caching import Cache
from ..errors import CacheMiss, ModelError, ServerError
from ..events import Listeners
from ..preparing import Surroundings, servers_of
from ..servers import Server, SharedServers, open_toolbox
from ..tracing import Trace
from ..types import Run
from .inputs import Job
from .telling import telling

#: Kinds of `ModelError` that a run's ``error_class`` tells apart; the others are ``model``.
MODEL_ERRORS = ("rate", "timeout", "context")


async def work(
    sequences: Sequence[Sequence[int]],
    store: Cache | None,
    concurrency: int,
    begin: Callable[[int], Job | None],
    finish: Callable[[int, Run], None],
    *,
    keep_workdirs: Path | None = None,
    listeners: Listeners,
    timeout: float | None = None,
) -> None:
    """Do the runs of each of `sequences` one after the other, and `concurrency` of them side by side.

    ``begin(i)`` gives the job, or None where there is nothing to do; ``finish(i, run)`` takes its run.
    """
    queue, shared = iter(sequences), SharedServers()

    async def worker() -> None:
        for sequence in queue:
            for i in sequence:
                if (job := begin(i)) is not None:
                    around = Surroundings(job.task, job.steps, job.seed, job.run_id, keep_workdirs)
                    finish(i, await _perform(job, store, timeout, telling(job, listeners), around, shared))

    try:
        async with shared, asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(sequences))):
                group.create_task(worker())
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def _perform(
    job: Job,
    store: Cache | None,
    timeout: float | None,
    tell: Callable[..., None] | None,
    around: Surroundings,
    shared: SharedServers,
) -> Run:
    """One run. Whatever goes wrong in it is in its row, and nowhere else."""
    began, started = time.monotonic(), datetime.now(UTC)
    trace = Trace(job.agent.name, "workflow" if isinstance(job.agent, Workflow) else "agent", tell)
    session = Session(job.task, cache=store, sample=job.trial, notes=job.notes, trace=trace)
    session.offered = job.offered
    trace.tell("run_started", trace.root)
    limit = asyncio.timeout(timeout)
    try:
        # What is opened within the limit is closed without one: no server is left because time is over.
        async with AsyncExitStack() as stack:
            async with limit:
                await stack.enter_async_context(around.folder())
                session.task, session.servers = around.task, around.placed(job.servers)
                session.workdir = None if around.workdir is None else str(around.workdir)
                servers, offered = _started(job)
                toolbox = None
                if servers:
                    box = open_toolbox(around.placed(servers), offered=offered, shared=shared, cache=store)
                    toolbox = await stack.enter_async_context(box)
                if not starts_servers(job.agent):
                    session.open(toolbox)
                await stack.enter_async_context(around.steps(toolbox, session))
                answer = await job.agent(around.task, session)
            if limit.expired():  # and the agent took no notice
                raise TimeoutError
            ending = session.ended(answer)
            around.calls = ending.tool_calls
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and asyncio.current_task().cancelling():
            raise  # the run is cancelled; else it is a cancellation of the agent's own that got out of it
        error = _inner(error)
        if isinstance(error, CacheMiss):
            raise CacheMiss(f"replay: {job}: {error}") from None
        ending = session.ended(**(_late(timeout) if limit.expired() else _failure(error)))
    finally:
        session.close()
    model = job.agent.model or ", ".join(session.models) or None
    about = {
        "agent_fingerprint": job.fingerprint,
        "model_asked": model,
        "started": started.isoformat(timespec="milliseconds"),
        **({} if job.notes is None else {"notes": session.notes}),
        **around.metadata,
    }
    done = replace(ending, seconds=time.monotonic() - began, metadata={**about, **ending.metadata})
    ended = {"usage": done.usage, "error": done.error, "error_class": done.error_class}
    trace.tell("run_ended", trace.root, run=done, **ended)
    return done


def _started(job: Job) -> tuple[list[Server], dict[str, Sequence[str] | None]]:
    """The servers that are started for a run, and what of them its agent is offered.

    That is nothing of those which only its prepares and clean-ups call.
    """
    own = [] if starts_servers(job.agent) else list(job.servers)
    called = servers_of(job.steps)
    others = [server for server in (*job.servers, *job.helpers) if server.name in called and server not in own]
    return [*own, *others], {**job.offered, **{server.name: () for server in others}}


def _late(timeout: float | None) -> dict[str, Any]:
    """The fields of a run that was not over in time."""
    error = f"the run was not over within timeout={timeout:g} s"
    return {"status": "error", "error": error, "error_class": "timeout", "metadata": {"timeout": timeout}}


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
