from __future__ import annotations

import json
import sqlite3
import stat
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import DatabaseError

from seer_otel.local.schema import parse
from seer_otel.local.storage.store import Store

FIRST, SECOND = "a" * 32, "b" * 32


def add(store: Store, key: str | None = None, **fields: Any) -> str:
    """Store a small event and return its record id."""
    body = json.dumps({"task": "question", "context": []} | fields)
    return store.add(parse(body.encode()), body, key)


def test_what_is_kept_is_what_came(tmp_path: Path) -> None:
    """The body is kept to the letter, unknown keys and white space included, after the store is opened again."""
    body = '{"task": "\\u00fc \\u0000", "context": [ ],\n "unknown": 1}'
    with closing(Store(tmp_path)) as store:
        record_id = store.add(parse(body.encode()), body)
    with closing(Store(tmp_path)) as store:
        [[record]] = store.traces(10)
    assert (record.record_id, record.body) == (record_id, body)
    assert record_id.startswith("rec_")


def test_a_key_that_is_here_already(tmp_path: Path) -> None:
    """A second event with the same key is not stored, and answers with the first one's record id."""
    with closing(Store(tmp_path)) as store:
        first = add(store, "key", task="first")
        assert add(store, "key", task="second") == first
        assert add(store, "other") != first
        assert add(store) != add(store)
        assert [json.loads(records[0].body)["task"] for records in store.traces(10)][-1] == "first"
        assert len(list(store.traces(10))) == 4


def test_one_key_from_many_threads_and_two_openings(tmp_path: Path) -> None:
    """Of many simultaneous requests with one key one is stored, and all get its record id."""
    with closing(Store(tmp_path)) as one, closing(Store(tmp_path)) as other:
        answers: list[str] = []
        begin = threading.Barrier(12)

        def send(store: Store) -> None:
            begin.wait()
            answers.append(add(store, "key"))

        threads = [threading.Thread(target=send, args=(store,)) for store in (one, other) * 6]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 12
        assert len(set(answers)) == 1
        assert len(list(one.traces(10))) == 1


def test_the_order_of_traces(tmp_path: Path) -> None:
    """The trace that was added to last comes first, and within a trace time decides, not arrival."""
    with closing(Store(tmp_path)) as store:
        late = add(store, trace_id=FIRST, created_at="2026-01-01T00:00:02Z")
        alone = add(store)
        middle = add(store, trace_id=SECOND)
        early = add(store, trace_id=FIRST, created_at="2026-01-01T02:00:01+02:00")
        found = [[record.record_id for record in records] for records in store.traces(10)]
        assert found == [[early, late], [middle], [alone]]
        assert [[record.record_id for record in records] for records in store.traces(2)] == found[:2]


def test_traces_by_the_beginning_of_their_id(tmp_path: Path) -> None:
    """A prefix finds traces, and records without a trace, in either case of letters and without wildcards."""
    with closing(Store(tmp_path)) as store:
        first, alone = add(store, trace_id=FIRST), add(store)

        def found(prefix: str) -> list[str]:
            return [records[0].record_id for records in store.traces(10, prefix)]

        assert found("aaa") == found("AAA") == found(FIRST) == [first]
        assert found("rec_") == found(alone) == [alone]
        assert found("%") == found("_") == found("b") == []


def test_an_event_without_a_time_has_the_time_it_came(tmp_path: Path) -> None:
    """Where the client names no time, created_at is received_at."""
    with closing(Store(tmp_path)) as store:
        add(store)
        [[record]] = store.traces(1)
    assert record.created_at == record.received_at


def test_a_commit_is_on_the_disk(tmp_path: Path) -> None:
    """SQLite writes ahead and waits for the disk at each commit."""
    with closing(Store(tmp_path)) as store, store.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_the_folder_is_private(tmp_path: Path) -> None:
    """A new folder is closed to other users and ignored by git; a folder that was there is left as it was."""
    folder = tmp_path / "a" / "b"
    Store(folder).close()
    assert (folder / ".gitignore").read_text() == "*\n"
    if sys.platform != "win32":
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    Store(tmp_path).close()
    assert not (tmp_path / ".gitignore").exists()


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """A foreign file under our name is refused and left alone."""
    (tmp_path / "events.db").write_text("not a database, but long enough to look like one")
    with pytest.raises(DatabaseError, match="not a database"):
        Store(tmp_path)
    assert (tmp_path / "events.db").read_text().startswith("not a database")


def test_reading_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    """While another connection holds the write lock, what was stored can be read."""
    with closing(Store(tmp_path)) as store:
        add(store)
        with closing(sqlite3.connect(tmp_path / "events.db", isolation_level=None)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            assert len(list(store.traces(10))) == 1
