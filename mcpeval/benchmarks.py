"""Benchmark files: YAML documents that name models, agents, workflows and tasks, as MCP-Universe writes them."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .agents import (
    Agent,
    External,
    Workflow,
    chain,
    claude_code,
    evaluator_optimizer,
    orchestrator,
    parallel,
    router,
)
from .agents.base import ALIASES, FAMILIAR, STRATEGIES
from .errors import FileError, InputError, did_you_mean
from .tasks import read_tasks
from .types import Task

SUFFIXES = (".yaml", ".yml")
KINDS = ("llm", "agent", "workflow", "benchmark", "collection")
#: Where that package keeps its tasks: beside a benchmark file, and below the folder of its repository.
LAYOUTS = (Path("task_configs"), Path("mcpuniverse", "benchmark", "configs"))

#: The prefix of a LiteLLM string, by the type of a model.
PROVIDERS = {
    "openai": "openai/", "anthropic": "anthropic/", "claude": "anthropic/", "google": "gemini/", "gemini": "gemini/",
    "mistral": "mistral/", "ollama": "ollama_chat/", "grok": "xai/", "deepseek": "deepseek/",
    "openrouter": "openrouter/", "local_llm": "hosted_vllm/", "vllm_local": "hosted_vllm/",
    "sglang_local": "hosted_vllm/", "litellm": "",
}  # fmt: skip
#: That package's own name for a model, in its published files.
MODELS = {"openrouter": {"GPTOSS120B_OR": "openai/gpt-oss-120b"}}
MODEL_KEYS = {"base_url": "api_base", "ollama_url": "api_base", "reasoning": "reasoning_effort"}
#: How a model is reached: not kept for another one.
REACHED = ("api_base", "api_key", "api_version", "organization", "extra_headers")

#: Types of agents that are command-line agents of ours.
COMMANDS = {"claude-code": claude_code, "claude_code": claude_code}
#: Types of agents that are strategies of ours under another name.
STRATEGIES_OF = {"harmony_react": "react"}
AGENT_KEYS = {
    "instruction": "system", "system": "system", "max_iterations": "max_turns", "max_turns": "max_turns",
    "exploration_phase_iterations": "min_tool_calls", "min_tool_calls": "min_tool_calls",
}  # fmt: skip
#: Steps that it takes where the file does not say.
MAX_TURNS = {"explore": 15}
FEW_TURNS = 5
#: What has no counterpart here; a warning says so.
WITHOUT_EFFECT = (
    "summarize_tool_response", "context_examples", "template_vars", "system_prompt", "tools_prompt",
    "reflection_prompt", "use_llm_tool_api", "resources", "mcp_gateway_url",
)  # fmt: skip

#: The workflows by type: what makes one, and its settings by the keys of the file.
WORKFLOWS: dict[str, tuple[Any, dict[str, str]]] = {
    "chain": (chain, {}),
    "parallel": (parallel, {}),
    "router": (router, {"top_k": "top_k"}),
    "orchestrator": (
        orchestrator,
        {"plan_type": "plan", "plan": "plan", "max_iterations": "max_steps", "max_steps": "max_steps"},
    ),
    "evaluator_optimizer": (
        evaluator_optimizer,
        {
            "min_rating": "enough", "enough": "enough", "scale": "scale", "max_iterations": "max_rounds",
            "max_rounds": "max_rounds",
        },
    ),
}  # fmt: skip
WORKFLOW_ALIASES = {"parallelization": "parallel", "evaluator-optimizer": "evaluator_optimizer"}
#: The keys of each workflow that name its agents or its model, in the order of its arguments.
MADE_OF = {
    "chain": ("agents",), "parallel": ("agents", "aggregator"), "router": ("agents", "llm"),
    "orchestrator": ("agents", "llm"), "evaluator_optimizer": ("optimizer", "evaluator"),
}  # fmt: skip


@dataclass(frozen=True)
class Benchmark:
    """What a benchmark file names; ``run(benchmark.tasks, benchmark.agents)`` runs it.

    Attributes
    ----------
    tasks : list of Task
    agents : list of Agent, External and Workflow
    description : str
    missing : tuple of str
        Tasks that the file names and that are not there.
    """

    tasks: list[Task]
    agents: list[Agent | External | Workflow]
    description: str = ""
    missing: tuple[str, ...] = ()


def is_benchmark(path: str | os.PathLike) -> bool:
    """Whether a file is a benchmark: YAML whose documents have a ``kind``."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES or not os.path.isfile(path):
        return False
    return re.search(rb"^kind\s*:", path.read_bytes(), re.MULTILINE) is not None


def read_benchmark(path: str | os.PathLike, *, model: str | None = None, **params: Any) -> Benchmark:
    """Read a benchmark file: YAML documents of the kinds llm, agent, workflow, collection and benchmark.

    Parameters
    ----------
    path : path
        A ``.yaml`` file as MCP-Universe writes them.
    model : str, optional
        A LiteLLM model string that replaces every model of the file; how those are reached (their
        ``api_key``, ``base_url``, ...) is then left out, their other parameters stay.
    **params
        Parameters of every model, before those of the file.

    Returns
    -------
    Benchmark
        With the agents that the ``benchmark`` documents name; where there is none, with those that no
        other agent or workflow of the file is made of, and those of its collections.

    Raises
    ------
    FileError
        The file, or a task file it names, cannot be read; something in it is unknown (the nearest
        spelling is named), is missing, or goes round in a circle; or it has several benchmarks with
        different tasks for different agents, which are a file each.

    Warns
    -----
    UserWarning
        Tasks that are not there, and settings that have no effect here, by name.

    Notes
    -----
    A model is ``{type: openai, config: {model_name: ...}}``; the types are those of `PROVIDERS`, and
    ``litellm`` takes any LiteLLM string.  Nothing is sent that the file does not say: no temperature,
    no seed.  An agent that does not say how many iterations it may take gets 5 (``explore``: 15), as
    there.

    A collection names a file of agents: ``{name: ..., config: agents.yaml}``.  Its agent has the name of
    the collection; several have it before their own (``collection/agent``).  How many copies of it work
    side by side (``number``), each with an account of its own (``context``), says nothing of the agent:
    that is ``run(concurrency=...)``, and the environment of `read_servers`.

    A task is looked for beside the file, in the folders above it, and in that package's layouts
    (``task_configs``, ``mcpuniverse/benchmark/configs``) below each of them.  As there, the servers that a task names
    replace those of its agent, but for the agents of a workflow, which use their own and no others.

    Examples
    --------
    >>> benchmark = read_benchmark("weather.yaml", model="openai/gpt-4.1-mini")  # doctest: +SKIP
    >>> runs = run(benchmark.tasks, benchmark.agents, servers="servers.json")  # doctest: +SKIP
    """
    path = Path(path)
    book = _Book(path, model, params)
    named: dict[str, list[str]] = {}
    for spec in book.benchmarks:
        named.setdefault(spec["agent"], []).extend(spec["tasks"])
    agents = [agent for name in named or book.mains() for agent in book.agents(name, named=bool(named))]
    lists = [_tasks(path, names, book.servers(agent)) for agent, names in named.items()]
    if any(tasks != lists[0] for tasks in lists[1:]):
        raise FileError(f"the agents {', '.join(named)} are given different tasks; give each benchmark a file", path)
    tasks, missing = lists[0] if lists else ([], ())
    _warn(path, missing, book.without_effect)
    descriptions = dict.fromkeys(spec["description"].strip() for spec in book.benchmarks)
    return Benchmark(tasks, agents, "\n".join(filter(None, descriptions)), missing)


def _warn(path: Path, missing: Sequence[str], keys: Sequence[str]) -> None:
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        warnings.warn(f"{path}: {len(missing)} of its tasks are not there: {shown}", stacklevel=3)
    if keys:
        warnings.warn(f"{path}: without effect here: {', '.join(dict.fromkeys(keys))}", stacklevel=3)


# --- the documents ------------------------------------------------------------------------------


def _documents(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Kind and spec of each document."""
    import yaml

    if path.suffix.lower() not in SUFFIXES:
        raise FileError("a benchmark file's name should end in .yaml", path)
    try:
        found = [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8-sig")) if document]
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"cannot be read: {error}", path) from None
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        raise FileError(f"not YAML: {problem}", path, mark and mark.line + 1) from None
    documents = []
    for number, document in enumerate(found, start=1):
        _known(document, ("kind", "spec"), f"document {number}", path)
        kind = str(document.get("kind")).lower()
        if kind not in KINDS:
            raise FileError(f"document {number}: kind={document.get('kind')!r}. {did_you_mean(kind, KINDS)}", path)
        documents.append((kind, _spec(kind, document.get("spec"), f"document {number} ({kind})", path)))
    return documents


def _spec(kind: str, given: Any, where: str, path: Path) -> dict[str, Any]:
    """A spec whose keys are known and whose values have the right types."""
    if kind == "benchmark":
        wanted = {"agent": str, "tasks": list, "description": str}
        spec = {"description": "", **_known(given, (*wanted, "benchmark_id"), where, path)}
    elif kind == "collection":
        wanted = {"name": str, "config": str, "number": int, "context": list}
        spec = {"number": 1, "context": [], **_known(given, wanted, where, path)}
    else:
        wanted = {"name": str, "type": str, "config": dict}
        spec = {**_known(given, (*wanted, "is_main"), where, path)}
        spec["config"] = spec.get("config") or {}
    for key, type_ in wanted.items():
        if not isinstance(spec.get(key), type_):
            raise FileError(f"{where}: {key}={spec.get(key)!r:.80} should be a {type_.__name__}", path)
    if not all(isinstance(task, str) for task in spec.get("tasks", ())):
        raise FileError(f"{where}: tasks should be paths of task files", path)
    return spec


def _known(given: Any, known: Any, where: str, path: Path) -> Mapping[str, Any]:
    """`given`, a mapping without any other key."""
    if not isinstance(given, Mapping):
        raise FileError(f"{where} should be a mapping with {', '.join(known)}; it is {given!r:.80}", path)
    for key in given:
        if key not in known:
            raise FileError(f"{where}: unknown key {key!r}. {did_you_mean(key, known)}", path)
    return given


# --- models, agents, workflows ------------------------------------------------------------------


class _Book:
    """The documents of a file by their names, and the agents that they describe."""

    def __init__(self, path: Path, model: str | None, params: Mapping[str, Any]) -> None:
        self.path, self.model, self.params = path, model, params
        self.benchmarks: list[dict[str, Any]] = []
        self.without_effect: list[str] = []
        self._specs: dict[str, tuple[str, dict[str, Any]]] = {}
        for kind, spec in _documents(path):
            if kind == "benchmark":
                self.benchmarks.append(spec)
            elif spec["name"] in self._specs:
                raise FileError(f"two documents have the name {spec['name']!r}", path)
            else:
                self._specs[spec["name"]] = kind, spec

    def mains(self) -> list[str]:
        """The agents and workflows that no other one is made of; the main one alone, where one is marked."""
        collections = [name for name, (kind, _) in self._specs.items() if kind == "collection"]
        makers = {name: spec for name, (kind, spec) in self._specs.items() if kind in ("agent", "workflow")}
        marked = [name for name, spec in makers.items() if spec.get("is_main")]
        used = set()
        for spec in makers.values():
            for value in spec["config"].values():
                used.update(value if isinstance(value, list) and all(isinstance(v, str) for v in value) else ())
                used.update([value] if isinstance(value, str) else ())
        return [*(marked or [name for name in makers if name not in used]), *collections]

    def agents(self, name: str, *, named: bool) -> list[Agent | External | Workflow]:
        """The agent or workflow `name`, or the agents of that collection."""
        kind, spec = self._find(name, ("agent", "workflow", "collection"), "a benchmark")
        return self._collected(spec, named) if kind == "collection" else [self.agent(name, named=named)]

    def _collected(self, spec: Mapping[str, Any], named: bool) -> list[Agent | External | Workflow]:
        """The agents of the file that a collection names, under the collection's name."""
        name, path = spec["name"], self.path.parent / spec["config"]
        if not os.path.isfile(path):
            raise FileError(f"collection {name!r}: config={spec['config']!r} is no file beside this one", self.path)
        said = [key for key, usual in (("number", 1), ("context", [])) if spec[key] != usual]
        self.without_effect += [f"{key} of collection {name!r}" for key in said]
        book = _Book(path, self.model, self.params)
        if any(kind == "collection" for kind, _ in book._specs.values()):
            raise FileError(f"collection {name!r}: {spec['config']} has collections itself", self.path)
        mains = book.mains()
        found = [book.agent(main, named=named) for main in mains]
        self.without_effect += book.without_effect
        if len(found) == 1:
            return [replace(found[0], name=name)]
        return [replace(agent, name=f"{name}/{agent.name}") for agent in found]

    def agent(self, name: str, *, named: bool) -> Agent | External | Workflow:
        """The agent or workflow `name`; where a benchmark names it, it is offered what the tasks name."""
        made = self._agent(name, ())
        narrowed = not isinstance(made, Workflow) and (named or not made.servers)
        return self._agent(name, (), servers=None) if narrowed else made

    def servers(self, name: str) -> list[dict[str, Any]]:
        """The servers that an agent's document names, for tasks that name none."""
        kind, spec = self._find(name, ("agent", "workflow", "collection"), "a benchmark")
        return self._servers(spec["config"], f"agent {name!r}") if kind == "agent" else []

    def _find(self, name: Any, kinds: Sequence[str], who: str) -> tuple[str, dict[str, Any]]:
        known = [known for known, (kind, _) in self._specs.items() if kind in kinds]
        if name not in known:
            hint = did_you_mean(name, known) if known else "The file has none."
            what = f"{', '.join(kinds[:-1])} or {kinds[-1]}" if len(kinds) > 1 else kinds[0]
            raise FileError(f"{who}: there is no {what} named {name!r}. {hint}", self.path)
        return self._specs[name]

    def _agent(
        self, name: Any, inside: tuple[str, ...], who: str = "a benchmark", **more: Any
    ) -> Agent | External | Workflow:
        """The agent or workflow `name`; `inside` are those that it is a part of."""
        if name in inside:
            raise FileError(f"{' -> '.join([*inside, name])}: an agent cannot be a part of itself", self.path)
        kind, spec = self._find(name, ("agent", "workflow"), who)
        where, inside = f"{kind} {name!r}", (*inside, name)
        try:
            if kind == "workflow":
                return self._workflow(spec, where, inside)
            if spec["type"] == "workflow":
                config = _known(spec["config"], ("workflow", "instruction"), where, self.path)
                return replace(self._agent(config.get("workflow"), inside, where), name=name)
            make = self._command_agent if spec["type"] in COMMANDS else self._simple_agent
            return make(spec, where, **more)
        except FileError:
            raise
        except InputError as error:
            raise FileError(f"{where}: {error}", self.path) from None

    def _simple_agent(self, spec: Mapping[str, Any], where: str, **more: Any) -> Agent:
        types = [*STRATEGIES, *ALIASES, *STRATEGIES_OF, *COMMANDS, "workflow"]
        if spec["type"] not in types:
            raise FileError(f"{where}: type={spec['type']!r}. {did_you_mean(spec['type'], types)}", self.path)
        strategy = STRATEGIES_OF.get(spec["type"], spec["type"])
        strategy = ALIASES.get(strategy, strategy)
        config = _known(spec["config"], ("llm", "servers", "name", *AGENT_KEYS, *WITHOUT_EFFECT), where, self.path)
        self.without_effect += [key for key in WITHOUT_EFFECT if config.get(key)]
        settings = {AGENT_KEYS[key]: value for key, value in config.items() if key in AGENT_KEYS and value is not None}
        if strategy != "basic":
            settings.setdefault("max_turns", MAX_TURNS.get(strategy, FEW_TURNS))
        settings["servers"] = _narrow(self._servers(config, where))
        model, params = self._llm(config.get("llm"), where)
        return Agent(model, strategy, name=spec["name"], **{**settings, **more}, **params)

    def _command_agent(self, spec: Mapping[str, Any], where: str, **more: Any) -> External:
        """An agent that is a command of its own, which names a model in its own way, or takes its own."""
        known = ("llm", "instruction", "system", "servers", "name", *WITHOUT_EFFECT)
        config = _known(spec["config"], known, where, self.path)
        self.without_effect += [key for key in WITHOUT_EFFECT if config.get(key)]
        model = self.model if config.get("llm") is None else self._llm(config["llm"], where)[0]
        servers = _narrow(self._servers(config, where))
        system = config.get("instruction") or config.get("system")
        model = model and model.removeprefix("anthropic/")
        return COMMANDS[spec["type"]](model, spec["name"], **{"system": system, "servers": servers, **more})

    def _workflow(self, spec: Mapping[str, Any], where: str, inside: tuple[str, ...]) -> Workflow:
        types = [*WORKFLOWS, *WORKFLOW_ALIASES]
        if spec["type"] not in types:
            raise FileError(f"{where}: type={spec['type']!r}. {did_you_mean(spec['type'], types)}", self.path)
        kind = WORKFLOW_ALIASES.get(spec["type"], spec["type"])
        make, settings = WORKFLOWS[kind]
        config = _known(spec["config"], (*MADE_OF[kind], *settings), where, self.path)
        parts, params = [], {}
        for key in MADE_OF[kind]:
            value = config.get(key)
            if key == "llm":
                model, params = self._llm(value, where)
                parts.append(model)
            elif key == "agents":
                names = value if isinstance(value, list) else [value]
                parts.append([self._agent(name, inside, where) for name in names])
            else:
                parts.append(self._agent(value, inside, where))
        named = {settings[key]: value for key, value in config.items() if key in settings and value is not None}
        return make(*parts, name=spec["name"], **named, **params)

    def _llm(self, name: Any, who: str) -> tuple[str, dict[str, Any]]:
        """The LiteLLM string and the parameters of the model `name`."""
        _, spec = self._find(name, ("llm",), who)
        where, kind = f"llm {name!r}", spec["type"]
        if kind not in PROVIDERS:
            raise FileError(f"{where}: type={kind!r}. {did_you_mean(kind, PROVIDERS)}", self.path)
        known = ("model_name", "thinking_budget_tokens", *MODEL_KEYS, *FAMILIAR)
        config = {**_known(spec["config"], known, where, self.path)}
        model = config.pop("model_name", None)
        if not isinstance(model, str) or not model:
            raise FileError(f"{where}: model_name={model!r} should be the name of a model", self.path)
        model = MODELS.get(kind, {}).get(model, model)
        model = model if model.startswith(PROVIDERS[kind]) else PROVIDERS[kind] + model
        budget = config.pop("thinking_budget_tokens", None)
        params = {MODEL_KEYS.get(key, key): value for key, value in config.items() if value is not None}
        if budget:
            params["thinking"] = {"type": "enabled", "budget_tokens": budget}
        if self.model is not None:
            model, params = self.model, {key: value for key, value in params.items() if key not in REACHED}
        return model, {**params, **self.params}

    def _servers(self, config: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
        """The servers that an agent's `config` names, as tasks name theirs."""
        given = config.get("servers") or []
        if not isinstance(given, list):
            raise FileError(f"{where}: servers={given!r:.80} should be a list", self.path)
        servers = []
        for entry in given:
            entry = {"name": entry} if isinstance(entry, str) else entry
            known = _known(entry, ("name", "tools", "transport", "permissions"), f"{where}: servers", self.path)
            if not isinstance(known.get("name"), str):
                raise FileError(f"{where}: servers has {entry!r:.80}, which has no name", self.path)
            if known.get("permissions"):
                raise FileError(f"{where}: permissions are not taken from a benchmark file", self.path)
            servers.append({key: known[key] for key in ("name", "tools") if known.get(key) is not None})
        return servers


def _narrow(servers: Sequence[Mapping[str, Any]]) -> Any:
    """The servers of an agent: their names, or the only tools of each where some are named."""
    if any("tools" in server for server in servers):
        return {server["name"]: server.get("tools") for server in servers}
    return [server["name"] for server in servers]


# --- tasks --------------------------------------------------------------------------------------


def _tasks(
    path: Path, names: Sequence[str], servers: Sequence[Mapping[str, Any]]
) -> tuple[list[Task], tuple[str, ...]]:
    """The tasks that are there, with `servers` where they name none, and the names of the others."""
    found = {name: _resolved(path, name) for name in names}
    tasks = read_tasks([file for file in found.values() if file is not None])
    if servers:
        tasks = [
            task
            if task.mcp_servers and task.use_specified_server
            else replace(task, mcp_servers=servers, use_specified_server=True)
            for task in tasks
        ]
    return tasks, tuple(name for name, file in found.items() if file is None)


def _resolved(path: Path, name: str) -> Path | None:
    for folder in path.absolute().parents:
        for base in (folder, *(folder / layout for layout in LAYOUTS)):
            if os.path.isfile(base / name):  # not is_file(), which raises where a name is too long
                return base / name
    return None
