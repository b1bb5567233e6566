"""From the long scores frame to one line per group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from .. import stats
from ..errors import InputError, is_one_of
from ..frames import column
from .columns import (
    bounded,
    cells,
    check_choice,
    check_ci,
    check_column,
    check_frame,
    check_repeats,
    check_seed,
    group_columns,
    group_keys,
    groups_of,
    numbers,
    task_means,
    units,
    values_of,
)
from .sampled import SPREADS, are_sampled, spreads

_METHODS = ("auto", "t", "bca")
_ERRORS = ("exclude", "fail", "both")
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


def summarize(
    scores: pd.DataFrame,
    by: str | Sequence[str] = _BY,
    *,
    ci: float = 0.95,
    method: str = "auto",
    over: str = "task_id",
    value: str = "score",
    errors: str = "exclude",
    seed: int = 0,
) -> pd.DataFrame:
    """The mean score of each group, how sure it is, and what it rests on.

    Samples are averaged within their run, runs within their task, and the mean is that of the
    tasks: every task weighs the same. A row without a score is counted in `unscored`; whether it is
    in the mean, `errors` says.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it. Reads `value`, `over`, the columns of `by`, and, where they exist,
        `run_id`, `status`, `metadata`, `cost_usd`, `tokens_in`, `tokens_out`, `seconds`.
        Without ``task_id`` (or where it is missing) each run is a task of its own.
    by : str or list of str
        Columns that make the groups. Those of the default that `scores` does not have are left out.
    ci : float
        Confidence of the interval.
    method : {"auto", "t", "bca"}
        "auto": for scores that are all 0 or 1 Wilson's interval (`stats.wilson`), or the clustered
        one (`stats.clustered`) where some task was scored more than once; for others Student's t
        over tasks. "bca": the bootstrap over tasks (`stats.bca`).
    over : str
        The column whose values are what was drawn from a population: another than ``task_id`` where
        tasks belong together, as variants of one template do. It takes the place of the task in
        all that is said here.
    value : str
        The column to average: ``score``, ``passed``, or any other of numbers, as one that was joined
        from the runs. Its mean is in the column `score` whatever its name.
    errors : {"exclude", "fail", "both"}
        "exclude": rows without a score are in no mean. "fail": they count as 0 where something
        failed: the evaluator, its budget, or the run before it came to an answer; but not where
        there was nothing to judge (``skipped`` for another reason). "both": a line for either, told
        apart by the column `errors`.
    seed : int
        Of the bootstrap.

    Returns
    -------
    DataFrame
        One row per group, in the order in which the groups first appear. The columns of `by`, then
        `score`, `low`, `high` (NaN where fewer than two tasks were scored), `n` (rows in the mean),
        `tasks` (tasks in the mean), `trials` (most such runs of one task), `unscored` (rows without
        `value`), `vacuous` (rows whose metadata say that there was nothing to check), `cost_usd`
        (missing where one row's price is unknown), `tokens_in`, `tokens_out`, `seconds` (sums,
        likewise), `method` ("wilson", "clustered", "t" or "bca"; missing where there is no interval).
        Where a judge sampled (some `sample` is above 0), also `spread` and `mode_share`: the standard
        deviation of a run's samples, and the share of their most frequent label, as means over the
        runs with two or more; missing in a group without.

    Raises
    ------
    InputError
        A column is missing, rows are there twice, a score is no number from 0 to 1, `ci`, `method` or
        `errors` is impossible, or errors are to count as 0 in a `value` whose worst is not 0.
    """
    check_frame(scores, "summarize")
    dtypes = {**_SUMMARY, **(SPREADS if are_sampled(scores) else {})}
    dtypes = {"errors": "str", **dtypes} if errors == "both" else dtypes
    keys = group_keys(scores, by, _BY, dtypes, "summarize")
    check_repeats(scores, keys, "summarize")
    check_ci(ci, "summarize")
    check_seed(seed, "summarize")
    check_choice("method", method, _METHODS, "summarize")
    check_choice("errors", errors, _ERRORS, "summarize")
    if not is_one_of(over, ("task_id",)):
        check_column(scores, over, "summarize", "over")
    values = values_of(scores, value, "summarize")
    rates = bounded(scores, value)
    if errors != "exclude" and not rates:
        raise InputError(f"summarize: errors={errors!r} counts failures as 0, which is not the worst {value!r}")
    countings = {"exclude": values, "fail": np.where(np.isnan(values) & failed_rows(scores), 0.0, values)}
    shown = ["exclude", "fail"] if errors == "both" else [errors]
    tasks, runs = units(scores, over)
    vacuous = _vacuous(scores)
    sums = {name: numbers(scores, name, "summarize") for name in _SUMS}
    rows, labels = [], []
    for group, positions in groups_of(scores, keys):
        for counting in shown:
            counted = countings[counting]
            chosen = positions[~np.isnan(counted[positions])]
            summary = mean_of(counted[chosen], tasks[chosen], runs[chosen], ci, method, seed, rates)
            summary["unscored"] = int(np.isnan(values[positions]).sum())
            summary["vacuous"] = int(vacuous[positions].sum())
            summary |= spreads(scores.iloc[positions], values[positions]) if "spread" in dtypes else {}
            totals = {name: _total(amounts[positions]) for name, amounts in sums.items()}
            rows.append({**summary, **totals, "errors": counting})
            labels.append(group)
    columns = {name: column([row[name] for row in rows], dtype) for name, dtype in dtypes.items()}
    return pd.DataFrame({**group_columns(scores, keys, labels), **columns})


def mean_of(
    values: np.ndarray, tasks: np.ndarray, runs: np.ndarray, ci: float, method: str, seed: int, rates: bool
) -> dict[str, Any]:
    """Score, interval and counts of one group; `values` (n,) are known, `tasks` and `runs` their codes."""
    n = len(values)
    found: dict[str, Any] = {"score": None, "low": None, "high": None, "n": n, "tasks": 0, "trials": 0, "method": None}
    if not n:
        return found
    _, means, counts = task_means(values, tasks, runs)
    found.update(score=float(means.mean()), tasks=len(means), trials=int(counts.max()))
    if len(means) < 2 or not rates and stats.constant(means):
        return found
    if method == "bca":
        low, high = stats.bca(means, ci=ci, seed=seed, bounded=rates)
    elif method == "t" or not rates or not np.isin(values, (0.0, 1.0)).all():
        method = "t"
        low, high = stats.t_interval(means, ci=ci, bounded=rates)
    elif n == len(means):
        method = "wilson"
        low, high = stats.wilson(float(means.sum()), n, ci=ci)
    else:
        method = "clustered"
        low, high = stats.clustered(means, n, ci=ci)
    if method in ("t", "bca") and stats.constant(means):
        method = "wilson"  # which is what they give then
    return {**found, "low": low, "high": high, "method": method}


def failed_rows(scores: pd.DataFrame) -> np.ndarray:
    """Whether a row's missing score is a failure, shape (rows,), and not one that was not due."""
    statuses, metadata = cells(scores, "status"), cells(scores, "metadata")
    # `score` writes the class of the run's own error beside the skip that it caused.
    broken = [isinstance(cell, Mapping) and bool(cell.get("error_class")) for cell in metadata]
    return np.array([status not in ("ok", "skipped") or run for status, run in zip(statuses, broken)], dtype=bool)


def _total(amounts: np.ndarray) -> float | None:
    """The sum; None where one part of it is unknown."""
    return None if np.isnan(amounts).any() else float(amounts.sum())


def _vacuous(scores: pd.DataFrame) -> np.ndarray:
    metadata = cells(scores, "metadata")
    return np.array([isinstance(cell, Mapping) and cell.get("vacuous") is True for cell in metadata], dtype=bool)
