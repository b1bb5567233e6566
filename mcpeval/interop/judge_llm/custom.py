"""Evaluators, providers and reporters of one's own: registered by name, or named by a file.

Code that a file names runs only where its reader is trusted to have read it.  While it is loaded,
``judge_llm`` is a stand-in made of `records` and `signatures`, so that a file written for that
package runs as it is, whether the package is installed or not.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ...errors import InputError, did_you_mean
from . import records
from .signatures import BaseEvaluator

#: Classes by the name that a configuration's ``type`` gives them.
EVALUATORS: dict[str, Callable[..., Any]] = {}
PROVIDERS: dict[str, Callable[..., Any]] = {}
REPORTERS: dict[str, Callable[..., Any]] = {}


class BaseProvider:
    """What custom providers are derived from: ``execute(eval_case)`` gives a `records.ProviderResult`."""

    def __init__(
        self, agent_id: str, agent_config_path: str | None = None, agent_metadata: Any = None, **provider_metadata: Any
    ) -> None:
        self.agent_id, self.agent_config_path = agent_id, agent_config_path
        self.agent_metadata, self.provider_metadata = dict(agent_metadata or {}), provider_metadata

    def execute(self, eval_case: Any) -> Any:
        """Work on a case; every provider writes its own."""
        raise NotImplementedError(f"{type(self).__name__} has no method execute")

    def cleanup(self) -> None:
        """Called once, when all cases are done."""

    def get_provider_type(self) -> str:
        """The class's name in lower case, without "Provider"."""
        return type(self).__name__.replace("Provider", "").lower()


class BaseReporter:
    """What custom reporters are derived from: ``generate_report(report)``, a `records.EvaluationReport`."""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self.config = dict(config or {})

    def generate_report(self, report: Any) -> None:
        """Report; every reporter writes its own."""
        raise NotImplementedError(f"{type(self).__name__} has no method generate_report")

    def cleanup(self) -> None:
        """Called when the report is made."""


def register_evaluator(name: str, cls: Callable[..., Any]) -> None:
    """Make ``type: NAME`` in a configuration's ``evaluators`` mean `cls`; again replaces it.

    Parameters
    ----------
    name : str
    cls : class or callable
        ``cls(config=...)`` gives an object with a method ``evaluate``, of any signature that
        `mcpeval.score` knows.
    """
    _register(EVALUATORS, "register_evaluator", name, cls)


def register_provider(name: str, cls: Callable[..., Any]) -> None:
    """Make ``type: NAME`` in a configuration's ``providers`` mean `cls` (see `BaseProvider`); again replaces it."""
    _register(PROVIDERS, "register_provider", name, cls)


def register_reporter(name: str, cls: Callable[..., Any]) -> None:
    """Make ``type: NAME`` in a configuration's ``reporters`` mean `cls` (see `BaseReporter`); again replaces it."""
    _register(REPORTERS, "register_reporter", name, cls)


def _register(table: dict[str, Any], who: str, name: Any, cls: Any) -> None:
    if not isinstance(name, str) or not name:
        raise InputError(f"{who}: name={name!r} should be a text that is not empty")
    if not callable(cls):
        raise InputError(f"{who}: cls={cls!r:.200} should be a class")
    table[name] = cls


# --- code that a file names ---------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """A class that a configuration names: in a Python file, or in a module that can be imported.

    Attributes
    ----------
    where : str
        The entry that names it, for errors: "config.yaml: evaluators[1]".
    class_name : str
    path : Path or None
    module : str or None
    """

    where: str
    class_name: str
    path: Path | None = None
    module: str | None = None

    @property
    def what(self) -> str:
        """What would run."""
        return str(self.path) if self.path is not None else f"the module {self.module!r}"

    def load(self, modules: dict[str, ModuleType] | None = None) -> Callable[..., Any]:
        """Run the file, and give the class.

        Parameters
        ----------
        modules : dict, optional
            What was run already, by `what`; a file that several entries name is run once.

        Raises
        ------
        InputError
            It has no such class, or fails when it is run.
        """
        modules = {} if modules is None else modules
        if (module := modules.get(self.what)) is None:
            module = modules[self.what] = _run(self) if self.path is not None else _import(self)
        if not callable(found := getattr(module, self.class_name, None)):
            names = [name for name, value in vars(module).items() if inspect.isclass(value)]
            hint = did_you_mean(self.class_name, names) if names else "It has no class."
            raise InputError(f"{self.where}: {self.what} has no class {self.class_name!r}. {hint}")
        return found


def check_trust(sources: Iterable[Source], trust: bool) -> None:
    """Raise, naming every file, unless code that a file names may run."""
    wanted = list(dict.fromkeys(f"{source.where} wants to run {source.what}" for source in sources))
    if wanted and not trust:
        lines = "\n".join(f"  {line}" for line in wanted)
        raise InputError(f"code that a file names runs only with trust=True (--trust), once you have read it:\n{lines}")


def make(cls: Callable[..., Any], config: Mapping[str, Any], where: str) -> Any:
    """``cls(config=...)``, or ``cls()`` where it takes none and there is none.

    Raises
    ------
    InputError
        The class takes no configuration, or refuses this one.
    """
    try:
        parameters = inspect.signature(cls).parameters
        takes = "config" in parameters or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    except ValueError:
        takes = True
    name = getattr(cls, "__name__", repr(cls))
    if not takes and config:
        raise InputError(f"{where}: {name} takes no config, and was given {', '.join(config)}")
    try:
        return cls(config=dict(config)) if takes else cls()
    except Exception as error:  # of code that is not ours: what it refuses is the configuration's fault
        raise InputError(f"{where}: {name} cannot be made of this config: {type(error).__name__}: {error}") from error


def _run(source: Source) -> ModuleType:
    path = source.path
    if not path.is_file():
        raise InputError(f"{source.where}: there is no file {path}")
    if path.suffix != ".py":
        raise InputError(f"{source.where}: {path} should be a Python file (.py)")
    name = f"mcpeval_custom_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    with _stand_in():
        before = sys.modules.get(name)
        sys.modules[name] = module  # dataclasses look their module up
        try:
            spec.loader.exec_module(module)
        except BaseException as error:
            sys.modules.pop(name)
            if before is not None:
                sys.modules[name] = before
            if not isinstance(error, (Exception, SystemExit)):
                raise
            raise InputError(f"{source.where}: {path} fails when it is run: {type(error).__name__}: {error}") from error
    return module


def _import(source: Source) -> ModuleType:
    with _stand_in():
        try:
            return importlib.import_module(source.module)
        except Exception as error:
            raise InputError(
                f"{source.where}: {source.what} cannot be imported: {type(error).__name__}: {error}"
            ) from error


_loading = threading.RLock()


@contextmanager
def _stand_in() -> Iterator[None]:
    """``judge_llm`` and its modules as names of ours, and as they were afterwards."""
    with _loading:
        ours = _modules()
        before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "judge_llm"}
        for name in before:
            del sys.modules[name]
        sys.modules.update(ours)
        try:
            yield
        finally:
            for name in [name for name in sys.modules if name.partition(".")[0] == "judge_llm"]:
                del sys.modules[name]
            sys.modules.update(before)


def _modules() -> dict[str, ModuleType]:
    kinds = {
        name: kind for name, kind in vars(records).items() if inspect.isclass(kind) and issubclass(kind, records.Record)
    }
    registering = {f.__name__: f for f in (register_evaluator, register_provider, register_reporter)}
    bases = {cls.__name__: cls for cls in (BaseEvaluator, BaseProvider, BaseReporter)}
    contents = {
        "": {**registering, **bases},
        "core": {},
        "core.models": kinds,
        "core.registry": registering,
        "evaluators": {"BaseEvaluator": BaseEvaluator},
        "evaluators.base": {"BaseEvaluator": BaseEvaluator},
        "providers": {"BaseProvider": BaseProvider},
        "providers.base": {"BaseProvider": BaseProvider},
        "reporters": {"BaseReporter": BaseReporter},
        "reporters.base": {"BaseReporter": BaseReporter},
        "utils": {},
        "utils.logger": {"get_logger": lambda *_: logging.getLogger("judge_llm")},
    }
    modules = {}
    for name, values in contents.items():
        full = f"judge_llm.{name}".rstrip(".")
        modules[full] = module = ModuleType(full)
        module.__path__ = []  # a package, with nothing in it but what is here
        vars(module).update(values)
        parent, _, child = full.rpartition(".")
        if parent:
            setattr(modules[parent], child, module)
    return modules
