"""Exports to be looked at or read by other tools: Excel, JSON lines, JUnit, LaTeX, Markdown."""

import json
import re
import warnings
from xml.etree import ElementTree

import numpy as np
import openpyxl
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl.utils.escape import unescape

import mcpeval
from mcpeval.errors import FileError, InputError
from mcpeval.exporting import read_jsonl, to_excel, to_jsonl, to_junit, to_latex, to_markdown
from mcpeval.frames import clean_text, scores_frame

HOSTILE = ["=1+1", "+A1", "-2", "@SUM(A1)", "\tx", "\rx", "'=x", "_x0041_", "\x00\x07\x1b", "</a>&<b>", "]]>", "007",
           "NaN", "null", "True", "a\nb\r\nc", "", "x\ud800y", "\ufffe", "$HOME", "a|b", "\\end{tabular}", "%", "{",
           "[x]"]  # fmt: skip
TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=()), max_size=30))
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def scores(rates, tasks=30, evaluators=("exact",)):
    """Scores of agents that pass the first `rate` of the tasks."""
    return scores_frame(
        [
            {"run_id": f"{agent}/{task}", "task_id": str(task), "agent": agent, "evaluator": evaluator,
             "score": float(task < round(rate * tasks)), "status": "ok", "passed": task < round(rate * tasks)}
            for evaluator in evaluators
            for agent, rate in rates.items()
            for task in range(tasks)
        ]
    )  # fmt: skip


# --- JSON lines -----------------------------------------------------------------------------------


@quick
@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_json_lines_read_back_as_they_were_whatever_the_texts(tmp_path, texts):
    frame = scores_frame([{"run_id": str(i), "reason": text, "metadata": {"t": text}} for i, text in enumerate(texts)])
    pd.testing.assert_frame_equal(read_jsonl(to_jsonl(frame, tmp_path / "a.jsonl")), frame)


def test_json_lines_are_plain_json_with_the_index_first_and_a_manifest_beside(tmp_path):
    frame = pd.DataFrame({"a": [1, None], ("judge", "score"): [0.5, 1.0]}, index=pd.Index(["x", "y"], name="case"))
    path = to_jsonl(frame, tmp_path / "a.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == [{"case": "x", "a": 1.0, "judge.score": 0.5}, {"case": "y", "a": None, "judge.score": 1.0}]
    assert json.loads((tmp_path / "a.jsonl.meta.json").read_text())["rows"] == 2


def test_json_lines_of_no_columns_have_a_line_for_each_row(tmp_path):
    path = to_jsonl(pd.DataFrame(index=range(2)), tmp_path / "a.jsonl")
    assert path.read_text() == '{"index": 0}\n{"index": 1}\n'


def test_two_columns_of_one_name_are_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(InputError, match="two columns are named 'a.b'"):
        to_jsonl(pd.DataFrame([[1, 2]], columns=["a.b", ("a", "b")]), tmp_path / "a.jsonl")
    assert list(tmp_path.iterdir()) == []


# --- Excel ----------------------------------------------------------------------------------------


def sheet_of(path, name="data"):
    return openpyxl.load_workbook(path)[name]


@quick
@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_every_text_is_a_text_in_excel_and_none_a_formula(tmp_path, texts):
    sheet = sheet_of(to_excel(pd.DataFrame({"t": pd.Series(texts, dtype=object)}), tmp_path / "a.xlsx"))
    for text, (cell,) in zip(texts, sheet.iter_rows(min_row=2), strict=True):
        assert cell.data_type in ("s", "inlineStr")  # "f" is a formula
        assert unescape(cell.value or "") == clean_text(text)


def test_numbers_truths_and_missing_values_are_those_of_excel(tmp_path):
    frame = pd.DataFrame(
        {"i": [1, 2], "f": [0.5, np.nan], "b": pd.array([True, None], "boolean"), "n": [{"a": [1]}, None],
         "big": [2**60, 1], "inf": [float("inf"), -1.0]}
    )  # fmt: skip
    rows = list(sheet_of(to_excel(frame, tmp_path / "a.xlsx")).iter_rows(values_only=True))
    assert rows[0] == ("i", "f", "b", "n", "big", "inf")
    assert rows[1] == (1, 0.5, True, '{"a": [1]}', str(2**60), "Infinity")
    assert rows[2] == (2, None, None, None, 1, -1)


def test_a_workbook_has_a_filter_frozen_headings_and_the_manifest(tmp_path):
    path = to_excel(scores({"a": 0.5}, 2), tmp_path / "a.xlsx")
    sheet = sheet_of(path)
    assert (sheet.freeze_panes, sheet.auto_filter.ref[:3], sheet.max_row) == ("A2", "A1:", 3)
    about = dict(sheet_of(path, "manifest").iter_rows(values_only=True))
    assert about["mcpeval"] == mcpeval.__version__
    assert about["rows"] == "2"


def test_a_text_longer_than_a_cell_is_cut_with_a_mark_and_a_warning(tmp_path):
    with pytest.warns(UserWarning, match="1 texts were longer"):
        path = to_excel(pd.DataFrame({"t": ["x" * 40_000, "y" * 32_767]}), tmp_path / "a.xlsx")
    long, whole = (cell.value for (cell,) in sheet_of(path).iter_rows(min_row=2))
    assert len(long) == 32_767
    assert long.endswith("… [cut: 40,000 characters]")
    assert whole == "y" * 32_767


def test_a_frame_too_large_for_a_sheet_and_a_path_of_another_kind_are_refused(tmp_path):
    with pytest.raises(InputError, match="a sheet of Excel holds 1048575 and 16384"):
        to_excel(pd.DataFrame(index=range(1), columns=range(16_385)), tmp_path / "a.xlsx")
    with pytest.raises(InputError, match="should end in .xlsx"):
        to_excel(pd.DataFrame({"a": [1]}), tmp_path / "a.xls")
    with pytest.raises(FileError, match="there is no folder"):
        to_excel(pd.DataFrame({"a": [1]}), tmp_path / "no" / "a.xlsx")


# --- JUnit ----------------------------------------------------------------------------------------


def test_junit_tells_failed_from_not_scored_from_nothing_to_judge(tmp_path):
    rows = [
        {"score": 1.0, "passed": True, "status": "ok"},
        {"score": 0.0, "passed": False, "status": "ok", "reason": "Rome, not Paris"},
        {"status": "error", "error": "the provider failed"},
        {"status": "unparsed", "reason": "4 stars"},
        {"status": "skipped", "reason": "no reference"},
        {"score": 0.5, "status": "ok"},
    ]
    frame = scores_frame([{"task_id": f"t{i}", "agent": "a", "evaluator": "e", **row} for i, row in enumerate(rows)])
    suite = ElementTree.parse(to_junit(frame, tmp_path / "a.xml")).getroot()[0]
    assert {name: suite.get(name) for name in ("name", "tests", "failures", "errors", "skipped")} == {
        "name": "a", "tests": "6", "failures": "1", "errors": "2", "skipped": "2"}  # fmt: skip
    assert [[child.tag for child in case] for case in suite] == [
        [], ["failure"], ["error"], ["error"], ["skipped"], ["skipped"]]  # fmt: skip
    assert suite[1][0].text == "Rome, not Paris"
    suite = ElementTree.parse(to_junit(frame, tmp_path / "a.xml", threshold=0.5)).getroot()[0]
    assert suite.get("skipped") == "1"
    assert suite[5].attrib == {"name": "t5 [e]", "classname": "a"}


@quick
@given(TEXTS, TEXTS)
def test_junit_is_well_formed_whatever_the_texts(tmp_path, task, reason):
    frame = scores_frame([{"task_id": task, "evaluator": "e", "passed": False, "status": "ok", "reason": reason}])
    case = ElementTree.parse(to_junit(frame, tmp_path / "a.xml")).getroot()[0][0]
    shown = re.sub("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", clean_text(reason))
    assert (case[0].text or "") == re.sub("\r\n?", "\n", shown)  # XML has one line end


def test_junit_needs_the_columns_of_scores(tmp_path):
    with pytest.raises(InputError, match="no column 'evaluator'"):
        to_junit(pd.DataFrame({"output": ["x"]}), tmp_path / "a.xml")


# --- LaTeX and Markdown ---------------------------------------------------------------------------


def test_a_table_of_a_paper_has_means_intervals_bold_stars_and_a_caption_with_n():
    # 15 of 30 and 27 of 30: Wilson's intervals are .332 to .668 and .744 to .965 (Wilson 1927, R's prop.test
    # without continuity correction); 12 tasks to none by McNemar's exact test: p = 2 / 2**12 = .0005.
    text = to_latex(scores({"basic": 0.5, "react": 0.9}), baseline="basic", label="tab:main")
    assert "basic & .50 $\\pm$ .17 \\\\" in text
    assert "react & \\textbf{.90}\\textsuperscript{***} $\\pm$ .11 \\\\" in text
    assert "\\toprule" in text
    assert "interval over 30 tasks. Bold" in text
    assert "\\label{tab:main}" in text
    text = to_markdown(scores({"basic": 0.5, "react": 0.9}), percent=True)
    assert "| basic | 50.0 \\[33.2, 66.8\\] |" in text
    assert "| react | **90.0** \\[74.4, 96.5\\] |" in text


def test_stars_are_adjusted_over_the_whole_table():
    # 6 tasks to none: p = 2 / 2**6 = .031; with four such tests Holm's is .125.
    few = scores({"a": 0.5, "b": 0.7})
    many = scores({"a": 0.5, "b": 0.7}, evaluators=("e1", "e2", "e3", "e4"))
    assert "b & \\textbf{.70}\\textsuperscript{*}" in to_latex(few, baseline="a")
    assert "\\textsuperscript" not in to_latex(many, baseline="a")


def test_ties_are_both_bold_one_line_is_not_and_what_was_not_scored_is_said():
    assert to_latex(scores({"a": 0.5, "b": 0.5})).count("\\textbf{.50}") == 2
    assert "\\textbf" not in to_latex(scores({"a": 0.5}))
    frame = scores({"a": 0.5, "b": 0.5}, evaluators=("e", "f"))
    frame.loc[(frame["agent"] == "b") & (frame["evaluator"] == "f"), ["score", "status"]] = [None, "error"]
    text = to_latex(frame, interval=None)
    assert "b & \\textbf{.50} & -- \\\\" in text
    assert "30 of 120 rows could not be scored" in text


@quick
@given(TEXTS)
def test_no_text_gets_out_of_its_cell(text):
    frame = pd.DataFrame({"name": pd.Series([text], dtype=object)})
    [line] = to_latex(frame).split("\\midrule\n")[1].split("\n\\bottomrule")[0].split("\n")
    bare = re.sub(r"\\text[a-z]+\{\}|\\[&%$#_{}]|\{\}", "", line.removesuffix(r" \\"))
    assert not re.search(r"[&%$#_{}~^\\]", bare.replace("$\\pm$", ""))
    row = to_markdown(frame).split("\n")[2]
    assert not re.search(r"(?<!\\)[|<>*`\[]", row[1:-1].replace("\\\\", ""))
    assert to_markdown(frame).count("\n") == 3


def test_any_other_frame_is_written_as_it_stands_and_no_small_number_as_nothing():
    frame = pd.DataFrame({"agent": ["a_1"], "p": [0.0004], "low": [np.nan], "n": [30], "ok": [True]})
    assert to_latex(frame).splitlines() == [
        "\\begin{tabular}{lrrrl}", "\\toprule", "agent & p & low & n & ok \\\\", "\\midrule",
        "a\\_1 & \\textless{}0.01 & -- & 30 & true \\\\", "\\bottomrule", "\\end{tabular}"]  # fmt: skip


def test_a_table_is_written_with_its_manifest(tmp_path):
    text = to_latex(scores({"a": 0.5}), tmp_path / "t.tex")
    assert (tmp_path / "t.tex").read_text() == text
    assert json.loads((tmp_path / "t.tex.meta.json").read_text())["rows"] == 30


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"interval": "±"}, "interval='±' should be one of 'pm', 'brackets', None"),
        ({"digits": 1.5}, "digits=1.5 should be a whole number"),
        ({"rows": "evaluator"}, "rows and columns are both 'evaluator'"),
        ({"baseline": "basci"}, "basci"),
        ({"columns": "categroy"}, "categroy"),
    ],
)
def test_an_impossible_table_is_refused_by_name(given, message):
    with pytest.raises(InputError, match=re.escape(message)):
        to_latex(scores({"basic": 0.5, "react": 0.9}), **given)


def test_nothing_warns_where_nothing_is_lost(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        to_excel(scores({"a": 0.5}), tmp_path / "a.xlsx")
