"""What `tokens.json` says of an episode: how it ended, what it used and cost, what its tools asked, what came of it."""

import time
from collections import Counter

from agent.answers import accepted_submit, read_calls
from agent.assignment import Assignment, Progress
from agent.config import RECORD
from agent.harnesses import Harness
from agent.journal import utc_now, write_private
from bench.judge.schemas import End, EpisodeRecord


def finish(job: Assignment, record: EpisodeRecord) -> None:
    """Write an episode's record and tell the live view."""
    write_private(job.dir / RECORD, record.model_dump_json(indent=2) + "\n")
    job.report("episode_ended", end=record.end, attempts=record.attempts, seconds=round(record.wall_s, 3))


def record_of(job: Assignment, harness: Harness, end: End, progress: Progress) -> EpisodeRecord:
    """The episode as `tokens.json` keeps it, ended now."""
    used = progress.used
    calls = [read_calls(job.answers_file(number)) for number in range(1, progress.launches + 1)]
    routes = Counter[str](call.route for of_attempt in calls for call in of_attempt)
    submitted = accepted_submit(calls[-1]) if calls else None
    table, served = job.config.prices, job.served_model(harness)
    # By our own table: a client that guesses a price is not asked.
    dollars = table.dollars(served, used) if table and served else None
    return EpisodeRecord(
        label=job.label,
        setup=job.problem.setup,
        kernel=job.problem.kernel,
        slot=job.problem.slot,
        node=job.config.node,
        problem=job.index,
        worker=job.worker,
        end=end,
        exit_code=progress.seen.exit_code if progress.seen else None,
        attempts=progress.launches,
        resumed=progress.resumed,
        turns=used.turns,
        tool_calls=used.tool_calls,
        tokens_fresh=used.tokens_fresh,
        tokens_cached=used.tokens_cached,
        tokens_output=used.tokens_output,
        dollars=dollars,
        prices=table.version if table and dollars is not None else None,
        score_calls=routes["score"],
        submit_calls=routes["submit"],
        profile_calls=routes["profile"],
        search_calls=routes["search"],
        outcome=submitted.outcome if submitted else progress.outcome,
        wall_s=time.monotonic() - progress.started,
        api_s=used.api_s,
        model=progress.model,
        harness=harness.name,
        harness_version=harness.version,
        started_at=progress.started_at,
        ended_at=utc_now(),
    )
