"""What is behind the command of a server: the program, and the published package with its version.

Nothing is started and no network is asked: what is not known here is None.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import NamedTuple

LAUNCHERS = ("uvx", "npx")
"""Commands that fetch a package when they first start it."""

COMES_WITH = {"uvx": "uv (pip install uv)", "npx": "Node.js", "node": "Node.js", "docker": "Docker"}

# Options of uvx and of npx that are followed by a value.
_VALUED = {
    "uvx": ("--from", "--with", "--python", "-p", "--with-editable", "--with-requirements", "--index", "--index-url")
    + ("--default-index", "--extra-index-url", "-i", "--find-links", "-f", "--constraints", "-c", "--overrides")
    + ("--cache-dir", "--config-file", "--directory", "--exclude-newer", "--prerelease", "--resolution", "-w"),
    "npx": ("-p", "--package", "-c", "--call", "-w", "--workspace"),
}
# What a download needs where a network has a proxy or a certificate of its own, or a machine another cache.
_DOWNLOADING = re.compile(
    r"(https?|all|no)_proxy|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|XDG_(CACHE|DATA|CONFIG)_HOME"
    r"|UV_(?!PUBLISH)\w+|npm_config_\w+",
    re.IGNORECASE,
)
_PINNED = re.compile(r"(@?[^@=<>~!\[\s]+)(?:\[[^\]]*\])?(?:@|==)([\w.!+-]+)$")


class Package(NamedTuple):
    """A published package."""

    name: str
    version: str | None


def download_environment(command: str) -> dict[str, str]:
    """The variables of the environment that a launcher fetches packages with; none for any other command."""
    if Path(command).name not in LAUNCHERS:
        return {}
    found = {name: value for name, value in os.environ.items() if _DOWNLOADING.fullmatch(name)}
    return {**found, "PATH": search_path()}  # npx is a script for a node that stands beside it


def search_path(path: str | None = None) -> str:
    """PATH, and after it the folder of this Python: pip puts ``uvx`` there, and Jupyter may not have it in PATH."""
    path = os.environ.get("PATH", os.defpath) if path is None else path
    ours = str(Path(sys.executable).parent)
    return path if ours in path.split(os.pathsep) else f"{path}{os.pathsep}{ours}"


def program(command: str, env: Mapping[str, str], cwd: str | None = None) -> str | None:
    """The absolute path of the program that a command starts; None where there is none that can be run."""
    # A path is relative to the folder the server starts in; a bare name is looked up.
    named = str(Path(cwd or ".") / command) if os.sep in command else command
    found = shutil.which(named, path=search_path(env.get("PATH")))
    return None if found is None else os.path.abspath(found)


def package_of(command: str, args: Sequence[str], executable: str | None) -> Package | None:
    """The package of a server: as ``uvx`` and ``npx`` are told it, or as it is installed.

    Parameters
    ----------
    command, args
        Of the server.
    executable : str or None
        What `program` found.
    """
    name = Path(command).name
    if name in LAUNCHERS:
        return _told(name, args)
    return None if executable is None else _installed(executable, tuple(args[:2]))


def here(launcher: str, package: Package) -> bool:
    """Whether what a launcher would start has been fetched before (as far as its cache's folders tell)."""
    if launcher == "npx":
        cache = Path(os.environ.get("npm_config_cache") or Path.home() / ".npm") / "_npx"  # noqa: SIM112  (npm's own name)
        found = [_node_package(folder) for folder in cache.glob(f"*/node_modules/{package.name}")]
        return any(kept is not None and package.version in (None, kept.version) for kept in found)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cache, name = Path(os.environ.get("UV_CACHE_DIR") or Path(base) / "uv"), _normal(package.name)
    entries = (f"wheels-v*/{place}/{name}/{package.version or ''}*" for place in ("pypi", "index/*"))
    return any(next(cache.glob(entry), None) for entry in entries)


def _told(launcher: str, args: Sequence[str]) -> Package | None:
    """The package that a launcher is told to start."""
    named, rest = None, iter(args)
    for arg in rest:
        option, _, value = arg.partition("=")
        if not arg.startswith("-"):
            named = named or arg
            break
        if option in _VALUED[launcher]:
            value = value or next(rest, "")
            if option in ("--from", "--package") or (launcher, option) == ("npx", "-p"):
                named = named or value
    if named is None:
        return None
    pinned = _PINNED.match(named)
    if pinned is None or not pinned[2][:1].isdigit():  # "latest" is no version
        return Package(re.split(r"[\[=<>~!]|(?<=.)@", named)[0], None)
    return Package(pinned[1], pinned[2])


@lru_cache(maxsize=256)
def _installed(executable: str, args: tuple[str, ...]) -> Package | None:
    """The package that an installed program belongs to."""
    real = Path(executable).resolve()
    if real.name.startswith("node") and args:
        real = Path(args[0]).resolve()
    for folder in real.parents:
        above = (folder.parent.name, folder.parent.parent.name)  # the second, where a package has a scope
        if "node_modules" in above and (found := _node_package(folder)) is not None:
            return found
    known = _known(str(Path(executable).parent.parent))
    if Path(executable).name.startswith("python"):
        module = args[1].partition(".")[0] if args[:1] == ("-m",) and len(args) > 1 else None
        return next((Package(d.name, d.version) for d in known if module and _normal(d.name) == _normal(module)), None)
    for dist in known:
        if any(e.group == "console_scripts" and e.name == Path(executable).name for e in dist.entry_points):
            return Package(dist.name, dist.version)
    return None


@lru_cache(maxsize=32)
def _known(prefix: str) -> list[Distribution]:
    """The distributions of a Python environment."""
    return list(distributions(path=[str(folder) for folder in Path(prefix).glob("lib/python3*/site-packages")]))


def _node_package(folder: Path) -> Package | None:
    try:
        about = json.loads((folder / "package.json").read_text(encoding="utf-8"))
        return Package(about["name"], about["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
