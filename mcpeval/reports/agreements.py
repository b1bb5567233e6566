"""Is the judge right?  Its verdicts against those of people, and people against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from statistics import fmean, median_low
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .. import stats
from ..errors import InputError
from ..frames import cells_of, column
from .columns import (
    check_choice,
    check_ci,
    check_column,
    check_frame,
    codes,
    group_columns,
    group_keys,
    groups_of,
    units,
)

_BY = ("evaluator",)
_VALUES = ("passed", "label", "score")
_MEASURES = (
    *("accuracy", "kappa", "kappa_linear", "kappa_quadratic", "alpha", "sensitivity", "specificity"),
    *("balanced_accuracy", "spearman", "kendall", "pearson", "bias"),
)
# What the numbers that stand for names have no meaning for.
_OF_NUMBERS = ("sensitivity", "specificity", "pearson", "bias")
_AGREEMENT = {
    "n": "int64",
    **{f"{name}{end}": "float64" for name in _MEASURES for end in ("", "_low", "_high")},
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

    Raises
    ------
    InputError
        A column is missing, no label of the reference belongs to a row, labels are of several
        kinds or given twice, an argument is impossible, or a group has verdicts but not the
        `value` that is to be compared.
    """
    check_frame(scores, "agreement")
    check_ci(ci, "agreement")
    check_choice("value", value, (None, *_VALUES), "agreement")
    check_choice("level", level, (None, *stats.LEVELS), "agreement")
    taken = [*_AGREEMENT, "rater", "reference"]
    keys = group_keys(scores, by, _BY, taken, "agreement")
    references = _references(scores, reference, on)
    kind = _kind(references)
    table = {name: cells_of(scores[name]) for name in (*_VALUES, "status") if name in scores.columns}
    owners = cells_of(scores[on]) if on in scores.columns else list(range(len(scores)))
    tasks = units(scores)[0] if "task_id" in scores.columns else codes(owners)
    rows, labels = [], []
    for group, positions in groups_of(scores, keys):
        where = ", ".join(f"{key}={name!r}" for key, name in zip(keys, group)) or "scores"
        chosen = [int(place) for place in positions]
        rated = _rated(table, references, chosen, kind, value, level, where)
        _, first = np.unique(codes([owners[place] for place in chosen]), return_index=True)
        for rater, against, x, y in _comparisons(rated, first):
            own = tasks[positions] if rater == "judge" else tasks[positions][first]
            rows.append({**_line(x, y, own, rated, ci, seed), "rater": rater, "reference": against})
            labels.append(group)
    several = {"rater": "str", "reference": "str"} if len(references) > 1 else {}
    columns = {name: column([row.get(name) for row in rows], t) for name, t in {**several, **_AGREEMENT}.items()}
    return pd.DataFrame({**group_columns(scores, keys, labels), **columns})


# --- what is compared -----------------------------------------------------------------------------


class _Rated(NamedTuple):
    """One group in numbers: NaN is no verdict or no label; shape (rows,) each."""

    judged: np.ndarray
    references: dict[str, np.ndarray]
    value: str
    level: str
    names: bool  # the numbers stand for texts


def _references(scores: pd.DataFrame, reference: Any, on: str) -> dict[str, list[Any]]:
    """The labels of each annotator for each row of `scores`."""
    if isinstance(reference, str):
        check_column(scores, reference, "agreement", "reference")
        return {reference: cells_of(scores[reference])}
    check_column(scores, on, "agreement")
    if isinstance(reference, Mapping):
        reference = pd.Series(reference, dtype=object)
    if isinstance(reference, pd.Series):
        reference = reference.to_frame("reference")
    if not isinstance(reference, pd.DataFrame):
        raise InputError(
            f"agreement: reference is a {type(reference).__name__}; expected the name of a column, a Series, a dict "
            f"or a frame, with the labels by {on!r}"
        )
    if on in reference.columns:
        reference = reference.set_index(on)
    if not reference.index.is_unique or not reference.columns.is_unique:
        twice = [name for axis in reference.axes for name in axis[axis.duplicated()]][0]
        raise InputError(f"agreement: reference has {twice!r} more than once; expected one label for each {on!r}")
    owners = cells_of(scores[on])
    found = {}
    for name in reference.columns:
        given = dict(zip(reference.index.tolist(), cells_of(reference[name])))
        found[str(name)] = [given.get(owner) for owner in owners]
    if not any(label is not None for labels in found.values() for label in labels):
        raise InputError(
            f"agreement: no label of the reference belongs to a row: {on!r} has {owners[:1]}, "
            f"and the reference {reference.index[:1].tolist()}"
        )
    return found


def _kind(references: Mapping[str, Sequence[Any]]) -> str:
    """Whether the labels are "truths", "numbers" or "texts"."""
    labels = [label for given in references.values() for label in given if label is not None]
    for kind, test in (("truths", _is_truth), ("numbers", _is_number), ("texts", lambda label: isinstance(label, str))):
        if all(map(test, labels)):
            return kind
    raise InputError(f"agreement: the labels of the reference should be truth values, numbers or texts: {labels[:3]!r}")


def _is_truth(label: Any) -> bool:
    return isinstance(label, bool)


def _is_number(label: Any) -> bool:
    return isinstance(label, (int, float)) and not isinstance(label, bool)


def _rated(
    table: Mapping[str, list[Any]],
    references: Mapping[str, list[Any]],
    chosen: Sequence[int],
    kind: str,
    value: str | None,
    level: str | None,
    where: str,
) -> _Rated:
    ok = [table["status"][place] in ("ok", None) for place in chosen] if "status" in table else [True] * len(chosen)
    of = {name: [table[name][place] if good else None for place, good in zip(chosen, ok)]
          for name in _VALUES if name in table}  # fmt: skip
    human = {name: [labels[place] for place in chosen] for name, labels in references.items()}
    known = [label for labels in human.values() for label in labels if label is not None]
    value = value or _value(of, known, kind)
    judged = of.get(value)
    if judged is None or any(ok) and all(answer is None for answer in judged):
        hint = "; give its evaluator a threshold, or say value='score'" if value == "passed" else ""
        raise InputError(f"agreement: {where} has no {value!r} to compare with the reference {known[:1]!r}{hint}")
    texts = kind == "texts"
    odd = [answer for answer in judged if answer is not None and not isinstance(answer, str if texts else (int, float))]
    if odd:
        raise InputError(f"agreement: {where}: {value} {odd[0]!r} and reference {known[0]!r} are not of one kind")
    order = _order(of, known) if texts else None
    numbered = _numbering([*judged, *known], order) if texts else float
    default = {"passed": "nominal", "score": "interval"}.get(value, "ordinal" if order or not texts else "nominal")
    return _Rated(
        _numbers(judged, numbered),
        {name: _numbers(labels, numbered) for name, labels in human.items()},
        value,
        level or default,
        texts,
    )


def _value(of: Mapping[str, list[Any]], known: Sequence[Any], kind: str) -> str:
    """What of a verdict has the kind of the reference's labels."""
    if kind != "numbers":
        return "passed" if kind == "truths" else "label"
    labels = [label for label in of.get("label", ()) if label is not None]
    if labels and all(map(_is_number, labels)) and (max(known, default=0) > 1 or max(labels) <= 1):
        return "label"
    return "passed" if set(known) <= {0, 1} else "score"


def _order(of: Mapping[str, list[Any]], known: Sequence[str]) -> list[str] | None:
    """Labels from worst to best by their scores; None where these do not put all labels in an order."""
    worth: dict[str, set[float]] = {}
    for label, score in zip(of["label"], of.get("score", [None] * len(of["label"]))):
        if label is not None and score is not None:
            worth.setdefault(label, set()).add(score)
    points = [score for scores in worth.values() for score in scores]
    if len(worth) < 3 or len(points) != len(worth) or len(set(points)) != len(points) or not set(known) <= set(worth):
        return None
    return sorted(worth, key=lambda label: min(worth[label]))


def _numbering(labels: Sequence[Any], order: Sequence[str] | None) -> Callable[[str], float]:
    places = order or sorted({str(label) for label in labels if label is not None})
    return {label: float(place) for place, label in enumerate(places)}.__getitem__


def _numbers(labels: Sequence[Any], numbered: Callable[[Any], float]) -> np.ndarray:
    return np.array([np.nan if label is None else numbered(label) for label in labels], dtype=float)


# --- who is compared with whom --------------------------------------------------------------------


def _comparisons(rated: _Rated, first: np.ndarray) -> list[tuple[str, str, np.ndarray, np.ndarray]]:
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


def _consensus(labels: Sequence[np.ndarray], rated: _Rated) -> np.ndarray:
    reduce = {"nominal": _commonest, "ordinal": median_low, "interval": fmean}[rated.level]
    given = ([label for label in row if label == label] for row in np.column_stack(labels).tolist())
    return np.array([reduce(row) if row else np.nan for row in given], dtype=float)


def _commonest(labels: Sequence[float]) -> float:
    (label, count), *rest = Counter(labels).most_common(2)
    return np.nan if rest and rest[0][1] == count else label


# --- one line of the table ------------------------------------------------------------------------


def _line(x: np.ndarray, y: np.ndarray, tasks: np.ndarray, rated: _Rated, ci: float, seed: int) -> dict[str, Any]:
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
    for name in _MEASURES:
        if name in found and not (rated.names and name in _OF_NUMBERS):
            line[name] = found[name]
            low, high = _percentiles(samples[name], ci) if samples else stats.UNKNOWN
            if samples and not low < high and name in of_reference and found[name] in (0.0, 1.0):
                rows = len(np.unique(tasks[of_reference[name]]))
                low, high = stats.wilson(found[name] * rows, rows, ci=ci)
            line |= {f"{name}_low": low, f"{name}_high": high} if low < high else {}
    return line


def _percentiles(samples: np.ndarray, ci: float) -> tuple[float, float]:
    known = samples[~np.isnan(samples)]
    if not len(known):
        return stats.UNKNOWN
    low, high = np.quantile(known, [(1 - ci) / 2, (1 + ci) / 2])
    return float(low), float(high)
