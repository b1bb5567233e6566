"""Coefficients of agreement against published examples and other libraries."""

import math

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from mcpeval import stats

_ = math.nan
# Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, part C: four observers, twelve units.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_is_the_one_that_krippendorff_prints(level, alpha):
    assert stats.krippendorff(np.transpose(OBSERVERS), level=level) == pytest.approx(alpha, abs=5e-4)


def test_alpha_of_two_observers_with_truth_values_is_the_one_that_krippendorff_prints():
    """Part A of the same: ten units, alpha = .095."""
    first, second = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    assert stats.krippendorff(np.column_stack([first, second])) == pytest.approx(0.095, abs=5e-4)
    assert stats.agreement_measures(first, second, "nominal")["alpha"][0] == pytest.approx(0.095, abs=5e-4)


def test_alpha_without_variation_or_pairs_is_not_defined():
    assert math.isnan(stats.krippendorff([[1, 1], [1, 1]]))
    assert math.isnan(stats.krippendorff([[1, _], [2, _]]))
    assert stats.krippendorff([[1, 1], [2, 2], [3, _]]) == 1.0


def ratings(n, seed, levels=5):
    rng = np.random.default_rng(seed)
    first = rng.integers(1, levels + 1, n)
    return first, np.clip(first + rng.integers(-1, 2, n), 1, levels)


@pytest.mark.parametrize("n", [10, 80])
def test_the_kappas_are_those_of_statsmodels(n):
    cohens_kappa = pytest.importorskip("statsmodels.stats.inter_rater").cohens_kappa
    first, second = ratings(n, n)
    table = np.zeros((5, 5))
    np.add.at(table, (first - 1, second - 1), 1)
    found = stats.agreement_measures(first, second, "ordinal")
    for name, weighting in (("kappa", None), ("kappa_linear", "linear"), ("kappa_quadratic", "quadratic")):
        expected = cohens_kappa(table, wt=weighting, return_results=False)
        assert found[name][0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alpha_of_resamples_is_that_of_the_package(level):
    """`krippendorff` gives one alpha at a time; the bootstrap needs thousands, and has its own sums."""
    first, second = ratings(30, 4)
    weights = np.random.default_rng(5).multinomial(30, np.full(30, 1 / 30), 20)
    found = stats.agreement_measures(first, second, level, weights)["alpha"]
    for alpha, times in zip(found, weights):
        pair = np.column_stack([np.repeat(first, times), np.repeat(second, times)])
        assert alpha == pytest.approx(stats.krippendorff(pair, level=level), abs=1e-12)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alpha_of_a_pair_is_alpha_of_many(level):
    first, second = ratings(40, 3)
    expected = stats.krippendorff(np.column_stack([first, second]), level=level)
    assert stats.agreement_measures(first, second, level)["alpha"][0] == pytest.approx(expected, abs=1e-12)


def test_correlations_are_those_of_scipy_with_ties_and_without():
    rng = np.random.default_rng(8)
    for x, y in (ratings(60, 5), (rng.normal(size=600), rng.normal(size=600))):
        found = stats.agreement_measures(x, y, "interval")
        assert found["pearson"][0] == pytest.approx(pearsonr(x, y).statistic, abs=1e-12)
        assert found["spearman"][0] == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)
        assert found["kendall"][0] == pytest.approx(kendalltau(x, y).statistic, abs=1e-12)


def test_weights_stand_for_repeated_pairs():
    x, y = ratings(12, 6)
    weights = np.random.default_rng(9).integers(0, 4, 12)
    for level in stats.LEVELS:
        weighted = stats.agreement_measures(x, y, level, [weights])
        repeated = stats.agreement_measures(np.repeat(x, weights), np.repeat(y, weights), level)
        for name in repeated:
            assert weighted[name][0] == pytest.approx(repeated[name][0], abs=1e-9, nan_ok=True), name


def test_truth_values_have_sensitivity_and_specificity():
    """A two-by-two table by hand: 40 right passes, 10 missed, 5 false passes, 45 right failures."""
    judged = [1] * 40 + [0] * 10 + [1] * 5 + [0] * 45
    human = [1] * 50 + [0] * 50
    found = {name: number[0] for name, number in stats.agreement_measures(judged, human, "nominal").items()}
    assert (found["sensitivity"], found["specificity"], found["balanced_accuracy"]) == (0.8, 0.9, pytest.approx(0.85))
    assert (found["accuracy"], found["majority"], found["bias"]) == (0.85, 0.5, pytest.approx(-0.05))
    assert found["kappa"] == pytest.approx((0.85 - 0.5) / 0.5)


def test_what_is_not_defined_is_missing_and_no_warning():
    found = stats.agreement_measures([1, 1, 1], [1, 1, 1], "nominal")
    assert found["accuracy"][0] == 1.0
    assert math.isnan(found["kappa"][0]) and math.isnan(found["alpha"][0]) and math.isnan(found["specificity"][0])
    flat = stats.agreement_measures([0.1, 0.1, 0.1], [0.1, 0.2, 0.4], "interval")
    assert math.isnan(flat["pearson"][0]) and math.isnan(flat["spearman"][0]) and math.isnan(flat["kendall"][0])


def test_a_task_is_drawn_with_all_of_its_rows():
    """Tasks whose rows are copies of each other: as uncertain as one row of each."""
    x, y = ratings(40, 7, levels=2)
    once = stats.resampled_measures(x, y, "nominal", np.arange(40))
    copied = stats.resampled_measures(np.repeat(x, 6), np.repeat(y, 6), "nominal", np.repeat(np.arange(40), 6))
    assert copied["accuracy"].std() == pytest.approx(once["accuracy"].std(), rel=0.1)
    alone = stats.resampled_measures(np.repeat(x, 6), np.repeat(y, 6), "nominal", np.arange(240))
    assert alone["accuracy"].std() < 0.6 * once["accuracy"].std()
    again = stats.resampled_measures(x, y, "nominal", np.arange(40))
    assert (again["kappa"] == once["kappa"]).all()


def test_the_bootstrap_interval_of_kappa_covers():
    """Labels of 120 tasks, half of them right; the judge errs in 15 of 100: kappa = .7."""
    rng = np.random.default_rng(10)
    held = 0
    for _ in range(200):
        human = rng.integers(0, 2, 120)
        judged = np.where(rng.random(120) < 0.15, 1 - human, human)
        kappas = stats.resampled_measures(judged, human, "nominal", np.arange(120), resamples=500)["kappa"]
        low, high = np.quantile(kappas, [0.025, 0.975])
        held += low <= 0.7 <= high
    assert 0.90 < held / 200 < 0.985
