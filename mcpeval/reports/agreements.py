"""Is the judge right?  Its verdicts against those of people, and people against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean, median_low
from typing import Any

import numpy as np
import pandas as pd

from .. import stats
from ..frames import cells_of, column
from .columns import (
    check_choice,
    check_ci,
    check_column,
    check_frame,
    check_repeats,
    check_seed,
    codes,
    group_columns,
    group_keys,
    groups_of,
    units,
)
from .rated import VALUES, Rated, kind_of, rated, references_of, translated

_BY = ("evaluator",)
MEASURES = (
    *("accuracy", "kappa", "kappa_linear", "kappa_quadratic", "alpha", "sensitivity", "specificity"),
    *("balanced_accuracy", "spearman", "kendall", "pearson", "bias"),
)
# What the numbers that stand for names have no meaning for.
_OF_NUMBERS = ("sensitivity", "specificity", "pearson", "bias")
_AGREEMENT = {
    "n": "int64",
    **{f"{name}{end}": "float64" for name in MEASURES for end in ("", "_low", "_high")},
    "majority": "float64",
    "coverage": "float64",
    "tasks": "int64",
    "value": "str",
    "level": "str",
}
_RESAMPLES = 2000


def agreement(
    scores: pd.DataFrame,
    reference: str | pd.Series | pd.DataFrame | Mapping[Any, Any],
    *,
    by: str | Sequence[str] = _BY,
    on: str = "run_id",
    value: str | None = None,
    level: str | None = None,
    labels: Mapping[Any, Any] | None = None,
    ci: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """How far evaluators agree with a reference, as the labels that people gave.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it. Reads the columns of `by`, `on`, `value` and, where they exist,
        ``status``, ``task_id``, ``run_id`` and, for the order of labels that are texts, ``score``.
        Each row is a verdict: a judge's samples count one by one.
    reference : str, Series, dict or DataFrame
        The column of `scores` that holds it; or the labels by the values of `on` (the index of a
        Series, the keys of a dict); or a frame with a column for each of several annotators, and
        the values of `on` as its index or as one of its columns. A missing label is none.
    by : str or list of str
        Columns that make the groups.
    on : str
        The column that says which run, or task, a label belongs to.
    value : {"passed", "label", "score"}, optional
        What of a verdict is compared. By default ``passed`` with truth values (or with 0 and 1,
        where labels are no numbers), ``label`` with texts, and with other numbers ``label`` where
        all labels are numbers and on the scale of the reference, else ``score``.
    level : {"nominal", "ordinal", "interval"}, optional
        What the values are: names, ranks or amounts. By default names for ``passed``; ranks for
        labels that are numbers, and for texts whose scores put all of them in an order, else names;
        amounts for ``score``.
    labels : dict, optional
        What each ``label`` of a judge means in the words of the reference, where it wrote others:
        ``{"satisfied": True, "pass": True, "fail": False}``. What is mapped to None is no verdict; what
        is not mapped at all is none either, and a warning lists it.
    ci : float
        Confidence of the intervals.
    seed : int
        Of the bootstrap.

    Returns
    -------
    DataFrame
        One row per group, in the order in which the groups first appear: the columns of `by`, ``n``
        (verdicts on what has a reference), ``accuracy``, ``kappa`` (Cohen's), ``kappa_linear``,
        ``kappa_quadratic``, ``alpha`` (Krippendorff's), ``sensitivity``, ``specificity``,
        ``balanced_accuracy``, ``spearman``, ``kendall`` (tau-b), ``pearson``, ``bias`` (mean of the
        verdicts less that of the reference), each with ``_low`` and ``_high``; ``majority`` (accuracy
        of always giving the reference's commonest value), ``coverage`` (share of the rows with a
        reference that have a verdict), ``tasks``, ``value``, ``level``. What the level does not
        allow is missing: see `stats.agreement_measures`.

        The intervals are percentiles of 2000 bootstrap samples of the tasks (of the values of `on`
        where there is no ``task_id``). Where all samples give the same, an accuracy, sensitivity or
        specificity of 0 or 1 gets Wilson's interval for as many tasks, and any other none.

        With several annotators there are more rows per group, and after `by` the columns ``rater``
        and ``reference``: the "judge" against each annotator and against their "consensus" (the
        commonest value, without one on a tie; the lower median of whole numbers; the mean of
        amounts); and as the human ceiling, on the same runs, each annotator against each other, and
        against the consensus of the "others" where there are more than two.

    Warns
    -----
    UserWarning
        Some verdicts have a label that `labels` does not map.

    Raises
    ------
    InputError
        A column is missing, rows are there twice, no label of the reference belongs to a row, labels
        are of several kinds or given twice, an argument is impossible, or a group has verdicts but
        not the `value` that is to be compared.
    """
    check_frame(scores, "agreement")
    check_ci(ci, "agreement")
    check_seed(seed, "agreement")
    check_choice("value", value, (None, *VALUES), "agreement")
    check_choice("level", level, (None, *stats.LEVELS), "agreement")
    taken = [*_AGREEMENT, "rater", "reference"]
    keys = group_keys(scores, by, _BY, taken, "agreement")
    check_repeats(scores, keys, "agreement")
    references = references_of(scores, reference, on, "agreement")
    kind = kind_of(references, "agreement")
    table = {name: cells_of(scores[name]) for name in (*VALUES, "status") if name in scores.columns}
    if labels is not None:
        check_column(scores, "label", "agreement")
        table["label"], value = translated(table["label"], labels, "agreement"), value or "label"
    owners = cells_of(scores[on]) if on in scores.columns else list(range(len(scores)))
    tasks = units(scores)[0] if "task_id" in scores.columns else codes(owners)
    rows, groups = [], []
    for group, positions in groups_of(scores, keys):
        where = ", ".join(f"{key}={name!r}" for key, name in zip(keys, group)) or "scores"
        chosen = [int(place) for place in positions]
        numbers = rated(table, references, chosen, kind, value, level, f"agreement: {where}")
        _, first = np.unique(codes([owners[place] for place in chosen]), return_index=True)
        for rater, against, x, y in comparisons(numbers, first):
            own = tasks[positions] if rater == "judge" else tasks[positions][first]
            rows.append({**measured(x, y, own, numbers, ci, seed), "rater": rater, "reference": against})
            groups.append(group)
    several = {"rater": "str", "reference": "str"} if len(references) > 1 else {}
    columns = {name: column([row.get(name) for row in rows], t) for name, t in {**several, **_AGREEMENT}.items()}
    return pd.DataFrame({**group_columns(scores, keys, groups), **columns})


# --- who is compared with whom --------------------------------------------------------------------


def comparisons(rated: Rated, first: np.ndarray) -> list[tuple[str, str, np.ndarray, np.ndarray]]:
    """(rater, reference, their numbers); people are compared once per run: at the rows `first`."""
    people = rated.references
    if len(people) == 1:
        return [("judge", name, rated.judged, labels) for name, labels in people.items()]
    rows = [("judge", name, rated.judged, labels) for name, labels in people.items()]
    rows.append(("judge", "consensus", rated.judged, _consensus(list(people.values()), rated)))
    once = {name: labels[first] for name, labels in people.items()}
    rows += [(one, other, once[one], once[other]) for one, other in combinations(once, 2)]
    if len(once) > 2:
        for name, labels in once.items():
            others = [given for other, given in once.items() if other != name]
            rows.append((name, "others", labels, _consensus(others, rated)))
    return rows


def _consensus(labels: Sequence[np.ndarray], rated: Rated) -> np.ndarray:
    reduce = {"nominal": _commonest, "ordinal": median_low, "interval": fmean}[rated.level]
    given = ([label for label in row if label == label] for row in np.column_stack(labels).tolist())
    return np.array([reduce(row) if row else np.nan for row in given], dtype=float)


def _commonest(labels: Sequence[float]) -> float:
    (label, count), *rest = Counter(labels).most_common(2)
    return np.nan if rest and rest[0][1] == count else label


# --- one line of the table ------------------------------------------------------------------------


def measured(x: np.ndarray, y: np.ndarray, tasks: np.ndarray, rated: Rated, ci: float, seed: int) -> dict[str, Any]:
    """Measures with their intervals, and what they rest on."""
    labelled = ~np.isnan(y)
    both = labelled & ~np.isnan(x)
    x, y, tasks = x[both], y[both], tasks[both]
    n, size = len(x), len(np.unique(tasks))
    coverage = n / labelled.sum() if labelled.any() else None
    line: dict[str, Any] = {"n": n, "tasks": size, "coverage": coverage, "value": rated.value, "level": rated.level}
    if not n:
        return line
    found = {name: float(number[0]) for name, number in stats.agreement_measures(x, y, rated.level).items()}
    line["majority"] = found["majority"]
    samples = stats.resampled_measures(x, y, rated.level, tasks, resamples=_RESAMPLES, seed=seed) if size > 1 else {}
    of_reference = {"accuracy": y == y, "sensitivity": y == 1, "specificity": y == 0}
    for name in MEASURES:
        if name in found and not (rated.names and name in _OF_NUMBERS):
            line[name] = found[name]
            low, high = percentiles(samples[name], ci) if samples else stats.UNKNOWN
            if samples and not low < high and name in of_reference and found[name] in (0.0, 1.0):
                rows = len(np.unique(tasks[of_reference[name]]))
                low, high = stats.wilson(found[name] * rows, rows, ci=ci)
            line |= {f"{name}_low": low, f"{name}_high": high} if low < high else {}
    return line


def percentiles(samples: np.ndarray, ci: float) -> tuple[float, float]:
    """The middle `ci` of bootstrap samples; those that are not defined are left out."""
    known = samples[~np.isnan(samples)]
    if not len(known):
        return stats.UNKNOWN
    low, high = np.quantile(known, [(1 - ci) / 2, (1 + ci) / 2])
    return float(low), float(high)
