"""The session with one MCP server, over stdio, streamable HTTP, SSE or in memory."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import cached_property
from typing import Any

from ..errors import ServerError
from .files import Server
from .stdio import MESSAGE_LIMIT, ServerProcess

CLOSE_TIMEOUT = 8.0
"""Seconds after which a server that does not leave is cut off."""

PAGES = 1000
"""Pages of tools that are asked for at most: a cursor that never ends cannot hang a start."""

_A_DAY = 86_400  # how long a stream may be silent: what one call may take is `call_timeout`

# The SDK logs what a server does wrong; without a handler Python prints that into the notebook.
logging.getLogger("mcp").addHandler(logging.NullHandler())

_living: set[asyncio.Task] = set()  # asyncio itself keeps only weak references to tasks


class Connection:
    """One server's session, entered and left in a task of its own.

    A session's cancel scopes belong to one task, and a transport that fails cancels the task that
    entered it: that can be neither the caller's task nor that of another server.

    Parameters
    ----------
    server : Server
        Resolved: without ``{{VAR}}``.

    Attributes
    ----------
    tools : list of dict
        The server's tools as it listed them (wire form).
    info : dict
        The answer to ``initialize``: ``protocolVersion``, ``serverInfo``, ``capabilities``.
    death : str or None
        How the server ended, where it ended before it was told to, with the end of its stderr.
    silent : bool
        Whether it did not answer the last request in time.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.tools: list[dict[str, Any]] = []
        self.info: dict[str, Any] = {}
        self.death: str | None = None
        self.silent = False
        self._process: ServerProcess | None = None
        self._refusal: str | None = None  # the last HTTP status that was an error
        self._dispatcher: Any = None
        self._task: asyncio.Task | None = None
        self._failure: BaseException | None = None
        self._ready = asyncio.Event()
        self._stopping = asyncio.Event()

    async def open(self) -> None:
        """Start the server, shake hands, list its tools.

        Raises
        ------
        ServerError
            It does not start, or not within its `connect_timeout`; with the end of its stderr.
        """
        self._task = asyncio.create_task(self._live(), name=f"mcp server {self.server.name}")
        _living.add(self._task)
        self._task.add_done_callback(self._ended)
        await self._ready.wait()
        if self._task.done():
            raise self._start_error()

    def _ended(self, task: asyncio.Task) -> None:
        _living.discard(task)
        self._failure = None if task.cancelled() else _first(task.exception())
        self._ready.set()

    @cached_property
    def origin(self) -> dict[str, Any]:
        """What stands behind it, as far as that does not change: the command, the package, the tools it listed."""
        server, package = self.server, self.server.package
        return {
            "name": server.name,
            "transport": server.transport,
            "command": server.shown,
            "resolved": server.resolved_command,
            "package": package and package.name,
            "package_version": package and package.version,
            "tools_sha256": sha256(sorted(self.tools, key=lambda tool: tool["name"])),
        }

    @property
    def alive(self) -> bool:
        """Whether it is open, as far as is known before the next request."""
        gone = self._process is not None and self._process.gone
        return self._task is not None and not self._task.done() and self.death is None and not gone

    async def _live(self) -> None:
        from mcp import ClientSession
        from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

        async with AsyncExitStack() as stack:
            async with asyncio.timeout(self.server.connect_timeout):
                streams = await stack.enter_async_context(self._transport())
                # Requests go to the dispatcher: the session refuses a whole list of tools for one
                # schema without a type, and a whole result for one content that it does not know.
                self._dispatcher = JSONRPCDispatcher(*streams)
                session = await stack.enter_async_context(ClientSession(dispatcher=self._dispatcher))
                greeting = await session.initialize()  # the handshake that servers of every age know
                self.info = greeting.model_dump(by_alias=True, mode="json", exclude_none=True)
                self.tools = await self._list_tools()
            self._ready.set()
            while not self._stopping.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await self._stopping.wait()
                if self._process is not None:
                    self._process.log.trim()

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[tuple[Any, Any]]:
        server = self.server
        if server.transport == "stdio":
            command = server.executable or server.command  # what is not there is for the start to say
            self._process = ServerProcess(command, server.args, server.env, server.cwd)
            transport = self._process.streams()
        elif server.transport == "memory":
            from mcp.client._memory import InMemoryTransport

            transport = InMemoryTransport(server.target() if callable(server.target) else server.target)
        elif server.transport == "sse":
            from mcp.client.sse import sse_client

            transport = sse_client(server.url, dict(server.headers), server.connect_timeout, sse_read_timeout=_A_DAY)
        else:
            transport = self._http()
        async with transport as streams:
            yield streams

    @asynccontextmanager
    async def _http(self) -> AsyncIterator[tuple[Any, Any]]:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        async def note(response: httpx2.Response) -> None:  # the SDK says no more than that there was an error
            if response.status_code >= 400:
                self._refusal = f"HTTP {response.status_code} {response.reason_phrase}"

        options = {
            "headers": dict(self.server.headers),
            "timeout": httpx2.Timeout(self.server.connect_timeout, read=_A_DAY),
            "event_hooks": {"response": [note]},
        }
        async with (
            httpx2.AsyncClient(**options) as client,
            streamable_http_client(self.server.url, http_client=client, max_sse_event_size=MESSAGE_LIMIT) as streams,
        ):
            yield streams

    async def _list_tools(self) -> list[dict[str, Any]]:
        if "tools" not in self.info.get("capabilities", {}):
            return []
        tools: dict[str, dict[str, Any]] = {}
        cursor: dict[str, Any] = {}
        for _ in range(PAGES):
            page = await self._dispatcher.send_raw_request("tools/list", cursor)
            for tool in page.get("tools") or ():
                if isinstance(tool, dict) and isinstance(tool.get("name"), str) and tool["name"]:
                    tools.setdefault(tool["name"], tool)
            if not page.get("nextCursor"):
                break
            cursor = {"cursor": page["nextCursor"]}
        return list(tools.values())

    async def request(self, method: str, params: Mapping[str, Any] | None = None, *, timeout: float) -> dict[str, Any]:
        """Ask the server and wait for its answer (wire form).

        Any number of requests may wait side by side.

        Parameters
        ----------
        method, params
            Of the JSON-RPC request; `params` of JSON values.
        timeout : float
            Seconds; after that the server is told that nobody waits any more, and the session
            stays usable.

        Raises
        ------
        ServerError
            The server refused this request, is gone, or did not answer in time.
        """
        from mcp import MCPError

        if self.death is not None or self._task is None or self._task.done():
            raise await self._dead()
        answer = asyncio.ensure_future(self._dispatcher.send_raw_request(method, params))
        answer.add_done_callback(lambda task: task.cancelled() or task.exception())  # so that nobody logs it
        try:
            await asyncio.wait({answer, self._task}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            self.silent = not answer.done()
            if answer.done():
                return answer.result()
        except MCPError as error:
            if error.message == "Connection closed":
                raise await self._dead() from None
            raise self._error(f"{error.message} (code {error.code})") from None
        finally:
            answer.cancel()
        if self._task.done():
            raise await self._dead()
        raise self._error(f"server {self.server.name!r} did not answer within {timeout:g} s", timed_out=True)

    def stop(self) -> None:
        """Begin to end the session; `close` waits for it."""
        starting = self._task is not None and not self._ready.is_set()
        if starting and not self._stopping.is_set():  # a second time would break off the cleaning up
            self._task.cancel()
        self._stopping.set()

    async def close(self) -> None:
        """End the session and the server; returns within some seconds whatever the server does."""
        self.stop()
        if self._task is not None and not self._task.done():
            _, late = await asyncio.wait({self._task}, timeout=CLOSE_TIMEOUT)
            for task in late:
                task.cancel()
                await asyncio.wait({task}, timeout=1.0)
        if self._process is not None:
            self._process.log.close()

    async def _dead(self) -> ServerError:
        """The error of a server that is gone; how it went is found out once."""
        if self.death is None:
            how, tail = "closed the connection", ""
            if self._process is not None:
                if (code := await self._process.exited(within=1.0)) is not None:
                    how = f"ended with {_exit(code)}"
                tail = self._process.log.tail()
            elif self._task is not None:  # the stream ends a moment before the transport says why
                await asyncio.wait({self._task}, timeout=0.2)
                how += f" ({_told(self._failure)})" if self._failure is not None else ""
            self.death = self.server.redact(f"{how}\n{tail}".strip())
        how = self.death.partition("\n")[0]  # what a server said last is for the row, not for the model
        return self._error(f"server {self.server.name!r} is not there any more: it {how}")

    def _start_error(self) -> ServerError:
        cause, name = self._failure, self.server.name
        timed_out = isinstance(cause, TimeoutError)
        code = None if self._process is None else self._process.returncode
        if timed_out:
            message = f"server {name!r} did not answer within {self.server.connect_timeout:g} s (connect_timeout)"
        elif code is not None:
            message = f"server {name!r} did not start: it ended with {_exit(code)}"
        else:
            message = f"server {name!r} did not start: {_told(cause)}"
            message += f" ({self._refusal})" if self._refusal else ""
        tail = "" if self._process is None else self._process.log.tail()
        return self._error(message + (f"\nIts stderr ends with:\n{tail}" if tail else ""), timed_out=timed_out)

    def _error(self, message: str, *, timed_out: bool = False) -> ServerError:
        return ServerError(self.server.redact(message), server=self.server.name, timed_out=timed_out)


def sha256(tools: Sequence[Mapping[str, Any]]) -> str:
    """Of a list of tools, whatever the order of their keys."""
    return hashlib.sha256(json.dumps(tools, sort_keys=True).encode()).hexdigest()


def _first(error: BaseException | None) -> BaseException | None:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _told(error: BaseException | None) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _exit(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
