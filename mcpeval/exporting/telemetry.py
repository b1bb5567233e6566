"""Spans to an OpenTelemetry collector (`to_otlp`), by the semantic conventions for generative AI."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pandas as pd

from .. import __version__
from .._calls import bare_address, check_patience, without_secrets
from ..errors import InputError, McpevalError
from ..frames import rows_of
from ..tracing import spans_of

PATH = "/v1/traces"
BATCH = 500
OPERATIONS = {"agent": "invoke_agent", "workflow": "invoke_workflow", "llm": "chat", "tool": "execute_tool"}
#: LiteLLM's names of providers, where the conventions have another.
PROVIDERS = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "bedrock_converse": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}


def to_otlp(
    runs: pd.DataFrame,
    endpoint: str,
    *,
    headers: Mapping[str, str] | None = None,
    content: bool = False,
    service: str = "mcpeval",
    timeout: float = 10.0,
) -> int:
    """Send the spans of runs to an OpenTelemetry collector over OTLP/HTTP.

    Each run is a trace of its own, with the times at which it was made; sent again it has the same
    ids. Needs ``pip install 'mcpeval[otel]'``.

    Parameters
    ----------
    runs : DataFrame
        Reads ``spans``, ``metadata`` and ``run_id``; ``task_id``, ``category``, ``agent``, ``trial``
        and ``cached`` where they are there; ``messages`` and ``tool_calls`` with `content`. A run
        without spans, or that does not say when it began, is left out.
    endpoint : str
        Such as ``"http://localhost:4318"``; where it has no path, ``/v1/traces`` is added.
    headers : dict, optional
        Sent along, such as ``{"Authorization": "Bearer ..."}``; never shown. Without them those of
        ``OTEL_EXPORTER_OTLP_HEADERS``.
    content : bool
        Whether what models and tools were asked, what they answered, and the texts of errors are sent
        too.
    service : str
        ``service.name`` of the resource.
    timeout : float
        Seconds for each request of up to 500 spans, its repetitions after a transient failure included.

    Returns
    -------
    int
        Spans that were sent.

    Raises
    ------
    InputError
        The extra ``otel`` is not installed, `endpoint` is no http address, `runs` has no column
        ``spans``, or `timeout` is no time. Nothing was sent.
    McpevalError
        The collector cannot be reached or does not take the spans; how many it took is said.

    Notes
    -----
    Attributes are those of the OpenTelemetry semantic conventions for generative AI and MCP:
    ``gen_ai.operation.name`` (``invoke_agent``, ``invoke_workflow``, ``chat``, ``execute_tool``),
    ``gen_ai.request.model``, ``gen_ai.usage.input_tokens`` and so on. What they have no name for
    begins with ``mcpeval.``: ``run_id``, ``task_id``, ``category``, ``trial``, ``cached``,
    ``cost_usd``, ``n_failed`` (attempts that failed before one was answered), ``server``.
    """
    for name in ("spans", "metadata"):
        if not isinstance(runs, pd.DataFrame) or name not in runs.columns:
            raise InputError(f"to_otlp: runs should be a frame with a column {name!r}, as mcpeval.run gives it")
    check_patience({"timeout": timeout}, "to_otlp")
    address = _address(endpoint)
    exporter, session = _exporter(address, headers, timeout)
    sent = 0
    try:
        made = list(_spans(runs, service, content))
        for start in range(0, len(made), BATCH):
            batch = made[start : start + BATCH]
            try:
                taken = exporter.export(batch).name == "SUCCESS"
            except OSError:  # older exporters let what their request raised through; the session knows it too
                taken = False
            if not taken or session.problem:
                why = without_secrets(session.problem or f"no answer within {timeout:g} s", {"headers": headers or {}})
                raise McpevalError(
                    f"to_otlp: {bare_address(address)} did not take the spans ({sent} of {len(made)} sent): {why}"
                )
            sent += len(batch)
    finally:
        exporter.shutdown()
    return sent


def _address(endpoint: Any) -> str:
    parts = urlsplit(endpoint) if isinstance(endpoint, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.netloc:
        shown = bare_address(endpoint) if parts else repr(endpoint)[:80]
        raise InputError(f"to_otlp: endpoint={shown} should be an address such as 'http://localhost:4318'")
    return urlunsplit(parts._replace(path=PATH)) if parts.path in ("", "/") else endpoint


def _exporter(address: str, headers: Mapping[str, str] | None, timeout: float) -> tuple[Any, Any]:
    """OpenTelemetry's exporter, and the HTTP session that it uses, which knows what went wrong last."""
    try:
        import requests
        from opentelemetry.exporter.otlp.proto.http import Compression
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
    except ImportError as error:
        raise InputError("to_otlp needs OpenTelemetry: pip install 'mcpeval[otel]'") from error

    class Session(requests.Session):
        problem = ""

        def request(self, *args: Any, **more: Any) -> requests.Response:
            try:
                response = super().request(*args, **more)
            except requests.RequestException as error:
                self.problem = f"the request failed with {type(error).__name__}"
                raise
            self.problem = f"HTTP {response.status_code}: {response.text[:300]}" if response.status_code > 299 else ""
            if not self.problem and response.headers.get("Content-Type") == "application/x-protobuf":
                said = ExportTraceServiceResponse.FromString(response.content).partial_success
                if said.rejected_spans:
                    self.problem = f"{said.rejected_spans} of them were rejected: {said.error_message[:300]}"
            return response

    session = Session()
    sent = None if headers is None else {str(name): str(value) for name, value in headers.items()}
    compression = Compression.Gzip
    return OTLPSpanExporter(address, headers=sent, timeout=timeout, compression=compression, session=session), session


def _spans(runs: pd.DataFrame, service: str, content: bool) -> Iterator[Any]:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    resource, scope = Resource.create({"service.name": service}), InstrumentationScope("mcpeval", __version__)
    sampled = TraceFlags(TraceFlags.SAMPLED)
    for label, row in zip(runs.index.tolist(), rows_of(runs)):
        began = _began(row)
        if began is None:
            continue
        run_id = str(row.get("run_id") or label)
        trace = _number(16, run_id, str(row["metadata"]["started"]))
        contexts: dict[Any, Any] = {}
        for span in spans_of(row["spans"], run_id):
            number = _number(8, str(trace), str(span["span"]))
            contexts[span["span"]] = SpanContext(trace, number, is_remote=False, trace_flags=sampled)
            start = began + round(span.get("start", 0.0) * 1e9)
            failed = Status(StatusCode.ERROR, span.get("error") if content else None)
            yield ReadableSpan(
                f"{OPERATIONS[span['kind']]} {_name(span)}",
                context=contexts[span["span"]],
                parent=contexts.get(span.get("parent")),
                resource=resource,
                attributes=_attributes(span, row, run_id) | (_content(span, row) if content else {}),
                kind=SpanKind.CLIENT if span["kind"] == "llm" else SpanKind.INTERNAL,
                status=Status(StatusCode.UNSET) if span.get("error_class") is None else failed,
                start_time=start,
                end_time=start + round(span.get("seconds", 0.0) * 1e9),
                instrumentation_scope=scope,
            )


def _began(row: Mapping[str, Any]) -> int | None:
    """When a run began, in nanoseconds since 1970; None where it does not say."""
    metadata = row["metadata"]
    try:
        moment = datetime.fromisoformat(metadata["started"])
    except (TypeError, ValueError, LookupError):
        return None
    return int(moment.timestamp() * 1000) * 1_000_000


def _number(size: int, *texts: str) -> int:
    """An id of `size` bytes that hangs on `texts` alone; never 0, which stands for none."""
    return int.from_bytes(hashlib.sha256("\0".join(texts).encode()).digest()[:size], "big") or 1


def _name(span: Mapping[str, Any]) -> str:
    """Of a model without its provider."""
    return span["name"].partition("/")[2] or span["name"] if span["kind"] == "llm" else span["name"]


def _attributes(span: Mapping[str, Any], row: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    kind = span["kind"]
    found = {
        "gen_ai.operation.name": OPERATIONS[kind],
        "gen_ai.conversation.id": run_id,
        "gen_ai.agent.name": span["part"] if kind != "workflow" else None,
        "gen_ai.workflow.name": span["name"] if kind == "workflow" else None,
        "gen_ai.usage.input_tokens": span.get("tokens_in"),
        "gen_ai.usage.output_tokens": span.get("tokens_out"),
        "error.type": span.get("error_class"),
        "mcpeval.cost_usd": span.get("cost_usd"),
        "mcpeval.cached": span.get("cached"),
        "mcpeval.n_failed": span["n_failed"] or None,
    }
    if kind == "llm":
        provider, slash, _ = span["name"].partition("/")
        found["gen_ai.request.model"] = _name(span)
        found["gen_ai.response.model"] = span.get("model_returned")
        found["gen_ai.provider.name"] = PROVIDERS.get(provider, provider) if slash else None
    elif kind == "tool":
        found["gen_ai.tool.name"] = span["name"]
        found["gen_ai.tool.type"] = "extension"
        if span.get("server") is not None:
            found |= {"mcp.method.name": "tools/call", "mcpeval.server": span["server"]}
    elif span.get("parent") is None:
        names = ("task_id", "category", "trial")
        found |= {"mcpeval.run_id": run_id, **{f"mcpeval.{name}": row.get(name) for name in names}}
    return {name: value for name, value in found.items() if value is not None}


# --- content ------------------------------------------------------------------------------------


def _content(span: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, str]:
    """What was asked and answered, as the conventions have it: JSON texts."""
    if span["kind"] == "tool":
        calls, place = row.get("tool_calls") or [], span.get("tool_call")
        if place is None or place >= len(calls):
            return {}
        call = calls[place]
        came = call.get("result") if call.get("result") is not None else call.get("error")
        return {"gen_ai.tool.call.arguments": _json(call.get("arguments")), "gen_ai.tool.call.result": _json(came)}
    if span["kind"] != "llm" or span.get("messages") is None:
        return {}
    first, stop = span["messages"]
    said = [message for message in (row.get("messages") or [])[first:stop] if isinstance(message, Mapping)]
    said = [message for message in said if message.get("agent") == said[0].get("agent")]
    answer = [] if span.get("error_class") else said[-1:]
    asked = said[: len(said) - len(answer)]
    system = [part for message in asked if message.get("role") == "system" for part in _parts(message)]
    found = {
        "gen_ai.system_instructions": system,
        "gen_ai.input.messages": [_message(m) for m in asked if m.get("role") != "system"],
        "gen_ai.output.messages": [{**_message(m), "finish_reason": _reason(m)} for m in answer],
    }
    return {name: _json(value) for name, value in found.items() if value}


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": message.get("role"), "parts": _parts(message)}


def _parts(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The parts of a chat message: texts, tool calls, a tool's response."""
    content = message.get("content")
    if message.get("role") == "tool":
        return [{"type": "tool_call_response", "id": message.get("tool_call_id"), "response": content}]
    texts = [content] if isinstance(content, str) else [p.get("text") for p in content or () if isinstance(p, Mapping)]
    parts: list[dict[str, Any]] = [{"type": "text", "content": text} for text in texts if text]
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        about = {"id": call.get("id"), "name": function.get("name"), "arguments": function.get("arguments")}
        parts.append({"type": "tool_call", **about})
    return parts


def _reason(message: Mapping[str, Any]) -> str:
    return "tool_call" if message.get("tool_calls") else "stop"


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=True, default=str)
