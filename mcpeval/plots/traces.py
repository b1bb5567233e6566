"""What agents did: tokens and steps of their runs, and the tools that they called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ..evaluators.called import check_columns, made_calls
from ..frames import cells_of, rows_of
from .paper import (
    LABEL,
    STYLE,
    Line,
    bare,
    check,
    colours,
    column_figure,
    dot,
    heads_of,
    inches,
    lay_out,
    lines_of,
    name_map,
    remark,
    room,
    short,
    text_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_VALUES = ("tokens_in", "tokens_out", "turns", "n_tool_calls")
_MARKS = "median, middle half and 90 % of the runs"
_SAID = {
    "tokens_in": "Tokens in",
    "tokens_out": "Tokens out",
    "turns": "Turns",
    "n_tool_calls": "Tool calls",
    "seconds": "Seconds",
    "cost_usd": "US dollars",
}


def usage(
    runs: pd.DataFrame, values: str | Sequence[str] = _VALUES, *, by: str = "agent", ax: Axes | None = None
) -> Axes:
    """What the runs of each agent used: tokens, turns, tool calls, beside each other.

    The dot is the median, the thick line has the middle half of the runs, and the thin one 90 %.

    Parameters
    ----------
    runs : DataFrame
        As `run` returns it; reads `by` and the columns of `values`. A missing number is unknown, and
        counted under the name.
    values : str or list of str
        Columns of numbers, as ``tokens_in``, ``tokens_out``, ``turns``, ``n_tool_calls``, ``seconds``.
    by : str
        The column that names the lines.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure as wide as a paper's column and as high as needed.

    Returns
    -------
    Axes
        Of several values each has its part of it: ``ax.child_axes``, in the order of `values`.

    Raises
    ------
    InputError
        `runs` has no rows or not the columns, or a value is no number.
    """
    names = [values] if isinstance(values, str) else list(values) if isinstance(values, Iterable) else []
    if not 1 <= len(names) <= 6:
        raise InputError(f"usage: values={values!r} should be one to six columns of runs")
    check(runs, "usage", [by, *names], "runs", "run")
    try:
        table = runs[names].apply(pd.to_numeric).astype("Float64").astype(float)
    except (TypeError, ValueError) as error:
        raise InputError(f"usage: values={values!r} should be columns of numbers: {error}") from None
    groups = [(name, own) for name, own in table.groupby(runs[by].to_numpy(), sort=False, dropna=False)]
    lines = lines_of({"": [(_named(name, own), (name, own)) for name, own in groups]}, headed=False)
    with column_figure(0.85 + inches(lines), ax) as axes:
        parts = _parts(axes, len(names))
        for part, value in zip(parts, names, strict=True):
            top = _draw_value(part, lines, value, by)
            said = _SAID.get(value, text_of(value))
            if len(parts) == 1:
                part.set_xlabel(f"{said}\n{_MARKS.replace(' and', chr(10) + 'and')}")
            else:
                _narrow(part, said, top)
        for part in parts[1:]:
            part.set_yticklabels([])
        if len(parts) > 1:
            under = {"xycoords": "axes fraction", "xytext": (0, -16), "textcoords": "offset points"}
            axes.annotate(_MARKS, (0.5, 0.0), ha="center", va="top", annotation_clip=False, **under)
        return axes


def _named(name: Any, own: pd.DataFrame) -> str:
    text, lost = short(text_of(name), LABEL), int(own.isna().any(axis=1).sum())
    return text + (f"\n{lost} of {len(own)} not all known" if lost else "")


def _parts(ax: Axes, count: int) -> list[Axes]:
    """`ax` itself, or so many Axes in it, side by side."""
    if count == 1:
        return [ax]
    ax.set_axis_off()
    gap = 0.06
    width = (1 - gap * (count - 1)) / count
    parts = [ax.inset_axes([i * (width + gap), 0.0, width, 1.0]) for i in range(count)]
    for part in parts:
        part.tick_params(labelsize=STYLE["xtick.labelsize"])
    return parts


def _draw_value(ax: Axes, lines: Sequence[Line], value: str, by: str) -> float:
    most = 0.0
    for y, (name, own) in lay_out(ax, lines):
        known = own[value].dropna().to_numpy()
        if not len(known):
            remark(ax, 0.03, y, "unknown", size=6, transform=ax.get_yaxis_transform())
            continue
        (colour,) = colours([name], of=by)
        lowest, low, median, high, highest = np.quantile(known, [0.05, 0.25, 0.5, 0.75, 0.95])
        ax.hlines(y, lowest, highest, color=colour, linewidth=0.9)
        ax.hlines(y, low, high, color=colour, linewidth=3.2, alpha=0.55)
        dot(ax, median, y, name, by, s=16, linewidths=0)
        most = max(most, highest)
    bare(ax)
    top = most or 1.0
    ax.set_xlim(-0.06 * top, 1.1 * top)
    return top


def _narrow(ax: Axes, title: str, top: float) -> None:
    """What a small Axes has room for: its ends, and a title in two lines."""
    ax.set_xticks([0.0, top], ["0", _compact(top)])
    for label, side in zip(ax.get_xticklabels(), ("center", "right"), strict=True):
        label.set_ha(side)
    ax.set_title(title.replace(" ", "\n", 1), size=STYLE["font.size"])


def _compact(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= 10 * size or letter == "M" and value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def tool_use(runs: pd.DataFrame, *, by: str = "agent", most: int = 20, ax: Axes | None = None) -> Axes:
    """Which tools each agent called, and how often the calls failed, as a heat map.

    A cell says how many calls of the tool a run has on the average. The bar at its foot is as wide as
    the share of those calls that failed (the whole cell is all of them).

    Parameters
    ----------
    runs : DataFrame
        As `run` returns it. Reads `by` and ``tool_calls``, else ``messages``. A run that does not say
        which calls it made is left out, and counted under the figure.
    by : str
        The column that names the columns.
    most : int
        So many tools are shown, the most called ones; the others are put together.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure as wide as a paper's column and as high as needed.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        `runs` has no rows or not the columns, a cell is no list of calls, or `most` is no number.
    """
    check(runs, "tool_use", [by], "runs", "run")
    check_columns("plots.tool_use", runs.columns, expected=False)
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise InputError(f"tool_use: most={most!r} should be a whole number from 1 on")
    names = list(dict.fromkeys(text_of(name) for name in cells_of(runs[by])))  # as rows_of has them
    calls, counted = _calls(runs, by)
    lost = len(runs) - sum(counted.values())
    tools = _most_called(calls, most)
    shape = (max(1, len(set(tools.values()))), len(names))
    made, failed = np.zeros(shape), np.zeros(shape)
    places = {shown: i for i, shown in enumerate(dict.fromkeys(tools.values()))}
    for name, tool, wrong in calls:
        at = places[tools[tool]], names.index(name)
        made[at] += 1
        failed[at] += wrong
    per_run = made / np.array([counted.get(name, 0) or np.nan for name in names])
    lines = [short(tool, LABEL) for tool in places] or ["(no tool was called)"]
    heads = heads_of(names)
    with column_figure(0.6 + heads.inches + 0.24 * shape[0], ax) as axes:
        _draw_map(axes, per_run, failed, made)
        name_map(axes, lines, heads if ax is None else heads_of(names, room(ax)))
        note = f"\n{lost} of {len(runs)} runs do not say their calls" if lost else ""
        axes.set_xlabel(f"Calls per run\nbar: share of the calls that failed{note}")
        return axes


def _calls(runs: pd.DataFrame, by: str) -> tuple[list[tuple[str, str, bool]], dict[str, int]]:
    """(agent, tool, whether it failed) of each call, and how many runs of each agent say their calls."""
    found, counted, servers = [], {}, {}
    columns = [name for name in (by, "tool_calls", "messages") if name in runs.columns]
    for place, row in enumerate(rows_of(runs[list(dict.fromkeys(columns))])):
        try:
            made = made_calls(row)
        except InputError as error:
            raise InputError(f"tool_use: row {place}: {error}") from error
        if made is None:
            continue
        name = text_of(row[by])
        counted[name] = counted.get(name, 0) + 1
        for call in made:
            servers.setdefault(call.name, set()).add(call.server)
            found.append((name, call, bool(call.is_error)))
    # A server is named only where two have a tool of one name.
    return [
        (name, text_of(f"{call.server}: {call.name}" if len(servers[call.name] - {None}) > 1 else call.name), wrong)
        for name, call, wrong in found
    ], counted


def _most_called(calls: Sequence[tuple[str, str, bool]], most: int) -> dict[str, str]:
    """The line of each tool: its own, or that of all others."""
    counts: dict[str, int] = {}
    for _, tool, _ in calls:
        counts[tool] = counts.get(tool, 0) + 1
    tools = sorted(counts, key=lambda tool: -counts[tool])
    if len(tools) > most + 1:
        rest = f"({len(tools) - most} other tools)"
        return {tool: tool if i < most else rest for i, tool in enumerate(tools)}
    return {tool: tool for tool in tools}


def _draw_map(ax: Axes, per_run: np.ndarray, failed: np.ndarray, made: np.ndarray) -> None:
    import seaborn as sns

    top = np.nanmax(per_run, initial=0.0) or 1.0
    sns.heatmap(per_run, cmap="crest", vmin=0.0, vmax=top, linewidths=0.8, cbar=False, ax=ax)
    size = 6 if per_run.shape[1] <= 7 else 5
    for (i, j), value in np.ndenumerate(per_run):
        dark = value > 0.45 * top
        text = "?" if np.isnan(value) else _calls_text(value)
        ax.text(j + 0.5, i + 0.45, text, ha="center", va="center", size=size, color="white" if dark else "black")
        if failed[i, j]:
            width = failed[i, j] / made[i, j]
            look = {"facecolor": "#d55e00", "edgecolor": "white", "linewidth": 0.4, "label": "failed"}
            ax.barh(i + 0.88, 0.94 * width, left=j + 0.03, height=0.16, **look)


def _calls_text(value: float) -> str:
    if value == 0:
        return "·"
    return f"{value:.1f}".replace("0.", ".", 1) if 0.05 <= value < 10 else "<.1" if value < 0.05 else f"{value:.0f}"
