"""Figures of scores frames; each function returns the Axes it drew on.

A figure is as wide as one column of a paper, its colours can be told apart by readers who are
colour-blind, and an agent keeps its colour in all figures of a session.

Parts: paper (what all share) | rates (how often agents succeed).
"""

from .paper import WIDTH, colours
from .rates import success

__all__ = ["WIDTH", "colours", "success"]
