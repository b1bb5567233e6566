"""Spans: what was done in a run, by whom, when and at what cost, for every kind of agent and every end."""

from __future__ import annotations

import asyncio
import threading

import pandas as pd
import pytest

import mcpeval
from mcpeval.agents import Agent, chain, parallel
from mcpeval.agents.session import Session
from mcpeval.errors import InputError
from mcpeval.exporting import read_csv, read_parquet, read_runs, to_csv, to_parquet
from mcpeval.frames import RUN_KEYS, cells_of
from mcpeval.running import run
from mcpeval.testing import ScriptedModel, toy_server
from mcpeval.tracing import SPAN_COLUMNS, UNFINISHED, spans
from mcpeval.types import Run, Task, ToolCall, Usage

QUESTION = "What is 1 + 2?"
TOYS = {"toy": toy_server}
PRICE = 100 * 0.4e-6 + 10 * 1.6e-6  # the endpoint's 100 + 10 tokens at OpenAI's published dollars a token
ADD = ("add", {"a": 1, "b": 2})


@pytest.fixture
def model():
    """A scripted model: it calls three tools, two of which fail, and answers."""
    with ScriptedModel([[ADD, ("boom", {}), ("nope", {})], "It is 3."]) as model:
        yield model


def agent_of(model, strategy="tools", **more):
    return Agent(model.model, strategy, **{**model.params, "retries": 0, **more})


def one(agents, **more):
    """The spans of one run, and its row."""
    frame = run([QUESTION], agents, **{"servers": TOYS, "cache": False, **more})
    return spans(frame), frame.iloc[0]


def tree(frame):
    """Kind, name and parent's name of each span, in order."""
    names = dict(zip(frame["span"], frame["name"]))
    parents = [None if pd.isna(parent) else names[parent] for parent in frame["parent"]]
    return list(zip(frame["kind"], frame["name"], parents))


def test_a_run_is_a_span_and_so_is_each_answer_and_each_tool_call_in_it(model):
    found, row = one(agent_of(model, name="a"))
    llm = ("llm", "openai/scripted", "a")
    tools = [("tool", name, "a") for name in ("add", "boom", "nope")]
    assert tree(found) == [("agent", "a", None), llm, *tools, llm]
    assert list(found.columns) == [*RUN_KEYS, *SPAN_COLUMNS]
    assert {name: str(dtype) for name, dtype in found.dtypes.items() if name in SPAN_COLUMNS} == SPAN_COLUMNS
    assert cells_of(found["server"])[2:5] == ["toy", "toy", None]
    assert cells_of(found["error_class"]) == [None, None, None, "tool", "unknown_tool", None]
    assert "boom" in found["error"][3] and "There is no tool 'nope'" in found["error"][4]
    assert found["tool_call"].tolist() == [pd.NA, pd.NA, 0, 1, 2, pd.NA]
    assert found["model_returned"].dropna().tolist() == ["scripted"] * 2
    assert (found["run_id"] == row["run_id"]).all() and (found["part"] == "a").all()


def test_each_span_lies_within_the_one_it_was_done_in(model):
    found, row = one(chain([agent_of(model), agent_of(model, name="second")]))
    ends = dict(zip(found["span"], found["start"] + found["seconds"]))
    starts = dict(zip(found["span"], found["start"]))
    for number, parent in zip(found["span"], found["parent"]):
        if not pd.isna(parent):
            assert starts[parent] <= starts[number] and ends[number] <= ends[parent] + 1e-5
    assert ends[0] <= row["seconds"] + 1e-5


def test_a_span_names_the_messages_of_its_prompt_and_its_answer_and_repeats_none(model):
    found, row = one(agent_of(model))
    first, last = found["messages"][1], found["messages"][5]
    assert (first, last) == ([0, 2], [0, 6])
    prompt = row["messages"][first[0] : first[1]]
    assert [message["role"] for message in prompt] == ["user", "assistant"]
    assert row["messages"][last[0] : last[1]] == row["messages"]
    assert "content" not in str(row["spans"])


def test_tokens_and_cost_of_the_spans_add_up_to_those_of_the_run(endpoint):
    agent = Agent("openai/gpt-4.1-mini", api_base=endpoint.base, api_key="k", retries=0)
    frame = run(["Look at ROW-1 ?", "Look at ROW-2 ?"], {"one": agent, "two": chain([agent, agent])}, servers=TOYS,
                cache=False)  # fmt: skip
    columns = ["tokens_in", "tokens_out", "cost_usd"]
    sums = spans(frame).groupby(["run_id"], sort=False)[columns].sum()
    pd.testing.assert_frame_equal(sums, frame.set_index("run_id")[columns], check_dtype=False)
    assert frame["cost_usd"].tolist() == pytest.approx([2 * PRICE, 4 * PRICE] * 2)


def test_the_agents_of_a_workflow_have_spans_of_their_own_and_their_names_in_the_transcript():
    def script(body):
        system = body["messages"][0]["content"]
        return {"one": "first", "two": "second", "sum": "both"}[system]

    with ScriptedModel(script) as model:
        ones = [agent_of(model, "basic", name=name, system=name) for name in ("one", "two")]
        inner = parallel(ones, agent_of(model, "basic", name="sum", system="sum"), name="inner")
        found, row = one(chain([inner, agent_of(model, "basic", name="last", system="one")], name="outer"))
    assert (row["status"], row["output"]) == ("ok", "first")
    agents = [("agent", name, parent) for name, parent in (("one", "inner"), ("two", "inner"), ("sum", "inner"))]
    assert [entry for entry in tree(found) if entry[0] != "llm"] == [
        ("workflow", "outer", None),
        ("workflow", "inner", "outer"),
        *agents,
        ("agent", "last", "outer"),
    ]
    calls = found[found["kind"] == "llm"]
    assert sorted(calls["part"]) == ["last", "one", "sum", "two"] and len(model.requests) == 4
    for part, (first, stop) in zip(calls["part"], calls["messages"]):
        assert {message["agent"] for message in row["messages"][first:stop]} == {part}
        assert row["messages"][stop - 1]["role"] == "assistant"
    assert row["tokens_in"] == 4 * 10


def test_a_critic_between_the_messages_of_an_agent_is_a_part_of_it(model):
    steps = ['{"thought": "t", "action": {"tool": "add", "arguments": {"a": 1, "b": 2}}}', '{"answer": "3"}']
    model.script = lambda body: (
        "The step is right." if "You review" in body["messages"][0]["content"] else steps[len(body["messages"]) // 3]
    )
    found, row = one(agent_of(model, "reflection", name="r"))
    assert row["output"] == "3"
    assert tree(found) == [
        ("agent", "r", None),
        ("llm", "openai/scripted", "r"),
        ("tool", "add", "r"),
        ("agent", "r:critic", "r"),
        ("llm", "openai/scripted", "r:critic"),
        ("llm", "openai/scripted", "r"),
    ]
    first, stop = found["messages"][5]
    own = [message["content"] for message in row["messages"][first:stop] if "agent" not in message]
    assert own[-1] == steps[1] and own[-3] == steps[0] and len(own) == 5
    critic = found.iloc[3]
    assert critic["seconds"] == pytest.approx(found["seconds"][4], abs=0.01) and pd.isna(critic["error"])


# --- callables, and runs that fail --------------------------------------------------------------


def test_a_plain_function_that_fails_half_way_has_the_spans_of_what_it_did(model):
    def mine(task, session):
        session.complete([{"role": "user", "content": "?"}], model=model.model, **model.params)
        session.call_tool(*ADD)
        raise ValueError("enough")

    found, row = one(mine)
    assert (row["status"], row["error_class"]) == ("error", "harness")
    assert tree(found) == [("agent", "mine", None), ("llm", model.model, "mine"), ("tool", "add", "mine")]
    assert cells_of(found["error"]) == ["ValueError: enough", None, None]
    assert cells_of(found["error_class"]) == ["harness", None, None]


def test_what_was_still_going_on_when_a_run_ended_says_so():
    async def mine(task, session):
        left = [asyncio.ensure_future(session.call_tool("wait", {"seconds": 60}))]
        await session.call_tool(*ADD)
        left.append(asyncio.ensure_future(session.call_tool("wait", {"seconds": 60})))
        await asyncio.sleep(0)
        left[1].cancel()
        await asyncio.sleep(0)
        return "done"

    found, row = one(mine)
    assert row["output"] == "done" and found["name"].tolist() == ["mine", "add", "wait", "wait"]
    assert cells_of(found["error_class"]) == [None, None, "unfinished", "unfinished"]
    assert found["error"][2] == UNFINISHED
    assert found["start"][2] + found["seconds"][2] == pytest.approx(found["seconds"][0], abs=1e-5)


def test_a_part_that_a_callable_makes_ends_with_its_block_or_with_the_last_thing_done_in_it(model):
    def mine(task, session):
        session.part("never used")
        session.complete([{"role": "user", "content": "?"}], model=model.model, **model.params)
        open_part = session.part("left open")
        open_part.call_tool(*ADD)
        with session.part("failed", kind="workflow") as part:
            part.call_tool(*ADD)
            raise RuntimeError("no more")

    found, row = one(mine)
    parts = found[found["kind"] != "llm"].set_index("part")
    assert parts.loc["never used", "seconds"] == 0
    own = found.set_index("span")
    left = own[own["name"] == "left open"].iloc[0]
    inside = own[own["parent"] == left.name].iloc[0]
    assert left["start"] + left["seconds"] == pytest.approx(inside["start"] + inside["seconds"], abs=1e-5)
    failed = own[own["name"] == "failed"].iloc[0]
    assert (failed["kind"], failed["error"], failed["error_class"]) == ("workflow", "no more", "harness")
    assert pd.isna(left["error"])


def test_the_span_of_a_failed_call_has_the_error_and_one_that_was_repeated_its_failures(endpoint):
    def agent(name, **more):
        return Agent(f"openai/{name}", "basic", name=name, api_base=endpoint.base, api_key="sk-secret-1", **more)

    frame = run(["What of ROW-1?"], [agent("r401"), agent("r500-once", max_wait=0.01)], cache=False)
    found = spans(frame)
    failed, repeated = found[found["kind"] == "llm"].to_dict("records")
    assert failed["error_class"] == "auth" and "Incorrect API key" in failed["error"] and failed["messages"] == [0, 1]
    assert cells_of(frame["error_class"]) == ["model", None]
    assert cells_of(found["error_class"]) == ["model", "auth", None, None]
    assert repeated["n_failed"] == 1 and "HTTP 500" in repeated["failures"][0] and pd.isna(repeated["error"])
    assert "sk-secret-1" not in frame.to_json()


def test_what_an_agent_did_elsewhere_is_used_by_its_own_span():
    def mine(task, session):
        call = ToolCall("files", "read", {}, {"content": []})
        return Run("done", [{"role": "user", "content": "?"}], [call], usage=Usage(7, 3, 0.5, calls=1))

    found, row = one({"lone": mine, "led": chain([mine, mine])}, servers=None)
    assert found["tokens_in"].tolist() == [7, pd.NA, 7, 7] and found["cost_usd"].tolist()[0] == 0.5
    assert found["kind"].tolist() == ["agent", "workflow", "agent", "agent"]
    assert row["tokens_in"] == 7


def test_no_places_are_told_where_the_agent_gave_a_transcript_of_its_own(model):
    def mine(task, session):
        session.complete([{"role": "user", "content": "?"}], model=model.model, **model.params)
        session.call_tool(*ADD)
        return Run("done", [{"role": "user", "content": "mine"}])

    found, row = one(mine)
    assert found["messages"].tolist() == [None] * 3
    assert found["tool_call"].tolist() == [pd.NA, pd.NA, 0]


def test_an_agent_may_tell_its_own_spans():
    told = [{"id": 0, "kind": "agent", "name": "elsewhere", "start": 0.0, "seconds": 2.0}]
    found, row = one(lambda task, session: Run("x", spans=told), servers=None)
    assert row["spans"] == told and found["seconds"].tolist() == [2.0]


def test_parts_that_threads_work_on_side_by_side_have_numbers_of_their_own(model):
    def mine(task, session):
        def work(i):
            for _ in range(5):
                session.part(f"p{i}").call_tool(*ADD)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    found, row = one(mine)
    assert len(found) == 1 + 2 * 20 and found["span"].is_unique
    tools = found[found["kind"] == "tool"]
    assert sorted(tools["tool_call"]) == list(range(20))


def test_a_session_of_ones_own_keeps_spans_as_well():
    async def alone():
        session = Session(Task("t", "q"))
        await session.call_tool("add", {})
        return session.ended("x")

    assert [span["kind"] for span in asyncio.run(alone()).spans] == ["agent", "tool"]


def test_a_call_that_was_forbidden_or_was_no_json_object_has_a_kind_of_error_of_its_own():
    async def mine(task, session):
        await session.call_tool("echo", {"text": "x"})
        await session.call_tool("add", "{no json")

    rules = [{"tool": "echo", "action": "deny"}]
    found, row = one(mine, permissions=rules)
    assert cells_of(found["error_class"]) == [None, "denied", "bad_json"]


# --- the cache, and files -----------------------------------------------------------------------


def test_the_spans_of_a_cached_run_are_those_of_the_run_that_was_paid(endpoint, cache):
    agent = Agent("openai/gpt-4.1-mini", "basic", api_base=endpoint.base, api_key="k", retries=0)
    frames = [run(["What of ROW-1?"], agent, cache=cache) for _ in range(2)]
    first, second = map(spans, frames)
    free = ["cost_usd", "saved_usd", "cached"]
    pd.testing.assert_frame_equal(first.drop(columns=free), second.drop(columns=free))
    assert first["cached"].tolist() == [pd.NA, False] and second["cached"].tolist() == [pd.NA, True]
    assert (first["cost_usd"][1], second["cost_usd"][1]) == (pytest.approx(PRICE), 0)
    assert second["saved_usd"][1] == pytest.approx(PRICE)


def test_an_answer_from_the_cache_is_cached_within_a_run_that_is_not(endpoint, cache):
    def mine(task, session):
        ask = [{"role": "user", "content": "What of ROW-1?"}]
        return session.complete(ask, model="openai/gpt-4.1-mini", api_base=endpoint.base, api_key="k").text

    found = [spans(run([QUESTION], mine, cache=cache)).iloc[1] for _ in range(2)]
    assert [bool(span["cached"]) for span in found] == [False, True]
    assert [span["cost_usd"] for span in found] == [pytest.approx(PRICE), 0]


def test_a_run_that_was_kept_before_there_were_spans_is_read_and_has_none(endpoint, cache):
    agent = Agent("openai/good", "basic", api_base=endpoint.base, api_key="k", retries=0)
    run(["What of ROW-1?"], agent, cache=cache)
    [key] = [key for key in cache if key.startswith("run:")]
    old = cache.get(key)
    del old["spans"]
    cache.set(key, old)
    frame = run(["What of ROW-1?"], agent, cache=cache)
    assert frame["cached"].tolist() == [True] and frame["spans"].tolist() == [[]]
    assert len(spans(frame)) == 0 and list(spans(frame).columns) == [*RUN_KEYS, *SPAN_COLUMNS]


def test_spans_are_the_same_after_a_round_trip_through_files(model, tmp_path):
    frame = run([QUESTION], [agent_of(model), chain([agent_of(model, name="a")])], servers=TOYS, cache=False)
    expected = spans(frame)
    pd.testing.assert_frame_equal(spans(read_csv(to_csv(frame, tmp_path / "runs.csv"))), expected)
    pd.testing.assert_frame_equal(spans(read_parquet(to_parquet(frame, tmp_path / "runs.parquet"))), expected)
    frame.to_json(tmp_path / "runs.jsonl", orient="records", lines=True, double_precision=15)
    pd.testing.assert_frame_equal(spans(read_runs(tmp_path / "runs.jsonl")), expected)


def test_a_frame_without_spans_is_refused_and_a_row_without_them_is_passed_over():
    span = {"id": 0, "kind": "agent", "name": "a", "start": 0.0, "seconds": 1.0}
    frame = pd.DataFrame({"spans": [None, [span]]}, index=["x", "y"])
    assert mcpeval.spans(frame)["run_id"].tolist() == ["y"]
    for given, said in (
        ([span], "runs is a list"),
        (pd.DataFrame({"output": []}), "no column 'spans'"),
        (pd.DataFrame({"spans": ["text"]}), "run '0': 'text' is no list of spans"),
        (pd.DataFrame({"spans": [[{"kind": "agent"}]]}), "is no list of spans"),
        (pd.DataFrame({"spans": [[{"id": "a", "kind": "agent", "name": "b"}]]}), "is no list of spans"),
    ):
        with pytest.raises(InputError, match=said):
            spans(given)
