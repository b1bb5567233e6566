"""The demo as a user types it: real servers, the embedded model, and everything it says it writes."""

import json
import re
import subprocess
import sys

import nbformat
import pandas as pd
import pytest

import mcpeval
from mcpeval import demo
from mcpeval.errors import InputError
from mcpeval.servers import check_servers

MODEL_LIBRARIES = "['litellm', 'instructor', 'mcp', 'xllamacpp']"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("demo")


def type_demo(place, *arguments):
    """`mcpeval demo` in a process of its own; what it printed, and which model libraries it loaded."""
    code = f"""
import sys
from mcpeval.cli import main
code = main(["demo", "--out", {str(place / "out")!r}, *sys.argv[1:]])
print("loaded", [name for name in {MODEL_LIBRARIES} if name in sys.modules])
sys.exit(code)
"""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=place)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def printed(place, node_bin):
    """The demo, for the first time and again with the cache that the first time filled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MCPEVAL_CACHE", str(place / "cache"))
        return [type_demo(place, "--trials", "1") for _ in range(2)]


def test_every_task_of_the_demo_names_a_tool_that_its_server_offers(tmp_path, node_bin):
    offered = {row["name"]: row["tools"] for row in check_servers(demo.load_servers(tmp_path / "files"))}
    tasks = demo.load_tasks()
    assert len(tasks) >= 6
    assert {server["name"] for task in tasks for server in task.mcp_servers} == set(offered)
    for task in tasks:
        for server in task.mcp_servers:
            assert 1 <= len(server["tools"]) <= 3
            assert set(server["tools"]) <= set(offered[server["name"]])


def test_the_right_answer_passes_every_rule_and_a_wrong_one_none():
    rows = []
    for task in demo.load_tasks():
        for right in (True, False):
            answer = str(task.reference) if right else "I do not know."
            form = task.output_format
            output = json.dumps(dict.fromkeys(form, answer)) if form else f"It is {answer}."
            rows.append({"output": output, "evaluators": task.evaluators, "right": right})
    frame = pd.DataFrame(rows)
    scores = mcpeval.score(frame)
    assert len(scores) == len(frame)
    assert scores["passed"].tolist() == frame["right"].tolist()


def test_the_demo_prints_a_summary_with_intervals_and_where_everything_is(printed, place):
    shown, _ = printed[0]
    assert "8 tasks, 3 MCP servers, 2 agents" in shown
    for word in ("agent", "evaluator", "score", "low", "high", "unscored", "basic", "react", "rule", "judge"):
        assert word in shown
    assert "says nothing about quality" in shown
    for name in ("runs.parquet", "scores.csv", "scores.csv.meta.json", "success.png", "01_quickstart.ipynb"):
        assert (place / "out" / name).stat().st_size > 500
        assert name in shown


def test_the_demo_s_runs_called_real_servers_and_hold_every_transcript(printed, place):
    runs = mcpeval.read_runs(place / "out" / "runs.parquet")
    assert len(runs) == 16
    assert (runs["status"] == "ok").all()
    with_tools = runs[runs["agent"] == "react"]
    assert (with_tools["n_tool_calls"] == 1).all()
    calls = [call for calls in with_tools["tool_calls"] for call in calls]
    assert {call["server"] for call in calls} == {"filesystem", "memory", "time"}
    assert any(not call["is_error"] and call["result"]["content"] for call in calls)
    assert (runs["messages"].map(len) >= 2).all()
    assert (runs["cost_usd"] == 0).all()


def test_the_demo_s_scores_are_of_rules_and_of_a_judge_and_come_with_a_manifest(printed, place):
    scores = mcpeval.read_csv(place / "out" / "scores.csv")
    assert scores.groupby("kind").size().to_dict() == {"judge": 16, "rule": 16}
    assert (scores.loc[scores["kind"] == "rule", "status"] == "ok").all()
    about = json.loads((place / "out" / "scores.csv.meta.json").read_text())
    assert about["rows"] == 32
    [judge] = set(scores.loc[scores["kind"] == "judge", "fingerprint"])
    assert "local/smollm2-135m" in json.dumps(about["judges"][judge])


def test_the_executed_notebook_ends_in_a_figure_and_has_no_error(printed, place):
    notebook = nbformat.read(place / "out" / "01_quickstart.ipynb", as_version=4)
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert any("image/png" in output.get("data", {}) for output in outputs)


def test_a_second_demo_asks_no_model_and_loads_none_of_their_libraries(printed):
    (first, _), (second, _) = printed
    asked = [int(re.search(r"; (\d+) of them asked the model", shown)[1]) for shown in (first, second)]
    assert 16 < asked[0] <= 32 and asked[1] == 0  # 16 runs, and verdicts, which two runs with one answer share
    assert "loaded []" in second

    def table(shown):
        return shown[shown.index("agent") : shown.index("16 runs")]

    assert table(first) == table(second)


def test_a_folder_that_cannot_be_written_to_is_named_before_anything_runs(tmp_path, node_bin):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be copied to .*file"):
        demo.demo(tmp_path / "file" / "out")


def test_a_missing_server_is_named_with_the_way_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "_search_path", lambda: str(tmp_path))
    with pytest.raises(InputError, match=r"'filesystem' is not installed.*(?s:.)*npm install"):
        demo.load_servers(tmp_path / "files")
    assert not (tmp_path / "files").exists()
