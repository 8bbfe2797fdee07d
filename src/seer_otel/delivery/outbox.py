"""Events on their way to the backend: what waits, what is tried again, and the threads that send."""

from __future__ import annotations

import heapq
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from ..event import shrink
from ..notices import Notices
from ..reasons import DropReason
from ..stats import Counters
from .policy import Action, Verdict, judge
from .suppression import suppressed_instrumentation
from .transport import CONNECTIONS, HttpTransport, Reply, Transport, TransportError

MAX_EVENTS = 10_000
MAX_BYTES = 64 * 1024 * 1024
BLOCKED = 60.0
"""Seconds for which nothing is sent after the backend refused the key; then one event tries again."""
SLOW = 0.004
"""Seconds that a request takes on average before a second thread helps: below, threads only fight for the GIL."""
BACKLOG = 8
"""Events due for each thread before another one starts."""
IDLE = 5.0
"""Seconds without work after which a thread ends."""


@dataclass(frozen=True, slots=True)
class Item:
    """One event as bytes.

    Attributes:
        body: strict JSON.
        key: the idempotency key.
        is_empty: whether its context is empty, which a backend may refuse.
        born: when it was first to be sent, in seconds of the outbox's clock.
        attempts: how often it has been sent.
        shrunk: whether it has been cut for its size.
    """

    body: bytes
    key: str
    is_empty: bool
    born: float
    attempts: int = 0
    shrunk: bool = False


@dataclass(order=True, slots=True)
class _Waiting:
    due: float
    number: int
    item: Item = field(compare=False)


class Outbox:
    """Delivers events, each until the backend took it, refused it, or it is too old.

    Threads start when there is something to send and end when there is not: one, and up to eight only while a
    backlog meets a slow backend.

    Args:
        transport: where events go.
        counters: where every outcome is counted.
        notices: where a person is told.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        transport: Transport,
        counters: Counters,
        notices: Notices,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = transport
        self._counters = counters
        self._notices = notices
        self._clock = clock
        # Reentrant, as a signal handler that shuts down may run in the middle of this, on the same thread.
        self._lock = threading.RLock()
        # Two conditions, as whoever waits for the end must not be woken by every event on the way.
        self._more = threading.Condition(self._lock)
        self._empty = threading.Condition(self._lock)
        self._waiting: list[_Waiting] = []
        self._numbers = 0
        self._bytes = 0
        self._in_flight = 0
        self._threads = 0
        self._average = 0.0
        self._paused_until = 0.0
        self._pause_was_asked_for = False
        self._blocked_until = 0.0
        self._refuses_empty = False
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting) + self._in_flight

    def put(self, body: bytes, key: str, is_empty: bool) -> None:
        """Take an event for delivery. Never waits and never raises; what cannot be taken is counted."""
        with self._lock:
            now = self._clock()
            if self._closed:
                self._drop(DropReason.SHUTDOWN)
            elif is_empty and self._refuses_empty:
                self._drop(DropReason.EMPTY_REFUSED)
            elif now < self._blocked_until:
                self._drop(DropReason.UNAUTHORIZED)
            elif len(self) >= MAX_EVENTS or self._bytes + len(body) > MAX_BYTES:
                self._drop(DropReason.OUTBOX_FULL)
            else:
                self._bytes += len(body)
                self._wait(Item(body, key, is_empty, now), now)
                self._help(now)

    def drain(self, deadline: float) -> bool:
        """Wait until nothing is left, or until `deadline` on the outbox's clock; return whether nothing is left.

        Where no thread can be started (3.12 refuses it while the interpreter shuts down), sends on this one.
        """
        with self._lock:
            while len(self):
                now = self._clock()
                if now >= deadline or (not self._in_flight and self._next_due() > deadline):
                    return False
                if self._threads == 0 and not self._start():
                    self._send_here(deadline)
                    return not len(self)
                self._empty.wait(min(deadline - now, 1.0))
            return True

    def close(self, deadline: float) -> None:
        """Deliver what can be delivered until `deadline`, drop and count the rest, and take nothing more.

        Whatever waits for its next try has it now, except where the backend asked for a pause.
        """
        with self._lock:
            now = self._clock()
            if not self._pause_was_asked_for:
                self._paused_until = min(self._paused_until, now)
            for waiting in self._waiting:
                waiting.due = min(waiting.due, now)
            heapq.heapify(self._waiting)
            self._more.notify_all()
        self.drain(deadline)
        with self._lock:
            self._closed = True
            if self._waiting:
                self._drop(DropReason.SHUTDOWN, count=len(self._waiting))
            self._bytes -= sum(len(waiting.item.body) for waiting in self._waiting)
            self._waiting.clear()
            self._more.notify_all()
            idle = not self._in_flight
        if idle:  # else the last thread does it
            self._transport.close()

    def _next_due(self) -> float:
        return max(self._waiting[0].due, self._paused_until)

    def _wait(self, item: Item, due: float) -> None:
        self._numbers += 1
        heapq.heappush(self._waiting, _Waiting(due, self._numbers, item))
        self._more.notify()

    def _drop(self, reason: DropReason, status: int | None = None, count: int = 1) -> None:
        self._counters.drop(reason, count)
        self._notices.dropped(reason, status, count)

    def _help(self, now: float) -> None:
        """Start a thread: the first one, or another where a backlog meets a slow backend."""
        backlog = len(self._waiting)
        helpful = self._average > SLOW and backlog > BACKLOG * self._threads and now >= self._paused_until
        if backlog and (self._threads == 0 or (helpful and self._threads < CONNECTIONS)):
            self._start()

    def _start(self) -> bool:
        thread = threading.Thread(target=self._work, name="seer-otel-send", daemon=True)
        self._threads += 1
        try:
            thread.start()
        except RuntimeError:  # no thread can start while the interpreter shuts down
            self._threads -= 1
            return False
        return True

    def _work(self) -> None:
        with suppressed_instrumentation():
            with self._lock:
                try:
                    while (item := self._next(self._clock() + IDLE)) is not None:
                        self._deliver(item)
                finally:
                    self._threads -= 1
                    self._empty.notify_all()  # whoever waits may have to send what is left
                last = self._closed and not self._in_flight
            if last:
                self._transport.close()

    def _send_here(self, deadline: float) -> None:
        with suppressed_instrumentation():
            while len(self._waiting) and (item := self._next(deadline)) is not None:
                self._deliver(item, deadline)

    def _next(self, until: float) -> Item | None:
        """Wait for an item that is due; None when there is nothing to do until then, or ever."""
        while not self._closed:
            now = self._clock()
            if self._waiting:
                due = self._next_due()
                if due <= now:
                    return heapq.heappop(self._waiting).item
                if self._threads > 1:
                    return None
                until = max(until, due + IDLE) if self._threads else until
                if now >= until:
                    return None
                self._more.wait(min(due, until) - now)
            elif now >= until:
                return None
            else:
                self._more.wait(until - now)
        return None

    def _deliver(self, item: Item, deadline: float | None = None) -> None:
        """Send one item and do with it what the answer demands. Holds the lock but while sending."""
        if self._clock() < self._blocked_until:
            self._settle(item, DropReason.UNAUTHORIZED)
            if not len(self):
                self._empty.notify_all()
            return
        self._in_flight += 1
        began = self._clock()
        self._lock.release()
        try:
            reply, error = self._send(item, None if deadline is None else deadline - began)
        finally:
            self._lock.acquire()
            self._in_flight -= 1
        now = self._clock()
        self._average += 0.2 * (now - began - self._average)
        item = replace(item, attempts=item.attempts + 1)
        jitter = random.random()  # noqa: S311 - no secret
        verdict = judge(reply, item.attempts, now - item.born, item.shrunk, jitter, time.time())
        self._apply(item, verdict, reply, error, now)
        self._help(now)
        if not len(self) or verdict.action is Action.RETRY:
            self._empty.notify_all()

    def _send(self, item: Item, timeout: float | None) -> tuple[Reply | None, str]:
        send = self._transport.send
        if timeout is not None and isinstance(self._transport, HttpTransport):
            send = partial(self._transport.send, timeout=timeout)
        try:
            reply: object = send(item.body, item.key)
            return (reply, "") if isinstance(reply, Reply) else (None, "the transport returned no Reply")
        except TransportError as error:
            return None, str(error)
        except Exception as error:  # noqa: BLE001 - a transport of the user's, say; its text may hold the key
            return None, type(error).__name__

    def _apply(self, item: Item, verdict: Verdict, reply: Reply | None, error: str, now: float) -> None:
        status = reply.status if reply is not None else None
        if verdict.action is Action.DONE:
            self._settle(item, None)
            self._notices.delivered()
        elif self._closed and verdict.action is not Action.GIVE_UP:
            self._settle(item, DropReason.SHUTDOWN)
        elif verdict.action is Action.RETRY:
            self._counters.add("retries")
            self._notices.retrying(status, error)
            if verdict.pauses:
                self._paused_until = max(self._paused_until, now + verdict.delay)
                self._pause_was_asked_for = reply is not None
            self._wait(item, now + verdict.delay)
        elif verdict.action is Action.SHRINK:
            body = shrink(item.body)
            self._bytes += len(body) - len(item.body)
            self._wait(replace(item, body=body, shrunk=True), now)
        else:
            reason = verdict.reason or DropReason.REJECTED
            if verdict.blocks:
                self._blocked_until = now + BLOCKED
            if reason is DropReason.REJECTED and item.is_empty and status in (400, 422):
                self._refuses_empty = True
                reason = DropReason.EMPTY_REFUSED
            self._settle(item, reason, status)

    def _settle(self, item: Item, reason: DropReason | None, status: int | None = None) -> None:
        self._bytes -= len(item.body)
        if reason is None:
            self._counters.add("sent")
        else:
            self._drop(reason, status)
