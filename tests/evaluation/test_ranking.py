"""The ranking measures, against a case worked by hand and against what the field computes them with."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seer_otel.evaluation.ranking import average_precision, ndcg_at, precision_at, recall_at, reciprocal_rank

RUNS = st.lists(st.sampled_from([f"d{number}" for number in range(12)]), unique=True, max_size=12)
GOLD = st.sets(st.sampled_from([f"d{number}" for number in range(16)]), min_size=1)
FIRST = (["d1", "d2", "d3", "d4", "d5"], {"d1", "d3", "d7"})
SECOND = (["e1", "e2"], {"e2"})


def mean(first: float | None, second: float | None) -> float:
    assert first is not None
    assert second is not None
    return (first + second) / 2


def test_a_case_worked_by_hand() -> None:
    """Of two queries, one lacks a gold document and one has it second of two; the means are those worked by hand."""
    assert mean(precision_at(5, *FIRST), precision_at(5, *SECOND)) == pytest.approx(0.30000)
    assert mean(recall_at(5, *FIRST), recall_at(5, *SECOND)) == pytest.approx(0.83333, abs=5e-6)
    assert mean(reciprocal_rank(*FIRST), reciprocal_rank(*SECOND)) == pytest.approx(0.75)
    assert mean(average_precision(*FIRST), average_precision(*SECOND)) == pytest.approx(0.52778, abs=5e-6)
    assert mean(ndcg_at(5, *FIRST), ndcg_at(5, *SECOND)) == pytest.approx(0.66742, abs=5e-6)


@pytest.mark.frameworks
@settings(max_examples=200)
@given(RUNS, GOLD, st.integers(1, 14))
def test_as_ir_measures_has_it(run: list[str], gold: set[str], k: int) -> None:
    """Each measure is what ir-measures computes for the same ranks; a query without a run counts 0 there, too."""
    import ir_measures
    from ir_measures import AP, RR, P, R, nDCG

    wanted = [P @ k, R @ k, RR, AP, nDCG @ k]
    qrels = [ir_measures.Qrel("q", name, 1) for name in sorted(gold)]
    # The rank and not a score: equal scores would be put in order by the documents' names.
    scored = [ir_measures.ScoredDoc("q", name, -float(rank)) for rank, name in enumerate(run)]
    theirs = ir_measures.calc_aggregate(wanted, qrels, scored)
    ours = [
        precision_at(k, run, gold),
        recall_at(k, run, gold),
        reciprocal_rank(run, gold),
        average_precision(run, gold),
        ndcg_at(k, run, gold),
    ]
    assert ours == pytest.approx([theirs[measure] for measure in wanted])


@given(RUNS, GOLD, st.data())
def test_a_repeated_id_keeps_its_first_place(run: list[str], gold: set[str], data: st.DataObject) -> None:
    """An id that comes again, anywhere after it came first, changes nothing."""
    again = list(run)
    for name in run:
        again.insert(data.draw(st.integers(again.index(name) + 1, len(again))), name)
    for k in (1, 3, 12):
        assert recall_at(k, again, gold) == recall_at(k, run, gold)
        assert precision_at(k, again, gold) == precision_at(k, run, gold)
        assert ndcg_at(k, again, gold) == ndcg_at(k, run, gold)
    assert reciprocal_rank(again, gold) == reciprocal_rank(run, gold)
    assert average_precision(again, gold) == average_precision(run, gold)


def test_without_an_id() -> None:
    """Passages without an id are documents of their own: each takes a place, and none is relevant."""
    run = [None, "", None, "a"]
    assert reciprocal_rank(run, {"a"}) == 1 / 4
    assert recall_at(3, run, {"a"}) == 0
    assert recall_at(3, run, {""}) == 0
    assert ndcg_at(4, run, {"a"}) == pytest.approx(1 / math.log2(5))


def test_nothing_relevant() -> None:
    """Where nothing is relevant no measure is available; where nothing was found all are 0."""
    for run in ([], ["a", "b"]):
        assert recall_at(5, run, set()) is None
        assert precision_at(5, run, set()) is None
        assert reciprocal_rank(run, set()) is None
        assert average_precision(run, set()) is None
        assert ndcg_at(5, run, set()) is None
    assert recall_at(5, [], {"a"}) == precision_at(5, [], {"a"}) == ndcg_at(5, [], {"a"}) == 0
    assert reciprocal_rank([], {"a"}) == average_precision([], {"a"}) == 0


@given(RUNS, GOLD)
def test_gold_in_front_is_perfect(run: list[str], gold: set[str]) -> None:
    """With all gold in front every order is as good as can be, and each measure is 1 where it can be."""
    front = [*sorted(gold), *(name for name in run if name not in gold)]
    assert ndcg_at(len(front), front, gold) == pytest.approx(1)
    assert average_precision(front, gold) == pytest.approx(1)
    assert (
        reciprocal_rank(front, gold)
        == recall_at(len(gold), front, gold)
        == precision_at(len(gold), front, gold)
        == 1
    )
