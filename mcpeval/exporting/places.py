"""Where files are written and read: checked paths, whole files, and a manifest beside each.

A file appears whole or not at all: it is written under another name and then takes the place of
what was there.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import FileError, InputError
from . import cells


def manifest_path(path: Path) -> Path:
    """Where the manifest of the file at `path` lies."""
    return path.with_name(f"{path.name}.meta.json")


def write_manifest(path: Path, about: str) -> None:
    """Put a manifest, as `manifest_text` gave it, beside the file at `path`."""
    with replacing(manifest_path(path)) as file:
        file.write_text(about, "utf-8")


def manifest_text(about: Mapping[str, Any]) -> str:
    """A manifest as JSON text; made before anything is written, since it may fail."""
    try:
        return json.dumps(json.loads(cells.to_json(about)), indent=2) + "\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the manifest of this frame cannot be written as JSON: {error}") from error


def target_of(frame: pd.DataFrame, path: str | os.PathLike[str], caller: str) -> Path:
    """The path of a file to be, checked, and `frame` with it."""
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"{caller}: frame is a {type(frame).__name__}; expected a DataFrame, then a path")
    target = path_of(path, caller)
    if not os.path.isdir(target.parent):  # not Path.is_dir, which raises where a name is too long
        raise FileError(f"there is no folder {target.parent}", target)
    if os.path.isdir(target):
        raise FileError("is a folder; expected the path of a file", target)
    return target


def path_of(path: Any, caller: str) -> Path:
    """`path` as a Path; `InputError` where it is none."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"{caller}: path is a {type(path).__name__}; expected the path of a file")
    if "\0" in str(path):
        raise InputError(f"{caller}: path={str(path)!r} should be the path of a file; it holds a NUL")
    return Path(path)


def existing(path: Path) -> Path:
    """`path`, where there is a file; `FileError` elsewhere."""
    if os.path.isdir(path):
        raise FileError("is a folder; expected the path of a file", path)
    if not os.path.isfile(path):
        raise FileError("no such file", path)
    return path


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, line ends as they are, without a byte order mark."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:  # line ends as they are
            return stream.read()
    except UnicodeDecodeError as error:
        raise FileError(f"not UTF-8: {error}", path) from error
    except OSError as error:
        raise FileError(f"cannot be read: {error.strerror or error}", path) from error


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A path to write to; what was written takes the place of `target`, or is removed on an error."""
    temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        raise FileError(f"cannot be written: {error.strerror or error}", target) from error
    finally:
        temporary.unlink(missing_ok=True)
