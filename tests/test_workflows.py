"""Workflows: the exact messages of each, and the faults that others have."""

from __future__ import annotations

import json
import re
import threading
import time

import pytest

from mcpeval.agents import Agent, as_agent, chain, evaluator_optimizer, orchestrator, parallel, router
from mcpeval.agents.base import FORM
from mcpeval.agents.composed import AGAIN, fill
from mcpeval.agents.workflows import chains, planning, refining, routing
from mcpeval.errors import InputError
from mcpeval.evaluators import rule
from mcpeval.running import run
from mcpeval.scoring import score
from mcpeval.testing import ScriptedModel, toy_server
from mcpeval.types import Run, Task, Usage

QUESTION = "Where is it warm?"


@pytest.fixture
def model():
    """A scripted model whose script each test sets."""
    with ScriptedModel(lambda body: "fine") as model:
        yield model


def agent_of(model, name, strategy="basic", **more):
    return Agent(model.model, strategy, name=name, **{**model.params, **more})


def outcome(workflow, task=QUESTION, **more):
    return run([task] if isinstance(task, dict) else task, workflow, **{"cache": False, **more}).iloc[0]


def asked(model):
    """The last message of each request."""
    return [request["messages"][-1]["content"] for request in model.requests]


def by_system(**says):
    """A script that answers by the system text of who asks; whoever has none gets ``other``."""

    def script(body):
        first = body["messages"][0]
        said = says[first["content"] if first["role"] == "system" else "other"]
        return said(body) if callable(said) else said

    return script


def with_form(question, form):
    return f"{question}\n\n{FORM}\n{json.dumps(form)}"


# --- what a workflow is -------------------------------------------------------------------------


def test_a_workflow_is_a_frozen_value_with_the_marks_of_an_agent(model):
    a, b = agent_of(model, "a"), agent_of(model, "b", "tools", servers=["toy"])
    flow = chain([a, b])
    assert (flow.name, flow.model, flow.servers, flow.uses_tools) == ("chain", "openai/scripted", ("toy",), True)
    assert flow == chain([a, b]) and flow.fingerprint == chain([a, b]).fingerprint
    assert chain([b, a]).fingerprint != flow.fingerprint
    assert chain([a, agent_of(model, "b", "tools")]).servers is None
    assert as_agent(flow, "other").name == "other" and as_agent(flow) is flow
    assert set(flow.reads) == {"question", "output_format"}
    with pytest.raises(AttributeError):
        flow.name = "new"


def test_every_setting_of_a_workflow_is_in_its_fingerprint_and_no_name_of_its_own(model):
    a, b = agent_of(model, "a"), agent_of(model, "b")
    flows = [
        chain([a, b]),
        parallel([a, b], a),
        parallel([a, b], b),
        router([a, b], a),
        router([a, b], a, top_k=2),
        orchestrator([a, b], a),
        orchestrator([a, b], a, plan="iterative"),
        orchestrator([a, b], a, max_steps=3),
        evaluator_optimizer(a, b),
        evaluator_optimizer(a, b, enough="excellent"),
        evaluator_optimizer(a, b, max_rounds=2),
        evaluator_optimizer(a, b, scale=["bad", "good"]),
    ]
    assert len({flow.fingerprint for flow in flows}) == len(flows)
    assert chain([a, b], name="mine").fingerprint == flows[0].fingerprint


def test_a_workflow_with_a_callable_has_a_fingerprint_only_if_that_has_one():
    def helper(task, session):
        return "x"

    assert chain([helper]).fingerprint is None
    helper.fingerprint = "v1"
    assert chain([helper]).fingerprint is not None


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda a: chain([]), "chain: agents is empty"),
        (lambda a: chain(a), "should be a list of agents"),
        (lambda a: router([a, a], a), "router: 2 agents are named 'a'"),
        (lambda a: router([a], a, top_k=0), "top_k=0 should be a whole number, at least 1"),
        (lambda a: orchestrator([a], a, plan="ful"), "plan='ful'. Did you mean 'full'?"),
        (lambda a: orchestrator([a], a, max_steps="3"), "max_steps='3'"),
        (lambda a: evaluator_optimizer(a, a, enough="god"), "enough='god' is not on the scale. Did you mean 'good'?"),
        (lambda a: evaluator_optimizer(a, a, scale=["good"]), "at least two different ratings"),
        (lambda a: parallel([a], a, temperature=0), "temperature belong to a model"),
        (lambda a: chain([7]), "agents has 7"),
        (lambda a: router([a], "openai/m", temprature=0), "Did you mean 'temperature'?"),
    ],
)
def test_what_cannot_be_meant_is_said_when_the_workflow_is_written(make, said):
    with pytest.raises(InputError, match=re.escape(said)):
        make(Agent("openai/m", "basic", name="a"))


def test_the_models_and_servers_of_the_agents_inside_are_checked_before_anything_is_paid(model):
    flow = chain([agent_of(model, "a"), Agent("opnai/m", "basic", name="b")])
    with pytest.raises(InputError, match="unknown provider 'opnai'"):
        outcome(flow)
    with pytest.raises(InputError, match="OPENAI_API_KEY"):
        outcome(chain([agent_of(model, "a"), chain([Agent("openai/m", "basic")])]))
    with pytest.raises(InputError, match="MCP server 'tyo', which is not there. Did you mean 'toy'"):
        outcome(chain([agent_of(model, "a", "tools", servers=["tyo"])]), servers={"toy": toy_server})
    assert model.requests == []


# --- chain --------------------------------------------------------------------------------------


def test_in_a_chain_each_answer_is_the_next_question_and_the_last_agent_gets_the_form(model):
    model.script = by_system(plan="Ask of Rome.", answer='{"city": "Rome"}')
    flow = chain([agent_of(model, "planner", system="plan"), agent_of(model, "writer", system="answer")])
    row = outcome(flow, {"question": QUESTION, "output_format": {"city": "<CITY>"}})
    assert asked(model) == [QUESTION, with_form("Ask of Rome.", {"city": "<CITY>"})]
    assert (row["status"], row["output"], row["turns"], row["agent"]) == ("ok", '{"city": "Rome"}', 2, "chain")
    assert [(m["role"], m["agent"]) for m in row["messages"]] == [
        *[(role, "planner") for role in ("system", "user", "assistant")],
        *[(role, "writer") for role in ("system", "user", "assistant")],
    ]
    assert row["tokens_in"] == 20


def test_a_structured_answer_goes_on_as_json_and_not_as_pythons_repr(model):
    flow = chain({"finder": lambda task, session: ["Zürich", None, True], "writer": agent_of(model, "w")})
    outcome(flow)
    assert asked(model) == ['["Zürich", null, true]']


def test_an_agent_that_fails_ends_the_workflow_with_its_own_error_and_its_text_is_no_answer(model):
    model.script = by_system(loops=lambda body: [("add", {"a": 1, "b": 1})], other="never")
    looping = agent_of(model, "looping", "tools", system="loops", max_turns=2)
    row = outcome(chain([looping, agent_of(model, "after")]), servers={"toy": toy_server})
    assert (row["status"], row["error_class"]) == ("error", "turn_limit")
    assert row["error"] == "agent 'looping': no final answer within max_turns=2"
    assert row["output"] != row["output"]
    assert (row["turns"], row["n_tool_calls"], row["tokens_in"]) == (2, 2, 20)
    assert {m["agent"] for m in row["messages"]} == {"looping"}

    def broken(task, session):
        raise ValueError("no ink")

    row = outcome(chain([agent_of(model, "a"), broken]))
    assert (row["error_class"], row["error"], row["turns"]) == ("harness", "ValueError: no ink", 1)


def test_an_agent_without_an_answer_ends_the_workflow(model):
    row = outcome(chain({"silent": lambda task, session: None, "after": agent_of(model, "a")}))
    assert (row["status"], row["error"]) == ("error", "agent 'silent' gave no answer")


# --- tools --------------------------------------------------------------------------------------


def test_each_agent_is_offered_the_tools_of_its_own_servers_only(model):
    def script(body):
        if body["messages"][-1]["role"] != "tool" and body.get("tools"):
            return [("note", {"text": "mine"})]
        return "fine"

    model.script = script
    servers = {"toy": toy_server, "other": lambda: toy_server("other")}
    task = {
        "question": QUESTION,
        "mcp_servers": [{"name": "toy", "tools": ["note"]}, {"name": "other", "tools": ["add"]}],
    }
    flow = chain(
        [
            agent_of(model, "noting", "tools", servers=["toy"]),
            agent_of(model, "adding", "tools", servers=["other"]),
            agent_of(model, "bare", "tools", servers=[]),
            agent_of(model, "all", "tools"),
        ]
    )
    row = outcome(flow, task, servers=servers)
    names = [[tool["function"]["name"] for tool in request.get("tools", ())] for request in model.requests]
    assert names == [["note"], ["note"], ["add"], ["add"], [], ["note", "add"], ["note", "add"]]
    first, second, third = row["tool_calls"]
    assert (first["server"], first["is_error"]) == ("toy", False)
    assert (second["server"], second["error"]) == (None, "There is no tool 'note'. Known: add.")
    assert third["server"] == "toy" and row["n_tool_calls"] == 3


# --- parallel -----------------------------------------------------------------------------------


def meeting(number):
    """An agent that answers when `number` of its kind are at work, and never before."""
    barrier = threading.Barrier(number, timeout=30)

    def meets(task, session):
        barrier.wait()
        return f"{task.question.splitlines()[0]} done"

    return meets


def test_parallel_agents_work_at_the_same_time_and_the_aggregator_sees_the_question(model):
    meets = meeting(2)
    model.script = by_system(other='{"city": "Rome"}')
    flow = parallel({"a": meets, "b": meets}, model.model, **model.params)
    row = outcome(flow, {"question": QUESTION, "output_format": {"city": "<CITY>"}})
    told = f"Answer of a:\n{QUESTION} done\n\nAnswer of b:\n{QUESTION} done"
    question = chains.COMBINE.replace("{question}", QUESTION).replace("{answers}", told)
    assert asked(model) == [with_form(question, {"city": "<CITY>"})]
    assert (row["status"], row["output"]) == ("ok", '{"city": "Rome"}')


def test_the_transcript_of_agents_side_by_side_is_one_conversation_after_the_other(model):
    def script(body):
        name = body["messages"][0]["content"]
        time.sleep({"slow": 0.2, "fast": 0}.get(name, 0))
        step = sum(m["role"] == "assistant" for m in body["messages"])
        return [("add", {"a": step, "b": len(name)})] if body.get("tools") and step < 2 else f"{name} {step}"

    model.script = script
    flow = parallel(
        [agent_of(model, "s", "tools", system="slow"), agent_of(model, "f", "tools", system="fast")],
        agent_of(model, "sum", system="sum"),
    )
    row = outcome(
        flow, {"question": QUESTION, "mcp_servers": [{"name": "toy", "tools": ["add"]}]}, servers={"toy": toy_server}
    )
    talk = ["system", "user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert [(m["agent"], m["role"]) for m in row["messages"]] == [
        *[("s", role) for role in talk],
        *[("f", role) for role in talk],
        *[("sum", role) for role in ("system", "user", "assistant")],
    ]
    assert [call["arguments"] for call in row["tool_calls"]] == [
        {"a": 0, "b": 4}, {"a": 1, "b": 4}, {"a": 0, "b": 4}, {"a": 1, "b": 4}
    ]  # fmt: skip
    assert (row["turns"], row["tokens_in"], row["tokens_out"]) == (7, 70, 35)


def test_equal_agents_side_by_side_draw_answers_of_their_own_and_keep_them(model, cache):
    drawn = iter(["one", "two", "three"])
    model.script = lambda body: next(drawn) if len(body["messages"][0]["content"]) < 50 else "all"
    flow = parallel([agent_of(model, name) for name in "abc"], agent_of(model, "sum"))
    row = outcome(flow, cache=cache)
    texts = [m["content"] for m in row["messages"] if m["role"] == "assistant"]
    assert sorted(texts[:3]) == ["one", "three", "two"] and texts[3] == "all"
    again = outcome(flow, cache=cache)
    assert again["cached"] and again["messages"] == row["messages"] and len(model.requests) == 4


def test_one_that_fails_side_by_side_ends_the_run_and_what_the_others_did_is_kept(model):
    def broken(task, session):
        raise ValueError("no ink")

    row = outcome(parallel({"broken": broken, "good": agent_of(model, "g")}, agent_of(model, "sum")))
    assert (row["status"], row["error"], row["tokens_in"]) == ("error", "ValueError: no ink", 10)
    assert [m["agent"] for m in row["messages"]] == ["good", "good"]


# --- router -------------------------------------------------------------------------------------

CHOICE = {"agents": ["<NAME>"]}


def test_the_router_is_told_names_purposes_and_tools_and_the_chosen_agents_answer_is_the_answer(model):
    def weather(task, session):
        """Knows the weather.

        Not shown.
        """
        return '{"city": "Rome"}'

    model.script = by_system(other='{"agents": ["weather"]}')
    adder = agent_of(model, "adder", "tools", system="You add.", servers=["toy"])
    flow = router([weather, adder], model.model, **model.params)
    task = {
        "question": QUESTION,
        "output_format": {"city": "<CITY>"},
        "mcp_servers": [{"name": "toy", "tools": ["add"]}],
        "evaluators": [{"func": "json -> get(city)", "op": "=", "value": "Rome"}],
    }
    runs = run([task], flow, servers={"toy": toy_server}, cache=False)
    agents = "- weather: Knows the weather. (tools: add)\n- adder: You add. (tools: add)"
    question = fill(routing.ROUTE, top_k=1, agents=agents, question=QUESTION)
    assert asked(model) == [with_form(question, CHOICE)]
    assert runs["output"].tolist() == ['{"city": "Rome"}']
    # The answer can be read by an evaluator: nothing is wrapped around it.
    assert score(runs)["passed"].tolist() == [True]
    assert rule("json -> get(city)", "=", "Rome").evaluate({"output": runs["output"][0]}).passed


def test_an_agent_that_is_not_there_is_told_to_the_router_which_chooses_again(model):
    answers = iter(
        [
            '```json\n{"agents": ["wether"]}\n```',
            'I take <think>{"agents": ["b"]}</think>{"agents": [{"name": "weather"}]}',
        ]
    )
    model.script = lambda body: next(answers)
    flow = router(
        {"weather": lambda task, session: "warm", "b": lambda task, session: "b"}, model.model, **model.params
    )
    row = outcome(flow)
    problem = AGAIN.replace("{problem}", "there is no agent 'wether'. Did you mean 'weather'?")
    first, second = asked(model)
    question = first.partition(f"\n\n{FORM}")[0]
    assert second == with_form(f'{question}\n\n{problem}\n```json\n{{"agents": ["wether"]}}\n```', CHOICE)
    assert (row["output"], row["turns"]) == ("warm", 2)


def test_a_router_that_never_chooses_ends_the_run_with_bad_json(model):
    model.script = by_system(other='{"agents": []}')
    row = outcome(router({"a": lambda task, session: "a"}, model.model, **model.params))
    assert (row["error_class"], row["turns"]) == ("bad_json", 3)
    assert row["error"] == "agent 'router-chooser': no decision in 3 answers: it names no agent"


def test_several_that_are_chosen_work_at_the_same_time_and_one_answer_is_made_of_theirs(model):
    answers = iter(['{"agents": ["c", "a", "b"]}', "both"])
    model.script = lambda body: next(answers)
    meets = meeting(2)
    flow = router(dict.fromkeys("abc", meets), model.model, top_k=2, **model.params)
    row = outcome(flow)
    told = f"Answer of c:\n{QUESTION} done\n\nAnswer of a:\n{QUESTION} done"
    assert asked(model)[1] == fill(chains.COMBINE, question=QUESTION, answers=told)
    assert row["output"] == "both"


# --- orchestrator -------------------------------------------------------------------------------

PLAN = {
    "steps": [[{"agent": "a", "task": "Look."}, {"agent": "b", "task": "Listen."}], [{"agent": "a", "task": "Tell."}]]
}


def test_the_messages_of_a_full_plan_whose_sub_tasks_are_worked_on_at_the_same_time(model):
    answers = iter([json.dumps(PLAN), '{"city": "Rome"}'])
    model.script = lambda body: next(answers)
    meets, seen = meeting(2), []

    def worker(task, session):
        seen.append(task.question)
        return meets(task, session) if len(seen) < 3 else "told"

    flow = orchestrator({"a": worker, "b": worker}, model.model, **model.params)
    row = outcome(flow, {"question": QUESTION, "output_format": {"city": "<CITY>"}})
    plan, end = asked(model)
    asks = planning.FULL + planning.RULES
    assert plan == with_form(fill(asks, max_steps=10, agents="- a\n- b", question=QUESTION), planning.PLAN)
    part = "{}\n\nThis is part of a larger objective:\nWhere is it warm?"
    results = "Step 1, a: Look.:\nLook. done\n\nStep 1, b: Listen.:\nListen. done"
    assert sorted(seen[:2]) == [part.format("Listen."), part.format("Look.")]
    assert seen[2] == f"{part.format('Tell.')}\n\nResults so far:\n{results}"
    conclusion = fill(planning.CONCLUDE, question=QUESTION, results=f"{results}\n\nStep 2, a: Tell.:\ntold")
    assert end == with_form(conclusion, {"city": "<CITY>"})
    assert (row["status"], row["output"], row["turns"]) == ("ok", '{"city": "Rome"}', 2)


def test_an_iterative_plan_is_made_step_by_step_from_the_results(model):
    steps = [{"done": False, "tasks": [{"agent": "a", "task": "Look."}]}, {"done": True, "tasks": []}]
    answers = iter([*map(json.dumps, steps), "Rome"])
    model.script = lambda body: next(answers)
    flow = orchestrator({"a": lambda task, session: "seen"}, model.model, plan="iterative", **model.params)
    row = outcome(flow)
    first, second, end = asked(model)
    asks = fill(planning.NEXT + planning.RULES, agents="- a", question=QUESTION)
    assert first == with_form(asks, planning.STEP)
    results = "Step 1, a: Look.:\nseen"
    assert second == with_form(f"{asks}\n\nResults so far:\n{results}", planning.STEP)
    assert end == fill(planning.CONCLUDE, question=QUESTION, results=results)
    assert row["output"] == "Rome"


def test_a_plan_that_never_ends_ends_the_run_at_the_limit(model):
    model.script = by_system(other=json.dumps({"tasks": [{"agent": "a", "task": "Again."}]}))
    flow = orchestrator({"a": lambda task, session: "x"}, model.model, plan="iterative", max_steps=2, **model.params)
    row = outcome(flow)
    assert (row["error_class"], row["error"]) == ("turn_limit", "the objective is not reached within max_steps=2")
    assert row["turns"] == 3


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        ("Just do it.", "there is no JSON object in it"),
        ('{"plan": []}', "it has no list 'steps'"),
        ('{"steps": [[]]}', "a step is not a list of sub-tasks"),
        ('{"steps": [["Look."]]}', "a sub-task is not an object with the texts 'agent' and 'task'"),
        ('{"steps": [[{"agent": "A1", "task": "Look."}]]}', "there is no agent 'A1'. Known: a, b."),
        (json.dumps({"steps": PLAN["steps"] * 2}), "it has 4 steps, and at most 3 are allowed"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_sent_back_with_what_is_wrong(model, plan, problem):
    answers = iter([plan, json.dumps({"steps": [{"tasks": [{"agent": "a", "description": "Look."}]}]}), "Rome"])
    model.script = lambda body: next(answers)
    workers = {name: lambda task, session: "x" for name in "ab"}
    row = outcome(orchestrator(workers, model.model, max_steps=3, **model.params))
    assert AGAIN.replace("{problem}", problem) + "\n" + plan in asked(model)[1]
    assert row["output"] == "Rome"


# --- evaluator_optimizer ------------------------------------------------------------------------


def refined(model, ratings, answers=("first", "second", "third"), **more):
    drafts, verdicts = iter(answers), iter(ratings)

    def script(body):
        if body["messages"][0]["content"] != "write":
            return json.dumps({"rating": next(verdicts), "feedback": "Name a city."})
        return next(drafts)

    model.script = script
    writer = agent_of(model, "writer", system="write")
    return outcome(evaluator_optimizer(writer, model.model, **{**model.params, **more}))


def test_the_messages_of_a_refinement(model):
    row = refined(model, ["poor", "Good"])
    draft, rate, refine, again = asked(model)
    assert draft == QUESTION
    scale = "poor, fair, good, excellent"
    assert rate == with_form(fill(refining.RATE, scale=scale, question=QUESTION, answer="first"), refining.RATING)
    told = {"question": QUESTION, "rating": "poor", "answer": "first", "feedback": "Name a city."}
    assert refine == fill(refining.REFINE, **told)
    assert again == with_form(fill(refining.RATE, scale=scale, question=QUESTION, answer="second"), refining.RATING)
    assert (row["output"], row["turns"]) == ("second", 4)
    assert [m["agent"] for m in row["messages"] if m["role"] == "assistant"] == [
        "writer", "evaluator_optimizer-evaluator", "writer", "evaluator_optimizer-evaluator"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ratings", "output", "turns", "more"),
    [
        (["excellent"], "first", 2, {}),
        (["poor", "fair", "poor"], "second", 6, {}),  # three answers, each of them rated: none is thrown away
        (["fair", "fair"], "second", 4, {"max_rounds": 2}),
        (["fair"], "first", 2, {"max_rounds": 1}),
        (["good", "excellent"], "second", 4, {"enough": "EXCELLENT"}),
        (["2", "3"], "second", 4, {"scale": ["1", "2", "3"], "enough": "3"}),
    ],
)
def test_it_ends_with_the_first_answer_that_is_good_enough_or_the_best_of_those_rated(
    model, ratings, output, turns, more
):
    row = refined(model, ratings, **more)
    assert (row["output"], row["turns"]) == (output, turns)


def test_a_rating_that_is_not_on_the_scale_is_asked_for_again(model):
    row = refined(model, ["splendid", "good"])
    assert "its rating is none of poor, fair, good, excellent" in asked(model)[2]
    assert (row["output"], row["turns"]) == ("first", 3)


# --- nesting, cost, cache -----------------------------------------------------------------------


def test_workflows_are_parts_of_workflows_and_of_callables(model):
    model.script = by_system(one="1", two="2", other="3")
    inner = chain([agent_of(model, "one", system="one"), agent_of(model, "two", system="two")], name="inner")
    flow = chain(
        [parallel([inner, agent_of(model, "three")], agent_of(model, "sum")), lambda task, session: task.question]
    )
    row = outcome(flow)
    assert list(dict.fromkeys(m["agent"] for m in row["messages"])) == ["one", "two", "three", "sum"]
    assert (row["output"], row["turns"], row["tokens_in"]) == ("3", 4, 40)
    assert "- inner: Chain of one, two" in described(model, router([inner], model.model, **model.params))

    async def mine(task, session):
        return await inner(task, session)

    assert outcome(mine)["output"] == "2"


def described(model, flow):
    model.script = by_system(other='{"agents": ["inner"]}', one="1", two="2")
    model.requests.clear()
    outcome(flow)
    return asked(model)[0]


def test_a_run_that_an_agent_brings_along_is_in_the_transcript_and_the_cost(model):
    usage = Usage(tokens_in=7, tokens_out=1, cost_usd=0.25, calls=1)
    elsewhere = Run("yes", messages=[{"role": "user", "content": "?"}], usage=usage, turns=1)
    row = outcome(chain({"elsewhere": lambda task, session: elsewhere, "here": agent_of(model, "h")}))
    assert (row["tokens_in"], row["turns"], row["output"]) == (17, 2, "fine")
    assert row["messages"][0] == {"role": "user", "content": "?", "agent": "elsewhere"}


def test_the_transcript_of_a_part_can_be_sent_and_the_names_are_not(model):
    async def mine(task, session):
        await chain([agent_of(model, "a")])(task, session)
        talk = [*session.messages, {"role": "user", "content": "And then?"}]
        return (await session.complete(talk, model=model.model, **model.params)).text

    row = outcome(mine)
    assert model.requests[1]["messages"] == [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": "fine"},
        {"role": "user", "content": "And then?"},
    ]
    assert row["status"] == "ok" and row["turns"] == 2


def test_a_workflow_that_a_callable_gives_a_task_of_its_own_works_on_that_one(model):
    def last(task, session):
        return f"{task.id} {task.reference} {session.tools}"

    last.uses_tools = False

    async def mine(task, session):
        return await chain([agent_of(model, "a"), last])(Task("mine", "Why?", reference="so"), session)

    row = outcome(mine, servers={"toy": toy_server})
    assert (row["output"], asked(model)) == ("mine so []", ["Why?"])
    assert [m["agent"] for m in row["messages"]] == ["a", "a"]


def test_the_run_of_a_workflow_is_kept_whole_and_each_trial_draws_anew(model, cache):
    flow = chain([agent_of(model, "a"), agent_of(model, "b", system="b")])
    first = run([QUESTION], flow, trials=2, cache=cache)
    assert len(model.requests) == 4 and not first["cached"].any()
    again = run([QUESTION], flow, trials=2, cache=cache, replay=True)
    assert len(model.requests) == 4 and again["cached"].all()
    assert again["messages"].tolist() == first["messages"].tolist()


def test_nothing_of_one_task_is_in_the_messages_of_the_next(model):
    flow = parallel([agent_of(model, "a"), agent_of(model, "b", system="b")], agent_of(model, "sum"))
    run([f"Tell me of {name}." for name in ("Ada", "Bob", "Cy")], flow, cache=False, concurrency=3)
    for request in model.requests:
        assert sum(name in json.dumps(request["messages"]) for name in ("Ada", "Bob", "Cy")) == 1
    assert len(model.requests) == 9


def test_what_a_question_or_an_answer_holds_is_never_taken_for_a_place_in_a_prompt():
    assert (
        fill("{question} / {answer} / {other}", question="{answer}", answer="{question}")
        == "{answer} / {question} / {other}"
    )


@pytest.mark.parametrize("name", [None, 3, "", " "])
def test_a_workflow_has_a_name(name):
    with pytest.raises(InputError, match="Chain: name="):
        chain(["openai/gpt-4.1-mini"], name=name)
