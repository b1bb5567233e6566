"""What command-line agents write, read as a `Run`: Claude Code's events, and JSON lines of a plain form.

A reader is a function of the lines of one run, each as the JSON value that it is, or as a text where
it is none.  Whatever it makes nothing of is passed over: what was paid for is kept as far as it goes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import InputError, did_you_mean
from ..messages import from_anthropic, from_openai
from ..types import Run, Usage
from .session import text_of

#: How a failure is told from another by what the agent says of it.
_RATE = re.compile(r"\b429\b|rate.?limit|overloaded", re.IGNORECASE)
_CONTEXT = re.compile(r"prompt is too long|context.{0,20}(?:length|window|limit)", re.IGNORECASE)
_ROLES = ("system", "developer", "user", "assistant", "tool")
_ANSWERS = ("answer", "output", "result")
_COSTS = ("cost_usd", "total_cost_usd")
_CLASSES = ("model", "bad_json", "turn_limit", "context", "timeout", "rate", "server", "harness")
#: What was used where nobody said.
UNKNOWN = Usage(None, None, None)


def claude_code(lines: Sequence[Any]) -> Run:
    """The events of ``claude -p --output-format stream-json --verbose``.

    Parameters
    ----------
    lines : list
        Events of the types ``system``, ``assistant``, ``user`` and ``result``.

    Returns
    -------
    Run
        The answer and the cost are those of the ``result``; tokens that the cache of the provider
        answered for count as well.  A server that did not start is an error of the run.
        ``metadata`` has the model, the version and the session.
    """
    events = [event for event in lines if isinstance(event, Mapping)]
    told = [event["message"] for event in events if isinstance(event.get("message"), Mapping)]
    begin = next((event for event in events if event.get("subtype") == "init"), {})
    end = next((event for event in reversed(events) if event.get("type") == "result"), None)
    servers = [server for server in _listed(begin.get("mcp_servers")) if isinstance(server, Mapping)]
    said = _merged([message for message in told if message.get("role") in ("assistant", "user")])
    answers = [message for message in said if message.get("role") == "assistant"]
    run = Run(
        messages=[message for one in said for message in _chat(one)],
        tool_calls=from_anthropic(said),
        turns=len(answers),
        usage=_claude_usage(end, answers),
        metadata={
            "model_returned": list(dict.fromkeys(m["model"] for m in answers if isinstance(m.get("model"), str))),
            "servers_reported": servers,
            **{name: begin[name] for name in ("claude_code_version", "session_id") if name in begin},
        },
    )
    run = run if end is None else replace(run, **_claude_end(end))
    failed = [server.get("name") for server in servers if server.get("status") == "failed"]
    if failed:  # it goes on without their tools, and would be measured as if it had had them
        error = f"Claude Code could not start the MCP server {', '.join(map(repr, failed))}"
        return replace(run, status="error", error=error, error_class="server")
    return run


def _claude_end(end: Mapping[str, Any]) -> dict[str, Any]:
    """The ending that a ``result`` tells of."""
    kind, said = str(end.get("subtype")), end.get("result")
    if kind == "error_max_turns":
        error = f"no final answer within {end.get('num_turns')} turns"
        return {"status": "error", "error": error, "error_class": "turn_limit"}
    if end.get("is_error") or kind != "success":
        error = str(said or end.get("errors") or kind)
        known = "rate" if _RATE.search(error) else "context" if _CONTEXT.search(error) else "model"
        return {"status": "error", "error": error, "error_class": known}
    return {"output": said if isinstance(said, str) and said else None}


def _claude_usage(end: Mapping[str, Any] | None, answers: Sequence[Mapping[str, Any]]) -> Usage:
    """That of the ``result``; without one, the sum over the answers, at a price that nobody knows."""
    if end is None:
        return sum((_tokens(answer.get("usage")) for answer in answers), Usage())
    seconds, cost = end.get("duration_api_ms"), end.get("total_cost_usd")
    return replace(
        _tokens(end.get("usage")),
        cost_usd=cost if _is_number(cost) else None,
        seconds=seconds / 1000 if _is_number(seconds) else 0.0,
        calls=len(answers),
    )


def _merged(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages whose blocks came one by one, each event with one of them, put together by their ids."""
    whole: list[dict[str, Any]] = []
    for message in messages:
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else _listed(content)
        blocks = [block for block in blocks if _is_block(block)]
        same = bool(whole) and message.get("id") is not None and whole[-1].get("id") == message["id"]
        if same:
            whole[-1] = {**message, "content": [*whole[-1]["content"], *blocks]}
        else:
            whole.append({**message, "content": blocks})
    return whole


def _chat(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A message of content blocks as OpenAI chat messages."""
    blocks = message["content"]
    text = "\n".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
    if message.get("role") == "user":
        results = [
            {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": _said(block.get("content"))}
            for block in blocks
            if block.get("type") == "tool_result"
        ]
        return [*results, *([{"role": "user", "content": text}] if text else [])]
    calls = [
        {
            "id": block.get("id"),
            "type": "function",
            "function": {"name": block.get("name"), "arguments": json.dumps(block.get("input") or {})},
        }
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    return [{"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else []


def _is_block(block: Any) -> bool:
    """Whether something can be made of a content block: a call has to say of what."""
    return isinstance(block, Mapping) and (block.get("type") != "tool_use" or isinstance(block.get("name"), str))


def _said(content: Any) -> str:
    """The text of a tool's result."""
    if isinstance(content, list):
        parts = [str(part.get("text", f"[{part.get('type')}]")) for part in content if isinstance(part, Mapping)]
        return "\n".join(parts)
    return text_of(content) or ""


def json_lines(lines: Sequence[Any]) -> Run:
    """JSON objects, one a line, each of which tells one thing of a run.

    Parameters
    ----------
    lines : list
        Of these: an OpenAI chat message (with a ``role``; of a tool's, ``is_error`` says that it
        failed); ``{"usage": {"prompt_tokens", "completion_tokens"}}``, or any other spelling of the
        two, which are added up; ``{"cost_usd": ...}``, likewise; ``{"answer": ...}``, also
        ``output`` or ``result``; ``{"error": ..., "error_class": ...}``, where the error is a text or
        an object with a ``message``, and the class one of a `Run`.  A line may tell several.

    Returns
    -------
    Run
        Its answer is the last ``answer``, else the last thing that the assistant said without a call.
    """
    run, costs, usages = Run(), [], []
    messages: list[dict[str, Any]] = []
    failed: list[Any] = []  # ids, of whatever type somebody writes
    for line in (line for line in lines if isinstance(line, Mapping)):
        if _is_chat(line):
            messages.append({key: value for key, value in line.items() if key not in ("is_error", "usage", *_COSTS)})
            failed += [line.get("tool_call_id")] if line.get("is_error") is True else []
        else:
            answer = next((line[key] for key in _ANSWERS if line.get(key) is not None), None)
            run = run if answer is None else replace(run, output=text_of(answer))
        if error := _error(line.get("error")):
            known = line.get("error_class")
            run = replace(run, status="error", error=error, error_class=known if known in _CLASSES else "model")
        usages += [_tokens(line["usage"])] if isinstance(line.get("usage"), Mapping) else []
        costs += [line[key] for key in _COSTS if _is_number(line.get(key))]
    said = [m for m in messages if m["role"] == "assistant"]
    if run.output is None and run.status == "ok" and said and not said[-1].get("tool_calls"):
        run = replace(run, output=text_of(said[-1].get("content")))
    usage = sum(usages, Usage()) if usages else UNKNOWN
    calls = _with_failures(messages, failed)
    usage = replace(usage, cost_usd=sum(costs) if costs else None, calls=len(said))
    return replace(run, messages=messages, tool_calls=calls, turns=len(said), usage=usage)


def _is_chat(line: Mapping[str, Any]) -> bool:
    """Whether a line is a chat message whose calls, if it has any, can be read."""
    if line.get("role") not in _ROLES:
        return False
    try:
        from_openai([line])
    except (InputError, AttributeError, TypeError):
        return False
    return isinstance(line.get("content"), str | list | None)


def _error(given: Any) -> str | None:
    given = given.get("message") if isinstance(given, Mapping) else given
    return given if isinstance(given, str) and given else None


def _with_failures(messages: Sequence[Mapping[str, Any]], failed: Sequence[Any]) -> list[Any]:
    """The tool calls of chat messages; those that are answered by the ids `failed` have ``is_error``."""
    ids = []
    for message in (m for m in messages if m["role"] == "assistant"):
        ids += [call.get("id") for call in message.get("tool_calls") or ()]
        ids += [None] if message.get("function_call") else []  # the older form has no id
    calls = from_openai(messages)
    return [replace(call, is_error=id is not None and id in failed) for id, call in zip(ids, calls, strict=True)]


def _tokens(usage: Any) -> Usage:
    """Tokens in any spelling; those of the provider's cache are tokens that went in, too."""
    usage = usage if isinstance(usage, Mapping) else {}

    def first(*names: str) -> int | None:
        return next((int(usage[name]) for name in names if _is_number(usage.get(name))), None)

    within = first("prompt_tokens", "input_tokens", "tokens_in")
    cached = (first("cache_creation_input_tokens") or 0) + (first("cache_read_input_tokens") or 0)
    return Usage(
        None if within is None else within + cached,
        first("completion_tokens", "output_tokens", "tokens_out"),
        cost_usd=None,
        calls=1,
    )


def _is_number(value: Any) -> bool:
    """Whether `value` counts something: anything else says as much as nothing."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


#: The readers by name.
READERS: dict[str, Callable[[Sequence[Any]], Run]] = {"claude_code": claude_code, "json_lines": json_lines}


def reader_of(given: Any, who: str) -> Callable[[Sequence[Any]], Any]:
    """The reader that `given` is, or names."""
    if callable(given):
        return given
    if not isinstance(given, str) or given not in READERS:
        raise InputError(f"{who}: reader={given!r:.200}. {did_you_mean(str(given), READERS)}")
    return READERS[given]
