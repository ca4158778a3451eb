"""What a run directory looks like: every path of a run, and nothing else."""

import json
from dataclasses import dataclass
from pathlib import Path


def checkout() -> Path:
    """The checkout that this package lies in."""
    return Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class RunLayout:
    """Paths of one run, `<RUN_ROOT>/<jobid>/`. Methods take ranks, node numbers and setup names."""

    root: Path

    @property
    def job_id(self) -> str:
        return self.root.name

    @property
    def judge(self) -> Path:
        return self.root / "judge"

    @property
    def secret(self) -> Path:
        """The job secret (0600): tokens and seeds derive from it."""
        return self.judge / "root.secret"

    def judge_config(self, rank: int) -> Path:
        return self.judge / f"judge-{rank}.json"

    def shard(self, rank: int) -> Path:
        return self.judge / f"rank-{rank}" / "grades.db"

    def judge_log(self, rank: int) -> Path:
        """What the rank's step prints before its router has a log."""
        return self.judge / f"serve-{rank}.log"

    def router_log(self, rank: int) -> Path:
        return self.judge / f"router-{rank}.log"

    def upstream_log(self, rank: int) -> Path:
        """Log of the judge behind the router."""
        return self.judge / f"upstream-{rank}.log"

    @property
    def agents(self) -> Path:
        return self.root / "agents"

    def agent_node(self, node: int) -> Path:
        """Run directory of one agent node."""
        return self.agents / f"node-{node}"

    def agent_config(self, node: int) -> Path:
        return self.agents / f"agent-{node}.json"

    def agent_log(self, node: int) -> Path:
        return self.agents / f"driver-{node}.log"

    def events(self, node: int) -> Path:
        """Progress of one agent node, one JSON object a line."""
        return self.agent_node(node) / "events.jsonl"

    def episode_records(self) -> list[Path]:
        """`tokens.json` of every episode that left one."""
        return sorted(self.agents.glob("node-*/problem-*-worker-*/tokens.json"))

    @property
    def agent_folders(self) -> Path:
        return self.root / "agent-folders.jsonl"

    @property
    def launch(self) -> Path:
        """What was launched, and what a rerun replays: env files, problems, scripted plans."""
        return self.root / "agent-launch"

    @property
    def plan(self) -> Path:
        """The job as planned: its problems, setups and ranks."""
        return self.launch / "plan.json"

    @property
    def problems(self) -> Path:
        """Problems of all setups, in the order of their global index."""
        return self.launch / "problems.jsonl"

    def setup_problems(self, setup: str) -> Path:
        return self.launch / f"problems-{setup}.jsonl"

    def env_snapshot(self, setup: str) -> Path:
        return self.launch / f"{setup}.env"

    def script(self, setup: str) -> Path:
        """The scripted harness's plan of one setup."""
        return self.launch / f"script-{setup}.json"

    @property
    def shared(self) -> Path:
        """`/shared` of a run without containers."""
        return self.root / "shared"

    def staged(self, kernel: str) -> Path:
        """Start material of one kernel."""
        return self.shared / "tasks" / kernel

    def end_record(self, step: str) -> Path:
        """How one step ended."""
        return self.root / "ended" / f"{step}.json"

    @property
    def results(self) -> Path:
        return self.root / "results.db"

    @property
    def summary(self) -> Path:
        return self.root / "summary.json"

    @property
    def report(self) -> Path:
        return self.root / "report.html"

    @property
    def merge_failed(self) -> Path:
        """There only while `results.db` could not be written; says how to recover."""
        return self.root / "MERGE_FAILED"

    def create(self) -> None:
        """Make the folders of a new run.

        Raises:
            FileExistsError: a run of this id is there; rows of two runs must not share a directory.
        """
        self.root.mkdir(parents=True)
        for folder in (self.judge, self.agents, self.launch, self.shared / "tasks", self.root / "ended"):
            folder.mkdir(parents=True)


def write_private(path: Path, text: str) -> None:
    """Write a text whole or not at all, readable by the owner alone."""
    _write(path, text, 0o600)


def write_public(path: Path, text: str) -> None:
    """Write a text whole or not at all, readable by everybody who may enter its folder."""
    _write(path, text, 0o644)


def _write(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    partial.touch(mode=mode)
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def write_json(path: Path, value: object) -> None:
    """Write a JSON document for everybody, whole or not at all; a NaN is a ValueError."""
    write_public(path, json.dumps(value, indent=2, allow_nan=False) + "\n")
