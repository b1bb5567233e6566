"""``method="logprobs"``: the score is the mean over the probabilities of letters at the verdict's place, or nothing."""

from __future__ import annotations

import asyncio
import json
import math

import pandas as pd
import pytest

import mcpeval
from mcpeval.errors import InputError
from mcpeval.evaluators import Context, Judge
from mcpeval.evaluators.scales import Scale
from mcpeval.evaluators.weighing import expected, lettered, weights
from tests.endpoint import completion, error, good
from tests.judge_kinds import ROW, spoken

SAID = '{"reason": "r", "verdict": "D"}'


def chat(body, text, logprobs):
    answer = completion(body, {"content": text})
    answer["choices"][0]["logprobs"] = logprobs
    return answer


def alternatives(text, **shares):
    return lambda body: chat(body, text, {"content": spoken(text, shares)})


@pytest.fixture
def weighed(endpoint):
    def make(script, rubric="Is it clear?", **how):
        endpoint.script(script)
        how = {"scale": (1, 5), "method": "logprobs", **how}
        return Judge(rubric, model="openai/good", api_base=endpoint.base, api_key="sk-secret-000001", **how)

    yield make
    endpoint.script(None)


def evaluate(judge, context=None, row=ROW, **how):
    return asyncio.run(judge.evaluate(row, context or Context(), **how))


# --- in closed form ---------------------------------------------------------------------------


def test_the_score_is_the_mean_over_the_labels_each_with_its_probability(weighed):
    answer = evaluate(weighed(alternatives(SAID, A=0.02, C=0.08, D=0.5, E=0.2, z=0.1), threshold=0.75))
    mass = 0.02 + 0.08 + 0.5 + 0.2
    assert answer.score == pytest.approx((0 * 0.02 + 0.5 * 0.08 + 0.75 * 0.5 + 1 * 0.2) / mass)
    assert (answer.label, answer.status, answer.reason, answer.passed) == (4, "ok", "r", True)
    about = answer.metadata
    assert about["method"] == "logprobs" and about["mass"] == pytest.approx(mass)
    assert about["probabilities"] == pytest.approx({"1": 0.02 / mass, "2": 0, "3": 0.1, "4": 0.625, "5": 0.25})


def test_a_true_or_false_is_weighed_too_and_passes_as_it_is_most_probable(weighed):
    answer = evaluate(weighed(alternatives('{"reason": "r", "verdict": "A"}', A=0.4, B=0.6), scale=bool))
    assert (answer.label, answer.passed) == (True, True) and answer.score == pytest.approx(0.6)


def test_a_label_that_is_worth_nothing_is_not_in_the_mean():
    scale = Scale.of({"yes": 1, "no": 0, "cannot say": None})
    assert expected(scale, {"yes": 0.3, "no": 0.1, "cannot say": 0.6}) == pytest.approx(0.75)
    assert expected(scale, {"yes": 0.0, "no": 0.0, "cannot say": 1.0}) is None


def test_letters_stand_for_the_labels_in_the_order_of_the_scale(weighed, endpoint):
    assert lettered(Scale.of(["bad", "fair", "good"])).scores == (0, 0.5, 1)
    system = weighed(alternatives(SAID)).render(ROW)[0]["content"]
    assert '- "A": 1\n' in system and '- "E": 5' in system and '"A" is the worst' in system
    evaluate(weighed(alternatives(SAID, D=1.0)))
    [sent] = endpoint.requests
    assert sent["logprobs"] is True and sent["top_logprobs"] == 20
    assert sent["response_format"]["json_schema"]["schema"]["properties"]["verdict"]["enum"] == list("ABCDE")


# --- the verdict's own token ------------------------------------------------------------------


def tokens(*pieces):
    """Tokens as a tokenizer might make them; a pair is a token with its alternatives."""
    made = []
    for piece in pieces:
        text, shares = piece if isinstance(piece, tuple) else (piece, {piece: 1.0})
        top = [{"token": token, "logprob": math.log(share)} for token, share in shares.items()]
        made.append({"token": text, "logprob": math.log(shares[text]), "top_logprobs": top})
    return {"content": made}


@pytest.mark.parametrize(
    "logprobs",
    [
        tokens('{"reason": "', "A", '", "', "verdict", '": "', ("B", {"B": 0.6, "A": 0.2}), '"}'),
        tokens('{"reason":"x","verdict":', (' "B', {' "B': 0.6, ' "A': 0.2, "B": 0.1, '"A': 0.1}), '"}'),
        tokens(
            '{"verdict": "',
            ('B", "', {'B", "': 0.6, 'A", "': 0.2, "Bad": 0.1}),
            'reason": "A is \\"verdict\\": \\"A\\""}',
        ),
        tokens('<think>{"verdict": "A"}</think>{"reason": "", "verdict": "', ("B", {"B": 0.6, "A": 0.2}), '"}'),
        tokens('{"reason": "", "verdict": "', "", ("B", {"B": 0.5, 'B"': 0.1, "A": 0.2, "AB": 0.1}), '"}'),
    ],
    ids=["apart", "with its quotation mark", "verdict first", "thoughts", "empty token"],
)
def test_the_letter_is_found_by_its_field_the_last_one_and_never_in_the_reason(logprobs):
    shares, mass = weights(logprobs, 2)
    assert shares == pytest.approx([0.25, 0.75]) and mass == pytest.approx(0.8)


@pytest.mark.parametrize(
    "logprobs",
    [None, {}, {"content": None}, {"content": []}, tokens("no verdict"), tokens('{"verdict": "', "true", '"}')],
)
def test_what_has_no_letter_there_has_no_weights(logprobs):
    assert weights(logprobs, 2) is None


# --- a provider that returns none -------------------------------------------------------------


def runs(n=4):
    return pd.DataFrame([{"run_id": f"r{i}", "question": f"Question? ROW-{i}", "output": "4"} for i in range(n)])


@pytest.mark.parametrize(
    "script",
    [None, lambda body: error(400, "logprobs are not supported by this model", "bad") if "logprobs" in body else None],
    ids=["none in the answer", "refused"],
)
def test_a_provider_without_log_probabilities_is_an_error_that_names_it_and_asked_once(
    weighed, endpoint, cache, script
):
    scores = mcpeval.score(runs(), weighed(script), cache=cache)
    assert set(scores["status"]) == {"error"} and scores["score"].isna().all() and endpoint.count == 1
    assert scores["reason"].str.contains("openai/good returns no log-probabilities").all()
    later = weighed(lambda body: alternatives('{"reason": "r", "verdict": "E"}', E=1.0)(body))
    if script:  # what was answered is in the cache, log-probabilities or not
        assert set(mcpeval.score(runs(), later, cache=cache)["score"]) == {1.0}


def draws(body):
    """Letters by the number of the draw, of which the first asks for log-probabilities in vain."""
    row = json.loads(json.dumps(good(body)))["content"]
    draws.said[row] = draws.said.get(row, -1) + 1
    return json.dumps({"reason": f"draw {draws.said[row]}", "verdict": "EADDE"[draws.said[row] % 5]})


def test_samples_take_their_place_where_they_were_asked_for_in_every_row(weighed, endpoint, cache):
    draws.said = {}
    judge = weighed(draws, fallback_samples=4, temperature=1)
    scores = mcpeval.score(runs(), judge, cache=cache)
    assert endpoint.count == 4 * 4 + 1 and set(scores["status"]) == {"ok"}
    assert {about["method"] for about in scores["metadata"]} == {"samples"}
    # Of the row that found out, the draws are the second to the fifth: A, D, D, E; of the others E, A, D, D.
    assert set(scores["score"]) == {(0 + 0.75 + 0.75 + 1) / 4} and set(scores["label"]) == {4}
    assert [(about["drawn"], about["scored"]) for about in scores["metadata"]] == [(4, 4)] * 4
    assert "logprobs" not in endpoint.requests[-1]
    # A row that comes later is sampled as well, even if there are log-probabilities by then.
    more = mcpeval.score(runs(5), weighed(alternatives(SAID, D=1.0), fallback_samples=4, temperature=1), cache=cache)
    assert {about["method"] for about in more["metadata"]} == {"samples"} and endpoint.count == 4 * 4 + 1 + 4


def test_a_row_without_them_where_others_had_them_is_an_error_and_no_sample(weighed, cache):
    context = Context(cache=cache)
    judge = weighed(alternatives(SAID, D=1.0), fallback_samples=2, temperature=1)
    assert evaluate(judge, context).metadata["method"] == "logprobs"
    judge = weighed(None, fallback_samples=2, temperature=1)
    answer = evaluate(judge, context, {**ROW, "output": "another"})
    assert (answer.status, answer.label) == ("error", None) and "no log-probabilities for the verdict" in answer.reason


def test_draws_that_gave_no_verdict_are_not_in_the_mean_and_counted(weighed):
    said = iter(["E", "nothing", "nothing", "nothing", "C"])
    judge = weighed(
        lambda body: json.dumps({"reason": "r", "verdict": "D" if "logprobs" in body else next(said)}),
        fallback_samples=3,
        temperature=1,
        reasks=0,
    )
    answer = evaluate(judge)
    assert answer.metadata["drawn"] == 3 and answer.metadata["scored"] == 1 and answer.usage.calls == 4
    assert (answer.score, answer.label) == (1.0, 5)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"scale": (0.0, 1.0)}, "needs a scale of at most 20 labels"),
        ({"scale": (1, 30)}, "needs a scale of at most 20 labels"),
        ({"mode": "tools"}, "mode='tools' has no log-probabilities"),
        ({"fallback_samples": 5}, "at temperature=0 the fallback_samples=5 are all the same"),
        ({"fallback_samples": 1, "temperature": 1}, "fallback_samples=1 should be a whole number, at least 2"),
        ({"method": "verdict", "fallback_samples": 5}, "stands in for method='logprobs'"),
        ({"method": "logprob"}, "method='logprob'. Did you mean 'logprobs'"),
    ],
)
def test_what_cannot_be_weighed_is_refused_where_the_judge_is_written(how, said):
    with pytest.raises(InputError, match=said):
        Judge("Is it clear?", model="openai/good", **{"scale": (1, 5), "method": "logprobs", **how})


def test_the_embedded_model_gives_the_probabilities_of_all_letters(cache):
    judge = Judge("Is it clear?", model="local/smollm2-135m", scale=(1, 3), method="logprobs", max_reason=20)
    answer = evaluate(judge, Context(cache=cache))
    assert answer.status == "ok" and 0 < answer.metadata["mass"] <= 1 + 1e-6
    shares = answer.metadata["probabilities"]
    assert sum(shares.values()) == pytest.approx(1) and answer.score == pytest.approx(shares["2"] / 2 + shares["3"])
    assert judge.peek(ROW, cache).score == answer.score
