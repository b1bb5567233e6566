"""``method="logprobs"``: a verdict weighed by how probable the model held each of them.

The verdict is a letter, which is one token, and what counts is the distribution of the token at its
place: the score is the mean of the labels' scores, each weighed with its letter's probability (G-Eval,
Liu and others 2023, arXiv 2303.16634).  What the letters' probabilities sum up to is kept as the mass.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from .._calls import Structured
from ..caching import content_key
from ..errors import InputError
from ..types import Score, Usage
from .asking import Asking, Messages, ask
from .base import Context
from .scales import Scale

#: As many as there are alternatives to a token that a provider returns.
LETTERS = "ABCDEFGHIJKLMNOPQRST"
PARAMS = {"logprobs": True, "top_logprobs": len(LETTERS)}

# JSON escapes every quotation mark inside a text, so that this stands nowhere in a reason.
_PLACE = re.compile(r'"verdict"\s*:\s*"')


def lettered(scale: Scale) -> Scale:
    """The scale with a letter for each label, in the scale's own order.

    Raises
    ------
    InputError
        The scale has no labels, or more than there are letters.
    """
    if scale.kind == "range" or len(scale.labels) > len(LETTERS):
        raise InputError(
            f"Judge: method='logprobs' needs a scale of at most {len(LETTERS)} labels, each a letter; "
            f"this one is {scale.options}"
        )
    answers = {False: "the answer to what was asked of you is no", True: "the answer to what was asked of you is yes"}
    texts = answers.values() if scale.kind == "bool" else scale.descriptions
    shown = [json.dumps(label, ensure_ascii=False) for label in scale.labels]
    meanings = tuple(f"{label}: {text}" if text else label for label, text in zip(shown, texts))
    return Scale("choice", tuple(LETTERS[: len(shown)]), scale.scores, meanings)


def check(judge: Any) -> None:
    """Raise for a judge that cannot be weighed, or whose samples would all be the same."""
    lettered(judge.scale)
    mode, draws = judge.params.get("mode", "json_schema"), judge.fallback_samples
    if mode not in ("json_schema", "json"):
        raise InputError(
            f"Judge: mode={mode!r} has no log-probabilities; method='logprobs' needs 'json_schema' or 'json'"
        )
    if draws is None:
        return
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 2:
        raise InputError(f"Judge: fallback_samples={draws!r} should be a whole number, at least 2")
    if judge.params.get("temperature") == 0:
        raise InputError(f"Judge: at temperature=0 the fallback_samples={draws} are all the same; give temperature=1")


def weights(logprobs: Any, n: int) -> tuple[list[float], float] | None:
    """The probability of each of the first `n` letters at the verdict's place, and their sum.

    Parameters
    ----------
    logprobs : dict or None
        As OpenAI's chat completions return them: ``{"content": [{"token", "logprob", "top_logprobs"}]}``.
    n : int

    Returns
    -------
    tuple of (list of float, float), or None
        The probabilities, made to sum up to 1, and what they summed up to; None where there are none.
    """
    tokens = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    if not tokens:
        return None
    starts, text = [], ""
    for token in tokens:
        starts.append(len(text))
        text += token["token"]
    places = list(_PLACE.finditer(text))
    if not places:
        return None
    at = places[-1].end()
    place = bisect_right(starts, at) - 1
    before, chosen = text[starts[place] : at], tokens[place]
    found = {each["token"]: each["logprob"] for each in [chosen, *(chosen.get("top_logprobs") or ())]}
    masses = [0.0] * n
    for token, logprob in found.items():
        letter, rest = token.removeprefix(before)[:1].upper(), token.removeprefix(before)[1:]
        is_letter = token.startswith(before) and letter and letter in LETTERS[:n]
        if is_letter and not any(map(str.isalnum, rest)) and isinstance(logprob, (int, float)):
            masses[LETTERS.index(letter)] += math.exp(logprob)
    mass = math.fsum(masses)
    return ([each / mass for each in masses], mass) if mass > 0 else None


async def weighed(judge: Any, messages: Messages, sample: int, context: Context, metadata: dict[str, Any]) -> Score:
    """The verdict of a judge whose `method` is "logprobs".

    All of a judge's rows are weighed in one way: the first answer of its model decides which, and
    until it is there the other rows wait. With a cache the decision stays.
    """
    key = content_key("logprobs", **judge._asked)
    told, gives = dict(metadata), _decided(judge, key, context)
    answer: Structured | Score | None = None
    if gives is None:
        async with context.memo.setdefault(("lock", key), asyncio.Lock()):
            gives = _decided(judge, key, context)
            if gives is None:
                answer, gives = await _ask(judge, messages, sample, context, told)
                _decide(judge, key, gives, context)
    if gives is False:
        return await _otherwise(judge, messages, sample, context, metadata, answer)
    if answer is None:
        answer, _ = await _ask(judge, messages, sample, context, told)
    if isinstance(answer, Score):
        return answer
    if (found := weights(answer.logprobs, len(judge.scale.labels))) is None:
        return _missing(f"{judge.model} returned no log-probabilities for the verdict of this row", answer, told)
    shares, mass = found
    label = judge.scale.labels[max(range(len(shares)), key=shares.__getitem__)]
    told |= {"method": "logprobs", "probabilities": named(judge.scale, shares), "mass": mass}
    return judge._score(label, answer.value.reason, answer.usage, told)


def named(scale: Scale, shares: Sequence[float]) -> dict[str, float]:
    """The shares by their labels, as JSON has them."""
    return {str(label): share for label, share in zip(scale.labels, shares)}


def expected(scale: Scale, probabilities: Mapping[str, float]) -> float | None:
    """The mean score, each label's weighed with its probability; of labels without a score none is in it."""
    pairs = [(probabilities[str(label)], score) for label, score in zip(scale.labels, scale.scores)]
    mass = math.fsum(share for share, score in pairs if score is not None)
    return math.fsum(share * score for share, score in pairs if score is not None) / mass if mass > 0 else None


def _decided(judge: Any, key: str, context: Context) -> bool | None:
    if key not in context.memo and context.cache is not None:
        kept = context.cache.get(key, None)
        gives = kept.get("returned") if isinstance(kept, dict) else None
        if gives is True or gives is False and judge.fallback_samples is not None:
            context.memo[key] = gives
    return context.memo.get(key)


def _decide(judge: Any, key: str, gives: bool | None, context: Context) -> None:
    if gives is None:
        return
    context.memo[key] = gives
    # That there are none is kept with the samples that take their place; else the next scoring looks again.
    if context.cache is not None and (gives or judge.fallback_samples is not None):
        context.cache.keep(key, {"returned": gives})


async def _ask(
    judge: Any, messages: Messages, sample: int, context: Context, metadata: dict[str, Any]
) -> tuple[Structured | Score, bool | None]:
    """An answer, and whether its provider returns log-probabilities; None where it does not show."""
    model, cache = judge._response_model, context.cache
    answer = await ask(
        judge, messages, model, sample=sample, cache=cache, metadata=metadata, **{**PARAMS, **judge.params}
    )
    if isinstance(answer, Score):
        refused = answer.status == "error" and metadata.get("error_class") == "model" and "logprob" in answer.reason
        return answer, False if refused else None
    return answer, bool(isinstance(answer.logprobs, Mapping) and answer.logprobs.get("content"))


def _missing(what: str, answer: Any, metadata: dict[str, Any]) -> Score:
    why = f"{what}, which method='logprobs' needs"
    usage = getattr(answer, "usage", None)
    return Score(None, why, status="error", error=why, usage=usage, metadata=metadata)


async def _otherwise(
    judge: Any, messages: Messages, sample: int, context: Context, metadata: dict[str, Any], answer: Any
) -> Score:
    """Where the provider returns no log-probabilities: samples if they were asked for, else no score."""
    paid, k = getattr(answer, "usage", None) or Usage(), judge.fallback_samples
    if k is None:
        why = f"{judge.model} returns no log-probabilities"
        return _missing(f"{why} (fallback_samples=k draws k verdicts instead)", answer, metadata)
    told = [dict(metadata) for _ in range(k)]
    draws = await asyncio.gather(*(_draw(judge, messages, sample * k + i, context, told[i]) for i in range(k)))
    usage = sum((draw.usage or Usage() for draw in draws), paid)
    letters = [draw.value.verdict for draw in draws if not isinstance(draw, Score)]
    if not letters:
        return Score(
            None, draws[-1].reason, status=draws[-1].status, error=draws[-1].error, usage=usage, metadata=told[-1]
        )
    counts = Counter(letters)
    most = min(counts, key=lambda letter: (-counts[letter], letter))
    first = next(i for i, draw in enumerate(draws) if not isinstance(draw, Score) and draw.value.verdict == most)
    shares = [counts[letter] / len(letters) for letter in LETTERS[: len(judge.scale.labels)]]
    how = {"method": "samples", "drawn": k, "scored": len(letters), "probabilities": named(judge.scale, shares)}
    label = judge.scale.labels[LETTERS.index(most)]
    return judge._score(label, draws[first].value.reason, usage, {**told[first], **how})


async def _draw(judge: Asking, messages: Messages, sample: int, context: Context, metadata: dict[str, Any]) -> Any:
    model, none = judge._response_model, dict.fromkeys(PARAMS)
    return await ask(judge, messages, model, sample=sample, cache=context.cache, metadata=metadata, **none)
