from __future__ import annotations

import json
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from seer_otel.event import Event, Passage, encode
from seer_otel.local.app import MAX_BODY

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
    """The health page answers 200."""
    assert httpx.get(f"{backend.url}/healthz").json() == {"status": "ok"}


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
