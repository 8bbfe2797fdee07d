"""Where the local backend keeps events: one SQLite file in a folder.

All that is known of storage is behind `Store`: whoever reads uses its engine, and whoever writes hands a function to
its one writer. SQLAlchemy Core only, so that another database can take SQLite's place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa

from seer_otel.local.schema import LoggedEvent
from seer_otel.local.storage import ingest, records
from seer_otel.local.storage.arrivals import Refusals
from seer_otel.local.storage.database import WRITING, open_engine
from seer_otel.local.storage.first_cut import take_over
from seer_otel.local.storage.ingest import Incoming
from seer_otel.local.storage.migrations import migrate
from seer_otel.local.storage.records import Record

FILE_NAME = "events.db"

T = TypeVar("T")


class Store:
    """The database of a folder, for any number of threads and processes.

    Opening creates what is not there and brings what is there up to date. Database failures raise
    `sqlalchemy.exc.SQLAlchemyError`, an unusable folder raises OSError, and a file that a newer version wrote
    NewerSchemaError.

    Attributes:
        path: the file.
        engine: for reading, with `engine.connect()`.
        refusals: requests that were refused; they are counted with what is written next.
        news: set whenever events have come in.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        if not folder.is_dir():
            # Events hold users' questions: for nobody else's eyes, and not for version control.
            folder.mkdir(mode=0o700, parents=True)
            (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        self.engine = open_engine(self.path)
        self.refusals = Refusals()
        self.news = threading.Event()
        # SQLite lets one writer in at a time and makes others poll; here they queue.
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="seer-otel-writer")
        try:
            migrate(self.engine)
            take_over(self)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Write what is waiting, and close all connections."""
        if self.refusals:
            self.submit(_nothing)
        self._writer.shutdown()
        self.engine.dispose()

    def submit(self, job: Callable[[sa.Connection], T]) -> Future[T]:
        """Have the writer call `job` in a transaction of its own, soon; it is on disk when the future has a result.

        A job must be short: everything else waits.
        """
        return self._writer.submit(self._write, job)

    def write(self, job: Callable[[sa.Connection], T]) -> T:
        """As `submit`, and wait."""
        return self.submit(job).result()

    def add(self, event: LoggedEvent, body: str, idempotency_key: str | None = None) -> str:
        """Keep an event and return its record id; it is on disk when this returns.

        For a key that is here already nothing is stored, and the answer is the record id from then.
        """
        [record_id] = self.add_all([Incoming(event, body, idempotency_key)]).result()
        return record_id

    def add_all(self, batch: Sequence[Incoming]) -> Future[list[str]]:
        """Keep events; the result is the record id that each is answered with."""

        def job(connection: sa.Connection) -> list[str]:
            answers = ingest.add(connection, batch)
            self.refusals.write(connection)
            return answers

        future = self.submit(job)
        future.add_done_callback(lambda _: self.news.set())
        return future

    def traces(self, limit: int, prefix: str = "") -> Iterator[list[Record]]:
        """As `records.traces_of`."""
        return records.traces_of(self.engine, limit, prefix)

    def _write(self, job: Callable[[sa.Connection], T]) -> T:
        with self.engine.connect().execution_options(**WRITING) as connection, connection.begin():
            return job(connection)


def _nothing(connection: sa.Connection) -> None:
    pass
