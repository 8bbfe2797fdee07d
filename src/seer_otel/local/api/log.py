"""`POST /v1/log` as Seer answers it. An application of its own: as a route it would take half as long again."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from seer_otel.local.api.answers import EXPECTED, Refusal, refusal
from seer_otel.local.api.guard import bears
from seer_otel.local.api.inbox import Inbox
from seer_otel.local.schema import LoggedEvent, parse, text_of
from seer_otel.local.storage.ingest import Incoming
from seer_otel.local.storage.store import Store

PATH = "/v1/log"
MAX_BODY = 4 * 1024 * 1024
"""Bytes in one request. 50 passages of 4,000 code points are at most 2.4 MB, escaped ones included."""
MAX_DISCARDED = 64 * 1024 * 1024
"""Bytes read on, and thrown away, of a request that is refused; see `_read`."""
SMALL_BODY = 128 * 1024
"""Bytes that are checked faster than another thread would take over."""


class Log:
    """The ASGI application for POST requests.

    Args:
        store: where events go.
        key: what a request needs as bearer, if anything.
        room: events that wait to be written, beyond which the answer is 429.
    """

    def __init__(self, store: Store, key: str | None, room: int) -> None:
        self._store = store
        self._key = key
        self._inbox = Inbox(store, room)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            refused, record_id = await self._add(dict(scope["headers"]), receive)
        except Exception as error:
            answer = refusal(error, scope["method"], PATH)
            await self._refuse(answer, scope, receive, send)
            if not isinstance(error, EXPECTED):
                raise
            return
        if refused is not None:
            await self._refuse(refused, scope, receive, send)
            return
        body = b'{"record_id":"%b","accepted":true}' % record_id.encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _refuse(self, answer: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
        self._store.refusals.note(answer.code)
        await answer(scope, receive, send)

    async def _add(self, headers: dict[bytes, bytes], receive: Receive) -> tuple[Refusal | None, str]:
        """Return why the request is refused, or the record id of its event once that is on disk."""
        refused = self._refused(headers)
        body = await _read(receive, 0 if refused else MAX_BODY)
        if refused is not None:
            return refused, ""
        if body is None:
            return Refusal(413, "body_too_large", f"An event has at most {MAX_BODY:,} bytes."), ""
        event, text = _parsed(body) if len(body) <= SMALL_BODY else await run_in_threadpool(_parsed, body)
        key = headers.get(b"idempotency-key", b"").strip().decode("latin-1")
        return None, await self._inbox.add(Incoming(event, text, key or None))

    def _refused(self, headers: dict[bytes, bytes]) -> Refusal | None:
        """Say what is wrong with the headers, if anything."""
        if self._key is not None and not bears(headers.get(b"authorization", b""), self._key):
            message = "This backend wants its key: Authorization: Bearer <key>."
            return Refusal(401, "unauthorized", message, headers={"WWW-Authenticate": "Bearer"})
        media_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if media_type != b"application/json":
            return Refusal(415, "unsupported_media_type", "An event comes as Content-Type: application/json.")
        return None


def _parsed(body: bytes) -> tuple[LoggedEvent, str]:
    text = text_of(body)
    return parse(text), text


async def _read(receive: Receive, limit: int) -> bytes | None:
    """Read the body, or return None where it has more than `limit` bytes. Raises ClientDisconnect.

    What arrives counts, not Content-Length: it may lie or be absent. The rest of a body that is refused is read
    and thrown away, as most clients look for an answer only after they have sent everything.
    """
    chunks: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk, more = message.get("body", b""), message.get("more_body", False)
        size += len(chunk)
        if size <= limit:
            chunks.append(chunk)
        elif size > MAX_DISCARDED:
            break
        else:
            chunks.clear()
    return b"".join(chunks) if size <= limit else None
