"""Agents: `Agent` values that follow a strategy, any callable of ``(task, session)``, commands, and workflows."""

from . import basic, explore, react, reflection, tools  # each registers its strategy
from .base import ALIASES, STRATEGIES, Agent, Strategy, strategy
from .external import External, claude_code
from .functions import FunctionAgent, as_agent
from .memory import Notes
from .session import Session
from .workflows import Workflow, chain, evaluator_optimizer, orchestrator, parallel, router

__all__ = [
    "ALIASES",
    "STRATEGIES",
    "Agent",
    "External",
    "FunctionAgent",
    "Notes",
    "Session",
    "Strategy",
    "Workflow",
    "as_agent",
    "basic",
    "chain",
    "claude_code",
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
