"""Awaits the end of a child process without a thread and without polling, through a pidfd."""

import asyncio
import os
import subprocess


async def exited(child: "subprocess.Popen[bytes]") -> int:
    """Return code of a child, once it has ended."""
    if child.poll() is not None:
        return child.returncode
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    descriptor = os.pidfd_open(child.pid)
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return child.wait()
