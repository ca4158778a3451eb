"""What tokens cost: a table of prices by model, and what a usage comes to; null wherever something is not known."""

import datetime
from typing import Annotated

from pydantic import Field

from agent.usage import Usage
from bench.judge.schemas import Closed

MILLION = 1_000_000
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Prices(Closed):
    """USD per million tokens of each kind, where that is written, and when it was read there."""

    fresh: Price
    cached: Price
    output: Price
    source: Annotated[str, Field(min_length=1)]
    date: datetime.date

    def dollars(self, usage: Usage) -> float | None:
        """What `usage` costs; None when one of its kinds was not reported."""
        kinds = (
            (usage.tokens_fresh, self.fresh),
            (usage.tokens_cached, self.cached),
            (usage.tokens_output, self.output),
        )
        total = 0.0
        for tokens, price in kinds:
            if tokens is None:
                return None
            total += tokens * price / MILLION
        return total


class PriceTable(Closed):
    """`prices.yaml`: prices by the name that a model is asked for; `version` changes when a price does."""

    version: Annotated[str, Field(min_length=1)]
    models: dict[str, Prices]

    def dollars(self, model: str, usage: Usage) -> float | None:
        """What `usage` of a model costs; None for a model that is not in the table, however like another's its name."""
        prices = self.models.get(model)
        return prices.dollars(usage) if prices else None
