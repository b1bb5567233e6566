"""The form that a task wants its answer in: held before the model as a schema, and looked for in what it wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..local import PARAMS, is_local
from .schemas import constraint, shape

# An embedded model repeats itself until something stops it, at about a token for a character: a text
# may have a quarter of `max_tokens` as characters, so that a thought and three texts more fit.
TEXTS = 4


def has_form(output_format: Any) -> bool:
    """Whether a task's ``output_format`` is an example or a schema; a text only says something about the answer."""
    return isinstance(output_format, (dict, list)) and bool(output_format)


def text_limit(model: str, params: Mapping[str, Any], more: int = 0) -> int | None:
    """Characters of each text that an embedded model may write, with `more` texts than usual; None for others."""
    if not is_local(model):
        return None
    return max(1, params.get("max_tokens", PARAMS["max_tokens"]) // (TEXTS + more))


def response_format(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The parameter of a call that holds a model to `schema`."""
    return {"response_format": {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}}


def formed(text: str | None, output_format: Any) -> tuple[str | None, bool | None]:
    """The answer in `text` that has the form wanted, and whether there is one.

    Fences, prose and ``<think>`` around it do no harm; of several, the last one counts.

    Parameters
    ----------
    text : str or None
    output_format : any
        The task's.

    Returns
    -------
    text : str or None
        JSON, where there is more around it; else `text` as it was.
    well_formed : bool or None
        None where there is no answer, or no form to hold it against.

    Examples
    --------
    >>> formed('It is {"city": "Rome"}.', {"city": "<CITY>"})
    ('{"city": "Rome"}', True)
    """
    if text is None or not has_form(output_format):
        return text, None
    import jsonschema

    fits = jsonschema.Draft202012Validator(constraint(shape(output_format))).is_valid
    try:
        if fits(json.loads(text)):
            return text, True
    except (ValueError, RecursionError):
        pass
    found = [value for value in json_values(text) if fits(value)]
    return (json.dumps(found[-1], ensure_ascii=False), True) if found else (text, False)


def json_values(text: str, opening: str = "{[") -> Iterator[Any]:
    """The JSON objects and lists in `text`, in order, but for what is thought; of what is broken, the inner ones.

    Parameters
    ----------
    text : str
    opening : str
        ``{`` for objects alone, ``[`` for lists.
    """
    text = re.sub(r"<think>.*?</think>", "", text, flags=re.DOTALL)
    decoder, begins = json.JSONDecoder(strict=False), re.compile(f"[{re.escape(opening)}]")
    match = begins.search(text)
    while match:
        end = match.start() + 1
        try:
            value, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            pass
        else:
            yield value
        match = begins.search(text, end)
