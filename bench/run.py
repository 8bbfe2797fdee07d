"""What the application pays, and how fast events leave: ratios against the SDK's batch processor, in one run.

    python bench/run.py [--rounds N] [--spans N]

Absolute figures depend on the machine; only the ratios mean anything. Loopback servers only.
"""

from __future__ import annotations

import argparse
import http.server
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import INVALID_SPAN, set_span_in_context

from seer_otel import InMemoryTransport, SeerSpanProcessor

DOCUMENTS = 10
TEXT = 800


class Discard(SpanExporter):
    """Costs the batch processor nothing, so that only its hooks are timed."""

    def export(self, spans: Any) -> SpanExportResult:  # noqa: ARG002
        return SpanExportResult.SUCCESS


class Nothing(SpanProcessor):
    """The floor."""


def retriever_attributes(number: int) -> dict[str, Any]:
    """A retrieval of ten documents of 800 characters: 42 attributes."""
    attributes: dict[str, Any] = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": f"question {number}?",
    }
    for rank in range(DOCUMENTS):
        prefix = f"retrieval.documents.{rank}.document"
        attributes[f"{prefix}.id"] = f"doc-{number}-{rank}"
        attributes[f"{prefix}.content"] = f"{number} {rank} ".ljust(TEXT, "x")
        attributes[f"{prefix}.score"] = 1.0 / (rank + 1)
        attributes[f"{prefix}.metadata"] = json.dumps({"source": f"file-{rank}.md", "page": rank})
    return attributes


def hooks(rounds: int) -> None:
    """CPU of the application's thread for `on_start` and `on_end`, called directly on spans made beforehand.

    Over a processor that does nothing. One span in ten is a root, as in a small trace.
    """
    count = 2_000
    small, large = {"http.method": "GET"}, retriever_attributes(0)
    spans: dict[str, list[tuple[Any, ReadableSpan]]] = {}
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("bench")
    for name, attributes in (("small span", small), ("retriever span", large)):
        made = []
        context = None
        for number in range(count):
            span = tracer.start_span("bench", context=context, attributes=attributes)
            context = set_span_in_context(span if number % 10 < 9 else INVALID_SPAN)
            span.end()
            made.append((span, span._readable_span()))  # type: ignore[attr-defined]  # noqa: SLF001
        spans[name] = made

    def seer() -> SpanProcessor:
        return SeerSpanProcessor(transport=InMemoryTransport(), sample_rate=0.0, max_queue_size=10_000_000)

    makers: dict[str, Callable[[], SpanProcessor]] = {
        "nothing": Nothing,
        "batch": lambda: BatchSpanProcessor(Discard(), max_queue_size=1_000_000),
        "seer": seer,
    }
    for name, made in spans.items():
        best: dict[tuple[str, str], float] = {}
        for _ in range(rounds):
            for maker, make in makers.items():
                processor = make()
                for hook in ("on_start", "on_end"):
                    call = getattr(processor, hook)
                    index = 0 if hook == "on_start" else 1
                    begin = time.thread_time_ns()
                    for pair in made:
                        call(pair[index])
                    took = (time.thread_time_ns() - begin) / count
                    best[maker, hook] = min(took, best.get((maker, hook), took))
                processor.shutdown()
        cost = {key: took - best["nothing", key[1]] for key, took in best.items()}
        batch = cost["batch", "on_start"] + cost["batch", "on_end"]
        start, end = cost["seer", "on_start"], cost["seer", "on_end"]
        print(
            f"hooks, {name:15} batch processor {batch:5.0f} ns   seer {start + end:5.0f} ns"
            f" (start {start:.0f}, end {end:.0f})   ratio {(start + end) / batch:.2f}"
        )


class Sink(http.server.BaseHTTPRequestHandler):
    """Takes anything, quickly."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


def serve() -> None:
    """Run the sink in a process of its own, so that its CPU is not ours."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


def throughput(count: int) -> None:
    """Retriever spans a second, and CPU a span, until everything has left the process."""
    server = subprocess.Popen(
        [sys.executable, __file__, "--sink"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    assert server.stdin is not None
    port = int(server.stdout.readline())
    results: dict[str, tuple[float, float]] = {}
    attributes = [retriever_attributes(number) for number in range(64)]

    def run(processor: SpanProcessor, in_hand: int) -> tuple[float, float]:
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(processor)
        tracer = provider.get_tracer("bench")
        cpu, wall = time.process_time(), time.perf_counter()
        for number in range(count):
            tracer.start_span("retrieve", attributes=attributes[number % 64]).end()
            if number % in_hand == in_hand - 1:
                processor.force_flush(60_000)
        processor.force_flush(60_000)
        took = (time.process_time() - cpu) / count, count / (time.perf_counter() - wall)
        processor.shutdown()
        return took

    try:
        for _ in range(3):
            for name in ("nothing", "batch", "seer"):
                if name == "nothing":
                    processor: SpanProcessor = Nothing()
                elif name == "batch":
                    exporter = OTLPSpanExporter(endpoint=f"http://127.0.0.1:{port}/v1/traces")
                    processor = BatchSpanProcessor(exporter)
                else:
                    processor = SeerSpanProcessor(endpoint=f"http://127.0.0.1:{port}/v1/log", sample_rate=1.0)
                cpu, rate = run(processor, 1_000)
                before = results.get(name, (cpu, rate))
                results[name] = min(cpu, before[0]), max(rate, before[1])
    finally:
        server.stdin.close()
        server.wait(10)
    floor = results["nothing"][0]
    for name in ("batch", "seer"):
        cpu, rate = results[name]
        print(
            f"send, {name:6} {rate:7.0f} retriever spans/s   {1e6 * (cpu - floor):5.0f} us CPU each over making them"
        )
    batch, ours = results["batch"], results["seer"]
    print(f"send, ratio  rate {ours[1] / batch[1]:.2f}   CPU {(ours[0] - floor) / (batch[0] - floor):.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9, help="rounds of the hook benchmark; the best counts")
    parser.add_argument("--spans", type=int, default=3_000, help="spans of the throughput benchmark")
    parser.add_argument("--sink", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.sink:
        serve()
        return 0
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores")
    hooks(args.rounds)
    throughput(args.spans)
    return 0


if __name__ == "__main__":
    sys.exit(main())
