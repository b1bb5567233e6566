"""Calls to models and the process around them: what is printed and loaded, forks, several loops."""

import asyncio
import json
import os
import subprocess
import sys
import time
from urllib.request import Request, urlopen

import pytest

from mcpeval import llm
from mcpeval._loop import run_sync
from mcpeval.caching import Cache

ASK = [{"role": "user", "content": "How high is the tide at ROW-1?"}]


@pytest.fixture
def ask(endpoint):
    """Ask one of the endpoint's models; keyword arguments as those of `complete`."""

    def ask(name="good", messages=ASK, **how):
        how = {"api_base": endpoint.base, "api_key": "sk-test", **how}
        return run_sync(llm.complete(name if "/" in name else f"openai/{name}", messages, **how))

    return ask


QUIET = """
import asyncio, os, sys
seen = []
def hook(event, args):
    if event in ("socket.connect", "socket.getaddrinfo"):
        seen.append(str(args[1] if event == "socket.connect" else args[0]))
sys.addaudithook(hook)
from mcpeval import llm
from mcpeval._loop import run_sync
from mcpeval.errors import ModelError
assert not {"litellm", "instructor", "openai"} & set(sys.modules), "loaded too early"
from pydantic import BaseModel
class Verdict(BaseModel):
    reason: str
async def main(base):
    how = dict(api_base=base, api_key="sk-test", retries=1, max_wait=0.01)
    for name in ("good", "refusal", "r500", "r429", "html", "reset", "null-choices", "r401", "context"):
        for call in (llm.complete(f"openai/{name}", ASK, **how), llm.structured(f"openai/{name}", ASK, Verdict, **how)):
            try:
                await call
            except ModelError:
                pass
    for provider in ("hosted_vllm", "mistral", "deepseek"):
        await llm.complete(f"{provider}/good", ASK, **how)
    call = asyncio.ensure_future(llm.complete("openai/hang", ASK, **how))
    await asyncio.sleep(0.2)
    call.cancel()
    await asyncio.wait([call])
ASK = [{"role": "user", "content": "x"}]
run_sync(main(sys.argv[1]))
assert os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"
assert seen and all("127.0.0.1" in address for address in seen), seen
"""


def python(code, *args, **env):
    return subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, timeout=120, env={**os.environ, **env}
    )


def test_nothing_is_printed_and_no_network_is_asked_but_the_endpoint(endpoint):
    done = python(QUIET, endpoint.base)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_interrupt_while_litellm_is_imported_leaves_it_whole(endpoint):
    code = """
import os, signal, sys
from mcpeval import llm
from mcpeval._loop import run_sync
signal.signal(signal.SIGINT, signal.default_int_handler)
left = ["litellm.main"]
def interrupt(event, args):
    if event == "import" and args[0] in left:
        left.clear()
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(interrupt)
how = {"api_base": sys.argv[1], "api_key": "sk-test"}
try:
    llm.check_models(["openai/good"], **how)
except KeyboardInterrupt:
    llm.check_models(["openai/good"], **how)
    print(run_sync(llm.complete("openai/good", [{"role": "user", "content": "ROW-1"}], **how)).text)
"""
    done = python(code, endpoint.base)
    assert (done.returncode, done.stdout, done.stderr) == (0, "answer for 1\n", "")


def test_a_call_cancelled_before_it_is_sent_leaves_no_warning(endpoint):
    code = """
import asyncio, sys
from mcpeval import llm
from mcpeval._loop import run_sync
async def main(base):
    for wait in (0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.4):
        ask = [{"role": "user", "content": "x"}]
        call = asyncio.ensure_future(llm.complete("openai/hang", ask, api_base=base, api_key="sk-test"))
        await asyncio.sleep(wait)
        call.cancel()
        await asyncio.wait([call])
run_sync(main(sys.argv[1]))
"""
    done = python(code, endpoint.base)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_replay_loads_no_client_library(ask, endpoint, tmp_path):
    with Cache(tmp_path / "c") as cache:
        ask(cache=cache)
    code = f"""
import sys
from mcpeval import llm
from mcpeval._loop import run_sync
from mcpeval.caching import Cache
for replay in (False, True):
    cache = Cache({str(tmp_path / "c")!r}, replay=replay)
    answer = run_sync(llm.complete("openai/good", {ASK!r}, api_base={endpoint.base!r}, cache=cache))
    assert answer.text == "answer for 1" and answer.usage.cached
assert not {{"litellm", "instructor", "openai", "mcp"}} & set(sys.modules)
"""
    done = python(code)
    assert done.returncode == 0, done.stderr


def test_calls_work_in_a_forked_child(ask, endpoint):
    ask("good")
    child = os.fork()
    if not child:
        os._exit(0 if ask("good", sample=1).text == "answer for 1" else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert ask("good", sample=2).text == "answer for 1" and endpoint.count == 3


def test_a_fork_in_the_middle_of_calls_leaves_both_processes_working_and_silent(endpoint):
    code = """
import os, sys, threading, time
from mcpeval import llm
from mcpeval._loop import run_sync
def ask(n):
    messages = [{"role": "user", "content": f"ROW-{n}"}]
    return run_sync(llm.complete("openai/good", messages, api_base=sys.argv[1], api_key="sk-test")).text
answers = [ask(8)]
threads = [threading.Thread(target=lambda n=n: answers.append(ask(n))) for n in range(8)]
for thread in threads:
    thread.start()
for n in range(100, 103):
    if not os.fork():
        sys.exit(5 if ask(n) == f"answer for {n}" else 1)
    time.sleep(0.2)
for thread in threads:
    thread.join()
codes = [os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(3)]
assert codes == [5, 5, 5] and sorted(answers) == [f"answer for {n}" for n in range(9)], (codes, answers)
assert ask(9) == "answer for 9"
"""
    endpoint.latency = 0.3
    try:
        done = python(code, endpoint.base)
    finally:
        endpoint.latency = 0.0
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert endpoint.count == 13


def test_calls_work_under_several_event_loops_one_after_another(endpoint):
    how = {"api_base": endpoint.base, "api_key": "sk-test"}
    for _ in range(2):
        assert asyncio.run(llm.complete("openai/good", ASK, **how)).text == "answer for 1"


def test_an_endpoint_runs_as_a_process_of_its_own(tmp_path):
    file = tmp_path / "port"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.endpoint", "--port-file", str(file)],
        stdout=subprocess.DEVNULL,
        cwd=os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
    )
    try:
        while not file.exists():
            assert process.poll() is None
            time.sleep(0.02)
        base = f"http://127.0.0.1:{file.read_text()}"
        how = {"api_base": f"{base}/v1", "api_key": "sk-test"}
        assert run_sync(llm.complete("openai/good", ASK, **how)).text == "answer for 1"
        stats = json.load(urlopen(f"{base}/__stats"))
        assert stats["count"] == 1 and stats["rows"] == {"1": 1} and stats["statuses"] == {"200": 1}
        assert json.load(urlopen(f"{base}/__requests"))[0]["body"]["messages"] == ASK
        assert json.load(urlopen(Request(f"{base}/__reset", method="POST")))["count"] == 0
    finally:
        process.terminate()
        process.wait()
