"""Events on disk until they have their answer: what outlives an outage, a restart and `kill -9`."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from . import spool_file
from .spool_file import DamageError, Row, SpoolFile, speaking, transaction
from .stored import SpoolError, SpoolFull, SpoolLost, Stored

__all__ = ["Spool", "SpoolError", "SpoolFull", "SpoolLost", "Stored"]

AT_ONCE = 2_500
"""Events that one call of `adopt` takes over, about: a fork has to wait for it."""

MEASURE = 1024 * 1024
"""Bytes added before the size of the spool is measured again, as others write to the folder as well."""
SLACK = 1024
"""Free pages that a file may keep to be used again: 4 MB."""
SHRINK = 64
"""Events removed before it is seen whether the file can shrink."""
BATCH = 64
"""Events taken over in one transaction."""


class Spool:
    """The events of one process for one endpoint, in a folder that it shares with other processes.

    What is in it belongs to this object until `close`, or until its process ends in whatever way: then the next
    one with the same folder and endpoint takes it over. In a forked child, `leave` it and make a new one.
    All methods raise `SpoolError` and nothing else; any thread may call them.

    Args:
        folder: where its files are; made at the first use.
        endpoint: where events go. It is stored with them; a key never is.
        max_bytes: what the files of all processes in the folder may take, about.
        max_age: seconds after which `expire` deletes an event.
        clock: Unix seconds.
        any_endpoint: whether `adopt` takes what was meant for another endpoint, too.

    Attributes:
        lock: held during any use of a file. Whoever forks holds it, so that the child gets no file in the middle
            of a transaction.
    """

    def __init__(
        self,
        folder: str,
        endpoint: str,
        *,
        max_bytes: int,
        max_age: float,
        clock: Callable[[], float] = time.time,
        any_endpoint: bool = False,
    ) -> None:
        self._connection: sqlite3.Connection | None = None
        self._path: Path | None = None
        self.folder = spool_file.folder_of(folder)
        self.lock = threading.RLock()
        self._endpoint = endpoint
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._clock = clock
        self._any_endpoint = any_endpoint
        self._closed = False
        self._last = 0  # row
        self._used = 0  # bytes on disk when they were last measured
        self._added = MEASURE  # bytes, since then
        self._removed = 0  # events, since it was last seen whether the file can shrink
        self._said: set[Path] = set()  # files that cannot be taken over
        self._to_say: SpoolError | None = None

    def __repr__(self) -> str:
        return f"Spool({str(self.folder)!r}, {self._endpoint!r})"

    def __del__(self) -> None:
        # In a child this leaves its parent's file as it is: SQLite cannot lock it, and so does no cleaning up.
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()

    def add(self, body: bytes, key: str, is_empty: bool) -> int:
        """Write an event to disk and return its row. When this returns, the event outlives the process.

        Raises:
            SpoolFull: there is no room for it; what is there stays.
            SpoolLost: the file cannot be read any more, and all events in it are lost.
            SpoolError: it cannot be written.
        """
        with self._file() as connection:
            self._take_room(connection, len(body))
            row = int(self._clock() * 1e6)
            if row <= self._last < row + 1_000_000:
                row = self._last + 1  # the clock stands, or was set back a little: the order stays
            while not _insert(connection, (row, key, int(is_empty), body)):
                row += 1  # one that was taken over has it
            self._last = row
            return row

    def remove(self, row: int) -> None:
        """Delete an event that has its answer."""
        if self._connection is None:
            return
        with self._file() as connection:
            connection.execute("DELETE FROM events WHERE id = ?", (row,))
            self._removed += 1
            if self._removed >= SHRINK:
                self._shrink(connection)

    def read(self, limit: int, skip: Collection[int]) -> list[Stored]:
        """Return the oldest events that are not in `skip`, oldest first."""
        if self._connection is None:
            return []
        with self._file() as connection:
            found = connection.execute("SELECT id FROM events ORDER BY id LIMIT ?", (limit + len(skip),))
            rows = [row for (row,) in found.fetchall() if row not in skip][:limit]
            events = [
                event
                for row in rows
                for event in connection.execute(
                    "SELECT id, key, is_empty, body FROM events WHERE id = ?", (row,)
                )
            ]
            if not all(map(spool_file.is_whole, events)):
                raise DamageError(f"{self._path}: an event in it is damaged")
            return [Stored(row, body, key, bool(is_empty), row / 1e6) for row, key, is_empty, body in events]

    def adopt(self) -> int:
        """Take over events of processes that are gone and return how many; after a call that found some, call again.

        A damaged file is moved aside, once; the error says so, at the next call if this one found events.
        """
        with self.lock:
            if self._connection is not None:
                with self._file():
                    self._look_for_file()
            taken, trouble = 0, self._to_say
            for path in spool_file.files(self.folder) if trouble is None else ():
                try:
                    for count in self._adopt_file(path):
                        taken += count
                        if taken >= AT_ONCE:
                            return taken
                except SpoolLost:
                    raise
                except SpoolError as error:
                    if path not in self._said:
                        self._said.add(path)
                        trouble = error
            self._to_say = trouble if taken else None
            if trouble is not None and not taken:
                raise trouble
            return taken

    def expire(self) -> list[int]:
        """Delete events that are too old and return their rows."""
        if self._connection is None:
            return []
        with self._file() as connection:
            # Not below 0: an age may be longer than SQLite can count.
            until = int(max(0.0, self._clock() - self._max_age) * 1e6)
            expired = connection.execute("SELECT id FROM events WHERE id < ?", (until,)).fetchall()
            if expired:
                connection.execute("DELETE FROM events WHERE id < ?", (until,))
            self._shrink(connection)
            return [row for (row,) in expired]

    def close(self) -> None:
        """Leave the events on disk to the next process; this object takes no more."""
        with self.lock:
            self._closed = True
            if self._connection is None or self._path is None:
                return
            empty = False
            with suppress(sqlite3.Error):
                empty = self._connection.execute("SELECT 1 FROM events LIMIT 1").fetchone() is None
            with suppress(sqlite3.Error):
                self._connection.close()
            if empty:
                spool_file.discard(self._path)
            self._connection = self._path = None

    def leave(self) -> None:
        """Let go of the file in a forked child, where it is the parent's.

        To forget this object would not be enough: the frames of threads that did not come along hold it for ever, and
        as long as it is open here, this process cannot take the file over when the parent is gone.
        """
        if self.lock.acquire(blocking=False):  # else one of those threads was in the middle of something
            self._closed = True
            connection, self._connection, self._path = self._connection, None, None
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()
            self.lock.release()

    @contextmanager
    def _file(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection to this process's file, which is made if there is none."""
        with self.lock:
            if self._connection is None or self._path is None:
                if self._closed:
                    raise SpoolError(f"{self.folder}: closed")
                self._connection, self._path = spool_file.create(self.folder, self._endpoint)
                self._added = MEASURE
            try:
                with speaking(self._path):
                    yield self._connection
            except DamageError as error:
                self._connection.close()
                moved = spool_file.set_aside(self._path)
                self._connection = self._path = None
                raise SpoolLost(f"{error}{moved}") from error

    def _look_for_file(self) -> None:
        """Who deletes a file that is open is not noticed otherwise."""
        if self._path is not None and not self._path.exists():
            raise DamageError(f"{self._path}: somebody has deleted it")

    def _take_room(self, connection: sqlite3.Connection, size: int) -> None:
        self._added += size
        if self._added > MEASURE or self._used + self._added > self._max_bytes:
            self._used, self._added = self._measure(connection), size
            if self._used + size > self._max_bytes:
                raise SpoolFull(f"{self.folder}: all of its {self._max_bytes:,} bytes are in use")

    def _measure(self, connection: sqlite3.Connection) -> int:
        """Return the bytes in use: of the own file what it contains, of the others their size, which follows it."""
        self._look_for_file()
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        others = sum(_size(path) for path in spool_file.files(self.folder) if path != self._path)
        return int(pages - free) * spool_file.PAGE + others

    def _adopt_file(self, path: Path) -> Iterator[int]:
        """Move the events of a file to the own one, if its owner is gone; yield how many in each step."""
        try:
            theirs = spool_file.take(path) if path != self._path else None
            if theirs is None:
                return
            with theirs:
                yield from self._move_all(theirs)
        except DamageError as error:
            raise SpoolError(f"{error}{spool_file.set_aside(path)}") from error

    def _move_all(self, theirs: SpoolFile) -> Iterator[int]:
        wanted = self._any_endpoint or theirs.endpoint in (self._endpoint, None)
        last = damaged = 0
        while wanted and (rows := theirs.rows(BATCH, last)):
            whole = [row for row in rows if spool_file.is_whole(row)]
            damaged += len(rows) - len(whole)
            with self._file() as connection, transaction(connection):
                moved = sum(_move(connection, row) for row in whole)
            last = rows[-1][0]
            theirs.delete(last)
            yield moved
        if damaged:
            raise DamageError(f"{theirs.path}: {damaged} of its events are damaged")
        if theirs.is_empty():
            theirs.remove()
        elif wanted:
            raise DamageError(f"{theirs.path}: its events cannot be found by their ids")

    def _shrink(self, connection: sqlite3.Connection) -> None:
        self._removed = 0
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        if free > SLACK:
            # It has to be stepped through, page by page, which Python 3.11 does in a script only.
            connection.executescript(f"PRAGMA incremental_vacuum({free - SLACK})")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # it has just been taken over
        return 0


def _insert(connection: sqlite3.Connection, row: Row) -> bool:
    """Write an event; false if its id is taken."""
    try:
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?)", row)
    except sqlite3.IntegrityError:
        return False
    return True


def _move(connection: sqlite3.Connection, row: Row) -> bool:
    """Write an event of another file; false if it is here already, as who moved it was killed in the middle."""
    same = connection.execute(
        "SELECT key = ? AND body = ? FROM events WHERE id = ?", (row[1], row[3], row[0])
    )
    if same.fetchone() == (1,):
        return False
    while not _insert(connection, row):
        row = (row[0] + 1, *row[1:])
    return True
