"""What an agent may send: a request's body, checked strictly and in a fixed order, becomes a Submission."""

import hashlib
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import psutil
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from bench.config import JudgeConfig
from bench.errors import TaskError, UsageError
from bench.judge.caller import Caller, Headers, read_headers
from bench.judge.refusal import Refused
from bench.judge.schemas import (
    ADHOC,
    Closed,
    Device,
    GradeRequest,
    InputMode,
    Kind,
    Language,
    ProfileRequest,
    graded_on,
    not_graded,
    not_profiled,
)
from bench.judge.submission import Submission
from bench.records import ProfileOrder
from bench.seeds import profile_seed
from bench.task import Task, find_task
from bench.wording import first_fault

MODES = {
    InputMode.SOURCE: "JUDGE_INPUT_MODE=source: send 'source' or 'source_file' in the setup's language",
    InputMode.PY_BINDING: "JUDGE_INPUT_MODE=py-binding: send a Python module as 'source' or 'source_file'",
    InputMode.LIBRARY: "JUDGE_INPUT_MODE=library: send the path of a shared object as 'library'",
    InputMode.ANY: "JUDGE_INPUT_MODE=any: send one of 'source', 'source_file' and 'library'",
}


R = TypeVar("R", bound=Closed)
_SHOWN_CHARS = 80
# A workspace may be as large as this part of the machine's memory.
WORKSPACE_SHARE = 8


def admit(kind: Kind, body: bytes, headers: Headers, caller: Caller, config: JudgeConfig) -> Submission:
    """Check one request to `/score` or `/submit` (`kind`); it reads `source_file`, so call it off the event loop.

    Raises:
        Refused: 400, 403, 404 or 421; the first fault in the order of this function.
    """
    request = parse(body, GradeRequest)
    said = read_headers(headers, caller)
    language, source, library = _delivered(request, caller, config)
    if why := not_graded(language, graded_on(Device(config.device))):
        raise Refused(400, "wrong_language", why)
    return Submission(
        kind=said.kind or kind,
        caller=caller,
        headers=said,
        kernel=request.kernel,
        language=language,
        source=source,
        library=library,
        workspace_bytes=request.workspace_bytes,
        body_sha256=_digest(request),
    )


def admit_profile(
    body: bytes, headers: Headers, caller: Caller, config: JudgeConfig, secret: bytes | None
) -> ProfileOrder:
    """Check one request for a profile, as `admit` does for a grade, with the same faults.

    All profiles of an episode have the same inputs, so that their counts compare; no grade has them.
    """
    request = parse(body, ProfileRequest)
    read_headers(headers, caller)
    language, source, library = _delivered(request, caller, config)
    if why := not_profiled(language, request.tool):
        raise Refused(400, "wrong_language", why)
    return ProfileOrder(
        kernel=request.kernel,
        language=language,
        source=source,
        library=str(library) if library else None,
        workspace_bytes=request.workspace_bytes,
        tool=request.tool,
        seed=profile_seed(secret, caller.label or ADHOC).hex(),
    )


def _delivered(request: GradeRequest, caller: Caller, config: JudgeConfig) -> tuple[Language, str | None, Path | None]:
    """Language, and source text or path of a library, of a request that may be served here."""
    language = _language(request, caller, config)
    # Before the file, whose name must be the kernel's: a misspelt kernel is not told to rename it.
    task = known_task(request.kernel)
    _check_kernel(task.name, caller)
    source, library = _delivery(request, language, config)
    if lacking := task.lacks(language):
        raise Refused(400, "wrong_language", f"{lacking}; send one of those")
    _check_rank(request.rank, caller, config)
    _check_workspace(request.workspace_bytes)
    return language, source, library


def _digest(request: GradeRequest) -> str:
    """What makes two requests the same under one key: all but the rank, which changes on a failover."""
    return hashlib.sha256(request.model_dump_json(exclude={"rank"}).encode()).hexdigest()


def _strict_json(body: bytes) -> Any:
    """JSON as its standard defines it: UTF-8, no NaN, no Infinity, and no key twice in one object.

    Raises:
        Refused: 400, saying where it ends to be JSON.
    """
    if not body:
        raise Refused(400, "bad_json", "the body is empty; send one JSON object")
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_once_each)
    except UnicodeDecodeError as error:
        raise Refused(400, "bad_json", f"the body is not UTF-8 at byte {error.start}; send UTF-8 JSON") from error
    except RecursionError as error:
        raise Refused(400, "bad_json", "the body is nested too deeply; send one flat JSON object") from error
    except ValueError as error:
        raise Refused(400, "bad_json", f"the body is not JSON: {error}; send one JSON object") from error


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key '{twice[:80]}' is there twice")
    return found


def parse(body: bytes, model: type[R]) -> R:
    """The request in a body.

    Raises:
        Refused: 400, naming the field.
    """
    found = _strict_json(body)
    if not isinstance(found, dict):
        raise Refused(400, "not_an_object", f"the body is {_shown(found)}; send one JSON object")
    try:
        request = model.model_validate(found)
        request.model_dump_json()
    except ValidationError as error:
        raise Refused(400, "bad_request", _first_fault(error, model)) from error
    except PydanticSerializationError as error:
        # JSON can name half a surrogate pair, which no text has and nothing after this could encode.
        raise Refused(400, "bad_request", "a text holds half a surrogate pair; send whole characters") from error
    return request


def _first_fault(error: ValidationError, model: type[Closed]) -> str:
    fault, fields = first_fault(error), f"the fields are {', '.join(model.model_fields)}"
    if fault.type == "extra_forbidden":
        return f"unknown field '{fault.where}'; {fields}"
    if fault.type == "missing":
        return f"field '{fault.where}' is missing; {fields}"
    return wrong_value(f"field '{fault.where}'", error.errors()[0]) if fault.where else fault.message


def wrong_value(name: str, found: Mapping[str, Any]) -> str:
    """What a field or parameter is and what it must be, from an entry of pydantic's `errors()`."""
    must = re.sub(r"^(Input|String) should", "it must", found["msg"])
    return f"{name} is {_shown(found['input'])}; {must}"


def _shown(value: Any) -> str:
    """A value of JSON for a message: cut, and without what a list or an object holds."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return json.dumps(value[:_SHOWN_CHARS]) if isinstance(value, str) else json.dumps(value)[:_SHOWN_CHARS]


def _language(request: GradeRequest, caller: Caller, config: JudgeConfig) -> Language:
    """Language of a submission: as named, else by the file's suffix, else the setup's; held to the mode."""
    mode = config.input_mode
    if request.library is not None and mode not in (InputMode.LIBRARY, InputMode.ANY):
        raise Refused(400, "wrong_delivery", f"this judge takes no 'library'; {MODES[mode]}")
    if request.library is None and mode is InputMode.LIBRARY:
        raise Refused(400, "wrong_delivery", f"this judge takes no source; {MODES[mode]}")
    expected = Language.PYTHON if mode is InputMode.PY_BINDING else caller.setup.language
    free = mode in (InputMode.ANY, InputMode.LIBRARY) or (caller.label is None and mode is InputMode.SOURCE)
    language = request.language or (_by_suffix(request.source_file) if free else None) or expected
    if language is not expected and not free:
        raise Refused(400, "wrong_language", f"this setup is written in {expected}, not {language}; {MODES[mode]}")
    return language


def _by_suffix(path: str | None) -> Language | None:
    try:
        return Language.of(path or "")
    except ValueError:
        return None


def _delivery(request: GradeRequest, language: Language, config: JudgeConfig) -> tuple[str | None, Path | None]:
    """Source text, or path of a library."""
    if request.library is not None:
        return None, _inside(request.library, "library", f"{request.kernel}.so", config)[0]
    text = request.source
    if request.source_file is not None:
        name = f"{request.kernel}{language.suffix}"
        text = _decoded(_inside(request.source_file, "source_file", name, config)[1])
    assert text is not None
    if "\0" in text:
        raise Refused(400, "bad_source", "the source has a NUL character; send text")
    return text, None


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the source is not UTF-8 at byte {error.start}; save it as UTF-8"
        raise Refused(400, "bad_source", message) from error


def _inside(given: str, field: str, name: str, config: JudgeConfig) -> tuple[Path, bytes]:
    """Real path and content of a file that must be called `name` and lie in the shared folder."""
    file_given = f"{field} {_shown(given)}"
    if "\0" in given or Path(given).name != name:
        raise Refused(400, "bad_file_name", f"{file_given} must be a file called {name}; rename it")
    if config.shared_dir is None:
        raise Refused(400, "no_shared_folder", f"this judge has no shared folder; send 'source' instead of '{field}'")
    root = config.shared_dir.resolve()
    outside = Refused(400, "outside_shared", f"{file_given} lies outside {config.shared_dir}; put the file in there")
    # Looked at by name before it is opened, and by descriptor after: links may change in between.
    if not (root / given).resolve().is_relative_to(root):
        raise outside
    try:
        with os.fdopen(_open_without_waiting(root / given), "rb") as file:
            real = Path(f"/proc/self/fd/{file.fileno()}").resolve()
            status = os.fstat(file.fileno())
            if not real.is_relative_to(root):
                raise outside
            if not stat.S_ISREG(status.st_mode):
                raise Refused(400, "unreadable", f"{file_given} is not a regular file; send a plain text file")
            if status.st_size > config.max_body_bytes:
                message = f"{file_given} has {status.st_size} bytes, at most {config.max_body_bytes} are read"
                raise Refused(413, "body_too_large", f"{message}; send a smaller one")
            return real, file.read(config.max_body_bytes + 1)
    except OSError as error:
        advice = f"check the path, which starts at {config.shared_dir}, and its permissions"
        raise Refused(400, "unreadable", f"{file_given} cannot be read ({error.strerror}); {advice}") from error


def _open_without_waiting(path: Path) -> int:
    # A FIFO would block the judge until somebody writes to it.
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def known_task(kernel: str) -> Task:
    """The kernel of that name; raises Refused: 404 when there is none, 503 when its folder is broken."""
    try:
        return find_task(kernel)
    except TaskError as error:
        raise Refused(503, "kernel_broken", f"{kernel} cannot be graded: {error}; tell the operator") from error
    except UsageError as error:
        raise Refused(404, "unknown_kernel", str(error)) from error


def _check_workspace(nbytes: int) -> None:
    """Raises Refused for a workspace that this machine has no room for: it is filled anew before every call."""
    most = psutil.virtual_memory().total // WORKSPACE_SHARE
    if nbytes > most:
        raise Refused(400, "workspace_too_large", f"workspace_bytes is {nbytes}; this judge lends at most {most}")


def _check_kernel(kernel: str, caller: Caller) -> None:
    if caller.kernel not in (None, kernel):
        message = f"this episode's kernel is {caller.kernel}, not {kernel}; send {caller.kernel} only"
        raise Refused(403, "other_kernel", message)


def _check_rank(rank: int | None, caller: Caller, config: JudgeConfig) -> None:
    if rank is None and caller.label is not None:
        raise Refused(400, "rank_missing", f"field 'rank' is missing; this judge has rank {config.rank}")
    if rank is not None and rank != config.rank:
        message = f"this judge serves rank {config.rank}, not {rank}; send the request to the judge of rank {rank}"
        raise Refused(421, "wrong_rank", message)
