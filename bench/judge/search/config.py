"""SearchConfig: what a judge's web search may use; the provider's key is in no file."""

import ipaddress
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, IPvAnyNetwork

# Names the variable of the judge's environment that holds the provider's key.
KEY_VARIABLE = "SERPAPI_API_KEY"


def _keeps_a_key(url: str) -> str:
    """A provider's URL: the key goes there, so nobody on the way may read it."""
    parts = urlsplit(url)
    if parts.username or parts.query or not parts.hostname:
        raise ValueError("give scheme, host and path alone; the key is added from the environment")
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(parts.hostname)):
        raise ValueError("the provider's key is sent there, so it begins with https://")
    return url


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


ProviderUrl = Annotated[str, AfterValidator(_keeps_a_key)]


class SearchModel(BaseModel):
    """The model of the job that sums up what a search found. `url` is a root: `/v1/...` hangs on it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Annotated[str, Field(description="Root of an engine or gateway that asks for no key.")]
    model: Annotated[str, Field(description="Served name of the model.")]
    wire: Annotated[Literal["messages", "chat"], Field(description="What it is asked in.")] = "chat"
    max_tokens: Annotated[int, Field(ge=1, description="Longest summary, tokens.")] = 2048
    timeout_s: Annotated[float, Field(gt=0, description="How long it may take; then excerpts are the answer.")] = 60


class SearchConfig(BaseModel):
    """Settings of `/search`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    provider: Annotated[ProviderUrl, Field(description="Address of a search API that answers as SerpAPI does.")] = (
        "https://serpapi.com/search.json"
    )
    engine: Annotated[str, Field(description="Engine that the provider is asked for.")] = "google"
    results: Annotated[int, Field(ge=1, le=100, description="Results of a search at most.")] = 8
    pages: Annotated[int, Field(ge=0, le=20, description="How many of the first results are read.")] = 4
    page_bytes: Annotated[int, Field(ge=1024, le=16 << 20, description="What is read of a page at most, bytes.")] = (
        1 << 20
    )
    page_timeout_s: Annotated[float, Field(gt=0, description="How long a page may take to arrive.")] = 10
    excerpt_chars: Annotated[int, Field(ge=100, description="What a source shows of its page, characters.")] = 2500
    timeout_s: Annotated[float, Field(gt=0, description="How long a search may take, without the summary.")] = 60
    at_once: Annotated[int, Field(ge=1, description="Searches of this judge at a time; others wait.")] = 4
    per_minute: Annotated[int, Field(ge=1, description="Searches of an episode a minute.")] = 6
    per_episode: Annotated[int, Field(ge=1, description="Searches of an episode in all.")] = 200
    networks: Annotated[
        tuple[IPvAnyNetwork, ...],
        Field(description="Networks that pages may come from, at any port, although they are not public."),
    ] = ()
    model: Annotated[SearchModel | None, Field(description="Sums up; none: excerpts are the answer.")] = None
