"""Texts as vectors: `embed`, through LiteLLM, with the retries, the cache and the count of `llm`.

`similarity` compares two of them.  A vector out of the cache needs no LiteLLM.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import llm, local
from ._calls import is_secret, model_identity, plain, shared, without_secrets
from ._clients import litellm, loaded, unlogged
from ._retry import Failure, pause, read_failure
from .caching import MISSING, Cache, content_key
from .errors import InputError, ModelError
from .types import Usage

_ADDRESS = ("api_base", "base_url")


@dataclass(frozen=True)
class Embeddings:
    """What came of asking for vectors.

    Attributes
    ----------
    vectors : list of list of float
        One for each text, in order.
    usage : Usage
        A text that stands twice is asked for once.
    model : str
        As the provider named it.
    """

    vectors: list[list[float]]
    usage: Usage
    model: str


async def embed(
    model: str,
    texts: Sequence[str],
    *,
    cache: Cache | None = None,
    timeout: float = 60.0,
    deadline: float = 300.0,
    retries: int = 5,
    max_wait: float = 60.0,
    **params: Any,
) -> Embeddings:
    """Ask a model for the vector of each text, one request for each.

    Parameters
    ----------
    model : str
        A LiteLLM model string, such as "openai/text-embedding-3-small".
    texts : sequence of str
    cache : Cache, optional
        Where vectors are kept, each under its own text; with ``cache.replay`` nothing is sent.
    timeout, deadline, retries, max_wait
        As in `llm.complete`, for each text.
    **params
        Sent as they are: ``dimensions``, ``api_base``, ``api_key``, ...

    Raises
    ------
    InputError
        A local model, which has no embeddings; an unknown provider; a missing API key.
    ModelError
        No usable answer.
    CacheMiss
        ``cache.replay`` and a vector is not there.
    """
    check(model)
    patience = {"timeout": timeout, "deadline": deadline, "retries": retries, "max_wait": max_wait}
    usage, found, named = Usage(), {}, model
    for text in dict.fromkeys(texts):
        answer = await _one(model, text, cache, patience, params)
        usage += Usage.from_dict(answer["usage"])
        found[text], named = answer["vector"], answer["model"]
    return Embeddings([found[text] for text in texts], usage, named)


def kept(model: str, texts: Sequence[str], cache: Cache | None, params: Mapping[str, Any]) -> Embeddings | None:
    """`embed` from the cache alone; None where a text is missing."""
    answers = {}
    for text in dict.fromkeys(texts):
        value = MISSING if cache is None else cache.get(_key(model, text, params))
        if value is MISSING:
            return None
        answers[text] = value
    usage = sum((Usage.from_dict(answer["usage"]).from_cache() for answer in answers.values()), Usage())
    named = next((answer["model"] for answer in answers.values()), model)
    return Embeddings([answers[text]["vector"] for text in texts], usage, named)


def check(model: Any) -> None:
    """Raise for what is no model of embeddings: the embedded chat model, or no text."""
    if not isinstance(model, str) or not model:
        raise InputError(f"model={model!r} should be a text such as 'openai/text-embedding-3-small'")
    if local.is_local(model):
        raise InputError(
            f"model={model!r} is a chat model; embeddings need one such as 'openai/text-embedding-3-small'"
        )


def similarity(a: Sequence[float], b: Sequence[float]) -> float:
    """The cosine of the angle between two vectors of one length, from -1 to 1; 0 where one is zero."""
    if len(a) != len(b):
        raise ModelError(f"the model gave vectors of {len(a)} and of {len(b)} numbers")
    lengths = math.hypot(*a) * math.hypot(*b)
    return min(1.0, max(-1.0, sum(x * y for x, y in zip(a, b)) / lengths)) if lengths else 0.0


def _key(model: str, text: str, params: Mapping[str, Any]) -> str:
    known = {name: value for name, value in params.items() if not is_secret(name) and name not in _ADDRESS}
    return content_key("embedding", **model_identity(model, params), text=text, params=known)


async def _one(
    model: str, text: str, cache: Cache | None, patience: Mapping[str, Any], params: Mapping[str, Any]
) -> dict[str, Any]:
    """The vector of one text, its model and its usage as a dict, from the cache or paid for."""
    if cache is None:
        return await _ask(model, text, params, **patience)
    key = _key(model, text, params)
    value = cache.require(key) if cache.replay else cache.get(key)
    paid = False
    if value is MISSING:

        async def ask_and_keep() -> dict[str, Any]:
            answer = await _ask(model, text, params, **patience)
            cache.keep(key, answer)
            return answer

        value, paid = await shared((str(cache.path), key), ask_and_keep)
    return value if paid else {**value, "usage": Usage.from_dict(value["usage"]).from_cache().to_dict()}


async def _ask(
    model: str, text: str, params: Mapping[str, Any], *, timeout: float, deadline: float, retries: int, max_wait: float
) -> dict[str, Any]:
    """Attempts until there is a vector, the failure is final, or the time is over."""
    await loaded(litellm)
    llm.check_models([model], **params)
    last: Failure | None = None
    try:
        async with asyncio.timeout(deadline):
            for attempt in range(retries + 1):
                answer = await _attempt(model, text, params, timeout)
                if not isinstance(answer, Failure):
                    return answer
                last, wait = answer, pause(attempt, answer.retry_after, max_wait)
                if not last.again or attempt == retries or wait is None:
                    break
                await asyncio.sleep(wait)
    except TimeoutError:
        last = Failure(f"no answer within deadline={deadline:g} s", "timeout")
    http = f"HTTP {last.status}: " if last.status else ""
    message = without_secrets(f"{model}: {http}{last.text}", params)
    raise ModelError(message, error_class=last.error_class, status_code=last.status)


async def _attempt(model: str, text: str, params: Mapping[str, Any], timeout: float) -> dict[str, Any] | Failure:
    import openai

    start = time.monotonic()
    try:
        async with asyncio.timeout(timeout):
            # num_retries is LiteLLM's own loop, max_retries that of the OpenAI client below it
            with unlogged(params):
                raw = await litellm().aembedding(
                    model=model, input=[plain("text", text)], timeout=timeout, num_retries=0, max_retries=0, **params
                )
    except TimeoutError:
        return Failure(f"no answer within timeout={timeout:g} s", "timeout", again=True)
    except openai.OpenAIError as error:
        return read_failure(error, time.time())
    vector = raw.data[0]["embedding"] if raw.data else None
    if not isinstance(vector, list) or not vector or not all(isinstance(x, (int, float)) for x in vector):
        return Failure("the answer has no vector", again=True)
    tokens = getattr(raw.usage, "prompt_tokens", None) or None
    cost = raw._hidden_params.get("response_cost") if tokens else None
    usage = Usage(tokens, 0 if tokens else None, cost, time.monotonic() - start, calls=1)
    return {"vector": [float(x) for x in vector], "model": str(raw.model or model), "usage": usage.to_dict()}
