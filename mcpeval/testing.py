"""For the tests of those who use mcpeval: assertions of scores, MCP servers in memory, a scripted model."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from .assertions import assert_no_regression, assert_passed

if TYPE_CHECKING:
    from mcp.server import MCPServer

__all__ = ["ScriptedModel", "assert_no_regression", "assert_passed", "toy_server"]


def toy_server(name: str = "toy") -> MCPServer:
    """A small MCP server that runs in this process, with one tool for each thing that can happen.

    ``add(a, b)`` answers with a number, ``echo(text)`` with its text, ``note(text)`` keeps a text
    and ``notes()`` lists them, ``look()`` answers with an image, ``boom(message)`` fails and
    ``wait(seconds)`` takes its time.

    Examples
    --------
    As a value of `servers`, the function makes a new server for each run:

    >>> from mcpeval.servers import read_servers
    >>> read_servers({"toy": toy_server})["toy"].transport
    'memory'
    """
    import anyio
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Image
    from mcp.server.mcpserver.exceptions import ToolError

    # The SDK's constructor sets up the root logger; whoever tests keeps their own.
    root = logging.getLogger()
    before = root.level, root.handlers[:]
    server = MCPServer(name, version="1.0", log_level="CRITICAL")
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    kept: list[str] = []

    @server.tool()
    def add(a: float, b: float) -> float:
        """Add two numbers."""
        return a + b

    @server.tool()
    def echo(text: str) -> str:
        """Answer with the same text."""
        return text

    @server.tool()
    def note(text: str) -> str:
        """Keep a note."""
        kept.append(text)
        return f"note {len(kept)} kept"

    @server.tool()
    def notes() -> list[str]:
        """List the notes kept so far."""
        return kept

    @server.tool(structured_output=False)
    def look():
        """Take a picture: one black pixel."""
        return Image(data=_PIXEL, format="png")

    @server.tool()
    def boom(message: str = "boom") -> str:
        """Fail with a message."""
        raise ToolError(message)

    @server.tool()
    async def wait(seconds: float) -> str:
        """Answer after some seconds."""
        await anyio.sleep(seconds)
        return "done"

    return server


_PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010800000000"
    "3a7e9b550000000a49444154789c63600000000200010500003b2e0000000049454e44ae426082"
)


class ScriptedModel:
    """A language model that says what a script says, behind a real HTTP endpoint on loopback.

    Parameters
    ----------
    script : list or callable
        What it says at each step of a conversation (the number of its own messages so far, so that
        runs side by side do not disturb each other): a text, a list of tool calls ``(name,
        arguments)``, or a whole chat message.  Arguments that are a text are sent as they stand.
        A callable is given the request's body and answers with one of these.

    Attributes
    ----------
    model : str
        What an agent or a judge takes as its model.
    params : dict
        The parameters that go with it: ``api_base``, ``api_key``.
    requests : list of dict
        The bodies received, in order.

    Examples
    --------
    >>> with ScriptedModel([[("add", {"a": 1, "b": 2})], "It is 3."]) as model:  # doctest: +SKIP
    ...     runs = run(["What is 1 + 2?"], Agent(model.model, **model.params), servers={"toy": toy_server}, cache=False)
    >>> model.requests[1]["messages"][-1]["content"]  # doctest: +SKIP
    '3.0'
    """

    model = "openai/scripted"

    def __init__(self, script: Sequence[Any] | Callable[[dict[str, Any]], Any]) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        answer = self._answer

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                status, payload = answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                data = json.dumps(payload).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                """Say nothing on stderr."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.params = {"api_base": f"http://127.0.0.1:{self._server.server_port}/v1", "api_key": "none"}
        threading.Thread(target=self._server.serve_forever, name="scripted-model", daemon=True).start()

    def close(self) -> None:
        """Stop answering and give the port back."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> ScriptedModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.requests.append(body)
        step = sum(message["role"] == "assistant" for message in body["messages"])
        if callable(self.script):
            try:
                said = self.script(body)
            except Exception as error:  # a broken connection would be tried again, and hide it
                problem = f"the script failed: {type(error).__name__}: {error}"
                return 400, {"error": {"message": problem, "type": "script", "code": None}}
        elif step < len(self.script):
            said = self.script[step]
        else:
            return 400, {
                "error": {"message": f"the script ends after {len(self.script)} steps", "type": "script", "code": None}
            }
        message = _message(said)
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "tool_calls" if message.get("tool_calls") else "stop",
        }
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        head = {"id": f"scripted-{step}", "object": "chat.completion", "created": 0, "model": body["model"]}
        return 200, {**head, "choices": [choice], "usage": usage}


def _message(said: Any) -> dict[str, Any]:
    """A chat message of a text, a list of (name, arguments), or a message's dict."""
    if isinstance(said, dict):
        return {"role": "assistant", **said}
    if isinstance(said, str):
        return {"role": "assistant", "content": said}
    texts = [(name, given if isinstance(given, str) else json.dumps(given)) for name, given in said]
    calls = [
        {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": text}}
        for i, (name, text) in enumerate(texts)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}
