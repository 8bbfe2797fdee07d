"""Open traces: when one is complete, what the bounds cost, and that nothing is lost or released twice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, TraceFlags

from seer_otel import marks, sampling
from seer_otel.pipeline.buffer import ENDED, STARTED, Buffer, Limits, Release
from seer_otel.stats import Counters

RETRIEVER = {"openinference.span.kind": "RETRIEVER"}
CHAIN = {"openinference.span.kind": "CHAIN"}
KEPT = next(i for i in range(1, 10_000) if sampling.keeps(i, 0.5))
LEFT_OUT = next(i for i in range(1, 10_000) if not sampling.keeps(i, 0.5))


def span(
    trace: int,
    number: int,
    parent: int | None = None,
    *,
    remote: bool = False,
    sampled: bool = True,
    attributes: dict[str, Any] | None = None,
) -> ReadableSpan:
    flags = TraceFlags(1 if sampled else 0)
    above = None if parent is None else SpanContext(trace, parent, remote, flags)
    return ReadableSpan(
        name="a span",
        context=SpanContext(trace, number, False, flags),
        parent=above,
        attributes=RETRIEVER if attributes is None else attributes,
    )


def buffer(sees_starts: bool = True, rate: float = 1.0, **limits: Any) -> Buffer:
    return Buffer(rate, sees_starts, Counters(), Limits(**limits))


def both(target: Buffer, each: ReadableSpan, now: float = 0.0) -> Release | None:
    target.take(each, STARTED, now)
    return target.take(each, ENDED, now)


def ids(release: Release | None) -> list[int]:
    assert release is not None
    return [each.context.span_id for each in release.spans if each.context is not None]


# --- When a trace is complete ---


def test_a_true_root_completes_its_trace_at_once() -> None:
    """The end of a span without a parent releases its trace whole, if nothing of it is open."""
    target = buffer()
    target.take(span(KEPT, 1), STARTED, 0.0)
    assert both(target, span(KEPT, 2, parent=1)) is None
    released = target.take(span(KEPT, 1), ENDED, 0.0)
    assert ids(released) == [2, 1]
    assert released is not None
    assert released.partial is None
    assert len(target) == 0


def test_an_open_span_holds_its_trace() -> None:
    """A root that ends before its child releases nothing; the child's end does."""
    target = buffer()
    target.take(span(KEPT, 1), STARTED, 0.0)
    target.take(span(KEPT, 2, parent=1), STARTED, 0.0)
    assert target.take(span(KEPT, 1), ENDED, 0.0) is None
    assert list(target.overdue(100.0)) == []
    assert ids(target.take(span(KEPT, 2, parent=1), ENDED, 0.0)) == [1, 2]


@pytest.mark.parametrize("remote", [True, False], ids=["remote parent", "unseen parent"])
def test_a_local_root_waits_for_two_quiet_seconds(remote: bool) -> None:
    """A local root under a parent that is not here releases its trace two seconds after the last span."""
    target = buffer()
    assert both(target, span(KEPT, 2, parent=1, remote=remote), now=0.0) is None
    assert list(target.overdue(1.9)) == []
    assert both(target, span(KEPT, 3, parent=1, remote=remote), now=1.9) is None
    assert list(target.overdue(3.8)) == []
    (released,) = target.overdue(3.9)
    assert ids(released) == [2, 3]
    assert released.partial is None


def test_without_starts_a_root_waits_too() -> None:
    """Where starts are not seen, a true root releases its trace after two quiet seconds only."""
    target = buffer(sees_starts=False)
    assert target.take(span(KEPT, 2, parent=1), ENDED, 0.0) is None
    assert target.take(span(KEPT, 1), ENDED, 0.0) is None
    assert list(target.overdue(1.9)) == []
    (released,) = target.overdue(2.0)
    assert (ids(released), released.partial) == ([2, 1], None)


def test_without_starts_an_unseen_parent_is_no_root() -> None:
    """Where starts are not seen, a span whose local parent has not ended yet does not complete its trace."""
    target = buffer(sees_starts=False)
    target.take(span(KEPT, 2, parent=1), ENDED, 0.0)
    assert list(target.overdue(299.0)) == []


def test_not_sampled_by_opentelemetry() -> None:
    """A span that is recorded but not sampled opens no trace and is counted nowhere."""
    target = buffer()
    assert both(target, span(KEPT, 1, sampled=False)) is None
    assert len(target) == 0
    assert target._counters.snapshot().traces_seen == 0


def test_a_span_without_context() -> None:
    """A span without a context is passed over."""
    assert buffer().take(ReadableSpan(name="a span"), ENDED, 0.0) is None


# --- Bounds ---


def test_max_age() -> None:
    """A trace that stays open is released at its maximal age, marked with the reason."""
    target = buffer(max_age=300.0)
    target.take(span(KEPT, 1), STARTED, 0.0)
    both(target, span(KEPT, 2, parent=1), now=299.0)
    assert list(target.overdue(299.9)) == []
    (released,) = target.overdue(300.0)
    assert (ids(released), released.partial) == ([2], "max_trace_age")


def test_what_follows_an_aged_trace_is_partial_too() -> None:
    """After a release at the maximal age nobody knows what is still open, so no later part counts as whole."""
    target = buffer(max_age=300.0)
    target.take(span(KEPT, 1), STARTED, 0.0)
    list(target.overdue(300.0))
    both(target, span(KEPT, 3, parent=1), now=301.0)
    (released,) = target.overdue(303.0)
    assert (ids(released), released.partial) == ([3], "max_trace_age")


def test_max_traces() -> None:
    """Beyond the bound on traces the oldest leaves early, marked; the others stay."""
    target = buffer(max_traces=2)
    for trace in (11, 12, 13):
        target.take(span(trace, 1), STARTED, 0.0)
        both(target, span(trace, 2, parent=1))
    (released,) = target.overdue(0.0)
    assert (released.trace.trace_id, ids(released), released.partial) == (11, [2], "max_traces")
    assert len(target) == 2


def test_max_spans() -> None:
    """A trace with too many ended spans is released in parts, and still ends whole."""
    target = buffer(max_spans=3)
    target.take(span(KEPT, 1), STARTED, 0.0)
    parts = [both(target, span(KEPT, number, parent=1)) for number in range(2, 6)]
    assert [part and ids(part) for part in parts] == [None, None, [2, 3, 4], None]
    assert parts[2] is not None
    assert parts[2].partial == "max_trace_spans"
    last = target.take(span(KEPT, 1), ENDED, 0.0)
    assert (ids(last), last and last.partial) == ([5, 1], None)


def test_span_ids_are_bounded() -> None:
    """The ids that tell a local root are forgotten, with the trace, when there are too many of them."""
    target = buffer(rate=0.0, max_spans=5)
    target.take(span(KEPT, 1), STARTED, 0.0)
    for number in range(2, 1000):
        both(target, span(KEPT, number, parent=1))
        known = [len(each.known) for each in (*target._open.values(), *target._done.values())]
        assert sum(known) <= 20


def test_max_bytes() -> None:
    """Beyond the bound on bytes the oldest traces give up what they hold, marked, until the rest fits."""
    target = buffer(max_bytes=50_000)
    for trace in (11, 12, 13):
        target.take(span(trace, 1), STARTED, 0.0)
        both(target, span(trace, 2, parent=1, attributes={**RETRIEVER, "text": "x" * 10_000}))
    (released,) = target.overdue(0.0)
    assert (released.trace.trace_id, released.partial) == (11, "max_bytes")
    assert target._size <= 50_000
    assert len(target) == 3


# --- Losses, sampling, flush ---


def test_a_lost_span_marks_its_trace() -> None:
    """A trace of which a span was lost is never whole, and the lost retrieval counts only where it is kept."""
    target = buffer(rate=0.5)
    assert target.lose(KEPT, True, 0.0)
    assert not target.lose(KEPT, False, 0.0)
    assert not target.lose(LEFT_OUT, True, 0.0)
    released = both(target, span(KEPT, 1))
    assert (ids(released), released and released.partial) == ([1], "queue_full")


def test_losses_of_unknown_traces_mark_all() -> None:
    """Where the lost spans' traces are not known, no open trace counts as whole."""
    target = buffer()
    target.take(span(KEPT, 1), STARTED, 0.0)
    target.lose_unknown()
    released = target.take(span(KEPT, 1), ENDED, 0.0)
    assert released is not None
    assert released.partial == "queue_full"


def test_the_first_span_decides() -> None:
    """A later rate does not undo the decision to keep a trace."""
    target = buffer(rate=1.0)
    target.take(span(KEPT, 1), STARTED, 0.0)
    both(target, span(KEPT, 2, parent=1, attributes={**RETRIEVER, marks.SAMPLE_RATE: 0.0}))
    assert ids(target.take(span(KEPT, 1), ENDED, 0.0)) == [2, 1]


@pytest.mark.parametrize(
    "mark", [{marks.SAMPLE_RATE: 1.0}, {marks.GROUND_TRUTH_IDS: ("doc-1",)}, {marks.GROUND_TRUTH: "{}"}]
)
def test_reopening(mark: dict[str, Any]) -> None:
    """A label or an explicit rate brings a dropped trace back from there on, marked partial, counted once."""
    target = buffer(rate=0.0)
    target.take(span(KEPT, 1), STARTED, 0.0)
    both(target, span(KEPT, 2, parent=1))
    assert target._counters.snapshot().traces_sampled_out == 1
    both(target, span(KEPT, 3, parent=1, attributes={**RETRIEVER, **mark}))
    released = target.take(span(KEPT, 1), ENDED, 0.0)
    assert (ids(released), released and released.partial) == ([3, 1], "sampled_late")
    counts = target._counters.snapshot()
    assert (counts.traces_seen, counts.traces_sampled_out, counts.seen) == (1, 0, 2)


def test_reopening_before_anything_was_left_out() -> None:
    """A label on the first span to end brings a dropped trace back whole, as nothing of it is missing."""
    target = buffer(rate=0.0)
    target.take(span(KEPT, 1), STARTED, 0.0)
    both(target, span(KEPT, 2, parent=1, attributes={**RETRIEVER, marks.GROUND_TRUTH_IDS: ("doc-1",)}))
    released = target.take(span(KEPT, 1), ENDED, 0.0)
    assert (ids(released), released and released.partial) == ([2, 1], None)


def test_only_the_first_explicit_rate_reopens() -> None:
    """After a first explicit rate that leaves the trace out, a second one does not bring it back."""
    target = buffer(rate=0.0)
    target.take(span(KEPT, 1), STARTED, 0.0)
    both(target, span(KEPT, 2, parent=1, attributes={**RETRIEVER, marks.SAMPLE_RATE: 0.0}))
    both(target, span(KEPT, 3, parent=1, attributes={**RETRIEVER, marks.SAMPLE_RATE: 1.0}))
    assert ids(target.take(span(KEPT, 1), ENDED, 0.0)) == []


def test_late_spans_follow_the_decision() -> None:
    """A span that comes after its trace was released shares its fate, and is counted as no new trace."""
    target = buffer(rate=0.5)
    for trace in (KEPT, LEFT_OUT):
        both(target, span(trace, 1))
        both(target, span(trace, 2, parent=1))
    late = {each.trace.trace_id: ids(each) for each in target.overdue(2.0)}
    assert late == {KEPT: [2], LEFT_OUT: []}
    assert target._counters.snapshot().traces_seen == 2


def test_flush() -> None:
    """A flush releases what has nothing open as whole, and the rest as partial without closing it."""
    target = buffer()
    both(target, span(KEPT, 2, parent=9, remote=True))
    target.take(span(LEFT_OUT, 1), STARTED, 0.0)
    both(target, span(LEFT_OUT, 2, parent=1))
    assert [(ids(each), each.partial) for each in target.flush()] == [([2], None), ([2], "flush")]
    last = target.take(span(LEFT_OUT, 1), ENDED, 0.0)
    assert (ids(last), last and last.partial) == ([1], None)


# --- Whatever happens ---

LIMITS = Limits(quiet=2.0, max_age=20.0, max_traces=4, max_spans=6, max_bytes=12_000, max_remembered=3)


class AnyInterleaving(RuleBasedStateMachine):
    """Starts, ends, losses, time and flushes in any order; traces come back after they were released."""

    running = Bundle("running")

    @initialize(sees_starts=st.booleans(), rate=st.sampled_from([0.0, 0.5, 1.0]))
    def begin(self, sees_starts: bool, rate: float) -> None:
        self.counters = Counters()
        self.buffer = Buffer(rate, sees_starts, self.counters, LIMITS)
        self.now = 0.0
        self.number = 0
        self.taken: dict[int, bool] = {}
        """Each ended span that was kept when it ended, and whether it has been released."""
        self.lost = 0

    def released(self, release: Release | None) -> None:
        if release is None:
            return
        assert release.seen == len([each for each in release.spans if each.attributes == RETRIEVER])
        for number in ids(release):
            assert self.taken[number] is False, "released twice, or never kept"
            self.taken[number] = True

    @rule(
        target=running,
        trace=st.integers(1, 8),
        parent=st.one_of(st.none(), st.integers(0, 40)),
        remote=st.booleans(),
        retriever=st.booleans(),
        mark=st.sampled_from([{}, {}, {}, {marks.SAMPLE_RATE: 1.0}, {marks.GROUND_TRUTH_IDS: ("a",)}]),
    )
    def start(
        self, trace: int, parent: int | None, remote: bool, retriever: bool, mark: dict[str, Any]
    ) -> ReadableSpan:
        self.number += 1
        each = span(trace, self.number, parent, remote=remote, attributes={**CHAIN, **mark})
        if self.buffer._sees_starts:
            assert self.buffer.take(each, STARTED, self.now) is None
        return span(
            trace,
            self.number,
            parent,
            remote=remote,
            attributes=RETRIEVER if retriever else {**CHAIN, **mark},
        )

    @rule(each=consumes(running))
    def end(self, each: ReadableSpan) -> None:
        assert each.context is not None
        trace = each.context.trace_id
        release = self.buffer.take(each, ENDED, self.now)
        state = self.buffer._open.get(trace) or self.buffer._done[trace]
        if state.kept:
            self.taken[each.context.span_id] = False
        self.retrievals = getattr(self, "retrievals", set())
        if state.kept and each.attributes == RETRIEVER:
            self.retrievals.add(each.context.span_id)
        self.released(release)

    @rule(trace=st.integers(1, 8), retrieval=st.booleans())
    def lose(self, trace: int, retrieval: bool) -> None:
        counts = self.buffer.lose(trace, retrieval, self.now)
        assert counts == (retrieval and self.buffer._open[trace].kept)

    @rule()
    def lose_unknown(self) -> None:
        self.buffer.lose_unknown()

    @rule(seconds=st.sampled_from([0.5, 2.0, 25.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        for release in self.buffer.overdue(self.now):
            self.released(release)
        assert len(self.buffer) <= LIMITS.max_traces
        assert self.buffer._size <= LIMITS.max_bytes

    @rule()
    def flush(self) -> None:
        for release in self.buffer.flush():
            self.released(release)
        assert all(self.taken.values()), "a flush left something behind"
        assert self.buffer._size == 0

    @invariant()
    def it_adds_up(self) -> None:
        if not hasattr(self, "buffer"):
            return
        traces = list(self.buffer._open.values())
        assert self.buffer._size == sum(trace.size for trace in traces)
        held = {each.context.span_id for trace in traces for each in trace.spans if each.context}
        assert held == {number for number, out in self.taken.items() if not out}
        retrievals: set[int] = getattr(self, "retrievals", set())
        assert sum(trace.seen for trace in traces) == len(retrievals & held)
        assert self.counters.snapshot().seen == len(retrievals)
        assert all(len(trace.spans) < LIMITS.max_spans for trace in traces)
        assert len(self.buffer._done) <= LIMITS.max_remembered
        assert not self.buffer._open.keys() & self.buffer._done.keys()
        assert all(not trace.spans and not trace.open for trace in self.buffer._done.values())
        assert self.buffer.average_size > 0

    def teardown(self) -> None:
        if hasattr(self, "buffer"):
            self.flush()


TestAnyInterleaving = AnyInterleaving.TestCase
TestAnyInterleaving.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
