"""The traces of two variants of an application, for a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa

from seer_otel.local.pages.filters import Filters
from seer_otel.local.storage import tables

METRICS = ("recall", "f1", "precision", "ndcg", "gt_recall", "gt_f1", "gt_precision")
"""What is compared; the first is the primary one."""
MAX_TRACES = 3_000
"""Traces of one variant that are compared, the newest."""
MAX_VARIANTS = 50


@dataclass(frozen=True, slots=True)
class Variant:
    """A value of `feature_flag` that was seen in the period.

    Attributes:
        traces: how many results it has; whatever the metadata filter.
        first_hour: when the first of them was, in hours since 1970.
    """

    name: str
    traces: int
    first_hour: int


@dataclass(frozen=True, slots=True)
class Unit:
    """One trace of a variant, by its final context; `values` holds each of METRICS that is available."""

    name: str
    task: str
    index: str
    span_name: str
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Side:
    """One variant's traces, newest first.

    Attributes:
        left_out: further traces, which are in no average.
        cut: whether there are more than `MAX_TRACES`.
    """

    units: Sequence[Unit]
    left_out: int = 0
    cut: bool = False


def variants(connection: sa.Connection, filters: Filters) -> list[Variant]:
    """Return the variants of the period, that which was there first, first; those of equal age by name."""
    rollups, segments = tables.rollups, tables.segments
    first = sa.func.min(rollups.c.hour)
    query = (
        sa.select(segments.c.feature_flag, sa.func.sum(rollups.c.n), first)
        .join(segments, segments.c.id == rollups.c.segment_id)
        .where(*_any_variant(filters).where_rollups(rollups, segments), rollups.c.metric == "traces")
        .group_by(segments.c.feature_flag)
        .order_by(first, segments.c.feature_flag)
        .limit(MAX_VARIANTS)
    )
    return [Variant(name, int(n), hour) for name, n, hour in connection.execute(query)]


def side(connection: sa.Connection, filters: Filters, variant: str) -> Side:
    """Return the traces of `variant`, whatever variant `filters` names."""
    results, traces, segments = tables.results, tables.traces, tables.segments
    chosen = replace(filters, feature_flag=variant)
    query = (
        sa.select(
            results.c.left_out,
            traces.c.name,
            traces.c.task,
            segments.c.index,
            segments.c.span_name,
            *(results.c[name] for name in METRICS),
        )
        .join(traces, traces.c.id == results.c.trace_id)
        .join(segments, segments.c.id == results.c.segment_id)
        .where(*chosen.where(results, segments, tables.metadata))
        .order_by(results.c.created_at.desc(), results.c.trace_id.desc())
        .limit(MAX_TRACES + 1)
    )
    rows = connection.execute(query).all()
    units = [
        Unit(
            row.name,
            row.task,
            row[3],
            row.span_name,
            {name: value for name, value in zip(METRICS, row[5:], strict=True) if value is not None},
        )
        for row in rows[:MAX_TRACES]
        if row.left_out is None
    ]
    return Side(units, min(len(rows), MAX_TRACES) - len(units), len(rows) > MAX_TRACES)


def _any_variant(filters: Filters) -> Filters:
    return replace(filters, feature_flag=None)
