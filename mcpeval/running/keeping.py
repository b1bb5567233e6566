"""Finished runs in the cache, and the row of a frame that a run is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..agents.forms import formed
from ..caching import Cache
from ..errors import CacheError
from ..tracing import from_cache
from ..types import OWN_DOING, Run
from .inputs import Job


def kept(store: Cache, key: str) -> Run | None:
    return store.get(key, None, read=_read)


def _read(value: Any) -> Run:
    kept = Run.from_dict(value)
    if "model_asked" not in kept.metadata:  # `_perform` adds it to every run
        raise ValueError("it is not a run that was made here")
    return kept


def keep(store: Cache | None, key: str | None, done: Run) -> Run:
    finished = done.status == "ok" or done.error_class in OWN_DOING
    if store is None or store.replay or key is None or not finished:
        return done
    try:
        store.set(key, done.to_dict())
    except CacheError as error:
        return replace(done, metadata={**done.metadata, "not_cached": str(error)})
    return done


def row_of(job: Job, done: Run, kept: bool) -> dict[str, Any]:
    task, agent = job.task, job.agent
    usage = done.usage.from_cache() if kept else done.usage
    metadata = dict(done.metadata)
    output, well_formed = formed(done.output, task.output_format)
    if output != done.output:
        metadata["text"] = done.output
    model = metadata.pop("model_asked")
    if kept or usage.cached_calls:
        metadata["saved_usd"] = usage.saved_usd
    return {
        "run_id": job.run_id,
        "task_id": task.id,
        "category": task.category,
        "agent": agent.name,
        "model": model,
        "trial": job.trial,
        "question": task.question,
        "reference": task.reference,
        "output": output,
        "well_formed": well_formed,
        "messages": [dict(message) for message in done.messages],
        "tool_calls": [call.to_dict() for call in done.tool_calls],
        "status": done.status,
        "error": done.error,
        "error_class": done.error_class,
        "turns": done.turns,
        "n_tool_calls": len(done.tool_calls),
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "cost_usd": usage.cost_usd,
        "seconds": done.seconds,
        "cached": kept or usage.cached,
        "spans": from_cache(done.spans) if kept else [dict(span) for span in done.spans],
        "metadata": metadata,
        "evaluators": list(task.evaluators),
        "tags": list(task.tags),
        "expected_tool_calls": task.expected_tool_calls and list(task.expected_tool_calls),
        "key_points": task.extra.get("key_points"),
    }
