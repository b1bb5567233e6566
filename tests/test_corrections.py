"""Judges' rates corrected by labels: formulas, coverage, and what is refused."""

import re
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit, stdtrit

from mcpeval import corrected_rate, stats
from mcpeval.errors import InputError
from mcpeval.frames import scores_frame
from mcpeval.reports import labels_needed, summarize


def judged(verdicts, tasks=None, prefix="r", agent="a", evaluator="judge", **common):
    """A verdict on each of the runs r0, r1, ..."""
    return scores_frame(
        [
            {"run_id": f"{prefix}{i}", "task_id": f"{prefix}t{i if tasks is None else tasks[i]}", "agent": agent,
             "evaluator": evaluator, "passed": None if verdict is None else bool(verdict),
             "score": None if verdict is None else float(verdict), "status": "ok", **common}
            for i, verdict in enumerate(verdicts)
        ],
        keys=["run_id", "task_id", "agent"],
    )  # fmt: skip


def population(rng, n, rate, sensitivity, specificity):
    """What people think of runs, and what the judge does; shape (n,) each, 0 and 1."""
    good = rng.random(n) < rate
    return good.astype(float), np.where(good, rng.random(n) < sensitivity, rng.random(n) > specificity).astype(float)


def series(labels, prefix="r"):
    return pd.Series(labels, index=[f"{prefix}{i}" for i in range(len(labels))])


def row_of(table, method):
    (row,) = table[table["method"] == method].to_dict("records")
    return row


# --- PPI++ ----------------------------------------------------------------------------------------


def ppi_by_the_paper(y, judged_labelled, judged_rest, ci=0.95):
    """Angelopoulos, Duchi & Zrnic (2023): the mean with its power-tuning weight, for independent runs."""
    n, rest = len(y), len(judged_rest)
    everything = np.concatenate([judged_labelled, judged_rest])
    covariance = np.mean((y - y.mean()) * (judged_labelled - judged_labelled.mean()))
    weight = covariance / ((1 + n / rest) * everything.var())
    rate = y.mean() + weight * (judged_rest.mean() - judged_labelled.mean())
    variance = (y - weight * judged_labelled).var() / n + weight**2 * judged_rest.var() / rest
    half = stdtrit(n - 1, (1 + ci) / 2) * variance**0.5 / (rate * (1 - rate))
    return rate, expit(logit(rate) - half), expit(logit(rate) + half), weight


@pytest.mark.parametrize(("n", "rest"), [(60, 240), (300, 900)])
def test_the_mean_of_independent_runs_is_that_of_the_paper(n, rest):
    y, f = population(np.random.default_rng(n), n + rest, 0.6, 0.9, 0.7)
    found = stats.power_tuned(np.where(np.arange(n + rest) < n, y, np.nan), f, np.arange(n + rest))
    rate, low, high, weight = ppi_by_the_paper(y[:n], f[:n], f[n:])
    assert found.rate == pytest.approx(rate, abs=1e-12)
    assert found.weight * rest / (n + rest) == pytest.approx(weight, abs=1e-12)
    # Theirs has no correction for n - 1, and the verdicts' mean in each part; ours that of all.
    assert (found.low, found.high) == pytest.approx((low, high), abs=1.5 / n**1.5)
    assert found.rho == pytest.approx(np.corrcoef(y[:n], f[:n])[0, 1])


def test_a_judge_that_knows_nothing_gets_no_weight_and_a_perfect_one_stands_for_labels():
    rng = np.random.default_rng(1)
    y = (rng.random(4000) < 0.5).astype(float)
    known = np.where(np.arange(4000) < 200, y, np.nan)
    blind = stats.power_tuned(known, (rng.random(4000) < 0.5).astype(float), np.arange(4000))
    assert abs(blind.weight) < 0.15 and blind.gain == pytest.approx(1, abs=0.1)
    sure = stats.power_tuned(known, y, np.arange(4000))
    assert sure.rate == pytest.approx(y.mean()) and sure.gain == pytest.approx(20, rel=0.05)


def test_all_labels_the_same_are_no_certainty():
    found = stats.power_tuned([1.0] * 20 + [np.nan] * 20, [1.0, 0.0] * 20, np.arange(40))
    assert (found.rate, found.low, found.high) == (1.0, *stats.wilson(20, 20))
    assert np.isnan(stats.power_tuned([1.0, np.nan], [1.0, 0.0], [0, 1]).low)
    assert np.isnan(stats.power_tuned([np.nan, np.nan], [1.0, 0.0], [0, 1]).rate)


@pytest.mark.parametrize("rate", [0.3, 0.5, 0.8])
@pytest.mark.parametrize(("sensitivity", "specificity"), [(0.9, 0.8), (0.6, 0.6), (0.97, 0.95)])
def test_the_interval_of_ppi_covers_without_a_shift(rate, sensitivity, specificity):
    rng = np.random.default_rng([int(100 * rate), int(100 * sensitivity)])
    held = []
    for _ in range(600):
        y, f = population(rng, 400, rate, sensitivity, specificity)
        found = stats.power_tuned(np.where(np.arange(400) < 60, y, np.nan), f, np.arange(400))
        held.append(found.low <= rate <= found.high)
    assert 0.92 < np.mean(held) < 0.98


def test_the_interval_of_ppi_covers_where_tasks_have_several_trials():
    """40 tasks with 5 trials each, whose rates differ; every trial of 20 random tasks is labelled."""
    rng = np.random.default_rng(5)
    tasks = np.repeat(np.arange(40), 5)
    held, naive = [], []
    for _ in range(600):
        good = rng.random(200) < rng.beta(1.2, 0.8, 40)[tasks]
        f = np.where(good, rng.random(200) < 0.85, rng.random(200) > 0.75).astype(float)
        labels = np.where(np.isin(tasks, rng.permutation(40)[:20]), good, np.nan)
        for kept, units in ((held, tasks), (naive, np.arange(200))):
            found = stats.power_tuned(labels, f, units)
            kept.append(found.low <= 0.6 <= found.high)
    assert 0.92 < np.mean(held) < 0.98
    assert np.mean(naive) < 0.88


# --- Rogan and Gladen -----------------------------------------------------------------------------


def rogan_gladen_by_the_paper(p, q0, q1, n, m0, m1, ci=0.95):
    """Lee and others (2025), written out step by step: estimate, shares drawn to one half, moved centre."""
    z = NormalDist().inv_cdf((1 + ci) / 2)
    estimate = (p + q0 - 1) / (q0 + q1 - 1)
    n_, m0_, m1_ = n + z**2, m0 + 2, m1 + 2
    p_, q0_, q1_ = (n * p + z**2 / 2) / n_, (m0 * q0 + 1) / m0_, (m1 * q1 + 1) / m1_
    drawn = (p_ + q0_ - 1) / (q0_ + q1_ - 1)
    moved = 2 * z**2 * (-(1 - drawn) * q0_ * (1 - q0_) / m0_ + drawn * q1_ * (1 - q1_) / m1_)
    inner = p_ * (1 - p_) / n_ + (1 - drawn) ** 2 * q0_ * (1 - q0_) / m0_ + drawn**2 * q1_ * (1 - q1_) / m1_
    half = z * inner**0.5 / (q0_ + q1_ - 1)
    return estimate, drawn + moved - half, drawn + moved + half


@pytest.mark.parametrize(
    ("p", "specificity", "sensitivity", "sizes"), [(0.55, 0.7, 0.9, (1000, 80, 120)), (0.3, 0.95, 0.8, (200, 30, 25))]
)
def test_the_formula_is_that_of_lee_and_others(p, specificity, sensitivity, sizes):
    tests, good, bad = sizes
    found = stats.rogan_gladen(p, sensitivity, specificity, sizes)
    assert found[:3] == pytest.approx(rogan_gladen_by_the_paper(p, specificity, sensitivity, tests, bad, good))


def test_a_rate_that_the_judge_cannot_have_passed_is_cut():
    assert stats.rogan_gladen(0.1, 0.9, 0.8, (100, 50, 50))[:2] == (0.0, 0.0)
    assert stats.rogan_gladen(0.99, 0.9, 0.8, (100, 50, 50))[0] == 1.0


def test_the_interval_of_informedness_is_newcombes_for_a_difference():
    """Newcombe (1998), Statistics in Medicine 17, 873-890, table II (a): 56 of 70 less 48 of 80."""
    sensitivity, passed_bad = 56 / 70, 48 / 80
    low, high = stats.informedness(sensitivity, 1 - passed_bad, stats.wilson(56, 70), stats.wilson(32, 80))
    assert (low, high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_under_a_shift_rogan_gladen_holds_and_ppi_does_not():
    """Labels of a set of which 80 % is good; of the agent's runs 40 % are."""
    rng = np.random.default_rng(8)
    held = {"ppi++": [], "rogan-gladen": []}
    for _ in range(150):
        known, verdicts_known = population(rng, 200, 0.8, 0.9, 0.8)
        _, verdicts = population(rng, 600, 0.4, 0.9, 0.8)
        scores = pd.concat([judged(verdicts_known, prefix="c"), judged(verdicts)])
        for calibration, method in (("random", "ppi++"), ("external", "rogan-gladen")):
            row = row_of(corrected_rate(scores, series(known, "c"), calibration=calibration), method)
            held[method].append(row["low"] <= 0.4 <= row["high"])
    assert 0.91 < np.mean(held["rogan-gladen"]) <= 0.99
    assert np.mean(held["ppi++"]) < 0.05


@pytest.mark.parametrize(("rate", "good"), [(0.2, 0.5), (0.5, 0.8), (0.85, 0.5)])
def test_the_interval_of_rogan_gladen_covers_whatever_the_calibration_is_made_of(rate, good):
    rng = np.random.default_rng(int(100 * rate))
    held = []
    for _ in range(1500):
        counts = np.array([int(150 * good), 150 - int(150 * good)])
        right = rng.binomial(counts, [0.9, 0.8]) / counts
        passed = rng.binomial(500, rate * 0.9 + (1 - rate) * 0.2) / 500
        _, low, high, _ = stats.rogan_gladen(passed, right[0], right[1], (500, *counts))
        held.append(low <= rate <= high)
    assert 0.92 < np.mean(held) < 0.98


# --- frames ---------------------------------------------------------------------------------------


def test_a_random_part_with_labels_gives_three_rates_side_by_side():
    y, f = population(np.random.default_rng(2), 500, 0.6, 0.95, 0.7)
    table = corrected_rate(judged(f), series(y[:100]))
    assert table["method"].tolist() == ["naive", "labels-only", "ppi++"]
    assert list(table.columns[:2]) == ["agent", "evaluator"]
    naive, alone, tuned = table.to_dict("records")
    (line,) = summarize(judged(f)).to_dict("records")
    assert (naive["rate"], naive["low"], naive["high"], naive["n"]) == (f.mean(), line["low"], line["high"], 500)
    assert (alone["rate"], alone["low"], alone["high"]) == (y[:100].mean(), *stats.wilson(y[:100].sum(), 100))
    assert (alone["n"], alone["labels"], alone["ess"]) == (100, 100, 100.0)
    expected = stats.power_tuned(np.where(np.arange(500) < 100, y, np.nan), f, np.arange(500))
    assert (tuned["rate"], tuned["low"], tuned["high"]) == expected[:3]
    assert tuned["high"] - tuned["low"] < alone["high"] - alone["low"]
    rho = np.corrcoef(y[:100], f[:100])[0, 1]
    assert tuned["ess_ceiling"] == pytest.approx(100 / (1 - rho**2))
    assert 100 < tuned["ess"] < 1.15 * tuned["ess_ceiling"]
    good = y[:100] == 1
    assert tuned["sensitivity"] == pytest.approx(f[:100][good].mean())
    assert tuned["specificity"] == pytest.approx(1 - f[:100][~good].mean())
    assert table["reason"].isna().all()


def test_the_effective_size_nears_its_ceiling_as_verdicts_get_more():
    y, f = population(np.random.default_rng(3), 20_000, 0.5, 0.9, 0.9)
    ess = [row_of(corrected_rate(judged(f[:n]), series(y[:200])), "ppi++") for n in (400, 2000, 20_000)]
    assert ess[0]["ess"] < ess[1]["ess"] < ess[2]["ess"]
    assert ess[2]["ess"] == pytest.approx(ess[2]["ess_ceiling"], rel=0.1)


def test_labels_of_other_runs_correct_all_groups_of_their_judge():
    rng = np.random.default_rng(4)
    known, of_known = population(rng, 300, 0.7, 0.9, 0.8)
    _, first = population(rng, 400, 0.3, 0.9, 0.8)
    _, second = population(rng, 400, 0.9, 0.9, 0.8)
    scores = pd.concat(
        [judged(of_known, prefix="c", agent="old"), judged(first), judged(second, prefix="s", agent="b")]
    )
    table = corrected_rate(scores, series(known, "c"), calibration="external")
    assert table["agent"].unique().tolist() == ["a", "b"]  # the calibration has no rate of its own
    for agent, passed, rate in (("a", first.mean(), 0.3), ("b", second.mean(), 0.9)):
        row = row_of(table[table["agent"] == agent], "rogan-gladen")
        good = known == 1
        sizes = (400, good.sum(), (~good).sum())
        expected = stats.rogan_gladen(passed, of_known[good].mean(), 1 - of_known[~good].mean(), sizes)
        assert (row["rate"], row["low"], row["high"]) == pytest.approx(expected[:3])
        assert row["low"] < rate < row["high"] and row["labels"] == 300 and row["n"] == 400
        assert row_of(table[table["agent"] == agent], "naive")["rate"] == pytest.approx(passed)
        assert row_of(table[table["agent"] == agent], "labels-only")["rate"] == known.mean()


def test_another_judges_labels_are_not_taken():
    y, f = population(np.random.default_rng(6), 100, 0.5, 0.9, 0.9)
    scores = pd.concat([judged(f, prefix="c"), judged(f), judged(f, prefix="x", evaluator="other")])
    table = corrected_rate(scores, series(y, "c"), calibration="external", by="evaluator")
    assert row_of(table[table["evaluator"] == "judge"], "rogan-gladen")["labels"] == 100
    refused = row_of(table[table["evaluator"] == "other"], "rogan-gladen")
    assert np.isnan(refused["rate"]) and refused["reason"] == "refused: no label"


def test_a_judge_that_may_know_nothing_is_refused_and_no_number_is_given():
    y, f = population(np.random.default_rng(7), 60, 0.5, 0.55, 0.5)
    scores = pd.concat([judged(f, prefix="c"), judged([True, False] * 50)])
    row = row_of(corrected_rate(scores, series(y, "c"), calibration="external"), "rogan-gladen")
    assert np.isnan([row["rate"], row["low"], row["high"]]).all()
    assert row["informedness_low"] < 0 < row["informedness_high"]
    assert re.match(r"refused: sensitivity \+ specificity - 1 may be 0 \(it lies between -?\d", row["reason"])
    only_good = corrected_rate(scores, series([True] * 60, "c"), calibration="external")
    assert row_of(only_good, "rogan-gladen")["reason"] == "refused: no labelled run with a verdict is bad"


def test_samples_are_averaged_tasks_weigh_the_same_and_what_has_no_verdict_is_counted():
    scores = judged([1, 1, 0, 1, 0, None], tasks=[0, 0, 0, 1, 2, 3])
    again = judged([1, 0], tasks=[0, 0]).assign(sample=1)
    table = corrected_rate(pd.concat([scores, again]), series([True, True, False, True]))
    naive, alone, tuned = table.to_dict("records")
    assert naive["rate"] == pytest.approx(((1 + 0.5 + 0) / 3 + 1 + 0) / 3)
    assert alone["rate"] == pytest.approx((2 / 3 + 1) / 2)
    assert (naive["n"], naive["tasks"], naive["unscored"], tuned["labels"]) == (5, 3, 1, 4)


def test_trials_of_one_task_widen_the_interval_of_the_correction():
    y, f = population(np.random.default_rng(9), 200, 0.6, 0.9, 0.8)
    _, g = population(np.random.default_rng(10), 200, 0.6, 0.9, 0.8)
    order = np.argsort(g)  # trials of a task are alike
    apart = pd.concat([judged(f, prefix="c"), judged(g[order])])
    together = pd.concat([judged(f, prefix="c"), judged(g[order], tasks=np.arange(200) // 8)])
    rows = [
        row_of(corrected_rate(s, series(y, "c"), calibration="external"), "rogan-gladen") for s in (apart, together)
    ]
    assert rows[0]["rate"] == pytest.approx(rows[1]["rate"])
    assert rows[1]["high"] - rows[1]["low"] > 1.5 * (rows[0]["high"] - rows[0]["low"])


def test_graded_labels_and_verdicts_have_a_mean_too():
    rng = np.random.default_rng(11)
    y = rng.beta(2, 2, 300)
    f = np.clip(y + rng.normal(0.1, 0.1, 300), 0, 1)
    scores = judged([True] * 300).assign(score=f)
    row = row_of(corrected_rate(scores, series(y[:80]), value="score"), "ppi++")
    assert row["low"] < y.mean() < row["high"] and abs(row["rate"] - y.mean()) < abs(f.mean() - y.mean())
    assert np.isnan(row["sensitivity"])


@pytest.mark.parametrize(
    ("labels", "change", "message"),
    [
        (series([True, False], "x"), {}, "no label of the reference belongs to a row"),
        (series(["good", "bad"]), {}, "label 'good' is neither a truth value nor a number from 0 to 1"),
        (series([4, 2]), {}, "label 4 is neither"),
        (series([0.5, 1.0]), {"calibration": "external"}, "needs labels that are true or false"),
        (series([True, False]), {"calibration": "extern"}, "calibration='extern'. Did you mean 'external'"),
        (series([True, False]), {"value": "grade"}, "no column 'grade'"),
        (pd.DataFrame({"a": [1], "b": [0]}, index=["r0"]), {}, "labels has the columns ['a', 'b']"),
        ("human", {}, "reference has 'human', which is no column"),
    ],
)
def test_an_argument_that_cannot_be_meant_is_named(labels, change, message):
    with pytest.raises(InputError, match=re.escape(message)):
        corrected_rate(judged([1, 0, 1]), labels, **change)


def test_a_run_has_one_label_and_a_frame_of_verdicts_has_verdicts():
    twice = pd.concat([judged([1]), judged([1]).assign(sample=1)]).assign(human=[True, False])
    with pytest.raises(InputError, match="has labels that differ from row to row"):
        corrected_rate(twice, "human")
    with pytest.raises(InputError, match="no row has a 'passed'; give its evaluator a threshold"):
        corrected_rate(judged([None, None]), series([True, False]))


# --- how many labels ------------------------------------------------------------------------------


def test_without_a_judge_it_is_the_textbooks_number():
    """1.96² × .25 / .05² = 384.1 by the normal quantile; Student's needs two or three more."""
    (row,) = labels_needed(0.05, rho=0.0).to_dict("records")
    assert row["labels"] == row["labels_alone"] == 387


def test_a_label_is_worth_at_most_its_ceiling():
    table = labels_needed([0.1, 0.05, 0.02], rate=0.6, rho=0.8)
    assert table["ess_ceiling"].tolist() == pytest.approx([1 / 0.36] * 3)
    assert (table["labels_alone"] / table["labels"]).tolist() == pytest.approx([1 / 0.36] * 3, rel=0.06)


def test_the_correlation_follows_from_how_often_the_judge_is_right():
    y, f = population(np.random.default_rng(12), 400_000, 0.3, 0.9, 0.7)
    (row,) = labels_needed(0.05, rate=0.3, sensitivity=0.9, specificity=0.7).to_dict("records")
    assert row["rho"] == pytest.approx(np.corrcoef(y, f)[0, 1], abs=0.005)


@pytest.mark.parametrize("calibration", ["random", "external"])
def test_as_many_labels_give_the_wanted_width(calibration):
    rng = np.random.default_rng(13)
    given = {"rate": 0.6, "sensitivity": 0.92, "specificity": 0.85, "runs": 2000, "calibration": calibration}
    (row,) = labels_needed(0.05, **given).to_dict("records")
    halves = []
    for _ in range(15):
        y, f = population(rng, 2000, 0.6, 0.92, 0.85)
        known, of_known = (y[: row["labels"]], f[: row["labels"]])
        if calibration == "random":
            found = row_of(corrected_rate(judged(f), series(known)), "ppi++")
        else:
            known, of_known = population(rng, row["labels"], 0.6, 0.92, 0.85)
            scores = pd.concat([judged(of_known, prefix="c"), judged(f)])
            found = row_of(corrected_rate(scores, series(known, "c"), calibration=calibration), "rogan-gladen")
        halves.append((found["high"] - found["low"]) / 2)
    assert np.mean(halves) == pytest.approx(0.05, rel=0.08)


def test_what_cannot_be_reached_is_missing():
    (row,) = labels_needed(0.02, rate=0.6, rho=0.7, runs=300).to_dict("records")
    assert pd.isna(row["labels"]) and row["labels_alone"] > 300
    (row,) = labels_needed(0.05, sensitivity=0.5, specificity=0.5, calibration="external").to_dict("records")
    assert pd.isna(row["labels"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "give rho, or sensitivity and specificity"),
        ({"rho": 0.5, "calibration": "external"}, "give sensitivity and specificity"),
        ({"rho": 1.5}, "rho=1.5 should lie between -1 and 1"),
        ({"rho": "x"}, "rho='x' should lie between -1 and 1"),
        ({"rho": 0.5, "half_width": True}, "half_width=True should lie between 0 and 1"),
        ({"rho": 0.5, "rate": 1}, "rate=1 should lie between 0 and 1"),
        ({"rho": 0.5, "half_width": 5}, "half_width=5 should lie between 0 and 1"),
        ({"rho": 0.5, "runs": 0.5}, "runs=0.5 should be a whole number from 2 on"),
        ({"sensitivity": 1.2, "specificity": 0.5}, "sensitivity=1.2 should lie between 0 and 1"),
    ],
)
def test_a_plan_that_cannot_be_meant_is_named(change, message):
    with pytest.raises(InputError, match=re.escape(message)):
        labels_needed(**{"half_width": 0.05, **change})
