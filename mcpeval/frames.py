"""Rows of plain Python values on one side, pandas frames with fixed columns on the other.

Two frames are the architecture (`RUN_COLUMNS`, `SCORE_COLUMNS`).  Here is the one place that knows
how pandas writes a missing text (NaN), a missing truth (NA) or a numpy scalar, so that no prompt
ever says "nan" and no numpy value ever reaches JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

#: Columns of a runs frame: one row per task x agent x trial.
RUN_COLUMNS: dict[str, str] = {
    "run_id": "str",
    "task_id": "str",
    "category": "str",
    "agent": "str",
    "model": "str",
    "trial": "int64",
    "question": "str",
    "reference": "object",
    "output": "str",
    "well_formed": "boolean",
    "messages": "object",
    "tool_calls": "object",
    "status": "str",
    "error": "str",
    "error_class": "str",
    "turns": "int64",
    "n_tool_calls": "int64",
    "tokens_in": "Int64",
    "tokens_out": "Int64",
    "cost_usd": "float64",
    "seconds": "float64",
    "cached": "bool",
    "spans": "object",
    "metadata": "object",
}

#: What a task may bring along; these columns are there where some task has them.
TASK_COLUMNS: dict[str, str] = {
    "evaluators": "object",
    "tags": "object",
    "expected_tool_calls": "object",
    "key_points": "object",
}

#: The columns that say which run a score belongs to.
RUN_KEYS: tuple[str, ...] = ("run_id", "task_id", "category", "agent", "model", "trial")

#: Columns of a scores frame: one row per run x evaluator x sample.
SCORE_COLUMNS: dict[str, str] = {
    **{key: RUN_COLUMNS[key] for key in RUN_KEYS},
    "evaluator": "str",
    "kind": "str",
    "score": "float64",
    "label": "object",
    "passed": "boolean",
    "reason": "str",
    "status": "str",
    "error": "str",
    "judge_model": "str",
    "fingerprint": "str",
    "sample": "int64",
    "tokens_in": "Int64",
    "tokens_out": "Int64",
    "cost_usd": "float64",
    "seconds": "float64",
    "cached": "bool",
    "metadata": "object",
}

_SURROGATE = re.compile("[\ud800-\udfff]")
_DEFAULTS = {"int64": 0, "bool": False}


def clean_text(text: str) -> str:
    """`text` with each lone surrogate, which UTF-8 cannot hold, replaced by U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def plain(value: Any) -> Any:
    """A cell as plain Python: missing values are None, numpy scalars and arrays are gone.

    A value that is nested deeper than Python can follow comes back as it is.
    """
    try:
        return _plain(value)
    except RecursionError:
        return value


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (str, bool, int)) and type(value) in (str, bool, int):
        return value
    if isinstance(value, float):
        return None if value != value else float(value)
    if isinstance(value, Mapping):
        return {key: _nested(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_nested(item) for item in value]
    return _from_numpy(value)


def _nested(value: Any) -> Any:
    # Inside a nested value NaN is a number that somebody wrote, not a missing cell.
    return float(value) if isinstance(value, float) else _plain(value)


def _from_numpy(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [_nested(item) for item in value.tolist()]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, pd.Timestamp):
        return value.isoformat()
    return value


def cells_of(column: pd.Series) -> list[Any]:
    """The cells of a column as plain Python values; a missing one is None, whatever the dtype."""
    cells = column.tolist()
    if isinstance(column.dtype, pd.StringDtype) and not column.hasnans:
        return cells  # texts throughout
    return [plain(cell) for cell in cells]


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of `frame` as dicts of plain Python values.

    Returns
    -------
    list of dict
        One per row, in order; a missing cell is None, whatever its column's dtype.
    """
    names = [str(name) for name in frame.columns]
    columns = [cells_of(frame.iloc[:, i]) for i in range(len(names))]
    if not columns:
        return [{} for _ in range(len(frame))]
    return [dict(zip(names, cells)) for cells in zip(*columns)]


def column(values: Sequence[Any], dtype: str) -> Any:
    """`values` (plain Python, None where missing) as an array of `dtype` for a frame."""
    if len(values) > 1 and _all_the_same(values, dtype):
        return column(values[:1], dtype).repeat(len(values))
    if dtype == "str":
        if set(map(type, values)) != {str} or not all(map(str.isascii, values)):
            values = [None if v is None else clean_text(v if isinstance(v, str) else str(v)) for v in values]
        return pd.array(values, dtype="str")
    if dtype == "object":
        cells = np.fromiter(values, object, len(values))  # np.array would make a matrix of lists of one length
        return pd.Series(cells, dtype="object")  # a bare array of texts would become a text column
    if dtype == "float64":
        return np.array([np.nan if v is None else v for v in values], dtype=dtype)
    if dtype == "boolean" and set(map(type, values)) == {bool}:
        return pd.array(np.array(values), dtype="boolean")
    if dtype in _DEFAULTS:
        return np.array([_DEFAULTS[dtype] if v is None else v for v in values], dtype=dtype)
    return pd.array(values, dtype=dtype)


def _all_the_same(values: Sequence[Any], dtype: str) -> bool:
    """Whether a column is one value throughout, as many of a scores frame are.

    Not asked of objects and floats: 1 and True, 0.0 and -0.0 are equal, and not the same.
    """
    known = str if dtype == "str" else int
    return (
        dtype not in ("object", "float64")
        and isinstance(values[0], known | None)
        and values.count(values[0]) == len(values)
    )


def frame_of(rows: Sequence[Mapping[str, Any]], dtypes: Mapping[str, str], index: Any = None) -> pd.DataFrame:
    """A frame with the columns of `dtypes`, in that order, from `rows` (a missing key is missing)."""
    columns = {name: column([row.get(name) for row in rows], dtype) for name, dtype in dtypes.items()}
    return frame_from(columns, len(rows), index)


def frame_from(columns: Mapping[str, Any], rows: int, index: Any = None) -> pd.DataFrame:
    """A frame of arrays that `column` made, each of `rows` cells."""
    frame = pd.DataFrame(columns, index=pd.RangeIndex(rows))
    return frame if index is None else frame.set_axis(index, axis=0)


def runs_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A runs frame: `RUN_COLUMNS`, then those of `TASK_COLUMNS` that some row has."""
    extra = {name: dtype for name, dtype in TASK_COLUMNS.items() if any(row.get(name) for row in rows)}
    return frame_of(rows, {**RUN_COLUMNS, **extra})


def scores_frame(
    rows: Sequence[Mapping[str, Any]], *, keys: Iterable[str] = RUN_KEYS, index: Any = None
) -> pd.DataFrame:
    """A scores frame: those of `RUN_KEYS` named by `keys`, then the other `SCORE_COLUMNS`.

    Parameters
    ----------
    rows : list of dict
    keys : iterable of str
        The run's keys that the scored frame had.
    index : index-like, optional
        Labels of the rows: the scored frame's own, repeated once per evaluator.
    """
    return frame_of(rows, score_dtypes(keys), index)


def score_dtypes(keys: Iterable[str]) -> dict[str, str]:
    """Columns of a scores frame: those of `RUN_KEYS` that are in `keys`, and all the others."""
    keys = set(keys)
    return {name: dtype for name, dtype in SCORE_COLUMNS.items() if name not in RUN_KEYS or name in keys}
