"""From the long scores frame to tables: one line per group (`summarize`), one row per run (`wide`)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from . import stats
from .errors import InputError, did_you_mean
from .frames import RUN_KEYS, column

_METHODS = ("auto", "t", "bca")
_BY = ("agent", "evaluator")
_SUMS = {"cost_usd": "float64", "tokens_in": "Int64", "tokens_out": "Int64", "seconds": "float64"}
_SUMMARY = {
    "score": "float64",
    "low": "float64",
    "high": "float64",
    "n": "int64",
    "tasks": "int64",
    "trials": "int64",
    "unscored": "int64",
    "vacuous": "int64",
    **_SUMS,
    "method": "str",
}
_WIDE = {"score": "float64", "passed": "boolean", "label": "object", "reason": "str", "status": "str"}


def summarize(
    scores: pd.DataFrame,
    by: str | Sequence[str] = _BY,
    *,
    ci: float = 0.95,
    method: str = "auto",
    seed: int = 0,
) -> pd.DataFrame:
    """The mean score of each group, how sure it is, and what it rests on.

    Samples are averaged within their run, runs within their task, and the mean is that of the
    tasks: every task weighs the same. A row without a score is counted in `unscored` and is in no
    mean.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it. Reads `score`, the columns of `by`, and, where they exist,
        `task_id`, `run_id`, `metadata`, `cost_usd`, `tokens_in`, `tokens_out`, `seconds`.
        Without `task_id` (or where it is missing) each run is a task of its own.
    by : str or list of str
        Columns that make the groups. Those of the default that `scores` does not have are left out.
    ci : float
        Confidence of the interval.
    method : {"auto", "t", "bca"}
        "auto": for scores that are all 0 or 1 Wilson's interval (`stats.wilson`), or the clustered
        one (`stats.clustered`) where some task was scored more than once; for others Student's t
        over tasks. "bca": the bootstrap over tasks (`stats.bca`).
    seed : int
        Of the bootstrap.

    Returns
    -------
    DataFrame
        One row per group, in the order in which the groups first appear. The columns of `by`, then
        `score`, `low`, `high` (NaN where fewer than two tasks were scored), `n` (rows with a score),
        `tasks` (tasks with a score), `trials` (most scored runs of one task), `unscored`, `vacuous`
        (rows whose metadata say that there was nothing to check), `cost_usd` (missing where one
        row's price is unknown), `tokens_in`, `tokens_out`, `seconds` (sums, likewise), `method`
        ("wilson", "clustered", "t" or "bca"; missing where there is no interval).

    Raises
    ------
    InputError
        A column is missing, a score is no number from 0 to 1, or `ci` or `method` is impossible.
    """
    keys = _keys(scores, by)
    if not isinstance(ci, (int, float)) or not 0 < ci < 1:
        raise InputError(f"summarize: ci={ci!r} should lie between 0 and 1, as 0.95 does")
    if method not in _METHODS:
        raise InputError(f"summarize: method={method!r}. {did_you_mean(method, _METHODS)}")
    values = _scores_of(scores)
    tasks, runs = _units(scores)
    vacuous = _vacuous(scores)
    sums = {name: _numbers(scores, name) for name in _SUMS}
    rows = []
    for labels, rows_in in _groups(scores, keys):
        scored = rows_in[~np.isnan(values[rows_in])]
        summary = _mean(values[scored], tasks[scored], runs[scored], ci, method, seed)
        summary["unscored"] = len(rows_in) - len(scored)
        summary["vacuous"] = int(vacuous[rows_in].sum())
        rows.append({**summary, **{name: _total(cells[rows_in]) for name, cells in sums.items()}, "by": labels})
    data = {key: pd.Series([row["by"][i] for row in rows], dtype=scores[key].dtype) for i, key in enumerate(keys)}
    columns = {name: column([row[name] for row in rows], dtype) for name, dtype in _SUMMARY.items()}
    return pd.DataFrame({**data, **columns})


def _mean(
    values: np.ndarray, tasks: np.ndarray, runs: np.ndarray, ci: float, method: str, seed: int
) -> dict[str, Any]:
    """Score, interval and counts of one group; `values` (n,) are known, `tasks` and `runs` their codes."""
    n = len(values)
    found: dict[str, Any] = {"score": None, "low": None, "high": None, "n": n, "tasks": 0, "trials": 0, "method": None}
    if not n:
        return found
    run_codes, run_first, run_rows = np.unique(runs, return_index=True, return_inverse=True)
    run_means = np.bincount(run_rows, values) / np.bincount(run_rows)
    task_codes, task_rows, counts = np.unique(tasks[run_first], return_inverse=True, return_counts=True)
    means = np.bincount(task_rows, run_means) / counts
    found.update(score=float(means.mean()), tasks=len(means), trials=int(counts.max()))
    if len(means) < 2:
        return found
    if method == "bca":
        low, high = stats.bca(means, ci=ci, seed=seed)
    elif method == "t" or not np.isin(values, (0.0, 1.0)).all():
        method = "t"
        low, high = stats.t_interval(means, ci=ci)
    elif n == len(means):
        method = "wilson"
        low, high = stats.wilson(float(means.sum()), n, ci=ci)
    else:
        method = "clustered"
        low, high = stats.clustered(means, n, ci=ci)
    if method in ("t", "bca") and stats.constant(means):
        method = "wilson"  # which is what they give then
    return {**found, "low": low, "high": high, "method": method}


def _keys(scores: pd.DataFrame, by: str | Sequence[str]) -> list[str]:
    keys = [by] if isinstance(by, str) else list(by)
    if by is _BY:  # what was not asked for by name may be missing
        keys = [key for key in keys if key in scores.columns]
    for key in keys:
        if key not in scores.columns:
            hint = did_you_mean(key, map(str, scores.columns))
            raise InputError(f"summarize: by has {key!r}, which is no column. {hint}")
        if not all(isinstance(cell, Hashable) for cell in scores[key]):
            raise InputError(f"summarize: by has {key!r}, whose cells are nested; expected names or numbers")
        if key in _SUMMARY:
            raise InputError(f"summarize: by has {key!r}, which is a column of the summary itself; rename it first")
    return keys


def _groups(scores: pd.DataFrame, keys: list[str]) -> Iterable[tuple[tuple[Hashable, ...], np.ndarray]]:
    """Labels and row positions of each group, in the order of first appearance; missing labels too."""
    if not keys:
        return [((), np.arange(len(scores)))]
    groups: dict[tuple[Hashable, ...], list[int]] = {}
    for position, labels in enumerate(zip(*(_cells(scores, key) for key in keys))):
        groups.setdefault(labels, []).append(position)
    return [(labels, np.array(positions)) for labels, positions in groups.items()]


def _scores_of(scores: pd.DataFrame) -> np.ndarray:
    if "score" not in scores.columns:
        raise InputError(f"summarize: scores has no column 'score'. {did_you_mean('score', map(str, scores.columns))}")
    values = _numbers(scores, "score")
    outside = np.flatnonzero((values < 0) | (values > 1))
    if len(outside):
        label = scores.index[outside[0]]
        raise InputError(f"summarize: score={values[outside[0]]:g} in row {label!r}; expected numbers from 0 to 1")
    return values


def _numbers(scores: pd.DataFrame, name: str) -> np.ndarray:
    """A column as floats, shape (rows,): NaN where a cell is missing, or all of the column is."""
    if name not in scores.columns:
        return np.full(len(scores), np.nan)
    try:
        return pd.to_numeric(scores[name]).to_numpy(dtype="float64", na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InputError(f"summarize: the column {name!r} should hold numbers: {error}") from None


def _total(cells: np.ndarray) -> float | None:
    """The sum; None where one part of it is unknown."""
    return None if np.isnan(cells).any() else float(cells.sum())


def _units(scores: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Codes of each row's task and run: a row without a task is its run's, without a run its own."""
    rows = list(range(len(scores)))
    runs = [("row", row) if run is None else ("run", run) for row, run in zip(rows, _cells(scores, "run_id"))]
    tasks = [run if task is None else ("task", task) for run, task in zip(runs, _cells(scores, "task_id"))]
    return _codes(tasks), _codes(runs)


def _cells(scores: pd.DataFrame, name: str) -> list[Any]:
    """The cells of a column as Python values: None where one is missing, or all of the column is."""
    if name not in scores.columns:
        return [None] * len(scores)
    missing = scores[name].isna().to_numpy()
    return [None if unknown else cell for cell, unknown in zip(scores[name].tolist(), missing)]


def _codes(labels: list[Hashable]) -> np.ndarray:
    codes: dict[Hashable, int] = {}
    return np.array([codes.setdefault(label, len(codes)) for label in labels], dtype=np.int64)


def _vacuous(scores: pd.DataFrame) -> np.ndarray:
    cells = scores["metadata"] if "metadata" in scores.columns else [None] * len(scores)
    return np.array([isinstance(cell, Mapping) and cell.get("vacuous") is True for cell in cells], dtype=bool)


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
    for name in ("run_id", "evaluator"):
        if name not in scores.columns:
            raise InputError(f"wide: scores has no column {name!r}. {did_you_mean(name, map(str, scores.columns))}")
    keys = [key for key in RUN_KEYS if key in scores.columns]
    runs = _codes(_cells(scores, "run_id"))
    first = np.flatnonzero(~pd.Series(runs).duplicated())
    fields = [name for name in _WIDE if name in scores.columns]
    cells = {name: _cells(scores, name) for name in fields}
    data = {}
    for (evaluator,), positions in _groups(scores, ["evaluator"]):
        answers: dict[int, list[int]] = {}
        for position in positions:
            answers.setdefault(runs[position], []).append(position)
        for name in fields:
            merged = {run: _MERGE[name]([cells[name][i] for i in rows]) for run, rows in answers.items()}
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
