"""Intervals, against scipy and against how often they hold what they should."""

from __future__ import annotations

import math
import random
import statistics as standard

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seer_otel.evaluation.statistics import (
    FEWEST,
    Interval,
    Sums,
    blocks,
    bootstrap_mean,
    mean_interval,
    stratified_bootstrap,
    t_quantile,
    t_two_sided,
    wilson,
)

SHARES = st.lists(st.sampled_from([0.0, 1 / 3, 0.5, 2 / 3, 1.0]), min_size=2, max_size=60)


def scores(n: int, seed: int) -> list[float]:
    """Like those of queries: more than half are 1, the rest pile up at a few values."""
    return random.Random(seed).choices([0.0, 0.5, 2 / 3, 0.8, 1.0], [2, 2, 3, 2, 11], k=n)


@pytest.mark.frameworks
@pytest.mark.parametrize("df", [1, 2, 4.5, 9, 29, 299.3, 1e4, 1e6])
def test_students_t(df: float) -> None:
    """Quantiles and tails of Student's t are scipy's, for any degrees of freedom from 1."""
    from scipy import stats

    for p in (0.5, 0.6, 0.9, 0.975, 0.995, 0.9995):
        assert t_quantile(p, df) == pytest.approx(stats.t.ppf(p, df), rel=1e-7, abs=1e-12)
    for t in (0.0, 0.01, 0.5, 2, 6, 20):
        assert t_two_sided(t, df) == t_two_sided(-t, df) == pytest.approx(2 * stats.t.sf(t, df), rel=1e-6)
    assert t_two_sided(math.inf, df) == 0


def test_students_t_at_its_ends() -> None:
    """What is too far away to be squared has a tail of 0, and no number stays none."""
    assert t_two_sided(1e200, 9) == 0
    assert math.isnan(t_two_sided(math.nan, 9))


@pytest.mark.frameworks
def test_the_interval_of_a_mean() -> None:
    """It is scipy's t interval, computed from sums alone."""
    from scipy import stats

    for n in (10, 11, 60, 400):
        values = scores(n, n)
        expected = stats.t.interval(0.95, n - 1, loc=standard.mean(values), scale=stats.sem(values))
        found = mean_interval(Sums.of(values))
        assert found is not None
        assert (found.low, found.high) == pytest.approx(expected, rel=1e-9)


def test_too_few_for_an_interval() -> None:
    """Under ten values there is none; with ten that are equal it has no width."""
    assert FEWEST == 10
    assert mean_interval(Sums.of([0.5] * 9)) is None
    assert bootstrap_mean([0.5] * 9) is None
    assert stratified_bootstrap([[0.5] * 20, [0.5] * 9]) is None
    assert stratified_bootstrap([]) is None
    assert mean_interval(Sums.of([0.5] * 10)) == bootstrap_mean([0.5] * 10) == Interval(0.5, 0.5)


@given(SHARES, SHARES)
def test_sums_add_up(first: list[float], second: list[float]) -> None:
    """The sums of two groups are those of both together, and give their mean and variance."""
    both, together = Sums.of(first) + Sums.of(second), Sums.of([*first, *second])
    assert (both.n, both.total, both.squares) == (
        together.n,
        *map(pytest.approx, (together.total, together.squares)),
    )
    assert both.mean == pytest.approx(standard.mean([*first, *second]))
    assert both.variance == pytest.approx(standard.variance([*first, *second]), abs=1e-12)


def test_sums_of_nothing() -> None:
    """Without values there is no mean, and rounding never makes a variance negative."""
    assert Sums().mean is None
    assert Sums().variance == Sums.of([1.0]).variance == 0
    assert Sums.of([0.1] * 1_000).variance >= 0


@pytest.mark.frameworks
@pytest.mark.parametrize(("successes", "n"), [(0, 1), (0, 40), (1, 3), (20, 40), (40, 40), (123, 4_567)])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_wilson(successes: int, n: int, level: float) -> None:
    """The interval of a rate is scipy's Wilson interval."""
    from scipy import stats

    expected = stats.binomtest(successes, n).proportion_ci(level, "wilson")
    found = wilson(successes, n, level)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert 0 <= found.low <= successes / n <= found.high <= 1


def test_a_rate_of_nothing() -> None:
    """0/0 has no interval."""
    assert wilson(0, 0) is None


@pytest.mark.frameworks
@pytest.mark.parametrize("n", [12, 100, 3_000])
def test_the_bootstrap(n: int) -> None:
    """It is scipy's percentile bootstrap but for chance, also where values are put together before."""
    import numpy as np
    from scipy import stats

    values = scores(n, n)
    found = bootstrap_mean(values, draws=4_000)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=4_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    error = standard.stdev(values) / math.sqrt(n)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.25 * error)


def test_the_same_input_gives_the_same_interval() -> None:
    """Nothing changes from call to call; another seed draws otherwise."""
    values = scores(50, 1)
    assert bootstrap_mean(values) == bootstrap_mean(values)
    assert bootstrap_mean(values) != bootstrap_mean(values, seed=1)


def test_strata_are_resampled_by_themselves() -> None:
    """The interval is of the mean of means: its width is that of the parts, whatever lies between the strata."""
    low, high = [value / 10 for value in scores(60, 1)], [0.9 + value / 10 for value in scores(240, 2)]
    found = stratified_bootstrap([low, high])
    assert found is not None
    middle = (standard.mean(low) + standard.mean(high)) / 2
    error = math.sqrt(standard.variance(low) / 60 + standard.variance(high) / 240) / 2
    assert (found.low, found.high) == pytest.approx(
        (middle - 1.96 * error, middle + 1.96 * error), abs=0.3 * error
    )


def test_it_holds_the_mean_as_often_as_it_says() -> None:
    """Of 300 samples of 100, about 95 % of the t intervals and of the bootstrap's hold the true mean."""
    truth = (2 * 0.5 + 3 * 2 / 3 + 2 * 0.8 + 11) / 20
    samples = [scores(100, 1_000 + seed) for seed in range(300)]
    for intervals in (
        [mean_interval(Sums.of(sample)) for sample in samples],
        [bootstrap_mean(sample, draws=200) for sample in samples],
    ):
        assert (
            0.9 < sum(each is not None and each.low <= truth <= each.high for each in intervals) / 300 < 0.99
        )


@given(st.lists(st.floats(-1, 1), max_size=50), st.integers(1, 20))
def test_blocks(values: list[float], limit: int) -> None:
    """Groups are at most as many as asked for, and lose nothing of the sum; fewer values stay as they are."""
    found = blocks(values, limit)
    assert math.fsum(found) == pytest.approx(math.fsum(values), abs=1e-9)
    assert len(found) == min(len(values), limit)
    if len(values) <= limit:
        assert found == values
