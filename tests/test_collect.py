"""`kcourt job collect` on runs that were damaged or moved: it works, or it says what is wrong with which file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.cli import run
from bench.errors import ConfigError
from bench.judge.schemas import Language, Problem, SetupRecord
from bench.results.shard import Shard
from bench.seeds import new_root, write_root
from cluster.job.documents import write_json, write_private
from cluster.job.launched import Launched
from cluster.job.layout import RunLayout
from cluster.study.problems import render_problems

SETUPS = {"gold": SetupRecord(setup="gold")}
SUMMARY = {"cause": "wall_clock", "reason": "the time ran out", "seconds": 4.5, "exit_code": 124, "items": []}


@pytest.fixture
def layout(tmp_path: Path) -> RunLayout:
    """The run directory of a job with one rank whose agents got nowhere."""
    layout = RunLayout(tmp_path / "local-1")
    layout.create()
    write_root(layout.secret, new_root())
    write_json(layout.plan, Launched(job_id="local-1", ranks=1, setups=SETUPS).model_dump(mode="json"))
    write_private(layout.problems, render_problems([Problem(setup="gold", kernel="axpy", language=Language.C)]))
    Shard.open(layout.shard(0), "local-1", 0, SETUPS).close()
    return layout


def test_a_run_that_died_before_its_summary_is_collected(kcourt: Callable[..., Any], layout: RunLayout) -> None:
    ran = kcourt("job", "collect", str(layout.root), "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["job_id"], ran.json["planned"], ran.json["owed"]) == ("local-1", 1, 1)


def test_a_renamed_run_keeps_its_job_id(kcourt: Callable[..., Any], layout: RunLayout) -> None:
    moved = layout.root.rename(layout.root.with_name("kept for the paper"))
    write_json(RunLayout(moved).summary, SUMMARY)
    ran = kcourt("job", "collect", str(moved), "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["job_id"], ran.json["cause"], ran.json["seconds"]) == ("local-1", "wall_clock", 4.5)
    assert json.loads(RunLayout(moved).summary.read_text())["job_id"] == "local-1"


@pytest.mark.parametrize(("degraded", "code"), [(True, 72), (False, 0)], ids=["degraded", "whole"])
def test_a_repaired_merge_gives_the_job_the_code_it_would_have_had(
    kcourt: Callable[..., Any], layout: RunLayout, degraded: bool, code: int
) -> None:
    write_json(layout.summary, SUMMARY | {"cause": "finished", "exit_code": 75, "degraded": degraded})
    ran = kcourt("job", "collect", str(layout.root), "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["exit_code"], ran.json["degraded"]) == (code, degraded)


@pytest.mark.parametrize("lost", ["shard", "secret"])
def test_a_merge_that_fails_again_leaves_no_old_summary(
    kcourt: Callable[..., Any], layout: RunLayout, lost: str
) -> None:
    write_json(layout.summary, SUMMARY)
    assert kcourt("job", "collect", str(layout.root)).code == 0
    path = layout.shard(0) if lost == "shard" else layout.secret
    path.rename(path.with_name("away"))
    failed = kcourt("job", "collect", str(layout.root))
    assert failed.code != 0, failed.out
    found = json.loads(layout.summary.read_text())
    assert (found["exit"], found["unmerged"], found["delivered"]) == ("merge_failed", 1, 0)
    path.with_name("away").rename(path)
    assert kcourt("job", "collect", str(layout.root), "--json").json["exit"] == "wall_clock"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"job_id": "local-1"}', '{"cause": "rain"}', "\xff"])
@pytest.mark.parametrize("name", ["plan", "summary"])
def test_a_damaged_file_is_named(layout: RunLayout, name: str, content: str) -> None:
    path: Path = getattr(layout, name)
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigError, match=f"^{path}: "):
        run(["job", "collect", str(layout.root)])


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"^{tmp_path}: no run there"):
        run(["job", "collect", str(tmp_path)])
