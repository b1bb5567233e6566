"""Strengths from comparisons of two: closed forms, a published table, and what has no strengths."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest

from mcpeval import stats
from mcpeval.errors import InputError
from mcpeval.frames import scores_frame
from mcpeval.reports import each_order, preferences, rank, summarize

# Of few games some resamples have no strengths; the tests below say where that is what they are about.
pytestmark = pytest.mark.filterwarnings("ignore:rank. the intervals")

# Wins of the team of the row over that of the column in the American League of 1987, in the order Milwaukee,
# Detroit, Toronto, New York, Boston, Cleveland, Baltimore: Agresti (2002), Categorical Data Analysis, table 10.10.
TEAMS = ["Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore"]
BASEBALL = [
    [0, 7, 9, 7, 7, 9, 11],
    [6, 0, 7, 5, 11, 9, 9],
    [4, 6, 0, 7, 7, 8, 12],
    [6, 8, 6, 0, 6, 7, 10],
    [6, 2, 6, 7, 0, 7, 12],
    [4, 4, 5, 6, 6, 0, 6],
    [2, 4, 1, 3, 1, 7, 0],
]
# Turner & Firth (2012), Bradley-Terry Models in R: The BradleyTerry2 Package, JSS 48(9): against Baltimore.
STRENGTHS = [1.5814, 1.4364, 1.2945, 1.2476, 1.1077, 0.6839, 0.0]


def games(wins, names=TEAMS):
    """A scores frame with a row for every game, each a task of its own."""
    rows = []
    for i, own in enumerate(wins):
        for j, n in enumerate(own):
            for _ in range(n):
                # Whoever comes first in `names` is the first of the pair.
                pair = (names[i], names[j]) if i < j else (names[j], names[i])
                about = {"between": list(pair), "orders": {"ab": {"label": "A" if i < j else "B"}}}
                rows.append({"score": float(i < j), "metadata": about})
    numbered = [{**row, "run_id": f"r{n}", "task_id": f"t{n}", "evaluator": "games"} for n, row in enumerate(rows)]
    return scores_frame(numbered, keys=["run_id", "task_id"])


def ranked(scores, **how):
    return rank(scores, **how).set_index("agent")


def test_two_agents_differ_by_the_log_odds_of_the_win_rate():
    found = ranked(games([[0, 30], [10, 0]], ["a", "b"]))
    assert found["strength"]["a"] - found["strength"]["b"] == pytest.approx(math.log(3))
    assert found["strength"].sum() == pytest.approx(0) and found["rank"].to_dict() == {"a": 1, "b": 2}
    assert found.loc["a", ["wins", "losses", "ties", "n", "tasks"]].tolist() == [30, 10, 0, 40, 40]
    assert found["win_rate"].to_dict() == {"a": 0.75, "b": 0.25}


def test_the_bootstrap_over_tasks_is_that_of_the_win_rate():
    found = ranked(games([[0, 30], [10, 0]], ["a", "b"]), baseline="b")
    assert found.loc["b", ["strength", "low", "high"]].tolist() == [0, 0, 0]
    # Percentiles of Binomial(40, 0.75) / 40, as log odds: its 2.5 % and 97.5 % quantiles are 24 and 35.
    assert found["low"]["a"] == pytest.approx(math.log(24 / 16), abs=0.12)
    assert found["high"]["a"] == pytest.approx(math.log(35 / 5), abs=0.25)


def test_seven_teams_have_their_published_strengths():
    found = ranked(games(BASEBALL), baseline="Baltimore")
    assert found["strength"][TEAMS].round(4).tolist() == STRENGTHS
    assert list(found.index) == TEAMS and found["rank"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    inside = (found["low"] < found["strength"]) & (found["strength"] < found["high"])
    assert inside[TEAMS[:-1]].all() and found["n"].tolist() == [78] * 7


def test_a_tie_is_half_a_win_of_either():
    assert stats.bradley_terry([[0, 2.5], [1.5, 0]]).tolist() == pytest.approx(
        [math.log(2.5 / 1.5) / 2, -math.log(2.5 / 1.5) / 2]
    )
    scores = games([[0, 2], [1, 0]], ["a", "b"])
    tie = scores.iloc[[0]].assign(score=0.5, run_id="tie", task_id="tie")
    found = ranked(pd.concat([scores, tie]))
    assert found["strength"]["a"] - found["strength"]["b"] == pytest.approx(math.log(2.5 / 1.5))
    assert found.loc["a", ["wins", "losses", "ties", "n"]].tolist() == [2, 1, 1, 4]


def test_every_task_weighs_the_same_however_often_it_was_tried():
    once = games([[0, 2], [1, 0]], ["a", "b"])
    again = once[once["score"] == 0].assign(run_id=[f"again{i}" for i in range(1)])
    many = pd.concat([once, again, again.assign(run_id="and again")])
    assert ranked(many)["strength"].to_dict() == pytest.approx(ranked(once)["strength"].to_dict())
    assert ranked(many)["n"].to_dict() == {"a": 5, "b": 5} and ranked(many)["tasks"].to_dict() == {"a": 3, "b": 3}


def test_whoever_won_everything_has_no_strength_but_a_message():
    with pytest.warns(
        UserWarning, match="no strengths in evaluator='games': a won .* and b lost .*prior=0.5"
    ) as caught:
        found = ranked(games([[0, 8], [0, 0]], ["a", "b"]))
    assert caught[0].filename == __file__  # it is said where `rank` is called
    assert found["strength"].isna().all() and found["rank"].isna().all()
    assert found["wins"].to_dict() == {"a": 8, "b": 0} and list(found.index) == ["a", "b"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        held = ranked(games([[0, 8], [0, 0]], ["a", "b"]), prior=0.5)
    # Half a tie: a quarter of a win of either.
    assert held["strength"]["a"] - held["strength"]["b"] == pytest.approx(math.log(8.25 / 0.25))
    assert np.isfinite(held[["low", "high"]]).all().all()


def test_nothing_but_ties_is_no_finding_of_equal_strength():
    scores = games([[0, 4], [0, 0]], ["a", "b"]).assign(score=0.5)
    with pytest.warns(UserWarning, match="no comparison was decided"):
        found = ranked(scores, prior=0.5)
    assert found[["strength", "low", "high", "rank"]].isna().all(axis=None)
    assert found["ties"].tolist() == [4, 4]


def test_agents_who_never_met_are_not_compared():
    apart = [[0, 3, 0, 0], [2, 0, 0, 0], [0, 0, 0, 3], [0, 0, 2, 0]]
    with pytest.warns(UserWarning, match="never met"):
        found = ranked(games(apart, list("abcd")))
    assert found["strength"].isna().all()


def test_an_interval_without_an_end_is_open_and_says_so():
    with pytest.warns(UserWarning, match="the intervals of a, b .* are open"):
        found = ranked(games([[0, 3], [1, 0]], ["a", "b"]))
    assert np.isnan(found["high"]["a"]) and np.isnan(found["low"]["b"]) and found["strength"].notna().all()
    with pytest.warns(UserWarning, match="are open"):
        against = ranked(games([[0, 3], [1, 0]], ["a", "b"]), baseline="b")
    assert against.loc["b", ["strength", "low", "high"]].tolist() == [0, 0, 0] and np.isnan(against["high"]["a"])


def test_three_agents_in_a_circle_are_equal():
    assert stats.bradley_terry([[0, 1, 0], [0, 0, 1], [1, 0, 0]]) == pytest.approx([0, 0, 0], abs=1e-6)
    assert not stats.comparable(np.array([[0.0, 1.0], [0.0, 0.0]])) and not stats.comparable(np.zeros((1, 1)))


def test_unscored_comparisons_are_counted_and_in_no_strength():
    scores = games([[0, 3], [2, 0]], ["a", "b"])
    lost = scores.iloc[[0]].assign(score=np.nan, status="error", run_id="lost", task_id="lost")
    found = ranked(pd.concat([scores, lost]))
    assert found["unscored"].to_dict() == {"a": 1, "b": 1} and found["n"].to_dict() == {"a": 5, "b": 5}
    assert found["strength"].to_dict() == pytest.approx(ranked(scores)["strength"].to_dict())


def test_each_evaluator_has_a_ranking_of_its_own():
    one = games([[0, 30], [10, 0]], ["a", "b"])
    other = games([[0, 10], [30, 0]], ["a", "b"]).assign(evaluator="other")
    found = rank(pd.concat([one, other]))
    assert found[["evaluator", "agent", "rank"]].values.tolist() == [
        ["games", "a", 1], ["games", "b", 2], ["other", "b", 1], ["other", "a", 2]
    ]  # fmt: skip
    pd.testing.assert_frame_equal(rank(one), rank(one))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"baseline": "c"}, "baseline='c' is no agent"),
        ({"prior": -1}, "prior=-1"),
        ({"ci": 95}, "ci=95"),
        ({"by": "judge"}, "by has 'judge'"),
        ({"seed": -1}, "seed=-1"),
        ({"baseline": np.array(["a", "b"])}, "is no agent"),
    ],
)
def test_what_cannot_be_meant_is_refused(how, said):
    with pytest.raises(InputError, match=said):
        rank(games([[0, 3], [2, 0]], ["a", "b"]), **how)


def test_scores_that_compare_nobody_are_refused():
    plain = scores_frame([{"run_id": "r", "evaluator": "e", "score": 1.0}], keys=["run_id"])
    assert len(summarize(plain)) == 1
    with pytest.raises(InputError, match="no comparison of two"):
        rank(plain)
    for report in (rank, preferences, each_order):
        for odd in ({"between": 1}, {"between": ["a"]}, {"between": ["a", "b"], "orders": 3}):
            with pytest.raises(InputError, match=f"{report.__name__}: the metadata of row 0 compare"):
                report(plain.assign(metadata=[odd]))
        with pytest.raises(InputError, match=f"{report.__name__}: scores is a NoneType"):
            report(None)
