"""What russo and Salesforce's MCPEval answered, case by case, and where `tool_calls` answers otherwise on purpose."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

from mcpeval.evaluators import salesforce
from mcpeval.evaluators.adapting import as_evaluator
from mcpeval.evaluators.tool_use import tool_calls
from mcpeval.exporting import read_runs
from mcpeval.interop.russo import EvalResult, ToolCall, ToolCallMatch
from mcpeval.scoring import score
from tests import differences
from tests.conftest import CONFORMANCE

# The drift of `tests/differences.py` is in `realdata` too, under "match_order(buggy)", wherever a call was
# matched before another was looked for.
ANSWER = {  # what we say of each of them: passed, and which expected calls are matched
    "ru-004": (False, []),
    "ru-036": (True, [True, True, True]),
    "ru-037": (False, [True, False]),
}


def cases(name: str, **wanted: Any) -> list[Any]:
    path = CONFORMANCE / "oracles" / f"{name}.jsonl"
    if not path.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"no {path.name} in the conformance data"))]
    found = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [pytest.param(c, id=c["id"]) for c in found if all(c[key] == value for key, value in wanted.items())]


def options(config: dict[str, bool]) -> dict[str, str]:
    """russo's ``ExactEvaluator(...)`` as keywords of `tool_calls`; its match rate is the recall."""
    return {
        "args": "superset" if config.get("ignore_extra_args") else "exact",
        "order": "strict" if config.get("match_order") else "any",
        "extra": "allow" if config.get("ignore_extra_calls", True) else "forbid",
        "score": "recall",
    }


def matched(found: Any) -> list[bool]:
    return [call["matched"] for call in found.metadata["calls"]]


# --- russo ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", cases("russo_cases", evaluator="ExactEvaluator"))
def test_calls_are_matched_as_russo_matches_them(case):
    if case["id"] in ANSWER:
        keywords = {**options(case["config"]), "score": "pass"}
        found = tool_calls(case["expected"], **keywords).evaluate({"tool_calls": case["actual"]})
        assert (found.passed, matched(found)) == ANSWER[case["id"]]
        assert found.passed is not case["output"]["passed"]
        return
    found = tool_calls(case["expected"], **options(case["config"])).evaluate({"tool_calls": case["actual"]})
    theirs, expected = case["output"], len(case["expected"])
    assert found.passed is theirs["passed"]
    assert found.score == theirs["match_rate"]
    assert matched(found) == [match["matched"] for match in theirs["matches"][:expected]]
    partners = [None if call["call"] is None else case["actual"][call["call"]] for call in found.metadata["calls"]]
    assert partners == [match["actual"] for match in theirs["matches"][:expected]]
    for match in theirs["matches"][:expected]:  # theirs says some of the differences, ours all of them
        if match["details"] and match["actual"] and not match["details"].startswith("Position"):
            assert all(part in found.reason for part in match["details"].split("; "))


def test_every_deliberate_difference_has_a_reason_and_an_answer():
    assert {case for row in differences.of(differences.RUSSO) for case in row.cases} == ANSWER.keys()


class FuzzyEvaluator:
    """Evaluator that does case-insensitive name matching and subset argument checking."""

    def evaluate(self, expected: list[ToolCall], actual: list[ToolCall]) -> EvalResult:
        matches: list[ToolCallMatch] = []
        remaining = list(actual)

        for exp in expected:
            match = self._find_match(exp, remaining)
            matches.append(match)
            if match.matched and match.actual in remaining:
                remaining.remove(match.actual)

        passed = all(m.matched for m in matches)
        return EvalResult(passed=passed, expected=expected, actual=actual, matches=matches)

    def _find_match(self, expected: ToolCall, candidates: list[ToolCall]) -> ToolCallMatch:
        for candidate in candidates:
            if self._is_match(expected, candidate):
                return ToolCallMatch(expected=expected, actual=candidate, matched=True)

        return ToolCallMatch(
            expected=expected,
            matched=False,
            details=f"No fuzzy match found for {expected.name}",
        )

    def _is_match(self, expected: ToolCall, actual: ToolCall) -> bool:
        # Case-insensitive name matching
        if expected.name.lower() != actual.name.lower():
            return False
        # Expected args must be a subset of actual args
        return all(actual.arguments.get(k) == v for k, v in expected.arguments.items())


@pytest.mark.parametrize("case", cases("russo_cases", evaluator="seed003.FuzzyEvaluator"))
def test_the_fuzzy_evaluator_of_russos_guide_runs_as_written(case):
    found = as_evaluator(FuzzyEvaluator()).evaluate(
        {"expected_tool_calls": case["expected"], "tool_calls": case["actual"]}
    )
    assert found.passed is case["output"]["passed"]
    assert found.score == case["output"]["match_rate"]
    assert all(match["details"] in found.reason for match in case["output"]["matches"])


@pytest.mark.parametrize("case", cases("russo_cases", evaluator="seed003.FuzzyEvaluator"))
def test_the_same_is_said_in_one_line(case):
    fuzzy = tool_calls(case["expected"], args="superset", names="casefold", score="recall")
    found = fuzzy.evaluate({"tool_calls": case["actual"]})
    assert (found.passed, found.score) == (case["output"]["passed"], case["output"]["match_rate"])


# --- Salesforce's MCPEval ------------------------------------------------------------------------


def calls(given: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    return [(call["tool_name"], call["tool_parameters"]) for call in given]


@pytest.mark.parametrize("case", cases("mcpeval_sf_cases"))
def test_salesforces_scores_come_out_to_the_last_digit(case):
    compat = tool_calls(case["expected"], compat="mcpeval-salesforce", **case["kwargs"])
    found = compat.evaluate({"tool_calls": case["actual"]})
    for kind in ("strict", "flexible"):
        theirs = case["output"][kind]
        assert (found[kind].score, found[kind].passed) == (theirs["overall_score"], theirs["success"])
        assert {key: found[kind].metadata[key] for key in theirs} == theirs
    keywords = {"weights": salesforce.WEIGHTS, "thresholds": salesforce.THRESHOLDS, **case["kwargs"]}
    whole = salesforce.evaluate(calls(case["expected"]), calls(case["actual"]), **keywords)
    assert whole == {key: case["output"][key] for key in whole}


def test_all_310_published_rows_come_out_through_score(conformance):
    published = read_runs(conformance / "data" / "mcpeval_playwright" / "tool_call_eval.jsonl")
    runs = published.rename(columns={"ground_truth_calls": "expected_tool_calls", "prediction_calls": "tool_calls"})
    runs = runs.assign(output="")
    scores = score(runs, [tool_calls(compat="mcpeval-salesforce")], cache=False)
    assert len(scores) == 2 * 310
    for kind in ("strict", "flexible"):
        ours = scores[scores["evaluator"] == f"tool_calls.{kind}"]
        theirs = pd.DataFrame([row[kind] for row in published["evaluation"]], index=published.index)
        assert ours["score"].tolist() == theirs["overall_score"].tolist()
        assert ours["passed"].tolist() == theirs["success"].tolist()
        for part in ("tool_name_score", "param_match_score", "order_score"):
            assert [about[part] for about in ours["metadata"]] == theirs[part].tolist()
    for about, theirs in zip(scores["metadata"].iloc[::2], published["evaluation"], strict=True):
        for part in ("counts", "missing_tools", "extra_tools", "param_matches", "param_mismatches"):
            assert about[part] == theirs[part]


# --- both on the same real rows ------------------------------------------------------------------


@pytest.mark.parametrize("case", cases("realdata_cases"))
def test_real_rows_are_judged_as_russo_and_salesforce_judge_them(case):
    row = {"tool_calls": case["actual"], "expected_tool_calls": case["expected"]}
    for about in case["russo"].values():
        found = tool_calls(**options(about["config"])).evaluate(row)
        theirs = about["matched"][: len(case["expected"])]
        if about["config"].get("match_order") and any(theirs[:-1]):  # from here on their index drifts
            places = zip(case["expected"], [*case["actual"], *[None] * len(case["expected"])])
            assert matched(found) == [expected == made for expected, made in places]
            continue
        assert (found.passed, found.score, matched(found)) == (about["passed"], about["match_rate"], theirs)
    compat = tool_calls(compat="mcpeval-salesforce").evaluate(row)
    for kind in ("strict", "flexible"):
        theirs = case["mcpeval_sf"][kind]
        assert (compat[kind].score, compat[kind].passed) == (theirs["overall_score"], theirs["success"])
