"""Agents: the exact messages of each strategy, and what models and callables may do wrong."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from dataclasses import replace

import jsonschema
import pytest

from mcpeval import local
from mcpeval.agents import STRATEGIES, Agent, as_agent, react, strategy
from mcpeval.agents.base import FORM
from mcpeval.agents.schemas import constraint, notation, shape
from mcpeval.agents.session import Session
from mcpeval.errors import InputError
from mcpeval.running import run
from mcpeval.testing import ScriptedModel, toy_server
from mcpeval.types import Run, Task, Usage

QUESTION = "What is 1 + 2?"
ADD = {"a": 1, "b": 2}
CALL = json.dumps({"thought": "I add.", "action": {"tool": "add", "arguments": ADD}})
ANSWER = json.dumps({"thought": "It is there.", "action": {"answer": "It is 3."}})


def toys(*names):
    """A task that offers the toy server's tools of these names."""
    return {"id": "sum", "question": QUESTION, "mcp_servers": [{"name": "toy", "tools": list(names)}]}


def play(script, strategy="tools", task=None, **more):
    """The one row that an agent on a scripted model makes, and the requests that it sent."""
    with ScriptedModel(script) as model:
        agent = Agent(model.model, strategy, **{**model.params, **more})
        frame = run([task or toys("add")], agent, servers={"toy": toy_server}, cache=False)
        return frame.iloc[0], model.requests


# --- what an agent is ---------------------------------------------------------------------------


def test_an_agent_has_a_readable_name_and_strategies_their_old_names():
    assert Agent("openai/gpt-4.1-mini", "react").name == "react:gpt-4.1-mini"
    assert Agent("openai/gpt-4.1-mini", name="mine").name == "mine"
    assert {Agent("m", alias).strategy for alias in ("tools", "fc", "function_call", "function-call")} == {"tools"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"strategy": "reakt"}, "strategy='reakt'. Did you mean 'react'?"),
        ({"max_turn": 3}, "'max_turn'. Did you mean 'max_turns'?"),
        ({"temprature": 0}, "'temprature'. Did you mean 'temperature'?"),
        ({"max_turns": 0}, "max_turns=0 should be a whole number, at least 1"),
        ({"min_tool_calls": 20}, "min_tool_calls=20 leaves no turn to answer in; max_turns is 20"),
        ({"tools": []}, "tools=[] is set by the loop itself"),
        ({"stream": True}, "stream=True is set by the loop itself"),
        ({"servers": [{"name": "time"}]}, "should be names"),
        ({"system": 7}, "system=7 should be a text"),
        ({"stop": {1}}, "$.stop: set is not JSON"),
    ],
)
def test_what_cannot_be_meant_is_said_when_the_agent_is_written(given, said):
    with pytest.raises(InputError, match=re.escape(said)):
        Agent("openai/gpt-4.1-mini", **given)


def test_an_agent_without_a_model_takes_the_default_one(monkeypatch):
    monkeypatch.setenv("MCPEVAL_MODEL", "openai/of-the-environment")
    assert Agent().model == "openai/of-the-environment"


def test_the_fingerprint_is_of_all_that_shapes_an_answer_and_of_nothing_else():
    base = Agent("openai/gpt-4.1-mini", "react", temperature=0)
    same = [
        Agent("openai/gpt-4.1-mini", "react", temperature=0.0),
        Agent("openai/gpt-4.1-mini", "react", temperature=0, name="other", api_key="sk-secret"),
        Agent("openai/gpt-4.1-mini", "react", temperature=0, timeout=3, retries=0, extra_headers={"X": "secret"}),
    ]
    other = [
        Agent("openai/gpt-4.1", "react", temperature=0),
        Agent("openai/gpt-4.1-mini", "tools", temperature=0),
        Agent("openai/gpt-4.1-mini", "react", temperature=1),
        Agent("openai/gpt-4.1-mini", "react", temperature=0, api_base="http://127.0.0.1:1/v1"),
        Agent("openai/gpt-4.1-mini", "react", temperature=0, system="Be short."),
        Agent("openai/gpt-4.1-mini", "react", temperature=0, max_turns=3),
        Agent("openai/gpt-4.1-mini", "react", temperature=0, min_tool_calls=1),
        Agent("openai/gpt-4.1-mini", "react", temperature=0, servers=["time"]),
    ]
    assert {agent.fingerprint for agent in same} == {base.fingerprint}
    assert len({agent.fingerprint for agent in [base, *other]}) == len(other) + 1


def test_a_strategy_registered_again_replaces_the_old_one_and_its_prompt_is_in_the_fingerprint():
    async def loop(agent, task, session):
        return "done"

    try:
        strategy("pensive", prompts=["Think."])(loop)
        first = Agent("openai/m", "pensive").fingerprint
        strategy("pensive", prompts=["Think hard."])(loop)
        assert Agent("openai/m", "pensive").fingerprint != first
        assert outcome(Agent("openai/m", "pensive", api_key="k", api_base="http://127.0.0.1:1"))["output"] == "done"
    finally:
        del STRATEGIES["pensive"]


def test_an_agent_shows_no_secret():
    assert repr(Agent("m", max_turns=3, api_key="sk-secret")) == "Agent('m', 'tools', max_turns=3, api_key='...')"
    shown = repr(Agent("openai/m", api_base="https://me:pass@example.org/v1?key=query"))
    assert shown == "Agent('openai/m', 'tools', api_base='https://example.org/v1')"


def test_a_models_name_stands_for_an_agent_that_suits_it():
    assert as_agent("openai/gpt-4.1-mini") == Agent("openai/gpt-4.1-mini", "tools")
    assert as_agent(local.SMOLLM2) == Agent(local.SMOLLM2, "react")


# --- basic --------------------------------------------------------------------------------------


def test_basic_sends_the_question_and_the_form_of_the_answer():
    form = {"city": "<CITY>", "population": "<NUMBER>"}
    row, requests = play(["Paris"], "basic", {"id": "t", "question": "Largest city of France?", "output_format": form})
    asked = f'Largest city of France?\n\n{FORM}\n{{"city": "<CITY>", "population": "<NUMBER>"}}'
    any_of = {"type": ["string", "number", "boolean"]}
    schema = {
        "type": "object",
        "required": ["city", "population"],
        "additionalProperties": False,
        "properties": {"city": any_of, "population": any_of},
    }
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    asked = [{"role": "user", "content": asked}]
    assert requests == [{"model": "scripted", "messages": asked, "response_format": form}]
    assert row["messages"] == [*requests[0]["messages"], {"role": "assistant", "content": "Paris"}]
    assert (row["output"], row["status"], row["turns"], row["n_tool_calls"]) == ("Paris", "ok", 1, 0)
    assert (row["tokens_in"], row["tokens_out"]) == (10, 5)


def test_a_system_text_and_parameters_are_sent_and_no_key_but_in_the_header():
    row, requests = play(["4"], "basic", {"question": "2 + 2?"}, system="Be short.", temperature=0.5, max_tokens=9)
    assert requests == [
        {
            "model": "scripted",
            "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "2 + 2?"}],
            "temperature": 0.5,
            "max_tokens": 9,
        }
    ]


# --- tools --------------------------------------------------------------------------------------


def test_the_messages_and_tools_that_tools_sends():
    row, requests = play([[("add", ADD)], "It is 3."])
    user = {"role": "user", "content": QUESTION}
    function = {"name": "add", "arguments": '{"a": 1, "b": 2}'}
    asked = {
        "role": "assistant",
        "tool_calls": [{"id": "call_0", "type": "function", "function": function}],
    }
    told = {"role": "tool", "tool_call_id": "call_0", "content": "3.0"}
    number = {"type": "number"}
    schema = {
        "type": "object",
        "properties": {"a": {"title": "A", **number}, "b": {"title": "B", **number}},
        "required": ["a", "b"],
        "title": "addArguments",
    }
    tools = [{"type": "function", "function": {"name": "add", "description": "Add two numbers.", "parameters": schema}}]
    assert requests == [
        {"model": "scripted", "messages": [user], "tools": tools},
        {"model": "scripted", "messages": [user, asked, told], "tools": tools},
    ]
    asked = {"content": None, **asked}
    assert row["messages"] == [user, asked, told, {"role": "assistant", "content": "It is 3."}]
    (call,) = row["tool_calls"]
    assert (call["server"], call["name"], call["arguments"], call["is_error"]) == ("toy", "add", ADD, False)
    assert call["result"]["structuredContent"] == {"result": 3.0}
    assert (row["output"], row["turns"], row["n_tool_calls"], row["tokens_in"]) == ("It is 3.", 2, 1, 20)


def meeting_server():
    """A server whose tool answers when two have called it, and never before."""
    server, waiting = toy_server("toy"), []

    @server.tool()
    async def meet(name: str) -> str:
        """Wait for another caller."""
        waiting.append(name)
        while len(waiting) < 2:
            await asyncio.sleep(0.01)
        return f"{name} met {sorted(set(waiting) - {name})[0]}"

    return server


def test_calls_that_are_asked_for_together_are_made_together():
    with ScriptedModel([[("meet", {"name": "Ada"}), ("meet", {"name": "Bob"})], "done"]) as model:
        task = {"question": QUESTION, "mcp_servers": [{"name": "toy", "tools": ["meet"]}]}
        row = run([task], Agent(model.model, **model.params), servers={"toy": meeting_server}, cache=False).iloc[0]
    assert [m["content"] for m in row["messages"] if m["role"] == "tool"] == ["Ada met Bob", "Bob met Ada"]
    assert [call["arguments"]["name"] for call in row["tool_calls"]] == ["Ada", "Bob"]


@pytest.mark.parametrize(
    ("text", "sent", "said"),
    [
        ('{"a": 1, "b"', '{"not_a_json_object": "{\\"a\\": 1, \\"b\\""}', "The arguments are not valid JSON"),
        ("[1, 2]", '{"not_a_json_object": "[1, 2]"}', "The arguments are not a JSON object"),
    ],
)
def test_malformed_arguments_are_told_to_the_model_which_recovers(text, sent, said):
    row, requests = play([[("add", text)], [("add", ADD)], "It is 3."])
    assert row["output"] == "It is 3."
    # A provider that parses the conversation would refuse the text; the transcript keeps it all the same.
    assert requests[1]["messages"][1]["tool_calls"][0]["function"]["arguments"] == sent
    assert row["messages"][1]["tool_calls"][0]["function"]["arguments"] == text
    told = requests[1]["messages"][2]["content"]
    assert told.startswith(said) and told.endswith("Call the tool again with a JSON object.")
    bad, good = row["tool_calls"]
    assert (bad["server"], bad["name"], bad["arguments"], bad["result"], bad["is_error"]) == (
        "toy",
        "add",
        text,
        None,
        True,
    )
    assert not good["is_error"]


def test_a_tool_that_is_not_there_is_told_to_the_model_which_recovers():
    row, requests = play([[("ad", ADD)], [("add", ADD)], "It is 3."])
    assert requests[1]["messages"][2]["content"] == "There is no tool 'ad'. Did you mean 'add'?"
    assert (row["tool_calls"][0]["server"], row["tool_calls"][0]["is_error"]) == (None, True)
    assert row["output"] == "It is 3."


def test_a_tool_without_arguments_may_be_called_with_none():
    row, requests = play([[("notes", "")], "None."], task=toys("notes"))
    assert requests[1]["messages"][1]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert (row["tool_calls"][0]["arguments"], row["tool_calls"][0]["is_error"]) == ({}, False)


def test_a_tool_that_fails_is_told_to_the_model():
    row, requests = play([[("boom", {"message": "no ink"})], "It failed."], task=toys("boom"))
    assert "no ink" in requests[1]["messages"][2]["content"]
    assert (row["status"], row["tool_calls"][0]["is_error"]) == ("ok", True)


def test_the_turn_limit_ends_a_run_with_all_that_it_did():
    row, requests = play(lambda body: [("add", ADD)], max_turns=3)
    assert (row["status"], row["error_class"], row["error"]) == (
        "error",
        "turn_limit",
        "no final answer within max_turns=3",
    )
    assert row["output"] != row["output"]  # missing
    assert (row["turns"], row["n_tool_calls"], row["tokens_in"], len(requests)) == (3, 3, 30, 3)
    assert [message["role"] for message in row["messages"]] == ["user", *["assistant", "tool"] * 3]


def test_a_minimum_of_tool_calls_is_required_of_the_model_and_then_no_more():
    script = [[("add", ADD), ("add", ADD)], [("add", ADD)], "It is 3."]
    _, requests = play(script, min_tool_calls=3)
    assert [request.get("tool_choice") for request in requests] == ["required", "required", None]
    _, requests = play(["It is 3."], min_tool_calls=1, task={"question": QUESTION}, servers=[])
    assert "tool_choice" not in requests[0] and "tools" not in requests[0]


def test_a_huge_result_is_cut_with_a_marker_and_the_row_says_so():
    row, requests = play([[("echo", {"text": "x" * 70_000})], "Long."], task=toys("echo"))
    shown = requests[1]["messages"][2]["content"]
    assert len(shown) < 51_000 and "[... 20000 characters cut ...]" in shown
    assert row["metadata"]["truncated"] is True
    assert len(row["tool_calls"][0]["result"]["content"][0]["text"]) == 70_000
    assert play(["Short."])[0]["metadata"]["truncated"] is False


# --- react --------------------------------------------------------------------------------------


def test_the_messages_and_the_schema_that_react_sends():
    row, requests = play([CALL, ANSWER], "react")
    system = react.INSTRUCTIONS + '\nTools:\n- add {"a": number, "b": number}: Add two numbers.'
    opening = [{"role": "system", "content": system}, {"role": "user", "content": QUESTION}]
    number, text = {"type": "number"}, {"type": "string"}

    def closed(**properties):
        return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}

    call = closed(tool={**text, "enum": ["add"]}, arguments=closed(a=number, b=number))
    action = {"anyOf": [call, closed(answer=text)]}
    schema = closed(thought={**text, "maxLength": 1000}, action=action)
    assert [request["messages"] for request in requests] == [
        opening,
        [*opening, {"role": "assistant", "content": CALL}, {"role": "user", "content": "Result of add:\n3.0"}],
    ]
    for request in requests:
        assert request["response_format"] == {"type": "json_schema", "json_schema": {"name": "step", "schema": schema}}
        assert "tools" not in request
    assert row["messages"] == [*requests[1]["messages"], {"role": "assistant", "content": ANSWER}]
    assert (row["output"], row["turns"], row["n_tool_calls"]) == ("It is 3.", 2, 1)


def kinds(request):
    """Which actions the schema of a request allows."""
    schema = request["response_format"]["json_schema"]["schema"]
    return ["answer" if "answer" in a["properties"] else "call" for a in schema["properties"]["action"]["anyOf"]]


def test_the_first_steps_have_to_be_calls_and_the_last_turn_the_answer():
    _, requests = play([CALL, CALL, ANSWER], "react", min_tool_calls=1, max_turns=3)
    assert [kinds(request) for request in requests] == [["call"], ["call", "answer"], ["answer"]]


def test_without_a_schema_an_answer_that_comes_too_early_is_sent_back():
    row, requests = play([ANSWER, CALL, ANSWER], "react", min_tool_calls=1, response_format=None)
    assert all("response_format" not in request for request in requests)
    assert requests[1]["messages"][-1]["content"].startswith("That was not a step: call a tool before you answer.")
    assert (row["output"], row["n_tool_calls"]) == ("It is 3.", 1)


@pytest.mark.parametrize(
    "written",
    [
        f"```json\n{CALL}\n```",
        f"I should add. {CALL} Then I will know.",
        f"<think>Perhaps {ANSWER}?</think>{CALL}",
        CALL + '\nResult of add:\n4\n{"thought": "made up", "action": {"answer": "4"}}',
        '{"tool": "add", "arguments": {"a": 1, "b": 2}}',
        '{"thought": "a line\nbreak", "action": {"tool": "add", "arguments": {"a": 1, "b": 2}}}',
        '{"thought": "no end", "action": {"tool": "add", "arguments": {"a": 1, "b": 2}}',
    ],
)
def test_a_step_is_found_in_what_models_write_around_it(written):
    row, _ = play([written, ANSWER], "react", response_format=None)
    assert [(call["name"], call["arguments"], call["is_error"]) for call in row["tool_calls"]] == [("add", ADD, False)]
    assert row["output"] == "It is 3."


def test_what_is_no_step_is_asked_for_again_and_a_good_one_starts_the_count_anew():
    row, requests = play(["Hm.", "{}", CALL, "Hm.", "Hm.", ANSWER], "react")
    assert row["output"] == "It is 3."
    assert requests[1]["messages"][-1]["content"] == (
        "That was not a step: there is no JSON object in it. Write one JSON object as told, and nothing else."
    )
    assert "neither a tool with arguments nor an answer" in requests[2]["messages"][-1]["content"]


def test_three_bad_steps_in_a_row_end_the_run_with_all_that_it_did():
    row, requests = play([CALL, "Hm.", "Hm.", "Hm."], "react")
    assert (row["status"], row["error_class"]) == ("error", "bad_json")
    assert row["error"] == "no step in 3 answers: there is no JSON object in it"
    assert (row["turns"], row["n_tool_calls"], len(requests)) == (4, 1, 4)
    assert row["output"] != row["output"]
    assert row["messages"][-1] == {"role": "assistant", "content": "Hm."}


def test_an_answer_that_is_structured_becomes_json_and_not_pythons_repr():
    written = json.dumps({"thought": "", "action": {"answer": ["Zürich", None, {"ok": True}]}})
    row, _ = play([written], "react")
    assert row["output"] == '["Zürich", null, {"ok": true}]'


def test_the_answers_schema_has_the_shape_of_the_output_format():
    task = {**toys("add"), "output_format": {"city": "<CITY>", "found": True, "temperatures": [0.5]}}
    _, requests = play([ANSWER], "react", task=task)
    answer = requests[0]["response_format"]["json_schema"]["schema"]["properties"]["action"]["anyOf"][1]["properties"][
        "answer"
    ]
    good = {"city": "Paris", "found": False, "temperatures": [1, 2.5]}
    jsonschema.validate(good, answer)
    for bad in ({}, {**good, "found": "no"}, {**good, "more": 1}, "Paris"):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, answer)


def test_the_embedded_model_writes_nothing_but_well_formed_steps():
    agent = Agent(local.SMOLLM2, "react", min_tool_calls=1, max_turns=2, max_tokens=200, temperature=0)
    row = run([toys("add", "echo")], agent, servers={"toy": toy_server}, cache=False).iloc[0]
    assert (row["status"], row["turns"], row["n_tool_calls"], row["cost_usd"]) == ("ok", 2, 1, 0.0)
    assert row["tool_calls"][0]["name"] in ("add", "echo") and isinstance(row["tool_calls"][0]["arguments"], dict)
    assert list(json.loads(row["messages"][2]["content"])) == ["action"]
    assert isinstance(row["output"], str)


# --- schemas ------------------------------------------------------------------------------------

TREE = {
    "type": "object",
    "$schema": "http://json-schema.org/draft-07/schema#",
    "properties": {
        "place": {"$ref": "#/$defs/Place"},
        "when": {"type": "string", "format": "date", "pattern": "^\\d", "description": "the\n  day"},
        "unit": {"enum": ["C", "F"], "type": "string"},
        "many": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]}},
        "lost": {"$ref": "#/$defs/nowhere"},
    },
    "required": ["place", "unit"],
    "$defs": {
        "Place": {
            "type": "object",
            "properties": {"name": {"type": "string", "maxLength": 400}, "inside": {"$ref": "#/$defs/Place"}},
            "required": ["name"],
        }
    },
}


def test_a_tools_schema_can_stand_inside_another_one():
    inner = constraint(TREE)
    assert not re.search(r"\$|pattern|format|description", json.dumps(inner))
    step = react.step_schema([{"function": {"name": "look", "parameters": TREE}}])
    jsonschema.Draft202012Validator.check_schema(step)
    good = {"place": {"name": "Rome", "inside": {"any": 1}}, "unit": "C", "many": [None, {"name": "Bonn"}], "lost": {}}

    def written(arguments):
        return {"thought": "", "action": {"tool": "look", "arguments": arguments}}

    jsonschema.validate(written(good), step)
    for bad in ({**good, "unit": "K"}, {"unit": "C"}, {**good, "many": [1]}, {**good, "more": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(written(bad), step)


def test_an_embedded_models_texts_and_lists_are_bounded():
    inner = constraint(TREE, limit=100)
    place = inner["properties"]["place"]["properties"]
    assert place["name"]["maxLength"] == 100
    assert inner["properties"]["when"]["maxLength"] == 100
    assert "maxLength" not in inner["properties"]["unit"]
    assert inner["properties"]["many"]["maxItems"] == 3
    assert inner["properties"]["many"]["items"]["anyOf"][0]["properties"]["name"]["maxLength"] == 50


def test_a_schema_is_shown_in_a_few_words():
    assert notation(TREE) == (
        '{"place": {"name": string, "inside"?: object}, "when"?: string (the day), "unit": "C" | "F", '
        '"many"?: [{"name": string, "inside"?: object} | null], "lost"?: object}'
    )
    assert notation({}) == "any" and notation({"type": ["integer", "null"]}) == "integer | null"


def test_what_is_a_schema_already_is_the_shape_of_the_answer():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert shape(schema) == schema
    assert shape({"n": 1})["properties"] == {"n": {"type": "number"}}


# --- answers that are none, and failures --------------------------------------------------------


def ask(endpoint, model, strategy="basic", **more):
    endpoint.script(None)
    agent = Agent(f"openai/{model}", strategy, api_base=endpoint.base, api_key="sk-test-000001", retries=0, **more)
    return run(["Is it late?"], agent, cache=False).iloc[0]


@pytest.mark.parametrize(
    ("model", "error_class", "detail"),
    [
        ("r401", "model", "auth"),
        ("r404", "model", "model"),
        ("r500", "model", "model"),
        ("r429", "rate", "rate"),
        ("context", "context", "context"),
        ("hang", "timeout", "timeout"),
    ],
)
def test_a_providers_failure_is_the_runs_error_and_never_its_answer(endpoint, model, error_class, detail):
    row = ask(endpoint, model, timeout=0.5)
    assert (row["status"], row["error_class"], row["metadata"]["model_error"]) == ("error", error_class, detail)
    assert row["output"] != row["output"] and row["error"]
    assert row["messages"] == [{"role": "user", "content": "Is it late?"}]


@pytest.mark.parametrize("model", ["filtered", "null", "empty"])
def test_a_filtered_or_empty_answer_is_an_error_of_the_model(endpoint, model):
    row = ask(endpoint, model)
    assert (row["status"], row["error_class"], row["turns"]) == ("error", "model", 1)
    assert row["output"] != row["output"]


def test_a_cut_answer_is_an_answer_and_the_row_says_that_it_was_cut(endpoint):
    row = ask(endpoint, "truncated")
    assert (row["status"], row["metadata"]["truncated"]) == ("ok", True) and row["output"]


def test_a_parameter_that_the_model_refuses_is_dropped_and_recorded(endpoint):
    row = ask(endpoint, "no-temperature", temperature=0.7)
    assert (row["status"], row["metadata"]["dropped_params"]) == ("ok", ["temperature"])
    assert row["metadata"]["model_returned"] == ["no-temperature"]


def test_nothing_of_one_task_is_in_the_messages_of_the_next():
    with ScriptedModel(lambda body: "fine" if "tool" in body["messages"][-1]["role"] else [("notes", {})]) as model:
        tasks = [{"id": name, "question": f"Tell me of {name}."} for name in ("Ada", "Bob", "Cy")]
        frame = run(tasks, Agent(model.model, **model.params), servers={"toy": toy_server}, cache=False, concurrency=3)
        for request in model.requests:
            assert sum(name in json.dumps(request["messages"]) for name in ("Ada", "Bob", "Cy")) == 1
    assert frame["n_tool_calls"].tolist() == [1, 1, 1]


# --- callables ----------------------------------------------------------------------------------


def outcome(agent, **more):
    return run([toys("add")], agent, servers={"toy": toy_server}, cache=False, **more).iloc[0]


def test_an_async_function_is_an_agent_with_tools_a_model_and_a_transcript():
    with ScriptedModel(["three"]) as model:

        async def mine(task, session):
            call = await session.call_tool("add", ADD)
            told = f"{task.question} Hint: {session.show(call)}"
            answer = await session.complete([{"role": "user", "content": told}], model=model.model, **model.params)
            return answer.text

        row = outcome(mine)
    assert (row["agent"], row["model"], row["output"]) == ("mine", "openai/scripted", "three")
    assert (row["turns"], row["n_tool_calls"], row["tokens_in"]) == (1, 1, 10)
    assert row["messages"] == [
        {"role": "user", "content": f"{QUESTION} Hint: 3.0"},
        {"role": "assistant", "content": "three"},
    ]


def test_a_plain_function_is_an_agent_whose_session_answers_at_once():
    with ScriptedModel(["three"]) as model:

        def mine(task, session):
            assert threading.current_thread() is not threading.main_thread()
            assert session.call_tool("add", ADD).result["structuredContent"] == {"result": 3.0}
            return session.complete(
                [{"role": "user", "content": task.question}], model=model.model, **model.params
            ).text

        row = outcome(mine)
    assert (row["status"], row["output"], row["turns"], row["n_tool_calls"]) == ("ok", "three", 1, 1)


def test_plain_functions_run_side_by_side_however_many_they_are():
    barrier = threading.Barrier(12, timeout=30)
    frame = run(
        [f"Question number {i}?" for i in range(12)],
        lambda task, session: str(barrier.wait()),
        cache=False,
        concurrency=12,
    )
    assert frame["status"].tolist() == ["ok"] * 12
    assert sorted(map(int, frame["output"])) == list(range(12))


def test_a_lambda_around_a_coroutine_an_object_and_an_agent_inside_are_agents():
    with ScriptedModel(["three", "four"]) as model:
        inner = Agent(model.model, "basic", **model.params)

        class Twice:
            name = "twice"

            async def __call__(self, task, session):
                first = await inner(task, session)
                second = await inner(Task("again", f"{task.question} Not {first.output}."), session)
                return f"{first.output}, {second.output}"

        assert outcome(lambda task, session: inner(task, session))["output"] == "three"
        row = outcome(Twice())
    assert (row["agent"], row["output"], row["turns"]) == ("twice", "three, three", 2)
    # Two conversations, one after the other; nothing is repeated and nothing is lost.
    assert [message["content"] for message in row["messages"]] == [QUESTION, "three", f"{QUESTION} Not three.", "three"]


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        ("text", "text"),
        ({"city": "Zürich"}, '{"city": "Zürich"}'),
        ([1, None, True], "[1, null, true]"),
        (7, "7"),
        (Run({"a": [1]}), '{"a": [1]}'),
    ],
)
def test_what_a_callable_returns_becomes_text_and_never_pythons_repr(answer, output):
    assert outcome(lambda task, session: answer)["output"] == output


def test_a_callable_may_return_nothing_or_a_whole_run():
    nothing = outcome(lambda task, session: None)
    assert nothing["status"] == "ok" and nothing["output"] != nothing["output"]
    usage = Usage(tokens_in=7, tokens_out=1, cost_usd=0.25, calls=1)
    given = Run("yes", messages=[{"role": "user", "content": "?"}], usage=usage, turns=1, metadata={"note": "mine"})
    row = outcome(lambda task, session: given)
    assert (row["output"], row["tokens_in"], row["cost_usd"], row["turns"]) == ("yes", 7, 0.25, 1)
    assert row["messages"] == [{"role": "user", "content": "?"}] and row["metadata"]["note"] == "mine"
    failed = outcome(lambda task, session: Run(status="error", error="gave up", error_class="turn_limit"))
    assert (failed["status"], failed["error"], failed["error_class"]) == ("error", "gave up", "turn_limit")


def fails(task, session):
    session.call_tool("add", ADD)
    raise ValueError("the weights are wrong")


async def leaves(task, session):
    raise SystemExit("bye")


async def cancels_itself(task, session):
    raise asyncio.CancelledError


def leaves_its_thread(task, session):
    raise SystemExit("bye")


def test_an_exception_in_a_callable_is_the_harness_error_of_its_row_with_what_it_did_until_then():
    row = outcome(fails)
    assert (row["status"], row["error_class"]) == ("error", "harness")
    assert row["error"] == "ValueError: the weights are wrong" and row["output"] != row["output"]
    assert "in fails" in row["metadata"]["traceback"]
    assert [call["name"] for call in row["tool_calls"]] == ["add"]


@pytest.mark.parametrize("agent", [leaves, cancels_itself, leaves_its_thread, lambda task, session: next(iter(()))])
def test_a_callable_that_leaves_in_a_strange_way_fails_its_own_row_only(agent):
    assert outcome(agent)["error_class"] == "harness"
    assert outcome(lambda task, session: "fine")["output"] == "fine"


def test_a_callable_that_returns_what_no_one_can_score_is_told_what_to_return():
    row = outcome(lambda task, session: object())
    assert row["error"].startswith("TypeError: the agent returned a object; expected a text")


@pytest.mark.parametrize("given", [7, Agent, lambda task: "x", None])
def test_what_is_no_agent_is_refused(given):
    with pytest.raises(InputError, match="agents has"):
        as_agent(given)


def test_a_failure_in_a_callables_own_task_group_keeps_its_class(endpoint):
    async def mine(task, session):
        async with asyncio.TaskGroup() as group:
            group.create_task(
                session.complete(
                    [{"role": "user", "content": "?"}],
                    model="openai/r429",
                    api_base=endpoint.base,
                    api_key="k",
                    retries=0,
                )
            )

    assert outcome(mine)["error_class"] == "rate"


def test_a_session_is_of_no_use_when_its_run_is_over():
    async def late():
        session = Session(Task("t", "q"))
        session.close()
        await asyncio.to_thread(session.call_tool, "add", ADD)

    with pytest.raises(RuntimeError, match="is over"):
        asyncio.run(late())


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ({"timeout": "x"}, "timeout='x' should be a number of seconds"),
        ({"deadline": 0}, "deadline=0 should be a number of seconds"),
        ({"retries": -1}, "retries=-1 should be a whole number"),
        ({"servers": 3}, "servers=3 should be names"),
        ({"servers": {"a": {"command": "x"}}}, "run(servers=...)"),
        ({"name": 3}, "name=3 should be a text"),
    ],
)
def test_an_agent_is_checked_where_it_is_written(argument, said):
    with pytest.raises(InputError, match=re.escape(said)):
        Agent("openai/good", **argument)


def test_a_run_that_is_none_is_in_its_row_and_the_others_are_kept():
    def odd(task, session):
        return Run("x", messages="abc") if task.id == "odd" else Run("x")

    tasks = [Task(id="odd", question=QUESTION), Task(id="even", question=QUESTION)]
    runs = run(tasks, odd, cache=False)
    assert runs["status"].tolist() == ["error", "ok"]
    assert runs["error"][0] == "InputError: Run: messages='abc' should be a list of dicts"
    with pytest.raises(InputError, match="Did you mean 'ok'"):
        Run("x", status="okk")


# --- made of another ------------------------------------------------------------------------------


def test_an_agent_is_made_of_another_by_replace_with_its_parameters():
    agent = Agent("openai/gpt-4.1-mini", "explore", servers={"toy": ["add"]}, memory=True, temperature=0, seed=1)
    other = replace(agent, name="other", temperature=1)
    assert (other.name, other.params) == ("other", {"temperature": 1, "seed": 1})
    assert replace(agent, name="other").fingerprint == agent.fingerprint
    assert replace(agent, params={"seed": 2}).params == {"seed": 2}
    assert as_agent(agent, "other").params == agent.params


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"params": 3}, "params=3 should be a dict"),
        ({"params": {"temprature": 0}}, "Did you mean 'temperature'?"),
        ({"memroy": True}, "Did you mean 'memory'?"),
        ({"name": " "}, "name=' ' should not be empty"),
        ({"servers": {1: ["add"]}}, "should be names of tools"),
    ],
)
def test_what_of_an_agent_cannot_be_meant_is_refused_when_it_is_written(more, said):
    with pytest.raises(InputError, match=re.escape(said)):
        Agent("openai/gpt-4.1-mini", **more)


def test_a_script_that_fails_is_said_and_not_tried_again():
    row, requests = play(lambda body: 1 / 0)
    assert row["error_class"] == "model" and "the script failed: ZeroDivisionError" in row["error"]
    assert len(requests) == 1
