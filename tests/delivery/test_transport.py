"""One event over HTTP: what is sent, what counts as an answer, and where the key never goes."""

from __future__ import annotations

import logging
import os
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider

from seer_otel import (
    ConfigurationError,
    HttpTransport,
    InMemoryTransport,
    Reply,
    SeerSpanProcessor,
    TransportError,
    __version__,
)
from seer_otel.endpoint import is_loopback

KEY = "seer_canary_key"
BODY = b'{"task": "a question", "context": []}'


@pytest.fixture
def connect() -> Iterator[Callable[..., HttpTransport]]:
    """`connect(url, key, timeout, client)` is a transport; it and the client are closed after the test."""
    with ExitStack() as stack:

        def make(
            url: str, key: str | None = KEY, timeout: float = 5.0, client: httpx.Client | None = None
        ) -> HttpTransport:
            transport = HttpTransport(url, key, timeout, client)
            stack.callback(transport.close)
            if client is not None:
                stack.callback(client.close)
            return transport

        yield make


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


def test_a_redirect_to_nowhere(server: Any, answer: Any, connect: Any) -> None:
    """A redirect is an answer even where it points to nothing."""
    server.default = answer(302, {"Location": "https://[nowhere/"})
    assert connect(server.url).send(BODY, "a") == Reply(302)


def test_no_cookies(server: Any, answer: Any, connect: Any) -> None:
    """Nothing that an answer sets comes back with the next request."""
    server.default = answer(200, {"Set-Cookie": "who=you; Path=/"})
    there = connect(server.url)
    there.send(BODY, "a")
    there.send(BODY, "b")
    assert "cookie" not in server.requests[1].headers


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


@pytest.fixture
def trickle() -> Iterator[Callable[..., str]]:
    """`trickle(data, pause)` is the URL of a server whose answer's body is that, again and again, without an end."""
    import socketserver

    done = threading.Event()
    with ExitStack() as stack:

        def start(data: bytes, pause: float) -> str:
            class Endless(socketserver.BaseRequestHandler):
                def handle(self) -> None:
                    self.request.recv(65536)
                    try:
                        self.request.sendall(raw("HTTP/1.1 200 OK\nContent-Length: 1000000000000"))
                        while not done.wait(pause):
                            self.request.sendall(data)
                    except OSError:
                        return  # the client has read enough

            there = stack.enter_context(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Endless))
            thread = threading.Thread(target=there.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            stack.callback(thread.join)
            stack.callback(there.shutdown)
            stack.callback(done.set)
            return f"http://127.0.0.1:{there.server_address[1]}/v1/log"

        yield start


def test_an_endless_body(trickle: Any, connect: Any) -> None:
    """Of an answer whose body does not end no more than a little is read, however long we would wait for an answer."""
    assert connect(trickle(b"x" * 65536, 0), timeout=1000.0).send(BODY, "a") == Reply(200)


def test_an_endless_body_by_the_byte(trickle: Any, connect: Any) -> None:
    """A body of which there is always a little more is read no longer than we would wait for an answer."""
    assert connect(trickle(b"x", 0.005), timeout=0.1).send(BODY, "a") == Reply(200)


def test_a_body_that_never_comes(trickle: Any, connect: Any) -> None:
    """An answer whose body does not come is an answer once the time-out has passed."""
    assert connect(trickle(b"", 0.1), timeout=0.1).send(BODY, "a") == Reply(200)


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
        shown = "".join(traceback.format_exception(raised.value)) + repr(raised.value)
        assert KEY not in shown
        assert "question" not in shown
        assert raised.value.__context__ is None
    gate.set()
    assert errors == ["ConnectError", "ReadTimeout", "RemoteProtocolError", "RemoteProtocolError"]


def test_a_key_that_cannot_be_sent(server: Any) -> None:
    """A key that no header can hold is refused at set-up, without quoting it: libraries that met it would log it."""
    with pytest.raises(ConfigurationError, match="api_key") as raised:
        HttpTransport(server.url, f"{KEY}\r\nX-Other: 1")
    assert KEY not in "".join(traceback.format_exception(raised.value))


def test_a_url_that_cannot_be_sent_to() -> None:
    """A URL that httpx does not take is refused at set-up."""
    with pytest.raises(ConfigurationError, match="endpoint"):
        HttpTransport("https://bad\x00host/v1/log", KEY)


def test_the_key_is_not_shown(server: Any, connect: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Neither a transport's repr, nor what it holds, nor what the libraries beneath it log, shows the key."""
    caplog.set_level(logging.DEBUG)
    there = connect(server.url)
    there.send(BODY, "a")
    assert {record.name.split(".")[0] for record in caplog.records} >= {"httpcore"}
    assert KEY not in caplog.text + repr(there) + repr(vars(there))


def test_nothing_is_logged(server: Any, connect: Any, caplog: pytest.LogCaptureFixture) -> None:
    """An application that logs at INFO does not see our requests."""
    caplog.set_level(logging.INFO)
    connect(server.url).send(BODY, "a")
    assert caplog.text == ""


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


# --- A client of the user's ---


def test_a_client_adds_what_is_its_own(server: Any, connect: Any) -> None:
    """A user's client sends its headers, its auth and its parameters along, and calls its hooks."""
    seen: list[object] = []
    client = httpx.Client(
        headers={"X-Tenant": "acme", "User-Agent": "theirs"},
        cookies={"who": "you"},
        params={"zone": "eu"},
        auth=("user", "password"),
        event_hooks={
            "request": [lambda request: seen.append(request.content)],
            "response": [lambda response: seen.append(response.status_code)],
        },
    )
    assert connect(server.url, client=client).send(BODY, "trace-span") == Reply(200)
    (request,) = server.requests
    assert (request.method, request.path, request.body) == ("POST", "/v1/log?zone=eu", BODY)
    sent = {
        name: request.headers[name]
        for name in ("x-tenant", "cookie", "authorization", "user-agent", "idempotency-key", "content-type")
    }
    assert sent == {
        "x-tenant": "acme",
        "cookie": "who=you",
        "authorization": "Basic dXNlcjpwYXNzd29yZA==",
        "user-agent": f"seer-otel/{__version__}",
        "idempotency-key": "trace-span",
        "content-type": "application/json",
    }
    assert seen == [BODY, 200]


def test_a_client_gets_the_key(server: Any, connect: Any) -> None:
    """The key goes along with a user's client that has no auth of its own, whatever key its headers hold."""
    client = httpx.Client(headers={"authorization": "Bearer other"})
    connect(server.url, client=client).send(BODY, "a")
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_client_is_not_closed(server: Any, connect: Any) -> None:
    """After a close a user's client still has its connection."""
    client = httpx.Client()
    there = connect(server.url, client=client)
    there.send(BODY, "a")
    there.close()
    assert not client.is_closed
    client.post(server.url, content=BODY)
    assert len({request.connection for request in server.requests}) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_client_follows_no_redirect(
    server: Any, elsewhere: Any, answer: Any, connect: Any, status: int
) -> None:
    """A redirect is not followed, even by a client that follows all others."""
    server.default = answer(status, {"Location": elsewhere.url})
    client = httpx.Client(follow_redirects=True)
    assert connect(server.url, client=client).send(BODY, "a") == Reply(status)
    assert elsewhere.requests == []


def test_a_client_waits_no_longer(server: Any, answer: Any, connect: Any) -> None:
    """A client without time-outs waits for an answer as long as we would."""
    gate = threading.Event()
    server.default = answer(until=gate)
    with pytest.raises(TransportError, match=r"^ReadTimeout$"):
        connect(server.url, timeout=0.1, client=httpx.Client(timeout=None)).send(BODY, "a")
    gate.set()


def test_a_hook_that_reads(server: Any, connect: Any) -> None:
    """An answer that a hook has read is an answer, and its connection is used again."""
    client = httpx.Client(event_hooks={"response": [lambda response: response.read()]})
    there = connect(server.url, client=client)
    assert [there.send(BODY, "a"), there.send(BODY, "b")] == [Reply(200)] * 2
    assert len({request.connection for request in server.requests}) == 1


def test_a_hook_that_raises_for_a_status(server: Any, answer: Any, connect: Any) -> None:
    """An answer is what it is, also where a hook makes an error of it."""
    server.default = answer(429, {"Retry-After": "7"})
    client = httpx.Client(event_hooks={"response": [httpx.Response.raise_for_status]})
    assert connect(server.url, client=client).send(BODY, "a") == Reply(429, "7")


def _raise(error: Exception) -> Callable[[object], httpx.Response]:
    def handle(_: object) -> httpx.Response:
        raise error

    return handle


@pytest.mark.parametrize(
    "error",
    [RuntimeError(f"Bearer {KEY}"), ValueError(KEY), OSError(KEY), httpx.InvalidURL(KEY), Exception(KEY)],
)
def test_a_client_that_raises(connect: Any, error: Exception) -> None:
    """Whatever a user's client or one of its hooks raises is an error that names its kind and quotes nothing."""
    for client in (
        httpx.Client(transport=httpx.MockTransport(_raise(error))),
        httpx.Client(event_hooks={"request": [_raise(error)]}),
    ):
        there = connect("https://backend.test/v1/log", client=client)
        with pytest.raises(TransportError) as raised:
            there.send(BODY, "a")
        assert str(raised.value) == type(error).__name__
        assert KEY not in "".join(traceback.format_exception(raised.value))


def test_a_client_that_is_closed(server: Any, connect: Any) -> None:
    """A client that its owner has closed is an error like others."""
    client = httpx.Client()
    there = connect(server.url, client=client)
    client.close()
    with pytest.raises(TransportError, match=r"^RuntimeError$"):
        there.send(BODY, "a")


def test_an_asynchronous_client(server: Any) -> None:
    """A client that cannot send at once is refused at set-up."""
    with pytest.raises(ConfigurationError, match=r"^http_client must be an httpx\.Client, not AsyncClient"):
        HttpTransport(server.url, KEY, http_client=httpx.AsyncClient())  # type: ignore[arg-type]


def test_a_processor_with_a_client(server: Any) -> None:
    """A processor sends with the client that it is given, and leaves it open."""
    with httpx.Client(headers={"X-Tenant": "acme"}) as client:
        processor = SeerSpanProcessor(endpoint=server.url, api_key=KEY, sample_rate=1.0, http_client=client)
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(processor)
        attributes = {"openinference.span.kind": "RETRIEVER", "input.value": "a question"}
        provider.get_tracer("test").start_span("retriever", attributes=attributes).end()
        provider.shutdown()
        assert [request.headers["x-tenant"] for request in server.requests] == ["acme"]
        assert not client.is_closed


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
