"""Fortran: stored declarations, shapes in its order, modules, its runtime, and a judge without a compiler for it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from kernels import HONEST_FORTRAN, NEEDS_GFORTRAN, TWICE, TWICE_FILES, court, graded, write_kernel

from agent.tools.syntax_check import syntax_check
from bench import abi
from bench.build import builder, toolchain
from bench.errors import TaskError
from bench.judge.schemas import Language, Outcome
from bench.mutants import KINDS
from bench.task import find_task, load_task, select
from bench.validate import Verdict, validate, worst

DECLARATIONS = {
    "axpy": """\
subroutine axpy(x, y, out, n, a) bind(C, name="axpy")
  ! Arrays are those of C: the same memory, dimensions in reverse order. Index values count from 0.
  use, intrinsic :: iso_c_binding, only: c_float, c_int64_t
  implicit none
  integer(c_int64_t), value :: n
  real(c_float), intent(in) :: x(n)
  real(c_float), intent(in) :: y(n)
  real(c_float), intent(out) :: out(n)
  real(c_float), value :: a
end subroutine axpy""",
    "spmv_csr": """\
subroutine spmv_csr(row_ptr, col_idx, values, x, y, rows, cols, nnz) bind(C, name="spmv_csr")
  ! Arrays are those of C: the same memory, dimensions in reverse order. Index values count from 0.
  use, intrinsic :: iso_c_binding, only: c_float, c_int32_t, c_int64_t
  implicit none
  integer(c_int64_t), value :: rows
  integer(c_int64_t), value :: cols
  integer(c_int64_t), value :: nnz
  integer(c_int64_t), intent(in) :: row_ptr(rows + 1)
  integer(c_int32_t), intent(in) :: col_idx(nnz)
  real(c_float), intent(in) :: values(nnz)
  real(c_float), intent(in) :: x(cols)
  real(c_float), intent(out) :: y(rows)
end subroutine spmv_csr""",
    "gauss_seidel2d": """\
subroutine gauss_seidel2d(f, u, rows, cols) bind(C, name="gauss_seidel2d")
  ! Arrays are those of C: the same memory, dimensions in reverse order. Index values count from 0.
  use, intrinsic :: iso_c_binding, only: c_float, c_int64_t
  implicit none
  integer(c_int64_t), value :: rows
  integer(c_int64_t), value :: cols
  real(c_float), intent(in) :: f(cols, rows)
  real(c_float), intent(inout) :: u(cols, rows)
end subroutine gauss_seidel2d""",
}


@pytest.mark.parametrize("name", DECLARATIONS)
def test_a_declaration(name: str) -> None:
    assert abi.declaration(select(name)[0], Language.FORTRAN) == DECLARATIONS[name]


@NEEDS_GFORTRAN
def test_every_kernels_declaration_is_a_subroutine_that_compiles(tmp_path: Path) -> None:
    path = tmp_path / "all.f90"
    written = [task for task in select("all") if Language.FORTRAN in task.manifest.languages]
    path.write_text("\n".join(abi.declaration(task, Language.FORTRAN) for task in written))
    report = syntax_check(path, Language.FORTRAN)
    assert report.ok and "Error" not in report.messages, report.messages


@pytest.mark.parametrize(
    ("shape", "in_fortran"),
    [
        (["n", "2 * n", "3"], "(3, 2 * n, n)"),
        (["(n + 1) // 2", "min(n, 8)"], "(min(n, 8), (n + 1) / 2)"),
        (["ceil(n / 2)", "n"], "(*)"),
        (["n", "n % 4 + 1"], "(*)"),
        (["n", "ceil(log2(n + 1))"], "(*)"),
    ],
    ids=["reversed", "quotient", "fraction", "remainder", "logarithm"],
)
def test_a_shape_is_in_fortrans_order_or_flat(tmp_path: Path, shape: list[str], in_fortran: str) -> None:
    arguments = TWICE["arguments"] | {"out": {"role": "output", "dtype": "float32", "shape": shape}}
    task = load_task(write_kernel(tmp_path, TWICE | {"arguments": arguments}))
    assert f"intent(out) :: out{in_fortran}\n" in abi.declaration(task, Language.FORTRAN)


@pytest.mark.parametrize(("name", "other"), [("X", "x"), ("Twice", "twice")], ids=["argument", "kernel"])
def test_names_that_differ_by_case_alone_are_refused(tmp_path: Path, name: str, other: str) -> None:
    arguments = TWICE["arguments"] | {name: {"role": "scalar", "dtype": "float32", "values": ["few"]}}
    folder = write_kernel(tmp_path, TWICE | {"arguments": arguments, "languages": ["c", "fortran"]})
    with pytest.raises(TaskError, match=rf"'{other}' and '{name}' are one name in Fortran.*rename one"):
        load_task(folder)
    write_kernel(tmp_path, TWICE | {"arguments": arguments})
    assert name in load_task(folder).arguments


MODULE = """\
module pieces
  use, intrinsic :: iso_c_binding, only: c_float
contains
  elemental real(c_float) function line(a, u, v)
    real(c_float), intent(in) :: a, u, v
    line = a * u + v
  end function line
end module pieces
"""


@NEEDS_GFORTRAN
def test_a_module_stays_in_the_builds_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = MODULE + HONEST_FORTRAN.replace("implicit none", "use pieces, only: line\n  implicit none")
    source = source.replace("a * x + y", "line(a, x, y)")
    here, build = tmp_path / "here", tmp_path / "build"
    here.mkdir()
    build.mkdir()
    monkeypatch.chdir(here)
    builder.build_submission(court().sandbox, build, select("axpy")[0], Language.FORTRAN, source)
    assert list(here.iterdir()) == []
    assert {path.name for path in build.iterdir()} >= {"axpy.f90", "axpy.so"}
    assert graded(source, Language.FORTRAN).outcome is Outcome.SOLVED


@NEEDS_GFORTRAN
def test_fortrans_own_runtime_is_found_inside(tmp_path: Path) -> None:
    """Reading and writing text is the work of a library, which plain loops do not need."""
    text = "character(len=24) :: text\n  write (text, '(es24.16)') a\n  read (text, *) read_back"
    source = HONEST_FORTRAN.replace("  out = a * x + y", f"  {text}\n  out = read_back * x + y")
    source = source.replace("  character", "  real(c_float) :: read_back\n  character")
    task = select("axpy")[0]
    with_runtime = builder.build_submission(court().sandbox, tmp_path, task, Language.FORTRAN, source).path.read_bytes()
    plain = builder.build_submission(court().sandbox, tmp_path, task, Language.FORTRAN, HONEST_FORTRAN).path
    assert b"libgfortran" in with_runtime and b"libgfortran" not in plain.read_bytes()
    report = graded(source, Language.FORTRAN)
    assert report.outcome is Outcome.SOLVED, (report.property, report.detail, report.log)


@NEEDS_GFORTRAN
@pytest.mark.parametrize(
    ("body", "outcome"),
    [("out = a * x", Outcome.WRONG), ("error stop 'no'", Outcome.CRASHED)],
    ids=["wrong", "stops"],
)
def test_a_bad_submission_has_its_outcome(body: str, outcome: Outcome) -> None:
    assert graded(HONEST_FORTRAN.replace("out = a * x + y", body), Language.FORTRAN).outcome is outcome


@NEEDS_GFORTRAN
def test_the_tutorials_fortran_is_solved(repository: Path) -> None:
    page = (repository / "docs" / "tutorial-first-kernel.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"^```fortran\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    assert graded(source, Language.FORTRAN).outcome is Outcome.SOLVED


@pytest.fixture
def without_gfortran() -> Iterator[None]:
    """The toolchains of a machine where no compiler for Fortran is installed."""
    text = toolchain.shipped_toolchains().replace(b"compiler: gfortran", b"compiler: nobodys-gfortran")
    with toolchain.recorded_toolchains(text):
        yield


@pytest.mark.usefixtures("without_gfortran")
def test_a_judge_without_the_compiler_is_to_blame_and_names_the_package() -> None:
    report = graded(HONEST_FORTRAN, Language.FORTRAN)
    assert report.outcome is Outcome.JUDGE_FAULT
    said = "the compiler 'nobodys-gfortran' was not found; on Debian: apt-get install nobodys-gfortran"
    assert said in report.model_dump_json()


@pytest.mark.usefixtures("without_gfortran")
def test_validation_says_what_it_cannot_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCOURT_TASKS_DIR", str(tmp_path))
    kept = ("reference.py", "baseline.c", "controls/honest_sum.c")
    files = {name: TWICE_FILES[name] for name in kept}
    files |= {"controls/honest_fortran.f90": "end\n", "controls/wrong_fortran.f90": "end\n"}
    elsewhere = {"mutants": dict.fromkeys(KINDS, "tried elsewhere")}
    write_kernel(tmp_path, TWICE | {"languages": ["c", "fortran"]} | elsewhere, files)
    checks = {check.check: check for check in validate(find_task("twice"), court())}
    assert worst([*checks.values()]) is Verdict.WARN
    for name in ("honest_fortran.f90", "wrong_fortran.f90"):
        assert checks[name].verdict is Verdict.WARN
        assert checks[name].note.startswith("not tried: the compiler 'nobodys-gfortran' was not found")
