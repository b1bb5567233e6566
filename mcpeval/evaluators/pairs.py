"""A pairwise judge: which of two answers is better, asked in both orders, because judges favour a place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..caching import Cache, content_key
from ..errors import InputError, did_you_mean, is_one_of
from ..types import Score
from . import prompts
from .composed import OPPONENT, Forecast, forecast, total_usage
from .judges import Judge
from .shown import Side, is_there

#: Which is better? For answers to the same question.
PREFERENCE = (
    "Which output answers the question better: more correct, more complete, and closer to what was asked for? Where a "
    "reference is shown, the output that agrees with it better is the better one."
)

_COMPARED = (
    "Two agents, A and B, were given the same task. What stands in tags whose name ends in _A is A's, what stands in "
    "tags whose name ends in _B is B's. Which of the two is shown first says nothing, and neither does its length.\n\n"
)
_LABELS = {"A": ("A is better", 1.0), "B": ("B is better", 0.0), "tie": ("neither is better than the other", 0.5)}
#: The verdict that neither is better: no agent can have this name.
TIE = "tie"
ORDERS = ("both", "ab", "ba", "random")
RECONCILIATIONS = ("tie", "mean", "drop")


def worth(verdict: Any, order: str) -> float | None:
    """What a verdict is worth to the first of a pair, in [0, 1]; None where there is none.

    Parameters
    ----------
    verdict : {"A", "B", "tie"} or None
        A is the one that was shown first.
    order : {"ab", "ba"}
        In "ab" the first of the pair was shown first, in "ba" the second.
    """
    if verdict not in _LABELS:
        return None
    score = _LABELS[verdict][1]
    return score if order == "ab" else 1.0 - score


def reconciled(verdicts: Mapping[str, Any], reconcile: str = "tie") -> tuple[float | None, bool | None]:
    """The score of the first of a pair, and whether the two orders agree.

    Parameters
    ----------
    verdicts : mapping
        Of each order that was asked ("ab", "ba") the verdict, see `worth`.
    reconcile : {"tie", "mean", "drop"}
        What two orders that disagree come to: a tie, the mean of both, or no score.

    Returns
    -------
    score : float or None
        None where a verdict is missing, or dropped.
    consistent : bool or None
        None where not both orders gave a verdict.

    References
    ----------
    A win only where both orders say so, else a tie: Zheng and others (2023), Judging LLM-as-a-Judge with
    MT-Bench and Chatbot Arena, arXiv 2306.05685, section 3.4.
    """
    worths = [worth(verdict, order) for order, verdict in verdicts.items()]
    if not worths or None in worths:
        return None, None
    if len(worths) == 1:
        return worths[0], None
    if worths[0] == worths[1]:
        return worths[0], True
    return {"tie": 0.5, "mean": sum(worths) / 2, "drop": None}[reconcile], False


@dataclass(frozen=True, init=False)
class Pairwise:
    """An evaluator that asks a model which of two answers is better.

    It compares two columns of a row (`between`), or the runs of two agents: `score` then pairs the
    runs of each task and trial itself, every two agents with each other.

    Parameters
    ----------
    rubric : str
        What makes one better. A text that holds columns in braces is a template; what both have
        their own of is written with ``_A`` and ``_B``: ``"{question} ... {output_A} ... {output_B}"``.
    model : str, optional
        As for `Judge`.
    name : str, optional
        The ``evaluator`` of its rows: "preference" for the ready rubric, else "pairwise".
    between : (str, str), optional
        Two columns, in place of two agents. They are shown as ``output_A`` and ``output_B``.
    by : str
        The column that tells the agents of a runs frame apart.
    sees : sequence of str
        Columns that both have in common.
    compares : str or sequence of str
        Columns of which each has its own: ``output``, ``transcript``, ``tool_calls``; with ``?`` at its end
        one is shown where it is there.
    order : {"both", "ab", "ba", "random"}
        "both" asks twice, once with either shown first. "ab" shows first the agent that appears
        first in the frame, "ba" the other; "random" one of the two, chosen by the content and `seed`.
    reconcile : {"tie", "mean", "drop"}
        What two orders that disagree come to (`reconciled`).
    ties : bool
        Whether the judge may say that neither is better.
    reference : {"auto", True, False}
        As for `Judge`.
    samples : int
        Comparisons of each pair, each with rows of its own.
    seed : int
        Of the "random" order.
    params : mapping, optional
        Any other argument of `Judge`, and parameters of the model. Any further keyword is one too.

    Raises
    ------
    InputError
        An argument has no meaning.

    Notes
    -----
    Two agents make two rows of a scores frame for each pair, one of either run: its ``score`` is 1
    where it won, 0 where it lost, 0.5 for a tie, so that `summarize` gives win rates; what was paid
    stands in the first. Two columns make one row, whose score is that of the first column. ``label`` is
    the agent (or column) that won, or "tie". The metadata have ``between`` (the two names), ``pair``
    (their ``run_id``), ``consistent`` (whether both orders agree) and ``orders``: for "ab" and "ba" the
    raw verdict ("A" is what was shown first) with its reason. `mcpeval.reports.preferences`,
    `each_order` and `rank` read these.

    A run without another to be compared with is a row of status ``skipped``.

    Examples
    --------
    >>> frame = [{"question": "2 + 2?", "gpt": "4", "claude": "It is 4."}]
    >>> score(frame, Pairwise(between=("gpt", "claude"), model="openai/gpt-4.1-mini"))  # doctest: +SKIP
    """

    rubric: str
    model: str
    name: str
    between: tuple[str, str] | None
    by: str
    sees: tuple[str, ...]
    compares: tuple[str, ...]
    order: str
    reconcile: str
    ties: bool
    reference: Any
    samples: int
    seed: int
    params: Mapping[str, Any] = field(repr=False)  # it may hold a key

    kind = "pairwise"

    def __init__(
        self,
        rubric: str = PREFERENCE,
        *,
        model: str | None = None,
        name: str | None = None,
        between: Iterable[str] | None = None,
        by: str = "agent",
        sees: Iterable[str] = ("question",),
        compares: Iterable[str] = ("output",),
        order: str = "both",
        reconcile: str = "tie",
        ties: bool = True,
        reference: Any = "auto",
        samples: int = 1,
        seed: int = 0,
        params: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        if not isinstance(rubric, str) or not rubric.strip():
            raise InputError(f"Pairwise: rubric={rubric!r:.100} should be a text that says what is better")
        if not isinstance(name, str | None):
            raise InputError(f"Pairwise: name={name!r:.80} should be a text")
        if not isinstance(params, Mapping | None):
            raise InputError(f"Pairwise: params={params!r:.80} should be a dict of further arguments")
        values = {
            "rubric": rubric,
            "name": name or ("preference" if rubric == PREFERENCE else "pairwise"),
            "between": between if between is None else _names(between, "between"),
            "by": by,
            "sees": _names(sees, "sees"),
            "compares": _names(compares, "compares"),
            "order": order,
            "reconcile": reconcile,
            "ties": ties,
            "reference": reference,
            "samples": samples,
            "seed": seed,
            "params": {**(params or {}), **more},
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)
        self._check_values()
        object.__setattr__(self, "judge", self._judge(model))
        object.__setattr__(self, "model", self.judge.model)

    def _check_values(self) -> None:
        for key, known in (("order", ORDERS), ("reconcile", RECONCILIATIONS)):
            if not is_one_of(getattr(self, key), known):
                hint = did_you_mean(getattr(self, key), known)
                raise InputError(f"Pairwise: {key}={getattr(self, key)!r:.80}. {hint}")
        if not isinstance(self.by, str):
            raise InputError(f"Pairwise: by={self.by!r:.80} should be the column that tells agents apart")
        if self.between is not None and len(set(self.between)) != 2:
            raise InputError(f"Pairwise: between={self.between!r:.100} should be two different columns")
        if TIE in (self.between or ()):
            raise InputError(f"Pairwise: between has {TIE!r}, which is what a verdict says where neither is better")
        if self.between is not None and self.compares != ("output",):
            raise InputError("Pairwise: compares= is for the runs of two agents; between= names the columns itself")
        if not self.compares:
            raise InputError("Pairwise: compares=() leaves nothing to compare; expected names of columns")
        if not isinstance(self.ties, bool) or isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise InputError(f"Pairwise: ties={self.ties!r} should be True or False, seed={self.seed!r} a whole number")
        given = {"scale", "threshold"} & self.params.keys()
        if given:
            raise InputError(f"Pairwise: {given.pop()}= has no meaning; its verdicts are A, B and (with ties=True) tie")

    def _judge(self, model: str | None) -> Judge:
        """The judge that is asked about one order."""
        named = prompts.placeholders(self.rubric)
        if named and not {name[-2:] for name in named} >= {"_A", "_B"}:
            raise InputError(
                f"Pairwise: the template names {', '.join(named)}; expected columns of both, as {{output_A}} and "
                "{output_B}"
            )
        return Judge(
            self.rubric if named else _COMPARED + self.rubric,
            model=model,
            name=self.name,
            scale={label: said for label, said in _LABELS.items() if self.ties or label != "tie"},
            sees=(*self.sees, *(_shown_as(column, side) for side in "AB" for column in self.compares)),
            reference=self.reference,
            samples=self.samples,
            **self.params,
        )

    def __hash__(self) -> int:
        return hash((self.fingerprint, self.name, self.samples))

    @property
    def parts(self) -> dict[str, Judge]:
        """What it is made of."""
        return {"judge": self.judge}

    @property
    def models(self) -> tuple[str, ...]:
        """The models that it may call."""
        return self.judge.models

    @property
    def pairs_by(self) -> str | None:
        """The column by which `score` pairs runs; None where each row holds both."""
        return self.by if self.between is None else None

    @cached_property
    def _columns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The columns that both have in common, and those of which each has its own."""
        named = prompts.placeholders(self.rubric)
        if not named:
            return self.sees, self.compares
        own = dict.fromkeys(name[:-2] for name in named if name.endswith(("_A", "_B")))
        return tuple(name for name in named if not name.endswith(("_A", "_B"))), tuple(own)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns without which it cannot judge."""
        shared, own = self._columns
        needed = [*shared, *(self.between or (*own, self.by, "task_id"))]
        needed += ["reference"] if self.reference is True and not prompts.placeholders(self.rubric) else []
        needed = [name for name in needed if not name.endswith("?")]
        return tuple(dict.fromkeys("messages" if name == "transcript" else name for name in needed))

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns it looks at."""
        optional = [name[:-1] for names in self._columns for name in names if name.endswith("?")]
        optional = ["messages" if name == "transcript" else name for name in optional]
        return tuple(dict.fromkeys((*self.columns, *optional, "reference", "run_id", "task_id", "trial")))

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of everything that shapes its answer, and of no secret."""
        return content_key("pairwise", judge=self.judge.fingerprint, **self._shape).removeprefix("pairwise:")

    @property
    def _shape(self) -> dict[str, Any]:
        return {
            "between": list(self.between or ()),
            "by": self.by,
            "compares": list(self._columns[1]),
            "order": self.order,
            "reconcile": self.reconcile,
            "seed": self.seed if self.order == "random" else 0,
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything that shapes its answer, as plain JSON."""
        return {"kind": self.kind, **self._shape, "judge": self.judge.to_dict()}

    def check(self, columns: Iterable[str]) -> None:
        """Say that a column is missing, before anything is asked.

        Raises
        ------
        InputError
            `between`, `by`, `sees`, `compares` or the template names a column that is not among `columns`.
        """
        known = {str(column) for column in columns}
        if self.pairs_by and OPPONENT in self.reads:
            raise InputError(f"pairwise judge {self.name!r} keeps the other run as {OPPONENT!r}; rename that column")
        for name in self.between or (self.by, "task_id"):
            if name not in known:
                hint = "" if self.between else "; or name two columns to compare, between=('output_a', 'output_b')"
                raise InputError(
                    f"pairwise judge {self.name!r} reads the column {name!r}, which is not there{hint}. "
                    f"{did_you_mean(name, known)}"
                )
        seen = known | ({"transcript"} if "messages" in known else set())
        own = {"output"} if self.between else seen
        self.judge.check([*known, *(f"{column}_{side}" for column in own for side in "AB")])

    def render(self, row: Mapping[str, Any], order: str = "ab") -> list[dict[str, str]]:
        """The messages that the model is sent for `row` in one `order`, exactly; no call is made.

        A row of two runs is that of the first, with that of the second under ``opponent``.
        """
        return self.judge.render(self._shown(row, order))

    def _shown(self, row: Mapping[str, Any], order: str) -> dict[str, Any]:
        if self.between:
            sides = [{"output": row.get(column)} for column in self.between]
        else:
            sides = [row, row[OPPONENT]]
        if order == "ba":
            sides.reverse()
        shown = {key: value for key, value in row.items() if key != OPPONENT}
        for side, own in zip("AB", sides):
            for column in self._columns[1]:
                name = column.removesuffix("?")
                if name == column or is_there(name, own):
                    shown[f"{name}_{side}"] = Side(name, own)
        return shown

    def _orders(self, row: Mapping[str, Any], sample: int) -> tuple[str, ...]:
        if self.order == "both":
            return ("ab", "ba")
        if self.order != "random":
            return (self.order,)
        drawn = content_key("order", shown=self.render(row), sample=sample, seed=self.seed)
        return ("ab",) if int(drawn[-1], 16) % 2 else ("ba",)

    def peek(self, row: Mapping[str, Any], cache: Cache | None, *, sample: int = 0) -> Score | None:
        """The comparison where all of it is in `cache`, else None; imports no client of any model."""
        found = {}
        for order in self._orders(row, sample):
            found[order] = self.judge.peek(self._shown(row, order), cache, sample=sample)
            if found[order] is None:
                return None
        return self._score(row, found)

    def forecast(self, row: Mapping[str, Any], cache: Cache | None, *, sample: int = 0) -> Forecast:
        """What the comparison would take."""
        whole = Forecast()
        for order in self._orders(row, sample):
            whole = whole.plus(forecast(self.judge, self._shown(row, order), cache, sample))
        return whole

    async def evaluate(self, row: Mapping[str, Any], context: Any = None, *, sample: int = 0) -> Score:
        """Compare.

        Parameters
        ----------
        row : mapping
            With both columns of `between`; or a run's, with the other's under ``opponent``.
        context : mcpeval.evaluators.base.Context, optional
            Gives the cache.
        sample : int
            Which of the `samples` comparisons.

        Returns
        -------
        Score
            That of the first of the pair. ``skipped`` where the orders disagree and are dropped; where
            one order came to no verdict, of that one's status.

        Raises
        ------
        CacheMiss
            The cache only replays, and does not have a verdict.
        """
        verdicts = {
            order: await self.judge.evaluate(self._shown(row, order), context, sample=sample)
            for order in self._orders(row, sample)
        }
        return self._score(row, verdicts)

    def _names(self, row: Mapping[str, Any]) -> tuple[str, str]:
        return self.between or (str(row.get(self.by)), str(row[OPPONENT].get(self.by)))

    def _score(self, row: Mapping[str, Any], verdicts: Mapping[str, Score]) -> Score:
        names = self._names(row)
        score, consistent = reconciled({order: said.label for order, said in verdicts.items()}, self.reconcile)
        metadata = {**_metadata(verdicts), "between": list(names), "consistent": consistent}
        if self.between is None:
            metadata["pair"] = [row.get("run_id"), row[OPPONENT].get("run_id")]
        about = {"usage": total_usage(list(verdicts.items())), "metadata": metadata}
        lost = [(order, said) for order, said in verdicts.items() if said.label is None]
        if lost:
            order, said = lost[0]
            return Score(None, f"order {order}: {said.reason}", status=said.status, error=said.error, **about)
        says = {order: _winner(worth(said.label, order), names) for order, said in verdicts.items()}
        if score is None:
            why = " and ".join(f"{order} says {winner}" for order, winner in says.items())
            return Score(None, f"the two orders disagree: {why}", status="skipped", **about)
        reason = "\n".join(f"{order} says {says[order]}: {said.reason}" for order, said in verdicts.items())
        return Score(score, reason, label=_winner(score, names), **about)


def _winner(score: float | None, names: tuple[str, str]) -> str:
    if score == 0.5:
        return TIE
    return names[0] if score is not None and score > 0.5 else names[1]


def _metadata(verdicts: Mapping[str, Score]) -> dict[str, Any]:
    """What is known of each order's verdict; what concerns the row as a whole stands beside them."""
    said = {order: dict(verdict.metadata) for order, verdict in verdicts.items()}
    models = [own.pop("judge_model") for own in said.values() if "judge_model" in own]
    found: dict[str, Any] = {"judge_model": models[0]} if models else {}
    if any(own.get("truncated") for own in said.values()):
        found["truncated"] = True
    found["orders"] = {
        order: {"label": verdict.label, "reason": verdict.reason, "status": verdict.status, **said[order]}
        for order, verdict in verdicts.items()
    }
    return found


def _shown_as(column: str, side: str) -> str:
    """The name under which a judge sees a column of one side; one ending in ``?`` where it is there."""
    name = column.removesuffix("?")
    return f"{name}_{side}{'' if name == column else '?'}"


def _names(given: Any, argument: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise InputError(f"Pairwise: {argument}={given!r:.80} should be names of columns")
    return names
