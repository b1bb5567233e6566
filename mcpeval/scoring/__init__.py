"""`score`: what evaluators say of runs, one row of a frame for each run, evaluator and sample.

Parts: inputs (what is meant, as rows and jobs) | pairs (which run is compared with which) | table (the
frame) | tools (servers to ask) | work (the jobs, done).
"""

from __future__ import annotations

from contextlib import ExitStack
from operator import itemgetter
from typing import Any

import pandas as pd

from ..caching import open_cache
from ..errors import McpevalError
from ..evaluators.base import is_immediate
from ..evaluators.composed import kind_of
from ..forecasts import priced
from ..progress import Progress
from ..servers import read_servers
from .cells import CELLS
from .inputs import check_arguments, plan, read_runs
from .pairs import paired
from .table import scores_of
from .work import FAILED, Budget, Work, collector_paused

__all__ = ["score"]

_COUNTS = ("rows", "calls", "shared_calls", "cached_calls", "prompt_tokens")


def score(
    runs: Any,
    evaluators: Any = None,
    *,
    servers: Any = None,
    cache: Any = None,
    concurrency: int = 16,
    budget_usd: float | None = None,
    dry_run: bool = False,
    errors: str = "keep",
    progress: bool | None = None,
    replay: bool = False,
) -> pd.DataFrame:
    """Score what agents did.

    Parameters
    ----------
    runs : DataFrame, Run, dict, or list of Run or dict
        A runs frame, or any with a column ``output`` and what the evaluators read.
    evaluators : evaluator, list of evaluators, or dict, optional
        Rules, judges, functions of a row or of columns, dicts of rules; a dict from names to those
        names them. None takes each row's own ``evaluators``; a row without is judged for
        correctness against its ``question`` (and ``reference`` where it has one).
    servers : path, dict or None
        The MCP servers that rules and functions with a ``context`` may ask, by name
        (`mcpeval.servers.read_servers`). One is started when it is first called, and ended with the
        scoring.
    cache : Cache, path, None or False
        Where paid-for verdicts are kept: None is the default folder, False nowhere.
    concurrency : int
        Evaluations at the same time.
    budget_usd : float, optional
        US dollars, after which no evaluation is begun; the rows left are of status ``budget``. One that
        is begun is finished: both orders of a pair, all jurors. Those in flight are set aside at the
        price of the dearest so far, the first of a model goes alone.
    dry_run : bool
        Call nobody, and give a frame of what would be done instead (see Returns).
    errors : {"keep", "raise"}
        Whether rows of status ``error`` or ``unparsed`` are kept or raise `McpevalError`, once
        everything else is done and in the cache.
    progress : bool, optional
        Whether to show a progress line; None shows it where somebody watches.
    replay : bool
        Answer from the cache alone.

    Returns
    -------
    DataFrame
        One row for each run, evaluator and sample, in that order, with `mcpeval.frames.SCORE_COLUMNS`
        (of the run's keys, those that `runs` has) and the index labels of `runs`. ``run_id`` is the
        frame's, else its index label as a text. A score that could not be given is NaN, with its
        ``status`` and ``reason``. ``cost_usd`` is what was paid now; ``metadata["saved_usd"]`` is
        what a cached verdict cost when it was paid. With `dry_run`, one row for each evaluator:
        ``evaluator, kind, model, rows, calls, shared_calls, cached_calls, prompt_tokens`` (``shared_calls``
        are the very same as another row or evaluator asks before; re-asks are not counted; tokens at four
        characters each; of a cascade the most that it may take), and ``usd_low`` and ``usd_high``
        (`mcpeval.forecasts.priced`). A jury has a row for each juror besides its own,
        which `rows` does not count.

    Raises
    ------
    InputError
        Something cannot be meant: no column ``output``, a column that an evaluator reads is not
        there, a name twice, an unknown model, a budget and a model without a known price. Nothing
        was paid.
    CacheMiss
        With `replay`, for a verdict that is not in the cache.
    McpevalError
        With ``errors="raise"``.

    Warns
    -----
    UserWarning
        Runs were to be compared, and for some there is none to be compared with; their rows are
        ``skipped``.

    Notes
    -----
    A run that ended in an error which is not the agent's own doing (its ``error_class`` is neither
    ``turn_limit`` nor ``bad_json``) and has no output is ``skipped`` by every evaluator.

    Of an evaluator that compares the runs of two agents (`mcpeval.evaluators.Pairwise`) there are two
    rows for each pair, one for either run.

    Examples
    --------
    >>> frame = pd.DataFrame({"output": ["4", "five"]})
    >>> score(frame, {"is a digit": lambda output: output.isdigit()})["score"].tolist()
    [1.0, 0.0]
    """
    check_arguments(concurrency, budget_usd, errors)
    known_servers, given = read_servers(servers), read_runs(runs)
    with ExitStack() as pause:
        pause.enter_context(collector_paused())
        asked, jobs, read = plan(given, evaluators)
        jobs = paired(jobs, given, asked)
        store = None if all(map(is_immediate, asked)) else open_cache(cache, replay=replay)
        work = Work(given, asked, jobs, read, store)
        if dry_run:
            return _forecast(work)
        folder = None if store is None or store.replay else store.path
        with Progress(work.size, "score", progress, folder=folder, parts=work.planned() if folder else None) as bar:
            if left := work.at_once(bar):
                pause.close()
                work.wait(left, known_servers, concurrency, Budget(budget_usd), bar)
        if errors == "raise":
            _raise_first(work)
        return scores_of(work)


def _raise_first(work: Work) -> None:
    failed = [line for line in (dict(zip(CELLS, cells)) for cells in work.lines) if line["status"] in FAILED]
    if failed:
        first, n = min(failed, key=itemgetter("job")), len(work.lines) + len(work.verdicts.job)
        run_id = work.runs.run_ids[work.jobs.run[first["job"]]]
        raise McpevalError(
            f"score: {len(failed)} of {n} scores failed. The first: evaluator {first['evaluator']!r} "
            f"on run {run_id!r}: {first['error'] or first['reason']}"
        )


def _forecast(work: Work) -> pd.DataFrame:
    """What `score` would do, one row for each evaluator."""
    lines: dict[str, dict[str, Any]] = {}
    asked: set[str] = set()
    for i, who in enumerate(work.jobs.evaluator):
        evaluator = work.evaluators[who]
        about = {"evaluator": evaluator.name, "kind": kind_of(evaluator)}
        about["model"] = ", ".join(getattr(evaluator, "models", ())) or None
        line = lines.setdefault(evaluator.name, {**about, **dict.fromkeys(_COUNTS, 0)})
        line["rows"] += 1
        found = work.forecast_of(i)
        line["cached_calls"] += found.cached_calls
        for call in found.calls:
            if call.key in asked and (call.common or work.store is not None):
                line["shared_calls"] += 1
            else:
                line["calls"] += 1
                line["prompt_tokens"] += call.prompt_tokens
            asked.add(call.key)
    table = pd.DataFrame(list(lines.values()), columns=["evaluator", "kind", "model", *_COUNTS])
    return priced(table, {evaluator.name: evaluator for evaluator in reversed(work.evaluators)})
