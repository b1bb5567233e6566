"""The stem of an English word, as ROUGE counts words.

M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980, with the extensions that
NLTK's stemmer has (a few irregular words, four-letter words in -ies and -ied, -y after a consonant
only), because the scores that papers print were counted with that one.
"""

from __future__ import annotations

import re
from functools import lru_cache

_IRREGULAR = {
    **dict.fromkeys(("sky", "skies"), "sky"),
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "news": "news",
    "howe": "howe",
    **dict.fromkeys(("inning", "innings"), "inning"),
    **dict.fromkeys(("outing", "outings"), "outing"),
    **dict.fromkeys(("canning", "cannings"), "canning"),
    **{word: word for word in ("proceed", "exceed", "succeed")},
}

# Suffix and what takes its place, the longer suffix first where two end alike.
_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble"),
    ("fulli", "ful"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"),
    ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"),
    ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"), ("logi", "log"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
)  # fmt: skip
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti",
    "ous", "ive", "ize",
)  # fmt: skip


def _shape(word: str) -> str:
    """`word` with c for each consonant and v for each vowel; y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape[-1:] == "c")
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    """Porter's m: how often a vowel is followed by a consonant."""
    return _shape(word).count("vc")


def _has_vowel(word: str) -> bool:
    return "v" in _shape(word)


def _ends_cvc(word: str) -> bool:
    shape = _shape(word)
    return (shape.endswith("cvc") and word[-1] not in "wxy") or shape == "vc"


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The stem of `word`, which should be in lower case.

    Examples
    --------
    >>> [stem(word) for word in ("cats", "running", "quickly", "relational", "3")]
    ['cat', 'run', 'quickli', 'relat', '3']
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    for step in (_plural, _past, _final_y, _double_suffix, _suffix, _last_suffix, _final_e, _final_l):
        word = step(word)
    return word


def _plural(word: str) -> str:  # step 1a
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:  # step 1b
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    ending = next(
        (suffix for suffix in ("ed", "ing") if word.endswith(suffix) and _has_vowel(word[: -len(suffix)])), None
    )
    if ending is None:
        return word
    word = word[: -len(ending)]
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if len(word) > 1 and word[-1] == word[-2] and _shape(word)[-1] == "c":
        return word if word[-1] in "lsz" else word[:-1]
    return word + "e" if _measure(word) == 1 and _ends_cvc(word) else word


def _final_y(word: str) -> str:  # step 1c
    shape = _shape(word[:-1])
    return word[:-1] + "i" if word.endswith("y") and len(shape) > 1 and shape[-1] == "c" else word


def _double_suffix(word: str) -> str:  # step 2
    for suffix, instead in _STEP_2:
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            if _measure(rest + "l" if suffix == "logi" else rest) == 0:
                return word
            return _double_suffix(rest + instead) if suffix == "alli" else rest + instead
    return word


def _suffix(word: str) -> str:  # step 3
    for suffix, instead in _STEP_3:
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            return rest + instead if _measure(rest) > 0 else word
    return word


def _last_suffix(word: str) -> str:  # step 4
    for suffix in _STEP_4:
        rest = word[: -len(suffix)]
        if word.endswith(suffix) and (suffix != "ion" or rest.endswith(("s", "t"))):
            return rest if _measure(rest) > 1 else word
    return word


def _final_e(word: str) -> str:  # step 5a
    if not word.endswith("e"):
        return word
    measure = _measure(word[:-1])
    return word[:-1] if measure > 1 or (measure == 1 and not _ends_cvc(word[:-1])) else word


def _final_l(word: str) -> str:  # step 5b
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


_ASCII_WORD = re.compile("[a-z0-9]+")
_WORD = re.compile(r"\w+")


def rouge_words(text: str, *, ascii_only: bool = False) -> list[str]:
    """The stemmed words of `text`, in order, as ROUGE-1 compares them.

    Parameters
    ----------
    text : str
    ascii_only : bool
        Whether only a-z and 0-9 make words, as in Google's ``rouge_score``: every other letter
        then parts two words, and a text in another script has none.
    """
    words = (_ASCII_WORD if ascii_only else _WORD).findall(text.lower())
    return [stem(word) if len(word) > 3 else word for word in words]
