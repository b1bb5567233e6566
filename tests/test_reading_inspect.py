"""Inspect's logs as runs and scores, and ours as Inspect's.

The logs in here are written by hand in the form of inspect_ai 0.3's ``EvalLog``. Where MCPEVAL_INSPECT_PYTHON is
a Python that has inspect_ai, the package itself writes and reads the logs (tests/inspect_side.py).
"""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mcpeval
from mcpeval.errors import FileError, InputError
from mcpeval.exporting import archives, read_runs, to_inspect
from mcpeval.frames import clean_text, rows_of, runs_frame, scores_frame
from mcpeval.interop import recorded_scores

HOSTILE = [
    "=1+1",
    "\x00\x07\x1b",
    "</script>",
    "x\ud800y",
    "attachment://b8",
    "",
    "NaN",
    '{"a":1}',
    "{{ 7*7 }}",
    "\u2028",
]
TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=()), max_size=20))
quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
LONG = "a long answer " * 20


def sample(number, epoch=1, **more):
    """A sample as Inspect's recorders write it."""
    asked = [
        {"id": "c1", "function": "add", "arguments": {"x": 2, "y": 3}, "type": "function"},
        {"id": "c2", "function": "fail", "arguments": {"x": 1}, "type": "function"},
        {"id": "c3", "function": "rm", "arguments": {}, "type": "function"},
    ]
    messages = [
        {"id": "m0", "role": "system", "content": "Be short."},
        {"id": "m1", "role": "user", "content": "What is 2 + 3?", "source": "input"},
        {
            "id": "m2",
            "role": "assistant",
            "content": [{"type": "reasoning", "reasoning": "Let me add."}, {"type": "text", "text": "I add."}],
            "tool_calls": asked,
            "model": "openai/gpt-x",
        },
        {"id": "m3", "role": "tool", "content": "5", "tool_call_id": "c1", "function": "add"},
        {"role": "tool", "content": "", "tool_call_id": "c2", "function": "fail",
         "error": {"type": "unknown", "message": "no such thing"}},
        {"role": "tool", "content": "", "tool_call_id": "c3", "function": "rm",
         "error": {"type": "approval", "message": "not allowed"}},
        {"id": "m4", "role": "assistant", "content": "attachment://77aa", "model": "openai/gpt-x"},
    ]  # fmt: skip
    return {
        "id": number,
        "epoch": epoch,
        "input": "What is 2 + 3?",
        "target": "5",
        "messages": messages,
        "output": {"model": "gpt-x-2026", "choices": [{"message": messages[-1]}], "completion": "attachment://77aa"},
        "scores": {"includes": {"value": "C", "answer": "5", "explanation": "it has 5"}},
        "metadata": {"level": "easy"},
        "model_usage": {
            "openai/gpt-x": {"input_tokens": 20, "output_tokens": 10, "total_tokens": 36, "input_tokens_cache_read": 6,
                             "total_cost": 0.25},
            "openai/grader": {"input_tokens": 1000, "output_tokens": 1000, "total_tokens": 2000, "total_cost": 9.0},
        },
        "total_time": 1.5,
        "uuid": f"u{number}-{epoch}",
        "events": [{"event": "tool", "id": "c1", "working_time": 0.5}, {"event": "model"}],
        "attachments": {"77aa": LONG},
        **more,
    }  # fmt: skip


def log(samples, **spec):
    about = {"task": "sums", "task_id": "T1", "run_id": "R1", "created": "2026-10-01T10:00:00+00:00", "dataset": {},
             "model": "openai/gpt-x", "config": {}, **spec}  # fmt: skip
    plan = {"name": "plan", "steps": [{"solver": "system_message"}, {"solver": "react"}]}
    return {"version": 2, "status": "success", "eval": about, "plan": plan, "samples": samples}


def write(path, data):
    """A log as ``.json``, or as ``.eval`` with the members that Inspect writes."""
    if path.suffix == ".json":
        path.write_text(json.dumps(data))
        return path
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", json.dumps({k: data[k] for k in ("version", "eval", "plan")}))
        for one in data["samples"]:
            archive.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        archive.writestr("summaries.json", "[]")
        archive.writestr("header.json", json.dumps({k: data[k] for k in data if k != "samples"}))
    return path


# --- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".eval", ".json"])
def test_each_sample_in_each_epoch_is_a_run_with_its_calls_tokens_cost_and_time(tmp_path, suffix):
    path = write(tmp_path / f"log{suffix}", log([sample(10, 2), sample(9, 1), sample(10, 1), sample(9, 2)]))
    runs = read_runs(path)
    assert runs["run_id"].tolist() == ["T1-9-1", "T1-10-1", "T1-9-2", "T1-10-2"]
    assert runs["trial"].tolist() == [0, 0, 1, 1]
    row = rows_of(runs)[0]
    assert (row["task_id"], row["category"], row["agent"], row["model"]) == (
        "sums/9",
        "sums",
        "react:gpt-x",
        "openai/gpt-x",
    )
    assert (row["question"], row["reference"], row["output"]) == ("What is 2 + 3?", "5", LONG)
    assert (row["tokens_in"], row["tokens_out"], row["cost_usd"], row["seconds"]) == (26, 10, 0.25, 1.5)
    assert (row["status"], row["turns"], row["n_tool_calls"]) == ("ok", 2, 3)
    assert row["metadata"]["sample"] == {"level": "easy"} and row["metadata"]["model_returned"] == "gpt-x-2026"
    assert row["messages"][2] == {
        "role": "assistant",
        "content": "I add.",
        "reasoning_content": "Let me add.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"x": 2, "y": 3}'}},
            {"id": "c2", "type": "function", "function": {"name": "fail", "arguments": '{"x": 1}'}},
            {"id": "c3", "type": "function", "function": {"name": "rm", "arguments": "{}"}},
        ],
    }
    assert [one["content"] for one in row["messages"] if one["role"] == "tool"] == ["5", "no such thing", "not allowed"]
    add, fail, rm = row["tool_calls"]
    assert add["arguments"] == {"x": 2, "y": 3} and add["seconds"] == 0.5 and not add["is_error"]
    assert add["result"] == {"content": [{"type": "text", "text": "5"}], "isError": False}
    assert fail["is_error"] and fail["result"]["content"][0]["text"] == "no such thing"
    assert rm["denied"] and rm["result"] is None and rm["error"] == "not allowed"


VALUES = {
    "C": (1.0, True, "ok"), "I": (0.0, False, "ok"), "P": (0.5, None, "ok"), "N": (0.0, False, "ok"),
    "yes": (1.0, True, "ok"), "False": (0.0, False, "ok"), "0.3": (0.3, None, "ok"), "good": (None, None, "unparsed"),
    True: (1.0, True, "ok"), 0.25: (0.25, None, "ok"), 7: (None, None, "skipped"),
}  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), VALUES.items())
def test_a_value_is_what_inspects_value_to_float_makes_of_it_and_never_0_where_it_is_none(tmp_path, value, expected):
    path = write(tmp_path / "log.json", log([sample(1, scores={"s": {"value": value, "explanation": "why"}})]))
    [row] = rows_of(recorded_scores(read_runs(path)))
    assert (row["score"], row["passed"], row["status"]) == expected
    assert row["reason"] == "why" and row["kind"] == "recorded" and row["cost_usd"] == 0.0


def test_a_scorer_of_several_values_is_several_evaluators_and_nan_is_unscored(tmp_path):
    scores = {
        "double": {"value": {"a": 1, "b": "I"}, "explanation": "two"},
        "graded": {"value": float("nan"), "reason": "grader_failed", "explanation": "no verdict"},
        "refused": {"value": float("nan"), "reason": "refusal"},
    }
    path = write(tmp_path / "log.json", log([sample(1, scores=scores)]))
    assert "NaN" in path.read_text()  # as Inspect writes it
    said = {row["evaluator"]: row for row in rows_of(recorded_scores(read_runs(path)))}
    assert {name: row["score"] for name, row in said.items()} == {
        "double.a": 1.0, "double.b": 0.0, "graded": None, "refused": None,
    }  # fmt: skip
    assert (said["graded"]["status"], said["graded"]["error"]) == ("error", "grader_failed")
    assert (said["refused"]["status"], said["refused"]["error"]) == ("skipped", "refusal")


def test_values_on_a_scale_are_scores_where_the_scale_is_told(tmp_path):
    samples = [sample(i, scores={"s": {"value": value}}) for i, value in enumerate((1, 7, 10))]
    runs = read_runs(write(tmp_path / "log.json", log(samples)))
    scores = recorded_scores(runs, scales={"s": (1, 10)})
    assert scores["score"].tolist() == [0.0, 6 / 9, 1.0] and scores["label"].tolist() == [1, 7, 10]
    unknown = recorded_scores(runs)  # and the 1 is not a full score either
    assert unknown["status"].eq("skipped").all() and unknown["label"].tolist() == [1, 7, 10]
    assert "recorded_scores(scales={'s': (low, high)})" in unknown["error"][0]
    with pytest.raises(InputError, match="scales names 'S'. Known: s"):
        recorded_scores(runs, scales={"S": (1, 10)})
    with pytest.raises(InputError, match="'s' gave 7, which is not from 1 to 5"):
        recorded_scores(runs, scales={"s": (1, 5)})
    with pytest.raises(InputError, match="should be the lowest and the highest"):
        recorded_scores(runs, scales={"s": (5, 1)})


def test_a_sample_that_broke_down_is_an_error_for_each_scorer_and_a_limit_is_the_agents_own_doing(tmp_path):
    broken = sample(
        2, scores={}, error={"message": "ValueError('x')", "traceback": "", "traceback_ansi": ""}, output={}
    )
    limited = sample(3, limit={"type": "message", "limit": 3})
    late = sample(4, limit={"type": "time", "limit": 60, "reason": "too slow"})
    runs = read_runs(write(tmp_path / "log.eval", log([sample(1), broken, limited, late])))
    assert runs["status"].tolist() == ["ok", "error", "error", "error"]
    assert runs["error_class"].tolist()[1:] == ["harness", "turn_limit", "timeout"]
    assert runs["error"].tolist()[1:] == ["ValueError('x')", "message limit 3 reached", "too slow"]
    scores = recorded_scores(runs)
    assert scores["status"].tolist() == ["ok", "error", "ok", "ok"]
    summary = mcpeval.summarize(scores)
    assert (summary["n"][0], summary["unscored"][0]) == (3, 1)


def test_the_log_of_a_retry_takes_the_place_of_the_log_it_retries(tmp_path):
    failed = sample(2, scores={}, error={"message": "x"})
    write(tmp_path / "2026-10-01T10-00-00_sums_T1.eval", log([sample(1), failed]))
    write(tmp_path / "2026-10-01T11-00-00_sums_T1.eval", log([sample(1), sample(2)]))
    write(tmp_path / "2026-10-01T12-00-00_other_T2.json", log([sample(1)], task="other", task_id="T2"))
    (tmp_path / "notes.json").write_text("[1, 2]")
    runs = read_runs(tmp_path)
    assert runs["run_id"].tolist() == ["T1-1-1", "T1-2-1", "T2-1-1"]
    assert runs["status"].eq("ok").all()
    assert runs["task_id"].tolist() == ["sums/1", "sums/2", "other/1"]
    assert runs["metadata"][1]["file"] == "2026-10-01T11-00-00_sums_T1.eval"


def test_a_log_that_is_still_being_written_is_read_as_far_as_it_goes(tmp_path):
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        start = log([])
        archive.writestr("_journal/start.json", json.dumps({k: start[k] for k in ("version", "eval", "plan")}))
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample(1)))
    assert len(read_runs(path)) == 1


def test_members_compressed_by_zstandard_are_read(tmp_path):
    backport = pytest.importorskip("backports.zstd.zipfile")
    data = log([sample(1)])
    with backport.ZipFile(tmp_path / "log.eval", "w", backport.ZIP_ZSTANDARD) as archive:
        archive.writestr("header.json", json.dumps({k: data[k] for k in data if k != "samples"}))
        archive.writestr("samples/1_epoch_1.json", json.dumps(data["samples"][0]))
    assert read_runs(tmp_path / "log.eval")["output"].tolist() == [LONG]


def test_without_the_backport_a_log_of_zstandard_says_what_to_install(tmp_path, monkeypatch):
    backport = pytest.importorskip("backports.zstd.zipfile")
    with backport.ZipFile(tmp_path / "log.eval", "w", backport.ZIP_ZSTANDARD) as archive:
        archive.writestr("header.json", "{}")
    monkeypatch.setattr(archives, "_zipfile", lambda: zipfile)
    if hasattr(zipfile, "ZIP_ZSTANDARD"):
        pytest.skip("this Python reads zstandard itself")
    with pytest.raises(FileError, match=r"'header.json'.*mcpeval\[inspect\]"):
        read_runs(tmp_path / "log.eval")


def test_a_damaged_file_or_one_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "log.eval"
    path.write_text("no zip")
    with pytest.raises(FileError, match="no zip file"):
        read_runs(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.json", "{}")
    with pytest.raises(FileError, match="neither header.json nor"):
        read_runs(path)
    write(path, log([sample(1)]))
    path.write_bytes(path.read_bytes().replace(b"samples/1", b"samples/2", 1))  # the two headers now differ
    with pytest.raises(FileError, match="cannot be read"):
        read_runs(path)
    write(path, log([sample(1)]))
    monkeypatch.setattr(archives, "MEMBER_BYTES", 100)
    with pytest.raises(FileError, match="would be over"):
        read_runs(path)
    monkeypatch.setattr(archives, "ALL_BYTES", 100)
    with pytest.raises(FileError, match="unpacked; at most"):
        read_runs(path)


def test_what_others_wrote_in_our_place_is_refused_where_it_is_no_row(tmp_path):
    odd = sample(1, metadata={"mcpeval": {"trial": "x"}})
    with pytest.raises(FileError, match="log.json: a run has not what a runs frame holds"):
        read_runs(write(tmp_path / "log.json", log([odd])))
    odd = sample(1, scores={"s": {"value": 1, "metadata": {"mcpeval": {"score": "x"}}}})
    with pytest.raises(InputError, match="a recorded verdict has not what a scores frame holds"):
        recorded_scores(read_runs(write(tmp_path / "log.json", log([odd]))))


def test_a_log_without_samples_is_refused(tmp_path):
    data = log([])
    del data["samples"]
    with pytest.raises(FileError, match="the log has no samples"):
        read_runs(write(tmp_path / "log.json", data))
    with pytest.raises(FileError, match="sample 0 is 3; expected a JSON object with an 'id'"):
        read_runs(write(tmp_path / "log.json", log([3])))


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
                    max_leaves=6)  # fmt: skip
KEYS = ["messages", "output", "scores", "metadata", "model_usage", "events", "attachments", "limit", "error", "input",
        "target", "epoch", "total_time"]  # fmt: skip


@quick
@given(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=5))
def test_a_sample_of_any_shape_is_read_or_refused_with_the_file(tmp_path, odd):
    path = write(tmp_path / "log.json", log([sample(1, **odd)]))
    try:
        assert len(read_runs(path)) == 1
    except FileError as error:
        assert "log.json" in str(error)


# --- writing -------------------------------------------------------------------------------------


def run(task="t", trial=0, agent="react:m", model="openai/m", **more):
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"x":1}'}},
            {"id": "c2", "type": "function", "function": {"name": "look", "arguments": "{bad"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "seen"},
        {"role": "tool", "tool_call_id": "c2", "content": "no JSON"},
        {"role": "assistant", "content": "done", "reasoning_content": "hm"},
    ]  # fmt: skip
    calls = [
        {"server": "eyes", "name": "look", "arguments": {"x": 1}, "is_error": False, "error": None, "seconds": 0.5,
         "result": {"content": [{"type": "text", "text": "seen"}], "structuredContent": {"a": 1}, "isError": False}},
        {"server": None, "name": "look", "arguments": "{bad", "result": None, "is_error": True, "error": "no JSON",
         "seconds": 0.0},
    ]  # fmt: skip
    return {
        "run_id": f"{agent}/{task}/{trial}", "task_id": task, "category": "c", "agent": agent, "model": model,
        "trial": trial, "question": "q", "reference": {"answer": [1]}, "output": "done", "messages": messages,
        "tool_calls": calls, "status": "ok", "turns": 2, "n_tool_calls": 2, "tokens_in": 7, "tokens_out": 3,
        "cost_usd": 0.5, "seconds": 1.25, "metadata": {"servers": [], "started": "2026-10-01T10:00:00+02:00"}, **more,
    }  # fmt: skip


def two_runs():
    """A run that ended and one that broke down, and what a rule and a judge say of them."""
    broken = run("u", output=None, status="error", error="no server", error_class="server", messages=[], tool_calls=[])
    runs = runs_frame([run("t"), broken])
    ids = runs["run_id"].tolist()
    scores = scores_frame([
        {"run_id": ids[0], "task_id": "t", "evaluator": "rule", "kind": "rule", "score": 1.0, "passed": True,
         "label": True, "status": "ok", "reason": "it is", "cost_usd": 0.0},
        {"run_id": ids[0], "task_id": "t", "evaluator": "judge", "kind": "judge", "score": 0.75, "label": 4,
         "status": "ok", "reason": "</script> fine", "judge_model": "openai/j", "fingerprint": "f", "sample": 0},
        {"run_id": ids[0], "task_id": "t", "evaluator": "judge", "kind": "judge", "status": "unparsed", "error": "eh",
         "judge_model": "openai/j", "fingerprint": "f", "sample": 1},
        {"run_id": ids[1], "task_id": "u", "evaluator": "rule", "kind": "rule", "status": "error", "error": "no run"},
    ], keys=["run_id", "task_id"])  # fmt: skip
    return runs, scores


@pytest.mark.parametrize("name", ["log.json", "log.eval"])
def test_runs_and_scores_come_back_as_they_were(tmp_path, name):
    runs, scores = two_runs()
    path = to_inspect(runs, tmp_path / name, scores=scores)
    assert json.loads((tmp_path / f"{name}.meta.json").read_text())["rows"] == 2
    read = read_runs(path)
    again = read.assign(metadata=[{k: v for k, v in cell.items() if k != "scores"} for cell in read["metadata"]])
    pd.testing.assert_frame_equal(again, runs)
    back = recorded_scores(read).reset_index(drop=True)
    pd.testing.assert_frame_equal(back[list(scores.columns)], scores)


def test_inspect_sees_verdicts_grades_and_rows_that_were_not_scored(tmp_path):
    runs, scores = two_runs()
    data = json.loads(to_inspect(runs, tmp_path / "log.json", scores=scores, task="eyes").read_text())
    first, second = data["samples"]
    assert (data["eval"]["task"], data["eval"]["model"], data["eval"]["solver"]) == ("eyes", "openai/m", "react:m")
    assert first["scores"]["rule"]["value"] == "C" and first["scores"]["rule"]["explanation"] == "it is"
    assert first["scores"]["judge"]["value"] == 0.75
    assert np.isnan(first["scores"]["judge [sample 1]"]["value"])
    assert first["scores"]["judge [sample 1]"]["reason"] == "grader_failed"
    assert np.isnan(second["scores"]["rule"]["value"]) and second["error"]["message"] == "no server"
    assert first["target"] == '{"answer": [1]}' and first["epoch"] == 1 and first["id"] == "t"
    rule = data["results"]["scores"][0]
    assert (rule["scored_samples"], rule["unscored_samples"], rule["metrics"]["mean"]["value"]) == (1, 1, 1.0)
    assert data["results"]["completed_samples"] == 1
    assert data["stats"]["started_at"] == "2026-10-01T08:00:00+00:00"  # of the zone in which the run began
    assert data["stats"]["completed_at"] == "2026-10-01T08:00:01.250000+00:00"
    [failed] = [one for one in first["messages"] if one.get("error")]
    assert failed["error"] == {"type": "unknown", "message": "no JSON"}


def test_several_agents_are_a_folder_of_logs(tmp_path):
    rows = [
        run(task, trial, agent, model)
        for agent, model in (("a:m", "m"), ("a:n", "n/n"))
        for task in "tu"
        for trial in (0, 1)
    ]
    runs = runs_frame(rows)
    with pytest.raises(
        InputError, match="a log is of one agent and one model, and runs has 'a:m' of 'm', 'a:n' of 'n/n'"
    ):
        to_inspect(runs, tmp_path / "log.eval")
    assert list(tmp_path.iterdir()) == []
    folder = to_inspect(runs, tmp_path / "logs", task="two tasks")
    assert sorted(path.name for path in folder.glob("*.eval")) == ["two-tasks-a-m-m.eval", "two-tasks-a-n-n-n.eval"]
    read = read_runs(folder)
    assert read["run_id"].tolist() == runs["run_id"].tolist()
    with pytest.raises(InputError, match="'a:m' has trial 0 of the task 't' twice"):
        to_inspect(runs_frame([run("t", agent="a:m"), run("t", agent="a:m", run_id="x")]), tmp_path / "log.json")


def test_a_frame_of_ones_own_needs_no_more_than_an_output(tmp_path):
    frame = pd.DataFrame({"output": ["a", "b"], "question": ["x", None]}, index=["i", "j"])
    read = read_runs(to_inspect(frame, tmp_path / "log.eval", scores=pd.DataFrame(
        {"run_id": ["i"], "evaluator": ["e"], "score": [0.5]})))  # fmt: skip
    assert read["run_id"].tolist() == ["i", "j"] and read["output"].tolist() == ["a", "b"]
    assert [len(cell) for cell in read["messages"]] == [2, 1]
    assert recorded_scores(read)["score"].tolist() == [0.5]


def test_what_cannot_be_written_is_said_before_anything_is(tmp_path):
    runs, scores = two_runs()
    for wrong, message in [
        ({"scores": [1]}, "scores is a list"),
        ({"scores": scores.drop(columns="score")}, "has no column 'score'"),
        ({"scores": scores.assign(run_id="z")}, "of the run 'z', which is not in runs"),
        ({"task": " "}, "should be a name"),
    ]:
        with pytest.raises(InputError, match=message):
            to_inspect(runs, tmp_path / "log.json", **wrong)
    with pytest.raises(InputError, match="runs is a list"):
        to_inspect([1], tmp_path / "logs")
    with pytest.raises(FileError, match="has the suffix '.evl'"):
        to_inspect(runs, tmp_path / "log.evl")
    with pytest.raises(InputError, match="cannot be written as JSON"):
        to_inspect(pd.DataFrame({"output": ["x"], "metadata": [{"s": {1}}]}), tmp_path / "log.json")
    assert list(tmp_path.iterdir()) == []


@quick
@given(st.lists(TEXTS, min_size=5, max_size=5), st.sampled_from(["log.json", "log.eval"]))
def test_hostile_texts_come_back_as_texts(tmp_path, texts, name):
    task, words, told, arguments, reason = texts
    messages = [
        {"role": "user", "content": [{"type": "text", "text": words}, {"type": "input_audio", "input_audio": {}}]},
        {"role": "assistant", "content": words, "tool_calls": [
            {"id": told, "type": "function", "function": {"name": words or "f", "arguments": arguments}}]},
        {"role": "tool", "tool_call_id": told, "content": told},
        {"role": words, "content": None, "odd": [told]},
    ]  # fmt: skip
    runs = runs_frame(
        [run(task, question=words, output=told, messages=messages, reference=[told], agent="a", run_id="r")]
    )
    scores = scores_frame([{"run_id": "r", "evaluator": words, "reason": reason, "label": told, "score": 0.5,
                            "status": "ok", "metadata": {told: reason}}], keys=["run_id"])  # fmt: skip
    read = read_runs(to_inspect(runs, tmp_path / name, scores=scores))
    [row] = rows_of(read)
    clean = json.loads(json.dumps(messages), object_hook=lambda d: {clean_text(k): _cleaned(v) for k, v in d.items()})
    assert row["messages"] == clean
    assert (row["question"], row["output"], row["task_id"]) == (clean_text(words), clean_text(told), clean_text(task))
    assert row["reference"] == [clean_text(told)]
    [said] = rows_of(recorded_scores(read))
    assert (said["evaluator"], said["reason"], said["label"]) == tuple(map(clean_text, (words, reason, told)))
    assert said["metadata"] == {clean_text(told): clean_text(reason)}


def _cleaned(value):
    if isinstance(value, str):
        return clean_text(value)
    return [_cleaned(one) for one in value] if isinstance(value, list) else value


# --- inspect_ai itself ---------------------------------------------------------------------------


def inspect(*arguments):
    python = os.environ.get("MCPEVAL_INSPECT_PYTHON")
    if not python:
        pytest.skip("MCPEVAL_INSPECT_PYTHON names no Python that has inspect_ai")
    command = [python, str(Path(__file__).with_name("inspect_side.py")), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_what_inspect_wrote_is_read_as_inspect_reads_it(tmp_path):
    logs = inspect("write", tmp_path)
    assert sorted(Path(path).suffix for path in logs) == [".eval", ".json"]
    for path, theirs in logs.items():
        runs = read_runs(path)
        assert [(row["task_id"], row["trial"] + 1) for row in rows_of(runs)] == [
            (f"toy/{one['id']}", one["epoch"]) for one in theirs["samples"]
        ]
        scores = recorded_scores(runs)
        for row, one in zip(rows_of(runs), theirs["samples"]):
            calls = [[call["name"], call["arguments"], None] for call in row["tool_calls"]]
            assert calls == one["calls"] and (row["error"] or None) == one["error"]
            assert (row["output"] or "") == one["output"] and row["reference"] == one["target"]
            texts = [[message["role"], message["content"] or ""] for message in row["messages"]]
            assert [pair for pair in texts if pair[0] != "tool"] == [p for p in one["messages"] if p[0] != "tool"]
            ours = scores[scores["run_id"] == row["run_id"]]
            said = {name: None if value != value else value for name, value in zip(ours["evaluator"], ours["score"])}
            assert said == one["scores"] or (one["error"] and set(said.values()) == {None})
            assert row["tokens_in"] is None or row["tokens_in"] + row["tokens_out"] == sum(one["tokens"]) + 6
    assert len(read_runs(tmp_path)) == 12


@pytest.mark.parametrize("name", ["log.json", "log.eval"])
def test_what_we_write_is_read_by_inspect(tmp_path, name):
    runs, scores = two_runs()
    more = runs_frame([run("\x00 ../x y", 1, output=text, question=text) for text in HOSTILE[:1]])
    path = to_inspect(pd.concat([runs, more], ignore_index=True), tmp_path / name, scores=scores, task="eyes")
    theirs = inspect("read", path)
    assert (theirs["task"], theirs["model"], theirs["solver"]) == ("eyes", "openai/m", "react:m")
    samples = {one["id"]: one for one in theirs["samples"]}
    assert set(samples) == {"t", "u", "%00 ../x y"}
    assert samples["t"]["scores"] == {"rule": 1.0, "judge": 0.75, "judge [sample 1]": None}
    assert samples["t"]["reasons"] == {"rule": "it is", "judge": "</script> fine", "judge [sample 1]": "eh"}
    assert samples["u"]["scores"] == {"rule": None} and samples["u"]["error"] == "no server"
    assert [call[:2] for call in samples["t"]["calls"]] == [["look", {"x": 1}], ["look", {}]]
    assert samples["t"]["calls"][1][2] == "no JSON object: {bad" and samples["t"]["errors"] == ["no JSON"]
    assert samples["t"]["messages"][-1] == ["assistant", "done"] and samples["t"]["output"] == "done"
    assert samples["t"]["tokens"] == [10]
    assert theirs["means"] == {"rule": 1.0, "judge": 0.75}
    assert sorted(theirs["summaries"]) == [["%00 ../x y", 2, True], ["t", 1, True], ["u", 1, True]]
