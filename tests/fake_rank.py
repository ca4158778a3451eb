"""A router whose judge is the fake one: `fake_rank.py <config.json> [restarts]`."""

import sys
from pathlib import Path

from bench.judge.router import run_router
from bench.judge.supervisor import RestartPolicy

if __name__ == "__main__":
    config = Path(sys.argv[1])
    limit = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    judge = [sys.executable, str(Path(__file__).with_name("fake_judge.py")), str(config)]
    sys.exit(run_router(config, judge, RestartPolicy(limit=limit), stall_s=0.3))
