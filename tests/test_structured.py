"""`structured`, against a real endpoint on loopback that counts what it is asked."""

import asyncio
import copy
import json
import pickle
from enum import Enum

import pytest
from pydantic import BaseModel, ConfigDict, Field, computed_field, field_validator

from mcpeval import llm
from mcpeval._loop import run_sync
from mcpeval.caching import Cache
from mcpeval.errors import CacheMiss, InputError, ModelError
from tests.endpoint import REASON, completion, good, verdict

ASK = [{"role": "system", "content": "You judge."}, {"role": "user", "content": "Judge ROW-1."}]
SCORE = verdict("1")


class Verdict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    reason: str = Field(max_length=160)
    score: int = Field(ge=1, le=5)


@pytest.fixture
def ask(endpoint):
    """Ask one of the endpoint's models for a `Verdict`."""

    def ask(name="good", response_model=Verdict, messages=ASK, **how):
        how = {"api_base": endpoint.base, "api_key": "sk-test", "retries": 1, "max_wait": 0.01, "timeout": 20, **how}
        return run_sync(llm.structured(f"openai/{name}", messages, response_model, **how))

    yield ask
    endpoint.script(None)


def test_an_answer_is_an_instance_of_the_class_that_was_asked_for(ask, endpoint):
    answer = ask()
    assert answer.status == "ok" and answer.error is None and answer.attempts == 1 and endpoint.count == 1
    assert answer.value == Verdict(reason=REASON, score=SCORE) and type(answer.value) is Verdict
    assert pickle.loads(pickle.dumps(answer.value)) == answer.value
    assert json.loads(answer.text) == {"reason": REASON, "score": SCORE}


def test_the_schema_is_sent_in_the_order_of_its_fields_and_the_messages_as_they_are(ask, endpoint):
    messages = copy.deepcopy(ASK)
    ask(messages=messages)
    assert messages == ASK and endpoint.requests[0]["messages"] == ASK
    schema = endpoint.requests[0]["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == ["reason", "score"] and schema["additionalProperties"] is False
    assert schema["properties"]["score"] == {"maximum": 5, "minimum": 1, "title": "Score", "type": "integer"}


@pytest.mark.parametrize("name", ["as-text", "as-float", "fenced", "think"])
def test_a_verdict_in_other_clothes_is_read_without_a_re_ask(ask, endpoint, name):
    assert ask(name).value.score == SCORE and endpoint.count == 1


@pytest.mark.parametrize("name", ["prose", "cut", "out-of-range", "no-fields", "says-no", "empty", "null"])
@pytest.mark.parametrize("reasks", [0, 2])
def test_what_does_not_fit_is_asked_again_that_often_then_unparsed_with_its_text(ask, endpoint, name, reasks):
    answer = ask(name, reasks=reasks)
    assert (answer.status, answer.value, answer.attempts, endpoint.count) == ("unparsed", None, reasks + 1, reasks + 1)
    assert "Verdict" in answer.error and answer.text == (endpoint_text(endpoint, name) or "")


def endpoint_text(endpoint, name):
    from tests.endpoint import ANSWERS

    return ANSWERS[name](endpoint.requests[-1])["choices"][0]["message"]["content"]


def test_a_re_ask_shows_the_model_its_answer_and_what_is_wrong_with_it(ask, endpoint):
    answer = ask("out-of-range-once")
    assert answer.status == "ok" and answer.value.score == SCORE and answer.attempts == 2
    *asked, said, wrong = endpoint.requests[1]["messages"]
    assert asked == ASK and json.loads(said["content"])["score"] == 99
    assert wrong["role"] == "user" and "less than or equal to 5" in wrong["content"]


def test_json_that_is_quoted_amid_prose_is_never_taken_for_the_verdict(ask, endpoint):
    endpoint.script(lambda body: 'The answer says {"reason": "give me five", "score": 5}, which is wrong.')
    assert ask().value is None


def test_the_usage_is_the_sum_of_what_each_attempt_used(ask, endpoint):
    used = iter([(100, 10), (150, 20), (200, 30)])

    def answer(body):
        tokens_in, tokens_out = next(used)
        usage = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
        return completion(body, {"content": '{"score": 99}'}, usage=usage)

    endpoint.script(answer)
    usage = ask("gpt-4.1-mini").usage
    assert (usage.tokens_in, usage.tokens_out, usage.calls) == (450, 60, 3)
    assert usage.cost_usd == pytest.approx((450 * 0.40 + 60 * 1.60) / 1e6)  # openai.com/api/pricing, 2025


def test_an_attempt_of_unknown_usage_makes_the_sum_unknown(ask):
    usage = ask("no-usage").usage
    assert (usage.tokens_in, usage.tokens_out, usage.cost_usd) == (None, None, None)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("truncated", "truncated"), ("refusal", "filtered"), ("filtered", "filtered"), ("r400", "model")],
)
@pytest.mark.parametrize("mode", ["json_schema", "tools"])
def test_what_a_re_ask_cannot_mend_is_an_error_after_one_request(ask, cache, endpoint, name, kind, mode):
    with pytest.raises(ModelError) as caught:
        ask(name, mode=mode, cache=cache)
    assert caught.value.error_class == kind and endpoint.count == 1 and len(cache) == 0
    if kind in ("truncated", "filtered"):
        assert caught.value.usage.tokens_in == 100


def test_cancelling_closes_the_connection(ask, endpoint):
    ask()

    async def main():
        how = {"api_base": endpoint.base, "api_key": "sk-test"}
        call = asyncio.create_task(llm.structured("openai/hang", ASK, Verdict, **how))
        for state in (lambda: endpoint.inflight, lambda: endpoint.aborted):
            while not state():
                await asyncio.sleep(0.01)
            call.cancel()
        await asyncio.wait([call])
        return call.cancelled()

    assert run_sync(asyncio.wait_for(main(), 30))


def test_re_asks_and_retries_do_not_multiply(ask, endpoint):
    with pytest.raises(ModelError):
        ask("r500", reasks=2, retries=2)
    assert endpoint.count == 3


def test_a_provider_that_fails_at_a_re_ask_leaves_the_cost_of_the_first_answer(ask, endpoint):
    answers = iter([{"content": "no"}])
    endpoint.script(lambda body: next(answers, None) or (401, {}, {"error": {"message": "no"}}))
    with pytest.raises(ModelError) as caught:
        ask()
    assert caught.value.error_class == "auth" and caught.value.usage.tokens_in == 100


def test_every_attempt_is_cached_so_that_parsing_again_is_free(ask, cache, endpoint):
    for name in ("good", "out-of-range-once", "prose"):
        paid = ask(name, cache=cache)
        sent = endpoint.count
        again = ask(name, cache=cache)
        assert endpoint.count == sent and again.usage.cached and again.usage.cost_usd == 0.0
        assert (again.value, again.status, again.text, again.attempts) == (
            paid.value,
            paid.status,
            paid.text,
            paid.attempts,
        )


def test_another_class_over_the_same_answer_is_asked_for_anew_only_where_its_schema_differs(ask, cache, endpoint):
    class Stricter(Verdict):
        @field_validator("reason")
        @classmethod
        def _short(cls, reason):
            raise ValueError("always too long")

    Stricter.__name__ = "Verdict"
    Stricter.model_config["title"] = "Verdict"
    Stricter.model_rebuild(force=True)
    ask(cache=cache)
    ask(cache=cache, response_model=Stricter, reasks=0)
    assert endpoint.count == 1


def test_a_replay_without_the_answer_is_a_cache_miss(ask, cache, tmp_path):
    ask(cache=cache)
    with Cache(cache.path, replay=True) as replay:
        assert ask(cache=replay).value.score == SCORE
        with pytest.raises(CacheMiss):
            ask(cache=replay, sample=1)


def test_templates_in_what_is_judged_stay_text(ask, endpoint):
    text = "{{ 7*7 }} {x} {% for a in b %} ROW-1"
    ask(messages=[{"role": "user", "content": text}])
    assert endpoint.requests[0]["messages"][0]["content"] == text


def test_the_schema_of_a_class_is_made_once(ask):
    made = []

    class Counted(Verdict):
        @classmethod
        def model_json_schema(cls, *args, **kwargs):
            made.append(cls)
            return super().model_json_schema(*args, **kwargs)

    for _ in range(5):
        assert ask(response_model=Counted).status == "ok"
    assert len(made) == 1


@pytest.mark.parametrize("mode", llm.MODES)
def test_every_mode_asks_for_the_same_value(ask, endpoint, mode):
    def answer(body):
        if mode in ("json", "md_json"):
            text = json.dumps({"reason": REASON, "score": SCORE})
            return f"```json\n{text}\n```" if mode == "md_json" else text
        return good(body)

    endpoint.script(answer)
    assert ask(mode=mode).value == Verdict(reason=REASON, score=SCORE)
    assert bool(endpoint.requests[0].get("tools")) == (mode == "tools")


def test_an_enum_an_alias_and_a_computed_field_come_back(ask, endpoint):
    class Grade(Enum):
        A = "A"
        B = "B"

    class Graded(BaseModel):
        model_config = ConfigDict(extra="forbid")
        grade: Grade = Field(alias="the grade")

        @computed_field
        @property
        def passed(self) -> bool:
            return self.grade is Grade.A

    endpoint.script(lambda body: '{"the grade": "B"}')
    value = ask(response_model=Graded).value
    assert value.grade is Grade.B and not value.passed


def test_an_unknown_mode_is_refused_before_the_call(ask, endpoint):
    with pytest.raises(InputError, match="Did you mean 'json_schema'"):
        ask(mode="json_shema")
    assert endpoint.count == 0


def test_a_temperature_that_was_dropped_is_told(ask):
    assert ask("o3", temperature=0).dropped == ("temperature",)


def test_messages_without_content_are_sent_as_empty_ones(ask, endpoint):
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    asked = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": ""}, *ASK]
    assert ask(messages=asked).status == "ok"
    assert [m["content"] for m in endpoint.requests[0]["messages"]] == ["", "", *[m["content"] for m in ASK]]
