"""What an agent has at hand while it works on one task, and the record of what it did."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from .. import llm
from ..errors import InputError, ModelError
from ..local import default_model
from ..servers.results import call_text
from ..tracing import Span, Trace
from ..types import Run, Task, ToolCall, Usage
from .memory import Notes, call_notes, note_tools
from .wire import arguments_of, sendable

UNANSWERED = "The run ended before the tool answered."
ONE = 'such as [{"role": "user", "content": "..."}]'
#: Between the samples of two draws: more than anybody's trials, so that none is met twice.
DRAW = 1_000_000


class Session:
    """One agent at one task: its tools, its models, its transcript.  `run` makes one for each run.

    An ``async def`` agent awaits `complete` and `call_tool`.  A plain function runs in a thread of
    its own, where the same methods block and give their answer; when the run is cancelled, what
    they wait for is cancelled too, and the function ends at its next call of one of them.

    Attributes
    ----------
    task : Task
    tools : list of dict
        The tools offered, as OpenAI function tools; empty where there are none.
    name : str or None
        Of the agent whose `part` of the work this is; None for the whole.
    messages : list of dict
        The transcript so far, parts included.  A conversation that goes on is written once; one that
        starts anew follows the one before.  A message of a part has the key ``agent``, the part's
        name; `complete` does not send it.
    tool_calls : list of ToolCall
        In the order in which they were asked for; those of a part stand together.
    usage : Usage
        Of every answer and of every failed attempt.
    turns : int
        Answers of models.
    models : list of str
        Those asked so far.
    memory : Notes
        What the agent notes, by ``remember`` and ``recall``; those of an agent that is not asked to keep
        notes end with the run.
    servers : tuple of Server
        The definitions of the MCP servers that the run is offered, for an agent that starts them itself.
    offered : dict
        The only tools that are offered of each of them; None for all.
    workdir : str or None
        The working folder of this run, where the task has one.
    """

    servers: Sequence[Any] = ()
    workdir: str | None = None
    offered: Mapping[str, Sequence[str] | None] = {}

    def __init__(
        self,
        task: Task,
        *,
        cache: Any = None,
        sample: int = 0,
        notes: Mapping[str, Sequence[str]] | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.task = task
        self.name: str | None = None
        self._cache, self._sample = cache, sample
        self._trace = Trace() if trace is None else trace
        self._span = self._trace.root
        self._toolbox: Any = None
        self.memory = Notes()
        self._notes = {(name,): Notes(begun) for name, begun in (notes or {}).items()}  # shared by all parts
        self._note_tools: dict[str, tuple[str, dict[str, Any]]] = {}
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._waiting: set[Future] = set()
        self._over = threading.Event()
        self._begin()

    def _begin(self) -> None:
        """An empty record."""
        # Messages, tool calls (each in a list of its own, for its answer comes later), and parts.
        self._log: list[dict[str, Any] | list[ToolCall] | Session] = []
        self._said: list[dict[str, Any]] = []  # the conversation that the messages end with
        self._began_at = 0  # its place in the log
        self._asked_in: list[tuple[Span, int, int]] = []  # what of the log a model was asked, and answered
        self._called_in: dict[int, Span] = {}  # by the identity of the call's list in the log
        self._usage, self._turns = Usage(), 0
        self._asked: list[str] = []
        self._returned: list[str] = []
        self._dropped: set[str] = set()
        self._cut = False

    @property
    def tools(self) -> list[dict[str, Any]]:
        tools = [] if self._toolbox is None else self._toolbox.tools
        return [*tools, *(tool for _, tool in self._note_tools.values())] if self._note_tools else tools

    def tools_for(self, servers: Sequence[str] | Mapping[str, Any] | None) -> list[dict[str, Any]]:
        """Those of `tools` that an agent with these ``servers`` is offered."""
        return self.tools if servers is None or self._toolbox is None else self._toolbox.only(servers).tools

    def keep_notes(self, memory: bool | str, name: str, *, offer: bool = True) -> None:
        """Let `memory` be the notes of the agent `name` in this run, or those that last of the name given.

        Parameters
        ----------
        memory : bool or str
            False changes nothing.
        name : str
            Agents of other names have other notes of one run.
        offer : bool
            Whether they are among `tools`.
        """
        if memory is not False:
            key = (memory,) if isinstance(memory, str) else ("", name)
            self.memory = self._notes.setdefault(key, Notes())
            taken = [] if self._toolbox is None else [tool["function"]["name"] for tool in self._toolbox.tools]
            self._note_tools = note_tools(taken) if offer else {}

    @property
    def notes(self) -> dict[str, list[str]]:
        """What was added to the notes that last, by their names."""
        return {key[0]: list(notes.new) for key, notes in self._notes.items() if key[0]}

    @property
    def messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for entry in self._log:
            if isinstance(entry, Session):
                found += entry.messages
            elif isinstance(entry, dict):
                found.append(entry if self.name is None else {**entry, "agent": entry.get("agent", self.name)})
        return found

    @property
    def tool_calls(self) -> list[ToolCall]:
        found: list[ToolCall] = []
        for entry in self._log:
            if not isinstance(entry, dict):
                found += entry.tool_calls if isinstance(entry, Session) else entry
        return found

    @property
    def usage(self) -> Usage:
        return sum((session._usage for session in self._sessions()), Usage())

    @property
    def turns(self) -> int:
        return sum(session._turns for session in self._sessions())

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(model for session in self._sessions() for model in session._asked))

    def part(
        self,
        name: str,
        *,
        task: Task | None = None,
        servers: Sequence[str] | Mapping[str, Sequence[str] | None] | None = None,
        draw: int = 0,
        kind: str = "agent",
    ) -> Any:
        """A session for one of the agents that this one is made of.

        What it does is in the transcript, the tool calls and the usage of this session at once,
        each message with the agent's name.  Parts may work side by side: each has its own place.
        In a ``with`` statement its span (`mcpeval.spans`) ends with the block, and has the error that
        ended it; elsewhere it ends with the last thing that was done in it.

        Parameters
        ----------
        name : str
            Of the agent.
        task : Task, optional
            What the agent is asked; this session's task where there is none.
        servers : sequence of str, or mapping, optional
            The only MCP servers whose tools it is offered; a mapping names the only tools of each.
        draw : int
            Agents that ask a model the very same get answers of their own where this differs.
        kind : {"agent", "workflow"}
            Of its span.

        Returns
        -------
        Session
        """
        part = copy.copy(self)  # the cache, the loop, what is waited for and the end are shared
        part.name, part.task = name, self.task if task is None else task
        part._sample += draw * DRAW
        part.memory, part._note_tools = Notes(), {}
        if servers is not None:
            part.offered = narrowed(self.offered, servers)
            part.servers = tuple(server for server in self.servers if server.name in part.offered)
            if self._toolbox is not None:
                part._toolbox = self._toolbox.only(servers)
        part._begin()
        part._span = self._trace.open(kind, name, self._span, ends_itself=False)
        self._log.append(part)
        return part

    def __enter__(self) -> Session:
        self._span.ends_itself = True
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self._trace.close(self._span, error)

    def include(self, run: Run) -> None:
        """Take into the record what an agent did elsewhere and tells in its `Run`."""
        self._log += copy.deepcopy([dict(message) for message in run.messages])
        self._log += [[call] for call in run.tool_calls]
        self._usage += run.usage
        self._span.uses(run.usage)
        self._turns += run.turns

    def _sessions(self) -> Iterator[Session]:
        """This one and its parts, at any depth."""
        yield self
        for entry in self._log:
            if isinstance(entry, Session):
                yield from entry._sessions()

    def complete(self, messages: Sequence[Mapping[str, Any]], *, model: str | None = None, **params: Any) -> Any:
        """Ask a model.

        Parameters
        ----------
        messages : list of dict
            OpenAI chat messages; the whole conversation, each time.
        model : str, optional
            A LiteLLM model string; `mcpeval.default_model` where there is none.
        **params
            Whatever `mcpeval.llm.complete` takes: ``tools``, ``temperature``, ``api_base``, ...

        Returns
        -------
        Completion
            ``.message`` is the model's chat message, ``.message["content"]`` its text.

        Raises
        ------
        ModelError, CacheMiss
        """
        return self._answer(self._complete(messages, model, params))

    def call_tool(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> Any:
        """Call one of `tools`.

        Parameters
        ----------
        name : str
            As in `tools`.
        arguments : dict or str
            A text is read as JSON, as models write it.

        Returns
        -------
        ToolCall
            Of a tool that failed, is not there, or was given no JSON object, too: it has
            ``is_error``, and `show` says what the model should be told.
        """
        name, arguments = str(name), {} if arguments is None else arguments
        # The place is taken now, so that calls made side by side are kept in the order asked for.
        place = [ToolCall(None, name, arguments, is_error=True, error=UNANSWERED)]
        self._log.append(place)
        return self._answer(self._call_tool(place, name, arguments))

    def show(self, call: ToolCall) -> str:
        """The text that tells a model what came of `call`; a huge result is cut, with a marker."""
        if self._toolbox is None:
            return call_text(call)
        self._cut = self._cut or self._toolbox.is_cut(call)
        return self._toolbox.text(call)

    def record(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Bring the transcript up to `messages`, the whole of a conversation so far."""
        messages = list(messages)
        if messages[: len(self._said)] == self._said:
            messages = messages[len(self._said) :]
        else:
            self._said = []
        if not self._said:
            self._began_at = len(self._log)
        messages = copy.deepcopy(messages)
        self._said += messages
        self._log += messages

    def ended(self, answer: Any = None, **ending: Any) -> Run:
        """The run, as recorded, with the agent's answer.

        Parameters
        ----------
        answer : str, Run, dict, list, number or None
            What the agent returned.  Fields of a `Run` that it left empty are filled from the
            record, its usage is added to the record's; dicts, lists and numbers become JSON text.
        **ending
            Other fields of the run: ``status``, ``error``, ``error_class``, ...

        Raises
        ------
        TypeError
            The answer is none of these.
        """
        given = answer if isinstance(answer, Run) else Run(answer)
        metadata = {**self.metadata(), **given.metadata, **ending.pop("metadata", {})}
        fields = {
            "output": text_of(given.output),
            "messages": list(given.messages) or self.messages,
            "tool_calls": list(given.tool_calls) or self.tool_calls,
            "status": given.status,
            "error": given.error,
            "error_class": given.error_class,
            "turns": given.turns or self.turns,
            "usage": self.usage + given.usage,
            **ending,
        }
        if not given.spans:
            fields["spans"] = self._spans(given, fields["error"], fields["error_class"])
        return Run(**{"spans": given.spans, **fields}, metadata=metadata)

    def _spans(self, given: Run, error: str | None, error_class: str | None) -> list[dict[str, Any]]:
        """The spans so far; places in messages and calls are told where those are the session's own."""
        self._span.uses(given.usage)
        self._place(0, 0, messages=not given.messages, calls=not given.tool_calls)
        return self._trace.ended(error=error, error_class=error_class)

    def _place(self, message: int, call: int, *, messages: bool, calls: bool) -> tuple[int, int]:
        """Tell the spans where theirs stands, in a transcript that has so many messages and calls already."""
        at = []
        for entry in list(self._log):
            at.append(message)
            if isinstance(entry, Session):
                message, call = entry._place(message, call, messages=messages, calls=calls)
            elif isinstance(entry, dict):
                message += 1
            else:
                if calls and id(entry) in self._called_in:
                    self._called_in[id(entry)].tool_call = call
                call += len(entry)
        at.append(message)
        for span, first, stop in list(self._asked_in) if messages else ():
            span.messages = [at[first], at[stop]]
        return message, call

    def metadata(self) -> dict[str, Any]:
        """What the row says besides its columns: models as returned, servers, what was dropped or cut."""
        sessions = list(self._sessions())
        return {
            "model_returned": list(dict.fromkeys(model for session in sessions for model in session._returned)),
            "dropped_params": sorted(set().union(*(session._dropped for session in sessions))),
            "servers": [] if self._toolbox is None else list(self._toolbox.provenance),
            "truncated": any(session._cut for session in sessions),
        }

    def open(self, toolbox: Any) -> None:
        """Offer the tools of `toolbox` from now on."""
        self._toolbox = toolbox

    def close(self) -> None:
        """Answer nothing any more, and cancel what a thread waits for."""
        self._over.set()
        for future in list(self._waiting):
            future.cancel()

    def _answer(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """`coroutine` itself in the loop's thread; in any other thread, what it gives."""
        if threading.get_ident() == self._thread:
            return coroutine
        if self._over.is_set():
            coroutine.close()
            raise RuntimeError("the run that this session belongs to is over")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        self._waiting.add(future)
        try:
            return future.result()
        finally:
            self._waiting.discard(future)

    async def _complete(self, messages: Sequence[Mapping[str, Any]], model: str | None, params: dict[str, Any]) -> Any:
        model = default_model() if model is None else model
        if model not in self._asked:
            self._asked.append(model)
        if isinstance(messages, (str, Mapping)):
            raise InputError(f"session.complete: messages={messages!r:.80} should be a list of chat messages, {ONE}")
        sent = [sendable(message) for message in messages]
        with self._trace.opened("llm", model, self._span, part=self.name) as span:
            try:
                completion = await llm.complete(model, sent, sample=self._sample, cache=self._cache, **params)
            except ModelError as error:
                self._usage += error.usage or Usage()
                span.uses(error.usage)
                raise
            finally:
                self.record(messages)
                self._asked_in.append((span, self._began_at, len(self._log)))
            self._note(completion)
            span.answered(completion)
            self.record([*messages, completion.message])
            self._asked_in.append((span, self._began_at, len(self._log)))
        return completion

    def _note(self, completion: Any) -> None:
        self._turns += 1
        self._usage += completion.usage
        self._dropped.update(completion.dropped)
        self._cut = self._cut or completion.finish_reason == "length"
        if completion.model not in self._returned:
            self._returned.append(completion.model)

    async def _call_tool(self, place: list[ToolCall], name: str, arguments: Any) -> ToolCall:
        with self._trace.opened("tool", name, self._span, part=self.name) as span:
            self._called_in[id(place)] = span
            span.outcome = {"tool_call": place[0]}
            self._trace.tell("tool_called", span, tool_call=ToolCall(None, name, arguments_of(arguments)[0]))
            call = await self._made(place, name, arguments)
            span.called(call, self.show(call) if call.is_error else None)
        return call

    async def _made(self, place: list[ToolCall], name: str, arguments: Any) -> ToolCall:
        arguments, problem = arguments_of(arguments)
        if problem is None and name in self._note_tools:
            place[0] = call_notes(self.memory, self._note_tools[name][0], arguments)
            return place[0]
        if problem is None and self._toolbox is None:
            problem = f"There is no tool {name!r}: no tools are offered."
        if self._toolbox is None:
            call = ToolCall(None, name, arguments, is_error=True, error=problem)
        else:
            call = await self._toolbox.call(name, arguments)
            if problem is not None and call.server is not None:
                call = replace(call, error=problem)
        place[0] = call
        return call


def narrowed(
    offered: Mapping[str, Sequence[str] | None], servers: Sequence[str] | Mapping[str, Sequence[str] | None]
) -> dict[str, Sequence[str] | None]:
    """What of the servers and tools `offered` is left where only `servers` may be used.

    Both name the only tools of a server, or None for all of them.
    """
    left: dict[str, Sequence[str] | None] = {}
    for name, tools in offered.items():
        if name in servers:
            only = servers[name] if isinstance(servers, Mapping) else None
            left[name] = tools if only is None else only if tools is None else [t for t in only if t in tools]
    return left


def text_of(answer: Any) -> str | None:
    """An answer as the text that is scored: JSON for what is structured, never Python's repr."""
    if answer is None or isinstance(answer, str):
        return answer
    if isinstance(answer, (Mapping, list, tuple, bool, int, float)):
        return json.dumps(answer, ensure_ascii=False)
    kind = type(answer).__name__
    raise TypeError(
        f"the agent returned a {kind}; expected a text, a Run, None, or a dict, list or number of JSON values"
    )
