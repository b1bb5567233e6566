"""Start the servers of a file once, and say which of them work."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Mapping
from typing import Any

from ..errors import McpevalError
from .connection import Connection
from .files import Server, read_servers
from .listing import OF_A_RUN

_FOUND_OUT = ("tools", "server_info", "protocol", "connect_seconds", "ping_seconds", "error")


def check_servers(source: Any, env: Mapping[str, str] | None = None, *, concurrency: int = 4) -> list[dict[str, Any]]:
    """Start every server of a file, list its tools, time a ping, and end it.

    Parameters
    ----------
    source, env
        As in `read_servers`.  ``{{WORKDIR}}`` is a folder that is removed afterwards.
    concurrency : int
        Servers that are started side by side.

    Returns
    -------
    list of dict
        One a server, in the file's order: ``name``, ``ok``, ``transport``, ``command`` (with
        ``{{VAR}}`` instead of its value), ``tools`` (names), ``server_info``, ``protocol``,
        ``connect_seconds``, ``ping_seconds``, ``error``.  What could not be found out is None.

    Raises
    ------
    InputError
        The file cannot be read; what is wrong with one server stands in its row.
    """
    from .._loop import run_sync

    servers = read_servers(source, env)

    async def check_all(given: Mapping[str, str]) -> list[dict[str, Any]]:
        limit = asyncio.Semaphore(concurrency)
        return await asyncio.gather(*(_check(server, given, limit) for server in servers.values()))

    with tempfile.TemporaryDirectory(prefix="mcpeval-") as folder:
        return run_sync(check_all(dict.fromkeys(OF_A_RUN, folder)))


async def _check(server: Server, given: Mapping[str, str], limit: asyncio.Semaphore) -> dict[str, Any]:
    row = {"name": server.name, "ok": False, "transport": server.transport, "command": server.shown}
    row |= dict.fromkeys(_FOUND_OUT)
    async with limit:
        try:
            connection = Connection(server.check(given))
        except McpevalError as error:
            return {**row, "error": str(error)}
        try:
            await _measure(connection, row)
        except McpevalError as error:
            row["error"] = str(error)
        finally:
            await connection.close()
    return row


async def _measure(connection: Connection, row: dict[str, Any]) -> None:
    began = time.perf_counter()
    await connection.open()
    row["connect_seconds"] = time.perf_counter() - began
    row["tools"] = [tool["name"] for tool in connection.tools]
    row["server_info"] = connection.info.get("serverInfo")
    row["protocol"] = connection.info.get("protocolVersion")
    began = time.perf_counter()
    await connection.request("ping", timeout=connection.server.call_timeout)
    row["ping_seconds"] = time.perf_counter() - began
    row["ok"] = True
