"""Who is better than whom, as a forest plot of the differences within tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..errors import InputError
from .paper import (
    LABEL,
    QUIET,
    Line,
    bare,
    beside,
    check,
    colours,
    column_figure,
    dot,
    inches,
    interval,
    lay_out,
    lines_of,
    remark,
    share,
    short,
    text_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_READS = ("baseline", "difference", "low", "high", "p_adjusted", "tasks", "unpaired")
_COLUMNS = {"tasks": 23.0, "p": 50.0}  # points from the Axes to where a column of numbers ends


def differences(comparison: pd.DataFrame, *, alpha: float = 0.05, ax: Axes | None = None) -> Axes:
    """The differences between agents with their intervals, as a forest plot.

    One line per pair, in the candidate's colour, under a heading for each evaluator and, where every
    pair was compared, for each baseline; beside it the number of tasks that both have a score for,
    and p, adjusted. A dot is filled, and its p bold, where p is below `alpha`; tasks that only one of
    the two has a score for are counted under the name.

    Parameters
    ----------
    comparison : DataFrame
        As `compare` returns it. Reads the column before ``baseline`` (the one that was compared),
        ``baseline``, ``difference``, ``low``, ``high``, ``p_adjusted``, ``tasks``, ``unpaired`` and, where
        it exists, ``evaluator``.
    alpha : float
        Level of the tests.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure as wide as a paper's column and as high as needed.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        `comparison` has no rows or not the columns, or `alpha` is no level.
    """
    check(comparison, "differences", _READS, "comparison", "compare")
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0 < alpha < 1:
        raise InputError(f"differences: alpha={alpha!r} should lie between 0 and 1, as 0.05 does")
    by = comparison.columns[comparison.columns.get_loc("baseline") - 1]
    baselines = comparison["baseline"].map(text_of)
    common = baselines.iloc[0] if baselines.nunique() == 1 else None
    lines = _lines(comparison, by, common is not None)
    with column_figure(0.85 + inches(lines), ax) as axes:
        for y, row in lay_out(axes, lines):
            _draw_pair(axes, y, row, by, alpha)
        _axis(axes, comparison)
        less = f" to {short(common, 1.5 * LABEL)}" if common else ""
        axes.set_xlabel(f"Difference{less}\nfilled: adjusted p < {share(alpha, 6, exact=True)}")
        return axes


def _lines(comparison: pd.DataFrame, by: str, one_baseline: bool) -> list[Line]:
    """Under a heading for each evaluator and, where there are several, for each baseline."""
    groups: dict[str, list[tuple[str, Any]]] = {}
    several = "evaluator" in comparison.columns and by != "evaluator"
    for row in comparison.to_dict("records"):
        text = short(text_of(row[by]), LABEL)
        if row["unpaired"] and row["tasks"]:
            text += f"\n{row['unpaired']} unpaired"
        heading = [text_of(row["evaluator"])] if several else []
        heading += [] if one_baseline else [f"to {text_of(row['baseline'])}"]
        groups.setdefault(", ".join(heading), []).append((text, row))
    return lines_of(groups, headed=several or not one_baseline)


def _draw_pair(ax: Axes, y: float, row: Any, by: str, alpha: float) -> None:
    if pd.isna(row["difference"]):
        remark(ax, 0.02, y, "no shared task", transform=ax.get_yaxis_transform())
        return
    clear = bool(row["p_adjusted"] < alpha)
    (colour,) = colours([row[by]], of=by)
    interval(ax, y, row["low"], row["high"], colour)
    dot(ax, row["difference"], y, row[by], by, filled=clear)
    beside(ax, y, str(row["tasks"]), _COLUMNS["tasks"])
    beside(ax, y, _p(row["p_adjusted"]), _COLUMNS["p"], weight="bold" if clear else "normal")


def _p(value: float) -> str:
    return "" if pd.isna(value) else "<.001" if value < 0.001 else share(value, 3)


def _axis(ax: Axes, comparison: pd.DataFrame) -> None:
    bare(ax)
    ax.axvline(0.0, color="0.35", linewidth=0.8, zorder=1)
    ends = comparison[["difference", "low", "high"]].to_numpy(dtype=float)
    known = np.append(ends[~np.isnan(ends)], 0.0)
    low, high = float(known.min()), float(known.max())
    apart = 0.06 * (high - low) or 0.5
    ax.set_xlim(low - apart, high + apart)
    ax.locator_params(axis="x", nbins=5)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("0.", ".", 1).replace("-", "−"))
    top = ax.get_ylim()[1]
    for text, place in _COLUMNS.items():
        beside(ax, top, text, place, va="bottom", color=QUIET)
