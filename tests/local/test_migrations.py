from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from seer_otel import cli
from seer_otel.local.storage import migrations
from seer_otel.local.storage.migrations import HEAD, NewerSchemaError, current
from seer_otel.local.storage.store import Store
from seer_otel.local.storage.tables import State, events, tables, traces

FIRST_CUT = """
CREATE TABLE events (
    id INTEGER NOT NULL, record_id VARCHAR(64) NOT NULL, idempotency_key TEXT, trace_id VARCHAR(32),
    span_id VARCHAR(16), created_at VARCHAR(32) NOT NULL, received_at VARCHAR(32) NOT NULL,
    is_final_context BOOLEAN NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (id), UNIQUE (record_id), UNIQUE (idempotency_key)
);
CREATE INDEX ix_events_trace_id ON events (trace_id);
CREATE INDEX ix_events_created_at ON events (created_at);
"""
"""What version 0.1 made."""
TRACE = "a" * 32


def first_cut(folder: Path, count: int) -> None:
    """A store as version 0.1 left it, with one trace of `count` events and one event without a trace."""
    at = "2026-01-01T00:00:00.000000Z"
    rows = []
    for number in range(count + 1):
        event: dict[str, Any] = {"task": "question", "context": [], "created_at": at, "sample_rate": 1.0}
        if number < count:
            event |= {"trace_id": TRACE, "is_final_context": number == 1}
        rows.append(
            (
                f"rec_{number:032x}",
                f"key {number}",
                event.get("trace_id"),
                None,
                at,
                at,
                number == 1,
                json.dumps(event),
            )
        )
    with closing(sqlite3.connect(folder / "events.db")) as connection:
        connection.executescript(FIRST_CUT)
        names = (
            "record_id, idempotency_key, trace_id, span_id, created_at, received_at, is_final_context, body"
        )
        connection.executemany(f"INSERT INTO events ({names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        connection.commit()


def test_the_steps_lead_to_the_tables(store: Store) -> None:
    """A new store has exactly the tables that the code works with, and is at the last step."""

    def is_ours(_: Any, name: str | None, kind: str, *__: Any) -> bool:
        return kind != "table" or not str(name).startswith(("traces_search", "alembic_version"))

    with store.engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"include_object": is_ours, "compare_type": True}
        )
        assert compare_metadata(context, tables) == []
    assert current(store.engine) == HEAD
    assert ScriptDirectory(str(Path(migrations.__file__).parent)).get_current_head() == HEAD


@pytest.mark.parametrize("count", [2, 450])
def test_a_store_of_the_first_version_is_taken_over(tmp_path: Path, count: int) -> None:
    """Its events keep their ids, keys, times and bodies, make up their traces, and the old table is gone."""
    first_cut(tmp_path, count)
    with closing(Store(tmp_path)) as store:
        with store.engine.connect() as connection:
            there = connection.execute(sa.select(events).order_by(events.c.id)).all()
            made = {row.name: row for row in connection.execute(sa.select(traces))}
        assert [row.record_id for row in there] == [f"rec_{number:032x}" for number in range(count + 1)]
        assert {row.received_at for row in there} == {"2026-01-01T00:00:00.000000Z"}
        assert made[TRACE].size == count
        assert made[TRACE].final_event_id == there[1].id
        assert there[count].state == State.PENDING
        assert made.keys() == {TRACE, there[count].record_id}
        assert store.add(store_event := next(store.traces(1))[0].event(), "{}", "key 0") == there[0].record_id
        assert store_event.task == "question"
        assert not sa.inspect(store.engine).has_table(migrations.FIRST_CUT)
    Store(tmp_path).close()


def test_a_takeover_that_was_cut_short(tmp_path: Path) -> None:
    """The next start goes on where the last one stopped, and nothing is there twice."""
    first_cut(tmp_path, 10)
    with closing(sqlite3.connect(tmp_path / "events.db")) as connection:
        rows = connection.execute("SELECT * FROM events WHERE id > 4").fetchall()
        connection.execute("DELETE FROM events WHERE id > 4")
        connection.commit()
    Store(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "events.db")) as connection:
        connection.executescript(FIRST_CUT.split(";", maxsplit=1)[0].replace("events", migrations.FIRST_CUT))
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO {migrations.FIRST_CUT} VALUES ({marks})", rows)
        connection.commit()
    with closing(Store(tmp_path)) as store, store.engine.connect() as connection:
        assert connection.execute(sa.select(traces.c.size).where(traces.c.name == TRACE)).scalar() == 10


def test_a_newer_schema_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a newer version wrote is left alone, and each command says what to do in one line."""
    Store(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "events.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    with pytest.raises(NewerSchemaError, match="9999"):
        Store(tmp_path)
    for command in (["serve", "--port", "0"], ["show"], ["delete", "--trace", "a"]):
        assert cli.main([*command, "--data", str(tmp_path)]) == 1
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert "upgrade seer-otel" in err
    with closing(sqlite3.connect(tmp_path / "events.db")) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("9999",)]


def test_several_that_start_at_once(tmp_path: Path) -> None:
    """Of several openings of a new folder one makes the tables, and all work."""
    (tmp_path / "data").mkdir()
    begin = threading.Barrier(4)
    opened: list[Store] = []

    def start() -> None:
        begin.wait()
        opened.append(Store(tmp_path / "data"))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in opened:
        assert current(store.engine) == HEAD
        store.close()
    assert len(opened) == 4
