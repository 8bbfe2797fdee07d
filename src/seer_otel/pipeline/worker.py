"""The worker's thread: when it starts, how it sleeps and wakes, and what ends it."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from ..delivery.suppression import suppressed_instrumentation
from ..exits import on_worker_exit


class Worker:
    """Calls `turn` again and again in a thread of its own, from the first `wake` on.

    Args:
        turn: a method that does what there is to do and returns the seconds until the next call, None for no more.
            It is held weakly: the thread ends when its object is gone.
        at_exit: called when this process ends as a worker of a pool, which runs no exit handlers.

    Attributes:
        parked: whether the thread sleeps longer than a moment, or is not there, and must be woken.
    """

    def __init__(self, turn: Callable[[], float | None], at_exit: Callable[[], object]) -> None:
        self.parked = True
        self._at_exit = at_exit
        self._wake = wake = SimpleQueue[None]()
        self._turn = weakref.WeakMethod(turn, lambda _: wake.put(None))
        self._lock = threading.Lock()
        self._watches_exit = False
        self.thread: threading.Thread | None = None

    def wake(self) -> None:
        """Wake the thread, or start it."""
        self.parked = False
        self._wake.put(None)
        if self._is_alive():
            return
        with self._lock:
            if self._is_alive():
                return
            self.watch_exit()
            arguments = self._turn, self._wake
            self.thread = threading.Thread(target=_work, args=arguments, name="seer-otel", daemon=True)
            try:
                self.thread.start()
            except RuntimeError:
                # No room for a thread now; the next span tries again, or the flush at exit does the work.
                self.thread, self.parked = None, True

    def watch_exit(self) -> None:
        """Have the rest sent when this process ends as a worker of a pool. For once, and before it ends."""
        if not self._watches_exit:
            self._watches_exit = True
            on_worker_exit(self._at_exit)

    def end(self) -> None:
        """Let the thread see that there is no more to do."""
        self._wake.put(None)

    def _is_alive(self) -> bool:
        return self.thread is not None and self.thread.is_alive()


def weakly(method: Callable[[], object]) -> Callable[[], None]:
    """Return a function that calls `method` for as long as its object is there."""
    reference = weakref.WeakMethod(method)

    def call() -> None:
        alive = reference()
        if alive is not None:
            alive()

    return call


def on_fork(
    before: Callable[[], object], in_parent: Callable[[], object], in_child: Callable[[], object]
) -> None:
    """Call methods around each fork from now on, for as long as their object is there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=weakly(before), after_in_parent=weakly(in_parent), after_in_child=weakly(in_child)
        )


def _work(turn: weakref.WeakMethod[Any], wake: SimpleQueue[None]) -> None:
    """Hold the object only while it works, so that one that nobody else holds ends this thread."""
    with suppressed_instrumentation():
        while (alive := turn()) is not None and (pause := alive()) is not None:
            del alive
            with suppress(Empty):
                wake.get(timeout=pause)
