"""What a folder holds: an experiment that is running, and the frames of one that is done."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd

from ..caching import Cache
from ..errors import FileError, InputError, McpevalError
from ..exporting import read_runs
from ..recording import records
from .shell import Page
from .writing import document

DATABASE = "cache.db"
SUFFIXES = (".parquet", ".csv", ".jsonl")
#: Seconds for which a count of the cache's entries is told again: counting reads all keys.
_FRESH = 5.0


def kind_of(frame: pd.DataFrame) -> str | None:
    """Whether a frame is one of ``scores`` or of ``runs``; None for any other."""
    names = set(map(str, frame.columns))
    if {"evaluator", "score"} <= names:
        return "scores"
    return "runs" if {"output", "messages"} & names else None


def read_frames(files: list[Path], caller: str) -> dict[str, pd.DataFrame]:
    """The runs and the scores in files, in whatever order they are given.

    Raises
    ------
    InputError
        A file holds neither, or two hold the same.
    """
    found: dict[str, pd.DataFrame] = {}
    for path in files:
        frame = read_runs(path)
        kind = kind_of(frame)
        if kind is None:
            raise InputError(f"{caller}: {path} has neither runs (a column 'output') nor scores ('evaluator', 'score')")
        if kind in found:
            raise InputError(f"{caller}: {path} is another file of {kind}; give one of runs and one of scores")
        found[kind] = frame
    return found


class Folder:
    """A folder that is looked at again and again.

    Parameters
    ----------
    path : path
        The folder of a cache (or one that has it in ``cache``), of files of runs and scores, or of both.

    Raises
    ------
    InputError
        There is no such folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, (str, os.PathLike)) or not Path(path).is_dir():
            raise InputError(f"serve: there is no folder {str(path)!r}")
        self.path = Path(path).resolve()
        self._counting, self._writing = threading.Lock(), threading.Lock()
        self._counted: tuple[float, dict[str, Any] | None] = (0.0, None)
        self._written: tuple[Any, Page] | None = None

    @property
    def home(self) -> Path:
        """Where the cache is, or would be."""
        below = self.path / "cache"
        return below if not (self.path / DATABASE).exists() and (below / DATABASE).exists() else self.path

    def status(self) -> dict[str, Any]:
        """What the page of a running experiment shows, as JSON."""
        with self._counting:
            now = time.monotonic()
            if self._counted[1] is None or now - self._counted[0] > _FRESH:
                self._counted = (now, self._count())
        return {"work": records(self.home), "cache": self._counted[1], "files": self.names()}

    def _count(self) -> dict[str, Any] | None:
        if not (self.home / DATABASE).exists():
            return None
        try:
            with Cache(self.home, replay=True) as cache:
                kinds = Counter(key.partition(":")[0] for key in cache)
                return {"entries": sum(kinds.values()), "bytes": cache.volume(), "kinds": dict(sorted(kinds.items()))}
        except McpevalError as error:
            return {"error": str(error)}

    def files(self) -> list[Path]:
        return sorted(path for path in self.path.iterdir() if path.suffix in SUFFIXES and path.is_file())

    def names(self) -> list[str]:
        return [path.name for path in self.files()]

    def is_cache(self) -> bool:
        return (self.home / DATABASE).exists() or bool(records(self.home))

    def report(self) -> Page:
        """The report of the newest file, and of the runs or scores that belong to it; again where one has changed.

        Raises
        ------
        McpevalError
            There are none, or no report can be made of them.
        """
        with self._writing:
            files = sorted(self.files(), key=lambda path: path.stat().st_mtime_ns, reverse=True)
            state = [(path, path.stat().st_mtime_ns, path.stat().st_size) for path in files]
            if self._written is None or self._written[0] != state:
                self._written = (state, self._report(files))
            return self._written[1]

    def _report(self, files: list[Path]) -> Page:
        found: dict[str, pd.DataFrame] = {}
        for path in files:
            frame = read_runs(path)
            kind = kind_of(frame)
            if kind is not None and kind not in found and _are_one_experiment(found | {kind: frame}):
                found[kind] = frame
            if len(found) == 2:  # what is older, or no frame, is not read
                break
        if not found:
            raise FileError(f"no runs and no scores in its files ({', '.join(SUFFIXES)})", self.path)
        images = self.home if (self.home / DATABASE).exists() else None
        return document(found.get("scores"), found.get("runs"), title=self.path.name, cache=images)


def _are_one_experiment(frames: dict[str, pd.DataFrame]) -> bool:
    """Whether the scores, where there are both, are of those runs."""
    if len(frames) < 2 or not all("run_id" in frame.columns for frame in frames.values()):
        return True
    scored, known = (set(frames[kind]["run_id"].dropna().astype(str)) for kind in ("scores", "runs"))
    return scored <= known
