"""Whether the backend can be reached: each step of a connection by itself; and a test event."""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import urllib.request
import uuid
from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime, timezone
from urllib.parse import SplitResult, unquote, urlsplit

from .. import event
from ..delivery.suppression import suppressed_instrumentation
from ..delivery.transport import MAX_TIMEOUT, HttpTransport, TransportError
from ..endpoint import ConfigurationError, is_loopback
from .lines import Line, Mark, no, note, yes

_PROXIES = "Correct HTTPS_PROXY or ALL_PROXY"
_PROXY_FORM = "it must look like http://proxy.example:3128"
TEST_TEXT = "This is a test event of `seer-otel doctor --send`. No application retrieved it."


def lines(url: str | None, timeout: float) -> list[Line]:
    """Look the host up, connect, and shake hands over TLS; what a failed step leaves untried says so."""
    if url is None:
        return _untried("there is no URL", "host", "connection", "TLS")
    timeout = min(timeout, MAX_TIMEOUT)
    parts = urlsplit(url)
    try:
        proxy = proxy_for(url)
        _ = proxy and proxy.port  # reading it is what checks it
    except ValueError:  # its text may quote a password
        said = no("host", "the proxy variables name no proxy that can be used", f"{_PROXIES}: {_PROXY_FORM}.")
        return [said, *_untried("there is no proxy", "connection", "TLS")]
    if proxy is not None and proxy.scheme not in ("http", ""):
        return _untried(
            f"the proxy speaks {proxy.scheme}; --send tries all at once", "host", "connection", "TLS"
        )
    host, port = _address(parts if proxy is None else proxy)
    known = _look_up(host, port, proxy is not None)
    if known.mark is Mark.NO:
        return [known, *_untried("the host is not known", "connection", "TLS")]
    connected = _connect(host, port, timeout, proxy is not None)
    if connected.mark is Mark.NO:
        return [known, connected, *_untried("there is no connection", "TLS")]
    return [known, connected, _shake_hands(parts, proxy, timeout)]


def proxy_for(url: str) -> SplitResult | None:
    """Return the proxy that httpx takes from the environment for `url`, if any; loopback has none."""
    parts = urlsplit(url)
    if is_loopback(parts.hostname) or urllib.request.proxy_bypass(parts.netloc):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy:
        return None
    return urlsplit(proxy if "://" in proxy else f"http://{proxy}")


def _untried(why: str, *checks: str) -> list[Line]:
    return [note(check, f"not tried: {why}") for check in checks]


def _address(parts: SplitResult) -> tuple[str, int]:
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _look_up(host: str, port: int, is_proxy: bool) -> Line:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        which = "the proxy variables (HTTPS_PROXY, ALL_PROXY)" if is_proxy else "SEER_INGESTION_URL"
        reason = getattr(error, "strerror", None) or type(error).__name__
        return no("host", f"{host} has no address ({reason})", f"Check {which} and the name servers.")
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    more = f" and {len(addresses) - 3} more" if len(addresses) > 3 else ""
    place = f"{'proxy ' if is_proxy else ''}{host}"
    if addresses == [host]:
        return yes("host", f"{place} is an address")
    return yes("host", f"{place} is {', '.join(addresses[:3])}{more}")


def _connect(host: str, port: int, timeout: float, is_proxy: bool) -> Line:
    place = f"{'the proxy ' if is_proxy else ''}{host} port {port}"
    try:
        socket.create_connection((host, port), timeout).close()
    except OSError as error:
        reason = "no answer in time" if isinstance(error, TimeoutError) else error.strerror or str(error)
        if is_loopback(host):
            advice = "Start the backend (`seer-otel serve`), or correct SEER_INGESTION_URL."
        elif is_proxy:
            advice = "Check the proxy variables (HTTPS_PROXY, ALL_PROXY, NO_PROXY)."
        else:
            advice = "Check SEER_INGESTION_URL, firewalls, and whether a proxy is needed (HTTPS_PROXY)."
        return no("connection", f"{place}: {reason}", advice)
    return yes("connection", f"{place} takes connections{'' if is_proxy else ', without a proxy'}")


def _shake_hands(parts: SplitResult, proxy: SplitResult | None, timeout: float) -> Line:
    if parts.scheme != "https":
        if is_loopback(parts.hostname):
            return note("TLS", "none: plain HTTP on this machine")
        return note(
            "TLS", "none: plain HTTP, as SEER_OTEL_ALLOW_HTTP=true allows; the key can be read on the way"
        )
    # As the transport has it: to loopback the environment says nothing.
    here = is_loopback(parts.hostname)
    authorities, setting = certificates({} if here else os.environ)
    try:
        # The very context that httpx makes for its clients.
        import httpx  # noqa: PLC0415 - it takes a while

        context = httpx.create_ssl_context(trust_env=not here)
    except OSError as error:
        return no(
            "TLS", f"no certificates in {authorities}: {error.strerror or error}", f"Correct {setting}."
        )
    host, port = _address(parts)
    through = host if proxy is None else proxy.hostname or ""
    connection = http.client.HTTPSConnection(
        through, port if proxy is None else _address(proxy)[1], timeout=timeout, context=context
    )
    if proxy is not None:
        connection.set_tunnel(host, port, _proxy_headers(proxy))
    try:
        connection.connect()
        version = connection.sock.version() if isinstance(connection.sock, ssl.SSLSocket) else None
    except ssl.SSLCertVerificationError as error:
        value = f"the certificate of {host} is not trusted by {authorities}: {error.verify_message}"
        if here:
            return no("TLS", value, "Use http:// on this machine; SSL_CERT_FILE does not count for it.")
        advice = "Set SSL_CERT_FILE to a file with the CA that signed it, such as your company's."
        return no("TLS", value, advice)
    except (OSError, http.client.HTTPException) as error:
        refused = proxy is not None and not isinstance(error, ssl.SSLError)
        return no(
            "TLS",
            f"no TLS with {host}: {getattr(error, 'reason', None) or error}",
            "Check the proxy variables."
            if refused
            else "Check the scheme and the port of SEER_INGESTION_URL.",
        )
    finally:
        connection.close()
    return yes("TLS", f"{version}, the certificate of {host} is verified against {authorities}")


def certificates(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return whom httpx trusts, and the setting that says so."""
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        if environment.get(name):
            return f"{name}={environment[name]}", name
    return "certifi's list", "SSL_CERT_FILE"


def _proxy_headers(proxy: SplitResult) -> dict[str, str]:
    if not proxy.username:
        return {}
    credentials = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(credentials.encode()).decode()}"}


def send(url: str, api_key: str | None, timeout: float) -> Line:
    """Send one event that says it is a test, as the processor would, and return what the backend answers."""
    key = uuid.uuid4().hex
    test = event.Event(
        task="Test event of seer-otel doctor",
        context=(event.Passage(TEST_TEXT, id="seer-otel-doctor"),),
        metadata={"seer_otel.test": True},
        span_name="seer-otel doctor",
        trace_id=key,
        created_at=datetime.now(timezone.utc).isoformat().replace("+00:00", "Z"),
        sample_rate=1.0,
    )
    try:
        transport = HttpTransport(url, api_key, timeout)
        try:
            with suppressed_instrumentation():
                reply = transport.send(event.encode(test), key)
        finally:
            transport.close()
    except ConfigurationError as error:
        return no("test event", "nothing can be sent", f"{error}.")
    except (TransportError, OSError) as error:
        advice = "See host, connection and TLS above; after a time-out, raise SEER_OTEL_TIMEOUT."
        return no("test event", f"no answer ({error})", advice)
    return answer(reply.status, key)


def answer(status: int, trace_id: str) -> Line:
    """Return what a backend's answer to the test event means. Pure."""
    value = f"HTTP {status}"
    if 200 <= status < 300:
        return yes("test event", f"{value}: taken, as trace {trace_id}")
    advice = {
        401: "The key is refused: set SEER_API_KEY to a key of this backend.",
        403: "The key is refused: set SEER_API_KEY to a key that may send events.",
        404: "Nothing is there: SEER_INGESTION_URL must be the complete URL of the log endpoint.",
        405: "It takes no events: SEER_INGESTION_URL must be the complete URL of the log endpoint.",
        413: "The event is too large for it, though it is small; look at what stands before the backend.",
        429: "It takes no more for now; events would be tried again. Lower SEER_SAMPLE_RATE if it lasts.",
    }
    if status >= 500 or status == 408:
        return no("test event", value, "The backend is in trouble; events would be tried again.")
    if 300 <= status < 400:
        return no(
            "test event", value, "Redirects are not followed: set SEER_INGESTION_URL to where it points."
        )
    other = "The backend refuses it: check that SEER_INGESTION_URL is a log endpoint."
    return no("test event", value, advice.get(status, other))
