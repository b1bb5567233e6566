"""Power, variance components: against other programs, published data, and simulation."""

import doctest
import importlib
import re
from math import comb

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from statsmodels.stats.power import TTestPower

from mcpeval import compare, stats
from mcpeval.errors import InputError
from mcpeval.reports import power, variance_components

# --- power ----------------------------------------------------------------------------------------


def test_the_power_of_mcnemars_test_is_the_one_that_gpower_documents():
    """G*Power 3.1 manual, McNemar test: odds ratio .25, .4 discordant, N = 50, one-sided .05: .839343."""
    assert stats.mcnemar_power(50, 0.24, 0.4, ci=0.90) == pytest.approx(0.839343, abs=5e-5)


def test_the_power_of_mcnemars_test_is_the_sum_over_all_outcomes():
    n, better, worse = 18, 0.45, 0.1
    total = 0.0
    for pairs in range(n + 1):
        for up in range(pairs + 1):
            chance = (
                comb(n, pairs) * (better + worse) ** pairs * (1 - better - worse) ** (n - pairs)
                * comb(pairs, up) * (better / (better + worse)) ** up * (worse / (better + worse)) ** (pairs - up)
            )  # fmt: skip
            if up > pairs - up and binomtest(up, pairs).pvalue <= 0.05:
                total += chance
    assert stats.mcnemar_power(n, better - worse, better + worse) == pytest.approx(total, abs=1e-12)


def test_graded_scores_need_as_many_tasks_as_statsmodels_and_the_textbooks_say():
    """Cohen (1988): d = .5 at 80 % power, two-sided .05, needs 34 pairs; d = .2 needs 199."""
    table = power([0.5, 0.2, 0.3], sd=1.0)
    assert table["tasks"].tolist() == [34, 199, 90]
    assert TTestPower().solve_power(0.3, power=0.8, alpha=0.05) == pytest.approx(89.149, abs=1e-3)
    (row,) = power(tasks=34, sd=2.0, power=0.9).to_dict("records")
    assert row["difference"] == pytest.approx(2 * TTestPower().solve_power(nobs=34, power=0.9, alpha=0.05), abs=1e-3)


def test_tasks_difference_and_power_are_three_sides_of_one_plan():
    (row,) = power(0.1, rate=0.6, discordant=0.3).to_dict("records")
    assert row["power"] >= 0.8
    assert power(0.1, tasks=row["tasks"] - 1, rate=0.6, discordant=0.3)["power"][0] < 0.8
    (back,) = power(tasks=row["tasks"], rate=0.6, discordant=0.3).to_dict("records")
    assert 0.099 < back["difference"] <= 0.1
    detectable = stats.detectable([1.0] * 48 + [-1.0] * 27 + [0.0] * 174)  # as compare would tell of such a pilot
    assert back["difference"] == pytest.approx(detectable, abs=0.01)


def test_a_large_number_of_tasks_comes_near_connors_formula():
    """Connor (1987): (1.96 sqrt(D) + .8416 sqrt(D - d²))² / d²; the exact test needs a little more."""
    discordant, difference = 0.2, 0.04
    connor = (1.959964 * discordant**0.5 + 0.841621 * (discordant - difference**2) ** 0.5) ** 2 / difference**2
    found = power(difference, discordant=discordant)["tasks"][0]
    assert connor < found < 1.08 * connor


def test_the_power_is_how_often_compare_finds_the_difference():
    """Of 60 tasks 25 % are passed by b only and 8 % by a only."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(300):
        first = rng.choice([1.0, 0.0, 2.0], 60, p=[0.08, 0.25, 0.67])  # 2: both alike
        second = np.where(first == 2.0, 1.0, 1.0 - first)
        scores = pd.DataFrame({"task_id": [*range(60)] * 2, "agent": ["a"] * 60 + ["b"] * 60,
                               "score": np.r_[np.minimum(first, 1.0), second]})  # fmt: skip
        found.append(compare(scores)["p"][0] <= 0.05)
    assert np.mean(found) == pytest.approx(power(0.17, tasks=60, discordant=0.33)["power"][0], abs=0.08)


def test_trials_divide_only_the_part_that_is_luck():
    table = power(0.1, sd=0.6, trials=[1, 4, 400], within=0.5)
    assert table["sd"].tolist() == pytest.approx([0.6, 0.6 * (0.5 + 0.125) ** 0.5, 0.6 * 0.50125**0.5])
    assert table["tasks"][0] > table["tasks"][1] > table["tasks"][2] > 0.49 * table["tasks"][0]
    passes = power(0.1, rate=0.5, trials=[1, 8], within=0.6)
    assert passes["test"].tolist() == ["mcnemar", "t"]
    assert passes["discordant"].tolist() == pytest.approx([0.5, 0.5])
    assert passes["sd"][1] == pytest.approx(((0.5 - 0.01) * (0.4 + 0.6 / 8)) ** 0.5)


def test_a_difference_that_so_few_tasks_never_show_is_missing():
    (row,) = power(tasks=4, rate=0.5).to_dict("records")
    assert np.isnan([row["difference"], row["power"]]).all() and row["tasks"] == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": 0.5}, "give difference for how many tasks show it"),
        ({"difference": 0.1}, "give either sd, for graded scores, or rate"),
        ({"difference": 0.1, "rate": 0.5, "sd": 1.0}, "give either sd"),
        ({"difference": 0.6, "rate": 0.5}, "difference=0.6 is more than there can be: 0.5"),
        ({"difference": 0.3, "discordant": 0.2}, "difference=0.3 is more than there can be: 0.2"),
        ({"difference": 0, "rate": 0.5}, "difference=0 should be a number other than 0"),
        ({"difference": 0.1, "rate": 50}, "rate=50 should lie between 0 and 1"),
        ({"difference": 0.1, "rate": 0.5, "power": 80}, "power=80 should lie between 0 and 1"),
        ({"difference": 0.1, "rate": 0.5, "trials": 4}, "within should say which part"),
        ({"difference": 0.1, "sd": -1}, "sd=-1 should be a number above 0"),
        ({"tasks": 1, "rate": 0.5}, "tasks=1 should be a whole number from 2 on"),
        ({"difference": [0.1, None], "rate": 0.5}, "difference=[0.1, None] should be numbers"),
        ({"difference": float("nan"), "rate": 0.5}, "difference=nan should be a number other than 0"),
        ({"difference": 0.1, "rate": 0.5, "trials": None}, "trials=None should be a whole number from 1 on"),
        ({"difference": 0.1, "sd": True}, "sd=True should be a number above 0"),
    ],
)
def test_a_plan_that_cannot_be_meant_is_named(change, message):
    with pytest.raises(InputError, match=re.escape(message)):
        power(**change)


def test_the_examples_are_right():
    for name in ("planning", "components"):
        module = importlib.import_module(f"mcpeval.reports.{name}")
        assert doctest.testmod(module, extraglobs={"pd": pd}).failed == 0


# --- variance components --------------------------------------------------------------------------

# Davies & Goldsmith (1972), as in R's lme4::Dyestuff: yield of six batches, five preparations each.
DYESTUFF = {
    "A": [1545, 1440, 1440, 1520, 1580],
    "B": [1540, 1555, 1490, 1560, 1495],
    "C": [1595, 1550, 1605, 1510, 1560],
    "D": [1445, 1440, 1595, 1465, 1545],
    "E": [1595, 1630, 1515, 1635, 1625],
    "F": [1520, 1455, 1450, 1480, 1445],
}
# Houf & Burman (1988), as in SAS's documentation of PROC VARCOMP: ten parts, three operators, three times.
HOUF = """
37 38 37  41 41 40  41 42 41 / 42 41 43  42 42 42  43 42 43 / 30 31 31  31 31 31  29 30 28
42 43 42  43 43 43  42 42 42 / 28 30 29  29 30 29  31 29 29 / 42 42 43  45 45 45  44 46 45
25 26 27  28 28 30  29 27 27 / 40 40 40  43 42 42  43 43 41 / 25 25 25  27 29 28  26 26 26
35 34 34  35 35 34  35 34 35
"""


def trials_of(table):
    rows = [
        {"task_id": task, "run_id": f"{task}{i}", "points": value}
        for task, own in table.items()
        for i, value in enumerate(own)
    ]
    return pd.DataFrame(rows)


def components(frame, **given):
    return variance_components(frame, **given).set_index("component")


def test_tasks_and_trials_are_taken_apart_as_lme4_does():
    """lmer(Yield ~ 1 + (1 | Batch), Dyestuff), REML: 1764.05 and 2451.25 (Bates, lme4, chapter 1)."""
    found = components(trials_of(DYESTUFF), value="points")
    assert found["variance"].to_dict() == pytest.approx({"task": 1764.05, "trial": 2451.25}, abs=5e-3)
    assert found["levels"].tolist() == [6, 30] and found["n"].tolist() == [30, 30]
    assert found["share"].sum() == pytest.approx(1)


def test_tasks_judges_and_samples_are_taken_apart_as_sas_does():
    """Mean squares of PROC VARCOMP METHOD=GRR: 437.328395, 19.633333, 2.695062; 60 degrees for the error."""
    lines = re.split(r"[/\n]", HOUF.strip())
    values = np.array([[float(value) for value in line.split()] for line in lines]).reshape(10, 3, 3)
    rows = [
        {
            "task_id": part,
            "run_id": part,
            "evaluator": f"o{operator}",
            "sample": time,
            "points": values[part, operator, time],
        }
        for part, operator, time in np.ndindex(10, 3, 3)
    ]
    found = components(pd.DataFrame(rows), value="points")
    error = values.var(axis=2, ddof=1).mean()
    assert found["variance"].to_dict() == pytest.approx(
        {
            "task": (437.328395 - 2.695062) / 9,
            "judge": (19.633333 - 2.695062) / 30,
            "task x judge": (2.695062 - error) / 3,
            "sample": error,
        },
        abs=1e-5,
    )
    assert error == pytest.approx(0.511111, abs=1e-6)


def test_unequal_numbers_of_trials_have_the_closed_form():
    """One way: (MSB - MSW) / n0 with n0 = (N - sum of n² / N) / (a - 1): Searle, Variance Components, 3.6."""
    table = {"a": [1.0, 3.0], "b": [4.0, 5.0, 9.0], "c": [2.0], "d": [7.0, 7.5, 8.0, 6.0]}
    found = components(trials_of(table), value="points")
    counts = np.array([len(own) for own in table.values()])
    total, tasks = counts.sum(), len(counts)
    grand = np.concatenate(list(table.values())).mean()
    between = sum(len(own) * (np.mean(own) - grand) ** 2 for own in table.values()) / (tasks - 1)
    inside = sum(((np.array(own) - np.mean(own)) ** 2).sum() for own in table.values()) / (total - tasks)
    size = (total - (counts**2).sum() / total) / (tasks - 1)
    assert found["variance"].tolist() == pytest.approx([(between - inside) / size, inside])


def test_all_six_components_are_found_again_on_average():
    """25 tasks of one to four trials, four judges with one to three samples: unequal throughout."""
    rng = np.random.default_rng(2)
    design = [
        (task, (task, trial), judge, sample)
        for task in range(25)
        for trial in range(1 + task % 4)
        for judge in range(4)
        for sample in range(1 + (task + judge) % 3)
    ]
    tasks, runs, judges = (
        np.array([row[i] if i != 1 else row[1][0] * 10 + row[1][1] for row in design]) for i in (0, 1, 2)
    )
    true = {"task": 4.0, "judge": 1.0, "task x judge": 0.5, "trial": 2.0, "trial x judge": 0.8, "sample": 0.6}
    levels = [tasks, judges, tasks * 100 + judges, runs, runs * 100 + judges, np.arange(len(tasks))]
    found = []
    for _ in range(60):
        values = np.zeros(len(tasks))
        for level, variance in zip(levels, true.values()):
            _, codes = np.unique(level, return_inverse=True)
            values += rng.normal(0, variance**0.5, codes.max() + 1)[codes]
        frame = pd.DataFrame({"task_id": tasks, "run_id": runs, "evaluator": judges, "points": values})
        found.append(components(frame, value="points")["estimate"])
    means = pd.DataFrame(found).mean()
    assert means.to_dict() == pytest.approx(true, rel=0.25)


def test_a_negative_estimate_is_no_variance_and_is_told():
    """Tasks that are more alike than chance makes them (as in Box and Tiao's simulated batches)."""
    found = components(trials_of({"a": [1.0, 5.0], "b": [2.0, 4.0], "c": [0.0, 6.0]}), value="points")
    assert found.loc["task", "variance"] == 0.0 and found.loc["task", "estimate"] == pytest.approx(-56 / 6 / 2)
    assert found["share"].tolist() == [0.0, 1.0]


def test_components_that_cannot_be_told_apart_are_not_there():
    base = [
        {"task_id": t, "run_id": f"{t}", "evaluator": j, "score": (t + j) % 3 / 2} for t in range(6) for j in range(2)
    ]
    assert variance_components(pd.DataFrame(base))["component"].tolist() == ["task", "judge", "task x judge"]
    trials = [{**row, "run_id": f"{row['task_id']}.{i}"} for row in base for i in range(2)]
    assert variance_components(pd.DataFrame(trials))["component"].tolist() == [
        *("task", "judge", "task x judge", "trial", "trial x judge"),
    ]
    by_agent = pd.concat([pd.DataFrame(base).assign(agent=name) for name in "ab"])
    assert variance_components(by_agent)["agent"].tolist() == ["a"] * 3 + ["b"] * 3


def test_comparisons_with_several_others_are_no_samples():
    rows = [
        {"run_id": f"r{i}", "task_id": f"t{i}", "evaluator": "pair", "score": float((i + j) % 2), "sample": 0,
         "metadata": {"between": ["a", other]}}
        for i in range(4)
        for j, other in enumerate("bc")
    ]  # fmt: skip
    with pytest.raises(InputError, match="compares runs with several others each"):
        variance_components(pd.DataFrame(rows), by=())


def test_scores_in_which_nothing_is_repeated_are_refused():
    frame = pd.DataFrame({"task_id": ["a", "b"], "run_id": ["x", "y"], "score": [0.0, 1.0]})
    with pytest.raises(InputError, match="scores has one score for each task, of one judge; nothing is repeated"):
        variance_components(frame)
    with pytest.raises(InputError, match="has scores of 1 tasks; expected two or more"):
        variance_components(frame.assign(task_id="a"))
    with pytest.raises(InputError, match="judge has 'model', which is no column"):
        variance_components(frame, judge="model")
