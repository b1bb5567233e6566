"""What an agent has at hand while it works on one task, and the record of what it did."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import Any

from .. import llm
from ..errors import ModelError
from ..local import default_model
from ..types import Run, Task, ToolCall, Usage

UNANSWERED = "The run ended before the tool answered."
RECALL = "Call the tool again with a JSON object."


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
    messages : list of dict
        The transcript so far.  A conversation that goes on is written once; one that starts anew
        follows the one before.
    tool_calls : list of ToolCall
        In the order in which they were asked for.
    usage : Usage
        Of every answer and of every failed attempt.
    turns : int
        Answers of models.
    """

    def __init__(self, task: Task, *, cache: Any = None, sample: int = 0) -> None:
        self.task, self.usage, self.turns = task, Usage(), 0
        self.messages: list[dict[str, Any]] = []
        self.models: list[str] = []
        self._calls: list[list[ToolCall]] = []
        self._cache, self._sample = cache, sample
        self._toolbox: Any = None
        self._start = 0  # where the conversation begins that the transcript ends with
        self._returned: list[str] = []
        self._dropped: set[str] = set()
        self._cut = False
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._waiting: set[Future] = set()
        self._closed = False

    @property
    def tools(self) -> list[dict[str, Any]]:
        return [] if self._toolbox is None else self._toolbox.tools

    @property
    def tool_calls(self) -> list[ToolCall]:
        return [call for (call,) in self._calls]

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
        self._calls.append(place)
        return self._answer(self._call_tool(place, name, arguments))

    def show(self, call: ToolCall) -> str:
        """The text that tells a model what came of `call`; a huge result is cut, with a marker."""
        if self._toolbox is None:
            return call.error or ""
        self._cut = self._cut or self._toolbox.is_cut(call)
        return self._toolbox.text(call)

    def record(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Bring the transcript up to `messages`, the whole of a conversation so far."""
        messages = list(messages)
        known = self.messages[self._start :]
        if messages[: len(known)] == known:
            messages = messages[len(known) :]
        else:
            self._start = len(self.messages)
        self.messages += copy.deepcopy(messages)

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
        return Run(**fields, metadata=metadata)

    def metadata(self) -> dict[str, Any]:
        """What the row says besides its columns: models as returned, servers, what was dropped or cut."""
        return {
            "model_returned": list(self._returned),
            "dropped_params": sorted(self._dropped),
            "servers": [] if self._toolbox is None else list(self._toolbox.provenance),
            "truncated": self._cut,
        }

    def open(self, toolbox: Any) -> None:
        """Offer the tools of `toolbox` from now on."""
        self._toolbox = toolbox

    def close(self) -> None:
        """Answer nothing any more, and cancel what a thread waits for."""
        self._closed = True
        for future in list(self._waiting):
            future.cancel()

    def _answer(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """`coroutine` itself in the loop's thread; in any other thread, what it gives."""
        if threading.get_ident() == self._thread:
            return coroutine
        if self._closed:
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
        if model not in self.models:
            self.models.append(model)
        sent = [_sendable(message) for message in messages]
        try:
            completion = await llm.complete(model, sent, sample=self._sample, cache=self._cache, **params)
        except ModelError as error:
            self.usage += error.usage or Usage()
            raise
        finally:
            self.record(messages)
        self._note(completion)
        self.record([*messages, completion.message])
        return completion

    def _note(self, completion: Any) -> None:
        self.turns += 1
        self.usage += completion.usage
        self._dropped.update(completion.dropped)
        self._cut = self._cut or completion.finish_reason == "length"
        if completion.model not in self._returned:
            self._returned.append(completion.model)

    async def _call_tool(self, place: list[ToolCall], name: str, arguments: Any) -> ToolCall:
        arguments, problem = _arguments(arguments)
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


def _arguments(given: Any) -> tuple[Any, str | None]:
    """Tool arguments as a dict, or as given with what is wrong with them."""
    if isinstance(given, Mapping):
        return dict(given), None
    if isinstance(given, str) and not given.strip():
        return {}, None
    try:
        value = json.loads(given, strict=False)
    except (TypeError, ValueError, RecursionError) as error:
        return given, f"The arguments are not valid JSON ({error}). {RECALL}"
    return (value, None) if isinstance(value, dict) else (given, f"The arguments are not a JSON object. {RECALL}")


def _sendable(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """`message` with the arguments of its tool calls as JSON objects.

    Some providers read them when the conversation goes on, and refuse all of it where a model once
    wrote bad JSON.  The transcript keeps the text as the model wrote it.
    """
    if not message.get("tool_calls"):
        return message
    return {**message, "tool_calls": [_sendable_call(call) for call in message["tool_calls"]]}


def _sendable_call(call: Mapping[str, Any]) -> Mapping[str, Any]:
    given = call["function"].get("arguments")
    with suppress(TypeError, ValueError, RecursionError):
        if isinstance(json.loads(given), dict):
            return call
    value, problem = _arguments(given)
    text = json.dumps({"not_a_json_object": given} if problem else value)
    return {**call, "function": {**call["function"], "arguments": text}}
