"""Tool calls out of conversations: OpenAI chat messages, Anthropic content blocks, Gemini parts, MCP's wire.

Every parser takes plain JSON (or the SDK's objects, which know their JSON): a list of messages, one
message, or a request or an answer of the API that holds them.  It gives the calls in the order in
which the model asked for them, each with what came back.  A call without an answer has no result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from .errors import InputError
from .types import ToolCall

# What holds messages in a request or an answer of an API, and under which key of each of its items.
_HOLDERS = {"messages": None, "contents": None, "choices": "message", "candidates": "content"}
_BLOCKS = ("tool_use", "tool_result", "mcp_tool_use", "mcp_tool_result", "server_tool_use")


class _Asked(NamedTuple):
    """A call: the id its answer refers to, where there is one."""

    id: Any
    call: ToolCall


class _Answered(NamedTuple):
    """What came back: for the call of this id, else for the oldest open one of this name."""

    id: Any
    name: str | None
    result: dict[str, Any] | None
    is_error: bool = False
    error: str | None = None


_Events = Iterator[_Asked | _Answered]


def from_openai(messages: Any) -> list[ToolCall]:
    """The calls in OpenAI chat messages: ``tool_calls`` and the older ``function_call``.

    Parameters
    ----------
    messages : list of dict, or dict
        Chat messages, one message, or an answer of the API (``choices``).

    Returns
    -------
    list of ToolCall
        ``arguments`` are the JSON object that the model wrote, else its text. A chat message does
        not say whether the tool failed: ``is_error`` is False.

    Raises
    ------
    InputError
        A message is no JSON object, or a call has no name.
    """
    return _paired(messages, [_openai])


def from_anthropic(messages: Any) -> list[ToolCall]:
    """The calls in Anthropic content blocks: ``tool_use``, and ``mcp_tool_use`` with its server.

    Parameters
    ----------
    messages : list of dict, or dict
        Messages, one message (an answer of the API is one), or content blocks.

    Returns
    -------
    list of ToolCall

    Raises
    ------
    InputError
        As `from_openai`.
    """
    return _paired(messages, [_anthropic])


def from_gemini(contents: Any) -> list[ToolCall]:
    """The calls in Gemini parts: ``functionCall`` and ``functionResponse``, in either spelling.

    Parameters
    ----------
    contents : list of dict, or dict
        Contents, one content, parts, or an answer of the API (``candidates``).

    Returns
    -------
    list of ToolCall
        A response with the key ``error`` and without ``output`` or ``result`` is a failure.

    Raises
    ------
    InputError
        As `from_openai`.
    """
    return _paired(contents, [_gemini])


def from_mcp(messages: Any, *, server: str | None = None) -> list[ToolCall]:
    """The calls in MCP's wire messages: ``tools/call`` requests and their results.

    Parameters
    ----------
    messages : list of dict
        JSON-RPC messages of one session, in both directions; others than calls are passed over.
    server : str, optional
        Name of the session's server.

    Returns
    -------
    list of ToolCall
        ``result`` is the wire result as it is; a JSON-RPC error has none, and its message is
        ``error``.

    Raises
    ------
    InputError
        As `from_openai`.
    """
    return [replace(call, server=server) for call in _paired(messages, [_mcp])]


def tool_calls_of(messages: Any) -> list[ToolCall]:
    """The calls in messages of any of the four forms, which may stand side by side.

    Raises
    ------
    InputError
        As `from_openai`.
    """
    return _paired(messages, [_openai, _anthropic, _gemini, _mcp])


def arguments_of(given: Any) -> Any:
    """Arguments as a JSON object: a text is read, nothing at all is an empty object.

    What is no JSON object comes back as it was given.
    """
    if given is None or isinstance(given, str) and not given.strip():
        return {}
    if isinstance(given, Mapping):
        return dict(given)
    if not isinstance(given, str):
        return given
    try:
        value = json.loads(given, strict=False)
    except (ValueError, RecursionError):
        return given
    return value if isinstance(value, dict) else given


def wire_result(content: Any, *, is_error: bool = False) -> dict[str, Any]:
    """What a tool gave, as MCP's wire has it: a text, a list of parts, or any JSON value."""
    if content is None:
        parts = []
    elif isinstance(content, str):
        parts = [{"type": "text", "text": content}]
    elif isinstance(content, list) and all(isinstance(part, Mapping) and "type" in part for part in content):
        parts = [dict(part) for part in content]
    else:
        text = json.dumps(content, ensure_ascii=False, default=str)
        found = {"content": [{"type": "text", "text": text}], "isError": is_error}
        return {**found, "structuredContent": dict(content)} if isinstance(content, Mapping) else found
    return {"content": parts, "isError": is_error}


# --- one conversation ----------------------------------------------------------------------------


def _paired(given: Any, forms: Sequence[Callable[[Mapping[str, Any], str], _Events]]) -> list[ToolCall]:
    calls: list[ToolCall] = []
    ids: list[Any] = []
    waiting: list[int] = []  # places in `calls` that have no answer yet, the oldest first
    for where, message in _messages(given, "messages"):
        for event in (event for form in forms for event in form(message, where)):
            if isinstance(event, _Asked):
                waiting.append(len(calls))
                calls.append(event.call)
                ids.append(event.id)
            elif (place := _place(event, calls, ids, waiting)) is not None:
                waiting.remove(place)
                answer = {"result": event.result, "is_error": event.is_error, "error": event.error}
                calls[place] = replace(calls[place], **answer)
    return calls


def _place(event: _Answered, calls: Sequence[ToolCall], ids: Sequence[Any], waiting: Iterable[int]) -> int | None:
    if event.id is not None:
        return next((place for place in waiting if ids[place] == event.id), None)
    return next((place for place in waiting if ids[place] is None and calls[place].name == event.name), None)


def _messages(given: Any, where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each message and its place; requests and answers of an API are opened."""
    if callable(getattr(given, "model_dump", None)):
        given = given.model_dump(mode="json", exclude_none=True)
    if isinstance(given, (list, tuple)):
        for place, message in enumerate(given):
            yield from _messages(message, f"{where}[{place}]")
        return
    if not isinstance(given, Mapping):
        raise InputError(f"{where} is {given!r:.100} ({type(given).__name__}); expected a message, a JSON object")
    for key, inner in _HOLDERS.items():
        if isinstance(given.get(key), list):
            held = [one.get(inner) if inner and isinstance(one, Mapping) else one for one in given[key]]
            yield from _messages([one for one in held if one is not None], f"{where}.{key}")
            return
    yield where, given


def _call(given: Any, where: str, *, arguments: str = "arguments", server: Any = None) -> ToolCall:
    name = given.get("name") if isinstance(given, Mapping) else None
    if not isinstance(name, str) or not name:
        raise InputError(f"{where} is {given!r:.100}; expected a tool call with a 'name'")
    return ToolCall(server, name, arguments_of(given.get(arguments)))


# --- the four forms ------------------------------------------------------------------------------


def _openai(message: Mapping[str, Any], where: str) -> _Events:
    role, asked = message.get("role"), message.get("tool_calls") or ()
    if role == "assistant":
        if not isinstance(asked, (list, tuple)):
            raise InputError(f"{where}.tool_calls is {asked!r:.100}; expected a list of tool calls")
        for place, one in enumerate(asked):
            function = one.get("function", one) if isinstance(one, Mapping) else one
            call = _call(function, f"{where}.tool_calls[{place}]")
            yield _Asked(one.get("id"), call)
        if message.get("function_call"):
            yield _Asked(None, _call(message["function_call"], f"{where}.function_call"))
    elif role in ("tool", "function"):
        yield _Answered(message.get("tool_call_id"), message.get("name"), wire_result(message.get("content")))


def _anthropic(message: Mapping[str, Any], where: str) -> _Events:
    blocks = [message] if message.get("type") in _BLOCKS else message.get("content")
    for place, block in enumerate(blocks if isinstance(blocks, list) else ()):
        kind = block.get("type") if isinstance(block, Mapping) else None
        if kind not in _BLOCKS:
            continue
        if kind.endswith("tool_use"):
            call = _call(block, f"{where}.content[{place}]", arguments="input", server=block.get("server_name"))
            yield _Asked(block.get("id"), call)
        else:
            failed = bool(block.get("is_error"))
            yield _Answered(block.get("tool_use_id"), None, wire_result(block.get("content"), is_error=failed), failed)


def _gemini(message: Mapping[str, Any], where: str) -> _Events:
    if "role" in message and "parts" not in message:
        return  # an OpenAI message may have a function_call as well
    parts = message["parts"] if isinstance(message.get("parts"), list) else [message]
    for place, part in enumerate(part for part in parts if isinstance(part, Mapping)):
        asked = part.get("functionCall") or part.get("function_call")
        answer = part.get("functionResponse") or part.get("function_response")
        if asked:
            call = _call(asked, f"{where}.parts[{place}]", arguments="args")
            yield _Asked(asked.get("id"), call)
        elif isinstance(answer, Mapping):
            response = answer.get("response")
            keys = response.keys() if isinstance(response, Mapping) else set()
            failed = "error" in keys and not {"output", "result"} & keys
            yield _Answered(answer.get("id"), answer.get("name"), wire_result(response, is_error=failed), failed)


def _mcp(message: Mapping[str, Any], where: str) -> _Events:
    if message.get("method") == "tools/call":
        yield _Asked(message.get("id"), _call(message.get("params"), f"{where}.params"))
    elif "jsonrpc" in message and isinstance(error := message.get("error"), Mapping):
        yield _Answered(message.get("id"), None, None, True, str(error.get("message") or error))
    elif "jsonrpc" in message and isinstance(result := message.get("result"), Mapping):
        yield _Answered(message.get("id"), None, dict(result), bool(result.get("isError")))
