"""Intervals, tests and estimates: arrays in, numbers out.  Nothing here knows of frames.

What is drawn from a population is the *task*; trials of one task are not independent of each
other.  So a rate with one trial per task gets a Wilson interval, a rate with repeated trials a
clustered one, any other mean an interval over the means of the tasks, and a difference one over
the differences within tasks.
"""

from .assignments import assignment
from .intervals import UNKNOWN, bca, clustered, constant, t_interval, wilson
from .paired import adjusted, detectable, difference_interval, mcnemar, sign_flip, tango
from .raters import LEVELS, agreement_measures, krippendorff, resampled_measures
from .trials import all_of_k, any_of_k, pass_at_k, pass_hat_k

__all__ = [
    "LEVELS",
    "UNKNOWN",
    "adjusted",
    "agreement_measures",
    "all_of_k",
    "any_of_k",
    "assignment",
    "bca",
    "clustered",
    "constant",
    "detectable",
    "difference_interval",
    "krippendorff",
    "mcnemar",
    "pass_at_k",
    "pass_hat_k",
    "resampled_measures",
    "sign_flip",
    "t_interval",
    "tango",
    "wilson",
]
