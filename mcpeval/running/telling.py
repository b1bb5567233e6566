"""Who is told of what happens in the runs: `on_event`, and the steps that ``progress="verbose"`` prints."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ..agents.functions import is_async
from ..errors import InputError, did_you_mean
from ..events import Event, Listeners
from ..types import Run
from .inputs import Job
from .steps import Steps


def listeners_of(on_event: Any, progress: Any) -> Listeners:
    """Those that `run` was given.

    Raises
    ------
    InputError
        `on_event` is no plain function of one argument, or `progress` is another word.
    """
    if isinstance(progress, str) and progress != "verbose":
        near = did_you_mean(progress, ["verbose"])
        raise InputError(f"run: progress={progress!r} should be True, False, None or 'verbose'. {near}")
    functions: list[Callable[[Event], Any]] = [Steps()] if progress == "verbose" else []
    if on_event is not None:
        if not callable(on_event) or is_async(on_event):
            raise InputError(f"run: on_event={on_event!r:.200} should be a plain function of one Event")
        try:
            inspect.signature(on_event).bind(None)
        except TypeError as error:
            raise InputError(f"run: on_event={on_event!r:.200} cannot be called with one Event: {error}") from None
        except ValueError:
            pass  # a builtin without a signature: calling it will tell
        functions.append(on_event)
    return Listeners(functions)


def telling(job: Job, listeners: Listeners) -> Callable[..., None] | None:
    """What is called with each event of a run; None where nobody listens."""
    if not listeners:
        return None
    about = {"run_id": job.run_id, "task_id": job.task.id, "agent": job.agent.name, "trial": job.trial}
    return lambda **event: listeners.put(Event(**about, time=datetime.now(UTC), **event))


def tell_kept(job: Job, found: Run, listeners: Listeners) -> None:
    """Tell of a run that the cache has: it starts, and ends at once."""
    tell = telling(job, listeners)
    if tell is not None:
        free = replace(found, usage=found.usage.from_cache())
        tell(kind="run_started", seconds=0.0, span=0)
        ended = {"usage": free.usage, "error": free.error, "error_class": free.error_class}
        tell(kind="run_ended", seconds=found.seconds, span=0, run=free, **ended)
