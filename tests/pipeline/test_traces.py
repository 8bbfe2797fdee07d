"""Whole traces through a real provider: what is sampled, when it is sent, what is marked, what the hooks change."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import set_span_in_context

from seer_otel import DropReason, Event, InMemoryTransport, SeerSpanExporter, SeerSpanProcessor, marks
from seer_otel.pipeline.pipeline import Pipeline

MakeApp = Callable[..., Any]


def is_whole(event: dict[str, Any]) -> bool:
    return "seer_otel.partial" not in event["metadata"]


# --- Sampling ---


def test_rate_one_keeps_all(make_app: MakeApp, clock: Any) -> None:
    """A kept event tells the backend not to sample again, and says by which rate we did."""
    app = make_app(clock)
    with app.chain("a question"):
        app.retrieve()
    app.turn()
    (event,) = app.events
    assert event["sample_rate"] == 1.0
    assert event["metadata"]["seer_otel.sample_rate"] == 1.0
    assert event["metadata"]["seer_otel.sampled_by"] == "trace"


def test_rate_zero_keeps_none(make_app: MakeApp, clock: Any) -> None:
    """With rate 0 nothing is sent or held, and each trace is counted as sampled out."""
    app = make_app(clock, sample_rate=0.0)
    for _ in range(5):
        with app.chain("a question"):
            app.retrieve()
    app.turn()
    stats = app.processor.stats()
    assert (app.events, stats.seen, stats.held, dict(stats.dropped)) == ([], 0, 0, {})
    assert (stats.traces_seen, stats.traces_sampled_out) == (5, 5)


def test_a_rate_between(make_app: MakeApp, clock: Any) -> None:
    """With a rate of 0.5 either all retrievals of a trace are sent or none."""
    app = make_app(clock, sample_rate=0.5)
    for i in range(40):
        with app.chain(f"question {i}"):
            app.retrieve("first")
            app.retrieve("second")
    app.turn()
    counts = {app.tasks.count(f"question {i}") for i in range(40)}
    assert counts == {0, 2}
    assert len(app.events) == 2 * (40 - app.processor.stats().traces_sampled_out)


def test_an_explicit_rate_on_the_first_span(make_app: MakeApp, clock: Any) -> None:
    """The rate on a trace's first span beats the setting, both ways, and stands in the event."""
    app = make_app(clock, sample_rate=0.0)
    with app.chain("kept", **{marks.SAMPLE_RATE: 1.0}):
        app.retrieve()
    app.turn()
    (event,) = app.events
    assert (event["metadata"]["seer_otel.sample_rate"], is_whole(event)) == (1.0, True)
    other = make_app(clock, sample_rate=1.0)
    with other.chain("left out", **{marks.SAMPLE_RATE: 0.0}):
        other.retrieve()
    other.turn()
    assert other.events == []
    assert other.processor.stats().traces_sampled_out == 1


def test_labels_are_always_kept(make_app: MakeApp, clock: Any) -> None:
    """A trace whose first span carries ground truth is kept at rate 0, whole, and says that a label kept it."""
    app = make_app(clock, sample_rate=0.0)
    with app.chain("a question", **{marks.GROUND_TRUTH_IDS: ["doc-1"]}):
        app.retrieve()
    app.turn()
    (event,) = app.events
    assert event["metadata"]["seer_otel.sampled_by"] == "label"
    assert event["ground_truth"] == {"gold_doc_ids": ["doc-1"]}
    assert is_whole(event)


def test_a_late_label_reopens(make_app: MakeApp, clock: Any) -> None:
    """A label on a later span brings a dropped trace back from there on, marked partial and without a final mark."""
    app = make_app(clock, sample_rate=0.0)
    with app.chain("a question"):
        app.retrieve("before")
        app.retrieve("after", **{marks.GROUND_TRUTH_IDS: ["doc-1"]})
    app.turn()
    (event,) = app.events
    assert event["subquery"] == "after"
    assert event["metadata"]["seer_otel.partial"] == "sampled_late"
    assert event["is_final_context"] is False
    assert app.processor.stats().traces_sampled_out == 0


class RecordOnly(Sampler):
    """Records every span and samples none."""

    def should_sample(
        self, parent_context: Context | None, trace_id: int, name: str, *args: Any, **kwargs: Any
    ) -> SamplingResult:
        return SamplingResult(Decision.RECORD_ONLY)

    def get_description(self) -> str:
        return "RecordOnly"


def test_what_opentelemetry_does_not_sample() -> None:
    """Spans that are recorded but not sampled make no event and no count."""
    memory = InMemoryTransport()
    processor = SeerSpanProcessor(transport=memory, sample_rate=1.0)
    provider = TracerProvider(sampler=RecordOnly(), shutdown_on_exit=False)
    provider.add_span_processor(processor)
    with provider.get_tracer("test").start_as_current_span(
        "retriever",
        attributes={"openinference.span.kind": "RETRIEVER", "input.value": "q", "output.value": "[]"},
    ) as span:
        assert span.is_recording()
    assert processor.force_flush()
    assert memory.events == []
    assert (processor.stats().seen, processor.stats().traces_seen) == (0, 0)
    provider.shutdown()


# --- Completion and the final mark ---


def test_the_whole_trace(make_app: MakeApp, clock: Any) -> None:
    """A trace is sent when its root has ended: with the root's question, and the last retrieval as the final one."""
    app = make_app(clock)
    with app.chain("a question"):
        app.retrieve("first")
        last = app.retrieve("second")
        app.turn()
        assert app.events == []
    app.turn()
    assert app.tasks == ["a question", "a question"]
    assert [event["span_id"] for event in app.events if event["is_final_context"]] == [last]
    assert all(map(is_whole, app.events))


def test_two_retrievals_under_one_remote_parent(make_app: MakeApp, clock: Any) -> None:
    """Of two retrievals under one remote parent, the second after the first was sent, only the first is final."""
    app = make_app(clock)
    first = app.retrieve("first", context=app.remote_parent())
    app.turn()
    clock.pass_(1.9)
    app.turn()
    assert app.events == []
    clock.pass_(0.1)
    app.turn()
    assert [event["span_id"] for event in app.events] == [first]
    app.retrieve("second", context=app.remote_parent())
    app.turn()
    clock.pass_(2.0)
    app.turn()
    assert [event["is_final_context"] for event in app.events] == [True, False]
    assert all(map(is_whole, app.events))


def test_two_quick_retrievals_under_one_remote_parent(make_app: MakeApp, clock: Any) -> None:
    """Of two retrievals under one remote parent within two seconds, both are sent together, the last one final."""
    app = make_app(clock)
    app.retrieve("first", context=app.remote_parent())
    app.turn()
    clock.pass_(1.0)
    app.turn()
    last = app.retrieve("second", context=app.remote_parent())
    app.turn()
    clock.pass_(1.5)
    app.turn()
    assert app.events == []
    clock.pass_(0.5)
    app.turn()
    assert [event["span_id"] for event in app.events if event["is_final_context"]] == [last]
    assert len(app.events) == 2


def test_a_late_span(make_app: MakeApp, clock: Any) -> None:
    """A retrieval that outlives its root is sent after the others, with the root's question and no second final."""
    app = make_app(clock)
    with app.chain("a question") as root:
        app.retrieve("in time")
    context = set_span_in_context(root)
    app.turn()
    app.retrieve("too late", context=context)
    app.turn()
    clock.pass_(2.0)
    app.turn()
    assert app.tasks == ["a question", "a question"]
    assert [event["is_final_context"] for event in app.events] == [True, False]


def test_a_flush_in_the_middle(make_app: MakeApp, clock: Any) -> None:
    """What a flush sends of an open trace is partial and not final; the final one comes with the rest."""
    app = make_app(clock)
    with app.chain("a question"):
        app.retrieve("first")
        assert app.processor.force_flush()
        (early,) = app.events
        assert (early["metadata"]["seer_otel.partial"], early["is_final_context"]) == ("flush", False)
        app.retrieve("second")
    app.turn()
    assert [(is_whole(each), each["is_final_context"]) for each in app.events] == [
        (False, False),
        (True, True),
    ]


def test_a_flush_after_the_last_retrieval(make_app: MakeApp, clock: Any) -> None:
    """Where nothing follows what a flush sent of an open trace, no event of it is final and none is sent twice."""
    app = make_app(clock)
    with app.chain("a question"):
        app.retrieve("only")
        assert app.processor.force_flush()
    app.turn()
    assert app.processor.force_flush()
    assert [each["is_final_context"] for each in app.events] == [False]
    assert len(app.memory.requests) == 1


def test_an_explicit_final_in_a_partial_trace(make_app: MakeApp, clock: Any) -> None:
    """An explicit mark counts in a part that a flush sends, and the rest cannot make a second final event."""
    app = make_app(clock)
    with app.chain("a question"):
        app.retrieve("first", **{marks.IS_FINAL_CONTEXT: True})
        assert app.processor.force_flush()
        app.retrieve("second")
    app.turn()
    assert [each["is_final_context"] for each in app.events] == [True, False]


def test_max_trace_age(make_app: MakeApp, clock: Any) -> None:
    """A trace open for too long is sent as partial, without a final mark; so is what follows of it."""
    app = make_app(clock, max_trace_age=60.0)
    with app.chain("a question"):
        app.retrieve("first")
        app.turn()
        clock.pass_(60.0)
        app.turn()
        assert [each["metadata"]["seer_otel.partial"] for each in app.events] == ["max_trace_age"]
        app.retrieve("second")
    app.turn()
    clock.pass_(2.0)
    app.turn()
    assert [each["metadata"]["seer_otel.partial"] for each in app.events] == ["max_trace_age"] * 2
    assert [each["is_final_context"] for each in app.events] == [False, False]


def test_an_exporter_waits_for_quiet(clock: Any) -> None:
    """Behind batches, a trace whose parts come one after the other is sent once, two quiet seconds after its root."""
    memory = InMemoryTransport()
    exporter = SeerSpanExporter(transport=memory, sample_rate=1.0)
    exporter._pipeline = Pipeline(exporter.config, sees_starts=False, clock=clock)
    ended: list[Any] = []
    provider = TracerProvider(shutdown_on_exit=False)
    tracer = provider.get_tracer("test")
    with tracer.start_as_current_span("chain", attributes={"input.value": "a question"}) as root:
        with tracer.start_as_current_span(
            "retriever",
            attributes={
                "openinference.span.kind": "RETRIEVER",
                "retrieval.documents.0.document.content": "a text",
            },
        ) as inner:
            pass
        ended.append(inner)
    for each in (*ended, root):
        exporter.export([each])
        exporter._pipeline.flush(5.0, unfinished=False)
        assert memory.events == []
    clock.pass_(2.0)
    exporter._pipeline.flush(5.0, unfinished=False)
    (event,) = memory.events
    assert (event["task"], event["is_final_context"], is_whole(event)) == ("a question", True, True)
    exporter.shutdown()
    provider.shutdown()


# --- Hooks ---


def test_filter_comes_before_the_final_choice(make_app: MakeApp, clock: Any) -> None:
    """What the filter refuses cannot be final: the one before it is; and it is counted."""
    app = make_app(clock, filter=lambda event: event.subquery != "second")
    with app.chain("a question"):
        first = app.retrieve("first")
        app.retrieve("second")
    app.turn()
    assert [(each["span_id"], each["is_final_context"]) for each in app.events] == [(first, True)]
    assert dict(app.processor.stats().dropped) == {DropReason.FILTERED: 1}


def test_a_filter_that_raises(make_app: MakeApp, clock: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A filter that raises refuses its event; one warning says so, with the place and without the error's text."""

    def broken(event: Event) -> bool:
        raise KeyError(event.task)

    app = make_app(clock, filter=broken)
    for _ in range(3):
        with app.chain("a secret question"):
            app.retrieve()
    app.turn()
    assert app.events == []
    assert dict(app.processor.stats().dropped) == {DropReason.FILTERED: 3}
    (record,) = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert "KeyError" in caplog.text
    assert "in broken" in caplog.text
    assert "secret" not in caplog.text
    assert record.name == "seer_otel"


def test_redact(make_app: MakeApp, clock: Any) -> None:
    """The redact hook's event is what is sent; the marks of sampling stand on it whatever it did to the metadata."""
    app = make_app(clock, redact=lambda event: replace(event, task="[hidden]", metadata={}))
    with app.chain("a question"):
        app.retrieve()
    app.turn()
    (event,) = app.events
    assert event["task"] == "[hidden]"
    assert event["metadata"] == {"seer_otel.sample_rate": 1.0, "seer_otel.sampled_by": "trace"}


def failing(event: Event) -> Event:
    raise ValueError(event.task)


@pytest.mark.parametrize(
    "redact",
    [
        failing,
        lambda event: None,
        lambda event: {"task": event.task},
        lambda event: replace(event, task=" "),
        lambda event: replace(event, task=None),
        lambda event: replace(event, context=None),
        lambda event: replace(event, context=("a text",)),
        lambda event: replace(event, metadata=7),
    ],
)
def test_redact_is_fail_closed(
    redact: Callable[[Event], Any], make_app: MakeApp, clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A redact hook that fails, or whose answer is no event that can be sent, sends nothing, counted as such."""
    app = make_app(clock, redact=redact)
    with app.chain("a secret question"):
        app.retrieve()
    app.turn()
    assert app.memory.requests == []
    assert dict(app.processor.stats().dropped) == {DropReason.REDACT_FAILED: 1}
    assert "The redact hook" in caplog.text or "the redact hook" in caplog.text
    assert "secret" not in caplog.text


# --- Memory ---


def test_nothing_is_kept_of_a_trace_that_was_sent(make_app: MakeApp, clock: Any) -> None:
    """Of a delivered trace only a few bounded facts remain: no span, and at most 4,000 characters of its question."""
    app = make_app(clock)
    gone: list[weakref.ref[Any]] = []
    for _ in range(10):
        with app.chain("long question " * 10_000) as root:
            app.retrieve()
        gone.append(weakref.ref(root))
        del root
    app.turn()
    gc.collect()
    assert [ref() for ref in gone] == [None] * 10
    remembered = list(app.pipeline._buffer._done.values())
    assert len(remembered) == 10
    assert {len(each.memory.root_question or "") for each in remembered} == {4_000}


def test_spans_without_attributes(make_app: MakeApp, clock: Any) -> None:
    """Thousands of spans without any attribute change nothing for the retrievals among them."""
    app = make_app(clock)
    for _ in range(3000):
        app.tracer.start_span("empty").end()
    app.turn()
    with app.chain("a question"):
        app.retrieve()
    app.turn()
    assert app.tasks == ["a question"]
