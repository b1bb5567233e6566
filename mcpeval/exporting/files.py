"""Frames to files and back: CSV, Parquet, JSON lines, and beside each a manifest."""

from __future__ import annotations

import csv
import io
import json
import os
import threading
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import FileError, InputError
from ..frames import RUN_COLUMNS, SCORE_COLUMNS, TASK_COLUMNS, clean_text, column
from . import cells
from .places import existing, manifest_path, manifest_text, path_of, read_text, replacing, target_of, write_manifest
from .provenance import manifest

_KNOWN = {**RUN_COLUMNS, **TASK_COLUMNS, **SCORE_COLUMNS}
_FIELD_LIMIT = 2**31 - 1
_field_limit = threading.Lock()  # the csv module has one limit for the whole process
_PARQUET_KEY = b"mcpeval"


def to_csv(frame: pd.DataFrame, path: str | os.PathLike[str]) -> Path:
    """Write a frame as a CSV file that reads back as it was, and its manifest beside it.

    UTF-8, every cell quoted. A cell says itself what it is (`mcpeval.exporting.cells`): nested values are
    JSON, a missing value is an empty cell and the empty text ``""``, and an apostrophe stands
    before a text that would be read as something else or that a spreadsheet would run as a formula.
    Times are written as texts, categories as their values. A column whose label is a tuple, as in
    `wide`, gets the heading ``judge.score``. An index is written, before the columns, where it has
    a name or is not just 0, 1, 2, ...

    Parameters
    ----------
    frame : DataFrame
    path : path-like
        A file that is there is replaced. ``{path}.meta.json`` gets what `manifest` says.

    Returns
    -------
    Path
        Of the CSV file.

    Raises
    ------
    InputError
        A cell holds what is no JSON (a set, bytes, an object); nothing is written.
    FileError
        There is no such folder, or it cannot be written to.
    """
    target = target_of(frame, path, "to_csv")
    about = manifest(frame)
    levels = [(name, frame.index.get_level_values(i)) for i, name in enumerate(about["index"])]
    columns = [(name, frame.iloc[:, i]) for i, name in enumerate(frame.columns)]
    written = [_cells(name, values.tolist(), "to_csv") for name, values in levels + columns]
    text = manifest_text(about)
    with replacing(target) as file, open(file, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(_headings(about["index"], frame.columns))
        writer.writerows(zip(*written))
    write_manifest(target, text)
    return target


def read_csv(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a CSV file that `to_csv` wrote, or any other.

    The columns of runs and scores frames get their dtypes by name, others by what their cells say.
    A column in which bare texts stand beside numbers (which `to_csv` never writes) is text
    throughout. Leading columns without a heading are the index. Where the manifest is still beside
    the file, names of the index, labels of columns that are no texts, and the judges' texts
    (``frame.attrs["judges"]``) come from there; without it a named index is an ordinary column.

    Parameters
    ----------
    path : path-like
        UTF-8, with or without a byte order mark; commas between cells.

    Returns
    -------
    DataFrame

    Raises
    ------
    FileError
        The file is not there, is not UTF-8, or has a row with more cells than headings.
    """
    source = path_of(path, "read_csv")
    headings, rows = _read_cells(source)
    names = [cells.decode_text(heading) for heading in headings]
    columns = [cells.decode_column([row[i] for row in rows], _KNOWN.get(name)) for i, name in enumerate(names)]
    about = _manifest_beside(source, headings)
    if about is None:
        levels = next((i for i, name in enumerate(names) if name is not None), len(names))
        return _assemble([None] * levels, names[levels:], columns, len(rows))
    frame = _assemble(about["index"], about["labels"], columns, len(rows))
    return _with_judges(frame, about["judges"])


def to_parquet(frame: pd.DataFrame, path: str | os.PathLike[str]) -> Path:
    """Write a frame as a Parquet file that `read_parquet` gives back, and its manifest beside it.

    Columns of dtype object (messages, tool calls, metadata, ...) are kept as JSON text, because
    Parquet would fill nested dicts up with each other's keys; the schema's metadata say which.

    Parameters
    ----------
    frame : DataFrame
    path : path-like

    Returns
    -------
    Path

    Raises
    ------
    InputError
        pyarrow is not installed; two columns have the same label; a cell is no JSON.
    FileError
        As `to_csv`.
    """
    target = target_of(frame, path, "to_parquet")
    arrow = _pyarrow("to_parquet")
    if not frame.columns.is_unique:
        raise InputError(f"to_parquet: two columns are named {frame.columns[frame.columns.duplicated()][0]!r}")
    plain = frame.copy(deep=False)
    plain.attrs = {}
    nested = [i for i, dtype in enumerate(frame.dtypes) if pd.api.types.is_object_dtype(dtype)]
    for i in nested:
        plain.isetitem(i, column(_json_texts(frame.columns[i], frame.iloc[:, i].tolist(), "to_parquet"), "str"))
    about = manifest(frame)
    try:
        table = arrow.Table.from_pandas(plain)
    except (arrow.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"to_parquet: the frame cannot be written: {error}") from error
    ours = json.dumps({"nested": nested, "judges": about["judges"]})
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), _PARQUET_KEY: ours.encode()})
    with replacing(target) as file:
        arrow.parquet.write_table(table, file)
    write_manifest(target, manifest_text(about))
    return target


def read_parquet(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a Parquet file that `to_parquet` wrote, or any other.

    Raises
    ------
    InputError
        pyarrow is not installed.
    FileError
        The file is not there, or is no Parquet file.
    """
    arrow = _pyarrow("read_parquet")
    source = existing(path_of(path, "read_parquet"))
    try:
        table = arrow.parquet.read_table(source)
    except arrow.ArrowInvalid as error:
        raise FileError(f"no Parquet file: {error}", source) from error
    ours = json.loads((table.schema.metadata or {}).get(_PARQUET_KEY, b"{}"))
    frame = table.to_pandas()
    for i in ours.get("nested", ()):
        texts = frame.iloc[:, i]
        values = [None if missing else json.loads(text) for text, missing in zip(texts, texts.isna(), strict=True)]
        frame.isetitem(i, pd.Series(column(values, "object").to_numpy(), dtype=object, index=frame.index))
    return _with_judges(frame, ours.get("judges") or {})


def to_jsonl(frame: pd.DataFrame, path: str | os.PathLike[str]) -> Path:
    """Write a frame as JSON lines, one object a row, and its manifest beside it.

    Parameters
    ----------
    frame : DataFrame
        A column whose label is a tuple gets the key ``judge.score``; an index that says more than 0,
        1, 2, ... comes first, where it has no name under ``index``.
    path : path-like

    Returns
    -------
    Path
        `read_jsonl` (and `read_runs`) reads it; other tools read it as plain JSON, except that a
        number in it may be ``NaN`` or ``Infinity`` where a nested value holds that.

    Raises
    ------
    InputError
        Two columns would have the same key; a cell holds what is no JSON; nothing is written.
    FileError
        As `to_csv`.
    """
    target = target_of(frame, path, "to_jsonl")
    about = manifest(frame)
    columns = headed_columns(frame, about["index"])
    names = [str(name) for name, _ in columns]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"to_jsonl: two columns are named {name!r}")
    written = [_json_texts(name, values.tolist(), "to_jsonl") for name, values in columns]
    keys = [json.dumps(name) for name in names]
    text = manifest_text(about)
    with replacing(target) as file, open(file, "w", encoding="utf-8", newline="") as stream:
        for row in zip(*written) if written else [()] * len(frame):
            stream.write("{" + ", ".join(f"{key}: {cell or 'null'}" for key, cell in zip(keys, row)) + "}\n")
    write_manifest(target, text)
    return target


def read_jsonl(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read JSON lines that `to_jsonl` wrote, or any others: one object a line, whose keys are the columns.

    Raises
    ------
    FileError
        The file is not there, or a line is no JSON object.
    """
    return frame_of_objects(json_lines(existing(path_of(path, "read_jsonl"))))


def json_lines(source: Path) -> list[dict[str, Any]]:
    """The JSON objects of a file that has one a line; empty lines are passed over."""
    rows = []
    for number, line in enumerate(read_text(source).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise FileError(f"no JSON: {error}", source, number) from error
        if not isinstance(row, dict):
            raise FileError(f"expected a JSON object, not {line:.60}", source, number)
        rows.append(row)
    return rows


def frame_of_objects(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A frame of JSON objects whose keys are the columns, with the dtypes of the names that are known."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    written = {name: _cells(name, [row.get(name) for row in rows], "read_runs") for name in names}
    columns = [cells.decode_column(given, _KNOWN.get(name)) for name, given in written.items()]
    return _assemble([], names, columns, len(rows))


def _cells(name: Hashable, values: Sequence[Any], caller: str) -> list[str]:
    try:
        return cells.encode_column(values, _KNOWN.get(name))
    except ValueError as error:
        raise InputError(f"{caller}: column {name!r}, {error}") from error


def _json_texts(name: Hashable, values: Sequence[Any], caller: str) -> list[str | None]:
    try:
        return [None if cells.is_missing(value) else cells.to_json(value) for value in values]
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{caller}: column {name!r} cannot be written as JSON: {error}") from error


def _headings(levels: Sequence[Hashable], labels: Sequence[Hashable]) -> list[str]:
    """The cells over the columns: ``judge.score`` for a tuple, nothing over an index without a name."""
    return ["" if level is None else _heading(level) for level in levels] + [_heading(label) for label in labels]


def _heading(label: Hashable) -> str:
    return cells.encode(plain_heading(label))


def plain_heading(label: Hashable) -> str:
    """The text over a column: ``judge.score`` for a tuple."""
    parts = label if isinstance(label, tuple) else (label,)
    return clean_text(".".join(str(part) for part in parts if part != ""))


def headed_columns(frame: pd.DataFrame, levels: Sequence[Hashable]) -> list[tuple[Hashable, Any]]:
    """The index's `levels`, then the columns, each with what stands over it; a level without a name is "index"."""
    index = [("index" if name is None else name, frame.index.get_level_values(i)) for i, name in enumerate(levels)]
    return [*index, *((plain_heading(name), frame.iloc[:, i]) for i, name in enumerate(frame.columns))]


def _label(given: Any) -> Hashable:
    if isinstance(given, list):
        return tuple(map(_label, given))
    return clean_text(given) if isinstance(given, str) else given


def _assemble(
    levels: Sequence[Hashable], labels: Sequence[Hashable], columns: Sequence[Any], rows: int
) -> pd.DataFrame:
    """The frame of `columns`, the first ``len(levels)`` of which are its index."""
    # pandas would make texts of an object array, so each column says its dtype itself.
    series = [pd.Series(values, dtype=values.dtype) for values in columns]
    frame = pd.DataFrame(dict(enumerate(series[len(levels) :])), index=pd.RangeIndex(rows))
    grouped = bool(labels) and all(isinstance(label, tuple) for label in labels)
    frame.columns = pd.MultiIndex.from_tuples(labels) if grouped else pd.Index(labels)
    if len(levels) == 1:
        frame.index = pd.Index(series[0], name=levels[0])
    elif levels:
        frame.index = pd.MultiIndex.from_arrays(series[: len(levels)], names=levels)
    return frame


def _with_judges(frame: pd.DataFrame, judges: Mapping[str, Any]) -> pd.DataFrame:
    if known := {fingerprint: text for fingerprint, text in judges.items() if text is not None}:
        frame.attrs["judges"] = known
    return frame


def _read_cells(path: Path) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of a CSV file, every row as long as the headings."""
    text = read_text(existing(path))
    with _field_limit:
        limit = csv.field_size_limit(_FIELD_LIMIT)
        try:
            reader = csv.reader(io.StringIO(text, newline=""), strict=True)  # a file that was cut is no CSV
            lines = [(reader.line_num, row) for row in reader if row]
        except csv.Error as error:
            raise FileError(f"no CSV: {error}", path, reader.line_num) from error
        finally:
            csv.field_size_limit(limit)
    if not lines:
        return [], []
    headings = lines[0][1]
    for number, row in lines:
        if len(row) > len(headings):
            raise FileError(f"{len(row)} cells under {len(headings)} headings", path, number)
        row.extend([""] * (len(headings) - len(row)))
    return headings, [row for _, row in lines[1:]]


def _manifest_beside(path: Path, headings: Sequence[str]) -> dict[str, Any] | None:
    """Index, labels and judges from the manifest of a CSV file, where it is one of these headings."""
    try:
        about = json.loads(manifest_path(path).read_text("utf-8"))
        levels = [_label(name) for name in about["index"]]
        labels = [_label(column["name"]) for column in about["columns"]]
        found = {"index": levels, "labels": labels, "judges": dict(about["judges"])}
    except (OSError, ValueError, TypeError, LookupError):
        return None
    return found if _headings(levels, labels) == list(headings) else None


def _pyarrow(caller: str) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(f"{caller} needs pyarrow: pip install 'mcpeval[parquet]' (CSV files need nothing)") from error
    return pyarrow
