"""A command as a process: what it is given, what it writes, and nothing of it left afterwards."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..servers import Server
from ..servers.stdio import MESSAGE_LIMIT, LongLine, ServerProcess, lines

#: The variable by whose value the processes that a command has started are known.
MARK = "MCPEVAL_AGENT"
LINGER = 1.0  # seconds for what a command's children still write after its end


@dataclass(frozen=True)
class Said:
    """What a command wrote, and how it ended; `code` is None where it had to be killed."""

    lines: list[str]
    code: int | None
    stderr: str


async def talk(server: Server, prompt: str | None, time_limit: float, found: list[str]) -> Said:
    """Start a process, write `prompt` to it, and read it into `found` to its end; nothing of it is left afterwards."""
    mark = secrets.token_hex(8)
    process = ServerProcess(server.command, server.args, {**server.env, MARK: mark}, server.cwd)
    late = False
    try:
        async with process.started() as child:
            try:
                async with asyncio.timeout(time_limit):
                    await _to_the_end(process, child, prompt, found)
            except TimeoutError:
                late = True
            finally:
                _no_more(child.pid, descendants(child.pid, mark))
        code = None if late else process.returncode
        return Said(found, code, server.redact(process.log.tail()))
    finally:
        process.log.close()


async def _to_the_end(
    process: ServerProcess, child: asyncio.subprocess.Process, prompt: str | None, found: list[str]
) -> None:
    async def write() -> None:
        with suppress(ConnectionError):  # it need not read its stdin
            if prompt is not None:
                child.stdin.write(prompt.encode("utf-8", "replace"))
                await child.stdin.drain()
        child.stdin.close()

    async def read() -> None:
        async for line in lines(child.stdout, MESSAGE_LIMIT):
            text = (line.head if isinstance(line, LongLine) else line).decode("utf-8", "replace").strip()
            if text:
                found.append(text)

    tasks = [asyncio.create_task(write()), asyncio.create_task(read())]
    try:
        # Not `child.wait()`: it waits for the pipes too, which a child of its own may hold open.
        while child.returncode is None:
            await asyncio.sleep(0.02)
            process.log.trim()
        await asyncio.wait(tasks, timeout=LINGER)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _no_more(group: int, others: Sequence[int]) -> None:
    """Kill a process group, and the processes `others` with theirs."""
    own = os.getpgrp()
    for pid in others:
        with suppress(ProcessLookupError, PermissionError):
            if (theirs := os.getpgid(pid)) not in (own, group):
                os.killpg(theirs, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def descendants(pid: int, mark: str) -> list[int]:
    """The processes that `pid` has started, and those that these have; none where there is no ``/proc``.

    One that left its parent (a daemon) still has the `mark` in its environment; one that was given an
    environment of its own (the SDK does so with servers) still has its parent.
    """
    children: dict[int, list[int]] = {}
    found, entry = [pid], f"{MARK}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            parent = int((folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(folder.name))
            if entry in (folder / "environ").read_bytes().split(b"\0") and int(folder.name) != pid:
                found.append(int(folder.name))
    for known in found:
        found += [child for child in children.get(known, []) if child not in found]
    return found[1:]
