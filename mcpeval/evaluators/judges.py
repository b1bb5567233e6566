"""A judge: a model that reads what an agent did and gives a verdict on a scale.

What it is told, what it may answer, and how the answer becomes a number all follow from one frozen
value, whose `Judge.fingerprint` names it in every row and every cache key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..caching import Cache, canonical
from ..errors import CacheError, InputError, did_you_mean, is_one_of
from ..frames import plain
from ..types import Score, Usage
from . import prompts, weighing
from .asking import Asking, First, Gallery, Messages, check_numbers, check_seen, model_of, names_of, params_of, seen
from .base import Context
from .cutting import tokens
from .replies import one_text
from .rubrics import CORRECTNESS, Rubric, rubric_of
from .scales import Scale

#: Raised when the prompts or the reading of answers change, so that old verdicts are not taken for new ones.
PARSER_VERSION = 1

METHODS = ("verdict", "logprobs")


@dataclass(frozen=True, init=False)
class Judge(Asking):
    """An evaluator that asks a model, and reads nothing but a verdict on its scale.

    Parameters
    ----------
    rubric : str or Rubric
        What to judge: a text; a ready rubric (`mcpeval.evaluators.rubrics`) or its name, such as
        "groundedness". A text that holds columns in braces (``"{question} ... {output}"``) is a
        template and shows only these; the columns in `sees` are shown after any other text.
        ``{{x}}`` writes a literal ``{x}``.
    model : str, optional
        Any LiteLLM model, or ``local/...``; `default_model` where it is not given.
    name : str, optional
        The ``evaluator`` of its rows: a ready rubric's own name, else "judge".
    scale : Scale, bool, tuple, list or mapping, optional
        See `Scale.of`: ``bool``, ``(1, 5)``, ``["bad", "good"]``, ``{"A": "...", "B": "..."}``. Not
        given, it is the ready rubric's own, else ``bool``.
    sees : sequence of str, optional
        Columns shown; ``transcript`` is made from the column ``messages``, and one whose name ends in
        ``?`` is shown where a row has it. Not given: the ready rubric's own, else question and output.
    reference : {"auto", True, False, "self"}
        Whether the column ``reference`` is shown too: where a row has one (or as the ready rubric says),
        always (a row without one is ``skipped``), or never. "self" shows in its place an answer that
        the model gives to the column ``question`` itself beforehand, without any tools, once for each
        question; it is in the metadata as ``own_answer``. A template shows what it names.
    threshold : float, optional
        The score from which a verdict passes. Where neither it nor the ready rubric's own is given, a
        bool verdict passes when it is true, and of other verdicts it is not said whether they pass.
    samples : int
        Verdicts for each row, each a row of its own; at a ``temperature`` of 0 they are mostly the same.
    examples : sequence of dict
        Shown before each row, as rows that were judged already: the columns that the judge sees, with
        ``verdict`` and, if you like, ``reason``.
    method : {"verdict", "logprobs"}
        "verdict": what the model says. "logprobs": the mean over the labels of the scale, each weighed
        with the probability that the model gave it (its letter), for providers that return
        log-probabilities; ``metadata`` has ``probabilities`` and their ``mass`` before they were made
        to sum up to 1. The label is the most probable one.
    fallback_samples : int, optional
        With "logprobs", for a model whose provider returns none: the mean of so many verdicts instead,
        for every row of the judge, which ``metadata["method"]`` then says. Not given, they are errors.
    max_reason : int
        Characters asked for as a reason, which the model writes before its verdict.
    max_chars : int
        Characters shown of a row (about four to a token). What is longer is cut in the middle,
        tool results first; the row's metadata then says ``truncated``.
    max_tokens_shown : int, optional
        Tokens shown of a row, likewise; counted without the network by the tokenizer of an OpenAI
        model, for any other model by the newest of these, which may be a fifth off.
    images : bool
        Whether images in messages and tool results are sent as images, for models that see; else they
        are named in the text, with their type, size and sha256. One that is only an address always is.
    reasks : int
        How often an answer that is off the scale is asked for again before it is ``unparsed``.
    params : mapping, optional
        Parameters of the model, and those of `mcpeval.llm.structured` (``mode``, ``timeout``). Any
        further keyword is one too; ``temperature`` is 0 unless said.

    Raises
    ------
    InputError
        An argument has no meaning, or a keyword is one slip away from an argument's name.

    Notes
    -----
    Rows of status ``unparsed`` keep the model's last text in their metadata. No answer is ever
    searched for a verdict, nor replaced by a default.

    ``dataclasses.replace(judge, model=..., temperature=...)`` is the same judge with that changed; a
    ready rubric given there brings no scale and no columns along, since the judge has its own.

    Examples
    --------
    >>> Judge("Is every claim supported by the tool results?", model="openai/gpt-4.1-mini",
    ...       sees=("question", "tool_calls", "output"), scale=(1, 5), threshold=0.75)  # doctest: +SKIP
    >>> Judge("task_completion", model="openai/gpt-4.1-mini")  # doctest: +SKIP
    """

    rubric: str
    model: str
    name: str
    scale: Scale
    sees: tuple[str, ...]
    reference: Any
    threshold: float | None
    samples: int
    examples: tuple[Mapping[str, Any], ...]
    method: str
    fallback_samples: int | None
    max_reason: int
    max_chars: int
    max_tokens_shown: int | None
    images: bool
    reasks: int
    params: Mapping[str, Any] = field(repr=False)  # it may hold a key

    def __init__(
        self,
        rubric: str | Rubric = CORRECTNESS,
        *,
        model: str | None = None,
        name: str | None = None,
        scale: Any = None,
        sees: Iterable[str] | None = None,
        reference: Any = "auto",
        threshold: float | None = None,
        samples: int = 1,
        examples: Sequence[Mapping[str, Any]] = (),
        method: str = "verdict",
        fallback_samples: int | None = None,
        max_reason: int = 400,
        max_chars: int = 100_000,
        max_tokens_shown: int | None = None,
        images: bool = False,
        reasks: int = 2,
        params: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        ready = rubric_of(rubric)
        if not isinstance(name, str | None):
            raise InputError(f"Judge: name={name!r:.80} should be a text")
        values = {
            "rubric": ready.text,
            "model": model_of(model, "Judge"),
            "name": name or ready.name,
            "scale": Scale.of(ready.scale if scale is None else scale),
            "sees": names_of(ready.sees if sees is None else sees, "Judge"),
            "reference": ready.reference if is_one_of(reference, ("auto",)) else reference,
            "threshold": ready.threshold if threshold is None else threshold,
            "samples": samples,
            "examples": examples,
            "method": method,
            "fallback_samples": fallback_samples,
            "max_reason": max_reason,
            "max_chars": max_chars,
            "max_tokens_shown": max_tokens_shown,
            "images": images,
            "reasks": reasks,
            "params": params_of(Judge, params, more),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)
        self._check_values()
        object.__setattr__(self, "examples", tuple(map(self._example, examples)))

    def _check_values(self) -> None:
        check_numbers(self, samples=1, max_reason=20, max_chars=100, max_tokens_shown=50, reasks=0)
        if not isinstance(self.reference, bool) and not is_one_of(self.reference, ("auto", "self")):
            raise InputError(f"Judge: reference={self.reference!r:.80} should be 'auto', True, False or 'self'")
        if self.reference == "self" and self._placeholders and "reference" not in self._placeholders:
            raise InputError("Judge: reference='self' is shown by a template as {reference}, which this one lacks")
        if not self.sees and not self._placeholders:
            raise InputError("Judge: sees=() shows the judge nothing; expected names of columns")
        if not isinstance(self.images, bool):
            raise InputError(f"Judge: images={self.images!r} should be True or False")
        if isinstance(self.examples, (str, Mapping)) or not isinstance(self.examples, Iterable):
            raise InputError(f"Judge: examples={self.examples!r:.80} should be a list of dicts, each a judged row")
        if not is_one_of(self.method, METHODS):
            raise InputError(f"Judge: method={self.method!r:.80}. {did_you_mean(self.method, METHODS)}")
        if self.method == "logprobs":
            weighing.check(self)
        elif self.fallback_samples is not None:
            raise InputError("Judge: fallback_samples= stands in for method='logprobs', which this judge does not use")

    def _example(self, given: Any) -> Mapping[str, Any]:
        """An example as plain JSON, which has all that the judge sees and a verdict on its scale."""
        if not isinstance(given, Mapping) or "verdict" not in given:
            raise InputError(f"Judge: examples has {given!r:.100}; expected a dict of columns with a 'verdict'")
        try:
            verdict = self.scale.read(given["verdict"])
        except ValueError as error:
            raise InputError(f"Judge: the verdict of an example: {error}") from None
        reason = given.get("reason") or ""
        if not isinstance(reason, str):
            raise InputError(f"Judge: the reason of an example is {reason!r:.80}; expected a text")
        check_seen(self.name, self._placeholders or self.sees, given, "examples: it sees" if self.sees else "template")
        shown = {*seen(self._placeholders or self.sees, given), "reference", "messages"} & given.keys()
        example = {**{name: plain(given[name]) for name in sorted(shown)}, "verdict": verdict, "reason": reason}
        try:
            canonical(example)
        except CacheError as error:
            raise InputError(f"Judge: an example is not JSON: {error}") from None
        return example

    def __hash__(self) -> int:
        return hash((self.fingerprint, self.name, self.threshold, self.samples))

    @cached_property
    def _placeholders(self) -> tuple[str, ...]:
        return prompts.placeholders(self.rubric)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns without which it cannot judge; ``messages`` stands for the transcript."""
        named = [name for name in self._placeholders or self.sees if not name.endswith("?")]
        if self.reference == "self":
            named = [name for name in named if name != "reference"] + ["question"]
        elif self.reference is True and not self._placeholders:
            named.append("reference")
        return tuple(dict.fromkeys("messages" if name == "transcript" else name for name in named))

    @property
    def lengths(self) -> tuple[int, ...]:
        """Characters of the reasons in its longest answer, or of the answer that it gives beforehand."""
        return (max(self.max_reason, prompts.ANSWER_LENGTH if self.reference == "self" else 0),)

    @cached_property
    def _shape(self) -> dict[str, Any]:
        shape = {
            "parser": PARSER_VERSION,
            "system": self._system,
            "user": prompts.USER,
            "rubric": self.rubric,
            "sees": list(self.sees),
            "reference": self.reference,
            "scale": self.scale.to_dict(),
            "schema": self._response_model.model_json_schema(),
            **self._asked,
            "max_chars": self.max_chars,
        }
        # Only what is asked for: a judge without it has the fingerprint that it always had.
        more = {
            "answer": [prompts.ANSWER, prompts.ANSWER_LENGTH] if self.reference == "self" else None,
            "examples": [dict(example) for example in self.examples],
            "method": [self.method, self.fallback_samples] if self.method != "verdict" else None,
            "tokens": [self._ruler.name, self.max_tokens_shown] if self.max_tokens_shown else None,
            "images": self.images,
        }
        return {**shape, **{key: value for key, value in more.items() if value}}

    @property
    def _ruler(self) -> Any:
        return tokens(self.model)

    @cached_property
    def _answers(self) -> Scale:
        """The scale as the model is asked for it."""
        return weighing.lettered(self.scale) if self.method == "logprobs" else self.scale

    @cached_property
    def _response_model(self) -> Any:
        return self._answers.response_model(self.max_reason)

    @cached_property
    def _system(self) -> str:
        names = [] if self._placeholders else [*self.sees, *(["reference"] if self.reference else [])]
        said = {**prompts.MEANINGS, **({"reference": prompts.OWN_ANSWER} if self.reference == "self" else {})}
        return prompts.told(
            task=prompts.ELSEWHERE if self._placeholders else prompts.fill(self.rubric.strip(), {}),
            columns=prompts.meanings([name.removesuffix("?") for name in names], said, images=self.images),
            scale=self._answers.sentence,
            max_reason=self.max_reason,
        )

    def check(self, columns: Iterable[str]) -> None:
        """Say that a column is missing, before anything is asked.

        Raises
        ------
        InputError
            The template or `sees` names a column that is not among `columns`.
        """
        own = ["reference"] if self.reference == "self" else []
        where = "template" if self._placeholders else "sees"
        known = check_seen(self.name, self._placeholders or self.sees, [*columns, *own], where)
        if self.reference is True and not self._placeholders and "reference" not in known:
            raise InputError(f"judge {self.name!r}: reference=True, and there is no column 'reference'")
        if self.reference == "self" and "question" not in known:
            raise InputError(f"judge {self.name!r}: reference='self' answers the column 'question', which is not there")
        doubled = [name for name in prompts.literals(self.rubric) if name in known]
        if doubled and not self._placeholders:
            raise InputError(
                f"judge {self.name!r}: {{{{{doubled[0]}}}}} in the rubric is a literal text; "
                f"write {{{doubled[0]}}} to show the column"
            )

    # --- what is asked ----------------------------------------------------------------------------

    def _render(self, row: Mapping[str, Any], cache: Cache | None) -> tuple[Messages, tuple[str, ...]]:
        messages = [{"role": "system", "content": self._system}]
        for example in self.examples:
            messages.append({"role": "user", "content": self._user(example, cache, whole=True)[0]})
            messages.append({"role": "assistant", "content": self._said(example)})
        content, cut = self._user(row, cache)
        return [*messages, {"role": "user", "content": content}], cut

    def _user(self, row: Mapping[str, Any], cache: Cache | None, *, whole: bool = False) -> tuple[Any, tuple[str, ...]]:
        names = seen(self._placeholders or self.sees, row)
        wanted = self.reference and not self._placeholders and "reference" not in names
        if wanted and not prompts.is_missing(row.get("reference")):
            names = (*names, "reference")
        gallery = Gallery(cache) if self.images else None
        parts = {name: prompts.parts_of(name, row, gallery and gallery.mark) for name in names}
        limit = sum(len(part.text) for some in parts.values() for part in some) if whole else self.max_chars
        most = {} if whole or not self.max_tokens_shown else {"tokens": self.max_tokens_shown, "ruler": self._ruler}
        texts, cut = prompts.fit(parts, limit, **most)
        texts = {name: prompts.escape(text) for name, text in texts.items()}
        code = prompts.code_for(self._system + self.rubric, texts.values())
        shown = {name: prompts.fence(name, text, code) for name, text in texts.items()}
        data = prompts.fill(self.rubric.strip(), shown) if self._placeholders else "\n\n".join(shown.values())
        text = prompts.fill(prompts.USER, {"code": code, "data": data})
        return gallery.content(text) if gallery else text, cut

    def _said(self, example: Mapping[str, Any]) -> str:
        """The answer that an example shows."""
        verdict = example["verdict"]
        if self.method == "logprobs":
            verdict = self._answers.labels[self.scale.labels.index(verdict)]
        return json.dumps({"reason": prompts.escape(example["reason"]), "verdict": verdict}, ensure_ascii=False)

    def _why_not(self, row: Mapping[str, Any]) -> str | None:
        if self.reference is True and not self._placeholders and prompts.is_missing(row.get("reference")):
            return "the row has no reference, and reference=True asks for one"
        if self.reference == "self" and prompts.is_missing(row.get("question")):
            return "the row has no question, which reference='self' answers"
        return None

    def _first(self, row: Mapping[str, Any]) -> First | None:
        if self.reference != "self":
            return None
        return First("answer", prompts.to_be_answered(row["question"]), one_text(prompts.ANSWER_LENGTH))

    def _with(self, row: Mapping[str, Any], answer: Any) -> Mapping[str, Any]:
        if self.reference != "self":
            return row
        return {**row, "reference": prompts.NOT_YET if answer is None else answer}

    # --- what is answered -------------------------------------------------------------------------

    async def _judge(
        self, messages: Messages, row: Mapping[str, Any], sample: int, context: Context, metadata: dict[str, Any]
    ) -> Score:
        if self.reference == "self":
            metadata["own_answer"] = row["reference"]
        if self.method == "logprobs":
            return await weighing.weighed(self, messages, sample, context, metadata)
        return await super()._judge(messages, row, sample, context, metadata)

    def _verdict(self, value: Any, row: Mapping[str, Any]) -> tuple[Any, str, dict[str, Any]]:
        return value.verdict, value.reason, {}

    def _score(self, label: Any, reason: str, usage: Usage, metadata: Mapping[str, Any]) -> Score:
        # The threshold and the number are applied here, after the cache: changing them asks nobody.
        score = self.scale.score(label)
        if score is not None and "probabilities" in metadata:
            score = weighing.expected(self.scale, metadata["probabilities"])
        passed = label if self.scale.kind == "bool" else None
        if self.threshold is not None and score is not None:
            passed = score >= self.threshold
        return Score(score, reason, passed=passed, label=label, usage=usage, metadata=dict(metadata))
