"""Small judge-llm configurations, which several test files run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def turn(question: str, answer: str, **between: Any) -> dict[str, Any]:
    user, final = ({"parts": [{"text": text}]} for text in (question, answer))
    return {"invocation_id": question, "user_content": user, "final_response": final, "intermediate_data": between}


def case(eval_id: str, *turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"eval_id": eval_id, "conversation": list(turns), **more}


CASES = [case("paris", turn("Capital of France?", "Paris")), case("rome", turn("Capital of Italy?", "Rome"))]

CONFIG = """
dataset:
  loader: local_file
  paths: [./cases.json]
providers:
  - type: mock
    agent_id: echo
evaluators:
  - type: response_evaluator
    config:
      similarity_threshold: 0.7
"""


def writer(tmp_path: Path, monkeypatch: Any) -> Callable[..., Path]:
    """A function that writes a configuration and its cases; the home folder and the current one are elsewhere."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("JUDGE_LLM_DEFAULTS", raising=False)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    def write(text: str = CONFIG, cases: Any = CASES, name: str = "config.yaml") -> Path:
        data = cases if isinstance(cases, dict) else {"eval_set_id": "set", "name": "Set", "eval_cases": cases}
        (tmp_path / "cases.json").write_text(json.dumps(data))
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def with_reporters(*lines: str) -> str:
    return CONFIG + "reporters:\n" + "".join(f"  - {line}\n" for line in lines)
