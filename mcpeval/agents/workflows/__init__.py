"""Workflows: agents made of agents."""

from ..composed import Workflow
from .chains import Chain, Parallel, chain, parallel
from .planning import Orchestrator, orchestrator
from .refining import EvaluatorOptimizer, evaluator_optimizer
from .routing import Router, router

__all__ = [
    "Chain",
    "EvaluatorOptimizer",
    "Orchestrator",
    "Parallel",
    "Router",
    "Workflow",
    "chain",
    "evaluator_optimizer",
    "orchestrator",
    "parallel",
    "router",
]
