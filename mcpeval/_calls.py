"""What a call to a model is made of: the request and its cache key, the answer, and who shares it.

Nothing here imports a client library: an answer from the cache needs no more than this.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit
from weakref import WeakKeyDictionary

from . import local
from .caching import content_key
from .errors import InputError, ModelError
from .types import Usage

if TYPE_CHECKING:
    from pydantic import BaseModel

#: Where a model is reached: `model_identity` has it, without what an address may hide.
ADDRESS = ("api_base", "base_url")
#: Parameters that say how long to wait and how often to try: they do not shape an answer.
PATIENCE = ("timeout", "deadline", "retries", "max_wait")
#: Parameters that a slip of the pen is measured against.
FAMILIAR = (
    *PATIENCE, *ADDRESS, "api_key", "api_version", "organization", "user", "extra_headers", "extra_body",
    "temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "logit_bias", "seed", "stop",
    "max_tokens", "max_completion_tokens", "reasoning_effort", "thinking", "logprobs", "top_logprobs",
    "parallel_tool_calls", "response_format",
)  # fmt: skip
_SECRET = re.compile(
    r"(_key|_key_id|_secret|_token|_credentials?|_password|_headers|_provider)$|^(headers|organization|client)$"
)


@dataclass(frozen=True)
class Completion:
    """One answer of a model.

    Attributes
    ----------
    message : dict
        OpenAI chat message as plain JSON: ``role``, ``content``, ``tool_calls`` where there are some.
    finish_reason : str or None
        ``stop``, ``tool_calls``, ``length`` (cut at `max_tokens`), ``content_filter``.
    model : str
        As the provider named it.
    usage : Usage
        Of every attempt that was answered.
    dropped : tuple of str
        Parameters that were asked for and not sent, because the model refuses them.
    logprobs : dict or None
    failures : tuple of str
        Why attempts before this answer failed, in order.
    """

    message: dict[str, Any]
    finish_reason: str | None
    model: str
    usage: Usage
    dropped: tuple[str, ...] = ()
    logprobs: Any = None
    failures: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The content; "" where there is none."""
        return self.message.get("content") or ""

    @property
    def whole(self) -> bool:
        """Whether this is a finished answer: only such are kept in the cache."""
        said = bool(self.text.strip() or self.message.get("tool_calls"))
        return said and not self.message.get("refusal") and self.finish_reason not in ("length", "content_filter")

    def to_dict(self) -> dict[str, Any]:
        data = {**asdict(self), "dropped": list(self.dropped)}
        del data["failures"]  # they belong to the call that was made, not to its answer
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Completion:
        return cls(**{**data, "usage": Usage.from_dict(data["usage"]), "dropped": tuple(data["dropped"])})

    def from_cache(self) -> Completion:
        """The same answer when it is not paid for again, and nothing failed before it."""
        return replace(self, usage=self.usage.from_cache(), failures=())


@dataclass(frozen=True)
class Structured:
    """What came of asking for a value of a schema.

    Attributes
    ----------
    value : pydantic.BaseModel or None
        An instance of the class that was asked for; None unless `status` is ``ok``.
    status : {"ok", "unparsed"}
    text : str
        The last raw answer.
    error : str or None
        Why the last answer does not fit.
    usage : Usage
        The sum over all attempts.
    model : str
    dropped : tuple of str
    attempts : int
        Answers of the model, from the cache or not.
    logprobs : dict or None
        Of the last answer.
    """

    value: BaseModel | None
    status: str
    text: str
    error: str | None
    usage: Usage
    model: str
    dropped: tuple[str, ...] = ()
    attempts: int = 1
    logprobs: Any = None


def plain(name: str, value: Any) -> Any:
    """A private copy of JSON that can be sent: text halves of a surrogate pair become U+FFFD.

    Raises
    ------
    InputError
        It is not JSON.
    """
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} should be JSON values: {error}") from None
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return json.loads(text)


@dataclass(frozen=True)
class Request:
    """One call as it is sent, private copies of everything the caller may change meanwhile."""

    model: str
    messages: list[dict[str, Any]]
    form: dict[str, Any]  # tools, tool_choice, response_format: those given
    params: dict[str, Any]
    sample: int
    timeout: float
    deadline: float
    retries: int
    max_wait: float

    def key(self) -> str:
        """The cache key: everything that shapes the answer and no secret."""
        params = {name: value for name, value in self.params.items() if not is_secret(name) and name not in ADDRESS}
        # As texts: a schema's property order shapes the answer, and canonical JSON would sort it away.
        form = {name: value if value is None else json.dumps(value) for name, value in self.form.items()}
        who = model_identity(self.model, self.params)
        return content_key("completion", **who, messages=self.messages, **form, params=params, sample=self.sample)


def model_identity(model: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What a model string stands for in a key or a fingerprint.

    An embedded model is its weights, wherever they lie; any other its name and the `api_base` given,
    without what an address may hide (user, password, query).
    """
    if local.is_local(model):
        return {"model": "local", "weights": local.identity(model), "api_base": None}
    params = params or {}
    base = params.get("api_base") or params.get("base_url")
    return {"model": model, "api_base": None if base is None else bare_address(base)}


def bare_address(address: Any) -> str:
    """An address without what it may hide: user, password, query."""
    parts = urlsplit(str(address))
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def check_patience(params: Mapping[str, Any], who: str) -> None:
    """Raise for a time or a number of attempts that cannot be waited for, before anything is asked."""
    for name in ("timeout", "deadline", "max_wait"):
        value = params.get(name)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if value is not None and not (is_number and value > 0):
            raise InputError(f"{who}: {name}={value!r} should be a number of seconds above 0")
    retries = params.get("retries", 0)
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InputError(f"{who}: retries={retries!r} should be a whole number, at least 0")


def is_secret(name: str) -> bool:
    """Whether a parameter of this name belongs in no key, no value and no error's text."""
    return bool(_SECRET.search(name))


def _texts(value: Any) -> list[str]:
    return [t for v in value.values() for t in _texts(v)] if isinstance(value, Mapping) else [str(value)]


def without_secrets(text: str, params: Mapping[str, Any]) -> str:
    """A provider's words without the secrets that it may have repeated, cut to a readable length."""
    hidden = {text for name, value in params.items() if is_secret(name) for text in _texts(value)}
    hidden |= {value for name, value in os.environ.items() if name.endswith(("_KEY", "_TOKEN", "_SECRET"))}
    hidden |= {urlsplit(str(params[name])).password or "" for name in ADDRESS if name in params}
    for value in sorted(hidden, key=len, reverse=True):
        text = text.replace(value, "***") if len(value) >= 6 else text
    return text if len(text) <= 1000 else text[:1000] + "..."


@dataclass
class _Flight:
    task: asyncio.Task
    waiting: int = 0


_flights: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Any, _Flight]] = WeakKeyDictionary()


async def shared(what: Any, start: Callable[[], Awaitable[Completion]]) -> tuple[Completion, bool]:
    """Await `start()` together with whoever else asks for `what` now; whether this caller began it.

    It is a task of its own: a caller that is cancelled does not take the answer from the others, and
    the last one to go cancels it.
    """
    flights = _flights.setdefault(asyncio.get_running_loop(), {})
    flight = flights.get(what)
    first = flight is None
    if flight is None:
        flight = flights[what] = _Flight(asyncio.ensure_future(start()))
    flight.waiting += 1
    try:
        return await asyncio.shield(flight.task), first
    except ModelError as error:
        # one exception object cannot be raised in several tasks, and its cost counts once
        if first:
            raise
        raise ModelError(str(error), error_class=error.error_class, status_code=error.status_code) from None
    finally:
        flight.waiting -= 1
        if not flight.waiting:
            if flights.get(what) is flight:
                del flights[what]
            if not flight.task.done():
                flight.task.cancel()
                await asyncio.wait([flight.task])
