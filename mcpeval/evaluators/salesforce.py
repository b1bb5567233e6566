"""Scores as Salesforce's MCPEval gives them: expected and made calls compared place by place.

These are the definitions of its static tool evaluator (arXiv 2507.12806), kept so that published
numbers can be compared with; `tool_calls` without ``compat`` matches calls wherever they stand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: How much names, arguments and order weigh in the overall score.
WEIGHTS = {"name": 0.4, "params": 0.4, "order": 0.2}

#: What a flexible success needs of every call's arguments, and of the order.
THRESHOLDS = {"flexible_param": 0.6, "flexible_order": 0.5}

Call = tuple[str, Mapping[str, Any]]


def evaluate(
    expected: Sequence[Call],
    made: Sequence[Call],
    *,
    weights: Mapping[str, float] = WEIGHTS,
    thresholds: Mapping[str, float] = THRESHOLDS,
) -> dict[str, Any]:
    """The strict and the flexible scores of one task.

    Parameters
    ----------
    expected, made : sequence of (name, arguments)
    weights, thresholds : mapping

    Returns
    -------
    dict
        ``counts``, ``strict``, ``flexible``, ``missing_tools``, ``extra_tools``, and the strict
        ``param_matches`` and ``param_mismatches``, with the keys and values of its result files.
    """
    strict = _one(expected, made, weights, None)
    flexible = _one(expected, made, weights, thresholds)
    wanted, came = [name for name, _ in expected], [name for name, _ in made]
    return {
        "counts": {
            "ground_truth_tool_count": len(expected),
            "prediction_tool_count": len(made),
            "tool_count_match": len(expected) == len(made),
            "name_only_matches": sum(a == b for a, b in zip(wanted, came)),
            "exact_matches": sum(score == 1.0 for score in strict["param_matches"].values()),
        },
        "param_matches": strict.pop("param_matches"),
        "param_mismatches": strict.pop("param_mismatches"),
        "strict": strict,
        "flexible": {key: value for key, value in flexible.items() if not key.startswith("param_m") or key in strict},
        "missing_tools": [name for name in wanted if name not in came],
        "extra_tools": [name for name in came if name not in wanted],
    }


def _one(
    expected: Sequence[Call], made: Sequence[Call], weights: Mapping[str, float], thresholds: Mapping[str, float] | None
) -> dict[str, Any]:
    """One of the two: flexible where there are thresholds."""
    wanted, came = [name for name, _ in expected], [name for name, _ in made]
    nothing = not wanted and not came
    matches, mismatches = {}, {}
    for place, ((name, arguments), (other, given)) in enumerate(zip(expected, made)):
        if name == other:
            key = f"{name}_{place}" if wanted.count(name) > 1 else name
            matches[key], wrong = _compare(arguments, given, flexible=thresholds is not None)
            mismatches |= {key: wrong} if wrong else {}
    named = len(matches) / len(wanted) if wanted else float(nothing)
    params = sum(matches.values()) / len(matches) if matches else float(nothing)
    order = 1.0 if nothing else _common(wanted, came) / max(len(wanted), 1)
    if thresholds is None:
        exact = sum(score == 1.0 for score in matches.values())
        success = exact == len(wanted) and not set(came) - set(wanted) and order == 1.0
    else:
        good = all(score >= thresholds["flexible_param"] for score in matches.values())
        success = len(matches) == len(wanted) and good and order >= thresholds["flexible_order"]
    return {
        "success": nothing or success,
        "overall_score": weights["name"] * named + weights["params"] * params + weights["order"] * order,
        "tool_name_score": named,
        "param_match_score": params,
        "order_score": order,
        "param_matches": matches,
        "param_mismatches": mismatches,
    }


def _compare(
    wanted: Mapping[str, Any], came: Mapping[str, Any], *, flexible: bool
) -> tuple[float, dict[str, list[Any]]]:
    """The share of arguments that are right, and those in both calls that are not.

    Flexible: arguments expected to be empty do not count, a wrong value counts half.
    """
    wrong = {
        name: [value, came[name]]
        for name, value in wanted.items()
        if name in came and not _same(_plain(value), _plain(came[name]), flexible)
    }
    if not flexible:
        right = sum(name in came and name not in wrong for name in wanted)
        return (right / len(wanted) if wanted else 1.0), wrong
    counted = [name for name, value in wanted.items() if value is not None and value not in ("", [], {})]
    right = sum(0.0 if name not in came else 0.5 if name in wrong else 1.0 for name in counted)
    return (right / len(counted) if counted else 1.0), wrong


def _plain(value: Any) -> Any:
    """Texts without case and surrounding space, numbers and truths as floats, at any depth."""
    if isinstance(value, str):
        return value.strip().lower()
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {_plain(key): _plain(one) for key, one in value.items()}
    return value


def _same(a: Any, b: Any, flexible: bool) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        if not flexible:
            return abs(a - b) < 1e-6
        scale = 1.0 if min(abs(a), abs(b)) < 1.0 else max(abs(a), abs(b))
        return abs(a - b) / scale < 0.2
    if flexible and isinstance(a, str) and isinstance(b, str) and (a in b or b in a):
        return True
    return bool(a == b)


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for one in a:
        before = 0
        for j, other in enumerate(b, start=1):
            before, row[j] = row[j], before + 1 if one == other else max(row[j], row[j - 1])
    return row[-1]
