"""Several retrievals for one answer: the question, what each hop asked, and which one the model answered from.

The question is the root's input. A hop whose query differs carries it as `subquery`. Without a mark the last
retrieval to end is the final context; here that would be wrong, as related reading is fetched after the answer.
"""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider
from shared import endpoint, finish, retrieve

from seer_otel import SeerSpanProcessor, using_final_context

provider = TracerProvider()
seer = SeerSpanProcessor(endpoint=endpoint(), sample_rate=1.0)
provider.add_span_processor(seer)
tracer = provider.get_tracer("multi-hop")


with tracer.start_as_current_span("agent") as root:
    question = "What awards did the director of Inception win?"
    root.set_attributes({"openinference.span.kind": "AGENT", "input.value": question})
    retrieve(tracer, "Who directed Inception?")
    with using_final_context():
        retrieve(tracer, "What awards did Christopher Nolan win?")
    with tracer.start_as_current_span("model") as span:
        span.set_attributes({"openinference.span.kind": "LLM", "output.value": "An Academy Award."})
    retrieve(tracer, "Which films are like Inception?")

finish(seer)
