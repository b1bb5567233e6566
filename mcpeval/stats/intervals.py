"""Intervals of a rate and of a mean, over tasks."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

#: Interval of what there is too little of.
UNKNOWN = (float("nan"), float("nan"))


def wilson(successes: float, n: float, *, ci: float = 0.95) -> tuple[float, float]:
    """The Wilson score interval of a rate.

    Parameters
    ----------
    successes, n : float
        How many of how many independent trials passed. They need not be whole numbers: an
        effective sample size seldom is.
    ci : float
        Confidence, between 0 and 1.

    Returns
    -------
    low, high : float
        Within [0, 1]; NaN where `n` is 0.

    References
    ----------
    Wilson (1927), JASA 22, 209-212. Method 3 of Newcombe (1998), Statistics in Medicine 17, 857-872.

    Examples
    --------
    >>> low, high = wilson(81, 263)  # Newcombe's first example
    >>> f"{low:.4f} to {high:.4f}"
    '0.2553 to 0.3662'
    """
    if n <= 0:
        return UNKNOWN
    z = NormalDist().inv_cdf((1 + ci) / 2)
    rate = successes / n
    centre = rate + z * z / (2 * n)
    half = z * (rate * (1 - rate) / n + z * z / (4 * n * n)) ** 0.5
    scale = 1 + z * z / n
    low = 0.0 if rate <= 0 else max(0.0, (centre - half) / scale)
    high = 1.0 if rate >= 1 else min(1.0, (centre + half) / scale)
    return low, high


def clustered(means: ArrayLike, n: int, *, ci: float = 0.95) -> tuple[float, float]:
    """The interval of a pass rate when tasks were tried more than once.

    The rate is the mean of the tasks' own rates. Its variance between tasks says how many
    independent trials would have been as informative (the effective sample size of Korn and
    Graubard, with their correction for the degrees of freedom, and never more than there were);
    the interval is Wilson's at that size. Where every trial passed, or none did, the trials of a
    task cannot be told from copies of one, and the size is the number of tasks.

    Parameters
    ----------
    means : array-like, shape (tasks,)
        Pass rate of each task.
    n : int
        Trials of all tasks together.
    ci : float

    Returns
    -------
    low, high : float
        NaN where there are fewer than two tasks.

    Notes
    -----
    Coverage of a 95 % interval, simulated for 2 to 8 trials per task whose rates are from .1 to .9
    and whose trials are correlated by 0 to .9: on the average over the rates 94.5 to 97 % from 20
    tasks on, 93.5 to 97.5 % with 10. A single rate near 0 or 1 can be covered less often: with 10
    tasks, 8 trials and a correlation of .6 a rate of .1 is in 88 %.

    References
    ----------
    Korn & Graubard (1998), Survey Methodology 24, 193-201. With Wilson's interval in the place of
    Clopper-Pearson's: Franco, Little, Louis & Slud (2019), J. Survey Statistics and Methodology 7,
    334-364.
    """
    means = np.asarray(means, dtype=float)
    tasks = len(means)
    if tasks < 2:
        return UNKNOWN
    rate = float(means.mean())
    size = effective_size(means, n, ci=ci)
    return wilson(rate * size, size, ci=ci)


def effective_size(means: ArrayLike, n: int, *, ci: float = 0.95) -> float:
    """How many independent trials would have been as informative as `n` trials of several tasks.

    Parameters
    ----------
    means : array-like, shape (tasks,)
        Pass rate of each task.
    n : int
        Trials of all tasks together.
    ci : float
        Of the interval in which the size is used: its correction for few tasks depends on it.

    Returns
    -------
    float
        At most `n`; the number of tasks where every trial passed, or none did, and where there is
        one trial for each.
    """
    means = np.asarray(means, dtype=float)
    rate = float(means.mean())
    if rate in (0.0, 1.0) or n == len(means):
        return float(len(means))
    if len(means) < 2:
        return 1.0
    from scipy.special import stdtrit

    variance = means.var(ddof=1) / len(means)
    if variance <= 0:
        return n
    quantile = (1 + ci) / 2
    freedom = (stdtrit(n - 1, quantile) / stdtrit(len(means) - 1, quantile)) ** 2
    return float(min(rate * (1 - rate) / variance * freedom, n))


def t_interval(means: ArrayLike, *, ci: float = 0.95, bounded: bool = True) -> tuple[float, float]:
    """Student's t interval of the mean of a graded score, over tasks, cut to [0, 1].

    Where all tasks have the same mean, their spread is not known to be nothing: the variance of
    anything between 0 and 1 is at most that of a rate of the same mean, so Wilson's interval for
    one trial per task is given, which is as wide as it can be.

    Parameters
    ----------
    means : array-like, shape (tasks,)
        Mean score of each task, in [0, 1].
    ci : float
    bounded : bool
        False for means of any size (seconds, tokens): nothing is cut, and where all are the same
        there is no interval.

    Returns
    -------
    low, high : float
        NaN where there are fewer than two tasks.
    """
    means = np.asarray(means, dtype=float)
    if len(means) < 2:
        return UNKNOWN
    if constant(means):
        return wilson(float(means.sum()), len(means), ci=ci) if bounded else UNKNOWN
    from scipy.special import stdtrit

    centre = float(means.mean())
    half = float(stdtrit(len(means) - 1, (1 + ci) / 2) * means.std(ddof=1) / len(means) ** 0.5)
    return (max(0.0, centre - half), min(1.0, centre + half)) if bounded else (centre - half, centre + half)


def bca(
    means: ArrayLike, *, ci: float = 0.95, resamples: int = 9999, seed: int = 0, bounded: bool = True
) -> tuple[float, float]:
    """The bias-corrected and accelerated bootstrap interval of a mean, over tasks.

    Parameters
    ----------
    means : array-like, shape (tasks,)
        Mean score of each task, in [0, 1]; tasks are what is resampled.
    ci : float
    resamples : int
    seed : int
        The same seed gives the same interval.
    bounded : bool
        As for `t_interval`.

    Returns
    -------
    low, high : float
        NaN where there are fewer than two tasks; as `t_interval` where all means are the same.

    References
    ----------
    Efron (1987), JASA 82, 171-185, as in `scipy.stats.bootstrap`.
    """
    means = np.asarray(means, dtype=float)
    if len(means) < 2 or constant(means):
        return t_interval(means, ci=ci, bounded=bounded)
    from scipy.stats import bootstrap

    found = bootstrap(
        (means,),
        np.mean,
        confidence_level=ci,
        n_resamples=resamples,
        batch=max(1, 2_000_000 // len(means)),  # 16 MB at a time, however many tasks there are
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(found.low), float(found.high)


def constant(means: np.ndarray) -> bool:
    """Whether all of `means`, shape (tasks,), are the same."""
    return float(np.ptp(means)) <= 1e-12 * max(1.0, float(np.abs(means).max()))
