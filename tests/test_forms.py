"""The form of an answer: put to the model as a schema, found in what it wrote, and a column of the row."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from mcpeval import llm, local
from mcpeval.agents import Agent, chain
from mcpeval.agents.forms import formed, json_values
from mcpeval.frames import RUN_COLUMNS
from mcpeval.running import run
from mcpeval.testing import ScriptedModel, toy_server

FORM = {"city": "<CITY>", "days": ["<DAY>"]}
ROME = {"city": "Rome", "days": ["Monday", "Friday"]}
JSON = json.dumps(ROME)


# --- what is found ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (JSON, JSON),
        (f" {JSON}\n", f" {JSON}\n"),
        (f"```json\n{JSON}\n```", JSON),
        (f"Gladly: {JSON} Is that all?", JSON),
        (f'<think>{{"city": "Oslo", "days": []}}</think>{JSON}', JSON),
        (f'At first {{"city": "Oslo", "days": []}}, but then {JSON}', JSON),
        (f'{JSON} from {{"weather": "mild"}}', JSON),
        ('{"city": "Rome", "days": [],}', None),
        ('{"city": "Rome"}', None),
        ('{"city": "Rome", "days": "Monday"}', None),
        ('{"city": "Rome", "days": [], "country": "Italy"}', None),
        ("Rome", None),
        ("[[[[", None),
    ],
)
def test_an_answer_is_found_in_what_stands_around_it_and_is_well_formed_or_not(text, found):
    assert formed(text, FORM) == ((text, False) if found is None else (found, True))


@pytest.mark.parametrize("form", [None, "", {}, [], "one word"])
def test_without_a_form_that_can_be_checked_nothing_is_said_and_nothing_changed(form):
    assert formed(f"```{JSON}```", form) == (f"```{JSON}```", None)


def test_an_answer_that_is_missing_is_neither():
    assert formed(None, FORM) == (None, None)


def test_a_list_may_be_the_form_and_a_schema_too():
    assert formed("It is [1, 2].", [0]) == ("[1, 2]", True)
    assert formed('It is [1, "b"].', [0]) == ('It is [1, "b"].', False)
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
    assert [formed(json.dumps({"n": n}), schema)[1] for n in (1, 0, "1")] == [True, False, False]


def test_values_are_read_in_order_and_of_what_is_broken_the_inner_ones():
    assert list(json_values('a [1] {"b": 2} [{"c": 3}, ')) == [[1], {"b": 2}, {"c": 3}]
    assert list(json_values('a [1] {"b": 2}', "{")) == [{"b": 2}]


# --- what is sent -------------------------------------------------------------------------------


def play(said, strategy="basic", form=FORM, **more):
    task = {"id": "t", "question": "Where?", "output_format": form, "mcp_servers": [{"name": "toy", "tools": ["add"]}]}
    with ScriptedModel(said) as model:
        agent = Agent(model.model, strategy, **{**model.params, **more})
        return run([task], agent, servers={"toy": toy_server}, cache=False).iloc[0], model.requests


def test_the_schema_is_sent_where_no_tools_stand_beside_it_and_not_where_it_is_refused():
    text = {"type": ["string", "number", "boolean"]}
    for strategy, more in [("basic", {}), ("tools", {"servers": []})]:
        row, [request] = play([JSON], strategy, **more)
        schema = request["response_format"]["json_schema"]["schema"]
        assert schema["properties"] == {"city": text, "days": {"type": "array", "items": text}}
        assert (row["output"], row["well_formed"]) == (JSON, True)
    for form, more in [(["<DAY>"], {}), ("a word", {}), (None, {}), (FORM, {"response_format": None})]:
        assert "response_format" not in play(["x"], form=form, **more)[1][0]
    assert "response_format" not in play([JSON], "tools")[1][0]


def test_the_schema_goes_beside_tools_to_models_that_are_known_to_take_both(endpoint):
    endpoint.script(None)
    task = {"question": "Where?", "output_format": FORM}
    for name, sent in [("gpt-4.1-mini", True), ("good", False)]:
        agent = Agent(f"openai/{name}", api_base=endpoint.base, api_key="sk-test-000001")
        run([task], agent, servers={"toy": toy_server}, cache=False)
        assert all(("response_format" in request) == sent for request in endpoint.requests)
        assert all("tools" in request for request in endpoint.requests)
        endpoint.reset()
    assert llm.supports_response_schema("gemini/gemini-2.5-flash")
    assert not llm.supports_response_schema("openai/gpt-4-turbo")  # which has JSON mode, and no schemas
    assert not llm.supports_response_schema("gemini/gemini-2.5-flash", beside_tools=True)


def test_the_embedded_model_answers_in_the_form():
    row = run(
        [{"question": "Where is Rome?", "output_format": {"country": "<COUNTRY>", "warm": True}}],
        Agent(local.SMOLLM2, "basic", max_tokens=120, temperature=0),
        cache=False,
    ).iloc[0]
    assert (row["status"], row["well_formed"]) == ("ok", True)
    assert set(json.loads(row["output"])) == {"country", "warm"}


# --- the column ---------------------------------------------------------------------------------


def test_the_row_says_whether_the_answer_was_well_formed_and_keeps_the_text():
    row, _ = play([f"Of course:\n```json\n{JSON}\n```"])
    assert (row["output"], row["well_formed"], row["metadata"]["text"]) == (
        JSON,
        True,
        f"Of course:\n```json\n{JSON}\n```",
    )
    assert row["messages"][-1]["content"] == row["metadata"]["text"]
    row, _ = play(["Rome, on Monday"])
    assert (row["output"], row["well_formed"]) == ("Rome, on Monday", False) and "text" not in row["metadata"]
    assert pd.isna(play(["Rome"], form=None)[0]["well_formed"])
    assert pd.isna(play([""])[0]["well_formed"])  # there is no answer
    assert RUN_COLUMNS["well_formed"] == "boolean"


def test_a_run_that_was_kept_before_there_was_the_column_has_it(cache):
    def mine(task, session):
        return f"It is {JSON}."

    mine.fingerprint = "1"
    task = {"question": "Where?", "output_format": FORM}
    run([task], mine, cache=cache)
    [key] = [key for key in cache if key.startswith("run:")]
    old = cache.get(key)
    assert old["output"] == f"It is {JSON}." and "well_formed" not in old
    row = run([task], mine, cache=cache, replay=True).iloc[0]
    assert (row["output"], row["well_formed"], row["cached"]) == (JSON, True, True)


# --- which tools --------------------------------------------------------------------------------


def offered(request):
    return [tool["function"]["name"] for tool in request.get("tools", [])]


def test_an_agent_may_name_the_tools_of_its_servers():
    servers = {"toy": toy_server, "other": toy_server}
    with ScriptedModel(["fine"]) as model:

        def asked(task, **more):
            model.requests.clear()
            row = run([task], Agent(model.model, **model.params, **more), servers=servers, cache=False).iloc[0]
            return offered(model.requests[0]) if model.requests else row["error"]

        free = {"question": "Where?"}
        narrow = {**free, "mcp_servers": [{"name": "toy", "tools": ["add", "echo"]}]}
        assert asked(free, servers={"toy": ["echo", "add"]}) == ["add", "echo"]
        assert len(asked(free, servers={"toy": None, "other": ["add"]})) == 8
        assert asked(narrow, servers={"toy": ["add", "note"]}) == ["add"]
        assert asked(narrow, servers={"other": ["add"]}) == []
        assert "has no tool 'ad'. Did you mean 'add'?" in asked(free, servers={"toy": ["ad"]})


def test_each_agent_of_a_workflow_is_offered_the_tools_that_it_names():
    narrow = {"a": {"toy": ["echo"]}, "b": {"toy": ["add", "note"]}, "c": ["toy"], "d": []}
    task = {"question": "Where?", "mcp_servers": [{"name": "toy", "tools": ["add", "echo"]}]}
    with ScriptedModel(["fine"]) as model:
        made = [Agent(model.model, name=name, servers=given, **model.params) for name, given in narrow.items()]
        row = run([task], chain(made), servers={"toy": toy_server}, cache=False).iloc[0]
        assert [offered(request) for request in model.requests] == [["echo"], ["add"], ["add", "echo"], []]
        assert (row["status"], hash(made[0]) == hash(made[1])) == ("ok", False)
        bad = Agent(model.model, name="bad", servers={"toy": ["ad"]}, **model.params)
        row = run([{"question": "Where?"}], chain([bad]), servers={"toy": toy_server}, cache=False).iloc[0]
    assert "server 'toy' has no tool 'ad'. Did you mean 'add'?" in row["error"]
