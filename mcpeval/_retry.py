"""What a provider's failure means, and how long to wait before asking again.

Nothing here calls a provider or imports a client: failures are read by their attributes.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

_AGAIN = (408, 409, 425, 429)  # and every 5xx
_FIRST_WAIT = 0.5  # seconds; doubled at each further attempt
# Not the word billing: OpenAI's limits per minute advise to add a payment method.
_QUOTA = ("insufficient_quota", "exceeded your current quota", "credit balance")
_CONTEXT = (
    "context_length_exceeded",
    "maximum context length",
    "available context size",
    "exceeds the maximum number of tokens",
    "prompt is too long",
)
# "Please retry in 33.1s" (Gemini, whose limits per minute bear the words of a used-up quota), "try again in 20s"
_RETRY_IN = re.compile(r"(?:retry|try again) in (\d+(?:\.\d+)?) ?s|retrydelay\W+(\d+(?:\.\d+)?)s", re.IGNORECASE)
_PREFIX = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)(?:: | - ))+")


@dataclass(frozen=True)
class Failure:
    """One failed attempt.

    Attributes
    ----------
    text : str
        What went wrong, for a human.
    error_class : str
        As in `mcpeval.errors.ModelError`.
    again : bool
        Whether the same request may succeed later.
    status : int or None
        HTTP status.
    retry_after : float or None
        Seconds that the provider asked to wait.
    """

    text: str
    error_class: str = "model"
    again: bool = False
    status: int | None = None
    retry_after: float | None = None

    def __str__(self) -> str:
        return f"HTTP {self.status}: {self.text}" if self.status else self.text


def read_failure(error: BaseException, now: float) -> Failure:
    """Read a LiteLLM (OpenAI-shaped) exception.

    Parameters
    ----------
    error : BaseException
        With ``status_code``, ``body`` and ``response.headers`` where it has them.
    now : float
        Seconds since the epoch, for a ``Retry-After`` that is a date.
    """
    code = getattr(error, "status_code", None)
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    status = code if isinstance(code, int) and (headers or code != 500) else None  # LiteLLM's 500 for what had none
    text = _PREFIX.sub("", str(error)).strip() or type(error).__name__
    said = f"{text} {getattr(error, 'body', '')}".lower()
    if any(sign in said for sign in _CONTEXT) or type(error).__name__ == "ContextWindowExceededError":
        return Failure(text, "context", status=status)
    if type(error).__name__ == "ContentPolicyViolationError":
        return Failure(text, "filtered", status=status)
    asked = retry_after(headers, now)
    if asked is None and (told := _RETRY_IN.search(said)):
        asked = float(told[1] or told[2])
    quota = status == 429 and asked is None and any(sign in said for sign in _QUOTA)
    kind = {401: "auth", 403: "auth", 408: "timeout", 504: "timeout", 429: "rate"}.get(status, "model")
    return Failure(
        f"the quota is used up: {text}" if quota else text,
        kind,
        again=not quota and isinstance(code, int) and (code in _AGAIN or 500 <= code < 600),
        status=status,
        retry_after=asked,
    )


def retry_after(headers, now: float) -> float | None:
    """Seconds that the headers ask to wait: ``Retry-After`` in seconds or as a date (RFC 9110, 10.2.3).

    None where there is no such header or it cannot be read; never negative.
    """
    milliseconds, value = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
        return None if value is None else max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (TypeError, ValueError):
        return None


def pause(attempt: int, asked: float | None, max_wait: float) -> float | None:
    """Seconds to wait after the failed attempt number `attempt` (from 0).

    What the provider asked for, with up to a tenth more so that many callers do not come back
    together; else (nothing, or 0) exponential with jitter, at most `max_wait`. None where the provider
    asks for more than `max_wait`: waiting less would only fail again.
    """
    if not asked:
        return min(max_wait, _FIRST_WAIT * 2**attempt) * random.uniform(0.5, 1.0)
    return None if asked > max_wait else asked * random.uniform(1.0, 1.1)
