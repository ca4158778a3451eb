"""Jobs of a real Slurm that go to their end: as on one machine, with many ranks, after losses, two on one node."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from slurm import JobEnd, Slurm
from slurm_jobs import (
    KERNELS,
    Nodes,
    Plan,
    Submitted,
    acknowledged,
    begins,
    ends,
    events,
    fast,
    grades,
    graded_live,
    submitted,
    summary,
    write_env,
)

from bench.errors import ExitCode
from bench.judge.schemas import Kind, Outcome
from cluster.study.scripts import ScriptRule

pytestmark = [pytest.mark.slurm, pytest.mark.xdist_group("slurm")]

Launch = Callable[..., Submitted]


@pytest.fixture
def launch(slurm: Slurm, tmp_path: Path) -> Iterator[Launch]:
    """Submits jobs; takes a script, nodes, options of sbatch and KEYs. Jobs that a test leaves behind are ended."""
    jobs = []

    def start(script: ScriptRule | Plan, nodes: Nodes = Nodes(), *options: str, **settings: object) -> Submitted:
        env = write_env(tmp_path, nodes, script, RUN_ROOT=tmp_path / "runs", **settings)
        jobs.append(submitted(slurm, env, nodes, *options))
        return jobs[-1]

    yield start
    for job in jobs:
        slurm.scancel(job.job_id)
        slurm.wait(job.job_id)


LOSE = {"link-cut": Slurm.cut, "all-killed": Slurm.kill}


@pytest.mark.slow
@pytest.mark.parametrize("lose", LOSE.values(), ids=LOSE)
def test_a_judge_node_that_is_lost_leaves_its_agents_to_another(launch: Launch, slurm: Slurm, lose) -> None:
    script = {kernel: [fast(kernel, "score"), fast(kernel)] for kernel in KERNELS}
    job = launch(script, Nodes(judges=2))
    job.until(lambda: events(job.layout, "attempt_started") == 2, "both agents work")
    lose(slurm, begins(job.layout)["judge-0"]["host"])

    assert slurm.wait(job.job_id) == JobEnd("FAILED", ExitCode.DEGRADED, 0), job.said()
    found = summary(job.layout)
    assert (found["exit_code"], found["cause"], found["delivered"]) == (ExitCode.DEGRADED, "finished", 2), found
    rows = grades(job.layout)
    assert acknowledged(job.layout) <= {row.grade_id for row in rows}
    submits = {row.kernel: (row.home_rank, row.rank) for row in rows if row.kind is Kind.SUBMIT}
    assert submits == {KERNELS[0]: (0, 1), KERNELS[1]: (1, 1)}
    states = {step["name"]: step["state"] for step in found["steps"]}
    assert (states["judge-0"], states["judge-1"], states["agent-0"]) == ("lost", "stopped", "succeeded")
