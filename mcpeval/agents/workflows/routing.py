"""`router`: a model chooses who answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import did_you_mean
from ...types import Task
from ..composed import Workflow, answer, answers, consult, described, fill
from ..session import Session
from .chains import ANSWER_OF, COMBINE, combined
from .making import agents_of, check_count, one_agent

ROUTE = """\
Which of these agents should answer the request below? Name at most {top_k}, the most suitable first.

Agents:
{agents}

Request:
{question}"""
CHOICE = {"agents": ["<NAME>"]}


@dataclass(frozen=True, repr=False)
class Router(Workflow):
    """Agents, of which a model chooses those that answer; `router` makes one."""

    chooser: Any = field(kw_only=True)
    top_k: int = field(kw_only=True)
    prompts = (ROUTE, str(CHOICE), COMBINE, ANSWER_OF)

    async def work(self, task: Task, session: Session) -> str:
        about = described(self.agents, session)
        question = fill(ROUTE, top_k=self.top_k, agents=about, question=task.question)
        chosen = await consult(self.chooser, session, question, CHOICE, self._read)
        if len(chosen) == 1:
            return await answer(chosen[0], session, task.question, task.output_format)
        texts = await answers([(agent, task.question) for agent in chosen], session)
        return await combined(self.chooser, task, session, chosen, texts)

    def _read(self, found: Mapping[str, Any]) -> tuple[list[Any], str]:
        """The agents that a choice names, at most `top_k`, and what is wrong with it."""
        given = found.get("agents", found.get("agent"))
        given = given if isinstance(given, list) else [given]
        names = [entry.get("name") if isinstance(entry, Mapping) else entry for entry in given if entry]
        known = {agent.name: agent for agent in self.agents}
        for name in names:
            if name not in known:
                return [], f"there is no agent {name!r}. {did_you_mean(name, known)}"
        if not names:
            return [], "it names no agent"
        return [known[name] for name in dict.fromkeys(names)][: self.top_k], ""


def router(agents: Any, model: Any = None, *, top_k: int = 1, name: str = "router", **params: Any) -> Router:
    """A workflow in which a model chooses the agents that answer.

    The choice is made by the agents' names, what they are for (the ``system`` of an `Agent`, the
    docstring of a callable) and their tools.  The answer of one that is chosen alone is the
    answer, as it is; of several, which work at the same time, the model makes one.

    Parameters
    ----------
    agents : list or dict of agents
    model : agent or str, optional
        Who chooses: a model's name stands for an agent that asks it once; None for the default model.
    top_k : int
        Agents that may be chosen.
    name : str
    **params
        Of the model, where that is what was given.
    """
    check_count("router", "top_k", top_k)
    chooser = one_agent(model, f"{name}-chooser", "router", params)
    return Router(name, agents_of(agents, "router"), chooser=chooser, top_k=top_k)
