"""The built-in comparisons of a rule: what a leaf of the chain is held against the rule's value with.

``= < <= > >= in contain`` give exactly what MCP-Universe's give; the others are ours.  Each entry
makes, from the rule's value and its `op_args`, the test of one leaf.  What a test raises is the
output's fault; what cannot be meant (a pattern that does not compile, a schema that is none) is an
`InputError` when the rule is written.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from difflib import SequenceMatcher
from typing import Any

from ..errors import InputError
from .chains import COMPARISONS, Comparison
from .steps import hashable
from .values import show

Test = Callable[[Any], bool | str]


def _by(compare: Callable[[Any, Any], Any]) -> Callable[[Any, dict[str, Any]], Test]:
    """A comparison that Python has: ``compare(leaf, value)``."""
    return lambda value, options: lambda leaf: bool(compare(leaf, value))


def _in(value: Any, options: dict[str, Any]) -> Test:
    def test(leaf: Any) -> bool:
        if not isinstance(value, (str, list, tuple)):
            raise ValueError("The second argument in comparison function `in` is not a list or a str")
        return leaf in value

    return test


def _contain(value: Any, options: dict[str, Any]) -> Test:
    def test(leaf: Any) -> bool:
        if not isinstance(leaf, (str, list, tuple)):
            raise ValueError("The first argument in comparison function `contain` is not a list or a str")
        return value in leaf

    return test


def _not(make: Callable[[Any, dict[str, Any]], Test]) -> Callable[[Any, dict[str, Any]], Test]:
    def negated(value: Any, options: dict[str, Any]) -> Test:
        test = make(value, options)
        return lambda leaf: not test(leaf)

    return negated


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _number_option(options: dict[str, Any], name: str, default: float) -> float:
    value = options.get(name, default)
    if not _is_number(value) or not 0 <= value < math.inf:
        raise InputError(f"op_args={options!r}: {name!r} should be a number that is not negative")
    return value


def _approx(value: Any, options: dict[str, Any]) -> Test:
    """As `math.isclose`: ``|a - b| <= max(rel * max(|a|, |b|), abs)``."""
    if not _is_number(value):
        raise InputError(f"value={value!r} should be a number for 'approx'")
    rel, absolute = _number_option(options, "rel", 1e-6), _number_option(options, "abs", 0.0)

    def test(leaf: Any) -> bool:
        if not _is_number(leaf):
            raise TypeError("The output is not a number")
        return math.isclose(leaf, value, rel_tol=rel, abs_tol=absolute)

    return test


def _between(value: Any, options: dict[str, Any]) -> Test:
    """Both ends belong to it."""
    if not isinstance(value, list) or len(value) != 2 or not all(map(_is_number, value)) or value[0] > value[1]:
        raise InputError(f"value={value!r} should be [low, high] for 'between', two numbers in this order")
    low, high = value

    def test(leaf: Any) -> bool:
        if not _is_number(leaf):
            raise TypeError("The output is not a number")
        return low <= leaf <= high

    return test


def _matches(value: Any, options: dict[str, Any]) -> Test:
    """The pattern is found somewhere in the text; ``^`` and ``$`` hold it to the whole."""
    try:
        pattern = re.compile(value)
    except (re.error, TypeError) as error:
        raise InputError(f"value={value!r} should be a regular expression for 'matches': {error}") from None

    def test(leaf: Any) -> bool:
        if not isinstance(leaf, str):
            raise TypeError("The output is not a string")
        return pattern.search(leaf) is not None

    return test


def _sets(name: str, *, all_of: bool, only: bool) -> Callable[[Any, dict[str, Any]], Test]:
    """A comparison of two lists as sets: order and repetitions do not count.

    `all_of`: every item of the value has to be there; `only`: no other may be.
    """

    def make(value: Any, options: dict[str, Any]) -> Test:
        if not isinstance(value, list):
            raise InputError(f"value={value!r} should be a list for {name!r}")
        wanted = {hashable(item): item for item in value}

        def test(leaf: Any) -> bool | str:
            if not isinstance(leaf, (list, tuple)):
                raise TypeError("The output is not a list")
            found = {hashable(item): item for item in leaf}
            missing = [item for key, item in wanted.items() if key not in found] if all_of else []
            others = [item for key, item in found.items() if key not in wanted] if only else []
            wrong = (("missing", missing), ("not wanted", others))
            return ", ".join(f"{what}: {show(items)}" for what, items in wrong if items) or True

        return test

    return make


_BY_CHARACTER = 2_000


def _ratio(a: str, b: str, enough: float) -> float:
    """Ratcliff and Obershelp's similarity (`difflib`): over characters, over words in long texts.

    An upper bound is enough where it is below `enough` already: the exact ratio takes quadratic time.
    """
    if a == b:
        return 1.0
    long = max(len(a), len(b)) > _BY_CHARACTER
    matcher = SequenceMatcher(None, a.split() if long else a, b.split() if long else b, autojunk=False)
    for bound in (matcher.real_quick_ratio(), matcher.quick_ratio()):
        if bound < enough:
            return bound
    return matcher.ratio()


def _similar(value: Any, options: dict[str, Any]) -> Test:
    threshold = _number_option(options, "threshold", 0.8)
    if threshold > 1 or not isinstance(value, str):
        raise InputError(f"'similar' needs a text as value and a threshold of at most 1, not {value!r}, {threshold!r}")

    def test(leaf: Any) -> bool | str:
        if not isinstance(leaf, str):
            raise TypeError("The output is not a string")
        ratio = _ratio(leaf, value, threshold)
        return ratio >= threshold or f"similarity {ratio:.3f} at most, threshold {threshold}"

    return test


def _schema(value: Any, options: dict[str, Any]) -> Test:
    """JSON Schema by the library jsonschema; a reference to another document is never fetched."""
    import jsonschema
    from referencing import Registry

    if not isinstance(value, (dict, bool)):
        raise InputError(f"value={value!r} should be a JSON Schema (an object) for 'schema'")
    kind = jsonschema.validators.validator_for(value, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(value)
    except jsonschema.SchemaError as error:
        raise InputError(f"value is no JSON Schema: {error.message} (at {error.json_path})") from None
    validator = kind(value, registry=Registry())

    def test(leaf: Any) -> bool | str:
        error = jsonschema.exceptions.best_match(validator.iter_errors(leaf))
        return error is None or f"{error.message:.300} (at {error.json_path})"

    return test


_EQUAL, _IN, _CONTAIN = (
    "output is not equal to ground-truth",
    "ground-truth doesn't contain output",
    ("output doesn't contain ground-truth"),
)
COMPARISONS.update(
    {
        "=": Comparison(_by(operator.eq), _EQUAL, theirs=True),
        "<": Comparison(_by(operator.lt), "output is not less than ground-truth", theirs=True),
        "<=": Comparison(_by(operator.le), "output is not less than or equal to ground-truth", theirs=True),
        ">": Comparison(_by(operator.gt), "output is not greater than ground-truth", theirs=True),
        ">=": Comparison(_by(operator.ge), "output is not greater than or equal to ground-truth", theirs=True),
        "in": Comparison(_in, _IN, theirs=True),
        "contain": Comparison(_contain, _CONTAIN, theirs=True),
        "==": Comparison(_by(operator.eq), _EQUAL),
        "!=": Comparison(_by(operator.ne), "output is equal to ground-truth"),
        "not in": Comparison(_not(_in), "ground-truth contains output"),
        "not contain": Comparison(_not(_contain), "output contains ground-truth"),
        "approx": Comparison(_approx, "output is not close to ground-truth", ("rel", "abs")),
        "between": Comparison(_between, "output is not between the bounds"),
        "matches": Comparison(_matches, "output doesn't match the pattern"),
        "set=": Comparison(_sets("set=", all_of=True, only=True), "output is not the same set as ground-truth"),
        "subset": Comparison(_sets("subset", all_of=False, only=True), "output is not a subset of ground-truth"),
        "superset": Comparison(_sets("superset", all_of=True, only=False), "output is not a superset of ground-truth"),
        "similar": Comparison(_similar, "output is not similar to ground-truth", ("threshold",)),
        "schema": Comparison(_schema, "output doesn't fit the schema"),
    }
)
