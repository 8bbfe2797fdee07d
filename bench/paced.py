"""An application at 200 retrievals a second: how long the end of a span takes, and what CPU all of it costs."""

from __future__ import annotations

import statistics
import time

from . import arrangements, sink, spans
from .child import fresh
from .figure import Goal, Row, Scale, row

RATE = 200
NAMES = ("nothing", "batch", "seer")


def app(name: str, url: str, count: int) -> dict[str, float]:
    """Run in a fresh process: `count` retrievals, evenly spaced."""
    processor = arrangements.sending(name, url)
    traced = spans.tracer(processor)
    attributes = [spans.retrieval(number) for number in range(64)]
    traced.start_span("bench", attributes=attributes[0]).end()  # what comes with the first event is no pace
    processor.force_flush(10_000)
    took = []
    cpu, began = time.process_time(), time.perf_counter()
    for number in range(count):
        time.sleep(max(0.0, began + number / RATE - time.perf_counter()))
        span = traced.start_span("bench", attributes=attributes[number % 64])
        start = time.perf_counter_ns()
        span.end()
        took.append(time.perf_counter_ns() - start)
    processor.force_flush(30_000)
    spent = (time.process_time() - cpu) / count
    return {
        "p50": statistics.median(took) / 1000,
        "p99": statistics.quantiles(took, n=100)[98] / 1000,
        "cpu": 1e6 * spent,
    }


def paced(scale: Scale) -> list[Row]:
    """Latency of a span's end."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in NAMES}
    with sink.running() as url:
        for _ in range(scale.rounds(3)):
            for name in NAMES:
                found[name].append(fresh("paced:app", name=name, url=url, count=scale.count(800)))

    def of(name: str, what: str) -> list[float]:
        return [each[what] for each in found[name]]

    def over_nothing(name: str) -> list[float]:
        return [max(x - y, 1.0) for x, y in zip(of(name, "cpu"), of("nothing", "cpu"), strict=True)]

    return [
        row(
            "paced",
            "p99 of span end, 200 retrievals/s",
            "us",
            of("seer", "p99"),
            of("nothing", "p99"),
            "no-op processor",
            goal=Goal("ratio", "<=", 1.3),
        ),
        row("paced", "p50 of the same", "us", of("seer", "p50"), of("nothing", "p50"), "no-op processor"),
        row(
            "paced",
            "p99 of the same, BatchSpanProcessor",
            "us",
            of("batch", "p99"),
            of("nothing", "p99"),
            "no-op processor",
        ),
        row(
            "paced",
            "CPU a retrieval, 200 retrievals/s",
            "us",
            over_nothing("seer"),
            over_nothing("batch"),
            "BatchSpanProcessor",
        ),
    ]
