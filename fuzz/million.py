"""A million spans through everything: a provider, the processor, its worker and its sender, from several threads.

Mostly small spans of ordinary traces; 1 in 50 is a retrieval, 1 in 500 is hostile, 1 in 20,000 a giant. Some traces are
abandoned, end late, have a parent elsewhere or are not sampled.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import random
import resource
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import (
    INVALID_SPAN,
    NonRecordingSpan,
    Span,
    SpanContext,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from seer_otel import SeerSpanProcessor
from seer_otel.pipeline.buffer import Limits

from . import hostile
from .catalogue import JSON, MB, catalogue, document
from .choices import Choices
from .watch import Backend, Watch, Watched

THREADS = 4
FIRST = 5
"""The first one of so many parts fills what is bounded; after it, memory must not grow."""
MAX_BLOCKS = 1.0
"""Blocks of the interpreter's allocator that a trace may leave, once what is remembered of traces is full: whatever is
kept of each trace is at least one. Bytes say less: what giants leave behind in the allocators of several threads."""
MAX_GROWTH = 256.0
"""MB that are resident, for what would be large and few."""
AHEAD = 2_000
"""Traces that may wait for the worker: a queue that overflows tests nothing but that."""
GIANTS = list(catalogue())


class Replaces(SpanProcessor):
    """A processor before ours that replaces a span's attributes, as those do that translate a convention."""

    def on_end(self, span: ReadableSpan) -> None:
        made = (span.attributes or {}).get("fuzz.replace")
        if isinstance(made, str):
            span._attributes = hostile.attributes(Choices(bytes.fromhex(made)), 20)  # noqa: SLF001


class SomeUnsampled(Sampler):
    """Records one trace in a hundred without sampling it."""

    def should_sample(
        self,
        parent_context: Any,  # noqa: ARG002
        trace_id: int,
        name: str,  # noqa: ARG002
        kind: Any = None,  # noqa: ARG002
        attributes: Any = None,
        *_: Any,
    ) -> SamplingResult:
        decision = Decision.RECORD_AND_SAMPLE if trace_id % 100 else Decision.RECORD_ONLY
        return SamplingResult(decision, attributes)

    def get_description(self) -> str:
        return "one in a hundred is recorded only"


class Run:
    """What the threads share."""

    def __init__(self, seed: int) -> None:
        self.watch = Watch()
        self.backend = Backend(self.watch, moody=True)
        self.processor = SeerSpanProcessor(transport=self.backend, sample_rate=1.0, nested="all", scrub="all")
        limits = SpanLimits(max_span_attributes=SpanLimits.UNSET)
        provider = TracerProvider(sampler=SomeUnsampled(), span_limits=limits, shutdown_on_exit=False)
        provider.add_span_processor(Replaces())
        provider.add_span_processor(Watched(self.processor, self.watch))
        self.provider = provider
        self._seed = seed
        self._traces = 0

    def spans(self, count: int, part: int) -> None:
        """Make so many spans on several threads, and flush."""
        threads = [
            threading.Thread(
                target=self._work, args=(count // THREADS, random.Random(f"{self._seed} {part} {n}"))
            )
            for n in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if not self.provider.force_flush(60_000):
            self.watch.tell(f"not all was sent within a minute: {self.processor.stats()}")

    def _work(self, count: int, choose: random.Random) -> None:
        try:
            while count > 0 and not self.watch.wrong:
                count -= _trace(self.provider.get_tracer("fuzz"), choose)
                self._traces += 1  # roughly, as several threads count
                while self._traces - self.processor.stats().traces_seen > AHEAD and not self.watch.wrong:
                    time.sleep(0.002)
        except Exception as error:  # noqa: BLE001 - a hook that raises would show here, too
            self.watch.tell(f"the application got {error!r}")


def _trace(tracer: Any, choose: random.Random) -> int:
    """One trace; how many spans it has."""
    elsewhere = choose.random() < 0.05
    above = INVALID_SPAN
    if elsewhere:
        ids = choose.getrandbits(127) + 1, choose.getrandbits(63) + 1
        above = NonRecordingSpan(
            SpanContext(*ids, is_remote=choose.random() < 0.8, trace_flags=TraceFlags(1))
        )
    root = _span(tracer, choose, above, {"input.value": f"Question {choose.random()}?"})
    open_spans: list[Span] = [root]
    children = choose.randrange(20)
    for _ in range(children):
        span = _span(tracer, choose, choose.choice(open_spans), _attributes(choose))
        open_spans.append(span)
        if choose.random() < 0.9:
            open_spans.remove(span)
            span.end()
    if choose.random() < 0.001:
        return 1 + children  # abandoned
    inside_out = choose.random() < 0.95
    for span in reversed(open_spans) if inside_out else open_spans:
        span.end()
    return 1 + children


def _span(tracer: Any, choose: random.Random, above: Span, attributes: dict[str, Any]) -> Span:
    kind = choose.random()
    if kind < 1 / 20_000:
        attributes = dict(choose.choice(GIANTS).make())
    elif kind < 1 / 20_000 + 1 / 500:
        attributes = {"fuzz.replace": choose.randbytes(400).hex()}
        if choose.random() < 0.5:
            made = hostile.attributes(Choices(choose.randbytes(400)), 20)
            # The SDK itself falls over the others.
            attributes = {
                k: v for k, v in made.items() if type(k) is str and type(v) in (str, int, float, bool)
            }
    span: Span = tracer.start_span("span", context=set_span_in_context(above), attributes=attributes)
    if choose.random() < 0.01:
        span.set_status(StatusCode.ERROR)
    return span


def _attributes(choose: random.Random) -> dict[str, Any]:
    kind = choose.random()
    if kind > 1 / 50:
        role = choose.choice(("CHAIN", "LLM", "TOOL", "EMBEDDING", None, None, None))
        return {"openinference.span.kind": role, "input.value": "x"} if role else {"http.route": "/"}
    found: dict[str, Any] = {"openinference.span.kind": "RETRIEVER", "input.value": f"Query {kind}?"}
    if kind < 1 / 500:
        found |= {**JSON, "input.value": '{"query": "Why?", "user_id": "u"}', "metadata": '{"env": "test"}'}
    for rank in range(choose.choice((0, 1, 3, 10, 60))):
        text = f"Passage {choose.randrange(1_000)} of the corpus. " * choose.choice((1, 10, 100))
        found |= document(
            rank, content=text, id=str(rank), score=choose.random(), metadata='{"source": "a.md"}'
        )
    return found


def resident() -> float:
    """MB of this process, without what the allocator keeps of memory that was freed, where it can be told to let go."""
    gc.collect()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text(encoding="ascii").split()[1]) * resource.getpagesize() / MB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MB  # its highest, elsewhere


def run(count: int, seed: int) -> bool:
    """Make so many spans, and say whether everything held."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # the SDK warns of each odd attribute
    began = time.monotonic()
    all_of_it = Run(seed)
    watch = all_of_it.watch
    all_of_it.spans(count // FIRST, 0)
    before, blocks = resident(), sys.getallocatedblocks()
    first = all_of_it.processor.stats().traces_seen
    all_of_it.spans(count - count // FIRST, 1)
    growth = resident() - before
    blocks = sys.getallocatedblocks() - blocks
    stats = all_of_it.processor.stats()
    all_of_it.provider.shutdown()
    watch.account(stats)
    if stats.held:
        watch.tell(f"{stats.held} retrievals are held after a flush")
    if stats.sent != all_of_it.backend.taken:
        watch.tell(f"{stats.sent} sent, {all_of_it.backend.taken} taken")
    more = stats.traces_seen - first
    is_full = first > Limits().max_remembered
    if is_full and (growth > MAX_GROWTH or blocks > MAX_BLOCKS * more):
        watch.tell(f"{growth:.0f} MB and {blocks:,} blocks more than after the first part")
    dropped = ", ".join(f"{reason} {number:,}" for reason, number in sorted(stats.dropped.items()))
    took = time.monotonic() - began
    print(
        f"million: {count:,} spans in {took:.0f} s; {stats.traces_seen:,} traces, {stats.seen:,} retrievals"
    )
    print(f"  sent {stats.sent:,} with {stats.retries:,} retries; dropped: {dropped or 'none'}")
    print(
        f"  {before:.0f} MB after the first part, {growth:+.1f} MB and {blocks:+,} blocks after {more:,} traces more",
        flush=True,
    )
    for words in watch.wrong:
        print(f"  {words}")
    return not watch.wrong
