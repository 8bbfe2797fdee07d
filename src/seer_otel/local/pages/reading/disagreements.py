"""Where labels and the evaluator disagree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from seer_otel.local.pages.filters import Filters
from seer_otel.local.pages.reading.labelled import dataset_names, labelled
from seer_otel.local.schema import LoggedPassage, parse
from seer_otel.local.storage import tables

KINDS = ("cited", "gold")
"""Of disagreements: a passage cited though no label names it, and a gold document in context that is not cited."""
PER_PAGE = 25
MAX_EXPORTED = 10_000
"""Traces in one export."""
_CHUNK = 100

_results = tables.results


@dataclass(frozen=True, slots=True)
class Cited:
    """A passage about which the evaluator and the labels disagree; `rank` counts from 1."""

    rank: int
    id: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A labelled trace in whose final context the evaluator did not cite exactly the gold documents.

    Attributes:
        cited: passages cited though no label names them, one a document.
        gold: gold documents in context of which no passage is cited, one passage each.
    """

    trace: str
    task: str
    dataset: str
    created_at: str
    left_out: str | None
    precision: float | None
    recall: float | None
    cited: tuple[Cited, ...]
    gold: tuple[Cited, ...]


def disagree(
    passages: Sequence[LoggedPassage], gold: Sequence[str], cited: Sequence[int]
) -> tuple[tuple[Cited, ...], tuple[Cited, ...]]:
    """Return what is cited but not gold, and what is gold but not cited."""
    named, chosen = set(gold), set(cited)
    of_cited = {passages[position].id for position in chosen if position < len(passages)}
    too_many: dict[str, Cited] = {}
    too_few: dict[str, Cited] = {}
    for position, passage in enumerate(passages):
        one = Cited(position + 1, passage.id, passage.text)
        if position in chosen and passage.id not in named:
            # A passage without an id is a document of its own.
            too_many.setdefault(passage.id or f"\0{position}", one)
        elif passage.id is not None and passage.id in named - of_cited:
            too_few.setdefault(passage.id, one)
    return tuple(too_many.values()), tuple(too_few.values())


def count(connection: sa.Connection, filters: Filters, kind: str = "") -> int:
    """Return how many traces disagree."""
    query = sa.select(sa.func.count()).select_from(_results).where(*_disagreeing(filters, kind))
    return connection.execute(query).scalar() or 0


def find(
    connection: sa.Connection, filters: Filters, kind: str = "", *, limit: int = PER_PAGE, offset: int = 0
) -> Iterator[Disagreement]:
    """Yield traces that disagree, the worst first, of one of `KINDS` or of both."""
    traces, dataset = tables.traces, dataset_names()
    worst = sa.func.coalesce(_results.c.evaluator_f1, _results.c.evaluator_precision, 0)
    query = (
        sa.select(
            _results.c.event_id,
            _results.c.evaluator_id,
            traces.c.name,
            traces.c.task,
            sa.func.coalesce(dataset.c.value, "").label("dataset"),
            _results.c.created_at,
            _results.c.left_out,
            _results.c.evaluator_precision,
            _results.c.evaluator_recall,
        )
        .select_from(
            _results.join(traces, traces.c.id == _results.c.trace_id).outerjoin(
                dataset, dataset.c.trace_id == _results.c.trace_id
            )
        )
        .where(*_disagreeing(filters, kind))
        .order_by(worst, _results.c.created_at.desc(), _results.c.trace_id.desc())
        .limit(limit)
        .offset(offset)
    )
    rows: Sequence[Any] = connection.execute(query).all()
    for start in range(0, len(rows), _CHUNK):
        yield from _with_passages(connection, rows[start : start + _CHUNK])


def _with_passages(connection: sa.Connection, rows: Sequence[Any]) -> Iterator[Disagreement]:
    events, judgements = tables.events, tables.judgements
    ids = [row.event_id for row in rows]
    query = (
        sa.select(events.c.id, events.c.body, judgements.c.cited)
        .join(judgements, judgements.c.event_id == events.c.id)
        .where(
            events.c.id.in_(ids),
            judgements.c.evaluator_id == (rows[0].evaluator_id if rows else -1),
            judgements.c.target == "task",
        )
    )
    found = {id_: (parse(body.encode()), cited) for id_, body, cited in connection.execute(query)}
    for row in rows:
        if row.event_id not in found:  # deleted in the meantime
            continue
        event, cited = found[row.event_id]
        gold = event.ground_truth.gold_doc_ids if event.ground_truth else []
        yield Disagreement(
            row.name,
            row.task,
            row.dataset,
            row.created_at,
            row.left_out,
            row.evaluator_precision,
            row.evaluator_recall,
            *disagree(event.passages(), gold, cited),
        )


def _disagreeing(filters: Filters, kind: str) -> list[sa.ColumnElement[bool]]:
    of_kind = {"cited": _results.c.evaluator_precision < 1, "gold": _results.c.evaluator_recall < 1}
    return [
        *labelled(filters),
        _results.c.exact_match < 1,
        *([of_kind[kind]] if kind in of_kind else []),
    ]
