"""``mcpeval cache``: look at, export and merge the cache."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

from .options import add_actions, add_cache_folder


def add(commands: Any) -> None:
    actions = add_actions(commands, "cache", "look at, export and merge the cache")
    for name, function, text in [
        ("info", _info, "where it is and what it holds"),
        ("export", _export, "write it to one portable JSONL file"),
        ("load", _load, "add the entries of such a file"),
    ]:
        action = actions.add_parser(name, help=text)
        if name != "info":
            action.add_argument("file", type=Path)
        add_cache_folder(action)
        action.set_defaults(function=function)


def _info(arguments: argparse.Namespace) -> None:
    from .. import Cache

    with Cache(arguments.cache, replay=True) as cache:  # a misspelt folder is not made
        kinds = Counter(key.partition(":")[0] for key in cache)
        print(f"{cache.path}: {sum(kinds.values())} entries, {cache.volume() / 1e6:.1f} MB")
        for kind, count in sorted(kinds.items()):
            print(f"  {count} x {kind}")


def _export(arguments: argparse.Namespace) -> None:
    from .. import Cache

    with Cache(arguments.cache, replay=True) as cache:  # a misspelt folder is not made
        print(f"{arguments.file}: {cache.export(arguments.file)} entries of {cache.path}")


def _load(arguments: argparse.Namespace) -> None:
    from .. import Cache

    with Cache(arguments.cache) as cache:
        print(f"{cache.path}: {cache.load(arguments.file)} entries added from {arguments.file}")
