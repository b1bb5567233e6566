"""The cells of one score, as they come."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ..frames import plain
from ..types import Score

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
