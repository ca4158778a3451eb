"""One agent's work on one kernel: attempts in fresh folders, the answer that they left, the record."""

import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from agent.answers import accepted_submit, last_correct_score, read_calls
from agent.attempt import Attempt, Rules, run_attempt
from agent.budget import NEVER_PROMOTED, RELAUNCHED, Budget, Observed, budget_of, classify, relaunches
from agent.cancel import Cancel, CancelRequested
from agent.config import RECORD, AgentConfig
from agent.endpoint import Endpoint, ProxyAddress, endpoint_for
from agent.folder import fresh_folder, keep_workspace
from agent.harnesses import Harness, Launch
from agent.journal import append_json, utc_now, write_private
from agent.judges import Judges
from agent.promote import harvest, promote
from agent.prompts.given import PROMPT, read_brief, read_contract
from agent.prompts.render import Facts, render
from agent.tools.judge_tools import JudgeTools, ToolSettings
from agent.usage import NOTHING, Usage
from bench.judge.client import JudgeRefused
from bench.judge.schemas import (
    DRIVER_LABEL,
    Answer,
    End,
    EpisodeLabel,
    EpisodeRecord,
    Problem,
    SetupRecord,
    SubmissionMode,
    token_for,
)


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

    @property
    def tokens_file(self) -> Path:
        return self.dir / "tokens-so-far"

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

    def add(self, attempt: Attempt) -> None:
        self.used += attempt.usage
        self.seen = attempt.seen
        self.model = attempt.model or self.model


def run_episode(job: Assignment, harness: Harness, cancel: Cancel) -> EpisodeRecord:
    """Work on one problem until it ends; whatever happens, its record is in `tokens.json` then."""
    progress = Progress(time.monotonic(), utc_now())
    job.dir.mkdir(parents=True)
    job.report("episode_started", setup=job.problem.setup, slot=job.problem.slot)
    end = _attempts(job, harness, cancel, progress)
    try:
        with cancel.interrupting():
            _leave_answer(job, end, progress)
    except CancelRequested:
        end = End.SUBMITTED if end is End.SUBMITTED else End.CANCELLED
    record = record_of(job, harness, end, progress)
    if end is End.CANCELLED:
        (job.dir / "cancelled").touch()
    finish(job, record)
    return record


def finish(job: Assignment, record: EpisodeRecord) -> None:
    """Write an episode's record and tell the live view."""
    write_private(job.dir / RECORD, record.model_dump_json(indent=2) + "\n")
    job.report("episode_ended", end=record.end, attempts=record.attempts, seconds=round(record.wall_s, 3))


def _attempts(job: Assignment, harness: Harness, cancel: Cancel, progress: Progress) -> End:
    """Launch until one does not end in a crash, or the launches are spent."""
    while True:
        progress.launches += 1
        end = _attempt(job, harness, cancel, progress)
        if cancel.requested and end in RELAUNCHED:
            return End.CANCELLED
        remaining_s = job.budget.remaining_s(time.monotonic() - progress.started)
        if not relaunches(end, progress.launches, job.config.crash_attempts, remaining_s):
            return end


def _attempt(job: Assignment, harness: Harness, cancel: Cancel, progress: Progress) -> End:
    number, began = progress.launches, time.monotonic()
    evidence = job.dir / f"attempt-{number}"
    evidence.mkdir()
    write_private(job.tokens_file, str(progress.used.tokens))
    try:
        folder = fresh_folder(
            job.config.shared_dir,
            job.config.material(job.problem.kernel),
            job.config.folders_file,
            job.label,
            number,
        )
    except OSError as error:
        progress.seen = Observed(exit_code=None, ready=False)
        job.report("attempt_ended", attempt=number, end=End.START_FAILED, why=str(error))
        return End.START_FAILED
    job.report("attempt_started", attempt=number, folder=str(folder))
    tools = progress.tools = _tool_settings(job, evidence, folder, number)
    attempt = run_attempt(harness, _prepare(job, tools, progress), _rules(job, tools, harness, progress), cancel)
    seen = _settled(tools, attempt.seen, cancel)
    progress.add(replace(attempt, seen=seen))
    _keep(tools, evidence)
    end = classify(seen, tools.mode)
    seconds = round(time.monotonic() - began, 3)
    job.report("attempt_ended", attempt=number, end=end, exit_code=seen.exit_code, seconds=seconds)
    return end


def _tool_settings(job: Assignment, evidence: Path, folder: Path, attempt: int) -> ToolSettings:
    return ToolSettings(
        kernel=job.problem.kernel,
        language=job.problem.language,
        mode=job.setup.submission_mode,
        tools=read_brief(job.config.given(job.problem.setup)).tools,
        folder=folder,
        evidence=evidence,
        judge_urls=job.config.judge_urls,
        home_rank=job.config.home_rank(job.index),
        failover=job.config.failover,
        token=job.token(job.label),
        attempt=attempt,
        tokens_file=job.tokens_file,
    )


def _prepare(job: Assignment, tools: ToolSettings, progress: Progress) -> Launch:
    """Write what the client reads at its start."""
    launch = Launch(
        kernel=tools.kernel,
        language=tools.language,
        model=job.setup.model,
        attempt=tools.attempt,
        remaining_s=job.budget.remaining_s(time.monotonic() - progress.started),
        folder=tools.folder,
        home=tools.evidence / "home",
        prompt_file=tools.evidence / "prompt.txt",
        tools_file=tools.evidence / "tools.json",
        mcp_file=tools.evidence / "mcp.json",
        tools=tools.tools,
        endpoint=job.endpoint,
        effort=job.setup.effort,
        temperature=job.setup.temperature,
    )
    launch.prompt_file.write_text(_prompt(job, tools, progress), encoding="utf-8")
    write_private(launch.tools_file, tools.model_dump_json(indent=2))
    return launch


def _prompt(job: Assignment, tools: ToolSettings, progress: Progress) -> str:
    """What the agent is told; a later attempt is told what the earlier ones have left of the budget."""
    given = job.config.given(job.problem.setup)
    facts = Facts(
        text=job.problem.text,
        contract=read_contract(given, tools.kernel),
        start=tuple(sorted(path.name for path in job.config.material(tools.kernel).iterdir())),
        mode=tools.mode,
        budget=job.budget.left(progress.used, time.monotonic() - progress.started) if tools.attempt > 1 else job.budget,
        brief=read_brief(given),
        given=given,
    )
    return render((given / PROMPT).read_text(encoding="utf-8"), facts)


def _rules(job: Assignment, tools: ToolSettings, harness: Harness, progress: Progress) -> Rules:
    return Rules(
        deadline=progress.started + job.budget.timeout_s,
        budget=job.budget,
        used=progress.used,
        mode=tools.mode,
        tools=frozenset(map(harness.announces, tools.tools)),
        ready_timeout_s=job.config.ready_timeout_s,
        idle_timeout_s=job.config.idle_timeout_s,
        exit_grace_s=job.config.exit_grace_s,
        answers_file=tools.answers_file,
        tokens_file=job.tokens_file,
        log_file=tools.evidence / f"{harness.name}.log",
    )


def _settled(tools: ToolSettings, seen: Observed, cancel: Cancel) -> Observed:
    """The attempt with what the judge says of its submits, the one included whose caller died waiting."""
    caller = JudgeTools(tools)
    try:
        with cancel.interrupting():
            caller.settle()
    except (JudgeRefused, CancelRequested):
        pass  # A refusal is in the attempt's record now; a cancelled episode waits for nobody.
    finally:
        caller.close()
    return replace(seen, submitted=accepted_submit(read_calls(tools.answers_file)) is not None)


def _keep(tools: ToolSettings, evidence: Path) -> None:
    """Keep the workspace as the attempt left it, and say what is missing."""
    if left_out := keep_workspace(tools.folder, evidence / "workspace"):
        (evidence / "workspace-left-out.txt").write_text("\n".join(left_out) + "\n", encoding="utf-8")


def _leave_answer(job: Assignment, end: End, progress: Progress) -> None:
    """Promote or harvest for an episode whose final attempt handed nothing in."""
    if end in NEVER_PROMOTED or progress.tools is None or (progress.seen and progress.seen.submitted):
        return
    judges = Judges(
        job.config.judge_urls,
        job.config.home_rank(job.index),
        job.token(DRIVER_LABEL),
        job.config.failover,
    )
    try:
        if answer := _answer(job, judges, progress.tools, progress.used.tokens):
            job.report("answered", grade_id=answer.grade_id, outcome=answer.outcome)
    except JudgeRefused as refused:
        job.report("answer_refused", code=refused.code, why=refused.message)
    finally:
        judges.close()


def _answer(job: Assignment, judges: Judges, tools: ToolSettings, tokens: int) -> Answer | None:
    if tools.mode is SubmissionMode.BLIND:
        workspace = tools.evidence / "workspace"
        return harvest(judges, job.label, tools.attempt, tokens, tools.kernel, tools.language, workspace)
    scored = last_correct_score(read_calls(tools.answers_file))
    if scored is None:
        return None
    source = tools.scored_source(scored.grade_id)
    return promote(judges, job.label, tools.attempt, tokens, scored, source, tools.language)


def record_of(job: Assignment, harness: Harness, end: End, progress: Progress) -> EpisodeRecord:
    """The episode as `tokens.json` keeps it, ended now."""
    used = progress.used
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
        turns=used.turns,
        tool_calls=used.tool_calls,
        tokens_fresh=used.tokens_fresh,
        tokens_cached=used.tokens_cached,
        tokens_output=used.tokens_output,
        dollars=used.dollars,
        wall_s=time.monotonic() - progress.started,
        api_s=used.api_s,
        model=progress.model,
        harness=harness.name,
        harness_version=harness.version,
        started_at=progress.started_at,
        ended_at=utc_now(),
    )
