"""JSON schemas of tools: as a constraint on what a model writes, and as a short text it can read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_KEPT = (
    "type", "enum", "const", "required", "additionalProperties", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems",
)  # fmt: skip
_ITEMS = 3  # of an array, where texts are limited too; the texts in it are then half as long


def resolve(schema: Any, root: Mapping[str, Any], seen: Sequence[str] = ()) -> tuple[Any, tuple[str, ...]]:
    """`schema` with a local ``$ref`` followed, and the references on the way.

    A reference that leads nowhere, out of the document, or back to itself stands for any object.
    """
    seen = tuple(seen)
    while isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str):
        ref = schema["$ref"]
        if ref in seen or not ref.startswith("#/"):
            return {"type": "object"}, seen
        schema, seen = _follow(ref, root), (*seen, ref)
    return schema, seen


def _follow(ref: str, root: Mapping[str, Any]) -> Any:
    node: Any = root
    for part in ref[2:].split("/"):
        part = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, Mapping) or part not in node:
            return {"type": "object"}
        node = node[part]
    return node


def constraint(
    schema: Any, *, limit: int | None = None, root: Mapping[str, Any] | None = None, seen: Sequence[str] = ()
) -> dict:
    """`schema` so that it can stand inside another one, in front of a constrained decoder.

    References are written out, and only the keywords stay that decoders have in common; without
    the others (``pattern``, ``format``, ...) it allows a little more than the tool does.

    Parameters
    ----------
    schema : dict or bool
        A tool's ``inputSchema``, or a part of it.
    limit : int, optional
        Characters of a text that has no limit or a longer one; arrays are limited as well. For
        models that repeat themselves for ever.
    root, seen
        The whole schema and the references followed, inside the recursion.
    """
    root = schema if root is None else root
    schema, seen = resolve(schema, root, seen)
    if not isinstance(schema, Mapping):
        return {}

    def part(inner: Any, limit: int | None = limit) -> dict[str, Any]:
        return constraint(inner, limit=limit, root=root, seen=seen)

    for word in ("anyOf", "oneOf"):
        if schema.get(word):
            return {"anyOf": [part(option) for option in schema[word]]}
    if schema.get("allOf"):
        return {"allOf": [part(option) for option in schema["allOf"]]}
    kept = {word: schema[word] for word in _KEPT if word in schema}
    kinds = _kinds(schema)
    if isinstance(schema.get("properties"), Mapping):
        kept["properties"] = {name: part(inner) for name, inner in schema["properties"].items()}
        kept["additionalProperties"] = False
    elif isinstance(schema.get("additionalProperties"), Mapping):
        kept["additionalProperties"] = part(schema["additionalProperties"])
    if "array" in kinds:
        kept["items"] = part(schema.get("items", {}), limit and max(1, limit // 2))
    if limit is not None and "string" in kinds and "enum" not in kept:
        kept["maxLength"] = min(limit, kept.get("maxLength", limit))
    if limit is not None and "array" in kinds:
        kept["maxItems"] = min(_ITEMS, kept.get("maxItems", _ITEMS))
    return kept


def notation(schema: Any, root: Mapping[str, Any] | None = None, seen: Sequence[str] = ()) -> str:
    """`schema` in a few words, for a prompt.

    Examples
    --------
    >>> city = {"type": "string", "description": "its English name"}
    >>> notation({"type": "object", "properties": {"city": city, "n": {"type": "integer"}}, "required": ["city"]})
    '{"city": string (its English name), "n"?: integer}'
    """
    root = schema if root is None else root
    schema, seen = resolve(schema, root, seen)
    if not isinstance(schema, Mapping):
        return "any"
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    if schema.get("enum"):
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    for word in ("anyOf", "oneOf"):
        if schema.get(word):
            return " | ".join(notation(option, root, seen) for option in schema[word])
    kinds = _kinds(schema)
    if isinstance(schema.get("properties"), Mapping):
        return _members(schema, root, seen)
    if kinds == ["array"]:
        return f"[{notation(schema.get('items', {}), root, seen)}]"
    return " | ".join(kinds) or "any"


def _members(schema: Mapping[str, Any], root: Mapping[str, Any], seen: Sequence[str]) -> str:
    required = schema.get("required", ())
    members = []
    for name, inner in schema["properties"].items():
        text = f"{json.dumps(name, ensure_ascii=False)}{'' if name in required else '?'}: {notation(inner, root, seen)}"
        about = inner.get("description") if isinstance(inner, Mapping) else None
        members.append(f"{text} ({' '.join(about.split())})" if about else text)
    return "{" + ", ".join(members) + "}"


def shape(example: Any) -> dict[str, Any]:
    """A schema of what looks like `example`, the form that a task wants its answer in.

    A text may stand for a number or a truth value too: "<TEMPERATURE>" does.  What is a JSON
    schema already is taken as it is.
    """
    if isinstance(example, Mapping):
        if example.get("type") == "object" and isinstance(example.get("properties"), Mapping):
            return dict(example)
        properties = {str(name): shape(value) for name, value in example.items()}
        return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    if isinstance(example, Sequence) and not isinstance(example, str):
        return {"type": "array", "items": shape(example[0]) if example else {}}
    if isinstance(example, str):
        return {"type": ["string", "number", "boolean"]}
    kinds = {bool: "boolean", int: "number", float: "number"}
    return {"type": kinds[type(example)]} if type(example) in kinds else {}


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kind = schema.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)
