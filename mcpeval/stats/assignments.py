"""One-to-one assignments of one list to another."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def assignment(weights: ArrayLike) -> np.ndarray:
    """The one-to-one assignment of rows to columns with the largest sum of weights.

    Parameters
    ----------
    weights : array-like, shape (rows, columns)

    Returns
    -------
    ndarray of int, shape (rows,)
        The column of each row; -1 for a row without one, where there are fewer columns.

    References
    ----------
    `scipy.optimize.linear_sum_assignment`: Crouse (2016), IEEE Trans. Aerospace and Electronic
    Systems 52, 1679-1696.

    Examples
    --------
    >>> assignment([[2, 1], [2, 0]]).tolist()  # taking each row's best in turn gives 2, this 3
    [1, 0]
    """
    from scipy.optimize import linear_sum_assignment

    weights = np.asarray(weights, dtype=float)
    found = np.full(len(weights), -1)
    rows, columns = linear_sum_assignment(weights, maximize=True)
    found[rows] = columns
    return found
