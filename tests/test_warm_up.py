"""Warm-up: an idle judge builds its share of the job's kernels, and is no worse for one that does not build."""

from pathlib import Path
from typing import Any

import pytest
from judge_rank import Rank, rank
from kernels import TWICE, TWICE_FILES, write_kernel

from bench.config import JudgeConfig

SETUPS = {"many": {"setup": "many", "preset": "S", "submission_mode": "multi"}}
PROBLEMS = ["broken", "twice", "again", "twice"]
LABEL = "many.n0.p1.w0"


def write_corpus(root: Path) -> None:
    for name in ("again", "broken", "twice"):
        files = {path: text.replace("twice(", f"{name}(") for path, text in TWICE_FILES.items()}
        if name == "broken":
            files["baseline.c"] += "no C at all\n"
        write_kernel(root, TWICE | {"name": name}, files)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    write_corpus(tmp_path / "tasks")
    monkeypatch.setenv("KCOURT_TASKS_DIR", str(tmp_path / "tasks"))
    return {
        "cache_dir": str(tmp_path / "cache"),
        "closed": True,
        "measures": True,
        "setups": SETUPS,
        "problems": PROBLEMS,
        "allow_sandbox": "limits",
    }


def built(running: Rank) -> int:
    """Denominators and twins in the cache."""
    return len(list((running.folder / "cache" / "denominators").iterdir()))


def test_an_idle_judge_warms_what_it_can(tmp_path: Path, settings: dict[str, Any]) -> None:
    with rank(tmp_path, **settings) as running:
        running.wait_for_health(warmed="2/3")
        assert built(running) == 4
        said = (tmp_path / "logs" / "upstream-0.log").read_text()
        assert '"warming": "broken"' in said and "does not build" in said
        source = TWICE_FILES["controls/honest_sum.c"]
        answer = running.post("/submit", {"kernel": "twice", "source": source}, LABEL)
        assert (answer.status_code, answer.json()["outcome"]) == (200, "solved")


def test_a_judge_that_is_told_not_to_builds_on_demand(tmp_path: Path, settings: dict[str, Any]) -> None:
    with rank(tmp_path, warm_up=False, **settings) as running:
        assert running.wait_until_healthy()["warmed"] == "0/0"
        own = built(running)
        assert running.post("/score", {"kernel": "twice", "source": TWICE_FILES["baseline.c"]}, LABEL).is_success
        assert built(running) == own + 2


@pytest.mark.parametrize(
    ("told", "share"),
    [
        pytest.param({"rank": 0, "ranks": 1}, ("broken", "twice", "again"), id="alone"),
        pytest.param({"rank": 0, "ranks": 2}, ("broken", "again"), id="first-of-two"),
        pytest.param({"rank": 1, "ranks": 2}, ("twice",), id="second-of-two"),
        pytest.param({"rank": 3, "ranks": 4}, (), id="more-ranks-than-kernels"),
        pytest.param({"warm_up": False}, (), id="off"),
    ],
)
def test_each_rank_has_its_share(tmp_path: Path, told: dict[str, Any], share: tuple[str, ...]) -> None:
    config = JudgeConfig(
        shard=tmp_path / "x.db", log_dir=tmp_path, cache_dir=tmp_path, problems=tuple(PROBLEMS), **told
    )
    assert config.to_warm == share
