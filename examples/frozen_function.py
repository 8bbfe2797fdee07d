"""A function whose process is frozen between calls, as in AWS Lambda: no thread runs once the handler has returned."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from shared import endpoint, finish, retrieve

from seer_otel import SeerSpanProcessor

# Once a process. `synchronous` sends when a trace ends, within `timeout` seconds and before the handler returns. In the
# environment: SEER_OTEL_SYNCHRONOUS=true. Without it, the handler's last line would be a call of seer.flush() with a
# little less than the time that the runtime has left for it.
provider = TracerProvider()
seer = SeerSpanProcessor(endpoint=endpoint(), sample_rate=1.0, synchronous=True, timeout=2.0)
provider.add_span_processor(seer)
tracer = provider.get_tracer("function")


def handler(event: dict[str, Any]) -> dict[str, Any]:
    """What the runtime calls."""
    with tracer.start_as_current_span("answer", attributes={"input.value": event["question"]}):
        return {"passages": retrieve(tracer, event["question"])}


for question in ("Who directed Inception?", "Where is London?"):
    handler({"question": question})
    print(f"{question} Sent so far: {seer.stats().sent}")

finish(seer)
