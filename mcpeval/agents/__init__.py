"""Agents: `Agent` values that follow a strategy, any callable of ``(task, session)``, and workflows of both."""

from . import basic, explore, react, reflection, tools  # each registers its strategy
from .base import ALIASES, STRATEGIES, Agent, Strategy, strategy
from .functions import FunctionAgent, as_agent
from .session import Session
from .workflows import Workflow, chain, evaluator_optimizer, orchestrator, parallel, router

__all__ = [
    "ALIASES",
    "STRATEGIES",
    "Agent",
    "FunctionAgent",
    "Session",
    "Strategy",
    "Workflow",
    "as_agent",
    "basic",
    "chain",
    "evaluator_optimizer",
    "explore",
    "orchestrator",
    "parallel",
    "react",
    "reflection",
    "router",
    "strategy",
    "tools",
]
