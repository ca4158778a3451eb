"""Small jobs for tests that run them whole: what is written before one is submitted, and what is read of it after.

Two kernels that grade quickly, at preset S, with scripted agents. A job's env file may be submitted as it is; a study
lies in a folder that KCOURT_EXPERIMENTS_DIR names.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from slurm import Slurm

from bench.judge.schemas import Kind, Language, Outcome
from bench.results.queries import Verdict, opened, verdicts
from bench.task import find_task
from cluster.job.layout import RunLayout
from cluster.job.progress import count_grades
from cluster.study.env_files import render_env
from cluster.study.queue import SBATCH_SCRIPT, kcourt_command
from cluster.study.scripts import ScriptRule

# Both do more arithmetic than memory traffic: a small one that streams may be faster than the floor that is measured.
KERNELS = ("gelu", "nbody")
Step = dict[str, Any]
Plan = Mapping[str, Sequence[Step]]
Tool = Literal["score", "submit"]


@dataclass(frozen=True)
class Nodes:
    """How many nodes each role has, and how many judge slots a judge node has."""

    inference: int = 0
    agents: int = 1
    judges: int = 1
    slots: int = 1

    @property
    def total(self) -> int:
        return self.inference + self.agents + self.judges

    @property
    def settings(self) -> dict[str, object]:
        return {
            "INFERENCE_NODES": self.inference,
            "AGENT_NODES": self.agents,
            "JUDGE_NODES": self.judges,
            "JUDGES_PER_NODE": self.slots,
        }


# What makes a job short without making it another one: little waiting, small sizes, no containers.
QUICK: dict[str, object] = {
    "HARNESS": "scripted",
    "LANGUAGE": "c",
    "PRESET": "S",
    "CONTAINER_RUNTIME": "none",
    "GPUS_PER_NODE": 0,
    "AGENTS_PER_NODE": 2,
    "AGENT_TIMEOUT_SECONDS": 300,
    "AGENT_START_STAGGER_SECONDS": 0,
    "AGENT_EXIT_GRACE_SECONDS": 5,
    "JUDGE_FAILED_SUBMIT_STEP_SECONDS": 0,
    "JUDGE_DRAIN_RESERVE_SECONDS": 20,
    "STEP_STOP_GRACE_SECONDS": 90,
    "SANDBOX_ALLOW": "limits",
}


def write_env(
    folder: Path,
    nodes: Nodes = Nodes(),
    script: ScriptRule | Plan = ScriptRule.GOLD,
    *,
    setup: str = "x",
    kernels: Iterable[str] = KERNELS,
    **settings: object,
) -> Path:
    """Write the env file of a job of one setup, beside it its plan unless a rule makes one; returns its path.

    `settings` are KEYs that win over all others.
    """
    values = {"SETUP": setup, "KERNELS": ",".join(kernels), **QUICK, **nodes.settings}
    if isinstance(script, ScriptRule):
        values["AGENT_SCRIPT_RULE"] = script
    else:
        plan = folder / f"plan-{setup}.json"
        plan.write_text(json.dumps(script))
        values["AGENT_SCRIPT"] = plan.name
    env = folder / f".env.{setup}"
    env.write_text(render_env(values | settings))
    return env


def write_study(
    experiments: Path,
    nodes: Nodes = Nodes(),
    rules: Sequence[ScriptRule] = (ScriptRule.GOLD, ScriptRule.NOOP),
    *,
    study: str = "two",
    kernels: Iterable[str] = KERNELS,
    **settings: object,
) -> str:
    """Write a study of one setup a rule, named after it, into a folder of experiments; returns the study's name.

    All its setups share one job.
    """
    document = {
        "study": study,
        "question": "Does a job do the same wherever it runs?",
        "kernels": list(kernels),
        "control": str(rules[-1]),
        "wave": True,
        "settings": {key: _plain(value) for key, value in {**QUICK, **nodes.settings, **settings}.items()},
        "setups": {str(rule): {"script": str(rule), "settings": {"MODEL": str(rule)}} for rule in rules},
    }
    path = experiments / "studies" / f"{study}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return study


def _plain(value: object) -> object:
    """A value as YAML has it."""
    return value if isinstance(value, int | float) else str(value)


def fast(kernel: str, tool: Tool = "submit") -> Step:
    """A step that sends the kernel's good solution."""
    return _call(tool, next(path for path in find_task(kernel).controls("fast") if path.suffix == Language.C.suffix))


def unchanged(kernel: str, tool: Tool = "submit") -> Step:
    """A step that sends the kernel's start material."""
    return _call(tool, next(path for path in find_task(kernel).baselines if path.suffix == Language.C.suffix))


def nap(seconds: float) -> Step:
    """A step in which the agent does nothing."""
    return {"tool": "sleep", "seconds": seconds}


def _call(tool: Tool, file: Path) -> Step:
    return {"tool": tool, "file": str(file.resolve())}


def slow(seconds: float, kernels: Iterable[str] = KERNELS) -> Plan:
    """Agents that preview a good solution, do nothing for so long, and then submit it."""
    return {kernel: [fast(kernel, "score"), nap(seconds), fast(kernel)] for kernel in kernels}


@dataclass(frozen=True)
class GradeRow:
    """What a test looks at of a row of `grades`; `home_rank` is another one on failover."""

    grade_id: str
    setup: str
    kernel: str
    slot: int
    kind: Kind
    outcome: Outcome
    rank: int
    home_rank: int
    attempt: int


def grades(layout: RunLayout) -> list[GradeRow]:
    """Every grade of the merged database, in the order of requests."""
    columns = "grade_id, setup, kernel, slot, kind, outcome, rank, home_rank, attempt"
    with opened([layout.results]) as database:
        rows = database.exec_driver_sql(f"SELECT {columns} FROM grades ORDER BY requested_at").all()
    return [GradeRow(**{**row._mapping, "kind": Kind(row.kind), "outcome": Outcome(row.outcome)}) for row in rows]


def answers(layout: RunLayout) -> dict[tuple[str, str], Verdict]:
    """(setup, kernel) → the answer that counts."""
    with opened([layout.results]) as database:
        return {(one.assignment.setup, one.assignment.kernel): one for one in verdicts(database)}


def outcomes(layout: RunLayout) -> dict[tuple[str, str], Outcome]:
    """(setup, kernel) → the outcome that counts: what two ways to run one job must agree on."""
    return {key: verdict.outcome for key, verdict in answers(layout).items()}


def graded_live(layout: RunLayout, ranks: int) -> int:
    """Grades that the shards of a job hold now."""
    return sum(count_grades(layout.shard(rank)).total() for rank in range(ranks))


def acknowledged(layout: RunLayout) -> set[str]:
    """Ids of the grades that agents were given: none of them may be lost."""
    lines = [line for path in layout.agents.rglob("answers.jsonl") for line in path.read_text().splitlines()]
    return {call["answer"]["grade_id"] for call in map(json.loads, lines) if call.get("answer")}


def summary(layout: RunLayout) -> dict[str, Any]:
    return dict(json.loads(layout.summary.read_bytes()))


def begins(layout: RunLayout) -> dict[str, dict[str, Any]]:
    """Step → its begin record, of those that have begun."""
    return _records(layout.steps, ".begin.json")


def ends(layout: RunLayout) -> dict[str, dict[str, Any]]:
    """Step → its end record, of those that wrote one."""
    return _records(layout.steps, ".end.json")


def _records(folder: Path, suffix: str) -> dict[str, dict[str, Any]]:
    return {path.name.removesuffix(suffix): json.loads(path.read_bytes()) for path in folder.glob(f"*{suffix}")}


def cancelled(layout: RunLayout) -> list[Path]:
    """The folders of episodes that were told to stop."""
    return sorted(path.parent for path in layout.agents.glob("node-*/problem-*/cancelled"))


@dataclass(frozen=True)
class Submitted:
    """A job in a cluster's queue, its run directory, and the file that Slurm writes its output to."""

    slurm: Slurm
    job_id: str
    layout: RunLayout
    output: Path

    def until(self, holds: Callable[[], object], what: str, timeout_s: float = 240) -> None:
        """Look until something holds; fails the test at once when the job has ended without it."""
        deadline = time.monotonic() + timeout_s
        while not holds():
            state = self.slurm.job_state(self.job_id)
            ended = state not in ("PENDING", "CONFIGURING", "RUNNING")
            assert not ended and time.monotonic() < deadline, f"job {state}, {what}: no\n{self.said()}"
            time.sleep(0.1)

    def said(self) -> str:
        """What the job has told its operator so far."""
        return self.output.read_text() if self.output.exists() else "(no output)"


def submitted(slurm: Slurm, env: Path, nodes: Nodes, *options: str) -> Submitted:
    """Submit the batch script by hand with one env file, whose folder also takes the run and Slurm's output."""
    argv = (f"--nodes={nodes.total}", "--time=60", f"--output={env.parent}/slurm-%j.out", *options)
    job_id = slurm.sbatch(*argv, str(SBATCH_SCRIPT), str(kcourt_command()), str(env))
    return Submitted(slurm, job_id, RunLayout(env.parent / "runs" / job_id), env.parent / f"slurm-{job_id}.out")


Launch = Callable[..., Submitted]


@pytest.fixture
def launch(slurm: Slurm, tmp_path: Path) -> Iterator[Launch]:
    """Submits jobs; takes a script, nodes, options of sbatch and KEYs. Jobs that a test leaves behind are ended."""
    jobs: list[Submitted] = []

    def start(script: ScriptRule | Plan, nodes: Nodes = Nodes(), *options: str, **settings: object) -> Submitted:
        env = write_env(tmp_path, nodes, script, RUN_ROOT=tmp_path / "runs", **settings)
        jobs.append(submitted(slurm, env, nodes, *options))
        return jobs[-1]

    yield start
    for job in jobs:
        slurm.scancel(job.job_id)
        slurm.wait(job.job_id)


def events(layout: RunLayout, event: str) -> int:
    """How often the drivers of all nodes have told of an event."""
    return sum(path.read_text().count(f'"event": "{event}"') for path in layout.agents.glob("node-*/events.jsonl"))
