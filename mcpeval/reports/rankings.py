"""Who is the strongest, from comparisons of two at a time."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from .. import stats
from ..errors import InputError, did_you_mean, is_one_of
from ..frames import column
from .columns import check_ci, check_seed, group_columns, group_keys, groups_of, units
from .pairs import Comparison, comparisons_of

_BY = ("evaluator",)
_RANK = {
    "agent": "str",
    "strength": "float64",
    "low": "float64",
    "high": "float64",
    "rank": "Int64",
    "win_rate": "float64",
    "wins": "int64",
    "losses": "int64",
    "ties": "int64",
    "n": "int64",
    "tasks": "int64",
    "unscored": "int64",
}


def rank(
    scores: pd.DataFrame,
    by: str | Sequence[str] = _BY,
    *,
    baseline: str | None = None,
    prior: float = 0.0,
    ci: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Agents by their strength in comparisons of two: the model of Bradley and Terry.

    One beats the other with the log odds of the difference of their strengths. A tie is half a win
    of either, and what a pair of agents came to in a task counts once, however many trials and samples
    there were.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it of `mcpeval.evaluators.Pairwise`, or of a jury or a cascade of such. Reads
        ``metadata``, ``score``, the columns of `by` and, where they exist, ``task_id``, ``run_id``,
        ``fingerprint``, ``sample``.
    by : str or list of str
        Columns that make the groups, each with a ranking of its own.
    baseline : str, optional
        The agent whose strength is 0. By default the mean of all is.
    prior : float
        Ties that each two agents who met are given in addition. With 0 strengths are the likeliest
        ones, and there are none where an agent won everything; with 0.5 there are.
    ci : float
        Confidence of the intervals: percentiles of 1000 bootstrap samples of the tasks.
    seed : int
        Of the bootstrap.

    Returns
    -------
    DataFrame
        One row for each group and agent, the strongest first: the columns of `by`, ``agent``,
        ``strength`` (log odds; times 400 / log(10) it is on the scale of Elo), ``low``, ``high``, ``rank``,
        ``win_rate`` (mean over its comparisons), ``wins``, ``losses``, ``ties`` out of ``n`` comparisons,
        ``tasks``, ``unscored``. Strengths and ranks are missing where there are none.

    Warns
    -----
    UserWarning
        There are no strengths: an agent won, or lost, all comparisons with the others, or some never
        met, not even through others, or all were ties. Or an end of an interval is not bounded, because that is so in
        resamples.

    Raises
    ------
    InputError
        There is no comparison in `scores`, the baseline is none of the agents, or an argument is
        impossible.

    References
    ----------
    Bradley & Terry (1952), Biometrika 39, 324-345. Ustalov (2025), Reliable, Reproducible, and Really
    Fast Leaderboards with Evalica, COLING: the package that solves for the strengths.
    """
    found = comparisons_of(scores, "rank")
    check_ci(ci, "rank")
    check_seed(seed, "rank")
    if isinstance(prior, bool) or not isinstance(prior, (int, float)) or not 0 <= prior < float("inf"):
        raise InputError(f"rank: prior={prior!r} should be a number of ties, 0 or more")
    keys = group_keys(scores, by, _BY, _RANK, "rank")
    tasks = units(scores)[0]
    chosen = scores.iloc[[one.place for one in found]]
    rows, labels = [], []
    for group, positions in groups_of(chosen, keys):
        own = [found[position] for position in positions]
        lines = _ranking(own, tasks, baseline, prior, ci, seed, dict(zip(keys, group)))
        rows += lines
        labels += [group] * len(lines)
    columns = {name: column([row[name] for row in rows], dtype) for name, dtype in _RANK.items()}
    return pd.DataFrame({**group_columns(scores, keys, labels), **columns})


def _ranking(
    own: Sequence[Comparison],
    tasks: np.ndarray,
    baseline: str | None,
    prior: float,
    ci: float,
    seed: int,
    group: dict[str, Any],
) -> list[dict[str, Any]]:
    names = list(dict.fromkeys(name for one in own for name in one.between))
    if baseline is not None and not is_one_of(baseline, names):
        raise InputError(f"rank: baseline={baseline!r:.80} is no agent. {did_you_mean(baseline, names)}")
    place = None if baseline is None else names.index(baseline)
    wins = _wins(own, names, tasks, prior)
    decided = any(one.score not in (0.5, None) and not np.isnan(one.score) for one in own)
    # Of nothing but ties the likeliest strengths are equal, in every resample: an interval of no width, and no finding.
    strengths = stats.bradley_terry(wins.sum(0)) if decided else np.full(len(names), np.nan)
    low = high = np.full(len(names), np.nan)
    where = "".join(f" in {key}={value!r}" for key, value in group.items())
    if np.isnan(strengths).any():
        why = _why(wins.sum(0), names) if decided else "no comparison was decided"
        warnings.warn(f"rank: there are no strengths{where}: {why}", stacklevel=3)
    else:
        strengths = strengths - (0.0 if place is None else strengths[place])
        low, high = stats.resampled_strengths(wins, ci=ci, baseline=place, seed=seed)
        if len(wins) > 1 and np.isnan([low, high]).any():
            open_ended = [name for name, ends in zip(names, zip(low, high)) if np.isnan(ends).any()]
            warnings.warn(
                f"rank: the intervals of {', '.join(open_ended)}{where} are open: with so few tasks some resamples "
                "have no strengths; prior=0.5 closes them",
                stacklevel=3,
            )
    ranks = pd.Series(-strengths).rank(method="min")
    lines = []
    for i, name in enumerate(names):
        line = {"agent": name, "strength": strengths[i], "low": low[i], "high": high[i], **_tally(own, name, tasks)}
        lines.append({**line, "rank": None if np.isnan(ranks[i]) else int(ranks[i])})
    return sorted(lines, key=lambda line: (line["rank"] is None, line["rank"] or -line["win_rate"]))


def _wins(own: Sequence[Comparison], names: Sequence[str], tasks: np.ndarray, prior: float) -> np.ndarray:
    """Of each task how far the agent of the row beat that of the column, shape (tasks, agents, agents).

    The prior's ties are spread over the tasks in which a pair met.
    """
    known = [one for one in own if not np.isnan(one.score)]
    _, of_task = np.unique([tasks[one.place] for one in known], return_inverse=True)
    n = int(of_task.max(initial=-1)) + 1
    won, met = np.zeros((n, len(names), len(names))), np.zeros((n, len(names), len(names)))
    for one, task in zip(known, of_task):
        i, j = map(names.index, one.between)
        won[task, i, j] += one.score
        won[task, j, i] += 1.0 - one.score
        met[task, i, j] += 1
        met[task, j, i] += 1
    there = met > 0
    rates = np.divide(won, met, out=np.zeros_like(won), where=there)
    return rates + np.divide(prior / 2 * there, there.sum(0), out=np.zeros_like(won), where=there)


def _tally(own: Sequence[Comparison], name: str, tasks: np.ndarray) -> dict[str, Any]:
    mine = [(one, one.score if one.between[0] == name else 1.0 - one.score) for one in own if name in one.between]
    values = np.array([value for _, value in mine])
    known = values[~np.isnan(values)]
    return {
        "win_rate": float(known.mean()) if len(known) else np.nan,
        "wins": int((known > 0.5).sum()),
        "losses": int((known < 0.5).sum()),
        "ties": int((known == 0.5).sum()),
        "n": len(known),
        "tasks": len({tasks[one.place] for one, value in mine if not np.isnan(value)}),
        "unscored": len(values) - len(known),
    }


def _why(wins: np.ndarray, names: Sequence[str]) -> str:
    """Why there are no strengths, in words."""
    met = (wins + wins.T) > 0
    alone = [name for name, others in zip(names, met) if not others.any()]
    if alone:
        return f"{', '.join(alone)} has no comparison with a verdict"
    always = [name for name, own, against in zip(names, wins.sum(1), wins.sum(0)) if own and not against]
    never = [name for name, own, against in zip(names, wins.sum(1), wins.sum(0)) if against and not own]
    told = [f"{', '.join(who)} {what} every comparison" for who, what in ((always, "won"), (never, "lost")) if who]
    if not told:
        told = ["some never beat any of the others, or never met them"]
    return f"{' and '.join(told)}; compare more tasks, or say prior=0.5, which gives finite ones to all who met"
