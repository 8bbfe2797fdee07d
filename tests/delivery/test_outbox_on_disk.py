"""An outbox with a spool: what waits on disk, what is in memory beside it, and what each outcome leaves."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from seer_otel import DropReason, InMemoryTransport, Reply, Stats, TransportError
from seer_otel.delivery import backlog
from seer_otel.delivery.outbox import Outbox
from seer_otel.delivery.spool import Spool
from seer_otel.notices import Notices
from seer_otel.stats import Counters

Eventually = Callable[..., None]
URL = "http://127.0.0.1/v1/log"
AWAY = TransportError("ConnectError")


class Watched(Counters):
    """Counters that look at themselves after each step, as a thread that asks for them might."""

    always = True

    def add(self, name: str, amount: int = 1) -> None:
        super().add(name, amount)
        self._look()

    def drop(self, reason: DropReason, amount: int = 1) -> None:
        super().drop(reason, amount)
        self._look()

    def _look(self) -> None:
        stats = self.snapshot()
        self.always = self.always and 0 <= stats.spooled <= stats.held


class Post:
    """An outbox that keeps its events in a folder."""

    def __init__(
        self, folder: Path, transport: Any, clock: Callable[[], float] = time.monotonic, **limits: Any
    ) -> None:
        self.transport = transport
        self.counters = Watched()
        limits = {"max_bytes": 10**9, "max_age": 86_400.0, **limits}
        self.spool = Spool(str(folder), URL, **limits)
        notices = Notices(URL, clock, str(folder))
        self.outbox = Outbox(
            transport, self.counters, notices, clock, spool=self.spool, spool_max_age=limits["max_age"]
        )

    def put(self, name: str, text: str = "a text") -> None:
        self.counters.add("seen")
        body = {"task": name, "context": [{"text": text}]}
        self.outbox.put(json.dumps(body).encode(), name, is_empty=False)

    def drain(self, seconds: float = 10.0) -> int:
        return self.outbox.drain(self.outbox._clock() + seconds)

    def close(self, seconds: float = 0.0) -> None:
        self.outbox.close(self.outbox._clock() + seconds)

    @property
    def stats(self) -> Stats:
        stats = self.counters.snapshot()
        assert stats.seen == stats.sent + stats.held + sum(stats.dropped.values())
        assert self.counters.always
        return stats

    @property
    def arrived(self) -> list[str]:
        return [event["task"] for event in self.transport.events]


@pytest.fixture
def post(tmp_path: Path) -> Iterator[Callable[..., Post]]:
    """`post(transport, clock)`: one after another on the same folder; closed after the test."""
    made: list[Post] = []

    def make(transport: Any, clock: Callable[[], float] = time.monotonic, **limits: Any) -> Post:
        made.append(Post(tmp_path / "spool", transport, clock, **limits))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.random", lambda: 0.0)


class Away(InMemoryTransport):
    """A backend that is away until `back` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.back = threading.Event()

    def send(self, body: bytes, idempotency_key: str) -> Reply:
        if not self.back.is_set():
            raise AWAY
        return super().send(body, idempotency_key)


def test_delivered_events_leave_the_disk(post: Any) -> None:
    """With a backend that is well each event is sent once, and the spool is empty afterwards."""
    there = post(InMemoryTransport())
    for i in range(50):
        there.put(str(i))
    assert there.drain() == 0
    assert sorted(there.arrived, key=int) == [str(i) for i in range(50)]
    assert (there.stats.sent, there.stats.held, there.stats.spooled) == (50, 0, 0)
    assert there.spool.read(10, ()) == []


def test_the_next_process(post: Any) -> None:
    """What could not be sent before the end is kept on disk, counted as held, and sent by the next one, in order."""
    first = post(Away())
    for i in range(20):
        first.put(str(i))
    first.close()
    assert (first.stats.held, first.stats.spooled, dict(first.stats.dropped)) == (20, 20, {})
    second = post(InMemoryTransport())
    assert second.outbox.recover() == 20
    assert second.drain() == 0
    assert second.arrived == [str(i) for i in range(20)]
    assert (second.stats.seen, second.stats.recovered, second.stats.sent) == (20, 20, 20)


@pytest.mark.usefixtures("no_delay")
def test_more_than_memory_holds(post: Any) -> None:
    """In a long outage few events are in memory; all arrive after it, the oldest first but for the one that tried."""
    there = post(Away())
    for i in range(600):
        there.put(str(i))
    assert there.outbox._backlog.waiting <= backlog.WINDOW_EVENTS
    assert there.stats.spooled == 600
    there.transport.back.set()
    assert there.drain(30.0) == 0
    _, *rest = arrived = [int(each) for each in there.arrived]
    assert rest == sorted(rest)
    assert sorted(arrived) == list(range(600))


@pytest.mark.usefixtures("no_delay")
def test_large_events_in_an_outage(post: Any) -> None:
    """Of large events fewer are in memory, by their bytes; all of them arrive."""
    there = post(Away())
    for i in range(40):
        there.put(str(i), "x" * 1_000_000)
    assert there.outbox._backlog.bytes <= backlog.WINDOW_BYTES
    there.transport.back.set()
    assert there.drain(30.0) == 0
    assert sorted(there.arrived, key=int) == [str(i) for i in range(40)]


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_drops_nothing(post: Any, status: int, caplog: pytest.LogCaptureFixture) -> None:
    """Events wait on disk while the key is refused, with one warning that names it; the right key delivers them."""
    there = post(InMemoryTransport([Reply(status)] * 100))
    for i in range(10):
        there.put(str(i))
    assert there.drain(1.0) == 10
    assert len(there.transport.requests) == 1
    there.close(1.0)
    assert (there.stats.spooled, dict(there.stats.dropped)) == (10, {})
    (warning,) = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert "SEER_API_KEY" in warning
    after = post(InMemoryTransport())
    after.outbox.recover()
    assert after.drain() == 0
    assert after.arrived == [str(i) for i in range(10)]


def test_refused_events_leave_the_disk(post: Any) -> None:
    """What the backend refuses for good is dropped, counted, and not on disk for the next process to try again."""
    there = post(InMemoryTransport([Reply(422), Reply(413), Reply(413)]))
    for i in range(3):
        there.put(str(i))
        assert there.drain() == 0
    assert (there.stats.sent, sum(there.stats.dropped.values())) == (1, 2)
    assert there.spool.read(10, ()) == []


@pytest.mark.usefixtures("no_delay")
def test_a_poison_event(post: Any) -> None:
    """An event that the backend fails on whenever it comes does not hold up the others, old or new."""

    class Poisoned(InMemoryTransport):
        def send(self, body: bytes, idempotency_key: str) -> Reply:
            if idempotency_key == "poison":
                return Reply(500)
            return super().send(body, idempotency_key)

    there = post(Poisoned())
    there.put("poison")
    for i in range(100):
        there.put(str(i))
    while len(there.arrived) < 100:
        assert there.drain(0.05) >= 1
    there.close()
    assert (there.stats.sent, there.stats.spooled) == (100, 1)


def test_a_full_spool(post: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Beyond the spool's bytes events wait in memory alone, which is said once; none is lost while there is room."""
    there = post(Away(), max_bytes=2_000_000)
    for i in range(30):
        there.put(str(i), "x" * 100_000)
    assert 5 < there.stats.spooled < 25
    assert there.stats.held == 30
    assert sum("SEER_OTEL_SPOOL_MAX_BYTES" in each.getMessage() for each in caplog.records) == 1
    there.transport.back.set()
    there.close(10.0)
    assert there.stats.sent == 30


def test_a_folder_that_is_none(post: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A spool that cannot be written costs nothing while the backend is there, and is told once."""
    (tmp_path / "spool").write_text("a file")
    there = post(InMemoryTransport())
    for i in range(20):
        there.put(str(i))
    assert there.drain() == 0
    assert there.stats.sent == 20
    assert sum("SEER_OTEL_SPOOL_DIR" in each.getMessage() for each in caplog.records) == 1


def test_a_spool_that_becomes_unreadable(post: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Events that only the unreadable file had are counted as lost; those in memory and new ones arrive."""
    there = post(Away())
    for i in range(600):
        there.put(str(i))
    in_memory = there.outbox._backlog.waiting
    for path in (tmp_path / "spool").glob("*.db*"):
        path.write_bytes(b"no database" * 5000)
    there.put("new")
    there.transport.back.set()
    there.close(20.0)
    stats = there.stats
    assert stats.seen == 601
    assert stats.sent + stats.dropped.get(DropReason.SPOOL_LOST, 0) == 601
    assert stats.sent >= in_memory
    assert (stats.held, stats.spooled) == (0, 0)
    assert "new" in there.arrived


def test_what_cannot_be_deleted_is_not_sent_again(post: Any) -> None:
    """Where a full disk keeps events that have their answer, the others are sent, each once, and deleted later."""
    there = post(Away())
    for i in range(600):
        there.put(str(i))
    there.spool._connection.execute("PRAGMA query_only = ON")  # as on a full disk, deleting is an error
    there.transport.back.set()
    assert there.drain(30.0) == 0
    assert sorted(int(key) for _, key in there.transport.requests) == list(range(600))
    assert (there.stats.sent, there.stats.held, there.stats.spooled) == (600, 0, 0)
    there.outbox.recover()
    there.spool._connection.execute("PRAGMA query_only = OFF")
    there.close()
    assert post(InMemoryTransport()).outbox.recover() == 0


def test_too_old(post: Any) -> None:
    """Events older than the spool's limit are given up as expired, those on disk alone as well as those in memory."""
    first = post(Away())
    for i in range(400):
        first.put(str(i))
    first.close()
    second = post(InMemoryTransport(), max_age=0.000_001)
    second.outbox.recover()
    second.drain(10.0)
    stats = second.stats
    assert stats.sent + stats.dropped.get(DropReason.EXPIRED, 0) == 400
    assert stats.dropped.get(DropReason.EXPIRED, 0) >= 400 - backlog.WINDOW_EVENTS


def test_a_drain_waits_for_what_came_before_it(post: Any) -> None:
    """A drain under steady load ends when all that was accepted before it has its answer."""
    there = post(InMemoryTransport())
    stop = threading.Event()

    def load() -> None:
        i = 0
        while not stop.is_set():
            there.put(f"later {i}")
            i += 1

    there.put("before")
    loading = threading.Thread(target=load)
    loading.start()
    try:
        assert there.drain(20.0) == 0
        assert "before" in there.arrived
    finally:
        stop.set()
        loading.join()
