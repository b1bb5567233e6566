"""Servers with `share`: one process for all runs, a fresh one where it died, none left in the end."""

from __future__ import annotations

import asyncio
import json
import os
import signal

import psutil
import pytest

import mcpeval
from mcpeval.errors import InputError, ServerError
from mcpeval.running import run
from mcpeval.servers import Server, SharedServers, open_toolbox, read_servers, sharing
from mcpeval.testing import toy_server
from tests.bad_server import bad

TASKS = [f"question number {i}?" for i in range(6)]


@pytest.fixture(autouse=True)
def _no_process_is_left():
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    after = psutil.Process().children(recursive=True)
    assert [child.pid for child in after if child.pid not in before and child.status() != psutil.STATUS_ZOMBIE] == []


async def pid_of(session) -> int:
    return json.loads(session.show(await session.call_tool("pid", {})))[0]


async def tell_pid(task, session):
    return await pid_of(session)


def pids(frame):
    return [int(output) for output in frame["output"]]


def test_all_runs_of_a_shared_server_use_one_process_and_those_of_any_other_one_each():
    shared = run(TASKS, tell_pid, servers={"a": bad(share=True)}, cache=False, concurrency=3)
    own = run(TASKS, tell_pid, servers={"a": bad()}, cache=False, concurrency=3)
    assert (len(set(pids(shared))), len(set(pids(own)))) == (1, 6)
    assert {row["servers"][0]["shared"] for row in shared["metadata"]} == {True}
    assert {row["servers"][0]["shared"] for row in own["metadata"]} == {False}
    assert not psutil.pid_exists(pids(shared)[0])


def test_a_second_run_starts_a_process_of_its_own():
    first, second = (run(TASKS[:2], tell_pid, servers={"a": bad(share=True)}, cache=False) for _ in range(2))
    assert not set(pids(first)) & set(pids(second))


def test_a_shared_and_an_own_server_stand_side_by_side_and_share_may_be_said_in_python():
    servers = {"own": toy_server, "shared": Server("shared", "memory", target=toy_server, share=True)}

    async def note(task, session):
        for server in ("own", "shared"):
            await session.call_tool(f"{server}__note", {"text": "x"})
        kept = [await session.call_tool(f"{server}__notes", {}) for server in ("own", "shared")]
        return [len(call.result["structuredContent"]["result"]) for call in kept]

    frame = run(TASKS[:3], note, servers=servers, cache=False, concurrency=1)
    assert frame["output"].tolist() == ["[1, 1]", "[1, 2]", "[1, 3]"]


def test_a_shared_server_that_dies_fails_the_calls_in_flight_and_the_runs_after_get_a_fresh_process():
    both = asyncio.Event()

    async def agent(task, session):
        if task.id == "kills":
            await both.wait()  # until the other run has the same process
            died = await session.call_tool("die", {})
            return [died.error, (await session.call_tool("add", {"a": 1, "b": 1})).is_error]
        if task.id == "waits":
            both.set()
            return (await session.call_tool("hang", {})).error
        return session.show(await session.call_tool("add", {"a": 1, "b": 1}))

    tasks = [{"id": name, "question": "what now?"} for name in ("kills", "waits", "after1", "after2")]
    frame = run(tasks, agent, servers={"a": bad(share=True)}, cache=False, concurrency=2)
    gone = "server 'a' is not there any more: it ended with exit code 3"
    assert frame["status"].tolist() == ["ok"] * 4
    assert json.loads(frame["output"][0]) == [gone, True]
    assert frame["output"].tolist()[1:] == [gone, "2", "2"]
    deaths = [row["servers"][0].get("death") for row in frame["metadata"]]
    assert deaths == ["ended with exit code 3\nTraceback: the disk is full"] * 2 + [None] * 2


def test_a_shared_server_that_was_killed_between_two_runs_is_started_anew():
    async def agent(task, session):
        pid = await pid_of(session)
        os.kill(pid, 9)
        while psutil.pid_exists(pid):
            await asyncio.sleep(0.01)
        return pid

    frame = run(TASKS[:3], agent, servers={"a": bad(share=True)}, cache=False, concurrency=1)
    assert len(set(pids(frame))) == 3


def test_a_shared_server_that_dies_at_start_fails_each_run_with_its_last_words():
    servers = {"a": bad("die", share=True), "b": bad(share=True)}
    tasks = [{"question": f"{n} {i}?", "mcp_servers": [n]} for i in range(3) for n in ("a", "b")]
    frame = run(tasks, tell_pid, servers=servers, cache=False)
    assert frame["status"].tolist() == ["error", "ok"] * 3
    assert (frame["error_class"][::2] == "server").all()
    assert frame["error"][::2].str.contains("KeyError: no city database").all()


def test_a_start_that_failed_is_tried_again_for_the_runs_that_come_after(tmp_path):
    servers = {"a": bad("die_once", share=True, env={"MARK": str(tmp_path / "mark")})}
    frame = run(TASKS[:3], tell_pid, servers=servers, cache=False, concurrency=1)
    assert frame["status"].tolist() == ["error", "ok", "ok"]
    assert "the port is in use" in frame["error"][0]
    assert frame["output"][1] == frame["output"][2]


def test_a_shared_server_that_hangs_at_start_fails_those_that_wait_for_it_at_once():
    frame = run(TASKS[:4], tell_pid, servers={"a": bad("hang", share=True, connect_timeout=0.5)}, cache=False)
    assert frame["error"].str.contains("did not answer within 0.5 s").all()


def test_a_call_of_a_shared_server_that_hangs_holds_no_other_run_up():
    async def agent(task, session):
        name = "hang" if task.id == "hangs" else "add"
        return session.show(await session.call_tool(name, {"a": 1, "b": 1}))

    tasks = [{"id": "hangs", "question": "what?"}, *TASKS[:3]]
    frame = run(tasks, agent, servers={"a": bad(share=True, call_timeout=0.5)}, cache=False)
    assert frame["output"].tolist() == ["server 'a' did not answer within 0.5 s", "2", "2", "2"]


def test_a_shared_server_that_answers_nothing_any_more_is_replaced_for_the_runs_after(monkeypatch):
    monkeypatch.setattr(sharing, "SIGN_OF_LIFE", 0.3)

    async def freeze_the_first(task, session):
        pid = await pid_of(session)
        if task.id == "first":
            os.kill(pid, signal.SIGSTOP)
            return session.show(await session.call_tool("add", {"a": 1, "b": 1}))
        return pid

    tasks = [{"id": name, "question": "what now?"} for name in ("first", "second", "third")]
    servers = {"a": bad(share=True, call_timeout=0.5)}
    frame = run(tasks, freeze_the_first, servers=servers, cache=False, concurrency=1)
    said, second, third = frame["output"]
    assert said == "server 'a' did not answer within 0.5 s" and int(second) == int(third)


def test_a_shared_server_with_one_call_that_hangs_is_kept():
    async def hang(task, session):
        await session.call_tool("hang", {})
        return await pid_of(session)

    frame = run(TASKS[:2], hang, servers={"a": bad(share=True, call_timeout=0.3)}, cache=False, concurrency=1)
    assert len(set(pids(frame))) == 1


def test_shared_servers_that_are_left_while_one_is_asked_for_a_sign_of_life_start_no_other():
    async def leave():
        async with SharedServers() as shared:
            server = read_servers({"a": bad(share=True)})["a"].resolve()
            connection = await shared.connection(server)
            (process,) = psutil.Process().children()
            process.suspend()
            with pytest.raises(ServerError, match="did not answer within"):
                await connection.request("ping", timeout=0.1)
            asking = asyncio.create_task(shared.connection(server))
            await asyncio.sleep(0.05)
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(leave())


def test_a_run_that_is_cancelled_while_a_shared_server_starts_takes_it_from_nobody():
    async def main():
        server = read_servers({"a": bad(share=True)})["a"]
        async with SharedServers() as shared:

            async def use():
                async with open_toolbox([server], shared=shared) as box:
                    return box.text(await box.call("add", {"a": 1, "b": 1}))

            first, second = asyncio.create_task(use()), asyncio.create_task(use())
            await asyncio.sleep(0.01)
            first.cancel()
            assert await second == "2"
            with pytest.raises(asyncio.CancelledError):
                await first

    asyncio.run(main())


@pytest.mark.parametrize("how", [(), ("hang",), ("die",)])
def test_shared_servers_that_are_left_while_one_starts_end_it(how):
    async def main():
        server = read_servers({"a": bad(*how, share=True)})["a"].resolve()
        async with SharedServers() as shared:
            waiting = asyncio.create_task(shared.connection(server))
            await asyncio.sleep(0.05)
        with pytest.raises((ServerError, asyncio.CancelledError)):
            await waiting
            raise asyncio.CancelledError  # it had started: that is as well

    asyncio.run(main())


def test_a_shared_server_cannot_work_in_a_folder_that_each_run_has_its_own_of():
    servers = {"a": bad("{{WORKDIR}}", share=True)}
    with pytest.raises(InputError, match="'a'.*share"):
        run(TASKS, tell_pid, servers=servers, cache=False)


def test_whether_a_server_is_shared_is_part_of_what_a_run_is_kept_under(cache):
    class Fingerprinted:
        fingerprint = "f"

        async def __call__(self, task, session):
            return await pid_of(session)

    cached = [
        mcpeval.run("what now?", {"a": Fingerprinted()}, servers={"a": bad(share=share)}, cache=cache)["cached"][0]
        for share in (False, True, False, True)
    ]
    assert cached == [False, False, True, True]
