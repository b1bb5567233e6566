"""How often agents succeed, as a dot plot with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..errors import InputError
from ..reports import summarize
from .paper import (
    LABEL,
    Line,
    bare,
    colours,
    column_figure,
    dot,
    inches,
    interval,
    lay_out,
    lines_of,
    rate_axis,
    remark,
    short,
    text_of,
)

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
    with column_figure(0.5 + inches(lines), ax) as axes:
        for y, row in lay_out(axes, lines):
            _draw_group(axes, y, row, colour)
        bare(axes)
        rate_axis(axes)
        axes.set_xlabel(f"Score ({100 * ci:g} % interval over tasks)")
        return axes


def _lines(table: pd.DataFrame, headed: Sequence[str], colour: str) -> list[Line]:
    groups: dict[str, list[tuple[str, Any]]] = {}
    for row in table.to_dict("records"):
        text = short(text_of(row[colour]), LABEL)
        if row["n"] and row["unscored"]:
            text += f"\n{row['unscored']} of {row['n'] + row['unscored']} unscored"
        groups.setdefault(", ".join(text_of(row[name]) for name in headed), []).append((text, row))
    return lines_of(groups, headed=bool(headed))


def _draw_group(ax: Axes, y: float, row: Any, of: str) -> None:
    if pd.isna(row["score"]):
        remark(ax, 0.0, y, f"none of {row['unscored']} rows scored")
        return
    (colour,) = colours([row[of]], of=of)
    interval(ax, y, row["low"], row["high"], colour)
    dot(ax, row["score"], y, row[of], of)
