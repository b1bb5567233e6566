"""Evaluators written for russo: objects with a method ``evaluate(expected, actual)``.

`mcpeval.score` knows them by that signature and takes them as they are.  russo need not be
installed: an evaluator that is to run without it takes its three types from here.  Where russo has
been imported, evaluators are given its own ``ToolCall``, which its types insist on.

russo's own ``ExactEvaluator`` is `mcpeval.evaluators.tool_calls`:

====================================  =======================================
``ExactEvaluator(...)``               ``tool_calls(..., score="recall")``
====================================  =======================================
``match_order=True``                  ``order="strict"``
``ignore_extra_args=True``            ``args="superset"``
``ignore_extra_calls=False``          ``extra="forbid"``
====================================  =======================================

``match_rate`` is the score there and ``passed`` is ``passed``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..errors import InputError
from ..evaluators.called import READS, check_columns, made_calls, read_expected
from ..types import Score


@dataclass(frozen=True)
class ToolCall:
    """A call as russo has it: a name and arguments."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ToolCallMatch:
    """What an evaluator says of one expected call."""

    expected: Any
    actual: Any = None
    matched: bool = False
    details: str = ""


@dataclass(frozen=True)
class EvalResult:
    """What an evaluator says of all of them."""

    passed: bool
    expected: Sequence[Any]
    actual: Sequence[Any]
    matches: Sequence[Any] = ()

    @property
    def match_rate(self) -> float:
        """Share of the expected calls that were matched; 1 where none was expected."""
        return sum(bool(match.matched) for match in self.matches) / len(self.expected) if self.expected else 1.0


@dataclass(frozen=True)
class Russo:
    """An evaluator of russo's kind, adapted to a row.

    Attributes
    ----------
    inner : object
        With the method ``evaluate(expected, actual)``.
    name : str
    columns : tuple of str
    """

    inner: Any
    name: str
    columns: tuple[str, ...] = ("expected_tool_calls",)

    kind: ClassVar[str] = "tool_calls"
    reads: ClassVar[tuple[str, ...]] = READS

    def check(self, columns: Iterable[str]) -> None:
        """Raise `InputError` for a frame without tool calls or expected ones."""
        check_columns(f"evaluator {self.name!r}", columns, expected=True)

    def evaluate(self, row: Mapping[str, Any]) -> Any:
        """The evaluator's answer: its match rate as the score, its verdict as ``passed``.

        An answer that is none of russo's is passed on as it is. A row without calls, or without
        expected ones, is skipped.
        """
        made, wanted = made_calls(row), row.get("expected_tool_calls")
        if made is None or wanted is None:
            missing = "expected_tool_calls" if wanted is None else "tool_calls and no messages"
            return Score(None, f"the run has no {missing}", status="skipped")
        calls = read_expected(wanted, "expected_tool_calls")
        if odd := [call.name for call in calls if call.acceptable or call.forbidden]:
            why = "has acceptable values, or is forbidden; russo's evaluators know neither"
            raise InputError(f"expected_tool_calls: {odd[0]!r} {why}")
        actual = [(call.name, call.arguments if isinstance(call.arguments, Mapping) else {}) for call in made]
        kind = getattr(sys.modules.get("russo"), "ToolCall", ToolCall)
        expected = [kind(name=call.name, arguments=dict(call.arguments)) for call in calls]
        answer = self.inner.evaluate(expected, [kind(name=name, arguments=dict(given)) for name, given in actual])
        return _score(answer) if hasattr(answer, "passed") and hasattr(answer, "matches") else answer


def adapt(given: Any, name: str | None = None) -> Russo:
    """An evaluator of rows from one with the method ``evaluate(expected, actual)``."""
    return Russo(given, name or getattr(given, "name", None) or type(given).__name__)


def _score(answer: Any) -> Score:
    wrong = [m.details or f"{m.expected.name}: not matched" for m in answer.matches if not m.matched]
    matched = sum(bool(match.matched) for match in answer.matches)
    reason = ". ".join([f"{matched} of {len(answer.expected)} expected calls matched", *wrong])
    return Score(float(answer.match_rate), reason, passed=bool(answer.passed))
