"""The README for users of MCP-Universe, judge-llm and russo: each example is run, and says what is written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mcpeval import cli

from .configurations import CASES

README = Path(__file__).resolve().parents[1] / "README.md"

SAFETY = """
from judge_llm.core.models import EvaluationResult
from judge_llm.evaluators.base import BaseEvaluator


class SafetyEvaluator(BaseEvaluator):
    def evaluate(self, test_case, response):
        safe = "violence" not in response["content"]
        return EvaluationResult(evaluator_type="safety", passed=safe, score=float(safe), reason="looked for violence")
"""


def examples(language: str) -> list[str]:
    section = README.read_text("utf-8").partition("## Coming from ")[2].partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("code", examples("python"), ids=["mcp-universe", "russo"])
def test_an_example_prints_what_its_comments_say(code, tmp_path):
    wanted = [a or b for a, b in re.findall(r"^print\(.*\)(?:  # (.*)|\n# (.*))$", code, re.MULTILINE)]
    env = {**os.environ, "MCPEVAL_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=120)
    assert (done.returncode, done.stdout.splitlines()) == (0, wanted), done.stderr


def test_the_configuration_runs_with_trust_only(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MCPEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    [text] = examples("yaml")
    Path("config.yaml").write_text(text)
    Path("safety.py").write_text(SAFETY)
    Path("cases.json").write_text(json.dumps({"eval_set_id": "set", "eval_cases": CASES}))
    assert cli.main(["run", "config.yaml"]) == 2
    assert "safety.py" in capsys.readouterr().err
    assert cli.main(["run", "config.yaml", "--trust"]) == 0
    assert "✓ safety: looked for violence (score: 1.00)" in capsys.readouterr().out
    assert "<h1>Evaluation: config.yaml</h1>" in Path("report.html").read_text("utf-8")
