"""What comes in, written: events, the traces that they make up, and what traces are found by.

Each function works within the transaction that it is given.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from seer_otel.local import times
from seer_otel.local.schema import LoggedEvent, instant
from seer_otel.local.storage import arrivals, search
from seer_otel.local.storage.database import put, put_new
from seer_otel.local.storage.tables import State, events, metadata, traces
from seer_otel.sampling import keeps

DEFAULT_SAMPLE_RATE = 0.1
"""Share of traces that are evaluated where the first event names none. Source: Seer's schema page."""
MAX_KEYS = 32
"""Keys of one event's metadata that traces are found by."""
MAX_KEY, MAX_VALUE = 64, 200
"""Characters of such a key, beyond which it is left out, and of its value, beyond which it is cut."""


@dataclass(slots=True)
class Incoming:
    """An event on its way into the store.

    Attributes:
        event: the event.
        body: its JSON as it came.
        key: what the sender calls this request by; another one with the same is a repetition.
        record_id: what it is called here, and answered as.
        received_at: when it came.
    """

    event: LoggedEvent
    body: str
    key: str | None = None
    record_id: str = field(default_factory=lambda: f"rec_{secrets.token_hex(16)}")
    received_at: str = field(default_factory=times.now)


# Made once: to put a statement together takes longer than to run it.
_KNOWN = sa.select(events.c.idempotency_key, events.c.record_id).where(
    events.c.idempotency_key.in_(sa.bindparam("keys", expanding=True))
)
_THERE = (
    sa.select(traces, events.c.is_final_context, events.c.created_at)
    .join_from(traces, events, events.c.id == traces.c.final_event_id, isouter=True)
    .where(traces.c.name.in_(sa.bindparam("names", expanding=True)))
)
_NEXT = sa.select(
    *(
        sa.select(sa.func.coalesce(sa.func.max(table.c.id), 0) + 1).scalar_subquery().label(table.name)
        for table in (events, traces)
    )
)
_ADD_EVENTS, _ADD_TRACES, _ADD_METADATA = events.insert(), traces.insert(), metadata.insert()
_CHANGE_TRACES = traces.update().where(traces.c.id == sa.bindparam("trace"))

_NO_FINAL = (False, "", 0)  # less than any event


@dataclass(slots=True)
class _Trace:
    """A trace that events are added to, as it is in the end."""

    id: int
    name: str
    is_new: bool
    kept: bool
    sampled_by: str
    sample_rate: float
    started_at: str
    ended_at: str
    size: int
    task: str
    final: tuple[bool, str, int]  # marked, created_at, id: the largest is the final context
    changed: set[str] = field(default_factory=set)  # what needs a statement of its own: "kept", "task"
    labels: dict[str, str] = field(default_factory=dict)  # metadata that comes in with the final event
    others: dict[str, str] = field(default_factory=dict)  # metadata that comes in with another


def add(connection: sa.Connection, batch: Sequence[Incoming]) -> list[str]:
    """Keep events; return the record id that each is answered with: of a repeated request, that of the first one."""
    known = _known(connection, [item.key for item in batch if item.key is not None])
    answers, fresh = [], []
    for item in batch:
        answer = item.record_id if item.key is None else known.setdefault(item.key, item.record_id)
        answers.append(answer)
        if answer is item.record_id:
            fresh.append(item)
    if fresh:
        _write(connection, fresh)
    outcomes = zip(batch, answers, strict=True)
    arrivals.count(
        connection,
        [
            (arrivals.ACCEPTED if item.record_id is answer else arrivals.DUPLICATE, item.received_at)
            for item, answer in outcomes
        ],
    )
    return answers


def _known(connection: sa.Connection, keys: Sequence[str]) -> dict[str, str]:
    if not keys:
        return {}
    return {row.idempotency_key: row.record_id for row in connection.execute(_KNOWN, {"keys": keys})}


def _write(connection: sa.Connection, fresh: Sequence[Incoming]) -> None:
    there = _there(connection, {item.event.trace_id for item in fresh if item.event.trace_id})
    next_event, next_trace = connection.execute(_NEXT).one()
    rows = []
    for number, item in enumerate(fresh, next_event):
        event = item.event
        # A trace id is 32 hex digits, so that it is never mistaken for a record id.
        name = event.trace_id or item.record_id
        created_at = times.text(instant(event.created_at)) if event.created_at else item.received_at
        trace = there.get(name)
        if trace is None:
            trace = there[name] = _begun(next_trace, name, item, created_at)
            next_trace += 1
        _extend(trace, event, created_at, number)
        rows.append(
            {
                "id": number,
                "record_id": item.record_id,
                "idempotency_key": item.key,
                "trace_id": trace.id,
                "span_id": event.span_id,
                "parent_span_id": event.parent_span_id,
                "created_at": created_at,
                "received_at": item.received_at,
                "is_final_context": bool(event.is_final_context),
                "state": State.PENDING if trace.kept else State.SAMPLED_OUT,
                "body": item.body,
            }
        )
    relabelled = [trace.id for trace in there.values() if "kept" in trace.changed]
    for row in rows:  # those that came before the label in this batch
        if row["trace_id"] in relabelled:
            row["state"] = State.PENDING
    _write_traces(connection, there.values(), relabelled)
    connection.execute(_ADD_EVENTS, rows)


def _there(connection: sa.Connection, names: set[str]) -> dict[str, _Trace]:
    """The traces of these names that exist."""
    if not names:
        return {}
    return {
        row.name: _Trace(
            row.id,
            row.name,
            False,
            row.kept,
            row.sampled_by,
            row.sample_rate,
            row.started_at,
            row.ended_at,
            row.size,
            row.task,
            # Its final event is gone while the trace is being deleted.
            _NO_FINAL
            if row.created_at is None
            else (row.is_final_context, row.created_at, row.final_event_id),
        )
        for row in connection.execute(_THERE, {"names": list(names)})
    }


def _begun(trace_id: int, name: str, item: Incoming, created_at: str) -> _Trace:
    """A trace by its first event, which decides whether it is evaluated."""
    rate = item.event.sample_rate
    rate = DEFAULT_SAMPLE_RATE if rate is None else rate
    # Each event without a trace is decided for itself, by the 128 random bits of its record id.
    kept = keeps(int(item.event.trace_id or item.record_id[4:], 16), rate)
    return _Trace(trace_id, name, True, kept, "rate", rate, created_at, created_at, 0, "", _NO_FINAL)


def _extend(trace: _Trace, event: LoggedEvent, created_at: str, number: int) -> None:
    trace.size += 1
    trace.started_at = min(trace.started_at, created_at)
    trace.ended_at = max(trace.ended_at, created_at)
    if event.ground_truth is not None and not trace.kept:
        trace.kept, trace.sampled_by = True, "label"
        trace.changed.add("kept")
    # Sources: Seer's schema page, "if no span is marked, Seer uses the last span by timestamp"; of several that are
    # marked the latest counts.
    candidate = (bool(event.is_final_context), created_at, number)
    values = labels(event.metadata)
    if candidate > trace.final:
        trace.final = candidate
        if trace.task != event.task:
            trace.task = event.task
            trace.changed.add("task")
        trace.labels |= values
    else:
        trace.others = values | trace.others


def _write_traces(connection: sa.Connection, changed: Any, relabelled: Sequence[int]) -> None:
    new = [trace for trace in changed if trace.is_new]
    old = [trace for trace in changed if not trace.is_new]
    if new:
        connection.execute(
            traces.insert(), [{"id": trace.id, "name": trace.name} | _row(trace) for trace in new]
        )
        search.add(connection, {trace.id: trace.task for trace in new})
        found = [(trace.id, pair) for trace in new for pair in (trace.others | trace.labels).items()]
        if found:
            connection.execute(_ADD_METADATA, _pairs(found))
    if old:
        connection.execute(_CHANGE_TRACES, [{"trace": trace.id} | _row(trace) for trace in old])
        search.change(connection, {trace.id: trace.task for trace in old if "task" in trace.changed})
        put(
            connection, metadata, _pairs([(trace.id, pair) for trace in old for pair in trace.labels.items()])
        )
        put_new(
            connection, metadata, _pairs([(trace.id, pair) for trace in old for pair in trace.others.items()])
        )
    if relabelled:
        waiting = events.c.trace_id.in_(relabelled) & (events.c.state == State.SAMPLED_OUT)
        connection.execute(events.update().where(waiting).values(state=State.PENDING))


def _row(trace: _Trace) -> dict[str, Any]:
    return {
        "kept": trace.kept,
        "sampled_by": trace.sampled_by,
        "sample_rate": trace.sample_rate,
        "started_at": trace.started_at,
        "ended_at": trace.ended_at,
        "size": trace.size,
        "final_event_id": trace.final[2],
        "task": trace.task,
    }


def _pairs(found: Sequence[tuple[int, tuple[str, str]]]) -> list[dict[str, Any]]:
    return [{"trace_id": trace_id, "key": key, "value": value} for trace_id, (key, value) in found]


def labels(values: Mapping[str, Any] | None) -> dict[str, str]:
    """Return what of an event's metadata traces are found by, as text: scalars but those of our own marks."""
    found: dict[str, str] = {}
    for key, value in (values or {}).items():
        words = label(value)
        if words is not None and len(key) <= MAX_KEY and not key.startswith("seer_otel."):
            found[key] = words
            if len(found) == MAX_KEYS:
                break
    return found


def label(value: Any) -> str | None:
    """Return a scalar as text within the limit, None for anything else."""
    if isinstance(value, str):
        return value[:MAX_VALUE]
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)[:MAX_VALUE]
    return None
