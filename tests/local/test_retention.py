from __future__ import annotations

import json
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from seer_otel import cli
from seer_otel.local.schema import parse
from seer_otel.local.storage import retention
from seer_otel.local.storage.retention import delete, delete_older
from seer_otel.local.storage.store import Store
from seer_otel.local.storage.tables import events, judgements, latencies, metadata, results, rollups, traces

from .histories import judge_all, recomputed, stored

FIRST, SECOND = "a" * 32, "b" * 32
NOW = datetime(2026, 2, 1, tzinfo=timezone.utc)
PRIVATE = (events, traces, metadata, judgements, results)


def add(store: Store, trace_id: str | None, created_at: str = "2026-01-01T00:00:00Z", **fields: Any) -> str:
    event = {"task": "what", "context": ["what it is"], "sample_rate": 1.0, "created_at": created_at}
    body = json.dumps(
        event | {"metadata": {"env": "test"}} | ({"trace_id": trace_id} if trace_id else {}) | fields
    )
    return store.add(parse(body), body)


def sizes(store: Store, *tables: sa.Table) -> list[int]:
    with store.engine.connect() as connection:
        return [
            connection.execute(sa.select(sa.func.count()).select_from(table)).scalar() or 0
            for table in (*tables, sa.table("traces_search"))
        ]


@pytest.mark.parametrize("count", [1, 5])
def test_a_deleted_trace_leaves_nothing(store: Store, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleting a trace, in however many steps, takes its events, figures and words away, and it out of the sums."""
    monkeypatch.setattr(retention, "STEP", 2)
    for _ in range(count):
        add(store, FIRST)
    judge_all(store)
    assert all(sizes(store, *PRIVATE, rollups, latencies))
    assert delete(store, FIRST)
    assert not any(sizes(store, *PRIVATE, rollups, latencies))
    assert not delete(store, FIRST)


def test_other_traces_stay(store: Store) -> None:
    """What is deleted is one trace, and the sums are those of the others."""
    for name in (FIRST, SECOND, None):
        record_id = add(store, name)
    judge_all(store)
    assert delete(store, FIRST)
    assert stored(store) == recomputed(store)
    assert delete(store, record_id)
    assert sizes(store, *PRIVATE) == [1] * 6


def test_a_deletion_that_was_cut_short(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of a trace can be deleted again, takes new events, and is judged no more than once in the sums."""
    monkeypatch.setattr(retention, "STEP", 1)
    for _ in range(3):
        add(store, FIRST)
    judge_all(store)
    with store.engine.connect() as connection:
        trace = connection.execute(sa.select(traces.c.id)).scalar_one()
    store.write(lambda connection: retention._forget(connection, trace))
    for _ in range(3):
        store.write(lambda connection: retention._delete_events(connection, [trace]))
    add(store, FIRST)
    judge_all(store)
    assert stored(store) == recomputed(store)
    assert delete(store, FIRST)
    assert not any(sizes(store, *PRIVATE, rollups))


def test_age(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Traces whose last event is too old go, in however many steps, and their figures stay in the sums."""
    monkeypatch.setattr(retention, "STEP", 4)
    for number in range(7):
        add(store, f"{number:032x}", "2026-01-10T00:00:00Z")
    add(store, FIRST, "2026-01-10T00:00:00Z")
    add(store, FIRST, "2026-01-20T00:00:00Z")  # goes on, so it stays whole
    judge_all(store)
    sums = stored(store)
    assert delete_older(store, 15, NOW) == 7
    assert sizes(store, *PRIVATE) == [2, 1, 1, 2, 1, 1]
    assert stored(store) == sums
    assert delete_older(store, 15, NOW) == 0


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`seer-otel delete` deletes the trace of exactly this id, and says where it looked in vain, making no folder."""
    with closing(Store(tmp_path)) as store:
        add(store, FIRST)
    command = ["delete", "--data", str(tmp_path), "--trace"]
    assert cli.main([*command, "aaaa"]) == 1
    assert str(tmp_path) in capsys.readouterr().err
    assert cli.main([*command, FIRST]) == 0
    assert capsys.readouterr().out.startswith("Deleted")
    assert cli.main([*command, FIRST]) == 1
    assert cli.main(["delete", "--data", str(tmp_path / "none"), "--trace", FIRST]) == 1
    assert not (tmp_path / "none").exists()
