"""`kcourt grade` and `kcourt task`: exit codes, one JSON object, words for every mistake."""

import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran
from kernels import HONEST_C, HONEST_PYTHON, LOOP, TWICE_FILES, axpy_c, reached, write_kernel

from bench import adhoc
from bench.cli import main
from bench.errors import ShardError

Kcourt = Callable[..., Any]

ANSWER = {
    *("grade_id", "kernel", "rank", "outcome", "score", "interval", "faster", "suspect", "protocol", "detail"),
}
BESIDE = {"inputs", "build", "sandbox", "overhead_ms"}
QUICK = ("--preset", "S", "--protocol", "mw2x5", "--allow-sandbox", "limits")


@pytest.fixture
def mine(tmp_path: Path) -> Callable[..., str]:
    """Writes a submission into the folder that the command runs in."""

    def write(source: str, name: str = "my.c") -> str:
        (tmp_path / name).write_text(source)
        return name

    return write


def test_a_solved_file_is_one_object(kcourt: Kcourt, mine: Callable[..., str], tmp_path: Path) -> None:
    ran = kcourt("grade", "axpy", mine(HONEST_C), *QUICK, "--json")
    assert ran.code == 0, ran.err
    found = ran.json
    assert ran.out.count("\n") == 1
    assert found.keys() >= ANSWER | BESIDE
    assert (found["kernel"], found["outcome"], found["protocol"]) == ("axpy", "solved", "mw2x5")
    assert (found["sandbox"], found["rank"], found["suspect"]) == (reached(), 0, None)
    low, high = found["interval"]
    assert found["faster"] == (low > 1) and low <= high and found["score"] > 0
    assert len(found["inputs"]) == 2
    for each in found["inputs"]:
        assert each.keys() >= {"sizes", "ratio", "p", "candidate_ns", "denominator_ns"}
        assert len(each["candidate_ns"]) == 5
    assert found["build"]["commands"][0][0] == "gcc" and found["build"]["seconds"] > 0
    assert found["overhead_ms"] > 0
    assert (tmp_path / ".scratch" / "runs" / "adhoc" / "grades.db").is_file()


@pytest.mark.parametrize(
    ("protocol", "kind"),
    [("mw2x5", "score"), ("mw4x5", "submit"), ("mw4x5-aa", "calibration")],
)
def test_a_grade_is_of_its_protocols_kind(
    kcourt: Kcourt, mine: Callable[..., str], tmp_path: Path, protocol: str, kind: str
) -> None:
    ran = kcourt("grade", "axpy", mine("void axpy("), *QUICK, "--protocol", protocol, "--json")
    assert ran.code == 0, ran.err
    with sqlite3.connect(tmp_path / ".scratch" / "runs" / "adhoc" / "grades.db") as db:
        assert db.execute("SELECT protocol, kind FROM grades").fetchall() == [(protocol, kind)]


def test_a_solved_file_is_a_table(kcourt: Kcourt, mine: Callable[..., str]) -> None:
    ran = kcourt("grade", "axpy", mine(HONEST_PYTHON, "my.py"), *QUICK, env={"COLUMNS": "160"})
    assert ran.code == 0
    assert ran.out.startswith("axpy: solved\nS = ")
    assert f"protocol mw2x5, preset S, sandbox {reached()}" in ran.out
    assert ran.out.count("n=") == 2


def test_a_wrong_file_says_where(kcourt: Kcourt, mine: Callable[..., str]) -> None:
    ran = kcourt("grade", "axpy", mine(axpy_c(f"{LOOP} out[0] = NAN;")), *QUICK, "--json")
    assert ran.code == 0
    found = ran.json
    assert (found["outcome"], found["score"], found["interval"], found["faster"]) == ("wrong", None, None, None)
    assert found["inputs"] == []
    detail = found["detail"]
    assert (detail["property"], detail["output"], detail["index"], detail["got"]) == ("values", "out", [0], "nan")
    assert detail["bound"] >= 0 and "expected" in detail


def test_a_file_that_does_not_compile_shows_the_compilers_words(kcourt: Kcourt, mine: Callable[..., str]) -> None:
    ran = kcourt("grade", "axpy", mine("void axpy(\n"), *QUICK)
    assert ran.code == 0
    assert ran.out.startswith("axpy: build_failed\n")
    assert "axpy.c:1" in ran.out and "error" in ran.out


def test_a_judge_that_fails_is_exit_code_3(kcourt: Kcourt, mine: Callable[..., str], tmp_path: Path) -> None:
    write_kernel(tmp_path / "tasks", files=TWICE_FILES | {"reference.py": "def twice(x, out, n):\n    raise OSError\n"})
    env = {"KCOURT_TASKS_DIR": str(tmp_path / "tasks")}
    ran = kcourt("grade", "twice", mine(TWICE_FILES["controls/honest_sum.c"]), *QUICK, "--json", env=env)
    assert ran.code == 3
    assert ran.json["outcome"] == "judge_fault"
    assert "reference.py: twice() failed" in ran.json["detail"]["message"]


USAGE = {
    "kernel": (["grade", "axpyy", "my.c"], "unknown kernel 'axpyy'; did you mean 'axpy'?"),
    "protocol": (["grade", "axpy", "my.c", "--protocol", "mw9x5"], "unknown protocol 'mw9x5'; known protocols: mw2x5"),
    "language": (
        ["grade", "axpy", "my.c", "--language", "cobol"],
        "'cobol' is not one of 'c', 'cpp', 'fortran', 'python'",
    ),
    "preset": (["grade", "axpy", "my.c", "--preset", "XS"], "'XS' is not one of 'S', 'M', 'L', 'XL'"),
    "suffix": (["grade", "axpy", "my.rs"], "my.rs: no language has the suffix '.rs'; known: .c (c)"),
    "missing": (["grade", "axpy", "nobody.c"], "nobody.c: cannot be read (No such file or directory)"),
    "folder": (["grade", "axpy", "folder.c"], "folder.c: cannot be read (Is a directory)"),
    "binary": (["grade", "axpy", "binary.c"], "binary.c: is not UTF-8 text (byte 1); a submission is source text"),
    "sandbox": (["grade", "axpy", "my.c", "--allow-sandbox", "vm"], "'vm' is no sandbox level; the levels are limits"),
    "no file": (["grade", "axpy"], "Missing argument 'file'"),
    "task": (["task", "show", "axpyy"], "unknown kernel 'axpyy'"),
    "task all": (["task", "show", "all"], "unknown kernel 'all'"),
    "selector": (["task", "list", "axpy,nobody"], "'nobody' is no kernel, suite or tag"),
    "report": (["task", "validate", "axpy", "--report", "no/r.yaml"], "no/r.yaml: cannot be written (No such file"),
    "validate": (["task", "validate", "nobody"], "'nobody' is no kernel, suite or tag"),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Kcourt:
    """Runs `kcourt` in this process: for what ends before anything is graded."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, env: dict[str, str] | None = None) -> Ran:
        for name, value in (env or {}).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["kcourt", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Ran(int(ended.value.code or 0), said.out, said.err)

    return run


@pytest.mark.parametrize("mistake", USAGE)
def test_a_mistake_is_exit_code_2_with_words(
    here: Kcourt, mine: Callable[..., str], tmp_path: Path, mistake: str
) -> None:
    arguments, says = USAGE[mistake]
    mine(HONEST_C)
    (tmp_path / "folder.c").mkdir()
    (tmp_path / "binary.c").write_bytes(b"a\xff")
    level = [] if "--allow-sandbox" in arguments or arguments[1] in ("list", "show") else ["--allow-sandbox", "limits"]
    ran = here(*arguments, *level, "--json")
    assert (ran.code, ran.json["error"]["code"]) == (2, "usage"), ran.err
    assert says in ran.json["error"]["message"]
    assert "Traceback" not in ran.err


def test_a_weaker_sandbox_is_asked_for_in_words(
    here: Kcourt, mine: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KCOURT_SANDBOX", "limits")
    ran = here("grade", "axpy", mine(HONEST_C))
    assert ran.code == 3
    assert "say --allow-sandbox limits to grade with less isolation" in ran.err and "Traceback" not in ran.err


def test_a_place_that_cannot_keep_the_row_is_found_before_grading(here: Kcourt, mine: Callable[..., str]) -> None:
    Path("occupied").write_text("no folder")
    ran = here("grade", "axpy", mine(HONEST_C), *QUICK, "--json", env={"RUN_ROOT": "occupied"})
    assert (ran.code, ran.json["error"]["code"]) == (2, "usage")
    assert "occupied/adhoc/grades.db: " in ran.err and "RUN_ROOT names the folder" in ran.err


def test_an_answer_whose_row_is_lost_is_printed(
    here: Kcourt, mine: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise ShardError("grades.db: database or disk is full; make room")

    monkeypatch.setattr(adhoc, "record", full)
    ran = here("grade", "axpy", mine("void axpy(\n"), *QUICK, "--json")
    assert (ran.code, ran.json["outcome"]) == (3, "build_failed")
    assert "grades.db: database or disk is full; make room; keep what is printed" in ran.err


@pytest.mark.parametrize(
    ("variable", "says"),
    [
        ("KCOURT_CACHE", "the cache cannot be written (Not a directory); set KCOURT_CACHE"),
        ("KCOURT_LEASE_DIR", "the timing lease cannot be opened (Not a directory); set KCOURT_LEASE_DIR"),
    ],
)
def test_a_place_that_cannot_be_used_is_the_judges_side(
    kcourt: Kcourt, mine: Callable[..., str], variable: str, says: str
) -> None:
    ran = kcourt("grade", "axpy", mine(HONEST_C), *QUICK, "--json", env={variable: "/dev/null/below"})
    assert ran.code == 3, ran.err
    assert says in ran.out and "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("reference", "says"),
    [("def twice(:\n", "SyntaxError"), ("import a_module_of_nobody\n", "ModuleNotFoundError"), ("1 / 0\n", "ZeroDiv")],
    ids=["parse", "import", "raise"],
)
def test_a_reference_that_does_not_import_is_named(
    kcourt: Kcourt, mine: Callable[..., str], tmp_path: Path, reference: str, says: str
) -> None:
    folder = write_kernel(tmp_path / "tasks", files=TWICE_FILES | {"reference.py": reference})
    env = {"KCOURT_TASKS_DIR": str(tmp_path / "tasks")}
    ran = kcourt("grade", "twice", mine(TWICE_FILES["controls/honest_sum.c"]), *QUICK, "--json", env=env)
    assert (ran.code, ran.json["outcome"]) == (3, "judge_fault")
    assert f"{folder}/reference.py: does not import: {says}" in ran.json["detail"]["message"]


def test_a_selection_of_nothing_is_refused(here: Kcourt, tmp_path: Path) -> None:
    for command in ("list", "validate"):
        level = ["--allow-sandbox", "limits"] if command == "validate" else []
        ran = here("task", command, "", *level)
        assert ran.code == 2 and "selects no kernel" in ran.err
        ran = here("task", command, *level, env={"KCOURT_TASKS_DIR": str(tmp_path)})
        assert ran.code == 2 and f"'all' selects no kernel of {tmp_path}; no <suite>" in ran.err


def test_a_broken_manifest_is_named(kcourt: Kcourt, tmp_path: Path) -> None:
    folder = write_kernel(tmp_path / "tasks")
    manifest = (folder / "task.yaml").read_text().replace('"suite"', '"suit"')
    (folder / "task.yaml").write_text(manifest)
    ran = kcourt("task", "list", env={"KCOURT_TASKS_DIR": str(tmp_path / "tasks")})
    assert ran.code == 2
    assert ran.err.startswith(f"error: {folder}/task.yaml:")
    assert "suit" in ran.err and "Traceback" not in ran.err


def test_tasks_are_listed(here: Kcourt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    listed = here("task", "list", "--json").json["kernels"]
    assert {"axpy", "sgemm", "softmax_rows"} <= {each["kernel"] for each in listed}
    assert all(each.keys() >= {"suite", "summary", "languages", "tags", "status"} for each in listed)
    ran = here("task", "list", "dense,softmax_rows")
    assert ran.code == 0 and "softmax_rows" in ran.out and "gelu" not in ran.out


def test_a_task_is_shown(here: Kcourt) -> None:
    found = here("task", "show", "axpy", "--json").json
    signature = "void axpy(const float *x, const float *y, float *out, int64_t n, float a);"
    assert found["signatures"]["c"] == signature
    assert found["signatures"]["python"] == "def axpy(x, y, out, n, a):"
    assert set(found["sizes"]) == {"S", "M", "L", "XL"}
    assert [each["name"] for each in found["arguments"]] == ["x", "y", "out", "n", "a"]
    assert found["edge"]["n"][0] == 1 and "|got - expected| <= 4 * roundoff" in found["tolerance"]
    shown = here("task", "show", "axpy").out
    for part in ("x          input   float32[n]", "edge n: 1, 2, 3", found["tolerance"], "axpy.c -o axpy.so"):
        assert part in shown
    assert signature in shown and "gcc" in shown and found["task_hash"] in shown


@pytest.mark.parametrize("command", [["grade"], ["task"], ["task", "list"], ["task", "show"], ["task", "validate"]])
def test_help_has_an_example(here: Kcourt, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    ran = here(*command, "--help")
    assert ran.code == 0
    assert f"Example: kcourt {' '.join(command)}" in ran.out
