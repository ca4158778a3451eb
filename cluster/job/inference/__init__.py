"""The engines that serve a job's model: how they are started, whether they serve, and what they served."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import httpx
from pydantic import BaseModel, ValidationError

from bench.errors import ConfigError
from bench.places import anchored
from cluster.job.allocation import Host
from cluster.job.inference import sglang, vllm
from cluster.job.inference.arguments import served_name
from cluster.study.settings import JobSettings

ASK_TIMEOUT_S = 3.0
COMMANDS: Mapping[str, Callable[[JobSettings, str, int], tuple[str, ...]]] = {
    "vllm": vllm.command,
    "sglang": sglang.command,
}
VERSION_PATHS = {"vllm": vllm.VERSION_PATH, "sglang": sglang.VERSION_PATH}
# Folders of JIT_CACHE_DIR, by the variable with which its writer is told. Engines add their own to PyTorch's.
JIT_CACHES = {"TRITON_CACHE_DIR": "triton", "TORCHINDUCTOR_CACHE_DIR": "inductor", "VLLM_CACHE_ROOT": "vllm"}


@dataclass(frozen=True)
class Engine:
    """One process that serves the model: which node starts it, with what, and where clients ask it."""

    replica: int
    kind: str
    host: Host
    port: int
    argv: tuple[str, ...]
    served_name: str

    @property
    def url(self) -> str:
        """Its root; the OpenAI routes lie under /v1."""
        return f"http://{self.host.reached_at}:{self.port}"


class EngineState(StrEnum):
    """Whether an engine serves; `lost` is for good, the others may change."""

    STARTING = "starting"
    READY = "ready"
    LOST = "lost"


@dataclass(frozen=True)
class EngineHealth:
    """One engine's answer, and why unless it is ready."""

    replica: int
    state: EngineState
    reason: str = ""


def engines_of(settings: JobSettings, hosts: Sequence[Host]) -> tuple[Engine, ...]:
    """One engine for each of the inference nodes; replicas on one machine take ports from INFERENCE_PORT on.

    Raises:
        ConfigError: there is no model to serve, it is to span nodes, or its arguments or ports do not fit.
    """
    if not hosts:
        return ()
    _check(settings, len(hosts))
    seats: Counter[str] = Counter()
    engines = []
    for replica, host in enumerate(hosts):
        engines.append(_engine(settings, replica, host, settings.inference_port + seats[host.reached_at]))
        seats[host.reached_at] += 1
    return tuple(engines)


def _check(settings: JobSettings, nodes: int) -> None:
    """Raises ConfigError where no engine can be started as asked."""
    if not settings.inference_model:
        raise ConfigError(
            f"INFERENCE_NODES={nodes} and no model to serve; set INFERENCE_MODEL, or INFERENCE_NODES=0 for a "
            "HARNESS that needs none (scripted)"
        )
    if settings.inference_mode == "pipeline" and nodes > 1:
        raise ConfigError(
            f"INFERENCE_MODE=pipeline over {nodes} nodes: a model cannot be dealt to several nodes yet; "
            "set INFERENCE_MODE=replicas, with a model that fits one node"
        )
    if (last := settings.inference_port + nodes - 1) > 65535:
        raise ConfigError(f"INFERENCE_PORT={settings.inference_port}: {nodes} replicas may need port {last}; lower it")


def _engine(settings: JobSettings, replica: int, host: Host, port: int) -> Engine:
    argv = COMMANDS[settings.inference_engine](settings, host.reached_at, port)
    return Engine(replica, settings.inference_engine, host, port, argv, served_name(settings))


def engine_env(settings: JobSettings) -> dict[str, str]:
    """What an engine's environment adds to its step's: where weights and compiled kernels are kept.

    VLLM_PORT is not among them: vLLM's own processes meet there, and clients must not.
    """
    env = {"HF_HOME": str(anchored(settings.hf_home))} if settings.hf_home else {}
    if settings.jit_cache_dir:
        folder = anchored(settings.jit_cache_dir)
        env |= {variable: str(folder / name) for variable, name in JIT_CACHES.items()}
    return env


class _Model(BaseModel):
    id: str


class _Models(BaseModel):
    """What is read of an answer to `/v1/models`."""

    data: tuple[_Model, ...]


class _Version(BaseModel):
    version: str


def asking_client() -> httpx.Client:
    """A client for `ask` and `version_of`; one serves all engines of a job. Close it."""
    # A site's web proxy does not know the engines.
    return httpx.Client(timeout=ASK_TIMEOUT_S, trust_env=False)


def ask(engine: Engine, client: httpx.Client, ready: bool = False) -> EngineHealth:
    """Whether an engine serves its model now; `ready` says that it did before.

    An engine that is silent may be loading or busy. One that was ready and has nobody at its port has died.
    """

    def health(state: EngineState, reason: str = "") -> EngineHealth:
        return EngineHealth(engine.replica, state, reason)

    try:
        for route in ("/health", "/v1/models"):
            if not (answer := client.get(engine.url + route)).is_success:
                return health(EngineState.STARTING, f"{answer.url} answers {answer.status_code}")
    except httpx.TransportError as error:
        if _refused(error):
            state = EngineState.LOST if ready else EngineState.STARTING
            return health(state, f"nobody listens at {engine.url}")
        return health(EngineState.STARTING, f"{engine.url} gives no answer ({error or type(error).__name__})")
    fault = _wrongly_listed(engine, answer.content)
    return health(EngineState.LOST, fault) if fault else health(EngineState.READY)


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


def inference_record(
    settings: JobSettings, engines: Sequence[Engine], version: str | None, started_at: str
) -> dict[str, Any]:
    """The content of `inference.json`: what served the model, from when on (ISO 8601), and with which arguments."""
    return {
        "source": settings.inference_source,
        "engine": settings.inference_engine,
        "version": version,
        "model": settings.inference_model,
        "checkpoint": settings.inference_checkpoint or None,
        "served_name": served_name(settings),
        "started_at": started_at,
        "nodes": [engine.host.name for engine in engines],
        "engines": [{"replica": one.replica, "url": one.url, "argv": list(one.argv)} for one in engines],
    }
