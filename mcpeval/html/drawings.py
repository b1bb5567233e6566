"""Figures as SVG within the page: no style of their own, and ids that no other figure has."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pandas as pd

from .. import plots, reports
from ..errors import InputError
from . import numbers
from .elements import Html, element, folded, join

_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"
_ID = re.compile(r"#([\w.:-]+)")
#: What XML cannot hold, and so no name of an agent in a figure.
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
#: Properties of a style that stand as attributes of an SVG element too; fonts are the page's.
_PROPERTIES = re.compile(r"(?:fill|stroke|opacity|text-anchor|font-size|font-weight|font-style|clip|display)[\w-]*")
#: Differences that can be read in one figure; of more, as every pair of ten agents has, there is the table.
_FOREST = 40


class Given(NamedTuple):
    """What there is to draw: scores, the runs where they are given, and the comparison of agents where there is one."""

    scores: pd.DataFrame
    runs: pd.DataFrame | None
    compared: pd.DataFrame | None


_Drawn = Iterator[tuple[str, Callable[[], Any]]]


def _main(given: Given) -> _Drawn:
    """The captions of the figures that are shown at once, and what draws them."""
    scores = given.scores
    if "agent" in scores.columns:
        yield "Mean score of each agent over tasks, with its interval", lambda: plots.success(scores)
        if given.compared is not None and len(given.compared) <= _FOREST:
            text = "Differences between agents, paired by task; filled where they are significant"
            yield text, lambda: plots.differences(given.compared)


def _more(given: Given) -> _Drawn:
    """Those that are folded away."""
    scores, runs = given.scores, given.runs
    if "agent" in scores.columns and not scores.empty:
        if "category" in scores.columns and scores["category"].nunique() > 1:
            yield "Mean score by category of tasks", lambda: plots.success(scores, by=["agent", "category"])
        yield "Verdicts of each evaluator", lambda: plots.distribution(scores)
    if runs is not None and "agent" in runs.columns:
        yield "How the runs ended", lambda: plots.error_classes(runs)
        yield "Which tools were called; the bar is the share that failed", lambda: plots.tool_use(runs)
        yield "What the runs used", lambda: plots.usage(runs)
    for name in scores["evaluator"].unique() if {"agent", "evaluator"} <= set(scores.columns) else ():
        own = scores[scores["evaluator"] == name]
        if runs is not None:
            yield f"Cost against score: {name}", partial(plots.cost, own, runs)
        if ks := _trials(own):
            yield f"Any of k trials passes (solid), all of them pass (dashed): {name}", partial(_passes, own, ks)


def _trials(scores: pd.DataFrame) -> list[int]:
    """The numbers of trials to show pass@k for: as far as every task has them; none where each has one."""
    if not {"task_id", "run_id"} <= set(scores.columns):
        return []
    least = int(scores.groupby(["agent", "task_id"], dropna=False, observed=True)["run_id"].nunique().min())
    if least < 2:
        return []
    return list(range(1, least + 1)) if least <= 8 else [k for k in (1, 2, 4, 8, 16, 32, 64) if k <= least]


def _passes(scores: pd.DataFrame, ks: list[int]) -> Any:
    return plots.passes(reports.pass_at_k(scores, ks))


def figures(given: Given) -> Html | None:
    """The figures that these frames have something for."""
    shown = _each(_main(given), "f") if not given.scores.empty else []
    more = _each(_more(given), "g")
    parts = [element("div", shown, cls="figures") if shown else None]
    parts += [folded("More figures", element("div", more, cls="figures"))] if more else []
    return join(parts) if shown or more else None


def _each(figures: _Drawn, letter: str) -> list[Html]:
    found = []
    for number, (caption, draw) in enumerate(figures):
        try:
            svg = drawn(draw(), f"{letter}{number}-")
        except InputError:  # it has nothing to draw: no call of a tool, no score of 0 or 1
            continue
        found.append(element("figure", svg, element("figcaption", caption)))
    return found


def drawn(axes: Any, prefix: str) -> Html:
    """The figure of `axes` as an SVG element whose ids begin with `prefix`; the figure is closed."""
    import matplotlib
    from matplotlib import pyplot

    # Not rc_context: in a notebook it ends the interactive mode, and no later figure would be shown.
    before = {name: matplotlib.rcParams[name] for name in ("svg.fonttype", "svg.hashsalt")}
    file = io.StringIO()
    try:
        matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": prefix})
        axes.figure.savefig(file, format="svg", transparent=True, metadata={"Date": None}, bbox_inches="tight")
    finally:
        matplotlib.rcParams.update(before)
        pyplot.close(axes.figure)
    return _inline(_NO_XML.sub("\ufffd", file.getvalue()), prefix)


def _inline(svg: str, prefix: str) -> Html:
    root = ElementTree.fromstring(svg.partition("<svg")[1] + svg.partition("<svg")[2])
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{_SVG}metadata", f"{_SVG}style"):
                parent.remove(child)
    for node in root.iter():
        node.tag = node.tag.removeprefix(_SVG)
        node.attrib = dict(_attributes(node.attrib, prefix))
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib |= {"class": "drawn", "role": "img", "stroke-linejoin": "round", "stroke-linecap": "butt"}
    return Html(ElementTree.tostring(root, encoding="unicode"))


def _attributes(given: dict[str, str], prefix: str) -> Any:
    for name, value in given.items():
        if name == "style":  # which the page's policy refuses; as attributes the same is let in
            for declaration in value.split(";"):
                key, colon, said = declaration.partition(":")
                key = key.strip()
                if colon and key == "font":
                    yield from _font(said)
                elif colon and _PROPERTIES.fullmatch(key):
                    yield key, _ID.sub(rf"#{prefix}\1", said.strip()) if "url(" in said else said.strip()
        elif name == "id":
            yield "id", prefix + value
        elif name == _LINK:
            yield "href", _ID.sub(rf"#{prefix}\1", value)
        else:
            yield name, _ID.sub(rf"#{prefix}\1", value) if value.startswith("url(") else value


def _font(said: str) -> Any:
    """``font: bold 7px 'DejaVu Sans'`` as attributes."""
    if size := re.search(r"[\d.]+px", said):
        yield "font-size", size[0]
    for name, values in (("font-weight", ("bold", "[1-9]00")), ("font-style", ("italic", "oblique"))):
        if found := re.search(rf"\b(?:{'|'.join(values)})\b", said.partition("px")[0]):
            yield name, found[0]


def interval(value: Any, low: Any, high: Any) -> Html:
    """A score from 0 to 1 as a dot, on its interval."""
    dot, ends = numbers.known(value), [numbers.known(low), numbers.known(high)]
    marks = [element("rect", x="0", y="6.5", width="100", height="1", cls="axis")]
    if None not in ends:
        width = max(100 * (ends[1] - ends[0]), 0.4)
        marks.append(element("rect", x=f"{100 * ends[0]:.2f}", y="5", width=f"{width:.2f}", height="4", cls="whisker"))
    if dot is not None:
        marks.append(element("rect", x=f"{100 * dot - 0.8:.2f}", y="1", width="1.6", height="12", cls="dot"))
    said = f"{numbers.share(value)}, {numbers.share(low)} to {numbers.share(high)}"
    return element(
        "svg", marks, viewBox="0 0 100 14", preserveAspectRatio="none", cls="range", role="img", aria_label=said
    )
