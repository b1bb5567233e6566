"""How far the samples of a judge lie apart, run by run."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import numpy as np
import pandas as pd

from .columns import cells, subjects

#: The columns of a summary that has samples.
SPREADS = {"spread": "float64", "mode_share": "float64"}


def are_sampled(scores: pd.DataFrame) -> bool:
    """Whether some row is a second sample."""
    return any(isinstance(number, (int, float)) and number > 0 for number in cells(scores, "sample"))


def spreads(scores: pd.DataFrame, values: np.ndarray) -> dict[str, float | None]:
    """Means over what was sampled at least twice: a run, or a comparison of two, by one evaluator.

    Parameters
    ----------
    scores : DataFrame
        Reads `run_id`, `evaluator`, `fingerprint`, `label`, `metadata`, where they exist.
    values : ndarray, shape (rows,)
        The scores, NaN where there is none.

    Returns
    -------
    dict
        ``spread``: the standard deviation of the scores (n - 1); ``mode_share``: the share of the most
        frequent label (score, where there are no labels). None where nothing was sampled twice.
    """
    who = zip(subjects(scores).tolist(), cells(scores, "evaluator"), cells(scores, "fingerprint"))
    drawn = defaultdict(list)
    for unit, value, label in zip(who, values.tolist(), cells(scores, "label")):
        if value == value:
            drawn[unit].append((value, json.dumps(value if label is None else label, sort_keys=True, default=str)))
    sampled = [list(zip(*some)) for some in drawn.values() if len(some) > 1]
    if not sampled:
        return dict.fromkeys(SPREADS)
    shares = [max(Counter(labels).values()) / len(labels) for _, labels in sampled]
    deviations = [np.std(numbers, ddof=1) for numbers, _ in sampled]
    return {"spread": float(np.mean(deviations)), "mode_share": float(np.mean(shares))}
