"""`kcourt serve`: a judge that curl can use, and its configuration."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from judge_rank import write_config

from bench.config import JudgeConfig
from bench.errors import ConfigError
from bench.judge.schemas import Preset

Kcourt = Callable[..., Any]
PROGRAM = str(Path(sys.executable).with_name("kcourt"))


def test_an_open_judge_says_where_it_is_and_leaves_when_asked(tmp_path: Path) -> None:
    argv = [PROGRAM, "serve", "--port", "0", "--preset", "S", "--allow-sandbox", "limits", "--json"]
    with subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stdout is not None
            said = json.loads(serving.stdout.readline())
            assert said["curl"].startswith(f"curl {said['url']}/score")
            assert httpx.get(f"{said['url']}/health", timeout=60).status_code in (200, 502)
        finally:
            serving.send_signal(signal.SIGTERM)
        assert serving.wait(120) == 0
    config = JudgeConfig.read(Path(said["config"]))
    assert config.shard.is_relative_to(tmp_path / ".scratch")
    assert (config.preset, config.allow_sandbox, config.secret_file) == (Preset.S, "limits", None)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{", "judge.json"),
        ("é", "judge.json"),
        ('{"rank": 0}', "shard"),
        ('{"shard": "s", "log_dir": "l", "cache_dir": "c", "ports": 1}', "ports"),
    ],
    ids=["no-json", "not-utf8", "missing", "unknown"],
)
def test_a_wrong_configuration_is_named_by_the_command(kcourt: Kcourt, tmp_path: Path, text: str, names: str) -> None:
    path = tmp_path / "judge.json"
    path.write_text(text, encoding="latin-1")
    done = kcourt("serve", "--config", path)
    assert done.code == 64
    assert names in done.err


REFUSED = {
    "final-unknown": ({"final_protocol": "mw9x9"}, "final_protocol: 'mw9x9' is no final protocol; those are mw4x5"),
    "final-a-calibration": ({"final_protocol": "mw4x5-aa"}, "final_protocol: 'mw4x5-aa' is no final protocol"),
    "preview-a-final": ({"preview_protocol": "mw4x5"}, "preview_protocol: 'mw4x5' is no preview protocol"),
    "device": ({"device": "tpu"}, "device: .*'cpu', 'cuda' or 'hip'"),
    "timing-cores-alone": ({"timing_cores": [1]}, "timing_cores and clock_core both"),
    "clock-core-alone": ({"clock_core": 1}, "timing_cores and clock_core both"),
    "one-core-for-both": ({"timing_cores": [0, 1], "clock_core": 1}, "clock_core another one"),
    "no-timing-core": ({"timing_cores": [], "clock_core": 1}, "at least one core"),
    "unknown": ({"ports": 1}, "ports: unknown key; known: rank, ranks"),
}


@pytest.mark.parametrize(("settings", "says"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_configuration_is_refused(tmp_path: Path, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=f"judge.json: .*{says}"):
        JudgeConfig.read(write_config(tmp_path, **settings))


UNABLE = {
    "level": (["--port", "0"], {}, 1, "say --allow-sandbox limits"),
    "level-in-file": ([], {"allow_sandbox": "full"}, 1, "say --allow-sandbox limits"),
    "bogus-level": (["--allow-sandbox", "strong", "--port", "0"], {}, 2, "'strong' is no sandbox level"),
    "bogus-level-in-file": ([], {"allow_sandbox": "strong"}, 2, "'strong' is no sandbox level"),
    "core": ([], {"allow_sandbox": "limits", "timing_cores": [4095], "clock_core": 0}, 1, "core 4095 does not exist"),
    "port-beside-file": (["--port", "9000"], {"allow_sandbox": "limits"}, 2, "--port is for an open judge"),
    "level-beside-file": (["--allow-sandbox", "limits"], {"allow_sandbox": "limits"}, 2, "leave --allow-sandbox out"),
    "preset-beside-file": (["--preset", "S"], {"allow_sandbox": "limits"}, 2, "leave --preset out"),
}


@pytest.mark.parametrize(("arguments", "settings", "exit_code", "says"), UNABLE.values(), ids=UNABLE)
def test_a_judge_that_cannot_serve_ends_before_it_announces_itself(
    kcourt: Kcourt,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    settings: dict[str, Any],
    exit_code: int,
    says: str,
) -> None:
    monkeypatch.setenv("KCOURT_SANDBOX", "limits")
    file = ["--config", write_config(tmp_path, **settings)] if settings else []
    done = kcourt("serve", *arguments, *file)
    assert (done.code, done.out) == (exit_code, "")
    assert says in done.err
