"""Why a retrieval span became no delivered event. Pure."""

from __future__ import annotations

from enum import Enum


class DropReason(str, Enum):
    """The reasons in `Stats.dropped` and `FlushResult.dropped`, each counted in retrieval spans of kept traces."""

    NESTED = "nested"
    """By design: inside another retrieval, or a repetition of it."""
    REPEATED = "repeated"
    """By design: the same span ended here before, as with a processor that was added twice."""
    SUPERSEDED = "superseded"
    """By design: a reranker whose output another reranker took."""
    FILTERED = "filtered"
    """By the `filter` setting."""
    FAILED = "failed"
    """The span's status is ERROR."""
    UNREADABLE = "unreadable"
    """There is output, but no text of a document can be read from it."""
    NO_DOCUMENTS = "no_documents"
    """A reranker without output documents; its input documents are never sent."""
    NO_QUESTION = "no_question"
    """No span of the trace says what was asked."""
    HIDDEN = "hidden"
    """The question or all texts are masked."""
    REDACT_FAILED = "redact_failed"
    """The `redact` hook raised, or returned no event."""
    QUEUE_FULL = "queue_full"
    """The application made spans faster than they could be taken."""
    OUTBOX_FULL = "outbox_full"
    """Too many events waited for the backend, in memory or in the spool."""
    SPOOL_LOST = "spool_lost"
    """The spool's file became unreadable with events in it."""
    UNAUTHORIZED = "unauthorized"
    """The backend refused the key (401, 403)."""
    REJECTED = "rejected"
    """The backend refused the event for good (another 3xx or 4xx)."""
    TOO_LARGE = "too_large"
    """The backend refused the event's size (413), even cut."""
    EMPTY_REFUSED = "empty_refused"
    """The backend has refused an event with an empty context before."""
    EXPIRED = "expired"
    """The backend could not be reached for as long as an event is retried."""
    SHUTDOWN = "shutdown"
    """Not delivered before the deadline of the shutdown."""
    INTERNAL_ERROR = "internal_error"
    """A fault in seer-otel; please report it."""

    __str__ = str.__str__

    @property
    def by_design(self) -> bool:
        """Whether nothing is missing at the backend because of it."""
        return self in (DropReason.NESTED, DropReason.REPEATED, DropReason.SUPERSEDED, DropReason.FILTERED)
