"""Too much to be shown: what is longest is cut in the middle, tool results before anything else.

A `Ruler` says what a length is.  `CHARACTERS` counts characters.  `tokens(model)` counts tokens without
any network: with the tokenizer of an OpenAI model where its table is on this machine (LiteLLM brings
it along), with the same table as an approximation for any other model.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

# Tables by the URL whose sha1 is the name of their file; the first stands in where a model's own is not known.
_TABLES = {
    "o200k_base": "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken",
    "cl100k_base": "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken",
}
_CHUNK = 2000  # characters; the tokenizer takes quadratic time for one endless word
_BYTES = 3  # of UTF-8 for a token, where there is no table: more tokens than most texts have, in any script


class Part(NamedTuple):
    """A piece of what is shown; tool results are cut before anything else is."""

    text: str
    is_result: bool = False


@dataclass(frozen=True)
class Ruler:
    """What a text's length is.

    Attributes
    ----------
    name : str
        Of the way of counting: a judge's fingerprint has it.
    unit : str
        In the plural.
    least : int
        Down to which tool results are cut before anything else is.
    length : callable
        ``length(text)`` in units.
    ends : callable
        ``ends(text, first, last)``: so many units of its beginning and of its end.
    """

    name: str
    unit: str
    least: int
    length: Callable[[str], int]
    ends: Callable[[str, int, int], tuple[str, str]]

    def marker(self, cut: int) -> str:
        return f"\n[... {cut} {self.unit} were cut here ...]\n"

    def cut(self, text: str, keep: int) -> str:
        """`text`, or `keep` units of it with a marker in the middle."""
        length = self.length(text)
        if length <= keep:
            return text
        room = max(keep - self.length(self.marker(length)), 0)
        first, last = self.ends(text, room - room // 2, room // 2)
        return first + self.marker(length - room) + last


CHARACTERS = Ruler("characters", "characters", 400, len, lambda text, m, n: (text[:m], text[len(text) - n :]))


@cache
def tokens(model: str) -> Ruler:
    """The ruler for `model`: tokens, counted on this machine alone."""
    name = _table_name(model)
    table = _table(name)
    if table is None:
        return Ruler("bytes/3", "tokens", 100, lambda text: -(-len(text.encode()) // _BYTES), _ends_by_bytes)

    def encoded(text: str) -> list[int]:
        pieces = (text[i : i + _CHUNK] for i in range(0, len(text), _CHUNK))
        return [token for piece in pieces for token in table.encode_ordinary(piece)]

    def ends(text: str, first: int, last: int) -> tuple[str, str]:
        found = encoded(text)
        pair = found[:first], found[len(found) - last :]
        # A token may be half a character.
        return tuple(table.decode_bytes(part).decode("utf-8", "ignore") for part in pair)

    return Ruler(name, "tokens", 100, lambda text: len(encoded(text)), ends)


def _ends_by_bytes(text: str, first: int, last: int) -> tuple[str, str]:
    data = text.encode()
    return data[: first * _BYTES].decode("utf-8", "ignore"), data[len(data) - last * _BYTES :].decode("utf-8", "ignore")


def _table_name(model: str) -> str:
    if find_spec("tiktoken") is None:
        return next(iter(_TABLES))
    from tiktoken.model import encoding_name_for_model

    try:
        name = encoding_name_for_model(model.rpartition("/")[2])
    except KeyError:
        name = ""
    return name if name in _TABLES else next(iter(_TABLES))


@cache
def _table(name: str) -> Any:
    """A tokenizer whose table is on this machine; None where it would have to be fetched."""
    litellm = find_spec("litellm")  # found, not imported: a replay does without
    if litellm is None or find_spec("tiktoken") is None:
        return None
    folder = Path(litellm.submodule_search_locations[0], "litellm_core_utils", "tokenizers")
    folder = Path(os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(folder)))  # as LiteLLM sets it when it is imported
    if not (folder / hashlib.sha1(_TABLES[name].encode(), usedforsecurity=False).hexdigest()).is_file():
        return None
    import tiktoken

    return tiktoken.get_encoding(name)


def shortened(
    shown: Mapping[str, Sequence[Part]], limit: int, ruler: Ruler = CHARACTERS
) -> tuple[dict[str, list[Part]], tuple[str, ...]]:
    """What is shown, the longest cut in the middle so that all keeps to `limit`.

    Tool results are cut first, down to `ruler.least` each; where that is not enough, everything is cut
    to one common length.

    Returns
    -------
    shown : dict of list of Part
    cut : tuple of str
        Names of those that were cut.
    """
    pieces = {name: list(parts) for name, parts in shown.items()}
    for results_only in (True, False):
        lengths = {name: [ruler.length(part.text) for part in parts] for name, parts in pieces.items()}
        total = sum(map(sum, lengths.values()))
        if total <= limit:
            break
        open_to_cuts = [
            length
            for name, parts in pieces.items()
            for part, length in zip(parts, lengths[name])
            if part.is_result or not results_only
        ]
        level = _level(sorted(open_to_cuts), limit - (total - sum(open_to_cuts)))
        keep = max(level, ruler.least if results_only else 0)
        pieces = {
            name: [p._replace(text=ruler.cut(p.text, keep)) if p.is_result or not results_only else p for p in parts]
            for name, parts in pieces.items()
        }
    return pieces, tuple(name for name in pieces if pieces[name] != list(shown[name]))


def _level(lengths: Sequence[int], room: int) -> int:
    """The length L, for lengths in ascending order, at which the sum of min(length, L) fills `room`."""
    for i, length in enumerate(lengths):
        share = max(room, 0) // (len(lengths) - i)
        if length > share:
            return share
        room -= length
    return lengths[-1] if lengths else 0
