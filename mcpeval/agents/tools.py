"""The strategy ``tools``: the model's own tool calling, until it answers without a call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ..types import Run, Task
from .base import QUESTION, Agent, answer_of, strategy, turn_limit
from .session import Session


@strategy("tools", "function_call", "function-call", "fc", reads=QUESTION, revision=2)
async def loop(agent: Agent, task: Task, session: Session) -> Run:
    """Let the model call tools until it answers.

    Calls that it asks for in one answer are made at the same time.  Until it has asked for
    ``agent.min_tool_calls`` of them, it is sent ``tool_choice="required"``.  The schema of the answer
    goes along with the tools where the model is known to take both, for others would either refuse
    the request or not call tools any more.
    """
    messages, asked = agent.opening(task), 0
    for _ in range(agent.max_turns):
        offer: dict[str, Any] = agent.form(task, beside_tools=bool(session.tools))
        if session.tools:
            offer["tools"] = session.tools
            if asked < agent.min_tool_calls:
                offer["tool_choice"] = "required"
        completion = await agent.ask(session, messages, **offer)
        calls = completion.message.get("tool_calls")
        if not calls:
            return answer_of(completion)
        asked += len(calls)
        answers = await asyncio.gather(*(_answer(session, call) for call in calls))
        messages = [*messages, completion.message, *answers]
        session.record(messages)
    return turn_limit(agent)


async def _answer(session: Session, call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    made = await session.call_tool(function.get("name"), function.get("arguments"))
    return {"role": "tool", "tool_call_id": call.get("id"), "content": session.show(made)}
