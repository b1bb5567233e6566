"""`score` beside its parts. Run: python -m tests.benchmarks.bench_score

1. 10,000 rows with three rules (30,000 rows come out), beside the same rules called by hand.
2. 1,000 rows that a judge has already judged, in a fresh process, beside the process that asks a
   loopback endpoint that answers at once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import pandas as pd

from mcpeval.evaluators import rule
from mcpeval.scoring import score
from tests.endpoint import Endpoint

ROWS = 10_000
RULES = [
    rule("json -> get(city)", "=", "Paris"),
    rule("json -> get(id)", "<", 5000),
    rule("json -> get(routes) -> foreach -> get(price)", "<", 100),
]

JUDGED = """
import time
begin = time.perf_counter()
import json, sys
import pandas as pd
pandas_took = time.perf_counter() - begin
from mcpeval.evaluators.judges import Judge
from mcpeval.scoring import score
frame = pd.DataFrame({"output": [f"answer ROW-{i}" for i in range(1000)], "question": "q"})
judge = Judge("Is it right?", model="openai/good", api_base=sys.argv[1], api_key="sk-test-000001", scale=(1, 5))
start = time.perf_counter()
scores = score(frame, judge, cache=sys.argv[2])
end = time.perf_counter()
heavy = [name for name in ("litellm", "instructor", "mcp") if name in sys.modules]
took = {"whole": end - begin, "pandas": pandas_took, "score": end - start}
print(json.dumps({**took, "cached": int(scores["cached"].sum()), "imports": heavy}))
"""


def best(run: Callable[[], object], times: int = 5) -> float:
    """Seconds of the fastest of some runs: what the machine can do when nothing else asks for it."""
    took = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        took.append(time.perf_counter() - start)
    return min(took)


def rules() -> None:
    outputs = [
        json.dumps({"city": "Paris" if i % 2 else "Rome", "id": i, "routes": [{"price": 10 * j} for j in range(5)]})
        for i in range(ROWS)
    ]
    frame = pd.DataFrame({"task_id": [f"t{i}" for i in range(ROWS)], "output": outputs})
    whole = best(lambda: score(frame, RULES, cache=False))
    hand = best(lambda: [one.evaluate(output) for output in outputs for one in RULES])
    n = ROWS * len(RULES)
    a_row = whole / n * 1e6
    print(
        f"{n} rows of rules: score {whole:.2f} s ({a_row:.0f} us a row), by hand {hand:.2f} s, ratio {whole / hand:.1f}"
    )


def cached() -> None:
    with Endpoint() as endpoint, tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", JUDGED, endpoint.base, folder]
        runs = [
            json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(4)
        ]
    first, again = runs[0], min(runs[1:], key=lambda run: run["whole"])
    for what, run in (("first", first), ("again", again)):
        print(
            f"1000 judged rows, {what}: process {run['whole']:.2f} s "
            f"(pandas {run['pandas']:.2f} s, score {run['score']:.2f} s), "
            f"{run['cached']} cached, imports {', '.join(run['imports']) or 'no client'}"
        )
    whole, alone = again["whole"] / first["whole"], again["score"] / first["score"]
    print(f"ratio again / first {whole:.3f}, of score alone {alone:.3f}")


if __name__ == "__main__":
    rules()
    cached()
