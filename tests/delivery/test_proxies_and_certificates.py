"""The way to the backend: over TLS with certificates of one's own, and through proxies, which never see the key."""

from __future__ import annotations

import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

import httpx
import pytest
import trustme

from seer_otel import ConfigurationError, HttpTransport, Reply, TransportError

KEY = "seer_canary_key"
BODY = b'{"task": "a question", "context": []}'
HOST = "backend.test"
"""A name that nothing resolves, so only a proxy gets there."""


class Backend(ThreadingHTTPServer):
    """Takes events over TLS; keeps the headers of each, and who sent it by their certificate."""

    daemon_threads = True

    def __init__(self, certificate: trustme.LeafCert, clients: trustme.CA | None) -> None:
        super().__init__(("127.0.0.1", 0), _Taking)
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        certificate.configure_cert(self.context)
        if clients is not None:
            clients.configure_trust(self.context)
            self.context.verify_mode = ssl.CERT_REQUIRED
        self.headers: list[dict[str, str]] = []
        self.senders: list[Any] = []

    @property
    def url(self) -> str:
        return f"https://localhost:{self.server_port}/v1/log"

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        connection.settimeout(10)
        return self.context.wrap_socket(connection, server_side=True), address

    def handle_error(self, request: Any, client_address: Any) -> None:
        return  # a client that was refused for its certificate


class _Taking(BaseHTTPRequestHandler):
    server: Backend
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.server.senders.append(self.connection.getpeercert())
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        return


class Proxy(ThreadingTCPServer):
    """Opens tunnels to `port` on this machine, whatever host is asked for; keeps what it could read."""

    daemon_threads = True

    def __init__(self, port: int, refusal: bytes | None) -> None:
        super().__init__(("127.0.0.1", 0), _Tunnel)
        self.port = port
        self.refusal = refusal
        self.asked: list[str] = []
        self.seen: list[bytes] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Tunnel(BaseRequestHandler):
    server: Proxy

    def handle(self) -> None:
        head = b""
        while b"\r\n\r\n" not in head and (data := self.request.recv(65536)):
            head += data
        self.server.asked.append(head.decode())
        if self.server.refusal is not None:
            self.request.sendall(self.server.refusal)
            return
        with socket.create_connection(("127.0.0.1", self.server.port)) as there:
            self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=self._pump, args=(there, self.request))
            back.start()
            self._pump(self.request, there)
            back.join()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                self.server.seen.append(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return  # one of the two has gone


@pytest.fixture(autouse=True)
def _no_exemptions(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this machine reaches without a proxy is not what these tests say."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run() -> Iterator[Callable[[Any], Any]]:
    """`run(server)` serves until the end of the test."""
    with ExitStack() as stack:

        def start(server: Any) -> Any:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
            return server

        yield start


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    """Who signed the backend's certificate; no machine trusts it."""
    return trustme.CA()


@pytest.fixture
def ca_file(ca: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    ca.cert_pem.write_to_path(str(path))
    return str(path)


@pytest.fixture
def backend(ca: trustme.CA, run: Any) -> Backend:
    return run(Backend(ca.issue_cert("localhost", "127.0.0.1", HOST), None))


@pytest.fixture
def proxy(backend: Backend, run: Any) -> Proxy:
    """A proxy to the backend."""
    return run(Proxy(backend.server_port, None))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The backend's name is this machine."""
    look_up = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        return look_up("127.0.0.1" if host in (HOST, HOST.encode()) else host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.fixture
def connect() -> Iterator[Callable[..., HttpTransport]]:
    """`connect(url, client)` is a transport; both are closed after the test."""
    with ExitStack() as stack:

        def make(url: str, client: httpx.Client | None = None) -> HttpTransport:
            transport = HttpTransport(url, KEY, http_client=client)
            stack.callback(transport.close)
            if client is not None:
                stack.callback(client.close)
            return transport

        yield make


# --- Certificates ---


def test_a_ca_by_environment(
    backend: Backend, connect: Any, ca_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backend whose certificate an authority of one's own signed is trusted where SSL_CERT_FILE names it."""
    monkeypatch.setenv("SSL_CERT_FILE", ca_file)
    assert connect(backend.url).send(BODY, "a") == Reply(200)
    assert backend.headers[0]["authorization"] == f"Bearer {KEY}"


def test_an_unknown_ca(
    backend: Backend, connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate that no trusted authority signed gets no event and no key, with the usual ones and with others."""
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    usual = connect(backend.url)
    monkeypatch.setenv("SSL_CERT_FILE", str(other))
    for there in (usual, connect(backend.url)):
        with pytest.raises(TransportError, match=r"^ConnectError$"):
            there.send(BODY, "a")
    assert backend.headers == []


def test_another_name(
    ca: trustme.CA, run: Any, connect: Any, ca_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate for another host gets no event and no key."""
    impostor = run(Backend(ca.issue_cert("elsewhere.test"), None))
    monkeypatch.setenv("SSL_CERT_FILE", ca_file)
    with pytest.raises(TransportError, match=r"^ConnectError$"):
        connect(impostor.url).send(BODY, "a")
    assert impostor.headers == []


def test_a_ca_of_the_client(backend: Backend, connect: Any, ca: trustme.CA) -> None:
    """A user's client brings its own trusted certificates."""
    trusting = ssl.create_default_context()
    ca.configure_trust(trusting)
    assert connect(backend.url, httpx.Client(verify=trusting)).send(BODY, "a") == Reply(200)


def test_a_client_certificate(ca: trustme.CA, run: Any, connect: Any) -> None:
    """A backend that asks for a certificate sees that of a user's client; without one it takes nothing."""
    strict = run(Backend(ca.issue_cert("localhost"), ca))
    contexts = ssl.create_default_context(), ssl.create_default_context()
    for context in contexts:
        ca.configure_trust(context)
    ca.issue_cert("app@example.test").configure_cert(contexts[0])
    assert connect(strict.url, httpx.Client(verify=contexts[0])).send(BODY, "a") == Reply(200)
    assert strict.senders[0]["subjectAltName"] == (("email", "app@example.test"),)
    with pytest.raises(TransportError):
        connect(strict.url, httpx.Client(verify=contexts[1])).send(BODY, "b")
    assert len(strict.headers) == 1


def test_no_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without certificates is refused at set-up, by the name of its variable."""
    rubbish = tmp_path / "rubbish.pem"
    rubbish.write_text("no certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(rubbish))
    with pytest.raises(ConfigurationError, match="SSL_CERT_FILE"):
        HttpTransport(f"https://{HOST}/v1/log", KEY)


# --- Proxies ---


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("scheme", ["http://", ""])
def test_a_proxy(
    backend: Backend,
    proxy: Proxy,
    connect: Any,
    ca_file: str,
    variable: str,
    scheme: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Events go through the proxy that the environment names, in a tunnel: it can read neither them nor the key."""
    monkeypatch.setenv("SSL_CERT_FILE", ca_file)
    monkeypatch.setenv(variable, scheme + proxy.address)
    there = connect(f"https://{HOST}/v1/log")
    assert [there.send(BODY, "a"), there.send(BODY, "b")] == [Reply(200)] * 2
    assert [sent["authorization"] for sent in backend.headers] == [f"Bearer {KEY}"] * 2
    (asked,) = proxy.asked
    assert asked.startswith(f"CONNECT {HOST}:443 HTTP/1.1\r\n")
    assert "authorization" not in asked.lower()
    seen = b"".join(proxy.seen)
    assert len(seen) > 2 * len(BODY)
    assert KEY.encode() not in seen
    assert b"a question" not in seen


def test_a_proxy_with_a_password(
    backend: Backend, proxy: Proxy, connect: Any, ca_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """User and password of a proxy's URL are for the proxy alone, and are not shown."""
    monkeypatch.setenv("SSL_CERT_FILE", ca_file)
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:canary@{proxy.address}")
    there = connect(f"https://{HOST}/v1/log")
    assert there.send(BODY, "a") == Reply(200)
    assert "proxy-authorization: basic dxnlcjpjyw5hcnk=" in proxy.asked[0].lower()
    assert "proxy-authorization" not in backend.headers[0]
    assert "canary" not in repr(there) + repr(vars(there))


def test_a_proxy_that_refuses(
    backend: Backend, run: Any, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a proxy answers is not what a backend answers: it is an error, and another try."""
    refusing = run(Proxy(backend.server_port, b"HTTP/1.1 407 Who are you?\r\nContent-Length: 0\r\n\r\n"))
    monkeypatch.setenv("HTTPS_PROXY", refusing.address)
    with pytest.raises(TransportError, match=r"^ProxyError$"):
        connect(f"https://{HOST}/v1/log").send(BODY, "a")


@pytest.mark.parametrize("exempt", [HOST, "test", ".test", "*", "other.test, backend.test", "{netloc}"])
def test_no_proxy(
    backend: Backend,
    proxy: Proxy,
    connect: Any,
    ca_file: str,
    here: None,
    exempt: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A host that NO_PROXY names, by itself, by a domain above it or with its port, is reached without the proxy."""
    netloc = f"{HOST}:{backend.server_port}"
    monkeypatch.setenv("SSL_CERT_FILE", ca_file)
    monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy.address}")
    monkeypatch.setenv("NO_PROXY", exempt.replace("{netloc}", netloc))
    assert connect(f"https://{netloc}/v1/log").send(BODY, "a") == Reply(200)
    assert (len(backend.headers), proxy.asked) == (1, [])


@pytest.mark.parametrize("exempt", ["other.test", "backend", "end.test", "backend.test:1"])
def test_no_proxy_for_others(
    backend: Backend,
    proxy: Proxy,
    connect: Any,
    ca_file: str,
    exempt: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A host that NO_PROXY does not name is reached through the proxy."""
    monkeypatch.setenv("SSL_CERT_FILE", ca_file)
    monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy.address}")
    monkeypatch.setenv("NO_PROXY", exempt)
    assert connect(f"https://{HOST}/v1/log").send(BODY, "a") == Reply(200)
    assert len(proxy.asked) == 1


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "ALL_PROXY"])
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_this_machine(
    backend: Backend,
    proxy: Proxy,
    connect: Any,
    ca_file: str,
    variable: str,
    host: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What goes to this machine takes no detour over a proxy, over TLS either."""
    monkeypatch.setenv("SSL_CERT_FILE", ca_file)
    monkeypatch.setenv(variable, f"http://{proxy.address}")
    assert connect(f"https://{host}:{backend.server_port}/v1/log").send(BODY, "a") == Reply(200)
    assert proxy.asked == []


def test_the_proxy_of_the_other_scheme(
    backend: Backend, proxy: Proxy, connect: Any, ca_file: str, here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTP_PROXY says nothing of https."""
    monkeypatch.setenv("SSL_CERT_FILE", ca_file)
    monkeypatch.setenv("HTTP_PROXY", f"http://{proxy.address}")
    assert connect(f"https://{HOST}:{backend.server_port}/v1/log").send(BODY, "a") == Reply(200)
    assert proxy.asked == []


def test_plain_http(elsewhere: Any, connect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain HTTP to another machine, which must be allowed, goes through HTTP_PROXY as it stands."""
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{elsewhere.port}")
    assert connect(f"http://{HOST}/v1/log").send(BODY, "a") == Reply(200)
    assert [each.path for each in elsewhere.requests] == [f"http://{HOST}/v1/log"]


def test_a_proxy_of_the_client(
    backend: Backend, proxy: Proxy, connect: Any, ca: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's client takes the way that it mounts."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    trusting = ssl.create_default_context()
    ca.configure_trust(trusting)
    way = httpx.HTTPTransport(verify=trusting, proxy=httpx.Proxy(f"http://{proxy.address}"))
    client = httpx.Client(mounts={f"https://{HOST}": way})
    assert connect(f"https://{HOST}/v1/log", client).send(BODY, "a") == Reply(200)
    assert len(proxy.asked) == 1
    assert KEY.encode() not in b"".join(proxy.seen)


@pytest.mark.parametrize("named", ["ftp://user:canary@proxy.test", "http://user:canary@proxy.test:port"])
def test_a_bad_proxy(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that cannot be used is refused at set-up, by the name of its variable and without its password."""
    monkeypatch.setenv("HTTPS_PROXY", named)
    with pytest.raises(ConfigurationError, match=r"^HTTPS_PROXY or ALL_PROXY") as raised:
        HttpTransport(f"https://{HOST}/v1/log", KEY)
    assert "canary" not in str(raised.value)


def test_a_socks_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A SOCKS proxy without the library for it is refused at set-up, with the line that installs it."""
    monkeypatch.setitem(sys.modules, "socksio", None)  # type: ignore[arg-type]
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    with pytest.raises(ConfigurationError, match=r"pip install 'httpx\[socks\]'"):
        HttpTransport(f"https://{HOST}/v1/log", KEY)
