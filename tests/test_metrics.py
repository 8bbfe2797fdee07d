"""The counters as OpenTelemetry metrics, read by a real metric reader."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, Sum
from opentelemetry.sdk.trace import TracerProvider

from seer_otel import (
    DropReason,
    InMemoryTransport,
    Reply,
    SeerSpanExporter,
    SeerSpanProcessor,
    Stats,
    metrics,
)

Points = dict[str, dict[frozenset[tuple[str, Any]], int]]
PROCESSED = "otel.sdk.processor.span.processed"
QUEUED = "otel.sdk.processor.span.queue.size"
TEXT = "retrieval.documents.{}.document.content"


class Source:
    """Says what it is told to say."""

    def __init__(self, stats: Stats) -> None:
        self.told = stats

    def stats(self) -> Stats:
        return self.told


@pytest.fixture
def read() -> Iterator[Callable[[object], Points]]:
    """`read(component)` is what a reader sees now of one that was observed: name to attributes to value."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    metrics.make_instruments(provider.get_meter("seer_otel"))

    def points(component: object) -> Points:
        name = next(name for name, (source, _) in metrics._observed.items() if source() is component)
        seen = points_of(reader, name)
        return {
            metric: {key - standard(name): value for key, value in each.items()}
            for metric, each in seen.items()
        }

    yield points
    provider.shutdown()


def standard(name: str) -> set[tuple[str, Any]]:
    return {("otel.component.name", name), ("otel.component.type", name.partition("/")[0])}


def points_of(reader: InMemoryMetricReader, name: str) -> Points:
    data = reader.get_metrics_data()
    found: Points = {}
    for resource in data.resource_metrics if data is not None else ():
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                assert isinstance(metric.data, Sum)
                for point in metric.data.data_points:
                    attributes = frozenset((point.attributes or {}).items())
                    if ("otel.component.name", name) in attributes:
                        found.setdefault(metric.name, {})[attributes] = int(point.value)
    return found


def lost(reason: DropReason) -> frozenset[tuple[str, Any]]:
    return frozenset({("error.type", reason.value)})


WHOLE: frozenset[tuple[str, Any]] = frozenset()


def retrieve(provider: TracerProvider, question: str | None = "a question", documents: int = 1) -> None:
    tracer = provider.get_tracer("test")
    attributes: dict[str, Any] = {TEXT.format(i): f"text {i}" for i in range(documents)}
    attributes |= {"openinference.span.kind": "RETRIEVER"} | ({"input.value": question} if question else {})
    tracer.start_span("retriever", attributes=attributes).end()


def test_what_became_of_spans(read: Callable[[object], Points]) -> None:
    """Sent spans and those that are no event by design have no error type, each loss has its reason as one."""
    memory = InMemoryTransport(replies=[Reply(200), Reply(400)])
    processor = SeerSpanProcessor(
        transport=memory, sample_rate=1.0, filter=lambda event: event.task != "not this one"
    )
    metrics.observe(processor, metrics.PROCESSOR)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    for question in ("a question", "a refused one", "not this one", None):
        retrieve(provider, question)
        processor.flush()
    points = read(processor)
    assert points[PROCESSED] == {WHOLE: 2, lost(DropReason.REJECTED): 1, lost(DropReason.NO_QUESTION): 1}
    assert points[QUEUED] == {WHOLE: 0}
    assert points["seer_otel.traces.seen"] == points["seer_otel.traces.kept"] == {WHOLE: 4}
    provider.shutdown()
    assert read(processor) == points, "a shutdown must keep the last values"


def test_what_waits(read: Callable[[object], Points]) -> None:
    """A retrieval in a trace that is open is in the queue, and is not processed."""
    processor = SeerSpanProcessor(transport=InMemoryTransport(), sample_rate=1.0)
    metrics.observe(processor, metrics.PROCESSOR)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    with provider.get_tracer("test").start_as_current_span("chain"):
        retrieve(provider)
        processor._pipeline.turn()  # type: ignore[union-attr] # what the worker does within the next 50 ms
        points = read(processor)
    assert (points[QUEUED], points[PROCESSED]) == ({WHOLE: 1}, {WHOLE: 0})
    provider.shutdown()


def test_what_was_cut_and_left_out(read: Callable[[object], Points]) -> None:
    """Traces that sampling left out are seen and not kept; what a limit cut is counted."""
    for rate, kept, cut in ((0.0, 0, 0), (1.0, 1, 3)):
        processor = SeerSpanProcessor(transport=InMemoryTransport(), sample_rate=rate)
        metrics.observe(processor, metrics.PROCESSOR)
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(processor)
        retrieve(provider, documents=53)
        provider.shutdown()
        points = read(processor)
        assert points["seer_otel.traces.seen"] == {WHOLE: 1}
        assert points["seer_otel.traces.kept"] == {WHOLE: kept}
        assert points["seer_otel.passages.cut"] == {WHOLE: cut}


def test_the_exporter(read: Callable[[object], Points]) -> None:
    """The exporter bears the names that the conventions give to exporters, and none of a processor's."""
    exporter = SeerSpanExporter(transport=InMemoryTransport(), sample_rate=1.0)
    metrics.observe(exporter, metrics.EXPORTER)
    points = read(exporter)
    exporter.shutdown()
    assert points["otel.sdk.exporter.span.exported"] == {WHOLE: 0}
    assert points["otel.sdk.exporter.span.inflight"] == {WHOLE: 0}
    assert not [name for name in points if name.startswith("otel.sdk.processor")]


@given(
    sent=st.integers(0, 2**40),
    held=st.integers(0, 2**40),
    dropped=st.dictionaries(st.sampled_from(DropReason), st.integers(0, 2**40)),
)
def test_they_add_up(sent: int, held: int, dropped: dict[DropReason, int]) -> None:
    """What is processed and what waits is all that was seen, whatever became of it."""
    seen = sent + held + sum(dropped.values())
    stats = Stats(seen=seen, sent=sent, held=held, dropped=dropped)
    outcomes = list(metrics._outcomes(stats))
    assert sum(value for value, _ in outcomes) + held == seen
    assert len({attributes.get("error.type") for _, attributes in outcomes}) == len(outcomes)
    assert not {attributes.get("error.type") for _, attributes in outcomes} & {
        reason.value for reason in DropReason if reason.by_design
    }


def test_the_spool(read: Callable[[object], Points]) -> None:
    """What waits on disk, and what came from there, have series of their own."""
    source = Source(Stats(seen=7, held=7, spooled=5, recovered=2))
    metrics.observe(source, metrics.PROCESSOR)
    points = read(source)
    assert points["seer_otel.spool.size"] == {WHOLE: 5}
    assert points["seer_otel.spool.recovered"] == {WHOLE: 2}


def test_a_collected_source() -> None:
    """Being observed keeps nothing alive, and what is gone has no series; its number is not used again."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    metrics.make_instruments(provider.get_meter("seer_otel"))
    before = set(metrics._observed)
    source = Source(Stats(sent=3, seen=3))
    metrics.observe(source, metrics.PROCESSOR)
    (name,) = set(metrics._observed) - before
    assert points_of(reader, name)[PROCESSED]
    del source
    gc.collect()
    assert points_of(reader, name) == {}
    other = Source(Stats())
    metrics.observe(other, metrics.PROCESSOR)
    assert name not in metrics._observed
    provider.shutdown()


def test_a_broken_source(read: Callable[[object], Points]) -> None:
    """A source that fails costs no other its series, and one that cannot be observed raises nothing."""
    broken, whole = Source(Stats()), Source(Stats(seen=1, sent=1))
    broken.stats = lambda: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    for each in (broken, whole):
        metrics.observe(each, metrics.PROCESSOR)
    assert read(whole)[PROCESSED] == {WHOLE: 1}
    metrics.observe(object(), metrics.PROCESSOR)  # type: ignore[arg-type] # cannot be referred to weakly


PROGRAM = """
import os
from opentelemetry import metrics
from seer_otel.metrics import PROCESSOR, observe
from seer_otel import Stats

class Source:
    def stats(self):
        return Stats(seen=2, sent=2)

def provider():
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider([reader], shutdown_on_exit=False))
    return reader

def names(reader):
    data = reader.get_metrics_data()
    return [(scope.scope.name, point.value, point.attributes["otel.component.name"])
            for each in data.resource_metrics for scope in each.scope_metrics for metric in scope.metrics
            if metric.name == "otel.sdk.processor.span.processed" for point in metric.data.data_points]

source, other = Source(), Source()
"""
BOTH = [("seer_otel", 2, "seer_span_processor/0"), ("seer_otel", 2, "seer_span_processor/1")]


def run(code: str) -> None:
    """Run code in a process of its own, where the global meter provider is not set yet."""
    environment = {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PATH": os.environ["PATH"],
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=55,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("order", ["before", "between", "after"])
def test_the_global_provider(order: str) -> None:
    """The global meter provider sees each component once, set up before it, after it or in between."""
    steps = ["observe(source, PROCESSOR)", "observe(other, PROCESSOR)"]
    steps.insert(["before", "between", "after"].index(order), "reader = provider()")
    run("\n".join([*steps, f"assert names(reader) == {BOTH}, names(reader)"]))


def test_without_a_metrics_sdk() -> None:
    """Where the application sets no metrics up, the metrics SDK is not imported, and no counter is ever read."""
    run(
        """
        import sys
        source.stats = lambda: os._exit(1)
        observe(source, PROCESSOR)
        assert not [name for name in sys.modules if name.startswith("opentelemetry.sdk.metrics")]
        """
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_fork() -> None:
    """The child of a fork tells of its own sources, old and new."""
    run(
        f"""
        import warnings
        reader = provider()
        observe(source, PROCESSOR)
        warnings.simplefilter("ignore")  # that there are threads
        child = os.fork()
        if not child:
            observe(other, PROCESSOR)
            os._exit(names(reader) != {BOTH})
        assert os.waitpid(child, 0)[1] == 0
        assert names(reader) == {BOTH[:1]}
        """
    )
