"""Juries and cascades: who said what, who decided, and that nothing is guessed or paid for twice."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from mcpeval.errors import CacheMiss, InputError
from mcpeval.evaluators import Cascade, Judge, Jury, Pairwise, evaluator, panel, read_verdict, rule
from mcpeval.exporting import manifest, read_csv, to_csv
from mcpeval.frames import SCORE_COLUMNS, scores_frame
from mcpeval.reports import agreement, audit, compare, jury, stages, summarize
from mcpeval.scoring import score
from mcpeval.stats import krippendorff
from mcpeval.types import Score

PRICED = "openai/gpt-4.1-mini"
PRICE = 100 * 0.4e-6 + 10 * 1.6e-6  # the endpoint's 100 + 10 tokens at OpenAI's published dollars a token


def said(label, status="ok"):
    if status != "ok":
        return Score(None, "it failed", status=status, error="it failed")
    return Score(float(label) if isinstance(label, bool) else label, label=label)


def votes(*labels):
    return {f"j{i}": said(label) if label is not None else said(None, "error") for i, label in enumerate(labels)}


@pytest.fixture
def asked(endpoint):
    """Judges that ask the loopback endpoint: what each says of an output stands in `verdicts`, by its rubric."""
    verdicts = {}

    def answer(body):
        system, user = (message["content"] for message in body["messages"][:2])
        for rubric, verdict in verdicts.items():
            if rubric in system:
                given = verdict(user) if callable(verdict) else verdict
                return (
                    given if isinstance(given, tuple) else json.dumps({"reason": f"so says {rubric}", "verdict": given})
                )
        return None

    def make(name, verdict, model="openai/good", **more):
        verdicts[f"Rubric {name}."] = verdict
        endpoint.script(answer)
        return Judge(
            f"Rubric {name}.", name=name, model=model, api_base=endpoint.base, api_key="sk-test-000001", **more
        )

    yield make
    endpoint.script(None)


def runs(n=3):
    return pd.DataFrame({"question": [f"q{i}" for i in range(n)], "output": [f"answer {i}" for i in range(n)]})


# --- what votes come to ---------------------------------------------------------------------------


def test_more_than_half_make_a_majority():
    found = panel(votes(True, True, False))
    assert (found.score, found.label, found.passed, found.status) == (1.0, True, True, "ok")
    assert found.metadata["counts"] == "2:1" and found.metadata["share"] == pytest.approx(2 / 3)
    assert "False: j2" in found.reason


@pytest.mark.parametrize("labels", [(True, True, False, False), (1.0, 1.0, 0.5, 0.0)])
def test_no_majority_is_unscored_and_not_a_guess(labels):
    found = panel(votes(*labels))
    assert found.status == "skipped" and np.isnan(found.score) and found.label is None and found.passed is None
    assert "no verdict has a majority, 2:" in found.reason


def test_a_unanimous_panel_agrees_throughout():
    assert panel(votes(True, True, True), "unanimous").score == 1.0
    assert "not unanimous, 2:1" in panel(votes(True, True, False), "unanimous").reason
    # Of a panel of which one failed it is not known whether it would have agreed.
    assert panel(votes(True, True, None), "unanimous").status == "error"
    assert panel(votes(True, True, None), "unanimous", quorum=2).score == 1.0


def test_scores_have_a_mean_and_a_median_whatever_their_scales():
    given = votes(0.0, 0.25, 1.0)
    assert panel(given, "mean").score == pytest.approx(1.25 / 3) and panel(given, "median").score == 0.25
    assert panel(given, "median").passed is None and panel(given, "median", threshold=0.25).passed is True
    assert panel(votes(0.0, 1.0), "median").score == 0.5


def test_a_juror_that_failed_is_counted_and_said_and_too_many_leave_no_panel():
    found = panel(votes(True, True, None))
    assert found.score == 1.0 and found.metadata["missing"] == {"j2": "error"} and "j2 (error)" in found.reason
    lost = panel(votes(True, None, None))
    assert lost.status == "error" and "1 of 3 gave a verdict, and 2 are needed" in lost.reason
    assert panel(votes(True, None, None), quorum=1).score == 1.0
    assert panel({"a": said(None, "unparsed"), "b": said(None, "unparsed")}).status == "unparsed"
    assert panel({"a": said(None, "skipped"), "b": said(None, "skipped")}).status == "skipped"


def test_what_passes_may_be_counted_where_scales_differ():
    given = {"a": Score(0.75, label=4, passed=True), "b": Score(0.5, label="fair", passed=False)}
    given["c"] = Score(1.0, label=True)
    assert panel(given, value="passed").label is True and panel(given).status == "skipped"


def test_one_number_is_one_label_and_a_number_is_no_truth_value():
    same = {"a": Score(1.0, label=4), "b": Score(1.0, label=4.0), "c": Score(0.0, label=True)}
    assert panel(same).metadata["counts"] == "2:1"


@pytest.mark.parametrize(
    ("how", "said_"),
    [
        ({"reduce": "most"}, "reduce='most'"),
        ({"quorum": 3}, "quorum=3"),
        ({"quorum": True}, "quorum=True"),
        ({"value": "score"}, "value='score'"),
        ({"threshold": 2}, "threshold=2"),
        ({"reduce": np.array(["mean", "median"])}, "reduce=array"),
        ({"votes": {}}, "votes={}"),
        ({"votes": {"a": 1}}, "should be a dict of scores"),
        ({"votes": None}, "votes=None"),
    ],
)
def test_a_panel_that_cannot_be_meant_is_refused(how, said_):
    with pytest.raises(InputError, match=said_):
        panel(**{"votes": votes(True, False), **how})


# --- a jury ---------------------------------------------------------------------------------------


def test_a_jury_gives_the_panels_row_and_each_jurors(asked, endpoint):
    members = [asked("a", True), asked("b", True), asked("c", False)]
    scores = score(runs(2), Jury(members), cache=False)
    assert scores["evaluator"].tolist() == ["jury", "jury.a", "jury.b", "jury.c"] * 2
    assert scores["kind"].tolist() == ["jury", "judge", "judge", "judge"] * 2
    assert scores["score"].tolist() == [1, 1, 1, 0] * 2 and scores["passed"].tolist() == [True, True, True, False] * 2
    assert scores["reason"][0].tolist() == ["2:1 (True: a, b; False: c)", *(f"so says Rubric {n}." for n in "abc")]
    assert scores["fingerprint"].tolist()[1:4] == [one.fingerprint for one in members]
    assert endpoint.count == 6 and list(scores.columns) == [c for c in SCORE_COLUMNS if c in scores.columns]


def test_a_tie_of_a_jury_is_unscored_and_counted(asked):
    scores = score(
        runs(1), Jury([asked("a", True), asked("b", True), asked("c", False), asked("d", False)]), cache=False
    )
    first = scores.iloc[0]
    assert first["status"] == "skipped" and np.isnan(first["score"]) and "2:2" in first["reason"]
    line = summarize(scores).set_index("evaluator").loc["jury"]
    assert line["n"] == 0 and line["unscored"] == 1


def test_what_a_jury_costs_stands_with_its_jurors(asked, endpoint, cache):
    members = Jury([asked("a", True, model=PRICED), asked("b", False, model=PRICED), rule("raw", "contain", "answer")])
    scores = score(runs(2), members, cache=cache)
    assert scores["cost_usd"].sum() == pytest.approx(4 * PRICE) == manifest(scores)["cost_usd"]
    panel_row = scores.iloc[0]
    assert panel_row["cost_usd"] == 0 and panel_row["metadata"]["cost_usd"] == pytest.approx(2 * PRICE)
    again = score(runs(2), members, cache=cache)
    assert endpoint.count == 4 and again["cost_usd"].sum() == 0
    assert again["cached"].tolist() == [True, True, True, False] * 2  # the rule has no cache
    assert sum(cell.get("saved_usd", 0) for cell in again["metadata"]) == pytest.approx(4 * PRICE)
    told = manifest(scores)["judges"]
    assert told[members.fingerprint]["reduce"] == "majority" and len(told) == 4


def test_judges_that_differ_in_their_model_alone_are_called_by_it(endpoint):
    how = {"api_base": endpoint.base, "api_key": "sk-test-000001"}
    one = Jury([Judge(model="openai/good", **how), Judge(model="openai/other", **how)])
    assert list(one.parts) == ["openai/good", "openai/other"]
    scores = score([{"question": "q", "output": "4"}], one, cache=False)
    assert scores["evaluator"].tolist() == ["jury", "jury.openai/good", "jury.openai/other"]
    assert set(Jury({"x": one.parts["openai/good"], "y": one.parts["openai/other"]}).parts) == {"x", "y"}


def test_a_juror_that_fails_is_a_row_of_its_own_and_not_a_vote(asked):
    down = asked("c", (500, {}, {"error": {"message": "down"}}), retries=0)
    scores = score(runs(1), Jury([asked("a", True), asked("b", True), down]), cache=False)
    assert scores["status"].tolist() == ["ok", "ok", "ok", "error"] and "c (error)" in scores["reason"].iloc[0]
    assert scores["metadata"].iloc[0]["missing"] == {"c": "error"}


def test_a_jury_from_the_cache_asks_nobody_imports_no_client_and_replays(asked, endpoint, cache):
    members = [asked("a", True), asked("b", False), asked("c", True)]
    score(runs(2), Jury(members), cache=cache)
    assert score(runs(2), Jury(members, "mean"), cache=cache)["cached"].all() and endpoint.count == 6
    assert score(runs(2), Jury(members), cache=cache, replay=False)["score"].tolist() == [1, 1, 0, 1] * 2
    with pytest.raises(CacheMiss):
        score(runs(3), Jury(members), cache=cache.path, replay=True)


def test_a_jury_samples_as_a_whole(asked, endpoint, cache):
    scores = score(runs(1), Jury([asked("a", True), asked("b", True)], samples=2), cache=cache)
    assert scores["sample"].tolist() == [0, 0, 0, 1, 1, 1] and endpoint.count == 4
    with pytest.raises(InputError, match="samples=3; give samples= to the Jury"):
        Jury([asked("a", True, samples=3), asked("b", True)])


def test_a_dry_run_and_a_budget_count_every_juror(asked, endpoint, cache):
    members = Jury([asked("a", True, model=PRICED), asked("b", True, model=PRICED)])
    score(runs(1), members, cache=cache)
    [line] = score(runs(3), members, cache=cache, dry_run=True).to_dict("records")
    assert (line["kind"], line["rows"], line["calls"], line["cached_calls"]) == ("jury", 3, 4, 2)
    scores = score(runs(9), members, cache=cache, budget_usd=3 * PRICE, concurrency=4)
    assert endpoint.count == 6 and (scores["status"] == "budget").sum() == 6


def test_a_jury_of_a_jury_keeps_every_row(asked):
    inner = Jury([asked("a", True), asked("b", True)], name="small")
    scores = score(runs(1), Jury([inner, rule("raw", "=", "x", name="exact"), asked("c", True)]), cache=False)
    assert scores["evaluator"].tolist() == [
        "jury",
        "jury.small",
        "jury.small.a",
        "jury.small.b",
        "jury.exact",
        "jury.c",
    ]
    assert scores["kind"].tolist() == ["jury", "jury", "judge", "judge", "rule", "judge"]
    assert scores["score"].tolist() == [1, 1, 1, 1, 0, 1]


def test_labels_of_different_scales_are_not_counted_together(asked):
    whole, graded = asked("a", True), asked("b", 4, scale=(1, 5), threshold=0.75)
    for reduce in ("majority", "unanimous"):
        with pytest.raises(InputError, match="'a' and 'b' have different scales"):
            Jury([whole, graded], reduce)
    assert score(runs(1), Jury([whole, graded], "mean"), cache=False)["score"][0].tolist() == [0.875, 1.0, 0.75]
    found = score(runs(1), Jury([whole, graded], value="passed"), cache=False)
    assert found["label"][0].tolist() == [True, True, 4]
    with pytest.raises(InputError, match="different scales"):
        Jury([rule("raw", "=", "x"), graded])


def two_pairwise(**how):
    return [Pairwise(name=name, model="openai/x", **how) for name in ("a", "b")]


def test_a_name_that_a_jurors_row_has_is_taken(asked, endpoint):
    inner = Jury([rule("raw", "=", "1", name="x"), rule("raw", "=", "2", name="y")], name="inner")
    outer = Jury({"first": inner, "second": rule("raw", "=", "3")}, name="jury")
    for taken in ("jury.second", "jury.first", "jury.first.y"):
        with pytest.raises(InputError, match=f"evaluators has the name '{taken}' 2 times"):
            score(runs(1), [outer, rule("raw", "=", "4", name=taken)], cache=False)
    names = score(runs(1), [outer, rule("raw", "=", "4", name="jury.x")], cache=False)["evaluator"].tolist()
    assert names == ["jury", "jury.first", "jury.first.x", "jury.first.y", "jury.second", "jury.x"]


@pytest.mark.parametrize(
    ("made", "said_"),
    [
        (lambda: Jury([rule("raw", "=", "x")]), "1 evaluators"),
        (lambda: Jury([rule("raw", "=", "x"), rule("raw", "=", "x")]), "two of its evaluators are named"),
        (lambda: Jury("judge"), "a list of evaluators"),
        (lambda: Jury([len, len]), "evaluator 'len'"),
        (lambda: Jury([Judge(name="a", model="openai/x"), Judge(name="b", model="openai/x")], samples=0), "samples=0"),
        (lambda: Jury([Judge(name="a", model="openai/x"), Judge(name="b", model="openai/x")], quorum=3), "quorum=3"),
        (lambda: Jury([Judge(name="a", model="openai/x"), Judge(name="b", model="openai/x")], name=3), "name=3"),
        (lambda: Jury(two_pairwise(), threshold=0.6), "threshold=0.6 has no meaning"),
        (lambda: Jury(two_pairwise(), value="passed"), "value='passed' has no meaning"),
        (lambda: Jury(two_pairwise(between=("a", "b")), threshold=0.6), "threshold=0.6 has no meaning"),
    ],
)
def test_a_jury_that_cannot_be_meant_is_refused_when_it_is_written(made, said_):
    with pytest.raises(InputError, match=said_):
        made()


def test_a_column_that_a_juror_needs_is_named_before_anybody_is_asked(asked, endpoint):
    with pytest.raises(InputError, match="'transcripts'|'messages'|'transcript'"):
        score(runs(1), Jury([asked("a", True), asked("b", True, sees=("question", "transcript"))]), cache=False)
    assert endpoint.count == 0


def test_a_function_with_several_scores_is_no_vote():
    two = evaluator(lambda output: {"long": True, "short": False}, name="two")
    scores = score(
        [{"output": "x"}], Jury([two, rule("raw", "=", "x", name="r1"), rule("raw", "contain", "x", name="r2")])
    )
    assert scores["evaluator"].tolist() == ["jury", "jury.two.long", "jury.two.short", "jury.r1", "jury.r2"]
    assert scores["score"].tolist()[0] == 1.0 and scores["metadata"].iloc[0]["missing"] == {"two": "error"}


# --- a jury of what is recorded -------------------------------------------------------------------


def test_recorded_verdicts_make_the_jury_that_would_have_been_asked(asked, tmp_path):
    members = [asked("a", lambda user: "answer 1" in user), asked("b", True), asked("c", False)]
    asked_now = score(runs(3), Jury(members), cache=False)
    recorded = asked_now[asked_now["evaluator"] != "jury"]
    found = jury(recorded)
    same = ["score", "passed", "label", "status"]
    expected = asked_now[asked_now["evaluator"] == "jury"].reset_index(drop=True)
    pd.testing.assert_frame_equal(found[same], expected[same])
    assert found["run_id"].tolist() == ["0", "1", "2"] and found["kind"].tolist() == ["jury"] * 3
    assert found["cost_usd"].sum() == 0 and found["fingerprint"].nunique() == 1
    to_csv(recorded, tmp_path / "scores.csv")
    pd.testing.assert_frame_equal(jury(read_csv(tmp_path / "scores.csv")), found)
    both = pd.concat([recorded, found])
    assert summarize(both).set_index("evaluator")["n"].to_dict() == {"jury.a": 3, "jury.b": 3, "jury.c": 3, "jury": 3}


def test_some_of_the_recorded_judges_or_one_judges_samples_may_make_the_jury(asked):
    scores = score(runs(2), [asked("a", True, samples=3), asked("b", False), asked("c", True)], cache=False)
    single = scores[scores["sample"] == 0]
    assert jury(single, "unanimous", jurors=["a", "c"])["score"].tolist() == [1.0, 1.0]
    assert jury(scores[scores["evaluator"] == "a"], by="sample", name="a of 3")["evaluator"].tolist() == ["a of 3"] * 2
    with pytest.raises(InputError, match="'a' speaks of run_id='0' more than once"):
        jury(scores)
    with pytest.raises(InputError, match="Did you mean 'a'|Known"):
        jury(single, jurors=["aa", "b"])
    with pytest.raises(InputError, match="at least two"):
        jury(single, jurors=["a"])


def test_a_juror_without_a_row_is_missing_and_not_forgotten():
    rows = [{"run_id": r, "evaluator": e, "passed": True, "label": True, "score": 1.0, "status": "ok"}
            for r, e in (("r1", "a"), ("r1", "b"), ("r2", "a"))]  # fmt: skip
    found = jury(scores_frame(rows, keys=["run_id"]))
    assert found["status"].tolist() == ["ok", "skipped"] and "1 of 2 gave a verdict" in found["reason"][1]


# --- a cascade ------------------------------------------------------------------------------------


def test_a_cascade_asks_the_dear_one_only_where_the_cheap_one_is_not_sure(asked, endpoint):
    exact = rule("raw", "=", "answer 1", name="exact")
    made = Cascade([exact, asked("dear", False)], accept={"exact": "passed"})
    scores = score(runs(3), made, cache=False)
    assert endpoint.count == 2 and len(scores) == 3
    assert [cell["decided_by"] for cell in scores["metadata"]] == ["dear", "exact", "dear"]
    assert scores["score"].tolist() == [0, 1, 0] and scores["label"].tolist() == [False, True, False]
    assert scores["reason"].tolist()[0] == "dear: so says Rubric dear." and scores["reason"][1].startswith("exact: ")
    assert scores["kind"].tolist() == ["cascade"] * 3
    asked_of = [[stage["stage"] for stage in cell["stages"]] for cell in scores["metadata"]]
    assert asked_of == [["exact", "dear"], ["exact"], ["exact", "dear"]]
    assert scores["judge_model"].tolist()[0] == "good" and pd.isna(scores["judge_model"].tolist()[1])


def test_a_rule_that_gives_a_verdict_decides_where_nothing_else_is_said(asked, endpoint):
    exact = rule("json -> get(n)", "=", "1", name="exact")
    frame = pd.DataFrame({"question": "q", "output": ['{"n": "1"}', '{"n": "2"}']})
    assert score(frame, Cascade([exact, asked("dear", True)]), cache=False)["score"].tolist() == [1, 0]
    assert endpoint.count == 0


@pytest.mark.parametrize(
    ("accept", "calls"),
    [("ok", 0), ("passed", 2), ("failed", 1), ((0.1, 0.9), 1), (lambda found: found.label == 5, 2)],
)
def test_a_stage_is_sure_as_it_is_said(asked, endpoint, accept, calls):
    grades = iter([1, 3, 5])
    cheap = asked("cheap", lambda user: next(grades), scale=(1, 5), threshold=1.0)
    cascade = Cascade([cheap, asked("dear", True)], accept={"cheap": accept})
    scores = score(runs(3), cascade, cache=False, concurrency=1)
    assert endpoint.count == 3 + calls
    assert sum(cell["decided_by"] == "dear" for cell in scores["metadata"]) == calls


def test_a_judge_with_samples_is_sure_where_all_are_the_same_and_stops_where_two_differ(asked, endpoint):
    turns = iter([True, True, True, True, False])
    cheap = asked("cheap", lambda user: next(turns), samples=3, temperature=1)
    scores = score(runs(2), Cascade([cheap, asked("dear", False)]), cache=False, concurrency=1)
    assert [cell["decided_by"] for cell in scores["metadata"]] == ["cheap", "dear"]
    assert endpoint.count == 3 + 2 + 1 and scores["score"].tolist() == [1, 0]


def test_the_last_stage_with_samples_gives_the_majority_and_no_tie_is_guessed(asked):
    turns = iter([True, False, True, True, False])
    exact = rule("raw", "=", "x", name="exact")
    made = Cascade([exact, asked("dear", lambda user: next(turns), samples=3)], accept={"exact": "passed"})
    assert score(runs(1), made, cache=False)["score"].tolist() == [1.0]
    made = Cascade([exact, asked("dear", lambda user: next(turns), samples=2)], accept={"exact": "passed"})
    [row] = score(runs(1), made, cache=False).to_dict("records")
    assert row["status"] == "skipped" and "no stage decided" in row["reason"] and "1:1" in row["reason"]


def test_a_stage_without_a_score_falls_through_and_the_last_ones_failure_is_the_cascades(asked):
    down = (500, {}, {"error": {"message": "down"}})
    cheap = asked("cheap", down, retries=0)
    scores = score(runs(1), Cascade([cheap, asked("dear", True)], accept={"cheap": "ok"}), cache=False)
    assert scores["score"].tolist() == [1.0] and scores["metadata"][0]["stages"][0]["status"] == "error"
    lost = Cascade([asked("fine", True), asked("dear", down, retries=0)], accept={"fine": "failed"})
    [row] = score(runs(1), lost, cache=False).to_dict("records")
    assert row["status"] == "error" and np.isnan(row["score"]) and row["metadata"]["decided_by"] is None
    assert "fine (not sure); dear (error)" in row["reason"]


def test_a_share_of_the_rows_goes_all_the_way_and_the_verdict_is_the_same(asked, endpoint):
    def cascade(**how):
        # Of the outputs that the rule decides, the dear judge says otherwise in those that end in 0.
        dear = asked("dear", lambda user: "0\n</output-" not in user)
        return Cascade([rule("raw", "contain", "answer", name="cheap"), dear], **how)

    frame = runs(200).assign(task_id=[f"t{i}" for i in range(200)])
    plain = score(frame, cascade(), cache=False)
    assert endpoint.count == 0
    scores = score(frame, cascade(audit=0.25), cache=False)
    audited = [cell["audited"] for cell in scores["metadata"]]
    assert endpoint.count == sum(audited) and 30 < sum(audited) < 70  # 50 are expected
    assert scores["score"].tolist() == plain["score"].tolist()
    shuffled = score(frame.sample(frac=1, random_state=1).assign(run_id=range(200)), cascade(audit=0.25), cache=False)
    assert {row.task_id: row.metadata["audited"] for row in shuffled.itertuples()} == dict(
        zip(frame["task_id"], audited)
    )
    assert [c["audited"] for c in score(frame, cascade(audit=0.25, seed=1), cache=False)["metadata"]] != audited
    cheap, dear = audit(scores).to_dict("records")
    differ = sum(own and i % 10 == 0 for i, own in enumerate(audited))
    assert (cheap["asked"], cheap["decided"], cheap["share"], cheap["audited"]) == (200, 200, 1.0, sum(audited))
    assert cheap["agreement"] == pytest.approx(1 - differ / sum(audited)) and cheap["low"] < cheap["agreement"]
    assert (dear["asked"], dear["decided"]) == (sum(audited), 0) and np.isnan(dear["agreement"])
    told = stages(scores)
    found = agreement(told[told["audited"]], {str(i): i % 10 != 0 for i in range(200)})
    assert found.set_index("evaluator")["accuracy"]["cascade.dear"] == 1.0
    assert found.set_index("evaluator")["accuracy"]["cascade.cheap"] == pytest.approx(cheap["agreement"])


def test_what_a_cascade_costs_is_the_sum_of_all_that_were_asked(asked, endpoint, cache):
    made = Cascade(
        [asked("cheap", True, model=PRICED), asked("dear", False, model=PRICED)], accept={"cheap": "failed"}, audit=0
    )
    scores = score(runs(2), made, cache=cache)
    assert scores["cost_usd"].tolist() == pytest.approx([2 * PRICE] * 2) and scores["tokens_in"].tolist() == [200] * 2
    assert audit(scores)["cost_usd"].tolist() == pytest.approx([2 * PRICE] * 2)
    again = score(runs(2), made, cache=cache)
    assert endpoint.count == 4 and again["cached"].all() and again["cost_usd"].sum() == 0
    assert again["metadata"][0]["saved_usd"] == pytest.approx(2 * PRICE)
    assert set(manifest(scores)["judges"]) >= {made.fingerprint}


def test_a_dry_run_of_a_cascade_is_the_most_that_it_may_take(asked, cache, endpoint):
    exact = rule("raw", "=", "answer 1", name="exact")
    made = Cascade(
        [exact, asked("cheap", True, samples=2, temperature=1), asked("dear", False)],
        accept={"exact": "passed"},
        name="three",
    )
    [line] = score(runs(3), made, cache=cache, dry_run=True).to_dict("records")
    assert (line["evaluator"], line["rows"], line["calls"], line["cached_calls"]) == ("three", 3, 6, 0)
    score(runs(3), made, cache=cache)
    assert endpoint.count == 4  # the two samples agree, so that the dear one is not asked
    [line] = score(runs(3), made, cache=cache, dry_run=True).to_dict("records")
    assert (line["calls"], line["cached_calls"]) == (0, 4)


def test_a_jury_may_be_the_last_stage(asked):
    exact = rule("raw", "=", "answer 1", name="exact")
    last = Jury([asked("a", True), asked("b", True), asked("c", False)])
    scores = score(runs(2), Cascade([exact, last], accept={"exact": "passed"}), cache=False)
    assert scores["score"].tolist() == [1.0, 1.0] and scores["tokens_in"].tolist() == [300, 0]


@pytest.mark.parametrize(
    ("how", "said_"),
    [
        ({}, "nothing says when the judge 'cheap' is sure"),
        ({"accept": {"chap": "ok"}}, "Did you mean 'cheap'"),
        ({"accept": {"dear": "ok"}}, "it is the last"),
        ({"accept": {"cheap": "pass"}}, "Did you mean 'passed'"),
        ({"accept": {"cheap": (0.8, 0.2)}}, "should be 'ok'"),
        ({"accept": {"cheap": 3}}, "should be 'ok'"),
        ({"accept": "ok"}, "a dict"),
        ({"accept": {"cheap": "ok"}, "audit": 2}, "audit=2"),
        ({"accept": {"cheap": "ok"}, "seed": "x"}, "seed='x'"),
        ({"accept": {"cheap": "ok"}, "name": ""}, "name=''"),
    ],
)
def test_a_cascade_that_cannot_be_meant_is_refused_when_it_is_written(how, said_):
    with pytest.raises(InputError, match=said_):
        Cascade([Judge(name="cheap", model="openai/x"), Judge(name="dear", model="openai/y")], **how)


@pytest.mark.parametrize(
    ("cheap", "last", "said_"),
    [
        (Judge(name="cheap", model="openai/x", samples=3), Judge(model="openai/y"), "at temperature=0"),
        (Pairwise(name="cheap", model="openai/x", order="ab"), Pairwise(model="openai/y"), "order='both'"),
        (Pairwise(name="cheap", model="openai/x", order="random"), Pairwise(model="openai/y"), "order='both'"),
    ],
)
def test_a_stage_that_could_only_be_sure_has_to_be_said_to_be(cheap, last, said_):
    with pytest.raises(InputError, match=said_):
        Cascade({"cheap": cheap, "last": last})
    assert Cascade({"cheap": cheap, "last": last}, accept={"cheap": "ok"}).accept == {"cheap": "ok"}


def test_the_fingerprints_of_panels_are_of_what_shapes_their_verdicts():
    a, b = Judge(name="a", model="openai/x"), Judge(name="b", model="openai/y")
    assert Jury([a, b]).fingerprint == Jury([a, b], name="other").fingerprint
    assert len({Jury([a, b]).fingerprint, Jury([a, b], "mean").fingerprint, Jury([b, a, a.__class__(name="c", model="z")]).fingerprint}) == 3  # fmt: skip  # noqa: E501
    one = Cascade([a, b], accept={"a": "ok"})
    assert one.fingerprint != Cascade([b, a], accept={"b": "ok"}).fingerprint
    assert one.fingerprint != Cascade([a, b], accept={"a": (0.2, 0.8)}).fingerprint
    assert {one, Cascade([a, b], accept={"a": "ok"})} == {one}


def test_a_frame_without_a_cascade_is_refused():
    scores = score([{"output": "4"}], rule("raw", "=", "4"))
    for report in (audit, stages):
        with pytest.raises(InputError, match="no row of a cascade"):
            report(scores)


FRESH = """
import sys
import pandas as pd
from mcpeval import Cascade, Judge, Jury, Pairwise, score
how = {"api_base": sys.argv[1], "api_key": "sk-test-000001", "model": "openai/good"}
frame = pd.DataFrame({"output": ["x", "y"], "other": ["y", "z"], "question": "q"})
a, b = Judge("First?", name="a", **how), Judge("Second?", name="b", **how)
kinds = [Jury([a, b]), Cascade([a, b], accept={"a": (0.2, 0.8)}), Pairwise(between=("output", "other"), **how)]
scores = score(frame, kinds, cache=sys.argv[2])
print(*scores["cached"], *[name for name in ("litellm", "instructor", "mcp") if name in sys.modules])
"""


def test_a_second_score_in_a_fresh_process_imports_no_client_at_all(endpoint, tmp_path):
    command = [sys.executable, "-c", FRESH, endpoint.base, str(tmp_path / "cache")]
    first, again = (subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2))
    assert "litellm" in first and set(again.split()) == {"True"}


# --- published ------------------------------------------------------------------------------------


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def livemcpbench(conformance):
    """The ten judges' verdicts as scores, and the people's labels by run."""
    folder = conformance / "data" / "livemcpbench"
    people = json.loads((folder / "trajectories_with_human_label.json").read_text(encoding="utf-8"))
    rows = []
    for row in read_lines(folder / "judge_texts_10x95.jsonl"):
        verdict = read_verdict(row["judge"], "Status", ("success", "failure"))
        rows.append({"run_id": row["task_id"], "task_id": row["task_id"], "evaluator": row["judge_model"],
                     "label": verdict, "passed": verdict == "success", "score": float(verdict == "success"),
                     "status": "ok"})  # fmt: skip
    human = {row["task_id"]: row["task_success"] == "success" for row in people}
    return scores_frame(rows, keys=["run_id", "task_id"]), human


def test_ten_judges_of_livemcpbench_are_a_jury_as_told_of_them(livemcpbench):
    scores, human = livemcpbench
    majority = jury(scores)
    assert len(majority) == 95 and (majority["status"] == "skipped").sum() == 8  # 5:5
    as_failures = majority.assign(passed=majority["passed"].fillna(False), status="ok")
    [found] = agreement(as_failures, human).to_dict("records")
    assert (round(100 * found["accuracy"], 1), round(found["kappa"], 3)) == (72.6, 0.445)
    unanimous = jury(scores, "unanimous")
    decided = unanimous[unanimous["status"] == "ok"]
    right = [human[run] == passed for run, passed in zip(decided["run_id"], decided["passed"])]
    assert (len(decided), sum(right)) == (44, 42)


def test_of_45_pairs_of_judges_17_differ_and_4_after_the_correction(livemcpbench):
    scores, human = livemcpbench
    right = [float(human[run] == passed) for run, passed in zip(scores["run_id"], scores["passed"])]
    found = compare(scores.assign(score=right), by="evaluator")
    assert len(found) == 45 and found["test"].unique().tolist() == ["mcnemar"]
    assert ((found["p"] < 0.05).sum(), (found["p_adjusted"] < 0.05).sum()) == (17, 4)


def test_three_samples_of_prometheus_are_unanimous_as_told_of_them(conformance):
    rows = read_lines(conformance / "data" / "prometheus_k3" / "vicuna_eval_gpt4_k3.jsonl")
    samples = [
        {"run_id": str(number), "sample": k, "evaluator": "gpt-4", "label": given, "score": (given - 1) / 4,
         "status": "ok"}
        for number, row in enumerate(rows)
        for k, given in enumerate(row["gpt4_score"])
    ]  # fmt: skip
    found = jury(scores_frame(samples, keys=["run_id"]), "unanimous", by="sample")
    assert round((found["status"] == "ok").mean(), 3) == 0.622
    assert round(krippendorff([row["gpt4_score"] for row in rows], level="ordinal"), 3) == 0.723


def test_a_panel_can_be_asked_by_hand(asked):
    members = Jury([asked("a", True), asked("b", True)])
    found = asyncio.run(members.evaluate({"question": "q", "output": "4"}))
    assert set(found) == {"", "a", "b"} and found[""].score == 1.0
