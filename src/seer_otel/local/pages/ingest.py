"""What came in, and what waits. Reads only."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from seer_otel.local import times
from seer_otel.local.pages.filters import Filters
from seer_otel.local.storage import tables
from seer_otel.local.storage.arrivals import ACCEPTED, DUPLICATE
from seer_otel.local.storage.tables import State


@dataclass(frozen=True, slots=True)
class Ingest:
    """The health of what comes in; events, not traces, by when they came.

    Attributes:
        accepted: events that are stored, those sampled out among them.
        duplicates: requests whose key was known.
        sampled_out: events of traces that are not evaluated.
        rejected: refused requests by error code, the most frequent first.
        last_at: when the last event was accepted, whatever the period; None if none ever was.
        last_created: the time of the latest event by its own account.
        backlog: events that wait to be judged now.
        waiting_since: when the one that waits longest came.
    """

    accepted: int
    duplicates: int
    sampled_out: int
    rejected: dict[str, int]
    last_at: str | None
    last_created: str | None
    backlog: int
    waiting_since: str | None

    @property
    def ever(self) -> bool:
        """Whether an event ever came."""
        return self.last_created is not None

    @property
    def evaluated(self) -> float | None:
        """The share of accepted events that sampling lets be evaluated."""
        return (self.accepted - self.sampled_out) / self.accepted if self.accepted else None


def ingest(connection: sa.Connection, filters: Filters) -> Ingest:
    """Read the figures for the filters' period; nothing else of them matters here."""
    table, events = tables.arrivals, tables.events
    query = (
        sa.select(table.c.outcome, sa.func.sum(table.c.n))
        .where(table.c.hour >= filters.start_hour, table.c.hour < filters.end_hour)
        .group_by(table.c.outcome)
    )
    by_outcome = {outcome: int(n) for outcome, n in connection.execute(query)}
    last = (
        sa.select(table.c.last_at).where(table.c.outcome == ACCEPTED).order_by(table.c.hour.desc()).limit(1)
    )
    created = sa.select(sa.func.max(events.c.created_at))
    sampled_out = (
        sa.select(sa.func.count())
        .select_from(events)
        .where(_state(State.SAMPLED_OUT))
        .where(
            events.c.received_at >= times.text(filters.start),
            events.c.received_at < times.text(filters.end),
        )
    )
    pending = sa.select(sa.func.count(), sa.func.min(events.c.id)).where(_state(State.PENDING))
    backlog, oldest = connection.execute(pending).one()
    waiting = None
    if oldest is not None:
        waiting = connection.execute(sa.select(events.c.received_at).where(events.c.id == oldest)).scalar()
    rejected = {code: n for code, n in by_outcome.items() if code not in {ACCEPTED, DUPLICATE}}
    return Ingest(
        by_outcome.get(ACCEPTED, 0),
        by_outcome.get(DUPLICATE, 0),
        int(connection.execute(sampled_out).scalar_one()),
        dict(sorted(rejected.items(), key=lambda item: -item[1])),
        connection.execute(last).scalar(),
        connection.execute(created).scalar(),
        int(backlog),
        waiting,
    )


def _state(state: State) -> sa.ColumnElement[bool]:
    # Literally, as in the partial indexes: a bound parameter would not find them.
    return tables.events.c.state == sa.literal_column(str(int(state)))
