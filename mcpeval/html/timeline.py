"""The spans of a run as bars over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import numbers
from .elements import Html, block, element, folded

#: Spans within each other are moved to the right so many times at most.
_DEPTH = 6


def timeline(spans: Sequence[Mapping[str, Any]]) -> Html | None:
    """A line for each span: what it was, when, how long, and what it used; None where there are none."""
    if not spans:
        return None
    end = max((_number(span, "start") + _number(span, "seconds") for span in spans), default=0.0) or 1.0
    depths: dict[Any, int] = {}
    lines = []
    for span in spans:
        depth = depths[span["id"]] = min(_DEPTH, depths.get(span.get("parent"), -1) + 1)
        lines.append(_line(span, depth, end))
    head = element("tr", [element("th", name, scope="col") for name in ("What", "When", "Time", "Tokens", "Cost")])
    table = element("table", element("thead", head), element("tbody", lines))
    title = f"Timeline: {numbers.several(len(spans), 'span')} in {numbers.duration(end)}"
    return folded(title, element("div", table, cls="scroll timeline", tabindex="0"))


def _line(span: Mapping[str, Any], depth: int, end: float) -> Html:
    start, took = _number(span, "start"), _number(span, "seconds")
    kind, failed = str(span["kind"]), span.get("error_class")
    known = kind if kind in ("agent", "workflow", "llm", "tool") else "agent"
    bar = element(
        "svg",
        element(
            "rect",
            x=f"{100 * start / end:.2f}",
            y="0",
            width=f"{max(100 * took / end, 0.5):.2f}",
            height="10",
            cls="failed" if failed else known,
        ),
        viewBox="0 0 100 10",
        preserveAspectRatio="none",
        cls="bar",
        aria_hidden="true",
    )
    what = [element("span", kind, cls="quiet"), " ", str(span.get("name"))]
    if failed:
        what += [" ", element("span", str(failed), cls="badge")]
        what += [block(span["error"], "error")] if span.get("error") else []
    tokens = [numbers.known(span.get(name)) for name in ("tokens_in", "tokens_out")]
    cells = [
        element("td", what, cls=f"depth{depth}"),
        element("td", bar, cls="bars"),
        element("td", numbers.duration(span.get("seconds")), cls="number"),
        element("td", " → ".join(map(numbers.count, tokens)) if any(tokens) else None, cls="number"),
        element("td", numbers.dollars(span["cost_usd"]) if "cost_usd" in span else None, cls="number"),
    ]
    return element("tr", cells)


def _number(span: Mapping[str, Any], name: str) -> float:
    return numbers.known(span.get(name)) or 0.0
