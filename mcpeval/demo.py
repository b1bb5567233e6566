"""The demo: small tasks over three real MCP servers, for the embedded model; no key, no network.

Its pieces (`load_tasks`, `load_servers`) are what the first notebooks start from, and `paper_folder` holds
the experiment of the one about papers.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from . import exporting, local, plots
from ._shipped import HERE, shipped
from .agents import Agent
from .errors import InputError
from .evaluators import Judge
from .reports import summarize
from .running import run
from .scoring import score
from .servers import Server, read_servers
from .tasks import read_tasks
from .types import Task

NOTEBOOK = "01_quickstart.ipynb"
_SHOWN = ["agent", "evaluator", "score", "low", "high", "n", "tasks", "unscored", "cost_usd"]
_INSTALL = """In a clone of mcpeval `make demo` installs whatever is missing. Elsewhere:
  pip install 'mcpeval[demo]'
  mcpeval local install
  npm install --prefix .node @modelcontextprotocol/server-filesystem @modelcontextprotocol/server-memory"""


def load_tasks() -> list[Task]:
    """The demo's tasks: each needs one call of one tool, and offers that tool alone."""
    return read_tasks(shipped("data") / "tasks")


def load_servers(folder: str | os.PathLike) -> dict[str, Server]:
    """The demo's MCP servers, over a copy of its files in `folder`.

    Parameters
    ----------
    folder : path
        Where the files are copied to; made where it is missing.

    Returns
    -------
    dict of str to Server
        ``filesystem`` and ``memory`` (npm), ``time`` (PyPI).

    Raises
    ------
    InputError
        A server's command is not installed (the message says how to), or `folder` cannot be written to.
    """
    data, path = shipped("data"), _search_path()
    for name in ("filesystem", "memory", "time"):
        if not shutil.which(f"mcp-server-{name}", path=path):
            raise InputError(f"the demo's MCP server {name!r} is not installed. {_INSTALL}")
    folder = Path(folder).resolve()
    try:
        shutil.copytree(data / "files", folder, dirs_exist_ok=True)
    except OSError as error:
        raise InputError(f"the demo's files cannot be copied to {folder}: {error}") from error
    return read_servers(data / "demo-servers.json", env={"FILES": str(folder), "SERVERS_PATH": path})


def paper_folder() -> Path:
    """The folder of a small experiment that is finished, as a paper would publish it.

    ``tasks.jsonl`` has its tasks, and ``cache.jsonl`` (`mcpeval.Cache.load`) its runs; the notebook
    ``06_from_scores_to_a_paper`` has its agents and makes its tables.
    """
    return shipped("data") / "paper"


def demo(out: str | os.PathLike = "demo-output", *, trials: int = 2) -> pd.DataFrame:
    """Run two agents at the demo's tasks, score what they did, and write everything to `out`.

    Parameters
    ----------
    out : path
        The folder for ``runs.parquet``, ``scores.csv`` with its manifest, ``success.png``, the
        executed notebook, and the servers' files.
    trials : int
        Runs of each task.

    Returns
    -------
    DataFrame
        The summary that is printed.
    """
    if find_spec("pyarrow") is None:
        raise InputError(f"the demo writes a Parquet file, and pyarrow is not installed. {_INSTALL}")
    out = Path(out)
    tasks, servers = load_tasks(), load_servers(out / "files")
    model = local.SMOLLM2
    agents = [
        Agent(model, "basic", name="basic", system="Answer in a few words.", temperature=0.3, max_tokens=100),
        # Free to answer at once this model makes a result up; it is made to call a tool first.
        Agent(model, "react", name="react", min_tool_calls=1, max_turns=2, temperature=0.3, max_tokens=240),
    ]
    judge = Judge(model=model, name="judge", max_reason=80)
    print(f"{len(tasks)} tasks, {len(servers)} MCP servers, {len(agents)} agents on {model}, {trials} trials")
    began = time.perf_counter()
    runs = run(tasks, agents, trials=trials, servers=servers)
    scores = score(runs.assign(evaluators=[[*rules, judge] for rules in runs["evaluators"]])).reset_index(drop=True)
    verdicts = scores[scores["kind"] == judge.kind]
    took, asked = time.perf_counter() - began, int((~runs["cached"]).sum() + (~verdicts["cached"]).sum())
    summary = summarize(scores)
    print(f"\n{summary[_SHOWN].round(3).to_string(index=False)}\n")
    print(f"{len(runs)} runs and {len(scores)} scores in {took:.0f} s; {asked} of them asked the model.")
    print(f"{model} has 135M parameters: this shows that everything runs, and says nothing about quality.\n")
    _write(out, runs, scores)
    return summary


def _write(out: Path, runs: pd.DataFrame, scores: pd.DataFrame) -> None:
    out.mkdir(parents=True, exist_ok=True)
    exporting.to_parquet(runs, out / "runs.parquet")
    exporting.to_csv(scores, out / "scores.csv")
    plots.success(scores).figure.savefig(out / "success.png", dpi=200, bbox_inches="tight")
    written = {
        "runs.parquet": "every run: the answer, all messages, all tool calls",
        "scores.csv": "every score with its reason; scores.csv.meta.json says how they came about",
        "success.png": "the figure",
    }
    if _execute(shipped("notebooks") / NOTEBOOK, out / NOTEBOOK):
        written[NOTEBOOK] = "the same in a notebook, executed"
    for name, about in written.items():
        print(f"{out / name}  {about}")


def _execute(notebook: Path, target: Path) -> bool:
    """Execute `notebook` in a kernel of its own and write it to `target`; False where there is no Jupyter."""
    try:
        import ipykernel  # noqa: F401  (the kernel)
        import nbclient
        import nbformat
    except ImportError:
        return False
    cells = nbformat.read(notebook, as_version=4)
    quiet = ["--IPKernelApp.log_level=ERROR"]  # it would warn that messages on loopback are not encrypted
    nbclient.NotebookClient(cells, timeout=600, extra_arguments=quiet).execute()
    nbformat.write(cells, target)
    return True


def _search_path() -> str:
    """PATH, with the places before it where `make` and pip put the servers."""
    node = [base / ".node" for base in (Path.cwd(), HERE.parent)]
    first = [folder for base in node for folder in (base / "node_modules" / ".bin", base / "bin")]
    return os.pathsep.join([*map(str, [*first, Path(sys.executable).parent]), os.environ.get("PATH", "")])
