"""Reporters: what came of a configuration, on the console and in files."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...errors import InputError, McpevalError, did_you_mean
from ...exporting import to_csv
from .config import Entry
from .custom import REPORTERS, make
from .outcome import ERROR, FAILED, NO_SCORE, PASSED, Outcome, Verdict, called, dollars, one_line, write
from .pages import write_database, write_html
from .records import (
    EvaluationReport,
    EvaluationResult,
    EvaluatorResult,
    ExecutionRun,
    TestCaseResult,
    case_of,
    result_of,
)

Reporter = Callable[["Outcome"], None]


def reporter_of(entry: Entry, loaded: Any = None) -> Reporter:
    """What a configuration's reporter does with an `Outcome`.

    Raises
    ------
    InputError
        The type or a key is unknown, or a path is missing.
    """
    if cls := loaded or REPORTERS.get(entry.type):
        return _custom(make(cls, entry.config, entry.where), entry.where)
    if entry.type not in KINDS:
        known = [*KINDS, *REPORTERS, "custom"]
        raise InputError(f"{entry.where}: type={entry.type!r} is no reporter. {did_you_mean(entry.type, known)}")
    report, key, default = KINDS[entry.type]
    for name in entry.config:
        if name != key:
            raise InputError(
                f"{entry.where}: unknown key {name!r}. {did_you_mean(name, [key]) if key else 'It takes none.'}"
            )
    if key is None:
        return report
    path = entry.config.get(key, default)
    if not isinstance(path, str) or not path:
        raise InputError(f"{entry.where}: {key}={path!r} should be the path of the file to write")
    return lambda outcome: report(outcome, outcome.path.absolute().parent / path)


def _custom(made: Any, where: str) -> Reporter:
    if not callable(getattr(made, "generate_report", None)):
        raise InputError(f"{where}: {type(made).__name__} has no method generate_report(report)")

    def report(outcome: Outcome) -> None:
        try:
            made.generate_report(report_of(outcome))
            if callable(getattr(made, "cleanup", None)):
                made.cleanup()
        except Exception as error:  # of code that is not ours
            raise McpevalError(f"{where}: the reporter failed: {type(error).__name__}: {error}") from error

    return report


# --- the console --------------------------------------------------------------------------------


def console(outcome: Outcome) -> None:
    """Print each case with each evaluator's verdict, score and reason, and a summary."""
    text = console_text(outcome)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:  # a terminal that knows no ✓
        for mark, word in (("✓", "+"), ("✗", "x")):
            text = text.replace(mark, word)
        text = text.encode(encoding, "backslashreplace").decode(encoding)
    print(text)


def console_text(outcome: Outcome) -> str:
    """What `console` prints: one line for a run, one for each of its scores, and a summary."""
    several = outcome.runs["agent"].nunique() > 1, outcome.runs["trial"].nunique() > 1
    lines = [] if outcome.defaults is None else [f"Defaults: {outcome.defaults}", ""]
    lines += ["Evaluation Progress:"]
    for verdict in outcome.verdicts:
        lines += ["", *_verdict_lines(verdict, *several)]
    counts = {"Passed": outcome.count(PASSED), "Failed": outcome.failed, "Errors": outcome.errors}
    unscored = sum(score["score"] is None for verdict in outcome.verdicts for score in verdict.scores)
    lines += ["", "Summary:", f"  Total Tests: {len(outcome.verdicts)}"]
    lines += [f"  {name}: {count}" for name, count in counts.items() if count or name != "Errors"]
    lines += [f"  Success Rate: {outcome.rate:.1%}", f"  Total Cost: {dollars(outcome.cost_usd)}"]
    lines += [f"  Not Scored: {unscored}"] if unscored else []
    return "\n".join(lines)


def _verdict_lines(verdict: Verdict, several_agents: bool, several_trials: bool) -> list[str]:
    run, what = verdict.run, verdict.what
    who = [str(run["agent"])] if several_agents else []
    who += [f"run {run['trial'] + 1}"] if several_trials else []
    name = one_line(run["task_id"]) + (f" ({one_line(', '.join(who))})" if who else "")
    mark = {PASSED: "✓", FAILED: "✗", ERROR: "!"}[what]
    lines = [f"  {name}: {mark} {what} (cost: {dollars(run['cost_usd'])}, time: {run['seconds']:.1f}s)"]
    if run["status"] != "ok":
        lines.append(f"    ! the run: {one_line(run['error'])}")
    for score in verdict.scores:
        mark = "!" if score["status"] in NO_SCORE else {True: "✓", False: "✗"}.get(score["passed"], "-")
        shown = f"score: {score['score']:.2f}" if score["score"] is not None else f"no score: {score['status']}"
        lines.append(f"    {mark} {one_line(called(score))}: {one_line(score['reason'])} ({shown})")
    return lines


# --- files --------------------------------------------------------------------------------------


def report_of(outcome: Outcome) -> EvaluationReport:
    """The outcome as judge-llm's reporters get it: ``execution_runs``, and ``test_cases`` as its guide has them."""
    cases = {case.id: case for case in outcome.cases}
    runs, tests = [], []
    for verdict in outcome.verdicts:
        run, case = verdict.run, cases[verdict.run["task_id"]]
        result = result_of(run)
        kind = str(result.metadata.get("provider_type") or "")
        passed = verdict.what == PASSED
        runs.append(
            ExecutionRun(
                execution_id=run["run_id"],
                run_number=run["trial"] + 1,
                eval_set_id=case.set_id,
                eval_case_id=str(case.data["eval_id"]),
                provider_type=kind,
                provider_result=result,
                evaluator_results=[_evaluator_result(score) for score in verdict.scores],
                overall_success=passed,
                timestamp=result.metadata.get("started"),
                eval_case=case_of({"test_case": case.data, "question": run["question"], "reference": run["reference"]}),
                source_path=case.source,
            )
        )
        tests.append(
            TestCaseResult(
                eval_id=run["task_id"],
                agent_id=run["agent"],
                provider_type=kind,
                passed=passed,
                cost=run["cost_usd"],
                time_taken=run["seconds"],
                evaluation_results=[_evaluation_result(score) for score in verdict.scores],
                conversation_history=result.conversation_history,
            )
        )
    counts = {"total": len(runs), "successful": outcome.count(PASSED), "failed": len(runs) - outcome.count(PASSED)}
    return EvaluationReport(
        execution_runs=runs,
        test_cases=tests,
        summary={f"{name}_executions": count for name, count in counts.items()},
        total_cost=outcome.cost_usd,
        total_time=outcome.seconds,
        success_rate=outcome.rate,
        overall_success=outcome.count(PASSED) == len(runs) > 0,
        generated_at=outcome.made,
    )


def _evaluator_result(score: Mapping[str, Any]) -> EvaluatorResult:
    metadata = score["metadata"] or {}
    return EvaluatorResult(
        evaluator_name=score["evaluator"],
        evaluator_type=called(score),
        success=score["status"] == "ok",
        score=score["score"],
        threshold=metadata.get("threshold"),
        passed=score["passed"] is True,
        details=metadata,
        error=score["error"],
        reason=score["reason"],
        status=score["status"],
    )


def _evaluation_result(score: Mapping[str, Any]) -> EvaluationResult:
    passed, reason = score["passed"] is True, score["reason"]
    return EvaluationResult(
        evaluator_type=called(score),
        passed=passed,
        score=score["score"],
        reason=reason,
        metadata=score["metadata"] or {},
    )


def write_json(outcome: Outcome, path: Path) -> None:
    """`report_of`, without the guide's ``test_cases``, as one JSON file."""
    report = report_of(outcome).model_dump()
    del report["test_cases"]
    write(path, json.dumps(_finite(report), indent=2, ensure_ascii=False, allow_nan=False, default=str))


def _finite(value: Any) -> Any:
    """`value` with null for what JSON has no number for."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))) else value


def write_csv(outcome: Outcome, path: Path) -> None:
    """The scores frame, by `mcpeval.to_csv`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    to_csv(outcome.scores, path)


#: By type: what it does, the key that says where, and where it writes without.
KINDS: dict[str, tuple[Callable[..., None], str | None, str | None]] = {
    "console": (console, None, None),
    "json": (write_json, "output_path", None),
    "html": (write_html, "output_path", None),
    "csv": (write_csv, "output_path", None),
    "database": (write_database, "db_path", "judge_llm_results.db"),
}
