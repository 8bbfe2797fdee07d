"""Events that wait for the backend: in memory, and where there is a spool, on disk, the next ones in memory too.

`store` and `forget` may be called by any thread; the outbox guards the rest with its lock.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..notices import Notices
from ..reasons import DropReason
from ..stats import Counters
from .stored import SpoolError, SpoolFull, SpoolLost, Stored

if TYPE_CHECKING:
    from .spool import Spool

MAX_EVENTS = 10_000
MAX_BYTES = 64 * 1024 * 1024
"""Bounds of what waits in memory."""
WINDOW_EVENTS = 256
WINDOW_BYTES = 8 * 1024 * 1024
"""Bounds of what of a spool waits in memory as well."""


@dataclass(frozen=True, slots=True)
class Item:
    """One event as bytes.

    Attributes:
        number: its place in the order of acceptance.
        body: strict JSON.
        key: the idempotency key.
        is_empty: whether its context is empty, which a backend may refuse.
        born: when it was first to be sent, in seconds of the outbox's clock.
        row: its place in the spool, if it is there.
        attempts: how often it has been sent.
        shrunk: whether it has been cut for its size.
    """

    number: int
    body: bytes
    key: str
    is_empty: bool
    born: float
    row: int | None = None
    attempts: int = 0
    shrunk: bool = False


@dataclass(order=True, slots=True)
class _Waiting:
    due: float
    number: int
    item: Item = field(compare=False)


@dataclass(slots=True)
class Mark:
    """A point in the order of acceptance, and how many events up to it have no answer yet."""

    number: int
    left: int


class Backlog:
    """What waits, in order of age but for what is to be tried again later.

    Args:
        spool: where events are on disk; None keeps them in memory alone.
        counters: where what is on disk, found there or lost there is counted.
        notices: where a person is told of a disk that fails.
    """

    def __init__(self, spool: Spool | None, counters: Counters, notices: Notices) -> None:
        self._spool = spool
        self._counters = counters
        self._notices = notices
        self._heap: list[_Waiting] = []
        self._on_disk: deque[int] = deque()  # numbers of the events that only the spool has
        self._rows: set[int] = set()  # of the events in memory that the spool has too
        self._answered_rows: set[int] = set()  # of events with an answer that could not be deleted
        self._in_memory: dict[int, int] = {}  # number: bytes, of what waits and of what is on its way
        self._marks: list[Mark] = []
        self._first = 1
        self._last = 0
        self.bytes = 0

    def __len__(self) -> int:
        """How many events have no answer yet."""
        return len(self._in_memory) + len(self._on_disk)

    @property
    def waiting(self) -> int:
        """How many of those in memory are not on their way."""
        return len(self._heap)

    @property
    def next_due(self) -> float:
        """When the next one is to be sent; there must be one."""
        return self._heap[0].due

    def store(self, body: bytes, key: str, is_empty: bool) -> int | None:
        """Write an event to the spool; None where there is none, or where it cannot be written."""
        if self._spool is None:
            return None
        try:
            row = self._spool.add(body, key, is_empty)
        except SpoolError as error:
            self._failed(error)
            return None
        self._counters.add("spooled")
        return row

    def forget(self, item: Item) -> None:
        """Delete an event that has its answer from the spool; one that cannot be deleted is not sent again."""
        if item.row is None or not self.is_on_disk(item):
            return
        self._answered_rows.add(item.row)
        self._clean_up()

    def is_on_disk(self, item: Item) -> bool:
        """Return whether the spool has an event that is in memory."""
        return item.row in self._rows

    def add(self, body: bytes, key: str, is_empty: bool, now: float, row: int | None) -> bool:
        """Take an event; false if there is no room for it."""
        item = Item(self._last + 1, body, key, is_empty, now, row)
        if row is not None and (self._on_disk or not self._has_room(len(body), WINDOW_EVENTS, WINDOW_BYTES)):
            self._on_disk.append(item.number)
        elif self._has_room(len(body), MAX_EVENTS, MAX_BYTES):
            self._hold(item, now)
        else:
            return False
        self._last = item.number
        return True

    def pop(self) -> Item:
        """Take the next one out; it counts as on its way until `put_back` or `settle`."""
        return heapq.heappop(self._heap).item

    def put_back(self, item: Item, due: float) -> None:
        """Let an event that was on its way wait until `due`."""
        self.bytes += len(item.body) - self._in_memory[item.number]
        self._in_memory[item.number] = len(item.body)
        heapq.heappush(self._heap, _Waiting(due, item.number, item))

    def settle(self, item: Item) -> bool:
        """Let go of an event that has its answer; return whether that completes a mark."""
        self.bytes -= self._in_memory.pop(item.number)
        if item.row is not None and self.is_on_disk(item):
            self._rows.discard(item.row)
            self._counters.add("spooled", -1)
        return self._answered([item.number])

    def mark(self) -> Mark:
        """Return a mark on what has been accepted so far; `release` it in the end."""
        mark = Mark(self._last, len(self))
        self._marks.append(mark)
        return mark

    def release(self, mark: Mark) -> None:
        """Count no more for a mark."""
        self._marks.remove(mark)

    def hurry(self, now: float) -> None:
        """Make everything due, the oldest first."""
        for waiting in self._heap:
            waiting.due = now
        heapq.heapify(self._heap)

    def refill(self, now: float) -> None:
        """Bring the next events from the disk into memory, where there is room for half of what there may be."""
        if self._spool is None or not self._on_disk or len(self._in_memory) > WINDOW_EVENTS // 2:
            return
        try:
            stored = self._spool.read(WINDOW_EVENTS // 2, self._rows | self._answered_rows)
        except SpoolError as error:
            self._failed(error)
            return
        if not stored:  # somebody has cleared the spool
            self._lose(len(self._on_disk))
        for each in stored:
            if not self._on_disk or not self._has_room(len(each.body), WINDOW_EVENTS, WINDOW_BYTES):
                return
            self._hold(_item(each, self._on_disk.popleft(), now), now)

    def adopt(self) -> int:
        """Take over events of processes that are gone and return how many; after a call that found some, call again."""
        if self._spool is None:
            return 0
        try:
            found = self._spool.adopt()
        except SpoolError as error:
            self._failed(error)
            return 0
        # Older than all others, so of lower numbers.
        self._first -= found
        self._on_disk.extendleft(reversed(range(self._first, self._first + found)))
        for mark in self._marks:
            mark.left += found
        for name in ("seen", "recovered", "spooled"):
            self._counters.add(name, found)
        return found

    def expire(self) -> None:
        """Give up what is too old and only on disk."""
        if self._spool is None:
            return
        try:
            has_place = self._rows | self._answered_rows
            expired = [row for row in self._spool.expire() if row not in has_place]
        except SpoolError as error:
            self._failed(error)
            return
        self._give_up(DropReason.EXPIRED, len(expired))

    def take_unsaved(self) -> list[Item]:
        """Take out what waits and is not on disk; it counts as on its way until `settle`."""
        items = [waiting.item for waiting in self._heap]
        self._heap = [waiting for waiting in self._heap if waiting.item.row in self._rows]
        heapq.heapify(self._heap)
        return [item for item in items if item.row not in self._rows]

    def close(self) -> None:
        """Leave what is on disk to the next process."""
        if self._spool is not None:
            self._clean_up()
            self._spool.close()

    def _clean_up(self) -> None:
        """Delete from the spool what has its answer, and what could not be deleted before."""
        if self._spool is None:
            return
        try:
            for row in list(self._answered_rows):
                self._spool.remove(row)
                self._answered_rows.discard(row)
        except SpoolError as error:  # a full disk, say
            self._failed(error)

    def _has_room(self, size: int, events: int, max_bytes: int) -> bool:
        return len(self._in_memory) < events and (self.bytes + size <= max_bytes or not self._in_memory)

    def _hold(self, item: Item, due: float) -> None:
        self._in_memory[item.number] = len(item.body)
        self.bytes += len(item.body)
        if item.row is not None:
            self._rows.add(item.row)
        heapq.heappush(self._heap, _Waiting(due, item.number, item))

    def _answered(self, numbers: list[int]) -> bool:
        complete = False
        for mark in self._marks:
            mark.left -= sum(number <= mark.number for number in numbers)
            complete = complete or not mark.left
        return complete

    def _failed(self, error: SpoolError) -> None:
        if isinstance(error, SpoolFull):
            self._notices.spool_full()
            return
        self._notices.spool_failed(error)
        if isinstance(error, SpoolLost):
            self._counters.add("spooled", -len(self._rows))
            self._rows.clear()
            self._answered_rows.clear()
            self._lose(len(self._on_disk))

    def _lose(self, count: int) -> None:
        self._give_up(DropReason.SPOOL_LOST, count)

    def _give_up(self, reason: DropReason, count: int) -> None:
        """Count events as dropped that only the spool had, the oldest ones."""
        numbers = [self._on_disk.popleft() for _ in range(min(count, len(self._on_disk)))]
        if numbers:
            self._counters.add("spooled", -len(numbers))
            self._counters.drop(reason, len(numbers))
            self._notices.dropped(reason, count=len(numbers))
            self._answered(numbers)


def _item(stored: Stored, number: int, now: float) -> Item:
    born = now - max(0.0, time.time() - stored.born)
    return Item(number, stored.body, stored.key, stored.is_empty, born, stored.row)
