"""Public doubles for the tests of those who use mcpeval: MCP servers in memory."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp.server import MCPServer


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
