"""`evaluator_optimizer`: one agent answers, another rates the answer, until it is good enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import InputError, did_you_mean
from ...types import Task
from ..base import question_of
from ..composed import Workflow, answer, consult, fill
from ..functions import as_agent
from ..session import Session
from .making import check_count, one_agent

SCALE = ("poor", "fair", "good", "excellent")
RATE = """\
Rate the answer to the request below as one of {scale} (from the worst to the best), and say what would make it \
better.

Request:
{question}

Answer:
{answer}"""
REFINE = """\
{question}

This answer was rated {rating}:
{answer}

What would make it better:
{feedback}

Give a better answer."""
RATING = {"rating": "<RATING>", "feedback": "<WHAT WOULD MAKE IT BETTER>"}


@dataclass(frozen=True, repr=False)
class EvaluatorOptimizer(Workflow):
    """An agent that answers, and one that rates; `evaluator_optimizer` makes one."""

    evaluator: Any = field(kw_only=True)
    scale: tuple[str, ...] = field(kw_only=True)
    enough: str = field(kw_only=True)
    max_rounds: int = field(kw_only=True)
    prompts = (RATE, REFINE, str(RATING))

    async def work(self, task: Task, session: Session) -> str:
        [optimizer] = self.agents
        best, best_text = -1, ""
        question = task.question
        for number in range(self.max_rounds):
            text = await answer(optimizer, session, question, task.output_format)
            asked = fill(RATE, scale=", ".join(self.scale), question=question_of(task), answer=text)
            rating, feedback = await consult(self.evaluator, session, asked, RATING, self._read)
            if rating >= best:  # of two that are as good, the one that the feedback has gone into
                best, best_text = rating, text
            # Nothing is refined that would not be rated.
            if rating >= self.scale.index(self.enough) or number == self.max_rounds - 1:
                break
            question = fill(REFINE, question=task.question, rating=self.scale[rating], answer=text, feedback=feedback)
        return best_text

    def _read(self, found: Mapping[str, Any]) -> tuple[tuple[int, str], str]:
        given = str(found.get("rating")).strip().casefold()
        ranks = {word.casefold(): rank for rank, word in enumerate(self.scale)}
        if given not in ranks:
            return (-1, ""), f"its rating is none of {', '.join(self.scale)}"
        return (ranks[given], str(found.get("feedback") or "")), ""


def evaluator_optimizer(
    optimizer: Any,
    evaluator: Any = None,
    *,
    scale: Sequence[str] = SCALE,
    enough: str = "good",
    max_rounds: int = 3,
    name: str = "evaluator_optimizer",
    **params: Any,
) -> EvaluatorOptimizer:
    """A workflow in which one agent answers and another rates, until an answer is good enough.

    It ends with the first answer that is rated `enough`, or after `max_rounds` answers with the one
    that was rated best.  Every answer is rated.

    Parameters
    ----------
    optimizer : agent
    evaluator : agent or str, optional
        A model's name stands for an agent that asks it once; None for the default model.
    scale : sequence of str
        The ratings, from the worst to the best.
    enough : str
        The rating that is good enough.
    max_rounds : int
        Answers at most.
    name : str
    **params
        Of the evaluator's model, where that is what was given.
    """
    check_count("evaluator_optimizer", "max_rounds", max_rounds)
    words = (scale,) if isinstance(scale, str) else tuple(scale)
    if len({str(word).casefold() for word in words}) < 2 or not all(isinstance(word, str) for word in words):
        raise InputError(f"evaluator_optimizer: scale={scale!r:.200} should be at least two different ratings")
    match = [word for word in words if word.casefold() == str(enough).casefold()]
    if not match:
        raise InputError(f"evaluator_optimizer: enough={enough!r} is not on the scale. {did_you_mean(enough, words)}")
    by = one_agent(evaluator, f"{name}-evaluator", "evaluator_optimizer", params)
    about = {"evaluator": by, "scale": words, "enough": match[0], "max_rounds": max_rounds}
    return EvaluatorOptimizer(name, (as_agent(optimizer),), **about)
