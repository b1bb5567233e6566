"""diskcache, made safe for what must last and for databases from elsewhere.

Stock diskcache drops the oldest entries at 1 GiB, unpickles what a row says is a pickle, opens and
deletes whatever file a row names, obeys the settings a database brings, and fails with "database is
locked" where several processes open a new folder at once.  None of that is left here.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import threading
import time
import zlib
from contextlib import closing
from pathlib import Path

import diskcache

from ..errors import CacheError, InputError
from .keys import json_text

DATABASE = "cache.db"
_IN_ROW = 1  # diskcache's mode of a value that stands in its row as it is
_PATIENCE = 60.0  # seconds to wait for other processes that write

FAILURES = (sqlite3.Error, diskcache.Timeout)
"""What a store raises where SQLite cannot do what it should."""

# Every setting diskcache knows, said anew at each opening: what is not said it takes from the database,
# where an earlier owner may have left a size limit and an eviction policy.
_SETTINGS = {
    **diskcache.DEFAULT_SETTINGS,
    "eviction_policy": "none",
    "size_limit": 2**62,
    "cull_limit": 0,
    # A killed process loses nothing; only a power cut may lose the last commits. Waiting for the disk at
    # each of them (2) takes several milliseconds of the loop on which all calls run.
    "sqlite_synchronous": 1,
    "sqlite_trusted_schema": 0,
}
_COUNTERS = ("count", "size", "hits", "misses")


class _JsonDisk(diskcache.Disk):
    """Keys are text; a value is zlib-compressed JSON in its row.

    diskcache's own Disk (and JSONDisk over it) unpickles what a row says is a pickle, and opens and
    deletes whatever file a row names.  Nothing of it is called here.
    """

    def put(self, key):
        try:
            key.encode()
        except (AttributeError, UnicodeEncodeError):
            raise InputError(f"key={key!r}; expected Unicode text") from None
        return key, True

    def get(self, key, raw):
        """The key of a row, or None where `store` did not write it."""
        return key if raw == 1 and isinstance(key, str) else None

    def store(self, value, read, key=None):
        if read:
            raise InputError("read=True; the cache keeps JSON values, not files")
        return 0, _IN_ROW, None, zlib.compress(json_text(value).encode("ascii"), 1)

    def fetch(self, mode, filename, value, read):
        if mode != _IN_ROW or filename is not None or read or not isinstance(value, bytes):
            raise CacheError("it is not an entry that mcpeval wrote")
        try:
            return json.loads(zlib.decompress(value))
        except (zlib.error, ValueError, RecursionError) as error:
            raise CacheError(f"it cannot be read ({error})") from None

    def remove(self, file_path):
        """No value lives in a file, so none is ever removed."""


class _ReplayStore(diskcache.Cache):
    """diskcache's reading half: opening it writes nothing, so it may lie on a read-only mount."""

    def __init__(self, folder: Path) -> None:
        self._directory, self._timeout, self._txn_id = str(folder), _PATIENCE, None
        self._local, self._disk = threading.local(), _JsonDisk(str(folder))
        self.statistics, self.eviction_policy = 0, "none"

    @property
    def _con(self) -> sqlite3.Connection:
        if getattr(self._local, "pid", None) != os.getpid():  # a connection does not outlive a fork
            self.close()
            self._local.pid = os.getpid()
        if getattr(self._local, "con", None) is None:
            self._local.con = _connect_to_read(Path(self._directory, DATABASE))
        return self._local.con


def _connect_to_read(database: Path, how: str = "mode=rw") -> sqlite3.Connection:
    connection = sqlite3.connect(f"{database.as_uri()}?{how}", uri=True, timeout=_PATIENCE, isolation_level=None)
    try:
        connection.execute("PRAGMA query_only = 1")
        connection.execute("PRAGMA trusted_schema = 0")
        connection.execute("SELECT key FROM Cache LIMIT 1").fetchone()
        return connection
    except sqlite3.Error as error:
        connection.close()
        # Where SQLite cannot make its -shm file (a read-only mount) the database alone can still be read,
        # unless late writes stand in the log beside it: leaving those out in silence would be wrong.
        log = Path(f"{database}-wal")
        late_writes = log.exists() and log.stat().st_size > 0
        if how != "mode=rw" or late_writes or not _named(error, "SQLITE_CANTOPEN", "SQLITE_READONLY"):
            raise
    return _connect_to_read(database, "mode=ro&immutable=1")


def _named(error: Exception, *names: str) -> bool:
    """Whether SQLite's name of an error starts with one of `names`."""
    return getattr(error, "sqlite_errorname", "").startswith(names)


def _forget_foreign_settings(database: Path) -> None:
    """Delete from an existing database the settings that are not diskcache's own.

    It makes every row of its table an attribute of itself and a PRAGMA of those called ``sqlite_*``:
    a row ``_directory`` would lead it to a database in another folder.
    """
    known = (*_SETTINGS, *_COUNTERS)
    foreign = f"FROM Settings WHERE key IS NULL OR key NOT IN ({','.join('?' * len(known))})"
    with closing(sqlite3.connect(database, timeout=_PATIENCE, isolation_level=None)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'Settings'").fetchone():
            return
        if connection.execute(f"SELECT 1 {foreign}", known).fetchone():
            connection.execute(f"DELETE {foreign}", known)


def _write_store(folder: Path) -> diskcache.Cache:
    """diskcache with our settings; waits its turn where several processes open a folder at once."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            _forget_foreign_settings(folder / DATABASE)
            return diskcache.Cache(str(folder), timeout=_PATIENCE, disk=_JsonDisk, **_SETTINGS)
        except sqlite3.OperationalError as error:
            # diskcache opens with no wait for locks, and repeats only some of its statements itself.
            if not _named(error, "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL") or time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.001, 0.02))


def open_store(folder: Path, replay: bool) -> diskcache.Cache:
    """The diskcache of a folder, to be written, or (`replay`) to be read and left as it is.

    Raises
    ------
    InputError
        The folder is a file, cannot be written, or (with `replay`) cannot be read or is not there.
    CacheError
        What lies there is not such a database.
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"cache={str(folder)!r} is a file; expected a folder")
        if replay and not (folder / DATABASE).is_file():
            raise InputError(f"cache={str(folder)!r} has nothing to replay: there is no {DATABASE} in it")
        if replay:
            with _ReplayStore(folder) as store:  # connects once, so that a fault shows here
                return store
        folder.mkdir(parents=True, exist_ok=True)
        return _write_store(folder)
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or error
        unreachable = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_FULL", "SQLITE_IOERR")
        if isinstance(error, sqlite3.Error) and not _named(error, *unreachable):
            raise CacheError(f"{folder / DATABASE} is not a cache that can be used: {reason}") from error
        advice = f"written ({reason}); give another folder, False for no cache, or replay=True to read what is there"
        if replay:
            advice = f"read ({reason}); if a {DATABASE}-wal lies in it, copy the folder to where it can be written"
        raise InputError(f"cache={str(folder)!r} cannot be {advice}") from error
