"""Tool `search`: looks something up on the web, through the judge."""

from pydantic import Field

from agent.tools.shown import looked_up
from agent.tools.spec import Spec
from bench.judge.schemas import Closed


class SearchInput(Closed):
    query: str = Field(description="What to look up, in a few words.", min_length=1, max_length=500)


SPEC = Spec(
    "Look something up on the web: sources with excerpts, or a summary of them. It counts as nothing.",
    SearchInput,
    lambda box, given: looked_up(box.judge.search(given.query)),
)
