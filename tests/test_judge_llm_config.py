"""judge-llm's configurations: read strictly and run; paths, variables, defaults, exit codes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mcpeval.errors import CacheMiss, FileError, InputError
from mcpeval.interop import judge_llm
from mcpeval.interop.judge_llm import is_config, read_cases, read_config, run_config
from mcpeval.interop.judge_llm.documents import fill, read_document

from .configurations import CONFIG, case, turn, with_reporters, writer


@pytest.fixture
def write(tmp_path, monkeypatch):
    return writer(tmp_path, monkeypatch)


# Running


def test_a_configuration_gives_runs_scores_and_an_exit_code(write):
    done = run_config(write(), cache=False)
    assert done.runs["task_id"].tolist() == ["paris", "rome"]
    assert done.runs["output"].tolist() == ["Paris", "Rome"]
    assert done.runs["cost_usd"].tolist() == [0, 0]
    assert done.runs["category"].tolist() == ["set", "set"]
    assert done.scores["evaluator"].tolist() == ["response_evaluator"] * 2
    assert done.exit_code == 0
    runs, scores, exit_code = done
    assert (len(runs), len(scores), exit_code) == (2, 2, 0)


def test_repetitions_providers_and_cases_come_in_their_order(write):
    text = CONFIG.replace("providers:", "agent: {num_runs: 2, parallel_execution: true, max_workers: 3}\nproviders:")
    text = text.replace("agent_id: echo", "agent_id: echo\n  - {type: mock, agent_id: again}")
    runs = run_config(write(text), cache=False).runs
    assert runs["task_id"].tolist() == ["paris"] * 4 + ["rome"] * 4
    assert runs["agent"].tolist() == ["echo", "echo", "again", "again"] * 2
    assert runs["trial"].tolist() == [0, 1] * 4
    assert [made["eval_id"] for made in runs["test_case"]] == runs["task_id"].tolist()


def test_workers_are_one_unless_execution_is_parallel(write):
    assert read_config(write(CONFIG + "agent: {max_workers: 8}\n")).concurrency == 1
    assert read_config(write(CONFIG + "agent: {max_workers: 8, parallel_execution: true}\n")).concurrency == 8
    assert read_config(write(CONFIG + "agent: {parallel_execution: true}\n")).concurrency == 4


WRONG = [case("paris", turn("q", "Paris"), evaluator_config={"length_evaluator": {"max_length": 2}})]
LENGTH = "  - type: length_evaluator\n"


def test_a_case_that_does_not_pass_is_exit_code_1_unless_that_may_be(write):
    assert run_config(write(CONFIG + LENGTH, WRONG), cache=False).exit_code == 1
    may_fail = CONFIG + LENGTH + "agent: {fail_on_threshold_violation: false}\n"
    assert run_config(write(may_fail, WRONG), cache=False).exit_code == 0


def test_where_no_tools_are_expected_and_none_called_a_trajectory_passes_and_is_marked(write):
    done = run_config(write(CONFIG + "  - type: trajectory_evaluator\n  - type: subagent_evaluator\n"), cache=False)
    assert done.exit_code == 0
    assert [row.get("vacuous", False) for row in done.scores["metadata"]] == [False, True, True] * 2


def test_an_evaluator_that_crashes_never_passes(write):
    class Crashes:
        def __init__(self, config=None):
            pass

        def evaluate(self, test_case, response):
            raise ZeroDivisionError("division by zero")

    judge_llm.register_evaluator("crashes", Crashes)
    try:
        for may_fail in ("true", "false"):
            agent = f"agent: {{fail_on_threshold_violation: {may_fail}}}\n"
            done = run_config(write(CONFIG + "  - type: crashes\n" + agent), cache=False)
            assert done.scores["status"].tolist() == ["ok", "error"] * 2
            assert done.exit_code == 1
    finally:
        del judge_llm.custom.EVALUATORS["crashes"]


def test_a_second_run_is_answered_by_the_cache_and_replays(write, cache):
    first = run_config(write(), cache=cache)
    again = run_config(write(), cache=cache, replay=True)
    assert again.runs["cached"].tolist() == [True, True]
    assert again.scores["score"].tolist() == first.scores["score"].tolist()
    with pytest.raises(CacheMiss):
        run_config(write(cases=[case("oslo", turn("q", "Oslo"))]), cache=cache, replay=True)


# Datasets


def test_the_pattern_of_a_folder_is_honoured_at_any_depth(write, tmp_path):
    folder = tmp_path / "sets"
    (folder / "deep").mkdir(parents=True)
    for name in ("b.eval.json", "deep/a.eval.json", "other.json"):
        (folder / name).write_text(json.dumps({"eval_set_id": name, "eval_cases": [case(name, turn("q", "a"))]}))
    text = CONFIG.replace("loader: local_file", 'loader: directory\n  pattern: "*.eval.json"').replace(
        "./cases.json", "./sets"
    )
    assert run_config(write(text), cache=False).runs["task_id"].tolist() == ["b.eval.json", "deep/a.eval.json"]


def test_sets_may_be_yaml_and_in_the_guides_short_form(tmp_path):
    (tmp_path / "set.yaml").write_text(
        "- eval_id: 007\n  turns: [{role: user, content: What is 2+2}, {role: assistant, content: 4}]\n"
    )
    [found] = read_cases([tmp_path / "set.yaml"])
    assert (found.id, found.set_id, found.task.question, found.task.reference) == ("7", "set", "What is 2+2", "4")


def test_a_case_without_conversation_says_its_prompt_and_expects_nothing(write):
    done = run_config(write(cases=[{"eval_id": "a", "session_input": {"user_prompt": "Hello?"}}]), cache=False)
    assert done.runs["question"].tolist() == ["Hello?"]
    assert done.scores["status"].tolist() == ["skipped"]
    assert done.exit_code == 1  # nothing was said of it


def test_one_id_in_two_sets_is_told_apart_by_the_set(tmp_path):
    for name in ("x", "y"):
        (tmp_path / f"{name}.json").write_text(
            json.dumps({"eval_set_id": name, "eval_cases": [case("a", turn("q", "r"))]})
        )
    assert [found.id for found in read_cases([tmp_path], pattern="*.json")] == ["x/a", "y/a"]


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ([case("a", turn("q", "r")), case("a", turn("q", "r"))], "two cases have the eval_id 'a'"),
        ([{"eval_id": "a", "conversation": []}], "has no conversation"),
        ([{"conversation": [turn("q", "r")]}], "has no eval_id"),
        ([case("a", turn("", "r"))], "turn 0 has no text of the user"),
        (
            [case("a", turn("q", "r"), evaluator_conf={})],
            "unknown key 'evaluator_conf'. Did you mean 'evaluator_config'?",
        ),
        (["a"], "eval_cases[0] is 'a'; expected an object"),
        ({"cases": []}, "no evaluation set"),
        ([{"eval_id": "a", "turns": [{"role": "assistant", "content": "x"}]}], "expected user and assistant, by turns"),
    ],
)
def test_a_set_that_cannot_be_used_is_named_with_its_file(write, cases, message):
    with pytest.raises(FileError) as refused:
        run_config(write(cases=cases), cache=False)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("loader: browserbase\n  paths: [x]", "dataset.loader='browserbase'"),
        ("loader: local_file\n  paths: []", "dataset.paths=[] should be a list of paths"),
        ("loader: local_file\n  paths: [nothing.json]", "there is no such file"),
        ("loader: directory\n  paths: [nothing]", "there is no such folder"),
        ("loader: directory\n  paths: [.]\n  pattern: '*.toml'", "no file in this folder matches pattern='*.toml'"),
        ("loader: directory\n  paths: [.]\n  pattern: '../*.json'", "should be a pattern of names"),
        ("loader: local_file\n  paths: [a.json]\n  pattern: '*.json'", "pattern goes with loader: directory"),
        ("loader: local_file\n  path: [a.json]", "unknown key 'path'. Did you mean 'paths'?"),
    ],
)
def test_a_dataset_that_cannot_be_used_is_named(write, lines, message):
    path = write(CONFIG.replace("loader: local_file\n  paths: [./cases.json]", lines))
    with pytest.raises(InputError) as refused:
        run_config(path, cache=False)
    assert message in str(refused.value)


# What a case says instead


def test_an_override_is_checked_like_the_configuration(write):
    overrides = [
        ({"ResponsEvaluator": {}}, "Did you mean 'ResponseEvaluator'? compat='judge-llm' (--compat) passes over it"),
        ({"ResponseEvaluator": 3}, "expected an object"),
    ]
    overrides += [({"ResponseEvaluator": {"match": "exact"}}, "unknown key 'match'")]
    for config, message in overrides:
        with pytest.raises(InputError, match="'paris'") as refused:
            run_config(write(cases=[case("paris", turn("q", "a"), evaluator_config=config)]), cache=False)
        assert message in str(refused.value)


def test_an_override_for_an_evaluator_that_does_not_run_here_does_nothing(write):
    cases = [case("paris", turn("q", "a"), evaluator_config={"LatencyEvaluator": {"max_latency_seconds": 1}})]
    assert run_config(write(cases=cases), cache=False).exit_code == 0


def test_a_dead_override_is_passed_over_with_compat(write):
    cases = [case("paris", turn("q", "a"), evaluator_config={"ResponseValidator": {"match_type": "exact"}})]
    assert run_config(write(cases=cases), cache=False, compat="judge-llm").exit_code == 0


# Reading


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("dataset:\n  loader: [\n", 3, "not YAML"),
        ("dataset: 1\nevaluators: []\ndataset: 2\n", 3, "the key 'dataset' stands twice"),
        ("a: !!python/object/apply:os.system ['true']\n", 1, "not YAML: could not determine a constructor"),
        ("a: {b: 1, b: 2}", 1, "the key 'b' stands twice"),
    ],
)
def test_a_fault_in_a_file_is_named_with_its_line(tmp_path, text, line, message):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(FileError) as refused:
        read_document(tmp_path / "config.yaml")
    assert message in str(refused.value)
    assert refused.value.line == line


def test_a_key_that_stands_twice_is_found_in_json_too(tmp_path):
    (tmp_path / "config.json").write_text('{"a": 1, "a": 2}')
    with pytest.raises(FileError, match="the key 'a' stands twice"):
        read_document(tmp_path / "config.json")
    (tmp_path / "config.json").write_text('{"a": 1,\n }')
    with pytest.raises(FileError, match="line 2: not JSON"):
        read_document(tmp_path / "config.json")


def test_aliases_that_grow_beyond_all_measure_are_refused(tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    for text in ("\n".join(lines), "a: &a [*a]"):
        (tmp_path / "bomb.yaml").write_text(text)
        with pytest.raises(FileError, match="more than 1,000,000 values"):
            read_document(tmp_path / "bomb.yaml")


def test_what_yaml_has_more_than_json_is_a_text(tmp_path):
    (tmp_path / "a.yaml").write_text("when: 2024-01-31\n1: one\n")
    assert read_document(tmp_path / "a.yaml") == {"when": "2024-01-31", "1": "one"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CONFIG.replace("evaluators:", "evaluator:"), "unknown section 'evaluator'. Did you mean 'evaluators'?"),
        (CONFIG + "agent: {num_run: 2}\n", "agent has the unknown key 'num_run'. Did you mean 'num_runs'?"),
        (CONFIG + "agent: {num_runs: 0}\n", "agent.num_runs=0 should be a whole number, at least 1"),
        (CONFIG + "agent: {parallel_execution: 'yes'}\n", "agent.parallel_execution='yes' should be true or false"),
        (CONFIG + "agent: {telemetry: {enabled: true}}\n", "mcpeval sends no telemetry"),
        (CONFIG.replace("- type: response_evaluator", "- kind: response_evaluator"), "type=None should be a text"),
        (CONFIG.replace("response_evaluator", "respons_evaluator"), "Did you mean 'response_evaluator'?"),
        (CONFIG.replace("similarity_threshold: 0.7", "similarity: 0.7"), "unknown key 'similarity'"),
        (
            CONFIG.replace("      similarity_threshold: 0.7", "      a: 1\n    a: 2"),
            "'a' stands both in the entry and under its config",
        ),
        (CONFIG + "    enabled: 'no'\n", "enabled='no' should be true or false"),
        ("[]", "no section dataset"),
        ("- 1", "no configuration: expected sections"),
        ("providers: {type: mock}", "providers should be a list of entries"),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_refused(write, text, message):
    with pytest.raises(InputError) as refused:
        run_config(write(text), cache=False)
    assert message in str(refused.value)


def test_settings_may_stand_beside_the_type_as_the_guide_writes_them(write):
    text = CONFIG + "  - {type: cost_evaluator, max_cost: 0.01}\n  - {type: latency_evaluator, max_latency: 5.0}\n"
    scores = run_config(write(text), cache=False).scores
    assert scores["metadata"].tolist()[1]["threshold"] == 0.01
    assert scores["metadata"].tolist()[2]["threshold"] == 5.0


def test_two_evaluators_of_one_type_are_told_apart(write):
    text = CONFIG + "  - {type: response_evaluator, name: strict, match_type: exact}\n  - type: response_evaluator\n"
    names = run_config(write(text), cache=False).scores["evaluator"].tolist()[:3]
    assert names == ["response_evaluator", "strict", "response_evaluator (2)"]


def test_a_file_is_a_configuration_by_its_suffix_or_its_dataset(write, tmp_path):
    assert is_config(write())
    assert is_config(write('{"dataset": {}}', name="config.json"))
    assert not is_config(tmp_path / "cases.json")
    assert not is_config(tmp_path)
    assert not is_config("tasks.jsonl")


# Paths and variables


def test_paths_are_relative_to_the_file_that_names_them(write, tmp_path):
    write(with_reporters("{type: json, output_path: out/report.json}"))
    assert Path.cwd() == tmp_path / "elsewhere"
    run_config("../config.yaml", cache=False)
    assert (tmp_path / "out" / "report.json").exists()
    assert os.listdir() == []


def test_variables_are_filled_in_by_name_with_their_defaults(write, monkeypatch):
    monkeypatch.setenv("WHO", "someone")
    monkeypatch.setenv("LIMIT", "0.25")
    text = CONFIG.replace("agent_id: echo", "agent_id: ${WHO}-${SUFFIX:-x}").replace("0.7", "${LIMIT}")
    plan = read_config(write(text + "agent: {num_runs: '${RUNS:-3}', parallel_execution: '${P:-false}'}\n"))
    assert plan.providers[0].config["agent_id"] == "someone-x"
    assert plan.evaluators[0].config["similarity_threshold"] == 0.25
    assert (plan.trials, plan.concurrency) == (3, 1)
    assert read_config(plan.path, env={"WHO": "me", "LIMIT": "1"}).providers[0].config["agent_id"] == "me-x"


def test_a_variable_that_is_not_set_is_named_with_its_place(write):
    with pytest.raises(
        InputError, match=r"config.yaml: providers\[0\].agent_id: the environment variable WHO is not set"
    ):
        run_config(write(CONFIG.replace("echo", "${WHO}")), cache=False)


@pytest.mark.parametrize(
    ("given", "filled"),
    [
        ("${A}", "${B}"),  # what came out of a variable is not looked through again
        ("$A ${} ${A B} {{A}} ${A:x}", "$A ${} ${A B} {{A}} ${A:x}"),
        ("${EMPTY:-d}", "d"),
        ("${EMPTY}", ""),
        ("${NONE:-}", ""),
        ("x${N}", "x1.50"),
    ],
)
def test_only_names_in_dollar_braces_are_variables(given, filled):
    assert fill(given, "here", {"A": "${B}", "EMPTY": "", "N": "1.50"}) == filled


def test_a_default_that_holds_another_variable_is_refused_and_not_cut_at_the_first_brace():
    with pytest.raises(InputError, match=r"here: x: the default of A is '\$\{B:-c'; a default cannot hold another"):
        fill({"x": "${A:-${B:-c}}"}, "here", {"A": "set"})


def test_a_number_out_of_a_variable_is_one_but_in_a_name_or_a_secret():
    env = {"N": "1.50", "K": "123", "T": "True"}
    given = {
        "temperature": "${N}",
        "api_key": "${K}",
        "agent_id": "${K}",
        "model": "${K}",
        "enabled": "${T}",
        "max_tokens": "${K}",
    }
    filled = {
        "temperature": 1.5,
        "api_key": "123",
        "agent_id": "123",
        "model": "123",
        "enabled": True,
        "max_tokens": 123,
    }
    assert fill(given, "here", env) == filled


def test_a_case_is_data_and_no_variable_in_it_is_filled_in(write, monkeypatch):
    monkeypatch.setenv("SECRET", "leaked")
    done = run_config(write(cases=[case("a", turn("${SECRET} {{ 7*7 }}", "${SECRET}"))]), cache=False)
    assert done.runs["output"].tolist() == ["${SECRET}"]


# Defaults


def test_defaults_lie_beneath_the_configuration(write, tmp_path):
    (tmp_path / ".judge_llm.defaults.yaml").write_text(
        """
agent: {num_runs: 2, max_workers: 7}
providers: [{type: mock, agent_id: default, agent_metadata: {a: 1}}, {type: mock, agent_id: second}]
evaluators:
  - {type: response_evaluator, config: {match_type: exact, similarity_threshold: 1.0}}
  - {type: cost_evaluator}
  - {type: latency_evaluator}
reporters: [{type: json, output_path: below.json}]
"""
    )
    plan = read_config(
        write(CONFIG + "  - {type: latency_evaluator, enabled: false}\nagent: {parallel_execution: true}\n")
    )
    assert plan.defaults == tmp_path / ".judge_llm.defaults.yaml"
    assert (plan.trials, plan.concurrency) == (2, 7)
    assert [entry.config["agent_id"] for entry in plan.providers] == ["echo", "second"]
    assert plan.providers[0].config["agent_metadata"] == {"a": 1}
    assert [entry.type for entry in plan.evaluators] == ["response_evaluator", "cost_evaluator"]
    assert plan.evaluators[0].config == {"match_type": "exact", "similarity_threshold": 0.7}
    assert plan.reporters[0].config["output_path"] == str(tmp_path / "below.json")
    assert read_config(plan.path, defaults=False).trials == 1


def test_a_default_of_another_type_lends_nothing(write, tmp_path):
    (tmp_path / ".judge_llm.defaults.yaml").write_text("providers: [{type: gemini, agent_id: g, model: gemini-pro}]")
    [entry] = read_config(write()).providers
    assert (entry.type, "model" in entry.config) == ("mock", False)


@pytest.mark.parametrize(
    ("mode", "types"), [("append", ["cost_evaluator", "response_evaluator"]), ("replace", ["response_evaluator"])]
)
def test_a_merge_mode_is_honoured(write, tmp_path, mode, types):
    (tmp_path / "below.yaml").write_text("evaluators: [{type: cost_evaluator}]")
    text = CONFIG.replace("- type: response_evaluator", f"- _merge_mode: {mode}\n    type: response_evaluator")
    plan = read_config(write(text + "defaults: below.yaml\n"))
    assert [entry.type for entry in plan.evaluators] == types
    with pytest.raises(InputError, match="_merge_mode='ad'"):
        read_config(write(text.replace(mode, "ad") + "defaults: below.yaml\n"))


def test_defaults_are_looked_for_where_judge_llm_looks(write, tmp_path, monkeypatch):
    path = write()
    home = tmp_path / "home" / ".judge_llm"
    home.mkdir(parents=True)
    for place in (
        home / "defaults.yaml",
        Path(".judge_llm.defaults.yaml"),
        tmp_path / "named.yaml",
        tmp_path / "given.yaml",
    ):
        place.write_text("agent: {num_runs: 2}\n")
    assert read_config(path).defaults == Path.cwd() / ".judge_llm.defaults.yaml"
    Path(".judge_llm.defaults.yaml").unlink()
    assert read_config(path).defaults == home / "defaults.yaml"
    monkeypatch.setenv("JUDGE_LLM_DEFAULTS", str(tmp_path / "named.yaml"))
    assert read_config(path).defaults == tmp_path / "named.yaml"
    assert read_config(path, defaults=tmp_path / "given.yaml").defaults == tmp_path / "given.yaml"
    with pytest.raises(FileError, match="there is no such file"):
        read_config(path, defaults=tmp_path / "nothing.yaml")
