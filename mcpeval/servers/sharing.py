"""Servers that several runs use at the same time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from ..errors import ServerError
from .connection import Connection
from .files import Server

SIGN_OF_LIFE = 5.0
"""Seconds for the answer of a shared server that has left a call without one."""


class SharedServers:
    """One session for each server that has ``share``, from the first run that asks for it to the end of all.

    A server that dies answers the calls that wait for it, and those of the runs that have it, with
    errors; a run that begins after that gets a new one.  So does a run that begins after a start
    that failed; those that waited for that start share its failure.  One that left a call without an
    answer is asked for a sign of life before the next run gets it, and ended where it gives none.

    To be entered: leaving it ends every server.
    """

    def __init__(self) -> None:
        self._opening: dict[str, asyncio.Task[Connection]] = {}
        self._connections: list[Connection] = []

    async def __aenter__(self) -> SharedServers:
        return self

    async def __aexit__(self, *exception: Any) -> None:
        for opening in self._opening.values():
            opening.cancel()
        for connection in self._connections:
            connection.stop()
        await asyncio.gather(*(connection.close() for connection in self._connections))
        await asyncio.gather(*self._opening.values(), return_exceptions=True)

    async def connection(self, server: Server) -> Connection:
        """The session with `server`, resolved; it is started where there is none that lives.

        Raises
        ------
        ServerError
            It does not start.
        """
        opening = self._opening.get(server.name)
        if opening is None or (opening.done() and not _usable(opening)):
            before = None if opening is None or opening.exception() else opening.result()
            opening = self._opening[server.name] = asyncio.create_task(self._opened(server, before))
            opening.add_done_callback(lambda task: task.cancelled() or task.exception())  # so that nobody logs it
        return await asyncio.shield(opening)  # the run that asked first may be cancelled; others wait too

    async def _opened(self, server: Server, before: Connection | None) -> Connection:
        """A session with `server`: the one `before` where it still answers, else a new one."""
        if before is not None and before.alive:
            with suppress(ServerError):
                await before.request("ping", timeout=min(SIGN_OF_LIFE, server.call_timeout))
            if not before.silent:
                return before
            before.stop()
        connection = Connection(server)
        self._connections.append(connection)
        try:
            await connection.open()
        except BaseException:
            await connection.close()
            raise
        return connection


def _usable(opening: asyncio.Task[Connection]) -> bool:
    return opening.exception() is None and opening.result().alive and not opening.result().silent
