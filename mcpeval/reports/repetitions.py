"""What repeated trials say: pass@k and pass^k of each agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from .. import stats
from ..errors import InputError
from ..frames import column
from .columns import (
    cells,
    check_ci,
    check_column,
    check_frame,
    check_repeats,
    group_columns,
    group_keys,
    groups_of,
    units,
    values_of,
)

_BY = ("agent", "evaluator")
_PASSES = {
    "k": "int64",
    **{f"{name}{end}": "float64" for name in ("pass_at_k", "pass_hat_k") for end in ("", "_low", "_high")},
    "tasks": "int64",
}


def pass_at_k(scores: pd.DataFrame, k: int | Sequence[int] = (1, 2, 4), *, ci: float = 0.95) -> pd.DataFrame:
    """The chance that at least one of k trials of a task passes, and that all of them do.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it. Reads ``task_id``, ``run_id``, ``score`` and, where they exist,
        ``passed``, ``agent`` and ``evaluator``, which make the groups. A run passed as ``passed`` says
        or, where it says nothing, with a score of 1; of several samples of a run more than half
        have to pass.
    k : int or list of int
    ci : float
        Confidence of the intervals.

    Returns
    -------
    DataFrame
        One row per group and k: ``agent``, ``evaluator``, ``k``, ``pass_at_k``, ``pass_at_k_low``,
        ``pass_at_k_high``, ``pass_hat_k``, ``pass_hat_k_low``, ``pass_hat_k_high``, ``tasks``. Both are
        means over tasks of the unbiased estimates (`stats.pass_at_k`, `stats.pass_hat_k`); the
        intervals are those of rates over tasks (`stats.clustered`), missing where there are fewer
        than two tasks.

    Raises
    ------
    InputError
        A column is missing, rows are there twice, `k` is no number of trials or larger than the number
        of scored trials of some task, or a score is neither pass nor fail.
    """
    check_frame(scores, "pass_at_k")
    check_ci(ci, "pass_at_k")
    wanted = _wanted(k)
    for name in ("task_id", "run_id"):
        check_column(scores, name, "pass_at_k")
    keys = group_keys(scores, _BY, _BY, _PASSES, "pass_at_k")
    check_repeats(scores, keys, "pass_at_k")
    passed, (tasks, runs), names = passed_of(scores, "pass_at_k"), units(scores), cells(scores, "task_id")
    rows, labels = [], []
    for group, positions in groups_of(scores, keys):
        own = positions[~np.isnan(passed[positions])]
        successes, trials, first = _counts(passed[own], tasks[own], runs[own])
        for one in wanted:
            if len(trials) and trials.min() < one:
                place = own[first[trials.argmin()]]
                _refuse(one, int(trials.min()), names[place], dict(zip(keys, group)), len(positions) - len(own))
            rows.append({"k": one, **_estimates(successes, trials, one, ci), "tasks": len(trials)})
            labels.append(group)
    columns = {name: column([row[name] for row in rows], dtype) for name, dtype in _PASSES.items()}
    return pd.DataFrame({**group_columns(scores, keys, labels), **columns})


def _wanted(k: Any) -> list[int]:
    given = list(k) if isinstance(k, Iterable) else [k]
    whole = [isinstance(one, (int, np.integer)) and not isinstance(one, bool) and one > 0 for one in given]
    if not given or not all(whole):
        raise InputError(f"pass_at_k: k={k!r} should be a number of trials, or a list of them, as [1, 2, 4]")
    return given


def passed_of(scores: pd.DataFrame, report: str) -> np.ndarray:
    """Whether each row passed, shape (rows,): 1, 0, or NaN for a row without a score."""
    values = values_of(scores, "score", report)
    if "passed" in scores.columns:
        said = values_of(scores, "passed", report)
        values = np.where(np.isnan(said), values, said)
    graded = np.flatnonzero(~np.isnan(values) & ~np.isin(values, (0.0, 1.0)))
    if len(graded):
        place = graded[0]
        raise InputError(
            f"{report}: score={values[place]:g} in row {scores.index[place]!r} is neither pass nor fail; "
            "give its evaluator a threshold, or the frame a column 'passed'"
        )
    return values


def _counts(passed: np.ndarray, tasks: np.ndarray, runs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Passed runs and runs of each task, and a row of each, shape (tasks,)."""
    _, first, run_of_row = np.unique(runs, return_index=True, return_inverse=True)
    won = np.bincount(run_of_row, passed) / np.bincount(run_of_row) > 0.5 if len(passed) else passed
    _, of_task, task_of_run, trials = np.unique(
        tasks[first], return_index=True, return_inverse=True, return_counts=True
    )
    return np.bincount(task_of_run, won, len(trials)).astype(int), trials, first[of_task]


def _estimates(successes: np.ndarray, trials: np.ndarray, k: int, ci: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, estimate in (("pass_at_k", stats.any_of_k), ("pass_hat_k", stats.all_of_k)):
        rates = estimate(successes, trials, k)
        low, high = stats.clustered(rates, int(trials.sum()), ci=ci)
        found |= {name: float(rates.mean()) if len(rates) else None, f"{name}_low": low, f"{name}_high": high}
    return found


def _refuse(k: int, trials: int, task: Any, group: dict[str, Any], unscored: int) -> None:
    where = "".join(f", {key}={label!r}" for key, label in group.items())
    lost = f"; {unscored} rows there have no score" if unscored else ""
    raise InputError(f"pass_at_k: k={k} is more than the {trials} scored trials of task {task!r}{where}{lost}")
