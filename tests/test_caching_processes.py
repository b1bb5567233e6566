"""Processes, threads, forks, kills, full disks and folders that cannot be written."""

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import warnings
from contextlib import contextmanager
from pathlib import Path

import diskcache
import pandas as pd
import pytest

from mcpeval.caching import MISSING, Cache, open_cache
from mcpeval.errors import CacheError
from mcpeval.evaluators import Judge
from mcpeval.scoring import score

unix = pytest.mark.skipif(os.name != "posix", reason="needs fork and signals")

WORKER = """
import sys
from mcpeval.caching import Cache
print("ready", flush=True)
sys.stdin.readline()
with Cache(sys.argv[1]) as cache:
    for number in range(20):
        cache.set(f"value:{sys.argv[2]}-{number}", sys.argv[2])
        cache.set("value:common", "same")
"""


def start(code: str, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_eight_processes_may_open_a_new_folder_at_the_same_moment(tmp_path):
    workers = [start(WORKER, str(tmp_path / "new" / "cache"), str(number)) for number in range(8)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    assert [worker.communicate(timeout=120) for worker in workers] == [("", "")] * 8
    with Cache(tmp_path / "new" / "cache") as cache:
        assert len(cache) == 8 * 20 + 1
        assert {cache.get(f"value:{who}-{n}") for who in range(8) for n in range(20)} == {str(n) for n in range(8)}


def test_an_opening_waits_for_a_lock_where_diskcache_gives_up(tmp_path, monkeypatch):
    diskcache.Cache(str(tmp_path), tag_index=1).close()  # it leaves an index behind that an opening drops, unretried
    other = sqlite3.connect(tmp_path / "cache.db", isolation_level=None, check_same_thread=False)
    release = threading.Timer(0.2, lambda: other.execute("COMMIT"))
    drop, told = diskcache.Cache.drop_tag_index, []

    def locked_at_this_moment(store):
        if not told:
            other.execute("BEGIN IMMEDIATE")
            release.start()
        try:
            drop(store)
        except sqlite3.OperationalError as error:
            told.append(str(error))
            raise

    monkeypatch.setattr(diskcache.Cache, "drop_tag_index", locked_at_this_moment)
    with Cache(tmp_path) as cache:
        cache.set("value:x", 1)
    release.join()
    other.close()
    assert set(told) == {"database is locked"}


def test_a_transaction_that_was_left_open_fails_one_write_and_not_the_next(cache):
    cache._store._con.execute("BEGIN IMMEDIATE")  # as an interrupt at the wrong moment leaves it
    with pytest.raises(CacheError, match="cannot start a transaction within a transaction"):
        cache.set("value:x", 1)
    cache.set("value:x", 2)
    assert cache.get("value:x") == 2


@unix
def test_a_kill_loses_no_write_that_was_acknowledged(tmp_path):
    code = (
        "import sys; from mcpeval.caching import Cache; cache = Cache(sys.argv[1]); number = 0\n"
        "while True:\n"
        "    cache.set(f'value:{number}', [number, 'x' * (100_000 if number % 10 == 0 else 10)])\n"
        "    print(number, flush=True); number += 1\n"
    )
    acknowledged = -1
    for _ in range(3):
        writer = start(code, str(tmp_path))
        for _ in range(200):
            last = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        rest = writer.communicate(timeout=60)[0].split()
        acknowledged = max(acknowledged, int(rest[-1]) if rest else last)
        with Cache(tmp_path) as cache:
            for number in range(acknowledged + 1):
                assert cache.get(f"value:{number}")[0] == number
            assert diskcache.Cache(str(tmp_path)).check() == []


def test_a_cache_is_shared_by_threads(cache):
    def work(who: int) -> None:
        for number in range(25):
            cache.set(f"value:{who}-{number}", who)
            assert cache.get(f"value:{who}-{number}") == who

    threads = [threading.Thread(target=work, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache) == 200


@contextmanager
def unprivileged():
    """In a forked child: what runs as somebody whom file modes hold back (they do not hold back root)."""
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    yield


def in_child(function, privileged=True):
    """What `function` gives in a forked child, through JSON."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            if not privileged:
                with unprivileged():
                    answer = function()
            else:
                answer = function()
            os.write(write, json.dumps(answer).encode())
        except BaseException as error:
            os.write(write, json.dumps(f"{type(error).__name__}: {error}").encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read) as pipe:
        answer = json.loads(pipe.read())
    os.waitpid(child, 0)
    return answer


@unix
@pytest.mark.parametrize("replay", [False, True])
def test_a_cache_works_after_a_fork_in_parent_and_child(cache, replay):
    cache.set("value:parent", 1)
    view = open_cache(cache.path, replay=True) if replay else cache
    assert view.get("value:parent") == 1
    inherited = view._store._con

    def child():
        assert view._store._con is not inherited  # SQLite forbids carrying a connection across a fork
        if not replay:
            view.set("value:child", 2)
        return view.get("value:parent")

    assert in_child(child) == 1
    cache.set("value:later", 3)
    assert view.get("value:later") == 3
    assert view.get("value:child") == (MISSING if replay else 2)


def test_closing_leaves_one_file_that_holds_everything_although_another_thread_has_it_open(cache, tmp_path):
    wrote, end = threading.Event(), threading.Event()

    def work() -> None:
        cache.set("value:x", "from the thread")
        wrote.set()
        end.wait()

    thread = threading.Thread(target=work)
    thread.start()
    wrote.wait()
    cache.close()
    (tmp_path / "copy").mkdir()
    shutil.copy(cache.path / "cache.db", tmp_path / "copy")
    end.set()
    thread.join()
    assert Cache(tmp_path / "copy").get("value:x") == "from the thread"
    assert cache.get("value:x") == "from the thread"  # a closed cache opens again


@unix
def test_a_full_disk_is_a_clear_error_and_the_cache_works_again_when_there_is_room(tmp_path):
    import resource

    def child():
        cache = Cache(tmp_path)
        cache.set("value:before", 1)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
        try:
            cache.set("value:big", random.Random(0).randbytes(500_000).hex())
            said = "nothing"
        except CacheError as error:
            said = str(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        cache.set("value:after", 2)
        return [said, *cache]

    said, *keys = in_child(child)
    assert str(tmp_path) in said and "failed: " in said
    assert keys == ["value:before", "value:after"]


@unix
def test_an_answer_that_was_paid_for_is_given_though_the_disk_is_full(endpoint, tmp_path):
    import resource

    frame = pd.DataFrame({"question": "q", "output": [f"ROW-{i}" for i in range(4)]})
    judge = Judge(model="openai/good", scale=(1, 5), api_base=endpoint.base, api_key="sk-test")

    def child():
        cache = Cache(tmp_path)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        with warnings.catch_warnings(record=True) as caught:
            scores = score(frame, judge, cache=cache)
        warned = [str(w.message) for w in caught if "is not kept" in str(w.message)]
        return [scores["status"].tolist(), scores["error"].tolist(), warned]

    statuses, errors, warned = in_child(child)
    assert statuses == ["ok"] * 4, errors
    assert len(warned) == 1 and str(tmp_path) in warned[0]


@pytest.fixture
def locked_folder():
    """A folder nobody may write, with a cache in it, where an unprivileged child can reach it."""
    folder = Path(tempfile.mkdtemp())
    with Cache(folder) as cache:
        cache.set("value:x", "kept")
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@unix
def test_a_folder_that_cannot_be_written_is_refused_with_what_can_be_done(locked_folder):
    said = in_child(lambda: Cache(locked_folder).path, privileged=False)
    assert said.startswith(f"InputError: cache='{locked_folder}' cannot be written (") and "replay=True" in said
    said = in_child(lambda: Cache(locked_folder / "new").path, privileged=False)
    assert said.startswith(f"InputError: cache='{locked_folder}/new' cannot be written (Permission denied)")


@unix
def test_a_replay_works_from_a_folder_that_cannot_be_written(locked_folder):
    def child():
        with Cache(locked_folder, replay=True) as cache:
            cache.set("value:y", 1)
            return [cache.get("value:x"), *cache, len(cache), "value:y" in cache]

    assert in_child(child, privileged=False) == ["kept", "value:x", 1, False]


@unix
def test_a_replay_that_cannot_see_the_latest_writes_is_refused(locked_folder, tmp_path):
    locked_folder.chmod(0o755)
    (locked_folder / "cache.db").chmod(0o644)
    cache = Cache(locked_folder)
    cache.set("value:late", "in the log only")
    shutil.copytree(locked_folder, tmp_path / "copy")
    cache.close()
    for name in ("cache.db", "cache.db-wal"):
        shutil.copy(tmp_path / "copy" / name, locked_folder)
    locked_folder.chmod(0o555)
    said = in_child(lambda: Cache(locked_folder, replay=True).get("value:late"), privileged=False)
    assert said.startswith("InputError:") and "cache.db-wal" in said


@unix
def test_an_export_that_fails_leaves_the_earlier_file_and_nothing_beside_it(cache, tmp_path):
    import resource

    cache.set("value:x", "x" * 500_000)
    out = tmp_path / "out"
    out.mkdir()
    (out / "answers.jsonl").write_text("the earlier one")

    def child():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        return cache.export(out / "answers.jsonl")

    assert in_child(child) == f"FileError: {out}/answers.jsonl: cannot be written (File too large)"
    assert [(file.name, file.read_text()) for file in out.iterdir()] == [("answers.jsonl", "the earlier one")]


# -------------------------------------------------------------------------------------------- weight


def test_importing_and_using_the_cache_loads_nothing_heavy(tmp_path):
    code = (
        "import sys; from mcpeval.caching import Cache; Cache(sys.argv[1]).set('value:x', 1);"
        "print([m for m in ('asyncio', 'pandas', 'numpy', 'pydantic', 'litellm', 'mcp') if m in sys.modules])"
    )
    assert start(code, str(tmp_path)).communicate(timeout=60) == ("[]\n", "")
