"""`Agent`, a model that follows a strategy, and the strategies by name."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from .._calls import ADDRESS, FAMILIAR, PATIENCE, bare_address, check_patience, is_secret
from ..caching import canonical
from ..errors import CacheError, InputError, did_you_mean
from ..llm import model_identity, supports_response_schema
from ..local import default_model
from ..types import Run, Task
from .forms import has_form, response_format, text_limit
from .memory import KEPT, NONE, memory_of, note_tools
from .schemas import constraint, shape
from .session import Session

#: What an agent may not set, because the loop does.
RESERVED = ("messages", "tools", "tool_choice", "cache", "sample", "stream", "n")

#: What `question_of` reads of a task, and so every strategy of ours.
QUESTION = ("question", "output_format")
FORM = "Give the final answer in this form, and nothing else:"


@dataclass(frozen=True)
class Strategy:
    """A loop that an `Agent` can follow; `strategy` registers one.

    Attributes
    ----------
    name : str
    run : callable
        ``await run(agent, task, session)`` gives what any agent may return.
    uses_tools : bool
        Whether MCP servers are started for it.
    min_tool_calls : int
        That of an `Agent` which does not say.
    prompts : tuple of str
        Every text of its own that a model is shown; part of the fingerprint.  ``Agent(prompt=...)``
        replaces the first.
    reads : tuple of str or None
        The fields of a task that it looks at: a run is cached by them.  None stands for all but the
        evaluators.
    revision : int
        Raised when the loop begins to behave differently, so that cached runs are not mistaken for
        runs of the new one.
    """

    name: str
    run: Callable[[Agent, Task, Session], Awaitable[Any]]
    uses_tools: bool = True
    min_tool_calls: int = 0
    prompts: tuple[str, ...] = ()
    reads: tuple[str, ...] | None = None
    revision: int = 1


#: The strategies by name, and the other names that the field has for them.
STRATEGIES: dict[str, Strategy] = {}
ALIASES: dict[str, str] = {}


def strategy(name: str, *aliases: str, prompts: Iterable[str] = (), **more: Any) -> Callable:
    """Register ``async def run(agent, task, session)`` as the strategy `name`.

    Registering a name again replaces it, so that a notebook's cell can be run twice.

    Parameters
    ----------
    name, *aliases : str
    prompts, **more
        As in `Strategy`: `uses_tools`, `min_tool_calls`, `reads`, `revision`.
    """

    def register(run: Callable[[Agent, Task, Session], Awaitable[Any]]) -> Callable:
        STRATEGIES[name] = Strategy(name, run, prompts=tuple(prompts), **more)
        ALIASES.update(dict.fromkeys(aliases, name))
        return run

    return register


@dataclass(frozen=True, init=False, repr=False)
class Agent:
    """A model that follows a strategy.

    Parameters
    ----------
    model : str, optional
        A LiteLLM model string (``"openai/gpt-4.1-mini"``, ``"local/smollm2-135m"``);
        `mcpeval.default_model` where there is none.
    strategy : str
        ``basic`` (one call, no tools), ``tools`` (native tool calling; also ``function_call``,
        ``function-call``, ``fc``), ``react`` (thought, action, observation in JSON, for models
        without tool calling), ``reflection`` (react, and a critique of each step), ``explore``
        (react that has to try the tools first and takes notes of them; also
        ``explore_and_exploit``, ``explore_exploit``), or a name registered with
        `mcpeval.agents.strategy`.
    servers : list of str, or dict, optional
        Narrows the MCP servers that a task offers to these; an empty list offers none.  A dict names
        the only tools of each: ``{"weather": ["get_forecast"], "time": None}``.
    system : str, optional
        What the model is told before the question.
    max_turns : int
        Answers of the model before the run ends with ``error_class`` ``turn_limit``; critiques are
        not counted.
    min_tool_calls : int, optional
        Tool calls that the model is made to ask for before it may answer, where tools are offered;
        0 where the strategy has no number of its own (``explore``: 6).
    name : str, optional
        Of the frame's column ``agent``; ``"react:smollm2-135m"`` where there is none.
    prompt : str, optional
        Replaces the strategy's own instructions (`mcpeval.agents.react.INSTRUCTIONS`, ...), beside
        which stands the parser of what they ask for.
    memory : bool or str
        True lets it keep notes while it works on one task (in a workflow, over all its turns there);
        a name lets it find them again at the tasks that follow.  It writes and reads them with the
        tools ``remember`` and ``recall``; the calls are in the row, with the server ``(memory)``.
        Tasks of an agent with lasting notes are worked on one after the other, those of each trial
        for itself: see `mcpeval.run`.
    **params
        Parameters of the model's calls: ``temperature``, ``max_tokens``, ``api_base``, ...; also as one
        dict ``params``, which is how `dataclasses.replace` makes an agent of another;
        ``response_format=None`` lets no schema be sent, of a step or of the answer, to providers that
        refuse one.

    Raises
    ------
    InputError
        The strategy is unknown, a number is out of range, or a parameter is misspelt, not JSON, or
        one that the loop sets itself.

    Examples
    --------
    >>> Agent("openai/gpt-4.1-mini", "fc", temperature=0)
    Agent('openai/gpt-4.1-mini', 'tools', temperature=0)
    """

    model: str
    strategy: str
    servers: tuple[str, ...] | Mapping[str, tuple[str, ...] | None] | None = field(hash=False)
    system: str | None
    max_turns: int
    min_tool_calls: int
    name: str
    prompt: str | None
    memory: bool | str
    params: Mapping[str, Any] = field(hash=False)

    def __init__(
        self,
        model: str | None = None,
        strategy: str = "tools",
        servers: Sequence[str] | Mapping[str, Sequence[str] | None] | None = None,
        system: str | None = None,
        max_turns: int = 20,
        min_tool_calls: int | None = None,
        name: str | None = None,
        prompt: str | None = None,
        memory: bool | str = False,
        **params: Any,
    ) -> None:
        model = default_model() if model is None else model
        params = {**_mapping(params.pop("params", {})), **params}
        if not isinstance(model, str) or not model.strip():
            raise InputError(f"Agent: model={model!r} should be a LiteLLM model string, such as 'openai/gpt-4.1-mini'")
        known = ALIASES.get(str(strategy), str(strategy))
        if known not in STRATEGIES:
            raise InputError(f"Agent: unknown strategy={strategy!r}. {did_you_mean(strategy, [*STRATEGIES, *ALIASES])}")
        check_texts("Agent", system=system, name=name, prompt=prompt)
        if prompt is not None and not STRATEGIES[known].prompts:
            raise InputError(f"Agent: prompt={prompt!r:.80}: {known!r} has no instructions to replace; use system=")
        memory = memory_of(memory, "Agent")
        if memory and not STRATEGIES[known].uses_tools:
            raise InputError(f"Agent: memory={memory!r}: notes are kept with tools, and {known!r} calls none")
        min_tool_calls = STRATEGIES[known].min_tool_calls if min_tool_calls is None else min_tool_calls
        _check_count("max_turns", max_turns, 1)
        _check_count("min_tool_calls", min_tool_calls, 0)
        if min_tool_calls >= max_turns:
            raise InputError(
                f"Agent: min_tool_calls={min_tool_calls} leaves no turn to answer in; max_turns is {max_turns}"
            )
        _check_params(params)
        values = {
            "model": model,
            "strategy": known,
            "servers": server_names(servers),
            "system": system,
            "max_turns": max_turns,
            "min_tool_calls": min_tool_calls,
            "name": name or f"{known}:{model.rsplit('/', 1)[-1]}",
            "prompt": prompt,
            "memory": memory,
            "params": params,
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    @property
    def uses_tools(self) -> bool:
        return STRATEGIES[self.strategy].uses_tools

    @property
    def reads(self) -> tuple[str, ...] | None:
        """As in `Strategy`."""
        return STRATEGIES[self.strategy].reads

    @property
    def fingerprint(self) -> str:
        """sha256 of all that shapes what the agent does: model, parameters, texts, limits; no secret."""
        followed = STRATEGIES[self.strategy]
        params = {
            key: value for key, value in self.params.items() if key not in (*PATIENCE, *ADDRESS) and not is_secret(key)
        }
        parts = {
            "strategy": [followed.name, followed.revision, *followed.prompts, FORM],
            "model": model_identity(self.model, self.params),
            "params": params,
            "system": self.system,
            "servers": self.servers,
            "limits": [self.max_turns, self.min_tool_calls],
            **({} if self.prompt is None else {"prompt": self.prompt}),
            **({"memory": [self.memory, note_tools(()), NONE, KEPT]} if self.memory else {}),
        }
        return hashlib.sha256(canonical(parts).encode()).hexdigest()

    async def __call__(self, task: Task, session: Session) -> Any:
        """Work on `task`: so an agent can be a part of another."""
        session.keep_notes(self.memory, self.name)
        return await STRATEGIES[self.strategy].run(self, task, session)

    def ask(self, session: Session, messages: Sequence[Mapping[str, Any]], **params: Any) -> Any:
        """`session.complete` with the agent's model and parameters; `params` go before them."""
        return session.complete(messages, model=self.model, **{**self.params, **params})

    def form(self, task: Task, *, beside_tools: bool = False) -> dict[str, Any]:
        """The parameter that holds the model to the form that the task wants its answer in, where it supports that.

        Parameters
        ----------
        task : Task
        beside_tools : bool
            Whether tools are offered in the same call.
        """
        # A schema has to be an object at its root.
        if not (isinstance(task.output_format, dict) and has_form(task.output_format)):
            return {}
        if "response_format" in self.params or not supports_response_schema(self.model, beside_tools=beside_tools):
            return {}
        limit = text_limit(self.model, self.params)
        return response_format("answer", constraint(shape(task.output_format), limit=limit))

    def opening(self, task: Task, *instructions: str) -> list[dict[str, Any]]:
        """The messages that a conversation about `task` begins with."""
        system = "\n\n".join(text for text in (self.system, *instructions) if text)
        messages = [{"role": "system", "content": system}] if system else []
        return [*messages, {"role": "user", "content": question_of(task)}]

    def __repr__(self) -> str:
        least = STRATEGIES[self.strategy].min_tool_calls
        usual = {"servers": None, "system": None, "max_turns": 20, "min_tool_calls": least, "prompt": None}
        usual |= {"memory": False}
        shown = {key: getattr(self, key) for key in usual if getattr(self, key) != usual[key]}
        shown |= {key: "..." if is_secret(key) else value for key, value in self.params.items()}
        shown |= {key: bare_address(shown[key]) for key in ADDRESS if shown.get(key)}
        return f"Agent({', '.join([repr(self.model), repr(self.strategy), *(f'{k}={v!r}' for k, v in shown.items())])})"


def question_of(task: Task) -> str:
    """The question as it is put to a model, with the form that the answer should have."""
    form = task.output_format
    if form in (None, "", {}, []):
        return task.question
    text = form if isinstance(form, str) else json.dumps(form, ensure_ascii=False)
    return f"{task.question}\n\n{FORM}\n{text}"


def answer_of(completion: Any) -> Run:
    """The run's ending that a model's last answer makes."""
    content = completion.message.get("content") or completion.message.get("refusal")
    if completion.finish_reason == "content_filter":
        return Run(content or None, status="error", error="the provider filtered the answer", error_class="model")
    if not content:
        reason = f"the model answered with nothing (finish_reason={completion.finish_reason})"
        return Run(status="error", error=reason, error_class="model")
    return Run(content)


def turn_limit(agent: Agent) -> Run:
    """The ending of a run whose model never came to an answer."""
    return Run(status="error", error=f"no final answer within max_turns={agent.max_turns}", error_class="turn_limit")


def server_names(servers: Any) -> tuple[str, ...] | dict[str, tuple[str, ...] | None] | None:
    """The servers that an agent is narrowed to, and the only tools of each where some are named."""
    if servers is None:
        return None
    if isinstance(servers, Mapping):
        for name, tools in servers.items():
            listed = isinstance(tools, Sequence) and not isinstance(tools, str)
            said = tools is None or listed and all(isinstance(tool, str) for tool in tools)
            if not (said and isinstance(name, str)):
                named = f"servers={{{name!r}: {tools!r:.200}}} should be names of tools, or None"
                raise InputError(f"Agent: {named}; the servers themselves are given to run(servers=...)")
        named = {name: None if tools is None else tuple(tools) for name, tools in servers.items()}
        return named if any(tools is not None for tools in named.values()) else server_names(tuple(named))
    listed = isinstance(servers, Iterable) and not isinstance(servers, (str, Mapping))
    names = tuple(servers) if listed else (servers,)
    if not all(isinstance(name, str) for name in names):
        raise InputError(
            f"Agent: servers={servers!r:.200} should be names; the servers themselves are given to run(servers=...)"
        )
    return names


def check_texts(who: str, **texts: Any) -> None:
    """Refuse what is neither a text nor None, and a name of nothing but blanks."""
    for name, text in texts.items():
        if not isinstance(text, str | None):
            raise InputError(f"{who}: {name}={text!r:.80} should be a text")
        if name == "name" and text is not None and not text.strip():
            raise InputError(f"{who}: name={text!r} should not be empty")


def _mapping(params: Any) -> Mapping[str, Any]:
    if not isinstance(params, Mapping) or not all(isinstance(name, str) for name in params):
        raise InputError(f"Agent: params={params!r:.80} should be a dict of the model's parameters")
    return params


def _check_count(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"Agent: {name}={value!r} should be a whole number, at least {least}")


def _check_params(params: Mapping[str, Any]) -> None:
    own = [name for name in inspect.signature(Agent).parameters if name != "params"]
    for name in params:
        if name in RESERVED:
            raise InputError(f"Agent: {name}={params[name]!r:.80} is set by the loop itself")
        if name not in FAMILIAR and (near := get_close_matches(name, [*own, *FAMILIAR], n=1, cutoff=0.83)):
            raise InputError(f"Agent: unknown parameter {name!r}. Did you mean {near[0]!r}?")
    check_patience(params, "Agent")
    try:
        canonical({key: value for key, value in params.items() if not is_secret(key)})
    except CacheError as error:
        raise InputError(f"Agent: a parameter of the model should be a JSON value: {error}") from None
