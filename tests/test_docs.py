"""The documents say what is so: links resolve, references are current, commands exist, the tutorial runs."""

import ast
import contextlib
import hashlib
import importlib.metadata
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import stamina
from conftest import run_program
from ports import free_ports
from typer import TyperException

from bench import cli
from bench.judge.client import JudgeClient, JudgeRefused

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *(ROOT / folder / "README.md" for folder in ("containers", "experiments", "tasks")),
    ]
)
STUDIES = ROOT / "docs" / "studies.md"
TUTORIAL = ROOT / "docs" / "tutorial-first-kernel.md"
FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", flags=re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]+\]\((?P<target>[^)\s]+)\)")
PICTURE = re.compile(r"!\[[^\]]+\]\(([^)\s]+)\)")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
GROUPS = PYPROJECT["project"]["entry-points"]
DEPENDENCIES = ROOT / "docs" / "dependencies.md"


def page_id(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    """A page without its code blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as Markdown renderers make them."""
    heads = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_resolve(page: Path) -> None:
    broken = []
    for match in LINK.finditer(prose(page)):
        path, _, anchor = match["target"].partition("#")
        if "://" in path:
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(match["target"])
    assert broken == []


def test_each_page_of_docs_is_in_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / match["target"].partition("#")[0]).resolve() for match in LINK.finditer(prose(index))}
    assert [page_id(page) for page in PAGES if page.is_relative_to(index.parent) and page not in {*linked, index}] == []


def test_the_reference_is_what_the_code_says() -> None:
    done = run_program(sys.executable, ROOT / "docs" / "generate.py", "--check")
    assert done.code == 0, f"{done.out}{done.err}\nrun `make docs`"


def tree(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command below one, itself included, by its path."""
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from tree(below, (*path, name))


@cache
def all_commands() -> dict[tuple[str, ...], Any]:
    loaded = {name: cli.load_command(name) for name in GROUPS["kernelcourt.commands"]}
    return dict(found for name, command in loaded.items() for found in tree(command, (name,)))


def fault_of_line(line: str) -> str:
    """Why a command line `kcourt ...` would be refused before anything runs; an empty text when it would not."""
    words, commands = shlex.split(line, comments=True)[1:], all_commands()
    path = next((tuple(words[:n]) for n in range(len(words), 0, -1) if tuple(words[:n]) in commands), ())
    if not path:
        return "no such command"
    try:
        commands[path].make_context("kcourt", words[len(path) :])
    except TyperException as error:
        return f"{line}: {error.format_message()}"
    return ""


def test_every_command_has_an_example_that_parses_and_json() -> None:
    lacking = []
    for path, command in all_commands().items():
        examples = re.findall(r"^ *Example: (.*)$", command.help or "", flags=re.MULTILINE)
        if not any(f"{example} ".startswith(f"kcourt {' '.join(path)} ") for example in examples):
            lacking.append(f"{path}: no example of it in its help")
        lacking += [f"{path}: {fault}" for fault in map(fault_of_line, examples) if fault]
        if hasattr(command, "commands"):
            continue
        if not any("--json" in parameter.opts for parameter in command.params):
            lacking.append(f"{path}: no --json")
        lacking += [
            f"{path}: {parameter.name} has no help"
            for parameter in command.params
            if not (parameter.help or "").strip()
        ]
    assert lacking == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_commands_and_targets_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    code = "\n".join([*(match["body"] for match in FENCE.finditer(text)), *re.findall(r"`([^`\n]+)`", prose(page))])
    known = set(all_commands())
    unknown = []
    for words in re.findall(r"(?:^|[|&;(]\s*)kcourt((?: [a-z][a-z-]*)+)", code, flags=re.MULTILINE):
        path = tuple(words.split())[:2]
        if path not in known and not (path[:1] in known and not hasattr(all_commands()[path[:1]], "commands")):
            unknown.append(f"kcourt{words}")
    if page.parent.name != "reference":  # that one has synopses, made from the commands themselves
        blocks = "".join(match["body"] for match in FENCE.finditer(text)).replace("\\\n", " ")
        lines = re.findall(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*(kcourt [a-z][^|>&\n]*)", blocks, flags=re.MULTILINE)
        unknown += filter(None, map(fault_of_line, lines))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:^|`)make ([a-z]+)", code, flags=re.MULTILINE):
        if not re.search(rf"^{target}:", makefile, flags=re.MULTILINE):
            unknown.append(f"make {target}")
    assert unknown == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name != "decisions"], ids=page_id)
def test_files_that_a_page_names_exist(page: Path) -> None:
    folders = "bench|agent|cluster|tasks|experiments|containers|docs|tests"
    named = re.findall(rf"`((?:{folders})/[\w./-]*)`", prose(page))
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_readme_is_short_and_names_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    assert "make demo" in text and "make test" in text


PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.dot"))


@pytest.mark.parametrize("source", PICTURES, ids=lambda source: source.stem)
def test_each_picture_is_drawn_from_its_text_and_shown(source: Path) -> None:
    drawn = source.with_suffix(".svg").read_text(encoding="utf-8")
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    assert f"sha256 {digest}" in drawn, f"{source.name} has changed; run `make docs` where graphviz is installed"
    targets = {(page.parent / target).resolve() for page in PAGES for target in PICTURE.findall(prose(page))}
    assert source.with_suffix(".svg") in targets


def normal(name: str) -> str:
    """A distribution's name, without what follows it and however it is spelt."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", name)[0]).lower() if name[0] != "@" else name  # type: ignore[index]


def declared() -> set[str]:
    """Every package that the project asks for."""
    project, npm = PYPROJECT["project"], json.loads((ROOT / "containers/agents/package.json").read_text())
    lists = [PYPROJECT["build-system"]["requires"], project["dependencies"], npm["dependencies"]]
    lists += [*project["optional-dependencies"].values(), *PYPROJECT["dependency-groups"].values()]
    return {normal(name) for names in lists for name in names}


def imported() -> dict[str, set[str]]:
    """The distributions that the code imports, with the folders that import them."""
    packages = {"bench", "agent", "cluster", "tests"}
    ours = packages | {path.stem for folder in ("tests", "docs") for path in (ROOT / folder).iterdir()}
    brought_by = importlib.metadata.packages_distributions() | {"pydantic_core": ["pydantic"]}
    found: dict[str, set[str]] = {}
    for folder in ("bench", "agent", "cluster", "tasks", "tests", "docs"):
        for path in set((ROOT / folder).rglob("*.py")) - set((ROOT / "tests" / "exploits").iterdir()):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
                for top in {name.partition(".")[0] for name in names} - ours - sys.stdlib_module_names:
                    found.setdefault(normal(brought_by.get(top, [top])[0]), set()).add(folder)
    return found


def test_the_page_of_dependencies_says_what_is_used() -> None:
    cells = [line.strip("| ").split(" | ") for line in DEPENDENCIES.read_text().splitlines() if line.startswith("| ")]
    rows = {normal(name): (licence, where) for name, _, licence, where in cells if name != "Package"}
    used, wrong = imported(), []
    assert (set(rows) ^ declared(), set(used) - set(rows)) == (set(), set())
    for name, (licence, where) in rows.items():
        shown = re.findall(r"`([^`]+)`", where)
        if name in used and set(shown) != used[name]:
            wrong.append(f"{name} is imported in {sorted(used[name])}, and the page says {where}")
        if name not in used and shown[1] not in (ROOT / shown[0]).read_text():
            wrong.append(f"{name} is imported nowhere, and {shown[0]} has no {shown[1]!r}")
        if is_installed(name) and re.split(r"[- ]", licence)[0] not in licence_text(name):
            wrong.append(f"{name}: its metadata does not speak of {licence}")
    assert wrong == []


def is_installed(name: str) -> bool:
    """Whether a distribution is here: those of the extra `offline` need not be, clients of npm never are."""
    return any(True for _ in importlib.metadata.distributions(name=name))


def licence_text(name: str) -> str:
    """What an installed distribution says of its licence, in whichever field."""
    metadata = importlib.metadata.metadata(name)
    return " ".join(text for key, text in metadata.items() if key in ("License", "License-Expression", "Classifier"))


@contextlib.contextmanager
def judge(command: str, port: int, folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """The tutorial's judge, healthy, until the block ends; then it is stopped as Ctrl-C would."""
    with (folder / "serve.log").open("wb") as log:
        server = subprocess.Popen(command.split(), cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        with JudgeClient(f"http://127.0.0.1:{port}", timeout_s=5) as client:
            waiting = stamina.retry_context(on=(JudgeRefused, AssertionError), attempts=None, timeout=300, wait_max=0.5)
            for attempt in waiting:
                with attempt:
                    if server.poll() is not None:
                        pytest.fail((folder / "serve.log").read_text())
                    assert client.health().status == "ok"
        yield
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(60)


def steps(page: Path) -> list[tuple[str, str]]:
    """Code blocks of a page that are to be run, with what they are marked as, in order."""
    blocks = [(match["info"], match["body"]) for match in FENCE.finditer(page.read_text(encoding="utf-8"))]
    return [(info, body) for info, body in blocks if info.startswith("sh")]


def run_script(script: str, folder: Path, environment: dict[str, str]) -> str:
    """What a script prints that stops at its first error."""
    argv = ["bash", "-c", f"set -euo pipefail\n{script}"]
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def environment() -> dict[str, str]:
    """The commands of this installation are on the path; skips where a page's other programs are missing."""
    if missing := [program for program in ("bash", "curl", "gcc", "g++") if shutil.which(program) is None]:
        pytest.skip(f"the pages need {', '.join(missing)}; on Debian: apt-get install {' '.join(missing)}")
    return os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def test_the_tutorial_runs(tmp_path: Path, environment: dict[str, str]) -> None:
    port = free_ports(2)  # the router and its judge
    found = [(info, body.replace("8800", str(port))) for info, body in steps(TUTORIAL)]
    serve = next(body for info, body in found if info == "sh serve")
    with judge(serve, port, tmp_path, environment):
        printed = run_script("".join(body for info, body in found if info == "sh"), tmp_path, environment)
    assert "axpy: solved" in printed and "axpy: wrong" in printed and "relu: solved" in printed
    assert '"outcome":"solved"' in printed
    assert json.loads((tmp_path / "answer.json").read_text())["outcome"] == "solved"


def test_the_launch_page_runs(tmp_path: Path, environment: dict[str, str]) -> None:
    run_script("".join(body for _, body in steps(ROOT / "LAUNCH.md")), tmp_path, environment)
    (summary,) = tmp_path.glob("runs/local-*/summary.json")
    assert json.loads(summary.read_text())["exit_code"] == 0


def plain_lines(text: str, folder: Path) -> list[str]:
    """Lines that are not empty, without what another checkout or the next edit of a layer would change."""
    named = text.replace(f"{folder}/", "").replace(str(ROOT), "kernelcourt")
    unnumbered = re.sub(r"(\.yaml|\.env):\d+", r"\1", named)
    return [" ".join(line.split()) for line in unnumbered.splitlines() if line.strip(" ─")]


def test_the_page_on_studies_prints_what_it_shows(tmp_path: Path, environment: dict[str, str]) -> None:
    ours = {name: value for name, value in environment.items() if not re.match("KCOURT_|SLURM_|SBATCH_", name)}
    script = "".join(body for _, body in steps(STUDIES))
    printed = plain_lines(run_script(f"exec 2>&1\n{script}", tmp_path, ours), tmp_path)
    shown = [match["body"] for match in FENCE.finditer(STUDIES.read_text()) if match["info"] == "text printed"]
    assert [line for body in shown for line in plain_lines(body, tmp_path) if line not in printed] == []
