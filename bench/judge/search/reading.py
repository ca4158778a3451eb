"""Makes text of pages in a process of its own, at low priority and away from the core that is timed on."""

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench import process
from bench.judge.search import page_text
from bench.judge.search.pages import Page, PageFault
from bench.measure.cores import available_cores

# A page costs some ten milliseconds; one that costs seconds was made to.
LIMITS = process.Limits(wall_s=30, cpu_s=3, memory_bytes=1 << 30, file_bytes=4 << 20)
_PROGRAM = (sys.executable, "-I", "-S", page_text.__file__)


class Reading:
    """One page at a time; `timed` says which cores timed code runs on."""

    def __init__(self, timed: Callable[[], Collection[int]]) -> None:
        self._timed = timed
        self._thread = ThreadPoolExecutor(1, "reading")

    async def text_of(self, page: Page) -> str:
        """The readable text of a page.

        Raises:
            PageFault: it cannot be read within the limits, or holds no text.
        """
        text = await asyncio.get_running_loop().run_in_executor(self._thread, self._read, page)
        if not text:
            raise PageFault("holds no text")
        return text

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _read(self, page: Page) -> str:
        cores = set(available_cores())
        # Of this thread alone: what it starts inherits them.
        os.sched_setaffinity(0, cores - set(self._timed()) or cores)
        with tempfile.TemporaryDirectory() as scratch:
            source, target = Path(scratch, "page"), Path(scratch, "text")
            source.write_bytes(page.content)
            argv = [*_PROGRAM, str(source), str(target), page.kind, page.charset]
            if not process.run(argv, limits=LIMITS).ok:
                raise PageFault("cannot be read within the limits")
            return target.read_text(encoding="utf-8")
