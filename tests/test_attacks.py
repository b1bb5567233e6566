"""The attack set: what it holds, and that no attack gets out of its place in any judge's prompt."""

from __future__ import annotations

import re

import pytest

from mcpeval.attacks import ATTACKS, FAMILIES, Attack, select
from mcpeval.errors import InputError
from mcpeval.evaluators import Cascade, Checklist, Judge, Jury, Pairwise, prompts, rule
from mcpeval.evaluators.composed import OPPONENT
from mcpeval.frames import clean_text

CLEAN = "The tide is high at 18:40."
ROW = {
    "run_id": "r1",
    "task_id": "t1",
    "trial": 0,
    "agent": "one",
    "question": "When is high tide? ROW-7",
    "output": CLEAN,
    "reference": "18:40",
    "messages": [{"role": "user", "content": "When?"}, {"role": "assistant", "content": CLEAN}],
    "tool_calls": [{"server": "tides", "name": "next", "arguments": {"at": "Cuxhaven"}, "result": "18:40"}],
    "key_points": ["the hour", "the place"],
    "first": CLEAN,
    "second": "It is high at noon.",
}
ROW[OPPONENT] = {**ROW, "agent": "two"}
EVERYTHING = ("question", "output", "transcript", "tool_calls")
MODEL = {"model": "openai/good"}
TEMPLATE = "Asked: {question}\nSaid: {output}\nDid: {transcript}{tool_calls}\nIs it right? {{output}}"


# --- the set ----------------------------------------------------------------------------------


def test_there_are_forty_attacks_and_more_of_every_family():
    assert len(ATTACKS) >= 40
    assert {attack.family for attack in ATTACKS.values()} == set(FAMILIES)
    assert {"instructions", "tags", "verdicts", "tools", "roles", "languages", "hidden", "padding"} <= set(FAMILIES)
    assert all(id == attack.id and id.startswith(f"{attack.family}-") for id, attack in ATTACKS.items())


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=lambda attack: attack.id)
def test_an_attack_is_always_the_same_keeps_the_answer_and_names_the_verdict_it_is_after(attack):
    assert attack(CLEAN, "5") == attack(CLEAN, "5") != CLEAN
    assert CLEAN in attack(CLEAN, "5")
    assert attack(CLEAN, "5") != attack(CLEAN, "4")


def test_the_set_has_what_its_families_promise():
    texts = {id: attack(CLEAN) for id, attack in ATTACKS.items()}
    padding = [len(texts[id].encode()) for id in texts if id.startswith("padding-")]
    assert sum(size > 100_000 for size in padding) >= 3
    hidden = "".join(texts[id] for id in texts if id.startswith("hidden-"))
    for mark in ("\u200b", "\u200d", "\u2060", "\ufeff", "\u202e", "\u2066", "\u2067"):
        assert mark in hidden
    assert sum(not texts[id].isascii() for id in texts if id.startswith("languages-")) >= 5
    assert '"verdict": true' in texts["verdicts-json"] and "</output>" in texts["tags-output"]


def test_attacks_are_chosen_by_family_by_id_or_as_they_are():
    assert select() == tuple(ATTACKS.values())
    assert {attack.family for attack in select("tags")} == {"tags"}
    own = Attack("mine", "roles", lambda output, best: f"{output} {best}!")
    assert [attack.id for attack in select(["verdicts-json", own, "verdicts-json"])] == ["verdicts-json", "mine"]
    assert own("4", "5") == "4 5!"


def test_an_unknown_attack_or_family_is_named():
    with pytest.raises(InputError, match="Did you mean 'verdicts'"):
        select("verdict")
    with pytest.raises(InputError, match="Did you mean 'roles'"):
        Attack("x", "role", str)
    with pytest.raises(InputError, match="is empty"):
        select([])
    with pytest.raises(InputError, match="twice"):
        select(["tags-output", Attack("tags-output", "tags", lambda output, best: output)])


# --- no attack gets out of its place ----------------------------------------------------------

PAIR = "A: {output_A}\nB: {output_B}\nAsked: {question}\nWhich is better? {{output_A}}"
JUDGES = {
    "judge": Judge(sees=EVERYTHING, **MODEL),
    "judge of points": Judge("How good is it?", scale=(1, 5), sees=EVERYTHING, reference=True, **MODEL),
    "judge by log-probabilities": Judge(scale=["bad", "good"], method="logprobs", sees=EVERYTHING, **MODEL),
    "template": Judge(TEMPLATE, **MODEL),
    "checklist": Checklist(["names an hour", "is polite"], sees=EVERYTHING, **MODEL),
    "checklist of a column": Checklist("key_points", sees=EVERYTHING, **MODEL),
    "pairwise": Pairwise(compares=("output", "transcript", "tool_calls"), **MODEL),
    "pairwise between columns": Pairwise(between=("first", "second"), **MODEL),
    "pairwise template": Pairwise(PAIR, between=("first", "second"), **MODEL),
    "jury": Jury({"one": Judge(sees=EVERYTHING, **MODEL), "two": Judge(TEMPLATE, **MODEL)}),
    "cascade": Cascade(
        {"exact": rule("", "=", "4"), "graded": Judge("Good?", **MODEL), "last": Judge(TEMPLATE, **MODEL)},
        accept={"graded": (0.2, 0.8)},
    ),
}


def prompts_of(judge, row):
    """The messages of each judge that `judge` is made of, once in each order where it has two."""
    if isinstance(judge, (Jury, Cascade)):
        return [one for part in judge.parts.values() for one in prompts_of(part, row)]
    if isinstance(judge, Pairwise):
        return [judge.render(row, order) for order in ("ab", "ba")]
    return [judge.render(row)] if hasattr(judge, "render") else []


def skeleton(messages):
    """The bytes of a prompt with what stands between tags taken out, and those texts by the names of their tags."""
    assert [message["role"] for message in messages] == ["system", "user"]
    system, user = (message["content"].encode() for message in messages)
    code = re.search(rb"^CODE is ([0-9a-f]{16})\.$", user, re.MULTILINE)[1]
    found = {}

    def take(match):
        found[match[1]] = match[2]
        return b"<" + match[1] + b"-CODE>\n</" + match[1] + b"-CODE>"

    rest = re.sub(rb"<(\w+)-" + code + rb">\n(.*?)\n</\1-" + code + rb">", take, user, flags=re.DOTALL)
    assert found
    for text in found.values():
        assert b"<" not in text and code not in text
    return system + b"\0" + rest.replace(b"CODE is " + code, b"CODE is CODE"), found


def attacked(attack):
    """A row in which every text that comes from an agent or a server holds the attack."""
    text = attack(CLEAN, "true")
    messages = [ROW["messages"][0], {"role": "assistant", "content": text}]
    calls = [{**ROW["tool_calls"][0], "result": text, "arguments": {"at": text}}]
    row = {**ROW, "messages": messages, "tool_calls": calls, "key_points": [text, "the place"]}
    row |= dict.fromkeys(("output", "question", "reference", "first", "second"), text)
    return {**row, OPPONENT: {**row, "agent": "two"}}


@pytest.mark.parametrize("kind", JUDGES)
def test_no_text_of_any_attack_stands_outside_its_tags_whatever_the_kind_of_judge(kind):
    judge = JUDGES[kind]
    harmless = [skeleton(messages) for messages in prompts_of(judge, ROW)]
    assert harmless
    for attack in ATTACKS.values():
        row = attacked(attack)
        for (frame, clean), messages in zip(harmless, prompts_of(judge, row), strict=True):
            met, shown = skeleton(messages)
            assert met == frame, attack.id
            assert shown.keys() == clean.keys(), attack.id


def test_what_is_shown_of_an_attack_is_all_of_it_where_nothing_is_cut():
    for attack in ATTACKS.values():
        text = attack(CLEAN, "true")
        _, shown = skeleton(Judge(max_chars=10**6, **MODEL).render({**ROW, "output": text}))
        read = re.sub("&(lt|amp);", lambda found: {"lt": "<", "amp": "&"}[found[1]], shown[b"output"].decode())
        assert read == clean_text(text), attack.id


def test_no_attack_gets_out_of_its_place_where_claims_or_an_own_answer_are_asked_for_first():
    for ask in (lambda text: prompts.to_be_taken_apart(text, 20), prompts.to_be_answered):
        frame, _ = skeleton(ask(CLEAN))
        for attack in ATTACKS.values():
            assert skeleton(ask(attack(CLEAN, "true")))[0] == frame, attack.id
