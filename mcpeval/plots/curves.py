"""What more trials, and more tasks, change: curves with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..errors import InputError
from .paper import (
    ENTRY,
    bare,
    check,
    colours,
    column_figure,
    dodge,
    key,
    key_inches,
    marker,
    of_evaluator,
    rate_axis,
    share,
    short,
    text_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PASSES = ("pass_at_k", "pass_hat_k")


def passes(table: pd.DataFrame, *, evaluator: str | None = None, ax: Axes | None = None) -> Axes:
    """pass@k and pass^k of each agent against the number of trials, with intervals.

    pass@k, the chance that at least one of k trials passes, is a solid line that rises; pass^k, the
    chance that all of them do, a dashed one that falls from the same place. Agents stand beside each
    other at each k, so that no interval hides another.

    Parameters
    ----------
    table : DataFrame
        As `pass_at_k` returns it. Reads ``k``, ``pass_at_k``, ``pass_hat_k``, both with ``_low`` and
        ``_high``, ``tasks`` and, where they exist, ``agent`` and ``evaluator``.
    evaluator : str, optional
        Whose rows are drawn; it has to be said where there are several.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure as wide as a paper's column.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        `table` has no rows or not the columns, or several evaluators.
    """
    ends = [f"{name}{end}" for name in _PASSES for end in ("", "_low", "_high")]
    check(table, "passes", ["k", *ends, "tasks"], "table", "pass_at_k")
    table = of_evaluator(table, evaluator, "passes")
    named = table["agent"] if "agent" in table.columns else pd.Series("all runs", table.index)
    groups = table.groupby(named.astype(object).where(named.notna(), "(none)"), sort=False)
    of_agent = {agent: rows.sort_values("k") for agent, rows in groups}
    counts = [_tasks(rows) for rows in of_agent.values()]
    told = counts if len(set(counts)) > 1 else [""] * len(counts)
    names = [
        short(text_of(agent), ENTRY, 1) + (f" ({n})" if n else "") for agent, n in zip(of_agent, told, strict=True)
    ]
    texts = [*names, "pass@k: one of k", "pass^k: all of k"]
    with column_figure(2.4 + key_inches(texts), ax) as axes:
        marks = [
            _draw_passes(axes, agent, rows, dodge(place, len(of_agent)), faint=len(of_agent) > 4)
            for place, (agent, rows) in enumerate(of_agent.items())
        ]
        marks += [
            *axes.plot([], [], color="0.35", marker="o", markersize=4),
            *axes.plot([], [], color="0.35", marker="o", markersize=4, linestyle="--", markerfacecolor="white"),
        ]
        _trials_axis(axes, sorted(set(table["k"])))
        bare(axes, "y")
        rate_axis(axes, "y")
        axes.set_xlabel("Trials k" if any(told) else f"Trials k, {counts[0]}")
        axes.set_ylabel("Chance to pass")
        key(axes, list(zip(marks, texts, strict=True)))
        return axes


def _tasks(rows: pd.DataFrame) -> str:
    count = int(rows["tasks"].max())
    return f"{count} task{'' if count == 1 else 's'}"


def _draw_passes(ax: Axes, agent: Any, rows: pd.DataFrame, apart: float, *, faint: bool) -> Any:
    from matplotlib.transforms import offset_copy

    (colour,) = colours([agent], of="agent")
    beside = offset_copy(ax.transData, ax.figure, x=apart, units="points")
    bars = {"linewidth": 0.7, "alpha": 0.4} if faint else {"linewidth": 1.0}
    for name, dashes, face in zip(_PASSES, ("-", "--"), (colour, "white"), strict=True):
        ax.vlines(rows["k"], rows[f"{name}_low"], rows[f"{name}_high"], color=colour, transform=beside, **bars)
        look = {"marker": marker(agent, "agent"), "markersize": 4, "markerfacecolor": face, "linewidth": 1.1}
        label = f"{text_of(agent)} {name}"
        ax.plot(rows["k"], rows[name], dashes, color=colour, transform=beside, label=label, **look)
    (mark,) = ax.plot([], [], color=colour, marker=marker(agent, "agent"), markersize=4, linewidth=1.1)
    return mark


def _trials_axis(ax: Axes, ks: Sequence[int]) -> None:
    """Steps of one where k goes up by one, else as far apart as they are multiples of each other."""
    low, high = ks[0], ks[-1]
    if high - low + 1 > len(ks):
        ax.set_xscale("log", base=2)
        ax.minorticks_off()
        ax.set_xlim(low / 2 ** (0.1 * len(ks)), high * 2 ** (0.1 * len(ks)))
    else:
        ax.set_xlim(low - 0.25 - 0.05 * len(ks), high + 0.25 + 0.05 * len(ks))
    ax.set_xticks(ks, [str(k) for k in ks])


def power(table: pd.DataFrame, *, value: str = "power", ax: Axes | None = None) -> Axes:
    """The chance to show a difference against the number of tasks, or the difference that so many show.

    Parameters
    ----------
    table : DataFrame
        As `mcpeval.reports.power` returns it for a list of `tasks`; with a list of differences, or of
        numbers of trials, there is a line for each. Reads ``tasks``, ``trials``, ``difference``, ``power``.
    value : {"power", "difference"}
        What is drawn. "difference" is for a table that was made without one.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure as wide as a paper's column.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        `table` has no rows or not the columns, or `value` is none of the two.

    Examples
    --------
    >>> from mcpeval import plots, reports
    >>> ax = plots.power(reports.power([0.1, 0.2], tasks=[25, 50, 100, 200], rate=0.6))
    """
    check(table, "power", ["tasks", "trials", "difference", "power"], "table", "power")
    if value not in ("power", "difference"):
        raise InputError(f"power: value={value!r} should be 'power' or 'difference'")
    known = table[table[["tasks", value]].notna().all(axis=1)].astype({"tasks": float})
    keys = ["trials"] if value == "difference" else ["difference", "trials"]
    groups = list(known.groupby(keys, sort=False))
    texts = [_of_line(dict(zip(keys, group, strict=True)), known) for group, _ in groups]
    with column_figure(2.1 + key_inches(texts), ax) as axes:
        marks = []
        for i, (_, rows) in enumerate(groups):
            rows = rows.sort_values("tasks")
            (colour,) = colours([texts[i]], of="power")
            look = {"color": colour, "marker": marker(texts[i], "power"), "markersize": 4, "linewidth": 1.2}
            marks += axes.plot(rows["tasks"], rows[value], label=texts[i], **look)
        bare(axes, "y")
        if value == "power":
            rate_axis(axes, "y")
            axes.axhline(0.8, color="0.35", linewidth=0.8, linestyle=":", zorder=1)
        else:
            axes.set_ylim(bottom=0.0)
        axes.set_xlabel("Tasks")
        axes.set_ylabel("Power" if value == "power" else "Difference that is shown")
        key(axes, list(zip(marks, texts, strict=True)))
        return axes


def _of_line(of: dict[str, Any], table: pd.DataFrame) -> str:
    trials = f"{of['trials']} trial{'' if of['trials'] == 1 else 's'}"
    if "difference" not in of:
        return trials
    several = table["trials"].nunique() > 1
    return f"difference {share(of['difference'], 3, exact=True)}" + (f", {trials}" if several else "")
