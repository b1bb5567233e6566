"""A judge on one page: the frame and the figure."""

import re

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from mcpeval import agreement, judge_card, plots, stats
from mcpeval.errors import InputError
from mcpeval.frames import runs_frame, scores_frame

mpl.use("Agg")


@pytest.fixture
def case():
    """Ninety runs of three agents, two samples each, of a judge that favours long transcripts and agent c."""
    rng = np.random.default_rng(1)
    runs, rows, labels = [], [], {}
    for i in range(90):
        agent, length = "abc"[i % 3], int(rng.integers(10, 2000))
        good = bool(rng.random() < 0.5)
        labels[f"r{i}"] = good
        keys = {"run_id": f"r{i}", "task_id": f"t{i // 3}", "agent": agent}
        runs.append({**keys, "messages": [{"role": "assistant", "content": "x" * length}], "status": "ok"})
        for sample in range(2):
            fooled = rng.random() < (0.5 if length > 1500 or agent == "c" else 0.05)
            verdict = True if fooled else good
            rows.append({**keys, "evaluator": "judge", "passed": verdict, "label": verdict, "score": float(verdict),
                         "status": "ok", "sample": sample, "cost_usd": 0.002, "seconds": 1.5,
                         "cached": sample == 1})  # fmt: skip
    return scores_frame(rows, keys=["run_id", "task_id", "agent"]), labels, runs_frame(runs)


def of(card):
    return card.set_index("measure")


def test_the_card_has_every_measure_in_order_with_what_it_rests_on(case):
    scores, labels, runs = case
    card = judge_card(scores, labels, runs)
    assert list(card.columns) == ["evaluator", "measure", "value", "low", "high", "n", "note"]
    assert card["measure"].tolist() == [
        *("accuracy", "kappa", "alpha", "sensitivity", "specificity", "balanced_accuracy", "bias"),
        *("majority", "coverage"),
        *("retest", "retest_alpha", "order_consistency", "length_correlation", "length_correlation_labels"),
        *("accuracy_short", "accuracy_medium", "accuracy_long", "agent_shift", "agent_rank", "injection_success"),
        *("usd_per_verdict", "seconds_per_verdict"),
    ]  # fmt: skip
    (line,) = agreement(scores, labels).to_dict("records")
    found = of(card)
    for name in ("accuracy", "kappa", "alpha", "sensitivity", "specificity", "bias"):
        assert found.loc[name, ["value", "low", "high"]].tolist() == [
            line[name],
            line[f"{name}_low"],
            line[f"{name}_high"],
        ]
    assert found.loc["usd_per_verdict", "value"] == pytest.approx(0.002)
    assert found.loc["seconds_per_verdict", ["value", "note"]].tolist() == [1.5, "90 of 180 out of the cache"]
    assert found.loc["order_consistency", "note"] == "needs pairs that were judged in both orders"
    assert found.loc["injection_success", "note"] == "needs the frame of probe()"


def test_samples_that_differ_are_the_test_retest(case):
    scores, labels, _ = case
    found = of(judge_card(scores, labels))
    pairs = scores.pivot(index="run_id", columns="sample", values="score")
    assert found.loc["retest", "value"] == (pairs[0] == pairs[1]).mean()
    assert found.loc["retest", "low"] < found.loc["retest", "value"] < found.loc["retest", "high"]
    assert found.loc["retest_alpha", "value"] == pytest.approx(stats.krippendorff(pairs.to_numpy()))
    alone = of(judge_card(scores[scores["sample"] == 0], labels))
    assert np.isnan(alone.loc["retest", "value"]) and "two or more samples" in alone.loc["retest", "note"]


def test_what_length_does_to_the_judge_is_told_beside_what_it_does_to_the_labels(case):
    from scipy.stats import spearmanr

    scores, labels, runs = case
    found = of(judge_card(scores, labels, runs))
    lengths = scores["run_id"].map(
        {run: len(str(cell[0]["content"])) for run, cell in zip(runs["run_id"], runs["messages"])}
    )
    expected = spearmanr(scores["score"], lengths).statistic
    assert found.loc["length_correlation", "value"] == pytest.approx(expected)
    assert found.loc["length_correlation_labels", "value"] == pytest.approx(
        spearmanr(scores["run_id"].map(labels), lengths).statistic
    )
    right = scores["passed"].astype(bool) == scores["run_id"].map(labels)
    long = lengths > np.quantile(lengths, 2 / 3)
    assert found.loc["accuracy_long", "value"] == pytest.approx(right[long].mean())
    assert found.loc["accuracy_long", "value"] < found.loc["accuracy_short", "value"]
    assert re.fullmatch(r"\d+ to \d+ characters", found.loc["accuracy_long", "note"])
    without = of(judge_card(scores, labels))
    assert without.loc["accuracy_long", "note"] == "needs the runs, with messages or output"


def test_the_agent_that_the_judge_moves_most_is_named(case):
    scores, labels, _ = case
    found = of(judge_card(scores, labels))
    table = scores.assign(label=scores["run_id"].map(labels).astype(float))
    means = table.groupby("agent")[["score", "label"]].mean()
    shifts = means["score"] - means["label"]
    assert found.loc["agent_shift", "value"] == pytest.approx(shifts["c"])
    assert found.loc["agent_shift", "note"] == "mean verdict less mean label of c"
    assert found.loc["agent_shift", "low"] < shifts["c"] < found.loc["agent_shift", "high"]
    expected = means["score"].rank().corr(means["label"].rank())
    assert found.loc["agent_rank", "value"] == pytest.approx(expected)


def test_attacks_orders_and_annotators_are_read_where_they_are_there(case):
    scores, labels, _ = case
    probes = pd.DataFrame(
        {"kind": ["injection", "injection", "verbosity"], "variant": ["fake", "role", "filler"],
         "evaluator": "judge", "success": [0.5, 0.1, 0.9], "n": 20}
    )  # fmt: skip
    scores = scores.assign(metadata=[{"consistent": i % 4 != 0} for i in range(len(scores))])
    people = pd.DataFrame(
        {"ann": labels, "bob": {run: not good if run == "r0" else good for run, good in labels.items()}}
    )
    found = of(judge_card(scores, people, probes=probes))
    assert found.loc["injection_success", ["value", "n", "note"]].tolist() == [0.3, 40, "worst of 2: fake, 0.50"]
    assert found.loc["order_consistency", "value"] == pytest.approx(0.75, abs=0.02)
    pairs = people.astype(float).to_numpy()
    assert found.loc["human_agreement", "value"] == pytest.approx(stats.krippendorff(pairs))
    consensus = agreement(scores, people)
    own = consensus[(consensus["rater"] == "judge") & (consensus["reference"] == "consensus")]
    assert found.loc["accuracy", "value"] == own["accuracy"].item()


def test_a_graded_judge_and_one_of_names_have_the_measures_that_they_allow(case):
    scores, labels, runs = case
    rng = np.random.default_rng(2)
    graded = {run: float(np.clip(good * 0.6 + rng.normal(0.2, 0.1), 0, 1)) for run, good in labels.items()}
    found = of(judge_card(scores.assign(label=None), graded, runs, value="score"))
    assert {"spearman", "kendall", "pearson", "spearman_long"} <= set(found.index) and "kappa" not in found.index
    names = scores.assign(label=np.where(scores["passed"].astype(bool), "yes", "no"))
    found = of(judge_card(names, {run: "yes" if good else "no" for run, good in labels.items()}, runs))
    assert found.loc["length_correlation", "note"] == "labels are names without an order"
    assert found.loc["agent_shift", "note"] == "labels are names without a mean"
    assert found.loc["accuracy_long", "value"] > 0


def test_what_is_no_frame_of_runs_or_probes_is_refused(case):
    scores, labels, runs = case
    with pytest.raises(InputError, match="judge_card: runs is a list"):
        judge_card(scores, labels, [1])
    with pytest.raises(InputError, match="runs should have run_id and one of messages and output"):
        judge_card(scores, labels, runs[["run_id", "agent"]])
    with pytest.raises(InputError, match="probes should be the effects that probe"):
        judge_card(scores, labels, probes=scores)
    with pytest.raises(InputError, match="judge_card: no label of the reference belongs to a row"):
        judge_card(scores, {"x": True})
    for odd in ({"level": "ratio"}, {"value": "verdict"}, {"seed": -1}):
        with pytest.raises(InputError, match=f"judge_card: {next(iter(odd))}="):
            judge_card(scores, labels, **odd)


# --- the figure -----------------------------------------------------------------------------------


def test_the_figure_draws_each_value_with_its_interval(case):
    scores, labels, runs = case
    card = judge_card(scores, labels, runs)
    axes = plots.judge_card(card)
    axes.figure.canvas.draw()
    drawn = sorted(point for dots in axes.collections if hasattr(dots, "get_sizes") and len(dots.get_offsets())
                   for point in dots.get_offsets()[:, 0])  # fmt: skip
    shown = card[card["value"].notna() & ~card["measure"].str.endswith("_per_verdict")]
    assert drawn == pytest.approx(sorted(shown["value"]))
    lines = [
        path.vertices[:, 0].tolist() for c in axes.collections if hasattr(c, "get_segments") for path in c.get_paths()
    ]
    assert np.array(sorted(lines)) == pytest.approx(np.array(sorted(shown[["low", "high"]].dropna().values.tolist())))
    assert axes.get_xlabel() == r"\$0.002, 1.5 s per verdict"
    assert "Accuracy" in [text.get_text() for text in axes.get_yticklabels()]
    mpl.pyplot.close(axes.figure)


def test_two_judges_stand_beside_each_other(case):
    scores, labels, runs = case
    both = pd.concat([scores, scores.assign(evaluator="other")])
    axes = plots.judge_card(judge_card(both, labels, runs))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["judge", "other"]
    assert axes.get_xlabel().count("per verdict") == 2
    mpl.pyplot.close(axes.figure)


def test_what_is_no_card_is_not_drawn(case):
    with pytest.raises(InputError, match="card should be a frame"):
        plots.judge_card(case[0])
    with pytest.raises(InputError, match="no measure of the card has a value"):
        plots.judge_card(judge_card(*case[:2]).assign(value=np.nan))
