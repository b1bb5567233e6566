"""A benchmark's results as MCP-Universe reports them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ..evaluators.chains import COMPARISONS, STEPS, Custom
from ..frames import column
from .columns import (
    cells,
    check_choice,
    check_ci,
    check_column,
    check_frame,
    check_repeats,
    group_columns,
    group_keys,
    groups_of,
    numbers,
    task_means,
    units,
    values_of,
)
from .repetitions import passed_of
from .summaries import failed_rows, mean_of

#: What an evaluator looks at: the form of an answer, what never changes, what is true now, what a judge thinks of it.
TYPES = ("format", "static", "dynamic", "judge")
OVERALL = "overall"
_BY = ("agent",)
_ERRORS = ("exclude", "fail")
_TABLE = {
    **dict.fromkeys(("success_rate", "low", "high", "evaluator_score", "steps", "steps_success", *TYPES), "float64"),
    **dict.fromkeys(("tasks", "trials", "runs", "incomplete"), "int64"),
}
_CALL = r"""[\w.]+(?:\((?:"[^"]*"|'[^']*'|[^()"'])*\))?"""
_CHAIN = re.compile(rf"\s*({_CALL})(?:\s*->\s*{_CALL})*")


@dataclass(frozen=True)
class _Run:
    """What all evaluators say of one run; numbers are None where they could not say it."""

    place: int
    task: int
    complete: bool
    success: float | None
    score: float | None
    steps: float | None
    types: Mapping[str, float]


def benchmark_table(
    scores: pd.DataFrame,
    by: str | Sequence[str] = _BY,
    *,
    runs: pd.DataFrame | None = None,
    types: Mapping[str, str] | None = None,
    ci: float = 0.95,
    errors: str = "exclude",
) -> pd.DataFrame:
    """Success rate, evaluator score and steps of each agent, by category and overall.

    A run succeeds where every one of its evaluators passes; its evaluator score is the mean of their
    scores.  Runs are averaged within their task, and tasks weigh the same.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it. Reads ``run_id``, ``evaluator``, ``score`` and, where they exist,
        ``task_id``, ``category``, ``kind``, ``passed``, ``status``, ``metadata``, ``turns``, and the
        columns of `by`.
    by : str or list of str
        Columns that make the groups.
    runs : DataFrame, optional
        As `run` returns it: its ``turns`` are the steps (where there is none, those in `scores`), its
        ``evaluators`` say what rules with names of their own compare with.
    types : dict, optional
        The type of evaluators that the names below do not tell right, by their name or by their
        operator: ``{"google_maps.stop_include_keys": "format"}``.
    ci : float
        Confidence of the interval.
    errors : {"exclude", "fail"}
        "exclude": a run of which one evaluator could not say anything is in no mean. "fail": where
        that is because something failed, it counts as 0, as MCP-Universe counts it.

    Returns
    -------
    DataFrame
        One row per group and category, then one for all categories, ``category`` "overall". The
        columns of `by`, ``category``, ``success_rate`` with its interval ``low``, ``high`` (as
        `summarize` has it for a rate), ``evaluator_score``, ``steps`` (mean turns), ``steps_success``
        (mean turns of the runs that succeed), ``format``, ``static``, ``dynamic``, ``judge`` (mean
        score of the evaluators of each type), ``tasks``, ``trials`` (most runs of one task), ``runs``
        (those in the means), ``incomplete`` (those that are not). What nothing is known of is missing.

    Raises
    ------
    InputError
        A column is missing, a score is neither pass nor fail and nothing says which, a type is unknown,
        or a category is called "overall".

    Notes
    -----
    The type of an evaluator is taken from its name: ``judge`` for a judge, and a rule whose operator
    has "judge" in its name; ``format`` for a rule without an operator, which passes where its chain can
    be followed, and for the operator ``schema``; ``dynamic`` for a rule whose operator is a function
    that was registered, as those of MCP-Universe are which look up what is true at the moment;
    ``static`` for all others.  Measures and types are those of Luo et al., "MCP-Universe" (2025),
    arXiv:2508.14704; steps are reported there of the runs that succeed.
    """
    check_frame(scores, "benchmark_table")
    check_ci(ci, "benchmark_table")
    check_choice("errors", errors, _ERRORS, "benchmark_table")
    for name in ("run_id", "evaluator"):
        check_column(scores, name, "benchmark_table")
    keys = group_keys(scores, by, _BY, [*_TABLE, "category"], "benchmark_table")
    check_repeats(scores, keys, "benchmark_table")
    if "evaluator" in keys:
        raise InputError("benchmark_table: by has 'evaluator', and a run succeeds by all of its evaluators together")
    categories = ["" if name is None else name for name in cells(scores, "category")]
    if OVERALL in categories:
        raise InputError(f"benchmark_table: scores has the category {OVERALL!r}, which is the table's own; rename it")
    found = _runs(scores, _steps(scores, runs), _types(scores, runs, types or {}), errors)
    rows, labels = [], []
    for group, positions in groups_of(scores, keys):
        own = [found[place] for place in positions if place in found]
        named = dict.fromkeys(categories[run.place] for run in own) if "category" in scores.columns else {}
        for category in [*named, OVERALL]:
            chosen = own if category is OVERALL else [run for run in own if categories[run.place] == category]
            rows.append({"category": category, **_line(chosen, ci)})
            labels.append(group)
    dtypes = {"category": "str", **_TABLE}
    columns = {name: column([row[name] for row in rows], dtype) for name, dtype in dtypes.items()}
    return pd.DataFrame({**group_columns(scores, keys, labels), **columns})


# --- steps and types ----------------------------------------------------------------------------


def _steps(scores: pd.DataFrame, runs: pd.DataFrame | None) -> np.ndarray:
    """The turns of each row's run, shape (rows,); NaN where nobody says."""
    if runs is None:
        return numbers(scores, "turns", "benchmark_table")
    if not isinstance(runs, pd.DataFrame):
        raise InputError(f"benchmark_table: runs is a {type(runs).__name__}; expected a frame, as run() returns it")
    for name in ("run_id", "turns"):
        if name not in runs.columns:
            raise InputError(f"benchmark_table: runs has no column {name!r}")
    turns = dict(zip(cells(runs, "run_id"), numbers(runs, "turns", "benchmark_table")))
    return np.array([turns.get(run, np.nan) for run in cells(scores, "run_id")], dtype="float64")


def _types(scores: pd.DataFrame, runs: pd.DataFrame | None, given: Mapping[str, str]) -> list[str]:
    """The type of each row's evaluator."""
    for name, type_ in given.items():
        check_choice(f"types[{name!r}]", type_, TYPES, "benchmark_table")
    operators: dict[str, str] = {}  # of rules that have a name of their own
    for own in [] if runs is None else cells(runs, "evaluators"):
        for config in own if isinstance(own, (list, tuple, np.ndarray)) else ():
            if isinstance(config, Mapping) and config.get("name"):
                operators[config["name"]] = config.get("op") or ""
    known: dict[tuple[str, str], str] = {}
    types = []
    for pair in zip(cells(scores, "evaluator"), cells(scores, "kind")):
        if pair not in known:
            known[pair] = _type(str(pair[0]), pair[1], operators, given)
        types.append(known[pair])
    return types


def _type(name: str, kind: str | None, operators: Mapping[str, str], given: Mapping[str, str]) -> str:
    bare = re.sub(r" \(\d+\)$", "", name)  # the second of one name
    operator = operators[bare] if bare in operators else _operator(bare) if kind in ("rule", None) else None
    for said in (name, bare, operator):
        if said and said in given:
            return given[said]
    if kind == "judge" or "judge" in (operator or "").lower():
        return "judge"
    if operator in ("", "schema"):
        return "format"
    if operator and ("." in operator or isinstance(COMPARISONS.get(operator), Custom)):
        return "dynamic"
    return "static"


def _operator(name: str) -> str | None:
    """The operator in the name that a rule has by default; "" where it has none, None for another name."""
    match = _CHAIN.match(name)
    step = match and match[1].partition("(")[0]
    if match is None or step not in STEPS and step != "output":
        return None
    rest = name[match.end() :].strip()
    built_in = [op for op in COMPARISONS if rest == op or rest.startswith(f"{op} ")]
    return max(built_in, key=len) if built_in else rest.partition(" ")[0]


# --- runs and lines -----------------------------------------------------------------------------


def _runs(scores: pd.DataFrame, steps: np.ndarray, types: Sequence[str], errors: str) -> dict[int, _Run]:
    """What is said of each run, by the position of its first row."""
    values, passes = values_of(scores, "score", "benchmark_table"), passed_of(scores, "benchmark_table")
    missing = np.isnan(passes) & failed_rows(scores)
    if errors == "fail":
        values, passes = np.where(missing, 0.0, values), np.where(missing, 0.0, passes)
        missing = np.zeros_like(missing)
    tasks, runs = units(scores)
    evaluators = cells(scores, "evaluator")
    rows: dict[int, list[int]] = {}
    for position, run in enumerate(runs):
        rows.setdefault(run, []).append(position)
    found = {}
    for own in rows.values():
        spoken = [place for place in own if not np.isnan(passes[place])]
        complete = bool(spoken) and not missing[own].any()
        by_evaluator: dict[Any, list[int]] = {}
        for place in spoken:
            by_evaluator.setdefault(evaluators[place], []).append(place)
        means = {name: float(np.mean(values[places])) for name, places in by_evaluator.items()}
        by_type: dict[str, list[float]] = {}
        for name, places in by_evaluator.items():
            by_type.setdefault(types[places[0]], []).append(means[name])
        found[own[0]] = _Run(
            place=own[0],
            task=tasks[own[0]],
            complete=complete,
            success=float(all(passes[places].mean() > 0.5 for places in by_evaluator.values())) if complete else None,
            score=float(np.mean(list(means.values()))) if complete else None,
            steps=None if np.isnan(steps[own[0]]) else float(steps[own[0]]),
            types={type_: float(np.mean(said)) for type_, said in by_type.items()},
        )
    return found


def _line(runs: Sequence[_Run], ci: float) -> dict[str, Any]:
    """The table's numbers for some runs."""
    complete = [run for run in runs if run.complete]
    tasks, numbered = np.array([run.task for run in complete], dtype=int), np.arange(len(complete))
    success = np.array([run.success for run in complete], dtype="float64")
    rate = mean_of(success, tasks, numbered, ci, "auto", 0, True)
    return {
        "success_rate": rate["score"],
        **{name: rate[name] for name in ("low", "high", "tasks", "trials")},
        "evaluator_score": _average([(run.task, run.score) for run in complete]),
        "steps": _average([(run.task, run.steps) for run in complete]),
        "steps_success": _average([(run.task, run.steps) for run in complete if run.success]),
        **{type_: _average([(run.task, run.types.get(type_)) for run in complete]) for type_ in TYPES},
        "runs": len(complete),
        "incomplete": len(runs) - len(complete),
    }


def _average(pairs: Sequence[tuple[int, float | None]]) -> float | None:
    """The mean over tasks of the mean of each, of (task, value); None where there is no value."""
    known = [(task, value) for task, value in pairs if value is not None]
    if not known:
        return None
    tasks, values = np.array([task for task, _ in known]), np.array([value for _, value in known])
    _, means, _ = task_means(values, tasks, np.arange(len(known)))
    return float(means.mean())
