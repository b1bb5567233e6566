"""How far work is, as small files beside the cache that it fills: written by `Progress`, read by ``mcpeval serve``.

They are no part of the cache: what is replayed, exported or merged knows nothing of them.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

FOLDER = "progress"
#: Seconds from one writing to the next.
EVERY = 1.0
#: How many records stay in a folder; the oldest go first.
KEPT = 20
ERRORS = 10
ERROR = 500


class Record:
    """The record of one call of `run` or `score`; where it cannot be written there is none.

    Parameters
    ----------
    folder : Path
        Of the cache.
    what : str
        ``run`` or ``score``.
    planned : int
        Rows to do.
    parts : mapping
        Rows to do of each agent or evaluator, by its name.
    """

    def __init__(self, folder: Path, what: str, planned: int, parts: Mapping[str, int]) -> None:
        self._path: Path | None = folder / FOLDER / f"{time.time_ns():020}-{os.getpid()}-{what}.json"
        self._lock, self._timer = threading.Lock(), None
        self._errors: deque[dict[str, Any]] = deque(maxlen=ERRORS)
        self._parts = {name: {"planned": rows, "done": 0, "failed": 0} for name, rows in parts.items()}
        self._about = {"what": what, "pid": os.getpid(), "host": platform.node(), "started": time.time()}
        self._counts = {"planned": planned, "done": 0, "failed": 0, "cached": 0, "cost_usd": 0.0, "unpriced": 0}
        self._state = "running"
        with suppress(OSError):
            self._path.parent.mkdir(exist_ok=True)
            for old in sorted(self._path.parent.glob("*.json"))[: 1 - KEPT]:
                old.unlink(missing_ok=True)
        self._write()

    def advance(
        self, rows: int, *, failed: bool, cached: bool, cost_usd: float | None, part: str | None, error: str | None
    ) -> None:
        """Take down that `rows` more are done; it is written within a second."""
        with self._lock:
            known = self._counts
            known["done"] += rows
            known["failed"] += failed
            known["cached"] += cached
            known["unpriced"] += cost_usd is None
            known["cost_usd"] += cost_usd or 0.0
            if part is not None:
                own = self._parts.setdefault(part, {"planned": 0, "done": 0, "failed": 0})
                own["done"] += rows
                own["failed"] += failed
            if failed:
                self._errors.append({"time": time.time(), "part": part, "error": (error or "no reason given")[:ERROR]})
            if self._timer is None and self._path is not None:
                self._timer = threading.Timer(EVERY, self._write)
                self._timer.daemon = True
                self._timer.start()

    def close(self, state: str) -> None:
        """The work is over."""
        with self._lock:
            self._state = state
            if self._timer is not None:
                self._timer.cancel()
        self._write()

    def _write(self) -> None:
        with self._lock:
            self._timer = None
            if self._path is None:
                return
            more = {"state": self._state, "updated": time.time(), "parts": self._parts, "errors": list(self._errors)}
            text = json.dumps({**self._about, **self._counts, **more})
            part = self._path.with_suffix(".part")
            try:
                part.write_text(text, "utf-8")
                os.replace(part, self._path)
            except OSError:  # a full disk, a folder that may not be written to: the work goes on without
                self._path = None


def records(folder: Path) -> list[dict[str, Any]]:
    """The records in the folder of a cache, the newest first; what is none of them is passed over.

    Those whose process is no longer there, and did not say that it was done, have the state ``gone``.
    """
    found = []
    for path in sorted((folder / FOLDER).glob("*.json"), reverse=True)[:KEPT]:
        try:
            record = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):  # another process's, just being replaced, or a stranger's
            continue
        if not _is_record(record):
            continue
        record = {**record, "age": time.time() - record["updated"], "id": path.stem}
        if record.get("state") == "running" and record.get("host") == platform.node() and not _lives(record.get("pid")):
            record["state"] = "gone"
        found.append(record)
    return found


def _is_record(given: Any) -> bool:
    """Whether it is all that a `Record` writes; the page that shows it would stop at anything else."""
    if not _has_numbers(given, ("planned", "done", "failed", "cached", "cost_usd", "unpriced", "started", "updated")):
        return False
    parts, errors, names = given.get("parts"), given.get("errors"), (given.get("what"), given.get("state"))
    return (
        all(isinstance(name, str) for name in names)
        and isinstance(parts, dict)
        and all(_has_numbers(part, ("planned", "done", "failed")) for part in parts.values())
        and isinstance(errors, list)
        and all(_has_numbers(one, ("time",)) and isinstance(one.get("error"), str) for one in errors)
    )


def _has_numbers(given: Any, names: Iterable[str]) -> bool:
    """Whether it is a mapping to numbers that JSON has: Python reads and writes NaN, which no browser does."""
    if not isinstance(given, dict):
        return False
    values = [given.get(name) for name in names]
    return all(type(value) in (int, float) and abs(value) <= sys.float_info.max for value in values)


def _lives(pid: Any) -> bool:
    if os.name != "posix" or not isinstance(pid, int) or pid <= 0:
        return True  # elsewhere asking would end it
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
