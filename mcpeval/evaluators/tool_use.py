"""Evaluators of tool calls: were the expected calls made, with these arguments, in this order?"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import InputError, did_you_mean
from ..types import Score, ToolCall
from . import salesforce
from .called import READS, check_columns, made_calls, read_expected
from .matching import Expected, Judged, Matching, Terms, call_text, match

ARGS = ("exact", "subset", "superset", "ignore")
ORDERS = ("any", "strict", "lcs", "dag")
EXTRA = ("allow", "forbid")
NAMES = ("exact", "casefold", "regex")
SCORES = ("pass", "f1", "recall", "precision", "weighted")
COMPAT = ("mcpeval-salesforce",)

_SHOWN = 5  # calls that a reason names; metadata have all


@dataclass(frozen=True, repr=False)
class ToolCalls:
    """Expected calls and how they are held against those made; `tool_calls` and `tool_call` make it.

    Attributes
    ----------
    expected : tuple of Expected, or None
        None reads the column ``expected_tool_calls``.
    args, order, extra, names, score, compat, weights, thresholds, name
        As in `tool_calls`.
    columns : tuple of str
        The columns without which it says nothing, beside ``tool_calls`` or ``messages``.
    immediate : bool
        Whether it never waits: all but a callable `args`, which may.
    """

    expected: tuple[Expected, ...] | None = None
    args: str | Judged = "exact"
    order: str = "any"
    extra: str = "allow"
    names: str | re.Pattern[str] = "exact"
    score: str = "pass"
    compat: str | None = None
    weights: Mapping[str, float] | None = None
    thresholds: Mapping[str, float] | None = None
    name: str = "tool_calls"

    kind: ClassVar[str] = "tool_calls"
    reads: ClassVar[tuple[str, ...]] = READS

    def __post_init__(self) -> None:
        if inspect.iscoroutinefunction(self.args):
            raise InputError(f"{self.name}: args={self.args!r} is async; give a plain function of two dicts")
        choices = {"args": ARGS, "order": ORDERS, "extra": EXTRA, "names": NAMES, "score": SCORES}
        for option, known in choices.items():
            value = getattr(self, option)
            if option == "args" and callable(value) or option == "names" and isinstance(value, re.Pattern):
                continue
            if value not in known:
                hint = did_you_mean(value, known) + _OTHERS.get(option, "")
                raise InputError(f"{self.name}: {option}={value!r}. {hint}")
        if self.compat is not None:
            self._check_compat()
        put = self.__dict__  # the dataclass is frozen: this is how it fills itself
        put["weights"] = _numbers(self.name, "weights", self.weights, salesforce.WEIGHTS, total=1.0)
        put["thresholds"] = _numbers(self.name, "thresholds", self.thresholds, salesforce.THRESHOLDS)
        put["_terms"] = Terms(self.args, self.names)

    def _check_compat(self) -> None:
        if self.compat not in COMPAT:
            raise InputError(f"{self.name}: compat={self.compat!r}. {did_you_mean(self.compat, COMPAT)}")
        default = ToolCalls()
        for option in ("args", "order", "extra", "names", "score"):
            if getattr(self, option) != getattr(default, option):
                given = f"{option}={getattr(self, option)!r}"
                raise InputError(f"{self.name}: {given} has no say beside compat={self.compat!r}; leave it out")

    def __repr__(self) -> str:
        given = "" if self.expected is None else f"[{', '.join(call_text(e.name, e.arguments) for e in self.expected)}]"
        return f"tool_calls({given})" if self.name == "tool_calls" else self.name

    @property
    def columns(self) -> tuple[str, ...]:
        return ("expected_tool_calls",) if self.expected is None else ()

    @property
    def immediate(self) -> bool:
        return not callable(self.args)

    def check(self, columns: Iterable[str]) -> None:
        """Raise `InputError` for a frame that has not what this evaluator reads."""
        check_columns(f"evaluator {self.name!r}", columns, expected=self.expected is None)

    def evaluate(self, row: Mapping[str, Any]) -> Score | dict[str, Score]:
        """What is to be said of one row.

        Returns
        -------
        Score, or dict of Score
            Under ``compat="mcpeval-salesforce"`` two, ``strict`` and ``flexible``.

        Raises
        ------
        InputError
            A cell is no list of calls.
        """
        expected = self._expected(row)
        made = made_calls(row)
        if expected is None or made is None:
            missing = "expected_tool_calls" if expected is None else "tool_calls and no messages"
            return Score(None, f"the run has no {missing}", status="skipped")
        if self.compat:
            return self._salesforce(expected, made)
        found = match(expected, made, self._terms, self.order)
        value = self._value(found)
        if value is None:
            return Score(None, f"recall is not defined: no call was expected, {len(made)} made")
        passed = all(found.matched) and not found.broken and (self.extra == "allow" or not found.extra)
        if self.score == "pass":
            value = float(passed)
        metadata = _metadata(found)
        if not expected and self.extra == "allow":  # nothing that was done could have failed
            metadata["vacuous"] = True
        reason = self._reason(found, banned=len(expected) - len(found.wanted))
        return Score(value, reason, passed=passed, metadata=metadata)

    def _expected(self, row: Mapping[str, Any]) -> tuple[Expected, ...] | None:
        if self.expected is not None:
            return self.expected
        given = row.get("expected_tool_calls")
        return None if given is None else _read_expected(given, "expected_tool_calls", self.args, self.names)

    def _value(self, found: Matching) -> float | None:
        if self.score == "weighted":
            return found.weighted(self.weights)
        value = {"pass": 1.0, "f1": found.f1, "recall": found.recall, "precision": found.precision}[self.score]
        return None if value != value else value

    def _reason(self, found: Matching, *, banned: int) -> str:
        if not found.wanted:
            allowed = "no call expected, any but the forbidden allowed" if banned else "vacuous: no call expected"
            parts = [allowed if self.extra == "allow" else "no call expected"]
        else:
            how = {"strict": " at their places", "lcs": " in order", "dag": " in order"}.get(self.order, "")
            parts = [f"{found.hits} of {len(found.wanted)} expected calls made{how}"]
        wrong = [place for place, is_it in enumerate(found.matched) if not is_it]
        parts += _some(f"{_expected_text(found.wanted[e])}: {'; '.join(found.differences(e))}" for e in wrong)
        parts += _some(f"forbidden: {_made_text(found.made[j])}" for j in found.broken)
        if self.extra == "forbid":
            partners = set(found.partners)  # what stands for a missing call was named with it
            parts += _some(f"unexpected: {_made_text(found.made[j])}" for j in found.extra if j not in partners)
        return ". ".join(parts)

    def _salesforce(self, expected: Sequence[Expected], made: Sequence[ToolCall]) -> dict[str, Score]:
        came = [(call.name, call.arguments if isinstance(call.arguments, Mapping) else {}) for call in made]
        wanted = [(call.name, call.arguments) for call in expected]
        found = salesforce.evaluate(wanted, came, weights=self.weights, thresholds=self.thresholds)
        shared = {key: value for key, value in found.items() if key not in ("strict", "flexible")}
        scores = {}
        for kind in ("strict", "flexible"):
            part = found[kind]
            names = ("tool_name_score", "param_match_score", "order_score")
            reason = ", ".join(f"{name.removesuffix('_score')} {part[name]:.2f}" for name in names)
            value = min(1.0, part["overall_score"])
            scores[kind] = Score(value, reason, passed=part["success"], metadata={**part, **shared})
        return scores


_OTHERS = {
    "args": " A callable of (expected arguments, made arguments) will do as well.",
    "names": " A compiled pattern (re.compile) will do as well.",
}


def tool_call(name: str, /, **arguments: Any) -> ToolCalls:
    """An evaluator: was this call made, with exactly these arguments?

    It may also stand in the list that `tool_calls` takes.

    Parameters
    ----------
    name : str
        Of the tool.
    **arguments
        Of the call.

    Returns
    -------
    evaluator
        Its name in a scores frame is the call as it is written.

    Examples
    --------
    >>> tool_call("book_flight", from_city="NYC")
    book_flight(from_city='NYC')
    """
    if not isinstance(name, str) or not name:
        raise InputError(f"tool_call: name={name!r} should be the name of a tool")
    return ToolCalls((Expected(name, arguments),), name=call_text(name, arguments))


def tool_calls(
    expected: Any = None,
    *,
    args: str | Judged = "exact",
    order: str = "any",
    extra: str = "allow",
    names: str | re.Pattern[str] = "exact",
    score: str = "pass",
    compat: str | None = None,
    weights: Mapping[str, float] | None = None,
    thresholds: Mapping[str, float] | None = None,
    name: str = "tool_calls",
) -> ToolCalls:
    """An evaluator: were the expected tool calls made?

    Expected calls and calls made are matched one to one, so that as many as possible are matched.

    Parameters
    ----------
    expected : list, optional
        Dicts ``{"name", "arguments"}``, evaluators made by `tool_call`, or, with ``args="ignore"``,
        names of tools; see `mcpeval.evaluators.called` for other spellings. A dict may also have

        - ``server``: the MCP server that has to be called;
        - ``after`` (or ``depends_on``): the place, ``id`` or name of an expected call, or a list of
          those, that has to be made before; read by ``order="dag"``;
        - ``acceptable`` instead of ``arguments``: a list of values for each argument, any of which
          will do, ``""`` among them where it may be left out (BFCL);
        - ``compare_args``: the arguments that are compared, instead of all (tau2);
        - ``forbidden``: true for a call, with at least these arguments, that must not be made.

        None reads the column ``expected_tool_calls``.
    args : {"exact", "subset", "superset", "ignore"} or callable
        The arguments of the call made are the expected ones, at most these, at least these, or
        anything. A callable is given the expected and the made arguments, two dicts, and returns a
        bool, or how alike they are from 0 to 1, where 1 is a match. Values are compared as Python
        does: 1 equals 1.0 and True, "1" does not.
    order : {"any", "strict", "lcs", "dag"}
        Any; the n-th call is the n-th expected; the expected order with others between; every call
        later than those it comes ``after``. Graded scores count the calls that are in order.
    extra : {"allow", "forbid"}
        Whether calls that are none of the expected ones may be made.
    names : {"exact", "casefold", "regex"} or re.Pattern
        As they are; without case; expected names are patterns for the whole name. A compiled
        pattern says what of a name is compared: its first group, else all it matches.
    score : {"pass", "f1", "recall", "precision", "weighted"}
        1 or 0; or a share of the calls; or names, arguments and order in one number (`weights`).
        ``passed`` is the same under each.
    compat : {"mcpeval-salesforce"}, optional
        Score as that system does, place by place: gives two scores, ``strict`` and ``flexible``.
    weights : dict, optional
        Of ``name``, ``params``, ``order`` in the weighted score, together 1: 0.4, 0.4, 0.2 unless
        said.
    thresholds : dict, optional
        ``flexible_param`` (0.6 unless said), ``flexible_order`` (0.5), of `compat`.
    name : str

    Returns
    -------
    evaluator
        Reads ``tool_calls``, else ``messages`` (OpenAI, Anthropic, Gemini or MCP), and
        ``expected_tool_calls``. A row that has not what it reads is ``skipped``. Metadata:
        ``expected``, ``made``, ``matched`` (counts), ``calls`` (for each expected call its
        ``call``, the place of the one made that is it or comes closest, ``matched``,
        ``differences``), ``extra`` and ``forbidden`` (places of calls made), ``vacuous`` where nothing
        was expected and anything allowed.

    Raises
    ------
    InputError
        A keyword has an unknown value, or an expected call cannot be meant; the place is named.

    Examples
    --------
    >>> row = {"tool_calls": [{"name": "book", "arguments": {"city": "Rome"}}]}
    >>> tool_calls([{"name": "book", "arguments": {"city": "Roma"}}]).evaluate(row).reason
    "0 of 1 expected calls made. book(city='Roma'): arg 'city': expected 'Roma', got 'Rome'"
    """
    options = (args, order, extra, names, score, compat, weights, thresholds, name)
    evaluator = ToolCalls(None, *options)  # the options are checked before the calls are read with them
    return evaluator if expected is None else ToolCalls(_read_expected(expected, "expected", args, names), *options)


def assert_tool_calls(scores: Any, *, message: str = "") -> None:
    """Fail a test, saying why, unless every score of a tool-call evaluator passed.

    Parameters
    ----------
    scores : DataFrame, Score, or list of Score
        Of a frame the rows of kind ``tool_calls`` count.
    message : str
        Put before the reasons.

    Raises
    ------
    AssertionError
        A score did not pass, or could not be given, or there is none. It has a line for each such.
    InputError
        `scores` is none of these.
    """
    rows = _score_rows(scores)
    failed = [f"  {who}{reason or status}" for who, passed, reason, status in rows if passed is not True]
    if not rows or failed:
        what = f"{len(failed)} of {len(rows)} tool-call scores did not pass" if rows else "no tool-call scores"
        raise AssertionError("\n".join([*([message] if message else []), what, *failed]))


def _score_rows(scores: Any) -> list[tuple[str, Any, str, str]]:
    """Who, passed, reason and status of each score."""
    if not hasattr(scores, "columns"):
        given = [scores] if isinstance(scores, Score) else scores
        if not isinstance(given, (list, tuple)) or not all(isinstance(one, Score) for one in given):
            raise InputError(f"assert_tool_calls: scores={scores!r:.100} should be a scores frame or a list of Score")
        return [("", one.passed, one.reason, one.status) for one in given]
    from ..frames import rows_of

    found = []
    for row in rows_of(scores):
        if row.get("kind") == ToolCalls.kind:
            who = ", ".join(str(row[key]) for key in ("run_id", "evaluator") if row.get(key) is not None)
            found.append((f"{who}: ", row["passed"], row["reason"] or "", row["status"]))
    return found


# --- parts ---------------------------------------------------------------------------------------


def _read_expected(given: Any, where: str, args: Any, names: Any) -> tuple[Expected, ...]:
    return read_expected(given, where, bare_names=args == "ignore", patterns=names == "regex")


def _numbers(
    who: str, option: str, given: Any, default: Mapping[str, float], *, total: float | None = None
) -> dict[str, float]:
    if given is None:
        return dict(default)
    if not isinstance(given, Mapping):
        raise InputError(f"{who}: {option}={given!r} should be a dict with {', '.join(default)}")
    for key, value in given.items():
        if key not in default:
            raise InputError(f"{who}: {option} has {key!r}. {did_you_mean(key, default)}")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise InputError(f"{who}: {option}[{key!r}]={value!r} should be a number from 0 to 1")
    numbers = {**default, **given}
    if total is not None and abs(sum(numbers.values()) - total) > 1e-3:
        raise InputError(f"{who}: {option}={numbers} should make {total:g} together, not {sum(numbers.values()):g}")
    return numbers


def _metadata(found: Matching) -> dict[str, Any]:
    calls = [
        {"call": partner, "matched": is_it, "differences": [] if is_it else found.differences(place)}
        for place, (partner, is_it) in enumerate(zip(found.partners, found.matched))
    ]
    counts = {"expected": len(found.wanted), "made": len(found.made), "matched": found.hits}
    return {**counts, "calls": calls, "extra": found.extra, "forbidden": list(found.broken)}


def _expected_text(call: Expected) -> str:
    return call_text(call.name, call.arguments)


def _made_text(call: ToolCall) -> str:
    return call_text(call.name, call.arguments)


def _some(texts: Iterable[str]) -> list[str]:
    texts = list(texts)
    return texts if len(texts) <= _SHOWN else [*texts[:_SHOWN], f"and {len(texts) - _SHOWN} more"]
