"""A summary of sampled verdicts says how far the samples of a run lie apart."""

from __future__ import annotations

import json
import math

import pandas as pd
import pytest

import mcpeval


def frame(*runs, evaluator="judge"):
    """One row for each (score, label) of each run."""
    return pd.DataFrame(
        [
            {"run_id": f"r{i}", "agent": "a", "evaluator": evaluator, "score": score, "label": label, "sample": n}
            for i, run in enumerate(runs)
            for n, (score, label) in enumerate(run)
        ]
    )


def test_spread_and_mode_share_are_means_over_the_runs_that_were_sampled():
    yes, no, none = (1.0, True), (0.0, False), (None, None)
    scores = frame([yes, yes, no, none], [no, no, no, no], [yes, none, none, none])
    [line] = mcpeval.summarize(scores).to_dict("records")
    # The deviations of (1, 1, 0) and (0, 0, 0, 0): the square root of 1/3, and 0. The third has one verdict.
    assert line["spread"] == pytest.approx(math.sqrt(1 / 3) / 2)
    assert line["mode_share"] == pytest.approx((2 / 3 + 1) / 2)


def test_two_judges_are_not_each_others_samples():
    low, high = frame([(0.0, 1), (0.0, 1)]), frame([(1.0, 5), (0.75, 4)], evaluator="other")
    [line] = mcpeval.summarize(pd.concat([low, high]), by="agent").to_dict("records")
    assert line["mode_share"] == pytest.approx((1 + 0.5) / 2)
    first, second = mcpeval.summarize(pd.concat([low, high]))["spread"]
    assert first == 0 and second == pytest.approx(0.25 / math.sqrt(2))


def test_comparisons_with_different_opponents_are_not_samples_of_a_run():
    drawn = {"b": [1.0, 1.0], "c": [0.0, 1.0]}  # of run r0 with b and with c, two samples each
    rows = [
        {"run_id": "r0", "task_id": "t0", "evaluator": "pair", "score": score, "label": "a" if score else other,
         "passed": bool(score), "sample": n, "metadata": {"between": ["a", other]}}
        for other, scores in drawn.items()
        for n, score in enumerate(scores)
    ]  # fmt: skip
    (found,) = mcpeval.summarize(pd.DataFrame(rows)).to_dict("records")
    assert found["spread"] == pytest.approx((0 + math.sqrt(0.5)) / 2) and found["mode_share"] == (1 + 0.5) / 2
    card = mcpeval.judge_card(pd.DataFrame(rows), {"r0": True}).set_index("measure")
    assert card.loc["retest", ["value", "n"]].tolist() == [0.5, 2]
    alone = mcpeval.judge_card(pd.DataFrame([row for row in rows if row["sample"] == 0]), {"r0": True})
    assert alone.set_index("measure")["note"]["retest"] == "needs two or more samples of a run"


def test_without_samples_there_is_no_such_column_and_a_group_without_them_has_none():
    single = frame([(1.0, True)], [(0.0, False)])
    assert not {"spread", "mode_share"} & set(mcpeval.summarize(single).columns)
    both = pd.concat([single, frame([(1.0, 5), (1.0, 5)], evaluator="sampled")])
    assert mcpeval.summarize(both)["mode_share"].isna().tolist() == [True, False]


def test_samples_of_published_scores_are_the_same_as_often_as_was_counted(conformance):
    lines = (conformance / "data" / "prometheus_k3" / "vicuna_eval_gpt4_k3.jsonl").read_text("utf-8").splitlines()
    drawn = [json.loads(line)["gpt4_score"] for line in lines]
    scores = frame(*([((s - 1) / 4, s) for s in three if s is not None] for three in drawn if None not in three))
    shares = mcpeval.summarize(scores, by="run_id")["mode_share"]
    assert round(100 * (shares == 1).mean(), 1) == 62.2
