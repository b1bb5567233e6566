"""Differences between two agents that did the same tasks: intervals, tests, and what could be seen.

The unit is the task. A difference is that of a task's two values, candidate less baseline.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .intervals import UNKNOWN, constant, wilson

_RESAMPLES = 9999
_EXACT = 500_000  # different outcomes that are all looked at, which takes some milliseconds


def mcnemar(better: int, worse: int) -> float:
    """McNemar's exact test of two pass rates over the same tasks.

    Parameters
    ----------
    better, worse : int
        Discordant pairs: tasks that only the candidate passed, and that only the baseline passed.

    Returns
    -------
    float
        Two-sided p; 1 where no pair is discordant.

    References
    ----------
    McNemar (1947), Psychometrika 12, 153-157, with binomial probabilities (`scipy.stats.binomtest`).

    Examples
    --------
    >>> round(mcnemar(7, 1), 4)
    0.0703
    """
    from scipy.stats import binomtest

    return float(binomtest(better, better + worse).pvalue) if better + worse else 1.0


def sign_flip(differences: ArrayLike, *, resamples: int = _RESAMPLES, seed: int = 0) -> float:
    """The permutation test of a mean difference over tasks.

    If the two agents were alike, a task's difference would as well have had the other sign. All
    patterns of signs are accounted for where differences are of few sizes, as those of passes are,
    or tasks are few (up to 18 that differ); else `resamples` random ones.

    Parameters
    ----------
    differences : array-like, shape (tasks,)
    resamples : int
    seed : int
        The same seed gives the same p.

    Returns
    -------
    float
        Two-sided p: the share of patterns whose mean is at least as far from 0, where random ones
        are looked at with the observed one among them; NaN where there are no tasks.

    References
    ----------
    Fisher (1935), The Design of Experiments, section 21. Phipson & Smyth (2010), Statistical
    Applications in Genetics and Molecular Biology 9, 39: why the observed pattern is counted.
    """
    differences = np.asarray(differences, dtype=float)
    if not len(differences):
        return float("nan")
    # A task without a difference has none with the other sign either; and of tasks with the same
    # size of difference it does not matter which are flipped, only how many.
    moved = np.abs(differences[differences != 0])
    sizes, counts = np.unique(moved, return_counts=True)
    nearly = abs(differences.sum()) - 1e-9 * max(1.0, moved.sum())  # the same sum, rounded otherwise, is as far
    if np.log(counts + 1).sum() <= np.log(_EXACT):
        sums, chances = _all_sums(sizes, counts)
        return float(min(1.0, chances[np.abs(sums) >= nearly].sum()))
    rng = np.random.default_rng(seed)
    at_least = 0
    step = max(1, 2_000_000 // len(sizes))  # 16 MB at a time
    for start in range(0, resamples, step):
        flips = rng.binomial(counts, 0.5, (min(step, resamples - start), len(sizes)))
        at_least += int((np.abs((counts - 2 * flips) @ sizes) >= nearly).sum())
    return (at_least + 1) / (resamples + 1)


def _all_sums(sizes: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every sum of differences that flipped signs can give, and its chance; shape (sums,)."""
    from scipy.stats import binom

    sums, chances = np.zeros(1), np.ones(1)
    for size, count in zip(sizes, counts):
        flipped = np.arange(count + 1)
        sums = np.add.outer(sums, size * (count - 2 * flipped)).ravel()
        chances = np.multiply.outer(chances, binom.pmf(flipped, count, 0.5)).ravel()
    return sums, chances


def tango(better: int, worse: int, n: int, *, ci: float = 0.95) -> tuple[float, float]:
    """Tango's score interval of the difference of two pass rates over the same tasks.

    Parameters
    ----------
    better, worse : int
        Discordant pairs, as for `mcnemar`.
    n : int
        Tasks.
    ci : float

    Returns
    -------
    low, high : float
        Within [-1, 1]; NaN where `n` is 0.

    References
    ----------
    Tango (1998), Statistics in Medicine 17, 891-908. Recommended for its coverage by Fagerland,
    Lydersen & Laake (2014), Statistics in Medicine 33, 2850-2875.

    Examples
    --------
    >>> low, high = tango(1, 7, 21)  # Fagerland and others, table I
    >>> f"{low:.3f} to {high:.3f}"
    '-0.517 to -0.026'
    """
    if n <= 0:
        return UNKNOWN
    from scipy.optimize import brentq
    from scipy.special import ndtri

    z = float(ndtri((1 + ci) / 2))
    difference = (better - worse) / n

    def excess(assumed: float) -> float:
        # The rate of tasks that only the baseline passes, most likely under the assumed difference.
        linear = -better - worse + (2 * n - better + worse) * assumed
        root = max(0.0, linear * linear + 8 * n * worse * assumed * (1 - assumed))
        rate = (root**0.5 - linear) / (4 * n)
        variance = max(0.0, n * (2 * rate + assumed * (1 - assumed)))
        # Squares on both sides of (difference - assumed) n = z sqrt(variance), so that nothing is divided by 0.
        return (difference - assumed) ** 2 * n * n - z * z * variance

    # Without discordant pairs the difference itself solves the equation as well, and is not meant.
    low = -1.0 if worse == n else brentq(excess, -1.0, difference - 1e-9, xtol=1e-12)
    high = 1.0 if better == n else brentq(excess, difference + 1e-9, 1.0, xtol=1e-12)
    return float(low), float(high)


def difference_interval(
    differences: ArrayLike, *, ci: float = 0.95, bounds: tuple[float, float] | None = (-1.0, 1.0)
) -> tuple[float, float]:
    """Student's t interval of a mean difference over tasks, cut to `bounds`.

    Where all tasks have the same difference, their spread is not known to be nothing: up to the
    share of tasks that Wilson's interval allows where none of `n` was seen may differ otherwise, as
    far as `bounds` let them. Without bounds there is then no interval.

    Parameters
    ----------
    differences : array-like, shape (tasks,)
    ci : float
    bounds : (float, float), optional
        Between which a task's difference must lie.

    Returns
    -------
    low, high : float
        NaN where there are fewer than two tasks.
    """
    differences = np.asarray(differences, dtype=float)
    if len(differences) < 2:
        return UNKNOWN
    centre = float(differences.mean())
    if constant(differences):
        if bounds is None:
            return UNKNOWN
        _, others = wilson(0, len(differences), ci=ci)
        return centre + others * (bounds[0] - centre), centre + others * (bounds[1] - centre)
    from scipy.special import stdtrit

    half = float(stdtrit(len(differences) - 1, (1 + ci) / 2) * differences.std(ddof=1) / len(differences) ** 0.5)
    low, high = bounds or (-np.inf, np.inf)
    return max(low, centre - half), min(high, centre + half)


def detectable(differences: ArrayLike, *, power: float = 0.8, ci: float = 0.95) -> float:
    """The smallest true difference that as many tasks, spread as these are, would have shown.

    Parameters
    ----------
    differences : array-like, shape (tasks,)
    power : float
        Chance with which the paired t test would have found it.
    ci : float
        The test is at the level 1 - `ci`, for one comparison alone.

    Returns
    -------
    float
        In the unit of the differences; NaN where there are fewer than two tasks, or all differences
        are the same.

    References
    ----------
    Power of the t test by the noncentral t distribution: Cohen (1988), Statistical Power Analysis
    for the Behavioral Sciences, chapter 2. For evaluations: Miller (2024), arXiv 2411.00640.
    """
    differences = np.asarray(differences, dtype=float)
    tasks = len(differences)
    if tasks < 2 or constant(differences):
        return float("nan")
    from scipy.optimize import brentq
    from scipy.special import nctdtr, stdtrit

    bound = float(stdtrit(tasks - 1, (1 + ci) / 2))

    def excess(shift: float) -> float:  # a finding in the wrong direction is no finding
        return 1 - nctdtr(tasks - 1, shift, bound) - power

    highest = 1.0
    while excess(highest) < 0:
        highest *= 1.5
    shift = brentq(excess, 0.0, highest)
    return float(shift * differences.std(ddof=1) / tasks**0.5)


def adjusted(p: ArrayLike, method: str | None) -> np.ndarray:
    """p values adjusted for their number.

    Parameters
    ----------
    p : array-like, shape (tests,)
        NaN is no test: it stays, and is not counted.
    method : {"holm", "bh", None}
        "holm" bounds the chance of any false finding, "bh" the expected share of false ones.

    Returns
    -------
    ndarray, shape (tests,)

    References
    ----------
    Holm (1979), Scandinavian J. Statistics 6, 65-70. Benjamini & Hochberg (1995), JRSS B 57,
    289-300, as in `scipy.stats.false_discovery_control`.
    """
    p = np.array(p, dtype=float)
    known = np.flatnonzero(~np.isnan(p))
    if method is None or not len(known):
        return p
    if method == "bh":
        from scipy.stats import false_discovery_control

        p[known] = false_discovery_control(p[known])
        return p
    order = known[np.argsort(p[known], kind="stable")]
    p[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)))
    return p
