from __future__ import annotations

import json
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import sqlalchemy as sa

from seer_otel.event import Event, Passage, encode
from seer_otel.local.api.log import MAX_BODY
from seer_otel.local.storage.migrations import HEAD
from seer_otel.local.storage.tables import arrivals

if TYPE_CHECKING:
    from conftest import Backend

JSON = {"Content-Type": "application/json"}
SMALL = b'{"task": "question", "context": []}'


def post(backend: Backend, content: Any = SMALL, path: str = "/v1/log", **headers: str) -> httpx.Response:
    """Post `content`, as JSON unless `headers` say otherwise."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(backend.url + path, content=content, headers=JSON | names)


def refused(response: httpx.Response, status: int, code: str) -> dict[str, str]:
    """Return the error of a response, which has this status and code."""
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    [(name, error)] = response.json().items()
    assert name == "error"
    assert error["code"] == code
    assert error["message"]
    return dict(error)


def stored(backend: Backend) -> int:
    return sum(len(records) for records in backend.store.traces(1_000))


def raw(backend: Backend, request: bytes, *, leave: bool = False) -> bytes:
    """Send bytes as they are, and return everything that comes back until the server closes; or `leave` first."""
    url = httpx.URL(backend.url)
    with socket.create_connection((url.host, url.port or 0), timeout=30) as connection:
        connection.sendall(request)
        if leave:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while chunk := connection.recv(65_536):
            answer += chunk
        return answer


def test_an_event_is_accepted(backend: Backend) -> None:
    """An event is answered as Seer answers it, and is in the store under the id in the answer."""
    response = post(backend, encode(Event("question", (Passage("text"),))))
    assert response.status_code == 200
    assert response.json().keys() == {"record_id", "accepted"}
    assert response.json()["accepted"] is True
    [[record]] = backend.store.traces(10)
    assert record.record_id == response.json()["record_id"]


def test_a_repeated_request_is_stored_once(backend: Backend) -> None:
    """A request whose key is known is accepted with the same record id, and an empty key is none."""
    first, second = post(backend, Idempotency_Key="k"), post(backend, Idempotency_Key="k")
    assert first.json() == second.json()
    assert stored(backend) == 1
    assert post(backend, Idempotency_Key="").json() != post(backend, Idempotency_Key="").json()
    assert stored(backend) == 3


@pytest.mark.parametrize("content", [b"", b"{", SMALL[:-1], b"\xff", b"[" * 100_000, b'{"a":' * 100_000])
def test_no_json(backend: Backend, content: bytes) -> None:
    """What is not JSON, is cut in the middle or is nested 100,000 deep is 400."""
    refused(post(backend, content), 400, "invalid_json")


def test_no_event(backend: Backend) -> None:
    """What breaks the schema is 422 with the path of the field, or none where it is no object at all."""
    context = ["a", "b", "c", {"text": "d" * 4_001}]
    error = refused(post(backend, json.dumps({"task": "a", "context": context})), 422, "invalid_event")
    assert error["field"] == "context[3].text"
    assert "4000" in error["message"]
    error = refused(post(backend, json.dumps({"task": "a", "context": ["b"] * 51})), 422, "invalid_event")
    assert error["field"] == "context"
    assert "field" not in refused(post(backend, b"[]"), 422, "invalid_event")
    assert stored(backend) == 0


@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonx"]
)
def test_another_media_type(backend: Backend, media_type: str) -> None:
    """Only application/json is taken, so that a page in a browser cannot send a form here."""
    refused(post(backend, Content_Type=media_type), 415, "unsupported_media_type")


def test_parameters_of_the_media_type(backend: Backend) -> None:
    """The media type may have parameters, and its case does not matter."""
    assert post(backend, Content_Type="Application/JSON; charset=utf-8").status_code == 200


def test_other_paths_and_methods(backend: Backend) -> None:
    """Another path is 404, without a redirect for a slash too many, and another method 405 with what is allowed."""
    refused(post(backend, path="/v1/logs"), 404, "not_found")
    refused(post(backend, path="/v1/log/"), 404, "not_found")
    response = httpx.get(f"{backend.url}/v1/log")
    refused(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "POST"


def test_health(backend: Backend) -> None:
    """The health page answers 200 with the schema, and how many events wait to be judged."""
    assert httpx.get(f"{backend.url}/healthz").json() == {"status": "ok", "schema": HEAD, "pending": 0}
    post(backend, b'{"task": "question", "context": [], "sample_rate": 1.0}')
    post(backend, b'{"task": "question", "context": [], "sample_rate": 0.0}')
    assert httpx.get(f"{backend.url}/healthz").json()["pending"] == 1


def padded(size: int) -> bytes:
    """A good event of exactly `size` bytes."""
    return SMALL + b" " * (size - len(SMALL))


def in_chunks(content: bytes) -> Iterator[bytes]:
    for start in range(0, len(content), 100_000):
        yield content[start : start + 100_000]


def test_the_limit_of_a_body(backend: Backend) -> None:
    """A body of 4 MiB is accepted and one byte more is 413, whether its length is announced or it is chunked."""
    for wrap in (bytes, in_chunks):
        assert post(backend, wrap(padded(MAX_BODY))).status_code == 200
        refused(post(backend, wrap(padded(MAX_BODY + 1))), 413, "body_too_large")
        refused(post(backend, wrap(padded(4 * MAX_BODY))), 413, "body_too_large")
    assert stored(backend) == 2


def test_a_length_that_is_too_small(backend: Backend) -> None:
    """Where more bytes come than Content-Length announces, the announced part is judged alone."""
    head = b"POST /v1/log HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n"
    assert raw(backend, head + padded(1_000) + b"\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert stored(backend) == 0


def test_a_length_that_is_too_large(backend: Backend) -> None:
    """A client that leaves before its body is complete stores nothing, and the server goes on."""
    head = (
        b"POST /v1/log HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n"
    )
    raw(backend, head + SMALL, leave=True)
    assert post(backend).status_code == 200
    assert stored(backend) == 1


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer seer_test_ke",
        "Bearer seer_test_keys",
        "Bearer \xfc",
        "Basic seer_test_key",
        "seer_test_key",
    ],
)
def test_a_wrong_key(locked_backend: Backend, authorization: str) -> None:
    """With a key configured, anything but that key as bearer is 401, before the body is looked at."""
    headers = [(b"content-type", b"application/json"), (b"authorization", authorization.encode("latin-1"))]
    for content in (SMALL, b"{", padded(2 * MAX_BODY)):
        response = httpx.post(f"{locked_backend.url}/v1/log", content=content, headers=headers)
        error = refused(response, 401, "unauthorized")
        assert response.headers["www-authenticate"] == "Bearer"
        assert "seer_test" not in error["message"]
    assert stored(locked_backend) == 0


def test_the_right_key(locked_backend: Backend) -> None:
    """The key opens, whatever the case of the word bearer, and health needs none."""
    assert post(locked_backend, Authorization="Bearer seer_test_key").status_code == 200
    assert post(locked_backend, Authorization="bearer  seer_test_key").status_code == 200
    assert httpx.get(f"{locked_backend.url}/healthz").status_code == 200


def test_storage_that_fails(backend: Backend) -> None:
    """When the database refuses, the answer is 503 and not accepted."""
    with closing(sqlite3.connect(backend.store.path)) as connection:
        connection.execute("DROP TABLE events")
    assert "no such table" in refused(post(backend), 503, "storage_failed")["message"]


def test_many_at_once(backend: Backend) -> None:
    """Events of many connections are all stored, each under the id in its own answer, and a bad one harms none."""
    answers: dict[str, str] = {}

    def send(sender: int) -> None:
        with httpx.Client(base_url=backend.url, headers=JSON) as client:
            for number in range(20):
                task = f"{sender}-{number}"
                response = client.post("/v1/log", json={"task": task, "context": ["a" * 1_000]})
                answers[response.json()["record_id"]] = task
                assert client.post("/v1/log", content="{").status_code == 400

    threads = [threading.Thread(target=send, args=(sender,)) for sender in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 160
    there = {record.record_id: record.event().task for [record] in backend.store.traces(1_000)}
    assert there == answers


def test_a_full_queue(small_backend: Backend) -> None:
    """While the disk is busy as many events wait as there is room for; the others are 429 and told when to return."""
    answers: list[httpx.Response] = []

    def send() -> None:
        answers.append(httpx.post(f"{small_backend.url}/v1/log", content=SMALL, headers=JSON, timeout=60))

    threads = [threading.Thread(target=send) for _ in range(10)]
    with closing(sqlite3.connect(small_backend.store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for thread in threads:
            thread.start()
        pause = threading.Event()
        while len(answers) < 7:  # one is being written, two wait
            pause.wait(0.01)
        for answer in answers:
            refused(answer, 429, "queue_full")
            assert int(answer.headers["retry-after"]) >= 1
        other.execute("ROLLBACK")
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [429] * 7
    assert stored(small_backend) == 3


def test_what_came_in_is_counted(backend: Backend) -> None:
    """Accepted, repeated and refused requests are counted by what they were answered."""
    post(backend, Idempotency_Key="k")
    post(backend, Idempotency_Key="k")
    post(backend, b"{")
    post(backend, b"[]")
    post(backend, Content_Type="text/plain")
    post(backend, path="/v1/logs")
    post(backend)
    counts: dict[str, int] = {}
    with backend.store.engine.connect() as connection:
        for row in connection.execute(sa.select(arrivals)):
            counts[row.outcome] = counts.get(row.outcome, 0) + row.n
    assert counts == {
        "accepted": 2, "duplicate": 1, "invalid_json": 1, "invalid_event": 1, "unsupported_media_type": 1,
        "not_found": 1,
    }  # fmt: skip


def test_deleting_a_trace(backend: Backend) -> None:
    """A trace is deleted by its id, once; an event without a trace by its record id."""
    trace = "a" * 32
    post(backend, json.dumps({"task": "a", "context": [], "trace_id": trace}))
    record_id = post(backend).json()["record_id"]
    for name in (trace, record_id):
        assert httpx.delete(f"{backend.url}/v1/traces/{name}").json() == {"deleted": True}
        refused(httpx.delete(f"{backend.url}/v1/traces/{name}"), 404, "not_found")
    assert stored(backend) == 0


def test_deleting_needs_the_key(locked_backend: Backend) -> None:
    """With a key configured, nothing but the ingest and health is answered without it; a browser may send it, too."""
    event = json.dumps({"task": "a", "context": [], "trace_id": "a" * 32})
    assert post(locked_backend, event, Authorization="Bearer seer_test_key").status_code == 200
    url = f"{locked_backend.url}/v1/traces/{'a' * 32}"
    for credentials in (None, ("any", "wrong"), ("seer_test_key", "")):
        response = httpx.delete(url, auth=credentials)
        refused(response, 401, "unauthorized")
        assert response.headers["www-authenticate"].startswith("Basic ")
        assert httpx.get(locked_backend.url, auth=credentials).status_code == 401
    refused(httpx.delete(url, headers={"Authorization": "Basic !"}), 401, "unauthorized")
    assert httpx.delete(url, auth=("any", "seer_test_key")).status_code == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 404),
        ("127.0.0.1:1", 404),
        ("[::1]:80", 404),
        ("a.localhost", 404),
        ("evil.example", 403),
    ],
)
def test_the_name_that_a_browser_asked_for(backend: Backend, host: str, status: int) -> None:
    """Without a key only requests under a name of this machine may read or delete; events may come under any."""
    response = httpx.delete(f"{backend.url}/v1/traces/none", headers={"Host": host})
    assert response.status_code == status
    assert httpx.get(f"{backend.url}/healthz", headers={"Host": host}).status_code == 200
    assert post(backend, Host=host).status_code == 200
