"""`kcourt serve`: a judge that curl can use, and its configuration."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from bench.config import JudgeConfig
from bench.judge.schemas import Preset

PROGRAM = str(Path(sys.executable).with_name("kcourt"))


def test_an_open_judge_says_where_it_is_and_leaves_when_asked(tmp_path: Path) -> None:
    argv = [PROGRAM, "serve", "--port", "0", "--preset", "S", "--allow-sandbox", "limits", "--json"]
    with subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stdout is not None
            said = json.loads(serving.stdout.readline())
            assert said["curl"].startswith(f"curl {said['url']}/score")
            assert httpx.get(f"{said['url']}/health").status_code in (200, 502)
        finally:
            serving.send_signal(signal.SIGTERM)
        assert serving.wait(30) == 0
    config = JudgeConfig.read(Path(said["config"]))
    assert config.shard.is_relative_to(tmp_path / ".scratch")
    assert (config.preset, config.allow_sandbox, config.secret_file) == (Preset.S, "limits", None)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{", "judge.json"),
        ('{"rank": 0}', "shard"),
        ('{"shard": "s", "log_dir": "l", "cache_dir": "c", "ports": 1}', "ports"),
    ],
    ids=["no-json", "missing", "unknown"],
)
def test_a_wrong_configuration_is_named(tmp_path: Path, text: str, names: str) -> None:
    path = tmp_path / "judge.json"
    path.write_text(text)
    done = subprocess.run([PROGRAM, "serve", "--config", path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 64
    assert names in done.stderr and "Traceback" not in done.stderr
