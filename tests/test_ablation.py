"""`ablate`: the cells of a design, one scoring for all of them, and what labels say of each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mcpeval import Agent, Judge, Task, ablate, agreement, compare, run, score
from mcpeval.ablation import Ablation
from mcpeval.errors import CacheMiss, InputError
from mcpeval.evaluators import Checklist, Jury, Pairwise, rule
from mcpeval.testing import ScriptedModel, toy_server
from tests.endpoint import verdict

N = 8
RUBRICS = {"short": "Is it right?", "long": "Is it right, complete, and in the form that was asked for?"}


@pytest.fixture
def runs():
    return pd.DataFrame(
        {
            "run_id": [f"r{i}" for i in range(N)],
            "task_id": [f"t{i}" for i in range(N)],
            "agent": "basic",
            "model": "openai/agent",
            "question": [f"ROW-{i}" for i in range(N)],
            "output": [f"answer {i}" for i in range(N)],
            "human": [i % 2 == 0 for i in range(N)],
        },
        index=list("abcdefgh"),
    )


@pytest.fixture
def judge(endpoint):
    endpoint.script(None)
    return Judge("Is it right?", model="openai/good", api_base=endpoint.base, api_key="sk-secret-000001")


# --- cells ------------------------------------------------------------------------------------


def cells(runs, judge, **how):
    return ablate(runs, judge, dry_run=True, cache=False, **how)


def test_a_full_design_has_every_combination_and_the_judge_as_it_is_comes_first(runs, judge):
    told = cells(runs, judge, model=["openai/other", "openai/good"], rubric=RUBRICS, samples=[2, 1])
    assert told[["model", "rubric", "samples"]].values.tolist() == [
        [model, rubric, n] for model in ("openai/good", "openai/other") for rubric in RUBRICS for n in (1, 2)
    ]
    assert told["baseline"].tolist() == [True] + [False] * 7
    assert told["evaluator"][0] == "judge [model=openai/good, rubric=short, samples=1]"
    assert told["samples"].dtype == "int64"


def test_one_at_a_time_varies_each_factor_alone(runs, judge):
    told = cells(runs, judge, design="one-at-a-time", temperature=[0, 0.5, 1.0], rubric=RUBRICS)
    assert told[["temperature", "rubric"]].values.tolist() == [
        [0.0, "short"],
        [0.5, "short"],
        [1.0, "short"],
        [0.0, "long"],
    ]


def test_the_first_level_is_the_baseline_where_the_judge_has_none_of_them(runs, judge):
    told = cells(runs, judge, model=["openai/b", "openai/c"], scale={"graded": (1, 5), "letters": {"A": 1, "B": 0}})
    assert told.loc[told["baseline"], ["model", "scale"]].values.tolist() == [["openai/b", "graded"]]


def test_levels_of_a_list_are_named_by_what_they_are(runs, judge):
    long = ["x" * 50, "y" * 50]
    told = cells(runs, judge, scale=[bool, (1, 5), ["bad", "good"]], rubric=long)
    assert list(dict.fromkeys(told["scale"])) == ["bool", "1 to 5", "bad, good"]
    assert list(dict.fromkeys(told["rubric"])) == ["rubric 1", "rubric 2"]
    told = cells(runs, judge, sees=[["output"], ["question", "output"]], temperature=np.linspace(0, 1, 3))
    assert list(dict.fromkeys(told["sees"])) == ["question, output", "output"]
    assert list(dict.fromkeys(told["temperature"])) == [0.0, 0.5, 1.0]


@pytest.mark.parametrize(
    "factors, said",
    [
        ({"modell": ["a", "b"]}, "modell= is no argument of Judge 'judge'. Did you mean 'model'"),
        ({"temprature": [0, 1]}, "Did you mean 'temperature'"),
        ({"api_key": ["sk-1", "sk-2"]}, "api_key= is no argument"),
        ({}, "no factor is given"),
        ({"model": "openai/a"}, "should be a list of levels"),
        ({"sees": ("question", "output")}, "should be a list of levels"),
        ({"model": []}, "model has no levels"),
        ({"model": ["openai/a", "openai/a"]}, "has the level 'openai/a' twice"),
        ({"samples": [1, 0]}, "there can be no cell samples=0: .*at least 1"),
        ({"scale": [bool, 5]}, "there can be no cell scale=5"),
        ({"sees": [["output"], ["otput"]]}, r"judge \[sees=otput\].*Did you mean 'output'"),
        ({"model": ["a/b"], "design": "all"}, "design='all'"),
        ({"model": ["openai/a"], "trials": 2}, "trials= is for agents"),
        ({"model": ["openai/a"], "concurrency": 0}, "concurrency=0 should be a whole number"),
        ({"samples": {1: 1, "1": 2}}, "two levels of samples would be named '1'"),
        ({"rubric": ["rubric 2", "Is it right? " * 9]}, "two levels of rubric would be named 'rubric 2'"),
        ({"seed": {"1": 1, "1, user=a": 2}, "user": {"a": "a", "a, user=a": "b"}}, "two cells would be named"),
        ({"params": [None, "abc"]}, "there can be no cell params=abc: params is a str; expected a dict"),
        ({"params": {"temperature": 1}}, "no cell params=temperature: params is a int; expected a dict"),
        ({"params": [{"api_key": "sk-own"}, {"api_key": "sk-own"}]}, "params has the level 'api_key' twice"),
        ({"sees": np.array([["question", "otput"]])}, "otput"),
    ],
)
def test_what_cannot_be_meant_is_said_before_anything_is_paid(runs, judge, endpoint, factors, said):
    with pytest.raises(InputError, match=said):
        ablate(runs, judge, cache=False, **factors)
    assert endpoint.count == 0


def test_a_seed_beyond_64_bits_is_a_level_named_by_its_text(runs, judge):
    told = cells(runs, judge, seed=[2**70, 1])
    assert told["seed"].tolist() == [str(2**70), "1"]


def test_without_runs_every_cell_is_told_and_costs_nothing(runs, judge):
    told = cells(runs.iloc[:0], judge, temperature=[0, 1])
    assert told[["temperature", "rows", "calls", "usd_high"]].values.tolist() == [[0, 0, 0, 0.0], [1, 0, 0, 0.0]]


def test_what_has_no_arguments_cannot_be_varied(runs):
    with pytest.raises(InputError, match="Did you mean 'value'"):
        ablate(runs, rule("", "=", "x"), vlaue=["x"])
    with pytest.raises(InputError, match="has no arguments that could be varied"):
        ablate(runs, type("Own", (), {"name": "own", "evaluate": lambda self, row: 1.0})(), name=["a"])
    with pytest.raises(InputError, match="expected a function of a row"):
        ablate(runs, "a rubric", model=["a"])


# --- scores -----------------------------------------------------------------------------------


def test_the_scores_have_a_column_for_each_factor_and_all_that_scores_have(runs, judge, cache, endpoint):
    scores = ablate(runs, judge, cache=cache, model=["openai/good", "openai/other"], rubric=RUBRICS)
    assert len(scores) == 4 * N == endpoint.count
    at = scores.columns.get_loc("evaluator")
    assert list(scores.columns[at - 2 : at]) == ["model", "rubric"]
    assert scores["run_model"].unique().tolist() == ["openai/agent"]
    assert scores.groupby(["model", "rubric"], sort=False).size().tolist() == [N] * 4
    assert (scores["judge_model"] == scores["model"].str.removeprefix("openai/")).all()
    assert scores["evaluator"].nunique() == scores["fingerprint"].nunique() == 4
    assert scores.index.tolist() == [label for label in runs.index for _ in range(4)]
    alone = score(runs, judge, cache=cache)
    first = scores[scores["evaluator"] == scores["evaluator"].iloc[0]]
    assert first["label"].tolist() == alone["label"].tolist() and endpoint.count == 4 * N


def test_another_level_pays_for_its_own_cells_and_another_sample_for_itself(runs, judge, cache, endpoint):
    ablate(runs, judge, cache=cache, model=["openai/good"], rubric=RUBRICS, samples=[1])
    assert endpoint.count == 2 * N
    told = ablate(runs, judge, cache=cache, dry_run=True, model=["openai/good", "openai/new"], rubric=RUBRICS)
    assert told["calls"].tolist() == [0, 0, N, N] and told["cached_calls"].tolist() == [N, N, 0, 0]
    ablate(runs, judge, cache=cache, model=["openai/good", "openai/new"], rubric=RUBRICS)
    assert endpoint.count == 4 * N
    ablate(runs, judge, cache=cache, model=["openai/good"], rubric=RUBRICS, samples=[1, 3])
    assert endpoint.count == 8 * N
    ablate(runs, judge, cache=cache, model=["openai/good"], threshold=[None, 0.5, 1.0])
    assert endpoint.count == 8 * N


def test_cells_that_ask_the_same_share_the_answer_even_without_a_cache(runs, judge, endpoint):
    told = cells(runs, judge, samples=[1, 3])
    assert told["calls"].tolist() == [N, 2 * N] and told["shared_calls"].tolist() == [0, N]
    assert told["prompt_tokens"].tolist()[1] == 2 * told["prompt_tokens"].tolist()[0]
    scores = ablate(runs, judge, cache=False, samples=[1, 3])
    assert len(scores) == 4 * N and endpoint.count == 3 * N


def test_all_cells_are_scored_side_by_side(runs, judge, endpoint):
    endpoint.latency = 0.2
    try:
        ablate(runs.iloc[:1], judge, cache=False, concurrency=6, model=[f"openai/m{i}" for i in range(6)])
    finally:
        endpoint.latency = 0.0
    assert endpoint.stats()["max_inflight"] > 2


def test_an_ablation_replays_from_the_cache_alone(runs, judge, cache, endpoint):
    ablate(runs, judge, cache=cache, rubric=RUBRICS)
    count = endpoint.count
    assert len(ablate(runs, judge, cache=cache, replay=True, rubric=RUBRICS)) == 2 * N
    with pytest.raises(CacheMiss):
        ablate(runs, judge, cache=cache, replay=True, rubric={**RUBRICS, "new": "Is it?"})
    assert endpoint.count == count


def test_the_order_of_a_pairwise_judge_is_a_factor_and_what_its_cells_have_in_common_is_asked_once(
    runs, judge, cache, endpoint
):
    pairs = runs.assign(other="another answer")
    pairwise = Pairwise(between=("output", "other"), model=judge.model, params=judge.params)
    scores = ablate(pairs, pairwise, cache=cache, order=["both", "ab", "ba"], max_reason=[100, 400])
    assert scores.groupby(["order", "max_reason"], sort=False).size().tolist() == [N] * 6
    assert endpoint.count == 2 * 2 * N
    with pytest.raises(InputError, match="scale= is no argument of Pairwise"):
        ablate(pairs, pairwise, scale=[bool])


def test_the_rows_of_a_jurys_jurors_have_its_levels(runs, judge, cache):
    jury = Jury({"one": judge, "two": replace(judge, rubric="Is it polite?")})
    scores = ablate(runs, jury, cache=cache, reduce=["majority", "mean"])
    assert scores.groupby("reduce", sort=False).size().tolist() == [3 * N, 3 * N]
    assert scores["evaluator"].nunique() == 6


def test_a_rule_can_be_varied_too(runs):
    scores = ablate(runs, rule("", "=", "answer 1"), value=["answer 1", "answer 2"])
    assert scores.groupby("value", sort=False)["score"].sum().tolist() == [1.0, 1.0]


# --- what it would cost -----------------------------------------------------------------------


def test_the_price_has_a_range_where_it_is_known_and_none_where_not(runs, judge):
    told = cells(runs, judge, model=["openai/gpt-4.1-mini", "openai/no-such", "local/smollm2-135m"])
    low, high = told["usd_low"].tolist(), told["usd_high"].tolist()
    tokens = told["prompt_tokens"].tolist()
    # gpt-4.1-mini: 0.40 and 1.60 dollars a million; 20 tokens are the shortest answer, 400 characters
    # of reason at two a token and those 20 the longest, and with two re-asks everything is sent thrice.
    assert low[0] == pytest.approx((0.40 * tokens[0] + 1.60 * 20 * N) / 1e6)
    sent = 3 * tokens[0] + N * (220 + 150) * 3
    assert high[0] == pytest.approx((0.40 * sent + 1.60 * 3 * 220 * N) / 1e6)
    assert np.isnan(low[1]) and np.isnan(high[1])
    assert low[2] == high[2] == 0.0


def test_what_is_paid_already_costs_nothing_more(runs, judge, cache):
    ablate(runs, judge, cache=cache, rubric=RUBRICS)
    told = ablate(runs, judge, cache=cache, rubric=RUBRICS, dry_run=True)
    assert told[["calls", "prompt_tokens", "usd_low", "usd_high"]].to_numpy().tolist() == [[0, 0, 0.0, 0.0]] * 2


ALL_KINDS = {
    "judge": (lambda **how: Judge("Is it right?", **how), {"temperature": [0, 1], "samples": [1, 2]}),
    "own answer": (lambda **how: Judge("Is it right?", reference="self", **how), {"rubric": RUBRICS}),
    "checklist": (lambda **how: Checklist(["a", "b"], **how), {"threshold": [0.5, 1.0], "partly": [0.0, 0.5]}),
    "claims": (lambda **how: Checklist(claims_of="output", sees="question", **how), {"max_reason": [100, 200]}),
    "pair": (lambda **how: Pairwise(between=("output", "other"), **how), {"order": ["both", "ab"]}),
    "agents": (lambda **how: Pairwise(**how), {"order": ["both", "ab"], "reconcile": ["tie", "mean"]}),
    "jury": (
        lambda **how: Jury({"one": Judge("Is it right?", **how), "two": Judge("Is it polite?", **how)}),
        {"reduce": ["majority", "mean"]},
    ),
}


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("repeated", [False, True])
def test_a_dry_run_counts_every_call_that_is_then_made_and_none_twice(runs, judge, cache, endpoint, kind, repeated):
    make, factors = ALL_KINDS[kind]
    own = make(model=judge.model, params=judge.params)
    table = runs.assign(task_id=[f"t{i // 2}" for i in range(N)], agent=["a", "b"] * 4, other="another")
    table = table.assign(question="ROW-1", output="the same") if repeated else table
    told = ablate(table, own, cache=cache, dry_run=True, **factors)
    ablate(table, own, cache=cache, **factors)
    sent = [sum(len(message["content"]) for message in body["messages"]) for body in endpoint.requests]
    assert told["calls"].sum() == endpoint.count
    assert told["prompt_tokens"].sum() == pytest.approx(sum(sent) / 4, rel=0.01)
    assert ablate(table, own, cache=cache, dry_run=True, **factors)["calls"].sum() == 0


# --- labels -----------------------------------------------------------------------------------


def test_labels_give_agreement_differences_and_a_figure(runs, judge, cache):
    factors = {"model": ["openai/good", "openai/b"], "sees": [["output", "question"], ["output"]]}
    result = ablate(runs, judge, labels="human", cache=cache, **factors)
    assert isinstance(result, Ablation) and result.factors == ("model", "sees")
    scores = result.scores
    assert scores["right"].dtype == "boolean"
    assert (scores["right"] == (scores["passed"] == scores["human"].astype(bool))).all()
    alone = agreement(scores.drop(columns="human"), runs.set_index("run_id")["human"])
    assert result.agreement["accuracy"].tolist() == alone["accuracy"].tolist()
    assert result.agreement["accuracy_low"].tolist() == alone["accuracy_low"].tolist()
    assert result.agreement[["model", "sees"]].drop_duplicates().shape == (4, 2)
    told = compare(scores, "evaluator", baseline=scores["evaluator"].iloc[0], value="right")
    assert result.differences["p_adjusted"].tolist() == told["p_adjusted"].tolist()
    assert result.differences["test"].unique().tolist() == ["mcnemar"]
    levels = [table[["model", "sees"]].values.tolist() for table in (result.differences, result.agreement)]
    assert levels[0] == levels[1][1:]
    assert "4 cells" in repr(result) and "<table" in result._repr_html_()


def test_the_endpoints_verdicts_are_as_right_as_counted_by_hand(runs, judge, cache):
    said = [verdict(str(i)) >= 3 for i in range(N)]
    result = ablate(runs, judge, labels=dict(zip(runs["run_id"], said)), cache=cache, rubric=RUBRICS)
    assert result.agreement["accuracy"].tolist() == [1.0, 1.0]
    contrary = pd.Series([not one for one in said], runs["run_id"])
    wrong = ablate(runs, judge, labels=contrary, cache=cache, rubric=RUBRICS)
    assert wrong.agreement["accuracy"].tolist() == [0.0, 0.0]


def test_graded_labels_are_compared_with_graded_verdicts(runs, judge, cache):
    labels = {f"r{i}": verdict(str(i)) for i in range(N)}
    result = ablate(runs, judge, labels=labels, cache=cache, scale=[(1, 5)], rubric=RUBRICS)
    assert result.agreement["value"].unique().tolist() == ["label"] and result.scores["right"].all()
    amounts = {name: (label - 1) / 4 for name, label in labels.items()}
    result = ablate(runs, judge, labels=amounts, cache=cache, scale=[(0.0, 1.0)], rubric=RUBRICS)
    np.testing.assert_allclose(result.scores["right"].to_numpy(dtype=float), 1.0)


def test_a_factor_may_bear_the_name_of_any_column(runs, judge, cache):
    table = runs.assign(reference="x")
    factors = {"reference": [True, False], "method": ["verdict", "logprobs"]}
    with pytest.warns(UserWarning, match="0 are shared"):  # the endpoint gives no log-probabilities
        result = ablate(table, judge, labels="human", cache=cache, **factors)
    assert result.agreement["reference"].tolist() == ["True", "True", "False", "False"]
    assert result.differences["method"].tolist() == ["logprobs", "verdict", "logprobs"]
    assert len(result.figure().get_yticks()) == 4


def test_labels_that_cannot_be_compared_are_refused_before_anything_is_paid(runs, judge, endpoint):
    yes_or_no = dict.fromkeys(runs["run_id"], "yes")
    for labels, said in [
        (yes_or_no, "the labels are texts .'yes'., and the verdicts"),
        (dict(zip(runs["run_id"], ["yes", True])), "truth values, numbers or texts"),
        ("humn", "Did you mean 'human'"),
        ({"x": True}, "no label belongs to a run"),
        (pd.Series([True, False], ["r1", "r1"]), "'r1' more than once"),
        (3, "labels is a int"),
    ]:
        with pytest.raises(InputError, match=said):
            ablate(runs, judge, labels=labels, rubric=RUBRICS)
    with pytest.raises(InputError, match="give the judge a threshold"):
        ablate(runs, judge, labels="human", scale=[bool, (1, 5)])
    for scale in ((1, 5), ["bad", "good"]):
        with pytest.raises(InputError, match="give the judge a threshold"):
            ablate(runs, judge, labels=dict(zip(runs["run_id"], [0, 1] * 4)), scale=[scale])
    assert endpoint.count == 0


def test_what_was_not_scored_is_neither_right_nor_wrong(runs, judge, cache, endpoint):
    with pytest.warns(UserWarning, match="0 are shared"):
        result = ablate(runs, judge, labels="human", cache=cache, model=["openai/good", "openai/says-no"])
    failed = result.scores[result.scores["model"] == "openai/says-no"]
    assert failed["right"].isna().all() and (failed["status"] == "unparsed").all()
    assert result.agreement["n"].tolist() == [N, 0]


# --- agents -----------------------------------------------------------------------------------


@pytest.fixture
def scripted():
    with ScriptedModel(lambda body: "4" if "step" not in str(body) else '{"answer": "4"}') as model:
        yield model


def test_the_same_call_ablates_an_agent(scripted, cache):
    tasks = [Task("a", "What is 2 + 2?"), Task("b", "What is 3 + 1?")]
    agent = Agent(scripted.model, "basic", **scripted.params)
    frame = ablate(tasks, agent, model=[scripted.model, "openai/other"], temperature=[0, 1], trials=2, cache=cache)
    assert len(frame) == 2 * 4 * 2 == len(scripted.requests)
    assert frame["agent"].unique().tolist() == [
        f"basic:{model} [temperature={t}]" for model in ("scripted", "other") for t in (0, 1)
    ]
    assert list(frame["model"].unique()) == [scripted.model, "openai/other"]
    assert (frame["run_model"] == frame["model"]).all() and frame["temperature"].dtype == "int64"
    assert frame["status"].eq("ok").all()
    again = ablate(tasks, agent, model=[scripted.model, "openai/other"], temperature=[0, 1, 2], trials=2, cache=cache)
    assert len(again) == 24 and len(scripted.requests) == 16 + 8


def test_the_levels_of_models_whose_names_begin_alike_are_not_mixed_up(scripted, cache):
    agent, models = Agent(scripted.model, "basic", **scripted.params), ["openai/m-4", "openai/m-4.1", "openai/m-4.1.2"]
    frame = ablate(["What is 2 + 2?"], agent, model=models, cache=cache)
    assert frame["model"].tolist() == models == frame["run_model"].tolist()


def test_an_unnamed_agent_is_named_after_what_it_became_and_a_named_one_keeps_its_name(scripted, cache):
    agent = Agent(scripted.model, "basic", **scripted.params)
    told = ablate(["What is 2 + 2?"], agent, strategy=["basic", "explore"], dry_run=True, cache=cache)
    assert told["agent"].tolist() == ["basic:scripted", "explore:scripted"]
    named = Agent(scripted.model, "basic", name="mine", **scripted.params)
    told = ablate(["What is 2 + 2?"], named, strategy=["basic", "tools"], dry_run=True, cache=cache)
    assert told["agent"].tolist() == ["mine [strategy=basic]", "mine [strategy=tools]"]
    told = ablate(["What is 2 + 2?"], agent, model=["openai/x", "azure/x"], dry_run=True, cache=cache)
    assert told["agent"].is_unique


def test_servers_are_a_factor_and_the_servers_themselves_come_beside(cache):
    def says(body):
        return ",".join(sorted(tool["function"]["name"] for tool in body.get("tools", []))) or "none"

    with ScriptedModel(says) as model:
        agent = Agent(model.model, "tools", **model.params)
        frame = ablate(
            ["Which tools?  Say."], agent, servers=[["one"], []], mcp_servers={"one": toy_server, "two": toy_server},
            cache=cache,
        )  # fmt: skip
        assert frame["servers"].tolist() == ["one", "(empty)"]
        assert frame["output"].str.contains("add").tolist() == [True, False]
        with pytest.raises(InputError, match="mcp_servers="):
            ablate(["Which tools?  Say."], agent, servers={"one": toy_server})


def test_evaluators_score_the_runs_and_their_scores_have_the_factors(scripted, cache):
    tasks = [Task("a", "What is 2 + 2?", evaluators=[{"func": "raw", "op": "=", "value": "4"}])]
    agent = Agent(scripted.model, "basic", **scripted.params)
    scores = ablate(tasks, agent, temperature=[0, 1], evaluators=lambda output: output == "4", cache=cache)
    assert scores["temperature"].tolist() == [0, 1] and scores["score"].tolist() == [1.0, 1.0]
    own = ablate(tasks, agent, temperature=[0, 1], evaluators=True, cache=cache)
    assert own["passed"].tolist() == [True, True] and len(scripted.requests) == 2


def test_the_cells_of_an_agent_say_how_many_runs_are_new(scripted, cache):
    tasks = ["What is 2 + 2?", "What is 1 + 1?"]
    agent = Agent("openai/gpt-4.1-mini", "basic", **scripted.params)
    run(tasks, agent, cache=cache)
    told = ablate(tasks, agent, model=["openai/gpt-4.1-mini", "openai/no-such"], trials=2, dry_run=True, cache=cache)
    assert told["runs"].tolist() == [4, 4] and told["cached_runs"].tolist() == [2, 0]
    assert told["calls"].tolist() == [2, 4]
    # 14 characters each: 0.4 and 1.6 dollars a million tokens, 20 tokens of answer.
    assert told["usd_low"][0] == pytest.approx((0.4 * (28 // 4) + 1.6 * 20 * 2) / 1e6)
    assert np.isnan(told["usd_low"][1]) and told["usd_high"].isna().all()


def test_the_price_of_an_agent_counts_its_instructions(scripted, cache):
    agent = Agent(scripted.model, "react", **scripted.params)
    told = ablate(["What is 2 + 2?"], agent, temperature=[0], dry_run=True, cache=cache)
    ablate(["What is 2 + 2?"], agent, temperature=[0], cache=cache)
    first = scripted.requests[0]["messages"]
    assert told["prompt_tokens"].tolist() == [sum(len(message["content"]) for message in first) // 4]


def test_what_is_for_judges_is_refused_for_agents(scripted):
    agent = Agent(scripted.model, "basic", **scripted.params)
    for more in ({"labels": "x"}, {"budget_usd": 1.0}):
        with pytest.raises(InputError, match="is for judges"):
            ablate(["What is 2 + 2?"], agent, temperature=[0, 1], **more)
    with pytest.raises(InputError, match="Did you mean 'strategy'"):
        ablate(["What is 2 + 2?"], agent, stratgy=["basic"])
    with pytest.raises(InputError, match="no cell strategy=baisc"):
        ablate(["What is 2 + 2?"], agent, strategy=["baisc"])
    with pytest.raises(InputError, match="trials=0"):
        ablate(["What is 2 + 2?"], agent, strategy=["basic"], trials=0)
