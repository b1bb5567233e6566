"""What judge-llm's evaluators, providers and reporters are given and give back.

Every record is a dict whose keys can be read as attributes too: evaluators written for the guide
take a dict (``response.get("content")``), those written for the released package an object
(``provider_result.cost``).  A key that a file leaves out has the value that judge-llm gives it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from ...errors import did_you_mean
from ...evaluators.conversations import actual_turns, expected_turns
from ...types import Usage


class Record(dict):
    """A dict whose keys are attributes; missing ones have the defaults of their class."""

    defaults: ClassVar[Mapping[str, Any]] = {}
    #: Keys whose value is a record, or a list of records, of this class.
    nested: ClassVar[Mapping[str, type[Record]]] = {}

    def __init__(self, **values: Any) -> None:
        super().__init__({**copy.deepcopy(dict(self.defaults)), **values})
        for key, kind in self.nested.items():
            value = self.get(key)
            if isinstance(value, list):
                self[key] = [kind.of(item) for item in value]
            elif value is not None:
                self[key] = kind.of(value)

    @classmethod
    def of(cls, value: Any) -> Any:
        """`value` as a record of this class; what is no dict stays as it is."""
        if isinstance(value, cls) or not isinstance(value, Mapping):
            return value
        return cls(**{str(key): item for key, item in value.items()})

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            hint = did_you_mean(name, map(str, self)) if self else "It is empty."
            raise AttributeError(f"{type(self).__name__} has no {name!r}. {hint}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __reduce__(self) -> Any:  # or copy and pickle would ask __getattr__ for methods
        return _rebuilt, (type(self), dict(self))

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """The record as a plain dict, as pydantic's models give it."""
        return {key: _plain(value) for key, value in self.items()}


def _rebuilt(kind: type[Record], values: dict[str, Any]) -> Record:
    return kind(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.model_dump()
    return [_plain(item) for item in value] if isinstance(value, list) else value


# --- what is given ------------------------------------------------------------------------------


class Part(Record):
    """A piece of a message: a text, a call, or something else."""

    defaults = {"text": None, "function_call": None, "function_response": None, "thought": None, "inline_data": None}


class Content(Record):
    """What somebody said."""

    defaults = {"parts": [], "role": None}
    nested = {"parts": Part}


class ToolUse(Record):
    """A tool call: ``id``, ``name``, ``args``."""

    defaults = {"id": "", "name": "", "args": {}}


class IntermediateData(Record):
    """What happened between question and answer."""

    defaults = {"tool_uses": [], "intermediate_responses": []}
    nested = {"tool_uses": ToolUse}


class Invocation(Record):
    """One turn of a conversation."""

    defaults = {
        "invocation_id": "",
        "user_content": {},
        "final_response": {},
        "intermediate_data": {},
        "creation_timestamp": 0.0,
    }
    nested = {"user_content": Content, "final_response": Content, "intermediate_data": IntermediateData}


class SessionInput(Record):
    """Who talks to which application, and how it was told to behave."""

    defaults = {"app_name": "", "user_id": "", "state": {}, "user_prompt": None, "system_instruction": None}


class EvalCase(Record):
    """A case with the conversation that is expected."""

    defaults = {
        "eval_id": "",
        "conversation": [],
        "session_input": {},
        "creation_timestamp": 0.0,
        "evaluator_config": {},
    }
    nested = {"conversation": Invocation, "session_input": SessionInput}


class EvalSet(Record):
    """Cases of one file."""

    defaults = {
        "eval_set_id": "",
        "name": "",
        "description": None,
        "eval_cases": [],
        "creation_timestamp": 0.0,
        "source_path": None,
    }
    nested = {"eval_cases": EvalCase}


class ProviderResult(Record):
    """What a provider made of a case."""

    defaults = {
        "conversation_history": [],
        "cost": 0.0,
        "time_taken": 0.0,
        "token_usage": {},
        "metadata": {},
        "success": True,
        "error": None,
    }
    nested = {"conversation_history": Invocation}


# --- what is given back -------------------------------------------------------------------------


class EvaluationResult(Record):
    """What an evaluator of the guide's kind answers: ``evaluate(test_case, response)``."""

    defaults = {"evaluator_type": "", "passed": None, "score": None, "reason": "", "metadata": {}}


class EvaluatorResult(Record):
    """What an evaluator of the released package's kind answers."""

    defaults = {
        "evaluator_name": "",
        "evaluator_type": "",
        "success": True,
        "score": None,
        "threshold": None,
        "passed": False,
        "details": {},
        "error": None,
    }


class ExecutionRun(Record):
    """One case, one provider, once, with every evaluator's answer."""

    defaults = {
        "execution_id": "",
        "run_number": 1,
        "eval_set_id": "",
        "eval_case_id": "",
        "provider_type": "",
        "provider_result": {},
        "evaluator_results": [],
        "overall_success": False,
        "timestamp": None,
        "eval_case": None,
        "source_path": None,
    }
    nested = {"provider_result": ProviderResult, "evaluator_results": EvaluatorResult, "eval_case": EvalCase}


class TestCaseResult(Record):
    """The same as the guide to reporters has it."""

    __test__ = False  # or pytest takes it for a test
    defaults = {
        "eval_id": "",
        "agent_id": "",
        "provider_type": "",
        "passed": False,
        "cost": 0.0,
        "time_taken": 0.0,
        "evaluation_results": [],
        "conversation_history": [],
    }
    nested = {"evaluation_results": EvaluationResult, "conversation_history": Invocation}


class EvaluationReport(Record):
    """Everything that a reporter reports."""

    defaults = {
        "execution_runs": [],
        "test_cases": [],
        "summary": {},
        "total_cost": 0.0,
        "total_time": 0.0,
        "success_rate": 0.0,
        "overall_success": False,
        "generated_at": None,
    }
    nested = {"execution_runs": ExecutionRun, "test_cases": TestCaseResult}


# --- from a row ---------------------------------------------------------------------------------


def case_of(row: Mapping[str, Any]) -> EvalCase:
    """The case that a row belongs to: its ``test_case``, else one made of its columns.

    Besides what `EvalCase` has: ``question`` and ``expected`` (the row's ``reference``).
    """
    given = row.get("test_case")
    case = (
        dict(given) if isinstance(given, Mapping) else {"eval_id": str(row.get("task_id") or row.get("run_id") or "")}
    )
    case.setdefault("conversation", [invocation(turn, i) for i, turn in enumerate(expected_turns(row))])
    return EvalCase.of({**case, "question": row.get("question"), "expected": row.get("reference")})


def result_of(row: Mapping[str, Any]) -> ProviderResult:
    """What the agent did, as a provider's result; ``cost`` is None where the price is unknown."""
    metadata = row["metadata"] if isinstance(row.get("metadata"), Mapping) else {}
    conversation = metadata.get("conversation")
    if conversation is None:
        several = len(expected_turns(row)) > 1
        conversation = [invocation(turn, i) for i, turn in enumerate(actual_turns(row, several=several))]
    return ProviderResult(
        conversation_history=copy.deepcopy(list(conversation)),
        cost=_cost(row, metadata),
        time_taken=row.get("seconds") or 0.0,
        token_usage=_tokens(row),
        metadata={"agent_id": row.get("agent"), "model": row.get("model"), **metadata},
        success=row.get("status") != "error",
        error=row.get("error"),
    )


def response_of(row: Mapping[str, Any]) -> Record:
    """What the agent did, as the guide's ``response``.

    ``content`` (a text, "" where there is none), ``tool_calls``, ``cost``, ``latency``,
    ``token_usage``, ``model``, ``messages``, ``success``, ``error``, ``metadata``.
    """
    metadata = row["metadata"] if isinstance(row.get("metadata"), Mapping) else {}
    return Record(
        content=row.get("output") or "",
        tool_calls=copy.deepcopy(row.get("tool_calls") or []),
        cost=_cost(row, metadata),
        latency=row.get("seconds"),
        token_usage=_tokens(row),
        model=row.get("model"),
        messages=copy.deepcopy(row.get("messages") or []),
        success=row.get("status") != "error",
        error=row.get("error"),
        metadata=dict(metadata),
    )


def invocation(turn: Any, place: int = 0) -> dict[str, Any]:
    """A turn (see `mcpeval.evaluators.conversations`) as judge-llm writes it."""
    uses = [{"id": f"call_{i}", "name": name, "args": arguments} for i, (name, arguments) in enumerate(turn.calls)]
    transfers = [{"agent_name": agent} for agent in turn.agents]
    return {
        "invocation_id": f"turn_{place}",
        "user_content": {"parts": [{"text": turn.question}], "role": "user"},
        "final_response": {"parts": [{"text": turn.answer or ""}], "role": "model"},
        "intermediate_data": {"tool_uses": uses, "intermediate_responses": transfers},
        "creation_timestamp": 0.0,
    }


def _cost(row: Mapping[str, Any], metadata: Mapping[str, Any]) -> float | None:
    paid, saved = row.get("cost_usd"), metadata.get("saved_usd", 0.0)
    return None if paid is None or saved is None else paid + saved


def _tokens(row: Mapping[str, Any]) -> dict[str, int | None]:
    used: Iterable[int | None] = (row.get("tokens_in"), row.get("tokens_out"))
    total = Usage(*used) + Usage()
    return {
        "prompt_tokens": total.tokens_in,
        "completion_tokens": total.tokens_out,
        "total_tokens": None if None in used else total.tokens_in + total.tokens_out,
    }
