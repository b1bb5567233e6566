"""What is kept stays, comes back as it was, and nothing a database says can hurt."""

import copy
import hashlib
import json
import math
import os
import random
from pathlib import Path

import diskcache
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpeval.caching import MISSING, Cache, canonical, content_key, open_cache
from mcpeval.errors import CacheError, CacheMiss, FileError, InputError

unix = pytest.mark.skipif(os.name != "posix", reason="needs fork and signals")

# ---------------------------------------------------------------------------------------------- keys


def test_a_key_does_not_depend_on_the_order_of_dicts():
    there = content_key("completion", model="m", params={"temperature": 0, "tools": [{"a": 1, "b": 2}]})
    back = content_key("completion", params={"tools": [{"b": 2, "a": 1}], "temperature": 0}, model="m")
    assert there == back


def test_a_key_is_the_sha256_of_a_text_that_never_changes():
    text = '{"kind":"completion","parts":{"model":"m","q":"\\u00e9","t":0},"schema":1}'
    expected = "completion:" + hashlib.sha256(text.encode()).hexdigest()
    assert content_key("completion", q="é", model="m", t=0.0) == expected


@pytest.mark.parametrize(
    "other", [{"model": "n"}, {"model": "m", "sample": 1}, {"model": ["m"]}, {"model": None}, {"model": "M"}]
)
def test_whatever_differs_gives_another_key(other):
    assert content_key("completion", **other) != content_key("completion", model="m")
    assert content_key("run", model="m") != content_key("completion", model="m")
    assert content_key("completion", kind="x", schema=2) != content_key("completion", kind="x", schema=3)


def test_numbers_of_a_key_are_written_as_rfc_8785_writes_them():
    # The numbers of its sample (section 3.2.2), and whole floats of its appendix B.
    assert canonical([333333333.33333329, 1e30, 4.50, 2e-3, 1e-27]) == "[333333333.3333333,1e+30,4.5,0.002,1e-27]"
    assert canonical([-0.0, 9007199254740991.0, 1.0, True]) == "[0,9007199254740991,1,true]"


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_key_of_what_equals_nothing_is_refused_with_its_place(number):
    with pytest.raises(CacheError, match=r"^\$\.params\.top_p: (nan|-?inf) has no place in a key$"):
        canonical({"params": {"top_p": number}})


# -------------------------------------------------------------------------------------------- values

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory):
    with Cache(tmp_path_factory.mktemp("shared")) as cache:
        yield cache


@settings(max_examples=150, deadline=None)
@given(value=JSON)
def test_every_json_value_comes_back_as_it_was(shared_cache, value):
    shared_cache.set("value:x", value)
    back = shared_cache.get("value:x")
    assert repr(back) == repr(value)  # repr tells 1 from 1.0, and holds nan equal to nan


@pytest.mark.parametrize(
    ("value", "back"),
    [
        ((1, (2, {"t": (3,)})), [1, [2, {"t": [3]}]]),
        (None, None),
        ("lone \ud83d surrogate", "lone \ud83d surrogate"),
        ({"\udc00": "\x00"}, {"\udc00": "\x00"}),
        ([math.inf, -math.inf, 1.0, 1], [math.inf, -math.inf, 1.0, 1]),
    ],
    ids=["tuples", "None", "surrogate", "surrogate key", "numbers"],
)
def test_tuples_become_lists_and_the_rest_survives(cache, value, back):
    cache.set("value:x", value)
    assert cache.get("value:x", "nothing") == back
    assert "value:x" in cache


def test_nan_survives(cache):
    cache.set("value:x", {"score": math.nan})
    assert math.isnan(cache.get("value:x")["score"])


def test_a_transcript_of_five_megabytes_survives_in_the_database_alone(cache):
    text = "".join(random.Random(0).choices('abc \n"\\é漢🙂', k=10_000))
    transcript = [{"role": "tool", "content": text + str(turn)} for turn in range(500)]
    assert len(json.dumps(transcript)) > 5e6
    cache.set("run:long", transcript)
    assert cache.get("run:long") == transcript
    assert {file.name.partition("-")[0] for file in cache.path.iterdir()} == {"cache.db"}


def looped():
    value = {}
    value["self"] = [value]
    return value


def deep():
    value = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"messages": [{}, {}, {}, {"content": {1, 2}}]}, r"^\$\.messages\[3\]\.content: set is not JSON$"),
        ([b"bytes"], r"^\$\[0\]: bytes is not JSON$"),
        ({"a": {"b": object()}}, r"^\$\.a\.b: object is not JSON$"),
        ({"a": ({7: "x"},)}, r"^\$\.a\[0\]: the key 7 is int, not text$"),
        ({None: 1}, r"^\$: the key None is NoneType, not text$"),
        (10**5000, r"^\$: Exceeds the limit"),
        (looped(), r"nested too deeply, or contains itself$"),
        (deep(), r"nested too deeply, or contains itself$"),
    ],
    ids=["set", "bytes", "object", "int key", "None key", "long integer", "loop", "deep"],
)
def test_what_is_not_json_is_refused_with_its_place_and_leaves_what_was_there(cache, value, message):
    cache.set("value:x", "before")
    with pytest.raises(CacheError, match=message):
        cache.set("value:x", value)
    with pytest.raises(CacheError, match=message):
        canonical(value)
    assert cache.get("value:x") == "before"


def test_a_numpy_scalar_is_refused_not_turned_into_something_else(cache):
    numpy = pytest.importorskip("numpy")
    with pytest.raises(CacheError, match=r"^\$\.n: int64 is not JSON$"):
        cache.set("value:x", {"n": numpy.int64(1)})


@pytest.mark.parametrize("key", [1, None, b"k", ("a",), "lone \ud800"])
def test_a_key_that_is_not_text_is_refused(cache, key):
    for use in (lambda: cache.set(key, 1), lambda: cache.get(key), lambda: key in cache, lambda: cache.require(key)):
        with pytest.raises(InputError, match="expected Unicode text"):
            use()


def test_a_missing_entry_is_told_from_a_stored_none(cache):
    cache.set("value:none", None)
    assert cache.get("value:none") is None
    assert cache.get("value:nothing") is MISSING
    assert cache.get("value:nothing", None) is None
    with pytest.raises(CacheMiss, match="no completion in the cache at .*completion:abc"):
        cache.require("completion:abc")
    assert cache.require("value:none") is None


def test_length_iteration_and_size_tell_what_is_there(cache):
    for number in range(250):
        cache.set(f"value:{number:03}", number)
    cache.set("value:000", "again")
    assert len(cache) == 250
    assert list(cache) == [f"value:{number:03}" for number in range(250)]
    assert cache.volume() > 4096


# ------------------------------------------------------------------------------- nothing is evicted


def big(number: int) -> str:
    return random.Random(number).randbytes(60_000).hex()


@pytest.mark.parametrize("policy", ["least-recently-stored", "least-recently-used", "least-frequently-used"])
def test_a_size_limit_that_the_database_brings_evicts_nothing(tmp_path, policy):
    old = diskcache.Cache(str(tmp_path), size_limit=2**20, eviction_policy=policy, cull_limit=10)
    for number in range(40):
        old.set(f"old:{number}", big(number))
    assert len(old) < 40  # so it does where nobody forbids it
    old.clear()
    old.close()

    keys = [f"value:{number}" for number in range(40)]
    with Cache(tmp_path) as cache:
        for number, key in enumerate(keys):
            cache.set(key, big(number))
        assert cache.volume() > 2 * 2**20
    with Cache(tmp_path) as cache:
        cache.set("value:one-more", big(99))
        assert len(cache) == 41
        assert [cache.get(key) for key in keys] == [big(number) for number in range(40)]


def test_a_stock_opening_of_our_folder_finds_no_limit_either(cache):
    stock = diskcache.Cache(str(cache.path))
    assert (stock.eviction_policy, stock.cull_limit) == ("none", 0)
    assert stock.size_limit > 2**60


# ------------------------------------------------------------------------------ where the cache lies


def test_the_default_folder_is_the_environments_else_the_users(tmp_path, monkeypatch):
    monkeypatch.setenv("SOMEWHERE", str(tmp_path))
    monkeypatch.setenv("MCPEVAL_CACHE", "$SOMEWHERE/here")
    assert Cache().path == open_cache(None).path == tmp_path / "here"
    monkeypatch.delenv("MCPEVAL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    platformdirs = pytest.importorskip("platformdirs")
    assert str(Cache().path) == platformdirs.user_cache_dir("mcpeval", appauthor=False)


def test_a_relative_folder_stays_the_same_when_the_process_moves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cache = Cache("answers")
    cache.set("value:x", 1)
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    cache.close()
    assert cache.get("value:x") == 1 and cache.path == tmp_path / "answers"
    assert not any((tmp_path / "sub").iterdir())


def test_a_folder_with_characters_of_a_url_is_a_folder(tmp_path):
    folder = tmp_path / "a b?c#d%20é"
    with Cache(folder) as cache:
        cache.set("value:x", 1)
    assert Cache(folder, replay=True).get("value:x") == 1
    assert (folder / "cache.db").is_file()


def test_a_path_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    for replay in (False, True):
        with pytest.raises(InputError, match="file' is a file; expected a folder"):
            Cache(tmp_path / "file", replay=replay)
    with pytest.raises(InputError, match="cannot be written"):
        Cache(tmp_path / "file" / "below")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("content", [b"this is no database, " * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path, content):
    (tmp_path / "cache.db").write_bytes(content)
    for replay in (False, True):
        with pytest.raises(CacheError, match=r"cache\.db is not a cache that can be used"):
            Cache(tmp_path, replay=replay)
    assert (tmp_path / "cache.db").read_bytes() == content


# --------------------------------------------------------------------------------------------- replay


def digest(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


def test_a_replay_reads_what_is_there_and_changes_not_one_byte(tmp_path):
    with Cache(tmp_path) as cache:
        cache.set("value:x", 1)
    before = digest(tmp_path)
    with Cache(tmp_path, replay=True) as replayed:
        assert replayed.get("value:x") == 1 and replayed.require("value:x") == 1
        replayed.set("value:x", 2)
        replayed.set("value:y", 2)
        assert replayed.get("value:x") == 1 and "value:y" not in replayed
        with pytest.raises(CacheMiss, match="no value in the cache"):
            replayed.require("value:y")
        with pytest.raises(diskcache.Timeout):  # not even where diskcache itself is asked to
            replayed._store.set("value:x", 2)
        with pytest.raises(InputError, match="replay"):
            replayed.load(tmp_path / "any.jsonl")
        assert replayed.export(tmp_path.parent / "replayed.jsonl") == 1
    assert digest(tmp_path) == before


def test_a_replay_of_nothing_is_refused_and_makes_no_folder(tmp_path):
    for folder in (tmp_path, tmp_path / "mistyped"):
        with pytest.raises(InputError, match="has nothing to replay"):
            open_cache(folder, replay=True)
    assert not any(tmp_path.iterdir())


def test_a_replaying_view_shares_the_store_of_its_cache(cache):
    view = open_cache(cache, replay=True)
    assert view.replay and not cache.replay and view.path == cache.path
    cache.set("value:x", 1)
    view.set("value:x", 2)
    assert view.get("value:x") == cache.get("value:x") == 1
    assert open_cache(view) is view and open_cache(view, replay=True) is view


def test_the_cache_argument_means_what_it_says(cache, tmp_path):
    assert open_cache(False) is None
    assert open_cache(cache) is cache
    assert open_cache(str(tmp_path / "one")).path == open_cache(tmp_path / "one").path == tmp_path / "one"
    assert open_cache(tmp_path / "one", replay=True).replay
    with pytest.raises(InputError, match="replay=True with cache=False"):
        open_cache(False, replay=True)
    for wrong in (True, 7, "", {"path": "x"}):
        with pytest.raises(InputError, match=r"^cache=.*expected None"):
            open_cache(wrong)


# -------------------------------------------------------------------------------------- export, load


def test_a_merge_is_a_union_that_keeps_what_is_there(tmp_path):
    with Cache(tmp_path / "a") as a, Cache(tmp_path / "b") as b:
        for number in range(150):
            a.set(f"value:{number}", {"of": "a", "n": number, "x": math.inf, "s": "\ud800\n漢"})
        for number in range(100, 300):
            b.set(f"value:{number}", {"of": "b"})
        assert b.export(tmp_path / "b.jsonl") == 200
        before = {key: a.get(key) for key in a}
        assert a.load(tmp_path / "b.jsonl") == 150
        assert a.load(tmp_path / "b.jsonl") == 0
        assert len(a) == 300
        assert {key: a.get(key) for key in before} == before
        assert a.get("value:299") == {"of": "b"}


def test_an_export_is_the_same_file_whatever_the_order_of_writing(tmp_path):
    entries = [(f"value:{number}", {"b": [1.0, None], "a": "\ud800é\u2028\n"}) for number in range(30)]
    for name in ("one", "two"):
        with Cache(tmp_path / name) as cache:
            for key, value in entries:
                cache.set(key, value)
            cache.export(tmp_path / f"{name}.jsonl")
        entries.reverse()
    text = (tmp_path / "one.jsonl").read_bytes()
    assert text == (tmp_path / "two.jsonl").read_bytes()
    lines = [json.loads(line) for line in text.split(b"\n")[:-1]]
    assert lines == [{"key": key, "value": value} for key, value in sorted(entries)]


def test_an_export_may_be_of_some_kinds_only(cache, tmp_path):
    for key in ("run:1", "completion:1", "completion:2", "parsed:1"):
        cache.set(key, key)
    assert cache.export(tmp_path / "one.jsonl", kinds="completion") == 2
    assert cache.export(tmp_path / "two.jsonl", kinds=["run", "parsed"]) == 2
    assert [json.loads(line)["key"] for line in (tmp_path / "two.jsonl").read_text().splitlines()] == [
        "parsed:1",
        "run:1",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        '{"key": "value:x", "value": 1',
        "[1]",
        '"text"',
        '{"key": "value:x"}',
        '{"key": 7, "value": 1}',
        '{"key": "value:x", "value": 1, "more": 2}',
        '{"key": "lone \\ud800", "value": 1}',
        "[" * 100_000,
        "version https://git-lfs.github.com/spec/v1",
        b"\xff\xfe",
    ],
    ids=range(11),
)
def test_a_malformed_line_is_refused_with_its_place_and_nothing_is_kept(cache, tmp_path, line):
    file = tmp_path / "bad.jsonl"
    good = b"".join(b'{"key": "value:%d", "value": 1}\n' % number for number in range(150))
    file.write_bytes(good + b"\n" + (line if isinstance(line, bytes) else line.encode()) + b"\n" + good)
    with pytest.raises(FileError) as refused:
        cache.load(file)
    assert (refused.value.path, refused.value.line) == (str(file), 152)
    assert str(refused.value).startswith(f"{file}, line 152: not ") and "expected" in str(refused.value)
    assert len(cache) == 0


def test_files_that_cannot_be_read_or_written_are_named(cache, tmp_path):
    with pytest.raises(FileError, match=r"missing\.jsonl: cannot be read \(No such file"):
        cache.load(tmp_path / "missing.jsonl")
    for place in (tmp_path / "missing" / "out.jsonl", cache.path / "cache.db" / "out.jsonl", tmp_path):
        with pytest.raises(FileError, match="cannot be written"):
            cache.export(place)


def test_a_copy_of_a_cache_is_the_same_cache(cache):
    copy.copy(cache).set("value:x", 1)
    assert cache.get("value:x") == 1


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000])
def test_a_path_that_no_folder_can_have_is_refused_by_name(path):
    with pytest.raises(InputError, match="cache="):
        Cache(path)
