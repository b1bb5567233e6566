"""What came of a configuration, run by run: passed, failed, or without a verdict."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from ...errors import FileError
from ...frames import rows_of
from .cases import Case

PASSED, FAILED, ERROR = "PASSED", "FAILED", "ERROR"
NO_SCORE = ("error", "unparsed", "budget")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


@dataclass(frozen=True)
class Verdict:
    """One run with what every evaluator says of it.

    Attributes
    ----------
    run : dict
        The row of the runs frame.
    scores : list of dict
        Its rows of the scores frame.
    """

    run: Mapping[str, Any]
    scores: Sequence[Mapping[str, Any]]

    @property
    def what(self) -> str:
        """`PASSED`, `FAILED` where an evaluator did not pass it, `ERROR` where it was not run or not scored."""
        if self.run["status"] != "ok" or any(score["status"] in NO_SCORE for score in self.scores):
            return ERROR
        said = [score["passed"] for score in self.scores]
        if False in said:
            return FAILED
        return PASSED if True in said else ERROR


@dataclass(frozen=True)
class Outcome:
    """Everything that came of a configuration.

    Attributes
    ----------
    path : Path
        The configuration.
    cases : sequence of Case
    runs, scores : DataFrame
    defaults : Path or None
        The file of defaults beneath the configuration.
    made : str
        When, in UTC.
    """

    path: Path
    cases: Sequence[Case]
    runs: pd.DataFrame
    scores: pd.DataFrame
    defaults: Path | None = None
    made: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """One for each run, in order."""
        scores: dict[str, list[dict[str, Any]]] = {}
        for row in rows_of(self.scores):
            scores.setdefault(row["run_id"], []).append(row)
        return [Verdict(run, scores.get(run["run_id"], [])) for run in rows_of(self.runs)]

    def count(self, what: str) -> int:
        return sum(verdict.what == what for verdict in self.verdicts)

    @property
    def failed(self) -> int:
        return self.count(FAILED)

    @property
    def errors(self) -> int:
        return self.count(ERROR)

    @property
    def rate(self) -> float:
        """Share of the runs that passed."""
        return self.count(PASSED) / len(self.verdicts) if self.verdicts else 0.0

    @property
    def cost_usd(self) -> float | None:
        """What was paid now for runs and scores; None where a price is unknown."""
        costs = [row["cost_usd"] for verdict in self.verdicts for row in (verdict.run, *verdict.scores)]
        return None if None in costs else sum(costs)

    @property
    def seconds(self) -> float:
        """The time of all runs together."""
        return sum(verdict.run["seconds"] or 0.0 for verdict in self.verdicts)


def called(score: Mapping[str, Any]) -> str:
    """What an evaluator calls itself (``evaluator_type``), else its name."""
    return str((score["metadata"] or {}).get("evaluator_type") or score["evaluator"])


def one_line(text: Any, most: int = 300) -> str:
    """A text on one line, without what could steer a terminal; cut where it is long, and marked so."""
    text = _CONTROL.sub(" ", str(text or "")).strip()
    return text if len(text) <= most else f"{text[:most]}... ({len(text) - most} more characters)"


def dollars(cost: float | None) -> str:
    """``$0.0012``, or that it is unknown."""
    return "unknown" if cost is None else f"${cost:.4f}"


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all; its folder is made where it is missing."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(text.encode("utf-8", "replace"))
        os.replace(part, path)
    except OSError as error:
        raise FileError(f"cannot be written: {error}", path) from None
    finally:
        part.unlink(missing_ok=True)
