"""judge-llm's providers as agents: a model that is spoken to turn by turn, the mock, and one's own."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from ..._calls import ADDRESS, PATIENCE, is_secret, model_identity
from ...agents import FunctionAgent
from ...agents.base import answer_of
from ...caching import canonical
from ...errors import FileError, InputError, did_you_mean
from ...evaluators.conversations import turn_of
from ...types import Run, Task, ToolCall, Usage
from .builtins import with_prefix
from .config import Entry
from .custom import PROVIDERS
from .records import EvalCase

#: LiteLLM's provider, the model and the parameters of judge-llm's documentation, by type.
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gemini": ("gemini", "gemini-2.0-flash-exp", {"temperature": 1.0, "max_tokens": 8192, "top_p": 0.95, "top_k": 40}),
    "openai": ("openai", "gpt-4", {"temperature": 0.7, "max_tokens": 2048}),
    "anthropic": ("anthropic", "claude-3-5-sonnet-20241022", {"temperature": 1.0, "max_tokens": 4096}),
}
#: Any model, by its whole LiteLLM name.
ANY = "litellm"
#: Types that run an agent of Google's ADK, which is not a model that LiteLLM could serve.
ADK = ("google_adk", "adk_http")

_OWN = ("agent_id", "model", "agent_config_path", "agent_metadata")


@dataclass(frozen=True)
class Conversation:
    """A model that is told every turn of a case, and answers each.

    Attributes
    ----------
    model : str
    params : mapping
    about : mapping
        What its runs say in their metadata.
    """

    model: str
    params: Mapping[str, Any] = field(repr=False)  # it may hold a key
    about: Mapping[str, Any] = field(default_factory=dict)
    uses_tools: ClassVar[bool] = False

    @property
    def fingerprint(self) -> str:
        """sha256 of all that shapes what it says; no secret."""
        params = {
            key: value for key, value in self.params.items() if key not in (*PATIENCE, *ADDRESS) and not is_secret(key)
        }
        parts = {
            "conversation": 1,
            "model": model_identity(self.model, self.params),
            "params": params,
            "about": self.about,
        }
        return hashlib.sha256(canonical(parts).encode()).hexdigest()

    async def __call__(self, task: Task, session: Any) -> Run:
        """Go through the case's conversation; it ends early where an answer cannot be used."""
        case = task.extra["test_case"]
        system = (case.get("session_input") or {}).get("system_instruction")
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        ending = Run()
        for invocation in case["conversation"]:
            messages.append({"role": "user", "content": turn_of(invocation).question})
            completion = await session.complete(messages, model=self.model, **self.params)
            ending = answer_of(completion)
            if ending.status != "ok":
                break
            messages.append(completion.message)
        return replace(ending, metadata=dict(self.about))


@dataclass(frozen=True)
class Mock:
    """Answers what is expected, and calls the expected tools: for trying a configuration out.

    `theirs` counts a made-up price of a thousandth of a cent for a character, as judge-llm does.
    """

    about: Mapping[str, Any] = field(default_factory=dict)
    theirs: bool = False
    model: ClassVar[str] = "mock"
    uses_tools: ClassVar[bool] = False

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(canonical({"mock": 1, "about": self.about, "theirs": self.theirs}).encode()).hexdigest()

    async def __call__(self, task: Task, session: Any) -> Run:
        conversation = copy.deepcopy(task.extra["test_case"]["conversation"])
        done = run_of(conversation, self.about)
        if not self.theirs:
            return done
        said = sum(_first(i.get("user_content")) + _first(i.get("final_response")) for i in conversation)
        return replace(done, usage=Usage(said // 2, said // 2, cost_usd=said * 0.00001))


@dataclass(frozen=True)
class Custom:
    """A provider of one's own: ``execute(eval_case)``. Its runs are not kept: nobody can see what they depend on."""

    inner: Any
    about: Mapping[str, Any] = field(default_factory=dict)
    uses_tools: ClassVar[bool] = False

    def __call__(self, task: Task, session: Any) -> Run:
        result = self.inner.execute(EvalCase.of(copy.deepcopy(dict(task.extra["test_case"]))))
        used = {key: getattr(result, key) for key in ("cost", "token_usage", "metadata", "success", "error")}
        conversation = [_dict(invocation) for invocation in result.conversation_history]
        done = run_of(conversation, {**_json(used["metadata"]), **self.about})
        tokens = used["token_usage"] or {}
        # Their default is 0 for what was never counted.
        cost = used["cost"] if used["cost"] or tokens else None
        usage = Usage(tokens.get("prompt_tokens"), tokens.get("completion_tokens"), cost)
        if used["success"]:
            return replace(done, usage=usage)
        error = str(used["error"] or done.metadata.get("error") or "the provider says that it did not succeed")
        return replace(done, output=None, usage=usage, status="error", error=error, error_class="model")


def agent_of(entry: Entry, metadata: Mapping[str, Any], *, theirs: bool, loaded: Any = None) -> FunctionAgent:
    """The agent that a provider stands for, under its ``agent_id``.

    Parameters
    ----------
    entry : Entry
    metadata : mapping
        What the section ``agent`` says besides its own keys.
    theirs : bool
        Whether the mock counts judge-llm's made-up price.
    loaded : class, optional
        The class that the entry's code is.

    Raises
    ------
    InputError
        The type is unknown, or a key is missing or cannot be used.
    """
    config, where = dict(entry.config), entry.where
    name = config.get("agent_id") or entry.name
    if not isinstance(name, str):
        raise InputError(f"{where}: agent_id={name!r} should be a text that names the provider")
    agent_metadata = config.get("agent_metadata", metadata)
    if not isinstance(agent_metadata, Mapping):
        raise InputError(f"{where}: agent_metadata={agent_metadata!r:.80} should be a mapping")
    about = {"provider_type": entry.type, "agent_metadata": dict(agent_metadata)}
    params = {key: value for key, value in config.items() if key not in _OWN}
    cls = loaded or PROVIDERS.get(entry.type)
    if cls is not None:
        inner = _made(cls, name, config, agent_metadata, where)
        return FunctionAgent(Custom(inner, about), name)
    if entry.type == "mock":
        return FunctionAgent(Mock(about, theirs), name)
    return FunctionAgent(Conversation(_model(entry, config), {**_defaults(entry), **params}, about), name)


def _model(entry: Entry, config: Mapping[str, Any]) -> str:
    if entry.type == ANY:
        if not isinstance(model := config.get("model"), str) or "/" not in model:
            raise InputError(
                f"{entry.where}: model={model!r} should be a whole LiteLLM name, such as 'mistral/mistral-large'"
            )
        return model
    if entry.type in ADK:
        raise InputError(
            f"{entry.where}: type={entry.type!r} runs an agent of Google's ADK, which is no model; "
            "register a provider for it (register_provider)"
        )
    if entry.type not in MODELS:
        known = [*MODELS, ANY, "mock", "custom", *PROVIDERS]
        raise InputError(f"{entry.where}: type={entry.type!r} is no provider. {did_you_mean(entry.type, known)}")
    provider, usual, _ = MODELS[entry.type]
    try:
        return with_prefix(config.get("model", usual), provider)
    except InputError as error:
        raise InputError(f"{entry.where}: {error}") from None


def _defaults(entry: Entry) -> Mapping[str, Any]:
    return MODELS[entry.type][2] if entry.type in MODELS else {}


def _made(cls: Any, name: str, config: Mapping[str, Any], agent_metadata: Mapping[str, Any], where: str) -> Any:
    given = {
        key: value for key, value in config.items() if key not in ("agent_id", "agent_config_path", "agent_metadata")
    }
    path = config.get("agent_config_path")
    try:
        made = cls(agent_id=name, agent_config_path=path, agent_metadata=dict(agent_metadata), **given)
    except Exception as error:  # of code that is not ours: what it refuses is the configuration's fault
        raise InputError(f"{where}: the provider cannot be made: {type(error).__name__}: {error}") from error
    if not callable(getattr(made, "execute", None)):
        raise InputError(f"{where}: {type(made).__name__} has no method execute(eval_case)")
    return made


def check_names(agents: Sequence[FunctionAgent], path: Any) -> None:
    """Raise where two providers have the same ``agent_id``."""
    names = [agent.name for agent in agents]
    for name in names:
        if names.count(name) > 1:
            raise FileError(f"{names.count(name)} providers have the agent_id {name!r}; give each its own", path)


def run_of(conversation: list[dict[str, Any]], about: Mapping[str, Any]) -> Run:
    """A run that consists of a conversation as judge-llm has it; kept whole in ``metadata``."""
    turns = [turn_of(invocation) for invocation in conversation]
    messages: list[dict[str, Any]] = []
    for turn in turns:
        functions = [{"name": name, "arguments": json.dumps(arguments)} for name, arguments in turn.calls]
        calls = [{"id": f"call_{i}", "type": "function", "function": f} for i, f in enumerate(functions)]
        messages.append({"role": "user", "content": turn.question})
        messages.append({"role": "assistant", "content": turn.answer or "", **({"tool_calls": calls} if calls else {})})
    made = [ToolCall(None, name, arguments) for turn in turns for name, arguments in turn.calls]
    output = (turns[-1].answer or "") if turns else None
    return Run(output, messages, made, turns=len(turns), metadata={**about, "conversation": conversation})


def _dict(invocation: Any) -> dict[str, Any]:
    """An invocation as plain JSON: one of `records`, of pydantic, or a dict."""
    return _json(invocation.model_dump() if hasattr(invocation, "model_dump") else invocation)


def _json(value: Any) -> Any:
    return json.loads(json.dumps(value or {}, default=str))


def _first(content: Any) -> int:
    parts = (content or {}).get("parts") or [{}]
    return len(parts[0].get("text") or "")
