"""Figures of ablations and probes, compared by what was drawn."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("agg")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.collections import LineCollection, PathCollection  # noqa: E402
from matplotlib.colors import to_rgba  # noqa: E402

from mcpeval import ablate, plots, probe, summarize  # noqa: E402
from mcpeval.errors import InputError  # noqa: E402
from mcpeval.evaluators import rule  # noqa: E402

WHITE = to_rgba("white")


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    plt.close("all")


@pytest.fixture
def runs():
    texts = [("yes" if i % 3 else "no") + " indeed" * (i % 2) for i in range(8)]
    return pd.DataFrame(
        {"task_id": [f"t{i}" for i in range(8)], "output": texts, "human": [i % 3 > 0 for i in range(8)]}
    )


@pytest.fixture
def scores(runs):
    return ablate(runs, rule("", "contain", "yes"), op=["contain", "="], value=["yes", "no"])


def dots(ax):
    """Label, position, and whether it is filled, of each dot."""
    found = [c for c in ax.collections if isinstance(c, PathCollection)]
    return [(c.get_label(), *c.get_offsets()[0], tuple(c.get_facecolor()[0]) != WHITE) for c in found]


def intervals(ax):
    return [c.get_segments()[0][:, 0].tolist() for c in ax.collections if isinstance(c, LineCollection)]


def headings(ax):
    return [text.get_text() for text in ax.texts if text.get_weight() == "bold"]


def inside(ax):
    ax.figure.canvas.draw()
    whole = ax.figure.bbox
    texts = [*ax.get_yticklabels(), *ax.get_xticklabels(), ax.xaxis.label, ax.yaxis.label, *ax.texts]
    for text in [text for text in texts if text.get_text()]:
        box = text.get_window_extent()
        assert box.x0 >= whole.x0 - 1 and box.x1 <= whole.x1 + 1, text.get_text()
        assert box.y0 >= whole.y0 - 1 and box.y1 <= whole.y1 + 1, text.get_text()
    return True


def test_each_level_of_each_factor_is_a_dot_with_the_summarys_interval_and_the_baseline_is_open(scores):
    ax = plots.ablation(scores, ["op", "value"])
    tables = [summarize(scores, factor) for factor in ("op", "value")]
    assert headings(ax) == ["op", "value"]
    assert [name for name, *_ in dots(ax)] == ["contain", "=", "yes", "no"]
    np.testing.assert_allclose([x for _, x, *_ in dots(ax)], pd.concat(tables)["score"])
    np.testing.assert_allclose(intervals(ax), pd.concat(tables)[["low", "high"]])
    assert [filled for *_, filled in dots(ax)] == [False, True, False, True]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["contain", "=", "yes", "no"]
    assert "open: baseline" in ax.get_xlabel() and ax.figure.get_size_inches()[0] == plots.WIDTH and inside(ax)


def test_where_factors_vary_alone_the_others_are_at_their_baseline(runs):
    scores = ablate(runs, rule("", "contain", "yes"), design="one-at-a-time", op=["contain", "="], value=["yes", "no"])
    drawn = {name: x for name, x, *_ in dots(plots.ablation(scores, ["op", "value"]))}
    by_cell = scores.groupby(["op", "value"])["score"].mean()
    assert drawn["contain"] == drawn["yes"] == by_cell["contain", "yes"]
    assert drawn["="] == by_cell["=", "yes"] and drawn["no"] == by_cell["contain", "no"]


def test_an_ablation_against_labels_draws_how_often_each_level_is_right(runs):
    result = ablate(runs, rule("", "contain", "yes"), labels="human", value=["yes", "no"])
    ax = result.figure()
    assert [(name, x) for name, x, *_ in dots(ax)] == [("yes", 1.0), ("no", 0.0)]
    assert ax.get_xlabel().startswith("Share of right verdicts") and inside(ax)


def test_a_level_that_was_not_scored_is_no_dot(scores):
    scores.loc[scores["value"] == "no", "score"] = np.nan
    ax = plots.ablation(scores, "value")
    assert [name for name, *_ in dots(ax)] == ["yes"]
    assert [text.get_text() for text in ax.texts][-1].startswith("none of 16 rows")


def test_a_grid_has_the_mean_and_the_interval_of_each_combination(scores):
    ax = plots.grid(scores, ["op", "value"])
    table = summarize(scores, ["op", "value"])
    said = [text.get_text().splitlines()[0] for text in ax.texts]
    assert [float(text) for text in said] == [round(score, 2) for score in table["score"]]
    assert " to " in ax.texts[0].get_text()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["yes", "no"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["contain", "="]
    assert inside(ax)


def test_the_effects_of_a_probe_are_a_forest_in_which_clear_ones_are_filled(runs):
    table = probe({"short": lambda output: len(output) < 20}, runs, attacks=["tags", "roles"])
    ax = plots.effects(table)
    drawn = table[table["effect"].notna()]
    assert headings(ax) == ["position", "verbosity", "format", "self", "authority", "injection"]
    assert [name for name, *_ in dots(ax)] == drawn["variant"].tolist()
    np.testing.assert_allclose([x for _, x, *_ in dots(ax)], drawn["effect"])
    np.testing.assert_allclose(intervals(ax), drawn[["low", "high"]])
    assert [filled for *_, filled in dots(ax)] == (drawn["p_adjusted"] < 0.05).tolist()
    few = plots.effects(probe({"short": lambda output: len(output) < 20}, runs, "verbosity"))
    assert [filled for *_, filled in dots(few)] == [True, True]
    notes = [text.get_text().replace("\n", " ") for text in ax.texts]
    assert "it asks no model" in notes and inside(ax)


def test_several_judges_have_headings_of_their_own(runs):
    table = probe({"a": lambda output: True, "b": lambda output: False}, runs, "authority")
    assert headings(plots.effects(table)) == ["a: authority", "b: authority"]


@pytest.mark.parametrize("levels", [2, 5])
def test_long_names_of_levels_are_cut_and_nothing_is_cut_off(runs, levels):
    names = {f"a very long name of a level, number {i}, that goes on": f"yes{i}" for i in range(levels)}
    scores = ablate(runs, rule("", "=", "yes"), value=names, op=["=", "contain"])
    assert inside(plots.ablation(scores, ["value", "op"])) and inside(plots.grid(scores, ["value", "op"]))
    assert inside(plots.grid(scores, ["op", "value"]))


def test_figures_draw_on_the_axes_they_are_given(scores):
    _, ax = plt.subplots()
    assert plots.ablation(scores, "op", ax=ax) is ax and len(dots(ax)) == 2


def test_what_cannot_be_drawn_is_said(scores):
    with pytest.raises(InputError, match="Did you mean 'value'"):
        plots.ablation(scores, "vlaue")
    with pytest.raises(InputError, match="nothing to draw"):
        plots.ablation(scores.iloc[:0], "op")
    with pytest.raises(InputError, match="should be two columns"):
        plots.grid(scores, "op")
    with pytest.raises(InputError, match="table is a list"):
        plots.effects([])
    with pytest.raises(InputError, match="no column 'kind'"):
        plots.effects(scores.drop(columns="kind"))
