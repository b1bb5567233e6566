"""The page around what is shown: one file, its own style, a policy that lets nothing in or out."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from ..errors import FileError
from ..exporting.places import path_of, replacing
from .elements import Html, element, join, plain


@dataclass(frozen=True)
class Page:
    """A page of HTML that needs nothing else: no network, no font, no script of others.

    ``str(page)`` is its text. A notebook shows it in a frame of its own, in which nothing can run.

    Attributes
    ----------
    title : str
    html : str
        The whole document.
    """

    title: str
    html: str = field(repr=False)

    def __str__(self) -> str:
        return self.html

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file; one that is there is replaced.

        Raises
        ------
        FileError
            There is no such folder, or it cannot be written to.
        """
        target = page_path(path, "save")
        with replacing(target) as file:
            file.write_text(self.html, "utf-8", newline="\n")
        return target

    def _repr_html_(self) -> str:
        look = "width: 100%; height: 40rem; border: 0; resize: vertical"
        return f'<iframe sandbox title="{escape(self.title)}" style="{look}" srcdoc="{escape(self.html)}"></iframe>'


def page_path(path: Any, caller: str) -> Path:
    """The path of a page to be; `FileError` where it cannot be one."""
    target = path_of(path, caller)
    if os.path.isdir(target):
        raise FileError("is a folder; expected the path of a file", target)
    if not os.path.isdir(target.parent):
        raise FileError(f"there is no folder {target.parent}", target)
    return target


def page(title: str, *body: Any, scripts: Sequence[str] = (), connects: bool = False) -> Page:
    """The page of `body`.

    Parameters
    ----------
    title : str
    *body
        As in `element`.
    scripts : sequence of str
        Files of this package, which run in their order; without them nothing runs.
    connects : bool
        Whether they may ask the server that the page came from.
    """
    style, title = shipped("page.css"), plain(title)  # a browser's tab has no boxes for hidden characters
    codes = [shipped(name) for name in scripts]
    allowed = " ".join(map(_hash, codes)) or "'none'"
    policy = [
        "default-src 'none'",
        f"style-src {_hash(style)}",
        f"script-src {allowed}",
        "img-src data:",
        "connect-src 'self'" if connects else "connect-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    head = join(
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content="; ".join(policy)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        Html(f"<style>{style}</style>"),
    )
    run = [Html(f"<script>{code}</script>") for code in codes]
    html = element("html", element("head", head), "\n", element("body", *body, run), lang="en")
    return Page(title, f"<!doctype html>\n{html}\n")


def _hash(text: str) -> str:
    """What names an inline style or script in a policy: the page's own run, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def shipped(name: str) -> str:
    """A file of this package: a style or a script."""
    return resources.files(__package__).joinpath(name).read_text("utf-8").replace("\r\n", "\n")
