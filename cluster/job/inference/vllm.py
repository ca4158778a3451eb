"""vLLM: the command line that serves a model on one node, and where a running one says its version."""

from cluster.job.inference.arguments import Option, arguments, revision, served_name, tensor_parallel
from cluster.study.settings import JobSettings

VERSION_PATH = "/version"


def command(settings: JobSettings, address: str, port: int) -> tuple[str, ...]:
    """The argv that serves the job's model at an address; raises ConfigError for what INFERENCE_ARGS may not hold."""
    options = [
        Option("--host", "the allocation", address),
        Option("--port", "INFERENCE_PORT", port),
        Option("--served-model-name", "INFERENCE_SERVED_NAME", served_name(settings)),
        Option("--tensor-parallel-size", "INFERENCE_TENSOR_PARALLEL", tensor_parallel(settings)),
        Option("--max-model-len", "INFERENCE_CONTEXT_TOKENS", settings.inference_context_tokens),
        Option("--revision", "INFERENCE_CHECKPOINT", revision(settings)),
    ]
    return ("vllm", "serve", settings.inference_model, *arguments(options, settings))
