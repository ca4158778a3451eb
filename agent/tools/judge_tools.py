"""Wires the judge's tools: attaches rank, token, language, attempt and tokens, never a model's choice."""

import contextlib
import fcntl
import json
import uuid
from collections.abc import Iterator
from typing import Any

from agent.answers import SOURCE_CAP_BYTES, Call, Pending, Refusal, read_calls, read_pending
from agent.journal import append_json, utc_now, write_private
from agent.judges import Judges, Route
from agent.tools.settings import ToolSettings
from bench.errors import UsageError
from bench.judge.client import ATTEMPTS, Envelope, JudgeRefused
from bench.judge.schemas import (
    Answer,
    GradeRequest,
    Outcome,
    ProfileAnswer,
    ProfileRequest,
    ProfileTool,
    SearchAnswer,
    SearchRequest,
)


class JudgeTools:
    """The judge as one attempt may use it; every call is kept in the evidence."""

    def __init__(self, settings: ToolSettings, tries: int = ATTEMPTS) -> None:
        self.settings = settings
        self._judges = Judges(settings.judge_urls, settings.home_rank, settings.token, settings.failover, tries)

    def ask(self, route: Route, source_file: str, workspace_bytes: int = 0) -> Answer:
        """Have a file of the folder graded.

        The file's text travels, not its path: a retry under the same key then means the same source, whatever
        the agent has written since.

        Raises:
            UsageError: the file cannot be sent; the message says why.
            JudgeRefused: the judge's own refusal.
        """
        request = GradeRequest(**self._submission(source_file, workspace_bytes))
        pending = Pending(key=uuid.uuid4().hex, tokens=self._tokens(), request=request)
        if route != "submit":
            return self._send(route, pending)
        with self._alone():
            write_private(self.settings.pending_file, pending.model_dump_json(exclude_none=True))
            return self._send(route, pending)

    def profile(self, source_file: str, tool: ProfileTool, workspace_bytes: int = 0) -> ProfileAnswer:
        """Have a file of the folder profiled; it counts as nothing. Raises what `ask` raises."""
        request = ProfileRequest(tool=tool, **self._submission(source_file, workspace_bytes))
        call = Call(at=utc_now(), route="profile", key=uuid.uuid4().hex, tokens=self._tokens())
        try:
            answer = self._judges.profile(request)
        except JudgeRefused as error:
            self._keep(call, refusal=_refusal(error))
            raise
        self._keep(call, profile=answer)
        return answer

    def search(self, query: str) -> SearchAnswer:
        """Search the web; it counts as nothing. Raises JudgeRefused."""
        call = Call(at=utc_now(), route="search", key=uuid.uuid4().hex, tokens=self._tokens())
        try:
            answer = self._judges.search(SearchRequest(query=query))
        except JudgeRefused as error:
            self._keep(call, refusal=_refusal(error))
            raise
        self._keep(call, search=answer)
        return answer

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
        call = Call(at=utc_now(), route=route, key=pending.key, tokens=pending.tokens)
        envelope = Envelope(key=pending.key, attempt=self.settings.attempt, tokens=pending.tokens)
        try:
            answer = self._judges.ask(route, pending.request, envelope)
        except JudgeRefused as error:
            self._keep(call, refusal=_refusal(error))
            raise
        if route == "score" and answer.outcome is Outcome.SOLVED:
            kept = self.settings.scored_source(answer.grade_id)
            kept.write_text(pending.request.source or "", encoding="utf-8", newline="")
        self._keep(call, answer=answer)
        return answer

    def _keep(self, call: Call, **end: Answer | ProfileAnswer | SearchAnswer | Refusal) -> None:
        call = call.model_copy(update={"at": utc_now(), **end})
        append_json(self.settings.answers_file, json.loads(call.model_dump_json()))

    def _submission(self, source_file: str, workspace_bytes: int) -> dict[str, Any]:
        """The fields that every request has."""
        return {
            "kernel": self.settings.kernel,
            "language": self.settings.language,
            "source": self._read(source_file),
            "workspace_bytes": workspace_bytes,
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
                raise UsageError(f"{source_file}: a source has at most {SOURCE_CAP_BYTES} bytes")
            return path.read_bytes().decode()
        except OSError as error:
            raise UsageError(f"{source_file}: cannot be read ({error.strerror}); write it first") from error
        except UnicodeDecodeError as error:
            raise UsageError(f"{source_file}: not UTF-8 text at byte {error.start}; a source is text") from error


def _refusal(error: JudgeRefused) -> Refusal:
    return Refusal(code=error.code, status=error.status, message=error.message)
