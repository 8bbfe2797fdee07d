"""Documents that are masked in one span of a trace and readable in another."""

from __future__ import annotations

import json

import pytest

from seer_otel.privacy import Hiding
from seer_otel.spans import Span

from .builders import REDACTED, doc, reranker, retriever, run, span

ROOT = span(1, None, "CHAIN", (0, 200), asks="Why?")
MASKED = retriever(2, 1, docs=[doc(REDACTED)])
MASKED_WITH_ID = retriever(2, 1, docs=[doc(REDACTED, "1")])


def test_masked_documents() -> None:
    """A retrieval whose texts are all masked is not sent; of one with some masked the others are."""
    result = run(ROOT, MASKED, retriever(3, 1, docs=[doc(REDACTED, "1"), "b"]))
    assert (result.texts(3), result.dropped) == (["b"], {2: "hidden"})


def test_same_id_elsewhere() -> None:
    """A document whose id one span masks is left out of the others, whichever came first."""
    before = retriever(3, 1, (5, 8), docs=[doc("secret", "1"), doc("b", "2")])
    after = retriever(4, 1, (30, 40), docs=[doc("secret", "1")])
    result = run(ROOT, before, MASKED_WITH_ID, after)
    assert (result.texts(3), result.dropped) == (["b"], {2: "hidden", 4: "hidden"})


def test_masked_without_id_beside_readable_ones() -> None:
    """Of a list around one that masks a document without an id, only what is readable inside is sent."""
    wrapper = retriever(3, 1, (9, 30), docs=["secret", "b"])
    inside = retriever(5, 3, (10, 29), docs=[doc(REDACTED), doc("b", "2")])
    assert run(ROOT, wrapper, inside).texts(3) == ["b"]


def test_masked_in_an_output() -> None:
    """An id that is masked in a retriever's JSON output is hidden elsewhere, too."""
    output = json.dumps([{"content": REDACTED, "id": "1"}, {"content": "b", "id": "2"}])
    noted = retriever(2, 1, (5, 8), docs=None, output=output)
    after = retriever(4, 1, (30, 40), docs=[doc("secret", "1")])
    result = run(ROOT, noted, after)
    assert (result.texts(2), result.dropped) == (["b"], {4: "hidden"})


def test_marks_in_other_fields() -> None:
    """An id, a source, a metadata value and a span's name that are masked are left out."""
    fields = doc("a", REDACTED, metadata={"source": REDACTED, "k": REDACTED, "l": [REDACTED, 1]})
    named = retriever(2, 1, docs=[fields], marks={"metadata.env": REDACTED})
    result = run(ROOT, Span(*[*_fields(named)[:4], REDACTED, *_fields(named)[5:]]))
    passage = result.events[2].context[0]
    assert (passage.id, passage.source, passage.metadata) == (None, None, {"l": [1]})
    assert result.events[2].span_name is None
    assert "env" not in result.events[2].metadata


def _fields(each: Span) -> list[object]:
    return [getattr(each, name) for name in Span.__slots__]


@pytest.mark.parametrize("nested", ["outermost", "all"])
def test_readable_list_around_a_masked_one(nested: str) -> None:
    """A wrapper's list around a masked one keeps only documents that something tells from the masked ones."""
    wrapper = retriever(3, 1, (9, 30), docs=["secret", doc("b", "2"), "c"])
    plain = retriever(4, 3, (10, 20), docs=["c"])
    inside = [retriever(5, 3, (21, 29), docs=[doc(REDACTED)])]
    assert run(ROOT, wrapper, *inside, nested=nested).dropped == {3: "hidden", 5: "nested"}
    assert run(ROOT, wrapper, *inside, plain, nested=nested).texts(3) == ["c"]
    inside = [retriever(5, 3, (21, 29), docs=[doc(REDACTED, "1")])]
    assert run(ROOT, wrapper, *inside, nested=nested).texts(3) == ["b"]
    assert run(ROOT, wrapper, *inside, plain, nested=nested).texts(3) == ["b", "c"]


def test_masked_deep_inside() -> None:
    """Several masked ones at several depths are all taken into account, and one without ids beats one with."""
    result = run(
        ROOT,
        retriever(3, 1, (9, 90), docs=[doc("b", "2"), doc("c", "3")]),
        span(4, 3, "CHAIN", (10, 80)),
        retriever(5, 4, (11, 20), docs=[doc(REDACTED, "1")]),
        retriever(6, 4, (21, 30), docs=[doc(REDACTED, "3")]),
    )
    assert result.texts(3) == ["b"]
    result = run(
        ROOT,
        retriever(3, 1, (9, 90), docs=[doc("b", "2"), doc("c", "3")]),
        retriever(5, 3, (11, 20), docs=[doc(REDACTED, "1")]),
        retriever(6, 3, (21, 30), docs=[doc(REDACTED)]),
        retriever(7, 3, (31, 40), docs=[doc(REDACTED)]),
    )
    assert result.dropped[3] == "hidden"


def test_chain_after_a_masked_retriever() -> None:
    """A chain that notes a masked retriever's documents again is not sent; what tells them apart is as for wrappers."""
    chain = span(3, 1, "CHAIN", (30, 40), asks="query 3", docs=["secret", doc("b", "2")])
    assert run(ROOT, MASKED, chain).dropped == {2: "hidden", 3: "hidden"}
    assert run(ROOT, MASKED_WITH_ID, chain).texts(3) == ["b"]
    assert run(ROOT, chain, retriever(2, 1, (50, 60), docs=[doc(REDACTED)])).texts(3) == ["secret", "b"]
    around = span(3, 1, "CHAIN", (5, 40), asks="query 3", docs=["secret"])
    assert run(ROOT, around, retriever(2, 3, docs=[doc(REDACTED)])).dropped == {2: "nested", 3: "hidden"}


def test_chain_that_masks_in_part() -> None:
    """What a chain leaves readable where it masks its other documents is sent."""
    chain = span(3, 1, "CHAIN", (30, 40), asks="query 3", docs=[doc(REDACTED, "1"), "b"])
    assert run(ROOT, chain).texts(3) == ["b"]


def test_chain_that_repeats_readable_and_masked_documents() -> None:
    """Of a chain around a masked and a readable retriever what is left repeats the readable one, which is the event."""
    result = run(
        span(1, None, "CHAIN", (0, 90), asks="Why?", docs=["secret", "b"]),
        MASKED,
        retriever(3, 1, docs=["b"]),
    )
    assert (result.texts(3), result.dropped) == (["b"], {1: "nested", 2: "hidden"})


def test_hiding_documents() -> None:
    """Under the setting that hides documents no readable list is sent, and empty results still are."""
    result = run(
        ROOT,
        retriever(2, 1),
        retriever(3, 1, docs=None, output='[{"text": "secret"}]'),
        retriever(4, 1, docs=None, output="secret"),
        reranker(5, 1, took=["secret"], docs=["secret"]),
        retriever(6, 1, docs=[]),
        hiding=Hiding(documents=True),
    )
    assert (list(result.events), result.finals, result.texts(6)) == ([6], [6], [])
    assert result.dropped == {2: "hidden", 3: "hidden", 4: "hidden", 5: "hidden"}
