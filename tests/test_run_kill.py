"""A process killed in the middle of `run` loses nothing that was answered."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

TASKS, TRIALS, CONCURRENCY, CALLS = 12, 2, 4, 2  # a run asks the model twice: for a tool, and for the answer
REPOSITORY = Path(__file__).resolve().parents[1]

RUN = f"""
import sys
from mcpeval.agents import Agent
from mcpeval.running import run
from tests.bad_server import bad
base, cache, out = sys.argv[1:]
tools = [{{"name": "toy", "tools": ["echo"]}}]
tasks = [{{"id": f"t{{i}}", "question": f"What is in ROW-{{i}}?", "mcp_servers": tools}} for i in range({TASKS})]
agent = Agent("openai/good", "tools", api_base=base, api_key="sk-test-000001")
runs = run(tasks, agent, trials={TRIALS}, servers={{"toy": bad()}}, cache=cache, concurrency={CONCURRENCY})
runs.to_json(out, orient="records")
"""


@pytest.fixture
def counting(tmp_path):
    """A counting endpoint in a process of its own, slow enough to be killed in front of."""
    file = tmp_path / "port"
    command = [sys.executable, "-m", "tests.endpoint", "--port-file", str(file), "--latency", "0.15"]
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL)
    try:
        while not file.exists():
            assert process.poll() is None
            time.sleep(0.02)
        yield f"http://127.0.0.1:{file.read_text()}"
    finally:
        process.terminate()
        process.wait()


def stats(base):
    with urllib.request.urlopen(f"{base}/__stats") as answer:
        return json.load(answer)


def start(base, cache, out):
    return subprocess.Popen([sys.executable, "-c", RUN, f"{base}/v1", str(cache), str(out)], cwd=REPOSITORY)


def read(out):
    """The rows without what an interruption may change: what was paid, when, and how long it took."""
    rows = json.loads(out.read_text())
    for row in rows:
        for name in ("cost_usd", "seconds", "cached"):
            del row[name]
        row["metadata"] = {k: v for k, v in row["metadata"].items() if k not in ("started", "saved_usd")}
        for call in row["tool_calls"]:
            del call["seconds"]
        changing = ("start", "seconds", "cost_usd", "saved_usd", "cached")
        row["spans"] = [{k: v for k, v in span.items() if k not in changing} for span in row["spans"]]
    return rows


def test_a_run_that_is_killed_asks_again_at_most_for_what_was_in_flight(counting, tmp_path):
    whole = TASKS * TRIALS * CALLS
    process = start(counting, tmp_path / "cache", tmp_path / "never")
    while stats(counting)["count"] < whole // 2:
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    killed_at = stats(counting)["count"]
    assert whole // 2 <= killed_at < whole and not (tmp_path / "never").exists()

    assert start(counting, tmp_path / "cache", tmp_path / "resumed").wait() == 0
    assert whole <= stats(counting)["count"] <= whole + CONCURRENCY

    assert start(counting, tmp_path / "another", tmp_path / "uninterrupted").wait() == 0
    assert read(tmp_path / "resumed") == read(tmp_path / "uninterrupted")
    rows = json.loads((tmp_path / "resumed").read_text())
    assert {row["status"] for row in rows} == {"ok"}
    assert sum(row["cached"] for row in rows) >= killed_at // CALLS - CONCURRENCY

    before = stats(counting)["count"]
    assert start(counting, tmp_path / "cache", tmp_path / "again").wait() == 0
    assert stats(counting)["count"] == before
    assert all(row["cached"] for row in json.loads((tmp_path / "again").read_text()))
