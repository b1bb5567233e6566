"""The verdict in a judge's free text, for texts that others kept; our own judges answer on a schema."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import InputError

_MARKUP = r"[\s*_`\"'#>-]*"


def read_verdict(text: str | None, key: str, labels: Sequence[str] = ("yes", "no")) -> str | None:
    """The label that a judge's text states behind `key`; None where it states none, never a guess.

    The last line (or JSON member) that begins with the key counts, and where no line does the last
    place that has it; of what stands there, the first words: "no. Although yes, ..." is no, and
    "not yes" is neither. Markup, quotation marks and letter case do not matter. A text that is nothing
    but a label states it.

    Parameters
    ----------
    text : str or None
    key : str
        What stands before the verdict: "correct" for ``correct: yes``, "Status" for ``Status: success``.
    labels : sequence of str

    Returns
    -------
    str or None
        One of `labels`, as it is written there.

    Raises
    ------
    InputError
        `key` is empty, or there are no labels.

    Examples
    --------
    >>> read_verdict("reasoning: it is correct: it matches\\n**correct**: no", "correct")
    'no'
    """
    if not isinstance(key, str) or not key.strip():
        raise InputError(f"read_verdict: key={key!r} should be the word before the verdict")
    if isinstance(labels, str) or not labels:
        raise InputError(
            f"read_verdict: labels={labels!r} should be the verdicts that there may be, such as ('yes', 'no')"
        )
    if not isinstance(text, str):
        return None
    if (whole := _label(text, labels, whole=True)) is not None:
        return whole
    stated = rf"{re.escape(key.strip())}{_MARKUP}[:=]"
    for start in (rf"(?:^|[{{,]){_MARKUP}", r"(?<!\w)"):
        found = list(re.finditer(start + stated, text, re.IGNORECASE | re.MULTILINE))
        if found:
            return _label(text[found[-1].end() :], labels)
    return None


def _label(text: str, labels: Sequence[str], *, whole: bool = False) -> str | None:
    """The label that `text` begins with, or (`whole`) is; words in another script are passed over."""
    letters = "A-Za-z0-9" if all(label.isascii() for label in labels) else r"\w"
    text = " ".join(re.findall(rf"[{letters}]+", text)).casefold()
    for label in sorted(labels, key=len, reverse=True):
        bare = " ".join(re.findall(rf"[{letters}]+", label)).casefold()
        if text == bare or (not whole and text.startswith(f"{bare} ")):
            return label
    return None
