"""Ways in which a process ends without running its exit handlers."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Protocol
from weakref import WeakSet

AGAIN = 0.05
"""Seconds after which a signal is sent again that came in the middle of a flush."""


class Flushes(Protocol):
    """What has a flush: a processor, an exporter."""

    @property
    def is_interrupted(self) -> bool:
        """Whether this thread is in the middle of its work, so that a flush could do nothing."""
        ...

    def flush(self, timeout: float) -> Any:
        """Send everything now."""
        ...


alive: WeakSet[Flushes] = WeakSet()
"""Every processor and exporter of this process that is switched on."""


def flush_on_sigterm(timeout: float = 5.0) -> None:
    """Send what is left when this process is told to end, and then end as before.

    SIGTERM ends a Python program without its exit handlers; uvicorn gives it back to whatever handled it before. Call
    this in the main thread, before the server starts. The handler that is there now (`SIG_DFL`, or the application's
    own) runs afterwards. Servers that install a handler of their own later and never give it back, such as gunicorn,
    run exit handlers and need none of this.

    Args:
        timeout: seconds for all processors and exporters together.

    Raises:
        ValueError: this is not the main thread.
    """
    before = signal.getsignal(signal.SIGTERM)
    deadline = float("inf")

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal deadline
        now = time.monotonic()
        deadline = min(deadline, now + timeout)
        if now < deadline and any(each.is_interrupted for each in list(alive)) and _comes_again(number):
            return  # the flush that it came in the middle of goes on meanwhile
        flush_all(deadline - now)
        deadline = float("inf")
        if callable(before):
            before(number, frame)
        elif before is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, handle)


def _comes_again(number: int) -> bool:
    """Send this process a signal once more in a moment; false if no thread can start any more."""
    timer = threading.Timer(AGAIN, os.kill, (os.getpid(), number))
    timer.daemon = True
    try:
        timer.start()
    except RuntimeError:
        return False
    return True


def flush_all(timeout: float) -> None:
    """Flush all that is alive within `timeout` seconds. Never raises."""
    deadline = time.monotonic() + timeout
    for each in list(alive):
        with suppress(Exception):
            each.flush(max(0.0, deadline - time.monotonic()))


def on_worker_exit(flush: Callable[[], object]) -> None:
    """Call `flush` when this process ends, if it is a worker of a pool: these end by `os._exit`.

    multiprocessing, and Celery's copy of it, run finalizers of their own before that; Celery's pool, when it replaces a
    worker (`max_tasks_per_child`), only a signal of Celery's (open-telemetry/opentelemetry-python-contrib#4916).
    """
    for name in ("multiprocessing.util", "billiard.util"):
        util = sys.modules.get(name)
        if util is not None:
            util.Finalize(None, flush, exitpriority=0)
    signals = sys.modules.get("celery.signals")
    if signals is not None:
        signals.worker_process_shutdown.connect(lambda **_: flush(), weak=False)
