"""What a judge is shown of long transcripts and of images: declared, and the same each time."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import subprocess
import sys

import pytest

from mcpeval.errors import InputError
from mcpeval.evaluators import Context, Judge
from mcpeval.evaluators.cutting import CHARACTERS, Part, Ruler, _ends_by_bytes, shortened, tokens
from mcpeval.testing import _PIXEL

SHA = hashlib.sha256(_PIXEL).hexdigest()
DATA = base64.b64encode(_PIXEL).decode()
URL = f"data:image/png;base64,{DATA}"
DECLARED = f"[image image/png, {len(_PIXEL)} bytes, sha256 {SHA[:16]}]"
FORMS = {
    "mcp": {"type": "image", "data": DATA, "mimeType": "image/png"},
    "openai": {"type": "image_url", "image_url": {"url": URL}},
    "responses": {"type": "input_image", "image_url": URL},
    "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}},
}


def judge(**how):
    return Judge("Is it clear?", model="openai/gpt-4.1-mini", **{"sees": ("transcript",), **how})


def transcript(*parts):
    return {"messages": [{"role": "user", "content": "Look."}, {"role": "tool", "content": list(parts)}]}


# --- images -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_an_image_is_named_in_the_text_by_its_type_size_and_content(form):
    user = judge().render(transcript(FORMS[form], {"type": "text", "text": "black"}))[1]["content"]
    assert f"[result of a tool]\n{DECLARED}\nblack\n" in user and DATA not in user


@pytest.mark.parametrize("form", FORMS)
def test_an_image_is_sent_as_one_where_that_is_asked_for(form):
    content = judge(images=True).render(transcript(FORMS[form], FORMS["mcp"]))[1]["content"]
    text, name, image = content
    assert text["text"].count(f"[image 1: image/png, {len(_PIXEL)} bytes") == 2 and name["text"] in text["text"]
    assert image == {"type": "image_url", "image_url": {"url": URL}}


def test_an_image_that_is_kept_in_the_cache_is_taken_from_there(cache):
    row = transcript({"type": "image", "mimeType": "image/png", "sha256": SHA, "bytes": len(_PIXEL)})
    assert DECLARED in judge(images=True).render(row, cache)[1]["content"]
    cache.set(f"blob:{SHA}", {"mimeType": "image/png", "data": DATA})
    assert judge(images=True).render(row, cache)[1]["content"][2]["image_url"]["url"] == URL
    assert DECLARED in judge().render(row, cache)[1]["content"]
    cache.set(f"blob:{SHA}", {"mimeType": "image/png", "data": "AAAA"})
    assert DECLARED in judge(images=True).render(row, cache)[1]["content"]


def test_what_is_only_an_address_or_broken_is_never_sent():
    row = transcript({"type": "image_url", "image_url": {"url": "https://e.org/x.png"}}, {"type": "image", "data": 3})
    content = judge(images=True).render(row)[1]["content"]
    assert "[image at https://e.org/x.png]" in content and isinstance(content, str)


def test_a_text_that_looks_like_an_image_is_a_text():
    row = transcript({"type": "text", "text": f"[image 1: image/png, {len(_PIXEL)} bytes, sha256 {SHA[:16]}]"})
    assert isinstance(judge(images=True).render(row)[1]["content"], str)


def test_images_arrive_at_the_model_and_a_replay_finds_the_verdict(endpoint, cache):
    one = judge(images=True, api_base=endpoint.base, api_key="sk-secret-000001")
    row = transcript(FORMS["mcp"])
    assert asyncio.run(one.evaluate(row, Context(cache=cache))).status == "ok"
    sent = endpoint.requests[0]["messages"][1]["content"]
    assert sent[-1]["image_url"]["url"] == URL
    assert one.peek(row, cache).status == "ok"
    assert one.fingerprint != judge().fingerprint


# --- tokens -----------------------------------------------------------------------------------

LONG = "HEAD " + "The tide rises at dawn. " * 4000 + "TAIL"


@pytest.mark.parametrize(
    "model", ["openai/gpt-4o", "openai/gpt-4", "anthropic/claude-sonnet-4-5", "local/smollm2-135m"]
)
def test_tool_results_are_cut_to_the_tokens_that_are_shown(model):
    import tiktoken

    one = Judge("Is it clear?", model=model, sees=("question", "transcript"), max_tokens_shown=1000)
    row = {"question": "q " * 300, "messages": [{"role": "tool", "content": LONG}]}
    user, cut = (lambda said: (said[0][1]["content"], said[1]))(one._render(row, None))
    assert cut == ("transcript",) and "HEAD" in user and "TAIL" in user and "q " * 299 in user
    assert re.search(r"\[\.\.\. \d+ tokens were cut here \.\.\.\]", user)
    table = tiktoken.get_encoding("cl100k_base" if model == "openai/gpt-4" else "o200k_base")
    inside = re.search(r"<transcript-\w+>\n(.*)\n</transcript", user, re.DOTALL)[1]
    assert 900 < len(table.encode_ordinary(inside)) + 301 <= 1005


BYTES = Ruler("bytes/3", "tokens", 9, lambda text: -(-len(text.encode()) // 3), _ends_by_bytes)
TEXTS = ["naïve café " * 900, "潮が満ちる。" * 900, "😀" * 3000, "a" * 100_000, "\u202e\u200b" * 2000]


@pytest.mark.parametrize("ruler", [tokens("openai/gpt-4o"), BYTES], ids=["table", "bytes"])
@pytest.mark.parametrize("text", TEXTS, ids=range(5))
def test_no_character_is_broken_and_no_text_takes_long(ruler, text):
    parts, cut = shortened({"x": [Part(text, is_result=True)]}, 200, ruler)
    [part] = parts["x"]
    assert cut == ("x",) and ruler.length(part.text) <= 205
    first, last = re.split(r"\n\[\.\.\. \d+ tokens were cut here \.\.\.\]\n", part.text)
    assert first and last and text.startswith(first) and text.endswith(last)


def test_both_limits_hold_and_a_short_row_is_left_alone():
    one = judge(max_chars=1000, max_tokens_shown=200)
    row = {"messages": [{"role": "tool", "content": LONG}]}
    messages, cut = one._render(row, None)
    assert cut == ("transcript",) and len(messages[1]["content"]) < 1300
    assert judge(max_tokens_shown=200).render(transcript("x")) == judge().render(transcript("x"))
    assert CHARACTERS.cut("short", 100) == "short"


def test_the_way_of_counting_is_part_of_the_fingerprint_and_needs_no_client():
    assert tokens("openai/gpt-4").name == "cl100k_base" and tokens("anthropic/x").name == "o200k_base"
    assert judge(max_tokens_shown=200).fingerprint != judge(max_tokens_shown=201).fingerprint
    code = (
        "import sys; from mcpeval import Judge; "
        "Judge('Clear?', model='openai/gpt-4o', sees='output', max_tokens_shown=50).render({'output': 'word ' * 999}); "
        "print('tiktoken' in sys.modules, 'litellm' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_a_number_of_tokens_that_shows_nothing_is_refused():
    with pytest.raises(InputError, match="max_tokens_shown=10 should be a whole number, at least 50"):
        judge(max_tokens_shown=10)
    with pytest.raises(InputError, match="images='yes' should be True or False"):
        judge(images="yes")
