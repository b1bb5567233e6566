"""The verdicts that came along with other systems' runs, as a scores frame (`recorded_scores`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError, did_you_mean
from ..frames import RUN_KEYS, rows_of, scores_frame
from .shapes import dict_of

_NOTHING = {"kind": "recorded", "sample": 0, "tokens_in": 0, "tokens_out": 0, "cost_usd": 0.0, "seconds": 0.0}


def recorded_scores(runs: pd.DataFrame, *, scales: Mapping[str, tuple[float, float]] | None = None) -> pd.DataFrame:
    """What was said of runs where they come from, as a scores frame: `summarize` and all others take it.

    tau-bench's and tau2's reward is the evaluator ``reward``, each of Inspect's scorers one of its name
    (``scorer.key`` for each value of a scorer that gives several), MCPMark's verification ``verification``,
    and LiveMCPBench's human label ``human`` beside one evaluator for each of its judges.

    Parameters
    ----------
    runs : DataFrame
        As `mcpeval.read_runs` gives them. Reads ``metadata["scores"]``, which is a dict of names to
        cells of a scores row, and the run's keys.
    scales : dict, optional
        The lowest and the highest value of evaluators whose values are not from 0 to 1, by name:
        ``{"quality": (1, 10)}``. Without it such a value is the row's `label`, and the row is not scored.

    Returns
    -------
    DataFrame
        A scores frame, one row for each run and each verdict on it, of the kind ``recorded``, with the
        index of `runs`. Nothing was paid for it.

    Raises
    ------
    InputError
        No run has a recorded verdict, or `scales` names no evaluator or no range.
    """
    if not isinstance(runs, pd.DataFrame):
        raise InputError(f"recorded_scores: runs is a {type(runs).__name__}; expected a frame, as read_runs gives it")
    wanted = [name for name in (*RUN_KEYS, "metadata") if name in runs.columns]
    rows, labels = [], []
    for place, run in enumerate(rows_of(runs[wanted])):
        for name, said in dict_of(dict_of(run.get("metadata")).get("scores")).items():
            keys = {key: run[key] for key in wanted if key != "metadata"}
            rows.append({**_NOTHING, "evaluator": name, "reason": "", "metadata": {}, **dict_of(said), **keys})
            labels.append(place)
    if not rows:
        raise InputError(
            "recorded_scores: no run has a recorded verdict (metadata['scores']); read_runs finds them in files of "
            "Inspect, tau-bench, tau2, LiveMCPBench and MCPMark"
        )
    _rescale(rows, scales or {})
    keys = [name for name in wanted if name != "metadata"]
    try:
        return scores_frame(rows, keys=keys, index=runs.index.take(np.array(labels, np.int64)))
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"recorded_scores: a recorded verdict has not what a scores frame holds: {error}") from error


def _rescale(rows: list[dict[str, Any]], scales: Mapping[str, tuple[float, float]]) -> None:
    """Bring values on a scale to scores, and leave unscored what is on a scale that nobody told."""
    known = {row["evaluator"] for row in rows}
    for name in scales:
        if name not in known:
            raise InputError(f"recorded_scores: scales names {name!r}. {did_you_mean(name, known)}")
    ranges = {name: _range(name, scale) for name, scale in scales.items()}
    beyond = {row["evaluator"] for row in rows if (value := _value(row)) is not None and not 0 <= value <= 1}
    for row in rows:
        name, value = row["evaluator"], _value(row)
        if value is None or name not in ranges and name not in beyond:
            continue
        if name not in ranges:  # a 1 from 1 to 10 is no full score
            said = (
                f"scores of {name!r} are not from 0 to 1; recorded_scores(scales={{{name!r}: (low, high)}}) reads them"
            )
            row |= {"label": value, "score": None, "passed": None, "status": "skipped", "error": said}
            continue
        low, high = ranges[name]
        if not low <= value <= high:
            raise InputError(f"recorded_scores: {name!r} gave {value!r}, which is not from {low:g} to {high:g}")
        score = (value - low) / (high - low)
        row |= {"label": value, "score": score, "passed": None, "status": "ok", "error": None}


def _value(row: Mapping[str, Any]) -> float | None:
    """The number that was given: the label where it is one, the score where nothing else is said."""
    if row.get("kind") != "recorded":  # rows of our own, whose scores are what they are
        return None
    value = row.get("score") if row.get("label") is None else row["label"]
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _range(name: str, scale: Any) -> tuple[float, float]:
    try:
        low, high = map(float, scale)
    except (TypeError, ValueError):
        low = high = 0.0
    if not low < high:
        raise InputError(f"recorded_scores: scales[{name!r}]={scale!r} should be the lowest and the highest value")
    return low, high
