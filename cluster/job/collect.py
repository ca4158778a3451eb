"""Merges what a run's judges and agents wrote into its results.db; also how a failed merge is done again."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench.errors import ConfigError, KernelcourtError, ShardError
from bench.judge.schemas import EpisodeRecord, SetupRecord
from bench.results.checks import Expectation
from bench.results.merge import MergeReport, merge
from bench.seeds import read_root
from bench.wording import first_fault
from cluster.job.layout import RunLayout

_RECOVERY = """\
results.db of this run could not be written. Every answered grade is safe in judge/rank-*/.
Cause: {cause}
Mend the cause, then run: kcourt job collect {run}
"""


def collect(layout: RunLayout) -> MergeReport:
    """Merge every shard and episode record; MERGE_FAILED is there from the start until it has worked.

    Raises:
        ShardError: a shard or a record is missing, damaged or another job's; the message names it.
        JudgeFault: the job secret is gone, without which seeds cannot be revealed.
    """
    _note_failure(layout, "the merge was interrupted")
    try:
        plan = launched(layout)
        ranks = range(plan.ranks)
        report = merge(
            layout.results,
            [layout.shard(rank) for rank in ranks],
            episodes=[read_episode(path) for path in layout.episode_records()],
            root=read_root(layout.secret),
            expect=Expectation(plan.job_id, tuple(ranks)),
        )
    except KernelcourtError as error:
        _note_failure(layout, str(error))
        raise
    layout.merge_failed.unlink()
    return report


def _note_failure(layout: RunLayout, cause: str) -> None:
    layout.merge_failed.write_text(_RECOVERY.format(cause=cause, run=layout.root), encoding="utf-8")


class Launched(BaseModel):
    """The content of `plan.json`: the job's id, which a renamed run directory keeps, its ranks and setups."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    job_id: str
    ranks: Annotated[int, Field(ge=1)]
    setups: dict[str, SetupRecord]


def launched(layout: RunLayout) -> Launched:
    """The job as planned.

    Raises:
        ConfigError: the folder holds no run, or its plan is damaged.
    """
    try:
        return Launched.model_validate_json(layout.plan.read_bytes())
    except OSError as error:
        raise ConfigError(
            f"{layout.root}: no run there ({layout.plan.name}: {error.strerror}); name a run directory"
        ) from error
    except ValidationError as error:
        raise ConfigError(
            f"{layout.plan}: damaged: {first_fault(error)}; `kcourt db merge` can merge the shards alone"
        ) from error


def read_episode(path: Path) -> EpisodeRecord:
    """Raises ShardError when a `tokens.json` is not whole."""
    try:
        return EpisodeRecord.model_validate_json(path.read_bytes())
    except ValidationError as error:
        fault = first_fault(error)
        raise ShardError(f"{path}: {fault}; move the file away to leave this episode's record out") from error
