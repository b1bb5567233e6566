"""Runs from files and folders, of whatever kind (`read_runs`)."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

from ..errors import FileError, InputError, did_you_mean
from ..frames import runs_frame
from .archives import open_archive
from .files import frame_of_objects, json_lines, read_csv, read_parquet
from .places import existing, path_of, read_text

#: Modules that read other systems' result files: ``reads(data)`` says whether parsed JSON is theirs,
#: ``rows(data, path)`` gives the rows of a runs frame; ``joined(earlier, later)``, where a module has it,
#: makes one row of two files' rows of the same ``run_id``, and ``BESIDE`` names a file that is read with another.
TRANSCRIPTS = [
    "mcpeval.interop.tau",
    "mcpeval.interop.inspect_ai",
    "mcpeval.interop.livemcpbench",
    "mcpeval.interop.mcpmark",
    "mcpeval.interop.openai_chat",
]
_FOREIGN = (".eval", ".json", ".jsonl")


def read_runs(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a runs frame from a file or a folder, whatever its kind.

    Parameters
    ----------
    path : path-like
        - ``.csv`` (`read_csv`), ``.parquet`` (`read_parquet`), ``.jsonl``: one JSON object a line, whose
          keys are the columns.
        - The result file of another system that a module named in `TRANSCRIPTS` reads: ``.json`` of
          tau-bench, tau2, LiveMCPBench and MCPMark, ``.eval`` and ``.json`` logs of Inspect, ``.jsonl`` of
          OpenAI's chat messages (fine-tuning examples, batch requests and answers).
        - A folder of such files, at any depth: an experiment of MCPMark's, a folder of Inspect's logs,
          LiveMCPBench's trajectories with its judges' results. What is of no known form is passed
          over, and so are tables of our own.

    Returns
    -------
    DataFrame
        `mcpeval.interop.recorded_scores` has what the other system said of them. Of a folder,
        ``metadata["file"]`` names the file of each run.

    Raises
    ------
    FileError
        There is nothing, its suffix is another, it is damaged, or nobody knows its form.
    """
    source = path_of(path, "read_runs")
    if os.path.isdir(source):
        return _read_folder(source)
    readers = {".csv": read_csv, ".parquet": read_parquet, **dict.fromkeys(_FOREIGN, _read_foreign)}
    reader = readers.get(source.suffix.lower())
    if reader is None:
        raise FileError(f"no reader for the suffix {source.suffix!r}. {did_you_mean(source.suffix, readers)}", source)
    return reader(existing(source))


def _read_foreign(path: Path) -> pd.DataFrame:
    data = _data_in(path)
    if (found := _rows_of(data, path)) is not None:
        return _frame(found[1], path)
    if path.suffix.lower() == ".jsonl":
        return frame_of_objects(data)
    raise FileError(f"no known form of transcripts (known: {_known()}); a file with one row a line is .jsonl", path)


def _data_in(path: Path) -> Any:
    """The JSON of a file: a list of objects of one with a line for each, a log with its samples of a zip file."""
    suffix = path.suffix.lower()
    return _log(path) if suffix == ".eval" else json_lines(path) if suffix == ".jsonl" else _parsed(path)


def _rows_of(data: Any, path: Path) -> tuple[ModuleType, list[dict[str, Any]]] | None:
    """The module that knows the form of a file, and the rows it makes of it; None where none does."""
    for reader in _readers():
        if reader.reads(data):
            try:
                return reader, reader.rows(data, path)
            except FileError:
                raise
            except InputError as error:
                raise FileError(str(error), path) from error
    return None


def _frame(rows: list[dict[str, Any]], path: Path) -> pd.DataFrame:
    try:
        return runs_frame(rows)
    except (TypeError, ValueError, OverflowError) as error:
        raise FileError(f"a run has not what a runs frame holds: {error}", path) from error


def _parsed(path: Path) -> Any:
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"no JSON: {error}", path) from error


def _log(path: Path) -> Mapping[str, Any]:
    """An Inspect log out of its zip file; the samples are read one by one, since each may be large."""
    with open_archive(path) as archive:
        if "header.json" in archive.names:
            header = archive.read("header.json")
        elif "_journal/start.json" in archive.names:  # it was broken off, or is still being written
            header = {"status": "started", **archive.read("_journal/start.json")}
        else:
            raise FileError("no log of Inspect's: it has neither header.json nor _journal/start.json", path)
    if not isinstance(header, dict):
        raise FileError("no log of Inspect's: its header is no JSON object", path)
    return {**header, "samples": _samples(path)}


def _samples(path: Path) -> Iterator[Any]:
    with open_archive(path) as archive:
        for name in archive.names:
            if name.startswith("samples/") and name.endswith(".json"):
                yield archive.read(name)


# --- folders -------------------------------------------------------------------------------------


def _read_folder(folder: Path) -> pd.DataFrame:
    beside = {getattr(reader, "BESIDE", None) for reader in _readers()}
    found = []
    for path in sorted(folder.rglob("*")):
        shown = not any(part.startswith(".") for part in path.relative_to(folder).parts)
        if shown and path.suffix.lower() in _FOREIGN and path.is_file() and path.name not in beside:
            if path.name.endswith(".meta.json"):
                continue  # a manifest of ours
            if (read := _rows_of(_data_in(path), path)) is not None:
                found.append((path, *read))
    if not found:
        raise FileError(
            f"no file of a known form in this folder (known: {_known()}); a table is read by its own path", folder
        )
    return _frame(_together(found, folder), folder)


def _together(found: list[tuple[Path, ModuleType, list[dict[str, Any]]]], folder: Path) -> list[dict[str, Any]]:
    """The rows of several files: those of one run are joined where their module can, others kept apart by name."""
    kept: dict[str, tuple[ModuleType, dict[str, Any]]] = {}
    several = {reader for _, reader, _ in found if [one for _, one, _ in found].count(reader) > 1}
    for path, reader, rows in found:
        name = path.relative_to(folder).as_posix()
        for row in rows:
            row["metadata"] = {**row["metadata"], "file": name}
            joins = hasattr(reader, "joined")
            if reader in several and not joins and row.get("model") is None:
                row["agent"] = f"{row['agent']}:{path.stem}"  # files of one system are of one agent each
            before = kept.get(row["run_id"])
            if before is not None and joins and before[0] is reader:
                row = reader.joined(before[1], row)
            elif before is not None:
                row["run_id"] = f"{name}: {row['run_id']}"
            kept[row["run_id"]] = (reader, row)
    return [row for _, row in kept.values()]


def _readers() -> list[ModuleType]:
    return [importlib.import_module(name) for name in TRANSCRIPTS]


def _known() -> str:
    return ", ".join(name.rpartition(".")[2] for name in TRANSCRIPTS)
