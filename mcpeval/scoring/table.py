"""The scores frame, put together column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..evaluators.base import ORIGINS, TEXTS
from ..evaluators.composed import kind_of, part_named
from ..frames import RUN_KEYS, column, frame_from, score_dtypes
from .cells import CELLS
from .work import Work


def scores_of(work: Work) -> pd.DataFrame:
    """The frame of what was done, in the order of the jobs.

    What is known of a run or an evaluator is made an array once, and repeated.
    """
    runs, evaluators, dtypes = work.runs, work.evaluators, score_dtypes(work.runs.names)
    for evaluator in evaluators:
        _tell(evaluator)
    ORIGINS.update(runs.origins())
    cells = _cells(work)
    at = np.array(cells.pop("job"), np.int64)
    of_run, of_evaluator, sample = (np.array(numbers, np.int64)[at] for numbers in work.jobs[:3])
    speakers, spoke = _speakers(evaluators, of_evaluator, cells.get("evaluator"))
    known = {
        "evaluator": ([evaluator.name for evaluator in evaluators], of_evaluator),
        "kind": ([kind_of(one) for one in speakers], spoke),
        "fingerprint": ([getattr(one, "fingerprint", None) for one in speakers], spoke),
        **{key: (runs.column(key), of_run) for key in RUN_KEYS if key in dtypes},
    }
    columns = {name: column(values, dtypes[name]).take(places) for name, (values, places) in known.items()}
    columns |= {name: column(values, dtypes[name]) for name, values in cells.items()} | {"sample": sample}
    return frame_from({name: columns[name] for name in dtypes}, len(at), runs.index.take(of_run))


def _cells(work: Work) -> dict[str, Sequence[Any]]:
    """The cells of `CELLS`, column by column, in the order of the jobs.

    Without ``evaluator`` where every name is that of the job's own.
    """
    said, n = work.verdicts, len(work.verdicts.job)
    cells: dict[str, Sequence[Any]] = {
        **said._asdict(),
        "score": said.passed,
        "label": said.passed,
        "status": ["ok"] * n,
        "tokens_in": [0] * n,
        "tokens_out": [0] * n,
        "cost_usd": [0.0] * n,
        "cached": [False] * n,
        "error": [None] * n,
        "judge_model": [None] * n,
    }
    if not work.lines:
        return cells
    cells["evaluator"] = [work.evaluators[work.jobs.evaluator[i]].name for i in said.job]
    lines = dict(zip(CELLS, zip(*work.lines)))
    cells = {name: [*cells[name], *lines[name]] for name in CELLS}
    order = sorted(range(len(cells["job"])), key=cells["job"].__getitem__)
    return {name: [values[i] for i in order] for name, values in cells.items()}


def _tell(evaluator: Any) -> None:
    """Let a manifest find what an evaluator and those that it is made of tell of themselves."""
    if hasattr(evaluator, "fingerprint") and hasattr(evaluator, "to_dict"):
        TEXTS[evaluator.fingerprint] = evaluator.to_dict()
    for part in getattr(evaluator, "parts", {}).values():
        _tell(part)


def _speakers(
    evaluators: Sequence[Any], of_evaluator: np.ndarray, names: Sequence[str] | None
) -> tuple[list[Any], np.ndarray]:
    """Those whose answers the rows are, and which of them each row is of: a juror, where it is a juror's."""
    if names is None or not any(hasattr(evaluator, "parts") for evaluator in evaluators):
        return list(evaluators), of_evaluator
    found: dict[tuple[int, str], int] = {}
    spoke = [found.setdefault(pair, len(found)) for pair in zip(of_evaluator.tolist(), names)]
    return [part_named(evaluators[who], name) for who, name in found], np.array(spoke, np.int64)
