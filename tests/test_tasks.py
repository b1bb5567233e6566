"""Task files: what can be read, and how each fault is named."""

import json
import re

import pytest

from mcpeval import Task, read_tasks
from mcpeval.errors import FileError, InputError

ONE = {"question": "What is 2 + 2?", "evaluators": [{"func": "raw", "op": "=", "value": "4"}]}


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data, indent=2), encoding="utf-8")
    return path


def test_a_json_file_holds_one_task_whose_id_is_the_name_of_the_file(tmp_path):
    [task] = read_tasks(write(tmp_path / "sum.json", ONE))
    assert (task.id, task.question, task.category) == ("sum", "What is 2 + 2?", "general")
    assert list(task.evaluators) == ONE["evaluators"]


def test_a_json_file_may_hold_an_array_and_the_ids_are_numbered(tmp_path):
    tasks = read_tasks(write(tmp_path / "sums.json", [ONE, {**ONE, "id": "named"}, ONE]))
    assert [task.id for task in tasks] == ["sums-1", "named", "sums-3"]


def test_a_jsonl_file_holds_one_task_a_line_and_blank_lines_do_not_count(tmp_path):
    text = "\n\n".join(json.dumps({"question": q}, ensure_ascii=False) for q in ["a\u2028b", "c"]) + "\n"
    tasks = read_tasks(write(tmp_path / "many.jsonl", text))
    assert [(task.id, task.question) for task in tasks] == [("many-1", "a\u2028b"), ("many-2", "c")]


def test_a_folder_is_read_at_any_depth_in_the_order_of_paths_without_hidden_files(tmp_path):
    for name in ["b/two.json", "a.json", "b/one.jsonl", ".ipynb_checkpoints/a.json", "notes.txt"]:
        write(tmp_path / name, json.dumps(ONE))
    assert [task.id for task in read_tasks(str(tmp_path))] == ["a", "one", "two"]


def test_a_list_may_mix_files_dicts_and_tasks(tmp_path):
    task = Task("t", "Why?")
    read = read_tasks([write(tmp_path / "sum.json", ONE), {"id": "d", **ONE}, task])
    assert [t.id for t in read] == ["sum", "d", "t"]
    assert read[2] is task


def test_a_byte_order_mark_is_no_fault(tmp_path):
    (tmp_path / "sum.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(ONE).encode())
    assert read_tasks(tmp_path / "sum.json")[0].id == "sum"


def test_keys_that_no_task_knows_are_kept(tmp_path):
    [task] = read_tasks(write(tmp_path / "sum.json", {**ONE, "source": [], "difficulty": 3}))
    assert task.extra == {"source": [], "difficulty": 3}


def test_a_json_fault_is_named_with_its_file_and_line(tmp_path):
    path = write(tmp_path / "bad.json", '{\n  "question": "a",\n  "tags": [1,]\n}')
    with pytest.raises(FileError, match=r"bad\.json, line 3: not JSON: ") as caught:
        read_tasks(path)
    assert (caught.value.path, caught.value.line) == (str(path), 3)


def test_a_fault_in_jsonl_is_named_with_the_line_of_the_file(tmp_path):
    path = write(tmp_path / "bad.jsonl", json.dumps(ONE) + "\n\n{'question': 1}\n")
    with pytest.raises(FileError, match=r"bad\.jsonl, line 3: not JSON: .*column 2"):
        read_tasks(path)


@pytest.mark.parametrize(
    "slip, right", [("evaluator", "evaluators"), ("mcp_server", "mcp_servers"), ("Question", "question")]
)
def test_a_misspelt_key_is_named_with_the_nearest_spelling_and_the_line_of_its_task(tmp_path, slip, right):
    path = write(tmp_path / "tasks.json", [ONE, {**ONE, slip: []}])
    line = path.read_text().split("\n").index("  {", 2) + 1
    with pytest.raises(FileError, match=rf"line {line}: unknown key '{slip}' .*Did you mean '{right}'"):
        read_tasks(path)


@pytest.mark.parametrize("data, said", [({"id": "x"}, "needs 'question'"), ("text", "JSON object"), ([ONE, 3], "int")])
def test_what_is_no_task_is_refused(tmp_path, data, said):
    path = write(tmp_path / "t.json", json.dumps(data))
    with pytest.raises(FileError, match=said):
        read_tasks(path)


def test_two_tasks_with_one_id_are_named_with_both_places(tmp_path):
    write(tmp_path / "a" / "sum.json", ONE)
    write(tmp_path / "b" / "sum.json", ONE)
    with pytest.raises(InputError, match=r"id 'sum': one in .*a.sum\.json.*, one in .*b.sum\.json"):
        read_tasks(tmp_path)


def test_a_missing_file_an_empty_folder_and_another_suffix_are_named(tmp_path):
    with pytest.raises(FileError, match=r"nowhere\.json: there is no such file"):
        read_tasks(tmp_path / "nowhere.json")
    with pytest.raises(FileError, match="no .json or .jsonl file"):
        read_tasks(tmp_path)
    with pytest.raises(FileError, match=r"should end in \.json or \.jsonl"):
        read_tasks(write(tmp_path / "tasks.yaml", "question: a"))
    with pytest.raises(InputError, match="tasks=3 should be"):
        read_tasks(3)


def test_bytes_that_are_not_utf8_are_named_with_their_line(tmp_path):
    (tmp_path / "latin.json").write_bytes('{\n"question": "caf\u00e9"}'.encode("latin-1"))
    with pytest.raises(FileError, match=r"line 2: not UTF-8"):
        read_tasks(tmp_path / "latin.json")


def test_every_task_file_of_mcp_universe_is_read(conformance):
    folder = conformance / "data" / "mcpuniverse_tasks"
    tasks = read_tasks(folder)
    files = sorted(folder.rglob("*.json"))
    assert len(tasks) == len(files) > 300
    for task, file in zip(tasks, files):
        data = json.loads(file.read_text(encoding="utf-8"))
        assert task.question == data["question"]
        assert list(task.evaluators) == data["evaluators"]
        assert list(task.prepares) == data.get("prepares", [])
        assert list(task.cleanups) == data.get("cleanups", [])
        assert task.extra == {}


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ({"question": None}, "question=None should be a text"),
        ({"question": "x", "category": 3}, "category=3"),
        ({"question": "x", "use_specified_server": "no"}, "use_specified_server='no' should be true or false"),
        ({"question": "x", "mcp_servers": [{"name": "a", "tool": ["b"]}]}, "'tool'. Did you mean 'tools'?"),
        ({"question": "x", "mcp_servers": [{"name": "a", "tools": "b"}]}, "the tools of 'a' are 'b'"),
    ],
)
def test_a_value_that_would_be_misread_is_an_error_that_names_it(task, said):
    with pytest.raises(InputError, match=re.escape(said)):
        read_tasks(task)


def test_a_path_that_no_file_can_have_is_an_error_and_not_the_working_folder(tmp_path, monkeypatch):
    write(tmp_path / "here.json", ONE)
    monkeypatch.chdir(tmp_path)
    for path in ("", "x" * 5000 + ".json"):
        with pytest.raises(InputError):
            read_tasks(path)


def test_a_task_with_a_key_that_is_no_text_still_gets_an_id():
    assert read_tasks({3: 4, "question": "x"})[0].extra == {3: 4}
