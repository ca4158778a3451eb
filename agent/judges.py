"""The job's judges as one caller sees them: the home rank, and the survivors when that is lost."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

from bench.judge.client import ATTEMPTS, Envelope, JudgeClient, JudgeRefused
from bench.judge.schemas import Answer, GradeRequest, Outcome, ProfileAnswer, ProfileRequest

Route = Literal["score", "submit"]
A = TypeVar("A")

# A fault of the judge costs the submission nothing: the same request is asked again, this often at most.
FAULT_TRIES = 3
# A router answers while its judge restarts; one that nobody reaches has lost its node or its network.
UNREACHABLE_S = 10.0
_LOST_STATUS = frozenset({421, 502, 503})


def is_lost(error: JudgeRefused) -> bool:
    """Whether a refusal means that this rank serves no more; the client has already waited out a restart."""
    if error.code == "not_provisioned":
        return False
    return error.code == "unreachable" or error.status in _LOST_STATUS


class Judges:
    """Asks the home rank; once it is lost, the next rank that answers is asked from then on."""

    def __init__(
        self, urls: Sequence[str], home: int, token: str | None, failover: bool = True, tries: int = ATTEMPTS
    ) -> None:
        self._urls, self._home, self._token, self._tries = urls, home, token, tries
        self._ranks = [(home + step) % len(urls) for step in range(len(urls) if failover else 1)]
        self._client: JudgeClient | None = None

    @property
    def rank(self) -> int:
        """The rank that is asked now."""
        return self._ranks[0]

    def ask(self, route: Route, request: GradeRequest, envelope: Envelope) -> Answer:
        """Have `request` graded; its `rank` and the envelope's home rank are set here.

        Raises:
            JudgeRefused: the judge's answer, or the last rank's when all are lost.
        """
        for _ in range(FAULT_TRIES):
            answer = self._surviving(lambda client: self._graded(client, route, request, envelope))
            if answer.outcome is not Outcome.JUDGE_FAULT:
                break
        return answer

    def profile(self, request: ProfileRequest) -> ProfileAnswer:
        """Have `request` profiled; its `rank` is set here. Raises JudgeRefused, as `ask` does."""
        return self._surviving(lambda client: client.profile(request.model_copy(update={"rank": self.rank})))

    def _surviving(self, call: Callable[[JudgeClient], A]) -> A:
        while True:
            try:
                return call(self._connected())
            except JudgeRefused as error:
                if not is_lost(error) or len(self._ranks) == 1:
                    raise
                self._leave_rank()

    def _connected(self) -> JudgeClient:
        if self._client is None:
            unreachable_s = UNREACHABLE_S if len(self._ranks) > 1 else math.inf
            self._client = JudgeClient(
                self._urls[self.rank], self._token, attempts=self._tries, unreachable_s=unreachable_s
            )
        return self._client

    def _graded(self, client: JudgeClient, route: Route, request: GradeRequest, envelope: Envelope) -> Answer:
        addressed = request.model_copy(update={"rank": self.rank})
        sent = replace(envelope, home_rank=self._home if self.rank != self._home else None)
        call = client.score if route == "score" else client.submit
        return call(addressed, sent)

    def _leave_rank(self) -> None:
        self.close()
        self._ranks.pop(0)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
