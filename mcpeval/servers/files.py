"""The servers of a file: how each is reached, and what must not be printed of it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from .._shipped import shipped
from ..errors import FileError, InputError, did_you_mean
from .origins import COMES_WITH, LAUNCHERS, Package, download_environment, package_of, program
from .permissions import Permissions, read_json, read_permissions

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_HTTP = re.compile(r"https?://[^/]")
_TRANSPORTS = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "sse": "sse",
}
_KEYS = (
    *("command", "args", "env", "cwd", "url", "headers", "type", "transport", "connect_timeout", "call_timeout"),
    *("share", "permissions", "description"),
    *("stdio", "sse", "http", "http_url", "streamable_http"),
)
_FETCH_TIMEOUT = 120.0  # the start of a server that has to be fetched at first
_SHORTEST_SECRET = 4  # a shorter value would be struck out of every word it is part of


@dataclass(frozen=True, repr=False)
class Server:
    """One MCP server and how it is reached.

    ``{{VAR}}`` in `command`, `args`, `cwd`, `url` and in the values of `env` and `headers` stands
    for a variable of the environment; `resolve` puts the values in.

    Attributes
    ----------
    name : str
    transport : {"stdio", "http", "sse", "memory"}
        ``http`` is streamable HTTP.
    command, args, env, cwd
        For ``stdio``.  The process gets `env` beside HOME, LOGNAME, PATH, SHELL, TERM and USER,
        and no other variable; ``uvx`` and ``npx`` also what they fetch a package with (proxies,
        certificates, ``UV_*``, ``npm_config_*``).
    url, headers
        For ``http`` and ``sse``.
    target : MCPServer or callable
        For ``memory``: a server object of the SDK, which every run then shares, or a function
        that makes a new one for each.
    connect_timeout, call_timeout : float
        Seconds for the start, the list of tools included, and for one call.  What ``uvx`` or
        ``npx`` start may have to be fetched: a file's entry for one of them has 120 for the start.
    share : bool
        The server keeps no state, so that all runs of a `run` may use one process (or session).
        One that dies is started anew for the runs that begin after that.
    permissions : Permissions, optional
        For the calls of this server, after those that `run` was given.
    description : str
    variables : mapping, optional
        What ``{{VAR}}`` is looked up in; the environment where it is not given.
    written : Server, optional
        Of a resolved server, the one with the ``{{VAR}}``.
    secrets : mapping
        Of a resolved server, each value that no message may hold, and what stands for it there.
    """

    name: str
    transport: str = "stdio"
    command: str = ""
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    target: Any = None
    connect_timeout: float = 30.0
    call_timeout: float = 60.0
    share: bool = False
    permissions: Permissions | None = None
    description: str = field(default="", compare=False)
    variables: Mapping[str, str] | None = field(default=None, compare=False)
    written: Server | None = field(default=None, compare=False)
    secrets: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        return f"Server({self.name!r}, {self.transport!r}, {self.shown!r})"  # `env` and `headers` hold secrets

    def resolve(self, env: Mapping[str, str] | None = None) -> Server:
        """The same server with the values of its ``{{VAR}}``; a resolved one is returned as it is.

        Parameters
        ----------
        env : mapping, optional
            Looked up before `variables`.

        Raises
        ------
        InputError
            A variable is not there; the message names the server and every such variable.
        """
        if self.written is not None:
            return self  # never twice: {{X}} within a value is part of the value
        known = {**(os.environ if self.variables is None else self.variables), **(env or {})}
        used: dict[str, str] = {}
        missing: set[str] = set()

        def value(match: re.Match[str]) -> str:
            if match[1] not in known:
                missing.add(match[1])
                return match[0]
            used[match[1]] = str(known[match[1]])
            return used[match[1]]

        def fill(text: str) -> str:
            return _PLACEHOLDER.sub(value, text)

        resolved = replace(
            self,
            command=fill(self.command),
            args=tuple(fill(arg) for arg in self.args),
            env={**download_environment(self.command), **{key: fill(text) for key, text in self.env.items()}},
            cwd=None if self.cwd is None else fill(self.cwd),
            url=fill(self.url),
            headers={key: fill(text) for key, text in self.headers.items()},
            written=self,
        )
        if missing:
            names = ", ".join(sorted(missing))
            raise InputError(f"server {self.name!r} needs what is not in the environment: {names}")
        return replace(resolved, secrets=_secrets(resolved, used))

    def check(self, env: Mapping[str, str] | None = None) -> Server:
        """`resolve`, and see that the command and the folder are there; nothing is started.

        Raises
        ------
        InputError
            A variable, the command or the folder is missing, or the URL is none of HTTP.
        """
        server = self.resolve(env)
        if server.transport in ("http", "sse") and not _HTTP.match(server.url):
            raise InputError(server.redact(f"server {self.name!r}: url={server.url!r} should begin with http(s)://"))
        if server.transport != "stdio":
            return server
        cwd = Path(server.cwd or ".")
        if not cwd.is_dir():
            raise InputError(server.redact(f"server {self.name!r}: the folder cwd={server.cwd!r} does not exist"))
        if server.executable is None:
            from_where = COMES_WITH.get(server.command)
            message = f"server {self.name!r}: there is no command {server.command!r} that can be run"
            raise InputError(server.redact(message + (f"; it comes with {from_where}" if from_where else "")))
        return server

    @property
    def executable(self) -> str | None:
        """The absolute path of the program; None where it is not there, or the server is no process."""
        return program(self.command, self.env, self.cwd) if self.transport == "stdio" else None

    @property
    def package(self) -> Package | None:
        """The published package behind the command, and its version, as far as they are known here."""
        return package_of(self.command, self.args, self.executable) if self.transport == "stdio" else None

    @property
    def resolved_command(self) -> str | None:
        """The program's absolute path and its arguments as written, with ``~`` for the home folder."""
        if self.executable is None:
            return None
        text = self.redact(" ".join((self.executable, *(self.written or self).args)))
        return re.sub(rf"(?<![^\s=:]){re.escape(str(Path.home()))}(?=/|\s|$)", "~", text)

    @property
    def needs(self) -> list[str]:
        """The variables that it names, sorted."""
        server = self.written or self
        texts = (server.command, *server.args, server.cwd or "", server.url, *server.env.values())
        return sorted({name for text in (*texts, *server.headers.values()) for name in _PLACEHOLDER.findall(text)})

    @property
    def asks(self) -> bool:
        """Whether somebody is asked about calls: what comes of them nobody can say beforehand."""
        return self.permissions is not None and self.permissions.may_ask

    @property
    def definition(self) -> dict[str, Any]:
        """What shapes what it does, as JSON; ``{{VAR}}`` stands as it is written."""
        names = ("name", "transport", "command", "args", "env", "cwd", "url", "headers")
        more = {"share": True} if self.share else {}
        if self.permissions is not None:
            more["permissions"] = self.permissions.to_dict()
        return {name: getattr(self, name) for name in names} | more

    @property
    def shown(self) -> str:
        """The command or URL as it may be printed: ``{{VAR}}`` as written, no password, no query."""
        server = self.written or self
        if server.transport == "stdio":
            return " ".join((server.command, *server.args))
        if server.transport == "memory":
            return getattr(server.target, "__name__", type(server.target).__name__)
        url = urlsplit(server.url)
        return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"

    def redact(self, text: str) -> str:
        """`text` without the values of variables, of `env` and of `headers`."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            for spelling in (secret, quote(secret, safe="")):
                text = text.replace(spelling, self.secrets[secret])
        return text


def _secrets(server: Server, used: Mapping[str, str]) -> dict[str, str]:
    inherited = download_environment(server.command).keys() - server.written.env.keys()
    # Of a proxy or an index only what bears a password: the others are words such as "true".
    secrets = {
        value: f"[env {name}]"
        for name, value in server.env.items()
        if name not in inherited or "@" in value or re.search("TOKEN|PASSWORD|KEY|AUTH", name, re.IGNORECASE)
    }
    for name, value in server.headers.items():
        # "Bearer abc": a server that repeats the token need not repeat the word before it.
        secrets |= dict.fromkeys((value, *value.split()), f"[header {name}]")
    secrets |= {value: f"{{{{{name}}}}}" for name, value in used.items()}
    url = urlsplit(server.url)
    secrets |= dict.fromkeys(filter(None, (url.username, url.password, url.query)), "[url]")
    return {value: name for value, name in secrets.items() if len(value) >= _SHORTEST_SECRET}


def read_servers(source: Any, env: Mapping[str, str] | None = None) -> dict[str, Server]:
    """Read a server file, or what one would hold, or pick from the catalogue.

    Both common forms are read: ``{"mcpServers": {name: {"command", "args", "env"}}}`` and
    ``{name: {"stdio": {...}, "sse": {...}, "http_url": ..., "headers": ..., "env": {...}}}``.
    Where several transports are named, stdio comes first, then HTTP, then SSE.  A ``url`` without
    a ``type`` is streamable HTTP, or SSE where its path ends with ``/sse``.

    Parameters
    ----------
    source : path, mapping, list of str, or None
        A JSON file, or a mapping of names; its values may also be `Server` values, server objects
        of the MCP SDK, and functions that make one (both run in memory).  A list has names of the
        `catalogue`: ``["time", "git"]``.
    env : mapping, optional
        What ``{{VAR}}`` is looked up in, instead of the environment.  A missing one is an error
        only of a server that is used: see `Server.resolve`.

    Returns
    -------
    dict of str to Server

    Raises
    ------
    FileError
        The file is not there, is not JSON, or holds what would be an InputError.
    InputError
        An entry names no command and no URL, has a value of a wrong type, or a misspelt key; the
        catalogue has no such name.
    """
    if source is None:
        return {}
    if isinstance(source, (list, tuple)):
        return _picked(source, env)
    if not isinstance(source, (str, os.PathLike)):
        return _servers_of(source, env)
    content = read_json(source)
    try:
        return _servers_of(content, env)
    except InputError as error:
        raise FileError(str(error), source) from None


def _servers_of(given: Any, env: Mapping[str, str] | None) -> dict[str, Server]:
    if not isinstance(given, Mapping):
        raise InputError(f"servers should be a mapping of names to servers, not {type(given).__name__}")
    entries = given.get("mcpServers", given)
    if not isinstance(entries, Mapping):
        raise InputError(f"mcpServers should be a mapping of names to servers, not {type(entries).__name__}")
    return {name: _server(name, entry, env) for name, entry in entries.items()}


def catalogue(env: Mapping[str, str] | None = None) -> dict[str, Server]:
    """The servers that benchmarks use, by their published packages, each at one version.

    They are fetched at their first start, by ``uvx`` (PyPI; each in an environment of its own, with
    the SDK that it needs) or ``npx`` (npm).  ``{{WORKDIR}}`` is the working folder of a run; any
    other variable is a key: `list_servers` says which are missing.

    Parameters
    ----------
    env : mapping, optional
        What ``{{VAR}}`` is looked up in, instead of the environment.

    Examples
    --------
    >>> catalogue()["time"].package
    Package(name='mcp-server-time', version='2026.10.19')
    """
    return read_servers(shipped("data") / "servers.json", env)


def _picked(names: Sequence[Any], env: Mapping[str, str] | None) -> dict[str, Server]:
    known = catalogue(env)
    for name in names:
        if name not in known:
            raise InputError(f"servers: {name!r} is not in the catalogue. {did_you_mean(str(name), known)}")
    return {name: known[name] for name in names}


def _server(name: str, entry: Any, env: Mapping[str, str] | None) -> Server:
    if isinstance(entry, Server):
        return replace(entry, name=name)
    if not isinstance(entry, Mapping):
        if callable(entry) or any(base.__module__.startswith("mcp.server") for base in type(entry).__mro__):
            return Server(name, "memory", target=entry)
        raise InputError(f"server {name!r}: {entry!r:.80} is neither a mapping nor an MCP server")
    for key in entry:
        if key not in _KEYS and (near := get_close_matches(str(key), _KEYS, n=1, cutoff=0.8)):
            raise InputError(f"server {name!r}: unknown key {key!r}. Did you mean {near[0]!r}?")
    if not isinstance(name, str) or not name:
        raise InputError(f"server {name!r}: its name should be a text that is not empty")
    transport, part = _part(name, entry)
    if not isinstance(part, Mapping):
        raise InputError(f"server {name!r}: {transport} should be a mapping, not {part!r:.80}")
    env_of = {**_texts(name, "env", entry.get("env")), **_texts(name, "env", part.get("env"))}
    part = {**{key: value for key, value in entry.items() if key not in _TRANSPORTS}, **part}
    need = "command" if transport == "stdio" else "url"
    if not isinstance(part.get(need), str) or not part[need]:
        has = ", ".join(map(str, part))
        raise InputError(f"server {name!r}: a server over {transport} needs {need!r}; it has: {has}")
    args = part.get("args") or []
    if not isinstance(args, list) or not all(isinstance(arg, (str, int, float)) for arg in args):
        raise InputError(f"server {name!r}: args={args!r:.80} should be a list of texts")
    for key in ("cwd", "description"):
        if not isinstance(part.get(key), str | None):
            raise InputError(f"server {name!r}: {key}={part[key]!r:.80} should be a text")
    if not isinstance(part.get("share", False), bool):
        raise InputError(f"server {name!r}: share={part['share']!r:.80} should be true or false")
    fetched = transport == "stdio" and os.path.basename(part["command"]) in LAUNCHERS
    return Server(
        name,
        transport,
        command=part["command"] if transport == "stdio" else "",
        args=tuple(str(arg) for arg in args),
        env=env_of,
        cwd=part.get("cwd"),
        url=part["url"] if transport != "stdio" else "",
        headers=_texts(name, "headers", part.get("headers")),
        connect_timeout=_seconds(name, "connect_timeout", part, _FETCH_TIMEOUT if fetched else Server.connect_timeout),
        call_timeout=_seconds(name, "call_timeout", part, Server.call_timeout),
        share=part.get("share", False),
        permissions=_permissions(name, part.get("permissions")),
        description=part.get("description") or "",
        variables=env,
    )


def permitted(servers: Mapping[str, Server], permissions: Any) -> dict[str, Server]:
    """The servers with `permissions` (as in `read_permissions`) before their own.

    Raises
    ------
    InputError
        Somebody has to be asked about calls, and there is no function to ask; a rule names a server that
        is not there, and there is one of nearly that name.
    """
    general = read_permissions(permissions)
    if general is not None:
        _check_servers_of(general, servers)
        servers = {
            name: replace(server, permissions=general.before(server.permissions)) for name, server in servers.items()
        }
    for name, server in servers.items():
        if server.asks and server.permissions.ask is None:
            raise InputError(
                f"server {name!r}: permissions say 'ask', and there is nobody to: give Permissions(..., ask=)"
            )
    return dict(servers)


def _check_servers_of(permissions: Permissions, servers: Mapping[str, Server]) -> None:
    """A rule may be about a server of another run; one with a misspelt name would allow in silence what it denies."""
    for name in {name for rule in permissions.rules for name in rule.server}:
        near = get_close_matches(name, servers, n=1, cutoff=0.8)
        if near and not any(fnmatchcase(server, name) for server in servers):
            raise InputError(f"permissions: there is no server {name!r}. Did you mean {near[0]!r}?")


def _permissions(name: str, given: Any) -> Permissions | None:
    try:
        return read_permissions(given)
    except InputError as error:
        raise InputError(f"server {name!r}: {error}") from None


def _part(name: str, entry: Mapping[str, Any]) -> tuple[str, Any]:
    """The transport of an entry, and the mapping that says how to reach the server over it."""
    if "stdio" in entry:
        return "stdio", entry["stdio"]
    if "http_url" in entry:
        return "http", {"url": entry["http_url"]}
    for key in ("http", "streamable_http", "sse"):
        if isinstance(entry.get(key), Mapping):
            return _TRANSPORTS[key], entry[key]
    stated = entry.get("type", entry.get("transport"))
    if stated is not None:
        if stated not in _TRANSPORTS:
            raise InputError(f"server {name!r}: type={stated!r}. {did_you_mean(stated, _TRANSPORTS)}")
        return _TRANSPORTS[stated], entry
    if "command" in entry or "url" not in entry:
        return "stdio", entry
    return "sse" if urlsplit(str(entry["url"])).path.rstrip("/").endswith("/sse") else "http", entry


def _texts(name: str, what: str, values: Any) -> dict[str, str]:
    if not isinstance(values, Mapping | None):
        raise InputError(f"server {name!r}: {what}={values!r:.80} should be a mapping of names to texts")
    texts = {}
    for key, value in (values or {}).items():
        if isinstance(value, (Mapping, list)) or value is None:
            raise InputError(f"server {name!r}: the value of {key!r} in {what} should be a text")
        texts[key] = value if isinstance(value, str) else json.dumps(value)
    return texts


def _seconds(name: str, what: str, part: Mapping[str, Any], default: float) -> float:
    value = part.get(what, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise InputError(f"server {name!r}: {what}={value!r} should be a number of seconds above 0")
    return float(value)
