"""`tool_metrics`: each column by its definition, on cases small enough to work out by hand."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from mcpeval.errors import InputError
from mcpeval.evaluators.bfcl import ast_ok, value_ok
from mcpeval.evaluators.called import read_call, read_expected
from mcpeval.messages import wire_result
from mcpeval.trajectories import tool_metrics

COLUMNS = [
    *["n_calls", "n_turns", "n_parallel", "valid_name_rate", "bad_json", "schema_ok_rate", "exec_ok_rate", "n_err"],
    *["recovered", "dup_calls", "n_servers", "result_chars_max", "truncated"],
    *["name_precision", "name_recall", "call_precision", "call_recall", "call_f1"],
    *["strict", "unordered", "superset", "subset", "order_lcs", "dag_ok", "extra", "missing", "forbidden_calls"],
    *["steps_ratio", "ast_ok"],
]


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def done(text: str = "ok", *, failed: bool = False, **about: Any) -> dict[str, Any]:
    return {**about, "result": wire_result(text, is_error=failed), "is_error": failed}


def measure(made: list[Any], expected: Any = None, tools: Any = None, **cells: Any) -> dict[str, Any]:
    runs = pd.DataFrame([{"tool_calls": made, "expected_tool_calls": expected, **cells}])
    return tool_metrics(runs, tools).to_dict("records")[0]


def test_every_column_of_the_definition_is_there_beside_the_runs_keys():
    runs = pd.DataFrame(
        {"run_id": ["a", "b"], "task_id": ["t", "t"], "trial": [0, 1], "tool_calls": [[], [call("f")]]}, index=[7, 3]
    )
    frame = tool_metrics(runs)
    assert list(frame.columns) == ["run_id", "task_id", "trial", *COLUMNS]
    assert frame.index.tolist() == [7, 3]
    assert frame["n_calls"].tolist() == [0, 1]
    assert all(name in tool_metrics.__doc__ for name in COLUMNS)


# --- the calls as they were made -----------------------------------------------------------------


def test_errors_recoveries_and_repeats_are_counted():
    made = [
        done("no", failed=True, server="a", **call("read", path="x")),  # comes right below
        done("text", server="a", **call("read", path="y")),
        done("no", failed=True, server="b", **call("read", path="z")),  # of another server: never comes right
        done("longest", server="a", **call("read", path="y")),  # the second again
        {**call("write"), "server": "b"},  # never answered
    ]
    found = measure(made)
    assert {key: found[key] for key in ("n_calls", "n_err", "recovered", "dup_calls", "n_servers")} == {
        "n_calls": 5,
        "n_err": 2,
        "recovered": 1,
        "dup_calls": 1,
        "n_servers": 2,
    }
    assert found["exec_ok_rate"] == 2 / 4
    assert found["result_chars_max"] == len("longest")


def test_arguments_that_are_no_json_object_are_counted():
    made = [{"name": "f", "arguments": '{"x": '}, {"name": "f", "arguments": "[1]"}, {"name": "f", "arguments": "{}"}]
    assert measure(made)["bad_json"] == 2


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        },
    },
    {"name": "list", "inputSchema": {"type": "object", "additionalProperties": False}},
    {"functionDeclarations": [{"name": "look"}]},
    "ping",
]


def test_names_and_arguments_are_held_against_the_tools_offered():
    made = [call("add", a=1), call("add", a="1"), call("list", b=1), call("ping", c=1), call("loook")]
    found = measure(made, tools=TOOLS)
    assert found["valid_name_rate"] == 4 / 5
    assert found["schema_ok_rate"] == 1 / 3
    assert math.isnan(measure([call("ping")], tools=TOOLS)["schema_ok_rate"])
    assert measure(made[:2], tools={"add": TOOLS[0]["function"]["parameters"]})["schema_ok_rate"] == 1 / 2


def test_without_tools_a_call_is_valid_where_a_server_had_it():
    made = [{**call("f"), "server": "s"}, {**call("g"), "is_error": True, "error": "There is no tool 'g'."}]
    assert measure(made)["valid_name_rate"] == 1 / 2
    assert math.isnan(measure([call("f")])["valid_name_rate"])


def test_turns_and_calls_made_together_are_found_in_the_messages():
    def asks(*names):
        calls = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in names]
        return {"role": "assistant", "tool_calls": calls}

    messages = [{"role": "user", "content": "?"}, asks("a", "b"), asks("c"), asks("d", "e", "f"), {"role": "assistant"}]
    runs = pd.DataFrame({"messages": [messages]})
    [found] = tool_metrics(runs).to_dict("records")
    assert (found["n_calls"], found["n_turns"], found["n_parallel"]) == (6, 4, 5)
    assert tool_metrics(runs.assign(turns=9))["n_turns"].tolist() == [9]


@pytest.mark.parametrize(
    ("cells", "made", "cut"),
    [
        ({"metadata": {"truncated": True}}, [], True),
        ({"metadata": {"truncated": False}}, [], False),
        ({}, [{**call("f"), "result": {"content": [], "_meta": {"mcpeval/cut": 5}}}], True),
        ({}, [], False),
    ],
)
def test_what_was_cut_is_said(cells, made, cut):
    assert measure(made, **cells)["truncated"] is cut


def test_a_run_whose_calls_are_not_known_has_no_numbers():
    runs = pd.DataFrame({"run_id": ["a", "b"], "tool_calls": [None, []]})
    frame = tool_metrics(runs)
    assert frame.loc[0, COLUMNS].isna().all()
    assert frame["n_calls"].tolist()[1] == 0
    assert frame.loc[1, COLUMNS[13:]].isna().all()  # nothing is said of what was expected


# --- against the expected calls ------------------------------------------------------------------


def test_calls_are_counted_against_the_expected_ones():
    expected = [call("search", q="a"), call("book", id=1), call("pay")]
    made = [call("search", q="b"), call("book", id=1), call("search", q="a"), call("log")]
    found = measure(made, expected)
    assert found["name_precision"] == 2 / 4
    assert found["name_recall"] == 2 / 3
    assert found["call_precision"] == 2 / 4
    assert found["call_recall"] == 2 / 3
    assert found["call_f1"] == pytest.approx(4 / 7)
    assert (found["extra"], found["missing"]) == (2, 1)
    assert found["order_lcs"] == 2 / 3
    assert found["steps_ratio"] == 4 / 3
    assert [found[key] for key in ("strict", "unordered", "superset", "subset", "ast_ok")] == [False] * 5


@pytest.mark.parametrize(
    ("made", "strict", "unordered", "superset", "subset"),
    [
        ("ab", True, True, True, True),
        ("ba", False, True, True, True),
        ("abc", False, False, True, False),
        ("a", False, False, False, True),
        ("aab", False, False, True, False),
        ("c", False, False, False, False),
        ("", False, False, False, True),
    ],
)
def test_the_four_ways_in_which_a_trajectory_matches(made, strict, unordered, superset, subset):
    found = measure([call(name) for name in made], [call("a"), call("b")])
    ways = ("strict", "unordered", "superset", "subset")
    assert [found[way] for way in ways] == [strict, unordered, superset, subset]


def test_the_order_of_a_dag_is_its_own():
    expected = [call("a"), {**call("b"), "after": "a"}, call("c")]
    assert measure([call("c"), call("a"), call("b")], expected)["dag_ok"] is True
    assert measure([call("b"), call("a"), call("c")], expected)["dag_ok"] is False
    assert pd.isna(measure([call("a")], [call("a")])["dag_ok"])


def test_forbidden_calls_are_counted_and_are_not_missing():
    expected = [call("a"), {"name": "rm", "forbidden": True}]
    found = measure([call("a"), call("rm", x=1), call("rm", x=2)], expected)
    assert (found["forbidden_calls"], found["missing"], found["extra"], found["call_recall"]) == (2, 0, 2, 1.0)


def test_nothing_expected_and_nothing_done_is_one():
    found = measure([], [])
    rates = ("name_precision", "name_recall", "call_precision", "call_recall", "call_f1", "order_lcs", "steps_ratio")
    ways = ("strict", "unordered", "superset", "subset", "ast_ok")
    assert [found[key] for key in rates] == [1.0] * 7
    assert [found[key] for key in ways] == [True] * 5


def test_nothing_expected_and_something_done_has_no_recall():
    found = measure([call("f")], [])
    assert all(math.isnan(found[key]) for key in ("name_recall", "call_recall", "order_lcs", "steps_ratio"))
    assert [found[key] for key in ("name_precision", "call_precision", "call_f1")] == [0.0] * 3
    assert [found[key] for key in ("strict", "unordered", "superset", "subset")] == [False, False, True, False]


def test_something_expected_and_nothing_done_is_zero():
    found = measure([], [call("f")])
    rates = ("name_precision", "name_recall", "call_precision", "call_recall", "call_f1", "order_lcs", "steps_ratio")
    assert [found[key] for key in rates] == [0.0] * 7


# --- BFCL ----------------------------------------------------------------------------------------

# Gold and schema of BFCL v3's simple_0, and calls as its checker judges them.
TRIANGLE = {"calculate_triangle_area": {"base": [10], "height": [5], "unit": ["units", ""]}}
TRIANGLE_SCHEMA = {
    "type": "object",
    "properties": {"base": {"type": "integer"}, "height": {"type": "integer"}, "unit": {"type": "string"}},
    "required": ["base", "height"],
}


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        ({"base": 10, "height": 5}, True),
        ({"base": 10, "height": 5, "unit": "Units"}, True),
        ({"base": 10, "height": 5, "unit": "cm"}, False),
        ({"base": 10}, False),
        ({"base": 10, "height": 5, "colour": "red"}, False),
        ({"base": "10", "height": 5}, False),
        ({"base": 10.0, "height": 5}, False),
        ({"base": True, "height": 5}, False),
    ],
)
def test_acceptable_values_are_judged_as_in_bfcl(arguments, right):
    made = [{"name": "calculate_triangle_area", "arguments": arguments}]
    assert measure(made, [TRIANGLE])["ast_ok"] is right
    assert measure(made, [TRIANGLE], tools={"calculate_triangle_area": TRIANGLE_SCHEMA})["ast_ok"] is right


@pytest.mark.parametrize(
    ("value", "acceptable", "kind", "right"),
    [
        ("New York, NY", ["New York NY", "NYC"], "string", True),
        ("it's", ['it"s'], None, True),
        (3, [3.0], "float", True),
        (3, [3.5], "number", False),
        ([1, 2], [[1, 2], [2, 1]], "array", True),
        ([1, 2.0], [[1, 2]], None, False),
        (["a b", "C"], [["ab", "c"]], None, True),
        ([1], [[1, 2]], None, False),
        ({"lat": 1, "name": "x"}, [{"lat": [1, 2], "name": ["X"]}], "dict", True),
        ({"lat": 3, "name": "x"}, [{"lat": [1, 2], "name": ["X"]}], "dict", False),
        ({"lat": 1}, [{"lat": [1], "name": ["x", ""]}], None, True),
        ({"lat": 1}, [{"lat": [1], "name": ["x"]}], None, False),
        ([{"a": 1}, {"a": 2}], [[{"a": [1]}, {"a": [2, 3]}]], "array", True),
        ([{"a": 1}, {"a": 4}], [[{"a": [1]}, {"a": [2, 3]}]], "array", False),
        ("radius", ["radius"], "integer", True),  # a variable, where the schema says a number
        (None, ["x"], None, False),
    ],
)
def test_values_of_every_type_are_judged_as_in_bfcl(value, acceptable, kind, right):
    assert value_ok(value, acceptable, kind) is right


def test_calls_are_judged_in_any_order_and_a_loose_one_takes_none_from_a_strict_one():
    loose, strict = {"f": {"x": [1, 2]}}, {"f": {"x": [1]}}
    expected = read_expected([loose, strict], "expected")
    for made in ([call("f", x=1), call("f", x=2)], [call("f", x=2), call("f", x=1)]):
        assert ast_ok(expected, [read_call(one, "made") for one in made])
    assert not ast_ok(expected, [read_call(call("f", x=1), "made")])


def test_plain_arguments_are_the_only_acceptable_values():
    expected = [call("f", city="New York", at={"lat": 1}, legs=[{"to": "A"}])]
    assert measure([call("f", city="new-york", at={"lat": 1}, legs=[{"to": "a"}])], expected)["ast_ok"] is True
    assert measure([call("f", city="Boston", at={"lat": 1}, legs=[{"to": "A"}])], expected)["ast_ok"] is False


# --- what cannot be meant ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("runs", "tools", "message"),
    [
        (pd.DataFrame({"tool_cals": [[]]}), None, "Did you mean 'tool_cals'"),
        ([{"tool_calls": []}], None, "runs is a list"),
        (pd.DataFrame({"tool_calls": [[5]], "run_id": ["r9"]}), None, r"run 'r9': tool_calls\[0\] is 5"),
        (pd.DataFrame({"tool_calls": [[]], "expected_tool_calls": [7]}), None, "expected_tool_calls=7"),
        (pd.DataFrame({"tool_calls": [[]]}), "add", "tools='add' should be a list"),
        (pd.DataFrame({"tool_calls": [[]]}), [{"nmae": "add"}], r"tools\[0\] is"),
        (pd.DataFrame({"tool_calls": [[]]}), {"add": {"type": "objekt"}}, "tools has 'add'"),
    ],
)
def test_what_cannot_be_measured_is_refused_by_name(runs, tools, message):
    with pytest.raises(InputError, match=message):
        tool_metrics(runs, tools)
