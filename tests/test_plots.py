"""Figures are compared by what was drawn: dots, intervals, labels, colours."""

import subprocess
import sys

import matplotlib
import numpy as np
import pytest

matplotlib.use("agg")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.collections import LineCollection, PathCollection  # noqa: E402

from mcpeval import plots, summarize  # noqa: E402
from mcpeval.errors import InputError  # noqa: E402
from mcpeval.frames import scores_frame  # noqa: E402

AGENTS = ["basic", "react", "tools", "reflection", "explore", "plan", "openai/gpt-4.1-mini-2025-04-14 (react)", "8"]


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    plt.close("all")


def make(agents=("basic", "react"), evaluators=("exact",), tasks=6, unscored=()):
    rows = []
    for a, agent in enumerate(agents):
        for task in range(tasks):
            for evaluator in evaluators:
                score = None if evaluator in unscored or (evaluator, task) in unscored else float((task + a) % 3 > 0)
                rows.append(
                    {"run_id": f"{agent}{task}", "task_id": f"t{task}", "category": "ab"[task % 2], "agent": agent,
                     "evaluator": evaluator, "score": score, "status": "error" if score is None else "ok"}
                )  # fmt: skip
    return scores_frame(rows)


def dots(ax):
    """Label, position and colour of each dot."""
    found = [c for c in ax.collections if isinstance(c, PathCollection)]
    return [(c.get_label(), *c.get_offsets()[0], tuple(c.get_facecolor()[0])) for c in found]


def intervals(ax):
    return [c.get_segments()[0][:, 0].tolist() for c in ax.collections if isinstance(c, LineCollection)]


def test_the_dots_and_intervals_are_those_of_the_summary_at_the_lines_of_their_names():
    scores = make(AGENTS[:3], ["exact", "judge"])
    table = summarize(scores, ["evaluator", "agent"]).sort_values("evaluator", kind="stable")
    ax = plots.success(scores)
    drawn = dots(ax)
    assert [name for name, *_ in drawn] == table["agent"].tolist()
    np.testing.assert_allclose([x for _, x, *_ in drawn], table["score"])
    np.testing.assert_allclose(intervals(ax), table[["low", "high"]])
    assert [label.get_text() for label in ax.get_yticklabels()] == table["agent"].tolist()
    np.testing.assert_allclose([y for _, _, y, _ in drawn], ax.get_yticks())
    assert [text.get_text() for text in ax.texts] == ["exact", "judge"]
    assert ax.get_xlabel() == "Score (95 % interval over tasks)"


def test_categories_become_headings_and_the_agents_keep_the_lines():
    ax = plots.success(make(), by=["agent", "category"], ci=0.9)
    assert [text.get_text() for text in ax.texts] == ["exact, a", "exact, b"]
    assert [name for name, *_ in dots(ax)] == ["basic", "react"] * 2
    assert ax.get_xlabel().startswith("Score (90 %")
    assert [label.get_text() for label in plots.success(make(), by="category").get_yticklabels()] == ["a", "b"]


def test_an_agent_has_the_same_colour_in_every_figure_and_no_two_of_nine_share_one():
    names = [f"agent {i}" for i in range(9)]
    first = {name: colour for name, *_, colour in dots(plots.success(make(names)))}
    again = {name: colour for name, *_, colour in dots(plots.success(make(names[5:2:-1], ["another"])))}
    assert len(set(first.values())) == 9
    assert again == {name: first[name] for name in names[3:6]}
    assert plots.colours(names[:1])[0] == first[names[0]][:3]


def test_what_was_not_scored_is_said_and_never_drawn_as_a_low_score():
    ax = plots.success(make(evaluators=["exact", "broken"], unscored={"broken", ("exact", 0), ("exact", 1)}))
    assert [name for name, *_ in dots(ax)] == ["basic", "react"]
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["basic\n2 of 6 unscored", "react\n2 of 6 unscored", "basic", "react"]
    assert [text.get_text() for text in ax.texts][1:] == ["broken", *["none of 6 rows scored"] * 2]


def test_a_single_task_is_a_dot_without_an_interval():
    ax = plots.success(make(tasks=1))
    assert len(dots(ax)) == 2
    assert intervals(ax) == []


@pytest.mark.parametrize("count", range(1, 9))
def test_a_figure_is_a_column_wide_high_enough_for_its_lines_and_nothing_is_cut_off(count):
    ax = plots.success(make(AGENTS[:count], ["exact match of a very long name indeed, longer than a line", "judge"]))
    figure = ax.figure
    assert figure.get_size_inches()[0] == plots.WIDTH
    figure.canvas.draw()
    boxes = sorted((label.get_window_extent() for label in ax.get_yticklabels()), key=lambda box: box.y0)
    assert all(below.y1 <= above.y0 + 1 for below, above in zip(boxes, boxes[1:], strict=False))
    whole = figure.bbox
    for text in [*ax.get_yticklabels(), *ax.get_xticklabels(), ax.xaxis.label, *ax.texts]:
        box = text.get_window_extent()
        assert box.x0 >= whole.x0 - 1 and box.x1 <= whole.x1 + 1 and box.y0 >= whole.y0 - 1 and box.y1 <= whole.y1 + 1


def test_a_name_is_shown_as_text_even_where_it_looks_like_a_formula(tmp_path):
    ax = plots.success(make(["$x^2$ costs $5", r"\frac", "a\nb"]))
    ax.figure.savefig(tmp_path / "x.png")
    assert [label.get_text() for label in ax.get_yticklabels()] == [r"\$x^2\$ costs \$5", r"\frac", "a b"]


def test_it_draws_on_the_axes_it_is_given_and_changes_no_setting_of_the_session():
    before = dict(matplotlib.rcParams)
    _, ax = plt.subplots()
    assert plots.success(make(), ax=ax) is ax
    assert len(dots(ax)) == 2
    plots.success(make())
    assert dict(matplotlib.rcParams) == before


def test_nothing_to_draw_and_an_unknown_column_are_errors():
    with pytest.raises(InputError, match="nothing to draw"):
        plots.success(make().iloc[:0])
    with pytest.raises(InputError, match="Did you mean 'agent'"):
        plots.success(make(), by="agnet")


def test_importing_the_module_loads_neither_seaborn_nor_matplotlib():
    code = "import sys, mcpeval.plots; print(sorted({'seaborn', 'matplotlib', 'scipy'} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_what_is_no_frame_of_scores_cannot_be_drawn():
    for scores, by in ((None, "agent"), ([], "agent"), (make(), 3)):
        with pytest.raises(InputError, match="success: (scores|by)"):
            plots.success(scores, by=by)
