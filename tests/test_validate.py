"""Validation of kernels: each kind of fault FAILs by name, and the shipped kernels pass."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kernels import TWICE, TWICE_C, TWICE_FILES, copy_kernel, court, write_kernel

from bench.errors import EnvironmentFault
from bench.gates import artifacts
from bench.mutants import KINDS, mutants
from bench.task import find_task, load_task, select
from bench.validate import Check, Verdict, validate, worst
from bench.verdict import Rejected


@pytest.fixture
def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Iterator[Check]]:
    """Validates the kernel `twice` with some of its files and fields replaced."""
    monkeypatch.setenv("KCOURT_TASKS_DIR", str(tmp_path))

    def check(files: dict[str, str] | None = None, **fields: Any) -> Iterator[Check]:
        write_kernel(tmp_path, TWICE | fields, TWICE_FILES | (files or {}))
        return validate(find_task("twice"), court())

    return check


def failures(checks: Iterator[Check]) -> dict[str, str]:
    return {check.check: check.note for check in checks if check.verdict is Verdict.FAIL}


def test_a_good_kernel_passes(checked: Callable[..., Iterator[Check]]) -> None:
    checks = list(checked(mutants={"one_untouched": "there is only one output"}))
    assert worst(checks) is Verdict.PASS, checks
    names = {check.check for check in checks}
    assert {"twin", "traffic", "baseline.c", "honest_sum.c", "honest_back.c", "wrong_tail.c", *KINDS} <= names


def test_each_fault_is_named(checked: Callable[..., Iterator[Check]]) -> None:
    found = failures(
        checked(
            {
                "controls/honest_back.c": TWICE_C.format("while (n-- > 0) out[n] = 3 * x[n];"),
                "controls/honest_sum.c": "this is no C\n",
                "controls/wrong_tail.c": TWICE_FILES["controls/honest_sum.c"],
                "controls/wrong_typo.c": "neither is this\n",
                "controls/wrongly_named.c": TWICE_FILES["controls/wrong_tail.c"],
                "controls/wrong_suffix.txt": "this is no source\n",
            },
            traffic="n",
            mutants={"typo": "no reason", **dict.fromkeys(set(KINDS) - {"one_untouched"}, "tried elsewhere")},
        )
    )
    controls = {"honest_back.c", "honest_sum.c", "wrong_tail.c", "wrong_typo.c", "wrongly_named.c", "wrong_suffix.txt"}
    assert set(found) == {*controls, "traffic", "manifest", "one_untouched"}
    assert found["one_untouched"].endswith("say why under mutants.one_untouched of task.yaml")
    assert found["honest_back.c"].startswith("must be solved, but is wrong: values output out, index [")
    assert found["honest_sum.c"].startswith("must be solved, but is build_failed: build")
    assert found["wrong_tail.c"].startswith("must be rejected, but is solved")
    assert found["wrong_typo.c"].startswith("must be rejected for what it computes, but is build_failed")
    for name in ("wrongly_named.c", "wrong_suffix.txt"):
        assert found[name].startswith("not tried; a control's name begins with honest_, fast_, wrong_ and ends in .c")
    assert "fewer than the outputs' own 64000" in found["traffic"]
    assert found["manifest"].startswith("mutants: 'typo' is no kind of mutant; known: empty, zeros")


def test_a_kernel_that_a_mutant_solves_fails(checked: Callable[..., Iterator[Check]]) -> None:
    ones = TWICE_FILES["baseline.c"].replace("2 * x[i]", "1")
    found = failures(
        checked(
            {
                "reference.py": "def twice(x, out, n):\n    out[...] = 1\n",
                "baseline.c": ones,
                "controls/honest_sum.c": TWICE_C.format("for (int64_t i = 0; i < n; i++) out[i] = 1;"),
                "controls/honest_back.c": TWICE_C.format("while (n-- > 0) out[n] = 1;"),
            }
        )
    )
    assert set(found) == {"constant", "reduced_precision"}
    assert "solved" in found["constant"]


@pytest.mark.parametrize(
    ("files", "check", "says"),
    [
        ({"baseline.c": TWICE_FILES["baseline.c"].replace("2 *", "2.000001 *")}, "twin S", r"out\[0\] at {'n': 2000}"),
        ({"baseline.c": "this is no C\n"}, "twin", "does not build"),
        ({"reference.py": "def twice(x, out, n):\n    out[...] = y\n"}, "twin", "NameError"),
    ],
    ids=["differs", "does-not-build", "raises"],
)
def test_a_twin_that_is_not_the_reference_fails(
    checked: Callable[..., Iterator[Check]], files: dict[str, str], check: str, says: str
) -> None:
    checks = checked(files)
    first = next(found for found in checks if found.check.startswith("twin"))
    assert (first.verdict, first.check) == (Verdict.FAIL, check)
    assert re.search(says, first.note), first.note
    if check == "twin":
        assert list(checks) == [], "the same fault would be told of every submission"


def test_one_honest_control_is_not_enough(tmp_path: Path) -> None:
    folder = write_kernel(tmp_path)
    (folder / "controls" / "honest_sum.c").unlink()
    checks = validate(load_task(folder), court())
    assert {next(checks).check, (second := next(checks)).check} == {"traffic", "controls"}
    assert second.verdict is Verdict.FAIL


def test_a_control_that_is_no_text_fails_alone(checked: Callable[..., Iterator[Check]], tmp_path: Path) -> None:
    checks = checked()
    (task,) = tmp_path.glob("*/twice")
    (task / "controls" / "honest_sum.c").write_bytes(b"/* caf\xe9 */\n")
    found = list(checks)
    assert {check.check for check in found if check.verdict is Verdict.FAIL} == {"honest_sum.c"}
    assert "wrong_tail.c" in {check.check for check in found}


def test_the_worst_verdict_counts() -> None:
    def check(verdict: Verdict) -> Check:
        return Check("c", verdict)

    assert worst([]) is Verdict.FAIL
    assert worst([check(Verdict.PASS)]) is Verdict.PASS
    assert worst([check(Verdict.PASS), check(Verdict.WARN)]) is Verdict.WARN
    assert worst([check(Verdict.WARN), check(Verdict.FAIL), check(Verdict.PASS)]) is Verdict.FAIL


@pytest.mark.parametrize("task", [task for task in select("all") if task.baselines], ids=lambda task: str(task.name))
def test_every_kernel_of_cpus_has_mutants_or_says_why_not(task: Any) -> None:
    made = mutants(task)
    assert tuple(made) == KINDS
    written = [source for source in made.values() if source is not None]
    assert len(set(written)) == len(written) >= 7
    assert {kind for kind, source in made.items() if source is None} <= set(task.manifest.mutants)


@pytest.mark.usefixtures("emulated_alone")
@pytest.mark.parametrize("kernel", [task.name for task in select("all")])
def test_a_shipped_kernel_is_valid(kcourt: Callable[..., Any], tmp_path: Path, kernel: str) -> None:
    ran = kcourt("task", "validate", kernel, "--allow-sandbox", "limits", "--json", "--report", "report.yaml")
    ((name, found),) = ran.json["kernels"].items()
    assert [check for check in found["checks"] if check["verdict"] == "FAIL"] == []
    assert (ran.code, name, found["verdict"] in ("PASS", "WARN")) == (0, kernel, True)
    assert yaml.safe_load((tmp_path / "report.yaml").read_text()) == ran.json


def in_one_file(files: list[tuple[str, Path]]) -> str:
    """Sources in HIP of (kernel, path), each in a namespace and with an entry point of its own."""
    included, parts = set(), []
    for number, (kernel, path) in enumerate(files):
        lines = path.read_text(encoding="utf-8").splitlines()
        included |= {line for line in lines if line.startswith("#include")}
        text = "\n".join(line for line in lines if not line.startswith("#include"))
        macros = {kernel, *re.findall(r"^\s*#\s*define\s+(\w+)", text, re.MULTILINE)}
        forgotten = "".join(f"#undef {name}\n" for name in sorted(macros))
        parts.append(f"namespace n{number} {{\n#define {kernel} {kernel}_{number}\n{text}\n{forgotten}}}\n")
    return "\n".join([*sorted(included), *parts])


@pytest.mark.parametrize("suite", sorted({task.manifest.suite for task in select("all")}))
def test_all_that_is_written_in_hip_compiles_for_a_gpu(suite: str) -> None:
    """In one go, since a file takes hardly longer than the headers; `make validate` compiles each by itself."""
    files = [(task.name, path) for task in select(suite) for path in sorted(task.folder.rglob("*.hip"))]
    try:
        made, _ = artifacts.compiled_for_a_gpu(court().sandbox, f"{suite}.hip", in_one_file(files))
    except EnvironmentFault as fault:
        pytest.skip(str(fault))
    except Rejected as rejected:
        pytest.fail(rejected.log)
    assert len(made.kernels) >= len(files)


def test_the_command_fails_a_broken_kernel_by_name(kcourt: Callable[..., Any], tmp_path: Path) -> None:
    folder = copy_kernel(tmp_path / "tasks", "axpy")
    (folder / "baseline.c").write_text("this is no C\n")
    env = {"KCOURT_TASKS_DIR": str(tmp_path / "tasks")}
    ran = kcourt("task", "validate", "axpy", "--allow-sandbox", "limits", env=env)
    assert ran.code == 1
    assert ran.out.startswith("FAIL  axpy  (")
    assert "baseline.c does not build" in ran.out
