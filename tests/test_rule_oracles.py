"""What MCP-Universe's `Evaluator` answered, case by case, and where a rule answers otherwise on purpose."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import pytest

from mcpeval.errors import ChainError, InputError
from mcpeval.evaluators import Rule
from tests import differences
from tests.conftest import CONFORMANCE

ANSWER = {  # what we say of each of them: score and how the reason begins
    226: (1.0, ""),
    227: (0.0, "output is equal to ground-truth"),
    259: (1.0, ""),
    260: (0.0, "output is not equal to ground-truth"),
    261: (1.0, ""),
    262: (0.0, "Execution error: The input is not a string"),
    267: (None, "InputError: the rule's value needs the variable CITY"),
    269: (None, "InputError: the rule's value needs the variable UNDEFINED_MCPU"),
    271: (1.0, ""),
    274: (1.0, ""),
    277: (1.0, ""),
    278: (0.0, "output is not equal to ground-truth"),
    279: (0.0, "output is not equal to ground-truth"),
    280: (0.0, "output is not equal to ground-truth"),
    281: (1.0, ""),
    282: (1.0, ""),
}
FLAGGED = {152}  # "foreach over nothing" in the table of differences


def cases(name: str) -> list[Any]:
    path = CONFORMANCE / "oracles" / f"{name}.jsonl"
    if not path.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"no {path.name} in the conformance data"))]
    lines = path.read_text(encoding="utf-8").splitlines()
    return [pytest.param(case, id=str(case["id"])) for case in map(json.loads, lines)]


def floats(value: Any) -> Any:
    """NaN and infinities stand as ``{"__float__": "nan"}`` in the oracle's configs."""
    if isinstance(value, dict):
        return float(value["__float__"]) if "__float__" in value else {k: floats(v) for k, v in value.items()}
    return [floats(v) for v in value] if isinstance(value, list) else value


def agrees(case: dict[str, Any], *, error: str) -> None:
    config = case["config"] if isinstance(case["config"], str) else floats(case["config"])
    score = Rule.from_config(config, env=case.get("env")).evaluate(case["response"])
    assert score.status == "ok"
    assert score.passed is case["passed"], score.reason
    assert score.score == float(case["passed"])
    if score.metadata.get("vacuous"):
        assert score.reason == "vacuous: the chain gave no values"
        assert case["passed"]
        return
    assert score.reason.startswith(case["reason"])
    assert bool(score.reason) is bool(case["reason"])
    # The wording of Python's own errors is CPython 3.11's; elsewhere it is enough that there is one.
    assert error in score.reason or sys.version_info[:2] != (3, 11)


@pytest.fixture(autouse=True)
def _osaka(monkeypatch):
    monkeypatch.setenv("MCPU_OS_CITY", "Osaka")
    for name in ("CITY", "UNDEFINED_MCPU", "K", "N"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("case", cases("mcpuniverse_cases"))
def test_a_hand_made_case_is_answered_as_mcp_universe_does_or_as_the_table_says(case):
    if case["id"] in ANSWER:
        config = floats(case["config"])
        score = Rule.from_config(config, env=case.get("env")).evaluate(case["response"])
        wanted, reason = ANSWER[case["id"]]
        assert (math.isnan(score.score) and score.status == "error") if wanted is None else score.score == wanted
        assert score.reason.startswith(reason)
    elif case["construct_error"]:
        with pytest.raises(InputError) as refused:
            Rule.from_config(case["config"])
        if case["construct_error"]["msg"].startswith("Unknown func"):
            assert isinstance(refused.value, ChainError)
    else:
        agrees(case, error=case["error_head"])
        score = Rule.from_config(floats(case["config"]), env=case.get("env")).evaluate(case["response"])
        assert bool(score.metadata.get("vacuous")) is (case["id"] in FLAGGED)


@pytest.mark.parametrize("case", cases("mcpuniverse_fuzz_cases"))
def test_a_fuzzed_case_is_answered_as_mcp_universe_does(case):
    agrees(case, error=case["error"])


def test_the_table_of_differences_is_the_table_of_answers():
    named = {case for row in differences.of(differences.UNIVERSE) for case in row.cases}
    assert named == {*ANSWER, *FLAGGED}
