"""The judge as one attempt may use it: what a model must not choose is attached here, and every call is kept."""

import contextlib
import fcntl
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from agent.answers import SOURCE_CAP_BYTES, Call, Pending, Refusal, read_calls, read_pending
from agent.journal import append_json, utc_now, write_private
from agent.judges import Judges, Route
from agent.tools.settings import ToolSettings
from bench.errors import UsageError
from bench.judge.client import ATTEMPTS, Envelope, JudgeRefused
from bench.judge.schemas import (
    Answer,
    Closed,
    GradeRequest,
    Outcome,
    ProfileAnswer,
    ProfileRequest,
    ProfileTool,
    SearchAnswer,
    SearchRequest,
)

A = TypeVar("A", Answer, ProfileAnswer, SearchAnswer)


class JudgeTools:
    """Attaches rank, token, language, attempt and tokens from `settings`; keeps every call in the evidence."""

    def __init__(self, settings: ToolSettings, tries: int = ATTEMPTS) -> None:
        self.settings = settings
        self._judges = Judges(settings.judge_urls, settings.home_rank, settings.token, settings.failover, tries)

    def ask(self, route: Route, source_file: str) -> Answer:
        """Have a file of the folder graded.

        The file's text travels, not its path: a retry under the same key then means the same source, whatever
        the agent has written since.

        Raises:
            UsageError: the file cannot be sent; the message says why.
            JudgeRefused: the judge's own refusal.
        """
        request = GradeRequest(**self._submission(source_file))
        pending = Pending(key=uuid.uuid4().hex, tokens=self._tokens(), request=request)
        if route != "submit":
            return self._send(route, pending)
        with self._alone():
            write_private(self.settings.pending_file, pending.model_dump_json(exclude_none=True))
            return self._send(route, pending)

    def profile(self, source_file: str, tool: ProfileTool) -> ProfileAnswer:
        """Have a file of the folder profiled; it counts as nothing. Raises what `ask` raises."""
        request = ProfileRequest(tool=tool, **self._submission(source_file))
        call = Call(at=utc_now(), route="profile", key=uuid.uuid4().hex, tokens=self._tokens())
        return self._kept(call, "profile", lambda: self._judges.profile(request))

    def search(self, query: str) -> SearchAnswer:
        """Search the web; it counts as nothing. Raises JudgeRefused."""
        call = Call(at=utc_now(), route="search", key=uuid.uuid4().hex, tokens=self._tokens())
        return self._kept(call, "search", lambda: self._judges.search(SearchRequest(query=query)))

    def settle(self) -> None:
        """Ask again for the answer to a submit whose caller died before it came, if there is one."""
        pending = read_pending(self.settings.pending_file)
        if pending and all(call.key != pending.key for call in read_calls(self.settings.answers_file)):
            self._send("submit", pending)

    def close(self) -> None:
        self._judges.close()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One submit of the attempt at a time, whichever process or thread asks: there is one record of the last."""
        with self.settings.pending_file.with_suffix(".lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _send(self, route: Route, pending: Pending) -> Answer:
        envelope = Envelope(key=pending.key, attempt=self.settings.attempt, tokens=pending.tokens)

        def ask() -> Answer:
            answer = self._judges.ask(route, pending.request, envelope)
            if route == "score" and answer.outcome is Outcome.SOLVED:
                kept = self.settings.scored_source(answer.grade_id)
                kept.write_text(pending.request.source or "", encoding="utf-8", newline="")
            return answer

        call = Call(at=utc_now(), route=route, key=pending.key, tokens=pending.tokens)
        return self._kept(call, "answer", ask)

    def _kept(self, call: Call, field: str, ask: Callable[[], A]) -> A:
        """What `ask` returns or raises, once `call` is in the evidence with it; an answer is in the line's `field`."""
        try:
            answer = ask()
        except JudgeRefused as error:
            refusal = Refusal(code=error.code, status=error.status, message=error.message)
            self._keep(call, "refusal", refusal)
            raise
        self._keep(call, field, answer)
        return answer

    def _keep(self, call: Call, field: str, end: Closed) -> None:
        line = call.model_copy(update={"at": utc_now(), field: end}).model_dump_json()
        append_json(self.settings.answers_file, json.loads(line))

    def _submission(self, source_file: str) -> dict[str, Any]:
        """The fields that every request has."""
        return {
            "kernel": self.settings.kernel,
            "language": self.settings.language,
            "source": self._read(source_file),
        }

    def _tokens(self) -> int:
        """Tokens that the episode has used so far, as the driver last counted them."""
        return int(self.settings.tokens_file.read_text(encoding="ascii"))

    def _read(self, source_file: str) -> str:
        folder = self.settings.folder.resolve()
        path = (folder / source_file).resolve()
        if not path.is_relative_to(folder):
            expected = folder / self.settings.source_name
            raise UsageError(f"{source_file}: outside your folder; write {expected} and name that")
        try:
            if path.stat().st_size > SOURCE_CAP_BYTES:
                raise UsageError(f"{source_file}: larger than {SOURCE_CAP_BYTES} bytes; write a smaller source")
            return path.read_bytes().decode()
        except OSError as error:
            raise UsageError(f"{source_file}: cannot be read ({error.strerror}); write it first") from error
        except UnicodeDecodeError as error:
            raise UsageError(f"{source_file}: not UTF-8 text at byte {error.start}; write it as text") from error
