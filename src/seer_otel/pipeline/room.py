"""How many spans the queue may hold, in entries and by their size."""

from __future__ import annotations

from collections import deque

from opentelemetry.sdk.trace import ReadableSpan

from .sdk import attributes_of, size_of

MAX_QUEUE_BYTES = 64 * 1024 * 1024
"""Bytes that the queue may hold, by the average size of the spans that went through it, as a hook cannot measure.
Each span is in it twice: when it starts, and when it ends."""
MIN_ROOM = 512
"""Entries that always find room."""
MEASURE = 256
"""A queue that is longer than that is measured whenever its length is a multiple of this."""
_APART = (
    8  # entries at the end of the queue that are measured in turn: spans come in patterns, as their traces do
)


class Room:
    """The bound of a queue.

    Attributes:
        entries: how many entries it may have at this moment.
    """

    def __init__(self, most: int) -> None:
        self.entries = self._most = most
        self._waiting_size = 0
        self._turn = 0

    def close(self) -> None:
        """Leave no room at all, for good."""
        self.entries = self._most = 0

    def renew(self, average_size: int) -> None:
        """Make room for spans of the size that went through, now that the queue has been emptied."""
        self._waiting_size = average_size
        self.entries = min(self._most, max(MIN_ROOM, 2 * MAX_QUEUE_BYTES // average_size))

    def measure(self, queue: deque[ReadableSpan]) -> None:
        """Make less room where what waits is large: who empties the queue may be waiting for a backend itself."""
        self._turn = (self._turn + 1) % _APART
        try:
            size = size_of(attributes_of(queue[-1 - self._turn]))
        except IndexError:  # it has just been emptied
            return
        self._waiting_size = (self._waiting_size + size) // 2
        if self._waiting_size:
            self.entries = min(self.entries, max(MIN_ROOM, 2 * MAX_QUEUE_BYTES // self._waiting_size))
