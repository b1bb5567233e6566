"""Rules a second, beside the same chain written out in Python. Run: python -m tests.benchmarks.bench_rules"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable

from mcpeval.evaluators import evaluate_row, rule

ROWS = 10_000
OUTPUTS = [
    json.dumps({"city": "Paris" if i % 2 else "Rome", "id": i, "routes": [{"price": 10 * j} for j in range(5)]})
    for i in range(ROWS)
]
CHAINS = [
    rule("json", ""),
    rule("json -> get(city)", "=", "Paris"),
    rule("json -> get(routes) -> len", "=", 5),
    rule("json -> get(routes) -> foreach -> get(price)", "<", 100),
    rule("json -> get(id)", ">=", 0),
]


def by_hand_once() -> None:
    """What `rule("json -> get(city)", "=", "Paris")` asks, and no more: no reason, no isolation."""
    for output in OUTPUTS:
        isinstance(answer := json.loads(output.strip().strip("`")), dict) and answer.get("city") == "Paris"


def by_hand_five() -> None:
    """The five chains, each parsing its output anew, as five separate functions would."""
    for output in OUTPUTS:
        for ask in (
            lambda text: json.loads(text) is not None,
            lambda text: json.loads(text).get("city") == "Paris",
            lambda text: len(json.loads(text).get("routes")) == 5,
            lambda text: all(route.get("price") < 100 for route in json.loads(text).get("routes")),
            lambda text: json.loads(text).get("id") >= 0,
        ):
            ask(output)


def by_rules(rules: list) -> Callable[[], None]:
    def run() -> None:
        for output in OUTPUTS:
            for one in rules:
                one.evaluate(output)

    return run


async def by_rows(rules: list) -> None:
    """As `score` does it: through the one place that isolates a crash."""
    for output in OUTPUTS:
        row = {"output": output}
        for one in rules:
            await evaluate_row(one, row)


def seconds(run: Callable[[], None]) -> float:
    """The best of five: what the machine can do when nothing else asks for it."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    for what, rules, by_hand in (("one chain", CHAINS[1:2], by_hand_once), ("five chains", CHAINS, by_hand_five)):
        calls, hand = ROWS * len(rules), seconds(by_hand)
        for how, run in (
            ("Rule.evaluate", by_rules(rules)),
            ("evaluate_row", lambda rules=rules: asyncio.run(by_rows(rules))),
        ):
            took = seconds(run)
            print(
                f"{what:12} {how:14} {calls / took:>10,.0f}/s   by hand {calls / hand:>10,.0f}/s   "
                f"ratio to by hand {took / hand:.2f}"
            )


if __name__ == "__main__":
    main()
