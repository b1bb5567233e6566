"""Verdicts and labels as numbers: what `agreement` and `judge_card` compare."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..errors import InputError
from ..frames import cells_of
from .columns import check_column

#: What of a verdict can be compared.
VALUES = ("passed", "label", "score")


class Rated(NamedTuple):
    """One group in numbers: NaN is no verdict or no label; shape (rows,) each."""

    judged: np.ndarray
    references: dict[str, np.ndarray]
    value: str
    level: str
    names: bool  # the numbers stand for texts


def references_of(scores: pd.DataFrame, reference: Any, on: str, report: str) -> dict[str, list[Any]]:
    """The labels of each annotator for each row of `scores`; `report` is the function that was called."""
    if isinstance(reference, str):
        check_column(scores, reference, report, "reference")
        return {reference: cells_of(scores[reference])}
    check_column(scores, on, report)
    if isinstance(reference, Mapping):
        reference = pd.Series(reference, dtype=object)
    if isinstance(reference, pd.Series):
        reference = reference.to_frame("reference")
    if not isinstance(reference, pd.DataFrame):
        raise InputError(
            f"{report}: reference is a {type(reference).__name__}; expected the name of a column, a Series, a dict "
            f"or a frame, with the labels by {on!r}"
        )
    if on in reference.columns:
        reference = reference.set_index(on)
    if not reference.index.is_unique or not reference.columns.is_unique:
        twice = [name for axis in reference.axes for name in axis[axis.duplicated()]][0]
        raise InputError(f"{report}: reference has {twice!r} more than once; expected one label for each {on!r}")
    owners = cells_of(scores[on])
    found = {}
    for name in reference.columns:
        given = dict(zip(reference.index.tolist(), cells_of(reference[name])))
        found[str(name)] = [given.get(owner) for owner in owners]
    if not any(label is not None for labels in found.values() for label in labels):
        raise InputError(
            f"{report}: no label of the reference belongs to a row: {on!r} has {owners[:1]}, "
            f"and the reference {reference.index[:1].tolist()}"
        )
    return found


def kind_of(references: Mapping[str, Sequence[Any]], report: str) -> str:
    """Whether the labels are "truths", "numbers" or "texts"."""
    labels = [label for given in references.values() for label in given if label is not None]
    for kind, test in (("truths", is_truth), ("numbers", is_number), ("texts", lambda label: isinstance(label, str))):
        if all(map(test, labels)):
            return kind
    raise InputError(f"{report}: the labels of the reference should be truth values, numbers or texts: {labels[:3]!r}")


def is_truth(label: Any) -> bool:
    return isinstance(label, bool)


def is_number(label: Any) -> bool:
    return isinstance(label, (int, float)) and not isinstance(label, bool)


def translated(labels: Sequence[Any], meaning: Any, report: str) -> list[Any]:
    """Labels in the words of the reference; those that `meaning` does not have are warned of, and are no verdicts."""
    if not isinstance(meaning, Mapping):
        raise InputError(f"{report}: labels={meaning!r} should map labels to what they mean, as {{'satisfied': True}}")
    given = [label for label in labels if label is not None]
    lost = Counter(str(label) for label in given if not isinstance(label, Hashable) or label not in meaning)
    if given and lost.total() == len(given):
        raise InputError(
            f"{report}: labels has none of the labels in scores: {[name for name, _ in lost.most_common(5)]}"
        )
    if lost:
        told = ", ".join(f"{name!r} ({count})" for name, count in lost.most_common())
        warnings.warn(
            f"{report}: {lost.total()} verdicts have a label that labels does not map, and count as none: {told}",
            stacklevel=3,
        )
    return [meaning.get(label) if isinstance(label, Hashable) else None for label in labels]


def rated(
    table: Mapping[str, list[Any]],
    references: Mapping[str, list[Any]],
    chosen: Sequence[int],
    kind: str,
    value: str | None,
    level: str | None,
    where: str,
) -> Rated:
    """The rows `chosen` of a table of verdicts and of labels, as numbers; `where` names them in errors."""
    ok = [table["status"][place] in ("ok", None) for place in chosen] if "status" in table else [True] * len(chosen)
    of = {name: [table[name][place] if good else None for place, good in zip(chosen, ok)]
          for name in VALUES if name in table}  # fmt: skip
    human = {name: [labels[place] for place in chosen] for name, labels in references.items()}
    known = [label for labels in human.values() for label in labels if label is not None]
    value = value or _value(of, known, kind)
    judged = of.get(value)
    if judged is None or any(ok) and all(answer is None for answer in judged):
        hint = "; give its evaluator a threshold, or say value='score'" if value == "passed" else ""
        raise InputError(f"{where} has no {value!r} to compare with the reference {known[:1]!r}{hint}")
    texts = kind == "texts"
    odd = [answer for answer in judged if answer is not None and not isinstance(answer, str if texts else (int, float))]
    if odd:
        raise InputError(f"{where}: {value} {odd[0]!r} and reference {known[:1]!r} are not of one kind")
    order = _order(of, known) if texts else None
    numbered = _numbering([*judged, *known], order) if texts else float
    names = value == "passed" or kind == "truths" or texts and not order
    default = "interval" if value == "score" else "nominal" if names else "ordinal"
    return Rated(
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
    if labels and all(map(is_number, labels)) and (max(known, default=0) > 1 or max(labels) <= 1):
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
