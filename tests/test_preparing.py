"""What a task's prepares and clean-ups do, what of them is in the row, and what is refused before anything starts."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from mcpeval import Agent, read_tasks, run
from mcpeval.errors import FileError, InputError
from mcpeval.interop import mcpuniverse
from mcpeval.preparing import Surroundings, cleanup_func, prepare_func, steps_of
from mcpeval.preparing.registry import CLEANUPS, PREPARES
from mcpeval.testing import ScriptedModel, toy_server
from mcpeval.types import Task

TOY = {"toy": toy_server}
#: A server that keeps its notes in the file that its first argument names, so that they can be read afterwards.
NOTES = """
import sys
from mcp.server import MCPServer
server = MCPServer("notes", log_level="CRITICAL")

@server.tool()
def note(text: str, fail: bool = False) -> dict[str, str]:
    with open(sys.argv[1], "a") as file:
        file.write(text + "\\n")
    if fail:
        raise ValueError("no more paper")
    return {"id": "id of " + text}

@server.tool()
def strike(text: str) -> str:
    with open(sys.argv[1], "a") as file:
        file.write("struck " + text + "\\n")
    return "done"

server.run("stdio")
"""


@pytest.fixture(autouse=True)
def _registered_by_this_test_alone():
    before = dict(PREPARES), dict(CLEANUPS)
    yield
    for table, kept in zip((PREPARES, CLEANUPS), before, strict=True):
        table.clear()
        table.update(kept)


@pytest.fixture
def notes(tmp_path):
    """A real server process and the file that it writes."""
    file = tmp_path / "notes.txt"
    file.touch()
    return {"notes": {"command": sys.executable, "args": ["-c", NOTES, str(file)]}}, file


def task(**more):
    return {"id": "t", "question": "Well?", **more}


def calling(*calls, answer="the answer"):
    async def agent(task, session):
        for name, arguments in calls:
            await session.call_tool(name, arguments)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return agent


# --- what they do -------------------------------------------------------------------------------


def test_prepares_come_before_the_agent_and_clean_ups_undo_its_calls_from_the_last_to_the_first(notes):
    servers, file = notes
    given = task(
        prepares=[
            {"server": "notes", "tool": "note", "arguments": {"text": "prepared"}},
            {"server": "notes", "prepare_func": "note", "prepare_args": {"text": "twice"}},
        ],
        cleanups=[
            {"server": "notes", "tool": "", "cleanup_func": "strike", "cleanup_args": {"text": "$all"}},
            {"server": "notes", "tool": "note", "cleanup_func": "strike", "cleanup_args": {"text": "$text"}},
        ],
    )
    row = run(given, calling(("note", {"text": "a"}), ("note", {"text": "b"})), servers=servers, cache=False).iloc[0]
    assert file.read_text().split("\n") == ["prepared", "twice", "a", "b", "struck b", "struck a", "struck $all", ""]
    assert (row["status"], row["output"], row["n_tool_calls"]) == ("ok", "the answer", 2)
    record = {"server": "notes", "is_error": False, "error": None}
    assert row["metadata"]["prepares"] == [
        {**record, "tool": "note", "arguments": {"text": "prepared"}},
        {**record, "tool": "note", "arguments": {"text": "twice"}},
    ]
    struck = [{**record, "tool": "strike", "arguments": {"text": text}} for text in ("b", "a", "$all")]
    assert row["metadata"]["cleanups"] == struck


def test_a_clean_up_is_given_parts_of_the_calls_arguments_and_of_its_result(notes):
    servers, file = notes
    path = "$return -> get(content) -> array(0) -> get(text) -> json -> get(id)"
    cleanups = [{"server": "notes", "tool": "note", "cleanup_func": "strike", "cleanup_args": {"text": path}}]
    run(task(cleanups=cleanups), calling(("note", {"text": "x"})), servers=servers, cache=False)
    assert file.read_text().split() == ["x", "struck", "id", "of", "x"]


def test_a_call_that_failed_is_not_undone_and_the_row_says_so(notes):
    servers, file = notes
    cleanups = [{"server": "notes", "tool": "note", "cleanup_func": "strike", "cleanup_args": {"text": "$text"}}]
    agent = calling(("note", {"text": "mine"}), ("note", {"text": "theirs", "fail": True}))
    row = run(task(cleanups=cleanups), agent, servers=servers, cache=False).iloc[0]
    assert file.read_text().splitlines() == ["mine", "theirs", "struck mine"]
    skipped, struck = row["metadata"]["cleanups"]
    assert (skipped["is_error"], struck["is_error"], row["status"]) == (True, False, "ok")
    assert "did not succeed, so nothing was undone" in skipped["error"]


def test_a_clean_up_that_fails_is_in_the_row_and_stops_neither_the_next_nor_the_answer():
    @cleanup_func("toy", "tidy", remote=False)
    def tidy(what):
        raise LookupError(what)

    cleanups = [
        {"server": "toy", "cleanup_func": "tidy", "cleanup_args": {"what": "dust"}},
        {"server": "toy", "cleanup_func": "boom", "cleanup_args": {"message": "no broom"}},
        {"server": "toy", "tool": "echo", "cleanup_func": "note", "cleanup_args": {"text": "$return -> get(no)"}},
        {"server": "toy", "cleanup_func": "note", "cleanup_args": {"text": "last"}},
    ]
    row = run(task(cleanups=cleanups), calling(("echo", {"text": "a"})), servers=TOY, cache=False).iloc[0]
    errors = [record["error"] for record in row["metadata"]["cleanups"]]
    assert "cannot be followed: KeyError('no')" in errors[0]
    assert errors[1] == "LookupError: dust" and "no broom" in errors[2] and errors[3] is None
    assert (row["status"], row["output"]) == ("ok", "the answer")


def test_clean_ups_are_made_after_an_agent_that_failed_and_one_that_was_not_over_in_time(notes):
    servers, file = notes
    given = task(
        cleanups=[{"server": "notes", "tool": "note", "cleanup_func": "strike", "cleanup_args": {"text": "$text"}}]
    )
    row = run(given, calling(("note", {"text": "a"}), answer=ValueError("no")), servers=servers, cache=False).iloc[0]
    assert (row["error_class"], row["error"]) == ("harness", "ValueError: no")
    assert file.read_text().splitlines() == ["a", "struck a"]

    async def slow(task, session):
        await session.call_tool("note", {"text": "b"})
        await asyncio.sleep(60)

    row = run(given, slow, servers=servers, cache=False, timeout=3).iloc[0]
    assert row["error_class"] == "timeout"
    assert [record["is_error"] for record in row["metadata"]["cleanups"]] == [False]
    assert file.read_text().splitlines()[2:] == ["b", "struck b"]


def test_a_function_that_does_not_notice_that_its_time_is_over_calls_nothing_any_more(notes):
    servers, file = notes
    cleanups = [{"server": "notes", "tool": "note", "cleanup_func": "strike", "cleanup_args": {"text": "$text"}}]

    def endless(task, session):
        while True:
            session.call_tool("note", {"text": "x"})
            time.sleep(0.05)

    row = run(task(cleanups=cleanups), endless, servers=servers, cache=False, timeout=2).iloc[0]
    assert row["error_class"] == "timeout"
    lines = file.read_text().splitlines()
    first = lines.index("struck x")
    assert first > 0 and set(lines[:first]) == {"x"} and set(lines[first:]) == {"struck x"}


INTERRUPTED = """
import asyncio, json, sys
from mcpeval import run

async def agent(task, session):
    await session.call_tool("note", {"text": "a"})
    print("working", flush=True)
    await asyncio.sleep(60)

task, servers = json.loads(sys.argv[1])
run(task, agent, servers=servers, cache=False, progress=False)
"""


def test_clean_ups_are_made_when_the_run_is_interrupted(notes):
    servers, file = notes
    cleanups = [{"server": "notes", "tool": "note", "cleanup_func": "strike", "cleanup_args": {"text": "$text"}}]
    command = [sys.executable, "-c", INTERRUPTED, json.dumps([task(cleanups=cleanups), servers])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in said
    assert file.read_text().splitlines() == ["a", "struck a"]


# --- prepares that fail -------------------------------------------------------------------------


def test_a_prepare_that_fails_ends_the_run_before_anything_is_paid_and_clean_ups_are_made():
    cleanups = [{"server": "toy", "cleanup_func": "note", "cleanup_args": {"text": "x"}}]
    prepares = [
        {"server": "toy", "tool": "note", "arguments": {"text": "x"}},
        {"server": "toy", "tool": "boom", "arguments": {"message": "no water"}},
        {"server": "toy", "tool": "note", "arguments": {"text": "never"}},
    ]
    with ScriptedModel(["never asked"]) as model:
        agent = Agent(model.model, "basic", **model.params)
        row = run(task(prepares=prepares, cleanups=cleanups), agent, servers=TOY, cache=False).iloc[0]
    assert (row["status"], row["error_class"]) == ("error", "server")
    assert row["error"].startswith("prepares: 'boom' of server 'toy' failed: ") and "no water" in row["error"]
    assert [r["is_error"] for r in row["metadata"]["prepares"]] == [False, True]
    assert [r["is_error"] for r in row["metadata"]["cleanups"]] == [False]
    assert model.requests == []


def test_a_function_that_fails_to_prepare_is_the_harnesss_fault():
    @prepare_func("flood", remote=False)
    async def flood(depth):
        raise OSError(f"{depth} m of water")

    row = run(task(prepares=[{"prepare_func": "flood", "prepare_args": {"depth": 3}}]), calling(), cache=False).iloc[0]
    assert (row["error_class"], row["turns"]) == ("harness", 0)
    assert row["error"] == "RuntimeError: prepares: 'flood' failed: OSError: 3 m of water"


# --- registered functions -----------------------------------------------------------------------


def test_functions_share_a_state_and_registering_again_replaces():
    seen = []

    @prepare_func("open shop", remote=False)
    def wrong():
        raise AssertionError("replaced")

    @prepare_func("open shop", remote=False)
    def open_shop(task, state, workdir, goods=("tea",)):
        state["shop"] = f"{task.id}: {', '.join(goods)}, {workdir}"

    @cleanup_func("shop", "close", remote=False)
    async def close(state, why):
        seen.append((state["shop"], why))

    given = task(
        prepares=[{"prepare_func": "open shop", "prepare_args": {"goods": ["salt"]}}],
        cleanups=[{"server": "shop", "tool": "", "cleanup_func": "close", "cleanup_args": {"why": "night"}}],
    )
    runs = run(given, calling(), cache=False, trials=2)
    assert seen == [("t: salt, None", "night")] * 2
    assert runs["status"].tolist() == ["ok", "ok"]
    assert runs["metadata"][0]["cleanups"][0] == {
        "server": "shop", "tool": "close", "arguments": {"why": "night"}, "is_error": False, "error": None,
    }  # fmt: skip


def test_a_function_takes_the_place_of_a_tool_of_that_name():
    @cleanup_func("toy", "note", remote=False)
    def note(text):
        raise LookupError("not the tool")

    cleanups = [{"server": "toy", "cleanup_func": "note", "cleanup_args": {"text": "x"}}]
    row = run(task(cleanups=cleanups), calling(), servers=TOY, cache=False).iloc[0]
    assert row["metadata"]["cleanups"][0]["error"] == "LookupError: not the tool"


# --- what is read -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"prepares": ["x"]}, "prepares, item 1 is 'x'; expected a mapping with prepare_func"),
        ({"prepares": [{"prepare_fun": "x"}]}, "item 1: unknown key 'prepare_fun'. Did you mean 'prepare_func'?"),
        ({"prepares": [{"prepare_args": {}}]}, "needs prepare_func (or server and tool); it has: prepare_args"),
        ({"prepares": [{"tool": "a", "prepare_func": "b"}]}, "says again what another key has said"),
        ({"prepares": [{"prepare_func": "b", "prepare_args": []}]}, "arguments are []; expected a mapping"),
        ({"prepares": [{"prepare_func": 7}]}, "7 should be a text"),
        ({"cleanups": [{"server": "s", "cleanup_fnc": "x"}]}, "'cleanup_fnc'. Did you mean 'cleanup_func'?"),
        ({"cleanups": [{"server": "s", "tool": "t"}]}, "needs cleanup_func; it has: server, tool"),
        (
            {"cleanups": [{"server": "s", "tool": "t", "cleanup_func": "x", "cleanup_args": {"a": "$n -> gett(k)"}}]},
            "cleanups, item 1: Invalid operation in `cleanup_args`: gett(k). Did you mean 'get'?",
        ),
        (
            {"cleanups": [{"server": "s", "tool": "t", "cleanup_func": "x", "cleanup_args": {"a": ["is $n"]}}]},
            "Format error in `cleanup_args`: is $n",
        ),
        (
            {"cleanups": [{"server": "s", "tool": "t", "cleanup_func": "x", "cleanup_args": {"a": "$n->array(x)"}}]},
            "array(x) cannot be followed: its index should be a number",
        ),
        ({"prepare": []}, "unknown key 'prepare' in a task. Did you mean 'prepares'?"),
        ({"cleanups": {}}, "cleanups={} should be a list"),
    ],
)
def test_what_is_wrong_is_said_when_it_is_read_with_the_nearest_spelling(tmp_path, more, said):
    with pytest.raises(InputError, match=re.escape(said)):
        run(task(**more), calling(), cache=False)
    (tmp_path / "bad.json").write_text(json.dumps(task(**more)))
    with pytest.raises(FileError, match=re.escape("bad.json, line 1: ") + ".*" + re.escape(said)):
        read_tasks(tmp_path / "bad.json")


def test_every_prepare_and_clean_up_of_mcp_universe_is_read_and_its_missing_functions_are_named(conformance):
    tasks = [t for t in read_tasks(conformance / "data" / "mcpuniverse_tasks") if t.prepares]
    assert len(tasks) == 127
    servers = {name: toy_server for t in tasks for name in [server["name"] for server in t.mcp_servers]}
    [first] = [t for t in tasks if t.id == "music_report"]
    with pytest.raises(InputError, match=r"task 'music_report': prepares: 'mcpmark_filesystem_setup' is not there"):
        run(first, calling(), servers=servers, cache=False)
    with pytest.raises(InputError, match=re.escape("Register it with @prepare_func('mcpmark_filesystem_setup')")):
        run(first, calling(), servers=servers, cache=False)


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"prepares": [{"prepare_func": "tdy"}]}, "prepares: 'tdy' is not there.*functions: Did you mean 'tidy'?"),
        ({"prepares": [{"server": "tyo", "tool": "note"}]}, "of server 'tyo' is not there.*Did you mean 'toy'"),
        ({"cleanups": [{"server": "notion", "cleanup_func": "delete_pag"}]}, "Did you mean 'notion delete_page'"),
        ({"prepares": [{"prepare_func": "tidy", "prepare_args": {"dust": 1}}]}, "unexpected keyword argument 'dust'"),
        ({"cleanups": [{"server": "notion", "cleanup_func": "delete_page"}]}, "missing a required argument: 'page'"),
        ({"prepares": [{"prepare_func": "call home"}]}, r"trust=True \(a function of your own.*remote=False"),
        ({"prepares": [{"server": "web", "tool": "echo"}]}, "may call a remote service, which run.. does only with"),
        ({"cleanups": [{"server": "keyed", "cleanup_func": "echo"}]}, "'echo' of server 'keyed' may call a remote"),
        (
            {
                "cleanups": [
                    {"server": "notion", "tool": "p", "cleanup_func": "delete_page", "cleanup_args": {"page": "$x"}}
                ]
            },
            "'delete_page' of server 'notion' may call a remote service",
        ),
    ],
)
def test_what_cannot_be_done_or_reaches_a_service_without_trust_is_refused_before_the_start(more, said, monkeypatch):
    monkeypatch.setenv("SOME_KEY", "k-12345")
    prepare_func("tidy", remote=False)(lambda: None)
    prepare_func("call home")(lambda: None)
    keyed = {"command": sys.executable, "args": ["-c", "pass"], "env": {"X": "{{SOME_KEY}}"}}
    servers = {**TOY, "web": {"url": "http://127.0.0.1:1/mcp"}, "keyed": keyed}
    started = []
    with pytest.raises(InputError, match=f"task 't': .*{said}"):
        run(
            [{"id": "good", "question": "Fine?"}, task(mcp_servers=["toy"], **more)],
            lambda task, session: started.append(task.id),
            servers=servers,
            cache=False,
        )
    assert started == []


def test_with_trust_a_remote_service_is_called():
    called = []
    prepare_func("call home")(lambda: called.append(1))
    run(task(prepares=[{"prepare_func": "call home"}]), calling(), cache=False, trust=True)
    assert called == [1]


def test_a_server_that_a_step_alone_calls_is_started_and_its_tools_are_not_offered(notes):
    servers, file = notes
    given = task(
        mcp_servers=["toy"],
        prepares=[{"server": "notes", "tool": "note", "arguments": {"text": "p"}}],
    )

    async def agent(task, session):
        return ", ".join(tool["function"]["name"] for tool in session.tools)

    row = run(given, agent, servers={**TOY, **servers}, cache=False).iloc[0]
    assert row["output"].split(", ") == ["add", "echo", "note", "notes", "look", "boom", "wait"]
    assert file.read_text() == "p\n"


# --- the cache ----------------------------------------------------------------------------------


def test_a_run_that_is_kept_is_not_prepared_again_and_prepares_are_part_of_its_key(notes, cache, endpoint):
    servers, file = notes
    agent = Agent("openai/good", "basic", api_base=endpoint.base, api_key="sk-1", retries=0)

    def made(text="p", struck="s"):
        prepares = [{"server": "notes", "tool": "note", "arguments": {"text": text}}]
        cleanups = [{"server": "notes", "cleanup_func": "strike", "cleanup_args": {"text": struck}}]
        return run(task(prepares=prepares, cleanups=cleanups), agent, servers=servers, cache=cache).iloc[0]

    first, again = made(), made()
    assert file.read_text().splitlines() == ["p", "struck s"]
    assert (first["cached"], again["cached"]) == (False, True)
    assert again["metadata"]["cleanups"] == first["metadata"]["cleanups"] != []
    assert made(struck="other")["cached"]  # which cannot have shaped the answer
    made(text="q")
    assert file.read_text().splitlines() == ["p", "struck s", "q", "struck s"]


def test_a_registered_prepare_of_another_revision_is_another_run(cache, endpoint):
    agent = Agent("openai/good", "basic", api_base=endpoint.base, api_key="sk-1", retries=0)
    made = []
    for revision in (1, 1, 2):
        prepare_func("count", remote=False, revision=revision)(lambda: made.append(1))
        run(task(prepares=[{"prepare_func": "count"}]), agent, cache=cache)
    assert made == [1, 1]


# --- questions ----------------------------------------------------------------------------------


def test_variables_of_a_question_are_those_of_the_environment_but_no_secrets(monkeypatch):
    monkeypatch.setenv("MY_ORG", "acme")
    monkeypatch.setenv("MY_TOKEN", "t-12345")
    question = "At {{MY_ORG}}/{{ MY_ORG }}, {{MY_TOKEN}}, {{NOT_THERE_1}}?"
    row = run(Task("t", question), lambda task, session: task.question, cache=False).iloc[0]
    assert row["output"] == "At acme/acme, {{MY_TOKEN}}, {{NOT_THERE_1}}?"
    assert row["question"] == question


# --- the clean-ups of MCP-Universe ---------------------------------------------------------------


@pytest.fixture
def service(monkeypatch):
    """A service on loopback in the place of GitHub and Notion, and what it was asked."""
    asked, status = [], [204]

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            about = self.command, self.path, self.headers["Authorization"], body.decode()
            asked.append(about)
            self.send_response(status[0])
            self.end_headers()

        do_DELETE = do_PATCH = answer

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(mcpuniverse, "GITHUB", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(mcpuniverse, "NOTION", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("GITHUB_PERSONAL_ACCESS_TOKEN", "ghp-12345")
    monkeypatch.setenv("GITHUB_PERSONAL_ACCOUNT_NAME", "me")
    monkeypatch.setenv("NOTION_API_KEY", "ntn-12345")
    yield asked, status
    server.shutdown()
    server.server_close()


def test_the_clean_ups_of_its_task_files_undo_what_was_made_at_github_and_notion(service):
    asked, status = service
    cleanups = [
        {"server": "toy", "tool": "echo", "cleanup_func": "delete_repository", "cleanup_args": {"repo": "$text"}},
        {"server": "toy", "tool": "echo", "cleanup_func": "delete_page", "cleanup_args": {"page": "$text"}},
    ]
    cleanup_func("toy", "delete_repository")(mcpuniverse.delete_repository)
    cleanup_func("toy", "delete_page")(mcpuniverse.delete_page)
    given = task(cleanups=cleanups)
    agent = calling(("echo", {"text": "a/b"}))
    run(given, agent, servers=TOY, cache=False, trust=True)
    assert asked == [
        ("DELETE", "/repos/me/a%2Fb", "Bearer ghp-12345", ""),
        ("PATCH", "/v1/pages/a%2Fb", "Bearer ntn-12345", '{"in_trash": true}'),
    ]
    status[0] = 403
    row = run(given, agent, servers=TOY, cache=False, trust=True).iloc[0]
    said = [record["error"] for record in row["metadata"]["cleanups"]]
    assert all("HTTP 403" in error and "12345" not in error for error in said)


def test_a_clean_up_without_its_key_says_which_one(monkeypatch):
    monkeypatch.delenv("NOTION_API_KEY", raising=False)
    with pytest.raises(InputError, match="not in the environment: NOTION_API_KEY"):
        mcpuniverse.delete_page("p")


def test_a_step_that_calls_sys_exit_ends_itself_and_not_the_runs():
    prepare_func("leave", remote=False)(lambda: sys.exit(3))
    cleanup_func("toy", "leave", remote=False)(lambda: sys.exit(4))
    tasks = [
        {"id": "a", "question": "What is 1 + 2?", "prepares": [{"prepare_func": "leave"}]},
        {"id": "b", "question": "What is 1 + 2?", "cleanups": [{"server": "toy", "cleanup_func": "leave"}]},
    ]
    with ScriptedModel(["It is 3."]) as model:
        runs = run(tasks, Agent(model.model, **model.params), servers=TOY, cache=False)
    assert runs["error_class"].fillna("").tolist() == ["harness", ""]
    assert runs["metadata"][1]["cleanups"][0]["error"] == "SystemExit: 4"


def test_a_cancellation_in_the_middle_of_the_clean_ups_does_not_leave_out_the_others():
    begun, made = threading.Event(), []

    @cleanup_func("toy", "first", remote=False)
    async def first():
        begun.set()
        await asyncio.sleep(0.2)
        made.append("first")

    cleanup_func("toy", "second", remote=False)(lambda: made.append("second"))
    names = [{"server": "toy", "cleanup_func": name} for name in ("first", "second")]
    task = Task.from_dict({"question": "What is 1 + 2?", "cleanups": names})

    class Done:
        tool_calls = ()

        def close(self):
            """Nobody waits for it."""

    async def work():
        async with Surroundings(task, steps_of(task)).steps(None, Done()):
            pass

    async def main():
        working = asyncio.ensure_future(work())
        while not begun.is_set():
            await asyncio.sleep(0.01)
        working.cancel()
        await asyncio.wait([working])
        return working.cancelled()

    assert asyncio.run(main()) and made == ["first", "second"]
