"""`ablate`: the same runs before many variants of a judge, or the same tasks before many of an agent.

Parts: levels (factors and the cells they make) | result (what labels show).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from .. import llm
from ..agents.base import STRATEGIES, Agent
from ..agents.composed import is_agent, models
from ..caching import Cache, open_cache
from ..errors import InputError
from ..evaluators.adapting import as_evaluator
from ..evaluators.composed import owner_of
from ..forecasts import SHORT
from ..frames import column, frame_of
from ..running import run
from ..running.inputs import jobs_of, tasks_of
from ..running.keeping import kept
from ..scoring import score
from ..scoring.inputs import read_runs
from ..servers import read_servers
from ..types import Task
from .levels import Cell, cells_of
from .result import Ablation, against, check_comparable, read_labels

__all__ = ["Ablation", "ablate"]

_AGENT_CELLS = {
    "runs": "int64",
    "cached_runs": "int64",
    "calls": "int64",
    "max_calls": "Int64",
    "prompt_tokens": "Int64",
    "usd_low": "float64",
    "usd_high": "float64",
}


def ablate(
    runs: Any,
    judge: Any,
    *,
    design: str = "full",
    labels: Any = None,
    dry_run: bool = False,
    trials: int | None = None,
    mcp_servers: Any = None,
    evaluators: Any = None,
    cache: Any = None,
    concurrency: int | None = None,
    budget_usd: float | None = None,
    progress: bool | None = None,
    replay: bool = False,
    **factors: Any,
) -> pd.DataFrame | Ablation:
    """Vary the arguments of a judge over the same runs, or those of an agent over the same tasks.

    Parameters
    ----------
    runs : DataFrame, Run, dict, or list of those
        What `score` takes; with an agent, the tasks that `run` takes.
    judge : Judge, another evaluator of mcpeval, Agent or workflow
        What is varied. Its other arguments stay as they are.
    design : {"full", "one-at-a-time"}
        Every combination of the levels, or the baseline and each other level alone.
    labels : str, Series or dict, optional
        What people say of the runs: a column of `runs`, or labels by run_id.
    dry_run : bool
        Ask nobody, and give the cells with what they would cost.
    trials : int, optional
        Of an agent: independent repetitions of each task; 1 where it is not given.
    mcp_servers : path, dict or None
        Of an agent: the MCP servers themselves, as ``run(servers=...)`` takes them; ``servers=`` is a
        factor, the lists of their names that the agent is offered.
    evaluators : evaluator, list, dict or True, optional
        Of an agent: what its runs are scored by; True takes each task's own.
    cache : Cache, path, None or False
        As in `score` and `run`. Cells that would ask the very same share one answer even where it is
        False.
    concurrency : int, optional
        Evaluations (16) or runs (8) at the same time, those of all cells together.
    budget_usd : float, optional
        Of a judge: as in `score`, for all cells together.
    progress, replay
        As in `score` and `run`.
    **factors : list or dict
        Each factor is an argument of the judge (``model``, ``rubric``, ``scale``, ``sees``, ``samples``,
        ``temperature`` or any other parameter of the model, ...) or the agent (``model``, ``strategy``,
        ``servers``, ...), with a list of its levels, or a dict that names them.

    Returns
    -------
    DataFrame
        The scores frame of all cells, with a column for each factor before ``evaluator``: the level's
        name. That is its key in the dict; of a list the number, or the text where it is short and
        "rubric 2" where it is not. ``evaluator`` names the cell: "judge [model=a, rubric=short]". A
        factor takes the place of a column of its name; what ``model`` says of the agent is then in
        ``run_model``. With an agent, the runs frame of all cells likewise (``agent`` names the cell),
        or its scores frame where `evaluators` are given.

        The first cell of the frame is the baseline: of each factor the level that the judge or agent
        as given has, where it is among the levels, else the first one.
    Ablation
        With `labels`: the scores, the agreement of each cell with intervals, paired differences from
        the baseline adjusted by Holm's method, and a figure.

        With `dry_run`, a frame with a row for each cell: ``evaluator`` (or ``agent``), the factors,
        ``baseline``, and for a judge ``rows``, ``calls`` (new ones), ``shared_calls`` (the very same as
        of another row or in a cell above), ``cached_calls``, ``prompt_tokens``, ``usd_low`` and ``usd_high``
        (`mcpeval.forecasts.priced`). For an agent ``runs``, ``cached_runs``, ``calls`` (at least one
        for each new run), ``max_calls``, ``prompt_tokens`` and ``usd_low`` of those first calls without
        their tools, and no ``usd_high``: what tools return, nobody knows before.

    Raises
    ------
    InputError
        A factor is no argument (with the nearest name), a combination of levels is impossible (with
        the cell), labels do not belong to the runs; or as `score` and `run`. Nothing was paid.

    Notes
    -----
    Answers are kept by content, so another level pays for its new cells alone, and another sample
    for that sample.

    Examples
    --------
    >>> ablate(runs, Judge(model="openai/gpt-4.1-mini"), rubric={"short": "Is it right?", "long": long},
    ...        sees=[["output"], ["question", "output"]], dry_run=True)  # doctest: +SKIP
    """
    if is_agent(judge):
        for name, value in (("labels", labels), ("budget_usd", budget_usd)):
            if value is not None:
                raise InputError(f"ablate: {name}= is for judges; {judge.name!r} is an agent")
        how = {"servers": mcp_servers, "cache": cache, "replay": replay, "progress": progress}
        how |= {} if concurrency is None else {"concurrency": concurrency}
        cells, trials = _agent_variants(judge, factors, design), 1 if trials is None else trials
        return _agents(runs, cells, trials, evaluators, dry_run, how)
    for name, value in (("trials", trials), ("mcp_servers", mcp_servers), ("evaluators", evaluators)):
        if value is not None:
            raise InputError(f"ablate: {name}= is for agents, and {judge!r:.80} is none")
    cells = cells_of(as_evaluator(judge), factors, design)
    known = None if labels is None else _labels(runs, labels)
    if known is not None:
        check_comparable(cells, known)
    with ExitStack() as stack:
        store = open_cache(cache, replay=replay)
        if store is None:  # for what the cells have in common
            store = stack.enter_context(Cache(stack.enter_context(TemporaryDirectory())))
        how = {"cache": store, "replay": replay}
        if dry_run:
            return _judge_cells(runs, cells, how)
        how |= {"budget_usd": budget_usd, "progress": progress}
        how |= {} if concurrency is None else {"concurrency": concurrency}
        scores = _with_levels(score(runs, {cell.name: cell.made for cell in cells}, **how), "evaluator", cells)
    return scores if known is None else against(scores, list(factors), cells, known)


def _labels(runs: Any, labels: Any) -> dict[Any, Any]:
    read = read_runs(runs)
    return read_labels(labels, read.run_ids, {name: read.column(name) for name in read.names})


def _judge_cells(runs: Any, cells: Sequence[Cell], how: Mapping[str, Any]) -> pd.DataFrame:
    made = {cell.name: cell.made for cell in cells}
    lines = score(runs, made, dry_run=True, **how).drop(columns=["kind", "model"])
    told = pd.DataFrame({"evaluator": list(made)}).merge(lines, on="evaluator", how="left")
    counts = ["rows", "calls", "shared_calls", "cached_calls", "prompt_tokens"]
    told = told.fillna(0).astype(dict.fromkeys(counts, "int64")) if lines.empty else told  # there are no runs
    return _beside(told, "evaluator", cells)


def _beside(table: pd.DataFrame, key: str, cells: Sequence[Cell]) -> pd.DataFrame:
    """A line for each cell, its levels after its name, and whether it is the baseline."""
    table = _with_levels(table, key, cells)
    table.insert(0, key, table.pop(key))
    table.insert(1 + len(cells[0].levels), "baseline", table[key] == cells[0].name)
    return table


def _with_levels(frame: pd.DataFrame, key: str, cells: Sequence[Cell]) -> pd.DataFrame:
    """`frame` with a column for each factor before the column `key`, which names the cells."""
    named = {cell.name: cell for cell in cells}
    place = {name: named[owner_of(name, named)] for name in dict.fromkeys(frame[key])}
    frame = frame.copy()
    for factor in cells[0].levels:
        names = [cell.levels[factor] for cell in cells]
        dtype = "str" if any(isinstance(name, str) for name in names) else "float64"
        if dtype == "float64" and all(isinstance(name, int) for name in names):
            dtype = "int64"
        levels = column([place[name].levels[factor] for name in frame[key]], dtype)
        if factor in frame.columns:
            frame = frame.rename(columns={factor: f"run_{factor}"})
        frame.insert(frame.columns.get_loc(key), factor, levels)
    return frame


# --- agents -------------------------------------------------------------------------------------


def _agent_variants(agent: Any, factors: Mapping[str, Any], design: str) -> list[Cell]:
    given = factors.get("servers")
    if isinstance(given, (str, Mapping)) and not (isinstance(given, Mapping) and all(map(_is_names, given.values()))):
        raise InputError(
            "ablate: servers= is a factor, the lists of names that the agent is offered: servers=[['time'], ['time', "
            "'files']]; the servers themselves are given as mcp_servers="
        )
    return cells_of(agent, factors, design)


def _is_names(level: Any) -> bool:
    return level is None or isinstance(level, (list, tuple))


def _agents(
    tasks: Any, cells: Sequence[Cell], trials: int, evaluators: Any, dry_run: bool, how: Mapping[str, Any]
) -> pd.DataFrame:
    if dry_run:
        return _agent_cells(tasks, cells, trials, how)
    frame = run(tasks, [cell.made for cell in cells], trials=trials, **how)
    if evaluators is not None:
        frame = score(frame, None if evaluators is True else evaluators, **how)
    return _with_levels(frame, "agent", cells)


def _agent_cells(tasks: Any, cells: Sequence[Cell], trials: int, how: Mapping[str, Any]) -> pd.DataFrame:
    jobs = jobs_of(tasks_of(tasks), [cell.made for cell in cells], trials, read_servers(how["servers"]))
    store = open_cache(how["cache"], replay=how["replay"])
    rows = []
    for cell in cells:
        own = [job for job in jobs if job.agent is cell.made]
        keys = [None if store is None else job.key() for job in own]
        fresh = [job for job, key in zip(own, keys) if key is None or kept(store, key) is None]
        parts = list(models(cell.made))
        most = cell.made.max_turns * len(fresh) if parts == [cell.made] else None
        first = [message["content"] for job in fresh for part in parts[:1] for message in _opening(part, job.task)]
        tokens = sum(map(len, first)) // 4 if parts else None
        prices = llm.prices(parts[0].model) if parts else None
        low = None if prices is None else prices[0] * tokens + prices[1] * SHORT * len(fresh)
        counts = {"runs": len(own), "cached_runs": len(own) - len(fresh), "calls": len(fresh), "max_calls": most}
        rows.append({"agent": cell.name, **counts, "prompt_tokens": tokens, "usd_low": low, "usd_high": None})
    return _beside(frame_of(rows, {"agent": "str", **_AGENT_CELLS}), "agent", cells)


def _opening(agent: Agent, task: Task) -> list[dict[str, Any]]:
    """The messages of a first call, with the strategy's instructions where it has some."""
    texts = STRATEGIES[agent.strategy].prompts
    return agent.opening(task, *([agent.prompt or texts[0]] if texts else []))
