"""What a call costs on top of LiteLLM, and what the embedded model does in a second.

Run from the repository: ``python -m tests.benchmarks.bench_llm [calls]``.  The endpoint is a process of
its own on loopback that answers at once, so the figures are the client's own work; each is the best
of three rounds.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pydantic import BaseModel, Field

from mcpeval import _clients, llm, local
from mcpeval._loop import run_sync
from mcpeval.caching import Cache

CONCURRENCY = 16


class Verdict(BaseModel):
    reason: str = Field(max_length=160)
    score: int = Field(ge=1, le=5)


def asked(n: int) -> list[dict]:
    return [{"role": "user", "content": f"Judge the answer of ROW-{n}."}]


async def rate(call, numbers) -> float:
    """Calls a second, `CONCURRENCY` at a time."""
    turn = asyncio.Semaphore(CONCURRENCY)

    async def one(n: int) -> None:
        async with turn:
            await call(n)

    start = time.perf_counter()
    await asyncio.gather(*(one(n) for n in numbers))
    return len(numbers) / (time.perf_counter() - start)


async def against_the_endpoint(base: str, calls: int, folder: Path) -> None:
    how = {"api_base": base, "api_key": "sk-test"}
    litellm = _clients.litellm()
    cache = Cache(folder / "cache")
    plain = {"num_retries": 0, "max_retries": 0, **how}
    ways = {
        "litellm.acompletion": lambda n: litellm.acompletion("openai/good", asked(n), **plain),
        "complete, no cache": lambda n: llm.complete("openai/good", asked(n), **how),
        "complete, into the cache": lambda n: llm.complete("openai/good", asked(n), cache=cache, **how),
        "complete, from the cache": lambda n: llm.complete("openai/good", asked(n % calls), cache=cache, **how),
        "structured, no cache": lambda n: llm.structured("openai/good", asked(n), Verdict, **how),
        "structured, into the cache": lambda n: llm.structured("openai/good", asked(n), Verdict, cache=cache, **how),
    }
    best = dict.fromkeys(ways, 0.0)
    for call in ways.values():
        await call(0)
    for round_ in range(3):
        for name, call in ways.items():
            best[name] = max(best[name], await rate(call, range(round_ * calls, (round_ + 1) * calls)))
    for name, found in best.items():
        ratio = found / best["litellm.acompletion"]
        print(f"{name:28} {found:8.0f} calls/s  {1000 / found:7.2f} ms a call  {ratio:6.2f} x litellm")


async def on_the_embedded_model(calls: int) -> None:
    async def call(n: int) -> None:
        ask = [{"role": "user", "content": f"Question: {n} + {n}? Answer: {2 * n}. Judge the answer from 1 to 5."}]
        await llm.structured(local.SMOLLM2, ask, Verdict, temperature=0, max_tokens=300, frequency_penalty=0.5)

    await call(0)
    print(f"structured, embedded model   {await rate(call, range(1, calls + 1)):8.2f} calls/s")


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "port"
        command = [sys.executable, "-m", "tests.endpoint", "--port-file", str(file)]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            while not file.exists():
                time.sleep(0.02)
            base = f"http://127.0.0.1:{file.read_text()}/v1"
            run_sync(against_the_endpoint(base, calls, Path(folder)))
        finally:
            server.terminate()
            server.wait()
    run_sync(on_the_embedded_model(max(4, calls // 20)))


if __name__ == "__main__":
    main()
