"""A judge whose measuring process is the fake one: `fake_judge.py <config.json>`."""

import sys
from pathlib import Path

from bench.judge.app import run_judge

if __name__ == "__main__":
    config = Path(sys.argv[1])
    worker = [sys.executable, str(Path(__file__).with_name("fake_worker.py")), str(config.parent)]
    sys.exit(run_judge(config, worker))
