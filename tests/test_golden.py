"""The exact messages and tools that each strategy and each workflow sends: golden files of whole requests.

``MCPEVAL_GOLDEN=write pytest tests/test_golden.py`` writes the files of ``tests/golden`` anew, for
whoever means to change what is sent; the change is then read in the diff.  Such a change of a strategy
or a workflow goes with a new ``revision``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mcpeval.agents import Agent, chain, evaluator_optimizer, orchestrator, parallel, router
from mcpeval.running import run
from mcpeval.testing import ScriptedModel, toy_server

GOLDEN = Path(__file__).with_name("golden")
FORM = {"sum": "<SUM>", "terms": ["<TERM>"]}
TASK = {
    "id": "sum",
    "question": "What is 1 + 2?",
    "mcp_servers": [{"name": "toy", "tools": ["add", "echo"]}],
    "output_format": FORM,
}
ADD = {"a": 1, "b": 2}
DONE = json.dumps({"sum": 3, "terms": [1, 2]})


def step(note=None, **action):
    return json.dumps({**({} if note is None else {"note": note}), "thought": "t", "action": action})


CALL = step(tool="add", arguments=ADD)
ANSWER = step(answer={"sum": 3, "terms": [1, 2]})


def by_system(**says):
    """A script that answers by the first word of the system text of who asks, one thing after the other."""
    said = {name: iter(texts if isinstance(texts, list) else [texts] * 9) for name, texts in says.items()}

    def script(body):
        first = body["messages"][0]
        return next(said[first["content"].split()[0] if first["role"] == "system" else "nobody"])

    return script


def agents(model, *names, strategy="basic", **more):
    made = [Agent(model.model, strategy, name=n, system=f"{n} speaks.", **{**model.params, **more}) for n in names]
    return made[0] if len(made) == 1 else made


def plain(strategy, **more):
    return lambda model: Agent(model.model, strategy, name="me", **{**model.params, **more})


SUBTASKS = [{"agent": "ada", "task": "Add."}, {"agent": "bob", "task": "List the terms."}]
RATED = [json.dumps({"rating": word, "feedback": f"It is {word}."}) for word in ("poor", "good")]

#: By name: the agent, the script, and which requests are sent at the same time.
SCENES = {
    "basic": (plain("basic", system="Be short."), [DONE], None),
    "tools": (
        plain("tools", system="Be short.", temperature=0),
        [[("add", ADD), ("echo", {"text": "é"})], [("add", '{"a": 1'), ("sub", {})], DONE],
        None,
    ),
    "tools_required": (plain("tools", min_tool_calls=1), [[("add", ADD)], DONE], None),
    "tools_narrowed": (plain("tools", servers={"toy": ["echo"]}), [[("echo", {"text": "3"})], DONE], None),
    "tools_memory": (plain("tools", memory=True), [[("remember", {"note": "x"})], [("recall", {})], DONE], None),
    "react": (plain("react", system="Be short."), [CALL, "Hm.", ANSWER], None),
    "react_without_schema": (plain("react", response_format=None), [CALL, ANSWER], None),
    "reflection": (plain("reflection"), by_system(Work=[CALL, ANSWER], You=["Add less."]), None),
    "explore": (
        plain("explore", min_tool_calls=1),
        [step("", tool="add", arguments=ADD), step("It adds.", answer={"sum": 3, "terms": [1, 2]})],
        None,
    ),
    "chain": (
        lambda model: chain([agents(model, "ada", strategy="tools"), agents(model, "bob")]),
        by_system(ada=[[("add", ADD)], "It is 3."], bob=DONE),
        None,
    ),
    "router": (
        lambda model: router(agents(model, "ada", "bob"), agents(model, "judy")),
        by_system(judy='{"agents": ["bob"]}', bob=DONE),
        None,
    ),
    "router_of_two": (
        lambda model: router(agents(model, "ada", "bob", "cyd"), agents(model, "judy"), top_k=2),
        by_system(judy=['{"agents": ["cyd", "ada"]}', DONE], ada="3", cyd="three"),
        slice(1, 3),
    ),
    "parallel": (
        lambda model: parallel(agents(model, "ada", "bob"), agents(model, "judy")),
        by_system(ada="3", bob="three", judy=DONE),
        slice(0, 2),
    ),
    "orchestrator": (
        lambda model: orchestrator(agents(model, "ada", "bob"), agents(model, "judy")),
        by_system(judy=[json.dumps({"steps": [SUBTASKS, SUBTASKS[:1]]}), DONE], ada="3", bob="1 and 2"),
        slice(1, 3),
    ),
    "orchestrator_iterative": (
        lambda model: orchestrator(agents(model, "ada", "bob"), agents(model, "judy"), plan="iterative"),
        by_system(judy=[json.dumps({"done": False, "tasks": SUBTASKS}), '{"done": true}', DONE], ada="3", bob="1, 2"),
        slice(1, 3),
    ),
    "evaluator_optimizer": (
        lambda model: evaluator_optimizer(agents(model, "ada"), agents(model, "judy")),
        by_system(ada=["3", DONE], judy=["No JSON.", *RATED]),
        None,
    ),
    "nested": (
        lambda model: chain([parallel(agents(model, "ada", "bob"), agents(model, "judy")), agents(model, "cyd")]),
        by_system(ada="3", bob="three", judy="It is 3.", cyd=DONE),
        slice(0, 2),
    ),
}


def laid_out(value, indent=0):
    """JSON in which what fits in a line stands in one."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) + indent < 100 or not isinstance(value, (dict, list)):
        return text
    pad, (opening, closing) = " " * (indent + 1), "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, dict):
        lines = [f"{pad}{json.dumps(key)}: {laid_out(inner, indent + 1)}" for key, inner in value.items()]
    else:
        lines = [pad + laid_out(inner, indent + 1) for inner in value]
    return "\n".join([opening, ",\n".join(lines), " " * indent + closing])


@pytest.mark.parametrize("name", SCENES)
def test_exactly_these_messages_and_tools_are_sent(name):
    make, script, together = SCENES[name]
    with ScriptedModel(script) as model:
        row = run([TASK], make(model), servers={"toy": toy_server}, cache=False).iloc[0]
    requests = [{key: value for key, value in body.items() if key != "model"} for body in model.requests]
    if together is not None:
        requests[together] = sorted(requests[together], key=lambda body: json.dumps(body["messages"]))
    found = {
        "requests": requests,
        "transcript": [f"{message.get('agent', 'me')}: {message['role']}" for message in row["messages"]],
        "output": row["output"],
    }
    assert (row["status"], row["well_formed"], json.loads(row["output"])) == ("ok", True, json.loads(DONE))
    file = GOLDEN / f"{name}.json"
    if os.environ.get("MCPEVAL_GOLDEN") == "write":
        file.write_text(laid_out(found) + "\n", encoding="utf-8")
    assert found == json.loads(file.read_text(encoding="utf-8"))


def test_every_golden_file_belongs_to_a_scene():
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(SCENES)
