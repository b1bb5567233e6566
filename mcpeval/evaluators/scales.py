"""The scale of a judge's verdict.

One `Scale` is the only source of the sentence in the prompt, of the response schema, of the number
in [0, 1], of the level of measurement (which agreement statistic may be used) and of the order in
a figure, so that none of them can disagree with another.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..errors import InputError, did_you_mean
from .replies import one_answer

_EXPECTED = (
    "bool; labels from worst to best, as ['bad', 'good'] or {'A': 'what A means', ...}; whole points, "
    "as (1, 5) or {1: 'what 1 means', ...}; or a continuous range, as (0.0, 1.0)"
)
_KINDS = ("bool", "choice", "points", "range")
_WHOLE = re.compile(r"[+-]?\d{1,18}(\.0+)?")


@dataclass(frozen=True)
class Scale:
    """What verdicts a judge may give, and what each is worth. Written `Scale.of`.

    Attributes
    ----------
    kind : {"bool", "choice", "points", "range"}
    labels : tuple
        Every verdict in the order in which it was given; for a ``range`` its two ends.
    scores : tuple of (float or None)
        What each label is worth, in [0, 1]. None is a verdict that says nothing of quality ("not
        applicable"): its row is ``skipped`` and keeps the label.
    descriptions : tuple of str
        What each label means, as the judge is told; "" where nothing was said.
    """

    kind: str
    labels: tuple[Any, ...]
    scores: tuple[float | None, ...]
    descriptions: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise InputError(f"Scale: kind={self.kind!r}. {did_you_mean(self.kind, _KINDS)}")
        if not len(self.labels) == len(self.scores) == len(self.descriptions) >= 2:
            raise InputError(
                f"Scale: {self.labels!r} should be at least two labels, each with a score and a description"
            )
        for label, score in zip(self.labels, self.scores):
            if score is not None and not 0.0 <= score <= 1.0:
                raise InputError(f"Scale: the score of {label!r} is {score!r}; expected a number from 0 to 1, or None")

    @classmethod
    def of(cls, given: Any) -> Scale:
        """The scale that `given` stands for.

        Parameters
        ----------
        given : Scale, bool, tuple, list or mapping
            - ``bool`` (the type): true or false.
            - ``(1, 5)``: the whole points from 1 (worst) to 5 (best).
            - ``(0.0, 1.0)``: any number between; a float at either end says so.
            - ``["bad", "fair", "good"]``: labels from worst to best, evenly spaced.
            - ``{"A": "what A means", "B": ...}``: the same with meanings. In place of a meaning
              may stand a score (``{"yes": 1, "no": 0, "not applicable": None}``) or both:
              ``("what it means", 0.5)``. Scores are given for all labels or for none.
            - ``{1: "what 1 means", ..., 5: ...}``: whole points with meanings.

        Raises
        ------
        InputError
            It is none of these, a range is empty, a label is repeated, or a score is outside [0, 1].
        """
        if isinstance(given, Scale):
            return given
        if given is bool:
            return cls("bool", (False, True), (0.0, 1.0), ("", ""))
        if isinstance(given, tuple) and len(given) == 2 and all(_is_number(end) for end in given):
            return cls._between(*given)
        if isinstance(given, Mapping) and given:
            keys = list(given)
            if all(_is_number(key) for key in keys):
                return cls._described_points(given)
            return cls._choice(keys, list(given.values()))
        if isinstance(given, (list, tuple)) and given and all(isinstance(label, str) for label in given):
            return cls._choice(list(given), [""] * len(given))
        raise InputError(f"scale={given!r}; expected {_EXPECTED}")

    @classmethod
    def _between(cls, low: Any, high: Any) -> Scale:
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise InputError(f"scale=({low!r}, {high!r}) should be two numbers, the lower one first")
        if isinstance(low, float) or isinstance(high, float):
            return cls("range", (float(low), float(high)), (0.0, 1.0), ("", ""))
        if high - low > 1000:
            raise InputError(f"scale=({low}, {high}) has too many points; write ({low}.0, {high}.0) for a range")
        return cls._points(range(low, high + 1), [""] * (high - low + 1))

    @classmethod
    def _points(cls, points: Iterable[int], meanings: list[str]) -> Scale:
        points = tuple(points)
        scores = tuple((point - points[0]) / (points[-1] - points[0]) for point in points)
        return cls("points", points, scores, tuple(meanings))

    @classmethod
    def _described_points(cls, given: Mapping[Any, Any]) -> Scale:
        points = sorted(given)
        if not all(isinstance(p, int) for p in points) or len(points) < 2 or points[-1] - points[0] != len(points) - 1:
            raise InputError(f"scale has the points {points}; expected whole numbers without a gap, at least two")
        if not all(isinstance(given[p], str) for p in points):
            raise InputError(f"scale={given!r} should say in a text what each point means")
        return cls._points(points, [given[p].strip() for p in points])

    @classmethod
    def _choice(cls, labels: list[Any], values: list[Any]) -> Scale:
        folded = [_folded(label) for label in labels if isinstance(label, str) and label.strip()]
        if len(labels) < 2 or len(folded) < len(labels):
            raise InputError(f"scale has the labels {labels!r}; expected at least two texts that are not empty")
        if repeated := sorted({label for label in folded if folded.count(label) > 1}):
            raise InputError(f"scale has the label {repeated[0]!r} twice (capitals and spaces aside)")
        pairs = [_meaning_and_score(value) for value in values]
        if not all(isinstance(text, str) and (s is None or s is _EVEN or _is_number(s)) for text, s in pairs):
            raise InputError(f"scale: {values!r} should give each label a text, a score, or (text, score)")
        given = [score for _, score in pairs if score is not _EVEN]
        if given and len(given) < len(labels):
            raise InputError(f"scale: {values!r} gives a score to some labels only; give it to all or to none")
        if given and all(score is None for score in given):
            raise InputError(f"scale: no label of {labels!r} has a score")
        scores = given or [i / (len(labels) - 1) for i in range(len(labels))]
        texts = tuple(text.strip() for text, _ in pairs)
        return cls("choice", tuple(labels), tuple(None if s is None else float(s) for s in scores), texts)

    @property
    def level(self) -> str:
        """Level of measurement: ``nominal``, ``ordinal`` or ``interval``.

        Points and labels are ordinal (nothing says that the steps between them are equal); labels
        of which two are worth the same, or one is worth nothing, are nominal, as is true or false.
        """
        if self.kind == "range":
            return "interval"
        distinct = None not in self.scores and len(set(self.scores)) == len(self.scores)
        return "ordinal" if distinct and self.kind != "bool" else "nominal"

    @property
    def order(self) -> tuple[Any, ...]:
        """The labels from worst to best, as a figure's axis shows them; those without a score last."""
        ranked = [(2.0 if score is None else score, i) for i, score in enumerate(self.scores)]
        return tuple(self.labels[i] for _, i in sorted(ranked))

    def score(self, label: Any) -> float | None:
        """What `label` is worth, in [0, 1]; None for a label that is worth nothing.

        Raises
        ------
        InputError
            `label` is not on the scale.
        """
        try:
            label = self.read(label)
        except ValueError as error:
            raise InputError(f"Scale: {error}") from None
        if self.kind == "range":
            low, high = self.labels
            return (label - low) / (high - low)
        return self.scores[self.labels.index(label)]

    def read(self, answer: Any) -> Any:
        """The label that a judge's `answer` is: itself, or another spelling of the same value.

        Only spellings that can mean one label are read: ``"4"`` and ``4.0`` as 4, ``"True"`` as
        True, ``" good"`` as "good". Nothing is rounded, clamped or searched for.

        Raises
        ------
        ValueError
            The answer is off the scale. The text is what the model is told when it is asked again.
        """
        found = {"bool": self._read_bool, "choice": self._read_choice}.get(self.kind, self._read_number)(answer)
        if found is None:
            raise ValueError(f"{json.dumps(answer, default=str)[:80]} is not on the scale; expected {self.options}")
        return found

    def _read_bool(self, answer: Any) -> bool | None:
        if isinstance(answer, str):
            return {"true": True, "false": False}.get(_folded(answer))
        return answer if isinstance(answer, bool) else None

    def _read_choice(self, answer: Any) -> str | None:
        if not isinstance(answer, str):
            return None
        return next((label for label in self.labels if _folded(label) == _folded(answer)), None)

    def _read_number(self, answer: Any) -> float | int | None:
        if isinstance(answer, str) and (self.kind == "range" or _WHOLE.fullmatch(answer.strip())):
            try:
                answer = float(answer)
            except ValueError:
                return None
        if not _is_number(answer) or not self.labels[0] <= answer <= self.labels[-1]:
            return None
        if self.kind == "range":
            return float(answer)
        return int(answer) if answer == int(answer) else None

    @property
    def options(self) -> str:
        """The verdicts in a few words: ``true or false``, ``a whole number from 1 to 5``."""
        low, high = self.labels[0], self.labels[-1]
        if self.kind == "bool":
            return "true or false"
        if self.kind == "choice":
            return "one of " + ", ".join(json.dumps(label, ensure_ascii=False) for label in self.labels)
        return f"a {'whole number' if self.kind == 'points' else 'number'} from {low} to {high}"

    @property
    def sentence(self) -> str:
        """What the judge is told about its verdict, with the meaning of each label."""
        if self.kind == "bool":
            return "The verdict is true or false: true where the answer to what was asked of you is yes, else false."
        text = f"The verdict is {self.options}"
        if self.kind in ("points", "range") or self.level == "ordinal" and self.order == self.labels:
            text += f"; {json.dumps(self.labels[0])} is the worst and {json.dumps(self.labels[-1])} the best"
        meanings = [
            f"- {json.dumps(label, ensure_ascii=False)}: {meaning}"
            for label, meaning in zip(self.labels, self.descriptions)
            if meaning
        ]
        return "\n".join([text + (":" if meanings else "."), *meanings])

    def to_dict(self) -> dict[str, Any]:
        """The scale as plain JSON values."""
        return {
            "kind": self.kind,
            "labels": list(self.labels),
            "scores": list(self.scores),
            "descriptions": list(self.descriptions),
        }

    def response_model(self, max_reason: int = 600) -> type:
        """The pydantic model of a judge's answer: ``reason`` first, then ``verdict``.

        A model is built once for each scale and `max_reason`: building it, not reading with it, is
        what costs.

        Parameters
        ----------
        max_reason : int
            Characters. In the schema, so that constrained decoding ends; a longer reason is read
            all the same, since its verdict is as good.
        """
        return _response_model(self, max_reason)


class _Even:
    """Stands for the score of a label to which none was given."""


_EVEN = _Even()


def _meaning_and_score(value: Any) -> tuple[Any, Any]:
    if isinstance(value, tuple) and len(value) == 2:
        return value
    return (value, _EVEN) if isinstance(value, str) else ("", value)


def _is_number(value: Any) -> bool:
    # A whole number too large for a float must not reach isfinite, which would raise.
    return isinstance(value, int) and not isinstance(value, bool) or isinstance(value, float) and math.isfinite(value)


def _folded(label: str) -> str:
    return " ".join(label.split()).casefold()


@lru_cache(maxsize=256)
def _response_model(scale: Scale, max_reason: int) -> type:
    from typing import Annotated, Literal

    from pydantic import BeforeValidator, Field, create_model

    # The type is what the provider's decoder is held to, `read` what decides: it runs first, and
    # an answer that it refuses never meets pydantic's own, more lenient, conversions.
    low, high = scale.labels[0], scale.labels[-1]
    types: dict[str, Any] = {
        "bool": bool,
        "choice": Literal[scale.labels],
        "points": Annotated[int, Field(ge=low, le=high)],
        "range": Annotated[float, Field(ge=low, le=high)],
    }
    verdict = Annotated[types[scale.kind], BeforeValidator(scale.read)]
    reason = Annotated[str, Field(json_schema_extra={"maxLength": max_reason})]
    return create_model(
        "Verdict", __base__=one_answer(), __module__=__name__, reason=(reason, ...), verdict=(verdict, ...)
    )
