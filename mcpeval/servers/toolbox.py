"""The tools of several MCP servers as one list for a model, and the calls it makes."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from typing import Any

from ..caching import Cache
from ..errors import InputError, ServerError, did_you_mean
from ..types import ToolCall
from .connection import Connection, sha256
from .files import Server
from .results import SHOWN, call_text, cut, missing_characters, recorded, without_blobs
from .sharing import SharedServers

NAME_LENGTH = 64
"""Characters of the longest tool name that every provider takes."""

_QUICK = 100_000  # characters that are written to the cache on the spot


@asynccontextmanager
async def open_toolbox(
    servers: Sequence[Server],
    *,
    offered: Mapping[str, Sequence[str] | None] | None = None,
    max_result_chars: int = SHOWN,
    shared: SharedServers | None = None,
    cache: Cache | None = None,
) -> AsyncIterator[Toolbox]:
    """Start servers side by side, yield their tools, and end every server, whatever happened.

    Parameters
    ----------
    servers : sequence of Server
    offered : mapping, optional
        Server name to the only tools that are offered of it, by name or pattern (``read_*``); a
        server that is not named, or whose value is None, offers all.
    max_result_chars : int
        Characters of a result that `Toolbox.text` shows.
    shared : SharedServers, optional
        Where those with ``share`` come from, and where they stay; without it each is started here.
    cache : Cache, optional
        Where the images, sounds and files of results are kept.

    Raises
    ------
    InputError
        A ``{{VAR}}`` is not in the environment, or `offered` names a tool that is not there.
    ServerError
        A server does not start.
    """
    resolved = [server.resolve() for server in servers]
    own = {server.name: Connection(server) for server in resolved if shared is None or not server.share}

    async def opened(server: Server) -> Connection:
        if server.name not in own:
            return await shared.connection(server)
        await own[server.name].open()
        return own[server.name]

    try:
        connections = await asyncio.gather(*(opened(server) for server in resolved))
        yield Toolbox(connections, offered or {}, max_result_chars=max_result_chars, cache=cache)
    finally:
        for connection in own.values():
            connection.stop()
        await asyncio.gather(*(connection.close() for connection in own.values()))


class Toolbox:
    """Tools under names that every provider takes, and the way back from each to its server.

    Attributes
    ----------
    tools : list of dict
        OpenAI function tools, in the order of the servers and of their lists.
    max_result_chars : int
    """

    def __init__(
        self,
        connections: Sequence[Connection],
        offered: Mapping[str, Sequence[str] | None],
        *,
        max_result_chars: int = SHOWN,
        cache: Cache | None = None,
    ) -> None:
        self._cache = cache
        self._connections = {connection.server.name: connection for connection in connections}
        self.max_result_chars = max_result_chars
        listed = [(c.server.name, tool) for c in connections for tool in _offered(c, offered.get(c.server.name))]
        names = aliases([(server, tool["name"]) for server, tool in listed])
        self._homes = dict(zip(names, ((server, tool["name"]) for server, tool in listed), strict=True))
        self.tools = [function_tool(tool, name) for name, (_, tool) in zip(names, listed, strict=True)]

    def only(self, servers: Sequence[str] | Mapping[str, Sequence[str] | None]) -> Toolbox:
        """The same tool box, with nothing to see but the tools of `servers`; a mapping names the tools of each.

        Raises
        ------
        InputError
            A server has no tool of such a name.
        """
        narrow, only = copy.copy(self), servers if isinstance(servers, Mapping) else dict.fromkeys(servers)
        named = {
            name: {tool["name"] for tool in _offered(self._connections[name], tools)}
            for name, tools in only.items()
            if name in self._connections
        }
        narrow._homes = {alias: home for alias, home in self._homes.items() if home[1] in named.get(home[0], ())}
        narrow.tools = [tool for tool in self.tools if tool["function"]["name"] in narrow._homes]
        return narrow

    async def call(self, alias: str, arguments: Mapping[str, Any]) -> ToolCall:
        """Call the tool that a model named.

        Whatever fails - the name, the arguments, the tool, the server - comes back as a call with
        ``is_error``; nothing is raised but a cancellation.
        """
        if alias not in self._homes:
            error = f"There is no tool {alias!r}. {did_you_mean(alias, self._homes)}"
            return ToolCall(None, alias, arguments, is_error=True, error=error)
        server, tool = self._homes[alias]
        permissions = self._connections[server].server.permissions
        refusal = await permissions.refusal(server, tool, arguments) if permissions is not None else None
        if refusal is not None:
            return ToolCall(server, tool, arguments, is_error=True, error=refusal, denied=True)
        return await self.call_tool(server, tool, arguments)

    async def call_tool(self, server: str, tool: str, arguments: Mapping[str, Any]) -> ToolCall:
        """Call a tool, offered or not, permitted or not, by the name of its server and its own; as `call`."""
        began = time.perf_counter()
        result = error = None
        try:
            if server not in self._connections:
                raise InputError(f"There is no server {server!r}. {did_you_mean(server, self._connections)}")
            connection = self._connections[server]
            params = {"name": tool, "arguments": _sendable(arguments)}
            answer = await connection.request("tools/call", params, timeout=connection.server.call_timeout)
            result, blobs = without_blobs(answer)
            result = recorded(result)
            await self._keep(blobs)
        except (InputError, ServerError) as failure:
            error = str(failure)
        except RecursionError:
            error = "The result is nested too deeply to be read."
        is_error = error is not None or result.get("isError") is True
        return ToolCall(server, tool, arguments, result, is_error, error, time.perf_counter() - began)

    async def _keep(self, blobs: Mapping[str, Any]) -> None:
        for key, value in blobs.items() if self._cache is not None else ():
            if len(value["data"]) <= _QUICK:
                self._cache.keep(key, value)
            else:  # to pack megabytes takes a while, in which other runs go on
                await asyncio.to_thread(self._cache.keep, key, value)

    def text(self, call: ToolCall) -> str:
        """What a model is shown of a call: at most `max_result_chars`, visibly cut in the middle."""
        return cut(call_text(call), self.max_result_chars)

    def is_cut(self, call: ToolCall) -> bool:
        """Whether `text` shows less than the tool said."""
        return missing_characters(call) > 0 or len(call_text(call)) > self.max_result_chars

    @property
    def provenance(self) -> list[dict[str, Any]]:
        """What stood behind the calls, one dict a server.

        ``name``, ``transport``, ``command`` (or URL) as written, ``resolved``: the program's absolute
        path (``~`` for the home folder) and its arguments as written; ``package`` and
        ``package_version`` where they are known (`mcpeval.servers.origins`), ``server_info`` and
        ``protocol`` as the server gave them, ``n_tools`` and ``tools_sha256`` of all the tools it
        lists, ``shown_sha256`` of those that the model is shown, as it is shown them; ``shared``, and
        ``death`` where it ended before it was told to.
        """
        return [self._provenance(connection) for connection in self._connections.values()]

    def _provenance(self, connection: Connection) -> dict[str, Any]:
        server = connection.server
        shown = [tool for tool in self.tools if self._homes[tool["function"]["name"]][0] == server.name]
        known = {
            **connection.origin,
            "server_info": connection.info.get("serverInfo"),
            "protocol": connection.info.get("protocolVersion"),
            "n_tools": len(connection.tools),
            "shown_sha256": sha256(shown),
            "shared": server.share,
        }
        return known if connection.death is None else {**known, "death": connection.death}


def _offered(connection: Connection, names: Sequence[str] | None) -> list[dict[str, Any]]:
    known = [tool["name"] for tool in connection.tools]
    for name in names or ():
        if name not in known and not any(fnmatchcase(tool, name) for tool in known):
            raise InputError(f"server {connection.server.name!r} has no tool {name!r}. {did_you_mean(name, known)}")
    if names is None:
        return connection.tools
    return [tool for tool in connection.tools if any(tool["name"] == n or fnmatchcase(tool["name"], n) for n in names)]


def aliases(homes: Sequence[tuple[str, str]]) -> list[str]:
    """A name for each (server, tool), unique among them, that every provider takes.

    A tool keeps its own name where it can.  Where two servers have it, it is ``server__tool``;
    what is too long, or clashes still, ends with a digest of the pair.

    Examples
    --------
    >>> aliases([("a", "add"), ("b", "add"), ("b", "get.time")])
    ['a__add', 'b__add', 'get_time']
    """
    names = [_clean(tool) for _, tool in homes]
    count = Counter(names)
    names = [_clean("__".join(home)) if count[name] > 1 else name for home, name in zip(homes, names, strict=True)]
    count = Counter(names)
    return [
        f"{name[: NAME_LENGTH - 9]}_{hashlib.sha256('/'.join(home).encode()).hexdigest()[:8]}"
        if count[name] > 1 or len(name) > NAME_LENGTH
        else name
        for home, name in zip(homes, names, strict=True)
    ]


def _clean(name: str) -> str:
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", name)
    return name if re.match(r"[a-zA-Z_]", name) else f"_{name}"


def function_tool(tool: Mapping[str, Any], alias: str) -> dict[str, Any]:
    """An MCP tool as an OpenAI function tool, with the schema that the strictest provider takes."""
    description, parameters = tool.get("description"), object_schema(tool.get("inputSchema"))
    return {"type": "function", "function": {"name": alias, "description": description or "", "parameters": parameters}}


def object_schema(schema: Any) -> dict[str, Any]:
    """A tool's input schema as one that says ``type: object`` and has no choice at its top.

    Providers refuse a schema whose root lacks the type, is a reference, carries ``$schema``, or
    chooses with ``anyOf``, ``oneOf`` or ``allOf``; below the root all of that may stand.  A choice
    at the root becomes the union of its properties; the server still sees to what may come together.
    """
    schema = dict(schema) if isinstance(schema, Mapping) else {}
    root = _followed(schema, schema)
    properties, required = dict(root.get("properties") or {}), set(root.get("required") or ())
    for choice in ("allOf", "anyOf", "oneOf"):
        parts = [_followed(part, schema) for part in root.pop(choice, ())]
        for part in parts:
            properties |= {key: value for key, value in (part.get("properties") or {}).items() if key not in properties}
        needed = [set(part.get("required") or ()) for part in parts]
        if needed:
            required |= set.union(*needed) if choice == "allOf" else set.intersection(*needed)
    root |= {"type": "object", "properties": properties}
    if required:
        root["required"] = [name for name in properties if name in required]
    return {key: value for key, value in root.items() if key != "$schema"}


def _followed(schema: Any, document: Mapping[str, Any]) -> dict[str, Any]:
    """`schema`, with a reference to one of the document's definitions replaced by the definition."""
    schema = dict(schema) if isinstance(schema, Mapping) else {}
    match = re.fullmatch(r"#/(\$defs|definitions)/([^/]+)", str(schema.get("$ref")))
    found = document.get(match[1], {}).get(match[2]) if match else None
    if not isinstance(found, Mapping):
        return schema
    return {**found, **{key: value for key, value in schema.items() if key != "$ref"}}


def _sendable(arguments: Any) -> dict[str, Any]:
    """Arguments as JSON that every server can read: half a character is replaced.

    Raises
    ------
    InputError
        They are no JSON object.
    """
    if not isinstance(arguments, Mapping):
        raise InputError(f"The arguments should be a JSON object, not {type(arguments).__name__}.")
    try:
        text = json.dumps(dict(arguments), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"The arguments are not JSON: {error}") from None
    if "\\ud" in text:
        wide = json.dumps(json.loads(text), ensure_ascii=False).encode("utf-16", "surrogatepass")
        text = wide.decode("utf-16", "replace")
    return json.loads(text)
