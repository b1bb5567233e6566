"""What a test suite says of scores: all passed, and none fell behind a baseline."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import InputError, check_threshold

if TYPE_CHECKING:
    import pandas as pd

#: Rows that a message shows.
SHOWN = 10


def assert_passed(scores: pd.DataFrame, *, rate: float = 1.0, threshold: float | None = None) -> None:
    """Fail unless runs passed.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it. Reads `passed`, `score`, `status`, and to name what failed `agent`,
        `task_id`, `trial`, `evaluator`, `reason`, `error`.
    rate : float
        The share of rows that has to pass, of each agent and evaluator. A row that could not be
        scored has not passed; one of status ``skipped`` had nothing to judge, and does not count.
    threshold : float, optional
        The score from which a row passes whose `passed` is missing.

    Raises
    ------
    AssertionError
        Less than that passed, or nothing was judged at all. The message has the rows and their reasons.
    InputError
        `scores` lacks a column, `rate` is no share, `threshold` no score, or nothing says from which score a
        row passes.
    """
    rows = [row for row in _rows(scores, "assert_passed") if row["status"] != "skipped"]
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
        raise InputError(f"assert_passed: rate={rate!r} should be a share from 0 to 1")
    check_threshold(threshold, "assert_passed")
    if not rows:
        raise AssertionError(f"nothing was judged: {len(scores)} rows of scores, and all were skipped")
    groups: dict[tuple[Any, Any], list[tuple[dict[str, Any], bool]]] = {}
    for row in rows:
        groups.setdefault((row.get("agent"), row["evaluator"]), []).append((row, _passed(row, threshold)))
    told = []
    for group, judged in groups.items():
        failed = [row for row, passed in judged if not passed]
        if len(judged) - len(failed) < rate * len(judged) - 1e-9:
            told.append(
                f"{_group(*group)}: {len(judged) - len(failed)} of {len(judged)} passed, expected {100 * rate:g} %"
            )
            told += [f"  {_line(row)}" for row in failed[:SHOWN]]
            told += [f"  and {len(failed) - SHOWN} more"] if len(failed) > SHOWN else []
    if told:
        raise AssertionError("\n".join(told))


def assert_no_regression(
    scores: pd.DataFrame, baseline: pd.DataFrame | str | os.PathLike[str], *, alpha: float = 0.05, value: str = "score"
) -> pd.DataFrame:
    """Fail where scores are worse than a baseline's by more than chance explains.

    The same tasks are compared, each agent and evaluator for itself, by the paired test of `compare`
    (McNemar's exact test of passes, sign flips of other scores), with Holm's adjustment over all.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it, of the tasks that the baseline has.
    baseline : DataFrame or path
        Earlier scores: a frame, or a file that `to_csv`, `to_parquet` or `to_jsonl` wrote.
    alpha : float
        The chance of failing although nothing changed (two-sided, over all comparisons).
    value : str
        What is compared, as in `compare`.

    Returns
    -------
    DataFrame
        As of `compare`, with `agent` before it: the differences from the baseline, and in `detectable`
        the drop that so many tasks would have shown with 80 % power. A test that cannot see
        a drop passes: look at that column.

    Raises
    ------
    AssertionError
        Something is worse; or an agent or evaluator of the baseline, or all of its tasks, are missing.
    InputError, FileError
        A column is missing, the baseline has no rows, `alpha` is no probability, or the file cannot be read.

    Warns
    -----
    UserWarning
        An evaluator is not the one that scored the baseline (its fingerprint differs), so that the
        difference may be the evaluator's.
    """
    import pandas as pd

    from . import stats

    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise InputError(f"assert_no_regression: alpha={alpha!r} should be a probability between 0 and 1")
    before = baseline if isinstance(baseline, pd.DataFrame) else _read(baseline)
    for name, frame in (("scores", scores), ("baseline", before)):
        _rows(frame, "assert_no_regression", name)
    if before.empty:  # every later version would pass
        raise InputError("assert_no_regression: baseline has no rows; there is nothing to compare with")
    found = pd.DataFrame()
    told = []
    for agent, evaluator, now, then in _pairs(scores, before):
        if now.empty:
            told.append(f"{_group(agent, evaluator)}: is in the baseline, and not in the scores")
            continue
        if _prints(now) and _prints(then) and _prints(now) != _prints(then):
            warnings.warn(f"{evaluator!r} is not the evaluator that scored the baseline", stacklevel=2)
        one = _compared(now, then, value)
        one.insert(0, "agent", agent)
        found = pd.concat([found, one], ignore_index=True)
    if not found.empty:
        found["p_adjusted"] = stats.adjusted(found["p"].to_numpy(float), "holm")
    for row in found.to_dict("records"):
        if not row["tasks"]:
            told.append(f"{_group(row['agent'], row['evaluator'])}: no task has a score in both")
        elif row["difference"] < 0 and row["p_adjusted"] < alpha:
            told.append(
                f"{_group(row['agent'], row['evaluator'])}: {row['score']:.3f}, and {row['baseline_score']:.3f} in the "
                f"baseline ({row['difference']:+.3f}, p = {row['p_adjusted']:.2g}, {row['test']}, "
                f"{row['tasks']} tasks: {row['worse']} worse, {row['better']} better)"
            )
    if told:
        raise AssertionError("\n".join(told))
    return found


def _compared(now: pd.DataFrame, then: pd.DataFrame, value: str) -> pd.DataFrame:
    import pandas as pd

    from .reports import compare

    both = pd.concat([then.assign(version="baseline"), now.assign(version="now")], ignore_index=True)
    return compare(both, by="version", baseline="baseline", value=value, adjust=None).drop(columns="version")


def _pairs(scores: pd.DataFrame, before: pd.DataFrame) -> Iterator[tuple[Any, str, pd.DataFrame, pd.DataFrame]]:
    """Each agent and evaluator of the baseline, with its rows now and then."""
    keys = [name for name in ("agent", "evaluator") if name in scores.columns and name in before.columns]
    parts = {str(group): part for group, part in scores.groupby(keys, sort=False, dropna=False)}
    for group, then in before.groupby(keys, sort=False, dropna=False):
        yield group[0] if len(keys) == 2 else None, group[-1], parts.get(str(group), scores.iloc[:0]), then


def _prints(frame: pd.DataFrame) -> set[str]:
    return set(frame["fingerprint"].dropna()) if "fingerprint" in frame.columns else set()


def _read(path: Any) -> pd.DataFrame:
    from .exporting import read_csv, read_jsonl, read_parquet

    if not isinstance(path, str | os.PathLike):
        raise InputError(f"baseline is a {type(path).__name__}; expected a scores frame or the path of one")
    readers = {".parquet": read_parquet, ".jsonl": read_jsonl}
    return readers.get(Path(path).suffix.lower(), read_csv)(path)


def _rows(scores: Any, caller: str, argument: str = "scores") -> list[dict[str, Any]]:
    import pandas as pd

    from .frames import rows_of

    if not isinstance(scores, pd.DataFrame):
        raise InputError(f"{caller}: {argument} is a {type(scores).__name__}; expected a frame, as score() returns it")
    for name in ("evaluator", "passed", "score", "status"):
        if name not in scores.columns:
            raise InputError(f"{caller}: {argument} has no column {name!r}; expected a frame, as score() returns it")
    return rows_of(scores)


def _passed(row: dict[str, Any], threshold: float | None) -> bool:
    if row["passed"] is not None or row["score"] is None:
        return bool(row["passed"])
    if threshold is None:
        raise InputError(
            f"assert_passed: nothing says from which score {row['evaluator']!r} passes; give the evaluator a "
            f"threshold, or assert_passed(threshold=...)"
        )
    return row["score"] >= threshold


def _group(agent: Any, evaluator: Any) -> str:
    return str(evaluator) if agent is None else f"{agent}, {evaluator}"


def _line(row: dict[str, Any]) -> str:
    which = row.get("task_id") or row.get("run_id") or "a run"
    trial = f" (trial {row['trial']})" if row.get("trial") else ""
    said = "no verdict" if row["score"] is None else f"{row['score']:g}"
    why = row.get("error") or row.get("reason") or row["status"]
    return f"{which}{trial}: {said}: {' '.join(str(why).split()):.200}"
