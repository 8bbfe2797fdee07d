"""What a person is told in the log: once for each kind of trouble and minute, with the setting that cures it."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable

from .endpoint import shown_url
from .reasons import DropReason

logger = logging.getLogger("seer_otel")

INTERVAL = 60.0
"""Seconds between two lines of one kind."""

_CURES = {
    DropReason.UNREADABLE: "the span has output, but no text of a document can be read from it. Record"
    " retrieval.documents.<i>.document.content, or return objects that have a text.",
    DropReason.NO_QUESTION: "no span of its trace says what was asked. Record input.value on the retriever's span"
    " or above it, or use seer_otel.using_task().",
    DropReason.REDACT_FAILED: "the redact hook raised or returned no event, and nothing is sent unredacted.",
    DropReason.OUTBOX_FULL: "too many events wait for the backend. Set SEER_OTEL_SPOOL_DIR, lower SEER_SAMPLE_RATE,"
    " or look at the backend.",
    DropReason.SPOOL_LOST: "the spool's file cannot be read any more. Check the disk; the file was set aside.",
    DropReason.UNAUTHORIZED: "the backend refuses the key, or there is none. Check SEER_API_KEY and"
    " SEER_INGESTION_URL; the next try is in a minute.",
    DropReason.REJECTED: "the backend refuses the event for good. Check that SEER_INGESTION_URL is the full URL of"
    " a log endpoint.",
    DropReason.TOO_LARGE: "the backend refuses its size, even cut.",
    DropReason.EMPTY_REFUSED: "the backend refuses events with an empty context; none is sent any more.",
    DropReason.EXPIRED: "the backend could not be reached for as long as events are kept: ten minutes, or"
    " SEER_OTEL_SPOOL_MAX_AGE with SEER_OTEL_SPOOL_DIR. Check SEER_INGESTION_URL.",
    DropReason.SHUTDOWN: "the shutdown came before it could be delivered. SEER_OTEL_SPOOL_DIR keeps such events.",
    DropReason.INTERNAL_ERROR: "a fault in seer-otel; please report it.",
}


class Notices:
    """Throttled warnings.

    Args:
        endpoint: where events go.
        clock: monotonic seconds.
        spool: the folder where they wait on disk, if they do.
    """

    def __init__(
        self, endpoint: str, clock: Callable[[], float] = time.monotonic, spool: str | None = None
    ) -> None:
        self._endpoint = shown_url(endpoint)
        self._spool = spool
        self._clock = clock
        self._lock = threading.RLock()  # a finalizer that ends a span may run in the middle of this
        self._last: dict[str, float] = {}
        self._silent: dict[str, int] = {}
        self._in_trouble = False

    def warn(self, kind: str, message: str, *args: object, error: BaseException | None = None) -> bool:
        """Log a warning unless one of this kind was logged within the last minute; return whether it was.

        Of an error only its type and place: its text may quote a document. Never raises, as a log handler may.
        """
        with self._lock:
            now = self._clock()
            if now - self._last.get(kind, -INTERVAL) < INTERVAL:
                self._silent[kind] = self._silent.get(kind, 0) + 1
                return False
            self._last[kind] = now
            more = self._silent.pop(kind, 0)
        suffix = f" ({more} more like it since the last such line)" if more else ""
        where = ""
        if error is not None:
            where = f"\n{''.join(traceback.format_tb(error.__traceback__))}{type(error).__name__}"
        _log(logging.WARNING, message + "%s%s", *args, suffix, where)
        return True

    def dropped(self, reason: DropReason, status: int | None = None, count: int = 1) -> None:
        """Say why retrievals were not sent, where somebody can do something about it.

        Args:
            reason: why.
            status: the answer of the backend that refused them.
            count: how many, at least 1.
        """
        cure = _CURES.get(reason)
        if cure is not None:
            who = "A retrieval was" if count == 1 else f"{count} retrievals were"
            answer = f", HTTP {status} from {self._endpoint}" if status is not None else ""
            self.warn(f"dropped {reason}", "%s not sent (%s%s): %s", who, reason.value, answer, cure)

    def overflowed(self) -> None:
        """Say that spans were lost on their way in, retrievals or others."""
        self.warn(
            "overflowed",
            "Spans were lost (queue_full), so retrievals may be missing and traces are marked as partial: spans come"
            " faster than they can be taken. Raise SEER_OTEL_MAX_QUEUE_SIZE, or lower SEER_SAMPLE_RATE.",
        )

    def assembled(self, attributes_dropped: int, labels_unreadable: int) -> None:
        """Say that events are sent with something missing."""
        if attributes_dropped:
            self.warn(
                "attributes",
                "A retrieval span lost attributes to the SDK's limit, the best documents first; its event is marked."
                " Set OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=10000.",
            )
        if labels_unreadable:
            self.warn(
                "labels",
                "A ground truth cannot be read; its event goes out without it. Set seer.ground_truth.gold_doc_ids to"
                " a list of texts, or use seer_otel.using_ground_truth().",
            )

    def clamped(self, passages_cut: int) -> None:
        """Say that the backend's limit cost passages."""
        if passages_cut:
            self.warn(
                "passages",
                "A retrieval found more than 50 passages, the backend's limit; the best 50 are sent.",
            )

    def fault(self, error: BaseException) -> None:
        """Say that something in seer-otel broke; the application goes on."""
        self.warn("fault", "A fault in seer-otel cost an event; please report it.", error=error)

    def away(self, status: int | None, error: str) -> None:
        """Say that the backend cannot be asked now, and where events wait meanwhile."""
        if self._spool is None and status in (401, 403):
            self._in_trouble = True
            return  # nothing waits; `dropped` says so
        self._in_trouble |= self.warn(
            "away",
            "The backend at %s %s. Events wait %s; one at a time tries again. %s",
            self._endpoint,
            f"answered HTTP {status}" if status is not None else f"does not answer ({error})",
            f"in {self._spool}" if self._spool is not None else "in memory, for ten minutes at most",
            "Check SEER_API_KEY." if status in (401, 403) else "Check SEER_INGESTION_URL.",
        )

    def back(self) -> None:
        """Say that the backend takes events again, where its trouble was told."""
        if self._in_trouble:
            self._in_trouble = False
            _log(logging.INFO, "The backend takes events again.")

    def spool_full(self) -> None:
        """Say that the spool takes no more; events wait in memory."""
        self.warn(
            "spool full",
            "The spool in %s is full, so events wait in memory alone. Raise SEER_OTEL_SPOOL_MAX_BYTES, or look at the"
            " backend.",
            self._spool,
        )

    def spool_failed(self, error: Exception) -> None:
        """Say that something in the spool failed; what cannot be written there waits in memory."""
        self.warn(
            "spool failed",
            "The spool in %s has a fault (%s). Events that cannot be written there wait in memory alone. Check the"
            " disk and SEER_OTEL_SPOOL_DIR.",
            self._spool,
            error,
        )


def _log(level: int, message: str, *args: object) -> None:
    try:
        logger.log(level, message, *args)
    except Exception:  # noqa: BLE001 - a handler or filter of the application's
        return
