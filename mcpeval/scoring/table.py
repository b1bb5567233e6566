"""The scores frame, put together column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..evaluators.base import ORIGINS, TEXTS
from ..frames import RUN_KEYS, column, frame_from, score_dtypes
from .cells import CELLS
from .work import Work


def scores_of(work: Work) -> pd.DataFrame:
    """The frame of what was done, in the order of the jobs.

    What is known of a run or an evaluator is made an array once, and repeated.
    """
    runs, evaluators, dtypes = work.runs, work.evaluators, score_dtypes(work.runs.names)
    told = [e for e in evaluators if hasattr(e, "fingerprint") and hasattr(e, "to_dict")]
    TEXTS.update((evaluator.fingerprint, evaluator.to_dict()) for evaluator in told)
    ORIGINS.update(runs.origins())
    cells = _cells(work)
    at = np.array(cells.pop("job"), np.int64)
    of_run, of_evaluator, sample = (np.array(numbers, np.int64)[at] for numbers in work.jobs)
    known = {
        "evaluator": ([evaluator.name for evaluator in evaluators], of_evaluator),
        "kind": ([kind_of(evaluator) for evaluator in evaluators], of_evaluator),
        "fingerprint": ([getattr(evaluator, "fingerprint", None) for evaluator in evaluators], of_evaluator),
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


def kind_of(evaluator: Any) -> str:
    """The ``kind`` of an evaluator; an object that does not say is a function's like."""
    return getattr(evaluator, "kind", "function")
