"""`Workflow`: an agent that is made of agents."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from ..caching import canonical
from ..errors import InputError
from ..types import Run, Task
from .base import Agent
from .react import json_objects
from .session import Session, text_of

REASKS = 2  # of what should be JSON, before the run ends with bad_json
AGAIN = "Your last answer could not be used: {problem}. It was:"


class Stopped(Exception):
    """The work of a workflow ends here, with `run`."""

    def __init__(self, run: Run) -> None:
        super().__init__(run.error)
        self.run, self.error_class = run, run.error_class


@dataclass(frozen=True)
class Workflow:
    """An agent made of agents: a callable of ``(task, session)`` like them, and so a part for others.

    Each agent works in a part of the session (`Session.part`): its messages, with its name, its tool
    calls and its cost are in the run's.  It is offered the tools of the run, narrowed by its own
    ``servers``, which may name the tools of each.  An agent that fails ends the run, with its own ``error_class``.

    Attributes
    ----------
    name : str
    agents : tuple of agents
        Those that do the work.
    """

    name: str
    agents: tuple[Any, ...]
    #: Every text of its own that a model is shown.
    prompts: ClassVar[tuple[str, ...]] = ()
    #: Raised when it begins to behave differently.
    revision: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InputError(f"{type(self).__name__}: name={self.name!r:.80} should be a text that is not empty")

    async def work(self, task: Task, session: Session) -> Any:
        """What `__call__` does; raises `Stopped` where the work ends early."""
        raise NotImplementedError(f"{type(self).__name__} has no method work")

    async def __call__(self, task: Task, session: Session) -> Any:
        if task is not session.task:  # a callable gives it a task of its own
            session = session.part(self.name, task=task, kind="workflow")
        try:
            return await self.work(task, session)
        except Stopped as stopped:
            return stopped.run

    @property
    def parts(self) -> tuple[Any, ...]:
        """Every agent it is made of: `agents`, and those of its other fields."""
        others = (getattr(self, field.name) for field in fields(self) if field.name not in ("name", "agents"))
        return (*self.agents, *(other for other in others if is_agent(other)))

    @property
    def model(self) -> str | None:
        """The models of its agents, each once."""
        return ", ".join(dict.fromkeys(agent.model for agent in self.parts if agent.model)) or None

    @property
    def uses_tools(self) -> bool:
        return any(agent.uses_tools for agent in self.parts)

    @property
    def servers(self) -> tuple[str, ...] | None:
        """The MCP servers of all its agents; None, for all, where one of them takes any.

        Each agent is offered what it takes of them, servers and tools.
        """
        lists = [agent.servers for agent in self.parts if agent.uses_tools]
        if any(names is None for names in lists):
            return None
        return tuple(dict.fromkeys(name for names in lists for name in names))

    @property
    def reads(self) -> tuple[str, ...] | None:
        """The fields of a task that any of its agents looks at; None for all."""
        lists = [agent.reads for agent in self.parts]
        if any(names is None for names in lists):
            return None
        return tuple(dict.fromkeys(("question", "output_format", *(name for names in lists for name in names))))

    @property
    def fingerprint(self) -> str | None:
        """sha256 of all that shapes what it does; None where one of its agents has none."""
        marks = [agent.fingerprint for agent in self.parts]
        if None in marks:
            return None
        own = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in ("name", "agents") and not is_agent(getattr(self, field.name))
        }
        parts = {
            "workflow": [type(self).__name__, self.revision, *self.prompts, AGAIN],
            "settings": own,
            # Names are shown to models, and seen in the transcript.
            "agents": [[agent.name, mark] for agent, mark in zip(self.parts, marks, strict=True)],
        }
        return hashlib.sha256(canonical(parts).encode()).hexdigest()

    def __repr__(self) -> str:
        shown = [f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.name != "agents"]
        return f"{type(self).__name__}({', '.join([repr(list(self.agents)), *shown])})"


def is_agent(value: Any) -> bool:
    """Whether `value` is an agent, as `as_agent` gives them."""
    return callable(value) and hasattr(value, "fingerprint") and hasattr(value, "uses_tools")


def parts(agent: Any) -> Iterator[Any]:
    """Every agent that `agent` is made of and that is no workflow itself, at any depth."""
    if isinstance(agent, Workflow):
        for part in agent.parts:
            yield from parts(part)
    else:
        yield agent


def models(agent: Any) -> Iterator[Agent]:
    """Every `Agent` that `agent` is made of, at any depth, itself included."""
    return (part for part in parts(agent) if isinstance(part, Agent))


def stores(agent: Any) -> set[str]:
    """The names of the notes that `agent` keeps from one task to the next."""
    kept = (getattr(part, "memory", False) for part in parts(agent))
    return {memory for memory in kept if isinstance(memory, str)}


def starts_servers(agent: Any) -> bool:
    """Whether all the MCP servers that `agent` is offered are started by itself, not by the run."""
    return all(getattr(part, "starts_servers", False) for part in parts(agent) if part.uses_tools)


# --- how a workflow puts its agents to work ------------------------------------------------------


async def answer(agent: Any, session: Session, question: str, output_format: Any = None, *, draw: int = 0) -> str:
    """What `agent` answers to `question`, in a part of `session`.

    Raises
    ------
    Stopped
        Its run ended with an error, or without an answer.
    """
    task = replace(session.task, question=question, output_format=output_format)
    servers = agent.servers if agent.uses_tools else ()
    kind = "workflow" if isinstance(agent, Workflow) else "agent"
    with session.part(agent.name, task=task, servers=servers, draw=draw, kind=kind) as part:
        given = await agent(task, part)
        run = given if isinstance(given, Run) else Run(given)
        part.include(run)
        text = text_of(run.output)
        if run.status != "ok":
            raise Stopped(replace(_ending(run), error=f"agent {agent.name!r}: {run.error}"))
        if text is None:
            raise Stopped(Run(status="error", error=f"agent {agent.name!r} gave no answer", error_class="model"))
        return text


def _ending(run: Run) -> Run:
    """`run` without what `Session.include` has taken from it already."""
    return Run(run.output, status=run.status, error_class=run.error_class, metadata=run.metadata)


async def answers(work: Sequence[tuple[Any, str]], session: Session) -> list[str]:
    """What several agents answer, each to its own question, all at the same time.

    All of them end their work, whatever becomes of one, for it is paid for.  Agents that would ask a
    model the very same draw answers of their own.
    """
    seen: dict[Any, int] = {}
    running = []
    for agent, question in work:
        same = (agent.fingerprint or agent.name, question)
        seen[same] = seen.get(same, -1) + 1
        running.append(answer(agent, session, question, draw=seen[same]))
    done = await asyncio.gather(*running, return_exceptions=True)
    for result in done:
        if isinstance(result, BaseException):
            raise result
    return done


async def consult(
    agent: Any,
    session: Session,
    question: str,
    form: Mapping[str, Any],
    read: Callable[[Mapping[str, Any]], tuple[Any, str]],
) -> Any:
    """What `agent` decides: the first JSON object in its answer that `read` can use.

    Fences, prose and ``<think>`` around the JSON do no harm.  What cannot be used is asked for
    again with what is wrong with it, at most twice.

    Parameters
    ----------
    form : dict
        An example of the object, shown to the agent.
    read : callable
        Gives the decision and an empty text, or anything and what is wrong.

    Raises
    ------
    Stopped
        With ``error_class`` ``bad_json``, or with the agent's own error.
    """
    asked = question
    for _ in range(REASKS + 1):
        text = await answer(agent, session, asked, form)
        problem = "there is no JSON object in it"
        for found in json_objects(text):
            decision, problem = read(found)
            if not problem:
                return decision
        asked = f"{question}\n\n{AGAIN.replace('{problem}', problem)}\n{text}"
    raise Stopped(
        Run(
            status="error",
            error=f"agent {agent.name!r}: no decision in {REASKS + 1} answers: {problem}",
            error_class="bad_json",
        )
    )


def fill(prompt: str, /, **texts: Any) -> str:
    """`prompt` with each ``{name}`` replaced, once: what the texts hold themselves stays as it is."""
    return re.sub(r"\{(\w+)\}", lambda found: str(texts.get(found[1], found[0])), prompt)


def described(agents: Sequence[Any], session: Session) -> str:
    """A line for each agent: its name, what it is for, and the tools it is offered."""
    lines = []
    for agent in agents:
        tools = session.tools_for(agent.servers) if agent.uses_tools else []
        names = ", ".join(tool["function"]["name"] for tool in tools)
        about = " ".join(_purpose(agent).split())
        lines.append(f"- {agent.name}{': ' if about else ''}{about}{f' (tools: {names})' if names else ''}")
    return "\n".join(lines)


def _purpose(agent: Any) -> str:
    if isinstance(agent, Workflow):
        return f"{type(agent).__name__} of {', '.join(part.name for part in agent.parts)}"
    if hasattr(agent, "system"):
        return agent.system or ""
    function = agent.function
    about = inspect.getdoc(function if inspect.isroutine(function) else type(function)) or ""
    return about.partition("\n\n")[0]


def told(results: Sequence[tuple[str, str]]) -> str:
    """Who said what, for a model to read: pairs of a heading and a text."""
    return "\n\n".join(f"{heading}:\n{text}" for heading, text in results)
