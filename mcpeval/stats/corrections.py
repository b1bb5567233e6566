"""What a judge's verdicts say of the rate that people would have found.

`power_tuned` where people labelled a random part of the runs, `rogan_gladen` where the judge's
errors are known from other runs.
"""

from __future__ import annotations

from math import log
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .intervals import UNKNOWN, wilson


class PowerTuned(NamedTuple):
    """The rate, its interval, and what the verdicts added to the labels."""

    rate: float
    low: float
    high: float
    weight: float  # of the verdicts: 0 leaves them out
    rho: float  # correlation of verdicts and labels
    gain: float  # labels alone would have had to be so many times as many


def power_tuned(
    labels: ArrayLike, verdicts: ArrayLike, tasks: ArrayLike, weights: ArrayLike | None = None, *, ci: float = 0.95
) -> PowerTuned:
    """The mean label of all runs, of which a random part has labels: PPI++.

    The mean of the labels, moved by how much the verdicts of all runs differ from those of the
    labelled ones, times a weight that makes the variance smallest. A judge that knows nothing gets
    a weight near 0 and does no harm. The interval is symmetric on the scale of logits, with
    Student's quantile for the number of labelled tasks; what a task contributes is added up before
    it is squared, so that runs of one task need not be independent.

    Parameters
    ----------
    labels : array-like of float, shape (runs,)
        Between 0 and 1; NaN for a run without one.
    verdicts : array-like of float, shape (runs,)
        Without NaN.
    tasks : array-like of int, shape (runs,)
    weights : array-like of float, shape (runs,), optional
        What each run counts for.
    ci : float

    Returns
    -------
    PowerTuned
        Where the labels are all the same, or the estimate leaves [0, 1], its interval is Wilson's for
        the labelled tasks alone. NaN where fewer than two tasks have labels.

    References
    ----------
    Angelopoulos, Duchi & Zrnic (2023), PPI++, arXiv 2311.01453, tuned for the mean: with n
    labelled of n + N runs their weight is ours times N / (n + N), for the verdicts of the others.
    """
    labels, verdicts = np.asarray(labels, dtype=float), np.asarray(verdicts, dtype=float)
    _, codes = np.unique(np.asarray(tasks), return_inverse=True)
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=float)
    known = ~np.isnan(labels)
    units = len(np.unique(codes[known]))
    if not known.any():
        return PowerTuned(*[float("nan")] * 6)
    share, part = weights / weights.sum(), np.where(known, weights, 0.0) / weights[known].sum()
    y = np.where(known, labels, 0.0)
    mean_y, mean_known, mean_all = float(part @ y), float(part @ verdicts), float(share @ verdicts)
    off_y, off_known, off_all = np.where(known, y - mean_y, 0.0), verdicts - mean_known, verdicts - mean_all
    spread, covariance = float(share @ off_all**2), float(part @ (off_y * off_known))
    of_y, of_known = float(part @ off_y**2), float(part @ off_known**2)
    weight = covariance / spread if spread > 1e-12 else 0.0
    rho = covariance / (of_y * of_known) ** 0.5 if of_y > 1e-12 and of_known > 1e-12 else float("nan")
    rate = mean_y + weight * (mean_all - mean_known)
    if units < 2:
        return PowerTuned(rate, *UNKNOWN, weight, rho, float("nan"))
    alone = _of_tasks(part * off_y, codes, units)
    variance = _of_tasks(part * (off_y - weight * off_known) + share * weight * off_all, codes, units)
    if not 0.0 < rate < 1.0 or variance <= 1e-12:
        rate = min(1.0, max(0.0, rate))
        return PowerTuned(rate, *wilson(rate * units, units, ci=ci), weight, rho, 1.0)
    return PowerTuned(rate, *_logit(rate, variance, units - 1, ci), weight, rho, alone / variance)


def _of_tasks(influence: np.ndarray, codes: np.ndarray, units: int) -> float:
    """The variance of a sum of what each run contributes; runs of a task are added up first."""
    return float((np.bincount(codes, influence) ** 2).sum()) * units / (units - 1)


def _logit(rate: float, variance: float, freedom: int, ci: float) -> tuple[float, float]:
    from scipy.special import expit, stdtrit

    half = float(stdtrit(freedom, (1 + ci) / 2)) * variance**0.5 / (rate * (1 - rate))
    centre = log(rate / (1 - rate))
    return float(expit(centre - half)), float(expit(centre + half))


def rogan_gladen(
    passed: float, sensitivity: float, specificity: float, sizes: tuple[float, float, float], *, ci: float = 0.95
) -> tuple[float, float, float, float]:
    """The true pass rate behind a judge's, with the uncertainty of what is known of its errors.

    Parameters
    ----------
    passed : float
        Share of the runs that the judge passes.
    sensitivity, specificity : float
        Share of the good runs that it passes, and of the bad ones that it does not.
    sizes : (float, float, float)
        How many independent runs each of the three rests on.
    ci : float

    Returns
    -------
    rate, low, high, variance : float
        Cut to [0, 1]; the variance is that of the uncut rate.

    References
    ----------
    Rogan & Gladen (1978), American J. Epidemiology 107, 71-76. The interval: Lee, Zeng, Jeong, Sohn
    & Lee (2025), How to Correctly Report LLM-as-a-Judge Evaluations, arXiv 2511.21140, after Lang &
    Reiczigel (2014), Preventive Veterinary Medicine 113, 13-22: each share is drawn a little to one
    half, and the centre moved by what that costs.
    """
    z = NormalDist().inv_cdf((1 + ci) / 2)
    tests, good, bad = sizes
    informed = sensitivity + specificity - 1
    rate = (passed + specificity - 1) / informed
    variance = (
        passed * (1 - passed) / tests
        + (1 - rate) ** 2 * specificity * (1 - specificity) / bad
        + rate**2 * sensitivity * (1 - sensitivity) / good
    ) / informed**2
    p = (tests * passed + z * z / 2) / (tests + z * z)
    of_good, of_bad = (good * sensitivity + 1) / (good + 2), (bad * specificity + 1) / (bad + 2)
    spread_good, spread_bad = of_good * (1 - of_good) / (good + 2), of_bad * (1 - of_bad) / (bad + 2)
    informed = of_good + of_bad - 1
    drawn = (p + of_bad - 1) / informed
    centre = drawn + 2 * z * z * (drawn * spread_good - (1 - drawn) * spread_bad)
    half = (p * (1 - p) / (tests + z * z) + (1 - drawn) ** 2 * spread_bad + drawn**2 * spread_good) ** 0.5
    half *= z / abs(informed)
    low, high, rate = (min(1.0, max(0.0, end)) for end in (centre - half, centre + half, rate))
    return rate, low, high, variance


def informedness(
    sensitivity: float, specificity: float, of_sensitivity: tuple[float, float], of_specificity: tuple[float, float]
) -> tuple[float, float]:
    """The interval of sensitivity + specificity - 1 from the intervals of the two.

    References
    ----------
    Newcombe (1998), Statistics in Medicine 17, 873-890, method 10, for a difference of two rates;
    Zou & Donner (2008), Statistics in Medicine 27, 1693-1702.
    """
    value = sensitivity + specificity - 1
    below = (sensitivity - of_sensitivity[0]) ** 2 + (specificity - of_specificity[0]) ** 2
    above = (of_sensitivity[1] - sensitivity) ** 2 + (of_specificity[1] - specificity) ** 2
    return value - below**0.5, value + above**0.5


def half_width(labels: int, rate: float, rho: float, runs: float | None = None, *, ci: float = 0.95) -> float:
    """Half of the width that `power_tuned` gives, on the scale of rates.

    Parameters
    ----------
    labels : int
        Labelled runs, each of a task of its own.
    rate, rho : float
        The true rate, and the correlation of verdicts and labels.
    runs : float, optional
        All runs, labelled or not; by default so many more than labels that it does not matter.
    ci : float
    """
    from scipy.special import stdtrit

    rest = 1.0 if runs is None else 1.0 - labels / runs
    variance = rate * (1 - rate) / labels * (1 - rho**2 * rest)
    return float(stdtrit(labels - 1, (1 + ci) / 2)) * variance**0.5
