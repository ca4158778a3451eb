"""The job's judges as one caller sees them: the home rank, and the survivors when that is lost."""

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

from bench.judge.client import ATTEMPTS, Envelope, JudgeClient, JudgeRefused
from bench.judge.schemas import (
    Answer,
    GradeRequest,
    Outcome,
    ProfileAnswer,
    ProfileRequest,
    SearchAnswer,
    SearchRequest,
)

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
    """Asks the home rank; once it is lost, the next rank that answers is asked from then on.

    Safe to share between threads; close it when none of them asks any more.
    """

    def __init__(
        self, urls: Sequence[str], home: int, token: str | None, failover: bool = True, tries: int = ATTEMPTS
    ) -> None:
        self._urls, self._home, self._token, self._tries = urls, home, token, tries
        self._ranks = [(home + step) % len(urls) for step in range(len(urls) if failover else 1)]
        self._clients: dict[int, JudgeClient] = {}
        self._turn = threading.Lock()

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
            answer = self._surviving(lambda rank: self._graded(rank, route, request, envelope))
            if answer.outcome is not Outcome.JUDGE_FAULT:
                break
        return answer

    def profile(self, request: ProfileRequest) -> ProfileAnswer:
        """Have `request` profiled; its `rank` is set here. Raises JudgeRefused, as `ask` does."""
        return self._surviving(lambda rank: self._connected(rank).profile(request.model_copy(update={"rank": rank})))

    def search(self, request: SearchRequest) -> SearchAnswer:
        """Search the web, through any rank. Raises JudgeRefused."""
        return self._surviving(lambda rank: self._connected(rank).search(request))

    def _surviving(self, call: Callable[[int], A]) -> A:
        while True:
            rank = self.rank
            try:
                return call(rank)
            except JudgeRefused as error:
                if not is_lost(error) or not self._leave(rank):
                    raise

    def _connected(self, rank: int) -> JudgeClient:
        with self._turn:
            if rank not in self._clients:
                unreachable_s = UNREACHABLE_S if len(self._ranks) > 1 else math.inf
                self._clients[rank] = JudgeClient(
                    self._urls[rank], self._token, attempts=self._tries, unreachable_s=unreachable_s
                )
            return self._clients[rank]

    def _graded(self, rank: int, route: Route, request: GradeRequest, envelope: Envelope) -> Answer:
        client = self._connected(rank)
        addressed = request.model_copy(update={"rank": rank})
        sent = replace(envelope, home_rank=self._home if rank != self._home else None)
        call = client.score if route == "score" else client.submit
        return call(addressed, sent)

    def _leave(self, rank: int) -> bool:
        """Ask `rank` no more, which several threads may find lost; False when it is the last one."""
        with self._turn:
            if rank == self.rank and len(self._ranks) > 1:
                self._ranks.pop(0)
            return rank != self.rank

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        self._clients.clear()
