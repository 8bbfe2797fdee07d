"""The exporter behind the SDK's own processors."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExportResult

from seer_otel import (
    InMemoryTransport,
    SeerContextProcessor,
    SeerSpanExporter,
    Stats,
    using_task,
)

RETRIEVER = {
    "openinference.span.kind": "RETRIEVER",
    "input.value": "a query",
    "retrieval.documents.0.document.content": "a text",
}


@pytest.fixture
def memory() -> InMemoryTransport:
    return InMemoryTransport()


@pytest.fixture
def exporter(memory: InMemoryTransport) -> Iterator[SeerSpanExporter]:
    exporter = SeerSpanExporter(transport=memory, sample_rate=1.0)
    yield exporter
    exporter.shutdown()


def traced(*processors: Any) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    for processor in processors:
        provider.add_span_processor(processor)
    return provider


def ask(provider: TracerProvider, question: str) -> None:
    tracer = provider.get_tracer("test")
    with tracer.start_as_current_span("chain", attributes={"input.value": question}):
        tracer.start_span("retriever", attributes=RETRIEVER).end()


def test_behind_a_batch_processor(memory: InMemoryTransport, exporter: SeerSpanExporter) -> None:
    """A shutdown of the provider delivers all that the batch processor holds, as whole traces."""
    provider = traced(BatchSpanProcessor(exporter, schedule_delay_millis=60_000))
    for i in range(30):
        ask(provider, f"question {i}")
    provider.shutdown()
    assert sorted(event["task"] for event in memory.events) == sorted(f"question {i}" for i in range(30))
    assert all(event["is_final_context"] for event in memory.events)
    assert not any("seer_otel.partial" in event["metadata"] for event in memory.events)
    assert exporter.stats().held == 0


def test_behind_a_simple_processor(memory: InMemoryTransport, exporter: SeerSpanExporter) -> None:
    """Span by span, the exporter waits for the root before it sends the retrieval with the root's question."""
    provider = traced(SimpleSpanProcessor(exporter))
    ask(provider, "a question")
    assert exporter.force_flush()
    (event,) = memory.events
    assert (event["task"], event["subquery"], event["is_final_context"]) == ("a question", "a query", True)


def test_without_a_flush(memory: InMemoryTransport, exporter: SeerSpanExporter) -> None:
    """A trace whose root has ended is sent by itself, after a while of quiet."""
    ask(traced(SimpleSpanProcessor(exporter)), "a question")
    until = time.monotonic() + 20
    while not memory.events:
        assert time.monotonic() < until
        time.sleep(0.02)
    assert memory.events[0]["task"] == "a question"


def test_a_flush_before_the_root(memory: InMemoryTransport, exporter: SeerSpanExporter) -> None:
    """What a flush sends before the root was exported is partial and not final."""
    provider = traced(SimpleSpanProcessor(exporter))
    with provider.get_tracer("test").start_as_current_span("chain", attributes={"input.value": "a question"}):
        provider.get_tracer("test").start_span("retriever", attributes=RETRIEVER).end()
        assert exporter.force_flush()
    (event,) = memory.events
    assert (event["metadata"]["seer_otel.partial"], event["is_final_context"]) == ("flush", False)


def test_with_the_context_processor(memory: InMemoryTransport, exporter: SeerSpanExporter) -> None:
    """Beside the context processor an exporter knows what the `using_*` blocks said."""
    provider = traced(SeerContextProcessor(), SimpleSpanProcessor(exporter))
    with using_task("what the user asked"):
        ask(provider, "a question")
    assert exporter.force_flush()
    assert memory.events[0]["task"] == "what the user asked"


def test_export_never_raises(memory: InMemoryTransport, exporter: SeerSpanExporter) -> None:
    """An export always answers, whatever it is given, and later ones go on."""
    for batch in ([], [None], [ReadableSpan(name="without context")], [5, object()]):
        assert exporter.export(batch) in (SpanExportResult.SUCCESS, SpanExportResult.FAILURE)  # type: ignore[arg-type]
    ask(traced(SimpleSpanProcessor(exporter)), "a question")
    assert exporter.force_flush()
    assert len(memory.events) == 1


def test_after_a_shutdown(memory: InMemoryTransport, exporter: SeerSpanExporter) -> None:
    """After a shutdown, and a second one, exports are counted and nothing is sent."""
    provider = traced(SimpleSpanProcessor(exporter))
    exporter.shutdown()
    exporter.shutdown()
    ask(provider, "a question")
    assert exporter.force_flush()
    assert memory.requests == []
    assert dict(exporter.stats().dropped) == {"shutdown": 1}


@pytest.mark.parametrize("variable", ["SEER_OTEL_ENABLED=false", "OTEL_SDK_DISABLED=true"])
def test_switched_off(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Switched off, an exporter checks nothing, starts nothing, sends nothing and answers SUCCESS."""
    name, value = variable.split("=")
    monkeypatch.setenv(name, value)
    before = set(threading.enumerate())
    exporter = SeerSpanExporter(sample_rate="nonsense")
    monkeypatch.delenv(name)
    ask(traced(SimpleSpanProcessor(exporter)), "a question")
    assert exporter.export([]) is SpanExportResult.SUCCESS
    assert exporter.force_flush()
    assert exporter.flush().complete
    assert exporter.stats() == Stats()
    exporter.shutdown()
    assert set(threading.enumerate()) <= before
