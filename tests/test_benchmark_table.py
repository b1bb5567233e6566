"""The table of a benchmark's results; expected values are counted by hand."""

from __future__ import annotations

import json
import math

import pandas as pd
import pytest

from mcpeval.errors import InputError
from mcpeval.evaluators import Rule, compare_func
from mcpeval.evaluators.chains import COMPARISONS, Custom
from mcpeval.reports import benchmark_table
from mcpeval.reports.benchmarks import TYPES, _operator

FORM, STATIC, DYNAMIC = "json", 'json -> get(city) = "Paris"', "json maps.is_near {}"


def row(agent, task, evaluator, score, *, trial=0, category="maps", kind="rule", status=None, **more):
    return {
        "run_id": f"{agent}-{task}-{trial}", "task_id": task, "category": category, "agent": agent, "trial": trial,
        "evaluator": evaluator, "kind": kind, "score": math.nan if score is None else score,
        "passed": None if score is None else score == 1,
        "status": status or ("ok" if score is not None else "error"), "sample": 0, "metadata": {}, **more,
    }  # fmt: skip


@pytest.fixture
def scores():
    """Two agents, three tasks of two categories; agent a has two trials of the first."""
    return pd.DataFrame(
        [
            row("a", "t1", FORM, 1), row("a", "t1", STATIC, 1), row("a", "t1", DYNAMIC, 1),
            row("a", "t1", FORM, 1, trial=1), row("a", "t1", STATIC, 0, trial=1), row("a", "t1", DYNAMIC, 0, trial=1),
            row("a", "t2", FORM, 1), row("a", "t2", STATIC, 0),
            row("a", "t3", "Judge", 1, category="search", kind="judge"),
            row("b", "t1", FORM, 0), row("b", "t1", STATIC, 0), row("b", "t1", DYNAMIC, 0),
            row("b", "t2", FORM, 1), row("b", "t2", STATIC, None),
            row("b", "t3", "Judge", 0, category="search", kind="judge"),
        ]
    )  # fmt: skip


@pytest.fixture
def runs(scores):
    turns = {"a-t1-0": 4, "a-t1-1": 8, "a-t2-0": 3, "a-t3-0": 5, "b-t1-0": 1, "b-t2-0": 2, "b-t3-0": 7}
    return pd.DataFrame({"run_id": list(turns), "turns": list(turns.values())})


def lines(table, *names):
    return [
        tuple(None if x != x else x for x in line) for line in table[["agent", "category", *names]].to_numpy().tolist()
    ]


def test_success_is_that_all_evaluators_pass_and_tasks_weigh_the_same(scores):
    table = benchmark_table(scores)
    # Agent a, maps: t1 succeeds in 1 of 2 trials, t2 does not: (1/2 + 0) / 2; overall t3 does: (1/2 + 0 + 1) / 3.
    # Evaluator scores: t1 (3/3 + 1/3) / 2 = 2/3, t2 1/2: their mean 7/12; overall (2/3 + 1/2 + 1) / 3 = 13/18.
    # Agent b: t2 has an evaluator that could not say anything, and is in no mean.
    assert lines(table, "success_rate", "tasks", "trials", "runs", "incomplete") == [
        ("a", "maps", 0.25, 2, 2, 3, 0),
        ("a", "search", 1.0, 1, 1, 1, 0),
        ("a", "overall", 0.5, 3, 2, 4, 0),
        ("b", "maps", 0.0, 1, 1, 1, 1),
        ("b", "search", 0.0, 1, 1, 1, 0),
        ("b", "overall", 0.0, 2, 1, 2, 1),
    ]
    found = dict(zip(zip(table["agent"], table["category"]), table["evaluator_score"]))
    assert found["a", "maps"] == pytest.approx(7 / 12)
    assert found["a", "overall"] == pytest.approx(13 / 18)
    assert (found["b", "maps"], found["b", "overall"]) == (0.0, 0.0)


def test_steps_are_the_turns_of_the_runs_and_those_of_successes_stand_apart(scores, runs):
    # a, maps: t1 (4 + 8) / 2, t2 3: mean 4.5; of successes only t1's first: 4. Overall (6 + 3 + 5) / 3; (4 + 5) / 2.
    expected = [
        ("a", "maps", 4.5, 4.0), ("a", "search", 5.0, 5.0), ("a", "overall", 14 / 3, 4.5),
        ("b", "maps", 1.0, None), ("b", "search", 7.0, None), ("b", "overall", 4.0, None),
    ]  # fmt: skip
    assert lines(benchmark_table(scores, runs=runs), "steps", "steps_success") == expected
    merged = scores.merge(runs, on="run_id")
    assert lines(benchmark_table(merged), "steps", "steps_success") == expected
    assert benchmark_table(scores)["steps"].isna().all()


def test_each_type_of_evaluator_has_its_mean(scores):
    found = lines(benchmark_table(scores), *TYPES)
    # a: format 1 and 1; static t1 1/2, t2 0; dynamic t1 1/2, t2 has none; the judge's t3.
    assert found[0] == ("a", "maps", 1.0, 0.25, 0.5, None)
    assert found[1] == ("a", "search", None, None, None, 1.0)
    assert found[2] == ("a", "overall", 1.0, 0.25, 0.5, 1.0)
    assert found[5] == ("b", "overall", 0.0, 0.0, 0.0, 0.0)


def test_failures_count_as_nothing_passed_where_that_is_asked_for(scores):
    table = benchmark_table(scores, errors="fail").set_index(["agent", "category"])
    # b, t2: the form is right, the other evaluator failed: 1 of 2, no success.
    assert table.loc[("b", "maps"), ["success_rate", "evaluator_score", "tasks", "incomplete"]].tolist() == [
        0,
        0.25,
        2,
        0,
    ]


def test_what_an_evaluator_had_nothing_to_say_of_makes_no_run_incomplete(scores):
    skipped = pd.DataFrame([row("a", "t3", STATIC, None, category="search", status="skipped")])
    table = benchmark_table(pd.concat([scores, skipped], ignore_index=True)).set_index(["agent", "category"])
    assert table.loc[("a", "search"), ["success_rate", "incomplete"]].tolist() == [1.0, 0]
    broken = skipped.assign(metadata=[{"error_class": "server"}])
    table = benchmark_table(pd.concat([scores, broken], ignore_index=True)).set_index(["agent", "category"])
    assert table.loc[("a", "search"), "incomplete"] == 1
    assert math.isnan(table.loc[("a", "search"), "success_rate"])


def test_the_interval_is_that_of_summarize(scores):
    from mcpeval import summarize

    one = scores[(scores["agent"] == "b") & scores["score"].notna() & (scores["task_id"] != "t2")]
    assert len(one.groupby("run_id")) == 2
    rate = benchmark_table(one).iloc[-1]
    mine = one.groupby("run_id", as_index=False).agg(task_id=("task_id", "first"), score=("score", "min"))
    said = summarize(mine.assign(evaluator="all")).iloc[0]
    assert (rate["success_rate"], rate["low"], rate["high"]) == (said["score"], said["low"], said["high"])


def test_groups_are_those_of_by_and_samples_of_a_judge_vote(scores):
    votes = [row("a", "t9", "Judge", s, kind="judge", category="search", model="m") for s in (1, 1, 0)]
    frame = pd.DataFrame(votes).assign(sample=[0, 1, 2])
    table = benchmark_table(frame, by=["model", "agent"])
    assert table[["model", "agent", "success_rate"]].iloc[-1].tolist() == ["m", "a", 1.0]
    assert table["evaluator_score"].iloc[-1] == pytest.approx(2 / 3)


def test_types_can_be_said_by_name_or_operator_and_names_of_ones_own_are_looked_up_in_the_runs(scores):
    named = pd.DataFrame([row("a", "t1", "near", 1), row("a", "t1", "nice form", 0)])
    configs = [
        {"func": "json", "op": "maps.is_near", "value": {}, "name": "near"},
        {"func": "json", "name": "nice form"},
    ]
    runs = pd.DataFrame({"run_id": ["a-t1-0"], "turns": [2], "evaluators": [configs]})
    assert lines(benchmark_table(named, runs=runs), *TYPES)[-1] == ("a", "overall", 0.0, None, 1.0, None)
    assert lines(benchmark_table(named), *TYPES)[-1] == ("a", "overall", None, 0.5, None, None)
    said = benchmark_table(scores, types={"maps.is_near": "format", STATIC: "judge"})
    assert lines(said, *TYPES)[0] == ("a", "maps", 0.875, None, None, 0.25)


def test_the_operator_in_a_rules_name_is_that_of_every_config_of_mcp_universe(conformance):
    files = sorted((conformance / "data" / "mcpuniverse_tasks").rglob("*.json"))
    configs = [config for file in files for config in json.loads(file.read_text("utf-8"))["evaluators"]]
    added = {config["op"] for config in configs if config.get("op")} - set(COMPARISONS)
    for name in added:
        compare_func(name)(lambda a, b: True)
    try:
        assert len(configs) == 769
        for config in configs:
            assert _operator(Rule.from_config(config).name) == (config.get("op") or ""), config
    finally:
        for name in added:
            del COMPARISONS[name]


@pytest.mark.parametrize("op", [name for name, known in COMPARISONS.items() if not isinstance(known, Custom)])
def test_the_operator_is_found_beside_any_chain_and_value(op):
    for chain in ("", "json", 'json -> get("a -> b (c") -> len', "extract_json -> foreach -> get(a b)"):
        assert _operator(f'{chain or "output"} {op} "x -> y = z"') == op


@pytest.mark.parametrize(
    ("change", "more", "said"),
    [
        ({}, {"by": "evaluator"}, "by has 'evaluator', and a run succeeds by all of its evaluators together"),
        ({}, {"by": "agnt"}, "by has 'agnt', which is no column. Did you mean 'agent'?"),
        ({}, {"errors": "failed"}, "errors='failed'. Did you mean 'fail'?"),
        ({}, {"types": {"json": "forms"}}, "types['json']='forms'. Did you mean 'format'?"),
        ({}, {"ci": 95}, "ci=95 should lie between 0 and 1"),
        ({}, {"runs": 3}, "runs is a int; expected a frame, as run() returns it"),
        ({}, {"runs": pd.DataFrame({"run_id": []})}, "runs has no column 'turns'"),
        ({"category": "overall"}, {}, "scores has the category 'overall', which is the table's own"),
        ({"score": 0.5, "passed": None}, {}, "is neither pass nor fail; give its evaluator a threshold"),
    ],
)
def test_what_cannot_be_meant_is_said(scores, change, more, said):
    with pytest.raises(InputError) as caught:
        benchmark_table(scores.assign(**change), **more)
    assert said in str(caught.value)


def test_it_reads_what_run_and_score_give():
    from mcpeval import run, score

    rules = [{"func": "json", "op": ""}, {"func": "json -> get(city)", "op": "=", "value": "Paris"}]
    tasks = [
        {"id": "t1", "question": "Where is it?", "category": "maps", "evaluators": rules},
        {"id": "t2", "question": "Where?", "category": "search", "evaluators": rules},
    ]
    answers = {"t1": '{"city": "Paris"}', "t2": '{"city": "Rome"}'}
    runs = run(tasks, {"a": lambda task, session: answers[task.id]}, cache=False)
    table = benchmark_table(score(runs, cache=False), runs=runs)
    assert lines(table, "success_rate", "evaluator_score", "format", "static", "steps") == [
        ("a", "maps", 1.0, 1.0, 1.0, 1.0, 0.0),
        ("a", "search", 0.0, 0.5, 1.0, 0.0, 0.0),
        ("a", "overall", 0.5, 0.75, 1.0, 0.5, 0.0),
    ]
