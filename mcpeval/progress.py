"""One line that says how far long work is: rows done, failed, cached, dollars."""

from __future__ import annotations

import sys
from typing import Any


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
    """

    def __init__(self, total: int, what: str, show: bool | None = None) -> None:
        self.failed, self.cached, self.cost_usd, self._priced = 0, 0, 0.0, True
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

    def advance(self, *, failed: bool = False, cached: bool = False, cost_usd: float | None = 0.0) -> None:
        """One more row is done."""
        self.failed += failed
        self.cached += cached
        if cost_usd is None:
            self._priced = False
        else:
            self.cost_usd += cost_usd
        if self._bar is not None:
            self._bar.set_postfix_str(self.summary(), refresh=False)
            self._bar.update()

    def summary(self) -> str:
        """What the line says behind the bar: ``2 failed, 40 cached, $0.013``."""
        cost = f"${self.cost_usd:.3f}" + ("" if self._priced else " + unknown")
        return f"{self.failed} failed, {self.cached} cached, {cost}"

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
