"""Frames as Excel workbooks (`to_excel`)."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ..frames import clean_text
from . import cells
from .files import headed_columns
from .places import manifest_text, replacing, target_of, write_manifest
from .provenance import manifest

#: What one cell, and one sheet, of Excel can hold.
CELL, ROWS, COLUMNS = 32_767, 1_048_576, 16_384
_CUT = " … [cut: {} characters]"
_EXACT = 2**53  # Excel's numbers are floats
# What XML cannot hold, and what would be read as such an escape (ECMA-376, ST_Xstring).
_UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")


def to_excel(frame: pd.DataFrame, path: str | os.PathLike[str]) -> Path:
    """Write a frame as an Excel workbook to look at, and its manifest beside it.

    The sheet ``data`` has the frame, with a filter on each column and the headings in view; the sheet
    ``manifest`` what `manifest` says. Numbers and truths are those of Excel, nested values are JSON, and
    every text is a text: what begins with ``=`` is shown and never calculated. A missing value is an
    empty cell.

    Parameters
    ----------
    frame : DataFrame
        An index that says more than 0, 1, 2, ... comes first.
    path : path-like
        ``.xlsx``

    Returns
    -------
    Path

    Warns
    -----
    UserWarning
        Texts of more than 32,767 characters, which is all that a cell can hold, were cut; their ends
        say so.  CSV, Parquet and JSON lines keep them whole.

    Raises
    ------
    InputError
        openpyxl is not installed; the frame has more rows or columns than a sheet; a cell is no JSON.
    FileError
        As `to_csv`.
    """
    target = target_of(frame, path, "to_excel")
    if target.suffix.lower() != ".xlsx":
        raise InputError(f"to_excel: path={str(path)!r} should end in .xlsx")
    openpyxl = _openpyxl()
    about = manifest(frame)
    columns = headed_columns(frame, about["index"])
    if len(frame) + 1 > ROWS or len(columns) > COLUMNS:
        raise InputError(
            f"to_excel: the frame has {len(frame)} rows and {len(columns)} columns; a sheet of Excel holds "
            f"{ROWS - 1} and {COLUMNS}"
        )
    written = [_values(name, values.tolist()) for name, values in columns]
    text = manifest_text(about)
    book = openpyxl.Workbook(write_only=True)
    _data_sheet(book, [str(name) for name, _ in columns], written)
    sheet = book.create_sheet("manifest")
    for key, value in about.items():
        sheet.append([_cell(sheet, key), _cell(sheet, _cut(value if isinstance(value, str) else cells.to_json(value)))])
    if long := sum(isinstance(value, str) and len(value) > CELL for column in written for value in column):
        warnings.warn(
            f"to_excel: {long} texts were longer than a cell holds ({CELL:,} characters) and were cut", stacklevel=2
        )
    with replacing(target) as file, open(file, "wb") as stream:
        book.save(stream)
    write_manifest(target, text)
    return target


def _data_sheet(book: Any, headings: Sequence[str], columns: Sequence[Sequence[Any]]) -> None:
    from openpyxl.utils import get_column_letter

    sheet = book.create_sheet("data")
    sheet.freeze_panes = "A2"
    for i, heading in enumerate(headings, start=1):
        sheet.column_dimensions[get_column_letter(i)].width = min(max(len(heading) + 3, 10), 40)
    rows = len(columns[0]) if columns else 0
    if headings:
        sheet.auto_filter.ref = f"A1:{get_column_letter(len(headings))}{rows + 1}"
    sheet.append([_cell(sheet, heading) for heading in headings])
    for row in zip(*columns):
        sheet.append([_cell(sheet, _cut(value) if isinstance(value, str) else value) for value in row])


def _values(name: Hashable, values: Sequence[Any]) -> list[Any]:
    """Cells as Excel has them: text, number, truth or nothing."""
    try:
        return [_value(value) for value in values]
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"to_excel: column {name!r} cannot be written: {error}") from error


def _value(value: Any) -> str | int | float | bool | None:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool | str):
        return value
    if cells.is_missing(value):
        return None
    if isinstance(value, int) and abs(value) <= _EXACT or isinstance(value, float) and math.isfinite(value):
        return value
    return cells.encode(value)


def _cut(text: str) -> str:
    if len(text) <= CELL:
        return text
    mark = _CUT.format(f"{len(text):,}")
    return text[: CELL - len(mark)] + mark


def _cell(sheet: Any, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(sheet)
    # Not cell.value, which would refuse control characters, and cut a text by its escaped length.
    cell._value = _UNWRITABLE.sub(lambda found: f"_x{ord(found[0]):04X}_", clean_text(value))
    cell.data_type = "s"  # a text, whatever it begins with
    return cell


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError as error:
        raise InputError("to_excel needs openpyxl: pip install 'mcpeval[excel]'") from error
    return openpyxl
