"""The notebooks in a real kernel: from start to end without a network, and with an interrupt in the middle."""

import time
from pathlib import Path

import nbclient
import nbformat
import pytest
from jupyter_client.manager import start_new_kernel

from mcpeval import Cache

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

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


def test_the_quickstart_runs_from_start_to_end_and_ends_in_a_seaborn_figure(node_bin, tmp_path):
    notebook = nbformat.read(FOLDER / "01_quickstart.ipynb", as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(NO_NETWORK))
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]
    for line in "".join(o.text for o in outputs if o.get("name") == "stderr").replace("\r", "\n").splitlines():
        assert not line.strip() or line.startswith(("run: ", "score: ")), line  # nothing but progress
    last = cells[-1]
    assert "sns." in last.source
    assert any("image/png" in output.get("data", {}) for output in last.outputs)
    text = "\n".join(output.text for output in outputs if output.get("name") == "stdout")
    assert "from the cache: 16 of 16" in text
    assert "the same answers: True" in text
    assert not list(tmp_path.iterdir())  # nothing is left beside the notebook


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
