"""How an event gets to the backend: one seam, over HTTP or into memory."""

from __future__ import annotations

import encodings.idna  # noqa: F401 - or the first look-up of a host imports it, perhaps during a fork
import json
import os
import threading
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from .._version import __version__
from ..endpoint import is_loopback

if TYPE_CHECKING:
    import httpx

USER_AGENT = f"seer-otel/{__version__}"
CONNECTIONS = 8
"""Requests at once: as many as there may be sending threads."""
KEEP_ALIVE = 60.0
"""Seconds; with httpx's own 5 an app with an event in ten seconds pays for a new TLS connection each time."""
MAX_ANSWER = 64 * 1024
"""Bytes of an answer's body that are read, for nothing but to use the connection again."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a backend answered: the status, and its `Retry-After` header as it stands."""

    status: int
    retry_after: str | None = None


class TransportError(Exception):
    """No answer came: no connection, a time-out, a broken reply. Its text never holds a header or a body."""


class Transport(Protocol):
    """Sends one event a call; called from several threads at once."""

    def send(self, body: bytes, idempotency_key: str) -> Reply:
        """Send one event.

        Args:
            body: the event as strict JSON in UTF-8.
            idempotency_key: the same whenever this event is sent again.

        Raises:
            TransportError: no answer came.
        """
        ...

    def close(self) -> None:
        """Let go of connections; a later `send` opens new ones."""
        ...


class HttpTransport:
    """POSTs events over HTTP.

    Args:
        endpoint: the complete URL.
        api_key: the bearer key; None sends no `Authorization` header.
        timeout: seconds for each of connecting, sending and waiting for the answer.
    """

    def __init__(self, endpoint: str, api_key: str | None, timeout: float = 5.0) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"
        # By pid: a client shared across a fork lets the child read its parent's answers. The first one is made here
        # and not by the thread that sends, as what is being imported there during a fork cannot be used in the child.
        self._clients = {os.getpid(): self._new_client()}

    def __repr__(self) -> str:
        return f"HttpTransport({self._endpoint!r})"

    def send(self, body: bytes, idempotency_key: str, timeout: float | None = None) -> Reply:
        """Send one event, within `timeout` seconds where that is less than the transport's own; see `Transport`."""
        import httpx  # noqa: PLC0415

        headers = {**self._headers, "Idempotency-Key": idempotency_key}
        patience = self._timeout if timeout is None else min(self._timeout, max(timeout, 0.001))
        post = self._client().build_request(
            "POST", self._endpoint, content=body, headers=headers, timeout=patience
        )
        reply: Reply | None = None
        try:
            response = self._client().send(post, stream=True)
            reply = Reply(response.status_code, response.headers.get("Retry-After"))
            with closing(response):
                _skip_body(response, patience)
        except httpx.HTTPError as error:
            # The status counts; a body that is broken, or never ends, does not.
            if reply is None:
                # Only the kind of error: texts of lower layers may quote a header, and so the key.
                raise TransportError(type(error).__name__) from None
        return reply

    def close(self) -> None:
        """Close this process's connections."""
        client = self._clients.pop(os.getpid(), None)
        if client is not None:
            client.close()

    def _client(self) -> httpx.Client:
        client = self._clients.get(os.getpid())
        if client is None:
            client = self._clients.setdefault(os.getpid(), self._new_client())
        return client

    def _new_client(self) -> httpx.Client:
        import httpx  # noqa: PLC0415 - whoever imports us need not want to send

        return httpx.Client(
            timeout=self._timeout,
            follow_redirects=False,
            limits=httpx.Limits(
                max_connections=CONNECTIONS,
                max_keepalive_connections=CONNECTIONS,
                keepalive_expiry=KEEP_ALIVE,
            ),
            # What goes to loopback must not take a detour over a proxy.
            trust_env=not is_loopback(urlsplit(self._endpoint).hostname),
        )


def _skip_body(response: httpx.Response, seconds: float) -> None:
    until, read = time.monotonic() + seconds, 0
    for chunk in response.iter_raw():
        read += len(chunk)
        if read > MAX_ANSWER or time.monotonic() > until:
            return


@dataclass(eq=False)
class InMemoryTransport:
    """Keeps events instead of sending them, for the tests of an application.

    ```python
    transport = InMemoryTransport()
    provider.add_span_processor(SeerSpanProcessor(transport=transport, sample_rate=1.0))
    ...
    provider.force_flush()
    assert transport.events[0]["task"] == "Who directed Inception?"
    ```

    Args:
        replies: what to answer to the first requests, each a `Reply` or an error to raise; after them 200.

    Attributes:
        events: the events that were answered with 2xx, each once, in the order of their arrival.
        requests: every request: the body, and the idempotency key.
    """

    replies: Iterable[Reply | TransportError] = ()
    events: list[dict[str, Any]] = field(default_factory=list)
    requests: list[tuple[bytes, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._script = iter(self.replies)
        self._keys: set[str] = set()
        self._lock = threading.Lock()

    def send(self, body: bytes, idempotency_key: str) -> Reply:
        """Keep one event; see `Transport`."""
        with self._lock:
            self.requests.append((body, idempotency_key))
            reply = next(self._script, Reply(200))
            if isinstance(reply, TransportError):
                raise reply
            if 200 <= reply.status < 300 and idempotency_key not in self._keys:
                self._keys.add(idempotency_key)
                self.events.append(json.loads(body))
            return reply

    def close(self) -> None:
        """Do nothing: what was kept can still be read."""
