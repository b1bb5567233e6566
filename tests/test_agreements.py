"""Judges against people, and people against each other."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from mcpeval import stats
from mcpeval.errors import InputError
from mcpeval.evaluators import read_verdict
from mcpeval.frames import scores_frame
from mcpeval.reports import agreement


def verdicts(passed, evaluator="judge", **columns):
    """A verdict on each of the runs r0, r1, ...; None is one that could not be read."""
    return scores_frame(
        [
            {"run_id": f"r{i}", "task_id": f"t{i}", "evaluator": evaluator, "passed": answer, "label": answer,
             "score": None if answer is None else float(answer), "status": "unparsed" if answer is None else "ok",
             **{name: None if answer is None else cells[i] for name, cells in columns.items()}}
            for i, answer in enumerate(passed)
        ],
        keys=["run_id", "task_id"],
    )  # fmt: skip


def labels(values):
    return pd.Series(values, index=[f"r{i}" for i in range(len(values))])


JUDGED = [True] * 40 + [False] * 10 + [True] * 5 + [False] * 45
HUMAN = [True] * 50 + [False] * 50


# --- published numbers ----------------------------------------------------------------------------

# Agreement with the human label and Cohen's kappa when the last status of the stored text is the verdict.
LIVEMCPBENCH = {
    "openai_gpt-4.1-mini": (85.3, 0.604),
    "qwen25_72b_int4_instruct": (84.2, 0.590),
    "deepseek_deepseek-chat-v3-0324": (81.1, 0.544),
    "models_gemini-2.5-pro": (76.8, 0.505),
    "qwen_qwen3-32b": (73.7, 0.471),
    "qwen_qwen3-235b-a22b": (72.6, 0.425),
    "openai_gpt-4.1": (71.6, 0.419),
    "claude-opus-4-20250514": (70.5, 0.413),
    "claude-sonnet-4-20250514": (70.5, 0.403),
    "deepseek_deepseek-r1-0528": (60.0, 0.289),
}


def test_ten_judges_of_livemcpbench_agree_with_people_as_published(conformance):
    folder = conformance / "data" / "livemcpbench"
    human = {
        row["task_id"]: row["task_success"] == "success" for row in read(folder / "trajectories_with_human_label.json")
    }
    rows = []
    for row in read_lines(folder / "judge_texts_10x95.jsonl"):
        verdict = read_verdict(row["judge"], "Status", ("success", "failure"))
        rows.append({"run_id": row["task_id"], "task_id": row["task_id"], "evaluator": row["judge_model"],
                     "passed": verdict == "success", "score": float(verdict == "success"), "status": "ok"})  # fmt: skip
    found = agreement(scores_frame(rows, keys=["run_id", "task_id"]), human).set_index("evaluator")
    for judge, (percent, kappa) in LIVEMCPBENCH.items():
        assert (round(100 * found["accuracy"][judge], 1), round(found["kappa"][judge], 3)) == (percent, kappa)
    assert found["majority"].round(3).tolist() == [0.705] * 10  # always "success"
    assert (found["kappa_low"] < found["kappa"]).all() and (found["kappa"] < found["kappa_high"]).all()
    assert found["n"].tolist() == [95] * 10 and found["coverage"].tolist() == [1.0] * 10


def test_three_agents_of_devai_are_judged_as_published(conformance):
    table = pd.DataFrame(read_lines(conformance / "data" / "devai" / "requirements.jsonl"))
    table = table.rename(columns={"task": "task_id", "agent_judge_gray_box": "passed"})
    found = agreement(table, "human", by="agent").set_index("agent")
    assert found["accuracy"].round(3).to_dict() == {"MetaGPT": 0.921, "GPT-Pilot": 0.866, "OpenHands": 0.902}
    assert found["kappa"].round(3).to_dict() == {"MetaGPT": 0.775, "GPT-Pilot": 0.730, "OpenHands": 0.800}
    assert found["n"].tolist() == [366] * 3 and found["tasks"].tolist() == [55] * 3


def test_three_samples_of_prometheus_have_the_alpha_that_is_told_of_them(conformance):
    rows = read_lines(conformance / "data" / "prometheus_k3" / "vicuna_eval_gpt4_k3.jsonl")
    ratings = [row["gpt4_score"] for row in rows]
    assert round(np.mean([len(set(three)) == 1 for three in ratings]), 3) == 0.622
    assert round(stats.krippendorff(ratings, level="ordinal"), 3) == 0.723


def test_tau2s_judges_agree_with_the_reward_as_told_by_prompt_and_domain(conformance):
    means = {"pass": True, "satisfied": True, "fail": False, "unsatisfied": False}
    rows = read_lines(conformance / "data" / "tau2" / "llm_judge_verdicts.jsonl")
    table = pd.DataFrame(
        [
            {"prompt": row["judge_prompt_name"], "domain": row["domain"], "passed": means.get(row["judge_verdict"]),
             "task_id": row["task_id"], "reward": row["tau2_success"]}
            for row in rows
            if "chain_of_thought" not in row["judge_prompt_name"]
        ]
    )  # fmt: skip
    found = agreement(table, "reward", by=["prompt", "domain"])
    kappas = found.pivot(index="prompt", columns="domain", values="kappa").round(3)
    assert kappas.loc["customer_outcome_v1"].to_dict() == {"airline": -0.163, "retail": 0.174, "telecom": 0.306}
    assert kappas.loc["policy_conversation_v1"].to_dict() == {"airline": 0.368, "retail": 0.225, "telecom": 0.399}
    assert kappas.loc["quick_triage_v1"].to_dict() == {"airline": 0.063, "retail": 0.051, "telecom": 0.780}


# The chain-of-thought prompt lets the judge choose its own words.
TAU2_WORDS = {
    **dict.fromkeys(("pass", "satisfied", "satisfactory", "compliant", "correct"), True),
    **dict.fromkeys(("fail", "failure", "unsatisfactory"), False),
}


def test_tau2s_free_verdicts_are_mapped_and_what_is_not_is_listed(conformance):
    cohens_kappa = pytest.importorskip("statsmodels.stats.inter_rater").cohens_kappa
    rows = read_lines(conformance / "data" / "tau2" / "llm_judge_verdicts.jsonl")
    table = pd.DataFrame(
        [
            {"domain": row["domain"], "label": row["judge_verdict"], "task_id": row["task_id"],
             "reward": row["tau2_success"]}
            for row in rows
            if row["judge_prompt_name"] == "policy_chain_of_thought_v1"
        ]
    )  # fmt: skip
    with pytest.warns(UserWarning) as warned:
        found = agreement(table, "reward", by="domain", labels=TAU2_WORDS).set_index("domain")
    assert [str(warning.message) for warning in warned] == [
        "agreement: 3 verdicts have a label that labels does not map, and count as none: "
        "'partially_satisfied' (1), 'partially satisfied' (1), 'unknown' (1)"
    ]
    assert warned[0].filename == __file__
    assert found["n"].sum() == len(table) - 3 == 275
    assert found["coverage"].min() < 1.0
    for domain, own in table.assign(said=table["label"].map(TAU2_WORDS)).dropna(subset="said").groupby("domain"):
        counts = pd.crosstab(own["said"].astype(bool), own["reward"]).to_numpy()
        assert found["kappa"][domain] == pytest.approx(cohens_kappa(counts, return_results=False))


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# --- what is compared -----------------------------------------------------------------------------


def test_truth_values_are_compared_with_passed():
    (row,) = agreement(verdicts(JUDGED), labels(HUMAN)).to_dict("records")
    assert (row["evaluator"], row["value"], row["level"], row["n"]) == ("judge", "passed", "nominal", 100)
    assert (row["accuracy"], row["sensitivity"], row["specificity"]) == (0.85, 0.8, 0.9)
    assert (row["kappa"], row["balanced_accuracy"], row["majority"]) == pytest.approx((0.7, 0.85, 0.5))
    assert row["bias"] == pytest.approx(-0.05)
    assert row["accuracy_low"] == pytest.approx(0.78, abs=0.015) and row["accuracy_high"] == pytest.approx(
        0.92, abs=0.015
    )
    assert np.isnan([row["kappa_linear"], row["spearman"], row["pearson"]]).all()


def test_the_reference_may_be_a_series_a_dict_a_column_or_a_frame():
    scores = verdicts(JUDGED)
    expected = agreement(scores, labels(HUMAN))
    for reference in (
        labels(HUMAN).to_dict(),
        labels(HUMAN).astype("boolean"),
        labels(HUMAN).astype(float),
        labels(HUMAN).to_frame("ann"),
        labels(HUMAN).rename_axis("run_id").reset_index(name="ann"),
    ):
        pd.testing.assert_frame_equal(agreement(scores, reference), expected)
    pd.testing.assert_frame_equal(agreement(scores.assign(human=HUMAN), "human"), expected)
    by_task = pd.Series(HUMAN, index=[f"t{i}" for i in range(100)])
    pd.testing.assert_frame_equal(agreement(scores, by_task, on="task_id"), expected)


def test_points_are_ranks_and_compared_as_they_are_written():
    rng = np.random.default_rng(1)
    human = rng.integers(1, 6, 60)
    points = np.clip(human + rng.integers(-1, 2, 60), 1, 5)
    scores = verdicts([True] * 60, label=points.tolist(), score=((points - 1) / 4).tolist())
    (row,) = agreement(scores, labels(human)).to_dict("records")
    assert (row["value"], row["level"]) == ("label", "ordinal")
    expected = stats.agreement_measures(points, human, "ordinal")
    for name in (
        "accuracy",
        "kappa",
        "kappa_linear",
        "kappa_quadratic",
        "alpha",
        "spearman",
        "kendall",
        "pearson",
        "bias",
    ):
        assert row[name] == pytest.approx(expected[name][0]), name
        assert row[f"{name}_low"] < row[name] < row[f"{name}_high"], name
    assert np.isnan(row["sensitivity"])
    assert agreement(scores, labels(human), level="nominal")["kappa_linear"].isna().all()


def test_graded_scores_are_amounts():
    rng = np.random.default_rng(2)
    human = rng.uniform(size=50)
    graded = np.clip(human + rng.normal(0.1, 0.1, 50), 0, 1)
    (row,) = agreement(verdicts([True] * 50, label=[None] * 50, score=graded.tolist()), labels(human)).to_dict(
        "records"
    )
    assert (row["value"], row["level"]) == ("score", "interval")
    assert row["pearson"] == pytest.approx(np.corrcoef(graded, human)[0, 1])
    assert row["bias"] == pytest.approx((graded - human).mean())
    assert np.isnan([row["accuracy"], row["kappa"]]).all()


def test_texts_are_names_and_ranks_where_their_scores_put_them_in_an_order():
    given = ["poor", "fair", "good", "fair", "poor", "good"]
    human = labels(["poor", "good", "good", "fair", "fair", "good"])
    ordered = verdicts([True] * 6, label=given, score=[{"poor": 0.0, "fair": 0.5, "good": 1.0}[x] for x in given])
    (row,) = agreement(ordered, human).to_dict("records")
    expected = stats.agreement_measures([0, 1, 2, 1, 0, 2], [0, 2, 2, 1, 1, 2], "ordinal")
    assert row["level"] == "ordinal"
    assert row["kappa_quadratic"] == pytest.approx(expected["kappa_quadratic"][0])
    assert np.isnan([row["bias"], row["pearson"], row["sensitivity"]]).all()  # of names there is no mean
    (row,) = agreement(ordered.assign(score=1.0), human).to_dict("records")
    assert (row["level"], row["accuracy"]) == ("nominal", pytest.approx(4 / 6))
    assert np.isnan(row["kappa_quadratic"])


def test_what_could_not_be_read_is_in_the_coverage_and_not_in_the_accuracy():
    judged = [None, None, *JUDGED[2:]]
    (row,) = agreement(verdicts(judged), labels(HUMAN)).to_dict("records")
    assert (row["n"], row["coverage"], row["accuracy"]) == (98, 0.98, pytest.approx(83 / 98))
    (row,) = agreement(verdicts([None] * 100), labels(HUMAN)).to_dict("records")
    assert (row["n"], row["coverage"]) == (0, 0.0) and np.isnan(row["accuracy"])
    partly = labels(HUMAN).iloc[30:70]
    assert agreement(verdicts(judged), partly)["n"].tolist() == [40]
    assert agreement(verdicts(judged), partly)["coverage"].tolist() == [1.0]


def test_agreement_throughout_is_no_certainty():
    (row,) = agreement(verdicts(HUMAN[40:60]), labels(HUMAN[40:60])).to_dict("records")
    assert (row["accuracy"], row["accuracy_low"], row["accuracy_high"]) == (1.0, *stats.wilson(20, 20))
    assert (row["sensitivity_low"], row["sensitivity_high"]) == stats.wilson(10, 10)
    assert row["kappa"] == 1.0 and np.isnan([row["kappa_low"], row["kappa_high"]]).all()


def test_samples_are_verdicts_each_and_no_more_tasks():
    once = verdicts(JUDGED)
    thrice = pd.concat([once.assign(sample=number) for number in range(3)], ignore_index=True)
    (one,), (three,) = (agreement(frame, labels(HUMAN)).to_dict("records") for frame in (once, thrice))
    assert (three["n"], three["tasks"], three["accuracy"]) == (300, 100, one["accuracy"])
    assert (three["kappa_low"], three["kappa_high"]) == pytest.approx((one["kappa_low"], one["kappa_high"]))


def test_groups_are_in_order_and_the_seed_repeats():
    scores = pd.concat([verdicts(JUDGED, "z"), verdicts(HUMAN, "a"), verdicts([None] * 100, "n")])
    found = agreement(scores, labels(HUMAN), seed=4)
    assert found["evaluator"].tolist() == ["z", "a", "n"]
    pd.testing.assert_frame_equal(found, agreement(scores, labels(HUMAN), seed=4))
    assert agreement(scores, labels(HUMAN), seed=5)["kappa_low"][0] != found["kappa_low"][0]
    assert len(agreement(scores.drop(columns="evaluator"), labels(HUMAN))) == 1


def test_labels_are_translated_into_the_words_of_the_reference(recwarn):
    scores = verdicts([True] * 6, label=["A", "B", "C", "A", None, "B"])
    human = labels([3, 2, 1, 2, 3, 2])
    (row,) = agreement(scores, human, labels={"A": 3, "B": 2, "C": 1}).to_dict("records")
    expected = stats.agreement_measures([3, 2, 1, 3, 2], [3, 2, 1, 2, 2], "ordinal")
    assert (row["value"], row["level"], row["n"]) == ("label", "ordinal", 5)
    assert row["kappa_quadratic"] == pytest.approx(expected["kappa_quadratic"][0])
    (row,) = agreement(scores, human, labels={"A": 3, "B": 2, "C": None}).to_dict("records")
    assert row["n"] == 4 and not recwarn.list  # None says that it is no verdict
    (row,) = agreement(scores, labels([True, False] * 3), labels={"A": True, "B": False, "C": False}).to_dict("records")
    assert (row["level"], row["sensitivity"]) == ("nominal", 0.5)
    with pytest.raises(InputError, match=r"labels has none of the labels in scores: \['A', 'B', 'C'\]"):
        agreement(scores, human, labels={"a": 3})
    with pytest.raises(InputError, match="labels=3 should map labels to what they mean"):
        agreement(scores, human, labels=3)


def test_verdicts_that_are_there_twice_are_refused():
    with pytest.raises(InputError, match="agreement: 100 rows of scores are there more than once, as run_id='r0'"):
        agreement(pd.concat([verdicts(JUDGED)] * 2), labels(HUMAN))


# --- several annotators ---------------------------------------------------------------------------


def test_several_annotators_give_the_human_ceiling():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 80).astype(bool)
    people = pd.DataFrame({name: np.where(rng.random(80) < 0.1, ~truth, truth) for name in ("ann", "bob", "cy")})
    people.index = [f"r{i}" for i in range(80)]
    judged = np.where(rng.random(80) < 0.2, ~truth, truth)
    scores = pd.concat(
        [verdicts(judged.tolist()).assign(sample=number) for number in (0, 1)]
    )  # two samples: people are still compared once
    found = agreement(scores, people)
    assert found[["rater", "reference"]].to_numpy().tolist() == [
        ["judge", "ann"], ["judge", "bob"], ["judge", "cy"], ["judge", "consensus"],
        ["ann", "bob"], ["ann", "cy"], ["bob", "cy"],
        ["ann", "others"], ["bob", "others"], ["cy", "others"],
    ]  # fmt: skip
    assert found["n"].tolist()[:7] == [160] * 4 + [80] * 3
    consensus = people.sum(axis=1).to_numpy() >= 2
    assert found["accuracy"][3] == pytest.approx((judged == consensus).mean())
    assert found["accuracy"][4] == pytest.approx((people["ann"] == people["bob"]).mean())
    agree = people["bob"] == people["cy"]  # where they do not, the others have no consensus
    assert (found["n"][7], found["accuracy"][7]) == (
        agree.sum(),
        pytest.approx((people["ann"] == people["bob"])[agree].mean()),
    )
    assert len(agreement(scores, people[["ann", "bob"]])) == 4


def test_the_consensus_of_points_is_the_median_and_of_amounts_the_mean():
    people = pd.DataFrame({"a": [1, 5, 2], "b": [2, 4, None], "c": [5, 1, 3]}, index=["r0", "r1", "r2"])
    scores = verdicts([True] * 3, label=[2, 4, 2], score=[0.25, 0.75, 0.25])
    found = agreement(scores, people)
    assert found.loc[found["reference"] == "consensus", "accuracy"].tolist() == [1.0]
    amounts = agreement(scores, people / 5, value="score")
    expected = np.mean([0.25, 0.75, 0.25]) - np.mean([8 / 15, 10 / 15, 5 / 10])
    assert amounts.loc[amounts["reference"] == "consensus", "bias"].tolist() == pytest.approx([expected])


# --- what cannot be meant -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "change", "message"),
    [
        ("humn", {}, "reference has 'humn', which is no column"),
        (labels(HUMAN).rename(lambda name: f"x{name}"), {}, "no label of the reference belongs to a row"),
        (pd.Series([True, False], index=["r0", "r0"]), {}, "'r0' more than once"),
        (labels([True, "no"]), {}, "should be truth values, numbers or texts"),
        (labels(["yes", "no"]), {}, "are not of one kind"),
        (HUMAN, {}, "reference is a list"),
        (labels(HUMAN), {"value": "verdict"}, "value='verdict'"),
        (labels(HUMAN), {"level": "ratio"}, "level='ratio'"),
        (labels(HUMAN), {"on": "run"}, "no column 'run'"),
        (labels(HUMAN), {"by": "judge"}, "by has 'judge', which is no column"),
        (labels(HUMAN), {"ci": 1}, "ci=1 should lie between 0 and 1"),
        (labels(HUMAN), {"seed": "x"}, "seed='x' should be a whole number"),
        (labels(HUMAN), {"on": ["run_id"]}, "no column ['run_id']"),
        (labels(HUMAN), {"value": np.array(["passed", "label"])}, "value=array"),
        (labels(HUMAN), {"by": [["evaluator"]]}, "by=[['evaluator']] should be names of columns"),
    ],
)
def test_an_argument_that_cannot_be_meant_is_named(reference, change, message):
    with pytest.raises(InputError, match=re.escape(message)):
        agreement(verdicts(JUDGED), reference, **change)


def test_a_judge_without_pass_or_fail_is_not_compared_in_silence():
    graded = verdicts([True] * 100, label=[None] * 100, score=[0.5] * 100)
    graded["passed"] = pd.array([None] * 100, dtype="boolean")
    with pytest.raises(InputError, match="evaluator='judge' has no 'passed'.*give its evaluator a threshold"):
        agreement(graded, labels(HUMAN))
    assert agreement(graded, labels(HUMAN), value="score")["level"].tolist() == ["interval"]
