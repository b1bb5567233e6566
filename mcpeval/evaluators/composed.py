"""Evaluators made of others: what each says, what of that is known already, and what it would cost to ask.

A jury and a cascade are made of evaluators (``parts``, by name), and a pairwise judge of a judge;
what asks them need not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..caching import content_key
from ..types import Score, Usage
from .base import Context, evaluate_now, evaluate_row, is_immediate, to_scores

#: Under this key a row of two runs that are compared holds the second one.
OPPONENT = "opponent"

Answers = list[tuple[str, Score]]


class Call(NamedTuple):
    """A call that would be made; tokens at four characters each.

    Of calls with the same `key` one is made and the others have its answer: where answers are kept, and of
    a `common` one always.
    """

    key: str
    prompt_tokens: int
    common: bool = False


class Forecast(NamedTuple):
    """What an evaluation would take: the calls to make, and how many the cache would answer."""

    calls: tuple[Call, ...] = ()
    cached_calls: int = 0

    def plus(self, other: Forecast) -> Forecast:
        return Forecast(self.calls + other.calls, self.cached_calls + other.cached_calls)


@dataclass(frozen=True)
class _Draw:
    """An evaluator of which this is the `sample`-th answer."""

    evaluator: Any
    sample: int

    @property
    def name(self) -> str:
        return self.evaluator.name

    async def evaluate(self, row: Mapping[str, Any], context: Context) -> Any:
        return await self.evaluator.evaluate(row, context, sample=self.sample)


async def answers_of(evaluator: Any, row: Mapping[str, Any], context: Context | None, sample: int = 0) -> Answers:
    """What an evaluator says of a row (`evaluate_row`), in its `sample`-th answer where it gives several."""
    draw = _Draw(evaluator, sample) if hasattr(evaluator, "samples") else evaluator
    return await evaluate_row(draw, row, context)


def known_answers(evaluator: Any, row: Mapping[str, Any], cache: Any, sample: int = 0) -> Answers | None:
    """The same where nobody has to be waited for: it is in the cache, or said at once; else None."""
    if is_immediate(evaluator):
        return evaluate_now(evaluator, row)
    return peeked(evaluator, row, cache, sample)


def peeked(evaluator: Any, row: Mapping[str, Any], cache: Any, sample: int = 0) -> Answers | None:
    """What an evaluator that can be looked into (``peek``) has in the cache, else None."""
    peek = getattr(evaluator, "peek", None)
    found = None if peek is None else peek(row, cache, sample=sample)
    return None if found is None else to_scores(found, evaluator.name)


def forecast(evaluator: Any, row: Mapping[str, Any], cache: Any, sample: int = 0) -> Forecast:
    """What an evaluation would take; re-asks are not counted."""
    own = getattr(evaluator, "forecast", None)
    if own is not None:
        return own(row, cache, sample=sample)
    if not getattr(evaluator, "models", ()):
        return Forecast()
    found = peeked(evaluator, row, cache, sample)
    if found is not None:
        return Forecast(cached_calls=sum(answer.usage is not None for _, answer in found))
    messages = evaluator.render(row)
    key = content_key("verdict", who=identity(evaluator), messages=messages, sample=sample)
    calls = [Call(key, _tokens(messages))]
    before = evaluator.ahead(row, cache) if hasattr(evaluator, "ahead") else None
    if before is not None:
        calls.append(Call(before[0], _tokens(before[1]), common=True))
    return Forecast(tuple(calls))


def _tokens(messages: Iterable[Mapping[str, Any]]) -> int:
    return sum(_length(message["content"]) for message in messages) // 4


def _length(content: Any) -> int:
    if isinstance(content, str):
        return len(content)
    return sum(len(part.get("text", "")) for part in content if isinstance(part, Mapping))


def leaves(evaluator: Any) -> Iterator[Any]:
    """The evaluators at the bottom of what others are made of; of one that is not made of others itself."""
    parts = getattr(evaluator, "parts", None)
    if not parts:
        yield evaluator
    for part in (parts or {}).values():
        yield from leaves(part)


def part_named(evaluator: Any, name: str) -> Any:
    """The part of `evaluator` whose row is named `name` ("jury.first"); else `evaluator` itself."""
    rest = name.removeprefix(f"{evaluator.name}.")
    for key, part in getattr(evaluator, "parts", {}).items():
        if rest != name and (rest == key or rest.startswith(f"{key}.")):
            return part_named(part, part.name + rest.removeprefix(key))
    return evaluator


def owner_of(name: str, evaluators: Iterable[str]) -> str:
    """Which of `evaluators`, by their names, a row named `name` comes from ("jury" of "jury.first").

    Of "gpt-4" and "gpt-4.1", which both may begin a name, the longer one is meant.
    """
    return max((one for one in evaluators if name == one or name.startswith(f"{one}.")), key=len)


def total_usage(answers: Answers) -> Usage | None:
    """The usage of several answers together; None where none of them called anybody."""
    used = [answer.usage for _, answer in answers if answer.usage is not None]
    return sum(used, Usage()) if used else None


def paid_elsewhere(usage: Usage | None) -> Usage | None:
    """The usage of a row whose calls stand in other rows, so that a sum over a frame counts them once."""
    if usage is None:
        return None
    return replace(usage, tokens_in=0, tokens_out=0, cost_usd=0.0, seconds=0.0, saved_usd=0.0)


def kind_of(evaluator: Any) -> str:
    """The ``kind`` of an evaluator; an object that does not say is a function's like."""
    return getattr(evaluator, "kind", "function")


def identity(evaluator: Any) -> Any:
    """What names an evaluator in the fingerprint of another that is made of it."""
    return getattr(evaluator, "fingerprint", None) or [kind_of(evaluator), evaluator.name]


def told(evaluator: Any) -> dict[str, Any]:
    """What an evaluator tells of itself inside another's ``to_dict``."""
    if hasattr(evaluator, "to_dict"):
        return evaluator.to_dict()
    return {"kind": kind_of(evaluator), "name": evaluator.name}
