"""Delivery: the threads that send what waits, and what becomes of each answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..notices import Notices
from ..reasons import DropReason
from ..stats import Counters
from .attempt import attempt, jitter
from .backlog import Backlog, Item
from .breaker import Breaker
from .outcomes import Outcomes
from .policy import MAX_AGE, Action, Verdict
from .suppression import suppressed_instrumentation
from .transport import CONNECTIONS, Transport

if TYPE_CHECKING:
    from .spool import Spool

SLOW = 0.004
"""Seconds that a request takes on average before a second thread helps: below, threads only fight for the GIL."""
BACKLOG = 8
"""Events due for each thread before another one starts."""
IDLE = 5.0
"""Seconds without work after which a thread ends."""
TENDING = 30.0
"""Seconds between two looks at what other processes have left in the spool."""


class Outbox:
    """Delivers events, each until the backend took it, refused it, or it is too old.

    Threads start when there is something to send that nobody pumps, and end when there is not: one, and up to eight
    only while a backlog meets a slow backend. While the backend is away only one request at a time tries.

    Args:
        transport: where events go.
        counters: where every outcome is counted.
        notices: where a person is told.
        clock: monotonic seconds.
        spool: keeps events on disk until they have an answer.
        spool_max_age: seconds for which an event is retried that is on disk.
        threads: whether threads may be started; else `send_due`, `drain` and `close` send, on the calling thread.
        pumped: whether the caller calls `pump` after it has put events in; else a thread starts at once.
    """

    def __init__(
        self,
        transport: Transport,
        counters: Counters,
        notices: Notices,
        clock: Callable[[], float] = time.monotonic,
        *,
        spool: Spool | None = None,
        spool_max_age: float = MAX_AGE,
        threads: bool = True,
        pumped: bool = False,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._max_age = spool_max_age
        self._may_start = threads
        self._pumped = pumped
        # Reentrant, as a signal handler that shuts down may run in the middle of this, on the same thread.
        self._lock = threading.RLock()
        # Two conditions, as whoever waits for the end must not be woken by every event on the way.
        self._more = threading.Condition(self._lock)
        self._news = threading.Condition(self._lock)
        self._backlog = Backlog(spool, counters, notices)
        self._breaker = Breaker()
        self._outcomes = Outcomes(self._backlog, self._breaker, counters, notices)
        self._in_flight = 0
        self._threads = 0
        self._average = 0.0
        self._next_tending = float("-inf") if spool is not None else float("inf")
        self._closed = False

    def __len__(self) -> int:
        return len(self._backlog)

    def put(self, body: bytes, key: str, is_empty: bool) -> None:
        """Take an event for delivery. Never waits for the backend and never raises; what cannot be taken is counted."""
        if is_empty and self._outcomes.refuses_empty:
            self._outcomes.drop(DropReason.EMPTY_REFUSED)
            return
        row = self._backlog.store(body, key, is_empty)
        with self._lock:
            now = self._clock()
            if row is None and self._closed:
                self._outcomes.drop(DropReason.SHUTDOWN)
            elif row is None and self._outcomes.is_refused(now):
                self._outcomes.drop(DropReason.UNAUTHORIZED)
            elif not self._backlog.add(body, key, is_empty, now, row):
                self._outcomes.drop(DropReason.OUTBOX_FULL)
            elif not self._closed:
                self._more.notify()
                if self._threads or not self._pumped:
                    self._help()

    def tend(self) -> None:
        """Look after the spool from time to time: what processes that are gone have left there, what is too old."""
        now = self._clock()
        if now >= self._next_tending and not self._closed:
            self._next_tending = now if self.recover() else now + TENDING

    def recover(self) -> int:
        """Take over events that processes that are gone have left in the spool; return how many, 0 at the end."""
        with self._lock:
            found = self._backlog.adopt()
            self._backlog.expire()
            self._backlog.refill(self._clock())
            if len(self._backlog):
                self._more.notify()
                self._help()
            return found

    def drain(self, deadline: float) -> int:
        """Wait until all that was accepted before has its answer; return how many have none yet.

        Returns before `deadline` (on the outbox's clock) where waiting is of no use. Where no thread can be started
        (3.12 refuses it while the interpreter shuts down), sends on this one.
        """
        with self._lock:
            mark = self._backlog.mark()
            try:
                while mark.left:
                    now = self._clock()
                    if now >= deadline or (not self._in_flight and self._next_due() > deadline):
                        break
                    if self._threads == 0 and not self._start():
                        self._send_here(deadline)
                        break
                    self._news.wait(min(deadline - now, 1.0))
                return mark.left
            finally:
                self._backlog.release(mark)

    def pump(self, deadline: float) -> bool:
        """Send on this thread what is due, while the backend is fast; return whether there may be more at the deadline.

        Threads do the rest. On a fast backend a thread of its own for sending and the one that makes the events would
        fight for the GIL.
        """
        with self._lock:
            while self._pumped and not self._threads and self._average <= SLOW:
                now = self._clock()
                if self._next_due() > now or not self._breaker.admits(now, self._in_flight):
                    break
                self._deliver(self._backlog.pop())
                if self._clock() >= deadline:
                    return not self._is_last()
            self._help()
            self._is_last()
            return False

    def send_due(self, deadline: float) -> None:
        """Send on this thread what is due now, each event once; wait for nothing but answers."""
        with suppressed_instrumentation(), self._lock:
            while (now := self._clock()) < deadline and self._next_due() <= now:
                if not self._breaker.admits(now, self._in_flight):
                    return
                self._deliver(self._backlog.pop(), deadline)

    def rest(self) -> None:
        """Let go of connections where none is in use; a later event opens new ones."""
        with self._lock:
            if not self._in_flight:
                self._transport.close()

    def close(self, deadline: float) -> None:
        """Deliver what can be delivered until `deadline` and take nothing more; what no disk has is dropped then.

        Whatever waits for its next try has it now, except where the backend asked for a pause or refused the key.
        """
        with self._lock:
            now = self._clock()
            self._breaker.try_now(now)
            self._backlog.hurry(now)
            self._more.notify_all()
        self.drain(deadline)
        with self._lock:
            self._closed = True
            self._outcomes.give_up(DropReason.SHUTDOWN)
            self._more.notify_all()
            self._news.notify_all()
            self._is_last()

    def _is_last(self) -> bool:
        """Whether this is closed and nothing is on its way any more; then lets go of connections and files."""
        if not self._closed or self._in_flight:
            return False
        self._transport.close()
        self._backlog.close()
        return True

    def _next_due(self) -> float:
        """When there is something to send next; infinity where nothing waits."""
        if not self._backlog.waiting:
            self._backlog.refill(self._clock())
        if not self._backlog.waiting:
            return float("inf")
        return max(self._backlog.next_due, self._breaker.opens_until)

    def _help(self) -> None:
        """Start a thread: the first one, or another where a backlog meets a slow backend."""
        backlog = self._backlog.waiting
        helpful = self._average > SLOW and backlog > BACKLOG * self._threads and not self._breaker.is_open
        if backlog and (self._threads == 0 or (helpful and self._threads < CONNECTIONS)):
            self._start()

    def _start(self) -> bool:
        if not self._may_start:
            return False
        thread = threading.Thread(target=self._work, name="seer-otel-send", daemon=True)
        self._threads += 1
        try:
            thread.start()
        except RuntimeError:  # no thread can start while the interpreter shuts down
            self._threads -= 1
            return False
        return True

    def _work(self) -> None:
        with suppressed_instrumentation(), self._lock:
            try:
                while (item := self._next(self._clock() + IDLE)) is not None:
                    self._deliver(item)
            finally:
                self._threads -= 1
                self._news.notify_all()  # whoever waits may have to send what is left
            self._is_last()

    def _send_here(self, deadline: float) -> None:
        with suppressed_instrumentation():
            while len(self._backlog) and (item := self._next(deadline)) is not None:
                self._deliver(item, deadline)

    def _next(self, until: float) -> Item | None:
        """Wait for an item that is due; None when there is nothing to do until then, or ever."""
        while not self._closed:
            now, due = self._clock(), self._next_due()
            if due <= now and self._breaker.admits(now, self._in_flight):
                return self._backlog.pop()
            if due < float("inf"):
                if self._threads > 1:
                    return None  # one is enough to wait
                # While another one tries, its answer decides.
                due = due if due > now else until
                until = max(until, due + IDLE) if self._threads else until
            if now >= until:
                return None
            self._more.wait(min(due, until) - now)
        return None

    def _deliver(self, item: Item, deadline: float | None = None) -> None:
        """Send one item and do with it what the answer demands. Holds the lock but while sending."""
        self._in_flight += 1
        began = self._clock()
        item = replace(item, attempts=item.attempts + 1)
        max_age = self._max_age if self._backlog.is_on_disk(item) else MAX_AGE
        self._lock.release()
        try:
            timeout = None if deadline is None else deadline - began
            verdict, status, error = attempt(self._transport, item, timeout, began - item.born, max_age)
            if verdict.reason is DropReason.UNAUTHORIZED and self._backlog.is_on_disk(item):
                # The breaker holds it until the key is right.
                verdict = Verdict(Action.RETRY, health=verdict.health)
            if verdict.action in (Action.DONE, Action.GIVE_UP):
                self._backlog.forget(item)
        finally:
            self._lock.acquire()
            self._in_flight -= 1
        now = self._clock()
        self._average += 0.2 * (now - began - self._average)
        news = self._breaker.note(verdict.health, now, verdict.delay, jitter())
        if news:
            self._outcomes.switched(status, error, now)
        if self._outcomes.apply(item, verdict, status, now, closed=self._closed) or news:
            self._more.notify_all()
            self._news.notify_all()
        self._help()
