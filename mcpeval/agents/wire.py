"""Messages and tool arguments as models write them, and as providers take them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

RECALL = "Call the tool again with a JSON object."


def arguments_of(given: Any) -> tuple[Any, str | None]:
    """Tool arguments as a dict, or as given with what is wrong with them."""
    if isinstance(given, Mapping):
        return dict(given), None
    if isinstance(given, str) and not given.strip():
        return {}, None
    try:
        value = json.loads(given, strict=False)
    except (TypeError, ValueError, RecursionError) as error:
        return given, f"The arguments are not valid JSON ({error}). {RECALL}"
    return (value, None) if isinstance(value, dict) else (given, f"The arguments are not a JSON object. {RECALL}")


def sendable(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """`message` without the name of an agent, and with the arguments of its tool calls as JSON objects.

    Some providers read them when the conversation goes on, and refuse all of it where a model once
    wrote bad JSON.  The transcript keeps the text as the model wrote it.
    """
    message = {key: value for key, value in message.items() if key != "agent"}
    if not message.get("tool_calls"):
        return message
    return {**message, "tool_calls": [_sendable_call(call) for call in message["tool_calls"]]}


def _sendable_call(call: Mapping[str, Any]) -> Mapping[str, Any]:
    given = call["function"].get("arguments")
    with suppress(TypeError, ValueError, RecursionError):
        if isinstance(json.loads(given), dict):
            return call
    value, problem = arguments_of(given)
    text = json.dumps({"not_a_json_object": given} if problem else value)
    return {**call, "function": {**call["function"], "arguments": text}}
