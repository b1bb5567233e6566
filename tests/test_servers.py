"""MCP servers that work: files that name them, their tools over every transport, what a model is shown."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
import os
import sys

import pytest

from mcpeval import servers
from mcpeval.errors import CacheMiss, FileError, InputError
from mcpeval.servers import Server, blob, check_servers, open_toolbox, read_servers
from mcpeval.servers.results import call_text, cut, recorded, without_blobs
from mcpeval.servers.stdio import LongLine, StderrLog, lines
from mcpeval.servers.toolbox import aliases, function_tool, object_schema
from mcpeval.testing import toy_server
from mcpeval.types import ToolCall
from tests.bad_server import bad, served


def with_tools(source, use, **options):
    """What `use(toolbox)` gives, over the servers of `source`."""

    async def main():
        async with open_toolbox(list(read_servers(source).values()), **options) as box:
            return await use(box)

    return asyncio.run(main())


def names(box):
    return [tool["function"]["name"] for tool in box.tools]


# Files


def test_a_file_with_mcpservers_is_read(tmp_path):
    entry = {"command": "node", "args": ["-y", "pkg", 3], "cwd": "/", "call_timeout": 5}
    entry["env"] = {"PORT": 8000, "DEBUG": True}
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": {"files": entry}}))
    server = read_servers(tmp_path / "servers.json")["files"]
    assert (server.name, server.transport, server.command, server.args) == (
        "files",
        "stdio",
        "node",
        ("-y", "pkg", "3"),
    )
    assert server.env == {"PORT": "8000", "DEBUG": "true"}
    assert (server.cwd, server.call_timeout, server.connect_timeout) == ("/", 5.0, 30.0)


def test_a_file_in_the_form_of_mcp_universe_is_read_and_stdio_comes_first(tmp_path):
    # The entries of that project's server_list.json, and its documented http_url.
    (tmp_path / "list.json").write_text(
        json.dumps(
            {
                "search": {
                    "stdio": {"command": "python3", "args": ["-m", "search"]},
                    "sse": {"command": "python3", "args": ["-m", "search", "--port", "{{PORT}}"]},
                    "env": {"SERP_API_KEY": "{{SERP_API_KEY}}"},
                },
                "remote": {"http_url": "https://mcp.example/v1", "headers": {"Authorization": "Bearer {{TOKEN}}"}},
            }
        )
    )
    found = read_servers(tmp_path / "list.json", env={"SERP_API_KEY": "k-1234", "TOKEN": "t-1234"})
    search, remote = found["search"].resolve(), found["remote"].resolve()
    assert (search.transport, search.args, search.env) == ("stdio", ("-m", "search"), {"SERP_API_KEY": "k-1234"})
    assert (remote.transport, remote.url) == ("http", "https://mcp.example/v1")
    assert remote.headers == {"Authorization": "Bearer t-1234"}


@pytest.mark.parametrize(
    "entry, transport",
    [
        ({"url": "http://h/mcp"}, "http"),
        ({"url": "http://h/sse"}, "sse"),
        ({"url": "http://h/sse/?a=b"}, "sse"),
        ({"url": "http://h/sse", "type": "http"}, "http"),
        ({"url": "http://h/x", "type": "sse"}, "sse"),
        ({"url": "http://h/x", "type": "streamable-http"}, "http"),
        ({"sse": {"url": "http://h/x"}}, "sse"),
        ({"streamable_http": {"url": "http://h/x"}}, "http"),
        ({"command": "x"}, "stdio"),
    ],
)
def test_the_transport_follows_from_the_entry(entry, transport):
    assert read_servers({"a": entry})["a"].transport == transport


def test_server_values_and_server_objects_may_stand_beside_file_entries():
    known = Server("other", command="x")
    found = read_servers({"a": known, "b": toy_server, "c": toy_server(), "d": {"command": "y"}})
    assert [server.name for server in found.values()] == ["a", "b", "c", "d"]
    assert [server.transport for server in found.values()] == ["stdio", "memory", "memory", "stdio"]
    assert read_servers(None) == {}
    assert read_servers(found) == found


def test_a_missing_variable_is_named_with_its_server_once_the_server_is_used(monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    monkeypatch.delenv("NO_SUCH_FOLDER", raising=False)
    entry = {"command": "x", "args": ["{{NO_SUCH_FOLDER}}"], "env": {"K": "{{ NO_SUCH_KEY }}"}}
    found = read_servers({"files": entry, "other": {"command": "y"}})
    assert found["other"].resolve().command == "y"
    with pytest.raises(InputError, match="'files'.*NO_SUCH_FOLDER, NO_SUCH_KEY"):
        found["files"].resolve()


def test_values_of_variables_are_put_in_once_and_never_read_as_a_template():
    entry = {"command": "x", "args": ["{{A}}", "{{ 7*7 }}", "{A}", "{% raw %}", "${A}"]}
    server = read_servers({"a": entry}, env={"A": "{{B}}", "B": "no"})["a"].resolve()
    assert server.args == ("{{B}}", "{{ 7*7 }}", "{A}", "{% raw %}", "${A}")
    assert server.resolve().args == server.args


def test_a_mapping_given_to_resolve_comes_before_the_environment(monkeypatch):
    monkeypatch.setenv("WORKDIR", "/from/environment")
    server = read_servers({"a": {"command": "x", "cwd": "{{WORKDIR}}"}})["a"]
    assert server.resolve().cwd == "/from/environment"
    assert server.resolve({"WORKDIR": "/of/the/trial"}).cwd == "/of/the/trial"


def test_a_file_that_is_not_json_is_named_with_its_line(tmp_path):
    path = tmp_path / "servers.json"
    path.write_text('{"mcpServers": {\n  "a": {"command": "x",}\n}}')
    with pytest.raises(FileError, match=r"servers\.json, line 2"):
        read_servers(path)
    with pytest.raises(FileError, match=r"nowhere\.json"):
        read_servers(str(tmp_path / "nowhere.json"))


@pytest.mark.parametrize(
    "source, message",
    [
        ({"a": {"comand": "x"}}, "'a': unknown key 'comand'. Did you mean 'command'"),
        ({"a": {"args": []}}, "'a': a server over stdio needs 'command'"),
        ({"a": {"type": "http", "command": "x"}}, "'a': a server over http needs 'url'"),
        ({"a": {"sse": {"command": "x"}}}, "'a': a server over sse needs 'url'"),
        ({"a": {"url": "u", "type": "htpp"}}, "'a': type='htpp'. Did you mean 'http'"),
        ({"a": {"command": "x", "args": "y"}}, "'a': args='y' should be a list"),
        ({"a": {"command": "x", "env": {"A": None}}}, "'a': the value of 'A' in env should be a text"),
        ({"a": {"command": "x", "env": ["A=1"]}}, "'a': env=.* should be a mapping"),
        ({"a": {"command": "x", "call_timeout": 0}}, "'a': call_timeout=0 should be a number of seconds above 0"),
        ({"a": 3}, "'a': 3 is neither a mapping nor an MCP server"),
        ({"mcpServers": ["a"]}, "mcpServers should be a mapping"),
        (3, "servers should be a mapping"),
        (["tim"], "'tim' is not in the catalogue. Did you mean 'time'"),
        ({"a": {"command": "x", "share": "yes"}}, "'a': share='yes' should be true or false"),
    ],
)
def test_an_entry_that_cannot_be_meant_is_refused_by_name(source, message):
    with pytest.raises(InputError, match=message):
        read_servers(source)


def test_a_command_that_does_not_exist_is_found_before_anything_starts(tmp_path):
    entry = {"command": "no-such-command-x", "args": ["{{A}}"]}
    with pytest.raises(InputError, match="'a': there is no command 'no-such-command-x'"):
        read_servers({"a": entry}, env={"A": "1"})["a"].check()
    with pytest.raises(InputError, match="'a': the folder cwd='/no/such/folder'"):
        read_servers({"a": {"command": sys.executable, "cwd": "/no/such/folder"}})["a"].check()
    script = tmp_path / "server"
    script.write_text("#!/bin/sh\n")
    relative = read_servers({"a": {"command": "./server", "cwd": str(tmp_path)}})["a"]
    with pytest.raises(InputError, match="no command './server' that can be run"):
        relative.check()
    script.chmod(0o755)
    assert relative.check().command == "./server"


# Transports


def test_the_filesystem_server_reads_a_file_over_stdio(node_bin, tmp_path):
    (tmp_path / "a.txt").write_text("seven\n")
    entry = {"command": str(node_bin / "mcp-server-filesystem"), "args": ["{{FOLDER}}"]}

    async def use(box):
        assert "read_text_file" in names(box)
        assert not any("$schema" in tool["function"]["parameters"] for tool in box.tools)
        return await box.call("read_text_file", {"path": str(tmp_path / "a.txt")}), box.provenance

    call, (origin,) = with_tools(read_servers({"files": entry}, env={"FOLDER": str(tmp_path)}), use)
    assert (call.server, call.name, call.is_error, call.error) == ("files", "read_text_file", False, None)
    assert call.result["content"] == [{"type": "text", "text": "seven\n"}]
    assert "resultType" not in call.result
    assert origin["server_info"]["name"] == "secure-filesystem-server"
    assert origin["n_tools"] == 14
    assert len(origin["tools_sha256"]) == 64


def test_the_memory_server_keeps_what_it_was_told_within_a_session(node_bin, tmp_path):
    environment = {"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}
    memory = {"command": str(node_bin / "mcp-server-memory"), "env": environment}

    async def use(box):
        assert sorted(names(box)) == ["create_entities", "read_graph"]
        entity = {"name": "Ada", "entityType": "person", "observations": ["wrote notes"]}
        await box.call("create_entities", {"entities": [entity]})
        return (await box.call("read_graph", {})).result["structuredContent"]

    graph = with_tools({"memory": memory}, use, offered={"memory": ["read_graph", "create_entities"]})
    assert [entity["name"] for entity in graph["entities"]] == ["Ada"]


def test_the_time_server_converts_over_stdio(venv_bin):
    async def use(box):
        given = {"source_timezone": "Asia/Kolkata", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        return box.text(await box.call("convert_time", given))

    # Neither zone has summer time: half past five and nine hours ahead of UTC.
    text = with_tools({"time": {"command": str(venv_bin / "mcp-server-time")}}, use)
    assert "T15:30:00+09:00" in text


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_a_server_over_http_is_reached_with_its_headers(transport):
    with served(transport, "token-1234") as (url, _):
        source = {"toy": {"url": url, "headers": {"Authorization": "Bearer {{TOKEN}}"}}}

        async def use(box):
            assert names(box)[:2] == ["add", "echo"]
            calls = [box.call("add", {"a": i, "b": 0.5}) for i in range(10)]
            return [call.result["structuredContent"]["result"] for call in await asyncio.gather(*calls)], box.provenance

        sums, (origin,) = with_tools(read_servers(source, env={"TOKEN": "token-1234"}), use)
    assert sums == [i + 0.5 for i in range(10)]
    assert (origin["transport"], origin["command"]) == (transport, url)
    assert "token-1234" not in json.dumps(origin)


def test_a_function_makes_a_new_server_in_memory_for_each_run_and_an_object_is_shared():
    async def use(box):
        await box.call("note", {"text": "x"})
        return (await box.call("notes", {})).result["structuredContent"]["result"]

    shared = toy_server()
    assert [with_tools({"toy": toy_server}, use) for _ in range(2)] == [["x"], ["x"]]
    assert [with_tools({"toy": shared}, use) for _ in range(2)] == [["x"], ["x", "x"]]


def test_a_server_gets_six_variables_and_those_it_is_given(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "secret")

    async def use(box):
        return json.loads(box.text(await box.call("env", {})))

    seen = with_tools({"bad": bad(env={"GIVEN": "yes"})}, use)
    # Python adds LC_CTYPE to its own environment when it starts.
    assert set(seen) - {"LC_CTYPE"} <= {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "GIVEN"}
    assert (seen["GIVEN"], seen["PATH"]) == ("yes", os.environ["PATH"])


def test_a_server_starts_where_stderr_is_no_file(monkeypatch):
    class Notebook:
        """What stands for stderr in a notebook."""

        def write(self, text):
            return len(text)

        def flush(self):
            pass

    monkeypatch.setattr(sys, "stderr", Notebook())

    async def use(box):
        return box.text(await box.call("add", {"a": 1, "b": 2}))

    assert with_tools({"bad": bad()}, use) == "3"


def test_calls_side_by_side_get_each_its_own_answer_and_a_slow_one_holds_nobody_up():
    async def use(box):
        slow = asyncio.ensure_future(box.call("hang", {"seconds": 0.5}))
        quick = await asyncio.gather(*(box.call("add", {"a": i, "b": i}) for i in range(50)))
        assert not slow.done()
        return [box.text(call) for call in quick], box.text(await slow)

    assert with_tools({"bad": bad()}, use) == ([str(2 * i) for i in range(50)], "late")


def test_nothing_of_the_sdk_is_imported_before_a_server_starts():
    code = "import sys, mcpeval.servers, mcpeval.testing; sys.exit('mcp' in sys.modules or 'anyio' in sys.modules)"
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code]) == 0


def test_a_launcher_also_gets_what_it_fetches_packages_with_and_no_other_secret(monkeypatch):
    given = {"HTTPS_PROXY": "http://me:pass@proxy:1", "SSL_CERT_FILE": "/c.pem", "UV_OFFLINE": "true"}
    for name, value in {**given, "UV_PUBLISH_TOKEN": "t-12345", "OPENAI_KEY": "k-12345"}.items():
        monkeypatch.setenv(name, value)
    launched = read_servers({"a": {"command": "uvx", "args": ["pkg==1.0"], "env": {"OWN": "of-mine"}}})["a"].resolve()
    assert {**given, "OWN": "of-mine"}.items() <= launched.env.items()
    assert not {"UV_PUBLISH_TOKEN", "OPENAI_KEY"} & set(launched.env)
    # A password in them is a secret, a word such as "true" is none.
    assert launched.redact("http://me:pass@proxy:1 true of-mine") == "[env HTTPS_PROXY] true [env OWN]"
    assert read_servers({"a": bad()})["a"].resolve().env == {}
    assert "HTTPS_PROXY" not in json.dumps(read_servers({"a": {"command": "npx"}})["a"].definition)


# Tools as a model sees them


def test_tools_of_the_same_name_are_mapped_and_mapped_back():
    async def use(box):
        assert names(box) == ["a__add", "a__echo", "b__add", "b__echo"]
        for alias, server in [("a__add", "a"), ("b__add", "b")]:
            call = await box.call(alias, {"a": 1, "b": 1})
            assert (call.server, call.name, call.is_error) == (server, "add", False)
        unknown = await box.call("add", {"a": 1, "b": 1})
        assert (unknown.server, unknown.name, unknown.is_error) == (None, "add", True)

    offered = {"a": ["add", "echo"], "b": ["add", "echo"]}
    with_tools({"a": toy_server, "b": toy_server}, use, offered=offered)


def test_odd_and_long_names_become_names_that_every_provider_takes():
    async def use(box):
        assert all(len(name) <= 64 for name in names(box))
        assert all(name.replace("_", "").replace("-", "").isalnum() and not name[0].isdigit() for name in names(box))
        return [(call.name, box.text(call)) for call in [await box.call(name, {}) for name in names(box)]]

    called = with_tools({"bad": bad("long")}, use)
    expected = ["get.current/time", "7zip", "a" * 70, "a" * 69 + "b", "x.y", "x/y"]
    assert called == [(name, name) for name in expected]


def test_a_name_stays_as_it_is_where_it_can():
    homes = [("s", "get_time"), ("s", "b.c"), ("t", "get_date"), ("t", "x"), ("u", "x"), ("u", "t__x")]
    named = aliases(homes)
    assert named[:3] == ["get_time", "b_c", "get_date"]
    assert named[4] == "u__x"
    assert named[3].startswith("t__x_") and named[5].startswith("t__x_")
    assert len(set(named)) == len(homes)


def test_a_tool_is_offered_only_where_the_task_names_it_and_a_misspelt_one_is_an_error():
    async def use(box):
        assert names(box) == ["add"]
        hidden = await box.call("echo", {"text": "x"})
        assert (hidden.server, hidden.is_error) == (None, True)
        assert (await box.call_tool("toy", "echo", {"text": "x"})).is_error is False

    with_tools({"toy": toy_server}, use, offered={"toy": ["add"]})
    with pytest.raises(InputError, match="'toy' has no tool 'ad'. Did you mean 'add'"):
        with_tools({"toy": toy_server}, use, offered={"toy": ["ad"]})


def test_tools_may_be_narrowed_by_patterns_and_one_that_matches_nothing_is_an_error():
    async def use(box):
        return names(box)

    assert with_tools({"toy": toy_server}, use, offered={"toy": ["note*", "add"]}) == ["add", "note", "notes"]
    with pytest.raises(InputError, match="'toy' has no tool 'wirte_\\*'"):
        with_tools({"toy": toy_server}, use, offered={"toy": ["wirte_*"]})


def test_a_tool_that_is_not_there_is_answered_with_the_nearest_name():
    async def use(box):
        return await box.call("ecko", {"text": "x"}), await box.call_tool("tox", "echo", {})

    tool, server = with_tools({"toy": toy_server}, use)
    assert tool == ToolCall(None, "ecko", {"text": "x"}, None, True, "There is no tool 'ecko'. Did you mean 'echo'?")
    assert (server.is_error, server.error) == (True, "There is no server 'tox'. Did you mean 'toy'?")


def test_odd_schemas_become_objects_that_every_provider_takes_and_the_tools_work():
    async def use(box):
        schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in box.tools}
        return schemas, [box.text(await box.call(name, {})) for name in schemas]

    schemas, called = with_tools({"bad": bad("odd")}, use)
    assert called == list(schemas) == ["reference", "choice", "strict", "typeless", "nothing"]
    for schema in schemas.values():
        assert schema["type"] == "object"
        assert isinstance(schema["properties"], dict)
        assert not {"$schema", "$ref", "anyOf", "oneOf", "allOf"} & set(schema)
    assert schemas["reference"]["properties"] == {"x": {"type": "number"}}
    assert set(schemas["choice"]["properties"]) == {"a", "b", "n"}
    assert schemas["choice"]["properties"]["b"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert schemas["choice"]["required"] == ["n"]
    # Below the root all stays as the server wrote it.
    assert schemas["strict"]["additionalProperties"] is False
    assert schemas["strict"]["properties"] == {"x": {"$ref": "#/$defs/X"}}
    assert schemas["typeless"]["required"] == ["x"]
    assert schemas["nothing"] == {"type": "object", "properties": {}}


def test_a_root_of_several_parts_needs_what_all_of_them_need():
    schema = {
        "allOf": [{"$ref": "#/$defs/A"}, {"properties": {"b": {}}, "required": ["b"]}],
        "$defs": {"A": {"properties": {"a": {}}, "required": ["a"]}},
    }
    assert object_schema(schema)["required"] == ["a", "b"]
    assert function_tool({"name": "t"}, "t")["function"] == {
        "name": "t",
        "description": "",
        "parameters": {"type": "object", "properties": {}},
    }


def test_three_hundred_tools_are_listed_over_their_pages():
    async def use(box):
        return names(box), box.text(await box.call("tool_299", {}))

    listed, called = with_tools({"bad": bad("pages")}, use)
    assert listed == [f"tool_{i:03d}" for i in range(300)]
    assert called == "tool_299"


# Results


def test_a_tool_that_fails_is_shown_to_the_model_as_it_failed():
    async def use(box):
        raised = await box.call("boom", {"message": "no such city"})
        wrong = await box.call("add", {"a": "x", "b": 1})
        return raised, box.text(raised), wrong, box.text(wrong)

    raised, told, wrong, complaint = with_tools({"toy": toy_server}, use)
    assert (raised.is_error, raised.error, raised.result["isError"]) == (True, None, True)
    assert told.endswith("no such city")
    assert wrong.is_error
    assert "valid number" in complaint


def result(*content, **more):
    return ToolCall("s", "t", {}, {"content": list(content), **more})


def test_what_is_no_text_stands_as_a_marker():
    data = base64.b64encode(b"12345").decode()
    image = {"type": "image", "data": data, "mimeType": "image/png"}
    audio = {"type": "audio", "data": data, "mimeType": "audio/wav"}
    file = {"type": "resource", "resource": {"uri": "file:///a.bin", "mimeType": "x/y", "blob": data}}
    page = {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "page one"}}
    link = {"type": "resource_link", "name": "b", "uri": "file:///b.txt"}
    assert call_text(result({"type": "text", "text": "a"}, image, audio, file, page, link)).split("\n") == [
        "a",
        "[image image/png, 5 bytes]",
        "[audio audio/wav, 5 bytes]",
        "[resource file:///a.bin x/y, 5 bytes]",
        "page one",
        "[resource link b: file:///b.txt]",
    ]


def test_structured_content_is_shown_where_there_is_no_text():
    assert call_text(result(structuredContent={"city": "Köln"})) == '{"city": "Köln"}'
    assert call_text(result({"type": "text", "text": "Köln"}, structuredContent={"city": "Köln"})) == "Köln"
    assert call_text(result()) == "[no content]"


def test_images_and_files_are_kept_in_the_cache_by_their_hash_and_shown_as_markers(cache):
    async def use(box):
        call = await box.call("picture", {"size": 300_000})
        return call, box.text(call)

    call, told = with_tools({"bad": bad()}, use, cache=cache)
    image, file, page = call.result["content"]
    sha = hashlib.sha256(b"x" * 300_000).hexdigest()
    assert image == {"type": "image", "mimeType": "image/png", "sha256": sha, "bytes": 300_000}
    assert file["resource"] == {"uri": "file:///a.bin", "mimeType": "x/y", "sha256": sha, "bytes": 300_000}
    assert page["resource"]["text"] == "page one"
    assert call.result["structuredContent"] == {"size": 300_000}
    assert told.split("\n") == [
        "[image image/png, 300000 bytes]",
        "[resource file:///a.bin x/y, 300000 bytes]",
        "page one",
        '{"size": 300000}',
    ]
    assert blob(image, cache) == blob(file, cache) == blob(sha, cache) == b"x" * 300_000
    assert len(json.dumps(call.to_dict())) < 1000


def test_a_picture_that_no_cache_was_there_for_is_known_by_its_hash_alone(cache):
    async def use(box):
        return await box.call("look", {})

    image = with_tools({"toy": toy_server}, use).result["content"][0]
    assert set(image) >= {"sha256", "bytes"} and "data" not in image
    with pytest.raises(CacheMiss, match=image["sha256"]):
        blob(image, cache)
    with pytest.raises(InputError, match="names no sha256"):
        blob({"type": "text", "text": "x"}, cache)
    with pytest.raises(InputError, match="cache=False"):
        blob(image, False)


def test_a_picture_in_the_cache_that_is_another_than_its_name_says_is_not_given_out(cache):
    cache.set("blob:" + "0" * 64, {"mimeType": "image/png", "data": base64.b64encode(b"other").decode()})
    with pytest.warns(UserWarning, match="is refused"), pytest.raises(CacheMiss):
        blob("0" * 64, cache)


def test_data_that_is_no_base64_is_kept_as_it_came(cache):
    kept, blobs = without_blobs({"content": [{"type": "image", "data": "a"}, {"type": "image"}, "text"]})
    assert kept["content"] == [
        {"type": "image", "sha256": hashlib.sha256(b"a").hexdigest(), "bytes": 1},
        {"type": "image"},
        "text",
    ]
    assert [value["data"] for value in blobs.values()] == ["a"]


def test_a_long_result_is_cut_in_the_middle_visibly_and_says_so():
    async def use(box):
        short = await box.call("echo", {"text": "x" * 100})
        long = await box.call("echo", {"text": "a" * 60 + "b" * 60})
        assert (box.text(short), box.is_cut(short), box.is_cut(long)) == ("x" * 100, False, True)
        assert long.result["content"][0]["text"] == "a" * 60 + "b" * 60
        return box.text(long)

    told = with_tools({"toy": toy_server}, use, max_result_chars=100)
    assert told == "a" * 50 + "\n[... 20 characters cut ...]\n" + "b" * 50
    assert cut("abc", 0) == "\n[... 3 characters cut ...]\n"


def test_a_row_keeps_two_million_characters_of_a_result_and_counts_the_rest():
    text = {"type": "text", "text": "x" * 3_000_000}
    small = {"type": "text", "text": "y" * 1000}
    kept = recorded({"content": [text, small], "resultType": "complete", "_meta": {"a": 1}})
    assert kept["content"][1] == small
    assert len(json.dumps(kept)) < 2_001_000
    assert kept["_meta"]["a"] == 1
    assert 1_000_000 <= kept["_meta"]["mcpeval/cut"] <= 1_002_000
    assert "characters cut" in kept["content"][0]["text"]
    table = recorded({"content": [], "structuredContent": {"rows": list(range(1_000_000))}})
    assert "structuredContent" not in table
    assert "characters cut" in call_text(ToolCall("s", "t", {}, table))


def test_half_a_character_in_an_argument_or_a_result_stops_nobody():
    async def use(box):
        sent = await box.call("echo", {"text": "caf\ud83d"})
        return sent, box.text(sent), await box.call("half", {})

    sent, told, half = with_tools({"bad": bad()}, use)
    assert sent.arguments == {"text": "caf\ud83d"}
    assert json.loads(told) == {"text": "caf\ufffd"}
    assert half.result["content"][0]["text"] == "half \ud83d"


def test_arguments_that_are_not_json_never_reach_the_server():
    async def use(box):
        return [(await box.call("echo", given)).error for given in ({"x": {1}}, {"x": float("nan")}, "text", [1])]

    errors = with_tools({"bad": bad()}, use)
    assert errors[0].startswith("The arguments are not JSON: ")
    assert errors[1].startswith("The arguments are not JSON: ")
    assert errors[2] == "The arguments should be a JSON object, not str."
    assert errors[3] == "The arguments should be a JSON object, not list."


def test_content_of_a_kind_that_nobody_knows_is_kept_as_it_came():
    async def use(box):
        strange, nothing = await box.call("strange", {}), await box.call("nothing", {})
        return strange.result, box.text(strange), nothing.result, box.text(nothing)

    kept, told, empty, silence = with_tools({"bad": bad()}, use)
    assert kept == {"content": [{"type": "hologram", "colour": "green"}]}
    assert json.loads(told)["colour"] == "green"
    assert (empty, silence) == ({}, "[no content]")


# Check


def test_check_says_of_each_server_what_works_and_what_does_not():
    source = {
        "good": bad(),
        "mute": bad("silent", call_timeout=0.3),
        "broken": bad("die", env={"TOKEN": "sk-1234"}),
        "keyless": bad(env={"K": "{{NO_SUCH_KEY}}"}),
        "absent": {"command": "no-such-command-x"},
        "toy": toy_server,
    }
    rows = {row["name"]: row for row in check_servers(source, env={})}
    assert list(rows) == list(source)
    assert [name for name, row in rows.items() if row["ok"]] == ["good", "toy"]
    good = rows["good"]
    assert (good["transport"], good["error"], good["protocol"]) == ("stdio", None, "2025-06-18")
    assert good["tools"][0] == "add"
    assert good["connect_seconds"] > 0 and good["ping_seconds"] > 0
    assert rows["mute"]["tools"][0] == "add"
    assert "did not answer within 0.3 s" in rows["mute"]["error"]
    assert "exit code 1" in rows["broken"]["error"] and "no city database" in rows["broken"]["error"]
    assert "NO_SUCH_KEY" in rows["keyless"]["error"]
    assert "no-such-command-x" in rows["absent"]["error"]
    assert "sk-1234" not in json.dumps(rows)


# Parts


def read_lines(chunks, limit):
    async def main():
        stream = asyncio.StreamReader()
        for chunk in chunks:
            stream.feed_data(chunk)
        stream.feed_eof()
        return [line async for line in lines(stream, limit)]

    return asyncio.run(main())


def test_lines_are_put_together_however_they_arrive():
    text = b"one\n\ntwo two\n" + b"3" * 50 + b"\nlast"
    expected = [b"one", b"", b"two two", b"3" * 50, b"last"]
    assert read_lines([text], 100) == expected
    assert read_lines([text[i : i + 1] for i in range(len(text))], 100) == expected
    assert read_lines([], 100) == []


def test_of_a_line_beyond_the_limit_only_the_ends_are_kept():
    long = b"a" * 600 + b"x" * 5000 + b"z" * 600
    first, second = read_lines([long, b"\nshort\n"], 2000)
    assert first == LongLine(b"a" * 512, b"z" * 512, 6200)
    assert second == b"short"


def test_the_log_of_stderr_keeps_the_end_and_not_the_flood():
    log = StderrLog()
    for i in range(5000):
        os.write(log.handle, b"%04d " % i + b"x" * 1000 + b"\n")
    log.trim()
    assert os.fstat(log.handle).st_size <= StderrLog.KEEP
    os.write(log.handle, b"after\n")
    assert log.tail().startswith("[...] ")
    assert log.tail().endswith("x\nafter")
    told = log.tail()
    log.close()
    log.close()
    assert log.tail() == told


def test_the_toy_server_leaves_logging_as_it_was():
    root = logging.getLogger()
    before = root.level, list(root.handlers)
    toy_server()
    assert (root.level, list(root.handlers)) == before


def test_a_server_shows_no_secret():
    url = {"url": "https://me:password@example.org/mcp?key=query", "headers": {"Authorization": "Bearer token"}}
    given = {"a": {"command": "ls", "args": ["{{WORD}}"], "env": {"TOKEN": "of the environment"}}, "b": url}
    assert [repr(server.resolve({"WORD": "of a variable"})) for server in read_servers(given).values()] == [
        "Server('a', 'stdio', 'ls {{WORD}}')",
        "Server('b', 'http', 'https://example.org/mcp')",
    ]


def test_the_public_names_of_servers():
    assert servers.__all__ == [
        *("Connection", "Permission", "Permissions", "Server", "SharedServers", "Toolbox", "blob", "catalogue"),
        *("check_servers", "list_servers", "open_toolbox", "permitted", "read_permissions", "read_servers"),
    ]


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({3: {"command": "ls"}}, "server 3: its name should be a text"),
        ({"a": {"command": "ls", "cwd": 3}}, "cwd=3 should be a text"),
        ({"a": {"command": "ls", "args": [None]}}, r"args=\[None\] should be a list of texts"),
        ({"a": {"url": "example.org/mcp"}}, r"url='example.org/mcp' should begin with http\(s\)://"),
    ],
)
def test_an_entry_that_could_never_start_is_refused_before_anything_does(entries, said):
    with pytest.raises(InputError, match=said):
        for server in read_servers(entries).values():
            server.check()
