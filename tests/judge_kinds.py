"""Every kind of judge, and every way in which a model may answer it: tables that several test files share.

`KINDS` maps a name to a function of a model and its parameters; whoever adds a kind of judge adds a line.
`REPLIES` maps a name to a script of the loopback endpoint, and to the statuses that may come of it.
"""

from __future__ import annotations

import json
import math
from typing import Any

from mcpeval.evaluators import Cascade, Checklist, Judge, Jury, Pairwise
from tests.endpoint import completion, good

ROW = {
    "run_id": "r1",
    "question": "What is the capital of France? ROW-7",
    "output": "Paris, with 2.1 million people.",
    "other": "Lyon.",
    "reference": "Paris",
    "key_points": ["names Paris", "gives the population"],
    "messages": [
        {"role": "user", "content": "What is the capital of France?"},
        {"role": "assistant", "content": "Paris, with 2.1 million people."},
    ],
    "tool_calls": [
        {
            "server": "geo",
            "name": "capital",
            "arguments": {"of": "France"},
            "result": {"content": [{"type": "text", "text": "Paris, 2.1 million"}]},
        }
    ],
}
EXAMPLE = {"question": "2 + 2?", "output": "4", "verdict": True, "reason": "It is 4."}

KINDS: dict[str, Any] = {
    "verdict": lambda model, **how: Judge(model=model, max_reason=30, **how),
    "points": lambda model, **how: Judge("Is it clear?", model=model, scale=(1, 5), max_reason=30, **how),
    "template": lambda model, **how: Judge("{question} {output} Right?", model=model, max_reason=30, **how),
    "examples": lambda model, **how: Judge(model=model, examples=[EXAMPLE], max_reason=30, **how),
    "own answer": lambda model, **how: Judge(model=model, reference="self", max_reason=30, **how),
    "logprobs": lambda model, **how: Judge(model=model, method="logprobs", max_reason=30, **how),
    "checklist": lambda model, **how: Checklist("key_points", model=model, max_reason=30, **how),
    "claims": lambda model, **how: Checklist(claims_of="output", model=model, max_claims=2, max_reason=30, **how),
    "pairwise": lambda model, **how: Pairwise(model=model, between=("output", "other"), max_reason=30, **how),
    "jury": lambda model, **how: Jury(
        [
            Judge("Is it right?", name="a", model=model, max_reason=30, **how),
            Judge("Is it true?", name="b", model=model, max_reason=30, **how),
        ]
    ),
    "cascade": lambda model, **how: Cascade(
        [
            Judge("Is it right?", name="cheap", model=model, max_reason=30, **how),
            Judge("Is it true?", name="dear", model=model, max_reason=30, **how),
        ],
        accept={"cheap": (0.2, 0.8)},
    ),
}


def well_formed(body: dict[str, Any]) -> dict[str, Any]:
    """What the good model says, with log-probabilities where they are asked for."""
    message = good(body)
    answer = completion(body, message)
    if body.get("logprobs"):
        answer["choices"][0]["logprobs"] = {"content": spoken(message["content"])}
    return answer


def spoken(text: str, alternatives: dict[str, float] | None = None) -> list[dict[str, Any]]:
    """The tokens of `text`, one for each character; at the last quoted letter stand `alternatives`."""
    tokens = [{"token": letter, "logprob": 0.0, "top_logprobs": []} for letter in text]
    place = text.rindex('"verdict": "') + len('"verdict": "') if '"verdict": "' in text else len(text) - 1
    shares = alternatives or {text[place]: 1.0}
    tokens[place] = {
        "token": text[place],
        "logprob": math.log(shares.get(text[place], 1.0)),
        "top_logprobs": [{"token": token, "logprob": math.log(share)} for token, share in shares.items()],
    }
    return tokens


def _text(body: dict[str, Any], change: Any) -> dict[str, Any]:
    """The well-formed answer with its text changed, where it is one that holds a verdict."""
    answer = well_formed(body)
    message = answer["choices"][0]["message"]
    if '"verdict"' in message["content"]:
        message["content"] = change(message["content"])
    return answer


def _verdicts(value: Any, change: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: change(item) if key == "verdict" else _verdicts(item, change) for key, item in value.items()}


def _changed(change: Any) -> Any:
    return lambda body: _text(body, lambda text: json.dumps(_verdicts(json.loads(text), change)))


def _cut(body: dict[str, Any]) -> dict[str, Any]:
    message = good(body)
    return completion(body, {"content": message["content"][: len(message["content"]) // 2]}, "length")


SCORED, FAILED = {"ok"}, {"error", "unparsed", "skipped"}
REPLIES: dict[str, tuple[Any, set[str]]] = {
    "well-formed": (well_formed, SCORED),
    "fenced": (lambda body: _text(body, lambda text: f"```json\n{text}\n```"), SCORED),
    "half a pair": (lambda body: _text(body, lambda text: text.replace('"reason": "', '"reason": "\\ud83d ')), SCORED),
    "a bare half": (lambda body: _text(body, lambda text: text.replace('"reason": "', '"reason": "\ud83d ')), SCORED),
    "truncated": (_cut, FAILED),
    "cut": (lambda body: _text(body, lambda text: text[: len(text) // 2]), FAILED),
    "off the scale": (_changed(lambda verdict: 99), FAILED),
    "another word": (_changed(lambda verdict: "perhaps"), FAILED),
    "no verdict": (_changed(lambda verdict: None), FAILED),
    "refusing": (lambda body: "I am sorry, I cannot judge that.", FAILED),
    "refused": (lambda body: {"content": None, "refusal": "no"}, FAILED),
    "empty": (lambda body: "", FAILED),
    "two verdicts": (
        lambda body: _text(body, lambda text: text.replace('"verdict"', '"verdict": 1, "verdict"')),
        FAILED,
    ),
    "two answers": (lambda body: _text(body, lambda text: f"{text}\n{text}"), FAILED),
    "in prose": (lambda body: _text(body, lambda text: f"Verdict: {text} as I said."), FAILED),
    "a list": (lambda body: _text(body, lambda text: f"[{text}]"), FAILED),
}
