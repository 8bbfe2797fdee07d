"""Synchronous mode: for functions that are frozen between calls, where no thread gets to run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from seer_otel import InMemoryTransport, Reply, SeerSpanExporter, TransportError

MakeApp = Callable[..., Any]


def test_sent_when_the_root_ends(make_app: MakeApp) -> None:
    """When a trace's root has ended its events are with the backend; no thread of ours was started."""
    before = set(threading.enumerate())
    app = make_app(synchronous=True)
    with app.chain("a question"):
        app.retrieve()
        assert not app.events
    assert app.tasks == ["a question"]
    assert app.events[0]["is_final_context"]
    assert set(threading.enumerate()) == before


def test_under_a_remote_parent(make_app: MakeApp) -> None:
    """A trace whose root is elsewhere is sent when its local root ends, and others that are open stay open."""
    app = make_app(synchronous=True)
    with app.chain("still open"):
        app.retrieve("of the open one")
        app.retrieve("remote", context=app.remote_parent())
        assert app.tasks == ["remote"]
    assert app.tasks == ["remote", "still open"]


def test_a_failure_is_tried_again_with_the_next_trace(make_app: MakeApp, monkeypatch: Any) -> None:
    """An event that could not be sent is not waited for; it goes out with a later trace, or with a flush."""
    monkeypatch.setattr("random.random", lambda: 1.0)
    app = make_app(synchronous=True, transport=(memory := InMemoryTransport([Reply(503)])))
    began = time.monotonic()
    with app.chain("first"):
        app.retrieve()
    with app.chain("second"):
        app.retrieve()
    assert [event["task"] for event in memory.events] == ["second"]
    assert time.monotonic() - began < 1.0  # the next try of the first comes only then
    assert app.processor.flush(10.0).complete
    assert [event["task"] for event in memory.events] == ["second", "first"]


def test_a_backend_that_is_away(make_app: MakeApp, monkeypatch: Any) -> None:
    """After three failures in a row no further trace asks the backend, until the pause is over."""
    monkeypatch.setattr("random.random", lambda: 1.0)
    memory = InMemoryTransport([TransportError("ConnectError")] * 3)
    app = make_app(synchronous=True, transport=memory)
    for i in range(10):
        with app.chain(str(i)):
            app.retrieve()
    assert len(memory.requests) == 3
    assert app.processor.stats().held == 10
    assert app.processor.flush(10.0).complete
    assert sorted(event["task"] for event in memory.events) == [str(i) for i in range(10)]


def test_the_exporter(make_app: MakeApp) -> None:
    """An exporter sends a batch while it exports it."""
    app = make_app()
    with app.chain("a question"):
        app.retrieve()
    memory = InMemoryTransport()
    exporter = SeerSpanExporter(synchronous=True, transport=memory, sample_rate=1.0)
    with app.chain("a question") as root:
        span = app.tracer.start_span("retriever")
        span.set_attributes(
            {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.content": "a text"}
        )
        span.end()
    exporter.export([span._readable_span(), root._readable_span()])  # type: ignore[attr-defined]
    assert [event["task"] for event in memory.events] == ["a question"]
    exporter.shutdown()
