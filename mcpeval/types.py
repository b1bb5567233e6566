"""The objects behind the rows: a task, a run of it, a tool call, what it cost, a score.

Each is a frozen dataclass of plain JSON values: `to_dict` gives the dict that a frame's row, a
cache entry and a JSON file hold, `from_dict` reads it back.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cache as memo
from typing import Any

from .errors import InputError, did_you_mean

RUN_STATUSES = ("ok", "error")
#: Kinds of errors that are the agent's own doing: such a run is finished. It is kept in the cache, and scored as
#: what it is, an answer that is not there. Whatever else ended a run says nothing of the agent.
OWN_DOING = ("turn_limit", "bad_json")
SCORE_STATUSES = ("ok", "error", "unparsed", "skipped", "budget")
_SERVER_KEYS = ("name", "tools")


@memo
def _names(cls: type) -> frozenset[str]:
    return frozenset(f.name for f in fields(cls))


def _known(cls: type, data: Mapping[str, Any]) -> dict[str, Any]:
    names = _names(cls)
    return {key: value for key, value in data.items() if key in names}


def content_id(data: Any) -> str:
    """A short name for what has none: twelve hex digits of its content."""
    try:
        text = json.dumps(data, sort_keys=True, default=str)
    except TypeError:  # keys that are no texts
        text = repr(data)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _is_list_of(value: Any, kind: type) -> bool:
    return isinstance(value, Sequence) and all(isinstance(item, kind) for item in value)


def _sum(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a + b


@dataclass(frozen=True)
class Usage:
    """What some calls to models used; adding two gives the usage of both.

    Attributes
    ----------
    tokens_in, tokens_out : int or None
        None where a provider did not say (unknown is not zero).
    cost_usd : float or None
        US dollars paid now; None where the price is unknown, 0 for what came from the cache.
    seconds : float
        Wall time of the calls, as measured when they were made.
    calls, cached_calls : int
        HTTP answers used, and how many of them came from the cache.
    saved_usd : float or None
        What the cached answers cost when they were paid for.
    """

    tokens_in: int | None = 0
    tokens_out: int | None = 0
    cost_usd: float | None = 0.0
    seconds: float = 0.0
    calls: int = 0
    cached_calls: int = 0
    saved_usd: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            _sum(self.tokens_in, other.tokens_in),
            _sum(self.tokens_out, other.tokens_out),
            _sum(self.cost_usd, other.cost_usd),
            self.seconds + other.seconds,
            self.calls + other.calls,
            self.cached_calls + other.cached_calls,
            _sum(self.saved_usd, other.saved_usd),
        )

    @property
    def cached(self) -> bool:
        """Whether there were calls and every one was answered by the cache."""
        return self.calls > 0 and self.cached_calls == self.calls

    def from_cache(self) -> Usage:
        """The same usage when it is answered by the cache: nothing is paid, the price is kept."""
        return replace(self, cost_usd=0.0, cached_calls=self.calls, saved_usd=_sum(self.saved_usd, self.cost_usd))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Usage:
        return cls(**_known(cls, data))


@dataclass(frozen=True)
class ToolCall:
    """One call of an MCP tool and what came back.

    Attributes
    ----------
    server, name : str or None, str
        The MCP server and the tool's own name there (not the alias shown to a model). `server`
        is None where the model asked for a tool that no server offers.
    arguments : dict or str
        As the model gave them; the raw text where it was not a JSON object.
    result : dict or None
        The wire result (camelCase JSON: ``content``, ``structuredContent``, ``isError``); None
        where the call never reached a server or the server did not answer.
    is_error : bool
        Whether the tool, the server or the arguments failed.
    error : str or None
        What the model was told instead of a result, where there is none.
    seconds : float
    denied : bool
        Whether the permissions of the run forbade the call, which was not made.
    """

    server: str | None
    name: str
    arguments: Any = field(default_factory=dict)
    result: dict[str, Any] | None = None
    is_error: bool = False
    error: str | None = None
    seconds: float = 0.0
    denied: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; ``denied`` is in it only where it is true."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "denied" or self.denied}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolCall:
        return cls(**_known(cls, data))


@dataclass(frozen=True)
class Task:
    """One question, the MCP servers it may use, and how its answer is scored.

    A superset of MCP-Universe's task format; keys it does not know are kept in `extra`.

    Attributes
    ----------
    id : str
        Unique within a run.
    question : str
        ``{{VAR}}`` in it stands for a variable of the environment, where that is there and by its name
        no secret.
    category : str
    output_format : dict, list, str or None
        The form the answer should have; shown to the agent.
    mcp_servers : list of dict
        ``{"name": ..., "tools": [...]}``; `tools`, optional, names the only tools offered.
    use_specified_server : bool
        Whether only `mcp_servers` are offered. False offers every server of the run.
    evaluators : list
        Rules as dicts (``{"func", "op", "value"}``), or evaluators.
    reference : any
        The right answer, where there is one.
    expected_tool_calls : list of dict or None
    tags : list of str
    prepares, cleanups : list of dict
        What is done before the agent begins and after it has ended (`mcpeval.preparing`):
        ``{"prepare_func", "prepare_args"}`` names a registered function or, with ``"server"``, a tool;
        ``{"server", "tool", "cleanup_func", "cleanup_args"}`` is made after each call of that tool.
    workdir : str or None
        A folder of which each run gets a fresh copy; ``{{WORKDIR}}`` names the copy in the question,
        in prepares and clean-ups, and in definitions of servers.  In a file, relative to that file.
    extra : dict
        Every other key of the file.
    """

    id: str
    question: str
    category: str = "general"
    output_format: Any = None
    mcp_servers: Sequence[Mapping[str, Any]] = ()
    use_specified_server: bool = True
    evaluators: Sequence[Any] = ()
    reference: Any = None
    expected_tool_calls: Sequence[Mapping[str, Any]] | None = None
    tags: Sequence[str] = ()
    prepares: Sequence[Mapping[str, Any]] = ()
    cleanups: Sequence[Mapping[str, Any]] = ()
    workdir: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", str(self.id))
        if not isinstance(self.question, str) or not self.question.strip():
            raise InputError(f"task {self.id!r}: question={self.question!r} should be a text that is not empty")
        if not isinstance(self.category, str):
            raise InputError(f"task {self.id!r}: category={self.category!r} should be a text")
        if not isinstance(self.use_specified_server, bool):
            given = self.use_specified_server
            raise InputError(f"task {self.id!r}: use_specified_server={given!r} should be true or false")
        if not isinstance(self.workdir, str | None) or self.workdir == "":
            raise InputError(f"task {self.id!r}: workdir={self.workdir!r} should be the path of a folder")
        for name in ("mcp_servers", "evaluators", "tags", "expected_tool_calls", "prepares", "cleanups"):
            value = getattr(self, name)
            if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence | None):
                raise InputError(f"task {self.id!r}: {name}={value!r} should be a list")
        object.__setattr__(self, "mcp_servers", tuple(self._server(s) for s in self.mcp_servers))

    def _server(self, given: Any) -> Mapping[str, Any]:
        server = {"name": given} if isinstance(given, str) else given
        if not isinstance(server, Mapping) or not isinstance(server.get("name"), str):
            expected = "a name or {'name': ..., 'tools': [...]}"
            raise InputError(f"task {self.id!r}: mcp_servers has {given!r}; expected {expected}")
        for key in server:
            if key not in _SERVER_KEYS and (near := get_close_matches(str(key), _SERVER_KEYS, n=1, cutoff=0.8)):
                raise InputError(f"task {self.id!r}: mcp_servers has the key {key!r}. Did you mean {near[0]!r}?")
        tools = server.get("tools")
        if isinstance(tools, str) or not _is_list_of(tools or (), str):
            name = server["name"]
            raise InputError(f"task {self.id!r}: the tools of {name!r} are {tools!r:.200}; expected a list of names")
        return server

    def to_dict(self) -> dict[str, Any]:
        data = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "extra"}
        return {**data, **self.extra}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, default_id: str | None = None) -> Task:
        """Read a task; a key that is one slip away from a known one is an error.

        Raises
        ------
        InputError
            `question` is missing or empty, a value has the wrong type, or a key is misspelt.
        """
        if not isinstance(data, Mapping):
            raise InputError(f"a task should be a JSON object, not {type(data).__name__}: {data!r:.80}")
        names = [f.name for f in fields(cls) if f.name != "extra"]
        for key in data:
            if key not in names and (near := get_close_matches(str(key), names, n=1, cutoff=0.8)):
                raise InputError(f"unknown key {key!r} in a task. Did you mean {near[0]!r}?")
        if "question" not in data:
            raise InputError(f"a task needs 'question'; this one has: {', '.join(map(str, data)) or 'nothing'}")
        # A null stands for what is not there; but a question has to be.
        known = {key: value for key, value in data.items() if key in names and (value is not None or key == "question")}
        extra = {key: value for key, value in data.items() if key not in names}
        return cls(**{"id": default_id or content_id(data), **known, "extra": extra})


@dataclass(frozen=True)
class Run:
    """One agent at one task, once: the answer and everything that led to it.

    Attributes
    ----------
    output : str or None
        The final answer; None where the run ended without one.
    messages : list of dict
        OpenAI chat messages, as sent and received.
    tool_calls : list of ToolCall
    spans : list of dict
        What was done, and when (`mcpeval.tracing.Span.to_dict`); `mcpeval.spans` makes a frame of them.
    status : {"ok", "error"}
    error, error_class : str or None
        What ended the run, and its kind: ``model``, ``bad_json``, ``turn_limit``, ``context``,
        ``timeout``, ``rate``, ``server``, ``harness``.
    turns : int
        Answers of the model.
    usage : Usage
    seconds : float
        Wall time of the whole run, servers and tools included.
    metadata : dict
        ``dropped_params``, ``model_returned``, ``servers``, ``truncated``, ...
    """

    output: str | None = None
    messages: Sequence[Mapping[str, Any]] = ()
    tool_calls: Sequence[ToolCall] = ()
    status: str = "ok"
    error: str | None = None
    error_class: str | None = None
    turns: int = 0
    usage: Usage = Usage()
    seconds: float = 0.0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    spans: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        if self.status not in RUN_STATUSES:
            raise InputError(f"Run: status={self.status!r}. {did_you_mean(self.status, RUN_STATUSES)}")
        for name, kind in (("messages", Mapping), ("tool_calls", ToolCall), ("spans", Mapping)):
            if not _is_list_of(getattr(self, name), kind):
                expected = "dicts" if kind is Mapping else "ToolCall"
                raise InputError(f"Run: {name}={getattr(self, name)!r:.200} should be a list of {expected}")
        if not isinstance(self.metadata, Mapping):
            raise InputError(f"Run: metadata={self.metadata!r:.200} should be a dict")

    def to_dict(self) -> dict[str, Any]:
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        return {
            **data,
            "messages": [dict(m) for m in self.messages],
            "tool_calls": [c.to_dict() for c in self.tool_calls],
            "usage": self.usage.to_dict(),
            "metadata": dict(self.metadata),
            "spans": [dict(span) for span in self.spans],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Run:
        return cls(
            **{
                **_known(cls, data),
                "tool_calls": [ToolCall.from_dict(c) for c in data.get("tool_calls", ())],
                "usage": Usage.from_dict(data.get("usage", {})),
            }
        )


@dataclass(frozen=True)
class Score:
    """What one evaluator says of one run.

    Parameters
    ----------
    score : float or None
        In [0, 1]; None or NaN where nothing could be said.
    reason : str
    passed : bool, optional
        Taken from the score (1 passes, 0 does not) where it is not given and the score is 0 or 1;
        not so beside a `label` that is graded (5, "B"): whether that passes is its evaluator's to say.
    label : any, optional
        The raw verdict: 4, "B", True.
    status : {"ok", "error", "unparsed", "skipped", "budget"}
        Anything but ``ok`` has no score: a failure to score is never a low score. A missing
        score that comes with ``ok`` is ``skipped``.
    error : str, optional
    usage : Usage, optional
    metadata : dict, optional

    Raises
    ------
    InputError
        The score is outside [0, 1], the status is unknown, or a status other than ``ok`` comes
        with a score.
    """

    score: float | None
    reason: str = ""
    passed: bool | None = field(default=None, kw_only=True)
    label: Any = field(default=None, kw_only=True)
    status: str = field(default="ok", kw_only=True)
    error: str | None = field(default=None, kw_only=True)
    usage: Usage | None = field(default=None, kw_only=True)
    metadata: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        if self.status not in SCORE_STATUSES:
            raise InputError(f"Score: status={self.status!r}. {did_you_mean(self.status, SCORE_STATUSES)}")
        try:
            score = math.nan if self.score is None else float(self.score)
        except (TypeError, ValueError, OverflowError):
            score = math.inf
        if not math.isnan(score) and not 0.0 <= score <= 1.0:
            raise InputError(f"Score: score={self.score!r:.100} should be a number from 0 to 1, or None")
        if not math.isnan(score) and self.status != "ok":
            raise InputError(f"Score: status={self.status!r} cannot come with a score ({self.score!r}); give None")
        object.__setattr__(self, "score", score)
        if math.isnan(score) and self.status == "ok":
            object.__setattr__(self, "status", "skipped")
        if self.passed is None and isinstance(self.label, bool | None) and score in (0.0, 1.0):
            object.__setattr__(self, "passed", score == 1.0)

    def to_dict(self) -> dict[str, Any]:
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        return {
            **data,
            "score": None if math.isnan(self.score) else self.score,
            "usage": self.usage and self.usage.to_dict(),
            "metadata": dict(self.metadata),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Score:
        usage = data.get("usage")
        return cls(**{**_known(cls, data), "usage": usage and Usage.from_dict(usage)})
