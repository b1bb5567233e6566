"""Where a frame comes from: versions, models, judges, servers, cost (`manifest`)."""

from __future__ import annotations

import platform
from collections.abc import Hashable, Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pandas as pd

from .. import __version__
from ..errors import InputError
from ..evaluators.base import ORIGINS, TEXTS
from ..frames import rows_of

_LIBRARIES = ("pandas", "numpy", "scipy", "litellm", "instructor", "mcp", "pydantic", "diskcache", "pyarrow")
_SERVER_KEYS = ("name", "package", "package_version", "resolved", "server_info", "protocol", "tools_sha256")


def manifest(frame: pd.DataFrame) -> dict[str, Any]:
    """What must be known of a runs or scores frame to trust it or to make it again.

    Parameters
    ----------
    frame : DataFrame
        Reads `model`, `judge_model`, `fingerprint`, `metadata`, `cached` and `cost_usd` where they
        exist. The texts of judges and rules are those of evaluators that scored in this process, and
        those in ``frame.attrs["judges"]`` (fingerprint to a dict), where a file that was read has them;
        of scores, servers and dates are those of the runs, where they were scored in this process.

    Returns
    -------
    dict
        Plain JSON:

        - ``mcpeval``, ``python``, ``libraries`` (versions), ``platform``, ``written`` (UTC);
        - ``rows``, ``index`` (names of its levels), ``columns`` (name and dtype);
        - ``models`` of the agents, as asked for, and ``models_returned``, agents' and judges', as the
          providers named them;
        - ``judges``: fingerprint to all that makes the judge or rule, None where it is not known here;
        - ``servers``: of each its package and version, the command as it was resolved (``~`` for the home
          folder, ``{{VAR}}`` as written), what it said of itself, the protocol, a hash of its tools;
        - ``started``: when the first and the last of the runs began;
        - ``cached``: rows answered by the cache; ``cost_usd``: paid for these rows, None where one
          row's price is unknown, and ``cost_unknown``, how many are; ``saved_usd``: what the cached
          answers cost when they were paid for.

    Raises
    ------
    InputError
        `frame` is no DataFrame.
    """
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"manifest: frame is a {type(frame).__name__}; expected a DataFrame")
    wanted = ("run_id", "model", "judge_model", "fingerprint", "metadata", "cached", "cost_usd")
    rows = rows_of(frame[[name for name in wanted if name in frame.columns]])
    for row in rows:  # a frame of one's own may keep anything under these names
        run_id = row.get("run_id")
        origin = ORIGINS.get(run_id, {}) if isinstance(run_id, Hashable) else {}
        row["metadata"] = {**origin, **(row["metadata"] if isinstance(row.get("metadata"), Mapping) else {})}
    texts = {**TEXTS, **(frame.attrs.get("judges") or {})}
    fingerprints = _names(row.get("fingerprint") for row in rows)
    costs = [row.get("cost_usd") for row in rows]
    saved = [row["metadata"]["saved_usd"] for row in rows if "saved_usd" in row["metadata"]]
    started = _names(row["metadata"].get("started") for row in rows)
    return {
        "mcpeval": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "libraries": {name: found for name in _LIBRARIES if (found := _version(name))},
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "rows": len(frame),
        "index": list(frame.index.names) if _has_labels(frame) else [],
        "columns": [{"name": label, "dtype": str(dtype)} for label, dtype in zip(frame.columns, frame.dtypes)],
        "models": _names(row.get("model") for row in rows),
        "models_returned": _names(_returned(rows)),
        "judges": {name: texts.get(name) for name in fingerprints},
        "servers": _servers(rows),
        "started": [started[0], started[-1]] if started else [],
        "cached": sum(row.get("cached") is True for row in rows),
        "cost_usd": None if None in costs else sum(costs),
        "cost_unknown": costs.count(None),
        "saved_usd": None if None in saved else sum(saved),
    }


def _has_labels(frame: pd.DataFrame) -> bool:
    """Whether the index says more than the position of the row."""
    plain = frame.index.names == [None] and frame.index.equals(pd.RangeIndex(len(frame)))
    return not plain or frame.columns.empty and len(frame) > 0  # rows of nothing would leave nothing in a file


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _names(values: Any) -> list[str]:
    return sorted({value for value in values if isinstance(value, str)})


def _returned(rows: list[dict[str, Any]]) -> Iterator[Any]:
    for row in rows:
        yield row.get("judge_model")
        found = row["metadata"].get("model_returned")
        yield from found if isinstance(found, (list, tuple)) else [found]


def _servers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each server version that some run used, once, in the order of first use."""
    found: list[dict[str, Any]] = []
    for row in rows:
        for server in row["metadata"].get("servers") or ():
            known = {key: server[key] for key in _SERVER_KEYS if key in server} if isinstance(server, Mapping) else None
            if known and known not in found:
                found.append(known)
    return found
