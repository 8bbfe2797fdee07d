"""One trace as it is stored: its retrievals in order, and what an evaluator says about each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from seer_otel.local.pages.reading import labelled
from seer_otel.local.schema import LoggedEvent, parse
from seer_otel.local.storage import tables
from seer_otel.local.storage.tables import State

MAX_HOPS = 100
"""Retrievals of one trace that are shown; an agent that loops may make more."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that a query asks for; `citations` are positions of passages, from 0."""

    text: str
    present: bool
    citations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """What an evaluator says about one retrieval and one query; see `tables.judgements`."""

    recall: float | None
    precision: float | None
    f1: float | None
    ndcg: float | None
    sufficiency: float | None
    milliseconds: float
    error: str | None
    cited: frozenset[int]
    requirements: tuple[Requirement, ...]


@dataclass(frozen=True, slots=True)
class Hop:
    """One retrieval.

    Attributes:
        number: its place in the trace, from 1, by time.
        judged: by target, `task` and `subquery`; empty where it was not evaluated.
        is_final: whether the trace's figures are this one's.
    """

    number: int
    record_id: str
    received_at: str
    created_at: str
    state: State
    event: LoggedEvent
    is_final: bool
    judged: Mapping[str, Judged] = field(default_factory=dict)

    @property
    def of_task(self) -> Judged | None:
        """What was said of the question, if it was evaluated."""
        return self.judged.get("task")

    @property
    def of_subquery(self) -> Judged | None:
        """What was said of what the hop asked itself."""
        return self.judged.get("subquery")


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of a trace that stand in its row of `results`."""

    left_out: str | None
    labels: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace and its retrievals, at most `MAX_HOPS` of `size`.

    Attributes:
        marked: how many of them are marked as the final context.
        evaluators: the ids of all evaluators whose figures are there.
    """

    name: str
    task: str
    kept: bool
    sampled_by: str
    sample_rate: float
    started_at: str
    ended_at: str
    size: int
    hops: Sequence[Hop]
    marked: int
    result: Result | None
    evaluators: Sequence[int]

    @property
    def has_id(self) -> bool:
        """Whether it has a trace id of its own, and not the id of its only record."""
        return not self.name.startswith("rec_")

    @property
    def final(self) -> Hop | None:
        """The final context."""
        return next((hop for hop in self.hops if hop.is_final), None)


LABELS = (*labelled.RETRIEVAL, *labelled.EVALUATOR)


def read(connection: sa.Connection, name: str, evaluator_id: int | None) -> Trace | None:
    """Return the trace of that name as the evaluator sees it, or None where there is none."""
    table = tables.traces
    row = connection.execute(sa.select(table).where(table.c.name == name)).one_or_none()
    if row is None:
        return None
    rows = _events(connection, row.id, row.final_event_id)
    judged = _judgements(connection, [event.id for event in rows], evaluator_id)
    # Until something judged it, the trace may not know; Seer's rule is the latest mark, else the last by time.
    marked = [event.id for event in rows if event.is_final_context]
    final_id = row.final_event_id or (marked or [event.id for event in rows] or [None])[-1]
    hops = [
        Hop(
            number,
            event.record_id,
            event.received_at,
            event.created_at,
            State(event.state),
            parse(event.body.encode()),
            event.id == final_id,
            judged.get(event.id, {}),
        )
        for number, event in enumerate(rows, 1)
    ]
    results = tables.results
    query = sa.select(results).where(results.c.trace_id == row.id).order_by(results.c.evaluator_id.desc())
    figures = {one["evaluator_id"]: one for one in connection.execute(query).mappings()}
    return Trace(
        row.name,
        row.task,
        row.kept,
        row.sampled_by,
        row.sample_rate,
        row.started_at,
        row.ended_at,
        row.size,
        hops,
        len(marked),
        _result(figures.get(evaluator_id)),
        list(figures),
    )


def _events(connection: sa.Connection, trace_id: int, final_id: int | None) -> list[sa.Row[Any]]:
    table = tables.events
    query = sa.select(table).where(table.c.trace_id == trace_id).order_by(table.c.created_at, table.c.id)
    rows = list(connection.execute(query.limit(MAX_HOPS)))
    if final_id is not None and all(row.id != final_id for row in rows):
        # Of too many, the one that counts is shown in the last one's place.
        final = connection.execute(sa.select(table).where(table.c.id == final_id)).all()
        rows[len(rows) - len(final) :] = final
    return rows


def _judgements(
    connection: sa.Connection, event_ids: Sequence[int], evaluator_id: int | None
) -> dict[int, dict[str, Judged]]:
    table = tables.judgements
    query = sa.select(table).where(table.c.event_id.in_(event_ids), table.c.evaluator_id == evaluator_id)
    found: dict[int, dict[str, Judged]] = {}
    for row in connection.execute(query):
        requirements = tuple(
            Requirement(one["text"], one["present"], tuple(one["citations"])) for one in row.requirements
        )
        found.setdefault(row.event_id, {})[row.target] = Judged(
            row.recall,
            row.precision,
            row.f1,
            row.ndcg,
            row.sufficiency,
            row.milliseconds,
            row.error,
            frozenset(row.cited),
            requirements,
        )
    return found


def _result(row: sa.RowMapping | None) -> Result | None:
    return None if row is None else Result(row["left_out"], {name: row[name] for name in LABELS})
