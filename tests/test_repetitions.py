"""pass@k and pass^k: unbiased, with intervals over tasks, and never of trials that are not there."""

from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
import pytest

from mcpeval import stats
from mcpeval.errors import InputError
from mcpeval.exporting import read_runs
from mcpeval.frames import scores_frame
from mcpeval.reports import pass_at_k
from mcpeval.scoring import score

COLUMNS = ["agent", "evaluator", "k", "pass_at_k", "pass_at_k_low", "pass_at_k_high", "pass_hat_k", "pass_hat_k_low",
           "pass_hat_k_high", "tasks"]  # fmt: skip


def trials_of(table, agent="a", **common):
    """Scores of ``{task: [passed, ...]}``, a run each."""
    return scores_frame(
        [
            {"run_id": f"{agent}/{task}/{trial}", "task_id": task, "agent": agent, "trial": trial, "evaluator": "exact",
             "score": None if passed is None else float(passed), "passed": passed, "status": "ok", **common}
            for task, passes in table.items()
            for trial, passed in enumerate(passes)
        ],
        keys=["run_id", "task_id", "agent", "trial"],
    )  # fmt: skip


def test_the_published_numbers_of_tau_bench_come_out(conformance):
    """gpt-4o, airline: pass^1 to pass^4 of the paper's table (arXiv 2406.12045) and of its repository."""
    runs = read_runs(conformance / "data" / "tau_bench" / "gpt-4o_airline_50x4.json")
    scores = score(runs, {"reward": lambda metadata: metadata["reward"]}, cache=False)
    found = pass_at_k(scores, k=[1, 2, 3, 4])
    assert found["pass_hat_k"].round(3).tolist() == [0.420, 0.273, 0.220, 0.200]
    assert list(found.columns) == COLUMNS
    assert found["tasks"].tolist() == [50] * 4
    assert (found["pass_hat_k_low"] < found["pass_hat_k"]).all() and (
        found["pass_hat_k"] < found["pass_hat_k_high"]
    ).all()
    assert found["pass_at_k"].is_monotonic_increasing and found["pass_at_k"][0] == pytest.approx(0.420)


def test_both_are_the_share_of_all_draws_of_k_trials():
    table = {"t0": [0, 0, 0, 0, 0], "t1": [1, 0, 0, 0, 0], "t2": [1, 0, 1, 1, 0], "t3": [1, 1, 1, 1, 1]}
    found = pass_at_k(trials_of(table), k=range(1, 6)).set_index("k")
    for k in range(1, 6):
        draws = [list(combinations(passes, k)) for passes in table.values()]
        assert found["pass_at_k"][k] == pytest.approx(np.mean([np.mean([any(d) for d in each]) for each in draws]))
        assert found["pass_hat_k"][k] == pytest.approx(np.mean([np.mean([all(d) for d in each]) for each in draws]))


def test_the_formula_is_the_one_of_the_codex_paper():
    """The product form that Chen and others 2021 give as code, figure 3."""
    n, c, k = 200, 13, 10
    product = 1 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1))
    assert stats.pass_at_k([c], [n], k) == pytest.approx(product, abs=1e-12)
    assert stats.pass_hat_k([c], [n], k) == pytest.approx(comb(13, 10) / comb(200, 10))
    assert np.isnan(stats.pass_at_k([1], [1], 2)) and np.isnan(stats.pass_at_k([], [], 1))


def test_each_agent_and_evaluator_has_its_rows():
    scores = pd.concat([trials_of({"t0": [1, 0], "t1": [0, 0]}, agent=agent) for agent in ("z", "a")])
    both = pd.concat([scores, scores.assign(evaluator="other", passed=True, score=1.0)])
    found = pass_at_k(both, k=[1, 2])
    assert found[["agent", "evaluator", "k"]].to_numpy().tolist() == [
        ["z", "exact", 1], ["z", "exact", 2], ["a", "exact", 1], ["a", "exact", 2],
        ["z", "other", 1], ["z", "other", 2], ["a", "other", 1], ["a", "other", 2],
    ]  # fmt: skip
    assert found["pass_at_k"].tolist() == [0.25, 0.5, 0.25, 0.5, 1, 1, 1, 1]
    assert list(pass_at_k(scores.drop(columns=["agent", "evaluator"]), k=1).columns) == COLUMNS[2:]


def test_more_trials_than_there_are_is_refused_by_name():
    scores = trials_of({"t0": [1, 0, 1, 0], "t1": [1, None, 1, 0]})
    assert pass_at_k(scores, k=3)["k"].tolist() == [3]
    with pytest.raises(InputError, match=r"k=4 is more than the 3 scored trials of task 't1', agent='a'.*1 rows there"):
        pass_at_k(scores)
    with pytest.raises(InputError, match="k=2 is more than the 1 scored trials of task 't0'"):
        pass_at_k(trials_of({"t0": [1]}))


@pytest.mark.parametrize("k", [0, -1, 1.5, "2", [], None, [1, True]])
def test_a_k_that_is_no_number_of_trials_is_refused(k):
    with pytest.raises(InputError, match="should be a number of trials"):
        pass_at_k(trials_of({"t0": [1, 0]}), k=k)


def test_a_graded_score_needs_a_threshold_and_passed_goes_before_score():
    graded = trials_of({"t0": [1, 0], "t1": [1, 1]}).assign(score=0.75)
    assert pass_at_k(graded, k=2)["pass_hat_k"].tolist() == [0.5]
    with pytest.raises(InputError, match="score=0.75 in row 0 is neither pass nor fail"):
        pass_at_k(graded.assign(passed=pd.array([None] * 4, dtype="boolean")), k=1)
    with pytest.raises(InputError, match="no column 'task_id'"):
        pass_at_k(graded.drop(columns="task_id"), k=1)


def test_of_several_samples_of_a_run_more_than_half_have_to_pass():
    run = trials_of({"t0": [1, 0]})
    samples = pd.concat([run.assign(sample=0), run.assign(sample=1, passed=[True, True], score=1.0)])
    assert pass_at_k(samples, k=[1, 2])[["pass_at_k", "pass_hat_k"]].to_numpy().tolist() == [[0.5, 0.5], [1, 0]]


def test_one_task_has_no_interval_and_no_score_no_number():
    (row,) = pass_at_k(trials_of({"t0": [1, 0]}), k=1).to_dict("records")
    assert row["pass_at_k"] == 0.5 and np.isnan([row["pass_at_k_low"], row["pass_hat_k_high"]]).all()
    (row,) = pass_at_k(trials_of({"t0": [None, None]}), k=1).to_dict("records")
    assert row["tasks"] == 0 and np.isnan([row["pass_at_k"], row["pass_hat_k"]]).all()


@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_interval_of_pass_hat_k_covers(k):
    """Tasks whose own rates are drawn from a beta distribution; pass^k is that distribution's k-th moment."""
    rng = np.random.default_rng(k)
    a, b, held = 0.6, 0.8, 0
    truth = np.prod([(a + i) / (a + b + i) for i in range(k)])
    for _ in range(400):
        passed = rng.binomial(4, rng.beta(a, b, 40))
        low, high = stats.clustered(stats.all_of_k(passed, np.full(40, 4), k), 160)
        held += low <= truth <= high
    assert 0.92 < held / 400 < 0.985
