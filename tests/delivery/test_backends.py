"""A traced application and its backend: dead, hanging, slow, refusing, and well again."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from seer_otel import DropReason, SeerSpanProcessor

KEY = "seer_canary_key"
Eventually = Callable[..., None]


class App:
    def __init__(self, url: str, **settings: Any) -> None:
        self.processor = SeerSpanProcessor(endpoint=url, api_key=KEY, sample_rate=1.0, **settings)
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(self.processor)
        self.tracer = self.provider.get_tracer("test")

    def retrieve(self, question: str, text: str = "a text", found: bool = True) -> None:
        attributes = {"openinference.span.kind": "RETRIEVER", "input.value": question}
        if found:
            attributes["retrieval.documents.0.document.content"] = text
        self.tracer.start_span("retriever", attributes=attributes).end()


@pytest.fixture
def make_app() -> Iterator[Callable[..., App]]:
    made: list[App] = []

    def make(url: str, **settings: Any) -> App:
        made.append(App(url, **settings))
        return made[-1]

    yield make
    for app in made:
        assert app.processor._pipeline is not None
        app.processor._pipeline.shutdown(0.0)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.random", lambda: 0.0)


def test_sent_without_a_flush(server: Any, make_app: Any, eventually: Eventually) -> None:
    """An event leaves as soon as its trace is complete; nobody needs to flush."""
    app = make_app(server.url)
    app.retrieve("a question")
    eventually(lambda: server.tasks == ["a question"])
    (request,) = server.requests
    event = request.event
    assert request.headers["idempotency-key"] == f"{event['trace_id']}-{event['span_id']}"


@pytest.mark.usefixtures("no_delay")
def test_trouble_loses_nothing(server: Any, answer: Any, make_app: Any) -> None:
    """Through 429, 5xx, 408 and broken answers every event is delivered, and none twice."""
    server.script = [
        answer(429, {"Retry-After": "0"}),
        answer(500),
        answer(raw=b""),
        answer(),
        answer(503),
        answer(408),
        answer(raw=b"HTTP/1.1 5"),
        answer(502),
    ]
    app = make_app(server.url)
    for i in range(10):
        app.retrieve(f"question {i}")
    assert app.processor.flush(20.0).complete
    assert server.tasks == [f"question {i}" for i in range(10)]
    assert app.processor.stats().retries == 7


def test_two_seconds_are_two_seconds(server: Any, answer: Any, make_app: Any) -> None:
    """A flush waits for the second that the backend asked for, and delivers then."""
    server.script = [answer(429, {"Retry-After": "1"})]
    app = make_app(server.url)
    app.retrieve("a question")
    assert app.processor.flush(0.5).held == 1
    assert app.processor.flush(10.0).sent == 1
    assert len(server.requests) == 2


def test_a_dead_backend(dead_url: str, make_app: Any, caplog: pytest.LogCaptureFixture) -> None:
    """With a dead backend a flush returns by its deadline and says what is unsent; a shutdown drops and counts it."""
    app = make_app(dead_url)
    for i in range(20):
        app.retrieve(f"question {i}")
    assert app.processor.force_flush(300) is False
    assert app.processor.stats().held == 20
    app.processor._pipeline.shutdown(0.3)
    stats = app.processor.stats()
    assert (stats.held, dict(stats.dropped)) == (0, {DropReason.SHUTDOWN: 20})
    assert sum(each.levelno >= logging.WARNING for each in caplog.records) == 2


def test_a_hanging_backend(server: Any, answer: Any, make_app: Any, gate: threading.Event) -> None:
    """With a backend that never answers a flush and a shutdown return by their deadlines, and count the rest."""
    server.default = answer(until=gate)
    app = make_app(server.url, timeout=20.0)
    for i in range(3):
        app.retrieve(f"question {i}")
    began = time.monotonic()
    assert app.processor.force_flush(100) is False
    app.processor._pipeline.shutdown(0.1)
    assert time.monotonic() - began < 15.0, "it waited for the answer"
    stats = app.processor.stats()
    assert (stats.held, dict(stats.dropped)) == (1, {DropReason.SHUTDOWN: 2})


def test_a_slow_backend(server: Any, answer: Any, make_app: Any) -> None:
    """A backlog that meets a slow backend is sent by several requests at once, at most eight, and each event once."""
    server.default = answer(seconds=0.02)
    app = make_app(server.url)
    for i in range(300):
        app.retrieve(f"question {i}")
    assert app.processor.flush(30.0).complete
    assert 1 < server.most_at_once <= 8
    keys = [request.headers["idempotency-key"] for request in server.requests]
    assert len(keys) == len(set(keys)) == 300
    assert len({request.connection for request in server.requests}) <= 8


@pytest.mark.usefixtures("no_delay")
def test_it_comes_back(server: Any, answer: Any, make_app: Any, eventually: Eventually) -> None:
    """What a backend could not take during an outage it gets afterwards, once, without any call."""
    server.default = answer(503)
    app = make_app(server.url)
    for i in range(5):
        app.retrieve(f"question {i}")
    eventually(lambda: len(server.requests) >= 5)
    server.default = answer()
    eventually(lambda: len(server.tasks) == 5)
    assert server.tasks == [f"question {i}" for i in range(5)]


def test_a_wrong_key(server: Any, answer: Any, make_app: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A refused key costs one request and one warning, however many events there are."""
    server.default = answer(401)
    app = make_app(server.url)
    for i in range(10):
        app.retrieve(f"question {i}")
    assert app.processor.force_flush()
    assert len(server.requests) == 1
    assert dict(app.processor.stats().dropped) == {DropReason.UNAUTHORIZED: 10}
    (record,) = caplog.records
    assert "SEER_API_KEY" in record.getMessage()


def test_too_large(server: Any, answer: Any, make_app: Any) -> None:
    """A 413 is answered with the same event, cut, once."""
    server.script = [answer(413), answer(413)]
    app = make_app(server.url)
    app.retrieve("a question", text="x" * 3000)
    assert app.processor.force_flush()
    first, second = server.requests
    assert [len(each.event["context"][0]["text"]) for each in (first, second)] == [3000, 1000]
    assert dict(app.processor.stats().dropped) == {DropReason.TOO_LARGE: 1}


def test_empty_results(server: Any, answer: Any, make_app: Any) -> None:
    """An empty result is sent; a backend that refuses it gets no other one, and all the rest."""
    server.script = [answer(422)]
    app = make_app(server.url)
    app.retrieve("nothing", found=False)
    assert app.processor.force_flush()
    app.retrieve("nothing again", found=False)
    app.retrieve("something")
    assert app.processor.force_flush()
    assert [request.event["task"] for request in server.requests] == ["nothing", "something"]
    assert dict(app.processor.stats().dropped) == {DropReason.EMPTY_REFUSED: 2}


def test_the_key_shows_nowhere(
    server: Any, answer: Any, dead_url: str, make_app: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Through refusals, errors and faults the key is in no log record, repr, setting or error, only in the header."""
    caplog.set_level(logging.DEBUG, "seer_otel")
    server.script = [answer(500), answer(302, {"Location": dead_url}), answer(403)]
    apps = [
        make_app(server.url),
        make_app(dead_url),
        make_app(server.url, redact=lambda event: event.nothing),
    ]
    for app in apps:
        app.retrieve("a question")
        app.processor.flush(0.5)
    shown = [
        repr(each) for app in apps for each in (app.processor, app.processor.config, app.processor._pipeline)
    ]
    shown += [repr(app.processor._pipeline._transport) for app in apps]
    shown += [record.getMessage() for record in caplog.records]
    shown += ["".join(traceback.format_exception(*each.exc_info)) for each in caplog.records if each.exc_info]
    assert len(shown) > 12
    assert not [each for each in shown if "canary" in each]
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}
    assert not any(b"canary" in request.body for request in server.requests)


class Collecting(SpanExporter):
    def __init__(self) -> None:
        self.names: list[str] = []

    def export(self, spans: Any) -> SpanExportResult:
        self.names += [span.name for span in spans if isinstance(span, ReadableSpan)]
        return SpanExportResult.SUCCESS


@pytest.mark.frameworks
def test_no_spans_of_our_own(server: Any, make_app: Any, eventually: Eventually) -> None:
    """In an application whose httpx is traced our requests make no spans, nor do those of a redact hook."""
    import httpx
    from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor

    def ask(event: Any) -> Any:
        httpx.post(server.url, json={"task": "a hook asks"}, trust_env=False).close()
        return event

    collecting = Collecting()
    app = make_app(server.url, redact=ask)
    app.provider.add_span_processor(SimpleSpanProcessor(collecting))
    HTTPXClientInstrumentor().instrument(tracer_provider=app.provider)
    try:
        app.retrieve("by the worker")
        eventually(lambda: len(server.tasks) == 2)
        app.retrieve("by a flush")
        assert app.processor.force_flush()
        httpx.post(server.url, json={"task": "the application"}, trust_env=False).close()
    finally:
        HTTPXClientInstrumentor().uninstrument()
    assert collecting.names == ["retriever", "retriever", "POST"]
    assert server.tasks == ["a hook asks", "a hook asks", "by a flush", "by the worker", "the application"]
