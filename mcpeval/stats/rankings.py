"""Strengths from comparisons of two at a time: the model of Bradley and Terry."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

_RESAMPLES = 1000


def bradley_terry(wins: ArrayLike) -> np.ndarray:
    """The strengths under which the wins are the likeliest.

    i beats j with the log odds ``strength[i] - strength[j]``. A tie is half a win of either.

    Parameters
    ----------
    wins : array-like, shape (players, players)
        How often the player of the row beat that of the column; any number that is not negative.

    Returns
    -------
    ndarray of float, shape (players,)
        On the scale of log odds, with mean 0; all NaN where there are no such strengths
        (`comparable`).

    References
    ----------
    Bradley & Terry (1952), Biometrika 39, 324-345. Solved as in Newman (2023), JMLR 24(238), by the
    package evalica.

    Examples
    --------
    >>> strengths = bradley_terry([[0, 30], [10, 0]])
    >>> round(float(strengths[0] - strengths[1]), 4)  # log(30 / 10)
    1.0986
    """
    wins = np.asarray(wins, dtype=float)
    if not comparable(wins):
        return np.full(len(wins), np.nan)
    import evalica

    winners, losers = np.nonzero(wins)
    found = evalica.bradley_terry(
        winners.tolist(),
        losers.tolist(),
        [evalica.Winner.X] * len(winners),
        weights=wins[winners, losers].tolist(),
        tolerance=1e-9,
        limit=10_000,
    )
    strengths = np.log(found.scores.sort_index().to_numpy())
    return strengths - strengths.mean()


def comparable(wins: np.ndarray) -> bool:
    """Whether there are strengths: everybody has beaten everybody, if only through others.

    Otherwise some have never lost to any of the rest, and would be infinitely stronger; or two groups
    have never met.

    References
    ----------
    Ford (1957), American Mathematical Monthly 64(8), 28-33.
    """
    return len(wins) > 1 and _groups(wins)[0] == 1


def _groups(wins: np.ndarray) -> tuple[int, np.ndarray]:
    """The number of groups within which strengths are comparable, and the group of each player."""
    from scipy.sparse.csgraph import connected_components

    return connected_components(wins > 0, directed=True, connection="strong")


def resampled_strengths(
    wins: ArrayLike, *, ci: float = 0.95, baseline: int | None = None, seed: int = 0, resamples: int = _RESAMPLES
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of `bradley_terry`: percentiles over resamples of the tasks.

    In a resample without strengths those who never lost to any of the rest are infinitely strong,
    and those who never won infinitely weak.

    Parameters
    ----------
    wins : array-like, shape (tasks, players, players)
    ci : float
    baseline : int, optional
        The player whose strength is 0 in every resample; by default the mean is.
    seed, resamples : int

    Returns
    -------
    low, high : ndarray of float, shape (players,)
        NaN where an end is not bounded, or there are fewer than two tasks.
    """
    wins = np.asarray(wins, dtype=float)
    tasks, players = wins.shape[:2]
    ends = np.full((2, players), np.nan)
    if tasks < 2:
        return ends[0], ends[1]
    counts = np.random.default_rng(seed).multinomial(tasks, np.full(tasks, 1 / tasks), size=resamples)
    drawn = (counts @ wins.reshape(tasks, -1)).reshape(resamples, players, players)
    different, which = np.unique(drawn.round(9), axis=0, return_inverse=True)
    found = np.array([_strengths(one, baseline) for one in different])[which]
    for player in range(players):
        known = np.sort(found[~np.isnan(found[:, player]), player])
        if len(known):
            # Between an infinite and a finite one there is nothing to interpolate.
            places = np.array([(1 - ci) / 2, (1 + ci) / 2]) * (len(known) - 1)
            ends[:, player] = known[np.round(places).astype(int)]
    ends[~np.isfinite(ends)] = np.nan
    return ends[0], ends[1]


def _strengths(wins: np.ndarray, baseline: int | None) -> np.ndarray:
    strengths = bradley_terry(wins)
    if np.isnan(strengths).any():
        n, group = _groups(wins)
        between = (wins > 0) & (group[:, None] != group)
        won = np.bincount(group, between.any(1), n)[group] > 0
        lost = np.bincount(group, between.any(0), n)[group] > 0
        # Whoever stands in the middle, or met nobody, is anywhere.
        strengths = np.select([won & ~lost, lost & ~won], [np.inf, -np.inf], np.nan)
    if baseline is None:
        return strengths
    if not np.isfinite(strengths[baseline]):
        own = strengths[baseline]
        return np.where(np.arange(len(wins)) == baseline, 0.0, np.where(strengths == own, np.nan, -own))
    return strengths - strengths[baseline]
