"""What the filter bar offers: the values that there are. Read only when a template asks."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from seer_otel.local.pages.filters import NONE, RANGES, Evaluator, Filters
from seer_otel.local.storage import tables

LIMIT = 100
"""Of values in one list."""


def evaluators(connection: sa.Connection) -> list[Evaluator]:
    """Return all evaluators; first the default: the one that judged last, by the hour of what it judged."""
    table, rollups = tables.evaluators, tables.rollups
    last = (
        sa.select(rollups.c.evaluator_id)
        .order_by(rollups.c.hour.desc(), rollups.c.evaluator_id.desc())
        .limit(1)
    )
    latest = connection.execute(last).scalar()
    query = sa.select(table.c.id, table.c.name, table.c.version, table.c.accuracy).order_by(table.c.id.desc())
    rows = [Evaluator(*row) for row in connection.execute(query)]
    return sorted(rows, key=lambda row: row.id != latest)


class Choices:
    """The lists of the filter bar."""

    def __init__(self, engine: sa.Engine, filters: Filters | None) -> None:
        self._engine = engine
        self._filters = filters

    def ranges(self) -> list[str]:
        """Return the names of the ranges."""
        return list(RANGES)

    def evaluators(self) -> Sequence[Evaluator]:
        """Return all evaluators."""
        with self._engine.connect() as connection:
            return evaluators(connection)

    def values(self, name: str) -> list[str]:
        """Return the values of a segment as they stand in the URL, the chosen one among them."""
        column = tables.segments.c[name]
        with self._engine.connect() as connection:
            found = connection.execute(sa.select(column).distinct().order_by(column).limit(LIMIT)).scalars()
            values = [value or NONE for value in found]
        chosen = getattr(self._filters, name, None)
        if chosen is not None and (chosen or NONE) not in values:
            values.append(chosen or NONE)
        # Nothing to choose where no event says anything.
        return values if values != [NONE] or chosen is not None else []

    def metadata_keys(self) -> list[str]:
        """Return the metadata keys that there are, in order."""
        table = tables.metadata
        with self._engine.connect() as connection:
            # One step in the index for each key; DISTINCT would read all of it.
            keys: list[str] = []
            while len(keys) < LIMIT:
                query = sa.select(sa.func.min(table.c.key))
                if keys:
                    query = query.where(table.c.key > keys[-1])
                key = connection.execute(query).scalar()
                if key is None:
                    break
                keys.append(key)
        return keys
