"""Task files: JSON and JSONL, one task or many, read with the place of every fault."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .errors import FileError, InputError
from .preparing import check_steps
from .types import Task

SUFFIXES = (".json", ".jsonl")


def read_tasks(source: str | os.PathLike | Mapping | Task | Iterable) -> list[Task]:
    """Read tasks from files, a folder, or values that are here already.

    Parameters
    ----------
    source : path, or list of paths, dicts and Tasks
        A ``.json`` file (one task, or an array of tasks), a ``.jsonl`` file (one task a line), or
        a folder, whose ``.json`` and ``.jsonl`` files are read at any depth, in the order of
        their paths; hidden ones are left out.

    Returns
    -------
    list of Task
        In the order found.  A task without an ``id`` takes its file's name without suffix,
        followed by ``-1``, ``-2``, ... where a file holds several.

    Raises
    ------
    FileError
        A file is missing, is not UTF-8 or not JSON, or holds what is not a task (a misspelt key,
        no question, a clean-up that cannot be read); names the file, and the line where it is known.
    InputError
        Two tasks share an id, or `source` is none of the above.

    Examples
    --------
    >>> [task.id for task in read_tasks([{"id": "sum", "question": "What is 2 + 2?"}])]
    ['sum']
    """
    tasks: list[Task] = []
    places: dict[str, str] = {}
    for task, place in _read(source, "the list"):
        if task.id in places:
            raise InputError(f"two tasks have the id {task.id!r}: one in {places[task.id]}, one in {place}")
        places[task.id] = place
        tasks.append(task)
    return tasks


def _read(source: Any, place: str) -> Iterator[tuple[Task, str]]:
    """The tasks of `source`, each with the place that an error would name."""
    if isinstance(source, Task):
        yield check_steps(source), place
    elif isinstance(source, Mapping):
        yield check_steps(Task.from_dict(source)), place
    elif isinstance(source, (str, os.PathLike)) and source != "":  # which would be the working folder
        for file in _files(Path(source)):
            yield from _read_file(file)
    elif isinstance(source, Iterable) and not isinstance(source, (str, bytes)):
        for number, item in enumerate(source, start=1):
            yield from _read(item, f"item {number}")
    else:
        raise InputError(f"tasks={source!r:.80} should be a file, a folder, a task, or a list of those")


def _files(path: Path) -> list[Path]:
    if os.path.isdir(path):  # not path.is_dir(), which raises where a name is too long
        found = [p for p in sorted(path.rglob("*")) if p.suffix in SUFFIXES and p.is_file()]
        shown = [p for p in found if not any(part.startswith(".") for part in p.relative_to(path).parts)]
        if not shown:
            raise FileError("no .json or .jsonl file in this folder", path)
        return shown
    if not os.path.exists(path):
        raise FileError("there is no such file or folder", path)
    if path.suffix not in SUFFIXES:
        raise FileError("a task file's name should end in .json or .jsonl", path)
    return [path]


def _read_file(path: Path) -> Iterator[tuple[Task, str]]:
    read = _json_lines if path.suffix == ".jsonl" else _json_document
    for data, line, default_id in read(path, _text(path)):
        try:
            task = check_steps(Task.from_dict(data, default_id=default_id))
        except InputError as error:
            raise FileError(str(error), path, line) from None
        if task.workdir is not None:
            task = replace(task, workdir=str(path.absolute().parent / task.workdir))
        yield task, f"{path}, line {line}"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FileError(f"cannot be read: {error.strerror or error}", path) from None
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise FileError(f"not UTF-8: {error.reason}", path, line) from None


def _json_document(path: Path, text: str) -> Iterator[tuple[Any, int, str]]:
    """(data, line, default id) of the one object in `text`, or of each item of its array."""
    start = len(text) - len(text.lstrip())
    if not text.startswith("[", start):
        yield _parse(text, path, 1), text.count("\n", 0, start) + 1, path.stem
        return
    # Parsed as a whole for its faults, then item by item for the line where each begins.
    items = _parse(text, path, 1)
    decoder, position = json.JSONDecoder(), start + 1
    for number, _ in enumerate(items, start=1):
        position = next(i for i in range(position, len(text)) if text[i] not in " \t\r\n,")
        item, end = decoder.raw_decode(text, position)
        yield item, text.count("\n", 0, position) + 1, f"{path.stem}-{number}"
        position = end


def _json_lines(path: Path, text: str) -> Iterator[tuple[Any, int, str]]:
    """(data, line, default id) of each line that is not blank."""
    # Not splitlines(): a JSON text may hold U+2028, which is no end of a line here.
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    for count, (number, line) in enumerate(lines, start=1):
        yield _parse(line, path, number), number, path.stem if len(lines) == 1 else f"{path.stem}-{count}"


def _parse(text: str, path: Path, first_line: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise FileError(f"not JSON: {error.msg} (column {error.colno})", path, line) from None
    except RecursionError:
        raise FileError("not a task: nested too deeply", path, first_line) from None
