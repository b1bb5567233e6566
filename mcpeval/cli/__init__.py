"""The command ``mcpeval``: each subcommand is one public function with its arguments on a line.

What a user did wrong is one message on stderr and exit code 2, never a traceback.

One module for each family of commands, with its part of the parser beside what it does; what several
of them take is in options.
"""

from __future__ import annotations

import argparse
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from .. import __version__
from ..errors import McpevalError
from . import caches, embedded, pages, runs, scores, servers

#: In the order in which ``mcpeval --help`` shows them.
_FAMILIES = (embedded.add_demo, runs.add, scores.add, pages.add, servers.add, caches.add, embedded.add_local)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        0 done; 1 done, and something that was checked failed; 2 the arguments cannot be used or
        the work could not be done; 130 interrupted.
    """
    arguments = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, _interrupt)  # so that the servers are ended there too
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _say
            return arguments.function(arguments) or 0
    except McpevalError as error:
        print(f"mcpeval: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("mcpeval: interrupted; what was paid for is in the cache", file=sys.stderr)
        return 130


def _say(message: Warning | str, *_: Any) -> None:
    """A warning as one line, without the place in the code that gave it."""
    print(f"mcpeval: {message}", file=sys.stderr)


def _interrupt(signum: int, frame: Any) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mcpeval", description="Measure LLM agents that work over MCP servers.")
    parser.add_argument("--version", action="version", version=f"mcpeval {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in _FAMILIES:
        add(commands)
    return parser
