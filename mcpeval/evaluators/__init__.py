"""What can be said of a run: rules (chains), functions and judges, each an evaluator."""

from __future__ import annotations

from .adapting import as_evaluator, as_evaluators
from .base import Context, evaluate_row, required_columns, to_score, to_scores
from .cascades import Cascade
from .chains import FunctionResult, compare_func, eval_func
from .checklists import Checklist
from .embeddings import EmbeddingSimilarity
from .functions import evaluator
from .judges import Judge
from .limits import CostLimit, LatencyLimit
from .pairs import Pairwise
from .panels import Jury, panel
from .rubrics import Rubric
from .rules import Rule, missing_functions, rule, rules_of
from .scales import Scale
from .sequences import AgentChain, Trajectory
from .text import Contains, Excludes, JsonFormat, Length, Matches, Similarity
from .tool_use import assert_tool_calls, tool_call, tool_calls
from .verdicts import read_verdict

__all__ = [
    "AgentChain",
    "Cascade",
    "Checklist",
    "Contains",
    "Context",
    "CostLimit",
    "EmbeddingSimilarity",
    "Excludes",
    "FunctionResult",
    "JsonFormat",
    "Judge",
    "Jury",
    "LatencyLimit",
    "Length",
    "Matches",
    "Pairwise",
    "Rubric",
    "Rule",
    "Scale",
    "Similarity",
    "Trajectory",
    "as_evaluator",
    "as_evaluators",
    "assert_tool_calls",
    "compare_func",
    "eval_func",
    "evaluate_row",
    "evaluator",
    "missing_functions",
    "panel",
    "read_verdict",
    "required_columns",
    "rule",
    "rules_of",
    "to_score",
    "to_scores",
    "tool_call",
    "tool_calls",
]
