"""What the workflows check of what they are made of, before anything is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...errors import InputError
from ..base import Agent
from ..functions import as_agent


def agents_of(given: Any, what: str, *, again: bool = False) -> tuple[Any, ...]:
    """The agents of a list, or of a dict that names them.

    Parameters
    ----------
    again : bool
        Whether the same agent may stand there more than once.

    Raises
    ------
    InputError
        There is none, one is no agent, or two have the same name.
    """
    if isinstance(given, Mapping):
        agents = [as_agent(agent, str(name)) for name, agent in given.items()]
    elif isinstance(given, Iterable) and not isinstance(given, str) and not callable(given):
        agents = [as_agent(agent) for agent in given]
    else:
        raise InputError(f"{what}: agents={given!r:.200} should be a list of agents, or a dict that names them")
    if not agents:
        raise InputError(f"{what}: agents is empty; give at least one")
    names = [agent.name for i, agent in enumerate(agents) if not (again and agent in agents[:i])]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{what}: {names.count(name)} agents are named {name!r}; give each a name=, or a dict")
    return tuple(agents)


def one_agent(given: Any, name: str, what: str, params: Mapping[str, Any]) -> Any:
    """An agent, or one that asks the model `given` once; `params` go with a model only."""
    if given is None or isinstance(given, str):
        return Agent(given, "basic", name=name, **params)
    if params:
        raise InputError(f"{what}: {', '.join(params)} belong to a model; give them to the agent {given!r:.80} itself")
    return as_agent(given)


def check_count(what: str, name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"{what}: {name}={value!r} should be a whole number, at least 1")
