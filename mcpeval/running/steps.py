"""``progress="verbose"``: what models say and which tools they call, printed as it happens."""

from __future__ import annotations

import json
from typing import Any

from ..events import Event
from ..servers.results import call_text

#: Characters of a text that is shown.
SHOWN = 500


class Steps:
    """Prints what happens in runs, a line for each `Event`, on stderr or below a notebook's cell.

    What models and tools write is shown as it is, on one line, without control characters; a long
    text is cut, with the number of characters that are left out.

    Parameters
    ----------
    console : rich.console.Console, optional
    """

    def __init__(self, console: Any = None) -> None:
        if console is None:
            from rich.console import Console

            console = Console(stderr=True)
        self._console = console

    def __call__(self, event: Event) -> None:
        from rich.text import Text

        who = " · ".join([event.task_id, event.agent, *([f"trial {event.trial}"] if event.trial else [])])
        if event.part is not None:
            who += f" · {event.part}"
        head, style, text = _step(event)
        # A Text is printed as it is: what looks like markup in it is none.
        line = Text.assemble((f"{event.seconds:6.1f} s  ", "dim"), (_shown(who), "cyan"), "  ", (head, style))
        line.append(f" {_shown(text)}" if text else "")
        self._console.print(line, highlight=False, soft_wrap=not self._console.is_jupyter)


def _step(event: Event) -> tuple[str, str, str]:
    """What happened, the style of that, and the text that goes with it."""
    call = event.tool_call
    if event.kind == "run_started":
        return "starts", "bold", ""
    if event.kind == "model_answered" and event.message is None:
        return "model failed:", "red", event.error or ""
    if event.kind == "model_answered":
        calls = [asked.get("function") or {} for asked in event.message.get("tool_calls") or ()]
        asked = ", ".join(f"{call.get('name')}({call.get('arguments')})" for call in calls)
        return "says:", "green", " -> ".join(text for text in (event.message.get("content"), asked) if text)
    if event.kind == "tool_called":
        arguments = call.arguments
        given = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
        return "calls", "yellow", f"{call.name}({given})"
    if event.kind == "tool_answered":
        failed = call.is_error
        return f"{call.name} {'failed' if failed else 'answered'}:", "red" if failed else "blue", call_text(call)
    if event.error_class is not None:
        return f"ends, {event.error_class}:", "bold red", event.error or ""
    cost = event.usage.cost_usd
    paid = "from the cache" if event.usage.cached else "cost unknown" if cost is None else f"${cost:.4f}"
    return f"ends ({paid}):", "bold green", event.run.output or ""


def _shown(text: str) -> str:
    """`text` on one line, cut, and without what a terminal would obey."""
    text = " ".join(text.split())
    if len(text) > SHOWN:
        text = f"{text[:SHOWN]} [... {len(text) - SHOWN} characters more]"
    return "".join(character if character.isprintable() else "\ufffd" for character in text)
