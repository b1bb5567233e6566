"""Every deliberate difference from the systems whose evaluators we answer for: one table, with a reason each."""

from __future__ import annotations

from typing import NamedTuple


class Difference(NamedTuple):
    """`what` is different in `system`; `cases` are the oracle's, where it has some."""

    system: str
    what: str
    cases: tuple
    why: str


UNIVERSE, RUSSO, JUDGE_LLM = "MCP-Universe", "russo", "judge-llm"
NEVER = "judge-llm, also under compat"

TABLE = [
    Difference(*row)
    for row in [
        (UNIVERSE, "!=", (226, 227), "an operator of ours that they do not have"),
        (UNIVERSE, "odd outputs", (259, 260, 261, 262), "lists and None are evaluated; theirs raises"),
        (UNIVERSE, "a missing variable", (267, 269), "no fault of the agent: status error, not 0"),
        (UNIVERSE, "a nested variable", (271, 274), "filled in at any depth; theirs forgets the context there"),
        (UNIVERSE, "Jinja", (277, 278, 279, 280, 281, 282), "only {{VAR}} is replaced; theirs runs it as a program"),
        (UNIVERSE, "foreach over nothing", (152,), "passes as theirs does, and says that it is vacuous"),
        (RUSSO, "index drift", ("ru-036", "ru-037"), "the n-th expected call is compared with the n-th call made"),
        (RUSSO, "no calls allowed", ("ru-004",), "a call where none is allowed is a failure; theirs does not look"),
        (JUDGE_LLM, "a number at the start of a line", (), "a wrong number passed: 3. was taken for a list marker"),
        (JUDGE_LLM, "rouge in other scripts", (), "only a-z and 0-9 were words, so that the right answer scored 0"),
        (JUDGE_LLM, "exact ignores arguments", (), "a call with the wrong arguments is not exactly the expected one"),
        (
            JUDGE_LLM,
            "half of the calls will do",
            (),
            "a trajectory that is asked to be exact passed with every second call wrong",
        ),
        (
            JUDGE_LLM,
            "calls behind the expected",
            (),
            "exact did not look at further calls, even with allow_extra_tools: false",
        ),
        (JUDGE_LLM, "forbidden extra calls", (), "calls that are forbidden took away half of their share, and passed"),
        (JUDGE_LLM, "greedy matching", (), "every expected call was made; which one was looked at first decided"),
        (JUDGE_LLM, "superset of no calls", (), "who calls nothing calls nothing that is not expected"),
        (JUDGE_LLM, "no arguments expected", (), "arguments that should be exactly none were taken for any"),
        (
            JUDGE_LLM,
            "a fuzzy threshold",
            (),
            "argument_similarity_threshold did not count where as many calls were made as expected",
        ),
        (JUDGE_LLM, "most of the agents will do", (), "a chain that is asked to be exact passed with an agent missing"),
        (JUDGE_LLM, "forbidden agents", (), "allow_extra_agents: false passed with an extra agent"),
        (NEVER, "rouge", ("jl-026",), "rouge that is asked for is rouge, whether or not rouge_score is installed"),
        (NEVER, "semantic", (), "where that package is installed, semantic was silently rouge"),
        (NEVER, "a crash", (), "an evaluator that raised was left out, and the case counted as passed"),
        (NEVER, "an unknown setting", (), "a misspelt key or value was passed over, and the default was used"),
        (NEVER, "a failed embedding", (), "a provider's failure scored 0, as if the answer were wrong"),
        (NEVER, "an unknown price", (), "a run whose price is unknown cost 0, and passed every limit"),
        (NEVER, "pattern", (), "a folder's pattern was not honoured, and a file that could not be read was left out"),
        (NEVER, "variables", (), "${VAR} stayed as it was written"),
    ]
]


def of(system: str) -> list[Difference]:
    """The rows of one system."""
    return [row for row in TABLE if row.system == system]


def why(system: str, what: str) -> str:
    """The reason of one row."""
    return next(row.why for row in of(system) if row.what == what)
