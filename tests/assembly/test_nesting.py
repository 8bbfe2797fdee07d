"""Which retrieval spans are retrievals of their own."""

from __future__ import annotations

import pytest

from seer_otel.spans import Span

from .builders import REDACTED, doc, model, reranker, retriever, run, span


def test_outermost_list_is_the_event() -> None:
    """Of a fusion and the retrievers inside, which found other documents, only the fusion is an event."""
    result = run(
        retriever(1, None, (10, 40), docs=["b", "a"]),
        retriever(2, 1, (11, 20), docs=["a"]),
        retriever(3, 1, (21, 30), docs=["b"]),
    )
    assert (result.texts(1), result.finals) == (["b", "a"], [1])
    assert result.dropped == {2: "nested", 3: "nested"}


def test_other_documents_inside_are_hops_on_request() -> None:
    """With nested="all" the inner retrievals with other documents are events too, and never final."""
    result = run(
        retriever(1, None, (10, 40), docs=["b", "a"]),
        retriever(2, 1, (11, 50), docs=["a"]),
        retriever(3, 1, (21, 30), docs=["b", "a"]),
        retriever(4, 2, (21, 30), docs=["b", "a"]),
        retriever(5, 2, (21, 30), docs=["a"]),
        nested="all",
    )
    assert (sorted(result.events), result.finals) == ([1, 2], [1])
    assert result.dropped == {3: "nested", 4: "nested", 5: "nested"}


def test_explicit_mark_makes_no_hop_final() -> None:
    """Even a mark on it does not make an inner retrieval the final context."""
    marked = {"seer.is_final_context": True}
    spans = [retriever(1, None, (10, 40)), retriever(2, 1, (11, 20), marks=marked)]
    assert run(*spans, nested="all").finals == [1]
    assert run(*spans).finals == [1]


def test_two_spans_of_one_call() -> None:
    """The inner half of a call, which notes no documents, is no event of an empty result."""
    result = run(retriever(1, None, (10, 20)), retriever(2, 1, (11, 19), docs=None))
    assert (list(result.events), result.dropped) == ([1], {2: "nested"})


def test_wrapper_that_notes_nothing() -> None:
    """Around a retrieval with documents one without is no event, whether empty or unreadable."""
    for nothing in ({"docs": []}, {"docs": None}, {"docs": None, "output": "<Node>"}):
        result = run(retriever(1, None, (10, 40), **nothing), retriever(2, 1, (11, 20)))
        assert (list(result.events), result.dropped) == ([2], {1: "nested"})


def test_completed_from_inside() -> None:
    """Ids, scores, metadata and source that the outer one lacks come from inner ones with the same texts in order."""
    result = run(
        retriever(1, None, (10, 40), docs=[doc("a", "own"), doc("b")]),
        retriever(2, 1, (11, 39), docs=[doc("a", "1", 0.5), doc("b", "2", metadata={"k": 1})]),
        retriever(3, 2, (12, 38), docs=[doc("a", "7", 7, {"source": "s"}), doc("b", "8", 8, {"k": 2})]),
    )
    first, second = result.events[1].context
    assert (first.id, first.score, first.source, first.metadata) == ("own", 0.5, "s", {"source": "s"})
    assert (second.id, second.score, second.source, second.metadata) == ("2", 8, None, {"k": 1})
    assert result.dropped == {2: "nested", 3: "nested"}


@pytest.mark.parametrize("inner", [["b", "a"], ["a"], ["a", "b", "c"]])
def test_not_completed_from_other_lists(inner: list[str]) -> None:
    """Another order, fewer or more texts are another list, from which nothing is taken."""
    result = run(
        retriever(1, None, (10, 40), docs=["a", "b"]),
        retriever(2, 1, (11, 20), docs=[doc(text, f"id {text}") for text in inner]),
    )
    assert [passage.id for passage in result.events[1].context] == [None, None]


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_masked_documents_are_not_completed(order: tuple[int, int]) -> None:
    """Where one span of a call masks something of a document, nothing of it is taken from the others."""
    masked, readable = doc("a", "1", metadata={"k": REDACTED}), doc("a", "1", 0.5, {"k": "secret"})
    inner = [masked, readable]
    result = run(
        retriever(1, None, (10, 40), docs=["a"]),
        retriever(2, 1, (11, 39), docs=[inner[order[0] - 1]]),
        retriever(3, 2, (12, 38), docs=[inner[order[1] - 1]]),
    )
    passage = result.events[1].context[0]
    assert (passage.id, passage.score, passage.metadata) == (None, None, {})
    assert (
        run(retriever(1, docs=[masked]), retriever(2, 1, docs=[readable])).events[1].context[0].score is None
    )


def test_hidden_outer_list() -> None:
    """What lies inside a retrieval whose documents are masked never stands in for it, not even as a hop."""
    spans = [
        retriever(1, None, (10, 40), docs=[doc(REDACTED)]),
        retriever(2, 1, (11, 30), docs=["secret"]),
        retriever(3, 2, (12, 20), docs=["other secret"]),
        retriever(4, 2, (12, 20), docs=[], failed=True),
    ]
    for nested in ("outermost", "all"):
        result = run(*spans, nested=nested)
        assert result.events == {}
        assert result.dropped == {1: "hidden", 2: "nested", 3: "nested", 4: "failed"}


@pytest.mark.parametrize("nested", ["outermost", "all"])
def test_half_of_an_inner_call(nested: str) -> None:
    """What notes no documents is part of the nearest call around it: a branch's query is not the fusion's."""
    result = run(
        span(1, None, "CHAIN", asks="Why?"),
        retriever(2, 1, (10, 40), asks=None),
        retriever(3, 2, (11, 30), asks=None),
        retriever(4, 3, (12, 20), docs=None, asks="variant", marks={"seer.is_final_context": False}),
        nested=nested,
    )
    assert (result.asked(2), result.finals) == (("Why?", None), [2])


def test_deep_between() -> None:
    """A retriever beneath a model or a tool beneath a retriever is nested all the same."""
    for kind in ("LLM", "TOOL", None):
        result = run(retriever(1, None, (10, 40)), span(2, 1, kind, (11, 39)), retriever(3, 2, (12, 20)))
        assert (list(result.events), result.dropped) == ([1], {3: "nested"})


def test_failed_wrapper() -> None:
    """Inside a failed retrieval one with documents is an event; one that notes nothing is not: it may have failed."""
    result = run(
        retriever(1, None, (10, 40), failed=True),
        retriever(2, 1, (11, 20)),
        retriever(3, 1, (21, 30), docs=None),
        retriever(4, 1, (21, 30), docs=None, failed=True),
    )
    assert (list(result.events), result.dropped) == ([2], {1: "failed", 3: "nested", 4: "failed"})


def test_empty_inside_unreadable() -> None:
    """An inner half that notes nothing is not empty where the outer one found what cannot be read."""
    result = run(retriever(1, docs=None, output="<Node>"), retriever(2, 1, (11, 19), docs=None))
    assert (result.events, result.dropped) == ({}, {1: "unreadable", 2: "nested"})


def test_empty_call_of_two_spans() -> None:
    """Where both halves of a call found nothing the outer one is the event, and an unreadable part inside is none."""
    result = run(
        retriever(1, docs=[]),
        retriever(2, 1, (11, 19), docs=None),
        retriever(3, 1, (11, 19), docs=None, output="<Node>"),
        reranker(4, 1, (11, 19)),
    )
    assert (list(result.events), result.texts(1)) == ([1], [])
    assert result.dropped == {2: "nested", 3: "nested", 4: "no_documents"}


def test_empty_retrieval_inside_a_reranker() -> None:
    """A retrieval that found nothing is an event even inside a reranker that had nothing to rank."""
    result = run(reranker(1), retriever(2, 1, docs=[]))
    assert (list(result.events), result.dropped) == ([2], {1: "no_documents"})


def chain(id: int, parent: int | None, *texts: str, at: tuple[int, int] = (30, 40)) -> Span:
    return span(id, parent, "CHAIN", at, asks=f"query {id}", docs=texts)


def test_chain_repeats_what_lies_beneath_it() -> None:
    """A pipeline's span that notes a retriever's documents again is no retrieval; models beneath it still answer."""
    result = run(
        chain(1, None, "a", at=(0, 90)),
        retriever(2, 1, docs=["a"]),
        model(3, 1, (30, 40)),
        retriever(4, 1, (50, 60)),
    )
    assert (sorted(result.events), result.finals, result.dropped) == ([2, 4], [2], {1: "nested"})
    assert result.asked(2) == ("query 1", "query 2")


@pytest.mark.parametrize("kind", ["TOOL", "LLM", "EVALUATOR", "GUARDRAIL"])
@pytest.mark.parametrize("at", [(0, 90), (30, 40)], ids=["around", "after"])
def test_other_steps_repeat_a_retriever(kind: str, at: tuple[int, int]) -> None:
    """A tool, a model or a judge that notes a retriever's documents again, around it or after it, is no retrieval."""
    root = span(1, None, "CHAIN", (0, 95), asks="Why?")
    step = span(3, 1, kind, at, docs=["a"])
    result = run(root, step, retriever(2, 3 if at[0] == 0 else 1, docs=["a"]))
    assert (list(result.events), result.finals, result.dropped) == ([2], [2], {3: "nested"})


def test_agent_with_the_documents_of_its_retriever() -> None:
    """An agent may be a retriever by another name: it is the event unless a retriever beneath it found the same."""
    result = run(span(1, None, "AGENT", (0, 90), asks="Why?", docs=["a"]), retriever(2, 1, docs=["a"]))
    assert (list(result.events), result.dropped) == ([2], {1: "nested"})
    result = run(span(1, None, "AGENT", (0, 90), asks="Why?", docs=["b"]), retriever(2, 1, docs=["a"]))
    assert (list(result.events), result.dropped) == ([1], {2: "nested"})
    chain = span(1, None, "CHAIN", (0, 90), asks="Why?")
    result = run(chain, retriever(2, 1, (10, 20), docs=["a"]), span(3, 1, "AGENT", (30, 40), docs=["a"]))
    assert (list(result.events), result.finals) == ([2, 3], [3])


def test_span_that_comes_again() -> None:
    """A retrieval span that ended here before, as with a processor that was added twice, is no second event."""
    first = run(retriever(1))
    again = run(retriever(1), memory=first.memory)
    assert (list(first.events), again.dropped, again.memory) == ([1], {1: "repeated"}, first.memory)


def test_chain_repeats_a_sibling() -> None:
    """A step beside the retriever that hands its documents on, or that there are none, is no retrieval."""
    result = run(span(1, None, "CHAIN", asks="Why?"), retriever(2, 1, docs=["a"]), chain(3, 1, "a"))
    assert (list(result.events), result.finals, result.dropped) == ([2], [2], {3: "nested"})
    result = run(span(1, None, "CHAIN", asks="Why?"), retriever(2, 1, docs=[]), chain(3, 1))
    assert (list(result.events), result.dropped) == ([2], {3: "nested"})


def test_chain_around_an_empty_list() -> None:
    """A chain that notes an empty list around a retriever that found documents is no event."""
    result = run(chain(1, None, at=(0, 90)), retriever(2, 1))
    assert (list(result.events), result.dropped) == ([2], {1: "nested"})


def test_chain_with_documents_of_its_own() -> None:
    """Without a retriever, or with documents that no retriever found, a chain's documents are a retrieval's."""
    assert run(chain(1, None, "a")).finals == [1]
    result = run(span(1, None, "CHAIN", asks="Why?"), retriever(2, 1, docs=["a"]), chain(3, 1, "a", "b"))
    assert (sorted(result.events), result.finals) == ([2, 3], [3])
    around = run(chain(1, None, "a", "b", at=(0, 90)), retriever(2, 1, docs=["a"]))
    assert (list(around.events), around.dropped) == ([1], {2: "nested"})


def test_kind_that_is_wrong() -> None:
    """Documents make a retrieval of a span of any kind, and of one without a kind."""
    for kind in ("AGENT", "TOOL", "LLM", None):
        assert run(span(1, None, kind, asks="Why?", docs=["a"])).finals == [1]
