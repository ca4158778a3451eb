"""The life of a checked request: found by its key, or allowed, queued, graded, recorded and answered."""

import asyncio
import contextlib
import hashlib
import math
import socket
import statistics
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

import structlog

from bench.config import JudgeConfig
from bench.errors import EnvironmentFault, ShardError
from bench.judge.caller import Caller
from bench.judge.metrics import Metrics
from bench.judge.refusal import Refused
from bench.judge.scheduler import Graded, Scheduler
from bench.judge.schemas import ADHOC, CalibrationBrief, Health, Kind, Outcome, SubmissionMode
from bench.judge.submission import (
    FAULT,
    FAULT_ADVICE,
    Server,
    Submission,
    fault_report,
    now,
    order_for,
    origin_of,
)
from bench.measure import calibration
from bench.records import GradeOrder, GradeReport, Lacking, ProfileOrder, ProfileReport
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
    with the grades.
    """

    def __init__(
        self, config: JudgeConfig, secret: bytes | None, shard: Shard, scheduler: Scheduler, metrics: Metrics
    ) -> None:
        self.config, self.secret = config, secret
        self._shard, self._scheduler, self._metrics = shard, scheduler, metrics
        self._ending = asyncio.Event()
        self._root = secret or new_root()
        self._server = Server(socket.gethostname(), package_version(), commit(), checkout_commit(tasks_root()))
        self._pending: dict[str, Pending] = {}
        # The latest grades that ended without an answer, so that a client that polls for one learns why.
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
            self._check_fit()
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
            found = await self._in_shard(self._shard.answer, grade_id)
        if found is None:
            raise Refused(404, "unknown_grade", f"no grade '{grade_id[:80]}' here; use the grade_id of an answer")
        label = found.submission.caller.label if isinstance(found, Pending) else found.label
        if not caller.may_read(label):
            raise Refused(403, "other_episode", "this grade belongs to another episode; read your own")
        if grade_id in self._refused:
            self._refused[grade_id].done.result()
        return found

    async def profile(self, order: ProfileOrder) -> str:
        """One profile, made in its turn like a grade but not recorded; the answer's JSON text.

        Raises:
            Refused: 429, 503; 503 too where the judge lacks the tool.
        """
        self._check_fit()
        found = (await self._scheduler.profile(order)).report
        if isinstance(found, Lacking):
            raise Refused(503, "not_provisioned", f"{found.why}; go on without this profile")
        if found is None:
            found = ProfileReport(tool=order.tool, outcome=Outcome.JUDGE_FAULT, property=FAULT, log=FAULT_ADVICE)
        self._metrics.profiled(order.tool, found.outcome)
        log.info("profiled", kernel=order.kernel, tool=order.tool, outcome=found.outcome)
        return found.answer(order.kernel, self.config.rank).model_dump_json()

    @property
    def device_name(self) -> str:
        """Which GPU grades; empty where none does, or none was opened yet."""
        return self._scheduler.ready.device_name if self._scheduler.ready else ""

    def health(self) -> Health:
        """The state as `/health` shows it."""
        scheduler, ready = self._scheduler, self._scheduler.ready
        return Health(
            status=scheduler.status,
            rank=self.config.rank,
            run_id=self.config.run_id,
            routes=ROUTES,
            device=ready.device if ready else self.config.device,
            sandbox=ready.sandbox if ready else None,
            queue_depth=scheduler.depth,
            inflight_submits=sum(not pending.submission.is_preview for pending in self._pending.values()),
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
        scheduler = self._scheduler
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

    def raced(self, kernel: str) -> list[str]:
        """Names of the denominators that this process has timed."""
        return [name for of_kernel, name in self._denominators if of_kernel == kernel]

    async def drain(self, limit_s: float) -> None:
        """Take nothing new, and wait until what is in flight is recorded, at most `limit_s` seconds."""
        self._ending.set()
        if pending := [grade.done for grade in self._pending.values()]:
            log.info("draining", grades=len(pending))
            await asyncio.wait(pending, timeout=limit_s)

    def _in_flight(self, submission: Submission) -> Pending | None:
        if submission.headers.key is None:
            return None
        for pending in self._pending.values():
            other = pending.submission
            if _known_by(other) == _known_by(submission):
                _check_same_body(other.body_sha256, submission)
                return pending
        return None

    async def _stored(self, submission: Submission) -> StoredAnswer | None:
        """The recorded answer to this key; a fault of the judge is none, so that its retry is graded."""
        key, label = submission.headers.key, submission.caller.label
        if key is None:
            return None
        found = await self._asked(submission, lambda shard: shard.find_key(label, submission.kind, key))
        if found is None or found.outcome is Outcome.JUDGE_FAULT:
            return None
        _check_same_body(found.body_sha256, submission)
        return found

    async def _check_mode(self, submission: Submission) -> None:
        """Raises Refused (409) when an episode that may submit once has done so."""
        label, mode = submission.caller.label, submission.caller.setup.submission_mode
        if label is None or submission.is_preview or mode is SubmissionMode.MULTI:
            return
        for pending in self._pending.values():
            if not pending.submission.is_preview and pending.submission.caller.label == label:
                message = f"a submission of this episode is being graded; wait for it at GET /grades/{pending.grade_id}"
                raise Refused(409, "submit_in_flight", message)
        accepted = await self._asked(submission, lambda shard: shard.accepted_submit(label))
        if accepted is not None:
            message = f"this episode has submitted, and in {mode} mode it may do so once"
            raise Refused(409, "already_submitted", f"{message}; its answer is at GET /grades/{accepted}")

    async def _asked(self, submission: Submission, ask: Callable[[ShardReader], R | None]) -> R | None:
        """What this rank's shard says, or else that of the lost rank which the episode comes from."""
        found = await self._in_shard(ask, self._shard)
        home = submission.headers.home_rank
        if found is not None or home in (None, self.config.rank) or submission.is_preview:
            return found
        try:
            return await asyncio.to_thread(_ask_lost, self.config.peer_shards.get(home or 0), ask)
        except ShardError as error:
            message = f"this judge cannot tell whether the episode has submitted at rank {home}: {error}"
            raise Refused(503, "home_shard_unreadable", f"{message}; tell the operator") from error

    async def _check_promotion(self, submission: Submission) -> None:
        promoted = submission.headers.of_grade or ""
        score = await self._asked(submission, lambda shard: shard.answer(promoted))
        if score is None or score.label != submission.caller.label or score.kind is not Kind.SCORE:
            message = f"'{promoted[:80]}' is no /score of this episode; promote one of its own"
            raise Refused(400, "bad_promotion", message)
        if score.outcome is not Outcome.SOLVED:
            raise Refused(400, "bad_promotion", f"score {promoted} is {score.outcome}; promote a solved one")
        stored = await self._asked(submission, lambda shard: shard.grade_source(promoted))
        sent = hashlib.sha256((submission.source or "").encode()).hexdigest()
        if stored is None or stored.sha256 != sent:
            raise Refused(400, "bad_promotion", f"the source is not the one of score {promoted}; send that one")

    def _check_fit(self) -> None:
        """Raises Refused (429, 503) when nothing more can be taken now."""
        if self._ending.is_set():
            raise Refused(503, "stopping", "this judge is stopping; send the request again later, with its key")
        self._scheduler.check()

    def _begin(self, submission: Submission) -> Pending:
        grade_id = str(uuid.uuid4())
        done = asyncio.create_task(self._make(grade_id, submission))
        pending = self._pending[grade_id] = Pending(grade_id, submission, done)
        done.add_done_callback(lambda _: self._finish(pending))
        return pending

    def _finish(self, pending: Pending) -> None:
        """Forget a grade that is recorded; keep for a while why another one ended without an answer."""
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
        requested_at = now()
        graded = await self._scheduler.grade(order)
        report = graded.report or self._fault(order, graded)
        answer = report.answer(order.kernel, self.config.rank, order.disclose).model_dump_json()
        origin = origin_of(submission, answer, requested_at, graded, self._server)
        reveal = seed if self.secret is None else None
        await self._in_shard(lambda: self._shard.record(origin, report, reveal=reveal))
        told_ms = self._told_ms(submission, report, graded.grade_ms)
        await self._hold_back((told_ms - graded.grade_ms) / 1e3)
        self._note(submission, report, graded.queue_ms, told_ms)
        return answer

    def _told_ms(self, submission: Submission, report: GradeReport, took_ms: float) -> float:
        """How long a grade took, as far as anybody may know: the exact time of a failed `/submit` would tell of the
        hidden inputs. An open judge has no secrets to keep.
        """
        step_ms = 0.0 if self.secret is None else self.config.failed_submit_step_s * 1e3
        if submission.is_preview or not report.met_hidden_inputs() or not step_ms:
            return took_ms
        return math.ceil(took_ms / step_ms) * step_ms

    async def _hold_back(self, for_s: float) -> None:
        """Let a failed `/submit` take a round number of seconds; a judge that stops makes nobody wait."""
        if for_s > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), for_s)

    def _fault(self, order: GradeOrder, graded: Graded) -> GradeReport:
        ready = self._scheduler.ready
        sandbox, device = (ready.sandbox, ready.device) if ready else ("none", self.config.device)
        return fault_report(order, graded.fault or "", sandbox, device)

    def _note(self, submission: Submission, report: GradeReport, queue_ms: float, told_ms: float) -> None:
        kind, kernel = submission.kind, submission.kernel
        self._metrics.graded(kind, report.outcome, queue_ms, told_ms)
        if report.denominator and report.cells and (submission.is_preview or report.outcome is Outcome.SOLVED):
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
            raise Refused(503, "unfit", f"this judge cannot keep grades: {error}; tell the operator") from error


def _known_by(submission: Submission) -> tuple[str | None, str | None, bool]:
    """What a request with an idempotency key is known by: the key is its episode's and its route's."""
    return submission.headers.key, submission.caller.label, submission.is_preview


def _ask_lost(path: Path | None, ask: Callable[[ShardReader], R | None]) -> R | None:
    if path is None:
        raise ShardError("this judge does not know that rank's shard")
    with read_only(path) as shard:
        return ask(shard)


def _check_same_body(sha256: str | None, submission: Submission) -> None:
    if sha256 != submission.body_sha256:
        message = "this Idempotency-Key was used with another body; use a new key for a new request"
        raise Refused(400, "key_reused", message)
