"""Tables to be printed: LaTeX and Markdown of scores, or of any frame.

A scores frame becomes the table of a paper (`_of_scores`): mean and interval in each cell, the best
of a column in bold, marks where a difference is significant, and a caption that says what it rests
on. What a cell shows is decided once; LaTeX and Markdown only write it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .. import stats
from ..errors import InputError
from ..reports import compare, summarize
from . import cells
from .files import plain_heading
from .places import manifest_text, replacing, target_of, write_manifest
from .provenance import manifest

#: p from below which a mark stands, the strictest first.
LEVELS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
_INTERVALS = ("pm", "brackets", None)
_SCORES = ("evaluator", "score", "status")


@dataclass(frozen=True)
class _Cell:
    """What one cell shows: a text, or a number with its interval, weight and mark."""

    text: str
    more: str = ""  # the interval, or what stands behind a text
    bold: bool = False
    mark: str = ""


@dataclass(frozen=True)
class _Table:
    """Headings, rows of cells, and which columns hold numbers."""

    headings: tuple[str, ...]
    rows: tuple[tuple[_Cell, ...], ...]
    numeric: tuple[bool, ...]
    caption: str | None = None


def to_latex(
    frame: pd.DataFrame,
    path: str | os.PathLike[str] | None = None,
    *,
    rows: str = "agent",
    columns: str = "evaluator",
    baseline: Any = None,
    value: str = "score",
    interval: str | None = "pm",
    percent: bool = False,
    digits: int | None = None,
    ci: float = 0.95,
    caption: str | None = None,
    label: str | None = None,
) -> str:
    r"""The table of a paper, for the packages booktabs and (the document class's own) table.

    Of a scores frame: a line for each of `rows`, a column for each of `columns`, in each cell the
    mean over tasks and its interval (`mcpeval.summarize`). The best mean of a column is bold. With
    `baseline`, stars mark what differs from it (`mcpeval.compare`, paired by task, Holm's adjustment over
    the whole table): \* p < .05, \*\* p < .01, \*\*\* p < .001. Any other frame is written as it stands.

    Parameters
    ----------
    frame : DataFrame
        Scores (it has the columns evaluator, score and status), or any other, such as those of `compare`
        and `agreement`, for which the parameters from `rows` to `ci` except `digits` say nothing.
    path : path-like, optional
        Where to write it too, with a manifest beside.
    rows, columns : str
        The columns of `frame` whose values name the lines and the columns.
    baseline : optional
        The value of `rows` with which the others are compared; no mark where there is none.
    value : str
        What is averaged, as in `summarize`.
    interval : {"pm", "brackets", None}
        ``.56 ± .21``, with half the interval's width (Wilson's interval is not symmetric, so that is
        roughly it); ``.56 [.33, .77]``, exactly it; or the mean alone.
    percent : bool
        Means of 0 to 100 instead of 0 to 1.
    digits : int, optional
        Decimal places; by default 2, and 1 of percentages.
    ci : float
        Confidence of the intervals.
    caption, label : str, optional
        Both as LaTeX. By default the caption says what is shown, over how many tasks and trials, and how
        many rows could not be scored; a frame that is no scores frame has none.

    Returns
    -------
    str
        A ``table`` environment; a ``tabular`` where there is no caption and no label.

    Raises
    ------
    InputError
        An option is not among those above; or as `summarize` and `compare`.
    FileError
        `path` cannot be written to.
    """
    table = _table(frame, "to_latex", rows, columns, baseline, value, interval, percent, digits, ci)
    caption = caption if caption is not None or table.caption is None else _latex(table.caption)
    lines = [_latex_line([_Cell(heading) for heading in table.headings])]
    lines += ["\\midrule", *(_latex_line(row) for row in table.rows)]
    body = ["\\toprule", *lines, "\\bottomrule"]
    form = "".join("r" if numeric else "l" for numeric in table.numeric)
    text = "\n".join([f"\\begin{{tabular}}{{{form}}}", *body, "\\end{tabular}"])
    if caption is not None or label is not None:
        heads = [f"\\caption{{{caption}}}"] if caption is not None else []
        heads += [f"\\label{{{label}}}"] if label is not None else []
        text = "\n".join(["\\begin{table}[t]", "\\centering", "\\small", *heads, text, "\\end{table}"])
    return _written(frame, path, text + "\n", "to_latex")


def to_markdown(
    frame: pd.DataFrame,
    path: str | os.PathLike[str] | None = None,
    *,
    rows: str = "agent",
    columns: str = "evaluator",
    baseline: Any = None,
    value: str = "score",
    interval: str | None = "brackets",
    percent: bool = False,
    digits: int | None = None,
    ci: float = 0.95,
    caption: str | None = None,
) -> str:
    """The same table in GitHub's Markdown, for a README or an issue; the caption is a paragraph below.

    Parameters, Returns, Raises
    ---------------------------
    As `to_latex`; `caption` is Markdown.
    """
    table = _table(frame, "to_markdown", rows, columns, baseline, value, interval, percent, digits, ci)
    caption = caption if caption is not None or table.caption is None else _markdown(table.caption)
    rules = ["---:" if numeric else ":---" for numeric in table.numeric]
    lines = [_pipes(map(_markdown, table.headings)), _pipes(rules)]
    lines += [_pipes(map(_markdown_cell, row)) for row in table.rows]
    text = "\n".join([*lines, *(["", caption] if caption else [])]) + "\n"
    return _written(frame, path, text, "to_markdown")


def _written(frame: pd.DataFrame, path: Any, text: str, caller: str) -> str:
    if path is not None:
        target, about = target_of(frame, path, caller), manifest_text(manifest(frame))
        with replacing(target) as file:
            Path(file).write_text(text, "utf-8", newline="")
        write_manifest(target, about)
    return text


# --- what is shown --------------------------------------------------------------------------------


def _table(
    frame: Any,
    caller: str,
    rows: str,
    columns: str,
    baseline: Any,
    value: str,
    interval: str | None,
    percent: bool,
    digits: int | None,
    ci: float,
) -> _Table:
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"{caller}: frame is a {type(frame).__name__}; expected a DataFrame")
    if interval not in _INTERVALS:
        raise InputError(f"{caller}: interval={interval!r} should be one of {', '.join(map(repr, _INTERVALS))}")
    if digits is not None and not (isinstance(digits, int) and not isinstance(digits, bool) and 0 <= digits <= 9):
        raise InputError(f"{caller}: digits={digits!r} should be a whole number from 0 to 9")
    if not set(_SCORES) <= set(frame.columns):
        return _as_it_stands(frame, 2 if digits is None else digits)
    if frame.empty:
        raise InputError(f"{caller}: scores has no rows")
    if rows == columns:
        raise InputError(f"{caller}: rows and columns are both {rows!r}; expected two columns of the frame")
    write = _Numbers(percent, (1 if percent else 2) if digits is None else digits, interval)
    return _of_scores(frame, rows, columns, baseline, value, ci, write)


@dataclass(frozen=True)
class _Numbers:
    """How the numbers of a table are written."""

    percent: bool
    digits: int
    interval: str | None

    def number(self, value: float) -> str:
        """``.56``, as papers write what cannot be above 1, or ``56.2``."""
        text = f"{100 * value:.{self.digits}f}" if self.percent else f"{value:.{self.digits}f}"
        return re.sub(r"^(-?)0(?=\.)", r"\1", text) if not self.percent else text

    def spread(self, low: float, high: float) -> str:
        if self.interval is None or pd.isna(low):
            return ""
        if self.interval == "pm":
            return f" ± {self.number((high - low) / 2)}"
        return f" [{self.number(low)}, {self.number(high)}]"


def _of_scores(
    scores: pd.DataFrame, rows: str, columns: str, baseline: Any, value: str, ci: float, write: _Numbers
) -> _Table:
    summary = summarize(scores, [rows, columns], ci=ci, value=value)
    lines, heads = (list(dict.fromkeys(map(_name, summary[name]))) for name in (rows, columns))
    found = {(_name(row[rows]), _name(row[columns])): row for row in summary.to_dict("records")}
    marks = {} if baseline is None else _marks(scores, rows, columns, baseline, value)
    best = summary.groupby(columns, sort=False, dropna=False)["score"].max()
    top = {_name(name): mean for name, mean in best.items()}
    several = len(lines) > 1

    def cell(line: str, head: str) -> _Cell:
        row = found.get((line, head))
        if row is None or pd.isna(row["score"]):
            return _Cell("--")
        bold = several and bool(np.isclose(row["score"], top[head], rtol=0, atol=1e-12))
        spread = write.spread(row["low"], row["high"])
        return _Cell(write.number(row["score"]), spread, bold, marks.get((line, head), ""))

    grid = tuple((_Cell(line), *(cell(line, head) for head in heads)) for line in lines)
    caption = _caption(summary, several, baseline, ci, write)
    return _Table((rows, *heads), grid, (False, *(True for _ in heads)), caption)


def _marks(scores: pd.DataFrame, rows: str, columns: str, baseline: Any, value: str) -> dict[tuple[str, str], str]:
    """The stars of each line and column, by paired tests adjusted together."""
    tests = []
    for head, part in scores.groupby(columns, sort=False, dropna=False):
        if part[rows].nunique(dropna=False) > 1 and (part[rows] == baseline).any():
            found = compare(part, by=rows, baseline=baseline, value=value, adjust=None)
            tests += [(_name(name), _name(head), p) for name, p in zip(found[rows], found["p"])]
    if not tests:  # let `compare` say what is wrong with the baseline
        compare(scores, by=rows, baseline=baseline, value=value, adjust=None)
    known = [(line, head, p) for line, head, p in tests if not pd.isna(p)]
    adjusted = stats.adjusted([p for _, _, p in known], "holm") if known else []
    return {
        (line, head): next((mark for level, mark in LEVELS if p < level), "")
        for (line, head, _), p in zip(known, adjusted, strict=True)
    }


def _caption(summary: pd.DataFrame, several: bool, baseline: Any, ci: float, write: _Numbers) -> str:
    what = "Mean score in percent" if write.percent else "Mean score"
    how = {"pm": f" ± half the width of the {100 * ci:g} % interval", "brackets": f" and {100 * ci:g} % interval"}
    tasks, trials = _range(summary["tasks"]), int(summary["trials"].max())
    each = f" (up to {trials} trials each)" if trials > 1 else ""
    parts = [f"{what}{how.get(write.interval or '', '')} over {tasks} tasks{each}."]
    if several:
        parts.append("Bold: the best of its column.")
    if baseline is not None:
        levels = ", ".join(f"{mark} p < {f'{level:g}'.lstrip('0')}" for level, mark in reversed(LEVELS))
        parts.append(f"{levels} against {_name(baseline)} (paired by task, Holm's adjustment).")
    if unscored := int(summary["unscored"].sum()):
        parts.append(f"{unscored} of {unscored + int(summary['n'].sum())} rows could not be scored and are in no mean.")
    return " ".join(parts)


def _range(counts: pd.Series) -> str:
    low, high = int(counts.min()), int(counts.max())
    return str(low) if low == high else f"{low} to {high}"


def _as_it_stands(frame: pd.DataFrame, digits: int) -> _Table:
    if frame.index.names != [None]:
        frame = frame.reset_index()
    columns = [frame.iloc[:, i] for i in range(frame.shape[1])]
    numeric = [pd.api.types.is_numeric_dtype(one) and not pd.api.types.is_bool_dtype(one) for one in columns]
    written = [[_Cell(_plain(value, digits)) for value in one.tolist()] for one in columns]
    return _Table(tuple(map(plain_heading, frame.columns)), tuple(zip(*written)), tuple(numeric))


def _plain(value: Any, digits: int) -> str:
    if cells.is_missing(value):
        return "--"
    if isinstance(value, float):
        least = 10.0**-digits
        return (
            f"{value:.{digits}f}"
            if not 0 < abs(value) < least / 2
            else f"{'<' if value > 0 else '>-'}{least:.{digits}f}"
        )
    return value if isinstance(value, str) else cells.encode(value)


def _name(value: Hashable) -> str:
    return "(none)" if cells.is_missing(value) else str(value)


# --- how it is written ----------------------------------------------------------------------------

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "±": r"$\pm$",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}
_MARKDOWN = {"&": "&amp;", "<": "&lt;", ">": "&gt;", **{letter: f"\\{letter}" for letter in "\\`*_[]|~#$"}}
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def _escape(text: str, table: Mapping[str, str]) -> str:
    text = text.encode("utf-8", "replace").decode()  # a lone surrogate is a question mark
    return "".join(table.get(letter, letter) for letter in _CONTROL.sub(" ", text))


def _latex(text: str) -> str:
    # A bracket at the start of a line would be taken for the optional argument of the line before.
    text = _escape(text, _LATEX)
    return f"{{}}{text}" if text.startswith(("[", "*")) else text


def _latex_line(row: Sequence[_Cell]) -> str:
    return " & ".join(map(_latex_cell, row)) + r" \\"


def _latex_cell(cell: _Cell) -> str:
    number = _latex(cell.text)
    number = f"\\textbf{{{number}}}" if cell.bold else number
    more = _escape(cell.more, _LATEX)
    return number + (f"\\textsuperscript{{{cell.mark}}}" if cell.mark else "") + more


def _markdown(text: str) -> str:
    return _escape(text, _MARKDOWN)


def _markdown_cell(cell: _Cell) -> str:
    number = _markdown(cell.text)
    return (f"**{number}**" if cell.bold else number) + _markdown(cell.mark) + _markdown(cell.more)


def _pipes(texts: Any) -> str:
    return "| " + " | ".join(texts) + " |"
