"""Comparisons of two at a time: who is preferred, how sure that is, and what the order did to it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..errors import InputError, is_one_of
from ..evaluators.pairs import worth
from ..frames import RUN_KEYS, column
from .columns import cells, check_ci, check_column, check_frame, group_columns, group_keys, groups_of, numbers
from .summaries import summarize

_BY = ("evaluator",)
_PREFERENCES = {
    "win_rate": "float64",
    "low": "float64",
    "high": "float64",
    "wins": "int64",
    "ties": "int64",
    "losses": "int64",
    "n": "int64",
    "tasks": "int64",
    "unscored": "int64",
    **{f"{name}{end}": "float64" for name in ("consistency", "first_position") for end in ("", "_low", "_high")},
    "method": "str",
}
_ORDERS = {
    "pair": "str",
    "agent": "str",
    "opponent": "str",
    "order": "str",
    "first": "str",
    "label": "str",
    "score": "float64",
    "first_won": "boolean",
    "reason": "str",
    "status": "str",
}


class Comparison(NamedTuple):
    """One comparison of a scores frame.

    Attributes
    ----------
    place : int
        Of its row.
    between : (str, str)
        Those who are compared.
    score : float
        That of the first of `between`; NaN where there is none.
    orders : mapping
        Of each order that was asked, "ab" or "ba", what is known of the verdict.
    """

    place: int
    between: tuple[str, str]
    score: float
    orders: Mapping[str, Mapping[str, Any]]

    @property
    def consistent(self) -> bool | None:
        """Whether both orders say the same; None where not both gave a verdict."""
        worths = [worth(said.get("label"), order) for order, said in self.orders.items()]
        return None if len(worths) < 2 or None in worths else worths[0] == worths[1]


def comparisons_of(scores: pd.DataFrame, report: str) -> list[Comparison]:
    """The comparisons in a scores frame, each once: two runs that are compared have a row each.

    Raises
    ------
    InputError
        There is none.
    """
    check_frame(scores, report)
    metadata, values = cells(scores, "metadata"), numbers(scores, "score", report)
    who = list(zip(*(cells(scores, name) for name in ("evaluator", "fingerprint", "sample"))))
    found, seen = [], set()
    for place, cell in enumerate(metadata):
        if not isinstance(cell, Mapping) or cell.get("between") is None:
            continue
        between, orders = cell["between"], cell.get("orders") or {}
        if not (isinstance(between, (list, tuple)) and len(between) == 2 and isinstance(orders, Mapping)):
            raise InputError(
                f"{report}: the metadata of row {scores.index[place]!r} compare {between!r:.80} in the orders "
                f"{orders!r:.80}; expected two names, and a dict of orders"
            )
        if pair := cell.get("pair"):
            if (key := (who[place], *map(str, pair))) in seen:
                continue
            seen.add(key)
        score = 1.0 - values[place] if cell.get("mirrored") else values[place]
        found.append(Comparison(place, (str(between[0]), str(between[1])), score, orders))
    if not found:
        raise InputError(
            f"{report}: scores has no comparison of two: no row's metadata say 'between'; expected rows of Pairwise"
        )
    return found


def each_order(scores: pd.DataFrame) -> pd.DataFrame:
    """The raw verdicts behind comparisons, one row for each pair and order.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it of `mcpeval.evaluators.Pairwise`. Reads ``metadata``, ``score`` and the
        run's keys, ``evaluator``, ``fingerprint``, ``sample`` where they exist.

    Returns
    -------
    DataFrame
        Of the run's keys ``run_id``, ``task_id``, ``category`` and ``trial`` those that are there (of the row
        in which the pair first appears), ``evaluator``, ``sample``; then ``pair`` (a name for the
        comparison), ``agent`` and ``opponent`` (its two sides), ``order`` ("ab": the agent was shown first),
        ``first`` (who was), ``label`` (who won, or "tie"; missing without a verdict), ``score`` (that of the
        agent), ``first_won`` (missing for a tie), ``reason``, ``status``. `agreement` takes it with the
        preferences of people as labels: ``agreement(each_order(scores), preferred, by="order")``.

    Raises
    ------
    InputError
        There is no comparison in `scores`.
    """
    found = comparisons_of(scores, "each_order")
    keys = [
        key for key in (*RUN_KEYS, "evaluator", "sample") if key in scores.columns and key not in ("agent", "model")
    ]
    rows, places = [], []
    for number, one in enumerate(found):
        agent, opponent = one.between
        for order, said in one.orders.items():
            value = worth(said.get("label"), order)
            first = agent if order == "ab" else opponent
            won = None if value is None else "tie" if value == 0.5 else agent if value == 1 else opponent
            about = {"agent": agent, "opponent": opponent, "order": order, "first": first, "label": won, "score": value}
            about |= {"first_won": None if won in (None, "tie") else won == first, "pair": f"{number}"}
            rows.append({**about, "reason": said.get("reason"), "status": said.get("status", "ok")})
            places.append(one.place)
    columns = {name: column([row[name] for row in rows], dtype) for name, dtype in _ORDERS.items()}
    shown = scores[keys].iloc[places].reset_index(drop=True)
    return pd.concat([shown, pd.DataFrame(columns, index=shown.index)], axis=1)


def preferences(
    scores: pd.DataFrame, by: str | Sequence[str] = _BY, *, ci: float = 0.95, over: str = "task_id"
) -> pd.DataFrame:
    """How often one is preferred to the other, and how far that hangs on the order.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it of `mcpeval.evaluators.Pairwise`, or of a jury or a cascade of such. Reads
        ``metadata``, ``score``, the columns of `by`, `over` and, where they exist, ``run_id``,
        ``fingerprint``, ``sample``.
    by : str or list of str
        Columns that make the groups.
    ci : float
        Confidence of the intervals, which are those of `summarize`, over tasks.
    over : str
        As in `summarize`.

    Returns
    -------
    DataFrame
        One row for each group and pair of agents: the columns of `by`, ``agent``, ``opponent``,
        ``win_rate`` (mean score of the agent, a tie being half a win; samples and trials are averaged
        within their task), ``low``, ``high``, ``wins``, ``ties``, ``losses`` (of the agent, out of ``n``
        comparisons), ``tasks``, ``unscored``; ``consistency`` (share of the pairs about which both orders say
        the same) and ``first_position`` (share of the verdicts that are no tie and prefer what was shown
        first: 0.5 without a bias), each with ``_low`` and ``_high``; ``method`` of the interval of ``win_rate``.

    Raises
    ------
    InputError
        There is no comparison in `scores`, or an argument is impossible.

    References
    ----------
    Zheng and others (2023), arXiv 2306.05685: consistency and position bias.
    """
    found = comparisons_of(scores, "preferences")
    check_ci(ci, "preferences")
    if not is_one_of(over, ("task_id",)):
        check_column(scores, over, "preferences", "over")
    keys = group_keys(scores, by, _BY, [*_PREFERENCES, "agent", "opponent"], "preferences")
    chosen = scores.iloc[[one.place for one in found]]
    rows, labels = [], []
    for group, positions in groups_of(chosen, keys):
        pairs: dict[frozenset[str], list[Comparison]] = {}
        for position in positions:
            one = found[position]
            pairs.setdefault(frozenset(one.between), []).append(one)
        for own in pairs.values():
            rows.append(_line(scores, own, ci, over))
            labels.append(group)
    sides = {name: column([row[name] for row in rows], "str") for name in ("agent", "opponent")}
    columns = {name: column([row[name] for row in rows], dtype) for name, dtype in _PREFERENCES.items()}
    return pd.DataFrame({**group_columns(scores, keys, labels), **sides, **columns})


def _line(scores: pd.DataFrame, own: Sequence[Comparison], ci: float, over: str) -> dict[str, Any]:
    """What there is to say of one pair."""
    agent, opponent = own[0].between
    values = np.array([one.score if one.between[0] == agent else 1.0 - one.score for one in own])
    line: dict[str, Any] = {
        "agent": agent,
        "opponent": opponent,
        "wins": int((values > 0.5).sum()),
        "ties": int((values == 0.5).sum()),
        "losses": int((values < 0.5).sum()),
    }
    consistent = [one.consistent for one in own]
    measured = {
        "win_rate": [(one.place, value) for one, value in zip(own, values)],
        "consistency": [(one.place, float(same)) for one, same in zip(own, consistent) if same is not None],
        "first_position": [(one.place, float(won)) for one in own for won in _first_won(one)],
    }
    for name, pairs in measured.items():
        mean = _mean(scores, pairs, ci, over)
        line[name] = mean["score"]
        ends = ("low", "high") if name == "win_rate" else (f"{name}_low", f"{name}_high")
        line |= dict(zip(ends, (mean["low"], mean["high"])))
        if name == "win_rate":
            line |= {key: mean[key] for key in ("n", "tasks", "unscored", "method")}
    return line


def _first_won(one: Comparison) -> list[bool]:
    """Of the verdicts of a comparison that prefer one, whether it is what was shown first."""
    worths = {order: worth(said.get("label"), order) for order, said in one.orders.items()}
    return [(value == 1.0) == (order == "ab") for order, value in worths.items() if value not in (None, 0.5)]


def _mean(scores: pd.DataFrame, pairs: Sequence[tuple[int, float]], ci: float, over: str) -> dict[Hashable, Any]:
    """The mean and its interval over tasks, as `summarize` gives them."""
    names = ["run_id", *([over] if over in scores.columns else [])]
    frame = scores.iloc[[place for place, _ in pairs]].reindex(columns=names).reset_index(drop=True)
    frame["score"] = [value for _, value in pairs]
    if not pairs:
        return {"score": None, "low": None, "high": None, "n": 0, "tasks": 0, "unscored": 0, "method": None}
    return summarize(frame, by=[], ci=ci, over=over).iloc[0].to_dict()
