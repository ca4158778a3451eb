"""The engines that serve a job's model: which nodes start them, with what, and what is recorded of them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.errors import ConfigError
from bench.places import anchored
from cluster.job.allocation import Host
from cluster.job.inference import sglang, vllm
from cluster.job.inference.arguments import served_name
from cluster.study.settings import JobSettings

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
