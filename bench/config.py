"""JudgeConfig: everything a router and its judge are told, frozen, in one JSON file."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench.errors import ConfigError
from bench.judge.schemas import ADHOC, InputMode, Preset, SetupRecord

Port = Annotated[int, Field(ge=1, le=65535)]


class JudgeConfig(BaseModel):
    """Settings of one judge rank."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rank: Annotated[int, Field(ge=0, description="This judge's number in the job.")] = 0
    ranks: Annotated[int, Field(ge=1, description="How many ranks the job has.")] = 1
    run_id: Annotated[str, Field(description="Job id on every row; `adhoc` delivers nothing.")] = ADHOC
    router_host: Annotated[str, Field(description="Address that agents use.")] = "127.0.0.1"
    router_port: Annotated[Port, Field(description="Port of the router.")] = 8800
    judge_port: Annotated[Port, Field(description="Port of the judge behind it, on loopback.")] = 8801
    shard: Annotated[Path, Field(description="SQLite file of this rank.")]
    peer_shards: Annotated[
        dict[int, Path], Field(description="Shards of the job's other ranks, read when one of them is lost.")
    ] = {}
    log_dir: Annotated[Path, Field(description="Folder of router and judge logs.")]
    shared_dir: Annotated[Path | None, Field(description="Folder that `source_file` must lie in.")] = None
    cache_dir: Annotated[Path, Field(description="Built helpers, denominators and oracles, by content.")]
    secret_file: Annotated[
        Path | None,
        Field(description="Job secret for tokens and seeds; none makes an open judge (loopback only)."),
    ] = None
    setups: Annotated[dict[str, SetupRecord], Field(description="Setups this job serves, by name.")] = {}
    input_mode: Annotated[InputMode, Field(description="What a submission may be.")] = InputMode.SOURCE
    preset: Annotated[Preset, Field(description="Preset of an open judge; a setup names its own.")] = Preset.XL
    final_protocol: Annotated[str, Field(description="Protocol of `/submit`.")] = "mw4x5"
    preview_protocol: Annotated[str, Field(description="Protocol of `/score`.")] = "mw2x5"
    allow_sandbox: Annotated[str, Field(description="Weakest sandbox level to serve with.")] = "user"
    device: Annotated[str, Field(description="Device that grades: cpu.")] = "cpu"
    timing_cores: Annotated[tuple[int, ...] | None, Field(description="Cores of timed code; none: planned.")] = None
    clock_core: Annotated[int | None, Field(description="Core of the judge's clock; none: planned.")] = None
    queue_limit: Annotated[int, Field(ge=1, description="Waiting requests beyond which 429 is answered.")] = 256
    max_body_bytes: Annotated[int, Field(ge=1024, description="Largest request body, bytes.")] = 8 << 20

    @classmethod
    def read(cls, path: Path) -> "JudgeConfig":
        """Load from a JSON file.

        Raises:
            ConfigError: naming the file and the first wrong key.
        """
        try:
            return cls.model_validate_json(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            key = ".".join(str(part) for part in fault["loc"])
            known = ", ".join(cls.model_fields)
            raise ConfigError(f"{path}: {key}: {fault['msg']}; known keys: {known}") from error
