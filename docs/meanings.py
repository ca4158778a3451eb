"""Meanings of names that carry none in the code, for docs/generate.py: exit codes, variables, what a judge is sent."""

from bench.errors import ExitCode
from bench.judge.schemas import Header

EXIT_MEANINGS = {
    ExitCode.OK: "It worked. A grade was made, whatever its outcome.",
    ExitCode.FAILED: "It did not work; the message says why.",
    ExitCode.USAGE: "The command line, or a file that it names, is wrong.",
    ExitCode.JUDGE_FAULT: "The judge failed at its own work. No submission is to blame.",
    ExitCode.CONFIGURATION: "A setting is wrong: the message names the file and the key.",
    ExitCode.NEVER_READY: "A service of the job never became ready.",
    ExitCode.SERVICE_LOST: "A service was lost and could not be replaced; the job was torn down.",
    ExitCode.STALLED: "No episode and no grade ended for too long; the job was torn down.",
    ExitCode.DEGRADED: "A rank, an engine or an agent node was lost; the rest finished and was merged.",
    ExitCode.MERGE_FAILED: "A database is damaged or the merge failed. The grades in the shards are safe.",
    ExitCode.WALL_CLOCK: "The allocation's time ran out; what there was is merged.",
    ExitCode.CANCELLED: "The operator stopped it.",
}
ENVIRONMENT = {
    "KCOURT_SANDBOX": (
        "unset",
        "`limits` or `user`: the sandbox goes no further, whatever this machine offers.",
    ),
    "KCOURT_TASKS_DIR": ("`tasks/` of the checkout", "The corpus."),
    "KCOURT_EXPERIMENTS_DIR": (
        "`experiments/` of the checkout",
        "Studies, layers, treatments, and what is rendered from them.",
    ),
    "KCOURT_SCRATCH": ("`.scratch`", "Where Slurm's own output goes, in `logs/`; pinned when a setup is rendered."),
    "KCOURT_SYSTEM": (
        "by `SLURM_CLUSTER_NAME`, else `local`",
        "The [system](../studies.md#your-cluster) that jobs go to; `--system` wins.",
    ),
    "KCOURT_SYSTEMS_FILE": ("unset", "A site file: systems and facts that win over the package's."),
    "SLURM_CLUSTER_NAME": ("set by Slurm", "Finds the system where none is named."),
    "SLURM_GPUS_PER_NODE": (
        "set by Slurm",
        "GPUs of each node that a job asked for; unset: SLURM_GPUS_ON_NODE counts.",
    ),
    "SLURM_GPUS_ON_NODE": ("set by Slurm", "GPUs that a job has on its first node."),
    "SLURM_JOB_ID": (
        "set by Slurm",
        "The job that `kcourt cluster run` belongs to; names its run directory.",
    ),
    "SLURM_STEP_ID": ("set by Slurm", "The step that writes a record: signals go to it by this number."),
    "SLURM_JOB_NODELIST": ("set by Slurm", "The job's nodes, in the order that roles are dealt."),
    "KCOURT_CACHE": ("`~/.cache/kernelcourt`", "What is built once: helpers, call shims, denominators, by content."),
    "KCOURT_TMPDIR": ("the system's", "Where each grade gets its private folder."),
    "KCOURT_TOOLS": ("set for agents", "`tools.json` of the attempt whose tools `kcourt tool` calls."),
    "KCOURT_LEASE_DIR": ("the system's temporary folder", "Locks that keep the judges of a machine off one core."),
    "EDF_PATH": (
        "`~/.edf`",
        "Folders of registered EDFs, separated by colons: `kcourt doctor --setup` looks there first, as the Container "
        "Engine does.",
    ),
    "RUN_ROOT": (
        "`.scratch/runs`",
        "`kcourt grade` keeps its grades under `adhoc/` in there. A relative path starts at the checkout when the "
        "command is called inside it, else at the current folder.",
    ),
}
FIELDS = {
    "kernel": "Name of the kernel.",
    "language": "Language of the submission; left out: by the file's suffix, else the setup's.",
    "rank": "The judge that is addressed; another one answers 421. An open judge does not need it.",
    "source": "The submission's text.",
    "source_file": "Path of `<kernel><suffix>` in the shared folder.",
    "library": "Path of a built `<kernel>.so` in the shared folder; only where the input mode takes it.",
    "workspace_bytes": (
        "Size of a scratch buffer. Above 0 the entry point gets two more arguments, `void *workspace, int64_t "
        "workspace_bytes`; in Python one array of bytes."
    ),
    "tool": "`/profile` only: the [profiler](../profiling.md) that is to run.",
}
HEADERS = {
    "Authorization": "`Bearer <token>`: the episode's own. An open judge does not need it.",
    Header.IDEMPOTENCY: "A request that is repeated with its key is graded once. Another body under it: 400.",
    Header.ATTEMPT: "Which attempt of the episode asks.",
    Header.TOKENS: "Tokens that the episode has used so far.",
    Header.HOME_RANK: "On failover, the rank that was lost.",
    Header.REQUEST_ID: "Comes back with the answer, and stands in the logs.",
    "Prefer": (
        "`respond-async, wait=30`: 202 when the grade is not made after 30 s (without `wait`: at once), and its answer "
        "under `/grades/{id}`, the `Location`. `/grades` itself takes `wait` alone."
    ),
    Header.KIND: "Driver only: `promoted` or `harvested`.",
    Header.OF_GRADE: "Driver only: the grade that is promoted.",
    Header.EPISODE: "Driver only: the episode that is spoken for.",
}
ANSWERS = {
    "grade_id": "UUID, made before work starts.",
    "kernel": "As asked.",
    "rank": "The judge that graded.",
    "outcome": "See [outcomes](../concepts.md#outcomes).",
    "score": "The protocol's S; null unless solved.",
    "interval": "90 % interval of the raw ratio; null unless solved.",
    "faster": "Whether the lower end of the interval exceeds 1; null unless solved.",
    "suspect": "A reason to look at this grade before it counts, or null.",
    "protocol": "How it was timed.",
    "detail": "On `/score`: property, output, index, got, expected, bound, log. On `/submit`: property, build log.",
}
PROFILE = {
    "kernel": "As asked.",
    "rank": "The judge that profiled.",
    "tool": "As asked.",
    "outcome": "See [outcomes](../concepts.md#outcomes); of one checked call.",
    "report": "What to act on as text: functions, lines of the submission, kernels. Empty unless solved.",
    "counters": "The same for a program: unit, total, calls, preset, sizes, functions, lines; null unless solved.",
    "kernels": "What each kernel takes of an AMD GPU, of `isa` alone: see [GPU kernels](../gpu.md).",
    "detail": "Property, message or output, and log, as on `/score`.",
}
SEARCH = {
    "query": "As asked.",
    "answer": "What the job's model makes of the sources, named by their numbers in brackets; null without one.",
    "model": "The model that summed up.",
    "note": "Why nothing is summed up.",
    "sources": (
        "By number, from 1: title, url, text (an excerpt), and `unread`: why the page was not read and text is the "
        "provider's own."
    ),
}
