"""Measure LLM agents that work over MCP servers.

Tasks are run by agents (`run`), what they did is scored (`score`), and both are pandas frames.
The names below are loaded when they are first used: importing the package costs no more than a
few milliseconds.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {
    "types": ["Task", "Run", "ToolCall", "Usage", "Score"],
    "caching": ["Cache"],
    "local": ["default_model"],
    "tasks": ["read_tasks"],
    "agents": ["Agent"],
    "benchmarks": ["read_benchmark"],
    "evaluators": ["Cascade", "Judge", "Jury", "Pairwise", "Scale", "evaluator", "rule", "tool_call", "tool_calls"],
    "running": ["run"],
    "scoring": ["score"],
    "tracing": ["spans"],
    "trajectories": ["tool_metrics"],
    "reports": ["agreement", "compare", "corrected_rate", "judge_card", "pass_at_k", "summarize", "wide"],
    "ablation": ["ablate"],
    "probing": ["probe"],
    "exporting": ["manifest", "read_csv", "read_runs", "to_csv"],
    "html": ["report", "transcript"],
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
_SUBMODULES = (
    *("agents", "attacks", "errors", "evaluators", "exporting", "html", "interop"),
    *("plots", "preparing", "reports", "servers", "stats", "testing"),
)

__version__ = "0.1.0"
__all__ = sorted([*_HOME, *_SUBMODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    elif name in _SUBMODULES:
        value = importlib.import_module(f".{name}", __name__)
    else:
        from .errors import did_you_mean

        raise AttributeError(f"module 'mcpeval' has no attribute {name!r}. {did_you_mean(name, __all__)}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


if TYPE_CHECKING:  # so that editors and type checkers see the lazily loaded names
    from .ablation import ablate as ablate
    from .agents import Agent as Agent
    from .benchmarks import read_benchmark as read_benchmark
    from .caching import Cache as Cache
    from .evaluators import Cascade as Cascade
    from .evaluators import Judge as Judge
    from .evaluators import Jury as Jury
    from .evaluators import Pairwise as Pairwise
    from .evaluators import Scale as Scale
    from .evaluators import evaluator as evaluator
    from .evaluators import rule as rule
    from .evaluators import tool_call as tool_call
    from .evaluators import tool_calls as tool_calls
    from .exporting import manifest as manifest
    from .exporting import read_csv as read_csv
    from .exporting import read_runs as read_runs
    from .exporting import to_csv as to_csv
    from .html import report as report
    from .html import transcript as transcript
    from .local import default_model as default_model
    from .probing import probe as probe
    from .reports import agreement as agreement
    from .reports import compare as compare
    from .reports import corrected_rate as corrected_rate
    from .reports import judge_card as judge_card
    from .reports import pass_at_k as pass_at_k
    from .reports import summarize as summarize
    from .reports import wide as wide
    from .running import run as run
    from .scoring import score as score
    from .tasks import read_tasks as read_tasks
    from .tracing import spans as spans
    from .trajectories import tool_metrics as tool_metrics
    from .types import Run as Run
    from .types import Score as Score
    from .types import Task as Task
    from .types import ToolCall as ToolCall
    from .types import Usage as Usage
