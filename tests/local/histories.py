"""Judging in the test's own process, and sums of results made anew."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from seer_otel.evaluation.evaluators.corpus import Corpus
from seer_otel.local.judging import figures
from seer_otel.local.judging.judge import pending
from seer_otel.local.schema import parse
from seer_otel.local.storage import results, rollups
from seer_otel.local.storage.store import Store
from seer_otel.local.storage.tables import latencies
from seer_otel.local.storage.tables import results as result_table
from seer_otel.local.storage.tables import rollups as rollup_table

from .stand_in import StandIn

Sums = tuple[dict[Any, Any], dict[Any, int]]


def judge_all(store: Store) -> None:
    """Judge what is pending, as a judging process would, with the stand-in."""
    evaluator = StandIn()
    number = store.write(partial(results.evaluator_id, evaluator=evaluator))
    judged = [
        figures.judged(evaluator, Corpus(), task.event_id, task.record_id, parse(task.body))
        for task in pending(store.engine, 1_000, set())
    ]
    store.write(partial(results.write, evaluator=number, judged=judged, counted={}))


def stored(store: Store) -> Sums:
    """The sums as they are kept, floats within rounding."""
    with store.engine.connect() as connection:
        sums = {tuple(row[:4]): (row.n, pytest.approx(row.total), pytest.approx(row.squares))
                for row in connection.execute(sa.select(rollup_table))}  # fmt: skip
        counts = {tuple(row[:3]): row.n for row in connection.execute(sa.select(latencies))}
    return sums, counts


def recomputed(store: Store) -> Sums:
    """The sums as the results say them."""
    sums: dict[Any, Any] = {}
    counts: dict[Any, int] = {}
    with store.engine.connect() as connection:
        for row in connection.execute(sa.select(result_table)).mappings():
            place = row["hour"], row["evaluator_id"], row["segment_id"]
            for metric, value in rollups.contributions(row):
                n, total, squares = sums.get((*place, metric), (0, 0.0, 0.0))
                sums[(*place, metric)] = n + 1, total + value, squares + value * value
            if row["left_out"] != "failed":
                slot = row["hour"], row["evaluator_id"], rollups.bucket(row["milliseconds"])
                counts[slot] = counts.get(slot, 0) + 1
    return sums, counts
