"""From a released trace to the outbox: assemble, filter, redact, clamp, encode; every outcome is counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..assembly import assemble
from ..config import Config
from ..delivery.outbox import Outbox
from ..event import Event, clamp, encode
from ..notices import Notices
from ..reasons import DropReason
from ..scrub import scrub
from ..stats import Counters
from .buffer import Release
from .sdk import read

SAMPLE_RATE = "seer_otel.sample_rate"
SAMPLED_BY = "seer_otel.sampled_by"
FULL = 1.0
"""The sample rate of each event that is sent: the backend would sample a second time, were it not told this."""
MAX_REMEMBERED = 4_000
"""Code points of a root's question that are remembered for late spans: there may be ten thousand of these."""


class Dispatch:
    """Sends traces on. Runs in the worker, as do the user's hooks that it calls.

    Attributes:
        config: the settings; hooks may come late.
    """

    def __init__(self, config: Config, outbox: Outbox, counters: Counters, notices: Notices) -> None:
        self.config = config
        self._rules = config.rules
        self._outbox = outbox
        self._counters = counters
        self._notices = notices

    def send(self, released: Release) -> None:
        """Turn what was released of a trace into events and hand them to delivery. Never raises."""
        if not released.spans:
            return
        trace = released.trace
        marks = {SAMPLE_RATE: trace.rate, SAMPLED_BY: "label" if trace.labelled else "trace"}
        marked = self.config.redact is None  # a hook sees the event without them
        try:
            assembly = assemble(
                (read(span) for span in released.spans),
                self._rules,
                memory=trace.memory,
                partial=released.partial,
                accepts=self._accepts if self.config.filter is not None else None,
                sample_rate=FULL if marked else None,
                metadata=marks if marked else None,
            )
        except Exception as error:  # noqa: BLE001 - the worker must outlive whatever this is
            self._notices.fault(error)
            self._counters.drop(DropReason.INTERNAL_ERROR, released.seen)
            return
        question = assembly.memory.root_question
        trace.memory = assembly.memory
        if question is not None and len(question) > MAX_REMEMBERED:
            trace.memory = replace(trace.memory, root_question=question[:MAX_REMEMBERED])
        # A processor that runs after ours may have turned a span into a retrieval, or back, since it was counted.
        self._count("seen", len(assembly.events) + len(assembly.dropped) - released.seen)
        for reason in assembly.dropped.values():
            self._drop(reason)
        self._count("attributes_dropped", assembly.attributes_dropped)
        self._count("labels_unreadable", assembly.labels_unreadable)
        self._notices.assembled(assembly.attributes_dropped, assembly.labels_unreadable)
        for event in assembly.events:
            self._deliver(event, None if marked else marks)

    def _count(self, name: str, amount: int) -> None:
        if amount:
            self._counters.add(name, amount)

    def _deliver(self, event: Event, marks: dict[str, Any] | None) -> None:
        ready = self._redacted(event)
        if ready is None:
            self._drop(DropReason.REDACT_FAILED)
            return
        is_ours = ready is event
        try:
            if marks is not None:
                ready = replace(ready, sample_rate=FULL, metadata={**ready.metadata, **marks})
            clamped = clamp(ready)
            clean, scrubbed = clamped.event, 0
            if self.config.scrub != "none":  # after the limits, which bound the work
                clean, scrubbed = scrub(clean, everywhere=self.config.scrub == "all")
            body = encode(clean)
        except Exception as error:  # noqa: BLE001 - the worker must outlive whatever this is
            if not is_ours:  # the hook put something in that no event has
                self._drop(DropReason.REDACT_FAILED)
                return
            self._notices.fault(error)
            self._counters.drop(DropReason.INTERNAL_ERROR)
            return
        self._count("secrets_scrubbed", scrubbed)
        self._count("passages_cut", clamped.passages_cut)
        self._count("texts_cut", clamped.texts_cut)
        self._notices.clamped(clamped.passages_cut)
        self._outbox.put(body, f"{event.trace_id}-{event.span_id}", is_empty=not ready.context)

    def _drop(self, reason: DropReason) -> None:
        self._counters.drop(reason)
        self._notices.dropped(reason)

    def _accepts(self, event: Event) -> bool:
        accepts = self.config.filter
        try:
            return accepts is None or bool(accepts(event))
        except Exception as error:  # noqa: BLE001 - the hook is the application's
            self._notices.warn("filter", "The filter hook failed; its event is not sent.", error=error)
            return False

    def _redacted(self, event: Event) -> Event | None:
        """The event as the user's hook wants it; None if the hook fails or empties it."""
        if self.config.redact is None:
            return event
        try:
            redacted = self.config.redact(event)
            return redacted if isinstance(redacted, Event) and redacted.task.strip() else None
        except Exception as error:  # noqa: BLE001 - the hook is the application's
            self._notices.warn("redact", "The redact hook failed; its event is not sent.", error=error)
            return None
