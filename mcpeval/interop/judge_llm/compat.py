"""judge-llm's own answers where ours differ: what ``compat="judge-llm"`` puts in their place.

How it counts is described where it is not what one would expect; `Trajectory` and `AgentChain`
say what we do instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import InputError
from ...evaluators.sequences import AgentChain, Calls, Trajectory, equal, found, nearness, same_name


@dataclass(frozen=True)
class TheirTrajectory(Trajectory):
    """`Trajectory` as judge-llm 1.0 counts.

    Arguments are not compared unless asked for, and half of the calls will do. With ``exact``
    calls behind the expected ones never count, and where there are not as many calls as expected an
    argument score is all or nothing (`argument_threshold`). Otherwise each expected call in turn
    takes the best of the calls left over, extra calls take at most half of the score away, and
    ``superset`` holds the arguments of the calls made to be the expected ones.
    """

    arguments: str = "ignore"
    extra: bool | None = True
    threshold: float = 0.5

    def compare(self, expected: Calls, made: Calls) -> float:
        if not expected:
            return float(not made or bool(self.extra))
        if not made:
            return 0.0
        if self.match == "superset":
            return self._greedy(made, expected, extra=True)
        if self.match != "exact":
            return self._greedy(expected, made, extra=bool(self.extra) or self.match == "subset")
        likes = [self._like(e, m) if self._same(e, m) else 0.0 for e, m in zip(expected, made)]
        if len(expected) != len(made) and self.arguments != "ignore":
            likes = [float(self._same(e, m) and x >= self.argument_threshold) for e, m, x in zip(expected, made, likes)]
        return sum(likes) / len(expected)

    def _greedy(self, expected: Calls, made: Calls, *, extra: bool) -> float:
        free, total = list(range(len(made))), 0.0
        for wanted in expected:
            likes = {place: self._like(wanted, made[place]) for place in free if self._same(wanted, made[place])}
            best = max(likes, key=likes.__getitem__, default=None)
            if best is not None and likes[best] > 0:
                free.remove(best)
                total += likes[best]
        score = total / len(expected)
        return score if extra or not free else score * (1 - len(free) / (len(expected) + len(free)) * 0.5)

    def _same(self, expected: tuple[str, Any], made: tuple[str, Any]) -> bool:
        try:
            return same_name(expected[0], made[0], self.names)
        except InputError:  # no regular expression
            return expected[0] == made[0]

    def _like(self, expected: tuple[str, Any], made: tuple[str, Any]) -> float:
        wanted, given = expected[1], made[1]
        if self.arguments == "ignore" or not wanted:
            return 1.0
        if not given:
            return 0.0
        if self.arguments == "exact" or not isinstance(wanted, Mapping) or not isinstance(given, Mapping):
            return equal(wanted, given)
        alike = {"subset": equal, "regex": _found, "fuzzy": nearness}[self.arguments]
        return sum(alike(value, given[key]) for key, value in wanted.items() if key in given) / len(wanted)


def _found(expected: Any, made: Any) -> float:
    try:
        return found(expected, made)
    except InputError:  # no regular expression
        return equal(expected, made)


@dataclass(frozen=True)
class TheirAgentChain(AgentChain):
    """`AgentChain` as judge-llm 1.0 counts: four fifths will do, and the score alone decides."""

    threshold: float = 0.8

    def _passes(self, mean: float, pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> bool:
        return mean >= self.threshold
