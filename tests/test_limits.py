"""Evaluators of cost, time, and of the order in which tools were called and agents took over."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpeval import score
from mcpeval.errors import InputError
from mcpeval.evaluators.adapting import as_evaluator
from mcpeval.evaluators.base import is_immediate
from mcpeval.evaluators.limits import CostLimit, LatencyLimit
from mcpeval.evaluators.sequences import AgentChain, Trajectory

F = {"name": "f", "arguments": {"x": 1, "y": "hello world"}}
G = {"name": "g", "arguments": {}}
H = {"name": "h", "arguments": {"q": "paris"}}


def made(evaluator, expected, came, **row):
    return evaluator.evaluate({"expected_tool_calls": expected, "tool_calls": came, **row})


def f(**arguments):
    return {"name": "f", "arguments": arguments}


# Cost and time


def test_a_cost_at_the_limit_passes():
    assert CostLimit(0.5).evaluate({"cost_usd": 0.5}).passed
    assert not CostLimit(0.5).evaluate({"cost_usd": 0.51}).passed
    assert not CostLimit(0).evaluate({"cost_usd": 0.01}).passed


def test_a_run_out_of_the_cache_costs_what_it_cost_when_it_was_paid():
    assert not CostLimit(0.5).evaluate({"cost_usd": 0.0, "metadata": {"saved_usd": 0.6}}).passed


@pytest.mark.parametrize("row", [{"cost_usd": None}, {"cost_usd": 0.0, "metadata": {"saved_usd": None}}])
def test_an_unknown_price_is_not_free(row):
    assert CostLimit(1.0).evaluate(row).status == "skipped"


def test_a_time_at_the_limit_passes():
    assert LatencyLimit(2).evaluate({"seconds": 2.0}).passed
    assert not LatencyLimit(2).evaluate({"seconds": 2.1}).passed
    assert LatencyLimit(2).evaluate({"seconds": None}).status == "skipped"


def test_limits_read_the_frame():
    frame = pd.DataFrame({"output": ["a", "b"], "cost_usd": [0.1, float("nan")], "seconds": [1.0, 40.0]})
    scores = score(frame, [CostLimit(), LatencyLimit()], cache=False)
    assert scores["status"].tolist() == ["ok", "ok", "skipped", "ok"]
    assert scores["score"].tolist()[:2] + scores["score"].tolist()[3:] == [1, 1, 0]
    with pytest.raises(InputError, match="'cost_usd', which is not there"):
        score(pd.DataFrame({"output": ["a"]}), CostLimit(), cache=False)


# Trajectories


@pytest.mark.parametrize(
    ("match", "expected", "came", "mark"),
    [
        ("exact", [F, G], [F, G], 1),
        ("exact", [F, G], [G, F], 0),
        ("exact", [F, G], [F, H], 0.5),
        ("exact", [F, G], [F], 0.5),
        ("exact", [F], [F, G, H], 1 / 3),  # what is not expected counts
        ("exact", [], [F], 0),
        ("exact", [F], [], 0),
        ("flexible", [F, G], [G, F], 1),
        ("flexible", [F], [F, G, H], 1),
        ("flexible", [F, F], [F], 0.5),
        ("flexible", [], [F], 1),
        ("subset", [F, G], [G, H, F], 1),
        ("superset", [F, G], [F], 1),
        ("superset", [F], [F, G], 0.5),
        ("superset", [F], [], 1),  # nothing was called that was not expected
    ],
)
def test_calls_are_matched_in_order_or_in_any(match, expected, came, mark):
    assert made(Trajectory(match), expected, came).score == pytest.approx(mark)


def test_forbidden_extra_calls_take_their_share():
    assert made(Trajectory("flexible", extra=False), [F], [F, G, H]).score == pytest.approx(1 / 3)
    assert made(Trajectory("exact", extra=True), [F], [F, G, H]).passed


@pytest.mark.parametrize(
    ("arguments", "expected", "came", "mark"),
    [
        ("exact", f(q=1), f(q=1, n=1), 0),
        ("exact", f(), f(z=1), 0),
        ("subset", f(x=1, y=2), f(x=1, z=3), 0.5),
        ("subset", f(), f(z=1), 1),
        ("regex", f(q="^par"), f(q="Paris"), 1),
        ("regex", f(q=1), f(q=1), 1),
        ("fuzzy", f(x=100), f(x=90), 0.9),
        ("fuzzy", f(x=100), f(x=50), 0),  # below argument_threshold
        ("fuzzy", f(q="new york city us"), f(q="New York City"), 0),
        ("fuzzy", f(x=0), f(x=1), 0),
        ("ignore", f(x=1), f(x=2), 1),
    ],
)
def test_arguments_are_compared_as_asked(arguments, expected, came, mark):
    assert made(Trajectory(arguments=arguments), [expected], [came]).score == pytest.approx(mark)


def test_names_are_compared_as_asked():
    weather = [{"name": "weather", "arguments": {}}]
    got = [{"name": "Get_Weather", "arguments": {}}]
    assert not made(Trajectory(), weather, got).passed
    assert made(Trajectory(names="contains"), weather, got).passed
    assert not made(Trajectory(names="regex"), weather, got).passed
    assert made(Trajectory(names="regex"), [{"name": "get_.*", "arguments": {}}], got).passed


def test_the_best_assignment_counts_and_not_the_first_that_fits():
    expected, came = [f(x=1), f(x=1, y=2)], [f(x=1, y=2), f(x=1)]
    assert made(Trajectory("flexible", arguments="subset"), expected, came).score == 1


def test_nothing_expected_and_nothing_called_is_marked_as_vacuous():
    score_ = made(Trajectory(), [], [])
    assert (score_.passed, score_.metadata["vacuous"]) == (True, True)
    assert made(Trajectory(), None, [F]).status == "skipped"


def test_the_turns_of_a_conversation_are_compared_each_with_its_own():
    def turn(*calls):
        uses = [{"id": "", "name": call["name"], "args": call["arguments"]} for call in calls]
        return {"intermediate_data": {"tool_uses": uses}}

    row = {"test_case": {"conversation": [turn(F), turn(G)]}, "metadata": {"conversation": [turn(F), turn(H)]}}
    assert made(Trajectory(), None, [], **row).metadata["turns"] == [1, 0]
    row["metadata"] = {"conversation": [turn(F)]}
    assert "1 turns instead of 2" in made(Trajectory(), None, [], **row).reason


def test_a_pattern_that_cannot_be_read_is_an_error_of_the_row():
    frame = pd.DataFrame(
        {"output": ["a"], "tool_calls": [[F]], "expected_tool_calls": [[{"name": "(", "arguments": {}}]]}
    )
    scores = score(frame, Trajectory(names="regex"), cache=False)
    assert scores["status"][0] == "error"
    assert "'(', which is no regular expression" in scores["error"][0]


# Agents


@pytest.mark.parametrize(
    ("match", "expected", "came", "mark", "passed"),
    [
        ("contains", ["root", "x"], ["x", "root"], 1, True),
        ("contains", ["root", "x", "y"], ["root", "x"], 2 / 3, False),
        ("exact", ["root", "x"], ["root", "x"], 1, True),
        ("exact", ["a", "b", "c", "d", "e"], ["a", "b", "c", "d"], 0.8, False),
        ("subset", ["root", "x"], ["root", "z", "x"], 1, True),
        ("subset", ["root", "x"], ["x", "root"], 0.5, False),
        ("flexible", ["a", "b", "c"], ["a", "b"], 2 / 3, False),
        ("contains", ["a"], [], 0, False),
    ],
)
def test_agents_are_matched_in_order_or_in_any(match, expected, came, mark, passed):
    found = AgentChain(match).evaluate({"expected_agents": expected, "agents": came, "output": ""})
    assert (found.score, found.passed) == (pytest.approx(mark), passed)


def test_an_agent_that_is_not_expected_fails_where_none_may_be():
    row = {"expected_agents": ["a"], "agents": ["a", "b"], "output": ""}
    assert AgentChain().evaluate(row).passed
    found = AgentChain(extra=False, threshold=0.5).evaluate(row)
    assert (found.score, found.passed) == (0.9, False)
    assert AgentChain(extra=False).evaluate({**row, "expected_agents": [], "expected_tool_calls": []}).passed is False


def test_agents_are_read_from_transfers_where_no_column_names_them():
    to = [{"name": "transfer_to_agent", "arguments": {"agent_name": "x"}}]
    found = AgentChain().evaluate({"expected_tool_calls": to, "tool_calls": [F, *to], "output": ""})
    assert (found.score, found.reason) == (1, "contains 1.00, threshold 1; expected: x; came: x")
    assert AgentChain().evaluate({"output": ""}).status == "skipped"


# What holds for all


EVERY = [
    *[CostLimit(), LatencyLimit(), AgentChain(), AgentChain("exact"), AgentChain("subset", extra=False)],
    *[Trajectory(match, how) for match in ("exact", "flexible", "superset") for how in ("exact", "subset", "fuzzy")],
]


@pytest.mark.parametrize("evaluator", EVERY, ids=repr)
def test_an_evaluator_of_limits_answers_at_once_and_is_a_value(evaluator):
    assert is_immediate(as_evaluator(evaluator))
    assert hash(evaluator) == hash(type(evaluator)(**vars(evaluator)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: CostLimit(-1),
        lambda: LatencyLimit("long"),
        lambda: Trajectory("exactly"),
        lambda: Trajectory(extra="no"),
        lambda: Trajectory(threshold=2),
        lambda: AgentChain("any"),
    ],
)
def test_an_argument_without_meaning_is_refused_when_the_evaluator_is_made(make):
    with pytest.raises(InputError):
        make()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)
CALLS = st.lists(st.fixed_dictionaries({"name": st.sampled_from("fgh"), "arguments": JSON}), max_size=3)


@given(CALLS, CALLS)
def test_no_arguments_make_an_evaluator_of_calls_raise(expected, came):
    for evaluator in EVERY:
        found = made(evaluator, expected, came, output="x", cost_usd=0.0, seconds=1.0)
        assert math.isnan(found.score) or 0 <= found.score <= 1
