"""The strategy ``basic``: the question, and one answer of the model; no tools."""

from __future__ import annotations

from ..types import Run, Task
from .base import QUESTION, Agent, answer_of, strategy
from .session import Session


@strategy("basic", uses_tools=False, reads=QUESTION, revision=2)
async def loop(agent: Agent, task: Task, session: Session) -> Run:
    """Ask once, for an answer in the form that the task wants."""
    return answer_of(await agent.ask(session, agent.opening(task), **agent.form(task)))
