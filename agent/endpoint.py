"""Where a client finds its model: one endpoint of the job's own engines, of a gateway, or of a hosted service."""

from dataclasses import dataclass
from typing import Literal

Wire = Literal["messages", "chat", "responses"]


@dataclass(frozen=True)
class Endpoint:
    """A model as one client may use it. `key` is a dummy or the proxy's own token, never a provider's key.

    `base_url` is the root that the wire format's routes hang on: `<base_url>/v1/messages`, `<base_url>/v1/responses`.
    """

    base_url: str
    model: str
    key: str
    wires: tuple[Wire, ...]
