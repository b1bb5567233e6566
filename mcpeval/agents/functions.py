"""Any callable of ``(task, session)`` as an agent, and what stands for one."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..errors import InputError
from ..local import is_local
from ..types import Task
from .base import Agent, server_names
from .composed import Workflow
from .external import External
from .memory import memory_of
from .session import Session


@dataclass(frozen=True)
class FunctionAgent:
    """A callable of ``(task, session)`` as an agent.

    Its attributes ``fingerprint``, ``model``, ``servers``, ``uses_tools`` and ``memory`` are those of
    the callable, where it has them.  Only a callable with a fingerprint (a text) has its whole runs
    cached: what else it depends on, nobody can see.
    """

    function: Callable[[Task, Session], Any]
    name: str
    reads = None

    @property
    def fingerprint(self) -> str | None:
        return _text(self.function, "fingerprint")

    @property
    def model(self) -> str | None:
        return _text(self.function, "model")

    @property
    def servers(self) -> tuple[str, ...] | None:
        return server_names(getattr(self.function, "servers", None))

    @property
    def memory(self) -> bool | str:
        """As of an `Agent`; the notes are ``session.memory``."""
        return memory_of(getattr(self.function, "memory", False), self.name)

    @property
    def uses_tools(self) -> bool:
        return bool(getattr(self.function, "uses_tools", True))

    async def __call__(self, task: Task, session: Session) -> Any:
        session.keep_notes(self.memory, self.name, offer=False)
        try:
            if is_async(self.function):
                return await self.function(task, session)
            answer = await _in_thread(self.function, task, session)
            return await answer if inspect.isawaitable(answer) else answer
        except SystemExit as error:  # would end the thread that all runs live in
            raise RuntimeError("the agent called sys.exit()") from error


def as_agent(given: Any, name: str | None = None) -> Agent | FunctionAgent | Workflow | External:
    """The agent that `given` is, or stands for.

    Parameters
    ----------
    given : Agent, workflow, External, str or callable
        A model string stands for ``Agent(model)``, and for ``Agent(model, "react")`` where the
        model is embedded, for those do not call tools natively.
    name : str, optional
        Replaces the agent's own name.

    Raises
    ------
    InputError
        `given` is none of these, or cannot be called with a task and a session.
    """
    if isinstance(given, str):
        given = Agent(given, "react" if is_local(given) else "tools")
    if isinstance(given, (Agent, Workflow, External)):
        return given if name in (None, given.name) else replace(given, name=name)
    if isinstance(given, FunctionAgent):
        return given if name is None else FunctionAgent(given.function, name)
    if inspect.isclass(given) or not callable(given):
        raise InputError(
            f"agents has {given!r:.200}; expected an Agent, a model's name, or a callable of (task, session)"
        )
    try:
        inspect.signature(given).bind(None, None)
    except TypeError as error:
        raise InputError(f"agents has {given!r:.200}, which cannot be called with (task, session): {error}") from None
    except ValueError:
        pass  # a builtin without a signature: calling it will tell
    return FunctionAgent(given, name or _name_of(given))


def _text(function: Any, name: str) -> str | None:
    value = getattr(function, name, None)
    return value if isinstance(value, str) else None


def _name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = _text(function, "name") or _text(function, "__name__") or type(function).__name__
    return "lambda" if name == "<lambda>" else name


def is_async(function: Any) -> bool:
    """Whether calling `function` gives something to await, as far as can be seen."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


async def _in_thread(function: Callable, *args: Any) -> Any:
    """``function(*args)`` in a daemon thread of its own, so that it holds up neither loop nor exit.

    Not `asyncio.to_thread`: its pool has six threads on two cores, and the interpreter waits for
    them when it ends.
    """
    loop = asyncio.get_running_loop()
    done, context = loop.create_future(), contextvars.copy_context()

    def settle(answer: Any, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(answer)
        else:
            # Not as it is: a StopIteration or a cancellation of the thread's own would be taken for ours.
            usual = isinstance(error, (Exception, SystemExit)) and not isinstance(error, StopIteration)
            done.set_exception(error if usual else RuntimeError(f"the agent raised {error!r}"))

    def work() -> None:
        answer = failure = None
        try:
            answer = context.run(function, *args)
        except BaseException as error:  # carried to whoever waits, whatever it is
            failure = error
        with contextlib.suppress(RuntimeError):  # nobody waits any more: the loop is closed
            loop.call_soon_threadsafe(settle, answer, failure)

    threading.Thread(target=work, name="mcpeval-agent", daemon=True).start()
    return await done
