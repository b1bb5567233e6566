"""From the long scores frame to tables that can be printed.

`summarize` gives one line per group, `compare` one per pair of agents, `pass_at_k` one per number of
trials, `agreement` one per judge; `wide` gives one row per run.
"""

from .agreements import agreement
from .comparisons import compare
from .repetitions import pass_at_k
from .summaries import summarize
from .tables import wide

__all__ = ["agreement", "compare", "pass_at_k", "summarize", "wide"]
