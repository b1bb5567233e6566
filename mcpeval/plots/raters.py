"""Who agrees with whom: a matrix of evaluators, judges and people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..errors import InputError, did_you_mean
from ..frames import cells_of
from ..reports import wide
from ..reports.agreements import measured
from ..reports.columns import check_ci, check_repeats, codes
from ..reports.rated import Rated, is_number, is_truth, references_of
from .paper import LABEL, WIDTH, check, column_figure, heads_of, name_map, room, share, short, text_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Of two raters who stand for each other: the same whichever comes first.
_MEASURES = {
    "nominal": ("kappa", "accuracy", "alpha"),
    "ordinal": ("kappa_quadratic", "kappa_linear", "kappa", "accuracy", "alpha", "spearman", "kendall", "pearson"),
    "interval": ("spearman", "kendall", "pearson", "alpha"),
}
_LEVELS = {"passed": "nominal", "label": "ordinal", "score": "interval"}
_DETAILED = 4  # raters whose cells have room for intervals
_SAID = {
    "kappa": "Cohen's kappa",
    "kappa_linear": "Linear kappa",
    "kappa_quadratic": "Quadratic kappa",
    "accuracy": "Share of equal verdicts",
    "alpha": "Krippendorff's alpha",
    "spearman": "Spearman's correlation",
    "kendall": "Kendall's tau-b",
    "pearson": "Pearson's correlation",
}


def agreement_matrix(
    scores: pd.DataFrame,
    labels: str | pd.Series | pd.DataFrame | Mapping[Any, Any] | None = None,
    *,
    value: str | None = None,
    measure: str | None = None,
    on: str = "run_id",
    ci: float = 0.95,
    seed: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """How far each two evaluators agree on the same runs, as a heat map with its numbers.

    A cell says the measure and, in a figure of at most four, its interval and the number of runs on
    which both have a verdict; in larger ones the diagonal says how many runs each has a verdict on.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it. Reads ``run_id``, ``evaluator``, ``task_id`` and `value`. Several samples of
        a run are put together as `wide` does.
    labels : str, Series, dict or DataFrame, optional
        As the reference of `agreement`: people, who stand in the matrix after the evaluators.
    value : {"passed", "label", "score"}, optional
        What of a verdict is compared: truth values, numbers that are ranks, or amounts. By default
        ``passed`` where every evaluator says it, else ``score``.
    measure : str, optional
        Of "passed": ``kappa`` (the default), ``accuracy``, ``alpha``; of "label" also ``kappa_quadratic``
        (the default), ``kappa_linear``, ``spearman``, ``kendall``, ``pearson``; of "score" ``spearman`` (the
        default), ``kendall``, ``pearson``, ``alpha``.
    on : str
        The column that says which run a label belongs to: ``run_id`` or ``task_id``.
    ci : float
        Confidence of the intervals, as those of `agreement`.
    seed : int
        Of the bootstrap.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure as wide as a paper's column.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        `scores` has no rows or not the columns, there are fewer than two raters, an argument is
        impossible, or labels are not of the kind of the verdicts.
    """
    check(scores, "agreement_matrix", ["run_id", "evaluator"])
    check_ci(ci, "agreement_matrix")
    check_repeats(scores, [], "agreement_matrix")
    raters, tasks, value = _raters(scores, labels, value, on)
    level = _LEVELS[value]
    if measure is not None and measure not in _MEASURES[level]:
        known = did_you_mean(measure, _MEASURES[level])
        raise InputError(f"agreement_matrix: measure={measure!r} is none for value={value!r}. {known}")
    measure = measure or _MEASURES[level][0]
    pairs = {
        (i, j): measured(x, y, tasks, Rated(x, {}, value, level, False), ci, seed)
        for (i, x), (j, y) in combinations(enumerate(raters.values()), 2)
    }
    heads = heads_of([text_of(name) for name in raters], WIDTH if ax is None else room(ax))
    with column_figure(0.5 + heads.inches + _cell(len(raters)) * len(raters), ax) as axes:
        _draw(axes, raters, pairs, measure)
        name_map(axes, [short(text_of(name), 0.75 * LABEL) for name in raters], heads)
        said = f"\n{100 * ci:g} % interval over tasks" if len(raters) <= _DETAILED else ""
        axes.set_xlabel(_SAID[measure] + said)
        return axes


def _raters(
    scores: pd.DataFrame, labels: Any, value: str | None, on: str
) -> tuple[dict[str, np.ndarray], np.ndarray, str]:
    """The numbers of each rater and the tasks, shape (runs,); NaN is no verdict."""
    table = wide(scores)
    if value is None:
        said = {name: table.xs(name, axis=1, level=1).notna().any() for name in _LEVELS if name in scores.columns}
        scored = [name for name, any_ in said["score"].items() if any_] if "score" in said else []
        value = "passed" if "passed" in said and said["passed"][scored].all() else "score"
    if value not in _LEVELS or value not in scores.columns:
        known = did_you_mean(value, [name for name in _LEVELS if name in scores.columns])
        raise InputError(f"agreement_matrix: value={value!r} is no column of verdicts. {known}")
    verdicts = table.xs(value, axis=1, level=1)
    found = {str(name): _numbers(cells_of(verdicts[name]), name, value) for name in verdicts.columns}
    runs = scores[~scores["run_id"].duplicated()].reset_index(drop=True)
    if labels is not None:
        for name, given in references_of(runs, labels, on, "agreement_matrix").items():
            name = "people" if name == "reference" else name
            name = f"{name} (label)" if name in found else name
            found[name] = _numbers(given, name, value)
    if len(found) < 2:
        raise InputError(f"agreement_matrix: two raters or more are compared; there are: {list(found)!r}")
    owners = cells_of(runs["task_id"]) if "task_id" in runs.columns else list(range(len(runs)))
    return found, codes(owners), value


def _numbers(given: Sequence[Any], name: Any, value: str) -> np.ndarray:
    # Samples that differ in their label come as a list, which is no verdict.
    known = [None if isinstance(cell, list) else cell for cell in given]
    odd = [cell for cell in known if cell is not None and not is_truth(cell)
           and not (is_number(cell) and (value != "passed" or cell in (0, 1)))]  # fmt: skip
    if odd:
        wanted = "a truth value" if value == "passed" else "a number"
        raise InputError(f"agreement_matrix: {name!r} has {odd[0]!r}, which is not {wanted}; say another value")
    return np.array([np.nan if cell is None else float(cell) for cell in known], dtype=float)


def _cell(raters: int) -> float:
    """Height of a cell in inches."""
    return 0.46 if raters <= _DETAILED else 0.3 if raters <= 6 else 0.24


def _draw(ax: Axes, raters: Mapping[str, np.ndarray], pairs: Mapping[Any, Any], measure: str) -> None:
    import seaborn as sns

    size, detailed = len(raters), len(raters) <= _DETAILED
    cells, texts = np.full((size, size), np.nan), np.full((size, size), "", dtype=object)
    for (i, j), line in pairs.items():
        cells[i, j] = cells[j, i] = np.nan if line.get(measure) is None else line[measure]
        texts[i, j] = texts[j, i] = _text(line, measure, detailed)
    for i, given in enumerate(raters.values()):
        texts[i, i] = f"n={np.isfinite(given).sum()}"
    low = 0.0 if measure == "accuracy" else -1.0
    colour_map = "crest" if measure == "accuracy" else sns.diverging_palette(40, 240, s=85, l=45, as_cmap=True)
    marks = {"size": 6 if detailed or size <= 7 else 5}
    sns.heatmap(cells, cmap=colour_map, vmin=low, vmax=1.0, linewidths=0.8, cbar=False, ax=ax)
    for (i, j), text in np.ndenumerate(texts):
        dark = i != j and abs(cells[i, j]) > 0.6
        quiet = i == j or np.isnan(cells[i, j])
        colour = "0.45" if quiet else "white" if dark else "black"
        ax.text(j + 0.5, i + 0.5, text, ha="center", va="center", color=colour, **marks)


def _text(line: Mapping[str, Any], measure: str, detailed: bool) -> str:
    if line.get(measure) is None or line[measure] != line[measure]:
        return f"–\nn={line['n']}" if detailed else "–"
    text = share(line[measure])
    if not detailed:
        return text
    low, high = line.get(f"{measure}_low"), line.get(f"{measure}_high")
    ends = "" if low is None else f"\n{share(low)} to {share(high)}"
    return f"{text}{ends}\nn={line['n']}"
