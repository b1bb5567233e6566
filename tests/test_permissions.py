"""Permissions: the first rule that matches decides; what is denied is told to the model, and never reaches a server."""

from __future__ import annotations

import asyncio
import json

import pytest

from mcpeval.agents import Agent
from mcpeval.cli import main
from mcpeval.errors import FileError, InputError
from mcpeval.running import run
from mcpeval.servers import Permission, Permissions, permitted, read_permissions, read_servers
from mcpeval.testing import toy_server
from tests.bad_server import bad
from tests.endpoint import call

NOBODY = "Permission denied: 'echo' of 'a' may not be called."


def decided(rules, tool="write_file", server="files", default="allow", **arguments):
    return Permissions(rules, default=default, ask=print).decide(server, tool, arguments)[0]


# --- rules --------------------------------------------------------------------------------------


def test_the_first_rule_that_matches_decides_and_the_default_where_none_does():
    rules = [
        {"action": "allow", "tool": "write_log"},
        {"action": "deny", "tool": "write_*", "server": ["files", "db*"]},
        {"action": "ask", "tool": "*", "server": "db2"},
    ]
    assert decided(rules, "write_log") == "allow"
    assert decided(rules, "write_file") == "deny"
    assert decided(rules, "write_file", "db2") == "deny"
    assert decided(rules, "read_file", "db2") == "ask"
    assert decided(rules, "write_file", "web") == "allow"
    assert decided(rules, "read_file", default="deny") == "deny"
    assert decided([], "read_file") == "allow"
    assert decided(rules, "Write_file", default="ask") == "ask"  # upper and lower case differ


@pytest.mark.parametrize(
    ("arguments", "matches"),
    [
        ({"path": "/etc/passwd"}, True),
        ({"path": "/home"}, False),
        ({}, False),
        ({"path": 3}, False),
        ({"path": ["/etc/passwd"]}, False),
    ],
)
def test_a_rule_on_an_argument_matches_its_value_as_text(arguments, matches):
    assert Permission("deny", arguments={"path": "/etc/*"}).matches("s", "t", arguments) is matches


def test_an_argument_is_named_by_its_place_at_any_depth():
    given = {"file": {"name": "a.py"}, "paths": ["x", "/etc/y"], "n": 3, "on": True, "a.b": "dotted", "none": None}
    for place, pattern in [
        ("file.name", "*.py"),
        ("paths.1", "/etc/*"),
        ("paths.*", "/etc/*"),
        ("n", "3"),
        ("on", "true"),
        ("a.b", "dotted"),
        ("none", "null"),
        ("file", '{"name": *}'),
    ]:
        assert Permission("deny", arguments={place: pattern}).matches("s", "t", given), place
    for place in ("file.size", "paths.2", "n.0", "file.name.first"):
        assert not Permission("deny", arguments={place: "*"}).matches("s", "t", given), place


def test_a_name_with_dots_is_found_and_cannot_hide_what_a_place_means():
    deny, allow = (Permission(action, arguments={"file.name": "secret*"}) for action in ("deny", "allow"))
    nested, flat = {"file": {"name": "secret.txt"}}, {"file.name": "secret.txt"}
    assert deny.matches("files", "read", nested) and deny.matches("files", "read", flat)
    assert deny.matches("files", "read", {**nested, "file.name": "harmless"})
    assert not allow.matches("files", "read", {**nested, "file.name": "harmless"})
    deeper = Permission("deny", arguments={"a.b.*.c.d": "x"})
    assert deeper.matches("s", "t", {"a.b": [{"c.d": "y"}, {"c": {"d": "x"}}]})


def test_one_member_suffices_to_deny_and_all_are_needed_to_allow():
    given, pattern = {"paths": ["/data/a", "/etc/b"]}, {"paths.*": "/data/*"}
    assert Permission("deny", arguments=pattern).matches("s", "t", given)
    assert Permission("ask", arguments=pattern).matches("s", "t", given)
    assert not Permission("allow", arguments=pattern).matches("s", "t", given)
    assert Permission("allow", arguments=pattern).matches("s", "t", {"paths": ["/data/a", "/data/b"]})
    assert not Permission("allow", arguments=pattern).matches("s", "t", {"paths": []})


def test_all_the_arguments_of_a_rule_have_to_match():
    rule = Permission("deny", arguments={"a": "1", "b": ["2", "3"]})
    assert rule.matches("s", "t", {"a": 1, "b": 3})
    assert not rule.matches("s", "t", {"a": 1, "b": 4})


def test_the_names_of_mcp_universe_are_read():
    assert (Permission("reject").action, Permission("human_review").action) == ("deny", "ask")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([{"action": "dney"}], "action='dney'. Did you mean 'deny'"),
        ([{"action": "deny", "tols": "x"}], "unknown key 'tols'. Did you mean 'tool'"),
        ([{"tool": "x"}], "is no rule"),
        (["deny"], "is no rule"),
        ("no-such-file.json", "no-such-file.json"),
        ({"rule": []}, "unknown key 'rule'. Did you mean 'rules'"),
        ({"default": "none"}, "default='none'"),
        ([{"action": "deny", "tool": 3}], "tool=3 should be a pattern"),
        ([{"action": "deny", "tool": []}], r"tool=\[\] should be a pattern"),
        ([{"action": "deny", "arguments": "x"}], "arguments='x' should map places"),
        ([{"action": "deny", "arguments": {"a": None}}], r"arguments\['a'\]=None should be a pattern"),
        ([{"action": "deny", "reason": 3}], "reason=3 should be a text"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(given, said):
    with pytest.raises((InputError, FileError), match=said):
        read_permissions(given)


def test_permissions_go_through_json_and_files(tmp_path):
    rules = [{"action": "deny", "tool": ["a", "b*"], "arguments": {"p": "x"}, "reason": "no."}]
    written = Permissions(rules, default="deny")
    assert read_permissions(json.loads(json.dumps(written.to_dict()))) == written
    (tmp_path / "rules.json").write_text(json.dumps(written.to_dict()))
    assert read_permissions(tmp_path / "rules.json") == written
    assert read_permissions(rules) == Permissions(rules)
    assert read_permissions(None) is None


def test_a_mistake_in_a_file_is_told_with_the_name_of_the_file(tmp_path):
    rules, servers = tmp_path / "rules.json", tmp_path / "servers.json"
    rules.write_text('[{"action": "dney"}]')
    servers.write_text('{"mcpServers": {"a": {"comand": "x"}}}')
    with pytest.raises(FileError, match=r"rules\.json: permission: action='dney'\. Did you mean 'deny'"):
        read_permissions(rules)
    with pytest.raises(FileError, match=r"servers\.json: server 'a': unknown key 'comand'\. Did you mean 'command'"):
        read_servers(servers)


def test_rules_of_a_server_come_after_those_of_the_run_and_the_stricter_default_holds():
    entry = bad(permissions={"rules": [{"action": "deny", "tool": "add"}], "default": "deny"})
    servers = read_servers({"a": entry, "b": bad()})
    found = permitted(servers, [{"action": "allow", "tool": "add"}, {"action": "deny", "tool": "echo"}])
    assert [found["a"].permissions.decide("a", tool, {})[0] for tool in ("add", "echo", "pid")] == [
        "allow",
        "deny",
        "deny",
    ]
    assert found["b"].permissions.decide("b", "pid", {})[0] == "allow"
    assert permitted(servers, None) == servers
    with pytest.raises(InputError, match="server 'a': permission: action='no'"):
        read_servers({"a": bad(permissions=[{"action": "no"}])})


# --- runs ---------------------------------------------------------------------------------------


@pytest.fixture
def agent(endpoint):
    """The model calls the first tool it is offered, once, and then answers."""
    return Agent("openai/good", "tools", api_base=endpoint.base, api_key="sk-test-000001", retries=0)


def tasks(*tools, n=1):
    return [{"id": f"t{i}", "question": f"ROW-{i}?", "mcp_servers": [{"name": "a", "tools": tools}]} for i in range(n)]


def test_a_denied_call_is_a_tool_error_that_the_model_is_told_and_the_run_goes_on(agent, endpoint):
    rules = [{"action": "deny", "tool": "echo", "reason": "Use another tool."}]
    frame = run(tasks("echo"), agent, servers={"a": bad()}, permissions=rules, cache=False)
    [made] = frame["tool_calls"][0]
    assert (made["server"], made["name"], made["is_error"], made["denied"]) == ("a", "echo", True, True)
    assert (made["result"], made["error"]) == (None, NOBODY + " Use another tool.")
    assert frame["status"][0] == "ok"
    assert endpoint.requests[-1]["messages"][-1]["content"] == NOBODY + " Use another tool."


def test_a_denied_call_never_reaches_the_server():
    async def note(task, session):
        calls = [await session.call_tool("note", {"text": text}) for text in ("a secret", "fine")]
        kept = await session.call_tool("notes", {})
        return [[call.denied for call in calls], kept.result["structuredContent"]["result"]]

    rules = [Permission("deny", "note", arguments={"text": "*secret*"})]
    frame = run("what now?", note, servers={"a": toy_server}, permissions=rules, cache=False)
    assert json.loads(frame["output"][0]) == [[True, False], ["fine"]]
    assert frame["tool_calls"][0][0]["error"] == (
        "Permission denied: 'note' of 'a' may not be called with these arguments."
    )
    assert "denied" not in frame["tool_calls"][0][1]


def test_with_a_list_of_what_is_allowed_all_else_is_denied():
    async def try_all(task, session):
        return [(await session.call_tool(name, {"a": 1, "b": 2})).denied for name in ("add", "echo", "pid")]

    permissions = {"rules": [{"action": "allow", "tool": "add"}], "default": "deny"}
    frame = run("what now?", try_all, servers={"a": bad()}, permissions=permissions, cache=False)
    assert json.loads(frame["output"][0]) == [False, True, True]


def test_arguments_that_are_no_json_object_are_refused_for_that_and_a_tool_that_is_not_there_is_unknown():
    async def try_both(task, session):
        return [(await session.call_tool(name, given)).error for name, given in (("add", "{bad"), ("ad", {}))]

    frame = run("what now?", try_both, servers={"a": bad()}, permissions={"default": "deny"}, cache=False)
    malformed, unknown = json.loads(frame["output"][0])
    assert malformed.startswith("The arguments are not valid JSON")
    assert unknown.startswith("There is no tool 'ad'")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (True, None),
        (False, "Permission denied: 'add' of 'a' may not be called."),
        (None, "Permission denied: 'add' of 'a' may not be called."),
        ("Not on Sundays.", "Permission denied: 'add' of 'a' may not be called with these arguments. Not on Sundays."),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "async", "object", "lambda"])
def test_somebody_is_asked_about_a_call_and_the_answer_holds(answer, error, kind):
    asked = []

    def ask(server, tool, arguments):
        asked.append((server, tool, arguments))
        return answer

    async def ask_async(server, tool, arguments):
        return ask(server, tool, arguments)

    class Asking:
        async def __call__(self, *about):
            return ask(*about)

    async def add(task, session):
        return session.show(await session.call_tool("add", {"a": 1, "b": 2}))

    kinds = {"plain": ask, "async": ask_async, "object": Asking(), "lambda": lambda *about: ask_async(*about)}
    permissions = Permissions([Permission("ask", "add")], ask=kinds[kind])
    frame = run("what now?", add, servers={"a": bad()}, permissions=permissions, cache=False)
    assert asked == [("a", "add", {"a": 1, "b": 2})]
    assert frame["output"][0] == (error or "3")


def test_somebody_is_asked_about_one_call_at_a_time():
    at_once, most = 0, []

    async def ask(server, tool, arguments):
        nonlocal at_once
        at_once += 1
        most.append(at_once)
        await asyncio.sleep(0.01)
        at_once -= 1
        return True

    async def add(task, session):
        return session.show(await session.call_tool("add", {"a": 1, "b": 2}))

    permissions = Permissions(default="ask", ask=ask)
    frame = run(tasks("add", n=6), add, servers={"a": bad(share=True)}, permissions=permissions, cache=False)
    assert (frame["output"] == "3").all()
    assert most == [1] * 6


def test_a_function_that_cannot_be_asked_is_refused_before_anything_starts():
    with pytest.raises(InputError, match=r"does not take \(server, tool, arguments\): too many positional"):
        Permissions(default="ask", ask=lambda tool: True)


def test_a_rule_on_a_misspelt_server_is_refused_and_one_on_a_server_of_another_run_is_not():
    def rules(server):
        return Permissions([Permission("deny", "add", server=server)])

    with pytest.raises(InputError, match=r"permissions: there is no server 'wether'. Did you mean 'weather'\?"):
        run("what now?", lambda task, session: "", servers={"weather": bad()}, permissions=rules("wether"), cache=False)
    for server in ("weather", "weathe?", "calendar"):
        frame = run("what now?", lambda *_: "", servers={"weather": bad()}, permissions=rules(server), cache=False)
        assert frame["status"][0] == "ok"


def test_a_function_that_is_asked_and_fails_ends_its_run_with_its_traceback():
    def ask(server, tool, arguments):
        raise LookupError("nobody is there")

    async def add(task, session):
        await session.call_tool("add", {"a": 1, "b": 2})

    frame = run("what now?", add, servers={"a": bad()}, permissions=Permissions(default="ask", ask=ask), cache=False)
    assert (frame["error_class"][0], frame["error"][0]) == ("harness", "LookupError: nobody is there")


@pytest.mark.parametrize("where", ["of the run", "of the server"])
def test_without_a_function_to_ask_nothing_is_started(agent, endpoint, where):
    rules = [{"action": "ask", "tool": "write_*"}]
    servers = {"a": bad("die", permissions=rules if where == "of the server" else None)}
    with pytest.raises(InputError, match="'a'.*'ask'.*nobody"):
        run(tasks("echo"), agent, servers=servers, permissions=None if where == "of the server" else rules, cache=False)
    assert endpoint.count == 0


class Adder:
    """An agent whose runs are kept, and that counts them."""

    fingerprint = "adder"

    def __init__(self):
        self.runs = 0

    async def __call__(self, task, session):
        self.runs += 1
        return session.show(await session.call_tool("add", {"a": 1, "b": 2}))


def test_permissions_are_part_of_what_a_run_is_kept_under(cache):
    adder, deny = Adder(), [{"action": "deny", "tool": "add"}]
    for permissions, answer, runs in [
        (None, "3", 1),
        (deny, "Permission denied: 'add' of 'a' may not be called.", 2),
        (None, "3", 2),
        (deny, "Permission denied: 'add' of 'a' may not be called.", 2),
        ([{**deny[0], "reason": "x"}], "Permission denied: 'add' of 'a' may not be called. x", 3),
    ]:
        frame = run("what now?", {"x": adder}, servers={"a": bad()}, permissions=permissions, cache=cache)
        assert (frame["output"][0], adder.runs) == (answer, runs)


def test_a_run_in_which_somebody_may_be_asked_is_repeated(cache):
    adder, permissions = Adder(), Permissions(default="ask", ask=lambda *call: True)
    for _ in range(2):
        run("what now?", {"x": adder}, servers={"a": bad()}, permissions=permissions, cache=cache)
    assert adder.runs == 2


def test_an_agent_that_starts_the_servers_itself_is_refused_where_calls_would_be_denied(endpoint):
    from mcpeval.agents import External

    agent = External(["true"], "outside")
    with pytest.raises(InputError, match="'outside' calls the tools of 'a' itself"):
        run(tasks("add"), agent, servers={"a": bad()}, permissions={"default": "deny"}, cache=False)


def test_the_command_takes_a_file_of_rules(endpoint, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.base)
    (tmp_path / "permissions.json").write_text(json.dumps([{"action": "deny", "tool": "*"}]))
    (tmp_path / "servers.json").write_text(json.dumps({"a": bad()}))
    (tmp_path / "tasks.json").write_text(json.dumps(tasks("echo")))
    options = [f"--{name}={tmp_path / f'{name}.json'}" for name in ("servers", "permissions")]
    out = ["--model", "openai/good", "--out", str(tmp_path / "runs.csv")]
    assert main(["run", str(tmp_path / "tasks.json"), *options, *out]) == 0
    assert endpoint.requests[-1]["messages"][-1]["content"] == NOBODY


def test_a_call_that_the_model_makes_is_denied_by_its_arguments_too(agent, endpoint):
    def model(body):
        answered = any(message["role"] == "tool" for message in body["messages"])
        return "done" if answered else call("echo", {"text": "/etc/passwd"})

    endpoint.script(model)
    rules = [{"action": "deny", "tool": "echo", "arguments": {"text": "/etc/*"}}]
    frame = run(tasks("echo"), agent, servers={"a": bad()}, permissions=rules, cache=False)
    endpoint.script(None)
    assert frame["tool_calls"][0][0]["denied"] is True
    assert frame["output"][0] == "done"
