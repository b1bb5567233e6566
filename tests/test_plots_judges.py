"""Figures of judges, compared by what was drawn: verdicts, agreement, reliability, length."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("agg")

import matplotlib.pyplot as plt  # noqa: E402

from mcpeval import agreement, judge_card, plots, stats  # noqa: E402
from mcpeval.errors import InputError  # noqa: E402
from mcpeval.frames import scores_frame  # noqa: E402

from .drawn import bars, curves, intervals, words  # noqa: E402


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    plt.close("all")


def judged(verdicts, evaluator="judge", **more):
    """A scores frame from the scores of as many runs, each of a task of its own."""
    return scores_frame(
        [
            {"run_id": f"r{i}", "task_id": f"t{i}", "agent": "a", "evaluator": evaluator, "score": score, "sample": 0,
             "passed": None if score is None else score >= 0.5, "status": "ok" if score is not None else "error",
             **{name: values[i] for name, values in more.items()}}
            for i, score in enumerate(verdicts)
        ]
    )  # fmt: skip


def cells(ax, size):
    return ax.collections[0].get_array().reshape(size, size)


# --- verdicts -------------------------------------------------------------------------------------


def test_verdicts_are_shares_from_the_lowest_to_the_highest_and_what_was_not_scored_is_one_of_them():
    scores = judged([0.75, 0.0, 0.0, None, 0.75, 1.0], label=[4, 1, 1, None, 4, 5])
    ax = plots.distribution(scores)
    assert [(name, pytest.approx(width)) for name, _, width in bars(ax)] == [
        ("1", 2 / 6), ("4", 2 / 6), ("5", 1 / 6), ("unscored", 1 / 6),
    ]  # fmt: skip
    assert {bar.get_label(): bool(bar[0].get_hatch()) for bar in ax.containers}["unscored"]
    assert {"judge", "n=6", "a", "unscored"} <= set(words(ax))


def test_a_score_has_the_same_colour_for_every_evaluator_and_the_darker_is_the_higher():
    scores = pd.concat([judged([0.0, 1.0]), judged([0.0, 0.5, 1.0], "scale", label=["bad", "fair", "good"])])
    ax = plots.distribution(scores)
    colours = [(bar.get_label(), bar[0].get_facecolor()) for bar in ax.containers]
    assert [name for name, _ in colours] == ["0", "1", "bad", "fair", "good"]
    assert colours[0][1] == colours[2][1] and colours[1][1] == colours[4][1]
    assert sum(colours[4][1][:3]) < sum(colours[3][1][:3]) < sum(colours[2][1][:3])


def test_many_different_scores_are_put_in_fifths():
    ax = plots.distribution(judged([i / 20 for i in range(21)]))
    assert [(name, pytest.approx(width * 21)) for name, _, width in bars(ax)] == [
        ("0–.2", 4), (".2–.4", 4), (".4–.6", 4), (".6–.8", 4), (".8–1", 5),
    ]  # fmt: skip


def test_bars_may_be_of_another_column_and_rows_count_whatever_their_index():
    scores = pd.concat([judged([0.0, 1.0]), judged([1.0, 1.0], "rule")])
    ax = plots.distribution(scores, by="evaluator")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["judge", "rule"]
    assert [(name, width) for name, _, width in bars(ax)] == [("0", 0.5), ("1", 0.5), ("1", 1.0)]
    truths = plots.distribution(judged([0.0, 1.0], label=[False, True]))
    assert [name for name, *_ in bars(truths)] == ["fail", "pass"]


# --- agreement ------------------------------------------------------------------------------------

FIRST = [1.0] * 20 + [0.0] * 10 + [1.0] * 5 + [0.0] * 15
SECOND = [1.0] * 20 + [1.0] * 10 + [0.0] * 5 + [0.0] * 15


def test_the_matrix_has_cohens_kappa_of_each_two_on_the_runs_that_both_scored():
    # The example of the literature: 20 and 15 agreed of 50, kappa .4.
    ax = plots.agreement_matrix(pd.concat([judged(FIRST, "first"), judged(SECOND, "second")]))
    assert cells(ax, 2)[0, 1] == cells(ax, 2)[1, 0] == pytest.approx(0.4)
    assert np.ma.getmaskarray(cells(ax, 2)).diagonal().all()
    texts = [text.get_text() for text in ax.texts]
    assert texts[0] == "n=50" and texts[1].startswith(".40\n") and texts[1].endswith("n=50")
    assert "Cohen's kappa\n95 % interval over tasks" in words(ax)


def test_the_cells_are_those_of_the_agreement_report_with_its_intervals_and_people_are_raters_too():
    scores = pd.concat([judged(FIRST, "first"), judged([*SECOND[:-2], None, None], "second")])
    labels = {f"r{i}": bool(i % 3) for i in range(40)}
    ax = plots.agreement_matrix(scores, labels)
    report = agreement(scores, labels)
    assert cells(ax, 3)[2, :2].tolist() == pytest.approx(report["kappa"].tolist())
    said = [text.get_text() for text in ax.texts][6]
    low, high = (f"{report[f'kappa_{end}'][0]:.2f}".replace("0.", ".") for end in ("low", "high"))
    assert said.splitlines() == [f"{report['kappa'][0]:.2f}".replace("0.", "."), f"{low} to {high}", "n=40"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["first", "second", "people"]
    assert [text.get_text() for text in ax.texts][4] == "n=48"


def test_scores_and_ranks_have_measures_of_their_own():
    x, y = [0.0, 0.25, 0.5, 0.75, 1.0, 0.25], [0.25, 0.25, 0.75, 0.5, 1.0, 0.0]
    scores = pd.concat([judged(x, "x", label=[int(4 * v) for v in x]), judged(y, "y", label=[int(4 * v) for v in y])])
    for value, measure, level in (("score", "spearman", "interval"), ("label", "kappa_quadratic", "ordinal")):
        drawn = cells(plots.agreement_matrix(scores, value=value), 2)[0, 1]
        assert drawn == pytest.approx(stats.agreement_measures(x, y, level)[measure][0])
    alpha = cells(plots.agreement_matrix(scores, value="score", measure="alpha"), 2)[0, 1]
    assert alpha == pytest.approx(stats.krippendorff(np.column_stack([x, y]), level="interval"))
    people = pd.DataFrame({"ann": [1, 1, 3, 2, 4, 0], "bob": [0, 1, 2, 3, 4, 1]}, index=[f"r{i}" for i in range(6)])
    ax = plots.agreement_matrix(scores, people, value="label")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["x", "y", "ann", "bob"]
    assert cells(ax, 4)[1, 2] == cells(ax, 4)[0, 3] == 1.0  # they are the same
    twice = plots.agreement_matrix(scores, people.rename(columns={"ann": "x"}), value="label")
    assert [label.get_text() for label in twice.get_yticklabels()] == ["x", "y", "x (label)", "bob"]


def test_what_a_matrix_cannot_compare_is_said():
    scores = pd.concat([judged(FIRST, "first"), judged(SECOND, "second")])
    for arguments, message in (
        ({"measure": "spearman"}, "measure='spearman' is none for value='passed'"),
        ({"value": "scroe"}, "Did you mean 'score'"),
        ({"labels": {f"r{i}": "good" for i in range(9)}}, "'people' has 'good', which is not a truth value"),
        ({"ci": 2}, "ci=2"),
    ):
        with pytest.raises(InputError, match=message):
            plots.agreement_matrix(scores, **arguments)
    with pytest.raises(InputError, match="two raters or more"):
        plots.agreement_matrix(judged(FIRST))


# --- reliability ----------------------------------------------------------------------------------


def test_reliability_by_hand():
    # Ten runs that are scored .9, of which 7 are right, and ten scored .1, of which 2 are:
    # (10 * |.7 - .9| + 10 * |.2 - .1|) / 20 = .15; the bias is .5 - .45.
    labels = {f"r{i}": i < 7 or 10 <= i < 12 for i in range(20)}
    ax = plots.reliability(judged([0.9] * 10 + [0.1] * 10), labels)
    assert curves(ax)["judge"] == (pytest.approx([0.1, 0.9]), pytest.approx([0.2, 0.7]))
    np.testing.assert_allclose(intervals(ax, 1), [stats.wilson(2, 10), stats.wilson(7, 10)])
    assert "judge\nECE .15, bias +.05" in words(ax)
    assert [(text.get_text(), text.get_position()[0]) for text in ax.texts if text.get_text() == "10"] == [
        ("10", pytest.approx(0.1)), ("10", pytest.approx(0.9)),
    ]  # fmt: skip


def test_many_scores_are_binned_and_unscored_or_unlabelled_runs_are_in_no_bin():
    scores = judged([*np.linspace(0, 1, 41), None])
    labels = {f"r{i}": i % 2 for i in (*range(40), 41)}  # r40 has no label, r41 no score
    ax = plots.reliability(scores, labels, bins=4)
    x, y = curves(ax)["judge"]
    assert x == pytest.approx([0.1125, 0.3625, 0.6125, 0.8625]) and y == [0.5] * 4
    assert words(ax).count("10") == 4 and any("1 unscored" in text for text in words(ax))


def test_labels_of_several_people_are_averaged_and_repeated_tasks_widen_the_interval():
    scores = judged([1.0] * 8 + [0.0] * 8)
    people = pd.DataFrame({"ann": [1] * 16, "bob": [1, 0] * 8}, index=[f"r{i}" for i in range(16)])
    assert curves(plots.reliability(scores, people))["judge"][1] == pytest.approx([0.75, 0.75])
    labels = {f"r{i}": i % 4 < 2 for i in range(16)}
    single = plots.reliability(scores, labels)
    same = plots.reliability(scores.assign(task_id=[f"t{i // 2}" for i in range(16)]), labels)
    assert all(b[0] < a[0] and b[1] > a[1] for a, b in zip(intervals(single, 1), intervals(same, 1), strict=True))


def test_what_is_no_rate_has_no_reliability():
    scores = judged([0.0, 1.0])
    for labels, message in (({"r0": 4, "r1": 5}, "labels has 4"), ({"r0": "good"}, "labels has 'good'")):
        with pytest.raises(InputError, match=message):
            plots.reliability(scores, labels)
    with pytest.raises(InputError, match="bins=1 should be"):
        plots.reliability(scores, {"r0": True}, bins=1)
    with pytest.raises(InputError, match="no label of the reference"):
        plots.reliability(scores, {"other": True})


# --- length ---------------------------------------------------------------------------------------


def long_runs(count, unscored=()):
    runs = pd.DataFrame({"run_id": [f"r{i}" for i in range(count)], "output": ["x" * (10 + i) for i in range(count)]})
    # The longer, the oftener wrong: never in the first third, always in the last.
    verdicts = [None if i in unscored else float(i % 2 if i < count // 3 or i % 4 and i < 2 * count // 3 else 1 - i % 2)
                for i in range(count)]  # fmt: skip
    return judged(verdicts), {f"r{i}": bool(i % 2) for i in range(count)}, runs


def test_accuracy_by_length_is_that_of_the_judge_card():
    scores, labels, runs = long_runs(30, unscored=(3, 4))
    ax = plots.length(scores, labels, runs)
    card = judge_card(scores, labels, runs).set_index("measure")
    rows = card.loc[[f"accuracy_{third}" for third in ("short", "medium", "long")]]
    x, y = curves(ax)["judge"]
    assert y == pytest.approx(rows["value"].tolist()) and y[0] == 1.0 and y[2] == 0.0
    assert len(intervals(ax, 1)) == 3
    np.testing.assert_allclose(intervals(ax, 1), rows[["low", "high"]])
    told = [[float(word) for word in note.split() if word.isdigit()] for note in rows["note"]]
    np.testing.assert_allclose(intervals(ax), told)
    assert all(low <= place <= high for place, (low, high) in zip(x, told, strict=True))
    assert "judge (n=28, 2 unscored)" in words(ax) and ax.get_ylabel() == "Accuracy"


def test_amounts_are_correlated_and_lengths_of_other_sizes_are_drawn_by_factors_of_ten():
    scores = judged([i % 10 / 9 for i in range(30)])
    labels = {f"r{i}": i % 10 / 10 + 0.05 for i in range(30)}
    runs = pd.DataFrame({"run_id": [f"r{i}" for i in range(30)], "output": ["x" * (i + 1) ** 2 for i in range(30)]})
    ax = plots.length(scores, labels, runs, bins=2)
    assert ax.get_ylabel() == "Spearman's correlation" and ax.get_xscale() == "log"
    assert curves(ax)["judge"][1] == pytest.approx([1.0, 1.0])


def test_without_lengths_or_verdicts_nothing_is_drawn_and_it_is_said():
    scores, labels, runs = long_runs(9, unscored=range(9))
    assert "no labelled run scored" in words(plots.length(scores, labels, runs))
    with pytest.raises(InputError, match="length: runs should have run_id"):
        plots.length(scores, labels, pd.DataFrame({"x": [1]}))
    with pytest.raises(InputError, match="bins=1"):
        plots.length(scores, labels, runs, bins=1)
