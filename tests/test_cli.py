"""The command line: what each subcommand does, and one clean message for whatever the user did wrong."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import mcpeval
from mcpeval.cli import main


@pytest.fixture
def openai(endpoint, monkeypatch):
    """The endpoint as the provider that ``openai/...`` means, also for a process of its own."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.base)
    monkeypatch.setenv("OPENAI_API_BASE", endpoint.base)
    return endpoint


@pytest.fixture
def tasks(tmp_path):
    folder = tmp_path / "tasks"
    folder.mkdir()
    for row in (1, 2, 3):
        rule = {"name": "rule", "func": "raw", "op": "contain", "value": "answer for 2"}
        (folder / f"t{row}.json").write_text(json.dumps({"question": f"What is ROW-{row}?", "evaluators": [rule]}))
    return folder


def command(*arguments, **options):
    code = "import sys; from mcpeval.cli import main; sys.exit(main())"
    return [sys.executable, "-c", code, *map(str, arguments)]


def test_run_and_score_go_from_tasks_to_a_scores_file(openai, tasks, tmp_path, capsys):
    runs, scores = tmp_path / "runs.csv", tmp_path / "scores.csv"
    given = ["--model", "openai/good", "--strategy", "basic", "--trials", "2", "--out", str(runs)]
    assert main(["run", str(tasks), *given]) == 0
    assert "6 runs, 0 of them ended with an error" in capsys.readouterr().out
    assert main(["score", str(runs), "--out", str(scores)]) == 0
    assert "6 scores of 6 runs" in capsys.readouterr().out
    frame = mcpeval.read_csv(scores)
    assert frame["score"].tolist() == [0, 0, 1, 1, 0, 0]
    assert openai.count == 6


def test_score_with_a_model_judges_and_what_is_in_the_cache_can_be_replayed(openai, tmp_path, capsys):
    runs, scores = tmp_path / "runs.csv", tmp_path / "scores.csv"
    runs.write_text("output,question\nROW-1,why\nROW-2,why\n")
    given = ["score", str(runs), "--model", "openai/good", "--rubric", "Is it brief?", "--out", str(scores)]
    assert main(given) == 0
    paid = openai.count
    assert paid == 2
    first = mcpeval.read_csv(scores)
    assert (first["kind"] == "judge").all()
    assert "Is it brief?" in json.dumps(openai.requests[0])
    assert main([*given, "--replay"]) == 0
    assert openai.count == paid
    assert mcpeval.read_csv(scores)["score"].tolist() == first["score"].tolist()


def test_a_run_that_failed_is_counted_and_said_and_is_in_the_file(openai, tasks, tmp_path, capsys):
    runs = tmp_path / "runs.csv"
    assert main(["run", str(tasks), "--model", "openai/bad-request", "--strategy", "basic", "--out", str(runs)]) == 0
    frame = mcpeval.read_runs(runs)
    shown = capsys.readouterr().out
    failed = int((frame["status"] == "error").sum())
    assert f"3 runs, {failed} of them ended with an error" in shown


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["run", "nowhere", "--model", "openai/good", "--out", "runs.csv"], "nowhere: there is no such file or folder"),
        (["run", "TASKS", "--model", "opanai/good", "--strategy", "basic", "--out", "r.csv"], "opanai"),
        (["run", "TASKS", "--model", "openai/good", "--strategy", "baisc", "--out", "r.csv"], "Did you mean 'basic'?"),
        (["run", "TASKS", "--model", "openai/good", "--servers", "none.json", "--out", "r.csv"], "none.json"),
        (["run", "TASKS", "--model", "openai/good", "--out", "runs.xlsx"], "should end in .csv or .parquet"),
        (["run", "TASKS", "--model", "openai/good", "--out", "no/such/runs.csv"], "there is no folder"),
        (["score", "nowhere.csv"], "nowhere.csv"),
        (["score", "TASKS"], "TASKS"),
        (["servers", "check", "nowhere.json"], "nowhere.json"),
        (["cache", "load", "nowhere.jsonl"], "nowhere.jsonl"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_message_and_exit_code_2_and_nothing_was_called(
    openai, tasks, tmp_path, monkeypatch, capsys, arguments, said
):
    monkeypatch.chdir(tmp_path)
    assert main([str(tasks) if word == "TASKS" else word for word in arguments]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("mcpeval: ")
    assert said.replace("TASKS", str(tasks)) in shown.err
    assert "Traceback" not in shown.err
    assert openai.count == 0


def test_a_warning_is_one_line_that_names_no_place_in_the_code(tmp_path):
    (tmp_path / "runs.csv").write_text("output\na\n")
    given = command("score", tmp_path / "runs.csv", "--rubric", "Good?", "--replay", "--cache", tmp_path / "cache")
    environment = {name: value for name, value in os.environ.items() if name != "MCPEVAL_MODEL"}
    done = subprocess.run(given, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 2
    [warned, *_] = done.stderr.splitlines()
    assert warned.startswith("mcpeval: no model was named")
    assert ".py" not in done.stderr


def test_a_json_error_in_a_task_file_is_named_with_file_and_line_and_without_a_traceback(tmp_path):
    path = tmp_path / "bad.json"
    path.write_text('{\n  "question": oops\n}')
    done = subprocess.run(command("run", path, "--out", tmp_path / "r.csv"), capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"{path}, line 2: not JSON" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_with_130_and_a_second_one_pays_only_for_the_rest(openai, tasks, tmp_path, stop):
    out = tmp_path / "runs.csv"
    given = command("run", tasks, "--model", "openai/good", "--strategy", "basic", "--trials", 20, "--out", out)
    openai.latency = 0.2
    process = subprocess.Popen(given, stderr=subprocess.PIPE, text=True)
    while openai.count < 10:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    process.send_signal(stop)
    error = process.communicate()[1]
    assert process.returncode == 130
    assert "interrupted" in error
    assert "Traceback" not in error
    assert not out.exists()
    openai.latency = 0
    subprocess.run(given, check=True, capture_output=True)
    assert len(mcpeval.read_runs(out)) == 60
    assert openai.count <= 60 + 8  # at most what was in flight is asked again


def test_servers_check_says_what_each_server_offers_and_why_one_failed(tmp_path, node_bin, capsys, monkeypatch):
    path = tmp_path / "servers.json"
    memory = {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    entries = {
        "memory": {"command": str(node_bin / "mcp-server-memory"), "env": memory},
        "gone": {"command": "no-such-command"},
        "secret": {"command": sys.executable, "env": {"TOKEN": "{{NO_SUCH_VARIABLE}}"}},
        "broken": {"command": sys.executable, "args": ["-c", "raise SystemExit('the disk is full')"]},
    }
    path.write_text(json.dumps({"mcpServers": entries}))
    assert main(["servers", "check", str(path)]) == 1
    shown = capsys.readouterr().out
    assert "memory: ok (stdio" in shown
    assert "9 tools" in shown
    assert "search_nodes" in shown
    for name, why in [("gone", "no-such-command"), ("secret", "NO_SUCH_VARIABLE"), ("broken", "the disk is full")]:
        part = shown[shown.index(f"{name}: FAILED") :]
        assert why in part
    path.write_text(json.dumps({"mcpServers": {"memory": entries["memory"]}}))
    assert main(["servers", "check", str(path)]) == 0


def test_a_cache_can_be_looked_at_exported_and_merged(tmp_path, capsys):
    first, second, file = tmp_path / "first", tmp_path / "second", tmp_path / "cache.jsonl"
    with mcpeval.Cache(first) as cache:
        cache.set("completion:a", {"text": "1"})
        cache.set("run:b", [1, 2])
    assert main(["cache", "info", "--cache", str(first)]) == 0
    shown = capsys.readouterr().out
    assert "2 entries" in shown
    assert "1 x completion" in shown
    assert "1 x run" in shown
    assert main(["cache", "export", str(file), "--cache", str(first)]) == 0
    assert main(["cache", "load", str(file), "--cache", str(second)]) == 0
    assert "2 entries added" in capsys.readouterr().out
    with mcpeval.Cache(second) as cache:
        assert cache.get("run:b") == [1, 2]


def test_help_and_version_import_nothing_heavy(tmp_path):
    heavy = "['pandas', 'litellm', 'instructor', 'mcp', 'seaborn', 'diskcache']"
    code = f"""
import sys
from mcpeval.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert end.code == 0
loaded = [name for name in {heavy} if name in sys.modules]
assert loaded == [], loaded
"""
    for option, said in [("--version", f"mcpeval {mcpeval.__version__}"), ("--help", "servers")]:
        done = subprocess.run([sys.executable, "-c", code, option], capture_output=True, text=True, check=True)
        assert said in done.stdout


def test_python_runs_the_package_as_the_command(tmp_path):
    command = [sys.executable, "-m", "mcpeval", "servers", "list", "tim"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("mcpeval: servers: 'tim' is not in the catalogue.")


def test_a_command_is_needed_and_a_wrong_one_is_named(capsys):
    for arguments in ([], ["rnu"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
    assert "rnu" in capsys.readouterr().err


def test_the_installed_command_is_this_one(venv_bin):
    done = subprocess.run([venv_bin / "mcpeval", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"mcpeval {mcpeval.__version__}"


def test_a_parameter_of_the_model_is_given_by_name(openai, tasks, tmp_path):
    given = ["--model", "openai/good", "--strategy", "basic", "--param", "temperature=0.5", "--param", "seed=7"]
    assert main(["run", str(tasks), *given, "--out", str(tmp_path / "runs.csv")]) == 0
    assert [(body["temperature"], body["seed"]) for body in openai.requests] == [(0.5, 7)] * 3


@pytest.fixture
def configuration(tmp_path):
    """A judge-llm configuration: an echo of the question, and the evaluator that a file names."""
    (tmp_path / "own.py").write_text(
        "class Own:\n    def evaluate(self, test_case, response):\n        return 'ROW' in response['content']\n"
    )
    turn = {"invocation_id": "i", "user_content": {"parts": [{"text": "ROW-1"}]}}
    turn["final_response"] = {"parts": [{"text": "ROW-1"}]}
    cases = {"eval_set_id": "s", "name": "s", "eval_cases": [{"eval_id": "one", "conversation": [turn]}]}
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    evaluator = {"type": "custom", "module_path": "own.py", "class_name": "Own"}
    document = {
        "dataset": {"loader": "local_file", "paths": ["cases.json"]},
        "providers": [{"type": "mock", "agent_id": "echo"}],
        "evaluators": [evaluator],
        "reporters": [{"type": "console"}],
    }
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(document))
    return path


def test_run_takes_a_configuration_and_trusts_the_code_it_names_only_when_told(configuration, capsys):
    assert main(["run", str(configuration)]) == 2
    assert "own.py" in capsys.readouterr().err
    assert main(["run", str(configuration), "--trust"]) == 0
    assert "Own" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--model", "openai/good"], "--model is said in the configuration itself"),
        (["--trials", "3"], "--trials is said in the configuration itself"),
    ],
)
def test_what_a_configuration_says_itself_is_refused_beside_it(configuration, capsys, given, said):
    assert main(["run", str(configuration), *given]) == 2
    assert said in capsys.readouterr().err


def test_options_of_a_configuration_are_refused_for_tasks(tasks, capsys):
    assert main(["run", str(tasks), "--compat", "judge-llm"]) == 2
    assert "--compat belongs to a configuration" in capsys.readouterr().err


def test_a_file_without_servers_and_a_folder_to_write_to_are_said(tmp_path, tasks, capsys):
    (tmp_path / "none.json").write_text('{"mcpServers": {}}')
    assert main(["servers", "check", str(tmp_path / "none.json")]) == 0
    assert "names no server" in capsys.readouterr().out
    (tmp_path / "folder.csv").mkdir()
    assert main(["run", str(tasks), "--model", "openai/good", "--out", str(tmp_path / "folder.csv")]) == 2
    assert "is a folder" in capsys.readouterr().err


def test_looking_at_a_cache_that_is_not_there_makes_none(tmp_path, capsys):
    assert main(["cache", "info", "--cache", str(tmp_path / "typo")]) == 2
    assert "nothing to replay" in capsys.readouterr().err
    assert not (tmp_path / "typo").exists()


def test_without_a_strategy_an_embedded_model_follows_react(tasks, tmp_path, capsys):
    (tmp_path / "cache").mkdir()
    mcpeval.Cache(tmp_path / "cache").close()
    given = ["--model", "local/smollm2-135m", "--replay", "--cache", str(tmp_path / "cache")]
    assert main(["run", str(tasks), *given, "--out", str(tmp_path / "runs.csv")]) == 2
    assert "agent 'react:smollm2-135m'" in capsys.readouterr().err
