"""Evaluators with judge-llm's signatures, adapted to a row.

``evaluate(test_case, response)`` as its guide has it and ``evaluate(eval_case, agent_metadata,
provider_result, eval_config)`` as its released package has it; no base class is needed for either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...evaluators.base import call_apart
from ...types import Score
from .records import EvaluationResult, case_of, response_of, result_of


class BaseEvaluator:
    """What judge-llm's custom evaluators are derived from; it keeps their configuration."""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self.config = dict(config or {})

    def evaluate(self, test_case: Any, response: Any) -> EvaluationResult:
        """Say what there is to be said of `response`; every evaluator writes its own."""
        raise NotImplementedError(f"{type(self).__name__} has no method evaluate")

    def get_config(self, eval_config: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The configuration, with what the test case says instead."""
        return {**self.config, **(eval_config or {})}

    def get_evaluator_name(self) -> str:
        """The class's name."""
        return type(self).__name__

    def get_evaluator_type(self) -> str:
        """The class's name in lower case, without "Evaluator"."""
        return type(self).__name__.replace("Evaluator", "").lower()


@dataclass(frozen=True)
class JudgeLlm:
    """An evaluator of judge-llm's kind as one of rows.

    Attributes
    ----------
    inner : object
    name : str
    arguments : callable
        From a row to the arguments of ``inner.evaluate``.
    overrides : mapping
        What a test case says for this evaluator (``eval_config``).
    """

    inner: Any
    name: str
    arguments: Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[Any, ...]]
    overrides: Mapping[str, Any] = field(default_factory=dict)

    kind = "function"

    @property
    def takes_overrides(self) -> bool:
        """Whether ``inner.evaluate`` is told what a test case says instead."""
        return self.arguments is _four

    async def evaluate(self, row: Mapping[str, Any]) -> Any:
        """The evaluator's answer as a `Score`; in a thread of its own where it is not async.

        What is no result of judge-llm's (a bool, a number, ...) is passed on as it is.
        """
        answer = await call_apart(self.inner.evaluate, *self.arguments(row, self.overrides))
        return score_of(answer) if hasattr(answer, "passed") and not isinstance(answer, Score) else answer

    def with_overrides(self, overrides: Mapping[str, Any]) -> JudgeLlm:
        return replace(self, overrides=dict(overrides))


def adapt_response(given: Any, name: str | None = None) -> JudgeLlm:
    """An evaluator of rows from one with the method ``evaluate(test_case, response)``."""
    return JudgeLlm(given, name or name_of(given), lambda row, _: (case_of(row), response_of(row)))


def adapt_provider_result(given: Any, name: str | None = None) -> JudgeLlm:
    """An evaluator of rows from one with the method ``evaluate(eval_case, agent_metadata, provider_result, ...)``."""
    return JudgeLlm(given, name or name_of(given), _four)


def _four(row: Mapping[str, Any], overrides: Mapping[str, Any]) -> tuple[Any, ...]:
    result = result_of(row)
    about = result.metadata.get("agent_metadata") or {}
    return case_of(row), dict(about), result, dict(overrides) or None


def name_of(given: Any) -> str:
    """The name that an evaluator bears, else its class's."""
    name = getattr(given, "name", None)
    return name if isinstance(name, str) and name else type(given).__name__


def score_of(answer: Any) -> Score:
    """A result of judge-llm's, with ``success`` and ``details`` or with ``reason`` and ``metadata``.

    Where it has no score, its verdict is one. A result that says it was no success has no score at all.
    """
    details = _field(answer, "details") or _field(answer, "metadata") or {}
    details = dict(details) if isinstance(details, Mapping) else {"details": details}
    about = {
        **details,
        "evaluator_type": _field(answer, "evaluator_type") or None,
        "threshold": _field(answer, "threshold"),
    }
    about = {key: value for key, value in about.items() if value is not None}
    error = _field(answer, "error")
    if _field(answer, "success") is False:
        why = str(error or details.get("error") or "the evaluator says that it did not succeed")
        return Score(None, why, status="error", error=why, metadata=about)
    passed, score = _field(answer, "passed"), _field(answer, "score")
    passed = None if passed is None else bool(passed)
    score = passed if score is None else score
    score = math.nan if score is None else float(score)
    return Score(score, _reason(answer, details, score), passed=passed, metadata=about)


def _reason(answer: Any, details: Mapping[str, Any], score: float) -> str:
    given = _field(answer, "reason") or details.get("reason") or _field(answer, "error")
    if given:
        return str(given)
    threshold = _field(answer, "threshold")
    return f"score {score:.2f}" + ("" if threshold is None else f", threshold {threshold:g}")


def _field(answer: Any, name: str) -> Any:
    return answer.get(name) if isinstance(answer, Mapping) else getattr(answer, name, None)
