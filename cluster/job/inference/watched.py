"""The engines of a running job: asked over HTTP as a client would, and lost with their steps."""

from collections.abc import Sequence

from cluster.job.inference import Engine, EngineHealth, EngineState, ask, asking_client, version_of
from cluster.job.launchers import Running

# An engine that served is called dead when nobody listens at its port this often in a row.
MISSES = 3


class Engines:
    """The engine steps of one job in the order of their replicas, and one client for all."""

    def __init__(self, engines: Sequence[Engine], steps: Sequence[Running]) -> None:
        self._engines = list(zip(engines, steps, strict=True))
        self._client = asking_client()
        self._misses: dict[int, int] = {}

    def health(self) -> list[EngineHealth]:
        """Ask every engine now."""
        return [self._ask(engine, step) for engine, step in self._engines]

    def _ask(self, engine: Engine, step: Running) -> EngineHealth:
        if (end := step.poll()) is not None:
            return EngineHealth(engine.replica, EngineState.LOST, f"its step has ended: {end.words}")
        if step.awaits_record:
            return EngineHealth(engine.replica, EngineState.STARTING, "its step has ended, how is not known yet")
        health = ask(engine, self._client, ready=self._misses.get(engine.replica, 0) >= MISSES)
        if health.state is EngineState.READY:
            self._misses[engine.replica] = 0
        elif engine.replica in self._misses:
            self._misses[engine.replica] += 1
        return health

    def version(self) -> str | None:
        """The version that the first engine says of itself."""
        return version_of(self._engines[0][0], self._client) if self._engines else None

    def close(self) -> None:
        self._client.close()
