"""What evaluators that ask a model do alike: they look in the cache, ask, keep, and never make up a score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from .._calls import FAMILIAR, Structured, check_patience, is_secret, model_identity, shared
from ..caching import Cache, canonical, content_key
from ..errors import CacheError, InputError, ModelError, check_threshold, did_you_mean, is_one_of
from ..frames import plain
from ..types import Score, Usage
from . import prompts
from .base import Context
from .shown import Image, image_of, is_there

# What a judge says itself, and a provider parameter of the same name would contradict.
_OWN_PARAMS = (
    *("messages", "tools", "tool_choice", "response_format", "response_model", "stream", "n", "cache", "sample"),
)
# How long an answer is waited for, and where it comes from, does not shape it.
_WAITS = ("timeout", "deadline", "retries", "max_wait", "api_base", "base_url")

Messages = list[dict[str, Any]]


@dataclass(frozen=True)
class First:
    """What a judge asks its model before it judges: once for all rows that need the same.

    Attributes
    ----------
    what : str
        What is asked for, as an error names it.
    messages : list of dict
    response_model : type of pydantic.BaseModel
        With the one field ``answer``.
    """

    what: str
    messages: Messages
    response_model: Any


class Asking:
    """The common part of evaluators that ask a model; frozen dataclasses derive from it.

    They have the fields `model`, `name`, `samples`, `reasks` and `params`, and say what stands below
    as not implemented.
    """

    kind = "judge"
    model: str
    name: str
    reasks: int
    params: Mapping[str, Any]

    @cached_property
    def _shape(self) -> dict[str, Any]:
        """Everything that shapes an answer, as plain JSON."""
        raise NotImplementedError

    @cached_property
    def _response_model(self) -> Any:
        """The pydantic class of an answer; where it hangs on the row, `_response_model_for` says so."""
        raise NotImplementedError

    def _response_model_for(self, row: Mapping[str, Any]) -> Any:
        return self._response_model

    def _render(self, row: Mapping[str, Any], cache: Cache | None) -> tuple[Messages, tuple[str, ...]]:
        """The messages for a row, and the names of what was cut."""
        raise NotImplementedError

    def _why_not(self, row: Mapping[str, Any]) -> str | None:
        """Why a row cannot be judged, where it cannot."""

    def _first(self, row: Mapping[str, Any]) -> First | None:
        """What has to be asked before a row can be judged."""

    def _with(self, row: Mapping[str, Any], answer: Any) -> Mapping[str, Any]:
        """The row with the answer to `_first`; None where it is not known."""
        raise NotImplementedError

    def _verdict(self, value: Any, row: Mapping[str, Any]) -> tuple[Any, str, dict[str, Any]]:
        """Label, reason and metadata of a model's answer."""
        raise NotImplementedError

    def _score(self, label: Any, reason: str, usage: Usage, metadata: Mapping[str, Any]) -> Score:
        """The score of a verdict, new or from the cache."""
        raise NotImplementedError

    @property
    def models(self) -> tuple[str, ...]:
        """The models that it may call."""
        return (self.model,)

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of everything that shapes its answer, and of no secret."""
        return content_key("judge", **self._shape).removeprefix("judge:")

    def to_dict(self) -> dict[str, Any]:
        """Everything that shapes its answer, as plain JSON, and its model as it was named."""
        # The folder of an embedded model's file is this machine's affair.
        named = self.model.rpartition("/")[2] if self.model.startswith("local//") else self.model
        return {**self._shape, "model": named, "weights": self._shape["model"].get("weights")}

    @property
    def _asked(self) -> dict[str, Any]:
        """The part of a shape that says who is asked, and how."""
        params = {k: v for k, v in self.params.items() if k not in _WAITS and not is_secret(k)}
        return {"model": model_identity(self.model, self.params), "params": params, "reasks": self.reasks}

    def render(self, row: Mapping[str, Any], cache: Cache | None = None) -> Messages:
        """The messages that the model is sent for `row`, exactly; no call is made.

        Parameters
        ----------
        row : mapping or Series
            A row of a frame, as ``runs.iloc[0]``.
        cache : Cache, optional
            Has what the messages hold beside the row: an answer that the judge gave beforehand, images
            that are kept there. Without it they say that it is not known yet.
        """
        if not isinstance(row, Mapping):
            row = {name: plain(value) for name, value in dict(row).items()}
        return self._render(self._known(row, cache) or self._with(row, None), cache)[0]

    def ahead(self, row: Mapping[str, Any], cache: Cache | None) -> tuple[str, Messages] | None:
        """The key and the messages of what would be asked before `row` can be judged; rows may have them in common."""
        first = None if self._known(row, cache) is not None else self._first(row)
        return None if first is None else (self._first_key(first), first.messages)

    def peek(self, row: Mapping[str, Any], cache: Cache | None, *, sample: int = 0) -> Score | None:
        """The verdict on `row` where it is in `cache`, else None; imports no client of any model."""
        if (why := self._why_not(row)) is not None:
            return Score(None, why, status="skipped")
        known = None if cache is None else self._known(row, cache)
        return None if known is None else self._kept(cache, self._key(self._render(known, cache)[0], sample))

    def _key(self, messages: Messages, sample: int) -> str:
        return content_key("verdict", fingerprint=self.fingerprint, messages=messages, sample=sample)

    def _kept(self, cache: Cache, key: str) -> Score | None:
        kept = cache.get(key, None)
        if kept is None:
            return None
        try:
            usage = Usage.from_dict(kept["usage"]).from_cache()
            return self._score(kept["label"], str(kept["reason"]), usage, kept["metadata"])
        except (AttributeError, KeyError, TypeError, ValueError):
            return None  # it is nothing that this judge kept

    async def evaluate(self, row: Mapping[str, Any], context: Any = None, *, sample: int = 0) -> Score:
        """Judge one row.

        Parameters
        ----------
        row : mapping
            Column name to value.
        context : mcpeval.evaluators.base.Context, optional
            Gives the cache.
        sample : int
            Which of the `samples` verdicts.

        Returns
        -------
        Score
            ``ok``; ``unparsed`` where every answer was off the scale; ``error`` where the provider
            failed; ``skipped`` where the row has not what it needs. `metadata` has ``judge_model`` (as
            the provider returned it), ``attempts``, and where they apply ``truncated``,
            ``dropped_params``, ``text``.

        Raises
        ------
        CacheMiss
            The cache only replays, and does not have the verdict.
        """
        if (why := self._why_not(row)) is not None:
            return Score(None, why, status="skipped")
        context = context if isinstance(context, Context) else Context()
        cache, before = context.cache, Usage()
        if (first := self._first(row)) is not None:
            answer, before, failure = await self._ask_first(first, context)
            if failure is not None:
                return replace(failure, usage=before)
            row = self._with(row, answer)
            if (why := self._why_not(row)) is not None:
                return Score(None, why, status="skipped", usage=before)
        messages, cut = self._render(row, cache)
        key = self._key(messages, sample)
        if cache is not None and (kept := self._kept(cache, key)) is not None:
            return replace(kept, usage=before + kept.usage)
        score = await self._judge(messages, row, sample, context, {"truncated": True, "cut": list(cut)} if cut else {})
        score = replace(score, usage=before + (score.usage or Usage()))
        if cache is not None and score.label is not None:
            named = {"label": score.label, "reason": score.reason, "usage": score.usage.to_dict()}
            cache.keep(key, {**named, "metadata": dict(score.metadata)})
        return score

    async def _judge(
        self, messages: Messages, row: Mapping[str, Any], sample: int, context: Context, metadata: dict[str, Any]
    ) -> Score:
        model = self._response_model_for(row)
        answer = await ask(self, messages, model, sample=sample, cache=context.cache, metadata=metadata)
        if isinstance(answer, Score):
            return answer
        label, reason, more = self._verdict(answer.value, row)
        return self._score(label, reason, answer.usage, {**metadata, **more})

    # --- what is asked beforehand -----------------------------------------------------------------

    def _known(self, row: Mapping[str, Any], cache: Cache | None) -> Mapping[str, Any] | None:
        """The row with all that is asked beforehand, where that is in the cache."""
        if self._why_not(row) is not None or (first := self._first(row)) is None:
            return row
        kept = None if cache is None else cache.get(self._first_key(first), None)
        return self._with(row, kept["answer"]) if isinstance(kept, dict) and "answer" in kept else None

    def _first_key(self, first: First) -> str:
        schema = first.response_model.model_json_schema()
        return content_key("first", **self._asked, messages=first.messages, schema=schema)

    async def _ask_first(self, first: First, context: Context) -> tuple[Any, Usage, Score | None]:
        """The answer, what was paid for it now, and a score where there is none.

        Rows that need the same answer at the same moment wait for one call; only the row that made it
        counts its cost.
        """
        key, cache, memo = self._first_key(first), context.cache, context.memo
        if key not in memo and cache is not None and isinstance(kept := cache.get(key, None), dict):
            memo[key] = kept.get("answer")
        if key in memo:
            return memo[key], Usage(), None
        found, paid = await shared((id(memo), key), lambda: self._ask_and_keep_first(first, key, context))
        usage = found.usage if paid and found.usage is not None else Usage()
        return (None, usage, found) if isinstance(found, Score) else (found.value.answer, usage, None)

    async def _ask_and_keep_first(self, first: First, key: str, context: Context) -> Structured | Score:
        found = await ask(
            self, first.messages, first.response_model, sample=0, cache=context.cache, metadata={}, what=first.what
        )
        if not isinstance(found, Score):
            context.memo[key] = found.value.answer
            if context.cache is not None:
                context.cache.keep(key, {"answer": found.value.answer, "usage": found.usage.to_dict()})
        return found


async def ask(
    judge: Asking,
    messages: Messages,
    response_model: Any,
    *,
    sample: int,
    cache: Cache | None,
    metadata: dict[str, Any],
    what: str = "verdict on the scale",
    **params: Any,
) -> Structured | Score:
    """A value of `response_model`, or the score of a row for which there is none: ``error`` or ``unparsed``.

    `params` go before the judge's own; None leaves one of these out. `metadata` is filled in either case.
    """
    from .. import llm

    own = {name: value for name, value in judge.params.items() if name not in params}
    params = {name: value for name, value in params.items() if value is not None}
    how = {**own, **params, "reasks": judge.reasks, "sample": sample, "cache": cache}
    try:
        answer = await llm.structured(judge.model, messages, response_model, **how)
    except ModelError as error:
        metadata["error_class"] = error.error_class
        return Score(None, str(error), status="error", error=str(error), usage=error.usage, metadata=metadata)
    metadata |= {"judge_model": answer.model, "attempts": answer.attempts}
    if answer.dropped:
        metadata["dropped_params"] = list(answer.dropped)
    if answer.value is not None:
        return answer
    why = " ".join(line.strip() for line in answer.error.splitlines() if "errors.pydantic.dev" not in line)
    reason = f"no {what} in {answer.attempts} answers; the last: {why}"
    metadata["text"] = answer.text
    return Score(None, reason, status="unparsed", error=reason, usage=answer.usage, metadata=metadata)


# --- what is shown --------------------------------------------------------------------------------


class Gallery:
    """The images of a row that are shown, numbered in the order in which they stand in the text."""

    def __init__(self, cache: Cache | None) -> None:
        self._cache = cache
        self._images: dict[str, Image] = {}

    def mark(self, image: Image) -> str:
        """What stands for an image in the text; one that is not there is declared only."""
        image = image if image.data is not None else _from_cache(image, self._cache)
        if image.data is None:
            return image.declared
        self._images.setdefault(image.sha256, image)
        return self._sign(image)

    def _sign(self, image: Image) -> str:
        return image.declared.replace("[image ", f"[image {list(self._images).index(image.sha256) + 1}: ", 1)

    def content(self, text: str) -> Any:
        """A message's content: `text`, and the images that it names."""
        named = [image for image in self._images.values() if prompts.escape(self._sign(image)) in text]
        if not named:
            return text
        parts = [{"type": "text", "text": text}]
        for image in named:
            parts.append({"type": "text", "text": self._sign(image)})
            parts.append({"type": "image_url", "image_url": {"url": image.url}})
        return parts


def _from_cache(image: Image, cache: Cache | None) -> Image:
    """An image that `run` kept apart from its row (`mcpeval.servers.blob`), with its bytes where they are here."""
    kept = None if cache is None else cache.get(f"blob:{image.sha256}", None)
    found = image_of({"type": "image", **kept}) if isinstance(kept, Mapping) else None
    return found if found is not None and found.sha256 == image.sha256 else image


def seen(names: Sequence[str], row: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns of `names` that `row` shows: all, but for one ending in ``?`` that it does not have."""
    found = [name.removesuffix("?") for name in names if not name.endswith("?") or is_there(name[:-1], row)]
    return tuple(dict.fromkeys(found))


# --- what is checked when a judge is written ------------------------------------------------------


def model_of(given: str | None, who: str) -> str:
    """The model that is meant: `default_model` where none is named."""
    if given is None:
        from ..local import default_model

        return default_model()
    if not isinstance(given, str) or not given.strip():
        raise InputError(
            f"{who}: model={given!r} should be a text such as 'openai/gpt-4.1-mini' or 'local/smollm2-135m'"
        )
    return given


def params_of(judge: type, params: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """The model's parameters, temperature 0 unless said; a slip of the pen in any keyword is an error."""
    who = judge.__name__
    if not isinstance(params, Mapping | None):
        raise InputError(f"{who}: params={params!r:.80} should be a dict of the model's parameters")
    own, known = [f.name for f in fields(judge)], (*FAMILIAR, "mode")
    given = {**(params or {}), **more}
    for key in given:
        if key in _OWN_PARAMS:
            raise InputError(f"{who}: {key}= is set by the judge itself and cannot be given")
        if key not in known and (near := get_close_matches(key, [*own, *known], n=1, cutoff=0.8)):
            raise InputError(f"{who}: unknown argument {key}=. Did you mean {near[0]!r}?")
    check_patience(given, who)
    if "mode" in given:
        from ..llm import MODES

        if not is_one_of(given["mode"], MODES):
            raise InputError(f"{who}: mode={given['mode']!r:.80}. {did_you_mean(given['mode'], MODES)}")
    try:
        canonical({key: value for key, value in given.items() if not is_secret(key)})
    except CacheError as error:
        raise InputError(f"{who}: a parameter is not JSON: {error}") from None
    return {"temperature": 0, **given}


def names_of(given: Any, who: str, argument: str = "sees") -> tuple[str, ...]:
    """Names of columns, one or several."""
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise InputError(f"{who}: {argument}={given!r:.80} should be names of columns")
    return names


def check_numbers(judge: Any, **least: int) -> None:
    """Raise for a field that is no whole number, or less than it can be; and for an impossible threshold."""
    who = type(judge).__name__
    for key, low in least.items():
        value = getattr(judge, key)
        if value is None and key == "max_tokens_shown":
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise InputError(f"{who}: {key}={value!r} should be a whole number, at least {low}")
    check_threshold(judge.threshold, who)


def check_seen(name: str, names: Iterable[str], columns: Iterable[str], where: str) -> set[str]:
    """Raise for a column that is not there; the columns that there are, the transcript among them."""
    known = {str(column) for column in columns}
    known |= {"transcript"} if "messages" in known else set()
    for wanted in names:
        bare = wanted.removesuffix("?")
        if bare in known:
            continue
        near = get_close_matches(bare, known, n=1, cutoff=0.8)
        if not wanted.endswith("?") or near:
            raise InputError(
                f"judge {name!r}: its {where} names the column {bare!r}, which is not there. "
                f"{did_you_mean(bare, known)}"
            )
    return known
