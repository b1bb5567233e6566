"""A real headless browser for the tests of the pages, and frames to show in it."""

from __future__ import annotations

import contextlib
import os
import shutil

import pytest

from mcpeval.frames import runs_frame, scores_frame

NAMES = ("chromium", "chromium-browser", "google-chrome")
#: What a page must show and never obey.
HOSTILE = (
    "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
    '<svg onload="window.hacked = 3"> ]]> <!-- </pre></style> {{7*7}} \u2028\u202egnp.exe\u202c &lt;b&gt;'
)


@contextlib.contextmanager
def chromium():
    """A browser, ended with the block; a test that asks for it is skipped where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"no browser here: none of {', '.join(NAMES)}; `make browser` installs one")
    arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


class Tab:
    """A page in the browser that takes down what it complains of and whom it asks."""

    def __init__(self, browser, **look):
        self.page = browser.new_page(**look)
        self.complaints, self.asked = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.route("**/*", self._ask)

    def _ask(self, route):
        self.asked.append(route.request.url)
        if route.request.url.startswith(("file:", "http://127.0.0.1:")):
            route.continue_()
        else:
            route.abort()

    def open(self, address, ready="html[data-ready]"):
        self.page.goto(address)
        self.page.wait_for_selector(ready, state="attached")
        return self.page


def frames(tasks=4, agents=("basic", "react"), text="What is it?", answer="It is 3.", **more):
    """Runs and scores: every third run fails, and the first run of each agent ends with an error."""
    runs, scores = [], []
    for t in range(tasks):
        for a, agent in enumerate(agents):
            key = {"run_id": f"{agent}-{t}", "task_id": f"task {t:04}", "category": "ab"[t % 2], "agent": agent}
            lost = t == 0
            call = {"server": "toy", "name": "add", "arguments": {"a": t, "text": text}, "is_error": False}
            call |= {"result": {"content": [{"type": "text", "text": f"result {t} {text}"}]}, "seconds": 0.25}
            asked = {"id": "c", "type": "function", "function": {"name": "toy__add", "arguments": "{}"}}
            messages = [
                {"role": "system", "content": f"Be exact. {text}"},
                {"role": "user", "content": f"question {t} {text}"},
                {"role": "assistant", "content": f"I add. {text}", "tool_calls": [asked]},
                {"role": "tool", "tool_call_id": "c", "content": f"result {t} {text}"},
                *([] if lost else [{"role": "assistant", "content": answer}]),
            ]
            ending = {"status": "error", "error": f"no answer {text}", "error_class": "timeout"} if lost else {}
            run = {**key, "question": f"question {t} {text}", "output": None if lost else answer, "messages": messages}
            used = {"tokens_in": 100, "tokens_out": 10, "cost_usd": 0.01, "seconds": 1.5, "turns": 2, "n_tool_calls": 1}
            runs.append({"status": "ok", **run, "tool_calls": [call], **used, **ending, **more})
            for who in ("exact", "judge"):
                good = (t + a) % 3 > 0
                score = {"evaluator": who, "score": None if lost else float(good), "passed": None if lost else good}
                reason = f"because {t} {text}" if who == "judge" else "compared"
                scores.append({**key, "kind": "rule", **score, "reason": reason, "status": "skipped" if lost else "ok"})
    return runs_frame(runs), scores_frame(scores)
