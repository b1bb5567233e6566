"""`run` beside the bare loop of the MCP SDK and an HTTP client. Run: python -m tests.benchmarks.bench_run

100 runs with three tool calls each, 16 at a time, against an endpoint in a process of its own that
takes 50 ms for each of a run's four answers; over one stdio server process for all runs (``share``),
over one for each, and over a server in memory.  Both sides do the same: start the server, list its
tools, ask, call, end it.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, nullcontext
from typing import Any

from mcpeval.agents import Agent
from mcpeval.running import run
from mcpeval.testing import toy_server
from tests.bad_server import bad
from tests.endpoint import Endpoint, call

RUNS, CALLS, CONCURRENCY, LATENCY = 100, 3, 16, 0.05
TASKS = [
    {"id": f"t{i}", "question": f"ROW-{i}?", "mcp_servers": [{"name": "toy", "tools": ["echo"]}]} for i in range(RUNS)
]


def model(body: dict[str, Any]) -> Any:
    """Three calls of ``echo``, then the answer."""
    made = sum(message["role"] == "tool" for message in body["messages"])
    return call("echo", {"text": f"call {made}"}) if made < CALLS else "done"


def serve() -> None:
    with Endpoint(latency=LATENCY) as endpoint:
        endpoint.script(model)
        print(endpoint.base, flush=True)
        sys.stdin.read()  # until the benchmark closes its end


def ours(base: str, server: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        agent = Agent("openai/gpt-4.1-mini", "tools", api_base=base, api_key="sk-test-000001")
        frame = run(TASKS, agent, servers={"toy": server}, cache=folder, concurrency=CONCURRENCY, progress=False)
    assert (frame["status"] == "ok").all() and (frame["n_tool_calls"] == CALLS).all()


async def bare_run(client: Any, opened: Any, question: str) -> None:
    async with opened as session:
        tools = [tool for tool in (await session.list_tools()).tools if tool.name == "echo"]
        offered = [{"type": "function", "function": {"name": t.name, "parameters": t.input_schema}} for t in tools]
        messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
        while True:
            answer = await client.post(
                "/chat/completions", json={"model": "good", "messages": messages, "tools": offered}
            )
            message = answer.json()["choices"][0]["message"]
            messages.append(message)
            if not message.get("tool_calls"):
                return
            for asked in message["tool_calls"]:
                function = asked["function"]
                result = await session.call_tool(function["name"], json.loads(function["arguments"]))
                messages.append({"role": "tool", "tool_call_id": asked["id"], "content": result.content[0].text})


async def bare(base: str, target: Callable[[], Any], share: bool) -> None:
    import httpx
    from mcp import Client

    turn = asyncio.Semaphore(CONCURRENCY)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=base, timeout=60))
        session = await stack.enter_async_context(Client(target(), mode="legacy")) if share else None

        async def one(task: dict[str, Any]) -> None:
            async with turn:
                opened = nullcontext(session) if share else Client(target(), mode="legacy")
                await bare_run(client, opened, task["question"])

        await asyncio.gather(*(one(task) for task in TASKS))


def stdio() -> Any:
    from mcp import StdioServerParameters, stdio_client

    entry = bad()
    return stdio_client(StdioServerParameters(command=entry["command"], args=entry["args"]))


SERVERS = (
    ("one process for all", bad(share=True), stdio, True),
    ("a process for each run", bad(), stdio, False),
    ("in memory", toy_server, toy_server, False),
)


def seconds(*works: Callable[[], object], times: int = 4) -> list[tuple[float, float]]:
    """Wall and CPU time of this process for each of `works`, done in turns: the least of some times.

    The least is what the machine can do when nothing else asks for it.
    """
    took: list[list[tuple[float, float]]] = [[] for _ in works]
    for _ in range(times):
        for work, times_of_it in zip(works, took, strict=True):
            start = time.perf_counter(), time.process_time()
            work()
            times_of_it.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    return [tuple(map(min, zip(*times_of_it, strict=True))) for times_of_it in took]


def main() -> None:
    command = [sys.executable, "-m", "tests.benchmarks.bench_run", "serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as endpoint:
        base = endpoint.stdout.readline().strip()
        rounds = -(-RUNS // CONCURRENCY) * (CALLS + 1) * LATENCY
        print(f"{RUNS} runs x {CALLS} calls, {CONCURRENCY} at a time; the endpoint alone takes {rounds:.1f} s")
        for what, server, target, share in SERVERS:
            (whole, ours_cpu), (alone, bare_cpu) = seconds(
                lambda: ours(base, server),  # noqa: B023
                lambda: asyncio.run(bare(base, target, share)),  # noqa: B023
            )
            print(f"server {what}: run {whole:.2f} s, bare loop {alone:.2f} s, ratio {whole / alone:.2f}", end="; ")
            print(f"CPU of this process {ours_cpu:.2f} and {bare_cpu:.2f} s")
        endpoint.stdin.close()


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
