"""Where a client finds its model: an engine of the job, a gateway, or a hosted service behind the driver's proxy."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from agent.striping import striped
from bench.judge.schemas import Closed, token_for

Wire = Literal["messages", "chat", "responses"]
Auth = Literal["bearer", "x-api-key"]
# What a client that must send a key sends to an engine of the job, which asks for none.
NO_KEY = "no-key-needed"


class ModelService(Closed):
    """What serves the model of a node's agents. `urls` are roots: the routes `/v1/...` hang on them, one URL a replica.

    `key_env` NAMES the variable that holds a provider's key: clients then ask the driver's proxy, which adds it.
    """

    urls: Annotated[tuple[str, ...], Field(min_length=1)]
    model: str
    wires: tuple[Wire, ...]
    key_env: str | None = None
    auth: Auth = "bearer"


@dataclass(frozen=True)
class Endpoint:
    """A model as one client may use it: where, by which name, and with which key, which is never a provider's.

    `base_url` is a root: a client asks `<base_url>/v1/messages`, `/v1/chat/completions` or `/v1/responses`.
    """

    base_url: str
    model: str
    key: str
    wires: tuple[Wire, ...]


@dataclass(frozen=True)
class ProxyAddress:
    """The driver's proxy: its root, and the secret that its clients' tokens derive from."""

    url: str
    secret: bytes


def endpoint_for(service: ModelService, worker: int, label: str, proxy: ProxyAddress | None) -> Endpoint:
    """The endpoint of one episode; replicas are dealt by `worker`, its number over all nodes."""
    if proxy is not None:
        return Endpoint(proxy.url, service.model, token_for(proxy.secret, label), service.wires)
    return Endpoint(service.urls[striped(worker, len(service.urls))], service.model, NO_KEY, service.wires)
