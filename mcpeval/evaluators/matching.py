"""Which of the calls that were expected were made: comparison of two calls, and the matching of many.

Everything here is arithmetic on values; nothing knows of frames, rows or scores.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from .. import stats
from ..types import ToolCall
from .values import show

#: ``(expected arguments, made arguments) -> bool``, or how right they are, from 0 to 1.
Judged = Callable[[Any, Any], Any]

#: What each kind of difference counts when the closest call is looked for: a call of another tool is
#: further away than any call of the right one with a few wrong arguments (the weights are russo's).
_DISTANCE = {"name": 10, "server": 10, "text": 5, "missing": 2, "different": 1, "unexpected": 1, "judged": 1}

_MOST_STATES = 10_000


@dataclass(frozen=True)
class Expected:
    """A call that should be made.

    Attributes
    ----------
    name : str
        Of the tool; a pattern where names are compared as patterns.
    arguments : dict
    server : str or None
        The MCP server; None takes the tool of any.
    after : tuple of int
        Places of the expected calls that have to be made before this one.
    only : tuple of str or None
        The arguments that are compared; None compares all (tau2's ``compare_args``).
    acceptable : bool
        Whether each argument is a list of values of which any will do, ``""`` among them where the
        argument may be left out (BFCL's ``possible_answer``).
    forbidden : bool
        Whether this call, with at least these arguments, must not be made.
    """

    name: str
    arguments: Mapping[str, Any]
    server: str | None = None
    after: tuple[int, ...] = ()
    only: tuple[str, ...] | None = None
    acceptable: bool = False
    forbidden: bool = False

    def takes(self, argument: str, value: Any) -> bool:
        """Whether `value` will do for `argument`, one of `arguments`."""
        wanted = self.arguments[argument]
        return any(value == one for one in wanted) if self.acceptable else bool(value == wanted)

    def optional(self, argument: str) -> bool:
        """Whether `argument`, one of `arguments`, may be left out."""
        return self.acceptable and "" in self.arguments[argument]


class Difference(NamedTuple):
    """One thing in which a call is not as expected.

    `kind` is a key of the table of distances, `size` how much of that distance it is; `wanted` and
    `came` are values, where there are such; with `choice`, `wanted` is a list of which any will do.
    """

    kind: str
    argument: str = ""
    wanted: Any = None
    came: Any = None
    size: float = 1.0
    choice: bool = False

    def __str__(self) -> str:
        wanted = f"one of {show(self.wanted)}" if self.choice else show(self.wanted)
        if self.kind == "missing":
            return f"arg {self.argument!r}: missing (expected {wanted})"
        if self.kind == "unexpected":
            return f"arg {self.argument!r}: unexpected, got {show(self.came)}"
        if self.kind == "text":
            return f"arguments: expected a JSON object, got {show(self.came)}"
        if self.kind == "judged":
            return f"arguments: expected {wanted}, got {show(self.came)}"
        what = f"arg {self.argument!r}" if self.kind == "different" else self.kind
        return f"{what}: expected {wanted}, got {show(self.came)}"


# --- two calls -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Terms:
    """How two calls are compared.

    Attributes
    ----------
    args : {"exact", "subset", "superset", "ignore"} or callable
        The made call's arguments are the expected ones, some of them, these and perhaps others,
        or anything; a callable says it of two dicts.
    names : {"exact", "casefold", "regex"} or re.Pattern
        "regex": an expected name is a pattern that the whole name has to match. A pattern says
        what of a name is compared: its first group, else all that it matches.
    """

    args: str | Judged = "exact"
    names: str | re.Pattern[str] = "exact"

    def same_name(self, expected: str, made: str) -> bool:
        if expected == made and self.names != "regex":
            return True
        if self.names == "casefold":
            return expected.casefold() == made.casefold()
        if self.names == "regex":
            return re.fullmatch(expected, made) is not None
        return self.names != "exact" and _part(self.names, expected) == _part(self.names, made)

    def differences(self, expected: Expected, made: ToolCall) -> list[Difference]:
        """Everything in which `made` is not as expected; empty where it is the call."""
        found = []
        if not self.same_name(expected.name, made.name):
            found.append(Difference("name", wanted=expected.name, came=made.name))
        if None not in (expected.server, made.server) and expected.server != made.server:
            found.append(Difference("server", wanted=expected.server, came=made.server))
        if self.args == "ignore":
            return found
        if not isinstance(made.arguments, Mapping):
            return [*found, Difference("text", came=made.arguments)]
        if callable(self.args):
            right = 0.0 if found else float(self.args(expected.arguments, made.arguments))
            judged = Difference("judged", "", expected.arguments, made.arguments, min(1.0, 1 - right))
            return found if right >= 1 else [*found, judged]
        return found + _argument_differences(expected, made.arguments, self.args)

    def share(self, expected: Expected, made: ToolCall) -> float:
        """The share of the expected arguments that are right, from 0 to 1; 1 where none are expected."""
        if self.args == "ignore":
            return 1.0
        if not isinstance(made.arguments, Mapping):
            return 0.0
        if callable(self.args):
            return min(1.0, max(0.0, float(self.args(expected.arguments, made.arguments))))
        wrong = {d.argument for d in _argument_differences(expected, made.arguments, "superset")}
        return 1.0 - len(wrong) / len(expected.arguments) if expected.arguments else 1.0


def _part(pattern: Any, name: str) -> str:
    found = pattern.search(name)
    return name if found is None else found[1] if pattern.groups and found[1] is not None else found[0]


def _argument_differences(expected: Expected, made: Mapping[str, Any], mode: Any) -> list[Difference]:
    wanted, found = expected.arguments, []
    if expected.only is not None:
        wanted = {name: value for name, value in wanted.items() if name in expected.only}
        made = {name: value for name, value in made.items() if name in expected.only}
        mode = "exact" if mode == "subset" else mode  # what is to be compared has to be there, as in tau2
    for name, value in wanted.items():
        if name not in made:
            if mode != "subset" and not expected.optional(name):
                found.append(Difference("missing", name, value, choice=expected.acceptable))
        elif not expected.takes(name, made[name]):
            found.append(Difference("different", name, value, made[name], choice=expected.acceptable))
    if mode != "superset":
        found += [Difference("unexpected", name, None, value) for name, value in made.items() if name not in wanted]
    return found


def call_text(name: str, arguments: Any) -> str:
    """A call as it is written: ``book_flight(from_city='NYC')``."""
    if not isinstance(arguments, Mapping):
        return f"{name}({show(arguments)})"
    text = ", ".join(f"{key}={show(value)}" for key, value in arguments.items())
    return f"{name}({text if len(text) <= 200 else text[:197] + '...'})"


# --- many calls ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Matching:
    """Which made call stands for which expected one.

    Attributes
    ----------
    wanted : tuple of Expected
        Without the forbidden ones.
    made : tuple of ToolCall
    partners : tuple of int or None
        For each of `wanted`, the place of its call in `made`: the one that is it, else the closest
        of those left over.
    matched : tuple of bool
        Whether the partner is the call, and in its order.
    broken : tuple of int
        Places in `made` of the calls that are forbidden.
    terms : Terms
    """

    wanted: tuple[Expected, ...]
    made: tuple[ToolCall, ...]
    partners: tuple[int | None, ...]
    matched: tuple[bool, ...]
    broken: tuple[int, ...]
    terms: Terms

    @cached_property
    def hits(self) -> int:
        """How many expected calls were made."""
        return sum(self.matched)

    @property
    def extra(self) -> list[int]:
        """Places in `made` of the calls that are none of the expected ones."""
        taken = {partner for partner, is_it in zip(self.partners, self.matched) if is_it}
        return [place for place in range(len(self.made)) if place not in taken]

    @property
    def precision(self) -> float:
        """Share of the calls made that were expected; 1 of none where none was expected, else 0."""
        return self.hits / len(self.made) if self.made else float(not self.wanted)

    @property
    def recall(self) -> float:
        """Share of the expected calls that were made; where none was expected 1 for none, NaN for some."""
        if self.wanted:
            return self.hits / len(self.wanted)
        return float("nan") if self.made else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, as 2 hits / (made + expected); 1 of nothing at all."""
        both = len(self.made) + len(self.wanted)
        return 2 * self.hits / both if both else 1.0

    def differences(self, place: int) -> list[str]:
        """In what the partner of the expected call at `place` is not the call, as texts."""
        partner = self.partners[place]
        if partner is None:
            return ["not made"]
        found = self.terms.differences(self.wanted[place], self.made[partner])
        return [str(difference) for difference in found] or ([] if self.matched[place] else ["made out of order"])

    def weighted(self, weights: Mapping[str, float]) -> float:
        """Names, arguments and order in one number, with the weights ``name``, ``params``, ``order``.

        Names: the share of expected calls whose partner has their name. Arguments: the mean share
        of right ones among those. Order: the longest common subsequence of names, as a share of
        those expected. The parts and their weights are those of Salesforce's MCPEval (arXiv
        2507.12806), on partners of the best matching instead of those at the same place.
        """
        if not self.wanted:
            return float(not self.made)
        pairs = [(e, self.made[p]) for e, p in zip(self.wanted, self.partners) if p is not None]
        named = [(e, call) for e, call in pairs if self.terms.same_name(e.name, call.name)]
        n = len(self.wanted)
        params = sum(self.terms.share(e, call) for e, call in named) / len(named) if named else 0.0
        names = [[self.terms.same_name(e.name, call.name) for call in self.made] for e in self.wanted]
        order = len(in_order(names)) / n
        total = weights["name"] * len(named) / n + weights["params"] * params + weights["order"] * order
        return min(1.0, total)


def match(expected: Sequence[Expected], made: Sequence[ToolCall], terms: Terms, order: str = "any") -> Matching:
    """The best matching of expected calls and calls made.

    Parameters
    ----------
    expected : sequence of Expected
    made : sequence of ToolCall
    terms : Terms
    order : {"any", "strict", "lcs", "dag"}
        "any": as many expected calls as possible get a call of their own, in whatever order they
        were made (an optimal assignment). "strict": the n-th expected call is the n-th made.
        "lcs": as many as possible in the expected order, with others between them. "dag": as many
        as possible each of which comes later than all those it is `after`.
    """
    wanted = tuple(one for one in expected if not one.forbidden)
    distance = [[_distance(terms.differences(one, call)) for call in made] for one in wanted]
    found = [[d == 0 for d in row] for row in distance]
    if order == "any":
        pairs = best_pairs(distance)
        matched = {e: j for e, j in pairs.items() if found[e][j]}
    else:
        matched = _ordered(found, wanted, order)
        rest = [e for e in range(len(wanted)) if e not in matched]
        free = [j for j in range(len(made)) if j not in matched.values()]
        if order == "strict":
            pairs = {e: e for e in range(min(len(wanted), len(made)))}
        else:
            nearest = best_pairs([[distance[e][j] for j in free] for e in rest])
            pairs = matched | {rest[e]: free[j] for e, j in nearest.items()}
    banned = [one for one in expected if one.forbidden]
    at_least = Terms("superset", terms.names)
    broken = tuple(j for j, call in enumerate(made) if any(not at_least.differences(one, call) for one in banned))
    places = range(len(wanted))
    partners, is_it = tuple(pairs.get(e) for e in places), tuple(e in matched for e in places)
    return Matching(wanted, tuple(made), partners, is_it, broken, terms)


def _distance(differences: Sequence[Difference]) -> float:
    return sum(_DISTANCE[difference.kind] * difference.size for difference in differences)


def best_pairs(distance: Sequence[Sequence[float]]) -> dict[int, int]:
    """One-to-one pairs of rows and columns: as many at distance 0 as there can be, then the closest.

    Of equal rows, and of equal columns, the first are the hits. `distance` has one row for each
    expected call, one column for each call made.
    """
    if not distance or not distance[0]:
        return {}
    rows, columns = len(distance), len(distance[0])
    full = min(rows, columns) + 1.0  # one hit outweighs all the near misses together
    slight = 1e-6 / (rows + columns)
    weights = [
        [full - slight * (row + column) if d == 0 else 1 / (1 + d) for column, d in enumerate(line)]
        for row, line in enumerate(distance)
    ]
    return {row: int(column) for row, column in enumerate(stats.assignment(weights)) if column >= 0}


def _ordered(found: Sequence[Sequence[bool]], wanted: Sequence[Expected], order: str) -> dict[int, int]:
    if order == "lcs":
        return in_order(found)
    if order == "dag":
        return in_partial_order(found, [one.after for one in wanted])
    return {e: e for e, row in enumerate(found) if e < len(row) and row[e]}


def in_order(found: Sequence[Sequence[bool]]) -> dict[int, int]:
    """The most pairs (row, column) with ``found[row][column]`` that rise in both: a longest common
    subsequence. Each row is paired with the earliest column it can have."""
    rows, columns = len(found), len(found[0]) if found else 0
    best = [[0] * (columns + 1) for _ in range(rows + 1)]  # best[i][j]: of the rows from i, the columns from j
    for i in reversed(range(rows)):
        for j in reversed(range(columns)):
            taken = best[i + 1][j + 1] + 1 if found[i][j] else 0
            best[i][j] = max(taken, best[i + 1][j], best[i][j + 1])
    pairs, i, j = {}, 0, 0
    while i < rows and j < columns:
        if found[i][j] and best[i][j] == best[i + 1][j + 1] + 1:
            pairs[i] = j
            i, j = i + 1, j + 1
        elif best[i + 1][j] == best[i][j]:
            i += 1
        else:
            j += 1
    return pairs


def in_partial_order(found: Sequence[Sequence[bool]], after: Sequence[Sequence[int]]) -> dict[int, int]:
    """The most pairs (row, column) with ``found``, each in a later column than all the rows it is `after`.

    A row counts only where all that it is after are paired before it, as milestones do in ToolSandbox
    (Lu et al. 2024, arXiv 2408.04682). The columns are gone through once with every set of rows that
    can be done so far. A column that some row can take is never left free: if the best plan leaves it
    free, that row can be moved there and nothing comes too late. Of rows that nothing tells apart only
    the first is tried. Sets beyond 10,000, which only many calls that stand for each other in
    different ways can reach, are dropped, the smallest first.
    """
    needs = [sum(1 << before for before in set(rows)) for rows in after]
    leads = [sum(1 << row for row, before in enumerate(after) if one in before) for one in range(len(found))]
    kinds = [(tuple(found[row]), needs[row], leads[row]) for row in range(len(found))]
    plans: dict[int, tuple[tuple[int, int], ...]] = {0: ()}
    for column in range(len(found[0]) if found else 0):
        grown: dict[int, tuple[tuple[int, int], ...]] = {}
        for done, pairs in plans.items():
            ready = {
                kinds[row]: row
                for row in reversed(range(len(found)))
                if found[row][column] and not done >> row & 1 and not needs[row] & ~done
            }
            for row in ready.values():
                grown.setdefault(done | 1 << row, (*pairs, (row, column)))
            if not ready:
                grown.setdefault(done, pairs)
        largest = sorted(grown, key=int.bit_count, reverse=True)[:_MOST_STATES]
        plans = {done: grown[done] for done in largest}
    return dict(max(plans.values(), key=len))
