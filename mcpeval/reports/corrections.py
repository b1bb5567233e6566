"""What people would have found: a judge's pass rates, corrected by the labels of some runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .. import stats
from ..errors import InputError
from ..frames import RUN_KEYS, column
from .columns import (
    cells,
    check_choice,
    check_ci,
    check_frame,
    check_repeats,
    codes,
    group_columns,
    group_keys,
    groups_of,
    units,
    values_of,
)
from .rated import is_number, is_truth, references_of
from .summaries import mean_of

_BY = ("agent", "evaluator")
_CALIBRATIONS = ("random", "external")
_CORRECTED = {
    "method": "str",
    "rate": "float64",
    "low": "float64",
    "high": "float64",
    "n": "int64",
    "labels": "int64",
    "tasks": "int64",
    "unscored": "int64",
    "ess": "float64",
    "ess_ceiling": "float64",
    "rho": "float64",
    "weight": "float64",
    "sensitivity": "float64",
    "specificity": "float64",
    "informedness": "float64",
    "informedness_low": "float64",
    "informedness_high": "float64",
    "reason": "str",
}


def corrected_rate(
    scores: pd.DataFrame,
    labels: str | pd.Series | Mapping[Any, Any],
    *,
    calibration: str = "random",
    by: str | Sequence[str] = _BY,
    on: str = "run_id",
    value: str = "passed",
    ci: float = 0.95,
) -> pd.DataFrame:
    """The pass rate that people would have found, from a judge's verdicts on all runs and labels of some.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it. Reads `value`, `on`, the columns of `by` and, where they exist, ``run_id``
        and ``task_id``. A run's samples are averaged, and every task weighs the same.
    labels : str, Series or dict
        The column of `scores` that holds them, or the labels by the values of `on`: truth values, 0
        and 1, or (where "random") numbers from 0 to 1. A missing label is none.
    calibration : {"random", "external"}
        "random": a random part of each group's runs was labelled, drawn before anyone saw the
        verdicts. PPI++ (`stats.power_tuned`) then has the right mean whatever the judge is worth, and
        the narrower an interval the better the judge. It does *not* hold where the labelled runs are
        of another kind than the others: easier, older, of another agent.
        "external": the labelled rows are a set of their own, from wherever it may be. They say how
        often the judge passes good runs and fails bad ones, and Rogan and Gladen's formula corrects
        the others (`stats.rogan_gladen`). The two sets may differ in how many runs are good; it does
        *not* hold where the judge errs more on one of them, as on an agent that it is partial to.
    by : str or list of str
        Columns that make the groups. Those of the default that `scores` does not have are left out.
        The calibration of a group is all labelled rows with its evaluator, and with its values of those
        columns of `by` that do not name the run (agent, model, category, task, trial).
    on : str
        The column that says which run, or task, a label belongs to.
    value : str
        The judge's verdicts: ``passed``, ``score``, or another column of numbers from 0 to 1.
    ci : float
        Confidence of the intervals.

    Returns
    -------
    DataFrame
        Three rows per group: the columns of `by`; ``method``: "naive" (the judge's own rate),
        "labels-only" (the mean of the labels; where "external" that of the calibration, which says
        nothing of the group), and "ppi++" or "rogan-gladen"; ``rate``, ``low``, ``high``; ``n`` (runs it
        rests on), ``labels`` (labelled ones), ``tasks``, ``unscored`` (runs of the group without a
        verdict, which are in no rate); ``ess`` (so many labels alone would have been as sure) and
        ``ess_ceiling`` (what no number of verdicts can take it past: labels / (1 - rho²)); ``rho``
        (correlation of verdicts and labels), ``weight`` (of the verdicts in PPI++), ``sensitivity``,
        ``specificity``, ``informedness`` (their sum less 1) with its interval, and ``reason``.

        Where the interval of the informedness includes 0, verdicts may have nothing to do with the
        labels and the formula would divide by nothing: there is then no rate, and ``reason`` says why.
        Where "external", a group all of whose runs are labelled is calibration and has no rows.

    Raises
    ------
    InputError
        A column is missing, rows are there twice, no label belongs to a row, a run has two different
        labels, a label is no number from 0 to 1 (where "external", none but 0 and 1), or an argument
        is impossible.

    References
    ----------
    Angelopoulos, Duchi & Zrnic (2023), PPI++, arXiv 2311.01453. Lee and others (2025), How to
    Correctly Report LLM-as-a-Judge Evaluations, arXiv 2511.21140.
    """
    check_frame(scores, "corrected_rate")
    check_ci(ci, "corrected_rate")
    check_choice("calibration", calibration, _CALIBRATIONS, "corrected_rate")
    keys = group_keys(scores, by, _BY, _CORRECTED, "corrected_rate")
    check_repeats(scores, keys, "corrected_rate")
    verdicts = values_of(scores, value, "corrected_rate")
    _check_verdicts(verdicts, value)
    given = _given(scores, labels, on, calibration)
    tasks, runs = units(scores)
    judge = [key for key in keys if key not in RUN_KEYS]
    judge += ["evaluator"] if "evaluator" in scores.columns and "evaluator" not in judge else []
    same_judge = codes(list(zip(*(cells(scores, key) for key in judge)))) if judge else np.zeros(len(scores), int)
    rows, groups = [], []
    for group, positions in groups_of(scores, keys):
        whole = _runs(verdicts, given, tasks, runs, positions)
        if calibration == "random":
            found = _random(whole, ci)
        else:
            labelled = np.flatnonzero(~np.isnan(given) & np.isin(same_judge, np.unique(same_judge[positions])))
            found = _external(whole, _runs(verdicts, given, tasks, runs, labelled), ci)
        rows += [{"unscored": whole.unscored, **row} for row in found]
        groups += [group] * len(found)
    columns = {name: column([row.get(name) for row in rows], dtype) for name, dtype in _CORRECTED.items()}
    return pd.DataFrame({**group_columns(scores, keys, groups), **columns})


# --- runs out of rows -----------------------------------------------------------------------------


class _Runs(NamedTuple):
    """The runs that have a verdict: shape (runs,) each; a missing label is NaN."""

    verdicts: np.ndarray
    labels: np.ndarray
    tasks: np.ndarray
    unscored: int = 0

    def only(self, chosen: np.ndarray) -> _Runs:
        return _Runs(self.verdicts[chosen], self.labels[chosen], self.tasks[chosen])

    @property
    def weights(self) -> np.ndarray:
        """Every task weighs the same."""
        _, task, counts = np.unique(self.tasks, return_inverse=True, return_counts=True)
        return 1.0 / counts[task] if len(task) else np.ones(0)


def _runs(
    verdicts: np.ndarray, labels: np.ndarray, tasks: np.ndarray, runs: np.ndarray, positions: np.ndarray
) -> _Runs:
    _, first, run = np.unique(runs[positions], return_index=True, return_inverse=True)
    own = verdicts[positions]
    known = ~np.isnan(own)
    counts = np.bincount(run[known], minlength=len(first))
    sums = np.bincount(run[known], own[known], minlength=len(first))
    there = counts > 0
    means = sums[there] / counts[there]
    return _Runs(means, labels[positions][first][there], tasks[positions][first][there], int((~there).sum()))


def _given(scores: pd.DataFrame, labels: Any, on: str, calibration: str) -> np.ndarray:
    """The label of each row, shape (rows,): that of its run."""
    found = references_of(scores, labels, on, "corrected_rate")
    if len(found) > 1:
        raise InputError(
            f"corrected_rate: labels has the columns {list(found)}; expected one label for each {on!r}, "
            "as the consensus of the annotators"
        )
    (given,) = found.values()
    odd = [label for label in given if label is not None and not (is_truth(label) or is_number(label))]
    numbers = np.array([np.nan if label is None or odd else float(label) for label in given])
    outside = [label for label, number in zip(given, numbers) if number < 0 or number > 1]
    if odd or outside:
        raise InputError(
            f"corrected_rate: label {(odd or outside)[0]!r} is neither a truth value nor a number from 0 to 1"
        )
    if calibration == "external" and not np.isin(numbers[~np.isnan(numbers)], (0.0, 1.0)).all():
        raise InputError("corrected_rate: calibration='external' needs labels that are true or false, 0 or 1")
    runs = units(scores)[1]
    known = ~np.isnan(numbers)
    pairs = np.unique(np.column_stack([runs[known], numbers[known]]), axis=0)
    _, first, counts = np.unique(pairs[:, 0], return_index=True, return_counts=True)
    if (counts > 1).any():
        row = np.flatnonzero(runs == pairs[first[counts.argmax()], 0])[0]
        raise InputError(f"corrected_rate: the run of row {scores.index[row]!r} has labels that differ from row to row")
    of_run = np.full(runs.max(initial=-1) + 1, np.nan)
    of_run[runs[known]] = numbers[known]
    return of_run[runs]


def _check_verdicts(verdicts: np.ndarray, value: str) -> None:
    known = verdicts[~np.isnan(verdicts)]
    if not len(known):
        hint = "; give its evaluator a threshold, or say value='score'" if value == "passed" else ""
        raise InputError(f"corrected_rate: no row has a {value!r}{hint}")
    if known.min() < 0 or known.max() > 1:
        raise InputError(f"corrected_rate: {value} should hold numbers from 0 to 1; it has {known.max():g}")


# --- rates out of runs ----------------------------------------------------------------------------


def _random(whole: _Runs, ci: float) -> list[dict[str, Any]]:
    known = ~np.isnan(whole.labels)
    labelled = int(known.sum())
    found = stats.power_tuned(whole.labels, whole.verdicts, whole.tasks, whole.weights, ci=ci)
    naive = _plain("naive", whole.verdicts, whole, ci, labelled)
    alone = _plain("labels-only", whole.labels[known], whole.only(known), ci, labelled)
    tuned: dict[str, Any] = {"method": "ppi++", "n": len(known), "labels": labelled,
                             "tasks": len(np.unique(whole.tasks))}  # fmt: skip
    if labelled < 2 or np.isnan(found.gain):
        return [naive, alone, {**tuned, "reason": f"{labelled} labels, of fewer than two tasks"}]
    tuned |= {"rate": found.rate, "low": found.low, "high": found.high, "weight": found.weight, "rho": found.rho,
              "ess": labelled * found.gain,
              "ess_ceiling": labelled / (1 - found.rho**2) if abs(found.rho) < 1 else None}  # fmt: skip
    return [naive, {**alone, "ess": labelled}, {**tuned, **_errors(whole.only(known), ci)}]


def _external(whole: _Runs, calibration: _Runs, ci: float) -> list[dict[str, Any]]:
    test = whole.only(np.isnan(whole.labels))
    if not len(test.labels):
        return []
    labelled = len(calibration.labels)
    naive = _plain("naive", test.verdicts, test, ci, 0)
    alone = _plain("labels-only", calibration.labels, calibration, ci, labelled)
    row = {"method": "rogan-gladen", "n": len(test.labels), "labels": labelled, "tasks": len(np.unique(test.tasks))}
    errors = _errors(calibration, ci)
    row |= errors
    if "informedness" not in errors:
        kind = "good" if not (calibration.labels == 1).any() else "bad"
        reason = f"refused: no labelled run with a verdict is {kind}" if labelled else "refused: no label"
        return [naive, alone, {**row, "reason": reason}]
    if errors["informedness_low"] <= 0 <= errors["informedness_high"]:
        reason = (
            f"refused: sensitivity + specificity - 1 may be 0 (it lies between {errors['informedness_low']:.2f} and "
            f"{errors['informedness_high']:.2f})"
        )
        return [naive, alone, {**row, "reason": reason}]
    sizes = (_size(test.verdicts, test, ci), *(_error_sizes(calibration, ci)))
    rate, low, high, variance = stats.rogan_gladen(
        naive["rate"], errors["sensitivity"], errors["specificity"], sizes, ci=ci
    )
    ess = rate * (1 - rate) / variance if variance > 0 and 0 < rate < 1 else None
    return [naive, alone, {**row, "rate": rate, "low": low, "high": high, "ess": ess}]


def _plain(method: str, values: np.ndarray, of: _Runs, ci: float, labels: int) -> dict[str, Any]:
    """A row of a mean over tasks, as `summarize` has it."""
    row: dict[str, Any] = {"method": method, "n": len(values), "labels": labels, "tasks": len(np.unique(of.tasks))}
    if not len(values):
        return row
    mean = mean_of(values, of.tasks, np.arange(len(values)), ci, "auto", 0, True)
    return {**row, "rate": mean["score"], "low": mean["low"], "high": mean["high"]}


def _means(values: np.ndarray, tasks: np.ndarray) -> np.ndarray:
    _, task, counts = np.unique(tasks, return_inverse=True, return_counts=True)
    return np.bincount(task, values) / counts


def _size(values: np.ndarray, of: _Runs, ci: float) -> float:
    return stats.effective_size(_means(values, of.tasks), len(values), ci=ci)


def _errors(calibration: _Runs, ci: float) -> dict[str, Any]:
    """Sensitivity, specificity and what they are worth together; only what there are labels for."""
    good, bad = (calibration.only(calibration.labels == label) for label in (1.0, 0.0))
    found: dict[str, Any] = {}
    if len(good.labels) + len(bad.labels) < len(calibration.labels):
        return found  # graded labels
    for name, of, right in (("sensitivity", good, good.verdicts), ("specificity", bad, 1 - bad.verdicts)):
        if len(right):
            found[name] = float(_means(right, of.tasks).mean())
    if len(found) < 2:
        return found
    ends = [stats.wilson(found[name] * size, size, ci=ci) for name, size in zip(found, _error_sizes(calibration, ci))]
    low, high = stats.informedness(found["sensitivity"], found["specificity"], *ends)
    total = found["sensitivity"] + found["specificity"] - 1
    return {**found, "informedness": total, "informedness_low": low, "informedness_high": high}


def _error_sizes(calibration: _Runs, ci: float) -> tuple[float, float]:
    """How many independent runs sensitivity and specificity rest on."""
    good, bad = (calibration.only(calibration.labels == label) for label in (1.0, 0.0))
    return _size(good.verdicts, good, ci), _size(bad.verdicts, bad, ci)
