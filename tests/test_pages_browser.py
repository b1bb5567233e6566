"""The pages in a real headless Chromium: filters, search, transcripts, dark mode, 400 px, and that nothing runs."""

from pathlib import Path
from urllib.parse import urlsplit

import matplotlib
import pytest

matplotlib.use("agg")

import mcpeval  # noqa: E402
from mcpeval.frames import runs_frame, scores_frame  # noqa: E402
from tests.browser import HOSTILE, Tab, chromium, frames  # noqa: E402

MARKUP = "</script><script>window.hacked = 1</script>"


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def tab(browser):
    """Opens pages; in the end nothing was complained of, and nothing asked for but the page itself."""
    tabs = []

    def opened(address, ready="html[data-ready]", **look):
        tabs.append((Tab(browser, **look), address))
        return tabs[-1][0].open(address, ready)

    yield opened
    for one, address in tabs:
        assert one.complaints == []
        assert {asked.partition("#")[0] for asked in one.asked} <= {address.partition("#")[0]}
        one.page.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    runs, scores = frames(20)
    path = tmp_path_factory.mktemp("report") / "report.html"
    mcpeval.report(scores, runs, path, title="Two agents", labels=dict.fromkeys(runs["run_id"], True))
    return path.as_uri()


def rows(page):
    """The runs in the table, as far as they are in view: task and agent."""
    return page.eval_on_selector_all(
        ".run", "all => all.map(one => [one.querySelector('.task').innerText, one.querySelector('.agent').innerText])"
    )


def width(page):
    return page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")


def test_the_table_is_filtered_by_everything_it_has(tab, report):
    page = tab(report)
    assert page.inner_text("#count") == "40 runs"
    page.select_option("#agent", "react")
    assert page.inner_text("#count") == "20 of 40 runs"
    page.select_option("#category", "b")
    assert page.inner_text("#count") == "10 of 40 runs"
    page.select_option("#passed", "passed")
    # Of react's odd tasks those pass where (task + 1) % 3 > 0.
    assert [task for task, _ in rows(page)] == [f"task {t:04}" for t in range(1, 20, 2) if (t + 1) % 3 > 0]
    page.click("button[type=reset]")
    page.wait_for_selector("#count:text-is('40 runs')")
    page.select_option("#error", "timeout")
    assert rows(page) == [["task 0000", "basic"], ["task 0000", "react"]]
    page.select_option("#passed", "unscored")
    assert page.inner_text("#count") == "2 of 40 runs"
    page.select_option("#error", "(none)")
    assert page.inner_text("#list") == "No run is like that."


def test_an_evaluator_narrows_what_passed_means(tab, tmp_path):
    runs, scores = frames(6)
    scores.loc[scores["evaluator"] == "exact", ["score", "passed"]] = [0.0, False]
    scores.loc[scores["evaluator"] == "exact", "status"] = "ok"
    page = tab(mcpeval.report(scores, runs, tmp_path / "r.html", figures=False).as_uri())
    page.select_option("#passed", "passed")
    assert page.inner_text("#count") == "0 of 12 runs"
    page.select_option("#evaluator", "judge")
    assert page.inner_text("#count") == "7 of 12 runs"


_SEARCHES = [
    ('"question 7 what"', 2),
    ("question 7 what", 4),
    ("BECAUSE 17", 2),
    ('"no answer"', 2),
    ("it 3. react", 19),
    ("nowhere", 0),
]


def test_search_finds_questions_answers_reasons_and_errors_by_all_of_their_words(tab, report):
    page = tab(report)
    for words, n in _SEARCHES:
        page.fill("#q", words)
        assert page.inner_text("#count") == f"{n} of 40 runs"


def test_a_column_sorts_up_then_down_then_not(tab, report):
    page = tab(report)
    head = page.locator("[data-sort=agent]")
    assert rows(page)[:2] == [["task 0000", "basic"], ["task 0000", "react"]]
    head.click()
    assert rows(page)[:2] == [["task 0000", "basic"], ["task 0001", "basic"]]
    head.click()
    assert rows(page)[:2] == [["task 0000", "react"], ["task 0001", "react"]]
    head.click()
    assert rows(page)[:2] == [["task 0000", "basic"], ["task 0000", "react"]]


def test_a_run_opens_with_its_transcript_and_esc_goes_back_to_its_row(tab, report):
    page = tab(report)
    page.locator(".run").nth(2).click()
    page.wait_for_selector("dialog[open] article")
    text = page.inner_text("dialog")
    assert "task 0001 · basic" in text and "toy.add" in text and "because 1" in text
    page.click("dialog .call summary")
    assert "result 1 What is it?" in page.inner_text("dialog .call")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog:not([open])", state="attached")
    assert page.evaluate("document.activeElement.dataset.place") == "2"
    assert "run=" not in page.url


def test_the_table_and_the_transcripts_work_by_keyboard_alone(tab, report):
    page = tab(report)
    page.focus(".run[tabindex='0']")
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.dataset.place") == "3"
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.dataset.place") == "39"
    assert page.locator(".run[tabindex='0']").count() == 1
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] article")
    assert page.inner_text("#place") == "40 of 40"
    page.keyboard.press("k")
    page.wait_for_selector("#place:text-is('39 of 40')")
    assert "task 0019 · basic" in page.inner_text("dialog")
    assert page.evaluate("document.querySelector('dialog').contains(document.activeElement)")


def test_the_address_says_what_is_shown_and_can_be_passed_on(tab, report):
    page = tab(report)
    page.select_option("#agent", "react")
    page.fill("#q", '"question 7"')
    page.locator(".run").first.click()
    page.wait_for_selector("dialog[open] article")
    again = tab(page.url)
    again.wait_for_selector("dialog[open] article")
    assert "task 0007 · react" in again.inner_text("dialog")
    assert again.inner_text("#count") == page.inner_text("#count") == "1 of 40 runs"
    page.go_back()
    page.wait_for_selector("dialog:not([open])", state="attached")
    assert page.inner_text("#count") == "1 of 40 runs"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_light_or_dark_as_the_reader_likes_and_can_be_read_in_both(tab, report, scheme):
    page = tab(report, color_scheme=scheme)
    page.locator(".run").nth(2).click()
    page.wait_for_selector("dialog[open] article")
    contrasts = page.evaluate("""() => {
      const light = (colour) => {
        const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
          .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
      };
      const ground = (node) => {
        for (; node; node = node.parentElement) {
          const colour = getComputedStyle(node).backgroundColor;
          if (!colour.endsWith(", 0)")) return light(colour);
        }
      };
      const all = "h1, h2, h3, p, td, th, dt, dd, .quiet, .sign, .tool-name, .badge, .run span";
      return [...document.querySelectorAll(all)]
        .map((node) => [light(getComputedStyle(node).color), ground(node)])
        .map(([ink, paper]) => (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05));
    }""")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(18, 20, 23)") == (scheme == "dark")
    assert min(contrasts) >= 4.5  # WCAG 2 AA for text


@pytest.mark.parametrize("pixels", [400, 320])
def test_a_narrow_page_does_not_scroll_sideways(tab, report, pixels):
    page = tab(report, viewport={"width": pixels, "height": 800})
    assert width(page) == [pixels, pixels]
    page.locator(".run").nth(2).click()
    page.wait_for_selector("dialog[open] article")
    assert (
        page.evaluate("(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)(document.querySelector('dialog'))")
        == 0
    )


def test_a_transcript_with_words_that_do_not_end_fits_into_400_pixels(tab, tmp_path):
    runs, scores = frames(1, text="x" * 3000, answer="y" * 3000)
    path = mcpeval.transcript(runs.iloc[0], scores).save(tmp_path / "t.html")
    page = tab(path.as_uri(), "article", viewport={"width": 400, "height": 800})
    page.eval_on_selector_all("details", "all => all.forEach((one) => { one.open = true; })")
    assert width(page) == [400, 400]


def test_what_models_and_tools_wrote_is_shown_and_never_obeyed(tab, tmp_path):
    runs, scores = frames(3, agents=(HOSTILE, "b"), text=HOSTILE, answer=HOSTILE)
    runs = runs.assign(category=HOSTILE, error_class=HOSTILE, model=HOSTILE)
    scores = scores.assign(evaluator=scores["evaluator"] + HOSTILE, category=HOSTILE)
    page = tab(mcpeval.report(scores, runs, tmp_path / "r.html", title=HOSTILE, figures=False).as_uri())
    assert MARKUP in page.inner_text("h1")
    assert MARKUP in page.locator(".run .question").first.inner_text()
    page.locator(".run").nth(2).click()
    page.wait_for_selector("dialog[open] article")
    page.eval_on_selector_all("dialog details", "all => all.forEach((one) => { one.open = true; })")
    assert page.inner_text("dialog").count(MARKUP) > 8
    assert page.locator("dialog script, dialog img").count() == 0
    page.fill("#q", "<img src=x", force=True)
    assert page.inner_text("#count") == "6 runs"
    assert page.evaluate("window.hacked") is None


def test_even_what_was_not_escaped_could_not_run(browser, report):
    """The second lock: the policy of the page lets no script run but its own, and nobody be called."""
    tab = Tab(browser)
    page = tab.open(report)
    page.evaluate("""() => {
      const parsed = new DOMParser().parseFromString("<script>hacked = 1</script><img src=x onerror='hacked = 2'>"
        + "<svg onload='hacked = 3'></svg><iframe srcdoc='<script>parent.hacked = 4</script>'></iframe>"
        + "<a id=link href='javascript:hacked = 5'>x</a><img src='http://example.invalid/x.png'>", "text/html");
      document.getElementById("inside").replaceChildren(...parsed.body.childNodes, ...parsed.head.childNodes);
      document.getElementById("inside").insertAdjacentHTML("beforeend", "<img src=y onerror='hacked = 6'>");
      document.getElementById("link").click();
      return fetch("http://example.invalid/").catch(() => null);
    }""")
    page.wait_for_timeout(200)
    assert page.evaluate("window.hacked") is None
    assert not [asked for asked in tab.asked if "example.invalid" in asked]
    assert len(tab.complaints) >= 4  # each was refused
    page.close()


def test_in_a_notebook_a_transcript_stands_in_a_frame_in_which_nothing_runs(browser):
    runs, scores = frames(2, text=HOSTILE)
    shown = mcpeval.transcript(runs.iloc[2], scores)
    # As if the transcript were not escaped at all, the frame's own lock holds.
    broken = type(shown)(shown.title, str(shown).replace("</article>", "</article><script>parent.hacked=1</script>"))
    for page_of_notebook, refused in ((shown, 0), (broken, 1)):
        tab = Tab(browser)
        tab.page.set_content(page_of_notebook._repr_html_())
        inside = tab.page.frame_locator("iframe")
        assert MARKUP in inside.locator("article").inner_text()
        inside.locator("summary").first.click()
        assert tab.page.evaluate("window.hacked") is None
        assert (len(tab.complaints) > 0) == bool(refused)
        tab.page.close()


def test_a_file_that_was_cut_or_changed_says_so_and_runs_nothing(browser, report, tmp_path):
    text = Path(urlsplit(report).path).read_text("utf-8")
    for name, broken in (
        ("cut", '<script type="application/octet-stream" id="records">eJ'),
        ("changed", '<script id="records">'),
    ):
        at = text.index('<script type="application/octet-stream" id="records">')
        end = text.index("</script>", at)
        (tmp_path / f"{name}.html").write_text(text[:at] + broken + "window.hacked=1" + text[end:], "utf-8")
        tab = Tab(browser)
        tab.page.goto((tmp_path / f"{name}.html").as_uri())
        tab.page.wait_for_function("document.getElementById('list').innerText.startsWith('The runs cannot be shown')")
        assert tab.page.evaluate("window.hacked") is None
        assert "basic" in tab.page.inner_text("#summary")
        tab.page.close()


def test_five_thousand_runs_are_few_rows_in_the_page_and_are_all_found(tab, tmp_path):
    keys = [{"run_id": f"r{i}", "task_id": f"t{i // 2}", "agent": "ab"[i % 2], "trial": 0} for i in range(5000)]
    runs = runs_frame([{**key, "question": f"question {i}", "output": f"answer {i}"} for i, key in enumerate(keys)])
    scores = scores_frame([{**key, "evaluator": "e", "score": float(i % 3 > 0)} for i, key in enumerate(keys)])
    page = tab(mcpeval.report(scores, runs, tmp_path / "r.html", figures=False).as_uri())
    assert page.inner_text("#count") == "5,000 runs"
    page.evaluate("document.getElementById('list').scrollTop = 1e9")
    page.wait_for_selector(".run .task:text-is('t2499') >> nth=0")
    assert page.locator(".run").count() < 60
    page.fill("#q", "answer 4321")
    assert page.inner_text("#count") == "1 of 5,000 runs"
    page.click(".run")
    page.wait_for_selector("dialog[open] article")
    assert "answer 4321" in page.inner_text("dialog")
    page.keyboard.press("Escape")
    page.fill("#q", "")
    page.select_option("#agent", "b")
    assert page.inner_text("#count") == "2,500 of 5,000 runs"
    assert page.locator(".run").count() < 60
