"""`run_config`: a judge-llm configuration, from its file to frames, reports and an exit code."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from ... import llm
from ...agents import FunctionAgent
from ...caching import open_cache
from ...errors import CacheMiss, InputError, McpevalError, did_you_mean
from ...evaluators.adapting import as_evaluator
from ...frames import column
from ...running import run
from ...scoring import score
from .builtins import BUILT_INS, built_in, check_compat
from .cases import Case, check_overrides, read_cases
from .config import Entry, Evaluation, read_config
from .custom import EVALUATORS, check_trust, make
from .outcome import Outcome
from .providers import Conversation, Custom, agent_of, check_names
from .reporters import Reporter, reporter_of
from .signatures import JudgeLlm

#: Exit codes, as for any command of mcpeval; 2, for a configuration that cannot be used, is raised.
PASSED, FAILED = 0, 1


class Evaluated(NamedTuple):
    """What came of a configuration.

    Attributes
    ----------
    runs : DataFrame
        One row for each case, provider and repetition, in that order; the columns of `mcpeval.run`,
        and ``test_case``, the case as in its file.
    scores : DataFrame
        As of `mcpeval.score`.
    exit_code : int
        0 where every run passed every evaluator; 1 where one did not, or could not be scored or run.
        With ``fail_on_threshold_violation: false`` only what could not be scored or run makes it 1.
    """

    runs: pd.DataFrame
    scores: pd.DataFrame
    exit_code: int


def run_config(
    path: str | os.PathLike,
    *,
    trust: bool = False,
    compat: str | None = None,
    defaults: Any = None,
    env: Mapping[str, str] | None = None,
    cache: Any = None,
    progress: bool | None = None,
    replay: bool = False,
) -> Evaluated:
    """Run a judge-llm configuration.

    Parameters
    ----------
    path : path-like
        YAML or JSON. Paths in it are relative to its folder.
    trust : bool
        Whether the code that it, or the file of defaults, names may run.
    compat : {None, "judge-llm"}
        "judge-llm" gives that package's defaults and answers where ours differ.
    defaults : path-like, None or False
        The file of defaults beneath it; None looks for one as judge-llm does (see
        `config.read_config`), False takes none.
    env : mapping, optional
        Values for ``${VAR}``; those of the environment where it is not given. A ``.env`` file is not read.
    cache : Cache, path, None or False
        As in `mcpeval.run`.
    progress : bool, optional
        As in `mcpeval.run`.
    replay : bool
        Answer from the cache alone.

    Returns
    -------
    Evaluated
        The runs, the scores, and the exit code. The reporters have reported.

    Raises
    ------
    InputError
        Something in the configuration, its cases or its code cannot be meant; or code that a file
        names would run without `trust`. Nothing was started and nothing paid.
    CacheMiss
        With `replay`.

    Examples
    --------
    >>> runs, scores, exit_code = run_config("config.yaml")    # doctest: +SKIP
    """
    theirs = check_compat(compat)
    plan = read_config(path, defaults=defaults, env=env)
    cases = read_cases(plan.datasets, pattern=plan.pattern)
    entries = [*plan.providers, *plan.evaluators, *plan.reporters]
    check_trust([entry.source for entry in entries if entry.source is not None], trust)
    modules: dict[str, Any] = {}
    loaded = {source: source.load(modules) for source in dict.fromkeys(e.source for e in entries if e.source)}
    if not theirs:
        check_overrides(cases, _known_names(plan))
    evaluators = _evaluators(cases, plan, loaded, compat)
    agents = [agent_of(e, plan.agent_metadata, theirs=theirs, loaded=loaded.get(e.source)) for e in plan.providers]
    check_names(agents, plan.path)
    reporters = [reporter_of(entry, loaded.get(entry.source)) for entry in plan.reporters]

    store = open_cache(cache, replay=replay)
    cache = False if store is None else store
    runs = _run(plan, cases, agents, cache=cache, progress=progress, replay=replay)
    runs["test_case"] = column([case.data for case in cases for _ in range(len(agents) * plan.trials)], "object")
    own = runs.assign(evaluators=column([evaluators[task] for task in runs["task_id"]], "object"))
    scores = score(own, cache=cache, concurrency=plan.concurrency, progress=progress, replay=replay)
    outcome = Outcome(plan.path, cases, runs, scores, plan.defaults)
    _report(outcome, reporters)
    failed = outcome.errors + (outcome.failed if plan.must_pass else 0)
    return Evaluated(runs, scores, FAILED if failed else PASSED)


def _run(plan: Evaluation, cases: Sequence[Case], agents: Sequence[FunctionAgent], **more: Any) -> pd.DataFrame:
    tasks = [case.task for case in cases]
    more |= {"trials": plan.trials, "concurrency": plan.concurrency, "servers": {}}
    custom = [agent.function.inner for agent in agents if isinstance(agent.function, Custom)]
    try:
        if not custom and more["cache"] is not False and not more["replay"]:
            try:  # all of it in the cache: then no model has to be asked for, nor a key to be there
                return run(tasks, agents, **{**more, "progress": False, "replay": True})
            except CacheMiss:
                pass
        for agent in agents if not more["replay"] else ():
            if isinstance(agent.function, Conversation):
                llm.check_models([agent.function.model], **agent.function.params)
        return run(tasks, agents, **more)
    finally:
        for provider in custom:
            if callable(getattr(provider, "cleanup", None)):
                provider.cleanup()


def _report(outcome: Outcome, reporters: Sequence[Reporter]) -> None:
    """Let every reporter report; what one of them raised is raised when all are done."""
    failed: McpevalError | None = None
    for reporter in reporters:
        try:
            reporter(outcome)
        except McpevalError as error:
            failed = failed or error
    if failed is not None:
        raise failed


# --- evaluators ---------------------------------------------------------------------------------


def _evaluators(
    cases: Sequence[Case], plan: Evaluation, loaded: Mapping[Any, Any], compat: str | None
) -> dict[str, list[Any]]:
    """The evaluators of each case: those of the configuration, with what the case says instead."""
    made: dict[Any, Any] = {}
    found: dict[str, list[Any]] = {}
    for case in cases:
        found[case.id] = []
        for place, entry in enumerate(plan.evaluators):
            over: dict[str, Any] = {}
            for name in _names(entry):
                if isinstance(said := case.overrides.get(name), Mapping):
                    over |= said
            key = place, json.dumps(over, sort_keys=True)
            if key not in made:
                made[key] = _evaluator(entry, over, loaded.get(entry.source), compat, case)
            found[case.id].append(made[key])
    return found


def _evaluator(entry: Entry, over: Mapping[str, Any], cls: Any, compat: str | None, case: Case) -> Any:
    where = f"{entry.where}, as case {case.id!r} has it" if over else entry.where
    config = {**entry.config, **over}
    cls = cls or EVALUATORS.get(entry.type)
    if cls is None:
        if entry.type not in BUILT_INS:
            known = [*BUILT_INS, *EVALUATORS, "custom"]
            raise InputError(f"{where}: type={entry.type!r} is no evaluator. {did_you_mean(entry.type, known)}")
        return built_in(entry.type, config, name=entry.name, compat=compat, where=where)
    name = entry.name or entry.type
    made = as_evaluator(make(cls, entry.config, where), name=name)
    if not isinstance(made, JudgeLlm):
        return made if not over else as_evaluator(make(cls, config, where), name=name)
    # The released package hands a case's own settings to evaluate(); the guide's evaluators know only __init__.
    return made.with_overrides(over) if made.takes_overrides else as_evaluator(make(cls, config, where), name=name)


def _names(entry: Entry) -> list[str]:
    """What a case may call an evaluator by; what comes later counts more."""
    cls = BUILT_INS[entry.type].class_name if entry.type in BUILT_INS else entry.source and entry.source.class_name
    registered = getattr(EVALUATORS.get(entry.type), "__name__", None)
    return list(dict.fromkeys(name for name in (entry.type, registered, cls, entry.name) if name and name != "custom"))


def _known_names(plan: Evaluation) -> list[str]:
    """Every name that a case may use: of this configuration's evaluators, and of those it could have."""
    types = [name for kind, entry in BUILT_INS.items() for name in (kind, entry.class_name)]
    return [*(name for entry in plan.evaluators for name in _names(entry)), *types, *EVALUATORS]
