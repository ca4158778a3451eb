"""Asks a search API that answers as SerpAPI does: which pages are about a query."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx

from bench.judge.search.body import read_up_to
from bench.judge.search.config import SearchConfig

ANSWER_CAP_BYTES = 4 << 20
TITLE_CHARS, URL_CHARS, SNIPPET_CHARS = 300, 2000, 1000
_CAUSES: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: "refuses the key",
    HTTPStatus.FORBIDDEN: "refuses the key",
    HTTPStatus.TOO_MANY_REQUESTS: "takes no more searches of this account now",
}


class SearchFault(Exception):
    """No results, and why: a sentence about the provider that goes on after its name. It never holds the key."""


@dataclass(frozen=True)
class Found:
    """One result; `snippet` is the provider's own excerpt."""

    title: str
    url: str
    snippet: str


class Provider:
    """The provider with its key, which leaves for the provider alone."""

    def __init__(self, client: httpx.AsyncClient, config: SearchConfig, key: str) -> None:
        self._client, self._config, self._key = client, config, key

    async def find(self, query: str) -> tuple[Found, ...]:
        """The results for a query, best first.

        Raises:
            SearchFault: the provider cannot be reached, refuses, or answers something else.
        """
        asked = {"engine": self._config.engine, "q": query, "num": str(self._config.results), "api_key": self._key}
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        request = self._client.build_request("GET", self._config.provider, params=asked, headers=headers)
        try:
            answer = await self._client.send(request, stream=True)
            try:
                body = await read_up_to(answer, ANSWER_CAP_BYTES)
            finally:
                await answer.aclose()
        except httpx.TransportError as error:
            raise SearchFault(f"does not answer ({type(error).__name__})") from error
        if answer.status_code != HTTPStatus.OK:
            raise SearchFault(_CAUSES.get(answer.status_code, f"answers {answer.status_code}"))
        return tuple(results_of(body.replace(self._key.encode(), b"")))[: self._config.results]


def results_of(body: bytes) -> Iterator[Found]:
    """The organic results in an answer, in their order; what has no title or web address is passed over.

    Raises:
        SearchFault: it is no answer, or reports that the search failed.
    """
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise SearchFault("answers something that is not JSON") from error
    if not isinstance(answer, dict):
        raise SearchFault("answers something that is no JSON object")
    # That nothing was found is reported as an error of a search that succeeded.
    metadata = answer.get("search_metadata")
    if isinstance(metadata, dict) and metadata.get("status") == "Error":
        raise SearchFault("reports that the search failed")
    results = answer.get("organic_results")
    for result in results if isinstance(results, list) else ():
        if isinstance(result, dict) and (found := _found(result)):
            yield found


def _found(result: dict[str, Any]) -> Found | None:
    title, url, snippet = (result.get(name) for name in ("title", "link", "snippet"))
    if not isinstance(title, str) or not isinstance(url, str) or not url.startswith(("http://", "https://")):
        return None
    text = snippet if isinstance(snippet, str) else ""
    return Found(one_line(title, TITLE_CHARS), one_line(url, URL_CHARS), one_line(text, SNIPPET_CHARS))


def one_line(text: str, limit_chars: int) -> str:
    """A text without line ends and half characters, cut."""
    return " ".join(text.encode(errors="replace").decode().split())[:limit_chars]
