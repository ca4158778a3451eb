"""One agent node: deals its problems to workers and runs each episode in a process of its own."""

import heapq
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess

import structlog

from agent.assignment import Assignment, Progress
from agent.budget import OUTSIDE
from agent.cancel import STOP_SIGNALS, Cancel
from agent.config import RECORD, AgentConfig, check_cpus, read_problems
from agent.endpoint import ProxyAddress
from agent.episode import run_episode
from agent.harnesses import UNSERVED, Harness, check_budget_mode, load_harness
from agent.hosted import proxied
from agent.journal import utc_now
from agent.record import finish, record_of
from agent.seal import TOOLS, check_seal, is_sealed
from agent.tools.staged import stage_tools
from bench import process
from bench.errors import ConfigError, ExitCode
from bench.judge.schemas import End, EpisodeRecord, Problem

NICENESS = 10
_FORK = multiprocessing.get_context("fork")
_log = structlog.wrap_logger(
    structlog.PrintLogger(sys.stderr),
    processors=[
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
        structlog.processors.JSONRenderer(),
    ],
)
LoadHarness = Callable[[str, Mapping[str, str]], Harness]


@dataclass(frozen=True)
class NodeReport:
    """What one node did: episodes planned, and how many ended in which way; the others were never started.

    `gave_up`: no more were started, because too many in a row failed for a reason outside of their agents.
    """

    planned: int
    ends: dict[str, int]
    cancelled: bool
    gave_up: bool = False

    @property
    def exit_code(self) -> ExitCode:
        if self.cancelled:
            return ExitCode.CANCELLED
        return ExitCode.SERVICE_LOST if self.gave_up else ExitCode.OK


def run_node(config: AgentConfig, load: LoadHarness = load_harness) -> NodeReport:
    """Run all episodes of this node; SIGTERM and SIGINT cancel those that run and leave the rest unstarted.

    Raises:
        ConfigError: the configuration, a problem, a harness or the run directory does not fit; nothing was
            started then.
    """
    problems = read_problems(config)
    check_cpus(config)
    config.secret()
    used = dict.fromkeys(problem.setup for _, problem in problems)
    harnesses = {setup: load(config.setups[setup].harness, config.harness_options.get(setup, {})) for setup in used}
    for setup, harness in harnesses.items():
        harness.check(config.setups[setup])
        check_budget_mode(harness, config.budget_mode)
    if any(config.run_dir.glob("problem-*")):
        raise ConfigError(f"{config.run_dir}: holds episodes already; give every run a directory of its own")
    _check_wires(config, harnesses)
    config.run_dir.mkdir(parents=True, exist_ok=True)
    if any(is_sealed(config.seal, harness.wire_format) for harness in harnesses.values()):
        check_seal((config.run_dir, config.shared_dir))
        stage_tools(config.staged_tools, shown_at=TOOLS)
    with proxied(config.service, config.usage_file) as proxy:
        return Node(config, harnesses, proxy).run(problems)


def _check_wires(config: AgentConfig, harnesses: Mapping[str, Harness]) -> None:
    """Raises ConfigError for a harness whose model is not served, or not in the format that it speaks."""
    offered = config.service.wires if config.service else ()
    for setup, harness in harnesses.items():
        if harness.wire_format not in UNSERVED.union(offered):
            served = f"the job's model speaks {', '.join(offered)}" if offered else "the job serves no model"
            raise ConfigError(
                f"setup '{setup}': harness {harness.name} speaks {harness.wire_format}, and {served}; "
                "choose another HARNESS, or another model"
            )


@dataclass(frozen=True)
class Running:
    """An episode's process and what its record needs should the process be lost."""

    job: Assignment
    process: ForkProcess
    progress: Progress


class Node:
    """The workers of one node; a worker is a number and a CPU set that one episode has at a time."""

    def __init__(
        self, config: AgentConfig, harnesses: Mapping[str, Harness], proxy: ProxyAddress | None = None
    ) -> None:
        self._config, self._harnesses, self._proxy = config, harnesses, proxy
        self._free = list(range(config.workers))
        self._running: dict[int, Running] = {}
        self._next_start = time.monotonic()
        self._cancelled = False
        self._ends: Counter[str] = Counter()
        self._failed_in_a_row = 0

    def run(self, problems: Sequence[tuple[int, Problem]]) -> NodeReport:
        process.adopt_orphans()
        for number in STOP_SIGNALS:
            signal.signal(number, self._on_signal)
        waiting = deque(problems)
        while self._running or (waiting and not self._starts_no_more):
            pause_s = self._next_start - time.monotonic()
            starts = waiting and self._free and not self._starts_no_more
            if starts and pause_s <= 0:
                self._start(*waiting.popleft())
            else:
                self._collect(max(0.0, pause_s) if starts else None)
        return NodeReport(len(problems), dict(self._ends), self._cancelled, gave_up=bool(waiting) and self._gave_up)

    @property
    def _gave_up(self) -> bool:
        """Whether what fails is not the agents: every further start would cost time and money, and end likewise."""
        return 0 < self._config.give_up_after <= self._failed_in_a_row

    @property
    def _starts_no_more(self) -> bool:
        return self._cancelled or self._gave_up

    def _on_signal(self, number: int, frame: object) -> None:
        self._cancelled = True
        for running in self._running.values():
            running.process.terminate()

    def _start(self, index: int, problem: Problem) -> None:
        """Fork an episode onto the lowest free worker."""
        worker = heapq.heappop(self._free)
        job = Assignment(self._config, index, problem, worker, self._proxy)
        child = _FORK.Process(target=_work, args=(job, self._harnesses[problem.setup]), name=job.label)
        # A signal between fork and note would miss the child, or find it without its own handler.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        child.start()
        self._running[child.sentinel] = Running(job, child, Progress(time.monotonic(), utc_now()))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        self._next_start = time.monotonic() + self._config.start_stagger_s

    def _collect(self, timeout_s: float | None) -> None:
        """Wait for episodes to end, `timeout_s` at most, and free their workers."""
        for sentinel in wait(list(self._running), timeout_s):
            assert isinstance(sentinel, int)
            ended = self._running.pop(sentinel)
            ended.process.join()
            heapq.heappush(self._free, ended.job.worker)
            if ended.process.exitcode not in (ExitCode.OK, ExitCode.CANCELLED):
                self._lost(ended)
            if (record := ended.job.dir / RECORD).exists():
                self._count(EpisodeRecord.model_validate_json(record.read_bytes()).end)

    def _count(self, end: End) -> None:
        self._ends[end] += 1
        gave_up = self._gave_up
        self._failed_in_a_row = self._failed_in_a_row + 1 if end in OUTSIDE else 0
        if self._gave_up and not gave_up:
            why = f"{self._failed_in_a_row} in a row failed outside of their agents, the last one by '{end}'"
            _log.error("no more episodes start", why=f"{why}; mend the client or the model, then rerun what is owed")

    def _lost(self, ended: Running) -> None:
        """An episode's process died under it: kill what it left, and write the record that it could not."""
        process.sweep({pid for running in self._running.values() if (pid := running.process.pid)})
        job = ended.job
        _log.error("episode process lost", label=job.label, exit_code=ended.process.exitcode)
        ended.progress.launches = len(list(job.dir.glob("attempt-*")))
        record = record_of(job, self._harnesses[job.problem.setup], End.CRASH, ended.progress)
        try:
            job.dir.mkdir(exist_ok=True)
            finish(job, record)
        except OSError as error:
            # A full disk must not take the node's other episodes along; without a record this one is owed.
            _log.error("episode record not written", label=job.label, error=str(error))


def _work(job: Assignment, harness: Harness) -> None:
    """Body of an episode's process."""
    cancel = Cancel()
    cancel.listen()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    process.die_with_parent()
    process.adopt_orphans()
    if cpus := job.config.worker_cpus(job.worker):
        os.sched_setaffinity(0, cpus)
    os.setpriority(os.PRIO_PROCESS, 0, max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))
    if cancel.requested:
        sys.exit(ExitCode.CANCELLED)
    record = run_episode(job, harness, cancel)
    sys.exit(ExitCode.CANCELLED if record.end is End.CANCELLED else ExitCode.OK)
