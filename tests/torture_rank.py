"""A real rank that is patient: `torture_rank.py <config.json>` is `kcourt serve`, but never gives its judge up.

Where KCOURT_TORTURE_CLOCK names a library, the judge takes its wall clock through that: `torture_rank.py <config.json>
judge` is this judge.
"""

import os
import sys
from pathlib import Path

from bench.judge.app import run_judge
from bench.judge.router import run_router
from bench.judge.supervisor import RestartPolicy

CLOCK = "KCOURT_TORTURE_CLOCK"
# What is killed every other second is started again as often, where a real rank would soon be given up.
PATIENT = RestartPolicy(limit=600, window_s=60, pause_max_s=0.3)


def main() -> int:
    config = Path(sys.argv[1])
    if len(sys.argv) > 2:
        os.environ.pop("LD_PRELOAD", None)  # its measuring process keeps the clock of the machine
        return run_judge(config)
    library = os.environ.get(CLOCK)
    argv = ["env", f"LD_PRELOAD={library}", sys.executable, __file__, str(config), "judge"] if library else None
    return run_router(config, argv, PATIENT)


if __name__ == "__main__":
    sys.exit(main())
