"""``mcpeval demo`` and ``mcpeval local``: what works without a key and without a network."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .options import DEFAULT, add_actions


def add_demo(commands: Any) -> None:
    command = commands.add_parser("demo", help="small tasks, real MCP servers, the embedded model: no key, no network")
    command.add_argument("--out", type=Path, default=Path("demo-output"), metavar="DIR", help=DEFAULT)
    command.add_argument("--trials", type=int, default=2, metavar="N", help=f"runs of each task; {DEFAULT}")
    command.set_defaults(function=_demo)


def add_local(commands: Any) -> None:
    install = add_actions(commands, "local", "the embedded model").add_parser(
        "install", help="install its weights, and say where they are"
    )
    install.set_defaults(function=_install)


def _demo(arguments: argparse.Namespace) -> None:
    from ..demo import demo

    demo(arguments.out, trials=arguments.trials)


def _install(arguments: argparse.Namespace) -> None:
    from .. import local

    print(f"{local.SMOLLM2}: {local.install()}")
