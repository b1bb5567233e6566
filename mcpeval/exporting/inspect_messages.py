"""OpenAI chat messages as Inspect's chat messages, and back.

A message that would not come back as it was (arguments that are no JSON object, keys that Inspect has no
place for) carries itself along in its metadata, under ``mcpeval``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..types import ToolCall

CARRIED = "mcpeval"
_ROLES = {"developer": "system", "function": "tool"}
_KNOWN_ROLES = ("system", "user", "assistant", "tool")


def to_inspect_messages(messages: Sequence[Any], calls: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
    """Chat messages in Inspect's form.

    Parameters
    ----------
    messages : list of dict
    calls : list of dict
        The run's tool calls; where each has its message, one that failed makes that message an error.
    """
    names: dict[str, str] = {}
    made = []
    for message in messages:
        for call in _calls_of(message):
            names[str(call.get("id"))] = str(_dict(call.get("function")).get("name") or "unknown")
        plain = _to_inspect(message, names)
        if from_inspect_message(plain) != message:
            plain["metadata"] = {CARRIED: message}
        made.append(plain)
    answers = [message for message in made if message["role"] == "tool"]
    if len(answers) == len(calls):
        for answer, call in zip(answers, calls):
            if call.get("is_error"):
                told = call.get("error") or _text(answer["content"]) or "the tool failed"
                answer["error"] = {"type": "unknown", "message": str(told)}
    return made


def from_inspect_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """One of Inspect's chat messages as an OpenAI chat message."""
    carried = _dict(message.get("metadata")).get(CARRIED)
    if isinstance(carried, Mapping):
        return dict(carried)
    role, content = message.get("role"), message.get("content")
    chat: dict[str, Any] = {"role": role, "content": _from_content(content)}
    if role == "tool":
        if message.get("tool_call_id") is not None:
            chat["tool_call_id"] = message["tool_call_id"]
        chat["content"] = chat["content"] or str(_dict(message.get("error")).get("message") or "")
    elif role == "assistant":
        if isinstance(content, list) and (thought := _reasoning(content)):
            chat["reasoning_content"] = thought
        if asked := _calls_of(message):
            chat["content"] = chat["content"] or None
            chat["tool_calls"] = [_from_call(call) for call in asked]
    return chat


def calls_in(messages: Sequence[Mapping[str, Any]], seconds: Mapping[str, float]) -> list[ToolCall]:
    """The tool calls in Inspect's chat messages.

    Parameters
    ----------
    messages : list of dict
    seconds : dict
        Of each call by its id as a text, where the log's events have it.

    Returns
    -------
    list of ToolCall
        Without a server, which Inspect does not name, except for calls that the model's provider made
        (``tool_use``). A call that was refused or not understood, or that ran out of time, has no result.
    """
    answers = {str(one.get("tool_call_id")): one for one in messages if one.get("role") == "tool"}
    found = []
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if isinstance(part, Mapping) and part.get("type") == "tool_use":
                found.append(_provider_call(part))
        for call in _calls_of(message):
            if isinstance(call.get("function"), str):
                named = str(call.get("id"))
                found.append(_answered(call, answers.get(named), seconds.get(named) or 0.0))
    return found


# --- one message ---------------------------------------------------------------------------------


def _to_inspect(message: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    role = _ROLES.get(message.get("role"), message.get("role"))
    plain: dict[str, Any] = {"role": role if role in _KNOWN_ROLES else "user"}
    plain["content"] = _to_content(message.get("content"))
    if role == "tool":
        if isinstance(message.get("tool_call_id"), str):
            plain["tool_call_id"] = message["tool_call_id"]
        name = names.get(str(message.get("tool_call_id"))) or message.get("name")
        if isinstance(name, str):
            plain["function"] = name
    asked = _calls_of(message)
    if asked:
        plain["tool_calls"] = [_to_call(call, place) for place, call in enumerate(asked)]
    return plain


def _calls_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    asked = message.get("tool_calls") if message.get("role") == "assistant" else None
    return [call for call in asked if isinstance(call, Mapping)] if isinstance(asked, list) else []


def _to_call(call: Mapping[str, Any], place: int) -> dict[str, Any]:
    function = _dict(call.get("function"))
    made = {"id": str(call.get("id") or f"call_{place}"), "function": str(function.get("name") or "unknown")}
    text = function.get("arguments")
    try:
        arguments = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, Mapping):
        return {**made, "arguments": {}, "type": "function", "parse_error": f"no JSON object: {text}"}
    return {**made, "arguments": dict(arguments), "type": "function"}


def _from_call(call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(call.get("arguments") or {}, ensure_ascii=False)
    function = {"name": call.get("function"), "arguments": arguments}
    return {"id": call.get("id"), "type": "function", "function": function}


def _to_content(content: Any) -> Any:
    if content is None:
        return ""
    if isinstance(content, list) and all(isinstance(part, Mapping) for part in content):
        return [_to_part(part) for part in content]
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _to_part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part.get("type") == "text" and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    url = _dict(part.get("image_url")).get("url")
    if part.get("type") == "image_url" and isinstance(url, str):
        return {"type": "image", "image": url}
    return {"type": "text", "text": json.dumps(part, ensure_ascii=False)}


def _from_content(content: Any) -> Any:
    """Texts alone are one text, as Inspect reads them; beside images and files they are OpenAI's parts."""
    if not isinstance(content, list):
        return content
    shown = [
        part for part in content if isinstance(part, Mapping) and part.get("type") not in ("reasoning", "tool_use")
    ]
    if all(part.get("type") == "text" for part in shown):
        return "\n".join(str(part.get("text", "")) for part in shown)
    return [_from_part(part) for part in shown]


def _from_part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part.get("type") == "text":
        return {"type": "text", "text": str(part.get("text", ""))}
    if part.get("type") == "image":
        return {"type": "image_url", "image_url": {"url": part.get("image")}}
    return dict(part)


def _reasoning(content: Sequence[Any]) -> str:
    thoughts = [part for part in content if isinstance(part, Mapping) and part.get("type") == "reasoning"]
    return "\n".join(str(part.get("summary") if part.get("redacted") else part.get("reasoning")) for part in thoughts)


# --- one call ------------------------------------------------------------------------------------


def _answered(call: Mapping[str, Any], answer: Mapping[str, Any] | None, seconds: float) -> ToolCall:
    name, arguments = call["function"], call.get("arguments") or {}
    if answer is None:
        unread = call.get("parse_error")
        return ToolCall(None, name, arguments, None, bool(unread), unread, seconds)
    error = _dict(answer.get("error"))
    told = _from_content(answer.get("content")) or error.get("message") or ""
    if error.get("type") in ("parsing", "approval", "timeout", "cancelled") or call.get("parse_error"):
        return ToolCall(None, name, arguments, None, True, _text(told), seconds, error.get("type") == "approval")
    parts = [{"type": "text", "text": told}] if isinstance(told, str) else told
    return ToolCall(None, name, arguments, {"content": parts, "isError": bool(error)}, bool(error), None, seconds)


def _provider_call(part: Mapping[str, Any]) -> ToolCall:
    failed = part.get("error")
    try:
        arguments = json.loads(part.get("arguments") or "{}")
    except (TypeError, ValueError, RecursionError):
        arguments = part.get("arguments")
    text = str(failed or part.get("result") or "")
    result = {"content": [{"type": "text", "text": text}], "isError": bool(failed)}
    server = part.get("context")
    return ToolCall(server if isinstance(server, str) else None, str(part.get("name")), arguments, result, bool(failed))


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
