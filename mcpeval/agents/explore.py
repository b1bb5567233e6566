"""The strategy ``explore``: react that has to try the tools first, and takes notes of them.

Each step has a ``note``: what the tool called last is good for, and what to beware of with it.  The
first ``agent.min_tool_calls`` steps have to be calls; then the model is told that it may answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..types import Run, Task
from . import react
from .base import QUESTION, Agent, strategy
from .session import Session

INSTRUCTIONS = """\
Work in steps. Write each step as one JSON object:
{"note": "...", "thought": "...", "action": {"tool": "<name>", "arguments": {...}}}
You are then told the tool's result. Never make up a result. Your first {calls} steps explore: they call tools, to \
learn what each of them does. The note says what the tool that you called last is good for, and what to beware of \
with it; before the first call it is empty. Then use what you have learned. When you know the answer, the last step is:
{"note": "...", "thought": "...", "action": {"answer": "..."}}"""
EXPLORED = "You have explored the tools. From now on you may answer; work from your notes."
CALLS = 6


@strategy(
    "explore",
    "explore_and_exploit",
    "explore_exploit",
    prompts=(INSTRUCTIONS, react.TOOLS, react.OBSERVATION, react.AGAIN, EXPLORED),
    min_tool_calls=CALLS,
    reads=QUESTION,
)
async def loop(agent: Agent, task: Task, session: Session) -> Run:
    """As ``react``, with a note in each step; a ``{calls}`` in the prompt stands for how many have to be calls."""
    least = agent.min_tool_calls if session.tools else 0

    async def with_phase(messages: Sequence[Mapping[str, Any]], observation: str, called: int) -> str:
        return f"{observation}\n\n{EXPLORED}" if called == least else observation

    instructions = (agent.prompt or INSTRUCTIONS).replace("{calls}", str(least))
    return await react.steps(agent, task, session, instructions, notes=True, reply_to=with_phase)
