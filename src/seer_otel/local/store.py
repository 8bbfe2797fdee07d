"""Where the local backend keeps events: one SQLite file in a folder.

Each event is kept whole, as the text that came, beside the columns that are asked for. SQLAlchemy Core only, so
that another database can take SQLite's place.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from seer_otel.local.schema import LoggedEvent, instant, parse

FILE_NAME = "events.db"

_tables = sa.MetaData()
# Times are text in UTC with microseconds, which sorts as time does. The long column is the last one: SQLite need
# not read past what a query asks for.
_events = sa.Table(
    "events",
    _tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("record_id", sa.String(64), nullable=False, unique=True),
    sa.Column("idempotency_key", sa.Text, unique=True),
    sa.Column("trace_id", sa.String(32), index=True),
    sa.Column("span_id", sa.String(16)),
    sa.Column("created_at", sa.String(32), nullable=False, index=True),
    sa.Column("received_at", sa.String(32), nullable=False),
    sa.Column("is_final_context", sa.Boolean, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
)


@dataclass(frozen=True, slots=True)
class Record:
    """One stored event.

    Attributes:
        record_id: the id that was answered when it came.
        trace_id: as sent, if it was.
        created_at: when the retrieval was, ISO 8601 in UTC: as sent, else when it came.
        received_at: when it came.
        body: the JSON text as it came.
    """

    record_id: str
    trace_id: str | None
    created_at: str
    received_at: str
    body: str

    def event(self) -> LoggedEvent:
        """Return the event itself."""
        return parse(self.body.encode())


class Store:
    """Events in `events.db` of a folder, for any number of threads and processes.

    Opening creates what is not there. Database failures raise `sqlalchemy.exc.SQLAlchemyError`, an unusable
    folder raises OSError.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        if not folder.is_dir():
            # Events hold users' questions: for nobody else's eyes, and not for version control.
            folder.mkdir(mode=0o700, parents=True)
            (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        self._engine = sa.create_engine(sa.URL.create("sqlite", database=str(self.path)))
        sa.event.listen(self._engine, "connect", _configure)
        # SQLite lets one writer in at a time and makes others poll; here they queue.
        self._writing = threading.Lock()
        try:
            _tables.create_all(self._engine)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def add(self, event: LoggedEvent, body: str, idempotency_key: str | None = None) -> str:
        """Keep an event and return its record id; it is on disk when this returns.

        For a key that is here already nothing is stored, and the answer is the record id from then.
        """
        now = datetime.now(timezone.utc)
        row = {
            "record_id": f"rec_{uuid.uuid4().hex}",
            "idempotency_key": idempotency_key,
            "trace_id": event.trace_id,
            "span_id": event.span_id,
            "created_at": _text(instant(event.created_at) if event.created_at else now),
            "received_at": _text(now),
            "is_final_context": bool(event.is_final_context),
            "body": body,
        }
        try:
            with self._writing, self._engine.begin() as connection:
                connection.execute(_events.insert(), row)
        except sa.exc.IntegrityError:
            known = self._record_id_of(idempotency_key)
            if known is None:
                raise
            return known
        return str(row["record_id"])

    def _record_id_of(self, idempotency_key: str | None) -> str | None:
        query = sa.select(_events.c.record_id).where(_events.c.idempotency_key == idempotency_key)
        with self._engine.connect() as connection:
            return connection.execute(query).scalar()

    def traces(self, limit: int, prefix: str = "") -> Iterator[list[Record]]:
        """Yield at most `limit` traces, that whose event came last first; a trace's records are in time order.

        An event without a trace id is a trace of its own, under its record id. `prefix` keeps the traces whose id
        begins so.
        """
        for trace_id, record_id in self._latest(limit, prefix):
            same = _events.c.trace_id == trace_id if trace_id else _events.c.record_id == record_id
            columns = [_events.c[name] for name in Record.__dataclass_fields__]
            query = sa.select(*columns).where(same).order_by(_events.c.created_at, _events.c.id)
            with self._engine.connect() as connection:
                rows = connection.execute(query).all()
            yield [Record(*row) for row in rows]

    def _latest(self, limit: int, prefix: str) -> list[Sequence[Any]]:
        name = sa.func.coalesce(_events.c.trace_id, _events.c.record_id)
        query = sa.select(_events.c.trace_id, _events.c.record_id).order_by(_events.c.id.desc())
        if prefix:
            query = query.where(name.startswith(prefix, autoescape=True))
        latest: dict[str, Sequence[Any]] = {}
        # Read from the newest on, and only as far as is asked for: a store may hold millions.
        with self._engine.connect() as connection:
            for row in connection.execution_options(yield_per=1_000).execute(query):
                latest.setdefault(row.trace_id or row.record_id, row)
                if len(latest) == limit:
                    break
        return list(latest.values())


def _text(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _configure(connection: Any, _: object) -> None:
    # WAL: reading does not wait for writing. FULL: a commit is on the disk when it returns; WAL's usual NORMAL
    # would survive a killed process, but not a power cut, and "accepted" has been answered.
    for pragma in ("busy_timeout=30000", "journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}").close()
