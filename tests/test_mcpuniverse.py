"""The functions of the package mcpuniverse as ours; it cannot be installed beside mcpeval's own dependencies.

``MCPEVAL_MCPUNIVERSE_PYTHON`` names the interpreter of an environment that has mcpuniverse and
diskcache (``pip install mcpuniverse==1.1.3 diskcache``); without it these tests are skipped.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcpeval.errors import InputError
from mcpeval.interop.mcpuniverse import use_functions
from mcpeval.preparing import cleanup_arguments
from tests.conftest import CONFORMANCE

PYTHON = os.environ.get("MCPEVAL_MCPUNIVERSE_PYTHON")
needs_the_package = pytest.mark.skipif(not PYTHON, reason="MCPEVAL_MCPUNIVERSE_PYTHON names no interpreter")


def there(script: str, *arguments: str) -> dict:
    """What a script prints as JSON in the other environment, in its last line."""
    root = str(Path(__file__).parents[1])
    done = subprocess.run(
        [PYTHON, "-c", script, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.skipif(importlib.util.find_spec("mcpuniverse") is not None, reason="mcpuniverse is installed")
def test_without_the_package_it_is_said_how_to_get_it_and_nothing_is_imported():
    with pytest.raises(InputError, match="No module named 'mcpuniverse'.*pip install mcpuniverse"):
        use_functions()
    assert not [name for name in sys.modules if name.startswith("mcpuniverse")]


CONSTRUCT = """
import json, sys
from pathlib import Path
from mcpeval.evaluators import missing_functions, rules_of
from mcpeval.interop.mcpuniverse import use_functions
before = [name for name in sys.modules if name.startswith("mcpuniverse")]
names = use_functions()
files = [json.loads(path.read_text()) for path in sorted(Path(sys.argv[1]).rglob("*.json"))]
configs = [config for file in files for config in file["evaluators"]]
custom = [config for config in configs if config.get("op", "") not in ("", "=")]
rules = rules_of(configs)
waiting = sum(not rule.immediate for rule in rules)
print(json.dumps({"before": before, "names": names, "custom": len(custom), "rules": len(rules), "waiting": waiting}))
"""


@needs_the_package
def test_every_evaluator_of_their_task_files_is_made_once_their_functions_are_used(conformance):
    seen = there(CONSTRUCT, str(conformance / "data" / "mcpuniverse_tasks"))
    assert seen["before"] == []
    assert len(seen["names"]) == 211 - 7  # all but = < <= > >= in contain, which are ours
    assert (seen["custom"], seen["rules"], seen["waiting"]) == (624, 769, 624)


# No network and no process: what would ask a server or start a program fails at once, in both.
BESIDE = """
import asyncio, collections, json, socket, subprocess, sys, time
from pathlib import Path
from mcpeval.evaluators import Rule
from mcpeval.interop.mcpuniverse import use_functions
use_functions()
import anyio
from mcpuniverse.evaluator import Evaluator

def refuse(*args, **kwargs):
    raise ConnectionRefusedError("no network")

class Popen:
    def __init__(self, *args, **kwargs):
        raise OSError("no process")

async def at_once(seconds, *args, sleep=asyncio.sleep):
    await sleep(0)

async def no_process(*args, **kwargs):
    raise OSError("no process")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
subprocess.Popen, anyio.open_process, asyncio.create_subprocess_exec = Popen, no_process, no_process
asyncio.sleep, time.sleep = at_once, lambda seconds: None

def theirs(config, output):
    try:
        found = asyncio.run(Evaluator(dict(config)).evaluate(output))
    except SystemExit:
        return "exits", ""
    if found.reason in ("Execution error", "JSON decoding error"):
        return "error", found.reason
    return found.passed, found.reason

counts, differences = collections.Counter(), []
for path in sorted(Path(sys.argv[1]).rglob("*.json")):
    file = json.loads(path.read_text())
    output = json.dumps(file.get("output_format"))
    for config in file["evaluators"]:
        if config.get("op", "") in ("", "="):
            continue
        said, reason = theirs(config, output)
        ours = Rule.from_config(config).evaluate(output)
        counts[str(said)] += 1
        if said == "exits":
            alike = ours.status == "error"
        elif said == "error":  # the output's fault or not: theirs makes no difference
            alike = ours.status == "error" or (ours.score == 0 and ours.reason.startswith(reason))
        else:
            alike = ours.status == "ok" and ours.passed is said and ours.reason.startswith(reason)
        if not alike:
            differences.append([config, said, reason, ours.status, ours.reason])
print()
print(json.dumps({"counts": counts, "differences": differences}))
"""


@needs_the_package
def test_their_comparisons_answer_through_a_rule_as_they_do_through_theirs(conformance, monkeypatch):
    for name in ("GITHUB_PERSONAL_ACCOUNT_NAME", "GITHUB_EVAL_ORG"):
        monkeypatch.setenv(name, "somebody")
    seen = there(BESIDE, str(conformance / "data" / "mcpuniverse_tasks"))
    assert seen["differences"] == []
    assert sum(seen["counts"].values()) == 624
    assert seen["counts"]["False"] + seen["counts"]["True"] > 400  # an answer, and no crash


OWN = """
import json
from mcpuniverse.evaluator.functions import FunctionResult, compare_func, eval_func

@eval_func(name="first letters")
async def first_letters(x, n, *args):
    if isinstance(x, list):
        return [await first_letters(y, n) for y in x]
    assert isinstance(x, FunctionResult)
    return FunctionResult(result=x.result[:int(n)])

@compare_func(name="is the variable")
async def is_the_variable(a, b, *args, **kwargs):
    return a == kwargs["context"].get_env(b), "another value"

@compare_func(name="is wrapped")
async def is_wrapped(a, b, *args, **kwargs):
    return isinstance(a, FunctionResult) and a.result == b, "not wrapped"

from mcpeval.evaluators import Rule
from mcpeval.interop.mcpuniverse import use_functions
use_functions()

def verdict(func, op, value, output, env=None):
    score = Rule.from_config({"func": func, "op": op, "value": value}, env=env).evaluate(output)
    return [score.status, score.passed, score.reason]

print(json.dumps([
    verdict("json -> first letters(2)", "=", "Pa", '"Paris"'),
    verdict("json -> foreach -> first letters(1)", "in", ["P", "R"], '["Paris", "Rome"]'),
    verdict("json -> first letters(2)", "=", "Pa", "7"),
    verdict("", "is the variable", "CITY", "Paris", {"CITY": "Paris"}),
    verdict("raw", "is wrapped", "x", "x"),
]))
"""


@needs_the_package
def test_functions_registered_there_get_what_they_get_there():
    letters, each, fault, variable, wrapped = there(OWN)
    assert letters == each == variable == wrapped == ["ok", True, ""]
    assert fault[:2] == ["ok", False] and fault[2].startswith("Execution error: 'int' object is not subscriptable")


def cleanups():
    path = CONFORMANCE / "oracles" / "mcpuniverse_cleanup_args_cases.jsonl"
    if not path.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"no {path.name} in the conformance data"))]
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", cleanups(), ids=lambda case: str(case and case["cleanup_args"]))
def test_arguments_of_a_clean_up_are_the_parts_of_the_call_that_it_names(case):
    if "raised" in case:
        with pytest.raises(ValueError) as error:
            cleanup_arguments(case["cleanup_args"], case["tool_call"])
        assert str(error.value).startswith(case["msg"].rstrip())
    else:
        assert cleanup_arguments(case["cleanup_args"], case["tool_call"]) == case["result"]


def test_a_part_that_a_call_does_not_have_is_an_error_that_names_the_path():
    call = {"arguments": {"n": 3}, "response": {"content": [{"type": "text", "text": '{"id": 7}'}]}}
    path = "$return -> get(content) -> array(0) -> get(text) -> json"
    assert cleanup_arguments(f"{path} -> get(id)", call) == 7
    for template in (f"{path} -> get(no)", "$n -> get(k)", "$return -> array(x)", "$n -> json"):
        with pytest.raises(InputError, match="cannot be followed"):
            cleanup_arguments(template, call)
