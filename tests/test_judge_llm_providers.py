"""judge-llm's providers as agents: models spoken to turn by turn, the mock, and one's own."""

from __future__ import annotations

import json
import re

import pytest

from mcpeval.errors import InputError
from mcpeval.interop.judge_llm import read_config, run_config
from mcpeval.interop.judge_llm.providers import agent_of

from .configurations import CONFIG, case, turn, writer


@pytest.fixture
def write(tmp_path, monkeypatch):
    return writer(tmp_path, monkeypatch)


# Models


def test_a_model_is_told_every_turn_and_answers_each(write, endpoint, cache):
    cases = [
        case("two", turn("one", "answer for one"), turn("two", "x"), session_input={"system_instruction": "Be brief."})
    ]
    provider = (
        f"type: openai\n    model: good\n    agent_id: gpt\n    api_base: {endpoint.base}\n    api_key: sk-secret-key"
    )
    path = write(CONFIG.replace("type: mock\n    agent_id: echo", provider), cases)
    endpoint.script(lambda body: f"answer for {body['messages'][-1]['content']}")
    done = run_config(path, cache=cache)
    assert [[m["role"] for m in body["messages"]] for body in endpoint.requests] == [
        ["system", "user"],
        ["system", "user", "assistant", "user"],
    ]
    assert endpoint.requests[0]["messages"][0]["content"] == "Be brief."
    assert endpoint.requests[0]["temperature"] == 0.7  # as judge-llm's documentation has it
    assert done.runs["model"].tolist() == ["openai/good"]
    assert done.scores["metadata"][0]["turns"] == [1.0, 0.0]
    assert done.runs["metadata"][0]["provider_type"] == "openai"
    again = run_config(path, cache=cache)
    assert endpoint.count == 2
    assert again.runs["cached"].tolist() == [True]
    assert "sk-secret-key" not in json.dumps(done.runs["metadata"].tolist())


def test_a_provider_that_fails_is_an_error_and_no_low_score(write, endpoint):
    provider = f"type: openai\n    model: r401\n    agent_id: gpt\n    api_base: {endpoint.base}\n    api_key: sk-test"
    endpoint.script(lambda body: (401, {}, {"error": {"message": "no such key", "type": "x", "code": None}}))
    done = run_config(write(CONFIG.replace("type: mock\n    agent_id: echo", provider)), cache=False)
    assert done.runs["status"].tolist() == ["error", "error"]
    assert done.scores["status"].tolist() == ["skipped", "skipped"]
    assert done.exit_code == 1


@pytest.mark.parametrize(
    ("given", "model", "params"),
    [
        (
            {"type": "gemini"},
            "gemini/gemini-2.0-flash-exp",
            {"max_tokens": 8192, "top_k": 40, "temperature": 1.0, "top_p": 0.95},
        ),
        ({"type": "gemini", "model": "gemini-1.5-pro", "top_k": 1}, "gemini/gemini-1.5-pro", {"top_k": 1}),
        ({"type": "openai", "model": "gpt-4.1"}, "openai/gpt-4.1", {"temperature": 0.7}),
        ({"type": "anthropic"}, "anthropic/claude-3-5-sonnet-20241022", {"max_tokens": 4096}),
        ({"type": "litellm", "model": "mistral/mistral-large"}, "mistral/mistral-large", {}),
        ({"type": "openai", "model": "azure/mine"}, "azure/mine", {}),
    ],
)
def test_providers_are_models_of_litellm(write, given, model, params):
    text = "providers: [" + json.dumps({"agent_id": "a", **given}) + "]\n"
    [entry] = read_config(write(re.sub(r"providers:\n.*\n.*\n", text, CONFIG))).providers
    agent = agent_of(entry, {}, theirs=False)
    assert (agent.name, agent.model) == ("a", model)
    assert params.items() <= agent.function.params.items()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{type: gemni, agent_id: a}", "type='gemni' is no provider. Did you mean 'gemini'?"),
        ("{type: google_adk, agent_id: a}", "runs an agent of Google's ADK"),
        ("{type: mock}", "agent_id=None should be a text"),
        ("{type: litellm, agent_id: a, model: gpt-4}", "should be a whole LiteLLM name"),
        ("{type: custom, agent_id: a}", "type: custom needs module_path"),
        ("{type: mock, agent_id: a}, {type: mock, agent_id: a}", "2 providers have the agent_id 'a'"),
        ("{type: openai, agent_id: a}", "OPENAI_API_KEY"),
        ("{agent_id: a}", "type=None should be a text"),
        ("", "providers has nothing to do"),
    ],
)
def test_a_provider_that_cannot_be_used_is_named_before_anything_is_sent(write, entry, message):
    path = write(re.sub(r"providers:\n.*\n.*\n", f"providers: [{entry}]\n", CONFIG))
    with pytest.raises(InputError) as refused:
        run_config(path, cache=False)
    assert message in str(refused.value)


def test_the_mock_calls_the_expected_tools_and_hands_over(write):
    uses = [{"id": "1", "name": "search", "args": {"q": "France"}}]
    transfers = [{"type": "agent_transfer", "from_agent": "root", "to_agent": "geo"}]
    cases = [case("paris", turn("q", "Paris", tool_uses=uses, intermediate_responses=transfers))]
    text = CONFIG + "  - type: trajectory_evaluator\n  - type: subagent_evaluator\n"
    done = run_config(write(text, cases), cache=False)
    assert done.exit_code == 0
    assert done.runs["tool_calls"][0][0]["arguments"] == {"q": "France"}
    assert done.runs["expected_tool_calls"][0] == [{"name": "search", "arguments": {"q": "France"}}]
    assert done.scores["reason"][0].tolist()[2].endswith("expected: root > geo; came: root > geo")


def test_the_mock_costs_nothing_unless_judge_llms_made_up_price_is_asked_for(write):
    cases = [case("paris", turn("q" * 60, "a" * 40))]
    assert run_config(write(cases=cases), cache=False).runs["cost_usd"].tolist() == [0.0]
    assert run_config(write(cases=cases), cache=False, compat="judge-llm").runs["cost_usd"].tolist() == pytest.approx(
        [0.001]
    )


# Providers of one's own


def test_a_provider_of_one_s_own_is_an_agent(write, tmp_path):
    (tmp_path / "own.py").write_text(
        """
from judge_llm.core.models import Content, Invocation, Part, ProviderResult
from judge_llm.providers.base import BaseProvider


class Shouting(BaseProvider):
    def execute(self, eval_case):
        if eval_case.eval_id == "rome":
            return ProviderResult(success=False, error="no answer today")
        turns = [
            Invocation(user_content=turn.user_content, final_response=Content(parts=[Part(text="PEACE")]))
            for turn in eval_case.conversation
        ]
        tokens = {"prompt_tokens": 1, "completion_tokens": 2}
        return ProviderResult(conversation_history=turns, cost=0.5, token_usage=tokens)

    def cleanup(self):
        open(self.provider_metadata["done"], "w").close()
"""
    )
    done = tmp_path / "done"
    own = {
        "type": "custom",
        "module_path": "own.py",
        "class_name": "Shouting",
        "agent_id": "me",
        "done": str(done),
    }
    path = write(re.sub(r"providers:\n.*\n.*\n", f"providers: [{json.dumps(own)}]\n", CONFIG))
    with pytest.raises(InputError, match=r"providers\[0\] wants to run"):
        run_config(path, cache=False)
    found = run_config(path, trust=True, cache=False)
    assert found.runs["output"].fillna("-").tolist() == ["PEACE", "-"]
    assert found.runs["cost_usd"].tolist()[0] == 0.5
    assert found.runs["error"].tolist()[1] == "no answer today"
    assert found.scores["status"].tolist() == ["ok", "skipped"]
    assert done.exists()
