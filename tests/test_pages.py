"""The HTML of transcripts and reports: what is in it, where, and that it is only ever text."""

import base64
import functools
import json
import re
import zlib
from html.parser import HTMLParser

import matplotlib
import pandas as pd
import pytest

matplotlib.use("agg")

from matplotlib import pyplot  # noqa: E402

import mcpeval  # noqa: E402
from mcpeval import html, plots, to_csv  # noqa: E402
from mcpeval.agents import Agent, chain  # noqa: E402
from mcpeval.cli import main  # noqa: E402
from mcpeval.errors import FileError, InputError  # noqa: E402
from mcpeval.exporting import to_parquet  # noqa: E402
from mcpeval.frames import scores_frame  # noqa: E402
from mcpeval.html import drawings, numbers  # noqa: E402
from mcpeval.html.elements import block, element, shown, table  # noqa: E402
from mcpeval.html.steps import row_of, steps_of  # noqa: E402
from mcpeval.testing import ScriptedModel, toy_server  # noqa: E402
from mcpeval.types import Run, ToolCall, Usage  # noqa: E402
from tests.browser import HOSTILE, frames  # noqa: E402

TOYS = {"toy": toy_server}
quick = functools.partial(mcpeval.report, figures=False)
ADD = ("add", {"a": 1, "b": 2})


class Reader(HTMLParser):
    """The elements of a page, its text, and the text of each element by its classes."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.open, self.texts = [], [], [], {}
        self.feed(str(page))
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes.append(dict(attributes))
        if tag not in ("meta", "img", "input"):
            self.open.append((tag, dict(attributes).get("class") or ""))
            for name in self.open[-1][1].split():
                self.texts.setdefault(name, []).append("")

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, text):
        if self.open and self.open[-1][0] in ("style", "script"):
            return
        for _, classes in self.open:
            for name in classes.split():
                self.texts[name][-1] += text

    @property
    def text(self):
        return " ".join(self.texts.get("page", []))


def unpacked(page, name):
    [data] = re.findall(rf'<script type="application/octet-stream" id="{name}">([^<]*)</script>', str(page))
    return json.loads(zlib.decompress(base64.b64decode(data)))


def transcripts(page):
    """All that a report has packed, by run_id."""
    records = unpacked(page, "records")["runs"]
    chunks = {number: unpacked(page, f"chunk-{number}") for number in {record[11] for record in records}}
    return {record[0]: chunks[record[11]][record[12]] for record in records}


@pytest.fixture(scope="module")
def toy_run():
    """A run that calls tools, one of which is not there and one of which fails, and its frame."""
    script = [[ADD, ("boom", {"message": "no luck"}), ("nope", {})], "It is 3."]
    with ScriptedModel(script) as model:
        agent = Agent(model.model, "tools", name="a", system="Be brief.", retries=0, **model.params)
        yield mcpeval.run(["What is 1 + 2?"], agent, servers=TOYS, cache=False)


# --- elements -----------------------------------------------------------------------------------


def test_a_text_is_escaped_and_an_element_is_not():
    assert element("p", "<b>", element("i", "&"), None, ["x", ["y"]]) == "<p>&lt;b&gt;<i>&amp;</i>xy</p>"
    assert element("a", href='"><script>', hidden=True, id=None) == '<a href="&quot;&gt;&lt;script&gt;" hidden></a>'


@pytest.mark.parametrize(
    ("character", "name"),
    [
        ("\u202e", "right-to-left override"),
        ("\u2028", "line separator"),
        ("\x00", "control character"),
        ("\x1b", "U+001B"),
    ],
)
def test_a_hidden_character_is_shown_by_its_number(character, name):
    text = shown(f"a{character}b")
    assert character not in text
    assert f"U+{ord(character):04X}" in text and name in text


def test_joined_emoji_and_texts_of_other_scripts_stay_as_they_are():
    family = "\U0001f469\u200d\U0001f469\u200d\U0001f467 שלום سلام\n\tx"
    assert shown(family) == family
    assert shown("\ud800") == "\ufffd"


def test_the_first_line_end_of_a_text_is_kept():
    assert block("\nx").endswith(">\n\nx</pre>")  # a parser drops the first one


# --- which call belongs to which message --------------------------------------------------------


def test_each_call_stands_at_the_message_that_asked_for_it(toy_run):
    steps = steps_of(row_of(toy_run.iloc[0], "test"))
    assert [[call.made["name"] for call in step.calls] for step in steps] == [[], [], ["add", "boom", "nope"], []]
    assert [call.place for call in steps[2].calls] == [0, 1, 2]
    assert [call.told != [] for call in steps[2].calls] == [True, True, True]
    assert steps[3].span["kind"] == "llm"


def test_calls_are_found_by_name_where_there_are_no_spans(toy_run):
    row = {**row_of(toy_run.iloc[0], "test"), "spans": None}
    assert [[call.place for call in step.calls] for step in steps_of(row)] == [[], [], [0, 1, 2], []]


def test_a_call_that_no_message_asks_for_stands_behind_the_answer_that_led_to_it():
    replies = ['{"thought": "t", "action": {"server": "toy", "tool": "add", "arguments": {"a": 1, "b": 2}}}', '{"thought": "t", "answer": "3"}']  # fmt: skip  # noqa: E501
    with ScriptedModel(replies) as model:
        agent = Agent(model.model, "react", name="a", retries=0, **model.params)
        row = row_of(mcpeval.run(["What is 1 + 2?"], agent, servers=TOYS, cache=False).iloc[0], "test")
    assert len(row["tool_calls"]) == 1
    [step] = [step for step in steps_of(row) if step.calls]
    assert step.message["role"] == "assistant"
    steps = steps_of({**row, "spans": None})
    assert (steps[-1].place, steps[-1].calls[0].place) == (None, 0)


# --- the transcript -----------------------------------------------------------------------------


def test_a_transcript_has_the_conversation_the_calls_what_failed_and_what_it_took(toy_run):
    read = Reader(mcpeval.transcript(toy_run.iloc[0]))
    names = ["System", "User", "Assistant", "Answer"]
    assert [text.startswith(name) for text, name in zip(read.texts["step"], names, strict=True)] == [True] * 4
    calls = read.texts["call"]
    assert "toy.add" in calls[0] and '"a": 1' in calls[0] and "3.0" in calls[0]
    assert "failed" in calls[1] and "no luck" in calls[1]
    assert "failed" in calls[2] and "nope" in calls[2]
    assert "10 → 5 tokens" in read.text
    assert "Timeline: 6 spans" in read.text
    assert read.text.count("What is 1 + 2?") == 1  # the question is the message


def test_a_transcript_names_the_parts_of_a_workflow():
    with ScriptedModel(["draft", "final"]) as model:
        parts = [Agent(model.model, "basic", name=name, retries=0, **model.params) for name in ("writer", "editor")]
        runs = mcpeval.run(["Write it."], chain(parts, name="both"), cache=False)
    assert {"writer", "editor"} <= set(Reader(mcpeval.transcript(runs.iloc[0])).texts["part"])


def test_a_verdict_stands_at_the_answer_and_what_it_says_of_a_call_beside_that(toy_run):
    runs = toy_run.assign(expected_tool_calls=[[{"name": "add", "arguments": {"a": 1, "b": 5}}, {"name": "boom"}]])
    scores = mcpeval.score(runs, [mcpeval.tool_calls(), mcpeval.rule("raw", "==", "It is 3.")], cache=False)
    read = Reader(mcpeval.transcript(runs.iloc[0], scores))
    made = [" ".join(text.split()) for text in read.texts["made"]]
    assert made[0].endswith("✗ tool_calls: arg 'b': expected 5, got 2")
    assert made[1].endswith("arg 'message': unexpected, got 'no luck'")
    assert made[2].endswith("● tool_calls: not expected")
    assert len(read.texts["verdict"]) == 2
    assert all(reason in read.text for reason in scores["reason"] if reason)


def test_an_evaluator_of_ones_own_says_which_step_it_speaks_of(toy_run):
    def own(row):
        return {
            "call": mcpeval.Score(0.5, "a doubtful call", metadata={"tool_call": 1}),
            "said": mcpeval.Score(1, "polite", metadata={"message": 1}),
        }

    scores = mcpeval.score(toy_run, {"own": own}, cache=False)
    read = Reader(mcpeval.transcript(toy_run.iloc[0], scores))
    assert "a doubtful call" in read.texts["made"][1] and "a doubtful call" not in read.texts["made"][0]
    assert "polite" in read.texts["step"][1]


def test_a_verdict_on_two_runs_says_which_agents_it_compares():
    verdict = {"run_id": "r", "evaluator": "better", "score": 1.0, "label": "a"}
    scores = scores_frame([{**verdict, "metadata": {"between": ["a", "b"], "pair": ["r", "s"]}}])
    assert "a against b" in Reader(mcpeval.transcript({"run_id": "r", "output": "4"}, scores)).text


def test_only_the_scores_of_the_run_are_shown():
    runs, scores = frames()
    page = str(mcpeval.transcript(runs.iloc[1], scores))
    assert page.count('class="verdict ') == 2


def test_a_run_without_an_id_is_known_by_its_label_or_not_at_all():
    runs = pd.DataFrame({"output": ["4", "five"]}, index=["x", "y"])
    scores = mcpeval.score(runs, {"digit": lambda output: output.isdigit()}, cache=False)
    assert "✗ digit" in " ".join(Reader(mcpeval.transcript(runs.iloc[1], scores)).text.split())
    with pytest.raises(InputError, match="which are its own"):
        mcpeval.transcript({"output": "4"}, scores)


@pytest.mark.parametrize("form", ["row", "dict", "frame", "Run"])
def test_a_run_may_come_in_any_form(form, toy_run):
    run = Run("It is 3.", tool_calls=[ToolCall("toy", "add", {"a": 1})], usage=Usage(tokens_in=7))
    given = {"row": toy_run.iloc[0], "dict": toy_run.iloc[0].to_dict(), "frame": toy_run, "Run": run}[form]
    assert "It is 3." in Reader(mcpeval.transcript(given)).text


def test_what_is_no_run_is_refused(toy_run):
    with pytest.raises(InputError, match="row of a runs frame"):
        mcpeval.transcript("It is 3.")
    with pytest.raises(InputError, match="frame of 2 rows"):
        mcpeval.transcript(pd.concat([toy_run, toy_run]))
    with pytest.raises(InputError, match="as mcpeval.score gives it"):
        mcpeval.transcript(toy_run, "scores")


@pytest.mark.parametrize(
    "row",
    [
        {"output": None},
        {"output": {"a": 1}, "messages": "text"},
        {"messages": [None, 3, {"role": 7, "content": [1, {"type": "x"}]}], "tool_calls": ["call", {}], "spans": [1]},
        {"messages": [{"role": "tool", "tool_call_id": "gone", "content": "x"}], "metadata": "text"},
        {"messages": [{"role": "assistant", "tool_calls": [{"function": None}, "x", {"id": 1}]}]},
        {"spans": [{"id": 0, "kind": "tool", "name": "x", "tool_call": 5}], "tool_calls": 3, "trial": float("nan")},
        {"spans": [{"id": 0, "kind": "llm", "name": "m", "messages": "ab", "start": "x"}], "messages": ["a", "b"]},
        {"spans": [{"id": 0, "kind": "llm", "name": "m", "parent": {}}]},
        {"spans": [{"id": 0, "kind": "llm", "name": "m", "failures": 2.5}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"id": [1], "function": {"name": "f"}}]}]},
        {"messages": [{"role": "tool", "tool_call_id": {}, "content": "x"}]},
        {"tool_calls": [{"name": "f", "arguments": {("a", "b"): 1}}], "output": {("a", "b"): 1}},
        {"seconds": float("inf"), "cost_usd": float("-inf"), "tokens_in": 10**400, "trial": float("inf")},
    ],
)
def test_whatever_stands_in_a_row_it_is_shown(row):
    Reader(mcpeval.transcript(row))


def test_calls_that_were_passed_on_by_another_tool_stand_where_they_were_asked_for():
    """As LiveMCPBench's agents do: the model asks for "execute-tool", the call is of the tool that was executed."""
    said = [
        ("route", {"query": "maps"}),
        ("execute-tool", {"tool_name": "find"}),
        ("execute-tool", {"tool_name": "go"}),
    ]
    asked = [{"id": f"c{i}", "function": {"name": name, "arguments": given}} for i, (name, given) in enumerate(said)]
    messages = []
    for call in asked:
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": "ok"})
    row = {"messages": [*messages, {"role": "assistant", "content": "There."}], "output": "There."}
    made = [{"name": name} for name in ("route", "find", "go")]
    steps = steps_of({**row, "tool_calls": made})
    assert [[call.place for call in step.calls] for step in steps] == [[0], [1], [2], []]
    # Where there are more of them than were asked for, nobody knows; the answer is still shown once.
    read = Reader(mcpeval.transcript({**row, "tool_calls": [*made, {"name": "more"}]}))
    assert len(read.texts["answer"]) == 1 and read.text.count("There.") == 1


def test_what_pandas_read_from_a_csv_file_is_shown_as_what_it_was(toy_run, tmp_path):
    scores = mcpeval.score(
        toy_run, {"own": lambda output: mcpeval.Score(1, "x", metadata={"tool_call": 1})}, cache=False
    )
    to_csv(toy_run, tmp_path / "runs.csv")
    to_csv(scores, tmp_path / "scores.csv")
    runs, said = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("runs", "scores"))
    again, first = mcpeval.transcript(runs.iloc[0], said), mcpeval.transcript(toy_run.iloc[0], scores)
    assert Reader(again).texts["made"] == Reader(first).texts["made"]
    kept = transcripts(quick(said, runs, tmp_path / "r.html").read_text("utf-8"))
    assert kept == transcripts(quick(scores, toy_run, tmp_path / "r.html").read_text("utf-8"))


def test_an_error_is_shown_with_its_class_and_its_traceback():
    row = {"status": "error", "error": "it broke", "error_class": "harness", "metadata": {"traceback": "Trace <x>"}}
    [failure] = Reader(mcpeval.transcript(row)).texts["failure"]
    assert "harness" in failure and "it broke" in failure and "Trace <x>" in failure


def test_failed_attempts_reasoning_refusals_and_other_keys_of_a_message_are_shown():
    message = {"role": "assistant", "content": "x", "reasoning_content": "hm", "refusal": "no", "audio": {"id": 5}}
    span = {"id": 1, "kind": "llm", "name": "m", "messages": [0, 1], "failures": ["503 busy"], "cached": True}
    text = Reader(mcpeval.transcript({"messages": [message], "spans": [span]})).text
    for part in ("hm", "no", '"audio"', "1 attempt failed before", "503 busy", "from the cache"):
        assert part in text


def test_images_come_from_the_cache_and_are_named_where_it_has_them_not(cache, tmp_path):
    with ScriptedModel([[("look", {})], "black"]) as model:
        agent = Agent(model.model, "tools", retries=0, **model.params)
        runs = mcpeval.run(["Look there."], agent, servers=TOYS, cache=cache)
    there, gone = (Reader(mcpeval.transcript(runs.iloc[0], cache=given)) for given in (cache, False))
    [source] = [a["src"] for tag, a in zip(there.tags, there.attributes) if tag == "img"]
    assert source.startswith("data:image/png;base64,iVBORw0KGgo")
    assert "img" not in gone.tags
    assert "image image/png" in gone.text and "sha256" in gone.text
    [html_of_run] = transcripts(quick(None, runs, tmp_path / "r.html", cache=cache).read_text("utf-8")).values()
    assert "data:image/png;base64,iVBORw0KGgo" in html_of_run


def test_a_picture_that_could_be_more_than_one_is_only_named():
    part = {"type": "image", "mimeType": "image/svg+xml", "data": base64.b64encode(b"<svg onload='x'/>").decode()}
    read = Reader(mcpeval.transcript({"messages": [{"role": "user", "content": [part]}]}))
    assert "img" not in read.tags and "image image/svg+xml" in read.text


def test_hostile_text_is_only_ever_text():
    key = {"run_id": "r", "task_id": HOSTILE, "agent": HOSTILE, "category": HOSTILE, "model": HOSTILE}
    call = {"server": HOSTILE, "name": HOSTILE, "arguments": {HOSTILE: HOSTILE}, "error": HOSTILE, "is_error": True}
    message = {"role": HOSTILE, "content": HOSTILE, "agent": HOSTILE, HOSTILE: HOSTILE}
    span = {"id": 0, "kind": "agent", "name": HOSTILE, "error": HOSTILE, "error_class": HOSTILE, "seconds": 1.0}
    more = {"question": HOSTILE, "output": HOSTILE, "error": HOSTILE, "error_class": HOSTILE, "status": "error"}
    lists = {"messages": [message], "tool_calls": [call], "spans": [span], "metadata": {HOSTILE: HOSTILE}}
    verdict = {"evaluator": HOSTILE, "score": 0.5, "label": HOSTILE, "reason": HOSTILE, "judge_model": HOSTILE}
    scores = scores_frame([{**key, **verdict, "status": "ok", "metadata": {"points": [{"point": HOSTILE}]}}])
    page = mcpeval.transcript({**key, **more, **lists}, scores)
    read = Reader(page)
    assert "script" not in read.tags and "svg" in read.tags and "img" not in read.tags
    assert not any(name.startswith("on") for attributes in read.attributes for name in attributes)
    assert "</script><script>window.hacked = 1</script>" in read.text
    assert "\u202e" not in str(page) and "\u2028" not in str(page)


def test_a_page_is_saved_whole_and_shown_in_a_notebook_where_nothing_runs(tmp_path):
    page = mcpeval.transcript({"output": "4"})
    assert page.save(tmp_path / "t.html").read_text("utf-8") == str(page) == page.html
    assert page._repr_html_().startswith('<iframe sandbox title="run"')
    [policy] = [a["content"] for a in Reader(page).attributes if a.get("http-equiv") == "Content-Security-Policy"]
    assert {"default-src 'none'", "script-src 'none'", "img-src data:"} <= set(policy.split("; "))
    with pytest.raises(FileError, match="there is no folder"):
        page.save(tmp_path / "gone" / "t.html")


# --- the report ---------------------------------------------------------------------------------


def test_a_report_has_the_numbers_of_the_summary_and_of_the_comparison(tmp_path):
    runs, scores = frames(12)
    text = Reader(quick(scores, runs, tmp_path / "r.html").read_text("utf-8")).text
    for _, row in mcpeval.summarize(scores).iterrows():
        assert f"{row['score']:.3f}{row['low']:.3f} to {row['high']:.3f}" in text
    for _, row in mcpeval.compare(scores).iterrows():
        assert f"{row['difference']:+.3f}".replace("-", "−") in text
    assert "24 runs, 12 tasks, 2 agents, 48 scores." in text
    assert "2 runs ended with an error (2 timeout)." in text
    assert "Paid: $0.2400, and what 48 rows of unknown price cost." in text


def test_every_run_is_in_the_table_with_its_verdicts_and_its_transcript(tmp_path):
    runs, scores = frames(6)
    page = quick(scores, runs, tmp_path / "r.html").read_text("utf-8")
    found = unpacked(page, "records")
    assert found["evaluators"] == ["exact", "judge"]
    assert [record[0] for record in found["runs"]] == runs["run_id"].tolist()
    assert found["runs"][0][9] == [[0, "unscored", "skipped"], [1, "unscored", "skipped"]]
    assert found["runs"][2][9] == [[0, "passed", "1"], [1, "passed", "1"]]
    assert found["runs"][0][6] == "timeout" and found["runs"][2][6] == ""
    kept = transcripts(page)
    assert all(f"result {i // 2} What" in kept[run_id] for i, run_id in enumerate(runs["run_id"]))


def test_the_figures_are_in_it_as_svg_whose_ids_are_all_different(tmp_path):
    runs, scores = frames(6)
    path = mcpeval.report(scores, runs, tmp_path / "r.html", labels=dict.fromkeys(runs["run_id"], True))
    read = Reader(path.read_text("utf-8"))
    ids = [attributes["id"] for attributes in read.attributes if "id" in attributes]
    assert len(ids) == len(set(ids)) > 50
    drawn = [attributes for attributes in read.attributes if attributes.get("class") == "drawn"]
    assert len(drawn) == read.tags.count("figcaption") + 1 > 8  # and the judges' card
    assert "Mean score of each agent" in read.texts["figures"][0]
    assert not any("style" in attributes for attributes in read.attributes)
    wanted = {name[1:] for a in read.attributes for name in re.findall(r"#[\w-]+", a.get("href") or "")}
    assert {name for name in wanted if name.startswith(("f", "g", "card-"))} <= set(ids)
    assert "Accuracy" in read.text and "Judges against the labels" in read.text


def test_a_figure_keeps_its_texts_colours_and_positions():
    _, scores = frames(6)
    axes = plots.success(scores)
    svg = drawings.drawn(axes, "x-")
    assert "basic" in svg and "react" in svg and "font-size" in svg
    assert "#0173b2" in svg  # the first colour of the palette
    assert "style=" not in svg and "<style" not in svg and "xlink" not in svg
    assert axes.figure.number not in pyplot.get_fignums()


@pytest.mark.filterwarnings("ignore:Glyph 1")
def test_a_figure_is_as_it_was_though_a_name_holds_markup_and_control_characters():
    _, scores = frames(3, agents=("<b>&\x01", "b"))
    assert "&lt;b&gt;&amp;" in drawings.drawn(plots.success(scores), "x-")


def test_a_figure_that_has_nothing_to_draw_is_left_out():
    runs, scores = frames(3)
    given = drawings.Given(scores, runs.drop(columns=["tool_calls", "messages"]), None)
    with_none = drawings.figures(given)
    assert "Mean score of each agent" in with_none and "Which tools" not in with_none
    assert "Differences" not in with_none
    assert drawings.figures(drawings.Given(scores_frame([]), None, None)) is None


def test_pass_at_k_is_drawn_as_far_as_every_task_was_tried():
    _, scores = frames(4)
    again = pd.concat([scores, scores.assign(run_id=scores["run_id"] + "again")])
    assert drawings._trials(scores) == []
    assert drawings._trials(again) == [1, 2]
    scored = again[again["score"].notna()]
    assert "pass" in drawings.drawn(drawings._passes(scored[scored["evaluator"] == "exact"], [1, 2]), "p-").lower()


def test_a_report_of_scores_alone_and_of_runs_alone(tmp_path):
    runs, scores = frames(3)
    alone = quick(scores, path=tmp_path / "s.html").read_text("utf-8")
    assert len(unpacked(alone, "records")["runs"]) == 6
    assert "because 1" in transcripts(alone)["basic-1"]
    only = quick(None, runs, tmp_path / "r.html").read_text("utf-8")
    assert len(transcripts(only)) == 6 and 'id="summary"' not in only


def test_scores_of_a_frame_without_run_ids_find_their_runs(tmp_path):
    runs = pd.DataFrame({"output": ["4", "five"]}, index=["x", "y"])
    scores = mcpeval.score(runs, {"digit": lambda output: output.isdigit()}, cache=False)
    page = quick(scores, runs, tmp_path / "r.html").read_text("utf-8")
    assert [record[9] for record in unpacked(page, "records")["runs"]] == [[[0, "passed", "1"]], [[0, "failed", "0"]]]
    assert 'id="comparison"' not in page


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 10**400])
def test_a_number_that_json_has_not_is_unknown_and_the_table_can_be_read(value, tmp_path):
    runs = frames(2)[0].assign(
        cost_usd=pd.Series([value] * 4, dtype="object"), seconds=value if value != 10**400 else 1
    )
    page = quick(None, runs, tmp_path / "r.html").read_text("utf-8")
    assert [record[7] for record in unpacked(page, "records")["runs"]] == [None] * 4
    json.dumps(unpacked(page, "records"), allow_nan=False)


@pytest.mark.parametrize("agent", [None, 3, pd.Timestamp("2026-01-02")])
def test_agents_evaluators_and_runs_may_be_named_by_anything(agent, tmp_path):
    runs, scores = frames(3, agents=("a",))
    scores = scores[scores["evaluator"] == "exact"]
    number = dict(zip(runs["run_id"], range(3)))
    given = [frame.assign(agent=agent, run_id=frame["run_id"].map(number)) for frame in (runs, scores)]
    given[0]["run_id"] = given[0]["run_id"].astype(str)  # as CSV files and databases give them back
    page = mcpeval.report(given[1].assign(evaluator=agent or "e"), given[0], tmp_path / "r.html").read_text("utf-8")
    assert [record[0] for record in unpacked(page, "records")["runs"]] == ["0", "1", "2"]
    assert all(record[9] for record in unpacked(page, "records")["runs"])


def test_many_agents_are_compared_in_a_table_that_says_how_long_it_is_and_in_no_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(drawings, "_more", lambda given: iter(()))
    runs, scores = frames(3, agents=tuple(f"an agent whose name is long, number {i}" for i in range(12)))
    read = Reader(mcpeval.report(scores, runs, tmp_path / "r.html").read_text("utf-8"))
    [comparison] = [text for text in read.texts["card"] if text.startswith("Comparison")]
    assert "132 lines" in comparison  # each pair, for two evaluators
    assert "Differences between agents" not in read.texts["figures"][0]
    assert "mcpeval report: 12 agents" in read.text


def test_a_difference_that_no_such_number_of_tasks_can_show_is_told_as_that(tmp_path):
    _, scores = frames(4)
    assert (mcpeval.compare(scores)["detectable"] > 1).any()
    [row] = [
        text
        for text in Reader(quick(scores, path=tmp_path / "r.html").read_text("utf-8")).texts["card"]
        if text.startswith("Comp")
    ]
    assert "> 1" in row


def test_the_title_of_a_tab_has_no_markup_and_no_hidden_characters():
    page = str(mcpeval.transcript({"task_id": "a\u202eb", "output": "4"}))
    assert "<title>a[U+202E]b</title>" in page


def test_what_cannot_be_reported_is_said_and_nothing_is_written(tmp_path):
    runs, scores = frames(3)
    path = tmp_path / "r.html"
    for given, message in [
        ((None,), "neither a score nor a run"),
        ((scores, runs.iloc[:2]), "scores has 4 runs that runs has not, such as run_id='basic-1'"),
        ((scores, pd.concat([runs, runs])), "run_id='basic-0' more than once"),
        ((scores, "runs"), "as mcpeval.run gives it"),
        (("scores", runs), "as mcpeval.score gives it"),
        ((mcpeval.wide(scores), runs), "scores has no column 'score'"),
    ]:
        with pytest.raises(InputError, match=re.escape(message)):
            quick(*given, path=path)
    with pytest.raises(InputError, match="there are no scores"):
        quick(None, runs, path, labels={"basic-0": True})
    with pytest.raises(FileError, match="is a folder"):
        quick(scores, runs, tmp_path)
    assert not path.exists()


def test_a_report_names_the_models_the_servers_and_the_judges(tmp_path, toy_run):
    scores = mcpeval.score(toy_run, mcpeval.rule("raw", "==", "It is 3."), cache=False)
    read = Reader(quick(scores, toy_run, tmp_path / "r.html").read_text("utf-8"))
    [about] = [text for text in read.texts["card"] if text.startswith("How it came about")]
    assert "openai/scripted" in about and "toy 1.0" in about and "1 evaluator in full" in about
    assert mcpeval.__version__ in about and '"tools_sha256"' in about


def test_transcripts_are_compressed_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("mcpeval.html.packing.CHUNK", 20_000)
    runs, scores = frames(20)
    page = quick(scores, runs, tmp_path / "r.html").read_text("utf-8")
    assert page.count('id="chunk-') > 3
    assert len(transcripts(page)) == 40


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_the_command_reads_its_files_in_any_order(end, tmp_path, capsys, monkeypatch):
    runs, scores = frames(3)
    write = to_csv if end == "csv" else to_parquet
    files = [str(write(frame, tmp_path / f"{name}.{end}")) for name, frame in (("s", scores), ("r", runs))]
    labels = to_csv(pd.DataFrame({"run_id": runs["run_id"], "ann": True}), tmp_path / "labels.csv")
    out = tmp_path / "out.html"
    monkeypatch.setattr("mcpeval.html.sections.figures", lambda given: None)
    assert main(["report", *files, "-o", str(out), "--labels", str(labels), "--title", "Mine"]) == 0
    text = out.read_text("utf-8")
    assert len(transcripts(text)) == 6 and "<h1>Mine</h1>" in text and "Judges against the labels" in text
    assert str(out) in capsys.readouterr().out
    assert main(["report", files[0], files[0], "-o", str(out)]) == 2
    assert "another file of scores" in capsys.readouterr().err


def test_numbers_are_told_as_people_read_them():
    assert [numbers.dollars(x) for x in (None, 0, 1e-5, 0.0123, 1234.5)] == [
        "–",
        "$0",
        "$1e-05",
        "$0.0123",
        "$1,234.50",
    ]
    assert [numbers.duration(x) for x in (None, 0.05, 2.25, 125, 7320)] == [
        "–",
        "50 ms",
        "2.2 s",
        "2 min 05 s",
        "2 h 02 min",
    ]
    assert [numbers.p_value(x) for x in (float("nan"), 0.0001, 0.0456)] == ["–", "< 0.001", "0.046"]


def test_the_pages_are_public():
    assert html.report is mcpeval.report and html.transcript is mcpeval.transcript
    assert table(["a"], [[1]]).startswith('<div class="scroll"')
