"""`probe`: what moves a judge that should not, measured on the same runs changed in pairs.

Parts: perturbations (what is changed) | effects (what that did).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import pandas as pd

from ..attacks import select
from ..errors import InputError, did_you_mean, is_one_of
from ..evaluators.adapting import as_evaluator, as_evaluators
from ..evaluators.composed import owner_of
from ..reports.columns import check_ci, check_seed
from ..scoring import score
from ..scoring.inputs import read_runs
from .effects import ALL, distribution, effects
from .perturbations import CLEAN, KINDS, Perturbation, answer_column, perturbations, seen

__all__ = ["KINDS", "distribution", "probe"]

#: What is judged: a row, and the change that made it of a run (none, for the run as it is).
Job = tuple[Perturbation, Mapping[str, Any]]

_UNSEEN = "it is not shown the answer that is changed"
_NONE = "no run has an answer that could be changed so"


def probe(
    judge: Any,
    runs: Any,
    kinds: str | Sequence[str] | None = None,
    *,
    attacks: Any = None,
    other: str | None = None,
    verdicts: bool = False,
    dry_run: bool = False,
    cache: Any = None,
    concurrency: int = 16,
    budget_usd: float | None = None,
    progress: bool | None = None,
    replay: bool = False,
    ci: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Change what should not matter to a judge, and see whether it does.

    Every run is judged as it is and once more in each variant; what is compared are the two verdicts
    on the same run.  Nothing but the judge asks a model: all changes are made by fixed rules.

    Parameters
    ----------
    judge : evaluator, list of evaluators, or dict
        Judges, or rules and functions, which cost nothing.
    runs : DataFrame, Run, dict, or list of those
        As `score` takes them.  What is changed is ``output``, and the same text where it ends the
        transcript.
    kinds : str or list of str, optional
        Of these, all by default:

        - ``position``: the columns are shown in the other order ("columns"), the labels of a choice
          are named in the other order ("labels").
        - ``verbosity``: the answer said three times ("restated"), or followed by sentences that say
          nothing ("filler").
        - ``format``: set in Markdown ("markdown"), or without the markup it has ("plain").
        - ``self``: said to be of the judge's own model ("own") against said to be of another.
        - ``authority``: followed by an invented source ("citation"), by "experts" or a "majority" who
          found it right.
        - ``injection``: an attack on the judge in it, a variant for each family of attacks, and "all" of them.
    attacks : str, Attack, or list of those, optional
        Families or ids of `mcpeval.attacks.ATTACKS`, or attacks of your own; all by default.
    other : str, optional
        The model that is named as another by ``self``; by default a well-known one of another maker.
    verdicts : bool
        Whether to give the verdicts themselves instead of the effects.
    dry_run : bool
        Ask nobody, and give what it would cost.
    cache, concurrency, budget_usd, progress, replay
        As in `score`.
    ci : float
        Confidence of the intervals.
    seed : int
        Of the permutation test.

    Returns
    -------
    DataFrame
        A row for each judge and variant: ``evaluator``, ``kind``, ``variant``, ``baseline``, ``n`` (pairs
        of verdicts), ``tasks``, ``unscored`` (perturbed rows without a verdict), ``score`` and
        ``baseline_score`` (means over tasks), ``effect`` with ``low`` and ``high``: the mean difference
        within tasks.  These five are in points: hundredths of the score's range from 0 to 1.  Then
        ``p``, ``p_adjusted`` (Holm, over all rows) and ``test`` as in `compare`; ``flipped_up`` and
        ``flipped_down`` (verdicts that pass only with, or only without the change; of a judge that
        does not say what passes, verdicts that are the best there is), ``success`` (the share, from 0
        to 1, of those that do not pass otherwise, by task) with its interval, ``cost_usd`` of the
        perturbed rows, and ``note``, which says of a kind that does not apply why.

        With `verdicts`, a scores frame with the columns ``kind``, ``variant`` ("clean" both where nothing
        was changed) and ``attack`` before ``evaluator``; `kind` of the evaluator is ``evaluator_kind``.
        `distribution` counts them.

        With `dry_run`, ``evaluator``, ``kind``, ``variant``, ``rows``, ``calls``, ``shared_calls``,
        ``cached_calls``, ``prompt_tokens``, ``usd_low``, ``usd_high`` (`mcpeval.forecasts.priced`), ``note``.

    Raises
    ------
    InputError
        A kind or an attack is unknown; or as `score`. Nothing was paid.

    Examples
    --------
    >>> runs = pd.DataFrame({"output": ["4", "four"], "task_id": ["a", "b"]})
    >>> probe({"short": lambda output: len(output) < 9}, runs, "verbosity")[["variant", "effect"]].values.tolist()
    [['restated', -100.0], ['filler', -100.0]]
    """
    chosen, met = _kinds(kinds), select(attacks)
    check_ci(ci, "probe")
    check_seed(seed, "probe")
    given = read_runs(runs)
    all_rows = given.rows(given.names)
    jobs: list[Job] = []
    variants: list[dict[str, Any]] = []
    for one in as_evaluators(judge):
        one, rows = _in_columns(one, all_rows)
        _check_answers(one, rows)
        changed: list[Job] = []
        for kind in chosen:
            made = perturbations(one, kind, met, other)
            here = [] if isinstance(made, str) else made
            found = [(change, row, other_row) for change in here for row in rows if (other_row := change.apply(row))]
            why = made if isinstance(made, str) else _why_not(found, one)
            changed += [(change, other_row) for change, _, other_row in found] if why is None else []
            variants += _variants(one, kind, here, why, {change.variant for change, *_ in found})
        # Without anything to compare them with, verdicts on the runs as they are would be paid for nothing.
        jobs += [*((Perturbation(CLEAN, CLEAN, one, str), row) for row in rows), *changed] if changed else []
    how = {"cache": cache, "replay": replay}
    if dry_run:
        return _forecast(jobs, variants, how)
    scored = _verdicts(jobs, {**how, "concurrency": concurrency, "budget_usd": budget_usd, "progress": progress})
    return scored if verdicts else effects(scored, _answered(variants, scored), ci=ci, seed=seed)


def _kinds(kinds: Any) -> list[str]:
    wanted = list(KINDS) if kinds is None else [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(wanted, Iterable) or not (wanted := list(wanted)):
        raise InputError(f"probe: kinds={kinds!r} should be some of {', '.join(KINDS)}")
    for kind in wanted:
        if not is_one_of(kind, KINDS):
            raise InputError(f"probe: kinds has {kind!r:.80}. {did_you_mean(kind, KINDS)}")
    return list(dict.fromkeys(wanted))


def _check_answers(judge: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    """Refuse runs that have nothing that could be changed, because they lack the column."""
    column = answer_column(judge)
    if rows and not any(column in row for row in rows):
        raise InputError(f"probe: runs has no column {column!r}, which is changed. {did_you_mean(column, rows[0])}")


def _why_not(found: Sequence[tuple[Perturbation, Any, Any]], judge: Any) -> str | None:
    """Why a kind does not apply to a judge, from its changes: (change, row, changed row)."""
    if not found:
        return _NONE
    return None if any(seen(change, row, changed, judge) for change, row, changed in found) else _UNSEEN


def _variants(
    judge: Any, kind: str, made: Sequence[Perturbation], why: str | None, applied: set[str]
) -> list[dict[str, Any]]:
    """A line for each variant to report, or the one that says why there is none."""
    told = {"evaluator": judge.name, "kind": kind}
    if why is not None:
        return [{**told, "variant": None, "baseline": None, "note": why}]
    baselines = {change.variant: change.baseline for change in made}
    measured = {variant: against for variant, against in baselines.items() if variant not in baselines.values()}
    lines = [
        {**told, "variant": variant, "baseline": against, "note": None if variant in applied else _NONE}
        for variant, against in measured.items()
    ]
    return [*lines, {**lines[0], "variant": ALL}] if kind == "injection" and len(lines) > 1 else lines


def _in_columns(judge: Any, rows: list[dict[str, Any]]) -> tuple[Any, list[dict[str, Any]]]:
    """A judge of one row at a time: the runs that a pairwise one compares are set side by side in columns."""
    by = getattr(judge, "pairs_by", None)
    if by is None:
        return judge, rows
    if getattr(judge, "compares", None) != ("output",):
        raise InputError(
            f"probe: {judge.name!r} compares runs by more than their output, or is made of judges that compare runs; "
            "expected a Pairwise(compares='output'), or one between two columns"
        )
    together: dict[tuple[Any, Any], dict[Any, dict[str, Any]]] = {}
    for row in rows:
        together.setdefault((row.get("task_id"), row.get("trial")), {})[row.get(by)] = row
    pairs = [pair for agents in together.values() for pair in combinations(agents.values(), 2)]
    sides = ("output_of_first", "output_of_second")
    judge, found = replace(judge, between=sides), []
    for one, other in pairs:
        answers = dict(zip(sides, (one.get("output"), other.get("output"))))
        found.append({**one, "run_id": f"{one['run_id']} {other['run_id']}", **answers})
    return judge, found


def _rows(jobs: Sequence[Job], judges: Sequence[Any]) -> list[dict[str, Any]]:
    """The rows to score, each with its own judge and a run_id of its own."""
    return [{**row, "run_id": f"{i}", "evaluators": [judge]} for i, ((_, row), judge) in enumerate(zip(jobs, judges))]


def _verdicts(jobs: Sequence[Job], how: Mapping[str, Any]) -> pd.DataFrame:
    scored = score(_rows(jobs, [change.judge for change, _ in jobs]), **how).reset_index(drop=True)
    of_row = [jobs[int(place)] for place in scored["run_id"]]
    scored["run_id"] = pd.array([str(row["run_id"]) for _, row in of_row], dtype="str")
    scored = scored.rename(columns={"kind": "evaluator_kind"})
    before = scored.columns.get_loc("evaluator")
    for name in ("attack", "variant", "kind"):
        scored.insert(before, name, pd.array([getattr(change, name) for change, _ in of_row], dtype="str"))
    return scored


def _answered(variants: Sequence[Mapping[str, Any]], scored: pd.DataFrame) -> list[dict[str, Any]]:
    """The variants of every evaluator that the judges answered as: a jury's are its jurors' too."""
    judges = list(dict.fromkeys(variant["evaluator"] for variant in variants))
    names: dict[str, list[str]] = {}
    for name in dict.fromkeys(scored["evaluator"]):
        names.setdefault(owner_of(name, judges), []).append(name)
    return [
        {**variant, "evaluator": name}
        for variant in variants
        for name in names.get(variant["evaluator"], [variant["evaluator"]])
    ]


def _forecast(jobs: Sequence[Job], variants: Sequence[Mapping[str, Any]], how: Mapping[str, Any]) -> pd.DataFrame:
    """What the jobs would cost, a line for each judge and variant."""
    named: dict[tuple[str, str, str], Any] = {}
    judges = []
    for change, _ in jobs:
        place = (change.judge.name, change.kind, change.variant)
        if place not in named:
            named[place] = as_evaluator(change.judge, name=f"{len(named)}")
        judges.append(named[place])
    lines = score(_rows(jobs, judges), dry_run=True, **how)
    places = {one.name: place for place, one in named.items()}
    about = pd.DataFrame([places[name] for name in lines["evaluator"]], columns=["evaluator", "kind", "variant"])
    counts = ["rows", "calls", "shared_calls", "cached_calls", "prompt_tokens", "usd_low", "usd_high"]
    lines = pd.concat([about, lines[counts].reset_index(drop=True)], axis=1).assign(note=None)
    left = [{**dict.fromkeys(counts, 0), **variant} for variant in variants if variant["note"] is not None]
    told = pd.concat([lines.astype({"note": "object"}), pd.DataFrame(left, columns=lines.columns)] if left else [lines])
    return told.reset_index(drop=True).astype({"variant": "str", "note": "str"})
