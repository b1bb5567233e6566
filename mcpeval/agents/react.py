"""The strategy ``react``: thought, action, observation in JSON, for models without tool calling.

A step is ``{"thought": ..., "action": ...}``; the action is a call, ``{"tool": ..., "arguments":
...}``, or the end, ``{"answer": ...}``.  Where the model supports it the step's JSON schema is sent
along, so that nothing but a call that fits its tool, or an answer, can be written; elsewhere
`parse_step` is lenient about what stands around the JSON, and what is no step is asked for again.
(Yao et al. 2023, "ReAct: Synergizing Reasoning and Acting in Language Models", arXiv:2210.03629.)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from .. import llm
from ..types import Run, Task
from .base import QUESTION, Agent, answer_of, strategy, turn_limit
from .forms import has_form, json_values, response_format, text_limit
from .schemas import constraint, notation, shape
from .session import Session, text_of

INSTRUCTIONS = """\
Work in steps. Write each step as one JSON object:
{"thought": "...", "action": {"tool": "<name>", "arguments": {...}}}
You are then told the tool's result. Never make up a result. When you know the answer, the last step is:
{"thought": "...", "action": {"answer": "..."}}"""
TOOLS = "Tools:"
OBSERVATION = "Result of {tool}:"
AGAIN = "That was not a step: {problem}. Write one JSON object as told, and nothing else."

REASKS = 2  # in a row, before the run ends with bad_json
THOUGHT = 1000  # characters


@strategy("react", prompts=(INSTRUCTIONS, TOOLS, OBSERVATION, AGAIN), reads=QUESTION)
async def loop(agent: Agent, task: Task, session: Session) -> Run:
    """Let the model think, act and observe until it answers.

    A step that is none is asked for again, at most twice in a row; the run then ends with
    ``error_class`` ``bad_json``.  The first ``agent.min_tool_calls`` steps have to be calls.
    With a schema, the last of ``agent.max_turns`` has to be the answer: the model would not see
    the result of a call.  ``response_format=None`` among the agent's parameters sends no schema.
    """
    return await steps(agent, task, session, agent.prompt or INSTRUCTIONS)


async def steps(
    agent: Agent,
    task: Task,
    session: Session,
    instructions: str,
    *,
    notes: bool = False,
    reply_to: Callable[[Sequence[Mapping[str, Any]], str, int], Awaitable[str]] | None = None,
) -> Run:
    """The loop of `react` and of the strategies that are made from it.

    Parameters
    ----------
    notes : bool
        Whether a step has a text ``note`` as well.
    reply_to : callable, optional
        ``await reply_to(messages, observation, called)`` is what the model is told after a call
        instead of the observation alone; `messages` end with the step, `called` counts the calls.
    """
    messages = agent.opening(task, _instructions(instructions, session.tools))
    called = bad = 0
    for turn in range(agent.max_turns):
        may_answer = not session.tools or called >= agent.min_tool_calls
        offered = [] if may_answer and turn == agent.max_turns - 1 else session.tools
        completion = await agent.ask(session, messages, **_form(agent, task, offered, may_answer, notes))
        text = completion.message.get("content")
        if not text or completion.finish_reason == "content_filter":
            return answer_of(completion)
        step, problem = parse_step(text, may_answer=may_answer)
        if "answer" in step:
            return Run(text_of(step["answer"]))
        messages = [*messages, completion.message]
        if step:
            called, bad = called + 1, 0
            call = await session.call_tool(step["tool"], step["arguments"])
            reply = f"{OBSERVATION.replace('{tool}', str(step['tool']))}\n{session.show(call)}"
            if reply_to is not None:
                reply = await reply_to(messages, reply, called)
        elif bad == REASKS:
            return Run(status="error", error=f"no step in {REASKS + 1} answers: {problem}", error_class="bad_json")
        else:
            bad += 1
            reply = AGAIN.replace("{problem}", problem)
        messages = [*messages, {"role": "user", "content": reply}]
        session.record(messages)
    return turn_limit(agent)


def _instructions(instructions: str, tools: Sequence[Mapping[str, Any]]) -> str:
    if not tools:
        return instructions
    return "\n".join([instructions, TOOLS, *(_about(tool["function"]) for tool in tools)])


def _about(function: Mapping[str, Any]) -> str:
    about = " ".join((function.get("description") or "").split())
    return f"- {function['name']} {notation(function.get('parameters') or {})}{': ' if about else ''}{about}"


def _form(
    agent: Agent, task: Task, tools: Sequence[Mapping[str, Any]], may_answer: bool, notes: bool
) -> dict[str, Any]:
    """The parameters that hold the model to a step, where it supports that."""
    if "response_format" in agent.params or not llm.supports_response_schema(agent.model):
        return {}
    limit = text_limit(agent.model, agent.params, more=notes)
    schema = step_schema(tools, task.output_format, may_answer=may_answer, limit=limit, notes=notes)
    return response_format("step", schema)


def step_schema(
    tools: Sequence[Mapping[str, Any]],
    output_format: Any = None,
    *,
    may_answer: bool = True,
    limit: int | None = None,
    notes: bool = False,
) -> dict[str, Any]:
    """The JSON schema of one step: a call of one of `tools`, or the answer.

    Parameters
    ----------
    tools : list of dict
        OpenAI function tools.
    output_format : dict, list, str or None
        The task's; the answer has its shape where it is a dict or a list, and is a text elsewhere.
    may_answer : bool
        Whether the answer is among the actions.
    limit : int, optional
        Characters of each text, for an embedded model.  A step of such a model that has to be a call
        has no thought: what it makes up before it has seen a result, it repeats afterwards.
    notes : bool
        Whether a step begins with a text ``note``.
    """
    actions = [
        _object(
            tool={"type": "string", "enum": [f["name"]]},
            arguments=constraint(f.get("parameters") or {"type": "object"}, limit=limit),
        )
        for f in (tool["function"] for tool in tools)
    ]
    if may_answer:
        answer = shape(output_format) if has_form(output_format) else {"type": "string"}
        actions.append(_object(answer=constraint(answer, limit=limit)))
    text = {"type": "string", "maxLength": THOUGHT if limit is None else limit}
    texts = {"note": text} if notes else {}
    if limit is None or may_answer:
        texts["thought"] = text
    return _object(**texts, action={"anyOf": actions})


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def parse_step(text: str, *, may_answer: bool = True) -> tuple[dict[str, Any], str]:
    """The first step in what a model wrote, and what is wrong where there is none.

    The first, since a model that goes on by itself makes up the results of its calls.  Fences,
    prose and ``<think>`` around the JSON do no harm, nor do raw line breaks in its texts, nor a step
    without the level ``action``.

    Returns
    -------
    step : dict
        ``{"tool", "arguments"}``, ``{"answer"}``, or empty.
    problem : str
        Empty where there is a step.
    """
    problem = "there is no JSON object in it"
    for value in json_objects(text):
        action = value.get("action", value)
        if isinstance(action, Mapping) and isinstance(action.get("tool"), str):
            return {"tool": action["tool"], "arguments": action.get("arguments") or {}}, ""
        if isinstance(action, Mapping) and "answer" in action:
            if may_answer:
                return {"answer": action["answer"]}, ""
            return {}, "call a tool before you answer"
        problem = "its action is neither a tool with arguments nor an answer"
    return {}, problem


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in `text`, in order, but for what is thought; of what is broken, the whole ones inside."""
    return json_values(text, "{")
