"""What can be measured on the tool calls of a run, with and without knowing the right ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from .errors import InputError
from .evaluators.bfcl import ast_ok
from .evaluators.called import check_columns, made_calls, read_expected
from .evaluators.comparisons import COMPARISONS
from .evaluators.matching import Expected, Terms, in_order, match
from .frames import RUN_COLUMNS, RUN_KEYS, frame_of, rows_of
from .messages import tool_calls_of
from .servers.results import call_text, missing_characters
from .types import ToolCall

_MADE = {
    "n_calls": "Int64",
    "n_turns": "Int64",
    "n_parallel": "Int64",
    "valid_name_rate": "float64",
    "bad_json": "Int64",
    "schema_ok_rate": "float64",
    "exec_ok_rate": "float64",
    "n_err": "Int64",
    "recovered": "Int64",
    "dup_calls": "Int64",
    "n_servers": "Int64",
    "result_chars_max": "Int64",
    "truncated": "boolean",
}
_AGAINST = {
    "name_precision": "float64",
    "name_recall": "float64",
    "call_precision": "float64",
    "call_recall": "float64",
    "call_f1": "float64",
    "strict": "boolean",
    "unordered": "boolean",
    "superset": "boolean",
    "subset": "boolean",
    "order_lcs": "float64",
    "dag_ok": "boolean",
    "extra": "Int64",
    "missing": "Int64",
    "forbidden_calls": "Int64",
    "steps_ratio": "float64",
    "ast_ok": "boolean",
}
_EXACT = Terms()
_GEMINI = {"functionDeclarations", "function_declarations"}


def tool_metrics(runs: pd.DataFrame, tools: Any = None) -> pd.DataFrame:
    """Measure the tool calls of runs.

    Parameters
    ----------
    runs : DataFrame
        Reads ``tool_calls``, else ``messages`` (OpenAI, Anthropic, Gemini or MCP), and, where they
        exist, ``expected_tool_calls`` (as in `tool_calls`), ``turns`` and ``metadata``.
    tools : list or dict, optional
        The tools that were offered: definitions of OpenAI, Anthropic, Gemini or MCP, names, or a
        dict from names to schemas of their arguments.

    Returns
    -------
    DataFrame
        One row per run, with its index label and its keys (those of `mcpeval.frames.RUN_KEYS` that
        `runs` has), then the columns below. What cannot be known of a run is missing.

        Of the calls as they were made:

        ==================  ==================================================================
        ``n_calls``         calls
        ``n_turns``         answers of the model: the column ``turns``, else counted in messages
        ``n_parallel``      calls asked for together with another in one answer
        ``valid_name_rate`` share of calls of a tool that was offered: one of `tools`; without
                            them one that a server had (Wang et al. 2025, MCP-Bench, 2508.20453)
        ``bad_json``        calls whose arguments are no JSON object
        ``schema_ok_rate``  share of calls of known tools whose arguments satisfy the tool's
                            schema (MCP-Bench)
        ``exec_ok_rate``    share of answered calls that did not fail (MCP-Bench)
        ``n_err``           calls that failed
        ``recovered``       failed calls after which the same tool was called and did not fail
        ``dup_calls``       calls that an earlier one equals in server, name and arguments
        ``n_servers``       servers called; missing where no call says its server
        ``result_chars_max``  characters of the longest result, as text
        ``truncated``       whether a result, or an answer of the model, was cut
        ==================  ==================================================================

        Against the expected calls; arguments are equal where Python says so. `P` calls made, `G`
        expected, `M` of them matched, one to one and as many as possible in any order:

        ==================  ==================================================================
        ``name_precision``, overlap of the two multisets of names, over `P` and over `G` (Shen et
        ``name_recall``     al. 2023, TaskBench, 2311.18760, whose node F1 is made of them)
        ``call_precision``  M / P
        ``call_recall``     M / G
        ``call_f1``         2 M / (P + G)
        ``strict``          the same calls in the same order (this and the next three: trajectory
                            match of LangChain's agentevals)
        ``unordered``       the same calls in some order: M = P = G
        ``superset``        all expected calls were made: M = G
        ``subset``          only expected calls were made: M = P
        ``order_lcs``       longest common subsequence of the names, over `G` (Salesforce's
                            MCPEval, 2507.12806)
        ``dag_ok``          all were made, each later than those it is ``after``; missing where no
                            call says so
        ``extra``           P - M
        ``missing``         G - M
        ``forbidden_calls`` calls that are marked ``forbidden`` and were made
        ``steps_ratio``     P / G
        ``ast_ok``          the same calls in some order by BFCL's rules for values
                            (`mcpeval.evaluators.bfcl`), with types from the schemas in `tools`
        ==================  ==================================================================

        Where nothing was expected and nothing done, precision, recall, F1, ``order_lcs`` and
        ``steps_ratio`` are 1.
        Where nothing was expected and something done, recall, ``order_lcs`` and ``steps_ratio`` are
        NaN, precision and F1 are 0. Where something was expected and nothing done, all are 0.

    Raises
    ------
    InputError
        A column is missing, a cell is no list of calls, or `tools` is no list of tools.

    Examples
    --------
    >>> runs = pd.DataFrame({"tool_calls": [[{"name": "add", "arguments": {"a": 1}}]],
    ...                      "expected_tool_calls": [[{"name": "add", "arguments": {"a": 2}}]]})
    >>> tool_metrics(runs)[["n_calls", "name_recall", "call_recall"]].iloc[0].tolist()
    [1.0, 1.0, 0.0]
    """
    if not isinstance(runs, pd.DataFrame):
        raise InputError(f"tool_metrics: runs is a {type(runs).__name__}; expected a frame with a column 'tool_calls'")
    check_columns("tool_metrics", map(str, runs.columns), expected=False)
    offered = None if tools is None else _schemas(tools)
    keys = {key: RUN_COLUMNS[key] for key in RUN_KEYS if key in runs.columns}
    rows = [_measure(row, label, offered) for row, label in zip(rows_of(runs), runs.index.tolist())]
    return frame_of(rows, {**keys, **_MADE, **_AGAINST}, runs.index)


def _measure(row: Mapping[str, Any], label: Any, offered: Mapping[str, Any] | None) -> dict[str, Any]:
    found = {key: row[key] for key in RUN_KEYS if key in row}
    try:
        made = made_calls(row)
        wanted = row.get("expected_tool_calls")
        expected = None if wanted is None else read_expected(wanted, "expected_tool_calls")
        if made is None:
            return found
        found |= _of_the_turns(row) | _of_the_calls(made, row) | _of_the_tools(made, offered)
    except InputError as error:
        raise InputError(f"tool_metrics: run {row.get('run_id', label)!r}: {error}") from error
    return found if expected is None else found | _against(expected, made, offered)


# --- the calls as they were made -----------------------------------------------------------------


def _of_the_turns(row: Mapping[str, Any]) -> dict[str, Any]:
    messages = row.get("messages")
    if not isinstance(messages, (list, tuple)):
        return {"n_turns": row.get("turns"), "n_parallel": None}
    answers = [m for m in messages if isinstance(m, Mapping) and m.get("role") in ("assistant", "model")]
    asked = [len(tool_calls_of(answer)) for answer in answers]
    turns = row.get("turns")
    return {"n_turns": len(answers) if turns is None else turns, "n_parallel": sum(n for n in asked if n > 1)}


def _of_the_calls(made: Sequence[ToolCall], row: Mapping[str, Any]) -> dict[str, Any]:
    known = [call for call in made if call.result is not None or call.is_error]
    failed = [place for place, call in enumerate(made) if call.is_error]
    servers = {call.server for call in made} - {None}
    metadata = row.get("metadata")
    cut = isinstance(metadata, Mapping) and bool(metadata.get("truncated"))
    return {
        "n_calls": len(made),
        "bad_json": sum(not isinstance(call.arguments, Mapping) for call in made),
        "exec_ok_rate": _share(not call.is_error for call in known),
        "n_err": len(failed),
        "recovered": sum(_comes_right(made[place], made[place + 1 :]) for place in failed),
        "dup_calls": len(made) - len({_text([call.server, call.name, call.arguments]) for call in made}),
        "n_servers": len(servers) if servers or not made else None,
        "result_chars_max": max((len(call_text(call)) for call in known), default=0),
        "truncated": cut or any(missing_characters(call) for call in made),
    }


def _comes_right(call: ToolCall, later: Iterable[ToolCall]) -> bool:
    return any((one.server, one.name) == (call.server, call.name) and not one.is_error for one in later)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _share(truths: Iterable[bool]) -> float | None:
    truths = list(truths)
    return sum(truths) / len(truths) if truths else None


def _of_the_tools(made: Sequence[ToolCall], offered: Mapping[str, Any] | None) -> dict[str, Any]:
    if offered is None:
        # A call that no server had never reached one; whether another without a server did is not known.
        reached = [call.server is not None for call in made if call.server or call.is_error and call.result is None]
        return {"valid_name_rate": _share(reached)}
    known = [(call, offered[call.name]) for call in made if offered.get(call.name) is not None]
    right = (isinstance(call.arguments, Mapping) and schema["test"](call.arguments) is True for call, schema in known)
    return {"valid_name_rate": _share(call.name in offered for call in made), "schema_ok_rate": _share(right)}


def _schemas(tools: Any) -> dict[str, Any]:
    """For each tool's name its schema and a test of arguments, None where only the name is known."""
    if isinstance(tools, str) or not isinstance(tools, Iterable):
        raise InputError(f"tool_metrics: tools={tools!r:.200} should be a list of tools, or a dict of schemas by name")
    pairs = tools.items() if isinstance(tools, Mapping) else [_tool(one, i) for i, one in enumerate(_flat(tools))]
    found: dict[str, Any] = {}
    for name, schema in pairs:
        if schema is None:
            found[name] = None
            continue
        try:
            found[name] = {"schema": schema, "test": COMPARISONS["schema"].make(schema, {})}
        except InputError as error:
            raise InputError(f"tool_metrics: tools has {name!r}, whose schema cannot be used: {error}") from error
    return found


def _flat(tools: Iterable[Any]) -> Iterable[Any]:
    for tool in tools:  # Gemini puts its tools together in one
        together = _GEMINI & tool.keys() if isinstance(tool, Mapping) else None
        yield from tool[together.pop()] if together else [tool]


def _tool(given: Any, place: int) -> tuple[str, Any]:
    if isinstance(given, str):
        return given, None
    inner = given.get("function", given) if isinstance(given, Mapping) else None
    name = inner.get("name") if isinstance(inner, Mapping) else None
    if not isinstance(name, str):
        raise InputError(f"tool_metrics: tools[{place}] is {given!r:.200}; expected a name, or a tool with a 'name'")
    return name, next((inner[key] for key in ("parameters", "inputSchema", "input_schema") if key in inner), None)


# --- against the expected calls ------------------------------------------------------------------


def _against(
    expected: Sequence[Expected], made: Sequence[ToolCall], offered: Mapping[str, Any] | None
) -> dict[str, Any]:
    found = match(expected, made, _EXACT)
    wanted, hits = found.wanted, found.hits
    p, g = len(made), len(wanted)
    names = sum((Counter(call.name for call in made) & Counter(call.name for call in wanted)).values())
    in_turn = in_order([[one.name == call.name for call in made] for one in wanted])
    schemas = {name: known["schema"] for name, known in (offered or {}).items() if known is not None}
    return {
        "name_precision": names / p if p else float(not g),
        "name_recall": _recall(names, g, p),
        "call_precision": found.precision,
        "call_recall": found.recall,
        "call_f1": found.f1,
        "strict": p == g and all(match(expected, made, _EXACT, "strict").matched),
        "unordered": hits == p == g,
        "superset": hits == g,
        "subset": hits == p,
        "order_lcs": _recall(len(in_turn), g, p),
        "dag_ok": all(match(expected, made, _EXACT, "dag").matched) if any(one.after for one in wanted) else None,
        "extra": p - hits,
        "missing": g - hits,
        "forbidden_calls": len(found.broken),
        "steps_ratio": _recall(p, g, p),
        "ast_ok": ast_ok(expected, made, schemas),
    }


def _recall(hits: int, expected: int, made: int) -> float | None:
    """`hits` over what was expected; of nothing it is 1 where nothing was done, else unknown."""
    if expected:
        return hits / expected
    return None if made else 1.0
