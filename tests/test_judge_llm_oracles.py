"""judge-llm's own answers, on its own cases and on real rows; and where we deliberately say something else.

`tests/differences.py` has the reasons; `DIFFERENCES` here is what ``compat="judge-llm"`` still gives and what we
give without it.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pytest

from mcpeval import score
from mcpeval.errors import InputError
from mcpeval.evaluators.conversations import turn_of
from mcpeval.interop.judge_llm import BUILT_INS, built_in

from . import differences
from .conftest import CONFORMANCE
from .differences import JUDGE_LLM


def cases(name: str) -> list[dict[str, Any]]:
    file = CONFORMANCE / "oracles" / name
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.is_file() else []


def row_of(expected: list[dict[str, Any]], actual: list[dict[str, Any]], provider: dict[str, Any]) -> dict[str, Any]:
    """The row that a run of judge-llm's would be."""
    succeeded = provider.get("success", True)
    return {
        "test_case": {"eval_id": "case", "conversation": expected},
        "metadata": {**provider.get("metadata", {}), "conversation": actual},
        "output": turn_of(actual[-1]).answer if actual and succeeded else None,
        "reference": turn_of(expected[-1]).answer if expected else None,
        "tool_calls": [],
        "expected_tool_calls": [],
        "cost_usd": provider.get("cost", 0.0),
        "seconds": provider.get("time_taken", 0.0),
        "status": "ok" if succeeded else "error",
        "error": provider.get("error"),
    }


@pytest.mark.parametrize("case", cases("judgellm_cases.jsonl"), ids=lambda case: f"{case['id']} {case['label']}")
def test_an_oracle_case_is_answered_as_judge_llm_answers_it(case):
    given, theirs = case["input"], case["output"]
    config = {**given["config"], **(given["eval_config"] or {})}
    evaluator = built_in(case["evaluator"], config, compat="judge-llm")
    frame = pd.DataFrame([row_of(given["expected"], given["actual"], given["provider"])])
    [ours] = score(frame, evaluator, cache=False).to_dict("records")
    if case["id"] in {one for row in differences.of(differences.NEVER) for one in row.cases}:
        assert ours["score"] != theirs["score"]
        return
    if theirs["score"] is None:  # the provider failed: nobody has anything to say
        assert (math.isnan(ours["score"]), ours["status"]) == (True, "skipped")
        return
    assert ours["score"] == pytest.approx(theirs["score"], abs=1e-12)
    assert ours["passed"] == theirs["passed"]
    if "mismatch" not in theirs["details"]:
        assert ours["metadata"]["threshold"] == theirs["threshold"]


@pytest.mark.parametrize("case", cases("realdata_cases.jsonl"), ids=lambda case: case["id"])
def test_a_real_trajectory_is_answered_as_judge_llm_answers_it(case):
    row = {"tool_calls": case["actual"], "expected_tool_calls": case["expected"]}
    for theirs in case["judge_llm_trajectory"].values():
        ours = built_in("trajectory_evaluator", theirs["config"], compat="judge-llm").evaluate(row)
        assert ours.score == pytest.approx(theirs["score"], abs=1e-12)
        assert ours.passed == theirs["passed"]


@pytest.mark.parametrize("compat", [None, "judge-llm"])
def test_what_is_never_reproduced(compat, tmp_path):
    row = row_of([said("running")], [said("runs")], {})
    assert built_in("response_evaluator", {"match_type": "rouge"}, compat=compat).evaluate(row).score == 1
    assert built_in("response_evaluator", {}, compat=compat).evaluate(row).score == 0
    assert built_in("cost_evaluator", {}, compat=compat).evaluate({"cost_usd": None}).status == "skipped"
    with pytest.raises(InputError, match="Did you mean 'match_type'"):
        built_in("response_evaluator", {"match_typ": "rouge"}, compat=compat)


# Where we say something else


def said(text: str) -> dict[str, Any]:
    return {"final_response": {"parts": [{"text": text}]}}


def called(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"intermediate_data": {"tool_uses": [{"id": "", "name": name, "args": args} for name, args in calls]}}


def handed(*agents: str) -> dict[str, Any]:
    return {"intermediate_data": {"intermediate_responses": [{"agent_name": agent} for agent in agents]}}


@dataclass(frozen=True)
class Difference:
    """`theirs` and `ours` are score and verdict."""

    what: str
    evaluator: str
    expected: dict[str, Any]
    actual: dict[str, Any]
    theirs: tuple[float, bool]
    ours: tuple[float, bool]
    config: dict[str, Any] = field(default_factory=dict)


DIFFERENCES = [
    Difference(
        *("a number at the start of a line", "response_evaluator", said("3.14 is pi"), said("14 is pi")),
        *((1.0, True), (0.0, False)),
        {"match_type": "exact"},
    ),
    Difference(
        *("rouge in other scripts", "response_evaluator", said("巴黎 是 首都"), said("巴黎 是 首都")),
        *((0.0, False), (1.0, True)),
        {"match_type": "rouge"},
    ),
    Difference(
        *("exact ignores arguments", "trajectory_evaluator", called(("f", {"x": 1})), called(("f", {"x": 2}))),
        *((1.0, True), (0.0, False)),
    ),
    Difference(
        *(
            "half of the calls will do",
            "trajectory_evaluator",
            called(("f", {}), ("g", {})),
            called(("f", {}), ("h", {})),
        ),
        *((0.5, True), (0.5, False)),
    ),
    Difference(
        *("calls behind the expected", "trajectory_evaluator", called(("f", {})), called(("f", {}), ("rm", {}))),
        *((1.0, True), (0.5, False)),
    ),
    Difference(
        *("forbidden extra calls", "trajectory_evaluator", called(("f", {})), called(("f", {}), ("g", {}), ("h", {}))),
        *((2 / 3, True), (1 / 3, False)),
        {"sequence_match_type": "flexible", "allow_extra_tools": False},
    ),
    Difference(
        what="greedy matching",
        evaluator="trajectory_evaluator",
        expected=called(("f", {"x": 1}), ("f", {"x": 1, "y": 2})),
        actual=called(("f", {"x": 1, "y": 2}), ("f", {"x": 1})),
        theirs=(0.75, True),
        ours=(1.0, True),
        config={"sequence_match_type": "flexible", "compare_arguments": True, "argument_match_type": "subset"},
    ),
    Difference(
        *("superset of no calls", "trajectory_evaluator", called(("f", {})), called()),
        *((0.0, False), (1.0, True)),
        {"sequence_match_type": "superset"},
    ),
    Difference(
        *("no arguments expected", "trajectory_evaluator", called(("g", {})), called(("g", {"z": 1}))),
        *((1.0, True), (0.0, False)),
        {"compare_arguments": True},
    ),
    Difference(
        *("a fuzzy threshold", "trajectory_evaluator", called(("f", {"x": 100})), called(("f", {"x": 60}))),
        *(
            (0.6, True),
            (0.0, False),
        ),
        {"compare_arguments": True, "argument_match_type": "fuzzy", "argument_similarity_threshold": 0.8},
    ),
    Difference(
        *("most of the agents will do", "subagent_evaluator", handed(*"abcde"), handed(*"abcd")),
        *((0.8, True), (0.8, False)),
        {"sequence_match_type": "exact"},
    ),
    Difference(
        *("forbidden agents", "subagent_evaluator", handed("a"), handed("a", "b")),
        *((0.9, True), (0.9, False)),
        {"allow_extra_agents": False},
    ),
]


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.what)
def test_a_difference_is_deliberate_and_compat_gives_their_answer(difference):
    row = row_of([difference.expected], [difference.actual], {})
    for compat, wanted in (("judge-llm", difference.theirs), (None, difference.ours)):
        found = built_in(difference.evaluator, difference.config, compat=compat).evaluate(row)
        assert (found.score, found.passed) == (pytest.approx(wanted[0]), wanted[1]), differences.why(
            JUDGE_LLM, difference.what
        )


@pytest.mark.parametrize("kind", ["response_evaluator", "cost_evaluator", "latency_evaluator"])
def test_what_is_no_difference_is_the_same_without_compat(kind):
    row = row_of([said("a b c d")], [said("a b c e")], {"cost": 0.4, "time_taken": 31.0})
    ours, theirs = (built_in(kind, {}, compat=compat).evaluate(row) for compat in (None, "judge-llm"))
    assert (ours.score, ours.passed) == (theirs.score, theirs.passed)


# Settings that judge-llm passes over in silence


@pytest.mark.parametrize(
    ("kind", "config", "message"),
    [
        (
            "response_evaluator",
            {"similarity_treshold": 0.5},
            "unknown key 'similarity_treshold'. Did you mean 'similarity_threshold'?",
        ),
        ("response_evaluator", {"match_type": "semantics"}, "match_type='semantics'. Did you mean 'semantic'?"),
        ("response_evaluator", {"similarity_threshold": 80}, "similarity_threshold=80 should be a number from 0 to 1"),
        ("response_evaluator", {"llm_provider": "gemini"}, "'llm_provider' has no effect, in judge-llm neither"),
        (
            "trajectory_evaluator",
            {"sequence_match_type": "exactly"},
            "sequence_match_type='exactly'. Did you mean 'exact'?",
        ),
        ("trajectory_evaluator", {"compare_arguments": "yes"}, "compare_arguments='yes' should be true or false"),
        ("cost_evaluator", {"currency": "EUR"}, "currency='EUR' should be USD"),
        ("cost_evaluator", {"max_cost": 1, "max_cost_per_case": 1}, "are the same; give one of them"),
        ("latency_evaluator", {"percentile": 95}, "one run has no percentiles"),
        ("latency_evaluator", {"max_latency_seconds": "fast"}, "max_latency_seconds='fast' should be a number"),
        ("subagent_evaluator", {"allow_extra": True}, "unknown key 'allow_extra'. Did you mean 'allow_extra_agents'?"),
        ("embedding_similarity_evaluator", {"provider": "sentence_transformers"}, "name one that LiteLLM serves"),
        ("llm_judge_evaluator", {"evaluation_type": "relevant"}, "Did you mean 'relevance'?"),
        ("llm_judge_evaluator", {"min_score": 0}, "min_score=0 should be a number from 1 to 5"),
        ("contains_evaluator", {}, "needs 'terms'"),
        ("regex_evaluator", {"pattern": "("}, "no regular expression"),
        ("respone_evaluator", {}, "no built-in evaluator. Did you mean 'response_evaluator'?"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused(kind, config, message):
    with pytest.raises(InputError) as refused:
        built_in(kind, config, where="config.yaml: evaluators[0]")
    assert message in str(refused.value)
    assert str(refused.value).startswith("config.yaml: evaluators[0]: ")


def test_keys_without_effect_are_taken_with_compat_only():
    kept = built_in("latency_evaluator", {"warn_threshold_seconds": 10, "percentile": 95}, compat="judge-llm")
    assert kept.evaluate({"seconds": 1.0}).passed
    with pytest.raises(InputError, match="compat='judgellm'. Did you mean 'judge-llm'?"):
        built_in("latency_evaluator", {}, compat="judgellm")


def test_every_built_in_is_made_of_its_own_keys():
    needed = {"contains_evaluator": {"terms": ["a"]}, "unsafe_terms_evaluator": {"unsafe_terms": ["a"]}}
    needed["regex_evaluator"] = {"pattern": "a"}
    for kind in BUILT_INS:
        made = built_in(kind, needed.get(kind, {}))
        assert made.name == kind
        assert built_in(kind, needed.get(kind, {}), name="mine").name == "mine"


def test_judge_llms_judge_is_a_judge_on_the_same_scale():
    made = built_in("llm_judge_evaluator", {"evaluation_type": "relevance", "min_score": 4, "max_retries": 1})
    assert (made.model, made.scale.labels, made.threshold, made.reasks) == (
        "gemini/gemini-2.0-flash",
        (1, 2, 3, 4, 5),
        0.75,
        1,
    )
    own = built_in("llm_judge_evaluator", {"custom_prompt": "{user_query} / {response} / {expected_response}"})
    assert own.rubric == "{question} / {output} / {reference}"


def test_embedding_models_are_named_as_litellm_names_them():
    assert built_in("embedding_similarity_evaluator", {}).model == "gemini/text-embedding-004"
    config = {"provider": "openai", "model": "text-embedding-3-large", "api_key": "sk-x", "chunk_long_text": False}
    made = built_in("embedding_similarity_evaluator", config)
    assert (made.model, made.params, made.chunk) == ("openai/text-embedding-3-large", {"api_key": "sk-x"}, 0)
    assert "sk-x" not in repr(made)


def test_the_table_of_differences_names_what_is_tried_here():
    assert [row.what for row in differences.of(JUDGE_LLM)] == [difference.what for difference in DIFFERENCES]
