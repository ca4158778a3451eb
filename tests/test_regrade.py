"""`kcourt regrade`: a grade made again from its database alone, held against the old one; what is refused."""

import hashlib
import json
import math
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran, kcourt_here
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import TWICE, TWICE_FILES, court, write_kernel

from bench import audit
from bench.audit import Agreement
from bench.build.toolchain import shipped_toolchains
from bench.errors import KernelcourtError, ShardError, UsageError
from bench.grade import correctness_cases, held_out_cases
from bench.inputs import Case, balanced_order, draw, timed_sizes
from bench.judge.schemas import Outcome, Preset
from bench.records import GradeReport
from bench.regrade import rebuilt_kernel, regrade
from bench.results import queries
from bench.results.stored import StoredGrade, stored_grade
from bench.task import Task, load_task

SUBMISSIONS = {
    "solved": TWICE_FILES["controls/honest_sum.c"],
    "wrong": TWICE_FILES["controls/wrong_tail.c"],
    "build_failed": "void twice(\n",
}
LEVEL = ("--allow-sandbox", "limits")
ROOT = Path(__file__).resolve().parent.parent


def run(folder: Path, *arguments: str, tasks: Path) -> Ran:
    """`kcourt` in `folder`, with a corpus of its own."""
    return kcourt_here(folder, *arguments, env={"KCOURT_TASKS_DIR": str(tasks), "COLUMNS": "160"})


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A database of one grade an outcome, and their ids."""
    folder = tmp_path_factory.mktemp("graded")
    write_kernel(folder / "tasks")
    ids = {}
    for outcome, source in SUBMISSIONS.items():
        (folder / "my.c").write_text(source)
        ran = run(folder, "grade", "twice", "my.c", "--preset", "S", *LEVEL, "--json", tasks=folder / "tasks")
        assert ran.json["outcome"] == outcome, ran.err
        ids[outcome] = ran.json["grade_id"]
    return folder / ".scratch/runs/adhoc/grades.db", ids


@pytest.fixture
def database(graded: tuple[Path, dict[str, str]], tmp_path: Path) -> Path:
    """A copy to be changed."""
    return Path(shutil.copy(graded[0], tmp_path / "results.db"))


def change(database: Path, *statements: tuple[str, tuple[Any, ...]]) -> None:
    """Change a database behind its owner's back."""
    with closing(sqlite3.connect(database)) as connection, connection:
        for statement, values in statements:
            assert connection.execute(statement, values).rowcount == 1, statement


def read(database: Path, grade_id: str) -> StoredGrade:
    with queries.opened([database]) as db:
        found = stored_grade(db, grade_id)
    assert found is not None
    return found


@pytest.mark.parametrize("outcome", SUBMISSIONS)
def test_a_grade_is_made_again_without_a_corpus(
    graded: tuple[Path, dict[str, str]], tmp_path: Path, outcome: str
) -> None:
    database, ids = graded
    (tmp_path / "empty").mkdir()
    ran = run(tmp_path, "regrade", ids[outcome], "--db", str(database), *LEVEL, "--json", tasks=tmp_path / "empty")
    found = ran.json
    assert (found["of_grade_id"], found["recorded"], found["differences"]) == (ids[outcome], None, [])
    for side in ("then", "now"):
        assert found[side]["outcome"] == outcome
        assert len(found[side]["inputs"]) == (4 if outcome == "solved" else 0)
    for then, now in zip(found["then"]["inputs"], found["now"]["inputs"], strict=True):
        assert then["sizes"] == now["sizes"]
    if outcome != "solved":  # two timings of so small a kernel may well lie apart on a busy machine
        assert found["verdict"] == "reproduced"
    assert ran.code == (0 if found["verdict"] == "reproduced" else 1)
    assert not (tmp_path / ".scratch").exists(), "nothing is kept unless --record says so"


def test_todays_corpus_does_not_matter_and_a_record_counts_as_nothing(
    graded: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    database, ids = graded
    write_kernel(
        tmp_path / "tasks", files=TWICE_FILES | {"baseline.c": "this is no C\n", "reference.py": "raise OSError"}
    )
    ran = run(tmp_path, "regrade", ids["solved"], "--db", str(database), *LEVEL, "--record", tasks=tmp_path / "tasks")
    assert ran.code in (0, 1), ran.err
    assert ran.out.startswith("twice: ") and "90 % interval" in ran.out and "kept as" in ran.out
    kept = tmp_path / ".scratch/runs/adhoc/grades.db"
    columns = "kind, of_grade_id, outcome, job_id, setup, checkout_commit"
    with closing(sqlite3.connect(kept)) as connection:
        rows = connection.execute(f"SELECT {columns} FROM grades").fetchall()
        (new_id,) = connection.execute("SELECT grade_id FROM grades").fetchone()
    assert rows == [("regrade", ids["solved"], "solved", "adhoc", None, None)]
    old, new = read(database, ids["solved"]), read(kept, new_id)
    assert (old.seed, old.task_hash, old.policy_stamp) == (new.seed, new.task_hash, new.policy_stamp)
    assert {role: text.sha256 for role, text in old.texts.items()} == {
        role: text.sha256 for role, text in new.texts.items()
    }
    assert [cell.order for cell in old.cells] == [cell.order for cell in new.cells]
    with queries.opened([database, kept]) as db:
        assert queries.verdicts(db) == []


QUERIES = re.findall(r"^```sql\n(.*?)^```$", (ROOT / "docs" / "regrade.md").read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("query", QUERIES, ids=["number", "build", "inputs"])
def test_the_page_says_where_each_fact_of_a_number_is(graded: tuple[Path, dict[str, str]], query: str) -> None:
    database, ids = graded
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        rows = connection.execute(query.replace("GRADE_ID", ids["solved"])).fetchall()
    assert len(rows) == (4 if "grade_cells" in query else 1)
    assert [name for row in rows for name, value in dict(row).items() if value is None] == []


OF_GRADE = "SELECT sha256 FROM grade_sources WHERE grade_id = ? AND role = ?"
CHANGED = {
    "submission": ("the submission of grade", "is not the text that was graded"),
    "reference": ("the reference of grade", "is not the text that was graded"),
    "baseline:baseline.c": ("the baseline:baseline.c of grade", "is not the text that was graded"),
    "toolchains": ("the toolchains of grade", "is not the text that was graded"),
}


@pytest.mark.parametrize("role", CHANGED)
def test_a_changed_text_is_refused(graded: tuple[Path, dict[str, str]], database: Path, role: str) -> None:
    grade_id = graded[1]["solved"]
    spoil = f"UPDATE sources SET content = content || X'0A' WHERE sha256 = ({OF_GRADE})"
    change(database, (spoil, (grade_id, role)))
    with pytest.raises(ShardError) as refused:
        regrade(database, grade_id, court())
    assert str(database) in str(refused.value) and all(words in str(refused.value) for words in CHANGED[role])


def swap(grade_id: str, role: str, content: bytes) -> list[tuple[str, tuple[Any, ...]]]:
    """Put another text in the place of one, with its right hash."""
    sha256 = hashlib.sha256(content).hexdigest()
    return [
        ("INSERT INTO sources VALUES (?, ?, ?)", (sha256, len(content), content)),
        ("UPDATE grade_sources SET sha256 = ? WHERE grade_id = ? AND role = ?", (sha256, grade_id, role)),
    ]


def of_grade(setting: str) -> Any:
    """A change of one grade's row."""
    return lambda grade_id: [(f"UPDATE grades SET {setting} WHERE grade_id = ?", (grade_id,))]


ONE = "WHERE grade_id = ?"
REFUSED: dict[str, tuple[Any, type[KernelcourtError], str]] = {
    "another reference": (lambda i: swap(i, "reference", b"x = 1\n"), ShardError, "is not the one that was graded"),
    "no manifest": (lambda i: swap(i, "manifest", b"name: 1\n"), UsageError, "cannot be read"),
    "missing source": (
        lambda i: [(f"DELETE FROM grade_sources {ONE} AND role = 'submission'", (i,))], ShardError, "lacks its subm",
    ),
    "missing toolchains": (
        lambda i: [(f"DELETE FROM grade_sources {ONE} AND role = 'toolchains'", (i,))], ShardError, "--flags-of now",
    ),
    "a path": (
        lambda i: [(f"UPDATE grade_sources SET role = 'baseline:../b.c' {ONE} AND role LIKE 'baseline:%'", (i,))],
        ShardError, "'../b.c' is no file name",
    ),
    "secret": (lambda i: [(f"DELETE FROM reveals {ONE}", (i,))], UsageError, "is not revealed: job adhoc still runs"),
    "another seed": (
        lambda i: [(f"UPDATE reveals SET seed = '00' {ONE}", (i,))], ShardError, "not the one that the grade committed",
    ),
    "no seed": (lambda i: [(f"UPDATE reveals SET seed = 'xy' {ONE}", (i,))], ShardError, "is no hex text"),
    "protocol": (of_grade("protocol = 'mw9x9'"), UsageError, "protocol 'mw9x9', which this version does not know"),
    "fault": (of_grade("outcome = 'judge_fault'"), UsageError, "is a fault of the judge"),
    "device": (of_grade("device = 'hip'"), UsageError, "was made on device 'hip'"),
    "library": (of_grade("""provenance = '{"library": {"sha256": "ab"}}'"""), UsageError, "of a library (sha256 ab)"),
    "draws": (
        lambda i: [(f"UPDATE grade_cells SET sizes = '{{\"n\": 7}}' {ONE} AND \"index\" = 2", (i,))],
        UsageError, "input 2 of grade",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_made_again_is_refused_in_words(
    graded: tuple[Path, dict[str, str]], database: Path, case: str
) -> None:
    make, error, says = REFUSED[case]
    change(database, *make(graded[1]["solved"]))
    with pytest.raises(error) as refused:
        regrade(database, graded[1]["solved"], court())
    assert type(refused.value) is error
    assert str(refused.value).startswith(f"{database}: ") and says in str(refused.value)


def test_an_unknown_grade_is_a_usage_error(database: Path, tmp_path: Path) -> None:
    ran = run(tmp_path, "regrade", "nobody", "--db", str(database), *LEVEL, "--json", tasks=tmp_path)
    assert (ran.code, ran.json["error"]["code"]) == (2, "usage")
    assert "no grade 'nobody'" in ran.err and "Traceback" not in ran.err


@pytest.mark.parametrize("flags_of", ["then", "now"])
def test_flags_are_those_that_are_asked_for(
    graded: tuple[Path, dict[str, str]], database: Path, tmp_path: Path, flags_of: str
) -> None:
    grade_id = graded[1]["wrong"]
    change(database, *swap(grade_id, "toolchains", shipped_toolchains().replace(b"-O3", b"-O1")))
    recorded = json.dumps(read(database, grade_id).provenance).replace("-O3", "-O1")
    change(database, ("UPDATE grades SET provenance = ? WHERE grade_id = ?", (recorded, grade_id)))
    options = ("--db", str(database), *LEVEL, "--flags-of", flags_of, "--record", "--json")
    ran = run(tmp_path, "regrade", grade_id, *options, tasks=tmp_path)
    found = {difference["what"]: difference for difference in ran.json["differences"]}
    kept = read(tmp_path / ".scratch/runs/adhoc/grades.db", ran.json["grade_id"])
    assert ("-O1" in kept.provenance["build"]["commands"][0]) == (flags_of == "then")
    if flags_of == "now":
        assert "-O1" in found["command of the candidate"]["then"] and "-O3" in found["command of the candidate"]["now"]
    else:
        assert set(found) == {"today's flags of c", "policy stamp"}
        assert "-O1" in found["today's flags of c"]["then"] and "-O3" in found["today's flags of c"]["now"]
    assert ran.json["verdict"] == "reproduced", "it is wrong with any flags"


def report(raw: float | None, half: float = 0.0, outcome: Outcome = Outcome.SOLVED, cpu: str = "this") -> GradeReport:
    """A finding with a raw ratio and an interval that reaches `half` (a part of it) to both sides."""
    return GradeReport(
        grade_id="g", outcome=outcome, protocol="mw4x5", preset=Preset.S, seed_commitment="", sandbox="limits",
        raw_ratio=raw, interval=None if raw is None else (raw / (1 + half), raw * (1 + half)),
        provenance={"machine": {"cpu_model": cpu, "host": cpu}},
    )  # fmt: skip


AGREEMENTS = {
    "the same": (report(2.0), report(2.0), Agreement.REPRODUCED),
    "within 5 %": (report(2.0), report(2.09), Agreement.REPRODUCED),
    "beyond 5 %": (report(2.0), report(2.11), Agreement.DIFFERS),
    "beyond 5 % below": (report(2.11), report(2.0), Agreement.DIFFERS),
    "within the old interval": (report(2.0, 0.2), report(2.3), Agreement.REPRODUCED),
    "within the new interval": (report(2.0), report(2.3, 0.2), Agreement.REPRODUCED),
    "beyond both intervals": (report(2.0, 0.2), report(3.0, 0.3), Agreement.DIFFERS),
    "both wrong": (report(None, outcome=Outcome.WRONG), report(None, outcome=Outcome.WRONG), Agreement.REPRODUCED),
    "no longer solved": (report(2.0), report(None, outcome=Outcome.WRONG), Agreement.DIFFERS),
    "elsewhere, the same": (report(2.0), report(2.0, cpu="that"), Agreement.REPRODUCED),
    "elsewhere, other": (report(2.0), report(3.0, cpu="that"), Agreement.OTHER_MACHINE),
}


@pytest.mark.parametrize("case", AGREEMENTS)
def test_what_counts_as_reproduced(case: str) -> None:
    then, now, expected = AGREEMENTS[case]
    assert audit.agreement(then, now) is expected


def test_differences_are_named() -> None:
    found = audit.differences(report(2.0), report(2.0, cpu="that"))
    assert [(one.what, one.then, one.now) for one in found] == [("host", "this", "that"), ("cpu model", "this", "that")]
    assert math.exp(audit.allowance(report(2.0, 0.2), report(2.0))) == pytest.approx(1.2)


def draws(task: Task, seed: bytes) -> Iterator[Any]:
    """Everything that a seed decides: sizes of every case, order of the pairs, values of every argument."""
    timed = [timed_sizes(task, seed, Preset.XL, index) for index in range(4)]
    yield timed, [balanced_order(seed, index, 5) for index in range(4)]
    cases = [*correctness_cases(task, seed), *held_out_cases(task, seed), Case("timed", "i0.0", timed[0])]
    for case in cases:
        argument = task.arguments["x"]
        key = case.key(seed, "x")
        yield case, draw(argument, case.family(argument), key, task.shape("x", case.sizes)).tobytes()


@settings(max_examples=10)
@given(seed=st.binary(min_size=32, max_size=32))
def test_the_same_seed_draws_the_same_from_a_rebuilt_kernel(graded: tuple[Path, dict[str, str]], seed: bytes) -> None:
    database, ids = graded
    original = load_task(database.parents[3] / "tasks" / str(TWICE["suite"]) / str(TWICE["name"]))
    with rebuilt_kernel(read(database, ids["wrong"])) as rebuilt:
        assert rebuilt.hash == original.hash
        assert [*draws(rebuilt, seed)] == [*draws(original, seed)]


def test_a_rebuilt_kernel_is_gone_afterwards(graded: tuple[Path, dict[str, str]]) -> None:
    database, ids = graded
    with rebuilt_kernel(read(database, ids["solved"])) as rebuilt:
        assert rebuilt.files["baseline:baseline.c"].decode() == TWICE_FILES["baseline.c"]
        assert not rebuilt.controls("honest"), "a grade needs no controls"
    assert not rebuilt.folder.exists()
