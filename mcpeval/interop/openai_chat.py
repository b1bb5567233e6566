"""Conversations in OpenAI's JSON lines as runs: fine-tuning examples, batch requests and batch answers.

A line is an object with ``messages`` (and no ``output``, which would make it a row of ours), a batch's
request ``{"custom_id", "body": {"messages"}}``, a batch's answer
``{"custom_id", "response": {"status_code", "body": {"choices"}}, "error"}``, or an answer of the API itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..messages import tool_calls_of
from .shapes import answers_in, content_text, count_or_none, dict_of, dicts_of, said_last

_READ = {
    "messages",
    "custom_id",
    "id",
    "body",
    "response",
    "choices",
    "usage",
    "model",
    "error",
    "method",
    "url",
    "object",
}
_CLASSES = {408: "timeout", 429: "rate", 504: "timeout"}


def reads(data: Any) -> bool:
    """Whether parsed JSON is a list of such lines."""
    return isinstance(data, list) and bool(data) and all(isinstance(line, Mapping) and _is_chat(line) for line in data)


def _is_chat(line: Mapping[str, Any]) -> bool:
    if "output" in line:
        return False
    answer = dict_of(line.get("response"))
    return (
        _are_messages(line.get("messages"))
        or _are_messages(dict_of(line.get("body")).get("messages"))
        or isinstance(line.get("choices"), list)
        or ("custom_id" in line and ("body" in answer or "error" in line))
    )


def _are_messages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) and "role" in one for one in value)


def rows(data: Any, path: Path | None = None) -> list[dict[str, Any]]:
    """The rows of a runs frame, one for each line, or for each choice of a line's answer.

    Parameters
    ----------
    data : list of dict
        The parsed lines.
    path : path-like, optional
        Of the file; not read.

    Returns
    -------
    list of dict
        ``task_id`` is the line's ``custom_id`` or ``id``, else its number from 1; ``output`` the last words
        of the assistant, ``question`` those of the user before them; ``trial`` the number of the choice.
        ``metadata`` has ``source``, ``finish_reason`` and whatever else is on the line.

    Raises
    ------
    InputError
        A message has not what it should.
    """
    made: list[dict[str, Any]] = []
    for number, line in enumerate(data, start=1):
        try:
            made += _line(line, number)
        except InputError as error:
            raise InputError(f"line {number}: {error}") from error
    taken: set[str] = set()
    for row in made:  # a custom_id that stands on two lines
        if row["run_id"] in taken:
            row["run_id"] = f"{row['run_id']} (line {row['metadata']['line']})"
        taken.add(row["run_id"])
    return made


def _line(line: Mapping[str, Any], number: int) -> list[dict[str, Any]]:
    asked, answer = dict_of(line.get("body")), dict_of(line.get("response"))
    body = dict_of(answer.get("body")) or (line if "choices" in line else {})
    prompt = [dict(one) for one in dicts_of(line.get("messages") or asked.get("messages"))]
    named = next((line[key] for key in ("custom_id", "id") if isinstance(line.get(key), str | int)), number)
    base = {
        "task_id": str(named),
        "agent": "openai_chat",
        "model": next((one["model"] for one in (body, asked, line) if isinstance(one.get("model"), str)), None),
        **_failure(line, answer),
    }
    about = {"source": "openai_chat", "line": number, **{key: line[key] for key in line if key not in _READ}}
    choices = dicts_of(body.get("choices"))
    if not choices:
        return [_row(base, str(named), prompt, dict_of(body.get("usage")), about)]
    usage = dict_of(body.get("usage")) if len(choices) == 1 else {}  # the usage of several is not of each
    made = []
    for trial, choice in enumerate(choices):
        said = {**about, "finish_reason": choice.get("finish_reason")}
        if choice.get("finish_reason") == "length":
            said["truncated"] = True
        name = str(named) if len(choices) == 1 else f"{named}-{trial}"
        row = _row(base, name, [*prompt, *dicts_of([choice.get("message")])], usage, said)
        made.append({**row, "trial": trial})
    return made


def _row(
    base: Mapping[str, Any], run_id: str, messages: list[Any], usage: Mapping[str, Any], about: dict[str, Any]
) -> dict[str, Any]:
    calls = tool_calls_of(messages)
    spoke = [place for place, one in enumerate(messages) if one.get("role") == "assistant"]
    before = messages[: spoke[-1]] if spoke else messages
    return {
        **base,
        "run_id": run_id,
        "question": said_last(before, "user"),
        "output": content_text(messages[spoke[-1]].get("content")) if spoke else None,
        "messages": messages,
        "tool_calls": [call.to_dict() for call in calls],
        "turns": answers_in(messages),
        "n_tool_calls": len(calls),
        "tokens_in": count_or_none(usage.get("prompt_tokens")),
        "tokens_out": count_or_none(usage.get("completion_tokens")),
        "metadata": about,
    }


def _failure(line: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """A batch's request that was not answered: by the batch's own error, or by the status of the answer."""
    code, error = count_or_none(answer.get("status_code")), line.get("error")
    refused = code is not None and code >= 400
    if not refused and not error:
        return {"status": "ok"}
    told = dict_of(error) or dict_of(dict_of(answer.get("body")).get("error"))
    message = told.get("message") or (error if isinstance(error, str) else f"HTTP status {code}")
    return {"status": "error", "error": str(message), "error_class": _CLASSES.get(code, "model")}
