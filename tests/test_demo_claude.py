"""The demo with a real client: its own check of its database passes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.harnesses.clients import INSTALLED

pytestmark = [
    pytest.mark.skipif(not os.access(INSTALLED / "claude", os.X_OK), reason="run `make setup-agents`"),
    pytest.mark.xdist_group("clients"),
]


def test_the_demo_shows_what_it_promises(tmp_path: Path, repository: Path) -> None:
    argv = [sys.executable, "-m", "tests.demo_claude", str(tmp_path)]
    done = subprocess.run(argv, cwd=repository, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "real clients wrote, previewed and submitted 3 kernels" in done.stdout
