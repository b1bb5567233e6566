"""Say which servers can start here, without starting any."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .files import Server, catalogue, read_servers
from .origins import COMES_WITH, LAUNCHERS, here

OF_A_RUN = ("WORKDIR",)
"""Variables that every run brings along."""


def list_servers(source: Any = None, env: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Which servers can start here, and what the others lack; nothing is started and no network asked.

    Parameters
    ----------
    source : path, mapping, list of str, or None
        As in `read_servers`; the whole `catalogue` where it is None.
    env : mapping, optional
        What ``{{VAR}}`` is looked up in, instead of the environment.

    Returns
    -------
    list of dict
        One a server: ``name``, ``ready``, ``lacks`` (texts: a variable that is not set, a command or
        a package that is not there), ``fetched`` (False where its package is to be fetched first; None
        where nobody has to), ``transport``, ``command``, ``package`` and ``package_version`` where they
        are known, ``share``, ``description``.
    """
    servers = catalogue(env) if source is None else read_servers(source, env)
    return [_row(server) for server in servers.values()]


def _row(server: Server) -> dict[str, Any]:
    known = os.environ if server.variables is None else server.variables
    missing = [name for name in server.needs if name not in known and name not in OF_A_RUN]
    lacks = [f"variable {name}" for name in missing]
    filled = server.resolve(dict.fromkeys([*missing, *OF_A_RUN], ""))
    package, launcher = filled.package, Path(filled.command).name
    if server.transport == "stdio" and filled.executable is None and filled.command:
        from_where = COMES_WITH.get(launcher)
        lacks.append(f"command {server.command}" + (f" of {from_where}" if from_where else ""))
    elif package is None and (module := _lacking_module(filled)) is not None:
        lacks.append(f"package {module}")
    return {
        "name": server.name,
        "ready": not lacks,
        "lacks": lacks,
        "fetched": here(launcher, package) if package and launcher in LAUNCHERS else None,
        "transport": server.transport,
        "command": server.shown,
        "package": package and package.name,
        "package_version": package and package.version,
        "share": server.share,
        "description": server.description,
    }


def _lacking_module(server: Server) -> str | None:
    """The module that ``python -m`` would not find, as far as the folders of that Python tell."""
    if not Path(server.command).name.startswith("python") or server.args[:1] != ("-m",) or len(server.args) < 2:
        return None
    module = server.args[1].partition(".")[0]
    prefix = Path(server.executable).parent.parent
    places = [*prefix.glob("lib/python3*/site-packages"), *prefix.glob("lib/python3*"), Path(server.cwd or ".")]
    found = any((place / module).is_dir() or (place / f"{module}.py").is_file() for place in places)
    return None if found else module
