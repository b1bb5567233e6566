"""A real HTTP endpoint on loopback that speaks OpenAI's chat completions, and fails on request.

In a test, `Endpoint` runs it in a thread of its own; as a process::

    python -m tests.endpoint --port 0 --port-file FILE [--latency SECONDS]

What it answers depends on the model's name (``openai/NAME`` at a client):

``good``
    A value of the asked JSON schema, else a call of the forced (or first) tool, else a text; after
    a tool's result, a text.  Deterministic: the verdict hangs on the marker ``ROW-<digits>`` in the
    messages, else on the messages.
any name in `ANSWERS`
    An answer with status 200 that is wrong in that way.
any name in `FAULTS`
    A failure of the transport or the provider.
``NAME-once``, ``NAME-twice``
    That fault for the first (two) requests of a row, ``good`` afterwards.
any other name
    ``good``.

``GET /__stats`` gives the counters, ``GET /__requests`` the bodies and headers received,
``POST /__reset`` forgets both, ``POST /__config {"latency": 0.1}`` changes the latency.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import threading
import time
import zlib
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path
from typing import Any

USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
REASON = "The answer was compared with the reference."
_ROW = re.compile(r"ROW-(\d+)")
_TIMES = {"once": 1, "twice": 2}


# --- what a good model says -------------------------------------------------------------------


def row_of(body: dict[str, Any]) -> str:
    """The row a request belongs to: its ``ROW-<digits>`` marker, else a name for its messages."""
    text = json.dumps(body.get("messages"))
    found = _ROW.search(text)
    return found.group(1) if found else f"h{zlib.crc32(text.encode()):08x}"


def verdict(row: str) -> int:
    """The good model's verdict on a row, 1 to 5."""
    return 1 + zlib.crc32(row.encode()) % 5


def value_of(schema: dict[str, Any], row: str, root: dict[str, Any] | None = None) -> Any:
    """A value that a JSON schema allows, the same for the same row."""
    root, v = root or schema, verdict(row)
    if "$ref" in schema:
        node: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            node = node[part]
        return value_of(node, row, root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][(v - 1) % len(schema["enum"])]
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            return value_of(schema[word][0], row, root)
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        return {name: value_of(part, row, root) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [value_of(schema.get("items", {}), row, root) for _ in range(max(1, schema.get("minItems", 1)))]
    if kind in ("integer", "number"):
        low, high = schema.get("minimum", 1), schema.get("maximum", 5)
        share = low + (high - low) * (v - 1) / 4
        return round(share) if kind == "integer" else share
    return {"boolean": v >= 3, "null": None}.get(kind, REASON[: schema.get("maxLength", 999)])


def good(body: dict[str, Any]) -> dict[str, Any]:
    """The message a working model answers with."""
    row, form, tools = row_of(body), body.get("response_format") or {}, body.get("tools") or []
    if form.get("type") == "json_schema":
        return {"content": json.dumps(value_of(form["json_schema"]["schema"], row))}
    choice = body.get("tool_choice") or "auto"
    answered = any(m.get("role") == "tool" for m in body["messages"])
    if tools and choice != "none" and (isinstance(choice, dict) or not answered):
        names = {t["function"]["name"]: t["function"] for t in tools}
        tool = names[choice["function"]["name"]] if isinstance(choice, dict) else tools[0]["function"]
        return call(tool["name"], value_of(tool.get("parameters") or {"type": "object"}, row))
    return {"content": f"answer for {row}"}


def call(name: str, arguments: Any, call_id: str = "call_1") -> dict[str, Any]:
    """A message that calls one tool; `arguments` as a text is sent as it stands."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": name, "arguments": text}
    return {"content": None, "tool_calls": [{"id": call_id, "type": "function", "function": function}]}


def _payload(body: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """The good message with its JSON text changed, in the content or in the tool call."""
    message = good(body)
    if calls := message.get("tool_calls"):
        calls[0]["function"]["arguments"] = change(calls[0]["function"]["arguments"])
        return message
    return {**message, "content": change(message["content"])}


def _fields(body: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """The good message with every number in its JSON changed; where there is no JSON, as it is."""

    def edit(text: str) -> str:
        with contextlib.suppress(ValueError):
            return json.dumps({k: change(v) if type(v) in (int, float) else v for k, v in json.loads(text).items()})
        return text

    return _payload(body, edit)


def completion(body: dict[str, Any], message: dict[str, Any], finish: str | None = None, **other: Any) -> dict:
    """A whole chat completion around a message."""
    finish = finish or ("tool_calls" if message.get("tool_calls") else "stop")
    choice = {"index": 0, "message": {"role": "assistant", **message}, "logprobs": None, "finish_reason": finish}
    base = {"id": f"chatcmpl-{row_of(body)}", "object": "chat.completion", "created": 1_700_000_000}
    return {**base, "model": body.get("model", "none"), "choices": [choice], "usage": dict(USAGE), **other}


def error(status: int, message: str, code: str, headers: dict[str, str] | None = None) -> tuple[int, dict, dict]:
    """A provider's error answer."""
    return status, headers or {}, {"error": {"message": message, "type": code, "param": None, "code": code}}


# --- answers that are wrong, and faults -------------------------------------------------------

ANSWERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "fenced": lambda b: completion(b, _payload(b, lambda t: f"```json\n{t}\n```")),
    "prose": lambda b: completion(b, _payload(b, lambda t: f"Here is my verdict: {t} I hope it helps.")),
    "think": lambda b: completion(b, _payload(b, lambda t: f"<think>Is it {{5}}? Perhaps.</think>\n{t}")),
    "truncated": lambda b: completion(b, _payload(b, lambda t: t[: len(t) // 2]), "length"),
    "cut": lambda b: completion(b, _payload(b, lambda t: t[: len(t) // 2])),
    "out-of-range": lambda b: completion(b, _fields(b, lambda n: 99)),
    "as-text": lambda b: completion(b, _fields(b, str)),
    "as-float": lambda b: completion(b, _fields(b, float)),
    "no-fields": lambda b: completion(b, _payload(b, lambda t: "{}")),
    "refusal": lambda b: completion(b, {"content": None, "refusal": "I cannot judge that."}),
    "says-no": lambda b: completion(b, {"content": "I am sorry, I cannot do that."}),
    "filtered": lambda b: completion(b, {"content": ""}, "content_filter"),
    "null": lambda b: completion(b, {"content": None}),
    "empty": lambda b: completion(b, {"content": ""}),
    "no-choices": lambda b: completion(b, {}, choices=[]),
    "null-choices": lambda b: completion(b, {}, choices=None),
    "no-usage": lambda b: completion(b, good(b), usage=None),
    "surrogate": lambda b: completion(b, {"content": "half a pair: \ud83d"}),
}

FAULTS: dict[str, Any] = {
    "r400": error(400, "Invalid value for 'messages'", "invalid_request_error"),
    "r401": error(401, "Incorrect API key provided", "invalid_api_key"),
    "r403": error(403, "You are not allowed to sample from this model", "forbidden"),
    "r404": error(404, "The model does not exist", "model_not_found"),
    "r408": error(408, "Request timed out", "timeout"),
    "r409": error(409, "Conflict", "conflict"),
    "r429": error(429, "Rate limit reached", "rate_limit_exceeded"),
    "r500": error(500, "The server had an error", "server_error"),
    "r502": error(502, "Bad gateway", "server_error"),
    "r503": error(503, "The engine is overloaded", "server_error"),
    "r504": error(504, "Gateway timeout", "server_error"),
    "r529": error(529, "Overloaded", "overloaded_error"),
    "quota": error(429, "You exceeded your current quota, please check your plan.", "insufficient_quota"),
    "context": error(400, "This model's maximum context length is 8192 tokens.", "context_length_exceeded"),
    "late": error(429, "Rate limit reached", "rate_limit_exceeded", {"Retry-After": "86400"}),
    "html": (200, {"Content-Type": "text/html"}, "<html><body>Bad gateway</body></html>"),
    "reset": "reset",
    "hang": "hang",
    "drip": "drip",
}


class _Patience:
    """A provider that says when to come back, and refuses for good whoever comes back earlier."""

    def __init__(self) -> None:
        self.until: dict[str, float] = {}

    def __call__(self, body: dict[str, Any], header: Callable[[], str], seconds: float) -> Any:
        row = row_of(body)
        if row not in self.until:
            self.until[row] = time.time() + seconds
            return error(429, "Rate limit reached", "rate_limit_exceeded", {"Retry-After": header()})
        if time.time() < self.until[row]:
            return error(400, "You came back before Retry-After was over", "too_early")
        return good(body)


# --- the server -------------------------------------------------------------------------------


class Endpoint:
    """The endpoint in a thread with an event loop of its own.

    Attributes
    ----------
    base : str
        What a client takes as ``api_base``: ``http://127.0.0.1:PORT/v1``.
    requests : list of dict
        Bodies received, in order; `headers` are theirs.
    latency : float
        Seconds before each answer.
    """

    def __init__(self, port: int = 0, latency: float = 0.0) -> None:
        self.latency = latency
        self._script: Callable[[dict[str, Any]], Any] | None = None
        self.reset()
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(port, ready), name="endpoint", daemon=True)
        self._thread.start()
        ready.wait()

    def reset(self) -> None:
        """Forget what was received; a script stays."""
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.statuses: list[int] = []
        self.aborted = self.inflight = self.max_inflight = self.connections = 0
        self._seen: dict[tuple[str, str], int] = {}
        self._patience = _Patience()

    @property
    def count(self) -> int:
        """HTTP requests for a completion so far."""
        return len(self.requests)

    def script(self, answer: Callable[[dict[str, Any]], Any] | None) -> None:
        """Let `answer(body)` decide instead of the model's name; None ends that.

        It gives a text, a message (dict), ``(status, headers, JSON or text)``, or ``"reset"``,
        ``"hang"``, ``"drip"`` wrapped as ``(0, {}, word)``; None falls back to the model's name.
        """
        self._script = answer

    def stats(self) -> dict[str, Any]:
        """The counters, as ``GET /__stats`` gives them."""
        rows = [row_of(b) for b in self.requests]
        return {
            "count": self.count,
            "statuses": {str(s): self.statuses.count(s) for s in sorted(set(self.statuses))},
            "rows": {row: rows.count(row) for row in sorted(set(rows))},
            "aborted": self.aborted,
            "inflight": self.inflight,
            "max_inflight": self.max_inflight,
            "connections": self.connections,
        }

    def close(self) -> None:
        """Stop answering and give the port back."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self, port: int, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._main(port, ready))
        self._loop.close()

    async def _main(self, port: int, ready: threading.Event) -> None:
        self._stop, self._open = asyncio.Event(), set()
        server = await asyncio.start_server(self._connection, "127.0.0.1", port, limit=2**26, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self.base = f"http://127.0.0.1:{self.port}/v1"
        ready.set()
        await self._stop.wait()
        server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._open.add(task)
        self.connections += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:] if line)}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        if not path.endswith("/chat/completions"):
            await _send(writer, *self._admin(method, path, raw))
            return True
        body = json.loads(raw)
        self.requests.append(body)
        self.headers.append(headers)
        self.inflight += 1
        self.max_inflight = max(self.inflight, self.max_inflight)
        try:
            return await self._answer_or_gone(reader, writer, body)
        finally:
            self.inflight -= 1

    async def _answer_or_gone(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: dict) -> bool:
        """Answer, unless the client closes the connection first."""
        answer, gone = asyncio.ensure_future(self._answer(writer, body)), asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return answer.result()
            self.aborted += 1
            return False
        finally:
            for task in (answer, gone):
                task.cancel()
            await asyncio.gather(answer, gone, return_exceptions=True)

    def _admin(self, method: str, path: str, raw: bytes) -> tuple[int, dict[str, str], Any]:
        if path == "/__reset":
            self.reset()
        elif path == "/__config":
            self.latency = float(json.loads(raw)["latency"])
        elif path == "/__requests":
            return 200, {}, [{"body": b, "headers": h} for b, h in zip(self.requests, self.headers, strict=True)]
        elif path != "/__stats":
            return error(404, f"no such path: {method} {path}", "not_found")
        return 200, {}, self.stats()

    def _decide(self, body: dict[str, Any]) -> Any:
        if self._script is not None and (answer := self._script(body)) is not None:
            return answer
        name = body.get("model", "good")
        if name == "wait":
            return self._patience(body, lambda: "1", 1.0)
        if name == "wait-date":
            return self._patience(body, lambda: formatdate(time.time() + 2, usegmt=True), 1.0)
        if name == "no-temperature" and "temperature" in body:
            return error(400, "Unsupported value: 'temperature' does not support 0 here.", "unsupported_value")
        fault, _, times = name.rpartition("-")
        if times in _TIMES and fault:
            key = name, row_of(body)
            self._seen[key] = self._seen.get(key, 0) + 1
            name = fault if self._seen[key] <= _TIMES[times] else "good"
        if name in FAULTS:
            return FAULTS[name] if isinstance(FAULTS[name], tuple) else (0, {}, FAULTS[name])
        return (200, {}, ANSWERS[name](body)) if name in ANSWERS else good(body)

    async def _answer(self, writer: asyncio.StreamWriter, body: dict[str, Any]) -> bool:
        if self.latency:
            await asyncio.sleep(self.latency)
        try:
            answer = self._decide(body)
        except Exception as fault:  # a script that fails must be seen by the test, not hang it
            answer = error(400, f"the endpoint's script failed: {fault!r}", "script")
        if isinstance(answer, str):
            answer = {"content": answer}
        if isinstance(answer, dict):
            answer = 200, {}, answer if "choices" in answer else completion(body, answer)
        status, headers, payload = answer
        self.statuses.append(status)
        if status == 0:
            return await _misbehave(writer, payload)
        await _send(writer, status, headers, payload)
        return True


async def _send(writer: asyncio.StreamWriter, status: int, headers: dict[str, str], payload: Any) -> None:
    data = payload.encode() if isinstance(payload, str) else json.dumps(payload).encode()
    headers = {"Content-Type": "application/json", **headers, "Content-Length": str(len(data))}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {status} .\r\n{head}\r\n".encode() + data)
    await writer.drain()


async def _misbehave(writer: asyncio.StreamWriter, how: str) -> bool:
    if how == "drip":  # one byte at a time: every read succeeds, the answer never ends
        writer.write(b"HTTP/1.1 200 .\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.05)
    if how == "hang":
        await asyncio.Event().wait()
    writer.transport.abort()
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", type=Path)
    parser.add_argument("--latency", type=float, default=0.0)
    given = parser.parse_args()
    with Endpoint(given.port, given.latency) as endpoint:
        print(endpoint.base, flush=True)
        if given.port_file:  # written whole or not at all: a reader may be polling for it
            part = given.port_file.with_suffix(".part")
            part.write_text(str(endpoint.port))
            part.replace(given.port_file)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
