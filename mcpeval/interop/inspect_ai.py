"""Inspect's evaluation logs (``.eval`` and ``.json``) as runs.

Every sample in every epoch is a run, and what its scorers said is kept beside it: `recorded_scores` makes
a scores frame of it. Logs that `mcpeval.exporting.to_inspect` wrote come back as the runs and scores they
were. inspect_ai itself is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..exporting.inspect_messages import CARRIED, calls_in, from_inspect_message
from .shapes import (
    answers_in,
    content_text,
    count_or_none,
    dict_of,
    dicts_of,
    number_or_none,
    said_last,
    text_or_none,
    verdict,
)

_ATTACHMENT = "attachment://"
# value_to_float of Inspect: https://inspect.aisi.org.uk/scorers.html#metrics
_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
# Which limits are of the agent's own doing: it used up its messages, turns, tokens or money.
_LIMITS = {
    **dict.fromkeys(("message", "turn", "token", "cost"), "turn_limit"),
    **dict.fromkeys(("time", "working"), "timeout"),
    "context": "context",
}
_NOT_SCORED = ("grader_failed", "scoring_failed")


def reads(data: Any) -> bool:
    """Whether parsed JSON is a log of Inspect's."""
    return (
        isinstance(data, Mapping) and isinstance(data.get("eval"), Mapping) and "status" in data and "version" in data
    )


def rows(data: Any, path: Path | None = None) -> list[dict[str, Any]]:
    """The rows of a runs frame, one for each sample and epoch.

    Parameters
    ----------
    data : dict
        The parsed log, whose ``samples`` may be read one by one.
    path : path-like, optional
        Of the file; not read.

    Returns
    -------
    list of dict
        ``task_id`` is ``TASK/SAMPLE``, ``category`` the log's task, ``trial`` the epoch counted from 0, ``agent``
        ``SOLVER:MODEL`` as `mcpeval.Agent` names itself, ``reference`` the target. ``metadata`` has
        ``source``, ``sample`` (the sample's own metadata), ``eval`` (what names the log) and ``scores``.
        Tokens and cost are those of the evaluated model, graders of the same name included; the
        cost is there where the log has it.

    Raises
    ------
    InputError
        A sample has not what it should.
    """
    spec = data["eval"]
    about = {
        "agent": f"{_solver(data)}:{str(spec.get('model')).rpartition('/')[2]}",
        "model": text_or_none(spec.get("model")),
        "task": str(spec.get("task") or "task"),
        # A retry's log has the same task_id, so that its samples take the place of those that failed.
        "log": str(spec.get("task_id") or spec.get("eval_id") or spec.get("run_id") or spec.get("created")),
        "eval": {key: spec[key] for key in ("task", "task_id", "eval_id", "run_id", "created") if spec.get(key)},
    }
    samples = data.get("samples")
    if not isinstance(samples, Iterable) or isinstance(samples, str | Mapping):
        raise InputError("the log has no samples (it may be a log's header only)")
    made = [_sample(sample, place, about) for place, sample in enumerate(samples)]
    if CARRIED not in dict_of(spec.get("packages")):  # a zip file has them in the order in which they ended
        made.sort(key=lambda sample: sample[0])
    made = [row for _, row in made]
    _say_unscored(made, [str(one.get("name")) for one in dicts_of(spec.get("scorers"))])
    return made


def joined(earlier: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    """The row of a sample that stands in two logs: the later one's, which is a retry of the earlier."""
    return later


def _solver(data: Mapping[str, Any]) -> str:
    steps = dicts_of(dict_of(data.get("plan")).get("steps"))
    last = steps[-1].get("solver") if steps else None
    return str(data["eval"].get("solver") or last or "inspect_ai")


def _sample(sample: Any, place: int, about: Mapping[str, Any]) -> tuple[tuple[int, str], dict[str, Any]]:
    """The row of a sample, and before it what Inspect sorts samples by."""
    if not isinstance(sample, Mapping) or "id" not in sample:
        raise InputError(f"sample {place} is {sample!r:.80}; expected a JSON object with an 'id'")
    sample = _with_attachments(sample)
    given, epoch = dicts_of(sample.get("messages")), count_or_none(sample.get("epoch")) or 1
    messages = [from_inspect_message(message) for message in given]
    calls = calls_in(given, _seconds(sample))
    output, own = dict_of(sample.get("output")), dict_of(sample.get("metadata"))
    row = {
        "run_id": f"{about['log']}-{sample['id']}-{epoch}",
        "task_id": f"{about['task']}/{sample['id']}",
        "category": about["task"],
        "agent": about["agent"],
        "model": about["model"],
        "trial": max(epoch - 1, 0),
        "question": _question(sample.get("input")),
        "reference": sample.get("target") or None,
        "output": text_or_none(output.get("completion")) or said_last(messages, "assistant"),
        "messages": messages,
        "tool_calls": [call.to_dict() for call in calls],
        **_end(sample),
        "turns": count_or_none(sample.get("turn_count")) or answers_in(messages),
        "n_tool_calls": len(calls),
        **_usage(dict_of(sample.get("model_usage")), about["model"]),
        "seconds": number_or_none(sample.get("total_time")),
        "metadata": {
            "source": "inspect_ai",
            "eval": about["eval"],
            "sample": {key: value for key, value in own.items() if key != CARRIED},
            "uuid": sample.get("uuid"),
            "started": sample.get("started_at"),
            "model_returned": output.get("model") or None,
        },
    }
    if isinstance(own.get(CARRIED), Mapping):
        row = _ours(row, own[CARRIED])
    row["metadata"]["scores"] = _verdicts(dict_of(sample.get("scores")))
    return (epoch, str(sample["id"]).zfill(20)), row


def _ours(row: dict[str, Any], carried: Mapping[str, Any]) -> dict[str, Any]:
    """The row that `to_inspect` wrote: Inspect's fields where they hold all of it, else what was carried along."""
    named = {key: row[key] for key in ("question", "reference", "output", "messages")}
    return {**named, **carried, "metadata": dict(dict_of(carried.get("metadata")))}


def _question(given: Any) -> str | None:
    if isinstance(given, str):
        return given or None
    messages = dicts_of(given)
    return said_last(messages, "user") or (content_text(messages[-1].get("content")) if messages else None)


def _end(sample: Mapping[str, Any]) -> dict[str, Any]:
    error, limit = sample.get("error"), dict_of(sample.get("limit"))
    if error:
        return {"status": "error", "error": str(dict_of(error).get("message") or error), "error_class": "harness"}
    if limit:
        told = limit.get("reason") or f"{limit.get('type')} limit {limit.get('limit')} reached"
        return {"status": "error", "error": str(told), "error_class": _LIMITS.get(str(limit.get("type")), "harness")}
    return {"status": "ok"}


def _usage(usage: Mapping[str, Any], model: str | None) -> dict[str, Any]:
    """Tokens and dollars of the evaluated model, of all models where it is not among them."""
    used = [dict_of(usage[model])] if model in usage else dicts_of(list(usage.values()))
    if not used:
        return {"tokens_in": None, "tokens_out": None, "cost_usd": None}
    # input_tokens are those that no cache was asked for.
    inputs = ("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write")
    costs = [number_or_none(one.get("total_cost")) for one in used]
    return {
        "tokens_in": sum(count_or_none(one.get(key)) or 0 for one in used for key in inputs),
        "tokens_out": sum(count_or_none(one.get("output_tokens")) or 0 for one in used),
        "cost_usd": None if None in costs else sum(costs),
    }


def _seconds(sample: Mapping[str, Any]) -> dict[str, float]:
    """The time each tool call took, by its id as a text, from the events."""
    tools = [event for event in dicts_of(sample.get("events")) if event.get("event") == "tool"]
    return {str(event.get("id")): number_or_none(event.get("working_time")) or 0.0 for event in tools}


def _with_attachments(sample: Mapping[str, Any]) -> Mapping[str, Any]:
    """The sample with long texts and images in their places; a log keeps each of them once."""
    attached = dict_of(sample.get("attachments"))
    if not attached:
        return sample
    wanted = ("input", "messages", "output", "metadata", "scores")
    return {**sample, **{key: _resolved(sample[key], attached) for key in wanted if key in sample}}


def _resolved(value: Any, attached: Mapping[str, Any]) -> Any:
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attached.get(value.removeprefix(_ATTACHMENT), value)
    if isinstance(value, list):
        return [_resolved(one, attached) for one in value]
    if isinstance(value, Mapping):
        return {key: _resolved(one, attached) for key, one in value.items()}
    return value


# --- scores --------------------------------------------------------------------------------------


def _verdicts(scores: Mapping[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for name, score in scores.items():
        score = dict_of(score)
        ours = dict_of(dict_of(score.get("metadata")).get(CARRIED))
        value = score.get("value")
        if ours:
            said[name] = {"reason": score.get("explanation") or "", **ours}
        elif isinstance(value, Mapping):
            said |= {f"{name}.{key}": _verdict(one, score) for key, one in value.items()}
        else:
            said[name] = _verdict(value, score)
    return said


def _verdict(value: Any, score: Mapping[str, Any]) -> dict[str, Any]:
    """A score of Inspect's as the cells of a scores row; NaN is its way to say that there is none."""
    about = {"answer": score.get("answer"), **dict_of(score.get("metadata"))}
    more: dict[str, Any] = {"metadata": {key: one for key, one in about.items() if one is not None}}
    why, told = score.get("reason"), score.get("explanation")
    if value is None or value != value:
        status = "error" if why in _NOT_SCORED else "skipped"
        return verdict(None, told, status=status, error=text_or_none(why), **more)
    if isinstance(value, bool):
        return verdict(float(value), told, label=value, **more)
    if isinstance(value, int | float):
        if 0 <= value <= 1:
            return verdict(float(value), told, **more)
        return verdict(None, told, label=value, status="skipped", error=f"{value:g} is not from 0 to 1", **more)
    if not isinstance(value, str):
        return verdict(None, told, label=value, status="skipped", error="the value is a list", **more)
    return _worded(value, told, more)


def _worded(value: str, told: Any, more: dict[str, Any]) -> dict[str, Any]:
    known = _GRADES.get(value, _WORDS.get(value.lower()))
    if known is not None:
        return verdict(known, told, label=value, passed=None if known == 0.5 else known == 1.0, **more)
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if 0 <= number <= 1:
        return verdict(number, told, label=value, **more)
    return verdict(None, told, label=value, status="unparsed", error=f"the value {value!r:.60} is no number", **more)


def _say_unscored(made: list[dict[str, Any]], scorers: list[str]) -> None:
    """Give every sample that broke down a row for each scorer that the others have: it was not scored."""
    names = list(dict.fromkeys(name for row in made for name in row["metadata"]["scores"])) or scorers
    for row in made:
        said = row["metadata"]["scores"]
        if row.get("error") and not said:
            said |= {name: verdict(None, status="error", error=row["error"]) for name in names}
