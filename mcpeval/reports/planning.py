"""Before anything is paid for: how many tasks, and how many labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

from .. import stats
from ..errors import InputError
from ..frames import column
from .columns import check_choice, check_ci
from .rated import is_number

_POWER = {
    "difference": "float64",
    "tasks": "Int64",
    "trials": "int64",
    "power": "float64",
    "discordant": "float64",
    "sd": "float64",
    "test": "str",
}
_LABELS = {
    "half_width": "float64",
    "labels": "Int64",
    "labels_alone": "Int64",
    "rate": "float64",
    "rho": "float64",
    "ess_ceiling": "float64",
}
_MOST = 1_000_000  # tasks or labels: more than anyone will pay for


def power(
    difference: float | Iterable[float] | None = None,
    *,
    tasks: int | Iterable[int] | None = None,
    trials: int | Iterable[int] = 1,
    power: float = 0.8,
    rate: float | None = None,
    discordant: float | None = None,
    sd: float | None = None,
    within: float | None = None,
    ci: float = 0.95,
) -> pd.DataFrame:
    """How many tasks `compare` needs to show a difference, or which difference so many tasks show.

    Give `difference` for the tasks, `tasks` for the difference, or both for the power; and `rate` (or
    `discordant`) for agents that pass or fail, `sd` for graded scores.

    Parameters
    ----------
    difference : float or list of float, optional
        True difference of the means, candidate less baseline.
    tasks : int or list of int, optional
        Tasks that both do.
    trials : int or list of int
        How often each does each task; `compare` averages them.
    power : float
        Wanted chance that the difference is found; it is not read where both of the above are given.
    rate : float, optional
        The baseline's pass rate.
    discordant : float, optional
        Share of the tasks that, with one trial each, only one of the two passes: the sum of ``better``
        and ``worse`` of a pilot's `compare`, over its tasks. By default what two agents with these
        rates show that have nothing to do with each other, which is more than most pairs do.
    sd : float, optional
        Standard deviation, over tasks, of the difference with one trial each.
    within : float, optional
        Which part of that difference's variance is the luck of the trials, and is divided by their
        number: the two agents' "trial" of `variance_components`, over the variance. It has to be known
        where `trials` is not 1: without luck, repeating gains nothing.
    ci : float
        The test is two-sided at the level 1 - `ci`.

    Returns
    -------
    DataFrame
        A row for each combination: ``difference`` (missing where no difference is found so often),
        ``tasks`` (missing where a million are too few), ``trials``, ``power`` (that these tasks have),
        ``discordant``, ``sd`` (of the difference over tasks, with that many trials), ``test``:
        "mcnemar" where they pass or fail in one trial (`stats.mcnemar_power`, exact), else "t"
        (`stats.t_power`, which the sign-flip test comes close to).

    Raises
    ------
    InputError
        What is asked for is not said, or an argument is impossible.

    Examples
    --------
    >>> power(0.1, rate=0.6, discordant=0.3)[["tasks", "power"]].round(3).to_numpy().tolist()
    [[249, 0.801]]
    """
    check_ci(ci, "power")
    _check_share("power", power, "power")
    for name, given in (("difference", difference), ("tasks", tasks)):
        if given is not None and None in (each := _each(given)):
            raise InputError(f"power: {name}={each!r:.80} should be numbers")
    if (difference is None) and (tasks is None):
        raise InputError("power: give difference for how many tasks show it, or tasks for which difference they show")
    if (sd is None) == (rate is None and discordant is None):
        raise InputError("power: give either sd, for graded scores, or rate or discordant, for pass and fail")
    for name, share in (("rate", rate), ("discordant", discordant)):
        _check_share(name, 0.5 if share is None else share, "power")
    _check_share("within", 0.0 if within is None else within, "power", ends=True)
    if sd is not None and not (is_number(sd) and 0 < sd < float("inf")):
        raise InputError(f"power: sd={sd!r} should be a number above 0")
    rows = []
    for shift, count, tried in product(_each(difference), _each(tasks), _each(trials)):
        _check_whole("tasks", count, 2, "power", may_miss=tasks is None)
        _check_whole("trials", tried, 1, "power")
        if tried > 1 and within is None:
            raise InputError("power: trials are not all 1; within should say which part of the variance is their luck")
        rows.append(_Plan(rate, discordant, sd, within or 0.0, tried, ci).row(shift, count, power))
    return pd.DataFrame({name: column([row[name] for row in rows], dtype) for name, dtype in _POWER.items()})


@dataclass(frozen=True)
class _Plan:
    """What is assumed of a comparison, and the power that follows for a difference and a number of tasks."""

    rate: float | None
    given: float | None  # share of discordant tasks
    graded: float | None  # standard deviation of graded differences
    within: float
    trials: int
    ci: float

    @property
    def test(self) -> str:
        return "mcnemar" if self.graded is None and self.trials == 1 else "t"

    def discordant(self, shift: float) -> float | None:
        if self.graded is not None:
            return None
        if self.given is not None:
            return self.given
        other = self.rate + shift
        return self.rate * (1 - other) + other * (1 - self.rate)

    def sd(self, shift: float) -> float:
        """Of a task's difference, with as many trials as planned."""
        variance = self.graded**2 if self.graded is not None else self.discordant(shift) - shift**2
        return (max(0.0, variance) * (1 - self.within + self.within / self.trials)) ** 0.5

    def largest(self, sign: float = 1.0) -> float:
        """The largest difference that there can be."""
        if self.graded is not None:
            return 100 * self.graded
        rates = 1.0 if self.rate is None else 1 - self.rate if sign > 0 else self.rate
        return rates if self.given is None else min(rates, self.given)

    def power(self, shift: float, tasks: int) -> float:
        if self.test == "mcnemar":
            return stats.mcnemar_power(tasks, shift, self.discordant(shift), ci=self.ci)
        sd = self.sd(shift)
        return stats.t_power(tasks, shift / sd, ci=self.ci) if sd > 0 else 1.0

    def row(self, shift: float | None, tasks: int | None, wanted: float) -> dict[str, Any]:
        if shift is not None:
            if not is_number(shift) or not shift or shift != shift:
                raise InputError(f"power: difference={shift!r} should be a number other than 0")
            if abs(shift) > self.largest(shift) + 1e-12:
                raise InputError(f"power: difference={shift!r} is more than there can be: {self.largest(shift):g}")
            if tasks is None:
                tasks = stats.smallest(lambda count: self.power(shift, count) >= wanted, 2, _MOST)
        else:
            shift = self.detectable(tasks, wanted)
        known = shift is not None
        return {
            "difference": shift,
            "tasks": tasks,
            "trials": self.trials,
            "power": self.power(shift, tasks) if known and tasks else None,
            "discordant": self.discordant(shift) if known else None,
            "sd": self.sd(shift) if known else None,
            "test": self.test,
        }

    def detectable(self, tasks: int, wanted: float) -> float | None:
        high = self.largest()
        if self.power(high, tasks) < wanted:
            return None
        low = 0.0
        while high - low > 1e-9:  # to halve is slow and sure: power may have a small step in it
            middle = (low + high) / 2
            low, high = (low, middle) if middle and self.power(middle, tasks) >= wanted else (middle, high)
        return high


def labels_needed(
    half_width: float | Iterable[float],
    *,
    rate: float = 0.5,
    rho: float | None = None,
    sensitivity: float | None = None,
    specificity: float | None = None,
    runs: int | None = None,
    calibration: str = "random",
    share: float | None = None,
    ci: float = 0.95,
) -> pd.DataFrame:
    """How many labels `corrected_rate` needs for an interval of a wanted width.

    Parameters
    ----------
    half_width : float or list of float
        Wanted distance from the rate to the ends of its interval.
    rate : float
        The rate that is expected; .5 needs most.
    rho : float, optional
        Correlation of the judge's verdicts with the labels, as `corrected_rate` gives it.
    sensitivity, specificity : float, optional
        The judge's, from which rho follows; "external" needs them.
    runs : int, optional
        All runs that the judge has a verdict on, with the labelled ones where they are "random"; by
        default so many that they do not matter.
    calibration : {"random", "external"}
        As for `corrected_rate`.
    share : float, optional
        Of "external": which part of the labelled runs is good; by default `rate`.
    ci : float

    Returns
    -------
    DataFrame
        A row per half width: ``half_width``, ``labels`` (missing where a million, or all runs, are too
        few), ``labels_alone`` (without the judge), ``rate``, ``rho``, ``ess_ceiling`` (how many labels
        each label can at most be worth: 1 / (1 - rho²), missing where "external"). Each label is of a
        task of its own; where trials repeat, more are needed.

    Raises
    ------
    InputError
        Neither rho nor sensitivity and specificity are given, or an argument is impossible.

    Examples
    --------
    >>> labels_needed(0.05, rate=0.6, rho=0.7)[["labels", "labels_alone"]].to_numpy().tolist()
    [[191, 372]]
    """
    check_ci(ci, "labels_needed")
    check_choice("calibration", calibration, ("random", "external"), "labels_needed")
    known = sensitivity is not None and specificity is not None
    if not known and (rho is None or calibration == "external"):
        wanted = "sensitivity and specificity" if calibration == "external" else "rho, or sensitivity and specificity"
        raise InputError(f"labels_needed: give {wanted}, which say how good the judge is")
    _check_share("rate", rate, "labels_needed")
    for name, part in (("sensitivity", sensitivity), ("specificity", specificity), ("share", share)):
        _check_share(name, 0.5 if part is None else part, "labels_needed", ends=True)
    if rho is None:
        passed = rate * sensitivity + (1 - rate) * (1 - specificity)
        spread = passed * (1 - passed)
        rho = (sensitivity + specificity - 1) * (rate * (1 - rate) / spread) ** 0.5 if spread > 0 else 0.0
    if not is_number(rho) or not -1 <= rho <= 1:
        raise InputError(f"labels_needed: rho={rho!r} should lie between -1 and 1")
    _check_whole("runs", runs, 2, "labels_needed", may_miss=True)
    most = runs if runs is not None and calibration == "random" else _MOST

    def width(labels: int) -> float:
        if calibration == "random":
            return stats.half_width(labels, rate, rho, runs, ci=ci)
        return _external_width(labels, rate, sensitivity, specificity, runs, rate if share is None else share, ci)

    rows = []
    for wanted in _each(half_width):
        if not (is_number(wanted) and 0 < wanted < 1):
            raise InputError(f"labels_needed: half_width={wanted!r} should lie between 0 and 1")
        alone = stats.smallest(lambda n: stats.half_width(n, rate, 0.0, ci=ci) <= wanted, 2, _MOST)  # noqa: B023
        needed = stats.smallest(lambda n: width(n) <= wanted, 2, most)  # noqa: B023
        ceiling = 1 / (1 - rho**2) if calibration == "random" and abs(rho) < 1 else None
        rows.append({"half_width": wanted, "labels": needed, "labels_alone": alone, "rate": rate, "rho": rho,
                     "ess_ceiling": ceiling})  # fmt: skip
    return pd.DataFrame({name: column([row[name] for row in rows], dtype) for name, dtype in _LABELS.items()})


def _external_width(
    labels: int, rate: float, sensitivity: float, specificity: float, runs: int | None, share: float, ci: float
) -> float:
    passed = rate * sensitivity + (1 - rate) * (1 - specificity)
    sizes = (runs or 1e12, max(1.0, share * labels), max(1.0, (1 - share) * labels))
    if abs(sensitivity + specificity - 1) < 1e-9:
        return 1.0
    _, low, high, _ = stats.rogan_gladen(passed, sensitivity, specificity, sizes, ci=ci)
    return (high - low) / 2


def _each(given: Any) -> list[Any]:
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]


def _check_share(name: str, value: Any, report: str, *, ends: bool = False) -> None:
    within = is_number(value) and 0 <= value <= 1
    if not within or not ends and value in (0, 1):
        raise InputError(f"{report}: {name}={value!r} should lie between 0 and 1")


def _check_whole(name: str, value: Any, least: int, report: str, *, may_miss: bool = False) -> None:
    whole = is_number(value) and isinstance(value, int) and value >= least
    if not whole and not (may_miss and value is None):
        raise InputError(f"{report}: {name}={value!r} should be a whole number from {least} on")
