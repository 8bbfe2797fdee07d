"""The files of a spool: each process that has events on disk writes one of its own, and the next one takes it over.

Whether a file's owner still lives is told by SQLite's own locks: a connection in WAL mode holds a shared lock on the
database until it is closed or its process ends, however it ends. Whoever can lock the file exclusively knows that
the owner is gone, and has it for himself.

One file for all processes would not do. A child of a fork that opens a database which its parent has open believes
to hold its parent's locks: SQLite keeps account of them in memory, by inode. The parent then deletes the write-ahead
log under the child. Files of their own are also not waited for, and one that is damaged takes no other along.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .stored import SpoolError

SCHEMA = 1
PAGE = 4096
"""Bytes; larger ones write more than they save, once something waits."""
LOG_PAGES = 1024
"""Pages in the write-ahead log before they are moved to the database: 4 MB."""
PATIENCE = 2.0
"""Seconds to wait for a lock, which others hold for milliseconds: to see who is gone, or to show what is there."""
ATTEMPTS = 30
"""Files made before it is given up."""
UNREADABLE = "spool.db.unreadable"
SUFFIXES = ("", "-wal", "-shm")
MAX_ID = 2**62
"""Microseconds; far beyond any time of birth, and below what SQLite can count to."""

Row = tuple[int, str, int, bytes]
"""Id, idempotency key, whether its context is empty, body. The id is the time of birth in microseconds: the order of
age is that of the table, in each file, and an event keeps its id when it moves to another one."""


class DamageError(SpoolError):
    """A file is no database, or not a whole one."""


def is_whole(row: Row) -> bool:
    """Return whether an event is what was written, by its types: damage can make of a value one of another type."""
    number, key, is_empty, body = row
    kinds = isinstance(key, str) and isinstance(is_empty, int) and isinstance(body, bytes)
    return kinds and 0 <= number < MAX_ID


@contextmanager
def speaking(where: Path) -> Iterator[None]:
    """Turn what the disk or SQLite raises into a `SpoolError`."""
    try:
        yield
    except sqlite3.Error as error:
        # SQLITE_CORRUPT and SQLITE_NOTADB have no class of their own, everything else of interest has.
        kind = DamageError if type(error) is sqlite3.DatabaseError else SpoolError
        raise kind(f"{where}: {error}") from error
    except UnicodeError as error:  # from the name of a column
        raise DamageError(f"{where}: its schema is damaged") from error
    except OSError as error:
        raise SpoolError(f"{where}: {error.strerror or type(error).__name__}") from error


def folder_of(text: str) -> Path:
    """Return the folder that a setting names; absolute, as a daemon changes its directory."""
    return Path(os.path.abspath(os.path.expanduser(text)))  # noqa: PTH100, PTH111 - Path's own raises


def files(folder: Path) -> list[Path]:
    """Return all files of a spool; none if there is no such folder."""
    with speaking(folder):
        try:
            return sorted(each for each in folder.iterdir() if each.match("spool-*.db"))
        except FileNotFoundError:
            return []


def create(folder: Path, endpoint: str) -> tuple[sqlite3.Connection, Path]:
    """Make a file for events of one endpoint; it counts as its owner's until the connection is closed."""
    for attempt in range(ATTEMPTS):
        path = folder / f"spool-{uuid.uuid4().hex}.db"
        with speaking(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # SQLite gives the permissions of the database to its other files.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        # Until the lock is ours, somebody who looks for files that were left may hold it, and delete the file.
        try:
            with speaking(path):
                connection = _set_up(path, endpoint)
        except SpoolError as error:
            meddled = not path.exists() or "locked" in str(error)
            discard(path)
            if not meddled or attempt == ATTEMPTS - 1:
                raise SpoolError(str(error)) from error  # never damage: nothing was lost
        else:
            if path.exists():
                return connection, path
            connection.close()
            discard(path)
    raise SpoolError(f"{folder}: a new file is deleted at once")


def _set_up(path: Path, endpoint: str) -> sqlite3.Connection:
    connection = _connect(path, PATIENCE)
    try:
        connection.execute(f"PRAGMA page_size = {PAGE}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        # Where a disk cannot have that, this is no error, and the next transaction would hold no lock.
        if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
            raise sqlite3.NotSupportedError("this disk cannot have a write-ahead log")  # noqa: TRY301
        # Survives the death of the process; of a power cut only that the file stays whole.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {LOG_PAGES * PAGE}")
        with transaction(connection):
            connection.execute("CREATE TABLE spool (endpoint TEXT NOT NULL)")
            connection.execute("INSERT INTO spool VALUES (?)", (endpoint,))
            connection.execute(
                "CREATE TABLE events (id INTEGER PRIMARY KEY, key TEXT NOT NULL, is_empty INTEGER NOT NULL,"
                " body BLOB NOT NULL)"
            )
            connection.execute(f"PRAGMA user_version = {SCHEMA}")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Do all of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # SQLite may have rolled back by itself
            connection.execute("ROLLBACK")
        raise


def discard(path: Path) -> None:
    """Delete a file, if the platform lets us."""
    for suffix in SUFFIXES:
        with suppress(OSError):
            Path(f"{path}{suffix}").unlink()


def set_aside(path: Path) -> str:
    """Move a damaged file out of the way, over an older one, and return that as text."""
    if not path.exists():
        return ""
    aside = path.with_name(UNREADABLE)
    for suffix in SUFFIXES:
        with suppress(OSError):
            Path(f"{aside}{suffix}").unlink()
        with suppress(OSError):
            Path(f"{path}{suffix}").replace(f"{aside}{suffix}")
    return f"; moved to {aside.name}"


class SpoolFile:
    """What somebody else wrote, for as long as it is open here; see `take` and `look`.

    Attributes:
        path: where it is.
        running: whether its owner lives.
        endpoint: where its events go; None if its owner was killed before there were any.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, running: bool) -> None:
        self.path = path
        self.running = running
        self._connection = connection
        try:
            with speaking(path):
                self.endpoint = self._check()
        except BaseException:
            connection.close()
            raise

    def _check(self) -> str | None:
        # Between opening and locking, the file may have been taken over by somebody else.
        if not self.path.exists():
            return None
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA:
            raise SpoolError(f"{self.path}: written by a newer seer-otel")
        if not version:
            return None
        (endpoint,) = self._connection.execute("SELECT endpoint FROM spool").fetchone() or (None,)
        return None if endpoint is None else str(endpoint)

    def __enter__(self) -> SpoolFile:  # noqa: PYI034 - Python 3.10 has no Self
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def summary(self) -> tuple[int, int, int, int]:
        """Return how many events there are, their bytes, and the ids of the oldest and the newest."""
        if self.endpoint is None:
            return 0, 0, 0, 0
        with speaking(self.path):
            count, size, oldest, newest = self._connection.execute(
                "SELECT count(*), sum(length(body)), min(id), max(id) FROM events"
            ).fetchone()
            return count, size or 0, oldest or 0, newest or 0

    def rows(self, limit: int, after: int = 0) -> list[Row]:
        """Return the oldest events, or the next ones after an id."""
        if self.endpoint is None:
            return []
        with speaking(self.path):
            rows: list[Row] = self._connection.execute(
                "SELECT id, key, is_empty, body FROM events WHERE id > ? ORDER BY id LIMIT ?", (after, limit)
            ).fetchall()
        for row in rows:  # a damaged tree may lead round and round
            if row[0] <= after:
                raise DamageError(f"{self.path}: its events are out of order")
            after = row[0]
        return rows

    def is_empty(self) -> bool:
        """Return whether there is no event, whatever its id."""
        if self.endpoint is None:
            return True
        with speaking(self.path):
            return self._connection.execute("SELECT 1 FROM events LIMIT 1").fetchone() is None

    def delete(self, up_to: int) -> None:
        """Delete events up to that id."""
        with speaking(self.path):
            self._connection.execute("DELETE FROM events WHERE id <= ?", (up_to,))

    def remove(self) -> None:
        """Delete the file of an owner that is gone."""
        discard(self.path)  # while it is locked, so that nobody else finds it
        self._connection.close()
        discard(self.path)  # where the platform does not delete what is open


def take(path: Path) -> SpoolFile | None:
    """Open a file whose owner is gone, so that nobody else can; None if the owner lives, or somebody was faster."""
    try:
        with speaking(path):
            connection = _lock(path)
    except SpoolError:
        if path.exists():
            raise
        return None
    return None if connection is None else SpoolFile(path, connection, running=False)


def look(path: Path) -> SpoolFile:
    """Open a file, whoever has it."""
    if (file := take(path)) is not None:
        return file
    with speaking(path):
        connection = _connect(path, PATIENCE)
    return SpoolFile(path, connection, running=True)


def _connect(path: Path, patience: float) -> sqlite3.Connection:
    """Open a file that exists, with transactions as we say."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw", uri=True, timeout=patience, isolation_level=None, check_same_thread=False
    )
    # One damaged byte in one key would make all events of the file unreadable.
    connection.text_factory = lambda text: text.decode(errors="replace")
    return connection


def _lock(path: Path) -> sqlite3.Connection | None:
    """Open a file for nobody but us; None if its owner lives."""
    connection = _connect(path, 0)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")  # the lock stays
    except sqlite3.OperationalError as error:
        connection.close()
        if "locked" in str(error):
            return None
        raise
    except BaseException:
        connection.close()
        raise
    return connection
