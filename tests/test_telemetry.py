"""Spans to an OpenTelemetry collector: a real one on loopback, that decodes what it is sent."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pandas as pd
import pytest

from mcpeval.agents import Agent, chain
from mcpeval.errors import InputError, McpevalError
from mcpeval.exporting import read_parquet, to_otlp, to_parquet
from mcpeval.exporting import telemetry as telemetry_module
from mcpeval.running import run
from mcpeval.testing import ScriptedModel, toy_server
from mcpeval.tracing import spans

trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
trace = pytest.importorskip("opentelemetry.proto.trace.v1.trace_pb2")

ADD = ("add", {"a": 1, "b": 2})
SECRET = "Bearer sk-collector-0001"


class Collector:
    """An OTLP/HTTP collector that keeps what it is sent, and answers with `status`."""

    def __init__(self):
        self.requests, self.headers, self.paths = [], [], []
        self.status, self.answer, self.kind = 200, b"", "application/x-protobuf"
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                data = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    data = gzip.decompress(data)
                collector.requests.append(trace_service.ExportTraceServiceRequest.FromString(data))
                collector.headers.append({name.lower(): value for name, value in self.headers.items()})
                collector.paths.append(self.path)
                self.send_response(collector.status)
                self.send_header("Content-Type", collector.kind)
                self.send_header("Content-Length", str(len(collector.answer)))
                self.end_headers()
                self.wfile.write(collector.answer)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def spans(self):
        """Every span received, with its attributes as a dict."""
        found = []
        for request in self.requests:
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    found += [(span, attributes(span.attributes)) for span in scope.spans]
        return found


def attributes(given):
    return {entry.key: getattr(entry.value, entry.value.WhichOneof("value")) for entry in given}


@pytest.fixture
def collector():
    collector = Collector()
    yield collector
    collector.server.shutdown()
    collector.server.server_close()


@pytest.fixture(scope="module")
def runs():
    """A run with tools, one of which fails, a workflow, and a run whose model refuses."""

    def script(body):
        if body["messages"][0]["content"] == "Refuse.":
            return {"content": None}
        step = sum(message["role"] == "assistant" for message in body["messages"])
        return [[ADD, ("boom", {"message": "no"})], "It is 3."][step]

    with ScriptedModel(script) as model:
        one = Agent(model.model, name="one", system="Count well.", **model.params)
        bad = Agent("openai/scripted", "basic", name="bad", api_base="http://127.0.0.1:9/v1", api_key="k", retries=0)
        agents = [one, chain([one], name="flow"), bad]
        return run([{"id": "sum", "question": "What is 1 + 2?"}], agents, servers={"toy": toy_server}, cache=False)


def test_every_span_arrives_with_the_names_of_the_semantic_conventions(runs, collector):
    conventions = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    assert to_otlp(runs, collector.base) == len(spans(runs)) == len(collector.spans())
    assert collector.paths == ["/v1/traces"]
    found = {(span.name, values["gen_ai.agent.name"]): values for span, values in collector.spans()[:5]}
    assert list(found) == [
        ("invoke_agent one", "one"),
        ("chat scripted", "one"),
        ("execute_tool add", "one"),
        ("execute_tool boom", "one"),
    ]
    run_id = runs["run_id"][0]
    assert found["invoke_agent one", "one"] == {
        conventions.GEN_AI_OPERATION_NAME: conventions.GenAiOperationNameValues.INVOKE_AGENT.value,
        conventions.GEN_AI_CONVERSATION_ID: run_id,
        conventions.GEN_AI_AGENT_NAME: "one",
        "mcpeval.run_id": run_id,
        "mcpeval.task_id": "sum",
        "mcpeval.category": "general",
        "mcpeval.trial": 0,
    }
    assert found["chat scripted", "one"] == {
        conventions.GEN_AI_OPERATION_NAME: conventions.GenAiOperationNameValues.CHAT.value,
        conventions.GEN_AI_CONVERSATION_ID: run_id,
        conventions.GEN_AI_AGENT_NAME: "one",
        conventions.GEN_AI_PROVIDER_NAME: conventions.GenAiProviderNameValues.OPENAI.value,
        conventions.GEN_AI_REQUEST_MODEL: "scripted",
        conventions.GEN_AI_RESPONSE_MODEL: "scripted",
        conventions.GEN_AI_USAGE_INPUT_TOKENS: 10,
        conventions.GEN_AI_USAGE_OUTPUT_TOKENS: 5,
        "mcpeval.cached": False,
    }
    assert found["execute_tool boom", "one"] == {
        conventions.GEN_AI_OPERATION_NAME: conventions.GenAiOperationNameValues.EXECUTE_TOOL.value,
        conventions.GEN_AI_CONVERSATION_ID: run_id,
        conventions.GEN_AI_AGENT_NAME: "one",
        conventions.GEN_AI_TOOL_NAME: "boom",
        conventions.GEN_AI_TOOL_TYPE: "extension",
        "error.type": "tool",
        "mcp.method.name": "tools/call",
        "mcpeval.server": "toy",
    }
    [flow] = [values for span, values in collector.spans() if span.name == "invoke_workflow flow"]
    assert flow[conventions.GEN_AI_WORKFLOW_NAME] == "flow"
    resource = attributes(collector.requests[0].resource_spans[0].resource.attributes)
    assert resource["service.name"] == "mcpeval"


def test_the_providers_are_those_that_the_conventions_know():
    conventions = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    known = {entry.value for entry in conventions.GenAiProviderNameValues}
    assert set(telemetry_module.PROVIDERS.values()) <= known
    operations = {entry.value for entry in conventions.GenAiOperationNameValues}
    assert set(telemetry_module.OPERATIONS.values()) <= operations


def test_a_run_is_a_trace_with_parents_kinds_statuses_and_the_times_at_which_it_was_made(runs, collector):
    to_otlp(runs, collector.base)
    sent = [span for span, _ in collector.spans()]
    table = spans(runs)
    began = dict(zip(runs["agent"], (datetime.fromisoformat(m["started"]).timestamp() for m in runs["metadata"])))
    assert len({span.trace_id for span in sent}) == len(runs) and len({span.span_id for span in sent}) == len(table)
    ids = {(agent, number): span.span_id for span, agent, number in zip(sent, table["agent"], table["span"])}
    for span, (_, row) in zip(sent, table.iterrows(), strict=True):
        parent = b"" if pd.isna(row["parent"]) else ids[row["agent"], row["parent"]]
        assert span.parent_span_id == parent
        assert span.start_time_unix_nano / 1e9 == pytest.approx(began[row["agent"]] + row["start"], abs=2e-6)
        assert (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9 == pytest.approx(row["seconds"], abs=2e-6)
        client = row["kind"] == "llm"
        assert span.kind == (trace.Span.SPAN_KIND_CLIENT if client else trace.Span.SPAN_KIND_INTERNAL)
        failed = not pd.isna(row["error_class"])
        assert span.status.code == (trace.Status.STATUS_CODE_ERROR if failed else trace.Status.STATUS_CODE_UNSET)


def test_a_run_that_is_sent_again_has_the_same_ids_and_a_trace_of_a_file_too(runs, collector, tmp_path):
    to_otlp(runs, collector.base)
    to_otlp(read_parquet(to_parquet(runs, tmp_path / "runs.parquet")), collector.base)
    first, second = (request.SerializeToString() for request in collector.requests)
    assert first == second


def test_what_was_said_is_sent_only_where_it_is_asked_for(runs, collector):
    to_otlp(runs, collector.base)
    text = str(collector.requests[0])
    assert not any(
        word in text for word in ("What is 1 + 2?", "It is 3.", "Count well", "Error executing", "Connection")
    )
    collector.requests.clear()
    to_otlp(runs, collector.base, content=True)
    found = [values for _, values in collector.spans()]
    chat = found[4]
    assert json.loads(chat["gen_ai.system_instructions"]) == [{"type": "text", "content": "Count well."}]
    asked = json.loads(chat["gen_ai.input.messages"])
    assert asked[0] == {"role": "user", "parts": [{"type": "text", "content": "What is 1 + 2?"}]}
    assert [message["role"] for message in asked] == ["user", "assistant", "tool", "tool"]
    call = {"type": "tool_call", "id": "call_0", "name": "add", "arguments": '{"a": 1, "b": 2}'}
    assert asked[1]["parts"][0] == call
    assert asked[2]["parts"] == [{"type": "tool_call_response", "id": "call_0", "response": "3.0"}]
    assert json.loads(chat["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "It is 3."}], "finish_reason": "stop"}
    ]
    assert json.loads(found[2]["gen_ai.tool.call.arguments"]) == {"a": 1, "b": 2}
    assert json.loads(found[2]["gen_ai.tool.call.result"])["structuredContent"] == {"result": 3.0}
    failed = [values for span, values in collector.spans() if values.get("error.type") == "model"]
    assert all("gen_ai.output.messages" not in values for values in failed)
    assert "Error executing tool boom" in collector.spans()[3][0].status.message


def test_headers_are_sent_and_shown_nowhere(runs, collector):
    to_otlp(runs, f"{collector.base}/custom/v1/traces?key=k", headers={"Authorization": SECRET})
    assert collector.headers[0]["authorization"] == SECRET
    assert collector.paths == ["/custom/v1/traces?key=k"]
    assert SECRET not in str(collector.requests[0])
    collector.status, collector.answer = 401, f"wrong key {SECRET}".encode()
    with pytest.raises(McpevalError) as refused:
        to_otlp(runs, collector.base.replace("http://", "http://me:pass-word@"), headers={"Authorization": SECRET})
    assert "HTTP 401: wrong key ***" in str(refused.value) and "pass-word" not in str(refused.value)


@pytest.mark.parametrize("status", [400, 302, 500])
def test_a_collector_that_refuses_is_an_error_that_says_so(runs, collector, status):
    collector.status, collector.answer = status, b"the disk is full"
    with pytest.raises(McpevalError, match=rf"\(0 of {len(spans(runs))} sent\): HTTP {status}: the disk is full"):
        to_otlp(runs, collector.base, timeout=1)


def test_spans_that_the_collector_rejects_are_an_error(runs, collector):
    said = {"rejected_spans": 2, "error_message": "too old"}
    collector.answer = trace_service.ExportTraceServiceResponse(partial_success=said).SerializeToString()
    with pytest.raises(McpevalError, match="2 of them were rejected: too old"):
        to_otlp(runs, collector.base)


def test_an_endpoint_that_is_down_or_never_answers_is_an_error_and_no_hang(runs):
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(McpevalError, match="did not take the spans .* the request failed with ConnectionError"):
            to_otlp(runs, address, timeout=0.5)
        listening.listen()
        with pytest.raises(McpevalError, match="did not take the spans .* ReadTimeout|no answer within 0.5 s"):
            to_otlp(runs, address, timeout=0.5)


def test_many_spans_go_in_several_requests(runs, collector):
    many = pd.concat([runs] * 50, ignore_index=True)
    many["run_id"] = [f"r{i}" for i in range(len(many))]
    assert to_otlp(many, collector.base) == 50 * len(spans(runs)) == len(collector.spans())
    assert len(collector.requests) > 1


def test_runs_without_spans_or_without_a_time_are_left_out(runs, collector):
    old = runs.assign(spans=[[], None, runs["spans"][2]], metadata=[{"started": "2026-01-01T00:00:00+00:00"}, {}, {}])
    assert to_otlp(old, collector.base) == 0 and collector.requests == []


def test_what_cannot_be_sent_is_refused(runs):
    for given, endpoint, more, said in (
        (runs, "localhost:4318", {}, "should be an address such as"),
        (runs, None, {}, "should be an address such as"),
        (runs.drop(columns="spans"), "http://localhost:4318", {}, "with a column 'spans'"),
        ([], "http://localhost:4318", {}, "with a column 'spans'"),
        (runs, "http://localhost:4318", {"timeout": 0}, "timeout=0 should be"),
    ):
        with pytest.raises(InputError, match=said):
            to_otlp(given, endpoint, **more)
