"""What came of a tool call: as it is kept in a row, and as text for a model."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..caching import open_cache
from ..errors import CacheMiss, InputError
from ..types import ToolCall

SHOWN = 50_000
"""Characters of a result that a model is shown."""

RECORDED = 2_000_000
"""Characters of a result that are kept in a row."""

CUT_FLAG = "mcpeval/cut"
"""Key in a result's ``_meta``: how many characters of it were not kept."""


def cut(text: str, limit: int) -> str:
    """`text`, or its two ends around a marker that says how much is missing between them.

    Examples
    --------
    >>> cut("0123456789", 4)
    '01\\n[... 6 characters cut ...]\\n89'
    """
    if len(text) <= limit:
        return text
    end = limit // 2
    return f"{text[: limit - end]}\n[... {len(text) - limit} characters cut ...]\n{text[len(text) - end :]}"


def recorded(result: dict[str, Any]) -> dict[str, Any]:
    """A wire result as it is kept: without ``resultType``, and of bounded size.

    Beyond `RECORDED` characters the longest texts of its content are cut, with a marker;
    structured content is kept whole or not at all.  ``_meta`` says how much is missing.
    """
    result = {key: value for key, value in result.items() if key != "resultType"}
    missing = 0
    structured = len(json.dumps(result.get("structuredContent")))
    if structured > RECORDED:
        del result["structuredContent"]
        missing += structured
    lengths: list[int] = []
    _each_text(result, lambda text: lengths.append(len(text)) or text)
    if sum(lengths) > RECORDED:
        missing += sum(lengths) - RECORDED
        longest = _level(lengths, RECORDED)
        result = _each_text(result, lambda text: cut(text, longest))
    return {**result, "_meta": {**(result.get("_meta") or {}), CUT_FLAG: missing}} if missing else result


def without_blobs(result: dict[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """A wire result without the data of its images, sounds and files, and that data by its key in the cache.

    In the place of ``data`` (or ``blob``) stand ``sha256``, of the bytes, and ``bytes``, their number.
    """
    blobs: dict[str, dict[str, Any]] = {}

    def apart(part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        if part.get("type") == "resource" and isinstance(part.get("resource"), dict):
            return {**part, "resource": _apart(part["resource"], "blob", blobs)}
        return _apart(part, "data", blobs) if part.get("type") in ("image", "audio") else part

    content = result.get("content")
    return ({**result, "content": [apart(part) for part in content]} if isinstance(content, list) else result), blobs


def _apart(part: dict[str, Any], where: str, blobs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    if not isinstance(part.get(where), str):
        return part
    content = _bytes(part[where])
    sha = hashlib.sha256(content).hexdigest()
    blobs[f"blob:{sha}"] = {"mimeType": part.get("mimeType"), "data": part[where]}
    return {**{key: value for key, value in part.items() if key != where}, "sha256": sha, "bytes": len(content)}


def _bytes(data: str) -> bytes:
    try:
        return base64.b64decode(data)
    except (binascii.Error, ValueError):  # a server's mistake; it is kept as it came
        return data.encode("utf-8", "surrogatepass")


def blob(part: Mapping[str, Any] | str, cache: Any = None) -> bytes:
    """An image, a sound or a file that a tool answered with.

    The rows of a frame hold its sha256; it is in the cache that `run` was given.  Without one
    (``cache=False``) it is not kept.

    Parameters
    ----------
    part : dict or str
        The part of a call's ``result["content"]``, or its ``sha256``.
    cache : Cache, path or None
        As in `run`.

    Raises
    ------
    CacheMiss
        It is not in this cache.

    Examples
    --------
    >>> [call] = runs["tool_calls"][0]                                         # doctest: +SKIP
    >>> Path("chart.png").write_bytes(blob(call["result"]["content"][0]))      # doctest: +SKIP
    """
    about = part.get("resource", part) if isinstance(part, Mapping) else {"sha256": part}
    sha = about.get("sha256") if isinstance(about, Mapping) else None
    if not isinstance(sha, str):
        raise InputError(
            f"blob: {part!r:.80} names no sha256; expected a part of a result's content, or the text of one"
        )
    store = open_cache(cache)
    if store is None:
        raise InputError("blob: cache=False; give the cache that the runs were kept in")

    def read(kept: Any) -> bytes:
        content = _bytes(kept["data"])
        if hashlib.sha256(content).hexdigest() != sha:
            raise ValueError("it is not what its name says")
        return content

    try:
        return store.require(f"blob:{sha}", read=read)
    except CacheMiss:
        raise CacheMiss(f"blob: {sha} is not in the cache at {store.path}; only what `run` kept there is") from None


def _level(lengths: Sequence[int], total: int) -> int:
    """The length to which the longest have to be cut so that all have `total` together."""
    lengths = sorted(lengths)
    for i, length in enumerate(lengths):
        if length * (len(lengths) - i) > total:
            return total // (len(lengths) - i)
        total -= length
    return lengths[-1]


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_each_text(item, change) for item in value]
    if isinstance(value, dict):
        return {key: _each_text(item, change) for key, item in value.items()}
    return value


def missing_characters(call: ToolCall) -> int:
    """How many characters of a call's result were not kept."""
    meta = (call.result or {}).get("_meta")
    return meta.get(CUT_FLAG, 0) if isinstance(meta, dict) else 0


def call_text(call: ToolCall) -> str:
    """Everything a call came back with, as text; what is no text stands as a short marker."""
    if call.error is not None or call.result is None:
        return call.error or ""
    content = call.result.get("content")
    content = content if isinstance(content, list) else [] if content is None else [content]
    parts = [_part_text(part) for part in content]
    if not any(isinstance(part, dict) and part.get("type") == "text" for part in content):
        structured = call.result.get("structuredContent")
        if structured is not None:
            parts.append(json.dumps(structured, ensure_ascii=False))
        elif missing := missing_characters(call):
            parts.append(f"[... {missing} characters cut ...]")
    return "\n".join(parts) or "[no content]"


def _part_text(part: Any) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text":
        return str(part.get("text", ""))
    if kind in ("image", "audio"):
        return f"[{kind} {part.get('mimeType')}, {_size(part, 'data')} bytes]"
    if kind == "resource":
        resource = part["resource"] if isinstance(part.get("resource"), dict) else {}
        if "text" in resource:
            return str(resource["text"])
        return f"[resource {resource.get('uri')} {resource.get('mimeType')}, {_size(resource, 'blob')} bytes]"
    if kind == "resource_link":
        return f"[resource link {part.get('name')}: {part.get('uri')}]"
    return part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)


def _size(part: Mapping[str, Any], where: str) -> int:
    """The bytes of a part: as they were counted, or those that its base64 text stands for."""
    data = str(part.get(where) or "")
    return part["bytes"] if isinstance(part.get("bytes"), int) else len(data) * 3 // 4 - data[-2:].count("=")
