"""Has what is pending judged, in the background of a server."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial

import sqlalchemy as sa

from seer_otel.local.judging import figures
from seer_otel.local.judging.process import (
    Answer,
    JudgingProcess,
    Make,
    NotStartedError,
    ProcessEndedError,
    Task,
)
from seer_otel.local.schema import parse
from seer_otel.local.storage import results
from seer_otel.local.storage.results import PENDING
from seer_otel.local.storage.store import Store
from seer_otel.local.storage.tables import State, events, judgements, traces

BATCH = 32
"""Events that are judged, and written, together."""
PATIENCE = 60.0
"""Seconds that one batch has; then each of its events has as many."""
PAUSE = 5.0
"""Seconds until another look at a store that has nothing pending, or could not be used."""
STOP = 10.0
"""Seconds that a process which is just starting has when the thread is to end."""

logger = logging.getLogger(__name__)


class Judge:
    """A thread that takes the pending events in the order they came, and has them judged in a process.

    An event that makes the process end, or takes too long, is "not evaluated"; its neighbours are judged anew.
    """

    def __init__(self, store: Store, make: Make, patience: float = PATIENCE) -> None:
        self._store = store
        self._make = make
        self._patience = patience
        self._process: JudgingProcess | None = None
        self._stopping = threading.Event()
        self._written: Future[None] | None = None
        self._under_way: set[int] = set()  # events in what is being written
        self.evaluator_id = store.write(partial(results.evaluator_id, evaluator=make()))
        self._thread = threading.Thread(target=self._run, name="seer-otel-judge", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for that; what was being judged stays pending."""
        self._stopping.set()
        self._store.news.set()
        process = self._process
        if process is not None:
            with contextlib.suppress(ValueError):  # it has just been closed
                process.kill()
        self._thread.join(STOP)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._store.news.clear()
            try:
                idle = not self._some()
            except Exception as error:  # noqa: BLE001 - a full disk, for one, may pass
                if not self._stopping.is_set():
                    # The text of a database's error would hold users' texts.
                    why = error if isinstance(error, NotStartedError) else type(error).__name__
                    logger.warning("Judging pauses for %g s: %s", PAUSE, why)
                    self._stopping.wait(PAUSE)
                continue
            if idle:
                self._store.news.wait(PAUSE)
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def _some(self) -> bool:
        """Judge a batch, while the one before is being written; return whether there was any."""
        tasks = pending(self._store.engine, BATCH, self._under_way)
        if tasks:
            answer = self._judged(tasks)
            self._settle()
            job = partial(
                results.write, evaluator=self.evaluator_id, judged=answer.judged, counted=answer.counted
            )
            self._under_way = {task.event_id for task in tasks}
            self._written = self._store.submit(job)
        else:
            self._settle()
        return bool(tasks)

    def _settle(self) -> None:
        """Wait until what was judged last is written."""
        written, self._written, self._under_way = self._written, None, set()
        if written is not None:
            written.result()

    def _judged(self, tasks: Sequence[Task]) -> Answer:
        if self._process is None:
            self._settle()  # or its counts would be missing
            with self._store.engine.connect() as connection:
                corpus = results.corpus(connection)
            self._process = JudgingProcess(self._make, corpus)
        try:
            return self._process.judge(tasks, self._patience)
        except ProcessEndedError as error:
            process, self._process = self._process, None
            process.close()
            if self._stopping.is_set():
                raise
            if len(tasks) > 1:  # one of them did it
                answers = [self._judged([task]) for task in tasks]
                counted: dict[str, int] = {}
                for answer in answers:
                    for stem, n in answer.counted.items():
                        counted[stem] = counted.get(stem, 0) + n
                return Answer([each for answer in answers for each in answer.judged], counted)
            [task] = tasks
            logger.warning("Record %s could not be judged: %s", task.record_id, error)
            event = parse(task.body.encode())
            return Answer([figures.failed(task.event_id, task.record_id, event, f"Evaluator: {error}")], {})


def pending(engine: sa.Engine, limit: int, but: set[int]) -> list[Task]:
    """Return the events that have waited longest to be judged, without some."""
    query = sa.select(events.c.id, events.c.record_id, events.c.body).where(PENDING).order_by(events.c.id)
    with engine.connect() as connection:
        rows = connection.execute(query.limit(limit + len(but))).all()
    return [Task(row.id, row.record_id, row.body) for row in rows if row.id not in but][:limit]


def count_pending(engine: sa.Engine) -> int:
    """Return how many events wait to be judged."""
    with engine.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(events).where(PENDING)).scalar() or 0


def ask_again(store: Store, evaluator_id: int, step: int = 1_000) -> None:
    """Make every event of an evaluated trace pending that this evaluator has not judged yet."""
    known = sa.select(judgements.c.event_id).where(judgements.c.evaluator_id == evaluator_id)
    kept = sa.select(traces.c.id).where(traces.c.kept)
    with store.engine.connect() as connection:
        last = connection.execute(sa.select(sa.func.max(events.c.id))).scalar() or 0
    for begin in range(0, last, step):  # in steps, so that nothing that comes in waits for long
        some = events.c.id.between(begin + 1, begin + step)
        again = events.update().where(some, events.c.trace_id.in_(kept), events.c.id.not_in(known))
        store.write(partial(sa.Connection.execute, statement=again.values(state=State.PENDING)))
