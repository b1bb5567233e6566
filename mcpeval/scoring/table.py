"""The scores frame, put together column by column."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from ..frames import RUN_KEYS, column, frame_from, plain, score_dtypes
from ..types import Score

if TYPE_CHECKING:
    from .work import Work

#: A score as its cells: `CELLS`, of which the first is the place of its job.
Line = tuple[Any, ...]
CELLS = (
    *("job", "evaluator", "score", "label", "passed", "reason", "status", "error", "judge_model"),
    *("tokens_in", "tokens_out", "cost_usd", "seconds", "cached", "metadata"),
)


class Verdicts(NamedTuple):
    """What rules say (`Rule.verdict`), column by column: the most frequent of all answers, and the cheapest to make."""

    job: list[int]
    passed: list[bool]
    reason: list[str]
    seconds: list[float]
    metadata: list[dict[str, Any]]


def line_of(job: int, name: str, answer: Score, took: float, *, shared: bool) -> Line:
    """The cells of an answer that took `took` seconds.

    With `shared` the metadata are parts of the output's own JSON, as a rule gives them: walking
    through those would cost more than the rule.
    """
    label, usage = answer.label, answer.usage
    if type(label) is not bool:
        label = as_json(label)
    metadata = dict(answer.metadata) if shared else as_json(dict(answer.metadata))
    judge_model = metadata.pop("judge_model", None)
    spent: tuple[Any, ...] = (0, 0, 0.0, took, False)
    if usage is not None:
        spent = (usage.tokens_in, usage.tokens_out, usage.cost_usd, usage.seconds, usage.cached)
        if usage.cached_calls:
            metadata["saved_usd"] = usage.saved_usd
    verdict = (job, name, answer.score, label, answer.passed, answer.reason, answer.status, answer.error, judge_model)
    return (*verdict, *spent, metadata)


def as_json(value: Any) -> Any:
    """`value` as JSON holds it: a numpy number is a number, what JSON cannot hold is its text."""
    if value is None or isinstance(value, (bool, str)):
        return value
    return json.loads(json.dumps(plain(value), default=str))


def scores_of(work: Work) -> pd.DataFrame:
    """The frame of what was done, in the order of the jobs.

    What is known of a run or an evaluator is made an array once, and repeated.
    """
    runs, evaluators, dtypes = work.runs, work.evaluators, score_dtypes(work.runs.names)
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
