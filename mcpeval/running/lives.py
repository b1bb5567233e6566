"""What agents note at one task and find at the next: lives of theirs, one for each trial.

A life is the runs of one agent in one trial, in the order in which they were first finished, with
what each of them noted.  A run begins with the notes of those before it: they are part of its key,
so that a run that is repeated, or replayed, begins as it began.  Runs of one life are done one after
the other; lives go on side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..agents.composed import stores
from ..caching import Cache, content_key
from ..errors import InputError
from ..types import OWN_DOING, Run, content_id
from .inputs import Job

#: By the names of the notes, the notes.
_Notes = dict[str, list[str]]


class Lives:
    """The lives of the agents of `jobs`, as the cache has them.

    Raises
    ------
    InputError
        An agent keeps notes, and there is no cache to keep them in.
    """

    def __init__(self, jobs: Iterable[Job], store: Cache | None) -> None:
        self._store = store
        self._names: dict[str, str | None] = {}
        self._noted: dict[str, dict[str, _Notes]] = {}  # by life, by run
        self._open: set[str] = set()  # lives of which a run is still to be done
        for job in jobs:
            if (life := self.of(job)) is not None and store is None:
                raise InputError(f"agent {job.agent.name!r} keeps notes in the cache, and there is none: cache=False")
            if life is not None and life not in self._noted:
                self._noted[life] = dict(store.get(life, [], read=_read))

    def of(self, job: Job) -> str | None:
        """The life that a run belongs to, by its key in the cache; None for an agent that keeps no notes."""
        names = stores(job.agent)
        if not names:
            return None
        who = job.fingerprint or job.agent.name
        return content_key("notes", names=sorted(names), agent=who, trial=job.trial)

    def begun(self, job: Job) -> Job:
        """`job` with the notes that it begins with."""
        if (life := self.of(job)) is None:
            return job
        found: _Notes = {}
        for run, noted in self._noted[life].items():
            if run == _name(job):
                break
            for name, notes in noted.items():
                found.setdefault(name, []).extend(notes)
        return replace(job, notes=found)

    def waits(self, job: Job) -> bool:
        """Whether a run before this one is still to be done, so that nobody knows what it begins with."""
        return self.of(job) in self._open

    def ended(self, job: Job, run: Run | None) -> None:
        """Take in what `run` noted; None for one that is still to be done.

        A run that has to be repeated has noted nothing.
        """
        if (life := self.of(job)) is None:
            return
        if run is None:
            self._open.add(life)
        elif run.status == "ok" or run.error_class in OWN_DOING:
            self._noted[life][_name(job)] = run.metadata.get("notes", {})
            self._store.keep(life, [[name, noted] for name, noted in self._noted[life].items()])

    def sequences(self, jobs: Sequence[Job], places: Iterable[int]) -> list[list[int]]:
        """`places` of `jobs` in lists, each to be done one after the other."""
        found: dict[Any, list[int]] = {}
        for i in places:
            found.setdefault(self.of(jobs[i]) or i, []).append(i)
        return list(found.values())


def _name(job: Job) -> str:
    return content_id([job.task.id, job.seen(), {name: tools and list(tools) for name, tools in job.offered.items()}])


def _read(value: Any) -> list[tuple[str, _Notes]]:
    return [
        (str(run), {str(name): [str(note) for note in notes] for name, notes in noted.items()}) for run, noted in value
    ]
