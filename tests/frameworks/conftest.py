"""What the framework tests share: a provider with our processor, the events it gives, and passages to search."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

from seer_otel import InMemoryTransport, SeerSpanProcessor

PASSAGES = {
    "inception": "Inception is a film of 2010 that Christopher Nolan directed.",
    "nolan": "Christopher Nolan won the Academy Award for Oppenheimer.",
    "matrix": "The Matrix is a film of 1999 by the Wachowskis.",
    "london": "London lies on the Thames.",
}


def embed(text: str) -> list[float]:
    """An embedding without a model: which of the passages' words are in `text`."""
    vocabulary = sorted(set(re.findall(r"\w+", " ".join(PASSAGES.values()).lower())))
    words = set(re.findall(r"\w+", text.lower()))
    vector = [float(word in words) for word in vocabulary]
    length = math.hypot(*vector) or 1.0
    return [value / length for value in vector]


@dataclass
class Traced:
    """A provider with our processor on it."""

    provider: TracerProvider
    seer: SeerSpanProcessor
    transport: InMemoryTransport

    def events(self) -> list[dict[str, Any]]:
        """What was sent after everything was released, in the order in which the retrievals ended."""
        assert self.seer.flush(10).complete
        return sorted(self.transport.events, key=lambda event: event["created_at"])

    def event(self) -> dict[str, Any]:
        """The only event."""
        [event] = self.events()
        return event


@pytest.fixture
def traced() -> Iterator[Traced]:
    """A provider that keeps every trace; at the end every retrieval span must be accounted for."""
    transport = InMemoryTransport()
    seer = SeerSpanProcessor(transport=transport, sample_rate=1.0)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(seer)
    yield Traced(provider, seer, transport)
    provider.shutdown()
    stats = seer.stats()
    assert stats.held == 0
    assert stats.sent == len(transport.events)
    assert stats.seen == stats.sent + sum(stats.dropped.values())
