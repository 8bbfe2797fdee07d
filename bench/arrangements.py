"""What is compared: span processors by name, each towards a sink, or with its way out stopped."""

from __future__ import annotations

import threading
from importlib.util import find_spec
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from seer_otel import Reply, SeerSpanProcessor

NAMES = {
    "batch": "BatchSpanProcessor",
    "langfuse": "Langfuse",
    "braintrust": "Braintrust",
    "phoenix": "Phoenix",
}
PEERS = ("langfuse", "braintrust", "phoenix")


def is_installed(peer: str) -> bool:
    return find_spec(peer) is not None


class Nothing(SpanProcessor):
    """The floor: a processor that does nothing."""


class Discard(SpanExporter):
    """Costs a batch processor nothing, so that only its hooks are timed."""

    def export(self, spans: Any) -> SpanExportResult:  # noqa: ARG002 - the SDK's signature
        return SpanExportResult.SUCCESS


class Taken:
    """A transport that costs ours nothing."""

    def send(self, body: bytes, idempotency_key: str) -> Reply:  # noqa: ARG002 - the seam's signature
        return Reply(200)

    def close(self) -> None:
        pass


class Stopped(SpanExporter):
    """An exporter and a transport of which no call returns until `go` is set."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.reached = threading.Event()

    def export(self, spans: Any) -> SpanExportResult:  # noqa: ARG002 - the SDK's signature
        self.reached.set()
        self.go.wait()
        return SpanExportResult.SUCCESS

    def send(self, body: bytes, idempotency_key: str) -> Reply:  # noqa: ARG002 - the seam's signature
        self.reached.set()
        self.go.wait()
        return Reply(200)

    def close(self) -> None:
        pass


def hooks_only(name: str, room: int) -> SpanProcessor:
    """A processor that never has to send while it is timed: nothing wakes the thread of a batch processor.

    Args:
        name: `nothing`, `seer-RATE`, `batch` or a peer's.
        room: spans that it must be able to hold.
    """
    sizes = {"max_queue_size": room, "max_export_batch_size": room}
    if name == "nothing":
        return Nothing()
    if name.startswith("seer"):
        return SeerSpanProcessor(
            transport=Taken(), sample_rate=float(name.partition("-")[2] or 1.0), max_queue_size=10_000_000
        )
    if name == "batch":
        return BatchSpanProcessor(Discard(), **sizes)
    if name == "langfuse":
        from langfuse._client.span_processor import LangfuseSpanProcessor

        return LangfuseSpanProcessor(
            public_key="pk", secret_key="sk", base_url="http://127.0.0.1:9", span_exporter=Discard()
        )
    if name == "braintrust":
        from braintrust.otel import BraintrustSpanProcessor

        return BraintrustSpanProcessor(
            api_key="key",
            parent="project_name:bench",
            api_url="http://127.0.0.1:9",
            SpanProcessor=lambda exporter: BatchSpanProcessor(Discard(), **sizes),  # noqa: ARG005 - its own is not used
        )
    if name == "phoenix":
        from phoenix.otel import BatchSpanProcessor as PhoenixSpanProcessor

        return PhoenixSpanProcessor(span_exporter=Discard())
    raise ValueError(name)


def sending(name: str, url: str) -> SpanProcessor:
    """A processor as its users have it, but for where it sends to.

    Args:
        name: `nothing`, `seer`, `batch` or a peer's.
        url: the sink's.
    """
    if name == "nothing":
        return Nothing()
    if name == "seer":
        return SeerSpanProcessor(endpoint=f"{url}/v1/log", sample_rate=1.0)
    if name == "batch":
        return BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{url}/v1/traces"))
    if name == "langfuse":
        from langfuse._client.span_processor import LangfuseSpanProcessor

        return LangfuseSpanProcessor(public_key="pk", secret_key="sk", base_url=url)
    if name == "braintrust":
        from braintrust.otel import BraintrustSpanProcessor

        return BraintrustSpanProcessor(api_key="key", parent="project_name:bench", api_url=url)
    if name == "phoenix":
        from phoenix.otel import BatchSpanProcessor as PhoenixSpanProcessor

        return PhoenixSpanProcessor(endpoint=f"{url}/v1/traces", protocol="http/protobuf")
    raise ValueError(name)
