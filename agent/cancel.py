"""How the wish to stop reaches an episode: a flag, or an exception where the episode only waits."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class CancelRequested(BaseException):
    """Raised by the signal handler inside `Cancel.interrupting`; `except Exception` lets it pass."""


class Cancel:
    """One episode process's wish to stop, set by SIGTERM or SIGINT."""

    def __init__(self) -> None:
        self.requested = False
        self._raises = False

    def listen(self) -> None:
        """Take the stop signals of this process."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: object) -> None:
        first, self.requested = not self.requested, True
        if first and self._raises:
            raise CancelRequested

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Inside, a request to stop raises CancelRequested at once, also one that came before."""
        self._raises = True
        try:
            if self.requested:
                raise CancelRequested
            yield
        finally:
            self._raises = False
