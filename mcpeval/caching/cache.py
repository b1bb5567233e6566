"""`Cache`: a folder of answers; `open_cache`: what the `cache` argument of the public functions means."""

from __future__ import annotations

import copy
import json
import os
import secrets
import sqlite3
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any

from ..errors import CacheError, CacheMiss, FileError, InputError
from .store import DATABASE, FAILURES, open_store


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()
"""What `Cache.get` gives where there is nothing (None is a value)."""


def _folder(path: str | os.PathLike | None) -> Path:
    if path is None and not (path := os.environ.get("MCPEVAL_CACHE")):
        from platformdirs import user_cache_dir

        path = user_cache_dir("mcpeval", appauthor=False)
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise InputError(f"cache={path!r}; expected None (the default folder), False (none), a folder or a Cache")
    if "\0" in os.fspath(path):
        raise InputError(f"cache={path!r} should be the path of a folder")
    return Path(os.path.expandvars(os.path.expanduser(path))).absolute()


class Cache:
    """A folder of JSON values by content key, which never evicts and is safe for several processes.

    Parameters
    ----------
    path : str or path, optional
        The folder, made where it is not there; ``~`` and ``$VAR`` are expanded.  Default: the
        environment variable ``MCPEVAL_CACHE``, else the user's cache directory.  One machine at a
        time: SQLite's log is not safe between machines on a network file system.  Give each its own
        folder and merge with `export` and `load`.
    replay : bool
        Answer from what is there and write nothing; the folder may be read-only.

    Attributes
    ----------
    path : pathlib.Path
        Absolute.
    replay : bool

    Raises
    ------
    InputError
        `path` is a file, cannot be written, or (with `replay`) holds no cache.
    CacheError
        What lies there is not a cache.

    Notes
    -----
    A value is JSON: tuples come back as lists; NaN, infinities and lone surrogates come back as they
    are.  An entry that mcpeval did not write, or that is damaged, counts as not there: `get` warns
    of the first one and passes over the others.  Nothing is unpickled and no file a row names is touched.

    A cache works in every thread and after a fork.  A write is on disk when `set` returns.

    Examples
    --------
    >>> with Cache("answers") as cache:  # doctest: +SKIP
    ...     cache.set(content_key("note", about="tides"), {"text": "twice a day"})
    ...     cache.export("answers.jsonl")
    1
    """

    def __init__(self, path: str | os.PathLike | None = None, *, replay: bool = False) -> None:
        self.path, self.replay = _folder(path), bool(replay)
        self._warned = False
        self._store = open_store(self.path, self.replay)

    def __repr__(self) -> str:
        return f"Cache({str(self.path)!r}{', replay=True' if self.replay else ''})"

    @contextmanager
    def _talking(self) -> Iterator[None]:
        try:
            yield
        except FAILURES as error:
            self._store.close()  # a commit that failed leaves this thread's connection in its transaction
            reason = str(error) or error.__context__  # diskcache's Timeout is empty and hides SQLite's own words
            raise CacheError(f"the cache at {self.path} failed: {reason}") from error

    def _warn(self, what: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(f"the cache at {self.path}: {what}; it is passed over, and so are others", stacklevel=3)

    def get(self, key: str, default: Any = MISSING, *, read: Callable[[Any], Any] | None = None) -> Any:
        """The value of `key`, else `default`.

        Parameters
        ----------
        key : str
        default : any
        read : callable, optional
            Makes of the JSON what is given back.  What it cannot read (AttributeError, KeyError, TypeError,
            ValueError) is refused: an entry may come from anybody.

        Raises
        ------
        CacheError
            The database itself cannot be read.
        """
        with self._talking():
            try:
                value = self._store.get(key, MISSING)
            except CacheError as refused:
                self._warn(f"entry {key!r} is refused, {refused}")
                return default
        if value is MISSING:
            return default
        try:
            return value if read is None else read(value)
        except (AttributeError, KeyError, TypeError, ValueError):
            self._warn(f"entry {key!r} is refused, it is not what is kept under such a key")
            return default

    def require(self, key: str, *, read: Callable[[Any], Any] | None = None) -> Any:
        """The value of `key`, read as in `get`.

        Raises
        ------
        CacheMiss
            There is none.
        """
        value = self.get(key, read=read)
        if value is MISSING:
            raise CacheMiss(f"no {key.partition(':')[0]} in the cache at {self.path} for this input ({key})")
        return value

    def set(self, key: str, value: Any) -> None:
        """Keep `value` under `key`, in place of what was there; a replaying cache keeps nothing.

        Raises
        ------
        CacheError
            Something in `value` is not JSON (the message says where), or it could not be written.
        """
        if not self.replay:
            with self._talking():
                self._store.set(key, value)

    def keep(self, key: str, value: Any) -> None:
        """`set` what was paid for: where it cannot be written (a full disk), that is a warning and no error."""
        try:
            self.set(key, value)
        except CacheError as error:
            self._warn(f"an answer is not kept, {error}")

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not MISSING

    def __len__(self) -> int:
        """How many entries there are, refused ones included."""
        with self._talking():
            return len(self._store)

    def __iter__(self) -> Iterator[str]:
        """The keys, oldest first."""
        with self._talking():
            for key in self._store:
                if key is None:
                    self._warn("a key is refused, it is not text")
                else:
                    yield key

    def volume(self) -> int:
        """Size on disk, in bytes."""
        return sum(file.stat().st_size for file in self.path.glob(f"{DATABASE}*"))

    def close(self) -> None:
        """Fold what was written into the one file ``cache.db``; the next use opens the cache again."""
        self._store.close()
        if not self.replay and (self.path / DATABASE).exists():
            # Other threads' connections stay open, and while they do SQLite leaves late writes in its log:
            # who copies cache.db alone would miss them.
            with self._talking(), closing(sqlite3.connect(self.path / DATABASE)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def export(self, file: str | os.PathLike, *, kinds: str | Iterable[str] | None = None) -> int:
        """Write the entries to one portable JSONL file: ``{"key": ..., "value": ...}`` a line, sorted by key.

        Parameters
        ----------
        file : str or path
            Written beside its place and put there when it is whole.
        kinds : str or iterable of str, optional
            Only entries of these kinds (what stands before the ``:`` of a key).

        Returns
        -------
        int
            The number of lines.

        Raises
        ------
        FileError
            `file` cannot be written.
        """
        kinds = None if kinds is None else {kinds} if isinstance(kinds, str) else set(kinds)
        lines = 0
        with _whole_file(Path(file)) as out:
            for key in sorted(self):
                if kinds is not None and key.partition(":")[0] not in kinds:
                    continue
                if (value := self.get(key)) is not MISSING:
                    out.write(json.dumps({"key": key, "value": value}) + "\n")
                    lines += 1
        return lines

    def load(self, file: str | os.PathLike) -> int:
        """Add the entries of an exported file that are not here yet.

        The whole file is read before the first entry is kept, so a bad one leaves the cache as it was.

        Returns
        -------
        int
            The number of entries that were new.

        Raises
        ------
        FileError
            `file` cannot be read, or a line is not an entry (file and line are named).
        InputError
            The cache replays.
        """
        if self.replay:
            raise InputError(f"{self!r}: a replaying cache takes nothing in; open it without replay")
        for _ in _entries(Path(file)):
            pass
        new, entries = 0, _entries(Path(file))
        while batch := list(islice(entries, 100)):
            with self._talking(), self._store.transact():
                for key, value in batch:
                    if key not in self:
                        self.set(key, value)
                        new += 1
        return new


def open_cache(cache: Cache | str | os.PathLike | bool | None, *, replay: bool = False) -> Cache | None:
    """What the `cache` argument of `run` and `score` means.

    Parameters
    ----------
    cache : None, False, str, path or Cache
        The default folder, no cache, a folder, or the cache itself.
    replay : bool
        Answer from the cache alone; of a `Cache` this gives a view over the same store.

    Raises
    ------
    InputError
        `cache` is none of these, or there is nothing to replay from.
    """
    if cache is False:
        if replay:
            raise InputError("replay=True with cache=False: there is no cache to replay from")
        return None
    if not isinstance(cache, Cache):
        return Cache(cache, replay=replay)
    if not replay or cache.replay:
        return cache
    view = copy.copy(cache)
    view.replay = True
    return view


@contextmanager
def _whole_file(path: Path) -> Iterator[IO[str]]:
    """A text file that is there when it is whole, or not at all."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(beside, "x", encoding="utf-8", newline="\n") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        os.replace(beside, path)
    except OSError as error:
        raise FileError(f"cannot be written ({error.strerror or error})", path) from error
    finally:
        with suppress(OSError):
            beside.unlink()


def _entries(path: Path) -> Iterator[tuple[str, Any]]:
    """The keys and values of an exported file."""
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield _entry(line, path, number)
    except OSError as error:
        raise FileError(f"cannot be read ({error.strerror or error})", path) from error


def _entry(line: bytes, path: Path, number: int) -> tuple[str, Any]:
    expected = 'expected {"key": text, "value": ...}, as Cache.export writes it'
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FileError(f"not JSON ({error}); {expected}", path, number) from None
    match entry:
        case {"key": str(key), "value": value} if len(entry) == 2 and key.isprintable():
            return key, value
    raise FileError(f"not an entry of a cache: {line[:60]!r}; {expected}", path, number)
