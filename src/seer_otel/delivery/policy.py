"""What to do after an answer, or after none. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from enum import Enum, auto

from ..reasons import DropReason
from .breaker import Health
from .transport import Reply

FIRST_DELAY = 1.0
LONGEST_DELAY = 30.0
MAX_AGE = 600.0
"""Seconds for which an event is retried that only memory holds."""
MAX_RETRY_AFTER = 300.0
"""Seconds; a backend that asks for more is asked again after these."""


class Action(Enum):
    """What happens to an event next."""

    DONE = auto()
    RETRY = auto()
    SHRINK = auto()
    GIVE_UP = auto()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What happens to an event next, and what its answer says of the backend.

    Attributes:
        action: what.
        reason: why it is given up.
        delay: seconds until it is sent again.
        health: whether others are better held back too.
    """

    action: Action
    reason: DropReason | None = None
    delay: float = 0.0
    health: Health = Health.WELL


def judge(
    reply: Reply | None,
    attempt: int,
    age: float,
    shrunk: bool,
    jitter: float,
    now: float,
    max_age: float = MAX_AGE,
) -> Verdict:
    """Return what to do.

    Args:
        reply: the answer; None where none came.
        attempt: how often the event has been sent, at least 1.
        age: seconds since it was first to be sent.
        shrunk: whether it has been cut for its size already.
        jitter: a random number from 0 to 1; the whole delay is drawn, or clients come back in step.
        now: Unix seconds, for a `Retry-After` that is a date.
        max_age: seconds for which it is retried.
    """
    status = reply.status if reply is not None else None
    if status is not None and 200 <= status < 300:
        return Verdict(Action.DONE)
    if reply is None or status in (408, 429) or (status is not None and status >= 500):
        # No pause at all, or a date that is over, is no answer to how long: without one of ours we would try in a loop.
        asked = (retry_after(reply.retry_after, now) or None) if reply is not None else None
        delay = (
            jitter * min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(attempt - 1, 10)) if asked is None else asked
        )
        health = Health.BUSY if asked is not None or status == 429 else Health.FAILING
        if age + delay > max_age:
            return Verdict(Action.GIVE_UP, DropReason.EXPIRED, health=health, delay=delay)
        return Verdict(Action.RETRY, delay=delay, health=health)
    if status == 413:
        return Verdict(Action.GIVE_UP, DropReason.TOO_LARGE) if shrunk else Verdict(Action.SHRINK)
    if status in (401, 403):
        return Verdict(Action.GIVE_UP, DropReason.UNAUTHORIZED, health=Health.REFUSING)
    return Verdict(Action.GIVE_UP, DropReason.REJECTED)


def retry_after(header: str | None, now: float) -> float | None:
    """Return the seconds that a `Retry-After` header asks for, as a number or as a date; None if unreadable."""
    if header is None:
        return None
    header = header.strip()
    if header.isascii() and header.isdigit():
        return min(MAX_RETRY_AFTER, float(header[:9]))
    try:
        date = parsedate_to_datetime(header)
        if date.tzinfo is None:
            date = date.replace(tzinfo=timezone.utc)
        wait = (date - datetime.fromtimestamp(now, timezone.utc)).total_seconds()
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return min(MAX_RETRY_AFTER, max(0.0, wait))
