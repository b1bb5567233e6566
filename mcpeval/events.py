"""What happens in runs, told while it happens: `Event`, and the `Listeners` that are told."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .types import Run, ToolCall, Usage

KINDS = ("run_started", "model_answered", "tool_called", "tool_answered", "run_ended")


@dataclass(frozen=True)
class Event:
    """One thing that happened in a run.

    Attributes
    ----------
    kind : {"run_started", "model_answered", "tool_called", "tool_answered", "run_ended"}
        A run that is in the cache as a whole starts and ends, and nothing between.
    run_id, task_id, agent : str
    trial : int
        Of which run: as in its row.
    time : datetime
        When, in UTC.
    seconds : float
        Since the run began.
    part : str or None
        The agent of a workflow whose doing it is; None for the run's own.
    span : int or None
        Number of the span (`mcpeval.spans`): a tool's answer has that of its call.
    message : dict or None
        Of ``model_answered``: the model's chat message; None where it failed.
    tool_call : ToolCall or None
        Of ``tool_called``, as the model asked, and of ``tool_answered``, with what came back.
    usage : Usage or None
        Of ``model_answered``: of this answer; of ``run_ended``: of the run.
    error, error_class : str or None
        What failed, where something did.
    run : Run or None
        Of ``run_ended``: the run as it goes into its row.
    """

    kind: str
    run_id: str
    task_id: str
    agent: str
    trial: int
    time: datetime
    seconds: float
    part: str | None = None
    span: int | None = None
    message: Mapping[str, Any] | None = None
    tool_call: ToolCall | None = None
    usage: Usage | None = None
    error: str | None = None
    error_class: str | None = None
    run: Run | None = None


class Listeners:
    """Functions that are told of events, by whoever calls `deliver`, in the thread that calls it.

    An `Event` is put in line wherever it happens.  A function that raises an exception is told no
    more, with a warning: what it would be told of is paid for, and goes on without it.

    Parameters
    ----------
    functions : sequence of callables of one `Event`
    """

    def __init__(self, functions: Sequence[Callable[[Event], Any]]) -> None:
        self._functions = list(functions)
        self._line: deque[Event] = deque()

    def __bool__(self) -> bool:
        return bool(self._functions)

    def put(self, event: Event) -> None:
        """Stand `event` in line; from any thread."""
        self._line.append(event)

    def deliver(self) -> None:
        """Tell of everything that stands in line, in its order."""
        while self._line:
            event = self._line.popleft()
            for function in list(self._functions):
                try:
                    function(event)
                except Exception as error:
                    self._functions.remove(function)
                    name = getattr(function, "__name__", type(function).__name__)
                    where = f"at the event {event.kind!r} of task {event.task_id!r}"
                    warnings.warn(
                        f"on_event: {name} raised {type(error).__name__}: {error}, {where}; it is not called any more, "
                        "and the runs go on",
                        stacklevel=2,
                    )
