"""Results as a list: filtered, searched, sorted, by the page. Reads only."""

from __future__ import annotations

import re
from typing import Any

import sqlalchemy as sa

from seer_otel.local.pages.filters import Filters
from seer_otel.local.storage import search, tables

PAGE = 50
MAX_PAGE = 200
MAX_COUNT = PAGE * MAX_PAGE
MAX_WORDS = 20

_results = tables.results.c

# Sufficiency comes before recall: of the embedded evaluator's figures it is the one that tells good from bad best.
_WORST: tuple[sa.ColumnElement[Any], ...] = (
    sa.func.coalesce(_results.sufficiency, _results.recall).asc().nulls_last(),
    _results.recall.asc(),
    _results.f1.asc(),
)
SORTS: dict[str, sa.ColumnElement[Any]] = {
    "when": _results.created_at,
    "requirements": _results.requirements,
    "passages": _results.passages,
    "recall": _results.recall,
    "precision": _results.precision,
    "f1": _results.f1,
    "sufficiency": _results.sufficiency,
    "gt_recall": _results.gt_recall,
}
"""What a URL's `sort` may name, `-` before it for descending. Without it, the worst come first."""

FLAGS: dict[str, tuple[str, sa.ColumnElement[bool]]] = {
    "missing": ("Recall below 1", _results.recall < 1),
    "empty": ("Empty context", _results.passages == 0),
    "incomplete": ("Cut or partial", _results.left_out.is_not(None) & (_results.left_out != "failed")),
    "failed": ("Not evaluated", _results.left_out == "failed"),
    "labelled": ("Labelled", _results.gt_recall.is_not(None)),
}
"""What a URL's `flag` may name: its title, and which results bear it."""

# FTS5 gives a table a hidden column of its own name, which a search compares with.
_search = sa.table(search.TABLE, sa.column("rowid", sa.Integer), sa.column(search.TABLE, sa.Text))


def found(text: str) -> sa.ColumnElement[bool] | None:
    """Return the condition that a result's question holds all words of `text`, the last one as a beginning.

    None where it has no words. This is the one place that knows of SQLite's full-text search.
    """
    words = re.findall(r"\w+", text)[:MAX_WORDS]
    if not words:
        return None
    # Quoted, so that no word is an operator.
    match = " ".join(f'"{word}"' for word in words) + "*"
    return _results.trace_id.in_(sa.select(_search.c.rowid).where(_search.c[search.TABLE].op("MATCH")(match)))


def order(sort: str) -> list[sa.ColumnElement[Any]]:
    """Return what to sort by for a URL's `sort`; the worst first where it names nothing that there is."""
    column = SORTS.get(sort.removeprefix("-"))
    if column is None:
        return [*_WORST, _results.created_at.desc(), _results.trace_id]
    by = column.desc() if sort.startswith("-") else column.asc()
    return [by.nulls_last(), _results.created_at.desc(), _results.trace_id]


def page(
    connection: sa.Connection,
    filters: Filters,
    *,
    text: str = "",
    flag: str = "",
    sort: str = "",
    number: int = 1,
) -> tuple[list[sa.Row[Any]], int]:
    """Return a page of results with their traces, and how many there are, counted up to MAX_COUNT + 1."""
    where = filters.where(tables.results, tables.segments, tables.metadata)
    if flag in FLAGS:
        where.append(FLAGS[flag][1])
    matching = found(text)
    if matching is not None:
        where.append(matching)
    elif text.strip():
        where.append(sa.false())
    key = (_results.trace_id, _results.evaluator_id)
    counted = sa.select(_results.trace_id).where(*where).limit(MAX_COUNT + 1).subquery()
    total = int(connection.execute(sa.select(sa.func.count()).select_from(counted)).scalar_one())
    # The fifty first, and only then what is shown of them.
    chosen = (
        sa.select(*key)
        .where(*where)
        .order_by(*order(sort))
        .limit(PAGE)
        .offset((number - 1) * PAGE)
        .subquery()
    )
    query = (
        sa.select(tables.results, tables.traces.c.name, tables.traces.c.task, tables.traces.c.size)
        .join(chosen, sa.and_(*(column == chosen.c[column.name] for column in key)))
        .join(tables.traces, tables.traces.c.id == _results.trace_id)
        .order_by(*order(sort))
    )
    return list(connection.execute(query)), total
