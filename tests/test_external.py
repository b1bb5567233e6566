"""Command-line agents: a real process that starts a real MCP server, and what may go wrong with both."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from mcpeval.agents import External, as_agent, chain, claude_code
from mcpeval.agents.base import FORM
from mcpeval.agents.readers import claude_code as read_claude_code
from mcpeval.agents.readers import json_lines
from mcpeval.errors import InputError
from mcpeval.running import run
from mcpeval.testing import toy_server
from mcpeval.types import Run

SCRIPT = str(Path(__file__).with_name("external_agent.py"))
TOY = "from mcpeval.testing import toy_server; toy_server().run('stdio')"
SERVERS = {"toy": {"command": sys.executable, "args": ["-c", TOY], "env": {"TOY_TOKEN": "toy-secret-1"}}}
QUESTION = "What is 1 + 2?"
KEY = "sk-very-secret"


def agent_of(how="answer", form="chat", prompt=(), **more):
    return External([sys.executable, SCRIPT, form, how, "{mcp_config}", *prompt], "scribe", **more)


def outcome(agent, task=QUESTION, **more):
    return run([task] if isinstance(task, dict) else task, agent, **{"servers": SERVERS, "cache": False, **more}).iloc[
        0
    ]


def processes(word):
    """The living processes whose command line has `word`."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        if any(word in part for part in process.info["cmdline"] or ()) and process.info["status"] != "zombie":
            found.append(process.pid)
    return found


def test_a_command_starts_the_servers_itself_and_its_lines_become_a_run():
    row = outcome(agent_of(model="pen-1"))
    assert (row["status"], row["output"], row["agent"], row["model"]) == (
        "ok",
        f"{QUESTION} It is 3.0.",
        "scribe",
        "pen-1",
    )
    assert (row["tokens_in"], row["tokens_out"], row["cost_usd"], row["turns"]) == (60, 9, 0.0125, 2)
    (call,) = row["tool_calls"]
    assert (call["server"], call["name"], call["arguments"]) == ("toy", "add", {"a": 1, "b": 2})
    assert call["result"]["content"] == [{"type": "text", "text": "3.0"}]
    assert [m["role"] for m in row["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert row["messages"][0] == {"role": "user", "content": QUESTION}
    about = row["metadata"]["external"]
    assert (about["exit_code"], about["version"], about["command"][-1]) == (0, None, "{mcp_config}")
    assert [(server["name"], server["transport"]) for server in row["metadata"]["servers"]] == [("toy", "stdio")]


def test_the_events_of_claude_code_become_a_run():
    row = outcome(agent_of(form="claude", reader="claude_code"))
    assert (row["status"], row["output"]) == ("ok", f"{QUESTION} It is 3.0.")
    assert (row["tokens_in"], row["tokens_out"], row["cost_usd"], row["turns"]) == (60, 9, 0.0125, 2)
    (call,) = row["tool_calls"]
    assert (call["server"], call["name"], call["arguments"], call["is_error"]) == (
        "toy",
        "add",
        {"a": 1, "b": 2},
        False,
    )
    function = {"name": "mcp__toy__add", "arguments": '{"a": 1, "b": 2}'}
    assert row["messages"] == [
        {"role": "user", "content": QUESTION},
        {
            "role": "assistant",
            "content": "I add.",
            "tool_calls": [{"id": "t-1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "t-1", "content": "3.0"},
        {"role": "assistant", "content": f"{QUESTION} It is 3.0."},
    ]
    assert row["metadata"]["model_returned"] == ["claude-of-the-test"]
    assert row["metadata"]["servers_reported"] == [{"name": "toy", "status": "connected"}]


def test_the_prompt_stands_in_an_argument_or_on_stdin_with_the_form_of_the_answer():
    task = {"question": QUESTION, "output_format": {"sum": "<SUM>"}}
    for prompt in ((), ("{prompt}",)):
        row = outcome(agent_of(prompt=prompt, system="You add."), task)
        assert row["messages"][0]["content"] == f'You add.\n\n{QUESTION}\n\n{FORM}\n{{"sum": "<SUM>"}}'
        # The script answers with the last line of its prompt.
        assert (row["output"], row["well_formed"]) == ('{"sum": "<SUM>"}', True)
        assert row["metadata"]["text"] == '{"sum": "<SUM>"} It is 3.0.'


def test_placeholders_are_filled_once_and_no_shell_reads_them():
    task = {"question": "{model} $(touch pwned) `x` {unknown}", "mcp_servers": [{"name": "toy", "tools": ["add"]}]}
    agent = agent_of("tell", prompt=("--p={prompt}", "{tools}", "{model}", '{"a": 1}'), model="pen-1")
    told = json.loads(outcome(agent, task)["output"])
    assert told["arguments"] == [
        "--p={model} $(touch pwned) `x` {unknown}",
        "mcp__toy__add",
        "pen-1",
        '{"a": 1}',
    ]
    assert told["files"] == []


def test_the_configuration_is_private_and_gone_afterwards_and_the_environment_is_narrow(monkeypatch, cache):
    monkeypatch.setenv("PEN_API_KEY", KEY)
    monkeypatch.setenv("ELSE", "not for it")
    agent = agent_of("tell", env={"PEN_API_KEY": "{{PEN_API_KEY}}", "COLOUR": "blue"})
    row = outcome(agent, cache=cache)
    told = json.loads(row["output"])
    assert told["mode"] == stat.S_IRUSR | stat.S_IWUSR
    assert told["config"]["mcpServers"]["toy"]["command"] == sys.executable
    assert "ELSE" not in told["environment"] and {"PEN_API_KEY", "COLOUR", "PATH"} <= set(told["environment"])
    assert not Path(told["path"]).exists() and not Path(told["folder"]).exists()
    # What it says of its secrets is in no row and no cache.
    assert (told["key"], told["config"]["mcpServers"]["toy"]["env"]) == (
        "{{PEN_API_KEY}}",
        {"TOY_TOKEN": "[env TOY_TOKEN]"},
    )
    kept = json.dumps([cache.get(key) for key in cache])
    assert KEY not in kept and "toy-secret-1" not in kept and KEY not in repr(row.to_dict())


def test_a_command_that_fails_is_told_with_its_exit_code_and_the_end_of_stderr(monkeypatch):
    monkeypatch.setenv("PEN_API_KEY", KEY)
    row = outcome(agent_of("fail", env={"PEN_API_KEY": "{{PEN_API_KEY}}"}))
    assert (row["status"], row["error_class"], row["n_tool_calls"]) == ("error", "harness", 1)
    assert row["error"] == "the command ended with exit code 3: no ink: {{PEN_API_KEY}}"
    assert row["metadata"]["external"]["exit_code"] == 3


def test_a_command_that_hangs_is_killed_with_its_servers_and_what_it_told_is_kept():
    marker = "mark-of-this-test"
    servers = {"toy": {"command": sys.executable, "args": ["-c", TOY, marker]}}
    row = outcome(agent_of("hang", prompt=(marker,), time_limit=10), servers=servers)
    assert (row["status"], row["error_class"], row["n_tool_calls"]) == ("error", "timeout", 1)
    assert row["error"] == "the command had not ended after time_limit=10 s"
    assert [m["role"] for m in row["messages"]] == ["user", "assistant", "tool"]
    assert (row["tokens_in"], row["tool_calls"][0]["result"]["content"][0]["text"]) == (25, "3.0")
    wait_until_gone(marker)


def wait_until_gone(marker):
    for _ in range(200):
        if not processes(marker):
            return
        time.sleep(0.05)
    pytest.fail(f"left: {processes(marker)}")


def test_no_process_is_left_when_a_run_is_interrupted(tmp_path):
    marker = "mark-of-another-test"
    servers = {"toy": {"command": sys.executable, "args": ["-c", TOY, marker]}}
    agent = agent_of("hang", prompt=(marker,), workdir=tmp_path)

    def interrupt():
        while not (tmp_path / "hanging").exists():
            time.sleep(0.05)
        os.kill(os.getpid(), 2)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        outcome(agent, servers=servers)
    wait_until_gone(marker)


def test_a_command_without_an_answer_is_no_answer():
    row = outcome(agent_of("mute,noise"))
    assert (row["status"], row["error_class"], row["n_tool_calls"]) == ("error", "model", 1)
    assert row["error"].startswith("the command ended without an answer; the last that it wrote: {")
    assert outcome(agent_of("noise"))["status"] == "ok"


def test_a_command_that_is_not_there_is_said_before_anything_is_started(tmp_path):
    started = tmp_path / "started"
    servers = {"toy": {"command": sys.executable, "args": ["-c", f"open({str(started)!r}, 'w')"]}}
    for agent, said in [
        (External(["no-such-agent"]), "agent 'no-such-agent': there is no command 'no-such-agent'"),
        (agent_of(workdir=tmp_path / "nowhere"), "does not exist"),
        (agent_of(env={"A": "{{NOT_THERE}}"}), "agent 'scribe' needs what is not in the environment: NOT_THERE"),
    ]:
        with pytest.raises(InputError, match=re.escape(said)):
            outcome(chain([agent]), servers=servers)
    with pytest.raises(InputError, match="the server 'toy' runs in memory"):
        outcome(agent_of(), servers={"toy": toy_server})
    with pytest.raises(InputError, match="itself, out of reach of permissions"):
        outcome(agent_of(), permissions=[{"action": "deny", "tool": "boom"}])
    assert not started.exists()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: External("claude -p"), "no shell reads it"),
        (lambda: External([]), "should be a list of texts"),
        (lambda: External(["a", "{promt}"]), "command has {promt}. Did you mean 'prompt'?"),
        (lambda: External(["a", "{model}"]), "there is no model="),
        (lambda: External(["a"], reader="claude_cod"), "reader='claude_cod'. Did you mean 'claude_code'?"),
        (lambda: External(["a"], time_limit=0), "time_limit=0 should be a number of seconds above 0"),
        (lambda: External(["a"], env={"A": 1}), "env should be a mapping of names to texts"),
        (lambda: External(["a"], servers=[1]), "should be names"),
    ],
)
def test_what_cannot_be_meant_is_said_when_it_is_written(make, said):
    with pytest.raises(InputError, match=re.escape(said)):
        make()


def test_a_finished_run_is_kept_and_a_failed_one_is_not(cache, tmp_path):
    first, again = (outcome(agent_of(), cache=cache) for _ in range(2))
    assert (first["cached"], again["cached"], again["cost_usd"], again["metadata"]["saved_usd"]) == (
        False,
        True,
        0,
        0.0125,
    )
    assert outcome(agent_of(), cache=cache, replay=True)["output"] == first["output"]
    assert [outcome(agent_of("fail"), cache=cache)["cached"] for _ in range(2)] == [False, False]


def test_the_fingerprint_is_of_all_that_shapes_what_it_does_and_of_no_secret():
    base = External(["a", "-x"], env={"A_TOKEN": "1", "B": "1"})
    same = [External(["a", "-x"], "other", env={"A_TOKEN": "2", "B": "1"}, time_limit=3)]
    other = [
        External(["a"], env={"B": "1"}),
        External(["a", "-x"], env={"B": "2"}),
        External(["a", "-x"], env={"B": "1"}, system="Be short."),
        External(["a", "-x"], env={"B": "1"}, servers=["toy"]),
        External(["a", "-x"], env={"B": "1"}, servers={"toy": ["add"]}),
        External(["a", "-x"], env={"B": "1"}, reader="claude_code"),
        External(["a", "-x"], env={"B": "1"}, model="m"),
    ]
    assert (
        {agent.fingerprint for agent in same}
        == {External(["a", "-x"], env={"B": "1"}).fingerprint}
        == {base.fingerprint}
    )
    assert len({agent.fingerprint for agent in [base, *other]}) == len(other) + 1
    assert External(["a"], reader=lambda lines: Run("x")).fingerprint is None
    assert "secret" not in repr(External(["a"], env={"A_TOKEN": "secret"}))


def test_a_reader_of_ones_own_and_one_that_fails():
    def upper(lines):
        return lines[-1]["content"].upper()

    assert outcome(agent_of(reader=upper))["output"] == f"{QUESTION} It is 3.0.".upper()
    row = outcome(agent_of(reader=lambda lines: lines[99]))
    assert (row["error_class"], row["error"]) == ("harness", "the reader failed: IndexError: list index out of range")
    assert len(row["metadata"]["stdout"]) == 3


def test_a_command_is_a_part_of_a_workflow_by_its_name():
    row = outcome(chain([agent_of(), as_agent(agent_of(), "second")]))
    assert row["output"] == f"{QUESTION} It is 3.0. It is 3.0."
    assert [m.get("agent") for m in row["messages"]] == ["scribe"] * 4 + ["second"] * 4
    assert (row["cost_usd"], row["n_tool_calls"]) == (0.025, 2)


def test_it_works_in_the_tasks_working_folder(tmp_path):
    seed = tmp_path / "seed"
    seed.mkdir()
    (seed / "ink.txt").write_text("black")
    row = outcome(agent_of("tell"), {"question": "What is in {{WORKDIR}}?", "workdir": str(seed)})
    told = json.loads(row["output"])
    assert told["files"] == ["ink.txt"] and told["folder"] != str(seed)
    assert row["messages"][0]["content"] == f"What is in {told['folder']}?"


def test_the_version_is_asked_where_a_command_for_it_is_given():
    row = outcome(agent_of("tell", version=[sys.executable, "--version"]))
    assert row["metadata"]["external"]["version"] == f"Python {sys.version.split()[0]}"


def test_claude_code_is_a_command_whose_parts_can_be_seen_and_changed():
    agent = claude_code("sonnet", arguments=["--max-turns", "9"])
    assert agent.command == (
        *("claude", "-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config"),
        *("--mcp-config", "{mcp_config}", "--allowedTools", "{tools}", "--model", "{model}", "--max-turns", "9"),
    )
    assert (agent.name, agent.reader, agent.version) == ("claude_code", "claude_code", ("claude", "--version"))


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        ({"subtype": "error_max_turns", "num_turns": 5, "is_error": True}, "turn_limit"),
        ({"subtype": "success", "is_error": True, "result": "API Error: 429 rate_limit_error"}, "rate"),
        ({"subtype": "success", "is_error": True, "result": "Prompt is too long"}, "context"),
        ({"subtype": "error_during_execution", "is_error": True}, "model"),
    ],
)
def test_what_claude_code_says_of_its_end_is_the_error_class(end, kind):
    done = read_claude_code([{"type": "result", **end}])
    assert (done.status, done.error_class, done.output) == ("error", kind, None)


def test_a_server_that_claude_code_could_not_start_is_the_runs_error():
    servers = [{"name": "toy", "status": "connected"}, {"name": "time", "status": "failed"}]
    end = {"type": "result", "subtype": "success", "is_error": False, "result": "It is late."}
    done = read_claude_code([{"type": "system", "subtype": "init", "mcp_servers": servers}, end])
    assert (done.status, done.error_class) == ("error", "server") and "'time'" in done.error


def test_events_without_an_end_are_kept_at_an_unknown_price():
    usage = {"input_tokens": 3, "output_tokens": 4}
    message = {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "hm"}], "usage": usage}
    done = read_claude_code([{"type": "assistant", "message": message}])
    assert (done.output, done.usage.tokens_in, done.usage.tokens_out, done.usage.cost_usd) == (None, 3, 4, None)


def test_json_lines_may_tell_an_answer_an_error_or_nothing_that_is_known():
    assert json_lines([{"answer": {"city": "Rome"}}]).output == '{"city": "Rome"}'
    failed = json_lines([{"error": "too many requests", "error_class": "rate"}])
    assert (failed.status, failed.error, failed.error_class) == ("error", "too many requests", "rate")
    assert json_lines(["hello", 3, {"else": 1}]) == json_lines([])
    assert json_lines([]).usage.tokens_in is None
    call = {"id": "c", "type": "function", "function": {"name": "x", "arguments": "{}"}}
    told = [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "no", "is_error": True},
    ]
    assert json_lines(told).tool_calls[0].is_error


# --- what it may do wrong ------------------------------------------------------------------------


def told_by(code, **more):
    """The row of an agent that is so much Python."""
    return outcome(External([sys.executable, "-c", code], "scribe", **more), servers=None)


def test_a_daemon_that_left_its_parent_ends_with_the_command():
    child = "import time; time.sleep(600)  # daemon-of-this-test"
    code = f"""
import json, os, subprocess, sys
if os.fork() == 0:
    os.setsid()
    subprocess.Popen([sys.executable, "-c", {child!r}], start_new_session=True)
    os._exit(0)
os.wait()
print(json.dumps({{"answer": "done"}}))
"""
    row = told_by(code)
    assert (row["status"], row["output"]) == ("ok", "done")
    # Its own command line has the words as well, and is a zombie at most.
    assert not processes("daemon-of-this-test")


def test_a_number_that_counts_nothing_is_unknown_and_nothing_else_is_lost():
    for number in ("NaN", "Infinity", "-5", '"7"', "true", "null"):
        usage = f'{{"prompt_tokens": {number}, "completion_tokens": 4}}'
        told = [json.loads(f'{{"answer": "yes", "usage": {usage}, "cost_usd": {number}}}')]
        done = json_lines(told)
        assert (done.output, done.usage.tokens_in, done.usage.tokens_out, done.usage.cost_usd) == ("yes", None, 4, None)
        end = {"type": "result", "subtype": "success", "result": "yes", "total_cost_usd": told[0]["cost_usd"]}
        assert read_claude_code([end]).usage.cost_usd is None


@pytest.mark.parametrize("calls", ["no list", [3], [{"function": 3}], [{"function": {"name": 3}}], {"a": 1}, [None]])
def test_a_line_that_cannot_be_read_takes_nothing_from_the_others(calls):
    broken = {"role": "assistant", "content": "hm", "tool_calls": calls, "usage": {"prompt_tokens": 3}}
    done = json_lines([broken, {"role": "tool", "tool_call_id": [1], "is_error": True}, {"answer": "yes"}])
    assert (done.output, done.tool_calls, done.usage.tokens_in) == ("yes", [], 3)
    for content in (calls, 3, [{"type": "tool_use", "input": calls}]):
        events = [{"type": "assistant", "message": {"role": "assistant", "content": content, "usage": calls}}]
        begin = {"subtype": "init", "mcp_servers": calls}
        done = read_claude_code([begin, *events, {"type": "result", "subtype": "success", "result": "yes"}])
        assert (done.output, done.tool_calls, done.turns) == ("yes", [], 1)


def test_the_older_form_of_a_call_is_read_beside_the_newer_one():
    call = {"id": "c", "type": "function", "function": {"name": "new", "arguments": "{}"}}
    told = [
        {"role": "assistant", "function_call": {"name": "old", "arguments": "{}"}},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "no", "is_error": True},
    ]
    assert [(made.name, made.is_error) for made in json_lines(told).tool_calls] == [("old", False), ("new", True)]


def test_an_error_may_be_an_object_and_its_class_is_one_of_a_runs():
    failed = json_lines([{"error": {"message": "no ink"}, "error_class": "banana"}])
    assert (failed.status, failed.error, failed.error_class) == ("error", "no ink", "model")


@pytest.mark.parametrize("reader", [lambda lines: 1 / 0, lambda lines: sys.exit(3)])
def test_a_reader_that_fails_makes_up_no_cost(reader):
    row = told_by("print('hello')", reader=reader)
    assert (row["error_class"], row["metadata"]["stdout"]) == ("harness", ["hello"])
    assert row[["tokens_in", "tokens_out", "cost_usd"]].isna().all()


def test_a_reader_of_ones_own_that_gives_a_text_makes_up_no_cost():
    row = told_by("print('hello')", reader=lambda lines: lines[0])
    assert row["output"] == "hello" and row[["tokens_in", "tokens_out", "cost_usd"]].isna().all()


def test_what_was_told_before_the_runs_own_time_was_over_is_as_in_any_run():
    function = {"name": "mcp__toy__add", "arguments": "{}"}
    line = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    code = f"import json, time; print(json.dumps({line!r}), flush=True); time.sleep(600)"
    agent = External([sys.executable, "-c", code], "scribe")
    row = outcome(agent, timeout=4)
    assert row["error_class"] == "timeout"
    assert [(call["server"], call["name"]) for call in row["tool_calls"]] == [("toy", "add")]
    assert [message["role"] for message in row["messages"]] == ["user", "assistant"]


def test_a_place_that_a_killed_run_has_left_is_taken_over_and_cleared(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = tmp_path / "mcpeval-agent"
    (left / "work").mkdir(parents=True)
    (left / "work" / "old").touch()
    (left / "mcp.json").write_text("an old secret")
    row = outcome(agent_of("tell"))
    told = json.loads(row["output"])
    assert (told["files"], Path(told["path"]), told["mode"]) == ([], left / "mcp.json", 0o600)
    assert not list(tmp_path.iterdir())


def test_a_prompt_that_is_too_long_for_an_argument_is_said():
    row = told_by("", system="y" * 3_000_000)
    assert row["error_class"] == "model"  # on stdin it is not too long
    row = outcome(agent_of(prompt=("{prompt}",), system="y" * 3_000_000))
    assert row["error_class"] == "harness" and "a long prompt goes to stdin" in row["error"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"env": {"A=B": "c"}}, "env has 'A=B'"),
        ({"env": {"A": "\0"}}, "env has 'A'"),
        ({"env": {"": "c"}}, "env has ''"),
        ({"workdir": 3}, "workdir=3 should be the path"),
        ({"reader": ["json_lines"]}, "Did you mean 'json_lines'?"),
        ({"name": " "}, "name=' ' should not be empty"),
    ],
)
def test_what_cannot_be_meant_is_refused_when_it_is_written(more, said):
    with pytest.raises(InputError, match=re.escape(said)):
        External(["true"], **more)
