"""A scale is the one source of a verdict's sentence, schema, number, level and order."""

from __future__ import annotations

import json
import math

import pytest

from mcpeval.errors import InputError
from mcpeval.evaluators.scales import Scale

MEANINGS = {1: "wrong", 2: "mostly wrong", 3: "half right", 4: "mostly right", 5: "right"}


def schema(given):
    return Scale.of(given).response_model().model_json_schema()


def read(given, verdict, **other):
    """The verdict that the response model reads from a judge's text."""
    return (
        Scale.of(given)
        .response_model()
        .model_validate_json(json.dumps({"reason": "r", "verdict": verdict, **other}))
        .verdict
    )


def test_a_scale_is_written_as_what_it_looks_like():
    assert Scale.of(bool).labels == (False, True)
    assert Scale.of((1, 5)).labels == (1, 2, 3, 4, 5)
    assert Scale.of((0.0, 1.0)).labels == (0.0, 1.0)
    assert Scale.of((0, 10.0)).kind == "range"
    assert Scale.of(["bad", "good"]).labels == ("bad", "good")
    assert Scale.of({"A": "fine", "B": "finer"}).descriptions == ("fine", "finer")
    assert Scale.of(MEANINGS) == Scale.of(dict(reversed(MEANINGS.items())))
    scale = Scale.of((1, 5))
    assert Scale.of(scale) is scale


@pytest.mark.parametrize(
    "given",
    [
        None, int, 5, "good", (5, 1), (1, 1), (1, 2, 3), [], ["only"], ["good", "Good "], ["a", ""], [1, 2], {},
        {1: "a", 3: "c"}, {1: "a"}, {1: 0.5, 2: 1.0}, {"a": 0.1, "b": 2.0}, {"a": 1, "b": "no score"},
        {"a": None, "b": None}, {"a": True, "b": False}, (0, math.inf), (0, 5000), (True, False),
        {"a": object(), "b": 1},
    ],
)  # fmt: skip
def test_what_is_no_scale_is_refused_when_it_is_written(given):
    with pytest.raises(InputError, match="scale|Scale"):
        Scale.of(given)


def test_the_response_is_a_reason_first_and_then_an_enum_or_a_bounded_number():
    for given in (bool, (1, 5), (0.0, 1.0), ["bad", "good"]):
        assert list(schema(given)["properties"]) == ["reason", "verdict"] == schema(given)["required"]
        assert schema(given)["additionalProperties"] is False
    assert schema(["bad", "good"])["properties"]["verdict"]["enum"] == ["bad", "good"]
    points = schema((1, 5))["properties"]["verdict"]
    assert (points["type"], points["minimum"], points["maximum"]) == ("integer", 1, 5)
    span = schema((0.0, 1.0))["properties"]["verdict"]
    assert (span["type"], span["minimum"], span["maximum"]) == ("number", 0, 1)
    assert schema(bool)["properties"]["verdict"]["type"] == "boolean"
    assert Scale.of(bool).response_model(50).model_json_schema()["properties"]["reason"]["maxLength"] == 50


def test_the_response_model_of_a_scale_is_built_once():
    assert Scale.of((1, 5)).response_model(100) is Scale.of((1, 5)).response_model(100)
    assert Scale.of((1, 5)).response_model(100) is not Scale.of((1, 4)).response_model(100)
    assert Scale.of((0, 1)).response_model() is not Scale.of(bool).response_model()


@pytest.mark.parametrize(
    ("given", "answers"),
    [
        (bool, [1, 0, "yes", "no", "1", None, [True], "true.", 1.0]),
        ((1, 5), [0, 6, 4.5, True, "four", "4/5", "1e0", "4, or 5", None, math.nan, math.inf, 10**400, "", [4]]),
        ((0, 1), [True, False, 0.5]),
        ((0.0, 1.0), [1.0001, -0.1, True, "nan", "inf", math.nan, "50%", None, 10**400]),
        (["bad", "good"], ["better", "good or bad", "", None, 1, ["good"], "good."]),
    ],
)
def test_an_answer_that_is_off_the_scale_cannot_become_a_verdict(given, answers):
    for answer in answers:
        with pytest.raises(ValueError, match="not on the scale; expected"):
            read(given, answer)


def test_another_spelling_of_one_label_is_that_label():
    assert [read((1, 5), answer) for answer in (4, 4.0, "4", " 4 ", "4.0")] == [4] * 5
    assert [read(bool, answer) for answer in (True, "true", "True")] == [True] * 3
    assert [read(["bad", "very good"], answer) for answer in ("very good", "Very  Good", " very good\n")] == [
        "very good"
    ] * 3
    assert [read((0.0, 1.0), answer) for answer in (1, 0.25, "0.25")] == [1.0, 0.25, 0.25]
    assert all(type(read((1, 5), answer)) is int for answer in (4.0, "4"))


def test_an_answer_with_a_second_verdict_beside_the_first_is_refused():
    with pytest.raises(ValueError, match="score"):
        read((1, 5), 1, score=5)
    for text in (
        '{"reason": "r", "verdict": 1, "verdict": 5}',
        '{"reason": "r", "verdict": 5} {"reason": "r", "verdict": 1}',
    ):
        with pytest.raises(ValueError, match="more than once|trailing"):
            Scale.of((1, 5)).response_model().model_validate_json(text)


def test_a_reason_that_is_too_long_does_not_cost_the_verdict():
    model = Scale.of(bool).response_model(20)
    assert model.model_validate_json(json.dumps({"reason": "x" * 500, "verdict": True})).verdict is True


def test_every_label_is_worth_a_number_from_0_to_1():
    assert [Scale.of((1, 5)).score(v) for v in (1, 2, 3, 4, 5)] == [0, 0.25, 0.5, 0.75, 1]
    assert [Scale.of((0.0, 10.0)).score(v) for v in (0, 2.5, 10)] == [0, 0.25, 1]
    assert [Scale.of(bool).score(v) for v in (False, True)] == [0, 1]
    assert [Scale.of(["bad", "fair", "good"]).score(v) for v in ("bad", "fair", "good")] == [0, 0.5, 1]
    assert [Scale.of({"A": ("best", 1), "B": ("so so", 0.3), "C": ("worst", 0)}).score(v) for v in "ABC"] == [1, 0.3, 0]
    with pytest.raises(InputError, match="expected a whole number from 1 to 5"):
        Scale.of((1, 5)).score(9)


def test_a_label_that_says_nothing_of_quality_has_no_score():
    scale = Scale.of({"yes": 1, "no": 0, "not applicable": None})
    assert scale.score("not applicable") is None
    assert scale.level == "nominal" and scale.order == ("no", "yes", "not applicable")


def test_level_and_order_follow_from_the_scores():
    assert [Scale.of(g).level for g in (bool, (1, 5), (0.0, 1.0), ["bad", "good"])] == [
        "nominal",
        "ordinal",
        "interval",
        "ordinal",
    ]
    assert Scale.of({"right": 1, "wrong": 0, "no attempt": 0}).level == "nominal"
    assert Scale.of({"A": 1.0, "B": 0.5, "C": 0.0}).order == ("C", "B", "A")
    assert Scale.of(MEANINGS).order == (1, 2, 3, 4, 5)


def test_the_sentence_names_every_verdict_and_what_it_means():
    assert "true or false" in Scale.of(bool).sentence
    assert Scale.of((1, 5)).sentence == "The verdict is a whole number from 1 to 5; 1 is the worst and 5 the best."
    assert all(f"- {point}: {meaning}" in Scale.of(MEANINGS).sentence for point, meaning in MEANINGS.items())
    best_first = Scale.of({"A": ("best", 1), "B": ("worst", 0)}).sentence
    assert '- "A": best' in best_first and "is the worst and" not in best_first


def test_a_scale_is_a_value():
    assert Scale.of((1, 5)) == Scale.of((1, 5)) and hash(Scale.of((1, 5))) == hash(Scale.of((1, 5)))
    assert json.loads(json.dumps(Scale.of(MEANINGS).to_dict()))["labels"] == [1, 2, 3, 4, 5]
    with pytest.raises(AttributeError):
        Scale.of(bool).kind = "choice"
