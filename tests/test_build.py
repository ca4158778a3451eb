"""Source to artifact: commands, logs, caches, and faults that are the judge's own."""

import ctypes
import os
import re
from pathlib import Path

import numpy as np
import pytest
from kernels import (
    HONEST_C,
    HONEST_CPP,
    HONEST_FORTRAN,
    HONEST_HIP,
    HONEST_PYTHON,
    LANGUAGES,
    NEEDS_GFORTRAN,
    TWICE_FILES,
    court,
    write_kernel,
)

from bench import cache
from bench.build import builder, toolchain
from bench.errors import EnvironmentFault, JudgeFault
from bench.gates import binary
from bench.judge.schemas import Language, Outcome
from bench.race import policy_stamp
from bench.reference import Twin, numpy_oracle
from bench.task import load_task, select
from bench.verdict import Rejected

AXPY = select("axpy")[0]
HONEST = {
    Language.C: HONEST_C,
    Language.CPP: HONEST_CPP,
    Language.FORTRAN: HONEST_FORTRAN,
    Language.PYTHON: HONEST_PYTHON,
    Language.HIP: HONEST_HIP,
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_honest_source_becomes_an_artifact(tmp_path: Path, language: Language) -> None:
    built = builder.build_submission(court().sandbox, tmp_path, AXPY, language, HONEST[language])
    assert built.path.parent == tmp_path and built.path.is_file()
    assert built.language is language
    if language is not Language.PYTHON:
        assert built.commands == builder.submission_commands(language, "axpy")
        assert set(toolchain.toolchains()[language].flags) <= set(builder.build_command(language, "axpy").split())
        assert ctypes.CDLL(str(built.path)).axpy
        assert built.compiler.startswith(("gcc", "g++", "GNU Fortran"))


@pytest.mark.parametrize(
    ("language", "source", "log"),
    [
        (Language.C, "void axpy( { }", r"axpy\.c:1:\d+: error"),
        (Language.C, "#error not like this\n", "#error not like this"),
        (Language.C, '#include "nowhere.h"\n', r"nowhere\.h: No such file"),
        (Language.C, "int nobody(void); int axpy(void) { return nobody() + }", "error"),
        (Language.CPP, "template <class T> void axpy( {", r"axpy\.cpp:1:\d+: error"),
        pytest.param(Language.FORTRAN, "subroutine axpy(x\n", r"axpy\.f90:1:\d+:", marks=NEEDS_GFORTRAN),
        (Language.PYTHON, "def axpy(:\n", r"axpy\.py, line 1"),
        (Language.PYTHON, "x = '\0'\n", "null byte"),
    ],
    ids=["c", "error", "include", "expression", "cpp", "fortran", "python", "nul"],
)
def test_a_source_that_does_not_build_has_the_compilers_words(
    tmp_path: Path, language: Language, source: str, log: str
) -> None:
    with pytest.raises(Rejected) as raised:
        builder.build_submission(court().sandbox, tmp_path, AXPY, language, source)
    assert raised.value.outcome is Outcome.BUILD_FAILED
    assert raised.value.property == "build"
    assert "; mend the" in raised.value.detail["message"]
    assert re.search(log, raised.value.log), raised.value.log
    assert str(tmp_path) not in raised.value.log


def test_a_compiler_that_takes_too_long_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "BUILD_LIMITS", toolchain.Limits(wall_s=0.01))
    with pytest.raises(Rejected) as raised:
        builder.build_submission(court().sandbox, tmp_path, AXPY, Language.C, HONEST_C)
    assert (raised.value.outcome, raised.value.property) == (Outcome.BUILD_FAILED, "build_time")
    assert "the compiler was stopped" in raised.value.detail["message"]


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EnvironmentFault, match="'gcc-of-nobody' was not found; on Debian: apt-get install"):
        _ = toolchain.Toolchain("gcc-of-nobody", (), ()).version


def test_the_version_is_that_of_the_compiler_that_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = toolchain.toolchains()["c"].version
    fake = tmp_path / "bin" / "gcc"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho gcc of nobody 99\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    toolchain._version.cache_clear()
    built = builder.build_submission(court().sandbox, tmp_path, AXPY, Language.C, HONEST_C)
    assert built.compiler == honest


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.write_text("no folder")
    with pytest.raises(EnvironmentFault, match=rf"{place}/below: the cache cannot be written \(.*set KCOURT_CACHE"):
        cache.cached(place / "below", "key", ".txt", lambda target: None)


def test_trusted_builds_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCOURT_CACHE", str(tmp_path))
    first = builder.denominator(court().sandbox, AXPY.baselines[0])
    made = first.path.stat().st_mtime_ns
    assert builder.denominator(court().sandbox, AXPY.baselines[0]).path.stat().st_mtime_ns == made
    assert builder.twin(court().sandbox, AXPY.baselines[0]).path != first.path
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".so"]


def test_both_sides_of_a_grade_are_the_same_code_at_the_same_places(tmp_path: Path) -> None:
    """The same loop elsewhere in its page was up to a quarter slower."""
    baseline = AXPY.baselines[0]
    source = baseline.read_text(encoding="utf-8")
    submitted = builder.build_submission(court().sandbox, tmp_path, AXPY, Language.C, source)
    sides = [submitted, builder.denominator(court().sandbox, baseline)]
    codes = []
    for side in sides:
        with side.path.open("rb") as file:
            codes.append(binary.read(file).code)
    assert codes[0] and codes[0] == codes[1]


def test_a_changed_baseline_is_built_again(tmp_path: Path) -> None:
    folder = write_kernel(tmp_path)
    before = builder.denominator(court().sandbox, folder / "baseline.c").path
    stamp = policy_stamp(load_task(folder))
    (folder / "baseline.c").write_text(TWICE_FILES["baseline.c"] + "// the same, said differently\n")
    assert builder.denominator(court().sandbox, folder / "baseline.c").path != before
    assert policy_stamp(load_task(folder)) != stamp


def test_a_baseline_that_does_not_build_is_the_judges_fault(tmp_path: Path) -> None:
    folder = write_kernel(tmp_path)
    (folder / "baseline.c").write_text("void twice( {")
    with pytest.raises(JudgeFault, match=r"baseline\.c does not build:\n(.|\n)*error"):
        builder.denominator(court().sandbox, folder / "baseline.c")


def test_a_baseline_without_its_function_is_the_judges_fault(tmp_path: Path) -> None:
    folder = write_kernel(tmp_path)
    (folder / "baseline.c").write_text("void thrice(void) {}\n")
    with pytest.raises(JudgeFault, match=r"baseline\.c: defines no function 'twice'"):
        Twin(court().sandbox, load_task(folder))


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("def thrice(x, out, n):\n    pass\n", "defines no function 'twice'"),
        ("def twice(x, out, n):\n    out[...] = x @ x @ x\n", r"twice\(\) failed at {'n': 3}: ValueError"),
    ],
    ids=["missing", "raises"],
)
def test_a_broken_reference_is_the_judges_fault(tmp_path: Path, reference: str, says: str) -> None:
    task = load_task(write_kernel(tmp_path, files=TWICE_FILES | {"reference.py": reference}))
    with pytest.raises(JudgeFault, match=rf"reference\.py: {says}"):
        numpy_oracle(task, {"x": np.ones(3, np.float32)}, {"n": 3})


def test_twin_and_reference_agree_in_double_and_leave_their_inputs_alone() -> None:
    (task,) = select("floyd_warshall")
    dist = np.random.default_rng(1).random((17, 17)).astype(np.float32)
    before = dist.copy()
    by_twin = Twin(court().sandbox, task).oracle({"dist": dist}, {"n": 17})
    by_numpy = numpy_oracle(task, {"dist": dist}, {"n": 17})
    assert by_twin.expected["dist"].dtype == np.float64
    np.testing.assert_allclose(by_twin.expected["dist"], by_numpy.expected["dist"], rtol=1e-14)
    assert np.array_equal(dist, before)


def test_a_cached_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    def fails(target: Path) -> None:
        target.write_text("half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        cache.cached(tmp_path, "key", ".txt", fails)
    assert list(tmp_path.iterdir()) == []
    made = cache.cached(tmp_path, "key", ".txt", lambda target: target.write_text("whole") and None)
    assert made == tmp_path / "key.txt" and made.read_text() == "whole"
    assert cache.cached(tmp_path, "key", ".txt", fails) == made


def test_content_keys_know_where_a_part_ends() -> None:
    assert cache.content_key("ab", "c") != cache.content_key("a", "bc") != cache.content_key("abc")
    assert cache.content_key("a", b"b") == cache.content_key(b"a", "b")


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    monkeypatch.delenv("KCOURT_CACHE", raising=False)
    assert cache.default_cache() == Path("/x/kernelcourt")
    monkeypatch.setenv("KCOURT_CACHE", "/y")
    assert cache.default_cache() == Path("/y")
    assert os.environ["KCOURT_CACHE"] == "/y"
