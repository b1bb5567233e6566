"""Agreement of raters: the usual coefficients, for the sample as it is and for resamples of its tasks.

Two raters' verdicts are looked at as distinct pairs and how often each occurs, so that one
resample of the tasks is one vector of counts, and all resamples are one matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

#: Levels of measurement: names, ranks, amounts.
LEVELS = ("nominal", "ordinal", "interval")
_BLOCK = 256  # distinct pairs looked at together against all others


def krippendorff(ratings: ArrayLike, *, level: str = "nominal") -> float:
    """Krippendorff's alpha of any number of raters, some of whose ratings may be missing.

    Parameters
    ----------
    ratings : array-like of float, shape (units, raters)
        NaN where a rater did not rate a unit. Names have to be numbered first.
    level : {"nominal", "ordinal", "interval"}

    Returns
    -------
    float
        1 is agreement throughout, 0 what chance gives; NaN where fewer than two different values
        were given to units with at least two ratings.

    References
    ----------
    Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, University of Pennsylvania, as in
    the package krippendorff.
    """
    from krippendorff import alpha

    ratings = np.asarray(ratings, dtype=float)
    paired = ratings[(~np.isnan(ratings)).sum(1) >= 2]
    if len(np.unique(paired[~np.isnan(paired)])) < 2:
        return float("nan")
    return float(alpha(reliability_data=paired.T, level_of_measurement=level))


def agreement_measures(
    x: ArrayLike, y: ArrayLike, level: str, weights: ArrayLike | None = None
) -> dict[str, np.ndarray]:
    """How far the ratings `x` agree with the reference `y`.

    Parameters
    ----------
    x, y : array-like of float, shape (pairs,)
        Names have to be numbered first, truth values as 0 and 1.
    level : {"nominal", "ordinal", "interval"}
        What the numbers may be used as.
    weights : array-like, shape (samples, pairs), optional
        How often each pair counts in each of several samples; by default one sample, each pair once.

    Returns
    -------
    dict of str to ndarray of float, shape (samples,)
        ``alpha``, ``majority`` (share of the reference's commonest value) and ``bias`` (mean of `x`
        less that of `y`) of all; below "interval" ``accuracy``, ``kappa`` (Cohen's),
        ``balanced_accuracy`` (mean over the reference's values of the share found); of "ordinal"
        ``kappa_linear`` and ``kappa_quadratic`` too, whose weights are the distance of the numbers;
        above "nominal" ``spearman``, ``kendall`` (tau-b) and ``pearson``; of "nominal" with values 0
        and 1 ``sensitivity`` and ``specificity``. NaN where one is not defined, as kappa where
        both raters gave one and the same value throughout.

    References
    ----------
    Cohen (1960), Educational and Psychological Measurement 20, 37-46; Cohen (1968), Psychological
    Bulletin 70, 213-220. Brodersen and others (2010), ICPR, 3121-3124: balanced accuracy. Kendall
    (1945), Biometrika 33, 239-251: tau-b.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    weights = np.ones((1, len(x))) if weights is None else np.asarray(weights, dtype=float)
    values, codes = np.unique(np.concatenate([x, y]), return_inverse=True)
    first, second = codes[: len(x)], codes[len(x) :]
    total = weights.sum(1)
    of_x, of_y = _sums(weights, first, len(values)), _sums(weights, second, len(values))
    with np.errstate(divide="ignore", invalid="ignore"):  # what is not defined is NaN
        found = {
            "alpha": _alpha(weights, values, first, second, of_x + of_y, level),
            "majority": of_y.max(1, initial=0) / total,
            "bias": weights @ (x - y) / total,
        }
        if level != "interval":
            found |= _of_names(weights, first, second, of_x, of_y)
        if level == "ordinal":
            found |= _weighted(weights, values, first, second, of_x, of_y)
        if level != "nominal":
            found |= _correlations(weights, x, y, first, second, of_x, of_y)
        elif set(values.tolist()) <= {0.0, 1.0}:
            found["sensitivity"] = weights @ ((x == 1) & (y == 1)) / (weights @ (y == 1))
            found["specificity"] = weights @ ((x == 0) & (y == 0)) / (weights @ (y == 0))
    return {name: np.where(np.isfinite(number), number, np.nan) for name, number in found.items()}


def _sums(weights: np.ndarray, codes: np.ndarray, size: int) -> np.ndarray:
    """How often each value occurs in each sample: shape (samples, size)."""
    return weights @ _table(np.arange(len(codes)), codes, (len(codes), size))


def _table(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> Any:
    """How often each row meets each column, as a sparse matrix: of amounts nearly all cells are empty."""
    from scipy.sparse import coo_array

    return coo_array((np.ones(len(rows)), (rows, columns)), shape=shape).tocsr()


def _alpha(
    weights: np.ndarray, values: np.ndarray, first: np.ndarray, second: np.ndarray, pooled: np.ndarray, level: str
) -> np.ndarray:
    n = pooled.sum(1)
    if level == "nominal":
        disagree = weights @ (first != second) / weights.sum(1)
        return 1 - disagree * n * (n - 1) / (n * n - (pooled**2).sum(1))
    # Both ranks and amounts have squared distances; the ranks are those of the sample itself.
    places = values[None, :] if level == "interval" else np.cumsum(pooled, 1) - pooled / 2
    apart = (weights * (places[:, first] - places[:, second]) ** 2).sum(1) / weights.sum(1)
    mean = (pooled * places).sum(1) / n
    spread = (pooled * (places - mean[:, None]) ** 2).sum(1)
    return 1 - apart * (n - 1) / (2 * spread)


def _of_names(
    weights: np.ndarray, first: np.ndarray, second: np.ndarray, of_x: np.ndarray, of_y: np.ndarray
) -> dict[str, np.ndarray]:
    total = weights.sum(1)
    hits = weights * (first == second)
    accuracy = hits.sum(1) / total
    chance = (of_x * of_y).sum(1) / total**2
    found = _sums(hits, second, of_y.shape[1])
    there = of_y > 0
    recalls = np.divide(found, of_y, out=np.zeros_like(of_y), where=there)
    return {
        "accuracy": accuracy,
        "kappa": (accuracy - chance) / (1 - chance),
        "balanced_accuracy": recalls.sum(1) / there.sum(1),
    }


def _weighted(
    weights: np.ndarray,
    values: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    of_x: np.ndarray,
    of_y: np.ndarray,
) -> dict[str, np.ndarray]:
    total = weights.sum(1)
    found = {}
    for name, power in (("kappa_linear", 1), ("kappa_quadratic", 2)):
        distances = np.abs(values[:, None] - values) ** power
        expected = ((of_x @ distances) * of_y).sum(1) / total
        found[name] = 1 - weights @ distances[first, second] / expected
    return found


def _correlations(
    weights: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    of_x: np.ndarray,
    of_y: np.ndarray,
) -> dict[str, np.ndarray]:
    ranks_x, ranks_y = ((np.cumsum(of, 1) - of / 2) for of in (of_x, of_y))
    return {
        "pearson": _pearson(weights, x[None, :], y[None, :]),
        "spearman": _pearson(weights, ranks_x[:, first], ranks_y[:, second]),
        "kendall": _kendall(weights, first, second, of_x, of_y),
    }


def _pearson(weights: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    total = weights.sum(1, keepdims=True)
    x = x - (weights * x).sum(1, keepdims=True) / total
    y = y - (weights * y).sum(1, keepdims=True) / total
    spread = (weights * x * x).sum(1) * (weights * y * y).sum(1)
    # What is left of equal numbers by rounding is no spread.
    spread = np.where(spread > 1e-24 * (1 + np.abs(x).max() * np.abs(y).max()), spread, np.nan)
    return (weights * x * y).sum(1) / np.sqrt(spread)


def _kendall(
    weights: np.ndarray, first: np.ndarray, second: np.ndarray, of_x: np.ndarray, of_y: np.ndarray
) -> np.ndarray:
    total = weights.sum(1)
    concordance = np.zeros(len(weights))
    # Half the digits are enough for counts and for places in an order, at twice the speed.
    counts, x, y = (each.astype(np.float32) for each in (weights, first, second))
    for start in range(0, len(x), _BLOCK):
        part = slice(start, start + _BLOCK)
        signs = np.sign(x[part, None] - x) * np.sign(y[part, None] - y)
        concordance += (weights[:, part] * (counts @ signs.T)).sum(1)
    untied = (total**2 - (of_x**2).sum(1)) * (total**2 - (of_y**2).sum(1))
    return concordance / np.sqrt(np.where(untied > 0, untied, np.nan))


def resampled_measures(
    x: ArrayLike, y: ArrayLike, level: str, clusters: ArrayLike, *, resamples: int = 2000, seed: int = 0
) -> dict[str, np.ndarray]:
    """`agreement_measures` of bootstrap samples of the tasks.

    Parameters
    ----------
    x, y : array-like of float, shape (rows,)
    level : {"nominal", "ordinal", "interval"}
    clusters : array-like of int, shape (rows,)
        The task of each row: a task is drawn with all of its rows.
    resamples : int
    seed : int

    Returns
    -------
    dict of str to ndarray of float, shape (resamples,)
    """
    rows = np.column_stack([np.asarray(x, dtype=float), np.asarray(y, dtype=float)])
    pairs, of_pair = np.unique(rows, axis=0, return_inverse=True)
    tasks, of_task = np.unique(np.asarray(clusters), return_inverse=True)
    table = _table(of_task, of_pair.ravel(), (len(tasks), len(pairs)))
    rng = np.random.default_rng(seed)
    parts = []
    step = max(1, 2_000_000 // max(len(tasks), len(pairs)))  # 16 MB at a time
    for start in range(0, resamples, step):
        drawn = rng.multinomial(len(tasks), np.full(len(tasks), 1 / len(tasks)), min(step, resamples - start))
        parts.append(agreement_measures(*pairs.T, level, drawn @ table))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
