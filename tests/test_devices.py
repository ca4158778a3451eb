"""Which GPUs there are and how they are doing, by what vendors' tools and drivers show; without one, a word on that."""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran
from kernels import HONEST_HIP

from bench.devices import cuda, hip
from bench.devices.card import Card
from bench.errors import EnvironmentFault

SMI = """\
#!/bin/sh
case "$1" in
*compute_cap*) echo '0, NVIDIA H200, 9.0, 580.82.07'; echo '1, NVIDIA H200, 9.0, 580.82.07';;
*) echo '1980, 3201, 118.20, 31, [N/A]';;
esac
"""


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An `nvidia-smi` of two cards, found before any other."""
    program = tmp_path / "nvidia-smi"
    program.write_text(SMI)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return program


def test_cards_of_nvidia_are_those_that_its_tool_lists(smi: Path) -> None:
    assert cuda.cards() == (
        Card(0, "NVIDIA H200", "sm_90", "580.82.07"),
        Card(1, "NVIDIA H200", "sm_90", "580.82.07"),
    )


def test_a_state_has_what_the_tool_knows(smi: Path) -> None:
    found = cuda.state(Card(0, "NVIDIA H200", "sm_90", "580.82.07"))
    assert found == {"mhz": 1980, "memory_mhz": 3201, "watts": 118.2, "celsius": 31}


@pytest.mark.parametrize(
    ("script", "words"),
    [("exit 9", "nvidia-smi says"), ("echo 'no devices were found'", "lists none")],
    ids=["fails", "lists none"],
)
def test_a_tool_that_shows_no_card_is_an_environment_fault(smi: Path, script: str, words: str) -> None:
    smi.write_text(f"#!/bin/sh\n{script}\n")
    with pytest.raises(EnvironmentFault, match=words):
        cuda.cards()
    assert cuda.state(Card(0, "", "sm_90", "")) == {}


def test_a_card_that_this_version_does_not_know_is_named() -> None:
    with pytest.raises(EnvironmentFault, match="Old is of sm_35; this version grades on sm_90"):
        cuda.kit(Card(0, "Old", "sm_35", ""))
    with pytest.raises(EnvironmentFault, match="Odd is of gfx1100; this version grades on gfx90a, gfx942, gfx950"):
        hip.kit(Card(0, "Odd", "gfx1100", ""))


@pytest.mark.parametrize(
    ("version", "name"),
    [(90010, "gfx90a"), (90402, "gfx942"), (90500, "gfx950"), (110000, "gfx1100"), (90006, "gfx906")],
)
def test_an_architecture_has_its_compilers_name(version: int, name: str) -> None:
    assert hip.architecture(version) == name


@pytest.fixture
def sys(tmp_path: Path) -> Path:
    """What Linux shows of a processor and two cards of AMD, beside one of another vendor."""
    files = {
        "module/amdgpu/version": "6.12.12",
        "class/kfd/kfd/topology/nodes/0/properties": "cpu_cores_count 96\nsimd_count 0\ngfx_target_version 0",
        "class/kfd/kfd/topology/nodes/1/properties": "simd_count 1216\ngfx_target_version 90402",
        "class/kfd/kfd/topology/nodes/10/properties": "simd_count 1216\ngfx_target_version 90402",
        "class/drm/card0/device/vendor": "0x1a03",
        "class/drm/card2/device/vendor": "0x1002",
        "class/drm/card2/device/pp_dpm_sclk": "0: 132Mhz\n1: 2100Mhz *",
        "class/drm/card2/device/gpu_busy_percent": "7",
        "class/drm/card2/device/hwmon/hwmon4/power1_average": "142000000",
        "class/drm/card2/device/hwmon/hwmon4/temp1_input": "38000",
        "class/drm/card10/device/vendor": "0x1002",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return tmp_path


def test_cards_of_amd_are_the_nodes_that_compute(sys: Path) -> None:
    assert hip.cards(sys) == (Card(0, "gfx942", "gfx942", "6.12.12"), Card(1, "gfx942", "gfx942", "6.12.12"))
    shown = {"mhz": 2100.0, "watts": 142.0, "celsius": 38.0, "load_percent": 7.0}
    assert hip.state(hip.cards(sys)[0], sys) == pytest.approx(shown)
    assert hip.state(hip.cards(sys)[1], sys) == {}
    assert hip.state(Card(5, "", "", ""), sys) == {}


def test_a_machine_without_cards_of_amd_says_so(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"no GPU of AMD was found below .*; load its driver"):
        hip.cards(tmp_path)


@pytest.mark.parametrize(("device", "words"), [("cuda", "no GPU of NVIDIA"), ("hip", "no GPU of AMD")])
def test_a_grade_on_a_gpu_that_is_not_here_is_refused_in_words(
    kcourt: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, words: str
) -> None:
    monkeypatch.setenv("PATH", "/usr/sbin:/usr/bin:/bin")
    (tmp_path / "axpy.hip").write_text(HONEST_HIP)
    try:
        cuda.cards() if device == "cuda" else hip.cards()
        pytest.skip("there is one")
    except EnvironmentFault:
        done = kcourt("grade", "axpy", "axpy.hip", "--device", device, "--allow-sandbox", "limits")
    assert (done.code, done.out) == (3, "") and words in done.err and "Traceback" not in done.err
