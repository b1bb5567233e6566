"""What holds for the repository as a whole: layers, import cost, exported names, what is committed."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import mcpeval
from mcpeval.servers import read_servers

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "mcpeval"

# Each module imports only from layers to the left of its own, and from its own package.
LAYERS = [
    ["errors", "types", "stats"],
    ["messages", "_fork", "_shipped", "frames", "recording", "progress", "events", "attacks"],
    ["_loop", "tracing"],
    ["caching"],
    ["_clients", "_retry", "local", "servers"],
    ["_calls"],
    ["llm"],
    ["embedding", "preparing", "forecasts"],
    ["tasks", "agents", "evaluators"],
    ["benchmarks", "trajectories"],
    ["running", "scoring"],
    ["reports", "plots", "exporting"],
    ["html"],
    ["ablation", "probing"],
    ["interop", "assertions"],
    ["demo", "cli", "testing", "pytest_plugin"],
    ["__main__"],
]
LAYER = {module: depth for depth, modules in enumerate(LAYERS) for module in modules}
# Within a layer, these may import those.
BESIDE = {
    ("types", "errors"),
    ("progress", "recording"),
    ("plots", "reports"),
    ("exporting", "reports"),
    ("cli", "demo"),
}

# One door per dependency: the only places that may import it.
DOORS = {
    "litellm": {"_clients"},
    "instructor": {"_clients"},
    "mcp": {"servers", "testing"},
    "diskcache": {"caching"},
    "tiktoken": {"evaluators"},
    "scipy": {"stats"},
    "krippendorff": {"stats"},
    "statsmodels": {"stats"},
    "evalica": {"stats"},
    "seaborn": {"plots"},
    "xllamacpp": {"local"},
    "rich": {"running"},
    "opentelemetry": {"exporting"},
    "backports": {"exporting"},
}

HEAVY = ("litellm", "instructor", "openai", "mcp", "seaborn", "rich", "opentelemetry")


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def place(path: Path) -> str:
    """The part of the layout that a file belongs to: `agents/react.py` is part of `agents`."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[tuple[str, str]]:
    """("ours", part) and ("theirs", package) of every import in a file, wherever it stands."""
    found = set()
    package = ["mcpeval", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            whole = ".".join([*base, *([node.module] if node.module else [])])
            # `from . import llm` names the module last, `from .llm import complete` first.
            names = [f"mcpeval.{alias.name}" for alias in node.names] if whole == "mcpeval" else [whole]
        for name in names:
            first, _, rest = name.partition(".")
            found.add(("ours", rest.split(".")[0]) if first == "mcpeval" and rest else ("theirs", first))
    return found


def test_every_module_has_a_layer():
    assert {place(path) for path in modules()} <= set(LAYER)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_the_layers_to_its_left(path):
    here = place(path)
    for kind, name in imports(path):
        if kind == "ours" and name in LAYER and name != here:
            assert LAYER[name] < LAYER[here] or (here, name) in BESIDE, f"{here} imports {name}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_dependency_is_imported_only_at_its_door(path):
    for kind, name in imports(path):
        if kind == "theirs" and name in DOORS:
            assert place(path) in DOORS[name], f"{place(path)} imports {name}"


def test_statistics_import_nothing_of_ours():
    found = {name for path in (PACKAGE / "stats").glob("*.py") for kind, name in imports(path) if kind == "ours"}
    assert found <= {"stats"}


def test_the_public_names_are_these():
    assert mcpeval.__all__ == sorted(
        [
            *["Task", "Run", "ToolCall", "Usage", "Score", "Agent", "Scale", "Judge", "Cache"],
            *["Pairwise", "Jury", "Cascade"],
            *["read_tasks", "read_benchmark", "read_runs", "read_csv", "run", "score", "summarize", "wide"],
            *["compare", "pass_at_k", "ablate", "probe", "agreement", "judge_card", "corrected_rate"],
            *["rule", "tool_call", "tool_calls", "tool_metrics", "spans", "evaluator"],
            *["to_csv", "manifest", "report", "transcript", "default_model", "__version__"],
            *["agents", "attacks", "errors", "evaluators", "exporting", "html", "interop", "plots", "reports"],
            *["preparing", "servers", "stats", "testing"],
        ]
    )
    for name in mcpeval.__all__:
        assert getattr(mcpeval, name) is not None
    with pytest.raises(AttributeError, match="Did you mean 'score'"):
        mcpeval.scoer  # noqa: B018


def test_no_module_bears_the_name_of_a_public_function():
    functions = {name for name in mcpeval.__all__ if callable(getattr(mcpeval, name))}
    assert not functions & {path.stem for path in modules()}


def loaded_by(code: str, *names: str) -> list[str]:
    """Which of the modules `names` a fresh process has loaded after `code`."""
    code = f"{code}; import sys; print(*[name for name in {names} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_by("import mcpeval", *HEAVY, "matplotlib", "scipy", "pydantic", "diskcache", "pandas") == []


@pytest.mark.parametrize(
    "name", ["read_tasks", "Task", "summarize", "read_csv", "rule", "Judge", "Agent", "Cache", "Jury"]
)
def test_a_public_name_is_there_without_the_model_libraries(name):
    assert loaded_by(f"import mcpeval; mcpeval.{name}", *HEAVY) == []


def test_the_version_is_the_one_of_the_project_file():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert project["version"] == mcpeval.__version__


def test_the_compromised_litellm_uploads_are_excluded():
    from packaging.requirements import Requirement

    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    [litellm] = [r for r in map(Requirement, project["dependencies"]) if r.name == "litellm"]
    assert "1.82.7" not in litellm.specifier
    assert "1.82.8" not in litellm.specifier
    assert "1.110.0" in litellm.specifier


def test_npm_servers_are_pinned_by_version_and_by_content_and_name_no_host():
    folder = REPOSITORY / "data" / "node"
    wanted = json.loads((folder / "package.json").read_text())["dependencies"]
    locked = json.loads((folder / "package-lock.json").read_text())["packages"]
    for name, version in wanted.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version)
        assert locked[f"node_modules/{name}"]["version"] == version
    assert all(package["integrity"].startswith("sha512-") for path, package in locked.items() if path)
    assert not [path for path, package in locked.items() if "resolved" in package]


def test_every_public_name_is_documented():
    undocumented = []
    for name in mcpeval.__all__:
        value = getattr(mcpeval, name)
        if name != "__version__" and not (value.__doc__ or "").strip():
            undocumented.append(name)
    assert undocumented == []


def test_the_examples_of_the_readme_are_right(tmp_path):
    text = (REPOSITORY / "README.md").read_text("utf-8")
    for code in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "mcpeval":
                assert hasattr(mcpeval, node.attr)
        if code.startswith("Judge("):
            call = ast.parse(code).body[0].value
            made = [ast.literal_eval(part) for part in call.args]
            given = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
            assert mcpeval.Judge(*made, **given).threshold == 0.75
    task, servers = re.findall(r"^```json\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "task.json").write_text(task)
    [read] = mcpeval.read_tasks(tmp_path / "task.json")
    output = json.dumps({"datetime": "2026-11-30T21:00:00+09:00"})
    assert mcpeval.score([{"output": output, "evaluators": read.evaluators}])["passed"].tolist() == [True]
    assert set(read_servers(json.loads(servers))) == {"filesystem", "search"}
    [chain] = re.findall(r"`(rule\(.*?\))`", text)[:1]
    call = ast.parse(chain).body[0].value
    rule = mcpeval.rule(*[ast.literal_eval(part) for part in call.args])
    assert rule.evaluate({"output": '{"city": "Paris"}'}).passed


def test_lines_files_and_functions_stay_short():
    long = []
    for path in modules():
        text = path.read_text(encoding="utf-8")
        if text.count("\n") > 500:
            long.append(f"{path.name}: {text.count(chr(10))} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _code_lines(node) > 90:
                long.append(f"{path.name}: {node.name} has {_code_lines(node)} lines")
    assert long == []


def _code_lines(node) -> int:
    """Lines of a function without its docstring."""
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_no_traces_of_a_machine_and_no_dangerous_call_are_committed():
    marks = re.compile(r"/(?:home|root|Users)/[a-z.]|nest_asyncio|pickle\.loads?\(|(?<![\w.])eval\(")
    lines = [(path.name, line.strip()) for path in modules() for line in path.read_text("utf-8").splitlines()]
    assert [(name, line) for name, line in lines if marks.search(line)] == []


def test_the_modules_can_each_be_imported_alone():
    names = [".".join(["mcpeval", *path.relative_to(PACKAGE).with_suffix("").parts]) for path in modules()]
    for name in names:
        if not name.endswith("__main__"):
            importlib.import_module(name.removesuffix(".__init__"))
