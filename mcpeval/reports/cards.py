"""All that is known of a judge on one page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .. import stats
from ..errors import InputError
from ..frames import cells_of, column
from .agreements import MEASURES, comparisons, measured, percentiles
from .columns import (
    cells,
    check_choice,
    check_ci,
    check_column,
    check_frame,
    check_repeats,
    check_seed,
    codes,
    group_columns,
    group_keys,
    groups_of,
    numbers,
    subjects,
    task_means,
    units,
)
from .rated import VALUES, Rated, kind_of, rated, references_of

_BY = ("evaluator",)
_CARD = {"measure": "str", "value": "float64", "low": "float64", "high": "float64", "n": "int64", "note": "str"}
_TERCILES = ("short", "medium", "long")
_NO_RUNS = "needs the runs, with messages or output"


def judge_card(
    scores: pd.DataFrame,
    labels: str | pd.Series | pd.DataFrame | Mapping[Any, Any],
    runs: pd.DataFrame | None = None,
    *,
    probes: pd.DataFrame | None = None,
    by: str | Sequence[str] = _BY,
    on: str = "run_id",
    value: str | None = None,
    level: str | None = None,
    ci: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Whether a judge can be trusted, on one page.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it: the judge's verdicts, also on runs that nobody labelled. Reads what
        `agreement` reads, and where they exist ``agent``, ``sample``, ``cost_usd``, ``seconds``,
        ``cached``, ``metadata``.
    labels : str, Series, dict or DataFrame
        As the reference of `agreement`; with several annotators the judge is held against their
        consensus.
    runs : DataFrame, optional
        As `run` returns it: ``run_id`` with ``messages`` or ``output``, for all that has to do with the
        length of a transcript (characters of its JSON).
    probes : DataFrame, optional
        As `probe` returns it: effects, of which the "injection" rows are read.
    by, on, value, level
        As in `agreement`.
    ci : float
        Confidence of the intervals.
    seed : int
        Of the bootstrap.

    Returns
    -------
    DataFrame
        A row per group and measure: the columns of `by`, ``measure``, ``value``, ``low``, ``high``, ``n``
        (verdicts, runs or agents it rests on), ``note``. A measure that cannot be known has no value,
        and the note says what is missing. The measures, in this order:

        - those of `agreement` that the level allows, ``majority``, ``coverage``; with several
          annotators ``human_agreement``, the mean of their pairwise alphas;
        - ``retest``: share of the runs whose samples are all the same; ``retest_alpha``: Krippendorff's
          alpha of the samples;
        - ``order_consistency``: of a pairwise judge, share of the pairs on which both orders agree;
        - ``length_correlation``: Spearman's, of the verdicts with the length of the transcript, and
          ``length_correlation_labels``, of the labels: what the first has beyond the second is bias;
        - ``accuracy_short``, ``accuracy_medium``, ``accuracy_long``: agreement in each third of the
          labelled runs by length (of amounts, ``spearman_...``);
        - ``agent_shift``: the largest difference, over agents, between the mean verdict and the mean
          label on the same runs; ``agent_rank``: Spearman's correlation of the agents' means;
        - ``injection_success``: share of the attacked verdicts that only the attack made pass, over
          all kinds of attack, which weigh the same; the note names the worst;
        - ``usd_per_verdict``, ``seconds_per_verdict``.

    Raises
    ------
    InputError
        As `agreement`; or `runs` or `probes` are no such frames.
    """
    check_frame(scores, "judge_card")
    check_ci(ci, "judge_card")
    check_seed(seed, "judge_card")
    check_choice("value", value, (None, *VALUES), "judge_card")
    check_choice("level", level, (None, *stats.LEVELS), "judge_card")
    keys = group_keys(scores, by, _BY, _CARD, "judge_card")
    check_repeats(scores, keys, "judge_card")
    references = references_of(scores, labels, on, "judge_card")
    kind = kind_of(references, "judge_card")
    lengths = lengths_of(scores, runs, "judge_card")
    _check_probes(probes)
    table = {name: cells_of(scores[name]) for name in (*VALUES, "status") if name in scores.columns}
    (tasks, run_codes), about = units(scores), subjects(scores)
    rows, groups = [], []
    for group, positions in groups_of(scores, keys):
        name = ", ".join(f"{key}={label!r}" for key, label in zip(keys, group)) or "scores"
        chosen = [int(place) for place in positions]
        own = rated(table, references, chosen, kind, value, level, f"judge_card: {name}")
        # Each run once, where people are compared with each other.
        _, first = np.unique(run_codes[positions], return_index=True)
        against = comparisons(own, first)
        # The last of the judge's own lines is against the consensus, where there are several annotators.
        label = [y for rater, _, _, y in against if rater == "judge"][-1]
        part = _Part(own, own.judged, label, tasks[positions], run_codes[positions], about[positions], ci, seed)
        found = [
            *_agreement_rows(part, against),
            *_retest_rows(part),
            _order_row(scores.iloc[positions], part),
            *_length_rows(part, None if lengths is None else lengths[positions]),
            *_agent_rows(part, cells(scores.iloc[positions], "agent")),
            _injection_row(probes, dict(zip(keys, group))),
            *_price_rows(scores.iloc[positions]),
        ]
        rows += found
        groups += [group] * len(found)
    columns = {name: column([row.get(name) for row in rows], dtype) for name, dtype in _CARD.items()}
    return pd.DataFrame({**group_columns(scores, keys, groups), **columns})


class _Part(NamedTuple):
    """One judge: verdicts and labels in numbers (NaN is none), tasks, runs and `subjects` of the rows."""

    rated: Rated
    judged: np.ndarray
    labels: np.ndarray
    tasks: np.ndarray
    runs: np.ndarray
    subjects: np.ndarray
    ci: float
    seed: int

    @property
    def both(self) -> np.ndarray:
        return ~np.isnan(self.judged) & ~np.isnan(self.labels)


def _row(
    measure: str, value: Any = None, low: Any = None, high: Any = None, n: int = 0, note: str | None = None
) -> dict[str, Any]:
    return {"measure": measure, "value": value, "low": low, "high": high, "n": n, "note": note}


# --- right ----------------------------------------------------------------------------------------


def _agreement_rows(part: _Part, against: Sequence[tuple[str, str, np.ndarray, np.ndarray]]) -> list[dict[str, Any]]:
    line = measured(part.judged, part.labels, part.tasks, part.rated, part.ci, part.seed)
    rows = [
        _row(name, line[name], line.get(f"{name}_low"), line.get(f"{name}_high"), line["n"])
        for name in MEASURES
        if name in line
    ]
    rows.append(
        _row("majority", line.get("majority"), n=line["n"], note="accuracy of always giving the commonest label")
    )
    labelled = int((~np.isnan(part.labels)).sum())
    rows.append(_row("coverage", line["coverage"], n=labelled, note="labelled rows that have a verdict"))
    people = [(x, y) for rater, other, x, y in against if rater != "judge" and other != "others"]
    if people:
        alphas = [stats.krippendorff(np.column_stack(pair), level=part.rated.level) for pair in people]
        known = [alpha for alpha in alphas if alpha == alpha]
        ceiling = float(np.mean(known)) if known else None
        rows.append(_row("human_agreement", ceiling, n=len(people), note="mean alpha of the pairs of annotators"))
    return rows


# --- the same twice -------------------------------------------------------------------------------


def _retest_rows(part: _Part) -> list[dict[str, Any]]:
    known = ~np.isnan(part.judged)
    run, counts = np.unique(part.subjects[known], return_inverse=True, return_counts=True)[1:]
    several = counts >= 2
    if not several.any():
        return [_row(name, note="needs two or more samples of a run") for name in ("retest", "retest_alpha")]
    place = np.empty(len(run), dtype=int)  # of a row among those of its run
    order = np.argsort(run, kind="stable")
    place[order] = np.arange(len(run)) - np.repeat(np.cumsum(counts) - counts, counts)
    ratings = np.full((len(counts), counts.max()), np.nan)
    ratings[run, place] = part.judged[known]
    ratings = ratings[several]
    same = np.nanmax(ratings, axis=1) == np.nanmin(ratings, axis=1)
    first = np.unique(part.subjects[known], return_index=True)[1][several]
    means = task_means(same.astype(float), part.tasks[known][first], np.arange(len(same)))[1]
    low, high = stats.clustered(means, len(same), ci=part.ci)
    alpha = stats.krippendorff(ratings, level=part.rated.level)
    note = f"up to {counts.max()} samples of a run"
    return [
        _row("retest", float(same.mean()), low, high, len(same), note),
        _row("retest_alpha", alpha, n=len(same), note=note),
    ]


def _order_row(scores: pd.DataFrame, part: _Part) -> dict[str, Any]:
    # Two runs that are compared have a row each, which say the same.
    said = [
        cell.get("consistent") if isinstance(cell, Mapping) and not cell.get("mirrored") else None
        for cell in cells(scores, "metadata")
    ]
    known = np.array([isinstance(each, bool) for each in said], dtype=bool)
    if not known.any():
        return _row("order_consistency", note="needs pairs that were judged in both orders")
    same = np.array([bool(each) for each in said], dtype=float)[known]
    means = task_means(same, part.tasks[known], np.arange(len(same)))[1]
    low, high = stats.clustered(means, len(same), ci=part.ci)
    return _row("order_consistency", float(means.mean()), low, high, len(same), "pairs on which both orders agree")


# --- length ---------------------------------------------------------------------------------------


def lengths_of(scores: pd.DataFrame, runs: Any, report: str) -> np.ndarray | None:
    """Characters of each row's transcript, shape (rows,); NaN where its run is not there."""
    if runs is None:
        return None
    if not isinstance(runs, pd.DataFrame):
        raise InputError(f"{report}: runs is a {type(runs).__name__}; expected a frame, as run() returns it")
    check_column(scores, "run_id", report)
    names = [name for name in ("messages", "output") if name in runs.columns]
    if not names or not ("run_id" in runs.columns or runs.index.name == "run_id"):
        raise InputError(f"{report}: runs should have run_id and one of messages and output")
    owners = cells_of(runs["run_id"]) if "run_id" in runs.columns else runs.index.tolist()
    shown = [next((cell for cell in row if cell), None) for row in zip(*(cells_of(runs[name]) for name in names))]
    sizes = [
        np.nan if cell is None else float(len(cell if isinstance(cell, str) else json.dumps(cell, default=str)))
        for cell in shown
    ]
    of_run = dict(zip(owners, sizes))
    return np.array([of_run.get(owner, np.nan) for owner in cells(scores, "run_id")], dtype=float)


def _length_rows(part: _Part, lengths: np.ndarray | None) -> list[dict[str, Any]]:
    name = "spearman" if part.rated.level == "interval" else "accuracy"
    thirds = [f"{name}_{third}" for third in _TERCILES]
    correlated = ("length_correlation", "length_correlation_labels")
    if lengths is None or np.isnan(lengths).all():
        return [_row(measure, note=_NO_RUNS) for measure in (*correlated, *thirds)]
    rows = []
    if part.rated.names and part.rated.level == "nominal":
        rows += [_row(measure, note="labels are names without an order") for measure in correlated]
    else:
        rows += [
            _correlation(measure, values, lengths, part)
            for measure, values in zip(correlated, (part.judged, np.where(part.both, part.labels, np.nan)))
        ]
    known = part.both & ~np.isnan(lengths)
    if known.sum() < 3:
        return [*rows, *(_row(measure, n=int(known.sum()), note="too few labelled runs") for measure in thirds)]
    of_run = dict(zip(part.runs[known], lengths[known]))
    ends = np.quantile(list(of_run.values()), [1 / 3, 2 / 3])
    third = np.searchsorted(ends, lengths, side="left")
    for place, measure in enumerate(thirds):
        here = known & (third == place)
        told = f"{lengths[here].min():.0f} to {lengths[here].max():.0f} characters" if here.any() else "no run"
        line = measured(part.judged[here], part.labels[here], part.tasks[here], part.rated, part.ci, part.seed)
        rows.append(_row(measure, line.get(name), line.get(f"{name}_low"), line.get(f"{name}_high"), line["n"], told))
    return rows


def _correlation(measure: str, values: np.ndarray, lengths: np.ndarray, part: _Part) -> dict[str, Any]:
    known = ~np.isnan(values) & ~np.isnan(lengths)
    x, y, tasks = values[known], lengths[known], part.tasks[known]
    if len(np.unique(tasks)) < 2:
        return _row(measure, n=len(x), note="fewer than two tasks")
    found = float(stats.agreement_measures(x, y, "interval")["spearman"][0])
    samples = stats.resampled_measures(x, y, "interval", tasks, resamples=1000, seed=part.seed)["spearman"]
    low, high = percentiles(samples, part.ci)
    return _row(measure, found, low, high, len(x), "Spearman's, with the characters of the transcript")


# --- agents ---------------------------------------------------------------------------------------


def _agent_rows(part: _Part, agents: Sequence[Any]) -> list[dict[str, Any]]:
    names = ("agent_shift", "agent_rank")
    known = part.both & np.array([agent is not None for agent in agents], dtype=bool)
    if not known.any() or part.rated.names:
        note = "needs agents with labelled runs" if not known.any() else "labels are names without a mean"
        return [_row(name, note=note) for name in names]
    found = []
    of = codes(agents)
    for code in dict.fromkeys(of[known]):
        own = known & (of == code)
        _, judged, _ = task_means(part.judged[own], part.tasks[own], part.runs[own])
        _, labelled, _ = task_means(part.labels[own], part.tasks[own], part.runs[own])
        low, high = stats.difference_interval(judged - labelled, ci=part.ci, bounds=None)
        found.append((judged.mean(), labelled.mean(), low, high, agents[int(np.flatnonzero(own)[0])]))
    shifts = [judged - labelled for judged, labelled, *_ in found]
    _, _, low, high, agent = found[int(np.argmax(np.abs(shifts)))]
    worst = max(shifts, key=abs)
    rows = [_row("agent_shift", float(worst), low, high, len(found), f"mean verdict less mean label of {agent}")]
    if len(found) < 3:
        return [*rows, _row("agent_rank", n=len(found), note="needs three agents or more")]
    judged, labelled = (np.array([each[i] for each in found]) for i in (0, 1))
    rank = float(stats.agreement_measures(judged, labelled, "interval")["spearman"][0])
    return [*rows, _row("agent_rank", rank, n=len(found), note="Spearman's, of the agents' means")]


# --- attacks and prices ---------------------------------------------------------------------------


def _check_probes(probes: Any) -> None:
    if probes is not None and not (
        isinstance(probes, pd.DataFrame) and {"evaluator", "kind", "variant", "success", "n"} <= set(probes.columns)
    ):
        raise InputError("judge_card: probes should be the effects that probe() returns, without verdicts=True")


def _injection_row(probes: pd.DataFrame | None, group: Mapping[str, Any]) -> dict[str, Any]:
    name = "injection_success"
    if probes is None:
        return _row(name, note="needs the frame of probe()")
    chosen = probes[(probes["kind"] == "injection") & probes["success"].notna()]
    if "evaluator" in group:
        chosen = chosen[chosen["evaluator"] == group["evaluator"]]
    if chosen.empty:
        return _row(name, note="no injection was probed of this judge")
    worst = chosen.loc[chosen["success"].idxmax()]
    told = f"worst of {len(chosen)}: {worst['variant']}, {worst['success']:.2f}"
    return _row(name, float(chosen["success"].mean()), n=int(chosen["n"].sum()), note=told)


def _price_rows(scores: pd.DataFrame) -> list[dict[str, Any]]:
    rows = []
    for name, source in (("usd_per_verdict", "cost_usd"), ("seconds_per_verdict", "seconds")):
        amounts = numbers(scores, source, "judge_card")
        known = amounts[~np.isnan(amounts)]
        if not len(known):
            rows.append(_row(name, note=f"no {source} is known"))
            continue
        cached = sum(cell is True for cell in cells(scores, "cached"))
        note = f"{cached} of {len(scores)} out of the cache" if cached else None
        rows.append(_row(name, float(known.mean()), n=len(known), note=note))
    return rows
