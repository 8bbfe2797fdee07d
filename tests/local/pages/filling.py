"""Fills a store's tables with traces as the server would, many at once, the same for the same seed.

    python tests/local/pages/filling.py FOLDER [TRACES] [DAYS]

A million traces are in the file that the page's speed is looked at with.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from seer_otel.local import times
from seer_otel.local.storage import search, tables
from seer_otel.local.storage.store import Store
from seer_otel.local.storage.tables import State

NOW = datetime(2026, 12, 1, 9, 30, tzinfo=timezone.utc)
EVALUATOR = {
    "id": 1,
    "name": "lexical",
    "version": "1",
    "accuracy": "macro F1 .746 [.728, .763] on five public sets",
}

SUBJECTS = (
    "the refund policy", "the Eiffel Tower", "rate limits of the API", "an export of invoices", "two-factor sign-in",
    "shipping to Norway", "the free plan", "deleting an account", "webhook signatures", "the S3 connector",
)  # fmt: skip
FORMS = (
    "How does {} work?", "What changed in {} this year?", "Who is responsible for {}, and since when?",
    "Where do I find the settings of {}?", "Compare {} with what was there before.", "Why does {} fail on Mondays?",
)  # fmt: skip


@dataclass(slots=True)
class Filling:
    """What is put into the tables; `write` does it."""

    rows: dict[sa.Table, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    rollups: dict[tuple[int, int, int, str], list[float]] = field(default_factory=dict)
    latencies: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    arrivals: dict[tuple[int, str], tuple[int, str]] = field(default_factory=dict)
    segments: dict[tuple[str, str, str, str], int] = field(default_factory=dict)
    traces: int = 0
    events: int = 0

    def arrive(self, outcome: str, at: datetime, n: int = 1) -> None:
        """Count requests."""
        key = times.hour(times.text(at)), outcome
        before, last = self.arrivals.get(key, (0, ""))
        self.arrivals[key] = before + n, max(last, times.text(at))

    def trace(
        self,
        task: str,
        at: datetime,
        figures: dict[str, float | None] | None = None,
        *,
        state: State = State.JUDGED,
        left_out: str | None = None,
        segment: tuple[str, str, str, str] = ("", "", "", ""),
        metadata: dict[str, str] | None = None,
        passages: int = 10,
        cited: int = 2,
        requirements: int = 2,
        present: int = 2,
        milliseconds: float = 3.0,
        whole: bool = True,
        evaluator: int = 1,
    ) -> int:
        """Add a trace of one event; `whole` is whether its event and judgement are written too. Returns its id."""
        self.traces += 1
        self.events += 1
        number, written = self.traces, times.text(at)
        name = f"{number:032x}"
        kept = state != State.SAMPLED_OUT
        self.rows[tables.traces].append(
            {
                "id": number, "name": name, "kept": kept, "sampled_by": "rate", "sample_rate": 1.0,
                "started_at": written, "ended_at": written, "size": 1, "final_event_id": self.events, "task": task,
            }
        )  # fmt: skip
        body = {
            "task": task,
            "context": [{"id": f"doc-{at}", "text": f"Passage {at} about {task}"} for at in range(passages)],
            "metadata": metadata or {},
        }
        self.rows[tables.events].append(
            {
                "id": self.events, "record_id": f"rec_{number:032x}", "trace_id": number, "span_id": f"{number:016x}",
                "created_at": written, "received_at": written, "is_final_context": True, "state": state,
                "body": json.dumps(body) if whole else "{}",
            }
        )  # fmt: skip
        for key, value in (metadata or {}).items():
            self.rows[tables.metadata].append({"trace_id": number, "key": key, "value": value})
        self.arrive("accepted", at)
        if state in {State.JUDGED, State.FAILED}:
            values = {metric: (figures or {}).get(metric) for metric in tables.METRICS}
            hour = times.hour(written)
            segment_id = self.segments.setdefault(segment, len(self.segments) + 1)
            left_out = "failed" if state == State.FAILED else left_out
            self.rows[tables.results].append(
                {
                    "trace_id": number, "evaluator_id": evaluator, "event_id": self.events, "segment_id": segment_id,
                    "created_at": written, "hour": hour, "left_out": left_out, "milliseconds": milliseconds,
                    "passages": passages, "cited": cited, "needed": cited, "requirements": requirements,
                    "present": present, **values,
                }
            )  # fmt: skip
            counts = {"traces": 1.0, "empty": passages == 0, "left_out": left_out not in {None, "failed"}}
            counts["failed"] = left_out == "failed"
            for metric, count in counts.items():
                if count:
                    self._roll((hour, evaluator, segment_id, metric), 1.0)
            if left_out is None:
                for metric, value in values.items():
                    if value is not None:
                        self._roll((hour, evaluator, segment_id, metric), value)
                recall = values["recall"]
                if recall is not None:
                    self._roll((hour, evaluator, segment_id, "flagged"), float(recall < 1))
            self.latencies[hour, evaluator, math.floor(8 * math.log2(milliseconds))] += 1
            if whole:
                judged = {name: values[name] for name in ("recall", "precision", "f1", "ndcg", "sufficiency")}
                self.rows[tables.judgements].append(
                    {
                        "event_id": self.events, "evaluator_id": evaluator, "target": "task", "judged_at": written,
                        "milliseconds": milliseconds, "error": "it broke" if left_out == "failed" else None,
                        "cited": list(range(cited)), "requirements": [], **judged,
                    }
                )  # fmt: skip
        return number

    def _roll(self, key: tuple[int, int, int, str], value: float) -> None:
        sums = self.rollups.setdefault(key, [0, 0.0, 0.0])
        sums[0] += 1
        sums[1] += value
        sums[2] += value * value

    def write(self, engine: sa.Engine) -> None:
        """Write what was added, and forget it but for the numbers and sums."""
        with engine.begin() as connection:
            connection.execute(sa.delete(tables.segments))
            for table in (tables.rollups, tables.latencies, tables.arrivals):
                connection.execute(sa.delete(table))
            known = {row.id for row in connection.execute(sa.select(tables.evaluators.c.id))}
            self._insert(connection, tables.evaluators, [EVALUATOR] * (EVALUATOR["id"] not in known))
            names = ("env", "feature_flag", "index", "span_name")
            segments = [
                {"id": number, **dict(zip(names, key, strict=True))} for key, number in self.segments.items()
            ]
            self._insert(connection, tables.segments, segments)
            search.add(connection, {row["id"]: row["task"] for row in self.rows[tables.traces]})
            for table in (tables.traces, tables.events, tables.metadata, tables.results, tables.judgements):
                self._insert(connection, table, self.rows.pop(table, []))
            columns = ("hour", "evaluator_id", "segment_id", "metric", "n", "total", "squares")
            sums = [dict(zip(columns, (*key, *value), strict=True)) for key, value in self.rollups.items()]
            self._insert(connection, tables.rollups, sums)
            columns = ("hour", "evaluator_id", "bucket", "n")
            counts = [dict(zip(columns, (*key, n), strict=True)) for key, n in self.latencies.items()]
            self._insert(connection, tables.latencies, counts)
            columns = ("hour", "outcome", "n", "last_at")
            arrived = [
                dict(zip(columns, (*key, *value), strict=True)) for key, value in self.arrivals.items()
            ]
            self._insert(connection, tables.arrivals, arrived)

    @staticmethod
    def _insert(connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]]) -> None:
        if rows:
            connection.execute(table.insert(), rows)


def plausible(engine: sa.Engine, n: int, *, now: datetime = NOW, days: float = 14, seed: int = 0) -> Filling:
    """Fill a store with `n` traces of the last `days` as a real application may leave them."""
    random_ = random.Random(seed)
    filling = Filling()
    for number in range(n):
        ago = timedelta(days=days) * (1 - (number + random_.random()) / n)
        flag = random_.choice(("hybrid-on", "hybrid-off"))
        env = random_.choices(("prod", "staging"), (8, 1))[0]
        index = random_.choices(("docs-v2", "docs-v1", "faq"), (6, 3, 0.05))[0]
        segment = (env, flag, index, "retrieve")
        metadata = {
            "env": env,
            "feature_flag": flag,
            "index": index,
            "model": random_.choice(("small", "large")),
        }
        task = random_.choice(FORMS).format(random_.choice(SUBJECTS))
        fate = random_.random()
        common: dict[str, Any] = {
            "segment": segment, "metadata": metadata, "whole": n <= 20_000,
            "milliseconds": random_.lognormvariate(1.2, 0.5),
        }  # fmt: skip
        at = now - ago
        if fate < 0.06:
            filling.trace(task, at, state=State.SAMPLED_OUT, **common)
        elif fate < 0.07:
            filling.trace(task, at, {"recall": 0.0}, passages=0, cited=0, present=0, **common)
        elif fate < 0.075:
            filling.trace(task, at, state=State.FAILED, cited=0, present=0, requirements=0, **common)
        else:
            good = (
                0.75
                + 0.1 * (flag == "hybrid-on")
                - 0.15 * (index == "docs-v1")
                + 0.05 * math.sin(number / n * 9)
            )
            requirements = random_.choices((1, 2, 3, 4), (5, 4, 2, 1))[0]
            present = sum(random_.random() < good for _ in range(requirements))
            cited = random_.randint(1, 4) if present else random_.randint(0, 1)
            recall, precision = present / requirements, cited / 10
            figures: dict[str, float | None] = {
                "recall": recall,
                "precision": precision,
                "f1": 2 * recall * precision / (recall + precision) if recall + precision else 0.0,
                "ndcg": random_.betavariate(6, 2) if cited else None,
                "sufficiency": min(0.99, max(0.01, random_.gauss(0.15 + 0.7 * recall, 0.12))),
            }
            if random_.random() < 0.08:
                hit = float(random_.random() < good)
                figures |= {
                    "gt_recall": hit, "gt_precision": hit / 10, "gt_f1": hit / 5.5,
                    "evaluator_precision": random_.choice((0.5, 1.0)), "evaluator_recall": 1.0 if hit else None,
                    "evaluator_f1": random_.choice((0.67, 1.0)), "exact_match": float(random_.random() < 0.5),
                }  # fmt: skip
            filling.trace(
                task, at, figures, cited=cited, requirements=requirements, present=present,
                left_out=random_.choices((None, "passages_cut", "partial"), (50, 1, 1))[0], **common,
            )  # fmt: skip
        if number % 50_000 == 49_999:
            filling.write(engine)
    for _ in range(min(n // 100, 500)):
        filling.arrive("duplicate", now - timedelta(days=days) * random_.random())
        filling.arrive(
            random_.choice(("invalid_event", "invalid_json", "unauthorized")),
            now - timedelta(days=days) * random_.random(),
        )
    for _ in range(3):
        filling.trace("Who waits?", now - timedelta(minutes=2), state=State.PENDING)
    filling.write(engine)
    return filling


if __name__ == "__main__":
    folder, count, over = (*sys.argv[1:], "2000", "14")[:3] if len(sys.argv) != 3 else (*sys.argv[1:], "14")
    with closing(Store(Path(folder))) as store:
        plausible(store.engine, int(count), days=int(over))
