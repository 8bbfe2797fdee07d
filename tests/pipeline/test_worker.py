"""The worker: its thread, its rest, what it loses and counts when there is too much, and how it ends."""

from __future__ import annotations

import gc
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

from seer_otel import DropReason, Event, InMemoryTransport, Reply, SeerSpanProcessor, Stats
from seer_otel.pipeline import losses, room
from seer_otel.pipeline import pipeline as module

MakeApp = Callable[..., Any]
Eventually = Callable[..., None]
OURS = ("seer-otel", "seer-otel-send")


def our_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name in OURS}


@pytest.fixture(autouse=True)
def _no_thread_stays(eventually: Eventually) -> Iterator[None]:
    """Each test ends without a thread of ours that it began with."""
    before = our_threads()
    yield
    gc.collect()
    workers = {thread for thread in our_threads() - before if thread.name == "seer-otel"}
    eventually(lambda: not any(thread.is_alive() for thread in workers))


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Holds up whoever waits for it; open after the test."""
    event = threading.Event()
    yield event
    event.set()


def adds_up(stats: Stats) -> bool:
    return stats.seen == stats.sent + stats.held + sum(stats.dropped.values())


def one_trace(app: Any, question: str = "a question") -> None:
    with app.chain(question):
        app.retrieve()


# --- Its thread ---


def test_no_thread_before_the_first_span(make_app: MakeApp, eventually: Eventually) -> None:
    """Setting a processor up starts no thread; the first span starts one; every thread of ours is a daemon."""
    before = our_threads()
    app = make_app()
    assert our_threads() <= before
    one_trace(app)
    eventually(lambda: app.events)
    started = our_threads() - before
    assert {thread.name for thread in started} == {"seer-otel"}
    assert all(thread.daemon for thread in started)


def test_it_rests(make_app: MakeApp, eventually: Eventually, monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing to do the worker parks for a minute, and with an open trace for half a second; it does not spin."""
    monkeypatch.setattr(module, "QUIET", 0.0)
    app = make_app()
    one_trace(app)
    eventually(lambda: app.events and app.pipeline.worker.parked)
    assert app.pipeline.turn() == module.IDLE
    with app.chain("still open"):
        eventually(lambda: len(app.pipeline._buffer) and app.pipeline.worker.parked)
        assert app.pipeline.turn() == module.PARKED
        before = time.process_time()
        threading.Event().wait(0.5)
        assert time.process_time() - before < 0.25


def test_it_wakes(make_app: MakeApp, eventually: Eventually, monkeypatch: pytest.MonkeyPatch) -> None:
    """A span that comes just when the worker parks is taken at once, every time."""
    monkeypatch.setattr(module, "QUIET", 0.0)
    monkeypatch.setattr(module, "POLL", 0.0)
    app = make_app()
    for i in range(300):
        one_trace(app, str(i))
        eventually(lambda: len(app.events) == i + 1)  # noqa: B023


def test_a_span_between_the_look_and_the_flag(make_app: MakeApp, clock: Any) -> None:
    """A span that comes after the worker saw an empty queue and before it parks is not left lying."""
    app = make_app(clock)
    app.pipeline.worker.parked = False  # as while a worker runs: hooks do not wake it

    class Meanwhile(type(clock)):  # type: ignore[misc]
        looks = 0

        def __call__(self) -> float:
            self.looks += 1
            if self.looks == 2:
                one_trace(app)
            return self.now

    app.pipeline._clock = Meanwhile()
    assert app.pipeline.turn() == module.POLL
    assert app.pipeline.queue
    app.turn()
    assert app.tasks == ["a question"]


def test_many_threads_at_once(make_app: MakeApp) -> None:
    """Traces of eight threads, flushed by two others meanwhile, are each delivered exactly once."""
    app = make_app()
    stop = threading.Event()

    def trace(thread: int) -> None:
        for i in range(100):
            one_trace(app, f"{thread}/{i}")

    def flush() -> None:
        while not stop.is_set():
            app.processor.flush(5.0)

    with ThreadPoolExecutor(10) as pool:
        flushing = [pool.submit(flush) for _ in range(2)]
        for tracing in [pool.submit(trace, thread) for thread in range(8)]:
            tracing.result()
        stop.set()
        for each in flushing:
            each.result()
    assert app.processor.flush(10.0).complete
    assert len(app.memory.requests) == len({key for _, key in app.memory.requests}) == 800
    stats = app.processor.stats()
    assert (stats.seen, stats.sent, stats.held, dict(stats.dropped)) == (800, 800, 0, {})


def test_no_thread_can_start(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    """Where no thread can start the flush delivers on the calling thread; once one can, the next span starts it."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    app = make_app()
    before = our_threads()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        one_trace(app, "first")
        assert app.processor.flush(10.0).sent == 1
        assert our_threads() == before
    one_trace(app, "second")
    eventually(lambda: app.tasks == ["first", "second"])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_hook_ends_the_thread(make_app: MakeApp, eventually: Eventually) -> None:
    """After a hook that ends the worker's thread the next span starts another."""
    ended: list[str] = []

    def leave(event: Event) -> Event:
        if not ended:
            ended.append(event.task)
            sys.exit()
        return event

    app = make_app(redact=leave)
    one_trace(app, "first")
    eventually(lambda: ended and app.pipeline.worker.thread and not app.pipeline.worker.thread.is_alive())
    one_trace(app, "second")
    eventually(lambda: app.tasks == ["second"])


def test_a_dropped_processor_ends_its_thread(eventually: Eventually) -> None:
    """The worker of a processor that nobody holds any more ends, though it rests for a minute."""
    memory = InMemoryTransport()
    processor = SeerSpanProcessor(transport=memory, sample_rate=1.0)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    provider.get_tracer("test").start_span("a span").end()
    assert processor._pipeline is not None
    thread, pipeline = processor._pipeline.worker.thread, weakref.ref(processor._pipeline)
    assert thread is not None
    eventually(lambda: (alive := pipeline()) is not None and alive.worker.parked, 5.0)
    del processor, provider
    gc.collect()
    eventually(lambda: pipeline() is None and not thread.is_alive(), 5.0)


# --- Too much ---


def test_a_full_queue(make_app: MakeApp, gate: threading.Event, eventually: Eventually) -> None:
    """Spans beyond the queue's bound are lost and counted by their traces, which are marked; the rest is sent."""
    app = make_app(max_queue_size=64, redact=lambda event: gate.wait(20) and event)
    one_trace(app, "holds the worker up")
    eventually(lambda: not app.pipeline.queue and app.pipeline._working.locked())
    with app.chain("a question"):
        for i in range(60):
            app.retrieve(f"query {i}")
    assert len(app.pipeline.queue) == 64
    gate.set()
    assert app.processor.flush(10.0).complete
    stats = app.processor.stats()
    assert stats.seen == 61
    assert stats.dropped[DropReason.QUEUE_FULL] == 61 - stats.sent
    assert stats.sent == len(app.events) == 1 + 31
    partial = [event["metadata"].get("seer_otel.partial") for event in app.events]
    assert partial[0] is None
    assert set(partial[1:]) == {"queue_full"}
    assert not any(event["is_final_context"] for event in app.events[1:])


def test_losses_beyond_memory(
    make_app: MakeApp, gate: threading.Event, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where more is lost than can be remembered by trace, every retrieval is still counted, once."""
    monkeypatch.setattr(losses, "MAX_LOST", 15)
    app = make_app(max_queue_size=1, redact=lambda event: gate.wait(20) and event)
    one_trace(app, "holds the worker up")
    eventually(lambda: not app.pipeline.queue and app.pipeline._working.locked())
    for i in range(66):
        one_trace(app, str(i))
    gate.set()
    assert app.processor.flush(10.0).complete
    stats = app.processor.stats()
    assert (stats.seen, stats.sent) == (67, 17)  # 64 entries of the queue are 16 traces
    assert dict(stats.dropped) == {DropReason.QUEUE_FULL: 50}


def test_the_queue_is_bounded_in_bytes(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large spans leave room for fewer of them in the queue."""
    monkeypatch.setattr(room, "MAX_QUEUE_BYTES", 1024 * 1024)
    monkeypatch.setattr(room, "MIN_ROOM", 32)
    app = make_app()
    app.turn()
    assert app.pipeline._room.entries > 500
    for _ in range(200):
        app.tracer.start_span("large", attributes={"text": "x" * 50_000}).end()
    app.turn()
    assert app.pipeline._room.entries == 32


def test_the_queue_is_bounded_in_bytes_while_the_worker_waits(
    make_app: MakeApp, gate: threading.Event, eventually: Eventually
) -> None:
    """Large spans leave room for fewer of them, too, while the worker, which knows their sizes, waits in a hook."""
    app = make_app(redact=lambda event: gate.wait(20) and event)
    one_trace(app, "holds the worker up")
    eventually(lambda: not app.pipeline.queue and app.pipeline._working.locked())
    text = "x" * 1_000_000
    for _ in range(1_000):
        app.tracer.start_span("large", attributes={"text": text}).end()
    assert len(app.pipeline.queue) < 1_000 < app.processor.config.max_queue_size
    gate.set()


# --- Flush and shutdown ---


def test_a_busy_worker(make_app: MakeApp, gate: threading.Event, eventually: Eventually) -> None:
    """A flush that finds the worker in a hook that hangs gives up at its deadline, and says what is unsent."""
    app = make_app(redact=lambda event: gate.wait(20) and event)
    one_trace(app, "first")
    eventually(lambda: not app.pipeline.queue and app.pipeline._working.locked())
    one_trace(app, "second")
    result = app.processor.flush(0.05)
    assert (result.sent, result.held, result.complete) == (0, 2, False)
    assert app.processor.force_flush(50) is False
    gate.set()
    result = app.processor.flush(10.0)
    assert (result.held, result.complete) == (0, True)
    assert app.tasks == ["first", "second"]


def test_flush_tells_the_truth(make_app: MakeApp) -> None:
    """A flush says how many it sent and what was given up during it and why; what an earlier one did is not in it."""
    app = make_app(
        filter=lambda event: event.task != "no", transport=(memory := InMemoryTransport([Reply(400)]))
    )
    with app.chain("an open trace"):
        app.retrieve("refused by the backend")
        result = app.processor.flush(10.0)
    assert (result.sent, result.held, dict(result.dropped)) == (0, 0, {DropReason.REJECTED: 1})
    with app.chain("no"):
        app.retrieve("refused by the filter")
    result = app.processor.flush(10.0)
    assert (result.sent, result.held, dict(result.dropped)) == (0, 0, {DropReason.FILTERED: 1})
    with app.chain("yes"):
        app.retrieve("first")
        app.retrieve("second")
    result = app.processor.flush(10.0)
    assert (result.sent, result.held, dict(result.dropped), result.complete) == (2, 0, {}, True)
    assert len(memory.events) == 2


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("inf"), 1e300])
def test_any_timeout(make_app: MakeApp, timeout: float) -> None:
    """A flush takes any number of seconds."""
    app = make_app()
    one_trace(app)
    app.processor.flush(timeout)
    assert app.processor.flush(10.0).complete
    assert app.tasks == ["a question"]


def test_shutdown(make_app: MakeApp, eventually: Eventually) -> None:
    """A shutdown sends everything, open traces too, ends the worker, and may be called again."""
    app = make_app()
    one_trace(app, "first")
    with app.chain("open"):
        app.retrieve("second")
        thread = app.pipeline.worker.thread
        app.processor.shutdown()
        app.processor.shutdown()
    assert sorted(app.tasks) == ["first", "second"]
    eventually(lambda: not thread.is_alive())


def test_after_the_shutdown(make_app: MakeApp) -> None:
    """Retrievals after a shutdown are counted as dropped by it, whatever is flushed; none is queued or sent."""
    app = make_app()
    one_trace(app, "before")
    app.processor.shutdown()
    for i in range(3):
        one_trace(app, f"after {i}")
        assert app.processor.force_flush()
    stats = app.processor.stats()
    assert app.tasks == ["before"]
    assert (stats.seen, stats.sent, stats.held) == (4, 1, 0)
    assert dict(stats.dropped) == {DropReason.SHUTDOWN: 3}
    assert not app.pipeline.queue


def test_after_the_shutdown_sampling_counts(make_app: MakeApp) -> None:
    """Retrievals of traces that are not kept are no loss after a shutdown either."""
    app = make_app(sample_rate=0.0)
    app.processor.shutdown()
    one_trace(app)
    assert (app.processor.stats().seen, dict(app.processor.stats().dropped)) == (0, {})


def test_spans_during_the_shutdown(make_app: MakeApp, gate: threading.Event) -> None:
    """What ends while a shutdown waits for a slow backend is counted; nothing is held for ever."""

    class Slow(InMemoryTransport):
        def send(self, body: bytes, idempotency_key: str) -> Reply:
            asked.set()
            gate.wait(20)
            return super().send(body, idempotency_key)

    asked = threading.Event()
    app = make_app(transport=Slow())
    with app.chain("open"):
        app.retrieve("before")
        with ThreadPoolExecutor(1) as pool:
            ending = pool.submit(app.processor.shutdown)
            assert asked.wait(20)
            app.retrieve("during")
            gate.set()
            ending.result()
        app.retrieve("after")
    stats = app.processor.stats()
    assert (stats.seen, stats.sent, stats.held) == (3, 1, 0)
    assert dict(stats.dropped) == {DropReason.SHUTDOWN: 2}


def test_shutdown_from_many_threads(make_app: MakeApp) -> None:
    """Shutdowns and flushes from many threads at once, with spans among them, neither hang nor lose a count."""
    app = make_app()

    def trace(thread: int) -> None:
        for i in range(50):
            one_trace(app, f"{thread}/{i}")
            app.processor.stats()

    with ThreadPoolExecutor(12) as pool:
        work = [pool.submit(trace, thread) for thread in range(4)]
        one_trace(app)
        work += [pool.submit(app.processor.shutdown) for _ in range(4)]
        work += [pool.submit(app.processor.flush, 5.0) for _ in range(4)]
        for each in work:
            each.result(30)
    stats = app.processor.stats()
    assert adds_up(stats)
    assert stats.sent == len(app.events)
    assert set(stats.dropped) <= {DropReason.SHUTDOWN}


def test_hooks_may_ask(make_app: MakeApp) -> None:
    """A redact hook may read the processor's counts and flush it: it waits for nothing, and goes on."""
    app = make_app(redact=lambda event: (app.processor.stats(), app.processor.flush(20.0), event)[2])
    one_trace(app)
    assert app.processor.flush(10.0).complete
    assert app.tasks == ["a question"]
