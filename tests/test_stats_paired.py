"""Paired differences against published figures, other libraries, and the coverage they promise."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import permutation_test, ttest_1samp

from mcpeval import stats


def test_mcnemars_test_is_the_exact_one_of_statsmodels():
    mcnemar = pytest.importorskip("statsmodels.stats.contingency_tables").mcnemar
    for better, worse in [(1, 7), (7, 1), (0, 5), (6, 16), (4, 4), (30, 12)]:
        expected = mcnemar([[50, better], [worse, 50]], exact=True).pvalue
        assert stats.mcnemar(better, worse) == pytest.approx(expected, abs=1e-12)
    assert stats.mcnemar(0, 0) == 1.0


def test_tangos_interval_is_the_one_that_fagerland_and_others_2014_print():
    """Airway hyper-responsiveness before and after stem cell transplantation: 1 and 7 of 21 discordant."""
    assert stats.tango(1, 7, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)


@pytest.mark.parametrize(("better", "worse", "n"), [(1, 7, 21), (6, 16, 161), (3, 3, 10), (0, 4, 12)])
@pytest.mark.parametrize("ci", [0.8, 0.95])
def test_the_ends_of_tangos_interval_are_where_its_own_test_turns(better, worse, n, ci):
    """Tango 1998, equations 3 to 5, by maximising the likelihood on a grid instead of in closed form."""
    z = NormalDist().inv_cdf((1 + ci) / 2)
    for assumed in stats.tango(better, worse, n, ci=ci):
        grid = np.linspace(max(0.0, -assumed) + 1e-9, (1 - assumed) / 2 - 1e-9, 100_001)  # chance of `worse`
        likelihood = worse * np.log(grid) + better * np.log(np.maximum(grid + assumed, 1e-300))
        likelihood += (n - better - worse) * np.log(1 - 2 * grid - assumed)
        rate = grid[np.argmax(likelihood)]
        statistic = (better - worse - n * assumed) / math.sqrt(n * (2 * rate + assumed * (1 - assumed)))
        assert abs(statistic) == pytest.approx(z, abs=2e-3)  # the grid's step


def test_tangos_interval_is_no_certainty_at_its_ends():
    low, high = stats.tango(0, 0, 20)
    assert (low, high) == pytest.approx((-stats.wilson(0, 20)[1], stats.wilson(0, 20)[1]))
    assert stats.tango(20, 0, 20)[1] == 1.0 and stats.tango(20, 0, 20)[0] < 0.9
    assert stats.tango(0, 20, 20) == pytest.approx(tuple(-end for end in stats.tango(20, 0, 20)[::-1]))
    assert all(math.isnan(end) for end in stats.tango(0, 0, 0))


@pytest.mark.parametrize("n", [2, 6, 12])
def test_flipping_all_signs_of_few_tasks_is_scipys_exact_permutation_test(n):
    differences = np.random.default_rng(n).normal(0.2, 0.4, n)
    expected = permutation_test((differences,), np.mean, permutation_type="samples", n_resamples=9999)
    assert stats.sign_flip(differences) == pytest.approx(expected.pvalue, abs=1e-9)


def test_random_signs_of_many_tasks_come_near_scipys_test_and_repeat_with_their_seed():
    differences = np.random.default_rng(1).normal(0.07, 0.4, 150)
    expected = permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=9999, rng=np.random.default_rng(5)
    ).pvalue
    found = stats.sign_flip(differences, seed=3)
    assert found == pytest.approx(expected, abs=0.02)  # more than three standard errors of either
    assert found == stats.sign_flip(list(differences), seed=3) != stats.sign_flip(differences, seed=4)
    assert stats.sign_flip(differences + 1) == 1 / 10_000  # the observed pattern is counted: never 0


def test_flipping_signs_of_passes_is_mcnemars_exact_test():
    for better, worse in [(7, 1), (3, 3), (0, 9), (40, 22)]:
        differences = [1.0] * better + [-1.0] * worse + [0.0] * 30
        assert stats.sign_flip(differences) == pytest.approx(stats.mcnemar(better, worse), abs=1e-12)
    assert stats.sign_flip([0.0] * 5) == 1.0
    assert math.isnan(stats.sign_flip([]))


def test_the_interval_of_a_difference_is_scipys_cut_to_the_bounds():
    differences = np.random.default_rng(2).uniform(-0.3, 0.6, 15)
    expected = ttest_1samp(differences, 0.0).confidence_interval(0.9)
    assert stats.difference_interval(differences, ci=0.9) == pytest.approx((expected.low, expected.high))
    assert stats.difference_interval([0.9, 1.0, 0.5])[1] == 1.0
    low, high = stats.difference_interval([9.0, 10.0, 5.0], bounds=None)
    assert low < 5 < 10 < high
    assert all(math.isnan(end) for end in stats.difference_interval([0.5]))


def test_equal_differences_are_no_certainty():
    assert stats.difference_interval([0.0] * 20) == pytest.approx(stats.tango(0, 0, 20))
    low, high = stats.difference_interval([0.5] * 20)
    assert -0.25 < low < 0.5 < high < 0.6
    assert all(math.isnan(end) for end in stats.difference_interval([3.0] * 20, bounds=None))


@pytest.mark.parametrize("n", [3, 5, 40, 1000])
@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
def test_the_detectable_difference_is_that_of_statsmodels_power_of_the_t_test(n, power):
    TTestPower = pytest.importorskip("statsmodels.stats.power").TTestPower
    differences = np.random.default_rng(n).normal(0.1, 0.4, n)
    expected = TTestPower().solve_power(nobs=n, alpha=0.05, power=power) * differences.std(ddof=1)
    assert stats.detectable(differences, power=power) == pytest.approx(expected, rel=5e-3)


def test_nothing_detectable_is_known_of_one_task_or_without_spread():
    assert math.isnan(stats.detectable([0.3])) and math.isnan(stats.detectable([0.0] * 9))


@pytest.mark.parametrize(("method", "theirs"), [("holm", "holm"), ("bh", "fdr_bh")])
def test_adjusted_p_are_those_of_statsmodels(method, theirs):
    multipletests = pytest.importorskip("statsmodels.stats.multitest").multipletests
    p = np.random.default_rng(4).beta(0.4, 3, 30)
    assert stats.adjusted(p, method) == pytest.approx(multipletests(p, method=theirs)[1], abs=1e-12)


def test_a_missing_p_is_no_test():
    assert stats.adjusted([0.01, np.nan, 0.03], "holm").tolist() == pytest.approx([0.02, np.nan, 0.03], nan_ok=True)
    assert stats.adjusted([0.01, np.nan, 0.03], "bh").tolist() == pytest.approx([0.02, np.nan, 0.03], nan_ok=True)
    assert stats.adjusted([0.01, np.nan], None).tolist() == pytest.approx([0.01, np.nan], nan_ok=True)
    assert len(stats.adjusted([], "holm")) == 0


def test_tangos_interval_covers_and_the_paired_t_interval_does_as_well():
    rng = np.random.default_rng(6)
    held = np.zeros(2)
    for _ in range(500):
        better, worse, _ = rng.multinomial(60, [0.25, 0.10, 0.65])
        low, high = stats.tango(better, worse, 60)
        held[0] += low <= 0.15 <= high
        low, high = stats.difference_interval(rng.beta(2, 1, 30) - rng.beta(1, 1, 30))
        held[1] += low <= 2 / 3 - 1 / 2 <= high
    assert ((held / 500 > 0.92) & (held / 500 < 0.98)).all()


def test_the_permutation_test_finds_nothing_where_there_is_nothing_in_ninety_five_of_a_hundred():
    rng = np.random.default_rng(7)
    found = [stats.sign_flip(rng.choice([-1, -0.5, 0, 0.5, 1], 40)) < 0.05 for _ in range(500)]
    assert 0.02 < np.mean(found) < 0.08
