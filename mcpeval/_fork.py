"""A fork while an event loop runs in another thread.

The child gets a copy of everything but that thread: of what the thread was in the middle of (an import
that nobody will finish), and of the loop, whose epoll it shares with the parent.  So the loop stands
still while the process forks, and the child's copy of it is made harmless.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import selectors
import threading
from weakref import WeakSet

_PATIENCE = 2.0  # seconds; a loop that is blocked for longer is forked as it is

_loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
_go_on: threading.Event | None = None


def watch(loop: asyncio.AbstractEventLoop) -> None:
    """Let forks of this process leave `loop` usable in the parent and silent in the child."""
    _loops.add(loop)


def _before() -> None:
    global _go_on
    _go_on = go_on = threading.Event()
    here = asyncio._get_running_loop()
    for loop in list(_loops):
        if loop.is_running() and loop is not here:
            stands = threading.Event()
            loop.call_soon_threadsafe(lambda stands=stands: (stands.set(), go_on.wait(_PATIENCE)))
            stands.wait(_PATIENCE)


def _after_in_parent() -> None:
    if _go_on is not None:
        _go_on.set()


def _after_in_child() -> None:
    for loop in list(_loops):
        if isinstance(getattr(loop, "_selector", None), selectors.BaseSelector):
            # A connection closed in the child would be taken out of the epoll that the parent waits on.
            loop._selector = selectors.DefaultSelector()
        for task in asyncio.all_tasks(loop):
            # Kept for ever: a task that is destroyed is reported, and its clean-up would run here too.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(task))
    _loops.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
