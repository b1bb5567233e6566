"""From what a caller gives to evaluators: functions, dicts of rules, objects of ours and of other systems."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import InputError
from .functions import adapt_function, adapt_object
from .rules import Rule


def as_evaluator(given: Any, *, name: str | None = None) -> Any:
    """The evaluator that `given` is, or stands for.

    Parameters
    ----------
    given : object, callable or mapping
        An object with a method ``evaluate``; a function of ``row`` or of column names; the dict of
        a rule (``{"func", "op", "value"}``).
    name : str, optional
        Replaces the evaluator's own name.

    Raises
    ------
    InputError
        `given` is none of these, or a class where an instance is needed.
    """
    if isinstance(given, Mapping):
        return Rule.from_config(given, name=name)
    if inspect.isclass(given):
        raise InputError(f"evaluators has the class {given.__name__}; give an instance: {given.__name__}(...)")
    if callable(getattr(given, "evaluate", None)):
        return adapt_object(given, name)
    if callable(given):
        return adapt_function(given, name)
    hint = " A rule is written rule('json -> get(city)', '=', 'Paris')." if isinstance(given, str) else ""
    raise InputError(
        f"evaluators has {given!r:.200} ({type(given).__name__}); expected a function of a row, a rule's dict, "
        f"or an object with a method evaluate(row).{hint}"
    )


def as_evaluators(given: Any) -> tuple[Any, ...]:
    """One evaluator or several, as a tuple in which every name is used once.

    Parameters
    ----------
    given : evaluator, list of evaluators, or mapping of names to evaluators

    Raises
    ------
    InputError
        Two evaluators bear the same name, or one is no evaluator.
    """
    if isinstance(given, Mapping) and not ({"func", "op"} & given.keys()):
        found = tuple(as_evaluator(value, name=str(key)) for key, value in given.items())
    elif isinstance(given, Iterable) and not isinstance(given, (str, Mapping)) and not hasattr(given, "evaluate"):
        found = tuple(as_evaluator(value) for value in given)
    else:
        found = (as_evaluator(given),)
    names = [name for evaluator in found for name in _row_names(evaluator)]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(
            f"evaluators has the name {repeated[0]!r} {names.count(repeated[0])} times; give each its own: "
            f"{{'first': ..., 'second': ...}}, or name= where it is made"
        )
    return found


def _row_names(evaluator: Any) -> list[str]:
    """The names of an evaluator's rows, as far as they are known: a jury has one for each juror too."""
    parts = evaluator.parts if getattr(evaluator, "kind", None) == "jury" else {}
    names = [key + name.removeprefix(part.name) for key, part in parts.items() for name in _row_names(part)]
    return [evaluator.name, *(f"{evaluator.name}.{name}" for name in names)]
