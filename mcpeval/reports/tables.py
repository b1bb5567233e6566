"""From the long scores frame to a wide one: one row per run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..frames import RUN_KEYS, column
from .columns import cells, check_column, check_frame, codes, groups_of

_WIDE = {"score": "float64", "passed": "boolean", "label": "object", "reason": "str", "status": "str"}


def wide(scores: pd.DataFrame) -> pd.DataFrame:
    """One row per run, a column group per evaluator.

    Where an evaluator speaks of a run more than once (a judge's samples), the group holds the mean
    `score` of those that gave one; `passed` of the majority, missing on a tie; the `label` they
    share, else the list of labels; their different reasons, one a line; and ``ok`` as `status`
    where one of them is ok.

    Parameters
    ----------
    scores : DataFrame
        Reads `run_id` and `evaluator`; of `task_id`, `category`, `agent`, `model`, `trial`, `score`,
        `passed`, `label`, `reason`, `status` those that exist.

    Returns
    -------
    DataFrame
        Rows in the order in which the runs first appear; the index holds the run's keys. Columns
        have two levels, ``(evaluator, "score" | "passed" | "label" | "reason" | "status")``, the
        evaluators in the order in which they first appear. ``wide(scores).xs("score", axis=1,
        level=1)`` is the table of runs by evaluators.

    Raises
    ------
    InputError
        `run_id` or `evaluator` is not a column.
    """
    check_frame(scores, "wide")
    for name in ("run_id", "evaluator"):
        check_column(scores, name, "wide")
    keys = [key for key in RUN_KEYS if key in scores.columns]
    runs = codes(cells(scores, "run_id"))
    first = np.flatnonzero(~pd.Series(runs).duplicated())
    fields = [name for name in _WIDE if name in scores.columns]
    table = {name: cells(scores, name) for name in fields}
    data = {}
    for (evaluator,), positions in groups_of(scores, ["evaluator"]):
        answers: dict[int, list[int]] = {}
        for position in positions:
            answers.setdefault(runs[position], []).append(position)
        for name in fields:
            merged = {run: _MERGE[name]([table[name][i] for i in rows]) for run, rows in answers.items()}
            answers_of = column([merged.get(run) for run in range(len(first))], _WIDE[name])
            data[evaluator, name] = pd.Series(answers_of, dtype=_WIDE[name])  # or pandas makes texts of labels
    frame = pd.DataFrame(data, index=pd.RangeIndex(len(first)))
    frame.columns = pd.MultiIndex.from_tuples(list(data), names=["evaluator", None]) if data else frame.columns
    index = scores[keys].iloc[first]
    frame.index = pd.Index(index["run_id"], name="run_id") if keys == ["run_id"] else pd.MultiIndex.from_frame(index)
    return frame


def _mean_of(values: list[Any]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _majority(values: list[Any]) -> bool | None:
    balance = sum((1 if value else -1) for value in values if value is not None)
    return None if balance == 0 else balance > 0


def _shared(values: list[Any]) -> Any:
    same = all(type(value) is type(values[0]) and value == values[0] for value in values)
    return values[0] if same else values


def _lines(values: list[Any]) -> str | None:
    return "\n".join(dict.fromkeys(value for value in values if value)) or values[0]


def _status(values: list[Any]) -> str | None:
    return "ok" if "ok" in values else values[0]


_MERGE = {"score": _mean_of, "passed": _majority, "label": _shared, "reason": _lines, "status": _status}
