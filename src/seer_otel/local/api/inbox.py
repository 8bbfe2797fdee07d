"""From requests to batches: what waits while the writer writes is the next batch."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import Future

from sqlalchemy.exc import OperationalError

from seer_otel.local.storage.ingest import Incoming
from seer_otel.local.storage.store import Store

BATCH = 100
"""Events in one commit, at most."""
ROOM = 1_000
"""Events that wait, at most. A client that waits for each answer has one here; 1,000 bodies are some 10 MB."""


class FullError(Exception):
    """As many events wait as there is room for."""


class Inbox:
    """Events that wait for the writer. It belongs to one event loop."""

    def __init__(self, store: Store, room: int = ROOM) -> None:
        self._store = store
        self._room = room
        self._waiting: deque[tuple[Incoming, asyncio.Future[str]]] = deque()
        self._writing = False

    async def add(self, item: Incoming) -> str:
        """Keep an event and return its record id once it is on disk. Raises FullError and what storing raises."""
        if len(self._waiting) >= self._room:
            raise FullError
        answered: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answered))
        if not self._writing:
            self._write()
        return await answered

    def _write(self) -> None:
        self._hand_over([self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))])

    def _hand_over(self, batch: list[tuple[Incoming, asyncio.Future[str]]]) -> None:
        self._writing = True
        loop = asyncio.get_running_loop()
        written = self._store.add_all([item for item, _ in batch])
        written.add_done_callback(lambda done: loop.call_soon_threadsafe(self._answer, batch, done))

    def _answer(self, batch: list[tuple[Incoming, asyncio.Future[str]]], written: Future[list[str]]) -> None:
        error = written.exception()
        if error is not None and len(batch) > 1 and not isinstance(error, OperationalError):
            # Something about one of them; the others shall not suffer.
            middle = len(batch) // 2
            self._waiting.extendleft(reversed(batch))
            self._hand_over([self._waiting.popleft() for _ in range(middle)])
            return
        if error is not None:
            for _, answered in batch:
                if not answered.done():
                    answered.set_exception(error)
        else:
            for (_, answered), record_id in zip(batch, written.result(), strict=True):
                if not answered.done():  # a client that left
                    answered.set_result(record_id)
        self._writing = False
        if self._waiting:
            self._write()
