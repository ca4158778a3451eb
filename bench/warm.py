"""Makes what all grades of a kernel share – denominators, float64 twin, call shims, a GPU's races – ahead of them."""

from bench import race
from bench.build import builder
from bench.court import Court
from bench.judge.schemas import Language
from bench.measure.stopwatch import Stopwatch
from bench.records import WarmOrder
from bench.reference import reference_function
from bench.task import find_task


def warm(order: WarmOrder, court: Court) -> None:
    """Fill the cache for one kernel, and read its reference; it builds where a grade would, and times races alone.

    Raises:
        UsageError: there is no such kernel.
        JudgeFault: one of its own files does not build or does not import.
        EnvironmentFault: a compiler is missing, or the cache cannot be written.
    """
    task, sandbox, kit = find_task(order.kernel), court.sandbox, court.kit
    task = task.gpu_track if kit else task
    with court.building(Stopwatch()):
        for baseline in task.baselines:
            builder.denominator(sandbox, baseline, kit)
        for baseline in task.baselines[:1]:
            builder.twin(sandbox, baseline, kit)
        for language in {*order.languages, *map(Language.of, task.baselines)}:
            builder.call_shim(sandbox, task, language)
        if kit and len(race.contenders(task, kit)[0]) > 1:
            for preset in order.presets:
                race.outcome(task, preset, court)
    reference_function(task, task.name)
