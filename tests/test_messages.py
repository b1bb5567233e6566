"""Tool calls in the messages of OpenAI, Anthropic, Gemini and MCP, in the forms that their references document."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpeval.errors import InputError
from mcpeval.messages import from_anthropic, from_gemini, from_mcp, from_openai, tool_calls_of
from mcpeval.types import ToolCall

OPENAI = [
    {"role": "user", "content": "What is the weather in Paris and Rome?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}},
            {"id": "c2", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"'}},
        ],
    },
    {"role": "tool", "tool_call_id": "c2", "content": "bad arguments"},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "sunny"}]},
    {"role": "assistant", "content": "Sunny."},
]
ANTHROPIC = [
    {"role": "user", "content": "Weather?"},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Paris"}},
            {"type": "mcp_tool_use", "id": "t2", "name": "echo", "server_name": "toys", "input": {"x": 1}},
            {"type": "mcp_tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "1"}]},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "down", "is_error": True}]},
]
GEMINI = [
    {"role": "user", "parts": [{"text": "Lights?"}]},
    {
        "role": "model",
        "parts": [
            {"functionCall": {"name": "lights", "args": {"on": True}}},
            {"functionCall": {"name": "music", "args": {"play": "x"}}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "music", "response": {"error": "no speaker"}}},
            {"function_response": {"name": "lights", "response": {"output": "done"}}},
        ],
    },
]
MCP = [
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1}}},
    {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "boom"}},
    {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "none"}},
    {"jsonrpc": "2.0", "id": 3, "result": {"content": [{"type": "text", "text": "no"}], "isError": True}},
    {"jsonrpc": "2.0", "id": 2, "result": {"content": [], "structuredContent": {"sum": 2}}},
    {"jsonrpc": "2.0", "id": 4, "error": {"code": -32602, "message": "Unknown tool: none"}},
]


def short(calls):
    return [(call.server, call.name, call.arguments, call.is_error) for call in calls]


def text(call: ToolCall) -> str:
    return call.result["content"][0]["text"]


def test_openai_chat_messages():
    calls = from_openai(OPENAI)
    assert short(calls) == [
        (None, "weather", {"city": "Paris"}, False),
        (None, "weather", '{"city": "Rome"', False),  # what is no JSON stays the text it is
    ]
    assert [text(call) for call in calls] == ["sunny", "bad arguments"]


def test_openais_older_function_calls_and_whole_answers():
    old = [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}},
        {"role": "function", "name": "f", "content": "1"},
    ]
    [call] = from_openai(old)
    assert (call.arguments, text(call)) == ({}, "1")
    assert short(from_openai({"choices": [{"index": 0, "message": OPENAI[1]}]})) == short(from_openai(OPENAI[1]))


def test_anthropic_content_blocks():
    calls = from_anthropic(ANTHROPIC)
    assert short(calls) == [
        (None, "weather", {"city": "Paris"}, True),
        ("toys", "echo", {"x": 1}, False),
    ]
    assert [text(call) for call in calls] == ["down", "1"]
    assert [call.name for call in from_anthropic(ANTHROPIC[1]["content"])] == ["weather", "echo"]


def test_gemini_parts_are_paired_by_name_where_they_have_no_id():
    calls = from_gemini(GEMINI)
    assert short(calls) == [
        (None, "lights", {"on": True}, False),
        (None, "music", {"play": "x"}, True),
    ]
    assert calls[0].result["structuredContent"] == {"output": "done"}
    answer = {"candidates": [{"content": GEMINI[1], "finishReason": "STOP"}]}
    assert [call.name for call in from_gemini(answer)] == ["lights", "music"]
    assert [call.name for call in from_gemini([{"function_call": {"name": "f", "args": {}}}])] == ["f"]


def test_gemini_calls_with_ids_are_paired_by_them():
    parts = [
        {"functionCall": {"id": "1", "name": "f", "args": {"x": 1}}},
        {"functionCall": {"id": "2", "name": "f", "args": {"x": 2}}},
        {"functionResponse": {"id": "2", "name": "f", "response": {"result": "two"}}},
    ]
    first, second = from_gemini([{"role": "model", "parts": parts}])
    assert (first.result, second.result["structuredContent"]) == (None, {"result": "two"})


def test_mcps_wire_messages_are_paired_by_id():
    calls = from_mcp(MCP, server="sums")
    assert short(calls) == [
        ("sums", "add", {"a": 1}, False),
        ("sums", "boom", {}, True),
        ("sums", "none", {}, True),
    ]
    assert calls[0].result == MCP[6]["result"]
    assert (calls[2].result, calls[2].error) == (None, "Unknown tool: none")


@pytest.mark.parametrize(
    ("parser", "messages"),
    [(from_openai, OPENAI), (from_anthropic, ANTHROPIC), (from_gemini, GEMINI), (from_mcp, MCP)],
)
def test_the_form_of_messages_is_recognised(parser, messages):
    assert tool_calls_of(messages) == parser(messages)
    others = {from_openai, from_anthropic, from_gemini, from_mcp} - {parser}
    assert [other(messages) for other in others] == [[]] * 3


def test_ids_that_a_model_uses_again_are_answered_in_turn():
    def turn(x):
        asked = {"id": "call_0", "function": {"name": "f", "arguments": f'{{"x": {x}}}'}}
        return [
            {"role": "assistant", "tool_calls": [asked]},
            {"role": "tool", "tool_call_id": "call_0", "content": str(x)},
        ]

    assert [text(call) for call in from_openai([*turn(1), *turn(2)])] == ["1", "2"]


def test_a_call_without_an_answer_has_no_result_and_an_answer_without_a_call_is_passed_over():
    [call] = from_openai([OPENAI[2], OPENAI[3], {**OPENAI[1], "tool_calls": OPENAI[1]["tool_calls"][:1]}])
    assert (call.result, call.is_error) == (None, False)


def test_an_sdks_objects_are_read_as_their_json():
    openai = pytest.importorskip("openai.types.chat")
    message = openai.ChatCompletionMessage.model_validate(OPENAI[1])
    assert short(from_openai([message])) == short(from_openai(OPENAI[1]))


@pytest.mark.parametrize(
    ("messages", "where"),
    [
        ([{"role": "user"}, "text"], r"messages\[1\] is 'text'"),
        ([{"role": "assistant", "tool_calls": [{"id": "1", "function": {}}]}], r"messages\[0\].tool_calls\[0\] is"),
        ([{"role": "model", "parts": [{"functionCall": {"args": {}}}]}], r"messages\[0\].parts\[0\] is"),
        ([{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}], r"messages\[0\].params is None"),
    ],
)
def test_a_call_that_cannot_be_read_is_named_and_never_dropped(messages, where):
    with pytest.raises(InputError, match=where):
        tool_calls_of(messages)


KEYS = st.sampled_from(["role", "content", "parts", "tool_calls", "type", "choices", "jsonrpc", "functionCall"])
VALUES = st.none() | st.booleans() | st.text() | st.sampled_from(["assistant", "tool", "tool_use", "tool_result"])


@given(st.recursive(VALUES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)))
@settings(max_examples=200, deadline=None)
def test_whatever_is_given_it_reads_calls_or_says_what_is_wrong(messages):
    try:
        assert isinstance(tool_calls_of(messages), list)
    except InputError:
        pass
