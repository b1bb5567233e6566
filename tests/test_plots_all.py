"""What holds for every figure: a column wide, nothing cut off, no setting changed, nothing left open."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("agg")

import matplotlib.pyplot as plt  # noqa: E402

from mcpeval import compare, judge_card, pass_at_k, plots, reports  # noqa: E402
from mcpeval.errors import InputError  # noqa: E402
from mcpeval.frames import runs_frame, scores_frame  # noqa: E402

from .drawn import assert_readable, colours_of, said, words  # noqa: E402

AGENTS = [
    *("basic", "react", "openai/gpt-4.1-mini-2025-04-14 (react)", "reflection", "$x_1$ and $y^", "_hidden\nname"),
    *("plan and execute over three servers, with a memory of what was done", r"\frac{1}{2}", "<b>&amp;"),
]
KINDS = ["timeout", "turn_limit", "server", "model", "bad_json", "context", "rate", "harness", None]
TOOLS = [*(("files", f"read_{i}") for i in range(4)), ("search", "find"), ("web", "find"), (None, "a" * 60)]


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    plt.close("all")


def make(agents, tasks=4, trials=2, unscored=0.1, known=True, seed=0):
    """A runs frame, a scores frame of two evaluators, and labels of the runs."""
    rng = np.random.default_rng(seed)
    runs, scores, labels = [], [], {}
    for a, agent in enumerate(AGENTS[:agents]):
        for task, trial in np.ndindex(tasks, trials):
            run = {"run_id": f"{a}-{task}-{trial}", "task_id": f"t{task}", "category": "ab"[task % 2], "agent": agent}
            truth, failed = bool(rng.random() < 0.3 + 0.07 * a), rng.random() < 0.05 * (a + 1)
            calls = [
                {"server": server, "name": tool, "arguments": {}, "is_error": bool(rng.random() < 0.3)}
                for server, tool in TOOLS
                for _ in range(rng.poisson(1 + a % 3))
            ]
            tokens = int(rng.lognormal(8 + a / 2)) if known and (a, trial) != (1, 1) else None
            labels[run["run_id"]] = truth
            runs.append(
                {**run, "trial": trial, "tool_calls": calls, "n_tool_calls": len(calls), "turns": len(calls) + 1,
                 "tokens_in": tokens, "tokens_out": tokens, "seconds": 3.0, "output": "x" * int(rng.lognormal(6)),
                 "cost_usd": tokens and tokens * 1e-6, "status": "error" if failed else "ok", "metadata": {},
                 "error_class": KINDS[rng.integers(len(KINDS))] if failed else None}
            )  # fmt: skip
            for evaluator, label in (("exact $match$", None), ("a judge of a very long name, second version", 4)):
                lost = rng.random() < unscored
                score = None if lost else float(truth) if label is None else rng.integers(5) / 4
                passed = None if lost else score > 0.5
                scores.append(
                    {**run, "trial": trial, "evaluator": evaluator, "score": score, "passed": passed, "sample": 0,
                     "label": label and score and int(score * 4) + 1, "status": "error" if lost else "ok"}
                )  # fmt: skip
    return scores_frame(scores), runs_frame(runs), labels


@pytest.fixture(scope="module")
def frames():
    """Few agents, many with hostile names, and the poorest there can be: one task of which nothing is known."""
    return {
        "few": make(2, tasks=6),
        "many": make(9),
        "poor": make(2, tasks=1, trials=1, unscored=1.0, known=False),
    }


def first(scores):
    return scores[scores["evaluator"] == scores["evaluator"].iloc[0]]


def _passes(scores, ax):
    scored = first(scores).assign(score=lambda frame: frame["score"].fillna(0.0), passed=None)
    return plots.passes(pass_at_k(scored, sorted({1, scored["trial"].max() + 1})), ax=ax)


@pytest.mark.filterwarnings("ignore:compare. tasks that only one")
def _differences(scores, ax):
    return plots.differences(compare(scores), ax=ax)


FIGURES = {
    "success": lambda scores, runs, labels, ax: plots.success(scores, by=["agent", "category"], ax=ax),
    "differences": lambda scores, runs, labels, ax: _differences(scores, ax),
    "distribution": lambda scores, runs, labels, ax: plots.distribution(scores, ax=ax),
    "agreement_matrix": lambda scores, runs, labels, ax: plots.agreement_matrix(scores, labels, ax=ax),
    "reliability": lambda scores, runs, labels, ax: plots.reliability(scores, labels, ax=ax),
    "length": lambda scores, runs, labels, ax: plots.length(scores, labels, runs, ax=ax),
    "passes": lambda scores, runs, labels, ax: _passes(scores, ax),
    "cost": lambda scores, runs, labels, ax: plots.cost(first(scores), runs, ax=ax),
    "usage": lambda scores, runs, labels, ax: plots.usage(runs, ax=ax),
    "usage of one": lambda scores, runs, labels, ax: plots.usage(runs, "tokens_in", ax=ax),
    "tool_use": lambda scores, runs, labels, ax: plots.tool_use(runs, ax=ax),
    "error_classes": lambda scores, runs, labels, ax: plots.error_classes(runs, ax=ax),
    "power": lambda scores, runs, labels, ax: plots.power(
        reports.power([0.1, 0.2], tasks=[20, 40], trials=[1, 2], rate=0.5, within=0.5), ax=ax
    ),
}

pytestmark = pytest.mark.filterwarnings("ignore:compare. tasks that only one")


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("which", ["few", "many", "poor"])
def test_a_figure_is_a_column_wide_and_all_of_its_text_can_be_read(name, which, frames):
    ax = FIGURES[name](*frames[which], None)
    assert isinstance(ax, matplotlib.axes.Axes)
    assert ax.figure.get_size_inches()[0] == plots.WIDTH
    assert_readable(ax)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_draws_on_the_axes_it_is_given_and_changes_no_setting_of_the_session(name, frames):
    before, opened = dict(matplotlib.rcParams), plt.get_fignums()
    _, ax = plt.subplots()
    assert FIGURES[name](*frames["few"], ax) is ax
    assert len(plt.get_fignums()) == len(opened) + 1
    FIGURES[name](*frames["few"], None)
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("name", FIGURES)
def test_figures_beside_each_other_can_be_read_as_well(name, frames):
    _, (left, right) = plt.subplots(1, 2, figsize=(2 * plots.WIDTH, 5), layout="constrained")
    for ax in (left, right):
        FIGURES[name](*frames["few"], ax)
    assert_readable(left)
    assert_readable(right)


@pytest.mark.parametrize("name", FIGURES)
def test_what_is_no_frame_or_has_no_rows_is_an_error_and_no_figure_is_left_open(name):
    arguments = {
        "agreement_matrix": [{}], "reliability": [{}], "length": [{}, pd.DataFrame()], "cost": [pd.DataFrame()],
    }  # fmt: skip
    function = getattr(plots, name.split()[0])
    for frame in (None, [1], pd.DataFrame(), pd.DataFrame({"agnet": [1]})):
        with pytest.raises(InputError):
            function(frame, *arguments.get(name, []))
    assert plt.get_fignums() == []


def test_where_drawing_fails_the_new_figure_is_closed(frames, monkeypatch):
    monkeypatch.setattr("mcpeval.plots.rates.bare", lambda ax: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        plots.success(frames["few"][0])
    assert plt.get_fignums() == []


def test_an_agent_has_the_same_colour_in_every_figure(frames):
    scores, runs, _ = frames["many"]
    names = [name.replace("$", r"\$") for name in AGENTS]
    success, cost = colours_of(plots.success(first(scores))), colours_of(plots.cost(first(scores), runs))
    assert set(success) == set(names) and cost == success
    assert colours_of(plots.usage(runs, "turns")) == success
    compared = colours_of(plots.differences(compare(first(scores), baseline=AGENTS[0])))
    assert compared == {name: success[name] for name in names[1:]}
    drawn = {line.get_label(): line.get_color() for line in _passes(scores, None).lines}
    assert {name: drawn[f"{name} pass_at_k"] for name in names} == success


def test_a_name_stays_text_however_it_is_cut(tmp_path):
    for places in range(0, 20, 3):
        name = "a" * places + "$x_1$ $y_2" + "b" * 60
        ax = plots.error_classes(pd.DataFrame({"agent": [name], "status": "ok", "error_class": None}))
        (label,) = ax.get_yticklabels()
        assert label.get_text().count(r"\$") == label.get_text().count("$")
        ax.figure.savefig(tmp_path / "figure.png")
        plt.close("all")


def test_sizes_and_typeface_are_those_of_the_paper_and_of_the_session(frames):
    with matplotlib.rc_context({"font.size": 30, "xtick.labelsize": 30, "font.family": ["monospace"]}):
        for name in ("reliability", "usage of one", "differences"):
            for ax in (FIGURES[name](*frames["few"], None), FIGURES[name](*frames["few"], plt.subplots()[1])):
                ax.figure.canvas.draw()
                assert max(text.get_size() for text in said(ax)) <= 8
                assert ax.get_xticklabels()[0].get_family() == ["monospace"]


def test_figures_are_white_with_dark_text_in_a_dark_session(frames):
    with plt.style.context("dark_background"):
        ax = FIGURES["success"](*frames["few"], None)
    assert ax.figure.get_facecolor()[:3] == (1, 1, 1) and ax.get_facecolor()[:3] == (1, 1, 1)
    assert ax.get_yticklabels()[0].get_color() == ".15"


def test_every_figure_is_a_public_name_and_says_what_it_reads():
    assert {name.split()[0] for name in FIGURES} <= set(plots.__all__)
    for name in FIGURES:
        text = getattr(plots, name.split()[0]).__doc__
        assert all(
            part in text for part in ("Parameters\n", "Returns\n", "Raises\n", "eads" if name != "length" else "")
        )


def test_a_card_of_a_report_is_drawn_beside_the_others(frames):
    scores, runs, labels = frames["few"]
    assert "Accuracy" in words(plots.judge_card(judge_card(scores, labels, runs)))
