"""Makes one stored grade again, from its database alone: kernel, submission, seed and flags as they were."""

import contextlib
import hashlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import yaml

from bench import adhoc, audit, process
from bench.audit import Agreement, Difference
from bench.build.toolchain import parse_toolchains, recorded_toolchains, shipped_toolchains, toolchains
from bench.court import Court
from bench.errors import JudgeFault, ShardError, TaskError, UsageError
from bench.grade import grade
from bench.inputs import balanced_order, timed_sizes
from bench.judge.schemas import WITHOUT_A_GPU, Device, Kind, Language, Outcome
from bench.measure.protocols import PROTOCOLS
from bench.provenance import TOOLCHAINS_ROLE
from bench.race import policy_stamp
from bench.records import GradeOrder, GradeReport
from bench.results import queries
from bench.results.stored import StoredGrade, stored_grade
from bench.sandbox import scratch_folder
from bench.seeds import commitment
from bench.task import Task, load_task

SUBMISSION = "submission"
KERNEL_FILES = {"manifest": "task.yaml", "reference": "reference.py"}
BASELINE = "baseline:"


class FlagsOf(StrEnum):
    """Whose compilers and flags build a regrade: those of the grade, or this version's."""

    THEN = "then"
    NOW = "now"


@dataclass(frozen=True)
class Regrade:
    """A grade, the same grade made again, and what to make of the two."""

    then: StoredGrade
    now: GradeReport
    agreement: Agreement
    differences: tuple[Difference, ...]


def regrade(
    database: Path, grade_id: str, court: Court, flags_of: FlagsOf = FlagsOf.THEN, keep: bool = False
) -> Regrade:
    """Make one grade of `database` again on this machine; `keep` stores the new one in the ad hoc database.

    The reference of the database runs in this process, as a corpus's own does.

    Raises:
        UsageError: no such grade, its seed is not revealed, or this version cannot make it.
        ShardError: a text is missing or is not the one that was graded, or the seed not the one committed to.
        JudgeFault: this judge failed at it.
    """
    with queries.opened([database]) as db:
        then = stored_grade(db, grade_id)
    if then is None:
        raise UsageError(
            f"{database}: no grade '{grade_id}'; its table `grades` has the ids of all, and"
            f" `kcourt db summary {database} --json` those of a study's answers"
        )
    with _naming(database):
        check_possible(then, court)
        seed = checked_seed(then)
        check_texts(then, flags_of)
        with rebuilt_kernel(then) as task, _flags(then, flags_of):
            check_draws(then, task, seed)
            order = order_of(then, seed)
            now = _graded(order, court, task, then.grade_id if keep else None)
            stamp = Difference("policy stamp", then.policy_stamp, policy_stamp(task, court.kit))
            flags = todays_flags(task, then.language) if court.kit is None else ()
            rules = [*flags, *([stamp] if stamp.then != stamp.now else [])]
    return Regrade(then, now, audit.agreement(then, now), (*audit.differences(then, now), *rules))


@contextlib.contextmanager
def _naming(database: Path) -> Iterator[None]:
    """Faults of a grade name its database."""
    try:
        yield
    except (UsageError, ShardError) as error:
        raise type(error)(f"{database}: {error}") from error


def check_possible(then: StoredGrade, court: Court) -> None:
    """Raises UsageError for a grade that found nothing, and for one that this version or this court cannot make."""
    if then.outcome is Outcome.JUDGE_FAULT:
        raise UsageError(f"grade {then.grade_id} is a fault of the judge: it found nothing that could be repeated")
    if then.protocol not in PROTOCOLS:
        raise UsageError(
            f"grade {then.grade_id} was made under protocol '{then.protocol}', which this version does not know"
            f" (it knows {', '.join(PROTOCOLS)}); use {_version(then)}"
        )
    if then.device not in court.devices:
        raise UsageError(
            f"grade {then.grade_id} was made on device '{then.device}', and this judge grades on"
            f" {' and '.join(court.devices)}; regrade it with `--device {_asked_for(then.device)}`,"
            " on a machine that has it"
        )
    if library := then.provenance.get("library"):
        raise UsageError(
            f"grade {then.grade_id} was of a library (sha256 {library.get('sha256')}), which no database holds;"
            " submit that file again"
        )


def _asked_for(device: str) -> str:
    """The device that a judge is opened on to grade on this one."""
    return Device.CPU if device in WITHOUT_A_GPU else device


def checked_seed(then: StoredGrade) -> bytes:
    """The grade's seed.

    Raises:
        UsageError: it is not revealed yet.
        ShardError: it is not the one that the grade committed to.
    """
    if then.seed is None:
        raise UsageError(
            f"the seed of grade {then.grade_id} is not revealed: job {then.job_id} still runs, or was merged without"
            " its secret; use the results.db of the ended job, or `kcourt db merge --secret`"
        )
    try:
        seed = bytes.fromhex(then.seed)
    except ValueError as error:
        raise ShardError(f"the seed of grade {then.grade_id} is no hex text; the file is damaged") from error
    if commitment(seed) != then.seed_commitment:
        raise ShardError(
            f"the seed of grade {then.grade_id} is not the one that the grade committed to"
            f" (sha256 {commitment(seed)[:12]}, committed {then.seed_commitment[:12]}); the file was changed"
        )
    return seed


def check_texts(then: StoredGrade, flags_of: FlagsOf = FlagsOf.NOW) -> None:
    """Raises ShardError naming the first text that is missing, or is not what its hash says."""
    for role in (SUBMISSION, *KERNEL_FILES, *([TOOLCHAINS_ROLE] if flags_of is FlagsOf.THEN else [])):
        if role not in then.texts:
            hint = "; --flags-of now builds with this version's" if role == TOOLCHAINS_ROLE else ""
            raise ShardError(f"grade {then.grade_id} lacks its {role}: the database does not hold that source{hint}")
    for role, text in then.texts.items():
        found = hashlib.sha256(text.content).hexdigest()
        if found != text.sha256:
            raise ShardError(
                f"the {role} of grade {then.grade_id} is not the text that was graded"
                f" (sha256 {found[:12]}, filed under {text.sha256[:12]}); take the file from a copy"
            )


@contextlib.contextmanager
def rebuilt_kernel(then: StoredGrade) -> Iterator[Task]:
    """The kernel as it was, in a folder of its own until the block ends.

    Raises:
        UsageError: this version does not read its manifest.
        ShardError: the kernel is not the one that was graded (`task_hash`).
    """
    names = {role: KERNEL_FILES.get(role, role.removeprefix(BASELINE)) for role in then.texts if _of_kernel(role)}
    with scratch_folder() as root:
        folder = root / _plain(then.kernel)
        folder.mkdir()
        for role, name in names.items():
            (folder / _plain(name)).write_bytes(then.texts[role].content)
        try:
            task = load_task(folder, on_gpu=then.device not in WITHOUT_A_GPU)
        except TaskError as error:
            raise UsageError(
                f"the kernel of grade {then.grade_id} cannot be read: {error}; use {_version(then)}"
            ) from error
        if task.hash != then.task_hash:
            raise ShardError(
                f"the kernel of grade {then.grade_id} is not the one that was graded"
                f" (task hash {task.hash[:12]}, recorded {str(then.task_hash)[:12]}); the file was changed"
            )
        yield task


def _of_kernel(role: str) -> bool:
    return role in KERNEL_FILES or role.startswith(BASELINE)


def _plain(name: str) -> str:
    """A name that stays in its folder."""
    if name in ("", ".", "..") or Path(name).name != name:
        raise ShardError(f"'{name}' is no file name that a grade would have stored; the file was changed")
    return name


def check_draws(then: StoredGrade, task: Task, seed: bytes) -> None:
    """Raises UsageError when this version draws other sizes, or another order, from the same seed."""
    runs = PROTOCOLS[then.protocol].runs
    for cell in then.cells:
        order = "".join("c" if first else "d" for first in balanced_order(seed, cell.index, runs))
        if (timed_sizes(task, seed, then.preset, cell.index), order) != (cell.sizes, cell.order):
            raise UsageError(
                f"input {cell.index} of grade {then.grade_id} had other sizes or another order than this version draws"
                f" from the same seed; use {_version(then)}"
            )


@contextlib.contextmanager
def _flags(then: StoredGrade, flags_of: FlagsOf) -> Iterator[None]:
    """Inside the block, compilers and flags are those of the grade, if asked for."""
    if flags_of is FlagsOf.NOW:
        yield
        return
    text = then.texts[TOOLCHAINS_ROLE].content
    try:
        parse_toolchains(text)
    except (yaml.YAMLError, LookupError, TypeError, AttributeError) as error:
        raise UsageError(
            f"this version does not read the toolchains of grade {then.grade_id} ({error!r});"
            f" use {_version(then)}, or --flags-of now"
        ) from error
    with recorded_toolchains(text):
        yield


def todays_flags(task: Task, language: Language) -> Iterator[Difference]:
    """Where the flags in force are not those of this version, for the languages of both sides."""
    today = parse_toolchains(shipped_toolchains())
    for name in sorted({language, *map(Language.of, task.defining_baselines)}):
        used, shipped = (chains[name].command("", "") if name in chains else [] for chains in (toolchains(), today))
        if used != shipped:
            yield Difference(f"today's flags of {name}", " ".join(used), " ".join(shipped))


def order_of(then: StoredGrade, seed: bytes) -> GradeOrder:
    """The order that makes the grade again."""
    return GradeOrder(
        grade_id=str(uuid.uuid4()),
        kind=Kind.REGRADE,
        kernel=then.kernel,
        language=then.language,
        source=then.texts[SUBMISSION].content.decode(),
        binding=bool(then.provenance.get("binding")),
        workspace_bytes=then.provenance.get("workspace_bytes", 0),
        preset=then.preset,
        protocol=then.protocol,
        seed=seed.hex(),
        disclose=True,
    )


def _graded(order: GradeOrder, court: Court, task: Task, keep_as_of: str | None) -> GradeReport:
    process.adopt_orphans()
    started = datetime.now(UTC)
    report = grade(order, court, task)
    process.sweep()
    if report.outcome is Outcome.JUDGE_FAULT:
        raise JudgeFault(f"the judge failed at it: {report.provenance.get('finding', {}).get('message')}")
    if keep_as_of:
        adhoc.record(order, report, started, keep_as_of)
    return report


def _version(then: StoredGrade) -> str:
    return f"Kernelcourt {then.package_version}" + (f" ({then.package_commit})" if then.package_commit else "")
