"""A database from elsewhere: nothing it says is unpickled, opened, deleted or obeyed."""

import pickle
import warnings

import diskcache
import pytest

from mcpeval.agents import Agent
from mcpeval.caching import MISSING, Cache
from mcpeval.errors import CacheError, CacheMiss, InputError
from mcpeval.running import run
from tests.crafted import Canary, Crafted, insert, watched


@pytest.fixture
def crafted(tmp_path):
    return Crafted(tmp_path)


def test_the_crafted_database_does_hurt_the_stock_json_disk(crafted):
    stock = diskcache.Cache(str(crafted.folder), disk=diskcache.JSONDisk)
    there, file = (stock.disk.put(key)[0] for key in ("there", "file"))
    attack = {"key": there, "mode": 4, "value": pickle.dumps(Canary(crafted.canary))}
    insert(crafted.folder, [attack, {"key": file, "mode": 2, "filename": "../outside.txt"}])
    with watched() as seen, pytest.raises(TypeError):
        stock.get("there")
    assert crafted.canary.exists() and "pickle.find_class" in {event for event, _ in seen}
    del stock["file"]
    assert not crafted.outside.exists()


@pytest.mark.filterwarnings("ignore:the cache at")
@pytest.mark.parametrize("replay", [False, True])
def test_crafted_rows_are_refused_nothing_is_unpickled_and_no_file_is_read_or_deleted(crafted, replay):
    with watched() as seen, Cache(crafted.folder, replay=replay) as cache:
        for key in crafted.keys:
            assert cache.get(key) is MISSING
            assert key not in cache
            with pytest.raises(CacheMiss):
                cache.require(key)
        assert sorted(cache) == sorted(crafted.keys)
        assert len(cache) == len(crafted.keys) + 2
    assert crafted.untouched(seen)


@pytest.mark.filterwarnings("ignore:the cache at")
def test_a_crafted_row_is_written_over_like_any_other_and_its_file_stays(crafted):
    with watched() as seen, Cache(crafted.folder) as cache:
        for key in crafted.keys:
            cache.set(key, "ours")
        assert [cache.get(key) for key in crafted.keys] == ["ours"] * len(crafted.keys)
    assert crafted.untouched(seen)


@pytest.mark.parametrize("operation", ["pop", "delete", "read", "touch", "pull", "peekitem", "incr"])
def test_no_single_operation_of_diskcache_itself_obeys_a_crafted_row(crafted, operation):
    store = Cache(crafted.folder)._store
    with watched() as seen:
        for key in crafted.keys if operation in ("pop", "delete", "read", "touch", "incr") else [None] * 3:
            try:
                getattr(store, operation)(*[] if key is None else [key])
            except (CacheError, InputError, KeyError, TypeError):
                pass
    assert crafted.untouched(seen)


@pytest.mark.parametrize("operation", ["expire", "cull", "clear", "evict", "iterkeys", "check"])
@pytest.mark.filterwarnings("ignore:file not found", "ignore:unknown file")
def test_no_sweeping_operation_of_diskcache_itself_obeys_a_crafted_row(crafted, operation):
    store = Cache(crafted.folder)._store
    with watched() as seen:
        answer = getattr(store, operation)(*[None] if operation == "evict" else [])
        if operation == "iterkeys":
            assert {key for key in answer if key is not None} == set(crafted.keys)
    assert crafted.untouched(seen)


def test_a_refused_entry_is_named_once_and_the_others_are_passed_over(crafted):
    with warnings.catch_warnings(record=True) as caught, Cache(crafted.folder) as cache:
        warnings.simplefilter("always")
        for key in crafted.keys * 2:
            cache.get(key)
        list(cache)
    assert len(caught) == 1
    assert f"{crafted.keys[0]!r} is refused, it is not an entry that mcpeval wrote" in str(caught[0].message)
    assert caught[0].filename == __file__


@pytest.mark.filterwarnings("ignore:the cache at")
def test_an_export_leaves_crafted_rows_out(crafted, tmp_path):
    with Cache(crafted.folder) as cache:
        cache.set("value:good", 1)
        assert cache.export(tmp_path / "out.jsonl") == 1
    assert (tmp_path / "out.jsonl").read_text() == '{"key": "value:good", "value": 1}\n'


def test_crafted_settings_lead_to_no_other_folder_and_break_nothing(tmp_path):
    folder, elsewhere = tmp_path / "cache", tmp_path / "elsewhere"
    elsewhere.mkdir()
    diskcache.Cache(str(folder)).close()
    hostile = {
        "_directory": str(elsewhere),
        "_local": "x",
        "get": "x",
        "disk_directory": str(elsewhere),
        "disk_remove": "x",
        "sqlite_query_only": 1,
        "sqlite_max_page_count": 1,
        "sqlite_journal_mode": "off",
        "statistics": 1,
        "tag_index": 1,
        b"bytes": 1,
    }
    insert(folder, settings=hostile)
    for _ in range(2):
        with Cache(folder) as cache:
            cache.set("value:x", 1)
            assert cache.get("value:x") == 1
    assert [file.name for file in folder.iterdir()] == ["cache.db"]
    assert not any(elsewhere.iterdir())
    assert Cache(folder, replay=True).get("value:x") == 1


def test_the_directory_setting_does_lead_the_stock_json_disk_astray(tmp_path):
    diskcache.Cache(str(tmp_path / "cache")).close()
    (tmp_path / "elsewhere").mkdir()
    insert(tmp_path / "cache", settings={"_directory": str(tmp_path / "elsewhere")})
    diskcache.Cache(str(tmp_path / "cache"), disk=diskcache.JSONDisk)
    assert (tmp_path / "elsewhere" / "cache.db").exists()


@pytest.mark.parametrize("value", [None, [1], "text", {}, {"output": "x", "usage": []}])
def test_what_is_kept_under_a_key_and_is_no_run_or_answer_is_made_again(cache, endpoint, value):
    agent = Agent("openai/good", "basic", api_base=endpoint.base, api_key="sk-test-000001")
    for asked in (1, 2):
        with warnings.catch_warnings(record=True) as caught:
            assert run("What is in ROW-7?", agent, cache=cache)["output"].tolist() == ["answer for 7"]
        assert endpoint.count == asked and len(caught) == asked - 1
        for key in list(cache):
            cache.set(key, value)
    with pytest.raises(CacheMiss):
        run("What is in ROW-7?", agent, cache=cache, replay=True)
