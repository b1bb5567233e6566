"""The command ``mcpeval``: each subcommand is one public function with its arguments on a line.

What a user did wrong is one message on stderr and exit code 2, never a traceback.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import __version__
from .errors import InputError, McpevalError

if TYPE_CHECKING:
    import pandas as pd

RUNS = Path("runs.parquet")
_DEFAULT = "default: %(default)s"
_CACHE = "default: $MCPEVAL_CACHE, else the user's cache folder"


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
    _add_demo(commands)
    _add_run(commands)
    _add_score(commands)
    _add_servers(commands)
    _add_cache(commands)
    _add_local(commands)
    return parser


def _add_demo(commands: Any) -> None:
    command = commands.add_parser("demo", help="small tasks, real MCP servers, the embedded model: no key, no network")
    command.add_argument("--out", type=Path, default=Path("demo-output"), metavar="DIR", help=_DEFAULT)
    command.add_argument("--trials", type=int, default=2, metavar="N", help=f"runs of each task; {_DEFAULT}")
    command.set_defaults(function=_demo)


def _add_run(commands: Any) -> None:
    command = commands.add_parser("run", help="run an agent at tasks, a benchmark, or a judge-llm configuration")
    command.add_argument(
        "tasks", type=Path, help="a .json or .jsonl file, a folder of them, a .yaml benchmark or configuration"
    )
    command.add_argument("--model", help="a LiteLLM model string; default: of the benchmark, $MCPEVAL_MODEL")
    command.add_argument("--strategy", help="basic, tools, react, ...; default: tools, embedded: react")
    command.add_argument("--param", action="append", metavar="NAME=VALUE", help="of the agent or model: temperature=0")
    command.add_argument("--servers", type=Path, metavar="FILE", help="the MCP servers, as JSON")
    command.add_argument("--trials", type=int, metavar="N", help="runs of each task; default: 1")
    command.add_argument("--out", type=Path, metavar="FILE", help=".csv, .parquet; default: runs.parquet")
    _add_cache_folder(command)
    command.add_argument("--replay", action="store_true", help="answer from the cache alone")
    command.add_argument("--trust", action="store_true", help="run the code that a configuration names")
    command.add_argument("--compat", choices=["judge-llm"], help="answer as that package does where ours differ")
    command.set_defaults(function=_run)


def _add_score(commands: Any) -> None:
    command = commands.add_parser("score", help="score runs by their tasks' evaluators, or by a judge")
    command.add_argument("runs", type=Path, help="what `mcpeval run` wrote, or any table with a column 'output'")
    command.add_argument("--model", help="judge with this model; default: the tasks' own evaluators, if any")
    command.add_argument("--rubric", help="what the judge is asked")
    command.add_argument("--servers", type=Path, metavar="FILE", help="the MCP servers that rules may ask, as JSON")
    _add_out(command, "scores.csv")
    _add_cache_folder(command)
    command.add_argument("--replay", action="store_true", help="answer from the cache alone")
    command.set_defaults(function=_score)


def _add_servers(commands: Any) -> None:
    check = _actions(commands, "servers", "look at MCP servers").add_parser(
        "check", help="start each server of a file, list its tools, time a ping, say what failed and why"
    )
    check.add_argument("file", type=Path)
    check.set_defaults(function=_servers_check)


def _add_cache(commands: Any) -> None:
    actions = _actions(commands, "cache", "look at, export and merge the cache")
    for name, function, text in [
        ("info", _cache_info, "where it is and what it holds"),
        ("export", _cache_export, "write it to one portable JSONL file"),
        ("load", _cache_load, "add the entries of such a file"),
    ]:
        action = actions.add_parser(name, help=text)
        if name != "info":
            action.add_argument("file", type=Path)
        _add_cache_folder(action)
        action.set_defaults(function=function)


def _add_local(commands: Any) -> None:
    install = _actions(commands, "local", "the embedded model").add_parser(
        "install", help="install its weights, and say where they are"
    )
    install.set_defaults(function=_local_install)


def _actions(commands: Any, name: str, text: str) -> Any:
    return commands.add_parser(name, help=text).add_subparsers(required=True, metavar="ACTION")


def _add_out(command: argparse.ArgumentParser, default: str) -> None:
    command.add_argument("--out", type=Path, default=Path(default), metavar="FILE", help=f".csv, .parquet; {_DEFAULT}")


def _add_cache_folder(command: argparse.ArgumentParser) -> None:
    command.add_argument("--cache", type=Path, metavar="DIR", help=_CACHE)


def _demo(arguments: argparse.Namespace) -> None:
    from .demo import demo

    demo(arguments.out, trials=arguments.trials)


def _run(arguments: argparse.Namespace) -> int:
    from .benchmarks import is_benchmark
    from .interop.judge_llm import is_config

    if is_benchmark(arguments.tasks):
        return _run_benchmark(arguments)
    return _run_config(arguments) if is_config(arguments.tasks) else _run_tasks(arguments)


def _run_tasks(arguments: argparse.Namespace) -> int:
    from . import Agent, default_model
    from .local import is_local

    _refuse(arguments, ("trust", "compat"), "belongs to a configuration (.yaml), and this is a file of tasks")
    save = _saver(arguments.out or RUNS)
    model = arguments.model or default_model()
    usual = "react" if is_local(model) else "tools"  # an embedded model does not call tools itself
    agent = Agent(model, arguments.strategy or usual, **_params(arguments.param or ()))
    return _runs(arguments, arguments.tasks, agent, save)


def _run_benchmark(arguments: argparse.Namespace) -> int:
    from . import read_benchmark

    _refuse(arguments, ("trust", "compat"), "belongs to a judge-llm configuration, and this is a benchmark")
    _refuse(arguments, ("strategy",), "is said in the benchmark itself")
    save = _saver(arguments.out or RUNS)
    benchmark = read_benchmark(arguments.tasks, model=arguments.model, **_params(arguments.param or ()))
    return _runs(arguments, benchmark.tasks, benchmark.agents, save)


def _runs(arguments: argparse.Namespace, tasks: Any, agents: Any, save: Callable[[pd.DataFrame], Path]) -> int:
    from . import run

    runs = run(
        tasks,
        agents,
        trials=1 if arguments.trials is None else arguments.trials,
        servers=arguments.servers,
        cache=arguments.cache,
        replay=arguments.replay,
    )
    save(runs)
    failed = runs[runs["status"] != "ok"]
    print(f"{arguments.out or RUNS}: {len(runs)} runs, {len(failed)} of them ended with an error")
    for (kind, error), rows in failed.groupby(["error_class", "error"], dropna=False, sort=False):
        print(f"  {len(rows)} x {kind}: {error}")
    return 0


def _run_config(arguments: argparse.Namespace) -> int:
    from .interop.judge_llm import run_config

    _refuse(arguments, ("model", "strategy", "param", "servers", "trials"), "is said in the configuration itself")
    save = _saver(arguments.out) if arguments.out else None
    about = {name: getattr(arguments, name) for name in ("trust", "compat", "cache", "replay")}
    done = run_config(arguments.tasks, **about)
    if save:
        save(done.runs)
    return done.exit_code


def _refuse(arguments: argparse.Namespace, names: Sequence[str], why: str) -> None:
    for name in names:
        if getattr(arguments, name):
            raise InputError(f"--{name} {why} ({arguments.tasks})")


def _params(given: Sequence[str]) -> dict[str, Any]:
    """Parameters of a model from ``name=value``; a value that is JSON is that, any other a text."""
    params = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise InputError(f"--param {text!r} should be NAME=VALUE, such as temperature=0")
        try:
            params[name] = json.loads(value)
        except ValueError:
            params[name] = value
    return params


def _score(arguments: argparse.Namespace) -> None:
    from . import Judge, read_runs, score, summarize

    save = _saver(arguments.out)
    runs = read_runs(arguments.runs)
    judge = None
    if arguments.model or arguments.rubric:
        about = {"rubric": arguments.rubric, "model": arguments.model}
        judge = Judge(**{name: value for name, value in about.items() if value})
    scores = score(runs, judge, servers=arguments.servers, cache=arguments.cache, replay=arguments.replay)
    save(scores)
    print(summarize(scores).to_string(index=False))
    print(f"{arguments.out}: {len(scores)} scores of {len(runs)} runs")


def _saver(path: Path) -> Callable[[pd.DataFrame], Path]:
    """What writes a frame to `path`; whatever is wrong with the path is said before the work."""
    from .exporting import to_csv, to_parquet

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


def _servers_check(arguments: argparse.Namespace) -> int:
    from .servers import check_servers

    rows = check_servers(arguments.file)
    if not rows:
        print(f"{arguments.file}: names no server")
    for row in rows:
        if row["ok"]:
            info = row["server_info"] or {}
            who = " ".join(filter(None, [info.get("name"), info.get("version")]))
            times = f"started in {row['connect_seconds']:.2f} s, ping {1000 * row['ping_seconds']:.1f} ms"
            print(f"{row['name']}: ok ({row['transport']}, {who}), {times}, {len(row['tools'])} tools")
            print(f"  {', '.join(row['tools'])}")
        else:
            print(f"{row['name']}: FAILED ({row['transport']}, {row['command']})")
            print("\n".join(f"  {line}" for line in str(row["error"]).splitlines()))
    return 0 if all(row["ok"] for row in rows) else 1


def _cache_info(arguments: argparse.Namespace) -> None:
    from . import Cache

    with Cache(arguments.cache, replay=True) as cache:  # a misspelt folder is not made
        kinds = Counter(key.partition(":")[0] for key in cache)
        print(f"{cache.path}: {sum(kinds.values())} entries, {cache.volume() / 1e6:.1f} MB")
        for kind, count in sorted(kinds.items()):
            print(f"  {count} x {kind}")


def _cache_export(arguments: argparse.Namespace) -> None:
    from . import Cache

    with Cache(arguments.cache, replay=True) as cache:  # a misspelt folder is not made
        print(f"{arguments.file}: {cache.export(arguments.file)} entries of {cache.path}")


def _cache_load(arguments: argparse.Namespace) -> None:
    from . import Cache

    with Cache(arguments.cache) as cache:
        print(f"{cache.path}: {cache.load(arguments.file)} entries added from {arguments.file}")


def _local_install(arguments: argparse.Namespace) -> None:
    from . import local

    print(f"{local.SMOLLM2}: {local.install()}")
