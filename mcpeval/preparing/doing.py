"""The calls of prepares and clean-ups, and the record of what came of each."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import InputError, ServerError
from ..servers import Server
from ..servers.results import call_text, cut
from ..types import Task, ToolCall
from .folders import Seed, Workdir
from .steps import WORKDIR, Step, asked, put_workdir

#: Seconds that a registered function has; a tool has its server's ``call_timeout``.
FUNCTION_TIMEOUT = 60.0
#: Seconds that all clean-ups of a run have together once it is cancelled.
GRACE = 5.0
_SAID = 2000
NOT_UNDONE = "The call did not succeed, so nothing was undone; what it may have done all the same is still there."


class Surroundings:
    """What a run does around its agent.

    Parameters
    ----------
    task : Task
    steps : list of Step
    seed : Seed, optional
        Of its working folder; without one it has none.
    run_id : str
    keep : path, optional
        Where the working folder is kept afterwards, under the run's id.

    Attributes
    ----------
    task : Task
        With the values of ``{{VAR}}`` in its question, once there is the working folder.
    workdir : Path or None
    calls : list of ToolCall or None
        Of the agent, where it has told them; else those of the session are undone.
    """

    def __init__(
        self, task: Task, steps: Sequence[Step], seed: Seed | None = None, run_id: str = "", keep: Path | None = None
    ) -> None:
        self.task, self._steps, self._keep = task, steps, keep
        self._folder = None if seed is None else Workdir(seed, run_id)
        self.workdir: Path | None = None
        self.calls: Sequence[ToolCall] | None = None
        self._toolbox: Any = None
        self._state: dict[str, Any] = {}
        self._done: dict[str, list[dict[str, Any]]] = {"prepares": [], "cleanups": []}
        self._changes: dict[str, Any] | None = None

    @property
    def metadata(self) -> dict[str, Any]:
        """What the row says of it: ``prepares``, ``cleanups``, ``workdir``, those that there are.

        Of each step ``server``, ``tool``, ``arguments``, ``is_error``, ``error``.
        """
        said = {**self._done, "workdir": self._changes}
        return {name: value for name, value in said.items() if value}

    @asynccontextmanager
    async def folder(self) -> AsyncIterator[None]:
        """Have the working folder, where there is to be one, until the end."""
        if self._folder is None:
            self.task = _asked(self.task, None)
            yield
            return
        making = asyncio.ensure_future(asyncio.to_thread(self._folder.make))
        try:
            await asyncio.shield(making)
            self.workdir = self._folder.path
            self.task = _asked(self.task, str(self.workdir))
            yield
        finally:
            await asyncio.wait([making])  # a thread takes no notice of a cancellation
            await asyncio.to_thread(self._leave)

    def _leave(self) -> None:
        """Keep or remove the folder; what goes wrong with it takes nothing from the run."""
        try:
            if self._keep is not None and self.workdir is not None:
                self._folder.keep(self._keep)
        except OSError as error:
            self._changes = {**(self._changes or {}), "not_kept": str(error)}
        try:
            self._folder.remove()
        except OSError as error:
            self._changes = {**(self._changes or {}), "not_removed": str(error)}

    def placed(self, servers: Sequence[Server]) -> list[Server]:
        """The servers, with the working folder's path for ``{{WORKDIR}}`` in their definitions."""
        if self.workdir is None:
            return list(servers)
        return [server.resolve({WORKDIR: str(self.workdir)}) for server in servers]

    @asynccontextmanager
    async def steps(self, toolbox: Any, session: Any) -> AsyncIterator[None]:
        """Make the prepares, let the agent work, and make the clean-ups, whatever came of it.

        Once the run is cancelled, the clean-ups have `GRACE` seconds together.

        Raises
        ------
        ServerError, RuntimeError
            A prepare failed: a tool of a server, or a function.
        """
        self._toolbox = toolbox
        try:
            for step in self._steps:
                if step.kind == "prepares":
                    await self._prepare(step)
            yield
        finally:
            session.close()  # a function in a thread may not have noticed that its time is over
            await self._undo(session, cancelled=asyncio.current_task().cancelling() > 0)

    async def _undo(self, session: Any, *, cancelled: bool) -> None:
        """Make the clean-ups; a cancellation in the middle of them leaves them the same time as one before."""

        async def undo() -> None:
            if self.workdir is not None and not cancelled:
                self._changes = await asyncio.to_thread(self._folder.changes)
            await self._clean_up(session.tool_calls if self.calls is None else self.calls)

        undoing = asyncio.ensure_future(undo())
        try:
            await asyncio.wait([undoing], timeout=GRACE if cancelled else None)
        except asyncio.CancelledError:
            await asyncio.wait([undoing], timeout=GRACE)
            raise
        finally:
            undoing.cancel()
            await asyncio.wait([undoing])
        if not cancelled:
            undoing.result()

    async def _prepare(self, step: Step) -> None:
        record = await self._make(step, None)
        self._done["prepares"].append(record)
        if record["is_error"]:
            message = f"{step.shown} failed: {record['error']}"
            raise ServerError(message, server=step.server) if step.function is None else RuntimeError(message)

    async def _clean_up(self, calls: Sequence[ToolCall]) -> None:
        """Undo the agent's calls, the last one first, then what is undone once; no failure stops the next.

        A call that failed is not undone: what there is of that name may be somebody else's.
        """
        done, cleanups = self._done["cleanups"], [step for step in self._steps if step.kind == "cleanups"]
        for call in reversed([call for call in calls if not call.denied]):
            for step in cleanups:
                if step.follows(call.server, call.name):
                    done.append(_record(step, None, NOT_UNDONE) if call.is_error else await self._make(step, call))
        for step in cleanups:
            if not step.after:
                done.append(await self._make(step, None))

    async def _make(self, step: Step, call: ToolCall | None) -> dict[str, Any]:
        """One step, whose failure is in its record and nowhere else."""
        parts = None if call is None else {"arguments": call.arguments, "response": call.result}
        try:
            written = step.arguments_for(parts)
        except InputError as error:
            return _record(step, None, str(error))
        arguments = written if self.workdir is None else put_workdir(written, str(self.workdir))
        if (function := step.function) is not None:
            about = {"task": self.task, "workdir": self.workdir, "state": self._state}
            error = await _call_function(function.function, {**arguments, **function.takes(about)})
        elif self._toolbox is None:
            error = "No MCP server was started."
        else:
            made = await self._toolbox.call_tool(step.server, step.name, arguments)
            error = call_text(made) if made.is_error else None
        return _record(step, written, error)  # without the folder's path, which is this run's alone


def _asked(task: Task, workdir: str | None) -> Task:
    question = asked(task.question, workdir)
    return task if question == task.question else replace(task, question=question)


def _record(step: Step, arguments: Any, error: str | None) -> dict[str, Any]:
    error = error and cut(error, _SAID)
    about = {"server": step.server, "tool": step.name, "arguments": arguments}
    return {**about, "is_error": error is not None, "error": error}


async def _call_function(function: Callable[..., Any], arguments: Mapping[str, Any]) -> str | None:
    try:
        async with asyncio.timeout(FUNCTION_TIMEOUT):
            if inspect.iscoroutinefunction(function):
                await function(**arguments)
            elif inspect.isawaitable(answer := await asyncio.to_thread(function, **arguments)):
                await answer
    except (Exception, SystemExit) as error:  # whatever it is, it is that step's and not the run's
        return f"{type(error).__name__}: {error}"
    return None
