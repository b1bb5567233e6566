"""Runs and scores as logs of Inspect's, which ``inspect view`` shows (`to_inspect`).

The form is that of inspect_ai's ``EvalLog``, version 2 (https://inspect.aisi.org.uk/reference/inspect_ai.log.html).
"""

from __future__ import annotations

import json
import math
import os
import re
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from .. import __version__
from ..errors import FileError, InputError
from ..frames import RUN_KEYS, clean_text, rows_of
from ..types import content_id
from . import cells
from .inspect_messages import CARRIED, to_inspect_messages
from .places import manifest_text, path_of, replacing, target_of, write_manifest
from .provenance import manifest

_SUFFIXES = (".eval", ".json")
# Standard reasons of Inspect's for a score that is none.
_REASONS = {"unparsed": "grader_failed", "error": "scoring_failed"}
_Log = dict[str, Any]


def to_inspect(
    runs: pd.DataFrame, path: str | os.PathLike[str], *, scores: pd.DataFrame | None = None, task: str = "mcpeval"
) -> Path:
    """Write runs, and what was said of them, as logs that Inspect reads and ``inspect view`` shows.

    A sample is a task, an epoch a trial, a scorer an evaluator. A score of a run that passed or failed is
    ``C`` or ``I``, any other its number; a row that was not scored is NaN, as Inspect has it, with the
    reason. What Inspect has no place for is carried along in metadata under ``mcpeval``, so that
    `read_runs` and `interop.recorded_scores` give back what was written.

    Parameters
    ----------
    runs : DataFrame
        Reads all columns; `messages`, or `question` and `output`, make the conversation.
    path : path-like
        ``.eval`` or ``.json``: one log, which has one agent and one model. Any other is a folder, made
        where there is none: one ``.eval`` for each agent and model. A manifest lies beside each.
    scores : DataFrame, optional
        As `score` returns it; its rows find their run by `run_id`.
    task : str
        What Inspect is to call the benchmark.

    Returns
    -------
    Path
        Of the log, or of the folder.

    Raises
    ------
    InputError
        The file would hold several agents, or one agent the same trial of a task twice; `scores` has
        rows of no run; a cell is no JSON.
    FileError
        As `to_csv`.
    """
    if not isinstance(task, str) or not task.strip():
        raise InputError(f"to_inspect: task={task!r:.80} should be a name")
    is_file = path_of(path, "to_inspect").suffix.lower() in _SUFFIXES
    target = target_of(runs, path, "to_inspect") if is_file else _folder(runs, Path(path))
    rows = _plain_rows(runs)
    said = _said(scores, [row["run_id"] for row in rows])
    places: dict[tuple[str, str], list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault((row.get("agent") or "agent", row.get("model") or "none/none"), []).append(place)
    if is_file and len(places) > 1:
        named = ", ".join(" of ".join(map(repr, pair)) for pair in list(places)[:4])
        raise InputError(
            f"to_inspect: a log is of one agent and one model, and runs has {named}; give a folder, and each gets a log"
        )
    files = [target] if is_file else _names(target, task, list(places))
    logs = [_log([rows[i] for i in chosen], said, pair, task) for pair, chosen in places.items()]
    abouts = [manifest_text(manifest(runs.iloc[chosen])) for chosen in places.values()]
    for file, log, about in zip(files, logs, abouts):
        with replacing(file) as written:
            (_write_eval if file.suffix.lower() == ".eval" else _write_json)(log, written)
        write_manifest(file, about)
    return target


def _folder(runs: Any, folder: Path) -> Path:
    if not isinstance(runs, pd.DataFrame):
        raise InputError(f"to_inspect: runs is a {type(runs).__name__}; expected a DataFrame, then a path")
    if folder.suffix:
        raise FileError(f"has the suffix {folder.suffix!r}; expected .eval, .json, or the name of a folder", folder)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot be made: {error.strerror or error}", folder) from error
    return folder


def _names(folder: Path, task: str, pairs: Sequence[tuple[str, str]]) -> list[Path]:
    stems = [re.sub(r"[^\w.]+", "-", f"{task} {agent} {model}".replace("_", "-"))[:120] for agent, model in pairs]
    numbered = [stem if stems.count(stem) == 1 else f"{stem}-{place}" for place, stem in enumerate(stems, start=1)]
    return [folder / f"{stem}.eval" for stem in numbered]


def _plain_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as JSON values that UTF-8 can hold, each with its ``run_id``."""
    named = [str(label) for label in frame.index.tolist()]
    rows = []
    for label, row in zip(named, rows_of(frame)):
        try:
            plain = _clean(json.loads(cells.to_json(row)))
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"to_inspect: run {label!r} cannot be written as JSON: {error}") from error
        if plain.get("run_id") is None:
            plain["run_id"] = label
        rows.append(plain)
    return rows


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_clean(one) for one in value]
    if isinstance(value, dict):
        return {clean_text(key): _clean(one) for key, one in value.items()}
    return value


def _said(scores: pd.DataFrame | None, run_ids: Sequence[Any]) -> dict[Any, list[dict[str, Any]]]:
    """The scores rows of each run."""
    said: dict[Any, list[dict[str, Any]]] = {run_id: [] for run_id in run_ids}
    if scores is None:
        return said
    if not isinstance(scores, pd.DataFrame):
        raise InputError(f"to_inspect: scores is a {type(scores).__name__}; expected a frame, as score() returns it")
    for name in ("evaluator", "score"):
        if name not in scores.columns:
            raise InputError(f"to_inspect: scores has no column {name!r}; expected a frame, as score() returns it")
    for row in _plain_rows(scores):
        if row["run_id"] not in said:
            raise InputError(f"to_inspect: scores has a row of the run {row['run_id']!r}, which is not in runs")
        said[row["run_id"]].append(row)
    return said


# --- one log -------------------------------------------------------------------------------------


def _log(rows: list[dict[str, Any]], said: Mapping[Any, Any], pair: tuple[str, str], task: str) -> _Log:
    agent, model = pair
    samples = [_sample(row, said[row["run_id"]], model) for row in rows]
    seen: set[tuple[str, int]] = set()
    for sample in samples:
        if (sample["id"], sample["epoch"]) in seen:
            told = f"trial {sample['epoch'] - 1} of the task {sample['id']!r}"
            raise InputError(f"to_inspect: the agent {agent!r} has {told} twice; give each trial its number")
        seen.add((sample["id"], sample["epoch"]))
    ids = list(dict.fromkeys(sample["id"] for sample in samples))
    broken = sum("error" in sample for sample in samples)
    started, completed = _span(samples)
    spec = {
        "eval_id": content_id([task, agent, model, ids]),
        "run_id": content_id([row["run_id"] for row in rows]),
        "created": started,
        "task": task,
        "task_id": content_id([task, agent, model]),
        "task_version": 0,
        "solver": agent,
        "dataset": {"name": task, "samples": len(ids), "sample_ids": ids, "shuffled": False},
        "model": model,
        "config": {"epochs": max((sample["epoch"] for sample in samples), default=1)},
        "packages": {"mcpeval": __version__},
    }
    return {
        "version": 2,
        "status": "success",
        "eval": spec,
        "plan": {"name": "plan", "steps": [{"solver": agent, "params": {}}], "config": {}},
        "results": {
            "total_samples": len(samples),
            "completed_samples": len(samples) - broken,
            "scores": _results(samples),
        },
        "stats": {"started_at": started, "completed_at": completed, "model_usage": {}},
        "samples": samples,
    }


def _sample(row: dict[str, Any], said: Sequence[dict[str, Any]], model: str) -> dict[str, Any]:
    question, output, reference = row.get("question"), row.get("output"), row.get("reference")
    listed = isinstance(row.get("messages"), list) and all(isinstance(one, dict) for one in row["messages"])
    messages = row["messages"] if listed else []
    if not messages:
        pair = [("user", question), ("assistant", output)]
        messages = [{"role": role, "content": text} for role, text in pair if isinstance(text, str)]
    calls = [call for call in row.get("tool_calls") or () if isinstance(call, dict)]
    # Where Inspect's own field holds all of a cell, the cell need not be carried along.
    own = {
        "question": isinstance(question, str) and question != "",
        "output": isinstance(output, str) and output != "",
        "reference": isinstance(reference, str) and reference != "",
        "messages": listed and messages is row["messages"],
    }
    trial = row.get("trial")
    sample = {
        "id": _sample_id(row),
        "epoch": trial + 1 if isinstance(trial, int) and trial >= 0 else 1,
        "input": question if own["question"] else "",
        "target": reference if isinstance(reference, str) else _target(reference),
        "messages": to_inspect_messages(messages, calls),
        "output": _output(output if own["output"] else None, row, model),
        "scores": _scores(said),
        "metadata": {
            **{key: row[key] for key in ("category", "error_class") if row.get(key)},
            CARRIED: {key: value for key, value in row.items() if not own.get(key)},
        },
        "model_usage": _usage(row, model),
        "uuid": str(row["run_id"]),
    }
    about = row.get("metadata") if isinstance(row.get("metadata"), dict) else {}
    if (started := _time(about.get("started"))) is not None:
        sample["started_at"] = started.isoformat()
    if isinstance(row.get("seconds"), int | float) and math.isfinite(row["seconds"]):
        sample["total_time"] = float(row["seconds"])
    if row.get("status") == "error":
        told = str(row.get("error") or row.get("error_class") or "the run failed")
        sample["error"] = {"message": told, "traceback": told, "traceback_ansi": told}
    return sample


def _sample_id(row: Mapping[str, Any]) -> str:
    """The task's name, as the name of a file in a zip can hold it."""
    name = str(row.get("task_id") or row["run_id"])
    safe = re.sub(r"[\x00-\x1f\x7f]", lambda found: f"%{ord(found[0]):02X}", name)
    return safe if len(safe) <= 200 else f"{safe[:180]}-{content_id(safe)}"


def _target(reference: Any) -> str | list[str]:
    if reference is None:
        return ""
    if isinstance(reference, list) and reference and all(isinstance(one, str) for one in reference):
        return reference
    return json.dumps(reference, ensure_ascii=False)


def _output(output: str | None, row: Mapping[str, Any], model: str) -> dict[str, Any]:
    if output is None:
        return {"model": model, "choices": [], "completion": ""}
    truncated = isinstance(row.get("metadata"), dict) and row["metadata"].get("truncated")
    message = {"role": "assistant", "content": output, "source": "generate", "model": model}
    choice = {"message": message, "stop_reason": "max_tokens" if truncated else "stop"}
    return {"model": model, "choices": [choice], "completion": output}


def _usage(row: Mapping[str, Any], model: str) -> dict[str, Any]:
    counts = [row.get("tokens_in"), row.get("tokens_out")]
    if not all(isinstance(count, int) for count in counts):
        return {}
    used = {"input_tokens": counts[0], "output_tokens": counts[1], "total_tokens": sum(counts)}
    cost = row.get("cost_usd")
    return {model: {**used, "total_cost": cost} if isinstance(cost, int | float) else used}


def _time(value: Any) -> datetime | None:
    """A time as ISO writes it, in UTC, as which one without a zone is read."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
        return found and (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _span(samples: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """When the first sample began and the last ended; now, where none says when it began."""
    began = [(datetime.fromisoformat(one["started_at"]), one) for one in samples if "started_at" in one]
    if not began:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return now, now
    last = max(start.timestamp() + one.get("total_time", 0.0) for start, one in began)
    return min(start for start, _ in began).isoformat(), datetime.fromtimestamp(last, UTC).isoformat()


# --- scores --------------------------------------------------------------------------------------


def _scores(said: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Inspect's scores of a sample, one for each evaluator; of one that was asked several times, each by its number."""
    made: dict[str, Any] = {}
    for row in said:
        name = str(row["evaluator"])
        if row.get("sample"):
            name = f"{name} [sample {row['sample']}]"
        while name in made:
            name = f"{name}'"
        made[name] = _score(row)
    return made


def _score(row: dict[str, Any]) -> dict[str, Any]:
    score, status = row.get("score"), row.get("status") or "ok"
    carried = {key: value for key, value in row.items() if key not in (*RUN_KEYS, "reason")}
    made: dict[str, Any] = {"explanation": row.get("reason") or row.get("error"), "metadata": {CARRIED: carried}}
    if not row.get("reason"):
        carried["reason"] = row.get("reason")
    if score is None:
        return {"value": math.nan, "reason": _REASONS.get(status, status), **made}
    if row.get("passed") is not None and score == float(row["passed"]):
        return {"value": "C" if row["passed"] else "I", **made}
    return {"value": score, **made}


def _results(samples: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The mean of each scorer over the samples that it scored."""
    values: dict[str, list[float]] = {}
    for sample in samples:
        for name, score in sample["scores"].items():
            given = score["metadata"][CARRIED].get("score")
            values.setdefault(name, []).append(math.nan if given is None else float(given))
    made = []
    for name, given in values.items():
        scored = [value for value in given if not math.isnan(value)]
        mean = {"name": "mean", "value": sum(scored) / len(scored), "params": {}} if scored else None
        counts = {"scored_samples": len(scored), "unscored_samples": len(given) - len(scored)}
        made.append({"name": name, "scorer": name, **counts, "params": {}, "metrics": {"mean": mean} if mean else {}})
    return made


# --- the files -----------------------------------------------------------------------------------


def _write_json(log: _Log, path: Path) -> None:
    path.write_text(json.dumps(log, ensure_ascii=False, indent=2), "utf-8")


def _write_eval(log: _Log, path: Path) -> None:
    """A zip file: what was planned, each sample, what is shown of all in a list, and the log without samples."""
    header = {key: value for key, value in log.items() if key != "samples"}
    listed = ("id", "epoch", "input", "target", "metadata", "model_usage", "uuid", "started_at", "total_time")
    summaries = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        _put(archive, "_journal/start.json", {key: log[key] for key in ("version", "eval", "plan")})
        for sample in log["samples"]:
            _put(archive, f"samples/{sample['id']}_epoch_{sample['epoch']}.json", sample)
            summary = {key: sample[key] for key in listed if key in sample}
            shown = {name: {**score, "metadata": None} for name, score in sample["scores"].items()}
            metadata = {key: value for key, value in sample["metadata"].items() if key != CARRIED}
            error = sample["error"]["message"] if "error" in sample else None
            counted = {"completed": True, "message_count": len(sample["messages"]), "error": error}
            summaries.append({**summary, "scores": shown, "metadata": metadata, **counted})
        _put(archive, "summaries.json", summaries)
        _put(archive, "header.json", header)


def _put(archive: zipfile.ZipFile, name: str, value: Any) -> None:
    archive.writestr(name, json.dumps(value, ensure_ascii=False))
