"""Intervals against published figures, other libraries, and the coverage they promise."""

import math

import numpy as np
import pytest
from scipy.stats import bootstrap, ttest_1samp

from mcpeval import stats


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_gives_the_intervals_of_newcombe_1998_table_i(successes, n, low, high):
    assert stats.wilson(successes, n) == pytest.approx((low, high), abs=5e-5)
    assert stats.wilson(n - successes, n) == pytest.approx((1 - high, 1 - low), abs=5e-5)


@pytest.mark.parametrize("n", [1, 7, 100])
@pytest.mark.parametrize("ci", [0.8, 0.95, 0.99])
def test_wilson_agrees_with_statsmodels(n, ci):
    proportion_confint = pytest.importorskip("statsmodels.stats.proportion").proportion_confint
    for successes in {0, 1, n // 2, n}:
        expected = proportion_confint(successes, n, alpha=1 - ci, method="wilson")
        assert stats.wilson(successes, n, ci=ci) == pytest.approx(expected, abs=1e-12)


def test_wilson_stays_in_the_unit_interval_and_closes_at_its_ends():
    assert stats.wilson(0, 5)[0] == 0.0
    assert stats.wilson(5, 5)[1] == 1.0
    assert all(math.isnan(end) for end in stats.wilson(0, 0))


def test_the_t_interval_is_that_of_scipy_cut_to_the_scale():
    means = np.random.default_rng(1).uniform(0.2, 0.8, 12)
    expected = ttest_1samp(means, 0.0).confidence_interval(0.9)
    assert stats.t_interval(means, ci=0.9) == pytest.approx((expected.low, expected.high))
    assert stats.t_interval([0.9, 1.0, 0.6])[1] == 1.0
    assert stats.t_interval([0.1, 0.0, 0.4])[0] == 0.0


def test_equal_means_are_no_certainty():
    assert stats.t_interval([0.75] * 8) == stats.bca([0.75] * 8) == stats.wilson(6, 8)


def test_the_bootstrap_is_that_of_scipy_and_repeatable():
    means = np.random.default_rng(2).beta(2, 1, 25)
    found = bootstrap((means,), np.mean, method="BCa", n_resamples=9999, rng=np.random.default_rng(7))
    expected = found.confidence_interval
    assert stats.bca(means, seed=7) == (expected.low, expected.high)
    assert stats.bca(means, seed=7) == stats.bca(list(means), seed=7) != stats.bca(means, seed=8)


def test_one_task_says_nothing_of_other_tasks():
    for found in (stats.t_interval([0.5]), stats.bca([0.5]), stats.clustered([0.5], 4), stats.t_interval([])):
        assert all(math.isnan(end) for end in found)


def test_the_clustered_interval_is_korn_and_graubards_size_in_wilsons_formula():
    # By hand: rate 7/12, variance of the mean of 6 tasks 1/36, so 8.75 independent trials; times
    # the ratio of Student's quantiles for 23 and 5 degrees of freedom, 2.069 and 2.571 in any table.
    size = 8.75 * (2.069 / 2.571) ** 2
    found = stats.clustered([1.0, 0.75, 0.5, 0.0, 1.0, 0.25], 24)
    assert found == pytest.approx(stats.wilson(7 / 12 * size, size), abs=1e-4)


def test_the_effective_size_is_between_the_tasks_and_the_trials():
    spread = stats.clustered([0.5] * 10, 40)  # no variance between tasks: as good as 40 trials
    assert spread == pytest.approx(stats.wilson(20, 40))
    assert stats.clustered([1.0] * 10, 40) == stats.wilson(10, 10)
    low, high = stats.clustered([1.0, 0.0] * 5, 40)  # trials of a task are copies of each other
    wide_low, wide_high = stats.wilson(5, 10)
    assert low < wide_low < 0.5 < wide_high < high


def coverage(interval, tasks, trials, rate, alike, repeats=600):
    """How often the interval holds the true rate; `alike` is the correlation within a task."""
    rng = np.random.default_rng([tasks, trials, int(100 * rate), int(100 * alike)])
    spread = 1 / alike - 1 if alike else None
    shape = (repeats, tasks)
    rates = rng.beta(rate * spread, (1 - rate) * spread, shape) if alike else np.full(shape, rate)
    means = rng.binomial(trials, rates) / trials
    ends = np.array([interval(own, tasks * trials) for own in means])
    return float(((ends[:, 0] <= rate + 1e-12) & (rate <= ends[:, 1] + 1e-12)).mean())


RATES = (0.1, 0.3, 0.5, 0.7, 0.9)


@pytest.mark.parametrize("tasks", [10, 50, 500])
def test_wilson_covers_rates_of_independent_tasks(tasks):
    """Of one rate the share jumps with n (Brown, Cai & DasGupta 2001); over the rates it is 95 %."""
    found = [
        coverage(lambda means, n: stats.wilson(means.sum(), n), tasks, 1, rate, 0) for rate in np.arange(0.1, 0.95, 0.1)
    ]
    assert 0.93 < np.mean(found) < 0.97
    assert min(found) > 0.9


@pytest.mark.parametrize("tasks", [10, 20, 50, 500])
@pytest.mark.parametrize("trials", [2, 4, 8])
@pytest.mark.parametrize("alike", [0.0, 0.3, 0.7])
def test_the_clustered_interval_covers_where_trials_repeat(tasks, trials, alike):
    """Over the rates; with 10 tasks half a point wider, as its documentation says."""
    found = [coverage(stats.clustered, tasks, trials, rate, alike, repeats=900) for rate in RATES]
    # 93 to 97 %, and 2.5 standard errors of 4500 repeats.
    margin = 0.008 + (0.005 if tasks == 10 else 0.0)
    assert 0.93 - margin < np.mean(found) < 0.97 + margin
    assert min(found) > 0.85


def test_the_naive_interval_does_not_cover_where_trials_repeat():
    assert coverage(lambda means, n: stats.wilson(means.mean() * n, n), 30, 8, 0.6, 0.5) < 0.8


@pytest.mark.parametrize("interval", [stats.t_interval, lambda means: stats.bca(means, resamples=999)])
def test_t_and_bootstrap_cover_the_mean_of_a_graded_score(interval):
    rng = np.random.default_rng(3)
    held = [low <= 2 / 3 <= high for low, high in (interval(rng.beta(2, 1, 30)) for _ in range(300))]
    assert 0.90 < np.mean(held) < 0.99
