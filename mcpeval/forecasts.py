"""What scoring would cost: dollars beside the calls and tokens that ``score(dry_run=True)`` counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

#: Tokens of the shortest answers: a reason of a few words and the verdict.
SHORT = 20
#: Characters to a token in the longest ones; reasons in other scripts than Latin come to about two.
DENSE = 2
#: Tokens that are sent beside its own answer when a model is asked again, for each verdict in it.
REASK = 150

PRICES = {"usd_low": "float64", "usd_high": "float64"}


def priced(lines: pd.DataFrame, evaluators: Mapping[str, Any]) -> pd.DataFrame:
    """`lines` with what their calls cost at least and at most.

    Parameters
    ----------
    lines : DataFrame
        One row per evaluator; reads ``evaluator``, ``calls``, ``prompt_tokens``.
    evaluators : mapping of str to evaluator
        By the names in ``evaluator``.

    Returns
    -------
    DataFrame
        With ``usd_low`` (each call is made, and answered at once in 20 tokens) and ``usd_high`` (each is
        asked again as often as the judge's ``reasks`` allow, each answer is as long as its
        ``max_reason``, for each point of a checklist, or its ``max_tokens`` allow, and where a judge
        may draw ``fallback_samples`` it does), in US dollars. Missing where the price of a model is
        unknown. Of several models the cheapest makes the low end and the dearest the high one, and of
        several judges the one with the longest answers.
    """
    ranges = [
        _range(evaluators[name], int(calls), float(tokens))
        for name, calls, tokens in zip(lines["evaluator"], lines["calls"], lines["prompt_tokens"])
    ]
    return lines.assign(
        usd_low=pd.Series([low for low, _ in ranges], lines.index, dtype="float64"),
        usd_high=pd.Series([high for _, high in ranges], lines.index, dtype="float64"),
    )


def _range(evaluator: Any, calls: int, prompt_tokens: float) -> tuple[float | None, float | None]:
    models = getattr(evaluator, "models", ())
    if not calls or not models:
        return 0.0, 0.0
    from .llm import prices

    known = [prices(model) for model in models]
    if None in known:
        return None, None
    judges = _judges(evaluator)
    longest, attempts = max(map(_longest, judges)), 1 + max(getattr(judge, "reasks", 2) for judge in judges)
    draws = 1 + max(getattr(judge, "fallback_samples", None) or 0 for judge in judges)
    # The n-th attempt repeats the prompt, the answers before it and what was wrong with each.
    told = REASK * max(len(_lengths(judge)) for judge in judges)
    sent = attempts * prompt_tokens + calls * (longest + told) * attempts * (attempts - 1) / 2
    low = min(read * prompt_tokens + write * calls * SHORT for read, write in known)
    high = max(read * sent + write * calls * attempts * longest for read, write in known)
    return low, high * draws


def _judges(evaluator: Any) -> list[Any]:
    """Those that ask a model: itself, or what it is made of."""
    parts = [part for part in getattr(evaluator, "parts", {}).values() if getattr(part, "models", ())]
    return [judge for part in parts for judge in _judges(part)] or [evaluator]


def _longest(judge: Any) -> int:
    """Tokens of the longest answer."""
    params = getattr(judge, "params", {})
    limit = params.get("max_completion_tokens") or params.get("max_tokens")
    longest = sum(length // DENSE + SHORT for length in _lengths(judge))
    return min(longest, limit) if isinstance(limit, int) else longest


def _lengths(judge: Any) -> tuple[int, ...]:
    """Characters of the reasons in the longest answer."""
    return getattr(judge, "lengths", (400,))
