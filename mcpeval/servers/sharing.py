"""Servers that several runs use at the same time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from .connection import Connection
from .files import Server


class SharedServers:
    """One session for each server that has ``share``, from the first run that asks for it to the end of all.

    A server that dies answers the calls that wait for it, and those of the runs that have it, with
    errors; a run that begins after that gets a new one.  So does a run that begins after a start
    that failed; those that waited for that start share its failure.

    To be entered: leaving it ends every server.
    """

    def __init__(self) -> None:
        self._opening: dict[str, asyncio.Task[Connection]] = {}
        self._connections: list[Connection] = []

    async def __aenter__(self) -> SharedServers:
        return self

    async def __aexit__(self, *exception: Any) -> None:
        for connection in self._connections:
            connection.stop()
        await asyncio.gather(*(connection.close() for connection in self._connections))
        for opening in self._opening.values():
            with suppress(Exception):
                await opening

    async def connection(self, server: Server) -> Connection:
        """The session with `server`, resolved; it is started where there is none that lives.

        Raises
        ------
        ServerError
            It does not start.
        """
        opening = self._opening.get(server.name)
        if opening is None or (opening.done() and (opening.exception() or not opening.result().alive)):
            connection = Connection(server)
            self._connections.append(connection)
            opening = self._opening[server.name] = asyncio.create_task(_opened(connection))
            opening.add_done_callback(lambda task: task.exception())  # so that nobody logs it
        return await asyncio.shield(opening)  # the run that asked first may be cancelled; others wait too


async def _opened(connection: Connection) -> Connection:
    try:
        await connection.open()
    except BaseException:
        await connection.close()
        raise
    return connection
