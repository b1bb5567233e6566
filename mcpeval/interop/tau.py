"""Transcripts of tau-bench and tau2-bench as runs.

tau-bench's result file is a list of records with ``traj`` and ``reward``; tau2's is one object with
``tasks`` and ``simulations``.  `mcpeval.read_runs` reads both.  The reward is
``metadata["reward"]``, and a scores frame of it `mcpeval.interop.recorded_scores`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..messages import from_openai, wire_result
from ..types import ToolCall
from .shapes import count_or_none, dict_of, dicts_of, number_or_none, said_last, text_or_none, verdict

# What ended a simulation of tau2 that the agent is to be blamed for: it ran out of steps, or of errors.
_LIMITS = ("max_steps", "too_many_errors")
_ENDED = ("user_stop", "agent_stop")


def reads(data: Any) -> bool:
    """Whether parsed JSON is a result file of tau-bench or of tau2-bench."""
    if isinstance(data, Mapping):
        return isinstance(data.get("simulations"), list) and isinstance(data.get("tasks"), list)
    return isinstance(data, list) and bool(data) and all(isinstance(one, Mapping) and "traj" in one for one in data)


def rows(data: Any, path: Path | None = None) -> list[dict[str, Any]]:
    """The rows of a runs frame, one for each trajectory.

    Parameters
    ----------
    data : list or dict
        The parsed result file.
    path : path-like, optional
        Of the file; not read.

    Returns
    -------
    list of dict
        ``expected_tool_calls`` are the task's actions: those of the agent, where the simulated user
        acts as well. ``question`` is the user's instruction, ``reference`` what has to be said to
        the user, ``output`` the agent's last words. ``metadata`` has ``source``, ``reward``,
        ``reward_info``, ``scores`` (`recorded_scores`), and of tau2 ``termination_reason`` and ``user_tool_calls``.
        tau-bench does not name the model, and gives no cost of the agent's.

    Raises
    ------
    InputError
        A record has not what it should.
    """
    if isinstance(data, Mapping):
        tasks = {str(task.get("id")): task for task in dicts_of(data["tasks"])}
        return [
            _tau2(record, tasks, dict_of(data.get("info")), place) for place, record in enumerate(data["simulations"])
        ]
    return [_tau_bench(record, place) for place, record in enumerate(data)]


# --- tau-bench -----------------------------------------------------------------------------------


def _tau_bench(record: Mapping[str, Any], place: int) -> dict[str, Any]:
    messages, info = _list(record, "traj", place), dict_of(record.get("info"))
    task, error = dict_of(info.get("task")), info.get("error")
    calls = [_marked(call) for call in from_openai(messages)]
    return {
        **_base("tau-bench", record, messages, calls),
        "run_id": f"{record.get('task_id')}-{record.get('trial', 0)}",
        "question": task.get("instruction"),
        "reference": task.get("outputs") or None,
        "expected_tool_calls": _actions(task.get("actions")),
        "status": "error" if error else "ok",
        "error": error,
        "error_class": "harness" if error else None,
        "metadata": {
            "source": "tau-bench",
            "reward": record.get("reward"),
            "reward_info": info.get("reward_info"),
            "scores": {"reward": _verdict(record.get("reward"), error)},
        },
    }


def _marked(call: ToolCall) -> ToolCall:
    """tau-bench's tools say in their text that they failed: ``Error: ...``."""
    content = dicts_of(dict_of(call.result).get("content")) or [{}]
    failed = str(content[0].get("text", "")).startswith("Error")
    return ToolCall(None, call.name, call.arguments, {**call.result, "isError": True}, True) if failed else call


# --- tau2 ----------------------------------------------------------------------------------------


def _tau2(record: Mapping[str, Any], tasks: Mapping[str, Any], info: Mapping[str, Any], place: int) -> dict[str, Any]:
    given = _list(record, "messages", place)
    task = tasks.get(str(record.get("task_id")), {})
    criteria, agent = dict_of(task.get("evaluation_criteria")), dict_of(info.get("agent_info"))
    messages = [_chat(message) for message in given if message.get("requestor") != "user"]
    reason, reward = record.get("termination_reason"), dict_of(record.get("reward_info"))
    bad = reason not in (None, *_ENDED)
    answers = [message for message in given if message.get("role") == "assistant"]
    return {
        **_base("tau2", record, messages, _tau2_calls(given, "assistant")),
        "run_id": record.get("id") or f"{record.get('task_id')}-{record.get('trial', 0)}",
        "category": dict_of(info.get("environment_info")).get("domain_name"),
        "agent": agent.get("implementation"),
        "model": agent.get("llm"),
        "question": _instructions(task),
        "reference": criteria.get("communicate_info") or None,
        "expected_tool_calls": _actions(criteria.get("actions")),
        "status": "error" if bad else "ok",
        "error": f"the simulation ended by {reason}" if bad else None,
        "error_class": ("turn_limit" if reason in _LIMITS else "harness") if bad else None,
        "tokens_in": _tokens(answers, "prompt_tokens"),
        "tokens_out": _tokens(answers, "completion_tokens"),
        "cost_usd": number_or_none(record.get("agent_cost")),
        "seconds": number_or_none(record.get("duration")),
        "metadata": {
            "source": "tau2",
            "reward": reward.get("reward"),
            "reward_info": record.get("reward_info"),
            "scores": {"reward": _verdict(reward.get("reward"), None)},
            "termination_reason": reason,
            "user_tool_calls": [call.to_dict() for call in _tau2_calls(given, "user")],
        },
    }


def _tau2_calls(messages: Sequence[Mapping[str, Any]], requestor: str) -> list[ToolCall]:
    answers = {str(one.get("id")): one for one in messages if one.get("role") == "tool" and _by(one) == requestor}
    calls = []
    for message in messages:
        for asked in dicts_of(message.get("tool_calls")):
            if _by(asked) == requestor:
                answer = answers.get(str(asked.get("id")))
                failed = bool(answer and answer.get("error"))
                result = answer and wire_result(answer.get("content"), is_error=failed)
                calls.append(ToolCall(None, str(asked.get("name")), asked.get("arguments") or {}, result, failed))
    return calls


def _by(given: Mapping[str, Any]) -> str:
    return given.get("requestor") or "assistant"


def _chat(message: Mapping[str, Any]) -> dict[str, Any]:
    """One of tau2's messages as an OpenAI chat message; the user's own tools stay out of it."""
    if message.get("role") == "tool":
        return {"role": "tool", "tool_call_id": message.get("id"), "content": message.get("content")}
    chat = {"role": message.get("role"), "content": message.get("content")}
    calls = [
        {
            "id": call.get("id"),
            "type": "function",
            "function": {"name": call.get("name"), "arguments": json.dumps(call.get("arguments") or {})},
        }
        for call in dicts_of(message.get("tool_calls"))
        if _by(call) != "user"
    ]
    return {**chat, "tool_calls": calls} if calls else chat


def _instructions(task: Mapping[str, Any]) -> str | None:
    given = dict_of(task.get("user_scenario")).get("instructions")
    if not isinstance(given, Mapping):
        return text_or_none(given)
    parts = (given.get(key) for key in ("reason_for_call", "known_info", "unknown_info", "task_instructions"))
    return "\n".join(part for part in parts if isinstance(part, str) and part)


def _tokens(answers: Sequence[Mapping[str, Any]], kind: str) -> int | None:
    counts = [count_or_none(dict_of(answer.get("usage")).get(kind)) for answer in answers if answer.get("usage")]
    return sum(counts) if counts and None not in counts else None


# --- both ----------------------------------------------------------------------------------------


def _verdict(reward: Any, error: Any) -> dict[str, Any]:
    """The reward; a run that its harness broke off has one of 0, which says nothing of the agent."""
    if error or reward is None:
        return verdict(None, status="error", error=str(error or "the simulation was not rewarded"))
    if number_or_none(reward) is None or reward > 1:
        return verdict(None, label=reward, status="unparsed", error=f"the reward {reward!r:.60} is not from 0 to 1")
    return verdict(reward)


def _base(source: str, record: Mapping[str, Any], messages: Sequence[Any], calls: Sequence[ToolCall]) -> dict[str, Any]:
    answers = [message for message in messages if message.get("role") == "assistant"]
    return {
        "task_id": str(record.get("task_id")),
        "agent": source,
        "trial": count_or_none(record.get("trial")) or 0,
        "output": said_last(messages, "assistant"),
        "messages": list(messages),
        "tool_calls": [call.to_dict() for call in calls],
        "turns": len(answers),
        "n_tool_calls": len(calls),
    }


def _actions(given: Any) -> list[dict[str, Any]] | None:
    if not isinstance(given, list):
        return None
    actions = []
    for action in dicts_of(given):
        if _by(action) == "assistant":
            call = {"name": action.get("name"), "arguments": action.get("arguments", action.get("kwargs")) or {}}
            extra = {"id": action.get("action_id"), "compare_args": action.get("compare_args")}
            actions.append({**call, **{key: value for key, value in extra.items() if value is not None}})
    return actions


def _list(record: Any, key: str, place: int) -> list[Any]:
    given = record.get(key) if isinstance(record, Mapping) else None
    if not isinstance(given, list) or not all(isinstance(one, Mapping) for one in given):
        raise InputError(f"record {place}: {key}={given!r:.100} should be a list of messages")
    return given
