"""The folders that come with the package: ``data`` and ``notebooks``."""

from __future__ import annotations

from pathlib import Path

from .errors import InputError

HERE = Path(__file__).resolve().parent


def shipped(name: str) -> Path:
    """The folder `name` of an installed package, or of the repository."""
    for place in (HERE / name, HERE.parent / name):
        if place.is_dir():
            return place
    raise InputError(f"mcpeval's folder {name!r} is neither in {HERE} nor beside it; install mcpeval again")
