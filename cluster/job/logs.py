"""The logs of a run: which there are, and what is added to them."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bench.errors import UsageError
from bench.judge.schemas import EpisodeLabel
from cluster.job.launched import launched, settings_of
from cluster.job.layout import RunLayout
from cluster.job.lines import NewLines
from cluster.study.queue import job_logs, logs_folder

FOLLOW_EVERY_S = 0.5


class LogRole(StrEnum):
    """Whose log it is; `job` is what Slurm keeps of the job's own process."""

    JOB = "job"
    INFERENCE = "inference"
    AGENT = "agent"
    JUDGE = "judge"
    MONITOR = "monitor"


@dataclass(frozen=True)
class Log:
    """One log file; `name` is the rank, replica, node or episode that it is of."""

    role: LogRole
    name: str
    path: Path

    @property
    def bytes(self) -> int:
        return self.path.stat().st_size


def logs_of(layout: RunLayout) -> list[Log]:
    """Every log that there is but those of attempts, which `attempt_logs` finds.

    Raises:
        ConfigError: the run's plan or its settings are damaged.
    """
    return [log for log in _possible(layout) if log.path.is_file()]


def _possible(layout: RunLayout) -> Iterator[Log]:
    plan = launched(layout)
    settings = settings_of(layout)
    scratch = Path(os.environ.get("KCOURT_SCRATCH") or settings.kcourt_scratch)
    for name in job_logs(plan.job_id):
        yield Log(LogRole.JOB, plan.job_id, logs_folder(scratch) / name)
    for replica in range(settings.inference_nodes):
        yield Log(LogRole.INFERENCE, str(replica), layout.inference_log(replica))
    for node in range(settings.agent_nodes):
        yield Log(LogRole.AGENT, str(node), layout.agent_log(node))
    for rank in range(plan.ranks):
        for log_of in (layout.judge_log, layout.router_log, layout.upstream_log, layout.worker_log):
            yield Log(LogRole.JUDGE, str(rank), log_of(rank))
    for path in sorted(layout.monitor.glob("*")):
        yield Log(LogRole.MONITOR, path.stem, path)


def attempt_logs(layout: RunLayout, label: str) -> list[Log]:
    """What the client of an episode printed, in the order of its attempts.

    Raises:
        UsageError: that is no episode's label, or the run has no such episode.
    """
    try:
        parsed = EpisodeLabel.parse(label)
    except ValueError as error:
        raise UsageError(f"--episode: {error}; labels are in events.jsonl and in the results") from error
    folder = layout.episode(parsed.node, parsed.problem, parsed.worker)
    if not folder.is_dir():
        raise UsageError(f"--episode {label}: {folder} is not there; `kcourt watch` says which episodes have begun")
    paths = sorted(folder.glob("attempt-*/*.log"), key=lambda path: (len(path.parent.name), path))
    return [Log(LogRole.AGENT, label, path) for path in paths]


def chosen(logs: Sequence[Log], role: LogRole, name: str | None) -> list[Log]:
    """The logs of a role, or of one rank, replica or node of it.

    Raises:
        UsageError: there is none; those that there are are named.
    """
    mine = [log for log in logs if log.role is role]
    if not mine:
        roles = ", ".join(dict.fromkeys(log.role for log in logs)) or "none"
        raise UsageError(f"--role {role}: this run has no such log; it has logs of: {roles}")
    found = [log for log in mine if name is None or log.name == name]
    if not found:
        names = list(dict.fromkeys(log.name for log in mine))
        raise UsageError(f"--role {role}: there is no log of {name}; there are logs of {', '.join(names)}")
    return found


def followed(
    logs: Sequence[Log], offsets: Sequence[int], ended: Callable[[], bool], pause: Callable[[float], None]
) -> Iterator[tuple[Log, list[bytes]]]:
    """What is added to the logs behind the offsets, until the job has ended and nothing is added any more."""
    readers = [NewLines(log.path, offset) for log, offset in zip(logs, offsets, strict=True)]
    while True:
        # Asked before the look: what was written until then is seen by it.
        over = ended()
        found = [(log, lines) for log, reader in zip(logs, readers, strict=True) if (lines := reader.read())]
        yield from found
        if over and not found:
            return
        pause(FOLLOW_EVERY_S)
