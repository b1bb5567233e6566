"""What a judge is shown of a row's columns: texts, transcripts, tool calls, images."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from .cutting import Part

NONE = "(none)"

#: From a part of a message or a result that is an image to what stands for it in the text.
Marking = Callable[["Image"], str]


def is_missing(value: Any) -> bool:
    """Whether a cell holds nothing: None, NaN, NA or NaT."""
    if isinstance(value, float):
        return value != value
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def as_text(value: Any) -> str:
    """A value as a judge reads it: a text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):  # a key that is no text, or a value inside itself
        return str(value)


class Image(NamedTuple):
    """An image in a message or a tool's result: its bytes, or the name under which they are kept."""

    mime: str
    sha256: str
    size: int | None = None
    data: bytes | None = None

    @property
    def declared(self) -> str:
        """What is said of it: its type, its size where that is known, and what identifies it."""
        size = (
            "" if self.size is None else f" {self.size} bytes," if self.size < 1000 else f" {self.size / 1000:.0f} kB,"
        )
        return f"[image {self.mime},{size} sha256 {self.sha256[:16]}]"

    @property
    def url(self) -> str:
        return f"data:{self.mime};base64,{base64.b64encode(self.data or b'').decode()}"


def image_of(block: Mapping[str, Any]) -> Image | None:
    """The image that a part of a message or a result is; None where it is none, or only its address.

    Read are MCP's ``image``, OpenAI's ``image_url`` and ``input_image``, Anthropic's ``image``, and
    the ``{"type": "image", "sha256": ...}`` that stands for one kept in the cache.
    """
    kind = block.get("type")
    if kind in ("image_url", "input_image"):
        head, comma, data = _address(block).partition(",")
        if not (head.startswith("data:image/") and comma and head.endswith(";base64")):
            return None
        return _image(head.removeprefix("data:").partition(";")[0], data)
    if kind != "image":
        return None
    mime = str(block.get("mimeType") or block.get("media_type") or "image/*")
    source = block.get("source")
    if isinstance(source, Mapping) and isinstance(source.get("data"), str):
        return _image(str(source.get("media_type") or mime), source["data"])
    if isinstance(block.get("data"), str):
        return _image(mime, block["data"])
    if not isinstance(block.get("sha256"), str):
        return None
    return Image(mime, block["sha256"], block["bytes"] if isinstance(block.get("bytes"), int) else None)


def _address(block: Mapping[str, Any]) -> str:
    address = block.get("image_url")
    return str(address.get("url") if isinstance(address, Mapping) else address)


def _image(mime: str, data: str) -> Image | None:
    try:
        raw = base64.b64decode(data)
    except (binascii.Error, ValueError):
        return None
    return Image(mime, hashlib.sha256(raw).hexdigest(), len(raw), raw)


class Side(NamedTuple):
    """The column `name` of another row, as one of two that are compared shows it."""

    name: str
    row: Mapping[str, Any]


def parts_of(name: str, row: Mapping[str, Any], mark: Marking | None = None) -> list[Part]:
    """What the column `name` of `row` shows; ``transcript`` is made from the column ``messages``.

    `mark` gives the text that stands for an image; without it, what is known of the image.
    """
    mark = mark or (lambda image: image.declared)
    if name == "transcript" and "transcript" not in row:
        return _transcript(row.get("messages"), mark)
    value = row.get(name)
    if isinstance(value, Side):
        return parts_of(value.name, value.row, mark)
    if is_missing(value):
        return [Part(NONE)]
    return _tool_calls(value, mark) if name == "tool_calls" else [Part(as_text(value))]


def is_there(name: str, row: Mapping[str, Any]) -> bool:
    """Whether a row has something in the column `name`: neither a missing value nor an empty one."""
    name = "messages" if name == "transcript" and "transcript" not in row else name
    value = row.get(name)
    return not is_missing(value) and not (isinstance(value, (str, list, tuple, dict)) and not value)


def _transcript(messages: Any, mark: Marking) -> list[Part]:
    if is_missing(messages) or isinstance(messages, (str, Mapping)) or not isinstance(messages, Iterable):
        return [Part(NONE if is_missing(messages) else as_text(messages))]
    parts: list[Part] = []
    names: dict[Any, Any] = {}
    for message in messages:
        if not isinstance(message, Mapping):
            parts.append(Part(as_text(message) + "\n"))
            continue
        role = message.get("role", "unknown")
        if role == "tool":
            name = message.get("name") or names.get(message.get("tool_call_id")) or "a tool"
            said = _content(message.get("content"), mark)
            parts += [Part(f"[result of {name}]\n"), Part(said, is_result=True), Part("\n")]
        elif not is_missing(message.get("content")):
            parts.append(Part(f"[{role}]\n{_content(message['content'], mark)}\n"))
        for call in message.get("tool_calls") or ():
            function = call.get("function") if isinstance(call, Mapping) else None
            if not isinstance(function, Mapping):
                parts.append(Part(f"[{role} calls]\n{as_text(call)}\n"))
                continue
            names[call.get("id")] = function.get("name")
            parts.append(Part(f"[{role} calls {function.get('name')}]\n{as_text(function.get('arguments'))}\n"))
    return parts or [Part(NONE)]


def _tool_calls(calls: Any, mark: Marking) -> list[Part]:
    if isinstance(calls, (str, Mapping)) or not isinstance(calls, Iterable):
        return [Part(as_text(calls))]
    parts: list[Part] = []
    for number, call in enumerate(calls, 1):
        call = call.to_dict() if hasattr(call, "to_dict") else call
        if not isinstance(call, Mapping) or "name" not in call:
            parts.append(Part(f"{number}. {as_text(call)}\n"))
            continue
        name = ".".join(str(call[key]) for key in ("server", "name") if call.get(key))
        failed = " (failed)" if call.get("is_error") else ""
        parts.append(Part(f"{number}. {name} {as_text(call.get('arguments'))}\n   returned{failed}: "))
        parts += [Part(_result(call, mark), is_result=True), Part("\n")]
    return parts or [Part(NONE)]


def _result(call: Mapping[str, Any], mark: Marking) -> str:
    result = call.get("result")
    if is_missing(result):
        return as_text(call["error"]) if call.get("error") else NONE
    if not isinstance(result, Mapping) or not isinstance(result.get("content"), list):
        return as_text(result)
    text = _content(result["content"], mark)
    # A server that gives both gives the same twice; what is only structured is shown as JSON.
    return text if text or "structuredContent" not in result else as_text(result["structuredContent"])


def _content(content: Any, mark: Marking) -> str:
    """The text of a message's or a result's content; what is no text is named, not shown."""
    if isinstance(content, str) or is_missing(content):
        return content or ""
    if not isinstance(content, list):
        return as_text(content)
    return "\n".join(_block(block, mark) for block in content)


def _block(block: Any, mark: Marking) -> str:
    if not isinstance(block, Mapping):
        return as_text(block)
    if isinstance(block.get("text"), str):
        return block["text"]
    if (image := image_of(block)) is not None:
        return mark(image)
    if (address := _address(block)).startswith(("http://", "https://")):
        return f"[image at {address}]"  # nobody knows what is there by now
    data = block.get("data") or block.get("image_url")
    if data is not None:
        return f"[{block.get('type', 'data')} {block.get('mimeType', '')}, {len(as_text(data))} characters]"
    return as_text(block)
