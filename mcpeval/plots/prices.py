"""What success costs: agents between price and score, with the Pareto front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from ..frames import cells_of
from ..reports import summarize
from ..reports.columns import numbers
from .paper import (
    ENTRY,
    QUIET,
    bare,
    check,
    colours,
    column_figure,
    dot,
    interval,
    key,
    key_inches,
    of_evaluator,
    rate_axis,
    remark,
    short,
    text_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STRIP = 0.92  # of the width: where those stand whose price is unknown


class _Agent(NamedTuple):
    """A mean price in US dollars and a mean score, with the ends of their intervals; NaN is unknown."""

    name: Any
    price: tuple[float, float, float]
    score: tuple[float, float, float]
    text: str


def cost(
    scores: pd.DataFrame, runs: pd.DataFrame, *, evaluator: str | None = None, ci: float = 0.95, ax: Axes | None = None
) -> Axes:
    """The mean score of each agent against what a run of it costs, and the Pareto front.

    The front goes through the agents that no other one beats or equals in both for less or better; their
    dots are filled. Agents whose price is unknown stand in a strip of their own at the right, and
    never at 0. The price of a run out of the cache is what it cost when it was paid.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it; reads ``agent`` and what `summarize` reads.
    runs : DataFrame
        As `run` returns it: ``agent``, ``cost_usd`` (what was paid now) and, where they exist,
        ``metadata`` (whose ``saved_usd`` is added), ``task_id``, ``run_id``.
    evaluator : str, optional
        Whose scores are drawn; it has to be said where there are several.
    ci : float
        Confidence of the intervals, of both means over tasks.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure as wide as a paper's column.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        A frame has no rows or not the columns, or `scores` has several evaluators.
    """
    check(scores, "cost", ["agent", "score"])
    check(runs, "cost", ["agent", "cost_usd"], "runs", "run")
    scored = summarize(of_evaluator(scores, evaluator, "cost"), "agent", ci=ci)
    priced = summarize(runs.assign(price=_prices(runs)), "agent", ci=ci, value="price")
    of_agent = {row["agent"]: row for row in priced.to_dict("records")}
    agents = [_agent(row, of_agent.get(row["agent"])) for row in scored.to_dict("records")]
    front = _front([agent for agent in agents if np.isfinite([agent.price[0], agent.score[0]]).all()])
    texts = [agent.text for agent in agents] + ["Pareto front"] * bool(front)
    with column_figure(2.3 + key_inches(texts), ax) as axes:
        marks = _draw(axes, agents, front)
        axes.set_xlabel(f"US dollars per run\n({100 * ci:g} % intervals over tasks)")
        axes.set_ylabel("Score")
        key(axes, list(zip(marks, texts, strict=True)))
        return axes


def _prices(runs: pd.DataFrame) -> np.ndarray:
    """What each run cost when it was paid, shape (rows,); NaN where that is not known."""
    paid = numbers(runs, "cost_usd", "cost")
    about = cells_of(runs["metadata"]) if "metadata" in runs.columns else [None] * len(runs)
    saved = [cell.get("saved_usd", 0.0) if isinstance(cell, Mapping) else 0.0 for cell in about]
    return paid + np.array([np.nan if amount is None else float(amount) for amount in saved], dtype=float)


def _agent(scored: Mapping[str, Any], priced: Mapping[str, Any] | None) -> _Agent:
    notes = []
    if scored["unscored"]:
        notes.append(f"{scored['unscored']} of {scored['n'] + scored['unscored']} unscored")
    if priced is not None and priced["n"] and priced["unscored"]:
        notes.append(f"price of {priced['unscored']} of {priced['n'] + priced['unscored']} unknown")
    name, note = short(text_of(scored["agent"]), ENTRY, 1), "; ".join(notes)
    text = name + (f"{' ' if len(name + note) < 1.2 * ENTRY else chr(10)}({note})" if note else "")
    nothing = {"score": np.nan, "low": np.nan, "high": np.nan}
    price, score = (tuple(row[end] for end in ("score", "low", "high")) for row in (priced or nothing, scored))
    return _Agent(scored["agent"], price, score, text)


def _front(agents: Sequence[_Agent]) -> list[_Agent]:
    """The agents that none is as cheap and as good as, and better in one of the two; the cheapest first."""
    found = []
    for agent in agents:
        x, y = agent.price[0], agent.score[0]
        points = [(other.price[0], other.score[0]) for other in agents]
        if not any(p <= x and s >= y and (p, s) != (x, y) for p, s in points):
            found.append(agent)
    return sorted(found, key=lambda agent: (agent.price[0], agent.score[0]))


def _draw(ax: Axes, agents: Sequence[_Agent], front: Sequence[_Agent]) -> list[Any]:
    known = [agent for agent in agents if np.isfinite(agent.price[0])]
    unknown = [agent for agent in agents if not np.isfinite(agent.price[0])]
    _price_axis(ax, [agent.price for agent in known], strip=bool(unknown))
    for agent in agents:
        (colour,) = colours([agent.name], of="agent")
        x, low, high = agent.price
        y, worst, best = agent.score
        if np.isfinite(y) and np.isfinite(x):
            interval(ax, y, max(low, ax.get_xlim()[0]), high, colour, linewidth=0.8)
            ax.vlines(x, worst, best, color=colour, linewidth=1.6)
            dot(ax, x, y, agent.name, "agent", filled=agent in front)
    _draw_unknown(ax, unknown, alone=not known)
    bare(ax, "both")
    rate_axis(ax, "y")
    if not any(np.isfinite(agent.score[0]) for agent in agents):
        remark(ax, 0.5, 0.5, "no run scored", ha="center", transform=ax.transAxes)
    marks = [dot(ax, [], [], agent.name, "agent", filled=agent in front, label="_") for agent in agents]
    if front:
        steps = ([agent.price[0] for agent in front], [agent.score[0] for agent in front])
        look = {"color": "0.45", "linewidth": 0.9, "linestyle": "--", "zorder": 1}
        ax.step(*steps, where="post", label="Pareto front", **look)
        marks += ax.plot([], [], **look)
    return marks


def _draw_unknown(ax: Axes, unknown: Sequence[_Agent], *, alone: bool) -> None:
    if not unknown:
        return
    strip, middle = ax.get_yaxis_transform(), 0.5 if alone else _STRIP
    for i, agent in enumerate(unknown):
        x = middle + 0.02 * (i - (len(unknown) - 1) / 2)
        y, worst, best = agent.score
        if np.isfinite(y):
            ax.vlines(x, worst, best, color=colours([agent.name], of="agent"), linewidth=1.6, transform=strip)
            dot(ax, x, y, agent.name, "agent", filled=False, transform=strip)
    if alone:
        ax.set_xticks([])
    else:
        ax.plot([2 * _STRIP - 1] * 2, [0.0, 1.0], color="0.7", linewidth=0.6, transform=ax.transAxes, label="_strip")
    ax.text(middle, 0.01, "price\nunknown", ha="center", va="bottom", size=6, color=QUIET, transform=ax.transAxes)


def _price_axis(ax: Axes, prices: Sequence[tuple[float, float, float]], *, strip: bool) -> None:
    """Linear where prices are alike, else by factors of ten (with a place for 0, where one costs nothing)."""
    if not prices:
        return
    from matplotlib.ticker import FuncFormatter, NullFormatter

    means, ends = [price[0] for price in prices], [end for price in prices for end in price if np.isfinite(end)]
    paid, high = min((mean for mean in means if mean > 0), default=0.0), max(max(ends), 0.0)
    right = (2 * _STRIP - 1.06) if strip else 0.95  # of the width: where the dearest ends
    if paid and high > 10 * paid:
        if min(means) > 0:
            ax.set_xscale("log")
            low = max(min(end for end in ends if end > 0), paid / 4)
        else:
            ax.set_xscale("symlog", linthresh=paid / 2, linscale=0.4)
            low = 0.0
        forward = ax.xaxis.get_transform()
        left, end = forward.transform(np.array([low, high]))
        apart = 0.05 * (end - left) / right
        span = (end - left + apart) / right
        ax.set_xlim(*forward.inverted().transform(np.array([left - apart, left - apart + span])))
    else:
        low = max(0.0, min(ends))
        apart = 0.08 * ((high - low) or high or 1.0)
        ax.set_xlim(low - apart, low - apart + (high - low + 2 * apart) / right)
        ax.locator_params(axis="x", nbins=5)
    left, right = ax.get_xlim()
    right = min(right, max(ends)) if strip else right  # there are no dollars in the strip
    ax.set_xticks([tick for tick in ax.get_xticks() if max(0.0, left) <= tick <= right])
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _dollars(value)))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _dollars(value: float) -> str:
    if value < 0:
        return ""
    return f"{value:.6f}".rstrip("0").rstrip(".").replace("0.", ".", 1) if 1e-6 <= value < 1 else f"{value:g}"
