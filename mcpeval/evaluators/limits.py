"""Evaluators of what a run cost and how long it took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..types import Score
from .arguments import need_number


@dataclass(frozen=True)
class CostLimit:
    """Whether a run cost no more than it may.

    Parameters
    ----------
    limit : float
        US dollars.
    name : str

    Notes
    -----
    Reads ``cost_usd`` and, for a run out of the cache, ``metadata["saved_usd"]``: what it cost when
    it was paid. A run whose price is unknown is ``skipped``: unknown is not free.
    """

    limit: float = 1.0
    name: str = "cost"

    kind: ClassVar[str] = "limit"
    immediate: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("cost_usd",)

    def __post_init__(self) -> None:
        need_number("CostLimit", "limit", self.limit)

    def evaluate(self, row: Mapping[str, Any]) -> Score:
        """1 where the run cost at most the limit, else 0."""
        metadata = row["metadata"] if isinstance(row.get("metadata"), Mapping) else {}
        parts = (row.get("cost_usd"), metadata.get("saved_usd", 0.0))
        if None in parts:
            return Score(None, "what the run cost is unknown", metadata={"threshold": self.limit})
        cost = sum(parts)
        about = {"cost_usd": cost, "threshold": self.limit}
        return Score(float(cost <= self.limit), f"${cost:.4g}, at most ${self.limit:g}", metadata=about)


@dataclass(frozen=True)
class LatencyLimit:
    """Whether a run took no longer than it may.

    Parameters
    ----------
    limit : float
        Seconds.
    name : str

    Notes
    -----
    Reads ``seconds``, which for a run out of the cache is what it took at first. A run of unknown
    duration is ``skipped``.
    """

    limit: float = 30.0
    name: str = "latency"

    kind: ClassVar[str] = "limit"
    immediate: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("seconds",)

    def __post_init__(self) -> None:
        need_number("LatencyLimit", "limit", self.limit)

    def evaluate(self, row: Mapping[str, Any]) -> Score:
        """1 where the run took at most the limit, else 0."""
        if (seconds := row.get("seconds")) is None:
            return Score(None, "how long the run took is unknown", metadata={"threshold": self.limit})
        about = {"seconds": seconds, "threshold": self.limit}
        return Score(float(seconds <= self.limit), f"{seconds:.3g} s, at most {self.limit:g} s", metadata=about)
