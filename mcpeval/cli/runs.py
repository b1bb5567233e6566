"""``mcpeval run``: an agent at tasks, a benchmark, or a judge-llm configuration."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .options import SERVERS, add_cache_folder, add_replay, params, refuse, saver, servers_of

if TYPE_CHECKING:
    import pandas as pd

RUNS = Path("runs.parquet")


def add(commands: Any) -> None:
    command = commands.add_parser("run", help="run an agent at tasks, a benchmark, or a judge-llm configuration")
    command.add_argument(
        "tasks", type=Path, help="a .json or .jsonl file, a folder of them, a .yaml benchmark or configuration"
    )
    command.add_argument("--model", help="a LiteLLM model string; default: of the benchmark, $MCPEVAL_MODEL")
    command.add_argument("--strategy", help="basic, tools, react, ...; default: tools, embedded: react")
    command.add_argument("--param", action="append", metavar="NAME=VALUE", help="of the agent or model: temperature=0")
    command.add_argument("--servers", type=servers_of, metavar="FILE", help=f"the MCP servers: {SERVERS}")
    command.add_argument("--permissions", type=Path, metavar="FILE", help="which calls of tools are made, as JSON")
    command.add_argument("--trials", type=int, metavar="N", help="runs of each task; default: 1")
    command.add_argument("--timeout", type=float, metavar="SECONDS", help="time limit of each run")
    command.add_argument("--verbose", action="store_true", help="print what models say and which tools they call")
    command.add_argument("--out", type=Path, metavar="FILE", help=".csv, .parquet; default: runs.parquet")
    add_cache_folder(command)
    add_replay(command)
    command.add_argument("--keep-workdirs", type=Path, metavar="DIR", help="keep the runs' working folders there")
    command.add_argument(
        "--trust",
        action="store_true",
        help="run the code that a configuration names; let prepares and clean-ups of tasks call remote services",
    )
    command.add_argument("--compat", choices=["judge-llm"], help="answer as that package does where ours differ")
    command.set_defaults(function=_run)


def _run(arguments: argparse.Namespace) -> int:
    from ..benchmarks import is_benchmark
    from ..interop.judge_llm import is_config

    if is_benchmark(arguments.tasks):
        return _run_benchmark(arguments)
    return _run_config(arguments) if is_config(arguments.tasks) else _run_tasks(arguments)


def _run_tasks(arguments: argparse.Namespace) -> int:
    from .. import Agent, default_model
    from ..local import is_local

    refuse(arguments, ("compat",), "belongs to a configuration (.yaml), and this is a file of tasks")
    save = saver(arguments.out or RUNS)
    model = arguments.model or default_model()
    usual = "react" if is_local(model) else "tools"  # an embedded model does not call tools itself
    agent = Agent(model, arguments.strategy or usual, **params(arguments.param or ()))
    return _runs(arguments, arguments.tasks, agent, save)


def _run_benchmark(arguments: argparse.Namespace) -> int:
    from .. import read_benchmark

    refuse(arguments, ("compat",), "belongs to a judge-llm configuration, and this is a benchmark")
    refuse(arguments, ("strategy",), "is said in the benchmark itself")
    save = saver(arguments.out or RUNS)
    benchmark = read_benchmark(arguments.tasks, model=arguments.model, **params(arguments.param or ()))
    return _runs(arguments, benchmark.tasks, benchmark.agents, save)


def _runs(arguments: argparse.Namespace, tasks: Any, agents: Any, save: Callable[[pd.DataFrame], Path]) -> int:
    from .. import run
    from ..servers import read_permissions

    runs = run(
        tasks,
        agents,
        trials=1 if arguments.trials is None else arguments.trials,
        servers=arguments.servers,
        permissions=read_permissions(arguments.permissions),
        cache=arguments.cache,
        replay=arguments.replay,
        timeout=arguments.timeout,
        progress="verbose" if arguments.verbose else None,
        trust=arguments.trust,
        keep_workdirs=arguments.keep_workdirs,
    )
    save(runs)
    failed = runs[runs["status"] != "ok"]
    print(f"{arguments.out or RUNS}: {len(runs)} runs, {len(failed)} of them ended with an error")
    for (kind, error), rows in failed.groupby(["error_class", "error"], dropna=False, sort=False):
        print(f"  {len(rows)} x {kind}: {error}")
    return 0


def _run_config(arguments: argparse.Namespace) -> int:
    from ..interop.judge_llm import run_config

    said = ("model", "strategy", "param", "servers", "permissions", "trials")
    refuse(arguments, said, "is said in the configuration itself")
    for_runs = ("keep_workdirs", "timeout", "verbose")
    refuse(arguments, for_runs, "belongs to tasks and benchmarks, and this is a configuration")
    save = saver(arguments.out) if arguments.out else None
    about = {name: getattr(arguments, name) for name in ("trust", "compat", "cache", "replay")}
    done = run_config(arguments.tasks, **about)
    if save:
        save(done.runs)
    return done.exit_code
