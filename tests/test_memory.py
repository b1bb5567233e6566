"""Notes that agents keep: of one run, from one task to the next, and none where nobody asked for them."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from mcpeval import local
from mcpeval.agents import Agent, Notes, chain
from mcpeval.caching import Cache
from mcpeval.errors import CacheMiss, InputError
from mcpeval.running import run
from mcpeval.testing import ScriptedModel, toy_server

TASKS = [{"id": name, "question": f"What is {name} like?"} for name in ("Ada", "Bob", "Cyd")]


def said_of(body):
    """The results of the tools in a request."""
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]


def diary(body):
    """Reads its notes, then notes the question, then answers with what it read."""
    told = said_of(body)
    if not told:
        return [("recall", {})]
    if len(told) == 1:
        return [("remember", {"note": body["messages"][0]["content"]})]
    return told[0]


def offered(body):
    return [tool["function"]["name"] for tool in body.get("tools", [])]


@pytest.fixture
def model():
    with ScriptedModel(diary) as model:
        yield model


def outputs(frame):
    return frame["output"].tolist()


FIRST, SECOND = "- What is Ada like?", "- What is Bob like?"
NONE = "There are no such notes."


# --- off, and within one run --------------------------------------------------------------------


def test_nothing_is_offered_and_nothing_leaks_where_nobody_asks_for_notes(model, cache):
    model.script = ["fine"]
    runs = run(TASKS, Agent(model.model, **model.params), cache=cache)
    assert outputs(runs) == ["fine"] * 3
    assert all("tools" not in request and len(request["messages"]) == 1 for request in model.requests)
    assert "notes" not in runs["metadata"][0] and not [key for key in cache if key.startswith("notes:")]

    async def callable_(task, session):
        session.memory.remember(task.question)
        return session.memory.recall()

    runs = run(TASKS, callable_, cache=cache, concurrency=1)
    assert [json.loads(output) for output in runs["output"]] == [[task["question"]] for task in TASKS]
    assert not [key for key in cache if key.startswith("notes:")]


def test_notes_of_one_run_end_with_it(model):
    runs = run(TASKS, Agent(model.model, memory=True, **model.params), cache=False)
    assert outputs(runs) == [NONE] * 3
    first = runs.iloc[0]
    assert [(c["server"], c["name"], c["is_error"]) for c in first["tool_calls"]] == [
        ("(memory)", "recall", False),
        ("(memory)", "remember", False),
    ]
    assert first["tool_calls"][1]["result"] == {
        "content": [{"type": "text", "text": "Note 1 is kept."}],
        "isError": False,
    }


def test_notes_of_one_run_are_there_at_every_turn_of_an_agent_in_a_workflow_and_only_of_that_agent(model):
    a = Agent(model.model, name="a", memory=True, **model.params)
    b = Agent(model.model, name="b", memory=True, **model.params)
    row = run(["What is it?"], chain([a, b, a]), cache=False).iloc[0]
    # The second turn of a finds what its first noted; b has notes of its own.
    assert row["output"] == "- What is it?"
    assert [m["content"] for m in row["messages"] if m["role"] == "tool" and m["agent"] == "b"][0] == NONE


def test_the_tools_of_notes_stand_beside_those_of_servers_and_give_way_to_their_names(model):
    server = toy_server()

    @server.tool()
    def remember(what: str) -> str:
        """Another thing of this name."""
        return "of the server"

    task = {"question": "?", "mcp_servers": [{"name": "toy", "tools": ["add", "remember"]}]}
    model.script = [[("remember", {"what": "x"}), ("memory__remember", {"note": "y"})], [("recall", {})], "done"]
    row = run([task], Agent(model.model, memory=True, **model.params), servers={"toy": server}, cache=False).iloc[0]
    assert offered(model.requests[0]) == ["add", "remember", "memory__remember", "recall"]
    assert [(c["server"], c["name"]) for c in row["tool_calls"]] == [
        ("toy", "remember"),
        ("(memory)", "remember"),
        ("(memory)", "recall"),
    ]
    assert said_of(model.requests[2]) == ["of the server", "Note 1 is kept.", "- y"]


def test_a_model_without_tool_calling_finds_the_notes_in_the_list_of_tools(model):
    steps = [{"tool": "remember", "arguments": {"note": "x"}}, {"tool": "recall", "arguments": {}}, {"answer": "done"}]
    model.script = [json.dumps({"thought": "t", "action": step}) for step in steps]
    row = run(["What is it?"], Agent(model.model, "react", memory=True, **model.params), cache=False).iloc[0]
    assert (row["output"], row["n_tool_calls"]) == ("done", 2)
    assert '- remember {"note": string}: Keep a note for later.' in model.requests[0]["messages"][0]["content"]
    assert model.requests[2]["messages"][-1]["content"] == "Result of recall:\n- x"


def test_a_note_that_is_none_is_told_to_the_model(model):
    model.script = [[("remember", {"nota": "x"}), ("remember", "{")], "done"]
    row = run(["What is it?"], Agent(model.model, memory=True, **model.params), cache=False).iloc[0]
    assert [c["is_error"] for c in row["tool_calls"]] == [True, True]
    assert said_of(model.requests[1])[0] == "remember: note=None should be a text that is not empty"


def test_notes_are_found_by_all_the_words_asked_for():
    notes = Notes(["Rome is warm", "Oslo is cold"])
    assert notes.remember("It rains in Rome") == 3
    assert notes.recall("ROME is") == ["Rome is warm"]
    assert notes.recall("rome") == ["Rome is warm", "It rains in Rome"]
    assert (len(notes), notes.new, notes.recall("Bern")) == (3, ["It rains in Rome"], [])


# --- from one task to the next ------------------------------------------------------------------


def keeper(model, **more):
    return Agent(model.model, name="keeper", memory="diary", **{**model.params, **more})


def test_notes_that_last_are_found_at_the_next_task_in_the_order_of_the_tasks(model, cache):
    runs = run(TASKS, keeper(model), cache=cache, concurrency=8)
    assert outputs(runs) == [NONE, FIRST, f"{FIRST}\n{SECOND}"]
    assert [row["notes"] for row in runs["metadata"]] == [{"diary": [task["question"]]} for task in TASKS]


def test_trials_have_notes_of_their_own_and_so_have_other_agents(model, cache):
    other = keeper(model, temperature=0.5)
    runs = run(TASKS[:2], {"keeper": keeper(model), "other": other}, trials=2, cache=cache)
    assert outputs(runs) == [NONE] * 4 + [FIRST] * 4


def test_runs_made_again_begin_as_they_began_and_replay_gives_the_same(model, cache):
    first = run(TASKS, keeper(model), cache=cache)
    paid = len(model.requests)
    for replay in (False, True):
        again = run(TASKS, keeper(model), cache=cache, replay=replay)
        assert outputs(again) == outputs(first) and again["cached"].all()
        assert again["messages"].tolist() == first["messages"].tolist()
    assert len(model.requests) == paid
    # One of them alone, or in another order: it was the second to be run.
    assert outputs(run(TASKS[1:2], keeper(model), cache=cache, replay=True)) == [FIRST]


def test_later_tasks_find_what_all_before_them_have_left(model, cache):
    run(TASKS[:2], keeper(model), cache=cache)
    assert outputs(run(TASKS[2:], keeper(model), cache=cache)) == [f"{FIRST}\n{SECOND}"]
    with pytest.raises(CacheMiss, match="task 'Dan'"):
        run([*TASKS, {"id": "Dan", "question": "What is Dan like?"}], keeper(model), cache=cache, replay=True)


def test_a_cache_that_is_exported_has_the_notes_along(model, cache, tmp_path):
    first = run(TASKS, keeper(model), cache=cache)
    cache.export(tmp_path / "all.jsonl")
    with Cache(tmp_path / "other") as other:
        other.load(tmp_path / "all.jsonl")
        assert outputs(run(TASKS, keeper(model), cache=other, replay=True)) == outputs(first)


def test_a_run_that_is_done_anew_changes_what_those_after_it_begin_with(model, cache):
    run(TASKS[:2], keeper(model), cache=cache)
    for key in [key for key in cache if key.startswith(("run:", "completion:"))]:
        cache._store.delete(key)
    model.script = lambda body: re.sub("Ada", "Eve", said) if isinstance(said := diary(body), str) else changed(said)

    def changed(calls):
        return [(name, {key: value.replace("Ada", "Eve") for key, value in given.items()}) for name, given in calls]

    assert outputs(run(TASKS[:2], keeper(model), cache=cache)) == [NONE, "- What is Eve like?"]


def test_a_run_that_failed_has_noted_nothing(model, cache):
    def script(body):
        said = diary(body)
        failing = "Ada" in body["messages"][0]["content"] and isinstance(said, str)
        return {"content": None} if failing else said

    model.script = script
    runs = run(TASKS[:2], keeper(model), cache=cache)
    assert runs["status"].tolist() == ["error", "ok"] and outputs(runs)[1] == NONE
    model.script = diary
    assert outputs(run(TASKS[:2], keeper(model), cache=cache)) == [SECOND, NONE]


def test_a_callable_with_lasting_notes_finds_them_in_its_session(cache):
    class Keeper:
        name, memory = "keeper", "mine"

        async def __call__(self, task, session):
            await asyncio.sleep(0)
            seen = session.memory.recall()
            session.memory.remember(task.id)
            return ",".join(seen)

    assert outputs(run(TASKS, Keeper(), cache=cache)) == ["", "Ada", "Ada,Bob"]
    assert outputs(run(TASKS, Keeper(), cache=cache)) == ["", "Ada", "Ada,Bob"]


def test_what_cannot_be_meant_is_said_before_anything_is_asked(model):
    with pytest.raises(InputError, match=re.escape("Agent: memory=3 should be True (for one run) or the name")):
        Agent(model.model, memory=3)
    with pytest.raises(InputError, match="notes are kept with tools, and 'basic' calls none"):
        Agent(model.model, "basic", memory=True)
    with pytest.raises(InputError, match="agent 'keeper' keeps notes in the cache, and there is none"):
        run(TASKS, keeper(model), cache=False)
    with pytest.raises(InputError, match="does not call tools itself; use strategy='react'"):
        run(TASKS, Agent(local.SMOLLM2, memory=True), cache=False)
    assert model.requests == []


def test_notes_are_in_the_fingerprint_and_the_repr():
    plain, short, lasting = (Agent("openai/m", memory=memory) for memory in (False, True, "diary"))
    assert len({agent.fingerprint for agent in (plain, short, lasting)}) == 3
    assert repr(lasting) == "Agent('openai/m', 'tools', memory='diary')"
