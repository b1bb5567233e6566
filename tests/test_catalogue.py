"""The catalogue of published servers, what can be said of a command without starting it, and what a row says of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mcpeval
from mcpeval.cli import main
from mcpeval.errors import InputError
from mcpeval.running import run
from mcpeval.servers import catalogue, list_servers, read_servers
from mcpeval.servers.origins import Package, package_of
from tests.bad_server import bad

KEYS = {
    "google-search": ["GOOGLE_API_KEY", "GOOGLE_SEARCH_ENGINE_ID"],
    "serper": ["SERPER_API_KEY"],
    "google-maps": ["GOOGLE_MAPS_API_KEY"],
    "google-sheets": ["GOOGLE_DRIVE_FOLDER_ID", "GOOGLE_SERVICE_ACCOUNT_PATH"],
    "github": ["GITHUB_PERSONAL_ACCESS_TOKEN"],
    "gitlab": ["GITLAB_PERSONAL_ACCESS_TOKEN"],
    "slack": ["SLACK_BOT_TOKEN", "SLACK_TEAM_ID"],
    "notion": ["NOTION_API_KEY"],
    "postgres": ["POSTGRES_ADDRESS"],
}
KEYLESS = ["time", "git", "fetch", "filesystem", "memory", "sequential-thinking", "everything", "sqlite", "calculator"]
KEYLESS += ["wikipedia", "weather", "yahoo-finance", "playwright", "blender"]


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """A PATH with programs of these names and no other, and empty caches of uv and npm."""

    def make(*names):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        for name in names:
            (folder / name).write_text("#!/bin/sh\nexit 1\n")
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))
        monkeypatch.setattr(sys, "executable", str(folder / "python"))
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
        monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
        for names in KEYS.values():
            for name in names:
                monkeypatch.delenv(name, raising=False)
        return tmp_path

    return make


# --- the catalogue ------------------------------------------------------------------------------


def test_the_catalogue_has_the_servers_of_the_field_each_at_one_version():
    servers = catalogue()
    assert sorted(servers) == sorted([*KEYLESS, *KEYS])
    for name, server in servers.items():
        assert server.command in ("uvx", "npx"), name
        assert re.fullmatch(r"\d+(\.\d+)+", server.package.version), name
        assert server.description, name
        assert [variable for variable in server.needs if variable != "WORKDIR"] == KEYS.get(name, []), name


def test_a_server_of_the_catalogue_is_shared_only_where_it_has_no_folder_of_its_run():
    for server in catalogue().values():
        assert not (server.share and "WORKDIR" in server.needs)
    assert {"time", "calculator", "fetch"} <= {server.name for server in catalogue().values() if server.share}
    assert not {"memory", "filesystem", "sqlite", "git", "sequential-thinking"} & {
        server.name for server in catalogue().values() if server.share
    }


def test_servers_are_picked_by_name_and_may_stand_under_another_beside_ones_own():
    assert list(read_servers(["git", "time"])) == ["git", "time"]
    servers = read_servers({"clock": mcpeval.servers.catalogue()["time"], "own": bad()})
    assert (servers["clock"].name, servers["clock"].package.name) == ("clock", "mcp-server-time")
    with pytest.raises(InputError, match="'tiem' is not in the catalogue. Did you mean 'time'"):
        read_servers(["tiem"])


def test_a_key_that_is_not_set_is_named_with_its_server_before_anything_starts(monkeypatch, commands):
    commands("uvx")
    started = []
    monkeypatch.delenv("SERPER_API_KEY", raising=False)
    monkeypatch.setattr("mcpeval.servers.connection.ServerProcess", lambda *given: started.append(given))
    with pytest.raises(InputError, match="'serper'.*SERPER_API_KEY"):
        run("what now?", lambda task, session: "x", servers=["time", "serper"], cache=False)
    assert started == []


def test_a_launcher_that_is_not_there_is_named_with_where_it_comes_from(commands):
    commands()
    with pytest.raises(InputError, match="'time': there is no command 'uvx' .* it comes with uv"):
        catalogue()["time"].check()


def test_the_folder_of_the_running_python_is_searched_after_path(commands):
    folder = commands("uvx", "npx")
    os.environ["PATH"] = os.defpath  # the fixture's monkeypatch puts the old one back
    server = read_servers({"a": {"command": "uvx", "args": ["x"]}})["a"].check()
    assert server.executable == str(folder / "bin" / "uvx")
    assert server.env["PATH"].endswith(f"{os.pathsep}{folder / 'bin'}")


# --- what can start here ------------------------------------------------------------------------


def test_a_list_says_of_each_server_what_it_lacks(commands):
    commands("uvx")
    rows = {row["name"]: row for row in list_servers(env={"SERPER_API_KEY": "k"})}
    assert (rows["time"]["ready"], rows["time"]["lacks"], rows["time"]["fetched"]) == (True, [], False)
    assert rows["serper"]["ready"]
    assert rows["filesystem"]["lacks"] == ["command npx of Node.js"]
    assert rows["slack"]["lacks"] == [
        "variable SLACK_BOT_TOKEN",
        "variable SLACK_TEAM_ID",
        "command npx of Node.js",
    ]
    assert (rows["time"]["package"], rows["time"]["package_version"]) == ("mcp-server-time", "2026.10.19")


def test_a_package_that_was_fetched_before_is_known_by_the_folders_of_the_launchers(commands):
    folder = commands("uvx", "npx")
    (folder / "uv/wheels-v5/pypi/mcp-server-time/2026.10.19-py3-none-any").mkdir(parents=True)
    (folder / "uv/wheels-v5/index/abc/mcp-server-git/2025.1.1-py3-none-any").mkdir(parents=True)
    kept = folder / "npm/_npx/abc/node_modules/@modelcontextprotocol/server-memory/package.json"
    kept.parent.mkdir(parents=True)
    kept.write_text(json.dumps({"name": "@modelcontextprotocol/server-memory", "version": "2026.8.31"}))
    fetched = {row["name"]: row["fetched"] for row in list_servers(["time", "git", "memory", "filesystem"])}
    assert fetched == {"time": True, "git": False, "memory": True, "filesystem": False}


def test_a_python_that_lacks_the_module_of_a_server_is_said(tmp_path):
    entry = {"command": sys.executable, "args": ["-m", "no_such_module_x"]}
    rows = list_servers(
        {"lacks": entry, "has": {**entry, "args": ["-m", "mcp_server_time"]}, "url": {"url": "http://x"}}
    )
    assert [row["lacks"] for row in rows] == [["package no_such_module_x"], [], []]
    here = tmp_path / "no_such_module_x.py"
    here.write_text("")
    assert list_servers({"a": {**entry, "cwd": str(tmp_path)}})[0]["ready"]


def test_the_command_lists_in_columns_and_starts_and_asks_nothing(commands, capsys, tmp_path):
    commands("uvx")
    assert main(["servers", "list", "time,slack"]) == 0
    head, time_row, slack_row, *lacks, last = capsys.readouterr().out.splitlines()
    assert head.split() == ["SERVER", "STARTS", "HERE", "PACKAGE", "WHAT"]
    assert (
        time_row.index("mcp-server-time 2026.10.19")
        == slack_row.index("@modelcontextprotocol")
        == head.index("PACKAGE")
    )
    assert "yes, fetched first" in time_row and slack_row.split()[1] == "no"
    assert [line.strip() for line in lacks][0] == "lacks variable SLACK_BOT_TOKEN"
    assert last == "1 of 2 servers can start here"
    (tmp_path / "own.json").write_text(json.dumps({"own": bad()}))
    assert main(["servers", "list", str(tmp_path / "own.json")]) == 0
    assert main(["servers", "list", str(tmp_path / "nowhere.json")]) == 2


def test_a_folder_of_the_name_of_a_server_is_no_file_of_servers(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "git").mkdir()
    (tmp_path / "mine").write_text(json.dumps({"a": {"command": "{{NO_SUCH_VARIABLE}}"}}))
    assert main(["servers", "list", "git,time"]) == main(["servers", "list", "git"]) == 0
    assert "Git repositories" in capsys.readouterr().out
    assert main(["servers", "list", "mine"]) == 0
    out = capsys.readouterr().out
    assert "lacks variable NO_SUCH_VARIABLE" in out and "lacks command" not in out


def test_nothing_is_started_and_no_network_is_asked_to_list():
    code = (
        "import sys\n"
        "def hook(event, given):\n"
        "    if event in ('subprocess.Popen', 'os.posix_spawn', 'os.fork', 'socket.connect', 'socket.getaddrinfo'):\n"
        "        sys.exit(f'{event} {given}')\n"
        "sys.addaudithook(hook)\n"
        "from mcpeval.cli import main\n"
        "main(['servers', 'list'])\n"
        "sys.exit(str([name for name in ('mcp', 'litellm', 'pandas') if name in sys.modules]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip() == "[]"
    assert "servers can start here" in done.stdout


# --- packages -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "args", "package"),
    [
        ("uvx", ["mcp-server-time==2026.10.19", "--local-timezone", "x"], ("mcp-server-time", "2026.10.19")),
        ("uvx", ["mcp-server-time@1.2.3"], ("mcp-server-time", "1.2.3")),
        ("uvx", ["mcp-server-time"], ("mcp-server-time", None)),
        ("uvx", ["mcp-server-time@latest"], ("mcp-server-time", None)),
        ("uvx", ["mcp-server-time>=1"], ("mcp-server-time", None)),
        ("uvx", ["--with", "mcp<2", "--from", "a-b[cli]==0.6", "a_b"], ("a-b", "0.6")),
        ("uvx", ["--from=a-b==0.6", "a_b"], ("a-b", "0.6")),
        ("uvx", ["--quiet", "--python", "3.12", "pkg==1.0rc1"], ("pkg", "1.0rc1")),
        ("/usr/bin/uvx", ["pkg==1"], ("pkg", "1")),
        ("uvx", [], None),
        ("npx", ["-y", "@scope/server@0.6.2", "{{X}}"], ("@scope/server", "0.6.2")),
        ("npx", ["-y", "@scope/server"], ("@scope/server", None)),
        ("npx", ["-y", "server@latest"], ("server", None)),
        ("npx", ["-y", "-p", "@scope/a@1.0.0", "b"], ("@scope/a", "1.0.0")),
        ("npx", ["--package=a@1.0.0", "b"], ("a", "1.0.0")),
    ],
)
def test_the_package_of_a_launcher_is_the_one_it_is_told_to_start(command, args, package):
    assert package_of(command, args, None) == (package and Package(*package))


def test_the_package_of_an_installed_server_is_the_one_it_belongs_to(node_bin, venv_bin):
    lock = json.loads((Path(__file__).parents[1] / "data/node/package.json").read_text())["dependencies"]
    name = "@modelcontextprotocol/server-memory"
    entries = {
        "npm": {"command": str(node_bin / "mcp-server-memory")},
        "script": {"command": str(venv_bin / "mcp-server-time")},
        "module": {"command": str(venv_bin / "python"), "args": ["-m", "mcp_server_time"]},
        "own": bad(),
        "url": {"url": "http://x/mcp"},
    }
    found = {name: server.package for name, server in read_servers(entries).items()}
    assert found["npm"] == Package(name, lock[name])
    assert found["script"] == found["module"] == Package("mcp-server-time", "2026.10.19")
    assert found["own"] is found["url"] is None


def test_a_row_and_the_manifest_say_which_package_answered_by_which_command(venv_bin, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mcp-server-time").symlink_to(venv_bin / "mcp-server-time")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    entry = {"command": "mcp-server-time", "args": ["--local-timezone", "{{ZONE}}"]}
    servers = {"clock": entry, "other": {"command": str(venv_bin / "mcp-server-time")}}
    offers = ({"name": "clock"}, {"name": "other", "tools": ["convert_time"]})
    tasks = [{"question": "what now?", "mcp_servers": [offer]} for offer in offers]
    frame = run(tasks, lambda task, session: "x", servers=read_servers(servers, {"ZONE": "Etc/UTC"}), cache=False)
    [clock], [other] = (row["servers"] for row in frame["metadata"])
    assert clock["resolved"] == "~/bin/mcp-server-time --local-timezone {{ZONE}}"
    assert (other["package"], other["package_version"]) == ("mcp-server-time", "2026.10.19")
    assert other["server_info"]["version"] == "2026.10.19"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", clock["protocol"])
    assert clock["tools_sha256"] == other["tools_sha256"]
    assert clock["shown_sha256"] != other["shown_sha256"]  # the second shows one of two tools
    listed = mcpeval.manifest(frame)["servers"]
    assert [server["resolved"] for server in listed] == [clock["resolved"], other["resolved"]]
    assert listed[1]["package_version"] == "2026.10.19"
    assert str(tmp_path) not in json.dumps(listed)


# --- older SDKs ---------------------------------------------------------------------------------


def test_a_server_that_needs_an_older_sdk_works_beside_one_that_needs_the_newer(venv_bin, monkeypatch):
    monkeypatch.setenv("UV_OFFLINE", "1")  # a test downloads nothing
    [row] = list_servers(["calculator"])
    if not row["ready"] or not row["fetched"]:
        pytest.skip("uvx has not fetched mcp-server-calculator: `mcpeval servers check calculator` does")

    async def both(task, session):
        sum_ = await session.call_tool("calculate", {"expression": "6*7"})
        now = await session.call_tool("get_current_time", {"timezone": "Etc/UTC"})
        return [sum_.is_error, session.show(sum_), now.is_error]

    servers = {"calculator": catalogue()["calculator"], "time": {"command": str(venv_bin / "mcp-server-time")}}
    frame = run("what now?", both, servers=servers, cache=False)
    assert json.loads(frame["output"][0]) == [False, "42", False]
    old, _ = frame["metadata"][0]["servers"]
    assert old["server_info"]["version"].startswith("1.")  # this server tells the version of its SDK
    assert (old["package"], old["package_version"]) == ("mcp-server-calculator", "0.2.1")
