"""Frames to files and back: what is written, and that nothing is lost."""

import csv
import json
import math
import os
import subprocess
import sys
from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcpeval.errors import FileError, InputError
from mcpeval.exporting import cells, manifest, read_csv, read_parquet, read_runs, to_csv, to_parquet
from mcpeval.frames import RUN_COLUMNS, SCORE_COLUMNS, clean_text, column, runs_frame, scores_frame
from mcpeval.reports import wide

HOSTILE = [
    "", " ", "7", "007", "-5", "1e5", "NA", "N/A", "None", "nan", "NaN", "null", "true", "True", "FALSE", "Infinity",
    "-Infinity", "[1]", '{"a": 1}', "[1", '"', '""', '"quoted"', "'", "''", "'tis", "'7", "'=1", "''=1", "=SUM(A1)",
    "+1", "-x", "@me", "\tx", "\rx", "a\rb", "a\nb", "a\r\nb", "a,b", 'a"b', "a\0b", "\0", "\ud800", "x\udfffy",
    "\ud83d\ude00", "\ufeff", "\u2028", "\x0b\x0c\x1c\x85", "ünï", "😀", "7 ", " 7", "\\", "\\u0000", '"\\u0000"',
    "[" * 5000, "9" * 5000,
]  # fmt: skip

texts = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(exclude_categories=()), max_size=8),
    st.text("'=+-@\t\r\n\"[]{}0123456789.eE \0,ntf", max_size=6),
)
missing = st.none()
numbers = st.one_of(st.integers(-(2**70), 2**70), st.floats(allow_nan=False))
scalars = st.one_of(texts, numbers, st.booleans())
nested = st.recursive(
    st.one_of(scalars, st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
kinds = [
    texts, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.integers(), st.floats(allow_nan=False), numbers, scalars,
    nested, st.lists(nested, max_size=2),
]  # fmt: skip


@st.composite
def frames(draw):
    rows = draw(st.integers(0, 4))
    labels = dict.fromkeys(map(clean_text, draw(st.lists(texts, min_size=1, max_size=4))))
    labels = [label for label in labels if label not in {**RUN_COLUMNS, **SCORE_COLUMNS}]
    data = {
        label: draw(st.lists(st.one_of(missing, draw(st.sampled_from(kinds))), min_size=rows, max_size=rows))
        for label in labels
    }
    return pd.DataFrame({label: objects(values) for label, values in data.items()}, index=pd.RangeIndex(rows))


def objects(values):
    return pd.Series(column(values, "object"), dtype=object)


def joined(value):
    """A pair of lone surrogates is the character that they make: JSON cannot tell the two apart."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    if isinstance(value, list):
        return [joined(item) for item in value]
    return {joined(key): joined(item) for key, item in value.items()} if isinstance(value, dict) else value


def same(given, read):
    """Whether a cell came back: a missing one missing, a text a text, a truth a truth, a number equal."""
    if cells.is_missing(given):
        return cells.is_missing(read)
    given = joined(given)
    if isinstance(given, (list, dict)):
        return json.dumps(given) == json.dumps(read)
    read = read.item() if isinstance(read, np.generic) else read
    if isinstance(given, (bool, str)) or isinstance(read, (bool, str)):
        return type(given) is type(read) and given == read
    return given == read and not isinstance(read, (list, dict))


def assert_same(given, read):
    assert list(read.columns) == list(given.columns)
    assert len(read) == len(given)
    for name in given.columns:
        for before, after in zip(given[name].tolist(), read[name].tolist(), strict=True):
            assert same(before, after), (name, before, after)


def rows_of_file(path):
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))


@settings(max_examples=400, deadline=None)
@given(frames())
@example(pd.DataFrame(index=range(2)))
def test_a_hostile_frame_comes_back_from_its_csv_alone(tmp_path_factory, frame):
    path = tmp_path_factory.mktemp("csv") / "frame.csv"
    to_csv(frame, path)
    os.unlink(f"{path}.meta.json")
    assert_same(frame, read_csv(path))


@settings(max_examples=400, deadline=None)
@given(st.lists(texts, min_size=1, max_size=5), st.lists(nested, min_size=1, max_size=5))
def test_any_text_and_any_nested_value_is_one_cell_that_reads_back_and_runs_nowhere(words, values):
    for text in words:
        cell = cells.encode(text)
        assert cells.decode(cell) == cells.decode_text(cell) == joined(text)
        assert cell and cell[0] not in "=+-@\t\r"
        cell.encode("utf-8")
    for value in values:
        if not isinstance(value, float) or value == value:
            cell = cells.encode(value)
            assert same(value, cells.decode(cell))
            cell.encode("utf-8")


@pytest.mark.parametrize("text", HOSTILE)
def test_each_text_that_others_lose_comes_back(tmp_path, text):
    frame = pd.DataFrame({"x": objects([text, "plain", None])})
    assert_same(frame, read_csv(to_csv(frame, tmp_path / "x.csv")))


def test_the_cells_of_a_file_are_what_the_documentation_says(tmp_path):
    frame = pd.DataFrame(
        {
            "n": [-5, 7],
            "text": ["7", "007"],
            "na": ["NA", "=1+1"],
            "missing": pd.array([None, ""], dtype="str"),
            "nested": [{"a": [1, "ü"]}, [None, True]],
            "passed": [True, False],
            "x": [0.1, math.inf],
        }
    )
    assert rows_of_file(to_csv(frame, tmp_path / "x.csv")) == [
        ["n", "text", "na", "missing", "nested", "passed", "x"],
        ["-5", "'7", "NA", "", '{"a": [1, "ü"]}', "true", "0.1"],
        ["7", "007", "'=1+1", '""', "[null, true]", "false", "Infinity"],
    ]


def test_a_bare_carriage_return_does_not_split_a_row_for_other_readers(tmp_path):
    frame = pd.DataFrame({"x": ["a\rb", "a\r\nb", "a\nb"]})
    path = to_csv(frame, tmp_path / "x.csv")
    assert pd.read_csv(path)["x"].tolist() == ["a\rb", "a\r\nb", "a\nb"]


def hostile_runs():
    return runs_frame(
        [
            {
                "run_id": f"r{i}", "task_id": "007", "agent": "NA", "trial": i, "output": text, "reference": reference,
                "messages": [{"role": "assistant", "content": text}], "tool_calls": [], "status": "ok",
                "tokens_in": None if i else 5, "cost_usd": None if i else 0.25, "cached": bool(i), "metadata": {"i": i},
            }
            for i, (text, reference) in enumerate([("=1", 7), (None, "7"), ("", None), ("a\0\r\n,\"'", [{"b": None}])])
        ]
    )  # fmt: skip


def hostile_scores():
    return scores_frame(
        [
            {"run_id": "r0", "evaluator": "stars", "label": 4, "score": 0.75, "passed": None, "status": "ok"},
            {"run_id": "r0", "evaluator": "grade", "label": "B", "score": None, "status": "error", "error": "=x"},
            {"run_id": "r1", "evaluator": "right", "label": True, "score": 1.0, "passed": True, "reason": "NA"},
        ],
        keys=["run_id"],
        index=["a", "a", "b"],
    )


@pytest.mark.parametrize("make", [hostile_runs, hostile_scores, lambda: hostile_runs().iloc[:0]])
def test_a_runs_or_scores_frame_comes_back_the_same_from_csv_and_parquet(tmp_path, make):
    frame = make()
    pd.testing.assert_frame_equal(read_csv(to_csv(frame, tmp_path / "x.csv")), frame)
    pd.testing.assert_frame_equal(read_parquet(to_parquet(frame, tmp_path / "x.parquet")), frame)
    pd.testing.assert_frame_equal(read_runs(tmp_path / "x.csv"), frame)
    pd.testing.assert_frame_equal(read_runs(tmp_path / "x.parquet"), frame)


@settings(max_examples=100, deadline=None)
@given(frames())
def test_a_hostile_frame_comes_back_from_parquet(tmp_path_factory, frame):
    path = tmp_path_factory.mktemp("parquet") / "frame.parquet"
    read = read_parquet(to_parquet(frame, path))
    assert_same(frame, read)
    assert list(read.dtypes) == list(frame.dtypes)


def test_nested_keys_are_not_filled_up_with_each_others(tmp_path):
    frame = pd.DataFrame({"metadata": [{"a": 1}, {"b": 2.5}, None]})
    assert read_parquet(to_parquet(frame, tmp_path / "x.parquet"))["metadata"].tolist() == [{"a": 1}, {"b": 2.5}, None]


def test_a_transcript_of_five_megabytes_comes_back_and_the_limit_of_the_csv_module_is_restored(tmp_path):
    frame = runs_frame([{"run_id": "r", "output": 'x,"\r\n' * 1_000_000, "messages": [{"content": "y" * 5_000_000}]}])
    limit = csv.field_size_limit()
    pd.testing.assert_frame_equal(read_csv(to_csv(frame, tmp_path / "x.csv")), frame)
    assert csv.field_size_limit() == limit


def test_times_are_texts_and_categories_their_values(tmp_path):
    frame = pd.DataFrame(
        {
            "when": pd.to_datetime(["2026-01-02T03:04:05+02:00", None], utc=True),
            "day": [date(2026, 1, 2), None],
            "took": pd.to_timedelta(["1h", None]),
            "level": pd.Categorical(["low", "=high"], ["=high", "low"]),
            "year": pd.period_range("2025", periods=2, freq="Y"),
        }
    )
    read = read_csv(to_csv(frame, tmp_path / "x.csv"))
    assert read["when"].tolist()[0] == "2026-01-02T01:04:05+00:00"
    assert read["when"].isna().tolist() == [False, True]
    assert read["day"].tolist()[0] == "2026-01-02"
    assert read["took"].tolist()[0] == "0 days 01:00:00"
    assert read["level"].tolist() == ["low", "=high"]
    assert read["year"].tolist() == ["2025", "2026"]
    again = read_parquet(to_parquet(frame, tmp_path / "x.parquet"))
    pd.testing.assert_frame_equal(again.drop(columns="day"), frame.drop(columns="day"))


def test_numpy_scalars_arrays_and_tuples_are_json(tmp_path):
    values = [{"a": np.int64(1), "b": np.bool_(True)}, (1, np.float32(0.5)), np.array([1, 2])]
    frame = pd.DataFrame({"x": objects([*values, {"c": pd.NA, "d": math.nan}])})
    read = read_csv(to_csv(frame, tmp_path / "x.csv"))["x"].tolist()
    assert read[:3] == [{"a": 1, "b": True}, [1, 0.5], [1, 2]]
    assert read[3]["c"] is None and math.isnan(read[3]["d"])


def test_an_evaluator_in_a_cell_is_written_as_its_dict_or_its_name(tmp_path):
    class Named:
        name = "mine"

        def evaluate(self, row):
            return 1

    class WithDict(Named):
        def to_dict(self):
            return {"func": "raw", "op": "=", "value": "x"}

    def is_short(row):
        return True

    frame = pd.DataFrame({"evaluators": [[Named(), WithDict(), is_short]]})
    assert read_csv(to_csv(frame, tmp_path / "x.csv"))["evaluators"][0] == [
        "mine", {"func": "raw", "op": "=", "value": "x"}, "is_short",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "index",
    [
        pd.Index(["b", "a"]),
        pd.Index([3, 5], name="row"),
        pd.Index(["=1", "7"], name="=key"),
        pd.MultiIndex.from_tuples([("x", 1), ("y", 2)], names=["task", None]),
        pd.RangeIndex(2),
        pd.RangeIndex(2, name="row"),
    ],
    ids=str,
)
def test_an_index_that_says_something_is_kept_and_a_plain_one_is_not_written(tmp_path, index):
    frame = pd.DataFrame({"x": [1, 2], ("a", "b"): [0.5, 1.5], 7: [True, False]}, index=index)
    pd.testing.assert_frame_equal(read_csv(to_csv(frame, tmp_path / "x.csv")), frame, check_index_type=False)
    frame = pd.DataFrame({"x": [1, 2]}, index=index)
    pd.testing.assert_frame_equal(read_parquet(to_parquet(frame, tmp_path / "x.parquet")), frame)
    width = 3 if index.equals(pd.RangeIndex(2)) and index.name is None else 3 + index.nlevels
    assert {len(row) for row in rows_of_file(tmp_path / "x.csv")} == {width}


def test_without_its_manifest_a_named_index_is_a_column_and_an_unnamed_one_is_the_index(tmp_path):
    frame = pd.DataFrame({"x": [1, 2]}, index=pd.MultiIndex.from_tuples([("b", 1), ("a", 2)], names=[None, "k"]))
    path = to_csv(frame, tmp_path / "x.csv")
    os.unlink(f"{path}.meta.json")
    read = read_csv(path)
    assert read.index.tolist() == ["b", "a"]
    assert list(read.columns) == ["k", "x"]


def test_a_manifest_of_other_columns_or_a_broken_one_is_not_used(tmp_path):
    path = to_csv(pd.DataFrame({"x": [1]}, index=pd.Index([5], name="row")), tmp_path / "x.csv")
    path.write_text("a,b\n1,2\n")
    assert list(read_csv(path).columns) == ["a", "b"]
    (tmp_path / "x.csv.meta.json").write_text("[]")
    assert list(read_csv(path).columns) == ["a", "b"]


def test_a_wide_frame_has_headings_that_others_can_read_and_comes_back_in_groups(tmp_path):
    frame = wide(hostile_scores())
    path = to_csv(frame, tmp_path / "x.csv")
    assert rows_of_file(path)[0][:3] == ["run_id", "stars.score", "stars.passed"]
    read = read_csv(path)
    assert list(read.columns) == list(frame.columns)
    assert read.index.equals(frame.index)
    pd.testing.assert_frame_equal(read_parquet(to_parquet(frame, tmp_path / "x.parquet")), frame)


def test_a_plain_pandas_file_reads_as_one_expects(tmp_path):
    theirs = pd.DataFrame(
        {
            "id": ["001", "100", "n7"], "n": [1, 2, 3], "x": [0.5, None, 2], "ok": [True, False, True],
            "half": [True, None, False], "output": ["7", "'tis", '"yes"'], "text": ["nan", "'tis", '"yes"'],
            "mixed": ["7", "seven", "[7]"], "formula": ["=1", "-x", "+1"],
        }
    )  # fmt: skip
    theirs.to_csv(tmp_path / "theirs.csv")
    read = read_csv(tmp_path / "theirs.csv")
    assert read.index.tolist() == [0, 1, 2]
    pd.testing.assert_frame_equal(read.drop(columns="half"), theirs.drop(columns="half"), check_index_type=False)
    assert read["half"].dtype == "boolean"


def test_a_file_that_a_spreadsheet_saved_reads_too(tmp_path):
    (tmp_path / "x.csv").write_bytes("\ufefftask_id,passed,n\r\n007,TRUE,1\r\n\r\n8,FALSE\r\n".encode())
    read = read_csv(tmp_path / "x.csv")
    assert read["task_id"].tolist() == ["007", "8"]
    assert read["passed"].tolist() == [True, False]
    assert read["n"].dtype == "Int64"
    assert read["n"].isna().tolist() == [False, True]


def test_a_known_column_that_holds_something_else_is_read_as_what_it_holds(tmp_path):
    data = {"trial": ["first", "second"], "score": [None, "high"], "turns": [1, None], "cached": [None, None]}
    frame = pd.DataFrame(data, dtype=object)
    read = read_csv(to_csv(frame, tmp_path / "x.csv"))
    assert read["trial"].tolist() == ["first", "second"]
    assert read["score"].tolist()[1] == "high"
    assert read["turns"].dtype == "Int64"
    assert read["cached"].dtype == "boolean"


@pytest.mark.parametrize("value", [{1, 2}, b"x", object(), 1 + 2j, {"a": {3}}, {(1, 2): 3}], ids=lambda v: str(type(v)))
def test_what_is_no_json_is_refused_by_name_and_nothing_is_written(tmp_path, value):
    frame = pd.DataFrame({"x": objects([1, value])})
    for write in (to_csv, to_parquet):
        with pytest.raises(InputError, match="'x'"):
            write(frame, tmp_path / "x.out")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_there_stays_whole_where_writing_fails(tmp_path, monkeypatch):
    path = to_csv(pd.DataFrame({"x": [1]}), tmp_path / "x.csv")
    before = path.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(FileError, match="No space left on device"):
        to_csv(pd.DataFrame({"x": [2]}), path)
    assert path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["x.csv", "x.csv.meta.json"]


def test_a_path_that_cannot_be_meant_is_an_error_that_says_so(tmp_path):
    frame = pd.DataFrame({"x": [1]})
    with pytest.raises(FileError, match="no folder"):
        to_csv(frame, tmp_path / "nowhere" / "x.csv")
    with pytest.raises(FileError, match="is a folder"):
        to_csv(frame, tmp_path)
    with pytest.raises(InputError, match="expected a DataFrame"):
        to_csv(tmp_path / "x.csv", frame)
    with pytest.raises(InputError, match="expected the path"):
        to_csv(frame, None)
    with pytest.raises(FileError, match="no such file"):
        read_csv(tmp_path / "x.csv")
    with pytest.raises(InputError, match="two columns are named 'x'"):
        to_parquet(pd.concat([frame, frame], axis=1), tmp_path / "x.parquet")


def test_a_file_that_is_no_table_is_an_error_with_its_path_and_line(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n1,2,3\n")
    with pytest.raises(FileError, match=r"x\.csv, line 3: 3 cells under 2 headings"):
        read_csv(path)
    path.write_bytes(b"a\n\xff\n")
    with pytest.raises(FileError, match="not UTF-8"):
        read_csv(path)
    (tmp_path / "x.parquet").write_text("no")
    with pytest.raises(FileError, match="no Parquet file"):
        read_parquet(tmp_path / "x.parquet")
    (tmp_path / "x.jsonl").write_text('{"output": 1}\n\n{"output": \n')
    with pytest.raises(FileError, match=r"x\.jsonl, line 3: no JSON"):
        read_runs(tmp_path / "x.jsonl")
    (tmp_path / "x.jsonl").write_text("[1]\n")
    with pytest.raises(FileError, match="line 1: expected a JSON object"):
        read_runs(tmp_path / "x.jsonl")
    with pytest.raises(FileError, match="'.parqet'. Did you mean '.parquet'"):
        read_runs(tmp_path / "x.parqet")


def test_runs_are_read_from_json_lines_with_the_dtypes_of_a_runs_frame(tmp_path):
    lines = [
        {"task_id": 7, "output": "007", "messages": [{"role": "user"}], "cost_usd": None, "mine": 1},
        {"task_id": "8", "output": {"a": 1}, "cost_usd": 1, "mine": None, "more": "x\u2028y"},
    ]
    (tmp_path / "x.jsonl").write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), "utf-8")
    read = read_runs(tmp_path / "x.jsonl")
    assert read["task_id"].tolist() == ["7", "8"]
    assert read["output"].tolist() == ["007", '{"a": 1}']
    assert read["messages"].tolist() == [[{"role": "user"}], None]
    assert read["cost_usd"].tolist()[1] == 1.0
    assert [str(read[name].dtype) for name in ("task_id", "messages", "cost_usd", "mine", "more")] == [
        "str", "object", "float64", "Int64", "str",
    ]  # fmt: skip


def test_the_manifest_says_what_must_be_known_and_nothing_of_this_machine(tmp_path):
    server = {"name": "time", "command": "/home/me/bin/server", "server_info": {"name": "mcp-time", "version": "1.2"}}
    runs = runs_frame(
        [
            {"run_id": str(i), "model": "openai/gpt-4.1", "cost_usd": 0.25, "cached": i > 0,
             "metadata": {"model_returned": ["gpt-4.1-2025-04-14"], "servers": [server], "started": f"2026-01-0{i + 1}",
                          **({"saved_usd": 0.5} if i else {})}}
            for i in range(3)
        ]
    )  # fmt: skip
    said = manifest(runs)
    assert said["models"] == ["openai/gpt-4.1"]
    assert said["models_returned"] == ["gpt-4.1-2025-04-14"]
    assert said["servers"] == [{"name": "time", "server_info": {"name": "mcp-time", "version": "1.2"}}]
    assert (said["rows"], said["cached"], said["cost_usd"], said["cost_unknown"]) == (3, 2, 0.75, 0)
    assert (said["saved_usd"], said["started"]) == (1.0, ["2026-01-01", "2026-01-03"])
    assert said["libraries"]["pandas"] == pd.__version__
    assert said["python"] == sys.version.split()[0]
    to_csv(runs, tmp_path / "runs.csv")
    written = (tmp_path / "runs.csv.meta.json").read_text("utf-8")
    assert json.loads(written) == {**said, "written": json.loads(written)["written"]}
    assert "/home/me" not in written and os.uname().nodename not in written and str(tmp_path) not in written
    runs.loc[1, "cost_usd"] = None
    assert (manifest(runs)["cost_usd"], manifest(runs)["cost_unknown"]) == (None, 1)


def test_the_judges_texts_go_with_the_frame_through_its_files(tmp_path):
    scores = hostile_scores().assign(fingerprint=["f1", "f1", "f2"])
    assert manifest(scores)["judges"] == {"f1": None, "f2": None}
    scores.attrs["judges"] = {"f1": {"rubric": "Is it right?", "scale": [1, 5]}, "other": {"rubric": "not used here"}}
    assert manifest(scores)["judges"] == {"f1": {"rubric": "Is it right?", "scale": [1, 5]}, "f2": None}
    said = manifest(scores)["judges"]
    assert manifest(read_csv(to_csv(scores, tmp_path / "s.csv")))["judges"] == said
    assert manifest(read_parquet(to_parquet(scores, tmp_path / "s.parquet")))["judges"] == said
    assert manifest(scores.assign(judge_model="gpt-4.1"))["models_returned"] == ["gpt-4.1"]
    assert manifest(pd.DataFrame({"metadata": [7, None], "judge_model": [1, 2]}))["models_returned"] == []


SCRIPT = """
import sys
if sys.argv[1] == "without":
    sys.modules["pyarrow"] = None
from tests.test_exporting import *
from mcpeval.reports import summarize
frame = hostile_runs()
folder = sys.argv[2]
odd = pd.DataFrame({"x": objects(["\\ud800", "a"]), "y": ["b", None]})
for name, frame in {"runs": hostile_runs(), "scores": hostile_scores(), "odd": odd}.items():
    read = read_csv(to_csv(frame, f"{folder}/{name}.csv"))
    pd.testing.assert_frame_equal(read, frame)
    print(name, [str(dtype) for dtype in read.dtypes], ascii(read.to_dict("list")))
print(summarize(hostile_scores()).to_string(), wide(hostile_scores()).to_string())
try:
    to_parquet(hostile_runs(), f"{folder}/runs.parquet")
except InputError as error:
    print(error, file=sys.stderr)
"""


def test_frames_and_files_are_the_same_whether_pyarrow_is_installed_or_not(tmp_path):
    seen = {}
    for mode in ("with", "without"):
        (tmp_path / mode).mkdir()
        command = [sys.executable, "-c", SCRIPT, mode, str(tmp_path / mode)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=os.path.dirname(os.path.dirname(__file__)))
        assert done.returncode == 0, done.stderr
        seen[mode] = done
    assert seen["with"].stdout == seen["without"].stdout
    for name in ("runs.csv", "scores.csv", "odd.csv"):
        assert (tmp_path / "with" / name).read_bytes() == (tmp_path / "without" / name).read_bytes()
    assert "pip install 'mcpeval[parquet]'" in seen["without"].stderr


@pytest.mark.parametrize("read", [read_csv, read_runs, read_parquet])
@pytest.mark.parametrize("path", [None, 3, b"x.csv", "x" * 300 + ".csv", "nul\0.csv"])
def test_what_can_be_no_path_is_an_input_error(read, path):
    with pytest.raises(InputError):
        read(path)


def test_a_target_that_can_be_no_path_is_an_input_error():
    for path in ("x" * 300 + ".csv", "nul\0.csv"):
        with pytest.raises(InputError):
            to_csv(pd.DataFrame({"a": [1]}), path)


def test_a_csv_file_that_was_cut_within_a_cell_is_no_csv(tmp_path):
    (tmp_path / "cut.csv").write_text('"a","b"\n"1","2')
    with pytest.raises(FileError, match="no CSV"):
        read_csv(tmp_path / "cut.csv")
