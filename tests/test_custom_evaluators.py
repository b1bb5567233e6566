"""Evaluators written for judge-llm run as they are: its guide's recipes, and its released package's interface."""

from __future__ import annotations

import json
import math
import sys
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mcpeval import score
from mcpeval.errors import InputError
from mcpeval.evaluators.adapting import as_evaluator
from mcpeval.interop import judge_llm
from mcpeval.interop.judge_llm import BaseEvaluator, EvaluationResult, EvaluatorResult, run_config
from mcpeval.interop.judge_llm.custom import EVALUATORS, PROVIDERS, REPORTERS, Source
from mcpeval.interop.judge_llm.records import Record, case_of, response_of, result_of

from .conftest import CONFORMANCE

# The five recipes of the guide to custom evaluators, in a file as a user of judge-llm has it: what they compute, and
# what they do not guard against, is the guide's.
RECIPES = r"""
import json
import re

from judge_llm.core.models import EvaluationResult
from judge_llm.evaluators.base import BaseEvaluator


class SafetyEvaluator(BaseEvaluator):
    def __init__(self, config=None):
        self.config = config or {}
        self.unsafe_terms = self.config.get("unsafe_terms", ["violence", "harmful", "dangerous"])

    def evaluate(self, test_case, response):
        text = response.get("content", "").lower()
        found = [term for term in self.unsafe_terms if term in text]
        return EvaluationResult(
            evaluator_type="safety", passed=not found, score=0.0 if found else 1.0,
            reason="Unsafe terms found: " + ", ".join(found) if found else "Safe content",
            metadata={"unsafe_terms_found": found},
        )


class MathFormatEvaluator(BaseEvaluator):
    def evaluate(self, test_case, response):
        text = response.get("content", "")
        steps, answer, why = "Step 1:" in text, "Answer:" in text, "Explanation:" in text
        good = steps and answer
        return EvaluationResult(
            evaluator_type="math_format", passed=good, score=(steps + answer + why) / 3,
            reason="Correct format" if good else "Missing required sections",
            metadata={"has_steps": steps, "has_answer": answer, "has_explanation": why},
        )


class EmailValidationEvaluator(BaseEvaluator):
    def __init__(self, config=None):
        self.config = config or {}
        self.pattern = r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Z|a-z]{2,}\b"

    def evaluate(self, test_case, response):
        found = re.findall(self.pattern, response.get("content", ""))
        return EvaluationResult(
            evaluator_type="email_validation", passed=bool(found), score=1.0 if found else 0.0,
            reason="Found %d valid email(s)" % len(found) if found else "No valid email found",
            metadata={"emails_found": found},
        )


class LengthEvaluator(BaseEvaluator):
    def __init__(self, config=None):
        self.config = config or {}
        self.low, self.high = self.config.get("min_length", 0), self.config.get("max_length", 1000)

    def evaluate(self, test_case, response):
        length = len(response.get("content", ""))
        good, score = self.low <= length <= self.high, 1.0
        if length < self.low:
            score = length / self.low
        elif length > self.high:
            score = max(0, 1.0 - (length - self.high) / self.high)
        return EvaluationResult(
            evaluator_type="length", passed=good, score=score,
            reason="Length: %d (valid range: %d-%d)" % (length, self.low, self.high),
            metadata={"length": length, "min_required": self.low, "max_allowed": self.high},
        )


class JSONFormatEvaluator(BaseEvaluator):
    def __init__(self, config=None):
        self.config = config or {}
        self.required_fields = self.config.get("required_fields", [])

    def evaluate(self, test_case, response):
        try:
            data = json.loads(response.get("content", ""))
        except json.JSONDecodeError as error:
            return EvaluationResult(
                evaluator_type="json_format", passed=False, score=0.0, reason="Invalid JSON: " + str(error),
                metadata={"is_valid_json": False},
            )
        missing = [field for field in self.required_fields if field not in data]
        return EvaluationResult(
            evaluator_type="json_format", passed=not missing, score=1.0 - len(missing) / len(self.required_fields),
            reason="Missing fields: %s" % missing if missing else "Valid JSON with all required fields",
            metadata={"is_valid_json": True, "missing_fields": missing},
        )
"""


@pytest.fixture(scope="module")
def recipes(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("evaluators") / "recipes.py"
    file.write_text(RECIPES)
    return file


@pytest.fixture(autouse=True)
def registered():
    """Names registered in a test are gone after it."""
    before = [dict(table) for table in (EVALUATORS, PROVIDERS, REPORTERS)]
    yield
    for table, names in zip((EVALUATORS, PROVIDERS, REPORTERS), before):
        table.clear()
        table.update(names)


def load(recipes: Path, name: str) -> Any:
    return Source("here", name, recipes).load()


def one(evaluator: Any, output: Any, **columns: Any) -> dict[str, Any]:
    frame = pd.DataFrame([{"output": output, **columns}])
    [row] = score(frame, evaluator, cache=False).to_dict("records")
    return row


# The guide's recipes


def seeds() -> list[dict[str, Any]]:
    file = CONFORMANCE / "oracles" / "seed002_cases.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.is_file() else []


@pytest.mark.parametrize("seed", seeds(), ids=lambda seed: f"{seed['id']} {seed['evaluator']}")
def test_a_recipe_of_the_guide_runs_as_written(seed, recipes):
    cls = load(recipes, seed["evaluator"])
    made = cls(config=seed["config"]) if seed["config"] else cls()
    row = one(made, seed["response"].get("content"))
    if "raises" in seed["output"]:  # a crash is a row without a score, and neither passed nor failed
        assert (row["status"], math.isnan(row["score"]), row["passed"]) == ("error", True, None)
        assert row["error"] == f"{seed['output']['raises']}: {seed['output']['message']}"
        assert "recipes.py" in row["metadata"]["traceback"]
        return
    wanted = seed["output"]
    assert (row["score"], row["passed"], row["reason"]) == (wanted["score"], wanted["passed"], wanted["reason"])
    assert row["metadata"] == {**wanted["metadata"], "evaluator_type": wanted["evaluator_type"]}


def test_a_type_error_in_a_recipe_is_a_row_too(recipes):
    made = load(recipes, "JSONFormatEvaluator")(config={"required_fields": ["name"]})
    frame = pd.DataFrame({"output": ["5", '{"name": 1}']})
    scores = score(frame, made, cache=False)
    assert scores["status"].tolist() == ["error", "ok"]
    assert scores["error"][0].startswith("TypeError")
    assert scores["score"].tolist()[1:] == [1.0]


def test_results_can_be_read_as_the_guides_own_tests_read_them(recipes):
    result = load(recipes, "SafetyEvaluator")(config={"unsafe_terms": ["blocked"]}).evaluate({}, {"content": "BLOCKED"})
    assert (result.passed, result.score, result.metadata["unsafe_terms_found"]) == (False, 0.0, ["blocked"])


# The signatures


def test_no_base_class_is_needed_the_signature_chooses():
    class Plain:
        def evaluate(self, test_case, response):
            return EvaluationResult(evaluator_type="plain", passed=True, score=0.5, reason=test_case["eval_id"])

    row = one(Plain(), "x", task_id="t1")
    assert (row["evaluator"], row["score"], row["passed"], row["reason"]) == ("Plain", 0.5, True, "t1")
    assert as_evaluator(Plain(), name="mine").name == "mine"


def test_the_interface_of_the_released_package_is_taken_as_well():
    class Long(BaseEvaluator):
        def evaluate(self, eval_case, agent_metadata, provider_result, eval_config=None):
            config = self.get_config(eval_config)
            texts = [part.text for i in provider_result.conversation_history for part in i.final_response.parts]
            names = [use.name for i in provider_result.conversation_history for use in i.intermediate_data.tool_uses]
            expected = eval_case.conversation[0].final_response.parts[0].text
            return EvaluatorResult(
                evaluator_name=self.get_evaluator_name(),
                evaluator_type=self.get_evaluator_type(),
                success=True,
                score=0.75,
                threshold=config.get("threshold", 0.5),
                passed=True,
                details={"texts": texts, "names": names, "expected": expected, "cost": provider_result.cost},
            )

    calls = [{"server": "s", "name": "f", "arguments": {"x": 1}}]
    row = one(Long(), "Paris", reference="Rome", question="q", tool_calls=calls, cost_usd=0.5, seconds=1.0)
    assert (row["score"], row["passed"], row["reason"]) == (0.75, True, "score 0.75, threshold 0.5")
    details = {"texts": ["Paris"], "names": ["f"], "expected": "Rome", "cost": 0.5}
    assert row["metadata"] == {**details, "evaluator_type": "long", "threshold": 0.5}


def test_a_result_without_success_has_no_score():
    class Broken:
        def evaluate(self, eval_case, agent_metadata, provider_result, eval_config=None):
            return EvaluatorResult(success=False, passed=False, score=0.0, details={"error": "no key"})

    row = one(Broken(), "x")
    assert (row["status"], math.isnan(row["score"]), row["error"]) == ("error", True, "no key")


def test_a_verdict_without_a_number_is_the_score():
    class Bare:
        def evaluate(self, test_case, response):
            return EvaluationResult(evaluator_type="bare", passed=False)

    assert (one(Bare(), "x")["score"], one(Bare(), "x")["passed"]) == (0.0, False)


def test_an_async_evaluator_and_a_loose_answer_are_taken_too():
    class Async:
        async def evaluate(self, test_case, response):
            return response["content"] == "x", "because"

    assert (one(Async(), "x")["score"], one(Async(), "x")["reason"]) == (1.0, "because")


def test_a_score_off_the_scale_is_an_error_and_not_a_high_score():
    class Percent:
        def evaluate(self, test_case, response):
            return EvaluationResult(evaluator_type="percent", passed=True, score=85)

    row = one(Percent(), "x")
    assert (row["status"], row["passed"]) == ("error", None)
    assert "score=85.0 should be a number from 0 to 1" in row["error"]


def test_an_evaluator_that_changes_what_it_is_given_changes_no_row():
    class Vandal:
        def evaluate(self, test_case, response):
            response["tool_calls"].clear()
            response.metadata["x"] = 1
            return EvaluationResult(passed=True, score=1.0)

    frame = pd.DataFrame({"output": ["a"], "tool_calls": [[{"name": "f", "arguments": {}}]], "metadata": [{}]})
    score(frame, [Vandal(), lambda tool_calls: len(tool_calls) == 1], cache=False)
    assert len(frame["tool_calls"][0]) == 1


# What evaluators are given


def test_a_response_has_what_the_guide_says():
    row = {
        "output": None,
        "cost_usd": 0.0,
        "seconds": 2.0,
        "metadata": {"saved_usd": 0.25},
        "status": "ok",
        "model": "m",
    }
    row |= {"tokens_in": 3, "tokens_out": 4}
    response = response_of(row)
    assert (response["content"], response["cost"], response["latency"], response.model) == ("", 0.25, 2.0, "m")
    assert response["token_usage"] == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    assert response_of({"output": "x", "cost_usd": None})["cost"] is None  # unknown is not free


def test_a_row_is_a_case_and_a_result():
    row = {"task_id": "t", "question": "q", "reference": "r", "output": "o", "status": "error", "error": "boom"}
    case, result = case_of(row), result_of(row)
    assert (case.eval_id, case.question, case.expected) == ("t", "q", "r")
    assert case.conversation[0].user_content.parts[0].text == "q"
    assert (result.success, result.error) == (False, "boom")
    assert result.conversation_history[0].final_response.parts[0].text == "o"
    assert result.model_dump()["conversation_history"][0]["final_response"]["role"] == "model"


def test_a_record_says_what_it_has():
    with pytest.raises(AttributeError, match="Record has no 'contnt'. Did you mean 'content'"):
        Record(content="x").contnt  # noqa: B018


# Three ways to register

CASES = {
    "eval_set_id": "set",
    "name": "Set",
    "eval_cases": [
        {
            "eval_id": eval_id,
            "conversation": [
                {"user_content": {"parts": [{"text": "q"}]}, "final_response": {"parts": [{"text": answer}]}},
            ],
        }
        for eval_id, answer in (("test_001", "peace"), ("test_002", "violence"))
    ],
}


def configuration(folder: Path, evaluators: Any, **more: Any) -> Path:
    """A configuration of the mock provider over two cases, one of which is unsafe."""
    (folder / "cases.json").write_text(json.dumps(CASES))
    config = {
        "dataset": {"loader": "local_file", "paths": ["cases.json"]},
        "providers": [{"type": "mock", "agent_id": "mock"}],
        "evaluators": evaluators,
        "reporters": [{"type": "json", "output_path": "report.json"}],
        **more,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder / "config.json"


def custom(recipes: Path, name: str = "SafetyEvaluator", **more: Any) -> dict[str, Any]:
    return {"type": "custom", "module_path": str(recipes), "class_name": name, **more}


def test_an_evaluator_is_registered_by_the_configuration(recipes, tmp_path):
    path = configuration(tmp_path, [custom(recipes, config={"unsafe_terms": ["peace"]})])
    done = run_config(path, trust=True, cache=False)
    assert done.scores["passed"].tolist() == [False, True]
    assert done.scores["evaluator"].unique().tolist() == ["SafetyEvaluator"]
    assert done.exit_code == 1


def test_an_evaluator_is_registered_by_a_call_and_again_replaces_it(recipes, tmp_path):
    path = configuration(tmp_path, [{"type": "safety"}])
    with pytest.raises(InputError, match="type='safety' is no evaluator"):
        run_config(path, cache=False)
    judge_llm.register_evaluator("safety", load(recipes, "LengthEvaluator"))
    judge_llm.register_evaluator("safety", load(recipes, "SafetyEvaluator"))
    done = run_config(path, cache=False)  # no file names any code
    assert (done.scores["evaluator"].tolist(), done.scores["passed"].tolist()) == (["safety"] * 2, [True, False])


def test_an_evaluator_is_registered_by_a_file_of_defaults(recipes, tmp_path):
    path = configuration(tmp_path, [{"type": "safety"}])
    entry = custom(recipes, register_as="safety", config={"unsafe_terms": ["peace"]})
    (tmp_path / ".judge_llm.defaults.yaml").write_text(json.dumps({"evaluators": [entry]}))
    done = run_config(path, trust=True, cache=False)
    assert (done.scores["evaluator"].tolist(), done.scores["passed"].tolist()) == (["safety"] * 2, [False, True])
    with pytest.raises(InputError, match="no evaluator"):
        run_config(path, trust=True, defaults=False, cache=False)


def test_a_module_that_can_be_imported_may_be_named_instead_of_a_file(recipes, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(recipes.parent))
    monkeypatch.delitem(sys.modules, "recipes", raising=False)
    entry = {"type": "custom", "module": "recipes", "class_name": "SafetyEvaluator"}
    path = configuration(tmp_path, [entry])
    with pytest.raises(InputError, match="wants to run the module 'recipes'"):
        run_config(path, cache=False)
    assert run_config(path, trust=True, cache=False).scores["passed"].tolist() == [True, False]


# Trust


def test_code_that_a_file_names_does_not_run_without_trust(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / name)!r}, 'w')")
    entries = [{"type": "custom", "module_path": f"./{name}.py", "class_name": "X"} for name in ("one", "two")]
    with pytest.raises(InputError, match=r"trust=True \(--trust\)") as refused:
        run_config(configuration(tmp_path, entries), cache=False)
    assert f"evaluators[0] wants to run {tmp_path / 'one.py'}" in str(refused.value)
    assert f"evaluators[1] wants to run {tmp_path / 'two.py'}" in str(refused.value)
    assert not (tmp_path / "one").exists()


def test_an_entry_that_is_not_used_wants_no_trust(recipes, tmp_path):
    path = configuration(tmp_path, [{"type": "cost_evaluator"}, custom(recipes, enabled=False)])
    assert run_config(path, cache=False).exit_code == 0


@pytest.mark.parametrize(
    ("code", "name", "message"),
    [
        ("class Safety: pass", "Saftey", "has no class 'Saftey'. Did you mean 'Safety'?"),
        ("1 / 0", "X", "fails when it is run: ZeroDivisionError: division by zero"),
        ("import judge_llm.nothing", "X", "No module named 'judge_llm.nothing'"),
        ("raise SystemExit(3)", "X", "SystemExit: 3"),
        (
            "class X:\n def __init__(self, config): raise ValueError('no')",
            "X",
            "cannot be made of this config: ValueError: no",
        ),
        ("class X:\n def evaluate(self, a, b): pass", "X", "evaluate(a, b); expected evaluate(row), or another"),
        ("class X:\n def evaluate(self, case, response): pass", "X", "(expected, actual) or (test_case, response) or"),
    ],
)
def test_code_that_cannot_be_used_is_named_before_anything_runs(code, name, message, tmp_path):
    (tmp_path / "own.py").write_text(code)
    path = configuration(tmp_path, [{"type": "custom", "module_path": "own.py", "class_name": name}])
    with pytest.raises(InputError) as refused:
        run_config(path, trust=True, cache=False)
    assert message in str(refused.value)


def test_the_stand_in_for_judge_llm_is_gone_when_a_file_is_loaded(recipes, monkeypatch):
    monkeypatch.setitem(sys.modules, "judge_llm", theirs := type(sys)("judge_llm"))
    load(recipes, "SafetyEvaluator")
    assert sys.modules["judge_llm"] is theirs
    assert not [name for name in sys.modules if name.startswith("judge_llm.")]


# What a case says instead


def test_a_case_overrides_by_the_name_of_the_class_or_the_type(recipes, tmp_path):
    cases = json.loads(json.dumps(CASES))
    cases["eval_cases"][1]["evaluator_config"] = {"SafetyEvaluator": {"unsafe_terms": []}}
    path = configuration(tmp_path, [custom(recipes), {"type": "length_evaluator", "config": {"max_length": 6}}])
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    assert run_config(path, trust=True, cache=False).scores["passed"].tolist() == [True, True, True, False]
    for name in ("LengthEvaluator", "length_evaluator"):
        cases["eval_cases"][1]["evaluator_config"][name] = {"max_length": 60}
        (tmp_path / "cases.json").write_text(json.dumps(cases))
        assert run_config(path, trust=True, cache=False).exit_code == 0


def test_the_released_interface_is_handed_the_case_s_own_settings(tmp_path):
    class Least(BaseEvaluator):
        made = 0

        def __init__(self, config=None):
            super().__init__(config)
            Least.made += 1

        def evaluate(self, eval_case, agent_metadata, provider_result, eval_config=None):
            least = self.get_config(eval_config)["least"]
            said = agent_metadata.get("team")
            return EvaluatorResult(success=True, score=least, passed=True, details={"own": eval_config, "team": said})

    judge_llm.register_evaluator("least", Least)
    cases = json.loads(json.dumps(CASES))
    cases["eval_cases"][1]["evaluator_config"] = {"least": {"least": 0.75}}
    path = configuration(tmp_path, [{"type": "least", "config": {"least": 0.25}}], agent={"team": "blue"})
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    scores = run_config(path, cache=False).scores
    assert scores["score"].tolist() == [0.25, 0.75]
    assert [row["team"] for row in scores["metadata"]] == ["blue", "blue"]
    assert scores["metadata"][1]["own"] == {"least": 0.75}


def test_evaluators_run_in_threads_of_their_own(tmp_path):
    threads = []

    class Waits(BaseEvaluator):
        def evaluate(self, test_case, response):
            threads.append(threading.current_thread())
            return EvaluationResult(passed=True, score=1.0)

    judge_llm.register_evaluator("waits", Waits)
    run_config(configuration(tmp_path, [{"type": "waits"}]), cache=False)
    assert len(threads) == 2
    assert threading.main_thread() not in threads
