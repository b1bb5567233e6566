"""What the readers of other systems' files share: JSON of which nobody knows whether it has the right form.

A reader asks for a dict or a list and gets one, empty where the file holds something else, so that a
strange file gives a row with less in it and never a traceback.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..types import Score


def dict_of(value: Any) -> Mapping[str, Any]:
    """`value` where it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: Any) -> list[Any]:
    """`value` where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def dicts_of(value: Any) -> list[Mapping[str, Any]]:
    """The JSON objects in a list; none where it is no list."""
    return [one for one in list_of(value) if isinstance(one, Mapping)]


def text_or_none(value: Any) -> str | None:
    """`value` where it is a text that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def number_or_none(value: Any) -> float | None:
    """`value` where it is a number from 0 on, else None."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and 0 <= value < float("inf") else None


def count_or_none(value: Any) -> int | None:
    """`value` as a whole number from 0 on, else None."""
    number = number_or_none(value)
    return None if number is None or number >= 2**63 else int(number)


def content_text(content: Any) -> str | None:
    """The text of a chat message's content, whose parts may be texts and other things; None where there is none."""
    if isinstance(content, str):
        return content or None
    texts = [part["text"] for part in dicts_of(content) if isinstance(part.get("text"), str)]
    return "\n".join(texts) or None


def said_last(messages: Sequence[Any], role: str) -> str | None:
    """The text of the last chat message of `role` that has one."""
    texts = (content_text(one.get("content")) for one in reversed(messages) if dict_of(one).get("role") == role)
    return next((text for text in texts if text), None)


def answers_in(messages: Sequence[Any]) -> int:
    """How often the model spoke."""
    return sum(dict_of(one).get("role") == "assistant" for one in messages)


def verdict(score: float | None, reason: Any = "", *, judge_model: str | None = None, **more: Any) -> dict[str, Any]:
    """What another system said of a run, as ``metadata["scores"]`` keeps it: the cells of a scores row.

    Parameters
    ----------
    score : float or None
    reason : str
    judge_model : str, optional
    **more
        Of `mcpeval.Score`: `label`, `passed`, `status`, `error`, `metadata`.

    Raises
    ------
    InputError
        As `mcpeval.Score`.
    """
    said = Score(score, reason if isinstance(reason, str) else "", **more).to_dict()
    del said["usage"]
    return said if judge_model is None else {**said, "judge_model": judge_model}
