"""`chain`: one agent after the other; `parallel`: all at once, and one that makes one answer of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...types import Task
from ..composed import Workflow, answer, answers, fill, told
from ..session import Session
from .making import agents_of, one_agent

COMBINE = """\
Several agents have worked on the request below. Make the one best answer of theirs.

Request:
{question}

{answers}"""
ANSWER_OF = "Answer of {agent}"


@dataclass(frozen=True, repr=False)
class Chain(Workflow):
    """Agents one after the other; `chain` makes one."""

    async def work(self, task: Task, session: Session) -> str:
        text, last = task.question, len(self.agents) - 1
        for i, agent in enumerate(self.agents):
            text = await answer(agent, session, text, task.output_format if i == last else None)
        return text


def chain(agents: Any, *, name: str = "chain") -> Chain:
    """A workflow in which the answer of each agent is the question of the next.

    The last one is told the form that the answer should have.

    Parameters
    ----------
    agents : list or dict of agents
        Agents, callables, models' names, workflows; a dict names them.  One may have several turns.
    name : str
    """
    return Chain(name, agents_of(agents, "chain", again=True))


@dataclass(frozen=True, repr=False)
class Parallel(Workflow):
    """Agents at the same time, and one that makes one answer of theirs; `parallel` makes one."""

    aggregator: Any = field(kw_only=True)
    prompts = (COMBINE, ANSWER_OF)

    async def work(self, task: Task, session: Session) -> str:
        texts = await answers([(agent, task.question) for agent in self.agents], session)
        return await combined(self.aggregator, task, session, self.agents, texts)


def parallel(agents: Any, aggregator: Any = None, *, name: str = "parallel", **params: Any) -> Parallel:
    """A workflow in which all agents answer the question at the same time, and one combines the answers.

    Parameters
    ----------
    agents : list or dict of agents
        Equal ones, under different names, draw answers of their own.
    aggregator : agent or str, optional
        Is given the question, the answers with their agents' names, and the form that the answer
        should have.  A model's name stands for an agent that asks it once; None for the default
        model.
    name : str
    **params
        Of the aggregator's model, where that is what was given.
    """
    by = one_agent(aggregator, f"{name}-aggregator", "parallel", params)
    return Parallel(name, agents_of(agents, "parallel"), aggregator=by)


async def combined(by: Any, task: Task, session: Session, agents: Sequence[Any], texts: Sequence[str]) -> str:
    """One answer to `task` that the agent `by` makes of those of `agents`."""
    pairs = [(fill(ANSWER_OF, agent=agent.name), text) for agent, text in zip(agents, texts, strict=True)]
    question = fill(COMBINE, question=task.question, answers=told(pairs))
    return await answer(by, session, question, task.output_format)
