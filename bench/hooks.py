"""What the application's thread pays for a span: CPU of the two hooks, and of a drop when the queue is full."""

from __future__ import annotations

import gc
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry.sdk.trace.export import BatchSpanProcessor

from seer_otel import SeerSpanProcessor

from . import arrangements, spans
from .child import fresh
from .figure import Goal, Row, Scale, row

SPANS = 1_000
ROOM = 100_000
QUEUE = 2_048
KINDS: dict[str, Callable[[int], dict[str, Any]]] = {
    "no retrieval": lambda number: spans.NO_RETRIEVAL,  # noqa: ARG005 - all alike
    "retrieval": spans.retrieval,
}


def cpu(calls: Sequence[tuple[Callable[[Any], None], Any]], each: int) -> float:
    """Nanoseconds of this thread's CPU that the calls take, for each of `each` spans."""
    gc.collect()
    gc.disable()
    try:
        began = time.thread_time_ns()
        for call, span in calls:
            call(span)
        return (time.thread_time_ns() - began) / each
    finally:
        gc.enable()


def both(names: list[str], rounds: int, count: int) -> dict[str, dict[str, list[float]]]:
    """Run in a fresh process: both hooks, over a processor that does nothing; by kind of span and processor."""
    results: dict[str, dict[str, list[float]]] = {}
    for kind, attributes in KINDS.items():
        recording, warm = spans.recorded(count, attributes), spans.recorded(1, attributes)
        costs: dict[str, list[float]] = {name: [] for name in names}
        for turn in range(rounds + 1):
            found = {}
            for name in ("nothing", *names):
                processor = arrangements.hooks_only(name, ROOM)
                for call, span in warm.on(processor):  # threads start with the first span
                    call(span)
                found[name] = cpu(recording.on(processor), count)
                processor.shutdown()
            if turn:  # the first is for caches, and for what is imported late
                for name in names:
                    costs[name].append(max(found[name] - found["nothing"], 1.0))
        results[kind] = costs
    return results


def measured(names: list[str], rounds: int, count: int) -> dict[str, dict[str, list[float]]]:
    # Peers' processors take a batch processor's sizes from its variables only.
    variables = {"OTEL_BSP_MAX_QUEUE_SIZE": str(ROOM), "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": str(ROOM)}
    return fresh("hooks:both", variables, names=names, rounds=rounds, count=count)


def hooks(scale: Scale) -> list[Row]:
    """`on_start` and `on_end`."""
    found = measured(["batch", "seer-0.1", "seer-1.0"], scale.rounds(15), scale.count(SPANS))
    goals = {"no retrieval": 0.40, "retrieval": 0.45}
    return [
        row(
            "hooks",
            f"both hooks, {kind}, sample rate {rate}",
            "ns",
            costs[f"seer-{rate}"],
            costs["batch"],
            "BatchSpanProcessor",
            goal=Goal("ratio", "<=", goals[kind]),
        )
        for kind, costs in found.items()
        for rate in ("0.1", "1.0")
    ]


@contextmanager
def log_calls() -> Iterator[list[str]]:
    """The loggers that this thread calls meanwhile, whatever a filter does with it then."""
    called: list[str] = []
    thread, factory = threading.get_ident(), logging.getLogRecordFactory()

    def record(name: str, *args: Any, **kwargs: Any) -> logging.LogRecord:
        if threading.get_ident() == thread:
            called.append(name)
        return factory(name, *args, **kwargs)

    logging.setLogRecordFactory(record)
    try:
        yield called
    finally:
        logging.setLogRecordFactory(factory)


def drops(rounds: int, count: int) -> dict[str, Any]:
    """Run in a fresh process: `on_end` while the queue is full, and how often filling it up logs on this thread."""
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        logging.basicConfig(level=logging.INFO, stream=nowhere)
        results: dict[str, Any] = {"costs": {}, "logged": {"batch": 0, "seer": 0}}
        for kind, attributes in KINDS.items():
            fill = spans.recorded(QUEUE, attributes)
            offered = spans.recorded(count, attributes)
            ends = [span for hook, span in offered.calls if hook == "on_end"]
            costs: dict[str, list[float]] = {"batch": [], "seer": []}
            for turn in range(rounds + 1):
                found = {}
                for name in ("nothing", "batch", "seer"):
                    with log_calls() as called:
                        processor, let_go = full(name, fill)
                    found[name] = cpu([(processor.on_end, span) for span in ends], count)
                    let_go()
                    processor.shutdown()
                    if name in costs and not turn:
                        results["logged"][name] += len(called)
                if turn:
                    for name, each in costs.items():
                        each.append(max(found[name] - found["nothing"], 1.0))
            results["costs"][kind] = costs
    return results


def full(name: str, fill: spans.Recording) -> tuple[Any, Callable[[], object]]:
    """A processor whose queue is full and whose thread is stopped, and what lets it go."""
    if name == "nothing":
        return arrangements.Nothing(), bool
    stopped = arrangements.Stopped()
    if name == "batch":
        processor: Any = BatchSpanProcessor(stopped, max_queue_size=QUEUE)
    else:
        # A hook of the user's runs in the worker, so one that waits stops it.
        processor = SeerSpanProcessor(
            transport=arrangements.Taken(),
            sample_rate=1.0,
            max_queue_size=QUEUE,
            filter=lambda event: not stopped.export(event),
        )
        spans.tracer(processor).start_span("bench", attributes=spans.retrieval(0, documents=1)).end()
        assert stopped.reached.wait(30)
    for _ in range(2):  # the second time makes up for what the thread took before it stopped
        for call, span in fill.on(processor):
            call(span)
        assert stopped.reached.wait(30)
    return processor, stopped.go.set


def drop(scale: Scale) -> list[Row]:
    """Drops when the queue is full."""
    found = fresh("hooks:drops", rounds=scale.rounds(7), count=scale.count(SPANS))
    logged = found["logged"]
    rows = [
        row(
            "drop",
            f"on_end, queue full, {kind}",
            "ns",
            costs["seer"],
            costs["batch"],
            "BatchSpanProcessor",
            goal=Goal("ratio", "<=", 0.05),
        )
        for kind, costs in found["costs"].items()
    ]
    calls = row(
        "drop",
        "log calls on the application's thread, queue full",
        "",
        [logged["seer"]],
        goal=Goal("value", "<=", 0),
        note=f"BatchSpanProcessor: {logged['batch']}",
    )
    return [*rows, calls]
