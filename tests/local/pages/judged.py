"""A real store whose events are judged by a script: each event says itself what an evaluator finds in it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa
import uvicorn
from starlette.applications import Starlette

from seer_otel.evaluation.evaluators.corpus import Corpus
from seer_otel.evaluation.judging import Judgement, Requirement
from seer_otel.local import times
from seer_otel.local.judging import figures
from seer_otel.local.judging.figures import Verdict
from seer_otel.local.pages import routes
from seer_otel.local.schema import parse
from seer_otel.local.serve import _listen
from seer_otel.local.storage import ingest, results, tables
from seer_otel.local.storage.ingest import Incoming
from seer_otel.local.storage.store import Store

NOW = datetime(2026, 12, 1, 9, 30, tzinfo=timezone.utc)
TRACE = "0af7651916cd43dd8448eb211c80319c"

Requirements = Sequence[tuple[str, bool, tuple[int, ...]]]


@dataclass
class Script:
    """An evaluator that is told what to find."""

    name: str = "script"
    version: str = "3"
    accuracy: str = "as good as the test"

    def judge(self, query: str, passages: Sequence[str], corpus: Corpus) -> Judgement:
        raise NotImplementedError


def judgement(
    requirements: Requirements, cited: Sequence[int] | None = None, sufficiency: float | None = None
) -> Judgement:
    """Return a judgement; without `cited`, what its requirements cite."""
    made = tuple(Requirement(*one) for one in requirements)
    found = {position for one in made for position in one.citations} if cited is None else cited
    return Judgement(made, tuple(sorted(found)), sufficiency)


@dataclass
class Judged:
    """A store and its page."""

    store: Store
    client: httpx.Client
    waiting: list[tuple[Incoming, Script, list[Verdict]]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return str(self.client.base_url).rstrip("/")

    def get(self, path: str, status: int = 200) -> str:
        """Return the page at `path`, which has this status."""
        response = self.fetch(path)
        assert response.status_code == status, response.text
        return response.text

    def fetch(self, path: str, **more: Any) -> httpx.Response:
        """Return what is at `path`."""
        self.store_all()
        return self.client.get(path, **more)

    def post(self, path: str, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
        """Send a form; without other `headers`, as a browser does from a page of this server."""
        self.store_all()
        return self.client.post(path, headers={"Origin": self.url} if headers is None else headers, **more)

    def put(
        self,
        task: str = "What is ML?",
        context: Sequence[Any] = (),
        judged: Judgement | str | None = None,
        subquery_judged: Judgement | None = None,
        *,
        minutes: float = 60,
        evaluator: Script | None = None,
        **more: Any,
    ) -> str:
        """Add an event of `minutes` ago, judged as told (a text is an error); return the trace's name.

        It is stored before the next request.
        """
        at = times.text(NOW - timedelta(minutes=minutes))
        body = {"task": task, "context": list(context), "created_at": at, "sample_rate": 1.0} | more
        text = json.dumps(body)
        item = Incoming(parse(text.encode()), text)
        self.waiting.append((item, evaluator or Script(), self._verdicts(item, judged, subquery_judged)))
        return item.event.trace_id or item.record_id

    @staticmethod
    def _verdicts(
        item: Incoming, judged: Judgement | str | None, of_subquery: Judgement | None
    ) -> list[Verdict]:
        if judged is None:
            return []
        if isinstance(judged, str):
            return [Verdict(dict(figures.failed(0, "", item.event, judged).verdicts[0]), None)]
        of_both = {"task": judged, "subquery": of_subquery}
        return [
            figures.verdict_of(item.event, name, one, 1.5) for name, one in of_both.items() if one is not None
        ]

    def store_all(self) -> None:
        """Store what waits."""
        waiting, self.waiting = self.waiting, []
        if waiting:
            self.store.write(lambda connection: self._write(connection, waiting))

    @staticmethod
    def _write(connection: sa.Connection, waiting: Sequence[tuple[Incoming, Script, list[Verdict]]]) -> None:
        ingest.add(connection, [item for item, _, _ in waiting])
        ids = {
            row.record_id: row.id for row in connection.execute(sa.select(tables.events.c["id", "record_id"]))
        }
        for item, evaluator, verdicts in waiting:
            if verdicts:
                one = figures.assembled(ids[item.record_id], item.record_id, item.event, verdicts)
                results.write(connection, results.evaluator_id(connection, evaluator), [one], {})


@contextmanager
def serving(folder: Path, trace_url: str | None = None) -> Iterator[Judged]:
    """Serve the page of a new store in `folder`; it is NOW."""
    with closing(Store(folder)) as store, _listen("127.0.0.1", 0, None) as listener:
        app = Starlette(routes=routes(store, lambda: NOW, trace_url))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            with httpx.Client(base_url=url, timeout=30) as client:
                yield Judged(store, client)
        finally:
            server.should_exit = True
            thread.join()
