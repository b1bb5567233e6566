"""Frames and rows: what pandas changes on the way, and what must come back."""

import json

import numpy as np
import pandas as pd
import pytest

from mcpeval.frames import RUN_COLUMNS, SCORE_COLUMNS, column, plain, rows_of, runs_frame, scores_frame


def test_a_missing_text_is_none_in_a_row_and_never_the_word_nan():
    passed = pd.array([True, None], dtype="boolean")
    frame = pd.DataFrame({"output": ["a", None], "score": [1.0, None], "passed": passed})
    assert rows_of(frame) == [
        {"output": "a", "score": 1.0, "passed": True},
        {"output": None, "score": None, "passed": None},
    ]


def test_no_numpy_value_is_left_in_a_row():
    frame = pd.DataFrame({"n": np.array([1], dtype="int64"), "cell": [{"a": np.float64(0.5), "b": np.array([1, 2])}]})
    (row,) = rows_of(frame)
    assert json.dumps(row) == '{"n": 1, "cell": {"a": 0.5, "b": [1, 2]}}'
    assert type(row["n"]) is int and type(row["cell"]["a"]) is float


@pytest.mark.parametrize("value", [pd.NA, pd.NaT, np.nan, None, np.datetime64("NaT")])
def test_every_way_to_be_missing_is_none(value):
    assert plain(value) is None


def test_a_runs_frame_has_the_columns_and_dtypes_of_the_table():
    frame = runs_frame([{"run_id": "r", "output": None, "messages": [{"role": "user"}], "trial": 1, "tokens_in": None}])
    assert list(frame.columns) == list(RUN_COLUMNS)
    assert {n: str(d) for n, d in frame.dtypes.items()} == RUN_COLUMNS
    assert frame.messages[0] == [{"role": "user"}] and pd.isna(frame.output[0]) and frame.tokens_in.isna()[0]


def test_columns_of_the_tasks_are_there_only_where_a_task_has_them():
    assert "evaluators" not in runs_frame([{"run_id": "r"}])
    assert runs_frame([{"run_id": "r"}, {"run_id": "s", "evaluators": [{"func": "json"}]}])["evaluators"][0] is None


def test_an_empty_frame_keeps_its_columns():
    assert list(runs_frame([]).columns) == list(RUN_COLUMNS)
    assert list(scores_frame([]).columns) == list(SCORE_COLUMNS)


def test_a_lone_surrogate_is_replaced_in_text_and_kept_in_nested_values():
    frame = runs_frame([{"run_id": "r", "output": "a\ud800b", "messages": [{"content": "a\ud800b"}]}])
    assert frame.output[0] == "a\ufffdb"
    assert frame.messages[0][0]["content"] == "a\ud800b"


def test_lists_of_equal_length_stay_lists_in_their_cells():
    frame = runs_frame([{"run_id": "r", "messages": [1, 2]}, {"run_id": "s", "messages": [3, 4]}])
    assert frame.messages.tolist() == [[1, 2], [3, 4]]


def test_a_column_of_one_value_is_the_same_as_cell_by_cell():
    assert column([None] * 3, "str").isna().all()
    assert column(["a\ud800"] * 3, "str").tolist() == ["a\ufffd"] * 3
    assert column([1, True, 1.0], "str").tolist() == ["1", "True", "1.0"]
    assert column([1, True], "object").tolist() == [1, True] and type(column([1, True], "object")[1]) is bool
    assert column([0.0, -0.0], "float64").tolist() == [0.0, -0.0] and str(column([0.0, -0.0], "float64")[1]) == "-0.0"
    assert column([None, None], "Int64").isna().all() and column([None, None], "int64").tolist() == [0, 0]
    assert column([True, False, None], "boolean").tolist() == [True, False, pd.NA]
    assert column([True, False], "boolean").tolist() == [True, False]
    assert column(["a", "\ud800", None], "str").tolist()[:2] == ["a", "\ufffd"]


def test_a_scores_frame_has_the_keys_that_the_runs_had_and_their_labels():
    frame = scores_frame([{"run_id": "7", "score": 1.0}] * 2, keys=["run_id"], index=["x", "x"])
    assert list(frame.columns)[:3] == ["run_id", "evaluator", "kind"]
    assert list(frame.index) == ["x", "x"]


def test_a_column_of_any_values_keeps_its_dtype_where_all_of_them_are_texts():
    frame = scores_frame([{"label": "A\ud800"}, {"label": "B"}], index=[5, 6])
    assert frame["label"].dtype == object and frame["label"].tolist() == ["A\ud800", "B"]
