"""Spans: what was done in a run, by whom, from when to when, and what it cost.

`Trace` takes them down while a run goes on (`mcpeval.agents.session`), `spans` makes a frame of
those that the rows of a runs frame hold.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from .errors import InputError
from .frames import RUN_COLUMNS, RUN_KEYS, frame_of, rows_of
from .types import ToolCall, Usage

KINDS = ("agent", "workflow", "llm", "tool")
UNFINISHED = "It was not over when the run ended, or when it was cancelled."
#: Characters of an error; the whole of it is in the run, or in its tool call.
ERROR = 1000

#: Columns of a frame of spans, behind the keys of the run.
SPAN_COLUMNS: dict[str, str] = {
    "span": "int64",
    "parent": "Int64",
    "kind": "str",
    "name": "str",
    "part": "str",
    "start": "float64",
    "seconds": "float64",
    "tokens_in": "Int64",
    "tokens_out": "Int64",
    "cost_usd": "float64",
    "saved_usd": "float64",
    "cached": "boolean",
    "model_returned": "str",
    "server": "str",
    "n_failed": "int64",
    "failures": "object",
    "error": "str",
    "error_class": "str",
    "messages": "object",
    "tool_call": "Int64",
}


@dataclass(eq=False)
class Span:
    """Something that was done in a run; `spans` says what the fields mean."""

    id: int
    parent: int | None
    kind: str
    name: str
    start: float
    seconds: float | None = None  # none while it goes on
    usage: Usage | None = None
    model_returned: str | None = None
    server: str | None = None
    failures: Sequence[str] = ()
    error: str | None = None
    error_class: str | None = None
    messages: list[int] | None = None
    tool_call: int | None = None
    part: str | None = None  # of a workflow, whose doing it is
    outcome: Mapping[str, Any] = field(default_factory=dict, repr=False)  # what the event of its end tells
    ends_itself: bool = field(default=True, repr=False)  # else it ends with the last thing done in it

    def uses(self, usage: Usage | None) -> None:
        """Add what was used in it, and in no other span."""
        if usage is not None and usage != Usage():
            self.usage = usage if self.usage is None else self.usage + usage

    def answered(self, completion: Any) -> None:
        """Take down what a model's answer says of itself."""
        self.uses(completion.usage)
        self.model_returned, self.failures = completion.model, completion.failures
        self.outcome = {"message": completion.message}

    def called(self, call: ToolCall, error: str | None) -> None:
        """Take down what came of a tool call, with the text that says what failed, where it did."""
        self.name, self.server, self.error = call.name, call.server, error
        self.outcome = {"tool_call": call}
        if not call.is_error:
            return
        if call.denied:
            self.error_class = "denied"
        elif call.result is not None:
            self.error_class = "tool"
        elif not isinstance(call.arguments, Mapping):
            self.error_class = "bad_json"
        else:
            self.error_class = "unknown_tool" if call.server is None else "server"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, without what is None."""
        used = self.usage
        data = {
            "id": self.id,
            "parent": self.parent,
            "kind": self.kind,
            "name": self.name,
            "start": round(self.start, 6),
            "seconds": None if self.seconds is None else round(self.seconds, 6),
            "tokens_in": used and used.tokens_in,
            "tokens_out": used and used.tokens_out,
            "cost_usd": used and used.cost_usd,
            "saved_usd": used.saved_usd if used and used.cached_calls else None,
            "cached": used and used.cached,
            "model_returned": self.model_returned,
            "server": self.server,
            "failures": list(self.failures) or None,
            "error": self.error and self.error[:ERROR],
            "error_class": self.error_class,
            "messages": self.messages,
            "tool_call": self.tool_call,
        }
        return {key: value for key, value in data.items() if value is not None}


class Trace:
    """The spans of one run, taken down while it goes on.

    Parameters
    ----------
    name, kind : str
        Of the agent, or workflow, whose run it is: the first span, and the last to end.
    tell : callable, optional
        Called with each event: ``tell(kind=..., seconds=..., span=..., **more)``, as in `Event`.
    """

    def __init__(self, name: str = "agent", kind: str = "agent", tell: Callable[..., None] | None = None) -> None:
        self._began, self._tell = time.monotonic(), tell
        self._spans: list[Span] = []
        self._numbers = itertools.count()
        self.root = self.open(kind, name, None)

    def open(self, kind: str, name: str, parent: Span | None, **more: Any) -> Span:
        """Begin a span; from any thread."""
        under = None if parent is None else parent.id
        span = Span(next(self._numbers), under, kind, name, self._now(), **more)
        self._spans.append(span)
        return span

    def close(self, span: Span, error: BaseException | None = None) -> None:
        """End a span, with the exception that ended it."""
        span.seconds = self._now() - span.start
        if isinstance(error, (asyncio.CancelledError, GeneratorExit)):
            span.error, span.error_class = UNFINISHED, "unfinished"
        elif error is not None:
            span.error = str(error) or type(error).__name__
            span.error_class = getattr(error, "error_class", "harness")

    @contextmanager
    def opened(self, kind: str, name: str, parent: Span, **more: Any) -> Iterator[Span]:
        """A span of a model's or a tool's work that ends with the block, and is then told of."""
        span = self.open(kind, name, parent, **more)
        failure = None
        try:
            yield span
        except BaseException as error:
            failure = error
            raise
        finally:
            self.close(span, failure)
            self.tell("model_answered" if kind == "llm" else "tool_answered", span, **span.outcome)

    def tell(self, kind: str, span: Span, **more: Any) -> None:
        """Tell of an event, where anybody listens."""
        if self._tell is not None:
            known = {"usage": span.usage, "error": span.error, "error_class": span.error_class}
            event = {**known, **copy.deepcopy(more)}  # the runs go on with theirs
            self._tell(kind=kind, seconds=self._now(), part=span.part, span=span.id, **event)

    def ended(self, **root: Any) -> list[dict[str, Any]]:
        """The spans as they are now, at the end of the run; what still goes on is cut off.

        Parameters
        ----------
        **root
            Fields of the first span: ``error``, ``error_class``, ``usage``.
        """
        now, found = self._now(), [copy.copy(span) for span in list(self._spans)]
        last: dict[int | None, Span] = {}  # of each span, what ended last in it
        for span in reversed(found):  # what was done in a span began after it
            if span.id == self.root.id:
                span.seconds = now - span.start
            elif span.seconds is None:
                inside = None if span.ends_itself else last.get(span.id, span)
                cut = inside is None or inside.error_class == "unfinished"
                end = now if cut else inside.start + (inside.seconds or 0.0)
                span.seconds = end - span.start
                span.error, span.error_class = (UNFINISHED, "unfinished") if cut else (None, None)
            other = last.get(span.parent)
            if other is None or span.start + span.seconds > other.start + other.seconds:
                last[span.parent] = span
        for name, value in root.items():
            setattr(found[0], name, value)
        return [span.to_dict() for span in found]

    def _now(self) -> float:
        return time.monotonic() - self._began


def from_cache(given: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The spans of a run when it is answered by the cache: nothing is paid (as `Usage.from_cache`)."""
    return [_from_cache(span) if "cached" in span else dict(span) for span in given]


def _from_cache(span: Mapping[str, Any]) -> dict[str, Any]:
    paid = span.get("cost_usd")
    saved = {} if paid is None else {"saved_usd": span.get("saved_usd", 0.0) + paid}
    return {**span, "cost_usd": 0.0, "cached": True, **saved}


def spans(runs: pd.DataFrame) -> pd.DataFrame:
    """The spans of runs, one row for each: what was done, by whom, from when to when, at what cost.

    Parameters
    ----------
    runs : DataFrame
        Reads the column ``spans``; a row without any (a run made elsewhere, or kept by an older
        version) has none.

    Returns
    -------
    DataFrame
        In the order of the runs, and of the beginnings within a run; the run's ``run_id``,
        ``task_id``, ``category``, ``agent``, ``model`` and ``trial``, as far as `runs` has them (its
        index label where there is no ``run_id``), and:

        ==================  ==================================================================
        ``span``            number within the run; 0 is the run itself
        ``parent``          the span that it was done in; missing for 0
        ``kind``            ``agent``, ``workflow``, ``llm`` (one call of a model, its repeated
                            attempts included) or ``tool``
        ``name``            the agent's, the workflow's, the tool's on its server, or that of the
                            model as it was asked for
        ``part``            the agent or workflow whose doing it is
        ``start``           seconds since the run began, ``metadata["started"]``
        ``seconds``         it took; of a run from the cache, when it was made
        ``tokens_in``,      used by this span alone, not by those in it: the sum over a run is the
        ``tokens_out``,     run's.  Of an agent or workflow, what it used elsewhere and told in a
        ``cost_usd``        `Run`; missing for tools, and where it is unknown
        ``saved_usd``       what answers from the cache cost when they were paid
        ``cached``          whether the cache answered
        ``model_returned``  the model, as the provider named it
        ``server``          the MCP server
        ``n_failed``,       attempts that failed before one was answered, and why, each a text
        ``failures``
        ``error``,          what ended it, and its kind: those of runs; ``tool`` where the tool
        ``error_class``     says so, ``unknown_tool``, ``denied``; ``unfinished`` where it was cut off
        ``messages``        ``[first, stop]`` of a model's call: ``messages[first:stop]`` of the run
                            are what it was asked and, unless it failed, its answer; those with
                            another ``agent`` than the first of them were not part of it
        ``tool_call``       place of a tool's call in ``tool_calls`` of the run
        ==================  ==================================================================

    Raises
    ------
    InputError
        `runs` is no frame, has no column ``spans``, or a cell is no list of spans.

    Examples
    --------
    >>> runs = pd.DataFrame({"run_id": ["r"], "spans": [[{"id": 0, "kind": "agent", "name": "a", "start": 0.0,
    ...                                                   "seconds": 1.5}]]})
    >>> spans(runs)[["run_id", "span", "kind", "part", "seconds"]].iloc[0].tolist()
    ['r', 0, 'agent', 'a', 1.5]
    """
    if not isinstance(runs, pd.DataFrame):
        raise InputError(f"spans: runs is a {type(runs).__name__}; expected a frame with a column 'spans'")
    if "spans" not in runs.columns:
        raise InputError("spans: runs has no column 'spans'; runs of mcpeval.run have one")
    keys = {key: RUN_COLUMNS[key] for key in RUN_KEYS if key in runs.columns or key == "run_id"}
    wanted = runs[[name for name in runs.columns if name in keys or name == "spans"]]
    rows = []
    for label, row in zip(runs.index.tolist(), rows_of(wanted)):
        run = {"run_id": str(label), **{key: row[key] for key in keys if key in row}}
        rows += [{**run, **span} for span in spans_of(row["spans"], run["run_id"])]
    return frame_of(rows, {**keys, **SPAN_COLUMNS})


def _is_span(given: Any) -> bool:
    if not (isinstance(given, Mapping) and {"kind", "name"} <= set(given) and isinstance(given.get("id"), int)):
        return False
    return isinstance(given.get("parent"), (int, type(None))) and isinstance(given.get("failures"), (list, type(None)))


def spans_of(cell: Any, run_id: Any) -> list[dict[str, Any]]:
    """The spans in one cell of a runs frame, with the columns of a frame of spans."""
    listed = isinstance(cell, (list, tuple)) or cell is None
    if not listed or not all(_is_span(span) for span in cell or ()):
        raise InputError(f"spans: run {run_id!r}: {cell!r:.200} is no list of spans")
    parts: dict[Any, str] = {}
    found = []
    for span in cell or ():
        own = span["kind"] in ("agent", "workflow")
        parts[span["id"]] = span["name"] if own else parts.get(span.get("parent"))
        failures = span.get("failures") or []
        more = {"span": span["id"], "part": parts[span["id"]], "failures": failures, "n_failed": len(failures)}
        found.append({**span, **more})
    return found
