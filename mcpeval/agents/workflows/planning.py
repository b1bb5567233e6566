"""`orchestrator`: a model makes a plan, agents carry it out, the model answers from their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import InputError, did_you_mean
from ...types import Run, Task
from ..composed import Stopped, Workflow, answer, answers, consult, described, fill, told
from ..session import Session
from .making import agents_of, check_count, one_agent

PLANS = ("full", "iterative")
RULES = """\
The sub-tasks of one step are carried out at the same time, so none of them may need the result of another. Each \
names its agent, and tells it what to do; the agent also sees the objective and the results so far.

Agents:
{agents}

Objective:
{question}"""
FULL = """\
Plan how the agents below reach the objective, in at most {max_steps} steps, one after the other.
"""
NEXT = """\
Plan the next step by which the agents below come nearer to the objective, or say that it is reached.
"""
RESULTS = """

Results so far:
{results}"""
SUBTASK = """\
{task}

This is part of a larger objective:
{question}"""
CONCLUDE = """\
Answer the request below from the results of the work on it.

Request:
{question}

Results:
{results}"""
RESULT_OF = "Step {step}, {agent}: {task}"
SUBTASKS = [{"agent": "<NAME>", "task": "<WHAT TO DO>"}]
PLAN = {"steps": [SUBTASKS]}
STEP = {"done": False, "tasks": SUBTASKS}


@dataclass(frozen=True, repr=False)
class Orchestrator(Workflow):
    """Agents that carry out what a model plans; `orchestrator` makes one."""

    planner: Any = field(kw_only=True)
    plan: str = field(kw_only=True)
    max_steps: int = field(kw_only=True)
    prompts = (FULL, NEXT, RULES, RESULTS, SUBTASK, CONCLUDE, RESULT_OF, str(PLAN), str(STEP))

    async def work(self, task: Task, session: Session) -> str:
        results: list[tuple[str, str]] = []
        if self.plan == "full":
            for number, step in enumerate(await self._whole_plan(task, session), start=1):
                results += await self._carried_out(number, step, task, session, results)
        else:
            for number in range(1, self.max_steps + 2):
                step = await self._next_step(task, session, results)
                if not step:
                    break
                if number > self.max_steps:
                    error = f"the objective is not reached within max_steps={self.max_steps}"
                    raise Stopped(Run(status="error", error=error, error_class="turn_limit"))
                results += await self._carried_out(number, step, task, session, results)
        question = fill(CONCLUDE, question=task.question, results=told(results) or "none")
        return await answer(self.planner, session, question, task.output_format)

    async def _whole_plan(self, task: Task, session: Session) -> list[list[tuple[Any, str]]]:
        about = described(self.agents, session)
        question = fill(FULL + RULES, max_steps=self.max_steps, agents=about, question=task.question)
        return await consult(self.planner, session, question, PLAN, self._read_plan)

    async def _next_step(self, task: Task, session: Session, results: list[tuple[str, str]]) -> list[tuple[Any, str]]:
        about = described(self.agents, session)
        question = fill(NEXT + RULES, agents=about, question=task.question) + _so_far(results)
        return await consult(self.planner, session, question, STEP, self._read_step)

    async def _carried_out(
        self, number: int, step: list[tuple[Any, str]], task: Task, session: Session, results: list[tuple[str, str]]
    ) -> list[tuple[str, str]]:
        """The results of one step, in its order; its sub-tasks are worked on at the same time."""
        asked = [(agent, fill(SUBTASK, task=what, question=task.question) + _so_far(results)) for agent, what in step]
        texts = await answers(asked, session)
        heads = [fill(RESULT_OF, step=number, agent=agent.name, task=what) for agent, what in step]
        return list(zip(heads, texts, strict=True))

    def _read_plan(self, found: Mapping[str, Any]) -> tuple[list[list[tuple[Any, str]]], str]:
        given = found.get("steps")
        if not isinstance(given, list) or not given:
            return [], "it has no list 'steps'"
        if len(given) > self.max_steps:
            return [], f"it has {len(given)} steps, and at most {self.max_steps} are allowed"
        steps = []
        for entry in given:
            step, problem = self._read_tasks(entry.get("tasks") if isinstance(entry, Mapping) else entry)
            if problem:
                return [], problem
            steps.append(step)
        return steps, ""

    def _read_step(self, found: Mapping[str, Any]) -> tuple[list[tuple[Any, str]], str]:
        """A step; an empty one where the objective is reached."""
        if found.get("done") is True:
            return [], ""
        return self._read_tasks(found.get("tasks"))

    def _read_tasks(self, given: Any) -> tuple[list[tuple[Any, str]], str]:
        known = {agent.name: agent for agent in self.agents}
        if not isinstance(given, list) or not given:
            return [], "a step is not a list of sub-tasks"
        step = []
        for entry in given:
            entry = entry if isinstance(entry, Mapping) else {}
            name, what = entry.get("agent"), entry.get("task", entry.get("description"))
            if not isinstance(name, str) or not isinstance(what, str):
                return [], "a sub-task is not an object with the texts 'agent' and 'task'"
            if name not in known:
                return [], f"there is no agent {name!r}. {did_you_mean(name, known)}"
            step.append((known[name], what))
        return step, ""


def _so_far(results: list[tuple[str, str]]) -> str:
    return fill(RESULTS, results=told(results)) if results else ""


def orchestrator(
    agents: Any,
    model: Any = None,
    *,
    plan: str = "full",
    max_steps: int = 10,
    name: str = "orchestrator",
    **params: Any,
) -> Orchestrator:
    """A workflow in which a model plans, agents carry out the plan, and the model answers.

    A plan is a list of steps; a step is a list of sub-tasks that do not depend on each other, and
    these are worked on at the same time.

    Parameters
    ----------
    agents : list or dict of agents
    model : agent or str, optional
        Who plans and answers: a model's name stands for an agent that asks it once; None for the
        default model.
    plan : {"full", "iterative"}
        Whether all steps are planned at first, or each when the results of those before are there.
    max_steps : int
        A longer plan is sent back; an iterative one that goes on ends the run with ``error_class``
        ``turn_limit``.
    name : str
    **params
        Of the model, where that is what was given.
    """
    check_count("orchestrator", "max_steps", max_steps)
    if plan not in PLANS:
        raise InputError(f"orchestrator: plan={plan!r}. {did_you_mean(plan, PLANS)}")
    planner = one_agent(model, f"{name}-planner", "orchestrator", params)
    return Orchestrator(name, agents_of(agents, "orchestrator"), planner=planner, plan=plan, max_steps=max_steps)
