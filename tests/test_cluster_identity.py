"""Names of setups: written in order, read from the right, and never two setups of one name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import UsageError
from cluster.study.hardware import shown_hardware
from cluster.study.identity import Identity, Known, parse, temperature_text

KNOWN = Known(
    experiments=("standard", "h200-only", "multi"),
    models=("qwen3coder", "gpt5", "glm-4.5"),
    languages=("c", "cpp", "fortran"),
    hardware=("mi300", "h200"),
    treatments=("hints", "skills", "profile"),
    harnesses=("claude_code", "codex", "scripted"),
)


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


@given(
    st.builds(
        Identity,
        experiment=st.sampled_from(KNOWN.experiments),
        hardware=st.none() | st.sampled_from(KNOWN.hardware),
        model=st.sampled_from(KNOWN.models),
        language=st.sampled_from(KNOWN.languages),
        treatment=st.sampled_from(("none", "hints", "hints+skills", "skills+hints")),
        harness=st.sampled_from(KNOWN.harnesses),
        effort=st.none() | st.from_regex("[a-z0-9]+", fullmatch=True),
        temperature=st.none() | st.floats(0, 2),
    )
)
def test_a_name_is_read_back(identity):
    assert parse(identity.name, KNOWN) == identity


def test_a_name_that_two_setups_have_is_refused():
    known = Known(("standard", "standard-h200"), ("gpt5",), ("c",), hardware=("h200",))
    with pytest.raises(UsageError, match="can be read as"):
        parse("standard-h200-gpt5-c", known)


@pytest.mark.parametrize(
    "name",
    ["standard", "gpt5-c", "standard-gpt5", "standard-gpt5-c-nix", "standard-gpt5-c-none", "standard-gpt5-c-t-1"],
)
def test_a_name_of_unknown_words_is_refused(name):
    with pytest.raises(UsageError, match=f"'{name}' is no setup"):
        parse(name, KNOWN)


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
