"""Who is better, by how much, and how sure that is: differences within tasks."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .. import stats
from ..errors import InputError, did_you_mean
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
    task_means,
    units,
    values_of,
)

_ADJUSTMENTS = ("holm", "bh", None)
_COMPARISON = {
    "score": "float64",
    "baseline_score": "float64",
    "difference": "float64",
    "low": "float64",
    "high": "float64",
    "p": "float64",
    "p_adjusted": "float64",
    "better": "int64",
    "worse": "int64",
    "tasks": "int64",
    "unpaired": "int64",
    "detectable": "float64",
    "test": "str",
}


def compare(
    scores: pd.DataFrame,
    by: str = "agent",
    *,
    baseline: Any = None,
    value: str = "score",
    ci: float = 0.95,
    adjust: str | None = "holm",
    seed: int = 0,
) -> pd.DataFrame:
    """Differences between agents, each task against itself.

    Samples are averaged within their run, runs within their task; the difference is the mean over
    the tasks that both have a score for. Where there are several evaluators each is compared for
    itself.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it. Reads `by`, `value`, ``task_id`` and, where they exist, ``run_id`` and
        ``evaluator``.
    by : str
        The column whose values are compared: ``agent``, ``model``, ``evaluator``, ``judge_model`` or
        any other.
    baseline : optional
        The value of `by` that all others are compared with; by default every pair is compared, the
        one that appears first being the baseline.
    value : str
        The column of numbers to compare: ``score``, ``passed``, or another as in `summarize`.
    ci : float
        Confidence of the intervals, each for itself; the detectable difference is for tests at the
        level 1 - `ci`.
    adjust : {"holm", "bh", None}
        How p is adjusted for the number of tests, which is all rows of the table (`stats.adjusted`).
    seed : int
        Of the permutation test.

    Returns
    -------
    DataFrame
        One row per pair: ``evaluator`` (where `scores` has it and it is not `by`), `by`, ``baseline``,
        ``score`` and ``baseline_score`` (means over the shared tasks), ``difference``, ``low``, ``high``,
        ``p``, ``p_adjusted``, ``better`` and ``worse`` (tasks in which the score is higher and lower
        than the baseline's: the discordant pairs), ``tasks`` (shared), ``unpaired`` (tasks that only
        one of the two has a score for), ``detectable`` (the true difference that so many tasks would
        have shown with 80 % power, `stats.detectable`), and ``test``. That is "mcnemar" where all
        values are 0 or 1 with one run per task: the exact test, and Tango's interval (`stats.tango`);
        else "sign-flip": the permutation test over tasks, and a t interval of the task differences.
        Numbers are missing where no task is shared.

    Warns
    -----
    UserWarning
        Some tasks have a score for one of a pair only; they are left out of that pair.

    Raises
    ------
    InputError
        A column is missing, rows are there twice, fewer than two values are there to compare, the
        baseline is none of them, a score is no number from 0 to 1, or `ci` or `adjust` is impossible.

    References
    ----------
    Miller (2024), Adding Error Bars to Evals, arXiv 2411.00640: why differences are taken by task.
    """
    check_frame(scores, "compare")
    check_ci(ci, "compare")
    check_seed(seed, "compare")
    check_choice("adjust", adjust, _ADJUSTMENTS, "compare")
    if not isinstance(by, str):
        raise InputError(f"compare: by={by!r} should name one column")
    group_keys(scores, by, (), ["baseline", *_COMPARISON], "compare")
    check_repeats(scores, [by], "compare")
    check_column(scores, "task_id", "compare")
    levels = list(dict.fromkeys(level for level in cells(scores, by) if level is not None))
    if len(levels) < 2:
        raise InputError(f"compare: the column {by!r} should have at least two different values; it has {levels!r}")
    if baseline is not None and baseline not in levels:
        raise InputError(f"compare: baseline={baseline!r} is not in {by!r}. {did_you_mean(baseline, map(str, levels))}")
    keys = ["evaluator"] if "evaluator" in scores.columns and by != "evaluator" else []
    names, values, (tasks, runs) = cells(scores, by), values_of(scores, value, "compare"), units(scores)
    rates = bounded(scores, value)
    rows, labels = [], []
    for group, positions in groups_of(scores, keys):
        of_level: dict[Hashable, list[int]] = {}
        for position in positions:
            of_level.setdefault(names[position], []).append(position)
        here = {name: _tasks_of(values[own], tasks[own], runs[own], rates) for name, own in of_level.items()}
        for candidate, against in _pairs([level for level in levels if level in here], baseline):
            pair = _difference(here[candidate], here[against], ci, seed, rates)
            rows.append({**pair, by: candidate, "baseline": against})
            labels.append(group)
    _warn_of_unpaired(rows, by)
    for row, p in zip(rows, stats.adjusted([row["p"] for row in rows], adjust)):
        row["p_adjusted"] = p
    compared = {name: pd.Series([row[name] for row in rows], dtype=scores[by].dtype) for name in (by, "baseline")}
    columns = {name: column([row[name] for row in rows], dtype) for name, dtype in _COMPARISON.items()}
    return pd.DataFrame({**group_columns(scores, keys, labels), **compared, **columns})


class _Tasks(NamedTuple):
    """What one agent reached: codes and means of its tasks, shape (tasks,); whether each is one pass or fail."""

    codes: np.ndarray
    means: np.ndarray
    binary: bool


def _tasks_of(values: np.ndarray, tasks: np.ndarray, runs: np.ndarray, rates: bool) -> _Tasks:
    known = ~np.isnan(values)
    found, means, _ = task_means(values[known], tasks[known], runs[known])
    single = known.sum() == len(found) and bool(np.isin(means, (0.0, 1.0)).all())
    return _Tasks(found, means, rates and single)


def _pairs(levels: Sequence[Hashable], baseline: Hashable) -> list[tuple[Hashable, Hashable]]:
    """(candidate, baseline) of every comparison."""
    if baseline is None:
        return [(later, earlier) for earlier, later in combinations(levels, 2)]
    return [(level, baseline) for level in levels if level != baseline and baseline in levels]


def _difference(candidate: _Tasks, baseline: _Tasks, ci: float, seed: int, rates: bool) -> dict[str, Any]:
    shared, ours, theirs = np.intersect1d(candidate.codes, baseline.codes, assume_unique=True, return_indices=True)
    n = len(shared)
    unpaired = len(candidate.codes) + len(baseline.codes) - 2 * n
    if not n:
        return {**dict.fromkeys(_COMPARISON), "better": 0, "worse": 0, "tasks": 0, "unpaired": unpaired, "p": np.nan}
    first, second = candidate.means[ours], baseline.means[theirs]
    differences = first - second
    differences[np.abs(differences) < 1e-12] = 0.0  # the same trials, added up in another order
    better, worse = int((differences > 0).sum()), int((differences < 0).sum())
    if candidate.binary and baseline.binary:
        test, p = "mcnemar", stats.mcnemar(better, worse)
        low, high = stats.tango(better, worse, n, ci=ci)
    else:
        test, p = "sign-flip", stats.sign_flip(differences, seed=seed)
        low, high = stats.difference_interval(differences, ci=ci, bounds=(-1.0, 1.0) if rates else None)
    return {
        "score": float(first.mean()),
        "baseline_score": float(second.mean()),
        "difference": float(differences.mean()),
        "low": low,
        "high": high,
        "p": p,
        "better": better,
        "worse": worse,
        "tasks": n,
        "unpaired": unpaired,
        "test": test,
        "detectable": stats.detectable(differences, ci=ci),
    }


def _warn_of_unpaired(rows: Sequence[dict[str, Any]], by: str) -> None:
    lost = [row for row in rows if row["unpaired"]]
    if lost:
        worst = max(lost, key=lambda row: row["unpaired"])
        warnings.warn(
            f"compare: tasks that only one of a pair has a score for are left out of it, in {len(lost)} of {len(rows)} "
            f"pairs: {worst['unpaired']} tasks of {worst[by]!r} or {worst['baseline']!r}, "
            f"and {worst['tasks']} are shared; see the column 'unpaired'",
            stacklevel=3,
        )
