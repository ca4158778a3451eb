"""Merges what a run's judges and agents wrote into its results.db; also how a failed merge is done again."""

from bench.errors import KernelcourtError
from bench.results.checks import Expectation
from bench.results.merge import MergeReport, merge
from bench.seeds import read_root
from cluster.job.launched import launched, read_episode
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
