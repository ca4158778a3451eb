"""How often an episode may search: so many times a minute, and so many in all."""

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable

from bench.judge.refusal import Refused

WINDOW_S = 60.0


class Pace:
    """Counts the searches of each episode since this judge started; None is everybody at an open judge."""

    def __init__(self, per_minute: int, per_episode: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute, self._per_episode, self._clock = per_minute, per_episode, clock
        self._recent: dict[str | None, deque[float]] = defaultdict(deque)
        self._total: dict[str | None, int] = defaultdict(int)

    def take(self, label: str | None) -> None:
        """Count one search; raises Refused when the episode has none left: 429 for now, 403 for good."""
        if self._total[label] >= self._per_episode:
            message = f"this episode has made its {self._per_episode} searches; go on without"
            raise Refused(403, "searches_spent", message)
        now, recent = self._clock(), self._recent[label]
        while recent and now - recent[0] >= WINDOW_S:
            recent.popleft()
        if len(recent) >= self._per_minute:
            wait_s = math.ceil(WINDOW_S - (now - recent[0]))
            message = f"at most {self._per_minute} searches a minute; send this one again in {wait_s} s"
            raise Refused(429, "search_pace", message)
        recent.append(now)
        self._total[label] += 1
