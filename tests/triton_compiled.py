"""Compiles what Triton files launch, all in one process, which costs less than `kcourt build` for each.

argv: an architecture, then kernel=file, as often as wanted. Each is called on tensors without values, at the preset XL
of GPUs, and where all sizes are 1: Triton compiles such arguments as constants. For each file it prints a line of JSON:
the kernel, the file's name, and how many compilations there were. The first that does not compile ends it.
"""

import json
import sys
from pathlib import Path
from typing import Any

from triton.runtime import driver
from triton_interpreted import entry_point

from bench.build.triton_launches import Absent, Tensor, record_launches, target_of
from bench.judge.schemas import Preset
from bench.task import Role, Sizes, Task, select


def without_values(task: Task, name: str, sizes: Sizes) -> Tensor | float | int:
    argument = task.arguments[name]
    if argument.is_array:
        return Tensor(str(argument.dtype), list(task.shape(name, sizes)))
    return sizes[name] if argument.role is Role.SIZE else 0.5


def main() -> None:
    compiled: dict[str, Any] = {}
    driver.set_active(Absent(target_of(sys.argv[1])))
    record_launches(compiled)
    for word in sys.argv[2:]:
        name, _, file = word.partition("=")
        (task,), path = select(name), Path(file)
        compiled.clear()
        entry = entry_point(path, name)
        for sizes in ((largest := task.gpu_track.size(Preset.XL)), dict.fromkeys(largest, 1)):
            entry(*(without_values(task, argument, sizes) for argument in task.arguments))
        print(json.dumps({"kernel": name, "file": path.name, "compiled": len(compiled)}))


if __name__ == "__main__":
    main()
