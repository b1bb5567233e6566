"""MCPMark's result folders as runs.

``results/EXPERIMENT/MODEL__SERVICE/run-N/CATEGORY__TASK/`` has ``meta.json``, what became of the task, and
``messages.json``, the conversation: as items of OpenAI's Responses API, or, where a Claude model thinks, as
Anthropic's messages. `mcpeval.read_runs` reads any folder above them, or one ``meta.json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..messages import tool_calls_of, wire_result
from ..types import ToolCall
from .shapes import (
    answers_in,
    content_text,
    count_or_none,
    dict_of,
    dicts_of,
    number_or_none,
    said_last,
    text_or_none,
    verdict,
)

#: The file beside each that is read with it.
BESIDE = "messages.json"
# What MCPMark's messages say of what ended an agent, and the class that it is of.
_CLASSES = {
    "max turns": "turn_limit",
    "context window": "context",
    "rate limit": "rate",
    "ratelimit": "rate",
    "quota": "rate",
    "timed out": "timeout",
    "setup failed": "harness",
}


def reads(data: Any) -> bool:
    """Whether parsed JSON is a ``meta.json`` of MCPMark."""
    return isinstance(data, Mapping) and "task_name" in data and isinstance(data.get("execution_result"), Mapping)


def rows(data: Any, path: Path | None = None) -> list[dict[str, Any]]:
    """The row of a runs frame.

    Parameters
    ----------
    data : dict
        The parsed ``meta.json``.
    path : path-like, optional
        Of the file: the folders above it say the trial (``run-1`` is trial 0), and ``messages.json``
        beside it has the conversation.

    Returns
    -------
    list of dict
        One. ``task_id`` is ``SERVICE/CATEGORY__TASK``, ``agent`` ``mcpmark:MODEL``, with the effort of
        reasoning where one was asked for; every call is of the one server, SERVICE. ``seconds`` are
        the agent's. ``metadata`` has ``source``, ``service``, ``experiment``, ``execution_result`` and,
        in ``scores``, the ``verification`` (`recorded_scores`); a task that was never set up is not scored.

    Raises
    ------
    InputError
        ``messages.json`` is no list of messages.
    """
    result, usage = data["execution_result"], dict_of(data.get("token_usage"))
    service, name = str(data.get("mcp") or "unknown"), str(data["task_name"])
    service = "playwright" if service == "playwright_webarena" else service  # as MCPMark's own tables count it
    messages, calls = _conversation(_messages(path), service)
    place = _place(path)
    effort = data.get("reasoning_effort")
    model = f"{data.get('model_name') or 'unknown'}{'' if effort in (None, 'default') else f'-{effort}'}"
    error, turns = text_or_none(result.get("error_message")), count_or_none(data.get("turn_count"))
    return [
        {
            "run_id": "/".join([*place["above"], model, service, f"run-{place['trial'] + 1}", name]),
            "task_id": f"{service}/{name}",
            "category": name.partition("__")[0],
            "agent": f"mcpmark:{model}",
            "model": text_or_none(data.get("litellm_run_model_name")) or text_or_none(data.get("model_name")),
            "trial": place["trial"],
            "question": said_last(messages[:2], "user"),
            "output": said_last(messages, "assistant"),
            "messages": messages,
            "tool_calls": [call.to_dict() for call in calls],
            "status": "error" if error else "ok",
            "error": error,
            "error_class": error and _class_of(error),
            "turns": answers_in(messages) if turns is None else turns,
            "n_tool_calls": len(calls),
            "tokens_in": count_or_none(usage.get("input_tokens")),
            "tokens_out": count_or_none(usage.get("output_tokens")),
            "seconds": number_or_none(data.get("agent_execution_time")),
            "metadata": {
                "source": "mcpmark",
                "service": service,
                "experiment": place["above"][-1] if place["above"] else None,
                "execution_result": dict(result),
                "task_execution_time": data.get("task_execution_time"),
                "started": dict_of(data.get("time")).get("start"),
                "scores": {"verification": _verdict(result)},
            },
        }
    ]


def _place(path: Path | None) -> dict[str, Any]:
    """What the folders above a ``meta.json`` say: the trial, and the experiment where there is one."""
    names = [] if path is None else [parent.name for parent in path.absolute().parents]
    run = names[1] if len(names) > 1 else ""
    number = re.fullmatch(r"run-(\d+)", run)
    above = names[3:4] if len(names) > 2 and "__" in names[2] else []
    return {"trial": max(int(number[1]) - 1, 0) if number else 0, "above": [name for name in above if name]}


def _messages(path: Path | None) -> list[Any]:
    beside = None if path is None else path.with_name(BESIDE)
    if beside is None or not beside.is_file():
        return []
    try:
        found = json.loads(beside.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{BESIDE} beside it cannot be read: {error}") from error
    if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
        raise InputError(f"{BESIDE} beside it is {found!r:.80}; expected a list of messages")
    return found


def _verdict(result: Mapping[str, Any]) -> dict[str, Any]:
    said, wrong = text_or_none(result.get("verification_output")), text_or_none(result.get("verification_error"))
    success, error = result.get("success") is True, text_or_none(result.get("error_message"))
    if not success and error and "setup failed" in error.lower() and not (said or wrong):
        return verdict(None, status="error", error=error)  # nothing was verified
    return verdict(float(success), "\n".join(text for text in (said, wrong) if text), passed=success)


def _class_of(error: str) -> str:
    low = error.lower()
    return next((kind for words, kind in _CLASSES.items() if words in low), "model")


# --- the conversation ----------------------------------------------------------------------------


def _conversation(items: Sequence[Mapping[str, Any]], server: str) -> tuple[list[dict[str, Any]], list[ToolCall]]:
    """Chat messages and the calls in them, whichever of the two forms the items have."""
    messages: list[dict[str, Any]] = []
    for item in items:
        kind = item.get("type")
        if kind == "function_call":
            asked = {"name": str(item.get("name") or "unknown"), "arguments": item.get("arguments") or "{}"}
            call = {"id": item.get("call_id"), "type": "function", "function": asked}
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "content": None})
            messages[-1].setdefault("tool_calls", []).append(call)
        elif kind == "function_call_output":
            content = _told(item.get("output"))
            messages.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": content})
        elif kind == "message":
            messages.append(
                {"role": str(item.get("role") or "assistant"), "content": content_text(item.get("content"))}
            )
        else:
            messages.append({**item, "role": str(item.get("role") or "user")})
    calls = [replace(_opened(call), server=server) for call in tool_calls_of(messages)]
    return messages, calls


def _told(output: Any) -> Any:
    """The text that the model got: MCPMark wraps it in a part of its own."""
    part = _json(output)
    return part["text"] if isinstance(part.get("text"), str) else output


def _opened(call: ToolCall) -> ToolCall:
    """The call with its wire result, of which the text that the model got is the JSON."""
    part = (dicts_of(dict_of(call.result).get("content")) or [{}])[0]
    text = part.get("text")
    found = _json(text)
    if isinstance(found.get("content"), list):
        return replace(call, result=dict(found), is_error=bool(found.get("isError")))
    if isinstance(text, str) and text.startswith("Error: "):  # the server did not answer, or refused
        return replace(call, result=wire_result(text, is_error=True), is_error=True)
    return call


def _json(text: Any) -> Mapping[str, Any]:
    try:
        return dict_of(json.loads(text)) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
