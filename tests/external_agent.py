"""A command-line agent as others are: it reads a prompt, starts the MCP servers of a file itself, tells in JSON lines.

``python tests/external_agent.py FORM HOW CONFIG [PROMPT]``: FORM is ``claude`` or ``chat``; without a
PROMPT it is read from stdin.  It calls ``add(a=1, b=2)`` of the server ``toy`` through the SDK.  HOW is
any of ``answer``; ``hang`` (with the server running, it takes no notice of SIGTERM); ``fail``;
``mute`` (no answer); ``noise`` (lines that are no JSON before it); ``tell`` (its own environment, folder
and configuration are its answer).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import sys
import time
from pathlib import Path

ADD = {"a": 1, "b": 2}


def say(**event):
    print(json.dumps(event), flush=True)


def claude(kind, **message):
    say(type=kind, message={"role": kind, **message}, session_id="s-1")


def tell_call(form):
    if form == "claude":
        say(type="system", subtype="init", session_id="s-1", mcp_servers=[{"name": "toy", "status": "connected"}])
        usage = {"input_tokens": 20, "cache_read_input_tokens": 5, "output_tokens": 7}
        head = {"id": "m-1", "model": "claude-of-the-test", "usage": usage}
        # One answer of the model comes in two events, one for each of its blocks.
        claude("assistant", **head, content=[{"type": "text", "text": "I add."}])
        call = {"type": "tool_use", "id": "t-1", "name": "mcp__toy__add", "input": ADD}
        claude("assistant", **head, content=[call])
    else:
        function = {"name": "toy__add", "arguments": json.dumps(ADD)}
        call = {"id": "t-1", "type": "function", "function": function}
        say(role="assistant", content="I add.", tool_calls=[call], usage={"prompt_tokens": 25, "completion_tokens": 7})


def tell_result(form, text):
    if form == "claude":
        claude(
            "user", content=[{"type": "tool_result", "tool_use_id": "t-1", "content": [{"type": "text", "text": text}]}]
        )
    else:
        say(role="tool", tool_call_id="t-1", content=text)


def tell_answer(form, text):
    if form == "claude":
        claude("assistant", id="m-2", model="claude-of-the-test", content=[{"type": "text", "text": text}])
        usage = {"input_tokens": 50, "cache_read_input_tokens": 10, "output_tokens": 9}
        say(
            type="result", subtype="success", is_error=False, num_turns=2, result=text, duration_api_ms=1500,
            total_cost_usd=0.0125, usage=usage,
        )  # fmt: skip
    else:
        say(role="assistant", content=text, usage={"prompt_tokens": 35, "completion_tokens": 2}, cost_usd=0.0125)


async def work(form, how, config, prompt):
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    toy = config["mcpServers"]["toy"]
    parameters = StdioServerParameters(command=toy["command"], args=toy["args"], env=toy["env"], cwd=toy["cwd"])
    async with Client(stdio_client(parameters)) as client:
        tell_call(form)
        result = await client.call_tool("add", ADD)
        tell_result(form, result.content[0].text)
        if "hang" in how:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            Path("hanging").touch()
            time.sleep(600)
    if "fail" in how:
        print("no ink: " + os.environ.get("PEN_API_KEY", ""), file=sys.stderr)
        sys.exit(3)
    if "mute" not in how:
        tell_answer(form, f"{prompt.splitlines()[-1]} It is {result.content[0].text}.")


def main(form, how, path, *prompt):
    how = how.split(",")
    config = json.loads(Path(path).read_text())
    if "noise" in how:
        print("Welcome!\n\n[1, 2", flush=True)
    if "tell" in how:
        found = {
            "environment": sorted(os.environ), "folder": os.getcwd(), "files": os.listdir(),
            "mode": stat.S_IMODE(os.stat(path).st_mode), "config": config, "path": path, "arguments": list(prompt),
            "key": os.environ.get("PEN_API_KEY"),
        }  # fmt: skip
        say(answer=found)
        return
    asyncio.run(work(form, how, config, prompt[0] if prompt else sys.stdin.read()))


if __name__ == "__main__":
    main(*sys.argv[1:])
