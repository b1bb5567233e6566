"""Evaluators of what was said: similarity to a reference, terms, patterns, length, JSON.

Each is a frozen value that answers at once.  They read ``output``; of a conversation of several
turns (see `conversations`) every answer counts.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import InputError
from ..types import Score
from .arguments import need_choice, need_count, need_flag, need_number, need_texts
from .conversations import Turn, answered, answers, both
from .stemming import rouge_words

MODES = ("exact", "jaccard", "rouge1", "recall")

_SPACED_MARKER = re.compile(r"^[^\S\n]*(?:(?:\d+[.)]|[•*\-])[^\S\n]+)+", re.MULTILINE)
_NUMBER_MARKER = re.compile(r"^\s*\d+[.)]\s*", re.MULTILINE)
_BULLET = re.compile(r"^\s*[•*\-]\s+", re.MULTILINE)


@dataclass(frozen=True)
class Similarity:
    """How like the reference an answer is, word for word.

    Parameters
    ----------
    mode : {"jaccard", "exact", "rouge1", "recall"}
        ``jaccard``: words that both have, of the words that either has. ``exact``: 1 or 0.
        ``rouge1``: the F1 of stemmed words, each as often as it stands (ROUGE-1; C.-Y. Lin, "ROUGE",
        2004). ``recall``: the share of the reference's words that the answer has, however much else
        it says. Words of ``jaccard`` and ``recall`` are what stands between spaces, so "Paris."
        and "Paris" are two.
    threshold : float
        The mean score of the turns from which the row passes.
    case_sensitive : bool
        ``rouge1`` never is.
    normalize : bool
        Whether white space counts as one space, and list markers at the start of a line not at all.
    list_markers : {"spaced", "any"}
        Whether a number at the start of a line is a marker only with a space behind it ("1. apples"),
        or always: ``any`` makes "3.14" into "14", as judge-llm does.
    words : {"unicode", "ascii"}
        What ``rouge1`` takes for letters; ``ascii`` as Google's package `rouge_score` does, which
        finds no words in a text that is not Latin.
    name : str

    Notes
    -----
    Reads ``output`` and ``reference``; a row without reference is ``skipped``. An answer that says
    nothing scores 0, and 1 where nothing was expected. A conversation that has not as many turns as
    the expected one scores 0. ``metadata`` has the score of each turn that has a reference.
    """

    mode: str = "jaccard"
    threshold: float = 0.8
    case_sensitive: bool = False
    normalize: bool = True
    list_markers: str = "spaced"
    words: str = "unicode"
    name: str = "similarity"

    kind: ClassVar[str] = "text"
    immediate: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("output", "reference")

    def __post_init__(self) -> None:
        need_choice("Similarity", "mode", self.mode, MODES)
        need_number("Similarity", "threshold", self.threshold, 0, 1)
        need_flag("Similarity", "case_sensitive", self.case_sensitive)
        need_flag("Similarity", "normalize", self.normalize)
        need_choice("Similarity", "list_markers", self.list_markers, ("spaced", "any"))
        need_choice("Similarity", "words", self.words, ("unicode", "ascii"))

    def evaluate(self, row: Mapping[str, Any]) -> Score:
        """The mean over the turns of the row."""
        expected, actual = both(row)
        if all(turn.answer is None for turn in expected):
            return Score(None, "the row has no reference")
        about = {"mode": self.mode, "threshold": self.threshold}
        if len(expected) != len(actual):
            return other_length(expected, actual, about)
        texts = [(e.answer or "", a.answer or "") for e, a in answered(expected, actual)]
        scores = [self.compare(*pair) for pair in texts]
        mean = sum(scores) / len(scores)
        reason = f"{self.mode} {mean:.2f}, threshold {self.threshold:g}"
        if mean < 1 and len(scores) == 1:
            reason += self._difference(*texts[0])
        return Score(mean, reason, passed=mean >= self.threshold, metadata={**about, "turns": scores})

    def compare(self, expected: str, actual: str) -> float:
        """How like `expected` the text `actual` is, from 0 to 1."""
        expected, actual = expected.strip(), actual.strip()
        if not expected or not actual:
            return float(expected == actual)
        expected, actual = self._normalized(expected), self._normalized(actual)
        if self.mode == "exact":
            return float(expected == actual)
        if self.mode == "rouge1":
            return self._rouge1(expected, actual)
        wanted, said = set(expected.split()), set(actual.split())
        whole = wanted | said if self.mode == "jaccard" else wanted
        return len(wanted & said) / len(whole) if whole else float(wanted == said)

    def _rouge1(self, expected: str, actual: str) -> float:
        ascii_only = self.words == "ascii"
        wanted, said = (Counter(rouge_words(text, ascii_only=ascii_only)) for text in (expected, actual))
        shared = (wanted & said).total()
        if not shared:
            return float(not ascii_only and not wanted and expected == actual)
        precision, recall = shared / said.total(), shared / wanted.total()
        return 2 * precision * recall / (precision + recall)

    def _normalized(self, text: str) -> str:
        text = text if self.case_sensitive else text.lower()
        if not self.normalize:
            return text.strip()
        if self.list_markers == "any":
            text = _BULLET.sub("", _NUMBER_MARKER.sub("", text))
        else:
            text = _SPACED_MARKER.sub("", text)
        return " ".join(text.split())

    def _difference(self, expected: str, actual: str) -> str:
        """What is missing and what is too much, as the end of a reason."""
        wanted, said = self._normalized(expected).split(), self._normalized(actual).split()
        parts = [("missing", wanted, said)] + ([("too much", said, wanted)] if self.mode != "recall" else [])
        found = [(name, [w for w in dict.fromkeys(these) if w not in set(those)]) for name, these, those in parts]
        return "".join(f"; {name}: {_few(words)}" for name, words in found if words)


def other_length(expected: list[Turn], actual: list[Turn], about: Mapping[str, Any]) -> Score:
    """The score of a conversation that has not as many turns as it should."""
    counts = {"expected_turns": len(expected), "actual_turns": len(actual)}
    reason = f"the conversation has {len(actual)} turns instead of {len(expected)}"
    return Score(0.0, reason, passed=False, metadata={**about, **counts})


def _few(words: list[str], most: int = 8) -> str:
    shown = " ".join(words[:most])
    return shown if len(words) <= most else f"{shown} and {len(words) - most} more"


@dataclass(frozen=True)
class Contains:
    """Whether the answer has certain terms.

    Parameters
    ----------
    terms : list of str
    require : {"all", "any"}
        With ``all`` the score is the share of the terms that are there.
    case_sensitive : bool
    whole_words : bool
        Whether a term counts only where no letter or digit stands beside it.
    name : str
    """

    terms: tuple[str, ...]
    require: str = "all"
    case_sensitive: bool = False
    whole_words: bool = False
    name: str = "contains"

    kind: ClassVar[str] = "text"
    immediate: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("output",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", need_texts("Contains", "terms", self.terms))
        if not self.terms:
            raise InputError("Contains: terms is empty; give at least one")
        need_choice("Contains", "require", self.require, ("all", "any"))
        need_flag("Contains", "case_sensitive", self.case_sensitive)
        need_flag("Contains", "whole_words", self.whole_words)

    def evaluate(self, row: Mapping[str, Any]) -> Score:
        """Look for every term in what was said."""
        found = _terms_in("\n".join(answers(row)), self)
        missing = [term for term in self.terms if term not in found]
        share = len(found) / len(self.terms)
        score = share if self.require == "all" else float(bool(found))
        reason = f"found: {', '.join(found) or 'none'}" + (f"; missing: {', '.join(missing)}" if missing else "")
        return Score(score, reason, passed=score == 1.0, metadata={"found": found, "missing": missing})


@dataclass(frozen=True)
class Excludes:
    """Whether the answer has none of certain terms: unsafe ones, say.

    Parameters
    ----------
    terms : list of str
        None of them is allowed; an empty list allows everything.
    case_sensitive : bool
    whole_words : bool
        Whether a term counts only where no letter or digit stands beside it: without, "nonviolence"
        has the term "violence".
    name : str
    """

    terms: tuple[str, ...]
    case_sensitive: bool = False
    whole_words: bool = True
    name: str = "excludes"

    kind: ClassVar[str] = "text"
    immediate: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("output",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", need_texts("Excludes", "terms", self.terms))
        need_flag("Excludes", "case_sensitive", self.case_sensitive)
        need_flag("Excludes", "whole_words", self.whole_words)

    def evaluate(self, row: Mapping[str, Any]) -> Score:
        """1 where no term stands in what was said, else 0."""
        found = _terms_in("\n".join(answers(row)), self)
        reason = f"found: {', '.join(found)}" if found else "none of the terms found"
        return Score(float(not found), reason, metadata={"found": found})


def _terms_in(text: str, wanted: Contains | Excludes) -> list[str]:
    flags = 0 if wanted.case_sensitive else re.IGNORECASE
    edges = (r"(?<!\w)", r"(?!\w)") if wanted.whole_words else ("", "")
    return [term for term in wanted.terms if re.search(edges[0] + re.escape(term) + edges[1], text, flags)]


@dataclass(frozen=True)
class Matches:
    """Whether a regular expression is found in the answer.

    Parameters
    ----------
    pattern : str
        As Python's `re` has it.
    whole : bool
        Whether it has to match the whole answer, white space around it aside.
    case_sensitive : bool
    name : str

    Raises
    ------
    InputError
        The pattern cannot be read.
    """

    pattern: str
    whole: bool = False
    case_sensitive: bool = True
    name: str = "matches"

    kind: ClassVar[str] = "text"
    immediate: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("output",)

    def __post_init__(self) -> None:
        need_flag("Matches", "whole", self.whole)
        need_flag("Matches", "case_sensitive", self.case_sensitive)
        try:
            self._compiled()
        except (re.error, TypeError) as error:
            raise InputError(f"Matches: pattern={self.pattern!r} is no regular expression: {error}") from None

    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, 0 if self.case_sensitive else re.IGNORECASE)

    def evaluate(self, row: Mapping[str, Any]) -> Score:
        """1 where the pattern is found, else 0; ``metadata`` has what was found."""
        text, pattern = "\n".join(answers(row)), self._compiled()
        if self.whole:
            found = [match.group()] if (match := pattern.fullmatch(text.strip())) else []
        else:
            found = [match.group() for match in pattern.finditer(text)]
        reason = f"{len(found)} found: {_few(found, 3)}" if found else f"nothing matches {self.pattern!r}"
        return Score(float(bool(found)), reason, metadata={"found": found})


@dataclass(frozen=True)
class Length:
    """Whether every answer is long enough, and not too long.

    Parameters
    ----------
    minimum, maximum : int, int or None
        None sets no upper limit.
    unit : {"characters", "words"}
    name : str

    Notes
    -----
    A length within the limits scores 1; below, its share of `minimum`; above, 1 less the excess as a
    share of `maximum`, at least 0. The row's score is the mean of its answers; it passes where
    all are within the limits.
    """

    minimum: int = 0
    maximum: int | None = None
    unit: str = "characters"
    name: str = "length"

    kind: ClassVar[str] = "text"
    immediate: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("output",)

    def __post_init__(self) -> None:
        need_count("Length", "minimum", self.minimum)
        if self.maximum is not None:
            need_count("Length", "maximum", self.maximum)
            if self.maximum < self.minimum:
                raise InputError(f"Length: maximum={self.maximum} is less than minimum={self.minimum}")
        need_choice("Length", "unit", self.unit, ("characters", "words"))

    def evaluate(self, row: Mapping[str, Any]) -> Score:
        """Measure every answer."""
        lengths = [len(text) if self.unit == "characters" else len(text.split()) for text in answers(row)]
        scores = [self._score(length) for length in lengths]
        mean = sum(scores) / len(scores) if scores else 0.0
        limits = f"{self.minimum} to {'any' if self.maximum is None else self.maximum}"
        reason = f"{', '.join(map(str, lengths))} {self.unit}, allowed {limits}"
        return Score(mean, reason, passed=bool(scores) and min(scores) == 1.0, metadata={"lengths": lengths})

    def _score(self, length: int) -> float:
        if length < self.minimum:
            return length / self.minimum
        if self.maximum is None or length <= self.maximum:
            return 1.0
        return max(0.0, 1.0 - (length - self.maximum) / self.maximum) if self.maximum else 0.0


@dataclass(frozen=True)
class JsonFormat:
    """Whether every answer is JSON, and an object with certain fields.

    Parameters
    ----------
    required : list of str
        Fields that the object has to have. Without any, every JSON value will do.
    name : str

    Notes
    -----
    The answer is JSON and nothing else: no fence, no prose, no NaN. The score is the share of the
    required fields that are there, the mean over the answers.
    """

    required: tuple[str, ...] = ()
    name: str = "json_format"

    kind: ClassVar[str] = "text"
    immediate: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("output",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "required", need_texts("JsonFormat", "required", self.required))

    def evaluate(self, row: Mapping[str, Any]) -> Score:
        """Parse every answer and look for the fields."""
        checked = [self._check(text) for text in answers(row)]
        mean = sum(score for score, _, _ in checked) / len(checked) if checked else 0.0
        bad = [reason for score, reason, _ in checked if score < 1]
        missing = sorted({field for _, _, fields in checked for field in fields})
        reason = "; ".join(dict.fromkeys(bad)) or ("JSON with every required field" if self.required else "JSON")
        return Score(mean, reason, passed=bool(checked) and not bad, metadata={"missing": missing})

    def _check(self, text: str) -> tuple[float, str, list[str]]:
        try:
            value = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            return 0.0, f"not JSON: {error}", []
        if not self.required:
            return 1.0, "", []
        if not isinstance(value, dict):
            return 0.0, f"a JSON {_KINDS.get(type(value), 'value')}, not an object with fields", list(self.required)
        missing = [field for field in self.required if field not in value]
        share = 1.0 - len(missing) / len(self.required)
        return share, f"missing fields: {', '.join(missing)}" if missing else "", missing


_KINDS = {list: "array", str: "text", int: "number", float: "number", bool: "truth value", type(None): "null"}


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON value")
