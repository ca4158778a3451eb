"""One episode's facts: the problem that was dealt to a worker with all its places, and what came of it so far."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agent.attempt import Attempt
from agent.budget import Budget, Observed, budget_of
from agent.config import AgentConfig
from agent.endpoint import Endpoint, ProxyAddress, endpoint_for
from agent.harnesses import UNSERVED, Harness
from agent.journal import append_json, utc_now
from agent.seal import is_sealed
from agent.tools.settings import ToolSettings
from agent.usage import NOTHING, Usage
from bench.judge.schemas import EpisodeLabel, Outcome, Problem, SetupRecord, token_for


@dataclass(frozen=True)
class Assignment:
    """One problem dealt to one worker; `index` is its place in the whole job's list."""

    config: AgentConfig
    index: int
    problem: Problem
    worker: int
    proxy: ProxyAddress | None = None

    @cached_property
    def label(self) -> str:
        slot, node = self.problem.slot, self.config.node
        return str(EpisodeLabel(self.problem.setup, node, self.index, self.worker, slot))

    @property
    def setup(self) -> SetupRecord:
        return self.config.setups[self.problem.setup]

    @property
    def dir(self) -> Path:
        """Where everything about this episode is kept."""
        return self.config.run_dir / f"problem-{self.index}-worker-{self.worker}"

    @property
    def endpoint(self) -> Endpoint | None:
        """Where this episode's client finds its model."""
        service, worker = self.config.service, self.config.node * self.config.workers + self.worker
        return endpoint_for(service, worker, self.label, self.proxy) if service else None

    def served_model(self, harness: Harness) -> str | None:
        """The model that this episode's client must ask for; None where it asks nobody, or its vendor alone."""
        return self.endpoint.model if self.endpoint and harness.wire_format not in UNSERVED else None

    @property
    def tokens_file(self) -> Path:
        # In a folder of its own: a sealed client that was shown the file alone would not see it replaced.
        return self.dir / "told" / "tokens-so-far"

    def is_sealed(self, harness: Harness) -> bool:
        return is_sealed(self.config.seal, harness.wire_format)

    def attempt_dir(self, number: int) -> Path:
        """The evidence of one attempt; what its tools write is in `calls` there, what its client does in `home`."""
        return self.dir / f"attempt-{number}"

    def answers_file(self, number: int) -> Path:
        """What the tools of one attempt asked the judge."""
        return self.attempt_dir(number) / "calls" / "answers.jsonl"

    @property
    def budget(self) -> Budget:
        return budget_of(self.problem.budget, self.config.budget)

    def token(self, label: str) -> str | None:
        secret = self.config.secret()
        return None if secret is None else token_for(secret, label)

    def report(self, event: str, **facts: object) -> None:
        """Tell a live view that follows `events.jsonl`."""
        named = {"at": utc_now(), "event": event, "label": self.label, "kernel": self.problem.kernel}
        append_json(self.config.events_file, named | facts)


@dataclass
class Progress:
    """What an episode has come to so far."""

    started: float
    started_at: str
    launches: int = 0
    used: Usage = NOTHING
    seen: Observed | None = None
    tools: ToolSettings | None = None
    model: str | None = None
    resumed: int = 0
    outcome: Outcome | None = None

    def add(self, attempt: Attempt) -> None:
        self.used += attempt.usage
        self.seen = attempt.seen
        self.model = attempt.model or self.model
