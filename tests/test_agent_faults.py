"""What other implementations of agents get wrong, one test each; every kind of error with its real cause."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from mcpeval.agents import Agent, chain, evaluator_optimizer, orchestrator, parallel, router
from mcpeval.evaluators import rule
from mcpeval.running import run
from mcpeval.scoring import score
from mcpeval.testing import ScriptedModel, toy_server

QUESTION = "What is 1 + 2?"
ADD = {"a": 1, "b": 2}
TASK = {"id": "sum", "question": QUESTION, "mcp_servers": [{"name": "toy", "tools": ["add"]}]}
TOOL_STRATEGIES = ("tools", "react", "reflection", "explore")


def step(**action):
    return json.dumps({"note": "", "thought": "t", "action": action})


def calls_then_answers(body):
    """One call of ``add``, native or written, then the answer; a critic says little."""
    if body["messages"][0]["content"].startswith("You review"):
        return "The step is right."
    asked = any(message["role"] == "assistant" for message in body["messages"])
    if "tools" in body:
        return "It is 3." if asked else [("add", ADD)]
    return step(answer="It is 3.") if asked else step(tool="add", arguments=ADD)


def agent_of(model, name="me", strategy="basic", **more):
    return Agent(model.model, strategy, name=name, **{**model.params, **more})


def outcome(agent, task=TASK, **more):
    return run([task], agent, **{"servers": {"toy": toy_server}, "cache": False, **more}).iloc[0]


@pytest.fixture
def model():
    with ScriptedModel(calls_then_answers) as model:
        yield model


def texts(request):
    return [message["content"] for message in request["messages"] if isinstance(message.get("content"), str)]


# --- what the model is shown --------------------------------------------------------------------


@pytest.mark.parametrize("strategy", TOOL_STRATEGIES)
def test_a_tool_result_is_what_the_tool_said_and_no_coroutine(model, strategy):
    more = {"min_tool_calls": 1} if strategy == "explore" else {}
    row = outcome(agent_of(model, strategy=strategy, **more))
    assert (row["status"], row["output"]) == ("ok", "It is 3.")
    shown = texts(model.requests[-1])
    assert any(text == "3.0" or text.startswith("Result of add:\n3.0") for text in shown)
    assert not any("coroutine" in text or "object at 0x" in text for text in shown)


@pytest.mark.parametrize("strategy", ("basic", *TOOL_STRATEGIES))
def test_nothing_of_one_task_leaks_into_the_next(model, strategy):
    more = {"min_tool_calls": 1} if strategy == "explore" else {}
    names = ("Ada", "Bob", "Cyd")
    tasks = [{**TASK, "id": name, "question": f"What does {name} add?"} for name in names]
    if strategy == "basic":
        model.script = ["It is 3."]
    agent = agent_of(model, strategy=strategy, **more)
    for concurrency in (1, 3):
        run(tasks, agent, servers={"toy": toy_server}, cache=False, concurrency=concurrency)
    for request in model.requests:
        assert sum(name in json.dumps(request["messages"]) for name in names) == 1


# --- errors are errors --------------------------------------------------------------------------


def at(endpoint, model, strategy="basic", **more):
    return Agent(f"openai/{model}", strategy, api_base=endpoint.base, api_key="sk-test-000001", retries=0, **more)


def raising(task, session):
    raise LookupError("the answer is 42")


def causes(endpoint, model):
    """For each kind of error: an agent, and the servers, that come to it for its real cause."""
    dying = {"toy": {"command": sys.executable, "args": ["-c", "raise SystemExit('the answer is 42')"]}}
    return {
        "model": (at(endpoint, "r500"), {}),
        "rate": (at(endpoint, "r429"), {}),
        "context": (at(endpoint, "context"), {}),
        "timeout": (at(endpoint, "hang", timeout=0.3), {}),
        "bad_json": (agent_of(model, strategy="react"), {}),
        "turn_limit": (agent_of(model, strategy="tools", max_turns=2), {"toy": toy_server}),
        "server": (agent_of(model, strategy="tools"), dying),
        "harness": (raising, {}),
    }


@pytest.mark.parametrize("kind", ["model", "bad_json", "turn_limit", "context", "timeout", "rate", "server", "harness"])
def test_what_ends_a_run_is_its_error_class_and_never_its_answer(endpoint, model, kind):
    model.script = lambda body: [("add", ADD)] if "tools" in body else "the answer is 42"
    agent, servers = causes(endpoint, model)[kind]
    task = TASK if servers else {"id": "t", "question": QUESTION}
    runs = run([task], agent, servers=servers, cache=False)
    row = runs.iloc[0]
    assert (row["status"], row["error_class"]) == ("error", kind)
    assert row["error"] and row["output"] != row["output"]  # missing
    scores = score(runs, [rule("", "contain", "42")])
    assert not scores["passed"].fillna(False).any()


def test_malformed_arguments_in_a_quarter_of_the_calls_do_not_end_the_runs(model):
    def script(body):
        asked = sum(message["role"] == "assistant" for message in body["messages"])
        number = int(body["messages"][0]["content"].split()[-1])
        if asked == 3:
            return "done"
        return [("add", '{"a": 1, "b": 2' if (number + asked) % 4 == 0 else ADD)]

    model.script = script
    tasks = [{**TASK, "id": str(i), "question": f"Rollout {i}"} for i in range(4)]
    runs = run(tasks, agent_of(model, strategy="tools"), servers={"toy": toy_server}, cache=False)
    assert runs["status"].tolist() == ["ok"] * 4
    calls = [call for row in runs["tool_calls"] for call in row]
    assert (len(calls), sum(call["is_error"] for call in calls)) == (12, 3)


# --- answers can be read ------------------------------------------------------------------------


def test_a_list_as_an_answer_is_json_and_not_pythons_repr(model):
    cities = ["Zürich", None, True, {"it's": "Rome"}]
    model.script = [step(answer=cities)]
    for agent in (agent_of(model, strategy="react"), lambda task, session: cities):
        assert json.loads(outcome(agent, {"question": QUESTION})["output"]) == cities


def test_a_routers_answer_is_the_chosen_agents_and_evaluators_can_read_it(model):
    def script(body):
        return '{"agents": ["b"]}' if "Which of these agents" in texts(body)[-1] else '{"city": "Rome"}'

    model.script = script
    flow = router([agent_of(model, "a"), agent_of(model, "b")], agent_of(model, "chooser"))
    runs = run(["Where is it warm?"], flow, cache=False)
    assert runs["output"].tolist() == ['{"city": "Rome"}']
    assert score(runs, [rule("json -> get(city)", "=", "Rome")])["passed"].tolist() == [True]


def test_an_aggregator_sees_the_question_and_who_said_what(model):
    model.script = ["fine"]
    outcome(parallel([agent_of(model, "a"), agent_of(model, "b")], agent_of(model, "judge")), {"question": QUESTION})
    [shown] = texts(model.requests[-1])
    assert QUESTION in shown and "Answer of a:\nfine" in shown and "Answer of b:\nfine" in shown


# --- workflows work as they say -----------------------------------------------------------------


def test_an_orchestrator_works_on_the_sub_tasks_of_a_step_at_the_same_time(model):
    plan = {"steps": [[{"agent": name, "task": "Wait for the others."} for name in ("a", "b", "c")]]}
    model.script = lambda body: json.dumps(plan) if "Plan how" in texts(body)[-1] else "done"
    waiting, all_there = [], asyncio.Event()

    async def worker(task, session):
        waiting.append(task)
        if len(waiting) == 3:
            all_there.set()
        await all_there.wait()  # for ever, where they are worked on one by one
        return "seen"

    flow = orchestrator({"a": worker, "b": worker, "c": worker}, agent_of(model, "planner"))
    row = outcome(flow, {"question": QUESTION}, timeout=30)
    assert (row["status"], row["output"]) == ("ok", "done")


def test_an_evaluator_optimizer_pays_for_no_refinement_that_it_throws_away(model):
    said = iter(["first", '{"rating": "poor", "feedback": "-"}', "second", '{"rating": "fair", "feedback": "-"}'])
    model.script = lambda body: next(said)
    row = outcome(
        evaluator_optimizer(agent_of(model, "writer"), agent_of(model, "judge"), max_rounds=2), {"question": QUESTION}
    )
    assert (row["output"], row["turns"], len(model.requests)) == ("second", 4, 4)


@pytest.mark.parametrize(
    "wrap", ["```json\n{}\n```", "Certainly!\n```\n{}\n```\nAnything else?", "<think>{{</think>{}"]
)
def test_json_that_a_model_fences_is_read(model, wrap):
    def fenced(data):
        return wrap.replace("{}", json.dumps(data)).replace("{{", "{")

    model.script = [fenced({"thought": "t", "action": {"answer": "3"}})]
    assert outcome(agent_of(model, strategy="react"), {"question": QUESTION})["output"] == "3"
    model.script = lambda body: fenced({"agents": ["a"]}) if "Which of" in texts(body)[-1] else fenced({"sum": 3})
    flow = router([agent_of(model, "a"), agent_of(model, "b")], agent_of(model, "chooser"))
    row = outcome(flow, {"question": QUESTION, "output_format": {"sum": "<SUM>"}})
    assert (row["output"], row["well_formed"]) == ('{"sum": 3}', True)


CELL = """
import asyncio
from mcpeval.agents import Agent, chain, strategy

async def mine(task, session):
    found = await session.call_tool("add", {"a": 1, "b": 2})
    return f"It is {session.show(found)}."

class Shouting:
    name = "shouting"
    def __call__(self, task, session):
        return task.question.upper()

@strategy("of_the_cell", uses_tools=False)
async def loop(agent, task, session):
    return "looped"
"""


def test_agents_are_defined_in_a_notebooks_cell_that_is_run_again(model):
    from mcpeval.agents import STRATEGIES

    cell = {"__name__": "__main__"}
    try:
        for _ in range(2):
            exec(compile(CELL, "<cell>", "exec"), cell)  # a cell has no file
            made = {
                "mine": cell["mine"],
                "shouting": cell["Shouting"](),
                "own": agent_of(model, strategy="of_the_cell"),
                "both": chain([cell["mine"], cell["Shouting"]()]),
            }
            runs = run([TASK], made, servers={"toy": toy_server}, cache=False)
            assert runs["output"].tolist() == ["It is 3.0.", QUESTION.upper(), "looped", "IT IS 3.0."]
    finally:
        STRATEGIES.pop("of_the_cell", None)


def test_a_text_instead_of_messages_is_refused_with_what_is_expected():
    async def hasty(task, session):
        return await session.complete("What is it?")

    row = outcome(hasty, {"question": QUESTION})
    assert row["error_class"] == "harness"
    assert "messages='What is it?' should be a list of chat messages" in row["error"]
