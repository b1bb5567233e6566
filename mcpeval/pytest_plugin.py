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

_MARKER = "mcpeval(tasks, agents, *, evaluators=None, **options): what the fixtures mcpeval_runs and mcpeval_scores run"


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

    given = _given(request)
    given.pop("evaluators", None)
    return run(**{**_places(request), **_taken(given, run)})


@pytest.fixture
def mcpeval_scores(request: pytest.FixtureRequest, mcpeval_runs: pd.DataFrame) -> pd.DataFrame:
    """What the evaluators of the marker, or else those of the tasks, say of `mcpeval_runs`."""
    from . import score

    given = _given(request)
    evaluators = given.pop("evaluators", None)
    shared = {name: given[name] for name in inspect.signature(score).parameters if name in given}
    return score(mcpeval_runs, evaluators, **{**_places(request), **shared})


def _given(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The marker's arguments by name; a marker on the function goes before one on its class or module."""
    from .errors import InputError

    given: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers("mcpeval"))):
        if len(mark.args) > 2:
            raise InputError(
                f"@pytest.mark.mcpeval takes tasks and agents by place, and got {len(mark.args)} arguments"
            )
        given.update(dict(zip(("tasks", "agents"), mark.args)), **mark.kwargs)
    missing = [name for name in ("tasks", "agents") if name not in given]
    if missing:
        raise InputError(
            f"the fixtures of mcpeval need @pytest.mark.mcpeval(tasks=..., agents=...) on the test; "
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not given"
        )
    return given


def _taken(given: dict[str, Any], function: Any) -> dict[str, Any]:
    from .errors import InputError, did_you_mean

    known = list(inspect.signature(function).parameters)
    for name in given:
        if name not in known:
            raise InputError(
                f"@pytest.mark.mcpeval: unknown argument {name!r}. {did_you_mean(name, [*known, 'evaluators'])}"
            )
    return given


def _places(request: pytest.FixtureRequest) -> dict[str, Any]:
    options = request.config.option
    cache = {"cache": options.mcpeval_cache} if options.mcpeval_cache else {}
    return {"replay": options.mcpeval_replay, "progress": False, **cache}
