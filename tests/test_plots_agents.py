"""Figures of agents, compared by what was drawn: differences, trials, costs, usage, tools, ends of runs."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("agg")

import matplotlib.pyplot as plt  # noqa: E402

from mcpeval import compare, pass_at_k, plots, reports  # noqa: E402
from mcpeval.errors import InputError  # noqa: E402
from mcpeval.frames import runs_frame, scores_frame  # noqa: E402

from .drawn import bars, curves, dots, intervals, words  # noqa: E402


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    plt.close("all")


def scored(passes, evaluator="exact", trials=1):
    """A scores frame from the number of passed tasks (of 20) of each agent; None is an agent without scores."""
    rows = []
    for agent, count in passes.items():
        for task in range(20):
            for trial in range(trials):
                score = None if count is None else float((task + trial) % 20 < count)
                rows.append({"run_id": f"{agent}{task}{trial}", "task_id": f"t{task}", "agent": agent, "trial": trial,
                             "evaluator": evaluator, "score": score, "sample": 0})  # fmt: skip
    return scores_frame(rows)


def priced(prices, saved=None):
    """A runs frame from the prices of each agent's runs."""
    rows = []
    for agent, costs in prices.items():
        for task, cost in enumerate(costs):
            rows.append({"run_id": f"{agent}{task}0", "task_id": f"t{task}", "agent": agent, "cost_usd": cost,
                         "metadata": saved or {}})  # fmt: skip
    return runs_frame(rows)


# --- differences ----------------------------------------------------------------------------------


def test_a_forest_has_the_difference_the_interval_p_and_the_tasks_of_each_pair():
    table = compare(scored({"basic": 5, "react": 18, "tools": 7}), baseline="basic")
    ax = plots.differences(table)
    assert [(name, x) for name, x, *_ in dots(ax)] == list(zip(table["agent"], table["difference"], strict=True))
    np.testing.assert_allclose(intervals(ax), table[["low", "high"]])
    np.testing.assert_allclose(sorted({y for _, _, y, _ in dots(ax)}), ax.get_yticks())
    assert "Difference to basic\nfilled: adjusted p < .05" in words(ax)
    # McNemar by hand: 13 to 0 is 2 * 2^-13, doubled by Holm; 2 to 0 is one half.
    assert table["p_adjusted"].tolist() == pytest.approx([2 * 2 * 2**-13, 0.5])
    assert [text.get_text() for text in ax.texts if text.get_text() not in ("exact", "tasks", "p")] == [
        "20", "<.001", "20", ".500",
    ]  # fmt: skip


def test_what_is_significant_is_told_by_filled_dots_and_bold_p_and_not_by_colour_alone():
    ax = plots.differences(compare(scored({"basic": 5, "react": 18, "tools": 7}), baseline="basic"))
    assert [filled for *_, filled in dots(ax)] == [True, False]
    assert {text.get_text(): text.get_weight() for text in ax.texts if text.get_text() in ("<.001", ".500")} == {
        "<.001": "bold", ".500": "normal",
    }  # fmt: skip
    strict = plots.differences(compare(scored({"basic": 5, "react": 18})), alpha=0.0001)
    assert [filled for *_, filled in dots(strict)] == [False] and "adjusted p < .0001" in strict.get_xlabel()


def test_no_difference_is_marked_by_a_line():
    ax = plots.differences(compare(scored({"basic": 5, "react": 18})))
    assert [line.get_xdata() for line in ax.lines] == [[0.0, 0.0]]
    low, high = ax.get_xlim()
    assert low < 0 < high


def test_every_pair_stands_under_its_baseline_and_what_is_not_shared_is_said():
    scores = pd.concat([scored({"basic": 5, "react": 18, "tools": None}), scored({"basic": 4, "react": 3}, "judge")])
    scores.loc[(scores["agent"] == "react") & (scores["task_id"] == "t0"), "score"] = np.nan
    with pytest.warns(UserWarning, match="only one of a pair"):
        table = compare(scores)
    ax = plots.differences(table)
    assert [text.get_text() for text in ax.texts if text.get_weight() == "bold"][:1] == ["exact, to basic"]
    assert {"exact, to basic", "exact, to react", "judge, to basic", "no shared task"} <= set(words(ax))
    assert words(ax).count("react\n1 unpaired") == 2
    assert [name for name, *_ in dots(ax)] == ["react", "react"]


def test_differences_of_another_column_and_by_model_are_drawn_too():
    scores = scored({"basic": 5, "react": 18}).drop(columns="evaluator")
    scores["seconds"] = np.where(scores["agent"] == "react", 30.0, 10.0) + np.arange(40) % 3
    ax = plots.differences(compare(scores.assign(model=scores["agent"]), by="model", value="seconds"))
    assert dots(ax)[0][1] == pytest.approx(20, abs=1.1) and ax.get_xlim()[1] > 20
    with pytest.raises(InputError, match="alpha=2 should lie"):
        plots.differences(compare(scored({"a": 1, "b": 2})), alpha=2)


# --- trials and tasks -----------------------------------------------------------------------------


def test_curves_of_trials_have_the_estimates_and_intervals_of_the_report():
    table = pass_at_k(scored({"basic": 8, "react": 15}, trials=4), [1, 2, 4])
    ax = plots.passes(table)
    drawn = curves(ax)
    for agent in ("basic", "react"):
        rows = table[table["agent"] == agent]
        for name in ("pass_at_k", "pass_hat_k"):
            assert drawn[f"{agent} {name}"] == (rows["k"].tolist(), rows[name].tolist())
    ends = [table[table["agent"] == agent][[f"{name}_low", f"{name}_high"]].to_numpy()
            for agent in ("basic", "react") for name in ("pass_at_k", "pass_hat_k")]  # fmt: skip
    np.testing.assert_allclose(intervals(ax, 1), np.concatenate(ends))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "2", "4"] and ax.get_xscale() == "log"
    assert ax.get_xlabel() == "Trials k, 20 tasks"
    styles = {line.get_label(): line.get_linestyle() for line in ax.lines}
    assert styles["basic pass_at_k"] == "-" and styles["basic pass_hat_k"] == "--"


def test_trials_one_apart_are_drawn_evenly_and_different_numbers_of_tasks_are_said():
    table = pass_at_k(scored({"basic": 8, "react": 15}, trials=3), [1, 2, 3])
    table.loc[table["agent"] == "react", "tasks"] = 1
    ax = plots.passes(table)
    assert ax.get_xscale() == "linear" and ax.get_xlabel() == "Trials k"
    assert {"basic (20 tasks)", "react (1 task)", "pass@k: one of k", "pass^k: all of k"} <= set(words(ax))
    whole = pass_at_k(scored({"basic": 8}, trials=3).drop(columns="agent"), 1)
    assert "all runs pass_at_k" in curves(plots.passes(whole))


def test_one_evaluator_has_to_be_chosen_of_several():
    scores = pd.concat([scored({"basic": 8}, name, trials=2) for name in ("exact", "judge")])
    table = pass_at_k(scores.assign(run_id=scores["run_id"] + scores["evaluator"]), [1, 2])
    with pytest.raises(InputError, match=r"passes: evaluator=None should be one.*'exact', 'judge'"):
        plots.passes(table)
    with pytest.raises(InputError, match="Did you mean 'judge'"):
        plots.passes(table, evaluator="jugde")
    assert len(curves(plots.passes(table, evaluator="judge"))) == 2


def test_power_is_drawn_against_the_tasks_a_line_for_each_difference():
    table = reports.power([0.1, 0.2], tasks=[50, 100], rate=0.6)
    ax = plots.power(table)
    assert curves(ax) == {
        f"difference .{i}": ([50.0, 100.0], table[table["difference"] == i / 10]["power"].tolist()) for i in (1, 2)
    }
    shown = reports.power(tasks=[50, 100, 200], rate=0.6)
    assert curves(plots.power(shown, value="difference")) == {
        "1 trial": (shown["tasks"].tolist(), shown["difference"].tolist())
    }
    with pytest.raises(InputError, match="value='tasks'"):
        plots.power(table, value="tasks")


# --- costs ----------------------------------------------------------------------------------------


def test_the_pareto_front_goes_through_the_agents_that_none_beats_in_both():
    scores = scored({"cheap": 5, "good": 15, "worse": 10, "best": 18, "dear": 18})
    runs = priced({name: [cost] * 20 for name, cost in
                   {"cheap": 0.01, "good": 0.02, "worse": 0.03, "best": 0.04, "dear": 0.05}.items()})  # fmt: skip
    ax = plots.cost(scores, runs)
    places = {name: (x, y) for name, x, y, _ in dots(ax)}
    assert places["cheap"] == pytest.approx((0.01, 0.25)) and places["dear"] == pytest.approx((0.05, 0.9))
    assert [name for name, *_, filled in dots(ax) if filled] == ["cheap", "good", "best"]
    x, y = curves(ax)["Pareto front"]
    assert (x, y) == (pytest.approx([0.01, 0.02, 0.04]), pytest.approx([0.25, 0.75, 0.9]))
    assert ax.get_xscale() == "linear" and "Pareto front" in words(ax)


def test_the_vertical_lines_are_the_intervals_of_the_summary():
    scores, runs = scored({"a": 5, "b": 15}), priced({"a": [0.01] * 20, "b": [0.02, 0.06] * 10})
    ax = plots.cost(scores, runs)
    np.testing.assert_allclose(intervals(ax, 1), reports.summarize(scores, "agent")[["low", "high"]])
    (across,) = intervals(ax)  # of the one whose price varies
    assert across[0] < 0.04 < across[1]


def test_an_unknown_price_is_said_and_never_drawn_as_nothing():
    scores = scored({"known": 5, "unknown": 19, "partly": 12, "unscored": None})
    runs = priced({"known": [0.01] * 20, "unknown": [None] * 20, "partly": [0.02, None] * 10, "unscored": [0.01] * 20})
    ax = plots.cost(scores, runs)
    places = {name: (x, y) for name, x, y, _ in dots(ax)}
    assert places["partly"][0] == pytest.approx(0.02) and set(places) == {"known", "unknown", "partly"}
    assert places["unknown"] == pytest.approx((0.92, 0.95))  # of the width of the figure, in the strip
    assert "price\nunknown" in words(ax) and "partly (price of 10 of 20 unknown)" in words(ax)
    assert "unscored (20 of 20 unscored)" in words(ax)
    assert curves(ax)["Pareto front"][0] == pytest.approx([0.01, 0.02])
    nothing = plots.cost(scores, priced({"unknown": [None]}))
    assert "Pareto front" not in words(nothing) and list(nothing.get_xticks()) == []


def test_a_run_out_of_the_cache_costs_what_was_paid_for_it_and_free_agents_stand_at_nothing():
    runs = priced({"a": [0.0] * 20}, saved={"saved_usd": 0.25})
    assert dots(plots.cost(scored({"a": 5}), runs))[0][1] == pytest.approx(0.25)
    assert plots.cost(scored({"a": 5}), priced({"a": [0.0]}, saved={"saved_usd": None})).get_xticks().size == 0
    local = priced({"local": [0.0] * 20, "a": [0.001] * 20, "b": [1.0] * 20})
    ax = plots.cost(scored({"local": 5, "a": 6, "b": 7}), local)
    assert [x for _, x, *_ in dots(ax)] == pytest.approx([0.0, 0.001, 1.0]) and ax.get_xscale() == "symlog"
    assert plots.cost(scored({"a": 6, "b": 7}), local).get_xscale() == "log"


# --- what runs used -------------------------------------------------------------------------------


def test_usage_has_the_median_the_middle_half_and_most_of_the_runs():
    numbers = np.arange(101)
    runs = runs_frame([{"agent": "a", "turns": int(n), "tokens_in": int(10 * n), "tokens_out": 7, "n_tool_calls": 0}
                       for n in numbers])  # fmt: skip
    ax = plots.usage(runs)
    tokens, out, turns, calls = ax.child_axes
    assert [dots(one)[0][1] for one in ax.child_axes] == [500, 7, 50, 0]
    assert intervals(turns) == [[5, 95], [25, 75]] and intervals(tokens) == [[50, 950], [250, 750]]
    assert [one.get_title() for one in ax.child_axes] == ["Tokens\nin", "Tokens\nout", "Turns", "Tool\ncalls"]
    single = plots.usage(runs, "turns")
    assert single.child_axes == [] and single.get_xlabel().startswith("Turns\nmedian")


def test_unknown_usage_is_counted_and_not_taken_for_nothing():
    rows = [{"agent": agent, "tokens_in": tokens, "turns": 2}
            for agent, tokens in [("a", 10), ("a", None), ("a", 30), ("b", None)]]  # fmt: skip
    ax = plots.usage(runs_frame(rows), ["tokens_in", "turns"])
    assert "a\n1 of 3 not all known" in words(ax) and "b\n1 of 1 not all known" in words(ax)
    assert [x for _, x, *_ in dots(ax.child_axes[0])] == [20] and "unknown" in words(ax)
    for values in ([], ["turns"] * 7, 3):
        with pytest.raises(InputError, match="one to six columns"):
            plots.usage(runs_frame(rows), values)
    with pytest.raises(InputError, match="columns of numbers"):
        plots.usage(runs_frame(rows), "agent")
    with pytest.raises(InputError, match="Did you mean 'turns'"):
        plots.usage(runs_frame(rows), "turn")


def call(name, failed=False, server="files"):
    return {"server": server, "name": name, "arguments": {}, "is_error": failed}


def test_a_tool_map_says_calls_per_run_and_marks_the_share_that_failed():
    runs = runs_frame(
        [
            {"agent": "basic", "tool_calls": [call("read"), call("read", failed=True), call("list")]},
            {"agent": "basic", "tool_calls": []},
            {"agent": "react", "tool_calls": [call("read"), call("find", server="web"), call("find", server="search")]},
            {"agent": "react"},
        ]
    )
    ax = plots.tool_use(runs)
    tools = [label.get_text() for label in ax.get_yticklabels()]
    assert tools == ["read", "list", "web: find", "search: find"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["basic", "react"]
    values = ax.collections[0].get_array().reshape(4, 2)
    assert values.tolist() == [[1.0, 1.0], [0.5, 0.0], [0.0, 1.0], [0.0, 1.0]]
    assert [text.get_text() for text in ax.texts] == ["1.0", "1.0", ".5", "·", "·", "1.0", "·", "1.0"]
    ((label, y, width),) = bars(ax)
    assert (label, width, int(y)) == ("failed", pytest.approx(0.94 / 2), 0)  # one of two, of a cell that is .94 wide
    assert "1 of 4 runs do not say their calls" in ax.get_xlabel()


def test_many_tools_are_put_together_and_calls_are_found_in_messages():
    messages = [{"role": "assistant", "tool_calls": [
        {"id": str(i), "type": "function", "function": {"name": f"tool{i}", "arguments": "{}"}} for i in range(30)
    ]}]  # fmt: skip
    ax = plots.tool_use(pd.DataFrame({"agent": ["a"], "messages": [messages]}), most=5)
    assert [label.get_text() for label in ax.get_yticklabels()] == [*(f"tool{i}" for i in range(5)), "(25 other tools)"]
    assert ax.texts[-1].get_text() == "25"
    none = plots.tool_use(pd.DataFrame({"agent": ["a"], "tool_calls": [[]]}))
    assert [label.get_text() for label in none.get_yticklabels()] == ["(no tool was called)"]
    with pytest.raises(InputError, match="tool_use: row 0"):
        plots.tool_use(pd.DataFrame({"agent": ["a"], "tool_calls": ["x"]}))
    with pytest.raises(InputError, match="most=0"):
        plots.tool_use(pd.DataFrame({"agent": ["a"], "tool_calls": [[]]}), most=0)


def test_the_ends_of_runs_are_shares_of_all_runs_of_an_agent():
    kinds = [None, None, "timeout", "server", "timeout"]
    rows = [{"agent": "a", "status": "error" if kind else "ok", "error_class": kind} for kind in kinds]
    rows += [{"agent": "b", "status": "error"}, {"agent": "b", "status": "ok"}]
    ax = plots.error_classes(runs_frame(rows))
    a, b = ax.get_yticks()
    assert bars(ax) == [
        ("ok", a, pytest.approx(0.4)), ("timeout", a, pytest.approx(0.4)), ("server", a, pytest.approx(0.2)),
        ("ok", b, pytest.approx(0.5)), ("unclassified", b, pytest.approx(0.5)),
    ]  # fmt: skip
    assert {"n=5", "n=2", "timeout", "unclassified", "ok"} <= set(words(ax))
    hatches = {bar.get_label(): bar[0].get_hatch() for bar in ax.containers}
    assert hatches["timeout"] != hatches["server"]  # neighbours differ without colour too
    assert len(plots.error_classes(runs_frame(rows), by="model").get_yticks()) == 1
