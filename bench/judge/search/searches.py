"""The life of a search: paced, found, read, summed up, answered. It is logged and counted, graded by nobody."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

import httpx
import structlog

from bench.judge.refusal import Refused
from bench.judge.schemas import SearchAnswer, SearchRequest, Source
from bench.judge.search.config import SearchConfig
from bench.judge.search.excerpts import excerpt
from bench.judge.search.pace import Pace
from bench.judge.search.pages import PageFault, Pages
from bench.judge.search.provider import Found, Provider, SearchFault
from bench.judge.search.reading import Reading
from bench.judge.search.summing_up import SummaryFault, summary_of

log = structlog.get_logger()

NO_MODEL = "no model sums up here; these are excerpts"


class Searches:
    """All searches of one judge. One event loop; `counted` is told how each ended (for metrics).

    `timed` says which cores timed code runs on. Close it.
    """

    def __init__(
        self, config: SearchConfig, key: str, timed: Callable[[], Collection[int]], counted: Callable[[str], None]
    ) -> None:
        self._config, self._counted = config, counted
        # A site's web proxy is asked for what lies outside, and does not know the job's engines.
        self._outside = httpx.AsyncClient(trust_env=True, timeout=config.timeout_s)
        self._inside = httpx.AsyncClient(trust_env=False)
        self._provider = Provider(self._outside, config, key)
        self._pages, self._reading = Pages(config), Reading(timed)
        self._pace = Pace(config.per_minute, config.per_episode)
        self._turns = asyncio.Semaphore(config.at_once)

    async def close(self) -> None:
        self._reading.close()
        await asyncio.gather(self._pages.close(), self._inside.aclose(), self._outside.aclose())

    async def answer(self, label: str | None, request: SearchRequest) -> str:
        """Search for an episode; the answer's JSON text.

        Raises:
            Refused: 429 and 403 when it searches too often, 504 when the provider fails or all takes too long.
        """
        began = asyncio.get_running_loop().time()
        try:
            self._pace.take(label)
            async with self._turn(began):
                found = await self._within(began + self._config.timeout_s, request.query)
                answer, tokens = await self._summed_up(request.query, found)
        except Refused as refused:
            self._counted(refused.code)
            log.warning("search_refused", label=label, query=request.query, code=refused.code, why=refused.message)
            raise
        self._counted("answered" if answer.answer is None else "summed_up")
        read = sum(source.unread is None for source in found)
        took_s = round(asyncio.get_running_loop().time() - began, 3)
        facts = {"sources": len(found), "read": read, "seconds": took_s, "tokens": tokens, "note": answer.note}
        log.info("searched", label=label, query=request.query, **facts)
        return answer.model_dump_json()

    @asynccontextmanager
    async def _turn(self, began: float) -> AsyncIterator[None]:
        """One of the places for searches; raises Refused when none is free in time."""
        try:
            async with asyncio.timeout_at(began + self._config.timeout_s):
                await self._turns.acquire()
        except TimeoutError as error:
            raise _failed(f"{self._config.at_once} other searches took all the time") from error
        try:
            yield
        finally:
            self._turns.release()

    async def _within(self, ends: float, query: str) -> tuple[Source, ...]:
        """The sources for a query, found and read in time."""
        try:
            async with asyncio.timeout_at(ends):
                results = await self._provider.find(query)
        except SearchFault as fault:
            raise _failed(f"the search provider {fault}") from fault
        except TimeoutError as error:
            raise _failed(f"the search provider took longer than {self._config.timeout_s:g} s") from error
        first = results[: self._config.pages]
        read = await asyncio.gather(*(self._source(found, query, ends) for found in first))
        return (*read, *(_unread(found, "beyond the pages that are read") for found in results[len(first) :]))

    async def _source(self, found: Found, query: str, ends: float) -> Source:
        try:
            async with asyncio.timeout_at(ends):
                text = await self._reading.text_of(await self._pages.fetch(found.url))
        except PageFault as fault:
            return _unread(found, str(fault))
        except TimeoutError:
            return _unread(found, "no time was left to read it")
        return Source(title=found.title, url=found.url, text=excerpt(text, query, self._config.excerpt_chars))

    async def _summed_up(self, query: str, sources: tuple[Source, ...]) -> tuple[SearchAnswer, int | None]:
        """The answer, and the tokens of its summary."""
        model, answer = self._config.model, SearchAnswer(query=query, sources=sources)
        if not sources:
            return answer.model_copy(update={"note": "nothing was found; ask in other words"}), None
        if model is None:
            return answer.model_copy(update={"note": NO_MODEL}), None
        try:
            summary = await summary_of(self._inside, model, query, sources)
        except SummaryFault as fault:
            note = f"the model {model.model} {fault}; these are excerpts"
            return answer.model_copy(update={"note": note}), None
        return answer.model_copy(update={"answer": summary.text, "model": model.model}), summary.tokens


def _unread(found: Found, why: str) -> Source:
    return Source(title=found.title, url=found.url, text=found.snippet, unread=why)


def _failed(why: str) -> Refused:
    # Neither 502 nor 503: those say that this rank is lost.
    return Refused(504, "search_failed", f"{why}; go on without, or search again in a minute")
