"""Intervals, tests and estimates: arrays in, numbers out.  Nothing here knows of frames.

What is drawn from a population is the *task*; trials of one task are not independent of each
other.  So a rate with one trial per task gets a Wilson interval, a rate with repeated trials a
clustered one, any other mean an interval over the means of the tasks, and a difference one over
the differences within tasks.
"""

from .assignments import assignment
from .components import variance_components
from .corrections import PowerTuned, half_width, informedness, power_tuned, rogan_gladen
from .intervals import UNKNOWN, bca, clustered, constant, effective_size, t_interval, wilson
from .paired import adjusted, detectable, difference_interval, mcnemar, sign_flip, tango
from .planning import mcnemar_power, smallest, t_power
from .rankings import bradley_terry, comparable, resampled_strengths
from .raters import LEVELS, agreement_measures, krippendorff, resampled_measures
from .trials import all_of_k, any_of_k, pass_at_k, pass_hat_k

__all__ = [
    "LEVELS",
    "UNKNOWN",
    "PowerTuned",
    "adjusted",
    "agreement_measures",
    "all_of_k",
    "any_of_k",
    "assignment",
    "bca",
    "bradley_terry",
    "clustered",
    "comparable",
    "constant",
    "detectable",
    "difference_interval",
    "effective_size",
    "half_width",
    "informedness",
    "krippendorff",
    "mcnemar",
    "mcnemar_power",
    "pass_at_k",
    "pass_hat_k",
    "power_tuned",
    "resampled_measures",
    "resampled_strengths",
    "rogan_gladen",
    "sign_flip",
    "smallest",
    "t_interval",
    "t_power",
    "tango",
    "variance_components",
    "wilson",
]
