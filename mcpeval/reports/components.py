"""Where the differences between scores come from: tasks, trials, judges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from .. import stats
from ..errors import InputError, is_one_of
from ..frames import column
from .columns import (
    cells,
    check_column,
    check_frame,
    check_repeats,
    codes,
    group_columns,
    group_keys,
    groups_of,
    subjects,
    units,
    values_of,
)

_BY = ("agent",)
_COMPONENTS = {
    "component": "str",
    "variance": "float64",
    "share": "float64",
    "estimate": "float64",
    "levels": "int64",
    "n": "int64",
}


def variance_components(
    scores: pd.DataFrame, by: str | Sequence[str] = _BY, *, value: str = "score", judge: str = "evaluator"
) -> pd.DataFrame:
    """How much of the variance of scores lies between tasks, trials, judges, and samples of a judge.

    What to buy more of follows from it: more tasks where those differ, more trials where an agent
    does not do the same twice, more judges or samples where those are what disagrees.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it. Reads `value`, `judge`, ``task_id`` and, where they exist, ``run_id`` and
        the columns of `by`. Rows without a score are left out.
    by : str or list of str
        Columns that make the groups, each of which is taken apart for itself; by default ``agent``
        where it exists.
    value : str
        The column of numbers to take apart.
    judge : str
        The column that tells the judges apart. All should judge the same thing, on the same scale:
        a group of evaluators of different things has a "judge" component that means nothing.

    Returns
    -------
    DataFrame
        A row per group and component: the columns of `by`, ``component``, ``variance`` (0 where the
        estimate is negative), ``share`` (of the sum of the variances), ``estimate`` (as it came out),
        ``levels`` (how many tasks, judges, ... there were), ``n`` (rows). The components are those
        that the rows can tell apart, out of "task"; "judge" (one is stricter than the others); "task x
        judge" (judges differ on some tasks); "trial" (the agent's own luck); "trial x judge"; and
        "sample" (a judge's luck). The last of a group holds what could not be told from it: with one
        sample each, "trial x judge" contains the judges' luck, and with one trial each, "task"
        contains the agent's.

    Raises
    ------
    InputError
        A column is missing, rows are there twice, a group has fewer than two tasks, nothing in it is
        repeated, or its runs are compared with several others, which are no samples.

    References
    ----------
    `stats.variance_components`. For evaluations: Miller (2024), arXiv 2411.00640, section 3.

    Examples
    --------
    >>> scores = pd.DataFrame({"task_id": ["a", "a", "b", "b"], "run_id": [1, 2, 3, 4], "score": [1.0, 1.0, 0.0, 1.0]})
    >>> variance_components(scores)[["component", "variance"]].to_numpy().tolist()
    [['task', 0.0], ['trial', 0.25]]
    """
    check_frame(scores, "variance_components")
    check_column(scores, "task_id", "variance_components")
    keys = group_keys(scores, by, _BY, _COMPONENTS, "variance_components")
    check_repeats(scores, keys, "variance_components")
    if not is_one_of(judge, ("evaluator",)):
        check_column(scores, judge, "variance_components", "judge")
    values, (tasks, runs) = values_of(scores, value, "variance_components"), units(scores)
    about = subjects(scores)
    judges = codes(cells(scores, judge))
    rows, labels = [], []
    for group, positions in groups_of(scores, keys):
        own = positions[~np.isnan(values[positions])]
        if len(np.unique(about[own])) > len(np.unique(runs[own])):
            found: Any = "compares runs with several others each; choose the comparisons with one of them"
        else:
            found = _components(values[own], tasks[own], runs[own], judges[own])
        if isinstance(found, str):
            where = ", ".join(f"{key}={label!r}" for key, label in zip(keys, group)) or "scores"
            raise InputError(f"variance_components: {where} {found}")
        rows += found
        labels += [group] * len(found)
    columns = {name: column([row[name] for row in rows], dtype) for name, dtype in _COMPONENTS.items()}
    return pd.DataFrame({**group_columns(scores, keys, labels), **columns})


def _components(
    values: np.ndarray, tasks: np.ndarray, runs: np.ndarray, judges: np.ndarray
) -> list[dict[str, Any]] | str:
    """The rows of one group, or why there are none."""
    if len(np.unique(tasks)) < 2:
        return f"has scores of {len(np.unique(tasks))} tasks; expected two or more"
    levels = _levels(tasks, runs, judges)
    if len(levels) < 2:
        return "has one score for each task, of one judge; nothing is repeated that could be told from the tasks"
    *factors, residual = levels
    found = stats.variance_components(values, {name: levels[name] for name in factors})
    found[residual] = found.pop("residual")
    if any(np.isnan(list(found.values()))):
        return f"has too few repetitions to tell apart {', '.join(found)}"
    total = sum(max(0.0, variance) for variance in found.values())
    return [
        {
            "component": name,
            "variance": max(0.0, estimate),
            "share": max(0.0, estimate) / total if total > 0 else None,
            "estimate": estimate,
            "levels": len(np.unique(levels[name])),
            "n": len(values),
        }
        for name, estimate in found.items()
    ]


def _levels(tasks: np.ndarray, runs: np.ndarray, judges: np.ndarray) -> dict[str, np.ndarray]:
    """The level of each row in each component that can be told apart; that of the last is the row's own."""
    by_task, by_run = _paired(tasks, judges), _paired(runs, judges)
    several = len(np.unique(judges)) > 1
    tried = len(np.unique(runs)) > len(np.unique(tasks))
    sampled = len(np.unique(by_run)) < len(runs)
    found = {
        "task": (tasks, True),
        "judge": (judges, several),
        "task x judge": (by_task, several),
        "trial": (runs, tried),
        "trial x judge": (by_run, several and tried),
        "sample": (np.arange(len(runs)), sampled),
    }
    return {name: level for name, (level, there) in found.items() if there}


def _paired(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return codes(list(zip(first.tolist(), second.tolist())))
