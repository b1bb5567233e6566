"""A judge on one page, as a dot plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..errors import InputError
from .paper import ROW, colours, column_figure, marker, short, text_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# What each measure is called in a figure, and under which heading it stands.
_PARTS: dict[str, dict[str, str]] = {
    "Agreement with the labels": {
        "accuracy": "Accuracy",
        "majority": "  always the commonest",
        "balanced_accuracy": "Balanced accuracy",
        "sensitivity": "Sensitivity",
        "specificity": "Specificity",
        "kappa": "Kappa",
        "kappa_linear": "Kappa, linear",
        "kappa_quadratic": "Kappa, quadratic",
        "alpha": "Alpha",
        "human_agreement": "  people among themselves",
        "spearman": "Spearman",
        "kendall": "Kendall",
        "pearson": "Pearson",
        "bias": "Bias",
        "coverage": "Coverage",
    },
    "The same again": {
        "retest": "Samples all the same",
        "retest_alpha": "Alpha of samples",
        "order_consistency": "Same in both orders",
    },
    "Length of the transcript": {
        "length_correlation": "Correlation with verdicts",
        "length_correlation_labels": "  with labels",
        **{f"{name}_{third}": f"{name.capitalize()}, {third}"
           for name in ("accuracy", "spearman") for third in ("short", "medium", "long")},
    },
    "Agents and attacks": {
        "agent_shift": "Largest shift of an agent",
        "agent_rank": "Rank correlation of agents",
        "injection_success": "Injections that succeed",
    },
}  # fmt: skip


def judge_card(card: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """A judge's card as a dot plot: each measure with its interval, from -1 to 1.

    Parameters
    ----------
    card : DataFrame
        As `mcpeval.judge_card` returns it. Its judges stand beside each other, each in its colour.
        Measures without a value are left out; prices are told under the figure.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure as wide as a paper's column and as high as needed.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        `card` is no such frame, or none of its measures has a value.
    """
    needed = {"measure", "value", "low", "high"}
    if not isinstance(card, pd.DataFrame) or not needed <= set(card.columns):
        raise InputError("judge_card: card should be a frame, as mcpeval.judge_card returns it")
    keys = list(card.columns[: card.columns.get_loc("measure")])
    names = [", ".join(text_of(cell) for cell in row) or "judge" for row in card[keys].itertuples(index=False)]
    table = card.assign(judge=names)
    judges = list(dict.fromkeys(names))
    lines = _lines(table[table["value"].notna()])
    if not lines:
        raise InputError("judge_card: no measure of the card has a value")
    prices = [_price(judge, table[table["judge"] == judge], len(judges) > 1) for judge in judges]
    footer = "\n".join(price for price in prices if price)
    height = 0.6 + ROW * (1.1 * len(lines) + footer.count("\n") + len(judges) * (len(judges) > 1))
    with column_figure(height, ax) as axes:
        return _draw(axes, lines, judges, keys[0] if keys else "evaluator", footer)


def _lines(table: pd.DataFrame) -> list[tuple[str, list[dict[str, Any]] | None]]:
    """(text, the measure's row of each judge); a heading has None."""
    lines: list[tuple[str, list[dict[str, Any]] | None]] = []
    for heading, measures in _PARTS.items():
        rows = {name: table[table["measure"] == name].to_dict("records") for name in measures}
        if any(rows.values()):
            lines.append((heading, None))
            lines += [(measures[name], found) for name, found in rows.items() if found]
    return lines


def _price(judge: str, rows: pd.DataFrame, several: bool) -> str:
    values = dict(zip(rows["measure"], rows["value"]))
    shown = (("usd_per_verdict", r"\${:.2g}"), ("seconds_per_verdict", "{:.2g} s"))
    told = [form.format(values[name]) for name, form in shown if not pd.isna(values.get(name))]
    return (
        (f"{short(judge, 20)}: ".replace("\n", " ") if several else "") + ", ".join(told) + " per verdict"
        if told
        else ""
    )


def _draw(
    ax: Axes, lines: Sequence[tuple[str, list[dict[str, Any]] | None]], judges: Sequence[str], of: str, footer: str
) -> Axes:
    apart = min(0.22, 0.6 / len(judges))
    looks = dict(zip(judges, zip(colours(judges, of=of), (marker(judge, of) for judge in judges))))
    shown: set[str] = set()
    for y, (text, rows) in enumerate(lines):
        if rows is None:
            ax.text(0.0, y + 0.1, text, va="center", weight="bold", transform=ax.get_yaxis_transform())
            continue
        for row in rows:
            colour, mark = looks[row["judge"]]
            at = y + apart * (judges.index(row["judge"]) - (len(judges) - 1) / 2)
            if not pd.isna(row["low"]):
                ax.hlines(at, row["low"], row["high"], color=colour, linewidth=1.4)
            label = None if row["judge"] in shown else row["judge"]
            shown.add(row["judge"])
            ax.scatter(row["value"], at, s=16, linewidths=0, zorder=3, color=colour, marker=mark, label=label)
    places = [(y, text) for y, (text, rows) in enumerate(lines) if rows is not None]
    ax.set_yticks([y for y, _ in places], [text for _, text in places])
    ax.set_ylim(len(lines) - 0.4, -0.6)
    ax.set_xlim(-1.05, 1.05)
    ax.set_xticks([-1.0, -0.5, 0.0, 0.5, 1.0], ["-1", "-.5", "0", ".5", "1"])
    ax.axvline(0.0, color="0.7", linewidth=0.6, zorder=0)
    ax.grid(visible=False, axis="y")
    ax.grid(visible=True, axis="x", color="0.88", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(length=0)
    ax.set_xlabel(footer)
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
    if len(judges) > 1:
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False, fontsize=7, handletextpad=0.2)
    return ax
