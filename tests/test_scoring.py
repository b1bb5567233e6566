"""`score`: the caller's rows in the caller's order, every failure its own status, nothing paid twice."""

from __future__ import annotations

import gc
import json
import math
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest

from mcpeval import llm
from mcpeval.errors import CacheMiss, InputError, McpevalError
from mcpeval.evaluators import rule, tool_calls
from mcpeval.evaluators.judges import Judge
from mcpeval.exporting import manifest, read_csv, read_parquet, to_csv, to_parquet
from mcpeval.frames import SCORE_COLUMNS
from mcpeval.scoring import score
from mcpeval.types import Run, Score, Usage

PRICED = "openai/gpt-4.1-mini"
PRICE = 100 * 0.4e-6 + 10 * 1.6e-6  # the endpoint's 100 + 10 tokens at OpenAI's published dollars a token


@pytest.fixture
def asked(endpoint):
    """A judge that asks the loopback endpoint."""
    endpoint.script(None)
    yield lambda rubric="Is it right?", model="openai/good", **more: Judge(
        rubric, model=model, api_base=endpoint.base, api_key="sk-test-000001", **more
    )
    endpoint.script(None)


def runs(n=3, **columns):
    rows = {"question": [f"Question ROW-{i}" for i in range(n)], "output": [f'{{"n": {i}}}' for i in range(n)]}
    return pd.DataFrame({**rows, **columns})


# --- the frame --------------------------------------------------------------------------------


def test_ten_thousand_rows_and_three_rules_are_thirty_thousand_rows_in_the_callers_order():
    order = np.random.default_rng(7).permutation(10_000)
    frame = pd.DataFrame({"run_id": [f"r{i}" for i in order], "output": [f'{{"n": {i}}}' for i in order]}, index=order)
    rules = [
        rule("json -> get(n)", "<", 5000, name="low"),
        rule("json -> get(n)", ">=", 0, name="all"),
        rule("raw", "=", "", name="none"),
    ]
    scores = score(frame, rules, cache=False)
    assert len(scores) == 30_000
    assert scores["run_id"].tolist() == np.repeat(frame["run_id"], 3).tolist()
    assert scores.index.tolist() == np.repeat(order, 3).tolist()
    assert scores["evaluator"].tolist() == ["low", "all", "none"] * 10_000
    assert scores.loc[scores["evaluator"] == "low", "score"].tolist() == [float(i < 5000) for i in order]
    assert scores.groupby("evaluator")["score"].sum().to_dict() == {"low": 5000, "all": 10_000, "none": 0}


def test_the_columns_are_those_of_a_scores_frame_and_the_runs_own_keys():
    scores = score(runs(task_id=["a", "b", "c"], trial=[0, 1, 2], extra=1), rule("json -> get(n)", "=", 1), cache=False)
    absent = {"category", "agent", "model"}
    assert list(scores.columns) == [name for name in SCORE_COLUMNS if name not in absent]
    assert scores["task_id"].tolist() == ["a", "b", "c"] and scores["trial"].tolist() == [0, 1, 2]
    assert {name: str(dtype) for name, dtype in scores.dtypes.items()} == {n: SCORE_COLUMNS[n] for n in scores.columns}
    assert scores["passed"].tolist() == [False, True, False] and scores["fingerprint"].notna().all()


def test_run_ids_are_the_frames_else_its_index_labels():
    assert score(runs(run_id=["x", "y", "z"]), len_of, cache=False)["run_id"].tolist() == ["x", "y", "z"]
    assert score(runs(run_id=["x", None, "z"]), len_of, cache=False)["run_id"].tolist() == ["x", "1", "z"]
    named = runs().set_axis(["p", "q", "r"])
    assert score(named, len_of, cache=False)["run_id"].tolist() == ["p", "q", "r"]
    assert score(named, len_of, cache=False).index.tolist() == ["p", "q", "r"]


def len_of(output):
    return len(output) > 0


def test_runs_and_dicts_are_scored_like_a_frame():
    given = [Run(output="yes"), {"output": "no", "task_id": "t"}, {"output": np.float64("nan")}]
    scores = score(given, {"yes": lambda output: output == "yes"}, cache=False)
    assert scores["score"].tolist() == [1, 0, 0] and scores["run_id"].tolist() == ["0", "1", "2"]
    assert score(Run(output="yes"), {"yes": lambda output: output == "yes"}, cache=False)["score"].tolist() == [1]


def test_a_frame_without_rows_gives_a_frame_without_rows():
    assert len(score(runs(0), len_of, cache=False)) == 0 == len(score([], len_of, cache=False))
    assert "score" in score(runs(0), cache=False).columns


def test_every_loose_answer_is_a_row():
    def several(row):
        return {"short": len(row["output"]) < 5, "share": (0.25, "a quarter"), "nothing": None}

    async def later(output):
        return Score(1.0, "later", label=np.int64(3), metadata={"n": np.float32(0.5), "a": np.arange(2), "s": {1}})

    scores = score(runs(1), [several, later, lambda output: np.True_], cache=False)
    assert scores["evaluator"].tolist() == ["several.short", "several.share", "several.nothing", "later", "lambda"]
    assert scores["score"].fillna(-1).tolist() == [0, 0.25, -1, 1, 1] and scores["status"].tolist()[2] == "skipped"
    assert scores["reason"].tolist()[1] == "a quarter" and type(scores["label"].iloc[3]) is int
    assert json.loads(json.dumps(scores["metadata"].iloc[3])) == {"n": 0.5, "a": [0, 1], "s": "{1}"}


def test_missing_texts_reach_evaluators_as_none_and_prompts_as_none():
    frame = pd.DataFrame({"output": ["a", None], "question": [None, "q"]})
    assert score(frame, {"none": lambda output: output is None}, cache=False)["score"].tolist() == [0, 1]


def test_a_lone_surrogate_in_an_answer_is_scored_and_framed():
    scores = score([{"output": "half \ud83d", "question": "q"}], {"echo": lambda output: (True, output)}, cache=False)
    assert scores["reason"].tolist() == ["half \ufffd"]


# --- what is evaluated ------------------------------------------------------------------------


def test_without_evaluators_each_row_brings_its_own_and_the_others_are_judged(asked, endpoint, monkeypatch, cache):
    monkeypatch.setenv("MCPEVAL_MODEL", "openai/good")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-000001")
    monkeypatch.setenv("OPENAI_API_BASE", endpoint.base)
    own = [[{"func": "json -> get(n)", "op": "=", "value": 0}] * 2, [], [rule("json -> get(n)", "=", 2, name="mine")]]
    scores = score(runs(3, evaluators=own, reference=[None, "one", None]), cache=cache)
    first, twin, judged, mine = scores.to_dict("records")
    assert (first["kind"], first["score"], twin["evaluator"]) == ("rule", 1, first["evaluator"] + " (2)")
    assert (judged["evaluator"], judged["kind"], judged["run_id"], judged["status"]) == (
        "correctness",
        "judge",
        "1",
        "ok",
    )
    assert (mine["evaluator"], mine["score"]) == ("mine", 1)
    assert endpoint.count == 1 and "<reference-" in endpoint.requests[0]["messages"][1]["content"]


def through_pandas(frame, path):
    own = [[one if isinstance(one, dict) else one.to_dict() for one in each] for each in frame["evaluators"]]
    frame.assign(evaluators=own).to_parquet(path)
    return pd.read_parquet(path)


ROUND_TRIPS = {
    "csv": lambda frame, path: read_csv(to_csv(frame, path.with_suffix(".csv"))),
    "parquet": lambda frame, path: read_parquet(to_parquet(frame, path.with_suffix(".parquet"))),
    "our csv, read by pandas": lambda frame, path: pd.read_csv(to_csv(frame, path.with_suffix(".csv"))),
    "our parquet, read by pandas": lambda frame, path: pd.read_parquet(to_parquet(frame, path.with_suffix(".parquet"))),
    "pandas' own parquet": through_pandas,
}


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_rows_bring_their_evaluators_through_files(name, tmp_path):
    own = [
        [{"func": "json -> get(n)", "op": "=", "value": 0}, {"func": "json", "op": ""}],
        [rule("json -> get(n)", "approx", 2, op_args={"rel": 0.6}, name="mine")],
        [{"func": "json -> foreach", "op": "<", "value": 5, "on_empty": "fail", "desc": "numbers"}],
    ]
    frame = runs(3, evaluators=own)
    before, after = (score(given, cache=False) for given in (frame, ROUND_TRIPS[name](frame, tmp_path / "runs")))
    assert before["passed"].tolist() == [True, True, True, False]
    if name != "pandas' own parquet":  # its integers beside missing values are floats
        assert after["fingerprint"].tolist() == before["fingerprint"].tolist()
        assert after["evaluator"].tolist() == before["evaluator"].tolist()
    if name != "our csv, read by pandas":  # it does not know the apostrophe that protects a text like {"n": 0}
        assert after["passed"].tolist() == before["passed"].tolist()


def test_a_function_sees_the_columns_that_it_names_and_another_all():
    def named(output, extra, missing="default"):
        return (extra, missing) == (7, "default")

    def rest(**columns):
        return sorted(columns) == ["extra", "note", "output", "question", "run_id"]

    def whole(row):
        return row["note"] is None and row["run_id"] == "0"

    scores = score(runs(1, extra=7, note=[None]), [named, rest, whole, rule("json -> get(n)", "=", 0)], cache=False)
    assert scores["passed"].tolist() == [True] * 4


def test_a_dict_names_evaluators_of_every_kind(asked):
    named = {
        "fits": {"func": "json -> get(n)", "op": ">", "value": 0},
        "polite": asked("Is it polite?"),
        "long": len_of,
    }
    assert score(runs(1), named, cache=False)["evaluator"].tolist() == ["fits", "polite", "long"]


def test_a_run_that_its_surroundings_ended_is_skipped_and_one_that_the_agent_ended_fails(asked, endpoint, cache):
    classes = ["server", "timeout", "rate", "model", "harness", "context", None, "turn_limit", "bad_json", None]
    frame = pd.DataFrame(
        {
            "output": [None] * 9 + ["an answer all the same"],
            "question": "q",
            "status": "error",
            "error": "it broke",
            "error_class": classes,
        }
    )
    scores = score(frame, [rule("json -> get(n)", "=", 1), asked()], cache=cache)
    rules, judged = scores[scores["kind"] == "rule"], scores[scores["kind"] == "judge"]
    assert rules["status"].tolist() == ["skipped"] * 7 + ["ok"] * 3
    assert rules["score"].iloc[:7].isna().all() and rules["score"].iloc[7:].tolist() == [0, 0, 0]
    assert "server" in rules["reason"].iloc[0] and "it broke" in rules["reason"].iloc[0]
    assert judged["status"].tolist() == ["skipped"] * 7 + ["ok"] * 3 and endpoint.count == 2  # two rows look the same


def test_samples_are_rows_with_their_number_and_an_answer_each(asked, endpoint, cache):
    scores = score(runs(2), [asked(samples=3, temperature=1), len_of], cache=cache)
    assert scores["sample"].tolist() == [0, 1, 2, 0] * 2
    assert scores["evaluator"].tolist() == (["judge"] * 3 + ["len_of"]) * 2
    assert endpoint.count == 6
    assert (
        score(runs(2), asked(samples=4, temperature=1), cache=cache)["cached"].tolist() == [True, True, True, False] * 2
    )


# --- failures ---------------------------------------------------------------------------------


def test_a_crash_is_one_rows_error_with_its_traceback_and_the_others_go_on():
    def fragile(output):
        return 1 / json.loads(output)["n"]

    scores = score(runs(3), [fragile, len_of], cache=False)
    crash = scores.iloc[0]
    assert scores["status"].tolist() == ["error", "ok", "ok", "ok", "ok", "ok"]
    assert (
        math.isnan(crash["score"])
        and "ZeroDivisionError" in crash["error"]
        and "fragile" in crash["metadata"]["traceback"]
    )


def test_sys_exit_in_a_function_ends_that_row_alone():
    def leaves(output):
        sys.exit(3)

    async def leaves_too(output):
        sys.exit("no key")

    scores = score(runs(2), [leaves, leaves_too, len_of], cache=False)
    assert scores["status"].tolist() == ["error", "error", "ok"] * 2
    assert scores["error"].iloc[:2].tolist() == ["SystemExit: 3", "SystemExit: no key"]


def test_a_rule_that_lacks_a_variable_is_an_error_between_rules_that_are_not(monkeypatch):
    monkeypatch.delenv("NOT_SET", raising=False)
    three = [rule("json -> get(n)", "=", n, name=str(n)) for n in (0, "{{NOT_SET}}", 1)]
    scores = score(runs(2), [*three, len_of], cache=False)
    assert scores["evaluator"].tolist() == ["0", "{{NOT_SET}}", "1", "len_of"] * 2
    assert scores["status"].tolist() == ["ok", "error", "ok", "ok"] * 2
    assert scores["score"].fillna(-1).tolist() == [1, -1, 0, 1, 0, -1, 1, 1]
    with pytest.raises(McpevalError, match=r"2 of 8 scores failed.*evaluator '\{\{NOT_SET\}\}' on run '0'"):
        score(runs(2), [*three, len_of], cache=False, errors="raise")


@pytest.mark.parametrize("was_on", [True, False])
def test_the_garbage_collector_is_afterwards_as_it_was(was_on):
    (gc.enable if was_on else gc.disable)()
    try:
        score(runs(2), rule("json -> get(n)", "=", 1), cache=False)
        assert gc.isenabled() is was_on
        with pytest.raises(McpevalError):
            score(runs(2), lambda output: 1 / 0, cache=False, errors="raise")
        assert gc.isenabled() is was_on and gc.get_freeze_count() == 0
    finally:
        gc.enable()


def test_failures_are_kept_or_raised_after_everything_was_done(asked, endpoint, cache):
    endpoint.script(lambda body: "nonsense" if "ROW-1" in json.dumps(body) else None)
    scores = score(runs(3), asked(reasks=0), cache=cache)
    assert scores["status"].tolist() == ["ok", "unparsed", "ok"] and scores["metadata"].iloc[1]["text"] == "nonsense"
    with pytest.raises(McpevalError, match=r"1 of 3 scores failed.*evaluator 'judge' on run '1'"):
        score(runs(3), asked(reasks=0), cache=cache, errors="raise")
    before = endpoint.count
    with pytest.raises(McpevalError):
        score(runs(4), asked(reasks=0), cache=cache, errors="raise", concurrency=1)
    assert endpoint.count == before + 1 and len([key for key in cache if key.startswith("verdict")]) == 3


def test_a_provider_that_is_down_gives_errors_that_are_not_kept(asked, endpoint, cache):
    down = [True]
    endpoint.script(lambda body: (400, {}, {"error": {"message": "down", "code": "x"}}) if down[0] else None)
    assert score(runs(3), asked(), cache=cache)["status"].tolist() == ["error"] * 3
    down[0] = False
    scores = score(runs(3), asked(), cache=cache)
    assert scores["status"].tolist() == ["ok"] * 3 and not scores["cached"].any()


BAD_INPUT = [
    (pd.DataFrame({"outptu": ["a"]}), len_of, {}, "no column 'output'.*Did you mean"),
    ([{"answer": "a"}], len_of, {}, r"runs\[0\] has no 'output'"),
    ([3], len_of, {}, r"runs\[0\] is 3"),
    ("a text", len_of, {}, "runs='a text'"),
    (pd.DataFrame([["a", "b"]], columns=["output", "output"]), len_of, {}, "'output' 2 times"),
    (runs(run_id=["a", "b", "a"]), len_of, {}, "run_id 'a' stands twice"),
    (runs().set_axis([0, 1, 0]), len_of, {}, "reset_index"),
    (runs(), [len_of, len_of], {}, "name 'len_of' 2 times"),
    (runs(), lambda outputs: 1, {}, "reads the column 'outputs'.*Did you mean 'output'"),
    (runs(), Judge("Is {anwser} right?", model="openai/good"), {}, "names the column 'anwser'"),
    (runs(), Judge(model="opnai/gpt-4.1"), {}, "openai"),
    (runs(), "json -> get(n)", {}, "rule"),
    (runs(), {"x": {"func": "json -> gett(n)", "op": "="}}, {}, "gett"),
    (runs(evaluators=[[{"func": "jsn", "op": "="}]] * 3), None, {}, "jsn"),
    (runs(evaluators=["json"] * 3), None, {}, "expected a list"),
    (runs(), len_of, {"concurrency": 0}, "concurrency=0"),
    (runs(), len_of, {"budget_usd": -1}, "budget_usd=-1"),
    (runs(), len_of, {"errors": "rise"}, "Did you mean 'raise'"),
    (runs(), Judge(model=PRICED), {}, "OPENAI_API_KEY"),
]


@pytest.mark.parametrize(("given", "evaluators", "how", "said"), BAD_INPUT)
def test_what_cannot_be_meant_is_said_before_anything_is_paid(given, evaluators, how, said, endpoint, asked, tmp_path):
    paid = asked(name="paid")
    both = evaluators
    if isinstance(evaluators, Judge):
        both = [paid, evaluators]
    with pytest.raises(InputError, match=said):
        score(given, both, cache=tmp_path / "cache", **how)
    assert endpoint.count == 0


# --- the cache --------------------------------------------------------------------------------


def test_a_second_score_asks_nobody_costs_nothing_and_gives_the_same_frame(asked, endpoint, cache):
    one = asked(model=PRICED, scale=(1, 5))
    first, second = (score(runs(5), [one, len_of], cache=cache) for _ in range(2))
    judged = first["kind"] == "judge"
    assert endpoint.count == 5 and first.loc[judged, "cost_usd"].tolist() == pytest.approx([PRICE] * 5)
    assert (second.loc[judged, "cost_usd"] == 0).all() and second.loc[judged, "cached"].all()
    assert [m["saved_usd"] for m in second.loc[judged, "metadata"]] == pytest.approx([PRICE] * 5)
    assert first.loc[judged, "judge_model"].unique().tolist() == ["gpt-4.1-mini"]
    assert first.loc[judged, "fingerprint"].unique().tolist() == [one.fingerprint]
    same = [name for name in first.columns if name not in ("cost_usd", "cached", "metadata", "seconds")]
    pd.testing.assert_frame_equal(first[same], second[same])
    assert first.loc[judged, "seconds"].tolist() == second.loc[judged, "seconds"].tolist()


def test_an_unknown_price_is_none_and_never_0(asked):
    assert score(runs(1), asked(), cache=False)["cost_usd"].isna().all()


def test_rows_that_look_the_same_to_the_judge_are_paid_for_once(asked, endpoint, cache):
    scores = score(pd.DataFrame({"output": ["same"] * 8, "question": "q ROW-1"}), asked(model=PRICED), cache=cache)
    assert endpoint.count == 1 and scores["cost_usd"].sum() == pytest.approx(PRICE)


def test_replay_answers_from_the_cache_alone(asked, endpoint, cache):
    first = score(runs(2), asked(), cache=cache)
    endpoint.reset()
    again = score(runs(2), asked(), cache=cache.path, replay=True)
    assert again["score"].tolist() == first["score"].tolist()
    with pytest.raises(CacheMiss):
        score(runs(3), asked(), cache=cache, replay=True)
    assert endpoint.count == 0


CACHED = """
import json, sys, time
import pandas as pd
frame = pd.DataFrame({"output": [f"answer ROW-{i}" for i in range(200)], "question": "q"})
from mcpeval.evaluators.judges import Judge
from mcpeval.scoring import score
judge = Judge("Is it right?", model="openai/good", api_base=sys.argv[1], api_key="sk-test-000001", scale=(1, 5))
scores = score(frame, judge, cache=sys.argv[2])
heavy = [name for name in ("litellm", "instructor", "mcp", "openai") if name in sys.modules]
print(json.dumps({"heavy": heavy, "cached": int(scores["cached"].sum()), "mean": scores["score"].mean()}))
"""


def test_a_second_score_in_a_fresh_process_imports_no_client_at_all(asked, endpoint, tmp_path):
    frame = pd.DataFrame({"output": [f"answer ROW-{i}" for i in range(200)], "question": "q"})
    first = score(frame, asked(scale=(1, 5)), cache=tmp_path / "cache", concurrency=64)
    assert endpoint.count == 200
    command = [sys.executable, "-c", CACHED, endpoint.base, str(tmp_path / "cache")]
    seen = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert seen == {"heavy": [], "cached": 200, "mean": pytest.approx(first["score"].mean())}
    assert endpoint.count == 200


# --- money ------------------------------------------------------------------------------------


def test_no_call_is_made_once_the_budget_is_spent(asked, endpoint, cache):
    scores = score(runs(20), asked(model=PRICED), cache=cache, budget_usd=4.5 * PRICE, concurrency=8)
    assert endpoint.count == 5 and scores["status"].value_counts().to_dict() == {"budget": 15, "ok": 5}
    assert scores["cost_usd"].sum() == pytest.approx(5 * PRICE)
    assert scores.loc[scores["status"] == "budget", "score"].isna().all()
    more = score(runs(20), asked(model=PRICED), cache=cache, budget_usd=1.5 * PRICE)
    assert endpoint.count == 7 and more["status"].value_counts().to_dict() == {"budget": 13, "ok": 7}
    assert score(runs(20), asked(model=PRICED), cache=cache, budget_usd=0)["status"].value_counts()["ok"] == 7


def test_a_budget_and_a_model_without_a_known_price_are_refused(asked, endpoint, cache):
    with pytest.raises(InputError, match="price of 'openai/good'"):
        score(runs(2), asked(), cache=cache, budget_usd=1)
    assert endpoint.count == 0
    score(runs(2), asked(), cache=cache)
    assert score(runs(2), asked(), cache=cache, budget_usd=1)["cached"].all()


def test_an_answer_of_unknown_cost_ends_the_spending(asked, endpoint, cache):
    message = {"role": "assistant", "content": '{"reason": "r", "verdict": true}'}
    answer = {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    endpoint.script(lambda body: (200, {}, answer))
    scores = score(runs(9), asked(model=PRICED), cache=cache, budget_usd=1)
    assert endpoint.count == 1 and scores["status"].value_counts().to_dict() == {"budget": 8, "ok": 1}


def test_a_dry_run_says_what_would_be_done_and_does_nothing(asked, endpoint, cache):
    score(runs(2), asked(), cache=cache)
    endpoint.reset()
    plan = score(
        runs(5), [asked(samples=2), {"func": "raw", "op": "=", "value": ""}, len_of], cache=cache, dry_run=True
    )
    judged, ruled, counted = plan.to_dict("records")
    assert (judged["evaluator"], judged["model"], judged["rows"]) == ("judge", "openai/good", 10)
    assert (judged["calls"], judged["cached_calls"]) == (8, 2)
    prompt = sum(len(m["content"]) for m in asked().render(runs(5).to_dict("records")[0]))
    assert judged["prompt_tokens"] == pytest.approx(8 * prompt / 4, rel=0.05)
    assert (ruled["rows"], ruled["calls"], counted["kind"], counted["calls"]) == (5, 0, "function", 0)
    assert math.isnan(judged["usd_low"]) and ruled["usd_high"] == 0.0  # nobody knows the price of openai/good
    assert endpoint.count == 0


def test_a_dry_run_prices_the_calls_that_are_not_in_the_cache(asked, cache):
    [line] = score(runs(5), asked(model=PRICED), cache=cache, dry_run=True).to_dict("records")
    read, write = llm.prices(PRICED)
    assert line["usd_low"] == pytest.approx(read * line["prompt_tokens"] + 5 * 20 * write)
    assert line["usd_low"] < line["usd_high"]


# --- interrupts -------------------------------------------------------------------------------

INTERRUPTED = """
import sys
import pandas as pd
from mcpeval.evaluators.judges import Judge
from mcpeval.scoring import score
frame = pd.DataFrame({"output": [f"answer ROW-{i}" for i in range(40)], "question": "q"})
judge = Judge("Is it right?", model="openai/good", api_base=sys.argv[1], api_key="sk-test-000001")
print("ready", flush=True)
try:
    score(frame, judge, cache=sys.argv[2], concurrency=4)
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(len(score(frame, judge, cache=sys.argv[2], concurrency=4)), flush=True)
"""


def test_an_interrupt_keeps_what_was_paid_and_the_next_call_goes_on(endpoint, tmp_path):
    endpoint.script(None)
    endpoint.latency = 0.2
    try:
        command = [sys.executable, "-c", INTERRUPTED, endpoint.base, str(tmp_path / "cache")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        wait_for(lambda: endpoint.count >= 12, process)
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=120)[0]
    finally:
        endpoint.latency = 0.0
    assert output.split() == ["ready", "interrupted", "40"] and process.returncode == 0
    assert 40 <= endpoint.count <= 40 + 4  # only what was in flight is asked for again


def wait_for(condition, process):
    while not condition():
        assert process.poll() is None, "the process ended early"
        time.sleep(0.02)


def test_score_works_where_a_loop_runs_already():
    import asyncio

    async def cell():
        return score(runs(2), {"later": later}, cache=False)

    async def later(output):
        await asyncio.sleep(0)
        return True

    assert asyncio.run(cell())["score"].tolist() == [1, 1]


def test_blocking_functions_run_side_by_side():
    met = threading.Barrier(2, timeout=30)

    def meets(output):
        met.wait()
        return True

    assert score(runs(2), meets, cache=False)["score"].tolist() == [1, 1]


def test_an_evaluators_own_usage_is_in_its_row():
    def paid(output):
        return Score(1.0, usage=Usage(tokens_in=5, tokens_out=2, cost_usd=0.5, seconds=2.0, calls=1))

    row = score(runs(1), paid, cache=False).iloc[0]
    assert (row["tokens_in"], row["tokens_out"], row["cost_usd"], row["seconds"], row["cached"]) == (
        5,
        2,
        0.5,
        2.0,
        False,
    )


def test_the_docstring_is_a_script_that_runs():
    import doctest

    import mcpeval.scoring

    assert doctest.testmod(mcpeval.scoring, extraglobs={"pd": pd}).failed == 0


def test_a_manifest_finds_the_judges_texts_whatever_pandas_did_with_the_frame(endpoint):
    named = {"api_base": endpoint.base, "api_key": "sk-secret-of-mine"}
    judge = Judge("Is it brief?", model="openai/good", sees="output", **named)
    scores = score([{"output": "ROW-1"}], [judge, rule("raw", "=", "x")])
    changed = pd.concat([scores.assign(more=1), scores.iloc[:1]], ignore_index=True)
    texts = manifest(changed)["judges"]
    by_kind = {kind: texts[fingerprint] for kind, fingerprint in zip(changed["kind"], changed["fingerprint"])}
    assert by_kind["judge"]["rubric"] == "Is it brief?"
    assert by_kind["rule"] == {"func": "raw", "op": "=", "value": "x", "on_empty": "fail", "quotes": True}
    assert "sk-secret" not in json.dumps(texts)


def test_runs_need_no_output_where_nothing_reads_it():
    calls = [{"name": "add", "arguments": {"a": 1}}]
    runs = pd.DataFrame({"tool_calls": [calls], "expected_tool_calls": [calls]})
    assert score(runs, tool_calls())["score"].tolist() == [1.0]
    with pytest.raises(InputError, match="no column 'output'"):
        score(runs, lambda row: True)


def test_an_output_nested_too_deeply_fails_its_own_row_alone():
    deep: dict = {}
    for _ in range(3000):
        deep = {"a": deep}
    runs = [{"output": deep}, {"output": {"a": 1}}]
    for given in (runs, pd.DataFrame(runs)):
        scores = score(given, [rule("get(a)", "=", 1), lambda output: output["a"] == 1])
        assert scores["score"].tolist() == [0.0, 0.0, 1.0, 1.0]


def test_a_manifest_of_scores_names_the_servers_of_their_runs_and_when_they_began(tmp_path):
    servers = [{"name": "files", "server_info": {"name": "fs", "version": "2"}, "protocol": "p", "tools_sha256": "s"}]
    metadata = {"started": "2026-01-02T03:04:05+00:00", "servers": servers}
    runs = pd.DataFrame({"run_id": ["of these"], "output": ["x"], "metadata": [metadata]})
    about = manifest(pd.concat([score(runs, rule("raw", "=", "x"))]))
    assert about["started"] == ["2026-01-02T03:04:05+00:00"] * 2
    assert about["servers"] == servers


@pytest.mark.parametrize("none", [[], {}, ()])
def test_no_evaluators_are_refused_and_so_is_a_run_id_that_cannot_be_one(none):
    with pytest.raises(InputError, match="score: evaluators=.* is empty"):
        score([{"output": "a"}], none)
    with pytest.raises(InputError, match=r"score: run_id=\[1\]"):
        score([{"run_id": [1], "output": "a"}], rule("raw", "=", "a"))
