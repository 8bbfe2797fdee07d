"""Spans that found no room in the queue: whose they were, as far as it can be known without costing the application."""

from __future__ import annotations

from collections import deque
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan

from ..conventions.openinference import KIND, RETRIEVALS
from ..notices import Notices
from ..reasons import DropReason
from ..stats import Counters
from .buffer import Buffer
from .sdk import attributes_of

LOOK = 64
"""Spans in the queue, at each multiple of which a hook looks closer: at the bound of the queue, which is so exact to
that many, at the worker, and whether this is still the process that it was."""
LOOK_AT_LOST = 1_024
"""The same for lost spans."""
MAX_LOST = 100_000
"""Lost retrievals whose trace is remembered until the worker comes by; of other spans a tenth of that."""


class Losses:
    """What was lost since the worker last came by. Hooks note, the worker accounts."""

    def __init__(self) -> None:
        self._lost: deque[tuple[Any, bool]] = deque()
        self._unknown = False

    def note(self, span: Any, phase: bool) -> bool:
        """Note a span that is lost; return false where that needs a closer look: now and then, and at the bound."""
        lost = self._lost
        length = len(lost)
        if not length % LOOK_AT_LOST or length >= MAX_LOST // 10:
            return False
        try:  # where they lie, a look at them costs least
            retrieval = phase and span._attributes._dict.get(KIND) in RETRIEVALS  # noqa: SLF001
            lost.append((span._context, retrieval))  # noqa: SLF001
        except AttributeError:
            return False
        return True

    def note_closely(self, span: ReadableSpan, retrieval: bool) -> bool:
        """Note a span that is lost; return whether it was a retrieval that must be counted here and now."""
        if len(self._lost) < (MAX_LOST if retrieval else MAX_LOST // 10):
            self._lost.append((span.context, retrieval))
            return False
        self._unknown = True
        return retrieval

    def account(self, buffer: Buffer, counters: Counters, notices: Notices, now: float) -> None:
        """Mark the traces that miss spans as damaged, and count the retrievals among these."""
        for _ in range(len(self._lost)):
            context, retrieval = self._lost.popleft()
            if context is None or not context.trace_flags.sampled:
                continue
            if buffer.lose(context.trace_id, retrieval, now):
                counters.add("seen")
                counters.drop(DropReason.QUEUE_FULL)
            notices.overflowed()
        if self._unknown:
            self._unknown = False
            buffer.lose_unknown()
            notices.overflowed()


def is_retrieval(span: ReadableSpan) -> bool:
    """Return whether a lost span was a retrieval, by its kind alone."""
    return attributes_of(span).get(KIND) in RETRIEVALS
