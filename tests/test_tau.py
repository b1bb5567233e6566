"""tau-bench and tau2-bench: their transcripts as runs, their own numbers out of ours."""

from __future__ import annotations

import json

import pytest

from mcpeval.errors import FileError
from mcpeval.evaluators.tool_use import tool_calls
from mcpeval.exporting import read_runs
from mcpeval.frames import RUN_COLUMNS, rows_of
from mcpeval.interop import tau
from mcpeval.scoring import score
from mcpeval.stats import pass_hat_k
from mcpeval.trajectories import tool_metrics


@pytest.fixture(scope="module")
def airline(conformance):
    return read_runs(conformance / "data" / "tau_bench" / "gpt-4o_airline_50x4.json")


@pytest.fixture(scope="module", params=["gpt-4o_airline_50x1.json", "gpt-4.1_retail_x1.json"])
def tau2(conformance, request):
    return read_runs(conformance / "data" / "tau2" / request.param)


# --- tau-bench -----------------------------------------------------------------------------------


def test_fifty_tasks_four_times_are_two_hundred_runs(airline):
    assert list(airline.columns) == [*RUN_COLUMNS, "expected_tool_calls"]
    assert len(airline) == 200
    assert airline["run_id"].is_unique
    assert (airline.groupby("task_id")["trial"].nunique() == 4).all()
    assert airline["status"].eq("ok").all()


def test_pass_hat_k_is_the_published_one(airline):
    rewards = score(airline, {"reward": lambda metadata: metadata["reward"]}, cache=False)
    by_task = rewards.groupby("task_id")["score"]
    found = [pass_hat_k(by_task.sum(), by_task.size(), k) for k in (1, 2, 3, 4)]
    assert [round(value, 3) for value in found] == [0.420, 0.273, 0.220, 0.200]


def test_its_calls_come_with_their_results_and_its_errors_are_errors(airline):
    assert airline["n_tool_calls"].sum() == 1164
    results = [call for calls in airline["tool_calls"] for call in calls]
    assert all(call["result"] is not None for call in results)
    assert sum(call["is_error"] for call in results) == 31 + 15 + 12 + 11 + 4  # by what they begin with
    metrics = tool_metrics(airline)
    assert metrics["n_err"].sum() == 73
    assert metrics["bad_json"].sum() == 0
    assert metrics["n_parallel"].sum() == 0  # tau-bench keeps one call of each answer


def test_its_actions_are_the_expected_calls(airline):
    first = rows_of(airline)[0]
    assert [call["name"] for call in first["expected_tool_calls"]] == ["book_reservation"]
    assert first["expected_tool_calls"][0]["arguments"]["insurance"] == "no"
    scores = score(airline, [tool_calls(score="recall")], cache=False)
    assert scores["status"].value_counts().to_dict() == {"ok": 174, "skipped": 26}  # 26 runs expect no call


def test_a_run_that_broke_down_is_the_harnesss_doing():
    [row] = tau.rows([{"task_id": 3, "trial": 1, "reward": 0.0, "info": {"error": "timeout"}, "traj": []}])
    assert (row["run_id"], row["status"], row["error_class"], row["output"]) == ("3-1", "error", "harness", None)


# --- tau2 ----------------------------------------------------------------------------------------


def test_simulations_are_runs_with_cost_tokens_and_time(tau2):
    assert len(tau2) in (40, 50)
    assert tau2["run_id"].is_unique
    assert set(tau2["category"]) <= {"airline", "retail"}
    assert tau2["cost_usd"].gt(0).all() and tau2["seconds"].gt(0).all() and tau2["tokens_in"].gt(0).all()
    assert tau2["n_tool_calls"].sum() in (277, 299)
    assert tool_metrics(tau2)["n_err"].sum() in (11, 12)


def test_its_messages_are_chat_messages_with_the_same_calls(tau2):
    for row in rows_of(tau2):
        again = [(call.name, call.arguments) for call in tau.from_openai(row["messages"])]
        assert again == [(call["name"], call["arguments"]) for call in row["tool_calls"]]


def test_its_own_action_checks_come_out(tau2):
    """tau2 compares at most the arguments given, and lets one call stand for several actions."""
    checked = 0
    for row in rows_of(tau2):
        theirs = [check["action_match"] for check in row["metadata"]["reward_info"]["action_checks"] or ()]
        expected = [{**call, "id": None} for call in row["expected_tool_calls"] or ()]
        assert [tool_calls([call], args="subset").evaluate(row).passed for call in expected] == theirs
        together = [one["matched"] for one in tool_calls(expected, args="subset").evaluate(row).metadata["calls"]]
        once = [place for place, call in enumerate(expected) if expected.count(call) == 1]
        assert [together[place] for place in once] == [theirs[place] for place in once]
        checked += len(theirs)
    assert checked in (148, 186)


def test_what_the_simulated_user_does_is_not_the_agents_doing():
    messages = [
        {"role": "user", "content": None, "tool_calls": [{"id": "u", "name": "reboot", "requestor": "user"}]},
        {"role": "tool", "id": "u", "requestor": "user", "content": "done"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "name": "look", "arguments": {"x": 1}}]},
        {"role": "tool", "id": "a", "requestor": "assistant", "content": "no", "error": True},
        {"role": "assistant", "content": "Done."},
    ]
    actions = [
        {"action_id": "1", "requestor": "user", "name": "reboot", "arguments": {}},
        {"action_id": "2", "requestor": "assistant", "name": "look", "arguments": {"x": 1}, "compare_args": ["x"]},
    ]
    data = {
        "tasks": [{"id": "t", "evaluation_criteria": {"actions": actions}}],
        "simulations": [{"id": "s", "task_id": "t", "messages": messages, "termination_reason": "max_steps"}],
    }
    assert tau.reads(data)
    [row] = tau.rows(data)
    assert [(call["name"], call["is_error"]) for call in row["tool_calls"]] == [("look", True)]
    assert row["expected_tool_calls"] == [{"name": "look", "arguments": {"x": 1}, "id": "2", "compare_args": ["x"]}]
    assert [call["name"] for call in row["metadata"]["user_tool_calls"]] == ["reboot"]
    assert (row["status"], row["error_class"], row["output"]) == ("error", "turn_limit", "Done.")
    assert tool_calls().evaluate(row).passed is True


# --- the file ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "no JSON"),
        (json.dumps([{"output": "x"}]), "no known form of transcripts"),
        (json.dumps([{"traj": "x"}]), r"record 0: traj='x'.* should be a list of messages"),
        (json.dumps({"tasks": [], "simulations": [{}]}), "record 0: messages=None"),
    ],
)
def test_a_json_file_of_another_form_is_refused(tmp_path, text, message):
    path = tmp_path / "runs.json"
    path.write_text(text)
    with pytest.raises(FileError, match=message):
        read_runs(path)


def test_pass_hat_k_by_hand():
    assert pass_hat_k([4, 2], [4, 4], 2) == (1 + 1 / 6) / 2
    assert pass_hat_k([0], [3], 1) == 0.0
    assert str(pass_hat_k([1], [1], 2)) == "nan"
    assert str(pass_hat_k([], [], 1)) == "nan"
