"""Spans that found no room in the queue: whose they were, as far as it can be known without costing the application."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan

from ..conventions import convention
from ..notices import Notices
from ..reasons import DropReason
from ..stats import Counters
from .buffer import ENDED, Buffer
from .sdk import attributes_of

MAX_LOST = 100_000
"""Lost retrievals whose trace is remembered until the worker comes by; of other spans a tenth of that."""


class Losses:
    """What was lost since the worker last came by. Hooks note, the worker accounts."""

    def __init__(self) -> None:
        self._lost: deque[tuple[int, bool]] = deque()
        self._unknown = False

    def note(self, span: ReadableSpan, phase: bool) -> bool:
        """Note a span that is lost; return whether it was a retrieval that must be counted here and now."""
        context = span.context
        if context is None or not context.trace_flags.sampled:
            return False
        retrieval = phase is ENDED and is_retrieval(span)
        if len(self._lost) < (MAX_LOST if retrieval else MAX_LOST // 10):
            self._lost.append((context.trace_id, retrieval))
            return False
        self._unknown = True
        return retrieval

    def account(self, buffer: Buffer, counters: Counters, notices: Notices, now: float) -> None:
        """Mark the traces that miss spans as damaged, and count the retrievals among these."""
        for _ in range(len(self._lost)):
            trace_id, retrieval = self._lost.popleft()
            if buffer.lose(trace_id, retrieval, now):
                counters.add("seen")
                counters.drop(DropReason.QUEUE_FULL)
            notices.overflowed()
        if self._unknown:
            self._unknown = False
            buffer.lose_unknown()
            notices.overflowed()


def is_retrieval(span: ReadableSpan) -> bool:
    """Return whether a lost span was a retrieval: by its kind alone, read from where that costs least."""
    try:
        attributes: Mapping[str, Any] = span._attributes._dict  # type: ignore[union-attr]  # noqa: SLF001
    except AttributeError:
        attributes = attributes_of(span)
    return attributes.get(convention.KIND) in convention.RETRIEVALS
