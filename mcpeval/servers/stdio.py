"""A server as a child process: newline-delimited JSON-RPC over its pipes.

The SDK has one of its own.  This one reads in linear time (the SDK's is quadratic in the length of
a message: 20 MB take it nine seconds), puts a limit to a message, takes what is not JSON-RPC for a
server's chatter, and leaves no process of the server's group behind, whatever ends it; where this
process is killed outright, the kernel ends the server, and what that has started has to notice itself.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import re
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

MESSAGE_LIMIT = 64 * 2**20
"""Bytes of the longest message that is read; a longer answer becomes an error of that call."""

EXIT_GRACE = 2.0
"""Seconds a server has to leave once its stdin is closed, and again once it is asked by SIGTERM."""

_INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
_ENDS = 512  # bytes kept of either end of a message that is too long: its id stands at one of them
_groups: set[tuple[int, int]] = set()  # (our pid, process group of a server)


def base_environment() -> dict[str, str]:
    """The six variables that every server gets; any other has to be passed in ``env``."""
    return {name: os.environ[name] for name in _INHERITED if name in os.environ}


class StderrLog:
    """What a server writes to stderr: a real file without a name, of which the end is kept.

    A notebook's ``sys.stderr`` is no file, and a server needs one that is.
    """

    KEEP, TRIM_ABOVE = 8 * 1024, 4 * 2**20

    def __init__(self) -> None:
        handle, path = tempfile.mkstemp(prefix="mcpeval-stderr-")
        # To append: a server goes on at the new end after `trim` has emptied the file.
        self.handle = os.open(path, os.O_RDWR | os.O_APPEND)
        os.close(handle)
        os.unlink(path)
        self._end: bytes | None = None  # once it is closed

    def write(self, text: bytes) -> None:
        os.write(self.handle, text)

    def _kept(self) -> bytes:
        size = os.fstat(self.handle).st_size
        return os.pread(self.handle, self.KEEP, max(0, size - self.KEEP))

    def tail(self, limit: int = 2000) -> str:
        """The last `limit` characters, from the start of a line where there is one."""
        text = (self._kept() if self._end is None else self._end).decode("utf-8", "replace").strip()
        if len(text) > limit:
            text = text[-limit:]
            text = "[...] " + text[text.find("\n") + 1 :]
        return text

    def trim(self) -> None:
        """Let go of all but the end, so that a server that floods stderr does not fill the disk."""
        if os.fstat(self.handle).st_size > self.TRIM_ABOVE:
            end = self._kept()
            os.ftruncate(self.handle, 0)
            os.write(self.handle, end)

    def close(self) -> None:
        """Let the file go; `tail` stays what it was."""
        if self._end is None:
            self._end = self._kept()
            os.close(self.handle)


class LongLine(NamedTuple):
    """What is kept of a line beyond the limit."""

    head: bytes
    tail: bytes
    size: int


async def lines(stream: asyncio.StreamReader, limit: int) -> AsyncIterator[bytes | LongLine]:
    """The lines of a stream, in time linear in their length; the last one may lack its newline."""
    parts: list[bytes] = []
    size = 0

    def add(piece: bytes) -> None:
        nonlocal parts, size
        parts.append(piece)
        size += len(piece)
        if size > limit:
            text = b"".join(parts)
            parts = [text[:_ENDS], text[-_ENDS:]]

    def take() -> bytes | LongLine:
        nonlocal parts, size
        line = LongLine(parts[0], b"".join(parts[1:])[-_ENDS:], size) if size > limit else b"".join(parts)
        parts, size = [], 0
        return line

    while chunk := await stream.read(2**20):
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            add(piece)
            yield take()
        add(rest)
    if size:
        yield take()


# Where the id of an answer can stand.  Each is anchored at an end of the message, so that none can
# match within a result.
_ID_AT_HEAD = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d+)\s*,')
_ID_AT_TAIL = re.compile(rb',\s*"id"\s*:\s*(\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


def parse(line: bytes | LongLine) -> Any:
    """A JSON-RPC message of the SDK, or None where the line is none."""
    import mcp_types

    if isinstance(line, LongLine):
        found = _ID_AT_HEAD.match(line.head) or _ID_AT_TAIL.search(line.tail)
        if found is None:
            return None
        message = f"the answer has {line.size} bytes, more than the {MESSAGE_LIMIT} that are read"
        error = mcp_types.ErrorData(code=mcp_types.INTERNAL_ERROR, message=message)
        return mcp_types.JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error)
    text = line.decode("utf-8", "replace")
    if not text.lstrip().startswith("{"):
        return None
    with suppress(ValueError):
        return mcp_types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    # Python's own reader takes what the strict one refuses: lone surrogates, NaN.
    with suppress(ValueError, RecursionError):
        return mcp_types.jsonrpc_message_adapter.validate_python(json.loads(text), by_name=False)
    return None


class ServerProcess:
    """A server as a child process, in a process group of its own.

    Parameters
    ----------
    command, args : str, sequence of str
    env : mapping
        Added to `base_environment`.
    cwd : path, optional

    Attributes
    ----------
    log : StderrLog
        The server's stderr, and what it printed to stdout that is no message.
    """

    def __init__(self, command: str, args: Sequence[str], env: Mapping[str, str], cwd: str | None = None) -> None:
        self.command, self.args, self.cwd = command, args, cwd
        self.env = {**base_environment(), **env}
        self.log = StderrLog()
        self._process: asyncio.subprocess.Process | None = None

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal; None while the server lives or before it started."""
        return None if self._process is None else self._process.returncode

    @property
    def gone(self) -> bool:
        """Whether the server has ended, known before asyncio gets to know of it."""
        if self._process is None or self.returncode is not None or not hasattr(os, "waitid"):
            return self.returncode is not None
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # asyncio's thread has just taken its exit code
            return True

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """Start the server and yield the (read, write) streams that an SDK session works on.

        Raises
        ------
        OSError
            The command cannot be started.
        """
        import anyio

        to_session, read_stream = anyio.create_memory_object_stream[Any](0)
        write_stream, from_session = anyio.create_memory_object_stream[Any](0)
        try:
            await self._start()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read, to_session)
                tasks.start_soon(self._write, from_session, to_session)
                try:
                    yield read_stream, write_stream
                finally:
                    with anyio.CancelScope(shield=True):
                        await self._leave()
                    tasks.cancel_scope.cancel()
        finally:
            for stream in (read_stream, write_stream, to_session, from_session):
                stream.close()
            await self._end()

    @asynccontextmanager
    async def started(self) -> AsyncIterator[asyncio.subprocess.Process]:
        """Start the process for who talks with it in another way than MCP's; in the end its group is killed."""
        try:
            await self._start()
            yield self._process
        finally:
            await self._end()

    async def _start(self) -> None:
        spawning = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *_ending_with_us(self.command, self.env.get("PATH")),
                self.command,
                *self.args,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=self.log.handle,
                env=self.env,
                cwd=self.cwd,
                start_new_session=True,
                limit=2**20,
            )
        )
        try:
            # Cancelled in the middle of it, asyncio waits for ever for the child that it killed.
            await asyncio.shield(spawning)
        finally:
            self._process = await spawning
            _groups.add((os.getpid(), self._process.pid))

    async def _end(self) -> None:
        """Kill what is left of the server's group, and close our ends of the pipes."""
        if self._process is not None:
            _kill((os.getpid(), self._process.pid))
            try:
                await self.exited(within=EXIT_GRACE)
            finally:
                # A descendant that left the group may still hold a pipe open.
                self._process._transport.close()

    async def _read(self, to_session: Any) -> None:
        import anyio
        from mcp.shared.message import SessionMessage

        async with to_session:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                async for line in lines(self._process.stdout, MESSAGE_LIMIT):
                    message = parse(line)
                    if message is not None:
                        await to_session.send(SessionMessage(message))
                        continue
                    chatter = (line.head if isinstance(line, LongLine) else line)[:1000].strip()
                    if chatter:
                        self.log.write(b"stdout: " + chatter + b"\n")

    async def _write(self, from_session: Any, to_session: Any) -> None:
        async with from_session:
            async for item in from_session:
                # ASCII, so that a lone surrogate is a matter of the server's JSON reader, not of ours.
                text = json.dumps(item.message.model_dump(by_alias=True, exclude_unset=True))
                try:
                    self._process.stdin.write(text.encode() + b"\n")
                    await self._process.stdin.drain()
                except OSError:  # the server is gone: so is the session
                    await to_session.aclose()
                    return

    async def _leave(self) -> None:
        """Close the server's stdin, then ask its group to end; what stays is killed in the end."""
        self._process.stdin.close()
        if await self.exited(within=EXIT_GRACE) is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGTERM)
            await self.exited(within=EXIT_GRACE)

    async def exited(self, within: float) -> int | None:
        """The exit code, waited for at most `within` seconds; None where the server still lives."""
        # Not `process.wait()`: it waits for the pipes too, which a child of the server may hold open.
        clock = asyncio.get_running_loop().time
        deadline = clock() + within
        while self.returncode is None and clock() < deadline:
            await asyncio.sleep(0.01)
        return self.returncode


def _ending_with_us(command: str, path: str | None) -> tuple[str, ...]:
    """What goes before a command so that the kernel kills it when this process is killed.

    A server should leave once its stdin is closed, and one that does not would stay for ever.
    Nothing where there is no ``setpriv`` (it is Linux's), or no such command: that is for the start to say.
    """
    setpriv = shutil.which("setpriv")
    found = setpriv is not None and shutil.which(command, path=path) is not None
    return (setpriv, "--pdeathsig", "KILL", "--") if found else ()


def _kill(group: tuple[int, int]) -> None:
    _groups.discard(group)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group[1], signal.SIGKILL)


@atexit.register
def _kill_all() -> None:
    for group in [g for g in _groups if g[0] == os.getpid()]:  # a fork's groups are its parent's
        _kill(group)
