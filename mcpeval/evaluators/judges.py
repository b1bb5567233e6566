"""A judge: a model that reads what an agent did and gives a verdict on a scale.

What it is told, what it may answer, and how the answer becomes a number all follow from one frozen
value, whose `Judge.fingerprint` names it in every row and every cache key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from .._calls import FAMILIAR, check_patience, is_secret, model_identity
from ..caching import Cache, canonical, content_key
from ..errors import CacheError, InputError, ModelError, did_you_mean
from ..types import Score, Usage
from . import prompts
from .scales import Scale

#: Is it right? For questions that have an answer, with and without a reference.
CORRECTNESS = (
    "Is the output a right and complete answer to the question? Judge whether it is right, not its length or "
    "its style. Where a reference is shown, the output must agree with it in substance; it may use other words. "
    "An output that is missing, refuses, or leaves out what was asked for is not right."
)

#: Raised when the prompts or the reading of answers change, so that old verdicts are not taken for new ones.
PARSER_VERSION = 1

# What a judge says itself, and a provider parameter of the same name would contradict.
_OWN_PARAMS = (
    "messages",
    "tools",
    "tool_choice",
    "response_format",
    "response_model",
    "stream",
    "n",
    "cache",
    "sample",
)


@dataclass(frozen=True, init=False)
class Judge:
    """An evaluator that asks a model, and reads nothing but a verdict on its scale.

    Parameters
    ----------
    rubric : str
        What to judge. A text that holds columns in braces (``"{question} ... {output}"``) is a
        template and shows only these; the columns in `sees` are shown after any other text.
        ``{{x}}`` writes a literal ``{x}``.
    model : str, optional
        Any LiteLLM model, or ``local/...``; `default_model` where it is not given.
    name : str, optional
        The ``evaluator`` of its rows: "correctness" for the ready rubric, else "judge".
    scale : Scale, bool, tuple, list or mapping
        See `Scale.of`: ``bool``, ``(1, 5)``, ``["bad", "good"]``, ``{"A": "...", "B": "..."}``.
    sees : sequence of str
        Columns shown; ``transcript`` is made from the column ``messages``.
    reference : {"auto", True, False}
        Whether the column ``reference`` is shown too: where a row has one, always (a row without
        one is ``skipped``), or never. A template shows what it names.
    threshold : float, optional
        The score from which a verdict passes. Where it is not given, a bool verdict passes when it
        is true, and of other verdicts it is not said whether they pass.
    samples : int
        Verdicts for each row, each a row of its own.
    max_reason : int
        Characters asked for as a reason, which the model writes before its verdict.
    max_chars : int
        Characters shown of a row (about four to a token). What is longer is cut in the middle,
        tool results first; the row's metadata then says ``truncated``.
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

    Examples
    --------
    >>> Judge("Is every claim supported by the tool results?", model="openai/gpt-4.1-mini",
    ...       sees=("question", "tool_calls", "output"), scale=(1, 5), threshold=0.75)  # doctest: +SKIP
    """

    rubric: str
    model: str
    name: str
    scale: Scale
    sees: tuple[str, ...]
    reference: Any
    threshold: float | None
    samples: int
    max_reason: int
    max_chars: int
    reasks: int
    params: Mapping[str, Any] = field(repr=False)  # it may hold a key

    kind = "judge"

    def __init__(
        self,
        rubric: str = CORRECTNESS,
        *,
        model: str | None = None,
        name: str | None = None,
        scale: Any = bool,
        sees: Iterable[str] = ("question", "output"),
        reference: Any = "auto",
        threshold: float | None = None,
        samples: int = 1,
        max_reason: int = 400,
        max_chars: int = 100_000,
        reasks: int = 2,
        params: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        if not isinstance(rubric, str) or not rubric.strip():
            raise InputError(f"Judge: rubric={rubric!r:.100} should be a text that says what to judge")
        if not isinstance(name, str | None):
            raise InputError(f"Judge: name={name!r:.80} should be a text")
        if not isinstance(sees, Iterable):
            raise InputError(f"Judge: sees={sees!r:.80} should be names of columns")
        sees = (sees,) if isinstance(sees, str) else tuple(sees)
        values = {
            "rubric": rubric,
            "model": _model(model),
            "name": name or ("correctness" if rubric == CORRECTNESS else "judge"),
            "scale": Scale.of(scale),
            "sees": sees,
            "reference": reference,
            "threshold": threshold,
            "samples": samples,
            "max_reason": max_reason,
            "max_chars": max_chars,
            "reasks": reasks,
            "params": {"temperature": 0, **_params(params, more)},
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)
        self._check_values()

    def _check_values(self) -> None:
        least = {"samples": 1, "max_reason": 20, "max_chars": 100, "reasks": 0}
        for key, low in least.items():
            value = getattr(self, key)
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                raise InputError(f"Judge: {key}={value!r} should be a whole number, at least {low}")
        is_number = isinstance(self.threshold, (int, float)) and not isinstance(self.threshold, bool)
        if self.threshold is not None and not (is_number and 0.0 <= self.threshold <= 1.0):
            raise InputError(f"Judge: threshold={self.threshold!r} should be a score from 0 to 1, or None")
        if self.reference != "auto" and not isinstance(self.reference, bool):
            raise InputError(f"Judge: reference={self.reference!r} should be 'auto', True or False")
        if not self.sees and not self._placeholders:
            raise InputError("Judge: sees=() shows the judge nothing; expected names of columns")
        if not all(isinstance(name, str) for name in self.sees):
            raise InputError(f"Judge: sees={self.sees!r} should be names of columns")

    def __hash__(self) -> int:
        return hash((self.fingerprint, self.name, self.threshold, self.samples))

    @cached_property
    def _placeholders(self) -> tuple[str, ...]:
        return prompts.placeholders(self.rubric)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that it may call."""
        return (self.model,)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns without which it cannot judge; ``messages`` stands for the transcript."""
        named = self._placeholders or self.sees + (("reference",) if self.reference is True else ())
        return tuple(dict.fromkeys("messages" if name == "transcript" else name for name in named))

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of everything that shapes its answer, and of no secret."""
        return content_key("judge", **self._shape).removeprefix("judge:")

    def to_dict(self) -> dict[str, Any]:
        """Everything that shapes its answer, as plain JSON, and its model as it was named."""
        # The folder of an embedded model's file is this machine's affair.
        named = self.model.rpartition("/")[2] if self.model.startswith("local//") else self.model
        return {**self._shape, "model": named, "weights": self._shape["model"].get("weights")}

    @cached_property
    def _shape(self) -> dict[str, Any]:
        # How long an answer is waited for does not shape it.
        waits = ("timeout", "deadline", "retries", "max_wait", "api_base", "base_url")
        return {
            "parser": PARSER_VERSION,
            "system": self._system,
            "user": prompts.USER,
            "rubric": self.rubric,
            "sees": list(self.sees),
            "reference": self.reference,
            "scale": self.scale.to_dict(),
            "schema": self._response_model.model_json_schema(),
            "model": model_identity(self.model, self.params),
            "params": {k: v for k, v in self.params.items() if k not in waits and not is_secret(k)},
            "max_chars": self.max_chars,
            "reasks": self.reasks,
        }

    @cached_property
    def _response_model(self) -> Any:
        return self.scale.response_model(self.max_reason)

    @cached_property
    def _system(self) -> str:
        names = [] if self._placeholders else [*self.sees, *(["reference"] if self.reference else [])]
        meanings = [f"{name} is {prompts.MEANINGS[name]}" for name in dict.fromkeys(names) if name in prompts.MEANINGS]
        return prompts.fill(
            prompts.SYSTEM,
            {
                "task": prompts.ELSEWHERE if self._placeholders else prompts.fill(self.rubric.strip(), {}),
                "columns": f" ({'; '.join(meanings)}.)" if meanings else "",
                "none": prompts.NONE,
                "scale": self.scale.sentence,
                "max_reason": str(self.max_reason),
            },
        )

    def check(self, columns: Iterable[str]) -> None:
        """Say that a column is missing, before anything is asked.

        Raises
        ------
        InputError
            The template or `sees` names a column that is not among `columns`.
        """
        known = {str(column) for column in columns}
        known |= {"transcript"} if "messages" in known else set()
        where = "template" if self._placeholders else "sees"
        for name in self._placeholders or self.sees:
            if name not in known:
                raise InputError(
                    f"judge {self.name!r}: its {where} names the column {name!r}, which is not there. "
                    f"{did_you_mean(name, known)}"
                )
        if self.reference is True and not self._placeholders and "reference" not in known:
            raise InputError(f"judge {self.name!r}: reference=True, and there is no column 'reference'")
        doubled = [name for name in prompts.literals(self.rubric) if name in known]
        if doubled and not self._placeholders:
            raise InputError(
                f"judge {self.name!r}: {{{{{doubled[0]}}}}} in the rubric is a literal text; "
                f"write {{{doubled[0]}}} to show the column"
            )

    def render(self, row: Mapping[str, Any]) -> list[dict[str, str]]:
        """The messages that the model is sent for `row`, exactly; no call is made."""
        return self._render(row)[0]

    def _render(self, row: Mapping[str, Any]) -> tuple[list[dict[str, str]], tuple[str, ...]]:
        names = self._placeholders or self.sees
        wanted = self.reference and not self._placeholders and "reference" not in names
        if wanted and not prompts.is_missing(row.get("reference")):
            names = (*names, "reference")
        texts, cut = prompts.fit({name: prompts.parts_of(name, row) for name in names}, self.max_chars)
        texts = {name: prompts.escape(text) for name, text in texts.items()}
        code = prompts.code_for(self._system + self.rubric, texts.values())
        shown = {name: prompts.fence(name, text, code) for name, text in texts.items()}
        data = prompts.fill(self.rubric.strip(), shown) if self._placeholders else "\n\n".join(shown.values())
        user = prompts.fill(prompts.USER, {"code": code, "data": data})
        return [{"role": "system", "content": self._system}, {"role": "user", "content": user}], cut

    def _key(self, messages: list[dict[str, str]], sample: int) -> str:
        return content_key("verdict", fingerprint=self.fingerprint, messages=messages, sample=sample)

    def peek(self, row: Mapping[str, Any], cache: Cache | None, *, sample: int = 0) -> Score | None:
        """The verdict on `row` where it is in `cache`, else None; imports no client of any model."""
        if self._lacks_reference(row):
            return self._without_reference()
        return None if cache is None else self._kept(cache, self._key(self.render(row), sample))

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
            Column name to value; reads the columns in the template, or `sees` and ``reference``.
        context : mcpeval.evaluators.base.Context, optional
            Gives the cache.
        sample : int
            Which of the `samples` verdicts.

        Returns
        -------
        Score
            ``ok``; ``unparsed`` where every answer was off the scale; ``error`` where the provider
            failed. `metadata` has ``judge_model`` (as the provider returned it), ``attempts``,
            and where they apply ``truncated``, ``dropped_params``, ``text``.

        Raises
        ------
        CacheMiss
            The cache only replays, and does not have the verdict.
        """
        if self._lacks_reference(row):
            return self._without_reference()
        cache = getattr(context, "cache", None)
        messages, cut = self._render(row)
        key = self._key(messages, sample)
        if cache is not None and (kept := self._kept(cache, key)) is not None:
            return kept
        score = await self._ask(messages, sample, cache, {"truncated": True, "cut": list(cut)} if cut else {})
        if cache is not None and score.label is not None:
            named = {"label": score.label, "reason": score.reason, "usage": score.usage.to_dict()}
            cache.keep(key, {**named, "metadata": dict(score.metadata)})
        return score

    async def _ask(
        self, messages: list[dict[str, str]], sample: int, cache: Cache | None, metadata: dict[str, Any]
    ) -> Score:
        from .. import llm

        how = {**self.params, "reasks": self.reasks, "sample": sample, "cache": cache}
        try:
            answer = await llm.structured(self.model, messages, self._response_model, **how)
        except ModelError as error:
            metadata["error_class"] = error.error_class
            return Score(None, str(error), status="error", error=str(error), usage=error.usage, metadata=metadata)
        metadata |= {"judge_model": answer.model, "attempts": answer.attempts}
        if answer.dropped:
            metadata["dropped_params"] = list(answer.dropped)
        if answer.value is not None:
            return self._score(answer.value.verdict, answer.value.reason, answer.usage, metadata)
        why = " ".join(line.strip() for line in answer.error.splitlines() if "errors.pydantic.dev" not in line)
        reason = f"no verdict on the scale in {answer.attempts} answers; the last: {why}"
        metadata["text"] = answer.text
        return Score(None, reason, status="unparsed", error=reason, usage=answer.usage, metadata=metadata)

    def _score(self, label: Any, reason: str, usage: Usage, metadata: Mapping[str, Any]) -> Score:
        # The threshold and the number are applied here, after the cache: changing them asks nobody.
        score = self.scale.score(label)
        passed = label if self.scale.kind == "bool" else None
        if self.threshold is not None and score is not None:
            passed = score >= self.threshold
        return Score(score, reason, passed=passed, label=label, usage=usage, metadata=dict(metadata))

    def _lacks_reference(self, row: Mapping[str, Any]) -> bool:
        return self.reference is True and not self._placeholders and prompts.is_missing(row.get("reference"))

    def _without_reference(self) -> Score:
        return Score(None, "the row has no reference, and reference=True asks for one", status="skipped")


def _model(model: str | None) -> str:
    if model is None:
        from ..local import default_model

        return default_model()
    if not isinstance(model, str) or not model.strip():
        raise InputError(
            f"Judge: model={model!r} should be a text such as 'openai/gpt-4.1-mini' or 'local/smollm2-135m'"
        )
    return model


def _params(params: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(params, Mapping | None):
        raise InputError(f"Judge: params={params!r:.80} should be a dict of the model's parameters")
    own, known = [f.name for f in fields(Judge)], (*FAMILIAR, "mode")
    given = {**(params or {}), **more}
    for key in given:
        if key in _OWN_PARAMS:
            raise InputError(f"Judge: {key}= is set by the judge itself and cannot be given")
        if key not in known and (near := get_close_matches(key, [*own, *known], n=1, cutoff=0.8)):
            raise InputError(f"Judge: unknown argument {key}=. Did you mean {near[0]!r}?")
    check_patience(given, "Judge")
    if "mode" in given:
        from ..llm import MODES

        if given["mode"] not in MODES:
            raise InputError(f"Judge: mode={given['mode']!r}. {did_you_mean(given['mode'], MODES)}")
    try:
        canonical({key: value for key, value in given.items() if not is_secret(key)})
    except CacheError as error:
        raise InputError(f"Judge: a parameter is not JSON: {error}") from None
    return given
