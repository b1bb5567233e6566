"""Every exception that mcpeval raises on purpose.

::

    McpevalError
    ├── InputError (ValueError)      what the caller wrote cannot be meant: a name, a value, a column
    │   ├── ChainError               a rule's chain, with a caret under the place
    │   └── FileError                a task, server or benchmark file, with its path and line
    ├── ModelError                   a provider did not give a usable answer
    ├── ServerError                  an MCP server did not start, died, or did not answer
    ├── CacheMiss (LookupError)      ``replay=True`` and the answer is not in the cache
    └── CacheError                   the cache holds, or was given, what it must not hold

An `InputError` is raised before anything is started or paid for.  The others belong to one row
of a frame: `run` and `score` turn them into that row's ``status`` and ``error``.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class McpevalError(Exception):
    """The root of the tree above."""


class InputError(McpevalError, ValueError):
    """The caller's argument cannot be used; the message names it and what was expected."""


class ChainError(InputError):
    """A rule's chain cannot be read.

    Parameters
    ----------
    message : str
        What is wrong, and the nearest right spelling.
    chain : str
        The chain as written.
    position : int
        Offset of the fault in `chain`; a caret is drawn under it.
    """

    def __init__(self, message: str, chain: str, position: int) -> None:
        self.chain, self.position = chain, position
        super().__init__(f"{message}\n  {chain}\n  {' ' * position}^")


class FileError(InputError):
    """A file cannot be read as what it should be.

    Parameters
    ----------
    message : str
    path : str or os.PathLike
    line : int, optional
        Line of the fault, counted from 1.
    """

    def __init__(self, message: str, path, line: int | None = None) -> None:
        self.path, self.line = str(path), line
        super().__init__(f"{path}{'' if line is None else f', line {line}'}: {message}")


class ModelError(McpevalError):
    """A provider failed, refused, or answered with nothing that can be used.

    Parameters
    ----------
    message : str
    error_class : str
        ``model`` (refused, unknown model, bad request, server fault), ``rate``, ``timeout``,
        ``context`` (prompt too long), ``auth``, ``truncated`` (cut at `max_tokens`), ``filtered``.
    status_code : int, optional
        The HTTP status, where there was one.
    usage : mcpeval.types.Usage, optional
        What the failed attempts cost all the same.
    """

    def __init__(self, message: str, *, error_class: str = "model", status_code: int | None = None, usage=None) -> None:
        super().__init__(message)
        self.error_class, self.status_code, self.usage = error_class, status_code, usage


class ServerError(McpevalError):
    """An MCP server did not start, died, or did not answer in time.

    Parameters
    ----------
    message : str
        Ends with the tail of the server's stderr where it said something.
    server : str
        Name of the server in the server file.
    timed_out : bool
        Whether a time limit was what ended the wait.
    """

    error_class = "server"

    def __init__(self, message: str, *, server: str, timed_out: bool = False) -> None:
        super().__init__(message)
        self.server, self.timed_out = server, timed_out


class CacheMiss(McpevalError, LookupError):
    """An answer was to be replayed, and the cache does not have it."""

    error_class = "replay"


class CacheError(McpevalError):
    """A value that cannot be kept as JSON, or an entry that mcpeval did not write."""


def is_one_of(value: object, known: Iterable[object]) -> bool:
    """Whether `value` is one of the `known` words, or None where that is among them.

    An array or a frame, which ``==`` compares cell by cell, is none.

    Examples
    --------
    >>> is_one_of("mean", ("mean", "median")), is_one_of(["mean"], ("mean", "median"))
    (True, False)
    """
    return any(value is each or isinstance(value, str) and value == each for each in known)


def check_threshold(threshold: object, who: str) -> None:
    """Refuse a threshold that no score can reach, or that is none; None is one that was not given."""
    is_number = isinstance(threshold, (int, float)) and not isinstance(threshold, bool)
    if threshold is not None and not (is_number and 0 <= threshold <= 1):
        raise InputError(f"{who}: threshold={threshold!r} should be a score from 0 to 1, or None")


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """The end of an error message: the nearest right spelling, else all of them.

    Examples
    --------
    >>> did_you_mean("gett", ["get", "json"])
    "Did you mean 'get'?"
    >>> did_you_mean("xyz", ["get", "json"])
    'Known: get, json.'
    """
    known = sorted(known)
    if not known:
        return "There are none."
    near = get_close_matches(str(word), known, n=1, cutoff=0.6)
    return f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known)}."
