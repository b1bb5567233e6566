"""Logs of other systems with anything anywhere in them: a row with less in it, or a `FileError`, never a traceback."""

from __future__ import annotations

import contextlib
import copy
import functools
import json

import pytest

from mcpeval.errors import FileError, InputError
from mcpeval.exporting import read_runs
from mcpeval.interop import recorded_scores

JUNK = [None, 3, float("nan"), "x", [], {"a": 1}, [3], [[1]], 2**70, [{"role": "assistant"}]]
LOGS = {
    "tau": [{
        "task_id": 1, "reward": 1.0, "trial": 0, "info": {"error": None, "reward_info": {}, "task": {
            "instruction": "i", "outputs": ["o"], "actions": [{"name": "f", "kwargs": {"a": 1}}]}},
        "traj": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "1", "name": "f", "content": "Error: no"}],
    }],
    "tau2": {
        "info": {"agent_info": {"llm": "m", "implementation": "i"}, "environment_info": {"domain_name": "d"}},
        "tasks": [{"id": "1", "user_scenario": {"instructions": {"known_info": "k"}}, "evaluation_criteria": {
            "actions": [{"name": "f", "arguments": {}, "requestor": "assistant"}], "communicate_info": ["c"]}}],
        "simulations": [{
            "id": "s", "task_id": "1", "trial": 0, "agent_cost": 0.1, "duration": 1.0, "reward_info": {"reward": 1.0},
            "termination_reason": "user_stop", "messages": [
                {"role": "assistant", "content": None, "usage": {"prompt_tokens": 1, "completion_tokens": 2},
                 "tool_calls": [{"id": "1", "name": "f", "arguments": {"a": 1}, "requestor": "assistant"}]},
                {"role": "tool", "id": "1", "content": "r", "error": False, "requestor": "assistant"}],
        }],
    },
    "inspect": {
        "version": 2, "status": "success", "eval": {"model": "m/x", "task": "t", "task_id": "q"},
        "samples": [{
            "id": "a", "epoch": 1, "input": [{"role": "user", "content": "q"}], "target": ["x"], "messages": [
                {"role": "assistant", "content": [{"type": "text", "text": "a"}],
                 "tool_calls": [{"id": "1", "function": "f", "arguments": {"a": 1}}]},
                {"role": "tool", "tool_call_id": "1", "function": "f", "content": "r", "error": {"message": "e"}}],
            "output": {"model": "m", "completion": "a"}, "attachments": {"k": "v"}, "total_time": 1.0,
            "scores": {"s": {"value": "C", "answer": "a", "explanation": "e", "metadata": {"x": 1}}},
            "model_usage": {"m/x": {"input_tokens": 1, "output_tokens": 2}}, "limit": {"type": "time", "limit": 3},
            "events": [{"event": "tool", "id": "1", "working_time": 0.1}], "metadata": {"mcpeval": {"trial": 0}},
        }],
    },
    "chat": [{"custom_id": "a", "error": None, "response": {"status_code": 200, "body": {
        "model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 2}, "choices": [{"finish_reason": "stop",
            "message": {"role": "assistant", "content": "x", "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}}]}}}],
}  # fmt: skip


def places(value):
    """The path to everything that stands in `value`."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield (key,)
        yield from ((key, *rest) for rest in places(item))


@pytest.mark.parametrize("form", LOGS)
def test_whatever_stands_anywhere_in_a_log_is_a_row_or_said_to_be_damaged(form, tmp_path):
    path = tmp_path / ("log.jsonl" if form == "chat" else "log.json")
    for place in places(LOGS[form]):
        for junk in JUNK:
            log = copy.deepcopy(LOGS[form])
            inner = functools.reduce(lambda value, key: value[key], place[:-1], log)
            inner[place[-1]] = junk
            path.write_text("\n".join(map(json.dumps, log)) if form == "chat" else json.dumps(log))
            with contextlib.suppress(FileError):
                frame = read_runs(path)
                with contextlib.suppress(InputError):
                    recorded_scores(frame)
