"""The first view: how retrieval does, whether that changed, where it is worst, and what came in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from seer_otel.evaluation.statistics import Sums
from seer_otel.local.pages import charts, figures, formats
from seer_otel.local.pages.figures import EMPTY, Figure
from seer_otel.local.pages.filters import NONE, Filters, moment_of
from seer_otel.local.pages.ingest import ingest
from seer_otel.local.pages.site import Pages
from seer_otel.local.storage import tables

CARDS = {
    "recall": "Recall",
    "precision": "Precision",
    "f1": "F1",
    "ndcg": "nDCG",
    "flagged": "Recall below 1",
}
LABELLED = {
    "gt_recall": "GT recall",
    "gt_precision": "GT precision",
    "evaluator_precision": "Evaluator precision",
    "evaluator_recall": "Evaluator recall",
    "exact_match": "Exact match",
}
TRENDS = CARDS | {"traces": "Evaluated traces"}
SEGMENTS = {"index": "Index", "env": "Environment", "feature_flag": "Feature flag", "span_name": "Span name"}
MOST_POINTS, FEWER_POINTS = 60, 14
"""Of a trend."""
MOST_ROWS = 12
"""Values of a segment that are shown, the most frequent first."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A figure over time: what uPlot draws, and the drawing for where it does not run."""

    metric: str
    title: str
    data: dict[str, Any]
    svg: str
    top: str


def routes(pages: Pages) -> list[Route]:
    """Return the view's route."""

    def show(request: Request) -> Response:
        filters = pages.filters(request)
        with pages.engine.connect() as connection:
            seen = ingest(connection, filters)
            if not seen.ever:
                address = str(request.base_url).rstrip("/")
                return pages.render(request, "first.html", filters=filters, address=address)
            context = _figures(connection, filters, request.query_params.get("by", ""))
        return pages.render(request, "overview.html", filters=filters, ingest=seen, **context)

    return [Route("/", show)]


def _figures(connection: sa.Connection, filters: Filters, by: str) -> dict[str, Any]:
    before = figures.totals(connection, filters.previous())
    segments = figures.by_segment(connection, filters)
    # The values of any one column are all that there is.
    now = _added(segments["env"].values())
    # Of few traces fewer points, or none would have an interval.
    many = now.get("traces", EMPTY).n >= figures.FEW * MOST_POINTS
    hours = figures.bucket_hours(filters, MOST_POINTS if many else FEWER_POINTS)
    buckets = figures.by_bucket(connection, filters, hours, TRENDS)

    def figure(metric: str) -> Figure:
        return Figure(metric, now.get(metric, EMPTY), before.get(metric, EMPTY))

    return {
        "cards": {title: figure(metric) for metric, title in CARDS.items()},
        "labelled": {title: figure(metric) for metric, title in LABELLED.items() if metric in now},
        "counts": {metric: figure(metric) for metric in tables.COUNTS},
        "latency": figures.latency(connection, filters),
        "trends": [_trend(filters, buckets, hours, metric) for metric in TRENDS],
        "rows": [_row(filters, bucket, hours, buckets[bucket]) for bucket in sorted(buckets)],
        "bucket": formats.period(hours),
        "segments": _segments(connection, filters, segments, by),
        "by": by,
        "kept": {"by": by},
    }


def _added(parts: Iterable[dict[str, Sums]]) -> dict[str, Sums]:
    added: dict[str, Sums] = {}
    for part in parts:
        for metric, sums in part.items():
            added[metric] = added.get(metric, EMPTY) + sums
    return added


def _trend(filters: Filters, buckets: dict[int, dict[str, Sums]], hours: int, metric: str) -> Trend:
    first, last = filters.start_hour // hours, (filters.end_hour - 1) // hours
    counts = metric == "traces"
    data: dict[str, Any] = {"x": [], "mean": [], "low": [], "high": [], "n": []}
    points = []
    for bucket in range(first, last + 1):
        figure = Figure(metric, buckets.get(bucket, {}).get(metric, EMPTY))
        value = float(figure.n) if counts else figure.mean
        interval = None if counts else figure.interval
        data["x"].append(moment_of(bucket * hours).timestamp())
        data["mean"].append(value)
        data["low"].append(None if interval is None else interval.low)
        data["high"].append(None if interval is None else interval.high)
        data["n"].append(figure.n)
        points.append(charts.Point(bucket - first, value, interval))
    known: list[float] = [value for value in data["mean"] if value is not None]
    title = TRENDS[metric]
    if counts:
        top = max(*known, 1.0)
        label = f"{title}: at most {formats.number(top)} in {formats.period(hours)}"
    else:
        top = _top(data["mean"], data["high"])
        label = f"{title}: " + (
            f"from {formats.percent(min(known))} to {formats.percent(max(known))}" if known else "no values"
        )
    svg = charts.trend(points, last - first + 1, label, top=top)
    data |= {"step": hours * 3600, "counts": counts, "top": top}
    return Trend(metric, title, data, svg, formats.number(top) if counts else formats.percent(top, 0))


def _row(filters: Filters, bucket: int, hours: int, sums: dict[str, Sums]) -> dict[str, Any]:
    """Return a bucket as a row of the table that says the same as the drawings."""
    # Not beyond the period, though its first and last bucket may be.
    span = max(bucket * hours, filters.start_hour), min((bucket + 1) * hours, filters.end_hour)
    since, until = (moment_of(hour) for hour in span)
    return {
        "since": since,
        "query": filters.query(since=since, until=until),
        "figures": {metric: Figure(metric, sums.get(metric, EMPTY)) for metric in TRENDS},
    }


def _top(*shares: list[float | None]) -> float:
    """Return where a scale of shares ends: at 100 %, or at a part of it where all are far below."""
    highest = max((share for some in shares for share in some if share is not None), default=1.0)
    return next((end for end in (0.1, 0.25, 0.5) if highest <= end), 1.0)


def _segments(
    connection: sa.Connection, filters: Filters, by_column: dict[str, dict[str, dict[str, Sums]]], by: str
) -> list[dict[str, Any]]:
    """Return one group of rows for each column of the segments that tells traces apart, and for the key `by`."""
    listed = [
        _group(title, values, {value: filters.query(**{name: value or NONE}) for value in values})
        for name, title in SEGMENTS.items()
        if len(values := by_column[name]) > 1
    ]
    if by:
        values = figures.by_metadata(connection, filters, by)
        listed.append(_group(by, values, {value: filters.query(**{f"meta.{by}": value}) for value in values}))
    return listed


def _group(title: str, values: dict[str, dict[str, Sums]], queries: dict[str, str]) -> dict[str, Any]:
    by_size = sorted(values.items(), key=lambda item: -item[1].get("traces", EMPTY).n)
    rows = [
        {
            "value": value or NONE,
            "query": queries[value],
            "n": sums.get("traces", EMPTY).n,
            "figures": {metric: Figure(metric, sums.get(metric, EMPTY)) for metric in CARDS},
        }
        for value, sums in by_size[:MOST_ROWS]
    ]
    return {"title": title, "rows": rows, "more": max(len(by_size) - MOST_ROWS, 0)}
