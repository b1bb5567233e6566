"""Agents: `Agent` values that follow a strategy, and any callable of ``(task, session)``."""

from . import basic, react, tools  # each registers its strategy
from .base import ALIASES, STRATEGIES, Agent, Strategy, strategy
from .functions import FunctionAgent, as_agent
from .session import Session

__all__ = [
    "ALIASES",
    "STRATEGIES",
    "Agent",
    "FunctionAgent",
    "Session",
    "Strategy",
    "as_agent",
    "basic",
    "react",
    "strategy",
    "tools",
]
