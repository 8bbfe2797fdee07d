"""Comparisons: against scipy, and against how often they raise a false alarm or see what is there."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seer_otel.evaluation.comparing import Comparison, holm, independent, paired

PS = st.lists(st.floats(0, 1), max_size=12)


def scores(n: int, seed: int, gain: float = 0.0) -> list[float]:
    values = random.Random(seed).choices([0.0, 0.5, 2 / 3, 0.8, 1.0], [2, 2, 3, 2, 11], k=n)
    return [value + gain for value in values]


@pytest.mark.frameworks
@pytest.mark.parametrize(("n", "m", "gain"), [(10, 10, 0.0), (40, 25, 0.1), (300, 200, 0.03), (60, 60, 0.5)])
def test_welch(n: int, m: int, gain: float) -> None:
    """Independent values are compared by Welch's t test: p and interval are scipy's."""
    from scipy import stats

    base, test = scores(n, 1), scores(m, 2, gain)
    theirs = stats.ttest_ind(test, base, equal_var=False)
    interval = theirs.confidence_interval(0.95)
    found = independent(base, test)
    assert found is not None
    assert found.p == pytest.approx(theirs.pvalue, rel=1e-6)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-7)
    assert found.difference == pytest.approx((interval.low + interval.high) / 2)
    assert found.n == min(n, m)


@pytest.mark.parametrize("zeros", [0, 2])
def test_the_sign_flip_test(zeros: int) -> None:
    """p is, but for chance, the share of all ways to flip the signs that give a sum at least as far from 0."""
    differences = [0.5, 0.2, -0.1, 0.4, 0.0, 0.3, -0.2, 0.6, 0.1, 0.1, 0.2, *[0.0] * zeros]
    size = abs(math.fsum(differences)) - 1e-9
    ways = list(itertools.product((1, -1), repeat=len(differences)))
    exact = sum(abs(math.fsum(map(float.__mul__, map(float, signs), differences))) >= size for signs in ways)
    found = paired(differences)
    assert found is not None
    assert found.p == pytest.approx(exact / len(ways), abs=0.006)


@pytest.mark.frameworks
@pytest.mark.parametrize("n", [30, 2_500])
def test_many_differences(n: int) -> None:
    """p is near the paired t test's, also where differences are flipped in groups, and the interval is too."""
    from scipy import stats

    generator = random.Random(7)
    differences = [generator.gauss(2 / math.sqrt(n), 1) for _ in range(n)]
    theirs = stats.ttest_1samp(differences, 0)
    interval = theirs.confidence_interval(0.95)
    found = paired(differences)
    assert found is not None
    assert found.p == pytest.approx(theirs.pvalue, abs=0.02)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=0.3 / math.sqrt(n))


def test_nothing_changed() -> None:
    """Where all pairs are equal, or each side has one value only, chance explains it."""
    assert paired([0.0] * 12) == Comparison(0.0, 0.0, 0.0, 1.0, 12, 0.0)
    assert independent([0.5] * 12, [0.5] * 10) == Comparison(0.0, 0.0, 0.0, 1.0, 10, 0.0)
    assert independent([0.5] * 12, [0.75] * 10) == Comparison(0.25, 0.25, 0.25, 0.0, 10, 0.0)


def test_p_is_never_zero() -> None:
    """The observed signs are one of the draws, so p is at least 1 / (1 + draws)."""
    found = paired([0.5] * 40, draws=999)
    assert found is not None
    assert found.p == 1 / 1_000


def test_too_few() -> None:
    """Under ten pairs, or ten values on a side, nothing is said."""
    assert paired([0.1] * 9) is None
    assert independent([0.1] * 9, scores(50, 1)) is None
    assert independent(scores(50, 1), [0.1] * 9) is None


def test_the_same_input_gives_the_same_answer() -> None:
    """Nothing changes from call to call."""
    differences = [after - before for before, after in zip(scores(80, 1), scores(80, 2), strict=True)]
    assert paired(differences) == paired(differences)


def test_false_alarms() -> None:
    """Of comparisons without a difference, about one in twenty has p below .05, either way."""
    pairs, sides = 0, 0
    for seed in range(150):
        base, test = scores(60, 2 * seed), scores(60, 2 * seed + 1)
        of_pairs = paired([after - before for before, after in zip(base, test, strict=True)], draws=500)
        of_sides = independent(base, test)
        assert of_pairs is not None
        assert of_sides is not None
        pairs += of_pairs.p < 0.05
        sides += of_sides.p < 0.05
    assert 0.02 < pairs / 150 < 0.1
    assert 0.02 < sides / 150 < 0.1


def test_what_can_be_detected_is_detected() -> None:
    """A true difference of the size that is called detectable is found in about 80 % of comparisons."""
    known = independent(scores(80, 1), scores(80, 2))
    assert known is not None
    found = [
        independent(scores(80, 1_000 + seed), scores(80, 5_000 + seed, known.detectable))
        for seed in range(300)
    ]
    assert 0.7 < sum(each is not None and each.p < 0.05 for each in found) / 300 < 0.9


def test_holm() -> None:
    """Four p values give those of Holm's paper's procedure, in the order in which they came."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.2]) == [0.2]


@given(PS)
def test_holm_keeps_the_order(ps: list[float]) -> None:
    """No p gets smaller or above 1, the smallest is multiplied by their number, and their order stays."""
    adjusted = holm(ps)
    assert all(p <= after <= 1 for p, after in zip(ps, adjusted, strict=True))
    order = sorted(range(len(ps)), key=ps.__getitem__)
    assert [adjusted[place] for place in order] == sorted(adjusted)
    if ps:
        assert min(adjusted) == pytest.approx(min(1, len(ps) * min(ps)))
