"""How many requests came in each hour, and what they were answered."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

import sqlalchemy as sa

from seer_otel.local import times
from seer_otel.local.storage.database import add_to
from seer_otel.local.storage.tables import arrivals

ACCEPTED, DUPLICATE = "accepted", "duplicate"
MAX_WAITING = 100_000
"""Refused requests that are kept until they are counted, beyond which the oldest are forgotten."""


def count(connection: sa.Connection, outcomes: Iterable[tuple[str, str]]) -> None:
    """Count requests, each given by its outcome and when it came."""
    counts: Counter[tuple[str, str]] = Counter()
    last: dict[tuple[str, str], str] = {}
    for outcome, at in outcomes:
        key = outcome, at[:13]  # up to the hour
        counts[key] += 1
        last[key] = max(at, last.get(key, at))
    rows = [
        {"hour": times.hour(last[key]), "outcome": key[0], "n": n, "last_at": last[key]}
        for key, n in counts.items()
    ]
    add_to(connection, arrivals, rows, sums=["n"])


class Refusals:
    """Keeps what was refused until it is counted along with something else; for any number of threads."""

    def __init__(self) -> None:
        self._outcomes: deque[tuple[str, str]] = deque(maxlen=MAX_WAITING)

    def __bool__(self) -> bool:
        return bool(self._outcomes)

    def note(self, code: str) -> None:
        """Keep one request that was answered with this error."""
        self._outcomes.append((code, times.now()))

    def write(self, connection: sa.Connection) -> None:
        """Count what was kept."""
        outcomes = [self._outcomes.popleft() for _ in range(len(self._outcomes))]
        count(connection, outcomes)
