"""One event over HTTP: what is sent, what counts as an answer, and where the key never goes."""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seer_otel import HttpTransport, InMemoryTransport, Reply, TransportError, __version__
from seer_otel.endpoint import is_loopback

KEY = "seer_canary_key"
BODY = b'{"task": "a question", "context": []}'


@pytest.fixture
def connect() -> Iterator[Callable[..., HttpTransport]]:
    """`connect(url, key, timeout)` is a transport; closed after the test."""
    made: list[HttpTransport] = []

    def make(url: str, key: str | None = KEY, timeout: float = 5.0) -> HttpTransport:
        made.append(HttpTransport(url, key, timeout))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_the_request(server: Any, connect: Any) -> None:
    """An event is one POST of exactly its bytes, with our name and version, the key and the idempotency key."""
    assert connect(server.url).send(BODY, "trace-span") == Reply(200)
    (request,) = server.requests
    assert (request.method, request.path, request.body) == ("POST", "/v1/log", BODY)
    sent = {
        name: request.headers[name]
        for name in ("content-type", "user-agent", "idempotency-key", "authorization")
    }
    assert sent == {
        "content-type": "application/json",
        "user-agent": f"seer-otel/{__version__}",
        "idempotency-key": "trace-span",
        "authorization": f"Bearer {KEY}",
    }


def test_without_a_key(server: Any, connect: Any) -> None:
    """Without a key no Authorization header is sent."""
    connect(server.url, None).send(BODY, "a")
    assert "authorization" not in server.requests[0].headers


def test_one_connection(server: Any, answer: Any, connect: Any) -> None:
    """Requests one after the other share a connection, whatever their answers' bodies."""
    server.script.append(answer(400, body=b"x" * 10_000))
    there = connect(server.url)
    for _ in range(3):
        there.send(BODY, "a")
    assert len({request.connection for request in server.requests}) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects(server: Any, elsewhere: Any, answer: Any, connect: Any, status: int) -> None:
    """A redirect is an answer like others: it is not followed, and neither event nor key go where it points."""
    server.default = answer(status, {"Location": elsewhere.url})
    assert connect(server.url).send(BODY, "a") == Reply(status)
    assert len(server.requests) == 1
    assert elsewhere.requests == []


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_loopback_bypasses_proxies(
    server: Any, elsewhere: Any, connect: Any, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What goes to this machine takes no detour over a proxy that the environment names."""
    monkeypatch.setenv(variable, f"http://127.0.0.1:{elsewhere.port}")
    assert connect(server.url).send(BODY, "a") == Reply(200)
    assert elsewhere.requests == []


def raw(head: str, body: bytes = b"") -> bytes:
    return head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body


@pytest.mark.parametrize(
    "answered",
    [
        raw("HTTP/1.1 204 No Content"),
        raw("HTTP/1.1 299 Odd\nContent-Length: 0"),
        raw("HTTP/1.1 200 OK\nContent-Length: 5", b"\xff\xfe{[,"),
        raw("HTTP/1.1 202 Accepted\nContent-Length: 100", b"cut short"),
        raw("HTTP/1.1 200 OK\nContent-Encoding: gzip\nContent-Length: 7", b"no gzip"),
        raw("HTTP/1.1 200 OK\nContent-Encoding: br, x\nContent-Length: 4", b"what"),
        raw("HTTP/1.1 201 Created\nTransfer-Encoding: chunked", b"zz\r\nno chunk"),
        raw("HTTP/1.0 200 OK", b"until the connection closes"),
    ],
    ids=lambda each: each[9:12].decode(),
)
def test_any_2xx(server: Any, answer: Any, connect: Any, answered: bytes) -> None:
    """A 2xx is an answer whatever comes after its status line and headers: nothing, rubbish, or too little."""
    server.default = answer(raw=answered)
    assert 200 <= connect(server.url).send(BODY, "a").status < 300
    assert len(server.requests) == 1


def test_an_endless_body(server: Any, answer: Any, connect: Any) -> None:
    """Of an answer whose body does not end no more than a little is read."""
    server.default = answer(raw=raw("HTTP/1.1 200 OK\nContent-Length: 1000000000000", b"x" * 50_000_000))
    assert connect(server.url).send(BODY, "a") == Reply(200)


def test_a_body_that_never_comes(server: Any, connect: Any) -> None:
    """An answer whose body does not come is an answer once the time-out has passed."""
    import socketserver

    class Silent(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            self.request.sendall(raw("HTTP/1.1 200 OK\nContent-Length: 10"))
            done.wait(20)

    done = threading.Event()
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Silent) as silent:
        thread = threading.Thread(target=silent.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            url = f"http://127.0.0.1:{silent.server_address[1]}/v1/log"
            assert connect(url, timeout=0.1).send(BODY, "a") == Reply(200)
        finally:
            done.set()
            silent.shutdown()
            thread.join()


def test_no_answer(server: Any, answer: Any, connect: Any, dead_url: str) -> None:
    """No connection, silence and rubbish are errors that name their kind, and neither key nor event."""
    gate = threading.Event()
    errors = []
    for there, answers in (
        (connect(dead_url), None),
        (connect(server.url, timeout=0.1), answer(until=gate)),
        (connect(server.url), answer(raw=b"SSH-2.0-OpenSSH_9.6\r\n\r\n")),
        (connect(server.url), answer(raw=b"")),
    ):
        server.default = answers or server.default
        with pytest.raises(TransportError) as raised:
            there.send(BODY, "a")
        errors.append(str(raised.value))
        shown = "".join(traceback.format_exception(raised.value)) + repr(there) + repr(raised.value)
        assert KEY not in shown
        assert "question" not in shown
    gate.set()
    assert errors == ["ConnectError", "ReadTimeout", "RemoteProtocolError", "RemoteProtocolError"]


def test_retry_after_header(server: Any, answer: Any, connect: Any) -> None:
    """The Retry-After header comes back as it stands."""
    server.default = answer(503, {"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"})
    assert connect(server.url).send(BODY, "a") == Reply(503, "Fri, 31 Dec 1999 23:59:59 GMT")


def test_close_and_send(server: Any, connect: Any) -> None:
    """After a close the next event goes over a new connection."""
    there = connect(server.url)
    there.send(BODY, "a")
    there.close()
    there.close()
    there.send(BODY, "b")
    assert len({request.connection for request in server.requests}) == 2


def test_many_threads(server: Any, connect: Any) -> None:
    """Eight threads send over one transport; every request is answered, over no more than eight connections."""
    there = connect(server.url)
    replies: list[Reply] = []

    def send() -> None:
        replies.extend(there.send(BODY, str(i)) for i in range(10))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies == [Reply(200)] * 80
    assert len({request.connection for request in server.requests}) <= 8


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_after_a_fork(server: Any, connect: Any) -> None:
    """The child of a fork opens a connection of its own; its parent goes on with the old one."""
    there = connect(server.url)
    there.send(BODY, "before")
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            there.send(BODY, "child")
            there.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    there.send(BODY, "parent")
    connections = {request.headers["idempotency-key"]: request.connection for request in server.requests}
    assert connections["parent"] == connections["before"] != connections["child"]


def test_a_large_event(server: Any, connect: Any) -> None:
    """A megabyte arrives as it was sent."""
    body = b'{"task": "' + b"x" * 1024 * 1024 + b'", "context": []}'
    connect(server.url).send(body, "a")
    assert server.requests[0].body == body


# --- Loopback ---


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.1", True),
        ("127.255.255.254", True),
        ("::1", True),
        (None, False),
        ("", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
        ("127.example.com", False),
        ("0.0.0.0", False),
        ("128.0.0.1", False),
        ("::2", False),
        ("api.seersearch.com", False),
    ],
)
def test_is_loopback(host: str | None, here: bool) -> None:
    """Only names and addresses of this machine count as this machine."""
    assert is_loopback(host) is here


@given(host=st.from_regex(r"[a-z0-9.-]{0,20}\.(com|org|local|dev)", fullmatch=True))
def test_no_domain_is_loopback(host: str) -> None:
    """No domain name but localhost counts as this machine."""
    assert not is_loopback(host)


# --- In memory ---


def test_in_memory() -> None:
    """The transport for tests keeps each delivered event once, and every request."""
    memory = InMemoryTransport([Reply(503), TransportError("ReadTimeout")])
    assert memory.send(BODY, "a") == Reply(503)
    with pytest.raises(TransportError):
        memory.send(BODY, "a")
    assert memory.send(BODY, "a") == memory.send(BODY, "a") == Reply(200)
    memory.close()
    assert memory.events == [{"task": "a question", "context": []}]
    assert [key for _, key in memory.requests] == ["a"] * 4
