"""The database file: how it is opened, and what SQL has no common word for."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

WRITING = {"seer_otel_writing": True}
"""Execution options of a connection whose transactions write: they take the lock at their start.

A transaction that has read first could not wait for the lock: what it has read might be out of date.
"""

PATIENCE = 30.0
"""Seconds that a connection waits for a lock."""


def open_engine(path: Path) -> sa.Engine:
    """Return an engine for a file of SQLite, which is made with the first connection."""
    engine = sa.create_engine(sa.URL.create("sqlite", database=str(path)))
    sa.event.listen(engine, "connect", _configure)
    sa.event.listen(engine, "begin", _begin)
    return engine


def add_to(
    connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]], *, sums: Sequence[str]
) -> None:
    """Insert rows; where the primary key is there already, add the columns `sums` to what it has."""
    _upsert(connection, table, rows, sums)


def put(connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows; they take the place of those with the same primary key."""
    _upsert(connection, table, rows)


def put_new(connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows; those whose primary key is there already are left out."""
    if rows:
        connection.execute(_put_new(table), list(rows))


def _upsert(
    connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]], sums: Sequence[str] = ()
) -> None:
    if rows:
        connection.execute(_statement(table, tuple(rows[0]), tuple(sums)), list(rows))


# Each is made once, as that takes longer than to run it; what is written to a table has always the same columns.
@lru_cache(maxsize=64)
def _statement(table: sa.Table, names: tuple[str, ...], sums: tuple[str, ...]) -> sa.Executable:
    statement = sqlite.insert(table)
    keys = [column.name for column in table.primary_key]
    new = {
        name: table.c[name] + statement.excluded[name] if name in sums else statement.excluded[name]
        for name in names
        if name not in keys
    }
    return statement.on_conflict_do_update(index_elements=keys, set_=new)


@lru_cache(maxsize=64)
def _put_new(table: sa.Table) -> sa.Executable:
    return sqlite.insert(table).on_conflict_do_nothing()


def _configure(connection: Any, _: object) -> None:
    # Transactions begin where SQLAlchemy begins them, in `_begin`, and not with the first change.
    connection.isolation_level = None
    # WAL: reading does not wait for writing. FULL: a commit is on the disk when it returns; WAL's usual NORMAL
    # would survive a killed process, but not a power cut, and "accepted" has been answered.
    # 16 MB of pages, as ids and keys are random and their indexes are written all over; and 32 MB written ahead, since
    # with SQLite's usual 4 MB the same pages go into the file every 150 events: 10 to 20 % fewer events a second.
    pragmas = ("synchronous=FULL", "cache_size=-16000", "wal_autocheckpoint=8000")
    for pragma in (f"busy_timeout={PATIENCE * 1_000:.0f}", *pragmas):
        connection.execute(f"PRAGMA {pragma}").close()
    # Of several that open a new file at once, one finds it locked: here SQLite does not wait by itself.
    until = time.monotonic() + PATIENCE
    while not _writes_ahead(connection):
        if time.monotonic() > until:
            raise sqlite3.OperationalError("database is locked")
        time.sleep(0.01)


def _writes_ahead(connection: Any) -> bool:
    """Switch to writing ahead; return whether that worked, which it does not while another connection does so."""
    try:
        connection.execute("PRAGMA journal_mode=WAL").close()
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):  # a full disk, or a folder that must not be written to
            raise
        return False
    return True


def _begin(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().keys() >= WRITING.keys()
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
