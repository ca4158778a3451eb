"""The life of a profile: it takes its turn like a preview, and is answered, but not recorded."""

from collections.abc import Callable

import structlog

from bench.config import JudgeConfig
from bench.judge.answers import FAULT, FAULT_ADVICE
from bench.judge.refusal import Refused
from bench.judge.scheduler import Scheduler
from bench.judge.schemas import Outcome, ProfileTool
from bench.records import Lacking, ProfileOrder, ProfileReport

log = structlog.get_logger()


class Profiles:
    """Everything between an order and its answer. `counted` is told of every finished profile (for metrics)."""

    def __init__(
        self, config: JudgeConfig, scheduler: Scheduler, counted: Callable[[ProfileTool, Outcome], None]
    ) -> None:
        self._config, self._scheduler, self._counted = config, scheduler, counted

    async def answer(self, order: ProfileOrder) -> str:
        """The answer's JSON text.

        Raises:
            Refused: 503, the judge lacks the tool or became unfit.
        """
        turn = await self._scheduler.profile(order)
        found = turn.report
        if isinstance(found, Lacking):
            raise Refused(503, "not_provisioned", f"{found.why}; go on without this profile")
        if found is None:
            found = ProfileReport(tool=order.tool, outcome=Outcome.JUDGE_FAULT, property=FAULT, log=FAULT_ADVICE)
        self._counted(order.tool, found.outcome)
        log.info("profiled", kernel=order.kernel, tool=order.tool, outcome=found.outcome)
        return found.answer(order.kernel, self._config.rank).model_dump_json()
