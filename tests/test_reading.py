"""Other systems' files and folders as runs, and what they said of them as scores."""

from __future__ import annotations

import json
import shutil

import pandas as pd
import pytest

import mcpeval
from mcpeval.cli import main
from mcpeval.errors import FileError, InputError
from mcpeval.exporting import read_runs, to_csv, to_jsonl
from mcpeval.frames import RUN_COLUMNS, rows_of, runs_frame
from mcpeval.interop import recorded_scores


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")
    return path


def write_lines(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


# --- recorded verdicts ---------------------------------------------------------------------------


def test_tau_benchs_recorded_rewards_give_its_published_pass_hat_k(conformance):
    runs = read_runs(conformance / "data" / "tau_bench" / "gpt-4o_airline_50x4.json")
    scores = recorded_scores(runs)
    assert scores["evaluator"].unique().tolist() == ["reward"] and scores["kind"].unique().tolist() == ["recorded"]
    table = mcpeval.pass_at_k(scores, k=[1, 2, 3, 4])
    assert table["pass_hat_k"].round(3).tolist() == [0.420, 0.273, 0.220, 0.200]
    assert mcpeval.summarize(scores)["score"].round(3).tolist() == [0.420]


def test_tau2s_recorded_rewards_are_its_rewards(conformance):
    runs = read_runs(conformance / "data" / "tau2" / "gpt-4o_airline_50x1.json")
    scores = recorded_scores(runs)
    assert scores["score"].tolist() == [cell["reward"] for cell in runs["metadata"]]


def test_a_tau_bench_run_that_broke_down_is_not_scored():
    from mcpeval.interop import tau

    rows = tau.rows(
        [{"task_id": 3, "reward": 0.0, "info": {"error": "timeout"}, "traj": []}, {"task_id": 4, "traj": []}]
    )
    scores = recorded_scores(runs_frame([{**row, "run_id": str(i)} for i, row in enumerate(rows)]))
    assert scores["status"].tolist() == ["error", "error"] and scores["score"].isna().all()
    assert scores["error"].tolist() == ["timeout", "the simulation was not rewarded"]


def test_the_index_of_the_runs_is_kept_and_runs_without_verdicts_are_refused():
    said = {"a": {"score": 1.0, "status": "ok"}, "b": {"score": 0.5, "status": "ok", "reason": "half"}}
    runs = pd.DataFrame({"run_id": ["r"], "output": ["x"], "metadata": [{"scores": said}]}, index=["label"])
    scores = recorded_scores(runs)
    assert scores.index.tolist() == ["label", "label"] and scores["reason"].tolist() == ["", "half"]
    assert "task_id" not in scores.columns
    with pytest.raises(InputError, match="no run has a recorded verdict"):
        recorded_scores(runs.drop(columns="metadata"))
    with pytest.raises(InputError, match="runs is a list"):
        recorded_scores([])


# --- OpenAI's JSON lines -------------------------------------------------------------------------

CALL = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"x": 1}'}}
CHAT = [
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": "first"},
    {"role": "assistant", "content": "yes?"},
    {"role": "user", "content": [{"type": "text", "text": "What is"}, {"type": "text", "text": "1 + 1?"}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "2"},
    {"role": "assistant", "content": "2"},
]


def test_fine_tuning_examples_are_runs(tmp_path):
    path = write_lines(tmp_path / "train.jsonl", [{"messages": CHAT, "topic": "sums"}, {"messages": CHAT[:2]}])
    runs = read_runs(path)
    assert list(runs.columns) == list(RUN_COLUMNS)
    first, second = rows_of(runs)
    assert (first["run_id"], first["question"], first["output"], first["turns"]) == ("1", "What is\n1 + 1?", "2", 3)
    assert first["messages"] == CHAT and first["metadata"]["topic"] == "sums"
    [call] = first["tool_calls"]
    assert (call["name"], call["arguments"], call["result"]["content"][0]["text"]) == ("add", {"x": 1}, "2")
    assert (second["run_id"], second["question"], second["output"], second["turns"]) == ("2", "first", None, 0)
    assert first["tokens_in"] is None and first["cost_usd"] is None


def test_a_batchs_requests_and_answers_are_runs(tmp_path):
    request = {
        "custom_id": "q1",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": "m", "messages": CHAT[:2]},
    }
    [row] = rows_of(read_runs(write_lines(tmp_path / "in.jsonl", [request])))
    assert (row["run_id"], row["task_id"], row["model"], row["question"], row["output"]) == (
        "q1",
        "q1",
        "m",
        "first",
        None,
    )
    said = {"role": "assistant", "content": "cut", "tool_calls": [CALL]}
    choices = [{"index": 0, "finish_reason": "length", "message": said}]
    body = {"model": "m-1", "usage": {"prompt_tokens": 7, "completion_tokens": 3}, "choices": choices}
    twice = {**body, "choices": [{"message": {"role": "assistant", "content": text}} for text in ("a", "b")]}
    answers = [
        {"id": "b1", "custom_id": "q1", "response": {"status_code": 200, "body": body}, "error": None},
        {"id": "b2", "custom_id": "q2", "response": {"status_code": 200, "body": twice}, "error": None},
        {"id": "b3", "custom_id": "q3", "response": {"status_code": 429, "body": {"error": {"message": "slow down"}}}},
        {"id": "b4", "custom_id": "q4", "response": None, "error": {"code": "batch_expired", "message": "too late"}},
    ]
    runs = read_runs(write_lines(tmp_path / "out.jsonl", answers))
    assert runs["run_id"].tolist() == ["q1", "q2-0", "q2-1", "q3", "q4"]
    assert runs["task_id"].tolist() == ["q1", "q2", "q2", "q3", "q4"] and runs["trial"].tolist() == [0, 0, 1, 0, 0]
    assert runs["output"].tolist()[:3] == ["cut", "a", "b"]
    assert runs["tokens_in"].tolist()[:1] == [7] and runs["tokens_in"].isna().tolist() == [False, *[True] * 4]
    assert runs["metadata"][0]["truncated"] is True and runs["n_tool_calls"][0] == 1
    assert runs["error_class"].tolist()[3:] == ["rate", "model"] and runs["error"].tolist()[3:] == [
        "slow down",
        "too late",
    ]


def test_our_own_json_lines_stay_our_own(tmp_path):
    runs = runs_frame([{"run_id": "r", "output": "x", "messages": CHAT, "metadata": {"a": 1}}])
    pd.testing.assert_frame_equal(read_runs(to_jsonl(runs, tmp_path / "runs.jsonl")), runs)
    path = write_lines(tmp_path / "mixed.jsonl", [{"messages": CHAT}, {"text": "no messages"}])
    assert list(read_runs(path).columns) == ["messages", "text"]


def test_a_call_without_a_name_is_refused_with_its_line(tmp_path):
    bad = [{"role": "assistant", "tool_calls": [{"id": "c", "function": {}}]}]
    path = write_lines(tmp_path / "x.jsonl", [{"messages": CHAT}, {"messages": bad}])
    with pytest.raises(FileError, match=r"x\.jsonl: line 2: .*tool call with a 'name'"):
        read_runs(path)
    same = read_runs(write_lines(tmp_path / "x.jsonl", [{"custom_id": "a", "body": {"messages": CHAT}}] * 2))
    assert same["run_id"].is_unique


# --- LiveMCPBench --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def livemcpbench(conformance):
    return conformance / "data" / "livemcpbench"


def test_livemcpbenchs_trajectories_are_runs_with_the_tools_that_were_called(livemcpbench):
    runs = read_runs(livemcpbench / "trajectories_with_human_label.json")
    assert len(runs) == 95 and runs["run_id"].is_unique
    assert runs["category"].value_counts().to_dict() == {
        "work": 31, "daily": 15, "entertainment": 14, "financing": 14, "travel": 12, "shopping": 9,
    }  # fmt: skip
    calls = [call for cell in runs["tool_calls"] for call in cell]
    assert sum(call["server"] == "mcp-copilot" for call in calls) == 283  # route
    assert sum(call["server"] != "mcp-copilot" for call in calls) == 531  # execute-tool
    assert sum(call["is_error"] for call in calls) == 14 + 14  # "isError=True", "Tool call timed out."
    first = next(call for call in runs["tool_calls"][0] if call["server"] != "mcp-copilot")
    assert "tool_name" not in first["arguments"] and first["name"] != "execute-tool"
    assert runs["status"].value_counts().to_dict() == {"ok": 94, "error": 1}  # "Connection error."
    assert runs["key_points"][0].startswith("1. Getting the current trends")
    scores = recorded_scores(runs)
    assert scores["passed"].sum() == 67 and scores["label"].value_counts().to_dict() == {"success": 67, "failure": 28}


def test_livemcpbenchs_folder_gives_the_published_agreement_of_its_judges(livemcpbench, tmp_path):
    """The folders as run_conversation.py and llm_as_judge_baseline.py of icip-cas/LiveMCPBench write them."""
    name = "claude-sonnet-4-20250514_Qwen3-Embedding-0.6B.json"
    (tmp_path / "baseline" / "annotation").mkdir(parents=True)
    shutil.copyfile(livemcpbench / "trajectories_with_human_label.json", tmp_path / "baseline" / "annotation" / name)
    judged = pd.read_json(livemcpbench / "judge_texts_10x95.jsonl", lines=True)
    for judge, rows in judged.groupby("judge_model"):
        results = [
            {"task_id": row.task_id, "question": "q", "judge": row.judge, "judge_reason": row.judge_reason,
             "reward": int("success" in row.judge.lower()), "category": row.category, "response": "", "messages": []}
            for row in rows.itertuples()
        ]  # fmt: skip
        write(tmp_path / "evaluator" / "output" / judge.replace("/", "_") / name, results)
    runs = read_runs(tmp_path)
    assert len(runs) == 95 and runs["output"].notna().all()
    scores = recorded_scores(runs)
    human = scores[scores["evaluator"] == "human"].set_index("run_id")["passed"]
    judges = scores[scores["evaluator"] != "human"]
    # Where a text says neither word, they count a failure and we count nothing.
    judges = judges.assign(passed=judges["passed"].fillna(False), status="ok")
    found = mcpeval.agreement(judges, human).set_index("evaluator")["accuracy"]
    published = pd.read_csv(livemcpbench / "human_agreement_published.csv").set_index("Model")["human_agreement"]
    assert (100 * found).round(2).sort_values().tolist() == published.drop("human").sort_values().tolist()


def test_a_judges_word_that_says_neither_is_unparsed(tmp_path):
    record = {"task_id": "t", "question": "q", "judge": "I cannot say", "judge_reason": "Thoughts extract failed.",
              "reward": 0, "category": "work", "response": "done", "messages": []}  # fmt: skip
    [row] = rows_of(recorded_scores(read_runs(write(tmp_path / "gpt-x" / "m_e.json", [record]))))
    assert (row["evaluator"], row["score"], row["status"], row["judge_model"]) == ("gpt-x", None, "unparsed", "gpt-x")
    with pytest.raises(FileError, match=r"record 0: messages='x' should be a list"):
        read_runs(write(tmp_path / "m.json", [{**record, "messages": "x"}]))


# --- MCPMark -------------------------------------------------------------------------------------


def meta(task="papers__find_math_paper", success=True, **more):
    """``meta.json`` as ``ResultsReporter.save_meta_json`` (src/results_reporter.py) of eval-sys/mcpmark writes it."""
    result = {
        "success": success, "error_message": None, "verification_error": None if success else "no such file\n",
        "verification_output": "all there\n" if success else None,
    }  # fmt: skip
    return {
        "task_name": task, "model_name": "gpt-5", "litellm_run_model_name": "gpt-5-2025-08-07",
        "reasoning_effort": "default", "mcp": "filesystem", "timeout": 3600,
        "time": {"start": "2026-10-01T10:00:00", "end": "2026-10-01T10:01:00"},
        "agent_execution_time": 40.5, "task_execution_time": 60.0,
        "execution_result": {**result, **more.pop("result", {})},
        "token_usage": {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120, "reasoning_tokens": 5},
        "turn_count": 2, **more,
    }  # fmt: skip


def items():
    """``messages.json`` as ``BaseMCPAgent._convert_to_sdk_format`` (src/agents/base_agent.py) writes it."""

    def output(call_id, told):
        part = {"type": "text", "text": told, "annotations": None, "meta": None}
        return {"call_id": call_id, "output": json.dumps(part), "type": "function_call_output"}

    def message(text):
        content = [{"annotations": [], "text": text, "type": "output_text"}]
        return {"id": "__fake_id__", "content": content, "role": "assistant", "status": "completed", "type": "message"}

    def asked(call_id, name, arguments):
        return {"arguments": arguments, "call_id": call_id, "name": name, "type": "function_call", "id": "__fake_id__"}

    wire = {"content": [{"type": "text", "text": "a.txt"}], "isError": False}
    failed = {"content": [{"type": "text", "text": "ENOENT"}], "isError": True}
    return [
        {"content": "Find the paper.", "role": "user"},
        message("I look."),
        asked("c1", "list_directory", '{"path": "."}'),
        asked("c2", "read_file", '{"path": "x"}'),
        output("c1", json.dumps(wire)),
        output("c2", json.dumps(failed)),
        asked("c3", "read_file", '{"path": "y"}'),
        output("c3", "Error: Tool call 'read_file' timed out after 60 seconds"),
        message("Task completed"),
    ]


def anthropic_items():
    """``messages.json`` as ``_execute_anthropic_native_tool_loop`` (src/agents/mcpmark_agent.py) leaves it."""
    told = [{"type": "text", "text": json.dumps({"content": [{"type": "text", "text": "a.txt"}], "isError": False})}]
    return [
        {"role": "user", "content": "Find the paper."},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "c1", "name": "list_directory", "input": {"path": "."}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": told}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Task completed"}]},
    ]  # fmt: skip


@pytest.fixture
def experiment(tmp_path):
    """results/exp/MODEL__SERVICE/run-N/CATEGORY__TASK, as ``MCPEvaluator`` (src/evaluator.py) lays it out."""
    root = tmp_path / "results" / "exp"

    def put(slug, run, about, messages):
        folder = root / slug / run / about["task_name"]
        write(folder / "meta.json", about)
        write(folder / "messages.json", messages)

    put("gpt-5__filesystem", "run-1", meta(), items())
    put("gpt-5__filesystem", "run-2", meta(success=False), items())
    late = {"error_message": "Agent 'MCPMarkAgent' execution timed out after 3600s", "verification_error": "nothing"}
    put("gpt-5__filesystem", "run-1", meta("papers__sort", False, result=late), [])
    claude = {"model_name": "claude-4-sonnet", "litellm_run_model_name": None, "reasoning_effort": "high"}
    put("claude-4-sonnet-high__filesystem", "run-1", meta(**claude), anthropic_items())
    unset = {"error_message": "State setup failed for service 'notion' (task: a__b)", "verification_error": None}
    put("gpt-5__notion", "run-1", meta("a__b", False, result=unset, mcp="notion", token_usage={}, turn_count=None), [])
    write(root / "gpt-5__filesystem" / "run-1" / "summary.json", {"total_tasks": 2})  # passed over
    return root


def test_mcpmarks_folder_is_runs_by_task_model_and_run(experiment):
    runs = read_runs(experiment)
    keys = list(zip(runs["task_id"], runs["category"], runs["agent"], runs["trial"]))
    assert keys == [
        ("filesystem/papers__find_math_paper", "papers", "mcpmark:claude-4-sonnet-high", 0),
        ("filesystem/papers__find_math_paper", "papers", "mcpmark:gpt-5", 0),
        ("filesystem/papers__sort", "papers", "mcpmark:gpt-5", 0),
        ("filesystem/papers__find_math_paper", "papers", "mcpmark:gpt-5", 1),
        ("notion/a__b", "a", "mcpmark:gpt-5", 0),
    ]
    assert runs["run_id"].is_unique
    row = rows_of(runs)[1]
    assert row["run_id"] == "exp/gpt-5/filesystem/run-1/papers__find_math_paper"
    assert (row["model"], row["question"], row["output"]) == ("gpt-5-2025-08-07", "Find the paper.", "Task completed")
    assert (row["tokens_in"], row["tokens_out"], row["seconds"], row["turns"]) == (100, 20, 40.5, 2)
    assert row["cost_usd"] is None and row["metadata"]["experiment"] == "exp"
    assert [message["role"] for message in row["messages"]] == [
        "user", "assistant", "tool", "tool", "assistant", "tool", "assistant",
    ]  # fmt: skip
    assert [(call["server"], call["name"], call["is_error"]) for call in row["tool_calls"]] == [
        ("filesystem", "list_directory", False), ("filesystem", "read_file", True), ("filesystem", "read_file", True),
    ]  # fmt: skip
    assert row["tool_calls"][1]["result"] == {"content": [{"type": "text", "text": "ENOENT"}], "isError": True}
    claude = rows_of(runs)[0]
    assert (claude["model"], claude["question"], claude["output"]) == (
        "claude-4-sonnet",
        "Find the paper.",
        "Task completed",
    )
    [call] = claude["tool_calls"]
    assert (call["server"], call["arguments"], call["is_error"]) == ("filesystem", {"path": "."}, False)
    assert call["result"]["content"] == [{"type": "text", "text": "a.txt"}]


def test_mcpmarks_verification_is_a_score_and_what_was_never_set_up_is_none(experiment):
    runs = read_runs(experiment)
    assert runs["error_class"].dropna().tolist() == ["timeout", "harness"]
    scores = recorded_scores(runs)
    assert scores["evaluator"].unique().tolist() == ["verification"]
    assert scores["passed"].tolist()[:4] == [True, True, False, False] and scores["score"].isna().tolist()[4]
    assert scores["status"].tolist() == ["ok"] * 4 + ["error"]
    assert scores["reason"].tolist()[:4] == ["all there\n", "all there\n", "nothing", "no such file\n"]
    summary = mcpeval.summarize(scores).set_index("agent")
    assert summary.loc["mcpmark:gpt-5", "score"] == (0.5 + 0.0) / 2 and summary.loc["mcpmark:gpt-5", "unscored"] == 1


def test_any_folder_of_mcpmarks_and_its_one_file_are_read(experiment):
    assert len(read_runs(experiment.parent)) == 5
    assert len(read_runs(experiment / "gpt-5__filesystem")) == 3
    [row] = rows_of(read_runs(experiment / "gpt-5__filesystem" / "run-2"))
    assert row["trial"] == 1
    again = read_runs(experiment / "gpt-5__filesystem" / "run-2" / "papers__find_math_paper" / "meta.json")
    assert again["run_id"].tolist() == [row["run_id"]] and "file" not in again["metadata"][0]
    write(experiment / "gpt-5__filesystem" / "run-2" / "papers__find_math_paper" / "messages.json", {"no": "list"})
    with pytest.raises(FileError, match=r"meta\.json: messages\.json beside it is .* expected a list of messages"):
        read_runs(experiment)


# --- folders, and the command --------------------------------------------------------------------


def test_files_of_one_system_in_a_folder_are_kept_apart(tmp_path):
    for name, reward in (("gpt-a", 1.0), ("gpt-b", 0.0)):
        write(tmp_path / f"{name}.json", [{"task_id": 0, "trial": 0, "reward": reward, "traj": [{"role": "user"}]}])
    runs = read_runs(tmp_path)
    assert runs["run_id"].tolist() == ["0-0", "gpt-b.json: 0-0"]
    assert runs["agent"].tolist() == ["tau-bench:gpt-a", "tau-bench:gpt-b"]
    assert mcpeval.summarize(recorded_scores(runs))["score"].tolist() == [1.0, 0.0]


def test_a_folder_of_nothing_known_names_what_is_known(tmp_path):
    runs = runs_frame([{"run_id": "r", "output": "x"}])
    to_csv(runs, tmp_path / "runs.csv")
    write(tmp_path / "x.json", {"a": 1})
    known = "tau, inspect_ai, livemcpbench, mcpmark, openai_chat"
    with pytest.raises(FileError, match=rf"no file of a known form in this folder \(known: {known}\)"):
        read_runs(tmp_path)
    with pytest.raises(FileError, match=rf"no known form of transcripts \(known: {known}\)"):
        read_runs(tmp_path / "x.json")
    (tmp_path / "half.json").write_text('{"version": 2, "sta')
    with pytest.raises(FileError, match=r"half\.json: no JSON"):
        read_runs(tmp_path)
    with pytest.raises(FileError, match="no such file"):
        read_runs(tmp_path / "gone.eval")


def test_the_command_scores_a_folder(experiment, tmp_path, endpoint, monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_API_BASE", endpoint.base)
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.base)
    out = tmp_path / "scores.csv"
    given = ["score", str(experiment), "--model", "openai/good", "--rubric", "Is it done?", "--out", str(out)]
    assert main(given) == 0
    assert "5 scores of 5 runs" in capsys.readouterr().out
    assert set(mcpeval.read_csv(out)["agent"]) == {"mcpmark:gpt-5", "mcpmark:claude-4-sonnet-high"}
