"""What becomes of events: each is sent, waits for its next try, or is dropped for a reason, and is counted as that."""

from __future__ import annotations

from dataclasses import replace

from ..event import shrink
from ..notices import Notices
from ..reasons import DropReason
from ..stats import Counters
from .backlog import Backlog, Item
from .breaker import Breaker, Health
from .policy import Action, Verdict


class Outcomes:
    """Does with events what their answers demand. Guarded by the outbox's lock.

    Args:
        backlog: what waits.
        breaker: whether the backend may be asked.
        counters: where every outcome is counted.
        notices: where a person is told.

    Attributes:
        refuses_empty: whether the backend has refused an event with an empty context.
    """

    def __init__(self, backlog: Backlog, breaker: Breaker, counters: Counters, notices: Notices) -> None:
        self._backlog = backlog
        self._breaker = breaker
        self._counters = counters
        self._notices = notices
        self.refuses_empty = False

    def drop(self, reason: DropReason, status: int | None = None, count: int = 1) -> None:
        """Count events that will not be sent, and say why."""
        self._counters.drop(reason, count)
        self._notices.dropped(reason, status, count)

    def give_up(self, reason: DropReason) -> None:
        """Drop what waits and is not on disk."""
        lost = self._backlog.take_unsaved()
        for item in lost:
            self._backlog.settle(item)
        if lost:
            self.drop(reason, count=len(lost))

    def is_refused(self, now: float) -> bool:
        """Return whether the backend refused the key, and it is not time yet to ask again."""
        return self._breaker.health is Health.REFUSING and now < self._breaker.opens_until

    def apply(self, item: Item, verdict: Verdict, status: int | None, now: float, *, closed: bool) -> bool:
        """Do with an event what its answer demands; return whether that matters to who waits for others.

        Args:
            item: the event, which was on its way.
            verdict: what the answer means.
            status: the answer's; None where none came.
            now: seconds of the outbox's clock.
            closed: whether nothing is sent any more.
        """
        on_disk = self._backlog.is_on_disk(item)
        if verdict.action is Action.DONE:
            # First: what is spooled is a part of what is held, at any moment.
            completes = self._backlog.settle(item)
            self._counters.add("sent")
            return completes
        if verdict.action is Action.GIVE_UP:
            reason = verdict.reason or DropReason.REJECTED
            if reason is DropReason.REJECTED and item.is_empty and status in (400, 422):
                self.refuses_empty = True
                reason = DropReason.EMPTY_REFUSED
            completes = self._backlog.settle(item)
            self.drop(reason, status)
            return completes
        if closed:
            if not on_disk:
                self.drop(DropReason.SHUTDOWN)
                return self._backlog.settle(item)
            return True
        if verdict.action is Action.SHRINK:
            self._backlog.put_back(replace(item, body=shrink(item.body), shrunk=True), now)
            return False
        self._counters.add("retries")
        self._backlog.put_back(item, now + verdict.delay)
        return True

    def switched(self, status: int | None, error: str, now: float) -> None:
        """Say that the breaker has opened or closed, and do what follows from it."""
        if self._breaker.is_open:
            self._notices.away(status, error)
            if self._breaker.health is Health.REFUSING:
                self.give_up(DropReason.UNAUTHORIZED)
        else:
            self._notices.back()
            self._backlog.hurry(now)
