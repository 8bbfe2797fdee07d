"""Sets up in one of the ways that case 47 names, in a process of its own, and prints what came of it as JSON.

python set_up.py twice|proxy_provider|foreign_provider URL
"""

from __future__ import annotations

import json
import sys

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import seer_otel

part, url = sys.argv[1:]


class Foreign(trace.NoOpTracerProvider):
    """A provider of another make: it takes no span processor."""


sdk = TracerProvider()
if part == "twice":
    trace.set_tracer_provider(sdk)
elif part == "foreign_provider":
    trace.set_tracer_provider(Foreign())
before = trace.get_tracer_provider()
error = None
try:
    for _ in range(2 if part == "twice" else 1):
        seer_otel.attach(endpoint=url, sample_rate=1.0)
except Exception as caught:
    error = type(caught).__name__
with trace.get_tracer("case").start_as_current_span("VectorStoreRetriever") as span:
    span.set_attribute("openinference.span.kind", "RETRIEVER")
    span.set_attribute("input.value", "Twice query 0")
    span.set_attribute("retrieval.documents.0.document.id", "Twice0")
    span.set_attribute("retrieval.documents.0.document.content", "Twice passage 0.")
sdk.shutdown()
print(json.dumps({"error": error, "replaced": trace.get_tracer_provider() is not before}))
