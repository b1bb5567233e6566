"""What all figures share: a paper's column, its type sizes, and a colour and a marker for each name."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 3.4  # inches: one column of most two-column layouts
ROW = 0.19  # inches from one line of a figure to the next
LABEL = 24  # letters of a label in one line
MARKERS = "osD^v"  # the tenth agent and those after it differ from the first nine by their marker
STYLE = {
    "axes.edgecolor": "0.6",
    "axes.linewidth": 0.6,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "font.size": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
}

_seen: dict[str, dict[str, int]] = {}


def colours(names: Iterable[Any], *, of: str = "agent") -> list[tuple[float, float, float]]:
    """The colour of each name: the next free one of a colour-blind-safe palette, then always the same.

    Parameters
    ----------
    names : iterable
        Agents, or whatever a figure tells apart by colour.
    of : str
        The column that they are names of; each column starts with the first colour.

    Returns
    -------
    list of (red, green, blue)
        From 0 to 1. The palette has nine colours (seaborn's "colorblind" without its yellow, which
        is hard to see on white); the tenth name gets the first one again, and in the figures of this
        module another marker.
    """
    free = palette()
    return [free[number(name, of) % len(free)] for name in names]


def palette() -> list[tuple[float, float, float]]:
    import seaborn as sns

    return [colour for i, colour in enumerate(sns.color_palette("colorblind")) if i != 8]


def number(name: Any, of: str) -> int:
    seen = _seen.setdefault(of, {})
    return seen.setdefault(str(name), len(seen))


def marker(name: Any, of: str) -> str:
    """The marker of a name: another one for each round of the palette."""
    return MARKERS[number(name, of) // len(palette()) % len(MARKERS)]


@contextmanager
def column_figure(height: float, ax: Axes | None = None) -> Iterator[Axes]:
    """`ax`, or the Axes of a new figure as wide as a paper's column and `height` inches high, to draw on.

    Draw within the ``with``: the type sizes hold there.
    """
    if ax is not None:
        yield ax
        return
    import matplotlib.pyplot as plt
    import seaborn as sns

    # Not plt.rc_context: in a notebook it ends the interactive mode, and no later figure would be shown.
    with sns.axes_style("white", rc=STYLE), sns.plotting_context(rc=STYLE):
        yield plt.subplots(figsize=(WIDTH, height), layout="constrained")[1]


def text_of(value: Any) -> str:
    return "(none)" if pd.isna(value) else str(value).replace("$", r"\$")  # no formula in a name


def short(text: str, width: float) -> str:
    """`text` in at most two lines; what does not fit is left out of its middle."""
    width = int(width)
    if len(text) > 2 * width:
        text = f"{text[: width - 1]}…{text[-width + 1 :]}"
    lines = textwrap.wrap(text, width) or [""]
    if len(lines) > 2:  # it broke at words and did not fit; between letters it does
        lines = [text[:width], text[width:]]
    return "\n".join(lines)
