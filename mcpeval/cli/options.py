"""What several commands take: where results are written, which cache, parameters by name."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError

if TYPE_CHECKING:
    import pandas as pd

DEFAULT = "default: %(default)s"
SERVERS = "a JSON file, or names of the catalogue: time,git"
_CACHE = "default: $MCPEVAL_CACHE, else the user's cache folder"


def add_actions(commands: Any, name: str, text: str) -> Any:
    """A command that has actions of its own: ``mcpeval NAME ACTION``."""
    return commands.add_parser(name, help=text).add_subparsers(required=True, metavar="ACTION")


def add_out(command: argparse.ArgumentParser, default: str) -> None:
    command.add_argument("--out", type=Path, default=Path(default), metavar="FILE", help=f".csv, .parquet; {DEFAULT}")


def add_cache_folder(command: argparse.ArgumentParser) -> None:
    command.add_argument("--cache", type=Path, metavar="DIR", help=_CACHE)


def add_replay(command: argparse.ArgumentParser) -> None:
    command.add_argument("--replay", action="store_true", help="answer from the cache alone")


def servers_of(given: str) -> Any:
    """What ``--servers`` means: the path of a file, or names of the catalogue with commas between them."""
    # A folder of the name of a server, such as git, is no file of servers.
    named = Path(given).suffix or os.path.isfile(given) or os.sep in given
    return Path(given) if named else [name.strip() for name in given.split(",")]


def refuse(arguments: argparse.Namespace, names: Sequence[str], why: str) -> None:
    """Say that an option cannot be given here.

    Raises
    ------
    InputError
    """
    for name in names:
        if getattr(arguments, name):
            raise InputError(f"--{name} {why} ({arguments.tasks})")


def params(given: Sequence[str]) -> dict[str, Any]:
    """Parameters of a model from ``name=value``; a value that is JSON is that, any other a text."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise InputError(f"--param {text!r} should be NAME=VALUE, such as temperature=0")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def saver(path: Path) -> Callable[[pd.DataFrame], Path]:
    """What writes a frame to `path`; whatever is wrong with the path is said before the work."""
    from ..exporting import to_csv, to_parquet

    savers = {".csv": to_csv, ".parquet": to_parquet}
    if path.suffix not in savers:
        raise InputError(f"--out {path}: the name should end in .csv or .parquet")
    if not path.parent.is_dir():
        raise InputError(f"--out {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise InputError(f"--out {path}: is a folder; expected the name of a file")
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise InputError(f"--out {path}: Parquet needs pyarrow (pip install 'mcpeval[parquet]'); a .csv does not")
    return lambda frame: savers[path.suffix](frame, path)
