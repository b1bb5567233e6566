"""`score`: what evaluators say of runs, one row of a frame for each run, evaluator and sample."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import pandas as pd

from ._loop import run_sync
from .caching import Cache, open_cache
from .errors import InputError, McpevalError, did_you_mean
from .evaluators.base import Context, as_evaluator, as_evaluators, evaluate_row, is_immediate, required_columns
from .frames import RUN_KEYS, plain, rows_of, scores_frame
from .progress import Progress
from .types import Run, Score, Usage

#: What an agent did itself is scored, as what it is: an answer that is not there. Whatever else ended
#: a run (its model's provider, a server, a limit on time) says nothing of the agent.
OWN_DOING = ("turn_limit", "bad_json")

Answers = list[tuple[str, Score]]


class _Job(NamedTuple):
    """Some rows to be: what one evaluator says of one run, for the `sample`-th time."""

    place: int
    evaluator: Any
    sample: int = 0


def score(
    runs: Any,
    evaluators: Any = None,
    *,
    cache: Any = None,
    concurrency: int = 16,
    budget_usd: float | None = None,
    dry_run: bool = False,
    errors: str = "keep",
    progress: bool | None = None,
    replay: bool = False,
) -> pd.DataFrame:
    """Score what agents did.

    Parameters
    ----------
    runs : DataFrame, Run, dict, or list of Run or dict
        A runs frame, or any with a column ``output`` and what the evaluators read.
    evaluators : evaluator, list of evaluators, or dict, optional
        Rules, judges, functions of a row or of columns, dicts of rules; a dict from names to those
        names them. None takes each row's own ``evaluators``; a row without is judged for
        correctness against its ``question`` (and ``reference`` where it has one).
    cache : Cache, path, None or False
        Where paid-for verdicts are kept: None is the default folder, False nowhere.
    concurrency : int
        Evaluations at the same time.
    budget_usd : float, optional
        US dollars, after which no call is made; the rows left are of status ``budget``. Calls in
        flight are set aside at the price of the dearest so far, the first of a model goes alone.
    dry_run : bool
        Call nobody, and give a frame of what would be done instead (see Returns).
    errors : {"keep", "raise"}
        Whether rows of status ``error`` or ``unparsed`` are kept or raise `McpevalError`, once
        everything else is done and in the cache.
    progress : bool, optional
        Whether to show a progress line; None shows it where somebody watches.
    replay : bool
        Answer from the cache alone.

    Returns
    -------
    DataFrame
        One row for each run, evaluator and sample, in that order, with `mcpeval.frames.SCORE_COLUMNS`
        (of the run's keys, those that `runs` has) and the index labels of `runs`. ``run_id`` is the
        frame's, else its index label as a text. A score that could not be given is NaN, with its
        ``status`` and ``reason``. ``cost_usd`` is what was paid now; ``metadata["saved_usd"]`` is
        what a cached verdict cost when it was paid. With `dry_run`, one row for each evaluator:
        ``evaluator, kind, model, rows, calls, cached_calls, prompt_tokens`` (re-asks not counted;
        tokens at four characters each).

    Raises
    ------
    InputError
        Something cannot be meant: no column ``output``, a column that an evaluator reads is not
        there, a name twice, an unknown model, a budget and a model without a known price. Nothing
        was paid.
    CacheMiss
        With `replay`, for a verdict that is not in the cache.
    McpevalError
        With ``errors="raise"``.

    Notes
    -----
    A run that ended in an error which is not the agent's own doing (its ``error_class`` is neither
    ``turn_limit`` nor ``bad_json``) and has no output is ``skipped`` by every evaluator.

    Examples
    --------
    >>> frame = pd.DataFrame({"output": ["4", "five"]})
    >>> score(frame, {"is a digit": lambda output: output.isdigit()})["score"].tolist()
    [1.0, 0.0]
    """
    _check_arguments(concurrency, budget_usd, errors)
    rows, index, names = _read_runs(runs)
    jobs = _plan(rows, names, evaluators)
    store = open_cache(cache, replay=replay) if any(not is_immediate(job.evaluator) for job in jobs) else None
    if dry_run:
        return _forecast(jobs, rows, store)
    with Progress(len(jobs), "score", progress) as line:
        found = _answer(jobs, rows, store, line, concurrency, _Budget(budget_usd))
    scored = [
        (job.place, _row(rows[job.place], job, name, answer, took))
        for job, (answers, took) in zip(jobs, found, strict=True)
        for name, answer in answers
    ]
    if errors == "raise":
        _raise_first([row for _, row in scored])
    return scores_frame([row for _, row in scored], keys=names, index=index.take([place for place, _ in scored]))


# --- what is meant ------------------------------------------------------------------------------


def _check_arguments(concurrency: Any, budget_usd: Any, errors: Any) -> None:
    if not isinstance(concurrency, int) or isinstance(concurrency, bool) or concurrency < 1:
        raise InputError(f"score: concurrency={concurrency!r} should be a whole number, at least 1")
    is_number = isinstance(budget_usd, (int, float)) and not isinstance(budget_usd, bool)
    if budget_usd is not None and not (is_number and budget_usd >= 0):
        raise InputError(f"score: budget_usd={budget_usd!r} should be dollars, 0 or more, or None")
    if errors not in ("keep", "raise"):
        raise InputError(f"score: errors={errors!r}. {did_you_mean(errors, ('keep', 'raise'))}")


def _read_runs(runs: Any) -> tuple[list[dict[str, Any]], pd.Index, list[str]]:
    """The rows, each with a ``run_id``; the index labels; the names of the columns."""
    if isinstance(runs, pd.DataFrame):
        names = [str(name) for name in runs.columns]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise InputError(f"score: runs has the column {repeated[0]!r} {names.count(repeated[0])} times")
        rows, index = rows_of(runs), runs.index
    else:
        given = [runs] if isinstance(runs, (Run, Mapping)) else runs
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise InputError(f"score: runs={runs!r:.100} should be a frame with a column 'output', or a list of Run")
        rows = [_read_row(run, place) for place, run in enumerate(given)]
        names, index = list(dict.fromkeys(name for row in rows for name in row)), pd.RangeIndex(len(rows))
    if "output" not in names and (rows or isinstance(runs, pd.DataFrame)):
        raise InputError(f"score: runs has no column 'output', which is scored. {did_you_mean('output', names)}")
    for label, row in zip(index.tolist(), rows, strict=True):
        if row.get("run_id") is None:
            row["run_id"] = str(label)
    _check_run_ids(rows, "run_id" in names)
    return rows, index, list(dict.fromkeys(["run_id", *names]))


def _read_row(run: Any, place: int) -> dict[str, Any]:
    if isinstance(run, Run):
        return run.to_dict()
    if not isinstance(run, Mapping):
        raise InputError(f"score: runs[{place}] is {run!r:.100}; expected a Run or a dict with 'output'")
    if "output" not in run:
        raise InputError(f"score: runs[{place}] has no 'output'. {did_you_mean('output', map(str, run))}")
    return {str(key): plain(value) for key, value in run.items()}


def _check_run_ids(rows: Sequence[Mapping[str, Any]], named: bool) -> None:
    seen: set[Any] = set()
    for row in rows:
        if row["run_id"] in seen:
            where = "run_id" if named else "index label"
            cure = "give each run its own" if named else "call reset_index(drop=True) first"
            raise InputError(f"score: the {where} {row['run_id']!r} stands twice in runs; {cure}")
        seen.add(row["run_id"])


def _plan(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], evaluators: Any) -> list[_Job]:
    """Every job, in the order of the frame to be: run, evaluator, sample."""
    if evaluators is None:
        each = _own_evaluators(rows)
    else:
        each = [as_evaluators(evaluators)] * len(rows)
    for evaluator in {id(e): e for own in each for e in own}.values():
        _check_columns(evaluator, columns)
    return [
        _Job(place, evaluator, sample)
        for place, own in enumerate(each)
        for evaluator in own
        for sample in range(getattr(evaluator, "samples", 1))
    ]


def _own_evaluators(rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    from .evaluators.rules import rules_of

    given = []
    for row in rows:
        own = row.get("evaluators") or ()
        if isinstance(own, (str, Mapping)) or not isinstance(own, Iterable):
            raise InputError(f"score: run {row['run_id']!r} has evaluators={own!r:.100}; expected a list of them")
        given.append(list(own))
    configs = [one for own in given for one in own if isinstance(one, Mapping)]
    # All at once, so that functions which are not registered are named all together.
    rules_of({json.dumps(one, sort_keys=True, default=str): one for one in configs}.values())
    judge: tuple[Any, ...] = ()
    if not all(given):
        from .evaluators.judges import Judge

        judge = (Judge(),)
    return [_named_apart([as_evaluator(one) for one in own]) if own else judge for own in given]


def _named_apart(evaluators: Sequence[Any]) -> tuple[Any, ...]:
    """A task file may ask the same twice; the second is then named so."""
    seen: dict[str, int] = {}
    named = []
    for evaluator in evaluators:
        seen[evaluator.name] = n = seen.get(evaluator.name, 0) + 1
        named.append(evaluator if n == 1 else as_evaluator(evaluator, name=f"{evaluator.name} ({n})"))
    return tuple(named)


def _check_columns(evaluator: Any, columns: Iterable[str]) -> None:
    if callable(getattr(evaluator, "check", None)):
        evaluator.check(columns)
        return
    for name in required_columns(evaluator):
        if name not in columns:
            near = did_you_mean(name, columns)
            raise InputError(f"evaluator {evaluator.name!r} reads the column {name!r}, which is not there. {near}")


def _check_models(evaluators: Sequence[Any], budget_usd: float | None, replay: bool) -> None:
    """Raise for a model that cannot be asked, of those that will be."""
    for judge in {id(e): e for e in evaluators if getattr(e, "models", ())}.values():
        from . import llm

        if not replay:
            llm.check_models(judge.models, **getattr(judge, "params", {}))
        for model in judge.models if budget_usd is not None and not replay else ():
            if not llm.price_known(model):
                who = f"{model!r} (evaluator {judge.name!r})"
                raise InputError(f"score: budget_usd={budget_usd} cannot be kept: the price of {who} is not known")


# --- the work -----------------------------------------------------------------------------------


def _answer(
    jobs: Sequence[_Job],
    rows: Sequence[Mapping[str, Any]],
    store: Cache | None,
    line: Progress,
    concurrency: int,
    budget: _Budget,
) -> list[tuple[Answers, float]]:
    """What each job gives, and the seconds it took; first what nobody has to be waited for."""
    found: list[Any] = [None] * len(jobs)

    def finish(i: int, answers: Answers, took: float = 0.0) -> None:
        found[i] = answers, took
        for _, one in answers:
            usage = one.usage or Usage()
            line.advance(failed=one.status in ("error", "unparsed"), cached=usage.cached, cost_usd=usage.cost_usd)

    waiting = []
    for i, job in enumerate(jobs):
        start = time.perf_counter()
        if (answers := _at_once(job, rows[job.place], store)) is not None:
            finish(i, answers, time.perf_counter() - start)
        else:
            waiting.append((i, job))
    if waiting:
        _check_models([job.evaluator for _, job in waiting], budget.limit, store is not None and store.replay)
        run_sync(_work(waiting, rows, Context(cache=store), concurrency, budget, finish))
    return found


def _at_once(job: _Job, row: Mapping[str, Any], store: Cache | None) -> Answers | None:
    """The answer of a rule, a verdict in the cache, or why the run is not scored; None where one has to wait."""
    if (known := _known(job, row, store)) is not None:
        return [(job.evaluator.name, known)]
    return _without_waiting(evaluate_row(job.evaluator, row)) if is_immediate(job.evaluator) else None


def _known(job: _Job, row: Mapping[str, Any], store: Cache | None) -> Score | None:
    """What can be said without evaluating anything."""
    if (why := _not_the_agents_doing(row)) is not None:
        return Score(None, why, status="skipped")
    peek = getattr(job.evaluator, "peek", None)
    return None if peek is None else peek(row, store, sample=job.sample)


def _not_the_agents_doing(row: Mapping[str, Any]) -> str | None:
    """Why a run says nothing of its agent; None where it does."""
    if row.get("status") != "error" or row.get("output") is not None or row.get("error_class") in OWN_DOING:
        return None
    kind, error = row.get("error_class") or "error", row.get("error") or "no reason given"
    return f"the run did not come to an answer ({kind}): {error}"


def _without_waiting(coroutine: Any) -> Answers:
    """What a coroutine that never waits returns; no loop is needed for it."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("an immediate evaluator waited")


class _Budget:
    """What was spent, and what is set aside for the calls in flight."""

    def __init__(self, limit: float | None) -> None:
        self.limit, self.spent, self.reserved = limit, 0.0, 0.0
        self._dearest: dict[str, float] = {}
        self._first: dict[str, asyncio.Lock] = {}

    @property
    def over(self) -> bool:
        return self.limit is not None and self.spent + self.reserved >= self.limit

    async def spend(self, what: str, call: Callable[[], Any]) -> Answers | None:
        """Make the call, unless the budget is used up: then None.

        Until one call of `what` is paid nobody knows its price, and the others wait for it.
        """
        if self.limit is None:
            return await call()
        if what not in self._dearest:
            async with self._first.setdefault(what, asyncio.Lock()):
                if what not in self._dearest:
                    return await self._pay(what, call)
        return await self._pay(what, call)

    async def _pay(self, what: str, call: Callable[[], Any]) -> Answers | None:
        if self.over:
            return None
        aside = self._dearest.get(what, 0.0)
        self.reserved += aside
        try:
            answers = await call()
        finally:
            self.reserved -= aside
        for _, answer in answers:
            usage = answer.usage or Usage()
            # An answer of unknown cost could have been any: no other is paid for after it.
            self.spent += float("inf") if usage.cost_usd is None else usage.cost_usd
            if usage.calls > usage.cached_calls:
                self._dearest[what] = max(usage.cost_usd or 0.0, self._dearest.get(what, 0.0))
        return answers


@dataclass(frozen=True)
class _Draw:
    """An evaluator of which this is the `sample`-th answer."""

    evaluator: Any
    sample: int

    @property
    def name(self) -> str:
        return self.evaluator.name

    async def evaluate(self, row: Mapping[str, Any], context: Context) -> Score:
        return await self.evaluator.evaluate(row, context, sample=self.sample)


async def _work(
    jobs: Sequence[tuple[int, _Job]],
    rows: Sequence[Mapping[str, Any]],
    context: Context,
    concurrency: int,
    budget: _Budget,
    finish: Callable[..., None],
) -> None:
    queue = iter(jobs)

    async def worker() -> None:
        for i, job in queue:
            evaluator = _Draw(job.evaluator, job.sample) if hasattr(job.evaluator, "samples") else job.evaluator
            call = partial(evaluate_row, evaluator, rows[job.place], context)
            start = time.perf_counter()
            if models := getattr(job.evaluator, "models", ()):
                answers = await budget.spend(",".join(models), call)
            else:
                answers = await call()
            if answers is None:
                why = f"budget_usd={budget.limit} was spent before this row's turn"
                answers = [(evaluator.name, Score(None, why, status="budget"))]
            finish(i, answers, time.perf_counter() - start)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(jobs))):
                group.create_task(worker())
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


def _forecast(jobs: Sequence[_Job], rows: Sequence[Mapping[str, Any]], store: Cache | None) -> pd.DataFrame:
    """What `score` would do, one row for each evaluator."""
    lines: dict[str, dict[str, Any]] = {}
    for job in jobs:
        evaluator, row, models = job.evaluator, rows[job.place], getattr(job.evaluator, "models", ())
        who = {"evaluator": evaluator.name, "kind": _kind(evaluator), "model": ", ".join(models) or None}
        line = lines.setdefault(evaluator.name, {**who, "rows": 0, "calls": 0, "cached_calls": 0, "prompt_tokens": 0})
        line["rows"] += 1
        known = _known(job, row, store)
        if models and known is None:
            line["calls"] += 1
            line["prompt_tokens"] += sum(len(message["content"]) for message in evaluator.render(row)) // 4
        elif models:
            line["cached_calls"] += known.usage is not None
    columns = ["evaluator", "kind", "model", "rows", "calls", "cached_calls", "prompt_tokens"]
    return pd.DataFrame(list(lines.values()), columns=columns)


# --- the row ------------------------------------------------------------------------------------


def _row(run: Mapping[str, Any], job: _Job, name: str, answer: Score, took: float) -> dict[str, Any]:
    evaluator, usage = job.evaluator, answer.usage or Usage(seconds=took)
    # A rule's metadata are parts of the output's own JSON; walking through them costs more than the rule.
    metadata = dict(answer.metadata) if not answer.metadata or is_immediate(evaluator) else _json(answer.metadata)
    if usage.cached_calls:
        metadata["saved_usd"] = usage.saved_usd
    return {
        **{key: run[key] for key in RUN_KEYS if key in run},
        "evaluator": name,
        "kind": _kind(evaluator),
        "score": answer.score,
        "label": _json(answer.label),
        "passed": answer.passed,
        "reason": answer.reason,
        "status": answer.status,
        "error": answer.error,
        "judge_model": metadata.pop("judge_model", None),
        "fingerprint": getattr(evaluator, "fingerprint", None),
        "sample": job.sample,
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "cost_usd": usage.cost_usd,
        "seconds": usage.seconds,
        "cached": usage.cached,
        "metadata": metadata,
    }


def _kind(evaluator: Any) -> str:
    return getattr(evaluator, "kind", "function")


def _json(value: Any) -> Any:
    """`value` as JSON holds it: a numpy number is a number, what JSON cannot hold is its text."""
    if value is None or isinstance(value, (bool, str)):
        return value
    return json.loads(json.dumps(plain(value), default=str))


def _raise_first(rows: Sequence[Mapping[str, Any]]) -> None:
    failed = [row for row in rows if row["status"] in ("error", "unparsed")]
    if failed:
        first = failed[0]
        raise McpevalError(
            f"score: {len(failed)} of {len(rows)} scores failed. The first: evaluator {first['evaluator']!r} on run "
            f"{first['run_id']!r}: {first['error'] or first['reason']}"
        )
