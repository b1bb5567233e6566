"""Rules through `score`, beside MCP-Universe's own evaluators called directly.

Run: python -m tests.benchmarks.bench_mcpuniverse [PYTHON]

PYTHON is the interpreter of an environment that has the package mcpuniverse, which needs one of its
own (its pins exclude ours). Without it one is made in a temporary folder, which takes minutes; where
that cannot be done, the benchmark says so and ends.

Both answer the same chains on the same 10,000 outputs, in turns, and the best of each is taken:
what the machine can do when nothing else asks for it. Theirs is ``Evaluator(config)``, made once,
and ``await evaluate(output)`` in a loop; ours is the whole of ``score(frame, rules, cache=False)``,
with reasons, leaves and the frame. The ratio is theirs to ours in seconds.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from mcpeval.evaluators import Rule
from mcpeval.scoring import score

PACKAGE = "mcpuniverse==1.1.3"
ROWS, ROUNDS = 10_000, 9
CHAINS = [
    {"func": "json -> get(city)", "op": "=", "value": "Paris"},
    {"func": "json", "op": ""},
    {"func": "json -> get(routes) -> len", "op": "=", "value": 5},
    {"func": "json -> get(routes) -> foreach -> get(price)", "op": "<", "value": 100},
    {"func": "json -> get(id)", "op": ">=", "value": 0},
]
ROUTES = {
    "a line": [{"price": 10 * j} for j in range(5)],
    "a paragraph": [{"price": 10 * j, "name": f"route {j}", "stops": list(range(10))} for j in range(5)],
}

THEIRS = """
import asyncio, json, sys, time
from mcpuniverse.evaluator import Evaluator

async def answer(configs, outputs):
    evaluators = [Evaluator(config) for config in configs]
    start = time.perf_counter()
    passed = [(await evaluator.evaluate(output)).passed for output in outputs for evaluator in evaluators]
    return time.perf_counter() - start, sum(passed)

for line in sys.stdin:
    print(json.dumps(asyncio.run(answer(**json.loads(line)))), flush=True)
"""


@contextmanager
def interpreter(given: str | None) -> Iterator[str]:
    """`given`, else that of a new environment with the package.

    Raises
    ------
    OSError, subprocess.CalledProcessError
        It does not have the package, and cannot get it.
    """
    if given is not None:
        subprocess.run([given, "-c", "import mcpuniverse.evaluator"], check=True)
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", PACKAGE], check=True)
        yield str(python)


def theirs(process: subprocess.Popen, configs: list[dict[str, Any]], outputs: list[str]) -> tuple[float, int]:
    """Seconds, and how many passed."""
    process.stdin.write(json.dumps({"configs": configs, "outputs": outputs}) + "\n")
    process.stdin.flush()
    took, passed = json.loads(process.stdout.readline())
    return took, passed


def ours(configs: list[dict[str, Any]], outputs: list[str]) -> tuple[float, int]:
    """Seconds, and how many passed."""
    frame, rules = pd.DataFrame({"output": outputs}), [Rule.from_config(config) for config in configs]
    start = time.perf_counter()
    scores = score(frame, rules, cache=False)
    return time.perf_counter() - start, int(scores["passed"].sum())


def compare(process: subprocess.Popen) -> None:
    for size, routes in ROUTES.items():
        outputs = [json.dumps({"city": "Paris" if i % 2 else "Rome", "id": i, "routes": routes}) for i in range(ROWS)]
        for what, configs in (("one chain", CHAINS[:1]), ("five chains", CHAINS)):
            rounds = [(ours(configs, outputs), theirs(process, configs, outputs)) for _ in range(ROUNDS)]
            if len({passed for pair in rounds for _, passed in pair}) > 1:
                raise SystemExit(f"{what}: the two do not agree on how many passed")
            mine, other = (min(pair[side][0] for pair in rounds) for side in (0, 1))
            n = ROWS * len(configs)
            print(
                f"{what:11} on {size} of {len(outputs[0])} characters: score {n / mine:>9,.0f}/s, "
                f"mcpuniverse {n / other:>9,.0f}/s, ratio {other / mine:.2f}"
            )


def main(python: str | None = None) -> None:
    try:
        with interpreter(python) as found:
            command = [found, "-c", THEIRS]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
                compare(process)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"skipped: no {PACKAGE} here ({error}); name an interpreter that has it")


if __name__ == "__main__":
    main(*sys.argv[1:2])
