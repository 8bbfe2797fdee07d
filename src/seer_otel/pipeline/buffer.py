"""Open traces: what was seen of each, and when it is complete. No thread and no clock of its own.

Nothing that decides about a trace is known when its retrieval ends: instrumentors write the user's question when
the root ends, and the last retrieval is the last only once nothing follows. So spans wait here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan

from .. import sampling
from ..assembly import Memory, marked
from ..conventions import convention
from ..stats import Counters
from .sdk import attributes_of, size_of

STARTED, ENDED = False, True
"""The two phases in which a span is taken."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the buffer. What exceeds one leaves early, marked as partial, instead of being lost.

    Attributes:
        quiet: seconds without a span after which a local root that has ended is taken for the end of its trace.
        max_age: seconds after which an open trace is released.
        max_traces: traces open at once.
        max_spans: ended spans of one trace.
        max_bytes: bytes of all that is buffered, as `size_of` estimates them.
        max_remembered: released traces of which decision, final mark and question are kept.
    """

    quiet: float = 2.0
    max_age: float = 300.0
    max_traces: int = 5_000
    max_spans: int = 10_000
    max_bytes: int = 64 * 1024 * 1024
    max_remembered: int = 10_000


_NOTHING_REMEMBERED = Memory()


@dataclass(slots=True)
class Trace:
    """One open trace.

    Attributes:
        kept: what sampling decided.
        rate: the rate by which it decided.
        rate_is_explicit: whether a span of the trace asked for that rate.
        labelled: whether a span carries ground truth; such a trace is always kept.
        spans: ended spans, as the SDK handed them over.
        size: bytes of the ended spans, as `size_of` estimates them.
        seen: how many of the ended spans were counted as retrieval spans.
        open: ids of spans that have started here and not ended.
        known: ids of all spans seen here, to tell a local root.
        root_ended: whether a span without a parent has ended.
        local_root_ended: whether a span has ended whose parent is remote or was not seen here.
        left_out: whether an ended span was left out, as sampling had decided against the trace.
        damage: why spans of it are missing for good.
        memory: what an earlier released part left.
    """

    trace_id: int
    kept: bool
    rate: float
    rate_is_explicit: bool
    since: float
    touched: float
    labelled: bool = False
    spans: list[ReadableSpan] = field(default_factory=list)
    open: set[int] = field(default_factory=set)
    known: set[int] = field(default_factory=set)
    size: int = 0
    seen: int = 0
    root_ended: bool = False
    local_root_ended: bool = False
    left_out: bool = False
    damage: str | None = None
    memory: Memory = _NOTHING_REMEMBERED


@dataclass(slots=True)
class Release:
    """A trace, or what there is of it, on its way to the assembly. Nobody changes one.

    Attributes:
        trace: the trace, which stays known for spans that come late.
        spans: what ended of it since the last release.
        seen: how many of these were counted as retrieval spans.
        partial: why the trace was not seen whole.
    """

    trace: Trace
    spans: tuple[ReadableSpan, ...]
    seen: int
    partial: str | None


class Buffer:
    """The open traces of one pipeline.

    Args:
        sample_rate: the share of traces to keep where no span says otherwise.
        sees_starts: whether spans arrive when they start too; without that, nothing is known to be open.
        counters: where traces and retrieval spans are counted.
        limits: the bounds.
    """

    def __init__(self, sample_rate: float, sees_starts: bool, counters: Counters, limits: Limits) -> None:
        self._sample_rate = sample_rate
        self._sees_starts = sees_starts
        self._counters = counters
        self._limits = limits
        self._open: OrderedDict[int, Trace] = OrderedDict()
        self._done: OrderedDict[int, Trace] = OrderedDict()
        self._size = 0
        self.average_size = 1024
        """Bytes of an ended span, on average of late."""

    def __len__(self) -> int:
        return len(self._open)

    @property
    def seen(self) -> int:
        """How many retrieval spans wait here."""
        return sum(trace.seen for trace in list(self._open.values()))

    def take(self, span: ReadableSpan, phase: bool, now: float) -> Release | None:
        """Take one span that started or ended; return its trace where that completes it.

        Args:
            span: the span.
            phase: `STARTED` or `ENDED`.
            now: seconds of a monotonic clock.
        """
        context = span.context
        if context is None or not context.trace_flags.sampled:
            return None  # recorded but not sampled: exporters leave such spans out, and so do we
        attributes = attributes_of(span)
        trace = self._open.get(context.trace_id) or self._begin(context.trace_id, attributes, now)
        trace.touched = now
        if attributes:
            self._reconsider(trace, attributes)
        parent = span.parent
        if phase is STARTED:
            trace.open.add(context.span_id)
            trace.known.add(context.span_id)
            return None
        trace.open.discard(context.span_id)
        if parent is None:
            trace.root_ended = trace.local_root_ended = True
        elif parent.is_remote or (self._sees_starts and parent.span_id not in trace.known):
            trace.local_root_ended = True
        if trace.kept:
            size = size_of(attributes)
            trace.spans.append(span)
            trace.size += size
            self._size += size
            self.average_size += (size - self.average_size) // 64
            if convention.is_retrieval(attributes):
                trace.seen += 1
                self._counters.add("seen")
        else:
            trace.left_out = True
        if self._sees_starts and trace.root_ended and not trace.open:
            return self._close(trace, None)
        if len(trace.known) >= 4 * self._limits.max_spans:
            return self._close(trace, "max_trace_spans")
        if len(trace.spans) >= self._limits.max_spans:
            return self._part(trace, "max_trace_spans")
        return None

    def lose(self, trace_id: int, was_retrieval: bool, now: float) -> bool:
        """Note that a span of a trace was lost before it got here; return whether it counts as a retrieval."""
        trace = self._open.get(trace_id) or self._begin(trace_id, {}, now)
        trace.damage = "queue_full"
        return was_retrieval and trace.kept

    def lose_unknown(self) -> None:
        """Note that spans were lost of which not even the trace is known: no open trace is whole any more."""
        for trace in self._open.values():
            trace.damage = "queue_full"

    def overdue(self, now: float) -> Iterator[Release]:
        """Yield what a time or a bound releases."""
        limits = self._limits
        for trace in list(self._open.values()):
            quiet = now - trace.touched >= limits.quiet
            if trace.local_root_ended and not trace.open and quiet:
                yield self._close(trace, None)
            elif now - trace.since >= limits.max_age:
                yield self._close(trace, "max_trace_age")
        while len(self._open) > limits.max_traces:
            yield self._close(next(iter(self._open.values())), "max_traces")
        for trace in list(self._open.values()):
            if self._size <= limits.max_bytes:
                break
            if trace.spans:
                yield self._part(trace, "max_bytes")

    def ended(self) -> Iterator[Release]:
        """Yield the traces of which a local root has ended and nothing is open here."""
        for trace in list(self._open.values()):
            if trace.local_root_ended and not trace.open:
                yield self._close(trace, None)

    def flush(self) -> Iterator[Release]:
        """Yield everything: traces with nothing open here whole, the others as partial; those stay open."""
        for trace in list(self._open.values()):
            if trace.open or not (trace.local_root_ended or self._sees_starts):
                if trace.spans:
                    yield self._part(trace, "flush")
            else:
                yield self._close(trace, None)

    def _begin(self, trace_id: int, attributes: Mapping[str, Any], now: float) -> Trace:
        """Open a trace: one that is new, or one that was released and goes on."""
        trace = self._done.pop(trace_id, None)
        if trace is None:
            asked = marked.sample_rate(attributes)
            rate = self._sample_rate if asked is None else asked
            trace = Trace(trace_id, sampling.keeps(trace_id, rate), rate, asked is not None, now, now)
            trace.labelled = marked.has_ground_truth(attributes)
            trace.kept = trace.kept or trace.labelled
            self._counters.add("traces_seen")
            if not trace.kept:
                self._counters.add("traces_sampled_out")
        trace.since = now
        self._open[trace_id] = trace
        return trace

    def _reconsider(self, trace: Trace, attributes: Mapping[str, Any]) -> None:
        """Labels, or the first explicit rate, on a later span bring a trace back that sampling left out."""
        trace.labelled = trace.labelled or marked.has_ground_truth(attributes)
        if trace.kept:
            return
        if not trace.rate_is_explicit:
            asked = marked.sample_rate(attributes)
            if asked is not None:
                trace.rate, trace.rate_is_explicit = asked, True
        if trace.labelled or (trace.rate_is_explicit and sampling.keeps(trace.trace_id, trace.rate)):
            trace.kept = True
            trace.damage = "sampled_late" if trace.left_out else trace.damage
            self._counters.add("traces_sampled_out", -1)

    def _close(self, trace: Trace, partial: str | None) -> Release:
        """Release a trace and leave of it what is remembered."""
        release = self._part(trace, partial)
        # What is open of it is forgotten, so whatever follows of an unfinished trace cannot be known to be its end.
        trace.damage = trace.damage or partial
        del self._open[trace.trace_id]
        trace.open, trace.known = set(), set()
        trace.root_ended = trace.local_root_ended = False
        self._done[trace.trace_id] = trace
        if len(self._done) > self._limits.max_remembered:
            self._done.popitem(last=False)
        return release

    def _part(self, trace: Trace, partial: str | None) -> Release:
        release = Release(trace, tuple(trace.spans), trace.seen, trace.damage or partial)
        self._size -= trace.size
        trace.spans, trace.size, trace.seen = [], 0, 0
        return release
