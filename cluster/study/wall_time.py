"""Wall times as Slurm writes them: text to seconds and back."""

import re

_TIME = re.compile(
    r"(?:(?P<days>\d+)-(?P<h>\d+)(?::(?P<m>\d+))?(?::(?P<s>\d+))?)"
    r"|(?:(?P<hours>\d+):(?P<minutes>\d+):(?P<seconds>\d+))"
    r"|(?:(?P<only_minutes>\d+)(?::(?P<only_seconds>\d+))?)"
)


def parse_wall(text: object) -> int:
    """Seconds of a Slurm time: `90` and `90:30` are minutes, `24:00:00` hours, `1-12` and `1-12:30:00` days.

    Raises:
        ValueError: it is none, or no time at all.
    """
    # Unquoted, YAML takes 24:00:00 for a number to the base of 60.
    if not isinstance(text, str):
        raise ValueError(f'write it quoted and as Slurm does, such as "24:00:00", not {text!r}')
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no time; write it as Slurm does, such as 24:00:00 (hours) or 1-12 (days-hours)")
    part = {name: int(value or 0) for name, value in found.groupdict().items()}
    hours = 24 * part["days"] + part["h"] + part["hours"]
    minutes = part["m"] + part["minutes"] + part["only_minutes"]
    total = 3600 * hours + 60 * minutes + part["s"] + part["seconds"] + part["only_seconds"]
    if total == 0:
        raise ValueError(f"{text!r} is no time at all; a job needs some")
    return total


def wall_text(seconds: int) -> str:
    """`26:30:00`, which sbatch reads."""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
