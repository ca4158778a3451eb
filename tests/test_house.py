"""The house rules: lint, types, import direction, figures of the code, layout of the repository."""

import ast
import importlib.util
import re
import shutil
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("bench", "cluster", "agent")
FOLDERS = {*PACKAGES, "tasks", "experiments", "containers", "docs", "tests"}
FILES = {
    *("pyproject.toml", "Makefile", "LICENSE", "README.md", "LAUNCH.md"),
    *("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", ".pre-commit-config.yaml", ".gitignore", ".ci/run"),
}
IGNORED = re.compile(r"^(\..+|build|dist|.+\.egg-info|__pycache__)$")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
# Reads beside the code: what people write, in every folder that is theirs.
TEXTS = sorted(
    path
    for folder in sorted(FOLDERS)
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".md", ".yaml", ".c", ".cpp", ".f90", ".h", ".sh", ".env", ".html", ".txt"}
    and path != Path(__file__)
)
SHELL = sorted(
    [
        *ROOT.glob("cluster/**/*.sh"),
        *ROOT.glob("tests/**/*.sh"),
        *ROOT.glob("cluster/**/*.sbatch"),
        ROOT / ".ci/run",
    ]
)
# The agent runs in a container without the packages that grade.
HEAVY = ("numpy", "ml_dtypes", "scipy", "sqlalchemy", "fastapi", "torch", "triton")
# What an agent may know of the judge: how to ask it, and how to start processes.
AGENT_TAKES = {
    *("bench.errors", "bench.process", "bench.sandbox", "bench.wording"),
    *("bench.judge.client", "bench.judge.schemas"),
}
LEFTOVERS = {
    "unfinished work": re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"),
    "a ticket's number": re.compile(r"\b(?:issue|ticket|pull request)s? #?\d+", re.IGNORECASE),
    "a folder of one machine": re.compile(r"(?<![\w.])/(?:work|home|Users|mnt)/\w+"),
}


def tool(*argv: str) -> subprocess.CompletedProcess[str]:
    """Run a tool of this environment in the repository."""
    program = Path(sys.executable).with_name(argv[0])
    return subprocess.run([program, *argv[1:]], cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize(
    "argv",
    [
        ("ruff", "check", "."),
        ("ruff", "format", "--check", "."),
        ("mypy", "--strict"),
        ("lint-imports", "--no-cache"),
    ],
    ids=lambda argv: "-".join(argv[:2]),
)
def test_the_code_passes(argv: tuple[str, ...]) -> None:
    if not Path(sys.executable).with_name(argv[0]).exists():
        pytest.skip(f"{argv[0]} is not installed; `make setup` installs it")
    done = tool(*argv)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("script", SHELL, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_shell_passes_shellcheck(script: Path) -> None:
    shellcheck = shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("shellcheck is not installed; on Debian: apt-get install shellcheck")
    done = subprocess.run([shellcheck, "--shell=bash", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.xdist_group("house")
def test_a_group_of_tests_stays_on_one_worker(request: pytest.FixtureRequest) -> None:
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("the tests are not spread over workers by group")
    assert request.node.nodeid.endswith("@house"), "this pytest-xdist does not honour groups under this pytest"


def functions() -> Iterator[tuple[str, int]]:
    """Every function of the packages with its length in lines, from `def` to its last statement."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node.end_lineno - node.lineno + 1


def ninth_decile(numbers: list[int]) -> float:
    return statistics.quantiles(numbers, n=10)[-1]


def test_functions_are_short() -> None:
    lengths = dict(functions())
    longest = sorted(lengths, key=lengths.__getitem__)[-5:]
    assert statistics.median(lengths.values()) <= 9
    assert ninth_decile([*lengths.values()]) <= 40
    assert max(lengths.values()) <= 100, [(name, lengths[name]) for name in longest]


def test_modules_are_short() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    written = {path: length for path, length in lengths.items() if length}
    assert ninth_decile([*written.values()]) <= 450
    assert max(written.values()) <= 600, [str(path) for path, length in written.items() if length > 600]


def test_each_module_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in SOURCES
        if (text := path.read_text(encoding="utf-8")) and not text.startswith('"""')
    ]
    assert silent == []


@pytest.mark.parametrize("what", LEFTOVERS)
def test_no_text_holds(what: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match.group(0)}"
        for path in TEXTS
        if (match := LEFTOVERS[what].search(path.read_text(encoding="utf-8", errors="replace")))
    ]
    assert found == []


def test_the_layout_is_the_one_in_the_documents() -> None:
    entries = [path for path in ROOT.iterdir() if not IGNORED.match(path.name)]
    assert {path.name for path in entries if path.is_dir()} <= FOLDERS
    assert [name for name in sorted(FILES) if not (ROOT / name).is_file()] == []


def test_the_agent_imports_without_what_grades() -> None:
    blocked = f"import sys; sys.modules.update(dict.fromkeys({HEAVY!r}))"
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in (ROOT / "agent").rglob("*.py")
    ]
    done = tool("python", "-c", f"{blocked}; import {', '.join(sorted(modules))}")
    assert done.returncode == 0, done.stderr


def test_the_agent_takes_of_bench_only_what_asks_a_judge() -> None:
    imported = {
        name
        for path in (ROOT / "agent").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in imports(node)
        if name.startswith("bench")
    }
    assert {name for name in imported if not any(f"{name}.".startswith(f"{ours}.") for ours in AGENT_TAKES)} == set()


def imports(node: ast.AST) -> list[str]:
    """Dotted names that a statement imports."""
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def test_every_command_and_harness_has_its_module() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    targets = [target for group in project["entry-points"].values() for target in group.values()]
    missing = [target for target in targets if importlib.util.find_spec(target.partition(":")[0]) is None]
    assert missing == []
    apps = [path for path in ROOT.glob("*/commands/*.py") if "\napp = typer.Typer(" in path.read_text(encoding="utf-8")]
    written = {f"{path.parent.parent.name}.commands.{path.stem}:app" for path in apps}
    assert written - set(targets) == set(), "announce them under kernelcourt.commands in pyproject.toml"
