"""Events: a user's function is told live, in its own thread, and nothing it does costs a run."""

from __future__ import annotations

import io
import re
import threading
from datetime import UTC, datetime

import pytest

from mcpeval.agents import Agent, chain
from mcpeval.cli import main
from mcpeval.errors import InputError
from mcpeval.events import Event, Listeners
from mcpeval.running import run
from mcpeval.running.steps import SHOWN, Steps
from mcpeval.testing import ScriptedModel, toy_server
from mcpeval.types import Run, ToolCall, Usage

QUESTION = "What is 1 + 2?"
TOYS = {"toy": toy_server}
ADD = ("add", {"a": 1, "b": 2})
KINDS = ["run_started", "model_answered", "tool_called", "tool_answered", "model_answered", "run_ended"]


@pytest.fixture
def model():
    with ScriptedModel([[ADD], "It is 3."]) as model:
        yield model


def agent_of(model, strategy="tools", **more):
    return Agent(model.model, strategy, **{**model.params, "retries": 0, **more})


# --- on_event -----------------------------------------------------------------------------------


def test_the_steps_of_a_run_are_told_in_order_with_what_they_bring(model):
    told = []
    before = datetime.now(UTC)
    frame = run([QUESTION], agent_of(model, name="a"), trials=2, servers=TOYS, cache=False, on_event=told.append)
    for trial in range(2):
        events = [event for event in told if event.trial == trial]
        assert [event.kind for event in events] == KINDS
        _, asked, called, answered, said, ended = events
        assert asked.message["tool_calls"][0]["function"]["name"] == "add" and asked.usage.tokens_in == 10
        assert (called.tool_call.name, called.tool_call.arguments, called.tool_call.result) == (*ADD, None)
        assert answered.tool_call.result["structuredContent"] == {"result": 3.0} and answered.span == called.span
        assert said.message["content"] == "It is 3."
        assert ended.run.output == "It is 3." and ended.usage.tokens_in == 20 and ended.error is None
        seconds = [event.seconds for event in events]
        assert seconds == sorted(seconds)
    assert {(event.run_id, event.trial) for event in told} == set(zip(frame["run_id"], frame["trial"], strict=True))
    assert {(event.task_id, event.agent, event.part) for event in told} == {(frame["task_id"][0], "a", None)}
    assert all(before <= event.time <= datetime.now(UTC) for event in told)


def test_an_event_names_the_part_of_a_workflow_whose_doing_it_is(model):
    told = []
    flow = chain([agent_of(model, name="first"), agent_of(model, "basic", name="second")], name="flow")
    model.script = lambda body: "fine"
    run([QUESTION], flow, cache=False, on_event=told.append)
    assert [(event.kind, event.agent, event.part) for event in told] == [
        ("run_started", "flow", None),
        ("model_answered", "flow", "first"),
        ("model_answered", "flow", "second"),
        ("run_ended", "flow", None),
    ]


def test_the_function_is_called_while_the_runs_go_on_and_in_the_thread_of_the_caller():
    heard, threads = threading.Event(), set()

    def hear(event):
        threads.add(threading.current_thread())
        if event.kind == "tool_answered":
            heard.set()

    def mine(task, session):
        session.call_tool(*ADD)
        return "heard" if heard.wait(10) else "not heard"

    frame = run([QUESTION], mine, servers=TOYS, cache=False, on_event=hear)
    assert frame["output"].tolist() == ["heard"] and threads == {threading.current_thread()}


def test_a_function_that_raises_is_told_no_more_and_every_run_is_kept(model, cache):
    told, model.script = [], ["fine"]

    def fails(event):
        told.append(event)
        if len(told) == 2:
            raise ValueError("my plot is broken")

    with pytest.warns(UserWarning, match="on_event: fails raised ValueError: my plot is broken, at the event "):
        frame = run([QUESTION], agent_of(model, "basic"), trials=3, cache=cache, on_event=fails)
    assert len(told) == 2
    assert frame["status"].tolist() == ["ok"] * 3 and sum(key.startswith("run:") for key in cache) == 3


def test_an_interrupt_in_the_function_stops_the_runs(model):
    def stop(event):
        if event.kind == "model_answered":
            raise KeyboardInterrupt

    ended = threading.Event()

    async def mine(task, session):
        try:
            await session.complete([{"role": "user", "content": "?"}], model=model.model, **model.params)
            await session.call_tool("wait", {"seconds": 60})
        finally:
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        run([QUESTION], mine, servers=TOYS, cache=False, on_event=stop)
    assert ended.wait(10)


def test_what_the_function_does_to_an_event_does_not_reach_the_run(model):
    def spoil(event):
        if event.message is not None:
            event.message.clear()
        if event.tool_call is not None:
            event.tool_call.arguments.clear()
        if event.run is not None:
            event.run.messages.clear()

    frames = [
        run([QUESTION], agent_of(model), servers=TOYS, cache=False, on_event=function) for function in (None, spoil)
    ]
    assert frames[0]["messages"][0] == frames[1]["messages"][0]
    assert frames[1]["tool_calls"][0][0]["arguments"] == ADD[1]


def test_a_run_from_the_cache_starts_and_ends_and_is_free(model, cache):
    told, model.script = [], ["fine"]
    run([QUESTION], agent_of(model, "basic"), cache=cache)
    frame = run([QUESTION], agent_of(model, "basic"), cache=cache, on_event=told.append)
    assert frame["cached"].tolist() == [True]
    assert [event.kind for event in told] == ["run_started", "run_ended"]
    assert told[1].usage.cached and told[1].usage.cost_usd == 0 and told[1].run.messages


def test_a_failed_call_and_a_failed_run_are_told_with_their_errors(endpoint):
    told = []
    agent = Agent("openai/r401", "basic", api_base=endpoint.base, api_key="k", retries=0)
    run(["What of ROW-1?"], agent, cache=False, on_event=told.append)
    assert [event.error_class for event in told] == [None, "auth", "model"]
    assert told[1].message is None and "Incorrect API key" in told[1].error and told[2].run.status == "error"


def test_what_cannot_be_told_is_refused_before_anything_is_asked(endpoint):
    agent = Agent("openai/good", "basic", api_base=endpoint.base, api_key="k")

    async def later(event):
        pass

    for more, said in (
        ({"on_event": "print"}, "on_event='print' should be a plain function"),
        ({"on_event": later}, "should be a plain function of one Event"),
        ({"on_event": lambda: None}, "cannot be called with one Event"),
        ({"progress": "verbos"}, "Did you mean 'verbose'?"),
        ({"timeout": 0}, "run: timeout=0 should be a number of seconds above 0"),
        ({"timeout": "1 min"}, "run: timeout='1 min' should be a number"),
    ):
        with pytest.raises(InputError, match=re.escape(said)):
            run([QUESTION], agent, cache=False, **more)
    assert endpoint.count == 0


def test_one_function_that_fails_does_not_silence_another():
    told = []
    listeners = Listeners([lambda event: 1 / 0, told.append])
    event = Event("run_started", "r", "t", "a", 0, datetime.now(UTC), 0.0)
    for _ in range(2):
        listeners.put(event)
    with pytest.warns(UserWarning, match="ZeroDivisionError") as warned:
        listeners.deliver()
    assert told == [event, event] and len(warned) == 1


# --- progress="verbose" -------------------------------------------------------------------------


def shown(*events, **more):
    """What `Steps` prints of events, as text."""
    from rich.console import Console

    stream = io.StringIO()
    steps = Steps(Console(file=stream, width=80, **more))
    for event in events:
        steps(event)
    return stream.getvalue()


def event_of(kind, **more):
    return Event(kind, "r", "t1", "a", more.pop("trial", 0), datetime.now(UTC), 1.25, **more)


def said(text):
    return event_of("model_answered", message={"role": "assistant", "content": text})


def test_the_steps_are_printed_as_they_happen(model, capsys):
    run([{"id": "sum", "question": QUESTION}], agent_of(model, name="a"), servers=TOYS, cache=False, progress="verbose")
    out, err = capsys.readouterr()
    assert out == ""
    lines = [re.sub(r"^ *\d+\.\d s  ", "", line) for line in err.splitlines()]
    assert lines == [
        "sum · a  starts",
        'sum · a  says: add({"a": 1, "b": 2})',
        'sum · a  calls add({"a": 1, "b": 2})',
        "sum · a  add answered: 3.0",
        "sum · a  says: It is 3.",
        "sum · a  ends (cost unknown): It is 3.",
    ]


def test_a_model_s_markup_is_text_and_its_control_characters_are_not_obeyed():
    text = "[bold]not bold[/bold] [/] [link=x]y[/link] :smile:\x1b[31mred\x07\r\nnext"
    assert shown(said(text)) == (
        "   1.2 s  t1 · a  says: [bold]not bold[/bold] [/] [link=x]y[/link] :smile:\ufffd[31mred\ufffd next\n"
    )


def test_a_long_text_is_cut_where_it_is_shown_and_nowhere_else():
    event = said("x" * (SHOWN + 1234))
    assert shown(event).endswith("x [... 1234 characters more]\n") and shown(event).count("x") == SHOWN
    assert len(event.message["content"]) == SHOWN + 1234


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (event_of("run_started", trial=2), "t1 · a · trial 2  starts"),
        (event_of("model_answered", error="HTTP 500", error_class="model"), "t1 · a  model failed: HTTP 500"),
        (event_of("tool_called", part="p", tool_call=ToolCall(None, "f", "{bad")), "t1 · a · p  calls f({bad)"),
        (
            event_of("tool_answered", tool_call=ToolCall("s", "f", {}, is_error=True, error="it died")),
            "t1 · a  f failed: it died",
        ),
        (
            event_of("run_ended", usage=Usage(cost_usd=0.0123, calls=1), run=Run("4")),
            "t1 · a  ends ($0.0123): 4",
        ),
        (event_of("run_ended", usage=Usage(calls=1).from_cache(), run=Run("4")), "t1 · a  ends (from the cache): 4"),
        (
            event_of("run_ended", usage=Usage(), run=Run(), error="no answer", error_class="turn_limit"),
            "t1 · a  ends, turn_limit: no answer",
        ),
    ],
)
def test_each_kind_of_step_has_its_line(event, line):
    assert shown(event) == f"   1.2 s  {line}\n"


def test_the_steps_are_coloured_in_a_terminal():
    assert "\x1b[" in shown(said("hello"), force_terminal=True) and "\x1b[" not in shown(said("hello"))


CELL = """
from mcpeval import run
runs = run([{"id": "t1", "question": "What?"}], {"a": lambda task, session: "[bold]4"}, cache=False, progress="verbose")
"""


def test_the_steps_are_shown_below_the_cell_of_a_notebook():
    manager_module = pytest.importorskip("jupyter_client.manager")
    manager, client = manager_module.start_new_kernel()
    outputs = []
    try:
        reply = client.execute_interactive(CELL, timeout=60, output_hook=outputs.append)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert reply["content"]["status"] == "ok"
    pages = "".join(message["content"].get("data", {}).get("text/html", "") for message in outputs)
    lines = [line for line in re.sub(r"<[^>]*>", "", pages).splitlines() if line]
    assert [line.partition(" s  ")[2] for line in lines] == ["t1 · a  starts", "t1 · a  ends ($0.0000): [bold]4"]


def test_the_command_line_prints_the_steps_and_has_the_time_limit(endpoint, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_API_BASE", endpoint.base)
    (tmp_path / "tasks.jsonl").write_text('{"id": "t1", "question": "What is ROW-1?"}\n')
    given = ["run", str(tmp_path / "tasks.jsonl"), "--model", "openai/good", "--out", str(tmp_path / "runs.csv")]
    assert main([*given, "--verbose", "--timeout", "60"]) == 0
    assert "t1 · tools:good  says: answer for 1" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*given, "--timeout", "soon"])


def test_an_object_whose_call_would_have_to_be_awaited_is_refused():
    class Listener:
        async def __call__(self, event):
            raise AssertionError("nobody would await it")

    with pytest.raises(InputError, match="should be a plain function"):
        run([QUESTION], Agent("openai/gpt-4.1-mini"), on_event=Listener())
