"""The one pipeline behind every door: take, sample, buffer, read, assemble, clamp, deliver.

Hooks append to a queue and return. One worker thread takes from it, and it alone touches traces; a flush does the
worker's work on the calling thread, under the same lock.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.trace import ReadableSpan, Span

from .. import sampling
from ..config import Config
from ..conventions import convention
from ..delivery.outbox import Outbox
from ..delivery.suppression import suppressed_instrumentation
from ..delivery.transport import HttpTransport, Transport
from ..notices import Notices
from ..reasons import DropReason
from ..stats import Counters, FlushResult, Stats
from .buffer import ENDED, STARTED, Buffer, Limits, Release
from .dispatch import Dispatch
from .losses import LOOK, Losses, is_retrieval
from .room import MEASURE, MIN_ROOM, Room
from .sdk import attributes_of
from .worker import Worker, on_fork, weakly

if TYPE_CHECKING:
    from ..delivery.spool import Spool

__all__ = ["ENDED", "LOOK", "STARTED", "Pipeline"]

POLL = 0.05
"""Seconds between two looks at the queue. Waking the worker for each span costs the application more than this."""
QUIET = 1.0
"""Seconds without a span after which the worker looks less often."""
PARKED = 0.5
"""Seconds between two looks while nothing comes in."""
SHUTDOWN = 5.0
"""Seconds for a shutdown; with the flush at exit, where there is one."""
IDLE = 5.0
"""Seconds between two looks at whether the pipeline is still there, while nothing is open."""


class Pipeline:
    """Spans in, events out.

    Args:
        config: the settings.
        sees_starts: whether spans are handed over when they start, too.
        clock: monotonic seconds.
    """

    def __init__(
        self, config: Config, *, sees_starts: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.config = config
        self._sees_starts = sees_starts
        self._clock = clock
        self._grace = SHUTDOWN
        self._closed = False
        self._sends_at_once = config.synchronous
        self._transport: Transport = config.transport or HttpTransport(
            config.endpoint, config.api_key, config.timeout, config.http_client
        )
        self.queue: deque[ReadableSpan] = deque()
        self._spool: Spool | None = None
        # Weak, so that a processor that nobody holds any more can be collected.
        self._exit_hook = weakly(self._at_exit)
        self._begin_anew()
        on_fork(self._hold_spool, self._release_spool, self._begin_anew)
        atexit.register(self._exit_hook)

    def _begin_anew(self) -> None:
        """Set everything up as new: at first, and in the child of a fork, to which no thread or lock came along."""
        config = self.config
        self._pid = os.getpid()
        if self._spool is not None:
            self._spool.leave()
        self.queue.clear()  # the same one, as hooks hold it
        self._losses = Losses()
        self._notices = Notices(config.endpoint, self._clock, config.spool_dir)
        self._counters = Counters()
        limits = Limits(max_age=config.max_trace_age)
        self._buffer = Buffer(config.sample_rate, self._sees_starts, self._counters, limits)
        self._spool = _spool(config)
        self._outbox = Outbox(
            self._transport,
            self._counters,
            self._notices,
            self._clock,
            spool=self._spool,
            spool_max_age=config.spool_max_age,
            threads=not config.synchronous,
            # A request that hangs must not keep events from the disk.
            pumped=self._spool is None,
        )
        self._dispatch = Dispatch(config, self._outbox, self._counters, self._notices)
        self._working = threading.Lock()
        self.worker = Worker(self.turn, self._exit_hook)
        self._inside: set[int] = set()
        self._last_span = 0.0
        self._room = Room(0 if self._closed else config.max_queue_size)

    def _hold_spool(self) -> None:
        # No transaction may be in the middle when a fork copies this memory.
        if self._spool is not None:
            self._spool.lock.acquire()

    def _release_spool(self) -> None:
        if self._spool is not None:
            self._spool.lock.release()

    def take(self, span: ReadableSpan, phase: bool) -> None:
        """Take a span that started or ended. Called by hooks: only appends, never waits, never raises.

        A hook appends to `queue` by itself, which saves this call, unless the queue's length is a multiple of `LOOK`.
        """
        length = len(self.queue)
        if length >= self._room.entries and not self._closed and self._losses.note(span, phase):
            return
        self.check_process()
        if self._sends_at_once:
            self.queue.append(span)
            self.worker.watch_exit()
            if phase is ENDED and (span.parent is None or span.parent.is_remote):
                self._send_at_once()
        elif length >= self._room.entries:
            self._lose(span, phase)
        else:
            if length > MIN_ROOM and not length % MEASURE:
                self._room.measure(self.queue)
            self.queue.append(span)
            if self.worker.parked:
                self.worker.wake()

    def check_process(self) -> None:
        """Begin anew in the child of a fork that ran no hooks, as some servers make them."""
        if self._pid != os.getpid():
            self._begin_anew()

    def stats(self) -> Stats:
        """Return the counts of this moment."""
        self.check_process()
        with self._within():
            return self._counters.snapshot()

    @contextmanager
    def _within(self) -> Iterator[bool]:
        """Mark this thread as at work here; false if it is so already, and must wait for no lock and no other thread.

        A signal handler interrupts one that may hold what others wait for; a hook of the user's runs in one that does.
        """
        thread = threading.get_ident()
        alone = thread not in self._inside
        self._inside.add(thread)
        try:
            yield alone
        finally:
            if alone:
                self._inside.discard(thread)

    @property
    def is_interrupted(self) -> bool:
        """Whether this thread is at work here, further down its stack."""
        return threading.get_ident() in self._inside

    def use_hooks(self, **hooks: Any) -> None:
        """Take hooks over that were given late; they see the events of traces that are released from now on."""
        self.config = replace(self.config, **hooks)
        self._dispatch.config = self.config

    def flush(self, timeout: float, *, unfinished: bool = True) -> FlushResult:
        """Release traces and wait until their events have an answer.

        Args:
            timeout: seconds.
            unfinished: whether to release traces too whose end has not been seen.
        """
        began = self._clock()
        before = self.stats()
        with self._within() as alone:
            taken = alone and self._turn_here(began + timeout, self._buffer.flush if unfinished else None)
            held = self._buffer.seen
            if alone:
                held += self._outbox.drain(began + timeout)
        after = self.stats()
        if not taken:
            held = after.held + self._untaken()
        dropped = {
            reason: count - before.dropped.get(reason, 0)
            for reason, count in after.dropped.items()
            if count > before.dropped.get(reason, 0)
        }
        elapsed = self._clock() - began
        return FlushResult(after.sent - before.sent, min(held, after.spooled), held, dropped, elapsed)

    def shutdown(self, timeout: float | None = None) -> None:
        """Take nothing more, send what can be sent within `timeout` seconds, and give up on the rest."""
        self.check_process()
        with self._within() as alone:
            if self._closed or not alone:
                return  # what a signal handler interrupted, or the flush at exit, sends the rest
            deadline = self._clock() + (self._grace if timeout is None else timeout)
            self._closed, self._sends_at_once = True, False
            self._room.close()
            self._turn_here(deadline, self._buffer.flush)
            self._outbox.close(deadline)
        self.worker.end()
        atexit.unregister(self._exit_hook)

    def _at_exit(self) -> None:
        # Not a shutdown: this runs before the provider's own, after which spans may still come. An exporter gets
        # what its batch processor holds only then, so its open traces wait for it.
        if not self._closed:
            flushed = self.flush(self._grace, unfinished=self._sees_starts)
            self._grace = max(0.0, self._grace - flushed.elapsed)
            if flushed.complete:
                with suppress(Exception):
                    self._outbox.rest()  # perhaps nobody shuts us down

    def _send_at_once(self) -> None:
        """Do on the application's thread what there is to do (`synchronous`); what fails has its next try later."""
        deadline = self._clock() + self.config.timeout
        with self._within() as alone:
            if alone and self._turn_here(deadline, self._buffer.ended):
                self._outbox.send_due(deadline)

    def _lose(self, span: ReadableSpan, phase: bool) -> None:
        """The queue is full, or the pipeline closed."""
        context = span.context
        retrieval = phase is ENDED and is_retrieval(span)
        if not self._closed and not self._losses.note_closely(span, retrieval):
            return
        if retrieval and context is not None and context.trace_flags.sampled:
            if not sampling.keeps(context.trace_id, self.config.sample_rate):
                return
            with self._within():
                self._counters.add("seen")
                self._counters.drop(DropReason.SHUTDOWN if self._closed else DropReason.QUEUE_FULL)

    def turn(self) -> float | None:
        """Do what there is to do; return the seconds until the next look, None when closed. The worker's."""
        if self._closed:
            return None
        try:
            with self._within():
                with self._working:
                    self._turn()
                    pause = self._pause()
                return 0.0 if self._outbox.pump(self._clock() + POLL) else pause
        except Exception as error:  # noqa: BLE001 - the worker must outlive whatever this is
            self._notices.fault(error)
            return POLL
        except BaseException:  # a hook of the user's ends this thread; the next span starts another
            self.worker.parked = True
            raise

    def _pause(self) -> float:
        """Seconds until the next look. Under the lock: elsewhere a flush may hold what is neither here nor there."""
        if not self.queue and self._clock() - self._last_span >= QUIET:
            self.worker.parked = True
            if not self.queue:
                return PARKED if len(self._buffer) else IDLE
            self.worker.parked = False  # a span came between the look and the flag
        return POLL

    def _turn_here(self, deadline: float, release: Callable[[], Iterable[Release]] | None) -> bool:
        """Do the worker's work on this thread; false if the worker is busy for long, as in a hook of the user's."""
        patience = min(max(0.0, deadline - self._clock()), threading.TIMEOUT_MAX)
        if not self._working.acquire(timeout=patience):
            return False
        try:
            with suppressed_instrumentation():
                self._turn(release)
        finally:
            self._working.release()
        return True

    def _untaken(self) -> int:
        """How many retrieval spans are still in the queue."""
        queued = self.queue.copy()
        ended = (span for span in queued if self._phase(span) is ENDED)
        return sum(convention.is_retrieval(attributes_of(span)) for span in ended)

    def _phase(self, span: ReadableSpan) -> bool:
        """Whether a span in the queue started or ended: the SDK hands over a copy of one that ended."""
        return STARTED if self._sees_starts and isinstance(span, Span) else ENDED

    def _turn(self, release: Callable[[], Iterable[Release]] | None = None) -> None:
        """Take what is queued and send on what is complete. Under the lock, in whatever thread."""
        now = self._clock()
        for _ in range(len(self.queue)):
            span = self.queue.popleft()
            self._last_span = now
            try:
                released = self._buffer.take(span, self._phase(span), now)
            except Exception as error:  # noqa: BLE001 - a span that is none costs no other
                self._notices.fault(error)
                continue
            if released is not None:
                self._dispatch.send(released)
        self._losses.account(self._buffer, self._counters, self._notices, now)
        if not self._closed:
            self._room.renew(self._buffer.average_size)
        self._outbox.tend()
        for released in chain(self._buffer.overdue(now), release() if release is not None else ()):
            self._dispatch.send(released)


def _spool(config: Config) -> Spool | None:
    if config.spool_dir is None:
        return None
    from ..delivery.spool import Spool  # noqa: PLC0415 - SQLite is for those who ask for it

    endpoint, folder = config.endpoint, config.spool_dir
    return Spool(folder, endpoint, max_bytes=config.spool_max_bytes, max_age=config.spool_max_age)
