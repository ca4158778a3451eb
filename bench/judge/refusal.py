"""A refused request: the exception that carries status, code and advice, the error's JSON, and the request's id."""

import random
import re

from bench.judge.schemas import ErrorBody, ErrorDetail, Header

ID_HEADER = Header.REQUEST_ID.lower().encode()
# What to do when a request cannot be read at all.
HTTP_ADVICE = "send one HTTP/1.1 request at a time, with the body's length in bytes as Content-Length"
_ID = re.compile(rb"[\w.-]{1,128}")


class Refused(Exception):
    """Ends a request with an error answer; `message` says what happened and what to do."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def too_large(limit_bytes: int) -> Refused:
    return Refused(413, "body_too_large", f"a request body has at most {limit_bytes} bytes; send a smaller source")


def request_id(given: bytes = b"") -> bytes:
    """The word that finds a request in the logs: the one it brings, or a new one where a log line cannot carry that."""
    return given if _ID.fullmatch(given) else b"%016x" % random.getrandbits(64)


def error_body(code: str, message: str, request_id: str) -> bytes:
    """The one shape of every error answer; a message may quote any text that a client sent."""
    body = ErrorBody(error=ErrorDetail(code=code, message=_encodable(message), request_id=request_id))
    return body.model_dump_json().encode()


def _encodable(text: str) -> str:
    """`text` without lone surrogates, which JSON lets in but UTF-8 does not let out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
