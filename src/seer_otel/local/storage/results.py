"""What evaluators found, written: judgements, the result of each trace, and how common stems are.

Each function works within the transaction that it is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from seer_otel.evaluation.evaluators.corpus import Corpus
from seer_otel.evaluation.judging import Evaluator
from seer_otel.local import times
from seer_otel.local.judging.figures import Judged
from seer_otel.local.storage import rollups
from seer_otel.local.storage.database import add_to, put
from seer_otel.local.storage.tables import (
    State,
    evaluators,
    events,
    judgements,
    results,
    segments,
    stems,
    traces,
)

PASSAGES = ""
"""Under what `stems` counts the passages."""

# SQLite uses an index of a part of a table only where the condition stands in the statement itself.
PENDING = events.c.state == sa.literal_column(str(int(State.PENDING)))


def evaluator_id(connection: sa.Connection, evaluator: Evaluator) -> int:
    """Return the id of an evaluator, which is made if it is new."""
    same = (evaluators.c.name == evaluator.name) & (evaluators.c.version == evaluator.version)
    found: int | None = connection.execute(sa.select(evaluators.c.id).where(same)).scalar()
    if found is None:
        row = {"name": evaluator.name, "version": evaluator.version, "accuracy": evaluator.accuracy}
        return _inserted(connection, evaluators, row)
    connection.execute(evaluators.update().where(same).values(accuracy=evaluator.accuracy))
    return found


def write(
    connection: sa.Connection,
    evaluator: int,
    judged: Sequence[Judged],
    counted: Mapping[str, int],
) -> None:
    """Keep what an evaluator found, and what was `counted` in the passages; events that are gone are left out."""
    query = (
        sa.select(
            events.c.id, events.c.record_id, events.c.trace_id, events.c.created_at, traces.c.final_event_id
        )
        .join_from(events, traces)
        .where(events.c.id.in_([each.event_id for each in judged]))
    )
    there = {row.id: row for row in connection.execute(query)}
    still = [
        each for each in judged if each.event_id in there and there[each.event_id].record_id == each.record_id
    ]
    now = times.now()
    rows = [
        {"event_id": each.event_id, "evaluator_id": evaluator, "judged_at": now} | columns
        for each in still
        for columns in each.verdicts
    ]
    put(connection, judgements, rows)
    for state in (State.JUDGED, State.FAILED):
        ids = [each.event_id for each in still if each.failed == (state is State.FAILED)]
        if ids:
            connection.execute(events.update().where(events.c.id.in_(ids)).values(state=state))
    new = [
        {
            "trace_id": row.trace_id,
            "evaluator_id": evaluator,
            "event_id": row.id,
            "segment_id": _segment_id(connection, each.segment),
            "created_at": row.created_at,
            "hour": times.hour(row.created_at),
        }
        | each.result
        for each in still
        if (row := there[each.event_id]).final_event_id == row.id
    ]
    if new:
        traces_of_them = results.c.trace_id.in_([row["trace_id"] for row in new])
        rollups.change(
            connection, _rows(connection, traces_of_them & (results.c.evaluator_id == evaluator)), new
        )
        put(connection, results, new)
    count(connection, counted)


def remove(connection: sa.Connection, trace_ids: Sequence[int]) -> None:
    """Take the results of traces out of the sums and away."""
    of_them = results.c.trace_id.in_(trace_ids)
    rollups.change(connection, _rows(connection, of_them), [])
    connection.execute(sa.delete(results).where(of_them))


def corpus(connection: sa.Connection) -> Corpus:
    """Return how common stems are."""
    frequencies = {row.stem: row.n for row in connection.execute(sa.select(stems))}
    return Corpus(frequencies.pop(PASSAGES, 0), frequencies)


def count(connection: sa.Connection, counted: Mapping[str, int]) -> None:
    """Add to how common stems are."""
    add_to(connection, stems, [{"stem": stem, "n": n} for stem, n in counted.items()], sums=["n"])


def _rows(connection: sa.Connection, where: sa.ColumnElement[bool]) -> list[Mapping[str, Any]]:
    return [dict(row) for row in connection.execute(sa.select(results).where(where)).mappings()]


def _segment_id(connection: sa.Connection, segment: Mapping[str, str]) -> int:
    same = sa.and_(*(segments.c[name] == value for name, value in segment.items()))
    found: int | None = connection.execute(sa.select(segments.c.id).where(same)).scalar()
    return _inserted(connection, segments, segment) if found is None else found


def _inserted(connection: sa.Connection, table: sa.Table, row: Mapping[str, str]) -> int:
    key = connection.execute(table.insert(), dict(row)).inserted_primary_key
    return int(key[0]) if key else 0  # SQLAlchemy has one for each single row
