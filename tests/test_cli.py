"""The `kcourt` command: lists commands without importing them, words errors, names the nearest command."""

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import run_program

Kcourt = Callable[..., Any]

PLUGIN = '''"""Greets, and fails in the ways that a command can fail."""

import pathlib

pathlib.Path({marker!r}).write_text("imported")

import typer

from bench.errors import ConfigError, JudgeFault

app = typer.Typer()


@app.command()
def greet(how: str = "well", json: bool = typer.Option(False, "--json")) -> int:
    if how == "interrupted":
        raise KeyboardInterrupt
    if how == "misconfigured":
        raise ConfigError("greet.json: nam: unknown key; did you mean name?")
    if how == "judge":
        raise JudgeFault("the judge lost its clock")
    if how == "extra":
        raise ModuleNotFoundError("No module named 'scipy'", name="scipy")
    if how == "bug":
        import a_module_of_nobody
    return 7 if how == "seven" else 0
'''


@pytest.fixture
def plugin(tmp_path: Path) -> dict[str, str]:
    """Environment in which an installed third-party package adds the command `greet`."""
    site = tmp_path / "site"
    info = site / "greeter-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: greeter\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[kernelcourt.commands]\ngreet = greeter:app\n")
    (site / "greeter.py").write_text(PLUGIN.format(marker=str(tmp_path / "marker")))
    return {"PYTHONPATH": str(site)}


def test_help_lists_every_command_and_imports_none(
    kcourt_process: Kcourt, plugin: dict[str, str], tmp_path: Path
) -> None:
    ran = kcourt_process("--help", env=plugin)
    assert ran.code == 0
    assert re.search(r"greet +Greets, and fails in the ways that a command can fail\.", ran.out)
    assert not (tmp_path / "marker").exists()


def test_no_arguments_show_the_help(kcourt_process: Kcourt) -> None:
    ran = kcourt_process()
    assert (ran.code, ran.out) == (0, kcourt_process("--help").out)


def test_each_command_of_the_package_is_listed(kcourt_process: Kcourt, repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = set(re.findall(r"^  (\w+) ", kcourt_process("--help").out, flags=re.MULTILINE))
    assert set(project["entry-points"]["kernelcourt.commands"]) <= listed


def test_help_imports_no_third_party_package() -> None:
    code = (
        "import sys; sys.argv = ['kcourt', '--help']\n"
        "import bench.cli\n"
        "try: bench.cli.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'typer', 'numpy', 'pydantic', 'rich', 'httpx', 'sqlalchemy', 'fastapi'} & set(sys.modules)\n"
        "print('heavy:', *heavy, file=sys.stderr)\n"
    )
    done = run_program(sys.executable, "-c", code)
    assert (done.code, done.err) == (0, "heavy:\n")


def test_version(kcourt_process: Kcourt, repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert kcourt_process("--version").out == f"kcourt {project['version']}\n"


@pytest.mark.parametrize(
    ("arguments", "code", "word", "says"),
    [
        (["gret"], 2, "usage", "no command 'gret'; did you mean 'greet'?"),
        (["zzzzzz"], 2, "usage", "no command 'zzzzzz'; known: accept, agent, build"),
        (["--colour"], 2, "usage", "no option '--colour'; see `kcourt --help`"),
        (["greet", "--hw", "x"], 2, "usage", "see `kcourt greet --help`"),
        (["greet", "--how", "misconfigured"], 64, "configuration", "did you mean name?"),
        (["greet", "--how", "judge"], 3, "judge_fault", "the judge lost its clock"),
        (["greet", "--how", "extra"], 1, "failed", "pip install 'kernelcourt[judge]'"),
    ],
    ids=["near", "far", "option", "sub-option", "configuration", "judge", "extra"],
)
def test_an_error_has_words_a_code_and_json(
    kcourt_process: Kcourt, plugin: dict[str, str], arguments: list[str], code: int, word: str, says: str
) -> None:
    plain = kcourt_process(*arguments, env=plugin)
    assert (plain.code, plain.out) == (code, "")
    assert plain.err.startswith("error: ") and says in plain.err and "Traceback" not in plain.err
    with_json = kcourt_process(*arguments, "--json", env=plugin)
    assert with_json.code == code
    assert with_json.json["error"]["code"] == word


def test_a_bug_keeps_its_traceback(kcourt_process: Kcourt, plugin: dict[str, str]) -> None:
    ran = kcourt_process("greet", "--how", "bug", env=plugin)
    assert ran.code == 1
    assert "Traceback" in ran.err and "a_module_of_nobody" in ran.err


def test_an_interrupt_ends_quietly(kcourt_process: Kcourt, plugin: dict[str, str]) -> None:
    ran = kcourt_process("greet", "--how", "interrupted", env=plugin)
    assert (ran.code, ran.out, ran.err) == (130, "", "")


def test_a_command_chooses_its_exit_code(kcourt_process: Kcourt, plugin: dict[str, str]) -> None:
    assert kcourt_process("greet", "--how", "seven", env=plugin).code == 7
