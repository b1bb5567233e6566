"""How often agents succeed, as a dot plot with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..errors import InputError
from ..reports import summarize
from .paper import LABEL, ROW, colours, column_figure, marker, short, text_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def success(
    scores: pd.DataFrame, *, by: str | Sequence[str] = "agent", ci: float = 0.95, ax: Axes | None = None
) -> Axes:
    """The mean score of each agent with its interval, as a dot plot.

    One line per group, under a heading for each evaluator (and for each value of the other columns
    of `by`). What could not be scored is said under the name.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it; reads what `summarize` reads.
    by : str or list of str
        Columns that make the groups. The first one (or ``agent``, where it is among them) names the
        lines and has the colours, the others go into the headings: ``by=["agent", "category"]``.
    ci : float
        Confidence of the intervals.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure as wide as a paper's column and as high as needed.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        `scores` has no rows, or as `summarize`.
    """
    if not isinstance(scores, pd.DataFrame):
        raise InputError(f"success: scores is a {type(scores).__name__}; expected a frame, as score() returns it")
    if not isinstance(by, Iterable):
        raise InputError(f"success: by={by!r} should be names of columns")
    names = [by] if isinstance(by, str) else list(by)
    if not names or scores.empty:
        raise InputError(f"success: nothing to draw: {len(scores)} rows of scores, by={by!r}")
    colour = "agent" if "agent" in names else names[0]
    headed = [name for name in names if name != colour]
    if "evaluator" in scores.columns and "evaluator" not in names:
        headed.insert(0, "evaluator")
    lines = _lines(summarize(scores, [*headed, colour], ci=ci), headed, colour)

    height = 0.5 + ROW * sum(line.height for line in lines)
    with column_figure(height, ax) as axes:
        return _draw(axes, lines, colour, f"Score ({100 * ci:g} % interval over tasks)")


@dataclass(frozen=True)
class _Line:
    """A line of a dot plot: a heading, or (where there is a `row` of a summary) a group."""

    text: str
    height: float  # in lines of text
    name: Any = None
    row: Any = None


def _lines(table: pd.DataFrame, headed: Sequence[str], colour: str) -> list[_Line]:
    groups: dict[str, list[Any]] = {}
    for row in table.to_dict("records"):
        groups.setdefault(", ".join(text_of(row[name]) for name in headed), []).append(row)
    lines = []
    for heading, rows in groups.items():
        if headed:
            text = short(heading, 1.6 * LABEL)
            lines.append(_Line(text, 1.0 + 0.7 * text.count("\n") + (0.3 if lines else 0.0)))
        for row in rows:
            text = short(text_of(row[colour]), LABEL)
            if row["n"] and row["unscored"]:
                text += f"\n{row['unscored']} of {row['n'] + row['unscored']} unscored"
            lines.append(_Line(text, 1.0 + 0.7 * text.count("\n"), row[colour], row))
    return lines


def _draw(ax: Axes, lines: Sequence[_Line], colour: str, label: str) -> Axes:
    ends = list(accumulate(line.height for line in lines))
    ys = [end - min(line.height, 1.0 + 0.7 * line.text.count("\n")) / 2 for end, line in zip(ends, lines, strict=True)]
    for y, line in zip(ys, lines, strict=True):
        if line.row is None:
            ax.text(0.0, y, line.text, va="center", weight="bold", transform=ax.get_yaxis_transform())
        else:
            _draw_group(ax, y, line, colour)
    groups = [(y, line.text) for y, line in zip(ys, lines, strict=True) if line.row is not None]
    ax.set_yticks([y for y, _ in groups], [text for _, text in groups])
    ax.set_ylim(ends[-1] + 0.15, -0.15)
    ax.set_xlim(-0.03, 1.03)
    ax.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0", ".25", ".5", ".75", "1"])
    ax.set_xlabel(label)
    ax.grid(visible=False, axis="y")
    ax.grid(visible=True, axis="x", color="0.88", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(length=0)
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
    return ax


def _draw_group(ax: Axes, y: float, line: _Line, of: str) -> None:
    row, (colour,) = line.row, colours([line.name], of=of)
    if pd.isna(row["score"]):
        ax.text(0.0, y, f"none of {row['unscored']} rows scored", va="center", color="0.45", style="italic")
        return
    if not pd.isna(row["low"]):
        ax.hlines(y, row["low"], row["high"], color=colour, linewidth=1.6)
    look = {"color": colour, "marker": marker(line.name, of), "label": text_of(line.name)}
    ax.scatter(row["score"], y, s=22, linewidths=0, zorder=3, **look)
