"""Which runs are compared with which: those of different agents on one task, in one trial."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..errors import InputError
from ..evaluators.composed import paid_elsewhere
from ..evaluators.pairs import TIE
from ..types import Score
from .inputs import Jobs, Missing, Runs


class _Field(NamedTuple):
    """The agents in the order in which they appear, and of each task and trial the place of each one's run."""

    names: list[str]
    places: Mapping[Any, Mapping[str, int]]
    of_place: Sequence[tuple[Any, str]]


def paired(jobs: Jobs, runs: Runs, evaluators: Sequence[Any]) -> Jobs:
    """The jobs, with one for each opponent in the place of each that compares runs."""
    columns = [getattr(evaluator, "pairs_by", None) for evaluator in evaluators]
    fields = {by: _field(runs, by) for by in dict.fromkeys(columns) if by is not None}
    if not fields:
        return jobs
    whole: tuple[list[int], list[int], list[int]] = ([], [], [])
    against: dict[int, int | Missing] = {}
    sides: dict[tuple[int, ...], int] = {}
    for place, who, sample in zip(jobs.run, jobs.evaluator, jobs.sample):
        by = columns[who]
        for opponent in [None] if by is None else _opponents(fields[by], place):
            number = len(whole[0])
            for cells, cell in zip(whole, (place, who, sample)):
                cells.append(cell)
            if opponent is not None:
                against[number] = opponent
            if isinstance(opponent, int):
                sides[who, sample, place, opponent] = number
    _warn_of_unpaired(runs, whole[0], against)
    mirror = {}
    for (who, sample, place, opponent), number in sides.items():
        names, by = fields[columns[who]].names, fields[columns[who]].of_place
        other = sides.get((who, sample, opponent, place))
        if other is not None and names.index(by[place][1]) < names.index(by[opponent][1]):
            mirror[number] = other
    return Jobs(*whole, against, mirror)


def _field(runs: Runs, by: str) -> _Field:
    tasks, agents = runs.column("task_id"), runs.column(by)
    for column, cells in (("task_id", tasks), (by, agents)):
        if None in cells:
            raise InputError(
                f"score: run {runs.run_ids[cells.index(None)]!r} has no {column!r}, so it is not known what it is to "
                "be compared with; leave it out, or fill the column"
            )
    agents = [str(name) for name in agents]
    if TIE in agents:
        raise InputError(f"score: {by!r} has {TIE!r}, which is what a verdict says where neither is better; rename it")
    trials = runs.column("trial") if "trial" in runs.names else [0] * len(agents)
    of_place = [((task, trial), name) for task, trial, name in zip(tasks, trials, agents)]
    places: dict[Any, dict[str, int]] = {}
    for place, (key, name) in enumerate(of_place):
        if name in places.setdefault(key, {}):
            raise InputError(
                f"score: task {key[0]!r}, trial {key[1]!r} has two runs of {name!r}, so it is not known which of them "
                f"is to be compared; {by!r} should tell agents apart, and 'trial' the runs of one"
            )
        places[key][name] = place
    names = list(dict.fromkeys(agents))
    if names and len(names) < 2:
        raise InputError(f"score: there is nothing to compare {names[0]!r} with: {by!r} has no other value")
    return _Field(names, places, of_place)


def _opponents(field: _Field, place: int) -> list[int | Missing]:
    key, own = field.of_place[place]
    here, before = field.places[key], field.names.index(own)
    found: list[int | Missing] = []
    for number, name in enumerate(field.names):
        if name in here and name != own:
            found.append(here[name])
        elif name != own:
            found.append(Missing(name, (own, name) if before < number else (name, own)))
    return found


def _warn_of_unpaired(runs: Runs, places: Sequence[int], against: Mapping[int, int | Missing]) -> None:
    lost = {number: opponent for number, opponent in against.items() if isinstance(opponent, Missing)}
    if lost:
        number, missing = next(iter(lost.items()))
        warnings.warn(
            f"score: {len(lost)} of {len(against)} comparisons have no run on the other side and are skipped; the "
            f"first is that of run {runs.run_ids[places[number]]!r} with {missing.agent!r}",
            stacklevel=4,
        )


def without_opponent(missing: Missing) -> Score:
    """The score of a run that should have been compared with one which is not there."""
    reason = f"there is no run of {missing.agent!r} of the same task and trial to compare it with"
    return Score(None, reason, status="skipped", metadata={"between": list(missing.between)})


def mirrored(score: Score) -> Score:
    """What a comparison says of the second of the pair; what it cost stands with the first."""
    worth = 1.0 - score.score  # of NaN it is NaN
    metadata = {**score.metadata, "mirrored": True}
    # The label of a jury that gives the mean is its score; any other is the name of whoever won.
    label = worth if isinstance(score.label, float) else score.label
    return replace(score, score=worth, label=label, usage=paid_elsewhere(score.usage), metadata=metadata)
