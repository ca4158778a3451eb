"""Layers: the later wins, every value knows where it was set, shipped ones render, and mistakes are named by line."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import ConfigError
from bench.places import checkout
from cluster.study.hardware import Hardware, chosen_hardware, hardware_layer, read_hardware, shown_hardware
from cluster.study.identity import Identity
from cluster.study.layers import chain, read_layer
from cluster.study.origins import Layer, stacked, values_of
from cluster.study.settings import keys
from cluster.study.setups import experiment_layers, read_setups, settings_of

SHIPPED = checkout() / "experiments"
EXPERIMENTS = list(read_setups(SHIPPED).experiments)
MODELS = read_setups(SHIPPED).models
HARDWARE = list(read_hardware(SHIPPED))
KEYS = st.sampled_from(["JUDGE_NODES", "PRESET", "AGENT_NODES", "EFFORT"])
SETS = st.dictionaries(KEYS, st.text(string.ascii_lowercase, min_size=1, max_size=3))


def shipped(experiment, model, hardware="mi300", **own):
    """Origins of a setup of the shipped files."""
    layers = experiment_layers(experiment, model, SHIPPED)
    layers.append(hardware_layer(values_of(stacked(layers)), chosen_hardware(hardware, SHIPPED)))
    name = Identity(experiment, shown_hardware(hardware, "mi300", experiment), model, "c").name
    named = {"SETUP": name, "EXPERIMENT": experiment, "MODEL": model, "KERNELS": "axpy"}
    return stacked([*layers, Layer("setup", SHIPPED, named | own)])


def written(folder, setups="", **layers):
    """A folder of configuration; `__` in a layer's name is a dash."""
    (folder / "layers").mkdir(exist_ok=True)
    for name, text in {"common": "", **layers}.items():
        (folder / "layers" / f"{name.replace('__', '-')}.env").write_text(text)
    (folder / "setups.yaml").write_text(setups or "experiments:\n  one: {}\n")
    return folder


@given(st.lists(SETS, max_size=6))
def test_the_last_layer_wins_and_every_origin_is_right(made):
    layers = [
        Layer(f"layer {place}", SHIPPED / str(place), values, {key: line for line, key in enumerate(values, 1)})
        for place, values in enumerate(made)
    ]
    origins = stacked(layers)
    assert values_of(origins) == {key: value for values in made for key, value in values.items()}
    for key, said in origins.items():
        assert [(origin.layer, origin.value) for origin in said] == [
            (layer.name, layer.values[key]) for layer in layers if key in layer.values
        ]
        assert all(list(made[int(origin.path.name)])[origin.line - 1] == key for origin in said)


@given(*[st.lists(SETS, max_size=3)] * 3)
def test_stacking_is_associative(first, second, third):
    def whole(*parts):
        return values_of(stacked([Layer("", SHIPPED, values) for part in parts for values in part]))

    left, right = [whole(first, second)], [whole(second, third)]
    assert whole(left, third) == whole(first, right) == whole(first, second, third)


@given(st.lists(st.tuples(st.integers(0, 7), st.lists(st.integers(0, 6), max_size=3)), max_size=8))
def test_a_chain_has_parents_before_children_and_each_once(tmp_path_factory, wishes):
    folder = tmp_path_factory.mktemp("layers")
    extends = {child: [parent for parent in parents if parent < child] for child, parents in wishes}
    for number in range(8):
        named = ", ".join(f"n{parent}" for parent in extends.get(number, []))
        (folder / f"n{number}.env").write_text(
            f"# extends: {named}\nMODEL=n{number}\n" if named else f"MODEL=n{number}\n"
        )
    found = [layer.name for layer in chain("n7", folder)]
    assert found[-1] == "n7" and len(found) == len(set(found))
    for child, parents in extends.items():
        if f"n{child}" in found:
            assert all(found.index(f"n{parent}") < found.index(f"n{child}") for parent in parents)


def test_the_precedence_is_that_of_the_documents(tmp_path):
    setups = """experiments:
  base: {env: {PRESET: base, EFFORT: base}, models: {m: {LANGUAGE: base}}}
  one: {extends: base, env: {EFFORT: one, STUDY: one}, models: {m: {HARNESS: one}}}
"""
    every = ["MODEL", "TREATMENT", "PRESET", "EFFORT", "STUDY", "HARDWARE", "LANGUAGE", "HARNESS"]
    text = {
        "common": "\n".join(f"{key}=common" for key in every),
        "shape": "\n".join(f"{key}=shape" for key in every[1:]),
        "model__m": "# extends: shape\n" + "\n".join(f"{key}=model" for key in every[4:]),
    }
    origins = stacked(experiment_layers("one", "m", written(tmp_path, setups, **text)))
    assert values_of(origins) == dict(
        zip(every, ["common", "shape", "base", "one", "model", "model", "base", "one"], strict=True)
    )
    assert [(origin.layer, origin.line) for origin in origins["EFFORT"]] == [
        ("common", 4),
        ("shape", 3),
        ("experiment base", 2),
        ("experiment one", 3),
    ]
    assert str(origins["HARNESS"][-1]) == f"{tmp_path / 'setups.yaml'}:3"


def test_a_parent_model_is_a_model_and_not_a_shape(tmp_path):
    folder = written(
        tmp_path,
        "experiments:\n  one: {env: {EFFORT: low}}\n",
        shape="EFFORT=none\n",
        model__m="# extends: shape\nEFFORT=high\n",
        model__long="# extends: model-m\nINFERENCE_CONTEXT_TOKENS=9\n",
    )
    layers = experiment_layers("one", "long", folder)
    assert [layer.name for layer in layers] == ["common", "shape", "experiment one", "model-m", "model-long"]
    assert values_of(stacked(layers))["EFFORT"] == "high"


@pytest.mark.parametrize("hardware", HARDWARE)
@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize("model", MODELS)
def test_every_shipped_experiment_renders_for_every_shipped_model(experiment, model, hardware):
    settings = settings_of(shipped(experiment, model, hardware))
    assert (settings.experiment, settings.model, settings.hardware) == (experiment, model, hardware)
    assert (settings.inference_nodes == 0) == (settings.inference_source == "service")
    edfs = settings.inference_edf, settings.judge_edf
    assert hardware in ("mi300", "mi200", "cpu") or not any("mi300" in edf for edf in edfs)


def test_the_shipped_models_cover_each_way_to_get_tokens():
    found = [settings_of(shipped(EXPERIMENTS[0], model)) for model in MODELS]
    ways = [(model.inference_source, model.inference_engine, model.inference_mode) for model in found]
    assert {("served", "vllm", "replicas"), ("served", "sglang", "replicas"), ("served", "vllm", "pipeline")} < {*ways}
    assert sum(source == "service" for source, _, _ in ways) >= 2


def test_the_shipped_layers_name_known_keys_and_the_named_shapes():
    names = {path.stem for path in (SHIPPED / "layers").glob("*.env")}
    assert {"common", "served", "replicas", "sglang", "pp", "service", "serve-only"} <= names
    for name in names:
        assert chain(name, SHIPPED / "layers")


def test_serve_only_is_a_job_with_an_engine_alone():
    settings = settings_of(stacked(chain("serve-only", SHIPPED / "layers")))
    assert settings.serves_only and settings.nodes == settings.inference_nodes == 2


@pytest.mark.parametrize(
    ("text", "base", "rename", "expected"),
    [
        pytest.param("kcourt-judge-mi300", "mi300", {}, "kcourt-judge-h200", id="word"),
        pytest.param("registry/a_mi300:mi300.2", "mi300", {}, "registry/a_h200:h200.2", id="every-word"),
        pytest.param("kcourt-mi300x", "mi300", {}, "kcourt-mi300x", id="part-of-a-word"),
        pytest.param("a-mi300", "mi300", {"a-mi300": "b"}, "b", id="rule"),
        pytest.param("a-mi300", "mi300", {"a": "b"}, "a-h200", id="rules-name-the-whole"),
        pytest.param("a-mi300", "", {}, "a-mi300", id="no-base"),
    ],
)
def test_names_are_made_those_of_the_hardware(text, base, rename, expected):
    hardware = Hardware("h200", "cuda", rename, Layer("", SHIPPED, {}), 1)
    assert hardware.renamed(text, base) == expected


def test_hardware_renames_for_another_machine_alone_and_says_where():
    layers = experiment_layers("standard", "qwen3coder", SHIPPED)
    values = values_of(stacked(layers))
    same = hardware_layer(values, chosen_hardware("mi300", SHIPPED))
    other = hardware_layer(values | {"DEVICE": "hip"}, chosen_hardware("h200", SHIPPED))
    assert same.values == {"HARDWARE": "mi300"}
    assert other.values.pop("INFERENCE_EDF") == "kcourt-vllm-h200"
    assert (other.values["DEVICE"], "AGENT_EDF" in other.values) == ("cuda", False)
    assert other.where("JUDGE_EDF").startswith(f"{SHIPPED / 'hardware.yaml'}:")


SPREAD = "experiments:\n  one:\n    env:\n      PRESET: S\n    models:\n      m:\n        EFFORT: low\n"


@pytest.mark.parametrize(
    ("setups", "layers", "expected"),
    [
        pytest.param(
            SPREAD, {"model__m": "# note\n# extends: nix\n"}, ["model-m.env:2: extends: nix", "common"], id="parent"
        ),
        pytest.param(
            SPREAD,
            {"model__m": "# extends: a\n", "a": "# extends: b\n", "b": "#extends: a\n"},
            ["b.env:1: extends: a", "model-m → a → b → a"],
            id="layers-cycle",
        ),
        pytest.param(
            SPREAD + "    extends: two\n  two: {extends: one}\n",
            {"model__m": ""},
            ["setups.yaml:9: extends: one", "one → two → one"],
            id="experiments-cycle",
        ),
        pytest.param(
            SPREAD + "    extends: onee\n", {"model__m": ""}, ["setups.yaml:8: ", "'one'"], id="experiments-parent"
        ),
        pytest.param(
            SPREAD, {"model__mm": ""}, ["setups.yaml:6: model 'm'", "model-m.env", "models: mm"], id="no-layer"
        ),
        pytest.param(
            SPREAD.replace("EFFORT: low", "AGENT_MAX_TOKENS: 9"),
            {"model__m": ""},
            ["setups.yaml:7: AGENT_MAX_TOKENS", "experiment's policy"],
            id="budget-of-a-model",
        ),
        pytest.param(
            SPREAD,
            {"model__m": "# extends: a\n", "a": "AGENT_TIMEOUT_SECONDS=1\n"},
            ["a.env:1: AGENT_TIMEOUT_SECONDS", "experiment's policy"],
            id="budget-in-a-layer",
        ),
        pytest.param(
            SPREAD,
            {"model__m": "\nSERPAPI_API_KEY=hidden\n"},
            ["model-m.env:2: SERPAPI_API_KEY is a secret"],
            id="secret",
        ),
        pytest.param(
            SPREAD.replace("PRESET: S", "SERPAPI_API_KEY: hidden"),
            {"model__m": ""},
            ["setups.yaml:4: SERPAPI"],
            id="secret-yaml",
        ),
        pytest.param(SPREAD, {"model__m": "JUDGE_PROT=1\n"}, ["model-m.env:1: ", "JUDGE_PORT"], id="unknown-key"),
        pytest.param(
            SPREAD.replace("EFFORT", "EFORT"), {"model__m": ""}, ["setups.yaml:7: ", "EFFORT"], id="unknown-yaml"
        ),
        pytest.param(SPREAD.replace("env", "envs"), {"model__m": ""}, ["setups.yaml:3: ", "envs"], id="unknown-part"),
        pytest.param(SPREAD.replace("low", "[1]"), {"model__m": ""}, ["setups.yaml:7: ", "EFFORT"], id="no-scalar"),
        pytest.param("experiments: {}\n", {"model__m": ""}, ["setups.yaml:1: "], id="no-experiment"),
        pytest.param("experiments: [", {"model__m": ""}, ["setups.yaml:1: not valid YAML"], id="no-yaml"),
    ],
)
def test_a_mistake_in_layers_is_named(tmp_path, setups, layers, expected):
    with pytest.raises(ConfigError) as caught:
        experiment_layers("one", "m", written(tmp_path, setups, **layers))
    for part in expected:
        assert part in str(caught.value)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("experiment", "model", "expected"),
    [
        pytest.param("standart", "sonnet45", "did you mean 'standard'", id="experiment"),
        pytest.param("standard", "sonet45", "model-sonet45.env", id="model"),
    ],
)
def test_an_unknown_name_is_answered(experiment, model, expected):
    with pytest.raises(ConfigError, match=expected):
        experiment_layers(experiment, model, SHIPPED)


def test_an_unknown_hardware_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'mi300'"):
        chosen_hardware("mi3000", SHIPPED)


def test_a_wrong_value_is_named_where_it_was_set(tmp_path):
    folder = written(tmp_path, SPREAD.replace("PRESET: S", "PRESET: huge"), model__m="")
    origins = stacked(
        [*experiment_layers("one", "m", folder), Layer("own", tmp_path, {"SETUP": "s", "KERNELS": "axpy"})]
    )
    with pytest.raises(ConfigError, match=r"setups\.yaml:4: PRESET: .*'huge'"):
        settings_of(origins)


def test_only_what_stands_above_the_first_key_is_extended(tmp_path):
    (tmp_path / "a.env").write_text("PRESET=S\n")
    (tmp_path / "b.env").write_text("\n# a note\n\n# extends: a\nMODEL=m\n# extends: nix\n")
    assert [layer.name for layer in chain("b", tmp_path)] == ["a", "b"]


def test_a_changed_file_is_read_again(tmp_path):
    layer = tmp_path / "a.env"
    for number in range(3):
        layer.write_text(f"MODEL=m{number}\n")
        assert read_layer(layer).values == {"MODEL": f"m{number}"}


def test_no_secret_is_a_key_that_a_file_may_hold():
    assert [key for key, about in keys().items() if about.secret] == ["SERPAPI_API_KEY"]
