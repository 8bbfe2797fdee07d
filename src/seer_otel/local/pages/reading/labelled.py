"""Traces with labels: how well they retrieved, and how well the evaluator cited."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from seer_otel.evaluation.statistics import Interval, Sums
from seer_otel.local.pages import figures
from seer_otel.local.pages.figures import EMPTY, FEW, Figure
from seer_otel.local.pages.filters import Filters
from seer_otel.local.storage import tables

RETRIEVAL = ("gt_recall", "gt_precision", "gt_f1")
EVALUATOR = ("evaluator_precision", "evaluator_recall", "evaluator_f1", "exact_match")
ESTIMATED = {"recall": "gt_recall", "precision": "gt_precision", "f1": "gt_f1"}
"""What is estimated without labels, and what labels say instead."""
DATASET = "dataset"
"""The metadata key that names the set a labelled trace belongs to; the seeds' replay script sets it."""

_results = tables.results


@dataclass(frozen=True, slots=True)
class Labelled:
    """The figures of the labelled traces of one dataset, or of all.

    Attributes:
        dataset: "" where the traces name none; None for all together.
        traces: how many have labels and were evaluated; `left_out`, how many of them are in no average.
        figures: by name, those of RETRIEVAL and EVALUATOR.
    """

    dataset: str | None
    traces: int
    left_out: int
    figures: dict[str, Figure]

    @property
    def reading(self) -> str:
        """How far to trust: `few` (under 10 labels), `high` (over .9), `moderate`, or `low` (under .7), by the F1."""
        figure = self.figures["evaluator_f1"]
        if figure.n < FEW or figure.mean is None:
            return "few"
        return reading(figure.mean)

    @property
    def unsure(self) -> bool:
        """Whether the interval reaches into another reading."""
        interval = self.figures["evaluator_f1"].interval
        return interval is not None and reading(interval.low) != reading(interval.high)


def reading(share: float) -> str:
    """Return how far to trust an evaluator of this accuracy; the limits are those of the seeds' guide."""
    return "high" if share > 0.9 else "low" if share < 0.7 else "moderate"


@dataclass(frozen=True, slots=True)
class Corrected:
    """A mean that was estimated without labels, corrected by what labels say of the error.

    Attributes:
        estimate: the mean without labels, over the `n` traces that have none.
        error: the mean of label minus estimate, over the `labelled` traces.
        interval: of the corrected mean, 95 %.
    """

    metric: str
    estimate: float
    error: float
    interval: Interval
    n: int
    labelled: int

    @property
    def mean(self) -> float:
        """The corrected mean."""
        return self.estimate + self.error


def corrected(metric: str, without: Sums, errors: Sums) -> Corrected | None:
    """Correct a mean by prediction-powered inference; None under 10 traces with or without labels.

    The variance is that of both parts; see Angelopoulos et al., "Prediction-powered inference" (2023). It holds where
    the labelled traces are like the others.
    """
    if without.n < FEW or errors.n < FEW:
        return None
    estimate, error = without.total / without.n, errors.total / errors.n
    half = 1.96 * math.sqrt(_squared_error(without) + _squared_error(errors))
    middle = estimate + error
    interval = Interval(max(0.0, middle - half), min(1.0, middle + half))
    return Corrected(metric, estimate, error, interval, without.n, errors.n)


def _squared_error(sums: Sums) -> float:
    return max(0.0, (sums.squares - sums.total**2 / sums.n) / (sums.n - 1)) / sums.n


def by_dataset(connection: sa.Connection, filters: Filters) -> list[Labelled]:
    """Return the figures of each dataset, the largest first."""
    names = (*RETRIEVAL, *EVALUATOR)
    dataset = dataset_names()
    counted = _results.c.left_out.is_(None)
    columns: list[sa.ColumnElement[Any]] = [sa.func.count(), sa.func.count(sa.case((counted, 1)))]
    for name in names:
        columns += _sums(sa.case((counted, _results.c[name])))
    value = sa.func.coalesce(dataset.c.value, "")
    query = (
        sa.select(value, *columns)
        .select_from(_results.outerjoin(dataset, dataset.c.trace_id == _results.c.trace_id))
        .where(*labelled(filters))
        .group_by(value)
    )
    found = []
    for name, traces, counts, *sums in connection.execute(query):
        of = {each: Figure(each, _read(sums, at)) for at, each in enumerate(names)}
        found.append(Labelled(name, traces, traces - counts, of))
    return sorted(found, key=lambda one: (-one.traces, one.dataset or ""))


def together(parts: Sequence[Labelled]) -> Labelled:
    """Return the figures of all datasets."""
    return Labelled(
        None,
        sum(part.traces for part in parts),
        sum(part.left_out for part in parts),
        {
            name: Figure(name, sum((part.figures[name].sums for part in parts), EMPTY))
            for name in (*RETRIEVAL, *EVALUATOR)
        },
    )


def corrections(connection: sa.Connection, filters: Filters) -> list[Corrected]:
    """Return the means without labels of what `filters` choose, corrected; none where there is too little."""
    everything = figures.totals(connection, filters)
    columns: list[sa.ColumnElement[Any]] = []
    for estimate, label in ESTIMATED.items():
        columns += _sums(_results.c[estimate])
        columns += _sums(_results.c[label] - _results.c[estimate])
    query = sa.select(*columns).where(*labelled(filters), _results.c.left_out.is_(None))
    row = list(connection.execute(query).one())
    found = []
    for at, metric in enumerate(ESTIMATED):
        of_all, of_labelled = everything.get(metric, EMPTY), _read(row, 2 * at)
        without = Sums(
            of_all.n - of_labelled.n,
            of_all.total - of_labelled.total,
            of_all.squares - of_labelled.squares,
        )
        one = corrected(metric, without, _read(row, 2 * at + 1))
        if one is not None:
            found.append(one)
    return found


def _sums(value: sa.ColumnElement[Any]) -> list[sa.ColumnElement[Any]]:
    return [sa.func.count(value), sa.func.sum(value), sa.func.sum(value * value)]


def _read(values: Sequence[float | None], at: int) -> Sums:
    n, total, squares = values[3 * at : 3 * at + 3]
    return Sums(int(n or 0), total or 0.0, squares or 0.0)


def labelled(filters: Filters) -> list[sa.ColumnElement[bool]]:
    """Return the conditions on `results` that choose what has labels and was evaluated."""
    # In these words, so that the index of the labelled ones is used.
    return [*filters.where(_results, tables.segments, tables.metadata), _results.c.exact_match.is_not(None)]


def dataset_names() -> sa.Subquery:
    """Return the dataset of each trace that names one, as `trace_id` and `value`."""
    table = tables.metadata
    return sa.select(table.c.trace_id, table.c.value).where(table.c.key == DATASET).subquery("dataset")
