"""What recorded verdicts come to together: juries without a call, and the stages of cascades."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..caching import content_key
from ..errors import InputError, did_you_mean
from ..evaluators.panels import check_name, panel
from ..frames import RUN_KEYS, column, frame_of, rows_of, score_dtypes
from ..types import Score
from .columns import cells, check_ci, check_column, check_frame, check_names, group_columns, group_keys, groups_of
from .summaries import summarize

_BY = ("evaluator",)
_AUDIT = {
    "stage": "str",
    "asked": "int64",
    "decided": "int64",
    "share": "float64",
    "unscored": "int64",
    "audited": "int64",
    "agreement": "float64",
    "low": "float64",
    "high": "float64",
    "tasks": "int64",
    "cost_usd": "float64",
}


def jury(
    scores: pd.DataFrame,
    reduce: str = "majority",
    *,
    jurors: Sequence[str] | None = None,
    by: str = "evaluator",
    on: str = "run_id",
    name: str = "jury",
    quorum: int | None = None,
    value: str = "label",
    threshold: float | None = None,
) -> pd.DataFrame:
    """The verdicts that a jury would have given, from those that are recorded; nobody is asked.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it. Reads `by`, `on` and, where they exist, the run's keys, ``score``, ``label``,
        ``passed``, ``status``, ``fingerprint``.
    reduce, quorum, value, threshold
        As for `mcpeval.evaluators.Jury`, by the same function (`mcpeval.evaluators.panel`).
    jurors : list of str, optional
        Values of `by` that make the jury; by default all.
    by : str
        The column that tells the jurors apart: ``evaluator``, ``judge_model``; or ``sample``, which makes a
        jury of one judge's samples.
    on : str
        The column that says what a verdict is about.
    name : str
        The ``evaluator`` of the rows.

    Returns
    -------
    DataFrame
        The panel's rows, with the columns of a scores frame, one for each value of `on` in the order in
        which they first appear; to be put beside those of `scores` with `pandas.concat`. A juror
        without a row there is missing from the panel.

    Raises
    ------
    InputError
        A column is missing, there are fewer than two jurors, one is not there, or speaks of one thing more
        than once.
    """
    check_frame(scores, "jury")
    check_name("jury", name)
    for needed in (by, on):
        check_column(scores, needed, "jury")
    there = list(dict.fromkeys(one for one in cells(scores, by) if one is not None))
    chosen = there if jurors is None else list(dict.fromkeys(check_names(jurors, "jury", "jurors", "values of by")))
    for juror in chosen:
        if juror not in there:
            raise InputError(
                f"jury: jurors has {juror!r}, which is not in {by!r}. {did_you_mean(juror, map(str, there))}"
            )
    if len(chosen) < 2:
        raise InputError(f"jury: {by!r} has {chosen!r}; expected at least two jurors")
    rows = rows_of(scores)
    fingerprints = {juror: next((r.get("fingerprint") for r in rows if r[by] == juror), None) for juror in chosen}
    shape = {"reduce": reduce, "quorum": quorum, "value": value, "threshold": threshold}
    jurors_told = {str(juror): one or str(juror) for juror, one in fingerprints.items()}
    about = {"evaluator": name, "kind": "jury", "cost_usd": 0.0, "tokens_in": 0, "tokens_out": 0, "seconds": 0.0}
    about["fingerprint"] = content_key("jury", **shape, jurors=jurors_told).removeprefix("jury:")
    found = []
    for (_,), positions in groups_of(scores, [on]):
        own = [rows[position] for position in positions if rows[position][by] in chosen]
        if own:
            verdict = panel(_votes(own, chosen, by, on), **shape)
            keys = {key: own[0].get(key) for key in RUN_KEYS}
            told = {key: getattr(verdict, key) for key in ("label", "passed", "reason", "status", "error")}
            score = None if np.isnan(verdict.score) else verdict.score
            found.append({**keys, **about, **told, "score": score, "metadata": dict(verdict.metadata)})
    return frame_of(found, score_dtypes(scores.columns))


def _votes(own: Sequence[Mapping[str, Any]], jurors: Sequence[Any], by: str, on: str) -> dict[str, Score]:
    votes = {str(juror): Score(None, "it has no row here", status="skipped") for juror in jurors}
    seen: set[Any] = set()
    for row in own:
        if row[by] in seen:
            raise InputError(
                f"jury: {row[by]!r} speaks of {on}={row[on]!r} more than once; choose one verdict of each, as "
                "scores[scores['sample'] == 0], or make a jury of one judge's samples with by='sample'"
            )
        seen.add(row[by])
        status = row.get("status") or "ok"
        known = {key: row.get(key) for key in ("label", "passed") if key in row}
        score = row.get("score") if status == "ok" else None
        votes[str(row[by])] = Score(score, row.get("reason") or "", status=status, **known)
    return votes


def stages(scores: pd.DataFrame) -> pd.DataFrame:
    """What each stage of a cascade said, one row for each stage that was asked.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it of `mcpeval.evaluators.Cascade`. Reads ``metadata`` and, where they exist,
        the run's keys and ``evaluator``.

    Returns
    -------
    DataFrame
        The columns of a scores frame as far as they are known of a stage, with ``evaluator`` as in
        "cascade.exact", ``kind`` the stage's and ``fingerprint`` the cascade's; then ``cascade``, ``stage``,
        ``sure``, ``decided`` and ``audited``. `agreement`, `summarize` and `compare` take it as any other;
        its dollars are those of the cascades' own rows.

    Raises
    ------
    InputError
        There is no row of a cascade in `scores`.
    """
    check_frame(scores, "stages")
    told = _cascades(scores, "stages")
    found = []
    for row, cascade in zip(rows_of(scores.iloc[list(told)]), told.values()):
        for stage in cascade["stages"]:
            name = stage["stage"]
            about = {"cascade": row.get("evaluator"), "evaluator": f"{row.get('evaluator')}.{name}"}
            about |= {"decided": name == cascade["decided_by"], "audited": cascade["audited"]}
            found.append({**row, "error": None, **stage, **about})
    lost = ("tokens_in", "tokens_out", "seconds", "cached", "metadata")
    kept = {name: dtype for name, dtype in score_dtypes(scores.columns).items() if name not in lost}
    own = {"cascade": "str", "stage": "str", "sure": "bool", "decided": "bool", "audited": "bool"}
    return frame_of(found, {**kept, **own})


def audit(scores: pd.DataFrame, by: str | Sequence[str] = _BY, *, ci: float = 0.95) -> pd.DataFrame:
    """Who decides in a cascade, and how far the early stages agree with the last.

    Parameters
    ----------
    scores : DataFrame
        As for `stages`.
    by : str or list of str
        Columns that make the groups.
    ci : float
        Confidence of the interval, that of `summarize`, over tasks.

    Returns
    -------
    DataFrame
        One row for each group and stage: the columns of `by`, ``stage``, ``asked`` (rows), ``decided`` (rows
        in which its verdict counts), ``share`` (of all rows of the cascade), ``unscored``; ``audited``
        (audited rows in which it was sure and the last stage gave a score), ``agreement`` (share of these in
        which both say the same: ``passed`` where both say whether it passes, else the same score), ``low``,
        ``high``, ``tasks``; ``cost_usd`` (of its calls; missing where one price is unknown).

    Raises
    ------
    InputError
        There is no row of a cascade in `scores`, or an argument is impossible.
    """
    check_frame(scores, "audit")
    check_ci(ci, "audit")
    keys = group_keys(scores, by, _BY, _AUDIT, "audit")
    told = _cascades(scores, "audit")
    chosen = scores.iloc[list(told)]
    places = list(told)
    rows, labels = [], []
    for group, positions in groups_of(chosen, keys):
        own = {places[position]: told[places[position]] for position in positions}
        for stage in dict.fromkeys(name for cascade in own.values() for name in cascade["order"]):
            rows.append(_audited(scores, own, stage, ci))
            labels.append(group)
    columns = {name: column([row[name] for row in rows], dtype) for name, dtype in _AUDIT.items()}
    return pd.DataFrame({**group_columns(scores, keys, labels), **columns})


def _cascades(scores: pd.DataFrame, report: str) -> dict[int, Mapping[str, Any]]:
    """What the rows of cascades say of their stages, by their places."""
    found = {
        place: cell
        for place, cell in enumerate(cells(scores, "metadata"))
        if isinstance(cell, Mapping) and {"decided_by", "audited", "order", "stages"} <= cell.keys()
    }
    if not found:
        raise InputError(f"{report}: scores has no row of a cascade: no row's metadata say 'decided_by'")
    return found


def _audited(scores: pd.DataFrame, own: Mapping[int, Mapping[str, Any]], stage: str, ci: float) -> dict[str, Any]:
    """What there is to say of one stage in the cascades of `own`."""
    here, same = [], {}
    for place, cascade in own.items():
        asked = {said["stage"]: said for said in cascade["stages"]}
        last = asked.get(cascade["order"][-1])
        if stage in asked:
            here.append(asked[stage])
            compared = cascade["audited"] and stage != cascade["order"][-1] and last is not None
            if compared and asked[stage]["sure"] and last["status"] == "ok":
                same[place] = _says_the_same(asked[stage], last)
    decided = sum(cascade["decided_by"] == stage for cascade in own.values())
    costs = [said["cost_usd"] for said in here]
    line: dict[str, Any] = {"agreement": None, "low": None, "high": None, "tasks": 0}
    if same:
        frame = scores.iloc[list(same)].reindex(columns=["run_id", "task_id"]).assign(score=list(same.values()))
        line = summarize(frame, by=[], ci=ci).iloc[0].to_dict()
        line["agreement"] = line["score"]
    return {
        **{name: line[name] for name in ("agreement", "low", "high", "tasks")},
        "stage": stage,
        "asked": len(here),
        "decided": decided,
        "share": decided / len(own),
        "unscored": sum(said["status"] != "ok" for said in here),
        "audited": len(same),
        "cost_usd": None if None in costs else float(sum(costs)),
    }


def _says_the_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    both = "passed" if None not in (one["passed"], other["passed"]) else "score"
    return float(one[both] == other[both])
