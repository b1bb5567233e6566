"""Verdicts in judges' free texts: what is evident is read, and nothing is made up."""

from __future__ import annotations

import json

import pytest

from mcpeval.errors import InputError
from mcpeval.evaluators import read_verdict
from tests.conftest import CONFORMANCE

# What each canned reply of the oracle says to a reader; theirs is wrong on eight of them.
EVIDENT = [
    *["no", "yes", "yes", "yes", "yes", "no", None, "yes", "no", "no", "yes", None, "yes", "yes"],
    *["yes", "yes", "yes", "yes", "yes", "yes", None],
]


def replies():
    path = CONFORMANCE / "oracles" / "mcpuniverse_judge_cases.jsonl"
    if not path.exists():
        return [pytest.param(None, None, marks=pytest.mark.skip(reason=f"no {path.name} in the conformance data"))]
    found = [json.loads(line)["judge_reply"] for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(found) == len(EVIDENT)
    return list(zip(found, EVIDENT))


@pytest.mark.parametrize(("reply", "evident"), replies())
def test_the_evident_verdict_of_a_canned_reply_is_read(reply, evident):
    assert read_verdict(reply, "correct") == evident


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Thoughts: fine. Status: success", "success"),
        ("Status: success\nno: Status: failure\nStatus: **Failure**.", "failure"),
        ("Substatus: success", None),
        ("Status: successful", None),
        ("", None),
        ("Status:", None),
        ("The status is success", None),
        ("- **Status** = 'Success'", "success"),
    ],
)
def test_a_verdict_stands_behind_its_key_and_is_one_of_the_labels(text, verdict):
    assert read_verdict(text, "Status", ("success", "failure")) == verdict


def test_labels_of_several_words_and_of_other_scripts_are_read():
    assert read_verdict("verdict: not correct", "verdict", ("correct", "not correct")) == "not correct"
    assert read_verdict("判定: 正しい", "判定", ("正しい", "違う")) == "正しい"


@pytest.mark.parametrize(("key", "labels"), [("", ("yes",)), (None, ("yes",)), ("a", ()), ("a", "yes")])
def test_what_cannot_be_looked_for_is_refused(key, labels):
    with pytest.raises(InputError, match="read_verdict: (key|labels)="):
        read_verdict("a: yes", key, labels)
