"""One background loop: scripts, notebooks, threads, forks, interrupts."""

import asyncio
import contextvars
import gc
import inspect
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from mcpeval._loop import run_sync
from mcpeval.errors import InputError

TWENTY = """
import asyncio, sys, time
from mcpeval._loop import run_sync
cleaned = []
async def worker(number):
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        await asyncio.sleep(0.2)
        cleaned.append(number)
        raise
async def twenty():
    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(worker(number))
        await asyncio.sleep(0.1)
        print("started", flush=True)
async def again():
    return "again", len(asyncio.all_tasks())
"""


def start(code: str, *options: str) -> subprocess.Popen:
    command = [sys.executable, *options, "-c", textwrap.dedent(code)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def interrupt_when_started(process: subprocess.Popen) -> tuple[str, str]:
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=60)


async def here():
    await asyncio.sleep(0)
    return threading.current_thread(), asyncio.get_running_loop()


def test_every_call_runs_on_the_same_loop_in_one_daemon_thread():
    thread, loop = run_sync(here())
    assert thread.daemon and thread is not threading.current_thread()
    assert all(run_sync(here()) == (thread, loop) for _ in range(20))


def test_it_works_where_a_loop_is_already_running():
    async def cell():
        return run_sync(here())

    assert asyncio.run(cell()) == run_sync(here())


def test_it_works_from_worker_threads():
    async def slow(number):
        await asyncio.sleep(0.01)
        return number

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda number: run_sync(slow(number)), range(32))) == list(range(32))


def test_a_call_from_inside_the_loop_is_refused_and_says_what_to_do_instead():
    inner = here()

    async def agent():
        return run_sync(inner)

    with pytest.raises(InputError, match=r"await asyncio\.to_thread"):
        run_sync(agent())
    assert inspect.getcoroutinestate(inner) == inspect.CORO_CLOSED  # no "was never awaited" later on

    async def patient_agent():
        return await asyncio.to_thread(lambda: run_sync(here()))

    assert run_sync(patient_agent()) == run_sync(here())


def test_context_variables_are_carried_in_and_stay_the_callers():
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("the caller's")

    async def look():
        seen = variable.get()
        variable.set("the coroutine's")
        return seen

    assert run_sync(look()) == "the caller's"
    assert variable.get() == "the caller's"


def test_an_exception_arrives_as_it_is_with_its_traceback():
    class Mine(Exception):
        pass

    raised = Mine("at the bottom")

    async def bottom():
        await asyncio.sleep(0)
        raise raised

    async def top():
        await bottom()

    with pytest.raises(Mine) as caught:
        run_sync(top())
    assert caught.value is raised
    assert {"top", "bottom"} <= {frame.name for frame in traceback.extract_tb(raised.__traceback__)}


def test_an_exception_is_freed_when_it_is_dropped_with_no_help_of_the_collector():
    class Large(Exception):
        pass

    async def fails():
        raise Large

    gc.disable()
    try:
        try:
            run_sync(fails())
        except Large as large:
            reference = weakref.ref(large)
        run_sync(here())  # by now the loop has let go of the first task
        assert reference() is None
    finally:
        gc.enable()


def test_an_interrupt_before_the_coroutine_is_handed_over_closes_it(monkeypatch):
    _, loop = run_sync(here())

    def interrupted(*_):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "call_soon_threadsafe", interrupted)
    coroutine = here()
    with pytest.raises(KeyboardInterrupt):
        run_sync(coroutine, grace=3600)
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_a_task_that_exits_does_not_end_the_loop_for_all(kind):
    async def leaves():
        raise kind(3)

    async def group():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(leaves())

    before = run_sync(here())
    for coroutine in (leaves(), group()):
        with pytest.raises(kind):
            run_sync(coroutine)
    assert run_sync(here()) == before


def test_tick_runs_in_the_callers_thread_while_it_waits_and_once_at_the_end():
    threads, finished, ended = [], threading.Event(), []

    def tick():
        threads.append(threading.current_thread())
        ended.append(finished.is_set())

    async def until_ticked():
        while len(threads) < 2:
            await asyncio.sleep(0.01)
        finished.set()

    run_sync(until_ticked(), tick=tick)
    assert set(threads) == {threading.current_thread()}
    assert ended[-1] is True


def test_what_tick_raises_cancels_the_coroutine():
    cleaned = []

    async def forever():
        try:
            await asyncio.sleep(3600)
        finally:
            cleaned.append(True)

    def tick():
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        run_sync(forever(), tick=tick)
    assert cleaned == [True]


def test_an_interrupt_cancels_all_waits_for_their_clean_up_and_leaves_the_loop_usable():
    process = start(
        TWENTY
        + """
try:
    run_sync(twenty())
except KeyboardInterrupt:
    print("interrupted", len(cleaned))
print(*run_sync(again()))
"""
    )
    assert interrupt_when_started(process) == ("interrupted 20\nagain 1\n", "")
    assert process.returncode == 0


def test_a_second_interrupt_skips_the_clean_up():
    process = start(
        """
        import asyncio
        from mcpeval._loop import run_sync
        async def stubborn():
            try:
                print("started", flush=True)
                await asyncio.sleep(3600)
            finally:
                print("cleaning", flush=True)
                await asyncio.sleep(3600)
        try:
            run_sync(stubborn(), grace=3600)
        except KeyboardInterrupt:
            print("interrupted")
        """
    )
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "cleaning\n"
    time.sleep(0.3)  # the first interrupt is being waited out
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) == ("interrupted\n", "")


def test_a_coroutine_that_ignores_its_cancellation_does_not_hold_the_interrupt():
    process = start(
        TWENTY
        + """
async def deaf():
    print("started", flush=True)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass
try:
    run_sync(deaf(), grace=0.3)
except KeyboardInterrupt:
    print("interrupted", run_sync(again())[0])
"""
    )
    assert interrupt_when_started(process) == ("interrupted again\n", "")


def test_a_clean_up_that_fails_after_an_interrupt_prints_nothing():
    process = start(
        TWENTY
        + """
async def fails():
    try:
        print("started", flush=True)
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        raise ValueError("while cleaning up")
try:
    run_sync(fails())
except KeyboardInterrupt:
    print("interrupted")
""",
    )
    assert interrupt_when_started(process) == ("interrupted\n", "")


def test_an_interrupt_nobody_catches_prints_its_traceback_and_nothing_else():
    process = start(TWENTY + "run_sync(twenty())", "-X", "dev")
    _, errors = interrupt_when_started(process)
    assert process.returncode == -signal.SIGINT
    assert errors.startswith("Traceback") and errors.endswith("KeyboardInterrupt\n")
    assert errors.count("Traceback") == 1 and "Task" not in errors and "Warning" not in errors


def test_the_end_of_the_process_cleans_up_what_still_runs_without_a_word():
    process = start(
        TWENTY
        + """
async def left_behind():
    try:
        await worker(1)
    finally:
        print("cleaned", cleaned, flush=True)
async def leave():
    kept.append(asyncio.create_task(left_behind()))
    await asyncio.sleep(0.1)
kept = []
run_sync(leave())
""",
        "-X",
        "dev",
    )
    assert process.communicate(timeout=60) == ("cleaned [1]\n", "")
    assert process.returncode == 0


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no fork on this platform")
def test_it_works_after_a_fork_in_parent_and_child_even_while_another_thread_calls():
    process = start(
        TWENTY
        + """
import os, threading
from mcpeval import _loop
stop = threading.Event()
async def leave():
    kept.append(asyncio.create_task(asyncio.sleep(3600)))
kept = []
run_sync(leave())
kept.clear()
def busy():
    while not stop.is_set():
        run_sync(again())
thread = threading.Thread(target=busy)
thread.start()
run_sync(again())
for _ in range(10):
    _loop._lock.acquire()  # as another thread may, just now
    child = os.fork()
    if child == 0:
        os._exit(0 if run_sync(again()) == ("again", 1) else 1)
    _loop._lock.release()
    if os.waitpid(child, 0)[1]:
        print("a child failed")
stop.set()
thread.join()
print(*run_sync(again()))
""",
        "-W",
        "ignore::DeprecationWarning",
    )
    assert process.communicate(timeout=60) == ("again 2\n", "")


def test_the_stop_button_of_a_notebook_cancels_the_cell_and_the_next_cell_works():
    manager_module = pytest.importorskip("jupyter_client.manager")
    manager, client = manager_module.start_new_kernel()
    try:
        assert client.execute_interactive(TWENTY, timeout=60)["content"]["status"] == "ok"
        heard = []

        def interrupt_once_started(message):
            if message["msg_type"] == "stream" and "started" in message["content"]["text"]:
                heard.append(message["content"]["text"])
                manager.interrupt_kernel()

        reply = client.execute_interactive("run_sync(twenty())", timeout=60, output_hook=interrupt_once_started)
        assert heard and reply["content"]["ename"] == "KeyboardInterrupt"

        said = []
        code = "print(len(cleaned), *run_sync(again()))"
        reply = client.execute_interactive(code, timeout=60, output_hook=said.append)
        assert reply["content"]["status"] == "ok"
        streams = [message["content"] for message in said if message["msg_type"] == "stream"]
        assert [(stream["name"], stream["text"]) for stream in streams] == [("stdout", "20 again 1\n")]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_a_thread_that_waits_while_the_process_ends_says_nothing():
    code = """
import asyncio, sys, threading, time
from mcpeval._loop import run_sync

async def slow():  # to clean up: the other thread has time to say what was cancelled under it
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.5)

for wait in (slow, lambda: asyncio.sleep(60)):
    threading.Thread(target=lambda wait=wait: run_sync(wait()), daemon=True).start()
time.sleep(0.5)
sys.exit(7)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")
