"""The table of what servers do wrong, each in a run over a real process, of its own and shared.

In each the row says what happened, the other rows are as they should be, and no process is left.
"""

from __future__ import annotations

import os
import re

import psutil
import pytest

from mcpeval.running import run
from tests.bad_server import LONG, bad

# How the server misbehaves, the calls that an agent makes of it, and what the row then says: an error, or
# a pattern for each call's answer, with whether that is an error.
DIES = r"server 'bad' is not there any more: it ended with exit code 3"
TABLE = {
    "dies at start": (bad("die"), [], r"'bad' did not start: it ended with exit code 1\n.*\n(.*\n)*KeyError: no city"),
    "hangs at start": (bad("hang", connect_timeout=0.5), [], r"'bad' did not answer within 0\.5 s"),
    "dies in a call": (bad(), [("die", {})], [(DIES, True)]),
    "hangs in a call": (
        bad(call_timeout=0.5),
        [("hang", {}), ("echo", {"x": 1})],
        [(r"server 'bad' did not answer within 0\.5 s", True), (r'\{"x": 1\}', False)],
    ),
    "prints garbage on stdout": (bad("banner"), [("chatter", {})], [("quiet now", False)]),
    "floods stderr": (bad(), [("flood", {"megabytes": 20})], [("flooded", False)]),
    "returns 20 MB": (bad(), [("big", {"size": 20_000_000})], [(r"startx+\n\[\.\.\. \d+ characters cut", False)]),
    "raises in a tool": (bad(), [("boom", {})], [("it went wrong: no such city", True)]),
    "lists 300 tools over pages": (bad("pages"), [("tool_299", {})], [("tool_299", False)]),
    "has the tool of another server": (bad(), [("bad__add", {"a": 2, "b": 2})], [("4", False)]),
    "has odd schemas": (
        bad("odd"),
        [(name, {}) for name in ("reference", "choice", "strict", "typeless", "nothing")],
        [(name, False) for name in ("reference", "choice", "strict", "typeless", "nothing")],
    ),
    "has odd names": (bad("long"), [("get_current_time", {})], [(re.escape(LONG[0]), False)]),
    "is asked for what is not there": (bad(), [("no_such_tool", {})], [(r"There is no tool 'no_such_tool'", True)]),
}


def groups() -> set[int]:
    """The process groups of this process's descendants, zombies left out."""
    found = set()
    for child in psutil.Process().children(recursive=True):
        try:
            if child.status() != psutil.STATUS_ZOMBIE:
                found.add(os.getpgid(child.pid))
        except (psutil.NoSuchProcess, ProcessLookupError):
            pass
    return found


@pytest.mark.parametrize("share", [False, True], ids=["own", "shared"])
@pytest.mark.parametrize("what", TABLE)
def test_a_server_that(what, share):
    entry, calls, said = TABLE[what]
    shown = []

    async def agent(task, session):
        if task.id != "bad":
            return session.show(await session.call_tool("add", {"a": 1, "b": 1}))
        for name, arguments in calls:
            call = await session.call_tool(name, arguments)
            shown.append((session.show(call), call.is_error))
        return "done"

    servers = {"bad": {**entry, "share": share}, "good": bad(share=share)}
    named = ["bad", "good"] if what.startswith("has the tool") else ["bad"]
    tasks = [{"id": "bad", "question": "what now?", "mcp_servers": named}]
    tasks += [{"id": f"good{i}", "question": "what now?", "mcp_servers": ["good"]} for i in range(3)]
    before = groups()
    frame = run(tasks, agent, servers=servers, cache=False, concurrency=4)
    assert groups() - before == set()
    assert frame["output"].tolist()[1:] == ["2", "2", "2"]
    bad_row = frame.iloc[0]
    if isinstance(said, str):
        assert (bad_row["status"], bad_row["error_class"]) == ("error", "server")
        assert re.search(said, bad_row["error"])
        return
    assert bad_row["output"] == "done"
    assert len(shown) == bad_row["n_tool_calls"] == len(said)
    for (text, is_error), call, (pattern, expected) in zip(shown, bad_row["tool_calls"], said, strict=True):
        assert re.match(pattern, text), text[:200]
        assert (is_error, call["is_error"]) == (expected, expected)
        assert len(str(call)) < 2_001_000
