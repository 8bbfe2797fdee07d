"""Taking over a store of the first version, which had one table of events and no migrations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from seer_otel.local.schema import InvalidEventError, NotJsonError, parse
from seer_otel.local.storage import ingest
from seer_otel.local.storage.ingest import Incoming
from seer_otel.local.storage.migrations import FIRST_CUT

if TYPE_CHECKING:
    from seer_otel.local.storage.store import Store

BATCH = 200

_old = sa.table(
    FIRST_CUT,
    *(sa.column(name) for name in ("id", "record_id", "idempotency_key", "received_at", "body")),
)


def take_over(store: Store) -> None:
    """Add the events that the first version left, if any, as if they came now; their ids and times stay."""
    if not sa.inspect(store.engine).has_table(FIRST_CUT):
        return
    # Whatever is added leaves the old table in the same transaction, so this may stop anywhere.
    while store.write(_take_some):
        pass


def _take_some(connection: sa.Connection) -> bool:
    """Take over some events, and the table itself after the last; return whether there may be more."""
    if not sa.inspect(connection).has_table(FIRST_CUT):  # another process was faster
        return False
    rows = connection.execute(sa.select(_old).order_by(_old.c.id).limit(BATCH)).all()
    if not rows:
        connection.exec_driver_sql(f"DROP TABLE {FIRST_CUT}")
        return False
    batch = []
    for row in rows:
        try:
            event = parse(row.body.encode())
        except (NotJsonError, InvalidEventError):  # it was checked when it came, so this is a damaged file
            continue
        batch.append(Incoming(event, row.body, row.idempotency_key, row.record_id, row.received_at))
    ingest.add(connection, batch)
    connection.execute(sa.delete(_old).where(_old.c.id <= rows[-1].id))
    return True
