"""A jury: what several evaluators say together, with what each of them said beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean, median
from typing import Any

from ..caching import Cache, content_key
from ..errors import InputError, check_threshold, did_you_mean, is_one_of
from ..types import Score
from .adapting import as_evaluator
from .base import columns_read
from .composed import (
    Answers,
    Forecast,
    answers_of,
    forecast,
    identity,
    kind_of,
    known_answers,
    paid_elsewhere,
    told,
    total_usage,
)
from .scales import Scale

REDUCTIONS = ("majority", "unanimous", "mean", "median")
_VALUES = ("label", "passed")


def panel(
    votes: Mapping[str, Score],
    reduce: str = "majority",
    *,
    quorum: int | None = None,
    value: str = "label",
    threshold: float | None = None,
) -> Score:
    """What several verdicts on one thing come to. Nobody is asked: the votes may be recorded ones.

    Parameters
    ----------
    votes : mapping of str to Score
        By the name of who gave them. A vote whose status is not ``ok`` is none.
    reduce : {"majority", "unanimous", "mean", "median"}
        "majority": the verdict of more than half of those who gave one. "unanimous": the verdict that
        all gave. "mean", "median": of the scores.
    quorum : int, optional
        Least number of votes. By default all for "unanimous", else more than half.
    value : {"label", "passed"}
        What is counted for "majority" and "unanimous".
    threshold : float, optional
        The score from which the panel passes. Where it is not given, a panel passes where those of
        whose opinion it is pass.

    Returns
    -------
    Score
        Where no verdict has a majority, or not all agree, ``skipped``: a tie is not guessed at. With
        fewer votes than the quorum the status of those that are missing: ``skipped``, ``unparsed``, else
        ``error``. `metadata` has ``votes`` (by name), ``counts`` ("3:1"), ``share`` of the commonest
        verdict, and ``missing`` (name to status).

    Raises
    ------
    InputError
        `reduce`, `value` or `quorum` is none of those.

    Examples
    --------
    >>> panel({"a": Score(1, label=True), "b": Score(1, label=True), "c": Score(0, label=False)}).label
    True
    """
    if not isinstance(votes, Mapping) or not votes or not all(isinstance(vote, Score) for vote in votes.values()):
        raise InputError(f"panel: votes={votes!r:.80} should be a dict of scores by the names of who gave them")
    check_panel("panel", len(votes), reduce, quorum, value, threshold)
    by_score = reduce in ("mean", "median")
    given = {name: _vote(vote, "score" if by_score else value) for name, vote in votes.items()}
    voted = {name: vote for name, vote in given.items() if vote is not None}
    missing = {name: votes[name].status for name in given if name not in voted}
    metadata: dict[str, Any] = {"votes": voted}
    if missing:
        metadata["missing"] = {name: "skipped" if status == "ok" else status for name, status in missing.items()}
    least = quorum or (len(votes) if reduce == "unanimous" else len(votes) // 2 + 1)
    if len(voted) < least:
        return _without_quorum(votes, voted, least, metadata)
    if by_score:
        score = min(1.0, max(0.0, (fmean if reduce == "mean" else median)(voted.values())))
        said = f"{reduce} of {len(voted)} scores: {', '.join(f'{name} {vote:.3g}' for name, vote in voted.items())}"
        passed = None if threshold is None else score >= threshold
        return Score(score, said + _silent(votes, voted), label=score, passed=passed, metadata=metadata)
    return _counted(votes, voted, reduce, value, threshold, metadata)


def check_panel(who: str, size: int, reduce: Any, quorum: Any, value: Any, threshold: Any) -> None:
    """Refuse a way of putting votes together that is none."""
    if not is_one_of(reduce, REDUCTIONS):
        raise InputError(f"{who}: reduce={reduce!r:.80}. {did_you_mean(reduce, REDUCTIONS)}")
    if not is_one_of(value, _VALUES):
        raise InputError(f"{who}: value={value!r:.80}. {did_you_mean(value, _VALUES)}")
    is_count = isinstance(quorum, int) and not isinstance(quorum, bool)
    if quorum is not None and not (is_count and 1 <= quorum <= max(size, 1)):
        raise InputError(f"{who}: quorum={quorum!r} should be a number of votes, from 1 to {size}")
    check_threshold(threshold, who)


def _vote(score: Score, value: str) -> Any:
    """What a juror says; None where it says nothing that could be counted."""
    if score.status != "ok":
        return None
    if value == "score":
        return score.score
    if value == "passed" or score.label is None:
        return score.passed if score.passed is not None or value == "passed" else score.score
    return score.label


def _key(label: Any) -> str:
    """One text for one verdict: 4 and 4.0 are the same, 1 and True are not."""
    number = isinstance(label, (int, float)) and not isinstance(label, bool)
    return json.dumps(float(label) if number else label, sort_keys=True, default=str)


def _counted(
    votes: Mapping[str, Score],
    voted: Mapping[str, Any],
    reduce: str,
    value: str,
    threshold: float | None,
    metadata: dict[str, Any],
) -> Score:
    sides: dict[str, list[str]] = {}
    for name, vote in voted.items():
        sides.setdefault(_key(vote), []).append(name)
    ranked = sorted(sides.values(), key=len, reverse=True)
    winners, counts = ranked[0], ":".join(str(len(side)) for side in ranked)
    metadata |= {"counts": counts, "share": len(winners) / len(voted)}
    told = "; ".join(f"{voted[side[0]]!r}: {', '.join(side)}" for side in ranked) + _silent(votes, voted)
    if len(ranked) > 1 and (reduce == "unanimous" or 2 * len(winners) <= len(voted)):
        what = "they are not unanimous" if reduce == "unanimous" else "no verdict has a majority"
        return Score(None, f"{what}, {counts} ({told})", status="skipped", metadata=metadata)
    label = voted[winners[0]]
    score = float(label) if value == "passed" else fmean(votes[name].score for name in winners)
    passes = {votes[name].passed for name in winners}
    passed = score >= threshold if threshold is not None else passes.pop() if len(passes) == 1 else None
    how = "all" if len(ranked) == 1 else counts
    return Score(score, f"{how} ({told})", label=label, passed=passed, metadata=metadata)


def _silent(votes: Mapping[str, Score], voted: Mapping[str, Any]) -> str:
    lost = [f"{name} ({vote.status})" for name, vote in votes.items() if name not in voted]
    return f"; without a verdict: {', '.join(lost)}" if lost else ""


def _without_quorum(
    votes: Mapping[str, Score], voted: Mapping[str, Any], least: int, metadata: dict[str, Any]
) -> Score:
    statuses = set(metadata["missing"].values())
    status = statuses.pop() if len(statuses) == 1 else "error"
    lost = "; ".join(f"{name} ({vote.status}): {vote.reason:.200}" for name, vote in votes.items() if name not in voted)
    reason = f"{len(voted)} of {len(votes)} gave a verdict, and {least} are needed. {lost}"
    return Score(None, reason, status=status, error=None if status == "skipped" else reason, metadata=metadata)


def named_parts(given: Any, who: str) -> dict[str, Any]:
    """The evaluators that others are made of, by name.

    Judges that differ in nothing but their model have one name; they are then called by their models.

    Raises
    ------
    InputError
        There are fewer than two, or two have one name.
    """
    if isinstance(given, Mapping) and not {"func", "op"} & given.keys():
        found = {str(name): as_evaluator(one) for name, one in given.items()}
    elif isinstance(given, Iterable) and not isinstance(given, (str, Mapping)):
        parts = [as_evaluator(one) for one in given]
        found = {}
        for name, part in zip(_names_of(parts), parts):
            if name in found:
                raise InputError(
                    f"{who}: two of its evaluators are named {name!r}; give each its own, as {{'first': ..., 'second': "
                    "...}, or name= where it is made"
                )
            found[name] = part
    else:
        raise InputError(f"{who}: {given!r:.100} should be a list of evaluators")
    if len(found) < 2:
        raise InputError(f"{who}: it has {len(found)} evaluators; expected at least two")
    if "" in found:
        raise InputError(f"{who}: one of its evaluators has no name")
    pairings = {(getattr(part, "pairs_by", None), getattr(part, "between", None)) for part in found.values()}
    if len(pairings) > 1:
        raise InputError(f"{who}: its evaluators should all judge single answers, or all compare the same pairs")
    return found


def _names_of(parts: list[Any]) -> list[str]:
    names = [part.name for part in parts]
    models = [", ".join(getattr(part, "models", ())) for part in parts]
    return [model if names.count(name) > 1 and model else name for name, model in zip(names, models)]


def reads_of(parts: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The columns that any of several evaluators looks at; None where that may be all."""
    reads = [columns_read(part) for part in parts.values()]
    return None if None in reads else tuple(dict.fromkeys(name for own in reads for name in own))


def check_parts(parts: Mapping[str, Any], columns: Iterable[str]) -> None:
    """Say that a column which one of several evaluators reads is missing."""
    known = {str(column) for column in columns}
    for part in parts.values():
        if callable(getattr(part, "check", None)):
            part.check(known)
            continue
        for name in getattr(part, "columns", ()):
            if name not in known:
                raise InputError(
                    f"evaluator {part.name!r} reads the column {name!r}, which is not there. "
                    f"{did_you_mean(name, known)}"
                )


def check_samples(who: str, samples: Any) -> None:
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 1:
        raise InputError(f"{who}: samples={samples!r} should be a whole number, at least 1")


def check_name(who: str, name: Any) -> None:
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{who}: name={name!r:.80} should be a text")


def scale_of(evaluator: Any) -> Any:
    """The scale of an evaluator's labels: a rule's is true or false; None where it is not known."""
    return Scale.of(bool) if kind_of(evaluator) == "rule" else getattr(evaluator, "scale", None)


@dataclass(frozen=True)
class Jury:
    """An evaluator made of several: the panel's verdict, and that of each juror.

    Parameters
    ----------
    jurors : list of evaluators, or dict of them by name
        Judges, rules, functions, pairwise judges (all of one kind of pair). Judges of one name are
        called by their models.
    reduce : {"majority", "mean", "median", "unanimous"}
        See `panel`.
    name : str
        The ``evaluator`` of the panel's row; a juror's is ``name.juror``: "jury.openai/gpt-4.1".
    quorum : int, optional
        Verdicts without which there is none of the panel. By default all for "unanimous", else more
        than half.
    value : {"label", "passed"}
        What is counted for "majority" and "unanimous". With "passed" the scales may differ.
    threshold : float, optional
        The score from which the panel passes.
    samples : int
        Verdicts of the whole panel on each row.

    Raises
    ------
    InputError
        Fewer than two jurors, a juror that samples for itself, labels to be counted that are of
        different scales, or a threshold where the jurors compare.

    Notes
    -----
    The jurors' rows have the tokens and dollars; the panel's has 0, so that nothing is counted twice,
    and the sum in ``metadata["cost_usd"]``. A panel from rows that are there already, without a call:
    `mcpeval.reports.jury`.

    References
    ----------
    Verga and others (2024), Replacing Judges with Juries, arXiv 2404.18796.

    Examples
    --------
    >>> jury = Jury([Judge(model=model) for model in ("openai/gpt-4.1-mini", "openai/gpt-4.1")])  # doctest: +SKIP
    """

    jurors: Any
    reduce: str = "majority"
    name: str = "jury"
    quorum: int | None = None
    value: str = "label"
    threshold: float | None = None
    samples: int = 1

    kind = "jury"

    def __post_init__(self) -> None:
        jurors = named_parts(self.jurors, "Jury")
        object.__setattr__(self, "jurors", jurors)
        check_panel("Jury", len(jurors), self.reduce, self.quorum, self.value, self.threshold)
        check_name("Jury", self.name)
        check_samples("Jury", self.samples)
        for argument in ("threshold", "value") if self.pairs_by or self.between else ():
            if getattr(self, argument) not in (None, "label"):
                raise InputError(
                    f"Jury: {argument}={getattr(self, argument)!r} has no meaning for comparisons: what one of a pair "
                    "wins the other loses, and neither passes"
                )
        for name, juror in jurors.items():
            if getattr(juror, "samples", 1) != 1:
                raise InputError(f"Jury: juror {name!r} has samples={juror.samples}; give samples= to the Jury instead")
        scales = {name: scale_of(juror) for name, juror in jurors.items()}
        known = {name: (scale.labels, scale.scores) for name, scale in scales.items() if scale is not None}
        if self.reduce in ("majority", "unanimous") and self.value == "label" and len(set(known.values())) > 1:
            one, other = next((a, b) for a in known for b in known if known[a] != known[b])
            raise InputError(
                f"Jury: {one!r} and {other!r} have different scales ({scales[one].options}; {scales[other].options}), "
                f"and reduce={self.reduce!r} counts labels; say value='passed' or reduce='mean'"
            )

    def __hash__(self) -> int:
        return hash((self.fingerprint, self.name, self.samples))

    @property
    def parts(self) -> dict[str, Any]:
        """The jurors by name."""
        return self.jurors

    @property
    def scale(self) -> Any:
        """The scale of the panel's labels, where it is known."""
        if self.reduce in ("mean", "median"):
            return Scale.of((0.0, 1.0))
        if self.value == "passed":
            return Scale.of(bool)
        return next((found for juror in self.jurors.values() if (found := scale_of(juror)) is not None), None)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that it may call."""
        return tuple(dict.fromkeys(m for juror in self.jurors.values() for m in getattr(juror, "models", ())))

    @property
    def pairs_by(self) -> str | None:
        return getattr(next(iter(self.jurors.values())), "pairs_by", None)

    @property
    def between(self) -> tuple[str, str] | None:
        return getattr(next(iter(self.jurors.values())), "between", None)

    @property
    def reads(self) -> tuple[str, ...] | None:
        """The columns it looks at; None where that may be all."""
        return reads_of(self.jurors)

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of everything that shapes its answer."""
        jurors = {name: identity(juror) for name, juror in self.jurors.items()}
        return content_key("jury", **self._shape, jurors=jurors).removeprefix("jury:")

    @property
    def _shape(self) -> dict[str, Any]:
        return {key: getattr(self, key) for key in ("reduce", "quorum", "value", "threshold")}

    def to_dict(self) -> dict[str, Any]:
        """Everything that shapes its answer, as plain JSON."""
        return {"kind": self.kind, **self._shape, "jurors": {name: told(one) for name, one in self.jurors.items()}}

    def check(self, columns: Iterable[str]) -> None:
        """Say that a column is missing, before anything is asked."""
        check_parts(self.jurors, columns)

    def forecast(self, row: Mapping[str, Any], cache: Cache | None, *, sample: int = 0) -> Forecast:
        """What a verdict would take."""
        whole = Forecast()
        for juror in self.jurors.values():
            whole = whole.plus(forecast(juror, row, cache, sample))
        return whole

    def peek(self, row: Mapping[str, Any], cache: Cache | None, *, sample: int = 0) -> dict[str, Score] | None:
        """What `evaluate` answers where all of it is known, else None; imports no client of any model."""
        said = {}
        for name, juror in self.jurors.items():
            if (found := known_answers(juror, row, cache, sample)) is None:
                return None
            said[name] = found
        return self._rows(said)

    async def evaluate(self, row: Mapping[str, Any], context: Any = None, *, sample: int = 0) -> dict[str, Score]:
        """Ask every juror, one after the other.

        Returns
        -------
        dict of str to Score
            The panel's under "", then the jurors' by name.
        """
        return self._rows({name: await answers_of(one, row, context, sample) for name, one in self.jurors.items()})

    def _rows(self, said: Mapping[str, Answers]) -> dict[str, Score]:
        jurors = {
            name + full.removeprefix(self.jurors[name].name): answer
            for name, answers in said.items()
            for full, answer in answers
        }
        votes = {name: only_score(answers, self.jurors[name].name) for name, answers in said.items()}
        verdict = panel(votes, self.reduce, quorum=self.quorum, value=self.value, threshold=self.threshold)
        usage = total_usage([one for answers in said.values() for one in answers])
        metadata = {**shared_metadata(votes.values()), **verdict.metadata}
        if usage is not None:
            metadata["cost_usd"] = usage.cost_usd
        return {"": replace(verdict, usage=paid_elsewhere(usage), metadata=metadata), **jurors}


def only_score(answers: Answers, name: str) -> Score:
    """The one score of an evaluator's own name among its answers; what several names share is no verdict."""
    own = [answer for full, answer in answers if full == name]
    if len(own) == 1:
        return own[0]
    reason = f"evaluator {name!r} gives {len(answers)} scores ({', '.join(full for full, _ in answers)}); one is needed"
    return Score(None, reason, status="error", error=reason)


def shared_metadata(votes: Iterable[Score]) -> dict[str, Any]:
    """What says which pair was compared, where the votes are of pairwise judges."""
    known = [vote.metadata for vote in votes if "between" in vote.metadata]
    return {key: known[0][key] for key in ("between", "pair") if known and key in known[0]}
