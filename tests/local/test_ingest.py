from __future__ import annotations

import json
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seer_otel.local.schema import parse
from seer_otel.local.storage import ingest
from seer_otel.local.storage.ingest import DEFAULT_SAMPLE_RATE, Incoming
from seer_otel.local.storage.store import Store
from seer_otel.local.storage.tables import State, arrivals, events, metadata, traces
from seer_otel.sampling import keeps

FIRST, SECOND = "a" * 32, "b" * 32
LABELS = {"gold_doc_ids": ["d1"]}


def incoming(key: str | None = None, **fields: Any) -> Incoming:
    """A small event on its way in."""
    body = json.dumps({"task": "question", "context": []} | fields)
    return Incoming(parse(body), body, key)


def add(store: Store, *batch: Incoming) -> list[str]:
    return store.add_all(batch).result()


def rows(store: Store, table: sa.Table) -> list[Any]:
    with store.engine.connect() as connection:
        return list(connection.execute(sa.select(table)).all())


def states(store: Store) -> list[State]:
    return [State(row.state) for row in rows(store, events)]


def found(store: Store, words: str) -> list[str]:
    """The traces that a full-text search finds."""
    query = sa.text(
        "SELECT name FROM traces_search JOIN traces ON traces.id = traces_search.rowid WHERE traces_search MATCH :words"
    )
    with store.engine.connect() as connection:
        return list(connection.execute(query, {"words": words}).scalars())


@pytest.mark.parametrize(("rates", "state"), [((0.0, 1.0), State.SAMPLED_OUT), ((1.0, 0.0), State.PENDING)])
@pytest.mark.parametrize("together", [True, False])
def test_the_first_event_decides(
    store: Store, rates: tuple[float, float], state: State, together: bool
) -> None:
    """A trace is evaluated whole or not at all, as its first event's rate says, whatever later ones say."""
    batch = [incoming(trace_id=FIRST, sample_rate=rate) for rate in rates]
    for some in [batch] if together else [[item] for item in batch]:
        add(store, *some)
    assert states(store) == [state, state]
    [trace] = rows(store, traces)
    assert (trace.kept, trace.sampled_by, trace.sample_rate) == (state is State.PENDING, "rate", rates[0])


def test_the_default_rate(store: Store) -> None:
    """Without a rate a tenth of the traces is evaluated: those that every process of ours would choose."""
    names = [f"{number:032x}" for number in range(1, 300)]
    add(store, *(incoming(trace_id=name) for name in names))
    kept = {trace.name for trace in rows(store, traces) if trace.kept}
    assert kept == {name for name in names if keeps(int(name, 16), DEFAULT_SAMPLE_RATE)}
    assert 10 < len(kept) < 60


def test_events_without_a_trace(store: Store) -> None:
    """Each event without a trace id is a trace of its own, under its record id, and decided for itself."""
    answers = add(store, *(incoming(sample_rate=0.5) for _ in range(60)))
    assert [trace.name for trace in rows(store, traces)] == answers
    assert {trace.kept for trace in rows(store, traces)} == {True, False}
    assert [trace.kept for trace in rows(store, traces)] == [
        keeps(int(name[4:], 16), 0.5) for name in answers
    ]


@pytest.mark.parametrize("together", [True, False])
def test_a_label_keeps_its_trace(store: Store, together: bool) -> None:
    """A labelled event makes its trace evaluated, and those of its events that had been sampled out pending."""
    batch = [
        incoming(trace_id=FIRST, sample_rate=0.0),
        incoming(trace_id=SECOND, sample_rate=0.0),
        incoming(trace_id=FIRST, sample_rate=0.0, ground_truth=LABELS),
        incoming(trace_id=FIRST, sample_rate=0.0),
    ]
    for some in [batch] if together else [[item] for item in batch]:
        add(store, *some)
    assert states(store) == [State.PENDING, State.SAMPLED_OUT, State.PENDING, State.PENDING]
    assert [(trace.kept, trace.sampled_by) for trace in rows(store, traces)] == [
        (True, "label"),
        (False, "rate"),
    ]


def test_what_is_sampled_out_is_stored(store: Store) -> None:
    """A trace that is not evaluated is there with all of its events."""
    add(store, *(incoming(trace_id=FIRST, sample_rate=0) for _ in range(3)))
    assert len(rows(store, events)) == 3
    assert rows(store, traces)[0].size == 3


ONE = st.tuples(st.sampled_from([FIRST, SECOND]), st.booleans(), st.integers(0, 3), st.sampled_from("xyz"))


@given(st.lists(st.lists(ONE, min_size=1, max_size=4), max_size=5))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_final_context(store: Store, batches: list[list[tuple[str, bool, int, str]]]) -> None:
    """The final context is the latest marked event, else the latest, by time and then by arrival, in any order."""
    with store.engine.connect() as connection:
        before = connection.execute(sa.select(sa.func.max(events.c.id))).scalar() or 0
    names = {
        FIRST: f"{before + 1:031x}a",
        SECOND: f"{before + 1:031x}b",
    }  # the store has earlier examples, too
    sent: dict[str, list[tuple[bool, int, int, str]]] = {}
    number = before
    for batch in batches:
        items = []
        for name, marked, second, task in batch:
            number += 1
            sent.setdefault(names[name], []).append((marked, second, number, task))
            created_at = f"2026-01-01T00:00:0{second}Z"
            items.append(
                incoming(trace_id=names[name], is_final_context=marked, created_at=created_at, task=task)
            )
        add(store, *items)
    there = {trace.name: trace for trace in rows(store, traces) if trace.name in sent}
    assert there.keys() == sent.keys()
    for name, came in sent.items():
        trace, final = there[name], max(came)
        seconds = [second for _, second, _, _ in came]
        assert (trace.final_event_id, trace.task, trace.size) == (final[2], final[3], len(came))
        assert trace.started_at == f"2026-01-01T00:00:0{min(seconds)}.000000Z"
        assert trace.ended_at == f"2026-01-01T00:00:0{max(seconds)}.000000Z"
        assert name in found(store, final[3])


@pytest.mark.parametrize("together", [True, False])
def test_metadata(store: Store, together: bool) -> None:
    """A trace has the final event's metadata and what that lacks of the others', scalars as text, within bounds."""
    batch = [
        incoming(trace_id=FIRST, metadata={"a": "other", "b": 1, "c": True, "seer_otel.final": "inferred"}),
        incoming(
            trace_id=FIRST,
            is_final_context=True,
            metadata={"a": "final", "d": None, "e": [1], "f": "x" * 300, "k" * 65: 1, "g": 1.5},
        ),
        incoming(trace_id=FIRST, metadata={"a": "late", "b": 2, "h": False}),
    ]
    for some in [batch] if together else [[item] for item in batch]:
        add(store, *some)
    there = {row.key: row.value for row in rows(store, metadata)}
    b = there.pop("b")
    assert b in ("1", "2")
    assert there == {"a": "final", "c": "true", "f": "x" * 200, "g": "1.5", "h": "false"}


def test_many_keys(store: Store) -> None:
    """Of an event with many keys the first ones count."""
    add(store, incoming(metadata={f"k{number}": number for number in range(100)}))
    assert len(rows(store, metadata)) == ingest.MAX_KEYS


def test_search_follows_the_final_context(store: Store) -> None:
    """The full-text search finds a trace by the task of its final context, and no longer by an earlier one."""
    add(store, incoming(trace_id=FIRST, task="who wrote it"))
    assert found(store, "wrote") == [FIRST]
    add(store, incoming(trace_id=FIRST, task="who filmed it"))
    assert (found(store, "wrote"), found(store, "filmed")) == ([], [FIRST])


def test_a_key_that_comes_twice(store: Store) -> None:
    """A known key is answered with the first record id, within a batch and later, and changes nothing."""
    first, again, other = add(store, incoming("k", task="one"), incoming("k", task="two"), incoming("l"))
    assert first == again != other
    assert add(store, incoming("k")) == [first]
    assert [json.loads(row.body)["task"] for row in rows(store, events)] == ["one", "question"]
    assert len(rows(store, traces)) == 2


def test_arrivals(store: Store) -> None:
    """What came in is counted by outcome, together with what was refused in between."""
    add(store, incoming("k"), incoming("k"), incoming())
    store.refusals.note("invalid_event")
    store.refusals.note("invalid_event")
    add(store, incoming())
    counts: dict[str, int] = {}
    for row in rows(store, arrivals):
        counts[row.outcome] = counts.get(row.outcome, 0) + row.n
    assert counts == {"accepted": 3, "duplicate": 1, "invalid_event": 2}
    assert not store.refusals
