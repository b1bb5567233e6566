"""A cascade: cheap evaluators first, and dear ones where the cheap ones are not sure."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ..caching import Cache, content_key
from ..errors import InputError, did_you_mean
from ..frames import RUN_KEYS
from ..types import Score
from .composed import (
    OPPONENT,
    Answers,
    Forecast,
    answers_of,
    forecast,
    identity,
    kind_of,
    known_answers,
    told,
    total_usage,
)
from .panels import check_name, check_parts, check_samples, named_parts, only_score, panel, reads_of, shared_metadata

_WORDS = ("ok", "passed", "failed")

#: A question to one stage: its name, and the number of the sample; what it is sent is the answer.
_Steps = Generator[tuple[str, int], Answers, Score]


@dataclass(frozen=True)
class Cascade:
    """An evaluator that asks others in turn, until one of them is sure.

    Parameters
    ----------
    stages : list of evaluators, or dict of them by name
        From the cheapest to the dearest; judges of one name are called by their models.
    accept : dict, optional
        When a stage is sure, by its name:

        - "ok": whenever it gives a score;
        - "passed", "failed": only where it passes, or fails (a rule that finds the exact answer is
          right, and one that does not find it says little);
        - ``(low, high)``: where its score is at most `low` or at least `high`;
        - a function of its `Score`.

        Where it is not given: a rule, a function and a jury are sure when they give a score; a judge
        with ``samples=k``, at a temperature above 0, when all k are the same; a pairwise judge when both
        orders agree. Of a judge that is asked once, or in one order, it has to be said. The last stage
        need not be sure.
    audit : float
        Share of the rows in which every stage is asked, so that it can be seen how far the early ones
        agree with the last (`mcpeval.reports.audit`). Whose verdict counts is the same as without.
    name : str
        The ``evaluator`` of its rows.
    seed : int
        Of the audit. A row is in it or not by its own content.
    samples : int
        Verdicts on each row.

    Raises
    ------
    InputError
        Fewer than two stages, a stage of which it is not said when it is sure, or which could only be
        sure, or an argument without meaning.

    Notes
    -----
    One row for each run: score, label, passed and judge_model are those of the stage that decided,
    tokens and dollars are the sum of all that were asked. The metadata say ``decided_by``, ``audited``,
    the names of all stages (``order``), and of each that was asked what it said and whether it was sure
    (``stages``). A stage that gives no score is never sure. Where none was, and the last gives no score,
    neither does the cascade.

    A stage with samples is asked for the next sample only while all are the same. Samples of the
    last stage are put together: the majority's verdict, or the mean of a graded scale.

    References
    ----------
    Chen, Zaharia & Zou (2023), FrugalGPT, arXiv 2305.05176: cascades. Jung, Brahman & Choi (2024),
    Trust or Escalate, arXiv 2407.18370: of judges, by their confidence.

    Examples
    --------
    >>> from mcpeval.evaluators import rule
    >>> exact = rule("", "=", "42", name="exact")
    >>> Cascade([exact, Judge(model="openai/gpt-4.1")], accept={"exact": "passed"}, audit=0.1)  # doctest: +SKIP
    """

    stages: Any
    accept: Mapping[str, Any] = field(default_factory=dict)
    audit: float = 0.0
    name: str = "cascade"
    seed: int = 0
    samples: int = 1

    kind = "cascade"

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", named_parts(self.stages, "Cascade"))
        if not isinstance(self.accept, Mapping):
            raise InputError(f"Cascade: accept={self.accept!r:.80} should be a dict by the names of stages")
        is_number = isinstance(self.audit, (int, float)) and not isinstance(self.audit, bool)
        if not is_number or not 0 <= self.audit <= 1:
            raise InputError(f"Cascade: audit={self.audit!r} should be a share of the rows, from 0 to 1")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise InputError(f"Cascade: seed={self.seed!r} should be a whole number")
        check_name("Cascade", self.name)
        check_samples("Cascade", self.samples)
        *early, last = self.stages
        for name, said in self.accept.items():
            if name not in early:
                hint = "it is the last, and need not be sure" if name == last else did_you_mean(name, early)
                raise InputError(f"Cascade: accept names the stage {name!r}. {hint}")
            _check_accept(name, said)
        for name in early:
            if name not in self.accept:
                _check_says_when_sure(name, self.stages[name])

    def __hash__(self) -> int:
        return hash((self.fingerprint, self.name, self.samples))

    @property
    def parts(self) -> dict[str, Any]:
        """The stages by name."""
        return self.stages

    @property
    def models(self) -> tuple[str, ...]:
        """The models that it may call."""
        return tuple(dict.fromkeys(m for stage in self.stages.values() for m in getattr(stage, "models", ())))

    @property
    def pairs_by(self) -> str | None:
        return getattr(self._last, "pairs_by", None)

    @property
    def between(self) -> tuple[str, str] | None:
        return getattr(self._last, "between", None)

    @property
    def _last(self) -> Any:
        return list(self.stages.values())[-1]

    @property
    def reads(self) -> tuple[str, ...] | None:
        """The columns it looks at; None where that may be all."""
        reads = reads_of(self.stages)
        return None if reads is None else tuple(dict.fromkeys((*reads, *RUN_KEYS)))

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of everything that shapes its answer."""
        stages = [[name, identity(stage)] for name, stage in self.stages.items()]
        return content_key("cascade", **self._shape, stages=stages).removeprefix("cascade:")

    @property
    def _shape(self) -> dict[str, Any]:
        accept = {name: _told(said) for name, said in self.accept.items()}
        return {"accept": accept, "audit": self.audit, "seed": self.seed}

    def to_dict(self) -> dict[str, Any]:
        """Everything that shapes its answer, as plain JSON."""
        return {"kind": self.kind, **self._shape, "stages": {name: told(one) for name, one in self.stages.items()}}

    def check(self, columns: Iterable[str]) -> None:
        """Say that a column is missing, before anything is asked."""
        check_parts(self.stages, columns)

    def is_audited(self, row: Mapping[str, Any]) -> bool:
        """Whether every stage is asked about `row`: by its keys and its output, not by its place."""
        if not self.audit:
            return False
        # A run's id may be new whenever it is run again; it is looked at where nothing else tells runs apart.
        keys = [key for key in (*RUN_KEYS, "output") if key != "run_id" or row.get("task_id") is None]
        both = [[str(one.get(key)) for key in keys] for one in (row, row.get(OPPONENT) or {})]
        drawn = content_key("audit", row=both, seed=self.seed).removeprefix("audit:")
        return int(drawn[:13], 16) < self.audit * 16**13

    def peek(self, row: Mapping[str, Any], cache: Cache | None, *, sample: int = 0) -> Score | None:
        """What `evaluate` answers where all of it is known, else None; imports no client of any model."""
        steps = self._steps(row, sample)
        name, number = next(steps)
        while (answers := known_answers(self.stages[name], row, cache, number)) is not None:
            try:
                name, number = steps.send(answers)
            except StopIteration as end:
                return end.value
        return None

    def forecast(self, row: Mapping[str, Any], cache: Cache | None, *, sample: int = 0) -> Forecast:
        """What a verdict would take at most: from the first stage on whose answer is not known, all are counted."""
        steps, whole = self._steps(row, sample), Forecast()
        name, number = next(steps)
        while (answers := known_answers(self.stages[name], row, cache, number)) is not None:
            whole = whole.plus(forecast(self.stages[name], row, cache, number))
            try:
                name, number = steps.send(answers)
            except StopIteration:
                return whole
        names = list(self.stages)
        for left in names[names.index(name) :]:
            draws = self._draws(left, sample)
            for draw in draws[draws.index(number) :] if left == name else draws:
                whole = whole.plus(forecast(self.stages[left], row, cache, draw))
        return whole

    async def evaluate(self, row: Mapping[str, Any], context: Any = None, *, sample: int = 0) -> Score:
        """Ask one stage after the other until one is sure.

        Returns
        -------
        Score
            Of the stage that decided; without a score, and with the last stage's status, where none did.
        """
        steps = self._steps(row, sample)
        name, number = next(steps)
        while True:
            try:
                name, number = steps.send(await answers_of(self.stages[name], row, context, number))
            except StopIteration as end:
                return end.value

    def _draws(self, name: str, sample: int) -> range:
        own = getattr(self.stages[name], "samples", 1)
        return range(sample * own, (sample + 1) * own)

    def _steps(self, row: Mapping[str, Any], sample: int) -> _Steps:
        """The questions, one at a time, whoever answers them; returns the score."""
        audited, decided, asked, everything = self.is_audited(row), "", {}, []
        *_, last = self.stages
        for name, stage in self.stages.items():
            draws: dict[str, Score] = {}
            answers: Answers = []
            for number in self._draws(name, sample):
                answers += (latest := (yield name, number))
                draws[f"sample {number}"] = only_score(latest, stage.name)
                if name != last and name not in self.accept and not _all_the_same(draws):
                    break  # it is not sure, whatever the other samples are
            opinion = self._opinion(name, draws)
            sure = opinion.status == "ok" and (name == last or self._is_sure(name, opinion))
            asked[name] = _stage(name, stage, opinion, sure, answers)
            everything += answers
            if sure and not decided:
                decided, verdict = name, opinion
            if decided and not audited:
                break
        if not decided:
            verdict = _undecided(asked, opinion)
        metadata = {"decided_by": decided or None, "audited": audited, "order": list(self.stages)}
        metadata["stages"] = list(asked.values())
        if "judge_model" in verdict.metadata:
            metadata["judge_model"] = verdict.metadata["judge_model"]
        return Score(
            verdict.score,
            f"{decided}: {verdict.reason}" if decided else verdict.reason,
            passed=verdict.passed,
            label=verdict.label,
            status=verdict.status,
            error=verdict.error,
            usage=total_usage(everything),
            metadata={**shared_metadata([verdict]), **metadata},
        )

    def _opinion(self, name: str, draws: Mapping[str, Score]) -> Score:
        """What a stage says in all of its samples."""
        first, *others = draws.values()
        if getattr(self.stages[name], "samples", 1) == 1:
            return first
        if name == list(self.stages)[-1]:
            scale = getattr(self.stages[name], "scale", None)
            graded = scale is not None and scale.level != "nominal"
            found = panel(draws, "mean" if graded else "majority")
        else:
            found = panel(draws, "mean" if name in self.accept else "unanimous")
        about = {key: first.metadata[key] for key in ("judge_model",) if key in first.metadata}
        pair = shared_metadata(draws.values())
        passed = first.passed if all(one.passed is first.passed for one in others) else found.passed
        return replace(found, passed=passed, metadata={**about, **pair, **found.metadata})

    def _is_sure(self, name: str, opinion: Score) -> bool:
        said = self.accept.get(name)
        if said is None and kind_of(self.stages[name]) == "pairwise":
            return opinion.metadata.get("consistent") is not False
        if said is None or said == "ok":
            return True
        if isinstance(said, str):
            return opinion.passed is (said == "passed")
        if callable(said):
            return bool(said(opinion))
        return opinion.score <= said[0] or opinion.score >= said[1]


def _check_says_when_sure(name: str, stage: Any) -> None:
    """Refuse a stage that would be sure of everything, although nobody said so."""
    one_order = kind_of(stage) == "pairwise" and stage.order != "both"
    if one_order or kind_of(stage) == "judge" and getattr(stage, "samples", 1) == 1:
        cure = "order='both' (sure where both agree)" if one_order else "samples=3 (sure where all are the same)"
        raise InputError(
            f"Cascade: nothing says when the judge {name!r} is sure. Give it {cure}, or say accept={{{name!r}: "
            f"(0.2, 0.8)}}, or {{{name!r}: 'ok'}} for whenever it answers"
        )
    if kind_of(stage) == "judge" and getattr(stage, "params", {}).get("temperature") == 0:
        raise InputError(
            f"Cascade: at temperature=0 the samples of {name!r} are all the same, and it would always be sure; give it "
            f"temperature=1, or say accept={{{name!r}: ...}}"
        )


def _check_accept(name: str, said: Any) -> None:
    if isinstance(said, str):
        if said not in _WORDS:
            raise InputError(f"Cascade: accept={{{name!r}: {said!r}}}. {did_you_mean(said, _WORDS)}")
        return
    if callable(said):
        return
    is_band = isinstance(said, (tuple, list)) and len(said) == 2
    if not is_band or not all(isinstance(end, (int, float)) for end in said) or said[0] > said[1]:
        raise InputError(
            f"Cascade: accept={{{name!r}: {said!r:.80}}} should be 'ok', 'passed', 'failed', (low, high), or a "
            "function of a Score"
        )


def _told(said: Any) -> Any:
    if isinstance(said, (tuple, list)):
        return list(said)
    return f"function {_name_of(said)}" if callable(said) else said


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__name__)


def _all_the_same(draws: Mapping[str, Score]) -> bool:
    first, *others = draws.values()
    return first.status == "ok" and all(one.status == "ok" and one.label == first.label for one in others)


def _stage(name: str, stage: Any, opinion: Score, sure: bool, answers: Answers) -> dict[str, Any]:
    """What a cascade's row keeps of a stage."""
    usage = total_usage(answers)
    kept = {"stage": name, "kind": kind_of(stage), "label": opinion.label, "passed": opinion.passed, "sure": sure}
    kept |= {"score": opinion.score if opinion.status == "ok" else None, "status": opinion.status}
    kept |= {"reason": opinion.reason, "judge_model": opinion.metadata.get("judge_model")}
    return kept | {"cost_usd": 0.0 if usage is None else usage.cost_usd}


def _undecided(asked: Mapping[str, Mapping[str, Any]], last: Score) -> Score:
    says = [f"{name} ({'not sure' if one['status'] == 'ok' else one['status']})" for name, one in asked.items()]
    return Score(None, f"no stage decided: {'; '.join(says)}. {last.reason}", status=last.status, error=last.error)
