"""What evaluators say of a run, and which of its steps each part of that speaks of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ..errors import InputError, did_you_mean
from ..frames import rows_of
from . import numbers
from .elements import Html, block, element, folded, join, plain
from .steps import list_of, mapping_of, whole

#: Letter, sign and word of what came of an evaluation.
PASSED, FAILED, SCORED, UNSCORED = "passed", "failed", "scored", "unscored"
SIGNS = {PASSED: "✓", FAILED: "✗", SCORED: "●", UNSCORED: "?"}


@dataclass
class Verdicts:
    """The remarks on single steps of a run that are in the metadata of its scores.

    Attributes
    ----------
    calls, messages : dict of int to list of Html
        By the place of the tool call or the message.
    """

    calls: dict[int, list[Html]] = field(default_factory=dict)
    messages: dict[int, list[Html]] = field(default_factory=dict)


def rows_of_scores(scores: Any, caller: str) -> list[dict[str, Any]]:
    """The rows of a scores frame; of anything else an `InputError`."""
    if scores is None:
        return []
    if not isinstance(scores, pd.DataFrame):
        raise InputError(f"{caller}: scores should be a frame, as mcpeval.score gives it, or None")
    if "score" not in scores.columns:
        raise InputError(
            f"{caller}: scores has no column 'score'; expected a frame with one row for each score, as mcpeval.score "
            f"gives it, and not a wide one. {did_you_mean('score', map(str, scores.columns))}"
        )
    rows = [whole(row) for row in rows_of(scores)]
    if "run_id" not in scores.columns:  # as `score` names the runs of a frame without
        for label, row in zip(scores.index.tolist(), rows):
            row["run_id"] = str(label)
    return rows


def state_of(score: Mapping[str, Any]) -> str:
    """Whether a row of scores passed, failed, has a score without a threshold, or none."""
    if numbers.known(score.get("score")) is None:
        return UNSCORED
    passed = score.get("passed")
    return PASSED if passed is True else FAILED if passed is False else SCORED


def said_of(score: Mapping[str, Any]) -> str:
    """A verdict in a word or number: the label where it is one of words or of a scale, else the score."""
    state, label = state_of(score), score.get("label")
    if state == UNSCORED:
        return str(score.get("status") or "no score")
    told = "" if label is None or isinstance(label, (bool, list, dict)) else f"{plain(label)[:40]} · "
    return f"{told}{numbers.share(score['score']).rstrip('0').rstrip('.')}"


def verdicts_of(scores: Sequence[Mapping[str, Any]]) -> Verdicts:
    """What the verdicts of one run say of its steps, each remark at its step.

    Read are the metadata of tool-call matchers, and ``message`` or ``tool_call``: the place that an
    evaluator of one's own speaks of.
    """
    found = Verdicts()
    for score in scores:
        who, about = str(score.get("evaluator") or "evaluator"), mapping_of(score.get("metadata"))
        for where, places in (("tool_call", found.calls), ("message", found.messages)):
            if isinstance(place := about.get(where), int) and not isinstance(place, bool):
                places.setdefault(place, []).append(remark(state_of(score), who, score.get("reason")))
        for place, state, text in _of_calls(about):
            found.calls.setdefault(place, []).append(remark(state, who, text))
    return found


def _of_calls(about: Mapping[str, Any]) -> list[tuple[int, str, str]]:
    """(place of a call, what came of it, why) of what `mcpeval.tool_calls` says of each."""
    found = []
    partners = set()
    for expected in list_of(about.get("calls")):
        partner = mapping_of(expected).get("call")
        if not isinstance(partner, int):
            continue
        partners.add(partner)
        differences = "; ".join(map(str, list_of(expected.get("differences"))))
        matched = expected.get("matched") is True
        found.append((partner, PASSED if matched else FAILED, "as expected" if matched else differences))
    forbidden = [place for place in list_of(about.get("forbidden")) if isinstance(place, int)]
    found += [(place, FAILED, "forbidden") for place in forbidden]
    for place in list_of(about.get("extra")) if "matched" in about else ():
        if isinstance(place, int) and place not in partners and place not in forbidden:
            found.append((place, SCORED, "not expected"))
    return found


def remark(state: str, who: str, text: Any) -> Html:
    """A line beside a step: who says what of it."""
    return element("p", sign(state), " ", element("b", who), ": " if text else "", text or None, cls="remark")


def sign(state: str) -> Html:
    return element("span", SIGNS[state], cls=f"sign {state}", title=state, role="img", aria_label=state)


def chip(score: Mapping[str, Any]) -> Html:
    """A verdict in a few letters."""
    name = str(score.get("evaluator") or "score")
    return element("span", sign(state_of(score)), " ", name, " ", element("b", said_of(score)), cls="chip")


def verdict(score: Mapping[str, Any]) -> Html:
    """A verdict whole: its reason, who judged, what it cost, and all its metadata."""
    about = dict(mapping_of(score.get("metadata")))
    cost, judge = numbers.known(score.get("cost_usd")), score.get("judge_model")
    saved = numbers.known(about.get("saved_usd"))
    compared = list_of(about.get("between"))  # the two agents of a pairwise verdict
    facts = [
        " against ".join(map(str, compared)) or None,
        judge,
        f"sample {score['sample']}" if score.get("sample") else None,
        f"from the cache, once {numbers.dollars(saved)}" if saved is not None else None,
        numbers.dollars(cost) if cost else "cost unknown" if cost is None and judge else None,
        numbers.duration(score.get("seconds")) if judge and numbers.known(score.get("seconds")) else None,
    ]
    head = element(
        "p",
        sign(state_of(score)),
        " ",
        element("b", str(score.get("evaluator") or "score")),
        " ",
        element("span", said_of(score), cls="value"),
        " ",
        element("span", " · ".join(str(fact) for fact in facts if fact), cls="quiet") if any(facts) else None,
        cls="verdict-head",
    )
    reason = score.get("reason") or score.get("error")
    error = score.get("error") if score.get("error") not in (None, "", reason) else None
    trace = about.pop("traceback", None)
    return element(
        "li",
        head,
        block(reason, "reason") if reason else None,
        block(error, "error") if error else None,
        _points(list_of(about.pop("points", None))),
        folded("Traceback", block(trace, "code")) if trace else None,
        folded("Metadata", block(json_text(about), "code")) if about else None,
        cls=f"verdict {state_of(score)}",
    )


def _points(points: Sequence[Any]) -> Html | None:
    """The points of a checklist, each with what was found."""
    states = {"fulfilled": PASSED, "not": FAILED}
    lines = [
        element(
            "li",
            sign(states.get(str(point.get("verdict")), SCORED)),
            " ",
            str(point.get("point", "")),
            element("span", f" {point['reason']}", cls="quiet") if point.get("reason") else None,
        )
        for point in map(mapping_of, points)
    ]
    return element("ul", lines, cls="points") if lines else None


def verdict_list(scores: Sequence[Mapping[str, Any]]) -> Html | None:
    return element("ul", [verdict(score) for score in scores], cls="verdicts") if scores else None


def chips(scores: Sequence[Mapping[str, Any]]) -> Html | None:
    return element("p", join([join(chip(score), " ") for score in scores]), cls="chips") if scores else None


def json_text(value: Any, *, indent: int | None = 2) -> str:
    """A value as JSON that people can read, in one line where `indent` is None; a text as it is."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    except (TypeError, ValueError, RecursionError):  # a key that is no text, a value inside itself
        return str(value)
