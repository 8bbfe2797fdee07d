"""Labels: where you know which documents are relevant, say so, and the backend can score the retrieval.

A labelled trace is always sent, however small the sample rate: here it is 0, and one event of two goes out.
"""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider
from shared import endpoint, finish, retrieve

from seer_otel import SeerSpanProcessor, using_ground_truth

provider = TracerProvider()
seer = SeerSpanProcessor(endpoint=endpoint(), sample_rate=0.0)
provider.add_span_processor(seer)
tracer = provider.get_tracer("labelled")


with using_ground_truth(["inception"], answer="Christopher Nolan"):
    retrieve(tracer, "Who directed Inception?")
retrieve(tracer, "Where is London?")

finish(seer)
