"""An MCP server process that misbehaves on request, in every way that servers were seen to.

``python tests/bad_server.py [how ...]`` speaks over stdio, in plain JSON, so that nothing of the
SDK tidies up what it says.  `how` is any of

- ``die``, ``hang``: at the start, instead of answering
- ``die_once``: at the start, where the file that the variable MARK names is not there yet
- ``banner``: greets on stdout, before the handshake
- ``child``: starts a child of its own, which holds the pipes open
- ``silent``: answers no ping
- ``stay``: ends neither when stdin is closed nor when it is asked to
- ``pages``, ``odd``, ``long``: lists 300 tools over pages, tools with odd schemas, with odd names

``python tests/bad_server.py http|sse [token]`` serves the toy server, with a tool that dies and
one that answers at length, on a free port of loopback, and prints the port.  With a token, whoever
does not bear it is refused.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

HOW: set[str] = set()
CHILDREN: list[int] = []
OBJECT = {"type": "object", "properties": {}}
STRING = {"type": "string"}
POINT = {"type": "object", "properties": {"x": {"type": "number"}}}
CHOICE = [
    {"type": "object", "properties": {"a": STRING, "n": {"type": "integer"}}, "required": ["a", "n"]},
    {"type": "object", "properties": {"b": {"anyOf": [STRING, {"type": "null"}]}}, "required": ["n"]},
]
STRICT = {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, "additionalProperties": False}
ODD = {
    "reference": {"$ref": "#/$defs/Point", "$defs": {"Point": POINT}},
    "choice": {"$schema": "http://json-schema.org/draft-07/schema#", "anyOf": CHOICE},
    "strict": {**STRICT, "$defs": {"X": {}}},
    "typeless": {"properties": {"x": STRING}, "required": ["x"]},
    "nothing": None,
}
LONG = ["get.current/time", "7zip", "a" * 70, "a" * 69 + "b", "x.y", "x/y"]

lock = threading.Lock()
cancelled: list[int] = []


def send(message: dict) -> None:
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def write(data: bytes) -> None:
    with lock:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def text(value: str, **more: object) -> dict:
    return {"content": [{"type": "text", "text": value}], **more}


def flood(megabytes: int) -> dict:
    for i in range(megabytes * 16):
        sys.stderr.write(f"{i:07d} " + "x" * 65_527 + "\n")
    print("the end of the flood", file=sys.stderr, flush=True)
    return text("flooded")


def backwards(number: int, size: int) -> None:
    # Node's SDK puts the id at the end.
    write(b'{"result":{"content":[{"type":"text","text":"' + b"x" * size + b'"}]},"jsonrpc":"2.0","id":%d}\n' % number)


def call(number: int, name: str, given: dict) -> None:
    """Answer one call; each runs in a thread of its own."""
    if name == "add":
        send({"id": number, "result": text(str(given["a"] + given["b"]))})
    elif name == "hang":
        time.sleep(given.get("seconds", 3600))
        send({"id": number, "result": text("late")})
    elif name == "die":
        print("Traceback: the disk is full", file=sys.stderr, flush=True)
        os._exit(given.get("code", 3))
    elif name == "boom":
        send({"id": number, "result": text("it went wrong: no such city", isError=True)})
    elif name == "refuse":
        message = f"not with this token: {os.environ.get('TOKEN')}"
        send({"id": number, "error": {"code": -32050, "message": message}})
    elif name == "chatter":
        write(b'debug: the tool was called\n\xff\xfe\n[1, 2]\n{"jsonrpc": "2.0"}\n')
        send({"id": number, "result": text("quiet now")})
    elif name == "flood":
        send({"id": number, "result": flood(given["megabytes"])})
    elif name == "big":
        send({"id": number, "result": text("start" + "x" * given["size"] + "end")})
    elif name == "too_big":
        backwards(number, given["size"])
    elif name == "structured":
        send({"id": number, "result": {"structuredContent": {"rows": ["x" * 1000] * given["rows"]}, "content": []}})
    elif name == "picture":
        data = base64.b64encode(b"x" * given["size"]).decode()
        image = {"type": "image", "data": data, "mimeType": "image/png"}
        file = {"type": "resource", "resource": {"uri": "file:///a.bin", "mimeType": "x/y", "blob": data}}
        page = {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "page one"}}
        send({"id": number, "result": {"content": [image, file, page], "structuredContent": {"size": given["size"]}}})
    elif name == "half":
        write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"half \\ud83d"}]}}\n' % number)
    elif name == "deep":
        write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":%s}}\n' % (number, b"[" * 700 + b"]" * 700))
    elif name == "strange":
        send({"id": number, "result": {"content": [{"type": "hologram", "colour": "green"}], "resultType": "complete"}})
    elif name == "nothing":
        send({"id": number, "result": {}})
    elif name == "env":
        send({"id": number, "result": text(json.dumps(dict(os.environ)))})
    elif name == "cancelled":
        send({"id": number, "result": text(json.dumps(cancelled))})
    elif name == "pid":
        send({"id": number, "result": text(json.dumps([os.getpid(), *CHILDREN]))})
    elif name == "echo":
        send({"id": number, "result": text(json.dumps(given))})
    else:
        send({"id": number, "error": {"code": -32602, "message": f"Unknown tool: {name}"}})


TOOLS = ["add", "hang", "die", "boom", "refuse", "chatter", "flood", "big", "too_big", "structured", "half", "deep"]
TOOLS += ["strange", "nothing", "env", "cancelled", "pid", "echo", "picture"]


def listed(cursor: str | None) -> dict:
    if "pages" in HOW:
        start = int(cursor or 0)
        page = [{"name": f"tool_{i:03d}", "inputSchema": OBJECT} for i in range(start, start + 50)]
        return {"tools": page, **({"nextCursor": str(start + 50)} if start + 50 < 300 else {})}
    if "odd" in HOW:
        return {"tools": [{"name": name, "inputSchema": schema} for name, schema in ODD.items()]}
    if "long" in HOW:
        return {"tools": [{"name": name, "inputSchema": OBJECT} for name in LONG]}
    return {"tools": [{"name": name, "description": f"Tool {name}.", "inputSchema": OBJECT} for name in TOOLS]}


def answer(message: dict) -> None:
    number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if method == "initialize":
        greeting = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
        send({"id": number, "result": {**greeting, "serverInfo": {"name": "bad", "version": "9.9.9"}}})
    elif method == "tools/list":
        send({"id": number, "result": listed(params.get("cursor"))})
    elif method == "tools/call":
        name, given = params["name"], params.get("arguments") or {}
        if HOW & {"odd", "long", "pages"}:
            send({"id": number, "result": text(name)})
        else:
            threading.Thread(target=call, args=(number, name, given), daemon=True).start()
    elif method == "notifications/cancelled":
        cancelled.append(params["requestId"])
    elif method == "ping" and "silent" not in HOW:
        send({"id": number, "result": {}})


def over_stdio() -> None:
    if "die" in HOW:
        print("starting", file=sys.stderr)
        sys.exit(f"KeyError: no city database for {os.environ.get('TOKEN')}")
    if "die_once" in HOW and not os.path.exists(os.environ["MARK"]):
        open(os.environ["MARK"], "w").close()
        sys.exit("OSError: the port is in use")
    if "hang" in HOW:
        time.sleep(3600)
    if "banner" in HOW:
        write(b"Welcome to the weather server!\n\n")
    for line in sys.stdin:
        answer(json.loads(line))
    while "stay" in HOW:
        time.sleep(60)
    os._exit(0)


def over_http(transport: str, token: str | None) -> None:
    import socket

    import uvicorn

    from mcpeval.testing import toy_server

    server = toy_server()

    @server.tool()
    def die() -> str:
        """End the process."""
        os._exit(3)

    @server.tool(structured_output=False)
    def big(size: int) -> str:
        """Answer at length."""
        return "x" * size

    app = server.streamable_http_app() if transport == "http" else server.sse_app()

    async def guarded(scope: dict, receive: object, send: object) -> None:
        headers = dict(scope.get("headers") or ())
        if token and scope["type"] == "http" and headers.get(b"authorization") != f"Bearer {token}".encode():
            await send({"type": "http.response.start", "status": 401, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": b"no token"})
        else:
            await app(scope, receive, send)

    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(guarded, log_level="error", timeout_graceful_shutdown=1)).run(sockets=[listener])


def bad(*how: str, **entry: object) -> dict:
    """An entry of a server file that starts this file as a process."""
    return {"command": sys.executable, "args": [__file__, *how], **entry}


@contextmanager
def served(transport: str, *token: str) -> Iterator[tuple[str, subprocess.Popen]]:
    """The toy server as a process of its own: its URL, and the process."""
    process = subprocess.Popen([sys.executable, __file__, transport, *token], stdout=subprocess.PIPE)
    try:
        port = int(process.stdout.readline())
        yield f"http://127.0.0.1:{port}/{'sse' if transport == 'sse' else 'mcp'}", process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


if __name__ == "__main__":
    HOW.update(sys.argv[1:])
    if HOW & {"http", "sse"}:
        over_http(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
    else:
        if "stay" in HOW:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if "child" in HOW:
            CHILDREN.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"]).pid)
        over_stdio()
