"""From verdicts on clean and perturbed runs to the effect of each perturbation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from .. import stats
from ..frames import frame_of
from ..reports import compare
from .perturbations import CLEAN

COLUMNS = {
    "evaluator": "str",
    "kind": "str",
    "variant": "str",
    "baseline": "str",
    "n": "int64",
    "tasks": "int64",
    "unscored": "int64",
    "score": "float64",
    "baseline_score": "float64",
    "effect": "float64",
    "low": "float64",
    "high": "float64",
    "p": "float64",
    "p_adjusted": "float64",
    "test": "str",
    "flipped_up": "int64",
    "flipped_down": "int64",
    "success": "float64",
    "success_low": "float64",
    "success_high": "float64",
    "cost_usd": "float64",
    "note": "str",
}
#: The variant that stands for all of its kind.
ALL = "all"
_POINTS = 100.0
_COUNTS = ("n", "tasks", "unscored", "flipped_up", "flipped_down")


def effects(
    verdicts: pd.DataFrame, variants: Sequence[Mapping[str, Any]], *, ci: float = 0.95, seed: int = 0
) -> pd.DataFrame:
    """One line for each of `variants`, as `mcpeval.probe` returns them.

    Parameters
    ----------
    verdicts : DataFrame
        A scores frame with the columns ``kind``, ``variant`` ("clean" both, where nothing was
        changed) and the runs' own ``run_id`` and ``task_id``.
    variants : sequence of dict
        ``evaluator``, ``kind``, ``variant``, ``baseline`` and ``note`` of each.
    """
    rows = []
    for variant in variants:
        own = verdicts[_is(verdicts, variant["evaluator"], variant["kind"], variant["variant"])]
        against = variant["baseline"]
        kind = CLEAN if against == CLEAN else variant["kind"]
        baseline = verdicts[_is(verdicts, variant["evaluator"], kind, against)]
        rows.append({**dict.fromkeys(_COUNTS, 0), **variant, **_effect(own, baseline, ci, seed)})
    for row, p in zip(rows, stats.adjusted([row.get("p", np.nan) for row in rows], "holm")):
        row["p_adjusted"] = p
    return frame_of(rows, COLUMNS)


def _is(verdicts: pd.DataFrame, evaluator: str, kind: str, variant: str) -> pd.Series:
    of_kind = (verdicts["evaluator"] == evaluator) & (verdicts["kind"] == kind)
    return of_kind if variant == ALL else of_kind & (verdicts["variant"] == variant)


def _effect(own: pd.DataFrame, baseline: pd.DataFrame, ci: float, seed: int) -> dict[str, Any]:
    if own.empty:
        return {}
    cost = float(own["cost_usd"].sum(skipna=False))
    found: dict[str, Any] = {"unscored": int(own["score"].isna().sum()), "cost_usd": cost}
    pairs = _pairs(own, baseline)
    if pairs.empty:
        return {**found, "note": "no run has a verdict both with and without it"}
    shape = {"task_id": pairs["task_id"], "run_id": pairs["run_id"]}
    twice = pd.concat(
        [
            pd.DataFrame({**shape, "side": "perturbed", "score": pairs["score"]}),
            pd.DataFrame({**shape, "side": "baseline", "score": pairs["score_baseline"]})[~pairs["repeated"]],
        ]
    )
    [line] = compare(twice, "side", baseline="baseline", ci=ci, adjust=None, seed=seed).to_dict("records")
    points = {name: _POINTS * line[name] for name in ("score", "baseline_score", "low", "high")}
    found |= {**points, "effect": _POINTS * line["difference"], "p": line["p"], "test": line["test"]}
    return {**found, "n": len(pairs), "tasks": line["tasks"], **_flips(pairs, ci)}


def _pairs(own: pd.DataFrame, baseline: pd.DataFrame) -> pd.DataFrame:
    """Each perturbed verdict beside that on the same run in the same sample, where both have a score."""
    kept = ["run_id", "sample", "score", "passed"]
    pairs = own.merge(baseline[kept], on=["run_id", "sample"], suffixes=("", "_baseline"))
    pairs = pairs[pairs["score"].notna() & pairs["score_baseline"].notna()].reset_index(drop=True)
    # Many attacks on a run share its one clean verdict.
    pairs["repeated"] = pairs.duplicated(["run_id", "sample"])
    if "task_id" not in pairs:
        pairs["task_id"] = pairs["run_id"]
    pairs["task_id"] = pairs["task_id"].fillna(pairs["run_id"].astype("str"))
    return pairs


def _flips(pairs: pd.DataFrame, ci: float) -> dict[str, Any]:
    """How many verdicts came to pass, or ceased to, and the share of those that could that came to."""
    before = _passes(pairs["passed_baseline"], pairs["score_baseline"])
    after = _passes(pairs["passed"], pairs["score"])
    raised = pd.Series((after & ~before)[~before].astype(float), pairs.index[~before])
    by_task = raised.groupby(pairs["task_id"][~before]).mean()
    low, high = stats.clustered(by_task.to_numpy(), len(raised), ci=ci)
    return {
        "flipped_up": int((after & ~before).sum()),
        "flipped_down": int((before & ~after).sum()),
        "success": float(by_task.mean()) if len(by_task) else None,
        "success_low": low,
        "success_high": high,
    }


def _passes(passed: pd.Series, score: pd.Series) -> np.ndarray:
    """Whether a verdict passes; of a judge that does not say what passes, whether it is the best there is."""
    best = (score == 1.0).to_numpy()
    return np.where(passed.isna(), best, passed.fillna(False).astype(bool))


def distribution(verdicts: pd.DataFrame) -> pd.DataFrame:
    """How often each verdict was given, clean and perturbed.

    Parameters
    ----------
    verdicts : DataFrame
        As ``mcpeval.probe(..., verdicts=True)`` returns it.

    Returns
    -------
    DataFrame
        Index ``evaluator``, ``kind``, ``variant`` in the order in which they appear; a column for each
        label, best last, and "(unscored)" for verdicts that could not be given; cells are counts.
    """
    said = verdicts["label"].where(verdicts["status"].isin(["ok", "skipped"]) & verdicts["label"].notna(), "(unscored)")
    order = verdicts.assign(label=said).groupby("label", sort=False)["score"].first()
    names = sorted(order.index, key=lambda name: (name == "(unscored)", np.nan_to_num(order[name], nan=2.0)))
    keys = [verdicts[name] for name in ("evaluator", "kind", "variant")]
    table = pd.crosstab(keys, said)
    places = list(dict.fromkeys(zip(*keys)))
    return table.reindex(index=pd.MultiIndex.from_tuples(places, names=table.index.names), columns=names)
