"""`experiments/prices.yaml`: what hosted models cost."""

from agent.prices import PriceTable
from cluster.study.places import folders_of
from cluster.study.yaml_files import read_yaml


def price_table() -> PriceTable | None:
    """The operator's own table where there is one, else the shipped one.

    Raises:
        ConfigError: a file is wrong; its line and key are named.
    """
    for path in folders_of("prices.yaml"):
        if path.is_file():
            return read_yaml(path, PriceTable)[0]
    return None
