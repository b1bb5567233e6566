"""``mcpeval score``: runs by their tasks' evaluators, or by a judge."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .options import SERVERS, add_cache_folder, add_out, add_replay, saver, servers_of


def add(commands: Any) -> None:
    command = commands.add_parser("score", help="score runs by their tasks' evaluators, or by a judge")
    command.add_argument("runs", type=Path, help="what `mcpeval run` wrote, or any table with a column 'output'")
    command.add_argument("--model", help="judge with this model; default: the tasks' own evaluators, if any")
    command.add_argument("--rubric", help="what the judge is asked")
    command.add_argument("--servers", type=servers_of, metavar="FILE", help=f"that rules may ask: {SERVERS}")
    add_out(command, "scores.csv")
    add_cache_folder(command)
    add_replay(command)
    command.set_defaults(function=_score)


def _score(arguments: argparse.Namespace) -> None:
    from .. import Judge, read_runs, score, summarize

    save = saver(arguments.out)
    runs = read_runs(arguments.runs)
    judge = None
    if arguments.model or arguments.rubric:
        about = {"rubric": arguments.rubric, "model": arguments.model}
        judge = Judge(**{name: value for name, value in about.items() if value})
    scores = score(runs, judge, servers=arguments.servers, cache=arguments.cache, replay=arguments.replay)
    save(scores)
    print(summarize(scores).to_string(index=False))
    print(f"{arguments.out}: {len(scores)} scores of {len(runs)} runs")
