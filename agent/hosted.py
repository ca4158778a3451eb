"""The driver's end of the proxy to a hosted model: takes the key out of the environment and keeps it from everybody."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_bytes

from pydantic import Field

from agent.endpoint import Auth, ModelService, ProxyAddress
from bench import process
from bench.errors import ConfigError, EnvironmentFault
from bench.judge.schemas import Closed

LOOPBACK = "127.0.0.1"


class Upstream(Closed):
    """What the proxy reads from its stdin."""

    root: str
    key: str = Field(repr=False)
    auth: Auth
    secret: str = Field(repr=False)


@contextmanager
def proxied(service: ModelService | None, usage_file: Path | None) -> Iterator[ProxyAddress | None]:
    """Inside, the proxy of a hosted service answers at the address; None where clients ask their model themselves.

    Raises:
        ConfigError: the variable that should hold the key is not set.
        EnvironmentFault: the proxy does not start.
    """
    if service is None or service.key_env is None or usage_file is None:
        yield None
        return
    key = os.environ.pop(service.key_env, "")  # what is started from here on must not inherit it
    if not key:
        raise ConfigError(
            f"{service.key_env} is not set on this agent node; export the key under that name in the shell that submits"
        )
    usage_file.parent.mkdir(parents=True, exist_ok=True)
    child = process.spawn(
        [sys.executable, "-P", "-m", "agent.proxy", str(usage_file)],
        output=subprocess.PIPE,
        errors=sys.stderr,
        stdin=subprocess.PIPE,
    )
    try:
        yield _told(child, service, key)
    finally:
        process.kill_tree(child)


def _told(child: "subprocess.Popen[bytes]", service: ModelService, key: str) -> ProxyAddress:
    """Tell the proxy its upstream, and learn its port."""
    secret = token_bytes(32)
    upstream = Upstream(root=service.urls[0], key=key, auth=service.auth, secret=secret.hex())
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(upstream.model_dump_json().encode() + b"\n")
    child.stdin.flush()
    port = child.stdout.readline().decode().strip()
    if not port:
        raise EnvironmentFault("the proxy to the hosted model did not start; its error is above this line in this log")
    return ProxyAddress(f"http://{LOOPBACK}:{port}", secret)
