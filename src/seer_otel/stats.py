"""What became of every retrieval span: counters that always add up."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from .reasons import DropReason


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts since the process started (or forked). `seen == sent + held + sum(dropped.values())`, always.

    Attributes:
        seen: retrieval spans of kept traces.
        sent: of these, those whose event the backend took.
        held: those that wait: in an open trace, or for the backend, in memory or on disk.
        dropped: those that became no delivered event, by reason; `DropReason.by_design` tells losses apart.
        traces_seen: traces of which a span was taken.
        traces_sampled_out: of these, those that sampling left out.
        passages_cut: passages beyond the backend's limit of 50.
        texts_cut: texts cut to the backend's limit of 4,000 characters.
        secrets_scrubbed: values in which something that looks like a secret was replaced.
        attributes_dropped: events whose span lost attributes to the SDK's limit.
        labels_unreadable: events that went out without their ground truth, as it could not be read.
        retries: requests sent again.
        spooled: of `held`, those that are on disk.
        recovered: of `seen`, those that an earlier process had left on disk.
    """

    seen: int = 0
    sent: int = 0
    held: int = 0
    dropped: Mapping[DropReason, int] = field(default_factory=dict)
    traces_seen: int = 0
    traces_sampled_out: int = 0
    passages_cut: int = 0
    texts_cut: int = 0
    secrets_scrubbed: int = 0
    attributes_dropped: int = 0
    labels_unreadable: int = 0
    retries: int = 0
    spooled: int = 0
    recovered: int = 0


@dataclass(frozen=True, slots=True)
class FlushResult:
    """What a flush did.

    Attributes:
        sent: retrieval spans whose event the backend took during the flush.
        spooled: of `held`, those that are on disk, for this process or the next one.
        held: those that got here before the flush and still wait.
        dropped: those that were given up during the flush, by reason.
        elapsed: seconds.
    """

    sent: int = 0
    spooled: int = 0
    held: int = 0
    dropped: Mapping[DropReason, int] = field(default_factory=dict)
    elapsed: float = 0.0

    @property
    def complete(self) -> bool:
        """Whether nothing that got here before the flush is left unsent."""
        return self.held == 0


class Counters:
    """The counters behind `Stats`; any thread may count."""

    def __init__(self) -> None:
        # A finalizer or a signal handler that ends a span may run in the middle of this, on the same thread.
        self._lock = threading.RLock()
        self._counts: Counter[str] = Counter()
        self._dropped: Counter[DropReason] = Counter()

    def add(self, name: str, amount: int = 1) -> None:
        """Count under a field's name of `Stats`."""
        with self._lock:
            self._counts[name] += amount

    def drop(self, reason: DropReason, amount: int = 1) -> None:
        """Count retrieval spans that will not be sent."""
        with self._lock:
            self._dropped[reason] += amount

    def snapshot(self) -> Stats:
        """Return the counts of one moment."""
        with self._lock:
            dropped = {reason: count for reason, count in self._dropped.items() if count}
            held = self._counts["seen"] - self._counts["sent"] - sum(dropped.values())
            return Stats(held=held, dropped=dropped, **self._counts)
