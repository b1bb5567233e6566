"""Summaries and wide tables of scores."""

import re

import numpy as np
import pandas as pd
import pytest

from mcpeval import stats
from mcpeval.errors import InputError
from mcpeval.frames import scores_frame
from mcpeval.reports import compare, pass_at_k, summarize, wide


def score_rows(table, **common):
    """Rows of scores from ``{(task, trial): score}``, or with a third part of the key: the sample."""
    rows = []
    for (task, trial, *sample), score in table.items():
        status = "error" if score is None else "ok"
        rows.append(
            {"run_id": f"{task}/{trial}/{common.get('agent')}", "task_id": task, "trial": trial, "agent": "a",
             "evaluator": "exact", "score": score, "status": status, "cost_usd": 0.0,
             "sample": (sample or [0])[0], **common}
        )  # fmt: skip
    return rows


def frame_of(*tables, **common):
    rows = [row for table in tables for row in score_rows(table, **common)]
    return scores_frame(rows, keys=["run_id", "task_id", "agent", "trial"])


def test_one_trial_per_task_gets_wilsons_interval():
    scores = frame_of({(f"t{i}", 0): float(i < 7) for i in range(10)})
    (row,) = summarize(scores).to_dict("records")
    assert (row["agent"], row["evaluator"], row["score"], row["method"]) == ("a", "exact", 0.7, "wilson")
    assert (row["low"], row["high"]) == stats.wilson(7, 10)
    assert (row["n"], row["tasks"], row["trials"], row["unscored"]) == (10, 10, 1, 0)


def test_trials_are_averaged_within_their_task_and_every_task_weighs_the_same():
    scores = frame_of({("t0", 0): 1.0, ("t0", 1): 1.0, ("t0", 2): 1.0, ("t0", 3): 1.0, ("t1", 0): 0.0, ("t2", 0): 0.0})
    (row,) = summarize(scores).to_dict("records")
    assert row["score"] == pytest.approx(1 / 3)  # not 4 of 6
    assert (row["method"], row["n"], row["tasks"], row["trials"]) == ("clustered", 6, 3, 4)
    assert (row["low"], row["high"]) == stats.clustered([1.0, 0.0, 0.0], 6)


def test_samples_are_averaged_within_their_run_before_runs_within_their_task():
    scores = frame_of({("t0", 0, 0): 1.0, ("t0", 0, 1): 1.0, ("t0", 0, 2): 0.5, ("t0", 1, 0): 0.0, ("t1", 0, 0): 0.25})
    (row,) = summarize(scores).to_dict("records")
    means = [(2.5 / 3 + 0.0) / 2, 0.25]
    assert row["score"] == pytest.approx(np.mean(means))
    assert (row["method"], row["n"], row["tasks"], row["trials"]) == ("t", 5, 2, 2)
    assert (row["low"], row["high"]) == pytest.approx(stats.t_interval(means))


def test_a_row_without_a_score_is_counted_and_poisons_nothing():
    scores = frame_of({("t0", 0): 1.0, ("t0", 1): None, ("t1", 0): 0.0, ("t2", 0): None, ("t3", 0): 1.0})
    (row,) = summarize(scores).to_dict("records")
    assert row["score"] == pytest.approx(2 / 3)
    assert (row["n"], row["tasks"], row["unscored"], row["method"]) == (3, 3, 2, "wilson")


def test_a_group_in_which_nothing_was_scored_is_a_row_with_missing_numbers():
    scores = frame_of({("t0", 0): None, ("t1", 0): None})
    (row,) = summarize(scores).to_dict("records")
    assert np.isnan([row["score"], row["low"], row["high"]]).all()
    assert (row["n"], row["tasks"], row["trials"], row["unscored"]) == (0, 0, 0, 2)
    assert pd.isna(row["method"])


def test_one_task_has_a_score_and_no_interval():
    for table in ({("t0", 0): 1.0}, {("t0", 0): 1.0, ("t0", 1): 0.0}, {("t0", 0): 0.3}):
        (row,) = summarize(frame_of(table)).to_dict("records")
        assert row["score"] == pytest.approx(np.mean(list(table.values())))
        assert np.isnan([row["low"], row["high"]]).all() and pd.isna(row["method"])


def test_groups_come_in_the_order_of_their_first_row_and_missing_labels_are_one():
    tables = [frame_of({("t0", trial): 1.0}, agent=name) for trial, name in enumerate(("z", "a", None, "z"))]
    scores = pd.concat(tables, ignore_index=True)
    table = summarize(scores)
    assert table["agent"].isna().tolist() == [False, False, True]
    assert table["agent"].tolist()[:2] == ["z", "a"]
    assert table["n"].tolist() == [2, 1, 1]


def test_an_unknown_price_makes_the_sum_unknown_and_never_zero():
    priced = frame_of({("t0", 0): 1.0, ("t1", 0): 1.0}, cost_usd=0.25, tokens_in=3, tokens_out=None, seconds=1.5)
    (row,) = summarize(priced).to_dict("records")
    assert (row["cost_usd"], row["tokens_in"], row["seconds"]) == (0.5, 6, 3.0)
    assert pd.isna(row["tokens_out"])
    priced.loc[1, "cost_usd"] = None
    assert np.isnan(summarize(priced)["cost_usd"][0])
    assert np.isnan(summarize(priced.drop(columns="cost_usd"))["cost_usd"][0])


def test_what_had_nothing_to_check_is_counted_as_vacuous():
    scores = frame_of({("t0", 0): 1.0, ("t1", 0): 1.0}, metadata={"vacuous": True})
    assert summarize(scores)["vacuous"].tolist() == [2]
    assert summarize(scores.drop(columns="metadata"))["vacuous"].tolist() == [0]


def test_without_tasks_each_run_is_its_own_task_and_without_runs_each_row():
    scores = frame_of({("t0", 0, 0): 1.0, ("t0", 0, 1): 1.0, ("t0", 1, 0): 0.0})
    assert summarize(scores.drop(columns="task_id"))["tasks"].tolist() == [2]
    assert summarize(scores.drop(columns=["task_id", "run_id"]))["tasks"].tolist() == [3]
    scores.loc[2, "task_id"] = None
    assert summarize(scores)["tasks"].tolist() == [2]


def test_the_default_groups_by_what_there_is_and_a_column_asked_for_must_be_there():
    scores = frame_of({("t0", 0): 1.0})
    assert list(summarize(scores.drop(columns="agent")).columns)[:2] == ["evaluator", "score"]
    assert len(summarize(scores[["score"]])) == 1
    with pytest.raises(InputError, match="'agnt'.*Did you mean 'agent'"):
        summarize(scores, by=["agnt"])
    with pytest.raises(InputError, match="'agent', which is no column"):
        summarize(scores.drop(columns="agent"), by=["agent", "evaluator"])


def test_graded_scores_that_are_all_the_same_say_that_their_interval_is_wilsons():
    (row,) = summarize(frame_of({(f"t{i}", 0): 0.75 for i in range(8)})).to_dict("records")
    assert (row["low"], row["high"], row["method"]) == (*stats.wilson(6, 8), "wilson")


def test_the_bootstrap_can_be_asked_for_and_repeats_with_its_seed():
    scores = frame_of({(f"t{i}", 0): i / 10 for i in range(10)})
    first, again = summarize(scores, method="bca", seed=3), summarize(scores, method="bca", seed=3)
    pd.testing.assert_frame_equal(first, again)
    assert first["method"].tolist() == ["bca"]
    assert (first["low"][0], first["high"][0]) == stats.bca([i / 10 for i in range(10)], seed=3)
    assert summarize(frame_of({("t0", 0): 1.0, ("t1", 0): 0.0}), method="t")["method"].tolist() == ["t"]


def test_a_wider_confidence_gives_a_wider_interval():
    scores = frame_of({(f"t{i}", 0): float(i < 7) for i in range(10)})
    narrow, broad = summarize(scores, ci=0.5), summarize(scores, ci=0.99)
    assert broad["low"][0] < narrow["low"][0] < narrow["high"][0] < broad["high"][0]


def test_failures_can_be_left_out_or_count_as_nothing_reached():
    scores = frame_of(
        {("t0", 0): 1.0, ("t1", 0): 0.0, ("t2", 0): 1.0, ("t3", 0): None, ("t4", 0): None, ("t5", 0): None}
    )
    scores.loc[4, "status"] = "skipped"  # nothing to judge there: no failure
    scores.loc[5, "status"], scores.at[5, "metadata"] = "skipped", {"error_class": "server"}  # the run broke down
    both = summarize(scores, errors="both")
    assert both["errors"].tolist() == ["exclude", "fail"]
    assert list(both.columns)[:4] == ["agent", "evaluator", "errors", "score"]
    assert both["score"].tolist() == pytest.approx([2 / 3, 2 / 5])
    assert both[["n", "tasks", "unscored"]].to_numpy().tolist() == [[3, 3, 3], [5, 5, 3]]
    for errors in ("exclude", "fail"):
        alone = both[both["errors"] == errors].drop(columns="errors").reset_index(drop=True)
        pd.testing.assert_frame_equal(summarize(scores, errors=errors), alone)
    assert summarize(scores.drop(columns="status"), errors="fail")["n"].tolist() == [6]


def test_both_denominators_come_out_of_runs_that_broke_down():
    from mcpeval.frames import runs_frame
    from mcpeval.scoring import score

    runs = runs_frame(
        [
            {"run_id": "r0", "task_id": "t0", "agent": "a", "output": "yes", "status": "ok"},
            {"run_id": "r1", "task_id": "t1", "agent": "a", "output": "no", "status": "ok"},
            {"run_id": "r2", "task_id": "t2", "agent": "a", "status": "error", "error_class": "server"},
        ]
    )
    scores = score(runs, {"yes": lambda output: output == "yes"}, cache=False)
    both = summarize(scores, errors="both")
    assert both["score"].tolist() == pytest.approx([1 / 2, 1 / 3])
    assert both["unscored"].tolist() == [1, 1]


def test_another_column_takes_the_place_of_the_task():
    scores = frame_of({(f"t{i}", 0): float(i % 2) for i in range(8)})
    scores["template"] = ["x"] * 6 + ["y", "z"]
    (row,) = summarize(scores, over="template").to_dict("records")
    assert row["score"] == pytest.approx((0.5 + 0.0 + 1.0) / 3)
    assert (row["tasks"], row["trials"], row["method"]) == (3, 6, "clustered")
    assert (row["low"], row["high"]) == stats.clustered([0.5, 0.0, 1.0], 8)
    with pytest.raises(InputError, match="over has 'templat', which is no column. Did you mean 'template'"):
        summarize(scores, over="templat")


def test_another_column_takes_the_place_of_the_score():
    scores = frame_of({(f"t{i}", 0): 0.5 for i in range(6)}).assign(turns=[3, 5, 4, 8, 2, 2])
    scores["passed"] = pd.array([True, True, False, None, True, False], dtype="boolean")
    (row,) = summarize(scores, value="passed").to_dict("records")
    assert (row["score"], row["n"], row["unscored"], row["method"]) == (3 / 5, 5, 1, "wilson")
    (row,) = summarize(scores, value="turns").to_dict("records")
    assert (row["score"], row["method"]) == (4.0, "t")
    assert 1 < row["low"] < 4 < row["high"] < 8  # not cut to [0, 1]
    (row,) = summarize(scores.assign(turns=[0, 1, 0, 1, 1, 1]), value="turns").to_dict("records")
    assert row["method"] == "t"  # a count that happens to be 0 or 1 is no rate
    (row,) = summarize(scores.assign(turns=7), value="turns").to_dict("records")
    assert row["score"] == 7.0 and np.isnan(row["low"]) and pd.isna(row["method"])
    with pytest.raises(InputError, match="no column 'turn'. Did you mean 'turns'"):
        summarize(scores, value="turn")
    with pytest.raises(InputError, match="not the worst 'turns'"):
        summarize(scores, value="turns", errors="fail")


def test_rows_that_are_there_twice_are_refused_with_the_remedy():
    scores = frame_of({("t0", 0): 1.0, ("t1", 0): 0.0}, fingerprint="f")
    twice = pd.concat([scores, scores])
    told = "2 rows of scores are there more than once, as run_id='t0/0/None', evaluator='exact', sample=0"
    for report in (summarize, pass_at_k, lambda frame: compare(frame.assign(half=["x", "y"] * 2), "half")):
        with pytest.raises(InputError, match=told):
            report(twice)
    columns = ["run_id", "evaluator", "fingerprint", "sample"]
    with pytest.raises(InputError, match=re.escape(f"scores.drop_duplicates({columns})")):
        summarize(twice)
    pd.testing.assert_frame_equal(summarize(twice.drop_duplicates(columns)), summarize(scores))


def test_rows_are_not_the_same_where_anything_tells_them_apart():
    scores = frame_of({("t0", 0): 1.0, ("t1", 0): 0.0}, fingerprint="f")
    for column, value in (("sample", 1), ("fingerprint", "g"), ("evaluator", "b"), ("agent", "b"), ("run_id", None)):
        assert summarize(pd.concat([scores, scores.assign(**{column: value})]))["n"].sum() == 4, column
    factor = pd.concat([scores.assign(temperature=0.0), scores.assign(temperature=1.0)])
    assert summarize(factor, by="temperature")["n"].tolist() == [2, 2]
    # A frame that does not number its samples cannot say that it repeats itself.
    unnumbered = scores[["run_id", "task_id", "evaluator", "score"]]
    assert summarize(pd.concat([unnumbered] * 2))["n"].tolist() == [4]


def test_what_is_no_frame_of_scores_is_refused():
    scores = frame_of({("t0", 0): 1.0})
    for report in (summarize, wide):
        with pytest.raises(InputError, match="scores is a list; expected a frame"):
            report([1.0])
        with pytest.raises(InputError, match="the column 'score' more than once"):
            report(pd.concat([scores, scores["score"]], axis=1))
    with pytest.raises(InputError, match="by=3 should be names of columns"):
        summarize(scores, by=3)
    with pytest.raises(InputError, match="nested cells in the column 'task_id'"):
        summarize(scores.assign(task_id=pd.Series([["t0"]], dtype=object)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ci": 95}, "ci=95 should lie between 0 and 1"),
        ({"ci": "95"}, "ci='95' should lie between 0 and 1"),
        ({"ci": True}, "ci=True should lie between 0 and 1"),
        ({"method": "wilsn"}, "method='wilsn'"),
        ({"errors": "fial"}, "errors='fial'. Did you mean 'fail'"),
        ({"by": "metadata"}, "'metadata', whose cells are nested"),
        ({"by": "tokens_in"}, "'tokens_in', which is a column of the summary"),
    ],
)
def test_an_argument_that_cannot_be_meant_is_named(change, message):
    scores = frame_of({("t0", 0): 1.0}, metadata={"a": 1})
    with pytest.raises(InputError) as raised:
        summarize(scores, **change)
    assert message in str(raised.value)


def test_scores_that_are_missing_texts_or_off_the_scale_are_refused():
    scores = frame_of({("t0", 0): 1.0})
    with pytest.raises(InputError, match="no column 'score'"):
        summarize(scores.drop(columns="score"))
    with pytest.raises(InputError, match=r"score=4 in row 0; expected numbers from 0 to 1"):
        summarize(scores.assign(score=4.0))
    with pytest.raises(InputError, match="'score' should hold numbers"):
        summarize(scores.assign(score="good"))


def test_truth_values_are_scores_and_no_rows_give_no_groups():
    scores = pd.DataFrame({"agent": ["a", "a", "a"], "score": pd.Series([True, False, None], dtype=object)})
    (row,) = summarize(scores).to_dict("records")
    assert (row["score"], row["n"], row["unscored"]) == (0.5, 2, 1)
    assert summarize(scores.astype({"score": "boolean"}))["score"].tolist() == [0.5]
    empty = summarize(frame_of())
    assert len(empty) == 0 and {"score", "low", "high", "n", "tasks", "unscored", "cost_usd"} <= set(empty.columns)


def test_a_category_keeps_its_dtype_and_the_frame_given_is_not_changed():
    scores = frame_of({("t0", 0): 1.0, ("t1", 0): 0.0})
    scores["level"] = pd.Categorical(["low", "high"], ["low", "mid", "high"], ordered=True)
    before = scores.copy()
    assert summarize(scores, by="level")["level"].dtype == scores["level"].dtype
    pd.testing.assert_frame_equal(scores, before)


def test_wide_has_a_row_per_run_and_a_group_per_evaluator_in_the_order_given():
    rows = [
        {"run_id": "r2", "task_id": "t", "evaluator": "right", "score": 1.0, "passed": True, "label": True,
         "reason": "yes", "status": "ok"},
        {"run_id": "r2", "task_id": "t", "evaluator": "grade", "score": 0.5, "label": "B", "reason": "",
         "status": "ok"},
        {"run_id": "r1", "task_id": "t", "evaluator": "right", "score": None, "reason": "", "status": "error"},
    ]  # fmt: skip
    table = wide(scores_frame(rows, keys=["run_id", "task_id"], index=["x", "x", "y"]))
    assert table.index.to_frame()["run_id"].tolist() == ["r2", "r1"]
    assert list(table.index.names) == ["run_id", "task_id"]
    assert [name for name, _ in table.columns[::5]] == ["right", "grade"]
    assert table["right"].columns.tolist() == ["score", "passed", "label", "reason", "status"]
    assert table["right", "label"].tolist() == [True, None]
    assert table["grade", "label"].tolist() == ["B", None]
    assert table["right", "status"].tolist() == ["ok", "error"]
    assert table["grade", "status"].isna().tolist() == [False, True]
    assert [str(dtype) for dtype in table["grade"].dtypes] == ["float64", "boolean", "object", "str", "str"]
    assert table.xs("score", axis=1, level=1).loc[("r2", "t")].tolist() == [1.0, 0.5]


def test_wide_puts_the_samples_of_a_judge_together():
    def sample(score, label, passed, reason, status="ok"):
        return {"run_id": "r", "evaluator": "judge", "score": score, "label": label, "passed": passed, "reason": reason,
                "status": status}  # fmt: skip

    unparsed = sample(None, None, None, "off the scale", "unparsed")
    three = [unparsed, sample(0.75, 4, True, "good"), sample(0.25, 2, False, "poor")]
    row = wide(scores_frame(three, keys=["run_id"]))["judge"].iloc[0]
    assert row["score"] == 0.5
    assert pd.isna(row["passed"])
    assert row["label"] == [None, 4, 2]
    assert row["reason"] == "off the scale\ngood\npoor"
    assert row["status"] == "ok"
    same = wide(scores_frame([three[1], three[1], three[2], three[1]], keys=["run_id"]))["judge"].iloc[0]
    assert bool(same["passed"]) is True
    assert wide(scores_frame([three[1]] * 2, keys=["run_id"]))["judge"].iloc[0]["label"] == 4


def test_wide_of_nothing_is_empty_and_needs_runs_and_evaluators():
    assert wide(scores_frame([])).shape == (0, 0)
    with pytest.raises(InputError, match="no column 'run_id'"):
        wide(pd.DataFrame({"evaluator": ["a"], "run": ["r"]}))
    with pytest.raises(InputError, match="no column 'evaluator'"):
        wide(pd.DataFrame({"run_id": ["r"]}))


def test_ten_thousand_runs_with_three_evaluators_keep_their_order():
    count = 10_000
    scores = scores_frame(
        [
            {"run_id": str(i), "task_id": str(i // 2), "agent": "ab"[i % 2], "evaluator": name, "score": float(i % 2)}
            for i in reversed(range(count))
            for name in ("x", "y", "z")
        ]
    )
    assert wide(scores).index.get_level_values("run_id").tolist() == [str(i) for i in reversed(range(count))]
    assert summarize(scores)["n"].tolist() == [count // 2] * 6
