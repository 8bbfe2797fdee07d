"""The one pipeline behind every door: take, sample, buffer, read, assemble, clamp, deliver.

Hooks append to a queue and return. One worker thread takes from it, and it alone touches traces; a flush does the
worker's work on the calling thread, under the same lock.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable

from opentelemetry.sdk.trace import ReadableSpan

from ..config import Config
from ..conventions import convention
from ..delivery.outbox import Outbox
from ..delivery.transport import HttpTransport, Transport
from ..notices import Notices
from ..reasons import DropReason
from ..stats import Counters, FlushResult, Stats
from .buffer import ENDED, STARTED, Buffer, Limits, Release
from .dispatch import Dispatch
from .sdk import attributes_of

__all__ = ["ENDED", "STARTED", "Pipeline"]

POLL = 0.05
"""Seconds between two looks at the queue. Waking the worker for each span costs the application more than this."""
QUIET = 1.0
"""Seconds without a span after which the worker looks less often."""
PARKED = 0.5
"""Seconds between two looks while nothing comes in."""
SHUTDOWN = 5.0
"""Seconds for a shutdown, and for the flush at exit."""
IDLE = 60.0
"""Seconds between two looks at whether the pipeline is still there, while nothing is open."""
MAX_QUEUE_BYTES = 64 * 1024 * 1024
"""Bytes that the queue may hold, by the average size of the spans that went through it. A hook cannot measure."""
MIN_ROOM = 512
"""Entries that always find room."""
MAX_LOST = 10_000
"""Lost spans whose trace is remembered until the worker comes by."""


class Pipeline:
    """Spans in, events out.

    Args:
        config: the settings.
        sees_starts: whether spans are handed over when they start, too.
        clock: monotonic seconds.
    """

    def __init__(self, config: Config, *, sees_starts: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.config = config
        self._sees_starts = sees_starts
        self._clock = clock
        self._room = config.max_queue_size
        self._transport: Transport = config.transport or HttpTransport(
            config.endpoint, config.api_key, config.timeout
        )
        self._begin_anew()
        # Weak, so that a processor that nobody holds any more can be collected.
        begin_anew = weakref.WeakMethod(self._begin_anew)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=lambda: (method := begin_anew()) and method())
        at_exit = weakref.WeakMethod(self._at_exit)
        self._exit_hook = lambda: (method := at_exit()) and method()
        atexit.register(self._exit_hook)

    def _begin_anew(self) -> None:
        """Set everything up as new: at first, and in the child of a fork, to which no thread or lock came along."""
        self._pid = os.getpid()
        self._queue: deque[tuple[ReadableSpan, bool]] = deque()
        self._lost: deque[tuple[int, bool]] = deque(maxlen=MAX_LOST)
        self._lost_unknown = 0
        self._notices = Notices(self._clock)
        self._counters = Counters()
        limits = Limits(max_age=self.config.max_trace_age)
        self._buffer = Buffer(self.config.sample_rate, self._sees_starts, self._counters, limits)
        self._outbox = Outbox(self._transport, self._counters, self._notices, self._clock)
        self._dispatch = Dispatch(self.config, self._outbox, self._counters, self._notices)
        self._working = threading.Lock()
        self._starting = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._parked = True
        self._last_span = 0.0
        self._closed = False

    def take(self, span: ReadableSpan, phase: bool) -> None:
        """Take a span that started or ended. Called by hooks: only appends, never waits, never raises."""
        if len(self._queue) >= self._room:
            self._lose(span, phase)
            return
        self._queue.append((span, phase))
        if self._parked:
            self._ensure_worker()

    def check_process(self) -> None:
        """Begin anew in the child of a fork that ran no hooks, as some servers make them."""
        if self._pid != os.getpid():
            self._begin_anew()

    def stats(self) -> Stats:
        """Return the counts of this moment."""
        return self._counters.snapshot()

    def flush(self, timeout: float, *, unfinished: bool = True) -> FlushResult:
        """Release traces and wait until their events have an answer.

        Args:
            timeout: seconds.
            unfinished: whether to release traces too whose end has not been seen.
        """
        began = self._clock()
        before = self._counters.snapshot()
        deadline = began + timeout
        if self._working.acquire(timeout=max(0.0, timeout)):
            try:
                self._turn(release=self._buffer.flush if unfinished else None)
            finally:
                self._working.release()
            self._outbox.drain(deadline)
        after = self._counters.snapshot()
        dropped = {
            reason: count - before.dropped.get(reason, 0)
            for reason, count in after.dropped.items()
            if count > before.dropped.get(reason, 0)
        }
        return FlushResult(after.sent - before.sent, after.held, dropped, self._clock() - began)

    def shutdown(self, timeout: float = SHUTDOWN) -> None:
        """Flush, give up on what is left, and take nothing more."""
        if self._closed:
            return
        deadline = self._clock() + timeout
        self.flush(timeout)
        self._closed = True
        self._room = 0
        self._outbox.close(deadline)
        self._wake.set()
        atexit.unregister(self._exit_hook)

    def _at_exit(self) -> None:
        # Not a shutdown: this runs before the provider's own, after which spans may still come. An exporter gets
        # what its batch processor holds only then, so its open traces wait for it.
        if not self._closed:
            self.flush(SHUTDOWN, unfinished=self._sees_starts)

    def _lose(self, span: ReadableSpan, phase: bool) -> None:
        """The queue is full, or the pipeline closed: note whose span it was. The rare path, so it may take time."""
        context = span.context
        if context is None or not context.trace_flags.sampled:
            return
        retrieval = phase is ENDED and convention.is_retrieval(attributes_of(span))
        if self._closed:
            if retrieval:
                self._counters.add("seen")
                self._counters.drop(DropReason.SHUTDOWN)
        elif len(self._lost) < MAX_LOST:
            self._lost.append((context.trace_id, retrieval))
        else:
            self._lost_unknown += 1
            if retrieval:
                self._counters.add("seen")
                self._counters.drop(DropReason.QUEUE_FULL)

    def _ensure_worker(self) -> None:
        self._parked = False
        self._wake.set()
        thread = self._thread
        if thread is not None and thread.is_alive():
            return
        with self._starting:
            if self._thread is not None and self._thread.is_alive():
                return
            self._thread = threading.Thread(
                target=_work, args=(weakref.ref(self), self._wake), name="seer-otel", daemon=True
            )
            try:
                self._thread.start()
            except RuntimeError:  # the interpreter shuts down; the flush at exit does the work
                self._thread = None

    def turn(self) -> float | None:
        """Do what there is to do; return the seconds until the next look, None when closed. The worker's."""
        if self._closed:
            return None
        try:
            with self._working:
                self._turn()
        except Exception as error:  # the worker must outlive whatever this is
            self._notices.fault(error)
        if self._queue or self._clock() - self._last_span < QUIET:
            return POLL
        self._parked = True
        if self._queue:  # it came between the look and the flag
            self._parked = False
            return POLL
        return PARKED if len(self._buffer) else IDLE

    def _turn(self, release: Callable[[], Iterable[Release]] | None = None) -> None:
        """Take what is queued and send on what is complete. Under the lock, in whatever thread."""
        now = self._clock()
        for _ in range(len(self._queue)):
            span, phase = self._queue.popleft()
            self._last_span = now
            try:
                released = self._buffer.take(span, phase, now)
            except Exception as error:
                self._notices.fault(error)
                continue
            if released is not None:
                self._dispatch.send(released)
        self._account_for_lost(now)
        self._room = min(self.config.max_queue_size, max(MIN_ROOM, MAX_QUEUE_BYTES // self._buffer.average_size))
        for released in [*self._buffer.overdue(now), *(release() if release is not None else ())]:
            self._dispatch.send(released)

    def _account_for_lost(self, now: float) -> None:
        for _ in range(len(self._lost)):
            trace_id, retrieval = self._lost.popleft()
            if self._buffer.lose(trace_id, retrieval, now):
                self._counters.add("seen")
                self._counters.drop(DropReason.QUEUE_FULL)
            self._notices.dropped(DropReason.QUEUE_FULL)
        if self._lost_unknown:
            self._lost_unknown = 0
            self._buffer.lose_unknown()
            self._notices.dropped(DropReason.QUEUE_FULL)

def _work(pipeline: weakref.ref[Pipeline], wake: threading.Event) -> None:
    """The worker: holds its pipeline only while it works, so that one that is gone ends its thread."""
    while (alive := pipeline()) is not None:
        pause = alive.turn()
        if pause is None:
            return
        del alive
        if wake.wait(pause):
            wake.clear()
