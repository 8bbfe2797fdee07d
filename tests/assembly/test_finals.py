"""Which retrieval of a trace is the final context."""

from __future__ import annotations

from typing import Any

import pytest

from seer_otel.assembly import Memory
from seer_otel.event import Event
from seer_otel.spans import Span

from .builders import REDACTED, doc, model, reranker, retriever, run, span

YES, NO = {"seer.is_final_context": True}, {"seer.is_final_context": False}


def root(end: int = 200, **more: Any) -> Span:
    return span(1, None, "CHAIN", (0, end), asks="Why?", **more)


def test_last_to_end() -> None:
    """The last retrieval to end is final, not the last to start, and says that this is inferred."""
    result = run(root(), retriever(2, 1, (10, 60)), retriever(3, 1, (20, 50)))
    assert result.finals == [2]
    assert result.events[2].metadata["seer_otel.final"] == "inferred"
    assert "seer_otel.final" not in result.events[3].metadata


def test_events_come_in_the_order_of_their_ends() -> None:
    """The first retrieval to end is the first event."""
    result = run(root(), retriever(2, 1, (10, 60)), retriever(3, 1, (20, 50)), retriever(4, 1, (5, 55)))
    assert list(result.events) == [3, 4, 2]


@pytest.mark.parametrize("end", [20, 30])
def test_clock_that_cannot_tell(end: int) -> None:
    """Of retrievals that end in one tick the last to start is final, else any, but always the same one."""
    spans = [root(), retriever(2, 1, (10, 30)), retriever(3, 1, (end, 30)), retriever(4, 1, (end, 30))]
    assert run(*spans).finals == run(*reversed(spans)).finals == [4]


@pytest.mark.parametrize(
    "last",
    [
        retriever(9, 1, (50, 60), docs=[doc(REDACTED)]),
        retriever(9, 1, (50, 60), failed=True),
        retriever(9, 1, (50, 60), docs=None, output="<Node>"),
        retriever(9, 1, (50, 60), docs=[]),
        reranker(9, 1, (50, 60)),
        retriever(9, 1, (50, 60), asks=REDACTED),
    ],
)
def test_what_cannot_be_final(last: Span) -> None:
    """Hidden, failed, unreadable and empty retrievals leave the final mark to an earlier one with documents."""
    assert run(root(), retriever(2, 1), last).finals == [2]


def test_filtered_retrieval() -> None:
    """What the application's filter takes out is dropped for that and cannot be final, explicitly neither."""

    def accepts(event: Event) -> bool:
        assert not event.is_final_context
        return event.span_id != f"{3:016x}"

    result = run(root(), retriever(2, 1), retriever(3, 1, (30, 40), marks=YES), accepts=accepts)
    assert (result.finals, result.dropped) == ([2], {3: "filtered"})


def test_empty_retrievals_only() -> None:
    """Where no retrieval found anything the last of them is final."""
    result = run(root(), retriever(2, 1, docs=[]), retriever(3, 1, (30, 40), docs=[]))
    assert result.finals == [3]


def test_prefetch_that_outlives_the_request() -> None:
    """A retrieval that starts after the root ended is final only where there is no other."""
    late = retriever(3, 1, (60, 70))
    assert run(root(50), retriever(2, 1, (10, 55)), late).finals == [2]
    assert run(root(50), late).finals == [3]
    assert run(root(60), retriever(2, 1), late).finals == [3]


def test_late_among_several_roots() -> None:
    """Where a trace has several local roots here the last one to end tells what is late."""
    other = span(4, 99, "CHAIN", (40, 65), asks="And?", remote=True)
    assert run(root(50), other, retriever(2, 1), retriever(3, 1, (60, 70))).finals == [3]


def test_related_reading_after_the_answer() -> None:
    """A retrieval after which no model was asked is not final where one was asked after others."""
    assert run(root(), retriever(2, 1), model(3, 1, (30, 40)), retriever(4, 1, (50, 60))).finals == [2]


def test_model_after_all_or_none() -> None:
    """Where a model was asked after each of the retrievals, or after none, the last of them is final."""
    hops = [root(), retriever(2, 1), retriever(3, 1, (30, 40))]
    assert run(*hops, model(4, 1, (40, 60))).finals == [3]
    assert run(*hops, model(4, 1, (1, 5))).finals == [3]
    assert run(*hops).finals == [3]


@pytest.mark.parametrize("inside", [3, 5])
def test_model_inside_a_retrieval_gives_no_answer(inside: int) -> None:
    """A model that a retrieval asks to rephrase the query is no sign of an answer, even where that one failed."""
    result = run(
        root(),
        retriever(2, 1, (10, 20)),
        retriever(3, 1, (30, 50)),
        model(4, inside, (31, 35)),
        retriever(5, 1, (30, 60), failed=True),
    )
    assert result.finals == [3]


def test_reranker_stands_for_its_retrieval() -> None:
    """A model that was asked between a retrieval and its reranker does not make the retrieval final."""
    result = run(
        root(),
        retriever(2, 1, docs=[doc("a", "1"), doc("b", "2")]),
        model(3, 1, (22, 25)),
        reranker(4, 1, (30, 40), took=[doc("a", "1"), doc("b", "2")], docs=[doc("b", "2")]),
    )
    assert (sorted(result.events), result.finals) == ([2, 4], [4])


def test_reranker_that_is_not_sent_stands_for_nothing() -> None:
    """Where the reranker is filtered out its retrieval can be final, before an earlier one and an empty one."""
    result = run(
        root(),
        retriever(2, 1, (5, 8), docs=["z"]),
        retriever(3, 1, docs=["a"]),
        reranker(4, 1, (30, 40), took=["a"], docs=["a"]),
        retriever(5, 1, (50, 60), docs=[]),
        accepts=lambda event: event.span_id != f"{4:016x}",
    )
    assert result.finals == [3]


def test_explicit_mark_wins() -> None:
    """A mark beats whatever would be inferred, says so, and may be the text true."""
    for marked in (YES, {"seer.is_final_context": " True"}):
        result = run(root(), retriever(2, 1, marks=marked), retriever(3, 1, (30, 40)))
        assert result.finals == [2]
        assert result.events[2].metadata["seer_otel.final"] == "explicit"


@pytest.mark.parametrize("value", [1, "yes", "", None])
def test_what_is_no_mark(value: object) -> None:
    """Only booleans and the texts true and false are marks."""
    result = run(root(), retriever(2, 1, marks={"seer.is_final_context": value}), retriever(3, 1, (30, 40)))
    assert result.finals == [3]


def test_several_explicit_marks() -> None:
    """Of several marked retrievals the last to end is final, on whatever level the marks are."""
    result = run(
        root(),
        span(2, 1, "CHAIN", (1, 60), marks=YES),
        retriever(3, 2, (10, 40)),
        retriever(4, 2, (10, 30)),
        retriever(5, 1, (10, 35), marks=YES),
        retriever(6, 1, (50, 80)),
    )
    assert result.finals == [3]
    assert run(root(), retriever(2, 1, marks=YES), retriever(3, 1, (30, 40), marks=YES)).finals == [3]


def test_own_mark_beats_the_ancestors() -> None:
    """A retrieval's own mark beats its ancestor's, and a nearer ancestor's a farther one's."""
    result = run(
        root(marks=YES),
        retriever(2, 1, (10, 20)),
        retriever(3, 1, (30, 40), marks=NO),
        span(4, 1, "CHAIN", (41, 90), marks=NO),
        span(5, 4, "CHAIN", (42, 80)),
        retriever(6, 5, (50, 60)),
    )
    assert result.finals == [2]
    result = run(root(marks=NO), retriever(2, 1, marks={"seer.is_final_context": "true"}), retriever(3, 1))
    assert result.finals == [2]


def test_mark_inside_the_call() -> None:
    """A mark on the inner half of a call counts as the call's own."""
    marked = retriever(3, 2, (11, 12), docs=None, marks=YES)
    assert run(root(marks=NO), retriever(2, 1), marked, retriever(4, 1, (30, 40))).finals == [2]


def test_marked_ancestor_means_the_last_with_documents() -> None:
    """Beneath a marked span an empty retrieval is final only if all are; so it is for a block's marks on each."""
    first, last = retriever(2, 1), retriever(3, 1, (30, 40), docs=[])
    assert run(root(marks=YES), first, last).finals == [2]
    assert run(root(marks=YES), last).finals == [3]
    assert run(root(), retriever(2, 1, marks=YES), retriever(3, 1, (30, 40), docs=[], marks=YES)).finals == [
        2
    ]
    assert run(root(), first, retriever(3, 1, (30, 40), docs=[], marks=YES)).finals == [3]


def test_explicit_false() -> None:
    """Marked as not final on the only candidate none is final, on the last one of several an earlier one."""
    assert run(root(), retriever(2, 1, marks=NO)).finals == []
    assert run(root(marks={"seer.is_final_context": "FALSE"}), retriever(2, 1), retriever(3, 1)).finals == []
    assert run(root(), retriever(2, 1), retriever(3, 1, (30, 40), marks=NO)).finals == [2]


def test_partial_trace() -> None:
    """Of a trace that was not seen whole nothing is inferred, its events say why, and an explicit mark counts."""
    spans = [retriever(2, 1), retriever(3, 1, (30, 40))]
    result = run(*spans, partial="flush")
    assert result.finals == []
    assert not result.memory.final_sent
    assert {event.metadata["seer_otel.partial"] for event in result.events.values()} == {"flush"}
    marked = run(*spans, retriever(4, 1, (5, 6), marks=YES), partial="flush")
    assert (marked.finals, marked.memory.final_sent) == ([4], True)


def test_second_part_of_a_trace() -> None:
    """Where an earlier part had the final context a later one has none, not even an explicit one."""
    later = [retriever(2, 1), retriever(3, 1, marks=YES)]
    assert run(*later, memory=Memory(final_sent=True)).finals == []
    assert run(*later, memory=Memory(final_sent=True)).memory.final_sent
    assert run(*later, memory=Memory()).finals == [3]


def test_cycle_of_parents() -> None:
    """Spans that are each other's parents are a trace all the same, with a question and a final context."""
    result = run(span(1, 2, "CHAIN", (0, 90), asks="Why?"), retriever(2, 1), retriever(3, 3, (30, 40)))
    assert (result.finals, result.asked(2)) == ([3], ("Why?", "query 2"))
    assert run(retriever(1, 1)).finals == [1]
