"""The MCP servers that evaluators may ask while they score."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from ..errors import InputError, ServerError, did_you_mean
from ..servers import Server, Toolbox, open_toolbox
from ..types import ToolCall


class Tools:
    """Servers, each started when it is first called and ended with the scoring.

    Parameters
    ----------
    servers : mapping of str to Server
    stack : AsyncExitStack
        Ends what was started when it is closed.
    """

    def __init__(self, servers: Mapping[str, Server], stack: AsyncExitStack) -> None:
        self._servers, self._stack = servers, stack
        self._opened: dict[str, Toolbox] = {}
        self._failed: dict[str, str] = {}
        self._locks = {name: asyncio.Lock() for name in servers}

    async def call_tool(self, server: str, tool: str, arguments: Mapping[str, Any]) -> ToolCall:
        """Call a tool by its own name.

        Raises
        ------
        InputError
            There is no such server, or a variable that it needs is not set.
        ServerError
            It does not start.  It is not tried again for the rows that are left: each would wait as long.
        """
        if server not in self._servers:
            raise InputError(f"There is no server {server!r}. {did_you_mean(server, self._servers)}")
        async with self._locks[server]:
            if server not in self._opened:
                self._opened[server] = await self._open(server)
        return await self._opened[server].call_tool(server, tool, arguments)

    async def _open(self, server: str) -> Toolbox:
        if server in self._failed:
            raise ServerError(self._failed[server], server=server)
        try:
            return await self._stack.enter_async_context(open_toolbox([self._servers[server]]))
        except ServerError as error:
            self._failed[server] = str(error)
            raise
