"""One event loop, in one daemon thread, runs everything in mcpeval that waits.

The public functions are plain functions over `run_sync`.  They work in a script, in a notebook cell
(whose own loop is running), in worker threads and after a fork; and since the loop lives as long as
the process, connections and limits are shared by all calls.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from ._fork import watch
from .errors import InputError

T = TypeVar("T")

_POLL = 0.1  # seconds; no wait is longer, so that an interrupt is heard on every platform


class _LoopThread:
    """An event loop and the thread that turns it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        watch(self.loop)
        self.ending = self._closing = False
        self.thread = threading.Thread(target=self._turn, name="mcpeval-loop", daemon=True)
        self.thread.start()

    def _turn(self) -> None:
        asyncio.set_event_loop(self.loop)
        while not self._closing:
            # A task that raises one of these has it as its outcome, but asyncio lets it through the loop too:
            # sys.exit() in somebody's agent must not end the loop for all.
            with suppress(SystemExit, KeyboardInterrupt):
                self.loop.run_forever()
        self.loop.close()

    def close(self, patience: float = 5.0) -> None:
        """Cancel what still runs, wait `patience` seconds for it at most, and end the thread."""
        self.ending = True
        if not self.thread.is_alive():
            return
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(_cancel_others(), self.loop).result(patience)
        self._closing = True
        # What outlasted the patience is dropped with the process; asyncio would print a line for each.
        self.loop.call_soon_threadsafe(self.loop.set_exception_handler, lambda *_: None)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(patience)


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


_lock = threading.Lock()
_current: _LoopThread | None = None


def _loop_thread() -> _LoopThread:
    global _current
    with _lock:
        if _current is None or not _current.thread.is_alive():
            _current = _LoopThread()
        return _current


def _after_fork() -> None:
    """Start anew in a child: it has the parent's loop without the thread, and perhaps a lock that nobody gives back."""
    global _current, _lock
    _current, _lock = None, threading.Lock()


@atexit.register
def _close() -> None:
    if _current is not None:
        _current.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class _Call:
    """A coroutine handed to the loop; `start` and `cancel` are called there, in that order.

    What `call_soon_threadsafe` calls runs in a copy of its caller's context variables.
    """

    def __init__(self, coro: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> None:
        self.coro, self.loop = coro, loop
        self.done = threading.Event()
        self.task: asyncio.Task | None = None

    def start(self) -> None:
        self.task = self.loop.create_task(self.coro)
        self.task.add_done_callback(self._finish)

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()
        else:  # interrupted before it was handed over
            self.coro.close()
            self.done.set()

    def _finish(self, task: asyncio.Task) -> None:
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not print it where nobody waits any more
        self.done.set()


def run_sync(coro: Coroutine[Any, Any, T], *, tick: Callable[[], None] | None = None, grace: float = 10.0) -> T:
    """Run a coroutine on mcpeval's loop and wait for it, from any thread but the loop's own.

    An interrupt (Ctrl-C, a notebook's stop button) cancels the coroutine, waits for its clean-up
    and is raised again; a second one stops the waiting.  The next call works.

    Parameters
    ----------
    coro : coroutine
        Runs in a copy of the caller's context variables.
    tick : callable, optional
        Called in the caller's thread about ten times a second, and once at the end.  What it raises
        cancels the coroutine as an interrupt does.
    grace : float
        Seconds to wait for clean-up after an interrupt.

    Returns
    -------
    What the coroutine returns.

    Raises
    ------
    InputError
        The caller is itself running on the loop, and would wait for itself.
    BaseException
        What the coroutine raises, as it is.
    """
    try:
        home = _loop_thread()
        if threading.current_thread() is home.thread:
            raise InputError(
                "mcpeval was called from inside a coroutine that mcpeval itself is running (an agent or an "
                "evaluator), and would wait for itself; there, use: await asyncio.to_thread(function, ...)"
            )
        call = _Call(coro, home.loop)
    except BaseException:
        coro.close()
        raise
    try:
        home.loop.call_soon_threadsafe(call.start)
        finished = False
        while not finished:
            finished = call.done.wait(_POLL)
            if tick is not None:
                tick()
    except BaseException:
        home.loop.call_soon_threadsafe(call.cancel)
        _wait(call.done, grace)
        raise
    try:
        return call.task.result()
    except asyncio.CancelledError:
        if home.ending and threading.current_thread() is not threading.main_thread():
            raise SystemExit from None  # the process ends: a thread that goes on would only print what was cancelled
        raise
    finally:
        del call  # it holds the exception, whose traceback holds this frame


def _wait(done: threading.Event, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not done.wait(_POLL) and time.monotonic() < end:
        pass
