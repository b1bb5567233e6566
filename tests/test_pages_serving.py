"""`serve`: what a running experiment has come to, on loopback, and the record that it reads."""

import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

import matplotlib
import pytest

matplotlib.use("agg")

import mcpeval  # noqa: E402
from mcpeval import Agent, Cache, to_csv  # noqa: E402
from mcpeval.cli import main  # noqa: E402
from mcpeval.errors import InputError  # noqa: E402
from mcpeval.html import Dashboard  # noqa: E402
from mcpeval.html.shell import page  # noqa: E402
from mcpeval.recording import EVERY, FOLDER, KEPT, Record, records  # noqa: E402
from tests.browser import HOSTILE, Tab, chromium, frames  # noqa: E402

QUESTIONS = [f"What is ROW-{i} about?" for i in range(6)]


def agents(endpoint, *names, **more):
    params = {"api_base": endpoint.base, "api_key": "none", "retries": 0, **more}
    return [Agent(f"openai/{name}", "basic", name=name, **params) for name in names]


def get(url, path="/", method="GET", **headers):
    """Status, headers and body of one answer."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=10)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.headers), answer.read().decode()
    finally:
        connection.close()


# --- the record ---------------------------------------------------------------------------------


def test_a_run_leaves_a_record_of_what_was_done_and_what_failed(endpoint, cache):
    mcpeval.run(QUESTIONS, agents(endpoint, "good", "r400"), cache=cache, concurrency=2)
    [found] = records(cache.path)
    assert (found["what"], found["state"], found["planned"], found["done"]) == ("run", "done", 12, 12)
    assert found["failed"] == found["parts"]["r400"]["failed"] == 6
    assert found["parts"]["good"] == {"planned": 6, "done": 6, "failed": 0}
    assert "agent 'r400'" in found["errors"][-1]["error"] and "model" in found["errors"][-1]["error"]
    mcpeval.run(QUESTIONS, agents(endpoint, "good"), cache=cache)
    assert (records(cache.path)[0]["cached"], len(records(cache.path))) == (6, 2)


def test_a_scoring_leaves_one_too_with_the_rules_that_need_nobody(endpoint, cache):
    runs = mcpeval.run(QUESTIONS, agents(endpoint, "good"), cache=cache)
    judge = mcpeval.Judge("Right?", model="openai/good", api_base=endpoint.base, api_key="none", name="judge")
    mcpeval.score(runs, {"rule": mcpeval.rule("raw", "!=", ""), "judge": judge}, cache=cache)
    [found] = [record for record in records(cache.path) if record["what"] == "score"]
    assert (found["state"], found["planned"], found["done"]) == ("done", 12, 12)
    assert {name: part["done"] for name, part in found["parts"].items()} == {"rule": 6, "judge": 6}


def test_the_record_is_no_part_of_the_cache(endpoint, cache, tmp_path):
    agent = agents(endpoint, "good")
    first = mcpeval.run(QUESTIONS, agent, cache=cache)
    kinds = {key.partition(":")[0] for key in cache}
    assert kinds == {"run", "completion"}
    assert cache.export(tmp_path / "out.jsonl") == len(cache) == 12
    there = len(list((cache.path / FOLDER).iterdir()))
    again = mcpeval.run(QUESTIONS, agent, cache=cache, replay=True)
    assert again["output"].tolist() == first["output"].tolist()
    assert len(list((cache.path / FOLDER).iterdir())) == there  # a replay leaves nothing
    with Cache(tmp_path / "other") as other:
        other.load(tmp_path / "out.jsonl")
        assert sorted(other) == sorted(cache)
        assert mcpeval.run(QUESTIONS, agent, cache=other, replay=True)["output"].tolist() == first["output"].tolist()
        assert not (other.path / FOLDER).exists()


def test_a_run_that_is_interrupted_says_so_and_one_that_was_killed_is_gone(endpoint, cache):
    def stop(event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mcpeval.run(QUESTIONS, agents(endpoint, "good"), cache=cache, on_event=lambda event: stop(event))
    assert records(cache.path)[0]["state"] == "interrupted"
    code = f"""
import os, pathlib
from mcpeval.recording import Record
Record(pathlib.Path({str(cache.path)!r}), "run", 5, {{}})
os._exit(9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    assert records(cache.path)[0]["state"] == "gone"


def test_where_no_record_can_be_written_the_work_goes_on(endpoint, cache):
    (cache.path / FOLDER).write_text("a file where the folder should be")
    assert mcpeval.run(QUESTIONS[:1], agents(endpoint, "good"), cache=cache)["status"].tolist() == ["ok"]
    assert records(cache.path) == []


def test_records_are_few_and_strangers_among_them_are_passed_over(tmp_path):
    for _ in range(KEPT + 5):
        Record(tmp_path, "run", 1, {}).close("done")
    assert len(list((tmp_path / FOLDER).glob("*.json"))) == KEPT
    (tmp_path / FOLDER / "zz.json").write_text("[1]")
    (tmp_path / FOLDER / "zy.json").write_text("{")
    assert len(records(tmp_path)) == KEPT - 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"updated": float("nan")},
        {"cost_usd": None},
        {"planned": "many"},
        {"started": 10**400},
        {"done": True},
        {"parts": [1]},
        {"parts": {"a": None}},
        {"errors": "x"},
        {"errors": [{}]},
        {"state": {}},
    ],
)
def test_a_record_that_is_not_whole_is_passed_over_and_the_others_are_shown(wrong, tmp_path):
    record = Record(tmp_path, "run", 5, {"a": 5})
    record.advance(1, failed=True, cached=False, cost_usd=0.1, part="a", error="no luck")
    record.close("done")
    [path] = (tmp_path / FOLDER).glob("*.json")
    (tmp_path / FOLDER / "zz.json").write_text(json.dumps({**json.loads(path.read_text()), **wrong}))
    [found] = records(tmp_path)
    assert found["id"] == path.stem and json.dumps(found, allow_nan=False)


def test_a_process_that_cannot_be_is_gone(tmp_path):
    Record(tmp_path, "run", 5, {})
    [path] = (tmp_path / FOLDER).glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "pid": 10**30}))
    assert records(tmp_path)[0]["state"] == "gone"


def test_it_is_written_at_most_once_a_second_and_whole(tmp_path, monkeypatch):
    written = []
    real = os.replace
    monkeypatch.setattr("mcpeval.recording.os.replace", lambda a, b: (written.append(time.monotonic()), real(a, b)))
    record = Record(tmp_path, "run", 1000, {})
    for _ in range(1000):
        record.advance(1, failed=False, cached=False, cost_usd=None, part=None, error=None)
    record.close("done")
    assert len(written) == 2  # the beginning and the end
    [found] = records(tmp_path)
    assert (found["done"], found["unpriced"]) == (1000, 1000)
    assert EVERY >= 1.0


# --- the server ---------------------------------------------------------------------------------


def test_it_answers_on_loopback_to_those_who_ask_for_it_by_name_and_only_to_get(cache):
    with Dashboard(cache.path) as dashboard:
        assert urlsplit(dashboard.url).hostname == "127.0.0.1"
        port = urlsplit(dashboard.url).port
        status, headers, body = get(dashboard.url)
        assert status == 200 and "text/html" in headers["Content-Type"]
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
        assert get(dashboard.url, Host=f"localhost:{port}")[0] == 200
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", ""):
            assert get(dashboard.url, "/status.json", Host=host)[0] == 403
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD"):
            assert get(dashboard.url, "/status.json", method)[0] == 501
        for path in ("/cache.db", "/../cache.db", "/%2e%2e/cache.db", "/progress"):
            assert get(dashboard.url, path)[0] == 404


def test_the_status_has_what_the_cache_holds_and_what_runs_have_come_to(endpoint, cache):
    mcpeval.run(QUESTIONS, agents(endpoint, "good"), cache=cache)
    with Dashboard(cache.path) as dashboard:
        status = json.loads(get(dashboard.url, "/status.json")[2])
    assert status["cache"]["kinds"] == {"completion": 6, "run": 6}
    assert [(record["what"], record["done"]) for record in status["work"]] == [("run", 6)]
    assert status["files"] == []


def test_a_folder_of_files_is_shown_as_their_report_made_anew_when_one_changes(tmp_path, monkeypatch):
    monkeypatch.setattr("mcpeval.html.sections.figures", lambda given: None)
    runs, scores = frames(3)
    to_csv(runs, tmp_path / "runs.csv")
    with Dashboard(tmp_path) as dashboard:
        assert 'id="summary"' not in get(dashboard.url)[2]
        to_csv(scores, tmp_path / "scores.csv")
        text = get(dashboard.url)[2]
        assert 'id="summary"' in text and 'id="records"' in text
        to_csv(scores.head(1).assign(run_id="stranger", agent="someone else"), tmp_path / "others.csv")
        status, _, text = get(dashboard.url, "/report")  # the newest file's experiment, without the runs of the other
        assert status == 200 and "someone else" in text and runs["agent"][0] not in text


def test_what_cannot_be_served_is_said(tmp_path, capsys):
    with pytest.raises(InputError, match="there is no folder"):
        Dashboard(tmp_path / "gone")
    with pytest.raises(InputError, match="from 0 to 65535"):
        Dashboard(tmp_path, port=-1)
    with Dashboard(tmp_path) as dashboard, pytest.raises(InputError, match="cannot be had"):
        Dashboard(tmp_path, port=urlsplit(dashboard.url).port)
    assert main(["serve", str(tmp_path / "gone")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_a_folder_that_is_gone_is_said_and_the_next_question_is_answered(tmp_path, capfd):
    folder = tmp_path / "folder"
    folder.mkdir()
    with Dashboard(folder) as dashboard:
        folder.rmdir()
        status, _, text = get(dashboard.url, "/status.json")
        assert status == 500 and "No such file" in text
        folder.mkdir()
        assert get(dashboard.url, "/status.json")[0] == 200
    assert capfd.readouterr().err == ""


def test_who_leaves_before_the_answer_is_nobodys_fault(tmp_path, capfd):
    runs, _ = frames(20, text="word " * 2000)
    to_csv(runs, tmp_path / "runs.csv")
    with Dashboard(tmp_path) as dashboard:
        port = urlsplit(dashboard.url).port
        with socket.create_connection(("127.0.0.1", port)) as left:
            left.sendall(f"GET /report HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            left.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # with a reset
        assert get(dashboard.url, "/report")[0] == 200
    assert capfd.readouterr().err == ""


def test_progress_is_told_while_a_report_is_written(tmp_path, monkeypatch):
    begun, free = threading.Event(), threading.Event()

    def slow(*args, **more):
        begun.set()
        assert free.wait(30)
        return page("slow", "written")

    monkeypatch.setattr("mcpeval.html.watching.document", slow)
    to_csv(frames(2)[0], tmp_path / "runs.csv")
    with Dashboard(tmp_path) as dashboard:
        asked = threading.Thread(target=get, args=(dashboard.url, "/report"))
        asked.start()
        try:
            assert begun.wait(10)
            assert get(dashboard.url, "/status.json")[0] == 200
        finally:
            free.set()
            asked.join(10)


def test_files_that_are_older_than_the_runs_and_the_scores_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("mcpeval.html.sections.figures", lambda given: None)
    (tmp_path / "old.jsonl").write_text("{")
    os.utime(tmp_path / "old.jsonl", (1, 1))
    for name, frame in zip(("runs", "scores"), frames(2), strict=True):
        to_csv(frame, tmp_path / f"{name}.csv")
    with Dashboard(tmp_path) as dashboard:
        assert get(dashboard.url, "/report")[0] == 200


@pytest.mark.skipif(os.name != "posix", reason="elsewhere no process can be sent an interrupt")
def test_the_command_says_where_it_is_and_ends_with_an_interrupt(tmp_path):
    command = [
        sys.executable,
        "-c",
        "import sys; from mcpeval.cli import main; sys.exit(main())",
        "serve",
        str(tmp_path),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        url = process.stdout.readline().split()[0]
        assert get(url)[0] == 200
    finally:
        process.send_signal(signal.SIGINT)
        assert (process.wait(10), process.stderr.read()) == (0, "")


def test_the_page_refreshes_while_a_run_goes_on(endpoint, cache):
    """In a browser: done, failed, cost and the last errors change without anybody loading the page again."""
    free = threading.Event()

    def answer(body):
        if "ROW-0" not in json.dumps(body) and not free.wait(30):
            return None
        return (400, {}, {"error": {"message": HOSTILE}}) if "ROW-1" in json.dumps(body) else "fine"

    with chromium() as browser, Dashboard(cache.path) as dashboard:
        tab = Tab(browser, viewport={"width": 400, "height": 800})
        page = tab.open(dashboard.url, "#news:text-is('nothing has been run here yet')")
        endpoint.script(answer)
        work = threading.Thread(
            target=mcpeval.run, args=(QUESTIONS, agents(endpoint, "good")), kwargs={"cache": cache, "concurrency": 6}
        )
        work.start()
        try:
            page.wait_for_selector("dd:text-is('1 of 6')")
            assert page.inner_text(".state") == "running"
        finally:
            free.set()
            work.join(30)
            endpoint.script(None)
        page.wait_for_selector(".state:text-is('done')")
        assert "6 of 6" in page.inner_text("#work") and "$" in page.inner_text("#work")
        assert "</script><script>window.hacked = 1</script>" in page.inner_text(".errors")
        assert page.evaluate("window.hacked") is None
        assert page.evaluate("document.documentElement.scrollWidth") == 400
        page.wait_for_selector("#cache dt:text-is('run')")
        assert tab.complaints == []
        assert all(asked.startswith(dashboard.url) for asked in tab.asked)
        page.close()
