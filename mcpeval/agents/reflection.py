"""The strategy ``reflection``: react, and after each call a critique of the step.

The critic is the same model in a conversation of its own: it is shown the question and every step so
far, with results and its earlier critiques.  What it says is a text, put to the agent below the
result.  (Shinn et al. 2023, "Reflexion: Language Agents with Verbal Reinforcement Learning",
arXiv:2303.11366, where the critique follows a whole attempt.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..types import Run, Task
from . import react
from .base import QUESTION, Agent, strategy
from .composed import fill
from .session import Session

CRITIC = """\
You review how an agent answers a question with tools, step by step. Say in a few sentences what is wrong with its \
last step, or what it should do differently from here on: another tool, other arguments, a result read wrongly, a \
detour. If there is nothing, say only: The step is right."""
HISTORY = "Question:\n{question}\n\nSteps so far:\n{steps}"
CRITIQUE = "Critique of this step:"


@strategy(
    "reflection",
    prompts=(react.INSTRUCTIONS, react.TOOLS, react.OBSERVATION, react.AGAIN, CRITIC, HISTORY, CRITIQUE),
    reads=QUESTION,
)
async def loop(agent: Agent, task: Task, session: Session) -> Run:
    """As ``react``; each call is followed by a critique, which is in the transcript as of ``<agent>:critic``."""

    async def with_critique(messages: Sequence[Mapping[str, Any]], observation: str, called: int) -> str:
        steps = "\n\n".join([*(message["content"] for message in messages[2:]), observation])
        shown = fill(HISTORY, question=task.question, steps=steps)
        asked = [{"role": "system", "content": CRITIC}, {"role": "user", "content": shown}]
        completion = await agent.ask(session.part(f"{agent.name}:critic"), asked, response_format=None)
        critique = completion.message.get("content")
        return f"{observation}\n\n{CRITIQUE}\n{critique}" if critique else observation

    return await react.steps(agent, task, session, agent.prompt or react.INSTRUCTIONS, reply_to=with_critique)
