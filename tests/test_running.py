"""`run`: rows in order, everything wrong said first, every failure in its own row, nothing paid twice."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pandas as pd
import pytest

from mcpeval.agents import STRATEGIES, Agent, strategy
from mcpeval.caching import Cache
from mcpeval.errors import CacheMiss, FileError, InputError
from mcpeval.evaluators import rule
from mcpeval.frames import RUN_COLUMNS
from mcpeval.running import run
from mcpeval.testing import toy_server
from mcpeval.types import Task
from tests.bad_server import bad

REPOSITORY = Path(__file__).resolve().parents[1]
KEY = "sk-test-000001"
PRICE = 100 * 0.4e-6 + 10 * 1.6e-6  # the endpoint's 100 + 10 tokens at OpenAI's published dollars a token
ECHO = [{"name": "toy", "tools": ["echo"]}]


@pytest.fixture
def agent(endpoint):
    """An agent that asks the loopback endpoint, whose model calls a tool once where one is offered."""
    endpoint.script(None)
    yield lambda strategy="basic", model="openai/good", **more: Agent(
        model, strategy, api_base=endpoint.base, api_key=KEY, retries=0, **more
    )
    endpoint.script(None)


def questions(n, **more):
    return [{"id": f"t{i}", "question": f"What is in ROW-{i}?", **more} for i in range(n)]


def steady(frame):
    """A frame's rows without what a second run may change: what was paid, when, and how long it took."""
    rows = json.loads(frame.drop(columns=["cost_usd", "cached", "seconds"]).to_json(orient="records"))
    for row in rows:
        row["metadata"] = {k: v for k, v in row["metadata"].items() if k not in ("started", "saved_usd")}
        for call in row["tool_calls"]:
            del call["seconds"]
        changing = ("start", "seconds", "cost_usd", "saved_usd", "cached")
        row["spans"] = [{k: v for k, v in span.items() if k not in changing} for span in row["spans"]]
    return rows


# --- what may be given --------------------------------------------------------------------------


def test_rows_come_in_the_order_of_tasks_agents_and_trials_with_the_columns_of_a_runs_frame(agent, cache):
    agents = [agent(name="b"), agent(name="a", temperature=1)]
    frame = run(questions(3), agents, trials=2, cache=cache)
    assert list(frame.columns) == list(RUN_COLUMNS)
    keys = list(zip(frame["task_id"], frame["agent"], frame["trial"], strict=True))
    assert keys == [(f"t{i}", name, trial) for i in range(3) for name in ("b", "a") for trial in range(2)]
    assert frame["output"].tolist() == [f"answer for {i}" for i in range(3) for _ in range(4)]
    assert frame["run_id"].nunique() == 12
    assert frame["run_id"].tolist() == run(questions(3), agents, trials=2, cache=False)["run_id"].tolist()


def test_tasks_are_a_file_a_folder_a_frame_dicts_tasks_or_questions(agent, tmp_path, endpoint):
    (tmp_path / "tasks").mkdir()
    file = tmp_path / "tasks" / "two.jsonl"
    file.write_text("".join(json.dumps(task) + "\n" for task in questions(2)))
    frame = pd.DataFrame(
        {"task_id": ["t0", "t1"], "question": ["What is in ROW-0?", "What is in ROW-1?"], "reference": [None, "7"]}
    )
    tasks = [Task("t0", "What is in ROW-0?"), questions(2)[1]]
    for given in (file, str(file), tmp_path / "tasks", frame, tasks):
        found = run(given, agent(), cache=False)
        assert found["task_id"].tolist() == ["t0", "t1"]
        assert found["output"].tolist() == ["answer for 0", "answer for 1"]
    assert run(frame, agent(), cache=False)["reference"].tolist() == [None, "7"]
    for given in ("What is in ROW-5?", ["What is in ROW-5?"], {"question": "What is in ROW-5?"}):
        assert run(given, agent(), cache=False)["output"].tolist() == ["answer for 5"]
    labelled = frame.drop(columns="task_id").set_axis(["x", "y"])
    assert run(labelled, agent(), cache=False)["task_id"].tolist() == ["x", "y"]


def test_what_a_task_brings_along_is_in_its_row(agent):
    task = {
        "id": "t",
        "question": "What is in ROW-1?",
        "category": "rows",
        "reference": {"n": 1},
        "tags": ["easy"],
        "evaluators": [{"func": "raw", "op": "contain", "value": "1"}],
        "expected_tool_calls": [{"name": "look"}],
    }
    row = run(task, agent(), cache=False).iloc[0]
    for name in ("category", "reference", "tags", "evaluators", "expected_tool_calls", "question"):
        assert row[name] == task[name]


def test_agents_are_named_by_a_dict(agent):
    frame = run(
        questions(1),
        {"first": agent(), "second": agent(temperature=1), "third": lambda task, session: "x"},
        cache=False,
    )
    assert frame["agent"].tolist() == ["first", "second", "third"]


@pytest.mark.parametrize(
    ("tasks", "agents", "more", "said"),
    [
        ([], "basic", {}, "tasks is empty"),
        (questions(1), [], {}, "agents is empty"),
        ([questions(1)[0], questions(1)[0]], "basic", {}, "two tasks have the id 't0'"),
        (questions(1), ["basic", "basic"], {}, "2 agents are named 'basic:good'"),
        ([{"questoin": "?"}], "basic", {}, "Did you mean 'question'?"),
        (questions(1), "basic", {"trials": 0}, "trials=0 should be a whole number, at least 1"),
        (questions(1), "basic", {"concurrency": 2.5}, "concurrency=2.5 should be a whole number"),
        (questions(1, mcp_servers=["tiem"]), "tools", {"servers": {"time": bad()}}, "Did you mean 'time'?"),
        (questions(1, mcp_servers=["time"]), "tools", {}, "run() was given no servers="),
        (questions(1), "narrow", {"servers": {"time": bad()}}, "agent 'tools:good' names the MCP server 'tome'"),
        (questions(1), "tools", {"servers": {"a": bad(env={"X": "{{NOT_SET_1}}"})}}, "NOT_SET_1"),
        (questions(1), "tools", {"servers": {"a": {"command": "no-such-command-1"}}}, "no-such-command-1"),
        (questions(1), "provider", {}, "Did you mean 'openai'?"),
        (
            questions(1, output_format={1}),
            "basic",
            {"cache": None},
            "task 't0', agent 'basic:good', trial 0: the task should",
        ),
        (questions(1), "local", {"servers": {"toy": toy_server}}, "use strategy='react'"),
    ],
)
def test_what_cannot_be_meant_is_said_before_anything_is_started_or_paid(agent, endpoint, tasks, agents, more, said):
    made = {
        "basic": agent(),
        "tools": agent("tools"),
        "narrow": agent("tools", servers=["tome"]),
        "provider": Agent("opnai/gpt-4.1-mini", "basic"),
        "local": Agent("local/smollm2-135m", "tools"),
    }
    started = []
    good = {"id": "good", "question": "Fine?"}
    tasks = tasks and [good, *tasks]
    agents = [made[name] for name in agents] if isinstance(agents, list) else made[agents]
    if isinstance(agents, Agent):
        agents = [lambda task, session: started.append(task), agents]
    with pytest.raises(InputError, match=re.escape(said)):
        run(tasks, agents, **{"cache": False, **more})
    assert (endpoint.count, started) == (0, [])


def test_a_task_file_with_a_fault_is_named_with_its_line(agent, tmp_path, endpoint):
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"question": "Fine?"}\n{"question": \n')
    with pytest.raises(FileError, match=r"tasks\.jsonl, line 2"):
        run(file, agent(), cache=False)
    with pytest.raises(FileError, match="there is no such file"):
        run("my tasks.json", agent(), cache=False)
    assert endpoint.count == 0


# --- servers ------------------------------------------------------------------------------------


def offered(endpoint):
    return [
        [tool["function"]["name"] for tool in body.get("tools", ())]
        for body in endpoint.requests
        if len(body["messages"]) == 1
    ]


def test_a_task_is_offered_the_servers_and_tools_it_names_and_all_where_it_names_none(agent, endpoint):
    servers = {"a": lambda: toy_server("a"), "b": lambda: toy_server("b")}
    tools = ["add", "echo", "note", "notes", "look", "boom", "wait"]
    tasks = [
        {"id": "some", "question": "ROW-1 ?", "mcp_servers": [{"name": "b", "tools": ["echo", "add"]}]},
        {"id": "one", "question": "ROW-2 ?", "mcp_servers": ["a"]},
        {"id": "none named", "question": "ROW-3 ?"},
        {"id": "not only", "question": "ROW-4 ?", "mcp_servers": ["a"], "use_specified_server": False},
    ]
    run(tasks, agent("tools"), servers=servers, cache=False, concurrency=1)
    both = [f"{server}__{tool}" for server in ("a", "b") for tool in tools]
    assert offered(endpoint) == [["add", "echo"], tools, both, both]
    endpoint.reset()
    run(tasks, agent("tools", servers=["a"]), servers=servers, cache=False, concurrency=1)
    assert offered(endpoint) == [[], tools, tools, tools]
    endpoint.reset()
    run(tasks, agent("tools", servers=[]), cache=False, servers=servers)
    run(tasks, agent("basic"), cache=False)  # needs no servers, so none have to be there
    assert offered(endpoint) == [[]] * 8


def test_each_trial_has_servers_of_its_own():
    async def remembers(task, session):
        await session.call_tool("note", {"text": f"ROW of {task.id}"})
        return session.show(await session.call_tool("notes"))

    frame = run(questions(2), remembers, trials=3, servers={"toy": toy_server}, cache=False)
    assert [json.loads(f"[{json.dumps(text)}]") for text in frame["output"]] == [
        [f"ROW of {t}"] for t in frame["task_id"]
    ]


def test_a_server_that_does_not_start_fails_its_own_rows_with_its_last_words_and_the_others_finish(agent):
    servers = {"toy": bad(), "dead": bad("die")}
    tasks = questions(2, mcp_servers=ECHO) + [{"id": "dead", "question": "ROW-9 ?", "mcp_servers": ["dead"]}]
    frame = run(tasks, agent("tools"), servers=servers, cache=False)
    assert frame["status"].tolist() == ["ok", "ok", "error"]
    assert frame["error_class"].iloc[2] == "server" and "dead" in frame["error"].iloc[2]
    assert frame["metadata"].iloc[2]["server"] == "dead"
    (server,) = frame["metadata"].iloc[0]["servers"]
    assert server["name"] == "toy" and len(server["tools_sha256"]) == 64


def test_a_server_that_dies_in_a_call_is_told_to_the_model_and_the_run_goes_on(agent):
    tasks = questions(1, mcp_servers=[{"name": "toy", "tools": ["die"]}])
    row = run(tasks, agent("tools"), servers={"toy": bad()}, cache=False).iloc[0]
    assert (row["status"], row["output"]) == ("ok", "answer for 0")
    (call,) = row["tool_calls"]
    assert call["is_error"] and "it ended with exit code 3" in call["error"]
    assert "the disk is full" in row["metadata"]["servers"][0]["death"]


def test_a_tool_that_a_server_does_not_have_is_named_in_the_row(agent):
    tasks = questions(1, mcp_servers=[{"name": "toy", "tools": ["ecko"]}])
    row = run(tasks, agent("tools"), servers={"toy": toy_server}, cache=False).iloc[0]
    assert row["status"] == "error" and "Did you mean 'echo'?" in row["error"]


def test_no_more_runs_than_asked_for_go_on_at_once():
    going, most = set(), []

    async def busy(task, session):
        going.add(task.id)
        most.append(len(going))
        await asyncio.sleep(0.01)
        going.discard(task.id)

    run(questions(20), busy, concurrency=3, cache=False)
    assert max(most) == 3


# --- failures and the cache ---------------------------------------------------------------------


def test_a_failure_is_in_its_own_row_and_only_it_is_tried_again(agent, endpoint, cache):
    broken = True
    endpoint.script(lambda body: (500, {}, "no") if broken and "ROW-1?" in json.dumps(body) else None)
    first = run(questions(3), agent(), cache=cache)
    assert first["status"].tolist() == ["ok", "error", "ok"]
    assert first["error_class"].tolist()[1] == "model" and "500" in first["error"][1]
    broken = False
    endpoint.reset()
    second = run(questions(3), agent(), cache=cache)
    assert second["status"].tolist() == ["ok"] * 3 and second["cached"].tolist() == [True, False, True]
    assert endpoint.count == 1


def test_a_second_run_costs_nothing_starts_nothing_and_is_the_same(agent, endpoint, cache):
    given = {"servers": {"toy": bad()}, "cache": cache, "trials": 2}
    one = agent("tools", model="openai/gpt-4.1-mini")
    first = run(questions(2, mcp_servers=ECHO), one, **given)
    assert endpoint.count == 8 and first["n_tool_calls"].tolist() == [1] * 4
    assert first["cost_usd"].tolist() == pytest.approx([2 * PRICE] * 4) and not first["cached"].any()
    gone = {**given, "servers": {"toy": bad(command=sys.executable)}}
    second = run(questions(2, mcp_servers=ECHO), one, **gone)
    assert endpoint.count == 8
    assert steady(second) == steady(first)
    assert second["cached"].all() and second["cost_usd"].tolist() == [0.0] * 4
    assert second["seconds"].tolist() == first["seconds"].tolist()
    assert [m["saved_usd"] for m in second["metadata"]] == pytest.approx([2 * PRICE] * 4)


def test_what_shapes_a_run_makes_another_run_of_it_and_nothing_else_does(agent, endpoint, cache):
    task = {"id": "t", "question": "What is in ROW-1?", "output_format": {"a": 1, "b": 2}, "mcp_servers": ECHO}
    base = {"tasks": task, "agents": agent("tools"), "servers": {"toy": bad()}}
    run(**base, cache=cache)
    same = [
        {
            "tasks": {
                **task,
                "id": "u",
                "category": "c",
                "reference": 1,
                "evaluators": [rule("raw", "=", "x")],
                "tags": ["t"],
            }
        },
        {"agents": agent("tools", name="renamed")},
        {"agents": agent("tools", timeout=7)},
        {"servers": {"toy": bad(call_timeout=3), "other": bad()}},
    ]
    other = [
        {"tasks": {**task, "question": "What is in ROW-2?"}},
        {"tasks": {**task, "output_format": {"b": 2, "a": 1}}},
        {"tasks": {**task, "mcp_servers": [{"name": "toy", "tools": ["echo", "boom"]}]}},
        {"agents": agent("tools", max_turns=5)},
        {"servers": {"toy": bad("banner")}},
        {"servers": {"toy": bad(env={"MODE": "x"})}},
    ]
    for change in same:
        assert run(**{**base, **change}, cache=cache)["cached"].tolist() == [True]
    for change in other:
        keys = set(cache)
        run(**{**base, **change}, cache=cache)
        assert any(key.startswith("run:") for key in set(cache) - keys), change


def test_each_trial_draws_its_own_answer_and_asks_for_it_once(agent, endpoint, cache):
    run(questions(1), agent(), trials=2, cache=cache)
    assert endpoint.count == 2
    run(questions(1), agent(), trials=5, cache=cache)
    assert endpoint.count == 5


def test_a_run_that_used_up_its_turns_is_finished_and_kept(agent, endpoint, cache):
    endpoint.script(
        lambda body: {"tool_calls": [{"id": "c", "type": "function", "function": {"name": "echo", "arguments": "{}"}}]}
    )
    for _ in range(2):
        frame = run(questions(1, mcp_servers=ECHO), agent("tools", max_turns=2), servers={"toy": bad()}, cache=cache)
        assert frame["error_class"].tolist() == ["turn_limit"]
    assert endpoint.count == 2 and frame["cached"].tolist() == [True]


def test_runs_over_servers_in_memory_and_of_callables_are_repeated_and_their_answers_are_not_paid_again(
    agent, endpoint, cache
):
    done = []

    async def mine(task, session):
        done.append(task.id)
        return await agent()(task, session)

    for i in range(2):
        frame = run(questions(1), {"mine": mine, "toys": agent("tools")}, servers={"toy": toy_server}, cache=cache)
        assert frame["cached"].tolist() == [i == 1] * 2
    assert endpoint.count == 3 and done == ["t0", "t0"]
    assert not any(key.startswith("run:") for key in cache)


def test_a_callable_with_a_fingerprint_is_cached_by_it_and_by_all_of_its_task_but_the_evaluators(cache):
    done = []

    def mine(task, session):
        done.append(task.reference)
        return "x"

    mine.fingerprint = "v1"
    for reference, evaluators in ((1, []), (1, [len]), (2, [])):
        run({"id": "t", "question": "?", "reference": reference, "evaluators": evaluators}, mine, cache=cache)
    mine.fingerprint = "v2"
    assert run({"id": "t", "question": "?", "reference": 2}, mine, cache=cache)["cached"].tolist() == [False]
    assert done == [1, 2, 2]


def test_a_strategy_of_ones_own_is_cached_by_all_of_its_task_unless_it_says_what_it_reads(agent, cache):
    async def loop(agent, task, session):
        return f"{task.tags}"

    try:
        for reads, cached in ((None, [False, False]), (("question",), [False, True])):
            strategy("peculiar", reads=reads, prompts=[str(reads)])(loop)
            frames = [
                run({"id": "t", "question": "?", "tags": tags}, agent("peculiar"), cache=cache)
                for tags in (["a"], ["b"])
            ]
            assert [frame["cached"].iloc[0] for frame in frames] == cached
    finally:
        del STRATEGIES["peculiar"]


def test_a_run_that_is_not_json_is_not_kept_and_its_row_says_so(cache):
    def mine(task, session):
        session.record([{"role": "user", "content": {1}}])
        return "x"

    mine.fingerprint = "v1"
    row = run("Is it so?", mine, cache=cache).iloc[0]
    assert row["status"] == "ok" and "set is not JSON" in row["metadata"]["not_cached"]
    assert len(cache) == 0


def test_a_replay_answers_from_the_cache_alone_and_names_the_run_that_is_missing(agent, endpoint, cache):
    first = run(questions(2), agent(), trials=2, cache=cache)
    endpoint.reset()
    assert steady(run(questions(2), agent(), trials=2, cache=cache, replay=True)) == steady(first)
    with pytest.raises(
        CacheMiss, match=r"task 't2', agent 'basic:good', trial 0 is not in the cache \(nor are 1 others\)"
    ):
        run(questions(3), agent(), trials=2, cache=cache, replay=True)
    with pytest.raises(InputError, match="replay"):
        run(questions(1), agent(), cache=False, replay=True)

    async def mine(task, session):
        return (await session.complete([{"role": "user", "content": "Never asked"}], model="openai/good")).text

    with pytest.raises(CacheMiss, match="task 't0', agent 'mine', trial 0: "):
        run(questions(2), mine, cache=cache, replay=True)
    assert endpoint.count == 0


def test_no_secret_is_in_the_frame_or_in_the_cache(agent, endpoint, tmp_path):
    with Cache(tmp_path / "cache") as cache:
        frame = run(
            questions(1, mcp_servers=ECHO), agent("tools"), servers={"toy": bad(env={"TOKEN": "{{PATH}}"})}, cache=cache
        )
        failed = run(questions(1), agent(model="openai/r401"), cache=cache)
        entries = json.dumps([[key, cache.get(key)] for key in cache])
    assert KEY not in frame.to_json() + failed.to_json() + entries
    assert os.environ["PATH"] not in json.loads(json.dumps(entries))
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"


CACHED = """
import sys
from mcpeval.agents import Agent
from mcpeval.running import run
base, cache, command = sys.argv[1:]
tasks = [{"id": f"t{i}", "question": f"What is in ROW-{i}?", "mcp_servers": ["toy"]} for i in range(2)]
agent = Agent("openai/good", "tools", api_base=base, api_key="sk-test-000001", retries=0)
frame = run(tasks, agent, servers={"toy": {"command": command, "args": ["tests/bad_server.py"]}}, cache=cache)
print(frame["cached"].tolist(), sorted({"litellm", "instructor", "mcp", "seaborn", "scipy"} & set(sys.modules)))
"""


def test_a_run_that_is_all_cached_loads_neither_litellm_nor_mcp(agent, endpoint, tmp_path):
    endpoint.script(lambda body: "fine")
    command = [sys.executable, "-c", CACHED, endpoint.base, str(tmp_path / "cache"), sys.executable]
    said = [
        subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout for _ in range(2)
    ]
    assert said[0] == "[False, False] ['litellm', 'mcp']\n"
    assert said[1] == "[True, True] []\n"
    assert endpoint.count == 2


# --- the time limit of a run --------------------------------------------------------------------


def test_a_run_over_its_time_is_a_row_with_all_it_did_until_then(agent, endpoint):
    run(questions(1), agent(), cache=False)  # the model library is loaded once, and takes its time
    endpoint.script(lambda body: (0, {}, "hang") if len(body["messages"]) > 1 else None)
    tasks = questions(1, mcp_servers=ECHO)
    row = run(tasks, agent("tools"), servers={"toy": toy_server}, cache=False, timeout=1.5).iloc[0]
    assert (row["status"], row["error_class"]) == ("error", "timeout")
    assert row["error"] == "the run was not over within timeout=1.5 s" and row["metadata"]["timeout"] == 1.5
    assert [message["role"] for message in row["messages"]] == ["user", "assistant", "tool"]
    assert row["n_tool_calls"] == 1 and row["tokens_in"] == 100
    assert [(span["kind"], span.get("error_class")) for span in row["spans"]] == [
        ("agent", "timeout"),
        ("llm", None),
        ("tool", None),
        ("llm", "unfinished"),
    ]


def test_a_run_over_its_time_is_not_kept_and_one_that_is_kept_has_no_limit(agent, endpoint, cache):
    endpoint.script(lambda body: (0, {}, "hang"))
    assert run(questions(1), agent(), cache=cache, timeout=0.3)["error_class"].tolist() == ["timeout"]
    endpoint.script(None)
    endpoint.reset()
    again = run(questions(1), agent(), cache=cache)
    assert again["status"].tolist() == ["ok"] and again["cached"].tolist() == [False] and endpoint.count == 1
    assert run(questions(1), agent(), cache=cache, timeout=1e-9)["cached"].tolist() == [True]


def test_a_plain_function_and_an_agent_that_takes_no_notice_are_ended_by_the_time_limit():
    stop = threading.Event()

    def plain(task, session):
        stop.wait(60)

    async def deaf(task, session):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "too late"

    async def breaks(task, session):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ValueError("because of that") from None

    def quick(task, session):
        return "in time"

    frame = run("Is it so?", [plain, deaf, breaks, quick], cache=False, timeout=0.5)
    stop.set()
    assert frame["error_class"].tolist()[:3] == ["timeout"] * 3
    assert frame["status"].tolist() == ["error"] * 3 + ["ok"] and frame["output"][3] == "in time"


def test_an_agent_s_own_time_limit_is_not_taken_for_that_of_the_run():
    async def mine(task, session):
        async with asyncio.timeout(0.01):
            await asyncio.sleep(60)

    row = run("Is it so?", mine, cache=False, timeout=60).iloc[0]
    assert (row["error_class"], row["error"]) == ("harness", "TimeoutError: ")


def test_a_server_that_hangs_at_start_is_ended_by_the_time_limit_of_the_run():
    row = run("Is it so?", lambda task, session: "x", servers={"toy": bad("hang")}, cache=False, timeout=1).iloc[0]
    assert row["error_class"] == "timeout"


# --- interrupts and notebooks -------------------------------------------------------------------


def test_an_interrupt_keeps_what_is_finished_stops_what_is_not_and_leaves_run_usable(agent, endpoint, cache):
    slow = ["ROW-3?", "ROW-4?", "ROW-5?"]
    endpoint.script(lambda body: (0, {}, "hang") if any(row in json.dumps(body) for row in slow) else None)

    def interrupt():
        while endpoint.inflight < 3 or sum(key.startswith("run:") for key in cache) < 3:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run(questions(6), agent(), cache=cache)
    while endpoint.inflight:
        time.sleep(0.01)  # the provider sees that nobody waits any more
    assert endpoint.aborted == 3
    endpoint.script(None)
    endpoint.reset()
    frame = run(questions(6), agent(), cache=cache)
    assert frame["status"].tolist() == ["ok"] * 6
    assert frame["cached"].tolist() == [True] * 3 + [False] * 3 and endpoint.count == 3


def test_an_interrupt_ends_what_a_plain_function_waits_for(agent, endpoint):
    endpoint.script(lambda body: (0, {}, "hang"))
    ended = threading.Event()

    def mine(task, session):
        try:
            session.complete([{"role": "user", "content": "?"}], model="openai/x", api_base=endpoint.base, api_key=KEY)
        finally:
            ended.set()

    def interrupt():
        while not endpoint.inflight:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run("Does it end?", mine, cache=False)
    assert ended.wait(10)


def test_run_works_where_a_loop_is_running_already(agent):
    async def cell():
        return run(questions(2), agent(), cache=False)

    assert asyncio.run(cell())["status"].tolist() == ["ok", "ok"]


def test_a_half_surrogate_in_an_answer_goes_through(agent, cache):
    for _ in range(2):
        row = run(questions(1), agent(model="openai/surrogate"), cache=cache).iloc[0]
        assert row["output"] == "half a pair: \ufffd"


def test_a_frame_of_tasks_with_a_missing_question_or_a_column_twice_is_refused():
    with pytest.raises(InputError, match=r"task '1': question=None should be a text"):
        run(pd.DataFrame({"question": ["What?", None]}), lambda task, session: "x", cache=False)
    twice = pd.DataFrame([["What?", "Who?"]], columns=["question", "question"])
    with pytest.raises(InputError, match="the column 'question' more than once"):
        run(twice, lambda task, session: "x", cache=False)


@pytest.mark.parametrize("name", ["trust", "replay"])
@pytest.mark.parametrize("value", ["no", None, 1])
def test_what_is_neither_true_nor_false_is_not_taken_for_true(name, value):
    with pytest.raises(InputError, match=f"run: {name}="):
        run(["What is 1 + 2?"], Agent("openai/gpt-4.1-mini"), **{name: value})


@pytest.mark.parametrize("given", [3, "", b"x", "a-file"])
def test_where_no_working_folder_can_be_kept_is_said_before_anything_starts(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").touch()
    with pytest.raises(InputError, match="run: keep_workdirs="):
        run(["What is 1 + 2?"], Agent("openai/gpt-4.1-mini"), keep_workdirs=given)
