"""`complete`, against a real endpoint on loopback that counts what it is asked."""

import asyncio
import copy
import json

import pytest

from mcpeval import _clients, llm
from mcpeval._loop import run_sync
from mcpeval.caching import Cache
from mcpeval.errors import CacheMiss, InputError, ModelError

ASK = [{"role": "user", "content": "How high is the tide at ROW-1?"}]
TOOL = {
    "type": "function",
    "function": {"name": "tide", "parameters": {"type": "object", "properties": {"port": {"type": "string"}}}},
}
PATIENT = {"retries": 2, "max_wait": 0.01, "timeout": 20}


@pytest.fixture
def ask(endpoint):
    """Ask one of the endpoint's models; keyword arguments as those of `complete`."""

    def ask(name="good", messages=ASK, **how):
        how = {"api_base": endpoint.base, "api_key": "sk-test", **PATIENT, **how}
        return run_sync(llm.complete(name if "/" in name else f"openai/{name}", messages, **how))

    return ask


def fails(ask, name, **how) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(name, **how)
    return caught.value


# --- answers ----------------------------------------------------------------------------------


def test_an_answer_is_a_plain_message_with_its_usage(ask):
    answer = ask()
    assert answer.message == {"role": "assistant", "content": "answer for 1"}
    assert answer.finish_reason == "stop" and answer.model == "good" and answer.text == "answer for 1"
    assert (answer.usage.tokens_in, answer.usage.tokens_out, answer.usage.calls) == (100, 10, 1)


def test_tool_calls_come_back_as_plain_json(ask, endpoint):
    answer = ask(tools=[TOOL])
    assert answer.finish_reason == "tool_calls" and answer.message["tool_calls"][0]["function"]["name"] == "tide"
    json.dumps(answer.to_dict())
    assert endpoint.requests[0]["tools"] == [TOOL]


def test_the_price_is_the_published_one_where_the_model_has_one(ask):
    answer = ask("gpt-4.1-mini")  # 0.40 and 1.60 dollars a million tokens (openai.com/api/pricing, 2025)
    assert answer.usage.cost_usd == pytest.approx((100 * 0.40 + 10 * 1.60) / 1e6)


def test_litellm_keeps_no_record_of_a_call_where_nobody_listens_to_it(ask, monkeypatch):
    from litellm.litellm_core_utils.litellm_logging import Logging

    made = []
    for name in ("async_success_handler", "async_failure_handler"):
        monkeypatch.setattr(Logging, name, lambda *args, **how: made.append(args))
    ask("gpt-4.1-mini")
    fails(ask, "r400")
    assert made == []


def test_whoever_listens_to_litellm_still_hears_of_each_call(ask, monkeypatch):
    litellm, heard, told = _clients.litellm(), [], asyncio.Event()

    async def told_of(kwargs, answer, start, end):
        heard.append((kwargs["model"], kwargs["response_cost"]))
        told.set()

    async def until_told():
        async with asyncio.timeout(20):
            await told.wait()

    monkeypatch.setattr(litellm, "success_callback", [told_of])
    cost = ask("gpt-4.1-mini").usage.cost_usd
    run_sync(until_told())
    assert heard == [("gpt-4.1-mini", cost)]


def test_an_unknown_price_is_none_and_not_zero(ask):
    assert ask("good").usage.cost_usd is None


def test_a_usage_the_provider_did_not_give_is_none_and_not_zero(ask):
    usage = ask("no-usage").usage
    assert (usage.tokens_in, usage.tokens_out, usage.cost_usd) == (None, None, None)


@pytest.mark.parametrize(
    ("name", "finish"),
    [("truncated", "length"), ("filtered", "content_filter"), ("refusal", "stop"), ("null", "stop"), ("empty", "stop")],
)
def test_half_answers_are_returned_with_their_reason_and_never_cached(ask, cache, endpoint, name, finish):
    assert ask(name, cache=cache).finish_reason == finish
    ask(name, cache=cache)
    assert endpoint.count == 2 and len(cache) == 0


@pytest.mark.parametrize("name", ["no-choices", "null-choices", "html"])
def test_an_answer_without_choices_is_asked_for_again_then_an_error(ask, cache, endpoint, name):
    error = fails(ask, name, cache=cache)
    assert endpoint.count == 3 and error.error_class == "model" and len(cache) == 0


def test_what_unusable_answers_cost_is_told(ask):
    assert fails(ask, "no-choices").usage.tokens_in == 300


def test_a_lone_surrogate_can_be_received_and_sent(ask, cache, endpoint):
    said = ask("surrogate", cache=cache).text
    assert said == ask("surrogate", cache=cache).text == "half a pair: \ud83d"
    ask("good", [{"role": "user", "content": said}])
    assert endpoint.requests[-1]["messages"][0]["content"] == "half a pair: \ufffd"


def test_neither_messages_nor_tools_of_the_caller_are_changed(ask, cache):
    messages, tools = copy.deepcopy(ASK), [copy.deepcopy(TOOL)]
    ask(messages=messages, tools=tools, cache=cache)
    assert messages == ASK and tools == [TOOL]


def test_messages_that_are_not_json_are_refused_before_the_call(ask, endpoint):
    with pytest.raises(InputError, match="messages should be JSON.*set"):
        ask(messages=[{"role": "user", "content": {"a set"}}])
    assert endpoint.count == 0


# --- cancelling, sharing ----------------------------------------------------------------------


async def until(condition):
    while not condition():
        await asyncio.sleep(0.01)


def test_cancelling_a_call_closes_its_connection(endpoint, ask):
    ask("good")

    async def main():
        call = asyncio.create_task(llm.complete("openai/hang", ASK, api_base=endpoint.base, api_key="sk-test"))
        await until(lambda: endpoint.inflight)
        call.cancel()
        await asyncio.wait([call])
        await asyncio.wait_for(until(lambda: endpoint.aborted == 1 and not endpoint.inflight), 20)
        return call.cancelled()

    assert run_sync(main())


def test_identical_calls_at_the_same_moment_are_paid_once(endpoint, cache, ask):
    endpoint.script(lambda body: "the tide is high")

    async def main():
        how = {"api_base": endpoint.base, "api_key": "sk-test", "cache": cache}
        return await asyncio.gather(*(llm.complete("openai/gpt-4.1-mini", ASK, **how) for _ in range(20)))

    answers = run_sync(main())
    endpoint.script(None)
    assert endpoint.count == 1 and {a.text for a in answers} == {"the tide is high"}
    assert sum(a.usage.cost_usd > 0 for a in answers) == 1 and sum(a.usage.cached for a in answers) == 19


def test_without_a_cache_identical_calls_are_each_made(endpoint):
    async def main():
        how = {"api_base": endpoint.base, "api_key": "sk-test"}
        await asyncio.gather(*(llm.complete("openai/good", ASK, **how) for _ in range(3)))

    run_sync(main())
    assert endpoint.count == 3


def test_a_shared_call_outlives_the_caller_that_began_it_and_ends_with_the_last(endpoint, cache, ask):
    ask("good")
    endpoint.reset()
    endpoint.latency = 0.3
    how = {"api_base": endpoint.base, "api_key": "sk-test", "cache": cache}

    async def main():
        calls = [asyncio.create_task(llm.complete("openai/good", ASK, **how)) for _ in range(3)]
        await until(lambda: endpoint.inflight)
        calls[0].cancel()
        kept = await asyncio.gather(*calls, return_exceptions=True)
        alone = asyncio.create_task(llm.complete("openai/hang", ASK, **how))
        await until(lambda: endpoint.count == 2)  # not `inflight`: the one before may not be over there yet
        alone.cancel()
        await asyncio.wait([alone])
        await asyncio.wait_for(until(lambda: endpoint.aborted == 1), 20)
        return kept

    try:
        first, *others = run_sync(main())
    finally:
        endpoint.latency = 0.0
    assert isinstance(first, asyncio.CancelledError) and [a.text for a in others] == ["answer for 1"] * 2
    assert endpoint.count == 2


def test_a_shared_failure_reaches_every_caller_and_its_cost_only_one(endpoint, cache):
    async def main():
        how = {"api_base": endpoint.base, "api_key": "sk-test", "cache": cache, "retries": 0}
        calls = (llm.complete("openai/no-choices", ASK, **how) for _ in range(3))
        return await asyncio.gather(*calls, return_exceptions=True)

    errors = run_sync(main())
    assert endpoint.count == 1 and all(isinstance(e, ModelError) for e in errors)
    assert [e.usage.tokens_in for e in errors if e.usage] == [100] and len({id(e) for e in errors}) == 3


# --- the cache --------------------------------------------------------------------------------


def test_a_cached_answer_is_the_same_costs_nothing_and_says_what_it_cost(ask, cache, endpoint):
    paid, again = (ask("gpt-4.1-mini", cache=cache) for _ in range(2))
    assert endpoint.count == 1 and again.message == paid.message
    assert again.usage.cached and again.usage.cost_usd == 0.0 and again.usage.saved_usd == paid.usage.cost_usd > 0
    assert not paid.usage.cached


@pytest.mark.parametrize(
    "change",
    [
        {"sample": 1},
        {"temperature": 0.5},
        {"seed": 3},
        {"max_tokens": 5},
        {"top_k": 4},
        {"tools": [TOOL]},
        {"tools": [TOOL], "tool_choice": "none"},
        {"messages": [{"role": "system", "content": "Be brief."}, *ASK]},
    ],
)
def test_whatever_shapes_the_answer_is_in_the_key(ask, cache, endpoint, change):
    ask(cache=cache)
    ask(cache=cache, **change)
    assert endpoint.count == 2


def test_how_long_to_wait_and_who_asks_are_not_in_the_key(ask, cache, endpoint):
    ask(cache=cache)
    ask(cache=cache, timeout=9.0, retries=0, deadline=50.0, api_key="sk-other", api_base=endpoint.base + "/")
    assert endpoint.count == 1


def test_another_order_of_a_schemas_properties_is_another_question(ask, cache, endpoint):
    def form(*names):
        schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
        return {"type": "json_schema", "json_schema": {"name": "v", "schema": schema}}

    ask(cache=cache, response_format=form("reason", "score"))
    ask(cache=cache, response_format=form("score", "reason"))
    assert endpoint.count == 2


def test_failures_are_not_cached(ask, cache, endpoint):
    fails(ask, "r400", cache=cache)
    fails(ask, "r400", cache=cache)
    assert endpoint.count == 2 and len(cache) == 0


def test_a_replay_answers_from_the_cache_alone(ask, tmp_path, endpoint):
    with Cache(tmp_path / "c") as cache:
        ask(cache=cache)
    with Cache(tmp_path / "c", replay=True) as cache:
        assert ask(cache=cache).text == "answer for 1"
        with pytest.raises(CacheMiss):
            ask(cache=cache, sample=1)
    assert endpoint.count == 1


def test_secrets_are_in_no_cache_no_error_and_no_repr(ask, endpoint, tmp_path, monkeypatch):
    secrets = ["sk-of-the-caller", "a-header-secret", "sk-of-the-environment"]
    monkeypatch.setenv("GROQ_API_KEY", secrets[2])
    how = {"api_key": secrets[0], "extra_headers": {"X-Token": secrets[1]}, "organization": "org-secret"}
    with Cache(tmp_path / "c") as cache:
        answer = ask(cache=cache, **how)
    assert endpoint.headers[0]["authorization"] == f"Bearer {secrets[0]}"
    assert endpoint.headers[0]["x-token"] == secrets[1]
    endpoint.script(lambda body: (400, {}, {"error": {"message": f"you sent {secrets}"}}))
    try:
        error = fails(ask, "good", **how)
    finally:
        endpoint.script(None)
    kept = b"".join(file.read_bytes() for file in (tmp_path / "c").rglob("*") if file.is_file())
    assert "you sent" in str(error)
    for secret in secrets:
        assert secret not in str(error) + repr(answer) and secret.encode() not in kept
    base = "https://me:hunter22@host/v1?key=hunter22"
    assert llm.model_identity("openai/good", {"api_base": base})["api_base"] == "https://host/v1"


# --- parameters a model refuses ---------------------------------------------------------------


def test_a_reasoning_model_gets_no_temperature_and_the_answer_says_so(ask, endpoint, cache):
    for _ in range(2):
        answer = ask("o3", temperature=0, top_p=0.5, cache=cache)  # LiteLLM knows that o3 refuses them
        assert set(answer.dropped) == {"temperature", "top_p"}
    assert endpoint.count == 1 and not {"temperature", "top_p"} & set(endpoint.requests[0])
    assert ask("o3").dropped == ()


def test_a_temperature_that_only_the_provider_refuses_is_dropped_after_one_request(ask, endpoint, monkeypatch):
    monkeypatch.setattr(llm, "_refusals", {})  # what another test of this process found out
    assert ask("no-temperature", temperature=0).dropped == ("temperature",)
    assert ask("no-temperature", temperature=0, sample=1).dropped == ("temperature",)
    assert ["temperature" in body for body in endpoint.requests] == [True, False, False]


def test_parameters_are_never_dropped_globally(ask):
    import litellm

    ask("o3", temperature=0)
    assert not litellm.drop_params and ask("good", temperature=0).dropped == ()


# --- before any call --------------------------------------------------------------------------


def test_an_unknown_provider_is_named_with_the_nearest_one(ask, endpoint):
    with pytest.raises(InputError, match="unknown provider 'opnai'. Did you mean 'openai'?"):
        llm.check_models(["opnai/gpt-4.1"])
    with pytest.raises(InputError, match="provider/name"):
        llm.check_models(["llama"])
    with pytest.raises(InputError, match="'opnai'"):
        ask("opnai/good")
    with pytest.raises(InputError, match="model=None"):
        llm.check_models([None])
    assert endpoint.count == 0


def test_a_missing_key_is_named_by_its_variable(monkeypatch):
    for model, name in [("openai/gpt-4.1", "OPENAI_API_KEY"), ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY")]:
        with pytest.raises(InputError, match=name):
            llm.check_models([model])
        llm.check_models([model], api_key="sk-test")
        llm.check_models([model], api_base="http://127.0.0.1:1/v1")
        monkeypatch.setenv(name, "sk-test")
        llm.check_models([model])
    llm.check_models(["gpt-4.1", "hosted_vllm/anything"])


def test_what_is_known_of_a_model_is_told_without_the_network():
    assert llm.price_known("openai/gpt-4.1-mini") and llm.price_known("anthropic/claude-sonnet-4-5")
    assert not llm.price_known("openai/nobody-knows") and not llm.price_known("hosted_vllm/gpt-4.1-mini")
    assert llm.supports_response_schema("openai/gpt-4.1-mini") and llm.supports_response_schema("openai/nobody-knows")
    assert llm.supports_tools("openai/gpt-4.1-mini") and llm.supports_tools("openai/nobody-knows")
    assert not llm.supports_tools("deepseek/deepseek-reasoner") and not llm.supports_tools("local/smollm2-135m")
