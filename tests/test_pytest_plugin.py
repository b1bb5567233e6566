"""Scores in a test suite: the assertions, and the plugin in a pytest of its own."""

import subprocess
import sys
import textwrap

import pandas as pd
import pytest

from mcpeval import to_csv
from mcpeval.errors import InputError
from mcpeval.exporting import to_jsonl, to_parquet
from mcpeval.frames import scores_frame
from mcpeval.testing import assert_no_regression, assert_passed


def scores(passed, agent="a", evaluator="e", status="ok", fingerprint=None):
    """A row for each task, of what it says whether it passed."""
    return scores_frame(
        [
            {"run_id": f"{agent}/{i}", "task_id": f"t{i}", "agent": agent, "evaluator": evaluator, "status": status,
             "score": None if one is None else float(one), "passed": one, "reason": f"because {i}",
             "fingerprint": fingerprint}
            for i, one in enumerate(passed)
        ]
    )  # fmt: skip


def test_scores_that_all_passed_pass_and_the_message_has_the_reason_of_each_that_failed():
    assert_passed(scores([True, True]))
    with pytest.raises(AssertionError, match="a, e: 1 of 2 passed, expected 100 %\n  t1: 0: because 1"):
        assert_passed(scores([True, False]))


def test_a_rate_is_of_each_agent_and_a_row_that_could_not_be_scored_has_not_passed():
    assert_passed(scores([True, True, True, False]), rate=0.75)
    with pytest.raises(AssertionError, match="2 of 4 passed, expected 75 %\n  t2: no verdict"):
        assert_passed(scores([True, True, None, False]), rate=0.75)


def test_rows_with_nothing_to_judge_do_not_count_and_nothing_but_those_is_no_pass():
    with pytest.raises(AssertionError, match="nothing was judged: 2 rows"):
        assert_passed(scores([None, None], status="skipped"))


def test_a_score_needs_a_threshold_to_pass():
    graded = scores([True, True]).assign(passed=None, score=[0.5, 0.75])
    with pytest.raises(InputError, match="nothing says from which score 'e' passes"):
        assert_passed(graded)
    assert_passed(graded, threshold=0.5)
    for threshold in ("0.5", 5, True):
        with pytest.raises(InputError, match="should be a score from 0 to 1"):
            assert_passed(graded, threshold=threshold)
    with pytest.raises(AssertionError, match="1 of 2 passed"):
        assert_passed(graded, threshold=0.6)


@pytest.mark.parametrize(
    ("given", "message"), [({"rate": 80}, "rate=80 should be a share"), ({"rate": True}, "rate=True")]
)
def test_an_impossible_rate_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        assert_passed(scores([True]), **given)
    with pytest.raises(InputError, match="no column 'evaluator'"):
        assert_passed(scores([True]).drop(columns="evaluator"))


def test_a_drop_that_chance_explains_passes_and_one_that_it_does_not_fails(tmp_path):
    # Exact McNemar: 5 tasks to none has p = 2 / 2**5 = .0625, 6 to none p = 2 / 2**6 = .03125.
    before = scores([True] * 20)
    path = to_csv(before, tmp_path / "baseline.csv")
    found = assert_no_regression(scores([True] * 15 + [False] * 5), path)
    assert found[["agent", "evaluator", "worse", "better", "tasks", "p"]].values.tolist() == [
        ["a", "e", 5, 0, 20, 0.0625]
    ]
    with pytest.raises(AssertionError, match=r"a, e: 0.700, and 1.000 in the baseline \(-0.300, p = 0.031, mcnemar"):
        assert_no_regression(scores([True] * 14 + [False] * 6), path)
    for file in (to_parquet(before, tmp_path / "b.parquet"), to_jsonl(before, tmp_path / "b.jsonl")):
        assert_no_regression(scores([True] * 14 + [False] * 6), file, alpha=0.01)


def test_several_drops_are_adjusted_together_by_holms_method():
    # Of three, 7 tasks to none has p = 3 * 2 / 2**7 = .047, and 6 to none 2 * 2 / 2**6 = .0625.
    before = pd.concat([scores([True] * 20, evaluator=name) for name in "xyz"])
    drops = {"x": 6, "y": 7, "z": 0}
    now = pd.concat([scores([True] * (20 - n) + [False] * n, evaluator=name) for name, n in drops.items()])
    with pytest.raises(AssertionError) as told:
        assert_no_regression(now, before)
    assert str(told.value).startswith("a, y: 0.650") and "p = 0.047" in str(told.value)
    assert "a, x" not in str(told.value)


def test_a_baseline_without_rows_is_refused_because_everything_would_pass():
    with pytest.raises(InputError, match="baseline has no rows"):
        assert_no_regression(scores([True]), scores([]))


def test_an_improvement_is_no_regression_and_a_missing_evaluator_is():
    assert_no_regression(scores([True] * 20), scores([False] * 20))
    with pytest.raises(AssertionError, match="a, e: is in the baseline, and not in the scores"):
        assert_no_regression(scores([True] * 20, evaluator="f"), scores([True] * 20))


def test_tasks_that_are_not_those_of_the_baseline_are_said():
    other = scores([True] * 3).assign(task_id=["x", "y", "z"])
    with pytest.warns(UserWarning), pytest.raises(AssertionError, match="no task has a score in both"):
        assert_no_regression(other, scores([True] * 3))


def test_another_evaluator_than_the_baselines_is_warned_of():
    with pytest.warns(UserWarning, match="'e' is not the evaluator that scored the baseline"):
        assert_no_regression(scores([True] * 3, fingerprint="x"), scores([True] * 3, fingerprint="y"))


SUITE = """
    import pytest
    from mcpeval.testing import assert_passed, assert_no_regression

    def agent(task, session):
        return "4" if "2 + 2" in task.question else "Paris"

    @pytest.mark.mcpeval(["What is 2 + 2?"], {"mine": agent}, evaluators={"four": lambda output: output == "4"})
    def test_it_knows_sums(mcpeval_runs, mcpeval_scores):
        assert mcpeval_runs["agent"].tolist() == ["mine"]
        assert_passed(mcpeval_scores)

    def five(output):
        return output == "5", output

    @pytest.mark.mcpeval(["What is 2 + 3?"], {"mine": agent}, evaluators=five)
    def test_it_knows_other_sums(mcpeval_scores):
        assert_passed(mcpeval_scores)

    def test_without_a_marker(mcpeval_runs):
        pass

    @pytest.mark.mcpeval(["What is it?"], agents=agent, trails=2)
    def test_misspelt(mcpeval_runs):
        pass
"""

MARKS = """
    import pytest

    ASKED = []

    def agent(task, session):
        ASKED.append(task.question)
        return "4"

    def four(output):
        return output == "4"

    @pytest.mark.mcpeval(["What is 2 + 2?"], {"mine": agent}, evaluators=four, budget_usd=1, errors="raise")
    class TestAll:
        def test_what_the_class_says(self, mcpeval_scores):
            assert mcpeval_scores["passed"].tolist() == [True]

        @pytest.mark.mcpeval(tasks=["What is 2 + 3?"], trials=2)
        def test_what_the_function_says_beside_it(self, mcpeval_runs, mcpeval_scores):
            assert mcpeval_runs["question"].tolist() == ["What is 2 + 3?"] * 2
            assert mcpeval_scores["passed"].tolist() == [True, True]

    @pytest.mark.parametrize("n", [pytest.param(n, marks=pytest.mark.mcpeval([f"{n} + {n}?"], agent, evaluators=four))
                                   for n in (1, 2)])
    def test_each_parameter_has_its_own(n, mcpeval_runs):
        assert mcpeval_runs["question"].tolist() == [f"{n} + {n}?"]

    @pytest.mark.mcpeval(["never asked"], agent, evaluators=[])
    def test_no_evaluators(mcpeval_scores):
        pass

    @pytest.mark.mcpeval(["never asked"], agent, tasks=["or this"])
    def test_tasks_twice(mcpeval_runs):
        pass

    @pytest.mark.mcpeval(["never asked"], agent, evaluators=3)
    def test_no_evaluator(mcpeval_scores):
        pass

    def test_nobody_was_asked_in_vain():
        assert "never asked" not in ASKED
"""


def test_the_plugin_is_installed_runs_what_the_marker_says_and_shows_the_reasons(tmp_path):
    (tmp_path / "test_agent.py").write_text(textwrap.dedent(SUITE))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "--strict-markers",
        "-q",
        "-rA",
        "test_agent.py",
    ]
    done = subprocess.run(
        [*command, f"--mcpeval-cache={tmp_path / 'cache'}"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "1 passed, 1 failed, 2 errors" in done.stdout.replace("1 failed, 1 passed", "1 passed, 1 failed")
    assert "mine, five: 0 of 1 passed, expected 100 %" in done.stdout
    assert "0: Paris" in done.stdout
    assert "tasks and agents are not given" in done.stdout
    assert "unknown argument 'trails'. Did you mean 'trials'?" in done.stdout
    assert (tmp_path / "cache").is_dir()


@pytest.mark.parametrize("side_by_side", [[], ["-n", "2"]])
def test_marks_on_classes_functions_and_parameters_are_put_together_and_checked_before_anything_runs(
    tmp_path, side_by_side
):
    if side_by_side:
        pytest.importorskip("xdist")
    (tmp_path / "test_agent.py").write_text(textwrap.dedent(MARKS))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers", "-q", "test_agent.py"]
    done = subprocess.run(
        [*command, *side_by_side, f"--mcpeval-cache={tmp_path / 'cache'}"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "5 passed, 3 errors" in done.stdout, done.stdout
    assert "evaluators is empty; None takes those of the tasks" in done.stdout
    assert "'tasks' is given by place and by name" in done.stdout
    assert "expected a function of a row" in done.stdout


def test_the_plugin_loads_neither_pandas_nor_a_model_library_where_no_test_asks(tmp_path):
    (tmp_path / "test_none.py").write_text(
        "import sys\n\ndef test_nothing(pytestconfig):\n"
        "    assert pytestconfig.pluginmanager.has_plugin('mcpeval')\n"
        "    assert not {'pandas', 'litellm', 'mcp'} & set(sys.modules)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:anyio", "-p", "no:logfire"]
    done = subprocess.run([*command, "test_none.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_replay_fails_where_the_cache_has_no_answer(tmp_path, cache):
    (tmp_path / "test_agent.py").write_text(
        "import pytest, mcpeval\n\n"
        "@pytest.mark.mcpeval(['What is it?'], mcpeval.Agent('openai/gpt-4.1-mini', 'basic'))\n"
        "def test_it(mcpeval_runs):\n    pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_agent.py", "--mcpeval-replay"]
    done = subprocess.run(
        [*command, f"--mcpeval-cache={cache.path}"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "CacheMiss: replay: task" in done.stdout
    assert "is not in the cache" in done.stdout
