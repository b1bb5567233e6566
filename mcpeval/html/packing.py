"""The runs of a report: one record each for the table, and the transcripts, compressed."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from ..errors import InputError
from ..frames import clean_text, rows_of
from . import numbers
from .conversation import article
from .elements import Html, plain
from .images import Images
from .steps import whole
from .verdicts import json_text, rows_of_scores, said_of, state_of

#: Characters of transcripts that are compressed, and read, together.
CHUNK = 400_000
_EXCERPT = 160


def packed(value: Any, name: str) -> Html:
    """A JSON value in a block that no browser runs or reads: zlib's bytes in base64, which has no markup."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    data = base64.b64encode(zlib.compress(text.encode(), 7)).decode()
    return Html(f'<script type="application/octet-stream" id="{name}">{data}</script>\n')


def runs_of(runs: pd.DataFrame | None, scores: pd.DataFrame) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each run with its scores, in the order of `runs`; without runs, what the scores know of them.

    Raises
    ------
    InputError
        Two runs have the same ``run_id``, so nobody knows whose the scores are.
    """
    said: dict[Any, list[dict[str, Any]]] = {}
    for score in rows_of_scores(scores, "report"):
        said.setdefault(str(score["run_id"]), []).append(score)
    if runs is None:
        known = ("run_id", "task_id", "category", "agent", "model", "trial")
        return [({key: own[0].get(key) for key in known}, own) for own in said.values()]
    rows = [whole(row) for row in rows_of(runs)]
    for label, row in zip(runs.index.tolist(), rows):
        row["run_id"] = str(label if row.get("run_id") is None else row["run_id"])
    seen: set[Any] = set()
    for row in rows:
        if row["run_id"] in seen:
            raise InputError(f"report: runs has run_id={row['run_id']!r} more than once; give each run its own")
        seen.add(row["run_id"])
    if strangers := [run_id for run_id in said if run_id not in seen]:
        n = numbers.several(len(strangers), "run")
        raise InputError(f"report: scores has {n} that runs has not, such as run_id={strangers[0]!r}")
    return [(row, said.get(row["run_id"], [])) for row in rows]


def blocks(found: Iterable[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]], images: Images) -> Iterator[Html]:
    """The data of a report: blocks of transcripts, and last the block of records that says where each is."""
    evaluators: dict[str, int] = {}
    records: list[list[Any]] = []
    chunk: list[str] = []
    number = size = 0
    for row, scores in found:
        text = str(article(row, scores, images))
        if chunk and size + len(text) > CHUNK:
            yield packed(chunk, f"chunk-{number}")
            chunk, size, number = [], 0, number + 1
        records.append(_record(row, scores, evaluators, (number, len(chunk))))
        chunk.append(text)
        size += len(text)
    if chunk:
        yield packed(chunk, f"chunk-{number}")
    yield packed({"evaluators": list(evaluators), "runs": records}, "records")


def _record(
    row: Mapping[str, Any],
    scores: Sequence[Mapping[str, Any]],
    evaluators: dict[str, int],
    place: tuple[int, int],
) -> list[Any]:
    """What the table needs of a run, in the order in which ``report.js`` reads it."""
    verdicts = []
    for score in scores:
        name = plain(score.get("evaluator") or "score")
        verdicts.append([evaluators.setdefault(name, len(evaluators)), state_of(score), plain(said_of(score))])
    error_class = plain(row["error_class"]) if row.get("error_class") else ""
    if not error_class and row.get("status") == "error":
        error_class = "error"
    searched = [row.get("question"), row.get("output"), row.get("error"), row.get("run_id"), row.get("model")]
    searched += [score.get("reason") for score in scores]
    return [
        plain(row["run_id"]),
        _name(row.get("task_id")),
        _name(row.get("category")),
        _name(row.get("agent")),
        numbers.known(row.get("trial")) or 0,
        plain(" ".join(str(row.get("question") or row.get("output") or "")[: 2 * _EXCERPT].split())[:_EXCERPT]),
        error_class,
        numbers.known(row.get("cost_usd")),
        numbers.known(row.get("seconds")),
        verdicts,
        clean_text("\n".join(json_text(part, indent=None) for part in searched if part is not None)),
        *place,
    ]


def _name(value: Any) -> str:
    return "" if value is None else plain(value)
