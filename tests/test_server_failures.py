"""MCP servers that fail, each as a real process: what happened is said, the others go on, no process is left."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from mcpeval.errors import ServerError
from mcpeval.servers import open_toolbox, read_servers, stdio
from mcpeval.testing import toy_server
from tests.bad_server import bad, served


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for_the_end_of(pids, seconds=20.0):
    deadline = time.monotonic() + seconds
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    return [pid for pid in pids if alive(pid)]


@pytest.fixture(autouse=True)
def _no_process_is_left():
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    after = {child.pid for child in psutil.Process().children(recursive=True)}
    assert [pid for pid in after - before if alive(pid)] == []


def with_tools(source, use, **options):
    async def main():
        async with open_toolbox(list(read_servers(source, env={"TOKEN": "sk-1234567"}).values()), **options) as box:
            return await use(box)

    return asyncio.run(main())


async def nothing(box):
    return None


def start_error(source) -> ServerError:
    with pytest.raises(ServerError) as caught:
        with_tools(source, nothing)
    return caught.value


# At the start


def test_a_server_that_dies_at_the_start_is_an_error_with_the_end_of_its_stderr():
    error = start_error({"weather": bad("die", env={"TOKEN": "{{TOKEN}}"})})
    assert (error.server, error.timed_out) == ("weather", False)
    assert "'weather' did not start: it ended with exit code 1" in str(error)
    assert "KeyError: no city database for {{TOKEN}}" in str(error)
    assert "sk-1234567" not in str(error)


def test_a_server_that_cannot_be_imported_is_an_error_with_the_reason():
    error = start_error({"a": {"command": sys.executable, "args": ["-m", "no_such_module_x"]}})
    assert "No module named no_such_module_x" in str(error)


def test_a_server_that_hangs_at_the_start_is_given_up():
    error = start_error({"a": bad("hang", connect_timeout=0.5)})
    assert error.timed_out
    assert "did not answer within 0.5 s" in str(error)


def test_a_command_that_does_not_exist_is_an_error_that_names_it():
    assert "no-such-command-x" in str(start_error({"a": {"command": "no-such-command-x"}}))


def test_a_program_that_is_no_server_is_shown_by_what_it_printed():
    error = start_error({"a": {"command": sys.executable, "args": ["-c", "print('usage: cat FILE')"]}})
    assert "stdout: usage: cat FILE" in str(error)


def test_one_server_that_does_not_start_takes_the_others_with_it():
    def broken():
        raise ValueError("no data")

    for other in ({"command": "no-such-command-x"}, broken, bad("die")):
        error = start_error({"first": bad(), "second": other, "third": bad("child")})
        assert error.server == "second"


def test_nobody_answers_at_the_address_or_the_token_is_refused():
    with served("http", "right") as (url, process):
        refused = start_error({"a": {"url": url, "headers": {"Authorization": "Bearer wrong-token"}}})
        assert "HTTP 401" in str(refused)
        process.kill()
        process.wait()
        assert "ConnectError" in str(start_error({"a": {"url": url}}))
    with served("sse", "right") as (url, _):
        entry = {"url": url + "?key={{TOKEN}}", "headers": {"Authorization": "Bearer wrong-token"}}
        refused = start_error({"a": entry})
    assert "401" in str(refused)
    assert "wrong-token" not in str(refused) and "sk-1234567" not in str(refused)


# In a call


def test_a_server_that_dies_in_a_call_answers_all_its_calls_with_errors_and_the_others_go_on():
    async def use(box):
        waiting = [asyncio.ensure_future(box.call("hang", {})) for _ in range(3)]
        await box.call("a__add", {"a": 1, "b": 1})
        died = await box.call("die", {})
        later = await box.call("a__add", {"a": 1, "b": 1})
        other = await box.call("b__add", {"a": 1, "b": 1})
        return [*await asyncio.gather(*waiting), died, later], box.text(other), box.provenance

    offered = {"a": ["add", "hang", "die"], "b": ["add"]}
    calls, other, provenance = with_tools({"a": bad(), "b": bad()}, use, offered=offered)
    assert {call.error for call in calls} == {"server 'a' is not there any more: it ended with exit code 3"}
    assert all(call.is_error and call.result is None for call in calls)
    assert other == "2"
    assert provenance[0]["death"] == "ended with exit code 3\nTraceback: the disk is full"
    assert "death" not in provenance[1]


def test_a_server_that_is_killed_is_named_with_the_signal():
    async def use(box):
        (pid,) = json.loads(box.text(await box.call("pid", {})))
        os.kill(pid, signal.SIGKILL)
        return await box.call("add", {"a": 1, "b": 1})

    assert "signal 9" in with_tools({"a": bad()}, use).error


def test_a_call_that_hangs_is_given_up_and_the_server_is_told_and_stays_usable():
    async def use(box):
        hung = await box.call("hang", {})
        for _ in range(100):  # the word that nobody waits any more may come after the next call
            told = json.loads(box.text(await box.call("cancelled", {})))
            if told:
                break
            await asyncio.sleep(0.02)
        return hung, told, box.text(await box.call("add", {"a": 1, "b": 1}))

    hung, told, after = with_tools({"a": bad(call_timeout=0.5)}, use)
    assert (hung.is_error, hung.error) == (True, "server 'a' did not answer within 0.5 s")
    assert len(told) == 1
    assert after == "2"


def test_a_server_that_reads_nothing_cannot_hold_a_call_up():
    async def use(box):
        (pid,) = json.loads(box.text(await box.call("pid", {})))
        os.kill(pid, signal.SIGSTOP)
        try:
            return await asyncio.gather(*(box.call("echo", {"text": "x" * 500_000}) for _ in range(4)))
        finally:
            os.kill(pid, signal.SIGCONT)

    calls = with_tools({"a": bad(call_timeout=0.5)}, use)
    assert [call.error for call in calls] == ["server 'a' did not answer within 0.5 s"] * 4


def test_garbage_on_stdout_is_passed_over():
    async def use(box):
        chatter = await box.call("chatter", {})
        return box.text(chatter), box.text(await box.call("add", {"a": 1, "b": 1}))

    assert with_tools({"a": bad("banner")}, use) == ("quiet now", "2")


def test_nothing_that_a_server_does_wrong_is_printed(capfd):
    async def use(box):
        await box.call("chatter", {})
        await box.call("a__boom", {})
        await box.call("toy__boom", {})
        return await box.call("a__die", {})

    with_tools({"a": bad("banner"), "toy": toy_server, "b": bad()}, use, offered={"b": ["boom", "die"]})
    assert capfd.readouterr() == ("", "")


def test_a_flood_on_stderr_does_not_stop_the_server():
    async def use(box):
        return box.text(await box.call("flood", {"megabytes": 50})), box.text(await box.call("add", {"a": 1, "b": 1}))

    assert with_tools({"a": bad()}, use) == ("flooded", "2")


def test_a_result_of_twenty_megabytes_is_cut_and_marked_while_others_go_on():
    async def use(box):
        big = asyncio.ensure_future(box.call("a__big", {"size": 20_000_000}))
        others = [box.text(await box.call("b__add", {"a": i, "b": 0})) for i in range(20)]
        big = await big
        return box.text(big), box.is_cut(big), big, others

    told, is_cut, call, others = with_tools({"a": bad(), "b": bad()}, use)
    assert others == [str(i) for i in range(20)]
    assert told.startswith("startxxx") and told.endswith("xxxend")
    assert "characters cut ...]" in told
    assert len(told) < 51_000
    assert (is_cut, call.is_error) == (True, False)
    assert len(json.dumps(call.to_dict())) < 2_001_000


def test_an_answer_beyond_what_is_read_is_an_error_of_that_call_alone(monkeypatch):
    monkeypatch.setattr(stdio, "MESSAGE_LIMIT", 1_000_000)

    async def use(box):
        calls = [box.call(name, {"size": 3_000_000}) for name in ("big", "too_big")]
        return [call.error for call in await asyncio.gather(*calls)], box.text(await box.call("add", {"a": 1, "b": 1}))

    errors, after = with_tools({"a": bad()}, use)
    assert all("more than the 1000000 that are read" in error for error in errors)
    assert after == "2"


def test_a_result_that_is_nested_too_deeply_is_an_error_of_that_call_alone():
    async def use(box):
        return await box.call("deep", {}), box.text(await box.call("add", {"a": 1, "b": 1}))

    deep, after = with_tools({"a": bad()}, use)
    assert (deep.is_error, after) == (True, "2")


def test_a_refused_request_is_told_without_the_secret():
    async def use(box):
        return await box.call("refuse", {}), await box.call_tool("a", "no_such_tool", {})

    refused, unknown = with_tools({"a": bad(env={"TOKEN": "{{TOKEN}}"})}, use)
    assert refused.error == "not with this token: {{TOKEN}} (code -32050)"
    assert (unknown.is_error, unknown.error) == (True, "Unknown tool: no_such_tool (code -32602)")


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_a_server_over_http_that_dies_in_a_call_is_an_error_of_its_calls_and_the_others_go_on(transport):
    async def use(box):
        waiting = asyncio.ensure_future(box.call("wait", {"seconds": 30}))
        await box.call("a__add", {"a": 1, "b": 1})
        died = await box.call("die", {})
        later = await box.call("a__add", {"a": 1, "b": 1})
        return [await waiting, died, later], box.text(await box.call("b__add", {"a": 1, "b": 1}))

    with served(transport) as (url, _):
        calls, other = with_tools({"a": {"url": url, "call_timeout": 10}, "b": bad()}, use, offered={"b": ["add"]})
    assert all(call.is_error and call.error and "did not answer" not in call.error for call in calls)
    assert "'a' is not there any more" in calls[2].error
    assert other == "2"


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_a_call_over_http_that_hangs_is_given_up_and_the_session_stays_usable(transport):
    async def use(box):
        hung = await box.call("wait", {"seconds": 30})
        return hung.error, box.text(await box.call("echo", {"text": "here"}))

    with served(transport) as (url, _):
        error, after = with_tools({"a": {"url": url, "call_timeout": 0.5}}, use)
    assert error == "server 'a' did not answer within 0.5 s"
    assert after == "here"


def test_over_http_a_result_of_megabytes_arrives():
    async def use(box):
        return len((await box.call("big", {"size": 1_900_000})).result["content"][0]["text"])

    with served("http") as (url, _):
        assert with_tools({"a": {"url": url}}, use) == 1_900_000


def test_over_sse_a_result_beyond_what_the_sdk_reads_is_an_error_that_says_so():
    async def use(box):
        return await box.call("big", {"size": 1_900_000})

    with served("sse") as (url, _):
        call = with_tools({"a": {"url": url}}, use)
    assert call.is_error
    assert "is not there any more" in call.error


# The end


def test_a_call_after_the_end_is_an_error_and_starts_nothing():
    async def main():
        async with open_toolbox(list(read_servers({"a": bad()}).values())) as box:
            pass
        return await box.call("add", {"a": 1, "b": 1})

    call = asyncio.run(main())
    assert (call.is_error, call.error) == (True, "server 'a' is not there any more: it ended with exit code 0")


def pids_of(box_calls):
    return [pid for call in box_calls for pid in json.loads(call.result["content"][0]["text"])]


def test_no_process_is_left_of_a_server_with_children(monkeypatch):
    async def use(box):
        return pids_of([await box.call("pid", {})])

    pids = with_tools({"a": bad("child")}, use)
    assert len(pids) == 2
    assert wait_for_the_end_of(pids) == []


def test_a_server_that_does_not_leave_is_made_to(monkeypatch):
    monkeypatch.setattr(stdio, "EXIT_GRACE", 0.3)

    async def use(box):
        return pids_of([await box.call("pid", {})])

    assert wait_for_the_end_of(with_tools({"a": bad("stay", "child")}, use)) == []


def test_an_error_of_the_caller_ends_the_servers_and_is_raised_as_it_is():
    pids = []

    async def use(box):
        pids.extend(pids_of([await box.call("pid", {})]))
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        with_tools({"a": bad("child")}, use)
    assert wait_for_the_end_of(pids) == []


@pytest.mark.parametrize("how", [(), ("hang",)])
def test_a_cancelled_caller_leaves_no_server_whether_it_was_starting_or_in_a_call(how):
    async def main():
        async def work():
            async with open_toolbox(list(read_servers({"a": bad(*how), "b": bad("child")}).values())) as box:
                await box.call_tool("a", "hang", {})

        task = asyncio.create_task(work())
        while not psutil.Process().children(recursive=True):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        pids = [child.pid for child in psutil.Process().children(recursive=True)]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return pids

    pids = asyncio.run(main())
    assert pids
    assert wait_for_the_end_of(pids) == []


def test_a_start_cancelled_at_any_moment_ends():
    async def main():
        for steps in range(0, 60, 3):

            async def work():
                async with open_toolbox(list(read_servers({"a": bad()}).values())):
                    await asyncio.sleep(60)

            task = asyncio.create_task(work())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(asyncio.wait_for(main(), 60))


WORKER = """
import asyncio, json, sys, threading
from mcpeval.servers import open_toolbox, read_servers

printed = threading.Event()  # a thread that still prints as Python ends would crash it

async def main():
    async with open_toolbox(list(read_servers(json.loads(sys.argv[1])).values())) as box:
        pids = [json.loads(box.text(await box.call_tool(name, "pid", {}))) for name in sys.argv[3:]]
        print(json.dumps(sum(pids, [])), flush=True)
        printed.set()
        await box.call_tool(sys.argv[3], "hang", {})

if sys.argv[2] == "leave":
    threading.Thread(target=asyncio.run, args=(main(),), daemon=True).start()
    printed.wait()
    sys.stdin.readline()
else:
    asyncio.run(main())
"""


def worker(source, what, *names):
    command = [sys.executable, "-c", WORKER, json.dumps(source), what, *names]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1])


def test_no_server_outlives_a_process_that_is_killed(node_bin, tmp_path):
    files = {"command": str(node_bin / "mcp-server-filesystem"), "args": [str(tmp_path)]}
    with worker({"a": bad(), "b": bad(), "files": files}, "wait", "a", "b") as process:
        process.stdout.readline()
        pids = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
        process.kill()
    assert len(pids) >= 3
    assert wait_for_the_end_of(pids) == []


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="only Linux lets a process end with its parent")
def test_not_even_a_stubborn_server_outlives_a_process_that_is_killed():
    with worker({"a": bad("stay")}, "wait", "a") as process:
        pids = json.loads(process.stdout.readline())
        process.kill()
    assert len(pids) == 1
    assert wait_for_the_end_of(pids) == []


def test_a_process_that_leaves_without_closing_takes_even_stubborn_servers_along():
    with worker({"a": bad("stay", "child")}, "leave", "a") as process:
        pids = json.loads(process.stdout.readline())
        process.stdin.write(b"\n")
        process.stdin.close()
        assert process.wait() == 0
    assert len(pids) == 2
    assert wait_for_the_end_of(pids) == []


def test_an_interrupt_ends_the_servers():
    with worker({"a": bad("child")}, "wait", "a") as process:
        pids = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        process.wait()
    assert wait_for_the_end_of(pids) == []
