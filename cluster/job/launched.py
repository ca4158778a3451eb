"""What a job was launched as, and how its episodes ended: read again from its run directory."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench.errors import ConfigError, ShardError
from bench.judge.schemas import EpisodeRecord, SetupRecord
from bench.wording import first_fault
from cluster.job.documents import read_json
from cluster.job.layout import RunLayout
from cluster.study.settings import JobSettings, read_settings


class Launched(BaseModel):
    """The content of `plan.json`: the job's id, which a renamed run directory keeps, its ranks and setups."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    job_id: str
    ranks: Annotated[int, Field(ge=1)]
    setups: Annotated[dict[str, SetupRecord], Field(min_length=1)]


def launched(layout: RunLayout) -> Launched:
    """The job as planned.

    Raises:
        ConfigError: the folder holds no run, or its plan is damaged.
    """
    found = read_json(Launched, layout.plan, "`kcourt db merge` can merge the shards alone")
    if found is None:
        raise ConfigError(f"{layout.root}: no run there: {layout.plan} is missing; name a run directory")
    return found


def settings_of(layout: RunLayout) -> JobSettings:
    """The keys of the job, which all its setups share. Raises ConfigError where they or its plan are damaged."""
    return read_settings(layout.env_snapshot(next(iter(launched(layout).setups))))


def read_episode(path: Path) -> EpisodeRecord:
    """Raises ShardError when a `tokens.json` is not whole."""
    try:
        return EpisodeRecord.model_validate_json(path.read_bytes())
    except ValidationError as error:
        fault = first_fault(error)
        raise ShardError(f"{path}: {fault}; move the file away to leave this episode's record out") from error
