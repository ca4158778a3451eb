"""AgentConfig: the settings of the driver of one agent node, frozen, in one JSON file; and its problems."""

import os
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from agent.budget import Budget, BudgetMode, budget_of
from agent.endpoint import ModelService
from agent.prices import PriceTable
from agent.prompts.given import contract_file, read_brief
from agent.seal import SealMode
from agent.striping import striped
from bench.errors import ConfigError
from bench.judge.schemas import Problem, SetupRecord, read_secret
from bench.wording import did_you_mean, first_fault, read_model

# Names inside the folders that a driver is given; `cluster/job/layout.py` knows where those lie.
EVENTS, RECORD, MATERIAL, GIVEN = "events.jsonl", "tokens.json", "tasks", "setups"

# A client starts in the agent's folder, so a path must not depend on where the driver started.
Place = Annotated[Path, AfterValidator(Path.absolute)]


class AgentConfig(BaseModel):
    """Settings of one agent node."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    node: Annotated[int, Field(ge=0, description="This agent node's number in the job.")] = 0
    nodes: Annotated[int, Field(ge=1, description="How many agent nodes the job has.")] = 1
    run_dir: Annotated[Place, Field(description="Folder of this node's episodes and of `events.jsonl`.")]
    shared_dir: Annotated[Place, Field(description="`/shared`: staged material in, the agents' folders out.")]
    folders_file: Annotated[Place, Field(description="JSONL file: which attempt used which folder.")]
    problems_file: Annotated[Place, Field(description="JSONL file of all the job's problems, one a line.")]
    judge_urls: Annotated[tuple[str, ...], Field(min_length=1, description="Base URLs of the judges, by rank.")]
    secret_file: Annotated[
        Place | None, Field(description="Job secret that tokens derive from; none for open judges.")
    ] = None
    setups: Annotated[dict[str, SetupRecord], Field(description="Setups of the problems, by name.")]
    harness_options: Annotated[
        dict[str, dict[str, str]],
        Field(description="Options of the harness, by setup; `scripted` takes `plan`."),
    ] = {}
    service: Annotated[
        ModelService | None, Field(description="What serves the model; none for a harness that needs none.")
    ] = None
    usage_file: Annotated[
        Place | None, Field(description="JSONL file of what a provider reported of tokens, one request a line.")
    ] = None
    workers: Annotated[int, Field(ge=1, description="Episodes at a time on this node.")] = 4
    timeout_s: Annotated[float, Field(gt=0, description="Wall clock of an episode over all attempts, s.")] = 72000
    max_tokens: Annotated[int, Field(gt=0, description="Token cap of an episode over all attempts.")] = 120_000_000
    budget_mode: Annotated[
        BudgetMode,
        Field(description="iterations: the prompt asks for versions; time: a session that ends early is resumed."),
    ] = BudgetMode.ITERATIONS
    max_iterations: Annotated[
        int | None, Field(ge=1, description="Versions that the prompt asks for; none: it names no number.")
    ] = None
    prices: Annotated[
        PriceTable | None, Field(description="What models cost, as `prices.yaml` has it; none: no episode is priced.")
    ] = None
    crash_attempts: Annotated[int, Field(ge=1, description="Launches of an episode at most.")] = 3
    give_up_after: Annotated[
        int,
        Field(ge=0, description="Episodes in a row that a client or model failed before no more start; 0: never."),
    ] = 10
    start_stagger_s: Annotated[float, Field(ge=0, description="Pause between two starts of episodes, s.")] = 0.0
    ready_timeout_s: Annotated[
        float, Field(gt=0, description="How long a client may take to announce its tools, s.")
    ] = 120.0
    idle_timeout_s: Annotated[
        float, Field(gt=0, description="Silence of a client after which it counts as crashed, s.")
    ] = 7200.0
    exit_grace_s: Annotated[
        float, Field(ge=0, description="How long a finished client may take to exit before it is killed, s.")
    ] = 30.0
    cpus: Annotated[
        tuple[int, ...] | None, Field(description="CPUs dealt round-robin to the workers; none: all, shared.")
    ] = None
    failover: Annotated[bool, Field(description="Turn to another rank when the home rank is lost.")] = True
    seal: Annotated[
        SealMode,
        Field(description="auto: seal clients that a model drives; required: seal every client; off: none."),
    ] = "auto"

    @model_validator(mode="after")
    def _provider_is_metered(self) -> Self:
        if self.service and self.service.key_env and self.usage_file is None:
            raise ValueError("usage_file: name the file that the proxy to a hosted model writes its usage to")
        return self

    @property
    def budget(self) -> Budget:
        return Budget(self.timeout_s, self.max_tokens, self.budget_mode, self.max_iterations)

    @property
    def events_file(self) -> Path:
        return self.run_dir / EVENTS

    @property
    def staged_tools(self) -> Path:
        """What sealed clients get of these packages."""
        return self.run_dir / "tools"

    def material(self, kernel: str) -> Path:
        """Staged start material of a kernel."""
        return self.shared_dir / MATERIAL / kernel

    def given(self, setup: str) -> Path:
        """What all agents of a setup are given: prompt, contracts, skills, files."""
        return self.shared_dir / GIVEN / setup

    def home_rank(self, index: int) -> int:
        """Rank that serves the problem of this global index."""
        return striped(index, len(self.judge_urls))

    def worker_cpus(self, worker: int) -> set[int] | None:
        """CPUs of one worker; with fewer CPUs than workers, some share one."""
        if not self.cpus:
            return None
        return set(self.cpus[worker :: self.workers]) or {self.cpus[worker % len(self.cpus)]}

    def secret(self) -> bytes | None:
        """The job secret, or None for open judges; raises ConfigError when the file does not hold one."""
        return read_secret(self.secret_file) if self.secret_file else None

    @classmethod
    def read(cls, path: Path) -> "AgentConfig":
        """Load from a JSON file; raises ConfigError naming the file and the first wrong key."""
        return read_model(path, cls, "docs/reference/agent-config.md lists the keys")


def read_problems(config: AgentConfig) -> list[tuple[int, Problem]]:
    """This node's problems, each with its index in the job's whole list: `problems[node::nodes]`.

    Raises:
        ConfigError: naming file and line of the first fault in the whole list.
    """
    numbered = numbered_problems(config.problems_file)
    for number, problem in numbered:
        _check(config, problem, f"{config.problems_file}:{number}")
    for setup in dict.fromkeys(problem.setup for _, problem in numbered):
        read_brief(config.given(setup))
    return list(enumerate(problem for _, problem in numbered))[config.node :: config.nodes]


def numbered_problems(path: Path) -> list[tuple[int, Problem]]:
    """The problems of a problems file, each with the number of its line.

    Raises:
        ConfigError: naming the file, the line and the first wrong key.
    """
    try:
        # Not as text: that would end a line at characters which JSON takes as they are.
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); render the setup again") from error
    return [(number, _problem(path, number, line)) for number, line in enumerate(lines, start=1) if line.strip()]


def _problem(path: Path, number: int, line: bytes) -> Problem:
    try:
        return Problem.model_validate_json(line)
    except ValidationError as error:
        raise ConfigError(f"{path}:{number}: {first_fault(error, Problem)}") from error


def _check(config: AgentConfig, problem: Problem, where: str) -> None:
    """Raises ConfigError for a problem that this node cannot work on."""
    try:
        budget_of(problem.budget, config.budget)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error
    if problem.setup not in config.setups:
        meant = did_you_mean(problem.setup, config.setups)
        raise ConfigError(f"{where}: setup '{problem.setup}' is not in this configuration; {meant}")
    if not config.material(problem.kernel).is_dir():
        raise ConfigError(f"{where}: {config.material(problem.kernel)} is not there; stage the kernel's material")
    if not (path := contract_file(config.given(problem.setup), problem.kernel)).is_file():
        raise ConfigError(f"{where}: {path} is not there; stage the contract of every kernel of the setup")


def check_cpus(config: AgentConfig) -> None:
    """Raises ConfigError when `cpus` names one that this process may not use."""
    allowed = os.sched_getaffinity(0)
    if missing := sorted(set(config.cpus or ()) - allowed):
        raise ConfigError(f"cpus: this process may not use {missing}; name some of {sorted(allowed)}")
