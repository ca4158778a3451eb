"""Fetches pages that nobody here chose: bounded in time, size and redirects, and from where pages may come alone."""

import asyncio
import socket
from contextlib import aclosing
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from urllib.request import getproxies, proxy_bypass

import httpx

from bench.judge.search.addresses import may_serve
from bench.judge.search.body import read_up_to
from bench.judge.search.config import SearchConfig

REDIRECTS = 5
KINDS = {"text/html": "html", "application/xhtml+xml": "html", "text/plain": "plain", "text/markdown": "plain"}
USER_AGENT = "Mozilla/5.0 (compatible; kernelcourt)"
_PORTS = {"http": 80, "https": 443}
# Unpacked on arrival, a small body could become a huge one.
_HEADERS = {"User-Agent": USER_AGENT, "Accept": ", ".join(KINDS), "Accept-Encoding": "identity"}


class PageFault(Exception):
    """Why a page was not read, in a few words."""


@dataclass(frozen=True)
class Page:
    """A page as it arrived: `kind` is html or plain, `charset` what its sender says."""

    content: bytes
    kind: str
    charset: str


@dataclass(frozen=True)
class Hop:
    """One request: `url` is asked for, at `address` unless the site's proxy is to find it."""

    url: httpx.URL
    address: str | None


class Pages:
    """Reads pages; close it."""

    def __init__(self, config: SearchConfig) -> None:
        self._config = config
        # One connection a request: connections are known by their address, and two hosts may have the same.
        limits = httpx.Limits(max_keepalive_connections=0)
        self._direct, self._proxied = (
            httpx.AsyncClient(trust_env=by_proxy, limits=limits, timeout=config.page_timeout_s, cookies=_no_cookies())
            for by_proxy in (False, True)
        )

    async def fetch(self, address: str) -> Page:
        """The page at a web address.

        Raises:
            PageFault: it may not be read, cannot be, takes too long, or is no text.
        """
        try:
            async with asyncio.timeout(self._config.page_timeout_s):
                return await self._followed(address)
        except TimeoutError as error:
            raise PageFault(f"took longer than {self._config.page_timeout_s:g} s") from error
        except (httpx.TransportError, httpx.InvalidURL, OSError, UnicodeError) as error:
            raise PageFault(f"cannot be reached ({type(error).__name__})") from error

    async def close(self) -> None:
        await self._direct.aclose()
        await self._proxied.aclose()

    async def _followed(self, address: str) -> Page:
        url = httpx.URL(address)
        for _ in range(REDIRECTS + 1):
            hop = await self._checked(url)
            async with aclosing(await self._send(hop)) as answer:
                if not answer.has_redirect_location:
                    return await self._page(answer)
                url = hop.url.join(answer.headers["location"])
        raise PageFault(f"redirects more than {REDIRECTS} times")

    async def _checked(self, url: httpx.URL) -> Hop:
        """How a URL is asked for; it is connected to at the very address that was looked at."""
        if url.scheme not in _PORTS or not url.host:
            raise PageFault("is no http or https address")
        if url.userinfo:
            raise PageFault("has a password in its address")
        port, proxied = url.port or _PORTS[url.scheme], is_proxied(url)
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                url.raw_host.decode("ascii"), port, type=socket.SOCK_STREAM
            )
        except OSError as error:
            if proxied:  # the nodes of such a site may know no outside names
                return Hop(url, None)
            raise PageFault("has an unknown host") from error
        addresses = [str(entry[4][0]) for entry in sorted(found, key=lambda entry: entry[0] != socket.AF_INET)]
        if not all(may_serve(text, port, self._config.networks) for text in addresses):
            raise PageFault("is not on the public web")
        return Hop(url, None if proxied else addresses[0])

    async def _send(self, hop: Hop) -> httpx.Response:
        if hop.address is None:
            return await self._proxied.send(self._proxied.build_request("GET", hop.url, headers=_HEADERS), stream=True)
        request = self._direct.build_request(
            "GET",
            hop.url.copy_with(host=hop.address, fragment=None),
            headers={"Host": hop.url.netloc.decode("ascii"), **_HEADERS},
            extensions={"sni_hostname": hop.url.raw_host.decode("ascii")},
        )
        return await self._direct.send(request, stream=True)

    async def _page(self, answer: httpx.Response) -> Page:
        if answer.status_code != httpx.codes.OK:
            raise PageFault(f"answers {answer.status_code}")
        kind = KINDS.get(answer.headers.get("content-type", "").partition(";")[0].strip().lower())
        if kind is None:
            raise PageFault("is no text")
        if answer.headers.get("content-encoding", "identity").lower() != "identity":
            raise PageFault("comes packed, although it was asked for as it is")
        content = await read_up_to(answer, self._config.page_bytes)
        if b"\0" in content:
            raise PageFault("is no text")
        return Page(content, kind, answer.charset_encoding or "")


def _no_cookies() -> CookieJar:
    """A jar that keeps nothing: what a page learns of one episode is not for the next."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=()))


def is_proxied(url: httpx.URL) -> bool:
    """Whether the environment sends requests for a URL through a proxy of the site."""
    return url.scheme in getproxies() and not proxy_bypass(url.host)
