"""Reflection and explore: the exact messages, and what `prompt=` replaces."""

from __future__ import annotations

import json
import re

import pytest

from mcpeval import local
from mcpeval.agents import Agent, explore, react, reflection
from mcpeval.agents.composed import fill
from mcpeval.errors import InputError
from mcpeval.running import run
from mcpeval.testing import ScriptedModel, toy_server

QUESTION = "What is 1 + 2?"
ADD = {"a": 1, "b": 2}
TASK = {"id": "sum", "question": QUESTION, "mcp_servers": [{"name": "toy", "tools": ["add"]}]}
TOOLS = '\nTools:\n- add {"a": number, "b": number}: Add two numbers.'


def step(note=None, **action):
    return json.dumps({**({} if note is None else {"note": note}), "thought": "t", "action": action})


CALL, ANSWER = step(tool="add", arguments=ADD), step(answer="It is 3.")


def play(script, strategy, task=TASK, **more):
    """The one row that an agent on a scripted model makes, and the requests that it sent."""
    with ScriptedModel(script) as model:
        agent = Agent(model.model, strategy, name="me", **{**model.params, **more})
        return run([task], agent, servers={"toy": toy_server}, cache=False).iloc[0], model.requests


def opening(instructions):
    return [{"role": "system", "content": instructions + TOOLS}, {"role": "user", "content": QUESTION}]


def says(role, content):
    return {"role": role, "content": content}


# --- reflection ---------------------------------------------------------------------------------


def critical(steps, critiques):
    """A script of an agent's steps, and of what its critic says."""
    told, said = iter(steps), iter(critiques)
    return lambda body: next(said if body["messages"][0]["content"] == reflection.CRITIC else told)


def test_the_messages_of_reflection():
    row, requests = play(critical([CALL, CALL, ANSWER], ["Add less.", "The step is right."]), "reflection")
    first, critic, second, critic_again, third = [request["messages"] for request in requests]
    begin, observed = opening(react.INSTRUCTIONS), "Result of add:\n3.0"
    assert first == begin
    history = fill(reflection.HISTORY, question=QUESTION, steps=f"{CALL}\n\n{observed}")
    assert critic == [says("system", reflection.CRITIC), says("user", history)]
    told = says("user", f"{observed}\n\n{reflection.CRITIQUE}\nAdd less.")
    assert second == [*begin, says("assistant", CALL), told]
    # The critic remembers what it said of the steps before.
    history = fill(reflection.HISTORY, question=QUESTION, steps=f"{CALL}\n\n{told['content']}\n\n{CALL}\n\n{observed}")
    assert critic_again == [says("system", reflection.CRITIC), says("user", history)]
    again = says("user", f"{observed}\n\n{reflection.CRITIQUE}\nThe step is right.")
    assert third == [*second, says("assistant", CALL), again]
    assert [bool(request.get("response_format")) for request in requests] == [True, False, True, False, True]
    assert (row["status"], row["output"], row["turns"], row["n_tool_calls"]) == ("ok", "It is 3.", 5, 2)
    assert row["tokens_in"] == 50


def test_the_critic_is_in_the_transcript_by_name_and_nothing_of_the_conversation_is_repeated():
    row, requests = play(critical([CALL, ANSWER], ["The step is right."]), "reflection")
    own = [message for message in row["messages"] if "agent" not in message]
    assert own == [*requests[2]["messages"], says("assistant", ANSWER)]
    others = [message for message in row["messages"] if "agent" in message]
    assert [(m["role"], m["agent"]) for m in others] == [(r, "me:critic") for r in ("system", "user", "assistant")]


def test_the_answer_and_what_is_no_step_are_not_criticised():
    row, requests = play(critical(["Hm.", ANSWER], []), "reflection")
    assert (row["output"], row["turns"], len(requests)) == ("It is 3.", 2, 2)


def test_an_empty_critique_leaves_the_result_alone():
    row, requests = play(critical([CALL, ANSWER], [{"content": ""}]), "reflection")
    assert requests[-1]["messages"][-1] == says("user", "Result of add:\n3.0")
    assert row["output"] == "It is 3."


# --- explore ------------------------------------------------------------------------------------


def test_the_messages_and_the_schema_of_explore():
    steps = [
        step("", tool="add", arguments=ADD),
        step("Adds; answers with a float.", tool="add", arguments=ADD),
        step("Sure now.", answer="It is 3."),
    ]
    row, requests = play(steps, "explore", min_tool_calls=2)
    begin, observed = opening(explore.INSTRUCTIONS.replace("{calls}", "2")), "Result of add:\n3.0"
    assert [request["messages"] for request in requests] == [
        begin,
        [*begin, says("assistant", steps[0]), says("user", observed)],
        [
            *begin,
            says("assistant", steps[0]),
            says("user", observed),
            says("assistant", steps[1]),
            says("user", f"{observed}\n\n{explore.EXPLORED}"),
        ],
    ]
    schemas = [request["response_format"]["json_schema"]["schema"] for request in requests]
    assert [list(schema["properties"]) for schema in schemas] == [["note", "thought", "action"]] * 3
    kinds = [["answer" in a["properties"] for a in s["properties"]["action"]["anyOf"]] for s in schemas]
    assert kinds == [[False], [False], [False, True]]
    assert (row["status"], row["output"], row["turns"], row["n_tool_calls"]) == ("ok", "It is 3.", 3, 2)


def test_explore_has_to_call_six_times_unless_told_otherwise_and_an_early_answer_is_sent_back():
    assert Agent("openai/m", "explore").min_tool_calls == 6
    assert repr(Agent("openai/m", "explore")) == "Agent('openai/m', 'explore')"
    assert Agent("openai/m", "react").min_tool_calls == 0
    with pytest.raises(InputError, match="min_tool_calls=6 leaves no turn"):
        Agent("openai/m", "explore", max_turns=6)
    early, call = step("", answer="3"), step("", tool="add", arguments=ADD)
    row, requests = play([early, *[call] * 6, step("", answer="3")], "explore")
    assert "call a tool before you answer" in requests[1]["messages"][-1]["content"]
    assert (row["n_tool_calls"], row["output"], row["turns"]) == (6, "3", 8)


def test_explore_without_tools_answers():
    row, requests = play([step("", answer="3")], "explore", {"question": QUESTION}, servers=[])
    assert (row["output"], row["turns"]) == ("3", 1)
    assert explore.INSTRUCTIONS.replace("{calls}", "0") == requests[0]["messages"][0]["content"]


def test_the_old_names_of_explore_are_known():
    for alias in ("explore_and_exploit", "explore_exploit"):
        assert Agent("openai/m", alias) == Agent("openai/m", "explore")


def test_the_embedded_model_explores_and_reflects_in_well_formed_steps():
    for strategy, more in [("explore", {"min_tool_calls": 1}), ("reflection", {"min_tool_calls": 1})]:
        agent = Agent(local.SMOLLM2, strategy, max_turns=2, max_tokens=200, temperature=0, **more)
        row = run([TASK], agent, servers={"toy": toy_server}, cache=False).iloc[0]
        assert (row["status"], row["n_tool_calls"], row["cost_usd"]) == ("ok", 1, 0.0)
        assert isinstance(row["output"], str)


# --- prompt= ------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["react", "reflection", "explore"])
def test_a_prompt_replaces_the_instructions_and_is_in_the_fingerprint(strategy):
    given = {"prompt": "Mine, with {calls}.", "system": "You add.", "min_tool_calls": 0}
    _, requests = play([ANSWER], strategy, **given)
    text = "Mine, with 0." if strategy == "explore" else "Mine, with {calls}."
    assert requests[0]["messages"][0] == says("system", f"You add.\n\n{text}{TOOLS}")
    mine, usual = Agent("openai/m", strategy, prompt="Mine."), Agent("openai/m", strategy)
    assert mine.fingerprint != usual.fingerprint
    assert repr(mine) == f"Agent('openai/m', '{strategy}', prompt='Mine.')"


def test_a_prompt_for_a_strategy_without_instructions_is_refused():
    with pytest.raises(InputError, match=re.escape("'tools' has no instructions to replace; use system=")):
        Agent("openai/m", prompt="Mine.")
