"""Rules and functions that ask live MCP servers while they score: real processes, started late and always ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest

from mcpeval.errors import FileError, InputError
from mcpeval.evaluators import FunctionResult, chains, compare_func, eval_func, rule
from mcpeval.scoring import score
from tests.bad_server import bad


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


@pytest.fixture(autouse=True)
def _no_process_is_left():
    before = children()
    yield
    deadline = time.monotonic() + 20
    while children() - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert children() - before == set()


@pytest.fixture(autouse=True)
def _registered_here():
    """Functions of a test are registered for it alone."""
    steps, comparisons = dict(chains.STEPS), dict(chains.COMPARISONS)
    yield
    for table, kept in ((chains.STEPS, steps), (chains.COMPARISONS, comparisons)):
        table.clear()
        table.update(kept)


def text_of(call) -> str:
    return call.result["content"][0]["text"]


def asks(server: str = "a", tool: str = "add", **arguments):
    """A rule whose comparison is the answer of a tool."""

    @compare_func(name="as the tool says")
    async def as_the_tool_says(a, b, op_args, context):
        call = await context.call_tool(server, tool, arguments)
        return str(a) == text_of(call), "the tool says otherwise"

    return rule("json -> get(n)", "as the tool says", name="live")


def runs(*numbers: int) -> pd.DataFrame:
    return pd.DataFrame({"output": [json.dumps({"n": n}) for n in numbers]})


def test_a_rule_fetches_the_truth_from_a_server_and_its_calls_are_in_the_metadata(venv_bin):
    @eval_func(name="hours to Tokyo")
    async def hours_to_tokyo(x, *args, context):
        zone, noon = x.result["zone"], {"time": "12:00", "target_timezone": "Asia/Tokyo"}
        call = await context.call_tool("time", "convert_time", {"source_timezone": zone, **noon})
        return FunctionResult(result=json.loads(text_of(call))["time_difference"])

    frame = pd.DataFrame({"output": ['{"zone": "UTC"}', '{"zone": "Asia/Seoul"}', '{"zone": "Atlantis"}']})
    servers = {"time": {"command": str(venv_bin / "mcp-server-time"), "args": ["--local-timezone", "UTC"]}}
    scores = score(frame, rule("json -> hours to Tokyo", "=", "+9.0h"), servers=servers, cache=False)
    assert scores["status"].tolist() == ["ok", "ok", "error"]
    assert scores["passed"].tolist() == [True, False, pd.NA]
    assert scores["reason"].iloc[1].startswith("output is not equal to ground-truth: found '+0.0h', wanted '+9.0h'")
    (call,) = scores["metadata"].iloc[0]["tool_calls"]
    assert (call["server"], call["name"], call["arguments"]["source_timezone"]) == ("time", "convert_time", "UTC")
    assert "Atlantis" in scores["reason"].iloc[2]  # what the tool itself said of it


def test_a_function_asks_too():
    async def adds_up(output, context):
        call = await context.call_tool("a", "add", {"a": 1, "b": 2})
        return text_of(call) == output

    scores = score([{"output": "3"}, {"output": "4"}], adds_up, servers={"a": bad()}, cache=False)
    assert scores["score"].tolist() == [1, 0]


def test_one_process_answers_for_all_rows_and_only_a_server_that_is_asked_is_started(tmp_path):
    seen = []

    @compare_func(name="noted")
    async def noted(a, b, op_args, context):
        seen.append(text_of(await context.call_tool("a", "pid", {})))
        return len(children()) == 1

    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": {"a": bad(), "broken": bad("die"), "c": bad()}}))
    scores = score(runs(*range(20)), rule("", "noted"), servers=tmp_path / "servers.json", cache=False)
    assert scores["passed"].all() and len(set(seen)) == 1 and len(seen) == 20


def test_rules_that_ask_nobody_start_nothing():
    before = children()
    frame = score(runs(1, 2), rule("json -> get(n)", "=", 1), servers={"broken": bad("die")}, cache=False)
    assert frame["score"].tolist() == [1, 0] and children() == before


def test_an_unknown_server_is_an_error_of_the_row_that_names_the_nearest():
    scores = score(runs(1), asks("weathr"), servers={"weather": bad()}, cache=False)
    assert scores["status"].tolist() == ["error"]
    assert "There is no server 'weathr'. Did you mean 'weather'?" in scores["reason"].iloc[0]


def test_without_servers_a_call_is_an_error_that_says_what_to_give():
    scores = score(runs(1), asks(), cache=False)
    assert scores["status"].tolist() == ["error"] and "score() was given no servers=" in scores["reason"].iloc[0]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (("a", "boom"), "no such city"),
        (("a", "die"), "ended with exit code 3"),
        (("a", "no_such_tool"), "Unknown tool"),
    ],
)
def test_what_a_tool_or_its_server_fails_is_an_error_and_no_low_score(call, said):
    scores = score(runs(1, 2), asks(*call), servers={"a": bad()}, cache=False)
    assert scores["status"].tolist() == ["error", "error"] and scores["score"].isna().all()
    assert said in scores["reason"].iloc[0]
    assert scores["metadata"].iloc[0]["tool_calls"][0]["is_error"]


def test_a_server_that_does_not_start_is_tried_once_and_every_row_says_why(tmp_path):
    log = tmp_path / "starts"
    program = f"open({str(log)!r}, 'a').write('x'); raise SystemExit('no database')"
    servers = {"a": {"command": sys.executable, "args": ["-c", program]}}
    scores = score(runs(*range(30)), asks(), servers=servers, cache=False)
    assert scores["status"].tolist() == ["error"] * 30
    assert scores["reason"].str.contains("(?s)'a' did not start.*no database").all()
    assert log.read_text() == "x"


def test_a_variable_that_a_server_needs_is_asked_for_only_when_the_server_is(monkeypatch):
    monkeypatch.delenv("NOT_SET", raising=False)
    servers = {"a": bad(env={"KEY": "{{NOT_SET}}"})}
    assert score(runs(1), rule("json -> get(n)", "=", 1), servers=servers, cache=False)["score"].tolist() == [1]
    assert "NOT_SET" in score(runs(1), asks(), servers=servers, cache=False)["reason"].iloc[0]


def test_servers_that_cannot_be_read_are_refused_before_anything_is_scored(tmp_path):
    with pytest.raises(FileError):
        score(runs(1), asks(), servers=tmp_path / "nothing.json", cache=False)
    with pytest.raises(InputError, match="Did you mean 'command'"):
        score(runs(1), asks(), servers={"a": {"comand": "x"}}, cache=False)


INTERRUPTED = """
import json, sys
from mcpeval.evaluators import compare_func, rule
from mcpeval.scoring import score

@compare_func(name="hangs")
async def hangs(a, b, op_args, context):
    pids = await context.call_tool("a", "pid", {})
    print(pids.result["content"][0]["text"], flush=True)
    await context.call_tool("a", "hang", {})

try:
    score([{"output": "x"}], rule("", "hangs"), servers=json.loads(sys.argv[1]), cache=False)
except KeyboardInterrupt:
    print("interrupted", flush=True)
sys.stdin.readline()
"""


def test_an_interrupt_in_a_call_ends_the_servers_while_the_process_lives_on():
    command = [sys.executable, "-c", INTERRUPTED, json.dumps({"a": bad("child")})]
    root = Path(__file__).parents[1]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        pids = json.loads(process.stdout.readline())
        assert len(pids) == 2 and all(map(psutil.pid_exists, pids))
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        deadline = time.monotonic() + 20
        while any(map(psutil.pid_exists, pids)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(map(psutil.pid_exists, pids)) and process.poll() is None
        process.communicate("\n")
