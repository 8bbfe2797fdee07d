from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seer_otel.evaluation.metrics import RetrievalScores, harmonic_mean, retrieval_scores, share

IDS = st.sampled_from("abcdefgh")
GOLD = st.lists(IDS, max_size=8)
SHARES = st.one_of(st.just(0.0), st.floats(1e-9, 1))
CONTEXT = st.lists(st.one_of(IDS, st.none(), st.just("")), max_size=12)


def test_the_example_of_seers_page() -> None:
    """Both of two gold documents among four give recall 1 and precision 1/2."""
    context = ["doc-ml-intro", "doc-weather", "doc-ml-history", "doc-python"]
    scores = retrieval_scores(["doc-ml-intro", "doc-ml-history"], context)
    assert scores == RetrievalScores(recall=1.0, precision=0.5, f1=pytest.approx(2 / 3))


@pytest.mark.parametrize(
    ("gold", "context", "expected"),
    [
        ([], [], RetrievalScores(None, None, None)),
        (["a"], [], RetrievalScores(0.0, None, None)),
        ([], ["a"], RetrievalScores(None, 0.0, None)),
        (["a"], ["b"], RetrievalScores(0.0, 0.0, 0.0)),
        (["a", "a"], ["a", "a"], RetrievalScores(1.0, 1.0, 1.0)),
        (["a"], ["a", "a", None, None], RetrievalScores(1.0, 1 / 3, 0.5)),
        ([""], ["", ""], RetrievalScores(0.0, 0.0, 0.0)),
        (["A"], ["a", " A"], RetrievalScores(0.0, 0.0, 0.0)),
    ],
)
def test_corners(gold: list[str], context: list[str | None], expected: RetrievalScores) -> None:
    """What has no denominator is None, a total miss is 0, and ids match exactly and count once."""
    assert retrieval_scores(gold, context) == expected


@given(GOLD, CONTEXT)
def test_the_definition(gold: list[str], context: list[str | None]) -> None:
    """The scores are those that counting one document at a time gives."""
    documents = {name or f"anonymous {place}" for place, name in enumerate(context)}
    found = [name for name in documents if name in gold]
    scores = retrieval_scores(gold, context)
    assert scores.recall == (len(found) / len(set(gold)) if gold else None)
    assert scores.precision == (len(found) / len(documents) if documents else None)
    if scores.recall is None or scores.precision is None:
        assert scores.f1 is None
    else:
        expected = 2 * len(found) / (len(set(gold)) + len(documents))
        assert scores.f1 is not None
        assert math.isclose(scores.f1, expected)


@given(GOLD, CONTEXT, st.randoms(use_true_random=False))
def test_neither_order_nor_repetition_counts(
    gold: list[str], context: list[str | None], random: object
) -> None:
    """Shuffled, and with ids that are there already added again, a context scores the same."""
    again = [*context, *(name for name in context if name)]
    random.shuffle(again)  # type: ignore[attr-defined]
    assert retrieval_scores([*gold, *reversed(gold)], again) == retrieval_scores(gold, context)


@given(GOLD, CONTEXT, IDS)
def test_one_more_document(gold: list[str], context: list[str | None], more: str) -> None:
    """A document more never lowers recall, and lowers precision only where it is not gold."""
    before, after = retrieval_scores(gold, context), retrieval_scores(gold, [*context, more])
    if before.recall is not None and after.recall is not None:
        assert after.recall >= before.recall
    if before.precision is not None and after.precision is not None and after.precision < before.precision:
        assert more not in gold


@given(SHARES, SHARES)
def test_the_harmonic_mean_lies_between(a: float, b: float) -> None:
    """The harmonic mean is symmetric, between its arguments, and 0 where one of them is."""
    mean = harmonic_mean(a, b)
    assert mean is not None
    assert mean == harmonic_mean(b, a)
    if a and b:
        assert min(a, b) * 0.999999 <= mean <= max(a, b) * 1.000001
    else:
        assert mean == 0
    assert harmonic_mean(a, None) is harmonic_mean(None, b) is None


def test_a_share_of_nothing() -> None:
    """0/0 is not available rather than 0."""
    assert share(0, 0) is None
    assert share(0, 3) == 0
