"""What all reports read of a scores frame: numbers, cells, groups, tasks and runs.

Each function names the report in its errors: `report` is the name of the public function.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError, did_you_mean, is_one_of
from ..frames import RUN_KEYS

#: Columns whose values lie between 0 and 1 by definition.
RATES = ("score", "passed")


def check_frame(scores: Any, report: str) -> None:
    """Refuse what is no frame of scores: another value, or two columns of one name."""
    if not isinstance(scores, pd.DataFrame):
        raise InputError(f"{report}: scores is a {type(scores).__name__}; expected a frame, as score() returns it")
    if not scores.columns.is_unique:
        twice = scores.columns[scores.columns.duplicated()][0]
        raise InputError(f"{report}: scores has the column {twice!r} more than once")


def check_names(given: Any, report: str, argument: str = "by", what: str = "names of columns") -> list[Any]:
    """One name or several as a list, each once."""
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, Iterable) or not all(isinstance(name, Hashable) for name in names):
        raise InputError(f"{report}: {argument}={given!r:.80} should be {what}")
    return list(dict.fromkeys(names))


def check_ci(ci: Any, report: str) -> None:
    """Refuse a confidence that is none."""
    if isinstance(ci, bool) or not isinstance(ci, (int, float)) or not 0 < ci < 1:
        raise InputError(f"{report}: ci={ci!r} should lie between 0 and 1, as 0.95 does")


def check_seed(seed: Any, report: str) -> None:
    """Refuse what no generator of random numbers begins with."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(f"{report}: seed={seed!r:.80} should be a whole number, 0 or more")


def check_choice(name: str, value: Any, known: Sequence[Any], report: str) -> None:
    """Refuse an argument that is none of the `known` ones."""
    if not is_one_of(value, known):
        raise InputError(f"{report}: {name}={value!r:.80}. {did_you_mean(value, map(str, known))}")


def check_column(scores: pd.DataFrame, name: Any, report: str, argument: str = "scores") -> None:
    """Refuse a column that is not there."""
    if not isinstance(name, (str, int)) or name not in scores.columns:
        hint = did_you_mean(name, map(str, scores.columns))
        said = "scores has no column" if argument == "scores" else f"{argument} has"
        raise InputError(f"{report}: {said} {name!r}{'' if argument == 'scores' else ', which is no column'}. {hint}")


def check_repeats(scores: pd.DataFrame, keys: Iterable[str], report: str) -> None:
    """Refuse verdicts that are there twice, as where a frame was joined with itself.

    Rows are the same where run, evaluator, fingerprint and sample are, and the groups `keys`; frames
    that do not number their samples cannot be told to repeat themselves.
    """
    if not {"run_id", "evaluator", "sample"} <= set(scores.columns):
        return
    named = [name for name in ("run_id", "evaluator", "fingerprint", "sample") if name in scores.columns]
    marks = list(dict.fromkeys([*named, *(key for key in RUN_KEYS if key in scores.columns), *keys]))
    known = scores["run_id"].notna().to_numpy()
    table = scores[marks][known]
    try:
        again = table.duplicated().to_numpy()
    except TypeError:
        return  # nested cells, which are refused by name where they are read
    if again.any() and "metadata" in scores.columns:  # one run may be compared with several others
        again = table.assign(between=np.array(_between(scores))[known]).duplicated().to_numpy()
    if again.any():
        first = table.iloc[int(again.argmax())]
        raise InputError(
            f"{report}: {again.sum()} rows of scores are there more than once, as run_id={first['run_id']!r}, "
            f"evaluator={first['evaluator']!r}, sample={first['sample']}; number the samples of a run, or leave out "
            f"what repeats: scores.drop_duplicates({named})"
        )


def group_keys(
    scores: pd.DataFrame, by: str | Sequence[str], default: Sequence[str], taken: Collection[str], report: str
) -> list[str]:
    """The columns of `by`: of the `default` those that are there, of any other all or none.

    `taken` are the names of the report's own columns, which a group cannot have.
    """
    keys = check_names(by, report)
    if by is default:  # what was not asked for by name may be missing
        keys = [key for key in keys if key in scores.columns]
    for key in keys:
        check_column(scores, key, report, "by")
        if not all(isinstance(cell, Hashable) for cell in scores[key]):
            raise InputError(f"{report}: by has {key!r}, whose cells are nested; expected names or numbers")
        if key in taken:
            raise InputError(f"{report}: by has {key!r}, which is a column of the summary itself; rename it first")
    return keys


def groups_of(scores: pd.DataFrame, keys: Sequence[str]) -> list[tuple[tuple[Hashable, ...], np.ndarray]]:
    """Labels and row positions of each group, in the order of first appearance; missing labels too."""
    if not keys:
        return [((), np.arange(len(scores)))]
    groups: dict[tuple[Hashable, ...], list[int]] = {}
    for position, labels in enumerate(zip(*(cells(scores, key) for key in keys))):
        groups.setdefault(labels, []).append(position)
    return [(labels, np.array(positions)) for labels, positions in groups.items()]


def group_columns(
    scores: pd.DataFrame, keys: Sequence[str], labels: Sequence[tuple[Hashable, ...]]
) -> dict[str, pd.Series]:
    """The columns of the groups in a report, one row per entry of `labels`, of the dtypes of `scores`."""
    return {key: pd.Series([row[i] for row in labels], dtype=scores[key].dtype) for i, key in enumerate(keys)}


def values_of(scores: pd.DataFrame, value: str, report: str) -> np.ndarray:
    """The numbers to average, shape (rows,), NaN where there is none; scores lie between 0 and 1."""
    check_column(scores, value, report)
    values = numbers(scores, value, report)
    outside = np.flatnonzero((values < 0) | (values > 1)) if value in RATES else ()
    if len(outside):
        label = scores.index[outside[0]]
        raise InputError(f"{report}: {value}={values[outside[0]]:g} in row {label!r}; expected numbers from 0 to 1")
    return values


def bounded(scores: pd.DataFrame, value: str) -> bool:
    """Whether a column's values lie between 0 and 1 by definition, and not by chance."""
    return value in RATES or pd.api.types.is_bool_dtype(scores[value].dtype)


def numbers(scores: pd.DataFrame, name: str, report: str) -> np.ndarray:
    """A column as floats, shape (rows,): NaN where a cell is missing, or all of the column is."""
    if name not in scores.columns:
        return np.full(len(scores), np.nan)
    try:
        return pd.to_numeric(scores[name]).to_numpy(dtype="float64", na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InputError(f"{report}: the column {name!r} should hold numbers: {error}") from None


def cells(scores: pd.DataFrame, name: str) -> list[Any]:
    """The cells of a column as Python values: None where one is missing, or all of the column is."""
    if name not in scores.columns:
        return [None] * len(scores)
    missing = scores[name].isna().to_numpy()
    if name in ("task_id", "run_id") and not all(isinstance(cell, Hashable) for cell in scores[name]):
        raise InputError(f"scores has nested cells in the column {name!r}; expected names or numbers")
    return [None if unknown else cell for cell, unknown in zip(scores[name].tolist(), missing)]


def codes(labels: Sequence[Hashable]) -> np.ndarray:
    """A number for each label, shape (labels,), in the order of first appearance."""
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(label, len(known)) for label in labels], dtype=np.int64)


def units(scores: pd.DataFrame, over: str = "task_id") -> tuple[np.ndarray, np.ndarray]:
    """Codes of each row's task and run: a row without a task is its run's, without a run its own."""
    runs = [("row", row) if run is None else ("run", run) for row, run in enumerate(cells(scores, "run_id"))]
    tasks = [run if task is None else ("task", task) for run, task in zip(runs, cells(scores, over))]
    return codes(tasks), codes(runs)


def subjects(scores: pd.DataFrame) -> np.ndarray:
    """Codes of what each row's verdict is about: its run, or the comparison of its run with another's."""
    return codes(list(zip(units(scores)[1].tolist(), _between(scores))))


def _between(scores: pd.DataFrame) -> list[str]:
    told = (cell if isinstance(cell, Mapping) else {} for cell in cells(scores, "metadata"))
    return [str(cell.get("between")) for cell in told]


def task_means(values: np.ndarray, tasks: np.ndarray, runs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples averaged within their run, and runs within their task.

    Parameters
    ----------
    values : ndarray, shape (rows,)
        Without NaN.
    tasks, runs : ndarray of int, shape (rows,)
        As `units` gives them.

    Returns
    -------
    codes, means, counts : ndarray, shape (tasks,)
        The tasks in ascending order of their codes, the mean of each, and how many runs it had.
    """
    _, first, run_of_row = np.unique(runs, return_index=True, return_inverse=True)
    run_means = np.bincount(run_of_row, values) / np.bincount(run_of_row)
    found, task_of_run, counts = np.unique(tasks[first], return_inverse=True, return_counts=True)
    return found, np.bincount(task_of_run, run_means) / counts, counts
