"""Command-line agents: any command that reads a prompt, and writes JSON lines of what it does."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import os
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from .._calls import is_secret
from ..caching import canonical
from ..errors import InputError, did_you_mean
from ..preparing import Seed, Workdir
from ..servers import Server
from ..types import Run, Task
from .base import FORM, QUESTION, check_texts, question_of, server_names
from .composed import fill
from .processes import Said, talk
from .readers import UNKNOWN, reader_of
from .session import Session, narrowed, text_of

#: What the arguments of a command may name in braces.
PLACEHOLDERS = ("prompt", "mcp_config", "workdir", "model", "tools")
VERSION_TIMEOUT = 10.0
REVISION = 1

_versions: dict[tuple[str, ...], str | None] = {}


@dataclass(frozen=True, init=False, repr=False)
class External:
    """A command-line agent: a process that is given a prompt, and tells in JSON lines what it does.

    It starts the MCP servers that the task offers itself, from a file that is written for it and
    removed when it has ended.  It works in a process group of its own, in a folder of its own, and
    gets no variable of the environment but six (`mcpeval.servers.Server`), those of `env`, and
    ``MCPEVAL_AGENT``, by which what it starts is known as its own, and ended with it.

    Parameters
    ----------
    command : list of str
        The program and its arguments; no shell reads them.  In an argument ``{prompt}`` stands for what
        the agent is asked, ``{mcp_config}`` for the path of the file (``{"mcpServers": {...}}``),
        ``{workdir}`` for the folder, ``{model}`` for `model`, and ``{tools}`` for what is offered, as
        Claude Code names it: ``mcp__weather,mcp__time__now``.  Where no argument has ``{prompt}``, it
        is written to stdin.
    name : str, optional
        Of the frame's column ``agent``; the program's where there is none.
    model : str, optional
        Of the frame's column ``model``, and for ``{model}``.
    servers : list of str, or dict, optional
        As of an `Agent`.  A command that does not use ``{tools}`` may call every tool of the servers.
    system : str, optional
        Stands before the question.
    reader : {"json_lines", "claude_code"} or callable
        What makes a `Run` of the lines (`mcpeval.agents.readers`).  A callable is given a list with the
        JSON value of each line, or its text where it is none; its runs are kept in the cache where it
        has an attribute ``fingerprint``.
    time_limit : float
        Seconds, after which the process group is killed and the run ends with ``error_class``
        ``timeout``, and with what was told until then.
    workdir : path, optional
        The folder it works in, for all runs; where there is none, the task's working folder, else an
        empty one, which is removed afterwards.
    env : mapping, optional
        Variables of its environment.  ``{{VAR}}`` in a value stands for one of ours, so that a key need
        not be written down: ``{"ANTHROPIC_API_KEY": "{{ANTHROPIC_API_KEY}}"}``.
    version : list of str, optional
        The command that prints its version, for the row's ``metadata``: ``["claude", "--version"]``.

    Raises
    ------
    InputError
        Something here cannot be meant.  `run` says before anything is started that the command, a
        variable or the folder is not there.

    Examples
    --------
    >>> External(["my-agent", "--json", "--mcp", "{mcp_config}"], time_limit=300)
    External(['my-agent', '--json', '--mcp', '{mcp_config}'], time_limit=300)
    """

    command: tuple[str, ...]
    name: str
    model: str | None
    servers: tuple[str, ...] | Mapping[str, tuple[str, ...] | None] | None = field(hash=False)
    system: str | None
    reader: str | Callable[[Sequence[Any]], Any]
    time_limit: float
    workdir: str | None
    env: Mapping[str, str] = field(hash=False)
    version: tuple[str, ...] | None
    uses_tools = True
    #: The servers are started by the agent, not by the run.
    starts_servers = True
    reads = QUESTION

    def __init__(
        self,
        command: Sequence[str],
        name: str | None = None,
        *,
        model: str | None = None,
        servers: Sequence[str] | Mapping[str, Sequence[str] | None] | None = None,
        system: str | None = None,
        reader: str | Callable[[Sequence[Any]], Any] = "json_lines",
        time_limit: float = 600.0,
        workdir: str | os.PathLike | None = None,
        env: Mapping[str, str] | None = None,
        version: Sequence[str] | None = None,
    ) -> None:
        check_texts("External", name=name, model=model, system=system)
        if isinstance(time_limit, bool) or not isinstance(time_limit, (int, float)) or not time_limit > 0:
            raise InputError(f"External: time_limit={time_limit!r} should be a number of seconds above 0")
        if not isinstance(workdir, str | os.PathLike | None):
            raise InputError(f"External: workdir={workdir!r:.80} should be the path of a folder")
        _check_env(env)
        reader_of(reader, "External")
        argv = _command(command, "command")
        _check_placeholders(argv, model)
        values = {
            "command": argv,
            "name": name or Path(argv[0]).name,
            "model": model,
            "servers": server_names(servers),
            "system": system,
            "reader": reader,
            "time_limit": time_limit,
            "workdir": None if workdir is None else os.fspath(workdir),
            "env": dict(env or {}),
            "version": None if version is None else _command(version, "version"),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    @property
    def fingerprint(self) -> str | None:
        """sha256 of all that shapes what it does, as far as it is written here; no secret.

        None where the reader is a callable that has no ``fingerprint``.
        """
        mark = self.reader if isinstance(self.reader, str) else getattr(self.reader, "fingerprint", None)
        if not isinstance(mark, str):
            return None
        parts = {
            "external": [REVISION, FORM, *self.command],
            "model": self.model,
            "system": self.system,
            "servers": self.servers,
            "reader": mark,
            "workdir": self.workdir,
            "env": {key: value for key, value in self.env.items() if not is_secret(key.lower())},
        }
        return hashlib.sha256(canonical(parts).encode()).hexdigest()

    def check(self, servers: Sequence[Server] = ()) -> None:
        """See that it can be started, and be given `servers`; nothing is started.

        Raises
        ------
        InputError
            The command, the folder or a variable is not there, or a server runs in this process.
        """
        try:
            self._process(self.command[1:]).check()
        except InputError as error:
            raise InputError(str(error).replace("server ", "agent ", 1)) from None
        for server in servers:
            if server.transport == "memory":
                raise InputError(
                    f"agent {self.name!r} is a process of its own, and the server {server.name!r} runs in memory; "
                    "give it a server that is a command or a URL"
                )

    @property
    def _asks_in_argument(self) -> bool:
        return any("{prompt}" in arg for arg in self.command)

    def _process(self, args: Sequence[str], cwd: str | None = None) -> Server:
        """The command as what starts a process here: with its variables, its secrets and its checks."""
        return Server(self.name, "stdio", self.command[0], tuple(args), self.env, cwd or self.workdir)

    async def __call__(self, task: Task, session: Session) -> Run:
        """Start the command, wait for its end, and read what it wrote."""
        prompt = "\n\n".join(filter(None, (self.system, question_of(task))))
        offered = session.offered if self.servers is None else narrowed(session.offered, self.servers)
        servers = [server.resolve() for server in session.servers if server.name in offered]
        # In a place of its own whose lock the kernel gives back: what a killed run has left is taken over.
        base = Workdir(Seed(), "agent")
        try:
            base.make()  # an empty folder: no work for a thread, which a cancellation would leave at it
            config = base.path.with_name("mcp.json")
            _write_config(config, servers)
            workdir = self.workdir or session.workdir or str(base.path)
            values = {"prompt": prompt, "mcp_config": config, "workdir": workdir, "model": self.model}
            args = [fill(arg, **values, tools=_allowed(offered)) for arg in self.command[1:]]
            process = replace(self._process((), workdir).resolve(), args=args)
            secrets = _secrets([process, *servers])
            wrote: list[str] = []
            try:
                asked = None if self._asks_in_argument else prompt
                said = await talk(process, asked, self.time_limit, wrote)
            except asyncio.CancelledError:  # the run has a time limit, too: what was told is paid for
                lines = [_hidden(line, secrets) for line in wrote]
                session.include(_at_home(self._read(lines), prompt, offered))
                raise
            except OSError as error:
                hint = "; a long prompt goes to stdin, where no argument has {prompt}" * (error.errno == errno.E2BIG)
                failed = f"the command cannot be started: {error.strerror or error}{hint}"
                return Run(status="error", error=failed, error_class="harness")
        finally:
            await asyncio.to_thread(_removed, base)
        said = replace(said, lines=[_hidden(line, secrets) for line in wrote])
        run = _at_home(_ended(self._read(said.lines), said, self), prompt, offered)
        about = {
            "command": list(self.command),
            "version": await self._version(),
            "exit_code": said.code,
        }
        return replace(
            run,
            error=_hidden(run.error, secrets) if run.error else run.error,
            metadata={"servers": [_provenance(server) for server in servers], **run.metadata, "external": about},
        )

    def _read(self, wrote: Sequence[str]) -> Run:
        """What the reader makes of the lines; where it fails, they are kept as they are."""
        try:
            given = reader_of(self.reader, "External")([_value(line) for line in wrote])
            return given if isinstance(given, Run) else Run(text_of(given), usage=UNKNOWN)
        except (Exception, SystemExit) as error:  # it was paid for, and a reader's fault must not lose it
            text = "".join(traceback.format_exception(error))
            about = {"traceback": text, "stdout": list(wrote)}
            failed = f"the reader failed: {type(error).__name__}: {error}"
            return Run(status="error", error=failed, error_class="harness", usage=UNKNOWN, metadata=about)

    async def _version(self) -> str | None:
        """What `version` prints first; asked once."""
        if self.version is None:
            return None
        if self.version not in _versions:
            process = Server(self.name, "stdio", self.version[0], self.version[1:], self.env).resolve()
            try:
                said = await talk(process, None, VERSION_TIMEOUT, [])
            except OSError:
                said = Said([], None, "")
            _versions[self.version] = said.lines[0][:200] if said.lines and said.code == 0 else None
        return _versions[self.version]

    def __repr__(self) -> str:
        usual = {"name": Path(self.command[0]).name, "reader": "json_lines", "time_limit": 600.0, "env": {}}
        names = ("name", "model", "servers", "system", "reader", "time_limit", "workdir", "env", "version")
        shown = {key: getattr(self, key) for key in names if getattr(self, key) != usual.get(key)}
        if "env" in shown:
            shown["env"] = {key: "..." if is_secret(key.lower()) else value for key, value in self.env.items()}
        return f"External({', '.join([repr(list(self.command)), *(f'{k}={v!r}' for k, v in shown.items())])})"


def claude_code(
    model: str | None = None, name: str = "claude_code", *, arguments: Sequence[str] = (), **more: Any
) -> External:
    """Claude Code without its terminal: ``claude -p``, with the MCP servers of the task and no others.

    Its tools that may change or fetch something are not allowed; those of the servers are.

    Parameters
    ----------
    model : str, optional
        As its ``--model`` takes it; its own default where there is none.
    name : str
    arguments : list of str
        Others of the command, behind these: ``["--max-turns", "20"]``.
    **more
        As of an `External`: ``servers``, ``system``, ``time_limit``, ``env``, ...

    Examples
    --------
    >>> claude_code("sonnet", env={"ANTHROPIC_API_KEY": "{{ANTHROPIC_API_KEY}}"}).model
    'sonnet'
    """
    command = ["claude", "-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config"]
    command += ["--mcp-config", "{mcp_config}", "--allowedTools", "{tools}"]
    command += [*([] if model is None else ["--model", "{model}"]), *_command(arguments, "arguments", least=0)]
    usual = {"reader": "claude_code", "time_limit": 1800.0, "version": ["claude", "--version"]}
    return External(command, name, model=model, **{**usual, **more})


# --- what is checked when it is written ----------------------------------------------------------


def _command(given: Any, what: str, *, least: int = 1) -> tuple[str, ...]:
    listed = isinstance(given, Sequence) and not isinstance(given, (str, bytes))
    argv = tuple(os.fspath(arg) if isinstance(arg, os.PathLike) else arg for arg in given) if listed else ()
    if not listed or len(argv) < least or not all(isinstance(arg, str) for arg in argv) or argv and not argv[0]:
        expected = "a list of texts, the program and its arguments; no shell reads it"
        raise InputError(f"External: {what}={given!r:.200} should be {expected}")
    return argv


def _check_env(env: Any) -> None:
    if not isinstance(env, Mapping | None) or not all(isinstance(v, str) for kv in (env or {}).items() for v in kv):
        raise InputError("External: env should be a mapping of names to texts")
    for name, value in (env or {}).items():
        if not name or "=" in name or "\0" in name + value:
            raise InputError(f"External: env has {name!r:.80}, which no variable's name and value can be")


def _check_placeholders(argv: Sequence[str], model: str | None) -> None:
    for name in re.findall(r"\{(\w+)\}", " ".join(argv)):
        if name not in PLACEHOLDERS and get_close_matches(name, PLACEHOLDERS, n=1, cutoff=0.75):
            raise InputError(f"External: command has {{{name}}}. {did_you_mean(name, PLACEHOLDERS)}")
        if name == "model" and model is None:
            raise InputError("External: command has {model}, and there is no model=")


# --- what it is given ----------------------------------------------------------------------------


def _write_config(path: Path, servers: Sequence[Server]) -> None:
    """The file of the MCP servers, which nobody else may read: it holds their secrets."""
    entries = {server.name: _entry(server) for server in servers}
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump({"mcpServers": entries}, file)


def _entry(server: Server) -> dict[str, Any]:
    if server.transport != "stdio":
        return {"type": server.transport, "url": server.url, "headers": dict(server.headers)}
    # The agent works in another folder than we do.
    cwd = Path(server.cwd or ".").absolute()
    command = server.executable or server.command
    return {"command": command, "args": list(server.args), "env": dict(server.env), "cwd": str(cwd)}


def _removed(folder: Workdir) -> None:
    with suppress(OSError):  # what cannot be removed takes nothing from the run
        folder.remove()


def _provenance(server: Server) -> dict[str, Any]:
    """What is known of a server that somebody else has started."""
    package = server.package
    return {
        "name": server.name,
        "transport": server.transport,
        "command": server.shown,
        "package": package and package.name,
        "package_version": package and package.version,
    }


def _allowed(offered: Mapping[str, Sequence[str] | None]) -> str:
    """The tools that are offered, as Claude Code names them; a server's name alone stands for all of its own."""
    names = []
    for server, tools in offered.items():
        home = "mcp__" + re.sub(r"[^a-zA-Z0-9_-]", "_", server)
        names += [home] if tools is None else [f"{home}__{tool}" for tool in tools]
    return ",".join(names)


# --- what comes of it ----------------------------------------------------------------------------


def _value(line: str) -> Any:
    try:
        return json.loads(line, strict=False)
    except (ValueError, RecursionError):
        return line


def _ended(run: Run, said: Said, agent: External) -> Run:
    """`run` with what the end of the process says of it."""
    stderr = f": {said.stderr}" if said.stderr else ""
    if said.code is None:
        error = f"the command had not ended after time_limit={agent.time_limit:g} s{stderr}"
        return replace(run, status="error", error=error, error_class="timeout")
    if said.code != 0:
        error = f"the command ended with exit code {said.code}{stderr}"
        if run.status == "error":
            return replace(run, error=f"{run.error} ({error})")
        return replace(run, status="error", error=error, error_class="harness")
    if run.status == "ok" and run.output is None:
        last = said.lines[-1][:500] if said.lines else "nothing"
        error = f"the command ended without an answer; the last that it wrote: {last}{stderr}"
        return replace(run, status="error", error=error, error_class="model")
    return run


def _begun(messages: Sequence[Mapping[str, Any]], prompt: str) -> list[Mapping[str, Any]]:
    """`messages`, which begin with the prompt."""
    if any(message.get("role") == "user" for message in messages[:2]):
        return list(messages)
    return [{"role": "user", "content": prompt}, *messages]


def _at_home(run: Run, prompt: str, offered: Mapping[str, Any]) -> Run:
    """`run` as others are: its messages begin with the prompt, and its calls have their servers."""
    calls = [_with_server(call, offered) for call in run.tool_calls]
    return replace(run, messages=_begun(run.messages, prompt), tool_calls=calls)


def _with_server(call: Any, offered: Mapping[str, Any]) -> Any:
    """`call` with its server, where its name tells: ``mcp__weather__now``, ``weather__now``."""
    if call.server is not None:
        return call
    for server in sorted(offered, key=len, reverse=True):
        known = re.sub(r"[^a-zA-Z0-9_-]", "_", server)
        for prefix in (f"mcp__{known}__", f"{known}__"):
            if call.name.startswith(prefix):
                return replace(call, server=server, name=call.name.removeprefix(prefix))
    return call


def _secrets(servers: Sequence[Server]) -> dict[str, str]:
    """The values that the agent was given and that are in no row: of keys and tokens, not of other variables."""
    found = {}
    for value, shown in (pair for server in servers for pair in server.secrets.items()):
        variable = re.match(r"(?:\[env |\{\{)(\w+)", shown)
        if len(value) >= 6 and (variable is None or is_secret(variable[1].lower())):
            found[value] = shown
    return found


def _hidden(text: str, secrets: Mapping[str, str]) -> str:
    for value in sorted(secrets, key=len, reverse=True):
        text = text.replace(value, secrets[value])
    return text
