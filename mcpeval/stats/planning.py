"""Before anything is paid for: how many tasks show a difference, and which difference they show.

All is two-sided at the level 1 - `ci`, and a finding in the wrong direction is no finding.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def mcnemar_power(tasks: int, difference: float, discordant: float, *, ci: float = 0.95) -> float:
    """The chance that McNemar's exact test shows a difference of two pass rates.

    Parameters
    ----------
    tasks : int
    difference : float
        True difference of the pass rates.
    discordant : float
        True share of the tasks that only one of the two passes.
    ci : float

    Returns
    -------
    float
        The mean over how many of the tasks may be discordant.

    References
    ----------
    Duffy (1984), Asymptotic and Exact Power for the McNemar Test and its Analogue with R Controls per
    Case, Biometrics 40, 1005-1015.
    """
    from scipy.stats import binom

    pairs = np.arange(tasks + 1)
    # The most pairs that may speak against the finding: twice their binomial tail is within the level.
    most = binom.ppf((1 - ci) / 2, pairs, 0.5)
    most -= binom.cdf(most, pairs, 0.5) > (1 - ci) / 2 * (1 + 1e-12)
    better = (1 + abs(difference) / discordant) / 2 if discordant else 0.5
    found = np.where(most >= 0, binom.cdf(most, pairs, 1 - better), 0.0)
    return float(binom.pmf(pairs, tasks, discordant) @ found)


def t_power(tasks: int, effect: float, *, ci: float = 0.95) -> float:
    """The chance that the paired t test shows a mean difference of `effect` standard deviations.

    References
    ----------
    Cohen (1988), Statistical Power Analysis for the Behavioral Sciences, chapter 2, as in
    `statsmodels.stats.power.ttest_power`.
    """
    from statsmodels.stats.power import ttest_power

    return float(ttest_power(abs(effect), tasks, (1 - ci) / 2, alternative="larger"))


def smallest(reached: Callable[[int], bool], start: int, limit: int) -> int | None:
    """The smallest whole number from which on `reached` holds; None where it does not up to `limit`."""
    high = start
    while not reached(high):
        if high >= limit:
            return None
        high = min(2 * high, limit)
    low = max(start, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle + 1, high)
    return high
