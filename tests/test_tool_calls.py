"""`tool_call` and `tool_calls`: the best matching, reasons that say what was wrong, options that are checked."""

from __future__ import annotations

import itertools
import json
import math
import re
import subprocess
import sys
from types import ModuleType
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from mcpeval import stats
from mcpeval.errors import InputError
from mcpeval.evaluators.adapting import as_evaluator
from mcpeval.evaluators.base import is_immediate
from mcpeval.evaluators.matching import best_pairs, in_order, in_partial_order
from mcpeval.evaluators.tool_use import assert_tool_calls, tool_call, tool_calls
from mcpeval.scoring import score
from mcpeval.types import Run, Score
from mcpeval.types import ToolCall as OurToolCall


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def say(expected: Any, made: list[Any], **options: Any) -> Score:
    return tool_calls(expected, **options).evaluate({"tool_calls": made})


def matched(found: Score) -> list[bool]:
    return [one["matched"] for one in found.metadata["calls"]]


# --- one call ------------------------------------------------------------------------------------


def test_a_tool_call_is_an_evaluator_named_as_it_is_written():
    flight = tool_call("book_flight", from_city="NYC", to_city="LA")
    assert flight.name == "book_flight(from_city='NYC', to_city='LA')"
    assert flight.kind == "tool_calls"
    made = [call("search"), call("book_flight", to_city="LA", from_city="NYC")]
    assert flight.evaluate({"tool_calls": made}).passed is True
    assert flight.evaluate({"tool_calls": made[:1]}).passed is False


def test_an_argument_may_be_called_as_a_keyword_of_ours():
    found = tool_call("f", name="x", args="y", score=1)
    assert found.evaluate({"tool_calls": [call("f", name="x", args="y", score=1)]}).passed is True


def test_tool_calls_takes_what_tool_call_makes():
    found = say([tool_call("a", x=1), call("b")], [call("b"), call("a", x=1)])
    assert (found.passed, found.metadata["matched"]) == (True, 2)


@pytest.mark.parametrize(
    ("mode", "made", "passes"),
    [
        ("exact", {"x": 1, "y": 2}, True),
        ("exact", {"x": 1}, False),
        ("exact", {"x": 1, "y": 2, "z": 3}, False),
        ("subset", {"x": 1}, True),
        ("subset", {}, True),
        ("subset", {"x": 1, "y": 2, "z": 3}, False),
        ("subset", {"x": 9}, False),
        ("superset", {"x": 1, "y": 2, "z": 3}, True),
        ("superset", {"x": 1}, False),
        ("superset", {"x": 1, "y": 9}, False),
        ("ignore", {"q": 0}, True),
    ],
)
def test_arguments_are_compared_as_asked(mode, made, passes):
    assert say([call("f", x=1, y=2)], [{"name": "f", "arguments": made}], args=mode).passed is passes


def test_every_difference_is_in_the_reason():
    found = say([call("f", x=1, y="a", z=[1])], [call("f", x=2, z=[1], w=None)])
    assert found.reason == (
        "0 of 1 expected calls made. f(x=1, y='a', z=[1]): "
        "arg 'x': expected 1, got 2; arg 'y': missing (expected 'a'); arg 'w': unexpected, got None"
    )
    assert found.metadata["calls"] == [
        {
            "call": 0,
            "matched": False,
            "differences": [
                "arg 'x': expected 1, got 2",
                "arg 'y': missing (expected 'a')",
                "arg 'w': unexpected, got None",
            ],
        }
    ]


def test_arguments_that_are_no_json_object_are_a_difference_whatever_they_say():
    found = say([call("f", x=1)], [{"name": "f", "arguments": '{"x": 1'}])
    assert found.reason.endswith("""f(x=1): arguments: expected a JSON object, got '{"x": 1'""")


def test_a_callable_says_whether_arguments_will_do():
    def near(expected, made):
        return abs(expected["x"] - made["x"]) < 0.5

    assert say([call("f", x=1)], [call("f", x=1.2)], args=near).passed is True
    assert say([call("f", x=1)], [call("f", x=1.7)], args=near).passed is False
    assert say([call("f", x=1)], [call("g", x=1)], args=near).passed is False


def test_a_callable_may_say_how_alike_arguments_are():
    def alike(expected, made):
        return 1 - abs(expected["x"] - made["x"]) / 10

    made = [call("f", x=9), call("f", x=2)]
    found = say([call("f", x=1)], made, args=alike, score="weighted", weights={"name": 0, "params": 1, "order": 0})
    assert (found.score, found.passed) == (pytest.approx(0.9), False)
    assert found.metadata["calls"][0]["call"] == 1


def test_only_a_callable_may_wait():
    assert is_immediate(tool_calls([call("f")]))
    assert not is_immediate(tool_calls([call("f")], args=lambda expected, made: True))


@pytest.mark.parametrize(
    ("names", "expected", "made", "passes"),
    [
        ("exact", "f", "F", False),
        ("casefold", "straße_f", "STRASSE_F", True),
        ("regex", "get_(user|order)", "get_user", True),
        ("regex", "get_", "get_user", False),
        (re.compile(r"^(?:[a-z]+__)?(\w+)$"), "get_user", "crm__get_user", True),
        (re.compile(r"^(?:[a-z]+__)?(\w+)$"), "get_user", "crm__get_order", False),
        (re.compile("x+"), "f", "f", True),
    ],
)
def test_names_are_compared_as_asked(names, expected, made, passes):
    assert say([call(expected)], [call(made)], names=names).passed is passes


def test_a_server_that_is_expected_has_to_be_the_one_called():
    expected = [{**call("add", a=1), "server": "left"}]
    assert say(expected, [{**call("add", a=1), "server": "left"}]).passed is True
    assert say(expected, [call("add", a=1)]).passed is True  # a transcript that does not know servers
    found = say(expected, [{**call("add", a=1), "server": "right"}])
    assert "server: expected 'left', got 'right'" in found.reason


def test_acceptable_values_and_arguments_that_may_be_left_out():
    expected = [{"name": "f", "acceptable": {"x": [1, 2], "unit": ["km", ""]}}]
    assert say(expected, [call("f", x=2)]).passed is True
    assert say(expected, [call("f", x=2, unit="km")]).passed is True
    wrong, without = say(expected, [call("f", x=3)]), say(expected, [call("f", unit="km")])
    assert (wrong.passed, without.passed) == (False, False)
    assert wrong.reason.endswith("arg 'x': expected one of [1, 2], got 3")
    assert without.reason.endswith("arg 'x': missing (expected one of [1, 2])")


def test_only_the_arguments_named_are_compared():
    expected = [{**call("transfer", to="a", summary="long"), "compare_args": ["to"]}]
    assert say(expected, [call("transfer", to="a", summary="other", more=1)]).passed is True
    assert say(expected, [call("transfer", to="b", summary="long")]).passed is False
    assert say(expected, [call("transfer")], args="subset").passed is False
    assert say([{**call("transfer", to="a"), "compare_args": []}], [call("transfer")]).passed is True


def test_a_forbidden_call_fails_the_row_and_is_named():
    expected = [call("read"), {"name": "delete", "forbidden": True}, {**call("send", to="all"), "forbidden": True}]
    assert say(expected, [call("read"), call("send", to="me"), call("list")]).passed is True
    found = say(expected, [call("read"), call("delete", id=1)])
    assert (found.passed, found.metadata["forbidden"]) == (False, [1])
    assert found.reason == "1 of 1 expected calls made. forbidden: delete(id=1)"
    assert say(expected[1:2], []).reason == "no call expected, any but the forbidden allowed"
    assert "vacuous" not in say(expected[1:2], []).metadata


# --- many calls ----------------------------------------------------------------------------------


def test_the_matching_is_optimal_where_a_greedy_one_fails():
    loose, strict = call("f"), call("f", x=1)  # at least these: the loose one takes either
    made = [call("f", x=1), call("f", x=2)]
    found = say([loose, strict], made, args="superset")
    assert (found.passed, [one["call"] for one in found.metadata["calls"]]) == (True, [1, 0])


def test_what_is_not_matched_stands_beside_what_comes_closest():
    made = [call("g", x=1, y=2), call("f", x=9, y=9), call("f", x=1, y=9)]
    [about] = say([call("f", x=1, y=2)], made).metadata["calls"]
    assert (about["call"], about["differences"]) == (2, ["arg 'y': expected 2, got 9"])


def test_a_call_stands_for_one_expected_call_only():
    found = say([call("f", x=1), call("f", x=1)], [call("f", x=1)])
    assert matched(found) == [True, False]
    assert found.reason == "1 of 2 expected calls made. f(x=1): not made"


def test_extra_calls_are_allowed_unless_forbidden_and_then_named():
    made = [call("f"), call("g", x=1), call("h")]
    assert say([call("f")], made).passed is True
    found = say([call("f")], made, extra="forbid", score="recall")
    assert (found.passed, found.score, found.metadata["extra"]) == (False, 1.0, [1, 2])
    assert found.reason == "1 of 1 expected calls made. unexpected: g(x=1). unexpected: h()"


def test_a_long_list_of_differences_is_cut_in_the_reason_and_whole_in_the_metadata():
    found = say([call("f", x=i) for i in range(20)], [])
    assert found.reason.count("not made") == 5
    assert found.reason.endswith("and 15 more")
    assert len(found.metadata["calls"]) == 20


ABC = [call("a"), call("b"), call("c")]


@pytest.mark.parametrize(
    ("order", "made", "in_place"),
    [
        ("any", "cab", [True, True, True]),
        ("strict", "abc", [True, True, True]),
        ("strict", "abcd", [True, True, True]),
        ("strict", "xabc", [False, False, False]),
        ("strict", "axc", [True, False, True]),
        ("strict", "ab", [True, True, False]),
        ("lcs", "xaxbxcx", [True, True, True]),
        ("lcs", "acb", [True, False, True]),
        ("lcs", "cba", [False, False, True]),
        ("lcs", "cbabc", [True, True, True]),
    ],
)
def test_calls_have_to_be_in_the_order_asked(order, made, in_place):
    found = say(ABC, [call(name) for name in made], order=order)
    assert sum(matched(found)) == sum(in_place)
    if order != "lcs":
        assert matched(found) == in_place
    assert found.passed is all(in_place)


def test_a_call_that_is_out_of_order_is_said_to_be():
    found = say([call("a"), call("b")], [call("b"), call("a")], order="lcs")
    assert found.reason.endswith("made out of order")
    assert found.reason.startswith("1 of 2 expected calls made in order")


DIAMOND = [
    {**call("start"), "id": "s"},
    {**call("left"), "after": "s"},
    {**call("right"), "depends_on": [0]},
    {**call("end"), "after": ["left", "right"]},
]


@pytest.mark.parametrize(
    ("made", "passes", "hits"),
    [
        ("start left right end", True, 4),
        ("start right x left end", True, 4),
        ("left start right end", False, 2),
        ("start left end right", False, 3),
        ("left start left right end", True, 4),
        ("left right end", False, 0),
    ],
)
def test_a_call_comes_after_those_it_depends_on(made, passes, hits):
    found = say(DIAMOND, [call(name) for name in made.split()], order="dag")
    assert (found.passed, found.metadata["matched"]) == (passes, hits)


def test_what_a_call_comes_after_counts_no_forbidden_calls():
    expected = [{"name": "x", "forbidden": True}, {**call("a"), "id": "A"}, {**call("b"), "after": "A"}]
    assert say(expected, [call("a"), call("b")], order="dag").passed is True
    assert say(expected, [call("b"), call("a")], order="dag").passed is False


FOUND = st.integers(1, 4).flatmap(
    lambda columns: st.lists(st.lists(st.booleans(), min_size=columns, max_size=columns), min_size=1, max_size=4)
)


def every_pairing(found):
    """Every one-to-one set of pairs (row, column) with found[row][column]."""
    rows, columns = range(len(found)), range(len(found[0]))
    for n in range(min(len(found), len(found[0])) + 1):
        for some in itertools.combinations(rows, n):
            for places in itertools.permutations(columns, n):
                if all(found[row][column] for row, column in zip(some, places)):
                    yield dict(zip(some, places))


@given(FOUND)
@settings(max_examples=150, deadline=None)
def test_no_pairing_has_more_hits_than_the_one_found(found):
    pairs = best_pairs([[0 if hit else 3 for hit in row] for row in found])
    assert len(set(pairs.values())) == len(pairs)
    assert sum(found[row][column] for row, column in pairs.items()) == max(map(len, every_pairing(found)))


@given(FOUND)
@settings(max_examples=150, deadline=None)
def test_no_rising_pairing_is_longer_than_the_one_found(found):
    def rises(pairs):
        return all(a < b for a, b in itertools.pairwise(pairs[row] for row in sorted(pairs)))

    pairs = in_order(found)
    assert rises(pairs) and all(found[row][column] for row, column in pairs.items())
    assert len(pairs) == max(len(other) for other in every_pairing(found) if rises(other))


@given(FOUND, st.data())
@settings(max_examples=300, deadline=None)
def test_no_pairing_that_keeps_the_partial_order_is_longer_than_the_one_found(found, data):
    after = [data.draw(st.sets(st.integers(0, row - 1)) if row else st.just(set())) for row in range(len(found))]

    def keeps(pairs):
        return all(before in pairs and pairs[before] < pairs[row] for row in pairs for before in after[row])

    pairs = in_partial_order(found, [sorted(rows) for rows in after])
    assert keeps(pairs) and all(found[row][column] for row, column in pairs.items())
    assert len(pairs) == max(len(other) for other in every_pairing(found) if keeps(other))


def test_many_calls_that_stand_for_each_other_are_still_ordered():
    links = [{**call("f", x=i), "id": str(i), **({"after": str(i - 2)} if i > 1 else {})} for i in range(30)]
    found = say(links, [call("f", x=0)] * 40, order="dag", args="ignore")
    assert (found.passed, found.metadata["matched"]) == (True, 30)


def test_the_assignment_is_the_one_of_scipys_documentation():
    # scipy.optimize.linear_sum_assignment's example: cost 5 on columns 1, 0, 2.
    costs = [[4, 1, 3], [2, 0, 5], [3, 2, 2]]
    assert stats.assignment([[-c for c in row] for row in costs]).tolist() == [1, 0, 2]
    assert stats.assignment([[1.0], [2.0]]).tolist() == [-1, 0]


# --- scores --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value"),
    [("pass", 0.0), ("recall", 1 / 2), ("precision", 1 / 3), ("f1", 2 / 5)],
)
def test_graded_scores_are_shares_of_calls(kind, value):
    found = say([call("a"), call("b")], [call("a"), call("x"), call("y")], score=kind)
    assert (found.score, found.passed) == (pytest.approx(value), False)


def test_the_weighted_score_is_made_of_names_arguments_and_order():
    found = say([call("a", x=1, y=2), call("b"), call("c")], [call("b"), call("a", x=1, y=9)], score="weighted")
    # two of three names, arguments (1/2 + 1) / 2, two names in order of which one survives: 1/3
    assert found.score == pytest.approx(0.4 * 2 / 3 + 0.4 * 0.75 + 0.2 * 1 / 3)


@pytest.mark.parametrize("kind", ["pass", "recall", "precision", "f1", "weighted"])
def test_nothing_expected_and_nothing_done_is_a_whole_score(kind):
    for extra in ("allow", "forbid"):
        found = say([], [], score=kind, extra=extra)
        assert (found.score, found.passed, found.metadata.get("vacuous", False)) == (1.0, True, extra == "allow")
        assert found.reason.startswith("vacuous") is (extra == "allow")


def test_nothing_expected_and_something_done_has_no_recall():
    found = say([], [call("f")], score="recall")
    assert found.status == "skipped" and math.isnan(found.score) and found.passed is None
    assert say([], [call("f")], score="precision").score == 0.0
    assert say([], [call("f")], score="f1").score == 0.0
    assert say([], [call("f")], extra="forbid").reason == "no call expected. unexpected: f()"


# --- rows and frames -----------------------------------------------------------------------------


def frame(**columns: list[Any]) -> pd.DataFrame:
    n = len(next(iter(columns.values())))
    return pd.DataFrame({"run_id": [f"r{i}" for i in range(n)], "output": [""] * n, **columns})


def test_each_row_has_its_own_expected_calls():
    runs = frame(tool_calls=[[call("a")], [call("a")], []], expected_tool_calls=[[call("a")], [call("b")], None])
    scores = score(runs, tool_calls(), cache=False)
    assert scores["passed"].tolist()[:2] == [True, False]
    assert scores["status"].tolist() == ["ok", "ok", "skipped"]
    assert scores["kind"].tolist() == ["tool_calls"] * 3
    assert scores["reason"].tolist()[2] == "the run has no expected_tool_calls"


def test_our_own_calls_are_read_and_so_are_other_systems_spellings():
    made = [
        OurToolCall("s", "f", {"x": 1}),
        {"tool_name": "f", "tool_parameters": {"x": 1}},
        {"name": "f", "kwargs": {"x": 1}},
        {"name": "f", "args": {"x": 1}},
        {"type": "tool_use", "name": "f", "input": {"x": 1}},
        {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
        {"functionCall": {"name": "f", "args": {"x": 1}}},
        {"f": {"x": [1]}},
    ]
    for one in made[:-1]:
        assert say([call("f", x=1)], [one]).passed is True
    for one in made:
        assert say([one], [call("f", x=1)]).passed is True


def test_calls_are_found_in_messages_where_there_is_no_list_of_them():
    message = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"x": 1}'}}]}
    runs = frame(messages=[[message], [], None])
    scores = score(runs, [tool_calls([call("f", x=1)])], cache=False)
    assert scores["status"].tolist() == ["ok", "ok", "skipped"]
    assert scores["passed"].tolist()[:2] == [True, False]
    assert scores["reason"].tolist()[2] == "the run has no tool_calls and no messages"


def test_runs_as_objects_are_scored():
    run = Run("done", tool_calls=[OurToolCall("s", "f", {"x": 1})])
    assert score([run], [tool_call("f", x=1)], cache=False)["passed"].tolist() == [True]


def test_lists_that_are_json_text_are_read():
    row = {"tool_calls": json.dumps([call("f", x=1)]), "expected_tool_calls": json.dumps([call("f", x=1)])}
    assert tool_calls().evaluate(row).passed is True


def test_a_cell_that_is_no_list_of_calls_is_an_error_of_its_row_and_no_low_score():
    runs = frame(tool_calls=[[{"nmae": "f"}], 5, [call("f")]], expected_tool_calls=[[call("f")]] * 3)
    scores = score(runs, [tool_calls()], cache=False)
    assert scores["status"].tolist() == ["error", "error", "ok"]
    assert "tool_calls[0]" in scores["error"].iloc[0]
    assert scores["score"].isna().tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("columns", "word"),
    [
        ({"tool_cals": [[]], "expected_tool_calls": [[]]}, "Did you mean 'tool_cals'"),
        ({"tool_calls": [[]], "expected_calls": [[]]}, "Did you mean 'expected_calls'"),
    ],
)
def test_a_missing_column_is_an_error_before_anything_is_scored(columns, word):
    with pytest.raises(InputError, match=word):
        score(frame(**columns), [tool_calls()], cache=False)


def test_an_evaluator_can_be_renamed_and_compared():
    named = as_evaluator(tool_calls([call("f")]), name="calls f")
    assert named.name == "calls f"
    assert named.evaluate({"tool_calls": [call("f")]}).passed is True
    assert tool_calls([call("f")]) == tool_calls([call("f")])
    scores = score(frame(tool_calls=[[call("f")]]), {"x": tool_calls([call("f")])}, cache=False)
    assert scores["evaluator"].tolist() == ["x"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
CALLS = st.lists(st.fixed_dictionaries({"name": st.sampled_from("fgh"), "arguments": JSON}))


@given(CALLS, CALLS, st.sampled_from(["exact", "subset", "superset", "ignore"]), st.sampled_from(["any", "lcs", "dag"]))
@settings(max_examples=150, deadline=None)
def test_no_arguments_make_it_raise(made, expected, args, order):
    expected = [one for one in expected if isinstance(one["arguments"], dict)]
    for kind in ("pass", "weighted"):
        found = say(expected, made, args=args, order=order, score=kind)
        assert 0 <= found.score <= 1
    tool_calls(expected, compat="mcpeval-salesforce").evaluate({"tool_calls": made})


# --- what cannot be meant ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"args": "exakt"}, "args='exakt'. Did you mean 'exact'"),
        ({"order": "stric"}, "order='stric'. Did you mean 'strict'"),
        ({"extra": "forbidden"}, "extra='forbidden'. Did you mean 'forbid'"),
        ({"names": "casfold"}, "names='casfold'. Did you mean 'casefold'"),
        ({"score": "presicion"}, "score='presicion'. Did you mean 'precision'"),
        ({"compat": "mcpeval-salesfroce"}, "Did you mean 'mcpeval-salesforce'"),
        ({"compat": "mcpeval-salesforce", "order": "lcs"}, "order='lcs' has no say beside compat="),
        ({"weights": {"nmae": 0.4}}, "weights has 'nmae'. Did you mean 'name'"),
        ({"weights": {"name": 0.9}}, "should make 1 together"),
        ({"weights": {"name": "much"}}, "should be a number from 0 to 1"),
        ({"thresholds": [0.5]}, "should be a dict"),
    ],
)
def test_an_unknown_keyword_value_is_refused_with_the_nearest_spelling(options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        tool_calls([call("f")], **options)


def test_an_async_callable_is_refused():
    async def later(expected, made):
        return True

    with pytest.raises(InputError, match="async"):
        tool_calls([call("f")], args=later)


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        (call("f"), "expected={'name': 'f', 'arguments': {}} (dict) should be a list"),
        ([5], "expected[0] is 5 (int)"),
        (["f"], "expected[0] is 'f', which says no arguments"),
        ([call("f"), {"arguments": {}}], "expected[1] is"),
        ([{"name": "f", "argumnets": {}}], "expected[0] has the unknown key 'argumnets'. Did you mean 'arguments'"),
        ([{"name": "f", "arguments": [1]}], "expected[0]: the arguments [1] should be a JSON object"),
        ([{"name": "f", "acceptable": {"x": 1}}], "expected[0]: acceptable="),
        ([{**call("f"), "compare_args": "x"}], "expected[0]: compare_args='x'"),
        ([{**call("f"), "forbidden": "yes"}], "expected[0]: forbidden='yes'"),
        ([call("f"), {**call("g"), "after": "ff"}], "expected[1] comes after 'ff', which is no expected call"),
        ([{**call("f"), "after": 3}], "expected[0] comes after 3"),
        ([call("f"), call("f"), {**call("g"), "after": "f"}], "the name of 2 expected calls; give each an id"),
        ([{**call("f"), "after": "g"}, {**call("g"), "after": "f"}], "the calls at [0, 1] come after each other"),
        ([{"name": "f", "forbidden": True}, {**call("g"), "after": 0}], "which is forbidden"),
    ],
)
def test_an_expected_call_that_cannot_be_meant_is_refused_where_it_stands(expected, message):
    with pytest.raises(InputError, match=re.escape(message)):
        tool_calls(expected)


def test_a_name_that_is_no_pattern_is_refused():
    with pytest.raises(InputError, match=r"the name '\(' is no pattern"):
        tool_calls([call("(")], names="regex")


def test_names_of_tools_are_enough_where_arguments_do_not_matter():
    assert say(["search", "book"], [call("book", x=1), call("search", y=2)], args="ignore").passed is True


# --- assert_tool_calls ---------------------------------------------------------------------------


def test_assert_tool_calls_is_silent_when_all_pass_and_names_what_did_not():
    runs = frame(tool_calls=[[call("f", x=1)], [call("f", x=2)], [call("f", x=1)]])
    scores = score(runs, {"call": tool_call("f", x=1), "other": lambda output: False}, cache=False)
    assert_tool_calls(scores[scores["run_id"] != "r1"])
    with pytest.raises(AssertionError) as failure:
        assert_tool_calls(scores, message="booking")
    assert str(failure.value) == (
        "booking\n1 of 3 tool-call scores did not pass\n"
        "  r1, call: 0 of 1 expected calls made. f(x=1): arg 'x': expected 1, got 2"
    )


def test_assert_tool_calls_fails_on_nothing_and_on_what_could_not_be_scored():
    with pytest.raises(AssertionError, match="no tool-call scores"):
        assert_tool_calls(score(frame(tool_calls=[[]]), {"x": lambda output: True}, cache=False))
    with pytest.raises(AssertionError, match="the run has no tool_calls"):
        assert_tool_calls(tool_call("f").evaluate({}))
    assert_tool_calls([say([call("f")], [call("f")])])


# --- russo's evaluators --------------------------------------------------------------------------


def test_an_evaluator_of_russos_kind_is_given_russos_own_calls_where_russo_is_imported(monkeypatch):
    class ToolCall(BaseModel):
        name: str
        arguments: dict[str, Any] = {}

    class ToolCallMatch(BaseModel):
        expected: ToolCall
        actual: ToolCall | None = None
        matched: bool = False
        details: str = ""

    class EvalResult(BaseModel):
        passed: bool
        expected: list[ToolCall]
        actual: list[ToolCall]
        matches: list[ToolCallMatch] = []
        match_rate: float = 0.5

    class Picky:
        def evaluate(self, expected, actual):
            matches = [ToolCallMatch(expected=expected[0], details="no")]  # pydantic takes no other class
            return EvalResult(passed=False, expected=expected, actual=actual, matches=matches)

    russo = ModuleType("russo")
    russo.ToolCall = ToolCall
    monkeypatch.setitem(sys.modules, "russo", russo)
    runs = frame(tool_calls=[[call("f")]], expected_tool_calls=[[call("f")]])
    [row] = score(runs, [Picky()], cache=False).to_dict("records")
    assert (row["evaluator"], row["kind"], row["score"], row["passed"]) == ("Picky", "tool_calls", 0.5, False)
    assert row["reason"] == "0 of 1 expected calls matched. no"


def test_another_answer_of_such_an_evaluator_is_taken_as_it_is():
    class Half:
        def evaluate(self, expected, actual):
            return 0.5

    runs = frame(tool_calls=[[], None], expected_tool_calls=[[call("f")]] * 2)
    scores = score(runs, {"half": Half()}, cache=False)
    assert scores["score"].tolist()[0] == 0.5
    assert scores["status"].tolist() == ["ok", "skipped"]


def test_a_missing_column_is_named_for_russos_evaluators_too():
    class Never:
        def evaluate(self, expected, actual):
            raise RuntimeError

    with pytest.raises(InputError, match="'Never' reads the column 'expected_tool_calls'"):
        score(frame(tool_calls=[[]]), [Never()], cache=False)


def test_what_russos_evaluators_cannot_know_is_said():
    class Any_:
        def evaluate(self, expected, actual):
            return True

    runs = frame(tool_calls=[[]], expected_tool_calls=[[{"name": "f", "forbidden": True}]])
    assert "russo's evaluators know neither" in score(runs, [Any_()], cache=False)["error"].iloc[0]


def test_russo_is_never_imported():
    code = "import sys, mcpeval.interop.russo; print([name for name in ('russo', 'scipy') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_what_is_no_scores_is_refused_by_name():
    with pytest.raises(InputError, match="assert_tool_calls: scores=3 should be a scores frame"):
        assert_tool_calls(3)
