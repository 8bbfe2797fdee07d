"""Spans by hand: what seer-otel reads are OpenInference's attributes, whoever wrote them."""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider
from shared import endpoint, finish, search

from seer_otel import SeerSpanProcessor

provider = TracerProvider()
seer = SeerSpanProcessor(endpoint=endpoint(), sample_rate=1.0)
provider.add_span_processor(seer)
tracer = provider.get_tracer("manual")

question = "Who directed Inception?"
with tracer.start_as_current_span("answer") as root:
    root.set_attributes({"openinference.span.kind": "CHAIN", "input.value": question})
    with tracer.start_as_current_span("search") as span:
        span.set_attributes({"openinference.span.kind": "RETRIEVER", "input.value": question})
        for rank, (name, text, score) in enumerate(search(question)):
            document = f"retrieval.documents.{rank}.document"
            span.set_attribute(f"{document}.id", name)
            span.set_attribute(f"{document}.content", text)
            span.set_attribute(f"{document}.score", score)

finish(seer)
