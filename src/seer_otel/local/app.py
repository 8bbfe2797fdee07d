"""The local backend over HTTP: `POST /v1/log` as Seer answers it, and `GET /healthz`.

Every error is `{"error": {"code", "message", "field"?}}`; `field` is the path of what is wrong in an event.
"""

from __future__ import annotations

import secrets

from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from seer_otel.local.schema import InvalidEventError, NotJsonError, parse
from seer_otel.local.store import Store

MAX_BODY = 4 * 1024 * 1024
"""Bytes in one request. 50 passages of 4,000 code points are at most 2.4 MB, escaped ones included."""
MAX_DISCARDED = 64 * 1024 * 1024
"""Bytes read on, and thrown away, of a request that is refused; see `_read`."""

_CODES = {404: "not_found", 405: "method_not_allowed"}


def create_app(store: Store, key: str | None = None) -> Starlette:
    """Return the application. Whoever calls opens and closes `store`; with a `key`, events need it as bearer."""
    app = Starlette(
        routes=[Route("/v1/log", _log, methods=["POST"]), Route("/healthz", _health)],
        exception_handlers=dict.fromkeys(
            (HTTPException, NotJsonError, InvalidEventError, SQLAlchemyError, ClientDisconnect, Exception),
            _failed,
        ),
    )
    # A redirect would look like an answer to a client that must not follow it.
    app.router.redirect_slashes = False
    app.state.store = store
    app.state.key = key
    return app


async def _log(request: Request) -> Response:
    refused = _refusal(request)
    body = await _read(request, 0 if refused else MAX_BODY)
    if refused is not None:
        return refused
    if body is None:
        return _error(413, "body_too_large", f"An event has at most {MAX_BODY:,} bytes.")
    idempotency_key = request.headers.get("idempotency-key", "").strip() or None
    # Off the event loop: a body may take a while to check, and a commit waits for the disk.
    record_id = await run_in_threadpool(_accept, request.app.state.store, body, idempotency_key)
    return JSONResponse({"record_id": record_id, "accepted": True})


def _accept(store: Store, body: bytes, idempotency_key: str | None) -> str:
    return store.add(parse(body), body.decode(), idempotency_key)


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


def _refusal(request: Request) -> Response | None:
    """Say what is wrong with the headers, if anything."""
    key: str | None = request.app.state.key
    if key is not None:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        same = secrets.compare_digest(given.strip().encode("latin-1"), key.encode())
        if scheme.lower() != "bearer" or not same:
            message = "This backend wants its key: Authorization: Bearer <key>."
            return _error(401, "unauthorized", message, headers={"WWW-Authenticate": "Bearer"})
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        return _error(415, "unsupported_media_type", "An event comes as Content-Type: application/json.")
    return None


async def _read(request: Request, limit: int) -> bytes | None:
    """Read the body, or return None where it has more than `limit` bytes.

    What arrives counts, not Content-Length: it may lie or be absent. The rest of a body that is refused is read
    and thrown away, as most clients look for an answer only after they have sent everything.
    """
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= limit:
            chunks.append(chunk)
        elif size > MAX_DISCARDED:
            break
        else:
            chunks.clear()
    return b"".join(chunks) if size <= limit else None


def _error(
    status: int, code: str, message: str, field: str | None = None, headers: dict[str, str] | None = None
) -> Response:
    error = {"code": code, "message": message}
    if field is not None:
        error["field"] = field
    return JSONResponse({"error": error}, status, headers)


async def _failed(request: Request, error: Exception) -> Response:
    if isinstance(error, NotJsonError):
        return _error(400, "invalid_json", f"The body is not JSON that can be read: {error}.")
    if isinstance(error, InvalidEventError):
        return _error(422, "invalid_event", f"{error}.", error.field)
    if isinstance(error, HTTPException):
        code = _CODES.get(error.status_code, "refused")
        message = f"{request.method} {request.url.path}: {error.detail}. Events go to POST /v1/log."
        return _error(error.status_code, code, message, headers=dict(error.headers or {}))
    if isinstance(error, SQLAlchemyError):
        # 503 and not 500: a full disk or a locked file may pass, and clients try again.
        return _error(
            503, "storage_failed", f"The event could not be stored: {getattr(error, 'orig', error)}."
        )
    if isinstance(error, ClientDisconnect):
        return _error(400, "incomplete_body", "The connection was closed before the body was complete.")
    return _error(500, "internal_error", "The backend failed; its log says why.")
