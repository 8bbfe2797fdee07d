"""The spans that are measured: retrievals of documents of 800 characters with id, score and metadata."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.trace import INVALID_SPAN, Tracer, set_span_in_context

SCOPE = "openinference.instrumentation.bench"
"""Langfuse's processor sends only spans of instrumentations that it knows."""
DOCUMENTS = 10
TEXT = 800
NO_RETRIEVAL = {"http.method": "GET"}


def retrieval(number: int, documents: int = DOCUMENTS, text: int = TEXT) -> dict[str, Any]:
    """The attributes of one retriever span, with texts of their own: 42 for ten documents."""
    attributes: dict[str, Any] = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": f"question {number}?",
    }
    for rank in range(documents):
        prefix = f"retrieval.documents.{rank}.document"
        attributes[f"{prefix}.id"] = f"doc-{number}-{rank}"
        attributes[f"{prefix}.content"] = f"{number} {rank} ".ljust(text, "x")
        attributes[f"{prefix}.score"] = 1.0 / (rank + 1)
        attributes[f"{prefix}.metadata"] = json.dumps({"source": f"file-{rank}.md", "page": rank})
    return attributes


def provider(*processors: SpanProcessor) -> TracerProvider:
    """A provider as OpenInference's is: with room for the attributes of 500 documents."""
    made = TracerProvider(shutdown_on_exit=False, span_limits=SpanLimits(max_span_attributes=10_000))
    for processor in processors:
        made.add_span_processor(processor)
    return made


def tracer(*processors: SpanProcessor) -> Tracer:
    return provider(*processors).get_tracer(SCOPE)


class Recording(SpanProcessor):
    """Keeps what a provider calls, to be called again on another processor."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def on_start(self, span: Any, parent_context: Any = None) -> None:  # noqa: ARG002 - the SDK's signature
        self.calls.append(("on_start", span))

    def on_end(self, span: ReadableSpan) -> None:
        self.calls.append(("on_end", span))

    def on(self, processor: SpanProcessor) -> list[tuple[Callable[[Any], None], Any]]:
        """The calls, bound to a processor's hooks."""
        return [(getattr(processor, hook), span) for hook, span in self.calls]


def recorded(count: int, attributes: Callable[[int], dict[str, Any]], spans_a_trace: int = 10) -> Recording:
    """Run `count` spans in traces of a root and its children, and return what a processor got to see."""
    recording = Recording()
    traced = tracer(recording)
    number = 0
    while number < count:
        size = min(spans_a_trace, count - number)
        context = set_span_in_context(INVALID_SPAN)
        root = traced.start_span("bench", context=context, attributes=attributes(number))
        context = set_span_in_context(root)
        for child in range(1, size):
            traced.start_span("bench", context=context, attributes=attributes(number + child)).end()
        root.end()
        number += size
    return recording


def ended(count: int, documents: int = DOCUMENTS) -> list[ReadableSpan]:
    """Ended retriever spans, each a trace of its own."""
    recording = recorded(count, lambda number: retrieval(number, documents), spans_a_trace=1)
    return [span for hook, span in recording.calls if hook == "on_end"]
