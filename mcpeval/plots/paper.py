"""What all figures share: a paper's column, its type sizes, and a colour and a marker for each name."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from ..errors import InputError, did_you_mean
from ..frames import clean_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 3.4  # inches: one column of most two-column layouts
ROW = 0.19  # inches from one line of a figure to the next
LABEL = 24  # letters of a label in one line
ENTRY = 40  # letters of a name in a key
LETTER = 0.056  # inches: the mean width of a letter of the type size below
BOLD = 0.064  # the same of bold ones
KEY = 0.17  # inches from one line of a key to the next
QUIET = "0.45"  # the grey of remarks
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

    Draw within the ``with``: the type sizes hold there. The typeface is the session's. Where drawing
    fails, the new figure is closed.
    """
    import matplotlib.pyplot as plt
    import seaborn as sns

    typeface = {name: plt.rcParams[name] for name in ("font.family", "font.sans-serif", "font.serif")}
    # Not plt.rc_context: in a notebook it ends the interactive mode, and no later figure would be shown.
    with sns.axes_style("white", rc={**STYLE, **typeface}), sns.plotting_context(rc=STYLE):
        axes = plt.subplots(figsize=(WIDTH, height), layout="constrained")[1] if ax is None else ax
        try:
            # What an Axes that was made elsewhere has, and the ticks that are made when it is shown.
            axes.tick_params(labelsize=STYLE["xtick.labelsize"])
            for label in (axes.xaxis.label, axes.yaxis.label, axes.title):
                label.set_size(STYLE["axes.labelsize"])
            yield axes
        except BaseException:
            if ax is None:
                plt.close(axes.figure)
            raise


def text_of(value: Any) -> str:
    return "(none)" if pd.isna(value) else clean_text(str(value)).replace("$", r"\$")  # no formula in a name


def short(text: str, width: float, lines: int = 2) -> str:
    """`text` in at most `lines` lines of `width` letters; what does not fit is left out of its middle."""
    width, text = int(width), text.replace(r"\$", "$")  # no formula's backslash is a letter, or cut off its dollar
    if len(text) > lines * width:
        kept = lines * width - 1
        text = f"{text[: kept - kept // 2]}…{text[-(kept // 2) :]}"
    wrapped = textwrap.wrap(text, width) or [""]
    if len(wrapped) > lines:  # it broke at words and did not fit; between letters it does
        wrapped = [text[at : at + width] for at in range(0, len(text), width)]
    return "\n".join(wrapped).replace("$", r"\$")


def check(frame: Any, figure: str, columns: Iterable[str], argument: str = "scores", source: str = "score") -> None:
    """Refuse what is no frame, has no rows, or not the `columns`."""
    if not isinstance(frame, pd.DataFrame):
        kind = type(frame).__name__
        raise InputError(f"{figure}: {argument} is a {kind}; expected a frame, as {source}() returns it")
    for name in columns:
        if name not in frame.columns:
            hint = did_you_mean(name, map(str, frame.columns))
            raise InputError(f"{figure}: {argument} has no column {name!r}, which {source}() gives. {hint}")
    if frame.empty:
        raise InputError(f"{figure}: nothing to draw: {argument} has no rows")


def of_evaluator(frame: pd.DataFrame, evaluator: Any, figure: str) -> pd.DataFrame:
    """The rows of the one evaluator that a figure can show; it has to be named where there are several."""
    if "evaluator" not in frame.columns:
        return frame
    names = list(dict.fromkeys(frame["evaluator"]))
    if evaluator is None and len(names) == 1:
        return frame
    if evaluator not in names:
        told = did_you_mean(evaluator, map(str, names)) if evaluator is not None else f"It has: {names!r:.300}"
        raise InputError(f"{figure}: evaluator={evaluator!r} should be one of the frame's evaluators. {told}")
    return frame[frame["evaluator"] == evaluator]


def share(value: float, digits: int = 2, *, exact: bool = False) -> str:
    """A number below 1 without its 0, as ``.85``; `exact` ones also without zeros at the end."""
    text = f"{value:.{digits}f}"
    text = text.rstrip("0").rstrip(".") if exact else text
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


# --- lines of text, each with something drawn at its height ---------------------------------------


class Line(NamedTuple):
    """A line of a figure whose names stand at the left: a heading where `row` is None."""

    text: str
    row: Any = None
    apart: float = 0.0  # room above it

    @property
    def rows(self) -> float:
        return 1.0 + 0.7 * self.text.count("\n")


def lines_of(groups: Mapping[str, Iterable[tuple[str, Any]]], *, headed: bool = True) -> list[Line]:
    """For each heading its line, and one for each (text, row) under it."""
    groups = {heading: list(rows) for heading, rows in groups.items()}
    names = [line for rows in groups.values() for text, _ in rows for line in text.split("\n")]
    letters = (WIDTH - 0.2 - LETTER * max(map(len, names), default=0)) / BOLD  # from the names to the right edge
    lines: list[Line] = []
    for heading, rows in groups.items():
        if headed:
            lines.append(Line(short(heading, letters, 3), None, 0.3 if lines else 0.0))
        lines += [Line(text, row) for text, row in rows]
    return lines


def inches(lines: Sequence[Line]) -> float:
    return ROW * sum(line.rows + line.apart for line in lines)


def lay_out(ax: Axes, lines: Sequence[Line]) -> list[tuple[float, Any]]:
    """Write the headings and the names; (y, row) of each line that has one."""
    ends = list(accumulate(line.rows + line.apart for line in lines))
    ys = [end - line.rows / 2 for end, line in zip(ends, lines, strict=True)]
    for y, line in zip(ys, lines, strict=True):
        if line.row is None:
            ground = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 0.8}  # over the lines of the grid
            ax.text(0.0, y, line.text, va="center", weight="bold", transform=ax.get_yaxis_transform(), bbox=ground)
    ticks = [(y, line.text) for y, line in zip(ys, lines, strict=True) if line.row is not None]
    ax.set_yticks([y for y, _ in ticks], [text for _, text in ticks])
    ax.set_ylim(ends[-1] + 0.15, -0.15)
    return [(y, line.row) for y, line in zip(ys, lines, strict=True) if line.row is not None]


# --- names above each other under the columns of a map --------------------------------------------


class Heads(NamedTuple):
    """The names of a map's columns, as they are written."""

    texts: list[str]
    turned: bool

    @property
    def inches(self) -> float:
        if self.turned:
            return LETTER * max(len(line) for text in self.texts for line in text.split("\n"))
        return 0.11 * max(1 + text.count("\n") for text in self.texts)


def heads_of(names: Sequence[str], width: float = WIDTH) -> Heads:
    """Level where each fits into four lines without a broken word, else turned."""
    letters = max(1, int(0.6 * width / len(names) / LETTER))
    wrapped = [textwrap.wrap(name, letters, break_long_words=False) or [""] for name in names]
    turned = any(len(lines) > 4 or max(map(len, lines)) > letters for lines in wrapped)
    return Heads([short(name, 20, 2) if turned else short(name, letters, 4) for name in names], turned)


def name_map(ax: Axes, lines: Sequence[str], heads: Heads) -> None:
    """Write the names of a map's lines and columns, each at the middle of its own."""
    rotation = 90 if heads.turned else 0
    ax.set_xticks([i + 0.5 for i in range(len(heads.texts))], heads.texts, rotation=rotation)
    ax.set_yticks([i + 0.5 for i in range(len(lines))], lines, rotation=0)
    ax.set_ylim(len(lines), 0)
    ax.tick_params(length=0)


# --- axes, marks and keys -------------------------------------------------------------------------


def bare(ax: Axes, grid: str | None = "x") -> None:
    """No frame and no ticks, but faint lines across the axis `grid`."""
    ax.grid(visible=False)
    if grid:
        ax.grid(visible=True, axis=grid, color="0.88", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(length=0)
    for side in ("left", "right", "top", *(("bottom",) if grid is None else ())):
        ax.spines[side].set_visible(False)


def rate_axis(ax: Axes, axis: str = "x") -> None:
    """From 0 to 1, with room for a dot at either end."""
    getattr(ax, f"set_{axis}lim")(-0.03, 1.03)
    getattr(ax, f"set_{axis}ticks")([0.0, 0.25, 0.5, 0.75, 1.0], ["0", ".25", ".5", ".75", "1"])


def dot(ax: Axes, x: float, y: float, name: Any, of: str, *, filled: bool = True, **more: Any) -> Any:
    """A dot in the colour and the form of its name."""
    (colour,) = colours([name], of=of)
    look = {"s": 22, "linewidths": 1.1, "zorder": 3, "label": text_of(name), "marker": marker(name, of)}
    return ax.scatter(x, y, edgecolors=[colour], facecolors=[colour if filled else "white"], **{**look, **more})


def dodge(place: int, count: int) -> float:
    """How many points to the right one of several marks stands that belong to one place."""
    return min(4.0, 16.0 / count) * (place - (count - 1) / 2)


def interval(ax: Axes, y: float, low: float, high: float, colour: Any, **more: Any) -> None:
    """A line from `low` to `high`; none where they are not known."""
    if not (pd.isna(low) or pd.isna(high)):
        ax.hlines(y, low, high, color=colour, **{"linewidth": 1.6, **more})


def beside(ax: Axes, y: float, text: str, points: float, **more: Any) -> None:
    """A text that ends so many points to the right of the Axes."""
    place = {"xycoords": ax.get_yaxis_transform(), "xytext": (points, 0), "textcoords": "offset points"}
    # A place in parts of the Axes, and not in points, would move while the layout makes room for it.
    ax.annotate(text, (1.0, y), **place, **{"ha": "right", "va": "center", "annotation_clip": False, **more})


def remark(ax: Axes, x: float, y: float, text: str, **more: Any) -> None:
    """What there is to say in the place of a dot."""
    ax.text(x, y, text, **{"va": "center", "color": QUIET, "style": "italic", **more})


def room(ax: Axes) -> float:
    """Inches that an Axes has for itself and its labels; of a figure of one Axes, its width."""
    return float(ax.figure.get_size_inches()[0] * min(1.0, ax.get_position(original=True).width / 0.775))


def key_columns(texts: Iterable[str], width: float = WIDTH) -> int:
    """How many entries of a key fit beside each other."""
    widest = max((len(line) for text in texts for line in text.split("\n")), default=0)
    return max(1, int((width - 0.1) / (0.5 + LETTER * widest)))


def key_inches(texts: Sequence[str], width: float = WIDTH) -> float:
    """The height of the key of a new figure."""
    rows = -(-len(texts) // key_columns(texts, width))
    return KEY * rows * (1 + max((text.count("\n") for text in texts), default=0)) + 0.05


def key(ax: Axes, entries: Sequence[tuple[Any, str]]) -> None:
    """What the marks mean, above the Axes; (mark, text) of each."""
    # matplotlib leaves out what begins with an underscore.
    texts = [f" {text}" if text.startswith("_") else text for _, text in entries]
    ax.legend(
        [mark for mark, _ in entries],
        texts,
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=key_columns(texts, room(ax)),
        frameon=False,
        fontsize=STYLE["font.size"],
        borderaxespad=0.2,
        borderpad=0.1,
        handlelength=2.0,
        handletextpad=0.4,
        columnspacing=1.0,
        labelspacing=0.3,
    )
