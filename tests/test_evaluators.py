"""Evaluators: what may be one, what it may answer, registered functions, and whose fault an error is."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import math
import os
import threading
from difflib import SequenceMatcher
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mcpeval.errors import CacheMiss, ChainError, InputError, ModelError, ServerError, did_you_mean
from mcpeval.evaluators import (
    Context,
    FunctionResult,
    Rule,
    as_evaluator,
    as_evaluators,
    chains,
    compare_func,
    eval_func,
    evaluate_row,
    evaluator,
    required_columns,
    rule,
    to_score,
    to_scores,
)
from mcpeval.types import Score, ToolCall, Usage

ROW = {"output": "Paris", "question": "Which city?", "reference": "Paris", "n": 3}


def ask(given: Any, row: dict[str, Any] | None = None, context: Context | None = None, **more: Any):
    return asyncio.run(evaluate_row(as_evaluator(given), ROW if row is None else row, context, **more))


def one(given: Any, *args: Any, **more: Any) -> Score:
    [(_, score)] = ask(given, *args, **more)
    return score


@pytest.fixture
def registered():
    """Names registered in a test are gone after it."""
    steps, comparisons = dict(chains.STEPS), dict(chains.COMPARISONS)
    yield
    for table, before in ((chains.STEPS, steps), (chains.COMPARISONS, comparisons)):
        table.clear()
        table.update(before)


# Answers


@pytest.mark.parametrize(
    ("answer", "score", "passed"),
    [
        (True, 1.0, True), (False, 0.0, False), (0.5, 0.5, None), (1, 1.0, True), (np.True_, 1.0, True),
        (np.float32(0.25), 0.25, None), (np.int64(0), 0.0, False), (np.array(0.5), 0.5, None),
    ],
)  # fmt: skip
def test_a_loose_answer_is_a_score(answer, score, passed):
    made = to_score(answer)
    assert (made.score, made.passed, made.status) == (score, passed, "ok")
    assert type(made.score) is float


def test_a_reason_may_come_with_it():
    assert (to_score((True, "good")).reason, to_score((0.5, None)).reason) == ("good", "")
    assert to_score((np.False_, "bad")).passed is False


@pytest.mark.parametrize("answer", [None, float("nan"), pd.NA, pd.NaT, np.nan, (None, "nothing to say")])
def test_nothing_is_skipped_and_never_a_low_score(answer):
    made = to_score(answer)
    assert made.status == "skipped"
    assert math.isnan(made.score)


def test_a_score_stays_as_it_is():
    made = Score(0.5, "half", usage=Usage(calls=1), metadata={"a": 1})
    assert to_score(made) is made
    assert one(lambda output: made) is made


def test_a_mapping_of_names_is_several_scores():
    named = to_scores({"fluent": True, "true": (0.5, "half")}, "quality")
    assert [(name, score.score) for name, score in named] == [("quality.fluent", 1.0), ("quality.true", 0.5)]
    assert to_scores({"score": 0.5, "reason": "half"}, "quality") == [("quality", Score(0.5, "half"))]


@pytest.mark.parametrize("answer", [1.5, -0.1, 7, float("inf"), "yes", [1], 1j, (1.0, 2), object()])
def test_an_answer_that_cannot_be_meant_is_an_error_that_names_evaluator_and_value(answer):
    score = one(evaluator(lambda output: answer, name="mine"))
    assert score.status == "error"
    assert math.isnan(score.score)
    assert "evaluator 'mine'" in score.reason
    assert f"{answer!r:.50}" in score.reason


# Functions


def test_a_function_gets_the_row_or_the_columns_it_names():
    assert one(lambda row: row["output"] == row["reference"]).passed
    assert one(lambda output, reference: output == reference).passed
    assert one(lambda output, missing="x": missing == "x").passed
    assert one(lambda output, n=0: n == 3).passed
    assert one(lambda output, **columns: set(columns) == {"question", "reference", "n"}).passed
    assert required_columns(as_evaluator(lambda output, reference, n=0: True)) == ("output", "reference")
    assert required_columns(as_evaluator(lambda row: True)) == ()


def test_an_async_function_runs_on_the_loop_and_a_plain_one_beside_it():
    threads = []

    async def waits(output):
        threads.append(threading.current_thread())
        await asyncio.sleep(0)
        return True

    def blocks(output):
        threads.append(threading.current_thread())
        return True

    assert one(waits).passed
    assert one(functools.partial(waits)).passed
    assert one(blocks).passed
    assert one(lambda output: waits(output)).passed
    assert [thread is threading.main_thread() for thread in threads] == [True, True, False, True]


def test_a_decorated_function_can_still_be_called():
    @evaluator(name="is short")
    def short(output):
        return len(output) < 10

    @evaluator
    def capital(output, reference):
        return output == reference

    assert short("abc") is True
    assert (short.name, capital.name) == ("is short", "capital")
    assert one(short).passed
    assert one(capital).passed


def test_names_come_from_functions():
    def exact(output):
        return True

    assert [e.name for e in as_evaluators([exact, lambda output: 1])] == ["exact", "lambda"]
    assert as_evaluator(functools.partial(exact)).name == "exact"
    assert as_evaluator(exact, name="mine").name == "mine"
    assert [e.name for e in as_evaluators({"a": exact, "b": rule("json"), "c": exact})] == ["a", "b", "c"]


def test_a_name_used_twice_is_refused():
    with pytest.raises(InputError, match="'lambda' 2 times"):
        as_evaluators([lambda output: True, lambda output: False])


@pytest.mark.parametrize(
    "given", [len, lambda: True, lambda *outputs: True, 3, "json -> get(city)", None, Rule, [rule("")]]
)
def test_what_is_no_evaluator_is_refused_before_anything_is_scored(given):
    with pytest.raises(InputError):
        as_evaluator(given)


def test_a_dict_is_a_rule_and_may_bear_a_name():
    assert one({"func": "", "op": "=", "value": "Paris"}).passed
    assert as_evaluator({"func": "json", "name": "is JSON"}).name == "is JSON"
    assert as_evaluator({"func": "json"}, name="mine").name == "mine"
    assert as_evaluators({"func": "json", "op": "=", "value": 1})[0].name == "json = 1"


def test_an_object_with_evaluate_is_an_evaluator():
    class Polite:
        def evaluate(self, row):
            return "please" in row["output"], "says please"

    class Asks:
        name = "asks"
        columns = ("question",)

        async def evaluate(self, row, context):
            return context.cache == "the cache"

    assert as_evaluator(Polite()).name == "Polite"
    assert one(Polite()).passed is False
    assert as_evaluator(Asks()).name == "asks"
    assert one(Asks(), context=Context(cache="the cache")).passed
    renamed = as_evaluator(Asks(), name="again")
    assert (renamed.name, required_columns(renamed)) == ("again", ("question",))
    assert one(renamed, context=Context(cache="the cache")).passed


def test_a_signature_that_nobody_knows_is_refused():
    class Compares:
        def evaluate(self, wanted, found):
            return wanted == found

    with pytest.raises(InputError, match=r"evaluate\(wanted, found\)"):
        as_evaluator(Compares())


def test_the_adapter_of_another_systems_signature_is_loaded_when_it_is_met():
    class Passes:
        def evaluate(self, test_case, response):
            return response["content"] == "Paris"

    assert one(Passes()).passed


# Crashes


def test_a_crash_is_a_row_of_status_error_with_its_traceback():
    def broken(output):
        return 1 / 0

    score = one(broken)
    assert (score.status, score.error) == ("error", "ZeroDivisionError: division by zero")
    assert math.isnan(score.score)
    assert "return 1 / 0" in score.metadata["traceback"]
    with pytest.raises(ZeroDivisionError):
        one(broken, isolate=False)


def test_what_a_future_cannot_carry_is_a_row_like_any_other():
    def times_out(output):
        raise TimeoutError("slow")

    def cancels(output):
        raise concurrent.futures.CancelledError

    assert one(lambda output: next(iter([]))).status == "error"
    assert one(cancels).error == "CancelledError"
    assert 'raise TimeoutError("slow")' in one(times_out).metadata["traceback"]


def test_what_a_failed_call_cost_is_kept():
    def asks(output):
        raise ModelError("refused", usage=Usage(tokens_in=5, cost_usd=0.1))

    assert one(asks).usage.cost_usd == 0.1


def test_a_replay_that_misses_raises():
    def replays(output):
        raise CacheMiss("not there")

    with pytest.raises(CacheMiss):
        one(replays)


def test_a_function_that_changes_its_row_changes_it_for_itself():
    row = dict(ROW)
    assert one(lambda row: row.pop("output") == "Paris", row).passed
    assert row == ROW


# Registered functions


@compare_func(name="test.text_similarity")
async def text_similarity(a: Any, b: Any, *args, **kwargs) -> tuple[bool, str]:
    """In the manner of MCP-Universe's guide, which looks for the options at args[2]."""
    if isinstance(a, FunctionResult):
        a = a.result
    threshold = 0.8
    if len(args) > 2 and args[2]:
        threshold = float(args[2].get("threshold", 0.8))
    ratio = SequenceMatcher(None, str(a), str(b)).ratio()
    return (True, "") if ratio >= threshold else (False, f"Text similarity {ratio:.2f} below threshold {threshold}")


@pytest.mark.usefixtures("registered")
def test_steps_and_comparisons_are_registered_as_the_guide_of_mcp_universe_writes_them():
    @eval_func(name="shout")
    async def shout(x: FunctionResult, *args, **kwargs) -> FunctionResult:
        if isinstance(x, FunctionResult):
            return FunctionResult(result=str(x.result).upper())
        raise ValueError("no text")

    @compare_func(name="score_threshold")
    async def score_threshold(a: Any, b: Any, *args, **kwargs) -> tuple[bool, str]:
        return (True, "") if float(a) >= float(b) else (False, f"Score {a} below threshold {b}")

    assert one(rule("shout", "=", "PARIS")).passed
    assert rule("shout -> lower", "=", "paris").evaluate("Paris").passed
    score = rule("json -> get(s)", "score_threshold", 5).evaluate('{"s": 3}')
    assert score.reason.startswith("Score 3 below threshold 5: found 3, wanted 5")
    assert rule("json -> foreach -> shout", "=", "A").evaluate('["a"]').reason.startswith("Execution error: no text")
    assert rule("json -> foreach", "score_threshold", 2).evaluate("[3, 1]").metadata["leaf"] == 1


def test_the_guides_text_similarity_finds_its_options_at_the_third_place():
    made = Rule.from_config(
        {"func": "raw", "op": "test.text_similarity", "value": "abcd", "op_args": {"threshold": 0.7}}
    )
    assert made.evaluate("bcde").passed  # 0.75, by difflib's documentation
    assert not rule("raw", "test.text_similarity", "abcd").evaluate("bcde").passed


@pytest.mark.usefixtures("registered")
def test_a_comparison_is_called_with_value_options_and_context():
    seen = []

    @compare_func(name="all")
    async def everything(x, *args, **kwargs):
        seen.append((x, args, sorted(kwargs)))
        return True, ""

    @compare_func(name="two")
    def two(a, b, *args):
        seen.append((a, b, args))
        return True

    @compare_func(name="few")
    def few(a, context):
        seen.append((a, type(context)))
        return np.True_

    for op in ("all", "two", "few"):
        assert rule("", op, "v", op_args={"o": 1}).evaluate("x").passed
    assert seen == [("x", ("v", {"o": 1}), ["context"]), ("x", "v", ({"o": 1},)), ("x", Context)]


@pytest.mark.usefixtures("registered")
def test_registering_again_replaces_also_in_rules_that_exist():
    @eval_func(name="version")
    def first(x):
        return 1

    made = rule("version", "=", 2)
    assert not made.evaluate("").passed

    @eval_func(name="version")
    async def second(x):
        return FunctionResult(result=2)

    assert made.evaluate("").passed


@pytest.mark.usefixtures("registered")
def test_a_step_of_ours_can_be_replaced_and_one_of_theirs_cannot():
    @eval_func(name="lower")
    def lower(x):
        return "mine"

    assert rule("lower", "=", "mine").evaluate("X").passed
    assert Rule.from_config({"func": "lower", "op": "=", "value": "mine"}).evaluate("X").passed
    for register, name in ((eval_func, "json"), (compare_func, "="), (eval_func, ""), (compare_func, None)):
        with pytest.raises(InputError):
            register(name=name)


@pytest.mark.usefixtures("registered")
def test_a_rule_that_exists_keeps_a_comparison_of_ours_that_is_replaced_later(monkeypatch):
    monkeypatch.setenv("MCPEVAL_TEST_WANTED", "abcd")
    kept = [rule("", "similar", "abcd"), rule("", "similar", "{{MCPEVAL_TEST_WANTED}}")]
    compare_func(name="similar")(lambda a, b: True)
    for made in kept:
        assert made.evaluate("xyz").reason.startswith("output is not similar to ground-truth")
    assert rule("", "similar", "abcd").evaluate("xyz").passed


@pytest.mark.usefixtures("registered")
def test_arguments_a_registered_step_cannot_take_are_refused_when_the_rule_is_written():
    @eval_func(name="pick")
    def pick(x, key):
        return x.result[key]

    assert rule("json -> pick(a)", "=", 1).evaluate('{"a": 1}').passed
    with pytest.raises(ChainError):
        rule("json -> pick")
    with pytest.raises(InputError):
        eval_func(name="none")(lambda: 1)


@pytest.mark.usefixtures("registered")
def test_a_registered_step_after_foreach_sees_their_nested_lists():
    seen = []

    @eval_func(name="see")
    def see(x):
        seen.append(x)
        return x

    assert rule("json -> foreach -> foreach -> see", ">", 0).evaluate("[[1, 2], [3]]").metadata["leaves"] == [1, 2, 3]
    assert seen == [[[FunctionResult(1), FunctionResult(2)], [FunctionResult(3)]]]
    assert rule("json -> foreach -> see", "=", 1).evaluate("[]").reason.startswith("gave no values")
    assert rule("json -> see -> len", "=", 0).evaluate("[]").passed


@pytest.mark.usefixtures("registered")
def test_a_registered_function_may_change_what_it_is_given_without_others_seeing_it():
    @eval_func(name="empty")
    def empty(x):
        x.result.clear()
        return x

    assert rule("json -> len", "=", 2).evaluate("[1, 2]").passed
    assert rule("json -> empty -> len", "=", 0).evaluate("[1, 2]").passed
    assert rule("json -> len", "=", 2).evaluate("[1, 2]").passed


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), KeyError("x"), IndexError("x"), TypeError("x"), AssertionError("x"), UnicodeError("x")],
)
@pytest.mark.usefixtures("registered")
def test_an_error_over_the_output_is_the_agents_fault(error):
    @eval_func(name="raises")
    def raises(x):
        raise error

    score = rule("raises", "").evaluate("x")
    assert (score.score, score.status) == (0.0, "ok")
    assert score.reason.startswith("Execution error: ")
    assert "in step 'raises'" in score.reason
    assert "raise error" in score.metadata["traceback"]


class HttpLibraryError(OSError, ValueError):
    """As `requests.exceptions.JSONDecodeError`, which is both."""


@pytest.mark.parametrize(
    "error",
    [
        ConnectionError("x"), TimeoutError("x"), ModelError("x"), ServerError("x", server="s"), NameError("x"),
        AttributeError("x"), ImportError("x"), HttpLibraryError("x"), InputError("x"),
        ExceptionGroup("x", [ValueError()]), ZeroDivisionError("x"), NotImplementedError("x"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("table", ["step", "comparison"])
@pytest.mark.usefixtures("registered")
def test_an_error_of_a_service_or_of_the_function_itself_is_not(error, table):
    def raises(x, *args):
        raise error

    (eval_func if table == "step" else compare_func)(name="raises")(raises)
    score = (rule("raises", "") if table == "step" else rule("", "raises")).evaluate("x")
    assert score.status == "error"
    assert math.isnan(score.score)
    assert type(error).__name__ in score.error
    assert "raise error" in score.metadata["traceback"]


@pytest.mark.usefixtures("registered")
def test_a_missing_key_of_a_service_and_what_follows_from_a_lost_connection_are_not_either():
    @eval_func(name="key")
    def key(x):
        return os.environ["NO_SUCH_SERVICE_KEY"]

    @eval_func(name="lost")
    def lost(x):
        try:
            raise ConnectionResetError("by peer")
        except ConnectionResetError as error:
            raise ValueError("no ground truth") from error

    assert rule("key", "").evaluate("x").status == "error"
    assert rule("lost", "").evaluate("x").status == "error"


@pytest.mark.parametrize("answer", [None, "yes", 1, ("yes", ""), (True, 5), (True, "", 1)])
@pytest.mark.usefixtures("registered")
def test_a_comparison_that_answers_something_else_is_an_error(answer):
    compare_func(name="odd")(lambda a, b: answer)
    score = rule("", "odd").evaluate("x")
    assert score.status == "error"
    assert "expected (passed, reason) or a bool" in score.reason


# Live ground truth


async def tool(server: str, name: str, arguments: dict[str, Any]) -> ToolCall:
    if name == "broken":
        return ToolCall(server, name, arguments, is_error=True, error="the server died")
    return ToolCall(server, name, arguments, {"structuredContent": {"temp": 18}})


@pytest.mark.usefixtures("registered")
def test_a_rule_can_ask_a_tool_for_the_truth_and_its_calls_are_kept():
    @compare_func(name="is_the_weather")
    async def is_the_weather(a, b, op_args, context):
        call = await context.call_tool("weather", op_args["tool"], {"city": b})
        return a == call.result["structuredContent"]["temp"], "another temperature"

    def made(name):
        return rule("json -> get(t)", "is_the_weather", "Paris", op_args={"tool": name})

    score = one(made("now"), {"output": '{"t": 18}'}, Context(call_tool=tool))
    assert score.passed
    assert [(c["server"], c["name"], c["arguments"]) for c in score.metadata["tool_calls"]] == [
        ("weather", "now", {"city": "Paris"})
    ]
    score = one(made("now"), {"output": '{"t": 1}'}, Context(call_tool=tool))
    assert score.reason.startswith("another temperature: found 1, wanted 'Paris'")
    assert len(score.metadata["tool_calls"]) == 1
    score = one(made("broken"), {"output": '{"t": 18}'}, Context(call_tool=tool))
    assert (score.status, score.metadata["tool_calls"][0]["error"]) == ("error", "the server died")
    score = one(made("now"), {"output": '{"t": 18}'})
    assert score.status == "error"
    assert "no servers" in score.reason


def test_a_score_that_is_no_number_is_an_input_error_and_no_names_are_said_to_be_none():
    with pytest.raises(InputError, match="score='x' should be a number from 0 to 1"):
        Score("x")
    assert did_you_mean("output", []) == "There are none."
