"""A hostile cache database, and a watch on what is done with it."""

import pickle
import sqlite3
import sys
import zlib
from contextlib import closing, contextmanager
from pathlib import Path

import diskcache


class Canary:
    """Unpickling it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def insert(folder: Path, rows: list[dict] = (), settings: dict | None = None) -> None:
    """Write rows and settings into a cache's database as an attacker would, past diskcache."""
    plain = {"raw": 1, "mode": 1, "filename": None, "value": None, "expire_time": None}
    with closing(sqlite3.connect(folder / "cache.db")) as connection, connection:
        connection.executemany(
            "INSERT INTO Cache (key, raw, store_time, expire_time, access_time, mode, filename, value)"
            " VALUES (:key, :raw, 0, :expire_time, 0, :mode, :filename, :value)",
            [{**plain, **row} for row in rows],
        )
        connection.executemany("INSERT OR REPLACE INTO Settings VALUES (?, ?)", (settings or {}).items())


@contextmanager
def watched():
    """The opened and removed files and the unpicklings of a block, as Python's audit events tell them."""
    _seen.clear()
    _watching.append(True)
    try:
        yield _seen
    finally:
        _watching.clear()


_seen: list[tuple] = []
_watching: list[bool] = []


def _watch(event: str, arguments: tuple) -> None:
    if _watching and event in ("open", "os.remove", "os.rmdir", "os.rename", "pickle.find_class"):
        _seen.append((event, str(arguments[0])))


sys.addaudithook(_watch)


class Crafted:
    """A database with every kind of hostile row, and the files it must not touch."""

    def __init__(self, top: Path) -> None:
        self.folder, self.canary = top / "cache", top / "canary"
        diskcache.Cache(str(self.folder)).close()
        self.outside, self.inside = top / "outside.txt", self.folder / "ab" / "inside.val"
        self.inside.parent.mkdir()
        attack = pickle.dumps(Canary(self.canary))
        for file in (self.outside, self.inside):
            file.write_bytes(attack)
        rows = [
            {"key": "value:pickle", "mode": 4, "value": attack},
            {"key": attack, "raw": 0, "value": b"x"},
            {"key": b"value:bytes", "value": b"x"},
        ]
        for mode in (1, 2, 3, 4):
            rows += [
                {"key": f"value:outside-{mode}", "mode": mode, "filename": "../outside.txt"},
                {"key": f"value:absolute-{mode}", "mode": mode, "filename": str(self.outside)},
                {"key": f"value:inside-{mode}", "mode": mode, "filename": "ab/inside.val"},
                {"key": f"value:expired-{mode}", "mode": mode, "filename": "../outside.txt", "expire_time": 1.0},
                {"key": f"value:both-{mode}", "mode": mode, "filename": "../outside.txt", "value": zlib.compress(b"1")},
            ]
        rows += [{"key": f"value:raw-{value}", "value": value} for value in ("text", 7, 1.5, None, b"", b"not zlib")]
        insert(self.folder, rows)
        self.keys = [row["key"] for row in rows if isinstance(row["key"], str)]

    def untouched(self, seen: list) -> bool:
        return seen == [] and not self.canary.exists() and self.outside.exists() and self.inside.exists()
