"""What a dry run says that scoring would cost, against what an endpoint charges that answers as long as it may."""

from __future__ import annotations

import json

import pytest

from mcpeval.evaluators import Checklist, Jury, Pairwise
from mcpeval.scoring import score
from tests.endpoint import completion, value_of
from tests.judge_kinds import KINDS, ROW, spoken

PRICED = "openai/gpt-4.1-mini"
ROWS = [{**ROW, "run_id": f"r{i}", "question": f"Question {i}? ROW-{i}", "output": f"Answer {i}."} for i in range(3)]


def stretched(schema, value):
    """`value` with every text of a free length as long as `schema` lets it be."""
    if schema.get("type") == "object":
        return {name: stretched(schema["properties"][name], item) for name, item in value.items()}
    if schema.get("type") == "array":
        return [f"{i} " + stretched(schema["items"], item) for i, item in enumerate(value * schema["maxItems"])]
    return "so " * (schema["maxLength"] // 3) if "maxLength" in schema else value


def flat(schema, root=None):
    """`schema` with its references put in."""
    root = root or schema
    if "$ref" in schema:
        return flat(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    found = {key: item for key, item in schema.items() if key != "$defs"}
    if "properties" in found:
        found["properties"] = {name: flat(part, root) for name, part in found["properties"].items()}
    return found


def longest(body):
    """Two answers that are no verdict, then one; all as long as they may be, two characters to a token."""
    schema = flat(body["response_format"]["json_schema"]["schema"])
    text = json.dumps(stretched(schema, value_of(schema, "1")))
    asked_again = sum(message["role"] == "assistant" for message in body["messages"])
    if asked_again < 2 and not body["messages"][0]["content"].startswith(("Answer", "List")):
        text = text.replace('"verdict"', '"verdikt"')
    answer = completion(body, {"content": text})
    sent = sum(len(message["content"]) for message in body["messages"]) // 4
    answer["usage"] = {"prompt_tokens": sent, "completion_tokens": len(text) // 2, "total_tokens": sent + len(text)}
    if body.get("logprobs"):
        answer["choices"][0]["logprobs"] = {"content": spoken(text)}
    return answer


MORE = {
    "many points": lambda model, **how: Checklist([f"names {i}" for i in range(12)], model=model, **how),
    "patient pair": lambda model, **how: Pairwise(between=("output", "other"), model=model, max_reason=900, **how),
    "jury of both": lambda model, **how: Jury(
        {"short": KINDS["verdict"](model, **how), "long": Checklist(["a", "b", "c"], model=model, **how)}
    ),
}


@pytest.mark.parametrize("kind", [*KINDS, *MORE])
def test_what_is_charged_lies_in_the_range_that_a_dry_run_gives(endpoint, cache, kind):
    endpoint.script(longest)
    judge = {**KINDS, **MORE}[kind](PRICED, api_base=endpoint.base, api_key="sk-secret-000001")
    [line] = score(ROWS, judge, cache=cache, dry_run=True).to_dict("records")
    scores = score(ROWS, judge, cache=cache)
    endpoint.script(None)
    assert line["usd_low"] < scores["cost_usd"].sum() <= line["usd_high"], scores["reason"].tolist()
    assert line["calls"] <= endpoint.count <= 3 * line["calls"]
