"""Errors as the backend answers them: `{"error": {"code", "message", "field"?}}`.

`field` is the path of what is wrong in an event.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse

from seer_otel.local.api.inbox import FullError
from seer_otel.local.schema import InvalidEventError, NotJsonError

RETRY_AFTER = 1
"""Seconds after which a client may try again where the queue was full."""

_CODES = {404: "not_found", 405: "method_not_allowed"}


class Refusal(JSONResponse):
    """An error as an answer; its `code` says which."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.code = code
        error = {"code": code, "message": message}
        if field is not None:
            error["field"] = field
        super().__init__({"error": error}, status, headers)


def refusal(error: Exception, method: str, path: str) -> Refusal:
    """Return what an exception is answered with."""
    if isinstance(error, NotJsonError):
        return Refusal(400, "invalid_json", f"The body is not JSON that can be read: {error}.")
    if isinstance(error, InvalidEventError):
        return Refusal(422, "invalid_event", f"{error}.", error.field)
    if isinstance(error, HTTPException):
        code = _CODES.get(error.status_code, "refused")
        message = f"{method} {path}: {error.detail}. Events go to POST /v1/log."
        return Refusal(error.status_code, code, message, headers=error.headers)
    if isinstance(error, FullError):
        message = "Events come faster than they can be stored; try again later."
        return Refusal(429, "queue_full", message, headers={"Retry-After": str(RETRY_AFTER)})
    if isinstance(error, SQLAlchemyError):
        # 503 and not 500: a full disk or a locked file may pass, and clients try again.
        return Refusal(503, "storage_failed", f"Storage failed: {getattr(error, 'orig', error)}.")
    if isinstance(error, ClientDisconnect):
        return Refusal(400, "incomplete_body", "The connection was closed before the body was complete.")
    return Refusal(500, "internal_error", "The backend failed; its log says why.")


EXPECTED = (HTTPException, NotJsonError, InvalidEventError, FullError, SQLAlchemyError, ClientDisconnect)
"""What `refusal` knows words for."""
