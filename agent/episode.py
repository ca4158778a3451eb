"""One agent's work on one kernel: attempts in fresh folders, the answer that they left, the record."""

import time
from dataclasses import replace
from pathlib import Path

from agent.answers import accepted_submit, read_calls
from agent.assignment import Assignment, Progress
from agent.attempt import Rules, client_env, run_attempt
from agent.budget import RELAUNCHED, Budget, Observed, Session, classify, relaunches, resumes
from agent.cancel import Cancel, CancelRequested
from agent.folder import fresh_folder, keep_workspace
from agent.harnesses import Harness, Launch
from agent.journal import utc_now, write_private
from agent.promote import leave_answer
from agent.prompts.given import PROMPT, SKILLS, read_brief, read_contract
from agent.prompts.render import Facts, go_on, render
from agent.record import finish, record_of
from agent.seal import SKILL_PAGES, Seal
from agent.tools.judge_tools import JudgeTools
from agent.tools.mcp_file import mcp_text
from agent.tools.settings import ToolSettings
from bench.judge.client import JudgeRefused
from bench.judge.schemas import End, EpisodeRecord, SubmissionMode


def run_episode(job: Assignment, harness: Harness, cancel: Cancel) -> EpisodeRecord:
    """Work on one problem until it ends; whatever happens, its record is in `tokens.json` then."""
    progress = Progress(time.monotonic(), utc_now())
    job.dir.mkdir(parents=True)
    job.report("episode_started", setup=job.problem.setup, slot=job.problem.slot)
    end = _attempts(job, harness, cancel, progress)
    try:
        with cancel.interrupting():
            leave_answer(job, end, progress)
    except CancelRequested:
        end = End.SUBMITTED if end is End.SUBMITTED else End.CANCELLED
    record = record_of(job, harness, end, progress)
    if end is End.CANCELLED:
        (job.dir / "cancelled").touch()
    finish(job, record)
    return record


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
    calls = job.attempt_dir(number) / "calls"
    calls.mkdir(parents=True)
    job.tokens_file.parent.mkdir(exist_ok=True)
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
    job.report("attempt_started", attempt=number, folder=str(folder), sealed=job.is_sealed(harness))
    tools = progress.tools = _tool_settings(job, calls, folder, number)
    end = _sessions(job, tools, harness, cancel, progress)
    _keep(tools, job.attempt_dir(number))
    exit_code = progress.seen.exit_code if progress.seen else None
    seconds = round(time.monotonic() - began, 3)
    job.report("attempt_ended", attempt=number, end=end, exit_code=exit_code, seconds=seconds)
    return end


def _sessions(job: Assignment, tools: ToolSettings, harness: Harness, cancel: Cancel, progress: Progress) -> End:
    """Run an attempt's client, again and again where a session that ended goes on: in one folder, as one attempt."""
    first, rules = _prepare(job, tools, harness, progress), _rules(job, tools, harness, progress)
    session, resumed = _session(tools, harness, first, rules, cancel, progress), 0
    while not cancel.requested:
        left = job.budget.left(progress.used, time.monotonic() - progress.started)
        if not resumes(session, resumed, left, tools.mode):
            break
        resumed += 1
        progress.resumed += 1
        job.report("session_resumed", attempt=tools.attempt, session=resumed + 1, left_s=round(left.timeout_s, 3))
        launch = _resumed(first, session, left, tools.mode, resumed + 1)
        session = _session(tools, harness, launch, _beside(rules, launch, progress, resumed + 1), cancel, progress)
    return session.end


def _session(
    tools: ToolSettings, harness: Harness, launch: Launch, rules: Rules, cancel: Cancel, progress: Progress
) -> Session:
    calls = len(read_calls(tools.answers_file))
    attempt = run_attempt(harness, launch, rules, cancel)
    seen = _settled(tools, attempt.seen, cancel)
    progress.add(replace(attempt, seen=seen))
    worked = bool(attempt.usage.tool_calls) or len(read_calls(tools.answers_file)) > calls
    return Session(classify(seen, tools.mode), attempt.session, worked)


def _resumed(first: Launch, ended: Session, left: Budget, mode: SubmissionMode, number: int) -> Launch:
    """The launch that resumes a session; a file beside the first prompt tells the agent to go on."""
    prompt = _numbered(first.prompt_file, number)
    prompt.write_text(go_on(left.timeout_s, mode), encoding="utf-8")
    return replace(first, prompt_file=prompt, resume=ended.id, remaining_s=left.timeout_s)


def _beside(first: Rules, launch: Launch, progress: Progress, number: int) -> Rules:
    """The rules of a resumed session, which has a log of its own."""
    seal = first.seal and replace(first.seal, read_only=(*first.seal.read_only, launch.prompt_file))
    return replace(first, used=progress.used, log_file=_numbered(first.log_file, number), seal=seal)


def _numbered(path: Path, number: int) -> Path:
    """The same file of a later session of the attempt: `prompt.txt` becomes `prompt-2.txt`."""
    return path.with_stem(f"{path.stem}-{number}")


def _tool_settings(job: Assignment, calls: Path, folder: Path, attempt: int) -> ToolSettings:
    return ToolSettings(
        kernel=job.problem.kernel,
        language=job.problem.language,
        mode=job.setup.submission_mode,
        tools=read_brief(job.config.given(job.problem.setup)).tools,
        folder=folder,
        evidence=calls,
        judge_urls=job.config.judge_urls,
        home_rank=job.config.home_rank(job.index),
        failover=job.config.failover,
        token=job.token(job.label),
        attempt=attempt,
        tokens_file=job.tokens_file,
    )


def _prepare(job: Assignment, tools: ToolSettings, harness: Harness, progress: Progress) -> Launch:
    """Write what the client reads at its start."""
    place = job.attempt_dir(tools.attempt)
    launch = Launch(
        kernel=tools.kernel,
        language=tools.language,
        model=job.setup.model,
        attempt=tools.attempt,
        remaining_s=job.budget.remaining_s(time.monotonic() - progress.started),
        folder=tools.folder,
        home=place / "home",
        prompt_file=place / "prompt.txt",
        tools_file=place / "tools.json",
        mcp_file=place / "mcp.json",
        tools=tools.tools,
        endpoint=job.endpoint,
        effort=job.setup.effort,
        temperature=job.setup.temperature,
    )
    launch.prompt_file.write_text(_prompt(job, tools, harness, progress), encoding="utf-8")
    write_private(launch.tools_file, tools.model_dump_json(indent=2))
    write_private(launch.mcp_file, mcp_text(launch.tools_file, client_env(launch, job.is_sealed(harness))))
    return launch


def _prompt(job: Assignment, tools: ToolSettings, harness: Harness, progress: Progress) -> str:
    """The agent's prompt; that of a later attempt names what the earlier ones have left of the budget."""
    given = job.config.given(job.problem.setup)
    facts = Facts(
        text=job.problem.text,
        contract=read_contract(given, tools.kernel),
        start=tuple(sorted(path.name for path in job.config.material(tools.kernel).iterdir())),
        mode=tools.mode,
        budget=job.budget.left(progress.used, time.monotonic() - progress.started) if tools.attempt > 1 else job.budget,
        brief=read_brief(given),
        given=given,
        skills=SKILL_PAGES if job.is_sealed(harness) else given / SKILLS,
    )
    return render((given / PROMPT).read_text(encoding="utf-8"), facts)


def _rules(job: Assignment, tools: ToolSettings, harness: Harness, progress: Progress) -> Rules:
    return Rules(
        deadline=progress.started + job.budget.timeout_s,
        budget=job.budget,
        used=progress.used,
        mode=tools.mode,
        tools=frozenset(tools.tools),
        ready_timeout_s=job.config.ready_timeout_s,
        idle_timeout_s=job.config.idle_timeout_s,
        exit_grace_s=job.config.exit_grace_s,
        answers_file=tools.answers_file,
        tokens_file=job.tokens_file,
        seal=_seal(job, tools) if job.is_sealed(harness) else None,
        model=job.served_model(harness),
        log_file=job.attempt_dir(tools.attempt) / harness.log_name,
    )


def _seal(job: Assignment, tools: ToolSettings) -> Seal:
    """What this attempt's client sees: what is the agent's to write, what it was given, what its tools read."""
    given, place = job.config.given(job.problem.setup), job.attempt_dir(tools.attempt)
    told = (place / "prompt.txt", place / "mcp.json", place / "tools.json", job.tokens_file.parent)
    return Seal(
        read_only=(given, job.config.material(tools.kernel), *told),
        writable=(tools.folder, place / "home", tools.evidence),
        tools=job.config.staged_tools,
        skills=given / SKILLS,
    )


def _settled(tools: ToolSettings, seen: Observed, cancel: Cancel) -> Observed:
    """`seen` with whether the judge took a submit, also one whose caller died before the answer came."""
    caller = JudgeTools(tools)
    try:
        with cancel.interrupting():
            caller.settle()
    except (JudgeRefused, CancelRequested, OSError):
        # A refusal is in the attempt's record now; a cancelled episode waits for nobody; and a client that left
        # something else in place of its record has no more than what can be read of it.
        pass
    finally:
        caller.close()
    return replace(seen, submitted=accepted_submit(read_calls(tools.answers_file)) is not None)


def _keep(tools: ToolSettings, evidence: Path) -> None:
    """Keep the workspace as the attempt left it, and say what is missing."""
    if left_out := keep_workspace(tools.folder, evidence / "workspace"):
        (evidence / "workspace-left-out.txt").write_text("\n".join(left_out) + "\n", encoding="utf-8")
