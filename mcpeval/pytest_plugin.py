"""The pytest plugin: a marker that says what to run, and fixtures with what came of it.

    @pytest.mark.mcpeval(tasks="tasks/", agents=Agent("openai/gpt-4.1-mini"), servers="servers.json", trials=3)
    def test_the_agent_is_as_good_as_before(mcpeval_scores):
        assert_passed(mcpeval_scores, rate=0.8)
        assert_no_regression(mcpeval_scores, "baseline.csv")

pytest loads it wherever mcpeval is installed; it imports nothing until a test has the marker.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import pandas as pd

_MARKER = (
    "mcpeval(tasks, agents, *, evaluators=None, **options): what the fixtures mcpeval_runs and mcpeval_scores run; "
    "options are arguments of mcpeval.run and mcpeval.score"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mcpeval", "agents and judges (mcpeval)")
    group.addoption(
        "--mcpeval-replay",
        action="store_true",
        help="answer from the cache alone, and fail where something is not in it: nothing is paid",
    )
    group.addoption("--mcpeval-cache", metavar="DIR", help="the cache; default: $MCPEVAL_CACHE, else the user's")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def mcpeval_runs(request: pytest.FixtureRequest) -> pd.DataFrame:
    """What the agents of the test's marker did: `mcpeval.run` with the marker's arguments."""
    from . import run

    return run(**_taken_by(run, request))


@pytest.fixture
def mcpeval_scores(request: pytest.FixtureRequest, mcpeval_runs: pd.DataFrame) -> pd.DataFrame:
    """What the evaluators of the marker, or else those of the tasks, say of `mcpeval_runs`."""
    from . import score

    return score(mcpeval_runs, **_taken_by(score, request))


def _given(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The marker's arguments by name, checked before anything is run; a marker on the function goes before one on
    its class or module."""
    from .errors import InputError

    given: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers("mcpeval"))):
        if len(mark.args) > 2:
            raise InputError(
                f"@pytest.mark.mcpeval takes tasks and agents by place, and got {len(mark.args)} arguments"
            )
        placed = dict(zip(("tasks", "agents"), mark.args))
        if twice := sorted(placed.keys() & mark.kwargs.keys()):
            raise InputError(f"@pytest.mark.mcpeval: {twice[0]!r} is given by place and by name")
        given.update(placed, **mark.kwargs)
    missing = [name for name in ("tasks", "agents") if name not in given]
    if missing:
        raise InputError(
            f"the fixtures of mcpeval need @pytest.mark.mcpeval(tasks=..., agents=...) on the test; "
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not given"
        )
    _check(given)
    return given


def _check(given: dict[str, Any]) -> None:
    """Refuse what neither `mcpeval.run` nor `mcpeval.score` takes, and evaluators that are none."""
    from . import run, score
    from .errors import InputError, did_you_mean
    from .evaluators.adapting import as_evaluators

    known = [name for function in (run, score) for name in inspect.signature(function).parameters]
    known = [name for name in known if name not in ("runs", "dry_run")]  # the fixtures give the one, and lack the other
    for name in given:
        if name not in known:
            raise InputError(f"@pytest.mark.mcpeval: unknown argument {name!r}. {did_you_mean(name, known)}")
    if given.get("evaluators") is not None and not as_evaluators(given["evaluators"]):
        raise InputError("@pytest.mark.mcpeval: evaluators is empty; None takes those of the tasks")


def _taken_by(function: Any, request: pytest.FixtureRequest) -> dict[str, Any]:
    """The arguments of `function` that the marker gives; what the command line says goes before them."""
    options = request.config.option
    said = {"replay": True} if options.mcpeval_replay else {}
    said |= {"cache": options.mcpeval_cache} if options.mcpeval_cache else {}
    given = {"progress": False, **_given(request), **said}
    return {name: given[name] for name in inspect.signature(function).parameters if name in given}
