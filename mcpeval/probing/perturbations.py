"""What is changed of a run, or of a judge, without a change in how good the answer is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

from ..attacks import Attack
from ..errors import InputError
from ..evaluators.checklists import Checklist
from ..evaluators.prompts import placeholders
from ..evaluators.scales import Scale

Row = Mapping[str, Any]

#: Kinds of perturbations, and what each of them shows.
KINDS: dict[str, str] = {
    "position": "whether the verdict hangs on the order in which things are shown",
    "verbosity": "whether a longer answer of the same content gets another verdict",
    "format": "whether markup does",
    "self": "whether an answer that bears the name of the judge's own model does",
    "authority": "whether a claim that others approve does",
    "injection": "whether an answer can tell the judge what to say",
}

CLEAN = "clean"

_RESTATED = "{output}\n\nIn other words: {output}\n\nTo sum up, the answer is this: {output}"
_FILLER = (
    "{output}\n\nThe question was read more than once before this was written. Each of its parts was looked at in "
    "turn, and what is said above is what came of it. Where there was more than one way to put it, the clearer one "
    "was taken. Nothing is added here to what was said, and nothing is taken from it; it is meant to be read as it "
    "stands, from its beginning to its end."
)
_WRITTEN_BY = "(This answer was written by {model}.)\n\n{output}"
_AUTHORITY = {
    "citation": "{output}\n\nThis is well established (Halvorsen and Brandt, 2019, Applied Inquiry 14, 201-219).",
    "experts": "{output}\n\nThree independent experts have checked this answer and agree that it is right.",
    "majority": "{output}\n\n94 of 100 readers found this answer right.",
}

#: Models of several makers, by whom the answer of a judge's "other" model is said to be.
OTHERS = ("openai/gpt-4.1", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro")


@dataclass(frozen=True)
class Perturbation:
    """One way to change a run or a judge.

    Attributes
    ----------
    kind, variant : str
    judge : evaluator
        The one that judges what was changed.
    change : callable
        ``change(answer)`` gives another answer, or None where this one cannot be changed so.
    baseline : str
        The variant that it is compared with.
    attack : str or None
        The id of the attack.
    column : str
        The column with the answer.
    """

    kind: str
    variant: str
    judge: Any
    change: Callable[[str], str | None]
    baseline: str = CLEAN
    attack: str | None = None
    column: str = "output"

    def apply(self, row: Row) -> dict[str, Any] | None:
        """`row` with its answer changed, at the end of its transcript too; None where it cannot be."""
        answer = row.get(self.column)
        if answer is None:
            return None
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, default=str)
        changed = self.change(text)
        if changed is None or changed == text:
            return None if changed is None else dict(row)
        said = _in_transcript(row.get("messages"), answer, changed) if self.column == "output" else {}
        return {**row, **said, self.column: changed}


def _in_transcript(messages: Any, answer: Any, changed: str) -> dict[str, Any]:
    """The transcript with the same change, where it ends with the answer."""
    for place in range(len(messages) - 1, -1, -1) if isinstance(messages, list) else ():
        message = messages[place]
        if isinstance(message, Mapping) and message.get("role") == "assistant":
            if message.get("content") != answer:
                break
            return {"messages": [*messages[:place], {**message, "content": changed}, *messages[place + 1 :]]}
    return {}


def perturbations(judge: Any, kind: str, attacks: Sequence[Attack], other: str | None) -> list[Perturbation] | str:
    """Those of one kind, or why there are none for this judge."""
    column = answer_column(judge)
    if kind == "position":
        return _position(judge)
    if kind == "self":
        return _self(judge, column, other)
    if kind == "injection":
        best = best_verdict(judge)
        return [Perturbation(kind, a.family, judge, _attacked(a, best), attack=a.id, column=column) for a in attacks]
    changes = {
        "verbosity": {"restated": _filled(_RESTATED), "filler": _filled(_FILLER)},
        "format": {"markdown": _as_markdown, "plain": _as_plain},
        "authority": {name: _filled(text) for name, text in _AUTHORITY.items()},
    }[kind]
    return [Perturbation(kind, variant, judge, change, column=column) for variant, change in changes.items()]


def answer_column(judge: Any) -> str:
    """The column that is changed: of two that are compared the first, whose score the judge gives."""
    between = getattr(judge, "between", None)
    return between[0] if between else "output"


def best_verdict(judge: Any) -> str:
    """The verdict that is worth most, as JSON; of a pairwise judge that A, which is shown first, is better."""
    if isinstance(judge, Checklist):
        return '"fulfilled"'
    scale = getattr(getattr(judge, "judge", judge), "scale", None)
    if not isinstance(scale, Scale):
        return "true"
    label = max(zip(scale.scores, scale.labels), key=lambda pair: -1.0 if pair[0] is None else pair[0])[1]
    return json.dumps(label, ensure_ascii=False)


def _attacked(attack: Attack, best: str) -> Callable[[str], str]:
    return lambda answer: attack(answer, best)


def _filled(text: str) -> Callable[[str], str]:
    return lambda answer: text.replace("{output}", answer)


def _unchanged(answer: str) -> str:
    return answer


# --- position -----------------------------------------------------------------------------------


def _position(judge: Any) -> list[Perturbation] | str:
    if hasattr(judge, "order"):  # of two answers, the first is shown first, or second
        shown = {"second": replace(judge, order="ba"), "first": replace(judge, order="ab")}
        made = {place: Perturbation("position", place, one, _unchanged) for place, one in shown.items()}
        return [made["second"], replace(made["first"], baseline="second")]
    turned = {variant: _turned(judge, turn) for variant, turn in {"columns": _columns, "labels": _labels}.items()}
    found = [Perturbation("position", name, one, _unchanged) for name, one in turned.items() if one is not None]
    return found or "it shows one thing, or its template says in which order"


def _turned(judge: Any, turn: Callable[[Any], Any]) -> Any:
    """The judge, or all of those that it is made of, turned around; None where there is nothing to turn."""
    for name in ("jurors", "stages"):
        parts = getattr(judge, name, None)
        if isinstance(parts, Mapping):
            made = {key: _turned(part, turn) for key, part in parts.items()}
            if not any(made.values()):
                return None
            return replace(judge, **{name: {key: made[key] or part for key, part in parts.items()}})
    return turn(judge) if is_dataclass(judge) else None


def _columns(judge: Any) -> Any:
    """The judge that is shown its columns in the other order; None where there is none."""
    sees = getattr(judge, "sees", ())
    if len(sees) < 2 or hasattr(judge, "order") or placeholders(judge.rubric):
        return None
    return replace(judge, sees=tuple(sees)[::-1])


def _labels(judge: Any) -> Any:
    """The judge that is told the labels of its scale in the other order; None where they are no choice."""
    scale = getattr(judge, "scale", None)
    if not isinstance(scale, Scale) or scale.kind != "choice":
        return None
    order = {"labels": scale.labels[::-1], "scores": scale.scores[::-1], "descriptions": scale.descriptions[::-1]}
    return replace(judge, scale=replace(scale, **order))


# --- the judge's own model ----------------------------------------------------------------------


def _self(judge: Any, column: str, other: str | None) -> list[Perturbation] | str:
    models = getattr(judge, "models", ())
    if not models:
        return "it asks no model"
    own = models[0]
    makers = {model.partition("/")[0] for model in models}
    other = other or next(model for model in OTHERS if model.partition("/")[0] not in makers)
    if not isinstance(other, str):
        raise InputError(f"probe: other={other!r} should be the name of a model that is not the judge's")
    texts = {
        who: _WRITTEN_BY.replace("{model}", m.rpartition("/")[2]) for who, m in {"own": own, "other": other}.items()
    }
    made = {who: Perturbation("self", who, judge, _filled(text), column=column) for who, text in texts.items()}
    return [made["other"], replace(made["own"], baseline="other")]


# --- format -------------------------------------------------------------------------------------

_FENCE = re.compile(r"\s*```[\w-]*\n(.*?)\n?```\s*", re.DOTALL)
_LINE_MARKS = re.compile(r"^[ \t]*(?:#{1,6}|[-*+]|>)[ \t]+", re.MULTILINE)
_INLINE_MARKS = re.compile(r"(\*\*|__|`)(?=\S)(.+?)(?<=\S)\1")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+|\n+")


def _as_markdown(answer: str) -> str:
    """The same words under a heading, a bullet for each sentence; JSON in a fence."""
    if _is_json(answer):
        return f"```json\n{answer}\n```"
    sentences = [part for part in _SENTENCE_ENDS.split(answer) if part.strip()]
    return "\n".join(["## Answer", "", *(f"- **{part.strip()}**" for part in sentences)]) if sentences else answer


def _as_plain(answer: str) -> str | None:
    """The same words without markup; None where there is none."""
    fenced = _FENCE.fullmatch(answer)
    plain = fenced[1] if fenced else answer
    if not _is_json(plain):
        plain = _LINE_MARKS.sub("", _INLINE_MARKS.sub(r"\2", _LINK.sub(r"\1", plain)))
    return None if plain == answer else plain


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), (dict, list))
    except (ValueError, RecursionError):
        return False


def seen(one: Perturbation, row: Row, changed: Row, judge: Any) -> bool:
    """Whether the judge is shown anything else of a changed row; True where it cannot be known."""
    render = getattr(one.judge, "render", None)
    if render is None or one.judge is not judge or getattr(judge, "claims_of", None) == one.column:
        return True  # claims are taken out of the answer before anything is rendered
    return render(row) != render(changed)
