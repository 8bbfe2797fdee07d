"""Beside what is there: an OTLP exporter and seer-otel on one provider. Both receive, and neither knows the other.

`OTEL_EXPORTER_OTLP_ENDPOINT` names the collector; without it a stand-in on this machine takes the spans.
"""

from __future__ import annotations

import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from shared import endpoint, finish, retrieve

from seer_otel import attach


class Collector(BaseHTTPRequestHandler):
    """Takes OTLP requests and says how large they were."""

    def do_POST(self) -> None:
        size = len(self.rfile.read(int(self.headers["Content-Length"])))
        print(f"The collector received {size} bytes at {self.path}.")
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Print nothing."""


if "OTEL_EXPORTER_OTLP_ENDPOINT" not in os.environ:
    collector = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{collector.server_port}"

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
seer = attach(provider, endpoint=endpoint(), sample_rate=1.0)

retrieve(provider.get_tracer("beside"), "Who directed Inception?")

provider.force_flush()
finish(seer)
