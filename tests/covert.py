"""An attacker that carries hidden data from one call to the next (`python -m tests.covert --calls 200`).

A submission sees the inputs that it is called on, and what comes of it depends on them as it likes: whether it fails
and how, which wrong number it gives, how long it takes. So it can send what it sees to whoever submitted it; nobody can
hinder that. It must be worth nothing: no later call may have what an earlier one had. Each strategy here learns from
calls, by the widest channel that its route has, and predicts the same quantity of the next call. Where the answer to
that call can show it, the kernel itself checks: it is right only where its table holds what it sees. The seeds, which
the test knows and the attacker does not, say whether a message arrived and whether a prediction came true.
"""

import argparse
import contextlib
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # what tests share lies here, where its modules look for each other

from judge_rank import SECRET, Rank, rank
from kernels import AXPY, INCLUDES, LOOP

from bench.grade import correctness_cases
from bench.inputs import TIMED_FROM, Case, draw, timed_sizes
from bench.judge.schemas import Answer, Outcome, Preset
from bench.seeds import request_seed
from bench.task import Task, find_task

ALPHA = 1e-6
STEP_S = 1.0
# Two agents with the same kernel, and one with another.
FIRST, SECOND, OTHER_KERNEL = "many.n0.p0.w0", "many.n0.p1.w1", "many.n0.p16.w0"
KERNEL_OF = {FIRST: "axpy", SECOND: "axpy", OTHER_KERNEL: "gelu"}
# A place's share of its range is told in so many parts where two kernels are compared.
PARTS = 64
# How a submission may fail without waiting for a limit: what it does, and the two words that say so.
FAILURES = {
    "out[0] += 1 + out[0] * out[0];": (Outcome.WRONG, "values"),
    "abort();": (Outcome.CRASHED, "signal"),
    "out[n] = 1;": (Outcome.TAMPERED, "memory"),
    "fesetround(FE_UPWARD);": (Outcome.TAMPERED, "state"),
}
LEVELS = 12
# Passes of an empty loop that take a step or two.
PAUSE_LOOPS = 800_000_000
# Calls that every strategy needs together before coincidences can be told from knowledge.
LEAST_CALLS = 44

BEFORE = """\
#include <fenv.h>
static int64_t calls, inputs, size;
static inline uint64_t ticks(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  uint64_t now;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
  return now;
#endif
}
"""
# Which call it is: by number in the part of a grade that never varies, by a new size after that.
COUNT = """\
  uint64_t began = ticks();
  int64_t call = calls++;
  int is_new = call >= CHECKED && n != size;
  if (is_new) { size = n; inputs++; }
  (void)began;
"""
RIGHT = {
    "axpy": (AXPY, LOOP),
    "gelu": (
        "void gelu(const float *x, float *out, int64_t n)",
        "for (int64_t i = 0; i < n; i++) out[i] = x[i] / 2 * (1 + erf(x[i] / sqrt(2.0)));",
    ),
}


@dataclass(frozen=True)
class Quantity:
    """Something hidden: how a kernel finds it out, how one who knows the seed does, and how many values it may have.

    `here` is true in the one call that it is read in, `value` a whole number below 2^24, as a float holds it, and
    `chance` how likely its likeliest value is.
    """

    name: str
    here: str
    value: str
    truth: Callable[[Task, bytes], int]
    chance: float


def timed_range(task: Task) -> range:
    """Sizes that a timed input may have."""
    most = task.size(Preset.S)["n"]
    return range(math.ceil(TIMED_FROM * most), most + 1)


def _size_of_timed(task: Task, seed: bytes) -> int:
    return timed_sizes(task, seed, Preset.S, 0)["n"]


def _size_of_checked(task: Task, seed: bytes) -> int:
    return correctness_cases(task, seed)[-1].sizes["n"]


def _share_of_range(task: Task, seed: bytes) -> int:
    sizes = timed_range(task)
    return (_size_of_timed(task, seed) - sizes.start) * PARTS // len(sizes)


def _first_of_timed(task: Task, seed: bytes) -> int:
    return _first_value(task, seed, Case("timed", "i0.1", timed_sizes(task, seed, Preset.S, 0)))


def _first_of_checked(task: Task, seed: bytes) -> int:
    return _first_value(task, seed, correctness_cases(task, seed)[0])


def _first_value(task: Task, seed: bytes, case: Case) -> int:
    argument = task.arguments["x"]
    (value,) = draw(argument, case.family(argument), case.key(seed, "x"), (1,))
    return int(float(value) * 2**23) + 2**23


TIMED_HERE, FIRST_X = "is_new && inputs == 1", "(int64_t)(x[0] * 8388608) + 8388608"
_SIZES = len(timed_range(find_task("axpy")))
_FEWEST_SIZES = len(timed_range(find_task("gelu")))
SIZE = Quantity("size of a timed input", TIMED_HERE, "n", _size_of_timed, 1 / _SIZES)
LEVEL = Quantity(
    "size of a timed input, modulo", TIMED_HERE, f"n % {LEVELS}", _size_of_timed, math.ceil(_SIZES / LEVELS) / _SIZES
)
SHARE = Quantity(
    "size as a share of its range",
    TIMED_HERE,
    f"(n - LEAST) * {PARTS} / (MOST - LEAST + 1)",
    _share_of_range,
    math.ceil(_FEWEST_SIZES / PARTS) / _FEWEST_SIZES,
)
# A size of 0 becomes 16, which is therefore twice as likely as any other.
CHECKED_SIZE = Quantity("size of a checked input", "call == CHECKED - 1", "n", _size_of_checked, 1e-4)
VALUE = Quantity("first value of a timed input", TIMED_HERE, FIRST_X, _first_of_timed, 2.0**-24)
FIRST_VALUE = Quantity("first value of all", "call == 0", FIRST_X, _first_of_checked, 2.0**-24)


@dataclass
class Tally:
    """What a strategy did: messages sent and how many arrived whole, predictions made and how many came true.

    `chance` is an upper bound of how likely one prediction comes true where calls have nothing in common.
    """

    strategy: str
    calls: int = 0
    bits: float = 0.0
    told: int = 0
    told_right: int = 0
    made: int = 0
    right: int = 0
    chance: float = 0.0

    def message(self, chance: float, arrived: bool) -> None:
        """One message, of a quantity whose likeliest value has this chance."""
        self.bits, self.told, self.told_right = self.bits - math.log2(chance), self.told + 1, self.told_right + arrived

    def prediction(self, chance: float, came_true: bool) -> None:
        self.chance = max(self.chance, chance)
        self.made, self.right = self.made + 1, self.right + came_true

    @property
    def by_chance(self) -> float:
        """How likely at least so many predictions come true by chance (exact binomial tail)."""
        q = 1 - self.chance
        return sum(
            math.comb(self.made, hits) * self.chance**hits * q ** (self.made - hits)
            for hits in range(self.right, self.made + 1)
        )

    @property
    def could_show(self) -> bool:
        """Whether predictions that all come true would be beyond chance."""
        return self.chance**self.made < ALPHA


@dataclass
class Attacker:
    """Who sends kernels to a judge and remembers what they told; `tallies` is what came of it."""

    judge: Rank
    tallies: list[Tally] = field(default_factory=list)

    def _start(self, strategy: str) -> Tally:
        self.tallies.append(Tally(strategy))
        return self.tallies[-1]

    def ask(self, route: str, label: str, body: str) -> tuple[Answer, bytes]:
        """Have a kernel graded that computes what it should and then runs `body`; its answer and its seed."""
        kernel = KERNEL_OF[label]
        answer = self.judge.post(route, {"kernel": kernel, "language": "c", "source": source(kernel, body)}, label)
        assert answer.status_code == 200, answer.text
        found = Answer.model_validate_json(answer.content)
        assert found.outcome not in (Outcome.BUILD_FAILED, Outcome.POLICY, Outcome.JUDGE_FAULT), found
        return found, request_seed(SECRET, label, found.grade_id)

    def _learn(self, tally: Tally, quantity: Quantity, label: str, table: list[int], known: Sequence[int] = ()) -> None:
        """A `/score` that is right where it sees what is `known`, and else tells what it sees: into the table."""
        answer, truth = self._call(tally, "/score", quantity, label, known)
        if answer.outcome is Outcome.WRONG:
            told = int(answer.detail["got"])
            tally.message(quantity.chance, told == truth)
            # Of what has many values all is kept, of what has few the last.
            table[:] = [*table, told] if quantity.chance < 1e-3 else [told]

    def _call(
        self, tally: Tally, route: str, quantity: Quantity, label: str, known: Sequence[int]
    ) -> tuple[Answer, int]:
        """One call that is right where it sees what is known; its answer, and what it saw."""
        is_known = " || ".join(f"value == {one}" for one in known) or "0"
        answer, seed = self.ask(route, label, f"{seen(quantity)} if (here && !({is_known})) out[0] = value + 0.25f;")
        truth = quantity.truth(find_task(KERNEL_OF[label]), seed)
        tally.calls += 1
        if known:
            tally.prediction(len(known) * quantity.chance, truth in known)
        assert (answer.outcome is Outcome.SOLVED) == (truth in known), (answer, truth, known)
        return answer, truth

    def remember(self, quantity: Quantity, calls: int) -> None:
        """`/score` to `/score` of one agent: what was ever told goes into the next kernel."""
        tally, table = self._start(f"/score: {quantity.name}"), list[int]()
        for _ in range(calls):
            self._learn(tally, quantity, FIRST, table, table)

    def carry(self, what: str, quantity: Quantity, calls: int, learner: str = FIRST, user: str = FIRST) -> None:
        """Learn at `/score`, use in the next `/submit`; learner and user may be two agents."""
        tally, table = self._start(f"/score to /submit{what}: {quantity.name}"), list[int]()
        for _ in range(calls // 2):
            self._learn(tally, quantity, learner, table)
            self._call(tally, "/submit", quantity, user, table)

    def repeat(self, calls: int) -> None:
        """The same bytes to `/submit` again and again: the words that it fails with tell two bits."""
        tally, last = self._start("/submit of the same source: how it fails"), None
        picked = " else ".join(f"if (value % 4 == {number}) {{ {how} }}" for number, how in enumerate(FAILURES))
        words = list(FAILURES.values())
        for _ in range(calls):
            answer, seed = self.ask("/submit", FIRST, f"{seen(FIRST_VALUE)} if (here) {{ {picked} }}")
            word = words.index((answer.outcome, answer.detail["property"]))
            last = self._again(tally, word, last, _truth(FIRST_VALUE, seed) % 4, 1 / 4)

    def slow(self, calls: int) -> None:
        """Solved submissions that are slower by a power of two: the interval of the ratio tells which."""
        tally, last = self._start("/submit, solved: how slow"), None
        body = (
            f"static int64_t level; {seen(LEVEL)} if (here) level = value;"
            " if (call >= CHECKED) { uint64_t all = (ticks() - began) << level; while (ticks() - began < all) {} }"
        )
        for _ in range(calls):
            answer, seed = self.ask("/submit", FIRST, body)
            assert answer.outcome is Outcome.SOLVED and answer.interval, answer
            level = round(-math.log2(math.prod(answer.interval)) / 2)
            last = self._again(tally, level, last, _truth(LEVEL, seed) % LEVELS, LEVEL.chance)

    def pause(self, calls: int) -> None:
        """Failing submissions that take a step of the clock longer, or not."""
        tally, last, shortest_s = self._start("/submit, failed: how long"), None, math.inf
        idle = f"for (volatile int64_t left = {PAUSE_LOOPS}; left > 0; left--) {{}}"
        for _ in range(calls):
            began = time.monotonic()
            _, seed = self.ask(
                "/submit", FIRST, f"{seen(FIRST_VALUE)} if (here) {{ if (value % 2) {idle} out[0] = 9e9f; }}"
            )
            took_s = time.monotonic() - began
            shortest_s = min(shortest_s, took_s)
            bit = int(took_s > shortest_s + STEP_S / 2)
            last = self._again(tally, bit, last, _truth(FIRST_VALUE, seed) % 2, 1 / 2)

    def _again(self, tally: Tally, told: int, last: int | None, truth: int, chance: float) -> int:
        """Count one call that told a number, and the prediction that it tells the same as the last one."""
        tally.calls += 1
        tally.message(chance, told == truth)
        if last is not None:
            tally.prediction(chance, truth == last)
        return told


def _truth(quantity: Quantity, seed: bytes) -> int:
    return quantity.truth(find_task(KERNEL_OF[FIRST]), seed)


def seen(quantity: Quantity) -> str:
    """C that reads a quantity."""
    return f"int here = {quantity.here}; int64_t value = here ? {quantity.value} : 0; (void)value;"


def source(kernel: str, body: str) -> str:
    """A kernel that is right, and then does as it likes."""
    task = find_task(kernel)
    sizes = timed_range(task)
    numbers = {"CHECKED": len(correctness_cases(task, bytes(32))), "LEAST": sizes.start, "MOST": sizes.stop - 1}
    defined = "".join(f"#define {name} {value}\n" for name, value in numbers.items())
    signature, loop = RIGHT[kernel]
    return f"{INCLUDES}{BEFORE}{defined}{signature} {{\n{COUNT}{loop}\n{body}\n}}\n"


def victim(folder: Path) -> contextlib.AbstractContextManager[Rank]:
    """A judge that really measures and has secrets to keep."""
    return rank(folder, closed=True, measures=True, failed_submit_step_s=STEP_S, warm_up=False)


def attack(judge: Rank, calls: int) -> list[Tally]:
    """Every strategy, with about so many calls in all; fewer than LEAST_CALLS would show nothing."""
    part = max(calls / LEAST_CALLS, 1)
    attacker = Attacker(judge)
    attacker.remember(SIZE, round(4 * part))
    attacker.remember(VALUE, round(3 * part))
    attacker.carry("", SIZE, round(4 * part))
    attacker.carry("", CHECKED_SIZE, round(4 * part))
    attacker.carry(" of another agent", VALUE, round(2 * part), FIRST, SECOND)
    attacker.carry(" of another kernel", SHARE, round(8 * part), FIRST, OTHER_KERNEL)
    attacker.repeat(round(12 * part))
    attacker.slow(round(7 * part))
    if calls >= 4 * LEAST_CALLS:  # a bit a call: it takes many
        attacker.pause(22)
    return attacker.tallies


def table(tallies: Sequence[Tally]) -> Iterator[str]:
    """The tallies for a reader."""
    yield f"{'strategy':<74}{'calls':>6}{'bits sent':>11}{'arrived':>11}{'true/made':>11}{'chance':>10}{'p':>9}"
    for one in tallies:
        arrived, right = f"{one.told_right}/{one.told}", f"{one.right}/{one.made}"
        figures = f"{one.calls:>6}{one.bits:>11.0f}{arrived:>11}{right:>11}{one.chance:>10.2g}{one.by_chance:>9.2g}"
        yield f"{one.strategy:<74}{figures}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Attack a judge's hidden inputs through what its answers tell.")
    parser.add_argument("--calls", type=int, default=LEAST_CALLS, help=f"about how many calls ({LEAST_CALLS})")
    calls = parser.parse_args().calls
    with tempfile.TemporaryDirectory() as folder, victim(Path(folder)) as judge:
        tallies = attack(judge, calls)
    print(*table(tallies), sep="\n")
    return int(any(one.by_chance < ALPHA for one in tallies))


if __name__ == "__main__":
    sys.exit(main())
