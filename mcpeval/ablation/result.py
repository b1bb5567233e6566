"""What an ablation against labels shows: agreement, differences from the baseline, and a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..errors import InputError, did_you_mean
from ..frames import cells_of as values_of
from ..frames import plain
from ..reports import agreement, compare
from ..reports.rated import kind_of
from .levels import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TABLE = (
    "n",
    "accuracy",
    "accuracy_low",
    "accuracy_high",
    "majority",
    "kappa",
    "kappa_low",
    "kappa_high",
    "alpha",
    "coverage",
)
# Of the comparisons not shown: the factors' columns say the same.
_LONG = ["evaluator", "baseline", "detectable"]


@dataclass(frozen=True, repr=False, eq=False)
class Ablation:
    """The scores of an ablation beside what people said of the same runs.

    Attributes
    ----------
    factors : tuple of str
    scores : DataFrame
        As `ablate` gives them without labels, with two columns more: ``human``, the label of the row's
        run, and ``right``, whether the verdict is that label (for amounts 1 less the distance
        between them); missing where one of the two is.
    agreement : DataFrame
        `mcpeval.agreement` of each cell with the labels, the baseline first; the factors' columns
        stand after ``evaluator``.
    differences : DataFrame
        `mcpeval.compare` of ``right`` between each cell and the baseline, within tasks, p adjusted
        by Holm's method; empty where there is but one cell.
    """

    factors: tuple[str, ...]
    scores: pd.DataFrame
    agreement: pd.DataFrame
    differences: pd.DataFrame

    def figure(self, *, ax: Axes | None = None) -> Axes:
        """How often each level is right, with its interval over tasks: `mcpeval.plots.ablation`."""
        from ..plots import ablation

        return ablation(self.scores, self.factors, value="right", ax=ax)

    def __repr__(self) -> str:
        return f"Ablation of {', '.join(self.factors)}: {len(self.agreement)} cells, {len(self.scores)} scores"

    def _repr_html_(self) -> str:
        shown = [name for name in (*self.factors, *_TABLE) if name in self.agreement]
        tables = [self.agreement[shown], self.differences.drop(columns=_LONG, errors="ignore")]
        return "\n".join(table.to_html(index=False, float_format="{:.3f}".format, escape=True) for table in tables)


def read_labels(labels: Any, run_ids: Sequence[Any], columns: Mapping[str, Sequence[Any]]) -> dict[Any, Any]:
    """The label of each run that has one.

    Parameters
    ----------
    labels : str, Series or mapping
        The name of one of `columns`, or labels by run_id.

    Raises
    ------
    InputError
        There is no such column, or no label belongs to a run.
    """
    if isinstance(labels, str):
        if labels not in columns:
            raise InputError(f"ablate: labels={labels!r} is no column of runs. {did_you_mean(labels, columns)}")
        given = dict(zip(run_ids, map(plain, columns[labels])))
    elif isinstance(labels, pd.Series):
        if not labels.index.is_unique:
            twice = labels.index[labels.index.duplicated()][0]
            raise InputError(f"ablate: labels has {twice!r} more than once; expected one label for each run_id")
        given = dict(zip(labels.index.tolist(), values_of(labels)))
    elif isinstance(labels, Mapping):
        given = {run_id: plain(label) for run_id, label in labels.items()}
    else:
        raise InputError(
            f"ablate: labels is a {type(labels).__name__}; expected the name of a column of runs, "
            "or a Series or dict of labels by run_id"
        )
    found = {run_id: given[run_id] for run_id in run_ids if given.get(run_id) is not None}
    if not found:
        raise InputError(
            f"ablate: no label belongs to a run: runs has the run_id {list(run_ids[:1])}, labels {list(given)[:1]}"
        )
    return found


def check_comparable(cells: Sequence[Cell], labels: Mapping[Any, Any]) -> None:
    """Refuse labels that a cell's verdicts could not be compared with, before the verdicts are paid."""
    kind = kind_of({"labels": list(labels.values())}, "ablate")
    truths = kind == "truths" or kind == "numbers" and set(labels.values()) <= {0, 1}
    for cell in cells:
        scale = getattr(cell.made, "scale", None)
        if scale is None:
            continue
        if kind == "texts" and scale.kind != "choice":
            raise InputError(
                f"ablate: the labels are texts ({next(iter(labels.values()))!r:.40}), and the verdicts of "
                f"{cell.name!r} are not; say what they mean, as labels=runs.set_index('run_id')['human'] == 'yes'"
            )
        # Numbers from 0 to 1 may be labels themselves, where the scale ends at 1.
        amounts = kind == "numbers" and scale.kind != "choice" and max(scale.labels) <= 1
        if truths and not amounts and scale.kind != "bool" and getattr(cell.made, "threshold", 0) is None:
            raise InputError(
                f"ablate: the labels are true or false, and it is not known which verdicts of {cell.name!r} pass; "
                "give the judge a threshold"
            )


def against(scores: pd.DataFrame, factors: Sequence[str], cells: Sequence[Cell], labels: Mapping[Any, Any]) -> Ablation:
    """`scores` beside `labels` (by run_id)."""
    human = [labels.get(run_id) for run_id in values_of(scores["run_id"])]
    scores = scores.assign(human=pd.Series(human, scores.index, dtype=object))
    table = agreement(scores, "human")
    rated = dict(zip(table["evaluator"], zip(table["value"], table["level"])))
    right = [
        _right(row[rated[row["evaluator"]][0]], row["human"], rated[row["evaluator"]][1])
        if row["status"] == "ok"
        else None
        for row in scores[["evaluator", "passed", "label", "score", "human", "status"]].to_dict("records")
    ]
    whole = all(isinstance(value, bool | None) for value in right)
    scores = scores.assign(right=pd.array(right, dtype="boolean" if whole else "Float64"))
    by_task = scores if "task_id" in scores.columns else scores.assign(task_id=scores["run_id"])
    differences = pd.DataFrame()
    if len(cells) > 1:
        differences = _with_levels(
            compare(by_task, "evaluator", baseline=cells[0].name, value="right"), scores, factors
        )
    return Ablation(tuple(factors), scores, _with_levels(table, scores, factors), differences)


def _with_levels(table: pd.DataFrame, scores: pd.DataFrame, factors: Sequence[str]) -> pd.DataFrame:
    """`table` with the levels of each cell after its name; a column of a factor's name is then ``compared_...``."""
    table = table.rename(columns={name: f"compared_{name}" for name in factors if name in table.columns})
    levels = scores[["evaluator", *factors]].drop_duplicates("evaluator")
    return levels.merge(table, on="evaluator", how="right")


def _right(verdict: Any, label: Any, level: str) -> bool | float | None:
    verdict, label = plain(verdict), plain(label)
    if verdict is None or label is None:
        return None
    return 1.0 - abs(verdict - label) if level == "interval" else bool(verdict == label)
