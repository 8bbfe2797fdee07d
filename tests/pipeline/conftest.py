"""A traced application whose events stay in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import Span, TracerProvider
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from seer_otel import InMemoryTransport, SeerSpanProcessor
from seer_otel.pipeline.pipeline import Pipeline


class Clock:
    """Monotonic seconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += seconds


class App:
    """A provider with a processor that keeps its events in memory, and a clock of its own where one is given."""

    def __init__(self, clock: Clock | None = None, **settings: Any) -> None:
        self.memory = InMemoryTransport()
        settings = {"transport": self.memory, "sample_rate": 1.0, **settings}
        self.processor = SeerSpanProcessor(**settings)
        if clock is not None:
            self.processor._hand_to(Pipeline(self.processor.config, sees_starts=True, clock=clock))
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(self.processor)
        self.tracer = self.provider.get_tracer("test")

    @property
    def pipeline(self) -> Pipeline:
        assert self.processor._pipeline is not None
        return self.processor._pipeline

    def turn(self) -> None:
        """Do what the worker does of itself, on this thread, and wait until it is delivered."""
        self.pipeline.flush(5.0, unfinished=False)

    @property
    def events(self) -> list[dict[str, Any]]:
        return self.memory.events

    @property
    def tasks(self) -> list[str]:
        return [event["task"] for event in self.events]

    @contextmanager
    def chain(self, question: str | None = None, **attributes: Any) -> Iterator[Span]:
        attributes = {"openinference.span.kind": "CHAIN", **attributes}
        if question is not None:
            attributes["input.value"] = question
        with self.tracer.start_as_current_span("chain", attributes=attributes) as span:
            assert isinstance(span, Span)
            yield span

    def retrieve(self, query: str = "a query", *texts: str, context: Any = None, **attributes: Any) -> str:
        """Make one retriever span; return its id as events spell it."""
        span = self.tracer.start_span("retriever", context=context)
        span.set_attributes({"openinference.span.kind": "RETRIEVER", "input.value": query, **attributes})
        for i, text in enumerate(texts or (f"text for {query}",)):
            span.set_attribute(f"retrieval.documents.{i}.document.content", text)
        span.end()
        return f"{span.get_span_context().span_id:016x}"

    def remote_parent(self, trace_id: int = 0xABC) -> Any:
        """A context whose span runs in another process."""
        parent = SpanContext(trace_id, 0x1, is_remote=True, trace_flags=TraceFlags(1))
        return trace.set_span_in_context(NonRecordingSpan(parent))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make_app() -> Iterator[Callable[..., App]]:
    """`make_app(clock, **settings)` is a traced application; it is shut down after the test."""
    with ExitStack() as stack:

        def make(clock: Clock | None = None, **settings: Any) -> App:
            app = App(clock, **settings)
            stack.callback(app.provider.shutdown)
            return app

        yield make


@pytest.fixture
def eventually() -> Callable[..., None]:
    """`eventually(condition)` waits until it holds, and fails after ten seconds."""

    def wait(condition: Callable[[], object], seconds: float = 10.0) -> None:
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, "this did not come true in time"
            time.sleep(0.005)

    return wait
