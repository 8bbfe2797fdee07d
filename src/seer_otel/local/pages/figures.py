"""Sums of results, and what is computed from them: for cards, trends and segments. Reads, and writes nothing.

A screen reads the rollups, some thousand rows whatever the store holds. Only a filter by metadata, which the rollups
do not know, reads the results themselves.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from seer_otel.evaluation.statistics import Interval, Sums, mean_interval, wilson
from seer_otel.local.pages.filters import SEGMENTS, Filters
from seer_otel.local.storage import tables

THIN = 30
"""Under this n a figure is marked."""
FEW = 10
"""Under this n a figure has no interval."""
MOST_VALUES = 200
"""Of a metadata key that are read, the most frequent first."""
RATES = frozenset({"flagged", "exact_match"})
"""What is yes or no for each trace, so that its interval is Wilson's."""

EMPTY = Sums()

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over a period, beside that of the period before."""

    metric: str
    sums: Sums = EMPTY
    before: Sums = EMPTY

    @property
    def n(self) -> int:
        """How many values it is made of."""
        return self.sums.n

    @property
    def mean(self) -> float | None:
        """The mean; None where there is no value."""
        return self.sums.mean

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval; None under n = 10."""
        if self.sums.n < FEW:
            return None
        if self.metric in RATES:
            return wilson(round(self.sums.total), self.sums.n)
        interval = mean_interval(self.sums)
        # The values are shares, and so is their mean.
        return interval and Interval(max(interval.low, 0.0), min(interval.high, 1.0))

    @property
    def thin(self) -> bool:
        """Whether there are too few values to say much."""
        return self.sums.n < THIN

    @property
    def change(self) -> float | None:
        """The mean minus that of the period before; None where one of both has no value."""
        if self.sums.mean is None or self.before.mean is None:
            return None
        return self.sums.mean - self.before.mean

    @property
    def clear(self) -> bool:
        """Whether the change is more than chance explains: beyond 1.96 standard errors, with n >= 10 on both sides."""
        change = self.change
        if change is None or min(self.sums.n, self.before.n) < FEW:
            return False
        return abs(change) > 1.96 * math.sqrt(
            sum(side.variance / side.n for side in (self.sums, self.before))
        )


def totals(connection: sa.Connection, filters: Filters) -> dict[str, Sums]:
    """Return the sums of the period, by metric."""
    return {metric: sums for (metric,), sums in _sums(connection, filters).items()}


def by_bucket(
    connection: sa.Connection, filters: Filters, hours: int, metrics: Collection[str]
) -> dict[int, dict[str, Sums]]:
    """Return the sums of `metrics` by bucket, which is the hour since 1970 divided by `hours`, and metric."""
    found: dict[int, dict[str, Sums]] = {}
    for (bucket, metric), sums in _sums(connection, filters, bucket=hours, metrics=metrics).items():
        found.setdefault(bucket, {})[metric] = sums
    return found


def by_segment(connection: sa.Connection, filters: Filters) -> dict[str, dict[str, dict[str, Sums]]]:
    """Return the sums by name of a segment's column, its value and metric."""
    found: dict[str, dict[str, dict[str, Sums]]] = {name: {} for name in SEGMENTS}
    values = {row.id: row for row in connection.execute(sa.select(tables.segments))}
    for (segment, metric), sums in _sums(connection, filters, segment=True).items():
        row = values.get(segment)
        for name in SEGMENTS if row is not None else ():
            of_value = found[name].setdefault(getattr(row, name), {})
            of_value[metric] = of_value.get(metric, EMPTY) + sums
    return found


def by_metadata(connection: sa.Connection, filters: Filters, key: str) -> dict[str, dict[str, Sums]]:
    """Return the sums by the value of a metadata key and metric; it reads the results, so it takes its time."""
    found: dict[str, dict[str, Sums]] = {}
    for (value, metric), sums in _of_results(connection, filters, key=key).items():
        found.setdefault(value, {})[metric] = sums
    return found


def bucket_hours(filters: Filters, most: int) -> int:
    """Return how many hours a trend's bucket has, so that there are at most about `most` of them."""
    hours = filters.end_hour - filters.start_hour
    steps = (1, 2, 3, 6, 12, 24, 48, 168, 336, 720)
    return next((step for step in steps if hours / step <= most), steps[-1])


def latency(
    connection: sa.Connection, filters: Filters, shares: Iterable[float] = (0.5, 0.95)
) -> list[float | None]:
    """Return quantiles of how long judging took, in milliseconds, exact to 5 %."""
    table = tables.latencies
    query = (
        sa.select(table.c.bucket, sa.func.sum(table.c.n))
        .where(
            table.c.hour >= filters.start_hour,
            table.c.hour < filters.end_hour,
            table.c.evaluator_id == (filters.evaluator.id if filters.evaluator else -1),
        )
        .group_by(table.c.bucket)
        .order_by(table.c.bucket)
    )
    rows = [(int(bucket), int(n)) for bucket, n in connection.execute(query)]
    return [_quantile(rows, share) for share in shares]


def _quantile(rows: list[tuple[int, int]], share: float) -> float | None:
    left = share * sum(n for _, n in rows)
    for bucket, n in rows:
        left -= n
        if left <= 0:
            # The middle of a bucket, which begins at 2 ** (bucket / 8).
            return float(2.0 ** ((bucket + 0.5) / 8))
    return None


def _sums(
    connection: sa.Connection,
    filters: Filters,
    *,
    bucket: int = 0,
    segment: bool = False,
    metrics: Collection[str] = (),
) -> dict[Key, Sums]:
    """Return sums by bucket (if not 0), segment (if asked for) and metric (of `metrics`, if any), in this order."""
    if filters.metadata:
        found = _of_results(connection, filters, bucket, segment=segment)
        return {key: sums for key, sums in found.items() if not metrics or key[-1] in metrics}
    table = tables.rollups
    groups: list[sa.ColumnElement[Any]] = [*_groups(table, bucket, segment=segment), table.c.metric]
    query = (
        sa.select(*groups, sa.func.sum(table.c.n), sa.func.sum(table.c.total), sa.func.sum(table.c.squares))
        .where(*filters.where_rollups(table, tables.segments))
        .group_by(*groups)
    )
    if metrics:
        query = query.where(table.c.metric.in_(metrics))
    return {tuple(row[:-3]): Sums(*row[-3:]) for row in connection.execute(query)}


def _of_results(
    connection: sa.Connection,
    filters: Filters,
    bucket: int = 0,
    *,
    segment: bool = False,
    key: str | None = None,
) -> dict[Key, Sums]:
    """Return the same from the results themselves; or, with `key`, by its values and metric."""
    table, metadata = tables.results, tables.metadata
    groups = _groups(table, bucket, segment=segment)
    source: sa.FromClause = table
    if key is not None:
        groups.append(metadata.c.value)
        source = table.join(metadata, (metadata.c.trace_id == table.c.trace_id) & (metadata.c.key == key))
    counts = table.c.left_out.is_(None)
    columns: list[sa.ColumnElement[Any]] = []
    for name in tables.METRICS:
        value = sa.case((counts, table.c[name]))
        columns += [sa.func.count(value), sa.func.sum(value), sa.func.sum(value * value)]
    flags: dict[str, sa.ColumnElement[bool]] = {
        "traces": sa.true(),
        "empty": table.c.passages == 0,
        "left_out": table.c.left_out.is_not(None) & (table.c.left_out != "failed"),
        "failed": sa.func.coalesce(table.c.left_out, "") == "failed",
        "flagged": counts & (table.c.recall < 1),
    }
    columns += [sa.func.sum(sa.case((flag, 1), else_=0)) for flag in flags.values()]
    where = filters.where(table, tables.segments, metadata)
    query = sa.select(*groups, *columns).select_from(source).where(*where).group_by(*groups)
    if key is not None:
        query = query.order_by(sa.func.count().desc()).limit(MOST_VALUES)
    found: dict[Key, Sums] = {}
    for row in connection.execute(query):
        group, values = tuple(row[: len(groups)]), row[len(groups) :]
        for at, name in enumerate(tables.METRICS):
            found.setdefault((*group, name), Sums(*(value or 0 for value in values[3 * at : 3 * at + 3])))
        of_recall = values[3 * tables.METRICS.index("recall")]
        for name, count in zip(flags, values[3 * len(tables.METRICS) :], strict=True):
            total = count or 0  # a sum of no rows is NULL
            n = of_recall if name == "flagged" else total
            found.setdefault((*group, name), Sums(n, float(total), float(total)))
    return {key: sums for key, sums in found.items() if sums.n}


def _groups(table: sa.Table, bucket: int, *, segment: bool) -> list[sa.ColumnElement[Any]]:
    columns: list[sa.ColumnElement[Any]] = []
    if bucket:
        columns.append(table.c.hour // bucket)
    if segment:
        columns.append(table.c.segment_id)
    return columns
