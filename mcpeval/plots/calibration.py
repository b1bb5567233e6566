"""Whether a judge's scores mean what they say: against labels, and against the length of the transcript."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from ..errors import InputError
from ..frames import cells_of
from ..reports.agreements import comparisons, measured
from ..reports.cards import lengths_of
from ..reports.columns import check_ci, check_repeats, groups_of, numbers, units
from ..reports.rated import VALUES, kind_of, rated, references_of
from ..reports.summaries import mean_of
from .paper import (
    ENTRY,
    QUIET,
    bare,
    check,
    colours,
    column_figure,
    dodge,
    key,
    key_inches,
    marker,
    rate_axis,
    remark,
    share,
    short,
    text_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SAID = {"accuracy": "Accuracy", "spearman": "Spearman's correlation"}
_ROW = 0.075  # of the scale: from one line of counts to the next


class _Bin(NamedTuple):
    """Labelled runs whose scores are alike; `score` is their mean, `rate` that of their labels."""

    place: float
    score: float
    rate: float
    low: float
    high: float
    n: int


def reliability(
    scores: pd.DataFrame,
    labels: str | pd.Series | pd.DataFrame | Mapping[Any, Any],
    *,
    on: str = "run_id",
    bins: int = 10,
    ci: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """The reliability diagram of each judge: how often what it scores so high is right.

    The runs are put in bins by their score; a dot stands at the mean score of its bin and the rate of
    the labels there, with its interval. On the diagonal a score means what it says; below it the
    judge is too lenient. The numbers below are the labelled runs of each bin, and the key says the
    expected calibration error (ECE): the mean distance from the diagonal, each bin weighed by its
    runs; the bias, mean score less mean label; and how many labelled runs have no score.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it. Reads ``score``, `on` and, where they exist, ``evaluator``, ``task_id``,
        ``run_id``. Each row is a verdict: a judge's samples count one by one.
    labels : str, Series, dict or DataFrame
        As the reference of `agreement`: truth values, or numbers from 0 to 1. Of several annotators
        the mean is taken.
    on : str
        The column that says which run, or task, a label belongs to.
    bins : int
        Bins of equal width. A judge with no more different scores than that, and far enough from each
        other, has a bin for each.
    ci : float
        Confidence of the intervals, as those of `summarize`.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure as wide as a paper's column.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        `scores` has no rows or not the columns, no label belongs to a row, labels are no rates, or an
        argument is impossible.

    References
    ----------
    Naeini, Cooper & Hauskrecht (2015), AAAI: the expected calibration error.
    """
    check(scores, "reliability", ["score"])
    check_ci(ci, "reliability")
    check_repeats(scores, [], "reliability")
    if isinstance(bins, bool) or not isinstance(bins, int) or not 2 <= bins <= 20:
        raise InputError(f"reliability: bins={bins!r} should be a whole number from 2 to 20")
    truths, values = _rates(scores, labels, on), numbers(scores, "score", "reliability")
    tasks, runs = units(scores)
    judges = []
    for group, rows in groups_of(scores, ["evaluator"] if "evaluator" in scores.columns else []):
        rows = rows[~np.isnan(truths[rows])]
        known = rows[~np.isnan(values[rows])]
        name = text_of(group[0]) if group else "all scores"
        found = _binned(values[known], truths[known], tasks[known], runs[known], bins, ci)
        judges.append((name, found, _said(name, found, values[known], truths[known], len(rows) - len(known))))
    texts = [text for *_, text in judges]
    with column_figure(2.7 + 0.13 * len(judges) + key_inches(texts), ax) as axes:
        return _draw_reliability(axes, judges)


def _rates(scores: pd.DataFrame, labels: Any, on: str) -> np.ndarray:
    """The mean label of each row, shape (rows,), NaN where there is none."""
    references = references_of(scores, labels, on, "reliability")
    kind = kind_of(references, "reliability")
    given = [[label for label in row if label is not None] for row in zip(*references.values(), strict=True)]
    odd = [label for row in given for label in row if kind == "texts" or not 0 <= label <= 1]
    if odd:
        raise InputError(f"reliability: labels has {odd[0]!r}; expected truth values, or numbers from 0 to 1")
    return np.array([float(np.mean(row)) if row else np.nan for row in given], dtype=float)


def _binned(
    values: np.ndarray, truths: np.ndarray, tasks: np.ndarray, runs: np.ndarray, bins: int, ci: float
) -> list[_Bin]:
    distinct = np.unique(values)
    single = len(distinct) <= bins and (np.diff(distinct) > 0.07).all()
    of = np.searchsorted(distinct, values) if single else np.minimum((values * bins + 1e-9).astype(int), bins - 1)
    found = []
    for one in np.unique(of):
        own = of == one
        line = mean_of(truths[own], tasks[own], runs[own], ci, "auto", 0, True)
        low, high = (np.nan if line[end] is None else line[end] for end in ("low", "high"))
        place = distinct[one] if single else (one + 0.5) / bins
        found.append(_Bin(place, float(values[own].mean()), line["score"], low, high, int(own.sum())))
    return found


def _said(name: str, found: Sequence[_Bin], values: np.ndarray, truths: np.ndarray, unscored: int) -> str:
    lost = f", {unscored} unscored" if unscored else ""
    if not found:
        return f"{short(name, ENTRY, 1)}\nno labelled run scored{lost}"
    error = sum(one.n * abs(one.rate - one.score) for one in found) / len(values)
    bias = f"{values.mean() - truths.mean():+.2f}".replace("0.", ".").replace("-", "−")
    return f"{short(name, ENTRY, 1)}\nECE {share(error)}, bias {bias}{lost}"


def _draw_reliability(ax: Axes, judges: Sequence[tuple[str, Sequence[_Bin], str]]) -> Axes:
    from matplotlib.transforms import offset_copy

    ax.plot([0.0, 1.0], [0.0, 1.0], color="0.55", linewidth=0.8, linestyle=":", zorder=1, label="_diagonal")
    marks = []
    for i, (name, found, _) in enumerate(judges):
        (colour,), mark = colours([name], of="evaluator"), marker(name, "evaluator")
        beside = offset_copy(ax.transData, ax.figure, x=dodge(i, len(judges)), units="points")
        x, y = [one.score for one in found], [one.rate for one in found]
        ax.vlines(x, [one.low for one in found], [one.high for one in found], color=colour, transform=beside)
        ax.plot(x, y, color=colour, marker=mark, markersize=4.5, linewidth=1.1, transform=beside, label=name)
        for one in found:
            ax.text(one.place, -_ROW * (i + 1), one.n, ha="center", va="center", size=6, color=colour)
        marks += ax.plot([], [], color=colour, marker=mark, markersize=4.5, linewidth=1.1)
    for x, y, text, ha in ((0.02, 0.97, "too strict", "left"), (0.98, 0.03, "too lenient", "right")):
        ax.text(x, y, text, ha=ha, va="center", color=QUIET, style="italic", size=6)
    bare(ax, "y")
    rate_axis(ax, "x")
    rate_axis(ax, "y")
    ax.set_ylim(-_ROW * (len(judges) + 0.6), 1.03)
    ax.set_xlabel("Score\nbelow the line: labelled runs")
    ax.set_ylabel("Rate of the labels")
    key(ax, list(zip(marks, [text for *_, text in judges], strict=True)))
    return ax


def length(
    scores: pd.DataFrame,
    labels: str | pd.Series | pd.DataFrame | Mapping[Any, Any],
    runs: pd.DataFrame,
    *,
    on: str = "run_id",
    value: str | None = None,
    bins: int = 3,
    ci: float = 0.95,
    seed: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Whether a judge agrees less with people about long transcripts than about short ones.

    The labelled runs are put in bins of equal size by the length of their transcript. A dot stands at
    the median length of its bin and the judge's accuracy there (of amounts, Spearman's correlation),
    with its interval; the faint line through it says which lengths the bin has.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it; reads what `agreement` reads.
    labels : str, Series, dict or DataFrame
        As the reference of `agreement`; with several annotators the judge is held against their
        consensus.
    runs : DataFrame
        As `run` returns it: ``run_id`` with ``messages`` or ``output``, whose characters are the length.
    on, value
        As in `agreement`.
    bins : int
        Three are those of `judge_card`.
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
        As `agreement`; or `runs` is no such frame, or `bins` is impossible.
    """
    check(scores, "length", [])
    check(runs, "length", [], "runs", "run")
    check_ci(ci, "length")
    check_repeats(scores, [], "length")
    if isinstance(bins, bool) or not isinstance(bins, int) or not 2 <= bins <= 12:
        raise InputError(f"length: bins={bins!r} should be a whole number from 2 to 12")
    references = references_of(scores, labels, on, "length")
    kind = kind_of(references, "length")
    sizes, (tasks, run_codes) = lengths_of(scores, runs, "length"), units(scores)
    table = {name: cells_of(scores[name]) for name in (*VALUES, "status") if name in scores.columns}
    judges, levels = [], set()
    for group, rows in groups_of(scores, ["evaluator"] if "evaluator" in scores.columns else []):
        name = text_of(group[0]) if group else "all scores"
        own = rated(table, references, [int(row) for row in rows], kind, value, None, f"length: {name}")
        label = [y for rater, _, _, y in comparisons(own, np.arange(len(rows))) if rater == "judge"][-1]
        labelled = ~np.isnan(label) & ~np.isnan(sizes[rows])
        both = labelled & ~np.isnan(own.judged)
        measure = "spearman" if own.level == "interval" else "accuracy"
        found = []
        for low, high, inside in _bins_of(sizes[rows], run_codes[rows], both, bins):
            line = measured(own.judged[inside], label[inside], tasks[rows][inside], own, ci, seed)
            ends = (line.get(f"{measure}_low", np.nan), line.get(f"{measure}_high", np.nan))
            found.append((float(np.median(sizes[rows][inside])), low, high, line[measure], *ends, line["n"]))
        levels.add(_SAID[measure])
        judges.append((name, found, _counted(name, int(both.sum()), int(labelled.sum() - both.sum()))))
    with column_figure(2.2 + key_inches([text for *_, text in judges]), ax) as axes:
        return _draw_length(axes, judges, " or ".join(sorted(levels)))


def _bins_of(
    sizes: np.ndarray, runs: np.ndarray, known: np.ndarray, bins: int
) -> list[tuple[float, float, np.ndarray]]:
    """The shortest and the longest of each bin, and which rows are in it; the bins have as many runs each."""
    if not known.any():
        return []
    of_run = dict(zip(runs[known], sizes[known], strict=True))
    ends = np.quantile(list(of_run.values()), np.arange(1, bins) / bins)
    place = np.searchsorted(ends, sizes, side="left")
    chosen = [known & (place == one) for one in range(bins)]
    return [(float(sizes[own].min()), float(sizes[own].max()), own) for own in chosen if own.any()]


def _counted(name: str, n: int, unscored: int) -> str:
    return f"{short(name, ENTRY, 1)} (n={n}{f', {unscored} unscored' if unscored else ''})"


def _draw_length(ax: Axes, judges: Sequence[tuple[str, Sequence[Any], str]], measure: str) -> Axes:
    from matplotlib.transforms import offset_copy

    marks, sizes = [], [end for _, found, _ in judges for _, low, high, *_ in found for end in (low, high)]
    for i, (name, found, _) in enumerate(judges):
        (colour,), mark = colours([name], of="evaluator"), marker(name, "evaluator")
        beside = offset_copy(ax.transData, ax.figure, x=dodge(i, len(judges)), units="points")
        look = {"color": colour, "marker": mark, "markersize": 4.5, "linewidth": 1.1}
        for x, shortest, longest, y, low, high, _ in found:
            ax.hlines(y, shortest, longest, color=colour, linewidth=0.6, alpha=0.4)
            ax.vlines(x, low, high, color=colour, transform=beside)
        ax.plot([each[0] for each in found], [each[3] for each in found], transform=beside, label=name, **look)
        marks += ax.plot([], [], **look)
    if sizes and min(sizes) > 0 and max(sizes) > 10 * min(sizes):
        ax.set_xscale("log")
    if not sizes:
        ax.set_xticks([])
        remark(ax, 0.5, 0.5, "no labelled run scored", ha="center", transform=ax.transAxes)
    bare(ax, "y")
    if measure == _SAID["accuracy"]:
        rate_axis(ax, "y")
    ax.set_xlabel("Characters of the transcript")
    ax.set_ylabel(measure)
    key(ax, list(zip(marks, [text for *_, text in judges], strict=True)))
    return ax
