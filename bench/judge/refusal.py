"""Why a request is not graded: one exception that carries the HTTP status, a code word and what to do."""

from bench.judge.schemas import ErrorBody, ErrorDetail


class Refused(Exception):
    """Ends a request with an error answer; `message` says what to do."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def error_body(code: str, message: str, request_id: str) -> bytes:
    """The one shape of every error answer; a message may quote any text that a client sent."""
    body = ErrorBody(error=ErrorDetail(code=code, message=_encodable(message), request_id=request_id))
    return body.model_dump_json().encode()


def _encodable(text: str) -> str:
    """`text` without lone surrogates, which JSON lets in but UTF-8 does not let out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def too_large(limit_bytes: int) -> Refused:
    return Refused(413, "body_too_large", f"a request body has at most {limit_bytes} bytes; send a smaller source")
