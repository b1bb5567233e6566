"""`report`: an experiment as one HTML file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import InputError
from ..frames import scores_frame
from . import numbers
from .elements import Html, element, join
from .images import Images
from .packing import blocks, runs_of
from .sections import card, compared, comparison, drawings, judges, provenance, summary
from .shell import Page, page, page_path
from .verdicts import rows_of_scores


def report(
    scores: pd.DataFrame | None,
    runs: pd.DataFrame | None = None,
    path: str | os.PathLike[str] = "report.html",
    *,
    labels: Any = None,
    title: str | None = None,
    baseline: Any = None,
    ci: float = 0.95,
    figures: bool = True,
    cache: Any = None,
) -> Path:
    """Write an experiment as one HTML file that needs nothing else, to read and to pass on.

    Parameters
    ----------
    scores : DataFrame or None
        As `score` returns it; None for runs that nobody scored. Reads what `summarize` and `compare`
        read, and ``reason``, ``label``, ``passed``, ``status``, ``metadata``.
    runs : DataFrame, optional
        The runs that were scored, for their transcripts (`transcript` says what is read). Without them
        the table has what the scores know of each.
    path : path-like
        A file that is there is replaced.
    labels : str, Series, dict or DataFrame, optional
        What people said, as in `judge_card`: the judges are held against it. Of several evaluators only
        those that asked a model are, where there are any.
    title : str, optional
        By default the names of the agents.
    baseline : optional
        The agent that all others are compared with, as in `compare`.
    ci : float
        Confidence of the intervals.
    figures : bool
        Whether the figures are drawn; without them the file is written in half the time.
    cache : Cache, path, None or False
        Where the images that tools gave are kept, as in `run`; they become part of the file.

    Returns
    -------
    Path

    Raises
    ------
    InputError
        There is neither a score nor a run, `runs` has a ``run_id`` twice or lacks one of the scores',
        or as `summarize`, `compare` and `judge_card`; nothing is written.
    FileError
        There is no such folder, or it cannot be written to.

    Notes
    -----
    In it: the summary with intervals, the paired comparison, figures, the judges against labels, all
    runs in a table to filter, search and sort, each with its transcript, and the manifests. The file
    opens without a network, and nothing that a model or a tool wrote can run in it. Filters and the
    run that is open are in the address, which can be passed on with the file.

    Examples
    --------
    >>> report(scores, runs, "report.html")  # doctest: +SKIP
    """
    target = page_path(path, "report")
    about = {"labels": labels, "title": title, "baseline": baseline, "ci": ci, "figures": figures, "cache": cache}
    return document(scores, runs, **about).save(target)


def document(
    scores: pd.DataFrame | None,
    runs: pd.DataFrame | None = None,
    *,
    labels: Any = None,
    title: str | None = None,
    baseline: Any = None,
    ci: float = 0.95,
    figures: bool = True,
    cache: Any = None,
) -> Page:
    """The page that `report` writes."""
    if runs is not None and not isinstance(runs, pd.DataFrame):
        raise InputError(f"report: runs is a {type(runs).__name__}; expected a frame, as mcpeval.run gives it")
    if labels is not None and scores is None:
        raise InputError("report: labels say whether verdicts are right, and there are no scores")
    rows_of_scores(scores, "report")
    table = scores_frame([]) if scores is None else scores
    found = runs_of(runs, table)
    if not found:
        raise InputError("report: there is neither a score nor a run to report")
    heading = str(title or _title(found))
    differences = compared(table, baseline, ci)
    parts = [
        element("h1", heading),
        element("p", _lead(found), cls="lead"),
        summary(table, ci),
        comparison(differences, ci),
        drawings(table, runs, differences) if figures else None,
        judges(table, labels, runs, ci, figure=figures),
        _runs(len(found)),
        provenance(table, runs),
    ]
    body = element("main", parts, cls="page")
    return page(heading, body, _DIALOG, join(*blocks(found, Images(cache))), scripts=["report.js"])


#: Letters of the names of agents that a title has room for.
_TITLE = 80
_Found = Sequence[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]]


def _title(found: _Found) -> str:
    agents = list(dict.fromkeys(str(row["agent"]) for row, _ in found if row.get("agent") is not None))
    named = ", ".join(agents)
    told = named if len(named) <= _TITLE else numbers.several(len(agents), "agent")
    return f"mcpeval report: {told}" if agents else "mcpeval report"


def _lead(found: _Found) -> str:
    """What there is, in one sentence."""

    def different(name: str) -> int:
        return len({str(row[name]) for row, _ in found if row.get(name) is not None})

    counts = [numbers.several(len(found), "run")]
    names = {"task": "task_id", "agent": "agent", "model": "model"}
    counts += [numbers.several(n, what) for what, name in names.items() if (n := different(name))]
    counts += [numbers.several(n, "score")] if (n := sum(len(scores) for _, scores in found)) else []
    failed = Counter(str(row.get("error_class") or "error") for row, _ in found if row.get("status") == "error")
    told = ", ".join(f"{n} {kind}" for kind, n in failed.most_common())
    paid = [row["cost_usd"] for row, _ in found if "cost_usd" in row]
    paid += [score["cost_usd"] for _, scores in found for score in scores if "cost_usd" in score]
    unknown = sum(numbers.known(cost) is None for cost in paid)
    cost = numbers.dollars(float(sum(cost for cost in paid if numbers.known(cost) is not None)))
    parts = [f"{', '.join(counts)}."]
    parts += [f"{numbers.several(sum(failed.values()), 'run')} ended with an error ({told})."] if failed else []
    parts += [f"Paid: {cost}{f', and what {unknown:,} rows of unknown price cost' if unknown else ''}."] if paid else []
    return " ".join(parts)


def _runs(n: int) -> Html:
    """The table of runs, which the script fills."""
    selects = [
        element("label", text, element("select", element("option", "all", value=""), id=name))
        for name, text in (
            ("agent", "Agent"),
            ("category", "Category"),
            ("evaluator", "Evaluator"),
            ("passed", "Outcome"),
            ("error", "Error class"),
        )
    ]
    search = element(
        "input",
        id="q",
        type="search",
        placeholder='words or "a phrase" of question, answer, reason, error',
        autocomplete="off",
    )
    filters = element(
        "form",
        element("label", "Search", search, cls="wide"),
        selects,
        element("button", "Clear", type="reset"),
        cls="filters",
        id="filters",
    )
    heads = {"task": "Task", "agent": "Agent", "said": "Verdicts", "kind": "Error", "cost": "Cost", "time": "Time"}
    buttons = [element("button", text, type="button", data_sort=name) for name, text in heads.items()]
    return card(
        "Runs",
        filters,
        element("p", numbers.several(n, "run"), cls="quiet", id="count", aria_live="polite"),
        element("div", buttons, cls="heads"),
        element("div", element("noscript", "The table of runs needs JavaScript."), cls="list", id="list"),
        name="runs",
    )


_DIALOG = element(
    "dialog",
    element(
        "div",
        element("button", "←", type="button", id="previous", title="the run before (k)", aria_label="the run before"),
        element("button", "→", type="button", id="next", title="the run after (j)", aria_label="the run after"),
        element("span", cls="quiet", id="place"),
        element("button", "Close", type="button", id="close"),
        cls="bar",
    ),
    element("div", cls="inside", id="inside"),
    id="dialog",
    aria_label="Transcript",
)
