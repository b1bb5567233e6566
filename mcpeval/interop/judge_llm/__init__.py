"""judge-llm: its custom evaluators, its built-in ones, its configurations.

`run_config` runs a configuration; `register_evaluator`, `register_provider` and `register_reporter` give
classes the names that it may use. Evaluators of both its signatures are evaluators for
`mcpeval.score` as they are. The package itself need not be installed.
"""

from __future__ import annotations

import importlib
from typing import Any

# Loaded when first used: an evaluator of that signature needs no runner, and no reporter.
_HOMES = {
    "builtins": ["BUILT_INS", "built_in"],
    "cases": ["read_cases"],
    "config": ["is_config", "read_config"],
    "custom": ["BaseProvider", "BaseReporter", "register_evaluator", "register_provider", "register_reporter"],
    "records": ["EvalCase", "EvaluationResult", "EvaluatorResult", "ProviderResult"],
    "runner": ["Evaluated", "run_config"],
    "signatures": ["BaseEvaluator"],
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return __all__
