"""Events on their way: what is tried again, what is given up, who waits, and how many threads send."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from seer_otel import DropReason, InMemoryTransport, Reply, Stats, TransportError
from seer_otel.delivery import outbox as module
from seer_otel.delivery.backlog import MAX_BYTES, MAX_EVENTS
from seer_otel.delivery.outbox import Outbox
from seer_otel.notices import Notices
from seer_otel.stats import Counters

Eventually = Callable[..., None]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Post:
    """An outbox, what it sends to, and its counts."""

    def __init__(self, transport: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self.transport = transport
        self.counters = Counters()
        self.outbox = Outbox(transport, self.counters, Notices("http://127.0.0.1/v1/log", clock), clock)

    def put(self, name: str, empty: bool = False, texts: tuple[str, ...] = ("a text",)) -> None:
        body = {"task": name, "context": [] if empty else [{"text": text} for text in texts]}
        self.counters.add("seen")
        self.outbox.put(json.dumps(body).encode(), name, empty)

    def drain(self, seconds: float = 10.0) -> bool:
        return self.outbox.drain(self.outbox._clock() + seconds) == 0

    def close(self, seconds: float = 10.0) -> None:
        self.outbox.close(self.outbox._clock() + seconds)

    @property
    def stats(self) -> Stats:
        return self.counters.snapshot()

    @property
    def sent(self) -> list[str]:
        """The keys of all requests, in their order."""
        return [key for _, key in self.transport.requests]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def post() -> Iterator[Callable[..., Post]]:
    """`post(transport, clock)`; closed after the test."""
    made: list[Post] = []

    def make(transport: Any, clock: Callable[[], float] = time.monotonic) -> Post:
        made.append(Post(transport, clock))
        return made[-1]

    yield make
    for each in made:
        each.outbox.close(0.0)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The random part of each delay is none of it."""
    monkeypatch.setattr("random.random", lambda: 0.0)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


# --- Tried again ---


@pytest.mark.usefixtures("no_delay")
@pytest.mark.parametrize(
    "trouble",
    [Reply(408), Reply(429), Reply(500), Reply(503), Reply(429, "0"), TransportError("ReadTimeout")],
)
def test_retries(post: Any, trouble: Reply | TransportError, caplog: pytest.LogCaptureFixture) -> None:
    """After trouble an event is sent again with the same body and key until it is taken, and then never again."""
    caplog.set_level(logging.INFO)
    there = post(InMemoryTransport([trouble, trouble, trouble]))
    there.put("a")
    assert there.drain()
    assert there.sent == ["a"] * 4
    assert len({body for body, _ in there.transport.requests}) == 1
    assert [event["task"] for event in there.transport.events] == ["a"]
    assert (there.stats.sent, there.stats.retries, dict(there.stats.dropped)) == (1, 3, {})
    assert len(warnings(caplog)) == 1
    assert caplog.messages[-1] == "The backend takes events again."


@pytest.mark.usefixtures("no_delay")
def test_a_flapping_backend_is_not_loud(post: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A backend that fails every other time stops nothing, and there is nothing to tell; nothing is lost."""
    caplog.set_level(logging.INFO)
    there = post(InMemoryTransport([Reply(503) if i % 2 else Reply(200) for i in range(200)]))
    for i in range(100):
        there.put(str(i))
    assert there.drain()
    assert there.stats.sent == len(there.transport.events) == 100
    assert not caplog.records


@pytest.mark.parametrize("trouble", [Reply(429, "7"), Reply(503, "7"), Reply(408, "7")])
def test_retry_after(post: Any, clock: Clock, trouble: Reply, eventually: Eventually) -> None:
    """Until the seconds of a Retry-After are over nothing at all is sent; then everything is, in its order."""
    there = post(InMemoryTransport([trouble]), clock)
    there.put("a")
    eventually(lambda: there.stats.retries)
    there.put("b")
    assert not there.drain(6.9)
    clock.now += 6.9
    there.put("c")
    assert not there.drain(0.0)
    assert there.sent == ["a"]
    clock.now += 0.2
    there.put("d")
    assert there.drain()
    assert sorted(there.sent) == ["a", "a", "b", "c", "d"]


def test_a_delay_is_the_events_own(post: Any, clock: Clock, eventually: Eventually) -> None:
    """An event that is answered with 500 waits alone: the others are sent meanwhile."""
    there = post(InMemoryTransport([Reply(500)]), clock)
    there.put("a")
    eventually(lambda: there.stats.retries)
    there.put("b")
    eventually(lambda: there.stats.sent == 1)
    assert there.sent == ["a", "b"]


def test_expired(post: Any, clock: Clock, eventually: Eventually, caplog: pytest.LogCaptureFixture) -> None:
    """An event that could not be sent for ten minutes is given up and counted."""
    there = post(InMemoryTransport([TransportError("ConnectError")] * 1000), clock)
    there.put("a")
    eventually(lambda: there.stats.retries)
    clock.now += 601.0
    there.put("b")
    eventually(lambda: there.stats.dropped.get(DropReason.EXPIRED) == 1)
    assert there.stats.held == 1
    assert any("ten minutes" in each for each in warnings(caplog))


@pytest.mark.usefixtures("no_delay")
@pytest.mark.parametrize("fault", ["raises", "returns nothing", "returns a number"])
def test_a_transport_of_the_users(post: Any, fault: str, caplog: pytest.LogCaptureFixture) -> None:
    """A transport that raises or returns something else costs no event and no thread, and its error is not logged."""

    class Broken(InMemoryTransport):
        def send(self, body: bytes, idempotency_key: str) -> Any:
            self.requests.append((body, idempotency_key))
            if len(self.requests) > 2:
                return Reply(204)
            if fault == "raises":
                raise RuntimeError("Bearer seer_canary")
            return None if fault == "returns nothing" else 200

    there = post(Broken())
    there.put("a")
    assert there.drain()
    assert (there.stats.sent, there.stats.retries) == (1, 2)
    assert "canary" not in caplog.text


# --- Given up ---


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key(
    post: Any, clock: Clock, status: int, eventually: Eventually, caplog: pytest.LogCaptureFixture
) -> None:
    """After a refused key nothing is sent for a minute, with one warning; then one tries, and opens the way for all."""
    there = post(InMemoryTransport([Reply(status), Reply(status)]), clock)
    for i in range(20):
        there.put(str(i))
    assert there.drain()
    assert len(there.sent) == 1
    assert dict(there.stats.dropped) == {DropReason.UNAUTHORIZED: 20}
    assert len(warnings(caplog)) == 1
    clock.now += 59.0
    there.put("still blocked")
    assert there.drain()
    assert len(there.sent) == 1
    clock.now += 2.0
    there.put("probe")
    assert there.drain()
    assert len(there.sent) == 2
    clock.now += 61.0
    there.put("taken")
    there.put("taken too")
    assert there.drain()
    assert there.sent[2:] == ["taken", "taken too"]
    assert there.stats.sent == 2


def test_too_large(post: Any) -> None:
    """An event that is too large is sent once more, cut, under its own key."""
    there = post(InMemoryTransport([Reply(413)]))
    there.put("a", texts=("x" * 3000, "short"))
    assert there.drain()
    assert there.sent == ["a", "a"]
    (event,) = there.transport.events
    assert [len(passage["text"]) for passage in event["context"]] == [1000, 5]
    assert event["metadata"] == {"seer_otel.texts_cut": 1}
    assert there.outbox._backlog.bytes == 0


def test_too_large_even_cut(post: Any) -> None:
    """An event that is too large even when cut is given up after two requests."""
    there = post(InMemoryTransport([Reply(413), Reply(413)]))
    there.put("a", texts=("x" * 3000,))
    assert there.drain()
    assert there.sent == ["a", "a"]
    assert dict(there.stats.dropped) == {DropReason.TOO_LARGE: 1}
    assert there.outbox._backlog.bytes == 0


@pytest.mark.parametrize("status", [301, 307, 400, 404, 422])
def test_rejected(post: Any, status: int, caplog: pytest.LogCaptureFixture) -> None:
    """Another 3xx or 4xx gives up its own event at once; the log says so once, with the status."""
    there = post(InMemoryTransport([Reply(status)] * 5))
    for i in range(6):
        there.put(str(i))
    assert there.drain()
    assert there.sent == [str(i) for i in range(6)]
    assert dict(there.stats.dropped) == {DropReason.REJECTED: 5}
    assert there.stats.sent == 1
    (warning,) = warnings(caplog)
    assert f"HTTP {status}" in warning


@pytest.mark.parametrize("status", [400, 422])
def test_empty_refused(post: Any, status: int) -> None:
    """Once an event with an empty context was refused no other one is sent; events with passages still are."""
    there = post(InMemoryTransport([Reply(status)]))
    there.put("empty", empty=True)
    assert there.drain()
    there.put("empty too", empty=True)
    there.put("full")
    assert there.drain()
    assert there.sent == ["empty", "full"]
    assert dict(there.stats.dropped) == {DropReason.EMPTY_REFUSED: 2}


def test_a_refused_event_says_nothing_about_empty_ones(post: Any) -> None:
    """A refusal of an event with passages, or with another status, does not stop events with an empty context."""
    there = post(InMemoryTransport([Reply(400), Reply(404)]))
    there.put("full")
    there.put("empty", empty=True)
    assert there.drain()
    there.put("empty too", empty=True)
    assert there.drain()
    assert [event["task"] for event in there.transport.events] == ["empty too"]


# --- Bounds ---


class Held(InMemoryTransport):
    """Answers only when the gate opens; knows how many wait."""

    def __init__(self, gate: threading.Event) -> None:
        super().__init__()
        self.gate, self.now, self.most = gate, 0, 0

    def send(self, body: bytes, idempotency_key: str) -> Reply:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        assert self.gate.wait(20)
        with self._lock:
            self.now -= 1
        return super().send(body, idempotency_key)


def test_full_of_events(post: Any, gate: threading.Event) -> None:
    """Beyond 10,000 waiting events new ones are dropped and counted; the others are all delivered, once."""
    there = post(Held(gate))
    for i in range(MAX_EVENTS + 5):
        there.put(str(i))
    assert dict(there.stats.dropped) == {DropReason.OUTBOX_FULL: 5}
    gate.set()
    assert there.drain(30.0)
    assert sorted(there.sent, key=int) == [str(i) for i in range(MAX_EVENTS)]
    assert there.stats.sent == MAX_EVENTS


def test_full_of_bytes(post: Any, gate: threading.Event) -> None:
    """Beyond 64 MB of waiting events new ones are dropped and counted."""
    there = post(Held(gate))
    for i in range(70):
        there.put(str(i), texts=("x" * 1024 * 1024,))
    assert there.outbox._backlog.bytes <= MAX_BYTES
    assert dict(there.stats.dropped) == {DropReason.OUTBOX_FULL: 7}
    gate.set()
    assert there.drain(30.0)
    assert (there.stats.sent, there.outbox._backlog.bytes) == (63, 0)


def test_slow_backend(post: Any, gate: threading.Event, eventually: Eventually) -> None:
    """A burst that meets a slow backend is sent by eight threads, never by more, though nothing else comes in."""

    class Slow(Held):
        def send(self, body: bytes, idempotency_key: str) -> Reply:
            if len(self.requests) < 8:  # what tells the outbox that it is slow
                threading.Event().wait(0.02)
                return InMemoryTransport.send(self, body, idempotency_key)
            return super().send(body, idempotency_key)

    there = post(Slow(gate))
    for i in range(300):
        there.put(str(i))
    eventually(lambda: there.transport.now == 8)
    assert there.outbox._threads == 8
    gate.set()
    assert there.drain(30.0)
    assert there.transport.most == 8
    assert len(there.sent) == len(set(there.sent)) == 300


def test_fast_backend(post: Any) -> None:
    """A backlog before a fast backend is sent by one thread, in its order."""
    there = post(InMemoryTransport())
    for i in range(500):
        there.put(str(i))
    assert there.outbox._threads == 1
    assert there.drain()
    assert there.sent == [str(i) for i in range(500)]


def test_threads_end(post: Any, monkeypatch: pytest.MonkeyPatch, eventually: Eventually) -> None:
    """Without work the sending thread ends; the next event starts one again."""
    monkeypatch.setattr(module, "IDLE", 0.02)
    there = post(InMemoryTransport())
    for i in range(3):
        there.put(str(i))
        assert there.drain()
        eventually(lambda: there.outbox._threads == 0)
    assert there.sent == ["0", "1", "2"]


def test_waiting_for_a_retry_ends_no_thread_and_does_not_spin(
    post: Any, clock: Clock, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    """While everything waits for its next try one thread sleeps, without using the processor."""
    there = post(InMemoryTransport([Reply(429, "300")]), clock)
    for i in range(50):
        there.put(str(i))
    eventually(lambda: there.stats.retries)
    before = time.process_time()
    threading.Event().wait(0.3)
    assert time.process_time() - before < 0.15
    assert there.outbox._threads == 1


# --- The end ---


def test_close_drops_the_rest(post: Any, gate: threading.Event, eventually: Eventually) -> None:
    """What is not answered at the deadline of a close is dropped and counted, also what is on its way then."""
    there = post(Held(gate))
    for i in range(5):
        there.put(str(i))
    eventually(lambda: there.transport.now == 1)
    there.close(0.02)
    assert dict(there.stats.dropped) == {DropReason.SHUTDOWN: 4}
    assert there.stats.held == 1
    gate.set()
    eventually(lambda: there.stats.held == 0)
    assert there.stats.sent == 1
    there.put("too late")
    assert dict(there.stats.dropped) == {DropReason.SHUTDOWN: 5}


def test_close_tries_once_more(post: Any, clock: Clock, eventually: Eventually) -> None:
    """Events that wait because no answer came have another try when the outbox closes."""
    there = post(InMemoryTransport([TransportError("ConnectError")]), clock)
    there.put("a")
    eventually(lambda: there.stats.retries)
    there.close()
    assert (there.sent, there.stats.sent) == (["a", "a"], 1)


def test_close_respects_a_pause(post: Any, clock: Clock, eventually: Eventually) -> None:
    """Events that wait because the backend asked for it are not sent early by a close."""
    there = post(InMemoryTransport([Reply(429, "60")]), clock)
    there.put("a")
    eventually(lambda: there.stats.retries)
    there.close()
    assert there.sent == ["a"]
    assert dict(there.stats.dropped) == {DropReason.SHUTDOWN: 1}


class Closing(Held):
    closed = 0

    def close(self) -> None:
        assert self.now == 0, "closed in the middle of a request"
        self.closed += 1


def test_the_transport_is_closed(post: Any, gate: threading.Event, eventually: Eventually) -> None:
    """The transport is closed after the last request: at once, or when the one that outlives the close is answered."""
    gate.set()
    there = post(Closing(gate))
    there.put("a")
    there.close()
    assert there.transport.closed >= 1
    gate.clear()
    other = post(Closing(gate))
    other.put("a")
    eventually(lambda: other.transport.now == 1)
    other.close(0.02)
    assert other.transport.closed == 0
    gate.set()
    eventually(lambda: other.transport.closed >= 1)


def test_drain_without_threads(post: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no thread can start the drain sends on the calling thread, retries included."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr("random.random", lambda: 0.01)
    there = post(InMemoryTransport([Reply(503), TransportError("ReadError"), Reply(500)]))
    for i in range(20):
        there.put(str(i))
    assert there.drain()
    assert (there.stats.sent, there.stats.retries, there.outbox._threads) == (20, 3, 0)


def test_drain_returns_when_waiting_is_useless(post: Any, clock: Clock, eventually: Eventually) -> None:
    """A drain whose deadline comes before the next try says at once that something is left."""
    there = post(InMemoryTransport([Reply(503, "30")]), clock)
    there.put("a")
    eventually(lambda: there.stats.retries)
    assert there.drain(29.0) is False  # the clock stands still: it would wait for ever
