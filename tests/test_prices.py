"""What tokens cost: a table by model, null wherever something is not known, and never a client's own guess."""

import json
from pathlib import Path
from typing import Any

import pytest
from agent_node import DONE, READY, NodeFiles
from hypothesis import given
from hypothesis import strategies as st

from agent.endpoint import ModelService
from agent.prices import Prices, PriceTable
from agent.usage import NOTHING, Usage
from bench.errors import ConfigError
from cluster.study.layers import known_layers, read_layer
from cluster.study.places import layers_root
from cluster.study.prices import price_table

PRICES = {"fresh": 3, "cached": 0.3, "output": 15, "source": "https://prices.example", "date": "2026-01-02"}
TABLE = PriceTable.model_validate({"version": "v1", "models": {"sonnet": PRICES}})
COUNTS = st.integers(0, 10**9)


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        (Usage(1_000_000, 0, 0), 3.0),
        (Usage(0, 1_000_000, 0), 0.3),
        (Usage(200_000, 1_000_000, 100_000), 2.4),
        (Usage(0, 0, 0), 0.0),
        (Usage(1_000_000, None, 100), None),
        (NOTHING, None),
    ],
    ids=["fresh", "cached", "all-kinds", "nothing-used", "a-kind-unreported", "nothing-reported"],
)
def test_tokens_are_priced_by_kind(usage: Usage, dollars: float | None) -> None:
    assert TABLE.dollars("sonnet", usage) == (None if dollars is None else pytest.approx(dollars))


@pytest.mark.parametrize("model", ["sonnet-5", "Sonnet", "sonnet ", ""])
def test_an_unknown_model_has_no_price(model: str) -> None:
    assert TABLE.dollars(model, Usage(1, 1, 1)) is None


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_a_whole_costs_what_its_parts_cost(fresh: int, cached: int, output: int, more: int) -> None:
    prices, one, other = TABLE.models["sonnet"], Usage(fresh, cached, output), Usage(more, more, more)
    parts = [prices.dollars(part) or 0.0 for part in (one, other)]
    assert prices.dollars(one + other) == pytest.approx(sum(parts))


def test_the_shipped_table_prices_every_hosted_model_that_has_a_layer() -> None:
    table = price_table()
    assert table is not None
    layers = layers_root() / "layers"
    values = [read_layer(layers / f"{name}.env").values for name in known_layers(layers)]
    hosted = {given["INFERENCE_SERVICE_MODEL"] for given in values if "INFERENCE_SERVICE_MODEL" in given}
    assert hosted and hosted <= set(table.models)
    for prices in table.models.values():
        assert 0 <= prices.cached < prices.fresh < prices.output
        assert prices.source.startswith("https://")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('version: "1"\nmodels:\n  m: {fresh: 1, cached: 1}\n', ":3: models.m.output: Field required"),
        ('version: "1"\nmodels:\n  m:\n    fresh: -1\n', ":4: models.m.fresh: "),
        ("models: {}\n", ":1: version: Field required"),
        ('version: "1"\nmodels: {}\nmodel: {}\n', ":3: model: unknown key; did you mean 'models'?"),
        ("version: [\n", ": not valid YAML"),
    ],
    ids=["no-output", "negative", "no-version", "typo", "not-yaml"],
)
def test_a_wrong_table_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: str
) -> None:
    (tmp_path / "prices.yaml").write_text(text)
    monkeypatch.setenv("KCOURT_EXPERIMENTS_DIR", str(tmp_path))
    with pytest.raises(ConfigError, match=f"^{tmp_path}/prices.yaml.*{expected}"):
        price_table()


def test_an_operators_own_table_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCOURT_EXPERIMENTS_DIR", str(tmp_path))
    shipped = price_table()
    lines = "".join(f"    {name}: {value}\n" for name, value in PRICES.items())
    (tmp_path / "prices.yaml").write_text(f'version: "v1"\nmodels:\n  sonnet:\n{lines}')
    assert (shipped != TABLE, price_table()) == (True, TABLE)
    assert TABLE.models["sonnet"] == Prices.model_validate(PRICES)


# An episode's record

USED = '{"fresh": 1000, "cached": 2000, "tokens": 100, "total_cost_usd": 9.99}'
SAY = "; ".join(f"echo '{line}'" for line in (READY, USED, DONE))


@pytest.mark.parametrize(
    ("model", "asks", "prices", "expected"),
    [
        ("sonnet", True, TABLE, (pytest.approx(0.0051), "v1")),
        ("another", True, TABLE, (None, None)),
        ("sonnet", True, None, (None, None)),
        ("sonnet", False, TABLE, (None, None)),
        (None, False, TABLE, (None, None)),
    ],
    ids=["known", "unknown-model", "no-table", "asks-nobody", "no-model"],
)
def test_an_episode_is_priced_by_the_served_model(
    tmp_path: Path, model: str | None, asks: bool, prices: PriceTable | None, expected: Any
) -> None:
    service = ModelService(urls=("http://127.0.0.1:9",), model=model, wires=("messages",)) if model else None
    node = NodeFiles(tmp_path, ["http://127.0.0.1:9"], service=service, prices=prices, seal="off")
    node.rogue("s", ["axpy"], shell=SAY, wire="messages" if asks else "none")
    node.run()
    record = json.loads((node.episode("s", "axpy") / "tokens.json").read_text())
    assert (record["tokens_fresh"], record["tokens_cached"], record["tokens_output"]) == (1000, 2000, 100)
    assert (record["dollars"], record["prices"]) == expected
    assert (record["score_calls"], record["submit_calls"], record["outcome"]) == (0, 0, None)
