"""A checklist: a model that judges point by point, and the share of points that an answer covers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..caching import Cache
from ..errors import InputError
from ..types import Score, Usage
from . import prompts
from .asking import (
    Asking,
    First,
    Gallery,
    Messages,
    check_numbers,
    check_seen,
    model_of,
    names_of,
    params_of,
    seen,
)
from .cutting import tokens
from .replies import numbered, some_texts
from .scales import Scale
from .shown import is_there

VERDICTS = ("fulfilled", "partly", "not")

FULFILLED = (
    "Does what is judged fulfil each of the points? A point is fulfilled where it is met in substance; other words "
    "will do. It is partly fulfilled where some of it is met, and not where it is missing, contradicted, or only "
    "promised."
)
SUPPORTED = (
    "Is each of the points, which are claims of the agent, supported by what is shown? A claim is fulfilled where what "
    "is shown states it or it follows from that by reading or simple arithmetic; partly, where some of it does; not, "
    "where nothing that is shown supports it or something contradicts it, even if it is true."
)

#: As `judges.PARSER_VERSION`.
VERSION = 1

_EACH = Scale.of({"fulfilled": 1.0, "partly": 0.5, "not": 0.0})


@dataclass(frozen=True, init=False)
class Checklist(Asking):
    """An evaluator that judges each point of a list, in one answer, and scores how much is covered.

    Parameters
    ----------
    points : str or sequence of str, optional
        A column that holds each row's points (a list, or one text), as ``key_points``; or the points
        themselves, the same for every row. A row without points is ``skipped``.
    claims_of : str, optional
        In place of `points`: a column out of whose text the model takes the claims beforehand, in
        a call of its own (kept in the cache). ``Checklist(claims_of="output", sees=("tool_calls",))``
        says how much of an answer is supported by what the tools returned.
    rubric : str, optional
        What makes a point fulfilled. Not given: that it is met; of claims, that they are supported.
    model, name, samples, max_reason, max_chars, max_tokens_shown, images, reasks, params
        As for `Judge`; `max_reason` is for each point.
    sees : sequence of str, optional
        As for `Judge`: question and output; for claims question and ``tool_calls``.
    partly : float
        What a partly fulfilled point counts.
    threshold : float or None
        The coverage from which a row passes; None does not say whether it does.
    max_claims : int
        Asked for at most.

    Raises
    ------
    InputError
        An argument has no meaning, or both or neither of `points` and `claims_of` are given.

    Notes
    -----
    ``score`` is the mean over the points: 1 for a fulfilled one, `partly`, 0. ``label`` has the raw
    verdicts, in the order of the points ("fulfilled, not"). The metadata have ``points``: for each its
    ``point``, ``verdict`` and ``reason``; and the ``threshold``. An answer that leaves out a point
    is ``unparsed``, as any other that is off the scale: no point is ever taken for one that failed.

    Examples
    --------
    >>> Checklist("key_points", model="openai/gpt-4.1-mini", threshold=0.8)  # doctest: +SKIP
    >>> Checklist(["names the city", "gives the price in euros"], model="openai/gpt-4.1-mini")  # doctest: +SKIP
    """

    points: str | tuple[str, ...] | None
    claims_of: str | None
    rubric: str
    model: str
    name: str
    sees: tuple[str, ...]
    partly: float
    threshold: float | None
    samples: int
    max_claims: int
    max_reason: int
    max_chars: int
    max_tokens_shown: int | None
    images: bool
    reasks: int
    params: Mapping[str, Any] = field(repr=False)  # it may hold a key

    def __init__(
        self,
        points: str | Sequence[str] | None = None,
        *,
        claims_of: str | None = None,
        rubric: str | None = None,
        model: str | None = None,
        name: str = "checklist",
        sees: Iterable[str] | None = None,
        partly: float = 0.5,
        threshold: float | None = 1.0,
        samples: int = 1,
        max_claims: int = 20,
        max_reason: int = 200,
        max_chars: int = 100_000,
        max_tokens_shown: int | None = None,
        images: bool = False,
        reasks: int = 2,
        params: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        shown = ("question", "output" if claims_of is None else "tool_calls")
        values = {
            "points": tuple(points) if isinstance(points, (list, tuple)) else points,
            "claims_of": claims_of,
            "rubric": rubric if rubric is not None else FULFILLED if claims_of is None else SUPPORTED,
            "model": model_of(model, "Checklist"),
            "name": name,
            "sees": names_of(shown if sees is None else sees, "Checklist"),
            "partly": partly,
            "threshold": threshold,
            "samples": samples,
            "max_claims": max_claims,
            "max_reason": max_reason,
            "max_chars": max_chars,
            "max_tokens_shown": max_tokens_shown,
            "images": images,
            "reasks": reasks,
            "params": params_of(Checklist, params, more),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)
        self._check_values()

    def _check_values(self) -> None:
        least = {"samples": 1, "max_claims": 1, "max_reason": 20, "max_chars": 100, "max_tokens_shown": 50, "reasks": 0}
        check_numbers(self, **least)
        if (self.points is None) == (self.claims_of is None):
            raise InputError("Checklist: give either points, a column or a list of texts, or claims_of, a column")
        named = self.points if self.claims_of is None else self.claims_of
        argument = "points" if self.claims_of is None else "claims_of"
        is_column = isinstance(named, str) and bool(named)
        if not is_column and not (argument == "points" and _are_texts(named)):
            raise InputError(f"Checklist: {argument}={named!r:.100} should be a column, or the points as texts")
        if not isinstance(self.rubric, str) or not self.rubric.strip() or prompts.placeholders(self.rubric):
            raise InputError(
                f"Checklist: rubric={self.rubric!r:.100} should be a text without columns in braces; sees= names those"
            )
        if not isinstance(self.name, str) or not self.name:
            raise InputError(f"Checklist: name={self.name!r:.80} should be a text")
        if not self.sees:
            raise InputError("Checklist: sees=() shows the judge nothing; expected names of columns")
        is_number = isinstance(self.partly, (int, float)) and not isinstance(self.partly, bool)
        if not is_number or not 0.0 <= self.partly <= 1.0:
            raise InputError(f"Checklist: partly={self.partly!r} should be a number from 0 to 1")
        if not isinstance(self.images, bool):
            raise InputError(f"Checklist: images={self.images!r} should be True or False")

    def __hash__(self) -> int:
        return hash((self.fingerprint, self.name, self.threshold, self.partly, self.samples))

    @property
    def _column(self) -> str | None:
        """The column that the points come from."""
        return self.claims_of or (self.points if isinstance(self.points, str) else None)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns without which it cannot judge; ``messages`` stands for the transcript."""
        named = [name for name in self.sees if not name.endswith("?")] + ([self._column] if self._column else [])
        return tuple(dict.fromkeys("messages" if name == "transcript" else name for name in named))

    @property
    def lengths(self) -> tuple[int, ...]:
        """Characters of the reasons in its longest answer, for points of a column as if there were `max_claims`."""
        n = len(self.points) if isinstance(self.points, tuple) else self.max_claims
        return (max(self.max_reason, prompts.CLAIM_LENGTH if self.claims_of else 0),) * n

    @cached_property
    def _shape(self) -> dict[str, Any]:
        shape = {
            "checklist": VERSION,
            "system": self._system,
            "user": prompts.POINTS,
            "rubric": self.rubric,
            "sees": list(self.sees),
            "points": list(self.points) if isinstance(self.points, tuple) else self.points,
            "claims": [self.claims_of, self.max_claims, prompts.CLAIMS] if self.claims_of else None,
            "schema": _EACH.response_model(self.max_reason).model_json_schema(),
            **self._asked,
            "max_chars": self.max_chars,
            "images": self.images,
        }
        counted = tokens(self.model).name if self.max_tokens_shown else None
        return {**shape, "tokens": [counted, self.max_tokens_shown]}

    @cached_property
    def _system(self) -> str:
        columns = prompts.meanings([name.removesuffix("?") for name in self.sees], images=self.images)
        task = prompts.fill(self.rubric.strip(), {})
        return prompts.told(prompts.CHECKLIST, task=task, columns=columns, max_reason=self.max_reason)

    def check(self, columns: Iterable[str]) -> None:
        """Say that a column is missing, before anything is asked.

        Raises
        ------
        InputError
            `sees`, `points` or `claims_of` names a column that is not among `columns`.
        """
        columns = list(columns)
        check_seen(self.name, self.sees, columns, "sees")
        if self._column:
            check_seen(self.name, [self._column], columns, "points" if self.claims_of is None else "claims_of")

    # --- what is asked ----------------------------------------------------------------------------

    def _points(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        """The points of a row; of claims those that were found, where they are in it."""
        if self.claims_of is not None:
            found = row.get(_CLAIMS, ())
        else:
            found = row.get(self.points) if isinstance(self.points, str) else self.points
        if prompts.is_missing(found) or isinstance(found, (str, Mapping)) or not isinstance(found, Iterable):
            found = () if prompts.is_missing(found) else (found,)
        texts = (prompts.as_text(point).strip() for point in found if not prompts.is_missing(point))
        return tuple(dict.fromkeys(text for text in texts if text))

    def _why_not(self, row: Mapping[str, Any]) -> str | None:
        if self.claims_of is not None and _CLAIMS not in row:
            return None if is_there(self.claims_of, row) else f"there is no {self.claims_of!r} to take claims from"
        if not self._points(row):
            return f"no claims in {self.claims_of!r}" if self.claims_of else "the row has no points"
        return None

    def _first(self, row: Mapping[str, Any]) -> First | None:
        if self.claims_of is None:
            return None
        text = "".join(part.text for part in prompts.parts_of(self.claims_of, row))
        return First(
            "list of claims",
            prompts.to_be_taken_apart(text, self.max_claims),
            some_texts(self.max_claims, prompts.CLAIM_LENGTH),
        )

    def _with(self, row: Mapping[str, Any], answer: Any) -> Mapping[str, Any]:
        if self.claims_of is None:
            return row
        return {**row, _CLAIMS: [prompts.NOT_YET] if answer is None else list(answer)}

    def _render(self, row: Mapping[str, Any], cache: Cache | None) -> tuple[Messages, tuple[str, ...]]:
        points, gallery = self._points(row), Gallery(cache) if self.images else None
        parts = {name: prompts.parts_of(name, row, gallery and gallery.mark) for name in seen(self.sees, row)}
        most = {"tokens": self.max_tokens_shown, "ruler": tokens(self.model)} if self.max_tokens_shown else {}
        texts, cut = prompts.fit(parts, self.max_chars, **most)
        texts = {name: prompts.escape(text) for name, text in texts.items()}
        listed = {f"point_{number}": prompts.escape(point) for number, point in enumerate(points, 1)}
        code = prompts.code_for(self._system, [*texts.values(), *listed.values()])
        given = {
            "code": code,
            "data": "\n\n".join(prompts.fence(name, text, code) for name, text in texts.items()),
            "points": "\n\n".join(prompts.fence(name, text, code) for name, text in listed.items()),
            "n": str(len(points)),
        }
        text = prompts.fill(prompts.POINTS, given)
        content = gallery.content(text) if gallery else text
        return [{"role": "system", "content": self._system}, {"role": "user", "content": content}], cut

    def _response_model_for(self, row: Mapping[str, Any]) -> Any:
        return numbered("point", len(self._points(row)), _EACH.response_model(self.max_reason))

    # --- what is answered -------------------------------------------------------------------------

    def _verdict(self, value: Any, row: Mapping[str, Any]) -> tuple[Any, str, dict[str, Any]]:
        said = [getattr(value, f"point_{number}") for number in range(1, len(self._points(row)) + 1)]
        pairs = zip(self._points(row), said)
        points = [{"point": point, "verdict": one.verdict, "reason": one.reason} for point, one in pairs]
        return ", ".join(one.verdict for one in said), "", {"points": points}

    def _score(self, label: Any, reason: str, usage: Usage, metadata: Mapping[str, Any]) -> Score:
        # As a judge's: what a point counts and the threshold are applied after the cache.
        said = [point["verdict"] for point in metadata["points"]]
        worth = {"fulfilled": 1.0, "partly": float(self.partly), "not": 0.0}
        coverage = sum(worth[verdict] for verdict in said) / len(said)
        counts = {verdict: said.count(verdict) for verdict in VERDICTS}
        reason = f"{counts['fulfilled']} of {len(said)} points fulfilled, {counts['partly']} partly"
        missed = [f"{point['point']}: {point['reason']}" for point in metadata["points"] if point["verdict"] == "not"]
        reason += f"; not: {' | '.join(missed)}" if missed else ""
        passed = None if self.threshold is None else coverage >= self.threshold
        metadata = {**metadata, "threshold": self.threshold}
        return Score(coverage, reason, passed=passed, label=label, usage=usage, metadata=metadata)


# What the claims are called in a row: no column has this name.
_CLAIMS: Any = object()


def _are_texts(points: Any) -> bool:
    return isinstance(points, tuple) and bool(points) and all(isinstance(text, str) and text.strip() for text in points)
