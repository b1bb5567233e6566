"""Evaluators of an order of events: the tools that were called, the agents that were at work."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import stats
from ..errors import InputError
from ..types import Score
from .arguments import need_choice, need_flag, need_number
from .called import check_columns
from .conversations import both
from .text import other_length

Calls = Sequence[tuple[str, Any]]


@dataclass(frozen=True)
class Trajectory:
    """How many of the expected tool calls were made, with part marks for arguments.

    `tool_calls` says more of single calls; this one takes judge-llm's terms, and conversations of
    several turns.

    Parameters
    ----------
    match : {"exact", "flexible", "subset", "superset"}
        ``exact``: the n-th expected call is the n-th made. ``flexible`` and ``subset``: every
        expected call has one of its own among those made, in any order (the best assignment).
        ``superset``: every call made has one of its own among those expected.
    arguments : {"exact", "subset", "regex", "fuzzy", "ignore"}
        ``exact``: equal. ``subset``: the share of the expected arguments that are there and equal.
        ``regex``: an expected text is a pattern that is found in the given one. ``fuzzy``: of two
        texts the share of the expected words, of two numbers 1 less their relative distance.
    names : {"exact", "contains", "regex"}
        ``contains``: one name holds the other, whatever the case. ``regex``: the expected name is a
        pattern that matches at the start of the other.
    extra : bool, optional
        Whether calls that are not expected may be made. None forbids them with ``exact`` only.
    threshold : float
        The mean score of the turns from which the row passes.
    argument_threshold : float
        With ``fuzzy``, what two arguments need to count at all.
    name : str

    Notes
    -----
    Reads ``tool_calls`` (else ``messages``) and ``expected_tool_calls``; a row without the latter is
    ``skipped``. The score of a turn is the sum over its pairs of calls, as a share of the expected
    calls (with ``superset`` of the calls made), and of the forbidden calls that were made as well.
    A turn in which nothing was expected and nothing called scores 1, and the row is ``vacuous``
    where all were so.
    """

    match: str = "exact"
    arguments: str = "exact"
    names: str = "exact"
    extra: bool | None = None
    threshold: float = 1.0
    argument_threshold: float = 0.8
    name: str = "trajectory"

    kind: ClassVar[str] = "tool_calls"
    immediate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        need_choice("Trajectory", "match", self.match, ("exact", "flexible", "subset", "superset"))
        need_choice("Trajectory", "arguments", self.arguments, ("exact", "subset", "regex", "fuzzy", "ignore"))
        need_choice("Trajectory", "names", self.names, ("exact", "contains", "regex"))
        if self.extra is not None:
            need_flag("Trajectory", "extra", self.extra)
        need_number("Trajectory", "threshold", self.threshold, 0, 1)
        need_number("Trajectory", "argument_threshold", self.argument_threshold, 0, 1)

    def check(self, columns: Iterable[str]) -> None:
        """Raise `InputError` for a frame without calls, or without what was expected."""
        columns = list(columns)
        check_columns(f"evaluator {self.name!r}", columns, expected="test_case" not in columns)

    def evaluate(self, row: Mapping[str, Any]) -> Score:
        """The mean over the turns of the row."""
        if row.get("expected_tool_calls") is None and not row.get("test_case"):
            return Score(None, "the row has no expected tool calls")
        expected, actual = both(row, calls=True)
        about = {"match": self.match, "threshold": self.threshold}
        if len(expected) != len(actual):
            return other_length(expected, actual, about)
        scores = [self.compare(e.calls, a.calls) for e, a in zip(expected, actual)]
        mean = sum(scores) / len(scores) if scores else 1.0
        vacuous = not any(turn.calls for turn in (*expected, *actual))
        named = [" ".join(name for turn in turns for name, _ in turn.calls) or "none" for turns in (expected, actual)]
        reason = f"{self.match} {mean:.2f}, threshold {self.threshold:g}"
        reason += "; no calls were expected or made" if vacuous else f"; expected: {named[0]}; called: {named[1]}"
        about |= {"turns": scores} | ({"vacuous": True} if vacuous else {})
        return Score(mean, reason, passed=mean >= self.threshold, metadata=about)

    def compare(self, expected: Calls, made: Calls) -> float:
        """The score of one turn."""
        if not expected and not made:
            return 1.0
        if self.match == "superset":
            pairs = stats.assignment([[self._like(e, m) for e in expected] for m in made]) if expected and made else []
            likes = [self._like(expected[e], made[m]) for m, e in enumerate(pairs) if e >= 0]
            return sum(likes) / len(made) if made else 1.0
        if self.match == "exact":
            likes = [self._like(e, m) for e, m in zip(expected, made)]
            extra = max(0, len(made) - len(expected))
        else:
            pairs = stats.assignment([[self._like(e, m) for m in made] for e in expected]) if expected and made else []
            likes = [self._like(expected[e], made[m]) for e, m in enumerate(pairs) if m >= 0]
            extra = len(made) - sum(like > 0 for like in likes)
        forbidden = self.match == "exact" if self.extra is None else not self.extra
        whole = len(expected) + (extra if forbidden else 0)
        return sum(likes) / whole if whole else 1.0

    def _like(self, expected: tuple[str, Any], made: tuple[str, Any]) -> float:
        if not same_name(expected[0], made[0], self.names):
            return 0.0
        if self.arguments == "ignore":
            return 1.0
        if not isinstance(expected[1], Mapping) or not isinstance(made[1], Mapping) or self.arguments == "exact":
            return float(expected[1] == made[1])
        return self._shared(expected[1], made[1])

    def _shared(self, expected: Mapping[str, Any], made: Mapping[str, Any]) -> float:
        if not expected:
            return 1.0
        alike = {"subset": equal, "regex": found, "fuzzy": nearness}[self.arguments]
        likes = [alike(value, made[key]) if key in made else 0.0 for key, value in expected.items()]
        least = self.argument_threshold if self.arguments == "fuzzy" else 0.0
        return sum(like for like in likes if like >= least) / len(expected)


def same_name(expected: str, made: str, how: str) -> bool:
    """Whether `made` is the tool that `expected` names (see `Trajectory`)."""
    if how == "contains":
        return expected.lower() in made.lower() or made.lower() in expected.lower()
    if how == "regex":
        return _search(re.match, expected, made)
    return expected == made


def equal(expected: Any, made: Any) -> float:
    """1 where the two are equal, else 0."""
    return float(bool(expected == made))


def found(expected: Any, made: Any) -> float:
    """1 where the pattern `expected` is found in the text `made`; of other values, where they are equal."""
    if isinstance(expected, str) and isinstance(made, str):
        return float(_search(re.search, expected, made))
    return equal(expected, made)


def nearness(expected: Any, made: Any) -> float:
    """How near `made` comes to `expected`: words of a text, relative distance of a number, else equality."""
    if expected == made:
        return 1.0
    if isinstance(expected, str) and isinstance(made, str):
        wanted = set(expected.lower().split())
        return len(wanted & set(made.lower().split())) / len(wanted) if wanted else float(not made.split())
    if isinstance(expected, (int, float)) and isinstance(made, (int, float)) and expected:
        try:
            return max(0.0, 1.0 - abs(expected - made) / abs(expected))
        except OverflowError:  # an integer too far away for a float
            return 0.0
    return 0.0


def _search(search: Any, pattern: str, text: str) -> bool:
    try:
        return bool(search(pattern, text, re.IGNORECASE))
    except re.error as error:
        raise InputError(f"the expected call has {pattern!r}, which is no regular expression: {error}") from None


@dataclass(frozen=True)
class AgentChain:
    """Whether a conversation was handed over to the agents that it should have gone to.

    Parameters
    ----------
    match : {"contains", "exact", "subset", "flexible"}
        ``contains`` and ``flexible``: the share of the expected agents that were at work, in any
        order. ``subset``: the share that were, in the expected order, whoever came between.
        ``exact``: 1 for the same agents in the same order, else the share of those in common.
    extra : bool
        Whether agents that are not expected may be at work. With False and ``contains`` one of
        them takes a tenth off, and the row does not pass.
    threshold : float
        The mean score of the turns from which the row passes; with ``exact`` only the same agents
        in the same order do.
    name : str

    Notes
    -----
    Reads ``expected_agents`` and ``agents``, lists of names; where a row has none, the expected and
    the made calls of the tool `conversations.TRANSFER`.
    """

    match: str = "contains"
    extra: bool = True
    threshold: float = 1.0
    name: str = "agent_chain"

    kind: ClassVar[str] = "tool_calls"
    immediate: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("output",)

    def __post_init__(self) -> None:
        need_choice("AgentChain", "match", self.match, ("contains", "exact", "subset", "flexible"))
        need_flag("AgentChain", "extra", self.extra)
        need_number("AgentChain", "threshold", self.threshold, 0, 1)

    def evaluate(self, row: Mapping[str, Any]) -> Score:
        """The mean over the turns of the row."""
        if all(row.get(name) is None for name in ("expected_agents", "expected_tool_calls", "test_case")):
            return Score(None, "the row has no expected agents")
        expected, actual = both(row, calls=True)
        about = {"match": self.match, "threshold": self.threshold}
        if len(expected) != len(actual):
            return other_length(expected, actual, about)
        pairs = [(e.agents, a.agents) for e, a in zip(expected, actual)]
        scores = [self.compare(wanted, came) for wanted, came in pairs]
        mean = sum(scores) / len(scores) if scores else 1.0
        vacuous = not any(wanted or came for wanted, came in pairs)
        texts = [" > ".join(agent for pair in pairs for agent in pair[side]) or "none" for side in (0, 1)]
        reason = f"{self.match} {mean:.2f}, threshold {self.threshold:g}; expected: {texts[0]}; came: {texts[1]}"
        about |= {"turns": scores} | ({"vacuous": True} if vacuous else {})
        return Score(mean, reason, passed=self._passes(mean, pairs), metadata=about)

    def compare(self, expected: Sequence[str], came: Sequence[str]) -> float:
        """The score of one turn."""
        if not expected:
            return float(not came or self.extra)
        common = set(expected) & set(came)
        if self.match == "exact":
            return 1.0 if tuple(expected) == tuple(came) else len(common) / max(len(expected), len(came))
        if self.match == "subset":
            return _in_order(expected, came) / len(expected)
        share = len(common) / len(set(expected))
        return 0.9 if share == 1.0 and self.match == "contains" and self._has_extra(expected, came) else share

    def _has_extra(self, expected: Sequence[str], came: Sequence[str]) -> bool:
        return not self.extra and bool(set(came) - set(expected))

    def _passes(self, mean: float, pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> bool:
        if self.match == "exact" and mean < 1.0:
            return False
        return mean >= self.threshold and not any(self._has_extra(*pair) for pair in pairs)


def _in_order(expected: Sequence[str], came: Sequence[str]) -> int:
    """How many of `expected`, from the first on, came in this order."""
    done = 0
    for agent in came:
        done += done < len(expected) and agent == expected[done]
    return done
