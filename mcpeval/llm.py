"""Calls to language models: `complete` for a message, `structured` for a checked value.

LiteLLM and Instructor (`mcpeval._clients`) are loaded only when an answer is not in the cache, for that
takes seconds. One layer of retries, one cache, one count of what was paid.
"""

from __future__ import annotations

import asyncio
import copy
import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import cache as memo
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from . import local
from ._calls import ADDRESS, Completion, Request, Structured, is_secret, plain, shared, without_secrets
from ._calls import model_identity as model_identity
from ._clients import instructor as _instructor
from ._clients import litellm as _litellm
from ._clients import loaded as _loaded
from ._clients import unlogged
from ._fork import watch
from ._retry import Failure, pause, read_failure
from .caching import MISSING, Cache
from .errors import InputError, ModelError, did_you_mean
from .types import Usage

if TYPE_CHECKING:
    from pydantic import BaseModel

MODES = ("json_schema", "tools", "json", "md_json")
_LOGGED_IN = ("github_copilot", "chatgpt")  # looking for their keys begins a login over the network
_SAMPLING = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
_REFUSES = re.compile(r"unsupported|(?:not|n't) support|deprecated for this model")
_OURS = {
    "num_retries": "retries=",
    "max_retries": "retries=",
    "caching": "cache=",
    "drop_params": "nothing: what a model refuses is dropped and recorded",
    "stream": "nothing: answers are awaited whole",
    "n": "sample=, one call for each",
}


# --- complete ---------------------------------------------------------------------------------


async def complete(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    tool_choice: Any = None,
    response_format: Mapping[str, Any] | None = None,
    sample: int = 0,
    cache: Cache | None = None,
    timeout: float = 120.0,
    deadline: float = 600.0,
    retries: int = 5,
    max_wait: float = 60.0,
    **params: Any,
) -> Completion:
    """Ask a model for its next message.

    Parameters
    ----------
    model : str
        A LiteLLM model string ("openai/gpt-4.1-mini"), "local/smollm2-135m" or "local//path/to.gguf".
    messages : sequence of dict
        OpenAI chat messages; never changed.
    tools, tool_choice, response_format
        As in OpenAI's chat completions.
    sample : int
        Number of this draw: another number is another answer, in the cache too.
    cache : Cache, optional
        Where finished answers are kept. Identical calls at the same moment are then one call, and all
        but one of them count as cached. With ``cache.replay`` nothing is ever sent.
    timeout : float
        Seconds for one attempt, in all.
    deadline : float
        Seconds for all attempts and the pauses between them.
    retries : int
        Attempts after the first, for what may pass: 408, 429, 5xx, timeouts, dropped connections.
    max_wait : float
        Longest pause in seconds; a provider that asks for a longer one has failed.
    **params
        Sent as they are: `temperature`, `max_tokens`, `api_base`, `api_key`, ...

    Returns
    -------
    Completion
        Truncated, filtered and empty answers too (see `finish_reason`); those are not cached.

    Raises
    ------
    InputError
        Unknown provider, missing API key, or a parameter that this module sets itself.
    ModelError
        No usable answer; ``usage`` says what it cost.
    CacheMiss
        ``cache.replay`` and the answer is not there.

    Notes
    -----
    The key holds an `api_base` that is given as a parameter, not one that the environment sets.
    Secrets are neither in the key nor in the value nor in an error's text.
    """
    for name in params:
        if name in _OURS:
            raise InputError(f"{name}= is not for mcpeval's calls; use {_OURS[name]}")
    form = {"tools": tools, "tool_choice": tool_choice, "response_format": response_format}
    sent = [plain("messages", list(messages)), plain("tools, tool_choice and response_format", form)]
    if local.is_local(model):
        params = {**local.PARAMS, "seed": local.seed(sent[0], sample), **params}
    request = Request(model, *sent, dict(params), sample, timeout, deadline, retries, max_wait)
    if cache is None:
        return await _ask(request)
    key = request.key()
    found = (cache.require if cache.replay else cache.get)(key, read=Completion.from_dict)
    if found is not MISSING:
        return found.from_cache()
    answer, paid = await shared((str(cache.path), key), lambda: _ask_and_keep(request, cache, key))
    return answer if paid else answer.from_cache()


async def _ask_and_keep(request: Request, cache: Cache, key: str) -> Completion:
    answer = await _ask(request)
    if answer.whole:
        cache.keep(key, answer.to_dict())
    return answer


async def _ask(request: Request) -> Completion:
    """Attempts until there is an answer, the failure is final, or the time is over."""
    watch(asyncio.get_running_loop())
    await _loaded(_litellm)
    check_models([request.model], **request.params)
    spent, last, refused = Usage(), None, _refused(request)
    failures: list[str] = []
    async with AsyncExitStack() as stack:
        address = await _address(request, stack)
        try:
            async with asyncio.timeout(request.deadline) as limit:
                for attempt in range(request.retries + 1):
                    answer, last = await _attempt(request, address, refused)
                    if answer is not None:
                        spent += answer.usage
                        if last is None:
                            dropped = tuple(name for name in refused if name in request.params)
                            return replace(answer, usage=spent, dropped=dropped, failures=tuple(failures))
                    failures.append(without_secrets(str(last), request.params))
                    wait = pause(attempt, last.retry_after, request.max_wait)
                    if not last.again or attempt == request.retries:
                        break
                    if wait is None or asyncio.get_running_loop().time() + wait >= limit.when():
                        asked = f" (asked to wait {last.retry_after:.0f} s)" if last.retry_after else ""
                        last = replace(last, text=f"{last.text}{asked}; gave up after {attempt + 1} attempts")
                        break
                    await asyncio.sleep(wait)
        except TimeoutError:
            before = f"; before that: {last.text}" if last else ""
            last = Failure(f"no answer within deadline={request.deadline:g} s{before}", "timeout")
    text = without_secrets(f"{request.model}: {last}", request.params)
    raise ModelError(text, error_class=last.error_class, status_code=last.status, usage=spent)


async def _address(request: Request, stack: AsyncExitStack) -> dict[str, Any]:
    """What LiteLLM is told of where to send; for the embedded model, its turn is awaited first."""
    if not local.is_local(request.model):
        return {"model": request.model}
    name, base, key = await asyncio.to_thread(local.endpoint, request.model)
    # One model on one thread: a call waits for its turn here, where its time limit does not run yet.
    await stack.enter_async_context(local.turn(request.model))
    return {"model": name, "api_base": base, "api_key": key}


async def _attempt(
    request: Request, address: Mapping[str, Any], refused: list[str]
) -> tuple[Completion | None, Failure | None]:
    """One HTTP request: an answer, a failure, or both where an answer cannot be used.

    Where the model does not take a parameter, its name is added to `refused` and the request sent again.
    """
    import openai

    litellm = _litellm()
    sent = {name: value for name, value in request.form.items() if value is not None}
    sent |= {name: value for name, value in request.params.items() if name not in refused}
    start = time.monotonic()
    try:
        async with asyncio.timeout(request.timeout):
            # num_retries is LiteLLM's own loop, max_retries that of the OpenAI client below it
            sent |= {**address, "timeout": request.timeout, "num_retries": 0, "max_retries": 0}
            with unlogged(request.params):
                raw = await litellm.acompletion(messages=copy.deepcopy(request.messages), **sent)
    except TimeoutError:
        return None, Failure(f"no answer within timeout={request.timeout:g} s", "timeout", again=True)
    except openai.OpenAIError as error:
        if (name := _refusal(error, sent)) is not None:
            refused.append(name)
            return await _attempt(request, address, refused)
        return None, read_failure(error, time.time())
    answer = _read(raw, request.model, time.monotonic() - start)
    return answer, None if raw.choices else Failure("the answer has no choices", again=True)


_refusals: dict[tuple[str, str], list[str]] = {}


def _refused(request: Request) -> list[str]:
    """The parameters that a model was seen to refuse; shared, so that only its first call finds out."""
    return _refusals.setdefault((request.model, str([request.params.get(name) for name in ADDRESS])), [])


def _refusal(error: Exception, sent: Mapping[str, Any]) -> str | None:
    """The sampling parameter that this model does not take, where that is what the error says."""
    text = str(error).lower()
    if getattr(error, "status_code", None) != 400 or not _REFUSES.search(text):
        return None
    return next((name for name in _SAMPLING if name in sent and re.search(rf"\b{name}\b", text)), None)


def _read(raw: Any, model: str, seconds: float) -> Completion:
    """A LiteLLM response as plain values; empty where it has no choices."""
    counts = [getattr(getattr(raw, "usage", None), f"{kind}_tokens", None) for kind in ("prompt", "completion")]
    known = any(counts)  # LiteLLM gives 0 and 0 where the provider did not say
    cost = 0.0 if local.is_local(model) else raw._hidden_params.get("response_cost") if known else None
    # llama.cpp names a model by the path of its file, which is this machine's affair.
    name = model if local.is_local(model) else str(raw.model)
    used = Usage(*(counts if known else (None, None)), cost_usd=cost, seconds=seconds, calls=1)
    if not raw.choices:
        return Completion({"role": "assistant", "content": None}, None, name, used)
    choice = raw.choices[0]
    message = {k: v for k, v in choice.message.model_dump(mode="json").items() if v is not None or k == "content"}
    logprobs = getattr(choice, "logprobs", None)
    logprobs = logprobs.model_dump(mode="json") if hasattr(logprobs, "model_dump") else logprobs
    return Completion({"role": "assistant", **message}, choice.finish_reason, name, used, logprobs=logprobs)


# --- structured -------------------------------------------------------------------------------


async def structured(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    response_model: type[BaseModel],
    *,
    reasks: int = 2,
    mode: str = "json_schema",
    **same: Any,
) -> Structured:
    """Ask a model for a value of a pydantic class, and again with the error where it does not fit.

    Every attempt is a call of `complete`: cached, counted and retried there.

    Parameters
    ----------
    model, messages
        As in `complete`.
    response_model : type of pydantic.BaseModel
        Build it once and use it for many calls: its schema is made at the first.
    reasks : int
        Further attempts after an answer that does not fit.
    mode : {"json_schema", "tools", "json", "md_json"}
        How Instructor asks for the value.
    **same
        The other arguments of `complete`.

    Returns
    -------
    Structured
        With ``status="unparsed"`` and no value where no attempt fits.

    Raises
    ------
    ModelError
        The provider failed, refused (``filtered``) or the answer was cut (``truncated``).
    InputError, CacheMiss
        As `complete`.
    """
    if mode not in MODES:
        raise InputError(f"mode={mode!r}. {did_you_mean(mode, MODES)}")
    answers: list[Completion] = []

    async def create(*, messages: list[dict[str, Any]], **form: Any) -> Any:
        messages = [{**m, "content": m["content"] or ""} for m in messages]  # Instructor makes a list of ""
        answers.append(await complete(model, messages, **form, **same))
        _refuse_unusable(model, answers[-1])
        return _as_openai(answers[-1])

    instructor = await _loaded(_instructor)
    client = instructor.from_litellm(create, mode=getattr(instructor.Mode, mode.upper()))
    ask = [{"content": None, **copy.deepcopy(dict(m))} for m in messages]
    value, error = None, None
    try:
        found = await client.create(_prepared(response_model), ask, max_retries=reasks, strict=False)
        # Instructor answers with a subclass, which is neither equal to the class nor picklable.
        value = response_model.model_validate(found.model_dump(by_alias=True, include=set(response_model.model_fields)))
    except instructor.core.exceptions.InstructorRetryException as failed:
        error = failed.__cause__
    usage = sum((a.usage for a in answers), Usage())
    if isinstance(error, ModelError):
        error.usage = usage if error.usage is None else usage + error.usage
    if error is not None and not isinstance(error, _parse_errors()):
        raise error
    last = answers[-1]
    dropped = tuple(dict.fromkeys(name for a in answers for name in a.dropped))
    status, why = ("ok", None) if error is None else ("unparsed", str(error))
    return Structured(value, status, _said(last), why, usage, last.model, dropped, len(answers), last.logprobs)


def _refuse_unusable(model: str, answer: Completion) -> None:
    """Asking again would not mend these, and half an answer is no answer."""
    if answer.finish_reason == "length":
        text = f"{model}: the answer was cut at max_tokens; raise it or ask for less"
        raise ModelError(text, error_class="truncated")
    refusal = answer.message.get("refusal")
    if refusal or answer.finish_reason == "content_filter":
        raise ModelError(f"{model}: the model refused: {refusal or answer.finish_reason}", error_class="filtered")


def _said(answer: Completion) -> str:
    calls = answer.message.get("tool_calls")
    return answer.text or (calls[0]["function"]["arguments"] if calls else "")


_WRAPPED = re.compile(r"(?:<think>.*?</think>)?\s*(?:```(?:json)?\s*\n(.*?)\n\s*```|(.*))\s*", re.DOTALL)


def _as_openai(answer: Completion) -> Any:
    """The answer as Instructor reads it: without its usage (Instructor would overwrite it with sums) or wrapping.

    Only a fence around the whole text and the thoughts before it are taken off. JSON amid prose is
    not looked for: it may well be quoted from what is judged.
    """
    from openai.types.chat import ChatCompletion

    message = {k: v for k, v in answer.message.items() if k in ("role", "content", "tool_calls")}
    if answer.text:
        fenced, bare = _WRAPPED.fullmatch(answer.text).groups()
        message["content"] = bare if fenced is None else fenced
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}  # None costs it a search for Anthropic's
    head = {"id": "0", "object": "chat.completion", "created": 0, "model": answer.model}
    return ChatCompletion.model_validate({**head, "choices": [choice], "usage": usage})


@memo
def _parse_errors() -> tuple[type[Exception], ...]:
    from pydantic import ValidationError

    return ValidationError, json.JSONDecodeError, _instructor().core.exceptions.ResponseParsingError


@lru_cache(maxsize=256)
def _prepared(response_model: type[BaseModel]) -> type[BaseModel]:
    """Instructor's subclass of a response model, made once, with its schema made once."""
    prepared = _instructor().openai_schema(response_model)
    schema = prepared.model_json_schema()
    prepared.model_json_schema = classmethod(lambda cls, *args, **kwargs: copy.deepcopy(schema))
    return prepared


# --- what is known of a model -----------------------------------------------------------------


def check_models(models: Iterable[str], **params: Any) -> None:
    """See, without any network, that each model can be asked.

    Parameters
    ----------
    models : iterable of str
    **params
        Those of the calls: an `api_key` given needs none in the environment.

    Raises
    ------
    InputError
        Unknown provider (with the nearest name), an API key that is not set (with the variable's
        name), or weights that are not there.
    """
    for model in models:
        if not isinstance(model, str) or not model:
            raise InputError(f"model={model!r} should be a text such as 'openai/gpt-4.1-mini'")
        if local.is_local(model):
            local.check(model)
        else:
            _check_provider(model, params)


def _check_provider(model: str, params: Mapping[str, Any]) -> None:
    litellm, provider = _litellm(), model.partition("/")[0]
    import openai

    if provider not in _providers():
        try:
            litellm.get_llm_provider(model)
        except openai.OpenAIError:
            near = did_you_mean(provider, _providers())
            if "/" not in model or not near.startswith("Did"):
                near = "A model is 'provider/name', such as 'openai/gpt-4.1-mini'."
            raise InputError(f"model={model!r}: unknown provider {provider!r}. {near}") from None
    if provider in _LOGGED_IN or any(is_secret(name) or name in ADDRESS for name in params):
        return
    missing = litellm.validate_environment(model)["missing_keys"]
    if any(name.endswith("_API_KEY") for name in missing):
        names = ", ".join(missing)
        raise InputError(f"model={model!r} has no API key ({names}: not set in the environment, and no api_key= given)")


@memo
def _providers() -> frozenset[str]:
    return frozenset(str(getattr(p, "value", p)) for p in _litellm().provider_list) | {"local"}


def price_known(model: str) -> bool:
    """Whether the price of a call is known, without any network."""
    return prices(model) is not None


def prices(model: str) -> tuple[float, float] | None:
    """US dollars for a token of the prompt and for one of the answer; None where they are not known."""
    costs = {"input_cost_per_token": 0.0} if local.is_local(model) else _info(model)
    read, write = costs.get("input_cost_per_token"), costs.get("output_cost_per_token")
    return None if read is None else (float(read), float(write or 0.0))


def supports_response_schema(model: str, *, beside_tools: bool = False) -> bool:
    """Whether a model takes a JSON schema; True where nothing is known of it. Beside tools, only OpenAI's own do."""
    info = {} if local.is_local(model) else _info(model)  # an entry that does not say so is of an older model
    known = not beside_tools or info.get("litellm_provider") in ("openai", "azure")
    return known and bool(info.get("supports_response_schema", not info))


def supports_tools(model: str) -> bool:
    """Whether a model calls tools natively; True where nothing is known of it."""
    return not local.is_local(model) and bool(_info(model).get("supports_function_calling", True))


def _info(model: str) -> Mapping[str, Any]:
    """LiteLLM's entry for a model; empty where it has none. (Its own look-up may ask the network.)"""
    entries, (provider, _, name) = _litellm().model_cost, model.partition("/")
    if model in entries:
        return entries[model]
    bare = entries.get(name, {})
    return bare if bare.get("litellm_provider", "").startswith(provider) else {}
