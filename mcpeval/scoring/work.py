"""The jobs of one scoring, done: at once where nobody has to be waited for, else side by side on the loop."""

from __future__ import annotations

import asyncio
import gc
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from .._loop import run_sync
from ..caching import Cache
from ..errors import InputError
from ..evaluators.base import Context, evaluate_now, is_immediate
from ..evaluators.composed import OPPONENT, Answers, Forecast, answers_of, forecast, leaves, peeked, total_usage
from ..evaluators.rules import Rule
from ..progress import Progress
from ..servers import Server
from ..types import OWN_DOING, Score, Usage
from .cells import Line, Verdicts, line_of
from .inputs import Jobs, Missing, Runs
from .pairs import mirrored, without_opponent
from .tools import Tools

#: Statuses of scores that should have been there.
FAILED = ("error", "unparsed")

_NOTHING = Usage()


class Work:
    """The jobs of one scoring, and what comes of them.

    Parameters
    ----------
    runs : Runs
    evaluators, jobs, read
        As from `inputs.plan`.
    store : Cache or None

    Attributes
    ----------
    lines : list of Line
        The cells of scores, as they come.
    verdicts : Verdicts
        What rules say, column by column.
    """

    def __init__(
        self, runs: Runs, evaluators: Sequence[Any], jobs: Jobs, read: Collection[str], store: Cache | None
    ) -> None:
        self.runs, self.evaluators, self.jobs, self.store = runs, evaluators, jobs, store
        self.lines: list[Line] = []
        self.verdicts = Verdicts([], [], [], [], [])
        self._read = read
        self._immediate = [is_immediate(evaluator) for evaluator in evaluators]
        self._left_out = _not_the_agents_doing(runs)
        self._mirrors = frozenset(jobs.mirror.values())

    @property
    def size(self) -> int:
        """How many jobs are done."""
        return len(self.jobs.run) - len(self._mirrors)

    def planned(self) -> dict[str, int]:
        """How many jobs of each evaluator are done."""
        done = (who for i, who in enumerate(self.jobs.evaluator) if i not in self._mirrors)
        return {self.evaluators[who].name: n for who, n in Counter(done).items()}

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The runs as evaluators are given them."""
        return self.runs.rows(self._read)

    def row(self, i: int) -> dict[str, Any]:
        """What the evaluator of a job is given: a run, or two."""
        row, other = self.rows[self.jobs.run[i]], self.jobs.against.get(i)
        return row if other is None else {**row, OPPONENT: self.rows[other]}

    def forecast_of(self, i: int) -> Forecast:
        """What a job would take; nothing for one that is not done."""
        if i in self._mirrors or self._skipped(i) is not None:
            return Forecast()
        return forecast(self.evaluators[self.jobs.evaluator[i]], self.row(i), self.store, self.jobs.sample[i])

    def _skipped(self, i: int) -> Score | None:
        """Why the run of a job is not scored, or not compared; None where it is."""
        place, other = self.jobs.run[i], self.jobs.against.get(i)
        if place in self._left_out:
            return self._left_out[place]
        if isinstance(other, Missing):
            return without_opponent(other)
        if other in self._left_out:
            lost = self._left_out[other]
            return replace(lost, reason=f"of the run to compare it with: {lost.reason}")
        return None

    def _known(self, i: int) -> Answers | None:
        """What can be said of a job without work: why the run is not scored, or a verdict in the cache."""
        evaluator = self.evaluators[self.jobs.evaluator[i]]
        if (skipped := self._skipped(i)) is not None:
            return [(evaluator.name, skipped)]
        if not hasattr(evaluator, "peek"):
            return None
        return peeked(evaluator, self.row(i), self.store, self.jobs.sample[i])

    def at_once(self, progress: Progress) -> list[int]:
        """Do what nobody has to be waited for; the places of the jobs that are left."""
        left = []
        for i in self._rules(progress):
            if i in self._mirrors:
                continue
            start = time.perf_counter()
            if (answers := self._answers_now(i)) is None:
                left.append(i)
            else:
                self._keep(i, answers, time.perf_counter() - start, progress)
        return left

    def _rules(self, progress: Progress) -> list[int]:
        """Do the jobs of rules; the places of all others, and of rules whose status is not ``ok``.

        A verdict costs less than what stands around it elsewhere, so here as little does as can be.
        """
        rules = [e.verdict if isinstance(e, Rule) and e.immediate else None for e in self.evaluators]
        outputs, left_out, shown = self.runs.column("output"), self._left_out, progress.shown
        jobs, verdicts, reasons, seconds, metadata = self.verdicts
        clock = time.perf_counter
        others, then = [], clock()
        for i, (place, who) in enumerate(zip(self.jobs.run, self.jobs.evaluator)):
            verdict = rules[who]
            said = None if verdict is None or place in left_out else verdict(outputs[place])
            now = clock()
            if type(said) is tuple:
                jobs.append(i)
                verdicts.append(said[0])
                reasons.append(said[1])
                seconds.append(now - then)
                metadata.append(said[2])
                if shown:
                    progress.advance()
            else:
                others.append(i)
            then = now
        if progress.recorded and not shown:
            for who, n in Counter(self.jobs.evaluator[i] for i in jobs).items():
                progress.advance(n, part=self.evaluators[who].name)
        return others

    def _answers_now(self, i: int) -> Answers | None:
        place, who = self.jobs.run[i], self.jobs.evaluator[i]
        if self._immediate[who] and place not in self._left_out:
            return evaluate_now(self.evaluators[who], self.rows[place])
        return self._known(i)

    def wait(
        self, left: Sequence[int], servers: Mapping[str, Server], concurrency: int, budget: Budget, progress: Progress
    ) -> None:
        """Do what is left."""
        self._check_models({self.jobs.evaluator[i] for i in left}, budget.limit)
        run_sync(self._side_by_side(left, servers, concurrency, budget, progress))

    def _keep(self, i: int, answers: Answers, took: float, progress: Progress) -> None:
        shared = self._immediate[self.jobs.evaluator[i]]
        for name, answer in answers:
            self.lines.append(line_of(i, name, answer, took, shared=shared))
        if i in self.jobs.mirror:
            for name, answer in answers:
                self.lines.append(line_of(self.jobs.mirror[i], name, mirrored(answer), 0.0, shared=False))
        usage = total_usage(answers) or _NOTHING
        failed = [answer for _, answer in answers if answer.status in FAILED]
        evaluator = self.evaluators[self.jobs.evaluator[i]].name
        error = f"{evaluator} on run {self.runs.run_ids[self.jobs.run[i]]}: {failed[0].error}" if failed else None
        told = {"cost_usd": usage.cost_usd, "part": evaluator, "error": error}
        progress.advance(failed=bool(failed), cached=usage.cached, **told)

    def _check_models(self, asked: set[int], budget_usd: float | None) -> None:
        """Raise for a model that cannot be asked, of those that will be."""
        if self.store is not None and self.store.replay:
            return
        for judge in (leaf for who in sorted(asked) for leaf in leaves(self.evaluators[who])):
            if not getattr(judge, "models", ()):
                continue
            from .. import llm

            llm.check_models(judge.models, **getattr(judge, "params", {}))
            for model in judge.models if budget_usd is not None else ():
                if not llm.price_known(model):
                    who = f"{model!r} (evaluator {judge.name!r})"
                    raise InputError(f"score: budget_usd={budget_usd} cannot be kept: the price of {who} is not known")

    async def _side_by_side(
        self, left: Sequence[int], servers: Mapping[str, Server], concurrency: int, budget: Budget, progress: Progress
    ) -> None:
        queue = iter(left)

        async def worker(context: Context) -> None:
            for i in queue:
                start = time.perf_counter()
                answers = await self._answer(i, context, budget)
                self._keep(i, answers, time.perf_counter() - start, progress)

        try:
            async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
                context = Context(cache=self.store)
                if servers:
                    context = Context(cache=self.store, call_tool=Tools(servers, stack).call_tool)
                for _ in range(min(concurrency, len(left))):
                    group.create_task(worker(context))
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _answer(self, i: int, context: Context, budget: Budget) -> Answers:
        evaluator = self.evaluators[self.jobs.evaluator[i]]
        call = partial(answers_of, evaluator, self.row(i), context, self.jobs.sample[i])
        models = getattr(evaluator, "models", ())
        answers = await (budget.spend(",".join(models), call) if models else call())
        if answers is None:
            why = f"budget_usd={budget.limit} was spent before this row's turn"
            return [(evaluator.name, Score(None, why, status="budget"))]
        return answers


@contextmanager
def collector_paused() -> Iterator[None]:
    """No garbage collection: among rows that all stay it finds nothing, and takes longer each time.

    What was made meanwhile is then of the oldest generation, as it would be after all those
    collections; unless somebody keeps objects frozen, which would thaw.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _not_the_agents_doing(runs: Runs) -> dict[int, Score]:
    """The scores of runs that say nothing of their agent, by their places."""
    found = {}
    if "status" not in runs.names:
        return found
    for place, (status, output, kind, error) in enumerate(
        zip(*map(runs.column, ("status", "output", "error_class", "error")))
    ):
        if status == "error" and output is None and kind not in OWN_DOING:
            why = f"the run did not come to an answer ({kind or 'error'}): {error or 'no reason given'}"
            found[place] = Score(None, why, status="skipped", metadata={"error_class": kind or "error"})
    return found


class Budget:
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
        usage = total_usage(answers) or _NOTHING
        # An answer of unknown cost could have been any: no other is paid for after it.
        self.spent += float("inf") if usage.cost_usd is None else usage.cost_usd
        if usage.calls > usage.cached_calls:
            self._dearest[what] = max(usage.cost_usd or 0.0, self._dearest.get(what, 0.0))
        return answers
