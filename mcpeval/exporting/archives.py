"""JSON out of zip files that somebody else made: no member is unpacked to the disk, or beyond a size."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import FileError

MEMBER_BYTES = 2**30
ALL_BYTES = 2**36


class Archive:
    """An open zip file of JSON members; a name that stands in it twice is its last member."""

    def __init__(self, opened: Any, path: Path) -> None:
        self._zip, self.path = opened, path
        self.names = list(dict.fromkeys(opened.namelist()))
        size = sum(member.file_size for member in opened.infolist())
        if size > ALL_BYTES:
            raise FileError(f"would be {size / 2**30:.0f} GB unpacked; at most {ALL_BYTES // 2**30} are read", path)

    def read(self, name: str) -> Any:
        """The JSON value of a member.

        Raises
        ------
        FileError
            The member is too large, damaged or no JSON, or its compression is not known here.
        """
        try:
            if self._zip.getinfo(name).file_size > MEMBER_BYTES:
                raise FileError(f"{name!r} would be over {MEMBER_BYTES // 2**30} GB unpacked", self.path)
            return json.loads(self._zip.read(name))
        except NotImplementedError as error:
            raise FileError(
                f"{name!r} is compressed by zstandard, for which Python before 3.14 needs backports.zstd: "
                "pip install 'mcpeval[inspect]'",
                self.path,
            ) from error
        except FileError:
            raise
        except Exception as error:  # zlib and zstd have errors of their own, and a damaged member many
            raise FileError(f"{name!r} cannot be read: {error}", self.path) from error


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """The zip file at `path`.

    Raises
    ------
    FileError
        It is no zip file, or too large unpacked.
    """
    zipfile = _zipfile()
    try:
        opened = zipfile.ZipFile(path)
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError) as error:
        raise FileError(f"no zip file: {error}", path) from error
    with opened:
        yield Archive(opened, path)


def _zipfile() -> Any:
    """The module that reads zip files, with zstandard where it is there (in Python itself from 3.14 on)."""
    if sys.version_info < (3, 14):
        try:
            from backports.zstd import zipfile
        except ImportError:
            pass
        else:
            return zipfile
    import zipfile

    return zipfile
