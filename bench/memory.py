"""What is held: retrievals behind a sender that does not come back, and traces that nobody ends."""

from __future__ import annotations

import gc
import resource
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import INVALID_SPAN, set_span_in_context

from seer_otel import SeerSpanProcessor

from . import arrangements, spans
from .child import fresh
from .figure import Goal, Row, Scale, row

MB = 1024 * 1024
QUEUED = 2_048
LARGE = {"documents": 50, "text": 4_000}
ABANDONED = 100_000
BOUNDS = 3 * 64.0
"""MB that the queue, the open traces and the outbox may hold, 64 each."""
SETTLED = 0.5
"""Seconds after which what was taken has gone as far as it can."""
AT_ONCE = 1_000
"""Traces that may wait for the worker, so that it is the buffer that is measured and not the queue."""


class Memory:
    """How much more there is than in the beginning, in MB: by tracemalloc, or resident in the process."""

    def __init__(self, traced: bool) -> None:
        self._traced = traced
        self._highest = 0.0
        if traced:
            tracemalloc.start()
        gc.collect()
        self._before = self._now()

    def _now(self) -> float:
        if self._traced:
            return tracemalloc.get_traced_memory()[0] / MB
        if sys.platform == "linux":
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            return pages * resource.getpagesize() / MB
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MB  # its highest, elsewhere

    def look(self) -> None:
        """Note the highest; tracemalloc does so itself."""
        if not self._traced:
            self._highest = max(self._highest, self._now())

    @property
    def now(self) -> float:
        gc.collect()
        return self._now() - self._before

    @property
    def peak(self) -> float:
        highest = tracemalloc.get_traced_memory()[1] / MB if self._traced else self._highest
        return highest - self._before


def queued(
    names: list[str], count: int, traced: bool, documents: int = 10, text: int = 800
) -> dict[str, float]:
    """Run in a fresh process: MB held, and at most, for `count` retrievals behind a stopped sender."""
    stopped = arrangements.Stopped()
    made: list[Any] = []
    if "batch" in names:
        made.append(BatchSpanProcessor(stopped))
    if "seer" in names:
        made.append(SeerSpanProcessor(transport=stopped, sample_rate=1.0))
    traced_by = spans.tracer(*made)
    traced_by.start_span("bench", attributes=spans.retrieval(0)).end()  # threads, and what is imported late
    time.sleep(SETTLED)
    memory = Memory(traced)
    for number in range(1, count + 1):
        traced_by.start_span("bench", attributes=spans.retrieval(number, documents, text)).end()
        if number % 50 == 0:
            memory.look()
    time.sleep(SETTLED)
    memory.look()
    return {"held": memory.now, "peak": memory.peak}


def memory(scale: Scale) -> list[Row]:
    """Queued retrievals."""
    count = scale.count(QUEUED)
    rows = []
    for words, traced, rounds in (("allocated", True, 1), ("resident", False, scale.rounds(3))):
        found: dict[str, list[dict[str, float]]] = {"batch": [], "seer": [], "both": []}
        for _ in range(rounds):
            for name, each in found.items():
                names = ["batch", "seer"] if name == "both" else [name]
                each.append(fresh("memory:queued", names=names, count=count, traced=traced))
        held = {name: [result["held"] for result in each] for name, each in found.items()}
        more = [both - batch for both, batch in zip(held["both"], held["batch"], strict=True)]
        rows += [
            row(
                "memory",
                f"2,048 retrievals queued, {words}",
                "MB",
                held["seer"],
                held["batch"],
                "BatchSpanProcessor",
                goal=Goal("ratio", "<=", 1.0),
            ),
            row(
                "memory",
                f"2,048 beside BatchSpanProcessor's, {words}",
                "MB",
                more,
                goal=Goal("value", "<=", 2, "MB"),
            ),
        ]
    large = scale.count(1_500)
    full = fresh("memory:queued", names=["seer"], count=large, traced=True, **LARGE)
    rows.append(
        row(
            "memory",
            "peak, 50 x 4,000 characters each, backend stopped",
            "MB",
            [full["peak"]],
            [BOUNDS],
            "the documented bounds",
            goal=Goal("ratio", "<=", 1.0),
            note=f"{large * 50 * 4_000 / MB:.0f} MB offered",
        )
    )
    return rows


def open_traces(abandoned: int, more: int) -> dict[str, float]:
    """Run in a fresh process: traces that are never ended, then `more` that are, and what is left of them.

    Without tracemalloc, which takes four times as long; the interpreter counts its blocks anyway.
    """
    processor = SeerSpanProcessor(transport=arrangements.Taken(), sample_rate=1.0)
    traced = spans.tracer(processor)
    attributes = spans.retrieval(0, documents=1, text=80)
    memory = Memory(traced=False)

    def run(count: int, ends: bool) -> None:
        before = processor.stats().traces_seen
        for number in range(1, count + 1):
            root = traced.start_span("bench", context=set_span_in_context(INVALID_SPAN))
            traced.start_span("bench", context=set_span_in_context(root), attributes=attributes).end()
            if ends:
                root.end()
            if number % AT_ONCE == 0:
                until = time.monotonic() + 30
                while processor.stats().traces_seen < before + number and time.monotonic() < until:
                    time.sleep(0.01)
                memory.look()
        processor.flush(60.0)
        memory.look()

    run(abandoned, ends=False)
    peak, released, resident, blocks = memory.peak, processor.stats(), memory.now, sys.getallocatedblocks()
    run(more, ends=True)
    after = processor.stats()
    return {
        "peak": peak,
        "unreleased": abandoned - released.sent - sum(released.dropped.values()),
        "lost": sum(after.dropped.values()),
        "left": resident,
        "growth": memory.now - resident,
        "blocks": sys.getallocatedblocks() - blocks,
        "unsent": abandoned + more - after.sent - sum(after.dropped.values()),
    }


def traces(scale: Scale) -> list[Row]:
    """Open traces."""
    abandoned = scale.count(ABANDONED)
    more = 1_000_000 if scale.long else scale.count(50_000)
    found = fresh("memory:open_traces", abandoned=abandoned, more=more)
    ran = f"{abandoned:,} abandoned"
    then = f"over {more:,} traces; {found['blocks']:+,} blocks of the interpreter's"
    return [
        row(
            "traces",
            "abandoned traces: retrievals not released",
            "",
            [found["unreleased"]],
            goal=Goal("value", "<=", 0),
            note=f"{ran}, {found['lost']:.0f} lost",
        ),
        row(
            "traces",
            "abandoned traces: most that is resident",
            "MB",
            [found["peak"]],
            [BOUNDS],
            "the documented bounds",
            goal=Goal("ratio", "<=", 1.0),
            note=f"{found['left']:.1f} MB when released",
        ),
        row(
            "traces",
            "resident memory that more traces leave",
            "MB",
            [found["growth"]],
            goal=Goal("value", "<=", 2, "MB"),
            note=then,
        ),
        row(
            "traces",
            "retrievals neither sent nor counted",
            "",
            [found["unsent"]],
            goal=Goal("value", "<=", 0),
        ),
    ]
