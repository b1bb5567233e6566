"""What came of a configuration as one HTML page, and in an SQLite database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from html import escape
from pathlib import Path
from typing import Any

from ...errors import FileError
from ...frames import RUN_COLUMNS, SCORE_COLUMNS, TASK_COLUMNS, clean_text
from ...types import content_id
from .outcome import ERROR, FAILED, PASSED, Outcome, Verdict, called, dollars, write

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem; border-bottom: 1px solid #ddd; }
details { border: 1px solid #ddd; border-radius: 4px; padding: .4rem .8rem; margin: .5rem 0; }
summary { cursor: pointer; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f6f6f6; padding: .5rem; margin: .25rem 0; }
.PASSED { color: #176b2c; } .FAILED { color: #b3261e; } .ERROR { color: #8a5a00; }
"""


def write_html(outcome: Outcome, path: Path) -> None:
    """One page that needs nothing else: no script, no font, no picture; every text escaped."""
    counts = {
        "Tests": len(outcome.verdicts),
        "Passed": outcome.count(PASSED),
        "Failed": outcome.failed,
        "Errors": outcome.errors,
    }
    facts = {
        **counts,
        "Success rate": f"{outcome.rate:.1%}",
        "Cost": dollars(outcome.cost_usd),
        "Time": f"{outcome.seconds:.1f} s",
    }
    title = f"Evaluation: {outcome.path.name}"
    write(
        path,
        f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p>{escape(outcome.made)}</p>
{_table(facts, [facts.values()])}
{"".join(_run(verdict) for verdict in outcome.verdicts)}
</body>
</html>
""",
    )


def _run(verdict: Verdict) -> str:
    run, what = verdict.run, verdict.what
    head = " &middot; ".join(escape(part) for part in (run["task_id"], run["agent"], f"run {run['trial'] + 1}"))
    rows = [
        (called(score), _says(score), "" if score["score"] is None else f"{score['score']:.3f}", score["reason"])
        for score in verdict.scores
    ]
    failed = "" if run["status"] == "ok" else f"<p class='{ERROR}'>The run: {escape(str(run['error']))}</p>"
    facts = f"cost: {dollars(run['cost_usd'])}, time: {run['seconds']:.1f} s"
    expected = "" if run["reference"] is None else f"<h4>expected</h4>{_pre(run['reference'])}"
    summary = f"<summary><b class='{what}'>{what}</b> {head} ({escape(facts)})</summary>"
    return (
        f"<details{'' if what == PASSED else ' open'}>{summary}"
        f"{failed}{_table(('evaluator', 'verdict', 'score', 'reason'), rows)}{expected}"
        f"<h4>transcript</h4>{''.join(_message(message) for message in run['messages'] or [])}</details>\n"
    )


def _says(score: Mapping[str, Any]) -> str:
    if score["status"] != "ok":
        return str(score["status"])
    return {True: PASSED, False: FAILED}.get(score["passed"], "")


def _message(message: Mapping[str, Any]) -> str:
    calls = [call.get("function") or {} for call in message.get("tool_calls") or ()]
    called_tools = "".join(_pre(f"{call.get('name')}({call.get('arguments')})") for call in calls)
    return f"<div><b>{escape(str(message.get('role')))}</b>{_pre(message.get('content') or '')}{called_tools}</div>"


def _pre(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1, default=str)
    return f"<pre>{escape(text)}</pre>" if text else ""


def _table(heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    head = "".join(f"<th>{escape(str(name))}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


# --- the database -------------------------------------------------------------------------------

_EVALUATIONS = {
    "evaluation_id": "TEXT",
    "made": "TEXT",
    "configuration": "TEXT",
    "tests": "INTEGER",
    "passed": "INTEGER",
    "failed": "INTEGER",
    "errors": "INTEGER",
    "success_rate": "REAL",
    "cost_usd": "REAL",
    "seconds": "REAL",
}
_TYPES = {"int64": "INTEGER", "Int64": "INTEGER", "bool": "INTEGER", "boolean": "INTEGER", "float64": "REAL"}


def _columns(dtypes: Mapping[str, str]) -> dict[str, str]:
    return {"evaluation_id": "TEXT", **{name: _TYPES.get(dtype, "TEXT") for name, dtype in dtypes.items()}}


def write_database(outcome: Outcome, path: Path) -> None:
    """Add the outcome to an SQLite file, which is made where it is missing.

    Tables ``evaluations`` (one row for each call), ``runs`` and ``scores`` (the columns of the
    frames, nested values as JSON, and ``evaluation_id``).
    """
    verdicts = outcome.verdicts
    about = {
        "made": outcome.made,
        "configuration": str(outcome.path),
        "tests": len(verdicts),
        "passed": outcome.count(PASSED),
        "failed": outcome.failed,
        "errors": outcome.errors,
        "success_rate": outcome.rate,
        "cost_usd": outcome.cost_usd,
        "seconds": outcome.seconds,
    }
    runs = [{**verdict.run} for verdict in verdicts]
    scores = [{**score} for verdict in verdicts for score in verdict.scores]
    key = content_id([about, [run["metadata"] for run in runs]])
    tables = {
        "evaluations": (_EVALUATIONS, [about]),
        "runs": (_columns({**RUN_COLUMNS, **TASK_COLUMNS, "test_case": "object"}), runs),
        "scores": (_columns(SCORE_COLUMNS), scores),
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=30)) as database, database:
            for name, (columns, rows) in tables.items():
                _insert(database, name, columns, [{**row, "evaluation_id": key} for row in rows])
    except (sqlite3.Error, OSError) as error:
        raise FileError(f"cannot be written: {error}", path) from None


def _insert(database: sqlite3.Connection, table: str, columns: Mapping[str, str], rows: list[dict[str, Any]]) -> None:
    written = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
    database.execute(f'CREATE TABLE IF NOT EXISTS "{table}" ({written})')
    there = {row[1] for row in database.execute(f'PRAGMA table_info("{table}")')}
    for name, kind in columns.items():  # a file that an earlier release wrote
        if name not in there:
            database.execute(f'ALTER TABLE "{table}" ADD COLUMN "{name}" {kind}')
    names, marks = ", ".join(f'"{name}"' for name in columns), ", ".join("?" for _ in columns)
    values = [[_cell(row.get(name)) for name in columns] for row in rows]
    database.executemany(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', values)


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, (int, float)):
        return value
    return json.dumps(value, default=str)
