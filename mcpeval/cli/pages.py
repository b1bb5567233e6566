"""``mcpeval report`` and ``mcpeval serve``: pages of what was run, and of what is running."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .options import DEFAULT


def add(commands: Any) -> None:
    command = commands.add_parser("report", help="write runs and scores as one HTML file")
    command.add_argument("files", type=Path, nargs="+", metavar="FILE", help="of runs, scores, or both, in any order")
    command.add_argument("-o", "--out", type=Path, default=Path("report.html"), metavar="FILE", help=DEFAULT)
    command.add_argument("--labels", type=Path, metavar="FILE", help="what people said: a column run_id, one for each")
    command.add_argument("--title", help="default: the names of the agents")
    command.add_argument("--baseline", metavar="AGENT", help="that all others are compared with; default: every pair")
    command.add_argument("--cache", type=Path, metavar="DIR", help="that holds the images; default: as for mcpeval run")
    command.set_defaults(function=_report)
    command = commands.add_parser("serve", help="show a folder in the browser: a running experiment, or its report")
    command.add_argument("folder", type=Path, help="of the cache that is filled, or of files of runs and scores")
    command.add_argument("--port", type=int, default=0, metavar="N", help="default: a free one")
    command.set_defaults(function=_serve)


def _report(arguments: argparse.Namespace) -> None:
    _draw_without_a_screen()
    from ..exporting import read_runs
    from ..html import report
    from ..html.watching import read_frames

    frames = read_frames(arguments.files, "report")
    labels = None if arguments.labels is None else read_runs(arguments.labels)
    about = {"title": arguments.title, "baseline": arguments.baseline, "cache": arguments.cache, "labels": labels}
    path = report(frames.get("scores"), frames.get("runs"), arguments.out, **about)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


def _serve(arguments: argparse.Namespace) -> None:
    _draw_without_a_screen()
    from ..html import serve

    serve(arguments.folder, port=arguments.port)


def _draw_without_a_screen() -> None:
    import matplotlib

    matplotlib.use("agg")
