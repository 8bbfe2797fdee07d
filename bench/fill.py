"""Fills a store with plausible traces, a month of them, through what the backend itself writes with.

python -m bench.fill FOLDER [TRACES]
"""

from __future__ import annotations

import json
import math
import random
import secrets
import sys
import time
from contextlib import closing
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from seer_otel.evaluation.evaluators import evaluator
from seer_otel.evaluation.judging import Judgement, Requirement
from seer_otel.local import times
from seer_otel.local.judging import figures
from seer_otel.local.schema import parse
from seer_otel.local.storage import results, rollups, search
from seer_otel.local.storage.store import Store
from seer_otel.local.storage.tables import State, events, judgements, metadata, traces
from seer_otel.local.storage.tables import results as result_table

BATCH = 5_000
DAYS = 30
PASSAGES = 5
SUBJECTS = (
    "the refund policy",
    "rate limits",
    "two-factor sign-in",
    "shipping to Norway",
    "the free plan",
    "webhooks",
)
FORMS = (
    "How does {} work, number {}?",
    "What changed in {} in version {}?",
    "Who is responsible for {} in case {}?",
)
SEGMENTS = [
    (env, flag, index)
    for env in ("prod", "staging")
    for flag in ("base", "rerank")
    for index in ("docs", "faq")
]


def fill(folder: Path, count: int, end: datetime) -> None:
    """Put `count` traces of one event each into a new store; the last one is at `end`."""
    with closing(Store(folder)) as store:
        # What a crash leaves behind is made anew here.
        sa.event.listen(store.engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous=OFF").close())
        store.engine.dispose()
        number = store.write(partial(results.evaluator_id, evaluator=evaluator()))
        shapes = store.write(lambda connection: [_shape(connection, *segment) for segment in SEGMENTS])
        chance = random.Random(7)
        for begin in range(0, count, BATCH):
            size = min(BATCH, count - begin)
            step = DAYS * 86_400 / count
            moments = [end - timedelta(seconds=(count - begin - at - 1) * step) for at in range(size)]
            store.write(
                partial(_write, shapes=shapes, evaluator=number, begin=begin, moments=moments, chance=chance)
            )


Shape = tuple[dict[str, Any], int, list[Any]]


def _shape(connection: sa.Connection, env: str, flag: str, index: str) -> Shape:
    """What the events of a segment have in common: their body, the segment's id, and what may be judged of one."""
    context = [
        {"text": f"Passage {n} says how it is done.", "id": f"d{n}", "score": 1 / (n + 1)}
        for n in range(PASSAGES)
    ]
    labels = {"env": env, "feature_flag": flag, "index": index}
    body = {
        "task": "?",
        "context": context,
        "metadata": labels,
        "span_name": "retrieve",
        "is_final_context": True,
    }
    event = parse(json.dumps(body))
    judged = []
    for present in range(3):
        for cited in range(PASSAGES):
            words = tuple(
                Requirement(f"part {n}", n < present, (0,) if n < present else ()) for n in range(2)
            )
            judgement = Judgement(words, tuple(range(cited + 1)), 0.2 + 0.3 * present)
            verdict = figures.verdict_of(event, "task", judgement, 1.0)
            judged.append(figures.assembled(0, "", event, [verdict]))
    return body, results._segment_id(connection, figures.segment_of(event)), judged  # noqa: SLF001


def _write(
    connection: sa.Connection,
    shapes: list[Shape],
    evaluator: int,
    begin: int,
    moments: list[datetime],
    chance: random.Random,
) -> None:
    rows: dict[sa.Table, list[dict[str, Any]]] = {
        table: [] for table in (traces, events, metadata, judgements, result_table)
    }
    tasks = {}
    for number, moment in enumerate(moments, begin + 1):
        shape, segment, outcomes = shapes[chance.randrange(len(shapes))]
        one = chance.choice(outcomes)
        milliseconds = math.exp(chance.gauss(1.0, 0.5))
        at, name = times.text(moment), secrets.token_hex(16)
        tasks[number] = task = chance.choice(FORMS).format(chance.choice(SUBJECTS), number)
        rows[traces].append(
            {"id": number, "name": name, "kept": True, "sampled_by": "rate", "sample_rate": 1.0, "started_at": at,
             "ended_at": at, "size": 1, "final_event_id": number, "task": task}
        )  # fmt: skip
        rows[events].append(
            {"id": number, "record_id": f"rec_{secrets.token_hex(16)}", "trace_id": number, "created_at": at,
             "received_at": at, "is_final_context": True, "state": State.JUDGED,
             "body": json.dumps(shape | {"task": task, "trace_id": name})}
        )  # fmt: skip
        rows[metadata] += [
            {"trace_id": number, "key": key, "value": value}
            for key, value in (*shape["metadata"].items(), ("user", f"u{number % 5_000}"))
        ]
        rows[judgements].append(
            one.verdicts[0]
            | {"event_id": number, "evaluator_id": evaluator, "judged_at": at, "milliseconds": milliseconds}
        )
        rows[result_table].append(
            one.result
            | {"trace_id": number, "evaluator_id": evaluator, "event_id": number, "segment_id": segment,
               "created_at": at, "hour": times.hour(at), "milliseconds": milliseconds}
        )  # fmt: skip
    for table, new in rows.items():
        connection.execute(table.insert(), new)
    search.add(connection, tasks)
    rollups.change(connection, [], rows[result_table])


if __name__ == "__main__":
    began = time.monotonic()
    fill(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000, datetime.now(timezone.utc))
    print(f"filled in {time.monotonic() - began:.0f} s")
