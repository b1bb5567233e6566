"""The parts of a report that stand above and below its runs: summary, comparison, judges, provenance."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from .. import plots, reports
from ..exporting import manifest
from ..exporting.cells import to_json
from ..frames import rows_of
from . import numbers
from .drawings import Given, drawn, figures, interval
from .elements import Html, block, element, folded, table
from .verdicts import json_text


def card(title: str, *inside: Any, name: str | None = None) -> Html:
    return element("section", element("h2", title), *inside, cls="card", id=name)


# --- summary ------------------------------------------------------------------------------------


def summary(scores: pd.DataFrame, ci: float) -> Html | None:
    """The means with their intervals, one line for each evaluator and agent."""
    if scores.empty:
        return None
    names = [name for name in ("evaluator", "agent") if name in scores.columns]
    found = reports.summarize(scores, names, ci=ci)
    rows = rows_of(found)
    if names:
        order = {name: i for i, name in reversed(list(enumerate(row[names[0]] for row in rows)))}
        rows.sort(key=lambda row: order[row[names[0]]])
    optional = {name: head for name, head in _OPTIONAL.items() if _says(rows, name)}
    heads = [*names, "score", f"{100 * ci:g} % interval", "", "tasks", *[head for head, _ in optional.values()]]
    lines = []
    for row in rows:
        lines.append(
            [
                *[_name(row[name]) for name in names],
                element("b", numbers.share(row["score"])),
                _ends(row),
                interval(row["score"], row["low"], row["high"]),
                numbers.count(row["tasks"]),
                *[shown(row[name]) for name, (_, shown) in optional.items()],
            ]
        )
    first = len(names)
    right = [first, first + 1, *range(first + 3, len(heads))]
    methods = sorted({row["method"] for row in rows if row["method"]})
    note = "Trials are averaged within their task, and every task weighs the same."
    note += f" Intervals: {', '.join(_METHODS[method] for method in methods)}." if methods else ""
    return card("Summary", table(heads, lines, numbers=right), element("p", note, cls="quiet"), name="summary")


_OPTIONAL = {
    "trials": ("trials", numbers.count),
    "unscored": ("unscored", numbers.count),
    "vacuous": ("vacuous", numbers.count),
    "cost_usd": ("cost", numbers.dollars),
    "tokens_in": ("tokens in", numbers.count),
    "tokens_out": ("tokens out", numbers.count),
}
_METHODS = {
    "wilson": "Wilson",
    "clustered": "Wilson with the effective number of tasks, as trials of one task resemble each other",
    "t": "Student's t over tasks",
    "bca": "BCa bootstrap over tasks",
}


def _says(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Whether a column says anything: trials above 1, anything else above 0, a price that is unknown."""
    least = 1 if name == "trials" else 0
    values = [numbers.known(row.get(name)) for row in rows]
    return any(name == "cost_usd" if value is None else value > least for value in values)


def _ends(row: Mapping[str, Any]) -> str:
    return "" if numbers.known(row["low"]) is None else f"{numbers.share(row['low'])} to {numbers.share(row['high'])}"


def _name(value: Any) -> str:
    return "(none)" if value is None else str(value)


# --- comparison ---------------------------------------------------------------------------------


def compared(scores: pd.DataFrame, baseline: Any, ci: float) -> pd.DataFrame | None:
    """The differences between agents, task by task; None where there are no two, or no tasks that both did."""
    if not {"agent", "task_id"} <= set(scores.columns) or scores["agent"].nunique() < 2:
        return None
    found = reports.compare(scores, baseline=baseline, ci=ci)
    found = found[found["tasks"] > 0]
    return None if found.empty else found


def comparison(found: pd.DataFrame | None, ci: float) -> Html | None:
    """The table of what was `compared`."""
    if found is None:
        return None
    rows = rows_of(found)
    several = "evaluator" in found.columns
    heads = [
        *(["evaluator"] if several else []),
        *("agent", "against", "difference", f"{100 * ci:g} % interval", "p", "p (Holm)", "better / worse", "tasks"),
        "detectable",
    ]
    lines = [
        [
            *([_name(row["evaluator"])] if several else []),
            _name(row["agent"]),
            _name(row["baseline"]),
            element("b", _signed(row["difference"])),
            f"{_signed(row['low'])} to {_signed(row['high'])}",
            numbers.p_value(row["p"]),
            numbers.p_value(row["p_adjusted"]),
            f"{row['better']} / {row['worse']}",
            numbers.count(row["tasks"]) + (f" ({row['unpaired']} unpaired)" if row["unpaired"] else ""),
            "> 1" if (numbers.known(row["detectable"]) or 0) > 1 else numbers.share(row["detectable"]),
        ]
        for row in rows
    ]
    tests = sorted({_TESTS.get(row["test"], row["test"]) for row in rows if row["test"]})
    note = f"Paired by task. Tests: {', '.join(tests)}. "
    note += "Detectable: the true difference that so many tasks show with 80 % power."
    right = range(3 if several else 2, len(heads))
    return card("Comparison", table(heads, lines, numbers=right), element("p", note, cls="quiet"), name="comparison")


_TESTS = {"mcnemar": "exact McNemar", "sign-flip": "sign-flip permutation over tasks"}


def _signed(value: Any) -> str:
    return numbers.UNKNOWN if numbers.known(value) is None else f"{value:+.3f}".replace("-", "−")


def drawings(scores: pd.DataFrame, runs: pd.DataFrame | None, found: pd.DataFrame | None) -> Html | None:
    found = figures(Given(scores, runs, found))
    return None if found is None else card("Figures", found, name="figures")


# --- judges -------------------------------------------------------------------------------------


def judges(scores: pd.DataFrame, labels: Any, runs: pd.DataFrame | None, ci: float, *, figure: bool) -> Html | None:
    """The card of each judge, held against the labels."""
    if labels is None:
        return None
    found = reports.judge_card(_of_judges(scores), labels, runs, ci=ci)
    rows = [row for row in rows_of(found) if numbers.known(row["value"]) is not None]
    keys = list(found.columns[: found.columns.get_loc("measure")])
    heads = [*keys, "measure", "value", f"{100 * ci:g} % interval", "n", "note"]
    lines = [
        [
            *[_name(row[key]) for key in keys],
            row["measure"].replace("_", " "),
            element("b", _measure(row["value"])),
            _ends(row),
            numbers.count(row["n"]),
            row["note"],
        ]
        for row in rows
    ]
    if not rows:
        return card("Judges", element("p", "No measure of the judges has a value.", cls="quiet"), name="judges")
    k = len(keys)
    return card(
        "Judges against the labels",
        element("figure", drawn(plots.judge_card(found), "card-")) if figure else None,
        folded("All measures", table(heads, lines, numbers=[k + 1, k + 2, k + 3]), open=not figure),
        name="judges",
    )


def _of_judges(scores: pd.DataFrame) -> pd.DataFrame:
    """The verdicts of models and panels of them, where there are any: no label is needed to trust a rule."""
    asked = pd.Series(False, index=range(len(scores)))
    if "judge_model" in scores.columns:
        asked |= scores["judge_model"].notna().to_numpy()
    if "kind" in scores.columns:
        asked |= (scores["kind"] == "jury").fillna(False).to_numpy()
    if not asked.any() or "evaluator" not in scores.columns:
        return scores
    names = set(scores["evaluator"][asked.to_numpy()])
    return scores[scores["evaluator"].isin(names)]


def _measure(value: float) -> str:
    return numbers.share(value) if abs(value) >= 0.001 or value == 0 else f"{value:.2g}"


# --- how it came about --------------------------------------------------------------------------


def provenance(scores: pd.DataFrame, runs: pd.DataFrame | None) -> Html:
    """The manifests of the frames: versions, models, judges' texts, servers."""
    frames = {"runs": runs, "scores": None if scores.empty else scores}
    about = {name: manifest(frame) for name, frame in frames.items() if frame is not None}
    first = next(iter(about.values()), {})
    models = sorted({name for one in about.values() for name in one["models"]})
    returned = sorted({name for one in about.values() for name in one["models_returned"]})
    started = about.get("runs", first).get("started") or []
    servers = about.get("runs", first).get("servers") or []
    facts = {
        "mcpeval": first.get("mcpeval"),
        "Python": first.get("python"),
        "written": first.get("written"),
        "runs began": " to ".join(sorted({moment[:19] for moment in started})) or None,
        "models": ", ".join(models) or None,
        "as providers named them": ", ".join(returned) or None,
        "servers": ", ".join(_server(server) for server in servers) or None,
    }
    pairs = [element("div", element("dt", name), element("dd", str(v))) for name, v in facts.items() if v is not None]
    texts = {name: text for one in about.values() for name, text in one["judges"].items() if text is not None}
    judged = [folded(f"{_title(text)} {name[:12]}", _code(text)) for name, text in texts.items()]
    return card(
        "How it came about",
        element("dl", pairs, cls="facts"),
        folded(f"{numbers.several(len(texts), 'evaluator')} in full", judged) if texts else None,
        [folded(f"Manifest of the {name}", _code(one)) for name, one in about.items()],
        name="provenance",
    )


def _code(value: Any) -> Html:
    """A value of a manifest as JSON, whatever the frame's labels were."""
    return block(json_text(json.loads(to_json(value))), "code")


def _title(text: Any) -> str:
    return str(text.get("name") or text.get("kind") or "") if isinstance(text, Mapping) else ""


def _server(server: Mapping[str, Any]) -> str:
    version = server.get("package_version") or (server.get("server_info") or {}).get("version")
    return f"{server.get('name')} {version or ''}".strip()
