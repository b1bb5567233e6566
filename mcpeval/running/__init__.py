"""`run`: agents at tasks over MCP servers, one row of a frame for each task, agent and trial.

`inputs` reads what was given, `work` does the runs, `keeping` has them in the cache and as rows,
`lives` has the notes that agents keep between tasks, `telling` and `steps` say what happens meanwhile.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import pandas as pd

from .._calls import check_patience
from .._loop import run_sync
from ..caching import open_cache
from ..errors import InputError
from ..events import Event
from ..frames import runs_frame
from ..progress import Progress
from ..servers import permitted, read_servers
from ..types import Run
from .inputs import Job, agents_of, check, folder_of, jobs_of, refuse_missing, tasks_of
from .keeping import keep, kept, row_of
from .lives import Lives
from .telling import listeners_of, tell_kept
from .work import work

__all__ = ["run"]


def run(
    tasks: Any,
    agents: Any,
    *,
    trials: int = 1,
    servers: Any = None,
    permissions: Any = None,
    cache: Any = None,
    concurrency: int = 8,
    progress: bool | str | None = None,
    replay: bool = False,
    trust: bool = False,
    keep_workdirs: str | os.PathLike | None = None,
    timeout: float | None = None,
    on_event: Callable[[Event], Any] | None = None,
) -> pd.DataFrame:
    """Let agents work on tasks over real MCP servers.

    Parameters
    ----------
    tasks : path, DataFrame, Task, dict, str, or list of those
        A task file or folder (`read_tasks`), a frame with a column ``question`` (and any other
        field of `Task`), tasks, or questions.
    agents : Agent, workflow, External, callable, str, list of those, or dict
        A dict names them.  A callable of ``(task, session)``, plain or async, is an agent; a text is
        the model of one.  An agent whose notes last (``memory="a name"``) works on the tasks one after
        the other, in each trial with notes of its own, and begins each with those of all tasks that
        were finished before.  The order in which tasks are finished for the first time is kept, with
        the notes, in the cache: made again, in whatever order, a run begins as it began.
    trials : int
        Independent repetitions, numbered from 0; each draws its own answers.
    servers : path, dict, list of str, or None
        The MCP servers by name (`mcpeval.servers.read_servers`), or the names of some of the
        `mcpeval.servers.catalogue`.  A task is offered those that it names, or all where it names
        none; ``Agent(servers=...)`` narrows that.
    permissions : Permissions, list of rules, dict, path or None
        Which calls of tools are made (`mcpeval.servers.Permissions`); a call that is denied is a tool
        error that the model is told.  Runs with a rule that asks somebody are repeated each time.
    cache : Cache, path, None or False
        Where paid-for answers and finished runs are kept: None is the default folder, False nowhere.
        Runs over servers in memory, and runs of callables without a ``fingerprint``, are repeated;
        their models' answers are kept all the same.  A ``{{VAR}}`` of a server or a question
        counts as written, so what it stands for may differ from machine to machine; of a working folder
        counts what it begins with, not where it lies.
    concurrency : int
        Runs at the same time.  Each has server processes of its own, but for servers with ``share``.
    progress : bool or "verbose", optional
        Whether to show a progress line; None shows it where somebody watches.  ``"verbose"`` prints
        what models say and which tools they call as it happens, long texts cut.
    replay : bool
        Answer from the cache alone.
    trust : bool
        Whether prepares and clean-ups of the tasks may call remote services: servers over HTTP or SSE,
        servers that are given variables of the environment (keys), and registered functions that are not
        said to be local.
    keep_workdirs : path, optional
        Where the working folders of the runs that are made are kept, each under its ``run_id``, for
        evaluators that need the folder itself; without it they are removed.
    timeout : float, optional
        Seconds for one run, the start of its servers included.  One that takes longer is a row with
        ``error_class`` ``timeout`` and all it did until then; it is not kept as finished.
    on_event : callable, optional
        Called with an `mcpeval.events.Event` when a run starts, a model has answered, a tool is called
        and has answered, and a run has ended: in the thread that called `run`, within about a tenth of
        a second.  Where it raises an exception it is not called any more, a warning says so, and the
        runs go on, for they are paid for; a ``KeyboardInterrupt`` stops them as Ctrl-C does.

    Returns
    -------
    DataFrame
        One row for each task, agent and trial, in that order, with `mcpeval.frames.RUN_COLUMNS`. A run
        that failed is a row with ``status`` ``error``, its ``error_class`` and all it did until then.
        A row whose answers all came from the cache is ``cached`` and costs 0; ``seconds`` is what
        the run took at first, and ``metadata["saved_usd"]`` what it cost.

        What a task's ``prepares`` and ``cleanups`` did is in ``metadata["prepares"]`` and
        ``metadata["cleanups"]``: for each call ``server``, ``tool``, ``arguments``, ``is_error``, ``error``;
        they are not among ``tool_calls``.  A prepare that fails ends the run before the agent is asked,
        with ``error_class`` ``server`` for a tool and ``harness`` for a function.  Clean-ups are made
        whatever came of the agent, and change nothing of its answer.  A run that the cache has is not
        made again, and neither is what belongs to it.  ``metadata["workdir"]`` says which files of its
        working folder a run has changed, before the clean-ups: ``files`` by path with ``change``, ``size``,
        ``sha256`` and, of short texts, ``text``.

    Raises
    ------
    InputError
        Something in the arguments cannot be meant; nothing was started and nothing paid.
    CacheMiss
        With `replay`, for a run that is not in the cache.

    Examples
    --------
    >>> runs = run(["What is 2 + 2?"], Agent("openai/gpt-4.1-mini", "basic"))    # doctest: +SKIP
    """
    for name, value in (("trials", trials), ("concurrency", concurrency)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InputError(f"run: {name}={value!r} should be a whole number, at least 1")
    for name, value in (("replay", replay), ("trust", trust)):
        if not isinstance(value, bool):  # "no" would be as good as True
            raise InputError(f"run: {name}={value!r:.80} should be True or False")
    check_patience({"timeout": timeout}, "run")
    kept_in = folder_of(keep_workdirs)
    listeners = listeners_of(on_event, progress)
    jobs = jobs_of(tasks_of(tasks), agents_of(agents), trials, permitted(read_servers(servers), permissions))
    store = open_cache(cache, replay=replay)
    lives = Lives(jobs, store)
    keys, done = [], []
    for i, job in enumerate(jobs):
        jobs[i] = job = lives.begun(job)
        keys.append(None if store is None or lives.waits(job) else job.key())
        done.append(None if keys[i] is None else kept(store, keys[i]))
        lives.ended(job, done[i])
    fresh = [i for i, found in enumerate(done) if found is None]
    paid = set()
    if replay:
        refuse_missing([jobs[i] for i in fresh if keys[i] is not None])
    check([jobs[i] for i in fresh], replay, trust)
    folder = None if store is None or store.replay else store.path
    parts = Counter(job.agent.name for job in jobs)
    with Progress(len(jobs), "run", False if progress == "verbose" else progress, folder=folder, parts=parts) as line:

        def advance(job: Job, ended: Run, cached: bool, cost_usd: float | None) -> None:
            error = f"{job}: {ended.error_class}: {ended.error}"
            failed = ended.status != "ok"
            line.advance(failed=failed, cached=cached, cost_usd=cost_usd, part=job.agent.name, error=error)

        for job, found in zip(jobs, done, strict=True):
            if found is not None:
                advance(job, found, True, 0.0)
                tell_kept(job, found, listeners)
        listeners.deliver()

        def begin(i: int) -> Job | None:
            """The job, with the notes that those before it left; None where its run is there meanwhile."""
            if lives.waits(jobs[i]):
                jobs[i] = lives.begun(jobs[i])
                keys[i] = jobs[i].key()
                done[i] = None if keys[i] is None else kept(store, keys[i])
            if done[i] is None:
                return jobs[i]
            lives.ended(jobs[i], done[i])
            advance(jobs[i], done[i], True, 0.0)
            tell_kept(jobs[i], done[i], listeners)
            return None

        def finish(i: int, ended: Run) -> None:
            paid.add(i)
            done[i] = keep(store, keys[i], ended)
            lives.ended(jobs[i], ended)
            advance(jobs[i], ended, ended.usage.cached, ended.usage.cost_usd)

        if fresh:
            queue = lives.sequences(jobs, fresh)
            more = {"listeners": listeners, "timeout": timeout, "keep_workdirs": kept_in}
            runs = work(queue, store, concurrency, begin, finish, **more)
            run_sync(runs, tick=listeners.deliver if listeners else None)
    return runs_frame(
        [row_of(job, ended, i not in paid) for i, (job, ended) in enumerate(zip(jobs, done, strict=True))]
    )
