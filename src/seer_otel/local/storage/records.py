"""What `seer-otel show` reads: the events of the latest traces, with what the evaluator said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from seer_otel.local.schema import LoggedEvent, parse
from seer_otel.local.storage.tables import State, evaluators, events, judgements, traces


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the evaluator says about one event.

    Attributes:
        target: against what it judged: `task` or `subquery`.
        evaluator: its name and version.
        figures: recall, precision, f1, ndcg and sufficiency by name, None where not available.
        missing: the requirements that the context does not meet.
        error: why it was not evaluated, if it was not.
    """

    target: str
    evaluator: str
    figures: dict[str, float | None]
    missing: list[str]
    error: str | None


@dataclass(frozen=True, slots=True)
class Record:
    """One stored event.

    Attributes:
        record_id: the id that was answered when it came.
        trace_id: as sent, if it was.
        created_at: when the retrieval was, ISO 8601 in UTC: as sent, else when it came.
        received_at: when it came.
        state: whether it is judged.
        is_final: whether it is its trace's final context.
        body: the JSON text as it came.
        verdicts: what the evaluator that judged last says, by target.
    """

    record_id: str
    trace_id: str | None
    created_at: str
    received_at: str
    state: State
    is_final: bool
    body: str
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    def event(self) -> LoggedEvent:
        """Return the event itself."""
        return parse(self.body.encode())


FIGURES = ("recall", "precision", "f1", "ndcg", "sufficiency")


def traces_of(engine: sa.Engine, limit: int, prefix: str = "") -> Iterator[list[Record]]:
    """Yield at most `limit` traces, that whose event came last first; a trace's records are in time order.

    An event without a trace id is a trace of its own, under its record id. `prefix` keeps the traces whose id
    begins so.
    """
    for trace_id in _latest(engine, limit, prefix):
        query = (
            sa.select(events, traces.c.name, traces.c.final_event_id)
            .join_from(events, traces)
            .where(events.c.trace_id == trace_id)
            .order_by(events.c.created_at, events.c.id)
        )
        with engine.connect() as connection:
            rows = connection.execute(query).all()
            verdicts = _verdicts(connection, trace_id)
        if rows:
            yield [_record(row, verdicts.get(row.id, {})) for row in rows]


def _record(row: Any, verdicts: dict[str, Verdict]) -> Record:
    return Record(
        row.record_id,
        None if row.name == row.record_id else row.name,
        row.created_at,
        row.received_at,
        State(row.state),
        row.id == row.final_event_id,
        row.body,
        verdicts,
    )


def _verdicts(connection: sa.Connection, trace_id: int) -> dict[int, dict[str, Verdict]]:
    """Each event's verdicts by target; a later evaluator's take the place of an earlier one's."""
    query = (
        sa.select(judgements, evaluators.c.name, evaluators.c.version)
        .join_from(judgements, events, events.c.id == judgements.c.event_id)
        .join(evaluators, evaluators.c.id == judgements.c.evaluator_id)
        .where(events.c.trace_id == trace_id)
        .order_by(judgements.c.judged_at, judgements.c.target.desc())
    )
    found: dict[int, dict[str, Verdict]] = {}
    for row in connection.execute(query):
        found.setdefault(row.event_id, {})[row.target] = Verdict(
            row.target,
            f"{row.name} {row.version}",
            {name: getattr(row, name) for name in FIGURES},
            [requirement["text"] for requirement in row.requirements if not requirement["present"]],
            row.error,
        )
    return found


def _latest(engine: sa.Engine, limit: int, prefix: str) -> Sequence[int]:
    query = sa.select(events.c.trace_id).order_by(events.c.id.desc())
    if prefix:
        # Only the traces that are asked for; and as few as can be is what a prefix is for.
        named = traces.c.name.startswith(prefix, autoescape=True)
        query = query.where(events.c.trace_id.in_(sa.select(traces.c.id).where(named)))
    latest: dict[int, None] = {}
    # Read from the newest on, and only as far as is asked for: a store may hold millions.
    with engine.connect() as connection:
        for [trace_id] in connection.execution_options(yield_per=1_000).execute(query):
            latest.setdefault(trace_id)
            if len(latest) == limit:
                break
    return list(latest)
