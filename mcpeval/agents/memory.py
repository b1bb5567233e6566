"""Notes that an agent keeps: while it works on one task, or from one task to the next.

``Agent(memory=True)`` has notes for one run; ``Agent(memory="a name")`` finds those of its earlier
runs, which the cache keeps (`mcpeval.running`).  A model reads and writes them with two tools beside
those of the MCP servers; a callable has them as ``session.memory``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import InputError
from ..messages import wire_result
from ..types import ToolCall

#: What stands for the server of a tool call that was one of the notes.
SERVER = "(memory)"
REMEMBER = "Keep a note for later."
RECALL = "Read your notes: all of them, or those in which all of some words occur."
NONE = "There are no such notes."
KEPT = "Note {number} is kept."


class Notes:
    """What an agent has noted, in order.

    Parameters
    ----------
    begun : sequence of str
        The notes that are there already.

    Attributes
    ----------
    new : list of str
        Those that came since.
    """

    def __init__(self, begun: Sequence[str] = ()) -> None:
        self._begun = tuple(begun)
        self.new: list[str] = []

    def remember(self, note: str) -> int:
        """Keep `note`, a text that is not empty; its number, from 1."""
        if not isinstance(note, str) or not note.strip():
            raise InputError(f"remember: note={note!r:.80} should be a text that is not empty")
        self.new.append(note)
        return len(self)

    def recall(self, words: str = "") -> list[str]:
        """The notes in which every one of `words` occurs, in whatever case; all of them without words."""
        wanted = str(words or "").casefold().split()
        return [note for note in self if all(word in note.casefold() for word in wanted)]

    def __iter__(self) -> Iterator[str]:
        yield from (*self._begun, *self.new)

    def __len__(self) -> int:
        return len(self._begun) + len(self.new)

    def __repr__(self) -> str:
        return f"Notes({list(self)!r})"


def note_tools(taken: Iterable[str]) -> dict[str, tuple[str, dict[str, Any]]]:
    """The tools of the notes by the names that a model calls them; each with its own name.

    A server's tool that has a name already keeps it.
    """
    text = {"type": "string"}
    found, taken = {}, set(taken)
    for name, about, properties, required in (
        ("remember", REMEMBER, {"note": text}, ["note"]),
        ("recall", RECALL, {"words": text}, []),
    ):
        alias = f"memory__{name}" if name in taken else name
        schema = {"type": "object", "properties": properties, "required": required}
        function = {"name": alias, "description": about, "parameters": schema}
        found[alias] = name, {"type": "function", "function": function}
    return found


def call_notes(notes: Notes, tool: str, arguments: Any) -> ToolCall:
    """What one of the `note_tools` answers to a model."""
    given = arguments if isinstance(arguments, Mapping) else {}
    try:
        if tool == "remember":
            said = KEPT.replace("{number}", str(notes.remember(given.get("note"))))
        else:
            said = "\n".join(f"- {note}" for note in notes.recall(given.get("words"))) or NONE
    except InputError as error:
        return ToolCall(SERVER, tool, arguments, is_error=True, error=str(error))
    return ToolCall(SERVER, tool, arguments, wire_result(said))


def memory_of(given: Any, who: str) -> bool | str:
    """What `memory=` says: nothing is kept, notes of one run, or the name of those that last."""
    if isinstance(given, bool | None):
        return bool(given)
    if not isinstance(given, str) or not given.strip():
        raise InputError(f"{who}: memory={given!r:.80} should be True (for one run) or the name of notes that last")
    return given
