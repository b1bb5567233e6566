"""How verdicts, and the ends of runs, are divided: stacked bars of shares."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from ..frames import cells_of
from ..reports.columns import numbers
from .paper import (
    LABEL,
    LETTER,
    QUIET,
    bare,
    beside,
    check,
    colours,
    column_figure,
    inches,
    key,
    key_inches,
    lay_out,
    lines_of,
    room,
    share,
    short,
    text_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 8  # different verdicts that are shown one by one; more are put in fifths
_FIFTHS = ("0–.2", ".2–.4", ".4–.6", ".6–.8", ".8–1")
_UNSCORED = "unscored"
_OK = "ok"


class _Part(NamedTuple):
    """One part of a bar: what it is called, how many rows it has, and how it looks."""

    text: str
    count: int
    colour: Any
    hatch: str = ""


def distribution(scores: pd.DataFrame, *, by: str = "agent", ax: Axes | None = None) -> Axes:
    """Which verdicts each evaluator gives, as the share of each label in a bar for each agent.

    The parts of a bar go from the lowest score to the highest, and a score has the same colour in all
    bars: the darker, the higher. Where an evaluator has more than eight different verdicts they are put
    together in fifths of the scale. What could not be scored is the hatched part.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it. Reads ``score``, `by` and, where they exist, ``label`` (a verdict without
        one is named by its score) and ``evaluator``. Each row counts, a judge's samples one by one.
    by : str
        The column that names the bars, as ``agent``, ``category`` or ``evaluator``.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure as wide as a paper's column and as high as needed.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        `scores` has no rows or not the columns.
    """
    check(scores, "distribution", ["score", by])
    headed = "evaluator" in scores.columns and by != "evaluator"
    groups: dict[str, list[tuple[str, Any]]] = {}
    for _, rows in scores.groupby("evaluator" if headed else by, sort=False, dropna=False):
        rows = rows.reset_index(drop=True)
        worth = _verdicts(rows)
        heading = text_of(rows["evaluator"].iloc[0]) if headed else ""
        for name, own in rows.groupby(by, sort=False, dropna=False):
            told = _verdict_parts(worth.loc[own.index])
            groups.setdefault(heading, []).append((short(text_of(name), LABEL), told))
    lines = lines_of(groups, headed=headed)
    texts = ["0", ".25", ".5", ".75", "1", _UNSCORED]
    with column_figure(0.5 + inches(lines) + key_inches(texts), ax) as axes:
        _stack(axes, lines, "Share of verdicts")
        looks = [_Part(text, 0, _of_score(float(text))) for text in texts[:-1]] + [_unscored(0)]
        key(axes, [(_patch(part), part.text) for part in looks])
        return axes


def _verdicts(rows: pd.DataFrame) -> pd.DataFrame:
    """The name and the score of each row's verdict; without a score there is none."""
    values = numbers(rows, "score", "distribution")
    given = cells_of(rows["label"]) if "label" in rows.columns else [None] * len(rows)
    names = [_name(label, value) for label, value in zip(given, values, strict=True)]
    if len({name for name, value in zip(names, values, strict=True) if value == value}) > _MOST:
        fifths = np.clip(np.floor(np.nan_to_num(values) * 5 + 1e-9), 0, 4).astype(int)
        names, values = [_FIFTHS[i] for i in fifths], np.where(np.isnan(values), np.nan, fifths / 4)
    return pd.DataFrame({"name": names, "score": values}, index=rows.index)


def _name(label: Any, value: float) -> str:
    if label is None:
        return share(value, exact=True)
    if isinstance(label, bool):
        return "pass" if label else "fail"
    return text_of(label if isinstance(label, (str, int, float)) else json.dumps(label, default=str))


def _verdict_parts(told: pd.DataFrame) -> list[_Part]:
    scored = told[told["score"].notna()]
    counts = Counter(zip(scored["score"], scored["name"], strict=True))
    parts = [_Part(name, counts[value, name], _of_score(value)) for value, name in sorted(counts)]
    return [*parts, _unscored(len(told) - len(scored))]


def _of_score(value: float) -> Any:
    import seaborn as sns

    return sns.color_palette("crest", as_cmap=True)(0.02 + 0.96 * value)


def _unscored(count: int) -> _Part:
    return _Part(_UNSCORED, count, "white", "/////")


def error_classes(runs: pd.DataFrame, *, by: str = "agent", ax: Axes | None = None) -> Axes:
    """How the runs of each agent ended: the share without an error, and of each class of errors.

    Parameters
    ----------
    runs : DataFrame
        As `run` returns it. Reads `by`, ``status`` and ``error_class``; an error without a class is
        "unclassified".
    by : str
        The column that names the bars, as ``agent``, ``model`` or ``category``.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure as wide as a paper's column and as high as needed.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        `runs` has no rows or not the columns.
    """
    check(runs, "error_classes", [by, "status", "error_class"], "runs", "run")
    ends = [
        _OK if status == "ok" else "unclassified" if kind is None else text_of(kind)
        for status, kind in zip(cells_of(runs["status"]), cells_of(runs["error_class"]), strict=True)
    ]
    kinds = [kind for kind, _ in Counter(end for end in ends if end != _OK).most_common()]
    looks = _looks(kinds)
    rows = []
    for name, own in runs.assign(end=ends).groupby(by, sort=False, dropna=False):
        counts = own["end"].value_counts()
        parts = [looks[kind]._replace(count=int(counts.get(kind, 0))) for kind in looks]
        rows.append((short(text_of(name), LABEL), parts))
    lines = lines_of({"": rows}, headed=False)
    with column_figure(0.5 + inches(lines) + key_inches(list(looks)), ax) as axes:
        _stack(axes, lines, "Share of runs")
        key(axes, [(_patch(part), short(part.text, LABEL, 1)) for part in looks.values()])
        return axes


def _looks(kinds: Sequence[str]) -> dict[str, _Part]:
    """A colour for each class of errors; every second one is hatched, for readers who see no colour."""
    looks = {_OK: _Part(_OK, 0, "0.85")}
    for place, kind in enumerate(kinds):
        looks[kind] = _Part(kind, 0, colours([kind], of="error_class")[0], ("", "////", "....")[place % 3])
    return looks


# --- bars -----------------------------------------------------------------------------------------


def _stack(ax: Axes, lines: Sequence[Any], label: str) -> None:
    width = 0.6 * room(ax)  # inches of a whole bar, about
    for y, parts in lay_out(ax, lines):
        total = sum(part.count for part in parts)
        left = 0.0
        for part in parts:
            if part.count:
                _draw_part(ax, left, y, part, total, width)
                left += part.count / total
        beside(ax, y, f"n={total}", 4.0, ha="left", color=QUIET)
    ax.set_xlim(0.0, 1.0)
    ax.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0", ".25", ".5", ".75", "1"])
    ax.set_xlabel(label)
    bare(ax, None)


def _draw_part(ax: Axes, left: float, y: float, part: _Part, total: int, width: float) -> None:
    size = part.count / total
    ax.barh(y, size, left=left, height=0.7, label=part.text, **_look(part))
    text = part.text if part.text not in (_UNSCORED, _OK) else ""
    if text and not part.hatch and size * width > LETTER * len(text) + 0.06:
        ax.text(left + size / 2, y, text, ha="center", va="center", size=6, color=_ink(part.colour))


def _look(part: _Part) -> Mapping[str, Any]:
    edge = "0.5" if part.text == _UNSCORED else "white"
    return {"facecolor": part.colour, "hatch": part.hatch, "edgecolor": edge, "linewidth": 0.6}


def _patch(part: _Part) -> Any:
    from matplotlib.patches import Patch

    return Patch(**_look(part))


def _ink(colour: Any) -> str:
    """Black or white, whichever is easier to read on `colour`."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.55 else "black"
