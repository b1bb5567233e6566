"""Where the variance of scores comes from."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike


def variance_components(values: ArrayLike, factors: Mapping[str, ArrayLike]) -> dict[str, float]:
    """The variance that each factor brings in, by the method of moments.

    Parameters
    ----------
    values : array-like, shape (rows,)
        Without NaN.
    factors : mapping of str to array-like of int, shape (rows,)
        The level of each factor in each row, as numbers. A factor that is nested in another, or the
        interaction of two, has a number for each combination. What is left within the levels of all
        of them is the ``residual``.

    Returns
    -------
    dict of str to float
        The factors and ``residual``, as they come out: of a component that is near 0 the unbiased
        estimate may be negative. NaN throughout where the rows cannot tell two of them apart.

    References
    ----------
    Henderson (1953), Biometrics 9, 226-252, method 1: the sums of squares of analysis of variance
    are set to their expectations, whatever the numbers of rows. With equal numbers these are the
    estimates of any textbook of analysis of variance.
    """
    values = np.asarray(values, dtype=float)
    values = values - values.mean()  # the sums of squares below do not depend on it, their rounding does
    rows = len(values)
    codes = {name: np.unique(np.asarray(levels), return_inverse=True)[1].ravel() for name, levels in factors.items()}
    whole, each = np.zeros(rows, dtype=np.int64), np.arange(rows)
    groupings = [*codes.values(), each]
    components = [*codes.values(), each]
    base = [_expected(whole, component) for component in components]
    system = [[_expected(group, component) - least for component, least in zip(components, base)]
              for group in groupings]  # fmt: skip
    sums = [_between(values, group) - _between(values, whole) for group in groupings]
    names = [*codes, "residual"]
    if np.linalg.matrix_rank(system) < len(names):
        return dict.fromkeys(names, float("nan"))
    return dict(zip(names, np.linalg.solve(system, sums).tolist()))


def _between(values: np.ndarray, group: np.ndarray) -> float:
    """The uncorrected sum of squares between the groups."""
    return float((np.bincount(group, values) ** 2 / np.bincount(group)).sum())


def _expected(group: np.ndarray, component: np.ndarray) -> float:
    """How often the variance of `component` is in the expectation of the sum of squares between groups."""
    pairs, counts = np.unique(np.stack([group, component]), axis=1, return_counts=True)
    return float((counts**2 / np.bincount(group)[pairs[0]]).sum())
