"""The full-text search in traces' tasks. SQLite's FTS5; another database gets its own here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa

TABLE = "traces_search"
"""Its `rowid` is the `id` in `traces`, its one column is `task`."""

_search = sa.table(TABLE, sa.column("rowid"), sa.column("task"))
_ROWID: sa.BindParameter[int] = sa.bindparam("trace")
_ADD = sa.insert(_search)


def create(connection: sa.Connection) -> None:
    """Make the index."""
    connection.exec_driver_sql(f"CREATE VIRTUAL TABLE {TABLE} USING fts5(task)")


def add(connection: sa.Connection, tasks: Mapping[int, str]) -> None:
    """Index the tasks of new traces, given by the trace's id."""
    if tasks:
        rows = [{"rowid": trace, "task": task} for trace, task in tasks.items()]
        connection.execute(_ADD, rows)


def change(connection: sa.Connection, tasks: Mapping[int, str]) -> None:
    """Index what became of the tasks of traces."""
    if tasks:
        rows = [{"trace": trace, "task": task} for trace, task in tasks.items()]
        connection.execute(sa.update(_search).where(_search.c.rowid == _ROWID), rows)


def remove(connection: sa.Connection, traces: Iterable[int]) -> None:
    """Forget traces."""
    rows: Sequence[Mapping[str, int]] = [{"trace": trace} for trace in traces]
    if rows:
        connection.execute(sa.delete(_search).where(_search.c.rowid == _ROWID), rows)
