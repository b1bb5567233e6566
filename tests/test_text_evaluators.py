"""Evaluators of what was said: similarity, terms, patterns, length, JSON, and meaning by embeddings."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpeval import embedding, score
from mcpeval._loop import run_sync
from mcpeval.errors import CacheMiss, InputError, ModelError
from mcpeval.evaluators.adapting import as_evaluator
from mcpeval.evaluators.base import is_immediate
from mcpeval.evaluators.conversations import actual_turns, expected_turns
from mcpeval.evaluators.embeddings import EmbeddingSimilarity, chunks
from mcpeval.evaluators.stemming import rouge_words, stem
from mcpeval.evaluators.text import Contains, Excludes, JsonFormat, Length, Matches, Similarity


def of(evaluator, output, reference=None, **row):
    return evaluator.evaluate({"output": output, "reference": reference, **row})


def turn(question, answer, **more):
    return {"user_content": {"parts": [{"text": question}]}, "final_response": {"parts": [{"text": answer}]}, **more}


# Similarity


@pytest.mark.parametrize(
    ("mode", "reference", "output", "score"),
    [
        ("jaccard", "a b c d", "a b c e", 3 / 5),
        ("jaccard", "The capital of France is Paris.", "the capital of france is paris", 5 / 7),
        ("jaccard", "a a a b", "a b b", 1.0),
        ("recall", "a b", "a b c d e f", 1.0),
        ("recall", "a b c d", "a b", 1 / 2),
        ("exact", "Hello World", "hello   world", 1.0),
        ("exact", "1. apples\n2) pears\n- plums", "apples pears plums", 1.0),
        ("exact", "a b", "a b c", 0.0),
        # As Google's rouge_score counts, with its stemmer.
        ("rouge1", "The cats are running quickly", "cat run quick", 0.5),
        ("rouge1", "Paris is the capital of France", "The capital of France is the city of Paris, on the Seine", 2 / 3),
        ("rouge1", "a b", "a", 2 / 3),
    ],
)
def test_similarity_is_counted_in_words(mode, reference, output, score):
    assert of(Similarity(mode), output, reference).score == pytest.approx(score)


def test_a_score_at_the_threshold_passes_and_the_reason_says_what_is_missing():
    made = of(Similarity(threshold=0.8), "a b c d e", "a b c d")
    assert (made.score, made.passed) == (0.8, True)
    made = of(Similarity(), "a b c e", "a b c d")
    assert made.passed is False
    assert made.reason == "jaccard 0.60, threshold 0.8; missing: d; too much: e"


def test_a_number_at_the_start_of_a_line_is_no_list_marker():
    assert of(Similarity("exact"), "14 is pi", "3.14 is pi").score == 0
    assert of(Similarity("exact"), "3.14 is pi", "1. 3.14 is pi").score == 1
    assert of(Similarity("exact", list_markers="any"), "14 is pi", "3.14 is pi").score == 1


def test_case_and_white_space_count_where_they_are_asked_to():
    assert of(Similarity("exact", case_sensitive=True), "Paris", "paris").score == 0
    assert of(Similarity("exact", normalize=False), "a  b", "a b").score == 0


@pytest.mark.parametrize(("reference", "output", "score"), [("", " ", 1), ("x", "", 0), ("", "x", 0), ("x", None, 0)])
def test_an_empty_answer_is_like_an_empty_reference_only(reference, output, score):
    for mode in ("exact", "jaccard", "rouge1", "recall"):
        assert of(Similarity(mode), output, reference).score == score


def test_words_of_every_script_count_in_rouge():
    assert of(Similarity("rouge1"), "巴黎 是 首都", "巴黎 是 首都").score == 1
    assert of(Similarity("rouge1"), "!!!", "!!!").score == 1
    assert of(Similarity("rouge1", words="ascii"), "巴黎 是 首都", "巴黎 是 首都").score == 0  # as rouge_score has it
    assert of(Similarity("rouge1", words="ascii"), "grosse cafe", "Größe café").score == 0


def test_a_row_without_reference_is_skipped():
    frame = pd.DataFrame({"output": ["a", "b"], "reference": ["a", None]})
    assert score(frame, Similarity(), cache=False)["status"].tolist() == ["ok", "skipped"]


def test_a_reference_that_is_no_text_is_compared_as_json():
    assert of(Similarity("exact"), '{"a": 1}', {"a": 1}).score == 1


@pytest.mark.parametrize(
    "made",
    [
        lambda: Similarity("rouge"),
        lambda: Similarity(threshold=1.5),
        lambda: Similarity(normalize="yes"),
        lambda: Contains([]),
        lambda: Contains(["a", 3]),
        lambda: Contains("a", require="some"),
        lambda: Excludes([""]),
        lambda: Matches("("),
        lambda: Length(5, 3),
        lambda: Length(-1),
        lambda: JsonFormat(3),
        lambda: EmbeddingSimilarity("local/smollm2-135m"),
        lambda: EmbeddingSimilarity("openai/x", threshold="high"),
    ],
)
def test_an_argument_without_meaning_is_refused_when_the_evaluator_is_made(made):
    with pytest.raises(InputError):
        made()


def test_a_misspelt_mode_is_answered_with_the_nearest():
    with pytest.raises(InputError, match="mode='jacard'. Did you mean 'jaccard'?"):
        Similarity("jacard")


# Several turns


def test_a_conversation_is_compared_turn_by_turn_and_the_mean_counts():
    case = {"conversation": [turn("q", "a b"), turn("r", "c d")]}
    said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a b"}]
    said += [{"role": "user", "content": "r"}, {"role": "assistant", "content": "c"}]
    made = of(Similarity(threshold=0.75), "c", "", test_case=case, messages=said)
    assert (made.score, made.passed, made.metadata["turns"]) == (0.75, True, [1.0, 0.5])
    short = of(Similarity(), "a b", "", test_case=case, messages=said[:2])
    assert (short.score, short.passed) == (0, False)
    assert "1 turns instead of 2" in short.reason


def test_a_turn_without_a_reference_does_not_count():
    case = {"conversation": [turn("q", "a"), {"user_content": {"parts": [{"text": "r"}]}}]}
    said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "r"}]
    assert of(Similarity(), None, "", test_case=case, messages=said).metadata["turns"] == [1.0]


def test_messages_are_parted_where_the_user_speaks():
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    messages = [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "2"},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": "again"},
    ]
    first, second = actual_turns({"messages": messages}, several=True)
    assert (first.question, first.answer, first.calls) == ("one", "done", (("f", {"x": 1}),))
    assert (second.question, second.answer, second.calls) == ("two", "again", ())


def test_the_parts_of_an_answer_are_one_text():
    case = {"conversation": [{"final_response": {"parts": [{"text": "a"}, {"text": None}, {"text": " b "}]}}]}
    assert expected_turns({"test_case": case})[0].answer == "a b"


# The stems


# The words of M. F. Porter's paper, and their stems after its last step.
PORTER = """
caresses caress ponies poni cats cat feed feed agreed agre plastered plaster bled bled motoring motor
sing sing conflated conflat troubled troubl sized size hopping hop tanned tan falling fall hissing hiss
fizzed fizz failing fail filing file happy happi relational relat conditional condit rational ration
digitizer digit conformabli conform radicalli radic differentli differ vileli vile analogousli analog
vietnamization vietnam predication predic operator oper feudalism feudal decisiveness decis hopefulness hope
callousness callous formaliti formal sensitiviti sensit sensibiliti sensibl triplicate triplic formative form
formalize formal electriciti electr electrical electr hopeful hope goodness good revival reviv
allowance allow inference infer airliner airlin gyroscopic gyroscop adjustable adjust defensible defens
irritant irrit replacement replac adjustment adjust dependent depend adoption adopt homologou homolog
communism commun activate activ angulariti angular homologous homolog effective effect bowdlerize bowdler
probate probat rate rate cease ceas controll control roll roll
"""


def test_stems_are_those_of_porters_paper():
    words = PORTER.split()
    assert {word: stem(word) for word in words[::2]} == dict(zip(words[::2], words[1::2]))


def test_stems_have_the_extensions_of_nltk():
    words = ["dying", "news", "skies", "ties", "died", "enjoy", "by", "fulli", "succeed"]
    assert [stem(word) for word in words] == ["die", "news", "sky", "tie", "die", "enjoy", "by", "fulli", "succeed"]


def test_only_words_of_more_than_three_letters_are_stemmed():
    assert rouge_words("It was the dogs' 3rd being") == ["it", "was", "the", "dog", "3rd", "be"]


# Terms, patterns, length, JSON


def test_terms_that_should_be_there_are_counted():
    made = of(Contains(["paris", "seine"]), "Paris.")
    assert (made.score, made.passed) == (0.5, False)
    assert made.reason == "found: paris; missing: seine"
    assert of(Contains(["paris", "seine"], require="any"), "Paris.").passed
    assert not of(Contains("Paris", case_sensitive=True), "paris").passed
    assert not of(Contains("art", whole_words=True), "party").passed
    assert of(Contains("a.b"), "a.b").passed and not of(Contains("a.b"), "axb").passed


def test_a_term_inside_another_word_is_not_unsafe():
    assert not of(Excludes(["violence"]), "VIOLENCE!").passed
    assert of(Excludes(["violence"]), "nonviolence is a virtue").passed
    assert not of(Excludes(["violence"], whole_words=False), "nonviolence is a virtue").passed
    assert of(Excludes([]), "violence").passed


def test_a_pattern_is_looked_for_or_has_to_be_the_whole_answer():
    made = of(Matches(r"\b\w+@\w+\.\w{2,}\b"), "mail a@b.co and c@d.org now")
    assert (made.passed, made.metadata["found"]) == (True, ["a@b.co", "c@d.org"])
    assert not of(Matches(r"\d+", whole=True), "42 apples").passed
    assert of(Matches(r"\d+", whole=True), " 42\n").passed
    assert of(Matches("PARIS", case_sensitive=False), "paris").passed


def test_a_length_outside_its_limits_scores_by_how_far():
    limits = Length(50, 200)
    assert [of(limits, "x" * n).score for n in (25, 50, 200, 250, 500)] == [0.5, 1, 1, 0.75, 0]
    assert [of(limits, "x" * n).passed for n in (25, 50, 250)] == [False, True, False]
    assert of(Length(maximum=0), "x").score == 0
    assert of(Length(2, unit="words"), "two words").passed


@pytest.mark.parametrize(
    ("output", "score", "reason"),
    [
        ('{"name": "a", "email": 1}', 1, "JSON with every required field"),
        ('{"name": "a"}', 0.5, "missing fields: email"),
        ("", 0, "not JSON"),
        ("```json\n{}\n```", 0, "not JSON"),
        ('{"name": NaN, "email": 1}', 0, "NaN is no JSON value"),
        ("[1, 2]", 0, "a JSON array"),
        ('"name email"', 0, "a JSON text"),
        ("[" * 100_000, 0, "not JSON"),
    ],
)
def test_json_has_to_be_an_object_with_the_required_fields(output, score, reason):
    made = of(JsonFormat(["name", "email"]), output)
    assert made.score == score
    assert reason in made.reason
    assert made.passed is (score == 1)


def test_without_required_fields_any_json_will_do():
    assert of(JsonFormat(), "3").passed
    assert not of(JsonFormat(), "three").passed


def test_every_answer_of_a_conversation_is_looked_at():
    case = {"conversation": [turn("q", ""), turn("r", "")]}
    said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "violence"}]
    said += [{"role": "user", "content": "r"}, {"role": "assistant", "content": "a longer answer"}]
    row = {"test_case": case, "messages": said}
    assert not of(Excludes(["violence"]), "a longer answer", **row).passed
    assert of(Length(10), "a longer answer", **row).score == pytest.approx(0.9)


EVERY = [
    *[Similarity(mode) for mode in ("exact", "jaccard", "rouge1", "recall")],
    *[Contains("a"), Excludes("a"), Matches("a+"), Length(2, 4), JsonFormat(), JsonFormat("a")],
]


@pytest.mark.parametrize("evaluator", EVERY, ids=repr)
def test_an_evaluator_of_text_answers_at_once_and_is_a_value(evaluator):
    assert is_immediate(as_evaluator(evaluator))
    assert hash(evaluator) == hash(type(evaluator)(**vars(evaluator)))
    assert as_evaluator(evaluator, name="mine").name == "mine"


@given(st.text() | st.none(), st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=4))
def test_no_output_and_no_reference_makes_an_evaluator_of_text_raise(output, reference):
    for evaluator in EVERY:
        made = of(evaluator, output, reference)
        assert made.status in ("ok", "skipped")
        assert math.isnan(made.score) or 0 <= made.score <= 1


# Embeddings


class Letters(BaseHTTPRequestHandler):
    """An embeddings endpoint: the vector of a text is how often it has each letter."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append(body)
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        text = body["input"][0].lower()
        vector = [float(text.count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]
        data = [{"object": "embedding", "index": 0, "embedding": vector}]
        answer = {
            "object": "list",
            "model": body["model"],
            "data": data,
            "usage": {"prompt_tokens": 3, "total_tokens": 3},
        }
        raw = json.dumps(answer if status == 200 else {"error": {"message": "no", "type": "x", "code": None}}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_):
        pass


@pytest.fixture
def letters():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Letters)
    server.bodies, server.statuses = [], []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def by_letters(letters, **more):
    base = f"http://127.0.0.1:{letters.server_port}/v1"
    return EmbeddingSimilarity("openai/letters", params={"api_base": base, "api_key": "sk-secret"}, **more)


FRAME = pd.DataFrame(
    {"output": ["aab", "zzz", "", "x"], "reference": ["aab", "aab", "aab", None], "question": ["b"] * 4}
)


def test_meaning_is_the_cosine_of_two_embeddings(letters, cache):
    scores = score(FRAME, by_letters(letters), cache=cache)
    assert scores["score"].tolist()[:3] == pytest.approx([1, 0, 0])
    assert scores["status"].tolist() == ["ok", "ok", "ok", "skipped"]
    assert scores["passed"].tolist()[:3] == [True, False, False]
    assert scores["fingerprint"].nunique() == 1
    assert sorted(body["input"][0] for body in letters.bodies) == ["aab", "zzz"]


def test_a_vector_is_paid_for_once_and_no_secret_is_kept(letters, cache, tmp_path):
    first = score(FRAME, by_letters(letters), cache=cache)
    sent = len(letters.bodies)
    again = score(FRAME, by_letters(letters), cache=cache)
    assert len(letters.bodies) == sent
    assert again["score"].tolist()[:3] == first["score"].tolist()[:3]
    assert again["cached"].tolist()[:2] == [True, True]
    cache.export(tmp_path / "cache.jsonl")
    assert "sk-secret" not in (tmp_path / "cache.jsonl").read_text()


def test_vectors_out_of_the_cache_need_no_model_library(letters, cache):
    score(FRAME, by_letters(letters), cache=cache)
    cache.close()
    code = f"""
import sys, pandas as pd
from mcpeval import score
from mcpeval.evaluators.embeddings import EmbeddingSimilarity
model = EmbeddingSimilarity("openai/letters", params={by_letters(letters).params!r})
frame = pd.DataFrame({{"output": ["aab"], "reference": ["aab"]}})
print(score(frame, model, cache={str(cache.path)!r})["score"].round(9)[0])
print([name for name in ("litellm", "openai") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["1.0", "[]"]


def test_replay_never_sends(letters, cache):
    cache.set("some", "entry")
    with pytest.raises(CacheMiss):
        score(FRAME, by_letters(letters), cache=cache, replay=True)
    assert letters.bodies == []


def test_a_model_that_fails_gives_no_score_and_never_a_low_one(letters):
    letters.statuses = [401] * 10
    scores = score(FRAME.head(1), by_letters(letters), cache=False)
    assert scores["status"][0] == "error"
    assert math.isnan(scores["score"][0])
    assert "401" in scores["error"][0]
    assert "sk-secret" not in scores["error"][0]


def test_what_may_pass_is_tried_again(letters):
    letters.statuses = [503]
    assert score(FRAME.head(1), by_letters(letters), cache=False)["score"][0] == pytest.approx(1)
    assert len(letters.bodies) == 2


def test_a_long_text_is_embedded_in_pieces(letters):
    made = score(
        pd.DataFrame({"output": ["aa bb cc"], "reference": ["abc"]}), by_letters(letters, chunk=5), cache=False
    )
    assert [body["input"][0] for body in letters.bodies] == ["abc", "aa bb", "cc"]
    assert made["score"][0] == pytest.approx(1)  # the mean of (2, 2, 0) and (0, 0, 2) is (1, 1, 1)
    assert chunks("aa bb cc", 5) == ["aa bb", "cc"]
    assert chunks("a verylongword b", 4) == ["a", "verylongword", "b"]
    assert chunks("aa bb cc", 0) == ["aa bb cc"]


def test_the_answer_may_be_held_against_the_question_too(letters):
    made = score(FRAME.head(1), by_letters(letters, with_question=True), cache=False)
    assert made["metadata"][0]["to_question"] == pytest.approx([1 / 5**0.5])


def test_a_dry_run_says_what_would_be_sent(letters):
    plan = score(FRAME, by_letters(letters), cache=False, dry_run=True)
    assert letters.bodies == []
    assert (plan["model"][0], plan["calls"][0] >= 2) == ("openai/letters", True)


def test_an_unknown_provider_is_refused_before_anything_is_sent():
    with pytest.raises(InputError, match="unknown provider 'opnai'. Did you mean 'openai'"):
        score(FRAME, EmbeddingSimilarity("opnai/letters"), cache=False)


def test_equal_texts_are_asked_for_once(letters):
    params = by_letters(letters).params
    found = run_sync(embedding.embed("openai/letters", ["ab", "ab", "c"], **params))
    assert [vector[:3] for vector in found.vectors] == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert (len(letters.bodies), found.usage.calls, found.usage.tokens_in) == (2, 2, 6)


def test_vectors_of_different_lengths_are_no_answer():
    assert embedding.similarity([1, 2], [2, 4]) == pytest.approx(1)
    assert embedding.similarity([1, 0], [0, 0]) == 0
    with pytest.raises(ModelError, match="2 and of 1"):
        embedding.similarity([1, 2], [1])
