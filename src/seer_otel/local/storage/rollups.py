"""The sums of results by hour, segment and metric, and the histogram of their latencies, kept up by difference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import floor, log2
from typing import Any

import sqlalchemy as sa

from seer_otel.local.judging.figures import FAILED
from seer_otel.local.storage.database import add_to
from seer_otel.local.storage.tables import METRICS, latencies, rollups

Row = Mapping[str, Any]
"""A row of `results`."""


def contributions(result: Row) -> Iterator[tuple[str, float]]:
    """Yield the metrics in whose sums a result counts, each with its value."""
    left_out = result["left_out"]
    yield "traces", 1
    if not result["passages"]:
        yield "empty", 1
    if left_out is not None:
        yield (FAILED if left_out == FAILED else "left_out"), 1
        return
    for name in METRICS:
        if result[name] is not None:
            yield name, result[name]
    if result["recall"] is not None:
        yield "flagged", result["recall"] < 1


def bucket(milliseconds: float) -> int:
    """Return the bucket of a latency: 9 % wide, and everything below a microsecond in one."""
    return floor(8 * log2(max(milliseconds, 0.001)))


def change(connection: sa.Connection, removed: Iterable[Row], added: Iterable[Row]) -> None:
    """Take results out of the sums, and others in."""
    sums: dict[tuple[Any, ...], list[float]] = {}
    counts: dict[tuple[int, int, int], int] = {}
    signed = [(-1, result) for result in removed] + [(1, result) for result in added]
    for sign, result in signed:
        where = result["hour"], result["evaluator_id"], result["segment_id"]
        for metric, value in contributions(result):
            entry = sums.setdefault((*where, metric), [0, 0.0, 0.0])
            entry[0] += sign
            entry[1] += sign * value
            entry[2] += sign * value * value
        if result["left_out"] != FAILED:
            slot = result["hour"], result["evaluator_id"], bucket(result["milliseconds"])
            counts[slot] = counts.get(slot, 0) + sign
    add_to(
        connection,
        rollups,
        [
            dict(zip(_ROLLUP, (*key, n, total, squares), strict=True))
            for key, (n, total, squares) in sums.items()
        ],
        sums=["n", "total", "squares"],
    )
    add_to(
        connection,
        latencies,
        [dict(zip(_LATENCY, (*slot, n), strict=True)) for slot, n in counts.items()],
        sums=["n"],
    )
    hours = sorted({result["hour"] for sign, result in signed if sign < 0})
    # Also so that what sums of floats leave behind is gone with the last result.
    for table in (rollups, latencies) if hours else ():
        connection.execute(sa.delete(table).where(table.c.hour.in_(hours), table.c.n == 0))


_ROLLUP = [column.name for column in rollups.c]
_LATENCY = [column.name for column in latencies.c]
