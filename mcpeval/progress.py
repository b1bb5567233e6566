"""One line that says how far long work is: rows done, failed, cached, dollars.

The same is written beside the cache (`recording`), where ``mcpeval serve`` reads it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .recording import Record


def _somebody_watches() -> bool:
    # A notebook's stderr is no terminal, and is watched all the same.
    return sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules)


class Progress:
    """A progress line on stderr; nothing where nobody watches and nobody asked.

    Parameters
    ----------
    total : int
        Rows to do.
    what : str
        What is done, shown at the front: "run", "score".
    show : bool, optional
        None shows it in a terminal and in a notebook, once the work has lasted half a second.
    folder : Path, optional
        Of the cache that the work fills: the record of how far it is stands there.
    parts : mapping, optional
        Rows of each part of the work, by its name, for the record.
    """

    def __init__(
        self,
        total: int,
        what: str,
        show: bool | None = None,
        *,
        folder: Path | None = None,
        parts: Mapping[str, int] | None = None,
    ) -> None:
        self.failed, self.cached, self.cost_usd, self._priced = 0, 0, 0.0, True
        self._record = Record(folder, what, total, parts or {}) if total and folder is not None else None
        self._bar: Any = None
        if total and (_somebody_watches() if show is None else show):
            from tqdm import tqdm

            self._bar = tqdm(
                total=total,
                desc=what,
                unit="row",
                delay=0.5 if show is None else 0,
                leave=bool(show),
                dynamic_ncols=True,
            )

    @property
    def shown(self) -> bool:
        """Whether anybody is shown the line."""
        return self._bar is not None

    @property
    def recorded(self) -> bool:
        """Whether it is written down how far the work is."""
        return self._record is not None

    def advance(
        self,
        rows: int = 1,
        *,
        failed: bool = False,
        cached: bool = False,
        cost_usd: float | None = 0.0,
        part: str | None = None,
        error: str | None = None,
    ) -> None:
        """One more row is done, or several; of which `part`, and what went wrong, is for the record."""
        if self._record is not None:
            self._record.advance(rows, failed=failed, cached=cached, cost_usd=cost_usd, part=part, error=error)
        self.failed += failed
        self.cached += cached
        if cost_usd is None:
            self._priced = False
        else:
            self.cost_usd += cost_usd
        if self._bar is not None:
            self._bar.set_postfix_str(self.summary(), refresh=False)
            self._bar.update(rows)

    def summary(self) -> str:
        """What the line says behind the bar: ``2 failed, 40 cached, $0.013``."""
        cost = f"${self.cost_usd:.3f}" + ("" if self._priced else " + unknown")
        return f"{self.failed} failed, {self.cached} cached, {cost}"

    def close(self, *, interrupted: bool = False) -> None:
        if self._bar is not None:
            self._bar.close()
        if self._record is not None:
            self._record.close("interrupted" if interrupted else "done")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close(interrupted=exc[0] is not None)
