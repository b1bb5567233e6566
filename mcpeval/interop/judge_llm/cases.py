"""judge-llm's evaluation sets: files of test cases, each a conversation that is expected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ...errors import FileError, InputError, did_you_mean
from ...evaluators.conversations import text_of, turn_of
from ...types import Task
from .documents import read_document

_SET = ("eval_set_id", "name", "description", "eval_cases", "creation_timestamp", "source_path")
_CASE = ("eval_id", "conversation", "session_input", "creation_timestamp", "evaluator_config", "turns", "description")


@dataclass(frozen=True)
class Case:
    """One test case.

    Attributes
    ----------
    id : str
        Its ``eval_id``; with its set's before it where two cases of a run share one.
    data : dict
        As in the file, always with a ``conversation``.
    set_id : str
    source : str
        Its file, relative to the folder that was asked for.
    """

    id: str
    data: Mapping[str, Any]
    set_id: str
    source: str

    @property
    def overrides(self) -> Mapping[str, Any]:
        """What the case says for evaluators, by their names."""
        return self.data.get("evaluator_config") or {}

    @property
    def task(self) -> Task:
        """The case as a task: what the user says, what should be answered, which tools should be called."""
        turns = [turn_of(invocation) for invocation in self.data["conversation"]]
        answers = [turn.answer for turn in turns if turn.answer is not None]
        calls = [{"name": name, "arguments": arguments} for turn in turns for name, arguments in turn.calls]
        return Task(
            id=self.id,
            question="\n\n".join(turn.question for turn in turns),
            category=self.set_id or "general",
            reference=answers[0] if len(turns) == 1 and answers else answers or None,
            expected_tool_calls=calls or None,
            extra={"test_case": self.data, "source_path": self.source},
        )


def read_cases(paths: Iterable[Path], *, pattern: str | None = None) -> list[Case]:
    """The cases of files, or of the files in folders.

    Parameters
    ----------
    paths : iterable of Path
        YAML or JSON files; with `pattern`, folders.
    pattern : str, optional
        Which files of a folder, at any depth: ``*.json``.

    Returns
    -------
    list of Case
        In the order of the paths, of the files' names, and of the file.

    Raises
    ------
    FileError
        A file cannot be read or holds no cases, a case has no id or nothing to say, or two of one
        file share an id.
    """
    found: list[Case] = []
    for path in paths:
        for file in [path] if pattern is None else _files(path, pattern):
            found += _read(file, file.name if pattern is None else str(file.relative_to(path)))
    ids = [case.id for case in found]
    named = [c if ids.count(c.id) == 1 else Case(f"{c.set_id}/{c.id}", c.data, c.set_id, c.source) for c in found]
    ids = [case.id for case in named]
    for case in named:
        if ids.count(case.id) > 1:
            raise FileError(
                f"two cases have the eval_id {case.data['eval_id']!r}, and their sets do not tell them apart",
                case.source,
            )
    return named


def _files(folder: Path, pattern: str) -> list[Path]:
    if not folder.is_dir():
        raise FileError("there is no such folder", folder)
    files = sorted(file for file in folder.rglob(pattern) if file.is_file())
    if not files:
        raise FileError(f"no file in this folder matches pattern={pattern!r}", folder)
    return files


def _read(file: Path, source: str) -> list[Case]:
    data = read_document(file)
    if isinstance(data, list):  # the guide's short form: cases without a set
        data = {"eval_set_id": file.name.partition(".")[0], "eval_cases": data}
    if not isinstance(data, Mapping) or not isinstance(data.get("eval_cases"), list):
        raise FileError("no evaluation set: expected an object with a list 'eval_cases', or a list of cases", file)
    _known(data, _SET, "the set", file)
    set_id = str(data.get("eval_set_id") or data.get("name") or file.name.partition(".")[0])
    return [_case(case, place, set_id, file, source) for place, case in enumerate(data["eval_cases"])]


def _case(given: Any, place: int, set_id: str, file: Path, source: str) -> Case:
    where = f"eval_cases[{place}]"
    if not isinstance(given, Mapping):
        raise FileError(f"{where} is {given!r:.80}; expected an object", file)
    _known(given, _CASE, where, file)
    if given.get("eval_id") in (None, ""):
        raise FileError(f"{where} has no eval_id", file)
    case = dict(given)
    if "turns" in case and not case.get("conversation"):
        case["conversation"] = _invocations(case.pop("turns"), where, file)
    if not case.get("conversation") and (prompt := (case.get("session_input") or {}).get("user_prompt")):
        case["conversation"] = [_invocation(prompt, None)]
    conversation = case.get("conversation")
    if not isinstance(conversation, list) or not conversation:
        raise FileError(f"{where} ({case['eval_id']!r}) has no conversation, so there is nothing to say", file)
    for turn, invocation in enumerate(conversation):
        if not isinstance(invocation, Mapping) or not text_of(invocation.get("user_content")):
            raise FileError(f"{where} ({case['eval_id']!r}): turn {turn} has no text of the user", file)
    if not isinstance(case.get("evaluator_config") or {}, Mapping):
        raise FileError(f"{where} ({case['eval_id']!r}): evaluator_config should be an object", file)
    return Case(str(case["eval_id"]), case, set_id, source)


def _invocations(turns: Any, where: str, file: Path) -> list[dict[str, Any]]:
    """Messages of user and assistant by turns, as invocations."""
    if not isinstance(turns, list) or not all(isinstance(turn, Mapping) for turn in turns):
        raise FileError(f"{where}: turns should be a list of {{role, content}}", file)
    found: list[dict[str, Any]] = []
    for turn in turns:
        if turn.get("role") == "user":
            found.append(_invocation(turn.get("content"), None))
        elif turn.get("role") == "assistant" and found:
            found[-1] = _invocation(text_of(found[-1]["user_content"]), turn.get("content"))
        else:
            raise FileError(
                f"{where}: turns has the role {turn.get('role')!r}; expected user and assistant, by turns", file
            )
    return found


def _invocation(question: Any, answer: Any) -> dict[str, Any]:
    parts: Sequence[Mapping[str, Any]] = [] if answer is None else [{"text": str(answer)}]
    return {
        "invocation_id": "",
        "user_content": {"parts": [{"text": str(question or "")}], "role": "user"},
        "final_response": {"parts": parts, "role": "model"},
    }


def _known(data: Mapping[str, Any], names: Sequence[str], where: str, file: Path) -> None:
    """Raise for a key that is one slip away from a known one; others are kept."""
    for key in data:
        if key not in names and (near := get_close_matches(str(key), names, n=1, cutoff=0.8)):
            raise FileError(f"{where} has the unknown key {key!r}. Did you mean {near[0]!r}?", file)


def check_overrides(cases: Iterable[Case], known: Iterable[str]) -> None:
    """Raise for an ``evaluator_config`` under a name that no evaluator bears."""
    known = list(known)
    for case in cases:
        for name, config in case.overrides.items():
            who = f"case {case.id!r} ({case.source}): evaluator_config"
            if name not in known:
                raise InputError(
                    f"{who} names {name!r}, which is no evaluator here. {did_you_mean(name, known)} "
                    "compat='judge-llm' (--compat) passes over it."
                )
            if not isinstance(config, Mapping):
                raise InputError(f"{who}[{name!r}] is {config!r:.80}; expected an object")
