"""What one giant span costs the worker: the time of its thread, and the memory beyond what the span itself holds.

Each span is measured in a process of its own, in a trace of its own, through a processor that works on the calling
thread (`synchronous`): the queue, the open trace, the assembly, the scrubber, the limits, the body. Settings are those
that cost most.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import time
import tracemalloc
from dataclasses import dataclass
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.trace import set_span_in_context

from seer_otel import SeerSpanProcessor

from .catalogue import MB, ORDINARY, Attributes, Giant, catalogue
from .watch import Backend, Watch

MAX_MS, MAX_MB, MAX_KEPT = 50.0, 50.0, 5.0
"""What a span may cost: time, memory beyond its own, and what of that is still there when it is gone."""
ATTEMPTS = 3
HANGS = 60.0
"""Seconds after which a span is given up: something takes more than linear time."""
SHOWN = 15


@dataclass(frozen=True)
class Cost:
    """What a span cost: milliseconds, megabytes at most, and megabytes that stay; or what went wrong."""

    name: str
    ms: float = 0.0
    mb: float = 0.0
    kept: float = 0.0
    fault: str = ""

    def holds(self, factor: float) -> bool:
        """Whether it is within the limits."""
        return not self.fault and self.share <= factor

    @property
    def share(self) -> float:
        """How much of its limits it takes, of the one that it takes most of."""
        return max(self.ms / MAX_MS, self.mb / MAX_MB, self.kept / MAX_KEPT)


class Recording(SpanProcessor):
    """Keeps what a provider calls, to be called again on another processor."""

    def __init__(self) -> None:
        self._calls: list[tuple[str, Any]] = []

    def on_start(self, span: Any, parent_context: Any = None) -> None:  # noqa: ARG002 - the SDK's signature
        self._calls.append(("on_start", span))

    def on_end(self, span: ReadableSpan) -> None:
        self._calls.append(("on_end", span))

    def play(self, processor: SpanProcessor) -> None:
        for hook, span in self._calls:
            getattr(processor, hook)(span)


def recorded(attributes: Attributes, above: bool) -> Recording:
    """A trace of a span with these attributes, and where that is no retrieval, of an ordinary one beneath."""
    recording = Recording()
    unlimited = SpanLimits(max_span_attributes=SpanLimits.UNSET)
    provider = TracerProvider(span_limits=unlimited, shutdown_on_exit=False)
    provider.add_span_processor(recording)
    tracer = provider.get_tracer("fuzz")
    root = tracer.start_span("giant", attributes=dict(attributes))
    if above:
        tracer.start_span("retrieval", context=set_span_in_context(root), attributes=dict(ORDINARY)).end()
    root.end()
    return recording


def run(factor: float, only: str = "") -> bool:
    """Measure the catalogue, print what costs most, and say whether all of it is within the limits."""
    giants = [giant for giant in catalogue() if only in giant.name]
    began = time.monotonic()
    costs = []
    for number, giant in enumerate(giants, 1):
        costs.append(_cost(giant, factor))
        if sys.stderr.isatty():
            print(f"\rgiants: {number} of {len(giants)}", end="", flush=True, file=sys.stderr)
    costs.sort(key=lambda each: (bool(each.fault), each.share), reverse=True)
    beyond = [each for each in costs if not each.holds(factor)]
    print(f"\n{'giant span':<60} {'ms':>8} {'MB':>8} {'MB kept':>8}")
    for each in costs[: max(SHOWN, len(beyond))]:
        print(f"{each.name:<60} {each.ms:8.1f} {each.mb:8.1f} {each.kept:8.1f}  {each.fault}")
    words = f"{MAX_MS * factor:g} ms and {MAX_MB * factor:g} MB"
    took = time.monotonic() - began
    print(f"giants: {len(costs)} in {took:.0f} s, {len(beyond)} beyond {words}", flush=True)
    return not beyond


def _cost(giant: Giant, factor: float) -> Cost:
    """The best of a few attempts, no more than it takes to be well within the limit; then the memory."""
    best = _apart(giant, traced=False)
    for _ in range(ATTEMPTS - 1):
        if best.fault or best.ms < MAX_MS * factor / 2:
            break
        best = min(best, _apart(giant, traced=False), key=lambda each: each.ms)
    if best.fault:
        return best
    memory = _apart(giant, traced=True)
    return Cost(giant.name, best.ms, memory.mb, memory.kept, memory.fault)


def _apart(giant: Giant, traced: bool) -> Cost:
    """Measure in a fork, as what is remembered of one span makes the next one cheaper."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            answer = json.dumps(_measured(giant, traced))
        except BaseException as error:  # noqa: BLE001 - told by the parent
            answer = json.dumps({"fault": f"{type(error).__name__}: {str(error)[:200]}"})
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answers:
        answered = select.select([answers], [], [], HANGS)[0]
        if not answered:
            os.kill(process, signal.SIGKILL)
        told = answers.read() or b'{"fault": "no answer, or none in time"}'
    os.waitpid(process, 0)
    return Cost(giant.name, **json.loads(told))


def _measured(giant: Giant, traced: bool) -> dict[str, Any]:
    watch = Watch()
    _played(recorded(ORDINARY, above=False), watch)  # what is imported late
    recording = recorded(giant.make(), giant.above)
    gc.collect()
    if traced:
        tracemalloc.start()
        _played(recording, watch)
        highest = tracemalloc.get_traced_memory()[1]
        gc.collect()
        found = {"mb": highest / MB, "kept": tracemalloc.get_traced_memory()[0] / MB}
    else:
        found = {"ms": _played(recording, watch)}
    return {**found, "fault": " ".join(watch.wrong)[:2_000]}


def _played(recording: Recording, watch: Watch) -> float:
    """Milliseconds that a recording's hooks take on this thread."""
    backend = Backend(watch, later=True)
    processor = SeerSpanProcessor(
        transport=backend, sample_rate=1.0, synchronous=True, nested="all", scrub="all"
    )
    began = time.thread_time_ns()
    recording.play(processor)
    took = (time.thread_time_ns() - began) / 1e6
    if not tracemalloc.is_tracing():
        backend.look()
    watch.account(processor.stats())
    return took
