"""The errors a user can meet, as one small tree, and the process exit codes."""

# KernelcourtError            every error with a message for a person
# ├── UsageError              the caller asked for something that does not exist or does not fit
# │   ├── TaskError           a manifest or its folder is wrong (file, line, field)
# │   └── ConfigError         a configuration key or value is wrong
# ├── EnvironmentFault        this machine lacks something (a compiler, a sandbox level, a writable folder)
# ├── JudgeFault              the judge failed; never the submission's fault
# │   └── BaselineFault       a baseline of the judge's own did
# └── ShardError              a database is corrupt, foreign or half-written

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of `kcourt` and of a job; see docs/reference/exit-codes.md."""

    OK = 0
    FAILED = 1
    USAGE = 2
    JUDGE_FAULT = 3
    CONFIGURATION = 64
    NEVER_READY = 69
    SERVICE_LOST = 70
    STALLED = 71
    DEGRADED = 72
    MERGE_FAILED = 75
    WALL_CLOCK = 124
    CANCELLED = 130


class KernelcourtError(Exception):
    """Base of all errors whose text is meant for a person: what happened, with which input, what to do."""

    exit_code: ExitCode = ExitCode.FAILED


class UsageError(KernelcourtError):
    exit_code = ExitCode.USAGE


class TaskError(UsageError):
    """A kernel's manifest, reference or folder is wrong."""


class ConfigError(UsageError):
    exit_code = ExitCode.CONFIGURATION


class EnvironmentFault(KernelcourtError):
    """This machine lacks something that the work needs."""


class JudgeFault(KernelcourtError):
    """The judge failed at its own work; it costs the submission nothing."""

    exit_code = ExitCode.JUDGE_FAULT


class BaselineFault(JudgeFault):
    """What a submission was to be faster than failed."""


class ShardError(KernelcourtError):
    """A results database is corrupt, foreign or half-written; the message names the file."""

    exit_code = ExitCode.MERGE_FAILED
