"""An evaluator of meaning: how near the answer's vector is to the reference's."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from .. import embedding
from .._calls import is_secret, model_identity
from ..caching import Cache, canonical
from ..types import Score
from .arguments import need_count, need_number
from .base import Context
from .conversations import Turn, answered, both
from .text import other_length


@dataclass(frozen=True)
class EmbeddingSimilarity:
    """How like the reference an answer is in meaning: the cosine of their embeddings.

    Parameters
    ----------
    model : str
        A LiteLLM model of embeddings, such as "openai/text-embedding-3-small".
    threshold : float
        The mean score of the turns from which the row passes.
    chunk : int
        A longer text is embedded in pieces of at most so many characters, parted between words,
        and has the mean of their vectors; 0 never parts a text.
    with_question : bool
        Whether ``metadata`` says how near each answer is to its question as well.
    name : str
    params : mapping
        Parameters of the model: ``dimensions``, ``api_base``, ``api_key``, ...

    Notes
    -----
    Reads ``output`` and ``reference``; a row without reference is ``skipped``. A cosine below 0
    scores 0. An answer that says nothing scores 0, and 1 where nothing was expected; neither asks
    the model. A model that fails gives no score, never a low one.
    """

    model: str
    threshold: float = 0.8
    chunk: int = 2000
    with_question: bool = False
    name: str = "embedding_similarity"
    params: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)  # it may hold a key

    kind: ClassVar[str] = "text"
    columns: ClassVar[tuple[str, ...]] = ("output", "reference")

    def __post_init__(self) -> None:
        embedding.check(self.model)
        need_number("EmbeddingSimilarity", "threshold", self.threshold, 0, 1)
        need_count("EmbeddingSimilarity", "chunk", self.chunk)

    @property
    def models(self) -> tuple[str, ...]:
        return (self.model,)

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of all that shapes the score; no secret."""
        params = {
            key: value
            for key, value in self.params.items()
            if not is_secret(key) and key not in ("api_base", "base_url")
        }
        parts = {"model": model_identity(self.model, self.params), "params": params, "chunk": self.chunk}
        return hashlib.sha256(canonical({"embedding_similarity": parts}).encode()).hexdigest()

    async def evaluate(self, row: Mapping[str, Any], context: Context | None = None) -> Score:
        """Embed what has to be compared, and compare it."""
        decided, expected, actual = self._without_model(row)
        if decided is not None:
            return decided
        cache = None if context is None else context.cache
        found = await embedding.embed(self.model, self._pieces(expected, actual), cache=cache, **self.params)
        return self._score(expected, actual, found)

    def peek(self, row: Mapping[str, Any], cache: Cache | None, sample: int = 0) -> Score | None:
        """The score where every vector is in the cache; None where the model has to be asked."""
        decided, expected, actual = self._without_model(row)
        if decided is not None:
            return decided
        found = embedding.kept(self.model, self._pieces(expected, actual), cache, self.params)
        return None if found is None else self._score(expected, actual, found)

    def render(self, row: Mapping[str, Any]) -> list[dict[str, str]]:
        """What the model would be sent, as messages."""
        decided, expected, actual = self._without_model(row)
        return [
            {"role": "user", "content": text} for text in (self._pieces(expected, actual) if decided is None else ())
        ]

    def _without_model(self, row: Mapping[str, Any]) -> tuple[Score | None, list[Turn], list[Turn]]:
        expected, actual = both(row)
        if all(turn.answer is None for turn in expected):
            return Score(None, "the row has no reference"), expected, actual
        if len(expected) != len(actual):
            return other_length(expected, actual, {"threshold": self.threshold}), expected, actual
        return None, expected, actual

    def _pairs(self, expected: Sequence[Turn], actual: Sequence[Turn]) -> list[tuple[str, str, str]]:
        pairs = answered(expected, actual)
        return [((e.answer or "").strip(), (a.answer or "").strip(), e.question.strip()) for e, a in pairs]

    def _pieces(self, expected: Sequence[Turn], actual: Sequence[Turn]) -> list[str]:
        pieces: list[str] = []
        for wanted, said, question in self._pairs(expected, actual):
            if wanted and said:
                for text in (wanted, said, question) if self.with_question else (wanted, said):
                    pieces += chunks(text, self.chunk)
        return list(dict.fromkeys(pieces))

    def _score(self, expected: Sequence[Turn], actual: Sequence[Turn], found: embedding.Embeddings) -> Score:
        vectors = dict(zip(self._pieces(expected, actual), found.vectors))
        scores: list[float] = []
        to_question: list[float] = []
        for wanted, said, question in self._pairs(expected, actual):
            if not wanted or not said:
                scores.append(float(wanted == said))
                continue
            a, b = (_mean([vectors[piece] for piece in chunks(text, self.chunk)]) for text in (wanted, said))
            scores.append(max(0.0, embedding.similarity(a, b)))
            if self.with_question and question:
                c = _mean([vectors[piece] for piece in chunks(question, self.chunk)])
                to_question.append(embedding.similarity(c, b))
        mean = sum(scores) / len(scores)
        about = {"threshold": self.threshold, "turns": scores, "judge_model": found.model}
        about |= {"to_question": to_question} if to_question else {}
        reason = f"cosine {mean:.3f}, threshold {self.threshold:g}"
        return Score(mean, reason, passed=mean >= self.threshold, usage=found.usage, metadata=about)


def chunks(text: str, most: int) -> list[str]:
    """`text` in pieces of at most `most` characters, parted between words; a longer word stays whole."""
    if not text or not most or len(text) <= most:
        return [text] if text else []
    pieces = [""]
    for word in text.split():
        joined = f"{pieces[-1]} {word}".lstrip()
        if pieces[-1] and len(joined) > most:
            pieces.append(word)
        else:
            pieces[-1] = joined
    return pieces


def _mean(vectors: Sequence[Sequence[float]]) -> list[float]:
    return [sum(numbers) / len(vectors) for numbers in zip(*vectors)]
