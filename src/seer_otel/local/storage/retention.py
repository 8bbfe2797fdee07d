"""Deleting traces: by their id, and by age.

Deleting by id takes a trace out of all sums. What leaves by age stays in the sums by hour, which hold no texts, so
that trends go on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from functools import partial

import sqlalchemy as sa

from seer_otel.local import times
from seer_otel.local.storage import results, search
from seer_otel.local.storage.store import Store
from seer_otel.local.storage.tables import events, judgements, metadata, traces
from seer_otel.local.storage.tables import results as result_table

STEP = 200
"""Events or traces that leave in one transaction, as everything else waits for it."""
LOOK = 600.0
"""Seconds between two looks for what is too old."""

logger = logging.getLogger(__name__)


def delete(store: Store, name: str) -> bool:
    """Delete the trace of this id, or the event of this record id; return whether there was one."""
    with store.engine.connect() as connection:
        trace = connection.execute(sa.select(traces.c.id).where(traces.c.name == name)).scalar()
    if trace is None:
        return False
    # In steps, as a trace may be of any size. Its row goes last, so that the deletion can be asked for again if it
    # was cut short; figures and what it is found by go first.
    store.write(partial(_forget, trace=trace))
    while store.write(partial(_shrink, trace=trace)):
        pass
    return True


def delete_older(store: Store, days: float, now: datetime | None = None) -> int:
    """Delete the traces whose last event is more than `days` old; return how many."""
    limit = times.text((now or datetime.now(timezone.utc)) - timedelta(days=days))
    count = 0
    while (found := store.write(partial(_some_older, limit=limit))) is not None:
        count += found
    return count


class Upkeep:
    """A thread that deletes what is too old, now and then, and counts refusals that nothing else would count.

    Args:
        keep_days: how old traces may become; None keeps everything.
    """

    def __init__(self, store: Store, keep_days: float | None) -> None:
        self._store = store
        self._keep_days = keep_days
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="seer-otel-upkeep", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for that."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        look = 0.0
        while not self._stopping.wait(1.0):
            try:
                if self._store.refusals:
                    self._store.write(self._store.refusals.write)
                look -= 1.0
                if self._keep_days is not None and look <= 0:
                    look = LOOK
                    delete_older(self._store, self._keep_days)
            except Exception as error:  # noqa: BLE001 - a full disk, for one, may pass
                logger.warning("Deleting what is too old failed: %s", type(error).__name__)


def _forget(connection: sa.Connection, trace: int) -> None:
    results.remove(connection, [trace])
    search.remove(connection, [trace])
    connection.execute(sa.delete(metadata).where(metadata.c.trace_id == trace))


def _shrink(connection: sa.Connection, trace: int) -> bool:
    """Delete some of a trace's events, and the trace after the last; return whether there is more."""
    if _delete_events(connection, [trace]) == STEP:
        return True
    _forget(connection, trace)  # what came in between
    connection.execute(sa.delete(traces).where(traces.c.id == trace))
    return False


def _some_older(connection: sa.Connection, limit: str) -> int | None:
    """Delete some of the traces that ended before `limit`; return how many are gone now, None if there were none."""
    query = (
        sa.select(traces.c.id).where(traces.c.ended_at < limit).order_by(traces.c.ended_at).limit(STEP // 4)
    )
    old = list(connection.execute(query).scalars())
    if not old:
        return None
    if _delete_events(connection, old) == STEP:
        return 0  # there may be more events of theirs
    connection.execute(sa.delete(result_table).where(result_table.c.trace_id.in_(old)))
    connection.execute(sa.delete(metadata).where(metadata.c.trace_id.in_(old)))
    search.remove(connection, old)
    connection.execute(sa.delete(traces).where(traces.c.id.in_(old)))
    return len(old)


def _delete_events(connection: sa.Connection, trace_ids: Sequence[int]) -> int:
    """Delete at most `STEP` events of traces, and what was said about them; return how many."""
    query = sa.select(events.c.id).where(events.c.trace_id.in_(trace_ids)).limit(STEP)
    some = list(connection.execute(query).scalars())
    if some:
        connection.execute(sa.delete(judgements).where(judgements.c.event_id.in_(some)))
        connection.execute(sa.delete(events).where(events.c.id.in_(some)))
    return len(some)
