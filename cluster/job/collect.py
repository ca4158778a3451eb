"""Merges what a run's judges and agents wrote into its results.db; also how a failed merge is done again."""

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.errors import ConfigError, KernelcourtError, ShardError
from bench.judge.schemas import EpisodeRecord
from bench.results.checks import Expectation
from bench.results.merge import MergeReport, merge
from bench.seeds import read_root
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
        ranks = int(launched(layout)["ranks"])
        report = merge(
            layout.results,
            [layout.shard(rank) for rank in range(ranks)],
            episodes=[read_episode(path) for path in layout.episode_records()],
            root=read_root(layout.secret),
            expect=Expectation(layout.job_id, tuple(range(ranks))),
        )
    except KernelcourtError as error:
        _note_failure(layout, str(error))
        raise
    layout.merge_failed.unlink()
    return report


def _note_failure(layout: RunLayout, cause: str) -> None:
    layout.merge_failed.write_text(_RECOVERY.format(cause=cause, run=layout.root), encoding="utf-8")


def launched(layout: RunLayout) -> dict[str, Any]:
    """The job as planned: `job_id`, `ranks` and `setups`.

    Raises:
        ConfigError: the folder holds no run.
    """
    try:
        found: dict[str, Any] = json.loads(layout.plan.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"{layout.root}: no run there ({layout.plan.name}: {error.strerror}); name a run directory"
        ) from error
    return found


def read_episode(path: Path) -> EpisodeRecord:
    """Raises ShardError when a `tokens.json` is not whole."""
    try:
        return EpisodeRecord.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in fault["loc"]) or "record"
        raise ShardError(
            f"{path}: {key}: {fault['msg']}; move the file away to leave this episode's record out"
        ) from error
