"""The processor as an application meets it: nothing it is given makes it raise, and it does what it says."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from seer_otel import (
    DropReason,
    InMemoryTransport,
    SeerContextProcessor,
    SeerSpanProcessor,
    Stats,
    using_metadata,
    using_task,
)

RETRIEVER = {
    "openinference.span.kind": "RETRIEVER",
    "input.value": "a question",
    "retrieval.documents.0.document.content": "a text",
}


class Traced:
    def __init__(self, *processors: SpanProcessor) -> None:
        self.provider = TracerProvider(shutdown_on_exit=False)
        for processor in processors:
            self.provider.add_span_processor(processor)
        self.tracer = self.provider.get_tracer("test")

    def retrieve(self, **attributes: Any) -> None:
        self.tracer.start_span("retriever", attributes={**RETRIEVER, **attributes}).end()


@contextmanager
def running(**given_: Any) -> Iterator[tuple[SeerSpanProcessor, InMemoryTransport]]:
    memory = InMemoryTransport()
    processor = SeerSpanProcessor(transport=memory, **{"sample_rate": 1.0, **given_})
    try:
        yield processor, memory
    finally:
        processor.shutdown()


def test_as_a_user_would() -> None:
    """In an application's own test: set up in memory, run, flush, and look at the events as the backend gets them."""
    with running() as (processor, memory):
        app = Traced(processor)
        with app.tracer.start_as_current_span("chain", attributes={"input.value": "Who directed Inception?"}):
            app.retrieve()
        assert app.provider.force_flush()
        assert memory.events[0]["task"] == "Who directed Inception?"
        assert memory.events[0]["context"] == [{"text": "a text"}]
        stats = processor.stats()
        assert (stats.seen, stats.sent, stats.held, dict(stats.dropped)) == (1, 1, 0, {})


def test_blocks_reach_the_events() -> None:
    """What the `using_*` blocks say stands on the spans started inside, and so in the event."""
    with running() as (processor, memory):
        app = Traced(processor)
        with using_task("what the user asked"), using_metadata({"channel": "chat"}):
            app.retrieve()
        assert processor.force_flush()
        (event,) = memory.events
        assert (event["task"], event["subquery"]) == ("what the user asked", "a question")
        assert event["metadata"]["channel"] == "chat"


def test_the_context_processor_only_writes() -> None:
    """The context processor writes the blocks' values on each span, and has nothing to flush or shut down."""
    processor = SeerContextProcessor()
    app = Traced(processor)
    before = set(threading.enumerate())
    with using_task("a task"):
        span = app.tracer.start_span("a span")
    assert isinstance(span, Span)
    assert dict(span.attributes or {}) == {"seer.task": "a task"}
    span.end()
    assert app.provider.force_flush()
    app.provider.shutdown()
    assert set(threading.enumerate()) <= before


def test_two_processors() -> None:
    """Two processors on one provider each send their own copy: two backends, or two tenants."""
    with running() as (one, first), running(sample_rate=0.0) as (two, second), running() as (three, third):
        app = Traced(one, two, three)
        app.retrieve()
        assert app.provider.force_flush()
        assert [len(memory.events) for memory in (first, second, third)] == [1, 0, 1]


def test_added_twice() -> None:
    """A processor that was added to its provider twice sends each event once, and counts the repetition."""
    with running() as (processor, memory):
        app = Traced(processor, processor)
        app.retrieve()
        assert app.provider.force_flush()
        assert len(memory.requests) == len(memory.events) == 1
        stats = processor.stats()
        assert (stats.seen, stats.sent, stats.dropped) == (2, 1, {DropReason.REPEATED: 1})


@pytest.mark.parametrize("variable", ["SEER_OTEL_ENABLED=false", "OTEL_SDK_DISABLED=true"])
def test_switched_off(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Switched off, a processor takes anything, checks nothing, starts nothing, sends nothing and says it is done."""
    name, value = variable.split("=")
    monkeypatch.setenv(name, value)
    before = set(threading.enumerate())
    memory = InMemoryTransport()
    processor = SeerSpanProcessor(transport=memory, sample_rate=7, nested="nonsense")
    monkeypatch.delenv(name)  # so that the provider itself is on
    app = Traced(processor)
    with using_task("a task"):
        app.retrieve()
    assert processor.force_flush()
    assert processor.flush().complete
    assert processor.stats() == Stats()
    assert set(threading.enumerate()) <= before
    app.provider.shutdown()
    assert memory.requests == []


# --- Nothing leaves a hook ---


CANARY = "seer_canary"
"""Not where it is raised: a traceback shows that line."""


class Hostile:
    """An object all of whose methods raise."""

    def _raise(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(CANARY)

    __str__ = __repr__ = __eq__ = __hash__ = __len__ = __bool__ = __iter__ = __getitem__ = __contains__ = (
        _raise
    )
    __float__ = __int__ = __index__ = __lt__ = __format__ = __getattr__ = _raise


class HostileText(str):
    """A text whose methods raise."""

    __slots__ = ()

    def strip(self, *args: Any) -> str:
        raise RuntimeError(CANARY)

    __len__ = __eq__ = lower = split = strip  # type: ignore[assignment]
    __hash__ = str.__hash__


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(st.characters()),
        st.binary(),
        st.sampled_from(
            [
                "{",
                '{"query": ',
                "[[[[" * 500,
                '{"a":' * 2000,
                "__REDACTED__",
                "<none>",
                "\ud800",
                "\0",
                "1e999",
            ]
        ),
        st.builds(Hostile),
        st.builds(HostileText, st.text()),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.tuples(inner), st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=8,
)
KEYS = st.one_of(
    st.sampled_from(
        [
            "openinference.span.kind",
            "input.value",
            "input.mime_type",
            "output.value",
            "metadata",
            "retrieval.documents",
            "retrieval.documents.0",
            "retrieval.documents.0.document.content",
            "retrieval.documents.1.document.content",
            "retrieval.documents.1.document.id",
            "retrieval.documents.1.document.score",
            "retrieval.documents.1.document.metadata",
            "retrieval.documents.99999999999.document.content",
            "retrieval.documents.\u0661.document.content",
            "reranker.query",
            "reranker.input_documents.0.document.content",
            "reranker.output_documents.0.document.content",
            "llm.input_messages.0.message.content",
            "llm.input_messages.0.message.role",
            "seer.task",
            "seer.subquery",
            "seer.sample_rate",
            "seer.is_final_context",
            "seer.metadata.x",
            "seer.ground_truth",
            "seer.ground_truth.gold_doc_ids",
            "seer.ground_truth.answer",
        ]
    ),
    st.text(max_size=5),
    st.integers(),
)
KINDS = st.sampled_from(["RETRIEVER", "RERANKER", "CHAIN", "TOOL", "LLM", "AGENT", "EMBEDDING"])
ATTRIBUTES = st.one_of(
    st.none(),
    st.dictionaries(KEYS, VALUES, max_size=12),
    st.builds(
        lambda kind, more: {**RETRIEVER, "openinference.span.kind": kind, **more},
        KINDS,
        st.dictionaries(KEYS, VALUES, max_size=6),
    ),
)
NUMBERS = st.integers(-(2**70), 2**70)


@st.composite
def spans(draw: st.DrawFn) -> ReadableSpan:
    """Any span of one of a few traces: any attributes, times and status, and perhaps no context at all."""
    flags = TraceFlags(draw(st.sampled_from([0, 1, 1, 1])))
    trace = draw(st.sampled_from([1, 2, 2**128 - 1]))
    context = SpanContext(trace, draw(st.integers(1, 6)), False, flags)
    above = SpanContext(trace, draw(st.integers(1, 6)), draw(st.booleans()), flags)
    span = ReadableSpan(
        name=draw(st.one_of(st.text(), VALUES)),
        context=draw(st.sampled_from([context] * 9 + [None])),
        parent=draw(st.sampled_from([above, above, None])),
        resource=Resource({}),
        status=Status(draw(st.sampled_from([StatusCode.UNSET, StatusCode.OK, StatusCode.ERROR]))),
        start_time=draw(st.one_of(st.none(), NUMBERS)),
        end_time=draw(st.one_of(st.none(), NUMBERS)),
    )
    span._attributes = draw(ATTRIBUTES)  # as processors that translate conventions set them
    return span


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(given_=st.lists(spans(), max_size=8))
def test_whatever_spans(given_: list[ReadableSpan]) -> None:
    """No span makes a hook, a flush or a shutdown raise; nothing is held after it, and what is sent is JSON."""
    with running() as (processor, memory):
        for span in given_:
            processor.on_start(span)  # type: ignore[arg-type]
        for span in given_:
            processor.on_end(span)
        assert processor.force_flush()
        processor.shutdown()
        stats = processor.stats()
        assert stats.held == 0
        assert stats.seen == stats.sent + sum(stats.dropped.values())
        assert stats.sent == len(memory.requests)
        assert len(memory.events) == len({key for _, key in memory.requests})


class Translating(SpanProcessor):
    """Replaces the attributes of each ended span, as processors do that translate one convention into another."""

    def on_end(self, span: ReadableSpan) -> None:
        span._attributes = {**RETRIEVER, "retrieval.documents.0.document.score": Hostile(), 5: Hostile()}  # type: ignore[dict-item]


def test_faults_are_told_without_contents(caplog: pytest.LogCaptureFixture) -> None:
    """A fault costs the events of its trace, is counted and logged once, without a value; other traces are sent."""
    with running() as (processor, memory):
        hostile = Traced(Translating(), processor)
        for _ in range(3):
            hostile.retrieve()
        Traced(processor).retrieve()
        assert processor.force_flush()
        stats = processor.stats()
        assert (stats.seen, stats.held) == (4, 0)
        assert stats.sent == len(memory.events) >= 1
        assert len([each for each in caplog.records if each.levelno >= logging.WARNING]) <= 1
        assert "canary" not in caplog.text


class Broken:
    """Something that is no span."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


def test_no_span_at_all() -> None:
    """Not even what is no span makes a hook raise, nor stops what follows."""
    things: list[Any] = [None, 5, Broken(), object()]
    with running() as (processor, memory):
        for door in (processor, SeerContextProcessor()):
            for thing in things:
                door.on_start(thing)
                door.on_end(thing)
        Traced(processor).retrieve()
        assert processor.force_flush()
        assert len(memory.events) == 1


class BrokenTransport(InMemoryTransport):
    def close(self) -> None:
        raise RuntimeError("cannot close")


class BrokenHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise RuntimeError("cannot log")


def test_broken_surroundings() -> None:
    """A transport that cannot be closed and a log handler that raises cost nothing and reach nobody."""
    handler = BrokenHandler()
    logging.getLogger("seer_otel").addHandler(handler)
    try:
        processor = SeerSpanProcessor(
            transport=BrokenTransport(),
            sample_rate=1.0,
            filter=lambda event: event.nothing,  # type: ignore[attr-defined]
        )
        app = Traced(processor)
        app.retrieve()
        app.retrieve()
        assert processor.force_flush()
        assert dict(processor.stats().dropped) == {DropReason.FILTERED: 2}
        app.provider.shutdown()
    finally:
        logging.getLogger("seer_otel").removeHandler(handler)


@pytest.mark.parametrize("timeout", [None, -1, 0, 10**30, float("nan"), "x"])
def test_any_flush(timeout: Any) -> None:
    """A flush with any argument answers yes or no."""
    with running() as (processor, _):
        Traced(processor).retrieve()
        assert processor.force_flush(timeout) in (True, False)
