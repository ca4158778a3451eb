"""What goes wrong with other people's judges of kernels, each by its symptom: here it does not happen."""

import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_rank import Rank, rank
from kernels import LOOP, axpy_c, axpy_py, graded

from bench.judge.schemas import Language, Outcome, Preset
from bench.records import GradeReport
from bench.verdict import Rejected

# Everything that a finding may hold: what a kernel answered, at which sizes, in which words.
FINDINGS = st.dictionaries(
    st.text(max_size=8), st.recursive(st.floats() | st.integers() | st.text(max_size=8), st.lists, max_leaves=6)
)


@given(detail=FINDINGS)
def test_a_finished_grade_is_never_lost_to_a_number_that_json_lacks(detail: dict[str, object]) -> None:
    rejected = Rejected(Outcome.WRONG, "values", detail)
    report = GradeReport(
        **{"grade_id": "g", "outcome": rejected.outcome, "property": "values", "detail": rejected.detail},
        **{"protocol": "mw2x5", "preset": Preset.S, "seed_commitment": "c", "sandbox": "full"},
    )
    answer = report.answer("axpy", 0, disclose=True).model_dump_json()

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    assert json.loads(answer, parse_constant=refuse)["outcome"] == "wrong"


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rank]:
    with rank(tmp_path_factory.mktemp("public"), measures=True, preset="S") as running:
        yield running


def body(source: str) -> dict[str, str]:
    return {"kernel": "axpy", "source": source, "language": "c"}


def test_a_kernel_that_hangs_leaves_a_judge_that_grades_the_next(judge: Rank) -> None:
    hangs = judge.post("/score", body(axpy_c("for (volatile int i = 0;; i++);"))).json()
    assert (hangs["outcome"], hangs["detail"]["property"]) == ("timeout", "time")
    assert judge.post("/score", body(axpy_c(LOOP))).json()["outcome"] == "solved"


def test_a_grade_whose_client_is_gone_is_there_when_it_asks_again(judge: Rank) -> None:
    asked = body(axpy_c(f"{LOOP} /* asked twice */"))
    later = judge.post("/submit", asked, Idempotency_Key="gone", Prefer="respond-async")
    assert later.status_code == 202
    again = judge.post("/submit", asked, Idempotency_Key="gone")
    assert again.json()["grade_id"] == later.json()["grade_id"] and again.json()["outcome"] == "solved"
    with closing(sqlite3.connect(judge.shard)) as shard:
        ((count,),) = shard.execute("SELECT count(*) FROM grades WHERE grade_id = ?", [again.json()["grade_id"]])
    assert count == 1


def test_what_is_cached_by_address_or_by_some_values_is_wrong() -> None:
    kept = "static float kept[1 << 20]; static const float *seen; static int64_t length;"
    by_address = f"if (x != seen || n != length) {{ {LOOP} memcpy(kept, out, n * 4); seen = x; length = n; }}"
    assert graded(axpy_c(f"{by_address} memcpy(out, kept, n * 4);", kept)).outcome is Outcome.WRONG
    replays = axpy_py("out[:] = kept.setdefault((n, x.ctypes.data), a * x + y)", "kept = {}")
    assert graded(replays, Language.PYTHON).outcome is not Outcome.SOLVED


def test_two_graders_of_one_machine_never_time_at_once(judge: Rank, tmp_path: Path) -> None:
    """Each notes how long it waited for the cores: together they take as long as one after the other."""
    with rank(tmp_path, measures=True, preset="S") as other, ThreadPoolExecutor(2) as asking:
        answers = list(asking.map(lambda one: one.post("/submit", body(axpy_c(LOOP))).json(), (judge, other)))
        waited = []
        for shard in (judge.shard, other.shard):
            with closing(sqlite3.connect(shard)) as rows:
                last = "SELECT stages FROM grades ORDER BY requested_at DESC LIMIT 1"
                waited.append(json.loads(rows.execute(last).fetchone()[0])["wait"])
    assert [answer["outcome"] for answer in answers] == ["solved", "solved"]
    assert max(waited) > 50, waited
