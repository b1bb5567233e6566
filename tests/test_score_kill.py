"""A process killed in the middle of `score` loses nothing that was answered."""

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

ROWS, CONCURRENCY = 48, 6
REPOSITORY = Path(__file__).resolve().parents[1]

SCORE = f"""
import sys
import pandas as pd
from mcpeval.evaluators import rule
from mcpeval.evaluators.judges import Judge
from mcpeval.scoring import score
base, cache, out = sys.argv[1:]
frame = pd.DataFrame({{"output": [f"answer ROW-{{i}}" for i in range({ROWS})], "question": "q"}})
judge = Judge("Is it right?", model="openai/good", api_base=base, api_key="sk-test-000001", scale=(1, 5))
scores = score(frame, [judge, rule("raw", "contain", "ROW")], cache=cache, concurrency={CONCURRENCY})
scores.to_json(out, orient="records")
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
    return subprocess.Popen([sys.executable, "-c", SCORE, f"{base}/v1", str(cache), str(out)], cwd=REPOSITORY)


def read(out):
    # What is paid, and how long it took, is what an interruption may change, and nothing else.
    may_change = ("cost_usd", "seconds", "cached", "metadata")
    return [
        {name: value for name, value in row.items() if name not in may_change} for row in json.loads(out.read_text())
    ]


def test_a_score_that_is_killed_asks_again_at_most_for_what_was_in_flight(counting, tmp_path):
    process = start(counting, tmp_path / "cache", tmp_path / "never")
    while stats(counting)["count"] < ROWS // 2:
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    killed_at = stats(counting)["count"]
    assert ROWS // 2 <= killed_at < ROWS and not (tmp_path / "never").exists()

    assert start(counting, tmp_path / "cache", tmp_path / "resumed").wait() == 0
    after = stats(counting)
    assert ROWS <= after["count"] <= ROWS + CONCURRENCY
    assert len(after["rows"]) == ROWS and max(after["rows"].values()) <= 2

    assert start(counting, tmp_path / "another", tmp_path / "whole").wait() == 0
    assert read(tmp_path / "resumed") == read(tmp_path / "whole")
    judged = [row for row in json.loads((tmp_path / "resumed").read_text()) if row["kind"] == "judge"]
    assert {row["status"] for row in judged} == {"ok"}
    assert sum(row["cached"] for row in judged) >= killed_at - CONCURRENCY
