"""What a reranker took, and what follows from it."""

from __future__ import annotations

from itertools import permutations

import pytest

from seer_otel.spans import Span

from .builders import REDACTED, Fields, doc, model, reranker, retriever, run, span


def docs(*names: str, **more: object) -> list[Fields]:
    return [doc(f"text {name}", name, **more) for name in names]  # type: ignore[arg-type]


ROOT = span(1, None, "CHAIN", (0, 200), asks="Why?")


def test_metadata_and_source_of_the_same_document() -> None:
    """A reranker's documents without metadata take metadata and source of the same id; their scores stay."""
    result = run(
        ROOT,
        retriever(2, 1, docs=[doc("a", "1", 0.1, {"source": "s"}), doc("b", "2", 0.2, {"k": 1})]),
        reranker(3, 1, docs=[doc("b", "2", 9.5), doc("a", "1", 8.5, {"own": 1}), doc("c", "3"), doc("d")]),
    )
    described = [(each.id, each.score, each.source, each.metadata) for each in result.events[3].context]
    assert described == [
        ("2", 9.5, None, {"k": 1}),
        ("1", 8.5, None, {"own": 1}),
        ("3", None, None, {}),
        (None, None, None, {}),
    ]
    only = run(ROOT, retriever(2, 1, docs=docs("a", metadata={"url": "u"})), reranker(3, 1, docs=docs("a")))
    assert only.events[3].context[0].source == "u"


def test_metadata_comes_from_where_the_document_was_taken() -> None:
    """Where two retrievers know an id, the one whose documents went in describes it, else the latest before."""
    result = run(
        ROOT,
        retriever(2, 1, (10, 20), docs=docs("a", "b", metadata={"from": "left"})),
        retriever(3, 1, (10, 25), docs=docs("a", "c", metadata={"from": "right"})),
        retriever(4, 1, (50, 60), docs=docs("a", metadata={"from": "later"})),
        reranker(5, 1, (30, 40), took=docs("a", "b"), docs=docs("a")),
        reranker(6, 1, (41, 45), took=docs("a"), docs=docs("a")),
    )
    assert result.events[6].context[0].metadata == {"from": "right"}
    assert run(*[ROOT, *_overlapping()]).events[5].context[0].metadata == {"from": "left"}


def _overlapping() -> list[Span]:
    return [
        retriever(2, 1, (10, 20), docs=docs("a", "b", metadata={"from": "left"})),
        retriever(3, 1, (10, 25), docs=docs("a", "c", metadata={"from": "right"})),
        reranker(5, 1, (30, 40), took=docs("a", "b"), docs=docs("a")),
    ]


def test_chunks_that_share_an_id() -> None:
    """Of the chunks of one document, which share its id, the one with the same text describes a reranked one."""
    chunks = [doc("A", "1", metadata={"page": 0}), doc("B", "1", metadata={"page": 1})]
    result = run(ROOT, retriever(2, 1, docs=chunks), reranker(3, 1, docs=[doc("B", "1"), doc("C", "1")]))
    assert [each.metadata for each in result.events[3].context] == [{"page": 1}, {"page": 0}]


def test_metadata_from_an_inner_retrieval() -> None:
    """Where the outer list has lost a document's metadata the retrieval inside still has it."""
    result = run(
        ROOT,
        retriever(2, 1, (10, 20), docs=docs("a", "b")),
        retriever(3, 2, (11, 19), docs=docs("a", metadata={"k": 1})),
        reranker(4, 1, docs=docs("b", "a")),
    )
    assert [each.metadata for each in result.events[4].context] == [{}, {"k": 1}]


def test_masked_metadata_is_not_recovered() -> None:
    """What one retrieval masks of a document a reranker's document does not take from another."""
    result = run(
        ROOT,
        retriever(2, 1, docs=docs("a", metadata={"k": REDACTED})),
        retriever(3, 1, docs=docs("a", metadata={"k": "secret"})),
        reranker(4, 1, docs=docs("a")),
        reranker(5, 1, docs=docs("a", metadata={"k": REDACTED, "own": 1})),
    )
    assert result.events[4].context[0].metadata == {}


def test_without_output_documents() -> None:
    """A reranker without output documents is no event, and its input documents are not sent."""
    result = run(ROOT, retriever(2, 1, docs=docs("a")), reranker(3, 1, took=docs("secret")))
    assert (result.finals, result.dropped) == ([2], {3: "no_documents"})


def test_in_a_row() -> None:
    """Of rerankers in a row only the last one is an event, and final; the retrieval stays an event."""
    result = run(
        ROOT,
        retriever(2, 1, docs=docs("a", "b", "c")),
        reranker(3, 1, (30, 40), took=docs("a", "b", "c"), docs=docs("c", "b")),
        reranker(4, 1, (50, 60), took=docs("c", "b"), docs=docs("b")),
    )
    assert (sorted(result.events), result.finals, result.dropped) == ([2, 4], [4], {3: "superseded"})


def test_last_in_a_row_stands_for_all() -> None:
    """A model that was asked in between does not make what went into rerankers in a row final."""
    result = run(
        ROOT,
        retriever(2, 1, docs=docs("a", "b")),
        reranker(3, 1, (30, 40), took=docs("a", "b"), docs=docs("b", "a")),
        model(4, 1, (42, 45)),
        reranker(5, 1, (50, 60), took=docs("b", "a"), docs=docs("b")),
    )
    assert result.finals == [5]


def test_in_a_row_in_one_tick() -> None:
    """Where the clock is too coarse to tell, a reranker still takes neither its own documents nor a later one's."""
    spans = [
        retriever(9, 1, (10, 10), docs=docs("a", "b")),
        reranker(3, 1, (10, 10), took=docs("a", "b"), docs=docs("b", "a")),
        reranker(4, 1, (10, 10), took=docs("b", "a"), docs=docs("b")),
    ]
    for each in permutations(spans):
        result = run(ROOT, *each)
        assert (sorted(result.events), result.finals, result.dropped) == ([4, 9], [4], {3: "superseded"})


@pytest.mark.parametrize("names", [("c", "d"), ("a", "b")])
def test_parallel_branches(names: tuple[str, str]) -> None:
    """Two branches each have their reranker's event, even where one follows the other with the same documents."""
    result = run(
        ROOT,
        retriever(2, 1, (10, 20), docs=docs("a", "b")),
        retriever(3, 1, (10, 21), docs=docs(*names)),
        reranker(4, 1, (30, 40), took=docs("a", "b"), docs=docs("b", "a")),
        reranker(5, 1, (50, 60), took=docs(*names), docs=docs(*reversed(names))),
    )
    assert (sorted(result.events), result.finals, result.dropped) == ([2, 3, 4, 5], [5], {})


def test_behind_a_joiner() -> None:
    """A reranker that took documents of several retrievals stands for each of them."""
    result = run(
        ROOT,
        retriever(2, 1, (10, 20), docs=docs("a", "b")),
        retriever(3, 1, (10, 28), docs=docs("b", "c")),
        span(4, 1, "CHAIN", (28, 29)),
        model(5, 1, (29, 30)),
        reranker(6, 1, (30, 40), took=docs("a", "b", "c"), docs=docs("c", "a")),
    )
    assert (sorted(result.events), result.finals) == ([2, 3, 6], [6])


def test_reranked_branch_behind_a_joiner() -> None:
    """A reranker whose output went through a joiner into another one is superseded."""
    result = run(
        ROOT,
        retriever(2, 1, (10, 20), docs=docs("a", "b")),
        reranker(3, 1, (21, 25), took=docs("a", "b"), docs=docs("b", "a")),
        retriever(4, 1, (10, 28), docs=docs("c")),
        reranker(5, 1, (30, 40), took=docs("c", "b", "a"), docs=docs("c", "a")),
    )
    assert (sorted(result.events), result.finals, result.dropped) == ([2, 4, 5], [5], {3: "superseded"})


def test_two_hops() -> None:
    """In two hops each retrieval and its reranker are events, though the hops share documents."""
    result = run(
        ROOT,
        retriever(2, 1, (10, 20), docs=docs("a", "b")),
        reranker(3, 1, (21, 25), took=docs("a", "b"), docs=docs("b", "a")),
        retriever(4, 1, (30, 40), docs=docs("b", "a", "c")),
        reranker(5, 1, (41, 45), took=docs("b", "a"), docs=docs("a")),
    )
    assert (sorted(result.events), result.finals, result.dropped) == ([2, 3, 4, 5], [5], {})


def test_without_ids_and_input() -> None:
    """Where neither has ids, texts tell; where the input is not noted, the output's documents do."""
    result = run(
        ROOT,
        retriever(2, 1, docs=["a", "b"]),
        reranker(3, 1, (30, 40), docs=["b"]),
        reranker(4, 1, (50, 60), took=[doc("b", "1")], docs=[doc("b", "1")]),
    )
    assert (sorted(result.events), result.dropped) == ([2, 4], {3: "superseded"})


def test_unknown_documents() -> None:
    """A reranker whose documents come from nowhere is an event and supersedes nothing."""
    result = run(
        ROOT,
        retriever(2, 1, docs=docs("a")),
        reranker(3, 1, (30, 40), took=docs("a"), docs=docs("a")),
        reranker(4, 1, (50, 60), took=[{"score": 1}], docs=docs("x")),
    )
    assert (sorted(result.events), result.finals) == ([2, 3, 4], [4])


def test_masked_retriever() -> None:
    """A reranker after a masked retrieval is not sent if its documents may be that one's, nor one that took them on."""
    result = run(
        ROOT,
        retriever(2, 1, docs=[doc(REDACTED), doc(REDACTED)]),
        retriever(3, 1, docs=docs("a")),
        reranker(4, 1, (30, 40), took=["secret"], docs=["secret"]),
        reranker(5, 1, (50, 60), took=["secret"], docs=["secret"]),
        reranker(6, 1, (50, 60), took=docs("a"), docs=docs("a")),
    )
    assert (sorted(result.events), result.finals) == ([3, 6], [6])
    assert result.dropped == {2: "hidden", 4: "hidden", 5: "hidden"}


def test_masked_retriever_with_ids() -> None:
    """A reranker's documents whose ids a retrieval masks are left out, the others are sent."""
    result = run(
        ROOT,
        retriever(2, 1, docs=[doc(REDACTED, "1"), doc("b", "2")]),
        reranker(3, 1, docs=[doc("secret", "1"), doc("b", "2")]),
    )
    assert result.texts(3) == ["b"]
    result = run(ROOT, retriever(2, 1, docs=[doc(REDACTED, "1")]), reranker(3, 1, docs=[doc("secret", "1")]))
    assert result.dropped == {2: "hidden", 3: "hidden"}


def test_hops_are_fed_by_hops() -> None:
    """What a reranker inside a retrieval took leaves the trace's own rerankers and their final mark alone."""
    spans = [
        ROOT,
        retriever(2, 1, docs=docs("a", "b")),
        reranker(3, 1, (30, 40), took=docs("a", "b"), docs=docs("b", "a")),
        retriever(4, 1, (50, 90), docs=docs("b")),
        retriever(5, 4, (51, 52), docs=docs("x", "y", "b")),
        reranker(6, 4, (55, 60), took=docs("x", "y", "b"), docs=docs("b", "x")),
        reranker(7, 4, (65, 70), took=docs("b", "a"), docs=docs("a")),
        reranker(8, 4, (75, 80), took=docs("b", "x"), docs=docs("x")),
    ]
    outermost, everything = run(*spans), run(*spans, nested="all")
    assert (sorted(outermost.events), outermost.finals) == ([2, 3, 4], [4])
    assert (sorted(everything.events), everything.finals) == ([2, 3, 4, 5, 7, 8], [4])
    assert everything.dropped == {6: "superseded"}
