"""Factors, their levels, and the cells that they make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import product
from typing import Any

import numpy as np

from .._calls import FAMILIAR, is_secret
from ..agents.base import STRATEGIES, Agent
from ..errors import InputError, did_you_mean

DESIGNS = ("full", "one-at-a-time")
_LONGEST = 40  # letters of a level's name


@dataclass(frozen=True)
class Level:
    """One value of a factor, and its name in the frame's column: a text, or the number it is."""

    name: Any
    value: Any


@dataclass(frozen=True)
class Cell:
    """One judge or agent of an ablation.

    Attributes
    ----------
    name : str
        Of the judge or agent in the frame.
    levels : dict
        Factor to the name of its level.
    made : judge or agent
    """

    name: str
    levels: Mapping[str, Any]
    made: Any


def cells_of(given: Any, factors: Mapping[str, Any], design: str) -> list[Cell]:
    """The cells of a design, the baseline first.

    Raises
    ------
    InputError
        A factor is no argument of `given`, its levels are no list or two of them are the same, or
        the values of a cell do not go together.
    """
    if design not in DESIGNS:
        raise InputError(f"ablate: design={design!r}. {did_you_mean(design, DESIGNS)}")
    known = arguments(given)
    for factor in factors:
        if factor not in known:
            near = did_you_mean(factor, known)
            raise InputError(f"ablate: {factor}= is no argument of {_what(given)}. {near}")
    if not factors:
        raise InputError("ablate: no factor is given; a factor is an argument and its levels, as model=['a', 'b']")
    levels = {factor: _baseline_first(given, factor, _levels(factor, value)) for factor, value in factors.items()}
    cells = [_cell(given, dict(zip(levels, chosen))) for chosen in _choices(list(levels.values()), design)]
    return _named_apart(cells, given)


def arguments(given: Any) -> list[str]:
    """The arguments of a judge or an agent that may be varied."""
    if not is_dataclass(given):
        raise InputError(
            f"ablate: {given!r:.100} ({type(given).__name__}) has no arguments that could be varied; "
            "expected a Judge or another evaluator of mcpeval, or with tasks an Agent"
        )
    own = [field.name for field in fields(given) if field.init and field.name != "name"]
    if "params" not in own:
        return own
    asked = getattr(given, "judge", None)  # a pairwise judge hands on the other arguments of a judge
    more = [field.name for field in fields(asked) if field.name not in ("name", "scale")] if asked is not None else []
    # A key's level would be a name in the frame.
    params = [name for name in (*FAMILIAR, *given.params) if not is_secret(name)]
    return list(dict.fromkeys([*own, *more, *params, *([] if isinstance(given, Agent) else ["mode"])]))


def _what(given: Any) -> str:
    return f"{type(given).__name__} {given.name!r}"


def _levels(factor: str, given: Any) -> list[Level]:
    if isinstance(given, (str, tuple)) or not isinstance(given, Iterable):
        raise InputError(f"ablate: {factor}={_text(given):.100} should be a list of levels, or a dict that names them")
    if isinstance(given, Mapping):
        levels = [Level(str(name), value) for name, value in given.items()]
    else:
        values = [value.item() if isinstance(value, np.generic) else value for value in given]
        names = values if all(map(_is_number, values)) else _names(factor, values)
        levels = [Level(name, value) for name, value in zip(names, values)]
    if not levels:
        raise InputError(f"ablate: {factor} has no levels")
    named = [level.name for level in levels]
    if twice := [name for name in named if named.count(name) > 1]:
        raise InputError(
            f"ablate: two levels of {factor} would be named {twice[0]!r}; give a dict that names them apart"
        )
    return levels


def _is_number(value: Any) -> bool:
    """Whether a level is named by a number, which the frame's column can hold."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and (isinstance(value, float) or abs(value) < 2**63)


def _names(factor: str, values: Sequence[Any]) -> list[str]:
    """A name for each level: its text where that is short, else its number among the levels."""
    texts = [_text(value) for value in values]
    plain = [len(text) <= _LONGEST and "\n" not in text and texts.count(text) == 1 for text in texts]
    return [text if short else f"{factor} {i}" for i, (text, short) in enumerate(zip(texts, plain), 1)]


def _text(value: Any) -> str:
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, tuple) and len(value) == 2 and all(map(_is_number, value)):
        return f"{value[0]} to {value[1]}"
    if isinstance(value, (list, tuple, Mapping)):
        return ", ".join(_text(part) for part in value) or "(empty)"
    name = getattr(value, "name", None)  # a juror, an agent
    return name if isinstance(name, str) else str(value)


def _baseline_first(given: Any, factor: str, levels: Sequence[Level]) -> list[Level]:
    """The level that `given` itself has comes first, where it is among them."""
    made = [_cell(given, {factor: level}).made for level in levels]
    for i, one in enumerate(made):
        if any(_same(one, other) for other in made[:i]):
            raise InputError(f"ablate: {factor} has the level {_text(levels[i].value)!r:.80} twice")
    own = [level for level, one in zip(levels, made) if _same(one, given)]
    return [*own, *(level for level in levels if level not in own)]


def _same(one: Any, other: Any) -> bool:
    return all(getattr(one, f.name) == getattr(other, f.name) for f in fields(one) if f.init and f.name != "name")


def _choices(levels: Sequence[Sequence[Level]], design: str) -> list[tuple[Level, ...]]:
    if design == "full":
        return list(product(*levels))
    first = tuple(own[0] for own in levels)
    return [first, *((*first[:i], level, *first[i + 1 :]) for i, own in enumerate(levels) for level in own[1:])]


def _cell(given: Any, levels: Mapping[str, Level]) -> Cell:
    said = ", ".join(f"{factor}={level.name}" for factor, level in levels.items())
    try:
        made = _varied(given, {factor: level.value for factor, level in levels.items()})
    except InputError as error:
        raise InputError(f"ablate: there can be no cell {said}: {error}") from None
    return Cell(made.name, {factor: level.name for factor, level in levels.items()}, made)


def _varied(given: Any, values: Mapping[str, Any], name: str | None = None) -> Any:
    """`given` with other arguments; an agent that was not named is named after its new ones."""
    own = {field.name: getattr(given, field.name) for field in fields(given) if field.init}
    params = dict(own.pop("params", None) or {})
    more = values.get("params") or {}
    if not isinstance(more, Mapping):
        raise InputError(f"params is a {type(more).__name__}; expected a dict of parameters of the model")
    params |= more
    named = {key: value for key, value in values.items() if key in own}
    params |= {key: value for key, value in values.items() if key not in own and key != "params"}
    if not isinstance(given, Agent):
        own |= {**named, "name": name or given.name}
        return type(given)(**own, **({"params": params} if hasattr(given, "params") else {}))
    if own["min_tool_calls"] == STRATEGIES[given.strategy].min_tool_calls:
        own["min_tool_calls"] = None  # it did not say, and another strategy has a number of its own
    own |= {**named, "name": name or (None if _is_unnamed(given) else given.name)}
    return Agent(**own, **params)


def _is_unnamed(agent: Agent) -> bool:
    return agent.name == Agent(agent.model, agent.strategy).name


def _named_apart(cells: Sequence[Cell], given: Any) -> list[Cell]:
    """Cells whose names say what is different about them, each its own."""
    told = ("model", "strategy") if isinstance(given, Agent) and _is_unnamed(given) else ()
    for in_name in (told, ()):
        names = [_name(cell, in_name) for cell in cells]
        if len(set(names)) == len(names):
            break
    else:
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"ablate: two cells would be named {twice!r}; name their levels otherwise")
    return [Cell(name, cell.levels, _renamed(cell.made, name)) for name, cell in zip(names, cells)]


def _name(cell: Cell, told: Sequence[str]) -> str:
    said = ", ".join(f"{factor}={level}" for factor, level in cell.levels.items() if factor not in told)
    return f"{cell.made.name} [{said}]" if said else cell.made.name


def _renamed(made: Any, name: str) -> Any:
    return _varied(made, {}, name)
