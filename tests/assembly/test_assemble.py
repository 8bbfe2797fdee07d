"""From spans to events: what an event says, empty and failed retrievals, and traces of any shape and size."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import seer_otel.assembly
from seer_otel.assembly import Memory
from seer_otel.assembly.assemble import timestamp
from seer_otel.spans import Span

from .builders import TRACE_ID, doc, model, reranker, retriever, run, span


def test_event() -> None:
    """An event says where its span is, when it ended, and what it found in rank order."""
    found = [doc("b", "2", 0.1), doc("a", "1", 0.9, {"source": "s"})]
    event = run(span(1, None, "CHAIN", asks="Why?"), retriever(0xAB, 1, (10, 2_000), docs=found)).events[0xAB]
    assert (event.trace_id, event.span_id) == (f"{TRACE_ID:032x}", f"{0xAB:016x}")
    assert (event.parent_span_id, event.span_name) == (f"{1:016x}", "span 171")
    assert event.created_at == "1970-01-01T00:00:00.000002Z"
    assert [(each.text, each.id, each.score, each.source) for each in event.context] == [
        ("b", "2", 0.1, None),
        ("a", "1", 0.9, "s"),
    ]
    assert (event.sample_rate, event.ground_truth) == (None, None)
    assert run(retriever(1)).events[1].parent_span_id is None


def test_empty_result() -> None:
    """A retrieval that found nothing is an event with an empty context, whether it says so or says nothing."""
    for nothing in ({"docs": []}, {"docs": None}, {"docs": None, "output": '{"documents": []}'}):
        result = run(retriever(1, **nothing))
        assert (result.texts(1), result.finals, result.dropped) == ([], [1], {})


def test_failed_retrieval() -> None:
    """A failed retrieval is dropped for that, with or without documents; what failed around another is no matter."""
    result = run(
        span(1, None, "CHAIN", asks="Why?", failed=True),
        retriever(2, 1, failed=True),
        retriever(3, 1, docs=None, failed=True),
        reranker(4, 1, docs=["a"], failed=True),
        retriever(5, 1),
    )
    assert (list(result.events), result.dropped) == ([5], {2: "failed", 3: "failed", 4: "failed"})


def test_unreadable_retrieval() -> None:
    """Output from which no text can be read is no event."""
    result = run(retriever(1, docs=None, output="<Node>"), retriever(2, docs=[{"id": "1"}]))
    assert result.dropped == {1: "unreadable", 2: "unreadable"}


def test_lost_attributes() -> None:
    """An event of a span that lost attributes to the limit says how many, and is counted."""
    result = run(retriever(1, lost=3), retriever(2), retriever(3, lost=1, failed=True))
    assert result.events[1].metadata["seer_otel.attributes_dropped"] == 3
    assert "seer_otel.attributes_dropped" not in result.events[2].metadata
    assert result.assembly.attributes_dropped == 1


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1_700_000_000_123_456_789, "2023-11-14T22:13:20.123456Z"),
        (-1_000, "1969-12-31T23:59:59.999999Z"),
        (10**30, "1970-01-01T00:00:00.000000Z"),
        (3 * 10**20, "1970-01-01T00:00:00.000000Z"),
    ],
)
def test_timestamp(nanoseconds: int, text: str) -> None:
    """Times are ISO 8601 in UTC to the microsecond, and the epoch where a clock gives nonsense."""
    assert timestamp(nanoseconds) == text


def test_nothing_at_all() -> None:
    """A trace without spans, or without retrievals, has no event and leaves no mark."""
    assert run().assembly == run(span(1, None, "LLM")).assembly
    assert run().memory == Memory()


def test_span_that_comes_twice() -> None:
    """A span that is delivered twice counts once, and of two with one id the last to end does, in any order."""
    once, again = retriever(1, at=(10, 20)), retriever(1, at=(10, 30), docs=["again"])
    assert run(once, once).assembly == run(once).assembly
    assert run(once, again).texts(1) == run(again, once).texts(1) == ["again"]


def test_longer_cycle_of_parents() -> None:
    """A cycle is cut above the span that began first, and what hangs below it is beneath that one."""
    result = run(
        span(1, 3, "CHAIN", (0, 90), asks="Why?"),
        span(2, 1, "CHAIN", (1, 80), asks="How?"),
        span(3, 2, "CHAIN", (2, 70), asks="When?"),
        retriever(4, 3),
        retriever(5, 4, docs=None),
    )
    assert (result.asked(4), result.dropped) == (("Why?", "query 4"), {5: "nested"})


def deep(levels: int, make: Callable[[int, int | None, tuple[int, int]], Span]) -> list[Span]:
    return [make(i, i - 1 or None, (i, 10 * levels - i)) for i in range(1, levels + 1)]


def test_deep_nesting() -> None:
    """The outermost question, marks and metadata reach a retrieval through 10,000 levels."""
    levels = 10_000
    spans = deep(levels, lambda i, parent, at: span(i, parent, "CHAIN", at))
    spans[0] = span(
        1, None, "CHAIN", (0, 10 * levels), asks="Why?", marks={"seer.subquery": "S", "metadata.env": "prod"}
    )
    result = run(
        *spans, *(retriever(levels + i, levels, (levels + i, levels + i + 1)) for i in range(1, 1_001))
    )
    assert len(result.events) == 1_000
    assert result.asked(levels + 1) == ("Why?", "S")
    assert result.events[levels + 1].metadata["env"] == "prod"
    assert result.finals == [levels + 1_000]


@pytest.mark.parametrize("nested", ["outermost", "all"])
def test_deep_nesting_of_retrievals(nested: str) -> None:
    """Of 10,000 retrievals inside one another one is final, and all are events only on request."""
    spans = deep(10_000, retriever)
    result = run(*spans, nested=nested)
    assert result.finals == [1]
    assert len(result.events) == (1 if nested == "outermost" else 10_000)
    assert len(result.events) + len(result.dropped) == 10_000


def test_deep_nesting_of_empty_retrievals() -> None:
    """Of 10,000 empty retrievals inside one another the outermost is the event."""
    result = run(*deep(10_000, lambda i, parent, at: retriever(i, parent, at, docs=[])))
    assert (result.finals, len(result.dropped)) == ([1], 9_999)


def test_many_retrievals() -> None:
    """Of 2,000 retrievals in one trace, each with its reranker, model and tool, all are events and one is final."""
    spans = [span(1, None, "AGENT", (0, 10**6)), model(2, 1, (1, 2), told="Why?")]
    for i in range(2_000):
        id, at = 10 * (i + 1), 100 * (i + 1)
        found = [doc(f"text {i} {j}", f"{i} {j}", metadata={"hop": i}) for j in range(3)]
        spans += [
            span(id, 1, "TOOL", (at, at + 50), asks="go"),
            retriever(id + 1, id, (at + 1, at + 5), docs=found),
            retriever(id + 2, id + 1, (at + 2, at + 3), docs=None),
            reranker(id + 3, id, (at + 6, at + 9), took=found, docs=[doc(f"text {i} 2", f"{i} 2")]),
            model(id + 4, 1, (at + 60, at + 70), told=f"Observation: {found[0]['content']} and more"),
        ]
    result = run(*spans)
    assert len(result.events) == 4_000
    assert result.finals == [20_003]
    assert {event.task for event in result.events.values()} == {"Why?"}
    assert result.events[20_003].context[0].metadata == {"hop": 1_999}


def test_many_questions() -> None:
    """Of 1,500 agents under one app span each gets the message to its own model, though prompts quote passages."""
    spans = [span(1, None, None, (0, 10**6))]
    for i in range(1_500):
        id, at = 10 * (i + 1), 100 * (i + 1)
        spans += [
            span(id, 1, "AGENT", (at, at + 90)),
            model(id + 1, id, (at + 1, at + 2), told=f"Use passage number {i - 1}"),
            model(id + 2, id, (at + 3, at + 4), told=f"Why {i}?"),
            retriever(id + 3, id, (at + 10, at + 20), docs=[f"passage number {i}"]),
        ]
    result = run(*spans)
    assert all(result.asked(10 * (i + 1) + 3)[0] == f"Why {i}?" for i in range(1, 1_500))


def test_many_empty_retrievals() -> None:
    """Of 2,000 empty retrievals each of two spans one of each pair is an event."""
    pairs = [
        each
        for i in range(1, 2_001)
        for each in (
            retriever(2 * i, None, (10 * i, 10 * i + 5), docs=[]),
            retriever(2 * i + 1, 2 * i, (10 * i + 1, 10 * i + 4), docs=None),
        )
    ]
    assert len(run(*pairs).events) == 2_000


def test_one_document_everywhere() -> None:
    """Where 1,000 retrievals found the same documents each reranker took those of the one before it."""
    spans = [span(1, None, "CHAIN", (0, 10**6), asks="Why?")]
    for i in range(1, 1_001):
        same = [doc("a", "1", metadata={"hop": i}), doc("b", "2")]
        spans += [
            retriever(2 * i, 1, (100 * i, 100 * i + 5), docs=same),
            reranker(2 * i + 1, 1, (100 * i + 6, 100 * i + 9), took=same, docs=[doc("a", "1")]),
        ]
    result = run(*spans)
    assert len(result.events) == 2_000
    assert all(result.events[2 * i + 1].context[0].metadata == {"hop": i} for i in range(1, 1_001))


def test_no_rule_names_a_framework() -> None:
    """No module of the assembly mentions a retrieval framework or an instrumentor."""
    names = re.compile(
        "llama|langchain|langgraph|haystack|dspy|bedrock|openai|mlflow|traceloop|langfuse", re.IGNORECASE
    )
    for module in Path(seer_otel.assembly.__file__).parent.glob("*.py"):
        assert names.search(module.read_text(encoding="utf-8")) is None, module.name
