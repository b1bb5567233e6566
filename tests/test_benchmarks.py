"""Benchmark files: what they name, what is wrong with them, and that they run as what they name runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import mcpeval
from mcpeval import Agent, read_benchmark, run
from mcpeval.agents import chain, claude_code, evaluator_optimizer, orchestrator, parallel, router
from mcpeval.benchmarks import PROVIDERS, is_benchmark
from mcpeval.cli import main
from mcpeval.errors import FileError
from mcpeval.interop.judge_llm import is_config
from mcpeval.testing import ScriptedModel, toy_server

ROOT = Path(__file__).resolve().parents[1]
LLM = "kind: llm\nspec: {name: m, type: openai, config: {model_name: gpt-4.1-mini}}\n---\n"
AGENT = "kind: agent\nspec: {name: a, type: basic, config: {llm: m}}\n---\n"
BENCHMARK = "kind: benchmark\nspec: {description: d, agent: a, tasks: [tasks/one.json]}\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tasks").mkdir()
    for name, servers in [("one", ["toy"]), ("two", [])]:
        task = {"question": f"Question {name}?", "mcp_servers": [{"name": s} for s in servers]}
        (tmp_path / "tasks" / f"{name}.json").write_text(json.dumps(task))
    return tmp_path


def read(folder, text, **more):
    (folder / "bench.yaml").write_text(text)
    return read_benchmark(folder / "bench.yaml", **more)


# --- the files of the field ---------------------------------------------------------------------


def quiet(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_benchmark(path)


@pytest.fixture
def configs(conformance):
    return conformance / "data" / "mcpuniverse_tasks" / "mcpuniverse" / "benchmark" / "configs"


def test_the_documentations_weather_example_is_an_agent_at_a_task(configs):
    with pytest.warns(UserWarning, match="without effect here: summarize_tool_response"):
        found = read_benchmark(configs / "dummy" / "benchmark_1.yaml")
    system = "You are an agent for weather forecasting."
    assert found.agents == [Agent("openai/gpt-4o-mini", "react", name="ReAct-agent", system=system, max_turns=5)]
    assert [(task.id, task.mcp_servers) for task in found.tasks] == [("weather_1", ({"name": "weather"},))]
    assert (found.description, found.missing) == ("Test the agent for weather forecasting", ())


def test_the_orchestrator_example_is_a_workflow_whose_agents_use_their_own_servers(configs):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read_benchmark(configs / "dummy" / "benchmark_2.yaml")
    basic = "Return the latitude and the longitude of a place."
    weather = (
        "You are an agent for weather forecast. Please return the weather today at the given latitude and longitude."
    )
    about = {"servers": ["weather"], "system": weather, "max_turns": 5}
    agents = [
        Agent("openai/gpt-4o", "basic", name="basic-agent", servers=[], system=basic),
        Agent("openai/gpt-4o", "tools", name="function-call-agent", **about),
    ]
    assert found.agents == [orchestrator(agents, "openai/gpt-4o", name="orchestrator-workflow")]
    assert found.agents[0].servers == ("weather",)


# Active entries of each file's list of tasks, and those of them that are there.
COUNTS = {
    "dummy/benchmark_1": (1, 1),
    "dummy/benchmark_2": (1, 1),
    "mcpmark/configs/mcpmark_filesystem": (30, 30),
    "mcpmark/configs/mcpmark_github": (23, 23),
    "mcpmark/configs/mcpmark_notion": (28, 28),
    "mcpmark/configs/mcpmark_playwright": (4, 4),
    "mcpmark/configs/mcpmark_playwright_webarena": (21, 21),
    "mcpmark/configs/mcpmark_postgres": (21, 21),
    "mcpuniverse/3d_design": (19, 19),
    "mcpuniverse/browser_automation": (39, 39),
    "mcpuniverse/financial_analysis": (40, 40),
    "mcpuniverse/location_navigation": (45, 45),
    "mcpuniverse/multi_server": (1, 1),
    "mcpuniverse/repository_management": (33, 5),
    "mcpuniverse/web_search": (55, 55),
}


def test_every_benchmark_file_is_read_and_every_task_that_is_there_is_found(configs):
    files = {str(path.relative_to(configs).with_suffix("")): path for path in configs.rglob("*.yaml")}
    assert set(files) == set(COUNTS)
    for name, path in files.items():
        # An independent count: the lines of the list that are no comments, and whether the file is there.
        listed = re.findall(r"^\s*- (\S+\.json)", path.read_text("utf-8"), re.MULTILINE)
        there = [entry for entry in listed if (configs / entry).is_file()]
        found = quiet(path)
        assert (len(listed), len(there)) == COUNTS[name]
        assert len(found.tasks) == len(there)
        assert list(found.missing) == [entry for entry in listed if entry not in there]
        assert len(found.agents) == 1


def test_tasks_that_are_not_there_are_named(configs):
    with pytest.warns(UserWarning, match=r"28 of its tasks are not there: mcpuniverse/.*\.json and 23 more"):
        read_benchmark(configs / "mcpuniverse" / "repository_management.yaml")


def test_a_file_without_a_benchmark_has_the_agents_that_no_other_is_made_of(conformance):
    tests = conformance / "data" / "mcpuniverse_tasks" / "tests" / "data"
    found = quiet(tests / "config" / "yaml_config.yaml")
    agents = [Agent("openai/gpt-4o", "basic", name=f"agent-{i}", servers=[]) for i in (1, 2, 3)]
    assert found.agents == [parallel(agents[:2], agents[2], name="main")]
    assert (found.tasks, found.description) == ([], "")
    [alone] = quiet(tests / "collection" / "agent-1.yaml").agents
    assert (alone.name, alone.servers, alone.strategy) == ("ReAct-agent", ("weather",), "react")


def test_a_collection_is_the_agents_of_its_files_under_its_own_name(conformance):
    path = conformance / "data" / "mcpuniverse_tasks" / "tests" / "data" / "collection" / "agent-collection.yaml"
    said = "without effect here: number of collection 'agent-collection-1', context of collection 'agent-collection-3'"
    with pytest.warns(UserWarning, match=said):
        found = read_benchmark(path)
    about = [(agent.name, agent.strategy, agent.servers, agent.model) for agent in found.agents]
    assert about == [
        ("agent-collection-1", "react", ("weather",), "openai/gpt-4o"),
        ("agent-collection-2", "basic", None, "openai/gpt-4o"),
        ("agent-collection-3", "react", ("github",), "openai/gpt-4o"),
    ]
    assert found.tasks == []


def test_a_command_line_agent_is_started_by_its_command(conformance):
    path = conformance / "data" / "mcpuniverse_tasks" / "tests" / "data" / "config" / "claude_code.yaml"
    [agent] = quiet(path).agents
    assert agent == claude_code(None, "agent-1", system="You are an agent for weather forecast", servers=["weather"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        [other] = read_benchmark(path, model="anthropic/claude-sonnet-4-5").agents
    assert other.model == "claude-sonnet-4-5"


def test_that_packages_own_name_for_a_model_is_translated(configs):
    [agent] = quiet(configs / "mcpuniverse" / "web_search.yaml").agents
    assert (agent.model, agent.params) == ("openrouter/openai/gpt-oss-120b", {"reasoning_effort": "high"})
    assert (agent.strategy, agent.max_turns) == ("react", 50)


# --- models -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "model", "expected"),
    [
        ("openai", "gpt-4.1-mini", "openai/gpt-4.1-mini"),
        ("openai", "openai/gpt-4.1-mini", "openai/gpt-4.1-mini"),
        ("anthropic", "claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("claude", "claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("google", "gemini-2.5-flash", "gemini/gemini-2.5-flash"),
        ("gemini", "gemini-2.5-flash", "gemini/gemini-2.5-flash"),
        ("mistral", "mistral-large-latest", "mistral/mistral-large-latest"),
        ("ollama", "llama3.2", "ollama_chat/llama3.2"),
        ("grok", "grok-4", "xai/grok-4"),
        ("deepseek", "deepseek-chat", "deepseek/deepseek-chat"),
        ("openrouter", "z-ai/glm-4.6", "openrouter/z-ai/glm-4.6"),
        ("litellm", "azure/my-deployment", "azure/my-deployment"),
    ],
)
def test_a_type_and_a_name_are_a_litellm_string_that_litellm_knows(folder, kind, model, expected):
    from litellm import get_llm_provider

    text = LLM.replace("openai", kind).replace("gpt-4.1-mini", model)
    [agent] = read(folder, text + AGENT).agents
    assert agent.model == expected
    if kind != "litellm":
        assert get_llm_provider(agent.model)[1] == PROVIDERS[kind].rstrip("/")


def test_the_settings_of_a_model_are_its_parameters_and_nothing_else_is_sent(folder):
    config = (
        "{model_name: m, base_url: 'http://127.0.0.1:1/v1', api_key: sk-x, temperature: 0, max_tokens: 9, "
        "max_completion_tokens: 8, reasoning: high, thinking_budget_tokens: 100, seed: 7, timeout: 5}"
    )
    text = LLM.replace("{model_name: gpt-4.1-mini}", config)
    [agent] = read(folder, text + AGENT).agents
    assert agent.params == {
        "api_base": "http://127.0.0.1:1/v1", "api_key": "sk-x", "temperature": 0, "max_tokens": 9,
        "max_completion_tokens": 8, "reasoning_effort": "high", "seed": 7, "timeout": 5,
        "thinking": {"type": "enabled", "budget_tokens": 100},
    }  # fmt: skip
    [agent] = read(folder, LLM + AGENT).agents
    assert agent.params == {}


def test_another_model_takes_the_place_of_every_model_but_not_how_that_is_reached(folder):
    text = LLM.replace("gpt-4.1-mini", "m, api_key: sk-x, base_url: 'http://127.0.0.1:1/v1', temperature: 0")
    flow = "kind: workflow\nspec: {name: w, type: router, config: {llm: m, agents: [a], top_k: 2}}\n---\n"
    [made] = read(folder, text + AGENT + flow, model="anthropic/other", max_tokens=5).agents
    assert made.model == "anthropic/other"
    assert made.chooser.params == made.agents[0].params == {"temperature": 0, "max_tokens": 5}


# --- agents and workflows -----------------------------------------------------------------------


def test_an_agents_settings_are_those_of_an_agent_under_both_names(folder):
    config = "{llm: m, instruction: Be short., max_iterations: 7, min_tool_calls: 2, servers: [toy, {name: other}]}"
    text = LLM + AGENT.replace("basic", "function_call").replace("{llm: m}", config)
    about = {"system": "Be short.", "max_turns": 7, "min_tool_calls": 2, "servers": ["toy", "other"]}
    assert read(folder, text).agents == [Agent("openai/gpt-4.1-mini", "tools", name="a", **about)]


def test_every_workflow_is_made_with_its_settings_and_its_agents_in_any_depth(folder):
    flows = [
        "{name: c, type: chain, config: {agents: [a, b]}}",
        "{name: p, type: parallelization, config: {agents: [c, a], aggregator: b}}",
        "{name: r, type: router, config: {llm: m, agents: [p, a], top_k: 2}}",
        "{name: o, type: orchestrator, config: {llm: m, agents: [r], plan_type: iterative, max_iterations: 4}}",
        "{name: e, type: evaluator-optimizer, config: {optimizer: o, evaluator: a, max_rounds: 2, min_rating: FAIR}}",
    ]
    text = (
        LLM + AGENT + AGENT.replace("name: a", "name: b") + "\n---\n".join(f"kind: workflow\nspec: {f}" for f in flows)
    )
    a, b = (Agent("openai/gpt-4.1-mini", "basic", name=name, servers=[]) for name in "ab")
    c = chain([a, b], name="c")
    p = parallel([c, a], b, name="p")
    r = router([p, a], "openai/gpt-4.1-mini", top_k=2, name="r")
    o = orchestrator([r], "openai/gpt-4.1-mini", plan="iterative", max_steps=4, name="o")
    assert read(folder, text).agents == [evaluator_optimizer(o, a, max_rounds=2, enough="fair", name="e")]


def test_the_main_one_alone_is_taken_where_one_is_marked(folder):
    text = LLM + AGENT + AGENT.replace("name: a", "name: b, is_main: true")
    assert [agent.name for agent in read(folder, text).agents] == ["b"]


def test_a_task_without_servers_gets_those_of_its_agent_with_their_tools(folder):
    config = "{llm: m, servers: [{name: other, tools: [add]}]}"
    text = LLM + AGENT.replace("basic", "react").replace("{llm: m}", config)
    found = read(folder, text + BENCHMARK.replace("one.json", "one.json, tasks/two.json"))
    assert [task.mcp_servers for task in found.tasks] == [({"name": "toy"},), ({"name": "other", "tools": ["add"]},)]
    assert found.agents[0].servers is None


def test_several_agents_at_the_same_tasks_are_one_benchmark_and_at_others_are_not(folder):
    text = LLM + AGENT + AGENT.replace("name: a", "name: b") + BENCHMARK + "---\n"
    found = read(folder, text + BENCHMARK.replace("agent: a", "agent: b"))
    assert ([agent.name for agent in found.agents], len(found.tasks)) == (["a", "b"], 1)
    found = read(folder, text + BENCHMARK.replace("one.json", "two.json"))
    assert ([agent.name for agent in found.agents], [task.id for task in found.tasks]) == (["a"], ["one", "two"])
    with pytest.raises(FileError, match="the agents a, b are given different tasks; give each benchmark a file"):
        read(folder, text + BENCHMARK.replace("agent: a", "agent: b").replace("one.json", "two.json"))


def test_a_benchmark_can_name_a_collection(folder):
    (folder / "agents.yaml").write_text(LLM + AGENT + AGENT.replace("name: a", "name: b"))
    collection = "kind: collection\nspec: {name: team, config: agents.yaml, number: 1}\n---\n"
    found = read(folder, collection + BENCHMARK.replace("agent: a", "agent: team, benchmark_id: mine"))
    assert [agent.name for agent in found.agents] == ["team/a", "team/b"]
    assert [task.id for task in found.tasks] == ["one"]


@pytest.mark.parametrize("agents", [AGENT, AGENT + AGENT.replace("name: a", "name: b")])
def test_an_agent_of_a_collection_keeps_the_parameters_of_its_model(folder, agents):
    model = LLM.replace("gpt-4.1-mini", "gpt-4.1-mini, temperature: 0.5, max_tokens: 9")
    (folder / "agents.yaml").write_text(model + agents)
    found = read(folder, "kind: collection\nspec: {name: team, config: agents.yaml}\n")
    assert [agent.params for agent in found.agents] == [{"temperature": 0.5, "max_tokens": 9}] * agents.count("kind:")


def test_a_name_that_is_too_long_for_a_file_is_one_that_is_not_there(folder):
    name = "x" * 5000
    with pytest.warns(UserWarning, match="1 of its tasks are not there"):
        found = read(folder, LLM + AGENT + BENCHMARK.replace("tasks/one.json", name))
    assert (found.tasks, found.missing) == ([], (name,))
    with pytest.raises(FileError, match="is no file beside this one"):
        read(folder, f"kind: collection\nspec: {{name: team, config: {name}}}\n")
    assert not is_benchmark(f"{name}.yaml")


def test_agents_of_a_workflow_keep_the_only_tools_of_their_servers(folder):
    config = "{llm: m, servers: [{name: toy, tools: [add]}, other]}"
    flow = "kind: workflow\nspec: {name: w, type: chain, config: {agents: [a]}}\n---\n"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        [made] = read(folder, LLM + AGENT.replace("basic", "react").replace("{llm: m}", config) + flow).agents
    assert made.agents[0].servers == {"toy": ("add",), "other": None}


def test_tasks_are_found_beside_the_file_above_it_and_in_that_packages_layout(folder):
    deep = folder / "deep" / "er"
    deep.mkdir(parents=True)
    assert [task.id for task in read(deep, LLM + AGENT + BENCHMARK).tasks] == ["one"]
    layout = folder / "mcpuniverse" / "benchmark" / "configs" / "dummy"
    layout.mkdir(parents=True)
    (layout / "three.json").write_text('{"question": "Three?"}')
    found = read(deep, LLM + AGENT + BENCHMARK.replace("tasks/one", "dummy/three"))
    assert [task.question for task in found.tasks] == ["Three?"]
    (deep / "task_configs").mkdir()
    (deep / "task_configs" / "four.json").write_text('{"question": "Four?"}')
    found = read(deep, LLM + AGENT + BENCHMARK.replace("tasks/one", "four"))
    assert [task.question for task in found.tasks] == ["Four?"]


# --- what is wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: agnet\nspec: {}", "document 1: kind='agnet'. Did you mean 'agent'?"),
        ("kind: llm\nspce: {}", "unknown key 'spce'. Did you mean 'spec'?"),
        ("- 1", "document 1 should be a mapping with kind, spec"),
        ("kind: [", "line 1: not YAML"),
        ("kind: llm\nspec: !!python/object:os.system {}", "not YAML"),
        ("kind: llm\nspec: {name: m, type: openai, config: 7}", "config=7 should be a dict"),
        (LLM.replace("type: openai", "type: opnai"), "llm 'm': type='opnai'. Did you mean 'openai'?"),
        (LLM.replace("model_name", "model_nam"), "llm 'm': unknown key 'model_nam'. Did you mean 'model_name'?"),
        (LLM.replace("gpt-4.1-mini", "4"), "model_name=4 should be the name of a model"),
        (LLM + LLM, "two documents have the name 'm'"),
        (LLM + AGENT.replace("basic", "reakt"), "agent 'a': type='reakt'. Did you mean 'react'?"),
        (LLM + AGENT.replace("llm: m", "llm: m, instructions: x"), "'instructions'. Did you mean 'instruction'?"),
        (LLM + AGENT.replace("llm: m", "llm: n"), "agent 'a': there is no llm named 'n'"),
        (LLM + AGENT.replace("llm: m", "llm: m, servers: toy"), "servers='toy' should be a list"),
        (LLM + AGENT.replace("llm: m", "llm: m, servers: [{nam: toy}]"), "unknown key 'nam'. Did you mean 'name'?"),
        (LLM + AGENT.replace("llm: m", "llm: m, max_iterations: 0"), "agent 'a': Agent: max_turns=0 should be"),
        (
            LLM + AGENT.replace("llm: m", "llm: m, servers: [{name: toy, permissions: [{tool: x, action: reject}]}]"),
            "permissions are not taken from a benchmark file",
        ),
        (
            LLM + AGENT + BENCHMARK.replace("agent: a", "agent: b"),
            "there is no agent, workflow or collection named 'b'",
        ),
        ("kind: collection\nspec: {name: c, config: none.yaml}", "config='none.yaml' is no file beside this one"),
        ("kind: collection\nspec: {name: c, config: x, nmber: 2}", "unknown key 'nmber'. Did you mean 'number'?"),
        ("kind: collection\nspec: {name: c, config: bench.yaml}", "collection 'c': bench.yaml has collections itself"),
        (LLM + AGENT.replace("basic", "claude-cod"), "type='claude-cod'. Did you mean 'claude-code'?"),
        (LLM + AGENT + BENCHMARK.replace("tasks:", "task:"), "unknown key 'task'. Did you mean 'tasks'?"),
        (LLM + AGENT + BENCHMARK.replace("[tasks/one.json]", "[7]"), "tasks should be paths"),
        (
            "kind: workflow\nspec: {name: w, type: chian}\n---\n" + BENCHMARK.replace("agent: a", "agent: w"),
            "Did you mean 'chain'?",
        ),
        (
            "kind: workflow\nspec: {name: a, type: chain, config: {agents: [b]}}\n---\n"
            "kind: workflow\nspec: {name: b, type: chain, config: {agents: [a]}}\n---\n" + BENCHMARK,
            "a -> b -> a: an agent cannot be a part of itself",
        ),
    ],
)
def test_what_is_wrong_is_said_with_the_file_the_name_and_the_nearest_spelling(folder, text, said):
    if "kind: benchmark" not in text and "kind: agent" not in text and "name: m" in text:
        text += "\n---\n" + AGENT
    with pytest.raises(FileError, match=re.escape(said)) as caught:
        read(folder, text)
    assert str(folder / "bench.yaml") in str(caught.value)


def test_a_task_file_with_a_mistake_is_named(folder):
    (folder / "tasks" / "one.json").write_text('{"qestion": "?"}')
    with pytest.raises(FileError, match=r"one\.json, line 1: unknown key 'qestion'"):
        read(folder, LLM + AGENT + BENCHMARK)


def test_a_missing_file_and_another_suffix_are_said(tmp_path):
    with pytest.raises(FileError, match="cannot be read"):
        read_benchmark(tmp_path / "none.yaml")
    with pytest.raises(FileError, match="should end in .yaml"):
        read_benchmark(tmp_path / "bench.json")


# --- running it ---------------------------------------------------------------------------------


def test_yaml_with_kinds_is_a_benchmark_and_with_a_dataset_a_configuration(tmp_path):
    bench, config = tmp_path / "bench.yaml", tmp_path / "config.yml"
    bench.write_text("# mine\nkind: llm\nspec: {}\n")
    config.write_text("dataset: {paths: [a.json]}\nproviders:\n  - kind: x\n")
    assert [(is_benchmark(path), is_config(path)) for path in (bench, config)] == [(True, False), (False, True)]


def script(body):
    if body["messages"][-1]["role"] == "tool" or not body.get("tools"):
        return "It is 3."
    return [("add", {"a": 1, "b": 2})]


TOY = "from mcpeval.testing import toy_server; toy_server('toy').run('stdio')"


def test_the_command_and_run_give_the_same_frame(folder, monkeypatch, capsys):
    config = "{llm: m, servers: [{name: toy, tools: [add]}]}"
    text = LLM + AGENT.replace("basic", "function-call").replace("{llm: m}", config)
    text += BENCHMARK.replace("one.json", "one.json, tasks/two.json")
    (folder / "bench.yaml").write_text(text)
    servers = {"mcpServers": {"toy": {"command": sys.executable, "args": ["-c", TOY]}}}
    (folder / "servers.json").write_text(json.dumps(servers))
    with ScriptedModel(script) as model:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        out, base = folder / "runs.csv", f"api_base={model.params['api_base']}"
        given = ["--model", "openai/other", "--trials", "2", "--servers", str(folder / "servers.json"), "--param", base]
        assert main(["run", str(folder / "bench.yaml"), *given, "--out", str(out), "--cache", str(folder / "c")]) == 0
        assert "4 runs, 0 of them ended with an error" in capsys.readouterr().out
        found = read_benchmark(folder / "bench.yaml", model="openai/other", api_base=model.params["api_base"])
        runs = run(found.tasks, found.agents, trials=2, servers=servers, cache=folder / "d")
    assert {request["model"] for request in model.requests} == {"other"}
    read = mcpeval.read_runs(out)
    same = ["run_id", "task_id", "agent", "model", "trial", "output", "messages", "n_tool_calls", "status", "turns"]
    assert read[same].to_dict("records") == runs[same].to_dict("records")
    assert runs["n_tool_calls"].tolist() == [1] * 4


def test_what_a_benchmark_says_itself_is_refused_beside_it(folder, capsys):
    (folder / "bench.yaml").write_text(LLM + AGENT + BENCHMARK)
    assert main(["run", str(folder / "bench.yaml"), "--strategy", "react"]) == 2
    assert "--strategy is said in the benchmark itself" in capsys.readouterr().err
    assert main(["run", str(folder / "bench.yaml"), "--compat", "judge-llm"]) == 2


def test_what_belongs_to_a_task_is_done_by_the_command_and_by_run_alike_and_remote_services_need_trust(
    folder, monkeypatch, capsys
):
    """Prepares, clean-ups and a working folder; the service is a real MCP server over HTTP on loopback."""
    (folder / "tasks" / "seed").mkdir()
    (folder / "tasks" / "seed" / "a.txt").write_text("first")
    about = {
        "question": "What is in {{WORKDIR}}?",
        "mcp_servers": ["toy"],
        "workdir": "seed",
        "prepares": [{"server": "remote", "tool": "note", "arguments": {"text": "in {{WORKDIR}}"}}],
        "cleanups": [{"server": "remote", "cleanup_func": "boom", "cleanup_args": {"message": "left as it is"}}],
    }
    (folder / "tasks" / "one.json").write_text(json.dumps(about))
    (folder / "bench.yaml").write_text(LLM + AGENT.replace("basic", "function-call") + BENCHMARK)
    toy = {"command": sys.executable, "args": ["-c", TOY]}
    command = [sys.executable, "-m", "tests.bad_server", "http"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as remote,
        ScriptedModel(script) as model,
    ):
        try:
            servers = {"toy": toy, "remote": {"url": f"http://127.0.0.1:{int(remote.stdout.readline())}/mcp"}}
            (folder / "servers.json").write_text(json.dumps(servers))
            monkeypatch.setenv("OPENAI_API_KEY", "none")
            out, base = folder / "runs.parquet", f"api_base={model.params['api_base']}"
            given = ["run", str(folder / "bench.yaml"), "--model", "openai/other", "--trials", "2", "--param", base]
            given += ["--servers", str(folder / "servers.json"), "--out", str(out), "--cache", str(folder / "c")]
            assert main(given) == 2
            assert "may call a remote service, which run() does only with trust=True" in capsys.readouterr().err
            assert model.requests == []
            assert main([*given, "--trust", "--keep-workdirs", str(folder / "kept")]) == 0
            found = read_benchmark(folder / "bench.yaml", model="openai/other", api_base=model.params["api_base"])
            runs = run(found.tasks, found.agents, trials=2, servers=servers, cache=folder / "d", trust=True)
        finally:
            remote.terminate()
    read = mcpeval.read_runs(out)
    same = ["run_id", "task_id", "agent", "trial", "question", "output", "messages", "n_tool_calls", "status"]
    assert read[same].to_dict("records") == runs[same].to_dict("records")
    said = ["prepares", "cleanups", "workdir"]
    assert [{k: m[k] for k in said} for m in read["metadata"]] == [{k: m[k] for k in said} for m in runs["metadata"]]
    assert runs["metadata"][0]["cleanups"][0]["error"].endswith("left as it is")
    assert runs["n_tool_calls"].tolist() == [1, 1]
    assert sorted(path.name for path in (folder / "kept").iterdir()) == sorted(runs["run_id"])


def test_a_workflow_of_a_file_runs(folder):
    flow = "kind: workflow\nspec: {name: w, type: chain, config: {agents: [a, a]}}\n---\n"
    with ScriptedModel(["fine"]) as model:
        found = read(
            folder, LLM + AGENT + flow + BENCHMARK.replace("agent: a", "agent: w"), model=model.model, **model.params
        )
        row = run(found.tasks, found.agents, servers={"toy": toy_server}, cache=False).iloc[0]
    assert (row["agent"], row["output"], row["turns"], row["model"]) == ("w", "fine", 2, "openai/scripted")
