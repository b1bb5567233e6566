"""What `score` was given: the runs as rows, and the jobs, each checked before anything is paid."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import pandas as pd

from ..errors import InputError, did_you_mean
from ..evaluators.adapting import as_evaluator, as_evaluators
from ..evaluators.base import columns_read, required_columns
from ..frames import cells_of, plain, rows_of
from ..types import Run


class Missing(NamedTuple):
    """An agent without a run of a task and trial, and the two who should have been compared, in order."""

    agent: str
    between: tuple[str, str]


class Jobs(NamedTuple):
    """What makes a row each, or several: the place of a run, the number of an evaluator, and of its sample.

    Of jobs that compare the run with another, ``against`` has the place of that one, or which one is
    missing; ``mirror`` has the job that sees the same comparison from the other's side, and is not done
    for itself.
    """

    run: list[int]
    evaluator: list[int]
    sample: list[int]
    against: Mapping[int, int | Missing] = {}
    mirror: Mapping[int, int] = {}


@dataclass(frozen=True)
class Runs:
    """What is scored.

    Attributes
    ----------
    given : DataFrame or list of dict
    names : list of str
        The columns, ``run_id`` first, whether `given` has it or not.
    index : Index
        The labels.
    run_ids : list
        Those of `given`, else its labels as texts; no two are equal.
    """

    given: Any
    names: list[str]
    index: pd.Index
    run_ids: list[Any]

    def column(self, name: str) -> list[Any]:
        """The cells of one column, None where a cell or the column is missing."""
        if name == "run_id":
            return self.run_ids
        if not isinstance(self.given, pd.DataFrame):
            return [row.get(name) for row in self.given]
        if name not in self.names:
            return [None] * len(self.index)
        return cells_of(self.given.iloc[:, [str(label) for label in self.given.columns].index(name)])

    def origins(self) -> dict[Any, dict[str, Any]]:
        """Of each run that says so, its servers and when it began (`Run.metadata`), by ``run_id``."""
        if "metadata" not in self.names:
            return {}
        is_frame = isinstance(self.given, pd.DataFrame)
        cells = self.given["metadata"].tolist() if is_frame else self.column("metadata")
        return {
            run_id: {"servers": cell.get("servers"), "started": cell["started"]}
            for run_id, cell in zip(self.run_ids, cells, strict=True)
            if isinstance(cell, Mapping) and "started" in cell
        }

    def rows(self, names: Collection[str]) -> list[dict[str, Any]]:
        """The rows, of a frame only the columns that are called for, each with its ``run_id``."""
        if isinstance(self.given, pd.DataFrame):
            rows = rows_of(self.given.loc[:, [str(name) in names for name in self.given.columns]])
        else:
            rows = self.given
        return [{**row, "run_id": run_id} for row, run_id in zip(rows, self.run_ids, strict=True)]


def check_arguments(concurrency: Any, budget_usd: Any, errors: Any) -> None:
    if not isinstance(concurrency, int) or isinstance(concurrency, bool) or concurrency < 1:
        raise InputError(f"score: concurrency={concurrency!r} should be a whole number, at least 1")
    is_number = isinstance(budget_usd, (int, float)) and not isinstance(budget_usd, bool)
    if budget_usd is not None and not (is_number and budget_usd >= 0):
        raise InputError(f"score: budget_usd={budget_usd!r} should be dollars, 0 or more, or None")
    if errors not in ("keep", "raise"):
        raise InputError(f"score: errors={errors!r}. {did_you_mean(errors, ('keep', 'raise'))}")


def read_runs(runs: Any) -> Runs:
    """The runs that `score` was given in one of its forms.

    Raises
    ------
    InputError
        They are none, or have two columns of one name, or two runs of one ``run_id``.
    """
    if isinstance(runs, pd.DataFrame):
        given, index, names = runs, runs.index, [str(name) for name in runs.columns]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise InputError(f"score: runs has the column {repeated[0]!r} {names.count(repeated[0])} times")
    else:
        runs = [runs] if isinstance(runs, (Run, Mapping)) else runs
        if isinstance(runs, str) or not isinstance(runs, Iterable):
            raise InputError(f"score: runs={runs!r:.100} should be a frame with a column 'output', or a list of Run")
        given = [_read_row(run, place) for place, run in enumerate(runs)]
        names, index = list(dict.fromkeys(name for row in given for name in row)), pd.RangeIndex(len(given))
    run_ids = _run_ids(given, index)
    _check_run_ids(run_ids, "run_id" in names)
    return Runs(given, list(dict.fromkeys(["run_id", *names])), index, run_ids)


def _read_row(run: Any, place: int) -> dict[str, Any]:
    if isinstance(run, Run):
        return run.to_dict()
    if not isinstance(run, Mapping):
        raise InputError(f"score: runs[{place}] is {run!r:.100}; expected a Run or a dict with 'output'")
    return {str(key): plain(value) for key, value in run.items()}


def _run_ids(given: Any, index: pd.Index) -> list[Any]:
    if isinstance(given, pd.DataFrame):
        named = cells_of(given["run_id"]) if "run_id" in given else [None] * len(given)
    else:
        named = [row.get("run_id") for row in given]
    return [str(label) if run_id is None else run_id for run_id, label in zip(named, index.tolist())]


def _check_run_ids(run_ids: Sequence[Any], named: bool) -> None:
    for run_id in run_ids:
        if not isinstance(run_id, Hashable):
            raise InputError(f"score: run_id={run_id!r:.100} should be a text or a number")
    if len(set(run_ids)) < len(run_ids):
        twice = next(run_id for run_id, n in Counter(run_ids).items() if n > 1)
        where = "run_id" if named else "index label"
        cure = "give each run its own" if named else "call reset_index(drop=True) first"
        raise InputError(f"score: the {where} {twice!r} stands twice in runs; {cure}")


def plan(runs: Runs, evaluators: Any) -> tuple[list[Any], Jobs, set[str]]:
    """The evaluators; the jobs, in the order of the frame to be; the names of the columns that are read."""
    if evaluators is None:
        each = _own_evaluators(runs)
    else:
        if not (own := as_evaluators(evaluators)):
            raise InputError(f"score: evaluators={evaluators!r} is empty; None takes each run's own")
        each = [own] * len(runs.index)
    groups = {id(own): own for own in each}
    different = {id(evaluator): evaluator for own in groups.values() for evaluator in own}
    wanted: set[str] = set()
    for evaluator in different.values():
        reads = columns_read(evaluator)
        if reads is None or "output" in reads:
            _check_output(runs)
        _check_columns(evaluator, runs.names)
        wanted.update(runs.names if reads is None else reads)
    number = {key: n for n, key in enumerate(different)}
    who: dict[int, list[int]] = {key: [] for key in groups}
    samples: dict[int, list[int]] = {key: [] for key in groups}
    for key, own in groups.items():
        for evaluator in own:
            drawn = range(getattr(evaluator, "samples", 1))
            who[key] += [number[id(evaluator)]] * len(drawn)
            samples[key] += drawn
    jobs = Jobs(
        run=[place for place, own in enumerate(each) for _ in who[id(own)]],
        evaluator=list(chain.from_iterable(who[id(own)] for own in each)),
        sample=list(chain.from_iterable(samples[id(own)] for own in each)),
    )
    return list(different.values()), jobs, wanted


def _own_evaluators(runs: Runs) -> list[tuple[Any, ...]]:
    from ..evaluators.rules import rules_of

    given = [_brought(*each) for each in zip(runs.run_ids, runs.column("evaluators"))]
    texts = [[json.dumps(one, default=str) if isinstance(one, Mapping) else None for one in own] for own in given]
    configs = {text: one for pair in zip(texts, given) for text, one in zip(*pair) if text is not None}
    # Each once, and all together, so that functions which are not registered are named in one error.
    rules = dict(zip(configs, rules_of(configs.values())))
    judge: tuple[Any, ...] = ()
    if not all(given):
        from ..evaluators.judges import Judge

        judge = (Judge(),)
    return [
        _named_apart([rules[text] if text else as_evaluator(one) for text, one in zip(*pair)]) if pair[0] else judge
        for pair in zip(texts, given)
    ]


def _brought(run_id: Any, own: Any) -> list[Any]:
    """The evaluators that a run brings along."""
    own = own or ()
    if isinstance(own, str):  # a file of ours that another reader has read
        try:
            own = json.loads(own)
        except ValueError:
            pass
    if isinstance(own, (str, Mapping)) or not isinstance(own, Iterable):
        raise InputError(f"score: run {run_id!r} has evaluators={own!r:.100}; expected a list of them")
    # Parquet gives every dict of a column the same keys, and those that it did not have None.
    return [{key: v for key, v in one.items() if v is not None} if isinstance(one, Mapping) else one for one in own]


def _named_apart(evaluators: Sequence[Any]) -> tuple[Any, ...]:
    """A task file may ask the same twice; the second is then named so."""
    seen: dict[str, int] = {}
    named = []
    for evaluator in evaluators:
        seen[evaluator.name] = n = seen.get(evaluator.name, 0) + 1
        named.append(evaluator if n == 1 else as_evaluator(evaluator, name=f"{evaluator.name} ({n})"))
    return tuple(named)


def _check_output(runs: Runs) -> None:
    """Raise for runs without what is scored; only evaluators of something else do without."""
    if isinstance(runs.given, pd.DataFrame):
        if "output" not in runs.names:
            near = did_you_mean("output", runs.names)
            raise InputError(f"score: runs has no column 'output', which is scored. {near}")
        return
    for place, row in enumerate(runs.given):
        if "output" not in row:
            raise InputError(f"score: runs[{place}] has no 'output'. {did_you_mean('output', row)}")


def _check_columns(evaluator: Any, columns: Iterable[str]) -> None:
    if callable(getattr(evaluator, "check", None)):
        evaluator.check(columns)
        return
    for name in required_columns(evaluator):
        if name not in columns:
            near = did_you_mean(name, columns)
            raise InputError(f"evaluator {evaluator.name!r} reads the column {name!r}, which is not there. {near}")
