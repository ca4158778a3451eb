"""Kills and stops what grades, at random and under load, then accounts for every grade (`python -m tests.torture`).

Clients send submissions whose honest outcome is known to real ranks, while a tormentor ends a router, a judge, a
measuring process, a runner, a compiler or a sandbox, or stops it for a while. What no rank may do whatever dies:

    lose      an acknowledged answer is not in the merged database, or is there with another outcome or text
    double    one request has two answers that count
    charge    a submission has another outcome than its own; `judge_fault` is none, and is asked again
    break     a row is there in part, or a file is damaged
"""

import argparse
import contextlib
import dataclasses
import hashlib
import json
import math
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import httpx

sys.path.append(str(Path(__file__).parent))  # what tests share lies here, where its modules look for each other

from judge_rank import PATIENCE_S, SECRET, Rank, write_config
from kernels import HONEST_C, LOOP, axpy_c
from stamina.instrumentation import set_on_retry_hooks

from bench import process
from bench.cache import default_cache
from bench.judge.client import Envelope, JudgeClient, JudgeRefused
from bench.judge.schemas import Answer, Outcome, token_for
from bench.measure.protocols import find_protocol
from bench.results.checks import Expectation
from bench.results.merge import merge

RANKS = 2
PROGRAM = Path(__file__).with_name("torture_rank.py")
# How long one request is asked again and again before it counts as unanswered.
ANSWERED_WITHIN_S = 600.0
# After a kill somebody is answered before the next, or so long has passed: grades that never end show nothing. Then
# comes another pause of about so long.
RELIEF_S, PAUSE_S = 2.0, 0.1
STOP_S = (0.2, 3.0)
STOP_SHARE = 0.15
# How long a victim is waited for; a compiler is there for a tenth of a second.
SOUGHT_S = 0.5
PROGRESS_EVERY = 20
# Submits of an episode that may send one, and requests whose client first leaves after a moment.
SINGLE_SHARE, LEAVING_SHARE = 0.2, 0.1


class Victim(StrEnum):
    """What is struck."""

    ROUTER = "router"
    JUDGE = "judge"
    MEASURING = "measuring process"
    RUNNER = "runner"
    COMPILER = "compiler"
    SANDBOX = "sandbox"


# What costs a rank seconds is struck more rarely than what costs it one grade.
WEIGHTS = {
    Victim.ROUTER: 4,
    Victim.JUDGE: 5,
    Victim.MEASURING: 7,
    Victim.RUNNER: 36,
    Victim.COMPILER: 24,
    Victim.SANDBOX: 24,
}
# How long after it was first seen a victim is struck, at most: a runner waits first until its library is compiled.
MOMENTS_S = {Victim.RUNNER: 0.3, Victim.SANDBOX: 0.3}
# How often a rank is struck whether it grades or only starts.
STARTING_SHARE = 0.05
COMPILERS = {"gcc", "g++", "cc1", "cc1plus", "as", "collect2", "ld", "ld.bfd", "objdump"}
# Submission modes of the setups: some episodes submit as often as they like, some once.
MODES = {"many": "multi", "solo": "single"}
SLOW = "for (volatile long spin = 0; spin < 3000000; spin++);"
CHAIN = (
    "#define A x = x * 3 + (x >> 7);\n#define B A A A A A A A A\n#define C B B B B B B B B\n"
    "static uint64_t chained(uint64_t x) { C C C C C C return x; }"
)
# Honest outcome, and the source; what is right comes more often than the rest.
SUBMISSIONS = (
    (Outcome.SOLVED, HONEST_C),
    (Outcome.SOLVED, axpy_c(f"{SLOW} {LOOP}")),
    (Outcome.SOLVED, axpy_c(f"if (n < 0) out[0] = chained(n); {LOOP}", CHAIN)),
    (Outcome.WRONG, axpy_c("for (int64_t i = 0; i < n; i++) out[i] = a * x[i] - y[i];")),
    (Outcome.BUILD_FAILED, axpy_c("for (int64_t i = 0; i < n; i++) out[i] = a * x[i] + y[i]")),
    (Outcome.CRASHED, axpy_c("if (n) __builtin_trap();")),
)


# What is asked, and what was answered


@dataclass(frozen=True)
class Wish:
    """One request: what is asked under which key, and how its submission must end."""

    rank: int
    label: str
    route: str
    source: str
    honest: Outcome
    key: str

    @property
    def body(self) -> dict[str, Any]:
        return {"kernel": "axpy", "source": self.source, "rank": self.rank}


@dataclass(frozen=True)
class Strike:
    """One signal that the tormentor sent."""

    at: str
    rank: int
    victim: Victim
    number: signal.Signals

    def __str__(self) -> str:
        return f"{self.at} {self.number.name} to the {self.victim} of rank {self.rank}"


class Ledger:
    """Everything that was asked, answered and done; threads share it."""

    def __init__(self) -> None:
        self.wishes: list[Wish] = []
        self.answers: list[tuple[Wish, Answer]] = []
        self.refused: list[tuple[Wish, JudgeRefused]] = []
        self.unanswered: list[Wish] = []
        self.strikes: list[Strike] = []
        self.codes: Counter[str] = Counter()
        self.retries = self.final = 0

    def again(self) -> None:
        self.retries += 1

    def charges(self) -> list[tuple[Wish, Answer]]:
        return [(wish, got) for wish, got in self.answers if got.outcome not in (wish.honest, Outcome.JUDGE_FAULT)]

    def faults(self) -> int:
        return sum(got.outcome is Outcome.JUDGE_FAULT for _, got in self.answers)

    def killed(self) -> Counter[Victim]:
        return Counter(strike.victim for strike in self.strikes if strike.number is signal.SIGKILL)

    def stopped(self) -> Counter[Victim]:
        return Counter(strike.victim for strike in self.strikes if strike.number is signal.SIGSTOP)


def wish(rng: random.Random, rank: int, label: str, route: str | None = None) -> Wish:
    """A request of its own source, so that nothing is taken for another's."""
    key = uuid.UUID(int=rng.getrandbits(128)).hex
    honest, source = rng.choice(SUBMISSIONS)
    route = route or rng.choice(("score", "submit", "submit"))
    return Wish(rank, label, route, f"// {key}\n{source}", honest, key)


def ask(client: JudgeClient, wanted: Wish, ledger: Ledger, within_s: float = ANSWERED_WITHIN_S) -> Answer | None:
    """Ask under one key until the answer counts; every answer on the way is noted."""
    deadline = time.monotonic() + within_s
    envelope = Envelope(key=wanted.key)
    send = client.score if wanted.route == "score" else client.submit
    while time.monotonic() < deadline:
        try:
            answer = send(wanted.body, envelope)
        except JudgeRefused as refused:
            if not (refused.passing or refused.code in ("rank_lost", "no_answer_yet")):
                ledger.refused.append((wanted, refused))
                return None
            ledger.codes[refused.code] += 1
            time.sleep(0.1)
        else:
            ledger.answers.append((wanted, answer))
            if answer.outcome is not Outcome.JUDGE_FAULT:
                ledger.final += 1
                return answer
        ledger.again()
    ledger.unanswered.append(wanted)
    return None


# Ranks


class Tortured:
    """A rank of the job, started again over the same shard whenever its router is gone: the job's own part."""

    def __init__(
        self, folder: Path, number: int = 0, ranks: int = 1, clock: Path | None = None, scratch: Path | None = None
    ) -> None:
        self.number = number
        # What a killed judge leaves there goes with the test's own folder.
        scratch = scratch or folder / "scratch"
        scratch.mkdir(parents=True)
        self._env = os.environ | {"KCOURT_TMPDIR": str(scratch)}
        if clock:
            self._env["KCOURT_TORTURE_CLOCK"] = str(clock)
        self._path = write_config(
            folder,
            closed=True,
            rank=number,
            ranks=ranks,
            cache_dir=str(default_cache()),
            allow_sandbox="limits",
            warm_up=False,
            setups={name: {"setup": name, "preset": "S", "submission_mode": mode} for name, mode in MODES.items()},
        )
        config = json.loads(self._path.read_text())
        self._output = (folder / "router.out").open("ab")
        http = httpx.Client(base_url=f"http://127.0.0.1:{config['router_port']}", timeout=PATIENCE_S, trust_env=False)
        self.starts = 0
        self.rank = Rank(folder, config, self._started(), http)

    def _started(self) -> "subprocess.Popen[bytes]":
        self.starts += 1
        argv = [sys.executable, str(PROGRAM), str(self._path)]
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output, env=self._env)

    def revive(self) -> bool:
        """Start the rank again if it has ended."""
        if self.rank.process.poll() is None:
            return False
        self.rank = dataclasses.replace(self.rank, process=self._started())
        return True

    def client(self, label: str, **options: Any) -> JudgeClient:
        return JudgeClient(str(self.rank.http.base_url), token_for(SECRET, label), **options)

    def grades(self) -> bool:
        """Whether it says that it is well; a router that is stopped says nothing."""
        with contextlib.suppress(httpx.TransportError):
            answer = self.rank.http.get("/health", timeout=0.3)
            return answer.status_code == 200 and answer.json()["status"] == "ok"
        return False

    def victims(self) -> dict[Victim, list[int]]:
        """What of this rank lives now."""
        router = self.rank.process.pid
        found: dict[Victim, list[int]] = {victim: [] for victim in Victim}
        found[Victim.ROUTER].append(router)
        for pid in below(router):
            if kind := kind_of(pid):
                found[kind].append(pid)
        return found

    def end(self) -> int:
        """SIGTERM, as a job ends its services; the exit code."""
        try:
            return self.rank.stop()
        finally:
            self.close()

    def close(self) -> None:
        self.rank.process.kill()
        self.rank.process.wait()
        self.rank.http.close()
        self._output.close()


def below(pid: int) -> Iterator[int]:
    """Descendants of a process; they may end while they are looked for."""
    with contextlib.suppress(OSError):
        for child in process.children(pid):
            yield child
            yield from below(child)


def words_of(pid: int) -> list[str]:
    """The arguments of a process; one empty word when it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    return [""]


def kind_of(pid: int) -> Victim | None:
    """What a process below a router is, if it is one that can be struck."""
    words = words_of(pid)
    program = Path(words[0]).name
    if program in COMPILERS:
        return Victim.COMPILER
    if program == "bwrap":
        return Victim.SANDBOX
    if Path(words[0]).parent.name == "native":  # a sandbox of ours takes options, a runner numbers
        return Victim.SANDBOX if words[1][:1] == "-" else Victim.RUNNER
    if any(word.endswith("/host.py") for word in words[:4]):
        return Victim.RUNNER
    if "bench.worker" in words[:3]:
        return Victim.MEASURING
    is_judge = "bench.judge.app" in words[:3] or words[-2:-1] == ["judge"]
    return Victim.JUDGE if is_judge else None


@contextlib.contextmanager
def job(folder: Path, ranks: int = RANKS, clock: Path | None = None) -> Iterator[list[Tortured]]:
    """The ranks of a job, healthy; they have ended when the block has."""
    with contextlib.ExitStack() as stack:
        stack.callback(clear, folder)
        started = []
        for number in range(ranks):
            started.append(Tortured(folder / f"rank-{number}", number, ranks, clock))
            stack.callback(started[-1].close)
        for one in started:
            one.rank.wait_until_healthy()
        yield started


# Load


class Load:
    """Clients that ask one request after the other until the block ends, and then wait for their last answers."""

    def __init__(self, ranks: Sequence[Tortured], ledger: Ledger, clients: int, seed: int) -> None:
        self._ranks, self._ledger = ranks, ledger
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._client, args=(number, random.Random(f"{seed}.{number}")), daemon=True)
            for number in range(clients)
        ]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(ANSWERED_WITHIN_S)

    def _client(self, number: int, rng: random.Random) -> None:
        home = self._ranks[number % len(self._ranks)]
        problem = number % 16
        sent = 0
        with home.client(f"many.n0.p{problem}.w{number}", attempts=3) as usual:
            while not self._over.is_set():
                sent += 1
                if rng.random() < SINGLE_SHARE:
                    label = f"solo.n{number}.p{problem}.w{sent}"
                    with home.client(label, attempts=3) as client:
                        self._request(client, wish(rng, home.number, label, "submit"))
                    continue
                wanted = wish(rng, home.number, f"many.n0.p{problem}.w{number}")
                if rng.random() < LEAVING_SHARE:
                    with home.client(wanted.label, attempts=1, timeout_s=rng.uniform(0.02, 0.5)) as hasty:
                        leave(hasty, wanted)
                self._request(usual, wanted)

    def _request(self, client: JudgeClient, wanted: Wish) -> None:
        self._ledger.wishes.append(wanted)
        ask(client, wanted, self._ledger)


def leave(hasty: JudgeClient, wanted: Wish) -> None:
    """Send a request, and be gone before its answer comes; one that comes all the same is thrown away."""
    with contextlib.suppress(JudgeRefused):
        (hasty.score if wanted.route == "score" else hasty.submit)(wanted.body, Envelope(key=wanted.key))


# Torment


class Tormentor:
    """Sends SIGKILL to what it finds, and now and then SIGSTOP with a SIGCONT later."""

    def __init__(self, ranks: Sequence[Tortured], ledger: Ledger, seed: int) -> None:
        self._ranks, self._ledger = ranks, ledger
        self._rng = random.Random(seed)
        self._later: list[threading.Timer] = []

    def torment(self, kills: int, told: Callable[[int], None] = lambda _: None, within_s: float = math.inf) -> None:
        """Kill so often, or for so long; `told` hears of every kill."""
        done, deadline = 0, time.monotonic() + within_s
        while done < kills and time.monotonic() < deadline:
            for one in self._ranks:
                one.revive()
            if self._strike():
                done += 1
                told(done)
                self._relief()
            time.sleep(self._rng.expovariate(1 / PAUSE_S))
        for timer in self._later:
            timer.join()
        for one in self._ranks:
            one.revive()

    def _relief(self) -> None:
        final, deadline = self._ledger.final, time.monotonic() + RELIEF_S
        while self._ledger.final == final and time.monotonic() < deadline:
            time.sleep(0.01)

    def _strike(self) -> bool:
        """Strike something; whether it was a kill."""
        number = signal.SIGSTOP if self._rng.random() < STOP_SHARE else signal.SIGKILL
        (victim,) = self._rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
        if not (found := self._sought(victim, self._rng.random() < STARTING_SHARE)):
            return False
        one, opened = found
        try:
            signal.pidfd_send_signal(opened, number)
        except ProcessLookupError:
            os.close(opened)
            return False
        self._ledger.strikes.append(Strike(stamp(), one.number, victim, number))
        if number is signal.SIGSTOP:
            self._later.append(threading.Timer(self._rng.uniform(*STOP_S), continue_and_close, (opened,)))
            self._later[-1].start()
            return False
        os.close(opened)
        if victim is Victim.ROUTER:
            one.rank.process.wait()
            one.revive()
        return True

    def _sought(self, victim: Victim, starting: bool) -> tuple[Tortured, int] | None:
        """A rank and a descriptor of such a process of it, a random moment after it was seen; None when none comes.

        The rank grades, or is `starting` perhaps: struck then each time, it would never grade again.
        """
        deadline = time.monotonic() + SOUGHT_S
        while time.monotonic() < deadline:
            ranks = [one for one in self._ranks if starting or one.grades()]
            if there := [(one, pid) for one in ranks for pid in one.victims()[victim]]:
                one, pid = self._rng.choice(there)
                with contextlib.suppress(ProcessLookupError):
                    opened = os.pidfd_open(pid)
                    time.sleep(self._rng.uniform(0, MOMENTS_S.get(victim, 0.05)))
                    return one, opened
            time.sleep(0.01)
        return None


def continue_and_close(found: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(found, signal.SIGCONT)
    os.close(found)


def stamp() -> str:
    """UTC as the rows have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


# Account


@dataclass(frozen=True)
class Account:
    """What the merged database says of what was asked; each list holds sentences."""

    merged: int
    faults: int
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    charged: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def wrongs(self) -> list[str]:
        return [*self.lost, *self.doubled, *self.charged, *self.broken]


ROWS = """
    SELECT grade_id, label, kind, outcome, answer, idempotency_key, protocol, rank, property, provenance, requested_at,
           finished_at, content,
           (SELECT count(*) FROM grade_cells WHERE grade_cells.grade_id = grades.grade_id) AS cells
    FROM grades LEFT JOIN grade_sources USING (grade_id) LEFT JOIN sources USING (sha256)
    WHERE role IS NULL OR role = 'submission'
"""


def account(shards: Sequence[Path], target: Path, ledger: Ledger) -> Account:
    """Merge the shards, as a job does, and hold the rows against the ledger."""
    merge(target, shards, root=SECRET, expect=Expectation("job-1", tuple(range(len(shards)))))
    with contextlib.closing(sqlite3.connect(target)) as database:
        database.row_factory = sqlite3.Row
        rows = [dict(row) for row in database.execute(ROWS)]
    faults = sum(row["outcome"] == Outcome.JUDGE_FAULT for row in rows)
    found = Account(len(rows), faults)
    for path in (*shards, target):
        with contextlib.closing(sqlite3.connect(path)) as database:
            (whole,) = database.execute("PRAGMA integrity_check").fetchone()
            dangling = database.execute("PRAGMA foreign_key_check").fetchall()
        if whole != "ok" or (dangling and path == target):
            found.broken.append(f"{path.name}: {whole}, {len(dangling)} references lead nowhere")
    _account_answers(found, rows, ledger)
    _account_rows(found, rows, ledger)
    return found


def _account_answers(found: Account, rows: list[dict[str, Any]], ledger: Ledger) -> None:
    """Every answer that a client got has its row."""
    by_id = {row["grade_id"]: row for row in rows}
    if len(by_id) != len(rows):
        found.doubled.append(f"{len(rows) - len(by_id)} grade ids have two rows")
    for wanted, got in ledger.answers:
        row = by_id.get(got.grade_id)
        if row is None:
            found.lost.append(f"{got.grade_id} of {wanted.label} was answered {got.outcome} and is not there")
        elif row["outcome"] != got.outcome or Answer.model_validate_json(row["answer"]) != got:
            found.lost.append(f"{got.grade_id} of {wanted.label} was answered {got} and is there as {row['answer']}")


def _account_rows(found: Account, rows: list[dict[str, Any]], ledger: Ledger) -> None:
    """Every row is whole, is what somebody asked for, and blames nobody for what was done to him."""
    wishes = {wanted.key: wanted for wanted in ledger.wishes}
    final = [row for row in rows if row["outcome"] != Outcome.JUDGE_FAULT]
    for key, count in Counter(row["idempotency_key"] for row in final).items():
        if count > 1:
            found.doubled.append(f"{count} answers count for the key {key}")
    accepted = Counter(row["label"] for row in final if row["kind"] != "score" and row["label"].startswith("solo."))
    found.doubled.extend(f"{label} has {count} accepted submits" for label, count in accepted.items() if count > 1)
    for row in rows:
        wanted = wishes.get(row["idempotency_key"])
        if wanted is None or (wanted.label, wanted.route) != (row["label"], row["kind"]):
            found.broken.append(f"{row['grade_id']}: nobody asked for it")
            continue
        if why := half_written(row, wanted):
            found.broken.append(f"{row['grade_id']} of {row['label']}: {why}")
        if row["outcome"] not in (wanted.honest, Outcome.JUDGE_FAULT):
            found.charged.append(charge(row, wanted, ledger.strikes))


def half_written(row: dict[str, Any], wanted: Wish) -> str:
    """What of a row is not there, or contradicts the rest."""
    if row["content"] != wanted.source.encode():
        return f"its source is {hashlib.sha256(row['content'] or b'').hexdigest()[:12]}, not the one that was sent"
    answer = Answer.model_validate_json(row["answer"])
    if (answer.grade_id, answer.outcome) != (row["grade_id"], row["outcome"]):
        return f"its answer is of {answer.grade_id}, {answer.outcome}"
    inputs = find_protocol(row["protocol"]).inputs
    if row["outcome"] == Outcome.SOLVED and row["cells"] != inputs:
        return f"it is solved and has {row['cells']} timed inputs, not {inputs}"
    return ""


def charge(row: dict[str, Any], wanted: Wish, strikes: Sequence[Strike]) -> str:
    """A wrong outcome with its reason, and what was done to that rank meanwhile."""
    finding = json.loads(row["provenance"]).get("finding", {})
    during = [s for s in strikes if s.rank == row["rank"] and row["requested_at"] <= s.at <= row["finished_at"]]
    what = f"{wanted.honest} came out as {row['outcome']} ({row['property']}: {finding.get('message', finding)})"
    last = "; ".join(map(str, during[-3:])) or "nothing was done to its rank meanwhile"
    return f"{row['grade_id']}: {what}, finished {row['finished_at']}: {last}"


# Program


@dataclass(frozen=True)
class Ordeal:
    """How one torture went."""

    ledger: Ledger
    account: Account
    seconds: float
    starts: int
    left: int

    @property
    def wrongs(self) -> list[str]:
        """Every sentence that should not be there."""
        refused = [f"{wanted.key} of {wanted.label} was refused: {why.message}" for wanted, why in self.ledger.refused]
        silent = [f"{wanted.key} of {wanted.label} was never answered" for wanted in self.ledger.unanswered]
        return [*self.account.wrongs, *refused, *silent]

    def table(self) -> str:
        ledger, found = self.ledger, self.account
        struck = [
            (f"{what} of the {victim}", count)
            for what, counts in (("kills", ledger.killed()), ("stops", ledger.stopped()))
            for victim, count in sorted(counts.items())
        ]
        lines: list[tuple[str, object]] = [
            ("requests", len(ledger.wishes)),
            ("acknowledged", len(ledger.answers)),
            ("merged", found.merged),
            ("faults of the judge", found.faults),
            ("kills", ledger.killed().total()),
            *struck,
            ("ranks started", self.starts),
            ("processes left behind", self.left),
            ("retries", ledger.retries),
            ("lost", len(found.lost)),
            ("doubled", len(found.doubled)),
            ("charged", len(found.charged)),
            ("half written", len(found.broken)),
            ("refused", len(ledger.refused)),
            ("unanswered", len(ledger.unanswered)),
            ("seconds", f"{self.seconds:.0f}"),
        ]
        return "\n".join(f"{name:<32}{value}" for name, value in lines)


def torture(
    folder: Path,
    kills: int,
    seed: int,
    clients: int,
    told: Callable[[int, Ledger], None] = lambda done, ledger: None,
    within_s: float = math.inf,
    count: int = RANKS,
) -> Ordeal:
    """Torment `count` ranks under load until `kills` were killed or time is up, end them as a job does, and account."""
    begun, ledger = time.monotonic(), Ledger()
    set_on_retry_hooks([lambda details: ledger.again()])
    with job(folder, count) as ranks:
        with Load(ranks, ledger, clients, seed):
            Tormentor(ranks, ledger, seed).torment(kills, lambda done: told(done, ledger), within_s)
        codes = [one.end() for one in ranks]
        shards = [one.rank.shard for one in ranks]
        left = clear(folder)
    found = account(shards, folder / "results.db", ledger)
    if any(codes):
        found.broken.append(f"the ranks left with {codes}")
    return Ordeal(ledger, found, time.monotonic() - begun, sum(one.starts for one in ranks), left)


def clear(folder: Path) -> int:
    """Kill what the killed left behind, known by that folder among its arguments; how many processes it was."""
    left = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if str(folder) in " ".join(words_of(pid))]
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(left)


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill and stop what grades, under load, and account for every grade.")
    parser.add_argument("--kills", type=int, default=1000, help="how many processes to kill (1000)")
    parser.add_argument("--seed", type=int, default=1, help="seed of what is killed and what is sent (1)")
    parser.add_argument("--clients", type=int, default=6, help="clients that ask at once (6)")
    parser.add_argument("--ranks", type=int, default=RANKS, help=f"ranks that grade at once ({RANKS})")
    parser.add_argument("--within", type=float, default=math.inf, metavar="S", help="seconds to kill for, at most")
    parser.add_argument("--keep", type=Path, help="a folder that does not exist yet, for what is left to look at")
    arguments = parser.parse_args()
    import torture_scenes  # which needs this module

    begun = time.monotonic()

    def told(done: int, ledger: Ledger) -> None:
        if done % PROGRESS_EVERY == 0:
            state = f"{len(ledger.answers)} answers, {len(ledger.charges())} charges, {ledger.retries} retries"
            print(f"{done:>5} kills, {state}, {time.monotonic() - begun:.0f} s", flush=True)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started ends with us
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or Path(scratch)
        how = (arguments.kills, arguments.seed, arguments.clients, told, arguments.within, arguments.ranks)
        ordeal = torture(folder / "kills", *how)
        played = torture_scenes.play_all(folder / "scenes", partial(print, flush=True))
    for wrong in (*ordeal.wrongs, *played):
        print(f"WRONG {wrong}")
    print(ordeal.table())
    return 1 if ordeal.wrongs or played else 0


if __name__ == "__main__":
    sys.exit(main())
