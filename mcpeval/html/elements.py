"""HTML by construction: a text is escaped wherever it stands, and an element is only made here."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from html import escape
from typing import Any

from ..frames import clean_text

_VOID = ("img", "input", "meta")
# What a reader would not see, or what would move the text around it: all that Unicode calls a control or format
# character, but for tabs, line ends, and the joiners that emoji and some scripts are written with.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)


#: Lines of a table that are seen at once; of more it is said how many there are.
_SEEN = 12


class Html(str):
    """A text that is HTML already."""

    __slots__ = ()


def plain(text: Any) -> str:
    """`text` with hidden characters as ``[U+202E]``, for where only text may stand; not escaped."""
    return _HIDDEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", clean_text(str(text)))


def shown(text: Any) -> Html:
    """`text` escaped, its hidden characters in boxes with their names.

    Examples
    --------
    >>> shown("</script>")
    '&lt;/script&gt;'
    """
    text = escape(str(text), quote=True)
    return Html(text if text.isprintable() else _HIDDEN.sub(_boxed, clean_text(text)))


def _boxed(found: re.Match[str]) -> str:
    name = unicodedata.name(found[0], "control character").lower()
    return f'<span class="hidden-character" title="{escape(name)}">U+{ord(found[0]):04X}</span>'


def join(*inside: Any) -> Html:
    """What stands one after the other: HTML as it is, texts escaped, None nowhere, lists opened."""
    return Html("".join(_each(inside)))


def _each(inside: Iterable[Any]) -> Iterable[str]:
    for one in inside:
        if type(one) is Html:
            yield one
        elif one is None:
            continue
        elif type(one) is str:
            yield shown(one)
        elif isinstance(one, Iterable) and not isinstance(one, str):
            yield from _each(one)
        else:
            yield shown(one)


def element(name: str, /, *inside: Any, **attributes: Any) -> Html:
    """An element.

    Parameters
    ----------
    name : str
    *inside
        As in `join`.
    **attributes
        ``cls`` is ``class``, an underscore a hyphen; True stands without a value, None and False not at
        all. Style is not among them: the pages' policy refuses it.

    Examples
    --------
    >>> element("p", "1 < 2", cls="note", hidden=True)
    '<p class="note" hidden>1 &lt; 2</p>'
    """
    head = _head(name, *attributes.items()) if attributes else f"<{name}>"
    return Html(head if name in _VOID else f"{head}{''.join(_each(inside))}</{name}>")


@lru_cache(maxsize=4096)  # the same few stand around all that is shown
def _head(name: str, *attributes: tuple[str, Any]) -> str:
    told = [f"<{name}"]
    for key, value in attributes:
        if value is not None and value is not False:
            key = "class" if key == "cls" else key.replace("_", "-")
            told.append(key if value is True else f'{key}="{escape(plain(value), quote=True)}"')
    return " ".join(told) + ">"


def block(text: Any, cls: str = "text") -> Html:
    """A text as it is, line ends and spaces kept, each in the direction in which it is written."""
    # The first line end within <pre> is no part of it.
    return element("pre", "\n" if str(text).startswith("\n") else None, text, cls=cls, dir="auto")


def folded(summary: Any, *inside: Any, open: bool = False, cls: str | None = None) -> Html:
    """What is shown when its `summary` is clicked."""
    return element("details", element("summary", summary), *inside, open=open, cls=cls)


def table(headings: Iterable[Any], rows: Iterable[Iterable[Any]], *, numbers: Iterable[int] = ()) -> Html:
    """A table that scrolls by itself where it is wide or long; columns `numbers` stand to the right."""
    right, rows = set(numbers), list(rows)

    def line(name: str, cells: Iterable[Any]) -> Html:
        own = [element(name, cell, cls="number" if i in right else None) for i, cell in enumerate(cells)]
        return element("tr", own)

    head = element("thead", line("th", headings))
    whole = element("table", head, element("tbody", [line("td", row) for row in rows]))
    told = element("p", f"{len(rows):,} lines", cls="quiet") if len(rows) > _SEEN else None
    return join(element("div", whole, cls="scroll", tabindex="0"), told)
