"""What every test may use: a cache of its own, a loopback endpoint, the places of real servers."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
CONFORMANCE = Path(os.environ.get("MCPEVAL_CONFORMANCE", REPOSITORY.parent / "shared"))

# A shell starts what runs in the background with interrupts ignored, and the processes that tests
# start and interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_cache_of_the_user(tmp_path_factory, monkeypatch):
    """No test reads or fills the cache of whoever runs it, or finds a key in the environment."""
    monkeypatch.setenv("MCPEVAL_CACHE", str(tmp_path_factory.mktemp("default-cache")))
    for name in [n for n in os.environ if n.endswith("_API_KEY")] + ["MCPEVAL_MODEL"]:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cache(tmp_path):
    """An empty cache of this test's own."""
    from mcpeval.caching import Cache

    with Cache(tmp_path / "cache") as cache:
        yield cache


@pytest.fixture(scope="session")
def _endpoint():
    from tests.endpoint import Endpoint

    with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def endpoint(_endpoint):
    """A real HTTP endpoint on loopback that speaks the chat-completions protocol."""
    _endpoint.reset()
    yield _endpoint
    _endpoint.script(None)
    _endpoint.reset()


@pytest.fixture(scope="session")
def node_bin() -> Path:
    """The folder with the commands of the npm MCP servers."""
    folder = Path(os.environ.get("MCPEVAL_NODE_BIN", REPOSITORY / ".node" / "node_modules" / ".bin"))
    if not (folder / "mcp-server-filesystem").exists():
        pytest.fail(f"the npm MCP servers are not in {folder}; `make test` installs them")
    return folder


@pytest.fixture(scope="session")
def conformance() -> Path:
    """The folder of real records and oracle answers; tests that need it skip where it is missing."""
    if not CONFORMANCE.is_dir():
        pytest.skip(f"no conformance data in {CONFORMANCE}")
    return CONFORMANCE


@pytest.fixture(scope="session")
def venv_bin() -> Path:
    """The folder of the running Python's console scripts."""
    found = shutil.which("mcpeval")
    return Path(found).parent if found else Path(os.sys.executable).parent
