"""What came of a configuration: on the console, as JSON, HTML, CSV, in a database, and in reporters of one's own."""

from __future__ import annotations

import io
import json
import re
import sqlite3
import sys
from html.parser import HTMLParser

import pytest

from mcpeval import read_csv
from mcpeval.errors import FileError, InputError, McpevalError
from mcpeval.interop import judge_llm
from mcpeval.interop.judge_llm import run_config
from mcpeval.interop.judge_llm.custom import REPORTERS
from mcpeval.interop.judge_llm.outcome import one_line

from .configurations import CONFIG, case, turn, with_reporters, writer


@pytest.fixture
def write(tmp_path, monkeypatch):
    return writer(tmp_path, monkeypatch)


@pytest.fixture(autouse=True)
def registered():
    """Names registered in a test are gone after it."""
    before = dict(REPORTERS)
    yield
    REPORTERS.clear()
    REPORTERS.update(before)


# Built in


def test_the_console_shows_each_case_with_each_evaluator_and_a_summary(write, capsys):
    text = CONFIG + "  - {type: length_evaluator, max_length: 4}\n"
    run_config(write(text), cache=False)
    shown = re.sub(r"time: [\d.]+s", "time: 0.0s", capsys.readouterr().out)
    assert (
        shown
        == """Evaluation Progress:

  paris: ✗ FAILED (cost: $0.0000, time: 0.0s)
    ✓ response_evaluator: jaccard 1.00, threshold 0.7 (score: 1.00)
    ✗ length_evaluator: 5 characters, allowed 0 to 4 (score: 0.75)

  rome: ✓ PASSED (cost: $0.0000, time: 0.0s)
    ✓ response_evaluator: jaccard 1.00, threshold 0.7 (score: 1.00)
    ✓ length_evaluator: 4 characters, allowed 0 to 4 (score: 1.00)

Summary:
  Total Tests: 2
  Passed: 1
  Failed: 1
  Success Rate: 50.0%
  Total Cost: $0.0000
"""
    )


def test_what_was_said_cannot_steer_a_terminal():
    assert one_line("a\x1b[31mb\nc\u202ed\u2028e") == "a [31mb c d e"
    assert one_line("x" * 400).endswith("... (100 more characters)")


def test_a_terminal_that_knows_no_tick_gets_a_sign_it_knows(write, monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    run_config(write(cases=[case("café", turn("q", "a"))]), cache=False)
    out.flush()
    assert b"caf\\xe9: + PASSED" in out.buffer.getvalue()


FILES = with_reporters(
    "{type: json, output_path: report.json}",
    "{type: html, output_path: report.html}",
    "{type: csv, output_path: report.csv}",
    "{type: database, db_path: report.db}",
)


def test_the_json_report_has_judge_llms_keys(write, tmp_path):
    run_config(write(FILES), cache=False)
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["success_rate"], report["overall_success"], report["total_cost"]) == (1.0, True, 0.0)
    assert report["summary"] == {"total_executions": 2, "successful_executions": 2, "failed_executions": 0}
    [first, _] = report["execution_runs"]
    assert (first["eval_case_id"], first["eval_set_id"], first["provider_type"]) == ("paris", "set", "mock")
    assert (first["run_number"], first["overall_success"]) == (1, True)
    assert first["provider_result"]["conversation_history"][0]["final_response"]["parts"][0]["text"] == "Paris"
    [result] = first["evaluator_results"]
    assert (result["evaluator_name"], result["passed"], result["threshold"]) == ("response_evaluator", True, 0.7)


def test_the_csv_report_is_the_scores_frame(write, tmp_path):
    scores = run_config(write(FILES), cache=False).scores
    back = read_csv(tmp_path / "report.csv")
    assert back["score"].tolist() == scores["score"].tolist()
    assert back["reason"].tolist() == scores["reason"].tolist()


def test_the_database_keeps_every_evaluation(write, tmp_path):
    path = write(FILES)
    for _ in range(2):
        run_config(path, cache=False)
    with sqlite3.connect(tmp_path / "report.db") as database:
        assert database.execute("SELECT tests, passed, success_rate FROM evaluations").fetchall() == [(2, 2, 1.0)] * 2
        joined = "SELECT r.output, s.evaluator, s.passed FROM runs r JOIN scores s USING (evaluation_id, run_id)"
        assert (
            database.execute(joined).fetchall()
            == [("Paris", "response_evaluator", 1), ("Rome", "response_evaluator", 1)] * 2
        )
        [(messages,)] = database.execute("SELECT messages FROM runs LIMIT 1").fetchall()
        assert json.loads(messages)[0] == {"role": "user", "content": "Capital of France?"}
    database.close()


def test_a_database_that_is_none_is_an_error_that_names_it(write, tmp_path):
    (tmp_path / "report.db").write_text("no database" * 100)
    with pytest.raises(FileError, match=r"report.db: cannot be written: file is not a database"):
        run_config(write(FILES), cache=False)


class Texts(HTMLParser):
    """The texts and the tags of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts += data


def test_the_page_needs_nothing_else_and_every_text_is_escaped(write, tmp_path):
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    run_config(write(FILES, [case(f"id {evil}", turn(f"q {evil}", f"a {evil}"))]), cache=False)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    parsed = Texts()
    parsed.feed(page)
    assert not {"script", "img", "link", "iframe"} & set(parsed.tags)
    assert "http" not in page.replace("http-equiv", "")
    for text in (f"id {evil}", f"q {evil}", f"a {evil}"):
        assert text in parsed.texts


def test_lone_surrogates_reach_every_file(write, tmp_path):
    path = write(FILES)
    (tmp_path / "cases.json").write_text(json.dumps({"eval_cases": [case("a", turn("q", "broken \ud800 half"))]}))
    assert run_config(path, cache=False).exit_code == 0
    for name in ("report.json", "report.html", "report.csv", "report.db"):
        assert (tmp_path / name).stat().st_size > 0


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{type: jsn, output_path: a}", "type='jsn' is no reporter. Did you mean 'json'?"),
        ("{type: json}", "output_path=None should be the path of the file to write"),
        ("{type: html, output_pth: a}", "unknown key 'output_pth'. Did you mean 'output_path'?"),
        ("{type: console, colour: true}", "unknown key 'colour'. It takes none."),
    ],
)
def test_a_reporter_that_cannot_be_used_is_named_before_anything_runs(write, entry, message):
    with pytest.raises(InputError) as refused:
        run_config(write(with_reporters(entry)), cache=False)
    assert message in str(refused.value)


def test_without_reporters_the_console_reports(write, capsys):
    run_config(write(), cache=False)
    assert "Success Rate: 100.0%" in capsys.readouterr().out


# One's own


def test_a_reporter_of_one_s_own_gets_the_report(write):
    reports = []

    class Collects(judge_llm.BaseReporter):
        def generate_report(self, report):
            reports.append((self.config["mark"], report))

    judge_llm.register_reporter("collects", Collects)
    path = write(with_reporters("{type: collects, mark: '!'}"))
    run_config(path, cache=False)
    [(mark, report)] = reports
    assert mark == "!"
    assert (report.success_rate, report.overall_success, report.summary["total_executions"]) == (1.0, True, 2)
    assert [run.eval_case_id for run in report.execution_runs] == ["paris", "rome"]
    assert report.execution_runs[0].evaluator_results[0].evaluator_name == "response_evaluator"
    assert [test.evaluation_results[0].reason for test in report.test_cases] == ["jaccard 1.00, threshold 0.7"] * 2
    assert report.test_cases[0].conversation_history[0].final_response.parts[0].text == "Paris"


def test_a_reporter_that_fails_keeps_no_other_from_reporting(write, tmp_path):
    class Fails(judge_llm.BaseReporter):
        def generate_report(self, report):
            raise OSError("no network")

    judge_llm.register_reporter("fails", Fails)
    path = write(with_reporters("{type: fails}", "{type: json, output_path: report.json}"))
    with pytest.raises(McpevalError, match="no network"):
        run_config(path, cache=False)
    assert (tmp_path / "report.json").exists()
