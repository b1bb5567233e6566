"""The pydantic classes of models' answers: every field once, no other, and no half of a surrogate pair."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any

from ..frames import clean_text

# Half of a surrogate pair, written out or as itself; whether its other half stands beside it is seen when it is read.
_HALVES = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


@cache
def one_answer() -> type:
    """The base class of all answers."""
    from pydantic import BaseModel, ConfigDict, ValidationError
    from pydantic_core import PydanticCustomError

    class OneVerdict(BaseModel):
        """An answer in which every field stands once, and no other does."""

        model_config = ConfigDict(extra="forbid")

        @classmethod
        def model_validate_json(cls, json_data: Any, **how: Any) -> Any:
            # JSON lets a key stand twice, and parsers take the last: two verdicts are none.
            if repeated := _repeated_key(json_data):
                error = PydanticCustomError("repeated", "stands more than once; expected one answer")
                lines = [{"type": error, "loc": (repeated,), "input": json_data}]
                raise ValidationError.from_exception_data(cls.__name__, lines)
            return super().model_validate_json(_mended(json_data), **how)

    return OneVerdict


def _repeated_key(text: str | bytes) -> str | None:
    repeated: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        repeated.extend(name for name in names if names.count(name) > 1)

    with suppress(ValueError, RecursionError):  # pydantic says what is wrong with it
        json.loads(text, object_pairs_hook=note)
    return repeated[0] if repeated else None


def _mended(text: Any) -> Any:
    """JSON in which each lone half of a surrogate pair is U+FFFD: a reason is as good without it."""
    if isinstance(text, str) and _HALVES.search(text):
        with suppress(ValueError, RecursionError):
            return json.dumps(_clean(json.loads(text)))
        return clean_text(text)
    return text


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return {_clean(key): _clean(item) for key, item in value.items()} if isinstance(value, dict) else value


@lru_cache(maxsize=16)
def one_text(length: int) -> type:
    """The class of an answer that is a text of at most `length` characters (a longer one is read all the same)."""
    from typing import Annotated

    from pydantic import Field, create_model

    text = Annotated[str, Field(json_schema_extra={"maxLength": length})]
    return create_model("Answer", __base__=one_answer(), __module__=__name__, answer=(text, ...))


@lru_cache(maxsize=16)
def some_texts(most: int, length: int) -> type:
    """The class of an answer that is a list of at most `most` texts, each of at most `length` characters."""
    from typing import Annotated

    from pydantic import Field, create_model

    text = Annotated[str, Field(json_schema_extra={"maxLength": length})]
    texts = Annotated[list[text], Field(json_schema_extra={"maxItems": most})]
    return create_model("Answers", __base__=one_answer(), __module__=__name__, answer=(texts, ...))


@lru_cache(maxsize=256)
def numbered(prefix: str, n: int, of: type) -> type:
    """The class of an answer with the fields ``prefix_1`` to ``prefix_n``, each of the class `of`."""
    from pydantic import create_model

    fields: dict[str, Any] = {f"{prefix}_{i}": (of, ...) for i in range(1, n + 1)}
    return create_model("Verdicts", __base__=one_answer(), __module__=__name__, **fields)
