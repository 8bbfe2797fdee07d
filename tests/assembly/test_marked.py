"""Attributes by which an application speaks to us."""

from __future__ import annotations

from typing import Any

import pytest

from seer_otel.assembly import marked
from seer_otel.event import GroundTruth

from .builders import REDACTED, retriever, run, span

IDS, ANSWER, WHOLE = "seer.ground_truth.gold_doc_ids", "seer.ground_truth.answer", "seer.ground_truth"
READABLE: list[tuple[dict[str, Any], GroundTruth]] = [
    ({IDS: ("a", "b")}, GroundTruth(("a", "b"))),
    ({IDS: ["a"], ANSWER: "42"}, GroundTruth(("a",), "42")),
    ({IDS: ()}, GroundTruth(())),
    ({IDS: (0, 1)}, GroundTruth(("0", "1"))),
    ({IDS: '["a", "b"]'}, GroundTruth(("a", "b"))),
    ({IDS: "a"}, GroundTruth(("a",))),
    ({IDS: ("a",), ANSWER: " "}, GroundTruth(("a",))),
    ({IDS: ("a",), ANSWER: REDACTED}, GroundTruth(("a",))),
    ({IDS: ("a",), ANSWER: 42}, GroundTruth(("a",))),
    ({WHOLE: '{"gold_doc_ids": ["a"], "answer": "42"}'}, GroundTruth(("a",), "42")),
    ({WHOLE: {"gold_doc_ids": ("a",)}}, GroundTruth(("a",))),
    ({WHOLE: '{"gold_doc_ids": ["a"], "answer": "42"}', ANSWER: "43"}, GroundTruth(("a",), "43")),
    ({WHOLE: '{"gold_doc_ids": ["a"]}', IDS: ("b",)}, GroundTruth(("b",))),
]
UNREADABLE: list[dict[str, Any]] = [
    {WHOLE: "a, b"},
    {WHOLE: '["a"]'},
    {WHOLE: "{}"},
    {WHOLE: REDACTED},
    {IDS: 7},
    {IDS: ("a", "")},
    {IDS: ("a", None)},
    {IDS: (REDACTED,)},
    {ANSWER: "42"},
]


@pytest.mark.parametrize(("marks", "truth"), READABLE)
def test_ground_truth(marks: dict[str, Any], truth: GroundTruth) -> None:
    """Ground truth is read from a list of ids, from JSON text of one, or from a JSON object as text."""
    result = run(retriever(1, marks=marks))
    assert result.events[1].ground_truth == truth
    assert result.assembly.labels_unreadable == 0


@pytest.mark.parametrize("marks", UNREADABLE)
def test_unreadable_ground_truth(marks: dict[str, Any]) -> None:
    """With a ground truth that cannot be read the event goes out without, and is counted."""
    result = run(retriever(1, marks=marks))
    assert result.events[1].ground_truth is None
    assert result.assembly.labels_unreadable == 1
    assert marked.has_ground_truth(marks)


def test_nearest_readable_ground_truth() -> None:
    """A retrieval's own labels beat those above, those of its inner half count as its own, unreadable ones do not."""
    result = run(
        span(1, None, "CHAIN", asks="Why?", marks={IDS: ("root",)}),
        span(2, 1, "CHAIN", marks={IDS: 7}),
        retriever(3, 2),
        retriever(4, 2, marks={IDS: ("own",)}),
        retriever(5, 2),
        retriever(6, 5, docs=None, marks={IDS: ("inner",)}),
        span(7, 1, "CHAIN", marks={IDS: ("near",)}),
        retriever(8, 7),
    )
    found = {
        span_id: event.ground_truth and event.ground_truth.gold_doc_ids
        for span_id, event in result.events.items()
    }
    assert found == {3: ("root",), 4: ("own",), 5: ("inner",), 8: ("near",)}
    assert result.assembly.labels_unreadable == 0


def test_unreadable_ground_truth_above() -> None:
    """An unreadable label above counts for each event beneath it, and only for what is sent."""
    result = run(
        span(1, None, "CHAIN", asks="Why?", marks={WHOLE: "?"}),
        retriever(2, 1),
        retriever(3, 1),
        retriever(4, 1, failed=True),
    )
    assert result.assembly.labels_unreadable == 2


def test_without_ground_truth() -> None:
    """Without labels there is no ground truth, and nothing unreadable."""
    result = run(retriever(1))
    assert (result.events[1].ground_truth, result.assembly.labels_unreadable) == (None, 0)
    assert not marked.has_ground_truth({"seer.task": "T"})


@pytest.mark.parametrize(
    ("value", "rate"),
    [
        (0.5, 0.5),
        ("0.5", 0.5),
        (1, 1),
        (0, 0),
        (1.5, None),
        (-0.1, None),
        (True, None),
        ("half", None),
        (None, None),
    ],
)
def test_sample_rate(value: object, rate: float | None) -> None:
    """A span's rate is a number from 0 to 1, or text that is one."""
    assert marked.sample_rate({"seer.sample_rate": value}) == rate


def test_too_many_labels() -> None:
    """More ids than a question can have relevant documents are no labels; the event goes out without them."""
    ids = tuple(str(number) for number in range(10_001))
    marks = {"seer.ground_truth.gold_doc_ids": ids}
    result = run(retriever(1, marks=marks))
    assert result.events[1].ground_truth is None
    assert result.assembly.labels_unreadable == 1
