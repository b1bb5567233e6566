"""The notebooks in a real kernel: from start to end without a network, and with an interrupt in the middle."""

import ast
import importlib
import sys
import time
from pathlib import Path

import nbclient
import nbformat
import pytest
from jupyter_client.manager import start_new_kernel

import mcpeval
from mcpeval import Cache

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

# What a notebook may import, beside the standard library.
MODULES = ("mcpeval", "pandas", "numpy", "matplotlib", "seaborn", "mcp")

# What has to be seen when a notebook was executed.
SHOWN = {
    "01_quickstart": ("from the cache: 16 of 16", "the same answers: True"),
    "02_agents_over_mcp": (
        *("run_started", "tool_answered", "run_ended"),
        '<iframe sandbox title="files_password · chain"',  # a transcript
        *("server 'memory' did not start", "no licence key found", "ZeroDivisionError: division by zero"),
        *("turn_limit", "bad_json", "the run was not over within timeout=2 s"),
        *("Permission denied: 'write_file' of 'filesystem'", "The password is bluebird. | "),
        *("share=False: 4 runs, 4 processes", "share=True: 4 runs, 1 processes"),
    ),
    "03_judges": (
        *("CODE is ", "&lt;/output>", "cannot tell", "groundedness", "openai/gpt-4.1-mini", "own_answer"),
        *("mode_share", "mass", "first_position", "jury.weighed", "decided_by", "unparsed"),
    ),
    "04_judge_ablation": (
        *("4 cells, 40 scores", "[rubric=long, reference=shown]", "kappa_low", "p_adjusted", "detectable"),
        *("verdicts-json:", "cached_calls", "flipped_up"),
    ),
    "05_is_the_judge_right": (
        *("labels-only", "ppi++", "ess_ceiling", "refused: sensitivity + specificity - 1 may be 0"),
        *("human_agreement", "mean verdict less mean label of house", "needs the frame of probe()"),
    ),
    "06_from_scores_to_a_paper": (
        *("240 runs, 240 from the cache", "is not in the cache"),
        *("\\toprule", "\\label{tab:capitals}", "| agent |", "report.html", "summary.xlsx", '"mcpeval": "'),
    ),
    "07_published_numbers": ("200 runs, of which 84 succeeded", "pass_hat_k"),
    "08_your_own": (
        *("[catalogue, shelf_of]", '{"shelf": "B2"}', "voter 3", "found in a result"),
        *("unknown step 'flor'. Did you mean 'floor'?", "helpful", "thrifty"),
        *("told 'Error executing tool shelf_of'", "1 failed, 1 passed"),
    ),
}

# In the kernel, before the first cell: whoever leaves this machine is stopped.
NO_NETWORK = """
import socket
def connect_here(self, address, connect=socket.socket.connect):
    if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise OSError(f"this notebook should need no network, and asked for {address}")
    return connect(self, address)
socket.socket.connect = connect_here
"""


def cells_of(path):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path):
    assert path in NOTEBOOKS
    for cell in cells_of(path):
        assert cell.outputs == []
        assert cell.execution_count is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_uses_nothing_but_public_names_and_what_mcpeval_brings_along(path):
    for cell in cells_of(path):
        for node in ast.walk(ast.parse(cell.source)):
            for name in names_used(node):
                assert not name.startswith("_") or name == "_" or name.endswith("__"), f"{name}, in:\n{cell.source}"
            for module, name in imported(node):
                top = module.partition(".")[0]
                assert top in MODULES or top in sys.stdlib_module_names, f"{module}, in:\n{cell.source}"
                assert not any(part.startswith("_") for part in module.split(".")), module
                if top == "mcpeval" and name is not None:
                    public = getattr(importlib.import_module(module), "__all__", None)
                    assert public is None or name in public, f"{module} has no public {name}"
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "mcpeval":
                assert node.attr in mcpeval.__all__, f"mcpeval.{node.attr} is not public"


def names_used(node):
    """The names that a piece of code reads, writes or defines."""
    names = (getattr(node, field, None) for field in ("id", "attr", "name", "asname", "arg"))
    return [name for name in names if isinstance(name, str)]


def imported(node):
    """(module, name) of what is imported; None for the module itself."""
    if isinstance(node, ast.Import):
        return [(alias.name, None) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [(node.module, alias.name) for alias in node.names]
    return []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_start_to_end_without_a_network_and_shows_what_it_promises(path, node_bin, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(NO_NETWORK))
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]
    for line in "".join(o.text for o in outputs if o.get("name") == "stderr").replace("\r", "\n").splitlines():
        assert not line.strip() or line.startswith(("run: ", "score: ")), line  # nothing but progress
    text = "\n".join(map(text_of, outputs))
    for expected in SHOWN[path.stem]:
        assert expected in text, expected
    drawn = [cell for cell in cells if "plots." in cell.source or "sns." in cell.source]
    assert drawn
    for cell in drawn:
        assert any("image/png" in output.get("data", {}) for output in cell.outputs), cell.source
    assert not list(tmp_path.iterdir())  # nothing is left beside the notebook


def text_of(output):
    """What a cell printed, or the value that it ended with, as it is shown."""
    if output.output_type == "stream":
        return output.text if output.name == "stdout" else ""
    data = output.get("data", {})
    return "\n".join(str(data.get(kind, "")) for kind in ("text/plain", "text/html"))


class Kernel:
    """A kernel that is given cells one by one."""

    def __init__(self, folder):
        self.manager, self.client = start_new_kernel(cwd=str(folder))

    def start(self, source):
        return self.client.execute(source)

    def reply(self, request):
        while (answer := self.client.get_shell_msg(timeout=300))["parent_header"]["msg_id"] != request:
            pass
        return answer["content"]

    def run(self, source):
        content = self.reply(self.start(source))
        assert content["status"] == "ok", content
        return content

    def value(self, expression):
        request = self.client.execute("", user_expressions={"value": expression})
        return self.reply(request)["user_expressions"]["value"]["data"]["text/plain"]

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel(tmp_path):
    kernel = Kernel(tmp_path)
    yield kernel
    kernel.close()


def test_after_an_interrupt_the_kernel_is_usable_and_the_partial_work_is_kept(node_bin, tmp_path, monkeypatch, kernel):
    cache = tmp_path / "cache"
    kernel.run(f"import os; os.environ['MCPEVAL_CACHE'] = {str(cache)!r}")
    before, after, running = [], [], None
    for cell in cells_of(FOLDER / "01_quickstart.ipynb"):
        if running is None and "mcpeval.run(" in cell.source:
            running = cell.source
        else:
            (before if running is None else after).append(cell.source)
    for source in before:
        kernel.run(source)
    kernel.run("tasks = [task for task in tasks if task.category == 'memory']")

    request = kernel.start(running)
    while not finished_runs(cache):
        time.sleep(0.05)
    kernel.manager.interrupt_kernel()
    content = kernel.reply(request)
    assert content["status"] == "error"
    assert content["ename"] == "KeyboardInterrupt"
    kept = finished_runs(cache)
    assert 1 <= kept < 6

    kernel.run("print('still here')")
    kernel.run(running)
    assert kernel.value("len(runs)") == "6"
    assert kernel.value("(runs['status'] == 'ok').all()") == "np.True_"
    assert int(kernel.value("int(runs['cached'].sum())")) >= kept
    kernel.run("scores = mcpeval.score(runs)")
    assert kernel.value("len(scores)") == "6"


def finished_runs(cache):
    """How many whole runs a cache that another process fills holds by now."""
    if not cache.is_dir():
        return 0
    with Cache(cache) as opened:
        return sum(key.startswith("run:") for key in opened)
