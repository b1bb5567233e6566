"""LiveMCPBench's trajectories and its judges' results as runs.

``baseline/output/MODEL_EMBEDDING.json`` is a list of tasks with the agent's ``messages`` and ``response``,
``baseline/annotation/...`` the same with the human label ``task_success``, and
``evaluator/output/JUDGE/MODEL_EMBEDDING.json`` what a judge said of each. `mcpeval.read_runs` reads one
of these files, or the folder of several: then what was said of one trajectory is put together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..messages import from_openai
from ..types import ToolCall
from .shapes import answers_in, dict_of, dicts_of, text_or_none, verdict

# The one server that its agents see: it finds tools, and makes the calls on the servers that have them.
_ROUTER, _EXECUTE = "mcp-copilot", "execute-tool"


def reads(data: Any) -> bool:
    """Whether parsed JSON is a list of LiveMCPBench's trajectories, or of a judge's results on them."""
    return (
        isinstance(data, list)
        and bool(data)
        and all(
            isinstance(one, Mapping)
            and {"task_id", "messages", "response", "category"} <= one.keys()
            and ("Question" in one or {"question", "judge", "reward"} <= one.keys())
            for one in data
        )
    )


def rows(data: Any, path: Path | None = None) -> list[dict[str, Any]]:
    """The rows of a runs frame, one for each trajectory.

    Parameters
    ----------
    data : list of dict
        The parsed file.
    path : path-like, optional
        Of the file, whose name is that of the model and of the embedding: ``agent`` is that name. A
        judge is named by the folder.

    Returns
    -------
    list of dict
        A call of ``execute-tool`` is one of the tool that it names, on the server that it names; one of
        ``route`` is of the server ``mcp-copilot``. ``key_points`` are the annotator's steps,
        ``reference`` the annotator's answer. ``metadata["scores"]`` has ``human`` (the label
        ``task_success``) or the judge's verdict (`recorded_scores`).

    Raises
    ------
    InputError
        A message has not what it should.
    """
    path = Path(path or "livemcpbench.json")
    return [_row(record, place, path) for place, record in enumerate(data)]


def joined(earlier: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    """One row of two files' rows on the same trajectory: the earlier, filled up by the later, with both verdicts."""
    known = {key: value for key, value in earlier.items() if value not in (None, [])}
    first, then = earlier["metadata"], later["metadata"]
    about = {**then, **{key: value for key, value in first.items() if value is not None}}
    return {**later, **known, "metadata": {**about, "scores": {**first["scores"], **then["scores"]}}}


def _row(record: Mapping[str, Any], place: int, path: Path) -> dict[str, Any]:
    messages = record["messages"]
    if not isinstance(messages, list) or not all(isinstance(one, Mapping) for one in messages):
        raise InputError(f"record {place}: messages={messages!r:.100} should be a list of messages")
    task_id, annotated = str(record["task_id"]), dict_of(record.get("Annotator Metadata"))
    calls = [_call(call) for call in from_openai(messages)]
    return {
        "run_id": f"{path.stem}/{task_id}",
        "task_id": task_id,
        "category": text_or_none(record["category"]),
        "agent": path.stem,
        "question": text_or_none(record.get("Question") or record.get("question")),
        "reference": text_or_none(record.get("answers")),
        "key_points": text_or_none(annotated.get("Steps")),
        "output": text_or_none(record["response"]),
        "messages": [dict(one) for one in messages],
        "tool_calls": [call.to_dict() for call in calls],
        **_end(record),
        "turns": answers_in(messages),
        "n_tool_calls": len(calls),
        "metadata": {
            "source": "livemcpbench",
            "task_success": record.get("task_success"),
            "annotator": dict(annotated) or None,
            "file_name": text_or_none(record.get("file_name")),
            "scores": _verdicts(record, path.parent.name),
        },
    }


def _end(record: Mapping[str, Any]) -> dict[str, Any]:
    """What broke off the conversation stands in its last message, and after ``Error:`` in the response."""
    last = dicts_of(record["messages"])[-1:]
    words = str(last[0].get("content")) if last else ""
    if words and record["response"] == f"Error: {words}":
        return {"status": "error", "error": words, "error_class": "harness"}
    return {"status": "ok"}


def _call(call: ToolCall) -> ToolCall:
    """The tool's own call; whether it failed stands at the end of the result's Python text, where that is whole."""
    part = (dict_of(call.result).get("content") or [{}])[0]
    text = str(part.get("text", ""))
    failed = text.endswith("isError=True") or text.startswith(("Error: ", "Tool call timed out"))
    if failed and call.result is not None:
        call = replace(call, result={**call.result, "isError": True}, is_error=True)
    asked = dict_of(call.arguments)
    if call.name == _EXECUTE and isinstance(asked.get("tool_name"), str) and isinstance(asked.get("server_name"), str):
        return replace(call, server=asked["server_name"], name=asked["tool_name"], arguments=asked.get("params") or {})
    return replace(call, server=_ROUTER)


def _verdicts(record: Mapping[str, Any], judge: str) -> dict[str, Any]:
    """The human label and the judge's verdict, in their own reading: the word ``success`` anywhere passes."""
    said = {}
    if isinstance(label := record.get("task_success"), str):
        said["human"] = _verdict(label, "")
    if isinstance(word := record.get("judge"), str):
        said[judge or "judge"] = _verdict(word, record.get("judge_reason"), judge_model=judge or None)
    return said


def _verdict(word: str, reason: Any, judge_model: str | None = None) -> dict[str, Any]:
    low = word.lower()
    if "success" not in low and "failure" not in low:
        about = {"label": word, "status": "unparsed", "error": "neither 'success' nor 'failure'"}
        return verdict(None, reason, judge_model=judge_model, **about)
    passed = "success" in low
    return verdict(float(passed), reason, passed=passed, label=word, judge_model=judge_model)
