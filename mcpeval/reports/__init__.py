"""From the long scores frame to tables that can be printed.

`summarize` gives one line per group, `compare` one per pair of agents, `pass_at_k` one per number of
trials, `agreement` one per judge; `wide` gives one row per run;
`benchmark_table` is the table of a benchmark's paper.

`preferences`, `each_order` and `rank` read comparisons of two at a time; `jury` puts recorded verdicts
together; `stages` and `audit` look into cascades.

`judge_card` says all that is known of a judge, `corrected_rate` what people would have found,
`variance_components` where scores differ, and `power` and `labels_needed` what has to be paid for.
"""

from .agreements import agreement
from .benchmarks import benchmark_table
from .cards import judge_card
from .comparisons import compare
from .components import variance_components
from .corrections import corrected_rate
from .pairs import each_order, preferences
from .panels import audit, jury, stages
from .planning import labels_needed, power
from .rankings import rank
from .repetitions import pass_at_k
from .summaries import summarize
from .tables import wide

__all__ = [
    "agreement",
    "audit",
    "benchmark_table",
    "compare",
    "corrected_rate",
    "each_order",
    "judge_card",
    "jury",
    "labels_needed",
    "pass_at_k",
    "power",
    "preferences",
    "rank",
    "stages",
    "summarize",
    "variance_components",
    "wide",
]
