"""Working folders: each run has a fresh copy of its task's seed, and what it changed there is in its row."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

import pytest

from mcpeval import Agent, read_tasks, run
from mcpeval.errors import InputError
from mcpeval.preparing import folders, prepare_func
from mcpeval.testing import ScriptedModel
from mcpeval.types import Task

#: A server that writes and lists files of the folder that its first argument names.
FILES = """
import os, sys
from mcp.server import MCPServer
server = MCPServer("files", log_level="CRITICAL")

@server.tool()
def where() -> list[str]:
    return [sys.argv[1], os.environ["PLACE"], os.getcwd()]

@server.tool()
def write(name: str, text: str) -> str:
    with open(os.path.join(sys.argv[1], name), "w") as file:
        file.write(text)
    return "written"

@server.tool()
def list_files() -> str:
    return " ".join(sorted(os.listdir(sys.argv[1])))

server.run("stdio")
"""
SERVERS = {
    "files": {
        "command": sys.executable,
        "args": ["-c", FILES, "{{WORKDIR}}/docs"],
        "env": {"PLACE": "{{ WORKDIR }}"},
        "cwd": "{{WORKDIR}}/docs",
    }
}


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    """The temporary folder of this test alone."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


@pytest.fixture
def seed(tmp_path):
    folder = tmp_path / "seed"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "a.txt").write_text("first")
    (folder / "docs" / "b.txt").write_text("second")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("docs/a.txt")
    return folder


def task(seed, question="What is in {{WORKDIR}}?", **more):
    return Task("t", question, workdir=str(seed), **more)


def in_folder(work):
    """An agent that does `work` in its working folder."""

    def agent(task, session):
        return work(Path(session.workdir))

    return agent


# --- the copy -----------------------------------------------------------------------------------


def test_each_run_has_a_copy_of_its_own_which_is_removed_afterwards(seed, places):
    seen = []

    def work(folder):
        seen.append(folder)
        assert sorted(os.listdir(folder)) == ["docs", "link", "run.sh"]
        assert (os.readlink(folder / "link"), os.access(folder / "run.sh", os.X_OK)) == ("docs/a.txt", True)
        (folder / "docs" / "a.txt").write_text("changed")
        shutil.rmtree(folder / "docs")
        return "done"

    runs = run([task(seed)], {"a": in_folder(work), "b": in_folder(work)}, trials=2, cache=False, concurrency=4)
    assert runs["status"].tolist() == ["ok"] * 4
    assert len(set(seen)) == 4 and os.listdir(places) == []
    assert (seed / "docs" / "a.txt").read_text() == "first"


def test_the_variable_names_it_in_the_question_and_in_servers_and_prepares(seed):
    prepare_func("mark", remote=False)(lambda workdir, at: Path(at, "mark").write_text(str(workdir)))
    given = task(seed, prepares=[{"prepare_func": "mark", "prepare_args": {"at": "{{WORKDIR}}/docs"}}])

    async def agent(task, session):
        said = (await session.call_tool("where")).result["structuredContent"]["result"]
        names = session.show(await session.call_tool("list_files"))
        return {"asked": task.question, "told": said, "names": names, "workdir": session.workdir}

    row = run(given, agent, servers=SERVERS, cache=False).iloc[0]
    output = json.loads(row["output"])
    place = output["workdir"]
    assert output["asked"] == f"What is in {place}?"
    assert output["told"] == [f"{place}/docs", place, f"{place}/docs"]
    assert output["names"] == "a.txt b.txt mark"
    assert row["question"] == "What is in {{WORKDIR}}?"
    about = json.dumps(row["metadata"]["servers"])
    assert "{{WORKDIR}}/docs" in about and place not in about


def test_a_run_without_a_seed_whose_servers_name_it_has_an_empty_one():
    servers = {"files": {**SERVERS["files"], "args": ["-c", FILES, "{{WORKDIR}}"], "cwd": None}}

    async def agent(task, session):
        return session.show(await session.call_tool("list_files"))

    row = run("What is there?", agent, servers=servers, cache=False).iloc[0]
    assert (row["status"], row["output"]) == ("ok", "[no content]")


def test_a_seed_of_a_task_file_is_found_beside_it(seed, tmp_path):
    (tmp_path / "task.json").write_text(json.dumps({"question": "Well?", "workdir": "seed"}))
    [found] = read_tasks(tmp_path / "task.json")
    assert Path(found.workdir) == seed
    assert (
        run(found, in_folder(lambda folder: (folder / "docs/b.txt").read_text()), cache=False)["output"][0] == "second"
    )


def test_folders_are_kept_where_that_is_asked_for(seed, tmp_path, places):
    agent = in_folder(lambda folder: (folder / "new.txt").write_text("new") and "done")
    for _ in range(2):
        row = run(task(seed), agent, cache=False, keep_workdirs=tmp_path / "kept").iloc[0]
    assert os.listdir(tmp_path / "kept") == [row["run_id"]]
    assert (tmp_path / "kept" / row["run_id"] / "new.txt").read_text() == "new"
    assert os.listdir(places) == []


def test_the_folder_of_a_run_that_failed_is_removed_whatever_its_permissions(seed, places):
    def work(folder):
        (folder / "docs").chmod(0o500)
        raise ValueError("no")

    assert run(task(seed), in_folder(work), cache=False)["error"][0] == "ValueError: no"
    assert os.listdir(places) == []


def test_a_place_that_is_in_use_is_left_alone_and_one_that_was_left_behind_is_cleared(seed, places):
    where = []
    agent = in_folder(lambda folder: where.append(folder) or " ".join(sorted(os.listdir(folder))))
    run(task(seed), agent, cache=False)
    home = where[0].parent
    (home / "work" / "old").mkdir(parents=True)  # as after a crash
    assert run(task(seed), agent, cache=False)["output"][0] == "docs link run.sh"
    assert where[1] == where[0]
    home.mkdir()
    with (home / "lock").open("w") as lock:  # as another process holds it
        fcntl.flock(lock, fcntl.LOCK_EX)
        run(task(seed), agent, cache=False)
    assert where[2] == home.with_name(f"{home.name}-1") / "work"
    shutil.rmtree(home)
    (places / "elsewhere").mkdir()
    home.symlink_to(places / "elsewhere")  # as somebody may have laid it
    run(task(seed), agent, cache=False)
    assert where[3] == where[2] and os.listdir(places / "elsewhere") == []


# --- the key ------------------------------------------------------------------------------------


def test_the_content_of_the_seed_is_in_the_key_and_neither_its_path_nor_the_copys(seed, tmp_path, cache, monkeypatch):
    script = [[("write", {"name": "c.txt", "text": "third"})], "done"]
    with ScriptedModel(lambda body: script[sum(m["role"] == "assistant" for m in body["messages"])]) as model:
        agent = Agent(model.model, "tools", **model.params)
        first = run(task(seed), agent, servers=SERVERS, cache=cache).iloc[0]
        assert (first["status"], first["n_tool_calls"]) == ("ok", 1)
        shutil.copytree(seed, tmp_path / "moved", symlinks=True)
        (tmp_path / "other temporary").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "other temporary"))
        moved = run(task(tmp_path / "moved"), agent, servers=SERVERS, cache=cache).iloc[0]
        assert (first["cached"], moved["cached"], len(model.requests)) == (False, True, 2)
        assert moved["metadata"]["workdir"] == first["metadata"]["workdir"]
        (tmp_path / "moved" / "docs" / "a.txt").write_text("1st")
        changed = run(task(tmp_path / "moved"), agent, servers=SERVERS, cache=cache).iloc[0]
    assert not changed["cached"] and len(model.requests) == 4


def test_a_run_that_is_made_again_asks_its_models_the_same(seed, cache):
    """So what was paid for before a crash is found in the cache."""
    with ScriptedModel(["done"]) as model:

        async def agent(task, session):
            answer = await session.complete(
                [{"role": "user", "content": task.question}], model=model.model, **model.params
            )
            return answer.message["content"]

        for _ in range(2):
            run(task(seed), {"a": agent}, cache=cache)
    assert len(model.requests) == 1 and "mcpeval-" in model.requests[0]["messages"][0]["content"]


# --- what has changed ---------------------------------------------------------------------------


def test_the_row_lists_what_has_changed_before_the_clean_ups(seed):
    def work(folder):
        (folder / "docs" / "a.txt").write_text("1st")
        (folder / "docs" / "b.txt").unlink()
        (folder / "new").mkdir()
        (folder / "new" / "c.txt").write_text("dritte – ß")
        (folder / "bytes").write_bytes(b"\xff\xfe")
        (folder / "link").unlink()
        (folder / "link").symlink_to("run.sh")
        (folder / "run.sh").chmod(0o644)
        return "done"

    found = run(task(seed), in_folder(work), cache=False)["metadata"][0]["workdir"]
    files = found["files"]
    assert list(files) == ["bytes", "docs/a.txt", "docs/b.txt", "link", "new", "new/c.txt", "run.sh"]
    assert files["docs/a.txt"] == {
        "change": "modified", "size": 3, "sha256": sha256(b"1st").hexdigest(), "text": "1st",
    }  # fmt: skip
    assert files["docs/b.txt"] == {"change": "removed"}
    assert files["new/c.txt"] == {
        "change": "added", "size": 13, "sha256": sha256("dritte – ß".encode()).hexdigest(), "text": "dritte – ß",
    }  # fmt: skip
    assert (files["bytes"]["size"], files["bytes"]["text"]) == (2, None)
    assert files["link"]["what"] == "-> run.sh" and files["new"]["what"] == "/"
    assert files["run.sh"]["change"] == "modified"
    assert found["unlisted"] == 0


def test_long_texts_and_many_files_are_told_without_their_content(seed, monkeypatch):
    monkeypatch.setattr(folders, "LISTED", 3)
    monkeypatch.setattr(folders, "TEXT", 10)
    monkeypatch.setattr(folders, "TEXTS", 12)

    def work(folder):
        for name, text in (("1", "x" * 11), ("2", "x" * 8), ("3", "x" * 8), ("4", "x"), ("5", "x")):
            (folder / name).write_text(text)
        return "done"

    found = run(task(seed), in_folder(work), cache=False)["metadata"][0]["workdir"]
    assert {name: about["text"] for name, about in found["files"].items()} == {"1": None, "2": "x" * 8, "3": None}
    assert found["unlisted"] == 2


def test_an_evaluator_can_look_at_the_files(seed):
    from mcpeval import score

    def wrote(metadata):
        return metadata["workdir"]["files"]["report.md"]["text"] == "# Report"

    agent = in_folder(lambda folder: (folder / "report.md").write_text("# Report") and "done")
    runs = run(task(seed), agent, cache=False)
    assert score(runs, [wrote], cache=False)["score"].tolist() == [1.0]


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda seed: seed.rename(seed.with_name("sede")), "is no folder. Did you mean 'sede'?"),
        (lambda seed: (seed / "out").symlink_to("/etc"), "out: it is a link to /etc, which leads out of the folder"),
        (lambda seed: (seed / "up").symlink_to("../x"), "up: it is a link to ../x, which leads out of the folder"),
        (lambda seed: os.mkfifo(seed / "pipe"), "pipe: it is neither a file nor a folder nor a link"),
    ],
)
def test_a_seed_that_cannot_be_copied_is_refused_before_the_start(seed, spoil, said):
    spoil(seed)
    started = []
    with pytest.raises(InputError, match="task 't': workdir=.*" + re.escape(said)):
        run([Task("good", "Fine?"), task(seed)], lambda task, session: started.append(1), cache=False)
    assert started == []


def test_a_path_that_is_too_long_is_one_that_is_not_there():
    with pytest.raises(InputError, match="is no folder"):
        run([{"question": "Is it there?", "workdir": "/" + "x" * 5000}], Agent("openai/gpt-4.1-mini"))


def test_a_huge_seed_is_refused(seed, monkeypatch):
    monkeypatch.setattr(folders, "MAX_FILES", 3)
    with pytest.raises(InputError, match=r"holds more than 3 files or 2048 MiB .*every run gets a copy"):
        run(task(seed), in_folder(lambda folder: "done"), cache=False)


def test_a_shared_server_cannot_have_the_folder_of_one_run(seed):
    servers = {"files": {**SERVERS["files"], "share": True}}
    with pytest.raises(InputError, match="server 'files' has share, and a folder of each run: {{WORKDIR}}"):
        run(task(seed), lambda task, session: "x", servers=servers, cache=False)


def test_a_server_that_wants_what_the_seed_does_not_have_is_refused(seed):
    servers = {"files": {**SERVERS["files"], "cwd": "{{WORKDIR}}/dosc"}}
    with pytest.raises(InputError, match=r"the folder cwd='{{WORKDIR}}/dosc' does not exist"):
        run(task(seed), lambda task, session: "x", servers=servers, cache=False)


def test_a_workdir_is_the_path_of_a_folder():
    with pytest.raises(InputError, match="workdir=7 should be the path of a folder"):
        Task("t", "Well?", workdir=7)
    with pytest.raises(InputError, match="unknown key 'work_dir' in a task. Did you mean 'workdir'?"):
        read_tasks([{"question": "Well?", "work_dir": "x"}])


def test_a_folder_that_cannot_be_kept_takes_nothing_from_the_run(seed, tmp_path, places):
    def in_the_way(folder):
        (tmp_path / "file").write_text("no folder")
        return "done"

    row = run(task(seed), in_folder(in_the_way), cache=False, keep_workdirs=tmp_path / "file").iloc[0]
    assert (row["status"], row["output"]) == ("ok", "done")
    assert "file" in row["metadata"]["workdir"]["not_kept"]
    assert os.listdir(places) == []


def test_a_folder_that_cannot_be_made_is_an_error_of_the_run(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    row = run(task(seed), in_folder(lambda folder: "done"), cache=False).iloc[0]
    assert (row["status"], row["error_class"]) == ("error", "harness")
    assert "no working folder can be made in" in row["error"]
