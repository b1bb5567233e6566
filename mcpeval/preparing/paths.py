"""The small language of ``cleanup_args``: ``"$return -> json -> get(id)"`` is a part of a tool call."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InputError, did_you_mean

_PARTS: dict[str, Callable[[Any, Any], Any]] = {
    "get": lambda value, key: value[key],
    "array": lambda value, index: value[index],
    "json": lambda value, _: json.loads(value),
}


@dataclass(frozen=True)
class Path:
    """One path: an argument of the call, or its result for ``return``, and the steps from there."""

    text: str
    source: str
    steps: tuple[tuple[str, Any, str], ...]

    def part_of(self, call: Mapping[str, Any]) -> Any:
        """The part of `call` (``arguments``, ``response``) that is meant.

        Raises
        ------
        InputError
            The call has no such part.
        """
        arguments = call["arguments"] if isinstance(call["arguments"], Mapping) else {}
        if self.source != "return" and self.source not in arguments:
            near = did_you_mean(self.source, [*arguments, "return"])
            raise InputError(f"Invalid input argument in `cleanup_args`: {self.source}. {near}")
        value = call["response"] if self.source == "return" else arguments[self.source]
        for name, argument, text in self.steps:
            try:
                value = _PARTS[name](value, argument)
            except (LookupError, TypeError, ValueError, RecursionError) as error:
                raise InputError(f"cleanup_args {self.text!r}: {text} cannot be followed: {error!r}") from None
        return value


def compiled(template: Any) -> Any:
    """`template` with each text that is a path as a `Path`.

    Raises
    ------
    InputError
        A text with a ``$`` is no path; the message says what of it cannot be read.
    """
    if isinstance(template, Mapping):
        return {key: compiled(value) for key, value in template.items()}
    if isinstance(template, (list, tuple)):
        return [compiled(value) for value in template]
    return _path(template) if isinstance(template, str) and "$" in template else template


def filled(template: Any, call: Mapping[str, Any]) -> Any:
    """A `compiled` template with each path replaced by that part of `call`."""
    if isinstance(template, dict):
        return {key: filled(value, call) for key, value in template.items()}
    if isinstance(template, list):
        return [filled(value, call) for value in template]
    return template.part_of(call) if isinstance(template, Path) else template


def _path(text: str) -> Path:
    start, *steps = text.strip().split("->")
    if not start.startswith("$"):
        raise InputError(f"Format error in `cleanup_args`: {text}; expected '$argument -> step -> ...'")
    return Path(text, start[1:].rstrip(), tuple(_step(step.strip(), text) for step in steps if step.strip()))


def _step(text: str, path: str) -> tuple[str, Any, str]:
    name, _, rest = text.partition("(")
    name, argument = name.strip().lower(), rest.rpartition(")")[0].strip()
    if name not in _PARTS:
        raise InputError(f"Invalid operation in `cleanup_args`: {text}. {did_you_mean(name, _PARTS)}")
    if name == "array":
        try:
            return name, int(argument), text
        except ValueError:
            raise InputError(
                f"cleanup_args {path!r}: {text} cannot be followed: its index should be a number"
            ) from None
    return name, argument, text
