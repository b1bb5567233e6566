"""Rules through `score`, beside MCP-Universe's own evaluators called directly.

Run: python -m tests.benchmarks.bench_mcpuniverse [PYTHON]

PYTHON is the interpreter of an environment that has the package mcpuniverse (its pins exclude ours,
so it needs one of its own).  Without it one is made in a temporary folder; where that fails, the
benchmark says so and ends.

Both answer the same chains on the same 10,000 outputs, in turns, and each is taken at its best:
what the machine can do when nothing else asks for it.  Theirs is `Evaluator(config)`, made once, and
``await evaluate(output)`` in a loop; ours is the whole of ``score(frame, rules, cache=False)``, with
reasons, leaves and the frame.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import pandas as pd

from mcpeval.evaluators import Rule
from mcpeval.scoring import score

PACKAGE = "mcpuniverse==1.1.3"
ROWS, ROUNDS = 10_000, 7
CHAINS = [
    {"func": "json -> get(city)", "op": "=", "value": "Paris"},
    {"func": "json", "op": ""},
    {"func": "json -> get(routes) -> len", "op": "=", "value": 5},
    {"func": "json -> get(routes) -> foreach -> get(price)", "op": "<", "value": 100},
    {"func": "json -> get(id)", "op": ">=", "value": 0},
]

THEIRS = """
import asyncio, json, sys, time
from mcpuniverse.evaluator import Evaluator

async def seconds(configs, outputs):
    evaluators = [Evaluator(config) for config in configs]
    start = time.perf_counter()
    passed = [(await evaluator.evaluate(output)).passed for output in outputs for evaluator in evaluators]
    return time.perf_counter() - start, sum(passed)

for line in sys.stdin:
    print(json.dumps(asyncio.run(seconds(**json.loads(line)))), flush=True)
"""


def outputs() -> dict[str, list[str]]:
    """Answers of a few words, and of a few lines."""
    short = [json.dumps({"city": "Paris" if i % 2 else "Rome", "id": i, "routes": [{"price": 20}] * 5}) for i in range(ROWS)]
    return {"short": short}


def main() -> None:
    ...
