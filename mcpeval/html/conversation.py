"""A run as HTML: what was said, which tools were called, what came back, and what evaluators say of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InputError
from . import numbers
from .elements import Html, block, element, folded, join
from .images import Images
from .shell import Page, page
from .steps import Call, Step, list_of, mapping_of, row_of, spans_in, steps_of
from .timeline import timeline
from .verdicts import Verdicts, chips, json_text, rows_of_scores, verdict_list, verdicts_of

#: Keys of a message that are shown in their own way; any other is shown as JSON.
_SHOWN_KEYS = ("role", "content", "tool_calls", "function_call", "agent", "name", "reasoning_content", "refusal")
#: Characters of a line that stands for what is folded away.
_GLANCE = 110


def transcript(run: Any, scores: Any = None, *, cache: Any = None) -> Page:
    """One run to read: in a notebook the value of a cell, else a page to save.

    Parameters
    ----------
    run : Series, dict, Run, or DataFrame of one row
        A row of a runs frame. Reads, as far as they are there, ``question``, ``output``, ``messages``,
        ``tool_calls``, ``spans``, ``status``, ``error``, ``error_class``, ``reference``, ``metadata``,
        the keys, and what the run used.
    scores : DataFrame, optional
        As `score` returns it; the rows with the run's ``run_id`` are shown, each verdict with its
        reason at the answer, and what it says of single tool calls beside them. An evaluator of one's
        own has its reason shown beside a step with ``metadata={"tool_call": 0}`` or ``{"message": 3}``,
        the place in the run's list.
    cache : Cache, path, None or False
        Where the images that tools gave are kept, as in `run`. One that is not there is named.

    Returns
    -------
    Page
        ``.save(path)`` writes it, ``str()`` is its HTML. Everything that models and tools wrote is
        text in it, hidden characters are shown by their numbers, and nothing in it can run or call
        anywhere.

    Raises
    ------
    InputError
        `run` is no run, or `scores` no scores frame.

    Examples
    --------
    >>> str(transcript({"output": "<b>4</b>"})).count("&lt;b&gt;4&lt;/b&gt;")
    1
    """
    row = row_of(run, "transcript")
    own, said = row.get("run_id"), rows_of_scores(scores, "transcript")
    if own is None and len({score["run_id"] for score in said}) > 1:
        raise InputError("transcript: run has no run_id, and scores has several runs: which are its own?")
    found = [score for score in said if own is None or str(score["run_id"]) == str(own)]
    body = element("main", article(row, found, Images(cache), level=1), cls="page")
    return page(" · ".join(title_of(row)), body)


def title_of(row: Mapping[str, Any]) -> list[str]:
    """What a run is called: its task, agent and trial."""
    trial = numbers.known(row.get("trial"))
    parts = [row.get("task_id"), row.get("agent"), f"trial {trial:g}" if trial else None]
    return [str(part) for part in parts if part] or [str(row.get("run_id") or "run")]


def article(row: Mapping[str, Any], scores: Sequence[Mapping[str, Any]], images: Images, *, level: int = 2) -> Html:
    """The whole of one run, with a heading of `level`."""
    verdicts, steps = verdicts_of(scores), steps_of(row)
    answer = row.get("output")
    last = next((step for step in reversed(steps) if step.place is not None), None)  # calls alone may follow it
    ends = last is not None and not last.calls and answer is not None and _text_of(last.message) == answer
    return element(
        "article",
        element("h1" if level == 1 else "h2", " · ".join(title_of(row))),
        _facts(row),
        chips(scores),
        _failure(row),
        _asked(row, steps),
        [_step(step, verdicts, images, is_answer=ends and step is last) for step in steps],
        None if ends else _answer(answer),
        element("section", element("h3", "Verdicts"), verdict_list(scores), cls="step") if scores else None,
        _around(row),
        cls="transcript",
    )


def _facts(row: Mapping[str, Any]) -> Html:
    """What the run was and what it used, in one line that wraps."""
    about = mapping_of(row.get("metadata"))
    saved = numbers.known(about.get("saved_usd"))
    tokens = [numbers.count(row.get(name)) for name in ("tokens_in", "tokens_out")]
    facts = {
        "model": row.get("model"),
        "category": row.get("category"),
        "turns": row.get("turns"),
        "tool calls": len(list_of(row.get("tool_calls"))) if row.get("n_tool_calls") is None else row["n_tool_calls"],
        "tokens in / out": " / ".join(tokens) if "tokens_in" in row else None,
        "cost": numbers.dollars(row.get("cost_usd")) if "cost_usd" in row else None,
        "once cost": numbers.dollars(saved) if saved is not None else None,
        "time": numbers.duration(row.get("seconds")) if "seconds" in row else None,
        "began": about.get("started"),
        "from the cache": "yes" if row.get("cached") is True else None,
        "run": row.get("run_id"),
    }
    pairs = [element("div", element("dt", name), element("dd", str(v))) for name, v in facts.items() if v is not None]
    return element("dl", pairs, cls="facts")


def _failure(row: Mapping[str, Any]) -> Html | None:
    """What ended the run, where it did not come to its end."""
    if row.get("status") != "error" and not row.get("error"):
        return None
    kind = str(row.get("error_class") or "error")
    trace = mapping_of(row.get("metadata")).get("traceback")
    return element(
        "div",
        element("p", element("b", f"The run ended with an error: {kind}")),
        block(row["error"], "error") if row.get("error") else None,
        folded("Traceback", block(trace, "code")) if trace else None,
        cls="failure",
    )


def _asked(row: Mapping[str, Any], steps: Sequence[Step]) -> Html | None:
    """The question, unless a message says it in the same words, and what was expected."""
    question = row.get("question")
    said = any(_text_of(step.message) == question for step in steps)
    expected = {name: row.get(key) for name, key in _EXPECTED.items() if row.get(key) not in (None, [], "")}
    parts = [
        None
        if said or not question
        else element("section", element("h3", "Question"), block(question), cls="step user"),
        [folded(name, block(json_text(value))) for name, value in expected.items()],
    ]
    return join(parts)


_EXPECTED = {"Reference": "reference", "Expected tool calls": "expected_tool_calls", "Key points": "key_points"}


def _answer(answer: Any) -> Html:
    said = block(json_text(answer)) if answer is not None else element("p", "There is no answer.", cls="quiet")
    return element("section", element("h3", "Answer"), said, cls="step answer")


def _around(row: Mapping[str, Any]) -> Html:
    """What belongs to the run and to no step of it."""
    about = {key: value for key, value in mapping_of(row.get("metadata")).items() if key != "traceback"}
    return join(timeline(spans_in(row)), folded("Metadata", block(json_text(about), "code")) if about else None)


# --- steps --------------------------------------------------------------------------------------


def _step(step: Step, verdicts: Verdicts, images: Images, *, is_answer: bool) -> Html:
    calls = [_call(call, verdicts, images) for call in step.calls]
    if step.place is None:
        return element("section", element("h3", "Tool calls"), calls, cls="step tool")
    message = step.message
    if not isinstance(message, Mapping):
        return element("section", element("h3", "Message"), block(json_text(message)), cls="step")
    role = str(message.get("role") or "unknown")
    name = "Answer" if is_answer else _ROLES.get(role, role)
    head = element(
        "header",
        element("h3", name),
        element("span", str(message["agent"]), cls="part") if message.get("agent") else None,
        _took(step.span),
    )
    known = role if role in _ROLES else "user"
    return element(
        "section",
        head,
        _failed_attempts(step.span),
        _said(message, role, images),
        calls,
        verdicts.messages.get(step.place),
        cls=f"step {'answer' if is_answer else known}",
    )


_ROLES = {
    "system": "System",
    "developer": "Developer",
    "user": "User",
    "assistant": "Assistant",
    "tool": "Tool result",
    "function": "Tool result",
}


def _took(span: Mapping[str, Any] | None) -> Html | None:
    """What a model's answer took."""
    if span is None:
        return None
    tokens = [span.get("tokens_in"), span.get("tokens_out")]
    facts = [
        numbers.duration(span.get("seconds")),
        f"{numbers.count(tokens[0])} → {numbers.count(tokens[1])} tokens" if any(tokens) else None,
        "from the cache" if span.get("cached") else numbers.dollars(span["cost_usd"]) if "cost_usd" in span else None,
        span.get("model_returned"),
    ]
    return element("span", " · ".join(str(fact) for fact in facts if fact), cls="quiet")


def _failed_attempts(span: Mapping[str, Any] | None) -> Html | None:
    failures = list_of((span or {}).get("failures"))
    if not failures:
        return None
    why = "\n".join(map(str, failures))
    return folded(f"{numbers.several(len(failures), 'attempt')} failed before", block(why, "error"))


def _said(message: Mapping[str, Any], role: str, images: Images) -> list[Any]:
    content = _content(message.get("content"), images)
    if role in ("system", "developer", "tool", "function") and content:
        content = [folded(_glance(_text_of(message)), content)]
    more = {key: value for key, value in message.items() if key not in _SHOWN_KEYS and value not in (None, "", [], {})}
    more.pop("tool_call_id", None)
    reasoning = message.get("reasoning_content")
    return [
        folded("Reasoning", block(json_text(reasoning))) if reasoning else None,
        content,
        element("div", element("p", element("b", "Refusal")), block(message["refusal"]), cls="failure")
        if message.get("refusal")
        else None,
        folded("More of this message", block(json_text(more), "code")) if more else None,
    ]


def _content(content: Any, images: Images) -> list[Any]:
    """The content of a message or of a result: texts, images, and whatever else it has as JSON."""
    if content is None or content == "":
        return []
    if not isinstance(content, (list, tuple)):
        return [block(json_text(content))]
    return [_part(part, images) for part in content]


def _part(part: Any, images: Images) -> Html:
    if not isinstance(part, Mapping):
        return block(json_text(part))
    if isinstance(part.get("text"), str):
        return block(part["text"])
    resource = mapping_of(part.get("resource"))
    if isinstance(resource.get("text"), str):
        return join(element("p", f"resource {resource.get('uri', '')}", cls="quiet"), block(resource["text"]))
    return images.element(part) or block(json_text(part), "code")


def _text_of(message: Any) -> str:
    """The text of a message, for a glance and to compare."""
    content = message.get("content") if isinstance(message, Mapping) else message
    if isinstance(content, (list, tuple)):
        content = "\n".join(str(part["text"]) for part in content if isinstance(part, Mapping) and "text" in part)
    return "" if content is None else content if isinstance(content, str) else json_text(content)


def _glance(text: str) -> Html:
    line = " ".join(text[: 4 * _GLANCE].split())
    return element("span", line if len(line) <= _GLANCE else f"{line[:_GLANCE]}…", cls="glance")


# --- tool calls ---------------------------------------------------------------------------------


def _call(call: Call, verdicts: Verdicts, images: Images) -> Html:
    made = call.made
    failed = bool(made.get("is_error"))
    state = "denied" if made.get("denied") else "failed" if failed else None
    name = ".".join(str(made[key]) for key in ("server", "name") if made.get(key))
    arguments = made.get("arguments")
    summary = join(
        element("code", name, cls="tool-name"),
        " ",
        element("span", state, cls="badge") if state else None,
        " ",
        _glance(json_text(arguments, indent=None)) if arguments not in ({}, None) else None,
        element("span", numbers.duration(made["seconds"]), cls="quiet took") if made.get("seconds") else None,
    )
    inside = [
        element("h4", "Arguments"),
        block(json_text(arguments), "code"),
        _came(made, images),
        _told(call, images),
    ]
    remarks = [] if call.place is None else verdicts.calls.get(call.place, [])
    return element("div", folded(summary, inside, cls="call failed" if failed else "call"), remarks, cls="made")


def _came(made: Mapping[str, Any], images: Images) -> Any:
    """What the tool answered, or what was wrong."""
    result, error = made.get("result"), made.get("error")
    parts: list[Any] = [element("h4", "Error"), block(error, "error")] if error else []
    if isinstance(result, Mapping):
        content = _content(result.get("content"), images)
        structured = result.get("structuredContent")
        if content or not structured:
            parts += [element("h4", "Result"), content or element("p", "empty", cls="quiet")]
        if structured:
            parts.append(folded("Structured content", block(json_text(structured), "code"), open=not content))
    elif result is not None:
        parts += [element("h4", "Result"), block(json_text(result))]
    return parts


def _told(call: Call, images: Images) -> Any:
    """What the model was told, where that is not just the text of the result."""
    result = call.made.get("result")
    content = result.get("content") if isinstance(result, Mapping) else result
    known = {_text_of({"content": content}), str(call.made.get("error") or "")}
    told = [content for content in call.told if _text_of({"content": content}) not in known]
    if not told:
        return None
    whole = [_content(content, images) for content in told]
    if result is None and not call.made.get("error"):
        return [element("h4", "Result"), whole]
    return folded("What the model was told", whole)
