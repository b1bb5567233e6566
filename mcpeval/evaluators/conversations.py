"""A row as turns: what should be said and done in each, and what was.

Most rows are one turn: ``question``, ``output``, ``reference``, ``tool_calls``,
``expected_tool_calls``.  A row that has a column ``test_case`` (a case of judge-llm, see
`mcpeval.interop.judge_llm`) is compared turn by turn with the case's ``conversation``; what was
said is then the conversation that the agent left in ``metadata``, else what its ``messages`` say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..messages import tool_calls_of
from ..types import ToolCall
from .called import made_calls, read_call

#: The tool by which ADK agents hand over to one another.
TRANSFER = "transfer_to_agent"


@dataclass(frozen=True)
class Turn:
    """One exchange.

    Attributes
    ----------
    question : str
    answer : str or None
        None where nothing is known of it, or nothing was said.
    calls : tuple of (str, any)
        Name and arguments of each tool call, in order.
    agents : tuple of str
        The agents at work, in the order in which they were handed the conversation.
    """

    question: str = ""
    answer: str | None = None
    calls: tuple[tuple[str, Any], ...] = ()
    agents: tuple[str, ...] = ()


def expected_turns(row: Mapping[str, Any], *, calls: bool = True) -> list[Turn]:
    """What should be: the turns of ``test_case``, else one of the row's own columns.

    Without `calls` nobody looks for tool calls or agents, and none of them can be at fault.
    """
    case = row.get("test_case")
    if isinstance(case, Mapping) and isinstance(case.get("conversation"), Sequence):
        return [turn_of(invocation, calls=calls) for invocation in case["conversation"]]
    said = row.get("question") or "", as_text(row.get("reference"))
    if not calls:
        return [Turn(*said)]
    given = enumerate(row.get("expected_tool_calls") or ())
    wanted = _pairs(read_call(call, f"expected_tool_calls[{place}]") for place, call in given)
    return [Turn(*said, wanted, tuple(row.get("expected_agents") or handed_over((), wanted)))]


def actual_turns(row: Mapping[str, Any], *, several: bool = False, calls: bool = True) -> list[Turn]:
    """What was: the conversation in ``metadata``, else the turns of ``messages``, else one.

    Parameters
    ----------
    row : mapping
    several : bool
        Whether the row's ``messages`` are more than one turn; all of them are one otherwise.
    calls : bool
        As in `expected_turns`.
    """
    metadata = row["metadata"] if isinstance(row.get("metadata"), Mapping) else {}
    if isinstance(conversation := metadata.get("conversation"), Sequence):
        turns = [turn_of(invocation, calls=calls) for invocation in conversation]
    elif several and row.get("messages"):
        turns = _turns_of_messages(row["messages"], calls)
    else:
        made = _pairs(made_calls(row) or ()) if calls else ()
        agents = tuple(row.get("agents") or handed_over((), made))
        turns = [Turn(row.get("question") or "", as_text(row.get("output")), made, agents)]
    if chain := metadata.get("agent_chain"):
        return [Turn(turn.question, turn.answer, turn.calls, tuple(chain)) for turn in turns]
    return turns


def both(row: Mapping[str, Any], *, calls: bool = False) -> tuple[list[Turn], list[Turn]]:
    """The turns that should be and those that were; with their tool calls and agents where asked for."""
    expected = expected_turns(row, calls=calls)
    return expected, actual_turns(row, several=len(expected) > 1, calls=calls)


def answered(expected: Sequence[Turn], actual: Sequence[Turn]) -> list[tuple[Turn, Turn]]:
    """The pairs of turns for which there is a reference."""
    return [(e, a) for e, a in zip(expected, actual) if e.answer is not None]


def answers(row: Mapping[str, Any]) -> list[str]:
    """Everything the agent answered, turn by turn; "" where it said nothing."""
    return [turn.answer or "" for turn in both(row)[1]]


def turn_of(invocation: Mapping[str, Any], *, calls: bool = True) -> Turn:
    """A turn of judge-llm's ``conversation`` (an "invocation")."""
    between = (invocation.get("intermediate_data") if calls else None) or {}
    uses = _pairs(read_call(use, "tool_uses") for use in between.get("tool_uses") or ())
    agents = handed_over(between.get("intermediate_responses") or (), uses)
    final = invocation.get("final_response") or {}
    answer = text_of(final) if final.get("parts") else None
    return Turn(text_of(invocation.get("user_content")), answer, uses, agents)


def text_of(content: Mapping[str, Any] | None) -> str:
    """The texts of a content's parts, stripped, with a space between them."""
    parts = (content or {}).get("parts") or ()
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return " ".join(text.strip() for text in texts if isinstance(text, str) and text.strip())


def handed_over(responses: Iterable[Any], calls: Iterable[tuple[str, Any]]) -> tuple[str, ...]:
    """The agents at work, in order.

    From judge-llm's ``agent_transfer`` entries (the first of them also names the agent that began)
    and entries with an ``agent_name``; then from calls of the tool `TRANSFER`, which add the agents
    that were not named yet.
    """
    agents: list[str] = []
    for response in responses:
        if not isinstance(response, Mapping):
            continue
        if response.get("type") == "agent_transfer":
            if not agents and response.get("from_agent"):
                agents.append(response["from_agent"])
            if "to_agent" in response:
                agents.append(response["to_agent"])
        elif "agent_name" in response:
            agents.append(response["agent_name"])
    for name, arguments in calls:
        agent = arguments.get("agent_name") if name == TRANSFER and isinstance(arguments, Mapping) else None
        if agent and agent not in agents:
            agents.append(agent)
    return tuple(agents)


def as_text(value: Any) -> str | None:
    """A text as it is, None as None, any other value as its JSON."""
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _turns_of_messages(messages: Iterable[Mapping[str, Any]], calls: bool) -> list[Turn]:
    """OpenAI chat messages, parted where the user speaks."""
    turns: list[Turn] = []
    for message in messages:
        if message.get("role") == "user":
            turns.append(Turn(as_text(message.get("content")) or ""))
        elif message.get("role") == "assistant" and turns:
            made = (*turns[-1].calls, *_pairs(tool_calls_of([message]) if calls else ()))
            answer = as_text(message.get("content")) or turns[-1].answer
            turns[-1] = Turn(turns[-1].question, answer, made, handed_over((), made))
    return turns


def _pairs(calls: Iterable[ToolCall]) -> tuple[tuple[str, Any], ...]:
    return tuple((call.name, call.arguments) for call in calls)
