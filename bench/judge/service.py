"""The life of a request that grades: known by its key? allowed? then queued, graded, recorded, answered."""

import asyncio
import contextlib
import hashlib
import socket
import statistics
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ParamSpec, TypeVar

import structlog

from bench.config import JudgeConfig
from bench.errors import EnvironmentFault, ShardError
from bench.judge.admission import Route, Submission
from bench.judge.answers import Course, Server, answer_text, fault_report, order_for, origin_of
from bench.judge.caller import Caller
from bench.judge.refusal import Refused
from bench.judge.scheduler import Graded, Scheduler
from bench.judge.schemas import ADHOC, CalibrationBrief, Health, Kind, Outcome, SubmissionMode
from bench.measure import calibration
from bench.records import GradeOrder, GradeReport
from bench.results.shard import Shard, ShardReader, StoredAnswer, read_only
from bench.seeds import new_root, request_seed
from bench.task import tasks_root
from bench.version import checkout_commit, commit, package_version

log = structlog.get_logger()
P = ParamSpec("P")
R = TypeVar("R")

ROUTES = ("/health", "/task", "/baseline", "/score", "/submit", "/profile", "/search", "/grades", "/metrics")
# How often `/health` looks whether there is a newer calibration.
CALIBRATION_LOOK_S = 5
# Times of a denominator that `/baseline` takes the median of.
REMEMBERED = 64
# Grades that ended without an answer, of which `/grades` can still say why.
REFUSALS = 256


@dataclass(frozen=True)
class Pending:
    """A grade that is being made. `done` gives the answer's JSON text, or raises Refused."""

    grade_id: str
    submission: Submission
    done: "asyncio.Task[str]"


class GradeService:
    """Everything between a checked submission and its answer. One event loop; the shard is used from threads.

    `secret` is the job's root; without one the judge is open: it draws a root of its own and stores the seeds
    with the grades. `graded` is told of every finished grade (for metrics).
    """

    def __init__(
        self,
        config: JudgeConfig,
        secret: bytes | None,
        shard: Shard,
        scheduler: Scheduler,
        graded: Callable[[Kind, Outcome, float, float], None],
    ) -> None:
        self.config, self.shard, self.scheduler = config, shard, scheduler
        self._ending = asyncio.Event()
        self._open, self._root = secret is None, secret or new_root()
        self._graded = graded
        self._server = Server(socket.gethostname(), package_version(), commit(), checkout_commit(tasks_root()))
        self._pending: dict[str, Pending] = {}
        # The latest that ended without an answer: who polls for one of them is told why.
        self._refused: OrderedDict[str, Pending] = OrderedDict()
        self._rendered: tuple[object, bytes] = (None, b"")
        self._denominators: dict[tuple[str, str], deque[float]] = {}
        # One request at a time finds out whether it may be graded: a second one must see the first.
        self._gate = asyncio.Lock()

    async def open(self, submission: Submission) -> Pending | StoredAnswer:
        """The stored answer to this key, the grade in flight for it, or a new grade.

        Raises:
            Refused: 400 key used with another body, 409, 429, 503.
        """
        async with self._gate:
            known = self._in_flight(submission) or await self._stored(submission)
            if known is not None:
                return known
            await self._check_mode(submission)
            if submission.kind is Kind.PROMOTED:
                await self._check_promotion(submission)
            self.check_fit()
            pending = self._begin(submission)
            await asyncio.sleep(0)  # it takes its place in the queue before anybody is told of it
            return pending

    async def find(self, grade_id: str, caller: Caller) -> Pending | StoredAnswer:
        """An earlier request's grade.

        Raises:
            Refused: 404 no such grade, 403 another episode's, or what its grade ended in.
        """
        found: Pending | StoredAnswer | None = self._pending.get(grade_id) or self._refused.get(grade_id)
        if found is None:
            found = await self._in_shard(self.shard.answer, grade_id)
        if found is None:
            raise Refused(404, "unknown_grade", f"no grade '{grade_id[:80]}' here; use the grade_id of an answer")
        label = found.submission.caller.label if isinstance(found, Pending) else found.label
        if not caller.may_read(label):
            raise Refused(403, "other_episode", "this grade belongs to another episode; read your own")
        if grade_id in self._refused:
            self._refused[grade_id].done.result()
        return found

    def health(self) -> Health:
        """The state as `/health` shows it."""
        scheduler, ready = self.scheduler, self.scheduler.ready
        return Health(
            status=scheduler.status,
            rank=self.config.rank,
            run_id=self.config.run_id,
            routes=ROUTES,
            device=ready.device if ready else self.config.device,
            sandbox=ready.sandbox if ready else None,
            queue_depth=scheduler.depth,
            inflight_submits=sum(p.submission.route is Route.SUBMIT for p in self._pending.values()),
            self_grade=scheduler.reason,
            version=self._server.package_version,
            warmed=f"{scheduler.warmed}/{len(self.config.to_warm)}",
            calibration=self._calibration(),
        )

    def _calibration(self) -> CalibrationBrief | None:
        """The last calibration of this machine; one that another version wrote counts as none."""
        try:
            found = calibration.last(self.config.cache_dir)
        except EnvironmentFault:
            return None
        return found.brief if found else None

    def health_json(self) -> bytes:
        """`health` as it is sent, rendered anew only when something changed."""
        scheduler = self.scheduler
        # A calibration is a file: looking for a new one costs as much as the rest of the answer.
        look = int(time.monotonic() / CALIBRATION_LOOK_S)
        state = (scheduler.status, scheduler.reason, scheduler.depth, scheduler.warmed, len(self._pending), look)
        if state != self._rendered[0]:
            self._rendered = (state, self.health().model_dump_json().encode())
        return self._rendered[1]

    def denominator_ns(self, kernel: str, name: str) -> float | None:
        """Median time (ns) of a denominator over the grades that this process made, None before the first."""
        medians = self._denominators.get((kernel, name))
        return statistics.median(medians) if medians else None

    async def drain(self, limit_s: float) -> None:
        """Take nothing new, and wait until what is in flight is recorded, at most `limit_s` seconds."""
        self._ending.set()
        if pending := [grade.done for grade in self._pending.values()]:
            log.info("draining", grades=len(pending))
            await asyncio.wait(pending, timeout=limit_s)

    def _in_flight(self, submission: Submission) -> Pending | None:
        key, label = submission.beside.key, submission.caller.label
        for pending in self._pending.values():
            other = pending.submission
            if key and (other.beside.key, other.caller.label, other.route) == (key, label, submission.route):
                _check_same_body(other.body_sha256, submission)
                return pending
        return None

    async def _stored(self, submission: Submission) -> StoredAnswer | None:
        """The recorded answer to this key; a fault of the judge is none, so that its retry is graded."""
        key = submission.beside.key
        if key is None:
            return None
        label, kind = submission.caller.label, submission.route.kind
        found = await self._asked(submission, lambda shard: shard.find_key(label, kind, key))
        if found is None or found.outcome is Outcome.JUDGE_FAULT:
            return None
        _check_same_body(found.body_sha256, submission)
        return found

    async def _check_mode(self, submission: Submission) -> None:
        label, mode = submission.caller.label, submission.caller.setup.submission_mode
        if label is None or not _once_only(submission):
            return
        for pending in self._pending.values():
            if pending.submission.route is Route.SUBMIT and pending.submission.caller.label == label:
                message = f"a submission of this episode is being graded: GET /grades/{pending.grade_id}"
                raise Refused(409, "submit_in_flight", message)
        accepted = await self._asked(submission, lambda shard: shard.accepted_submit(label))
        if accepted is not None:
            message = f"this episode has submitted once and may not again ({mode} mode): see /grades/{accepted}"
            raise Refused(409, "already_submitted", message)

    async def _asked(self, submission: Submission, ask: Callable[[ShardReader], R | None]) -> R | None:
        """What this rank's shard says, or else that of the lost rank which the episode comes from."""
        found = await self._in_shard(ask, self.shard)
        home = submission.beside.home_rank
        if found is not None or home in (None, self.config.rank) or submission.route is not Route.SUBMIT:
            return found
        try:
            return await asyncio.to_thread(_ask_lost, self.config.peer_shards.get(home or 0), ask)
        except ShardError as error:
            message = f"whether this episode has submitted at rank {home} cannot be told: {error}"
            raise Refused(503, "home_shard_unreadable", message) from error

    async def _check_promotion(self, submission: Submission) -> None:
        promoted = submission.beside.of_grade or ""
        score = await self._asked(submission, lambda shard: shard.answer(promoted))
        if score is None or score.label != submission.caller.label or score.kind is not Kind.SCORE:
            raise Refused(400, "bad_promotion", f"'{promoted[:80]}' is no /score of this episode")
        if score.outcome is not Outcome.SOLVED:
            raise Refused(400, "bad_promotion", f"score {promoted} is {score.outcome}; promote a solved one")
        stored = await self._asked(submission, lambda shard: shard.grade_source(promoted))
        sent = hashlib.sha256((submission.source or "").encode()).hexdigest()
        if stored is None or stored.sha256 != sent:
            raise Refused(400, "bad_promotion", f"the source is not the one of score {promoted}; send that one")

    def check_fit(self) -> None:
        """Raises Refused (429, 503) when nothing more can be taken now."""
        if self._ending.is_set():
            raise Refused(503, "stopping", "this judge is ending; send the request again, with its key, later")
        self.scheduler.check()

    def _begin(self, submission: Submission) -> Pending:
        grade_id = str(uuid.uuid4())
        done = asyncio.create_task(self._make(grade_id, submission))
        pending = self._pending[grade_id] = Pending(grade_id, submission, done)
        done.add_done_callback(lambda _: self._finish(pending))
        return pending

    def _finish(self, pending: Pending) -> None:
        """Forget a grade that is recorded, and keep what another ended in for a while: nobody may wait for it."""
        del self._pending[pending.grade_id]
        if pending.done.cancelled() or pending.done.exception() is None:
            return
        self._refused[pending.grade_id] = pending
        if len(self._refused) > REFUSALS:
            self._refused.popitem(last=False)

    async def _make(self, grade_id: str, submission: Submission) -> str:
        """Grade and record; the answer's text. It is durable in the shard when this returns."""
        seed = request_seed(self._root, submission.caller.label or ADHOC, grade_id)
        order = order_for(submission, grade_id, seed, self.config)
        requested_at = _now()
        graded = await self.scheduler.grade(order)
        report = graded.report or self._fault(order, graded)
        answer = answer_text(submission, report, self.config.rank)
        course = Course(requested_at, _now(), graded.queue_ms, graded.grade_ms, graded.fault)
        origin = origin_of(submission, answer, course, self._server)
        reveal = seed if self._open else None
        await self._in_shard(lambda: self.shard.record(origin, report, reveal=reveal))
        await self._hold_back(submission, report, graded.grade_ms / 1e3)
        self._note(submission.kind, submission.kernel, report, graded)
        return answer

    async def _hold_back(self, submission: Submission, report: GradeReport, took_s: float) -> None:
        """Let a failed `/submit` take a round number of seconds: how far it came tells of its hidden inputs.

        An open judge keeps no secrets, a judge that ends nobody waiting.
        """
        step_s = 0.0 if self._open else self.config.failed_submit_step_s
        if submission.route is Route.SUBMIT and report.met_hidden_inputs() and step_s:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), step_s - took_s % step_s)

    def _fault(self, order: GradeOrder, graded: Graded) -> GradeReport:
        ready = self.scheduler.ready
        sandbox, device = (ready.sandbox, ready.device) if ready else ("none", self.config.device)
        return fault_report(order, graded.fault or "", sandbox, device)

    def _note(self, kind: Kind, kernel: str, report: GradeReport, graded: Graded) -> None:
        self._graded(kind, report.outcome, graded.queue_ms, graded.grade_ms)
        if report.denominator and report.cells:
            median_ns = statistics.median(statistics.median(cell.denominator_ns) for cell in report.cells)
            seen = self._denominators.setdefault((kernel, report.denominator), deque(maxlen=REMEMBERED))
            seen.append(median_ns)
        log.info("graded", grade_id=report.grade_id, kind=kind, outcome=report.outcome, score=report.score)

    async def _in_shard(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the shard off the event loop; where it cannot be read or written the judge refuses."""
        try:
            return await asyncio.to_thread(call, *args, **kwargs)
        except ShardError as error:
            log.error("shard", fault=str(error))
            raise Refused(503, "unfit", f"this judge cannot keep grades: {error}") from error


def _once_only(submission: Submission) -> bool:
    """Whether this request may be accepted once in its episode."""
    multi = submission.caller.setup.submission_mode is SubmissionMode.MULTI
    return submission.route is Route.SUBMIT and not multi


def _ask_lost(path: Path | None, ask: Callable[[ShardReader], R | None]) -> R | None:
    if path is None:
        raise ShardError("this judge does not know that rank's shard")
    with read_only(path) as shard:
        return ask(shard)


def _check_same_body(sha256: str | None, submission: Submission) -> None:
    if sha256 != submission.body_sha256:
        message = "this Idempotency-Key was used with another body; use a new key for a new request"
        raise Refused(400, "key_reused", message)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
