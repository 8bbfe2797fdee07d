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

from .._version import __version__
from ..endpoint import ConfigurationError, is_loopback, usable_key

if TYPE_CHECKING:
    import httpx

USER_AGENT = f"seer-otel/{__version__}"
CONNECTIONS = 8
"""Requests at once: as many as there may be sending threads."""
KEEP_ALIVE = 60.0
"""Seconds; with httpx's own 5 an app with an event in ten seconds pays for a new TLS connection each time."""
MAX_TIMEOUT = float(threading.TIMEOUT_MAX)
"""Seconds; a socket that is to wait longer raises an error instead."""
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

    Proxies are those of `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, but never on the way to this machine;
    trusted certificates are those of `SSL_CERT_FILE` or `SSL_CERT_DIR`, else of certifi. Both are read here, once. All
    else that httpx can do comes with a client of your own.

    Args:
        endpoint: the complete URL.
        api_key: the bearer key; None sends no `Authorization` header.
        timeout: seconds for each of connecting, sending and waiting for the answer.
        http_client: the client to send with. It adds what it always adds (its headers, auth and event hooks) and
            takes its own ways (proxies, mounts, certificates), but follows no redirect and waits no longer than
            `timeout`. It is never closed. The child of a fork uses it as well: where a process forks after it has
            sent, make the client and this transport in the child.

    Raises:
        ConfigurationError: the URL, the key, the client, the proxy or the certificates cannot be used.
    """

    def __init__(
        self,
        endpoint: str,
        api_key: str | None,
        timeout: float = 5.0,
        http_client: httpx.Client | None = None,
    ) -> None:
        import httpx  # noqa: PLC0415 - whoever imports us need not want to send

        if not (http_client is None or isinstance(http_client, httpx.Client)):  # an AsyncClient, say
            raise ConfigurationError(f"http_client must be an httpx.Client, not {type(http_client).__name__}")
        self._endpoint = endpoint
        self._timeout = min(timeout, MAX_TIMEOUT)
        self._http_client = http_client
        try:
            self._url = httpx.URL(endpoint)
        except httpx.InvalidURL:
            raise ConfigurationError("endpoint must be a URL that can be sent to") from None
        key = None if api_key is None else usable_key(api_key, endpoint)
        headers = [
            (b"Host", self._url.netloc),
            (b"Content-Type", b"application/json"),
            (b"User-Agent", USER_AGENT.encode()),
        ]
        if key is not None:
            headers.append((b"Authorization", f"Bearer {key}".encode()))
        # Of these httpx shows no key.
        self._headers = httpx.Headers(headers)
        # By pid: connections shared across a fork let the child read its parent's answers. The first pool is made here
        # and not by the thread that sends, as what is being imported there during a fork cannot be used in the child.
        self._pools: dict[int, httpx.HTTPTransport] = {}
        if http_client is None:
            self._proxy = _proxy_to(self._url)
            self._pools[os.getpid()] = self._first_pool()

    def __repr__(self) -> str:
        return f"HttpTransport({self._endpoint!r})"

    def send(self, body: bytes, idempotency_key: str, timeout: float | None = None) -> Reply:
        """Send one event, within `timeout` seconds where that is less than the transport's own; see `Transport`."""
        import httpx  # noqa: PLC0415

        patience = self._timeout if timeout is None else min(self._timeout, max(timeout, 0.001))
        reply: Reply | None = None
        failure = ""
        try:
            response = self._post(body, idempotency_key, patience)
            reply = _reply(response)
            _skip_body(response, patience)
        except httpx.HTTPStatusError as error:  # a hook of the user's client raised it
            reply = _reply(error.response)
        except Exception as error:  # noqa: BLE001 - a user's client raises what it likes
            # Only the kind of error: texts of lower layers may quote a header, and so the key.
            failure = type(error).__name__
        if reply is None:
            # Raised here, and so with no other error behind it.
            raise TransportError(failure)
        # The status counts; a body that is broken, or never ends, does not.
        return reply

    def close(self) -> None:
        """Close this process's connections; those of a user's client stay."""
        pool = self._pools.pop(os.getpid(), None)
        if pool is not None:
            pool.close()

    def _post(self, body: bytes, idempotency_key: str, patience: float) -> httpx.Response:
        import httpx  # noqa: PLC0415

        headers = [
            *self._headers.raw,
            (b"Idempotency-Key", idempotency_key.encode()),
            (b"Content-Length", b"%d" % len(body)),
        ]
        if (client := self._http_client) is not None:
            post = client.build_request("POST", self._url, headers=headers, content=body, timeout=patience)
            return client.send(post, stream=True, follow_redirects=False)
        # Not `content=`, and no client: half of a client's time goes into working out anew what is known here.
        post = httpx.Request(
            "POST",
            self._url,
            headers=headers,
            stream=httpx.ByteStream(body),
            extensions={"timeout": httpx.Timeout(patience).as_dict()},
        )
        return self._pool().handle_request(post)

    def _pool(self) -> httpx.HTTPTransport:
        pool = self._pools.get(os.getpid())
        if pool is None:
            pool = self._pools.setdefault(os.getpid(), self._new_pool())
        return pool

    def _new_pool(self) -> httpx.HTTPTransport:
        import httpx  # noqa: PLC0415

        return httpx.HTTPTransport(
            limits=httpx.Limits(
                max_connections=CONNECTIONS,
                max_keepalive_connections=CONNECTIONS,
                keepalive_expiry=KEEP_ALIVE,
            ),
            proxy=self._proxy,
        )

    def _first_pool(self) -> httpx.HTTPTransport:
        try:
            return self._new_pool()
        except ImportError:
            raise ConfigurationError(
                "HTTPS_PROXY or ALL_PROXY names a SOCKS proxy, which needs: pip install 'httpx[socks]'"
            ) from None
        except OSError:
            raise ConfigurationError(
                "SSL_CERT_FILE or SSL_CERT_DIR names no certificates that can be read"
            ) from None


def _proxy_to(url: httpx.URL) -> httpx.Proxy | None:
    """The proxy that the environment names for `url`, or on Windows and macOS the system."""
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - slow to import, but httpx does so too

    import httpx  # noqa: PLC0415

    # httpx reads these for clients only.
    proxies = getproxies()
    address = proxies.get(url.scheme) or proxies.get("all")
    if not address or is_loopback(url.host) or proxy_bypass(url.host) or proxy_bypass(url.netloc.decode()):
        return None
    try:
        return httpx.Proxy(address if "://" in address else f"http://{address}")
    except (ValueError, httpx.InvalidURL):  # its text may quote a password
        raise ConfigurationError(
            f"{url.scheme.upper()}_PROXY or ALL_PROXY names no proxy that can be used; it must look like"
            " http://proxy.example:3128"
        ) from None


def _reply(response: httpx.Response) -> Reply:
    return Reply(response.status_code, response.headers.get("Retry-After"))


def _skip_body(response: httpx.Response, seconds: float) -> None:
    until, read = time.monotonic() + seconds, 0
    with closing(response):
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
