"""What a spool gives back, and what it raises."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stored:
    """One event on disk.

    Attributes:
        row: its place in this spool; in order of age.
        body: strict JSON.
        key: the idempotency key.
        is_empty: whether its context is empty, which a backend may refuse.
        born: when it was first put on disk, in Unix seconds.
    """

    row: int
    body: bytes
    key: str
    is_empty: bool
    born: float


class SpoolError(Exception):
    """The spool cannot be used now; a later call tries again. The text says what failed and where, and no content."""


class SpoolFull(SpoolError):  # noqa: N818 - it is no fault
    """The spool has as many bytes as it may."""


class SpoolLost(SpoolError):  # noqa: N818 - says what became of the events
    """The own events on disk cannot be read any more; the next call begins a new file."""
