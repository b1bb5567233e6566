"""Figures of the frames; each function returns the Axes it drew on.

A figure is as wide as one column of a paper, its colours can be told apart by readers who are
colour-blind, and an agent keeps its colour in all figures of a session. It is ready to be printed:
``plots.success(scores).figure.savefig("success.pdf")``. An Axes that is given as ``ax`` gets the same sizes of
type; as wide as a column it looks the same, so that figures can stand beside each other.

Parts: paper (what all share) | rates (how often agents succeed) | forests (who is better) | curves
(more trials, more tasks) | prices (what success costs) | traces (tokens, steps, tools) | shares (how
verdicts and errors are divided) | raters (who agrees with whom) | calibration (a judge against labels)
| cards (a judge on one page) | ablations (levels of factors, and what moves a judge).
"""

from .ablations import ablation, effects, grid
from .calibration import length, reliability
from .cards import judge_card
from .curves import passes, power
from .forests import differences
from .paper import WIDTH, colours
from .prices import cost
from .raters import agreement_matrix
from .rates import success
from .shares import distribution, error_classes
from .traces import tool_use, usage

__all__ = [
    "WIDTH",
    "ablation",
    "agreement_matrix",
    "colours",
    "cost",
    "differences",
    "distribution",
    "effects",
    "error_classes",
    "grid",
    "judge_card",
    "length",
    "passes",
    "power",
    "reliability",
    "success",
    "tool_use",
    "usage",
]
