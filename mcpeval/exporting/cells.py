"""The values of a frame as the texts of CSV cells, and back.

A cell says itself what it is:

- JSON for a number, a truth value, a list, an object;
- nothing for a missing value, ``""`` (two quotation marks) for the empty text;
- a text as it is, unless it would be read as one of the above or a spreadsheet would run it as a
  formula: then an apostrophe stands before it. A text with NULs or lone surrogates, which a file
  cannot hold, is a JSON string.

So ``7`` is a number and ``'7`` a text, ``-5`` a number and ``'-x`` a text, and ``007``, ``NA``,
``None`` and ``nan`` are texts. The rules hold for what others wrote too: an apostrophe that
protects nothing (``'tis``) and quotation marks around a word belong to the text.

In a column that mixes texts with other values every text is a JSON string, so that a bare text
beside a bare number can only come from elsewhere, and means a column of texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date, time, timedelta
from typing import Any

import numpy as np
import pandas as pd

from ..frames import column

_SURROGATES = re.compile("[\ud800-\udfff]")
_FORMULA = tuple("=+-@\t\r")
_JSON_START = frozenset(' \t\n\r{["-0123456789tfnNI')  # N and I: NaN and Infinity
_TEXTS = (str, date, time, timedelta, np.datetime64, np.timedelta64, pd.Period, pd.Interval)
_NULLABLE = {"int64": "Int64", "bool": "boolean"}
_TRUTHS = {"True": True, "TRUE": True, "False": False, "FALSE": False}  # as pandas and spreadsheets write them


def to_json(value: Any) -> str:
    """`value` as JSON text that UTF-8 can hold.

    Tuples are lists, keys are texts, times are ISO texts, an object that has `to_dict` is that
    dict and any other evaluator or function its name. Two lone surrogates that together make a
    character come back as that character.

    Raises
    ------
    TypeError, ValueError, RecursionError
        Something in it is none of these, or holds itself.
    """
    text = json.dumps(value, ensure_ascii=False, default=_plain)
    return json.dumps(value, default=_plain) if _is_torn(text) else text


def is_missing(value: Any) -> bool:
    """Whether a cell holds nothing: None, NaN, NA or NaT."""
    if isinstance(value, (str, int)):
        return False
    if isinstance(value, (float, np.floating)):
        return bool(value != value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return value is None or value is pd.NA or value is pd.NaT


def encode(value: Any) -> str:
    """The cell of `value`, in a column where texts stand alone.

    Raises
    ------
    TypeError, ValueError, RecursionError
        As `to_json`.
    """
    if isinstance(value, str):
        return _encode_text(value)
    if is_missing(value):
        return ""
    return _encode_text(_plain(value)) if _is_text(value) else to_json(value)


def decode(cell: str) -> Any:
    """The value of a cell that `encode` wrote: None, bool, int, float, str, list or dict."""
    if not cell:
        return None
    if cell[0] == "'":
        return cell[1:] if _is_misread(cell[1:]) else cell
    try:
        return _parse(cell)
    except (ValueError, RecursionError):
        return cell


def decode_text(cell: str) -> str | None:
    """The text of a cell in a column that is known to hold texts: a bare ``7`` is one too."""
    value = decode(cell)
    return cell if value is not None and not isinstance(value, str) else value


def encode_column(values: Sequence[Any], dtype: str | None = None) -> list[str]:
    """The cells of a column.

    Parameters
    ----------
    values : sequence
        Cells as pandas gives them.
    dtype : str, optional
        The dtype that the column's name stands for (`frames.RUN_COLUMNS`), where it is known.

    Raises
    ------
    ValueError
        A cell is no JSON; the message has its position.
    """
    kinds = {_is_text(value) for value in values if not is_missing(value)}
    write = _encode_mixed if dtype not in ("object", "str") and len(kinds) == 2 else encode
    written = []
    for position, value in enumerate(values):
        try:
            written.append(write(value))
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"row {position}: {value!r:.80} cannot be written: {error}") from error
    return written


def decode_column(given: Sequence[str], dtype: str | None = None) -> Any:
    """The array of a column's cells.

    Parameters
    ----------
    given : sequence of str
    dtype : str, optional
        As in `encode_column`. Where the cells do not fit it, they decide, as in any other column.

    Returns
    -------
    array
        Texts as ``str``, whole numbers as ``int64`` and truths as ``bool`` (``Int64`` and
        ``boolean`` where one is missing), numbers as ``float64``, and ``object`` for nested and
        mixed values, whole numbers beyond 64 bits, and texts with lone surrogates.
    """
    if dtype == "str":
        return _texts([decode_text(cell) for cell in given])
    values = [decode(cell) for cell in given]
    kinds = {type(value) for value in values if value is not None}
    if dtype == "object" or not values:
        return column(values, dtype or "object")
    if str in kinds:
        return _texts(values) if kinds == {str} else _mixed(given, values)
    nullable = None in values or dtype in _NULLABLE.values()
    if not kinds:
        return column(values, _NULLABLE.get(dtype, dtype) if dtype else "float64")
    if kinds == {bool}:
        return column(values, "boolean" if nullable else "bool")
    if kinds == {int} and dtype != "float64" and all(value is None or -(2**63) <= value < 2**63 for value in values):
        return column(values, "Int64" if nullable else "int64")
    if kinds <= {int, float} and all(map(_is_float, values)):
        return column(values, "float64")
    return column(values, "object")


def _mixed(given: Sequence[str], values: Sequence[Any]) -> Any:
    """Texts beside other values: as they are where every text is quoted, else all of them texts."""
    quoted = [_quoted(cell) if isinstance(value, str) else value for cell, value in zip(given, values)]
    if any(text is None and value is not None for text, value in zip(quoted, values)):
        return _texts([decode_text(cell) for cell in given])
    return column(quoted, "object")


def _texts(texts: list[str | None]) -> Any:
    lone = any(text is not None and _is_torn(text) for text in texts)
    return column(texts, "object" if lone else "str")


def _is_float(number: float | None) -> bool:
    """Whether a number is the same as a float; the larger whole numbers are not."""
    try:
        return not isinstance(number, int) or int(float(number)) == number
    except OverflowError:
        return False


def _is_text(value: Any) -> bool:
    """Whether a cell is written as text: texts, and dates, times and intervals."""
    return isinstance(value, _TEXTS)


def _encode_mixed(value: Any) -> str:
    return "" if is_missing(value) else to_json(value)


def _quoted(cell: str) -> str | None:
    """The text of a cell that is a JSON string; None where it is not one."""
    if not cell.startswith('"'):
        return None
    try:
        return json.loads(cell)
    except ValueError:
        return None


def _encode_text(text: str) -> str:
    text = _joined(text)
    if _needs_json(text):
        return json.dumps(text)
    return f"'{text}" if _is_misread(text) else text


def _joined(text: str) -> str:
    """`text` with each pair of surrogates as the character that JSON would make of it."""
    if not _is_torn(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _needs_json(text: str) -> bool:
    return not text or "\0" in text or _is_torn(text)


def _is_torn(text: str) -> bool:
    """Whether `text` has surrogates, which UTF-8 cannot hold."""
    return not text.isascii() and _SURROGATES.search(text) is not None


def _is_misread(text: str) -> bool:
    """Whether a bare `text` is not what `decode` would make of it, or a spreadsheet would run it."""
    bare = text.lstrip("'")
    if not bare or bare.startswith(_FORMULA):
        return bool(bare)
    try:
        return _parse(bare) is not bare
    except (ValueError, RecursionError):  # too long or too deep here, perhaps not where it is read
        return True


def _parse(cell: str) -> Any:
    """What a bare cell stands for; `cell` itself where it is text.

    Raises
    ------
    ValueError, RecursionError
        JSON that Python refuses: a number too long, lists too deep.
    """
    if cell in _TRUTHS:
        return _TRUTHS[cell]
    if cell[0] not in _JSON_START:
        return cell
    try:
        value = json.loads(cell)
    except json.JSONDecodeError:
        return cell
    return cell if isinstance(value, str) and not _needs_json(value) else value


def _plain(value: Any) -> Any:
    """What JSON has for a value that it does not know."""
    if is_missing(value):
        return None
    if isinstance(value, np.datetime64):
        return pd.Timestamp(value).isoformat()
    if isinstance(value, (timedelta, np.timedelta64)):
        return str(pd.Timedelta(value))
    if isinstance(value, (pd.Period, pd.Interval)):
        return str(value)
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return list(value)
    if callable(getattr(value, "to_dict", None)) and not isinstance(value, type):
        return value.to_dict()
    name = getattr(value, "name" if callable(getattr(value, "evaluate", None)) else "__name__", None)
    if isinstance(name, str):
        return name
    raise TypeError(f"{type(value).__name__} is no JSON")
