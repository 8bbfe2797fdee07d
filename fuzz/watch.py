"""Sees whatever goes wrong where the pipeline lets nothing out: bodies, faults in the worker, exceptions from hooks."""

from __future__ import annotations

import logging
import threading
import traceback
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from seer_otel import SeerSpanProcessor, Stats
from seer_otel.delivery.transport import Reply
from seer_otel.reasons import DropReason

from .checks import Broken, check_body, expect

MAX_TOLD = 10


class Watch(logging.Handler):
    """Collects what went wrong, of each kind a few."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.wrong: list[str] = []
        logging.getLogger("seer_otel").addHandler(self)
        logging.getLogger("seer_otel").propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """A fault in the worker says so in the log, and is counted at most."""
        if "fault in seer-otel" in (message := record.getMessage()):
            self.tell(message)

    def tell(self, words: str) -> None:
        """Note that something went wrong."""
        if len(self.wrong) < MAX_TOLD:
            self.wrong.append(words)

    def account(self, stats: Stats) -> None:
        """Check that the counters add up, and that nothing was lost to a fault."""
        lost = sum(stats.dropped.values())
        if stats.seen != stats.sent + stats.held + lost:
            self.tell(f"the counters do not add up: {stats}")
        if DropReason.INTERNAL_ERROR in stats.dropped:
            self.tell(f"{stats.dropped[DropReason.INTERNAL_ERROR]} retrievals were lost to a fault")


class Backend:
    """A transport that takes events and keeps none; `look` checks each body, in the sending thread or later.

    Args:
        watch: is told what is wrong with a body.
        later: whether bodies wait for `look`, so that looking costs the sender nothing.
        moody: whether some events are answered with 413 or 503 the first time they come.
    """

    def __init__(self, watch: Watch, *, later: bool = False, moody: bool = False) -> None:
        self._watch = watch
        self._later = later
        self._moody = moody
        self._lock = threading.Lock()
        self._waiting: list[bytes] = []
        self._refused: set[str] = set()
        self._final: set[str] = set()
        self.taken = 0

    def send(self, body: bytes, idempotency_key: str) -> Reply:
        """Take one event, or refuse it once."""
        with self._lock:
            if self._moody and idempotency_key not in self._refused:
                mood = hash(idempotency_key) % 2_000
                if mood < 10:
                    self._refused.add(idempotency_key)
                    return Reply(413) if mood else Reply(503, "0")
            self.taken += 1
            self._waiting.append(body)
            if not self._later:
                self._look()
            return Reply(200)

    def look(self) -> None:
        """Check what waits."""
        with self._lock:
            self._look()

    def close(self) -> None:
        """There is no connection."""

    def _look(self) -> None:
        for body in self._waiting:
            try:
                event = check_body(body)
                if event["is_final_context"]:
                    expect(event["trace_id"] not in self._final, "two final contexts in one trace")
                    self._final.add(event["trace_id"])
            except (Broken, ValueError) as error:
                self._watch.tell(f"{error!r:.500} in {body[:2_000]!r}")
        self._waiting.clear()


class Watched(SpanProcessor):
    """Calls a processor's hooks, and tells what leaves them."""

    def __init__(self, processor: SeerSpanProcessor, watch: Watch) -> None:
        self._processor = processor
        self._watch = watch

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        try:
            self._processor.on_start(span, parent_context)
        except BaseException:  # noqa: BLE001 - nothing at all may leave
            self._watch.tell(f"on_start raised: {traceback.format_exc()}")

    def on_end(self, span: ReadableSpan) -> None:
        try:
            self._processor.on_end(span)
        except BaseException:  # noqa: BLE001 - nothing at all may leave
            self._watch.tell(f"on_end raised: {traceback.format_exc()}")

    def shutdown(self) -> None:
        try:
            self._processor.shutdown()
        except BaseException:  # noqa: BLE001 - nothing at all may leave
            self._watch.tell(f"shutdown raised: {traceback.format_exc()}")

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        try:
            return self._processor.force_flush(timeout_millis)
        except BaseException:  # noqa: BLE001 - nothing at all may leave
            self._watch.tell(f"force_flush raised: {traceback.format_exc()}")
            return False
