"""Every kind of judge against every kind of answer, and for real on the embedded model."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from mcpeval.caching import Cache
from mcpeval.evaluators import Context, as_evaluator
from mcpeval.evaluators.base import evaluate_row
from tests.judge_kinds import KINDS, REPLIES, ROW

KEY = "sk-secret-000001"


@pytest.fixture
def asked(endpoint):
    """A judge of a kind that asks the loopback endpoint, which answers by a script."""
    yield lambda kind, script, **how: (
        endpoint.script(script),
        KINDS[kind]("openai/good", api_base=endpoint.base, api_key=KEY, reasks=1, **how),
    )[1]
    endpoint.script(None)


def scores(judge, cache=None, row=ROW):
    return asyncio.run(evaluate_row(as_evaluator(judge), row, Context(cache=cache), isolate=False))


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("kind", KINDS)
def test_no_answer_breaks_a_judge_or_becomes_a_score_that_it_does_not_say(asked, kind, reply):
    script, statuses = REPLIES[reply]
    found = scores(asked(kind, script))
    assert found
    for name, score in found:
        assert score.status in statuses, (name, score)
        assert (score.score is None or score.score != score.score) == (score.status != "ok"), (name, score)
        assert score.status == "ok" or (score.label is None and score.reason), (name, score)
        assert KEY not in str(score.to_dict())


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_answered_is_in_the_cache_and_a_replay_asks_nobody(asked, endpoint, cache, kind):
    judge = asked(kind, REPLIES["well-formed"][0])
    paid = scores(judge, cache)
    calls = endpoint.count
    again = scores(judge, cache)
    with Cache(cache.path, replay=True) as replaying:
        replayed = scores(judge, replaying)
    for first, second, third in zip(paid, again, replayed, strict=True):
        assert (
            (first[1].score, first[1].label) == (second[1].score, second[1].label) == (third[1].score, third[1].label)
        )
    assert endpoint.count == calls
    assert sum(score.usage.calls - score.usage.cached_calls for _, score in again if score.usage) == 0


@pytest.mark.parametrize("kind", [kind for kind, made in KINDS.items() if hasattr(made("openai/x"), "params")])
def test_a_judge_with_something_replaced_is_the_same_with_that_changed(kind):
    judge = KINDS[kind]("openai/x", temperature=0.5)
    same, other = dataclasses.replace(judge), dataclasses.replace(judge, model="openai/y", samples=2)
    assert same == judge and hash(same) == hash(judge) and same.fingerprint == judge.fingerprint
    assert other.models == ("openai/y",) and other.fingerprint != judge.fingerprint and other.samples == 2
    warm = dataclasses.replace(judge, temperature=1.0)
    assert warm.fingerprint == KINDS[kind]("openai/x", temperature=1.0).fingerprint != judge.fingerprint


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_judge_runs_on_the_embedded_model(cache, kind):
    judge = KINDS[kind]("local/smollm2-135m")
    found = scores(judge, cache)
    # That it answers on its scale at no cost; never whether it is right.
    assert all(score.status in ("ok", "skipped") for _, score in found), found
    # The row of a panel has no tokens: they are in the rows of its jurors.
    paid = [score.usage for _, score in found if score.usage is not None and score.usage.tokens_in]
    assert all(usage.cost_usd == 0 for usage in paid) and any(usage.tokens_out > 0 for usage in paid)
