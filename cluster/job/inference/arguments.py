"""What the command lines of all engines have in common: KEYs that become options, and the operator's further ones."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.errors import ConfigError
from cluster.study.settings import JobSettings

# An engine of the job asks no client for a key, and what it is started with is written down.
_SECRETS = ("--api-key", "--hf-token")


@dataclass(frozen=True)
class Option:
    """An option that the job gives an engine itself, and what decides it; without a value it is left out."""

    name: str
    source: str
    value: object


def arguments(options: Sequence[Option], settings: JobSettings) -> tuple[str, ...]:
    """The options that have a value, then those of INFERENCE_ARGS.

    Raises:
        ConfigError: INFERENCE_ARGS cannot be split, holds a secret, or repeats an option of the job.
    """
    given = [text for option in options if option.value is not None for text in (option.name, str(option.value))]
    return (*given, *_further(options, settings))


def _further(options: Sequence[Option], settings: JobSettings) -> list[str]:
    try:
        words = shlex.split(settings.inference_args)
    except ValueError as error:
        raise ConfigError(f"INFERENCE_ARGS={settings.inference_args}: {error}; close every quote") from error
    sources = {option.name: option.source for option in options}
    for word in words:
        # Engines take `--max_model_len=1` for `--max-model-len 1`.
        name = word.partition("=")[0].replace("_", "-")
        if name in _SECRETS:
            raise ConfigError(
                f"INFERENCE_ARGS holds {name}; secrets must not lie in files, and agents send no key: remove it"
            )
        if name in sources:
            raise ConfigError(f"INFERENCE_ARGS holds {name}, which {sources[name]} decides; remove it there")
    return words


def served_name(settings: JobSettings) -> str:
    """The name that clients must ask for."""
    return settings.inference_served_name or settings.inference_model


def tensor_parallel(settings: JobSettings) -> int | None:
    """GPUs that share each layer; None on nodes without GPUs."""
    return settings.inference_tensor_parallel or settings.gpus_per_node or None


def revision(settings: JobSettings) -> str | None:
    """The revision to ask a hub for; a folder holds one alone, whatever it is called."""
    local = Path(settings.inference_model).is_absolute() or settings.inference_model.startswith(".")
    return None if local else settings.inference_checkpoint or None
