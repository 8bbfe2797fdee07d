from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seer_otel.evaluation.judging import Judgement, Requirement
from seer_otel.evaluation.metrics import (
    EvaluatorScores,
    LabelFree,
    RetrievalScores,
    evaluator_scores,
    harmonic_mean,
    label_free,
    retrieval_scores,
    share,
)

IDS = st.sampled_from("abcdefgh")
GOLD = st.lists(IDS, max_size=8)
SHARES = st.one_of(st.just(0.0), st.floats(1e-9, 1))
CONTEXT = st.lists(st.one_of(IDS, st.none(), st.just("")), max_size=12)
SEERS_GOLD = ["doc-ml-intro", "doc-ml-history"]
SEERS_CONTEXT = ["doc-ml-intro", "doc-weather", "doc-ml-history", "doc-python"]


def test_the_example_of_seers_page() -> None:
    """Both of two gold documents among four give recall 1 and precision 1/2."""
    scores = retrieval_scores(SEERS_GOLD, SEERS_CONTEXT)
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


@pytest.mark.parametrize(
    ("cited", "expected"),
    [
        ([0, 2], EvaluatorScores(precision=1.0, recall=1.0, f1=1.0, exact_match=True)),
        ([0, 1], EvaluatorScores(precision=0.5, recall=0.5, f1=0.5, exact_match=False)),
    ],
)
def test_the_scenarios_of_seers_page(cited: list[int], expected: EvaluatorScores) -> None:
    """Its perfect match and its false positive give the evaluator's figures that stand there."""
    assert evaluator_scores(SEERS_GOLD, SEERS_CONTEXT, cited) == expected


@pytest.mark.parametrize(
    ("gold", "context", "cited", "expected"),
    [
        # Gold that was not retrieved is no fault of the evaluator's.
        (["a", "lost"], ["a", "b"], [0], EvaluatorScores(1.0, 1.0, 1.0, True)),
        # No gold in the context: to cite nothing is right, to cite anything is wrong.
        (["lost"], ["a", "b"], [], EvaluatorScores(1.0, None, None, True)),
        (["lost"], ["a", "b"], [1], EvaluatorScores(0.0, None, None, False)),
        ([], [], [], EvaluatorScores(1.0, None, None, True)),
        # Gold is there, and nothing is cited.
        (["a"], ["a", "b"], [], EvaluatorScores(0.0, 0.0, 0.0, False)),
        # Several passages of one document are one citation.
        (["a"], ["a", "b", "a"], [0, 2], EvaluatorScores(1.0, 1.0, 1.0, True)),
        (["a"], ["a", "b", "a"], [2], EvaluatorScores(1.0, 1.0, 1.0, True)),
        # Passages without an id are documents of their own, and never gold.
        (["a"], ["a", None, ""], [0, 1, 2], EvaluatorScores(1 / 3, 1.0, 0.5, False)),
        ([""], ["", "a"], [0], EvaluatorScores(0.0, None, None, False)),
    ],
)
def test_corners_of_citing(
    gold: list[str], context: list[str | None], cited: list[int], expected: EvaluatorScores
) -> None:
    """What is counted are documents, and of the gold only what is in the context."""
    assert evaluator_scores(gold, context, cited) == expected


@given(GOLD, CONTEXT, st.data())
def test_citing_exactly_the_gold(gold: list[str], context: list[str | None], data: st.DataObject) -> None:
    """An exact match is there if and only if precision is 1 and recall is 1 or not available."""
    positions = st.sets(st.integers(0, len(context) - 1)) if context else st.just(set())
    scores = evaluator_scores(gold, context, data.draw(positions))
    assert scores.exact_match == (scores.precision == 1 and scores.recall in {1, None})
    everything = [position for position, name in enumerate(context) if name in gold and name]
    assert evaluator_scores(gold, context, everything).exact_match


def judgement(*present: bool, cited: tuple[int, ...] = ()) -> Judgement:
    """So many requirements, and what is cited."""
    return Judgement(tuple(Requirement("asked", each) for each in present), cited)


def test_without_labels() -> None:
    """Recall is the share of the requirements that is present, precision that of the documents that is cited."""
    found = label_free(judgement(True, False, True, cited=(0, 1, 3)), ["a", "a", "b", None])
    assert found == LabelFree(2 / 3, 2 / 3, pytest.approx(2 / 3), None)
    assert label_free(judgement(False), []) == LabelFree(0.0, None, None, None)
    assert label_free(judgement(False), ["a"]) == LabelFree(0.0, 0.0, 0.0, None)


def test_ndcg_without_labels() -> None:
    """The gain of cited passages is discounted by rank, else by score; without either, or a citation, it is None."""
    said, ids = judgement(True, cited=(1,)), ["a", "b", "c"]
    second = pytest.approx(1 / math.log2(3))
    assert label_free(said, ids, ranks=[1, 2, 3]).ndcg == second
    assert label_free(said, ids, ranks=[3, 1, 2]).ndcg == 1
    assert label_free(said, ids, ranks=[1, 2, 3], scores=[0.1, 0.9, 0.2]).ndcg == second
    assert label_free(said, ids, scores=[0.1, 0.9, 0.2]).ndcg == 1
    assert label_free(said, ids, scores=[0.5, 0.5, 0.5]).ndcg == second
    assert label_free(said, ids, ranks=[1, None, 3], scores=[0.9, 0.8, 0.7]).ndcg == second
    assert label_free(said, ids, ranks=[1, None, 3], scores=[0.9, None, 0.7]).ndcg is None
    assert label_free(said, ids).ndcg is None
    assert label_free(judgement(True), ids, ranks=[1, 2, 3]).ndcg is None
