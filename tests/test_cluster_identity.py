"""Names of setups: what differs from the usual, in order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.study.hardware import shown_hardware
from cluster.study.identity import Identity, temperature_text


@pytest.mark.parametrize(
    ("axes", "name"),
    [
        pytest.param({}, "standard-gpt5-c", id="defaults"),
        pytest.param({"hardware": "h200"}, "standard-h200-gpt5-c", id="hardware"),
        pytest.param({"treatment": "skills+hints"}, "standard-gpt5-c-skills+hints", id="treatment"),
        pytest.param({"harness": "codex", "effort": "high"}, "standard-gpt5-c-codex-ehigh", id="harness-effort"),
        pytest.param({"temperature": 0.7}, "standard-gpt5-c-t0.7", id="temperature"),
        pytest.param({"temperature": 0.0, "effort": "low"}, "standard-gpt5-c-elow-t0", id="temperature-zero"),
    ],
)
def test_the_name_has_what_differs_from_the_usual(axes, name):
    assert (
        Identity(**{"experiment": "standard", "hardware": None, "model": "gpt5", "language": "c"} | axes).name == name
    )


@pytest.mark.parametrize(
    ("hardware", "experiment", "shown"),
    [
        pytest.param("mi300", "standard", None, id="base"),
        pytest.param("h200", "standard", "h200", id="other"),
        pytest.param("h200", "standard-h200", None, id="experiment-says-it"),
        pytest.param("h200", "xh200", "h200", id="part-of-a-word"),
        pytest.param("", "standard", None, id="unknown"),
    ],
)
def test_hardware_is_shown_where_it_tells_setups_apart(hardware, experiment, shown):
    assert shown_hardware(hardware, "mi300", experiment) == shown


@given(st.floats(0, 2))
def test_a_temperature_is_written_exactly_and_without_exponent(temperature):
    text = temperature_text(temperature)
    assert float(text) == temperature and set(text) <= set("0123456789.")
