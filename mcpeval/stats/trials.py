"""What repeated trials of a task say: pass@k and pass^k."""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import ArrayLike


def pass_at_k(passed: ArrayLike, trials: ArrayLike, k: int) -> float:
    """pass@k: the chance that at least one of `k` trials of a task passes, averaged over tasks.

    Parameters
    ----------
    passed, trials : array-like of int, shape (tasks,)
        How many of how many trials of each task passed.
    k : int

    Returns
    -------
    float
        The mean over tasks of 1 - C(trials - passed, k) / C(trials, k), which is unbiased; NaN where
        there are no tasks, or one has fewer than `k` trials.

    References
    ----------
    Chen and others (2021), Evaluating Large Language Models Trained on Code, arXiv 2107.03374,
    equation 1.

    Examples
    --------
    >>> pass_at_k([1, 0], [4, 4], 2)
    0.25
    """
    return _mean(any_of_k(passed, trials, k))


def pass_hat_k(passed: ArrayLike, trials: ArrayLike, k: int) -> float:
    """pass^k: the chance that all of `k` trials of a task pass, averaged over tasks.

    Parameters
    ----------
    passed, trials : array-like of int, shape (tasks,)
        How many of how many trials of each task passed.
    k : int

    Returns
    -------
    float
        The mean over tasks of C(passed, k) / C(trials, k), which is unbiased; NaN where there are no
        tasks, or one has fewer than `k` trials.

    References
    ----------
    Yao, Shinn, Razavi & Narasimhan (2024), tau-bench, arXiv 2406.12045.

    Examples
    --------
    >>> pass_hat_k([4, 2], [4, 4], 2)
    0.5833333333333334
    """
    return _mean(all_of_k(passed, trials, k))


def any_of_k(passed: ArrayLike, trials: ArrayLike, k: int) -> np.ndarray:
    """Each task's own pass@k, shape (tasks,); NaN where it has fewer than `k` trials."""
    failed = np.asarray(trials) - np.asarray(passed)
    return 1.0 - all_of_k(failed, trials, k)


def all_of_k(passed: ArrayLike, trials: ArrayLike, k: int) -> np.ndarray:
    """Each task's own pass^k, shape (tasks,); NaN where it has fewer than `k` trials."""
    pairs = zip(np.asarray(passed).tolist(), np.asarray(trials).tolist(), strict=True)
    return np.array([comb(int(c), k) / comb(int(n), k) if n >= k else np.nan for c, n in pairs])


def _mean(rates: np.ndarray) -> float:
    return float(rates.mean()) if len(rates) else float("nan")
