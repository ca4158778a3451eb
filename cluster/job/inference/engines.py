"""Whether the engines of a job serve: asked over HTTP as a client would, and lost with their steps."""

from collections.abc import Sequence

import httpx
from pydantic import BaseModel, ValidationError

from cluster.job.health import EngineHealth, ServiceState
from cluster.job.inference import VERSION_PATHS, Engine
from cluster.job.launchers import Running

ASK_TIMEOUT_S = 3.0
# An engine that served is called dead when nobody listens at its port this often in a row.
MISSES = 3


class Engines:
    """The engine steps of one job in the order of their replicas, and one client for all."""

    def __init__(self, engines: Sequence[Engine], steps: Sequence[Running]) -> None:
        self._engines = list(zip(engines, steps, strict=True))
        # A site's web proxy does not know the engines.
        self._client = httpx.Client(timeout=ASK_TIMEOUT_S, trust_env=False)
        self._misses: dict[int, int] = {}

    def health(self) -> list[EngineHealth]:
        """Ask every engine now."""
        return [self._ask(engine, step) for engine, step in self._engines]

    def _ask(self, engine: Engine, step: Running) -> EngineHealth:
        if (end := step.poll()) is not None:
            return EngineHealth(engine.replica, ServiceState.LOST, f"its step has ended: {end.words}")
        if step.awaits_record:
            return EngineHealth(engine.replica, ServiceState.STARTING, "its step has ended, how is not known yet")
        health = ask(engine, self._client, ready=self._misses.get(engine.replica, 0) >= MISSES)
        if health.is_ready:
            self._misses[engine.replica] = 0
        elif engine.replica in self._misses:
            self._misses[engine.replica] += 1
        return health

    def version(self) -> str | None:
        """The version that the first engine says of itself."""
        return version_of(self._engines[0][0], self._client) if self._engines else None

    def close(self) -> None:
        self._client.close()


class _Model(BaseModel):
    id: str


class _Models(BaseModel):
    """What is read of an answer to `/v1/models`."""

    data: tuple[_Model, ...]


class _Version(BaseModel):
    version: str


def ask(engine: Engine, client: httpx.Client, ready: bool = False) -> EngineHealth:
    """Whether an engine serves its model now; `ready` says that it did before.

    An engine that is silent may be loading or busy. One that was ready and has nobody at its port has died.
    """

    def health(state: ServiceState, reason: str = "") -> EngineHealth:
        return EngineHealth(engine.replica, state, reason)

    try:
        for route in ("/health", "/v1/models"):
            if not (answer := client.get(engine.url + route)).is_success:
                return health(ServiceState.STARTING, f"{answer.url} answers {answer.status_code}")
    except httpx.TransportError as error:
        if _refused(error):
            state = ServiceState.LOST if ready else ServiceState.STARTING
            return health(state, f"nobody listens at {engine.url}")
        return health(ServiceState.STARTING, f"{engine.url} gives no answer ({error or type(error).__name__})")
    fault = _wrongly_listed(engine, answer.content)
    return health(ServiceState.LOST, fault) if fault else health(ServiceState.READY)


def _refused(error: BaseException | None) -> bool:
    """Whether the node itself said that nobody listens; names and routes fail for reasons that pass."""
    while error and not isinstance(error, ConnectionRefusedError):
        error = error.__context__
    return error is not None


def _wrongly_listed(engine: Engine, answer: bytes) -> str | None:
    """What is wrong with a list of models that should have the name which clients will ask for."""
    try:
        names = [model.id for model in _Models.model_validate_json(answer).data]
    except ValidationError:
        return f"{engine.url}/v1/models lists no models; set INFERENCE_PORT to a free port"
    if engine.served_name in names:
        return None
    return (
        f"{engine.url} serves '{', '.join(names)}', and clients ask for '{engine.served_name}'; "
        "if that is another engine, set INFERENCE_PORT to a free port"
    )


def version_of(engine: Engine, client: httpx.Client) -> str | None:
    """The version that a running engine says of itself; None when it does not."""
    try:
        answer = client.get(engine.url + VERSION_PATHS[engine.kind])
        return _Version.model_validate_json(answer.content).version
    except (httpx.TransportError, ValidationError):
        return None
