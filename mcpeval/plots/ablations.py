"""What an ablation and a probe show: levels and effects as dots with intervals, two factors as a grid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from ..errors import InputError, did_you_mean
from ..reports import summarize
from .paper import LABEL, ROW, WIDTH, colours, column_figure, short, text_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIGNIFICANT = 0.05
_LEVEL = ("level of the first", "level of the second")
_NOTE = 44  # letters of a note in one line


class _Line(NamedTuple):
    """A line of a dot plot: a heading where there is no `point`, else a dot with its interval, or a note."""

    text: str
    point: float | None = None
    low: float = np.nan
    high: float = np.nan
    group: str = ""
    filled: bool = True
    note: str = ""


def ablation(
    scores: pd.DataFrame,
    factors: str | Sequence[str],
    *,
    value: str = "score",
    ci: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """The mean of each level of each factor with its interval, as a dot plot.

    Where all combinations were made, a level's mean is that over all levels of the other factors;
    else (``design="one-at-a-time"``) the other factors are at their baseline. The baseline is the
    first level that appears, and its dot is open.

    Parameters
    ----------
    scores : DataFrame
        As `mcpeval.ablate` returns it; reads the columns of `factors`, `value`, and what `summarize`
        reads.
    factors : str or list of str
        Columns; each has a heading of its own.
    value : str
        ``score``, ``passed``, ``right`` (of an ablation against labels), or another column of numbers.
    ci : float
        Confidence of the intervals.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure as wide as a paper's column.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        `scores` has no rows or not the columns.
    """
    names = _columns(scores, factors, "ablation")
    lines = []
    for factor in names:
        table = _summary(_at_baseline(scores, names, factor), [factor], value, ci)
        lines.append(_Line(text_of(factor)))
        for i, row in enumerate(table.to_dict("records")):
            note = "" if row["n"] else f"none of {row['unscored']} rows scored"
            lines.append(_Line(text_of(row[_LEVEL[0]]), row["score"], row["low"], row["high"], factor, bool(i), note))
    label = f"{_said(value)}\n{100 * ci:g} % interval over tasks\nopen: baseline"
    with column_figure(_inches(lines), ax) as axes:
        _draw(axes, lines, "factor", label)
        if value in ("score", "passed", "right"):
            axes.set_xlim(-0.03, 1.03)
            axes.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0", ".25", ".5", ".75", "1"])
        return axes


def grid(
    scores: pd.DataFrame,
    factors: Sequence[str],
    *,
    value: str = "score",
    ci: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """The mean of each combination of two factors, as a heat map with its numbers and intervals.

    Parameters
    ----------
    scores, value, ci, ax
        As for `ablation`.
    factors : (str, str)
        The factor whose levels are the lines, and the one whose levels are the columns. Where there
        are more factors, the mean is over their levels.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        As `ablation`, or `factors` are not two.
    """
    names = _columns(scores, factors, "grid")
    if len(names) != 2:
        raise InputError(f"grid: factors={factors!r} should be two columns, the one of the lines first")
    table = _summary(scores, names, value, ci)
    down, across = (list(dict.fromkeys(scores[name])) for name in names)
    places = {name: i for i, name in enumerate(across)}
    shape = len(down), len(across)
    means, texts = np.full(shape, np.nan), np.full(shape, "", dtype=object)
    for row in table.to_dict("records"):
        at = down.index(row[_LEVEL[0]]), places[row[_LEVEL[1]]]
        means[at] = row["score"]
        texts[at] = _cell(row)
    with column_figure(0.95 + 0.42 * len(down), ax) as axes:
        import seaborn as sns

        rates = {"vmin": 0.0, "vmax": 1.0} if value in ("score", "passed", "right") else {}
        sns.heatmap(
            means,
            annot=texts,
            fmt="",
            cmap="crest",
            linewidths=0.8,
            cbar=False,
            ax=axes,
            annot_kws={"size": 7},
            **rates,
        )
        # A label has as many letters as its column has room for.
        room = max(6, int(46 * WIDTH / 3.4 / len(across)))
        axes.set_xticks(np.arange(len(across)) + 0.5, [short(text_of(level), room) for level in across], rotation=0)
        axes.set_yticks(np.arange(len(down)) + 0.5, [short(text_of(level), 14) for level in down], rotation=0)
        axes.set_xlabel(f"{text_of(names[1])}\n{_said(value)}\n{100 * ci:g} % interval over tasks")
        axes.set_ylabel(text_of(names[0]))
        axes.tick_params(length=0)
        return axes


def effects(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """What moved a judge, and how far: a forest plot of the effects of a probe.

    Dots are filled where p, adjusted for the number of rows, is below .05.

    Parameters
    ----------
    table : DataFrame
        As `mcpeval.probe` returns it; reads ``evaluator``, ``kind``, ``variant``, ``effect``, ``low``,
        ``high``, ``p_adjusted`` and ``note``.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure as wide as a paper's column.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        `table` has no rows or not the columns.
    """
    read = ["evaluator", "kind", "variant", "effect", "low", "high", "p_adjusted", "note"]
    _columns(table, read, "effects", "table")
    several = table["evaluator"].nunique() > 1
    lines: list[_Line] = []
    for (evaluator, kind), rows in table.groupby(["evaluator", "kind"], sort=False):
        lines.append(_Line(f"{text_of(evaluator)}: {kind}" if several else text_of(kind)))
        for row in rows.to_dict("records"):
            note = "" if pd.isna(row["note"]) else str(row["note"])
            name = "" if pd.isna(row["variant"]) else text_of(row["variant"])
            filled = bool(row["p_adjusted"] < _SIGNIFICANT)
            lines.append(_Line(name, row["effect"], row["low"], row["high"], kind, filled, note))
    with column_figure(_inches(lines), ax) as axes:
        _draw(axes, lines, "kind", "Effect on the score in points\nfilled: adjusted p < .05")
        reach = np.nanmax([10.0, *np.abs(table[["effect", "low", "high"]].to_numpy(dtype=float)).ravel()]) * 1.05
        axes.set_xlim(-reach, reach)
        axes.set_xticks([tick for tick in axes.get_xticks() if abs(tick) <= reach])
        axes.axvline(0.0, color="0.6", linewidth=0.8, zorder=1)
        return axes


def _columns(frame: Any, names: Any, figure: str, what: str = "scores") -> list[str]:
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"{figure}: {what} is a {type(frame).__name__}; expected a frame")
    if frame.empty:
        raise InputError(f"{figure}: nothing to draw: {what} has no rows")
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, Iterable) or not (names := list(names)):
        raise InputError(f"{figure}: factors={names!r} should be names of columns")
    for name in names:
        if name not in frame.columns:
            raise InputError(f"{figure}: {what} has no column {name!r}. {did_you_mean(name, map(str, frame.columns))}")
    return names


def _summary(scores: pd.DataFrame, factors: Sequence[str], value: str, ci: float) -> pd.DataFrame:
    """`summarize` by the levels of `factors`, which may bear the names of its own columns (``method``)."""
    named = dict(zip(_LEVEL, factors))
    return summarize(
        scores.assign(**{name: scores[factor] for name, factor in named.items()}), list(named), value=value, ci=ci
    )


def _at_baseline(scores: pd.DataFrame, factors: Sequence[str], factor: str) -> pd.DataFrame:
    """The rows that say what a level of `factor` does: all of a full design, else those where it alone varies."""
    cells = scores[list(factors)].drop_duplicates()
    if len(cells) == np.prod([scores[name].nunique(dropna=False) for name in factors]):
        return scores
    first = scores.iloc[0]
    others = [scores[name] == first[name] for name in factors if name != factor]
    return scores[np.logical_and.reduce(others)] if others else scores


def _said(value: str) -> str:
    return {"right": "Share of right verdicts", "passed": "Pass rate"}.get(value, value.capitalize())


def _cell(row: dict[str, Any]) -> str:
    if not row["n"]:
        return "unscored"
    ends = "" if pd.isna(row["low"]) else f"\n{_number(row['low'])} to {_number(row['high'])}"
    return f"{_number(row['score'])}{ends}"


def _number(value: float) -> str:
    return f"{value:.2f}".removeprefix("0") if 0 <= value < 1 else f"{value:.2f}" if value < 10 else f"{value:.3g}"


def _rows(line: _Line) -> float:
    """How high the text of a line is, in lines of a figure."""
    texts = [short(line.text, LABEL if line.point is not None else 1.6 * LABEL), short(line.note, _NOTE)]
    return 1.0 + 0.7 * max(text.count("\n") for text in texts)


def _height(line: _Line) -> float:
    return _rows(line) + (0.3 if line.point is None else 0.0)  # a heading stands apart from what is above it


def _inches(lines: Sequence[_Line]) -> float:
    return 0.75 + ROW * sum(map(_height, lines))


def _draw(ax: Axes, lines: Sequence[_Line], of: str, label: str) -> None:
    ends = list(accumulate(_height(line) for line in lines))
    ticks = []
    for y, line in zip([end - _rows(line) / 2 for end, line in zip(ends, lines)], lines):
        if line.point is None:
            heading = short(line.text, 1.6 * LABEL)
            ax.text(0.0, y, heading, va="center", weight="bold", transform=ax.get_yaxis_transform())
            continue
        ticks.append((y, short(line.text, LABEL)))
        if pd.isna(line.point):
            note = short(line.note, _NOTE)
            ax.text(
                0.02, y, note, va="center", color="0.45", style="italic", size=6, transform=ax.get_yaxis_transform()
            )
            continue
        (colour,) = colours([line.group], of=of)
        if not pd.isna(line.low):
            ax.hlines(y, line.low, line.high, color=colour, linewidth=1.6)
        face = colour if line.filled else "white"
        ax.scatter(
            line.point, y, s=22, linewidths=1.2, edgecolors=[colour], facecolors=[face], zorder=3, label=line.text
        )
    ax.set_yticks([y for y, _ in ticks], [text for _, text in ticks])
    ax.set_ylim(ends[-1] + 0.15, -0.15)
    ax.set_xlabel(label)
    ax.grid(visible=False, axis="y")
    ax.grid(visible=True, axis="x", color="0.88", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(length=0)
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
