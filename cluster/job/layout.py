"""What a run directory looks like: every path of a run, and nothing else."""

from dataclasses import dataclass
from pathlib import Path

from agent.config import EVENTS, GIVEN, MATERIAL, RECORD


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
        """What the rank's router says of its judge: when it started it, lost it, gave it up."""
        return self.judge / f"router-{rank}.log"

    def worker_log(self, rank: int) -> Path:
        """What the rank's measuring process prints, as when it fails."""
        return self.judge / f"worker-{rank}.log"

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
        return self.agent_node(node) / EVENTS

    def episode(self, node: int, problem: int, worker: int) -> Path:
        """Everything about one episode; each attempt has a folder in there."""
        return self.agent_node(node) / f"problem-{problem}-worker-{worker}"

    def episode_records(self) -> list[Path]:
        """`tokens.json` of every episode that left one."""
        return sorted(self.agents.glob(f"node-*/problem-*-worker-*/{RECORD}"))

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

    def kept_given(self, setup: str) -> Path:
        """What the setup's agents were given, beside its env file as a snapshot keeps it."""
        return self.launch / f"{setup}.launch"

    def script(self, setup: str) -> Path:
        """The scripted harness's plan of one setup."""
        return self.launch / f"script-{setup}.json"

    def candidates(self, setup: str) -> Path:
        """Candidates that a script made by rule sends and no kernel holds."""
        return self.launch / f"candidates-{setup}"

    @property
    def shared(self) -> Path:
        """`/shared` of a run without containers."""
        return self.root / "shared"

    def staged(self, kernel: str) -> Path:
        """Start material of one kernel."""
        return self.shared / MATERIAL / kernel

    def given(self, setup: str) -> Path:
        """What all agents of a setup are given, read-only: prompt, contracts, skills, files."""
        return self.shared / GIVEN / setup

    @property
    def steps(self) -> Path:
        """How each step began and ended; `cluster/job/step.py` knows the names."""
        return self.root / "steps"

    @property
    def state(self) -> Path:
        """What the job's process last said of itself."""
        return self.root / "state.json"

    @property
    def monitor(self) -> Path:
        return self.root / "monitor"

    def monitor_csv(self, node_name: str) -> Path:
        """Use of one node, one row a sample."""
        return self.monitor / f"{node_name}.csv"

    def monitor_log(self, node_name: str) -> Path:
        return self.monitor / f"{node_name}.log"

    def inference_log(self, replica: int) -> Path:
        return self.root / "inference" / f"engine-{replica}.log"

    @property
    def usage(self) -> Path:
        """What a provider reported of tokens, one request a line; never a key."""
        return self.root / "usage.jsonl"

    @property
    def inference_record(self) -> Path:
        """What served the model."""
        return self.root / "inference.json"

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
        for folder in (self.judge, self.agents, self.launch, self.shared / MATERIAL, self.steps):
            folder.mkdir(parents=True)
