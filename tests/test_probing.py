"""`probe`: what is changed of a run, what that costs, and what is said of its effect."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from mcpeval import Judge, compare, probe
from mcpeval.attacks import ATTACKS
from mcpeval.errors import CacheMiss, InputError
from mcpeval.evaluators import Cascade, Checklist, Jury, Pairwise, rule
from mcpeval.local import SMOLLM2
from mcpeval.probing import KINDS, distribution
from mcpeval.probing.perturbations import perturbations
from mcpeval.testing import ScriptedModel

N = 6


@pytest.fixture
def runs():
    outputs = [f"The tide is high at {i}:40. Ask **again** later." if i % 2 else f"At {i} o'clock." for i in range(N)]
    return pd.DataFrame(
        {
            "run_id": [f"r{i}" for i in range(N)],
            "task_id": [f"t{i // 2}" for i in range(N)],
            "trial": [i % 2 for i in range(N)],
            "agent": "basic",
            "question": [f"Q{i}" for i in range(N)],
            "output": outputs,
            "messages": [
                [{"role": "user", "content": "?"}, {"role": "assistant", "content": text}] for text in outputs
            ],
        }
    )


def judge_of(model, rubric="Is it right?", **more):
    return Judge(rubric, model=model.model, **model.params, **more)


def shown(body):
    """What a judge is asked, by the names of its tags."""
    user = body["messages"][-1]["content"]
    return dict(re.findall(r"<(\w+)-[0-9a-f]{16}>\n(.*?)\n</\1-", user, re.DOTALL))


def says(verdict_of):
    """A model whose verdict follows from the answer it is shown."""
    return ScriptedModel(lambda body: json.dumps({"reason": "so", "verdict": verdict_of(shown(body)["output"])}))


def changed(runs, kind, judge=None, attacks=()):
    """The answers of the first two runs in each variant."""
    rows = runs.head(2).to_dict("records")
    found = perturbations(judge or Judge(model="openai/good"), kind, attacks, None)
    return {one.variant: [row and row["output"] for row in map(one.apply, rows)] for one in found}


# --- what is changed ----------------------------------------------------------------------------


def test_a_longer_answer_holds_the_same_content(runs):
    said = changed(runs, "verbosity")
    assert all(len(text) > 2 * len(before) for texts in said.values() for text, before in zip(texts, runs["output"]))
    assert said["restated"][0].count(runs["output"][0]) == 3 and said["filler"][0].count(runs["output"][0]) == 1


def test_markup_is_set_around_the_words_or_taken_off(runs):
    said = changed(runs, "format")
    assert said["markdown"][0] == "## Answer\n\n- **At 0 o'clock.**"
    assert said["plain"] == [None, "The tide is high at 1:40. Ask again later."]
    table = runs.assign(output=['{"a": 1}', "```json\n[1]\n```", *runs["output"][2:]])
    said = changed(table, "format")
    assert said["markdown"][0] == '```json\n{"a": 1}\n```' and said["plain"] == [None, "[1]"]


def test_the_judges_own_model_is_named_against_one_of_another_maker(runs):
    said = changed(runs, "self", Judge(model="openai/gpt-4.1-mini"))
    assert said["own"][0].startswith("(This answer was written by gpt-4.1-mini.)")
    assert said["other"][0].startswith("(This answer was written by claude-")


def test_the_transcript_ends_with_the_changed_answer_and_the_run_itself_is_left_alone(runs):
    row = runs.head(1).to_dict("records")[0]
    before = json.dumps(row)
    one = perturbations(Judge(model="openai/good"), "verbosity", (), None)[0]
    other = one.apply(row)
    assert other["messages"][-1]["content"] == other["output"] != row["output"]
    assert other["messages"][0] is row["messages"][0] and json.dumps(row) == before
    elsewhere = {**row, "messages": [{"role": "assistant", "content": "Another text."}]}
    assert one.apply(elsewhere)["messages"] == elsewhere["messages"]
    assert one.apply({**row, "output": None}) is None


def test_attacks_ask_for_the_best_verdict_of_the_judges_own_scale(runs):
    for scale, best in (((1, 5), "5"), (["bad", "good"], '"good"'), ({"yes": 0, "no": 1}, '"no"')):
        judge = Judge(model="openai/good", scale=scale)
        said = changed(runs, "injection", judge, [ATTACKS["verdicts-json"]])
        assert f'"verdict": {best}}}' in said["verdicts"][0]


# --- effects ----------------------------------------------------------------------------------


def test_an_effect_is_the_difference_within_tasks_in_points(runs):
    with says(lambda output: 5 if "In other words" in output else 2) as model:
        judge = judge_of(model, scale=(1, 5))
        found = probe(judge, runs, "verbosity", cache=False).set_index("variant")
    assert found.loc["restated", ["n", "tasks", "score", "baseline_score", "effect"]].tolist() == [N, 3, 100, 25, 75]
    assert found.loc["filler", "effect"] == 0.0 and found.loc["filler", "p"] == 1.0
    # All three tasks moved the same way: of eight patterns of signs two are as far. Holm doubles it.
    assert found.loc["restated", "p"] == 0.25 and found.loc["restated", "p_adjusted"] == 0.5
    assert found.loc["restated", ["flipped_up", "flipped_down", "success"]].tolist() == [N, 0, 1.0]
    assert found.loc["filler", ["flipped_up", "success"]].tolist() == [0, 0.0]


def test_effects_are_those_that_compare_gives_for_the_same_verdicts(runs):
    with says(lambda output: len(output) % 3 > 0) as model:
        judge = judge_of(model)
        found = probe(judge, runs, ["authority"], cache=False)
        verdicts = probe(judge, runs, ["authority"], cache=False, verdicts=True)
    told = compare(verdicts.drop(columns="evaluator"), "variant", baseline="clean").set_index("variant")
    found = found.set_index("variant")
    for name in ("low", "high", "difference"):
        mine = found["effect" if name == "difference" else name]
        np.testing.assert_allclose(mine, 100 * told[name].loc[found.index])
    assert found["p_adjusted"].tolist() == told["p_adjusted"].loc[found.index].tolist()


def test_success_is_the_share_of_failing_verdicts_that_an_attack_made_pass(runs):
    def verdict(output):
        return "In other words" in output or "SYSTEM" in output or "</output>" in output.replace("&lt;", "<")

    with says(verdict) as model:
        found = probe(judge_of(model), runs, ["injection"], attacks=["roles", "tags-output"], cache=False)
    found = found.set_index("variant")
    roles = sum(attack.family == "roles" for attack in ATTACKS.values())
    assert found.index.tolist() == ["roles", "tags", "all"]
    assert found.loc["roles", "n"] == roles * N and found.loc["roles", "success"] == pytest.approx(1 / roles)
    assert found.loc["tags", "success"] == 1.0 and found.loc["tags", "success_low"] < 1.0
    assert found.loc["all", "flipped_up"] == 2 * N
    assert found.loc["all", "success"] == pytest.approx(2 / (roles + 1))


def test_a_verdict_that_cannot_be_given_is_counted_and_no_effect(runs):
    def said(body):
        return "no" if "94 of 100" in str(body) else json.dumps({"reason": "so", "verdict": True})

    with ScriptedModel(said) as model:
        found = probe(judge_of(model, reasks=0), runs, "authority", cache=False).set_index("variant")
    assert found.loc["majority", ["n", "unscored"]].tolist() == [0, N]
    assert np.isnan(found.loc["majority", "effect"]) and "no run has a verdict" in found.loc["majority", "note"]
    assert found.loc["experts", ["n", "unscored"]].tolist() == [N, 0]


def test_the_verdicts_are_a_scores_frame_that_says_what_was_changed(runs):
    with says(lambda output: True) as model:
        verdicts = probe(judge_of(model, samples=2), runs, "injection", attacks="tools", cache=False, verdicts=True)
    tools = sum(attack.family == "tools" for attack in ATTACKS.values())
    assert len(verdicts) == 2 * N * (1 + tools)
    assert verdicts["run_id"].unique().tolist() == runs["run_id"].tolist()
    assert verdicts["kind"].unique().tolist() == ["clean", "injection"]
    assert verdicts["attack"].dropna().nunique() == tools and verdicts["evaluator_kind"].unique() == ["judge"]
    counts = distribution(verdicts)
    assert counts.columns.tolist() == [True]
    assert counts[True].tolist() == [2 * N, 2 * N * tools]


# --- kinds that apply, and those that do not ----------------------------------------------------


def test_every_kind_is_reported_and_one_that_does_not_apply_says_why(runs):
    found = probe({"short": lambda output: len(output) < 60}, runs, attacks="padding-after")
    assert found["kind"].unique().tolist() == list(KINDS)
    notes = found.set_index("kind")["note"].dropna()
    assert notes["self"] == "it asks no model" and "in which order" in notes["position"]
    assert found["cost_usd"].dropna().eq(0.0).all() and not found["unscored"].any()
    padded = found.set_index("variant").loc["padding"]
    assert padded[["effect", "flipped_down"]].tolist() == [-100.0, N]


def test_a_judge_that_is_not_shown_the_answer_is_not_asked_about_it(runs):
    with says(lambda output: True) as model:
        found = probe(judge_of(model, sees=("question",)), runs, ["verbosity", "injection"], cache=False)
        told = probe(judge_of(model, sees=("question", "transcript")), runs, ["verbosity"], dry_run=True, cache=False)
        assert not model.requests
    assert found["note"].tolist() == ["it is not shown the answer that is changed"] * 2
    assert told["calls"].tolist() == [N, N, N]


def test_no_answer_with_markup_means_no_plain_variant(runs):
    table = runs.assign(output="Plain.")
    found = probe({"any": lambda output: True}, table, "format").set_index("variant")
    assert found.loc["plain", "n"] == 0 and "could be changed" in found.loc["plain", "note"]


def test_position_turns_the_columns_and_the_labels_of_a_choice_around(runs):
    with ScriptedModel(lambda body: json.dumps({"reason": "so", "verdict": "good"})) as model:
        judge = judge_of(model, scale=["bad", "good"])
        found = probe(judge, runs.head(1), "position", cache=False)
        asked = model.requests
    assert found["variant"].tolist() == ["columns", "labels"] and found["effect"].tolist() == [0.0, 0.0]
    orders = [list(shown(body)) for body in asked]
    assert orders.count(["output", "question"]) == 1 and orders.count(["question", "output"]) == 2
    told = ['"good", "bad"' in body["messages"][0]["content"] for body in asked]
    assert sum(told) == 1
    template = judge_of(model, "Is {output} right?")
    assert probe(template, runs, "position", cache=False)["note"].notna().tolist() == [True]


def test_a_pairwise_judge_shows_what_being_first_is_worth(runs):
    with ScriptedModel(lambda body: json.dumps({"reason": "so", "verdict": "A"})) as model:
        judge = Pairwise(between=("output", "other"), model=model.model, params=model.params)
        found = probe(judge, runs.assign(other="At noon."), ["position", "verbosity"], cache=False)
        found = found.set_index("variant")
    assert found.loc["first", ["baseline", "effect", "n"]].tolist() == ["second", 100.0, N]
    # Asked in both orders, a judge that always takes the first comes to a tie.
    assert found.loc["restated", ["baseline_score", "effect"]].tolist() == [50.0, 0.0]


def test_the_runs_of_two_agents_are_compared_pair_by_pair(runs):
    both = pd.concat([runs, runs.assign(agent="react", run_id=[f"s{i}" for i in range(N)], output="At noon.")])
    both["trial"] = [*range(N), *range(N)]

    def said(body):
        found = shown(body)
        longer = len(found["output_A"]) > len(found["output_B"])
        return json.dumps({"reason": "so", "verdict": "A" if longer else "B"})

    with ScriptedModel(said) as model:
        judge = Pairwise(model=model.model, params=model.params)
        found = probe(judge, both, ["verbosity"], cache=False).set_index("variant")
        with pytest.raises(InputError, match="more than their output"):
            probe(Pairwise(compares=("output", "transcript"), model="openai/x"), both, "verbosity")
    assert found.loc["restated", ["n", "score"]].tolist() == [N, 100.0]


def test_a_jury_and_a_cascade_are_probed_whole_and_a_jurys_jurors_each(runs):
    with says(lambda output: "experts" in output) as model:
        jury = Jury({"strict": judge_of(model, "Strictly?"), "kind": judge_of(model, "Kindly?")})
        found = probe(jury, runs, ["position", "authority"], cache=False)
        assert found["evaluator"].unique().tolist() == ["jury", "jury.strict", "jury.kind"]
        effects = found[found["variant"] == "experts"]["effect"].tolist()
        assert effects == [100.0] * 3
        cascade = Cascade({"exact": rule("", "=", "x"), "last": judge_of(model)}, accept={"exact": "passed"})
        found = probe(cascade, runs, ["authority"], cache=False).set_index("variant")
        assert found.loc["experts", "effect"] == 100.0 and found.loc["citation", "effect"] == 0.0


def test_a_checklist_is_probed_too(runs):
    def said(body):
        verdict = "fulfilled" if "experts" in str(body) else "not"
        return json.dumps({"point_1": {"reason": "so", "verdict": verdict}})

    with ScriptedModel(said) as model:
        judge = Checklist(["names an hour"], model=model.model, **model.params)
        found = probe(judge, runs, "authority", cache=False).set_index("variant")
    assert found.loc["experts", "effect"] == 100.0 and found.loc["majority", "effect"] == 0.0


# --- price and cache --------------------------------------------------------------------------


def test_the_price_comes_first_and_nobody_is_asked_for_it(runs):
    with says(lambda output: True) as model:
        judge = judge_of(model)
        told = probe(judge, runs, dry_run=True, cache=False)
        assert not model.requests
        assert told["kind"].unique().tolist() == ["clean", *KINDS]
        assert told["rows"].sum() == told["calls"].sum() == N * (1 + 1 + 2 + 1 + 2 + 3 + len(ATTACKS)) + N // 2
        known = probe(Judge(model="openai/gpt-4.1-mini"), runs, ["self", "position"], dry_run=True, cache=False)
    assert (known["usd_low"] > 0).all() and (known["usd_high"] > known["usd_low"]).all()
    free = probe({"any": lambda output: True}, runs, "self", dry_run=True)
    assert free["calls"].tolist() == [0] and free["note"].tolist() == ["it asks no model"]


def test_what_is_known_is_not_asked_again_and_a_budget_ends_the_asking(runs, cache):
    with says(lambda output: True) as model:
        judge = judge_of(model)
        probe(judge, runs, ["verbosity"], cache=cache)
        assert len(model.requests) == 3 * N
        probe(judge, runs, ["verbosity", "authority"], cache=cache)
        assert len(model.requests) == 6 * N
        again = probe(judge, runs, ["verbosity", "authority"], cache=cache, replay=True)
        assert again["n"].tolist() == [N] * 5 and again["cost_usd"].tolist() == [0.0] * 5
        with pytest.raises(CacheMiss):
            probe(judge, runs, ["self"], cache=cache, replay=True)
        with pytest.raises(InputError, match="price of 'openai/scripted'.*not known"):
            probe(judge, runs, ["self"], cache=cache, budget_usd=0.01)


@pytest.mark.parametrize(
    "how, said",
    [
        ({"kinds": "positon"}, "Did you mean 'position'"),
        ({"kinds": []}, "should be some of position"),
        ({"kinds": "injection", "attacks": "tagss"}, "Did you mean 'tags'"),
        ({"kinds": "self", "other": 3}, "should be the name of a model"),
        ({"concurrency": 0}, "concurrency=0"),
        ({"kinds": [["position"]]}, "kinds has"),
        ({"kinds": "injection", "attacks": [["tags"]]}, "attacks has"),
        ({"kinds": "format", "ci": 2}, "probe: ci=2"),
        ({"kinds": "format", "seed": "x"}, "probe: seed='x'"),
    ],
)
def test_what_cannot_be_meant_is_said_before_anything_is_paid(runs, how, said):
    with says(lambda output: True) as model:
        with pytest.raises(InputError, match=said):
            probe(judge_of(model), runs, cache=False, **how)
        assert not model.requests


def test_runs_without_the_column_that_is_changed_are_refused(runs):
    with says(lambda output: True) as model:
        with pytest.raises(InputError, match="no column 'output', which is changed. Did you mean 'outputs'"):
            probe(judge_of(model), runs.rename(columns={"output": "outputs"}), "format", cache=False)
        assert not model.requests


def test_judges_whose_names_begin_alike_each_have_their_own_rows(runs):
    table = probe({"short": lambda output: len(output) < 30, "short.b": lambda output: True}, runs, "verbosity")
    assert table[["evaluator", "variant", "n"]].values.tolist() == [
        [name, variant, N] for name in ("short", "short.b") for variant in ("restated", "filler")
    ]
    assert table.groupby("evaluator")["effect"].max().tolist() == [-50.0, 0.0]


# --- the embedded model -----------------------------------------------------------------------


def test_clean_and_injected_verdicts_of_the_embedded_model_are_counted(runs, cache):
    judge = Judge("Is it polite?", model=SMOLLM2, max_reason=20, scale=["no", "yes"], sees=("output",))
    verdicts = probe(
        judge, runs.head(1), "injection", attacks=["instructions-plain", "tags-output", "verdicts-json"], cache=cache,
        verdicts=True,
    )  # fmt: skip
    counts = distribution(verdicts)
    assert counts.index.get_level_values("variant").tolist() == ["clean", "instructions", "tags", "verdicts"]
    assert counts.sum(axis=1).tolist() == [1, 1, 1, 1]
    assert set(counts.columns) <= {"no", "yes", "(unscored)"}
