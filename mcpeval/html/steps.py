"""A run as its steps: which tool call belongs to which message, and what each took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ..errors import InputError
from ..exporting.cells import decode
from ..frames import plain
from ..messages import arguments_of
from ..tracing import spans_of
from ..types import Run
from .numbers import known


@dataclass
class Call:
    """A tool call: as the model asked, as it was made, and what the model was told of it.

    Attributes
    ----------
    place : int or None
        In ``tool_calls`` of the run; None where only the messages tell of it.
    made : dict
        ``server``, ``name``, ``arguments``, ``result``, ``is_error``, ``error``, ``seconds``, ``denied``.
    told : list of any
        Contents of the tool messages that answer it.
    """

    place: int | None
    made: Mapping[str, Any]
    told: list[Any] = field(default_factory=list)


@dataclass
class Step:
    """A message, and the tool calls that follow from it; `place` in ``messages`` is None for calls alone."""

    place: int | None
    message: Any = None
    calls: list[Call] = field(default_factory=list)
    span: Mapping[str, Any] | None = None


def row_of(run: Any, caller: str) -> dict[str, Any]:
    """A run as a row of plain values, in whatever form it was given.

    Raises
    ------
    InputError
        It is none.
    """
    if isinstance(run, Run):
        row = run.to_dict()
        return {**row, **{key: value for key, value in row.pop("usage").items() if key != "seconds"}}
    if isinstance(run, pd.DataFrame):
        if len(run) != 1:
            raise InputError(f"{caller}: run is a frame of {len(run)} rows; give one of them: runs.iloc[0]")
        run = run.iloc[0]
    if isinstance(run, pd.Series):  # one without a run_id is called by its label, as `score` does
        run = {"run_id": str(run.name), **run.to_dict()}
    if not isinstance(run, Mapping):
        raise InputError(f"{caller}: run is a {type(run).__name__}; expected a row of a runs frame, or a Run")
    return whole({str(key): plain(value) for key, value in run.items()})


#: Columns whose cells hold more than a text or a number.
_NESTED = ("messages", "tool_calls", "spans", "metadata", "expected_tool_calls", "key_points", "label")


def whole(row: dict[str, Any]) -> dict[str, Any]:
    """`row` with what is nested in it as it was, though pandas and not `read_csv` read it from a CSV file."""
    told = {name: row[name] for name in _NESTED if isinstance(row.get(name), str) and row[name][:1] in ("[", "{")}
    return {**row, **{name: decode(cell) for name, cell in told.items()}} if told else row


def list_of(cell: Any) -> list[Any]:
    """A cell that should be a list; anything else that is there is one item."""
    return list(cell) if isinstance(cell, (list, tuple)) else [] if cell is None else [cell]


def mapping_of(cell: Any) -> Mapping[str, Any]:
    """A cell that should be a dict; empty where it is none."""
    return cell if isinstance(cell, Mapping) else {}


def spans_in(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The spans of a run; none where the cell holds something else."""
    try:
        return spans_of(row.get("spans"), row.get("run_id"))
    except InputError:
        return []


def steps_of(row: Mapping[str, Any]) -> list[Step]:
    """The steps of a run, in order; tool calls that belong to no message come last."""
    messages, calls = list_of(row.get("messages")), _calls(row.get("tool_calls"))
    spans = spans_in(row)
    answered = _answered(spans, len(messages))
    following = _following(spans, answered, len(calls))
    placed = {place for places in following.values() for place in places}
    free = [place for place in range(len(calls)) if place not in placed]
    # One asked for by the name of a tool that passes it on (LiveMCPBench's "execute-tool") is known by its turn.
    one_each = sum(len(_asked(message)) for message in messages) == len(free)
    steps, open_calls = [], {}
    for place, message in enumerate(messages):
        if isinstance(message, Mapping) and message.get("role") in ("tool", "function"):
            call = open_calls.get(str(message.get("tool_call_id") or message.get("name")))
            if call is not None:
                call.told.append(message.get("content"))
                continue
        step = Step(place, message, span=answered.get(place))
        own = following.get(place, [])
        for name, given in _asked(message):
            pool = own or free
            found = _taken(given["name"], pool, calls, sure=bool(own) or one_each)
            call = Call(found, given if found is None else calls[found])
            step.calls.append(call)
            open_calls[str(name)] = open_calls[given["name"]] = call
        step.calls += [Call(number, calls[number]) for number in own]
        steps.append(step)
    if free:
        steps.append(Step(None, calls=[Call(number, calls[number]) for number in free]))
    return steps


def _calls(cell: Any) -> list[Mapping[str, Any]]:
    found = [call.to_dict() if hasattr(call, "to_dict") else call for call in list_of(cell)]
    return [call if isinstance(call, Mapping) else {"name": "?", "arguments": call} for call in found]


def _answered(spans: Sequence[Mapping[str, Any]], messages: int) -> dict[int, Mapping[str, Any]]:
    """The call of a model that each answer came from, by the place of the message."""
    found = {}
    for span in spans:
        match span:
            case {"kind": "llm", "messages": [int(), int(stop)]} if 0 < stop <= messages and not span.get(
                "error_class"
            ):
                found[stop - 1] = span
    return found


def _following(
    spans: Sequence[Mapping[str, Any]], answered: Mapping[int, Mapping[str, Any]], calls: int
) -> dict[int, list[int]]:
    """The tool calls that each message led to: those made after it, by the same part, before its next."""
    found: dict[int, list[int]] = {}
    for span in spans:
        number = span.get("tool_call")
        if span["kind"] != "tool" or not isinstance(number, int) or not number < calls:
            continue
        before = [
            (_start(said), place)
            for place, said in answered.items()
            if said.get("parent") == span.get("parent") and _start(said) <= _start(span)
        ]
        if before:
            found.setdefault(max(before)[1], []).append(number)
    return found


def _start(span: Mapping[str, Any]) -> float:
    return known(span.get("start")) or 0.0


def _asked(message: Any) -> list[tuple[Any, dict[str, Any]]]:
    """The calls that a message asks for: an id, and the call as it would be made."""
    if not isinstance(message, Mapping):
        return []
    asked = [one for one in list_of(message.get("tool_calls")) if isinstance(one, Mapping)]
    asked += [{"function": message["function_call"]}] if isinstance(message.get("function_call"), Mapping) else []
    found = []
    for one in asked:
        function = mapping_of(one.get("function", one))
        name = str(function.get("name") or "?")
        found.append((one.get("id") or name, {"name": name, "arguments": arguments_of(function.get("arguments"))}))
    return found


def _taken(name: str, pool: list[int], calls: Sequence[Mapping[str, Any]], *, sure: bool) -> int | None:
    """Take out of `pool` the call that was asked for under `name`, which may be an alias that ends in its own."""
    found = next((number for number in pool if _is_called(name, calls[number])), None)
    if found is None and sure and pool:
        found = pool[0]
    if found is not None:
        pool.remove(found)
    return found


def _is_called(name: str, call: Mapping[str, Any]) -> bool:
    own = str(call.get("name"))
    return name == own or bool(own) and name.endswith(own)
