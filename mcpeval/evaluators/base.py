"""What an evaluator is, what it may answer, and the one place that isolates its crash.

An evaluator is a value with a ``name`` and a method ``evaluate(row)`` (or ``evaluate(row,
context)``), plain or async; `adapting.as_evaluator` makes one of a function, a rule's dict or an object.
`to_scores` turns every loose answer into `Score` objects; `evaluate_row` calls an evaluator on one
row and never raises for what the evaluator did (but for `CacheMiss`, which ends a replay).
"""

from __future__ import annotations

import asyncio
import inspect
import math
import numbers
import os
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

from ..errors import CacheMiss, InputError, McpevalError, ServerError
from ..types import Score

_SCORE_FIELDS = frozenset(f.name for f in fields(Score))

#: What evaluators with a fingerprint that scored in this process are made of, by fingerprint. A manifest
#: finds their texts here: what a frame has in its ``attrs`` is lost in most of what pandas does with it.
TEXTS: dict[str, dict[str, Any]] = {}

#: Likewise what the runs that were scored in this process say of how they came about, by ``run_id``.
ORIGINS: dict[Any, Mapping[str, Any]] = {}


async def _no_servers(server: str, tool: str, arguments: dict[str, Any]) -> Any:
    raise InputError(f"the tool {tool!r} of the server {server!r} is called, but score() was given no servers=")


@dataclass(frozen=True)
class Context:
    """What an evaluator may use besides its row.

    Attributes
    ----------
    cache : mcpeval.Cache or None
        Where paid-for answers are kept; None keeps nothing.
    call_tool : callable
        ``await call_tool(server, tool, arguments)`` gives a `ToolCall`.
    calls : list of dict
        The tool calls made through a `recording` context, in order.
    env : mapping
        The variables of the rule that calls (`Rule.env`), where it has some.
    memo : dict
        What evaluations of one scoring share: an answer that is asked for once.
    """

    cache: Any = None
    call_tool: Callable[[str, str, dict[str, Any]], Awaitable[Any]] = _no_servers
    calls: list[dict[str, Any]] = field(default_factory=list)
    env: Mapping[str, str] = field(default_factory=dict)
    memo: dict[Any, Any] = field(default_factory=dict)

    def get_env(self, name: str, default: str = "") -> str:
        """A variable of `env`, else of the environment, else `default`."""
        return self.env.get(name, os.environ.get(name, default))

    def recording(self, env: Mapping[str, str] | None = None) -> Context:
        """A context like this one, with a rule's `env`, whose tool calls are kept in its own `calls`.

        A call that the tool or its server failed raises `ServerError`: an evaluator that goes on
        with an error text would blame the agent.
        """
        calls: list[dict[str, Any]] = []

        async def call_tool(server: str, tool: str, arguments: dict[str, Any] | None = None) -> Any:
            call = await self.call_tool(server, tool, arguments or {})
            calls.append(call.to_dict())
            if call.is_error:
                raise ServerError(f"{tool!r} of {server!r} failed: {call.error or call.result!r:.500}", server=server)
            return call

        return replace(self, call_tool=call_tool, calls=calls, env=dict(env or {}))


def required_columns(evaluator: Any) -> tuple[str, ...]:
    """The columns that an evaluator cannot do without: its ``columns``, else none are known."""
    return tuple(getattr(evaluator, "columns", ()))


def columns_read(evaluator: Any) -> tuple[str, ...] | None:
    """The only columns that an evaluator looks at: its ``reads``; None where that may be any."""
    return getattr(evaluator, "reads", None)


def is_immediate(evaluator: Any) -> bool:
    """Whether an evaluator answers at once: it never waits, and needs neither a context nor a thread.

    `evaluate_now` calls it; a task for each of many such calls would cost more than the answer.
    """
    return getattr(evaluator, "immediate", False)


def to_score(answer: Any) -> Score:
    """One loose answer as a `Score`.

    Parameters
    ----------
    answer : bool, number, (bool or number, str), Score, mapping with ``score``, or None
        None, NaN and `pandas.NA` mean that there is nothing to say: ``skipped``. numpy's bools and
        numbers are taken as Python's.

    Raises
    ------
    InputError
        Anything else, or a number outside [0, 1].
    """
    if isinstance(answer, Score):
        return answer
    if isinstance(answer, bool):
        return Score(float(answer), label=answer)
    if answer is None or type(answer).__name__ in ("NAType", "NaTType"):
        return Score(None)
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], str | None):
        return _with_reason(to_score(answer[0]), answer[1] or "")
    if isinstance(answer, Mapping) and "score" in answer and answer.keys() <= _SCORE_FIELDS:
        return Score.from_dict(answer)
    if getattr(answer, "ndim", None) == 0 and callable(getattr(answer, "item", None)):
        return to_score(answer.item())
    if isinstance(answer, numbers.Number) and not isinstance(answer, complex):
        number = float(answer)  # type: ignore[arg-type]
        if math.isnan(number) or 0.0 <= number <= 1.0:
            return Score(number)
        raise InputError(f"score={answer!r} should be a number from 0 to 1, or None")
    raise InputError(
        f"returned {answer!r:.200} ({type(answer).__name__}); expected a bool, a number from 0 to 1, "
        "(score, reason), a Score, a mapping of names to those, or None"
    )


def _with_reason(score: Score, reason: str) -> Score:
    return Score.from_dict({**{f: getattr(score, f) for f in _SCORE_FIELDS - {"usage"}}, "reason": reason})


def to_scores(answer: Any, name: str) -> list[tuple[str, Score]]:
    """The named scores of one answer: a mapping of names gives ``name.key`` for each, ``name`` for the key "".

    A mapping whose keys are fields of `Score`, ``score`` among them, is one score.

    Raises
    ------
    InputError
        As `to_score`; the message begins with the evaluator's name.
    """
    if isinstance(answer, Score):
        return [(name, answer)]
    try:
        if isinstance(answer, Mapping) and not ("score" in answer and answer.keys() <= _SCORE_FIELDS):
            return [(f"{name}.{key}" if key != "" else name, to_score(value)) for key, value in answer.items()]
        return [(name, to_score(answer))]
    except InputError as error:
        raise InputError(f"evaluator {name!r}: {error}") from error


def failed(error: BaseException) -> Score:
    """The score of what could not be scored: no number, the reason, the traceback in metadata."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    trace = "".join(traceback.format_exception(error))
    return Score(
        None, text, status="error", error=text, usage=getattr(error, "usage", None), metadata={"traceback": trace}
    )


def comes_from_a_service(error: BaseException) -> bool:
    """Whether a connection, a service or the environment is behind an error, itself or as its cause."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, (McpevalError, ConnectionError, TimeoutError)):
            return True
        if isinstance(seen, OSError) and type(seen).__module__ != "builtins":  # that of an HTTP library
            return True
        if isinstance(seen, KeyError) and _raised_in(seen) is type(os.environ).__getitem__.__code__:
            return True
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    return False


def _raised_in(error: BaseException) -> Any:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace and trace.tb_frame.f_code


async def evaluate_row(
    evaluator: Any, row: Mapping[str, Any], context: Context | None = None, *, isolate: bool = True
) -> list[tuple[str, Score]]:
    """What one evaluator says of one row, as named scores.

    Parameters
    ----------
    evaluator : evaluator
        From `adapting.as_evaluator`.
    row : mapping
        Column name to plain Python value (see `frames.rows_of`). The evaluator gets a copy.
    context : Context, optional
    isolate : bool
        Whether an exception of the evaluator becomes a score of status ``error``. False raises it;
        a `CacheMiss` is always raised, since a replay without all answers is none.

    Notes
    -----
    An async ``evaluate`` runs on the running loop, a plain one in a worker thread, so that a
    blocking call in it holds up nothing; an immediate one is called as `evaluate_now` does.
    """
    if is_immediate(evaluator):
        return evaluate_now(evaluator, row, isolate=isolate)
    try:
        return to_scores(await _answer(evaluator, row, context or Context()), evaluator.name)
    except (Exception, SystemExit) as error:  # as in `evaluate_now`; some functions end with sys.exit(1)
        return _isolated(evaluator, error, isolate)


def evaluate_now(evaluator: Any, row: Mapping[str, Any], *, isolate: bool = True) -> list[tuple[str, Score]]:
    """`evaluate_row` of an immediate evaluator (`is_immediate`); it gets the row itself."""
    try:
        return to_scores(evaluator.evaluate(row), evaluator.name)
    except Exception as error:  # here and above an evaluator's crash becomes its row's status
        return _isolated(evaluator, error, isolate)


def _isolated(evaluator: Any, error: BaseException, isolate: bool) -> list[tuple[str, Score]]:
    if not isolate or isinstance(error, CacheMiss):
        raise error
    return [(evaluator.name, failed(error))]


async def _answer(evaluator: Any, row: Mapping[str, Any], context: Context) -> Any:
    method = getattr(evaluator, "evaluate_async", None) or evaluator.evaluate
    takes_context = _takes_context(getattr(method, "__func__", method))
    return await call_apart(method, dict(row), *((context,) if takes_context else ()))


async def call_apart(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call an async function on the running loop and a plain one in a worker thread."""
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    answer, error = await asyncio.to_thread(_outcome, function, args, kwargs)
    if error is not None:
        raise error
    return await answer if inspect.isawaitable(answer) else answer


def _outcome(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """The answer and None, or None and what was raised.

    A future is not given it: it hangs on a StopIteration, drops the traceback of a TimeoutError,
    and takes another pool's CancelledError for its own.
    """
    try:
        return function(*args, **kwargs), None
    except Exception as error:  # handed over to the loop's thread, where it is raised again
        return None, error


@lru_cache(maxsize=1024)
def _takes_context(function: Callable[..., Any]) -> bool:
    return "context" in inspect.signature(function).parameters
