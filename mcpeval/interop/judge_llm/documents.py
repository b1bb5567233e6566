"""YAML and JSON files, read strictly: every fault with its file and line, no name twice, no code.

`fill` puts environment variables in, by name only.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from ..._calls import is_secret
from ...errors import FileError, InputError

SUFFIXES = (".yaml", ".yml", ".json")
_MOST_NODES = 1_000_000
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
#: Keys whose value is a text however much it looks like a number.
_TEXTS = re.compile(r"(^|_)(id|model|name|path|paths|type|loader|pattern|prompt|instruction)$")


def read_document(path: Path) -> Any:
    """What a YAML or JSON file holds.

    Raises
    ------
    FileError
        The file is missing, not UTF-8, not YAML (or JSON, where it ends in ``.json``), has a key
        twice, or grows beyond a million values when its aliases are followed.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise FileError("there is no such file", path) from None
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"cannot be read: {error}", path) from None
    if path.suffix.lower() not in SUFFIXES:
        raise FileError(f"the name should end in {', '.join(SUFFIXES)}", path)
    value = _json(text, path) if path.suffix.lower() == ".json" else _yaml(text, path)
    _check_size(value, path)
    return _json_values(value, path)


def _json_values(value: Any, path: Path) -> Any:
    """`value` with what YAML has more than JSON as texts: dates, and keys that are no texts."""
    if isinstance(value, dict):
        return {str(key): _json_values(item, path) for key, item in value.items()}
    if isinstance(value, list):
        return [_json_values(item, path) for item in value]
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (bytes, set)):
        raise FileError(f"holds a {type(value).__name__}, {value!r:.80}, which is no JSON value", path)
    return value


def _json(text: str, path: Path) -> Any:
    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in found]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise FileError(f"the key {twice!r} stands twice in one object", path)
        return dict(found)

    try:
        return json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise FileError(f"not JSON: {error.msg} (column {error.colno})", path, error.lineno) from None
    except RecursionError:
        raise FileError("nested too deeply", path) from None


def _yaml(text: str, path: Path) -> Any:
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if (twice := next(_repeated_keys(root), None)) is not None:
            raise FileError(f"the key {twice[0]!r} stands twice", path, twice[1])
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        what = getattr(error, "problem", None) or str(error)
        raise FileError(f"not YAML: {what}", path, None if mark is None else mark.line + 1) from None
    except FileError:
        raise
    except (RecursionError, ValueError) as error:  # an impossible date is a ValueError
        raise FileError(f"not YAML: {error}", path) from None


def _repeated_keys(root: Any) -> Iterator[tuple[str, int]]:
    """Each key that stands twice in one mapping, with its line."""
    import yaml

    seen, ahead = set(), [root]
    while ahead:
        node = ahead.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            ahead += node.value
        elif isinstance(node, yaml.MappingNode):
            names: set[str] = set()
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if key.value in names and key.value != "<<":
                        yield key.value, key.start_mark.line + 1
                    names.add(key.value)
                ahead += [key, value]


def _check_size(value: Any, path: Path) -> None:
    """A few aliases of aliases make a file that fills the memory of whoever walks through it."""
    count, ahead = 0, [value]
    while ahead:
        item = ahead.pop()
        count += 1
        if count > _MOST_NODES:
            raise FileError(f"holds more than {_MOST_NODES:,} values once its aliases are followed", path)
        if isinstance(item, Mapping):
            ahead += item.values()
        elif isinstance(item, list):
            ahead += item


def fill(value: Any, where: str, env: Mapping[str, str] | None = None) -> Any:
    """`value` with every ``${VAR}`` and ``${VAR:-default}`` in its texts replaced, in one pass.

    A value that is one variable and nothing else, and says a number, true or false, becomes that, as
    it would if it had been written there; the values of secrets, names and paths stay texts.

    Parameters
    ----------
    value : JSON value
    where : str
        Where it stands, for errors.
    env : mapping, optional
        The variables; those of the process where it is not given.

    Raises
    ------
    InputError
        A variable is not set and has no default; names it and its place.
    """
    variables = os.environ if env is None else env

    def filled(value: Any, place: str, key: str) -> Any:
        if isinstance(value, Mapping):
            return {name: filled(item, f"{place}.{name}".lstrip("."), str(name)) for name, item in value.items()}
        if isinstance(value, list):
            return [filled(item, f"{place}[{i}]", key) for i, item in enumerate(value)]
        if not isinstance(value, str) or "${" not in value:
            return value
        text = _VARIABLE.sub(lambda match: _value(match, variables, f"{where}: {place}"), value)
        whole = _VARIABLE.fullmatch(value) and not is_secret(key) and not _TEXTS.search(key)
        return _scalar(text) if whole else text

    return filled(value, "", "")


def _value(match: re.Match[str], variables: Mapping[str, str], place: str) -> str:
    """The variable's value, else the default: as in a shell, ``:-`` stands in for an empty one too."""
    name, default = match.groups()
    found = variables.get(name)
    if default is not None and "${" in default:
        raise InputError(f"{place}: the default of {name} is {default!r}; a default cannot hold another variable")
    if found is None and default is None:
        raise InputError(
            f"{place}: the environment variable {name} is not set; write ${{{name}:-default}} to do without"
        )
    return default if not found and default is not None else found


def _scalar(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if not _NUMBER.fullmatch(text):
        return text
    return int(text) if text.lstrip("+-").isdigit() else float(text)
