"""A judge-llm configuration: its sections, with the defaults of another file beneath them.

Nothing is run or loaded here; every name and number is looked at.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ...benchmarks import is_benchmark
from ...errors import FileError, did_you_mean
from .custom import Source
from .documents import fill, read_document

SECTIONS = ("agent", "dataset", "providers", "evaluators", "reporters", "defaults")
AGENT = ("num_runs", "parallel_execution", "max_workers", "fail_on_threshold_violation", "log_level")
LOADERS = ("local_file", "directory")
DEFAULTS_NAME = ".judge_llm.defaults.yaml"
DEFAULTS_VARIABLE = "JUDGE_LLM_DEFAULTS"

_ENTRY = ("type", "name", "enabled", "register_as", "module_path", "module", "class_name", "_merge_mode", "config")
_PATHS = ("module_path", "output_path", "db_path", "agent_config_path")


@dataclass(frozen=True)
class Entry:
    """One provider, evaluator or reporter of a configuration.

    Attributes
    ----------
    section : str
    type : str
    where : str
        Where it stands, for errors.
    config : mapping
        Everything that is its own: what stands under ``config``, and the keys beside it.
    name : str or None
    source : Source or None
        Code that a file names for it.
    """

    section: str
    type: str
    where: str
    config: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = None
    source: Source | None = None


@dataclass(frozen=True)
class Evaluation:
    """A whole configuration.

    Attributes
    ----------
    path : Path
    defaults : Path or None
        The file of defaults beneath it.
    trials, concurrency : int
    must_pass : bool
        ``fail_on_threshold_violation``.
    agent_metadata : mapping
        Other keys of the section ``agent``.
    datasets : tuple of Path
    pattern : str or None
        Of the files in them, where they are folders.
    providers, evaluators, reporters : tuple of Entry
    """

    path: Path
    defaults: Path | None
    trials: int
    concurrency: int
    must_pass: bool
    agent_metadata: Mapping[str, Any]
    datasets: tuple[Path, ...]
    pattern: str | None
    providers: tuple[Entry, ...]
    evaluators: tuple[Entry, ...]
    reporters: tuple[Entry, ...]


def read_config(path: str | os.PathLike, *, defaults: Any = None, env: Mapping[str, str] | None = None) -> Evaluation:
    """Read a configuration, and the defaults that it builds on.

    Parameters
    ----------
    path : path-like
        A YAML or JSON file; the paths in it are relative to its folder.
    defaults : path-like, None or False
        The file of defaults. None takes the one that the configuration names, that of the variable
        ``JUDGE_LLM_DEFAULTS``, or ``.judge_llm.defaults.yaml`` in the configuration's folder, in
        the current one, or ``~/.judge_llm/defaults.yaml``; False takes none.
    env : mapping, optional
        Values for ``${VAR}``; those of the environment where it is not given.

    Raises
    ------
    FileError, InputError
        Something in the files cannot be meant.
    """
    path = Path(path)
    own = _document(path, env)
    below = None if defaults is False else _defaults(path, own, defaults, env)
    base = {} if below is None else _document(below, env)
    sources = _registered(base, below)
    sections = {
        "agent": {**base.get("agent", {}), **own.get("agent", {})},
        "dataset": own.get("dataset", base.get("dataset")),
        "providers": _by_place(_without_registrations(base.get("providers", [])), own.get("providers")),
        "evaluators": _by_kind(base.get("evaluators", []), own.get("evaluators")),
        "reporters": _instead(_without_registrations(base.get("reporters", [])), own.get("reporters")),
    }
    sources.update(_registered(own, path))
    paths, pattern = _dataset(sections["dataset"], path)
    entries = {name: _entries(name, sections[name], sources, path) for name in ("providers", "evaluators", "reporters")}
    for name in ("providers", "evaluators"):
        if not entries[name]:
            raise FileError(f"{name} has nothing to do: give at least one", path)
    trials, concurrency, must_pass, other = _agent(sections["agent"], path)
    return Evaluation(path, below, trials, concurrency, must_pass, other, paths, pattern, **entries)


def is_config(path: str | os.PathLike) -> bool:
    """Whether a file is a configuration rather than a benchmark or a file of tasks.

    A YAML file is one unless its documents have a ``kind``; a JSON file is one if it has a ``dataset``.
    """
    path = Path(path)
    if path.suffix.lower() in (".yaml", ".yml"):
        return not is_benchmark(path)
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    data = read_document(path)
    return isinstance(data, Mapping) and "dataset" in data


# --- one file -----------------------------------------------------------------------------------


def _document(path: Path, env: Mapping[str, str] | None) -> dict[str, Any]:
    """A file's sections, with variables filled in and paths made absolute."""
    data = read_document(path) or {}
    if not isinstance(data, Mapping):
        raise FileError(f"no configuration: expected sections ({', '.join(SECTIONS)})", path)
    for key in data:
        if key not in SECTIONS:
            raise FileError(f"unknown section {key!r}. {did_you_mean(key, SECTIONS)}", path)
    data = {key: value for key, value in fill(data, str(path), env).items() if value is not None}
    for key in ("agent", "dataset"):
        if not isinstance(data.get(key, {}), Mapping):
            raise FileError(f"{key} should be a mapping, not {data[key]!r:.80}", path)
    if not isinstance(data.get("defaults", ""), str):
        raise FileError(f"defaults={data['defaults']!r:.80} should be the path of a file", path)
    for key in ("providers", "evaluators", "reporters"):
        if key in data:
            data[key] = _listed(key, data[key], path)
    if isinstance(paths := data.get("dataset", {}).get("paths"), list):
        absolute = [_absolute(item, path) if isinstance(item, str) else item for item in paths]
        data["dataset"] = {**data["dataset"], "paths": absolute}
    return data


def _listed(section: str, value: Any, path: Path) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise FileError(f"{section} should be a list of entries, each with a type; it is {value!r:.80}", path)
    entries = []
    for i, entry in enumerate(value):
        entry = _with_paths(entry, path)
        if isinstance(entry.get("config"), Mapping):
            entry["config"] = _with_paths(entry["config"], path)
        entries.append({**entry, "_where": f"{path}: {section}[{i}]"})
    return entries


def _with_paths(entry: Mapping[str, Any], path: Path) -> dict[str, Any]:
    return {k: _absolute(v, path) if k in _PATHS and isinstance(v, str) else v for k, v in entry.items()}


def _absolute(name: str, path: Path) -> str:
    return str(path.absolute().parent / Path(name).expanduser())


def _defaults(path: Path, own: Mapping[str, Any], given: Any, env: Mapping[str, str] | None) -> Path | None:
    named = (
        given
        or own.get("defaults")
        and _absolute(own["defaults"], path)
        or (os.environ if env is None else env).get(DEFAULTS_VARIABLE)
    )
    if named:
        return Path(named)
    beside = [
        path.absolute().parent / DEFAULTS_NAME,
        Path.cwd() / DEFAULTS_NAME,
        Path.home() / ".judge_llm" / "defaults.yaml",
    ]
    return next((file for file in beside if file.is_file() and file != path.absolute()), None)


# --- the sections -------------------------------------------------------------------------------


def _agent(given: Mapping[str, Any], path: Path) -> tuple[int, int, bool, dict[str, Any]]:
    other = {key: value for key, value in given.items() if key not in AGENT}
    for key in other:
        if near := get_close_matches(key, AGENT, n=1, cutoff=0.8):
            raise FileError(f"agent has the unknown key {key!r}. Did you mean {near[0]!r}?", path)
        if key.startswith("telemetry"):
            raise FileError(f"agent.{key}: mcpeval sends no telemetry; take it out", path)
    trials, workers = given.get("num_runs", 1), given.get("max_workers", 4)
    for key, value in (("num_runs", trials), ("max_workers", workers)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise FileError(f"agent.{key}={value!r} should be a whole number, at least 1", path)
    parallel, must_pass = given.get("parallel_execution", False), given.get("fail_on_threshold_violation", True)
    for key, value in (("parallel_execution", parallel), ("fail_on_threshold_violation", must_pass)):
        if not isinstance(value, bool):
            raise FileError(f"agent.{key}={value!r} should be true or false", path)
    return trials, workers if parallel else 1, must_pass, other


def _dataset(given: Any, path: Path) -> tuple[tuple[Path, ...], str | None]:
    if not given:
        raise FileError("there is no section dataset, with loader and paths", path)
    for key in given:
        if key not in ("loader", "paths", "pattern"):
            raise FileError(
                f"dataset has the unknown key {key!r}. {did_you_mean(key, ('loader', 'paths', 'pattern'))}", path
            )
    loader, paths = given.get("loader", "local_file"), given.get("paths")
    if loader not in LOADERS:
        raise FileError(f"dataset.loader={loader!r}. {did_you_mean(loader, LOADERS)}", path)
    if not isinstance(paths, list) or not paths or not all(isinstance(item, str) for item in paths):
        raise FileError(f"dataset.paths={paths!r:.80} should be a list of paths, at least one", path)
    pattern = given.get("pattern", "*.json")
    if loader == "local_file":
        if "pattern" in given:
            raise FileError("dataset.pattern goes with loader: directory; a local_file is read whatever its name", path)
        return tuple(map(Path, paths)), None
    if not isinstance(pattern, str) or not pattern or Path(pattern).is_absolute() or ".." in Path(pattern).parts:
        raise FileError(f"dataset.pattern={pattern!r} should be a pattern of names, such as '*.json'", path)
    return tuple(map(Path, paths)), pattern


def _entries(
    section: str, given: Sequence[Mapping[str, Any]], sources: Mapping[Any, Source], path: Path
) -> tuple[Entry, ...]:
    found = []
    for entry in given:
        where = entry["_where"]
        enabled = entry.get("enabled", True)
        if not isinstance(enabled, bool):
            raise FileError(f"{where}: enabled={enabled!r} should be true or false", path)
        if not enabled:
            continue
        if not isinstance(kind := entry.get("type"), str) or not kind:
            raise FileError(f"{where}: type={kind!r} should be a text", path)
        config = entry.get("config") or {}
        if not isinstance(config, Mapping):
            raise FileError(f"{where}: config={config!r:.80} should be a mapping", path)
        beside = {key: value for key, value in entry.items() if key not in (*_ENTRY, "_where")}
        if twice := beside.keys() & config.keys():
            raise FileError(f"{where}: {min(twice)!r} stands both in the entry and under its config", path)
        source = _source(entry, path) or sources.get((section, kind))
        if kind == "custom" and source is None:
            raise FileError(f"{where}: type: custom needs module_path (or module) and class_name", path)
        name = (
            entry.get("name")
            or entry.get("register_as")
            or (source.class_name if source and kind == "custom" else None)
        )
        found.append(Entry(section, kind, where, {**beside, **config}, None if name is None else str(name), source))
    return tuple(found)


def _source(entry: Mapping[str, Any], path: Path) -> Source | None:
    """The code that an entry names, where it names some."""
    file, module = entry.get("module_path"), entry.get("module")
    if file is None and module is None:
        return None
    where = entry["_where"]
    if not isinstance(cls := entry.get("class_name"), str) or not cls:
        raise FileError(f"{where}: class_name={cls!r} should be the name of a class in {file or module}", path)
    return Source(where, cls, None if file is None else Path(file), None if file is not None else str(module))


def _registered(document: Mapping[str, Any], path: Path | None) -> dict[Any, Source]:
    """Code that a file gives a name to (``register_as``), by section and name."""
    found = {}
    for section in ("providers", "evaluators", "reporters"):
        for entry in document.get(section, ()):
            if entry.get("register_as"):
                if (source := _source(entry, path)) is None:
                    raise FileError(
                        f"{entry['_where']}: register_as needs module_path (or module) and class_name", path
                    )
                found[section, entry["register_as"]] = source
    return found


# --- defaults and what stands over them ---------------------------------------------------------


def _without_registrations(entries: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Entries that are more than a name for code."""
    return [entry for entry in entries if not entry.get("register_as") or entry.get("agent_id")]


def _own(entries: Sequence[Mapping[str, Any]]) -> tuple[str | None, list[dict[str, Any]]]:
    """The ``_merge_mode`` of a section, and its entries without it."""
    mode = entries[0].get("_merge_mode") if entries else None
    if mode not in (None, "append", "replace"):
        raise FileError(f"_merge_mode={mode!r}. {did_you_mean(mode, ('append', 'replace'))}", entries[0]["_where"])
    plain = [{key: value for key, value in entry.items() if key != "_merge_mode"} for entry in entries]
    return mode, [entry for entry in plain if entry.keys() != {"_where"}]


def _by_place(below: list[Mapping[str, Any]], own: Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
    """Providers: the n-th over the n-th default where both are of one type, else instead of it."""
    mode, entries = _own(own or [])
    entries = _without_registrations(entries)
    if mode == "append":
        return [*below, *entries]
    if mode == "replace":
        return entries
    merged = [_over(b, e) if e.get("type", b.get("type")) == b.get("type") else e for b, e in zip(below, entries)]
    return [*merged, *below[len(merged) :], *entries[len(merged) :]]


def _by_kind(below: Sequence[Mapping[str, Any]], own: Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
    """Evaluators: each over the default of its type or registered name; an empty list stands for none."""
    if own is None:
        return list(below)
    mode, entries = _own(own)
    if mode == "append":
        return [*below, *entries]
    if mode == "replace" or not entries:
        return list(entries)
    merged, rest = [], list(entries)
    for default in below:
        same = next((entry for entry in rest if _kind(entry) == _kind(default)), None)
        if same is not None:
            rest.remove(same)
        merged.append(default if same is None else {**_over(default, same), "type": default.get("type")})
    return merged + rest


def _kind(entry: Mapping[str, Any]) -> Any:
    if entry.get("register_as"):
        return entry["register_as"]
    if entry.get("type") == "custom":
        return "custom", entry.get("name") or entry.get("class_name"), entry.get("module_path")
    return entry.get("type")


def _instead(below: list[Mapping[str, Any]], own: Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
    """Reporters: those of the configuration, where it has any; the console where nobody has."""
    mode, entries = _own(own or [])
    entries = [*below, *entries] if mode == "append" else entries or below
    return list(entries) or [{"type": "console", "_where": "reporters"}]


def _over(below: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in own.items():
        both = isinstance(merged.get(key), Mapping) and isinstance(value, Mapping)
        merged[key] = _over(merged[key], value) if both else value
    return merged
